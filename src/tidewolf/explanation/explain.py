"""Explain a decision.

The decision is sum_i p_i z_i, unless something holds it back, so with ' for the decision before,

    x - x'  =  sum_i p_i (z_i - z_i') + sum_i (p_i - p_i') (z_i' - m') + rest,   m' = sum p' z'

experts that propose another point, experts with another weight (p and p' both add up to 1, so m'
can be subtracted), and what held the decision back. If another point was played than x', the move
starts there, and the distance from x' to that point is a part of it, too. Each part c is measured
along the move, <signs of the move, c>/2: the parts add up to how far the decision moved. An expert
that was absent before counts as having proposed its present point, and one that is absent now as
still proposing its last one.

What a session keeps to explain its decisions: references, no copies.

The state that a round was decided from is kept while the round is pending, and one round longer,
with the feedback that was newest then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from tidewolf.core.arrays import inner, to_numpy
from tidewolf.core.batch import Batch, Unlimited
from tidewolf.core.errors import InvalidInput
from tidewolf.core.feedback import Bandit, Feedback, FirstOrder, FullInformation, first_order
from tidewolf.core.oracle import HasLMO
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array, Floats
from tidewolf.explanation import record
from tidewolf.explanation.record import Entry
from tidewolf.functions.combined import Chain, limit_names
from tidewolf.functions.linear import Capacity, Linear
from tidewolf.methods.available import entries_out
from tidewolf.methods.base import Learner, bound_so_far
from tidewolf.methods.capabilities import (
    MixesExperts,
    acts,
    adviser_in_words,
    diagnosed,
    experts_of,
    is_committed,
)
from tidewolf.methods.compiled_rounds import ArrayState
from tidewolf.methods.events import Decide, Event, Observe, SetInfo, decision, waiting
from tidewolf.methods.late import next_round
from tidewolf.methods.migration import Move
from tidewolf.methods.moves import distance_moved
from tidewolf.sets.flows import FlowPolytope, MultiFlow

KEPT = 4
"""Observations that a history is made of if it was not written as they came."""
BEGUN = "The session was begun from a state, loaded or copied at this round"
OPENED = "The session was opened at this round, and its history does not reach farther back"
WENT_BACK = "The session went back to this round, farther than what explains it is kept"
REPLACED = "The learner was replaced before this round"


class RoundFeedback(NamedTuple):
    """Feedback on a round."""

    round: int
    given: Feedback
    x: Array
    """what was played"""


class Stood(NamedTuple):
    """A round as it was decided: the next one of a state, or one that is pending in it."""

    round: int
    state: Any
    """an ArrayState if a kernel played the round"""
    feedback: RoundFeedback | None
    """the newest feedback when it was decided"""

    def whole(self) -> Stood:
        """The same with the state itself."""
        state = self.state.state if isinstance(self.state, ArrayState) else self.state
        return self._replace(state=state)

    def x(self, learner: Learner[Any]) -> Array:
        """The decision."""
        own = decision(self.state, self.round)
        return learner.act(self.state) if own is None else own.x


Rounds: TypeAlias = Mapping[int, Any]


class Last(NamedTuple):
    """What is known of the decision before another one."""

    stood: Stood | None = None
    round: int | None = None
    x: Array | None = None
    """what was played, in the entries of the set"""
    gone: tuple[Entry, ...] = ()
    """entries that were used and that the set no longer has"""


@dataclass(frozen=True, eq=False)
class History:
    """The past of a session, as far as explanations need it."""

    learner: Learner[Any]
    at: int
    """the next round after the last observation"""
    came: str = BEGUN
    """why nothing is known of earlier rounds"""
    carried: Last = field(default_factory=Last)
    """what was played last before the learner was replaced"""
    is_whole: bool = False
    """whether all that the file of the session has is here"""
    stood: Rounds = field(default_factory=dict)
    """each `Stood`, by the number of the round"""
    info: Rounds = field(default_factory=dict)
    """side information of these rounds"""
    feedback: RoundFeedback | None = None
    """the newest"""

    def after(
        self, before: Any, after: Any, events: Sequence[Event], feedback: RoundFeedback | None
    ) -> History:
        """The history after these events led from one state to the next."""
        number, upcoming = next_round(before), next_round(after)
        rounds, decided, info = [one.round for one in waiting(after)], number, dict(self.info)
        for event in events:
            if isinstance(event, SetInfo):
                info[decided] = event.info
            decided += isinstance(event, Decide)
        stood = {one: Stood(one, after, self.feedback) for one in rounds if one >= number}
        if upcoming > number and number not in rounds and is_committed(self.learner, before):
            stood[number] = Stood(number, before, self.feedback)
        least = min([*rounds, upcoming - 1]) - 1
        return self.following(upcoming, least, stood, info, feedback)

    def following(
        self, upcoming: int, least: int, stood: Rounds, info: Rounds, feedback: RoundFeedback | None
    ) -> History:
        """With more decisions and this side information, from round `least` on."""
        stood = _between({**self.stood, **stood}, least)
        new = replace(self, stood=stood, info=_between(info, least))
        return new if feedback is None else replace(new, at=upcoming, feedback=feedback)

    def back_to(self, number: int) -> History:
        """The history when this round became the next one; of earlier observations none is kept."""
        if self.at > number:
            return History(self.learner, number, WENT_BACK)
        stood, info = (_between(each, 0, number) for each in (self.stood, self.info))
        return replace(self, stood=stood, info=info)

    def decision_of(self, number: int, state: Any) -> Stood | None:
        """The next round of `state`, or an earlier one, as it was decided; None if that is not
        known.
        """
        if number == next_round(state):
            return Stood(number, state, self.feedback)
        return self.stood[number].whole() if number in self.stood else None

    def last(self, stood: Stood) -> Last:
        """The decision before this one, and what was played in place of it, if known by then."""
        earlier = [one for one in self.stood if one < stood.round]
        if not earlier:
            return self.carried
        before, feedback = self.stood[max(earlier)].whole(), stood.feedback
        if feedback is not None and feedback.round == before.round:
            return Last(before, before.round, feedback.x)
        return Last(before, before.round, before.x(self.learner))

    def migrated(self, new: Learner[Any], state: Any) -> History:
        """The history of a learner that replaces this one: what was played last, by name, and the
        newest feedback if the set is the same.
        """
        number = next_round(state)
        last = self.last(Stood(number, state, self.feedback))
        if last.x is None:
            return History(new, number, REPLACED)
        move, flat = Move(self.learner.K, new.K), to_numpy(last.x).reshape(-1)
        lost = np.flatnonzero((move.to < 0) & (flat > 0.0)).tolist()
        name = getattr(move.old, "names", range(len(flat)))
        gone = tuple(Entry(str(name[i]), 0.0, float(flat[i])) for i in lost)
        carried = Last(None, last.round, move.scattered(last.x), gone)
        feedback = self.feedback if move.stays else None
        return History(new, number, REPLACED, carried, feedback=feedback)


@final
class Past:
    """The history of a session, and the steps since: from which state, by which events, with which
    feedback. A step leads to the state before the next one; one that leads nowhere was refused.
    So a step is noted before it is made, and an interrupt cannot part the two.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._steps: list[tuple[Any, Sequence[Event], RoundFeedback | None]] = []

    def add(self, before: Any, events: Sequence[Event], feedback: RoundFeedback | None) -> None:
        """Note a step; if no round waits, the last few are enough."""
        if self._steps and self._steps[-1][0] is before:
            self._steps.pop()  # it was refused
        if len(self._steps) >= 4 * KEPT:
            if waiting(before):
                self.history(before)
            else:
                del self._steps[: -2 * KEPT]
        self._steps.append((before, events, feedback))

    def history(self, now: Any) -> History:
        """All of it, at the state that the last step led to."""
        history, steps = self._history, self._steps
        for i, (before, events, feedback) in enumerate(steps, 1):
            after = steps[i][0] if i < len(steps) else now
            if after is not before:
                history = history.after(before, after, events, feedback)
        self._history, self._steps = history, []
        return history

    def last_played(self, now: Any) -> Array | None:
        """What was played in the round that was observed last; None if that is not known."""
        before, _, feedback = self._steps[-1] if self._steps else (now, (), None)
        if before is now or feedback is None:
            feedback = self.history(now).feedback
        return None if feedback is None else feedback.x


def _between(rounds: Rounds, least: int, stop: float = math.inf) -> dict[int, Any]:
    return {one: own for one, own in rounds.items() if least <= one < stop}


def rebuilt(learner: Learner[Any], steps: Iterable[Any], came: str) -> History:
    """The history of these steps, each with its `before`, `events` and `place`."""
    history = History(learner, 0, came)
    for step in steps:
        feedback, event = None, step.events[-1]
        if isinstance(event, Observe):
            number, given, played = event.arrival[:3]
            if played is None:
                x = Stood(number, step.before, None).x(learner)
                played = played_point(learner, step.before, given, x)
            feedback = RoundFeedback(number, given, played)
        history = history.after(step.before, step.place.state, step.events, feedback)
    return history


def played_point(learner: Learner[Any], state: Any, given: Feedback, x: Array) -> Array:
    """What is played in the last of the observed rounds if x is the decision of the first."""
    if learner.needs is not Bandit or not 1 < (k := given.rounds) <= learner.rounds_left(state):
        return x
    return acts(learner, state, k)[k - 1, ...]


def full_information(costs: Array, capacities: Array | None) -> FullInformation:
    """The functions of one round of costs and capacities, each an array of one row."""
    loss = Linear._unchecked(C=costs)
    if capacities is None:
        return FullInformation(loss, Unlimited(loss.shape))
    return FullInformation(loss, Capacity._unchecked(c=capacities))


def last_round(given: Feedback) -> Feedback:
    """The last of the rounds that were observed together, if they can be told apart."""
    k = given.rounds
    if k == 1 or isinstance(given, FirstOrder):
        return given
    return type(given)(*(part[k - 1 : k] for part in given))


SMALL = 0.01
"""Entries below this share of the largest are counted, not named."""
MOST = 20
"""Entries and paths of a decision; half as many changes and constraints."""
LITTLE = 0.1
"""Changes below this share of the largest are not named."""
NEARLY_FULL, FULL = 0.9, 1e-3
"""The room of a constraint that binds, at most: as a share of how much it varies over the set."""

Entries = tuple[record.Entry, ...]
Namer = Callable[[int], str]
"""The name of an entry, by its place in the flat point."""


def namer(K: HasLMO, names: Sequence[str] | None = None) -> Namer:
    """The names of entries: those given here, or those of the set."""
    names = getattr(K, "names", None) if names is None else names
    if names is None:
        vector = len(K.shape) == 1
        return lambda i: f"entry {i if vector else tuple(map(int, np.unravel_index(i, K.shape)))}"
    if len(names) != math.prod(K.shape):
        raise InvalidInput(f"names must be one per entry, {math.prod(K.shape)}, not {len(names)}.")
    return lambda i: str(names[i])


def flat(x: Array) -> Floats:
    return to_numpy(x).astype(np.float64).reshape(-1)


def once(x: Array) -> Floats:
    """The entries of a point, with 0 below the diagonal of a symmetric matrix."""
    own = to_numpy(x)
    return flat(np.triu(own) if own.ndim == 2 and np.array_equal(own, own.T) else own)


def named(places: Iterable[int], x: Array, before: Array | None, name: Namer) -> Entries:
    """These entries, with what they were before."""
    new, old = flat(x).tolist(), None if before is None else flat(before).tolist()
    return tuple(record.Entry(name(i), new[i], None if old is None else old[i]) for i in places)


def largest(size: Floats, most: int, share: float) -> list[int]:
    """The places of the largest numbers, those above a share of the largest one."""
    order = np.argsort(-size, kind="stable")[:most].tolist()
    return [i for i in order if size[i] > share * size.max()]


def moves(x: Array, before: Array, name: Namer, weights: Floats | float = 1.0) -> Entries:
    """The entries with the largest weighted changes."""
    return named(largest(np.abs(once(x - before)) * weights, MOST // 2, LITTLE), x, before, name)


def routes(K: HasLMO, x: Array) -> list[record.Route]:
    """The paths of a flow, by commodity."""
    found: list[tuple[str | None, Any]] = []
    if isinstance(K, FlowPolytope):
        found = [(None, path) for path in K.paths(x, tolerance=1e-4)]
    elif isinstance(K, MultiFlow):
        ends = [f"{K.nodes[i]} to {K.nodes[j]}" for i, j in zip(K.sources, K.targets, strict=True)]
        paths = zip(ends, K.paths(x, tolerance=1e-4), strict=True)
        found = [(end, path) for end, own in paths for path in own]
    return [record.Route(path.weight, tuple(map(str, path.nodes)), who) for who, path in found]


class LastRound:
    """The functions or numbers of the last observed round; all unknown without feedback."""

    def __init__(self, learner: Learner[Any], feedback: RoundFeedback | None, name: Namer) -> None:
        self.K, self.feedback, self.name = learner.K, feedback, name
        self.gradients: FirstOrder | None = None
        self.loss, self.constraint = None, None  # type: Batch | None, Batch | None
        self.observed: tuple[float | None, ...] = (None, None)
        """loss and constraint value at what was played, if no functions were observed"""
        given = None if feedback is None else last_round(feedback.given)
        if isinstance(given, FirstOrder):
            self.gradients, self.observed = given, (None, given.violation or None)
        elif isinstance(given, Bandit):
            self.observed = tuple(float(values[0]) for values in given)
        elif isinstance(given, FullInformation) and feedback is not None:
            self.loss, one = given
            if learner.needs is not Bandit:
                self.gradients = first_order(*given, feedback.x, one.values(feedback.x))
            while isinstance(one, Chain) and len(one.parts) == 1:
                (one,) = one.parts
            self.constraint = None if isinstance(one, Unlimited) else one

    def values(self, x: Array | None) -> tuple[float | None, ...]:
        """Loss and largest constraint value at x; None if unknown, or if there is no constraint."""
        if self.loss is None and self.feedback is not None and x is self.feedback.x:
            return self.observed
        return tuple(_value(batch, x) for batch in (self.loss, self.constraint))

    def outlook(self, x: Array, before: Array | None) -> record.Outlook | None:
        """What is expected at the decision, and at the one before."""
        if self.feedback is None:
            return None
        gain, given = None, self.gradients
        if before is not None and given is not None:
            gain = inner(given.loss_gradient, before - x)
        (loss, limit), (loss_before, _) = self.values(x), self.values(before)
        played = self.values(self.feedback.x)[1]
        return record.Outlook(self.feedback.round, loss, loss_before, limit, played, gain)

    def limits(self, x: Array, prices: Floats | None) -> tuple[record.Limit, ...]:
        """The constraints with the largest values, at the decision or at what was played."""
        batch = self.constraint
        if batch is None or self.feedback is None:
            return ()
        now, then = _pieces(batch, x), _pieces(batch, self.feedback.x)
        room = FULL * float(batch.slopes(x)[0]) * self.K.diameter
        names = limit_names(self.K, batch) if len(now) > 1 else ("the limit",)
        capacity = flat(batch.c) if isinstance(batch, Capacity) else None
        name, load = (names.__getitem__, None) if capacity is None else (self.name, flat(x))
        columns = then, now, load, capacity, now >= -room, prices
        return tuple(
            record.Limit._make([name(i), *(None if of is None else of[i].item() for of in columns)])
            for i in np.argsort(-np.maximum(now, then), kind="stable")[: MOST // 2].tolist()
        )

    def changes(self, old: LastRound, x: Array, before: Array) -> dict[str, Any]:
        """How this round differs from an earlier one: the largest changes of costs of the entries
        that moved, and of capacities of those that are nearly full.
        """
        found: dict[str, Any] = {}
        if self.gradients is not None and old.gradients is not None:
            gradients = self.gradients.loss_gradient, old.gradients.loss_gradient
            found["costs"] = moves(*gradients, self.name, np.abs(once(x - before)))
        if isinstance(self.constraint, Capacity) and isinstance(old.constraint, Capacity):
            now, then = self.constraint.c[0, ...], old.constraint.c[0, ...]
            load, least = np.maximum(flat(x), flat(before)), np.minimum(flat(now), flat(then))
            is_full = (load >= NEARLY_FULL * least).astype(np.float64)
            found["capacities"] = moves(now, then, self.name, is_full)
        return found


def _pieces(batch: Batch, x: Array) -> Floats:
    found = batch.pieces(x)
    return flat(batch.values(x) if found is None else found)


def _value(batch: Batch | None, x: Array | None) -> float | None:
    """The value of a single round at x; None if it has none there."""
    try:
        value = math.nan if batch is None or x is None else float(batch.values(x)[0])
    except Exception:  # a function of the user, at a point where it may not be defined
        return None
    return value if math.isfinite(value) else None


def explained(
    history: History,
    latest: Any,
    number: int,
    names: Sequence[str] | None,
    reasons: Mapping[str, str],
    notes: tuple[str, ...],
) -> record.Explanation:
    """Explain the decision of the next round of the state `latest`, or of a pending one; `reasons`
    says why advisers were skipped.
    """
    learner, pending = history.learner, tuple(one.round for one in waiting(latest))
    if number not in (rounds := (*pending, next_round(latest))):
        raise InvalidInput(f"Expected a round that is pending or next, {rounds}, not {number}.")
    stood = history.decision_of(number, latest)
    if stood is None:  # it was decided before the history begins
        history, stood = History(learner, number, history.came), Stood(number, latest, None)
    state, x, last = stood.state, stood.x(learner), history.last(stood)
    name, info = namer(learner.K, names), history.info.get(number) or RoundInfo()
    newest = LastRound(learner, stood.feedback, name)
    whole = next((one for one in experts_of(learner, state) if one.rounds == state.t), None)
    if last.stood is None and number:
        notes = (f"{history.came}: what moved the decision is not known.", *notes)
    return record.Explanation(
        round=number,
        learner=type(learner).__name__,
        on=type(learner.K).__name__,
        **_moved(learner, x, last, newest, info),
        **_experts(learner, stood, last, newest),
        short_of=_short_of(learner, stood, x),
        skipped=tuple(adviser_in_words(learner, one) for one in info.skipped or ()),
        slept_because=tuple(reasons.get(one, "") for one in info.skipped or ()),
        limits=newest.limits(x, diagnosed(learner).limit_prices(state)),
        limit_price=diagnosed(learner).limit_price(state) if state.t else None,
        outlook=newest.outlook(x, last.x),
        observed=state.t,
        run_loss=None if whole is None else whole.run_loss,
        run_violation=None if whole is None else whole.run_violation,
        proved=bound_so_far(learner, state) if state.t and hasattr(learner, "bound_of") else None,
        overrides=getattr(latest, "overrides", None),
        pending=pending,
        notes=(*learner.notes(state), *notes),
    )


def _moved(
    learner: Learner[Any], x: Array, last: Last, newest: LastRound, info: RoundInfo
) -> dict[str, Any]:
    """The fields of the decision by name, and of its move."""
    size, name, paths = np.abs(once(x)), newest.name, routes(learner.K, x)
    shown, closed = largest(size, MOST, SMALL), entries_out(learner.K, info)
    out = named([] if closed is None else np.flatnonzero(closed).tolist(), x, last.x, name)
    found: dict[str, Any] = {
        "entries": named(shown, x, last.x, name),
        "others": int(np.count_nonzero(size)) - len(shown),
        "routes": tuple(paths[:MOST]),
        "other_routes": len(paths[MOST:]),
        "max_move": None if any(one.before for one in out) else getattr(learner, "max_move", None),
        "out": out,
        "gone": last.gone,
        "since": last.round,
    }
    if last.x is not None:
        found["moved"] = distance_moved(x, last.x) + 0.5 * sum(one.before or 0 for one in last.gone)
        found["moves"] = moves(x, last.x, name)
    if last.x is not None and last.stood is not None and last.stood.feedback is not None:
        found |= newest.changes(LastRound(learner, last.stood.feedback, name), x, last.x)
    return found


def _short_of(learner: Learner[Any], stood: Stood, x: Array) -> float:
    """How far the decision is from what it would be if nothing held it back."""
    own = decision(stood.state, stood.round)
    stands_at = getattr(learner, "stands_at", learner.act)
    free = stands_at(stood.state) if own is None else own.free
    far = distance_moved(x, free)
    return far if far > 1e-9 * learner.K.diameter else 0.0


def _mix(proposals: Sequence[Any]) -> Floats | None:
    """The weighted sum of the points that were proposed; None without one."""
    points = [one.weight * to_numpy(one.point) for one in proposals if one.point is not None]
    return sum(points[1:], points[0]) if points else None


def _experts(learner: Learner[Any], stood: Stood, last: Last, newest: LastRound) -> dict[str, Any]:
    """The fields of experts with their parts of the move, and of what else moved the decision."""
    if not isinstance(learner, MixesExperts):
        return {}
    now = then = learner.proposals(stood.state, stood.round)
    x = x_before = x_last = to_numpy(stood.x(learner))
    if last.stood is not None:
        then = learner.proposals(last.stood.state, last.stood.round)
        x_before, x_last = to_numpy(last.stood.x(learner)), to_numpy(last.x)
    rest, parts = x - x_before, list[record.Part]()

    def along(part: Floats) -> float:
        return float(np.sum(0.5 * np.sign(x - x_last) * part))

    mix = _mix(then)
    mix = 0.0 * x if mix is None else mix
    for one, old, total in zip(now, then, learner.experts_of(stood.state), strict=True):
        z_old = to_numpy(next(z for z in (old.point, one.point, mix) if z is not None))
        z = z_old if one.point is None else to_numpy(one.point)
        by_proposal, by_weight = one.weight * (z - z_old), (one.weight - old.weight) * (z_old - mix)
        rest = rest - (by_proposal + by_weight)
        weights = one.weight, None if last.stood is None else old.weight
        guard = total.guard if total.rounds else None
        more = [
            None if a is None or b is None else a - b
            for a, b in ((total.run_loss, total.loss), (total.run_violation, total.violation))
        ]
        measured = along(by_proposal), along(by_weight), *newest.values(one.point), guard, *more
        parts.append(record.Part._make((one.who, *weights, *measured, one.point is not None)))
    return {
        "experts": tuple(sorted(parts, key=lambda part: -part.weight)),
        "held_back": along(rest),
        "overridden": along(x_before - x_last),
    }
