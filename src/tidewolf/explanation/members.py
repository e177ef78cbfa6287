"""Who moved a decision, exactly.

The decision is sum_i p_i z_i, unless something holds it back, so with ' for the decision before,

    x - x'  =  sum_i p_i (z_i - z_i') + sum_i (p_i - p_i') (z_i' - m') + rest,   m' = sum p' z'

members that propose something else, members that are trusted more or less (p and p' both add up to
1, so m' may be taken off), and what held the decision back. Where something else was played than
x', the move is from there, and how far x' is from that is a part of it, too. Each part c is
measured along the move, <its signs, c>/2: the parts add up to how far the decision moved. A member
that was absent before counts as having proposed what it does now, and one that is absent now as
still proposing it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Array, Floats
from tidewolf.explanation.parts import Namer, Seen, once
from tidewolf.explanation.record import Part
from tidewolf.explanation.trail import Stood
from tidewolf.methods.base import Learner, Member, Proposal


class Moved(NamedTuple):
    """A member's two parts of the move, as points."""

    by_proposal: Floats
    by_weight: Floats


def split(
    now: Sequence[Proposal], before: Sequence[Proposal], x: Array, x_before: Array
) -> tuple[list[Moved], Floats]:
    """Each member's parts of the move, and the rest."""
    mix = sum(
        (one.weight * to_numpy(one.point) for one in before if one.point is not None),
        start=np.zeros(tuple(x.shape)),
    )
    parts, rest = [], to_numpy(x) - to_numpy(x_before)
    for new, old in zip(now, before, strict=True):
        z_old = old.point if old.point is not None else new.point
        z_new = new.point if new.point is not None else old.point
        if z_old is None or z_new is None:
            parts.append(Moved(np.zeros_like(rest), np.zeros_like(rest)))
            continue
        moved = new.weight * (to_numpy(z_new) - to_numpy(z_old))
        trusted = (new.weight - old.weight) * (to_numpy(z_old) - mix)
        parts.append(Moved(moved, trusted))
        rest = rest - moved - trusted
    return parts, rest


def members_of(
    learner: Learner[Any],
    stood: Stood,
    before: Stood | None,
    last: Array | None,
    seen: Seen | None,
    name: Namer,
) -> tuple[tuple[Part, ...], float, float]:
    """Every member with its part in the move from what was played last; how far what holds
    decisions back moved it; and how far it is that something else was played than was decided.
    """
    now = learner.proposals(stood.state, stood.round)
    known = learner.members(stood.state) or (None,) * len(now)
    if before is None or not now:
        both = zip(now, known, strict=True)
        return (
            _by_weight([_part(one, None, None, None, seen, so, name) for one, so in both]),
            0.0,
            0.0,
        )
    x, x_before = to_numpy(stood.x(learner)), to_numpy(before.x(learner))
    x_last = x_before if last is None else to_numpy(last)
    then = learner.proposals(before.state, before.round)
    moved, rest = split(now, then, x, x_before)
    along = 0.5 * np.sign(x - x_last)
    parts = [
        _part(one, old.weight, own, along, seen, so_far, name)
        for one, so_far, old, own in zip(now, known, then, moved, strict=True)
    ]
    overridden = float(np.sum(along * (x_before - x_last)))
    return _by_weight(parts), float(np.sum(along * rest)), overridden


def _by_weight(parts: list[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: -part.weight))


def _part(
    one: Proposal,
    weight_before: float | None,
    moved: Moved | None,
    along: Floats | None,
    seen: Seen | None,
    so_far: Member | None,
    name: Namer,
) -> Part:
    by_proposal = by_weight = 0.0
    towards = away = None
    if moved is not None and along is not None:
        by_proposal, by_weight = (float(np.sum(along * part)) for part in moved)
        whole = once(moved.by_proposal + moved.by_weight)
        towards = name(int(whole.argmax())) if whole.max() > 0.0 else None
        away = name(int(whole.argmin())) if whole.min() < 0.0 else None
    more_loss = more_violation = None
    if so_far is not None and so_far.loss is not None and so_far.run_loss is not None:
        more_loss = so_far.run_loss - so_far.loss
    if so_far is not None and so_far.violation is not None and so_far.run_violation is not None:
        more_violation = so_far.run_violation - so_far.violation
    return Part(
        name=one.who,
        weight=one.weight,
        weight_before=weight_before,
        by_proposal=by_proposal,
        by_weight=by_weight,
        towards=towards,
        away_from=away,
        loss=None if seen is None else seen.loss(one.point),
        limit=None if seen is None else seen.limit(one.point),
        guard=None if so_far is None or not so_far.rounds else so_far.guard,
        more_loss=more_loss,
        more_violation=more_violation,
        its_loss=None if so_far is None else so_far.loss,
        present=one.point is not None,
    )
