"""Regret and violation on every interval of a family, each against the best point for
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

Where the decisions were kept, every interval has a bound, whatever the learner is: that of
methods/certificate.py over its rounds alone, with weights of 1. With F = sum grad f_t,
W = sum grad g_t^+ and v = sum g_t^+(x_t), for every c >= 0,

    regret     <=  sum <grad f_t, x_t> + c ( sum <grad g_t^+, x_t> - v ) - min_{u in K} <F + c W, u>
    violation  <=  sum <grad g_t^+, x_t> - min_{u in K} <W, u>,

if some point is feasible in all of its rounds. A smaller bound of the learner's own counts instead.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core import arguments, arrays, feedback, values
from tidewolf.core.errors import InvalidInput, NotSupported, require
from tidewolf.evaluation import certificate
from tidewolf.evaluation.formatting import (
    aligned,
    bound_text,
    number,
    plain,
    plain_interval,
    precise_interval,
)
from tidewolf.evaluation.run import Run
from tidewolf.hindsight.best import Comparator, best_in_hindsight
from tidewolf.methods.base import Bound
from tidewolf.methods.capabilities import BoundsParts, Explores
from tidewolf.methods.certificate import GradientSums, paid_at_most, regret_at_most

# How many of the shortest intervals, end to end, cover a run by default.
_SHARES = 32


class Interval(NamedTuple):
    """Rounds start to stop, and what came of them.

    Attributes
    ----------
    comparator : Comparator or None
        None if no exact method applies.
    regret : tuple[float, float] or None
        As a certified interval; None if no point is feasible or none is known.
    """

    start: int
    stop: int
    comparator: Comparator | None
    regret: tuple[float, float] | None
    violation: float
    bound: Bound

    @property
    def length(self) -> int:
        return self.stop - self.start

    @property
    def feasible(self) -> bool | None:
        """Whether some point satisfies every constraint of these rounds; None if it is not
        known."""
        return None if self.comparator is None else self.comparator.feasible

    def __str__(self) -> str:
        return f"rounds {self.start} to {self.stop}"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Intervals(values.Value):
    """The intervals of a run, by length and then by start: what `tw.intervals` gives.

    Parameters
    ----------
    learner : str
        The name of the learner's class.
    every : tuple of Interval
        Its rounds, the comparator for these alone, regret, violation, and the measured bound.
    checks : tuple of CertificateCheck
        Each interval against the learner's measured bound for it, if there is one.

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
    checks: tuple[certificate.CertificateCheck, ...]

    @property
    def worst_regret(self) -> Interval | None:
        """The interval of the largest regret; None if none is known."""
        return _worst(self.every)[0]

    @property
    def worst_violation(self) -> Interval:
        """The interval of the largest violation."""
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
        """Whether every interval is within its measured bound; None if there is no bound or
        something is undecided.
        """
        return certificate.all_hold(self.checks) if self.checks else None

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each measured bound that does not hold."""
        return tuple(check.sentence for check in self.checks if check.holds is False)

    def summary(self) -> dict[str, Any]:
        """The numbers as plain data."""
        return {
            "learner": self.learner,
            "holds": self.holds,
            "infeasible": len(self.infeasible),
            "intervals": [
                {
                    **{name: getattr(each, name) for name in ("start", "stop", "feasible")},
                    "violation": each.violation,
                    "regret": plain(plain_interval(each.regret)),
                    "bound": {"regret": each.bound.regret, "violation": each.bound.violation},
                }
                for each in self.every
            ],
        }

    def __repr__(self) -> str:
        heads = ("rounds", "intervals", "infeasible", "worst regret", "measured bound")
        rows = [[*heads, "worst violation", "measured bound"]]
        for these, regret, violation in self.worst_by_length():
            most, infeasible = regret and regret.regret, [each.feasible is False for each in these]
            counts = map(str, (these[0].length, len(these), sum(infeasible)))
            between = precise_interval(*most) if most else "none"
            first = bound_text(most and most[1], regret and regret.bound.regret)
            broken = violation.violation, violation.bound.violation
            rows.append([*counts, between, first, number(broken[0]), bound_text(*broken)])
        reasons = dict.fromkeys(each.bound.reason for each in self.every if each.bound.reason)
        about = f"Intervals of a run of {self.learner}"
        return "\n  ".join([about, *aligned(rows), *reasons, *self.failures])


def _worst(every: Sequence[Interval]) -> tuple[Interval | None, Interval]:
    known = {each.regret[1]: each for each in reversed(every) if each.regret is not None}
    return known.get(max(known, default=0.0)), max(every, key=lambda each: each.violation)


def intervals(
    run: Run, shortest: int | None = None, *, progress: Callable[[int, int], None] | None = None
) -> Intervals:
    """Measure regret and violation on intervals of a run, each against the best fixed decision of
    the interval.

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
        If it has no rounds.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> found = tw.intervals(tw.run(tw.LyapunovDescent(K), stream), shortest=2)
    >>> print(found.worst_violation, found.worst_violation.violation)
    rounds 0 to 2 0.25
    """
    arguments.as_kind(run, Run, "Expected a run, as tidewolf.run gives it")
    require(run.rounds != 0, InvalidInput, "A run of no rounds has no intervals.")
    shortest = max(1, run.rounds // _SHARES) if shortest is None else shortest
    least = arrays.as_count(shortest, "The shortest interval")
    progress = arguments.as_callback(progress, "progress, the number of intervals done,")
    return shared_intervals([run], least, progress)[0]


def shared_intervals(
    runs: Sequence[Run], shortest: int, progress: Callable[[int, int], None] | None = None
) -> list[Intervals]:
    found: list[Intervals] = []
    bests: dict[tuple[int, int], Comparator | None] = {}
    for before, run in zip((None, *runs), runs, strict=False):
        if before is None or before.stream is not run.stream or before.learner.K != run.learner.K:
            bests = {}
        family, every = _family(run.rounds, shortest), []
        parts = _Parts(run, sorted({cut for ends in family for cut in ends}))
        for ends in family:
            if ends not in bests:
                bests[ends] = run.comparator if ends == (0, run.rounds) else _best(run, *ends)
            every.append(_interval(run, *ends, bests[ends], parts))
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


class _Parts:
    """The sums of gradients at a run's decisions between any two of the rounds in `cuts`; of none
    if not all decisions were kept. Decisions differ from the center within aff(K) alone, so sums
    are brought there once.
    """

    def __init__(self, run: Run, cuts: list[int]) -> None:
        K = self.K = run.learner.K
        points = np.zeros(0) if run.decisions is None else run.decisions.points
        self.cuts, self.known = cuts, len(points) == run.rounds
        self.gradients = np.zeros((len(cuts) - 1, 2, *K.shape))
        self.at = np.zeros((len(cuts) - 1, 3))  # <F, x - center>, <W, x - center>, v
        for i, start, stop in zip(range(len(cuts)), cuts, cuts[1:], strict=False):
            for t in range(start, stop) if self.known else ():
                one, x = run.stream[t : t + 1], arrays.like(points[t], K.center)
                limits = one.constraints
                seen = feedback.first_order(one.losses, limits, x, limits.values(x))
                self.at[i, 2] += seen.violation
                both = seen.loss_gradient, seen.constraint_gradient
                for j, g in enumerate(both[: 1 + (seen.violation > 0.0)]):
                    self.gradients[i, j] += arrays.to_numpy(g)
                    self.at[i, j] += arrays.inner(g, x - K.center)

    def bound(self, start: int, stop: int) -> Bound:
        part = slice(self.cuts.index(start), self.cuts.index(stop))
        whole = self.gradients[part].sum(axis=0)
        F, W = (self.K.tangent(arrays.like(one, self.K.center)) for one in whole)
        loss_at, limit_at, violation = self.at[part].sum(axis=0).tolist()
        sums = GradientSums(F, W, loss_at, limit_at)
        return Bound(regret_at_most(self.K, sums, violation), paid_at_most(self.K, sums))


def _interval(run: Run, start: int, stop: int, best: Comparator | None, parts: _Parts) -> Interval:
    loss, violation = (float(x[start:stop].sum()) for x in (run.losses, run.violations))
    if best is not None and best.feasible is False:
        return Interval(start, stop, best, None, violation, Bound(None, None))
    who = type(run.learner).__name__
    bound = Bound(
        None,
        None,
        f"{who} has no bound of its own for a part of the rounds: keep the decisions, "
        "tw.run(..., decisions=True), for one that holds for any learner.",
    )
    if run.unseen or run.stream.late or run.stream.played is not None:
        bound = Bound(None, None, certificate.UNSEEN if run.unseen else certificate.IN_ORDER)
    elif isinstance(run.learner, BoundsParts):
        bound = run.learner.bound_between(run, start, stop)
    if parts.known:
        both = zip(bound[:2], parts.bound(start, stop)[:2], strict=True)
        regret_most, most = (min(x for x in pair if x is not None) for pair in both)
        bound = Bound(regret_most, most)
    regret = None if best is None else (loss - best.upper, loss - best.lower)
    return Interval(start, stop, best, regret, violation, bound)


def _checks(run: Run, every: Sequence[Interval]) -> Iterator[certificate.CertificateCheck]:
    eps, per_round = certificate.rounding(run), certificate.feasibility_slack(run, 1)
    for each in every:
        losses = float(abs(run.losses[each.start : each.stop]).sum())
        least = each.violation if each.feasible else -math.inf
        for name, ends, slack in (
            ("regret", each.regret or (-math.inf, math.inf), eps * losses),
            ("violation", (least, each.violation), eps * each.violation + per_round * each.length),
        ):
            law, bound = f"the {name} of {each} is within its measured bound", each.bound
            yield from certificate.within(name, law, ends, getattr(bound, name), slack, eps)
