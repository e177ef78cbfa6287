"""Sweeps: cells played by an engine, kept in a folder, gathered in one table.

    DIR/sweep.jsonl         the journal: every row as soon as it is known
    DIR/results.parquet     one line a cell, in the order of the plan, once all have ended
    DIR/sweep.html          the page, which the command writes

The same call goes on where a killed one stopped: cells with a row are not played again, those that
failed are. A cell that fails is a line with the sentence that refused it, and no other suffers.
"""

from __future__ import annotations

import io
import json
import math
import os
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from tidewolf.core import checkpoint
from tidewolf.core.errors import MissingExtra
from tidewolf.evaluation.formatting import interval, number, percent
from tidewolf.evaluation.metrics import sweep_columns, sweep_values
from tidewolf.experiments.engines import Engine
from tidewolf.experiments.plan import Cell, Row
from tidewolf.experiments.runner import Stage, kept_cells
from tidewolf.experiments.store import ROWS_FORMAT, SWEEP

RESULTS, PAGE = SWEEP.results


class SweepLine(NamedTuple):
    """What one setting of a learner came to at one horizon: means over seeds, a round."""

    experiment: str
    rounds: int | None
    learner: str
    settings: dict[str, Any]
    seeds: int
    """how many were played to the end"""
    regret: tuple[float, float] | None
    """None where a seed has none"""
    violation: float | None
    calls: float | None
    seconds: float | None
    failures: int
    solves: float | None = None
    violation_p99: float | None = None
    """what 99 % of the rounds do not exceed"""
    violation_worst: float | None = None
    """of any round of any seed"""
    broken: float | None = None
    """share of rounds in which the limit was broken"""
    churn: float | None = None
    """how far the decision moved"""
    churn_p99: float | None = None
    churn_worst: float | None = None
    loss: float | None = None
    loss_total: float | None = None
    """of all rounds"""
    regret_kept: float | None = None
    """against the best point that keeps the rounds which can be kept, in all; where no point keeps
    every limit
    """


class SweepGroup(NamedTuple):
    """The lines of one experiment at one horizon."""

    experiment: str
    rounds: int | None
    lines: list[SweepLine]

    @property
    def knobs(self) -> tuple[str, ...]:
        """The settings in which lines of one learner differ."""
        seen: dict[str, dict[str, set[str]]] = {}
        for line in self.lines:
            for name, value in line.settings.items():
                seen.setdefault(name, {}).setdefault(line.learner, set()).add(repr(value))
        return tuple(
            name for name, of in seen.items() if any(len(values) > 1 for values in of.values())
        )

    @property
    def about(self) -> str:
        """How long, in words."""
        length = "as many rounds as it has" if self.rounds is None else f"{self.rounds:,} rounds"
        return f"{length}, means over seeds"


class LineColumn(NamedTuple):
    """A number of a line, as tables show it."""

    title: str
    narrow_title: str
    """what it is called where there is little room: two lines, or beneath the one before"""
    cell: Callable[[SweepLine], str]
    rank: int = 0
    """where there is little room, columns of the highest rank go first"""
    applies: Callable[[SweepLine], bool] = lambda line: True
    """tables leave it out where it applies to none of theirs"""


LINE_COLUMNS = (
    LineColumn("total loss", "loss\ntotal", lambda line: number(line.loss_total)),
    LineColumn("loss a round", "\na round", lambda line: number(line.loss)),
    LineColumn("churn a round", "churn\na round", lambda line: number(line.churn), 1),
    LineColumn("churn p99", "\np99", lambda line: number(line.churn_p99), 8),
    LineColumn("worst churn", "\nworst", lambda line: number(line.churn_worst), 8),
    LineColumn(
        "regret a round",
        "regret\na round",
        lambda line: (
            "none" if line.regret is None else interval(line.regret).partition(" \u00b1")[0]
        ),
        2,
        applies=lambda line: line.regret is not None,
    ),
    LineColumn(
        "regret a round, kept rounds",
        "regret,\nkept rounds",
        lambda line: number(
            None if line.regret_kept is None or not line.rounds else line.regret_kept / line.rounds
        ),
        2,
        applies=lambda line: line.regret_kept is not None,
    ),
    LineColumn("violation a round", "violation\na round", lambda line: number(line.violation)),
    LineColumn("violation p99", "\np99", lambda line: number(line.violation_p99), 7),
    LineColumn("worst violation", "\nworst", lambda line: number(line.violation_worst), 5),
    LineColumn(
        "rounds broken",
        "rounds\nbroken",
        lambda line: "unknown" if line.broken is None else percent(line.broken),
        6,
    ),
    LineColumn("calls a round", "calls\na round", lambda line: number(line.calls), 3),
    LineColumn(
        "LPs a round",
        "LPs\na round",
        lambda line: number(line.solves),
        3,
        applies=lambda line: bool(line.solves),
    ),
    LineColumn(
        "us a round",
        "us",
        lambda line: number(None if line.seconds is None else 1e6 * line.seconds),
        4,
    ),
    LineColumn("seeds", "seeds", lambda line: str(line.seeds), 4),
)


def line_columns(lines: Sequence[SweepLine]) -> list[LineColumn]:
    """The columns that a table of these lines has."""
    return [column for column in LINE_COLUMNS if any(map(column.applies, lines))]


@final
@dataclass(frozen=True)
class Sweep:
    """What a sweep came to: a row for each cell, in the order of the plan."""

    rows: tuple[Row, ...]

    @property
    def failures(self) -> tuple[Row, ...]:
        """The cells that came to nothing, each with its sentence."""
        return tuple(row for row in self.rows if row["failure"])

    def lines(self) -> list[SweepLine]:
        """The rows in short: one line for each experiment, horizon, learner and setting."""
        groups: dict[Any, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(
                (row["source"], row["rounds"], row["learner"], json.dumps(row["settings"])), []
            ).append(row)
        return [_line(group) for group in groups.values()]

    def groups(self) -> list[SweepGroup]:
        """The lines, together those of one experiment at one horizon."""
        found: dict[tuple[str, int | None], SweepGroup] = {}
        for line in self.lines():
            place = line.experiment, line.rounds
            found.setdefault(place, SweepGroup(*place, [])).lines.append(line)
        return list(found.values())

    def warnings(self) -> list[str]:
        """What failed, and why."""
        return [
            f"{times} of {len(self.rows)} failed: {sentence}"
            for sentence, times in Counter(row["failure"] for row in self.failures).items()
        ]

    def table(self) -> Any:
        """The rows as a table of pyarrow, a column a number."""
        pa = _pyarrow()
        types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
        knobs: dict[str, type] = {}
        for row in self.rows:
            for name, value in row["settings"].items():
                knobs[name] = max(knobs.get(name, int), _kind(value), key=_KINDS.index)
        columns = {
            **_WHICH,
            **{f"{_KNOB}{name}": kind for name, kind in knobs.items()},
            **sweep_columns(),
            "failure": str,
        }
        schema = pa.schema(
            [(name, types[kind]) for name, kind in columns.items()],
            metadata={"tidewolf": f"sweep {ROWS_FORMAT}"},
        )
        return pa.Table.from_pylist([_flat(row, knobs) for row in self.rows], schema=schema)

    def to_pandas(self) -> Any:
        """The rows as a data frame."""
        return self.table().to_pandas()


def sweep(
    cells: Sequence[Cell],
    folder: str | os.PathLike[str],
    *,
    engine: Engine,
    force: bool = False,
    progress: Callable[[Stage], None] | None = None,
) -> Sweep:
    """Play the cells that the folder has no result of yet, and write results.parquet once all have
    ended.

    `engine` comes from `engines`. A folder that holds another sweep is refused; with `force` it is
    begun anew.
    """
    _pyarrow()
    folder = Path(folder)
    with kept_cells(cells, folder, SWEEP, engine=engine, force=force, progress=progress) as (
        rows,
        played,
    ):
        found = Sweep(rows)
        if played or not (folder / RESULTS).exists():
            _write(folder / RESULTS, found)
    return found


def _write(path: Path, found: Sweep) -> None:
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(found.table(), buffer)
    checkpoint.write(path, buffer.getvalue())


_KINDS = (int, float, str)
"""What a column of a setting holds: the first of these that holds all its values, so that whole
numbers keep every digit.
"""


def _kind(value: Any) -> type:
    return type(value) if type(value) in (int, float) else str


_KNOB = "knob_"
"""What a column of a setting begins with: calls_per_round is set, and measured too."""
_WHICH = {"experiment": str, "learner": str, "rounds": int, "seed": int}


def _flat(row: Row, knobs: Mapping[str, type]) -> Row:
    """A row without rows inside; what a failed cell has not is left out."""
    settings = {
        name: json.dumps(value) if knobs[name] is str else value
        for name, value in row["settings"].items()
    }
    return {
        **row,
        **{f"{_KNOB}{name}": value for name, value in settings.items()},
        **sweep_values(row),
    }


def _line(group: Sequence[Row]) -> SweepLine:
    first, played = group[0], [row for row in group if not row["failure"]]
    regrets = [_ends(row["regret"], row["rounds"]) for row in played if row["regret"]]
    known = bool(regrets) and len(regrets) == len(played)
    return SweepLine(
        first["experiment"],
        first["rounds"],
        first["learner"],
        first["settings"],
        len(played),
        _mean_interval(regrets) if known else None,
        _mean(row["violation"] / row["rounds"] for row in played),
        _mean(row["calls_per_round"] for row in played),
        _mean(row["seconds"] / row["rounds"] for row in played),
        len(group) - len(played),
        **_by_round(played),
    )


def _by_round(played: Sequence[Row]) -> dict[str, float | None]:
    """Means over seeds, and the worst round of all; None where a row is of an earlier version."""
    values = [sweep_values(row) for row in played]
    gathered: dict[str, tuple[str, Callable[[list[float]], float]]] = {
        "solves": ("solves_per_round", statistics.fmean),
        "violation_p99": ("violation_p99", statistics.fmean),
        "violation_worst": ("violation_worst", max),
        "broken": ("broken", statistics.fmean),
        "churn": ("churn_mean", statistics.fmean),
        "churn_p99": ("churn_p99", statistics.fmean),
        "churn_worst": ("churn_worst", max),
        "loss": ("loss_mean", statistics.fmean),
        "loss_total": ("loss", statistics.fmean),
        "regret_kept": ("regret_kept_upper", statistics.fmean),
    }
    return {
        name: None if None in (numbers := [row[key] for row in values] or [None]) else over(numbers)
        for name, (key, over) in gathered.items()
    }


def _ends(regret: Row, rounds: int) -> tuple[float, float]:
    lower, upper = regret["lower"], regret["upper"]
    return (
        -math.inf if lower is None else lower / rounds,
        math.inf if upper is None else upper / rounds,
    )


def _mean(numbers: Iterable[float]) -> float | None:
    several = list(numbers)
    return statistics.fmean(several) if several else None


def _mean_interval(ends: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return statistics.fmean(lower for lower, _ in ends), statistics.fmean(end for _, end in ends)


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra(
            'A sweep needs pyarrow, not installed here; type: pip install "tidewolf[app,sweep]"'
        ) from None
    return pyarrow
