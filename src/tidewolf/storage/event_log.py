"""The event log of a session: apply each event to a state, when it happens and again when the file
is opened.

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
from tidewolf.core.conforming import allowed_infeasibility
from tidewolf.core.feedback import Arrival, Feedback
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
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
    decode_checked,
    decode_info,
    decode_played,
    encode_info,
    encode_played,
    stored,
)
from tidewolf.storage.records import Decision, Pending, Row

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
    info_ids: Mapping[int, str] = {}
    """the identities of what is known of them; rounds from 0"""


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
        self.learner = learner

    # --- as it happens ----------------------------------------------------------------------------

    def taken(self, place: Place, events: Sequence[Event], epoch: int) -> tuple[Place, list[Row]]:
        """Where these turns lead, and the observations to keep."""
        rows = []
        for event in events:
            match event:
                case SetInfo(info):
                    place = self._with_info(place, encode_info(info))
                case Decide():
                    place = self._deferred(place)
                case _:
                    row, event = self._stored(place, event, epoch)
                    rows.append(row)
                    place = self._observed(place, row, event)
        return place, rows

    def committed(self, place: Place) -> Place:
        """With the coming round settled."""
        state = self.learner.committed(place.state)
        observed = state if place.observed is place.state else place.observed
        return place._replace(state=state, observed=observed)

    def _stored(self, place: Place, event: Expire | Observe, epoch: int) -> tuple[Row, Event]:
        """A turn as it is kept, and as it is read again."""
        number = event.round if isinstance(event, Expire) else event.arrival.round
        own = place.pending.get(number + 1)
        late = None if own is None or own.decision is None else own.decision.after
        info = None if own is None else own.info
        if isinstance(event, Expire):
            played = encode_played(How(late))
            return Row(place.last + 1, number + 1, 0, epoch, b"", info, played), event
        _, feedback, point, instead = event.arrival
        data, stored_feedback = stored(feedback, self._center)
        played = encode_played(How(late, point, instead, None if event.committed else True))
        row = Row(place.last + 1, number + 1, feedback.rounds, epoch, data, info, played)
        return row, self._observation(row, stored_feedback)

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
        made = Decision(place.last, checkpoint.packed(waiting(state)[-1].x))
        pending = Pending(number, None if own is None else own.info, made)
        return place._replace(state=state, pending={**place.pending, number: pending})

    def _observed(self, place: Place, row: Row, event: Event) -> Place:
        number, state = row.round - 1, after(self.learner, place.state, event)
        pending, info_ids = place.pending, place.info_ids
        if row.round in pending:
            pending = {one: own for one, own in pending.items() if one != row.round}
        if number in info_ids:
            info_ids = {one: said for one, said in info_ids.items() if one != number}
        return Place(state, state, row.arrived, row.link(place.link), pending, info_ids)

    def _event(self, row: Row) -> Event:
        if row.rounds == 0:
            return Expire(row.round - 1)
        return self._observation(row, decode_checked(row.feedback, self._center))

    def _observation(self, row: Row, feedback: Feedback) -> Observe:
        if feedback.rounds != row.rounds:
            raise ValueError(f"{row.rounds} rounds have feedback of {feedback.rounds}")
        how = self._how(row)
        return Observe(Arrival(row.round - 1, feedback, how.point, how.instead), not how.unsettled)

    @property
    def _center(self) -> Any:
        return self.learner.hard_set.center

    # --- again ------------------------------------------------------------------------------------

    def begin(self, state: S, last: int, link: bytes, rounds: Mapping[int, Pending]) -> Place:
        """The place of a state that was kept; `rounds` are all that waited then or later."""
        pending, info_ids = {}, {}
        for own in waiting(state):
            one = rounds.get(own.round + 1)
            if one is None or one.decision is None:
                raise ValueError(f"round {own.round + 1} waits and is not among those that do")
            made = one.decision._replace(x=checkpoint.packed(own.x))
            pending[one.round] = one._replace(decision=made)
            if one.info is not None:
                info_ids[own.round] = decode_info(one.info, self._center).identity or ""
        return Place(state, state, last, link, pending, info_ids)

    def waited(self, rows: Iterable[Row], pending: Iterable[Pending]) -> dict[int, Pending]:
        """The rounds that waited, those that were observed since too, in order."""
        found = {one.round: one for one in pending if one.decision is not None}
        for row in rows:
            if row.played is not None and (late := self._how(row).after) is not None:
                found[row.round] = Pending(row.round, row.info, Decision(late, b""))
        return dict(sorted(found.items()))

    def again(
        self, place: Place, rows: Iterable[Row], rounds: Mapping[int, Pending]
    ) -> Iterator[Step]:
        """All that happened after this place; `rounds` are all that waited then or later."""
        left = [one for one in rounds.values() if one.decision and one.decision.after >= place.last]
        left.reverse()
        for row in rows:
            for step in self._replay_decisions(place, left):
                yield step
                place = step.place
            before_it: tuple[Event, ...] = ()
            if row.info is not None and row.round not in rounds:
                place = self._replay_info(place, row.round, row.info)
                before_it = (SetInfo(decode_info(row.info, self._center)),)
            if row.round not in (place.pending if waiting(place.state) else (_next(place),)):
                raise ValueError(f"round {row.round} was observed and had not been decided")
            event = self._event(row)
            if isinstance(event, Observe) and event.committed:
                place = self.committed(place)
            before, place = place.state, self._observed(place, row, event)
            yield Step(place, row, before, (*before_it, event))
        yield from self._replay_decisions(place, left)
        if left:
            raise ValueError(f"round {left[-1].round} was decided after what was never observed")

    def _replay_decisions(self, place: Place, left: list[Pending]) -> Iterator[Step]:
        """Those that were decided after the last observation."""
        while left and left[-1].decision and left[-1].decision.after == place.last:
            one, before_it = left.pop(), tuple[Event, ...]()
            if one.info is not None:
                place = self._replay_info(place, one.round, one.info)
                before_it = (SetInfo(decode_info(one.info, self._center)),)
            if one.round != _next(place):
                raise ValueError(f"round {one.round} was decided out of order")
            before, place = place.state, self._deferred(place)
            yield Step(place, None, before, (*before_it, Decide()))

    def with_next_info(self, place: Place) -> Iterator[Step]:
        """What is known of the coming round, as a step."""
        own = place.pending.get(_next(place))
        if own is not None and own.info is not None:
            event = SetInfo(decode_info(own.info, self._center))
            yield Step(place, None, place.state, (event,))

    def _replay_info(self, place: Place, number: int, info: bytes) -> Place:
        if number != _next(place):
            raise ValueError(f"round {number} has side information out of order")
        return self._with_info(place, info)

    def with_pending_info(self, place: Place, pending: Iterable[Pending]) -> Place:
        """With what is known of the coming round; refused where the rounds that wait are not those
        of the state, or were decided otherwise: up to rounding, for under other versions bits may
        differ.
        """
        for one in pending:
            if one.decision is None and one.info is not None:
                place = self._replay_info(place, one.round, one.info)
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
    return next_round(place.state) + 1


def _close(K: HasLMO, x: Array, was: Array) -> bool:
    return bool(
        tuple(x.shape) == tuple(was.shape)
        and np.abs(to_numpy(x) - to_numpy(was)).max(initial=0.0) <= allowed_infeasibility(K, x)
    )
