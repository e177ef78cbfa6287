"""The numbers of a run, each declared once; `Run.summary` describes those of the whole run.

    METRICS          one for the whole run   Run.summary(), so summary.json and --json; the rows of
                                             sweeps; the tables of the command line, of pages and
                                             of notebooks, if it has a title; the table of a
                                             sweep, if it has a kind or columns
    SPREADS          mean, p99 and worst     print(run); the second table of the command line, and
                     of the rounds           of comparisons; lines beneath the numbers of pages
    ROUND_METRICS    one for each round      Run.to_pandas(), rounds.parquet
    TOTALS           added up over rounds    the figures of pages and of Run.plot()

A new number is an entry here and a line in the docstring of `Run.summary`; nothing else changes.
What is measured during a run is gathered in recording.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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


class SweepColumn(NamedTuple):
    """A column that a part of a number fills in the table of a sweep."""

    name: str
    kind: type
    part: str
    """its key, or keys with dots between, in the plain data of the number"""


class Metric(NamedTuple):
    """One number of a whole run."""

    key: str
    """under which plain data has it"""
    measure: Callable[[Run], Any]
    """the number of a run as plain data"""
    title: str = ""
    """what tables call it; those of the command line and of pages leave it out without"""
    narrow_title: str = ""
    """what it is called if there is little room; the title if this is empty"""
    text: Callable[[Any], str] = number
    """how people read it"""
    details: Callable[[Run], Sequence[str]] = lambda run: ()
    """smaller lines that a page shows beneath"""
    kind: type | None = None
    """the type of its column in the table of a sweep; None if it has none of its own"""
    columns: tuple[SweepColumn, ...] = ()
    """the columns of its parts there"""
    timed: bool = False
    """whether the same run measures another one next time; such columns come last"""
    applies: Callable[[Run], bool] = lambda run: True
    """tables leave it out if it applies to none of their runs"""
    rank: int = 0
    """if the command line has little room, columns of the highest rank go first"""
    beside: tuple[Metric, ...] = ()
    """further columns of tables, that show other parts of it; files have it once"""

    def cell(self, run: Run) -> str:
        """The number of a run, as people read it."""
        return self.text(self.measure(run))

    def narrow_cell(self, run: Run) -> str:
        """The same if there is little room: without the error of a number."""
        return self.cell(run).partition(" \u00b1")[0]


class SpreadMetric(NamedTuple):
    """A number of each round by its mean, its p99 and its worst round."""

    name: str
    measure: Callable[[Run], Spread | None]
    """None if it is not known"""
    more: Callable[[Run], str] = lambda run: ""
    """what a line about it ends with"""
    digits: int = 3
    """of its mean"""

    def texts(self, run: Run) -> tuple[str, str, str]:
        """Mean, p99 and worst of a run."""
        found = self.measure(run)
        if found is None:
            return ("unknown",) * 3
        return (
            short_number(found.mean, self.digits),
            short_number(found.p99),
            short_number(found.worst),
        )


class SpreadColumn(NamedTuple):
    """A column of the table of SPREADS."""

    title: str
    cell: Callable[[Run], str]
    rank: int = 0
    """if there is little room, columns of the highest rank go first"""


class RoundMetric(NamedTuple):
    """One number of each round."""

    key: str
    values: Callable[[Run], NDArray | None]
    """one for each round; None if they are not known"""
    kept: bool = True
    """whether rounds.parquet has it; what needs the comparator is worked out anew"""


class TotalMetric(NamedTuple):
    """A number that adds up over the rounds."""

    name: str
    about: str
    totals: Callable[[Run], Floats | None]
    """the sum after each round; None if it is not known"""
    bracket: Callable[[Run], tuple[float, float] | None] = lambda run: None
    """between which numbers the last sum lies, if that is uncertain"""
    bound: Callable[[Run], float | None] = lambda run: None
    """the measured bound of the last sum"""

    @property
    def title(self) -> str:
        return f"Cumulative {self.name}"


def _per_round(total: float, run: Run) -> float:
    return total / max(1, run.rounds)


def _violation(run: Run) -> float:
    return float(run.violations.sum())


def _interval_text(ends: dict[str, float | None] | None) -> str:
    """An interval of plain data; "none" if there is none."""
    if ends is None:
        return "none"
    lower, upper = ends["lower"], ends["upper"]
    return interval((-math.inf if lower is None else lower, math.inf if upper is None else upper))


def _allowed(total: Total) -> list[str]:
    """What theory allows a total: from what the run measured, and from what was known before it."""
    allowed = (("measured bound:", total.bound), ("promised:", total.guarantee))
    return [f"{what} at most {number(most)}" for what, most in allowed if most is not None]


def _regret_details(run: Run) -> list[str]:
    if run.regret is None:
        return []
    mean = interval(run.regret, max(1, run.rounds))
    return [f"{mean} a round", *_allowed(run.certificate.regret)]


def _kept_details(run: Run) -> list[str]:
    found = run.least_breach
    if found is None:
        return []
    least = interval((found.lower, found.upper))
    return [f"{len(found.kept):,} of {found.rounds:,} rounds kept", f"least breach {least}"]


def _violation_details(run: Run) -> list[str]:
    return [
        f"{number(_per_round(_violation(run), run))} a round",
        *_spread_details(run.violation_spread),
        f"{percent(run.broken)} of rounds broken",
        *_allowed(run.certificate.violation),
    ]


def _spread_details(found: Spread | None) -> list[str]:
    return [] if found is None else [f"p99 {number(found.p99)}", f"worst {number(found.worst)}"]


def _plain_spread(found: Spread | None) -> dict[str, Any] | None:
    return None if found is None else found.plain()


def _plain_losses(run: Run) -> dict[str, Any]:
    plain = _plain_spread(run.loss_spread) or dict.fromkeys(Spread._fields)
    return {"total": float(run.losses.sum()), **plain}


def _spread_columns(name: str) -> tuple[SweepColumn, ...]:
    return tuple(SweepColumn(f"{name}_{part}", float, part) for part in ("mean", "p99", "worst"))


def _ends(name: str, part: str = "") -> tuple[SweepColumn, ...]:
    return tuple(SweepColumn(f"{name}_{end}", float, part + end) for end in ("lower", "upper"))


def _plain_certificate(run: Run) -> dict[str, Any]:
    return {
        "membership": run.certificate.checks[0].holds,
        "bound_reason": run.bound.reason,
        **run.certificate.summary(),
    }


METRICS: tuple[Metric, ...] = (
    Metric(
        "loss",
        _plain_losses,
        "total loss",
        "loss\ntotal",
        lambda found: number(found["total"]),
        columns=(SweepColumn("loss", float, "total"), *_spread_columns("loss")),
        beside=(
            Metric(
                "mean_loss",
                _plain_losses,
                "mean loss",
                "\nmean",
                lambda found: number(found["mean"]),
                lambda run: _spread_details(run.loss_spread),
            ),
        ),
    ),
    Metric(
        "churn",
        lambda run: _plain_spread(run.churn_spread),
        "mean churn",
        "churn\nmean",
        lambda found: number(found and found["mean"]),
        lambda run: _spread_details(run.churn_spread),
        columns=_spread_columns("churn"),
    ),
    Metric(
        "regret",
        lambda run: plain_interval(run.regret),
        "regret",
        text=_interval_text,
        details=_regret_details,
        columns=_ends("regret"),
        applies=lambda run: run.regret is not None,
    ),
    Metric(
        "hindsight",
        plain_hindsight,
        "regret, kept rounds",
        "regret,\nkept rounds",
        lambda found: "unknown" if found is None else _interval_text(found["regret_kept"]),
        _kept_details,
        columns=(
            *_ends("least_breach", "least_breach."),
            SweepColumn("kept_rounds", int, "kept_rounds"),
            *_ends("regret_kept", "regret_kept."),
        ),
        applies=lambda run: run.regret_kept is not None,
    ),
    Metric("violation", _violation, "violation", details=_violation_details, kind=float),
    Metric(
        "violation_by_round",
        lambda run: _plain_spread(run.violation_spread),
        columns=_spread_columns("violation"),
    ),
    Metric("broken", lambda run: run.broken, kind=float),
    Metric("oracle_calls", lambda run: run.oracle_calls, kind=int),
    Metric(
        "calls_per_round",
        lambda run: _per_round(run.oracle_calls, run),
        "oracle calls a round",
        "calls\na round",
        details=lambda run: [f"{run.oracle_calls:,} in all"],
        kind=float,
    ),
    Metric("solves", lambda run: run.solves, kind=int),
    Metric(
        "solves_per_round",
        lambda run: _per_round(run.solves, run),
        "LP solves a round",
        "LPs\na round",
        details=lambda run: [f"{run.solves:,} in all"],
        kind=float,
        applies=lambda run: run.solves > 0,
        rank=2,
    ),
    Metric("seconds", lambda run: run.seconds, "seconds", kind=float, timed=True, rank=1),
    Metric(
        "max_infeasibility",
        lambda run: run.max_infeasibility,
        "largest infeasibility",
        "largest\ninfeasibility",
        kind=float,
        rank=3,
    ),
    Metric(
        "feasible_in_hindsight",
        lambda run: None if run.comparator is None else run.comparator.feasible,
        kind=bool,
    ),
    Metric(
        "hindsight_method",
        lambda run: None if run.comparator is None else run.comparator.method,
    ),
    Metric(
        "bound",
        lambda run: {"regret": run.bound.regret, "violation": run.bound.violation},
        columns=tuple(SweepColumn(f"bound_{p}", float, p) for p in ("regret", "violation")),
    ),
    Metric("certificate", _plain_certificate, columns=(SweepColumn("certificate", bool, "holds"),)),
    Metric("unseen", lambda run: run.unseen, kind=int),
    Metric(
        "late",
        lambda run: run.late,
        "late rounds",
        "late\nrounds",
        kind=int,
        applies=lambda run: run.late > 0,
        rank=1,
    ),
    Metric(
        "pending",
        lambda run: run.pending,
        "pending rounds",
        "pending\nrounds",
        kind=int,
        applies=lambda run: run.pending > 0,
        rank=1,
    ),
    Metric(
        "overrides",
        lambda run: run.overrides._asdict(),
        columns=(SweepColumn("overrides", int, "rounds"),),
    ),
    Metric(
        "each_violation",
        lambda run: None if run.each_violation is None else run.each_violation.tolist(),
    ),
    Metric(
        "limit_names", lambda run: None if run.each_violation is None else list(run.limit_names)
    ),
    Metric("limits", lambda run: run.limits.plain()),
    Metric("experts", lambda run: run.experts.plain()),
)
"""In the order of summary.json."""

ROUND_METRICS: tuple[RoundMetric, ...] = (
    RoundMetric("loss", lambda run: run.losses),
    RoundMetric("violation", lambda run: run.violations),
    RoundMetric("calls", lambda run: run.calls),
    RoundMetric("distance", lambda run: run.distances),
    RoundMetric("churn", lambda run: np.asarray(run.churn)),
    RoundMetric("solves", lambda run: run.round_solves),
    RoundMetric("regret", lambda run: run.regret_curve(), kept=False),
)
"""In the order of the columns of Run.to_pandas()."""

_LOSS = SpreadMetric("loss", lambda run: run.loss_spread, digits=5)
_BREACH = SpreadMetric(
    "violation",
    lambda run: run.violation_spread,
    lambda run: f"broken in {percent(run.broken)} of rounds",
)
_CHURN = SpreadMetric("churn", lambda run: run.churn_spread)
SPREADS = (_LOSS, _BREACH, _CHURN)
"""In the order of lines and columns."""
SPREAD_COLUMNS: tuple[SpreadColumn, ...] = (
    SpreadColumn("loss\np99", lambda run: _LOSS.texts(run)[1], 1),
    SpreadColumn("\nworst", lambda run: _LOSS.texts(run)[2], 1),
    SpreadColumn("churn\np99", lambda run: _CHURN.texts(run)[1], 1),
    SpreadColumn("\nworst", lambda run: _CHURN.texts(run)[2], 2),
    SpreadColumn("violation\nmean", lambda run: _BREACH.texts(run)[0]),
    SpreadColumn("\np99", lambda run: _BREACH.texts(run)[1]),
    SpreadColumn("\nworst", lambda run: _BREACH.texts(run)[2]),
    SpreadColumn("rounds\nbroken", lambda run: percent(run.broken)),
)
"""From left to right."""

TOTALS: tuple[TotalMetric, ...] = (
    TotalMetric(
        "loss", "what the decisions cost", lambda run: np.cumsum(run.losses, dtype=np.float64)
    ),
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
        lambda run: np.cumsum(run.violations, dtype=np.float64),
        bound=lambda run: run.bound.violation,
    ),
    TotalMetric(
        "oracle calls",
        "linear minimisations over the hard set",
        lambda run: np.cumsum(run.calls, dtype=np.float64),
    ),
)
"""In the order of the figures."""


def table_metrics(runs: Sequence[Run]) -> list[Metric]:
    """What the tables of these runs show, in their order."""
    every = (column for metric in METRICS for column in (metric, *metric.beside))
    shown = (metric for metric in every if metric.title and any(map(metric.applies, runs)))
    return sorted(shown, key=lambda metric: metric.timed)


def spread_lines(run: Run) -> list[str]:
    """Mean, p99 and worst of what each round has, as a small table; nothing without a round."""
    known = [(metric, found) for metric in SPREADS if (found := metric.measure(run)) is not None]
    if not known:
        return []
    rows = [(metric.name, *metric.texts(run)) for metric, _ in known]
    head, *lines = aligned([("a round", "mean", "p99", "worst"), *rows])
    ends = (
        ", ".join(filter(None, (f"in round {found.worst_round + 1:,}", metric.more(run))))
        for metric, found in known
    )
    return [head, *(f"{line}  {end}" for line, end in zip(lines, ends, strict=True))]


def plain_metrics(run: Run) -> dict[str, Any]:
    """Every number of a run as plain data."""
    return {metric.key: metric.measure(run) for metric in METRICS}


def round_columns(run: Run, *, kept: bool = False) -> dict[str, NDArray]:
    """A column for each number of a round that is known of a run; with `kept` those alone that
    files have.
    """
    shown = (metric for metric in ROUND_METRICS if metric.kept or not kept)
    columns = ((metric.key, metric.values(run)) for metric in shown)
    return {key: values for key, values in columns if values is not None}


def _sweep_columns() -> list[tuple[Metric, SweepColumn]]:
    """Every column of the table of a sweep, with its number."""
    found = []
    for metric in METRICS:
        own = [] if metric.kind is None else [SweepColumn(metric.key, metric.kind, "")]
        found += [(metric, column) for column in (*own, *metric.columns)]
    return found


def sweep_columns() -> dict[str, type]:
    """The columns of the table of a sweep that hold numbers of runs, and their types."""
    return {column.name: column.kind for _, column in _sweep_columns()}


def sweep_values(plain: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in these columns, given the plain data of a run; None what it does not have."""
    found = {}
    for metric, column in _sweep_columns():
        value = plain.get(metric.key)
        for key in filter(None, column.part.split(".")):
            value = None if value is None else value.get(key)
        found[column.name] = value
    return found
