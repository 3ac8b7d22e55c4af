"""A client that holds leases by polling: one file over grpcio and protobuf, to be used as it is, or read and copied.

    from lessor.wire import Client, Refused

    with Client("paris-1:15000", "paris-2:15000", id="web-1") as client:
        queries = client.rate("db-orders", wants=100)
        connections = client.gauge("db-connections", wants=4)
        if queries.try_acquire():
            ...
        with connections.acquire(timeout=2) as permit:
            ...  # stop by permit.deadline

A *lease* is so much of a resource, until then. A thread asks for leases and renews them; attempts look at no network. Of a
rate `try_acquire` takes from a bucket that the lease fills, and of a gauge it takes one of so many units that are in use.

What it does not do: measure its demand (`wants` is what the program says), speak over a stream, burst tiers of domains, or
hold reserved capacity for the time when no server answers (it stops then). Each of the fields that it sends and heeds is
named, with its rule, in docs/wire.md. A fork needs a client of its own.
"""

import os
import random
import re
import threading
import time
import weakref

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["Client", "Gauge", "Permit", "Rate", "Refused"]

# === the messages: those fields of doorman.proto that a polling client needs ===

_OPTIONAL, _REQUIRED, _REPEATED = 1, 2, 3
_TYPES = {"double": 1, "int64": 3, "uint64": 4, "fixed64": 6, "bool": 8, "string": 9, "bytes": 12, "uint32": 13}
_MESSAGES = {
    "Lease": [
        ("expiry_time", 1, "int64", _REQUIRED),
        ("refresh_interval", 2, "int64", _REQUIRED),
        ("capacity", 3, "double", _REQUIRED),
        ("epoch", 100, "fixed64", _OPTIONAL),
        ("seq", 101, "uint64", _OPTIONAL),
        ("duration_ms", 102, "uint64", _OPTIONAL),
        ("basis", 103, "uint64", _OPTIONAL),
        ("token", 104, "bytes", _OPTIONAL),
        ("ack_wanted", 105, "bool", _OPTIONAL),
        ("generation", 106, "uint32", _OPTIONAL),
        ("safe_leased", 107, "bool", _OPTIONAL),
        ("unenforced", 111, "bool", _OPTIONAL),
        ("remaining_ms", 120, "uint64", _OPTIONAL),
        ("burst_us", 140, "uint64", _OPTIONAL),
        ("due_us", 141, "uint64", _OPTIONAL),
        ("learning", 160, "bool", _OPTIONAL),
    ],
    "ResourceRequest": [
        ("resource_id", 1, "string", _REQUIRED),
        ("priority", 2, "int64", _REQUIRED),
        ("has", 3, "Lease", _OPTIONAL),
        ("wants", 4, "double", _REQUIRED),
        ("held", 100, "double", _OPTIONAL),
        ("integer", 101, "bool", _OPTIONAL),
        ("unenforced", 200, "UnenforcedUnits", _OPTIONAL),
    ],
    "UnenforcedUnits": [
        ("asked", 1, "uint64", _OPTIONAL),
        ("passed", 2, "uint64", _OPTIONAL),
    ],
    "GetCapacityRequest": [
        ("client_id", 1, "string", _REQUIRED),
        ("resource", 2, "ResourceRequest", _REPEATED),
        ("incarnation", 100, "fixed64", _OPTIONAL),
        ("report_id", 101, "uint64", _OPTIONAL),
        ("target_epoch", 102, "fixed64", _OPTIONAL),
    ],
    "ResourceResponse": [
        ("resource_id", 1, "string", _REQUIRED),
        ("gets", 2, "Lease", _REQUIRED),
        ("safe_capacity", 3, "double", _OPTIONAL),
    ],
    "Mastership": [("master_address", 1, "string", _OPTIONAL)],
    "GetCapacityResponse": [
        ("response", 1, "ResourceResponse", _REPEATED),
        ("mastership", 2, "Mastership", _OPTIONAL),
        ("epoch", 100, "fixed64", _OPTIONAL),
        ("retry_ms", 102, "uint32", _OPTIONAL),
        ("refused", 103, "RefusedResource", _REPEATED),
    ],
    "RefusedResource": [
        ("index", 1, "uint32", _REQUIRED),
        ("resource_id", 2, "string", _OPTIONAL),
        ("reason", 4, "string", _OPTIONAL),
    ],
    "ReleaseCapacityRequest": [
        ("client_id", 1, "string", _REQUIRED),
        ("resource_id", 2, "string", _REPEATED),
        ("incarnation", 100, "fixed64", _OPTIONAL),
        ("report_id", 101, "uint64", _OPTIONAL),
    ],
    "ReleaseCapacityResponse": [("mastership", 1, "Mastership", _OPTIONAL)],
}


def _messages():
    file = descriptor_pb2.FileDescriptorProto(name="lessor/wire.proto", package="doorman", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label in fields:
            added = message.field.add(name=field, number=number, label=label)
            if kind in _TYPES:
                added.type = _TYPES[kind]
            else:
                added.type, added.type_name = 11, ".doorman." + kind
    # A pool of its own: a program may have generated doorman_pb2 as well.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptors = (pool.FindMessageTypeByName("doorman." + name) for name in _MESSAGES)
    if hasattr(message_factory, "GetMessageClass"):
        classes = [message_factory.GetMessageClass(descriptor) for descriptor in descriptors]
    else:
        factory = message_factory.MessageFactory(pool)
        classes = [factory.GetPrototype(descriptor) for descriptor in descriptors]
    return dict(zip(_MESSAGES, classes))


_pb = _messages()

# The server has understood, and says no: another one would say the same.
_REFUSALS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}

# === who this is, and who is believed ===

# Nobody else reads what goes there.
_LOOPBACK = re.compile(r"^(ipv4:|dns:(///)?)?(127(\.\d+){3}|localhost):\d+$|^(ipv6:)?\[::1\]:\d+$|^unix:")


class _NotSent(grpc.RpcError):
    """A request that did not leave."""

    def __init__(self, why):
        super().__init__(why)
        self._why = why

    def code(self):
        return grpc.StatusCode.UNAVAILABLE

    def details(self):
        return self._why


class _Proof:
    """Certificates and a token, of which the files are read again when they have changed."""

    def __init__(self, credentials, ca, cert, key, token, token_file):
        if credentials is not None and ca is not None:
            raise ValueError("credentials: are given with ca, wanted one of them")
        if (cert is None) != (key is None):
            raise ValueError("cert and key: one is given, wanted both or neither")
        if cert is not None and ca is None:
            raise ValueError("cert and key: are given without ca, wanted the authorities of servers")
        if token is not None and token_file is not None:
            raise ValueError("token: is given with token_file, wanted one of them")
        self._credentials, self._pems = credentials, (ca, key, cert)
        self._token, self._token_file = token, token_file
        self.is_secure = credentials is not None or ca is not None
        # What cannot be read is said at once.
        self._read(ValueError)

    def _read(self, fault):
        try:
            pems = [pem if pem is None or isinstance(pem, bytes) else _text(pem) for pem in self._pems]
            token = self._token if self._token_file is None else _text(self._token_file).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise fault(f"certificates and tokens: {error}") from error
        if token is not None:
            token = token.strip()
            # No header takes another; and a file that is empty is being written.
            if not (token and token.isascii() and token.isprintable()):
                place = "token" if self._token_file is None else f"token_file {self._token_file}"
                raise fault(f"{place}: is no token, wanted one as `lessor token new` prints it")
        return pems, token

    def now(self, address):
        """The certificates as they are now, and the metadata of a request to that address."""
        pems, token = self._read(_NotSent)
        if token is not None and not self.is_secure and not _LOOPBACK.match(address):
            raise _NotSent(f"a token would go to {address} in plain text, wanted TLS, or a loopback address")
        return pems, None if token is None else (("authorization", f"Bearer {token}"),)

    def channel(self, address, pems):
        if not self.is_secure:
            return grpc.insecure_channel(address)
        credentials = grpc.ssl_channel_credentials(*pems) if self._credentials is None else self._credentials
        return grpc.secure_channel(address, credentials)


def _text(path):
    with open(path, "rb") as file:
        return file.read()


# === clocks ===

RATE, GAUGE = 1, 2  # Lease.generation

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


def _now():
    """Seconds of a clock that nobody sets, and that goes on while the machine is suspended where there is one."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


class Refused(Exception):
    """Nothing was taken. `retry_after` is the time after which it may be worth while to try again, in seconds, or None."""

    def __init__(self, resource, why, retry_after=None):
        super().__init__(f"{resource}: {why}")
        self.resource, self.why, self.retry_after = resource, why, retry_after


# === one resource ===


class _Holding:
    """What a client holds of one resource: all of it is read and changed under the lock of the client."""

    generation = None

    def __init__(self, client, resource, wants, priority):
        self._client, self.resource, self._wants, self._priority = client, resource, float(wants), priority
        self._lease = None  # the last one that was adopted, as it came
        self._capacity = 0.0  # of it, as far as it counts
        self._end = 0.0  # by our clock
        self._counted = []  # what the grantor may count: (amount, end, lease), the larger the sooner it ends
        self._safe = None  # (what may be used when the lease is over)
        self._due = 0.0  # when to ask next
        self._refresh = None
        self._ack_wanted = False
        self._was_other = False  # the last grant counted the other kind
        self._reported = None  # the wants of the last report
        self._alone, self._refusals = False, 0  # somebody in the request spoiled it for all, and how often we did
        self._fault = "no server has answered yet"
        self._lets_pass = False  # as the grantor said last, also without a lease
        self._asked = self._passed = 0  # units asked for meanwhile, and those that were refused, since the last report
        self._unenforced = 0  # of the latter all so far

    @property
    def wants(self):
        """The units (a second) that the program could use."""
        return self._wants

    @wants.setter
    def wants(self, wants):
        with self._client._changed:
            self._wants = float(wants)
            self._due = 0.0
            self._client._changed.notify_all()

    @property
    def capacity(self):
        """The units (a second) that may be used now."""
        with self._client._changed:
            return self._allowed(_now())

    @property
    def lets_pass(self):
        """Whether everything is let pass and counted that the lease would refuse, as the grantor says."""
        with self._client._changed:
            return self._lets_pass

    @property
    def unenforced(self):
        """The units that the lease would have refused, and that were let pass."""
        with self._client._changed:
            return self._unenforced

    def _take(self, now, n):
        """What `_try` gives, and what it refuses as well where everything is let pass. It says when to try again if not."""
        taken, wait = self._try(now, n)
        if not self._lets_pass or self._client._closed:
            return taken, wait
        self._asked += int(n)
        if taken is not None:
            return taken, wait
        self._passed += int(n)
        self._unenforced += int(n)
        return self._pass(int(n)), 0.0

    def _allowed(self, now):
        if self._client._closed:
            return 0.0
        if now < self._end:
            return self._capacity
        return self._safe or 0.0

    def _held(self, now):
        return self._capacity if now < self._end else 0.0

    def _in_use(self):
        return 0

    def _report(self, now, epoch):
        """The report to the leader of `epoch`: what we promise in it, and what we are counted for."""
        if self._reported is not None and self._wants < self._reported and now < self._end:
            # What is not wanted any more is given back: first nobody can take it, and then it is said.
            self._capacity = min(self._capacity, max(self._wants, self._in_use()))
            self._limit(now)
        self._reported = self._wants
        report = _pb["ResourceRequest"](
            resource_id=self.resource,
            priority=self._priority,
            wants=self._wants,
            integer=self.generation == GAUGE,
        )
        held = max(self._held(now), self._in_use())
        counted = self._promise(now, held)
        if self._lease is not None and (self._lease.HasField("seq") or now < self._end):
            # The whole lease, also the fields that we do not know, with what is held of it.
            report.has.CopyFrom(self._lease)
            report.has.capacity = min(self._held(now), self._lease.capacity)
            if self._lease.HasField("seq"):
                report.held = held
                if epoch is not None and epoch > self._lease.epoch:
                    self._show(now, report.has, counted)
        if self._in_use() <= self._held(now):
            self._ack_wanted = False
        if self._lets_pass or self._asked:
            # Also that there were none: the grantor knows by that that they are counted. Each is said once.
            report.unenforced.asked, report.unenforced.passed = self._asked, self._passed
            self._asked = self._passed = 0
        return report

    def _show(self, now, has, counted):
        """Shows to another leader what the one that granted the lease counts at the least, with the token for it."""
        has.capacity = counted[0][0] if counted else 0.0
        if counted and counted[0][2].HasField("token"):
            has.token = counted[0][2].token
        end = max([self._end, *(end for _, end, _ in counted)])
        if now < end:
            has.remaining_ms = max(1, int((end - now) * 1000))

    def _count(self, now):
        """The lease that was adopted counts, and so do larger ones before it until they end. Units of a gauge that were
        recalled may be used for as long as the lease is renewed."""
        least = self._end if self.generation == GAUGE else 0.0
        before = [(amount, max(end, least), lease) for amount, end, lease in self._counted if now < end]
        self._counted = _longer_lasting([(self._capacity, self._end, self._lease), *before])

    def _promise(self, now, held):
        """No more than `held` counts from here on. Returns what did so far."""
        counted = [part for part in self._counted if now < part[1]]
        self._counted = _longer_lasting([(min(amount, held), end, lease) for amount, end, lease in counted])
        return counted

    def _adopt(self, now, sent, response, fence):
        """Takes up a grant; `sent` is when the report was sent by which it counts."""
        lease = response.gets
        if lease.HasField("seq"):
            if fence is not None and lease.epoch < fence:
                return self._ask_again(now, "a leader that was succeeded granted it")
            last = self._lease
            if last is not None and last.HasField("seq") and (lease.epoch, lease.seq) <= (last.epoch, last.seq):
                return self._ask_again(now, "an earlier grant came later")
        if sent is None:
            return self._ask_again(now, "the grant answers a report that is too old")
        if lease.HasField("duration_ms"):
            end = sent + lease.duration_ms / 1000
        else:
            end = min(now + lease.expiry_time - time.time(), sent + 3600)
        if end <= now:
            return self._ask_again(now, "the grant came when it was over")
        is_other = lease.HasField("generation") and lease.generation != self.generation
        self._lease, self._end, self._fault = lease, end, None
        self._lets_pass = lease.unenforced
        self._alone, self._refusals = False, 0
        self._capacity = 0.0 if is_other else max(0.0, lease.capacity)
        self._count(now)
        if is_other:
            self._fault = "it is a " + ("gauge" if lease.generation == GAUGE else "rate")
        self._ack_wanted = lease.ack_wanted or is_other
        # What a template asks for and nothing is reserved for; never more than the last lease.
        self._safe = None
        if response.HasField("safe_capacity") and not lease.safe_leased:
            safe = response.safe_capacity
            self._safe = self._capacity if safe < 0 else min(safe, self._capacity)
        self._refresh = max(1.0, float(lease.refresh_interval))
        wait = min(self._refresh * random.uniform(0.9, 1.0), (end - sent) * 2 / 3)
        self._due = sent + wait
        self._limit(now, sent)
        # What was said while this was on its way is news still. Of the other kind it is said once at once, and then slowly.
        if self._ack_wanted and self._in_use() <= self._held(now) or self._wants != self._reported:
            self._due = now + (1.0 if is_other and self._was_other else 0.0)
        self._was_other = is_other
        return None

    def _ask_again(self, now, why):
        self._fault = why
        self._due = now + 1.0

    def _put_off(self, now, why):
        """A server refuses it: it is asked for again after a wait that doubles."""
        self._refusals = min(self._refusals + 1, 6)
        self._due = now + 0.25 * 2**self._refusals * random.uniform(0.5, 1.0)
        self._fault = why

    def _limit(self, now, sent=None):
        """The capacity has changed."""

    def _short(self, now):
        return self._held(now) < self._wants

    def _why(self, now):
        if self._client._closed:
            return "the client is closed, or of the process before a fork"
        if now >= self._end and self._fault is None:
            return "the lease is over, and no server answers"
        return self._fault or "all of the lease is used"

    def acquire(self, n=1, timeout=None):
        """Takes `n` units, as soon as there are as many; Refused when that is not within `timeout` seconds."""
        until = None if timeout is None else _now() + timeout
        with self._client._changed:
            while True:
                now = _now()
                taken, wait = self._take(now, n)
                if taken is not None:
                    return taken
                left = None if until is None else until - now
                if self._client._closed or (left is not None and (left <= 0 or (wait or 0) > left)):
                    raise Refused(self.resource, self._why(now), wait)
                self._client._changed.wait(min(1.0 if wait is None else wait, 1.0 if left is None else left, 1.0))


def _longer_lasting(parts):
    """Those of the amounts that last longer than all that are larger, the largest first."""
    kept = []
    for part in sorted(parts, key=lambda part: (-part[0], -part[1])):
        if not kept or part[1] > kept[-1][1]:
            kept.append(part)
    return kept


class Rate(_Holding):
    """So many a second."""

    generation = RATE

    def __init__(self, client, resource, wants, priority):
        super().__init__(client, resource, wants, priority)
        self._saved, self._at = 0.0, _now()  # units in the bucket, and when it was looked at
        self._rate, self._burst, self._unit_due = 0.0, 0.05, None

    def try_acquire(self, n=1):
        """Whether `n` units may be used now; they are taken then. It does not wait, and more than can be saved up never are."""
        with self._client._changed:
            return self._take(_now(), n)[0] is not None

    def acquire(self, n=1, timeout=None):
        """Takes `n` units, as soon as there are as many; Refused when that is not within `timeout` seconds. More than can be
        saved up is taken bit by bit as the lease brings it, and had when the last bit is there; bits that came before it is
        refused are lost: the bucket has filled since, and with them it would hold too much."""
        until = None if timeout is None else _now() + timeout
        while n > 0:
            with self._client._changed:
                bit = n if self._lets_pass else max(1, min(n, int(self._most())))
            super().acquire(bit, None if until is None else max(0.0, until - _now()))
            n -= bit

    def _limit(self, now, sent=None):
        self._flow(now)
        lease = self._lease
        self._rate = self._allowed(now)
        self._burst = lease.burst_us / 1e6 if lease.HasField("burst_us") else 0.05
        self._saved = min(self._saved, self._most())
        if sent is not None:
            before, self._unit_due = self._unit_due, None
            if lease.HasField("due_us") and self._rate > 0:
                due = sent + lease.due_us / 1e6
                # The same phase: what was taken of it is not due again.
                every = 1 / self._rate
                if before is not None and before > now:
                    due += max(0.0, -(-(before - due - every / 2) // every)) * every
                self._unit_due = due

    def _most(self):
        """The units that may be saved up: one at least, where the grantor does not say when one is due."""
        most = self._rate * self._burst
        return most if most >= 1 else float(self._rate > 0)

    def _flow(self, now):
        """Fills the bucket with what the lease has brought since it was last looked at, and not beyond its end."""
        until = min(now, self._end) if self._at < self._end else now
        self._saved = min(self._saved + self._rate * max(0.0, until - self._at), self._most())
        if until < now:
            self._rate = self._allowed(now)
            self._saved = min(self._saved + self._rate * (now - until), self._most())
            self._unit_due = None
        if self._unit_due is not None:
            self._saved = 0.0  # units are due one by one, and none is saved up for a lease that grows
        self._at = now

    def _try(self, now, n):
        if n < 1 or n != int(n):
            raise ValueError(f"n: {n!r} is no number of units, wanted a whole number from 1 on")
        self._flow(now)
        if self._client._closed or self._rate <= 0:
            return None, None
        if self._unit_due is not None:
            return self._try_due(now, n)
        if n > self._most():
            return None, None  # so many never come together
        if self._saved < n:
            return None, (n - self._saved) / self._rate
        self._saved -= n
        return True, 0.0

    def _pass(self, n):
        return True

    def _try_due(self, now, n):
        every = 1 / self._rate
        if now >= self._unit_due + self._burst:
            self._unit_due += -(-(now - self._burst - self._unit_due) // every) * every
        if n > 1:
            return None, None  # so many never come together
        wait = self._unit_due - now
        if wait > 0:
            return None, wait
        self._unit_due += every
        return True, 0.0


class Gauge(_Holding):
    """So many at a time."""

    generation = GAUGE

    def __init__(self, client, resource, wants, priority):
        super().__init__(client, resource, wants, priority)
        self._used = 0

    def try_acquire(self, n=1):
        """A permit for `n` units if they are there, and None if not. It does not wait."""
        with self._client._changed:
            return self._take(_now(), n)[0]

    @property
    def in_use(self):
        """The units of permits that have not been given back."""
        with self._client._changed:
            return self._used

    def _in_use(self):
        return self._used

    def _try(self, now, n):
        if n < 1 or n != int(n):
            raise ValueError(f"n: {n!r} is no number of units, wanted a whole number from 1 on")
        if self._used + n > self._allowed(now):
            return None, None
        self._used += int(n)
        return Permit(self, int(n)), 0.0

    def _pass(self, n):
        # It is not in use, as far as the lease goes, and has no end.
        permit = Permit(self, n)
        permit._in_use = permit._lease_end = 0
        return permit

    def _give_back(self, n):
        with self._client._changed:
            self._used -= n
            if self._ack_wanted and self._used <= self._held(_now()):
                self._due = 0.0
            self._client._changed.notify_all()


class Permit:
    """Units of a gauge that are in use until it is given back: by `release`, or at the end of `with`."""

    def __init__(self, gauge, units):
        self._gauge, self.units, self._lease_end = gauge, units, gauge._end
        self._in_use = units  # of those: nothing of what was let pass

    @property
    def deadline(self):
        """When the units have to be given back if the lease is not renewed until then, by time.monotonic(); None: on safe
        capacity, and of what was let pass, which do not end."""
        with self._gauge._client._changed:
            now = _now()
            if self._gauge._end > self._lease_end and now < self._lease_end:
                self._lease_end = self._gauge._end
            if self._lease_end <= 0:
                return None
            return time.monotonic() + (self._lease_end - now)

    @property
    def is_expired(self):
        """Whether the lease has ended under which the units were taken."""
        deadline = self.deadline
        return deadline is not None and deadline <= time.monotonic()

    def release(self):
        """Gives the units back; a second time nothing happens."""
        units, self.units, self._in_use = self._in_use, 0, 0
        if units:
            self._gauge._give_back(units)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


# === the client ===


class Client:
    """The leases of one process, which one of `servers` grants.

    `id` names the client, and no other may have the same name at a time. `timeout` is for one request, in seconds.
    With `ca` servers are believed that one of its authorities has certified to the name that they are called by, and `cert`
    and `key` are shown to them: paths of PEM files, which are read again when they have changed, or the PEM itself as bytes.
    In place of them `credentials` are those of grpc.secure_channel; without either the connection is in plain text.
    `token`, or what `token_file` holds, goes with every request, over TLS or within the machine.
    """

    def __init__(
        self,
        *servers,
        id,
        credentials=None,
        timeout=5.0,
        ca=None,
        cert=None,
        key=None,
        token=None,
        token_file=None,
    ):
        if not servers:
            raise ValueError("servers: none is given, wanted HOST:PORT at least once")
        self.id, self._servers, self._timeout = id, servers, timeout
        self._proof = _Proof(credentials, ca, cert, key, token, token_file)
        self._incarnation = int.from_bytes(os.urandom(8), "little")
        self._changed = threading.Condition()
        self._holdings, self._closed, self._fence = {}, False, None
        self._report_id, self._sent = 0, {}
        self._turn, self._leader, self._hops, self._failures, self._not_before = 0, None, 0, 0, 0.0
        self._channels = {}
        if hasattr(os, "register_at_fork"):
            this = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: this() and this()._forked())
        self._thread = threading.Thread(target=self._run, name=f"lessor {id}", daemon=True)
        self._thread.start()

    def rate(self, resource, wants, priority=0):
        """The rate `resource`, of which the program could use `wants` units a second."""
        return self._open(Rate, resource, wants, priority)

    def gauge(self, resource, wants, priority=0):
        """The gauge `resource`, of which the program could use `wants` units at a time."""
        return self._open(Gauge, resource, wants, priority)

    def _open(self, kind, resource, wants, priority):
        with self._changed:
            if self._closed:
                raise Refused(resource, "the client is closed")
            if resource in self._holdings:
                raise ValueError(f"resource: {resource!r} is open already, wanted one that is not")
            holding = self._holdings[resource] = kind(self, resource, wants, priority)
            self._changed.notify_all()
            return holding

    def close(self):
        """Uses nothing from here on, and says so, as far as a server answers within the timeout."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        self._thread.join(self._timeout)
        self._say_counts()
        names = list(self._holdings)
        # Units that are still in use are not given back: they count until their lease ends.
        names = [name for name in names if self._holdings[name]._in_use() == 0]
        if names:
            self._report_id += 1
            request = _pb["ReleaseCapacityRequest"](
                client_id=self.id,
                resource_id=names,
                incarnation=self._incarnation,
                report_id=self._report_id,
            )
            try:
                self._call("ReleaseCapacity", request, self._timeout)
            except grpc.RpcError:
                pass  # it counts until it ends
        for _, channel in self._channels.values():
            channel.close()

    def _say_counts(self):
        """Says what was let pass since the last report, before what it was let pass of is given back."""
        with self._changed:
            counted = [holding for holding in self._holdings.values() if holding._asked and not holding._alone]
            if not counted:
                return
            request = self._of(counted, _now())
        try:
            self._call("GetCapacity", request, self._timeout)
        except grpc.RpcError:
            pass  # nobody is there to count

    def _forked(self):
        """In the child, which has neither the thread nor the lease."""
        self._changed, self._closed = threading.Condition(), True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # === the thread ===

    def _run(self):
        while True:
            with self._changed:
                now = _now()
                if self._closed:
                    return
                due = min((holding._due for holding in self._holdings.values()), default=now + 60)
                due = max(due, self._not_before)
                if due > now:
                    self._changed.wait(min(due - now, 60))
                    continue
                request, report_id, timeout = self._request(now)
            try:
                answer = self._call("GetCapacity", request, timeout)
            except grpc.RpcError as error:
                with self._changed:
                    self._refused(request, error) if error.code() in _REFUSALS else self._failed(error.details())
                    self._changed.notify_all()
                continue
            with self._changed:
                self._answered(report_id, answer)
                self._changed.notify_all()

    def _request(self, now):
        """What is due and what will be soon, in one request. It is counted from `now`, which is before it is sent."""
        soon = [h for h in self._holdings.values() if not h._alone and h._due <= now + (h._refresh or 0) / 4]
        if not any(holding._due <= now for holding in soon):
            soon = [h for h in self._holdings.values() if h._alone and h._due <= now][:1]
        request = self._of(soon, now)
        # Leases that end soon leave less time to try another server.
        ends = [holding._end - now for holding in soon if holding._end > now]
        return request, self._report_id, min(self._timeout, max(1.0, min(ends, default=self._timeout * 3) / 3))

    def _of(self, holdings, now):
        """The next request, which is of `holdings`."""
        self._report_id += 1
        self._sent[self._report_id] = now
        for old in [report_id for report_id in self._sent if report_id <= self._report_id - 8]:
            del self._sent[old]
        request = _pb["GetCapacityRequest"](
            client_id=self.id, incarnation=self._incarnation, report_id=self._report_id
        )
        if self._fence is not None:
            request.target_epoch = self._fence
        request.resource.extend([holding._report(now, self._fence) for holding in holdings])
        return request

    def _call(self, method, request, timeout):
        address = self._leader or self._servers[self._turn]
        pems, metadata = self._proof.now(address)
        before, channel = self._channels.get(address, (None, None))
        if channel is None or before != pems:
            if channel is not None:
                channel.close()
            channel = self._proof.channel(address, pems)
            self._channels[address] = pems, channel
        call = channel.unary_unary(
            "/doorman.Capacity/" + method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=_pb[method + "Response"].FromString,
        )
        return call(request, timeout=timeout, metadata=metadata, wait_for_ready=False)

    def _answered(self, report_id, answer):
        now = _now()
        if answer.HasField("epoch"):
            self._fence = max(self._fence or 0, answer.epoch)
        if answer.HasField("mastership"):
            return self._redirected(now, answer.mastership.master_address)
        self._failures = self._hops = 0
        retry = answer.retry_ms / 1000 if answer.HasField("retry_ms") else None
        granted = set()
        for response in answer.response:
            holding = self._holdings.get(response.resource_id)
            if holding is None or response.resource_id in granted:
                continue
            granted.add(response.resource_id)
            basis = response.gets.basis if response.gets.HasField("basis") else report_id
            holding._adopt(now, self._sent.get(basis), response, self._fence)
            if retry is not None and holding._short(now):
                holding._due = min(holding._due, now + max(retry, 0.05))
        for refused in answer.refused:
            if (holding := self._holdings.get(refused.resource_id)) is not None:
                holding._put_off(now, refused.reason)
        for holding in self._holdings.values():
            if holding.resource not in granted and holding._due <= now:
                # There was nothing to grant it from.
                holding._due = now + (1.0 if retry is None else max(retry, 0.05))
        return None

    def _redirected(self, now, address):
        self._hops += 1
        if not address or self._hops > 5:
            return self._failed("no server leads")
        self._leader = address
        return None

    def _failed(self, why):
        """The next server, after a wait that doubles with every round over all of them."""
        now = _now()
        self._leader, self._turn = None, (self._turn + (self._leader is None)) % len(self._servers)
        wait = min(0.25 * 2 ** (self._failures // len(self._servers)), 16.0) * random.uniform(0.5, 1.0)
        self._failures, self._hops, self._not_before = min(self._failures + 1, 1000), 0, now + wait
        for holding in self._holdings.values():
            if now >= holding._end:
                holding._fault = why

    def _refused(self, request, error):
        """The server refuses the request, and may have meant one resource of it: each goes alone from here on."""
        now, self._failures = _now(), 0
        for resource in request.resource:
            holding = self._holdings[resource.resource_id]
            holding._alone, holding._due = True, now
            if len(request.resource) == 1:
                holding._put_off(now, error.details())
