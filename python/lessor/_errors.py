"""Exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._native import Decision

__all__ = ["BadName", "Closed", "Error", "NoLease", "Refused"]


class Error(Exception):
    """Nothing was taken, and `reason` says why, in the server's words where it is the server who says no.

    `resource` is the name of the resource, with that of the domain in brackets where it is one. `kind` is the reason in
    a word that programs can compare, `retry_after` the time in seconds after which it makes sense to ask again, or None
    where time alone does not help or nobody knows for how long, and `decision` that on a domain, if it is a domain that
    was denied.
    """

    resource: str
    reason: str
    kind: str
    retry_after: float | None
    decision: Decision | None

    def __init__(
        self,
        resource: str,
        reason: str,
        kind: str = "other",
        retry_after: float | None = None,
        decision: Decision | None = None,
    ) -> None:
        super().__init__(resource, reason, kind, retry_after, decision)
        self.resource, self.reason, self.kind = resource, reason, kind
        self.retry_after, self.decision = retry_after, decision

    def __str__(self) -> str:
        return f"{self.resource}: {self.reason}" if self.resource else self.reason

    def __reduce__(self) -> tuple[type[Error], tuple[str, str, str, float | None]]:
        # A decision is of the process that it was made in.
        return type(self), (self.resource, self.reason, self.kind, self.retry_after)


class Refused(Error):
    """A limit says no: 429, in HTTP."""


class NoLease(Error):
    """Nothing is leased, so nobody knows how much may be done: 503, in HTTP.

    Its kind is "refused_by_server" where the server refuses the resource: to ask again does not help then as long as
    the configuration is what it is.
    """


class Closed(Error):
    """The client is closed."""


class BadName(Error, ValueError):
    """The name of a resource, or the id of a client, cannot be one."""

    def __str__(self) -> str:
        return self.reason
