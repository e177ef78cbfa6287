"""The numbers of a run, each declared once; `Run.summary` describes those of the whole run.

    MEASURES         one for the whole run   Run.summary(), so summary.json and --json; the rows of
                                             sweeps
    TABLE            columns of runs         the tables of the command line, of pages and notebooks
    ROUND_TABLE      mean, p99, worst        print(run); the second table of the command line
    SWEEP_COLUMNS    parts of MEASURES       the table of a sweep, results.parquet
    ROUND_NUMBERS    one for each round      Run.to_pandas(), rounds.parquet
    TOTALS           added up over rounds    the charts of pages and of Run.plot()

What is measured during a run is gathered in recording.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

import numpy as np

from tidewolf.core.types import Floats, NDArray
from tidewolf.evaluation.formatting import (
    aligned,
    interval,
    number,
    percent,
    plain_interval,
    short_number,
)
from tidewolf.evaluation.hindsight_words import plain_hindsight

if TYPE_CHECKING:
    from tidewolf.evaluation.certificate import Total
    from tidewolf.evaluation.run import Run


class Spread(NamedTuple):
    """A number of each round in short: its mean, what 99 % of the rounds do not exceed (by linear
    interpolation between two rounds), and its worst round.
    """

    mean: float
    p99: float
    worst: float
    worst_round: int
    """counted from 0"""

    def plain(self) -> dict[str, Any]:
        """As files have it: rounds count from 1."""
        return {**self._asdict(), "worst_round": self.worst_round + 1}


def spread(values: Floats) -> Spread | None:
    """The numbers of a run's rounds in short; None without a round, or if one is not known."""
    if len(values) == 0 or np.isnan(values).any():
        return None
    worst = int(np.argmax(values))
    return Spread(
        float(np.mean(values)), float(np.quantile(values, 0.99)), float(values[worst]), worst
    )


@final
class RoundNumbers(np.ndarray[Any, np.dtype[np.float64]]):
    """A number of each round: an array that knows its `p99` and its `worst`; `mean()` is the
    array's own.
    """

    def __new__(cls, values: Floats) -> Self:
        numbers = np.asarray(values, dtype=np.float64).view(cls)
        numbers.flags.writeable = False
        return numbers

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False
    ) -> Any:  # what is computed from them are plain numbers
        return array[()] if return_scalar else np.asarray(array)

    @property
    def p99(self) -> float:
        """What 99 % of the rounds do not exceed; NaN without a round, or if one is not known."""
        found = spread(np.asarray(self))
        return np.nan if found is None else found.p99

    @property
    def worst(self) -> float:
        """The largest of all rounds; NaN without a round, or if one is not known."""
        found = spread(np.asarray(self))
        return np.nan if found is None else found.worst


class Metric(NamedTuple):
    """A column of tables of runs."""

    title: str
    narrow_title: str
    """the title if there is little room: up to two lines"""
    cell: Callable[[Run], str]
    details: Callable[[Run], Sequence[str]] = lambda run: ()
    """smaller lines that a page shows beneath"""
    applies: Callable[[Run], bool] = lambda run: True
    """tables leave it out if it applies to none of their runs"""
    rank: int = 0
    """if the command line has little room, columns of the highest rank are left out first"""

    def narrow_cell(self, run: Run) -> str:
        """The number of a run if there is little room: without its error."""
        return self.cell(run).partition(" \u00b1")[0]


class TotalMetric(NamedTuple):
    """A number that adds up over the rounds."""

    name: str
    about: str
    totals: Callable[[Run], Floats | None]
    """the sum after each round; None if it is not known"""
    bracket: Callable[[Run], tuple[float, float] | None] = lambda run: None
    """two numbers that the last sum lies between, if that is uncertain"""
    bound: Callable[[Run], float | None] = lambda run: None
    """the measured bound of the last sum"""

    @property
    def title(self) -> str:
        return f"Cumulative {self.name}"


# --- plain data -----------------------------------------------------------------------------------


def _per_round(total: float, run: Run) -> float:
    return total / max(1, run.rounds)


def _plain_spread(found: Spread | None) -> dict[str, Any] | None:
    return None if found is None else found.plain()


def _plain_losses(run: Run) -> dict[str, Any]:
    plain = _plain_spread(run.loss_spread) or dict.fromkeys(Spread._fields)
    return {"total": float(run.losses.sum()), **plain}


def _plain_certificate(run: Run) -> dict[str, Any]:
    return {
        "membership": run.certificate.checks[0].holds,
        "bound_reason": run.bound.reason,
        **run.certificate.summary(),
    }


MEASURES: dict[str, Callable[[Run], Any]] = {
    "loss": _plain_losses,
    "churn": lambda run: _plain_spread(run.churn_spread),
    "regret": lambda run: plain_interval(run.regret),
    "hindsight": plain_hindsight,
    "violation": lambda run: float(run.violations.sum()),
    "violation_by_round": lambda run: _plain_spread(run.violation_spread),
    "broken": lambda run: run.broken,
    "oracle_calls": lambda run: run.oracle_calls,
    "calls_per_round": lambda run: _per_round(run.oracle_calls, run),
    "solves": lambda run: run.solves,
    "solves_per_round": lambda run: _per_round(run.solves, run),
    "seconds": lambda run: run.seconds,
    "max_infeasibility": lambda run: run.max_infeasibility,
    "feasible_in_hindsight": lambda run: run.comparator and run.comparator.feasible,
    "hindsight_method": lambda run: run.comparator and run.comparator.method,
    "bound": lambda run: {"regret": run.bound.regret, "violation": run.bound.violation},
    "certificate": _plain_certificate,
    "unseen": lambda run: run.unseen,
    "late": lambda run: run.late,
    "pending": lambda run: run.pending,
    "overrides": lambda run: run.overrides._asdict(),
    "each_violation": lambda run: None if (x := run.each_violation) is None else x.tolist(),
    "limit_names": lambda run: None if run.each_violation is None else list(run.limit_names),
    "limits": lambda run: run.limits.plain(),
    "experts": lambda run: run.experts.plain(),
}
"""In the order of summary.json."""

SWEEP_COLUMNS: dict[str, tuple[type, str]] = {
    "loss": (float, "loss.total"),
    **{f"loss_{part}": (float, f"loss.{part}") for part in Spread._fields[:3]},
    **{f"churn_{part}": (float, f"churn.{part}") for part in Spread._fields[:3]},
    **{f"regret_{end}": (float, f"regret.{end}") for end in ("lower", "upper")},
    **{
        f"least_breach_{end}": (float, f"hindsight.least_breach.{end}")
        for end in ("lower", "upper")
    },
    "kept_rounds": (int, "hindsight.kept_rounds"),
    **{f"regret_kept_{end}": (float, f"hindsight.regret_kept.{end}") for end in ("lower", "upper")},
    "violation": (float, "violation"),
    **{f"violation_{part}": (float, f"violation_by_round.{part}") for part in Spread._fields[:3]},
    "broken": (float, "broken"),
    "oracle_calls": (int, "oracle_calls"),
    "calls_per_round": (float, "calls_per_round"),
    "solves": (int, "solves"),
    "solves_per_round": (float, "solves_per_round"),
    "seconds": (float, "seconds"),
    "max_infeasibility": (float, "max_infeasibility"),
    "feasible_in_hindsight": (bool, "feasible_in_hindsight"),
    **{f"bound_{name}": (float, f"bound.{name}") for name in ("regret", "violation")},
    "certificate": (bool, "certificate.holds"),
    "unseen": (int, "unseen"),
    "late": (int, "late"),
    "pending": (int, "pending"),
    "overrides": (int, "overrides.rounds"),
}
"""The type of each column of a sweep, and its keys in the plain data of a run."""


def plain_metrics(run: Run) -> dict[str, Any]:
    """Every number of a run as plain data."""
    return {key: measure(run) for key, measure in MEASURES.items()}


def sweep_columns() -> dict[str, type]:
    """The columns of the table of a sweep that hold numbers of runs, and their types."""
    return {name: kind for name, (kind, _) in SWEEP_COLUMNS.items()}


def sweep_values(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The values of these columns, given the plain data of a run; None if it has none."""
    found = {}
    for name, (_, keys) in SWEEP_COLUMNS.items():
        value: Any = plain
        for key in keys.split("."):
            value = None if value is None else value.get(key)
        found[name] = value
    return found


# --- tables ---------------------------------------------------------------------------------------


def _spread_details(found: Spread | None) -> list[str]:
    return [] if found is None else [f"p99 {number(found.p99)}", f"worst {number(found.worst)}"]


def _allowed(total: Total) -> list[str]:
    """What theory allows a total: from what the run measured, and from what was known before it."""
    allowed = (("measured bound:", total.bound), ("promised:", total.guarantee))
    return [f"{what} at most {number(most)}" for what, most in allowed if most is not None]


def _interval(ends: tuple[float, float] | None) -> str:
    return "none" if ends is None else interval(ends)


def _regret_details(run: Run) -> list[str]:
    if run.regret is None:
        return []
    return [
        f"{interval(run.regret, max(1, run.rounds))} a round",
        *_allowed(run.certificate.regret),
    ]


def _kept_details(run: Run) -> list[str]:
    found = run.least_breach
    if found is None:
        return []
    least = interval((found.lower, found.upper))
    return [f"{len(found.kept):,} of {found.rounds:,} rounds kept", f"least breach {least}"]


def _violation_details(run: Run) -> list[str]:
    return [
        f"{number(_per_round(float(run.violations.sum()), run))} a round",
        *_spread_details(run.violation_spread),
        f"{percent(run.broken)} of rounds broken",
        *_allowed(run.certificate.violation),
    ]


def _number(key: str) -> Callable[[Run], str]:
    return lambda run: number(MEASURES[key](run))


TABLE: tuple[Metric, ...] = (
    Metric("total loss", "loss\ntotal", lambda run: number(float(run.losses.sum()))),
    Metric(
        "mean loss",
        "\nmean",
        lambda run: number(run.loss_spread and run.loss_spread.mean),
        lambda run: _spread_details(run.loss_spread),
    ),
    Metric(
        "mean churn",
        "churn\nmean",
        lambda run: number(run.churn_spread and run.churn_spread.mean),
        lambda run: _spread_details(run.churn_spread),
    ),
    Metric(
        "regret",
        "regret",
        lambda run: _interval(run.regret),
        _regret_details,
        lambda run: run.regret is not None,
    ),
    Metric(
        "regret, kept rounds",
        "regret,\nkept rounds",
        lambda run: "unknown" if run.least_breach is None else _interval(run.regret_kept),
        _kept_details,
        lambda run: run.regret_kept is not None,
    ),
    Metric("violation", "violation", _number("violation"), _violation_details),
    Metric(
        "oracle calls a round",
        "calls\na round",
        _number("calls_per_round"),
        lambda run: [f"{run.oracle_calls:,} in all"],
    ),
    Metric(
        "LP solves a round",
        "LPs\na round",
        _number("solves_per_round"),
        lambda run: [f"{run.solves:,} in all"],
        lambda run: run.solves > 0,
        2,
    ),
    Metric("largest infeasibility", "largest\ninfeasibility", _number("max_infeasibility"), rank=3),
    Metric(
        "late rounds", "late\nrounds", _number("late"), applies=lambda run: run.late > 0, rank=1
    ),
    Metric(
        "pending rounds",
        "pending\nrounds",
        _number("pending"),
        applies=lambda run: run.pending > 0,
        rank=1,
    ),
    Metric("seconds", "seconds", _number("seconds"), rank=1),
)
"""From left to right; what differs from run to run comes last."""


def table_metrics(runs: Sequence[Run]) -> list[Metric]:
    """The columns of a table of these runs."""
    return [metric for metric in TABLE if any(map(metric.applies, runs))]


def _spread_cell(name: str, part: str, run: Run) -> str:
    found: Spread | None = getattr(run, f"{name}_spread")
    if found is None:
        return "unknown"
    digits = 5 if (name, part) == ("loss", "mean") else 3
    return short_number(getattr(found, part), digits)


ROUND_TABLE: tuple[Metric, ...] = (
    *(
        Metric(title, title, partial(_spread_cell, *which), rank=rank)
        for title, which, rank in (
            ("loss\np99", ("loss", "p99"), 1),
            ("\nworst", ("loss", "worst"), 1),
            ("churn\np99", ("churn", "p99"), 1),
            ("\nworst", ("churn", "worst"), 2),
            ("violation\nmean", ("violation", "mean"), 0),
            ("\np99", ("violation", "p99"), 0),
            ("\nworst", ("violation", "worst"), 0),
        )
    ),
    Metric("rounds\nbroken", "rounds\nbroken", lambda run: percent(run.broken)),
)
"""How bad rounds get, from left to right."""


def spread_lines(run: Run) -> list[str]:
    """Mean, p99 and worst of what each round has, as a small table; nothing without a round."""
    names = [x for x in ("loss", "violation", "churn") if getattr(run, f"{x}_spread") is not None]
    if not names:
        return []
    parts = Spread._fields[:3]
    rows = [(name, *(_spread_cell(name, part, run) for part in parts)) for name in names]
    head, *lines = aligned([("a round", *parts), *rows])
    found = [head]
    for name, line in zip(names, lines, strict=True):
        broken = f", broken in {percent(run.broken)} of rounds" if name == "violation" else ""
        worst = getattr(run, f"{name}_spread").worst_round + 1
        found.append(f"{line}  in round {worst:,}{broken}")
    return found


# --- rounds ---------------------------------------------------------------------------------------

ROUND_NUMBERS: dict[str, Callable[[Run], NDArray | None]] = {
    "loss": lambda run: run.losses,
    "violation": lambda run: run.violations,
    "calls": lambda run: run.calls,
    "distance": lambda run: run.distances,
    "churn": lambda run: np.asarray(run.churn),
    "solves": lambda run: run.round_solves,
    "regret": lambda run: run.regret_curve(),
}
"""In the order of the columns of Run.to_pandas()."""


def round_columns(run: Run, *, kept: bool = False) -> dict[str, NDArray]:
    """A column for each number of a round that is known; with `kept` those that files have, without
    the regret, which needs the comparator.
    """
    names = [name for name in ROUND_NUMBERS if not (kept and name == "regret")]
    found = {name: ROUND_NUMBERS[name](run) for name in names}
    return {name: values for name, values in found.items() if values is not None}


TOTALS: tuple[TotalMetric, ...] = (
    TotalMetric("loss", "what the decisions cost", lambda run: np.cumsum(run.losses)),
    TotalMetric(
        "regret",
        "loss beyond the best fixed point in hindsight",
        lambda run: run.regret_curve(),
        lambda run: run.regret,
        lambda run: run.bound.regret,
    ),
    TotalMetric(
        "violation",
        "by how much the limits were broken",
        lambda run: np.cumsum(run.violations),
        bound=lambda run: run.bound.violation,
    ),
    TotalMetric(
        "oracle calls",
        "linear minimisations over the hard set",
        lambda run: np.cumsum(run.calls, dtype=np.float64),
    ),
)
"""In the order of the charts."""
