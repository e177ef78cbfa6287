"""The numbers of a run, each declared once.

    METRICS          one for the whole run   Run.summary(), so summary.json and --json; the rows of
                                             sweeps; the tables of the command line, of pages and
                                             of notebooks, where it has a title; the table of a
                                             sweep, where it has columns
    SPREADS          mean, p99 and worst     print(run); the second table of the command line, and
                     of the rounds           of comparisons; lines beneath the numbers of pages
    ROUND_METRICS    one for each round      Run.to_pandas(), rounds.parquet
    TOTALS           added up over rounds    the figures of pages and of Run.plot()

A new number is an entry here; nothing else changes. What is measured while a run goes on is
gathered in recording.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats, NDArray
from tidewolf.evaluation.formatting import (
    aligned,
    interval,
    interval_or_none,
    number,
    percent,
    plain_interval,
    short_number,
)
from tidewolf.evaluation.hindsight_words import plain_hindsight
from tidewolf.evaluation.spread import Spread

if TYPE_CHECKING:
    from tidewolf.evaluation.certificate import Total
    from tidewolf.evaluation.run import Run


class SweepColumn(NamedTuple):
    """A column that a number fills in the table of a sweep."""

    name: str
    kind: type
    part: str = ""
    """under which key, or keys with dots between, it stands in the number's plain data, where that
    is a dictionary
    """

    def value(self, plain: Any) -> Any:
        """What stands in it, given the number's plain data."""
        for key in filter(None, self.part.split(".")):
            plain = None if plain is None else plain.get(key)
        return plain


class Metric(NamedTuple):
    """One number of a whole run."""

    key: str
    """under which plain data has it"""
    about: str
    """what it is, in a sentence"""
    measure: Callable[[Run], Any]
    unit: str = ""
    less_is_better: bool = False
    title: str = ""
    """what tables call it; those of the command line and of pages leave it out without"""
    narrow_title: str = ""
    """what it is called where there is little room; the title where this is empty"""
    text: Callable[[Any], str] = number
    """how people read it"""
    plain: Callable[[Any], Any] = lambda value: value
    """how files hold it"""
    details: Callable[[Run], Sequence[str]] = lambda run: ()
    """smaller lines that a page shows beneath"""
    columns: tuple[SweepColumn, ...] = ()
    """where the table of a sweep has it"""
    timed: bool = False
    """whether the same run measures another one next time; such columns come last"""
    applies: Callable[[Run], bool] = lambda run: True
    """tables leave it out where it applies to none of their runs"""
    rank: int = 0
    """where the command line has little room, columns of the highest rank go first"""
    beside: tuple[Metric, ...] = ()
    """further columns of tables, that show other parts of it; files have it once"""

    def cell(self, run: Run) -> str:
        """The number of a run, as people read it."""
        return self.text(self.measure(run))

    def narrow_cell(self, run: Run) -> str:
        """The same where there is little room: without the error of a number that it hardly
        touches.
        """
        return self.cell(run).partition(" \u00b1")[0]

    def value(self, run: Run) -> Any:
        """The number of a run, as plain data."""
        return self.plain(self.measure(run))


class SpreadMetric(NamedTuple):
    """A number of each round by its mean, its p99 and its worst round."""

    name: str
    measure: Callable[[Run], Spread | None]
    """None where it is not known"""
    more: Callable[[Run], str] = lambda run: ""
    """what a line about it ends with"""
    digits: int = 3
    """of its mean"""


class SpreadColumn(NamedTuple):
    """A column of the table of SPREADS."""

    title: str
    cell: Callable[[Run], str]
    rank: int = 0
    """where there is little room, columns of the highest rank go first"""


class RoundMetric(NamedTuple):
    """One number of each round."""

    key: str
    about: str
    values: Callable[[Run], NDArray | None]
    """one for each round; None where they are not known"""
    kept: bool = True
    """whether rounds.parquet has it; what needs the comparator is worked out anew"""


class TotalMetric(NamedTuple):
    """A number that adds up over the rounds."""

    name: str
    about: str
    totals: Callable[[Run], Floats | None]
    """the sum after each round; None where it is not known"""
    bracket: Callable[[Run], tuple[float, float] | None] = lambda run: None
    """between which numbers the last sum lies, where that is uncertain"""
    bound: Callable[[Run], float | None] = lambda run: None
    """the measured bound of the last sum"""

    @property
    def title(self) -> str:
        return f"Cumulative {self.name}"


def _a_round(run: Run) -> int:
    return max(1, run.rounds)


def _violation(run: Run) -> float:
    return float(run.violations.sum())


def _allowed(total: Total) -> list[str]:
    """What theory allows a total: from what the run measured, and from what was known before it."""
    allowed = (("measured bound:", total.bound), ("promised:", total.guarantee))
    return [f"{what} at most {number(most)}" for what, most in allowed if most is not None]


def _regret_details(run: Run) -> list[str]:
    if run.regret is None:
        return []
    return [f"{interval(run.regret, _a_round(run))} a round", *_allowed(run.certificate.regret)]


def _kept_text(found: dict[str, Any] | None) -> str:
    """The regret against those who keep the rounds that can be kept."""
    if found is None:
        return "unknown"
    lower, upper = found["regret_kept"]["lower"], found["regret_kept"]["upper"]
    return interval((-math.inf if lower is None else lower, math.inf if upper is None else upper))


def _kept_details(run: Run) -> list[str]:
    found = run.least_breach
    if found is None:
        return []
    return [
        f"{len(found.kept):,} of {found.rounds:,} rounds kept",
        f"least breach {interval((found.lower, found.upper))}",
    ]


def _violation_details(run: Run) -> list[str]:
    mean = number(_violation(run) / _a_round(run))
    return [
        f"{mean} a round",
        *_spread_details(run.violation_spread),
        f"{percent(run.broken)} of rounds broken",
        *_allowed(run.certificate.violation),
    ]


def _spread_details(found: Spread | None) -> list[str]:
    if found is None:
        return []
    return [f"p99 {number(found.p99)}", f"worst {number(found.worst)}"]


def _mean(found: Spread | None) -> str:
    return number(None if found is None else found.mean)


def _plain_spread(found: Spread | None) -> dict[str, Any] | None:
    return None if found is None else found.plain()


def _plain_losses(run: Run) -> dict[str, Any]:
    plain = _plain_spread(run.loss_spread) or dict.fromkeys(Spread._fields)
    return {"total": float(run.losses.sum()), **plain}


def _spread_columns(name: str) -> tuple[SweepColumn, ...]:
    return tuple(SweepColumn(f"{name}_{part}", float, part) for part in ("mean", "p99", "worst"))


def _plain_certificate(run: Run) -> dict[str, Any]:
    return {
        "membership": run.certificate.checks[0].holds,
        "bound_reason": run.bound.reason,
        **run.certificate.summary(),
    }


METRICS: tuple[Metric, ...] = (
    Metric(
        "loss",
        "The losses: their total, and of the rounds the mean, what 99 % of them do not exceed, and "
        "the worst.",
        _plain_losses,
        unit="units of the losses",
        less_is_better=True,
        title="total loss",
        narrow_title="loss\ntotal",
        text=lambda found: number(found["total"]),
        columns=(SweepColumn("loss", float, "total"), *_spread_columns("loss")),
        beside=(
            Metric(
                "mean_loss",
                "The loss of a round on average.",
                _plain_losses,
                unit="units of the losses",
                less_is_better=True,
                title="mean loss",
                narrow_title="\nmean",
                text=lambda found: number(found["mean"]),
                details=lambda run: _spread_details(run.loss_spread),
            ),
        ),
    ),
    Metric(
        "churn",
        "How far decisions moved, half the L1 change from one round to the next: the mean, what "
        "99 % of the rounds do not exceed, and the worst.",
        lambda run: run.churn_spread,
        unit="units of points",
        less_is_better=True,
        title="mean churn",
        narrow_title="churn\nmean",
        text=_mean,
        plain=_plain_spread,
        details=lambda run: _spread_details(run.churn_spread),
        columns=_spread_columns("churn"),
    ),
    Metric(
        "regret",
        "The total loss less that of the best fixed point in hindsight, as a certified interval; "
        "None where no point keeps every limit, or no method knows the best one.",
        lambda run: run.regret,
        unit="units of the losses",
        less_is_better=True,
        title="regret",
        applies=lambda run: run.regret is not None,
        text=interval_or_none,
        plain=plain_interval,
        columns=(
            SweepColumn("regret_lower", float, "lower"),
            SweepColumn("regret_upper", float, "upper"),
        ),
        details=_regret_details,
    ),
    Metric(
        "hindsight",
        "Where no point keeps every limit: the least that any fixed point breaks them by in all, "
        "how many rounds one of the least breach keeps, the loss of the best point that keeps "
        "those, and the regret against it, as intervals; else None.",
        plain_hindsight,
        title="regret, kept rounds",
        narrow_title="regret,\nkept rounds",
        applies=lambda run: run.regret_kept is not None,
        text=_kept_text,
        details=_kept_details,
        columns=(
            SweepColumn("least_breach_lower", float, "least_breach.lower"),
            SweepColumn("least_breach_upper", float, "least_breach.upper"),
            SweepColumn("kept_rounds", int, "kept_rounds"),
            SweepColumn("regret_kept_lower", float, "regret_kept.lower"),
            SweepColumn("regret_kept_upper", float, "regret_kept.upper"),
        ),
    ),
    Metric(
        "violation",
        "By how much limits were broken in all; surplus never pays for a breach.",
        _violation,
        unit="units of the constraints",
        less_is_better=True,
        title="violation",
        details=_violation_details,
        columns=(SweepColumn("violation", float),),
    ),
    Metric(
        "violation_by_round",
        "The same of the rounds: the mean, what 99 % of them do not exceed, and the worst.",
        lambda run: run.violation_spread,
        unit="units of the constraints",
        less_is_better=True,
        plain=_plain_spread,
        columns=_spread_columns("violation"),
    ),
    Metric(
        "broken",
        "The share of rounds in which the limit was broken by more than rounding.",
        lambda run: run.broken,
        unit="shares of the rounds",
        less_is_better=True,
        columns=(SweepColumn("broken", float),),
    ),
    Metric(
        "oracle_calls",
        "How often the hard set was asked for a linear minimiser.",
        lambda run: run.oracle_calls,
        unit="oracle calls",
        less_is_better=True,
        columns=(SweepColumn("oracle_calls", int),),
    ),
    Metric(
        "calls_per_round",
        "The same on average over the rounds.",
        lambda run: run.oracle_calls / _a_round(run),
        unit="oracle calls a round",
        less_is_better=True,
        title="oracle calls a round",
        narrow_title="calls\na round",
        details=lambda run: [f"{run.oracle_calls:,} in all"],
        columns=(SweepColumn("calls_per_round", float),),
    ),
    Metric(
        "solves",
        "How many linear programs the learner solved.",
        lambda run: run.solves,
        unit="linear programs",
        less_is_better=True,
        columns=(SweepColumn("solves", int),),
    ),
    Metric(
        "solves_per_round",
        "The same on average over the rounds.",
        lambda run: run.solves / _a_round(run),
        unit="linear programs a round",
        less_is_better=True,
        title="LP solves a round",
        narrow_title="LPs\na round",
        rank=2,
        details=lambda run: [f"{run.solves:,} in all"],
        columns=(SweepColumn("solves_per_round", float),),
        applies=lambda run: run.solves > 0,
    ),
    Metric(
        "seconds",
        "What acting, evaluating and learning took, compiling not counted.",
        lambda run: run.seconds,
        unit="seconds",
        less_is_better=True,
        title="seconds",
        rank=1,
        timed=True,
        columns=(SweepColumn("seconds", float),),
    ),
    Metric(
        "max_infeasibility",
        "How far a played point ever was outside the hard set.",
        lambda run: run.max_infeasibility,
        unit="units of points",
        less_is_better=True,
        title="largest infeasibility",
        narrow_title="largest\ninfeasibility",
        rank=3,
        columns=(SweepColumn("max_infeasibility", float),),
    ),
    Metric(
        "feasible_in_hindsight",
        "Whether some fixed point keeps every limit; None where that is not known.",
        lambda run: None if run.comparator is None else run.comparator.feasible,
        columns=(SweepColumn("feasible_in_hindsight", bool),),
    ),
    Metric(
        "hindsight_method",
        "What found the best fixed point; None where nothing did.",
        lambda run: None if run.comparator is None else run.comparator.method,
    ),
    Metric(
        "bound",
        "The measured bounds on regret and violation; None where there are none.",
        lambda run: {"regret": run.bound.regret, "violation": run.bound.violation},
        columns=(
            SweepColumn("bound_regret", float, "regret"),
            SweepColumn("bound_violation", float, "violation"),
        ),
    ),
    Metric(
        "certificate",
        "Whether everything holds that the run can check of itself, and each check's numbers.",
        _plain_certificate,
        columns=(SweepColumn("certificate", bool, "holds"),),
    ),
    Metric(
        "unseen",
        "Rounds that were played, and counted, without feedback to the learner.",
        lambda run: run.unseen,
        unit="rounds",
        columns=(SweepColumn("unseen", int),),
    ),
    Metric(
        "late",
        "Rounds whose feedback came after the end of their own.",
        lambda run: run.late,
        unit="rounds",
        title="late rounds",
        narrow_title="late\nrounds",
        applies=lambda run: run.late > 0,
        columns=(SweepColumn("late", int),),
        rank=1,
    ),
    Metric(
        "pending",
        "Rounds whose feedback had not come by the end of the last.",
        lambda run: run.pending,
        unit="rounds",
        title="pending rounds",
        narrow_title="pending\nrounds",
        applies=lambda run: run.pending > 0,
        columns=(SweepColumn("pending", int),),
        rank=1,
    ),
    Metric(
        "overrides",
        "Rounds in which another point than the decision was played, the price of that in units "
        "of the losses, and the totals there and at the decisions where the functions were seen.",
        lambda run: run.overrides._asdict(),
        columns=(SweepColumn("overrides", int, "rounds"),),
    ),
    Metric(
        "each_violation",
        "By how much each limit was broken, where a round has several.",
        lambda run: None if run.each_violation is None else run.each_violation.tolist(),
        unit="units of the constraints",
        less_is_better=True,
    ),
    Metric(
        "limit_names",
        "What the limits of each_violation are called, in their order.",
        lambda run: None if run.each_violation is None else list(run.limit_names),
    ),
    Metric(
        "limits",
        "Each limit by name, by how much it was broken, and its bound, where the learner has a "
        "weight for each; else empty.",
        lambda run: run.limits.plain(),
    ),
    Metric(
        "experts",
        "Whom the learner mixed: weights, guard, totals, linear programs and oracle calls of each; "
        "empty where it holds one point alone.",
        lambda run: run.experts.plain(),
    ),
)
"""In the order of summary.json."""

ROUND_METRICS: tuple[RoundMetric, ...] = (
    RoundMetric("loss", "The loss of the played point.", lambda run: run.losses),
    RoundMetric("violation", "By how much its limit was broken.", lambda run: run.violations),
    RoundMetric("calls", "Oracle calls made after it.", lambda run: run.calls),
    RoundMetric(
        "distance", "|x - y| of the projection it was played from.", lambda run: run.distances
    ),
    RoundMetric(
        "churn",
        "How far the decision moved: half the L1 change from the round before.",
        lambda run: np.asarray(run.churn),
    ),
    RoundMetric(
        "solves", "Linear programs the learner solved after it.", lambda run: run.round_solves
    ),
    RoundMetric("regret", "The regret so far.", lambda run: run.regret_curve(), kept=False),
)
"""In the order of the columns of Run.to_pandas()."""

SPREADS: tuple[SpreadMetric, ...] = (
    SpreadMetric("loss", lambda run: run.loss_spread, digits=5),
    SpreadMetric(
        "violation",
        lambda run: run.violation_spread,
        lambda run: f"broken in {percent(run.broken)} of rounds",
    ),
    SpreadMetric("churn", lambda run: run.churn_spread),
)
"""In the order of lines and columns."""


def _spread_cell(metric: SpreadMetric, part: str) -> Callable[[Run], str]:
    def cell(run: Run) -> str:
        found = metric.measure(run)
        if found is None:
            return "unknown"
        return short_number(getattr(found, part), metric.digits if part == "mean" else 3)

    return cell


_LOSS, _BREACH, _CHURN = SPREADS
SPREAD_COLUMNS: tuple[SpreadColumn, ...] = (
    SpreadColumn("loss\np99", _spread_cell(_LOSS, "p99"), 1),
    SpreadColumn("\nworst", _spread_cell(_LOSS, "worst"), 1),
    SpreadColumn("churn\np99", _spread_cell(_CHURN, "p99"), 1),
    SpreadColumn("\nworst", _spread_cell(_CHURN, "worst"), 2),
    SpreadColumn("violation\nmean", _spread_cell(_BREACH, "mean")),
    SpreadColumn("\np99", _spread_cell(_BREACH, "p99")),
    SpreadColumn("\nworst", _spread_cell(_BREACH, "worst")),
    SpreadColumn("rounds\nbroken", lambda run: percent(run.broken)),
)
"""From left to right."""

TOTALS: tuple[TotalMetric, ...] = (
    TotalMetric(
        "loss",
        "what the decisions cost",
        lambda run: np.cumsum(run.losses, dtype=np.float64),
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
    cells = [
        (
            metric.name,
            short_number(found.mean, metric.digits),
            *map(short_number, (found.p99, found.worst)),
        )
        for metric, found in known
    ]
    head, *lines = aligned([("a round", "mean", "p99", "worst"), *cells])
    ends = (
        ", ".join(filter(None, (f"in round {found.worst_round + 1:,}", metric.more(run))))
        for metric, found in known
    )
    return [head, *(f"{line}  {end}" for line, end in zip(lines, ends, strict=True))]


def plain_metrics(run: Run) -> dict[str, Any]:
    """Every number of a run as plain data."""
    return {metric.key: metric.value(run) for metric in METRICS}


def round_columns(run: Run, *, kept: bool = False) -> dict[str, NDArray]:
    """A column for each number of a round that is known of a run; with `kept` those alone that
    files have.
    """
    shown = (metric for metric in ROUND_METRICS if metric.kept or not kept)
    columns = ((metric.key, metric.values(run)) for metric in shown)
    return {key: values for key, values in columns if values is not None}


def sweep_columns() -> dict[str, type]:
    """The columns of the table of a sweep that hold numbers of runs, and their types."""
    return {column.name: column.kind for metric in METRICS for column in metric.columns}


def sweep_values(plain: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in these columns, given the plain data of a run; None what it does not have."""
    return {
        column.name: column.value(plain.get(metric.key))
        for metric in METRICS
        for column in metric.columns
    }
