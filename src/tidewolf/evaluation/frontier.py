"""Frontiers of mean regret against mean violation, as a knob moves, three ways to hold one against
another, and what a step of the knob costs and buys.

Points are a round's; smaller is better in both numbers. Where a stream has no comparator, the mean
loss stands in for the regret: between two points the comparator cancels. With P ours, Q the
baseline's, and s = |the comparator's mean loss|:

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
from collections.abc import Sequence
from typing import NamedTuple

# What counts as on the frontier: this share of the comparator's mean loss.
ALLOWED = 0.005
# A baseline's point may break limits by this much more than ours and still be held against it.
VIOLATION_SLACK = 1.1


class Point(NamedTuple):
    """What one setting of a learner came to, a round; the mean over seeds.

    Attributes
    ----------
    caution : float or None
        The knob; None if the learner has none.
    budget : float or None
        Oracle calls allowed per round; None if the learner has no such setting.
    regret : float or None
        Its upper end; between two points of one stream the difference is exact, for the
        comparator cancels. None if the stream has no comparator.
    infeasibility : float
        Largest infeasibility of a played point over the set, in any round of any seed.
    solves : float or None
        Linear programs solved; this and what follows is None if it was not measured.
    violation_p99 : float or None
        What 99 % of the rounds do not exceed.
    violation_worst : float or None
        Of any round of any seed.
    broken : float or None
        Share of rounds in which the limit was broken.
    churn : float or None
        How far the decision moved, half the L1 change.
    knob : str
        What is turned: caution, headroom; empty if there is nothing to turn.
    """

    caution: float | None
    budget: float | None
    regret: float | None
    violation: float
    calls: float
    seconds: float
    infeasibility: float
    loss: float = 0.0
    solves: float | None = None
    violation_p99: float | None = None
    violation_worst: float | None = None
    broken: float | None = None
    churn: float | None = None
    churn_p99: float | None = None
    churn_worst: float | None = None
    knob: str = ""
    value: float | None = None
    default: bool = False

    @property
    def level(self) -> float:
        """What is drawn against the violation: the regret, or else the loss."""
        return self.loss if self.regret is None else self.regret

    @property
    def at(self) -> str:
        return f"{self.knob} {self.value:g}" if self.knob else ""


def gap(
    ours: Point, baseline: Sequence[Point], scale: float, uncareful: float | None = None
) -> float:
    """By how much our regret is above the best of the baseline at our violation, over `scale`; if
    the baseline is never as careful, above its most careful point, or above `uncareful`.
    """
    near = [p.level for p in baseline if p.violation <= VIOLATION_SLACK * ours.violation]
    careful = min(baseline, key=lambda point: (point.violation, point.level)).level
    above = ours.level - min(near, default=careful if uncareful is None else uncareful)
    return above / (scale or 1.0) if scale > 0.0 or above == 0.0 else math.copysign(math.inf, above)


def shortfall(ours: Sequence[Point], baseline: Sequence[Point], scale: float) -> float:
    """By how much the worst matched point of the baseline is out of our reach, over `scale`;
    infinite where we are never as careful.
    """
    return max(-gap(theirs, ours, scale, math.inf) for theirs in baseline)


def saving(ours: Sequence[Point], baseline: Sequence[Point]) -> float:
    """How many times less violation at equal regret, in the median over the levels of regret that
    both reach.
    """
    reached = max(min(point.level for point in points) for points in (ours, baseline))
    levels = {point.level for point in (*ours, *baseline) if point.level >= reached}

    def least(points: Sequence[Point], level: float) -> float:
        return min(point.violation for point in points if point.level <= level)

    logs = [_log_ratio(least(baseline, level), least(ours, level)) for level in levels]
    # never of -inf and inf: a side that has reached 0 stays there at higher levels
    return math.exp(statistics.median(logs))


def undominated(points: Sequence[Point]) -> list[Point]:
    def beaten(p: Point) -> bool:
        return any(q.level < p.level and q.violation < p.violation for q in points)

    return [p for p in points if not beaten(p)]


def step_sentence(before: Point, after: Point) -> str:
    usual = [" (the default)" * point.default for point in (before, after)]
    return f"From {before.at}{usual[0]} to {after.value:g}{usual[1]}: {_changes(before, after)}."


def match_sentence(we: str, ours: Sequence[Point], they: str, theirs: Point) -> list[str]:
    """Which of our points breaks limits as much as one of theirs, and what each costs; nothing
    if none comes near.
    """

    def apart(p: Point) -> float:
        return abs(_log_ratio(p.violation, theirs.violation))

    point = min(ours, key=lambda p: (apart(p), p.level, not p.default))
    if apart(point) > _NEAR:
        return []
    more, size = point.level - theirs.level, abs(theirs.loss)
    costs = "costs as much"
    if size and abs(more) >= _STAYS * size:
        costs = f"costs {_percent(abs(more) / size)} {'more' if more > 0.0 else 'less'}"
    return [
        f"{we} at {point.at} breaks limits about as much as {they} at {theirs.at} "
        f"({point.violation:.3g} against {theirs.violation:.3g} per round), and {costs}."
    ]


def choice_sentences(points: Sequence[Point]) -> list[str]:
    """Which point to begin with, and which to take instead if that breaks, or costs, too much: the
    points nearest in violation. Nothing if no point is the default.
    """
    usual = next((point for point in points if point.default), None)
    if usual is None:
        return []
    cheaper = [p for p in points if p.loss < usual.loss - _STAYS * abs(usual.loss)]
    less = [p for p in points if p.violation < (1.0 - _STAYS) * usual.violation]
    more = [p for p in cheaper if p.violation > (1.0 + _STAYS) * usual.violation]
    if better := [p for p in cheaper if p in less]:
        p = min(better, key=lambda p: p.loss)
        return [f"Take {p.at} in place of the default, {usual.at}: {_changes(usual, p)}."]
    found = [
        f"Begin with the default, {usual.at}: it costs {usual.loss:.4g} per round and breaks "
        f"limits by {usual.violation:.3g}."
    ]
    if less:
        p = max(less, key=lambda p: (p.violation, -p.loss))
        found.append(f"If that breaks too much, take {p.at}: {_changes(usual, p)}.")
    if more:
        p = min(more, key=lambda p: (p.violation, p.loss))
        found.append(f"If it costs too much, take {p.at}: {_changes(usual, p)}.")
    return found


HEADROOM = (
    "Headroom h: re-solving leaves free, under every limit, h times what its room usually shrinks "
    "by from one round to the next."
)
# Violations up to this far apart, in logarithms, count as about the same.
_NEAR = math.log(1.5)
# Changes of less than this share are not given in numbers.
_STAYS = 0.0005


def _changes(before: Point, after: Point) -> str:
    return f"{_change('loss', before, after)}, {_change('violation', before, after)}"


def _change(what: str, *points: Point) -> str:
    before, after = (getattr(point, what) for point in points)
    size = abs(before)
    if abs(after - before) <= _STAYS * size:
        return f"the {what} stays{' 0' * (before == 0.0)}"
    way = "rises" if after > before else "falls"
    if size == 0.0 or after == 0.0:
        return f"the {what} {way} from {before:.3g} to {after:.3g}"
    if after / before >= 3.0:
        return f"the {what} {way} to {after / before:.3g} times as much"
    return f"the {what} {way} by {_percent(abs(after - before) / size)}"


def _percent(share: float) -> str:
    digits = 0 if 0.095 <= share < 0.985 or share >= 1.0 else 1 if share >= 0.0095 else 2
    return f"{100.0 * share:.{digits}f} %"


def _log_ratio(theirs: float, ours: float) -> float:
    if theirs == ours:
        return 0.0
    if min(theirs, ours) == 0.0:
        return math.inf if ours == 0.0 else -math.inf
    return math.log(theirs / ours)
