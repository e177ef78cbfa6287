"""The event log of a session: apply each event to a state, when it happens and again when the file
is opened.

    for k = first, ..., last - 1:   decide the rounds that were decided after observation k
                                    observe observation k + 1
    decide those after the last;    give the next round its side information

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
from tidewolf.core.conforming import allowed_infeasibility
from tidewolf.core.feedback import Arrival
from tidewolf.methods.base import Learner, Progress
from tidewolf.methods.events import (
    Decide,
    Event,
    Expire,
    Observe,
    SetInfo,
    after,
    decision,
    waiting,
)
from tidewolf.methods.late import next_round
from tidewolf.storage.feedback import (
    How,
    decode,
    decode_info,
    decode_played,
    encode_info,
    encode_played,
    stored,
)
from tidewolf.storage.tables import Decision, Pending, Row

S = TypeVar("S", bound=Progress)


class Place(NamedTuple):
    """Where a session stands."""

    state: Any
    observed: Any
    """the state right after the last observation"""
    last: int
    link: bytes
    pending: Mapping[int, Pending] = {}
    """the rounds that wait, from 1, and the next one if it has side information"""
    info_ids: Mapping[int, str] = {}
    """the identities of their side information; rounds from 0"""


class Step(NamedTuple):
    """Something that happened: a round was decided, or observed."""

    place: Place
    """where it led"""
    row: Row | None
    """the observation"""
    before: Any
    """the state right before it"""
    events: tuple[Event, ...]
    """what it is, after the side information of the round"""


@final
class EventLog(Generic[S]):
    """What happens to a learner's state, as it is kept."""

    def __init__(self, learner: Learner[S]) -> None:
        self.learner, self._center = learner, learner.hard_set.center

    # --- as it happens ----------------------------------------------------------------------------

    def taken(self, place: Place, events: Sequence[Event], epoch: int) -> tuple[Place, list[Row]]:
        """Where these events lead, and the observations to keep."""
        rows = []
        for event in events:
            if isinstance(event, SetInfo):
                place = self._with_info(place, encode_info(event.info))
            elif isinstance(event, Decide):
                place = self._deferred(place)
            else:
                row, event = self._stored(place, event, epoch)
                rows.append(row)
                place = self._observed(place, row, event)
        return place, rows

    def committed(self, place: Place) -> Place:
        """With the next round committed."""
        state = self.learner.committed(place.state)
        observed = state if place.observed is place.state else place.observed
        return place._replace(state=state, observed=observed)

    def _stored(self, place: Place, event: Expire | Observe, epoch: int) -> tuple[Row, Event]:
        """An event as it is kept, and as it is read again."""
        number = event.round if isinstance(event, Expire) else event.arrival.round
        own = place.pending.get(number + 1)
        late = None if own is None or own.decision is None else own.decision.after
        info = None if own is None else own.info
        if isinstance(event, Expire):
            played = encode_played(How(late))
            return Row(place.last + 1, number + 1, 0, epoch, b"", info, played), event
        (_, feedback, point, instead), committed = event
        data, again = stored(feedback, self._center)
        played = encode_played(How(late, point, instead, None if committed else True))
        row = Row(place.last + 1, number + 1, feedback.rounds, epoch, data, info, played)
        return row, Observe(Arrival(number, again, point, instead), committed)

    def _with_info(self, place: Place, data: bytes) -> Place:
        upcoming, info = next_round(place.state), decode_info(data, self._center)
        return place._replace(
            state=after(self.learner, place.state, SetInfo(info)),
            pending={**place.pending, upcoming + 1: Pending(upcoming + 1, data)},
            info_ids={**place.info_ids, upcoming: info.identity or ""},
        )

    def _deferred(self, place: Place) -> Place:
        number = next_round(place.state) + 1
        own = place.pending.get(number)
        state = after(self.learner, place.state, Decide())
        decided = Decision(place.last, checkpoint.packed(waiting(state)[-1].x))
        pending = Pending(number, None if own is None else own.info, decided)
        return place._replace(state=state, pending={**place.pending, number: pending})

    def _observed(self, place: Place, row: Row, event: Event) -> Place:
        state, pending, info_ids = place.state, place.pending, place.info_ids
        state = after(self.learner, state, event)
        if row.round in pending:
            pending = {one: own for one, own in pending.items() if one != row.round}
            info_ids = {one: given for one, given in info_ids.items() if one != row.round - 1}
        return Place(state, state, row.arrived, row.link(place.link), pending, info_ids)

    # --- again ------------------------------------------------------------------------------------

    def begin(self, state: S, last: int, link: bytes, rounds: Mapping[int, Pending]) -> Place:
        """The place of a state that was kept; `rounds` are all that waited then or later."""
        pending, info_ids = {}, {}
        for own in waiting(state):
            one = rounds.get(own.round + 1)
            if one is None or one.decision is None:
                raise ValueError(f"round {own.round + 1} waits and is not among those that do")
            decided = one.decision._replace(x=checkpoint.packed(own.x))
            pending[one.round] = one._replace(decision=decided)
            if one.info is not None:
                info_ids[own.round] = decode_info(one.info, self._center).identity or ""
        return Place(state, state, last, link, pending, info_ids)

    def waited(self, rows: Iterable[Row], pending: Iterable[Pending]) -> dict[int, Pending]:
        """The rounds that waited, those that were observed since too, in order."""
        found = {one.round: one for one in pending if one.decision is not None}
        for row in rows:
            late = decode_played(row.played, self.learner.hard_set).after
            if late is not None:
                found[row.round] = Pending(row.round, row.info, Decision(late, b""))
        return dict(sorted(found.items()))

    def again(
        self, place: Place, rows: Iterable[Row], rounds: Mapping[int, Pending]
    ) -> Iterator[Step]:
        """All that happened after this place; `rounds` are all that waited then or later."""
        left = [one for one in rounds.values() if one.decision and one.decision.after >= place.last]
        left.reverse()
        for row in rows:
            for step in self._decisions_again(place, left):
                yield step
                place = step.place
            info = None if row.round in rounds else row.info
            place, before_it = self._info_again(place, row.round, info)
            if row.round not in (place.pending if waiting(place.state) else (_next(place),)):
                raise ValueError(f"round {row.round} was observed and had not been decided")
            event = self._event(row)
            if isinstance(event, Observe) and event.committed:
                place = self.committed(place)
            before, place = place.state, self._observed(place, row, event)
            yield Step(place, row, before, (*before_it, event))
        yield from self._decisions_again(place, left)
        if left:
            raise ValueError(f"round {left[-1].round} was decided after what was never observed")

    def _decisions_again(self, place: Place, left: list[Pending]) -> Iterator[Step]:
        """Those that were decided after the last observation."""
        while left and left[-1].decision and left[-1].decision.after == place.last:
            one = left.pop()
            place, before_it = self._info_again(place, one.round, one.info)
            if one.round != _next(place):
                raise ValueError(f"round {one.round} was decided out of order")
            before, place = place.state, self._deferred(place)
            yield Step(place, None, before, (*before_it, Decide()))

    def _info_again(
        self, place: Place, number: int, info: bytes | None
    ) -> tuple[Place, tuple[Event, ...]]:
        if info is None:
            return place, ()
        if number != _next(place):
            raise ValueError(f"round {number} has side information out of order")
        return self._with_info(place, info), (SetInfo(decode_info(info, self._center)),)

    def _event(self, row: Row) -> Event:
        if row.rounds == 0:
            return Expire(row.round - 1)
        feedback = decode(row.feedback, self._center, checked=True)
        if feedback.rounds != row.rounds:
            raise ValueError(f"{row.rounds} rounds have feedback of {feedback.rounds}")
        how = decode_played(row.played, self.learner.hard_set)
        return Observe(Arrival(row.round - 1, feedback, how.point, how.instead), not how.unsettled)

    def with_pending_info(self, place: Place, pending: Iterable[Pending]) -> Place:
        """With the side information of the next round; refused if the rounds that wait are not
        those of the state, or were decided otherwise: up to rounding, for under other versions bits
        may differ.
        """
        K = self.learner.hard_set
        for one in pending:
            if one.decision is None:
                place, _ = self._info_again(place, one.round, one.info)
                continue
            own, was = decision(place.state, one.round - 1), one.decision.x
            x = to_numpy(checkpoint.unpacked(was, self._center))
            if own is None or tuple(own.x.shape) != x.shape:
                raise ValueError(f"round {one.round} was not decided so")
            if not np.abs(to_numpy(own.x) - x).max(initial=0.0) <= allowed_infeasibility(K, own.x):
                raise ValueError(f"round {one.round} was decided otherwise")
        return place


def _next(place: Place) -> int:
    """The number of the next round, from 1."""
    return next_round(place.state) + 1
