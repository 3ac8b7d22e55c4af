"""Decorators: functions that take something of a rate or a gauge before they run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ._native import Domain, Gauge, Permit, Rate

__all__ = ["limited_by_gauge", "limited_by_rate"]

F = TypeVar("F", bound=Callable[..., Any])
Timeout = float | timedelta | None


def _is_now(timeout: Timeout) -> bool:
    return timeout is not None and not timeout


def _is_async(function: Callable[..., Any]) -> bool:
    """Whether it is to be awaited. A generator runs after its call, when there is nobody left to hold anything."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function!r} is a generator; wanted a function, or one that is async")
    return inspect.iscoroutinefunction(function)


def limited_by_rate(
    rate: Rate,
    *,
    cost: int | Callable[..., int] = 1,
    key: str | Callable[..., str] | None = None,
    timeout: Timeout = None,
) -> Callable[[F], F]:
    """See `Rate.limited`."""

    def units(args: Any, kwargs: Any) -> int:
        return cost(*args, **kwargs) if callable(cost) else cost

    def source(args: Any, kwargs: Any) -> Rate | Domain:
        if key is None:
            return rate
        return rate.domain(key(*args, **kwargs) if callable(key) else key)

    def decorate(function: F) -> F:
        if _is_async(function):

            async def limited_async(*args: Any, **kwargs: Any) -> Any:
                if _is_now(timeout):
                    source(args, kwargs).acquire_nowait(units(args, kwargs))
                else:
                    await source(args, kwargs).acquire_async(units(args, kwargs), timeout)
                return await function(*args, **kwargs)

            return functools.wraps(function)(limited_async)  # type: ignore[return-value]

        def limited(*args: Any, **kwargs: Any) -> Any:
            if _is_now(timeout):
                source(args, kwargs).acquire_nowait(units(args, kwargs))
            else:
                source(args, kwargs).acquire(units(args, kwargs), timeout)
            return function(*args, **kwargs)

        return functools.wraps(function)(limited)  # type: ignore[return-value]

    return decorate


def limited_by_gauge(
    gauge: Gauge, *, cost: int | Callable[..., int] = 1, timeout: Timeout = None
) -> Callable[[F], F]:
    """See `Gauge.limited`."""

    def units(args: Any, kwargs: Any) -> int:
        return cost(*args, **kwargs) if callable(cost) else cost

    def decorate(function: F) -> F:
        if _is_async(function):

            async def limited_async(*args: Any, **kwargs: Any) -> Any:
                permit: Permit
                if _is_now(timeout):
                    permit = gauge.acquire_nowait(units(args, kwargs))
                else:
                    permit = await gauge.acquire_async(units(args, kwargs), timeout)
                with permit:
                    return await function(*args, **kwargs)

            return functools.wraps(function)(limited_async)  # type: ignore[return-value]

        def limited(*args: Any, **kwargs: Any) -> Any:
            wanted = units(args, kwargs)
            with gauge.acquire_nowait(wanted) if _is_now(timeout) else gauge.acquire(wanted, timeout):
                return function(*args, **kwargs)

        return functools.wraps(function)(limited)  # type: ignore[return-value]

    return decorate
