"""An explanation as a record, and the text that it prints."""

from __future__ import annotations

import math
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core.types import Floats
from tidewolf.methods import base, late

_MOST = 4
"""items per line, and lines per label"""
_SHARE, _CHANGE = 0.1, 0.05
"""Parts of a move, and changes of a cost or capacity, below these shares are left out."""
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
