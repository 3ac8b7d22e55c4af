"""The client in one file over grpcio: what it shows to a leader that follows another."""

import threading
import types

import lessor.wire
from serving import PATIENCE, Server, until

ALGORITHM = "{kind: FAIR_SHARE, lease_length: 12, refresh_interval: 1, learning_mode_duration: 12}"
CONFIG = f"""
resources:
- identifier_glob: "pool"
  kind: gauge
  capacity: 4
  safe_capacity: 0
  algorithm: {ALGORITHM}
"""


def holding(kind):
    """A resource of a client that speaks to nobody, and a function that has it adopt a lease of epoch 1."""
    client = types.SimpleNamespace(_closed=False, _changed=threading.Condition())
    resource, orders = kind(client, "pool", 10, 0), iter(range(1, 100))

    def adopt(now, capacity, seconds=10, unenforced=False):
        response = lessor.wire._pb["ResourceResponse"](resource_id="pool")
        gets, seq = response.gets, next(orders)
        gets.capacity, gets.expiry_time, gets.refresh_interval = capacity, 0, 1
        gets.epoch, gets.seq, gets.duration_ms, gets.token = 1, seq, seconds * 1000, b"%d" % seq
        if unenforced:
            gets.unenforced = True
        resource._adopt(now, now, response, 1)

    return resource, adopt


def shown(resource, now, epoch=2):
    """What the next report shows to the leader of that epoch: the amount, its token, and what is held of it."""
    report = resource._report(now, epoch)
    return report.has.capacity, report.has.token, report.held


def test_units_in_use_are_shown_with_the_lease_that_they_were_taken_under():
    pool, adopt = holding(lessor.wire.Gauge)
    adopt(0, 10)
    permit = pool._try(1, 8)[0]
    adopt(5, 3)
    # The one who granted it knows what it counts.
    assert shown(pool, 6, epoch=1) == (3, b"2", 8)
    # It is renewed, and so is what is in use of the larger one: as long as that, and no more of it than was reported.
    assert shown(pool, 12) == (8, b"1", 8)
    permit.release()
    assert shown(pool, 13) == (8, b"1", 3)
    assert shown(pool, 14) == (3, b"1", 3)
    adopt(14, 3)
    assert shown(pool, 14) == (3, b"3", 3)


def test_units_of_a_lease_that_is_over_are_held_and_not_shown():
    pool, adopt = holding(lessor.wire.Gauge)
    adopt(0, 10)
    pool._try(1, 8)
    assert shown(pool, 11) == (0, b"1", 8)
    adopt(12, 3)
    assert shown(pool, 13) == (3, b"2", 8)


def test_a_larger_lease_of_a_rate_is_shown_until_it_ends_or_is_given_back():
    rate, adopt = holding(lessor.wire.Rate)
    adopt(0, 10)
    adopt(5, 3)
    assert shown(rate, 6) == (10, b"1", 3)
    assert shown(rate, 7) == (3, b"2", 3)
    adopt(8, 10, seconds=4)
    adopt(9, 3)
    assert shown(rate, 13) == (3, b"4", 3)


def test_units_that_outlast_a_recall_count_at_the_next_leader():
    server = Server(CONFIG, remembers=True)
    clients = [lessor.wire.Client(server.address, id=id) for id in ("busy", "other")]
    try:
        busy = clients[0].gauge("pool", wants=4)
        permits = [busy.acquire(timeout=PATIENCE) for _ in range(4)]
        other = clients[1].gauge("pool", wants=4)
        until("recalled", lambda: busy.capacity == 2)
        server.kill()
        server.start()

        def counted():
            found = server.resource("pool")
            return found and found["ghost"] == 0 and {each["client"]: each["has"] for each in found["holders"]}

        counts = until("what was out is known, or over", counted)
        assert busy.in_use == 4 and not any(permit.is_expired for permit in permits)
        assert counts.get("busy") == 4 and other.capacity == 0
        for permit in permits:
            permit.release()
        until("it has its share", lambda: other.capacity == 2)
    finally:
        for client in clients:
            client.close()
        server.stop()


def test_what_is_let_pass_is_not_in_use_and_is_said_once():
    pool, adopt = holding(lessor.wire.Gauge)

    def said(now):
        report = pool._report(now, 1)
        return (report.unenforced.asked, report.unenforced.passed) if report.HasField("unenforced") else None

    adopt(0, 3)
    assert pool._take(1, 4)[0] is None, "it is kept to"
    assert said(1) is None
    adopt(2, 3, unenforced=True)
    assert said(2) == (0, 0), "it is said that it is counted"
    two, four = pool._take(3, 2)[0], pool._take(3, 4)[0]
    assert (two.units, four.units, pool.in_use, pool.unenforced) == (2, 4, 2, 4)
    assert two.deadline is not None and four.deadline is None and not four.is_expired
    assert pool._take(99, 1)[0].units == 1, "without a lease as well"
    assert (said(99), said(99)) == ((7, 5), (0, 0))
    for permit in (four, two):
        permit.release()
    assert (four.units, pool.in_use) == (0, 0)
    adopt(100, 3)
    assert pool._take(101, 4)[0] is None
    assert said(101) is None
