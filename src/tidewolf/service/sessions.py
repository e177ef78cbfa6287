"""All sessions of a service by name. Each is opened at first use, answers one request at a time,
and is closed when it fails or has not been used for long.

    look up the name  ->  its lock  ->  open it  ->  one transaction  ->  a reply, and the
    future that it waits for

A commit that fails acknowledges nothing: memory is then ahead of the disk, so the session is let go
of, and the next request opens it again as it is on disk. One whose rows cannot be read still gets
decisions: the last that is known, or a static one, with the reason.

Overviews of all sessions for the page and the metrics, without opening any session.

Sessions in memory are asked. For others the store has the last rounds, which are read again only
once more rounds were observed.

What operators do to a session (set the mode, pin a point, roll back, migrate) is one commit, with a
line in the audit. What is played follows from the next request on, also in the current round.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, final
from weakref import WeakValueDictionary

import numpy as np

from tidewolf.core import conforming, errors, round_info
from tidewolf.core.types import Floats, Int64s
from tidewolf.live import paths_of
from tidewolf.methods.available import entries_out
from tidewolf.service import hosted_session as hosting
from tidewolf.service import models as m
from tidewolf.service.hosted_session import Candidate, HostedSession, Note, ended
from tidewolf.service.requests import Caller, Limits, problem, status_of
from tidewolf.storage.session_store import SessionInfo, SessionStore

# Rounds whose costs are shown.
SHOWN = 60


class Overview(NamedTuple):
    """One session at a glance.

    Parameters
    ----------
    name : str
        Its name.
    rounds : int
        How many rounds were observed.
    mode : str
        "live", "shadow" or "frozen".
    learner : str
        The kind of its learner.
    costs, violations : tuple of float or None
        Of the last rounds, oldest first; None if a round's is not known.
    pending : int
        Decisions without an observation.
    oldest_pending : float or None
        How long the oldest of them has been waiting; None if there is none. Unit: seconds.
    stale : bool
        Whether feedback has been missing for longer than the session allows.
    breached : bool
        Whether a limit was violated in its last observed round.
    saved : float or None
        What the learner's decisions would have saved, in shadow mode. Unit: of the loss.
    limits : mapping of str to float
        The total violation of each limit since the session was opened.
    pinned : bool
        Whether a point is played in place of the learner's.
    at : float or None
        When it was last observed; None if it never was. Unit: seconds since 1970.
    """

    name: str
    rounds: int = 0
    mode: str = "live"
    learner: str = ""
    costs: tuple[float | None, ...] = ()
    violations: tuple[float | None, ...] = ()
    pending: int = 0
    oldest_pending: float | None = None
    stale: bool = False
    breached: bool = False
    saved: float | None = None
    limits: Mapping[str, float] = MappingProxyType({})
    pinned: bool = False
    at: float | None = None


def _last_notes(
    store: SessionStore, info: SessionInfo, settings: m.Settings
) -> tuple[list[Note], list[float]]:
    try:
        last = store.last_rounds(info.name, SHOWN)
        first = last[0].round if last else 1
        rows = store.rounds_of(info.name, first, first + 2 * SHOWN)
    except errors.TidewolfError:  # deleted meanwhile
        return [], []
    expired = rows[-1].round - settings.expire_after if rows and settings.expire_after else 0
    notes = [(row.round, note) for row in rows if (note := Note.of(row)) is not None]
    waits = [note.at for number, note in notes if not note.observed and number > expired]
    return [note for _, note in notes if note.observed][-SHOWN:], waits


# Errors of a session that cannot be opened as it is on disk.
UNREADABLE = (errors.BrokenFile, errors.OtherSettings, errors.NewerFormat, errors.OlderFormat)
# What a request may take without a thread, while others wait. Unit: seconds.
QUICK = 0.003


class Reply(NamedTuple):
    """What is answered, once `after` is done.

    Parameters
    ----------
    status : int
        The status of HTTP.
    body : dict or Response
        Plain data, or a whole response.
    after : Future, optional
        What the reply waits for: it is on disk then. None: for nothing.
    """

    status: int
    body: Any
    after: Future[None] | None = None


class _Place:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.hosted: HostedSession | None = None


@final
class Sessions:
    """All sessions of a session store, for requests from many threads.

    Parameters
    ----------
    store : SessionStore
        Where they are stored.
    limits : Limits, optional
        How much is allowed.
    clock : callable, optional
        The time now. Unit: seconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> from tidewolf.storage.session_store import SessionStore
    >>> from tidewolf.service.models import Description
    >>> from tidewolf.service.models import DecisionRequest, Observation
    >>> from tidewolf.service.sessions import Sessions
    >>> from tidewolf.service.requests import Caller
    >>> sessions = Sessions(SessionStore.open(tempfile.mkdtemp()))
    >>> body = {"set": {"kind": "Simplex", "n": 2}, "learners": [{"name": "LyapunovDescent"}]}
    >>> sessions.put("two", Description.read(body), Caller()).status
    201
    >>> sessions.decide("two", DecisionRequest()).body["decision"]
    {'entry 0': 0.5, 'entry 1': 0.5}
    >>> reply = sessions.observe("two", Observation(round=1, costs=[1.0, 0.0]))
    >>> reply.after.result()  # it is on disk
    >>> reply.body["cost"], reply.body["rounds"]
    (0.5, 1)
    >>> sessions.close()
    """

    def __init__(
        self,
        store: SessionStore,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store, self.clock = store, clock
        self.limits = limits or Limits()
        # events since the start, by name and label
        self.counters: Counter[tuple[str, str]] = Counter()
        # of sessions that are open, or that a request waits for
        self._places: WeakValueDictionary[str, _Place] = WeakValueDictionary()
        # of sessions that are open, in the order of their last use
        self._opened: OrderedDict[str, _Place] = OrderedDict()
        # of the places and the counters
        self._mutex = threading.Lock()
        self._overview: tuple[float, Sequence[Overview]] = (-1e9, [])
        # what the store had of sessions that are not open
        self._read: dict[str, tuple[SessionInfo, list[Note], list[float]]] = {}
        self._looking = threading.Lock()

    def count(self, name: str, label: str = "") -> None:
        with self._mutex:
            self.counters[name, label] += 1

    # --- sessions by name -------------------------------------------------------------------------

    def put(self, name: str, description: m.Description, caller: Caller) -> Reply:
        is_new = self.store.info(name) is None and self._create(name, description, caller)
        info = self.store.info(name)
        errors.require(
            info is None or info.description == description.canonical,
            errors.AlreadyThere,
            f"There is a session called {name!r} already, with another description: migrate "
            "or delete it, or choose another name.",
        )
        return self.get(name)._replace(status=201 if is_new else 200)

    def _create(self, name: str, description: m.Description, caller: Caller) -> bool:
        """Whether it is new: another request may be faster."""
        if (count := self.store.count()) >= self.limits.sessions:
            raise errors.TooMany(
                f"{count:,} sessions are there, at most {self.limits.sessions:,} are allowed: "
                "delete one first."
            )
        built = description.build()
        settings = m.Settings(
            type(built.learner).__name__,
            fallback=built.fallback,
            deadline=description.deadline,
            stale_after=description.stale_after,
            expire_after=description.expire_after,
        )
        try:
            with self.store.transaction(name) as transaction:
                self.store.create(name, description.canonical, settings.text)
                self.store.audit(caller.who, name, "put", description.why or "")
            ended(transaction.future).result()
        except errors.AlreadyThere:
            return False
        m.warm_up(built)
        return True

    def list(self, prefix: str = "", after: str = "", most: int = 1000) -> Reply:
        listed = [
            {"name": info.name, "rounds": info.rounds, "mode": own.mode, "learner": own.learner}
            for info in self.store.infos(prefix, after, most)
            for own in [m.Settings.shown(info.settings)]
        ]
        return Reply(200, {"sessions": listed})

    def delete(self, name: str, why: str, caller: Caller) -> Reply:
        with self._locked(name) as place:
            with self.store.transaction(name) as transaction:
                self.store.delete(name)
                self.store.audit(caller.who, name, "delete", why)
                self._let_go(name, place)
            ended(transaction.future).result()  # no request finds it half deleted
        return Reply(200, {"name": name, "deleted": True})

    # --- decisions and observations ---------------------------------------------------------------

    def decide(self, name: str, body: m.DecisionRequest) -> Reply:
        try:
            with (
                self._held(name, looks=True) as hosted,
                self.store.transaction(name) as transaction,
            ):
                answer = hosted.decide(body)
        except UNREADABLE as error:
            return self._without_session(name, body, error)
        return Reply(200, answer, transaction.future if transaction.writes else self._after(hosted))

    def observe(self, name: str, body: m.Observation | m.Observations) -> Reply:
        observe: Any = HostedSession.observe if isinstance(body, m.Observation) else self._observed
        with self._held(name) as hosted, self.store.transaction(name) as transaction:
            try:
                answer = observe(hosted, body)
            finally:
                hosted.trim()
        return Reply(200, answer, transaction.future)

    def _observed(self, hosted: HostedSession, body: m.Observations) -> dict[str, Any]:
        errors.refuse(
            len(body.observations) > self.limits.observations,
            f"Send at most {self.limits.observations:,} observations at a time.",
        )
        found: list[dict[str, Any]] = []
        try:
            for item in body.observations:
                found.append(hosted.observe(m.Observation.read(item)))
                del found[-1]["rounds"]
        except (errors.InvalidInput, errors.NotSupported) as error:
            name, status = type(error).__name__, status_of(error)
            found.append({"error": problem(status, str(error), title=name)})
        return {"observations": found, "rounds": hosted.session.rounds}

    def lock_at_once(
        self, name: str, body: m.DecisionRequest | m.Observation | m.Observations
    ) -> threading.RLock | None:
        """The lock of a session, acquired, if the session is open, free, has computed little for
        its last requests, and this one needs little, too. Else None.
        """
        place = self._places.get(name)
        if place is None or isinstance(body, m.Observations) or not place.lock.acquire(False):
            return None
        hosted = place.hosted
        is_quick = hosted is not None and hosted.seconds < QUICK and not hosted.lost
        if hosted is not None and is_quick and self.store.holds(name):
            ahead = body.round if isinstance(body, m.DecisionRequest) else None
            if (ahead or 1) <= hosted.session.round + 2:
                return place.lock
        place.lock.release()
        return None

    def _without_session(
        self, name: str, body: m.DecisionRequest, error: errors.CheckpointError
    ) -> Reply:
        info = self._info(name)
        settings, built = m.Settings.shown(info.settings), _built(info)
        entries, wanted, last, out = built.reader, hosting.override(settings), None, None
        with suppress(errors.TidewolfError):
            for note in filter(None, map(Note.of, self.store.last_rounds(name, 1))):
                last = note.decision if note.era == len(settings.eras) else None
        if body.unavailable:
            out = entries_out(
                built.K, round_info.RoundInfo(unavailable=entries.unavailable(body.unavailable))
            )
        candidates = [
            Candidate("learner", None, f"The session cannot be opened: {error}"),
            *([] if wanted is None or wanted.point is None else [wanted]),
            Candidate("last", last),
            hosting.static(settings, built.K),
        ]
        chosen, _ = hosting.first_playable(candidates, out, entries.names)
        assert chosen.point is not None
        self.count("decisions", chosen.source)
        self.count("fallbacks", chosen.source)
        note = Note(chosen.point, settings.mode, chosen.source, chosen.reason)
        number = info.rounds if body.round is None else body.round - 1
        paths = paths_of(entries, chosen.point.reshape(built.K.shape), None)
        return Reply(200, note.answer(number, entries.names, None, paths))

    def operate(
        self, name: str, body: m.ModeChange | m.Pin | m.Rollback | m.Migration, caller: Caller
    ) -> Reply:
        with self._held(name) as hosted, self.store.transaction(name) as transaction:
            self.store.audit(
                caller.who, name, _OPERATIONS[type(body)](hosted, body), body.why or ""
            )
            answer = hosted.description()
        return Reply(200, answer, transaction.future)

    # --- looking ----------------------------------------------------------------------------------

    def look(self, name: str, read: Callable[[HostedSession], dict[str, Any]]) -> Reply:
        with self._held(name, looks=True) as hosted:
            return Reply(200, read(hosted), self._after(hosted))

    def get(self, name: str) -> Reply:
        return self.look(name, HostedSession.description)

    def history(self, name: str, first: int = 1, most: int = 1000) -> Reply:
        rows = self.store.rounds_of(name, first, first + most - 1)
        notes = ((row.round, Note.of(row)) for row in rows)
        rounds = [note.past(number) for number, note in notes if note is not None and note.observed]
        return Reply(200, {"rounds": rounds})

    def audit(self, name: str | None = None, after: int = 0, most: int = 100) -> Reply:
        return Reply(200, {"entries": [*map(vars, self.store.entries(name, after, most))]})

    def overview(self) -> Sequence[Overview]:
        """The state of all sessions, without opening any; reused for a second."""
        with self._looking:
            when, found = self._overview
            # How long an overview is reused. Unit: seconds.
            if time.monotonic() - when > 1.0:
                before, self._read = self._read, {}
                found = [self._overview_of(info, before) for info in self.store.infos(most=None)]
                self._overview = (time.monotonic(), found)
            return found

    def _overview_of(self, info: SessionInfo, before: Mapping[str, Any]) -> Overview:
        place = self._places.get(info.name)
        hosted = None if place is None else place.hosted
        if hosted is not None and not hosted.lost and self.store.holds(info.name):
            settings, rounds, limits = hosted.settings, hosted.session.rounds, dict(hosted.broken)
            notes, waits = list(hosted.recent.values())[-SHOWN:], list(hosted.asked_at.values())
        else:
            settings, rounds, limits = m.Settings.shown(info.settings), info.rounds, {}
            known = before.get(info.name)
            if known is None or known[0] != info:
                known = info, *_last_notes(self.store, info, settings)
            self._read[info.name] = known
            _, notes, waits = known
        age = max(0.0, self.clock() - min(waits)) if waits else None
        last = notes[-1] if notes else Note(None)
        return Overview(
            info.name,
            rounds,
            settings.mode,
            settings.learner,
            costs=tuple(one.cost for one in notes),
            violations=tuple(one.violation for one in notes),
            pending=len(waits),
            oldest_pending=age,
            stale=age is not None and age > (settings.stale_after or math.inf),
            breached=(last.violation or 0.0) > hosting.BROKEN,
            saved=None if last.saved is None else last.saved[0],
            limits=limits,
            pinned=settings.pin is not None,
            at=last.at if notes else None,
        )

    # --- places -----------------------------------------------------------------------------------

    def close(self) -> None:
        for name in list(self._opened):
            with suppress(errors.TidewolfError), self._locked(name) as place:
                self._let_go(name, place)

    @contextmanager
    def _locked(self, name: str) -> Iterator[_Place]:
        with self._mutex:
            place = self._places.get(name) or self._places.setdefault(name, _Place())
            if name in self._opened:
                self._opened.move_to_end(name)
        if not place.lock.acquire(timeout=self.limits.wait):
            raise errors.Overloaded(f"The session {name} is busy with others: try again later.")
        try:
            yield place
        finally:
            place.lock.release()

    @contextmanager
    def _held(self, name: str, *, looks: bool = False) -> Iterator[HostedSession]:
        """A session, opened and locked; let go of if the disk fails it. `looks`: as it is on disk
        is enough if nothing can be written.
        """
        with self._locked(name) as place:
            hosted = place.hosted
            if hosted is None or hosted.lost or not self.store.holds(name):
                hosted = self._open(name, place, looks)
            began = time.thread_time()
            try:
                yield hosted
                hosted.took(time.thread_time() - began)
            except BaseException as error:
                fails = not isinstance(error, errors.TidewolfError) or isinstance(
                    error, errors.CheckpointError
                )
                if fails or not self.store.holds(name):  # refused after it had written
                    self._let_go(name, place)
                raise

    def _info(self, name: str) -> SessionInfo:
        return errors.require_some(
            self.store.info(name), errors.UnknownSession, f"There is no session called {name!r}."
        )

    def _open(self, name: str, place: _Place, looks: bool) -> HostedSession:
        self._let_go(name, place)
        ended(self.store.flushed(name))
        info = self._info(name)
        built = _built(info)
        try:
            place.hosted = HostedSession(self, info, built)
        except (*UNREADABLE, errors.UnknownSession, errors.HeldElsewhere):
            raise
        except errors.CheckpointError:
            if not looks:
                raise
            return HostedSession(self, info, built, looks=True)
        with self._mutex:
            self._opened[name] = place
            places = list(self._opened.items())
        # room for it: those that have been idle for longest, unless a request uses them now
        for other, idle in places[: max(0, len(places) - self.limits.open)]:
            if idle.lock.acquire(blocking=False):
                try:
                    self._let_go(other, idle)
                finally:
                    idle.lock.release()
        return place.hosted

    def _let_go(self, name: str, place: _Place) -> None:
        hosted, place.hosted = place.hosted, None
        if hosted is not None:
            with suppress(errors.TidewolfError):
                hosted.session.close()
            self.store.let_go(name)
            with self._mutex:
                self._opened.pop(name, None)

    def _after(self, hosted: HostedSession) -> Future[None] | None:
        return None if hosted.looks else self.store.flushed(hosted.name)


def _built(info: SessionInfo) -> m.Built:
    try:
        return m.Description.parse(info.description).build()
    except errors.InvalidInput as error:
        raise errors.BrokenFile(
            f"The description of the session {info.name} was changed on disk: {error} Go back to "
            "an earlier copy."
        ) from None


# --- what operators do ----------------------------------------------------------------------------


def _pin(hosted: HostedSession, body: m.Pin) -> str:
    pin = _member(hosted, body.decision, "The decision to pin")
    _set(hosted, hosted.settings.changed(pin=pin))
    return "unpin" if pin is None else "pin"


def _set_mode(hosted: HostedSession, body: m.ModeChange) -> str:
    if body.mode != "live":
        _require_overrides(hosted)
    errors.refuse(
        body.incumbent is not None and body.mode != "shadow",
        f"An incumbent's point is played in shadow, not in mode {body.mode}.",
    )
    incumbent = _member(hosted, body.incumbent, "The incumbent's point")
    frozen = _current_point(hosted) if body.mode == "frozen" else None
    _set(hosted, hosted.settings.changed(mode=body.mode, incumbent=incumbent, frozen=frozen))
    return f"mode {body.mode}"


def _roll_back(hosted: HostedSession, body: m.Rollback) -> str:
    number, before, session = body.round - 1, hosted.next_round, hosted.session
    store, name = hosted.store, hosted.name
    ended(store.flushed(name)).result()
    try:
        session.rollback(number)
    except errors.InvalidInput:
        raise errors.InvalidInput(
            f"Round {number + 1} cannot be gone back to: it is after round {before + 1}, or is "
            "not stored."
        ) from None
    store.forget_rounds(name, number + 1)
    if hosted.settings.since >= number:  # that round is another one
        hosted.settings = replace(hosted.settings, since=-1)
        store.set(name, hosted.settings.text)
    for row in store.rounds_of(name, min(session.pending, default=number) + 1, number):
        note = Note.of(row)
        if note is not None and row.round - 1 in session.pending:
            note = note._replace(observed=False, rounds=0, played="", saved=None)
            store.note(name, note._replace(cost=None, violation=None).row(row.round - 1))
    hosted.lost, hosted.asked_at = True, {}
    return f"rollback from round {before + 1} to round {number + 1}"


def _migrate(hosted: HostedSession, body: m.Migration) -> str:
    changes = {
        key: given
        for key in body.model_fields_set - {"why"}
        if (given := getattr(body, key)) is not None or key == "fallback"
    }
    errors.require(
        changes, errors.InvalidInput, "A migration has a set, or learners, or a fallback."
    )
    description = m.Description.read(json.loads(hosted.info.description) | changes)
    built, names, settings = description.build(), tuple(hosted.entries.names), hosted.settings
    hosted.session.migrate(built.learner)
    hosted.use(built)
    places = np.array([hosted.entries.place.get(name, -1) for name in names])
    there = {
        key: _moved(hosted, getattr(settings, key), places)
        for key in ("pin", "incumbent", "frozen")
    }
    points = {key: None if x is None else tuple(x.tolist()) for key, x in there.items()}
    lost = [key for key, x in points.items() if x is None and getattr(settings, key)]
    changed = replace(
        settings.changed(**points),
        learner=type(built.learner).__name__,
        fallback=built.fallback,
        eras=settings.eras if names == tuple(hosted.entries.names) else (*settings.eras, names),
    )
    _set(hosted, changed)
    if "frozen" in lost:
        _set(hosted, replace(changed, frozen=_current_point(hosted)))
    for number, note in hosted.answers.items():  # of rounds that wait, in the entries of the set
        now = note._replace(era=-1)  # it is decided anew
        if (x := _moved(hosted, note.decision, places)) is not None:
            proposal, era = _moved(hosted, note.proposal, places), len(hosted.settings.eras)
            now = note._replace(decision=x, proposal=proposal, era=era)
        hosted.store.note(hosted.name, now.row(number))
    hosted.store.set(hosted.name, description.canonical, "description")
    hosted.lost = True
    words = f"; its {' and '.join(lost)} used removed entries" if lost else ""
    return f"migrate before round {hosted.session.round + 1}{words}"


def _moved(hosted: HostedSession, x: Floats | m.Point | None, places: Int64s) -> Floats | None:
    """A point of the set before in the entries of the set now; None if that does not have it."""
    if x is None or np.any(np.array(x)[places < 0]):
        return None
    found: Floats = np.zeros(len(hosted.entries.names))
    found[places[places >= 0]] = np.array(x)[places >= 0]
    return found if conforming.is_member(hosted.K, found.reshape(hosted.K.shape)) else None


def _set(hosted: HostedSession, settings: m.Settings) -> None:
    hosted.settings = replace(settings, since=hosted.session.round)
    hosted.store.set(hosted.name, hosted.settings.text)


def _current_point(hosted: HostedSession) -> m.Point:
    number = hosted.session.round
    note, least = hosted.note_of(number) or Note(None), hosting.static(hosted.settings, hosted.K)
    points = note.decision, note.proposal, hosted.last_before(number), least.point
    return next(tuple(x.tolist()) for x in points if x is not None)


def _member(hosted: HostedSession, given: Any, what: str) -> m.Point | None:
    if given is None:
        return None
    _require_overrides(hosted)
    return tuple((hosted.built.member(given, what).reshape(-1) + 0.0).tolist())


def _require_overrides(hosted: HostedSession) -> None:
    errors.require(
        hosted.takes_late,
        errors.NotSupported,
        f"{hosted.settings.learner} takes feedback on its own decisions alone: choose an "
        "Ensemble, or a LyapunovDescent.",
    )


# Each returns what was done, for the audit.
_OPERATIONS: dict[type[m.Request], Callable[[HostedSession, Any], str]] = {
    m.ModeChange: _set_mode,
    m.Pin: _pin,
    m.Rollback: _roll_back,
    m.Migration: _migrate,
}
