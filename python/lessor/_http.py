"""What both middlewares share: keys, answers to requests that are granted nothing, and fields of answers.

They are those of the layers in Rust (crates/tower): the same names of domains, statuses, fields and problems.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Generic, TypeVar

from ._errors import Error, NoLease, Refused
from ._native import Decision, Domain, Gauge, Permit, Rate, short_name

__all__ = ["Grant", "Limit", "Rejected", "Unkeyed", "domain_name"]

# The longest name of a domain in bytes; of longer ones so many bytes are kept, and a hash tells them apart.
_LONGEST, _KEPT = 200, 160
_MEANT = frozenset("%/|,=")
_PROBLEMS = "https://iana.org/assignments/http-problem-types#"
_FOR_GOOD = frozenset(["unconfigured", "burst", "unleasable"])

Part = str | bytes
Key = Part | Iterable[Part] | None
Field = tuple[str, str]
R = TypeVar("R")


class Unkeyed(Exception):
    """The request has no key, and is answered with `status`: 400 where it is at fault, 500 where the service is."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.why, self.status = why, status


class Rejected(Exception):
    """A request that is granted nothing, as it is answered: `status`, `headers` and `body`.

    `error` is the exception of lessor behind it; None where the request has no key.
    """

    def __init__(self, status: int, headers: list[Field], body: bytes, error: Error | None) -> None:
        super().__init__(status)
        self.status, self.headers, self.body, self.error = status, headers, body, error


def _encoded(part: Part) -> str:
    text = part.decode("utf-8", "surrogateescape") if isinstance(part, bytes) else part
    return "".join(
        letter
        if letter not in _MEANT and not letter.isspace() and not _is_control(letter)
        else "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogateescape"))
        for letter in text
    )


def _is_control(letter: str) -> bool:
    # Bytes that are not UTF-8 have been decoded to lone surrogates.
    return letter < " " or "\x7f" <= letter <= "\x9f" or "\ud800" <= letter <= "\udfff"


def domain_name(*parts: Part) -> str:
    """The name of the domain of these parts, in which nobody can write the name of another's.

    They are joined by `/`; what has a meaning in names, spaces, control characters and bytes that are not UTF-8 are
    percent-encoded in them. A name of more than 200 bytes keeps the first 160 of them and ends in a hash of it all.
    """
    name = "/".join(map(_encoded, parts))
    whole = name.encode()
    if len(whole) <= _LONGEST:
        return name
    return whole[:_KEPT].decode(errors="ignore") + "~" + short_name(name)


def _quoted(text: str) -> str:
    """A string of structured fields."""
    return '"' + "".join("\\" + c if c in '"\\' else c if " " <= c <= "~" else "?" for c in text) + '"'


def _whole(seconds: float) -> int:
    """Whole seconds, rounded up and at least one."""
    return max(1, math.ceil(seconds))


def _retry_after(error: Error) -> int | None:
    """The seconds after which to try again: one where it is not known, none where to try again does not help."""
    if error.retry_after is not None:
        return _whole(error.retry_after)
    is_for_good = error.kind == "above_burst" or (error.decision and error.decision.bound in _FOR_GOOD)
    return None if is_for_good else 1


class Grant:
    """What a request was granted."""

    __slots__ = ("decision", "domain", "permit", "units")

    def __init__(self) -> None:
        self.permit: Permit | None = None
        self.domain: Domain | None = None
        self.decision: Decision | None = None
        self.units = 0

    def release(self) -> None:
        if self.permit is not None:
            self.permit.release()


class Limit(Generic[R]):
    """The limits of a middleware: `R` is the request, as its protocol has it."""

    def __init__(
        self,
        rate: Rate | None,
        key: Callable[[R], Key] | None,
        cost: int | Callable[[R], int],
        settle: Callable[[int, list[Field]], int] | None,
        gauge: Gauge | None,
    ) -> None:
        if rate is None and gauge is None:
            raise TypeError("the middleware limits nothing; wanted a rate, a gauge or both")
        if rate is None and (key is not None or settle is not None or cost != 1):
            raise TypeError("key, cost and settle are of a rate, and there is none")
        self.rate, self.key, self.cost, self.settle, self.gauge = rate, key, cost, settle, gauge
        self.policy = rate.name if rate is not None else ""
        self.has_fields = True
        self.passes_unleased = False

    def configure(self, name: str | None, fields: bool, unleased: str) -> None:
        """Sets the name of the policy, whether answers have fields, and what becomes of requests while nothing is leased."""
        if unleased not in ("deny", "pass"):
            raise ValueError(f'unleased={unleased!r}; wanted "deny" or "pass"')
        self.policy = self.policy if name is None else name
        self.has_fields, self.passes_unleased = fields, unleased == "pass"

    def take(self, request: R) -> Grant:
        """What the request is granted; or it raises `Rejected`, and nothing was taken."""
        grant = Grant()
        try:
            self._take_permit(grant)
            self._take_units(grant, request)
        except BaseException:
            grant.release()
            raise
        return grant

    def _take_permit(self, grant: Grant) -> None:
        if self.gauge is None:
            return
        try:
            grant.permit = self.gauge.acquire_nowait()
        except Error as error:
            if self._passes(error):
                return
            raise self._rejected(error, 503, self.gauge.name, has_fields=False) from error

    def _take_units(self, grant: Grant, request: R) -> None:
        if self.rate is None:
            return
        try:
            key = self.key(request) if self.key is not None else None
        except Unkeyed as unkeyed:
            raise self._unkeyed(unkeyed) from unkeyed
        units = self.cost(request) if callable(self.cost) else self.cost
        if key is not None:
            parts = (key,) if isinstance(key, (str, bytes)) else key
            grant.domain = self.rate.domain(domain_name(*parts))
        if units == 0:
            return
        try:
            if grant.domain is not None:
                grant.decision = grant.domain.acquire_nowait(units)
            else:
                self.rate.acquire_nowait(units)
            grant.units = units
        except Error as error:
            if not self._passes(error):
                raise self._rejected(error, 429, self.policy, has_fields=self.has_fields) from error

    def _passes(self, error: Error) -> bool:
        return self.passes_unleased and isinstance(error, NoLease)

    def fields(self, grant: Grant) -> list[Field]:
        """The fields of the answer to a request that was granted something."""
        if not self.has_fields or grant.decision is None or grant.decision.tier == 0:
            return []
        window = _whole(grant.decision.tier_window)
        return self._limits(grant.decision, f"t={window}")

    def finish(self, grant: Grant, status: int, headers: list[Field]) -> None:
        """Settles what the request cost, as its answer shows it."""
        if self.settle is None or self.rate is None:
            return
        actual = self.settle(status, headers)
        if grant.domain is not None:
            grant.domain.settle(grant.units, actual)
        else:
            self.rate.settle(grant.units, actual)

    def _limits(self, decision: Decision, until: str) -> list[Field]:
        name, window = _quoted(self.policy), _whole(decision.tier_window)
        left = max(0, decision.tier_limit - decision.hits_in_tier)
        policy = ("ratelimit-policy", f"{name};q={decision.tier_limit};w={window}")
        return [policy, ("ratelimit", ";".join(filter(None, (name, f"r={left}", until))))]

    def _rejected(self, error: Error, over_limit: int, policy: str, *, has_fields: bool) -> Rejected:
        is_over_limit = isinstance(error, Refused)
        status, after = over_limit if is_over_limit else 503, _retry_after(error)
        headers: list[Field] = []
        if after is not None:
            headers.append(("retry-after", str(after)))
        if has_fields and is_over_limit:
            until = "" if after is None else f"t={after}"
            decision = error.decision
            if decision is not None and decision.tier > 0:
                headers += self._limits(decision, until)
            else:
                headers.append(("ratelimit", ";".join(filter(None, (_quoted(policy), "r=0", until)))))
        problem: dict[str, object] = {"type": _PROBLEMS + "quota-exceeded"}
        decision = error.decision
        if not is_over_limit:
            problem["type"] = _PROBLEMS + "temporary-reduced-capacity"
        elif decision is not None and decision.bound == "tiers" and decision.tier == 0:
            problem["type"] = _PROBLEMS + "abnormal-usage-detected"
        is_told = error.kind not in ("unserved", "refused_by_server")
        detail = error.reason if is_told else "nothing is leased"
        problem |= {"title": HTTPStatus(status).phrase, "status": status, "detail": detail}
        if is_over_limit:
            problem["violated-policies"] = [policy]
        return _answer(status, headers, problem, error)

    def _unkeyed(self, unkeyed: Unkeyed) -> Rejected:
        title = HTTPStatus(unkeyed.status).phrase
        problem = {"type": "about:blank", "title": title, "status": unkeyed.status, "detail": unkeyed.why}
        return _answer(unkeyed.status, [], problem, None)


def _answer(status: int, headers: list[Field], problem: dict[str, object], error: Error | None) -> Rejected:
    body = json.dumps(problem, separators=(",", ":")).encode()
    kind, length = ("content-type", "application/problem+json"), ("content-length", str(len(body)))
    return Rejected(status, [kind, length, *headers], body, error)
