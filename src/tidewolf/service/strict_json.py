"""JSON as it is meant: what could be read in two ways is refused, in a sentence.

    refused                         because
    NaN, Infinity, 1e999            every number is finite
    {"a": 1, "a": 2}                nobody can say which one counts
    more than 64 levels             no body of ours has more than a few
    invalid UTF-8, a lone half of a pair (\\ud800), the character U+0000
                                    no text that files and databases can hold

A whole number of more than 18 digits is read as the nearest float, as other languages do.
What is written has no NaN either: null stands where a number is not finite.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

import orjson

from tidewolf.core.arguments import shown
from tidewolf.core.errors import InvalidInput, NotFinite

DEEPEST = 64
"""Levels of lists and objects inside each other."""
_LONGEST = 18
"""Digits of a whole number that is kept as one."""
_LARGE = re.compile(rb"\d[eE]\+?\d{3}|\d{19}")
"""Numbers that may be beyond the largest, or have many digits; the others are read as they are."""
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
    >>> from tidewolf.service.strict_json import loads
    >>> loads(b'{"costs": [1, 2.5]}')
    {'costs': [1, 2.5]}
    >>> loads(b'{"round": 1, "round": 2}')
    Traceback (most recent call last):
    ...
    tidewolf.core.errors.InvalidInput: The body says 'round' twice.
    """
    try:
        found = (_CAREFUL if _LARGE.search(raw) else _PLAIN).decode(raw.decode())
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
        _require_shallow(found)
    if _ODD.search(raw):
        _require_text(found)
    return found


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
    >>> from tidewolf.service.strict_json import dumps
    >>> dumps({"cost": 1.5, "violation": float("inf")})
    b'{"cost":1.5,"violation":null}'
    """
    return orjson.dumps(body)


def _too_deep() -> InvalidInput:
    return InvalidInput(
        f"The body has lists or objects nested deeper than {DEEPEST} levels: send a flatter one."
    )


def _require_shallow(found: Any) -> None:
    level, depth = [found], 1
    while level := [each for one in level if isinstance(one, list | dict) for each in _inside(one)]:
        depth += 1
        if depth > DEEPEST:
            raise _too_deep()


def _inside(one: list[Any] | dict[str, Any]) -> Iterator[Any]:
    """What may have more inside."""
    for each in one.values() if isinstance(one, dict) else one:
        if isinstance(each, list | dict):
            yield each


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
    return int(text) if len(text) <= _LONGEST else _number(text)


_PLAIN = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once)
_CAREFUL = json.JSONDecoder(
    parse_float=_number,
    parse_int=_whole,
    parse_constant=_refuse,
    object_pairs_hook=_once,
)
