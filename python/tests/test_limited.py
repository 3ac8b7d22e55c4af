"""The decorator."""

import asyncio

import lessor
import pytest
from serving import saved_up, until


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
