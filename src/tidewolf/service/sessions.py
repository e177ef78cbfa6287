"""All sessions of a service by name. Each is opened at first use, answers one request at a time,
and is closed when it fails or has not been used for long.

    look up the name  ->  its lock  ->  open it  ->  one transaction  ->  a reply, and the
    future that it waits for

A commit that fails acknowledges nothing: memory is then ahead of the disk, so the session is let go
of, and the next request opens it again as it is on disk. One whose rows cannot be read still gets
decisions: the last that is known, or a static one, with the reason.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast, final

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import (
    AlreadyThere,
    BrokenFile,
    CheckpointError,
    HeldElsewhere,
    InvalidInput,
    NewerFormat,
    NotSupported,
    OlderFormat,
    OtherSettings,
    Overloaded,
    TidewolfError,
    TooMany,
    UnknownSession,
)
from tidewolf.core.round_info import RoundInfo
from tidewolf.evaluation.experts import Experts
from tidewolf.methods.available import entries_out
from tidewolf.service import operating
from tidewolf.service.description import BROKEN, Built, Description
from tidewolf.service.hosted_session import HostedSession, on_disk
from tidewolf.service.messages import problem, status_of
from tidewolf.service.models import (
    NAME,
    DecisionRequest,
    Migration,
    ModeChange,
    Observations,
    Pin,
    Rollback,
)
from tidewolf.service.modes import (
    Fallback,
    Settings,
    chosen_override,
    descend,
    override_fallback,
)
from tidewolf.service.notes import Note, Observed
from tidewolf.service.overviews import Overview, Overviews
from tidewolf.service.tokens import Caller
from tidewolf.service.traffic import Limits
from tidewolf.service.warming import warm_up
from tidewolf.storage.session_store import SessionInfo, SessionStore

LONGEST_LIST = 10_000
SHOWN_ENTRIES = 20
UNREADABLE = (BrokenFile, OtherSettings, NewerFormat, OlderFormat)
"""Errors of a session that cannot be opened as it is on disk."""
BROKEN_FOR = 5.0
"""How long one that cannot be opened is not tried again. Unit: seconds."""
QUICK = 0.003
"""What a request may take where others wait for it. Unit: seconds."""
OVERVIEW_FOR = 1.0
"""How long an overview is good. Unit: seconds."""
R = TypeVar("R", ModeChange, Pin, Rollback, Migration)
_New = tuple[str, Built]
"""What was just made, and of which description."""
COUNTED = ("observations", "repeated", "refused", "breaches", "failed_commits", "opened")


class Reply(NamedTuple):
    """What is answered, once `after` is done.

    Parameters
    ----------
    status : int
        As HTTP has it.
    body : dict
        The answer.
    after : Future, optional
        What the answer waits for: it is on disk then. None: for nothing.
    """

    status: int
    body: dict[str, Any]
    after: Future[None] | None = None


@dataclass
class _Place:
    """The handle of a session: its lock, and the session once it is open."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    hosted: HostedSession | None = None
    gone: bool = False
    """whether another place has taken over from it"""
    broken: tuple[float, CheckpointError] | None = None
    """until when it is not opened again, and why"""


@final
class Sessions:
    """All sessions of a session store, for requests from many threads.

    Parameters
    ----------
    store : SessionStore
        Where they are kept.
    limits : Limits, optional
        How much is allowed.
    clock : callable, optional
        The time now. Unit: seconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> from tidewolf.storage.session_store import SessionStore
    >>> from tidewolf.service.tokens import Caller
    >>> from tidewolf.service.sessions import Sessions
    >>> sessions, me = Sessions(SessionStore.open(tempfile.mkdtemp())), Caller()
    >>> body = {"set": {"kind": "Simplex", "n": 2}, "learners": [{"name": "LyapunovDescent"}]}
    >>> sessions.put("two", body, me).status
    201
    >>> sessions.decide("two", None, me).body["decision"]
    {'entry 0': 0.5, 'entry 1': 0.5}
    >>> reply = sessions.observe("two", {"round": 1, "costs": [1.0, 0.0]}, me)
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
        self.counters: dict[str, Any] = {
            "decisions": {},
            "fallbacks": {},
            **dict.fromkeys(COUNTED, 0),
        }
        """what happened since the start, by name; decisions by source, fallbacks by rung"""
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._mutex = threading.Lock()
        """of the places and the counters"""
        self._overviews = Overviews(store)
        self._overview: tuple[float, Sequence[Overview]] = (-1e9, [])
        self._looking = threading.Lock()

    # --- sessions by name -------------------------------------------------------------------------

    def put(self, name: str, given: Any, caller: Caller) -> Reply:
        """Make a session; one that is there already as it is described is answered alike."""
        if not NAME.fullmatch(name):
            raise InvalidInput(
                "The name of a session is 1 to 100 letters, digits, dots, dashes and underscores, "
                f"and begins with a letter or a digit: {shown(name)} is none."
            )
        description = Description.of(given)
        why, text = description.why or "", description.canonical
        if (info := self.store.info(name)) is None:
            built = description.build()
            settings = Settings(
                type(built.learner).__name__,
                fallback=operating.flat_fallback(built),
                deadline=description.deadline,
                stale_after=description.stale_after,
                expire_after=description.expire_after,
            )
            if self._create(name, text, settings, why, caller):
                warm_up(built)
                return self._described(name, 201, (text, built))
            info = self.store.info(name)
        if info is not None and info.description != text:
            raise AlreadyThere(
                f"There is a session called {name!r} already, of another description: migrate it, "
                "delete it, or choose another name."
            )
        try:
            return self._described(name, 200)
        except UnknownSession:  # deleted meanwhile
            return self.put(name, given, caller)

    def _create(
        self, name: str, description: str, settings: Settings, why: str, caller: Caller
    ) -> bool:
        """Whether it is new."""
        if (count := self.store.count()) >= self.limits.sessions:
            raise TooMany(
                f"There are {count:,} sessions, and at most {self.limits.sessions:,} are kept: "
                "delete one first."
            )
        try:
            with self.store.transaction(name) as transaction:
                self.store.create(name, description, settings.text)
                self.store.audit(caller.who, name, "put", why)
            on_disk(transaction.future)
        except AlreadyThere:
            return False
        return True

    def get(self, name: str) -> Reply:
        """The description of a session."""
        return self._described(name, 200)

    def _described(self, name: str, status: int, new: _New | None = None) -> Reply:
        with self._held(name, new, looks=True) as hosted:
            body, after = hosted.description(), self._after(hosted)
        return Reply(status, body, after)

    def list(self, prefix: str = "", after: str = "", most: int = 1000) -> Reply:
        """Sessions whose names begin so, in order, after a name."""
        listed = []
        for info in self.store.infos(prefix, after, _most(most)):
            settings = Settings.shown(info.settings)
            own = {"mode": settings.mode, "learner": settings.learner}
            listed.append({"name": info.name, "rounds": info.rounds, **own})
        return Reply(200, {"sessions": listed})

    def delete(self, name: str, why: str, caller: Caller) -> Reply:
        """Without a session and all that was kept of it, but the audit."""
        with self._locked(name) as place:
            with self.store.transaction(name) as transaction:
                self.store.delete(name)
                self.store.audit(caller.who, name, "delete", why)
                place.hosted = None
            on_disk(transaction.future)  # no request finds it half deleted
            self._forget(name, place)
        return Reply(200, {"name": name, "deleted": True})

    # --- decisions and observations ---------------------------------------------------------------

    def decide(self, name: str, given: Any, caller: Caller) -> Reply:
        """The decision of a round: the learner's, or what is played in place of it."""
        with self._refusals():
            try:
                with (
                    self._held(name, looks=True) as hosted,
                    self.store.transaction(name) as transaction,
                ):
                    body = hosted.decide(given)
                    fell = hosted.fell
            except UNREADABLE as error:
                return self._without_session(name, given, error)
            self._count_decision(body["source"], fell)
            after = transaction.future if transaction.writes else self._after(hosted)
            return Reply(200, body, self._watched(hosted, after))

    def held_at_once(self, name: str, round: int = 1) -> AbstractContextManager[object] | None:
        """A session, alone, to be left again: where it is open, free, has computed little for its
        last requests, and has no rounds to decide on the way to this one, from 1. Else None.
        """
        place = self._places.get(name)
        if place is None or not place.lock.acquire(blocking=False):
            return None
        with ExitStack() as held:
            held.callback(place.lock.release)
            hosted = place.hosted
            if hosted is None or hosted.lost or hosted.seconds >= QUICK:
                return None
            if round > hosted.next_round + 1 or not self.store.holds(name):
                return None
            return held.pop_all()

    def _count_decision(self, source: str, fell: bool) -> None:
        with self._mutex:
            for key in ("decisions", "fallbacks") if fell else ("decisions",):
                counts = self.counters[key]
                counts[source] = counts.get(source, 0) + 1

    def _count(self, **by: int) -> None:
        with self._mutex:
            for key, value in by.items():
                self.counters[key] += value

    def decision(self, name: str, round: int) -> Reply:
        """The decision of a round that is over, waits, or stands."""
        with self._held(name, looks=True) as hosted:
            body, after = hosted.decision(round - 1), self._after(hosted)
        return Reply(200, body, after)

    def observe(self, name: str, given: Any, caller: Caller) -> Reply:
        """Learn from what a round, or several, turned out to be."""
        with self._refusals():
            several = isinstance(given, Mapping) and "observations" in given
            items = self._items(given) if several else [given]
            with self._held(name) as hosted, self.store.transaction(name) as transaction:
                before, broken = hosted.counts.observations, hosted.counts.breaches
                try:
                    body = self._observed(hosted, items) if several else hosted.observe(given)
                finally:
                    hosted.trim()
                if several:
                    body["rounds"] = hosted.session.rounds
                new = hosted.counts.observations - before
                broken = hosted.counts.breaches - broken
            again = int(not several and not new)
            self._count(observations=new, breaches=broken, repeated=again)
            return Reply(200, body, self._watched(hosted, transaction.future))

    def _items(self, given: Mapping[str, Any]) -> Sequence[Any]:
        items = Observations.read(given).observations
        if len(items) > self.limits.observations:
            raise InvalidInput(
                f"{len(items):,} observations were given; a request has at most "
                f"{self.limits.observations:,}. Send them in parts."
            )
        return items

    def _observed(self, hosted: HostedSession, items: Sequence[Any]) -> dict[str, Any]:
        """Each in order, up to the first that is refused."""
        found: list[dict[str, Any]] = []
        for item in items:
            try:
                answer = hosted.observe(item)
                del answer["rounds"]
                found.append(answer)
            except (InvalidInput, NotSupported) as error:
                status, title = status_of(error), type(error).__name__
                found.append({"error": problem(status, str(error), title=title)})
                break
        return {"observations": found}

    # --- looking ----------------------------------------------------------------------------------

    def history(self, name: str, first: int = 1, most: int = 1000) -> Reply:
        """What was observed of rounds, in order; nothing that is not on disk is found there."""
        rows = self.store.rounds_of(name, first, first + _most(most) - 1)
        rounds = [
            _in_history(row.round, Observed(row.at, row.cost, row.violation, note))
            for row in rows
            if (note := Note.decode(row.note)) is not None and note.observed
        ]
        return Reply(200, {"rounds": rounds})

    def experts(self, name: str) -> Reply:
        """Who is trusted, where the learner mixes members."""
        with self._held(name, looks=True) as hosted:
            found = Experts(hosted.session.learner.experts_of(hosted.session.state)).plain()
            after = self._after(hosted)
        return Reply(200, {"experts": found}, after)

    def explanation(self, name: str) -> Reply:
        """Why the learner's decision is what it is."""
        with self._held(name, looks=True) as hosted:
            found = hosted.session.explain(names=hosted.entries.names).to_dict()
            after = self._after(hosted)
        return Reply(200, _from_one(found), after)

    def report(self, name: str) -> Reply:
        """A page of one session, as HTML."""
        from tidewolf.service.pages import Facts, session_page

        with self._held(name, looks=True) as hosted:
            facts = cast(Facts, hosted.description() | self._facts(hosted))
            after = self._after(hosted)
        return Reply(200, {"html": session_page(facts, now=self.clock())}, after)

    def _facts(self, hosted: HostedSession) -> dict[str, Any]:
        session, recent = hosted.session, hosted.recent
        newest = next(reversed(recent.values()), None)
        return {
            "breached": newest is not None and (newest.violation or 0.0) > BROKEN,
            "history": [_in_history(number + 1, one) for number, one in recent.items()],
            "decision": hosted.decision(session.round),
            "experts": Experts(session.learner.experts_of(session.state)).plain(),
            "limits": dict(hosted.counts.broken),
            "audit": [e._asdict() for e in self.store.last_entries(hosted.name, SHOWN_ENTRIES)],
        }

    def audit(self, name: str | None = None, after: int = 0, most: int = 100) -> Reply:
        """Who did what, oldest first; of one session, or of all."""
        entries = self.store.entries(name, after, _most(most))
        return Reply(200, {"entries": [one._asdict() for one in entries]})

    def overview(self) -> Sequence[Overview]:
        """How all sessions stand, without opening any; good for a second."""
        with self._looking:
            when, found = self._overview
            if time.monotonic() - when > OVERVIEW_FOR:
                with self._mutex:
                    places = list(self._places.items())
                opened = {name: place.hosted for name, place in places if place.hosted is not None}
                found = self._overviews.of(self._infos(), opened, self.clock())
                self._overview = (time.monotonic(), found)
            return found

    def _infos(self) -> Iterator[SessionInfo]:
        after = ""
        while infos := self.store.infos("", after, 1000):
            yield from infos
            after = infos[-1].name

    # --- operating --------------------------------------------------------------------------------

    def mode(self, name: str, given: Any, caller: Caller) -> Reply:
        """Live, shadow or frozen."""
        return self._operated(name, ModeChange, given, caller, operating.set_mode)

    def pin(self, name: str, given: Any, caller: Caller) -> Reply:
        """Pinned at a point, or at none."""
        return self._operated(name, Pin, given, caller, operating.set_pin)

    def rollback(self, name: str, given: Any, caller: Caller) -> Reply:
        """Back to a round."""
        return self._operated(name, Rollback, given, caller, operating.go_back)

    def migrate(self, name: str, given: Any, caller: Caller) -> Reply:
        """With another learner of the same kind, such as over a network that changed."""

        def go_on(hosted: HostedSession, body: Migration) -> str:
            changes = {key: value for key, value in body.given.items() if key != "why"}
            if "fallback" in body.model_fields_set:
                changes["fallback"] = body.fallback  # null is none
            if not changes:
                raise InvalidInput("A migration has a set, or learners, or a fallback.")
            description = Description.parse(hosted.info.description).with_changes(**changes)
            what = operating.go_on_as(hosted, description.build(), description.canonical)
            hosted.info = hosted.info._replace(description=description.canonical)
            return what

        return self._operated(name, Migration, given, caller, go_on)

    def _operated(
        self,
        name: str,
        kind: type[R],
        given: Any,
        caller: Caller,
        do: Callable[[HostedSession, R], str],
    ) -> Reply:
        with self._refusals():
            body = kind.read(given)
            with self._held(name) as hosted, self.store.transaction(name) as transaction:
                what = do(hosted, body)
                self.store.audit(caller.who, name, what, body.why or "")
                found = hosted.description()
            return Reply(200, found, self._watched(hosted, transaction.future))

    def close(self) -> None:
        """Close all sessions; the store stays open."""
        with self._mutex:
            names = list(self._places)
        for name in names:
            with suppress(TidewolfError), self._locked(name) as place:
                self._let_go(name, place)

    # --- places -----------------------------------------------------------------------------------

    @contextmanager
    def _locked(self, name: str) -> Iterator[_Place]:
        """The place of a session, alone."""
        while True:
            place = self._place(name)
            if not place.lock.acquire(timeout=self.limits.wait):
                raise Overloaded(
                    f"The session {name} has answered others for {self.limits.wait:g} s: try again "
                    "later."
                )
            if not place.gone:
                break
            place.lock.release()
        try:
            yield place
        finally:
            place.lock.release()

    def _place(self, name: str) -> _Place:
        with self._mutex:
            place = self._places.get(name)
            if place is not None:
                self._places.move_to_end(name)
                return place
        if self.store.info(name) is None:
            raise UnknownSession(f"There is no session called {name!r}.")
        with self._mutex:
            return self._places.setdefault(name, _Place())

    @contextmanager
    def _held(
        self, name: str, new: _New | None = None, *, looks: bool = False
    ) -> Iterator[HostedSession]:
        """A session, opened, alone; let go of where the disk fails it. `looks`: as it is on disk
        will do, where nothing can be written.
        """
        with self._locked(name) as place:
            hosted = place.hosted
            if hosted is None or hosted.lost or not self.store.holds(name):
                hosted = self._open(name, place, new, looks)
            began = time.thread_time()
            try:
                yield hosted
                hosted.took(time.thread_time() - began)
            except CheckpointError:
                self._let_go(name, place)
                raise
            except TidewolfError:
                if not self.store.holds(name):  # refused after something was written
                    self._let_go(name, place)
                raise
            except BaseException:
                self._let_go(name, place)
                raise

    def _open(self, name: str, place: _Place, new: _New | None, looks: bool) -> HostedSession:
        self._let_go(name, place)
        if place.broken is not None and time.monotonic() < place.broken[0]:
            raise type(place.broken[1])(str(place.broken[1]))
        info = self.store.info(name)
        if info is None:
            self._forget(name, place)
            raise UnknownSession(f"There is no session called {name!r}.")
        built = new[1] if new is not None and new[0] == info.description else None
        try:
            built = _built(info) if built is None else built
            place.hosted = HostedSession(self.store, info, built, self.limits, self.clock)
        except UNREADABLE as error:
            place.broken = (time.monotonic() + BROKEN_FOR, error)
            raise
        except HeldElsewhere:
            raise
        except CheckpointError:
            if not looks:
                raise
            assert built is not None
            return HostedSession(self.store, info, built, self.limits, self.clock, looks=True)
        place.broken = None
        self._count(opened=1)
        self._make_room()
        return place.hosted

    def _let_go(self, name: str, place: _Place) -> None:
        hosted, place.hosted = place.hosted, None
        if hosted is not None:
            with suppress(TidewolfError):
                hosted.session.close()
            self.store.let_go(name)

    def _forget(self, name: str, place: _Place) -> None:
        place.gone = True
        with self._mutex:
            if self._places.get(name) is place:
                del self._places[name]

    def _make_room(self) -> None:
        """Close the sessions that have been idle for longest, unless a request uses them now."""
        with self._mutex:
            places = list(self._places.items())
        most = len(places) - self.limits.open
        for name, place in places:
            if most <= 0:
                return
            if place.lock.acquire(blocking=False):
                try:
                    self._let_go(name, place)
                    self._forget(name, place)
                finally:
                    place.lock.release()
                most -= 1

    def _after(self, hosted: HostedSession) -> Future[None] | None:
        """What an answer that was looked up waits for."""
        return None if hosted.looks else self.store.flushed(hosted.name)

    def _watched(self, hosted: HostedSession, future: Future[None] | None) -> Future[None] | None:
        """The same; where it fails, the session is opened again before its next use."""
        if future is None:
            return None

        def done(one: Future[None]) -> None:
            if one.cancelled() or one.exception() is not None:
                hosted.lost = True
                self._count(failed_commits=1)

        future.add_done_callback(done)
        return future

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except TidewolfError:
            self._count(refused=1)
            raise

    # --- a session that cannot be opened ----------------------------------------------------------

    def _without_session(self, name: str, given: Any, error: CheckpointError) -> Reply:
        """A decision where the session's rows cannot be read."""
        info = self.store.info(name)
        if info is None:
            raise UnknownSession(f"There is no session called {name!r}.")
        body = DecisionRequest.read(given)
        number = info.rounds if body.round is None else body.round - 1
        settings, built = Settings.shown(info.settings), _built(info)
        entries = built.entries
        said = None if body.unavailable is None else entries.unavailable(body.unavailable)
        out = entries_out(built.K, RoundInfo(unavailable=said))
        fallback, override = settings.fallback, chosen_override(settings)
        static = to_numpy(built.K.center) if fallback is None else np.array(fallback)
        fallbacks = [
            Fallback("learner", lambda: None, without=f"The session cannot be opened: {error}"),
            *([] if override.point is None else [override_fallback(override)]),
            Fallback("last", lambda: self._last_note(name, settings)),
            Fallback("static", lambda: static.reshape(-1)),
        ]
        chosen = descend(fallbacks, out, entries.names)
        self._count_decision(chosen.source, True)
        x = chosen.point.reshape(built.K.shape)
        answer = {
            "round": number + 1,
            "decision": entries.named(x),
            "paths": built.paths(x),
            "previous": None,
            "moved": None,
            "mode": settings.mode,
            "source": chosen.source,
            "reason": chosen.reason,
        }
        return Reply(200, answer)

    def _last_note(self, name: str, settings: Settings) -> Any:
        with suppress(TidewolfError):
            for row in self.store.last_rounds(name, 1):
                note = Note.decode(row.note)
                if note is not None and note.era == len(settings.eras):
                    return note.decision
        return None


def _most(given: int) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= LONGEST_LIST:
        raise InvalidInput(f"At most how many is a number from 1 to {LONGEST_LIST:,}.")
    return given


def _built(info: SessionInfo) -> Built:
    """What a session's description makes, as it is on disk."""
    try:
        return Description.parse(info.description).build()
    except InvalidInput as error:
        raise BrokenFile(
            f"What the session {info.name} is made of was changed on disk: {error} Go back to an "
            "earlier copy."
        ) from None


def _in_history(number: int, one: Observed) -> dict[str, Any]:
    return {
        "round": number,
        "at": one.at,
        "cost": one.cost,
        "violation": one.violation,
        "mode": one.note.mode,
        "source": one.note.source,
    }


def _from_one(found: dict[str, Any]) -> dict[str, Any]:
    """An explanation with rounds counted from 1."""
    for key in ("round", "since"):
        if found.get(key) is not None:
            found[key] += 1
    found["pending"] = [number + 1 for number in found.get("pending") or ()]
    outlook = found.get("outlook")
    if isinstance(outlook, dict) and outlook.get("round") is not None:
        outlook["round"] += 1
    return found
