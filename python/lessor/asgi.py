"""A middleware for ASGI: Starlette, FastAPI, Litestar, Quart, Django and whatever speaks it.

    import lessor
    from lessor.asgi import Middleware, header

    client = lessor.Client("127.0.0.1:15000")
    app = Middleware(app, client.rate("search/queries"), key=header("x-tenant"), gauge=client.gauge("search/requests"))

A request takes what it costs of the rate, of the domain that its key names, and holds a unit of the gauge until its
answer has been sent. It never waits: what is not granted costs nothing and is answered with 429, or with 503 where the
gauge is full or nothing is leased, with `Retry-After`, the fields `RateLimit-Policy` and `RateLimit`, and a problem of
RFC 9457.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ._http import Field, Grant, Key, Limit, Rejected, Unkeyed, domain_name
from ._native import Gauge, Rate

__all__ = ["Middleware", "Rejected", "Unkeyed", "client_address", "domain_name", "header", "path"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Try again later: what a WebSocket is closed with.
_TRY_AGAIN_LATER = 1013


def header(name: str) -> Callable[[Scope], Key]:
    """The value of a header as the key. Whoever sends the request chooses it, unless something in front of this checks
    it."""
    wanted = name.lower().encode("latin-1")

    def key(scope: Scope) -> Key:
        values: list[bytes] = [value for name, value in scope["headers"] if name.lower() == wanted]
        if len(values) == 1:
            return values[0]
        raise Unkeyed(f"the header {name} {'stands there twice' if values else 'is missing'}")

    return key


def client_address(scope: Scope) -> Key:
    """The address of the peer as the key: of the proxy, where there is one in front of the server."""
    client = scope.get("client")
    if client is None:
        raise Unkeyed("the address of the client is not known", 500)
    return str(client[0])


def path(scope: Scope) -> Key:
    """The path as the key, as one part."""
    return str(scope["path"])


class Middleware:
    """An application behind limits.

    `key` gives the domain of a request: a text, several that are joined by `/`, or None for the rate as a whole. `cost`
    is what a request costs, a number or a function of the scope; `settle`, of status and headers of the answer, is what
    it turned out to cost. With `unleased="pass"` requests pass while nothing is leased, and nobody counts them. `name`
    is that of the policy in fields and problems, that of the rate without it.

    To answer rejections in another way, give `answer`: an application that finds the `Rejected` at `scope["lessor"]`.
    """

    def __init__(
        self,
        app: App,
        rate: Rate | None = None,
        *,
        key: Callable[[Scope], Key] | None = None,
        cost: int | Callable[[Scope], int] = 1,
        settle: Callable[[int, list[Field]], int] | None = None,
        gauge: Gauge | None = None,
        name: str | None = None,
        fields: bool = True,
        unleased: str = "deny",
        answer: App | None = None,
    ) -> None:
        self.app, self.answer = app, answer
        self.limit: Limit[Scope] = Limit(rate, key, cost, settle, gauge)
        self.limit.configure(name, fields, unleased)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        try:
            grant = self.limit.take(scope)
        except Rejected as rejected:
            await self._reject(rejected, scope, receive, send)
            return
        try:
            await self.app(scope, receive, self._sender(grant, send))
        finally:
            grant.release()

    def _sender(self, grant: Grant, send: Send) -> Send:
        """Adds fields to the answer, and gives the permit back when its body has been sent."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                given = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
                self.limit.finish(grant, message["status"], given)
                message = {**message, "headers": headers + _raw(self.limit.fields(grant))}
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                grant.release()

        return sent

    async def _reject(self, rejected: Rejected, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER})
        elif self.answer is not None:
            await self.answer({**scope, "lessor": rejected}, receive, send)
        else:
            start = {"status": rejected.status, "headers": _raw(rejected.headers)}
            await send({"type": "http.response.start", **start})
            await send({"type": "http.response.body", "body": rejected.body})


def _raw(fields: list[Field]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
