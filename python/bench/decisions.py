"""What a decision costs in Python, beside an empty call and the same decision in Rust. All in one run.

    lessor serve --config python/bench/bench.yaml --listen 127.0.0.1:15000
    python python/bench/decisions.py 127.0.0.1:15000

Of each figure it prints the best of many runs, which is what a machine without other work would show.
"""

import sys
import time
import timeit
from collections.abc import Callable

import lessor
from lessor._native import Bench

TIMES, RUNS = 50_000, 40


def best(call: Callable[[], object]) -> float:
    """Nanoseconds of a call, the loop around it among them."""
    return min(timeit.repeat(call, number=TIMES, repeat=RUNS)) / TIMES * 1e9


def main(address: str) -> None:
    with lessor.Client(address, id="bench") as client:
        granted = client.rate("granted", wants=1e9)
        used_up = client.rate("used-up", wants=100)
        tenants = client.rate("tenants", wants=1e9)
        units = client.gauge("units", wants=10)
        for resource in (granted, used_up, tenants, units):
            resource.acquire(timeout=20)
        tenant, empty = tenants.domain("t"), Bench()
        call = best(empty.try_acquire)

        def permit() -> None:
            held = units.try_acquire()
            if held is not None:
                held.release()

        print(f"{call:6.0f} ns  an empty call")
        for name, rate in (("granted", granted), ("used up", used_up)):
            decided = best(rate.try_acquire)
            rust = min(Bench.attempts(rate, TIMES) for _ in range(RUNS)) / TIMES * 1e9
            bound = 2 * rust + call
            print(f"{decided:6.0f} ns  rate.try_acquire(), {name}")
            print(f"{rust:6.0f} ns  the same in Rust, without a call")
            verdict = "within" if decided <= bound else "ABOVE"
            print(f"           which is {verdict} twice that and a call, {bound:.0f} ns")
        print(f"{best(tenant.try_acquire):6.0f} ns  domain.try_acquire(), granted")
        print(f"{best(permit):6.0f} ns  gauge.try_acquire() and release()")
        print(f"{best(time.monotonic):6.0f} ns  time.monotonic()")


if __name__ == "__main__":
    main(sys.argv[1])
