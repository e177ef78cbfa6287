"""Gaps in tables of rounds: cells without a number, and rows that some tables have and others not.

    "refuse"     there are none, or the file is refused
    "last"       a gap has the last number of its column: what nobody measured has not changed
    "unseen"     a round with a gap is played, and nobody learns from it

Rounds are the times that any table has, in their order (times of advice and contexts make no
rounds); tables without times go row by row, and a shorter one lacks its last rows. Unseen rounds
are measured too, with the last numbers of their columns (the first that come, where none came
before), and notes say how many there were.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tidewolf.core.arguments import as_items, shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.settings import Text
from tidewolf.core.types import Bools, Floats, NDArray
from tidewolf.files.cells import FILL, count
from tidewolf.files.columns import row_places
from tidewolf.files.dates import clock_text
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
        Which rounds can be learned from; None where all can.
    notes : tuple of str
        What was filled, in sentences; empty where nothing was.
    """

    tables: dict[str, Table]
    seen: Bools | None
    notes: tuple[str, ...]


class _Laid(NamedTuple):
    """A table with a row for every round."""

    table: Table
    there: Bools
    """which rounds it has a row for"""


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
        Where there are gaps and they are refused; where one has no number before it; where tables
        have times and do not fit together.

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
    laid = _laid(named, leading or list(named.values()), refuse=gaps == "refuse")
    filled, notes = {}, list[str]()
    missing = np.zeros(len(next(iter(laid.values())).there), dtype=bool)
    for name, each in laid.items():
        if name in absent:
            filled[name] = each.table
            continue
        empty = np.isnan(each.table.values)
        if empty.any():
            _require_fillable(each, empty, gaps)
            missing |= empty.any(axis=1)
            notes.append(_note(each, empty, gaps))
        filled[name] = each.table._replace(values=_with_last(each.table.values, empty))
    if gaps != "unseen" or not missing.any():
        return Aligned(filled, None, tuple(notes))
    notes.append(
        f"{int(missing.sum()):,} of {count(len(missing), 'round')} not seen: played without being "
        "learned from; loss and violation there are measured with the last numbers."
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
    if len(table.places) == len(table.values):
        return table._replace(file=file)
    return table._replace(file=file, places=row_places(file, len(table.values)))


def _laid(
    tables: Mapping[str, Table], leading: Sequence[Table], *, refuse: bool
) -> dict[str, _Laid]:
    """Every table with a row for each round that the leading ones have; NaN where it has none."""
    timed = [table for table in tables.values() if table.times is not None]
    clocks = [table.times for table in leading if table.times is not None]
    if refuse or not clocks:
        return _by_row(tables, refuse=refuse)
    _require_one_clock(*timed)
    rounds = np.unique(np.concatenate(clocks))
    laid = {}
    for name, table in tables.items():
        if table.times is None:
            if len(table.values) != len(rounds):
                raise InvalidInput(
                    f"{table.file} has {count(len(table.values), 'row')} without times and "
                    f"there are {count(len(rounds), 'round')}; give it a column of times, by which "
                    "its rows are found."
                )
            there = np.ones(len(rounds), dtype=bool)
            laid[name] = _Laid(table._replace(times=rounds), there)
            continue
        own = np.isin(_times(table), rounds)
        kept = table._replace(
            times=_times(table)[own],
            values=table.values[own],
            places=[place for place, keep in zip(table.places, own, strict=True) if keep],
        )
        laid[name] = _spread(kept, np.searchsorted(rounds, _times(kept)), len(rounds), rounds)
    return laid


def _by_row(tables: Mapping[str, Table], *, refuse: bool) -> dict[str, _Laid]:
    """Tables row by row: of one length, at the same times, where gaps are refused."""
    if refuse:
        _require_same_rounds(tables)
    length = max(len(table.values) for table in tables.values())
    return {
        name: _spread(table, np.arange(len(table.values)), length, table.times)
        for name, table in tables.items()
    }


def _spread(table: Table, at: NDArray, length: int, times: NDArray | None) -> _Laid:
    """A table whose rows go to these rounds."""
    there = np.zeros(length, dtype=bool)
    there[at] = True
    if there.all():
        return _Laid(table._replace(times=times), there)
    values = np.full((length, len(table.columns)), np.nan)
    values[at] = table.values
    places = [f"{table.file}, round {i}" for i in range(1, length + 1)]
    for i, place in zip(at.tolist(), table.places, strict=True):
        places[i] = place
    return _Laid(table._replace(times=times, values=values, places=places), there)


def _require_same_rounds(tables: Mapping[str, Table]) -> None:
    """Tables are of one length, at the same times."""
    table, *others = tables.values()
    length, times = len(table.values), table.times
    for other in others:
        if len(other.values) != length:
            raise InvalidInput(
                f"{other.file} has {count(len(other.values), 'row')} and "
                f"{table.file} has {length}; a round is a row of each. {_CURE}"
            )
        if times is not None and other.times is not None:
            _require_one_clock(table, other)
            for i in np.flatnonzero(other.times != times)[:1]:
                apart = (
                    f"the time is {clock_text(other.times[i])}, where {table.file} has "
                    f"{clock_text(times[i])}"
                )
                raise InvalidInput(f"{other.places[i]}: {apart}; a round is a row of each.")


_CURE = 'Where rows are missing, say [stream] gaps = "last" or "unseen".'


def _require_one_clock(table: Table, *others: Table) -> None:
    for other in others:
        if _clock(other) != _clock(table):
            raise InvalidInput(
                f"{other.file} has {_clock(other)} for times and {table.file} has "
                f"{_clock(table)}; both need the same."
            )


def _require_fillable(laid: _Laid, empty: Bools, gaps: str) -> None:
    """Refuse gaps, or those that nothing can fill."""
    table = laid.table
    if gaps == "refuse":
        i, j = np.argwhere(empty)[0]
        raise InvalidInput(
            f'{table.places[i]}, column "{table.columns[j]}": the cell is empty, and every cell '
            f"needs a number; {FILL}."
        )
    for j in np.flatnonzero(empty.all(axis=0))[:1]:
        raise InvalidInput(f'{table.file}, column "{table.columns[j]}": it has no number at all.')
    if gaps == "last":
        for j in np.flatnonzero(empty[0])[:1]:
            what = "the cell is empty" if laid.there[0] else "there is no such row"
            raise InvalidInput(
                f'{table.places[0]}, column "{table.columns[j]}": {what}, and no number came '
                'before it; fill it in, or say [stream] gaps = "unseen".'
            )


def _with_last(values: Floats, empty: Bools) -> Floats:
    """Numbers in which every gap has the last of its column, or the first that comes."""
    if not empty.any():
        return values
    last = np.maximum.accumulate(np.where(empty, -1, np.arange(len(values))[:, None]), axis=0)
    first = np.argmin(empty, axis=0)
    return np.take_along_axis(values, np.where(last < 0, first, last), axis=0)


def _note(laid: _Laid, empty: Bools, gaps: str) -> str:
    """How much of a table was filled, and what with."""
    table, parts = laid.table, []
    cells = empty & laid.there[:, None]
    if cells.any():
        i, j = np.argwhere(cells)[0]
        where = f'{table.places[i].removeprefix(f"{table.file}, ")}, column "{table.columns[j]}"'
        found = count(int(cells.sum()), "empty cell")
        parts.append(f"{found} in columns that are used (the first in {where})")
    if not laid.there.all():
        i = int(np.argmin(laid.there))
        when = f"round {i + 1}" if table.times is None else f"{clock_text(table.times[i])}"
        parts.append(f"no row for {count(int((~laid.there).sum()), 'round')} (the first is {when})")
    done = "filled with the last number of the column" if gaps == "last" else "not seen"
    return f"{table.file}: {' and '.join(parts)}, {done}."


def _times(table: Table) -> NDArray:
    assert table.times is not None
    return table.times


def _clock(table: Table) -> str:
    kind = _times(table).dtype.kind
    return "dates" if kind == "M" else "numbers" if kind == "f" else "whole numbers"
