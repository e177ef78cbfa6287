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

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tidewolf.core import arrays, oracle, round_info
from tidewolf.core.batch import Batch, Unlimited
from tidewolf.core.errors import InvalidInput
from tidewolf.core.feedback import Bandit, Feedback, FirstOrder, FullInformation, first_order
from tidewolf.core.types import Array, Floats
from tidewolf.explanation import record
from tidewolf.functions import combined, loads
from tidewolf.functions.linear import Capacity
from tidewolf.methods import available, capabilities, compiled_rounds, late
from tidewolf.methods.base import Learner, bound_so_far
from tidewolf.methods.events import Observe, decision, waiting
from tidewolf.past import FEW, Last, Past, PastDecision, RoundFeedback, Step
from tidewolf.sets.flows import FlowPolytope, MultiFlow


def rebuilt(learner: Learner[Any], steps: Sequence[Any], came: str) -> Past:
    """The past that these steps of a file make, each with its `before` and `events`."""
    past = Past(learner, late.next_round(steps[0].before) if steps else 0, came, FEW)
    for before, events, _ in steps:
        seen, event = None, events[-1]
        if isinstance(event, Observe):
            number, given, played = event.arrival[:3]
            if played is None:
                state = compiled_rounds.whole(before)
                own = decision(state, number)
                x = learner.act(state) if own is None else own.x
                played = played_point(learner, state, given, x)
            seen = RoundFeedback(number, given, played)
        past.add(Step(late.next_round(before), before, {}, events, seen))
    past.is_whole = True
    return past


def played_point(learner: Learner[Any], state: Any, given: Feedback, x: Array) -> Array:
    if learner.needs is not Bandit or not 1 < (k := given.rounds) <= learner.rounds_left(state):
        return x
    return capabilities.acts(learner, state, k)[k - 1, ...]


# Entries below this share of the largest are counted, not named.
SMALL = 0.01
# Entries and paths of a decision; half as many changes and constraints.
MOST = 20
# Changes below this share of the largest are not named.
LITTLE = 0.1
# The room of a constraint that binds, at most: as a share of how much it varies over the set.
NEARLY_FULL, FULL = 0.9, 1e-3

Entries = tuple[record.Entry, ...]
# The name of an entry, by its place in the flat point.
Namer = Callable[[int], str]


def namer(K: oracle.HasLMO, names: Sequence[str] | None = None) -> Namer:
    names = getattr(K, "names", None) if names is None else names
    if names is None:
        vector = len(K.shape) == 1
        return lambda i: f"entry {i if vector else tuple(map(int, np.unravel_index(i, K.shape)))}"
    if len(names) != math.prod(K.shape):
        raise InvalidInput(f"names must be one per entry, {math.prod(K.shape)}, not {len(names)}.")
    return lambda i: str(names[i])


def flat(x: Array) -> Floats:
    return arrays.to_numpy(x).astype(np.float64).reshape(-1)


def once(x: Array) -> Floats:
    own = arrays.to_numpy(x)
    return flat(np.triu(own) if own.ndim == 2 and np.array_equal(own, own.T) else own)


def named(places: Iterable[int], x: Array, before: Array | None, name: Namer) -> Entries:
    new, old = flat(x).tolist(), None if before is None else flat(before).tolist()
    return tuple(record.Entry(name(i), new[i], None if old is None else old[i]) for i in places)


def largest(size: Floats, most: int, share: float) -> list[int]:
    """The places of the largest numbers, those above a share of the largest one."""
    order = np.argsort(-size, kind="stable")[:most].tolist()
    return [i for i in order if size[i] > share * size.max()]


def moves(x: Array, before: Array, name: Namer, weights: Floats | float = 1.0) -> Entries:
    return named(largest(np.abs(once(x - before)) * weights, MOST // 2, LITTLE), x, before, name)


def routes(K: oracle.HasLMO, x: Array) -> list[record.Route]:
    found: list[tuple[str | None, Any]] = []
    if isinstance(K, FlowPolytope):
        found = [(None, path) for path in K.paths(x, tolerance=1e-4)]
    elif isinstance(K, MultiFlow):
        ends = [f"{K.nodes[i]} to {K.nodes[j]}" for i, j in zip(K.sources, K.targets, strict=True)]
        paths = zip(ends, K.paths(x, tolerance=1e-4), strict=True)
        found = [(end, path) for end, own in paths for path in own]
    return [record.Route(path.weight, tuple(map(str, path.nodes)), who) for who, path in found]


class LastRound:
    def __init__(self, learner: Learner[Any], feedback: RoundFeedback | None, name: Namer) -> None:
        self.K, self.feedback, self.name = learner.K, feedback, name
        self.gradients: FirstOrder | None = None
        self.loss, self.constraint = None, None  # type: Batch | None, Batch | None
        # loss and constraint value at what was played, if no functions were observed
        self.observed: tuple[float | None, ...] = (None, None)
        given = None if feedback is None else feedback.last
        if isinstance(given, FirstOrder):
            self.gradients, self.observed = given, (None, given.violation or None)
        elif isinstance(given, Bandit):
            self.observed = tuple(float(values[0]) for values in given)
        elif isinstance(given, FullInformation) and feedback is not None:
            self.loss, one = given
            if learner.needs is not Bandit:
                self.gradients = first_order(*given, feedback.x, one.values(feedback.x))
            while isinstance(one, combined.Chain) and len(one.parts) == 1:
                (one,) = one.parts
            self.constraint = None if isinstance(one, Unlimited) else one

    def values(self, x: Array | None) -> tuple[float | None, ...]:
        if self.loss is None and self.feedback is not None and x is self.feedback.x:
            return self.observed
        return tuple(_value(batch, x) for batch in (self.loss, self.constraint))

    def outlook(self, x: Array, before: Array | None) -> record.Outlook | None:
        if self.feedback is None:
            return None
        gain, given = None, self.gradients
        if before is not None and given is not None:
            gain = arrays.inner(given.loss_gradient, before - x)
        (loss, limit), (loss_before, _) = self.values(x), self.values(before)
        played = self.values(self.feedback.x)[1]
        return record.Outlook(self.feedback.round, loss, loss_before, limit, played, gain)

    def limits(self, x: Array, prices: Floats | None) -> tuple[record.Limit, ...]:
        batch = self.constraint
        if batch is None or self.feedback is None:
            return ()
        now, then = _pieces(batch, x), _pieces(batch, self.feedback.x)
        room = FULL * float(batch.slopes(x)[0]) * self.K.diameter
        names = combined.limit_names(self.K, batch) if len(now) > 1 else ("the limit",)
        capacity = flat(batch.c) if isinstance(batch, Capacity) else None
        name, load = (names.__getitem__, None) if capacity is None else (self.name, flat(x))
        columns = then, now, load, capacity, now >= -room, prices
        return tuple(
            record.Limit._make([name(i), *(None if of is None else of[i].item() for of in columns)])
            for i in np.argsort(-np.maximum(now, then), kind="stable")[: MOST // 2].tolist()
        )

    def fullest(self, x: Array) -> tuple[str, ...]:
        """The fullest link at x, if the loss is its utilisation."""
        loss = self.loss
        if not isinstance(loss, loads.MaxUtilization) or not loss.names or self.feedback is None:
            return ()
        used = _pieces(loss, x)
        link = f"{loss.names[int(used.argmax())]}, {100.0 * float(used.max()):.3g} % used"
        return (f"As in round {self.feedback.round}, the fullest link would be {link}.",)

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
    try:
        value = math.nan if batch is None or x is None else float(batch.values(x)[0])
    except Exception:  # a function of the user, at a point where it may not be defined
        return None
    return value if math.isfinite(value) else None


def explained(
    learner: Learner[Any],
    past: Past,
    now: Step,
    number: int,
    names: Sequence[str] | None,
    reasons: Mapping[str, str],
    notes: tuple[str, ...],
) -> record.Explanation:
    """Explain the decision of the next round of a session that is here now, or of a pending one;
    `reasons` says why advisers were skipped.
    """
    latest = compiled_rounds.whole(now.before)
    pending = tuple(one.round for one in waiting(latest))
    if number not in (rounds := (*pending, late.next_round(latest))):
        raise InvalidInput(f"Expected a round that is pending or next, {rounds}, not {number}.")
    decided, last = past.decision_of(number, now)
    state, x, info = decided.state, decided.x(learner), decided.info or round_info.RoundInfo()
    newest = LastRound(learner, decided.feedback, namer(learner.K, names))
    run = next(
        (one for one in capabilities.experts_of(learner, state) if one.rounds == state.t), None
    )
    if last.decided is None and number:
        notes = (f"{past.came}: what moved the decision is not known.", *notes)
    return record.Explanation(
        round=number,
        learner=type(learner).__name__,
        on=type(learner.K).__name__,
        **_moved(learner, x, last, newest, info),
        **_experts(learner, decided, last, newest),
        short_of=_short_of(learner, decided, x),
        skipped=tuple(capabilities.adviser_in_words(learner, one) for one in info.skipped or ()),
        slept_because=tuple(reasons.get(one, "") for one in info.skipped or ()),
        limits=newest.limits(x, capabilities.diagnosed(learner).limit_prices(state)),
        limit_price=capabilities.diagnosed(learner).limit_price(state) if state.t else None,
        outlook=newest.outlook(x, last.x),
        observed=state.t,
        run_loss=None if run is None else run.run_loss,
        run_violation=None if run is None else run.run_violation,
        proved=bound_so_far(learner, state) if state.t and hasattr(learner, "bound_of") else None,
        overrides=getattr(latest, "overrides", None),
        pending=pending,
        notes=(*newest.fullest(x), *learner.notes(state), *notes),
    )


def _moved(
    learner: Learner[Any], x: Array, last: Last, newest: LastRound, info: round_info.RoundInfo
) -> dict[str, Any]:
    size, name, paths = np.abs(once(x)), newest.name, routes(learner.K, x)
    shown, closed = largest(size, MOST, SMALL), available.entries_out(learner.K, info)
    out = named([] if closed is None else np.flatnonzero(closed).tolist(), x, last.x, name)
    found: dict[str, Any] = {
        "entries": named(shown, x, last.x, name),
        "others": int(np.count_nonzero(size)) - len(shown),
        "routes": tuple(paths[:MOST]),
        "other_routes": len(paths[MOST:]),
        "max_move": None if any(one.before for one in out) else getattr(learner, "max_move", None),
        "out": out,
        "gone": tuple(record.Entry(lost, 0.0, value) for lost, value in last.gone.items()),
        "since": last.round,
    }
    if last.x is not None:
        found["moved"] = available.distance_moved(x, last.x) + 0.5 * sum(last.gone.values())
        found["moves"] = moves(x, last.x, name)
    if last.x is not None and last.decided is not None and last.decided.feedback:
        found |= newest.changes(LastRound(learner, last.decided.feedback, name), x, last.x)
    return found


def _short_of(learner: Learner[Any], decided: PastDecision, x: Array) -> float:
    own = decision(decided.state, decided.round)
    free = getattr(learner, "stands_at", learner.act)(decided.state) if own is None else own.free
    far = available.distance_moved(x, free)
    return far if far > 1e-9 * learner.K.diameter else 0.0


def _experts(
    learner: Learner[Any], decided: PastDecision, last: Last, newest: LastRound
) -> dict[str, Any]:
    if not isinstance(learner, capabilities.MixesExperts):
        return {}
    now = then = learner.proposals(decided.state, decided.round)
    x = x_before = x_last = arrays.to_numpy(decided.x(learner))
    if last.decided is not None:
        then = learner.proposals(last.decided.state, last.decided.round)
        x_before, x_last = arrays.to_numpy(last.decided.x(learner)), arrays.to_numpy(last.x)
    rest, parts = x - x_before, list[record.Part]()

    def along(part: Floats) -> float:
        return float(np.sum(0.5 * np.sign(x - x_last) * part))

    points = (one.weight * arrays.to_numpy(one.point) for one in then if one.point is not None)
    mix = sum(points, 0.0 * x)
    for one, old, total in zip(now, then, learner.experts_of(decided.state), strict=True):
        z_old = arrays.to_numpy(next(z for z in (old.point, one.point, mix) if z is not None))
        z = z_old if one.point is None else arrays.to_numpy(one.point)
        by_proposal, by_weight = one.weight * (z - z_old), (one.weight - old.weight) * (z_old - mix)
        rest = rest - (by_proposal + by_weight)
        weights = one.weight, None if last.decided is None else old.weight
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
