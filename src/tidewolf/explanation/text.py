"""How an explanation reads: as a page, and in one sentence."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidewolf.explanation.record import Entry, Explanation, Limit, Part

ONLY_LIMIT = "the limit"
"""The name of the limit of a round that has only one."""
_WIDTH, _LABEL = 100, 10
"""columns of the page, and of a label"""
_MOST, _ENTRIES = 3, 6
"""Items of a line of the page, and entries of the decision."""
_SHARE, _CHANGE = 0.1, 0.05
"""Parts of a move, and changes of a cost or capacity, below these shares are left out."""
_TINY = 1e-9


def number(x: float | None) -> str:
    """Three digits, or all of a large number: 12,346, 1.23, 0.0123, 1.2e-06."""
    if x is None:
        return "unknown"
    size = abs(x)
    if size >= 999.5:
        return f"{x:,.0f}" if size < 1e9 else f"{x:.2e}"
    return "0" if size < 1e-12 else f"{x:.3g}" if size >= 1e-4 else f"{x:.1e}"


def page(why: Explanation) -> str:
    """The explanation on a page: a label, and its lines."""
    observed = _counted(why.observed, "round")
    lines = [f"Round {why.round} (counted from 0): {why.learner} on {why.on}, {observed} observed."]
    skipped = zip(why.skipped, why.slept_because, strict=True)
    sections = {
        "Decision": _decision(why),
        "Moved": [] if why.moved is None else [_moved(why)],
        "Out": [f"{_left(why.out)}; max_move does not apply to what leaves"] if why.out else [],
        "Gone": [f"the set no longer has {_left(why.gone)}"] if why.gone else [],
        "Observed": _news(why),
        "By": _movers(why),
        "Experts": [_expert(part) for part in why.experts[:_MOST]] if why.observed else [],
        "Skipped": [f"{one}: {because or 'no answer in time'}" for one, because in skipped],
        "Limits": _limits(why),
        "Expected": _expected(why),
        "So far": _so_far(why),
        "Pending": [f"rounds {_some(why.pending)}"] if why.pending else [],
        "Note": list(why.notes),
    }
    more = " " * (_LABEL + 2)
    for label, items in sections.items():
        for i, item in enumerate(items):
            first = f"{'' if i else label:<{_LABEL}}"
            lines += textwrap.wrap(item, _WIDTH, initial_indent=first, subsequent_indent=more)
    return "\n".join(lines)


def _some(items: Sequence[object], most: int = _MOST, more: int = 0) -> str:
    """Several items, the last ones as their number."""
    left = max(0, len(items) - most) + more
    return ", ".join(map(str, items[:most])) + (f" and {left:,} more" if left else "")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _left(entries: Sequence[Entry]) -> str:
    return _some([f"{one.name}, which had {number(one.before)}" for one in entries])


def _changes(entries: Sequence[Entry]) -> str:
    return _some([f"{one.name} {number(one.before)} -> {number(one.value)}" for one in entries])


def _facts(facts: dict[str, float | None]) -> str:
    return ", ".join(f"{name} {number(x)}" for name, x in facts.items() if x is not None)


def _decision(why: Explanation) -> list[str]:
    if not why.routes:
        entries = [f"{one.name}: {number(one.value)}" for one in why.entries]
        return [_some(entries, _ENTRIES, why.others) or "every entry is 0"]
    paths = [
        f"{number(one.share)} along {' > '.join(one.nodes)}"
        + (f" ({one.commodity})" if one.commodity else "")
        for one in why.routes
    ]
    left = len(paths[_MOST:]) + why.other_routes
    return [*paths[:_MOST], *([_counted(left, "other path")] if left else [])]


def _moved(why: Explanation) -> str:
    held = ""
    if why.short_of:
        cap = "" if why.max_move is None else f", with max_move {number(why.max_move)}"
        held = f"; {number(why.short_of)} short of where it would be{cap}"
    moves = f": {_changes(why.moves)}" if why.moved else ""
    return f"{number(why.moved)} since round {why.since}{moves}{held}"


def _news(why: Explanation) -> list[str]:
    """How the last round observed differs from the one before."""
    both = (("costs", why.costs), ("capacities", why.capacities))
    found = [f"{what} of {_changes(each)}" for what, each in both if each]
    return found if why.moved and why.outlook is not None else []


def _movers(why: Explanation) -> list[str]:
    """The largest parts of the move, experts of one kind together, or the learner's own step."""
    if not why.moved or why.since is None:
        return []
    if why.experts:
        shown = [one for one in _parts(why) if abs(one[0]) >= _SHARE * why.moved]
        return [f"{size:+.3g} {what}" for size, what in shown[: _MOST + 1]]
    seen = why.outlook
    if seen is None or seen.gain is None:
        return [f"{why.learner}'s own step; it observes no gradients"]
    said = f"{why.learner}'s step after round {seen.round}: the loss changes by {-seen.gain:+.3g}"
    if seen.limit_gain is None:
        return [said]
    return [f"{said}, the violation by {-seen.limit_gain:+.3g}"]


def _parts(why: Explanation) -> list[tuple[float, str]]:
    """The parts of the move, largest first."""
    found = [
        (why.held_back, "what holds it back, such as max_move"),
        (why.overridden, "another point was played than was decided"),
    ]
    for name, group in groups(why.experts).items():
        now, then = _weight(group), sum(part.weight_before or 0.0 for part in group)
        found.append((sum(part.by_proposal for part in group), f"{name} proposes another point"))
        trust = f"the weight of {name} went from {number(then)} to {number(now)}"
        found.append((sum(part.by_weight for part in group), trust))
    return sorted(found, key=lambda one: -abs(one[0]))


def groups(experts: Sequence[Part]) -> dict[str, list[Part]]:
    """Experts by kind: all headrooms of a re-solve, all step scales of descent."""
    found: dict[str, list[Part]] = {}
    for part in experts:
        found.setdefault(part.name.partition(", ")[0], []).append(part)
    return found


def _weight(group: Sequence[Part]) -> float:
    return sum(part.weight for part in group)


def _expert(part: Part) -> str:
    """An expert: its weight, what its point would cost, and how the run compares with it."""
    more = part.more_loss is not None
    facts = {
        "weight": part.weight,
        "before": part.weight_before,
        "loss": part.loss,
        "limit": part.limit,
        "loss of the run minus its own": part.more_loss,
        "violation of the run minus its own": part.more_violation,
        "the run lost to it at most": None if more else part.guard,
    }
    return f"{part.name}: {_facts(facts)}"


def _limits(why: Explanation) -> list[str]:
    """The limits that bind, or the nearest one, and the one that was broken most."""
    order = sorted(why.limits, key=lambda one: (not one.binds, -one.now))
    bound, worst = [one for one in order if one.binds], _worst(why.limits)
    shown = bound[:_MOST] or order[:1]
    shown += [worst] if worst is not None and worst not in shown else []
    lines = [_limit(one) for one in shown]
    if more := [one.name for one in bound if one not in shown]:
        lines.append(f"also {_some(more)}")
    if not lines and why.outlook is not None and why.outlook.limit_played is not None:
        lines.append(_constraint_text(why.outlook.limit_played))
    if why.limit_price and not any(one.price for one in why.limits):
        lines.append(f"a unit of violation weighs {number(why.limit_price)}")
    return lines


def _limit(one: Limit) -> str:
    load = "" if one.capacity is None else f"{number(one.load)} of {number(one.capacity)}, "
    now = f"BROKEN by {number(one.now)}" if one.now > 0.0 else f"room {number(-one.now)}"
    then = f", was over by {number(one.played)}" if one.played > 0.0 else ""
    return f"{one.name}: {load}{now}{then}" + (f", weighs {number(one.price)}" * bool(one.price))


def _constraint_text(limit: float | None) -> str:
    return f"limits broken by {number(limit)}" if (limit or 0.0) > 0.0 else "limits kept"


def _expected(why: Explanation) -> list[str]:
    seen = why.outlook
    if seen is None:
        return []
    if seen.loss is None:
        return ["unknown: only what was played was observed"]
    kept = "" if seen.limit is None else f", {_constraint_text(seen.limit)}"
    then = f"; {number(seen.loss_before)} without the move" if seen.loss_before is not None else ""
    return [f"as in round {seen.round}, a loss of {number(seen.loss)}{kept}{then}"]


def _so_far(why: Explanation) -> list[str]:
    """The totals, what is proved, and what other points than the decisions have cost."""
    lines, proved, other = [], why.proved, why.overrides
    if why.run_loss is not None and why.observed:
        lines.append(_facts({"loss": why.run_loss, "violation": why.run_violation}))
    if proved is not None and proved.regret is not None:
        lines.append(f"proved: regret at most {number(proved.regret)}")
    elif proved is not None and proved.reason:
        lines.append(f"no bound: {proved.reason}")
    if other is not None:
        more = f"{other.more_loss:+.3g} loss and {other.more_violation:+.3g} violation"
        price = more if other.valued else f"at most {number(other.price)} more in the bound"
        rounds = _counted(other.rounds, "round")
        lines.append(f"other points than decided were played in {rounds}: {price}")
    return lines


def in_short(why: Explanation) -> str:
    """What moved, why, and which expert has the largest weight, without a full stop."""
    weights = {name: _weight(group) for name, group in groups(why.experts).items()}
    said = [_moved_in_short(why)]
    if why.moved and why.short_of > _TINY and why.max_move is not None:
        said.append(f"max_move lets it go no farther than {number(why.max_move)}")
    said += [f"{name} was skipped" for name in why.skipped]
    if len(weights) > 1 and why.observed:
        name = max(weights, key=lambda one: weights[one])
        said.append(f"{name} has weight {weights[name]:.2g}")
    return "; ".join(said)


def _moved_in_short(why: Explanation) -> str:
    if why.moved is None:
        return "the first decision" if not why.observed else "what moved it is not known"
    if why.moved < _TINY:
        over = _worst(why.limits)
        return "nothing moved" + (f", though {_over(over)}" if over is not None else "")
    ends = sorted(why.moves, key=_change)
    left = f" from {_before_and_now(ends[0])}" if ends and _change(ends[0]) < 0.0 else ""
    came = f" to {_before_and_now(ends[-1])}" if ends and _change(ends[-1]) > 0.0 else ""
    reason = next(_reasons(why), None)
    because = "" if reason is None else f" because {reason}"
    return f"moved {number(why.moved)}, most{left}{came}{because}"


def _change(one: Entry) -> float:
    return one.value - (one.before or 0.0)


def _before_and_now(one: Entry) -> str:
    return f"{one.name} ({number(one.before)} -> {number(one.value)})"


def _reasons(why: Explanation) -> Iterator[str]:
    """What may have moved it, the strongest first."""
    for entries, state in ((why.out, "out"), (why.gone, "no longer there")):
        used = [one.name for one in entries if (one.before or 0.0) > _TINY]
        if used:
            yield f"{_some(used, 1)} {'is' if len(used) == 1 else 'are'} {state}"
    if why.overridden:
        yield "another point was played than was decided"
    relieved = _worst([one for one in why.limits if one.now < one.played])
    if relieved is not None:
        yield _over(relieved)
    moved = {one.name: _change(one) for one in why.moves}
    both = (("cost", why.costs, -1.0), ("capacity", why.capacities, 1.0))
    for what, changes, sign in both:
        for one in sorted(changes, key=lambda one: -abs(_change(one))):
            size = max(abs(one.value), abs(one.before or 0.0))
            draws = moved.get(one.name, 0.0) * sign * _change(one) > 0.0
            if draws and abs(_change(one)) > _CHANGE * size:
                yield f"the {what} of {_changes([one])}"
    if why.experts:
        yield from (what for size, what in _parts(why) if size > _TINY)
    else:
        yield f"{why.learner} made its step after the last round"


def _worst(limits: Sequence[Limit]) -> Limit | None:
    """The limit that what was played broke most."""
    broken = [one for one in limits if one.played > _TINY]
    return max(broken, key=lambda one: one.played, default=None)


def _over(broken: Limit) -> str:
    return f"{broken.name} was over by {number(broken.played)} in the last round"
