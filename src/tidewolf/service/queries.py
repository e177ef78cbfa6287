"""What stands behind the question mark of an address: known keys, each once, each checked."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from tidewolf.core.arguments import shown
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import listed, nearest_names

MOST = 1000
"""What one answer lists, at most."""


def read_query(raw: bytes, *known: str) -> dict[str, str]:
    """The keys of a query, and what they say.

    Parameters
    ----------
    raw : bytes
        The query.
    known : str
        Keys that it may have.

    Returns
    -------
    dict
        Texts by key.

    Raises
    ------
    InvalidInput
        Where it has another key, or one twice, or is no text.

    Examples
    --------
    >>> from tidewolf.service.queries import read_query
    >>> read_query(b"prefix=lisbon-&most=5", "prefix", "after", "most")
    {'prefix': 'lisbon-', 'most': '5'}
    """
    if not raw:
        return {}
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20
        )
    except ValueError:
        raise InvalidInput("What stands behind ? is no query in UTF-8.") from None
    found = dict(pairs)
    for key in found:
        if key not in known:
            near = nearest_names(key, known) or f"there is {listed(known)}" * bool(known)
            raise InvalidInput(f"The query has no key {shown(key)}{f': {near}' * bool(near)}.")
    if len(found) < len(pairs):
        raise InvalidInput("The query has a key twice.")
    if any("\0" in value for value in found.values()):
        raise InvalidInput("The query has the character U+0000, which no text has.")
    return found


def as_whole(
    query: Mapping[str, str], key: str, default: int, least: int, most: int = 10**15
) -> int:
    """A whole number of a query.

    Parameters
    ----------
    query : mapping
        What it says.
    key : str
        Under which key.
    default : int
        What counts where there is none.
    least, most : int
        What it may be.

    Returns
    -------
    int
        The number.

    Examples
    --------
    >>> from tidewolf.service.queries import as_whole
    >>> as_whole({"most": "5"}, "most", 100, 1, 1000)
    5
    """
    text = query.get(key)
    if text is None:
        return default
    number = whole(text)
    if number is None or not least <= number <= most:
        raise InvalidInput(
            f"{key} is a whole number from {least:,} to {most:,}, not {shown(text)}."
        )
    return number


def whole(text: str) -> int | None:
    """The whole number that a text is; None where it is none, or one of more than 15 digits.

    Parameters
    ----------
    text : str
        Digits.

    Returns
    -------
    int or None
        The number.

    Examples
    --------
    >>> from tidewolf.service.queries import whole
    >>> whole("12"), whole("-1"), whole("1e3")
    (12, None, None)
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= 15
    return int(text) if is_number else None
