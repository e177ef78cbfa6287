"""Frontiers of mean regret against mean violation, as a knob moves, three ways to hold one against
another, and what a step of the knob costs and buys.

Points are a round's; smaller is better in both numbers. Where a stream has no comparator, the mean
loss stands in for the regret: between two points the comparator cancels. With P ours, Q the
rival's, and s = |the comparator's mean loss|:

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
    regret: float | None
    """its upper end; between two points of one stream the difference is exact, for the comparator
    cancels. None where the stream has no comparator
    """
    violation: float
    calls: float
    """oracle calls made"""
    seconds: float
    infeasibility: float
    """largest infeasibility of a played point over the set, in any round of any seed"""
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
    loss: float | None = None
    """None in files before format 4"""
    knob: str = ""
    """what is turned: caution, headroom; empty where there is nothing to turn"""
    value: float | None = None
    """what the knob is at"""
    default: bool = False
    """whether that is the learner's default"""

    @property
    def level(self) -> float:
        """What is drawn against the violation: the regret, or else the loss."""
        return self.regret if self.regret is not None else self.loss or 0.0

    @property
    def at(self) -> str:
        """The knob and its value in words."""
        return f"{self.knob} {self.value:g}" if self.knob else ""


def gap(ours: Point, baseline: Sequence[Point], scale: float) -> float:
    """By how much our regret is above the rival's best at our violation, as a share of `scale`."""
    near = [p.level for p in baseline if p.violation <= VIOLATION_SLACK * ours.violation]
    careful = min(baseline, key=lambda point: (point.violation, point.level))
    return _share(ours.level - min(near, default=careful.level), scale)


def shortfall(ours: Sequence[Point], baseline: Sequence[Point], scale: float) -> float:
    """By how much the rival's worst matched point is out of our reach, as a share of `scale`;
    infinite where we are never as careful.
    """
    found = []
    for theirs in baseline:
        careful = (p.level for p in ours if p.violation <= VIOLATION_SLACK * theirs.violation)
        found.append(_share(_least(careful) - theirs.level, scale))
    return max(found)


def saving(ours: Sequence[Point], baseline: Sequence[Point]) -> float:
    """How many times less violation at equal regret, in the median over the levels of regret that
    both reach.
    """
    reached = max(min(point.level for point in points) for points in (ours, baseline))
    levels = sorted({point.level for point in (*ours, *baseline) if point.level >= reached})
    logs = []
    for level in levels:
        theirs, mine = (
            _least(p.violation for p in points if p.level <= level) for points in (baseline, ours)
        )
        logs.append(_log_ratio(theirs, mine))
    # never of -inf and inf: a side that has reached 0 stays there at higher levels
    return math.exp(statistics.median(logs))


def undominated(points: Sequence[Point]) -> list[Point]:
    """Those that no other one beats in both numbers."""
    return [
        p
        for p in points
        if not any(q.level < p.level and q.violation < p.violation for q in points)
    ]


def step_sentence(before: Point, after: Point) -> str:
    """What it costs and buys to turn the knob from one point's value to the next one's."""
    loss, violation = (
        _change(name, getattr(before, name), getattr(after, name)) for name in ("loss", "violation")
    )
    usual = [" (the default)" * point.default for point in (before, after)]
    return f"From {before.at}{usual[0]} to {after.value:g}{usual[1]}: {loss}, {violation}."


def match_sentence(we: str, ours: Sequence[Point], they: str, theirs: Point) -> list[str]:
    """Which of our points breaks limits as much as one of theirs, and what each costs; nothing
    where none comes near.
    """

    def apart(p: Point) -> float:
        return abs(_log_ratio(p.violation, theirs.violation))

    near = [p for p in ours if apart(p) <= _NEAR]
    if not near:
        return []
    point = min(near, key=lambda p: (apart(p), p.level, not p.default))
    more, size = point.level - theirs.level, abs(theirs.loss or 0.0)
    costs = "costs as much"
    if size and abs(more) >= _STAYS * size:
        costs = f"costs {_percent(abs(more) / size)} {'more' if more > 0.0 else 'less'}"
    them = f"{they} at {theirs.at}"
    if point.violation == theirs.violation == 0.0:
        return [f"{we} at {point.at} keeps every limit, as {them} does, and {costs}."]
    broken = f"{point.violation:.3g} against {theirs.violation:.3g} a round"
    return [f"{we} at {point.at} breaks limits about as much as {them} ({broken}), and {costs}."]


def choice_sentences(points: Sequence[Point]) -> list[str]:
    """Where to begin, and what to take instead where that breaks, or costs, too much: the points
    nearest in violation. Nothing where no point is the default.
    """
    usual = next((point for point in points if point.default and point.loss is not None), None)
    if usual is None:
        return []
    cost, broken = usual.loss or 0.0, usual.violation
    others = [p for p in points if p.loss is not None and p.value != usual.value]
    cheaper = [p for p in others if _loss(p) <= cost - _STAYS * abs(cost)]
    less = [p for p in others if p.violation < (1.0 - _STAYS) * broken]
    more = [p for p in cheaper if p.violation > (1.0 + _STAYS) * broken and _loss(p) < cost]

    def words(p: Point) -> tuple[str, str]:
        return (
            f"costs {_compared(cost, _loss(p))}",
            f"breaks limits {_compared(broken, p.violation)}",
        )

    if better := [p for p in cheaper if p in less]:
        p = min(better, key=_loss)
        costs, breaks = words(p)
        return [f"Take {p.at}: it {costs} than the default, {usual.at}, and {breaks}."]
    says = f"breaks limits by {broken:.3g}" if broken else "keeps every limit"
    found = [f"Begin with the default, {usual.at}: it costs {cost:.4g} a round and {says}."]
    if less:
        p = max(less, key=lambda p: (p.violation, -_loss(p)))
        costs, breaks = words(p)
        found.append(f"Where that breaks too much, {p.at} {breaks} and {costs}.")
    if more:
        p = min(more, key=lambda p: (p.violation, _loss(p)))
        costs, breaks = words(p)
        found.append(f"Where it costs too much, {p.at} {costs} and {breaks}.")
    return found


def _loss(point: Point) -> float:
    return point.loss or 0.0


def _compared(before: float, after: float) -> str:
    """How much more or less."""
    if before == 0.0:
        return f"by {after:.3g}"
    if before > 0.0 and after / before >= 3.0:
        return f"{after / before:.3g} times as much"
    apart = abs(after - before) / abs(before)
    if apart < _STAYS:
        return "as much"
    return f"{_percent(apart)} {'more' if after > before else 'less'}"


HEADROOM = (
    "Headroom h: re-solving leaves free, under every limit, h times what its room usually shrinks "
    "by from one round to the next."
)
"""What the knob of re-solving means."""
_NEAR = math.log(1.5)
"""Violations up to this far apart, in logarithms, count as about the same."""
_STAYS = 0.0005
"""Changes of less than this share are not told in numbers."""


def _change(what: str, before: float, after: float) -> str:
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
    digits = 0 if 0.095 <= share < 0.985 else 1 if share >= 0.0095 else 2
    return f"{100.0 * share:.{digits}f} %"


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
