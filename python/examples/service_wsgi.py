"""The same of WSGI. The client is made before gunicorn forks, and each worker has its own.

    lessor serve --config configs/tenants.yaml --listen 127.0.0.1:15000
    LESSOR_SERVER=127.0.0.1:15000 gunicorn --preload --workers 4 service_wsgi:app
    curl -i -H 'X-Tenant: ann' 127.0.0.1:8000
"""

import os
from collections.abc import Iterable
from typing import Any

import lessor
from lessor.wsgi import Middleware, header

client = lessor.Client(os.environ["LESSOR_SERVER"], id="search")


def search(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"found\n"]


app = Middleware(
    search,
    client.rate("search/queries"),
    key=header("x-tenant"),
    gauge=client.gauge("search/workers"),
)
