"""The course of a session: what stands in its file, done to a state, when it happens and again when
the file is opened.

    for k = first, ..., last - 1:   decide the rounds that were decided after observation k
                                    meet observation k + 1
    decide those after the last;    tell the coming round what is known

A round is decided before its feedback arrives, and what is decided depends on all that arrived
before: so every round that waits says after which observation it was decided, in `pending` while it
waits and in `observations` from then on. A state that is kept is the one right after its
observation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, final

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.core.arrays import to_numpy
from tidewolf.core.conforming import allowed_excess
from tidewolf.core.feedback import Arrival, Feedback
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.durable.feedback import decode_checked, kept
from tidewolf.durable.known import decode_known, encode_known
from tidewolf.durable.played import How, decode_played, encode_played
from tidewolf.durable.records import Decision, Pending, Row
from tidewolf.methods.base import Learner, Progress
from tidewolf.methods.late import coming_round
from tidewolf.methods.turns import Decide, Expire, Meet, Tell, Turn, after, decision, waiting

S = TypeVar("S", bound=Progress)


class Place(NamedTuple):
    """Where a session stands."""

    state: Any
    observed: Any
    """the state right after the last observation"""
    last: int
    link: bytes
    pending: Mapping[int, Pending] = {}
    """the rounds that wait, from 1, and the coming one where something is known of it"""
    told: Mapping[int, str] = {}
    """the identities of what is known of them; rounds from 0"""


class Step(NamedTuple):
    """Something that happened: a round was decided, or observed."""

    place: Place
    """where it led"""
    row: Row | None
    """the observation"""
    before: Any
    """the state right before it"""
    turns: tuple[Turn, ...]
    """what it is, after what was told of the round"""


@final
class Course(Generic[S]):
    """What happens to a learner's state, as it is kept."""

    def __init__(self, learner: Learner[S]) -> None:
        self.learner = learner

    # --- as it happens ----------------------------------------------------------------------------

    def taken(self, place: Place, turns: Sequence[Turn], epoch: int) -> tuple[Place, list[Row]]:
        """Where these turns lead, and the observations to keep."""
        rows = []
        for turn in turns:
            match turn:
                case Tell(known):
                    place = self._told(place, encode_known(known))
                case Decide():
                    place = self._decided(place)
                case _:
                    row, turn = self._kept(place, turn, epoch)
                    rows.append(row)
                    place = self._met(place, row, turn)
        return place, rows

    def settled(self, place: Place) -> Place:
        """With the coming round settled."""
        state = self.learner.settled(place.state)
        observed = state if place.observed is place.state else place.observed
        return place._replace(state=state, observed=observed)

    def _kept(self, place: Place, turn: Expire | Meet, epoch: int) -> tuple[Row, Turn]:
        """A turn as it is kept, and as it is read again."""
        number = turn.round if isinstance(turn, Expire) else turn.arrival.round
        own = place.pending.get(number + 1)
        late = None if own is None or own.decision is None else own.decision.after
        known = None if own is None else own.known
        if isinstance(turn, Expire):
            played = encode_played(How(late))
            return Row(place.last + 1, number + 1, 0, epoch, b"", known, played), turn
        _, seen, point, instead = turn.arrival
        feedback, told = kept(seen, self._center)
        played = encode_played(How(late, point, instead, None if turn.settled else True))
        row = Row(place.last + 1, number + 1, seen.rounds, epoch, feedback, known, played)
        return row, self._met_as(row, told)

    def _told(self, place: Place, data: bytes) -> Place:
        coming, known = coming_round(place.state), decode_known(data, self._center)
        return place._replace(
            state=after(self.learner, place.state, Tell(known)),
            pending={**place.pending, coming + 1: Pending(coming + 1, data)},
            told={**place.told, coming: known.identity or ""},
        )

    def _decided(self, place: Place) -> Place:
        number = coming_round(place.state) + 1
        own = place.pending.get(number)
        state = after(self.learner, place.state, Decide())
        made = Decision(place.last, checkpoint.packed(waiting(state)[-1].x))
        pending = Pending(number, None if own is None else own.known, made)
        return place._replace(state=state, pending={**place.pending, number: pending})

    def _met(self, place: Place, row: Row, turn: Turn) -> Place:
        number, state = row.round - 1, after(self.learner, place.state, turn)
        return Place(
            state,
            state,
            row.arrived,
            row.link(place.link),
            {one: own for one, own in place.pending.items() if one != row.round},
            {one: said for one, said in place.told.items() if one != number},
        )

    def _turn(self, row: Row) -> Turn:
        if row.rounds == 0:
            return Expire(row.round - 1)
        return self._met_as(row, decode_checked(row.feedback, self._center))

    def _met_as(self, row: Row, seen: Feedback) -> Meet:
        if seen.rounds != row.rounds:
            raise ValueError(f"{row.rounds} rounds are told of {seen.rounds}")
        how = self._how(row)
        return Meet(Arrival(row.round - 1, seen, how.point, how.instead), not how.unsettled)

    @property
    def _center(self) -> Any:
        return self.learner.hard_set.center

    # --- again ------------------------------------------------------------------------------------

    def begin(self, state: S, last: int, link: bytes, rounds: Mapping[int, Pending]) -> Place:
        """The place of a state that was kept; `rounds` are all that waited then or later."""
        pending, told = {}, {}
        for own in waiting(state):
            one = rounds.get(own.round + 1)
            if one is None or one.decision is None:
                raise ValueError(f"round {own.round + 1} waits and is not among those that do")
            made = one.decision._replace(x=checkpoint.packed(own.x))
            pending[one.round] = one._replace(decision=made)
            if one.known is not None:
                told[own.round] = decode_known(one.known, self._center).identity or ""
        return Place(state, state, last, link, pending, told)

    def waited(self, rows: Iterable[Row], pending: Iterable[Pending]) -> dict[int, Pending]:
        """The rounds that waited, those that were observed since too, in order."""
        found = {one.round: one for one in pending if one.decision is not None}
        for row in rows:
            if row.played is not None and (late := self._how(row).after) is not None:
                found[row.round] = Pending(row.round, row.known, Decision(late, b""))
        return dict(sorted(found.items()))

    def again(
        self, place: Place, rows: Iterable[Row], rounds: Mapping[int, Pending]
    ) -> Iterator[Step]:
        """All that happened after this place; `rounds` are all that waited then or later."""
        left = [one for one in rounds.values() if one.decision and one.decision.after >= place.last]
        left.reverse()
        for row in rows:
            for step in self._decided_again(place, left):
                yield step
                place = step.place
            told: tuple[Turn, ...] = ()
            if row.known is not None and row.round not in rounds:
                place = self._told_again(place, row.round, row.known)
                told = (Tell(decode_known(row.known, self._center)),)
            if row.round not in (place.pending if waiting(place.state) else (_next(place),)):
                raise ValueError(f"round {row.round} was observed and had not been decided")
            turn = self._turn(row)
            if isinstance(turn, Meet) and turn.settled:
                place = self.settled(place)
            before, place = place.state, self._met(place, row, turn)
            yield Step(place, row, before, (*told, turn))
        yield from self._decided_again(place, left)
        if left:
            raise ValueError(f"round {left[-1].round} was decided after what was never observed")

    def _decided_again(self, place: Place, left: list[Pending]) -> Iterator[Step]:
        """Those that were decided after the last observation."""
        while left and left[-1].decision and left[-1].decision.after == place.last:
            one, told = left.pop(), tuple[Turn, ...]()
            if one.known is not None:
                place = self._told_again(place, one.round, one.known)
                told = (Tell(decode_known(one.known, self._center)),)
            if one.round != _next(place):
                raise ValueError(f"round {one.round} was decided out of order")
            before, place = place.state, self._decided(place)
            yield Step(place, None, before, (*told, Decide()))

    def with_what_is_told(self, place: Place) -> Iterator[Step]:
        """What is known of the coming round, as a step."""
        own = place.pending.get(_next(place))
        if own is not None and own.known is not None:
            told = Tell(decode_known(own.known, self._center))
            yield Step(place, None, place.state, (told,))

    def _told_again(self, place: Place, number: int, known: bytes) -> Place:
        if number != _next(place):
            raise ValueError(f"round {number} was told of out of order")
        return self._told(place, known)

    def with_known(self, place: Place, pending: Iterable[Pending]) -> Place:
        """With what is known of the coming round; refused where the rounds that wait are not those
        of the state, or were decided otherwise: up to rounding, for under other versions bits may
        differ.
        """
        for one in pending:
            if one.decision is None and one.known is not None:
                place = self._told_again(place, one.round, one.known)
                continue
            own = decision(place.state, one.round - 1)
            x = checkpoint.unpacked(one.decision.x, self._center) if one.decision else None
            if own is None or x is None or not _close(self.learner.hard_set, own.x, x):
                raise ValueError(f"round {one.round} was decided otherwise")
        return place

    def _how(self, row: Row) -> How:
        return decode_played(row.played, self.learner.hard_set)


def _next(place: Place) -> int:
    """The number of the coming round, from 1."""
    return coming_round(place.state) + 1


def _close(K: HasLMO, x: Array, was: Array) -> bool:
    return bool(
        tuple(x.shape) == tuple(was.shape)
        and np.abs(to_numpy(x) - to_numpy(was)).max(initial=0.0) <= allowed_excess(K, x)
    )
