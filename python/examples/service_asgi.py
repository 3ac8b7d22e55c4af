"""A service of ASGI whose tenants are limited, and which works on no more requests than there are workers.

    lessor serve --config configs/tenants.yaml --listen 127.0.0.1:15000
    LESSOR_SERVER=127.0.0.1:15000 uvicorn service_asgi:app
    curl -i -H 'X-Tenant: ann' 127.0.0.1:8000
"""

import os
from typing import Any

import lessor
from lessor.asgi import Middleware, header

client = lessor.Client(os.environ["LESSOR_SERVER"], id="search")


async def search(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"found\n"})


app = Middleware(
    search,
    client.rate("search/queries"),
    key=header("x-tenant"),
    gauge=client.gauge("search/workers"),
)
