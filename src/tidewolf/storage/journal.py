"""The journal of one session, written as it runs: in a file, or in a database of many.

Whatever changes the state is an event. It is written before it counts, and applied again, in the
same order, when the session is opened:

    state = the last snapshot;   for every event after it:   state = after(learner, state, event)

A decision whose feedback comes later is written with its point, so that a state under other
versions that would have decided otherwise is noticed.

Events are numbers, arrays and the names of their kinds, as bytes:

    info        side information of the next round: its parts by name, those that were given
    decide      the decision of a round whose feedback comes later
    observe     the kind of the feedback and its fields by name, a function in it likewise; and how
                the round was observed, if it was not as decided: what was played, and so on
    expire      nothing

So a later tidewolf may add fields with defaults, and reads what was written before.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar, final

import numpy as np

from tidewolf import observation
from tidewolf.core import (
    arguments,
    arrays,
    checkpoint,
    conforming,
    errors,
    oracle,
    round_info,
    values,
)
from tidewolf.core.batch import Batch
from tidewolf.core.errors import BrokenFile, CheckpointError
from tidewolf.core.feedback import (
    Arrival,
    Bandit,
    Feedback,
    FirstOrder,
    FullInformation,
    Instead,
    Limits,
    Spend,
)
from tidewolf.core.types import Array
from tidewolf.functions.combined import can_be_saved, restored, saved_pair
from tidewolf.kernels.rounds import VALUE
from tidewolf.memory import EXPIRED, REMEMBERED, Place, Step, carried
from tidewolf.methods import base, capabilities, compiled_rounds, late, partly_seen
from tidewolf.methods.events import (
    Decide,
    Event,
    Expire,
    Observe,
    SetInfo,
    round_of,
    stepped,
    waiting,
)
from tidewolf.storage.database import Head, Row, Tables, digest
from tidewolf.storage.session_store import Backend

S = TypeVar("S", bound=base.Progress)
# Events after which a round does not wait any more.
_OVER = ("observe", "expire")


@final
class Journal(Generic[S]):
    """A session as it is kept; the session calls one method at a time."""

    def __init__(
        self, backend: Backend, learner: base.Learner[S], *, snapshot_every: int, keep_history: bool
    ) -> None:
        self.learner, self._backend = learner, backend
        self._every = arrays.as_count(snapshot_every, "snapshot_every")
        self._keep_history = arguments.as_flag(keep_history, "keep_history")
        self._process = os.getpid()
        # whether something was written of which it is not known whether it was kept
        self._is_unsure = False
        # contents of rounds that may not be on disk yet; rounds from 1
        self._fresh: dict[int, str | None] = {}
        try:
            self._head, content, self._epoch = backend.open(learner)
            self.place = self._resumed(*content)
            # whether contents of rounds are kept
            self.numbered = bool(backend.tables.last_contents(1))
        except BaseException:
            backend.close()
            raise

    def _resumed(self, state: bytes, link: bytes, left: Iterable[Row]) -> Place:
        try:
            place = self._loaded(self._head.snapshot, link, state)
            for _, after in self._again(place, left):
                place = after
            return place
        except CheckpointError as error:
            raise type(error)(f"{self._backend.where}: {error}") from None
        except Warning:
            raise
        except Exception as error:  # hand-made content breaks in every way
            raise BrokenFile(
                f"{self._backend.where} has right checksums and holds what no "
                f"{type(self.learner).__name__} observes: {checkpoint.half_sentence(error)}."
            ) from None

    def _loaded(self, last: int, link: bytes, data: bytes) -> Place:
        info_ids, _ = checkpoint.session_of(data)
        return Place(self.learner.load(data, source=self._backend.store), info_ids, last, link)

    def _again(self, place: Place, rows: Iterable[Row]) -> Iterator[tuple[Step, Place]]:
        """The events after this place, applied again, and where each led; refused if they do not
        follow each other, or a round would be decided otherwise: up to rounding, because under
        other versions bits may differ.
        """
        learner, K = self.learner, self.learner.K
        for row in rows:
            event = read_event(row.kind, row.round - 1, row.data, K)
            if isinstance(event, Observe) and event.committed:
                place = place.committed(learner)
            before = place.state
            upcoming, rounds = late.next_round(before), [one.round for one in waiting(before)]
            if row.round - 1 not in (rounds if rounds and row.kind in _OVER else [upcoming]):
                raise ValueError(f"round {row.round} has an event out of order")
            state = stepped(learner, before, event)
            if isinstance(event, Decide):
                x, was = waiting(state)[-1].x, checkpoint.unpacked(row.data, K.center)
                far = np.abs(arrays.to_numpy(x) - arrays.to_numpy(was)).max(initial=0.0)
                if not far <= conforming.allowed_infeasibility(K, x):
                    raise ValueError(f"round {row.round} was decided otherwise")
            step = Step(upcoming, place, (event,))
            place = place.after(event, state, row.number, row.link(place.link))
            yield step, place

    def _taken(self, place: Place, event: Event) -> tuple[Place, Row]:
        data, event = stored(event, self.learner.K)
        state = stepped(self.learner, place.state, event)
        if isinstance(event, Decide):
            data = checkpoint.packed(waiting(state)[-1].x)
        return self._led(place, event, state, data)

    def _led(self, place: Place, event: Event, state: Any, data: bytes) -> tuple[Place, Row]:
        number = round_of(place.state, event) + 1
        row = Row(place.last + 1, KINDS[type(event)], number, self._epoch, data)
        return place.after(event, state, row.number, row.link(place.link)), row

    @property
    def contents(self) -> Mapping[int, str | None]:
        return self._backend.tables.last_contents(REMEMBERED)

    def content_of(self, number: int) -> str | None:
        known = self._fresh.get(number + 1)
        return self._backend.tables.content_of(number + 1) if known is None else known

    def take_arrays(self, found: compiled_rounds.Progressed, step: Step, by_number: bool) -> None:
        """Keep a round that a kernel played, and move to what it left; `by_number`: whether the
        round was given so.
        """
        seen: Any = step.feedback
        content = observation.content(seen.last, None) if by_number or self.numbered else None
        given = seen.given
        if not isinstance(given, FirstOrder):
            K, rows = self.learner.K, given.given
            given = observation.of_costs(
                K, rows[1], rows[5], seen.x, float(found.columns[0, VALUE])
            )
        self._require_writable()
        event = Observe(Arrival(seen.round, given))
        place, row = self._led(self.place, event, found.after, encode_plain(given))
        self._keep(place, [row], content)

    def take(
        self, events: Sequence[Event], content: str | None = None, *, commit_next: bool = True
    ) -> None:
        """Keep these events, all or none, and move to the state after them; what is refused is not
        kept and changes nothing. `content` and `commit_next` are those of `Memory.take`.
        """
        self._require_writable()
        place, rows = self.place, list[Row]()
        for event in events:
            place, row = self._taken(place, event)
            rows.append(row)
        if commit_next:
            place = place.committed(self.learner)
        self._keep(place, rows, content)

    def _keep(self, place: Place, rows: Sequence[Row], content: str | None) -> None:
        head = self._head._replace(last=place.last, link=place.link, epoch=self._epoch)
        is_due = head.last - head.snapshot >= self._every
        over = {"observe": content or None, "expire": EXPIRED}
        numbered = self.numbered or content is not None or any(row.kind == "expire" for row in rows)
        contents = {row.round: over[row.kind] for row in rows if numbered and row.kind in over}
        self._commit(self._with_snapshot(head) if is_due else head, place, rows, contents)

    def _with_snapshot(self, head: Head) -> Head:
        head = head._replace(snapshot=head.last)
        return head if self._keep_history else head._replace(first=head.last, base=head.link)

    def _require_writable(self) -> None:
        """Refuse to write if the session only reads, if nothing could be kept, or if the last
        change was interrupted so that this session may be behind the file.
        """
        where, is_reader = self._backend.where, self._backend.read_only
        if is_reader or self._process != os.getpid():
            how = "with read_only=True" if is_reader else "by the process before a fork"
            raise CheckpointError(f"{where} was opened {how}: it only reads.")
        self._backend.require_writable()
        errors.require(
            not self._is_unsure,
            CheckpointError,
            f"An interrupt left it open whether the last change is in {where}: open it again, "
            "and rounds counts what was observed.",
        )

    def _commit(
        self,
        head: Head,
        place: Place,
        rows: Sequence[Row] = (),
        contents: Mapping[int, str | None] | None = None,
        note: tuple[str, str] | None = None,
        learner: base.Learner[Any] | None = None,
    ) -> None:
        """One transaction to the next head and place: events, what was observed, a snapshot. It
        fails if another writer has been here. With a `note` what came after the place is removed.

        If it is interrupted, the session stands where the file does. Signals are handled after
        calls, so assignments in a row are all done or none.
        """
        before, saves = self._head, learner or self.learner

        def write(tables: Tables) -> None:
            if not tables.move_head(before, head, place.state.t):
                raise CheckpointError(f"{self._backend.where} was changed since: open it again.")
            if note is not None:
                rounds = [one.round + 1 for one in waiting(place.state)]
                tables.cut(head.last, late.next_round(place.state) + 1, rounds)
                name, what = note
                tables.note(name, f"{datetime.now(UTC).isoformat(timespec='seconds')} {what}")
            for row in rows:
                tables.add(row)
            if contents:
                tables.write_contents(contents)
            if head.snapshot != before.snapshot or note is not None:
                state = saves.save(compiled_rounds.whole(place.state))
                data = checkpoint.with_session(state, place.info_ids, None)
                tables.add_snapshot(head, data, self._every)
            if head.first != before.first:
                oldest = 0 if self._keep_history else late.next_round(place.state) - REMEMBERED
                tables.forget(head.first, oldest)

        after = head, place, self.numbered or bool(contents)
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
            tables = self._backend.reread()
            is_kept = None if tables is None else tables.read_head() == head
            if is_kept:
                self._head, self.place, self.numbered = after
            self._is_unsure = is_kept is None and not isinstance(error, Exception)
            raise
        self._head, self.place, self.numbered = after
        self._is_unsure = False
        if note is not None or len(self._fresh) > REMEMBERED:
            self._fresh = {}
        self._fresh.update(contents or {})

    def rollback(self, number: int, then: Any = None) -> None:
        """To the moment when this round became the next one, and for good: what came later is
        removed, in one transaction. The history in the file alone says where that is.
        """
        self._require_writable()
        upcoming, (place, steps) = late.next_round(self.place.state), self._replay(number)
        for step, after in steps:
            if step.number == number and not isinstance(step.events[0], Expire):
                break
            place = after
        errors.refuse(
            late.next_round(place.state) != number,
            f"Round {number} was observed together with rounds before it: go back to the "
            "first of them.",
        )
        head = Head(*self._head[:2], place.last, place.link, place.last, self._epoch)
        note = "rolled back", f"from round {upcoming + 1} to round {number + 1}"
        self._commit(head, place, note=note)
        self.numbered = bool(self._backend.tables.last_contents(1))

    def _replay(
        self, number: int, *, nearest: bool = False
    ) -> tuple[Place, Iterator[tuple[Step, Place]]]:
        """The place of the last state before this round, and all steps after it. `nearest`: the
        first there is, if the history begins later.
        """
        head, tables = self._head, self._backend.tables
        for snapshot in tables.snapshots(head):
            place = self._loaded(*snapshot)
            upcoming = late.next_round(place.state)
            is_it = nearest or (upcoming == number and number not in place.info_ids)
            if upcoming < number or (place.last == head.first and is_it):
                break
        else:
            place = Place(capabilities.beginning(self.learner), link=head.base)
            errors.refuse(
                head.first > 0,
                f"Round {number} cannot be gone back to: the history in {self._backend.where} "
                "begins later (keep_history=False, or the learner was replaced).",
            )
        return place, self._again(place, tables.rows_after(place.last, head.last))

    def migrate(self, learner: base.Learner[Any], state: Any) -> None:
        """Resume with another learner, from a state of its own in which the same rounds wait; the
        side information of the next round is to be given again. The history before it is dropped.
        """
        self._require_writable()
        last = self._head.last + 1
        link = digest(self._head.link, values.identity(learner).encode())
        info_ids, gone = carried(self.place, state)
        place, contents = Place(state, info_ids, last, link), {n + 1: gone[n] for n in gone}
        try:
            self._epoch += 1
            head = Head(last, link, last, link, last, self._epoch)
            note = "migrated", f"before round {late.next_round(state) + 1}"
            self._commit(head, place, contents=contents, note=note, learner=learner)
        finally:
            if self.place is place:
                self.learner = learner

    def way(self) -> list[Step]:
        """The last steps to where it stands, applied again: from before the oldest round that
        waits, and from before the last that was observed, as far as the history reaches.
        """
        state = self.place.state
        least = min([late.next_round(state) - 2, *(one.round - 1 for one in waiting(state))])
        return [step for step, _ in self._replay(max(0, least), nearest=True)[1]]

    def history(self) -> Iterator[Feedback]:
        last, after = self._head.last, 0
        while rows := self._backend.tables.some_rows(after, last):
            observed, center = (row for row in rows if row.kind == "observe"), self.learner.K.center
            yield from (decode(row.data, center) for row in observed)
            after = rows[-1].number

    def close(self) -> None:
        """Snapshot, so that nothing is left to observe again, and let go of where it is kept.

        Twice does no harm.
        """
        try:
            if self._head.snapshot < self._head.last:
                with suppress(errors.TidewolfError):  # of a reader, or one that is closed
                    self._require_writable()
                    self._commit(
                        self._with_snapshot(self._head._replace(epoch=self._epoch)), self.place
                    )
        finally:
            self._backend.close()


# --- events as bytes ------------------------------------------------------------------------------

# What events are called in a database.
KINDS = {SetInfo: "info", Decide: "decide", Observe: "observe", Expire: "expire"}
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (FirstOrder, Bandit, FullInformation)}
_INFO = "RoundInfo"
# What was played; what that cost; whether the next round was not committed, as with deadlines; what
# is remembered of costs.
_DOUBLE = np.dtype(np.float64)
_ARRAYS = ",".join([f'["{_DOUBLE.str}",[%s]]'] * 2)
# What stands before the arrays of plain feedback, as `encode` writes it.
_LINE = (
    '[{"list":["FirstOrder",{"record":{"loss_gradient":{"array":"a0","numpy":true},'
    '"violation":{"float":"%s"},"constraint_gradient":{"array":"a1","numpy":true},'
    '"loss_slope":{"float":"%s"},"constraint_slope":{"float":"%s"},"rounds":1}}]},'
    f"[{_ARRAYS}]]\n"
)


def stored(event: Event, K: oracle.HasLMO) -> tuple[bytes, Event]:
    """An event as bytes, and as `read_event` reads them again; the bytes of a decision are those
    of its point.
    """
    number, data = 0, b""
    if isinstance(event, SetInfo):
        data = encode_info(event.info)
    elif isinstance(event, Observe):
        (number, feedback, point, instead, costs), committed = event
        is_usual = point is costs is None and committed
        if is_usual and isinstance(feedback, FirstOrder) and feedback.is_plain:
            f, violation, g, loss_slope, constraint_slope, *_ = feedback
            f, g = arrays.frozen(f.copy()), arrays.frozen(g.copy())
            again = FirstOrder(f, violation, g, loss_slope, constraint_slope, 1)
            return encode_plain(again), Observe(Arrival(number, again))
        how = {
            "point": point,
            "instead": None if instead is None else tuple(instead),
            "unsettled": None if committed else True,
            "costs": None if costs is None else tuple(costs),
        }
        data = encode(feedback, {name: part for name, part in how.items() if part is not None})
    return data, read_event(KINDS[type(event)], number, data, K) if data else event


def read_event(kind: str, number: int, data: bytes, K: oracle.HasLMO) -> Event:
    match kind:
        case "info":
            return SetInfo(decode_info(data, K.center))
        case "observe":
            return _read_observation(number, data, K)
        case "decide":
            return Decide()
        case "expire" if not data:
            return Expire(number)
    raise _newer(f"event of the kind {kind!r}")


def _read_observation(number: int, data: bytes, K: oracle.HasLMO) -> Observe:
    name, record, *more = checkpoint.unpacked(data, K.center)
    # What was played; what that cost; whether the next round was not committed, as with deadlines;
    # what is remembered of costs.
    how = (
        _checked_fields(more[0], ("point", "instead", "unsettled", "costs"), "observation")
        if more
        else {}
    )
    point, instead = how.get("point"), how.get("instead")
    if point is not None:
        if not conforming.is_member(K, point):
            raise ValueError("what was played is no member of the set")
        point = arrays.frozen(point)
        instead = None if instead is None else Instead(*map(float, instead))
    costs = None if "costs" not in how else partly_seen.LastCosts(*how["costs"])
    return Observe(
        Arrival(number, _feedback(name, record), point, instead, costs), not how.get("unsettled")
    )


def encode(feedback: Feedback, how: Mapping[str, Any] | None = None) -> bytes:
    """Feedback as bytes, and how it was observed; refused if a function in it is not made of
    arrays.
    """
    usual: dict[str, Any] = feedback._field_defaults
    parts = {
        name: _encode_function(part) if isinstance(part, Batch) else part
        for name, part in feedback._asdict().items()
        if name not in usual or (part is not usual[name] and part != usual[name])
    }
    records = map(checkpoint.SavedRecord, filter(None, (parts, how)))
    return checkpoint.packed((type(feedback).__name__, *records))


def encode_plain(feedback: FirstOrder) -> bytes:
    f, violation, g, loss_slope, constraint_slope, *_ = feedback
    shape = ",".join(map(str, f.shape))
    line = _LINE % (violation.hex(), loss_slope.hex(), constraint_slope.hex(), shape, shape)
    return b"".join((line.encode(), f.tobytes(), g.tobytes()))


def decode(data: bytes, center: Array) -> Feedback:
    name, record, *_ = checkpoint.unpacked(data, center)
    return _feedback(name, record)


def _feedback(name: str, record: Any) -> Feedback:
    kind = _KINDS[name]
    parts = _checked_fields(record, kind._fields, name)
    if kind is FullInformation:
        parts = {key: restored(*part) for key, part in parts.items()}
    records: dict[str, Any] = {"limits": Limits, "spend": Spend}
    for key, made in records.items():
        if parts.get(key) is not None:
            parts[key] = made(**_checked_fields(parts[key], made._fields, made.__name__))
    feedback: Feedback = kind(**parts)
    for part in feedback:
        if arrays.is_array(part):
            arrays.require_finite(part, "An observation")
    return feedback


def _encode_function(batch: Batch) -> tuple[str, tuple[Any, ...]]:
    if not can_be_saved(batch):
        raise errors.NotSupported(
            f"A {type(batch).written_as().__name__} cannot be kept in a file. Use functions that "
            "are made of arrays, a learner that needs less, or a Session in memory."
        )
    return saved_pair(batch)


def _checked_fields(record: Any, known: Sequence[str], name: str) -> dict[str, Any]:
    """The fields of a record; one that is not known was written by a newer tidewolf."""
    if not isinstance(record, checkpoint.SavedRecord):
        raise ValueError(f"it is no record of the kind {name}")
    for key in record:
        if key not in known:
            raise _newer(f"{name} with {key!r}")
    return dict(record)


def _newer(what: str) -> errors.NewerFormat:
    return errors.NewerFormat(
        f"A {what} was observed, which this tidewolf does not know. Install a newer tidewolf."
    )


# --- side information -----------------------------------------------------------------------------


def encode_info(info: round_info.RoundInfo) -> bytes:
    parts = info._asdict() | {
        "advice": None if info.advice is None else tuple(info.advice.items()),
        "forecast": None if info.forecast is None else tuple(map(_encode_function, info.forecast)),
    }
    given = {name: part for name, part in parts.items() if part is not None}
    return checkpoint.packed((_INFO, checkpoint.SavedRecord(given)))


def decode_info(data: bytes, center: Array) -> round_info.RoundInfo:
    kind, record = checkpoint.unpacked(data, center)
    given = _checked_fields(record if kind == _INFO else None, round_info.RoundInfo._fields, _INFO)
    if "advice" in given:
        given["advice"] = dict(given["advice"])
    if "forecast" in given:
        given["forecast"] = tuple(restored(*each) for each in given["forecast"])
    skipped = tuple(given.pop("skipped", ()))
    return round_info.RoundInfo(**given).with_skipped(skipped)
