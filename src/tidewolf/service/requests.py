"""What requests are, before any session is asked: their callers, how much they may ask, their
bodies, and the problems (RFC 9457) that refuse them.

Tokens and roles of callers are read from a file with one token per line:

    TOKEN                        may do everything
    ROLE TOKEN                   reader: looks; writer: everything
    ROLE PREFIX TOKEN            the same, for sessions whose names begin with PREFIX (* is all)
    ROLE PREFIX TOKEN NAME       the same, under this name in the audit log

Lines that begin with # are comments. Tokens are kept as their SHA-256 alone, and the one that comes
is compared with all of them, so that neither time nor memory says which one is near.

At most `most` requests are answered at a time, wherever they wait (for a thread, for the disk), and
their bodies have at most `most_held` bytes in all. At most a quarter of them are requests of one
token, or without tokens of one address, whose bodies have not arrived yet, so that slow ones leave
room for others. One more is refused at once, with a time to retry, so that no queue grows. A token
has a bucket of requests and a bucket of observations:

    level <- min(burst, level + rate * seconds since then)        at every request
    taken if level > 0; then level <- level - amount

What is taken may be more than is left (many observations in one body); the next request waits until
it has come back. A bucket holds what `BURST` seconds bring, at least one.

    a body has                      refused, because
    NaN, Infinity, 1e999            every number is finite
    {"a": 1, "a": 2}                it is unknown which one counts
    more than 64 levels             no body has more than a few
    invalid UTF-8, a lone half of a pair (\\ud800), the character U+0000
                                    no text that files and databases can hold

    raised                                            status
    UnknownSession                                    404
    OtherContent, AlreadyThere                        409
    HeldElsewhere                                     409, with the holder
    TooMany                                           429, with Retry-After
    Overloaded, any other CheckpointError             503, with Retry-After
    MissingExtra                                      501
    InvalidInput, any other TidewolfError             422
    anything else                                     500, and its traceback on stderr alone

The title of a problem is the name of the error, so that a client can raise the same. What HTTP
itself refuses (a body that is no JSON, a method, a token) is `Refused`, and has HTTP's title.
A whole number beyond 64 bits is read as the nearest float. Null is written if a number is not
finite. The memory that a body needs is estimated before it is parsed. Parsing holds the
interpreter, so that bodies over `SHORT` bytes are parsed one after the other, nothing in them is
described more than once, and /healthz waits for one of them at most.

Connections with limits on time, size and number, so that no client can exhaust a server; and
uvicorn's server, which is ready once it has prepared and ends with exit code 0.

uvicorn waits for the head of a request for as long as it takes, and takes as much of it as comes.
Here a head has HEAD_SECONDS to arrive and at most LONGEST_HEAD bytes, and so has what may come
behind a body; a connection that keeps sending a body which is no longer read is closed after the
same time, and so is one whose client does not read what it is sent. There are at most
MOST_CONNECTIONS: for one more, the one that has been idle for longest is closed, or the new one if
none is idle.
What is no HTTP is answered with a problem.
"""

import asyncio
import base64
import hmac
import json
import math
import os
import re
import socket
import stat
import sys
import threading
import time
import traceback
from collections import Counter as Counts
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from http import HTTPStatus
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple, Self, cast, final

import orjson
import uvicorn
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from tidewolf import __version__
from tidewolf.core import arguments, errors
from tidewolf.core.errors import InvalidInput, Overloaded, TooMany, refuse, require
from tidewolf.service.models import NAME

PROBLEM = "application/problem+json"
dumps = orjson.dumps

# --- callers --------------------------------------------------------------------------------------

ROLES = ("reader", "writer")
_TOKEN = re.compile(r"[!-~]{1,1000}")
_LINE = (
    "TOKEN, or ROLE TOKEN, or ROLE PREFIX TOKEN, or ROLE PREFIX TOKEN NAME; a role is reader or "
    "writer"
)


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
    >>> from tidewolf.service.requests import Tokens
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
        """Those of a file; warnings on stderr if others than its owner may read it, and if a
        prefix fits more names than it seems to.

        Raises
        ------
        InvalidInput
            If the file cannot be read, has a line that is none of the above, or no token.
        """
        path = Path(path)
        try:
            text, mode = path.read_text(encoding="utf-8"), path.stat().st_mode
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The tokens in {path} cannot be read: {error}.") from None
        tokens = cls.parse(text, str(path))
        words = list[str]()
        if stat.S_IMODE(mode) & 0o077:
            what = f"others than its owner can reach {path}, and the tokens in it"
            words.append(f"{what}: chmod 600 {path}.")
        prefixes = sorted({caller.prefix for caller in tokens._known.values()} - {""})
        for one in prefixes:
            if one[-1].isalnum():
                what = f"the prefix {one} also fits {one}2 and {one}-other"
                words.append(f"{what}: end it with a hyphen, as in {one}-.")
            words += [
                f"tokens of the prefix {one} also reach all sessions of the prefix {other}."
                for other in prefixes
                if other != one and other.startswith(one)
            ]
        sys.stderr.write("".join(f"Warning: {line}\n" for line in words))
        return tokens

    @classmethod
    def parse(cls, text: str, source: str = "the file of tokens") -> Self:
        """Those of a text, as a file has them; errors begin with the source and show no token."""
        found = dict[bytes, Caller]()
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            given = ["writer", *words] if len(words) == 1 else words
            given = [given[0], "*", given[1]] if len(given) == 2 else given
            role, prefix, token, name = [*given, f"token-{number}"][:4]
            fits = len(words) <= 4 and role in ROLES and token not in ROLES
            names = (name, prefix.replace("*", "all"))
            refuse(
                not (fits and _TOKEN.fullmatch(token) and all(map(NAME.fullmatch, names))),
                f"{source}, line {number}: a line is {_LINE}.",
            )
            digest = sha256(token.encode()).digest()
            refuse(
                digest in found or any(name == caller.who for caller in found.values()),
                f"{source}, line {number}: the token, or its name, comes twice.",
            )
            found[digest] = Caller(name, cast(Any, role), "" if prefix == "*" else prefix)
        require(found, InvalidInput, f"{source} has no token: a line is {_LINE}.")
        return cls(found)

    def __bool__(self) -> bool:
        return bool(self._known)

    def caller(self, authorization: bytes | None, *, basic: bool = False) -> Caller | None:
        """The caller that an Authorization header identifies; None if its token is not known.
        `basic`: "Basic ..." with the token as password is accepted, too.
        """
        if not self._known:
            return Caller()
        scheme, _, given = (authorization or b"").partition(b" ")
        token, kind, found = given.strip(), scheme.lower(), None
        if basic and kind == b"basic":
            with suppress(ValueError):
                kind, token = b"bearer", base64.b64decode(token, validate=True).partition(b":")[2]
        digest = sha256(token).digest()
        for known, caller in self._known.items():
            if hmac.compare_digest(known, digest) and kind == b"bearer":
                found = caller
        return found


# --- how much -------------------------------------------------------------------------------------

# Upper ends of the buckets of times. Unit: seconds.
EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
# The route of requests for an address that does not exist.
OTHER = "other"
# Reasons to refuse requests before they are read.
REASONS = ("overload", "quota", "token", "host")
# What a bucket of a quota holds. Unit: seconds of its rate.
BURST = 2.0
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
    arriving : Counter of str
        How many bodies of each token, or address if there are none, have not arrived yet.
    most_arriving : int
        How many of one there may be.
    refused : Counter
        How many were refused before they were read, by reason.
    ready : bool
        Whether requests are taken; False while starting and draining.
    registry : CollectorRegistry
        All of it, for Prometheus.

    Examples
    --------
    >>> from tidewolf.service.requests import Traffic
    >>> traffic = Traffic(most=1)
    >>> traffic.enter()
    >>> traffic.enter()
    Traceback (most recent call last):
    ...
    tidewolf.core.errors.Overloaded: 1 requests are in flight already, ...: come again.
    """

    def __init__(self, most: int = 256, most_held: int = 1 << 27) -> None:
        refuse(most < 1, f"At least one request must be answered at a time, not {most}.")
        self.most, self.most_held = most, most_held
        self.in_flight = self.held = 0
        self.arriving, self.most_arriving = Counts[str](), max(1, most // 4)
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
        key = ["route", "method", "status"]
        self._requests = Counter("requests", "Requests answered.", key, **common)
        about = "How long requests took. Unit: seconds."
        self._seconds = Histogram("request_seconds", about, key[:1], buckets=EDGES, **common)

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
            raise Overloaded(f"Bodies of {self.held:,} bytes are being read: try again later.")
        self.held += bytes_more

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
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
    >>> from tidewolf.service.requests import Quotas
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
        # those that are bounded
        self.rates = {what: rate for what, rate in rates.items() if rate is not None}
        for what, most in {**self.rates, "sessions": 1 if sessions is None else sessions}.items():
            refuse(
                not 0.0 < most < float("inf"),
                f"The quota of {what} is a number above 0, not {most:g}.",
            )
        # held while a session is created
        self.sessions, self.creating = sessions, threading.Lock()
        self._clock = clock
        # what is left in each bucket, and when that was
        self._levels = dict[tuple[str, str], tuple[float, float]]()
        self._lock = threading.Lock()

    def take(self, what: str, who: str, amount: int = 1) -> None:
        rate, now = self.rates[what], self._clock()
        most = max(1.0, rate * BURST)
        with self._lock:
            level, at = self._levels.get((what, who), (most, now))
            level = min(most, level + rate * (now - at))
            missing = 1.0 - level
            self._levels[what, who] = level if missing > 0.0 else level - amount, now
        if missing > 0.0:
            what = f"This token may send {rate:g} {what} per second, and sent more: wait."
            raise TooMany(what, retry_after=missing / rate)


# --- problems -------------------------------------------------------------------------------------

# Of statuses that Python calls by older names.
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
# The first that an error is an instance of counts.
_STATUS: dict[type[BaseException], int] = {
    errors.UnknownSession: 404,
    errors.OtherContent: 409,
    errors.AlreadyThere: 409,
    errors.HeldElsewhere: 409,
    Overloaded: 503,
    TooMany: 429,
    errors.CheckpointError: 503,
    errors.MissingExtra: 501,
    errors.TidewolfError: 422,
    MemoryError: 422,
}


class Refused(Exception):
    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def problem(status: int, detail: str, **more: Any) -> dict[str, Any]:
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    found = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return found | more | {"version": __version__}


def status_of(error: BaseException) -> int:
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)


def problem_of(error: BaseException) -> Response:
    """The response to a request that ended in this error; the cause of an unexpected error is
    written to stderr, not into the response.
    """
    status, headers, more = status_of(error), dict[str, str](), dict[str, Any]()
    detail = str(error)
    if isinstance(error, Refused):
        status, headers = error.status, error.headers
    elif isinstance(error, MemoryError):
        detail = "There is not enough memory for this: ask for less."
    elif status == 500:
        where = "".join(traceback.format_exception(error))
        sys.stderr.write(f"tidewolf: a request ended in {type(error).__name__}.\n{where}")
        sys.stderr.flush()
        detail = "The server failed unexpectedly, which is a bug; its log has the details."
    else:
        more["title"] = type(error).__name__
        if isinstance(error, errors.HeldElsewhere):
            more["holder"] = error.holder
        if status in (429, 503):
            headers["retry-after"] = str(max(1, math.ceil(getattr(error, "retry_after", 1.0))))
    return Response(dumps(problem(status, detail, **more)), status, headers, PROBLEM)


# --- bodies ---------------------------------------------------------------------------------------

# Bytes of a body, at most.
LONGEST = 4 << 20
# Bytes of memory for each byte of the longest body, at most, once a body is parsed.
LARGEST = 32
# Bytes of a body that takes little memory, whatever it holds.
SHORT = 1 << 16
# Bytes of memory for what a character of JSON may begin.
_COSTS = {b",": 100, b":": 128, b"[": 64, b"{": 200}
# How long a body may take.
SECONDS = 10.0


async def read_body(
    request: Request, traffic: Traffic, who: str, longest: int, seconds: float
) -> bytes:
    """The body of a request of this caller; its bytes are held in `traffic`, and the caller gives
    them back.

    Raises
    ------
    Refused
        If it is longer, takes longer, or is compressed.
    Overloaded
        If too much is being read already.
    TooMany
        If too many bodies of this caller have not arrived yet.
    """
    too_long = f"A body has at most {longest:,} bytes: send less at a time."
    for header, value in request.scope["headers"]:
        if header == b"content-length" and value.isdigit() and int(value) > longest:
            raise Refused(413, too_long)
        if header == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise Refused(415, "Bodies are sent as they are, without a Content-Encoding.")
    if (count := traffic.arriving[who]) >= traffic.most_arriving:
        traffic.refused.labels("quota").inc()
        raise TooMany(f"{count} bodies of this caller have not arrived yet: send fewer at a time.")
    pieces, length, more = list[bytes](), 0, True
    traffic.arriving[who] += 1
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await request.receive()  # of a client that has left: the end
                piece: bytes = message.get("body", b"")
                if length + len(piece) > longest:
                    raise Refused(413, too_long)
                traffic.hold(len(piece), length)
                pieces.append(piece)
                length += len(piece)
                more = message.get("more_body", False)
    except BaseException as error:
        traffic.held -= length
        if isinstance(error, TimeoutError):
            raise Refused(
                408, f"The body did not arrive within {seconds:g} seconds.", connection="close"
            ) from None
        raise
    finally:
        traffic.arriving[who] -= 1
        if not traffic.arriving[who]:
            del traffic.arriving[who]
    return b"".join(pieces)


def parsed_size(raw: bytes, longest: int = LONGEST) -> int:
    """How much memory a body takes once it is parsed, estimated from above before that: 0 if the
    body is short; `Refused` if it is more than `LARGEST` times the longest body.
    """
    if len(raw) <= SHORT:
        return 0
    size = 12 * len(raw) + sum(raw.count(mark) * cost for mark, cost in _COSTS.items())
    if size > LARGEST * longest:
        raise Refused(413, "The body has too many values: send less at a time.")
    return size


# --- JSON -----------------------------------------------------------------------------------------

# Levels of lists and objects inside each other.
DEEPEST = 64
# A text, and the colon behind it if it is a key.
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"\s*+(:?)')


def as_object(raw: bytes, may_be_empty: bool = False) -> dict[str, Any]:
    try:
        found = {} if may_be_empty and not raw else loads(raw)
    except InvalidInput as error:
        raise Refused(400, str(error)) from None
    return arguments.as_kind(found, dict, "The body must be a JSON object", InvalidInput)


def loads(raw: bytes) -> Any:
    """What a text in JSON says, read strictly.

    Raises
    ------
    InvalidInput
        If it is no JSON, or could be read in two ways.

    Examples
    --------
    >>> from tidewolf.service.requests import loads
    >>> loads(b'{"costs": [1, 2.5]}')
    {'costs': [1, 2.5]}
    >>> loads(b'{"round": 1, "round": 2}')
    Traceback (most recent call last):
    ...
    tidewolf.core.errors.InvalidInput: The body has the key 'round' twice.
    """
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(
            f"The body is no JSON: {error.msg} at character {error.pos + 1}."
        ) from None
    keys, depth, level = 0, 0, [found]
    while {dict, list} & {*map(type, level)}:  # one level after the other
        objects = [one for one in level if type(one) is dict]
        lists = [one for one in level if type(one) is list]
        keys, depth = keys + sum(map(len, objects)), depth + 1
        level = [*chain(*lists, *(one.values() for one in objects))]
    refuse(depth > DEEPEST, f"The body is nested deeper than {DEEPEST} levels: send a flatter one.")
    if keys != raw.count(b'":') and keys != sum(len(each[1]) for each in _TEXT.finditer(raw)):
        if len(raw) <= SHORT:  # to find which one holds the interpreter for long
            json.loads(raw, object_pairs_hook=_once)
        raise InvalidInput("The body has a key twice: send each key once.")
    if rb"\u0000" in raw and rb"\u0000" in raw.replace(rb"\\", b"__"):  # \\u0000 is plain text
        raise InvalidInput("The body has the character U+0000, which no text has: leave it out.")
    return found


def _once(pairs: list[tuple[str, Any]]) -> None:
    ((key, count),) = Counts(key for key, _ in pairs).most_common(1) or [("", 0)]
    if count > 1:
        raise InvalidInput(f"The body has the key {arguments.shown(key)} twice.")


# --- connections ----------------------------------------------------------------------------------

# How long the head of a request, or a client that reads nothing, may take.
HEAD_SECONDS = 10.0
# Bytes of the head of a request, at most.
LONGEST_HEAD = 1 << 16
# Connections, at most.
MOST_CONNECTIONS = 2000
# Bytes around each byte of a body that comes in the smallest of pieces.
_FRAMING = 8
# Where the scope of a request says whether its client has closed the connection.
HAS_LEFT = "tidewolf.has_left"
_Base: Any = AutoHTTPProtocol


class Careful(_Base):  # type: ignore[misc]
    seconds, longest, most = HEAD_SECONDS, LONGEST_HEAD, MOST_CONNECTIONS

    _alarm: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    # Whether a request has begun, and not all of it has come.
    _open = False
    # Bytes of it after the piece that it began in, and those that are its body.
    _came = _body = 0
    # When something came last.
    _heard = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._heard = self.loop.time()
        there = [one for one in self.connections if not one.transport.is_closing()]
        if len(there) > self.most:  # the one that has been idle for longest, this one at last
            idle = (one for one in there if not one._is_answering())
            min(idle, key=lambda one: one._heard).transport.close()
        self._alarm = self.loop.call_later(self.seconds, self._give_up)

    def data_received(self, data: bytes) -> None:
        self._heard = self.loop.time()
        self._came += len(data)
        super().data_received(data)
        if self._is_answering():
            self._cancel("_alarm")
        elif self._alarm is None:
            self._alarm = self.loop.call_later(self.seconds, self._give_up)
        if self._open and self._came - self._body > self.longest + _FRAMING * self._body:
            if self._is_answering():  # it comes behind a body, and an answer is on its way
                self.transport.abort()
            else:
                self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[HAS_LEFT] = self.transport.is_closing
        self._open, self._came, self._body = True, 0, 0

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > (
            self.longest
        ):
            self._refuse_head()
            raise ValueError("the head is too long")  # it ends the parser
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._open = False
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._cancel("_stuck")
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel("_alarm")
        self._cancel("_stuck")
        super().connection_lost(exc)

    def _refuse_head(self) -> None:
        self.send_400_response(f"its head has over {self.longest:,} bytes.")

    def send_400_response(self, msg: str) -> None:
        if self.transport.is_closing():
            return
        body = dumps(problem(400, f"What came is no request of HTTP/1.1 that is taken: {msg}"))
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncache-control: no-store\r\n"
            b"content-type: %b\r\ncontent-length: %d\r\n\r\n%b"
            % (PROBLEM.encode(), len(body), body)
        )
        self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _cancel(self, which: str) -> None:
        if (timer := getattr(self, which)) is not None:
            timer.cancel()
            setattr(self, which, None)

    def _give_up(self) -> None:
        self._alarm = None
        if not self._is_answering() and not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """It swallows the signals that it obeys: stopping on request is no failure.

    `prepare` runs in a thread of its own, because requests that come meanwhile are answered.
    """

    def __init__(
        self, config: uvicorn.Config, traffic: Traffic, address: str, prepare: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._traffic, self._address, self._prepare = traffic, address, prepare

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        threading.Thread(target=self._get_ready, name="tidewolf-prepare", daemon=True).start()

    def _get_ready(self) -> None:
        with suppress(Exception):  # what cannot be prepared is refused when it is asked for
            self._prepare()
        if not self.should_exit:
            self._traffic.ready = True
            sys.stdout.write(f"tidewolf serves {self._address}\n")
            sys.stdout.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(128 + sig)
        self._traffic.ready = False
        self.should_exit = True
