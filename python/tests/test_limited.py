"""The decorator."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import lessor
import pytest
from serving import Server, saved_up, until


def test_a_call_takes_what_it_costs(client, name):
    rate = client.rate("much" + name, wants=1000)
    rate.acquire(timeout=60)

    @rate.limited(cost=lambda units: units, timeout=60)
    def double(units):
        """Doubles."""
        return 2 * units

    assert double(4) == 8
    assert (double.__name__, double.__doc__) == ("double", "Doubles.")
    assert double(0) == 0


def test_a_domain_is_named_by_its_key(client, name):
    search = client.rate("search" + name, wants=500)
    search.acquire(timeout=60)
    saved_up(search)

    @search.limited(key=lambda tenant: tenant, timeout=0)
    def handler(tenant):
        return tenant

    @search.limited(cost=2, key="fixed", timeout=0)
    async def fixed():
        return "yes"

    assert [handler("a") for _ in range(5)] == ["a"] * 5
    with pytest.raises(lessor.Refused) as refused:
        handler("a")
    assert refused.value.resource == f"search{name}[a]"
    assert handler("b") == "b"
    assert [asyncio.run(fixed()) for _ in range(2)] == ["yes"] * 2
    with pytest.raises(lessor.Refused):
        asyncio.run(fixed())


def test_who_raises_gives_the_permit_back(client, name):
    pool = client.gauge("pool" + name, wants=6)
    pool.acquire(timeout=60).release()
    until("all of them", lambda: pool.lease.capacity == 6)

    @pool.limited(cost=6, timeout=60)
    def fails():
        assert pool.try_acquire() is None
        raise KeyError("deliberate")

    @pool.limited(cost=6, timeout=0)
    async def fails_too():
        assert pool.try_acquire() is None
        await asyncio.sleep(0)
        raise KeyError("deliberate")

    for _ in range(3):
        with pytest.raises(KeyError, match="deliberate"):
            fails()
        with pytest.raises(KeyError, match="deliberate"):
            asyncio.run(fails_too())
    held = pool.try_acquire(6)
    assert held is not None
    with pytest.raises(lessor.Refused):
        asyncio.run(fails_too())


def test_one_that_is_cancelled_gives_the_permit_back(client, name):
    pool = client.gauge("pool" + name, wants=6)
    pool.acquire(timeout=60).release()
    until("all of them", lambda: pool.lease.capacity == 6)

    @pool.limited(cost=6, timeout=60)
    async def sleeps():
        await asyncio.sleep(3600)

    async def main():
        task = asyncio.create_task(sleeps())
        await asyncio.sleep(0)
        assert pool.try_acquire() is None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert pool.try_acquire(6) is not None


def test_generators_are_not_limited(client, name):
    rate = client.rate("rate" + name)
    with pytest.raises(TypeError, match="is a generator"):

        @rate.limited()
        def numbers():
            yield 1


class Service:
    """Functions behind the decorator, and what passes them and is refused."""

    def __init__(self, client):
        self.search = client.rate("search", wants=500)
        self.rate = client.rate("rate", wants=100)
        self.pool = client.gauge("pool", wants=6)
        self.entered, self.leave = threading.Semaphore(0), threading.Event()

        @self.search.limited(key=lambda tenant: tenant, timeout=0)
        def find(tenant):
            return tenant

        @self.rate.limited(timeout=60)
        def call():
            return time.monotonic()

        @self.pool.limited(timeout=0)
        def work():
            self.entered.release()
            return self.leave.wait(60)

        self.find, self.call, self.work = find, call, work

    def check(self, fresh, spent):
        """Two counts: nothing passes that is not allowed, and nothing is refused that is."""
        self.check_tenants(fresh, spent)
        self.check_rate()
        self.check_pool()

    def check_tenants(self, fresh, spent):
        # Five an hour for each.
        assert [self.find(fresh) for _ in range(5)] == [fresh] * 5
        for tenant in (fresh, *spent):
            for _ in range(5):
                with pytest.raises(lessor.Refused) as refused:
                    self.find(tenant)
                assert 3000 < refused.value.retry_after <= 3600

    def check_rate(self):
        # A hundred a second, of which 50 ms are saved up; nobody is refused who waits.
        passed = [self.call() for _ in range(40)]
        for first, begun in enumerate(passed):
            allowed = [100 * (ended - begun + 0.05) + 1 for ended in passed[first:]]
            assert all(count <= most for count, most in enumerate(allowed))

    def check_pool(self):
        # Six at once: they all pass, and the seventh does not until one of them has left.
        self.leave.clear()
        with ThreadPoolExecutor(6) as threads:
            working = [threads.submit(self.work) for _ in range(6)]
            try:
                assert all(self.entered.acquire(timeout=60) for _ in range(6))
                with pytest.raises(lessor.Refused) as refused:
                    self.work()
                assert refused.value.kind == "full"
            finally:
                self.leave.set()
            assert all(each.result(60) for each in working)
        assert self.work() and self.entered.acquire(timeout=60)


def test_functions_keep_to_their_limits_with_the_server_killed_and_back():
    server = Server(remembers=True)
    try:
        with lessor.Client(server.address, id="web-1") as client:
            service = Service(client)
            saved_up(service.search)
            until("all of the pool", lambda: service.pool.lease.capacity == 6)
            until("all of the rate", lambda: service.rate.lease.capacity == 100)
            service.check("from the start", [])

            server.kill()
            service.check("while nobody leases anything", ["from the start"])

            server.start()
            for name in ["search", "rate", "pool"]:
                until(f"it has {name} again", lambda name=name: server.holders(name))
            service.check("after the server has come back", ["from the start", "while nobody leases anything"])
            found = [line for line in server.page("/metrics").splitlines() if line.startswith("lessor_overcommitment{")]
            assert found and all(float(line.split()[-1]) == 0 for line in found)
    finally:
        server.stop()


def test_who_is_denied_by_a_server_that_is_learning_hears_until_when():
    config = """
resources:
- identifier_glob: "*"
  capacity: 100
  safe_capacity: 0
  algorithm: {kind: FAIR_SHARE, lease_length: 30, refresh_interval: 1}
"""
    server = Server(config)
    try:
        with lessor.Client(server.address, id="web-1") as client:
            rate = client.rate("db", wants=10)
            until("it is known", lambda: rate.lease.learning)

            @rate.limited(timeout=0)
            def query():
                pass

            with pytest.raises(lessor.NoLease) as denied:
                query()
            assert denied.value.kind == "learning" and 0 < denied.value.retry_after <= 31
            assert "the server is learning what is out for another " in str(denied.value)
    finally:
        server.stop()
