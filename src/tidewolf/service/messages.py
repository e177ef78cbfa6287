"""Bodies of requests and responses: strict JSON in, JSON and problems (RFC 9457) out.

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
finite. The memory that a body needs is estimated before it is parsed.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import traceback
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from starlette.responses import Response

from tidewolf import __version__
from tidewolf.core.arguments import shown
from tidewolf.core.errors import (
    AlreadyThere,
    CheckpointError,
    HeldElsewhere,
    InvalidInput,
    MissingExtra,
    OtherContent,
    Overloaded,
    TidewolfError,
    TooMany,
    UnknownSession,
)

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

    from tidewolf.service.access import Traffic

PROBLEM = "application/problem+json"
dumps = orjson.dumps

# --- problems -------------------------------------------------------------------------------------

_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""Of statuses that Python calls by older names."""
_STATUS: dict[type[BaseException], int] = {
    UnknownSession: 404,
    OtherContent: 409,
    AlreadyThere: 409,
    HeldElsewhere: 409,
    Overloaded: 503,
    TooMany: 429,
    CheckpointError: 503,
    MissingExtra: 501,
    TidewolfError: 422,
    MemoryError: 422,
}
"""The first that an error is an instance of counts."""


class Refused(Exception):
    """A request that HTTP itself refuses, with a sentence and headers."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def problem(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """A problem as plain data."""
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    found = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return found | more | {"version": __version__}


def status_of(error: BaseException) -> int:
    """The HTTP status of an error; 500 if the error was not expected."""
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
        if isinstance(error, HeldElsewhere):
            more["holder"] = error.holder
        if status in (429, 503):
            headers["retry-after"] = retry_after(getattr(error, "retry_after", 1.0))
    return Response(dumps(problem(status, detail, **more)), status, headers, PROBLEM)


def retry_after(seconds: float) -> str:
    """When to come again, in whole seconds, at least one."""
    return str(max(1, math.ceil(seconds)))


# --- bodies ---------------------------------------------------------------------------------------

LONGEST = 4 << 20
"""Bytes of a body, at most."""
LARGEST = 32
"""Bytes of memory for each byte of the longest body, at most, once a body is parsed."""
SHORT = 1 << 16
"""Bytes of a body that takes little memory, whatever it holds."""
_COSTS = {b",": 100, b":": 128, b"[": 64, b"{": 200}
"""Bytes of memory for what a character of JSON may begin."""
SECONDS = 30.0
"""How long a body may take."""


async def read_body(
    scope: Scope, receive: Receive, traffic: Traffic, longest: int, seconds: float
) -> bytes:
    """The body of a request; its bytes are held in `traffic`, and the caller gives them back.

    Raises
    ------
    Refused
        If it is longer, takes longer, is compressed, or does not come to its end.
    Overloaded
        If too much is being read already.
    """
    for header, value in scope["headers"]:
        if header == b"content-length" and value.isdigit() and int(value) > longest:
            raise _too_long(longest)
        if header == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise Refused(415, "Bodies are sent as they are, without a Content-Encoding.")
    pieces, length, more = list[bytes](), 0, True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(400, "The body ends in the middle.")
                piece: bytes = message.get("body", b"")
                if length + len(piece) > longest:
                    raise _too_long(longest)
                traffic.hold(len(piece))
                pieces.append(piece)
                length += len(piece)
                more = message.get("more_body", False)
    except BaseException as error:
        traffic.held -= length
        if isinstance(error, TimeoutError):
            detail = f"The body did not arrive within {seconds:g} seconds."
            raise Refused(408, detail, connection="close") from None
        raise
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


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


def _too_long(longest: int) -> Refused:
    return Refused(413, f"A body has at most {longest:,} bytes: send less at a time.")


# --- JSON -----------------------------------------------------------------------------------------

DEEPEST = 64
"""Levels of lists and objects inside each other."""
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def as_object(raw: bytes, may_be_empty: bool = False) -> dict[str, Any]:
    """The object in a body; an empty body may be an object without keys."""
    if not raw:
        if may_be_empty:
            return {}
        raise Refused(400, "The body is empty, and a JSON object is needed.")
    try:
        found = loads(raw)
    except InvalidInput as error:
        raise Refused(400, str(error)) from None
    if not isinstance(found, dict):
        raise InvalidInput(f"The body must be a JSON object, not {shown(found)}.")
    return found


def loads(raw: bytes) -> Any:
    """What a text in JSON says, read strictly.

    Raises
    ------
    InvalidInput
        If it is no JSON, or could be read in two ways.

    Examples
    --------
    >>> from tidewolf.service.messages import loads
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
        detail = f"The body is no JSON: {error.msg} at character {error.pos + 1}."
        raise InvalidInput(detail) from None
    keys, depth, level = 0, 0, [found]
    while level:  # one level after the other
        inside, is_deeper = list[Any](), False
        for one in level:
            if type(one) is dict:
                keys += len(one)
                inside += one.values()
                is_deeper = True
            elif type(one) is list:
                inside += one
                is_deeper = True
        level, depth = inside, depth + is_deeper
    if depth > DEEPEST:
        raise InvalidInput(f"The body is nested deeper than {DEEPEST} levels: send a flatter one.")
    if keys != raw.count(b'":'):
        json.loads(raw, object_pairs_hook=_once)
    if _NUL.search(raw):
        raise InvalidInput("The body has the character U+0000, which no text has: leave it out.")
    return found


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a key that an object has twice."""
    ((key, count),) = Counter(key for key, _ in pairs).most_common(1) or [("", 0)]
    if count > 1:
        raise InvalidInput(f"The body has the key {shown(key)} twice.")
