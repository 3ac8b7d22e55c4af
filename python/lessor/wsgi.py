"""A middleware for WSGI: Flask, Django, Pyramid, Bottle and whatever speaks it.

    import lessor
    from lessor.wsgi import Middleware, header

    client = lessor.Client("127.0.0.1:15000")
    app.wsgi_app = Middleware(app.wsgi_app, client.rate("search/queries"), key=header("x-tenant"))

It does what `lessor.asgi` does, by the same rules. Behind a server that forks its workers the client may be made
before: each worker has its own with its first request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from types import TracebackType
from typing import Any, cast

from ._http import Field, Grant, Key, Limit, Rejected, Unkeyed, domain_name
from ._native import Gauge, Rate

__all__ = ["Middleware", "Rejected", "Unkeyed", "client_address", "domain_name", "header", "path"]

Environ = dict[str, Any]
Raised = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]
Write = Callable[[bytes], object]
StartResponse = Callable[..., Write]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


def header(name: str) -> Callable[[Environ], Key]:
    """The value of a header as the key. Whoever sends the request chooses it, unless something in front of this checks
    it."""
    variable = "HTTP_" + name.upper().replace("-", "_")

    def key(environ: Environ) -> Key:
        value = environ.get(variable)
        if value is None:
            raise Unkeyed(f"the header {name} is missing")
        return cast(str, value).encode("latin-1")

    return key


def client_address(environ: Environ) -> Key:
    """The address of the peer as the key: of the proxy, where there is one in front of the server."""
    address = environ.get("REMOTE_ADDR")
    if not address:
        raise Unkeyed("the address of the client is not known", 500)
    return cast(str, address)


def path(environ: Environ) -> Key:
    """The path as the key, as one part."""
    whole: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    return whole.encode("latin-1")


class Middleware:
    """An application behind limits; see `lessor.asgi.Middleware`.

    `answer` is an application that finds the `Rejected` at `environ["lessor"]`.
    """

    def __init__(
        self,
        app: App,
        rate: Rate | None = None,
        *,
        key: Callable[[Environ], Key] | None = None,
        cost: int | Callable[[Environ], int] = 1,
        settle: Callable[[int, list[Field]], int] | None = None,
        gauge: Gauge | None = None,
        name: str | None = None,
        fields: bool = True,
        unleased: str = "deny",
        answer: App | None = None,
    ) -> None:
        self.app, self.answer = app, answer
        self.limit: Limit[Environ] = Limit(rate, key, cost, settle, gauge)
        self.limit.configure(name, fields, unleased)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        try:
            grant = self.limit.take(environ)
        except Rejected as rejected:
            return self._reject(rejected, environ, start_response)
        try:
            body = self.app(environ, self._starter(grant, start_response))
        except BaseException:
            grant.release()
            raise
        return body if grant.permit is None else _Held(body, grant)

    def _starter(self, grant: Grant, start_response: StartResponse) -> StartResponse:
        is_settled = False

        def start(status: str, headers: list[Field], raised: Raised | None = None) -> Write:
            nonlocal is_settled
            if not is_settled:
                is_settled = True
                self.limit.finish(grant, int(status.split(None, 1)[0]), headers)
            headers = headers + _titled(self.limit.fields(grant))
            return start_response(status, headers, raised) if raised else start_response(status, headers)

        return start

    def _reject(
        self, rejected: Rejected, environ: Environ, start_response: StartResponse
    ) -> Iterable[bytes]:
        if self.answer is not None:
            return self.answer({**environ, "lessor": rejected}, start_response)
        status = f"{rejected.status} {HTTPStatus(rejected.status).phrase}"
        start_response(status, _titled(rejected.headers))
        return [rejected.body]


class _Held:
    """A body that holds a permit until it has been sent, or is closed."""

    def __init__(self, body: Iterable[bytes], grant: Grant) -> None:
        self._body, self._grant = body, grant

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        finally:
            self._grant.release()

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._grant.release()


def _titled(fields: list[Field]) -> list[Field]:
    titles = {"ratelimit": "RateLimit", "ratelimit-policy": "RateLimit-Policy"}
    return [(titles.get(name, name.title()), value) for name, value in fields]
