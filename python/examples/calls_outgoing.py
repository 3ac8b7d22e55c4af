"""Calls to somebody else's API that keep to a rate: as a transport of httpx, and as an adapter of requests.

Each call waits for its turn before it is sent, five seconds at the most; `lessor.Refused` says after how long to come
again.
"""

from typing import Any

import httpx
import lessor
import requests
from requests.adapters import HTTPAdapter


class LimitedTransport(httpx.BaseTransport):
    """A transport that waits for a unit before each request."""

    def __init__(self, rate: lessor.Rate, inner: httpx.BaseTransport) -> None:
        self._rate, self._inner = rate, inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._rate.acquire()
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


class LimitedAsyncTransport(httpx.AsyncBaseTransport):
    """The same for an `httpx.AsyncClient`. A request that is cancelled gives its place up."""

    def __init__(self, rate: lessor.Rate, inner: httpx.AsyncBaseTransport) -> None:
        self._rate, self._inner = rate, inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await self._rate.acquire_async()
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class LimitedAdapter(HTTPAdapter):
    """An adapter of requests that waits for a unit before each request, those that follow a redirect among them."""

    def __init__(self, rate: lessor.Rate, **options: Any) -> None:
        super().__init__(**options)
        self._rate = rate

    def send(self, request: Any, *arguments: Any, **options: Any) -> Any:
        self._rate.acquire()
        return super().send(request, *arguments, **options)


def with_httpx(rate: lessor.Rate, url: str) -> int:
    with httpx.Client(transport=LimitedTransport(rate, httpx.HTTPTransport())) as client:
        return client.get(url).status_code


async def with_httpx_async(rate: lessor.Rate, url: str) -> int:
    async with httpx.AsyncClient(transport=LimitedAsyncTransport(rate, httpx.AsyncHTTPTransport())) as client:
        return (await client.get(url)).status_code


def with_requests(rate: lessor.Rate, url: str) -> int:
    with requests.Session() as session:
        session.mount(url, LimitedAdapter(rate))
        return int(session.get(url, timeout=10).status_code)
