"""A line of JSON: a row, or what is known of the coming round.

    {"time": "2026-03-01T12:00", "costs": {"SEA > DEN": 1.2, ...}, "capacities": {...},
     "played": {...}, "unavailable": ["DEN > NYC"]}

A row says what a round turned out to be: costs, capacities, demands, weights and budget, by name or
as a list, and `played`, where that was not the decision. What is `unavailable`, the `context` and
the points of `advice` are of the decision that follows the row. A line that says nothing but these,
and perhaps a `time`, is of the coming round, which is then decided anew. `time` and `round` say
which row it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from tidewolf.core.arguments import shown
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import nearest_names
from tidewolf.live.clock import Time, time_of

NUMBERS = ("costs", "capacities", "demands", "weights", "budgets")
INFO = ("unavailable", "context", "advice")
KEYS = ("time", "round", *NUMBERS, "played", *INFO)
LONGEST = 1 << 26
"""Bytes of a line, at most."""


class Line(NamedTuple):
    """What a line says.

    Parameters
    ----------
    time : Time, optional
        When the round is.
    round : int, optional
        Its number, from 1.
    numbers : mapping
        What the round turned out to be, by key; empty where the line is no row.
    played : mapping or list, optional
        What was really done, where it was not the decision.
    info : mapping
        What is known of the coming round: `unavailable`, `context`, `advice`.

    Examples
    --------
    >>> from tidewolf.live import parse
    >>> line = parse('{"time": "2026-03-01T12:00", "costs": [1.0, 2.0]}')
    >>> line.is_row, line.numbers
    (True, {'costs': [1.0, 2.0]})
    """

    time: Time | None = None
    round: int | None = None
    numbers: Mapping[str, Any] = {}
    played: Any = None
    info: Mapping[str, Any] = {}

    @property
    def is_row(self) -> bool:
        """Whether it says what a round turned out to be."""
        return bool(self.numbers) or self.played is not None


def parse(text: str | bytes) -> Line:
    """What a line of JSON says.

    Parameters
    ----------
    text : str or bytes
        The line, in UTF-8.

    Returns
    -------
    Line
        A row, or what is known of the coming round.

    Raises
    ------
    InvalidInput
        Where it is no JSON object, or has a key that nobody knows.

    Examples
    --------
    >>> from tidewolf.live import parse
    >>> parse('{"unavailable": ["DEN > NYC"]}').info
    {'unavailable': ['DEN > NYC']}
    """
    found = _read(text)
    if "budget" in found:
        found.setdefault("budgets", found.pop("budget"))
    for key in found:
        if key not in KEYS:
            near = nearest_names(key, KEYS) or f"a row has {', '.join(KEYS)}"
            raise InvalidInput(f"A row has no {key!r}: {near}.")
    said = {key: value for key, value in found.items() if value is not None}
    if not said:
        raise InvalidInput(
            'The line says nothing; a row is a line such as {"costs": {"SEA > DEN": 1.2}}.'
        )
    return Line(
        time=time_of(said["time"]) if "time" in said else None,
        round=_round(said["round"]) if "round" in said else None,
        numbers={key: said[key] for key in NUMBERS if key in said},
        played=said.get("played"),
        info={key: said[key] for key in INFO if key in said},
    )


def _read(text: str | bytes) -> dict[str, Any]:
    """The object in a line of JSON."""
    if len(text) > LONGEST:
        raise InvalidInput(f"The line has {len(text):,} bytes; a row has at most {LONGEST:,}.")
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        found = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The line is no text in UTF-8: {error}.") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"The line is no JSON: {error.msg[:1].lower()}{error.msg[1:]} at character "
            f"{error.pos + 1}."
        ) from None
    except RecursionError:
        raise InvalidInput("The line is no row: lists are nested too deeply.") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise InvalidInput(f"The line is no row: {error}.") from None
    if not isinstance(found, dict):
        raise InvalidInput(
            f'A row is an object such as {{"costs": {{"SEA > DEN": 1.2}}}}, not {shown(found)}.'
        )
    return found


def _refuse(constant: str) -> NoReturn:
    raise InvalidInput(f"{constant} is no finite number, and every number of a row is.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs of an object, no key twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidInput(f"The line says {twice!r} twice.")
    return found


def _round(given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise InvalidInput(f"The round of a row is its number, from 1, not {shown(given)}.")
    return given
