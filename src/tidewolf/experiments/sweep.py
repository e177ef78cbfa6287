"""Sweeps: jobs played by an engine, kept in a folder, gathered in one table.

DIR/sweep.jsonl         the journal: every row as soon as it is known (jobs.py)
DIR/results.parquet     one line per run, in the order of the plan, when all have ended
DIR/sweep.html          the page, which the command writes
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from tidewolf.core import arguments, checkpoint
from tidewolf.evaluation.formatting import Column, interval, number, percent
from tidewolf.evaluation.metrics import sweep_columns, sweep_values
from tidewolf.experiments.jobs import ROWS_FORMAT, SWEEP, Job, Row, play_jobs

RESULTS, PAGE = SWEEP.results
_WHICH = {"experiment": str, "learner": str, "rounds": int, "seed": int}


class SweepLine(NamedTuple):
    """One setting of a learner at one horizon: means over seeds."""

    experiment: str
    rounds: int | None
    learner: str
    settings: dict[str, Any]
    # how many were played to the end
    seeds: int
    # the columns of results.parquet: means, and the largest of those called worst; None if a seed
    # has none
    values: dict[str, float | None]

    def per_round(self, column: str, unit: float = 1.0) -> float | None:
        total = self.values[column]
        return None if total is None or not self.rounds else total / (unit * self.rounds)

    @classmethod
    def of(cls, group: Sequence[Row]) -> SweepLine:
        first, played = group[0], [row for row in group if not row["failure"]]
        rows = [sweep_values(row) for row in played]
        values: dict[str, float | None] = {}
        for column, kind in sweep_columns().items():
            several = [row[column] for row in rows]
            has_mean = kind is not str and several and None not in several
            over = max if column.endswith("_worst") else statistics.fmean
            values[column] = over(several) if has_mean else None
        if played and all(row["regret"] is not None for row in played):
            for end, unknown in (("regret_lower", -math.inf), ("regret_upper", math.inf)):
                values[end] = unknown if values[end] is None else values[end]
        experiment, rounds = first["experiment"], first["rounds"]
        return cls(experiment, rounds, first["learner"], first["settings"], len(played), values)


class SweepGroup(NamedTuple):
    experiment: str
    rounds: int | None
    lines: list[SweepLine]

    @property
    def knobs(self) -> tuple[str, ...]:
        """The settings in which lines of one learner differ."""
        values: dict[str, dict[str, set[str]]] = {}
        for line in self.lines:
            for name, value in line.settings.items():
                values.setdefault(name, {}).setdefault(line.learner, set()).add(repr(value))
        return tuple(name for name, by in values.items() if any(len(at) > 1 for at in by.values()))

    @property
    def about(self) -> str:
        length = "as many rounds as it has" if self.rounds is None else f"{self.rounds:,} rounds"
        return f"{length}, means over seeds"


def _regret(line: SweepLine) -> str:
    lower, upper = line.per_round("regret_lower"), line.per_round("regret_upper")
    if lower is None or upper is None:
        return "none"
    return interval((lower, upper)).partition(" \u00b1")[0]


def _broken(line: SweepLine) -> str:
    return "unknown" if (at := line.values["broken"]) is None else percent(at)


def _column(
    title: str, narrow: str, key: str, rank: int = 0, *, optional: bool = False, unit: float = 0.0
) -> Column[SweepLine]:
    """The mean of a number, or with a unit a total per round in that unit; an optional one is left
    out if no line has it, or all have 0.
    """

    def cell(line: SweepLine) -> str:
        return number(line.per_round(key, unit) if unit else line.values[key])

    def applies(line: SweepLine) -> bool:
        return not optional or line.values[key] not in (None, 0.0)

    return Column(title, narrow, cell, rank, applies)


# What tables show of a line.
LINE_COLUMNS: tuple[Column[SweepLine], ...] = (
    _column("total loss", "loss\ntotal", "loss"),
    _column("loss per round", "\nper round", "loss_mean"),
    _column("churn per round", "churn\nper round", "churn_mean", 1),
    _column("churn p99", "\np99", "churn_p99", 8),
    _column("worst churn", "\nworst", "churn_worst", 8),
    Column("regret per round", "regret\nper round", _regret, 2, lambda one: _regret(one) != "none"),
    _column(
        *("regret per round, kept rounds", "regret,\nkept rounds", "regret_kept_upper", 2),
        optional=True,
        unit=1.0,
    ),
    _column("violation per round", "violation\nper round", "violation_mean"),
    _column("violation p99", "\np99", "violation_p99", 7),
    _column("worst violation", "\nworst", "violation_worst", 5),
    Column("rounds broken", "rounds\nbroken", _broken, 6),
    _column("calls per round", "calls/\nround", "calls_per_round", 3),
    _column("LPs per round", "LPs/\nround", "solves_per_round", 3, optional=True),
    _column("us per round", "us", "seconds", 4, optional=True, unit=1e-6),
    Column("seeds", "seeds", lambda line: str(line.seeds), 4),
)


@final
@dataclass(frozen=True)
class Sweep:
    """The results of a sweep: a row per job, in the order of the plan."""

    rows: tuple[Row, ...]

    @property
    def failures(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row["failure"])

    def groups(self) -> list[SweepGroup]:
        """One line per learner and setting, grouped by experiment and horizon."""
        same: dict[Any, list[Row]] = {}
        for row in self.rows:
            key = row["source"], row["rounds"], row["learner"], json.dumps(row["settings"])
            same.setdefault(key, []).append(row)
        found: dict[Any, SweepGroup] = {}
        for line in map(SweepLine.of, same.values()):
            place = line.experiment, line.rounds
            found.setdefault(place, SweepGroup(*place, [])).lines.append(line)
        return list(found.values())

    def warnings(self) -> list[str]:
        reasons = Counter(row["failure"] for row in self.failures)
        return [f"{n} of {len(self.rows)} failed: {reason}" for reason, n in reasons.items()]

    def table(self) -> Any:
        pa = arguments.import_extra("pyarrow", "A sweep", "app,sweep")
        types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
        flat = [{**row, **sweep_values(row)} for row in self.rows]

        def typed(kinds: Mapping[str, type]) -> dict[str, Any]:
            return {
                name: pa.array([row.get(name) for row in flat], types[kind])
                for name, kind in kinds.items()
            }

        columns = typed(_WHICH)
        for name in dict.fromkeys(name for row in flat for name in row["settings"]):
            values = [row["settings"].get(name) for row in flat]
            if any(type(value) not in (int, float, type(None)) for value in values):
                values = [None if value is None else json.dumps(value) for value in values]
            columns[f"knob_{name}"] = pa.array(values)  # calls_per_round is measured too
        table = pa.table({**columns, **typed({**sweep_columns(), "failure": str})})
        return table.replace_schema_metadata({"tidewolf": f"sweep {ROWS_FORMAT}"})


def sweep(jobs: Sequence[Job], folder: str | os.PathLike[str], **how: Any) -> Sweep:
    """Play the jobs that have no row in the folder yet, and write results.parquet.

    `how` is that of `play_jobs`: its engine, force, and progress. A folder that holds another sweep
    is refused; with `force` it is begun again.
    """
    folder = Path(folder)

    def write(rows: tuple[Row, ...]) -> Sweep:
        from pyarrow import parquet

        found = Sweep(rows)
        with checkpoint.writing(folder / RESULTS) as file:
            parquet.write_table(found.table(), file)
        return found

    return play_jobs(jobs, folder, SWEEP, write, **how)
