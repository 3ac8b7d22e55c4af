"""The compiled part: see crates/python."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from os import PathLike
from types import TracebackType
from typing import Any, Literal, TypeVar, final

from ._acquiring import Acquiring

__all__ = [
    "Bench",
    "Client",
    "Decision",
    "Domain",
    "Gauge",
    "Lease",
    "Permit",
    "Rate",
    "Together",
    "TogetherPermit",
    "__version__",
    "after_fork",
    "close_all",
    "short_name",
]

__version__: str

_F = TypeVar("_F", bound=Callable[..., Any])
_Seconds = float | timedelta
_Path = str | PathLike[str]
_Pem = _Path | bytes
_Fallback = Literal["safe", "pessimistic", "optimistic"]
_Rung = Literal["waiting", "leased", "safe", "pessimistic", "optimistic"]

@final
class Client:
    """A client of one node: it holds the leases of everything opened from it, and renews them in the background.

    `addresses` are those of the servers of the node, as in "host:port": each is asked when those before it do not
    answer. No server needs to answer yet. `id` is what servers know it by; without it one is made up, and several
    processes may have the same. `timeout` is the longest wait for an answer, 5 s without it. Where `transport` is
    "poll" no streams are opened.

    With `ca` everything goes over TLS, and servers are believed that one of its authorities has certified. `cert` and
    `key` are what the client shows. Each is the path of a PEM file, which is read again when it has changed, or the PEM
    itself as bytes. `server_identity` is a pattern of the identity that servers must have, in place of the name that
    they are called by. `token` is shown to servers, or `token_file`, which is read again while the client lives; it
    goes over TLS, or stays within the machine.

    As a context manager it is closed at the end.
    """

    def __new__(
        cls,
        *addresses: str,
        id: str | None = None,
        timeout: _Seconds | None = None,
        transport: Literal["stream", "poll"] | None = None,
        ca: _Pem | None = None,
        cert: _Pem | None = None,
        key: _Pem | None = None,
        server_identity: str | None = None,
        token: str | None = None,
        token_file: _Path | None = None,
    ) -> Client: ...
    @property
    def id(self) -> str:
        """The id by which servers know it."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def rate(
        self,
        name: str,
        *,
        wants: float | None = None,
        max_wants: float | None = None,
        priority: int | None = None,
        fallback: _Fallback | None = None,
        max_wait: _Seconds | None = None,
        max_waiters: int | None = None,
        burst: _Seconds | None = None,
        most_domains: int | None = None,
        degraded: Literal["refuse", "grant_least"] | None = None,
    ) -> Rate:
        """Opens a rate: units a second. If it is open already, another handle of the same lease, as it was opened
        first.

        It asks for `wants` a second; without that for what is used and a little more, and for no more than `max_wants`.
        Those with a greater `priority` are served first. `fallback` is what it goes on with when its lease has ended
        and no server answers: "safe", which is what the operator reserves for that; "pessimistic", nothing;
        "optimistic", what it had, which breaks the capacity. `max_wait` is the longest that an `acquire` without a
        timeout waits, 5 s without it and `math.inf` for as long as it takes, and `max_waiters` how many may. `burst` is
        the most that may be saved up, as the time in which the rate brings it. `most_domains` domains are remembered, a
        million without it; with `degraded="grant_least"` each is granted the least that it asks for where nothing is
        leased.
        """

    def gauge(
        self,
        name: str,
        *,
        wants: float | None = None,
        max_wants: float | None = None,
        priority: int | None = None,
        fallback: _Fallback | None = None,
        max_wait: _Seconds | None = None,
        max_waiters: int | None = None,
    ) -> Gauge:
        """Opens a gauge: whole units in use at the same time. The options are those of a rate."""

    @staticmethod
    def together(*, min: int = 1, copies: int = 1) -> Together:
        """A request of several resources, for as many copies as possible up to `copies`, and no fewer than `min`."""

    def metrics(self, *, domains: int = 0) -> str:
        """The figures of the client and of all that is open, as Prometheus reads them (OpenMetrics text), with so many of
        the busiest domains of each rate by name."""

    def close(self) -> None:
        """Gives all leases back, which takes two seconds at the most. What is left of it grants nothing."""

    def close_async(self) -> asyncio.Future[None]:
        """The same in asyncio."""

    def __enter__(self) -> Client: ...
    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    def __aenter__(self) -> asyncio.Future[Client]: ...
    def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None, /
    ) -> asyncio.Future[None]: ...

@final
class Rate:
    """An open rate: units a second."""

    @property
    def name(self) -> str:
        """The name of the resource."""

    @property
    def lease(self) -> Lease:
        """The lease at this moment."""

    def try_acquire(self, n: int = 1) -> bool:
        """Takes `n` units if they are there. It never waits."""

    def acquire_nowait(self, n: int = 1) -> None:
        """Takes `n` units, or raises `Refused` or `NoLease`. It never waits."""

    def acquire(self, n: int = 1, timeout: _Seconds | None = None) -> None:
        """Waits for `n` units, in order, while other threads run.

        It waits for `timeout` at the most, and without it for the `max_wait` of the opening; it is refused at once
        where the wait would be longer. Ctrl-C ends it.
        """

    def acquire_async(self, n: int = 1, timeout: _Seconds | None = None) -> asyncio.Future[None]:
        """The same in asyncio. To cancel it gives the place up."""

    def settle(self, granted: int, actual: int) -> None:
        """Settles units that turned out to cost `actual`. More are taken late; fewer do not come back."""

    def set_wants(self, wants: float) -> None:
        """Asks for so much a second from here on, whatever is used."""

    def measure_wants(self) -> None:
        """Asks for what is used and a little more from here on."""

    def set_kill_switch(self, killed: bool) -> None:
        """Switches the policies of all domains off, or on again: off, the lease alone decides."""

    def domain(self, name: str) -> Domain:
        """The domain of one tenant."""

    def limited(
        self,
        cost: int | Callable[..., int] = 1,
        key: str | Callable[..., str] | None = None,
        timeout: _Seconds | None = None,
    ) -> Callable[[_F], _F]:
        """A decorator: each call of the function, which may be async, first acquires what it costs.

        `cost` and `key`, the name of a domain, may be functions of the arguments. With `timeout=0` it does not wait.
        """

@final
class Gauge:
    """An open gauge: whole units in use at the same time."""

    @property
    def name(self) -> str:
        """The name of the resource."""

    @property
    def lease(self) -> Lease:
        """The lease at this moment."""

    def try_acquire(self, n: int = 1) -> Permit | None:
        """A permit for `n` units if they are there. It never waits."""

    def acquire_nowait(self, n: int = 1) -> Permit:
        """A permit for `n` units; or it raises `Refused` or `NoLease`. It never waits."""

    def acquire(self, n: int = 1, timeout: _Seconds | None = None) -> Permit:
        """Waits for a permit for `n` units, as `Rate.acquire` waits."""

    def acquire_async(self, n: int = 1, timeout: _Seconds | None = None) -> Acquiring[Permit]:
        """The same in asyncio, to be awaited or used in `async with`."""

    def set_wants(self, wants: float) -> None:
        """Asks for so many units from here on, whatever is used."""

    def measure_wants(self) -> None:
        """Asks for what is used and a little more from here on."""

    def limited(
        self, cost: int | Callable[..., int] = 1, timeout: _Seconds | None = None
    ) -> Callable[[_F], _F]:
        """A decorator: each call of the function, which may be async, holds a permit until it returns or raises."""

@final
class Permit:
    """Units of a gauge in use, until they are released: at the end of a `with`, or when nothing refers to it any more.

    It ends with the lease that it was taken under, which is renewed as long as a server answers: from then on the units
    may be somebody else's.
    """

    @property
    def gauge(self) -> str:
        """The name of the gauge."""

    @property
    def units(self) -> int:
        """The units that it holds: none after it was released, or in a child of the process that took it."""

    @property
    def expired(self) -> bool:
        """Whether the units may be somebody else's: the lease has ended, or they were released, or are another
        process's."""

    @property
    def remaining(self) -> float | None:
        """The seconds until its lease ends, as far as is known; None where it has no end."""

    def wait_expired(self, timeout: _Seconds | None = None) -> bool:
        """Waits until its lease has ended, and returns whether it has."""

    def wait_expired_async(self) -> asyncio.Future[None]:
        """Waits until its lease has ended, in asyncio."""

    def shrink(self, units: int) -> None:
        """Gives back what is above `units`."""

    def release(self) -> None:
        """Gives the units back. A second time does nothing."""

    def __enter__(self) -> Permit: ...
    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    def __aenter__(self) -> asyncio.Future[Permit]: ...
    def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None, /
    ) -> asyncio.Future[None]: ...

@final
class Domain:
    """The domain of one tenant in an open rate."""

    @property
    def name(self) -> str:
        """Its name."""

    def try_acquire(self, n: int = 1) -> bool:
        """Takes `n` hits if policies and lease allow them. It never waits."""

    def acquire_nowait(self, n: int = 1) -> Decision:
        """Takes `n` hits, or raises `Refused` or `NoLease`. It never waits."""

    def request(self, copies: int = 1, min: int | None = None) -> Decision:
        """Takes as many of `copies` hits as policies and lease allow if that is at least `min`, or none.

        Without `min` all of them are wanted. A decision that grants nothing is false. It raises `NoLease` where nothing
        is leased.
        """

    def confirmed(self, copies: int = 1, min: int | None = None) -> Decision:
        """The same, and before it is refused for what others used the server is asked, which takes a round trip."""

    def acquire(self, n: int = 1, timeout: _Seconds | None = None, min: int | None = None) -> Decision:
        """Takes as many of `n` hits as there are, and waits as long as they are fewer than `min`, which is `n` without
        it."""

    def acquire_async(
        self, n: int = 1, timeout: _Seconds | None = None, min: int | None = None
    ) -> asyncio.Future[Decision]:
        """The same in asyncio."""

    def peek(self, copies: int = 1, min: int | None = None) -> Decision:
        """The decision that policies would give. The lease is not asked, and nothing changes."""

    def settle(self, granted: int, actual: int) -> None:
        """Settles a grant that turned out to cost `actual`: more are a debt, fewer come back to the tiers."""

@final
class Decision:
    """The answer to a request of a domain; it is true if something is granted."""

    @property
    def granted(self) -> int:
        """The hits that are granted."""

    @property
    def ground(self) -> str:
        """By what right: "policies", "no_policies", "unconfigured", "ignored", "untracked", "kill_switch", "unheard",
        "degraded"."""

    @property
    def bound(self) -> str | None:
        """What kept it from being granted in full: "debt", "tiers", "hard", "global", "lease", "burst", "unconfigured"
        and others."""

    @property
    def retry_after(self) -> float | None:
        """The seconds after which to try again, if nothing was granted and it is known."""

    @property
    def hard_limit(self) -> int | None:
        """Hits in any second, by one domain."""

    @property
    def global_limit(self) -> int | None:
        """Hits in any second, by all domains of this client."""

    @property
    def tier(self) -> int:
        """The current tier of the policy that allows the least, from 1; 0 in a cooldown, or without tiers."""

    @property
    def tier_limit(self) -> int:
        """Hits that the tier allows in its window."""

    @property
    def tier_window(self) -> float:
        """That window, in seconds."""

    @property
    def hits_in_tier(self) -> int:
        """The hits that count in it."""

    @property
    def hits_in_second(self) -> int:
        """The hits of the domain in the last second."""

    @property
    def hits_in_second_by_all(self) -> int:
        """The hits of all domains of this client in the last second."""

    @property
    def burst(self) -> bool:
        """Whether a tier was entered by this request."""

    @property
    def debt(self) -> int:
        """The hits that are owed."""

    @property
    def others(self) -> int:
        """How many other clients use the domain, as far as is known."""

    def __bool__(self) -> bool: ...

@final
class Lease:
    """The state of a lease at one moment."""

    @property
    def capacity(self) -> float | None:
        """The units (a second) that are allowed; None is without limit."""

    @property
    def remaining(self) -> float | None:
        """The seconds until that ends if nothing is renewed; None where it has no end."""

    @property
    def rung(self) -> _Rung:
        """Where it comes from."""

    @property
    def learning(self) -> bool:
        """Whether the server was learning what is out when it granted it."""

    @property
    def unenforced(self) -> bool:
        """Whether everything is let pass and counted that this would refuse, as the grantor says."""

    @property
    def wants(self) -> float:
        """The units (a second) that were asked for last."""

    @property
    def last_error(self) -> str | None:
        """What went wrong when it was last to be renewed; None if nothing did."""

@final
class Together:
    """A request of several open resources: all that is wanted of each of them, or nothing of any.

    Each part costs either `once` for the request, or `each` for every copy of it.
    """

    def gauge(self, gauge: Gauge, *, once: int | None = None, each: int | None = None) -> Together:
        """The request with units of a gauge as well."""

    def rate(self, rate: Rate, *, once: int | None = None, each: int | None = None) -> Together:
        """The request with units of a rate as well."""

    def domain(self, rate: Rate, name: str, *, once: int | None = None, each: int | None = None) -> Together:
        """The request with hits of a domain as well."""

    def try_acquire(self) -> TogetherPermit | None:
        """Takes what can be had of all parts, or nothing. It never waits."""

    def acquire_nowait(self) -> TogetherPermit:
        """Takes what can be had of all parts; or it raises `Refused` or `NoLease`."""

    def acquire(self, timeout: _Seconds | None = None) -> TogetherPermit:
        """The same, and waits as long as nothing is granted, 5 s without a timeout. Nothing is held meanwhile."""

    def acquire_async(self, timeout: _Seconds | None = None) -> Acquiring[TogetherPermit]:
        """The same in asyncio, to be awaited or used in `async with`."""

@final
class TogetherPermit:
    """The permit for what several resources have granted. What was taken of rates is spent; units of gauges are in
    use."""

    @property
    def copies(self) -> int:
        """The copies that were granted."""

    @property
    def bound_by(self) -> int | None:
        """Which part allowed no more, if more were asked for."""

    @property
    def expired(self) -> bool:
        """Whether the units of a gauge may be somebody else's."""

    @property
    def remaining(self) -> float | None:
        """The seconds until the first lease behind its gauges ends; None without any that ends."""

    def release(self) -> None:
        """Gives the units of gauges back. A second time does nothing."""

    def __enter__(self) -> TogetherPermit: ...
    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    def __aenter__(self) -> asyncio.Future[TogetherPermit]: ...
    def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None, /
    ) -> asyncio.Future[None]: ...

@final
class Bench:
    """The measures that a decision is compared with."""

    def __new__(cls) -> Bench: ...
    def try_acquire(self, n: int = 1) -> bool:
        """A method that does nothing but read its argument."""

    @staticmethod
    def attempts(rate: Rate, times: int) -> float:
        """The seconds that so many attempts take in Rust."""

def after_fork() -> None: ...
def close_all() -> None: ...
def short_name(name: str) -> str: ...
