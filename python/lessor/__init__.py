"""Leases of something limited that many clients share: so much, until then, enforced here and without the network.

    import lessor

    with lessor.Client("paris-1:15000", "paris-2:15000", id="web-1") as client:
        queries = client.rate("db-orders")
        connections = client.gauge("db-connections")
        if queries.try_acquire():
            ...
        queries.acquire(3, timeout=2)  # waits in order; lessor.Refused says after how long to try again
        with connections.acquire() as permit:
            ...  # a connection is in use until here

| name | is |
| --- | --- |
| `Client` | one for each process: it holds the leases, and renews them in the background |
| `Rate`, `Gauge` | an open resource: units a second, whole units in use |
| `Domain`, `Decision` | what one tenant may do of a rate, and the answer to its request |
| `Together` | several of these in one request, all or nothing |
| `Permit`, `TogetherPermit` | units of gauges, until they are released |
| `Lease` | what is leased, until when, by which rung of the ladder |
| `Error`: `Refused`, `NoLease`, `Closed`, `BadName` | a limit says no, nothing is leased, closed, no name |

Times are seconds, or `timedelta`. A child of a process that has clients has its own with its first use of one; the
permits of its parent are not its own. `lessor.asgi` and `lessor.wsgi` are middlewares, and `lessor.wire` is a client
that needs no compiled code, in one file over grpcio.
"""

from typing import TYPE_CHECKING, Any

from ._errors import BadName, Closed, Error, NoLease, Refused

if TYPE_CHECKING:
    from ._acquiring import Acquiring
    from ._native import (
        Client,
        Decision,
        Domain,
        Gauge,
        Lease,
        Permit,
        Rate,
        Together,
        TogetherPermit,
        __version__,
    )

__all__ = [
    "Acquiring",
    "BadName",
    "Client",
    "Closed",
    "Decision",
    "Domain",
    "Error",
    "Gauge",
    "Lease",
    "NoLease",
    "Permit",
    "Rate",
    "Refused",
    "Together",
    "TogetherPermit",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Loads the compiled part with its first use: `lessor.wire` goes without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _acquiring, _native

    value = getattr(_acquiring if name == "Acquiring" else _native, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
