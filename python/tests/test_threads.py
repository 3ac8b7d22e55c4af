"""Threads, signals and the end of the interpreter."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import lessor
import pytest
from serving import PATIENCE, until

ATTEMPTS = 1_000_000


def test_a_million_attempts_in_two_threads_pass_no_more_than_is_leased(client, name):
    rate = client.rate("rate" + name, wants=100)
    rate.acquire(timeout=60)
    granted = [0, 0]
    began = time.monotonic()

    def attempt(thread):
        take = rate.try_acquire
        granted[thread] = sum(take() for _ in range(ATTEMPTS // 2))

    threads = [threading.Thread(target=attempt, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A second's worth may have been saved up.
    most = 100 * (time.monotonic() - began + 1) + 1
    assert 0 < sum(granted) <= most


def test_other_threads_run_while_one_waits(client, name):
    pool = client.gauge("pool" + name, wants=6)
    permits = [pool.acquire(timeout=60) for _ in range(6)]
    taken = []
    waiting = threading.Thread(target=lambda: taken.append(pool.acquire(timeout=60)))
    waiting.start()
    with pytest.raises(lessor.Refused) as refused:
        until("waiting", lambda: pool.acquire_nowait())
    assert refused.value.kind in ("full", "others_wait")
    permits.pop().release()
    waiting.join(PATIENCE)
    assert len(taken) == 1 and taken[0].units == 1


def run(script, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Not where the sources of the package lie.
        cwd=Path(__file__).parent,
        **options,
    )


# In a job of a shell that is in the background SIGINT is ignored, and what is started from there would ignore it, too.
WAITING = """
import math, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import lessor
client = lessor.Client("127.0.0.1:1", id="c")
rate = client.rate("x")
print("ready", flush=True)
try:
    rate.acquire(timeout=math.inf)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_wait():
    process = run(WAITING)
    assert process.stdout.readline() == "ready\n"
    # It may come before the wait begins: then it is the same.
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (out, process.returncode) == ("interrupted\n", 0), err


HANDLER = """
import os, signal, sys
import lessor
client = lessor.Client("127.0.0.1:1", id="c")
rate = client.rate("x")
calls = []

def handler(*_):
    calls.append(1)
    if sys.argv[1] == "fork" and len(calls) == 1:
        if os.fork() == 0:
            calls.append("child")

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
try:
    rate.acquire(timeout=1)
except RuntimeError as error:
    assert "child" in calls, calls
    os._exit(7 if "forked" in str(error) else 8)
except lessor.NoLease:
    pass
signal.setitimer(signal.ITIMER_REAL, 0)
if sys.argv[1] == "fork":
    _, status = os.wait()
    assert os.waitstatus_to_exitcode(status) == 7, status
assert len(calls) > 2, calls
print("waited on", flush=True)
"""


@pytest.mark.parametrize("does", ["nothing", "fork"])
def test_a_wait_goes_on_after_the_handler_of_a_signal(does):
    process = run(HANDLER, does)
    out, err = process.communicate(timeout=PATIENCE)
    assert (out, process.returncode) == ("waited on\n", 0), err


ENDING = """
import asyncio, math, sys, threading
import lessor
client = lessor.Client(sys.argv[1], id="ending")
nowhere = lessor.Client("127.0.0.1:1", id="nowhere")
rates = [nowhere.rate(f"x{number}") for number in range(8)]
for rate in rates:
    threading.Thread(target=rate.acquire, kwargs={"timeout": math.inf}, daemon=True).start()
pool = client.gauge("pool-ending", wants=2)
permit = pool.acquire(timeout=60)

async def main():
    rates[0].acquire_async(timeout=math.inf)
    await asyncio.sleep(0.2)

threading.excepthook = lambda _: None
asyncio.run(main())
print("ends", flush=True)
"""


def test_the_interpreter_ends_with_waits_open(server):
    process = run(ENDING, server.address)
    out, err = process.communicate(timeout=PATIENCE)
    assert (out, process.returncode, err) == ("ends\n", 0, "")


LEAVING = """
import sys
import lessor
client = lessor.Client(sys.argv[1], id="leaving")
rate = client.rate("rate-leaving", wants=60)
rate.acquire(timeout=60)
assert rate.lease.capacity == 60, rate
"""


def test_leases_are_released_when_the_interpreter_ends(server):
    process = run(LEAVING, server.address)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    # Their leases would last 20 s, and the server does not know yet that the process is gone: it was told.
    until("released", lambda: server.holders("rate-leaving") == [])


def test_the_compiled_part_is_loaded_with_its_first_use_only():
    script = "import sys, lessor, lessor.wire; assert 'lessor._native' not in sys.modules; lessor.Client"
    process = run(script + "; assert 'lessor._native' in sys.modules")
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
