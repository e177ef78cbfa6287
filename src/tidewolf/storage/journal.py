"""The journal of one session, written as it runs: in a file, or in a database of many."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, final

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
from tidewolf.methods.events import Decide, Event, Observe
from tidewolf.methods.late import next_round
from tidewolf.storage.event_log import EventLog, Place, Step
from tidewolf.storage.feedback import decode
from tidewolf.storage.records import Content, Head, Row, digest
from tidewolf.storage.tables import Tables

if TYPE_CHECKING:
    from tidewolf.storage.file import File
    from tidewolf.storage.session_store import ReadHandle, SessionHandle

S = TypeVar("S", bound=Progress)


Backend: TypeAlias = "File | SessionHandle | ReadHandle"
"""Where a session is kept: a file of its own, or a place among others."""


@final
class Journal(Generic[S]):
    """A session as it is kept; `state` is the one to play from, `info_ids` the identities of what
    is known of rounds that wait and of the coming one, by their numbers from 0.
    """

    numbered: bool
    """whether contents of rounds are kept"""
    _place: Place
    _head: Head
    _epoch: int
    """what this writer's commits carry: one more than that of the writer before"""

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
            self._resume(backend.open(learner))
            backend.begin()
        except BaseException:
            backend.close()
            raise

    @property
    def state(self) -> S:
        state: S = self._place.state
        return state

    @property
    def info_ids(self) -> Mapping[int, str]:
        return self._place.info_ids

    @property
    def contents(self) -> Mapping[int, str | None]:
        """What was observed of the last rounds, by its identity."""
        with self._mutex:
            return self._backend.tables.last_contents(REMEMBERED)

    def content_of(self, number: int) -> str | None:
        """The identity of what was observed of a round; None where it is not known."""
        with self._mutex:
            return self._backend.tables.content_of(number + 1)

    def commit_next(self) -> None:
        """The coming round, where it is not."""
        with self._mutex:
            self._place = self._event_log.committed(self._place)

    def take(
        self, events: Sequence[Event], content: str | None = None, *, commit_next: bool = True
    ) -> None:
        """Keep these turns, all or none, and go on to the state after them; whatever is refused is
        not kept and changes nothing. `content` and `commit_next` are those of `Memory.take`.
        """
        with self._mutex:
            self._require_writable()
            before = self._head
            place, rows = self._event_log.taken(self._place, events, self._epoch)
            if commit_next:
                place = self._event_log.committed(place)
            head = before
            if rows:
                head = before._replace(last=place.last, link=place.link, epoch=self._epoch)
            if head.last - head.snapshot >= self._every:
                head = self._with_snapshot(head)
            over = {row.round: content or None if row.rounds else EXPIRED for row in rows}
            numbered = self.numbered or content is not None or EXPIRED in over.values()
            self._keep(
                lambda: self._commit(head, place, rows, over if numbered else {}),
                (head, place, numbered),
                lambda error: self._not_kept(events, error),
            )
            if rows:
                self._backend.acknowledge(head.last)

    def _keep(
        self,
        write: Callable[[], None],
        after: tuple[Head, Place, bool],
        refused: Callable[[Exception], CheckpointError],
    ) -> None:
        """Write to where it is kept, then stand there; if that is interrupted, stand where the file
        does. Signals are handled after calls, so assignments in a row are all done or none.
        """
        self._is_unsure = True
        try:
            write()
        except self._backend.errors as error:
            self._is_unsure = False
            raise refused(error) from error
        except BaseException as error:
            is_kept = self._holds(*after[:2])
            if is_kept:
                self._head, self._place, self.numbered = after
            self._is_unsure = is_kept is None and not isinstance(error, Exception)
            raise
        self._head, self._place, self.numbered = after
        self._is_unsure = False

    def _require_writable(self) -> None:
        """Refuse to write if nothing could be kept, or if the last write was interrupted so that
        this session may be behind the file.
        """
        self._backend.require_writable()
        if self._is_unsure:
            raise CheckpointError(
                f"An interrupt left it open whether the last change is in {self._backend.where}: "
                "close this session and open it again, and rounds counts what was observed."
            )

    def _not_kept(self, events: Sequence[Event], error: Exception) -> CheckpointError:
        if isinstance(events[-1], Observe):
            return CheckpointError(
                f"The observation was not kept in {self._backend.where}: {error}. All before it is "
                "there; mend that and observe it again."
            )
        number = next_round(self.state) + sum(isinstance(event, Decide) for event in events)
        return CheckpointError(
            f"What is known and decided before round {number} was not kept in "
            f"{self._backend.where}: "
            f"{error}. Nothing was decided on it; mend that and play again."
        )

    def _holds(self, head: Head, place: Place) -> bool | None:
        """Whether what is kept stands at this place; None if that cannot be read."""
        self._backend.undo()  # else rows would be read that are not committed
        if not self._backend.is_in_place():
            return None
        rounds = [one.columns(head.link) for one in place.pending.values()]
        tables = self._backend.tables
        return tables.read_head() == head and tables.read_pending() == rounds

    def rollback(self, number: int) -> None:
        """To the moment when this round became the coming one, and for good: what came later is
        removed, in one transaction.
        """
        with self._mutex:
            self._require_writable()
            upcoming, place = next_round(self.state), self._back_to(number)
            self._replace(
                place,
                self._head._replace(last=place.last, link=place.link, snapshot=place.last),
                ("rolled back", f"from round {upcoming + 1} to round {number + 1}"),
            )

    def _back_to(self, number: int) -> Place:
        """Where it stood when this round became the coming one: done again from the last state
        before that.
        """
        head, event_log, tables = self._head, self._event_log, self._backend.tables
        state, last, link = self._before(number)
        rounds = event_log.waited(tables.late_rows(), self._place.pending.values())
        place = event_log.begin(state, last, link, rounds)
        for step in event_log.again(place, tables.rows_after(last, head.last), rounds):
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

    def _before(self, number: int, *, nearest: bool = False) -> tuple[S, int, bytes]:
        """A state to come to this round from, with the number and the link of its observation.
        `nearest`: the first there is, where the history begins later.
        """
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
        """Go on with another learner, from a state of its own in which the same rounds wait; what
        was known of the coming round is to be told again. The history before it is dropped.
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
                self._replace(
                    place,
                    Head(last, link, last, link, last, self._epoch),
                    ("migrated", f"before round {next_round(state) + 1}"),
                    gone,
                    learner.save(place.observed),
                )
            finally:
                if self._place is place:
                    self._event_log, self.learner = event_log, learner

    def _replace(
        self,
        place: Place,
        head: Head,
        said: tuple[str, str],
        contents: Mapping[int, str] | None = None,
        state: bytes | None = None,
    ) -> None:
        """One transaction to another place, with a snapshot there and without what came later."""
        head, before, was = head._replace(epoch=self._epoch), self._head, self._place.pending
        if head.last < before.last:
            self._backend.acknowledge(head.last)  # first: the note is never too high
        upcoming = next_round(place.state) + 1
        snapshot = self.learner.save(place.observed) if state is None else state
        note = f"{datetime.now(UTC).isoformat(timespec='seconds')} {said[1]}"

        def write(tables: Tables) -> None:
            self._require_unchanged(tables.move_head(before, head))
            tables.cut(head.last, upcoming, place.pending)
            tables.forget(head.first)
            if contents:
                tables.write_contents(contents)
            tables.write_pending(was, place.pending, head.link)
            tables.add_snapshot(head, snapshot, self._every)
            tables.note(said[0], note)

        self._keep(
            lambda: self._backend.write(write),
            (head, place, self.numbered),
            lambda error: CheckpointError(
                f"Nothing was changed in {self._backend.where}: {error}. Mend that and try again."
            ),
        )
        self._backend.acknowledge(head.last)

    def way(self) -> list[Step]:
        """The last steps to where it stands, done again: from before the oldest round that waits,
        and from before the last that was observed, as far as the history reaches.
        """
        with self._mutex:
            head, event_log, tables = self._head, self._event_log, self._backend.tables
            rounds = event_log.waited(tables.late_rows(), self._place.pending.values())
            least = min([next_round(self.state), *self._place.pending]) - 2
            state, last, link = self._before(max(0, least), nearest=True)
            place = event_log.begin(state, last, link, rounds)
            rows = tables.rows_after(last, head.last)
            steps = list(event_log.again(place, rows, rounds))
            return [*steps, *event_log.with_next_info(self._place)]

    def history(self) -> Iterator[Feedback]:
        """What was observed, oldest first, as the learner was told it."""
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
                    head = self._with_snapshot(self._head._replace(epoch=self._epoch))
                    with suppress(
                        *self._backend.errors, TidewolfError
                    ):  # no observation depends on it
                        self._backend.require_writable()
                        self._commit(head, self._place)
            finally:
                self._backend.close()

    # --- where it is kept ------------------------------------------------------------------------

    def _resume(self, content: Content) -> None:
        """Load the last state, and do again what came after it."""
        head, rows, pending = content.head, content.left, content.pending
        try:
            state = self.learner.load(content.state, source=self._backend.store)
        except CheckpointError as error:
            raise type(error)(f"{self._backend.where}: {error}") from None
        with self._reading("observes"):
            rounds = self._event_log.waited(rows, pending)
            place = self._event_log.begin(state, head.snapshot, content.link, rounds)
            for step in self._event_log.again(place, rows, rounds):
                place = step.place
        with self._reading("knows"):
            self._place = self._event_log.with_pending_info(place, pending)
        self._head, self._epoch = head, self._backend.epoch_after(head)
        self.numbered = self._backend.tables.has_contents

    @contextmanager
    def _reading(self, does: str) -> Iterator[None]:
        """Where what the file holds is handed to the learner."""
        try:
            yield
        except CheckpointError as error:
            raise type(error)(f"{self._backend.where}: {error}") from None
        except Exception as error:  # hand-made content breaks in every way
            who, wrong = type(self.learner).__name__, checkpoint.half_sentence(error)
            raise BrokenFile(
                f"{self._backend.where} has right checksums and holds what no {who} {does}: "
                f"{wrong}."
            ) from None

    def _commit(
        self,
        head: Head,
        place: Place,
        rows: Sequence[Row] = (),
        contents: Mapping[int, str | None] | None = None,
    ) -> None:
        """One transaction from the head as it is to the next: observations, rounds that wait, a
        snapshot. It fails where another writer, of a later epoch, has been here meanwhile.
        """
        before, was, learner = self._head, self._place.pending, self.learner
        has_snapshot = head.snapshot == head.last != before.snapshot

        def write(tables: Tables) -> None:
            if head == before:
                self._require_unchanged(tables.held_head() == before)
            else:
                self._require_unchanged(tables.move_head(before, head))
            for row in rows:
                tables.add(row)
            if was is not place.pending:
                tables.write_pending(was, place.pending, head.link)
            if contents:
                tables.write_contents(contents)
            if has_snapshot:
                tables.add_snapshot(head, learner.save(place.observed), self._every)
            if head.first != before.first:
                tables.forget(head.first)
                tables.forget_contents(next_round(place.state) - REMEMBERED)

        self._backend.write(write)

    def _require_unchanged(self, unchanged: bool) -> None:
        """Refuse to write where another writer has been here meanwhile."""
        if not unchanged:
            raise CheckpointError(
                f"{self._backend.where} was changed while this session had it open: close it and "
                "open it again."
            )

    def _with_snapshot(self, head: Head) -> Head:
        """With the state after the last observation, and without history where none is wanted."""
        head = head._replace(snapshot=head.last)
        return head if self._keep_history else head._replace(first=head.last, base=head.link)
