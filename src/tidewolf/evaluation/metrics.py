"""The numbers of a run, each declared once; `Run.summary` describes those of the whole run.

    MEASURES         one for the whole run   Run.summary(), so summary.json and --json; the rows of
                                             sweeps
    TABLE            columns of runs         the tables of the command line, of pages and notebooks
    ROUND_TABLE      mean, p99, worst        print(run); the second table of the command line
    SWEEP_COLUMNS    parts of MEASURES       the table of a sweep, results.parquet
    ROUND_NUMBERS    one for each round      Run.to_pandas(), rounds.parquet

What is measured during a run is gathered in recording.py. `run.experts`: the experts that a learner
mixed, in its order; tables begin with those of the largest mean weight.

    mean weight, weight     over the rounds, and in the last one
    lost at most            A/V of the guard inequality, in units of the loss: the run's total, in
                            the expert's own unit (loss, and constraints at the multipliers), less
                            the expert's, over the rounds it had a point in; negative if the run was
                            better in that sum (not always in the loss)
    loss, violation         what it would have had alone, per round of those it had a point in

`run.limits` and `broken_limits(run)`: violations of each constraint, by name. Sentences about a run
in hindsight give its regret, or what is known in its place if no fixed point satisfies every
constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

import numpy as np

from tidewolf.core.types import Floats, NDArray
from tidewolf.evaluation.formatting import (
    Column,
    aligned,
    applying,
    bound_text,
    informative,
    interval,
    number,
    percent,
    plain_interval,
    short_number,
)
from tidewolf.evaluation.tracking import Breach, Breaches, time_texts
from tidewolf.functions import MaxUtilization
from tidewolf.methods.capabilities import Expert, LimitBound

if TYPE_CHECKING:
    from tidewolf.core.batch import Stream
    from tidewolf.evaluation.certificate import Total
    from tidewolf.evaluation.run import Run
    from tidewolf.hindsight.best import Infeasibility

# What a limit without a name is called if a round has no other.
ONLY_LIMIT = "the limit"
SHOWN_LIMITS = 3
_NAMED = 6


class Spread(NamedTuple):
    """A number of each round in short: its mean, what 99 % of the rounds do not exceed (by linear
    interpolation between two rounds), and its worst round.

    Attributes
    ----------
    worst_round : int
        Counted from 0.
    """

    mean: float
    p99: float
    worst: float
    worst_round: int


def spread(values: Floats) -> Spread | None:
    if len(values) == 0 or np.isnan(values).any():
        return None
    numbers = RoundNumbers(values)
    return Spread(float(np.mean(values)), numbers.p99, numbers.worst, int(np.argmax(values)))


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
        return float(np.quantile(np.asarray(self), 0.99)) if len(self) else np.nan

    @property
    def worst(self) -> float:
        """The largest of all rounds; NaN without a round, or if one is not known."""
        return float(np.asarray(self).max()) if len(self) else np.nan


# --- plain data -----------------------------------------------------------------------------------


def _per_round(total: float, run: Run) -> float:
    return total / max(1, run.rounds)


def _plain_spread(found: Spread | None) -> dict[str, Any] | None:
    return found and {**found._asdict(), "worst_round": found.worst_round + 1}


class BudgetRecord(NamedTuple):
    """What one budget spent, in its own unit.

    Attributes
    ----------
    net : float
        What was spent above the plan in all rounds; below 0 if something was left.
    worst_window : float
        The largest net overspend of a run of rounds, within one period unless it is carried over.
    unspent : float
        What was left in all; 0 if more was spent than planned.
    multipliers : array of float
        The price of spending after each round, in units of the loss per unit spent.
    spend : array of float
        What each round spent above its plan.
    windows : array of float
        The net of each period; of all rounds together if nothing starts over.
    """

    net: float
    worst_window: float
    unspent: float
    multipliers: Floats
    spend: Floats
    windows: Floats

    def __str__(self) -> str:
        said = f"net {self.net:+.4g}, worst window {self.worst_window:.4g}"
        price = f", multiplier {self.multipliers[-1]:.3g}" if len(self.multipliers) else ""
        return f"{said}, unspent {self.unspent:.4g}{price}"

    def plain(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name) for name in ("net", "worst_window", "unspent")}
        last = float(self.multipliers[-1]) if len(self.multipliers) else None
        return numbers | {"windows": self.windows, "multiplier": last}


# In the order of summary.json, before `formatting.plain`.
MEASURES: dict[str, Callable[[Run], Any]] = {
    "loss": lambda run: {
        "total": float(run.losses.sum()),
        **(_plain_spread(run.loss_spread) or dict.fromkeys(Spread._fields)),
    },
    "churn": lambda run: _plain_spread(run.churn_spread),
    "regret": lambda run: plain_interval(run.regret),
    "hindsight": lambda run: plain_hindsight(run),
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
    "certificate": lambda run: {
        "membership": run.certificate.checks[0].holds,
        "bound_reason": run.bound.reason,
        **run.certificate.summary(),
    },
    "unseen": lambda run: run.unseen,
    "late": lambda run: run.late,
    "pending": lambda run: run.pending,
    "overrides": lambda run: run.overrides,
    "each_violation": lambda run: run.each_violation,
    "limit_names": lambda run: None if run.each_violation is None else run.limit_names,
    "limits": lambda run: run.limits,
    "budgets": lambda run: {name: one.plain() for name, one in run.budgets.items()},
    "experts": lambda run: run.experts,
}

_ENDS, _PARTS = ("lower", "upper"), Spread._fields[:3]
# The type of each column of a sweep, and its keys in the plain data of a run.
SWEEP_COLUMNS: dict[str, tuple[type, str]] = {
    "loss": (float, "loss.total"),
    **{f"loss_{part}": (float, f"loss.{part}") for part in _PARTS},
    **{f"churn_{part}": (float, f"churn.{part}") for part in _PARTS},
    **{f"regret_{end}": (float, f"regret.{end}") for end in _ENDS},
    **{f"least_breach_{end}": (float, f"hindsight.least_breach.{end}") for end in _ENDS},
    "kept_rounds": (int, "hindsight.kept_rounds"),
    **{f"regret_kept_{end}": (float, f"hindsight.regret_kept.{end}") for end in _ENDS},
    "violation": (float, "violation"),
    **{f"violation_{part}": (float, f"violation_by_round.{part}") for part in _PARTS},
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
    **{name: (int, name) for name in ("unseen", "late", "pending")},
    "overrides": (int, "overrides.rounds"),
}


def sweep_columns() -> dict[str, type]:
    return {name: kind for name, (kind, _) in SWEEP_COLUMNS.items()}


def sweep_values(plain: Mapping[str, Any]) -> dict[str, Any]:
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
    allowed = (("measured bound:", total.bound), ("guaranteed:", total.guarantee))
    known = [(what, most) for what, most in allowed if most is not None]
    told = [(what, most) for what, most in known if informative(total.size, most)]
    loose = [f"bound {bound_text(total.size, most)}" for _, most in known[:1] if not told]
    return [f"{what} at most {number(most)}" for what, most in told] + loose


def _regret_details(run: Run) -> list[str]:
    if run.regret is None:
        return []
    return [f"{interval(run.regret, run.rounds or 1)} per round", *_allowed(run.certificate.regret)]


def _kept_details(run: Run) -> list[str]:
    if (found := run.least_breach) is None:
        return []
    least = interval((found.lower, found.upper))
    return [f"{len(found.kept):,} of {found.rounds:,} rounds kept", f"least violation {least}"]


def _violation_details(run: Run) -> list[str]:
    return [
        f"{number(_per_round(float(run.violations.sum()), run))} per round",
        *_spread_details(run.violation_spread),
        f"{percent(run.broken)} of rounds broken",
        *_allowed(run.certificate.violation),
    ]


def _number(key: str) -> Callable[[Run], str]:
    return lambda run: number(MEASURES[key](run))


def _mean(name: str, narrow_title: str) -> Column[Run]:
    found = attrgetter(f"{name}_spread")
    return Column(
        *(f"mean {name}", narrow_title, lambda run: number(getattr(found(run), "mean", None))),
        details=lambda run: _spread_details(found(run)),
    )


def _interval(name: str) -> Callable[[Run], str]:
    return lambda run: "none" if (ends := getattr(run, name)) is None else interval(ends)


def _has(name: str) -> Callable[[Run], bool]:
    return lambda run: getattr(run, name) not in (None, 0)


def _in_all(name: str) -> Callable[[Run], list[str]]:
    return lambda run: [f"{getattr(run, name):,} in all"]


TABLE: tuple[Column[Run], ...] = (
    Column("total loss", "loss\ntotal", lambda run: number(float(run.losses.sum()))),
    _mean("loss", "\nmean"),
    _mean("churn", "churn\nmean"),
    Column("regret", "regret", _interval("regret"), 0, _has("regret"), _regret_details),
    Column(
        *("regret, kept rounds", "regret,\nkept rounds", _interval("regret_kept")),
        *(0, _has("regret_kept"), _kept_details),
    ),
    Column("violation", "violation", _number("violation"), details=_violation_details),
    Column(
        *("oracle calls per round", "calls/\nround", _number("calls_per_round")),
        details=_in_all("oracle_calls"),
    ),
    Column(
        *("LP solves per round", "LPs/\nround", _number("solves_per_round")),
        *(2, _has("solves"), _in_all("solves")),
    ),
    Column("largest infeasibility", "largest\ninfeasibility", _number("max_infeasibility"), 3),
    Column("late rounds", "late\nrounds", _number("late"), 1, _has("late")),
    Column("pending rounds", "pending\nrounds", _number("pending"), 1, _has("pending")),
    Column("seconds", "seconds", _number("seconds"), 1),
)


def _spread_cell(name: str, part: str, run: Run) -> str:
    found: Spread | None = getattr(run, f"{name}_spread")
    digits = 5 if (name, part) == ("loss", "mean") else 3
    return "unknown" if found is None else short_number(getattr(found, part), digits)


def _spread_column(title: str, name: str, part: str, rank: int = 0) -> Column[Run]:
    return Column(title, title, partial(_spread_cell, name, part), rank)


ROUND_TABLE: tuple[Column[Run], ...] = (
    _spread_column("loss\np99", "loss", "p99", 1),
    _spread_column("\nworst", "loss", "worst", 1),
    _spread_column("churn\np99", "churn", "p99", 1),
    _spread_column("\nworst", "churn", "worst", 2),
    _spread_column("violation\nmean", "violation", "mean"),
    _spread_column("\np99", "violation", "p99"),
    _spread_column("\nworst", "violation", "worst"),
    Column("rounds\nbroken", "rounds\nbroken", lambda run: percent(run.broken)),
)


def spread_lines(run: Run) -> list[str]:
    if not run.rounds:
        return []
    names = ("loss", "violation", "churn")
    rows = [[name, *(_spread_cell(name, part, run) for part in _PARTS)] for name in names]
    lines = aligned([["per round", *_PARTS], *rows])
    for i, name in enumerate(names, 1):
        if found := getattr(run, f"{name}_spread"):
            lines[i] += f"  in round {found.worst_round + 1:,}"
    lines[2] += f", broken in {percent(run.broken)} of rounds"
    return lines


# --- rounds ---------------------------------------------------------------------------------------

# In the order of the columns of Run.to_pandas().
ROUND_NUMBERS: dict[str, Callable[[Run], NDArray | None]] = {
    "loss": lambda run: run.losses,
    "violation": lambda run: run.violations,
    "calls": lambda run: run.calls,
    "distance": lambda run: run.distances,
    "churn": lambda run: np.asarray(run.churn),
    "solves": lambda run: run.round_solves,
    "regret": lambda run: run.regret_curve(),
}


def round_columns(run: Run, *, kept: bool = False) -> dict[str, NDArray]:
    """A column for each number of a round that is known; with `kept` those that files have, without
    the regret, which needs the comparator.
    """
    of = {name: of for name, of in ROUND_NUMBERS.items() if not (kept and name == "regret")}
    return {name: values for name in of if (values := of[name](run)) is not None}


# --- experts --------------------------------------------------------------------------------------


def weight_text(weight: float) -> str:
    """A weight as a share: 0 %, < 0.1 %, 12.3 %, 100 %."""
    if weight in (0.0, 1.0):
        return f"{100.0 * weight:.0f} %"
    return "< 0.1 %" if weight < 0.0005 else f"{100.0 * weight:.1f} %"


def _a_round(total: float | None, rounds: int, digits: int) -> str:
    if total is None:
        return "unknown"
    return short_number(total / rounds, digits) if rounds else "none"


def _expert_column(
    title: str, cell: Callable[[Expert], str], applies: Callable[[Expert], bool] = lambda _: True
) -> Column[Expert]:
    return Column(title, title, cell, 0, applies)


EXPERT_COLUMNS = (
    _expert_column("mean weight", lambda expert: weight_text(expert.mean_weight)),
    _expert_column("last", lambda expert: weight_text(expert.weight)),
    _expert_column("lost at most", lambda expert: number(expert.guard)),
    _expert_column("loss", lambda expert: _a_round(expert.loss, expert.rounds, 5)),
    _expert_column("violation", lambda expert: _a_round(expert.violation, expert.rounds, 3)),
    _expert_column("rounds", lambda expert: f"{expert.rounds:,}"),
    _expert_column("LP solves", lambda expert: f"{expert.solves:,}", lambda each: each.solves > 0),
    _expert_column("calls", lambda expert: f"{expert.calls:,}", lambda each: each.calls > 0),
    _expert_column(
        "outside", lambda expert: short_number(expert.outside), lambda each: each.outside > 0
    ),
)


@final
class Experts(tuple[Expert, ...]):
    """The members of a run, one row each; prints as a table."""

    @property
    def by_trust(self) -> tuple[Expert, ...]:
        return tuple(sorted(self, key=lambda expert: -expert.mean_weight))

    def columns(self) -> list[Column[Expert]]:
        return applying(EXPERT_COLUMNS, self)

    def lines(self, most: int | None = None) -> list[str]:
        columns, shown = self.columns(), self.by_trust[:most]
        if not shown:
            return []
        rows = [(m.name, *(column.cell(m) for column in columns)) for m in shown]
        lines = aligned([("expert", *(column.title for column in columns)), *rows])
        left = len(self) - len(shown)
        return [*lines, f"and {left} more in run.experts"] if left else lines

    def __repr__(self) -> str:
        return "\n".join(self.lines()) or "no members"


# --- limits ---------------------------------------------------------------------------------------


@final
class RunLimits(tuple[LimitBound, ...]):
    """The limits of a run, one row each; prints as a table."""

    @property
    def broken(self) -> tuple[LimitBound, ...]:
        every = sorted(self, key=lambda one: -one.violation)
        return tuple(one for one in every if one.violation > 0.0)

    def lines(self, most: int | None = None) -> list[str]:
        if not self:
            return []
        shown = self.broken[:most]
        colon = ", those most:" if len(shown) < len(self.broken) else ":" if shown else ""
        lines = [f"{len(self.broken)} of {len(self)} limits were broken{colon}"]
        for name, violation, bound in shown:
            allowed = f", at most {short_number(bound or 0)}" * informative(violation, bound)
            lines.append(f"  {name}: {short_number(violation)}{allowed}")
        return lines

    def __repr__(self) -> str:
        return "\n".join(self.lines()) or "limits are not distinguished"


def broken_limits(run: Run) -> list[tuple[str, float, Breach, float | None]]:
    """The name of each limit that was broken, by how much in all, when, and the most that theory
    allows; None if the learner does not tell limits apart.
    """
    each, found, names = run.each_violation, run.breaches, run.limit_names
    if each is None or found is None:  # a round has one limit
        found, names = Breaches(1), (ONLY_LIMIT,)
        if run.rounds:
            found.see(0, run.violations[:, None])
        each = run.violations.sum(keepdims=True)
    bounds = [one.bound for one in run.limits] or [None] * len(each)
    return [
        (names[i], float(each[i]), found.of(i), bounds[i])
        for i in np.argsort(-each, kind="stable").tolist()
        if each[i] > 0.0 and found.when[0, i]
    ]


# --- hindsight ------------------------------------------------------------------------------------


def hindsight_sentences(runs: Sequence[Run]) -> list[str]:
    """Why there is no regret, or only half of it, and what is known instead; nothing if there is
    one.
    """
    said = list[str]()
    for run in runs:
        best, why = run.hindsight
        if run.rounds == 0 or (best is not None and best.point is not None):
            continue
        if best is None or best.infeasibility is None:
            none = "No fixed point that satisfies every constraint was found, and no proof that"
            half = f"{none} there is none: the regret is known from above only."
            said.append(f"{why} So the regret is not known." if best is None else half)
            continue
        said.append(contradiction(best.infeasibility, run.stream))
        if (found := run.least_breach) is not None:
            ends = interval((found.lower, found.upper))
            said.append(
                f"The least that a fixed decision breaks limits by in all is {ends}. The best of "
                f"those that keep the {len(found.kept):,} of {found.rounds:,} rounds which can be "
                f"kept then costs {number(found.best.upper)}."
            )
    return list(dict.fromkeys(said))


def contradiction(proof: Infeasibility, stream: Stream) -> str:
    """That no point satisfies every constraint, in plain words: which rounds show it, by their
    times where
    they have some, and by how much one of them is broken whatever is decided.

    The proof has weights of sum 1, so what it weighs is broken by `bound` somewhere at least.
    """
    rounds, where = np.unique(proof.rounds, return_inverse=True)
    shares = np.bincount(where, proof.weights)
    heaviest = np.sort(np.argsort(-shares.round(9), kind="stable")[:_NAMED])
    shown, least = rounds[heaviest].tolist(), f"by at least {proof.bound:.3g}"
    names, what = [f"{t + 1:,}" for t in shown], " rounds " if len(rounds) > 1 else " round "
    if stream.stamps is not None:
        texts, what = time_texts(stream.stamps), " "
        names = [texts[t].replace("T", " ") for t in shown]
    if len(rounds) == 1:
        only = f"that of{what}{names[0]} is always broken {least}"
        return f"No decision satisfies every constraint: {only}."
    more = len(rounds) - len(names)
    last = f"{more:,} more" if more else names.pop()
    return (
        f"No fixed decision satisfies every constraint: those of{what}{', '.join(names)} and "
        f"{last} contradict each other, and any one decision breaks one of them {least}."
    )


def regret_words(run: Run) -> str:
    regret, kept, what = run.regret, run.regret_kept, "regret"
    if regret is None and kept is not None and run.least_breach is not None:
        what += f" against points that keep {len(run.least_breach.kept)} of {run.rounds} rounds"
        regret = kept
    return f"{what} unknown" if regret is None else f"{what} [{regret[0]:.6g}, {regret[1]:.6g}]"


def plain_hindsight(run: Run) -> dict[str, Any] | None:
    found = run.least_breach
    return found and {
        "least_breach": plain_interval((found.lower, found.upper)),
        "kept_rounds": len(found.kept),
        "rounds": found.rounds,
        "loss_kept": plain_interval((found.best.lower, found.best.upper)),
        "regret_kept": plain_interval(run.regret_kept),
    }


# --- verdict --------------------------------------------------------------------------------------
#
# The result of several runs in one sentence: the first learner beside the best of the others, the
# cheapest of the baselines that re-solve, else the cheapest of all. One alone is compared with the
# best fixed decision.

# Losses that differ by a smaller share are called the same.
SAME = 0.0005


def verdict(runs: Sequence[Run], names: Sequence[str]) -> str:
    """One sentence on runs of one stream, the first of which is ours; lower is better."""
    if not runs or not runs[0].rounds:
        return ""
    did = "filled the fullest link" if isinstance(runs[0].stream.losses, MaxUtilization) else "cost"
    losses = [float(run.losses.mean()) for run in runs]
    broken = [float(run.violations.mean()) for run in runs]
    if len(runs) == 1:
        return _alone(runs[0], f"{names[0]} {did}", losses[0], broken[0])
    others = range(1, len(runs))
    solving = [i for i in others if names[i].startswith("Resolve")]
    i = min(solving or others, key=lambda i: losses[i])
    return beside((names[0], names[i]), (losses[0], losses[i]), (broken[0], broken[i]), did)


def beside(
    names: Sequence[str], losses: Sequence[float], violations: Sequence[float], did: str = "cost"
) -> str:
    cost, (ours, theirs) = f"{names[0]} {did} {_compared(*losses)} {names[1]}", violations
    if ours == theirs == 0.0:
        return f"{cost}, and neither violated a constraint (lower is better)."
    if ours == 0.0 or theirs == 0.0:
        none, some = names if ours == 0.0 else names[::-1]
        amount = f"{some} by {short_number(ours + theirs)} per round on average"
        return f"{cost}; {none} violated no constraint, {amount} (lower is better)."
    more = max(ours, theirs) / min(ours, theirs)
    ratio = f"{more:.2g}" if more < 10.0 else f"{more:,.0f}"
    times = f"{ratio} times {'less' if ours < theirs else 'more'}" if more > 1.05 else "as much"
    amounts = f"{short_number(ours)} against {short_number(theirs)} per round on average"
    return f"{cost} and violated constraints {times} ({amounts}; lower is better)."


def _alone(run: Run, first: str, loss: float, violation: float) -> str:
    violated = "violated no constraint"
    if violation > 0.0:
        violated = f"violated constraints by {short_number(violation)} per round on average"
    cost = f"{number(loss)} per round"
    if run.regret is not None:
        best = loss - run.regret[1] / run.rounds
        cost = f"{_compared(loss, best)} the best fixed decision in hindsight"
    return f"{first} {cost} and {violated} (lower is better)."


def _compared(own: float, other: float) -> str:
    """ "1.3 % less than", or the difference where shares of the other say nothing."""
    if abs(own - other) <= SAME * abs(other):
        return "as much as"
    than = "less than" if own < other else "more than"
    if other <= 0.0 or own <= 0.0:
        return f"{short_number(abs(other - own))} per round {than}"
    return f"{100.0 * abs(own - other) / other:.2g} % {than}"
