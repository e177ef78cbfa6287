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
MOST_MOVERS, MOST_MEMBERS, MOST_LIMITS = 2, 5, 2
WORTH_NAMING = 0.1
"""Parts of the move below this share of it are not named."""


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
    yield f"Round {why.round}, decided by {why.learner} on a {why.on} after {_told(why)}."
    yield from _labelled("Decision", _decision(why))
    yield from _labelled("Moved", _moved(why))
    yield from _labelled("Told", _news(why))
    yield from _labelled("By whom", _who(why))
    yield from _table(why)
    yield from _labelled("Out", [", ".join(why.out)] if why.out else [])
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
    return [f"round {why.outlook.round} against the one told before it: {'; '.join(said)}"]


def _who(why: Explanation) -> list[str]:
    if not why.moved or why.since is None:
        return []
    if why.members:
        return _movers(why)
    held = f"; {number(why.short_of)} more is held back" if why.short_of > 0.0 else ""
    return [f"{_step(why)}{held}"]


def _movers(why: Explanation) -> list[str]:
    """The largest parts of the move, members of one kind together."""
    assert why.moved is not None
    found: list[tuple[float, str]] = []
    for name, group in _groups(why.members).items():
        first = max(group, key=lambda part: abs(part.by_proposal))
        many = f" ({len(group)} members)" if len(group) > 1 else ""
        found.append(
            (
                sum(part.by_proposal for part in group),
                f"{name}{many} proposed another point{_where(first)}",
            )
        )
        now, before = (sum(w) for w in zip(*map(_weights, group), strict=True))
        verb = "rose" if now > before else "fell"
        found.append(
            (
                sum(part.by_weight for part in group),
                f"trust in {name}{many} {verb} from {number(before)} to {number(now)}"
                + ("" if len(group) == 1 else ", or shifted among them"),
            )
        )
    found.append((why.held_back, _held(why)))
    found.append(
        (why.overridden, f"something else than was decided was played in round {why.since}")
    )
    found.sort(key=lambda one: -abs(one[0]))
    shown = [one for one in found if abs(one[0]) >= WORTH_NAMING * why.moved][:MOST_MOVERS]
    lines = [f"{number(size)} because {words}" for size, words in shown if size > 0.0]
    lines += [f"{number(size)} (back) because {words}" for size, words in shown if size < 0.0]
    rest = why.moved - sum(size for size, _ in shown)
    if abs(rest) >= 0.005 * why.moved:
        if lines:
            lines[-1] += f"; {number(rest)} by all else"
        else:
            lines.append("many small changes of proposals and of trust")
    return lines


def _held(why: Explanation) -> str:
    """What max_move does, or entries that are out."""
    where = "where its members would have it"
    if why.short_of == 0.0:
        return f"nothing keeps it from {where} any more"
    verb = "it may go on to" if why.held_back > 0.0 else "it is kept from"
    return f"{verb} {where} (max_move, or entries that are out: {number(why.short_of)} is left)"


def _groups(members: Sequence[Part]) -> dict[str, list[Part]]:
    """Members by kind: all headrooms of a re-solve, all step scales of descent."""
    groups: dict[str, list[Part]] = {}
    for part in members:
        groups.setdefault(part.name.partition(", ")[0], []).append(part)
    return groups


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
        ("", "trust", "", "moved", "expected", "", "the run minus it"),
        ("member", "before", "now", "it by", "loss", "over limit", "loss, violation"),
    ]
    if not seen:
        head = [
            ("", "trust", "", "moved", "expected", "", "the run lost"),
            ("member", "before", "now", "it by", "loss", "over limit", "at most, to it"),
        ]
    yield from _aligned([*head, *((*_common(part), _against(part, seen)) for part in shown)])
    if left := len(why.members) - len(shown):
        rest = max(0.0, 1.0 - sum(part.weight for part in shown))
        absent = len(why.members) - len(present)
        said = f"; {absent} absent" if absent else ""
        yield f"  and {left} more, trusted with {number(rest) if rest > 1e-9 else '0'} in all{said}"


def _common(part: Part) -> tuple[str, ...]:
    before = "" if part.weight_before is None else f"{part.weight_before:.3f}"
    moved = "" if part.weight_before is None else f"{part.by_proposal + part.by_weight:+.3f}"
    return (
        part.name,
        before,
        f"{part.weight:.3f}",
        moved,
        "" if part.loss is None else number(part.loss),
        "" if part.limit is None else signed(part.limit),
    )


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
    price = ""
    if why.limit_price:
        most = "up to " if any(one.price is not None for one in why.limits) else ""
        price = f"a unit of violation now weighs {most}{number(why.limit_price)} units of loss"
    seen = why.outlook
    if not why.limits or seen is None:
        if seen is not None and seen.limit_played is not None:
            value = f"by {number(seen.limit_played)}"
            state = f"broken {value}" if seen.limit_played > 0 else "kept"
            return [f"in round {seen.round} they were {state}{'; ' + price if price else ''}"]
        return [price] if price else []
    shown = [one for one in why.limits if one.binds or one.played > 0.0][:MOST_LIMITS]
    if shown:
        lines = [f"as in round {seen.round}: {_limit(shown[0])}", *map(_limit, shown[1:])]
    else:
        fullest = max(why.limits, key=lambda one: one.now)
        lines = [f"none binds; as in round {seen.round} the nearest is {_limit(fullest)}"]
    more = sum(one.binds for one in why.limits) - len(shown)
    tail = [f"{more} more bind{'s' * (more == 1)}" if more > 0 else "", price]
    return [*lines, *filter(None, ["; ".join(filter(None, tail))])]


def _limit(one: Limit) -> str:
    """Where a limit stands, at the decision and at what was played."""
    broken = "broken" if one.capacity is None else "over"
    if one.now > 0.0:
        state = f"{broken} by {number(one.now)}"
    elif one.binds:
        state = "full" if one.capacity is not None else "kept with nothing left"
    else:
        state = f"{number(-one.now)} left"
    load = "" if one.capacity is None else f"{number(one.load)} of {number(one.capacity)}, "
    then = f"; what was played was {broken} by {number(one.played)}" if one.played > 0.0 else ""
    weighs = f"; a unit weighs {number(one.price)}" if one.price else ""
    return f"{one.name}: {load}{state}{then}{weighs}"


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
            f"loss {number(why.run_loss)} ({mean} a round), violation {number(why.run_violation)} "
            f"in all; {_rival(why)}"
        )
    return lines + _proved(why)


def _rival(why: Explanation) -> str:
    """What was lost to the member that most was lost to."""
    known = [part for part in why.members if part.guard is not None and part.more_loss is not None]
    worst = max(known, key=lambda part: part.guard or 0.0)
    assert worst.more_loss is not None
    assert worst.more_violation is not None
    percent = ""
    if worst.its_loss is not None and abs(worst.more_loss) < worst.its_loss:
        percent = f" ({100.0 * abs(worst.more_loss) / worst.its_loss:.2g} %)"
    violation = "as much violation"
    if worst.more_violation != 0.0:
        size = f"{number(abs(worst.more_violation))}"
        violation = f"{size} {'more' if worst.more_violation > 0.0 else 'less'} violation"
    return (
        f"its hardest rival was {worst.name}: the run had {number(abs(worst.more_loss))}{percent} "
        f"{'more' if worst.more_loss >= 0.0 else 'less'} loss and {violation}"
    )


def _proved(why: Explanation) -> list[str]:
    if why.proved is None:
        return []
    _, regret, violation, reason = why.proved
    said = []
    if regret is not None:
        said.append(f"at most {number(regret)} was lost to the best fixed decision")
    if violation is not None and why.run_violation is None:
        said.append(f"limits were broken by at most {number(violation)}, if they can be kept")
    if not said:
        return [f"nothing is proved of it: {reason}"] if reason and why.run_loss is None else []
    return [f"proved of {_told(why)}: {'; '.join(said)}"]


def _asleep(why: Explanation) -> list[str]:
    if not why.asleep:
        return []
    return [f"{', '.join(why.asleep)} missed the deadline of this round, or failed"]


def _overrides(why: Explanation) -> list[str]:
    found = why.overrides
    if found is None:
        return []
    plural = "s" * (found.rounds != 1)
    said = f"something else than was decided in {found.rounds:,} round{plural}"
    if found.valued:
        said += (
            f": loss {signed(found.more_loss)}, violation {signed(found.more_violation)} against "
            "the decisions"
        )
        said += f" ({found.valued:,} seen)" if found.valued < found.rounds else ""
    return [f"{said}; priced at {number(found.price)} of loss, limits weighed in"]


def _pending(why: Explanation) -> list[str]:
    if not why.pending:
        return []
    shown = ", ".join(map(str, why.pending[:5]))
    more = f" and {len(why.pending) - 5} more" if len(why.pending) > 5 else ""
    return [f"round{'s' * (len(why.pending) > 1)} {shown}{more} decided and not told of"]
