"""What a reader finds of a table: names, numbers, and times that nobody has looked at yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tidewolf.core.errors import InvalidInput
from tidewolf.core.frames import TIMES
from tidewolf.core.types import Floats


class Columns(NamedTuple):
    """Columns of numbers, NaN where a cell is empty."""

    name: str
    """the file, as sentences call it"""
    times: Any
    """numbers, dates or texts, one a row; None where there are none"""
    columns: tuple[str, ...]
    values: Floats
    places: Sequence[str]
    """where each row stands"""
    time_places: Sequence[str] = ()
    """where each time stands"""
    utc: bool = False
    """whether the times are known to be in UTC"""


def named(columns: Sequence[str], name: str) -> tuple[str, ...]:
    """Column names, each once."""
    if not columns:
        raise InvalidInput(f"{name} has times and no other column.")
    seen = set[str]()
    for i, column in enumerate(columns):
        if column == "":
            raise InvalidInput(f"{name}: column {i + 1} beside the times has no name.")
        if column in seen:
            raise InvalidInput(f"{name}: two columns are called {column!r}.")
        seen.add(column)
    return tuple(columns)


def is_time(name: str) -> bool:
    """Whether a first column of this name holds times."""
    return name.lower() in TIMES


def row_places(name: str, rows: int) -> list[str]:
    """Where rows stand that are counted from 1."""
    return [f"{name}, row {i}" for i in range(1, rows + 1)]
