"""Forks: a child has a client of its own, and what its parent took is not its own."""

import ctypes
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import warnings
from pathlib import Path

import lessor
import pytest
from serving import PATIENCE, until

# Threads of ours run while we fork: that is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def in_a_child(work, fork=os.fork):
    """What `work` returns in a child; it fails if that does not end."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        try:
            os.close(reader)
            signal.alarm(int(PATIENCE))
            answer = work()
            os.write(writer, json.dumps(answer).encode())
        except BaseException as error:
            os.write(writer, json.dumps(f"{type(error).__name__}: {error}").encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    assert answer, "the child was killed: it hung"
    return json.loads(answer)


def share(rate, capacity):
    until(f"{capacity}", lambda: rate.lease.capacity == pytest.approx(capacity, abs=1e-5))
    return rate.lease.capacity


def test_a_child_is_another_incarnation_and_has_a_share_of_its_own(client, name):
    rate = client.rate("brief" + name, wants=60)
    share(rate, 60)
    assert in_a_child(lambda: [share(rate, 50), rate.acquire(timeout=30), client.id]) == [50, None, "c"]
    # The child left without a word: what it had is free again when its lease has ended.
    share(rate, 60)


def test_a_fork_that_python_is_not_told_of_is_noticed_by_who_waits(client, name):
    rate, pool = client.rate("brief" + name, wants=60), client.gauge("pool" + name)
    share(rate, 60)
    permit = pool.acquire(timeout=60)

    def work():
        rate.acquire(timeout=30)
        return [share(rate, 50), permit.units]

    assert in_a_child(work, ctypes.PyDLL(None).fork) == [50, 0]
    assert permit.units == 1


def test_permits_of_the_parent_are_not_those_of_the_child(client, name):
    pool = client.gauge("pool" + name, wants=6)
    permit = pool.acquire(2, timeout=60)

    def look():
        before = [permit.units, permit.expired, permit.remaining]
        permit.release()
        with permit:
            pass
        return before

    assert in_a_child(look) == [0, True, 0.0]
    assert (permit.units, permit.expired) == (2, False), "the child has given nothing back"


def test_a_child_of_a_child_has_its_own(client, name):
    rate = client.rate("rate" + name, wants=90)
    share(rate, 90)

    def work():
        mine = share(rate, 50)
        return [mine, in_a_child(lambda: share(rate, 100 / 3))]

    assert in_a_child(work) == [pytest.approx(50, abs=1e-5), pytest.approx(100 / 3, abs=1e-5)]


def test_children_can_do_everything(client, name):
    rate, pool = client.rate("rate" + name), client.gauge("pool" + name)
    rate.acquire(timeout=60)
    pool.acquire(timeout=60).release()

    def work():
        import asyncio

        async def both():
            await rate.acquire_async(timeout=30)
            async with pool.acquire_async(timeout=30) as permit:
                return permit.units

        rate.acquire(timeout=30)
        units = asyncio.run(both())
        with client.together().gauge(pool, once=1).acquire(timeout=30) as permit:
            copies = permit.copies
        other = lessor.Client(*client_addresses(client), id="other")
        other.rate("rate" + name).acquire(timeout=30)
        other.close()
        client.close()
        return [units, copies, client.closed, other.closed]

    assert in_a_child(work) == [1, 1, True, True]
    assert not client.closed and rate.lease.rung == "leased"


def client_addresses(client):
    return re.search(r" of (\S+)>", repr(client)).group(1).split(", ")


def test_forks_in_the_midst_of_it_do_not_hang(client, name):
    """Threads that take, wait and give back while the process forks, again and again."""
    rate, pool = client.rate("much" + name), client.gauge("pool" + name, wants=6)
    rate.acquire(timeout=60)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            rate.try_acquire()
            try:
                pool.acquire(timeout=0.01).release()
            except lessor.Error:
                pass

    def use():
        units = pool.acquire(timeout=30).units
        rate.acquire(timeout=30)
        client.close()
        return units

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            assert in_a_child(use) == 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_child_of_a_closed_client_has_a_closed_one(server, name):
    client = lessor.Client(server.address, id="c")
    rate = client.rate("rate" + name)
    client.close()
    assert in_a_child(lambda: rate.acquire_nowait()).startswith("Closed: ")


held = {}


def work_of_a_process(address, name, answers):
    client = held.get("client") or lessor.Client(address, id="spawned")
    rate = client.rate("rate" + name, wants=60)
    until("a third", lambda: rate.lease.capacity == pytest.approx(100 / 3, abs=1e-5))
    answers.put((client.id, "client" in held))
    # Until the others have theirs as well.
    time.sleep(1)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing_have_their_own(server, name, method):
    with lessor.Client(server.address, id="parent") as client:
        rate = client.rate("rate" + name, wants=60)
        share(rate, 60)
        held["client"] = client
        try:
            context = multiprocessing.get_context(method)
            answers = context.Queue()
            arguments = (server.address, name, answers)
            children = [context.Process(target=work_of_a_process, args=arguments) for _ in range(2)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                for child in children:
                    child.start()
            found = [answers.get(timeout=PATIENCE) for _ in children]
            for child in children:
                child.join(PATIENCE)
                assert child.exitcode == 0
        finally:
            held.clear()
        expected = ("parent", True) if method == "fork" else ("spawned", False)
        assert found == [expected, expected]


def test_workers_of_gunicorn_that_were_preloaded_have_their_own(server, tmp_path):
    log = tmp_path / "log"
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--bind", "127.0.0.1:0"]
    with log.open("wb") as written:
        process = subprocess.Popen(
            [*command, "--no-control-socket", "preloaded:app"],
            cwd=Path(__file__).parent,
            env={**os.environ, "LESSOR_SERVER": server.address, "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
        )
    try:

        def listening():
            assert process.poll() is None, log.read_text()
            return re.search(r"Listening at: (http://\S+)", log.read_text())

        url = until("listening", listening).group(1)
        shares = {}

        def all_have_theirs():
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                found = json.loads(answer.read())
            shares[found["process"]] = found["capacity"]
            # That of the master, which has imported the application, and those of two workers.
            equal = [abs(capacity - 100 / 3) < 1e-5 for capacity in shares.values()]
            return len(shares) == 2 and all(equal)

        until("equal shares", all_have_theirs)
        assert process.pid not in shares
    finally:
        process.terminate()
        process.wait(PATIENCE)
