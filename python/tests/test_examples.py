"""The examples run, against a server with the configuration that they name."""

import asyncio
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import lessor
import pytest
from serving import PATIENCE, Server, until

EXAMPLES = Path(__file__).parents[1] / "examples"
TENANTS = Path(__file__).parents[2] / "configs" / "tenants.yaml"


@pytest.fixture(scope="module")
def tenants():
    # Nothing was out before this server, and there is no need to find that out first.
    text = TENANTS.read_text().replace("refresh_interval: 5", "refresh_interval: 5\n      learning_mode_duration: 0")
    server = Server(text)
    yield server
    server.stop()


@pytest.fixture
def example(tenants, monkeypatch):
    monkeypatch.setenv("LESSOR_SERVER", tenants.address)
    monkeypatch.syspath_prepend(EXAMPLES)


def test_the_worker_works(tenants):
    command = [sys.executable, EXAMPLES / "worker.py", tenants.address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 10), done.stderr


def test_services_limit_their_tenants(example):
    import service_asgi
    import service_wsgi

    def asgi(tenant):
        async def get():
            transport = httpx.ASGITransport(app=service_asgi.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
                return await client.get("/", headers={"X-Tenant": tenant})

        return asyncio.run(get())

    def wsgi(tenant):
        with httpx.Client(transport=httpx.WSGITransport(app=service_wsgi.app), base_url="http://service") as client:
            return client.get("/", headers={"X-Tenant": tenant})

    for service, get in ((service_asgi, asgi), (service_wsgi, wsgi)):
        with service.client:
            answer = until("served", lambda get=get: (found := get("ann")).status_code == 200 and found)
            assert answer.text == "found\n"
            assert until("closed", lambda get=get: get("tenant-666").status_code == 429)


class Target(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_outgoing_calls_wait_for_their_turn(tenants, example):
    import calls_outgoing

    target = HTTPServer(("127.0.0.1", 0), Target)
    threading.Thread(target=target.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{target.server_port}/"
    with lessor.Client(tenants.address, id="calls") as client:
        rate = client.rate("search/queries", max_wait=60)
        assert calls_outgoing.with_httpx(rate, url) == 204
        assert calls_outgoing.with_requests(rate, url) == 204
        assert asyncio.run(calls_outgoing.with_httpx_async(rate, url)) == 204
        refused = client.rate("nobody/knows/this", max_wait=60)
        with pytest.raises(lessor.NoLease):
            calls_outgoing.with_httpx(refused, url)
    target.shutdown()
    target.server_close()


DRIVER = """
import sys
import tasks_celery

broker = sys.argv[1]
tasks_celery.app.conf.update(
    broker_transport_options={"data_folder_in": broker, "data_folder_out": broker, "polling_interval": 0.05},
    result_backend="file://" + broker,
)
"""


def test_tasks_of_celery_run_in_workers_that_were_forked(tenants, tmp_path):
    """Over a broker that is a folder."""
    (tmp_path / "driver.py").write_text(DRIVER + "app = tasks_celery.app\n")
    folder = tmp_path / "broker"
    folder.mkdir()
    environment = {
        **os.environ,
        "CELERY_BROKER": "filesystem://",
        "LESSOR_SERVER": tenants.address,
        "PYTHONPATH": f"{EXAMPLES}{os.pathsep}{tmp_path}",
    }
    command = [sys.executable, "-c"]
    options = {"cwd": tmp_path, "env": environment}
    ask = (
        "from driver import app, tasks_celery\n"
        "sent = [tasks_celery.index.delay('ann', f'd{number}') for number in range(4)]\n"
        "print('sent', flush=True)\n"
        f"print([task.get(timeout={PATIENCE}) for task in sent][-1])\n"
    )
    asker = subprocess.Popen([*command, ask, folder], **options, stdout=subprocess.PIPE, text=True)
    # A broker that is a folder shows files that are not whole yet: all of them are before anybody reads there.
    assert asker.stdout.readline() == "sent\n"
    code = "import sys; from driver import app; app.worker_main(sys.argv[2:])"
    arguments = ["worker", "--concurrency", "2", "--pool", "prefork", "--loglevel", "INFO", "--without-mingle"]
    log = tmp_path / "log"
    with log.open("wb") as written:
        worker = subprocess.Popen(
            [*command, code, folder, *arguments],
            **options,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
        )
    try:
        done, _ = asker.communicate(timeout=2 * PATIENCE)
        assert done == "d3 of ann is indexed\n", log.read_text()
    finally:
        asker.kill()
        worker.terminate()
        worker.wait(PATIENCE)
