"""Tables of `python -m benchmarks public`: as Markdown, on the screen, and against a page.

A page is compared cell by cell: words must be the same, numbers near. Left out are columns whose
name speaks of seconds, which differ from machine to machine, and cells that were not measured on
one of the two sides (`ABSENT`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ABSENT = "not measured here"
"""How a cell begins whose data were absent."""


class Skipped(Exception):
    """A subject, or a part of it, that cannot be measured here, and why."""


class Table(NamedTuple):
    """A table of the page."""

    name: str
    """of its block"""
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def markdown(self) -> str:
        """The table as it stands in the page."""
        lines = [_row(self.head), "|---" * len(self.head) + "|"]
        return "\n".join([*lines, *map(_row, self.rows)])

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (self.head, *self.rows)
        ]
        return "\n".join(f"  {line}" for line in lines)


def parsed(name: str, body: str) -> Table:
    """The table in a block of a page."""
    lines = [line for line in body.splitlines() if line.startswith("|")]
    head, _, *rows = [tuple(cell.strip() for cell in line[1:-1].split("|")) for line in lines]
    return Table(name, head, rows)


def differences(page: Table, now: Table, near: float) -> list[str]:
    """What of a page's table is not what was measured now, `near` being a share of the number."""
    if page.head != now.head:
        return [f"{page.name}: columns {page.head} on the page, {now.head} now"]
    old, new = ({row[0]: row for row in table.rows} for table in (page, now))
    found = [f"{page.name}: {key!r} is on one side only" for key in sorted(old.keys() ^ new.keys())]
    for key in [row[0] for row in page.rows if row[0] in new]:
        for column, before, after in zip(page.head, old[key], new[key], strict=True):
            if "seconds" not in column and not _alike(before, after, near):
                found.append(f"{page.name}: {key}, {column}: {before} on the page, {after} now")
    return found


def _alike(before: str, after: str, near: float) -> bool:
    if ABSENT in before or ABSENT in after:
        return True
    old, new = before.split(), after.split()
    return len(old) == len(new) and all(_near(a, b, near) for a, b in zip(old, new, strict=True))


def _near(before: str, after: str, near: float) -> bool:
    if before == after:
        return True
    try:
        a, b = (float(word.strip("[](),;%*").replace(",", "")) for word in (before, after))
    except ValueError:
        return False
    return abs(a - b) <= near * max(abs(a), abs(b))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
