"""A decision explained, as far as it is known how it came about.

The decision is sum_i p_i z_i, unless something holds it back, so with ' for the decision before,

    x - x'  =  sum_i p_i (z_i - z_i') + sum_i (p_i - p_i') (z_i' - m') + rest,   m' = sum p' z'

experts that propose something else, experts with other weights (p and p' both add up to 1, so m'
may be taken off), and what held the decision back. If something else was played than x', the move
is from there, and how far x' is from that is a part of it, too. Each part c is measured along the
move, <its signs, c>/2: the parts add up to how far the decision moved. An expert that was absent
before counts as having proposed what it does now, and one that is absent now as still proposing it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidewolf.core.arrays import SILENCE, to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.feedback import Bandit
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.explanation.history import History, Stood, installed
from tidewolf.explanation.parts import (
    Entries,
    LastRound,
    Namer,
    entries,
    moves,
    namer,
    once,
    routes,
)
from tidewolf.explanation.record import Entry, Explanation, Override, Part, Proved
from tidewolf.methods.available import entries_out, uses
from tidewolf.methods.base import Expert, Learner, Record
from tidewolf.methods.events import current_round, decision, waiting
from tidewolf.methods.late import TakesLate, next_round
from tidewolf.methods.moves import distance_moved

NO_NEWS: tuple[Entries, Entries] = ((), ())


def explained(
    learner: Learner[Any],
    state: Any,
    history: History,
    number: int | None = None,
    names: Sequence[str] | None = None,
    slept: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
) -> Explanation:
    """The decision of the coming round, or of a pending one; `slept` has the reasons of advisers
    that were skipped.
    """
    upcoming, pending = next_round(state), [one.round for one in waiting(state)]
    number = current_round(state) if number is None else number
    if number != upcoming and number not in pending:
        info = f" and of {', '.join(map(str, pending))}" if pending else ""
        raise InvalidInput(
            f"Round {number} cannot be explained: decisions that stand are those of round "
            f"{upcoming}{info}."
        )
    stood, name = history.decision_of(number, state), namer(learner.hard_set, names)
    with SILENCE:
        if stood is not None:
            return _explained(learner, state, history, stood, name, slept or {}, notes)
        x = next(one.x for one in state.pending if one.round == number)
        note = f"{history.came}, and it was decided before that: what moved it is not known."
        own = _decision(learner, state, number, x, None, name)
        return Explanation(**own, observed=state.t, notes=(note,))


def _decision(
    learner: Learner[Any], state: Any, number: int, x: Array, last: Array | None, name: Namer
) -> dict[str, Any]:
    """What is known of any decision."""
    largest, others = entries(x, last, name)
    paths, other_paths = routes(learner.hard_set, x, last)
    found = getattr(state, "overrides", None)
    overrides = None
    if found is not None and found.rounds:
        more = (found.loss - found.own_loss, found.violation - found.own_violation)
        overrides = Override(found.rounds, found.price, found.valued, *more)
    return {
        "round": number,
        "learner": type(learner).__name__,
        "on": type(learner.hard_set).__name__,
        "entries": largest,
        "others": others,
        "routes": paths,
        "other_routes": other_paths,
        "overrides": overrides,
        "pending": tuple(one.round for one in waiting(state)),
    }


def _explained(
    learner: Learner[Any],
    latest: Any,
    history: History,
    stood: Stood,
    name: Namer,
    slept: Mapping[str, str],
    notes: tuple[str, ...],
) -> Explanation:
    K, state, x, before = learner.hard_set, stood.state, stood.x(learner), history.before(stood)
    last = installed(learner, stood, before, history.carried)
    info, since = history.info.get(stood.round) or RoundInfo(), history.since(before)
    gone = history.carried.gone if history.carried is not None and before is None else ()
    out, then = entries_out(K, info), None if last is None else to_numpy(last).reshape(-1)
    closed = [] if out is None else np.flatnonzero(out).tolist()
    leaves = last is not None and out is not None and uses(last, out)
    gradients = learner.needs is not Bandit
    newest = (
        None if stood.feedback is None else LastRound(K, stood.feedback, name, gradients=gradients)
    )
    feedback, news = None if before is None else before.feedback, NO_NEWS
    if newest is not None and feedback is not None and last is not None:
        news = newest.unlike(LastRound(K, feedback, name, gradients=True), x, last)
    experts, held_back, overridden = _experts(learner, stood, before, last, newest, name)
    whole = next((one for one in learner.experts_of(state) if one.rounds == state.t), None)
    unknown: tuple[str, ...] = ()
    if before is None and stood.round:
        what = "what" if since is None else "who"
        unknown = (f"{history.came}: {what} moved the decision is known from the next round on.",)
    return Explanation(
        **_decision(learner, latest, stood.round, x, last, name),
        since=since,
        moved=None if last is None else distance_moved(x, last) + 0.5 * sum(v for _, v in gone),
        moves=() if last is None else moves(x, last, name),
        experts=experts,
        held_back=held_back,
        overridden=overridden,
        short_of=_short_of(learner, stood, x),
        max_move=None if leaves else getattr(learner, "max_move", None),
        out=tuple(Entry(name(i), 0.0, None if then is None else float(then[i])) for i in closed),
        gone=tuple(Entry(one, 0.0, value) for one, value in gone),
        skipped=tuple(map(learner.adviser_in_words, info.skipped or ())),
        slept_because=tuple(slept.get(one, "") for one in info.skipped or ()),
        costs=news[0],
        capacities=news[1],
        feedback_before=None if feedback is None else feedback.round,
        limits=() if newest is None else newest.limits(x, learner.limit_prices(state)),
        limit_price=learner.limit_price(state) if state.t else None,
        outlook=None if newest is None else newest.outlook(x, last),
        observed=state.t,
        run_loss=None if whole is None else whole.run_loss,
        run_violation=None if whole is None else whole.run_violation,
        proved=_proved(learner, state),
        notes=(*unknown, *learner.notes(state), *notes),
    )


def _short_of(learner: Learner[Any], stood: Stood, x: Array) -> float:
    """How far the decision is from what it would be if nothing held it back."""
    own, mix = decision(stood.state, stood.round), None
    for one in learner.proposals(stood.state, stood.round):
        if one.point is not None and one.weight > 0.0:
            mix = one.weight * to_numpy(one.point) + (0.0 if mix is None else mix)
    if mix is not None:
        far = distance_moved(to_numpy(x), mix)
    elif own is not None:
        far = 0.0 if own.own is None else distance_moved(x, own.own)
    elif isinstance(learner, TakesLate):
        far = distance_moved(x, learner.stands_at(stood.state))
    else:
        far = 0.0
    return far if far > 1e-9 * learner.hard_set.diameter else 0.0


def _proved(learner: Learner[Any], state: Any) -> Proved | None:
    """The measured bound, if it needs the state only."""
    if not state.t or learner.on_average:
        return None
    record = Record.__new__(Record)
    object.__setattr__(record, "final_state", state)
    try:
        bound = learner.bound(record)
    except AttributeError:  # it asks for more than the state
        return None
    return Proved(state.t, bound.regret, bound.violation, bound.reason)


def _experts(
    learner: Learner[Any],
    stood: Stood,
    before: Stood | None,
    last: Array | None,
    newest: LastRound | None,
    name: Namer,
) -> tuple[tuple[Part, ...], float, float]:
    """Every expert with its part of the move, largest weights first; how far what holds decisions
    back moved it; and the part of another point that was played.
    """
    now = learner.proposals(stood.state, stood.round)
    then = () if before is None else learner.proposals(before.state, before.round)
    info = learner.experts_of(stood.state) or (None,) * len(now)
    x = to_numpy(stood.x(learner))
    x_before = x if before is None else to_numpy(before.x(learner))
    x_last = x_before if last is None or before is None else to_numpy(last)
    along, rest, parts = 0.5 * np.sign(x - x_last), x - x_before, list[Part]()
    mix = sum((one.weight * to_numpy(one.point) for one in then if one.point is not None), 0.0 * x)
    for i, (one, so_far) in enumerate(zip(now, info, strict=True)):
        old, moved = then[i] if then else None, np.zeros((2, *x.shape))
        z_old, z_new = (None if old is None else old.point), one.point
        z_old, z_new = (z_new if z_old is None else z_old), (z_old if z_new is None else z_new)
        if old is not None and z_old is not None and z_new is not None:
            moved[0] = one.weight * (to_numpy(z_new) - to_numpy(z_old))
            moved[1] = (one.weight - old.weight) * (to_numpy(z_old) - mix)
        whole = once(moved.sum(axis=0))
        rest = rest - moved.sum(axis=0)
        part = Part(
            name=one.who,
            weight=one.weight,
            weight_before=None if old is None else old.weight,
            by_proposal=float(np.sum(along * moved[0])),
            by_weight=float(np.sum(along * moved[1])),
            towards=name(int(whole.argmax())) if whole.max() > 0.0 else None,
            away_from=name(int(whole.argmin())) if whole.min() < 0.0 else None,
            loss=None if newest is None else newest.loss(one.point),
            limit=None if newest is None else newest.limit(one.point),
            guard=None if so_far is None or not so_far.rounds else so_far.guard,
            more_loss=_less(so_far, "loss"),
            more_violation=_less(so_far, "violation"),
            its_loss=None if so_far is None else so_far.loss,
            present=one.point is not None,
        )
        parts.append(part)
    held_back = float(np.sum(along * rest)) if now else 0.0
    overridden = float(np.sum(along * (x_before - x_last))) if now else 0.0
    return tuple(sorted(parts, key=lambda part: -part.weight)), held_back, overridden


def _less(so_far: Expert | None, what: str) -> float | None:
    """What the run has more of than an expert; None if either is unknown."""
    run, own = (getattr(so_far, name, None) for name in (f"run_{what}", what))
    return None if run is None or own is None else float(run - own)
