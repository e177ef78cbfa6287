"""A decision explained, as far as it is known how it came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidewolf.core.arrays import SILENCE, to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.feedback import Bandit
from tidewolf.core.types import Array
from tidewolf.explanation.members import members_of
from tidewolf.explanation.parts import Namer, Seen, entries, moves, namer, routes
from tidewolf.explanation.record import Entry, Explanation, Override, Proved
from tidewolf.explanation.trail import Stood, Told, Trail, installed
from tidewolf.methods.base import Learner, Record
from tidewolf.methods.late import TakesLate, coming_round
from tidewolf.methods.moves import distance_moved
from tidewolf.methods.turns import decision, standing_round, waiting

JUST_OPENED = (
    "The session was opened, or begun from a state, at this round: what moved the decision is "
    "known from the next round on."
)


def explained(
    learner: Learner[Any],
    state: Any,
    trail: Trail,
    number: int | None = None,
    names: Sequence[str] | None = None,
    notes: tuple[str, ...] = (),
) -> Explanation:
    """The decision of the coming round, or of a pending one, with whatever is known of it."""
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
            return _point_alone(learner, state, number, name)
        why = _explained(learner, state, trail, stood, name)
        return replace(why, notes=(*why.notes, *notes))


def _explained(
    learner: Learner[Any],
    latest: Any,
    trail: Trail,
    stood: Stood,
    name: Namer,
) -> Explanation:
    K, state = learner.hard_set, stood.state
    x, before = stood.x(learner), trail.before(stood)
    last, known = installed(learner, stood, before), trail.known.get(stood.round)
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
        since=None if before is None else before.round,
        moved=None if last is None else distance_moved(x, last),
        moves=() if last is None else moves(x, last, name),
        members=members,
        held_back=held_back,
        overridden=overridden,
        short_of=_short_of(learner, stood, x),
        out=() if known is None else _named(known.unavailable or (), name),
        asleep=() if known is None else known.asleep or (),
        costs=costs,
        capacities=capacities,
        limits=() if seen is None else seen.limits(x, learner.limit_prices(state)),
        limit_price=learner.limit_price(state) if state.t else None,
        outlook=None if seen is None else seen.outlook(x, last),
        told=state.t,
        run_loss=run_loss,
        run_violation=run_violation,
        proved=_proved(learner, state),
        overrides=_overrides(latest),
        pending=_pending(latest),
        notes=(*_unknown(stood, before), *learner.notes(state)),
    )


def _point_alone(learner: Learner[Any], state: Any, number: int, name: Namer) -> Explanation:
    """A pending decision that was made before the session was opened."""
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
        notes=("It was decided before the session was opened: what moved it is not known.",),
    )


def _named(entries: Sequence[int | str], name: Namer) -> tuple[str, ...]:
    return tuple(name(one) if isinstance(one, int) else one for one in entries)


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


def _unknown(stood: Stood, before: Stood | None) -> tuple[str, ...]:
    """What cannot be said, and why."""
    return (JUST_OPENED,) if before is None and stood.round > 0 else ()


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
