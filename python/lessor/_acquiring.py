"""Permits that are waited for in asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Acquiring"]


class _Releasable(Protocol):
    def release(self) -> None: ...


P = TypeVar("P", bound=_Releasable)


class Acquiring(Generic[P]):
    """A permit to come: `permit = await gauge.acquire_async()`, or `async with gauge.acquire_async() as permit`.

    To cancel who waits for it gives the place up, and takes nothing. The wait begins with the call, not with the
    `await`.
    """

    def __init__(self, future: asyncio.Future[P]) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, P]:
        return self._future.__await__()

    async def __aenter__(self) -> P:
        return await self._future

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._future.result().release()

    def cancel(self) -> bool:
        """Gives the place up, if the permit has not come."""
        return self._future.cancel()
