"""Run a learner over a recorded stream, and keep everything that is measured in each round."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tidewolf.core.arguments import as_callback, as_flag, shown
from tidewolf.core.arrays import as_count, frozen, to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.errors import NotSupported, WrongType
from tidewolf.core.types import Floats, Int64s
from tidewolf.evaluation import certificate, formatting, metrics, tracking
from tidewolf.evaluation.certificate import Audit, Certificate, feasibility_slack
from tidewolf.evaluation.recording import Recording, RunProgress
from tidewolf.functions import combined, support
from tidewolf.hindsight.best import Comparator, LeastBreach, best_in_hindsight, least_breach
from tidewolf.methods import base, budget
from tidewolf.methods.capabilities import LimitBound, WeighsConstraints, experts_of
from tidewolf.methods.late import Overrides

PROGRESS_SECONDS = 0.1
SHOWN_EXPERTS = 6


@dataclass(frozen=True, eq=False, repr=False)
class Run(base.Record):
    """The record of a run: numbers of each round, totals, bounds. `tw.run` gives it.

    Prints as a summary and displays in notebooks. `regret` needs the comparator, which is computed
    on first use.

    Parameters
    ----------
    losses : array of float
        The loss of each round.
    violations : array of float
        The violation of each round; 0 if the constraint is satisfied.
    calls : array of int
        Oracle calls made after each round.
    distances : array of float
        |x - y| of the projection that each round was played from.
    final_state : object
        The learner's state after the last round, to resume from.
    ends : array of int
        The number of rounds at each update.
    measures : array of float
        The learner's running numbers after each update, one row each.
    learner : Learner
        The learner.
    stream : Stream
        What was played.
    membership : Membership
        The records of membership of the played points.
    seconds : float
        What acting, evaluating and learning took; compiling is not counted.
    audit : Audit
        The records of the learner's projections; see `certificate`.
    each_violation : array of float, default None
        The total violation of each constraint, if a round has several: the capacity of each link,
        the pieces of a MaxAffine.
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
        Gradient norms of losses and violated constraints, summed over the rounds without feedback.
    breaches : Breaches, default None
        When each constraint was violated, if a round has several.
    peaks : Peaks, default None
        The largest utilisation of each link and its round, if the constraints are capacities.
    decisions : Decisions, default None
        The decisions with times and names; None unless `decisions=True`.
    spends : array of float
        What each budget spent above its plan, (budgets, rounds).
    multipliers : array of float
        The price of spending after each round, in units of the loss, likewise; zeros for learners
        that do not know budgets.

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

    learner: base.Learner[Any]
    stream: Stream
    membership: tracking.Membership
    seconds: float
    audit: Audit
    each_violation: Floats | None = None
    known: Comparator | None = None
    trajectory: tracking.TrajectorySummary | None = None
    churn: metrics.RoundNumbers = field(default_factory=lambda: metrics.RoundNumbers(np.zeros(0)))
    round_solves: Int64s = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    untold_slopes: tuple[float, ...] = (0.0, 0.0)
    breaches: tracking.Breaches | None = None
    peaks: tracking.Peaks | None = None
    decisions: tracking.Decisions | None = None
    spends: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    multipliers: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def max_infeasibility(self) -> float:
        """The largest infeasibility of a played point."""
        return self.membership.worst

    @property
    def oracle_calls(self) -> int:
        """The oracle calls of all rounds."""
        return int(self.calls.sum())

    @property
    def solves(self) -> int:
        """Linear programs that the learner solved."""
        return int(self.round_solves.sum())

    @cached_property
    def experts(self) -> metrics.Experts:
        """The experts that the learner mixed, one row each, with a bound on what was lost to each
        in loss plus weighted violation.
        Empty for a learner that holds one point alone. Prints as a table.
        """
        return metrics.Experts(experts_of(self.learner, self.final_state))

    @cached_property
    def limit_names(self) -> tuple[str, ...]:
        """What the limits of a round are called: entries as the set calls them, else "limit 1"."""
        return combined.limit_names(self.learner.K, self.stream.constraints)

    @cached_property
    def limits(self) -> metrics.RunLimits:
        """Each constraint by name with its violation and its bound, with `per_constraint=True`;
        else empty. Prints as a table.
        """
        each, rows = self.each_violation, list[LimitBound]()
        measured = [float(self.violations.sum())] if each is None else each.tolist()
        known = isinstance(self.learner, WeighsConstraints) and self.learner.limit_bounds(self)
        for i, (name, violation, bound) in enumerate(known or ()):
            own = violation if self.pending else measured[i]  # of the rounds whose feedback came
            if bound is not None and self.overrides.valued:  # of the decisions: what was played
                bound += own - violation
            rows.append(LimitBound(name, own, None if self.bound.violation is None else bound))
        return metrics.RunLimits(rows)

    @cached_property
    def budgets(self) -> dict[str, metrics.BudgetRecord]:
        """What each budget of the stream spent, by its name."""
        periods = {one.name: one for one in getattr(self.learner, "budgets", ())}
        time, found = self.stream.time, dict[str, metrics.BudgetRecord]()
        rows = zip(self.stream.budgets or {}, self.spends, self.multipliers, strict=True)
        for name, spent, multipliers in rows:
            windows = np.zeros(self.rounds, dtype=np.int64)
            if name in periods:
                windows = periods[name].windows(self.rounds, time)
            (worst, nets), net = budget.worst_windows(spent, windows), float(spent.sum())
            found[name] = metrics.BudgetRecord(net, worst, max(0.0, -net), multipliers, spent, nets)
        return found

    @cached_property
    def loss_spread(self) -> metrics.Spread | None:
        """Mean, p99 and worst of the rounds' losses; None without a round."""
        return metrics.spread(self.losses)

    @cached_property
    def violation_spread(self) -> metrics.Spread | None:
        """Mean, p99 and worst of the rounds' violations; None without a round."""
        return metrics.spread(self.violations)

    @cached_property
    def churn_spread(self) -> metrics.Spread | None:
        """Mean, p99 and worst of `churn`; None without a round."""
        return metrics.spread(self.churn)

    @cached_property
    def broken(self) -> float:
        """The share of rounds with a violation above rounding, 1e-9 of the constraints' size."""
        slack = feasibility_slack(self, 1) if self.rounds else 0.0
        return float(np.count_nonzero(self.violations > slack)) / max(1, self.rounds)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes in sentences: of the learner, and on rounds without feedback."""
        unseen = f"{self.unseen} of the {self.rounds} rounds, which count, had no feedback."
        more = (unseen * bool(self.unseen), certificate.untold_in_words(self))
        return (*self.learner.notes(self.final_state), *filter(None, more))

    @property
    def late(self) -> int:
        """Rounds whose feedback came late."""
        arrives, seen = self.stream.arrives, self.stream.seen
        if arrives is None:
            return 0
        late = (arrives > np.arange(self.rounds)) & (arrives < self.rounds)
        return int(np.count_nonzero(late if seen is None else late & seen))

    @property
    def pending(self) -> int:
        """Rounds whose feedback had not come by the end."""
        return self.stream.untold

    @property
    def overrides(self) -> Overrides:
        """Rounds in which another point than the decision was played, and what that cost."""
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
        """The comparator, or the reason why there is none."""
        if self.known is not None or self.rounds == 0:
            return self.known, ""
        try:
            return best_in_hindsight(self.learner.K, self.stream), ""
        except NotSupported as why:
            return None, str(why)

    @property
    def regret(self) -> tuple[float, float] | None:
        """Total loss minus the comparator's, as a certified interval; None if no point is
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
        """If no point satisfies every constraint: the least violation of any fixed point, how many
        rounds such a point satisfies, and the best point on those. None otherwise, or if unknown.
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
        """If no point satisfies every constraint: the regret to the best point on the rounds of
        `least_breach`, as an interval. None otherwise, or if there are no such rounds.
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
            One number for each round; None if there is no such point.
        """
        best = self.comparator
        if best is None or best.point is None:
            return None
        return np.asarray(np.cumsum(self.losses - to_numpy(self.stream.losses.values(best.point))))

    @cached_property
    def bound(self) -> base.Bound:
        """The measured bound: an upper bound on regret and violation of this run."""
        best = self.comparator
        if best is not None and best.feasible is False:
            words = "No point satisfies every constraint, so there is nothing to compare with."
            return base.Bound(None, None, words)
        if self.unseen:
            return base.Bound(None, None, certificate.UNSEEN)
        found, D = self.learner.bound(self), self.learner.K.diameter * bool(self.pending)
        pairs = zip(found[:2], self.untold_slopes, strict=True)
        regret, violation = (None if own is None else own + D * slope for own, slope in pairs)
        return base.Bound(regret, violation, found.reason)

    @cached_property
    def certificate(self) -> Certificate:
        """The checks and bounds of the run, computed on first use."""
        return certificate.certify(self)

    def summary(self) -> dict[str, Any]:
        """The numbers of the run as plain data, as summary.json and `--json` hold them.

        Returns
        -------
        dict
            learner, rounds
                The name of its class, and how many rounds were played.
            loss, in units of the losses; less is better
                Their total; of the rounds the mean, what 99 % do not exceed, and the worst.
            churn, in units of points; less is better
                How far decisions moved, half the L1 change from one round to the next, likewise.
            regret, in units of the losses; less is better
                The total loss less that of the best fixed point in hindsight, as a
                certified interval; None if there is none, or no method knows it.
            hindsight
                If no point satisfies every constraint: the least that any fixed point breaks
                them by in all, how many rounds such a point satisfies, and as intervals the loss
                of the best point that keeps those and the regret against it; else None.
            violation, in units of the constraints; less is better
                The total violation; slack in one round does not offset a violation in another.
            violation_by_round, in units of the constraints; less is better
                The same of the rounds: the mean, what 99 % do not exceed, and the worst.
            broken, in shares of the rounds; less is better
                The share of rounds in which the limit was broken by more than rounding.
            oracle_calls, calls_per_round; less is better
                How often the hard set was asked for a linear minimiser, in all and per round.
            solves, solves_per_round; less is better
                How many linear programs the learner solved, in all and per round.
            seconds, in seconds; less is better
                What acting, evaluating and learning took, compiling not counted.
            max_infeasibility, in units of points; less is better
                How far a played point ever was outside the hard set.
            feasible_in_hindsight, hindsight_method
                Whether some fixed point satisfies every constraint, None if that is not
                known; what found the best fixed point, None if nothing did.
            bound
                The measured bounds on regret and violation; None if there are none.
            certificate
                Whether all holds that the run can check of itself, and each check's numbers.
            unseen, late, pending, in rounds
                Rounds without feedback to the learner, rounds whose feedback came after the end of
                their own, and rounds whose feedback had not come by the end.
            overrides
                Rounds in which another point than the decision was played, the price of that in
                units of the losses, and the totals there and at the decisions, if seen.
            each_violation, limit_names; less is better
                By how much each limit was broken, if a round has several, and their names.
            limits
                Each limit by name, by how much it was broken, and its bound, where the
                learner has a weight for each; else empty.
            budgets
                Of each budget by name, in units of its spend: the net spend above the plan, the
                worst window, what was left, the net of each period, and the last multiplier.
            experts
                Weights, guard, totals, linear programs and oracle calls of each; empty if the
                learner mixes none.
        """
        found = {key: formatting.plain(of(self)) for key, of in metrics.MEASURES.items()}
        return {"learner": type(self.learner).__name__, "rounds": self.rounds, **found}

    def to_pandas(self) -> Any:
        """The rounds as a table.

        Returns
        -------
        pandas.DataFrame
            One row for each round: loss, violation, oracle calls, distance, and the regret so far
            where it is known.
        """
        return formatting.data_frame(metrics.round_columns(self), "round")

    def plot(self) -> Any:
        """Plot cumulative loss, regret, violation and oracle calls.

        Returns
        -------
        matplotlib.figure.Figure
            Made without pyplot; a notebook shows it.
        """
        return formatting.report_module("page").plot(self)

    def _repr_html_(self) -> Any:
        return formatting.report_module("page").html(self)

    def __repr__(self) -> str:
        moved = self.churn_spread
        counts = {"unseen": self.unseen, "late": self.late, "pending": self.pending}
        said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        numbers = (
            f"rounds {self.rounds}" + f" ({said})" * bool(said),
            f"loss {self.losses.sum():.6g}",
            f"mean loss {self.losses.mean() if self.rounds else 0.0:.5g}",
            "" if moved is None else f"mean churn {moved.mean:.3g}",
            metrics.regret_words(self),
            f"violation {self.violations.sum():.6g}",
            f"oracle calls {self.oracle_calls}",
            f"LP solves {self.solves}" if self.solves else "",
            f"largest infeasibility {self.max_infeasibility:.2g}",
            f"{self.seconds:.3g} s",
        )
        limits, each = self.limits, self.each_violation
        if not limits and each is not None:
            limits = metrics.RunLimits(
                map(LimitBound, self.limit_names, each.tolist(), [None] * len(each))
            )
        lines = (
            f"Run of {self.learner!r}",
            ", ".join(filter(None, numbers)),
            *metrics.spread_lines(self),
            *(f"budget {name}: {one}" for name, one in self.budgets.items()),
            *limits.lines(metrics.SHOWN_LIMITS),
            *metrics.hindsight_sentences([self]),
        )
        return "\n  ".join(lines)

    def __str__(self) -> str:
        best = self.comparator
        method = "" if best is None or best.infeasibility is not None else best.method
        found = f"\n  best fixed point in hindsight by: {method}" if method else ""
        experts = "".join(f"\n  {line}" for line in self.experts.lines(SHOWN_EXPERTS))
        return f"{self!r}{found}{experts}\n{self.certificate}"


def run(
    learner: base.Learner[Any],
    stream: Stream,
    *,
    progress: Callable[[RunProgress], None] | None = None,
    comparator: Comparator | None = None,
    decisions: bool = False,
    every: int = 1,
) -> Run:
    """Run a learner on a stream and record losses, violations, calls and bounds.

    Parameters
    ----------
    learner : Learner
        The learner: `tw.Ensemble(K)`, any other of `tw.learners` and `tw.baselines`, or your own.
    stream : Stream
        The losses and constraints of the rounds.
    progress : callable, default None
        Is called a few times a second with how far the run is.
    comparator : Comparator, default None
        The best fixed decision in hindsight, if it is already computed. None: it is computed when
        the regret is first read.
    decisions : bool, default False
        Whether to store the decisions as `run.decisions`.
    every : int, default 1
        Store every `every`-th decision, starting with the first.

    Returns
    -------
    Run
        The numbers of each round, totals, bounds and the certificate.

    Raises
    ------
    WrongType, WrongShape, NotFinite
        If something else is given, or a loss or a constraint is no number or far too large.

    Examples
    --------
    >>> losses, learner = tw.functions.Linear([[1, 2]] * 4), tw.LyapunovDescent(tw.sets.Simplex(2))
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> tw.run(learner, stream, decisions=True, every=2).decisions
    round  entry 1  entry 2
    0          0.5      0.5
    2        0.563    0.437
    """
    as_callback(progress, "progress, which is called as the run advances,")
    if comparator is not None and not isinstance(comparator, Comparator):
        raise WrongType(f"comparator must come from best_in_hindsight, not {shown(comparator)}.")
    every = as_count(every, "every, the rounds from one decision that is kept to the next,")
    recording, last = Recording(learner, stream), time.perf_counter()
    if as_flag(decisions, "decisions, whether they are kept,"):
        recording.decisions = tracking.KeptDecisions(len(stream), stream.shape, every)
    support.warn_of_negative_capacities(learner.K, stream.constraints, set())
    for _ in recording.advance():
        due = recording.done or time.perf_counter() - last > PROGRESS_SECONDS
        if progress is not None and due:
            last = time.perf_counter()
            progress(recording.progress)
    return finished(recording, comparator)


def finished(recording: Recording, comparator: Comparator | None = None) -> Run:
    (ends, measures), kept, decisions = recording.updates(), recording.decisions, None
    if isinstance(kept, tracking.KeptDecisions):
        rounds, stamps = np.arange(0, len(recording.stream), kept.every), recording.stream.stamps
        times, K = None if stamps is None else stamps[rounds], recording.learner.K
        decisions = tracking.Decisions(
            frozen(rounds), times, tracking.entry_names(K), frozen(kept.points)
        )
    return Run(
        losses=recording.losses,
        violations=recording.violations,
        calls=recording.calls,
        distances=recording.distances,
        learner=recording.learner,
        stream=recording.stream,
        membership=recording.membership,
        seconds=recording.seconds,
        audit=recording.audit,
        trajectory=recording.trajectory,
        spends=recording.spends,
        multipliers=recording.multipliers,
        each_violation=recording.each if len(recording.each) else None,
        final_state=recording.state,
        ends=ends,
        measures=measures,
        known=comparator,
        churn=metrics.RoundNumbers(recording.churn),
        round_solves=recording.solves,
        untold_slopes=recording.untold,
        breaches=recording.breaches if len(recording.each) else None,
        peaks=recording.peaks if len(recording.peaks.used) else None,
        decisions=decisions,
    )
