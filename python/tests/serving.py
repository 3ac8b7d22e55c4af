"""Real servers on loopback, and waits for what they do."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

PROGRAM = os.environ["LESSOR_BINARY"]
# Far more than anything takes.
PATIENCE = 60.0

ALGORITHM = "{kind: FAIR_SHARE, lease_length: 20, refresh_interval: 1, learning_mode_duration: 0}"
CONFIG = f"""
resources:
- identifier_glob: "rate*"
  capacity: 100
  safe_capacity: 0
  algorithm: {ALGORITHM}
- identifier_glob: "much*"
  capacity: 1000000
  safe_capacity: 0
  algorithm: {ALGORITHM}
- identifier_glob: "pool*"
  kind: gauge
  capacity: 6
  safe_capacity: 0
  algorithm: {ALGORITHM}
- identifier_glob: "brief*"
  capacity: 100
  safe_capacity: 0
  algorithm: {{kind: FAIR_SHARE, lease_length: 4, refresh_interval: 1, learning_mode_duration: 0}}
- identifier_glob: "short*"
  kind: gauge
  capacity: 4
  safe_capacity: 0
  algorithm: {{kind: FAIR_SHARE, lease_length: 3, refresh_interval: 1, learning_mode_duration: 0}}
- identifier_glob: "tried-pool*"
  kind: gauge
  capacity: 6
  safe_capacity: 0
  enforce: false
  algorithm: {ALGORITHM}
- identifier_glob: "tried*"
  capacity: 10
  safe_capacity: 0
  enforce: false
  algorithm: {ALGORITHM}
- identifier_glob: "search*"
  capacity: 1000
  safe_capacity: 0
  algorithm: {ALGORITHM}
  domains:
    scope: client
    default:
      tiers:
        - {{limit: 5, window: 1h, active: 1h}}
    overrides:
      - domain: closed
        policy: {{tiers: []}}
"""


def until(what, holds):
    end = time.monotonic() + PATIENCE
    while not (value := holds()):
        assert time.monotonic() < end, f"never {what}"
        time.sleep(0.02)
    return value


def saved_up(search):
    """Waits until policies have arrived, and some units of the lease have come together."""
    until("policies", lambda: search.domain("nobody").peek(1).ground == "policies")
    time.sleep(0.2)


class Server:
    """A process of `lessor serve`."""

    def __init__(self, config=CONFIG, listen="127.0.0.1:0", flags=(), remembers=False):
        self.directory = tempfile.TemporaryDirectory(prefix="lessor-")
        self.flags = [str(flag) for flag in flags]
        if remembers:
            self.flags += ["--state-dir", str(Path(self.directory.name) / "memory")]
        self.config = Path(self.directory.name) / "lessor.yaml"
        self.config.write_text(config)
        self.log = Path(self.directory.name) / "log"
        self.address = self.start(listen)

    def start(self, listen=None):
        command = [PROGRAM, "serve", "--config", self.config, "--listen", listen or self.address, *self.flags]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        return until("serving", self._serving)

    def _serving(self):
        text = re.sub(r"\x1b\[[0-9;]*m", "", self.log.read_text())
        assert self.process.poll() is None, text
        found = re.search(r" serving address=(\S+)", text)
        return found and found.group(1)

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
        self.directory.cleanup()

    def page(self, path):
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=PATIENCE) as answer:
            return answer.read().decode()

    def status(self):
        return json.loads(self.page("/status"))

    def holders(self, resource):
        """What each client has of the resource, by its id and incarnation, as the server counts it."""
        found = self.resource(resource)
        return found["holders"] if found else []

    def resource(self, resource):
        """What the server counts of the resource, or nothing if nobody has asked for it."""
        found = [each for each in self.status()["status"]["resources"] if each["resource"] == resource]
        return found[0] if found else None
