"""Gaps in tables of rounds: cells without a number, and rows that some tables have and others not.

    "refuse"     there are none, or the file is refused
    "last"       a gap has the last number of its column
    "unseen"     a round with a gap is played, and no learner learns from it

Rounds are the times that any table has, in their order (times of advice and contexts make no
rounds); tables without times go row by row, and a shorter one lacks its last rows. Unseen rounds
are measured too, with the last numbers of their columns (the first that come, if none came before),
and notes say how many there were.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.settings import Names, Text
from tidewolf.core.types import Bools, NDArray
from tidewolf.files.dates import clock_text
from tidewolf.files.reading import FILL
from tidewolf.files.table import Table

# What can be done about gaps.
GAPS = ("refuse", "unseen", "last")


class Aligned(NamedTuple):
    """Tables of the same rounds.

    Parameters
    ----------
    tables : dict of str and Table
        The tables by name, of equal length, at the same times.
    seen : array or None
        Which rounds can be learned from; None if all can.
    notes : tuple of str
        What was filled, in sentences; empty if nothing was.
    """

    tables: dict[str, Table]
    seen: Bools | None
    notes: tuple[str, ...]


def align(
    tables: Mapping[str, Table], gaps: str = "refuse", *, absent: Collection[str] = ()
) -> Aligned:
    """Tables as rounds: one row each for every time that any of them has.

    Parameters
    ----------
    tables : mapping of str and Table
        The tables by name, as `read_table(path, gaps=True)` gives them.
    gaps : str, default 'refuse'
        What is done about cells without a number and rows that a table lacks: "refuse", "unseen"
        or "last".
    absent : sequence of str, default ()
        Tables whose gaps stay NaN, such as points that others proposed; their times make no
        rounds.

    Returns
    -------
    Aligned
        `tables` of equal rows, the mask `seen` of rounds to learn from (None: all), and `notes`.

    Raises
    ------
    InvalidInput
        If there are gaps and they are refused; if one has no number before it; if tables have
        times and do not fit together.

    Examples
    --------
    >>> from tidewolf.files import align
    >>> costs = tw.problems.Table(np.arange(3.0), ("a",), np.array([[1.0], [np.nan], [3.0]]))
    >>> limits = tw.problems.Table(np.arange(2.0), ("a",), np.array([[5.0], [6.0]]))
    >>> rounds = align({"costs": costs, "limits": limits}, "unseen")
    >>> rounds.seen.tolist(), rounds.tables["limits"].values.ravel().tolist()
    ([True, False, False], [5.0, 6.0, 6.0])
    """
    gaps = Text(choices=GAPS)(gaps, "gaps")
    absent = Names()(absent, "absent")
    named = {name: _named(name, table) for name, table in tables.items()}
    leading = [table for name, table in named.items() if name not in absent]
    rounds, length = _rounds(leading or list(named.values()), list(named.values()))
    filled, notes, missing = dict[str, Table](), list[str](), np.zeros(length, dtype=bool)
    for name, table in named.items():
        laid, there = _spread(table, rounds, length)
        if gaps == "refuse" and not len(table.values) == there.sum() == length:
            i = int(np.argmin(there))
            when = f"round {i + 1}" if rounds is None else clock_text(rounds[i])
            raise InvalidInput(
                f"{table.file}: expected a row for each of the {length:,} rounds of all tables, "
                f"received {len(table.values):,} rows{'' if there.all() else f', none for {when}'};"
                f" {FILL}."
            )
        if name not in absent and (empty := np.isnan(laid.values)).any():
            _require_fillable(laid, empty, gaps)
            missing |= empty.any(axis=1)
            cells, lost = int(empty[there].sum()), int((~there).sum())
            done = "filled with the last number of the column" if gaps == "last" else "not seen"
            notes.append(f"{table.file}: {cells:,} empty cells, {lost:,} missing rows, {done}.")
            last = np.where(empty, -1, np.arange(length)[:, None])
            last = np.maximum.accumulate(last, axis=0)
            source = np.where(last < 0, np.argmin(empty, axis=0), last)
            laid = laid._replace(values=np.take_along_axis(laid.values, source, axis=0))
        filled[name] = laid
    if gaps != "unseen" or not missing.any():
        return Aligned(filled, None, tuple(notes))
    notes.append(
        f"{int(missing.sum()):,} of {length:,} rounds not seen: played without being learned from; "
        "loss and violation there are measured with the last numbers."
    )
    return Aligned(filled, ~missing, tuple(notes))


def require_seen(rounds: Aligned) -> None:
    """Refuse rounds of which none has every number."""
    if rounds.seen is not None and not rounds.seen.any():
        files = ", ".join(str(table.file) for table in rounds.tables.values())
        raise InvalidInput(
            f"No round has every number: {files} have no time in common without a gap, so there "
            "is nothing to learn from."
        )


def _named(name: str, table: Table) -> Table:
    """A table that knows its file and where its rows stand."""
    if not isinstance(table, Table):
        raise WrongType(f"{name} must be a Table, not {shown(table)}.")
    file = table.file or name
    places = table.places or [f"{file}, row {i}" for i in range(1, len(table.values) + 1)]
    return table._replace(file=file, places=places)


def _rounds(leading: list[Table], tables: list[Table]) -> tuple[NDArray | None, int]:
    """The times of rounds, None if the leading tables have none, and how many there are."""
    clocks = [table.times for table in leading if table.times is not None]
    if not clocks:
        return None, max((len(table.values) for table in tables), default=0)
    called = {"M": "dates", "f": "numbers"}
    timed = [(table.times.dtype.kind, table.file) for table in tables if table.times is not None]
    kinds = {called.get(kind, "whole numbers"): file for kind, file in timed}
    if len(kinds) > 1:
        found = " and ".join(f"{file} has {kind}" for kind, file in kinds.items())
        raise InvalidInput(f"{found} for times; all tables need the same.")
    rounds = np.unique(np.concatenate(clocks))
    return rounds, len(rounds)


def _spread(table: Table, rounds: NDArray | None, length: int) -> tuple[Table, Bools]:
    """A table with a row for each round, NaN if it has none; and which rounds it has."""
    own = at = np.arange(len(table.values))
    if rounds is not None and table.times is not None:
        own = np.flatnonzero(np.isin(table.times, rounds))
        at = np.searchsorted(rounds, table.times[own])
    elif rounds is not None and len(own) != length:
        raise InvalidInput(
            f"{table.file} has {len(own):,} rows without times and there are {length:,} rounds; "
            "give it a column of times, by which its rows are found."
        )
    there, values = np.zeros(length, dtype=bool), np.full((length, len(table.columns)), np.nan)
    there[at], values[at] = True, table.values[own]
    places = [f"{table.file}, round {i}" for i in range(1, length + 1)]
    for i, row in zip(at.tolist(), own.tolist(), strict=True):
        places[i] = table.places[row]
    times = table.times if rounds is None else rounds
    return table._replace(times=times, values=values, places=places), there


def _require_fillable(table: Table, empty: Bools, gaps: str) -> None:
    """Refuse gaps, or those that nothing can fill."""
    unfilled, why = {
        "refuse": (empty, FILL),
        "last": (empty[:1], "no number comes before it"),
        "unseen": (empty & empty.all(axis=0), "its column has no number"),
    }[gaps]
    for i, j in np.argwhere(unfilled)[:1]:
        cell = f'{table.places[i]}, column "{table.columns[j]}"'
        raise InvalidInput(f"{cell}: there is no number; {why}.")
