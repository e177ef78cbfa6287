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

LONGEST = 16 << 20
"""Bytes of a body, at most."""
SECONDS = 30.0
"""How long a body may take."""


async def read_body(
    scope: Scope, receive: Receive, longest: int = LONGEST, seconds: float = SECONDS
) -> bytes:
    """The body of a request.

    Parameters
    ----------
    scope : mapping
        The request, as ASGI has it.
    receive : callable
        Where its pieces come from.
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
    """
    for header, value in scope["headers"]:
        if header == b"content-length" and value.isdigit() and int(value) > longest:
            raise _too_long(longest)
        if header == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise Refused(415, "Bodies are sent as they are, without a Content-Encoding.")
    try:
        async with asyncio.timeout(seconds):
            return await _pieces(receive, longest)
    except TimeoutError:
        raise Refused(
            408, f"The body did not arrive within {seconds:g} seconds.", (b"connection", b"close")
        ) from None


async def _pieces(receive: Receive, longest: int) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        pieces, length = [body], len(body)
        while message.get("more_body", False) and length <= longest:
            message = await receive()
            pieces.append(message.get("body", b""))
            length += len(pieces[-1])
        body = b"".join(pieces)
    if message["type"] == "http.disconnect":
        raise Refused(400, "The body ends in the middle.")
    if len(body) > longest:
        raise _too_long(longest)
    return body


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
