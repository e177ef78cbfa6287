"""The journal of one session, written as it runs: in a file, or in a database of many.

Events are applied to a state when they happen, and again when the session is opened:

    for k = first, ..., last - 1:   decide the rounds that were decided after observation k
                                    observe observation k + 1
    decide those after the last;    give the next round its side information

A round is decided before its feedback arrives, and what is decided depends on all that arrived
before: so every round that waits has the number of the observation after which it was decided, in
`pending` while it waits and in `observations` from then on. A state that is kept is the one right
after its observation.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, final

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.core.arguments import as_flag
from tidewolf.core.arrays import as_count, to_numpy
from tidewolf.core.conforming import allowed_infeasibility
from tidewolf.core.errors import BrokenFile, CheckpointError, InvalidInput, TidewolfError
from tidewolf.core.feedback import Arrival, Feedback
from tidewolf.core.values import identity
from tidewolf.memory import EXPIRED, REMEMBERED
from tidewolf.methods.base import Learner, Progress
from tidewolf.methods.capabilities import Commits, beginning, committed
from tidewolf.methods.events import Decide, Event, Expire, Observe, SetInfo, after, waiting
from tidewolf.methods.late import next_round
from tidewolf.storage import feedback as written
from tidewolf.storage.tables import Content, Head, Pending, Row, Tables, digest

if TYPE_CHECKING:
    from tidewolf.storage.session_store import Backend

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

    @property
    def next_round(self) -> int:
        """The number of the next round, from 1."""
        return next_round(self.state) + 1


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
        self.learner, self._center = learner, learner.K.center
        self._commits = isinstance(learner, Commits)

    # --- as it happens ----------------------------------------------------------------------------

    def taken(self, place: Place, events: Sequence[Event], epoch: int) -> tuple[Place, list[Row]]:
        """Where these events lead, and the observations to keep."""
        rows = []
        for event in events:
            if isinstance(event, SetInfo):
                place = self._with_info(place, written.encode_info(event.info))
            elif isinstance(event, Decide):
                place = self._deferred(place)
            else:
                row, event = self._stored(place, event, epoch)
                rows.append(row)
                place = self._observed(place, row, event)
        return place, rows

    def committed(self, place: Place) -> Place:
        """With the next round committed."""
        if not self._commits:
            return place
        state = committed(self.learner, place.state)
        observed = state if place.observed is place.state else place.observed
        return place._replace(state=state, observed=observed)

    def _stored(self, place: Place, event: Expire | Observe, epoch: int) -> tuple[Row, Event]:
        """An event as it is kept, and as it is read again."""
        number = event.round if isinstance(event, Expire) else event.arrival.round
        own = place.pending.get(number + 1)
        late, info = (None, None) if own is None else (own.after, own.info)
        if isinstance(event, Expire):
            played = written.encode_played(written.How(late))
            return Row(place.last + 1, number + 1, 0, epoch, b"", info, played), event
        (_, feedback, point, instead), committed = event
        data, again = written.stored(feedback, self._center)
        how = written.How(late, point, instead, None if committed else True)
        played = written.encode_played(how)
        row = Row(place.last + 1, number + 1, feedback.rounds, epoch, data, info, played)
        return row, Observe(Arrival(number, again, point, instead), committed)

    def _with_info(self, place: Place, data: bytes) -> Place:
        number, info = place.next_round, written.decode_info(data, self._center)
        return place._replace(
            state=after(self.learner, place.state, SetInfo(info)),
            pending={**place.pending, number: Pending(number, data)},
            info_ids={**place.info_ids, number - 1: info.identity or ""},
        )

    def _deferred(self, place: Place) -> Place:
        number = place.next_round
        own = place.pending.get(number)
        state = after(self.learner, place.state, Decide())
        x = checkpoint.packed(waiting(state)[-1].x)
        pending = Pending(number, None if own is None else own.info, place.last, x)
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
            one = rounds[own.round + 1]
            pending[one.round] = one._replace(x=checkpoint.packed(own.x))
            if one.info is not None:
                info_ids[own.round] = written.decode_info(one.info, self._center).identity or ""
        return Place(state, state, last, link, pending, info_ids)

    def waited(self, rows: Iterable[Row], pending: Iterable[Pending]) -> dict[int, Pending]:
        """The rounds that waited, those that were observed since too, in order."""
        found = {one.round: one for one in pending if one.after is not None}
        for row in rows:
            late = written.decode_played(row.played, self.learner.K).after
            if late is not None:
                found[row.round] = Pending(row.round, row.info, late)
        return dict(sorted(found.items()))

    def again(
        self, place: Place, rows: Iterable[Row], rounds: Mapping[int, Pending]
    ) -> Iterator[Step]:
        """All that happened after this place; `rounds` are all that waited then or later."""
        left = [one for one in rounds.values() if one.after is not None and one.after >= place.last]
        left.reverse()
        for row in rows:
            for step in self._decisions_again(place, left):
                yield step
                place = step.place
            info = None if row.round in rounds else row.info
            place, before_it = self._info_again(place, row.round, info)
            if row.round not in (place.pending if waiting(place.state) else (place.next_round,)):
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
        while left and left[-1].after == place.last:
            one = left.pop()
            place, before_it = self._info_again(place, one.round, one.info)
            if one.round != place.next_round:
                raise ValueError(f"round {one.round} was decided out of order")
            before, place = place.state, self._deferred(place)
            yield Step(place, None, before, (*before_it, Decide()))

    def _info_again(
        self, place: Place, number: int, info: bytes | None
    ) -> tuple[Place, tuple[Event, ...]]:
        if info is None:
            return place, ()
        if number != place.next_round:
            raise ValueError(f"round {number} has side information out of order")
        return self._with_info(place, info), (SetInfo(written.decode_info(info, self._center)),)

    def _event(self, row: Row) -> Event:
        if row.rounds == 0:
            return Expire(row.round - 1)
        feedback = written.decode(row.feedback, self._center, checked=True)
        if feedback.rounds != row.rounds:
            raise ValueError(f"{row.rounds} rounds have feedback of {feedback.rounds}")
        how = written.decode_played(row.played, self.learner.K)
        return Observe(Arrival(row.round - 1, feedback, how.point, how.instead), not how.unsettled)

    def with_pending_info(self, place: Place, pending: Iterable[Pending]) -> Place:
        """With the side information of the next round; refused if the rounds that wait are not
        those of the state, or were decided otherwise: up to rounding, for under other versions bits
        may differ.
        """
        own = {one.round + 1: one.x for one in waiting(place.state)}
        for one in pending:
            if one.after is None:
                place, _ = self._info_again(place, one.round, one.info)
                continue
            x, was = own[one.round], to_numpy(checkpoint.unpacked(one.x, self._center))
            far = np.abs(to_numpy(x) - was).max(initial=0.0)
            if not far <= allowed_infeasibility(self.learner.K, x):
                raise ValueError(f"round {one.round} was decided otherwise")
        return place


@final
class Journal(Generic[S]):
    """A session as it is kept; `state` is the one to play from, `info_ids` the identities of the
    side information of rounds that wait and of the next one, by their numbers from 0.
    """

    state: S
    info_ids: Mapping[int, str]
    numbered: bool
    """whether contents of rounds are kept"""
    _place: Place
    _head: Head

    def __init__(
        self, backend: Backend, learner: Learner[S], *, snapshot_every: int, keep_history: bool
    ) -> None:
        self.learner, self._backend, self._event_log = learner, backend, EventLog(learner)
        self._every = as_count(snapshot_every, "snapshot_every")
        self._keep_history = as_flag(keep_history, "keep_history")
        self._mutex = threading.Lock()
        self._is_unsure = False
        """whether something was written of which it is not known whether it was kept"""
        try:
            content, self._epoch = backend.open(learner)
            self._head, self._place = content.head, self._resumed(content)
            self.state, self.info_ids = self._place.state, self._place.info_ids
            self.numbered = bool(backend.tables.last_contents(1))
        except BaseException:
            backend.close()
            raise

    def _resumed(self, content: Content) -> Place:
        """Load the last state, and apply again what came after it."""
        head, rows, pending = content.head, content.left, content.pending
        try:
            state = self.learner.load(content.state, source=self._backend.store)
            rounds = self._event_log.waited(rows, pending)
            place = self._event_log.begin(state, head.snapshot, content.link, rounds)
            for step in self._event_log.again(place, rows, rounds):
                place = step.place
            return self._event_log.with_pending_info(place, pending)
        except CheckpointError as error:
            raise type(error)(f"{self._backend.where}: {error}") from None
        except Warning:
            raise
        except Exception as error:  # hand-made content breaks in every way
            raise BrokenFile(
                f"{self._backend.where} has right checksums and holds what no "
                f"{type(self.learner).__name__} observes: {checkpoint.half_sentence(error)}."
            ) from None

    @property
    def contents(self) -> Mapping[int, str | None]:
        """The identities of what was observed of the last rounds."""
        with self._mutex:
            return self._backend.tables.last_contents(REMEMBERED)

    def content_of(self, number: int) -> str | None:
        """The identity of what was observed of a round; None if it is not known."""
        with self._mutex:
            return self._backend.tables.content_of(number + 1)

    def commit_next(self) -> None:
        """Commit the next round, if it is not."""
        with self._mutex:
            place = self._event_log.committed(self._place)
            self._place, self.state = place, place.state

    def take(
        self, events: Sequence[Event], content: str | None = None, *, commit_next: bool = True
    ) -> None:
        """Keep these events, all or none, and move to the state after them; what is refused is not
        kept and changes nothing. `content` and `commit_next` are those of `Memory.take`.
        """
        with self._mutex:
            self._require_writable()
            head, event_log = self._head, self._event_log
            place, rows = event_log.taken(self._place, events, self._epoch)
            if commit_next:
                place = event_log.committed(place)
            contents = {}
            if rows:
                head = head._replace(last=place.last, link=place.link, epoch=self._epoch)
                if head.last - head.snapshot >= self._every:
                    head = self._with_snapshot(head)
                contents = {row.round: content or None if row.rounds else EXPIRED for row in rows}
                if not (self.numbered or content is not None or EXPIRED in contents.values()):
                    contents = {}
            self._commit(head, place, rows, contents)

    def _with_snapshot(self, head: Head) -> Head:
        """With the state after the last observation, and without history if none is wanted."""
        head = head._replace(snapshot=head.last)
        return head if self._keep_history else head._replace(first=head.last, base=head.link)

    def _require_writable(self) -> None:
        """Refuse to write if nothing could be kept, or if the last change was interrupted so that
        this session may be behind the file.
        """
        self._backend.require_writable()
        if self._is_unsure:
            raise CheckpointError(
                f"An interrupt left it open whether the last change is in {self._backend.where}: "
                "close this session and open it again, and rounds counts what was observed."
            )

    def _commit(
        self,
        head: Head,
        place: Place,
        rows: Sequence[Row] = (),
        contents: Mapping[int, str | None] | None = None,
        note: tuple[str, str] | None = None,
        learner: Learner[Any] | None = None,
    ) -> None:
        """One transaction from the head as it is to the next, and the place of this session with
        it: observations, rounds that wait, a snapshot. It fails if another writer, of a later
        epoch, has been here meanwhile. With a `note` what came after the place is removed.

        If it is interrupted, the session stands where the file does. Signals are handled after
        calls, so assignments in a row are all done or none.
        """
        before, was, saves = self._head, self._place.pending, learner or self.learner

        def write(tables: Tables) -> None:
            if not tables.move_head(before, head):
                what = f"{self._backend.where} was changed while this session had it open"
                raise CheckpointError(f"{what}: open it again.")
            if note is not None:
                tables.cut(head.last, place.next_round, place.pending)
                tables.note(*note)
            for row in rows:
                tables.add(row)
            if was is not place.pending:
                tables.write_pending(was, place.pending, head.link)
            if contents:
                tables.write_contents(contents)
            if head.snapshot != before.snapshot or note is not None:
                tables.add_snapshot(head, saves.save(place.observed), self._every)
            if head.first != before.first:
                oldest = 0 if self._keep_history else place.next_round - 1 - REMEMBERED
                tables.forget(head.first, oldest)

        numbered = self.numbered or bool(contents)
        after = head, place, numbered, place.state, place.info_ids
        self._is_unsure = True
        try:
            self._backend.write(write, head.last)
        except self._backend.errors as error:
            self._is_unsure = False
            raise CheckpointError(
                f"Nothing was kept in {self._backend.where}: {error}. All that was acknowledged "
                "is there; mend that and try again."
            ) from error
        except BaseException as error:
            is_kept = self._holds(head, place)
            if is_kept:
                self._head, self._place, self.numbered, self.state, self.info_ids = after
            self._is_unsure = is_kept is None and not isinstance(error, Exception)
            raise
        self._head, self._place, self.numbered, self.state, self.info_ids = after
        self._is_unsure = False

    def _holds(self, head: Head, place: Place) -> bool | None:
        """Whether what is kept stands at this place; None if that cannot be read."""
        tables = self._backend.reread()
        if tables is None:
            return None
        rounds = [one.columns(head.link) for one in place.pending.values()]
        return bool(tables.read_head() == head and tables.read_pending() == rounds)

    def rollback(self, number: int) -> None:
        """To the moment when this round became the next one, and for good: what came later is
        removed, in one transaction.
        """
        with self._mutex:
            self._require_writable()
            upcoming, place = next_round(self.state), self._back_to(number)
            last, link = place.last, place.link
            head = self._head._replace(last=last, link=link, snapshot=last, epoch=self._epoch)
            note = _note(f"from round {upcoming + 1} to round {number + 1}")
            self._commit(head, place, note=("rolled back", note))

    def _back_to(self, number: int) -> Place:
        """Where it stood when this round became the next one."""
        place, steps = self._replay(number)
        for step in steps:
            is_expiry = step.row is not None and step.row.rounds == 0
            if next_round(place.state) == number and not is_expiry:
                break
            place = step.place
        if next_round(place.state) != number:
            raise InvalidInput(f"Round {number} was observed together with the rounds before it.")
        return place

    def _replay(self, number: int, *, nearest: bool = False) -> tuple[Place, Iterator[Step]]:
        """The place of the last state before this round, and all steps after it. `nearest`: the
        first there is, if the history begins later.
        """
        head, event_log, tables = self._head, self._event_log, self._backend.tables
        rounds = event_log.waited(tables.late_rows(), self._place.pending.values())
        state, last, link = self._before(number, nearest)
        place = event_log.begin(state, last, link, rounds)
        return place, event_log.again(place, tables.rows_after(last, head.last), rounds)

    def _before(self, number: int, nearest: bool) -> tuple[S, int, bytes]:
        """A state to come to this round from, with the number and the link of its observation."""
        head = self._head
        for last, link, data in self._backend.tables.snapshots(head):
            state = self.learner.load(data, source=self._backend.store)
            upcoming = next_round(state)
            if upcoming < number or (last == head.first and (nearest or upcoming == number)):
                return state, last, link
        if head.first > 0:
            raise InvalidInput(
                f"Round {number} cannot be gone back to: the history in {self._backend.where} "
                "begins later (keep_history=False, or the learner was replaced)."
            )
        return beginning(self.learner), 0, head.base

    def migrate(self, learner: Learner[Any], state: Any) -> None:
        """Resume with another learner, from a state of its own in which the same rounds wait; the
        side information of the next round is to be given again. The history before it is dropped.
        """
        with self._mutex:
            self._require_writable()
            last = self._head.last + 1
            link = digest(self._head.link, identity(learner).encode())
            event_log = EventLog(learner)
            place = event_log.begin(state, last, link, self._place.pending)
            gone = {one: EXPIRED for one in self._place.pending if one not in place.pending}
            gone.pop(next_round(state) + 1, None)
            try:
                self._epoch += 1
                head = Head(last, link, last, link, last, self._epoch)
                note = "migrated", _note(f"before round {next_round(state) + 1}")
                self._commit(head, place, contents=gone, note=note, learner=learner)
            finally:
                if self._place is place:
                    self._event_log, self.learner = event_log, learner

    def way(self) -> list[Step]:
        """The last steps to where it stands, applied again: from before the oldest round that
        waits, and from before the last that was observed, as far as the history reaches.
        """
        with self._mutex:
            least = min([next_round(self.state), *self._place.pending]) - 2
            steps = list(self._replay(max(0, least), nearest=True)[1])
            own = self._place.pending.get(next_round(self.state) + 1)
            if own is not None and own.info is not None:
                event = SetInfo(written.decode_info(own.info, self.learner.K.center))
                steps.append(Step(self._place, None, self.state, (event,)))
            return steps

    def history(self) -> Iterator[Feedback]:
        """What was observed, oldest first, as the learner received it."""
        number, last = 0, self._head.last
        while True:
            with self._mutex:
                rows = self._backend.tables.some_rows(number, last)
            if not rows:
                return
            center = self.learner.K.center
            yield from (written.decode(row.feedback, center) for row in rows if row.rounds)
            number = rows[-1].arrived

    def close(self) -> None:
        """Snapshot, so that nothing is left to observe again, and let go of where it is kept.

        Twice does no harm.
        """
        with self._mutex:
            try:
                if self._backend.is_written and self._head.snapshot < self._head.last:
                    with suppress(TidewolfError):  # no observation depends on it
                        self._require_writable()
                        head = self._with_snapshot(self._head._replace(epoch=self._epoch))
                        self._commit(head, self._place)
            finally:
                self._backend.close()


def _note(what: str) -> str:
    return f"{datetime.now(UTC).isoformat(timespec='seconds')} {what}"
