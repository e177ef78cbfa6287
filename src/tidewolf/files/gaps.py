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

from tidewolf.core.arguments import as_items, shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.settings import Text
from tidewolf.core.types import Bools, Floats, NDArray
from tidewolf.files.dates import clock_text
from tidewolf.files.reading import FILL
from tidewolf.files.table import Table

GAPS = ("refuse", "unseen", "last")
"""What can be done about gaps."""


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
    absent = set(as_items(absent, "absent", '["advice"]'))
    if not tables:
        return Aligned({}, None, ())
    named = {name: _named(name, table) for name, table in tables.items()}
    leading = [table for name, table in named.items() if name not in absent]
    if gaps == "refuse":
        _require_same_rounds(list(named.values()))
    rounds, length = _rounds(leading or list(named.values()), list(named.values()))
    filled, notes, missing = dict[str, Table](), list[str](), np.zeros(length, dtype=bool)
    for name, table in named.items():
        laid, there = _spread(table, rounds, length)
        if name not in absent and (empty := np.isnan(laid.values)).any():
            _require_fillable(laid, there, empty, gaps)
            missing |= empty.any(axis=1)
            notes.append(_note(laid, there, empty, gaps))
            laid = laid._replace(values=_with_last(laid.values, empty))
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
    file, rows = table.file or name, len(table.values)
    places = table.places
    if len(places) != rows:
        places = [f"{file}, row {i}" for i in range(1, rows + 1)]
    return table._replace(file=file, places=places)


def _rounds(leading: list[Table], tables: list[Table]) -> tuple[NDArray | None, int]:
    """The times of rounds, None if the leading tables have none, and how many there are."""
    clocks = [table.times for table in leading if table.times is not None]
    if not clocks:
        return None, max(len(table.values) for table in tables)
    _require_one_clock(tables)
    rounds = np.unique(np.concatenate(clocks))
    return rounds, len(rounds)


def _spread(table: Table, rounds: NDArray | None, length: int) -> tuple[Table, Bools]:
    """A table with a row for each round, NaN if it has none; and which rounds it has."""
    own, at = np.arange(len(table.values)), np.arange(len(table.values))
    if rounds is not None and table.times is not None:
        own = np.flatnonzero(np.isin(table.times, rounds))
        at = np.searchsorted(rounds, table.times[own])
    elif rounds is not None and len(own) != length:
        raise InvalidInput(
            f"{table.file} has {len(own):,} rows without times and there are {length:,} rounds; "
            "give it a column of times, by which its rows are found."
        )
    there = np.zeros(length, dtype=bool)
    there[at] = True
    times = table.times if rounds is None else rounds
    if there.all() and len(own) == length:
        return table._replace(times=times), there
    values = np.full((length, len(table.columns)), np.nan)
    values[at] = table.values[own]
    places = [f"{table.file}, round {i}" for i in range(1, length + 1)]
    for i, row in zip(at.tolist(), own.tolist(), strict=True):
        places[i] = table.places[row]
    return table._replace(times=times, values=values, places=places), there


def _require_same_rounds(tables: list[Table]) -> None:
    """Tables are of one length, at the same times."""
    table, *others = tables
    for other in others:
        if len(other.values) != len(table.values):
            raise InvalidInput(
                f"{other.file} and {table.file} differ in their rows ({len(other.values):,} and "
                f"{len(table.values):,}); a round is a row of each. If rows are missing, say "
                '[stream] gaps = "last" or "unseen".'
            )
        if table.times is not None and other.times is not None:
            _require_one_clock([table, other])
            for i in np.flatnonzero(other.times != table.times)[:1]:
                raise InvalidInput(
                    f"{other.places[i]}: the time is {clock_text(other.times[i])}, and "
                    f"{table.file} has {clock_text(table.times[i])}; a round is a row of each."
                )


def _require_one_clock(tables: list[Table]) -> None:
    called = {"M": "dates", "f": "numbers"}
    clocks = {
        called.get(table.times.dtype.kind, "whole numbers"): table.file
        for table in tables
        if table.times is not None
    }
    if len(clocks) > 1:
        found = " and ".join(f"{file} has {clock}" for clock, file in clocks.items())
        raise InvalidInput(f"{found} for times; all tables need the same.")


def _require_fillable(table: Table, there: Bools, empty: Bools, gaps: str) -> None:
    """Refuse gaps, or those that nothing can fill."""
    unfilled = empty.all(axis=0) if gaps == "unseen" else empty[0]
    if gaps != "refuse" and not unfilled.any():
        return
    i, j = np.argwhere(empty)[0] if gaps == "refuse" else (0, int(np.argmax(unfilled)))
    what = "the cell is empty" if there[i] else "there is no such row"
    why = FILL if gaps == "refuse" else "no number comes before it"
    if gaps == "unseen":
        why = "the column has no number at all"
    raise InvalidInput(f'{table.places[i]}, column "{table.columns[j]}": {what}; {why}.')


def _with_last(values: Floats, empty: Bools) -> Floats:
    """Numbers in which every gap has the last of its column, or the first that comes."""
    last = np.maximum.accumulate(np.where(empty, -1, np.arange(len(values))[:, None]), axis=0)
    first = np.argmin(empty, axis=0)
    return np.take_along_axis(values, np.where(last < 0, first, last), axis=0)


def _note(table: Table, there: Bools, empty: Bools, gaps: str) -> str:
    """How much of a table was filled, and what with."""
    parts, cells = list[str](), empty & there[:, None]
    if cells.any():
        i, j = np.argwhere(cells)[0]
        where = f'{table.places[i].removeprefix(f"{table.file}, ")}, column "{table.columns[j]}"'
        parts.append(f"empty cells in used columns: {int(cells.sum()):,} (the first in {where})")
    if not there.all():
        i = int(np.argmin(there))
        when = f"round {i + 1}" if table.times is None else clock_text(table.times[i])
        parts.append(f"rounds without a row: {int((~there).sum()):,} (the first is {when})")
    done = "filled with the last number of the column" if gaps == "last" else "not seen"
    return f"{table.file}: {' and '.join(parts)}, {done}."
