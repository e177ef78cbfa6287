"""Bodies, read as they come: never more than may be, never for longer than may be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tidewolf.core.arguments import shown
from tidewolf.core.errors import InvalidInput
from tidewolf.service.problems import Refused
from tidewolf.service.strict_json import loads

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

    from tidewolf.service.overload import Traffic

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
    >>> from tidewolf.service.request_bodies import parsed_size
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
    >>> from tidewolf.service.request_bodies import as_object
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
