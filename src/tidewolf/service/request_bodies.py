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

LONGEST = 16 << 20
"""Bytes of a body, at most."""
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
    longest : int, default 16777216
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
        Where it is longer, takes longer, is compressed, or does not come to its end.
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
