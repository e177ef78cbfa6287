"""Run a learner over a recorded stream, and keep everything that is measured in each round.

`intervals`: regret and violation on every interval of a family, each against the best point for
that interval alone.

    regret [s, e)
        =  sum_{s <= t < e} f_t(x_t) - min { sum_{s <= t < e} f_t(x) : x in K, g_t(x) <= 0 for
        s <= t < e }
    violation [s, e)  =  sum_{s <= t < e} max(g_t(x_t), 0)

The family: for every power of two L from `shortest` up to T, the intervals [0, L), [L/2, 3L/2),
[L, 2L), .. and the last L rounds; and the whole run. Any interval of at least 2 `shortest` rounds
holds one of the family of more than a third of its length. There are about 4 T/shortest of them, 32
at the least length by default; each is a comparator of its own, a linear program. Intervals whose
constraints no point satisfies have nothing to compare with: they are counted, with their proofs.

`rates`: how fast regret and violation grow with the horizon, the slope of log(total) on log(T),
beside the theorem's exponent.

    total = C T^p    <=>    log total = log C + p log T

One point for each run: several horizons, several seeds at each. p is the least-squares slope over
all of them and its interval is that of the regression, p +- t_{0.975, N-2}
s/sqrt(sum (log T - mean)^2) with s^2 the residual variance: it counts the scatter between seeds,
and what a straight line misses too, which resampling seeds would not. The regret counts by its
upper end. A total at or below zero has no logarithm. Without such runs the slope would be too
large, and a least value for them would determine it: no exponent is fitted then, and how many there
are is reported. (A regret at or below zero is below every guarantee.)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core.arguments import as_callback, as_flag, as_items, shown
from tidewolf.core.arrays import as_count, to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput, NotSupported, WrongType
from tidewolf.core.registry import presenter_of
from tidewolf.core.types import Floats, Int64s
from tidewolf.core.values import Value
from tidewolf.evaluation import certificate, metrics
from tidewolf.evaluation.certificate import (
    Audit,
    Certificate,
    CertificateCheck,
    feasibility_slack,
)
from tidewolf.evaluation.formatting import (
    aligned,
    data_frame,
    number_or_none,
    plain_interval,
    precise_interval,
)
from tidewolf.evaluation.metrics import (
    SHOWN_LIMITS,
    Experts,
    RoundNumbers,
    RunLimits,
    Spread,
    hindsight_sentences,
    regret_words,
    spread,
)
from tidewolf.evaluation.recording import Recording, RunProgress
from tidewolf.evaluation.tracking import (
    Breaches,
    Decisions,
    KeptDecisions,
    Membership,
    TrajectorySummary,
    decisions_of,
)
from tidewolf.functions.combined import limit_names
from tidewolf.functions.negative import warn_of_negative_capacities
from tidewolf.hindsight.best import Comparator, LeastBreach, best_in_hindsight, least_breach
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.capabilities import (
    BoundsParts,
    Explores,
    LimitBound,
    WeighsConstraints,
    experts_of,
)
from tidewolf.methods.late import Overrides

INFEASIBLE = "No point satisfies every constraint, so there is nothing to compare with."
PROGRESS_SECONDS = 0.1
"""Seconds between two reports of progress."""
SHOWN_EXPERTS = 6
"""How many members a printed run names."""
_SHARES = 32
"""How many of the shortest intervals, end to end, cover a run by default."""
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class Run(Record):
    """What happened when a learner played a stream, round by round: what `tw.run` gives.

    Prints as a few lines, shows itself in notebooks. `regret` needs the comparator, which is
    computed when first asked.

    Parameters
    ----------
    losses : array of float
        The loss of each round.
    violations : array of float
        By how much the limit of each round was broken; 0 where it was kept.
    calls : array of int
        Oracle calls made after each round.
    distances : array of float
        |x - y| of the projection that each round was played from.
    final_state : object
        The learner's state after the last round, to resume from.
    ends : array of int
        After how many rounds each update came.
    measures : array of float
        The learner's running numbers after each update, one row each.
    learner : Learner
        Who played.
    stream : Stream
        What was played.
    membership : Membership
        What was gathered of the played points' being members of the hard set.
    seconds : float
        What acting, evaluating and learning took; compiling is not counted.
    audit : Audit
        What was gathered of the learner's projections; see `certificate`.
    each_violation : array of float, default None
        By how much each limit was broken in all, where a round has several: a capacity for each
        link, the pieces of a MaxAffine.
    known : Comparator, default None
        The comparator, if it is known already.
    trajectory : TrajectorySummary, default None
        The mean point of each of a bounded number of parts of the rounds.
    churn : array of float
        How far the decision moved before each round: half the L1 change from the round before, 0
        in the first one. An array that knows its `p99` and its `worst`, too.
    round_solves : array of int
        Linear programs that the learner solved after each round.
    untold_slopes : tuple of float, default (0.0, 0.0)
        The slopes of the losses, and of the limits that were broken, summed over the rounds whose
        feedback did not come.
    breaches : Breaches, default None
        When each limit was broken, where a round has several; pages say it by name.
    decisions : Decisions, default None
        What was played, round by round, with times and names; None where that was not asked for.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> run = tw.run(tw.LyapunovDescent(K), stream)
    >>> run.rounds, run.oracle_calls, float(run.violations.sum())
    (4, 1, 0.25)
    >>> run.churn.round(3)
    array([0.   , 0.5  , 0.437, 0.164])
    >>> [round(float(each), 3) for each in (run.churn.mean(), run.churn.p99, run.churn.worst)]
    [0.275, 0.498, 0.5]
    >>> run.certificate.holds
    True
    """

    learner: Learner[Any]
    stream: Stream
    membership: Membership
    seconds: float
    audit: Audit
    each_violation: Floats | None = None
    known: Comparator | None = None
    trajectory: TrajectorySummary | None = None
    churn: RoundNumbers = field(default_factory=lambda: RoundNumbers(np.zeros(0)))
    round_solves: Int64s = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    untold_slopes: tuple[float, ...] = (0.0, 0.0)
    breaches: Breaches | None = None
    decisions: Decisions | None = None

    @property
    def max_infeasibility(self) -> float:
        """The largest infeasibility of a played point over the set, as far as `membership` knows
        it.
        """
        return self.membership.infeasibility

    @property
    def oracle_calls(self) -> int:
        return int(self.calls.sum())

    @property
    def solves(self) -> int:
        """Linear programs that the learner solved, for advice say; a comparator's are its own."""
        return int(self.round_solves.sum())

    @cached_property
    def experts(self) -> Experts:
        """The experts that the learner mixed, one row each, with a bound on the regret to each.
        Empty for a learner that holds one point alone. Prints as a table.
        """
        return Experts(experts_of(self.learner, self.final_state))

    @cached_property
    def limit_names(self) -> tuple[str, ...]:
        """What the limits of a round are called: entries as the set calls them, else "limit 1"."""
        return limit_names(self.learner.K, self.stream.constraints)

    @cached_property
    def limits(self) -> RunLimits:
        """Each limit by name, how much it was broken and the most that theory allows, where the
        learner has a weight for each (`per_constraint=True`); else none. Prints as a table.
        """
        each, rows = self.each_violation, list[LimitBound]()
        measured = [float(self.violations.sum())] if each is None else each.tolist()
        known = isinstance(self.learner, WeighsConstraints) and self.learner.limit_bounds(self)
        for i, (name, violation, bound) in enumerate(known or ()):
            own = violation if self.pending else measured[i]  # of the rounds whose feedback came
            if bound is not None and self.overrides.valued:  # of the decisions: what was played
                bound += own - violation
            rows.append(LimitBound(name, own, None if self.bound.violation is None else bound))
        return RunLimits(rows)

    @cached_property
    def loss_spread(self) -> Spread | None:
        """Mean, p99 and worst of the rounds' losses; None without a round."""
        return spread(self.losses)

    @cached_property
    def violation_spread(self) -> Spread | None:
        """Mean, p99 and worst of the rounds' violations; None without a round."""
        return spread(self.violations)

    @cached_property
    def churn_spread(self) -> Spread | None:
        """Mean, p99 and worst of `churn`; None without a round."""
        return spread(self.churn)

    @cached_property
    def broken(self) -> float:
        """The share of rounds in which the limit was broken, by more than rounding: 1e-9 of the
        limits' size.
        """
        if self.rounds == 0:
            return 0.0
        return float(np.mean(self.violations > feasibility_slack(self, 1)))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences worth knowing: the learner's own, how many rounds it did not see, and of how
        many the feedback is pending.
        """
        unseen = f"{self.unseen} of the {self.rounds} rounds, which count, had no feedback."
        more = (unseen * bool(self.unseen), certificate.untold_in_words(self))
        return (*self.learner.notes(self.final_state), *filter(None, more))

    @property
    def late(self) -> int:
        """Rounds whose feedback came, after the end of their own round."""
        arrives, seen = self.stream.arrives, self.stream.seen
        if arrives is None:
            return 0
        late = (arrives > np.arange(self.rounds)) & (arrives < self.rounds)
        return int(np.count_nonzero(late if seen is None else late & seen))

    @property
    def pending(self) -> int:
        """Rounds whose feedback had not come by the end of the last."""
        return self.stream.untold

    @property
    def overrides(self) -> Overrides:
        """In how many rounds another point than the decision was played, and what that cost."""
        return getattr(self.final_state, "overrides", Overrides())

    @property
    def unseen(self) -> int:
        """Rounds that were played, and counted, without feedback to the learner."""
        return self.stream.unseen

    @property
    def comparator(self) -> Comparator | None:
        """The best fixed point in hindsight, or None if no exact method applies."""
        return self.hindsight[0]

    @cached_property
    def hindsight(self) -> tuple[Comparator | None, str]:
        """The comparator, and the reason if no exact method applies."""
        if self.known is not None or self.rounds == 0:
            return self.known, ""
        try:
            return best_in_hindsight(self.learner.K, self.stream), ""
        except NotSupported as why:
            return None, str(why)

    @property
    def regret(self) -> tuple[float, float] | None:
        """Total loss minus the comparator's, as a certified interval; None where no point is
        feasible or none is known.
        """
        best = self.comparator
        if self.rounds == 0:
            return 0.0, 0.0
        if best is None or best.feasible is False:
            return None
        total = float(self.losses.sum())
        return total - best.upper, total - best.lower

    @cached_property
    def least_breach(self) -> LeastBreach | None:
        """Where no point keeps every limit, what can be said instead: by how much any fixed point
        breaks them at least, how many rounds one of the least breach keeps, and the best point that
        keeps those. None where some point keeps every limit, or nothing is known.
        """
        best = self.comparator
        if best is None or best.feasible is not False:
            return None
        try:
            return least_breach(self.learner.K, self.stream, best.infeasibility)
        except NotSupported:
            return None

    @property
    def regret_kept(self) -> tuple[float, float] | None:
        """Where no point keeps every limit: total loss minus that of the best point that keeps the
        rounds of `least_breach`, as an interval; None where those are none.
        """
        found, total = self.least_breach, float(self.losses.sum())
        if found is None or not len(found.kept):
            return None
        return total - found.best.upper, total - found.best.lower

    def regret_curve(self) -> Floats | None:
        """The regret so far: cumulative loss minus that of the comparator's point.

        Returns
        -------
        array of float or None
            One number for each round; None where there is no such point.
        """
        best = self.comparator
        if best is None or best.point is None:
            return None
        curve: Floats = np.cumsum(self.losses - to_numpy(self.stream.losses.values(best.point)))
        return curve

    @cached_property
    def bound(self) -> Bound:
        """The measured bound: what theory allows this run, given what it measured."""
        best = self.comparator
        if best is not None and best.feasible is False:
            return Bound(None, None, INFEASIBLE)
        if self.unseen:
            return Bound(None, None, certificate.UNSEEN)
        found, D = self.learner.bound(self), self.learner.K.diameter
        more = [D * slope for slope in self.untold_slopes] if self.pending else [0.0, 0.0]
        pairs = zip(found[:2], more, strict=True)
        regret, violation = (None if own is None else own + each for own, each in pairs)
        return Bound(regret, violation, found.reason)

    @cached_property
    def certificate(self) -> Certificate:
        """What the run can prove about itself, checked when first asked."""
        return certificate.certify(self)

    def summary(self) -> dict[str, Any]:
        """The numbers of the run as plain data, as summary.json and `--json` hold them.

        Returns
        -------
        dict
            learner
                The name of its class.
            rounds
                How many were played.
            loss, in units of the losses; less is better
                The losses: their total, and of the rounds the mean, what 99 % of them
                do not exceed, and the worst.
            churn, in units of points; less is better
                How far decisions moved, half the L1 change from one round to the next:
                the mean, what 99 % of the rounds do not exceed, and the worst.
            regret, in units of the losses; less is better
                The total loss less that of the best fixed point in hindsight, as a
                certified interval; None where no point keeps every limit, or no method
                knows the best one.
            hindsight
                Where no point keeps every limit: the least that any fixed point breaks
                them by in all, how many rounds one of the least breach keeps, the loss
                of the best point that keeps those, and the regret against it, as
                intervals; else None.
            violation, in units of the constraints; less is better
                By how much limits were broken in all; surplus never pays for a breach.
            violation_by_round, in units of the constraints; less is better
                The same of the rounds: the mean, what 99 % of them do not exceed, and
                the worst.
            broken, in shares of the rounds; less is better
                The share of rounds in which the limit was broken by more than rounding.
            oracle_calls, in oracle calls; less is better
                How often the hard set was asked for a linear minimiser.
            calls_per_round, in oracle calls a round; less is better
                The same on average over the rounds.
            solves, in linear programs; less is better
                How many linear programs the learner solved.
            solves_per_round, in linear programs a round; less is better
                The same on average over the rounds.
            seconds, in seconds; less is better
                What acting, evaluating and learning took, compiling not counted.
            max_infeasibility, in units of points; less is better
                How far a played point ever was outside the hard set.
            feasible_in_hindsight
                Whether some fixed point keeps every limit; None where that is not
                known.
            hindsight_method
                What found the best fixed point; None where nothing did.
            bound
                The measured bounds on regret and violation; None where there are none.
            certificate
                Whether everything holds that the run can check of itself, and each
                check's numbers.
            unseen, in rounds
                Rounds that were played, and counted, without feedback to the learner.
            late, in rounds
                Rounds whose feedback came after the end of their own.
            pending, in rounds
                Rounds whose feedback had not come by the end of the last.
            overrides
                Rounds in which another point than the decision was played, the price of
                that in units of the losses, and the totals there and at the decisions
                where the functions were seen.
            each_violation, in units of the constraints; less is better
                By how much each limit was broken, where a round has several.
            limit_names
                What the limits of each_violation are called, in their order.
            limits
                Each limit by name, by how much it was broken, and its bound, where the
                learner has a weight for each; else empty.
            experts
                The experts that the learner mixed: weights, guard, totals, linear programs
                and oracle calls of each; empty if it holds one point alone.
        """
        plain = {"learner": type(self.learner).__name__, "rounds": self.rounds}
        return plain | {key: measure(self) for key, measure in metrics.MEASURES.items()}

    def to_pandas(self) -> Any:
        """The rounds as a table.

        Returns
        -------
        pandas.DataFrame
            One row for each round: loss, violation, oracle calls, distance, and the regret so far
            where it is known.
        """
        return data_frame(metrics.round_columns(self), "round")

    def plot(self) -> Any:
        """Loss, regret, violation and oracle calls as they add up.

        Returns
        -------
        matplotlib.figure.Figure
            Made without pyplot; a notebook shows it.
        """
        return presenter_of(self).plot(self)

    def _repr_html_(self) -> str:
        """The table and the figures, for notebooks."""
        return presenter_of(self).html(self)

    def __repr__(self) -> str:
        moved = self.churn_spread
        counts = {"unseen": self.unseen, "late": self.late, "pending": self.pending}
        said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        numbers = (
            f"rounds {self.rounds}" + (f" ({said})" if said else ""),
            f"loss {self.losses.sum():.6g}",
            f"mean loss {self.losses.mean() if self.rounds else 0.0:.5g}",
            "" if moved is None else f"mean churn {moved.mean:.3g}",
            regret_words(self),
            f"violation {self.violations.sum():.6g}",
            f"oracle calls {self.oracle_calls}",
            f"LP solves {self.solves}" if self.solves else "",
            f"largest infeasibility {self.max_infeasibility:.2g}",
            f"{self.seconds:.3g} s",
        )
        limits, each = self.limits, self.each_violation
        if not limits and each is not None:
            limits = RunLimits(map(LimitBound, self.limit_names, each.tolist(), [None] * len(each)))
        lines = (
            *metrics.spread_lines(self),
            *limits.lines(SHOWN_LIMITS),
            *hindsight_sentences([self]),
        )
        first = f"Run of {self.learner!r}", ", ".join(filter(None, numbers))
        return "\n  ".join([*first, *lines])

    def __str__(self) -> str:
        best = self.comparator
        method = "" if best is None or best.infeasibility is not None else best.method
        found = f"\n  best fixed point in hindsight by: {method}" if method else ""
        experts = "".join(f"\n  {line}" for line in self.experts.lines(SHOWN_EXPERTS))
        return f"{self!r}{found}{experts}\n{self.certificate}"


def run(
    learner: Learner[Any],
    stream: Stream,
    *,
    progress: Callable[[RunProgress], None] | None = None,
    comparator: Comparator | None = None,
    decisions: bool = False,
    every: int = 1,
) -> Run:
    """Play a whole stream, and measure everything on the way.

    Parameters
    ----------
    learner : Learner
        Who plays: `tw.LyapunovDescent(K)`, any other of `tw.learners` and `tw.baselines`, or one's
        own.
    stream : Stream
        The losses and constraints of the rounds.
    progress : callable, default None
        Is called a few times a second with how far the run is: rounds done and in all, oracle
        calls, total loss, total violation.
    comparator : Comparator, default None
        The best fixed point in hindsight, where it is known already; None: it is computed when
        the run is first asked for its regret.
    decisions : bool, default False
        Whether `run.decisions` keeps what was played, one number for each entry of each round that
        is kept.
    every : int, default 1
        Keep the decisions of each round of this number: the first, and each that comes so many
        rounds after one that is kept.

    Returns
    -------
    Run
        What happened, round by round.

    Raises
    ------
    WrongType
        Where the learner, the stream or the comparator is something else.
    WrongShape
        Where the stream's functions take points of another shape than the learner's set has.
    NotFinite
        Where a loss or a constraint is no number, or so large that totals would overflow.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> run = tw.run(tw.LyapunovDescent(K), stream)
    >>> run.losses.round(3)
    array([1.5  , 1.   , 1.437, 1.273])
    >>> [round(end, 3) for end in run.regret]
    [0.211, 0.211]
    >>> tw.run(tw.LyapunovDescent(K), stream, decisions=True, every=2).decisions
    round  entry 1  entry 2
    0          0.5      0.5
    2        0.563    0.437
    """
    as_callback(progress, "progress, which is called as the run advances,")
    if comparator is not None and not isinstance(comparator, Comparator):
        raise WrongType(
            f"The comparator is what best_in_hindsight gives, or None, not {shown(comparator)}."
        )
    every = as_count(every, "every, the rounds from one decision that is kept to the next,")
    recording, last = Recording(learner, stream), time.perf_counter()
    if as_flag(decisions, "decisions, whether they are kept,"):
        recording.decisions = KeptDecisions(len(stream), stream.shape, every)
    warn_of_negative_capacities(learner.K, stream.constraints, set())
    for _ in recording.advance():
        due = recording.done or time.perf_counter() - last > PROGRESS_SECONDS
        if progress is not None and due:
            last = time.perf_counter()
            progress(recording.progress)
    return finished(recording, comparator)


def finished(recording: Recording, comparator: Comparator | None = None) -> Run:
    """What a recording tells of the rounds it has played, which are all there are."""
    ends, measures = recording.updates()
    kept, decisions = recording.decisions, None
    if isinstance(kept, KeptDecisions):
        decisions = decisions_of(recording.learner.K, recording.stream, kept)
    same = "losses violations calls distances learner stream membership seconds audit trajectory"
    return Run(
        **{name: getattr(recording, name) for name in same.split()},
        each_violation=recording.each if len(recording.each) else None,
        final_state=recording.state,
        ends=ends,
        measures=measures,
        known=comparator,
        churn=RoundNumbers(recording.movement.churn),
        round_solves=recording.solves,
        untold_slopes=recording.untold,
        breaches=recording.breaches if len(recording.each) else None,
        decisions=decisions,
    )


# --- intervals ------------------------------------------------------------------------------------


class Interval(NamedTuple):
    """Rounds start to stop, and what came of them."""

    start: int
    stop: int
    comparator: Comparator | None
    """None where no exact method applies"""
    regret: tuple[float, float] | None
    """as a certified interval; None where no point is feasible or none is known"""
    violation: float
    bound: Bound
    """the learner's measured bound for these rounds"""

    @property
    def length(self) -> int:
        return self.stop - self.start

    @property
    def feasible(self) -> bool | None:
        """Whether some point keeps every constraint of these rounds; None where it is not known."""
        return None if self.comparator is None else self.comparator.feasible

    def __str__(self) -> str:
        return f"rounds {self.start} to {self.stop}"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Intervals(Value):
    """The intervals of a run, by length and then by start: what `tw.intervals` gives.

    Parameters
    ----------
    learner : str
        The name of the learner's class.
    every : tuple of Interval
        Its rounds, the comparator for these alone, regret, violation, and the measured bound.
    checks : tuple of CertificateCheck
        Each interval against the learner's measured bound for it, where there is one.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> found = tw.intervals(tw.run(tw.LyapunovDescent(K), stream), shortest=2)
    >>> [str(each) for each in found.every]
    ['rounds 0 to 2', 'rounds 1 to 3', 'rounds 2 to 4', 'rounds 0 to 4']
    """

    learner: str
    every: tuple[Interval, ...]
    checks: tuple[CertificateCheck, ...]

    @property
    def worst_regret(self) -> Interval | None:
        """The interval of the largest regret; None if none is known."""
        return _worst(self.every)[0]

    @property
    def worst_violation(self) -> Interval:
        return _worst(self.every)[1]

    @property
    def infeasible(self) -> tuple[Interval, ...]:
        """Those with a proof that no point keeps all of their constraints."""
        return tuple(each for each in self.every if each.feasible is False)

    def worst_by_length(self) -> list[tuple[list[Interval], Interval | None, Interval]]:
        """The intervals of each length, with those of the worst regret and the worst violation."""
        groups: dict[int, list[Interval]] = {}
        for each in self.every:
            groups.setdefault(each.length, []).append(each)
        return [(these, *_worst(these)) for _, these in sorted(groups.items())]

    @property
    def holds(self) -> bool | None:
        """Whether every interval is within its measured bound; None where there is no bound or
        something is undecided.
        """
        return certificate.all_hold(self.checks) if self.checks else None

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each measured bound that does not hold."""
        return tuple(check.sentence for check in self.checks if check.holds is False)

    def summary(self) -> dict[str, Any]:
        """The numbers as plain data."""
        same = ("start", "stop", "feasible", "violation")
        every = [
            {
                **{name: getattr(each, name) for name in same},
                "regret": plain_interval(each.regret),
                "bound": {"regret": each.bound.regret, "violation": each.bound.violation},
            }
            for each in self.every
        ]
        plain = {"learner": self.learner, "holds": self.holds, "infeasible": len(self.infeasible)}
        return plain | {"intervals": every}

    def __repr__(self) -> str:
        heads = ("rounds", "intervals", "infeasible", "worst regret", "measured bound")
        rows = [[*heads, "worst violation", "measured bound"]]
        for these, regret, violation in self.worst_by_length():
            most, infeasible = regret and regret.regret, [each.feasible is False for each in these]
            counts = map(str, (these[0].length, len(these), sum(infeasible)))
            bounds = regret and regret.bound.regret, violation.violation, violation.bound.violation
            between = precise_interval(*most) if most else "none"
            rows.append([*counts, between, *map(number_or_none, bounds)])
        reasons = dict.fromkeys(each.bound.reason for each in self.every if each.bound.reason)
        lines = (*aligned(rows), *reasons, *self.failures)
        return "\n  ".join([f"Intervals of a run of {self.learner}", *lines])


def _worst(every: Sequence[Interval]) -> tuple[Interval | None, Interval]:
    """The interval of the largest regret, None if none is known, and that of the largest
    violation.
    """
    known = [each for each in every if each.regret is not None]
    regret = max(known, key=lambda each: (each.regret or (0.0, 0.0))[1], default=None)
    return regret, max(every, key=lambda each: each.violation)


def intervals(
    run: Run, shortest: int | None = None, *, progress: Callable[[int, int], None] | None = None
) -> Intervals:
    """Regret and violation on intervals of a run, each against the best point for it alone.

    Parameters
    ----------
    run : Run
        What `tw.run` gave.
    shortest : int, default None
        How many rounds the shortest intervals have, rounded up to a power of 2; None: a
        thirty-second of the run.
    progress : callable, default None
        Is called with how many intervals are done, and of how many.

    Returns
    -------
    Intervals
        Every interval with its regret, violation and measured bound; prints as a table of the
        worst of each length.

    Raises
    ------
    WrongType
        Where `run` is no run.
    InvalidInput
        Where it has no rounds.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> found = tw.intervals(tw.run(tw.LyapunovDescent(K), stream), shortest=2)
    >>> print(found.worst_violation, found.worst_violation.violation)
    rounds 0 to 2 0.25
    """
    if not isinstance(run, Run):
        raise WrongType(f"Expected a run, as tidewolf.run gives it, not a {type(run).__name__}.")
    if run.rounds == 0:
        raise InvalidInput("A run of no rounds has no intervals.")
    shortest = max(1, run.rounds // _SHARES) if shortest is None else shortest
    least = as_count(shortest, "The shortest interval")
    progress = as_callback(progress, "progress, the number of intervals done,")
    return shared_intervals([run], least, progress)[0]


def shared_intervals(
    runs: Sequence[Run], shortest: int, progress: Callable[[int, int], None] | None = None
) -> list[Intervals]:
    """The intervals of each run; runs of equal sets on one stream share their best points."""
    found: list[Intervals] = []
    bests: dict[tuple[int, int], Comparator | None] = {}
    for before, run in zip((None, *runs), runs, strict=False):
        K, stream = run.learner.K, run.stream
        if before is None or before.stream is not stream or before.learner.K != K:
            bests = {}
        family, every = _family(run.rounds, shortest), []
        for ends in family:
            if ends not in bests:
                bests[ends] = run.comparator if ends == (0, run.rounds) else _best(run, *ends)
            every.append(_interval(run, *ends, bests[ends]))
            if progress is not None:
                progress(len(every), len(family))
        checks = () if isinstance(run.learner, Explores) else tuple(_checks(run, every))
        found.append(Intervals(type(run.learner).__name__, tuple(every), checks))
    return found


def _family(rounds: int, least: int) -> list[tuple[int, int]]:
    family, length = [], 1 << (least - 1).bit_length()
    while length < rounds:
        last = rounds - length
        family += [(s, s + length) for s in (*range(0, last, max(1, length // 2)), last)]
        length *= 2
    return [*family, (0, rounds)]


def _best(run: Run, start: int, stop: int) -> Comparator | None:
    try:
        return best_in_hindsight(run.learner.K, run.stream, start, stop)
    except NotSupported:
        return None


def _interval(run: Run, start: int, stop: int, best: Comparator | None) -> Interval:
    loss, violation = (float(x[start:stop].sum()) for x in (run.losses, run.violations))
    if best is not None and best.feasible is False:
        return Interval(start, stop, best, None, violation, Bound(None, None))
    if run.unseen:
        bound = Bound(None, None, certificate.UNSEEN)
    elif run.stream.late or run.stream.played is not None:
        bound = Bound(None, None, certificate.IN_ORDER)
    elif isinstance(run.learner, BoundsParts):
        bound = run.learner.bound_between(run, start, stop)
    else:
        who = type(run.learner).__name__
        bound = Bound(None, None, f"{who} has no measured bound for a part of the rounds.")
    regret = None if best is None else (loss - best.upper, loss - best.lower)
    return Interval(start, stop, best, regret, violation, bound)


def _checks(run: Run, every: Sequence[Interval]) -> Iterator[CertificateCheck]:
    """Regret and violation of each interval against its measured bounds, if there are such."""
    eps, per_round = certificate.rounding(run), certificate.feasibility_slack(run, 1)
    for each in every:
        losses = float(abs(run.losses[each.start : each.stop]).sum())
        least = each.violation if each.feasible else -math.inf
        for name, ends, slack in (
            ("regret", each.regret or (-math.inf, math.inf), eps * losses),
            ("violation", (least, each.violation), eps * each.violation + per_round * each.length),
        ):
            bound: float | None = getattr(each.bound, name)
            if bound is not None:
                law = f"the {name} of {each} is within its measured bound"
                yield CertificateCheck(name, law, *ends, bound + slack + eps * abs(bound))


# --- rates ----------------------------------------------------------------------------------------


class Growth(NamedTuple):
    """How one total grows."""

    exponent: float | None
    interval: tuple[float, float] | None
    """holds the exponent with 95 % confidence; infinite where two runs leave no scatter to judge
    by
    """
    theory: float | None
    """the learner's own, up to logarithms"""
    reason: str = ""
    """why there is no exponent, where there is none"""

    @property
    def slower(self) -> bool | None:
        """Whether it grows no faster than theory allows: None where the interval does not decide,
        or there is nothing to compare.
        """
        if self.interval is None or self.theory is None:
            return None
        low, high = self.interval
        return True if high <= self.theory else None if low <= self.theory else False


@final
@dataclass(frozen=True, eq=False, repr=False)
class Rates(Value):
    """How fast both totals grow with the horizon: what `tw.rates` gives. Prints as a table.

    Parameters
    ----------
    learner : str
        The name of the learner's class.
    horizons : tuple of int
        The lengths of the runs, each once.
    runs : int
        How many runs there were.
    regret : Growth
        The exponent of the regret, its confidence interval, and the theorem's.
    violation : Growth
        The same of the violation.

    Examples
    --------
    >>> K, learner = tw.sets.Simplex(2), tw.LyapunovDescent(tw.sets.Simplex(2))
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 400)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 400))
    >>> growth = tw.rates([tw.run(learner, stream[:T]) for T in (100, 200, 400)])
    >>> growth.horizons, growth.violation.exponent < 0.5
    ((100, 200, 400), True)
    """

    learner: str
    horizons: tuple[int, ...]
    runs: int
    regret: Growth
    violation: Growth

    def summary(self) -> dict[str, Any]:
        """The numbers as plain data."""
        found = vars(self) | {"horizons": list(self.horizons)}
        for name in ("regret", "violation"):
            plain = found[name]._asdict()
            ends = plain["interval"]
            plain["interval"] = list(ends) if ends and math.isfinite(ends[1]) else None
            found[name] = plain
        return found

    def __repr__(self) -> str:
        rows, reasons = [("", "exponent", f"{100 * CONFIDENCE:.0f} % between", "theory")], []
        for name, growth in (("regret", self.regret), ("violation", self.violation)):
            ends = growth.interval
            between = "" if ends is None else f"{ends[0]:.3f} and {ends[1]:.3f}"
            exponent, theory = (number_or_none(x, ".3f") for x in (growth.exponent, growth.theory))
            rows.append((name, exponent, between, theory))
            reasons += [f"{name}: {growth.reason}"] if growth.reason else []
        rounds = f"{self.horizons[0]} to {self.horizons[-1]} rounds"
        about = f"Rates of {self.learner}: {self.runs} runs of {rounds}"
        return "\n".join([about, *(f"  {line}".rstrip() for line in (*aligned(rows), *reasons))])


def rates(runs: Sequence[Run]) -> Rates:
    """How fast regret and violation grow with the horizon.

    Parameters
    ----------
    runs : sequence of Run
        Runs of one learner at two horizons or more, several seeds at each.

    Returns
    -------
    Rates
        For regret and violation the exponent of T with its confidence interval, beside the
        theorem's.

    Raises
    ------
    WrongType
        Where these are no runs, or one alone.
    InvalidInput
        Where they are of several learners, or of one length.

    Examples
    --------
    >>> K, learner = tw.sets.Simplex(2), tw.LyapunovDescent(tw.sets.Simplex(2))
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 400)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 400))
    >>> growth = tw.rates([tw.run(learner, stream[:T]) for T in (100, 200, 400)])
    >>> growth.regret.exponent < 0.7
    True
    """
    runs = as_items(runs, "What rates takes", "[tidewolf.run(...), tidewolf.run(...)]")
    if len(runs) == 1 or not all(isinstance(run, Run) for run in runs):
        raise WrongType("rates takes several runs, as tidewolf.run gives them.")
    names = sorted({type(run.learner).__name__ for run in runs})
    horizons = tuple(sorted({run.rounds for run in runs}))
    if len(names) != 1 or len(horizons) < 2 or horizons[0] == 0:
        raise InvalidInput(
            "rates takes runs of one learner at two lengths or more, all above 0; "
            f"{', '.join(names) or 'none'} at {', '.join(map(str, horizons))} rounds were given."
        )
    regrets = [None if run.regret is None else run.regret[1] for run in runs]
    breaches, lengths = [float(run.violations.sum()) for run in runs], [run.rounds for run in runs]
    first, second = getattr(runs[0].learner, "exponents", (None, None))
    found = growth(lengths, regrets, first), growth(lengths, breaches, second)
    return Rates(names[0], horizons, len(runs), *found)


def growth(
    horizons: Sequence[int], totals: Sequence[float | None], theory: float | None = None
) -> Growth:
    """The exponent of totals measured over these horizons."""
    from scipy.special import stdtrit

    known = [total for total in totals if total is not None and math.isfinite(total)]
    below, reason = sum(total <= 0.0 for total in known), ""
    if len(known) < len(totals):
        reason = f"not known for {len(totals) - len(known)} of {len(totals)} runs, so no exponent."
    elif below:
        reason = f"at or below zero in {below} of {len(known)} runs, so no exponent."
    if reason:
        return Growth(None, None, theory, reason)
    x, y = (np.log(each) - np.log(each).mean() for each in (horizons, known))
    slope, margin, freedom = float(x @ y / (x @ x)), math.inf, len(known) - 2
    if freedom:
        deviation = float(np.linalg.norm(y - slope * x)) / math.sqrt(freedom * float(x @ x))
        margin = float(stdtrit(freedom, (1.0 + CONFIDENCE) / 2.0)) * deviation
    return Growth(slope, (slope - margin, slope + margin), theory)
