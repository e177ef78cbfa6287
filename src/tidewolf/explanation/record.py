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
    """in what was played before; None if that is not known"""

    @property
    def change(self) -> float:
        return self.value - (self.before or 0.0)


class Route(NamedTuple):
    """A path of a flow."""

    share: float
    """how much of the flow takes it"""
    nodes: tuple[str, ...]
    commodity: str | None = None


class Part(NamedTuple):
    """What one expert contributes to the decision and to its move. `by_proposal` and `by_weight` of
    all experts, `held_back` and `overridden` add up to the move.
    """

    name: str
    weight: float
    """its share of the decision"""
    weight_before: float | None
    by_proposal: float
    """how far it moved the decision because it proposes another point"""
    by_weight: float
    """how far it moved the decision because its weight changed"""
    towards: str | None
    """the entry that its part raised most"""
    away_from: str | None
    """the entry that its part lowered most"""
    loss: float | None
    """expected at its proposal"""
    limit: float | None
    """the largest constraint value at its proposal; above 0 it is violated"""
    guard: float | None
    """the most that the run has lost to it so far, loss and violation weighted together"""
    more_loss: float | None
    """loss of the run minus its own so far; None if the functions were not observed"""
    more_violation: float | None
    its_loss: float | None
    """its own loss so far"""
    present: bool
    """whether it proposed a point"""


class Limit(NamedTuple):
    """A constraint of the last observed round."""

    name: str
    played: float
    """its value at what was played; above 0 it was violated"""
    now: float
    """its value at the decision"""
    load: float | None
    """the entry of the decision, if it has a capacity"""
    capacity: float | None
    binds: bool
    """whether it is violated at the decision, or nearly no room is left"""
    price: float | None = None
    """its multiplier, in units of the loss; None if it has none of its own"""


class Outlook(NamedTuple):
    """What is expected: what the last observed round would cost again."""

    round: int
    loss: float | None
    """at the decision"""
    loss_before: float | None
    """at what was played in the round before"""
    loss_played: float | None
    limit: float | None
    """the largest constraint value at the decision; above 0 it is violated"""
    limit_before: float | None
    limit_played: float | None
    gain: float | None
    """how much the move lowers the loss, by its gradient at what was played"""
    limit_gain: float | None
    """how much it lowers the violated constraint, by its gradient; None if no constraint was
    violated, or no gradient was observed
    """


class Override(NamedTuple):
    """Rounds in which another point was played than was decided."""

    rounds: int
    price: float
    """what that cost at most, in units of the loss, violation included"""
    valued: int
    """those of them whose functions were observed"""
    more_loss: float
    """loss of what was played minus loss of the decisions"""
    more_violation: float


class Proved(NamedTuple):
    """The measured bound of the observed rounds."""

    rounds: int
    regret: float | None
    """the most that was lost to the best fixed decision; None if there is no bound"""
    violation: float | None
    """the largest total violation"""
    reason: str


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
    feedback_before : int or None
        The round that costs and capacities are compared with.
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
    proved : Proved or None
        The measured bound of these rounds.
    overrides : Override or None
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
        return text.in_short(self)

    def to_dict(self) -> dict[str, Any]:
        """Convert to numbers, text, lists and dicts, as JSON has them.

        Returns
        -------
        dict
            The fields by name; a number that is not finite is None.
        """
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if not isinstance(value, tuple):
        return value
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    return [_plain(part) for part in value]
