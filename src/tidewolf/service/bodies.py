"""Requests read: keys that nobody knows are refused, and rounds count from 1 in every sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tidewolf.core.arguments import shown
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import nearest_names

LONGEST_REASON = 500
"""Characters of a reason, at most."""
LARGEST_ROUND = 2**53
"""Rounds are smaller: every number of JSON holds them."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a session, or a token, may be called."""
_LISTED = re.compile(r"(expired, with nothing told of (?:them|it)(?::|, last) )([\d, ]+)")
_ROUND = re.compile(r"(\b[Rr]ound |\bround=|\brollback\()(\d+)")


def as_body(given: Any, keys: Sequence[str], what: str) -> dict[str, Any]:
    """The object of a request, keys without a value left out."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{what} is an object, not {shown(given)}.")
    for key in given:
        if key not in keys:
            near = nearest_names(str(key), keys) or f"it has {', '.join(keys)}"
            raise InvalidInput(f"{what} has no {shown(key)}: {near}.")
    return {key: value for key, value in given.items() if value is not None}


def as_name(given: Any) -> str:
    """The name of a session."""
    if isinstance(given, str) and NAME.fullmatch(given):
        return given
    raise InvalidInput(
        "The name of a session is 1 to 100 letters, digits, dots, dashes and underscores, and "
        f"begins with a letter or a digit: {shown(given)} is none."
    )


def as_round(given: Any) -> int:
    """A round, given from 1, as sessions count it: from 0."""
    is_whole = isinstance(given, int) and not isinstance(given, bool)
    if not is_whole or not 1 <= given < LARGEST_ROUND:
        raise InvalidInput(f"The round is its number, from 1, not {shown(given)}.")
    return int(given) - 1


def as_seconds(given: Any, what: str) -> float:
    """A number of seconds, at least 0."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0.0 <= given <= 1e9:
        raise InvalidInput(f"{what} is a number of seconds, at least 0, not {shown(given)}.")
    return float(given)


def as_reason(given: Any) -> str:
    """Why something is done, for the audit."""
    if given is None:
        return ""
    if not isinstance(given, str) or len(given) > LONGEST_REASON:
        raise InvalidInput(
            f"Why something is done is text of at most {LONGEST_REASON} characters, not "
            f"{shown(given)}."
        )
    return given


def noted_from_one(note: str) -> str:
    """A note of a session in the numbers that requests have."""

    def more(found: re.Match[str]) -> str:
        return f"{found[1]}{', '.join(str(int(one) + 1) for one in found[2].split(', '))}"

    return _LISTED.sub(more, note)


@contextmanager
def counted_from_one() -> Iterator[None]:
    """Refusals of a session in the numbers that requests have: it counts rounds from 0."""
    try:
        yield
    except InvalidInput as error:
        said = _ROUND.sub(lambda found: f"{found[1]}{int(found[2]) + 1}", str(error))
        if said == str(error):
            raise
        raise type(error)(said) from None
