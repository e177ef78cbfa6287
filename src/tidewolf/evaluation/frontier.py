"""Frontiers of mean regret against mean violation, as a knob moves, and three ways to hold one
against another.

Points are a round's; smaller is better in both numbers. With P ours, Q the rival's, and s = |the
comparator's mean loss|:

    gap(p, Q)        =  ( p.regret - min{ q.regret : q.violation <= 1.1 p.violation } ) / s
    shortfall(P, Q)  =  max_{q in Q} ( min{ p.regret : p.violation <= 1.1 q.violation } - q.regret )
                        / s
    saving(P, Q)     =  median over levels r of  V_Q(r)/V_P(r),
    V(r) = least violation at a regret of at most r

p is on the frontier of Q where its gap is at most 0.5 %; where p is more careful than all of Q, the
most careful point of Q counts. P matches every point of Q where its shortfall is at most 0.5 %; it
is infinite where P has no point that careful.
The levels of `saving` are the regrets of the points of P and of Q that both sides reach; the median
of an even number of ratios is the geometric mean of the middle two, so
saving(Q, P) = 1/saving(P, Q).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

ALLOWED = 0.005
"""What counts as on the frontier: this share of the comparator's mean loss."""
VIOLATION_SLACK = 1.1
"""A rival's point may break limits by this much more than ours and still be held against it."""


class Point(NamedTuple):
    """What one setting of a learner came to, a round; the mean over seeds."""

    caution: float | None
    """the knob; None where the learner has none"""
    budget: float | None
    """oracle calls allowed a round; None where the learner has no such setting"""
    regret: float
    """its upper end; between two points of one stream the difference is exact, for the comparator
    cancels
    """
    violation: float
    calls: float
    """oracle calls made"""
    seconds: float
    excess: float
    """largest excess of a played point over the set, in any round of any seed"""
    solves: float | None = None
    """linear programs solved; this and what follows is None where it was not measured"""
    violation_p99: float | None = None
    """what 99 % of the rounds do not exceed"""
    violation_worst: float | None = None
    """of any round of any seed"""
    broken: float | None = None
    """share of rounds in which the limit was broken"""
    churn: float | None = None
    """how far the decision moved, half the L1 change"""
    churn_p99: float | None = None
    churn_worst: float | None = None


def gap(ours: Point, rival: Sequence[Point], scale: float) -> float:
    """By how much our regret is above the rival's best at our violation, as a share of `scale`."""
    near = [point.regret for point in rival if point.violation <= VIOLATION_SLACK * ours.violation]
    best = (
        min(near) if near else min(rival, key=lambda point: (point.violation, point.regret)).regret
    )
    return _share(ours.regret - best, scale)


def shortfall(ours: Sequence[Point], rival: Sequence[Point], scale: float) -> float:
    """By how much the rival's worst matched point is out of our reach, as a share of `scale`;
    infinite where we are never as careful.
    """
    found = []
    for theirs in rival:
        careful = (p.regret for p in ours if p.violation <= VIOLATION_SLACK * theirs.violation)
        found.append(_share(_least(careful) - theirs.regret, scale))
    return max(found)


def saving(ours: Sequence[Point], rival: Sequence[Point]) -> float:
    """How many times less violation at equal regret, in the median over the levels of regret that
    both reach.
    """
    reached = max(min(point.regret for point in points) for points in (ours, rival))
    levels = sorted({point.regret for point in (*ours, *rival) if point.regret >= reached})
    logs = [
        _log_ratio(
            *(_least(p.violation for p in points if p.regret <= level) for points in (rival, ours))
        )
        for level in levels
    ]
    # never of -inf and inf: a side that has reached 0 stays there at higher levels
    return math.exp(statistics.median(logs))


def _share(above: float, scale: float) -> float:
    if scale > 0.0 or above == 0.0:
        return above / (scale or 1.0)
    return math.copysign(math.inf, above)


def _least(numbers: Iterable[float]) -> float:
    return min(numbers, default=math.inf)


def _log_ratio(theirs: float, ours: float) -> float:
    if theirs == ours:
        return 0.0
    if min(theirs, ours) == 0.0:
        return math.inf if ours == 0.0 else -math.inf
    return math.log(theirs / ours)
