"""Explain a decision.

The decision is sum_i p_i z_i, unless something holds it back, so with ' for the decision before,

    x - x'  =  sum_i p_i (z_i - z_i') + sum_i (p_i - p_i') (z_i' - m') + rest,   m' = sum p' z'

experts that propose another point, experts with another weight (p and p' both add up to 1, so m'
can be subtracted), and what held the decision back. If another point was played than x', the move
starts there, and the distance from x' to that point is a part of it, too. Each part c is measured
along the move, <signs of the move, c>/2: the parts add up to how far the decision moved. An expert
that was absent before counts as having proposed its present point, and one that is absent now as
still proposing its last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.explanation.history import History, Last, Stood
from tidewolf.explanation.parts import (
    MOST,
    LastRound,
    Namer,
    largest,
    moves,
    named,
    namer,
    once,
    routes,
)
from tidewolf.explanation.record import Entry, Explanation, Override, Part, Proved
from tidewolf.methods.available import entries_out
from tidewolf.methods.base import Learner, Record
from tidewolf.methods.events import decision, waiting
from tidewolf.methods.late import TakesLate, next_round
from tidewolf.methods.moves import distance_moved

SMALL = 0.01
"""Entries below this share of the largest are counted, not named."""


def explained(
    history: History,
    latest: Any,
    number: int,
    names: Sequence[str] | None,
    reasons: Mapping[str, str],
    notes: tuple[str, ...],
) -> Explanation:
    """Explain the decision of the next round of the state `latest`, or of a pending one; `reasons`
    says why advisers were skipped.
    """
    learner, pending = history.learner, tuple(one.round for one in waiting(latest))
    if number not in (rounds := (*pending, next_round(latest))):
        raise InvalidInput(
            "Expected a round that is pending or next, one of "
            f"{', '.join(map(str, rounds))}; round {number} cannot be explained."
        )
    stood = history.decision_of(number, latest)
    if stood is None:  # it was decided before the history begins
        history, stood = History(learner, number, history.came), Stood(number, latest, None)
    state, x, last = stood.state, stood.x(learner), history.last(stood)
    name, info = namer(learner.hard_set, names), history.info.get(number) or RoundInfo()
    newest = LastRound(learner, stood.feedback, name)
    earlier = None if last.stood is None else last.stood.feedback
    costs, capacities = newest.changes(LastRound(learner, earlier, name), x, last.x)
    experts, held_back, overridden = _experts(learner, stood, last, newest, name)
    whole = next((one for one in learner.experts_of(state) if one.rounds == state.t), None)
    unknown: tuple[str, ...] = ()
    if last.stood is None and number:
        unknown = (f"{history.came}: what moved the decision is not known.",)
    return Explanation(
        round=number,
        learner=type(learner).__name__,
        on=type(learner.hard_set).__name__,
        **_moved(learner, x, last, info, name),
        experts=experts,
        held_back=held_back,
        overridden=overridden,
        short_of=_short_of(learner, stood, x),
        skipped=tuple(map(learner.adviser_in_words, info.skipped or ())),
        slept_because=tuple(reasons.get(one, "") for one in info.skipped or ()),
        costs=costs,
        capacities=capacities,
        feedback_before=None if earlier is None else earlier.round,
        limits=newest.limits(x, learner.limit_prices(state)),
        limit_price=learner.limit_price(state) if state.t else None,
        outlook=newest.outlook(x, last.x),
        observed=state.t,
        run_loss=None if whole is None else whole.run_loss,
        run_violation=None if whole is None else whole.run_violation,
        proved=_proved(learner, state),
        overrides=_overrides(latest),
        pending=pending,
        notes=(*unknown, *learner.notes(state), *notes),
    )


def _moved(
    learner: Learner[Any], x: Array, last: Last, info: RoundInfo, name: Namer
) -> dict[str, Any]:
    """The fields of the decision by name, and of its move."""
    size, paths = np.abs(once(x)), routes(learner.hard_set, x, last.x)
    shown, closed = largest(size, MOST, SMALL), entries_out(learner.hard_set, info)
    out = named([] if closed is None else np.flatnonzero(closed).tolist(), x, last.x, name)
    found = {
        "entries": named(shown, x, last.x, name),
        "others": int(np.count_nonzero(size)) - len(shown),
        "routes": tuple(paths[:MOST]),
        "other_routes": len(paths[MOST:]),
        "max_move": getattr(learner, "max_move", None) if not any(e.before for e in out) else None,
        "out": out,
    }
    if last.x is None:
        return found
    gone = tuple(Entry(one, 0.0, value) for one, value in last.gone)
    moved = distance_moved(x, last.x) + 0.5 * sum(value for _, value in last.gone)
    changed = moves(x, last.x, name)
    return {**found, "since": last.round, "moved": moved, "moves": changed, "gone": gone}


def _overrides(state: Any) -> Override | None:
    found = getattr(state, "overrides", None)
    if found is None or not found.rounds:
        return None
    more = (found.loss - found.own_loss, found.violation - found.own_violation)
    return Override(found.rounds, found.price, found.valued, *more)


def _short_of(learner: Learner[Any], stood: Stood, x: Array) -> float:
    """How far the decision is from what it would be if nothing held it back."""
    own, free = decision(stood.state, stood.round), x
    proposals = learner.proposals(stood.state, stood.round)
    points = [one.weight * to_numpy(one.point) for one in proposals if one.point is not None]
    if points:
        free = sum(points, 0.0 * points[0])
    elif own is not None:
        free = x if own.own is None else own.own
    elif isinstance(learner, TakesLate):
        free = learner.stands_at(stood.state)
    far = distance_moved(x, free)
    return far if far > 1e-9 * learner.hard_set.diameter else 0.0


def _proved(learner: Learner[Any], state: Any) -> Proved | None:
    """The measured bound, if it needs the state only."""
    if not state.t or learner.on_average:
        return None
    record = Record.__new__(Record)
    object.__setattr__(record, "final_state", state)
    try:
        bound = learner.bound(record)
    except AttributeError:  # it needs more than the state
        return None
    return Proved(state.t, bound.regret, bound.violation, bound.reason)


def _experts(
    learner: Learner[Any], stood: Stood, last: Last, newest: LastRound, name: Namer
) -> tuple[tuple[Part, ...], float, float]:
    """Every expert with its part of the move, largest weights first; how far something else moved
    it, such as `max_move`; and the part of another point that was played.
    """
    now = then = learner.proposals(stood.state, stood.round)
    if not now:
        return (), 0.0, 0.0
    x = x_before = x_last = to_numpy(stood.x(learner))
    if last.stood is not None:
        then = learner.proposals(last.stood.state, last.stood.round)
        x_before, x_last = to_numpy(last.stood.x(learner)), to_numpy(last.x)
    along, rest, parts = 0.5 * np.sign(x - x_last), x - x_before, list[Part]()
    mix = sum((one.weight * to_numpy(one.point) for one in then if one.point is not None), 0.0 * x)
    for one, old, total in zip(now, then, learner.experts_of(stood.state), strict=True):
        moved = np.zeros((2, *x.shape))
        if one.point is not None or old.point is not None:
            z_old = to_numpy(one.point if old.point is None else old.point)
            z = z_old if one.point is None else to_numpy(one.point)
            moved[0] = one.weight * (z - z_old)
            moved[1] = (one.weight - old.weight) * (z_old - mix)
        whole, (loss, limit) = once(moved.sum(axis=0)), newest.values(one.point)
        rest = rest - moved.sum(axis=0)
        part = Part(
            name=one.who,
            weight=one.weight,
            weight_before=None if last.stood is None else old.weight,
            by_proposal=float(np.sum(along * moved[0])),
            by_weight=float(np.sum(along * moved[1])),
            towards=name(int(whole.argmax())) if whole.max() > 0.0 else None,
            away_from=name(int(whole.argmin())) if whole.min() < 0.0 else None,
            loss=loss,
            limit=limit,
            guard=total.guard if total.rounds else None,
            more_loss=_minus(total.run_loss, total.loss),
            more_violation=_minus(total.run_violation, total.violation),
            its_loss=total.loss,
            present=one.point is not None,
        )
        parts.append(part)
    held_back, overridden = (float(np.sum(along * one)) for one in (rest, x_before - x_last))
    return tuple(sorted(parts, key=lambda part: -part.weight)), held_back, overridden


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
