"""One story told to both clients of Python: the binding, and the file over grpcio."""

import lessor
import lessor.wire
import pytest
from serving import until


class Binding:
    refused = lessor.Error

    def client(self, address, id):
        return lessor.Client(address, id=id)

    def capacity(self, resource):
        return resource.lease.capacity

    def lets_pass(self, resource):
        return resource.lease.unenforced


class Wire:
    refused = lessor.wire.Refused

    def client(self, address, id):
        return lessor.wire.Client(address, id=id)

    def capacity(self, resource):
        return resource.capacity

    def lets_pass(self, resource):
        return resource.lets_pass


KINDS = {"binding": Binding(), "wire": Wire()}


@pytest.fixture(params=[("binding", "binding"), ("wire", "wire"), ("binding", "wire"), ("wire", "binding")])
def two(request, server):
    """Two clients, each with its kind."""
    kinds = [KINDS[kind] for kind in request.param]
    clients = [kind.client(server.address, f"{place}") for place, kind in enumerate(kinds)]
    yield list(zip(kinds, clients, strict=True))
    for client in clients:
        client.close()


def has(kind, resource, capacity):
    until(f"{capacity}", lambda: kind.capacity(resource) == pytest.approx(capacity, abs=1e-5))


def test_both_get_their_exact_shares_and_are_recalled(two, name):
    (one, first), (other, second) = two
    hungry = first.rate("rate" + name, wants=90)
    has(one, hungry, 90)
    newcomer = second.rate("rate" + name, wants=30)
    has(other, newcomer, 30)
    has(one, hungry, 70)
    second.close()
    has(one, hungry, 90)


def test_both_spend_no_more_than_they_have(two, name):
    for place, (kind, client) in enumerate(two):
        rate = client.rate(f"rate{name}-{place}", wants=50)
        has(kind, rate, 50)
        granted = 0
        while rate.try_acquire(10):
            granted += 1
            assert granted <= 60
        with pytest.raises(kind.refused) as refused:
            rate.acquire(40, timeout=0.01)
        assert refused.value.resource == f"rate{name}-{place}"
        rate.acquire(10, timeout=60)


def test_permits_of_both_are_counted(two, name):
    (one, first), (other, second) = two
    pools = [first.gauge("pool" + name, wants=3), second.gauge("pool" + name, wants=3)]
    has(one, pools[0], 3)
    has(other, pools[1], 3)
    with pools[0].acquire(3, timeout=60) as permit, pools[1].acquire(3, timeout=60):
        assert permit.units == 3
        assert not pools[0].try_acquire() and not pools[1].try_acquire()
        with pytest.raises(one.refused):
            pools[0].acquire(timeout=0.05)
    assert pools[0].try_acquire(3) and pools[1].try_acquire(3)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_both_say_what_the_server_refuses(server, name, kind):
    client = kind.client(server.address, "c")
    unknown = client.rate("unknown" + name, wants=1)
    with pytest.raises(kind.refused, match="no template"):
        until("refused", lambda: unknown.acquire(timeout=1) or True)
    client.close()


def test_a_resource_that_is_refused_among_others_says_why_and_waits(server, name):
    with lessor.wire.Client(server.address, id="c") as client:
        with client._changed:
            # In one request.
            known, unknown = client.rate("rate" + name, wants=10), client.rate("unknown" + name, wants=1)
        has(KINDS["wire"], known, 10)
        with pytest.raises(lessor.wire.Refused, match="no template"):
            unknown.acquire(timeout=0)
        until("asked for again, less and less often", lambda: unknown._refusals == 3)
        assert known.capacity == 10


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_both_outlive_their_server_and_have_it_back(own_server, kind):
    client = kind.client(own_server.address, "c")
    rate = client.rate("rate", wants=40)
    has(kind, rate, 40)
    own_server.kill()
    rate.acquire(timeout=60)
    assert kind.capacity(rate) == 40
    own_server.start()
    until("asked again", lambda: [holder["has"] for holder in own_server.holders("rate")] == [40.0])
    client.close()


def test_both_say_what_they_let_pass_before_they_end(two, name, server):
    (one, first), (other, second) = two
    stays = second.rate("tried" + name, wants=1)
    until("told", lambda: other.lets_pass(stays))
    leaves = first.rate("tried" + name, wants=5)
    until("told", lambda: one.lets_pass(leaves))
    assert all(leaves.try_acquire() for _ in range(30))
    first.close()
    until("said", lambda: server.resource("tried" + name)["unenforced_asked"] == 30)
    assert server.resource("tried" + name)["unenforced_passed"] > 0


def test_both_let_pass_what_a_limit_that_is_tried_would_refuse_and_say_it(two, name, server):
    # They stay open until the counts were looked at.
    kept = []
    for kind, client in two:
        rate, pool = client.rate("tried" + name, wants=5), client.gauge("tried-pool" + name, wants=3)
        kept += [rate, pool]
        for tried in (rate, pool):
            until("told", lambda kind=kind, tried=tried: kind.lets_pass(tried))
        assert all(rate.try_acquire() for _ in range(30))
        permits = [pool.try_acquire(2) for _ in range(5)]
        assert all(permit.units == 2 for permit in permits)
        for permit in permits:
            permit.release()

    def counted(resource):
        row = server.resource(resource + name)
        return row["unenforced_asked"], row["unenforced_passed"], row["unenforced_silent"]

    until("said", lambda: (counted("tried")[0], counted("tried-pool")[0]) == (60, 20))
    # Of the rate some came with the lease; of the pool one permit fitted each, or the other client had that as well.
    assert 30 <= counted("tried")[1] <= 60 and 12 <= counted("tried-pool")[1] <= 20
    assert (counted("tried")[2], counted("tried-pool")[2]) == (0, 0)
