"""One session of the service: decide, observe, operate, and store what was answered.

The state of the learner decides, so a plain decision of the current round writes nothing. What is
played in place of it, was asked for ahead, or had side information, is noted in the same commit as
what the session itself stores. Therefore a kill between any two requests changes no answer. What
was answered in place of the learner's decision is the default of what was played.

Operators set the mode, pin a point, roll back and migrate. Each is one commit, with a line in the
audit. What is played follows from the next request on, also in the current round.

Rounds count from 0 here, as in a `Session`, and from 1 in requests, responses and the store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any, final

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.conforming import is_member
from tidewolf.core.errors import (
    CheckpointError,
    InvalidInput,
    NotSupported,
    OtherContent,
    Overloaded,
    TidewolfError,
    TooMany,
    UnknownSession,
)
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array, Bools, Floats
from tidewolf.functions.combined import limit_names
from tidewolf.functions.linear import Capacity
from tidewolf.live.entries import follows_clock, given_demands
from tidewolf.methods.available import entries_out
from tidewolf.methods.events import takes_late
from tidewolf.methods.moves import distance_moved
from tidewolf.service import models as m
from tidewolf.service.description import BROKEN, Built, Description, ReadFeedback, read_feedback
from tidewolf.service.modes import (
    INCUMBENT,
    Candidate,
    Note,
    Point,
    Settings,
    first_playable,
    override,
)
from tidewolf.service.traffic import Limits
from tidewolf.session import Session
from tidewolf.storage.session_store import SessionInfo, SessionStore

RECENT, FEWEST, ROOM = 32, 4, 100_000
"""Rounds that were observed last and are remembered: at most, at least, and entries of points."""
SNAPSHOT_EVERY = 500
"""Observations from one stored state to the next: opening a session observes so many again."""


TO_DISK = 30.0
"""How long what is read waits for what is being written. Unit: seconds."""


def on_disk(future: Future[None]) -> None:
    """Wait until a transaction is on disk; `Overloaded` if that takes too long."""
    try:
        future.result(TO_DISK)
    except TimeoutError:
        raise Overloaded(f"The disk has been busy for {TO_DISK:g} s: try again later.") from None


@final
class HostedSession:
    """One session of the service. The caller holds its lock, and a transaction if it writes.

    Parameters
    ----------
    store : SessionStore
        Where it is stored.
    info : SessionInfo
        What the store has of it.
    built : Built
        The set, the reader of rows and the learner.
    limits : Limits
        How much is allowed.
    clock : callable
        The time now. Unit: seconds since 1970.
    count : callable
        Counts an event by its name and label.
    looks : bool, default False
        Whether to look only, at what is on disk, because nothing can be written.
    """

    def __init__(
        self,
        store: SessionStore,
        info: SessionInfo,
        built: Built,
        limits: Limits,
        clock: Callable[[], float],
        count: Callable[[str, str], None],
        *,
        looks: bool = False,
    ) -> None:
        self.store, self.info, self.looks = store, info, looks
        self._limits, self._clock, self._count = limits, clock, count
        self.name = info.name
        self.settings = Settings.of(info.settings)
        self.session: Session[Any] = Session.open(
            store,
            built.learner,
            name=info.name,
            expire_after=self.settings.expire_after,
            read_only=looks,
            snapshot_every=SNAPSHOT_EVERY,
        )
        self.seconds = math.inf
        """what requests have taken lately"""
        self.lost = False
        """whether a commit failed: memory is ahead of the disk"""
        self.broken: dict[str, float] = {}
        """the total violation of each limit since the session was opened"""
        self.asked_at: dict[int, float] = {}
        """when rounds that are not over were decided"""
        self.recent: dict[int, Note] = {}
        """the rounds that were observed last, in the order of their observation"""
        self._answers: dict[int, Note] = {}
        """the notes of rounds that are not over"""
        self._fresh: dict[int, dict[str, Any]] = {}
        """observations of the request that is being answered, which are nowhere but here"""
        self._demands: list[float] | None = None
        self._use(built)
        self._remember()

    def took(self, seconds: float) -> None:
        """A request took so long: a mean that forgets, and goes up at once."""
        before = self.seconds if math.isfinite(self.seconds) else seconds
        self.seconds = max(seconds, before + 0.2 * (seconds - before))

    def _use(self, built: Built) -> None:
        """Continue with this learner and these names."""
        self.built, self.entries, self.K = built, built.entries, built.K
        self._kept = max(FEWEST, min(RECENT, ROOM // len(built.entries.names)))
        self._follows_clock = follows_clock(built.learner)
        self._takes_late = takes_late(built.learner)
        self._capacities: Sequence[str] | None = None

    def _remember(self) -> None:
        """Read the last rounds, and those that wait for feedback, from the store."""
        first = min(self.session.pending, default=self.session.round) + 1
        rows = {row.round: row for row in self.store.last_rounds(self.name, self._kept)}
        rows |= {
            row.round: row for row in self.store.rounds_of(self.name, first, self.next_round + 1)
        }
        for number, row in sorted(rows.items()):
            note = Note.of(row)
            if note is not None and not self._is_over(number - 1):
                self._answers[number - 1] = note._replace(observed=False)
                self.asked_at[number - 1] = note.at
            elif note is not None and note.observed:
                self.recent[number - 1], self._demands = note, note.demands

    # --- rounds -----------------------------------------------------------------------------------

    @property
    def next_round(self) -> int:
        """The round that is decided next."""
        current, waiting = self.session.round, self.session.pending
        return current + 1 if waiting and waiting[-1] == current else current

    def _is_over(self, number: int) -> bool:
        """Whether a round was observed, or expired."""
        return number < self.session.round and not self._waits(number)

    def _waits(self, number: int) -> bool:
        return number in self.session.pending

    def _own(self, number: int, waits: bool) -> Floats:
        """The learner's decision of a round that waits or is current, without asking for it."""
        if waits:
            return _flat(self.session.play(round=number))
        return _flat(self.session.learner.act(self.session.state))

    def observed(self, number: int) -> Note | None:
        """The note of a round that is over."""
        found = self.recent.get(number)
        if found is not None or not self._is_over(number):
            return found
        on_disk(self.store.flushed(self.name))
        for row in self.store.rounds_of(self.name, number + 1, number + 1):
            if (note := Note.of(row)) is not None and note.observed:
                return note
        return None

    # --- decisions --------------------------------------------------------------------------------

    def decide(self, body: m.DecisionRequest) -> dict[str, Any]:
        """The decision of the current round, or of another, as often as it is asked for."""
        number = self.session.round if body.round is None else body.round - 1
        if self._is_over(number):
            note = self.observed(number)
            if note is None:
                raise OtherContent(
                    f"Round {number + 1} is over, and its decision is not known: it expired, or "
                    f"was not noted. Round {self.session.round + 1} is current."
                )
            return self._answer(number, note)
        info = self._side_info(body)
        known = RoundInfo(**info) if info else None
        waiting = len(self.session.pending) + number + 1 - self.next_round
        if number > self.session.round and waiting > self._limits.pending:
            raise TooMany(
                f"Round {number + 1} would leave {waiting:,} rounds waiting for their feedback; at "
                f"most {self._limits.pending:,} do. Observe some of them first."
            )
        before = self._answers.get(number)
        if before is None or not self._is_valid(number, before):
            note = self._decide(number, body, info, known)
        elif known is not None and known.identity and known.identity != before.info_id:
            raise _other_information(number)
        else:
            note = before
        self.asked_at.setdefault(number, self._clock())
        self._forget_expired()
        self._count("decisions", note.source)
        if note.fell:
            self._count("fallbacks", note.source)
        return self._answer(number, note)

    def _is_valid(self, number: int, note: Note) -> bool:
        """Whether an answer still holds: that of the current round follows the settings."""
        return note.serial == self.settings.serial or number != self.session.round

    def _side_info(self, body: m.DecisionRequest) -> dict[str, Any]:
        """The side information of a request, as `Session.play` takes it."""
        info: dict[str, Any] = {}
        if body.time is not None:
            info["time"] = body.time
        if body.context is not None:
            info["context"] = body.context
        if body.unavailable:
            info["unavailable"] = self.entries.unavailable(body.unavailable)
        advice = {
            name: self.entries.point(point, f"The advice {name!r}")
            for name, point in (body.advice or {}).items()
            if point is not None
        }
        if advice:
            info["advice"] = advice
        return info

    def _decide(
        self, number: int, body: m.DecisionRequest, info: dict[str, Any], known: RoundInfo | None
    ) -> Note:
        """The decision of a round, noted if the state alone would not give it again."""
        is_plain = not info and number == self.session.round and not self._waits(number)
        arguments: dict[str, Any] = dict(info)
        if number != self.session.round:
            arguments["round"] = number
        deadline = self.settings.deadline if body.deadline is None else body.deadline
        if deadline is not None:
            arguments["deadline"] = deadline
        own, failure = self._tried(number, lambda: self.session.play(**arguments), not is_plain)
        incumbent = info.get("advice", {}).get(INCUMBENT)
        wanted = override(self.settings, None if incumbent is None else _flat(incumbent))
        if wanted is not None and wanted.source == INCUMBENT and incumbent is not None:
            self.built.require_member(incumbent, "The incumbent's point")
        note = self._chosen(number, wanted, own, failure, entries_out(self.K, known))
        note = note._replace(info_id="" if known is None else known.identity or "")
        if not is_plain or number in self._answers or note.source != "learner" or failure:
            note = self._note(number, note)
        return note

    def _tried(
        self, number: int, ask: Callable[[], Array], may_refuse: bool = False
    ) -> tuple[Floats | None, str]:
        """The learner's decision; or None, and what is wrong with it: whatever a learner raises, a
        caller waits for a decision.
        """
        try:
            return _flat(ask()), ""
        except OtherContent:
            raise _other_information(number) from None
        except Exception as error:
            is_refusal = may_refuse and isinstance(error, InvalidInput | NotSupported)
            if is_refusal or isinstance(error, CheckpointError):
                raise
            words = str(error).strip() or type(error).__name__
            return None, f"The learner failed: {words.removesuffix('.')}."

    def _chosen(
        self,
        number: int,
        wanted: Candidate | None,
        own: Floats | None,
        failure: str = "",
        out: Bools | None = None,
    ) -> Note:
        """What is played in a round, given the learner's decision."""
        settings = self.settings
        note = Note(own, mode=settings.mode, serial=settings.serial, era=len(settings.eras))
        if wanted is not None and wanted.point is None:
            return note._replace(
                decision=None, source=wanted.source, reason=wanted.reason, proposal=own
            )
        if wanted is None and own is not None and out is None:
            return note._replace(reason=self._learner_reason())
        candidates = self._candidates(number, wanted, own, failure)
        found, fell = first_playable(candidates, out, self.entries.names)
        return note._replace(
            decision=found.point,
            source=found.source,
            reason=found.reason,
            proposal=None if found.source == "learner" else own,
            fell=fell,
        )

    def _candidates(
        self, number: int, wanted: Candidate | None, own: Floats | None, failure: str
    ) -> Iterator[Candidate]:
        """What may be played, those wanted most first."""
        if wanted is not None:
            yield wanted
        yield Candidate("learner", own, failure or self._learner_reason())
        yield Candidate("last", self._last_before(number), "There is no decision before.")
        fallback = self.settings.fallback
        yield Candidate("static", _flat(self.K.center) if fallback is None else np.array(fallback))

    def _learner_reason(self) -> str:
        rounds = self.session.rounds
        return f"Decided by {self.settings.learner} after {rounds:,} round{'s' * (rounds != 1)}."

    def _last_before(self, number: int) -> Floats | None:
        """The decision of the last round before this one, as far as it is known."""
        with suppress(TidewolfError):
            if (found := self._decision_of(number - 1)) is not None:
                return found
            era = len(self.settings.eras)
            notes = (note for note in reversed(self.recent.values()) if note.era == era)
            return next((note.decision for note in notes), None)
        return None

    def _decision_of(self, number: int) -> Floats | None:
        """What was answered in a round, in the entries of today; None if that is not known."""
        if number < 0 or number > self.session.round:
            return None
        if number in self._answers:
            return self._answers[number].decision
        if self._is_over(number):
            note = self.observed(number)
            return note.decision if note and note.era == len(self.settings.eras) else None
        wanted = override(self.settings)
        return self._own(number, self._waits(number)) if wanted is None else wanted.point

    def decision(self, number: int) -> dict[str, Any]:
        """The answer of a round that is over, waits, or is current, without asking for it."""
        if number > self.session.round:
            raise UnknownSession(f"Round {number + 1} of {self.name} was not asked for yet.")
        if not self._is_over(number):
            return self._answer(number, self._current_note(number))
        note = self.observed(number)
        if note is None:
            raise UnknownSession(
                f"The decision of round {number + 1} of {self.name} is not known: it expired, or "
                "nothing was noted of it."
            )
        return self._answer(number, note)

    def _current_note(self, number: int) -> Note:
        """What was answered in a round that waits or is current, or would be."""
        note = self._answers.get(number)
        if note is not None and self._is_valid(number, note):
            return note
        own, failure = self._look(number)
        return self._chosen(number, override(self.settings), own, failure)

    def _look(self, number: int) -> tuple[Floats | None, str]:
        return self._tried(number, lambda: self._own(number, self._waits(number)))

    def _answer(self, number: int, note: Note) -> dict[str, Any]:
        eras = self.settings.eras
        is_today = note.era == len(eras)
        names = self.entries.names if note.era >= len(eras) else eras[note.era]
        before = moved = paths = None
        if is_today:
            with suppress(Exception):  # a learner that fails: its decision before is not known
                before = self._decision_of(number - 1)
        if before is not None and note.decision is not None:
            moved = distance_moved(note.decision, before)
        if is_today and note.decision is not None:
            demands = note.demands if note.observed else self._demands
            paths = self.built.paths(note.decision.reshape(self.K.shape), demands)
        answer = {
            "round": number + 1,
            "decision": _named(names, note.decision),
            "paths": paths,
            "previous": _named(names, before),
            "moved": moved,
            "mode": note.mode,
            "source": note.source,
            "reason": note.reason,
        }
        if note.proposal is not None:
            answer["proposal"] = _named(names, note.proposal)
        return answer

    def _note(self, number: int, note: Note) -> Note:
        """Store what was answered in a round that is not over."""
        note = note._replace(at=self.asked_at.setdefault(number, self._clock()))
        self._answers[number] = note
        self.store.note(self.name, note.row(number))
        return note

    # --- observations -----------------------------------------------------------------------------

    def observe(self, body: m.Observation) -> dict[str, Any]:
        """Learn from what a round turned out to be; the same twice is answered alike and counts
        once.
        """
        current, waiting = self.session.round, self.session.pending
        number = current if body.round is None else body.round - 1
        content = body.given | {"round": number + 1}
        feedback = read_feedback(content, self.built)
        played = None
        if body.played is not None:
            played = self.entries.point(body.played, "What was played")
        if number > current:
            raise InvalidInput(
                f"Round {number + 1} was not asked for yet, so nothing can be observed of it: ask "
                f"for its decision first. Round {current + 1} is current."
            )
        if number in self._fresh:
            if content != self._fresh[number]:
                raise _other_content(number)
            note = self.recent[number]
        elif number < current and number not in waiting:
            note = self._observe_again(number, feedback, played)
        else:
            if number not in waiting and number not in self._answers:
                self._tell_time(body.time)
            own = self._own(number, number in waiting)
            note = self._observe(number, own, feedback, played, content)
            self._fresh[number] = content
        return {
            "round": number + 1,
            "cost": note.cost,
            "violation": note.violation,
            "rounds": note.rounds or self.session.rounds,
        }

    def _observe_again(self, number: int, feedback: ReadFeedback, played: Array | None) -> Note:
        note = self.observed(number) or Note(None)
        if played is None and note.played == "answered" and note.decision is not None:
            played = note.decision.reshape(self.K.shape)
        try:
            self.session.observe(round=number, played=played, **feedback.arguments)
        except OtherContent:
            raise _other_content(number) from None
        return note

    def _observe(
        self,
        number: int,
        own: Floats,
        feedback: ReadFeedback,
        played: Array | None,
        content: dict[str, Any],
    ) -> Note:
        note = self._note_to_observe(number, own)
        note = note._replace(played="" if played is None else "given", observed=True)
        if played is None and note.source != "learner" and self._takes_late:
            if note.decision is None:
                raise InvalidInput(
                    f"Round {number + 1} is in shadow, and no incumbent's point is known: say what "
                    "was played."
                )
            played = note.decision.reshape(self.K.shape)
            note = note._replace(played="answered")
        self.session.observe(round=number, played=played, **feedback.arguments)
        x = own.reshape(self.K.shape) if played is None else played
        cost, violation, broken = feedback.outcome(x, self._limit_names)
        self._demands = given_demands(self.built.reader, content, self._demands)
        rounds, saved = self.session.rounds, self.session.overrides
        note = note._replace(
            decision=_flat(x) if note.decision is None else note.decision,
            rounds=rounds,
            demands=self._demands,
            saved=[saved.saved_loss, saved.saved_violation, saved.rounds] if saved.rounds else None,
            at=self._clock(),
            cost=cost,
            violation=violation,
        )
        self.store.note(self.name, note.row(number), rounds)
        self._count("observations", "")
        if violation is not None and violation > BROKEN:
            self._count("breaches", "")
            for name, by in broken.items():
                self.broken[name] = self.broken.get(name, 0.0) + by
        self._answers.pop(number, None)
        self.asked_at.pop(number, None)
        self.recent.pop(number, None)
        self.recent[number] = note
        return note

    def _tell_time(self, time: Any) -> None:
        """Give the time of the current round to a learner that follows the clock."""
        if time is not None and self._follows_clock:
            with suppress(OtherContent):  # it was asked without, and keeps its decision
                self.session.play(time=time)

    def _note_to_observe(self, number: int, own: Floats) -> Note:
        """What was or would be answered in a round that is not over. In the round in which an
        operator changed what is played, callers know of the change only if they asked again.
        """
        note = self._answers.get(number)
        is_older = number == self.settings.since
        if note is not None and (is_older or self._is_valid(number, note)):
            return note
        return self._chosen(number, None if is_older else override(self.settings), own)

    def trim(self) -> None:
        """Forget rounds that need not be remembered, at the end of a request."""
        self._fresh = {}
        while len(self.recent) > self._kept:
            del self.recent[next(iter(self.recent))]
        self._forget_expired()

    def _forget_expired(self) -> None:
        if self.settings.expire_after is None:
            return
        for number in [one for one in self.asked_at if self._is_over(one)]:
            del self.asked_at[number]
            self._answers.pop(number, None)

    def _limit_names(self, limits: Batch) -> Sequence[str]:
        """The names of the limits of a round; those of capacities are the same in every round."""
        if not isinstance(limits, Capacity):
            return limit_names(self.K, limits)
        if self._capacities is None:
            self._capacities = limit_names(self.K, limits)
        return self._capacities

    # --- operating --------------------------------------------------------------------------------

    def operate(self, body: m.ModeChange | m.Pin | m.Rollback | m.Migration) -> str:
        """Do what an operator asks for; what was done, for the audit."""
        match body:
            case m.ModeChange():
                return self._set_mode(body)
            case m.Pin():
                return self._pin(body)
            case m.Rollback():
                return self._roll_back(body.round - 1)
            case m.Migration():
                return self._migrate(body)

    def _set_mode(self, body: m.ModeChange) -> str:
        if body.mode != "live":
            self._require_overrides()
        if body.incumbent is not None and body.mode != "shadow":
            raise InvalidInput(
                f"An incumbent's point is played in shadow, not in mode {body.mode}."
            )
        incumbent = self._member(body.incumbent, "The incumbent's point")
        frozen = self._current_point() if body.mode == "frozen" else None
        self._set(self.settings.changed(mode=body.mode, incumbent=incumbent, frozen=frozen))
        return f"mode {body.mode}"

    def _pin(self, body: m.Pin) -> str:
        if body.decision is not None:
            self._require_overrides()
        pin = self._member(body.decision, "The decision to pin")
        self._set(self.settings.changed(pin=pin))
        return "unpin" if pin is None else "pin"

    def _roll_back(self, number: int) -> str:
        before = self.next_round
        on_disk(self.store.flushed(self.name))
        try:
            self.session.rollback(number)
        except InvalidInput:
            raise InvalidInput(
                f"Round {number + 1} cannot be gone back to: it is after round {before + 1}, which "
                "is next, or the history before it is not stored."
            ) from None
        first = min(self.session.pending, default=number) + 1
        self.store.forget_rounds(self.name, number + 1, self.session.rounds)
        if self.settings.since >= number:  # that round is another one
            self.settings = replace(self.settings, since=-1)
            self.store.set(self.name, self.settings.text)
        self._answers, self.asked_at = {}, {}
        self.recent = {
            one: note for one, note in self.recent.items() if one < number and not self._waits(one)
        }
        for row in self.store.rounds_of(self.name, first, number):
            note = Note.of(row)
            if note is not None and self._waits(row.round - 1):
                self.asked_at[row.round - 1] = row.at
                again = note._replace(observed=False, rounds=0, played="", saved=None)
                self._note(row.round - 1, again._replace(cost=None, violation=None))
        last = self.observed(number - 1)
        self._demands = None if last is None else last.demands
        return f"rollback from round {before + 1} to round {number + 1}"

    def _migrate(self, body: m.Migration) -> str:
        """Continue with another learner of the same kind, such as over a network that changed."""
        changes = {key: getattr(body, key) for key in body.model_fields_set - {"why"}}
        changes = {key: it for key, it in changes.items() if it is not None or key == "fallback"}
        if not changes:
            raise InvalidInput("A migration has a set, or learners, or a fallback.")
        description = Description.read(json.loads(self.info.description) | changes)
        built, names, settings = description.build(), tuple(self.entries.names), self.settings
        self.session.migrate(built.learner)
        self._use(built)
        places = [self.entries.place.get(name, -1) for name in names]
        points: dict[str, Point | None] = {}
        for key in ("pin", "incumbent", "frozen"):
            point = getattr(settings, key)
            moved = None if point is None else self._moved(np.array(point), places)
            points[key] = None if moved is None else tuple(moved.tolist())
        lost = [key for key, point in points.items() if getattr(settings, key) and not point]
        is_same = names == tuple(self.entries.names)
        changed = replace(
            settings.changed(**points),
            learner=type(built.learner).__name__,
            fallback=built.fallback,
            eras=settings.eras if is_same else (*settings.eras, names),
        )
        self._set(changed)
        if "frozen" in lost:
            self._set(replace(changed, frozen=self._current_point()))
        self._move_answers(places)
        self.store.describe(self.name, description.canonical)
        self.info = self.info._replace(description=description.canonical)
        words = f"; its {' and '.join(lost)} used removed entries" if lost else ""
        return f"migrate before round {self.session.round + 1}{words}"

    def _move_answers(self, places: list[int]) -> None:
        """What was answered in rounds that wait, in the entries of the set now."""
        for number, note in list(self._answers.items()):
            del self._answers[number]
            if self._is_over(number):
                self.asked_at.pop(number, None)
                continue
            point = None if note.decision is None else self._moved(note.decision, places)
            if point is not None:
                proposal = None if note.proposal is None else self._moved(note.proposal, places)
                era = len(self.settings.eras)
                self._note(number, note._replace(decision=point, proposal=proposal, era=era))
        self._demands = None

    def _moved(self, x: Floats, places: list[int]) -> Floats | None:
        """A point of the set before in the entries of the set now; None if that has it not."""
        found: Floats = np.zeros(len(self.entries.names))
        for value, place in zip(x.tolist(), places, strict=True):
            if place >= 0:
                found[place] = value
            elif value != 0.0:
                return None
        return found if is_member(self.K, found.reshape(self.K.shape)) else None

    def _set(self, settings: Settings) -> None:
        """Be operated so from now on."""
        self.settings = replace(settings, since=self.session.round)
        self.store.set(self.name, self.settings.text)

    def _current_point(self) -> Point:
        """The current decision, from any source."""
        number = self.session.round
        found = self._current_note(number).decision
        if found is None:
            candidates = self._candidates(number, None, *self._look(number))
            found = first_playable(candidates, None, self.entries.names)[0].point
        assert found is not None
        return tuple(found.tolist())

    def _member(self, given: Any, what: str) -> Point | None:
        """A point of the set, as settings store it."""
        return None if given is None else tuple(_flat(self.built.member(given, what)).tolist())

    def _require_overrides(self) -> None:
        """Refuse to play other points if the learner can observe only its own."""
        if not self._takes_late:
            raise NotSupported(
                f"{self.settings.learner} takes feedback on its own decisions alone, so no other "
                "point can be played for it: choose an Ensemble, or a LyapunovDescent."
            )

    # --- looking ----------------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """The session as `GET sessions/{name}` answers."""
        session, settings = self.session, self.settings
        oldest = min(self.asked_at.values(), default=math.inf)
        found = session.overrides
        saved = found.saved_loss, found.saved_violation, found.rounds
        times = {key: getattr(settings, key) for key in ("deadline", "stale_after", "expire_after")}
        allowed = math.inf if settings.stale_after is None else settings.stale_after
        points = {
            key: _named(self.entries.names, getattr(settings, key))
            for key in ("fallback", "incumbent", "pin")
        }
        return {
            "name": self.name,
            "rounds": session.rounds,
            "pending": [number + 1 for number in session.pending],
            "round": session.round + 1,
            "mode": settings.mode,
            "learner": settings.learner,
            "names": list(self.entries.names),
            "shape": list(self.K.shape),
            "created": self.info.created,
            "settings": {**times, **points},
            "saved": dict(zip(("loss", "violation", "rounds"), saved, strict=True)),
            "notes": list(session.notes_from(1)),
            "pinned": settings.pin is not None,
            "stale": self._clock() - oldest > allowed,
        }


def _other_information(number: int) -> OtherContent:
    return OtherContent(
        f"Round {number + 1} was decided with other side information, and that decision is kept: "
        "ask for it without side information, or go back to the round to decide it again."
    )


def _other_content(number: int) -> OtherContent:
    return OtherContent(
        f"Round {number + 1} is over: it was observed with other content, which is kept, or it "
        "expired. Nothing was learned."
    )


def _flat(x: Array) -> Floats:
    flat: Floats = to_numpy(x).reshape(-1) + 0.0
    return flat


def _named(names: Sequence[str], x: Floats | Point | None) -> dict[str, float] | None:
    if x is None:
        return None
    return dict(zip(names, x if isinstance(x, tuple) else x.tolist(), strict=True))
