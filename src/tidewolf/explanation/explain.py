"""A decision explained, as far as it is known how it came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tidewolf.core.arrays import SILENCE, to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.feedback import Bandit
from tidewolf.core.known import Known
from tidewolf.core.types import Array, Bools
from tidewolf.explanation.members import members_of
from tidewolf.explanation.parts import Namer, Seen, entries, moves, namer, routes
from tidewolf.explanation.record import Entry, Explanation, Override, Proved
from tidewolf.explanation.trail import Stood, Told, Trail, installed
from tidewolf.methods.available import entries_out, uses
from tidewolf.methods.base import Learner, Record
from tidewolf.methods.late import TakesLate, coming_round
from tidewolf.methods.moves import distance_moved
from tidewolf.methods.turns import decision, standing_round, waiting


def explained(
    learner: Learner[Any],
    state: Any,
    trail: Trail,
    number: int | None = None,
    names: Sequence[str] | None = None,
    slept: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
) -> Explanation:
    """The decision of the coming round, or of a pending one, with whatever is known of it; `slept`
    says why who was asleep was.
    """
    coming, pending = coming_round(state), _pending(state)
    number = standing_round(state) if number is None else number
    if number != coming and number not in pending:
        waiting = f" and {_listed(pending)}, which are pending" if pending else ""
        raise InvalidInput(
            f"Round {number} cannot be explained: decisions that stand are those of round "
            f"{coming}{waiting}."
        )
    stood, name = trail.decided(number, state), namer(learner.hard_set, names)
    with SILENCE:
        if stood is None:
            return _point_alone(learner, state, number, name, trail.came)
        why = _explained(learner, state, trail, stood, name, slept or {})
        return replace(why, notes=(*why.notes, *notes))


def _explained(
    learner: Learner[Any],
    latest: Any,
    trail: Trail,
    stood: Stood,
    name: Namer,
    slept: Mapping[str, str],
) -> Explanation:
    K, state = learner.hard_set, stood.state
    x, before = stood.x(learner), trail.before(stood)
    last, known = (
        installed(learner, stood, before, trail.carried),
        trail.known.get(stood.round) or Known(),
    )
    gone = trail.carried.gone if trail.carried is not None and before is None else ()
    out = entries_out(K, known)
    gradients = learner.needs is not Bandit
    seen = None if stood.told is None else Seen(K, stood.told, name, gradients=gradients)
    costs, capacities = _news(seen, None if before is None else before.told, x, last)
    members, held_back, overridden = members_of(learner, stood, before, last, seen, name)
    largest, others = entries(x, last, name)
    paths, other_paths = routes(K, x, last)
    whole = [one for one in learner.members(state) if one.rounds == state.t]
    run_loss, run_violation = (whole[0].run_loss, whole[0].run_violation) if whole else (None, None)
    return Explanation(
        round=stood.round,
        learner=type(learner).__name__,
        on=type(K).__name__,
        entries=largest,
        others=others,
        routes=paths,
        other_routes=other_paths,
        since=trail.since(before),
        moved=None
        if last is None
        else distance_moved(x, last) + 0.5 * sum(value for _, value in gone),
        moves=() if last is None else moves(x, last, name),
        members=members,
        held_back=held_back,
        overridden=overridden,
        short_of=_short_of(learner, stood, x),
        max_move=_cap(learner, last, out),
        out=() if out is None else _out(np.flatnonzero(out).tolist(), last, name),
        gone=tuple(Entry(one, 0.0, value) for one, value in gone),
        asleep=tuple(map(learner.adviser_in_words, known.asleep or ())),
        slept_because=tuple(slept.get(one, "") for one in known.asleep or ()),
        costs=costs,
        capacities=capacities,
        told_before=_round_of(None if before is None else before.told),
        limits=() if seen is None else seen.limits(x, learner.limit_prices(state)),
        limit_price=learner.limit_price(state) if state.t else None,
        outlook=None if seen is None else seen.outlook(x, last),
        told=state.t,
        run_loss=run_loss,
        run_violation=run_violation,
        proved=_proved(learner, state),
        overrides=_overrides(latest),
        pending=_pending(latest),
        notes=(*_unknown(stood, before, trail), *learner.notes(state)),
    )


def _point_alone(
    learner: Learner[Any], state: Any, number: int, name: Namer, came: str
) -> Explanation:
    """A pending decision that was made before what is known of the way."""
    x = next(one.x for one in state.pending if one.round == number)
    largest, others = entries(x, None, name)
    paths, other_paths = routes(learner.hard_set, x, None)
    return Explanation(
        round=number,
        learner=type(learner).__name__,
        on=type(learner.hard_set).__name__,
        entries=largest,
        others=others,
        routes=paths,
        other_routes=other_paths,
        told=state.t,
        overrides=_overrides(state),
        pending=_pending(state),
        notes=(f"{came}, and it was decided before that: what moved it is not known.",),
    )


def _out(places: Sequence[int], last: Array | None, name: Namer) -> tuple[Entry, ...]:
    """The entries that are out, with what was there before."""
    before = None if last is None else to_numpy(last).reshape(-1)
    return tuple(Entry(name(i), 0.0, None if before is None else float(before[i])) for i in places)


def _cap(learner: Learner[Any], last: Array | None, out: Bools | None) -> float | None:
    """The most that the decision may move."""
    cap: float | None = getattr(learner, "max_move", None)
    leaves = last is not None and out is not None and uses(last, out)
    return None if leaves else cap


def _round_of(told: Told | None) -> int | None:
    return None if told is None else told.round


def _news(
    seen: Seen | None, told: Told | None, x: Array, last: Array | None
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """The costs and the capacities that changed from the round told before, where it matters."""
    if seen is None or told is None or last is None:
        return (), ()
    earlier = Seen(seen.K, told, seen.name, gradients=True)
    return seen.costs_unlike(earlier, x, last), seen.capacities_unlike(earlier, x, last)


def _short_of(learner: Learner[Any], stood: Stood, x: Array) -> float:
    """How far the decision is from what it would be if nothing held it back."""
    proposals = learner.proposals(stood.state, stood.round)
    there = [one for one in proposals if one.point is not None and one.weight > 0.0]
    own = decision(stood.state, stood.round)
    if there:
        mix = sum(one.weight * to_numpy(one.point) for one in there)
        far = distance_moved(to_numpy(x), mix)
    elif own is not None:
        far = 0.0 if own.own is None else distance_moved(x, own.own)
    elif isinstance(learner, TakesLate):
        far = distance_moved(x, learner.stands_at(stood.state))
    else:
        far = 0.0
    return far if far > 1e-9 * learner.hard_set.diameter else 0.0


def _unknown(stood: Stood, before: Stood | None, trail: Trail) -> tuple[str, ...]:
    """What cannot be said, and why."""
    if before is not None or stood.round == 0:
        return ()
    what = "who" if trail.since(before) is not None else "what"
    return (f"{trail.came}: {what} moved the decision is known from the next round on.",)


def _pending(state: Any) -> tuple[int, ...]:
    return tuple(one.round for one in waiting(state))


def _overrides(state: Any) -> Override | None:
    found = getattr(state, "overrides", None)
    if found is None or not found.rounds:
        return None
    return Override(
        found.rounds,
        found.price,
        found.valued,
        found.loss - found.own_loss,
        found.violation - found.own_violation,
    )


def _proved(learner: Learner[Any], state: Any) -> Proved | None:
    """The measured bound, where the state alone says it."""
    if not state.t or learner.on_average:
        return None
    record = Record.__new__(Record)
    object.__setattr__(record, "final_state", state)
    try:
        bound = learner.bound(record)
    except AttributeError:  # it asks for more than the state
        return None
    return Proved(state.t, bound.regret, bound.violation, bound.reason)


def _listed(rounds: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, rounds[:5]))
    return shown if len(rounds) <= 5 else f"{shown} and {len(rounds) - 5} more"
