"""An application whose client is made before its server forks."""

import json
import os

import lessor

client = lessor.Client(os.environ["LESSOR_SERVER"], id="preloaded")
rate = client.rate("rate-preloaded", wants=90)
rate.acquire(timeout=60)


def app(environ, start_response):
    rate.acquire(timeout=30)
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"process": os.getpid(), "capacity": rate.lease.capacity}).encode()]
