"""Clients: shares, recalls, permits, domains, and what is said where nothing is granted."""

import gc
import math
import pickle
import time
from datetime import timedelta

import lessor
import pytest
from serving import saved_up, until

# Nobody listens there.
NOWHERE = "127.0.0.1:1"


def has(resource, capacity):
    return lambda: resource.lease.capacity == pytest.approx(capacity, abs=1e-5)


def test_clients_share_what_there_is_and_give_back_what_they_are_recalled(server, name):
    first, second = lessor.Client(server.address, id="first"), lessor.Client(server.address, id="second")
    with first:
        hungry = first.rate("rate" + name, wants=80)
        until("all that it wants", has(hungry, 80))
        with second:
            other = second.rate("rate" + name, wants=80)
            until("half of it", has(hungry, 50))
            until("half of it", has(other, 50))
            other.set_wants(10)
            until("what the other one does not want", has(hungry, 80))
            until("what it wants", has(other, 10))
        hungry.set_wants(100)
        until("what was given back", has(hungry, 100))
    assert hungry.try_acquire() is False, "the client is closed"
    assert first.closed


def test_a_lease_says_what_it_is(client, name):
    rate = client.rate("rate" + name, wants=30)
    assert rate.name == "rate" + name
    until("leased", has(rate, 30))
    lease = rate.lease
    assert (lease.rung, lease.wants, lease.learning, lease.last_error) == ("leased", 30.0, False, None)
    assert 0 < lease.remaining <= 20
    assert repr(rate).startswith(f'<lessor.Rate "rate{name}": 30/s, leased for ')
    assert repr(client).startswith('<lessor.Client "c" of 127.0.0.1:')
    pool = client.gauge("pool" + name)
    assert repr(pool) in (f'<lessor.Gauge "pool{name}": 0 units, waiting>', repr(pool))


def test_a_rate_is_spent_and_says_when_to_come_again(client, name):
    rate = client.rate("rate" + name, wants=100)
    rate.acquire(timeout=60)
    with pytest.raises(lessor.Refused) as refused:
        for _ in range(1_000_000):
            rate.acquire_nowait()
    assert 0 < refused.value.retry_after <= 0.1
    assert (refused.value.kind, refused.value.resource) == ("spent", "rate" + name)
    assert str(refused.value).startswith(f"rate{name}: the rate is used up for another ")
    rate.acquire(10, timeout=timedelta(seconds=60))
    with pytest.raises(lessor.Refused) as refused:
        rate.acquire(90, timeout=0.1)
    assert refused.value.kind == "too_long"


def test_exceptions_can_be_pickled():
    error = lessor.Refused("a", "spent", "spent", 0.5)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.retry_after) == (lessor.Refused, "a: spent", 0.5)
    assert issubclass(lessor.BadName, ValueError) and issubclass(lessor.NoLease, lessor.Error)


def test_permits_come_back(client, name):
    pool = client.gauge("pool" + name, wants=6)
    first = pool.acquire(4, timeout=60)
    assert (first.units, first.expired, first.gauge) == (4, False, "pool" + name)
    assert 0 < first.remaining <= 20
    second = pool.try_acquire(2)
    assert second is not None and pool.try_acquire() is None
    with pytest.raises(lessor.Refused) as refused:
        pool.acquire_nowait(1)
    assert (refused.value.kind, refused.value.reason) == ("full", "6 of 6 are in use")
    with pytest.raises(lessor.Refused) as refused:
        pool.acquire(1, timeout=0.05)
    assert refused.value.kind == "timed_out"
    first.shrink(3)
    with pool.acquire(timeout=60) as third:
        assert third.units == 1 and pool.try_acquire() is None
    assert (third.units, third.expired, third.remaining) == (0, True, 0.0)
    third.release()
    del second
    gc.collect()
    assert pool.try_acquire(3) is not None, "what nobody refers to has come back"
    assert repr(first).startswith(f'<lessor.Permit: 4 of "pool{name}", for ')


def test_a_permit_ends_with_its_lease(own_server):
    with lessor.Client(own_server.address, id="c") as client:
        short = client.gauge("short", wants=4)
        permit = short.acquire(timeout=60)
        assert permit.wait_expired(0.05) is False and not permit.expired
        own_server.kill()
        assert permit.wait_expired(60) is True
        assert permit.expired and permit.remaining == 0.0 and permit.units == 1
        with pytest.raises(lessor.NoLease):
            short.acquire_nowait()


def test_leases_go_on_when_a_server_was_killed_and_comes_back(own_server, name):
    with lessor.Client(own_server.address, id="c") as client:
        rate = client.rate("rate", wants=40)
        until("leased", has(rate, 40))
        own_server.kill()
        until("a failure", lambda: rate.lease.last_error)
        rate.acquire(timeout=60)
        assert rate.lease.rung == "leased" and rate.lease.last_error
        own_server.start()
        until("no failure", lambda: rate.lease.last_error is None)
        until("renewed", lambda: rate.lease.capacity == 40 and rate.lease.remaining > 18)


def test_domains_are_limited_by_their_policies(client, name):
    search = client.rate("search" + name, wants=500)
    search.acquire(timeout=60)
    tenant = search.domain("tenant-1")
    saved_up(search)
    decision = tenant.request(3)
    assert decision and (decision.granted, decision.tier, decision.tier_limit) == (3, 1, 5)
    assert (decision.hits_in_tier, decision.tier_window, decision.retry_after) == (3, 3600.0, None)
    part = tenant.request(10, min=1)
    assert (part.granted, part.bound) == (2, "tiers")
    refused = tenant.request(1)
    assert not refused and refused.bound == "tiers" and 0 < refused.retry_after <= 3600
    assert not tenant.try_acquire()
    with pytest.raises(lessor.Refused) as error:
        tenant.acquire_nowait()
    assert error.value.decision.bound == "tiers" and error.value.resource == f"search{name}[tenant-1]"
    with pytest.raises(lessor.Refused):
        tenant.acquire(timeout=1)
    assert not tenant.confirmed(1)
    tenant.settle(2, 1)
    assert tenant.try_acquire() and not tenant.try_acquire()
    assert search.domain("tenant-2").try_acquire(5), "another one is not concerned"
    assert search.domain("closed").request().bound == "tiers"
    search.set_kill_switch(True)
    assert tenant.request().ground == "kill_switch"


def test_several_are_had_together_or_nothing_of_any(client, name):
    pool, rate = client.gauge("pool" + name, wants=6), client.rate("much" + name, wants=10_000)
    search = client.rate("search" + name, wants=500)
    jobs = client.together(min=1, copies=10).gauge(pool, once=1).rate(rate, each=2).domain(search, "t", each=1)
    for resource in (pool, rate, search):
        until("leased", lambda resource=resource: resource.lease.rung == "leased")
    saved_up(search)
    with jobs.acquire(timeout=60) as permit:
        assert (permit.copies, permit.bound_by, permit.expired) == (5, 2, False)
        assert pool.try_acquire(6) is None and 0 < permit.remaining <= 20
    assert permit.expired
    with pytest.raises(lessor.Refused) as refused:
        jobs.acquire_nowait()
    assert refused.value.resource == f"search{name}[t]" and refused.value.decision.bound == "tiers"
    assert jobs.try_acquire() is None
    whole = pool.try_acquire(6)
    assert whole is not None, "a refused request holds nothing"
    with pytest.raises(ValueError, match="parts 0 and 1 are of the same resource"):
        client.together().gauge(pool, once=1).gauge(pool, each=1).try_acquire()
    with pytest.raises(TypeError, match="once=UNITS or each=UNITS"):
        client.together().gauge(pool)


def test_a_server_that_refuses_says_why(client, name):
    gauge = client.gauge("rate" + name)
    with pytest.raises(lessor.NoLease) as refused:
        gauge.acquire(timeout=60)
    assert "opens" in refused.value.reason and refused.value.kind == "refused_by_server"
    unknown = client.rate("unknown" + name)
    with pytest.raises(lessor.NoLease, match="no template"):
        unknown.acquire(timeout=math.inf)


def test_what_cannot_be_is_said(client, name):
    with pytest.raises(lessor.BadName, match="control character"):
        client.rate("a\nb")
    with pytest.raises(lessor.BadName):
        lessor.Client("127.0.0.1:1", id="")
    with pytest.raises(ValueError, match="two words"):
        lessor.Client("two words")
    with pytest.raises(TypeError, match="address"):
        lessor.Client()
    for address, fault in [("web-1", "has no port"), ("web-1:99999", "has a port that is no number"), (":1", "names no host")]:
        with pytest.raises(ValueError, match=f"{address}\" {fault}.*; wanted HOST:PORT"):
            lessor.Client(address)
    with pytest.raises(ValueError, match="wants of -1"):
        client.rate("rate" + name, wants=-1)
    with pytest.raises(ValueError, match="wanted one of"):
        client.rate("rate" + name, fallback="hope")
    with pytest.raises(TypeError, match="unexpected keyword argument \"burst\""):
        client.gauge("pool" + name, burst=1)
    rate = client.rate("rate" + name)
    with pytest.raises(ValueError, match="is open as a rate"):
        client.gauge("rate" + name)
    for units in (-1, 2**32):
        with pytest.raises(ValueError, match=f"{units} units; wanted a whole number"):
            rate.try_acquire(units)
    with pytest.raises(TypeError):
        rate.try_acquire("1")
    tenant = rate.domain("t")
    for ask in (tenant.request, tenant.confirmed, tenant.acquire, tenant.acquire_async, tenant.peek):
        with pytest.raises(ValueError, match="min of 11; wanted no more than the 10 that are asked for"):
            ask(10, min=11)
    with pytest.raises(ValueError, match="a time of -1"):
        rate.acquire(timeout=-1)
    with pytest.raises(TypeError):
        pickle.dumps(client)


def test_a_wait_is_bounded_by_its_timeout_or_by_the_opening(name):
    with lessor.Client(NOWHERE, id="c") as client:
        rate = client.rate("rate", max_wait=0.05)
        for wait in (rate.acquire, client.gauge("pool", max_wait=0.05).acquire, rate.domain("t").acquire):
            with pytest.raises(lessor.Error):
                wait()
        began = time.monotonic()
        with pytest.raises(lessor.NoLease):
            client.rate("other").acquire(timeout=0.5)
        assert time.monotonic() - began >= 0.5


def test_a_closed_client_grants_nothing_and_ends_waits(server, name):
    client = lessor.Client(server.address)
    rate = client.rate("rate" + name)
    assert client.id.startswith("client-")
    client.close()
    client.close()
    with pytest.raises(lessor.Closed):
        rate.acquire_nowait()
    with pytest.raises(lessor.Closed):
        rate.acquire(timeout=math.inf)
    with pytest.raises(lessor.Closed):
        client.rate("other")
    assert client.id.startswith("client-") and repr(client).endswith(", closed>")
    assert repr(rate) == f'<lessor.Rate "rate{name}": closed>'


def test_metrics_are_what_was_done_and_name_as_many_domains_as_wanted(client, name):
    rate, pool = client.rate("search" + name, wants=50), client.gauge("pool" + name)
    until("leased", lambda: rate.lease.rung == "leased" and pool.lease.rung == "leased")
    permit = pool.acquire(2, timeout=20)
    saved_up(rate)
    hits = sum(bool(rate.domain("greedy").try_acquire()) for _ in range(3))
    page = client.metrics(domains=1)
    assert f'lessor_client_in_use{{resource="pool{name}"}} 2.0\n' in page
    assert f'lessor_client_rung{{resource="search{name}",rung="leased"}} 1.0\n' in page
    assert f'lessor_client_domain_hits_granted_total{{resource="search{name}"}} {hits}\n' in page
    assert 'domain="greedy"' in page and page.endswith("# EOF\n")
    assert 'domain="greedy"' not in client.metrics()
    permit.release()
    client.close()
    with pytest.raises(lessor.Closed):
        client.metrics()
