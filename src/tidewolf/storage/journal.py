"""The journal of one session, written as it runs: in a file, or in a database of many."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from tidewolf.core import checkpoint
from tidewolf.core.arguments import as_flag
from tidewolf.core.arrays import as_count
from tidewolf.core.errors import (
    BrokenFile,
    CheckpointError,
    InvalidInput,
    TidewolfError,
    WrongType,
)
from tidewolf.core.feedback import Feedback
from tidewolf.core.values import identity
from tidewolf.memory import EXPIRED, REMEMBERED
from tidewolf.methods.base import Learner, Progress
from tidewolf.methods.events import Event, SetInfo
from tidewolf.methods.late import next_round
from tidewolf.storage.event_log import EventLog, Place, Step
from tidewolf.storage.feedback import decode, decode_info
from tidewolf.storage.tables import Content, Head, Row, Tables, digest

if TYPE_CHECKING:
    from tidewolf.storage.session_store import Backend

S = TypeVar("S", bound=Progress)


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
            unchanged = (
                tables.read_head(locked=True) == before
                if head == before
                else tables.move_head(before, head)
            )
            if not unchanged:
                raise CheckpointError(
                    f"{self._backend.where} was changed while this session had it open: close it "
                    "and open it again."
                )
            if note is not None:
                tables.cut(head.last, next_round(place.state) + 1, place.pending)
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
                tables.forget(head.first)
                if not self._keep_history:
                    tables.forget_contents(next_round(place.state) - REMEMBERED)

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
        return tables.read_head() == head and tables.read_pending() == rounds

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
            raise InvalidInput(
                f"Round {number} cannot be gone back to: it was observed together with the rounds "
                "before it."
            )
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
                f"Round {number} cannot be gone back to: the history in {self._backend.where} does "
                "not reach so far. It begins where observations were thrown away "
                "(keep_history=False), or the learner was replaced."
            )
        return self.learner.begin(), 0, head.base

    def migrate(self, learner: Learner[Any], state: Any) -> None:
        """Resume with another learner, from a state of its own in which the same rounds wait; the
        side information of the next round is to be given again. The history before it is dropped.
        """
        if not isinstance(state, learner.state_type):
            raise WrongType(
                f"A session of {type(learner).__name__} resumes from a state of it, not from a "
                f"{type(state).__name__}."
            )
        with self._mutex:
            self._require_writable()
            last = self._head.last + 1
            link = digest(self._head.link, identity(learner).encode())
            event_log = EventLog(learner)
            try:
                place = event_log.begin(state, last, link, self._place.pending)
            except ValueError as error:
                raise InvalidInput(f"The state is none of this session: {error}.") from None
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
                event = SetInfo(decode_info(own.info, self.learner.hard_set.center))
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
            center = self.learner.hard_set.center
            yield from (decode(row.feedback, center) for row in rows if row.rounds)
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
