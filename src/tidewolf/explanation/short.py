"""An explanation in one sentence: what moved from where to where, the one reason that stands out,
and whom the decision trusts most.

The first of these that fits is the reason: an entry is out or gone; something else was played than
was decided; a limit that the last round broke, and the move relieves; a cost or a capacity that
changed in the last round the way the move goes; the member of the mix that moved it most; the
learner's own step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tidewolf.explanation.words import ONLY_LIMIT, TINY, groups, number

if TYPE_CHECKING:
    from tidewolf.explanation.record import Entry, Explanation, Limit, Part

NEARLY_ALL = 0.01
"""How much of a move may have gone elsewhere where it is said to go from one entry to another."""
_WORTH_SAYING = 0.05
"""Changes of a cost or a capacity below this share of it are no reason."""


def in_short(why: Explanation) -> str:
    """The explanation as one sentence without its full stop."""
    return "; ".join([_moved(why), *_held(why), *_asleep(why), *_trusted(why)])


def _moved(why: Explanation) -> str:
    """What moved, and why."""
    if why.moved is None:
        if not why.told:
            return "the first decision, before any round was told of"
        rounds = f"{why.told:,} round{'s' * (why.told != 1)}"
        return f"decided after {rounds}; what moved it is not known"
    if why.moved < TINY:
        return f"nothing moved{_standing(why)}"
    said = f"moved {number(why.moved)}{_from_to(why)}"
    reason = _reason(why)
    return said.removesuffix(",") if reason is None else f"{said} because {reason}"


def _from_to(why: Explanation) -> str:
    """The entry that lost most and the one that gained most, with what they had and have, unless
    all that moved went from the one to the other.
    """
    assert why.moved is not None
    down, up = min(why.moves, key=_change, default=None), max(why.moves, key=_change, default=None)
    if down is None or up is None:
        return ""
    changes = (-_change(down), _change(up))
    if all(abs(change - why.moved) <= NEARLY_ALL * why.moved for change in changes):
        return f" from {down.name} to {up.name}"
    left = f" from {_before_and_now(down)}" if _change(down) < 0.0 else ""
    came = f" to {_before_and_now(up)}" if _change(up) > 0.0 else ""
    return f" in all, most{left}{came},"


def _before_and_now(one: Entry) -> str:
    return f"{one.name} ({number(one.before)} -> {number(one.value)})"


def _change(one: Entry) -> float:
    return one.value - (one.before or 0.0)


def _standing(why: Explanation) -> str:
    """What the last round said of a decision that stayed where it was."""
    if (broken := _worst(why.limits)) is not None:
        return f", though {_over(broken)}"
    kept = why.outlook is not None and why.outlook.limit_played is not None
    return ", and no limit was broken in the last round" if kept else ""


def _reason(why: Explanation) -> str | None:
    """The one thing that says most, for after "because"."""
    return next((found for found in _reasons(why) if found), None)


def _reasons(why: Explanation) -> Iterator[str | None]:
    yield _left(why)
    if why.overridden != 0.0:
        yield "something else was played than was decided, and the move is from there"
    relieved = _worst([one for one in why.limits if one.now < one.played])
    if relieved is not None:
        yield _over(relieved)
    outlook = why.outlook
    if not why.limits and outlook is not None and (outlook.limit_played or 0.0) > 0.0:
        yield f"a limit was broken by {number(outlook.limit_played)} in the last round"
    yield _news(why, "cost of putting all on", why.costs, -1.0)
    yield _news(why, "capacity of", why.capacities, 1.0)
    yield _mover(why)
    if not why.members:
        yield f"{why.learner} made its step after the last round"


def _left(why: Explanation) -> str | None:
    """What is out, or gone, and was used."""
    for entries, is_so in ((why.out, "out"), (why.gone, "not there any more")):
        used = [one for one in entries if (one.before or 0.0) > TINY]
        if used:
            most = max(used, key=lambda one: one.before or 0.0)
            more = f" and {len(used) - 1} more are" if len(used) > 1 else " is"
            return f"{most.name}{more} {is_so}"
    return None


def _worst(limits: Sequence[Limit]) -> Limit | None:
    """The limit that what was played broke most."""
    broken = [one for one in limits if one.played > TINY]
    return max(broken, key=lambda one: one.played, default=None)


def _over(broken: Limit) -> str:
    """The limit and by how much it was broken."""
    by = f"by {number(broken.played)} in the last round"
    if broken.name == ONLY_LIMIT:
        return f"{broken.name} was broken {by}"
    what = "its limit" if broken.capacity is None else "its capacity"
    return f"{broken.name} was over {what} {by}"


def _news(why: Explanation, what: str, changes: tuple[Entry, ...], sign: float) -> str | None:
    """The cost that fell, or the capacity that rose, where the move went, or the other way round
    where it left; the largest such change.
    """
    moved = {one.name: _change(one) for one in why.moves}
    fitting = [
        one
        for one in changes
        if one.before is not None
        and moved.get(one.name, 0.0) * sign * _change(one) > 0.0
        and abs(_change(one)) > _WORTH_SAYING * max(abs(one.before), abs(one.value))
        and number(one.before) != number(one.value)
    ]
    if not fitting:
        return None
    largest = sorted(moved, key=lambda name: moved[name])
    ends = (largest[0], largest[-1])
    most = max(fitting, key=lambda one: (one.name in ends, abs(_change(one))))
    verb = "rose" if _change(most) > 0.0 else "fell"
    return f"the {what} {most.name} {verb} from {number(most.before)} to {number(most.value)}"


def _mover(why: Explanation) -> str | None:
    """The members of one kind that moved it most, by another proposal or by trust."""
    found: list[tuple[float, str]] = []
    for name, group in groups(why.members).items():
        if any(part.weight_before is None for part in group):
            continue
        found.append((sum(part.by_proposal for part in group), f"{name} proposed it"))
        found.append((sum(part.by_weight for part in group), _trust(name, group)))
    size, words = max(found, default=(0.0, ""))
    return words if size > TINY else None


def _trust(name: str, group: list[Part]) -> str:
    """How the trust in members of one kind changed."""
    now, before = _weight(group), sum(part.weight_before or 0.0 for part in group)
    if not any(part.present for part in group):
        return f"{name} is absent in this round"
    if number(now) == number(before):
        return f"trust shifted among the members of {name}"
    if before == 0.0:
        return f"{name} has a say now"
    verb = "rose" if now > before else "fell"
    return f"trust in {name} {verb} from {number(before)} to {number(now)}"


def _held(why: Explanation) -> list[str]:
    """What keeps it from going on."""
    if not why.moved or why.short_of <= TINY or why.max_move is None:
        return []
    return [f"max_move lets it go no farther than {number(why.max_move)}"]


def _asleep(why: Explanation) -> list[str]:
    return [f"{name} was not asked in time, or failed" for name in why.asleep]


def _trusted(why: Explanation) -> list[str]:
    """The members of one kind with the largest share of the decision."""
    weights = {name: _weight(group) for name, group in groups(why.members).items()}
    if len(weights) < 2 or not why.told:
        return []
    name = max(weights, key=lambda one: weights[one])
    return [f"{name} has weight {weights[name]:.2g}"]


def _weight(group: list[Part]) -> float:
    return sum(part.weight for part in group)
