"""Tables of pages as plain data: cells with a text, small lines beneath, a run's line before, or a
bar behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tidewolf.report.styles import RunStyle


class Bar(NamedTuple):
    """A stretch of a whole, as shares of it."""

    start: float
    stop: float
    hue: int = 0


class Cell(NamedTuple):
    """One cell."""

    text: str
    lines: tuple[str, ...] = ()
    style: RunStyle | None = None
    bar: Bar | None = None


class Rows(NamedTuple):
    """Rows that belong together, under a head of their own where they have one."""

    rows: list[list[Cell]]
    head: Cell | None = None


class Table(NamedTuple):
    """A table; the first cell of a row is its heading."""

    name: str
    """what it is called where it cannot be seen"""
    titles: tuple[str, ...]
    groups: list[Rows]
    stacked: bool = False
    """whether a narrow page puts the cells of a row under each other"""
    kind: str = ""
    """a class of the style sheet"""


def table(
    name: str,
    titles: Sequence[str],
    rows: Iterable[Sequence[Cell | str]],
    *,
    stacked: bool = False,
    kind: str = "",
) -> Table:
    """A table without groups; a text is a cell of its own."""
    return Table(name, tuple(titles), [Rows(list(map(cells, rows)))], stacked, kind)


def cells(row: Iterable[Cell | str]) -> list[Cell]:
    """A row; a text is a cell of its own."""
    return [each if isinstance(each, Cell) else Cell(each) for each in row]
