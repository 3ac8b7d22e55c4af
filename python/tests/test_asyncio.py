"""asyncio: waits that are cancelled, and event loops that end."""

import asyncio
import gc
import math

import lessor
import pytest
import uvloop
from serving import until

NOWHERE = "127.0.0.1:1"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def run(main):
        event_loop = request.param()
        try:
            return event_loop.run_until_complete(asyncio.wait_for(main, 120))
        finally:
            event_loop.close()

    return run


def test_waits_end_in_order(run, client, name):
    async def main():
        pool = client.gauge("pool" + name, wants=6)
        first = await pool.acquire_async(6, timeout=60)
        order = []

        async def take(number):
            async with pool.acquire_async(6, timeout=60) as permit:
                order.append((number, permit.units))

        tasks = [asyncio.create_task(take(number)) for number in range(4)]
        await asyncio.sleep(0)
        first.release()
        await asyncio.gather(*tasks)
        assert order == [(number, 6) for number in range(4)]
        assert pool.try_acquire(6) is not None

    run(main())


def test_who_is_cancelled_gives_the_place_up(run, client, name):
    async def main():
        pool = client.gauge("pool" + name, wants=6)
        first = await pool.acquire_async(6, timeout=60)
        greedy = asyncio.create_task(_await(pool.acquire_async(6, timeout=math.inf)))
        modest = asyncio.create_task(_await(pool.acquire_async(1, timeout=math.inf)))
        await asyncio.sleep(0.05)
        first.shrink(5)
        await asyncio.sleep(0.05)
        assert not modest.done(), "nobody is overtaken"
        greedy.cancel()
        with pytest.raises(asyncio.CancelledError):
            await greedy
        with await asyncio.wait_for(modest, 60) as permit:
            assert permit.units == 1
        first.release()
        assert pool.try_acquire(6) is not None

    run(main())


async def _await(awaitable):
    return await awaitable


def test_timeouts_of_asyncio_end_waits(run):
    async def main():
        async with lessor.Client(NOWHERE, id="c") as client:
            rate, pool = client.rate("x"), client.gauge("y")
            for wait in (rate.acquire_async, rate.domain("t").acquire_async, pool.acquire_async):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(_await(wait(timeout=math.inf)), 0.05)
                with pytest.raises(lessor.Error):
                    await wait(timeout=0.05)
            together = client.together().gauge(pool, once=1)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(_await(together.acquire_async(timeout=math.inf)), 0.05)
            waiting = rate.acquire_async(timeout=math.inf)
            await client.close_async()
            with pytest.raises(lessor.Closed):
                await waiting
        assert client.closed

    run(main())


def test_a_permit_that_comes_while_it_is_cancelled_is_given_back(run, client, name):
    async def main():
        pool = client.gauge("pool" + name, wants=6)
        (await pool.acquire_async(timeout=60)).release()
        until("all", lambda: pool.lease.capacity == 6)
        for turn in range(200):
            held = pool.acquire_nowait(6)
            waiting = asyncio.ensure_future(_await(pool.acquire_async(6, timeout=60)))
            await asyncio.sleep(0)
            held.release()
            if turn % 2:
                await asyncio.sleep(0)
            waiting.cancel()
            try:
                (await waiting).release()
            except asyncio.CancelledError:
                pass
            (await pool.acquire_async(6, timeout=60)).release()
        gc.collect()
        assert pool.try_acquire(6) is not None

    run(main())


def test_an_event_loop_may_end_before_what_it_waits_for_comes(run, client, name):
    pool = client.gauge("pool" + name, wants=6)
    held = pool.acquire(6, timeout=60)

    async def main():
        pool.acquire_async(6, timeout=60)

    run(main())
    gc.collect()
    held.release()
    with pool.acquire(6, timeout=60) as permit:
        assert permit.units == 6


def test_the_end_of_a_permit_can_be_awaited(run, own_server):
    async def main():
        async with lessor.Client(own_server.address, id="c") as client:
            permit = await client.gauge("short", wants=4).acquire_async(timeout=60)
            end = permit.wait_expired_async()
            await asyncio.sleep(0.05)
            assert not end.done()
            own_server.kill()
            await asyncio.wait_for(end, 60)
            assert permit.expired
            async with permit:
                pass
            await permit.wait_expired_async()

    run(main())


def test_a_hundred_tasks_share_a_rate(run, client, name):
    async def main():
        rate = client.rate("rate" + name, wants=100, max_wait=math.inf)
        await asyncio.gather(*(rate.acquire_async() for _ in range(100)))
        tenant = client.rate("search" + name).domain("t")
        decision = await tenant.acquire_async(1, timeout=60)
        assert decision.granted == 1

    run(main())


def test_without_an_event_loop_it_is_an_error(client, name):
    with pytest.raises(RuntimeError, match="no running event loop"):
        client.rate("rate" + name).acquire_async()
