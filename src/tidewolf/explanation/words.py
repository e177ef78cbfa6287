"""How an explanation reads: the decision, its move, who moved it, what binds, what is expected, and
why to trust it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidewolf.explanation.record import Entry, Explanation, Limit, Part

WIDTH = 100
LABEL = 10
"""columns of a label"""
MOST_ENTRIES, MOST_ROUTES, MOST_MOVES, MOST_NEWS = 6, 3, 3, 2
MOST_MOVERS, MOST_MEMBERS, MOST_LIMITS = 2, 4, 2
WORTH_NAMING = 0.1
"""Parts of the move below this share of it are not named."""
TINY = 1e-9
ONLY_LIMIT = "the limit"
"""What the limit of a round is called that has only one."""


def read(why: Explanation) -> str:
    """The explanation as text."""
    return "\n".join(_lines(why))


def number(x: float | None) -> str:
    """Three digits, or all of a large number: 12,346, 1.23, 0.0123, 1.2e-06."""
    if x is None:
        return "unknown"
    size = abs(x)
    if size >= 999.5:
        return f"{x:,.0f}" if size < 1e9 else f"{x:.2e}"
    return "0" if size < 1e-12 else f"{x:.3g}" if size >= 1e-4 else f"{x:.1e}"


def signed(x: float | None) -> str:
    """The same with its sign."""
    if x is None:
        return "unknown"
    return number(x) if x < 1e-12 else f"+{number(x)}"


def _lines(why: Explanation) -> Iterator[str]:
    yield (
        f"Round {why.round} (counted from 0), decided by {why.learner} on a {why.on} after "
        f"{_told(why)}."
    )
    yield from _labelled("Decision", _decision(why))
    yield from _labelled("Moved", _moved(why))
    yield from _labelled("Out", _out(why))
    yield from _labelled("Gone", _gone(why))
    yield from _labelled("Told", _news(why))
    yield from _labelled("By whom", _who(why))
    yield from _table(why)
    yield from _labelled("Asleep", _asleep(why))
    yield from _labelled("Limits", _limits(why))
    yield from _labelled("Expected", _expected(why))
    yield from _labelled("So far", _so_far(why))
    yield from _labelled("Played", _overrides(why))
    yield from _labelled("Pending", _pending(why))
    yield from _labelled("Note", list(why.notes))


def _told(why: Explanation) -> str:
    return f"{why.told:,} round{'s' * (why.told != 1)} told"


def _labelled(label: str, items: Sequence[str]) -> Iterator[str]:
    """Each on its own line, wrapped, the first with the label."""
    for i, item in enumerate(items):
        first = f"{label if i == 0 else '':<{LABEL}}"
        yield from textwrap.wrap(
            item, WIDTH, initial_indent=first, subsequent_indent=" " * (LABEL + 2)
        )


def _decision(why: Explanation) -> list[str]:
    if why.routes:
        return _routes(why)
    if not why.entries:
        return ["every entry is 0"]
    shown = why.entries[:MOST_ENTRIES]
    left = why.others + len(why.entries) - len(shown)
    others = f"; {left:,} smaller one{'s' * (left > 1)}" if left else ""
    return [", ".join(f"{one.name}: {number(one.value)}" for one in shown) + others]


def _routes(why: Explanation) -> list[str]:
    first = why.routes[0].share
    shown = [one for one in why.routes[:MOST_ROUTES] if one.share >= 0.01 * first]
    lines = [
        f"{number(one.share)} along {' > '.join(one.nodes)}"
        + (f" ({one.commodity})" if one.commodity else "")
        for one in shown
    ]
    if left := len(why.routes) - len(shown) + why.other_routes:
        rest = number(sum(one.share for one in why.routes[len(shown) :]))
        in_all = "" if why.other_routes else f" with {rest} in all"
        lines[-1] += f"; {left:,} other path{'s' * (left > 1)}{in_all}"
    return lines


def _moved(why: Explanation) -> list[str]:
    if why.moved is None:
        return []
    if why.moved == 0.0:
        return [f"not at all since round {why.since}"]
    return [
        f"{number(why.moved)} since round {why.since} (half the sum of all changes): "
        f"{_changes(why.moves, MOST_MOVES)}"
    ]


def _out(why: Explanation) -> list[str]:
    """What is out, and what had to leave it."""
    if not why.out:
        return []
    used = [one for one in why.out if one.before]
    names = ", ".join(one.name for one in why.out)
    said = f"{names} {'is' if len(why.out) == 1 else 'are'} out, as play was told"
    if used:
        left = [
            number(one.before) + (f" on {one.name}" if len(why.out) > 1 else "") for one in used
        ]
        said += f": {', '.join(left)} had to leave; max_move does not apply"
    elif why.since is not None:
        said += f"; nothing was there in round {why.since}"
    return [said]


def _gone(why: Explanation) -> list[str]:
    if not why.gone:
        return []
    used = ", ".join(f"{one.name}, which had {number(one.before)}" for one in why.gone)
    return [f"the set has no longer {used}"]


def _changes(moves: Sequence[Entry], most: int) -> str:
    shown = moves[:most]
    least = 1e-9 * max((abs(x) for one in moves for x in one[1:] if x is not None), default=0.0)

    def cut(x: float | None) -> str:
        return number(0.0 if x is not None and abs(x) < least else x)

    said = ", ".join(f"{one.name}: {cut(one.before)} -> {cut(one.value)}" for one in shown)
    return said + (", and more" if len(moves) > most else "")


def _news(why: Explanation) -> list[str]:
    """What the last round told was unlike the one before."""
    if why.outlook is None or not why.moved:
        return []
    said = [
        f"{what} of {_changes(shown, MOST_NEWS)}"
        for what, changes in (("cost", why.costs), ("capacity", why.capacities))
        if (shown := [one for one in changes if number(one.before) != number(one.value)])
    ]
    if not said:
        return []
    then = "" if why.told_before is None else f" against round {why.told_before}"
    return [f"round {why.outlook.round}{then}: {'; '.join(said)}"]


def _who(why: Explanation) -> list[str]:
    if not why.moved or why.since is None:
        return []
    if not why.members:
        return [_step(why), *_held(why)]
    if all(part.weight_before is None for part in why.members):
        return _held(why)
    return [*_played_instead(why), *_held(why), *_movers(why)]


def _played_instead(why: Explanation) -> list[str]:
    if why.overridden == 0.0:
        return []
    return [
        f"in round {why.since} another point was played than was decided, and the move is from "
        "there"
    ]


def _held(why: Explanation) -> list[str]:
    """What keeps it from where it would be."""
    assert why.moved is not None
    if why.short_of == 0.0:
        return []
    if why.max_move is not None and why.moved >= 0.999 * why.max_move:
        return [
            f"max_move {number(why.max_move)} is reached: without it the decision would be "
            f"{number(why.short_of)} away from this one"
        ]
    if why.out:
        return [f"what is out keeps it {number(why.short_of)} from where it would be"]
    return [f"it is {number(why.short_of)} from where it would be"]


def _movers(why: Explanation) -> list[str]:
    """The largest parts of the move, members of one kind together. Where something holds it back,
    or something else was played, these are parts of where they would have it.
    """
    assert why.moved is not None
    found: list[tuple[float, str]] = []
    for name, group in groups(why.members).items():
        first = max(group, key=lambda part: abs(part.by_proposal))
        many = _many(group)
        found.append(
            (
                sum(part.by_proposal for part in group),
                f"{name}{many} proposed another point{_where(first)}",
            )
        )
        found.append((sum(part.by_weight for part in group), f"{_trust(name, group)}"))
    whole = why.short_of == why.overridden == 0.0
    if whole:
        found.append((why.held_back, f"max_move held it back in round {why.since}, and not now"))
    found.sort(key=lambda one: -abs(one[0]))
    scale = why.moved if whole else abs(found[0][0])
    shown = [one for one in found if abs(one[0]) >= max(WORTH_NAMING * scale, TINY)][:MOST_MOVERS]
    if not whole:
        pulls = [one for one in shown if abs(one[0]) >= WORTH_NAMING * why.moved][:1]
        return [f"what changed most: {words}" for _, words in pulls]
    lines = [f"{number(size)} because {words}" for size, words in shown if size > 0.0]
    lines += [
        f"{number(size)} (the other way) because {words}" for size, words in shown if size < 0.0
    ]
    rest = why.moved - sum(size for size, _ in shown)
    if abs(rest) >= 0.005 * why.moved:
        if lines:
            lines[-1] += f"; {number(rest)} by all else"
        else:
            lines.append("many small changes of proposals and of trust")
    return lines


def _trust(name: str, group: Sequence[Part]) -> str:
    """How the trust in members of one kind changed."""
    many = _many(group)
    now, before = (sum(w) for w in zip(*map(_weights, group), strict=True))
    if not any(part.present for part in group):
        return f"{name}{many} is absent in this round, and had a share of {number(before)}"
    if before == 0.0 and now > 0.0:
        return f"{name}{many} was absent, or not trusted, and has a share of {number(now)}"
    if number(now) == number(before):
        return f"trust shifted among the members of {name}"
    verb = "rose" if now > before else "fell"
    return f"trust in {name}{many} {verb} from {number(before)} to {number(now)}"


def groups(members: Sequence[Part]) -> dict[str, list[Part]]:
    """Members by kind: all headrooms of a re-solve, all step scales of descent."""
    groups: dict[str, list[Part]] = {}
    for part in members:
        groups.setdefault(part.name.partition(", ")[0], []).append(part)
    return groups


def _many(group: Sequence[Part]) -> str:
    return f" ({len(group)} members)" if len(group) > 1 else ""


def _weights(part: Part) -> tuple[float, float]:
    return part.weight, part.weight_before or 0.0


def _where(part: Part) -> str:
    towards = f", more on {part.towards}" if part.towards else ""
    return towards + (f", less on {part.away_from}" if part.away_from else "")


def _step(why: Explanation) -> str:
    """What pushed a learner without members."""
    seen = why.outlook
    if seen is None or seen.gain is None:
        return f"{why.learner}'s own step; it sees no gradients, so what pushed it is not known"
    said, loss = f"{why.learner}'s step after round {seen.round}", _fell("the loss", seen.gain)
    if seen.limit_gain is None:
        kept = "; no limit was broken there, so the loss alone pushed"
        alone = kept if why.limit_price is not None else ", which kept its limits"
        return f"{said}{alone}: by its gradients {loss} along the move"
    broken, price = "a limit", why.limit_price
    if why.limits:
        most = max(why.limits, key=lambda one: one.played)
        price = price if most.price is None else most.price
        broken = most.name if most.capacity is None else f"the capacity of {most.name}"
    limit, weighs = _fell("that limit", seen.limit_gain), ""
    if price is not None:
        worth = seen.limit_gain * price
        harder = "the limit" if worth > seen.gain else "the loss"
        weighs = f", worth {number(abs(worth))} of loss; {harder} pushed harder"
    return f"{said}, in which {broken} was broken: by its gradients {loss} and {limit}{weighs}"


def _fell(what: str, gain: float) -> str:
    return f"{what} {'falls' if gain >= 0.0 else 'rises'} by {number(abs(gain))}"


def _table(why: Explanation) -> Iterator[str]:
    """Members with their trust, their part, what is expected of each, and what the run has lost
    to each.
    """
    if not why.members:
        return
    present = [part for part in why.members if part.present]
    present.sort(key=lambda part: -max(_weights(part)))
    shown = present[:MOST_MEMBERS]
    seen = any(part.more_loss is not None for part in shown)
    head = [
        ("", "trust", "", "moved", "expected", "", "run minus it"),
        ("member", "before", "now", "it by", "loss", "limits", "loss, violation"),
    ]
    if not seen:
        head = [
            ("", "trust", "", "moved", "expected", "", "the run lost"),
            ("member", "before", "now", "it by", "loss", "limits", "at most, to it"),
        ]
    yield from _aligned([*head, *((*_common(part), _against(part, seen)) for part in shown)])
    said = []
    if left := len(present) - len(shown):
        rest = max(0.0, 1.0 - sum(part.weight for part in shown))
        said.append(f"{left} more, trusted with {number(rest) if rest > 1e-9 else '0'}")
    if absent := groups([part for part in why.members if not part.present]):
        named = [f"{one}{_many(group)}" for one, group in absent.items()]
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        said.append(f"absent: {', '.join(named[:3])}{more}")
    if seen:
        said.append("run minus it alone: below 0 the run did better")
    if said:
        yield from textwrap.wrap(
            "; ".join(said), WIDTH, initial_indent="  ", subsequent_indent="    "
        )


def _common(part: Part) -> tuple[str, ...]:
    before = "" if part.weight_before is None else f"{part.weight_before:.3f}"
    moved = "" if part.weight_before is None else f"{part.by_proposal + part.by_weight:+.3f}"
    return (
        part.name,
        before,
        f"{part.weight:.3f}",
        moved,
        "" if part.loss is None else number(part.loss),
        "" if part.limit is None else _room(part.limit),
    )


def _room(limit: float) -> str:
    """What is left of the largest limit, or how far it is broken."""
    if abs(limit) < 1e-12:
        return "full"
    return f"over {number(limit)}" if limit > 0.0 else f"room {number(-limit)}"


def _against(part: Part, seen: bool) -> str:
    if not seen:
        return "" if part.guard is None else number(part.guard)
    if part.more_loss is None:
        return ""
    return f"{signed(part.more_loss)}, {signed(part.more_violation)}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"]
        cells += [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _limits(why: Explanation) -> list[str]:
    apart, price = any(one.price is not None for one in why.limits), ""
    if why.limit_price and not apart:
        price = f"a unit of violation now weighs {number(why.limit_price)} units of loss"
    seen = why.outlook
    if not why.limits or seen is None:
        if seen is not None and seen.limit_played is not None:
            value = f"by {number(seen.limit_played)}"
            state = f"broken {value}" if seen.limit_played > 0 else "kept"
            return [f"in round {seen.round} they were {state}{'; ' + price if price else ''}"]
        return [price] if price else []
    bound = sorted((one for one in why.limits if one.binds), key=lambda one: -one.now)
    shown = bound[:MOST_LIMITS] or [max(why.limits, key=lambda one: one.now)]
    lines = [_limit(one, seen.round) for one in shown]
    lines[0] = f"as in round {seen.round}{'' if bound else ', none binds; nearest'}: {lines[0]}"
    tail = [_also(bound[MOST_LIMITS:]), "" if bound else _kept_now(why, shown), price]
    return [*lines, *filter(None, ["; ".join(filter(None, tail))])]


def _also(limits: Sequence[Limit]) -> str:
    """Other limits that bind, by name."""
    said = []
    broken = [one.name for one in limits if one.now > 0.0]
    full = [one.name for one in limits if one.now <= 0.0]
    for what, names in (("BROKEN", broken), ("full", full)):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            said.append(f"also {what}: {', '.join(names[:3])}{more}")
    return "; ".join(said)


def _kept_now(why: Explanation, shown: Sequence[Limit]) -> str:
    """Limits that were broken and are not any more."""
    were = [one for one in why.limits if one.played > 0.0 and one not in shown]
    if not were or why.outlook is None:
        return ""
    most = max(were, key=lambda one: one.played)
    return (
        f"{most.name} was over by {number(most.played)} in round {why.outlook.round} and now has "
        f"room {number(-most.now)}"
    )


def _limit(one: Limit, round: int) -> str:
    """Where a limit stands, at the decision and at what was played."""
    if one.now > 0.0:
        state, value = " BROKEN", f"over by {number(one.now)}"
    elif one.binds:
        state, value = " full", "nothing left"
    else:
        state, value = "", f"room {number(-one.now)}"
    load = "" if one.capacity is None else f"{number(one.load)} of {number(one.capacity)}, "
    then = f"; in round {round} over by {number(one.played)}" if one.played > 0.0 else ""
    weighs = f"; a unit weighs {number(one.price)}" if one.price else ""
    return f"{one.name}{state}: {load}{value}{then}{weighs}"


def _expected(why: Explanation) -> list[str]:
    seen = why.outlook
    if seen is None:
        return []
    if seen.loss is None:
        if seen.gain is None:
            return ["unknown: two numbers a round say nothing of other points than those played"]
        loss = _fell("the loss", seen.gain)
        return [
            f"by the gradients of round {seen.round}, {loss} with the move; nothing more was told"
        ]
    said = f"as in round {seen.round}, a loss of {number(seen.loss)}"
    kept = "" if seen.limit is None else f", {_kept(seen.limit)}"
    if seen.loss_before is None:
        return [said + kept]
    before = f"{number(seen.loss_before)}"
    if seen.limit_before is not None and seen.limit is not None:
        same = _kept(seen.limit_before) == _kept(seen.limit)
        before += "" if same else f", {_kept(seen.limit_before)}"
    return [f"{said}{kept}; what was played before would have {before}"]


def _kept(limit: float) -> str:
    return "limits kept" if limit <= 0.0 else f"limits broken by {number(limit)}"


def _so_far(why: Explanation) -> list[str]:
    lines = []
    if why.run_loss is not None and why.told:
        mean = number(why.run_loss / why.told)
        lines.append(
            f"loss {number(why.run_loss)} ({mean} a round), violation {number(why.run_violation)}; "
            f"{_rival(why)}"
        )
    return lines + _proved(why)


def _rival(why: Explanation) -> str:
    """The member that would have done best alone, a unit of violation weighed as it is now."""
    price = why.limit_price or 0.0

    def lost(part: Part) -> float:
        return (part.more_loss or 0.0) + price * (part.more_violation or 0.0)

    known = [part for part in why.members if part.more_loss is not None]
    best = max(known, key=lost)
    weighed = f" (a unit of violation as {number(price)} of loss)" if price else ""
    percent = ""
    if best.its_loss and abs(best.more_loss or 0.0) < best.its_loss:
        percent = f" ({100.0 * abs(best.more_loss or 0.0) / best.its_loss:.2g} %)"
    had = (
        f"{_than_it(best.more_loss, 'loss', percent)} and "
        f"{_than_it(best.more_violation, 'violation')}"
    )
    if not price:
        return f"the member with the least loss, {best.name}, alone had {had}"
    if lost(best) > 0.0:
        return f"{best.name} alone did better: {had}{weighed}"
    return f"no member alone did better; the nearest, {best.name}, had {had}{weighed}"


def _than_it(run_more: float | None, what: str, percent: str = "") -> str:
    """What a member would have had, against the run."""
    if not run_more:
        return f"as much {what}"
    return f"{number(abs(run_more))}{percent} {'less' if run_more > 0.0 else 'more'} {what}"


def _proved(why: Explanation) -> list[str]:
    if why.proved is None:
        return []
    _, regret, violation, reason = why.proved
    said = []
    if regret is not None:
        best = "the best fixed decision that keeps every limit, if any"
        bound = f"at most {number(regret)} lost to {best}"
        if why.run_loss is not None and 0.0 <= why.run_loss <= regret:
            bound = (
                f"nothing that helps, for the bound on what was lost to {best}, is "
                f"{number(regret)}: more than all of the loss"
            )
        said.append(bound)
    if violation is not None and why.run_violation is None:
        said.append(f"limits were broken by at most {number(violation)}, if they can be kept")
    if not said:
        return [f"nothing is proved of it: {reason}"] if reason and why.run_loss is None else []
    return [f"proved: {'; '.join(said)}"]


def _asleep(why: Explanation) -> list[str]:
    said = zip(why.asleep, why.slept_because, strict=True)
    return [
        f"{name} {because or 'missed the deadline, or failed'} and has no part in this round"
        for name, because in said
    ]


def _overrides(why: Explanation) -> list[str]:
    found = why.overrides
    if found is None:
        return []
    said = f"in {found.rounds:,} round{'s' * (found.rounds != 1)} another point than was decided"
    if found.valued:
        loss, violation = (
            _than_it(-found.more_loss, "loss"),
            _than_it(-found.more_violation, "violation"),
        )
        said += f": {loss} and {violation} than the decisions would have had"
        said += f" (in the {found.valued:,} whose functions were seen)" * (
            found.valued < found.rounds
        )
        return [said]
    return [f"{said}; that adds {number(found.price)} to what is proved, limits weighed in"]


def _pending(why: Explanation) -> list[str]:
    if not why.pending:
        return []
    shown = ", ".join(map(str, why.pending[:5]))
    more = f" and {len(why.pending) - 5} more" if len(why.pending) > 5 else ""
    return [f"round{'s' * (len(why.pending) > 1)} {shown}{more} decided and not told of"]
