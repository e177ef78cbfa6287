"""Bodies of requests and answers: strict JSON in, answers and problems (RFC 9457) out.

    read                            refused, because
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

A whole number beyond 64 bits is read as the nearest float. orjson reads what has nothing unusual:
as many keys as there are '":' in the text, so none is there twice. The rest is read by `json`.
Null is written if a number is not finite.

Answers are not kept by browsers or proxies, their kind is never guessed, and a page may use what
its policy names and nothing else, in no frame.
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
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import orjson

from tidewolf import __version__
from tidewolf.core.arguments import shown
from tidewolf.core.errors import (
    AlreadyThere,
    CheckpointError,
    HeldElsewhere,
    InvalidInput,
    MissingExtra,
    NotFinite,
    OtherContent,
    Overloaded,
    TidewolfError,
    TooMany,
    UnknownSession,
)

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from tidewolf.service.traffic import Traffic

JSON = b"application/json"
PROBLEM = b"application/problem+json"
HTML = b"text/html; charset=utf-8"
TEXT = b"text/plain; charset=utf-8"

_SAFE = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class Answer(NamedTuple):
    """What a request is answered with.

    Parameters
    ----------
    status : int
        The status of HTTP.
    body : bytes
        What is sent.
    kind : bytes, default JSON
        Its media type.
    headers : tuple of pairs, default ()
        More headers.

    Examples
    --------
    >>> from tidewolf.service.messages import Answer
    >>> Answer(200, b"{}").kind
    b'application/json'
    """

    status: int
    body: bytes
    kind: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Send) -> None:
        """Send it."""
        length = b"%d" % len(self.body)
        headers = [(b"content-type", self.kind), (b"content-length", length), *_SAFE, *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def page(html: str, policy: str) -> Answer:
    """A page.

    Parameters
    ----------
    html : str
        All of it.
    policy : str
        Its Content-Security-Policy: what it may load and run.

    Returns
    -------
    Answer
        With the headers that a page needs.

    Examples
    --------
    >>> from tidewolf.service.messages import page
    >>> page("<!doctype html>", "default-src 'none'").headers[0]
    (b'content-security-policy', b"default-src 'none'")
    """
    headers = ((b"content-security-policy", policy.encode()), (b"x-frame-options", b"DENY"))
    return Answer(200, html.encode("utf-8", "replace"), HTML, headers)


# --- problems -------------------------------------------------------------------------------------

_UNEXPECTED = "Something went wrong in the server, which is a mistake of ours; its log says what."
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""Of statuses that Python calls by older names."""
_STATUS: tuple[tuple[type[BaseException], int], ...] = (
    (UnknownSession, 404),
    (OtherContent, 409),
    (AlreadyThere, 409),
    (HeldElsewhere, 409),
    (Overloaded, 503),
    (TooMany, 429),
    (CheckpointError, 503),
    (MissingExtra, 501),
    (TidewolfError, 422),
    (MemoryError, 422),
)


class Refused(Exception):
    """A request that HTTP itself refuses.

    Parameters
    ----------
    status : int
        The status of HTTP.
    detail : str
        A sentence: what is wrong, what to do.
    headers : pairs of bytes
        More headers.

    Examples
    --------
    >>> from tidewolf.service.messages import Refused, problem_of
    >>> problem_of(Refused(413, "The body is too long.")).status
    413
    """

    def __init__(self, status: int, detail: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers


def problem(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """A problem as a dict.

    Parameters
    ----------
    status : int
        The status of HTTP.
    detail : str
        A sentence.
    more : object
        More keys.

    Returns
    -------
    dict
        With "type", "title", "status", "detail" and "version".

    Examples
    --------
    >>> from tidewolf.service.messages import problem
    >>> problem(404, "There is no session called 'a'.")["title"]
    'Not Found'
    """
    return {
        "type": "about:blank",
        "title": _TITLES.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **more,
        "version": __version__,
    }


def problem_of(error: BaseException) -> Answer:
    """The answer to a request that ended in this error.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Returns
    -------
    Answer
        A problem. The cause of an unexpected error is written to stderr, not into the answer.

    Examples
    --------
    >>> from tidewolf.core.errors import TooMany
    >>> from tidewolf.service.messages import problem_of
    >>> answer = problem_of(TooMany("At most 10 requests a second.", retry_after=0.2))
    >>> answer.status, answer.headers
    (429, ((b'retry-after', b'1'),))
    >>> b'"TooMany"' in answer.body
    True
    """
    if isinstance(error, Refused):
        return _answer(problem(error.status, str(error)), error.headers)
    status = status_of(error)
    if status == 500:
        log_unexpected(error)
        return _answer(problem(500, _UNEXPECTED))
    if isinstance(error, MemoryError):
        return _answer(problem(status, "There is not enough memory for this: ask for less."))
    more = {"title": type(error).__name__}
    if isinstance(error, HeldElsewhere):
        more["holder"] = error.holder
    later = (retry_after(getattr(error, "retry_after", 1.0)),) if status in (429, 503) else ()
    return _answer(problem(status, str(error), **more), later)


def status_of(error: BaseException) -> int:
    """The HTTP status of an error; 500 if the error was not expected.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Returns
    -------
    int
        The status.

    Examples
    --------
    >>> from tidewolf.core.errors import WrongShape
    >>> from tidewolf.service.messages import status_of
    >>> status_of(WrongShape("Three numbers are needed.")), status_of(ZeroDivisionError())
    (422, 500)
    """
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def retry_after(seconds: float) -> tuple[bytes, bytes]:
    """The header that says when to come again, in whole seconds, at least one.

    Parameters
    ----------
    seconds : float
        When. Unit: seconds.

    Returns
    -------
    pair of bytes
        The header.

    Examples
    --------
    >>> from tidewolf.service.messages import retry_after
    >>> retry_after(2.2)
    (b'retry-after', b'3')
    """
    return (b"retry-after", b"%d" % max(1, math.ceil(seconds)))


def log_unexpected(error: BaseException) -> None:
    """Write an unexpected error to stderr: one line, and the traceback.

    Parameters
    ----------
    error : BaseException
        What was raised.
    """
    where = "".join(traceback.format_exception(error))
    sys.stderr.write(f"tidewolf: a request ended in {type(error).__name__}.\n{where}")
    sys.stderr.flush()


def _answer(body: dict[str, Any], headers: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    return Answer(body["status"], dumps(body), PROBLEM, headers)


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
    scope: Scope,
    receive: Receive,
    traffic: Traffic,
    longest: int = LONGEST,
    seconds: float = SECONDS,
) -> bytes:
    """The body of a request; its bytes are held in `traffic`, and who asked gives them back.

    Parameters
    ----------
    scope : mapping
        The request, as ASGI has it.
    receive : callable
        Where its pieces come from.
    traffic : Traffic
        What is under way.
    longest : int, default 4194304
        Bytes that it may have.
    seconds : float, default 30.0
        How long it may take.

    Returns
    -------
    bytes
        All of it.

    Raises
    ------
    Refused
        If it is longer, takes longer, is compressed, or does not come to its end.
    Overloaded
        Where too much is being read already.
    """
    for header, value in scope["headers"]:
        if header == b"content-length" and value.isdigit() and int(value) > longest:
            raise _too_long(longest)
        if header == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise Refused(415, "Bodies are sent as they are, without a Content-Encoding.")
    pieces: list[bytes] = []
    try:
        async with asyncio.timeout(seconds):
            await _read(receive, traffic, longest, pieces)
    except BaseException as error:
        traffic.held -= sum(map(len, pieces))
        if isinstance(error, TimeoutError):
            raise Refused(
                408,
                f"The body did not arrive within {seconds:g} seconds.",
                (b"connection", b"close"),
            ) from None
        raise
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _read(receive: Receive, traffic: Traffic, longest: int, pieces: list[bytes]) -> None:
    """All pieces of a body, each held as it comes."""
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "The body ends in the middle.")
        piece: bytes = message.get("body", b"")
        length += len(piece)
        if length > longest:
            raise _too_long(longest)
        traffic.hold(len(piece))
        pieces.append(piece)
        more = message.get("more_body", False)


def parsed_size(raw: bytes, longest: int = LONGEST) -> int:
    """How much memory a body takes once it is parsed, estimated from above before that.

    Parameters
    ----------
    raw : bytes
        The body.
    longest : int, default 4194304
        Bytes that it may have.

    Returns
    -------
    int
        Bytes; 0 if the body is short.

    Raises
    ------
    Refused
        If it is more than `LARGEST` times the longest body: `{},` has 3 bytes, and takes 72.

    Examples
    --------
    >>> from tidewolf.service.messages import parsed_size
    >>> parsed_size(b'{"round": 3}'), parsed_size(b"1," * 100_000)
    (0, 12400000)
    """
    if len(raw) <= SHORT:
        return 0
    size = 12 * len(raw) + sum(raw.count(mark) * cost for mark, cost in _COSTS.items())
    if size > LARGEST * longest:
        raise Refused(413, "The body has too many values: send less at a time.")
    return size


def _too_long(longest: int) -> Refused:
    return Refused(413, f"A body has at most {longest:,} bytes: send less at a time.")


def as_object(raw: bytes, may_be_empty: bool = False) -> dict[str, Any]:
    """The object in a body.

    Parameters
    ----------
    raw : bytes
        The body.
    may_be_empty : bool, default False
        Whether no body is an object without keys.

    Returns
    -------
    dict
        What it says.

    Raises
    ------
    Refused
        Where it is no JSON.
    InvalidInput
        Where it is no object.

    Examples
    --------
    >>> from tidewolf.service.messages import as_object
    >>> as_object(b'{"round": 3}'), as_object(b"", may_be_empty=True)
    ({'round': 3}, {})
    """
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


# --- JSON -----------------------------------------------------------------------------------------

DEEPEST = 64
"""Levels of lists and objects inside each other."""
_ODD = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")
"""Escapes of what may be no text."""


def loads(raw: bytes) -> Any:
    """What a text in JSON says.

    Parameters
    ----------
    raw : bytes
        The text, in UTF-8.

    Returns
    -------
    object
        Numbers, texts, lists, dicts, True, False and None.

    Raises
    ------
    InvalidInput
        Where it is no JSON, or could be read in two ways.

    Examples
    --------
    >>> from tidewolf.service.messages import loads
    >>> loads(b'{"costs": [1, 2.5]}')
    {'costs': [1, 2.5]}
    >>> loads(b'{"round": 1, "round": 2}')
    Traceback (most recent call last):
    ...
    tidewolf.core.errors.InvalidInput: The body says 'round' twice.
    """
    try:
        found = _quickly(raw)
        if found is None:
            found = _DECODER.decode(raw.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The body is no text in UTF-8: {error.reason} at byte {error.start + 1}."
        ) from None
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"The body is no JSON: {error.msg[:1].lower()}{error.msg[1:]} at character "
            f"{error.pos + 1}."
        ) from None
    except RecursionError:
        raise _too_deep() from None
    if raw.count(b"[") + raw.count(b"{") > DEEPEST:
        _require_shallow([found])
    if _ODD.search(raw):
        _require_text(found)
    return found


def _quickly(raw: bytes) -> dict[str, Any] | None:
    """An object that has nothing unusual; None where `json` has to look."""
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if type(found) is not dict:
        return None
    count, level = 0, [found]
    for one in level:  # which grows
        count += len(one)
        level += [each for each in one.values() if type(each) is dict]
    return found if count == raw.count(b'":') else None


def dumps(body: Any) -> bytes:
    """A body as JSON; null where a number is not finite.

    Parameters
    ----------
    body : object
        Numbers, texts, lists, dicts, True, False and None.

    Returns
    -------
    bytes
        The text, in UTF-8.

    Examples
    --------
    >>> from tidewolf.service.messages import dumps
    >>> dumps({"cost": 1.5, "violation": float("inf")})
    b'{"cost":1.5,"violation":null}'
    """
    return orjson.dumps(body)


def _too_deep() -> InvalidInput:
    return InvalidInput(
        f"The body has lists or objects nested deeper than {DEEPEST} levels: send a flatter one."
    )


def _require_shallow(found: Any) -> None:
    level, depth = [found], 0
    while level := [
        each
        for one in level
        for each in (one.values() if isinstance(one, dict) else one)
        if isinstance(each, list | dict)
    ]:
        depth += 1
        if depth > DEEPEST:
            raise _too_deep()


def _require_text(found: Any) -> None:
    """Refuse what no file and no database can hold."""
    text = json.dumps(found, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"The body has \\u{ord(text[error.start]):04x} alone, one half of a character: send "
            "both halves."
        ) from None
    if "\\u0000" in text.replace("\\\\", ""):
        raise InvalidInput("The body has the character U+0000, which no text has: leave it out.")


def _refuse(constant: str) -> NoReturn:
    raise NotFinite(f"{constant} is no finite number, and every number of a body is.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs of an object, no key twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise InvalidInput(f"The body says {shown(twice)} twice.")
    return found


def _number(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        said = text if len(text) <= 24 else f"{text[:20]}..."
        raise NotFinite(f"{said} is beyond the largest number there is, 1.8e308.")
    return number


def _whole(text: str) -> int | float:
    whole = int(text) if len(text) <= _LONGEST else _BEYOND
    return whole if -_BEYOND // 2 <= whole < _BEYOND else _number(text)


_BEYOND = 1 << 64
_LONGEST = len(str(_BEYOND))
_DECODER = json.JSONDecoder(
    parse_float=_number,
    parse_int=_whole,
    parse_constant=_refuse,
    object_pairs_hook=_once,
)
