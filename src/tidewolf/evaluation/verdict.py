"""The result of several runs in one sentence: the first learner beside the best of the others.

The other is the cheapest of the baselines that re-solve, else the cheapest of all; its loss and
violation stand beside those of the first. One alone is compared with the best fixed decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidewolf.evaluation.formatting import number, short_number
from tidewolf.evaluation.run import Run

SAME = 0.0005
"""Losses that differ by a smaller share are called the same."""


class Outcome(NamedTuple):
    """Means per round of one learner."""

    name: str
    loss: float
    violation: float


def verdict(runs: Sequence[Run], names: Sequence[str]) -> str:
    """One sentence on runs of one stream, the first of which is ours; lower is better."""
    if not runs or not runs[0].rounds:
        return ""
    outcomes = [
        Outcome(name, float(run.losses.mean()), float(run.violations.mean()))
        for run, name in zip(runs, names, strict=True)
    ]
    first, others = outcomes[0], outcomes[1:]
    if not others:
        return _alone(runs[0], first)
    solving = [each for each in others if each.name.startswith("Resolve")]
    return beside(first, min(solving or others, key=lambda each: each.loss))


def beside(first: Outcome, other: Outcome) -> str:
    """One learner beside another."""
    cost = f"{first.name} cost {_compared(first.loss, other.loss)} {other.name}"
    ours, theirs = first.violation, other.violation
    if ours == theirs == 0.0:
        return f"{cost}, and neither violated a constraint (lower is better)."
    if ours == 0.0 or theirs == 0.0:
        none, some = (first, other) if ours == 0.0 else (other, first)
        amount = f"{some.name} by {short_number(some.violation)} per round on average"
        return f"{cost}; {none.name} violated no constraint, {amount} (lower is better)."
    more = max(ours, theirs) / min(ours, theirs)
    ratio = f"{more:.2g}" if more < 10.0 else f"{more:,.0f}"
    times = f"{ratio} times {'less' if ours < theirs else 'more'}" if more > 1.05 else "as much"
    amounts = f"{short_number(ours)} against {short_number(theirs)} per round on average"
    return f"{cost} and violated constraints {times} ({amounts}; lower is better)."


def _alone(run: Run, own: Outcome) -> str:
    violated = "violated no constraint"
    if own.violation > 0.0:
        violated = f"violated constraints by {short_number(own.violation)} per round on average"
    if run.regret is None:
        return f"{own.name} cost {number(own.loss)} per round and {violated} (lower is better)."
    best = own.loss - run.regret[1] / run.rounds
    than = f"{_compared(own.loss, best)} the best fixed decision in hindsight"
    return f"{own.name} cost {than} and {violated} (lower is better)."


def _compared(own: float, other: float) -> str:
    """ "1.3 % less than", or the difference where shares of the other say nothing."""
    if abs(own - other) <= SAME * abs(other):
        return "as much as"
    than = "less than" if own < other else "more than"
    if other <= 0.0 or own <= 0.0:
        return f"{short_number(abs(other - own))} per round {than}"
    return f"{100.0 * abs(own - other) / other:.2g} % {than}"
