"""Tables in marked blocks of the pages in docs/benchmarks, and the command that writes them.

    <!-- begin NAME: python -m benchmarks table NAME -->
    | a table |
    <!-- end NAME -->

    python -m benchmarks table network              prints one: of a suite, or of ranks, from its
                                                    results; the others are measured
    python -m benchmarks table network --write      writes it into its page, and draws its pictures

Tests compare a page cell by cell: words must be equal, numbers near. Columns whose name contains
"seconds" differ from machine to machine and are left out, as are cells that were not measured on
one side (`ABSENT`). Tables whose data are absent are skipped, with the reason.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import ROOT
from tidewolf.core.errors import InvalidInput

RANKED = ("traffic", "network", "energy", "gateway", "portfolio", "matrix", "paper")
SUITES = ("ranks", *RANKED, "size")
PAGES = {
    **dict.fromkeys(SUITES, ("suites", "results")),
    "size": ("performance", "results"),
    "bars": ("targets", "results"),
    "calls": ("index", "calls"),
    "rounds": ("performance", "rounds"),
    "sdplib": ("public", "public_sdplib"),
    "growth": ("../paper", "growth"),
}
"""The page and the module of each table."""
ABSENT = "not measured here"
"""How a cell begins whose data were absent."""
NEAR = 0.02
"""How far a number may be from the page's, as a share: other processors round otherwise."""


class Skipped(Exception):
    """A table, or a part of it, that cannot be measured here, and why."""


class Table(NamedTuple):
    """A table of a page."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""
    """a sentence below it"""

    def __str__(self) -> str:
        lines = [f"| {' | '.join(cells)} |" for cells in (self.head, *self.rows)]
        below = ["", self.note] if self.note else []
        return "\n".join([lines[0], "|---" * len(self.head) + "|", *lines[1:], *below])

    @classmethod
    def parsed(cls, body: str) -> Table:
        lines = [line for line in body.splitlines() if line.startswith("|")]
        head, _, *rows = [tuple(cell.strip() for cell in line[1:-1].split("|")) for line in lines]
        return cls(head, rows)

    def differences(self, now: Table, near: float = NEAR) -> list[str]:
        """Where this table differs from one measured now."""
        if self.head != now.head:
            return [f"columns {self.head} on the page, {now.head} now"]
        old, new = ({row[0]: row for row in table.rows} for table in (self, now))
        found = [f"{key!r} is on one side only" for key in sorted(old.keys() ^ new.keys())]
        for key in [row[0] for row in self.rows if row[0] in new]:
            if any(ABSENT in cell for cell in (*old[key], *new[key])):
                continue
            for column, before, after in zip(self.head, old[key], new[key], strict=True):
                if "seconds" not in column and not _alike(before, after, near):
                    found.append(f"{key}, {column}: {before} on the page, {after} now")
        return found


def _alike(before: str, after: str, near: float) -> bool:
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


def _block(name: str) -> re.Pattern[str]:
    mark = re.escape(name)
    return re.compile(
        rf"(<!-- begin {mark}: [^\n]*? -->\n)(.*?)(<!-- end {mark} -->)", flags=re.DOTALL
    )


def find(text: str, name: str) -> str | None:
    """The body of a block of a page; None if the page has no such block."""
    found = _block(name).search(text)
    return None if found is None else found[2].strip("\n")


def replaced(text: str, name: str, body: str) -> str:
    """The page with another body in a block."""
    inner = "\n" + body.strip("\n") + "\n\n"
    text, count = _block(name).subn(lambda found: found[1] + inner + found[3], text)
    if count != 1:
        raise ValueError(
            f"A page needs one block {name!r}, from '<!-- begin {name}: command -->' to '<!-- end "
            f"{name} -->'; this one has {count}."
        )
    return text


def measured(name: str) -> Table:
    """The table as it is today; `Skipped` if its data are absent."""
    try:
        module = import_module(f"benchmarks.{PAGES[name][1]}")
        found: Table = module.table(name) if name in SUITES else module.table()
    except InvalidInput as missing:
        raise Skipped(str(missing)) from missing
    return found


def report(words: Sequence[str] = ()) -> int:
    """Print the tables named, or all; write them into their pages."""
    parser = argparse.ArgumentParser("python -m benchmarks table")
    parser.add_argument("names", nargs="*", metavar="table", help=", ".join(PAGES))
    parser.add_argument("--write", action="store_true", help="write the tables into their pages")
    parser.add_argument("--results", type=Path, help="a folder of results, for suites")
    given = parser.parse_args(words)
    if given.results:
        from benchmarks.results import table

        print(*(table(name, given.results) for name in given.names), sep="\n\n")
        return 0
    if unknown := set(given.names) - set(PAGES):
        parser.error(f"no table is called {min(unknown)!r}; there are {', '.join(PAGES)}.")
    for name in given.names or PAGES:
        page = ROOT / "docs" / "benchmarks" / f"{PAGES[name][0]}.md"
        try:
            table = measured(name)
        except Skipped as why:
            print(f"{name}: skipped: {why}\n", flush=True)
            continue
        print(f"{name}\n{table}\n", flush=True)
        if given.write:
            text = replaced(page.read_text(encoding="utf-8"), name, str(table))
            page.write_text(text, encoding="utf-8")
            if name in SUITES:
                print(*import_module("benchmarks.results").draw(name))
    return 0
