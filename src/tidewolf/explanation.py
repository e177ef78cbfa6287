"""Why a decision is what it is: `session.explain()`.

`Explanation` is the record: its fields, the page that it prints, and the one line for logs.
`explained` makes it of a decision and of the steps that a session keeps (`Past`).

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
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core import arrays, oracle, round_info
from tidewolf.core.batch import Batch, Unlimited
from tidewolf.core.errors import InvalidInput
from tidewolf.core.feedback import Bandit, Feedback, FirstOrder, FullInformation, first_order
from tidewolf.core.types import Array, Floats
from tidewolf.functions import combined, linear, loads
from tidewolf.memory import FEW, Last, Past, PastDecision, RoundFeedback, Step
from tidewolf.methods import available, base, capabilities, compiled_rounds, events, late
from tidewolf.sets.flows import FlowPolytope, MultiFlow

# items per line, and lines per label
_MOST = 4
# Parts of a move, and changes of a cost or capacity, below these shares are left out.
_SHARE, _CHANGE = 0.1, 0.05
_TINY = 1e-9


class Entry(NamedTuple):
    """An entry of the decision, by its name.

    Attributes
    ----------
    before : float or None
        In what was played before; None if that is not known.
    """

    name: str
    value: float
    before: float | None

    @property
    def change(self) -> float:
        return self.value - (self.before or 0.0)


class Route(NamedTuple):
    """A path of a flow.

    Attributes
    ----------
    share : float
        How much of the flow takes it.
    """

    share: float
    nodes: tuple[str, ...]
    commodity: str | None = None


class Part(NamedTuple):
    """What one expert contributes to the decision and to its move. `by_proposal` and `by_weight` of
    all experts, `held_back` and `overridden` add up to the move.

    Attributes
    ----------
    weight : float
        Its share of the decision.
    by_proposal : float
        How far it moved the decision because it proposes another point.
    by_weight : float
        How far it moved the decision because its weight changed.
    loss : float or None
        Expected at its proposal.
    limit : float or None
        The largest constraint value at its proposal; above 0 it is violated.
    guard : float or None
        The most that the run has lost to it so far, loss and violation weighted together.
    more_loss : float or None
        Loss of the run minus its own so far; None if the functions were not observed.
    """

    name: str
    weight: float
    weight_before: float | None
    by_proposal: float
    by_weight: float
    loss: float | None
    limit: float | None
    guard: float | None
    more_loss: float | None
    more_violation: float | None
    present: bool


class Limit(NamedTuple):
    """A constraint of the last observed round.

    Attributes
    ----------
    played : float
        Its value at what was played; above 0 it was violated.
    load : float or None
        The entry of the decision, if it has a capacity.
    binds : bool
        Whether it is violated at the decision, or nearly no room is left.
    price : float or None
        Its multiplier, in units of the loss; None if it has none of its own.
    """

    name: str
    played: float
    now: float
    load: float | None
    capacity: float | None
    binds: bool
    price: float | None = None


class Outlook(NamedTuple):
    """What is expected: what the last observed round would cost again.

    Attributes
    ----------
    loss : float or None
        At the decision.
    loss_before : float or None
        At what was played in the round before.
    limit : float or None
        The largest constraint value at the decision; above 0 it is violated.
    gain : float or None
        How much the move lowers the loss, by its gradient at what was played.
    """

    round: int
    loss: float | None
    loss_before: float | None
    limit: float | None
    limit_played: float | None
    gain: float | None


@final
@dataclass(frozen=True)
class Explanation:
    """Why a decision is what it is; `print` it, or convert it to plain data with `to_dict()`.

    Rounds count from 0. Moves are half the sum of the changes of all entries: for flows and shares,
    how much has to be rerouted.

    Parameters
    ----------
    round : int
        The round of the decision.
    learner : str
        The learner that decided.
    on : str
        The kind of the set.
    entries : tuple of Entry
        The largest entries, and what they were before.
    others : int
        How many entries are left out that are not 0.
    routes : tuple of Route
        The paths of a flow, heaviest first.
    other_routes : int
        How many paths are left out.
    since : int or None
        The round of the decision before; None if that is not known.
    moved : float or None
        How far the decision moved from what was played in that round.
    moves : tuple of Entry
        The entries that moved most.
    experts : tuple of Part
        Those whose proposals are mixed, largest weights first.
    held_back : float
        How far something else than experts moved it, such as `max_move`.
    overridden : float
        The part of the move that is due to another point having been played than was decided.
    short_of : float
        How far the decision is from what it would be if nothing held it back.
    max_move : float or None
        The most that it may move; None: no cap, for example because an entry is out.
    out : tuple of Entry
        Entries that are out in the round.
    gone : tuple of Entry
        Entries that were used before, and that the set no longer has.
    skipped : tuple of str
        Advisers that missed the deadline of the round, or failed.
    slept_because : tuple of str
        Why each of them was skipped; empty if that is not known.
    costs : tuple of Entry
        The entries whose cost (gradient of the loss) changed most since the observation before.
    capacities : tuple of Entry
        The entries whose capacity changed most.
    limits : tuple of Limit
        Constraints that are violated, or have least room.
    limit_price : float or None
        The weight of a unit of violation, in units of the loss.
    outlook : Outlook or None
        What is expected of the decision.
    observed : int
        Rounds that were observed so far.
    run_loss : float or None
        Total loss; None if the functions were not observed.
    run_violation : float or None
        Total violation, likewise.
    proved : Bound or None
        The measured bound of these rounds.
    overrides : Overrides or None
        Rounds in which another point was played.
    pending : tuple of int
        Rounds that were decided and not observed yet.
    notes : tuple of str
        Further sentences, such as what is not known.

    Examples
    --------
    >>> session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(3)))
    >>> session.observe(costs=[1.0, 0.0, 0.5], capacities=[1.0, 0.5, 1.0])
    >>> why = session.explain()
    >>> why.round, round(why.moved, 2), why.moves[0].name
    (1, 0.5, 'entry 1')
    """

    round: int
    learner: str
    on: str
    entries: tuple[Entry, ...]
    others: int
    routes: tuple[Route, ...] = ()
    other_routes: int = 0
    since: int | None = None
    moved: float | None = None
    moves: tuple[Entry, ...] = ()
    experts: tuple[Part, ...] = ()
    held_back: float = 0.0
    overridden: float = 0.0
    short_of: float = 0.0
    max_move: float | None = None
    out: tuple[Entry, ...] = ()
    gone: tuple[Entry, ...] = ()
    skipped: tuple[str, ...] = ()
    slept_because: tuple[str, ...] = ()
    costs: tuple[Entry, ...] = ()
    capacities: tuple[Entry, ...] = ()
    limits: tuple[Limit, ...] = ()
    limit_price: float | None = None
    outlook: Outlook | None = None
    observed: int = 0
    run_loss: float | None = None
    run_violation: float | None = None
    proved: base.Bound | None = None
    overrides: late.Overrides | None = None
    pending: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        first = f"Round {self.round} (counted from 0): {self.learner} on {self.on}"
        lines, last = [f"{first}, observed rounds: {self.observed:,}."], ""
        for label, item in (*_decision(self), *_experts(self), *_limits(self), *_so_far(self)):
            start = f"{'' if label == last else label:<10}"
            lines += textwrap.wrap(item, 100, initial_indent=start, subsequent_indent=" " * 12)
            last = label
        return "\n".join(lines)

    def in_short(self) -> str:
        """What moved and why, in one line without a full stop, for a log or a table.

        Returns
        -------
        str
            What moved from where to where, the strongest reason, and the expert with the largest
            weight.

        Examples
        --------
        >>> session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(2)))
        >>> session.explain().in_short()
        'the first decision'
        >>> session.observe(costs=[1.0, 0.0], capacities=[0.4, 1.0])
        >>> session.explain(names=["coal", "sun"]).in_short().partition(" because ")[2]
        'coal was over by 0.1 in the last round'
        """
        parts = [_moved(self)]
        if self.moved and self.short_of > _TINY and self.max_move is not None:
            parts.append(f"max_move lets it go no farther than {number(self.max_move)}")
        parts += [f"{name} was skipped" for name in self.skipped]
        if len(self.experts) > 1 and self.observed:
            parts.append(f"{self.experts[0].name} has weight {self.experts[0].weight:.2g}")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Convert to numbers, text, lists and dicts, as JSON has them.

        Returns
        -------
        dict
            The fields by name; a number that is not finite is None.
        """
        return dict(_plain(vars(self)))


def _plain(value: Any) -> Any:
    named: dict[str, Any] = getattr(value, "_asdict", dict)()
    if named or isinstance(value, dict):
        return {name: _plain(part) for name, part in (named or value).items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def number(x: float | None) -> str:
    """Three digits, or all digits of a large integer part: 12,346, 1.23, 0.0123, 1.2e-06."""
    if x is None:
        return "unknown"
    return f"{x:,.0f}" if 999.5 <= abs(x) < 1e9 else f"{round(x, 12) + 0.0:.3g}"


def _some(items: Sequence[object], more: int = 0) -> str:
    left = max(0, len(items) - _MOST) + more
    return ", ".join(map(str, items[:_MOST])) + (f" and {left:,} more" if left else "")


def _changes(entries: Sequence[Entry]) -> str:
    return _some([f"{one.name} {number(one.before)} -> {number(one.value)}" for one in entries])


def _facts(facts: dict[str, float | None]) -> str:
    return ", ".join(f"{name} {number(x)}" for name, x in facts.items() if x is not None)


def _decision(why: Explanation) -> Iterator[tuple[str, str]]:
    values = _some([f"{one.name}: {number(one.value)}" for one in why.entries], why.others)
    paths = [f"{number(one.share)} along {' > '.join(one.nodes)}" for one in why.routes]
    yield "Decision", _some(paths, why.other_routes) if paths else values or "every entry is 0"
    if why.moved is not None:
        moves = f": {_changes(why.moves)}" if why.moved else ""
        cap = "" if why.max_move is None else f", with max_move {number(why.max_move)}"
        held = f"; {number(why.short_of)} short of where it would be{cap}" if why.short_of else ""
        yield "Moved", f"{number(why.moved)} since round {why.since}{moves}{held}"
    for label, entries in (("Out", why.out), ("Gone", why.gone)):
        if entries:
            yield label, _some([f"{one.name}, which had {number(one.before)}" for one in entries])
    for what, entries in (("costs", why.costs), ("capacities", why.capacities)):
        if entries and why.moved:
            yield "Observed", f"{what} of {_changes(entries)}"


def _experts(why: Explanation) -> Iterator[tuple[str, str]]:
    if why.moved:
        yield from (("By", reason) for reason in [*_reasons(why)][:_MOST])
    for part in why.experts[: _MOST - 1] if why.observed else ():
        facts = {"weight": part.weight, "before": part.weight_before, "loss": part.loss}
        facts |= {"limit": part.limit, "loss of the run minus its own": part.more_loss}
        facts["violation of the run minus its own"] = part.more_violation
        facts["the run lost to it at most"] = part.guard if part.more_loss is None else None
        yield "Experts", f"{part.name}: {_facts(facts)}"
    for name, because in zip(why.skipped, why.slept_because, strict=True):
        yield "Skipped", f"{name}: {because or 'no answer in time'}"


def _parts(why: Explanation) -> Iterator[str]:
    """The parts of the move, largest first; those of experts of one kind, such as all headrooms of
    a re-solve, together.
    """
    kinds: dict[str, Floats] = defaultdict(lambda: np.zeros(4))
    for one in why.experts:
        numbers = (one.weight, one.weight_before or 0.0, one.by_proposal, one.by_weight)
        kinds[one.name.partition(", ")[0]] += numbers
    found = [(why.held_back, "what holds it back, such as max_move")]
    for name, (now, then, by_proposal, by_weight) in kinds.items():
        found.append((by_proposal, f"{name} proposes another point"))
        found.append((by_weight, f"the weight of {name} went from {number(then)} to {number(now)}"))
    for size, what in sorted(found, key=lambda one: -one[0]):
        if size > max(_TINY, _SHARE * (why.moved or 0.0)):
            yield f"{what} ({size:+.3g})"


def _limits(why: Explanation) -> Iterator[tuple[str, str]]:
    for one in [one for one in why.limits if one.binds or one.played > _TINY] or why.limits[:1]:
        load = "" if one.capacity is None else f"{number(one.load)} of {number(one.capacity)}, "
        now = f"BROKEN by {number(one.now)}" if one.now > 0.0 else f"room {number(-one.now)}"
        then = f", was over by {number(one.played)}" if one.played > 0.0 else ""
        weight = f", weighs {number(one.price)}" if one.price else ""
        yield "Limits", f"{one.name}: {load}{now}{then}{weight}"
    if why.limit_price and not any(one.price for one in why.limits):
        yield "Limits", f"a unit of violation weighs {number(why.limit_price)}"
    if (seen := why.outlook) is not None:
        where, limit = ("", seen.limit) if why.limits else (" then", seen.limit_played)
        kept = "broken by " + number(limit) if (limit or 0.0) > 0.0 else "kept"
        values = {"loss": seen.loss, "without the move": seen.loss_before}
        facts = _facts(values | {"lowered by": seen.gain if seen.loss is None else None})
        limits = "" if limit is None else f", limits {kept}{where}"
        yield "Expected", f"as in round {seen.round}: {facts or 'loss unknown'}{limits}"


def _so_far(why: Explanation) -> Iterator[tuple[str, str]]:
    if why.run_loss is not None and why.observed:
        yield "So far", _facts({"loss": why.run_loss, "violation": why.run_violation})
    if (proved := why.proved) is not None:
        regret = _facts({"proved: regret at most": proved.regret})
        yield "So far", regret or f"no bound: {proved.reason}"
    if (other := why.overrides) is not None and other.rounds:
        cost = f"{other.saved_loss:+.3g} loss and {other.saved_violation:+.3g} violation"
        cost = cost if other.valued else f"at most {number(other.price)} more in the bound"
        yield "So far", f"rounds with another point than decided: {other.rounds:,}, {cost}"
    if why.pending:
        yield "Pending", f"rounds {_some(why.pending)}"
    yield from (("Note", note) for note in why.notes)


def _moved(why: Explanation) -> str:
    if why.moved is None:
        return "what moved it is not known" if why.observed else "the first decision"
    if why.moved < _TINY:
        return ", though ".join(["nothing moved", *_over(why.limits)])
    ends, text = sorted(why.moves, key=lambda one: one.change), f"moved {number(why.moved)}, most"
    for side, one, sign in (("from", ends[0], -1.0), ("to", ends[-1], 1.0)) if ends else ():
        if sign * one.change > 0.0:
            text += f" {side} {one.name} ({number(one.before)} -> {number(one.value)})"
    return " because ".join([text, *islice(_reasons(why), 1)])


def _reasons(why: Explanation) -> Iterator[str]:
    for entries, state in ((why.out, "out"), (why.gone, "no longer there")):
        used = [one.name for one in entries if (one.before or 0.0) > _TINY]
        if used:
            yield f"{_some(used)} {'is' if len(used) == 1 else 'are'} {state}"
    if why.overridden:
        yield "another point was played than was decided"
    yield from _over([one for one in why.limits if one.now < one.played])
    moved = {one.name: one.change for one in why.moves}
    for what, changes, sign in (("cost", why.costs, -1.0), ("capacity", why.capacities, 1.0)):
        for one in sorted(changes, key=lambda one: -abs(one.change)):
            large = abs(one.change) > _CHANGE * max(abs(one.value), abs(one.before or 0.0))
            if large and moved.get(one.name, 0.0) * sign * one.change > 0.0:
                yield f"the {what} of {_changes([one])}"
    yield from _parts(why)
    if not why.experts:
        yield f"{why.learner} made its step after the last round"


def _over(limits: Sequence[Limit]) -> list[str]:
    broken = sorted((one for one in limits if one.played > _TINY), key=lambda one: -one.played)
    return [f"{one.name} was over by {number(one.played)} in the last round" for one in broken[:1]]


# --- making one -----------------------------------------------------------------------------------


def rebuilt(learner: base.Learner[Any], steps: Sequence[Step], came: str) -> Past:
    """The past that these steps of a file make, each of one event."""
    past = Past(learner, steps[0].number if steps else 0, came, FEW)
    for step in steps:
        (event,), seen = step.events, None
        if isinstance(event, events.Observe):
            number, given, played = event.arrival[:3]
            if played is None:
                state = compiled_rounds.whole(step.place.state)
                played = played_point(learner, state, given, PastDecision(number, state).x(learner))
            seen = RoundFeedback(number, given, played)
        past.add(step._replace(observed=seen))
    past.is_whole = True
    return past


def played_point(learner: base.Learner[Any], state: Any, given: Feedback, x: Array) -> Array:
    k = given.rounds
    explores = learner.needs is Bandit and 1 < k <= learner.rounds_left(state)
    return capabilities.acts(learner, state, k)[k - 1, ...] if explores else x


# Entries below this share of the largest are counted, not named.
SMALL = 0.01
# Entries and paths of a decision; half as many changes and constraints.
MOST = 20
# Changes below this share of the largest are not named.
LITTLE = 0.1
# The room of a constraint that binds, at most: as a share of how much it varies over the set.
NEARLY_FULL, FULL = 0.9, 1e-3

Entries = tuple[Entry, ...]
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
    return tuple(Entry(name(i), new[i], None if old is None else old[i]) for i in places)


def largest(size: Floats, most: int, share: float) -> list[int]:
    order = np.argsort(-size, kind="stable")[:most].tolist()
    return [i for i in order if size[i] > share * size.max()]


def moves(x: Array, before: Array, name: Namer, weights: Floats | float = 1.0) -> Entries:
    return named(largest(np.abs(once(x - before)) * weights, MOST // 2, LITTLE), x, before, name)


def routes(K: oracle.HasLMO, x: Array) -> list[Route]:
    found: list[tuple[str | None, Any]] = []
    if isinstance(K, FlowPolytope):
        found = [(None, path) for path in K.paths(x, tolerance=1e-4)]
    elif isinstance(K, MultiFlow):
        ends = [f"{K.nodes[i]} to {K.nodes[j]}" for i, j in zip(K.sources, K.targets, strict=True)]
        paths = zip(ends, K.paths(x, tolerance=1e-4), strict=True)
        found = [(end, path) for end, own in paths for path in own]
    return [Route(path.weight, tuple(map(str, path.nodes)), who) for who, path in found]


class LastRound:
    def __init__(
        self, learner: base.Learner[Any], feedback: RoundFeedback | None, name: Namer
    ) -> None:
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
        return _value(self.loss, x), _value(self.constraint, x)

    def outlook(self, x: Array, before: Array | None) -> Outlook | None:
        if self.feedback is None:
            return None
        given = None if before is None else self.gradients
        gain = None if given is None else arrays.inner(given.loss_gradient, before - x)
        (loss, limit), (loss_before, _) = self.values(x), self.values(before)
        return Outlook(
            self.feedback.round, loss, loss_before, limit, self.values(self.feedback.x)[1], gain
        )

    def limits(self, x: Array, prices: Floats | None) -> tuple[Limit, ...]:
        batch = self.constraint
        if batch is None or self.feedback is None:
            return ()
        now, then = _pieces(batch, x), _pieces(batch, self.feedback.x)
        room = FULL * float(batch.slopes(x)[0]) * self.K.diameter
        names = combined.limit_names(self.K, batch) if len(now) > 1 else ("the limit",)
        capacity = flat(batch.c) if isinstance(batch, linear.Capacity) else None
        name, load = (names.__getitem__, None) if capacity is None else (self.name, flat(x))
        columns = then, now, load, capacity, now >= -room, prices
        return tuple(
            Limit._make([name(i), *(None if of is None else of[i].item() for of in columns)])
            for i in np.argsort(-np.maximum(now, then), kind="stable")[: MOST // 2].tolist()
        )

    def fullest(self, x: Array) -> tuple[str, ...]:
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
        if isinstance(self.constraint, linear.Capacity) and isinstance(
            old.constraint, linear.Capacity
        ):
            now, then = self.constraint.c[0, ...], old.constraint.c[0, ...]
            load, least = np.maximum(flat(x), flat(before)), np.minimum(flat(now), flat(then))
            found["capacities"] = moves(
                now, then, self.name, (load >= NEARLY_FULL * least).astype(np.float64)
            )
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
    learner: base.Learner[Any],
    past: Past,
    now: Step,
    number: int,
    names: Sequence[str] | None,
    reasons: Mapping[str, str],
    notes: tuple[str, ...],
) -> Explanation:
    """Explain the decision of the next round of a session that is here now, or of a pending one;
    `reasons` says why advisers were skipped.
    """
    latest = compiled_rounds.whole(now.place.state)
    pending = tuple(one.round for one in events.waiting(latest))
    if number not in (rounds := (*pending, late.next_round(latest))):
        raise InvalidInput(f"Expected a round that is pending or next, {rounds}, not {number}.")
    decided, last = past.decision_of(number, now)
    state, x, info = decided.state, decided.x(learner), decided.info or round_info.RoundInfo()
    newest = LastRound(learner, decided.feedback, namer(learner.K, names))
    run = next(
        (one for one in capabilities.experts_of(learner, state) if one.rounds == state.t), None
    )
    own = events.decision(state, number)
    far = available.distance_moved(
        x, getattr(learner, "stands_at", learner.act)(state) if own is None else own.free
    )
    if last.decided is None and number:
        notes = (f"{past.came}: what moved the decision is not known.", *notes)
    return Explanation(
        round=number,
        learner=type(learner).__name__,
        on=type(learner.K).__name__,
        **_what_moved(learner, x, last, newest, info),
        **_parts_of(learner, decided, last, newest),
        short_of=far if far > 1e-9 * learner.K.diameter else 0.0,
        skipped=tuple(capabilities.adviser_in_words(learner, one) for one in info.skipped or ()),
        slept_because=tuple(reasons.get(one, "") for one in info.skipped or ()),
        limits=newest.limits(x, capabilities.diagnosed(learner).limit_prices(state)),
        limit_price=capabilities.diagnosed(learner).limit_price(state) if state.t else None,
        outlook=newest.outlook(x, last.x),
        observed=state.t,
        run_loss=None if run is None else run.run_loss,
        run_violation=None if run is None else run.run_violation,
        proved=base.bound_so_far(learner, state)
        if state.t and hasattr(learner, "bound_of")
        else None,
        overrides=getattr(latest, "overrides", None),
        pending=pending,
        notes=(*newest.fullest(x), *learner.notes(state), *notes),
    )


def _what_moved(
    learner: base.Learner[Any], x: Array, last: Last, newest: LastRound, info: round_info.RoundInfo
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
        "gone": tuple(Entry(lost, 0.0, value) for lost, value in last.gone.items()),
        "since": last.round,
    }
    if last.x is not None:
        found["moved"] = available.distance_moved(x, last.x) + 0.5 * sum(last.gone.values())
        found["moves"] = moves(x, last.x, name)
    if last.x is not None and last.decided is not None and last.decided.feedback:
        found |= newest.changes(LastRound(learner, last.decided.feedback, name), x, last.x)
    return found


def _parts_of(
    learner: base.Learner[Any], decided: PastDecision, last: Last, newest: LastRound
) -> dict[str, Any]:
    if not isinstance(learner, capabilities.MixesExperts):
        return {}
    now = then = learner.proposals(decided.state, decided.round)
    x = x_before = x_last = arrays.to_numpy(decided.x(learner))
    if last.decided is not None:
        then = learner.proposals(last.decided.state, last.decided.round)
        x_before, x_last = arrays.to_numpy(last.decided.x(learner)), arrays.to_numpy(last.x)
    rest, parts = x - x_before, list[Part]()

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
        parts.append(Part._make((one.who, *weights, *measured, one.point is not None)))
    return {
        "experts": tuple(sorted(parts, key=lambda part: -part.weight)),
        "held_back": along(rest),
        "overridden": along(x_before - x_last),
    }
