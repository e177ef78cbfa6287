"""An explanation as text: a page of lines, and one line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidewolf.core.types import Floats

if TYPE_CHECKING:
    from tidewolf.explanation.record import Entry, Explanation, Limit

_MOST = 4
"""items per line, and lines per label"""
_SHARE, _CHANGE = 0.1, 0.05
"""Parts of a move, and changes of a cost or capacity, below these shares are left out."""
_TINY = 1e-9


def number(x: float | None) -> str:
    """Three digits, or all digits of a large integer part: 12,346, 1.23, 0.0123, 1.2e-06."""
    if x is None:
        return "unknown"
    return f"{x:,.0f}" if 999.5 <= abs(x) < 1e9 else f"{round(x, 12) + 0.0:.3g}"


def page(why: Explanation) -> str:
    """The explanation as lines; the first line of each label starts with it."""
    rounds = "round" if why.observed == 1 else "rounds"
    first = f"Round {why.round} (counted from 0): {why.learner} on {why.on}, "
    lines, last = [f"{first}{why.observed:,} {rounds} observed."], ""
    for label, item in (*_decision(why), *_experts(why), *_limits(why), *_so_far(why)):
        start = f"{'' if label == last else label:<10}"
        lines += textwrap.wrap(item, 100, initial_indent=start, subsequent_indent=" " * 12)
        last = label
    return "\n".join(lines)


def _some(items: Sequence[object], more: int = 0) -> str:
    left = max(0, len(items) - _MOST) + more
    return ", ".join(map(str, items[:_MOST])) + (f" and {left:,} more" if left else "")


def _changes(entries: Sequence[Entry]) -> str:
    return _some([f"{one.name} {number(one.before)} -> {number(one.value)}" for one in entries])


def _facts(facts: dict[str, float | None]) -> str:
    return ", ".join(f"{name} {number(x)}" for name, x in facts.items() if x is not None)


def _decision(why: Explanation) -> Iterator[tuple[str, str]]:
    """What was decided, and what is different from the decision before."""
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
    """Which experts, or which step, moved the decision, and the experts with largest weights."""
    seen, moved = why.outlook, why.moved if why.since is not None else None
    if moved and why.experts:
        shown = [one for one in _parts(why) if abs(one[0]) >= _SHARE * moved]
        yield from (("By", f"{size:+.3g} {what}") for size, what in shown[:_MOST])
    elif moved:
        step = "own step; it observes no gradients"
        if seen is not None and seen.gain is not None:
            step = f"step after round {seen.round}: the loss changes by {-seen.gain:+.3g}"
            if seen.limit_gain is not None:
                step += f", the violation by {-seen.limit_gain:+.3g}"
        yield "By", f"{why.learner}'s {step}"
    for part in why.experts[: _MOST - 1] if why.observed else ():
        facts = {
            "weight": part.weight,
            "before": part.weight_before,
            "loss": part.loss,
            "limit": part.limit,
            "loss of the run minus its own": part.more_loss,
            "violation of the run minus its own": part.more_violation,
            "the run lost to it at most": part.guard if part.more_loss is None else None,
        }
        yield "Experts", f"{part.name}: {_facts(facts)}"
    for name, because in zip(why.skipped, why.slept_because, strict=True):
        yield "Skipped", f"{name}: {because or 'no answer in time'}"


def _kinds(why: Explanation) -> dict[str, Floats]:
    """The weight now and before, and the parts by proposal and by weight, of experts of one kind,
    such as all headrooms of a re-solve.
    """
    found: dict[str, Floats] = {}
    for one in why.experts:
        numbers = (one.weight, one.weight_before or 0.0, one.by_proposal, one.by_weight)
        kind = one.name.partition(", ")[0]
        found[kind] = found.get(kind, np.zeros(4)) + numbers
    return found


def _parts(why: Explanation) -> list[tuple[float, str]]:
    """The parts of the move, largest first."""
    found = [
        (why.held_back, "what holds it back, such as max_move"),
        (why.overridden, "another point was played than was decided"),
    ]
    for name, (now, then, by_proposal, by_weight) in _kinds(why).items():
        found.append((by_proposal, f"{name} proposes another point"))
        found.append((by_weight, f"the weight of {name} went from {number(then)} to {number(now)}"))
    return sorted(found, key=lambda one: -abs(one[0]))


def _limits(why: Explanation) -> Iterator[tuple[str, str]]:
    """The limits that bind or were broken, or the nearest one, and what is expected of the move."""
    shown = [one for one in why.limits if one.binds or one.played > _TINY] or why.limits[:1]
    for one in shown[:_MOST]:
        load = "" if one.capacity is None else f"{number(one.load)} of {number(one.capacity)}, "
        now = f"BROKEN by {number(one.now)}" if one.now > 0.0 else f"room {number(-one.now)}"
        then = f", was over by {number(one.played)}" if one.played > 0.0 else ""
        weight = f", weighs {number(one.price)}" if one.price else ""
        yield "Limits", f"{one.name}: {load}{now}{then}{weight}"
    if shown[_MOST:]:
        yield "Limits", f"also {_some([one.name for one in shown[_MOST:]])}"
    if why.limit_price and not any(one.price for one in why.limits):
        yield "Limits", f"a unit of violation weighs {number(why.limit_price)}"
    if (seen := why.outlook) is not None:
        where, limit = ("", seen.limit) if why.limits else (" then", seen.limit_played)
        kept = "broken by " + number(limit) if (limit or 0.0) > 0.0 else "kept"
        facts = _facts({"loss": seen.loss, "without the move": seen.loss_before}) or "loss unknown"
        limits = "" if limit is None else f", limits {kept}{where}"
        yield "Expected", f"as in round {seen.round}: {facts}{limits}"


def _so_far(why: Explanation) -> Iterator[tuple[str, str]]:
    """The totals, what is proved, and what other points than the decisions have cost."""
    if why.run_loss is not None and why.observed:
        yield "So far", _facts({"loss": why.run_loss, "violation": why.run_violation})
    if why.proved is not None and why.proved.regret is not None:
        yield "So far", f"proved: regret at most {number(why.proved.regret)}"
    elif why.proved is not None and why.proved.reason:
        yield "So far", f"no bound: {why.proved.reason}"
    if (other := why.overrides) is not None:
        cost = f"at most {number(other.price)} more in the bound"
        if other.valued:
            cost = f"{other.more_loss:+.3g} loss and {other.more_violation:+.3g} violation"
        yield "So far", f"rounds with another point than decided: {other.rounds:,}, {cost}"
    if why.pending:
        yield "Pending", f"rounds {_some(why.pending)}"
    yield from (("Note", note) for note in why.notes)


def in_short(why: Explanation) -> str:
    """What moved, why, and which expert has the largest weight, without a full stop."""
    weights = {name: float(numbers[0]) for name, numbers in _kinds(why).items()}
    parts = [_moved(why)]
    if why.moved and why.short_of > _TINY and why.max_move is not None:
        parts.append(f"max_move lets it go no farther than {number(why.max_move)}")
    parts += [f"{name} was skipped" for name in why.skipped]
    if len(weights) > 1 and why.observed:
        name = max(weights, key=lambda one: weights[one])
        parts.append(f"{name} has weight {weights[name]:.2g}")
    return "; ".join(parts)


def _moved(why: Explanation) -> str:
    if why.moved is None:
        return "what moved it is not known" if why.observed else "the first decision"
    if why.moved < _TINY:
        return ", though ".join(["nothing moved", *_over(why.limits)])
    ends, text = sorted(why.moves, key=lambda one: one.change), f"moved {number(why.moved)}, most"
    for side, one, sign in (("from", ends[0], -1.0), ("to", ends[-1], 1.0)) if ends else ():
        if sign * one.change > 0.0:
            text += f" {side} {one.name} ({number(one.before)} -> {number(one.value)})"
    reason = next(_reasons(why), None)
    return text if reason is None else f"{text} because {reason}"


def _reasons(why: Explanation) -> Iterator[str]:
    """What may have moved it, the strongest first."""
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
    if why.experts:
        yield from (what for size, what in _parts(why) if size > _TINY)
    else:
        yield f"{why.learner} made its step after the last round"


def _over(limits: Sequence[Limit]) -> list[str]:
    """The limit that what was played broke most, if it broke any."""
    broken = sorted((one for one in limits if one.played > _TINY), key=lambda one: -one.played)
    return [f"{one.name} was over by {number(one.played)} in the last round" for one in broken[:1]]
