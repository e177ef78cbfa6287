"""An explanation as a record: plain numbers and text."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, final

from tidewolf.explanation import text


class Entry(NamedTuple):
    """An entry of the decision."""

    name: str
    value: float
    before: float | None
    """in what was played before; None where that is not known"""


class Route(NamedTuple):
    """A path that a flow takes."""

    share: float
    """what goes along it"""
    nodes: tuple[str, ...]
    commodity: str | None = None


class Part(NamedTuple):
    """A member's part in the decision and in its move. The numbers of all members, and what was
    held back, add up to the move.
    """

    name: str
    weight: float
    """its share of the decision"""
    weight_before: float | None
    by_proposal: float
    """how far it moved the decision by proposing another point"""
    by_weight: float
    """how far it did by being trusted more or less than before"""
    towards: str | None
    """the entry that its part raised most"""
    away_from: str | None
    """and the one it lowered most"""
    loss: float | None
    """expected at what it proposes"""
    limit: float | None
    """the value of the largest limit there; above 0 it is broken"""
    guard: float | None
    """the most that the run has lost to it so far, loss and limits weighed together"""
    more_loss: float | None
    """what the run has lost more than it would have so far; None where that was not seen"""
    more_violation: float | None
    its_loss: float | None
    """what it would have lost so far"""
    present: bool
    """whether it proposed a point"""


class Limit(NamedTuple):
    """A limit of the round that was told of last."""

    name: str
    played: float
    """its value at what was played then; above 0 it was broken"""
    now: float
    """and at the decision"""
    load: float | None
    """of an entry with a capacity, in the decision"""
    capacity: float | None
    binds: bool
    """whether next to nothing is left of it at the decision, or it is broken there"""
    price: float | None = None
    """what a unit of it weighs, in units of the loss, where it has a weight of its own"""


class Outlook(NamedTuple):
    """What is expected: what the round that was told of last would cost again."""

    round: int
    loss: float | None
    """at the decision"""
    loss_before: float | None
    """at what was played in the round before"""
    loss_played: float | None
    limit: float | None
    """the largest limit's value; above 0 it is broken"""
    limit_before: float | None
    limit_played: float | None
    gain: float | None
    """what the move gains in the loss, by its gradient at what was played"""
    limit_gain: float | None
    """what it gains in the limit that was broken, likewise; None where none was, or no gradient
    was seen
    """


class Override(NamedTuple):
    """Rounds in which another point was played than was decided."""

    rounds: int
    price: float
    """what that has cost at most, in units of the loss, limits weighed in"""
    valued: int
    """those of them whose functions were seen"""
    more_loss: float
    """what they lost more than the decisions would have"""
    more_violation: float


class Proved(NamedTuple):
    """What is proved of the rounds that were told of."""

    rounds: int
    regret: float | None
    """the most that was lost to the best fixed decision; None: nothing is proved"""
    violation: float | None
    """the most that limits can have been broken by in all"""
    reason: str


@final
@dataclass(frozen=True)
class Explanation:
    """Why a decision is what it is; `print` it, or take it as plain numbers with `to_dict()`.

    Rounds count from 0. Moves are half the sum of the changes of all entries: for flows and shares,
    how much has to be rerouted.

    Parameters
    ----------
    round : int
        Whose decision it is.
    learner : str
        Who decided.
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
        The round of the decision before; None where that is not known.
    moved : float or None
        How far the decision moved from what was played in that round: the decision, unless
        something else is told to have been.
    moves : tuple of Entry
        The entries that moved most.
    experts : tuple of Part
        Those whose proposals are mixed, largest shares first.
    held_back : float
        How far something else moved it than its members, such as `max_move`.
    overridden : float
        The part of the move that comes of something else having been played than was decided.
    short_of : float
        How far the decision is from what it would be if nothing held it back.
    max_move : float or None
        The most that it may move; None: as far as it will, such as away from an entry that is out.
    out : tuple of Entry
        Entries that are out in the round.
    gone : tuple of Entry
        Entries that were used before, and that the set has no longer.
    skipped : tuple of str
        Advisers that missed the deadline of the round, or failed.
    slept_because : tuple of str
        What each of them did; empty where that is not known.
    costs : tuple of Entry
        The entries whose cost, the loss's gradient, changed most from what was told before.
    capacities : tuple of Entry
        Those whose capacity did.
    feedback_before : int or None
        The round that costs and capacities are compared with.
    limits : tuple of Limit
        Those that are broken, or have least left.
    limit_price : float or None
        What a unit of violation weighs, in units of the loss.
    outlook : Outlook or None
        What is expected of the decision.
    observed : int
        Rounds that were told of so far.
    run_loss : float or None
        What was lost in them; None where that was not seen.
    run_violation : float or None
        By how much limits were broken in them, likewise.
    proved : Proved or None
        What is proved of these rounds.
    overrides : Override or None
        Rounds in which another point was played.
    pending : tuple of int
        Rounds that were decided and are not told of yet.
    notes : tuple of str
        Sentences worth knowing, and what cannot be said.

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
    feedback_before: int | None = None
    limits: tuple[Limit, ...] = ()
    limit_price: float | None = None
    outlook: Outlook | None = None
    observed: int = 0
    run_loss: float | None = None
    run_violation: float | None = None
    proved: Proved | None = None
    overrides: Override | None = None
    pending: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return text.page(self)

    def in_short(self) -> str:
        """What moved and why, in one sentence without its full stop, for a log or a line of a
        table.

        Returns
        -------
        str
            What moved from where to where, the reason that stands out, and whom the decision
            trusts most.

        Examples
        --------
        >>> session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(2)))
        >>> session.explain().in_short()
        'the first decision'
        >>> session.observe(costs=[1.0, 0.0], capacities=[0.4, 1.0])
        >>> session.explain(names=["coal", "sun"]).in_short().partition(" because ")[2]
        'coal was over by 0.1 in the last round'
        """
        return text.in_short(self)

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers, text and lists, which JSON has.

        Returns
        -------
        dict
            The fields by name; a number that is not finite is None.
        """
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, tuple):
        named = getattr(value, "_asdict", None)
        if named is not None:
            return {name: _plain(part) for name, part in named().items()}
        return [_plain(part) for part in value]
    return value
