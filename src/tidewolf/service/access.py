"""Requests in flight and answered, and the quotas of tokens.

At most `most` requests are answered at a time, wherever they wait (for a thread, for the disk), and
their bodies have at most `most_held` bytes in all. One more is refused at once, with a time to
retry, so that no queue grows. Requests of one connection are answered one after the other.

A token has a bucket of requests and a bucket of observations:

    level <- min(burst, level + rate * seconds since then)        at every request
    taken if level > 0; then level <- level - amount

What is taken may be more than is left (many observations in one body); the next request waits until
it has come back. A bucket holds what `BURST` seconds bring, at least one.

Tokens and roles of callers, read from a file with one token per line.

    TOKEN                        may do everything
    ROLE TOKEN                   reader: looks; writer: everything
    ROLE PREFIX TOKEN            the same, for sessions whose names begin with PREFIX (* is all)
    ROLE PREFIX TOKEN NAME       the same, under this name in the audit log

Lines that begin with # are comments. Tokens are kept as their SHA-256 alone, and the one that comes
is compared with all of them, so that neither time nor memory says which one is near.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, cast, final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from tidewolf.core.errors import InvalidInput, Overloaded, TooMany
from tidewolf.service.models import NAME

ROLES = ("reader", "writer")
_TOKEN = re.compile(r"[!-~]{1,1000}")


class Caller(NamedTuple):
    """The caller of a request: its name, its role, and the sessions it may use.

    Parameters
    ----------
    who : str, default "anonymous"
        The name of the token, for the audit.
    role : "reader" or "writer", default "writer"
        What they may do.
    prefix : str, default ""
        Of the names of the sessions that are there for them.
    """

    who: str = "anonymous"
    role: Literal["reader", "writer"] = "writer"
    prefix: str = ""


@final
class Tokens:
    """The tokens that are known; without any, every caller may do everything.

    Parameters
    ----------
    known : mapping of bytes to Caller
        The caller of each token, by its hash.

    Examples
    --------
    >>> from tidewolf.service.access import Tokens
    >>> tokens = Tokens.parse("reader lisbon- s3cret dashboard")
    >>> tokens.caller(b"Bearer s3cret")
    Caller(who='dashboard', role='reader', prefix='lisbon-')
    >>> tokens.caller(b"Bearer guess") is None
    True
    """

    def __init__(self, known: Mapping[bytes, Caller] | None = None) -> None:
        self._known = dict(known or {})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Those of a file; a warning on stderr if others than its owner may read it.

        Raises
        ------
        InvalidInput
            If the file cannot be read, has a line that is none of the above, or no token.
        """
        path = Path(path)
        try:
            text, mode = path.read_text(encoding="utf-8"), path.stat().st_mode
        except OSError as error:
            raise InvalidInput(f"The tokens in {path} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise InvalidInput(f"{path} is no text in UTF-8, and no file of tokens.") from None
        if stat.S_IMODE(mode) & 0o077:
            sys.stderr.write(
                f"Warning: others than its owner can reach {path}, and the tokens in it: "
                f"chmod 600 {path}.\n"
            )
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, source: str = "the file of tokens") -> Self:
        """Those of a text, as a file has them; errors begin with the source."""
        found, names = dict[bytes, Caller](), set[str]()
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            digest, caller = _token(words, f"{source}, line {number}", number)
            if digest in found or caller.who in names:
                raise InvalidInput(
                    f"{source}, line {number}: a token, or its name, is there twice."
                )
            found[digest] = caller
            names.add(caller.who)
        if not found:
            raise InvalidInput(
                f"{source} has no token: a line is TOKEN, or ROLE TOKEN, or ROLE PREFIX TOKEN NAME."
            )
        return cls(found)

    def __bool__(self) -> bool:
        return bool(self._known)

    def caller(self, authorization: bytes | None, *, basic: bool = False) -> Caller | None:
        """The caller that an Authorization header identifies; None if its token is not known.
        `basic`: "Basic ..." with the token as password is accepted, too.
        """
        if not self._known:
            return Caller()
        token = _brought(authorization, basic)
        if token is None:
            return None
        digest, found = sha256(token).digest(), None
        for known, caller in self._known.items():
            if hmac.compare_digest(known, digest):
                found = caller
        return found


def _token(words: list[str], where: str, number: int) -> tuple[bytes, Caller]:
    """The token of a line, never shown in an error."""
    given = ["writer", *words] if len(words) == 1 else words
    given = [given[0], "*", given[1]] if len(given) == 2 else given
    role, prefix, token, name = [*given, f"token-{number}"][:4]
    for fits, sentence in (
        (len(words) <= 4, "a line has at most ROLE PREFIX TOKEN NAME, and this has more words"),
        (role in ROLES, "a role is reader or writer, and comes first"),
        (token not in ROLES, "a role without a token"),
        (
            prefix == "*" or NAME.fullmatch(prefix),
            "a prefix is how names of sessions begin, or * for all",
        ),
        (_TOKEN.fullmatch(token), "a token is at most 1,000 printable characters of ASCII"),
        (NAME.fullmatch(name), "a name has at most 100 letters, digits, '.', '_' and '-'"),
    ):
        if not fits:
            raise InvalidInput(f"{where}: {sentence}.")
    caller = Caller(name, cast(Any, role), "" if prefix == "*" else prefix)
    return sha256(token.encode()).digest(), caller


def _brought(authorization: bytes | None, basic: bool) -> bytes | None:
    """The token of a header."""
    if authorization is None:
        return None
    scheme, _, given = authorization.partition(b" ")
    given = given.strip()
    if scheme.lower() == b"bearer":
        return given
    if not basic or scheme.lower() != b"basic":
        return None
    try:
        return base64.b64decode(given, validate=True).partition(b":")[2]
    except binascii.Error:
        return None


EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Upper ends of the buckets of times. Unit: seconds."""
OTHER = "other"
"""The route of requests for an address that does not exist."""
REASONS = ("overload", "quota", "token", "host")
"""Reasons to refuse requests before they are read."""
BURST = 2.0
"""What a bucket of a quota holds. Unit: seconds of its rate."""
disable_created_metrics()  # type: ignore[no-untyped-call]


class Limits(NamedTuple):
    """How much is allowed.

    Parameters
    ----------
    sessions : int, default 10_000
        Sessions that are stored, at most.
    open : int, default 1000
        Sessions in memory, at most; those that were not used for longest are let go of.
    pending : int, default 10_000
        Rounds of a session that wait for their feedback, at most.
    observations : int, default 1000
        Observations in a request, at most.
    wait : float, default 10.0
        How long a request waits for others of its session. Unit: seconds.
    """

    sessions: int = 10_000
    open: int = 1000
    pending: int = 10_000
    observations: int = 1000
    wait: float = 10.0


@final
class Traffic:
    """Requests in flight, and counters of those that were.

    Parameters
    ----------
    most : int, default 256
        How many may be in flight.
    most_held : int, default 134217728
        Bytes that their bodies may have in all.

    Attributes
    ----------
    in_flight : int
        Requests in flight.
    held : int
        Bytes of their bodies.
    refused : Counter
        How many were refused before they were read, by reason.
    ready : bool
        Whether requests are taken; False while starting and draining.
    registry : CollectorRegistry
        All of it, for Prometheus.

    Examples
    --------
    >>> from tidewolf.service.access import Traffic
    >>> traffic = Traffic(most=1)
    >>> traffic.enter()
    >>> traffic.enter()
    Traceback (most recent call last):
    ...
    tidewolf.core.errors.Overloaded: 1 requests are in flight already, ...: come again.
    """

    def __init__(self, most: int = 256, most_held: int = 1 << 27) -> None:
        if most < 1:
            raise InvalidInput(f"At least one request must be answered at a time, not {most}.")
        self.most, self.most_held = most, most_held
        self.in_flight = self.held = 0
        self.ready = False
        self.registry = CollectorRegistry(auto_describe=False)
        common: dict[str, Any] = {"namespace": "tidewolf", "registry": self.registry}
        Gauge("ready", "Whether requests are taken.", **common).set_function(lambda: self.ready)
        Gauge("requests_in_flight", "Requests in flight.", **common).set_function(
            lambda: self.in_flight
        )
        about = "Requests refused before they were read."
        self.refused = Counter("requests_refused", about, ["reason"], **common)
        for reason in REASONS:
            self.refused.labels(reason)
        labels = ["route", "method", "status"]
        self._requests = Counter("requests", "Requests answered.", labels, **common)
        about = "How long requests took. Unit: seconds."
        self._seconds = Histogram("request_seconds", about, ["route"], buckets=EDGES, **common)

    def enter(self) -> None:
        """Take in a request; the caller subtracts it from `in_flight` in the end."""
        if self.in_flight >= self.most:
            raise Overloaded(
                f"{self.in_flight} requests are in flight already, as many as may be: come again."
            )
        self.in_flight += 1

    def hold(self, bytes_more: int, own: int = 0) -> None:
        """Make room for so much of a body, `own` of which is held already; the caller gives it back
        to `held` in the end.
        """
        if self.held > own and self.held + bytes_more > self.most_held:
            raise Overloaded(
                f"Bodies that take {self.held:,} bytes are being read already, as many as may be: "
                "come again."
            )
        self.held += bytes_more

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered, by the template of its path."""
        self._requests.labels(route, method, status).inc()
        self._seconds.labels(route).observe(seconds)


@final
class Quotas:
    """How much each token may ask.

    Parameters
    ----------
    requests : float, optional
        Requests per second, for each token.
    observations : float, optional
        Observations per second, for each token.
    sessions : int, optional
        Sessions that a token may have under its prefix.
    clock : callable, default time.monotonic
        The time now. Unit: seconds.

    Examples
    --------
    >>> from tidewolf.service.access import Quotas
    >>> quotas = Quotas(requests=1.0, clock=lambda: 0.0)
    >>> quotas.take("requests", "dashboard"), quotas.take("requests", "dashboard")
    (None, None)
    >>> quotas.take("requests", "dashboard")
    Traceback (most recent call last):
    ...
    tidewolf.core.errors.TooMany: This token may send 1 requests per second, and sent more: wait.
    """

    def __init__(
        self,
        requests: float | None = None,
        observations: float | None = None,
        sessions: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        rates = {"requests": requests, "observations": observations}
        self.rates = {what: rate for what, rate in rates.items() if rate is not None}
        """those that are bounded"""
        for what, rate in self.rates.items():
            if not 0.0 < rate < float("inf"):
                raise InvalidInput(f"A rate of {what} is a number above 0, not {rate:g}.")
        if sessions is not None and sessions < 1:
            raise InvalidInput(f"A token may have at least one session, not {sessions}.")
        self.sessions, self.creating = sessions, threading.Lock()
        """held while a session is created"""
        self._clock = clock
        self._levels = dict[tuple[str, str], tuple[float, float]]()
        """what is left in each bucket, and when that was"""
        self._lock = threading.Lock()

    def take(self, what: str, who: str, amount: int = 1) -> None:
        """Count requests or observations of a token; `TooMany` if there were too many."""
        rate, now = self.rates[what], self._clock()
        most = max(1.0, rate * BURST)
        with self._lock:
            level, at = self._levels.get((what, who), (most, now))
            level = min(most, level + rate * (now - at))
            missing = 1.0 - level
            self._levels[what, who] = level if missing > 0.0 else level - amount, now
        if missing > 0.0:
            raise TooMany(
                f"This token may send {rate:g} {what} per second, and sent more: wait.",
                retry_after=missing / rate,
            )
