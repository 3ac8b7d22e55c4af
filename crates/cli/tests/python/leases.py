"""Clients of lessor.wire against real servers.

Usage: leases.py WIRE (shares|fail_over) HOST:PORT[,HOST:PORT]

WIRE is the directory of wire.py. `shares`: clients of a rate and a gauge come, go, use permits and are recalled; what all of
them believe to have is added up again and again, and in the end each has its exact share. `fail_over`: says when all have
their shares and who leads; when that one has gone nobody may be without a lease for a moment.
"""

import contextlib
import os
import random
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])

import wire  # noqa: E402

RATE, RATE_CAPACITY = "rate", 100.0
POOL, POOL_CAPACITY = "pool", 6
CLIENTS = 5
# Shares are counted in millionths.
EXACT = 1e-6
# Far more than it takes.
PATIENCE = 60.0


def check(clients):
    """What all of them believe to have, at one moment."""
    with contextlib.ExitStack() as stack:
        for client in clients:
            stack.enter_context(client._changed)
        now = wire._now()
        rate = pool = 0.0
        for client in clients:
            for holding in client._holdings.values():
                if holding.generation == wire.GAUGE:
                    pool += max(holding._allowed(now), holding._in_use())
                else:
                    rate += holding._allowed(now)
    assert rate <= RATE_CAPACITY + EXACT, f"{rate} of {RATE_CAPACITY} are held"
    assert pool <= POOL_CAPACITY, f"{pool} of {POOL_CAPACITY} are held or in use"


def until(what, holds, clients):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"never {what}"
        check(clients)
        time.sleep(0.02)


def refused(act, words):
    try:
        act()
    except wire.Refused as why:
        assert words in str(why), why
        return why
    raise AssertionError(f"not refused, wanted {words!r}")


def shares(address):
    clients = [wire.Client(address, id=f"python-{number}") for number in range(CLIENTS)]
    rates = [client.rate(RATE, wants=60) for client in clients]
    pools = [client.gauge(POOL, wants=3) for client in clients]
    share = RATE_CAPACITY / CLIENTS
    until("equal shares", lambda: all(abs(rate.capacity - share) <= EXACT for rate in rates), clients)

    # Threads that use what there is, while others want more and less.
    stop, taken, failures = threading.Event(), [0] * CLIENTS, []

    def use(number):
        dice = random.Random(number)
        try:
            while not stop.is_set():
                taken[number] += rates[number].try_acquire()
                with contextlib.suppress(wire.Refused), pools[number].acquire(timeout=0.2):
                    time.sleep(dice.uniform(0, 0.05))
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=use, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    dice = random.Random(7)
    for _ in range(60):
        number = dice.randrange(CLIENTS)
        pools[number].wants = dice.choice([0, 1, 3, 6])
        rates[number].wants = dice.choice([0, 5, 60, 200])
        for _ in range(5):
            check(clients)
            time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures and min(taken) > 0, (failures, taken)

    # One wants what the others leave, and each has what it wants or an equal part.
    for number in range(CLIENTS):
        rates[number].wants, pools[number].wants = (10, 1) if number else (500, 6)
    left = RATE_CAPACITY - 10 * (CLIENTS - 1)
    until("what the others leave", lambda: abs(rates[0].capacity - left) <= EXACT, clients)
    until("units that the others leave", lambda: pools[0].capacity == POOL_CAPACITY - CLIENTS + 1, clients)

    # More than can be saved up comes bit by bit, and never at once.
    begun = time.monotonic()
    assert not rates[0].try_acquire(30)
    rates[0].acquire(30, timeout=20)
    # At no more than the capacity, with five that lay there.
    assert time.monotonic() - begun >= 0.2, "30 of 100 a second at once"
    refused(lambda: rates[0].acquire(500, timeout=0.2), "all of the lease is used")

    # A permit in use is waited for.
    permits = [pools[0].acquire() for _ in range(2)]
    pools[1].wants, pools[0].wants = 5, 0
    until("recalled", lambda: pools[0].capacity == 2, clients)
    assert pools[0].try_acquire() is None and permits[0].deadline > time.monotonic()
    for permit in permits:
        permit.release()
        permit.release()
    until("given back", lambda: pools[1].capacity >= 2 and pools[0].in_use == 0, clients)

    # Who is mistaken disturbs nobody.
    lost = clients[0].rate("nobody-knows-this", wants=1)
    mistaken = clients[1].gauge(RATE + "-2", wants=1)
    refused(lambda: lost.acquire(timeout=3), "no template matches")
    refused(lambda: mistaken.acquire(timeout=3), "gauge")
    assert rates[0].acquire(timeout=5) is None
    refused(lambda: pools[2].acquire(100, timeout=0.2), "all of the lease is used")

    # The child of a fork has none of it.
    child = os.fork()
    if child == 0:
        try:
            refused(lambda: rates[0].acquire(timeout=1), "of the process before a fork")
            with wire.Client(address, id="python-child") as own:
                own.rate(RATE, wants=1).acquire(timeout=20)
        except BaseException as failure:
            print(failure, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "the child has failed"

    # What is given back is there at once.
    for client in clients[1:]:
        client.close()
    refused(rates[1].acquire, "closed")
    rates[0].wants = 500
    until("all of it", lambda: abs(rates[0].capacity - RATE_CAPACITY) <= EXACT, clients)
    clients[0].close()
    print(f"{CLIENTS} clients, shares exact")


def fail_over(addresses):
    clients = [wire.Client(*addresses, id=f"python-{number}") for number in range(CLIENTS)]
    rates = [client.rate(RATE, wants=60) for client in clients]
    share = RATE_CAPACITY / CLIENTS

    def settled():
        return all(abs(rate.capacity - share) <= EXACT for rate in rates)

    until("equal shares", settled, clients)
    leader = clients[0]._leader or clients[0]._servers[clients[0]._turn]
    print(f"led by {leader}", flush=True)
    fence = clients[0]._fence
    least = share
    end = time.monotonic() + PATIENCE
    # Until everybody has been granted something by another leader.
    while any(rate._lease.epoch <= fence for rate in rates):
        assert time.monotonic() < end, "no other leader has granted anything"
        check(clients)
        least = min(least, *(rate.capacity for rate in rates))
        time.sleep(0.02)
    assert least >= share - EXACT, f"somebody fell to {least} of {share}"
    until("equal shares again", settled, clients)
    for client in clients:
        client.close()
    print(f"{CLIENTS} clients kept their leases")


if sys.argv[2] == "shares":
    shares(sys.argv[3])
else:
    fail_over(sys.argv[3].split(","))
