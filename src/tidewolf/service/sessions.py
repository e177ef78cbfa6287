"""All sessions by name: opened at first use, one request at a time each, let go of when they fail
or were not used for long.

    look up the name  ->  its lock  ->  open it  ->  one bundle of the shelf  ->  a reply and what
                                                                                  it waits for

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
from typing import Any, TypeVar, cast, final

import numpy as np

from tidewolf import __version__
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
from tidewolf.core.known import Known
from tidewolf.durable.shelf import Card, Entry, Shelf
from tidewolf.evaluation.members import Members
from tidewolf.methods.available import entries_out
from tidewolf.service import operating
from tidewolf.service.description import Description, Made
from tidewolf.service.feedback import BROKEN
from tidewolf.service.ladder import Rung, descend, wanted_rung
from tidewolf.service.models import (
    NAME,
    DecisionRequest,
    Migration,
    ModeChange,
    Observations,
    Pin,
    Rollback,
)
from tidewolf.service.modes import Settings, wanted
from tidewolf.service.notes import Note
from tidewolf.service.overview import Overview
from tidewolf.service.overviews import Overviews
from tidewolf.service.problems import problem, status_of
from tidewolf.service.replies import Caller, Limits, Reply
from tidewolf.service.served import Observed, Served, on_disk
from tidewolf.service.warming import warm_up

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
_New = tuple[str, Made]
"""What was just made, and of which description."""
COUNTED = ("observations", "repeated", "refused", "breaches", "failed_commits", "opened")


@dataclass
class _Place:
    """Where a session is, or will be."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    served: Served | None = None
    gone: bool = False
    """whether another place has taken over from it"""
    broken: tuple[float, CheckpointError] | None = None
    """until when it is not opened again, and why"""


@final
class Sessions:
    """All sessions of a shelf, for requests from many threads.

    Parameters
    ----------
    shelf : Shelf
        Where they are kept.
    limits : Limits, optional
        How much is allowed.
    clock : callable, optional
        The time now. Unit: seconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> from tidewolf.durable.shelf import Shelf
    >>> from tidewolf.service.replies import Caller
    >>> from tidewolf.service.sessions import Sessions
    >>> sessions, me = Sessions(Shelf.open(tempfile.mkdtemp())), Caller()
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
        shelf: Shelf,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.shelf, self.clock = shelf, clock
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
        self._overviews = Overviews(shelf)
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
        why, text = description.why, description.canonical
        if (card := self.shelf.card(name)) is None:
            made = description.made()
            settings = Settings(
                type(made.learner).__name__,
                fallback=operating.flat_fallback(made),
                deadline=description.deadline,
                stale_after=description.stale_after,
                expire_after=description.expire_after,
            )
            if self._create(name, text, settings, why, caller):
                warm_up(made)
                return self._described(name, 201, (text, made))
            card = self.shelf.card(name)
        if card is not None and card.description != text:
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
        if (count := self.shelf.count()) >= self.limits.sessions:
            raise TooMany(
                f"There are {count:,} sessions, and at most {self.limits.sessions:,} are kept: "
                "delete one first."
            )
        try:
            with self.shelf.bundle(name) as bundle:
                self.shelf.create(name, description, settings.text)
                self.shelf.audit(caller.who, name, "put", why)
            on_disk(bundle.future)
        except AlreadyThere:
            return False
        return True

    def get(self, name: str) -> Reply:
        """What is said of a session."""
        return self._described(name, 200)

    def _described(self, name: str, status: int, new: _New | None = None) -> Reply:
        with self._held(name, new, looks=True) as served:
            body, after = served.description(), self._after(served)
        return Reply(status, _versioned(body), after)

    def list(self, prefix: str = "", after: str = "", most: int = 1000) -> Reply:
        """Sessions whose names begin so, in order, after a name."""
        cards = self.shelf.cards(prefix, after, _most(most))
        return Reply(200, _versioned({"sessions": [_in_list(card) for card in cards]}))

    def delete(self, name: str, why: str, caller: Caller) -> Reply:
        """Without a session and all that was kept of it, but the audit."""
        with self._locked(name) as place:
            with self.shelf.bundle(name) as bundle:
                self.shelf.delete(name)
                self.shelf.audit(caller.who, name, "delete", why)
                place.served = None
            on_disk(bundle.future)  # nobody finds it half gone
            self._forget(name, place)
        return Reply(200, _versioned({"name": name, "deleted": True}))

    # --- decisions and observations ---------------------------------------------------------------

    def decide(self, name: str, given: Any, caller: Caller) -> Reply:
        """The decision of a round: the learner's, or what is played in place of it."""
        with self._refusals():
            try:
                with self._held(name, looks=True) as served, self.shelf.bundle(name) as bundle:
                    body = served.decide(given)
                    fell = served.fell
            except UNREADABLE as error:
                return self._without_session(name, given, error)
            self._decided(body["source"], fell)
            after = bundle.future if bundle.writes else self._after(served)
            return Reply(200, _versioned(body), self._watched(served, after))

    def held_at_once(self, name: str, round: int = 1) -> AbstractContextManager[object] | None:
        """A session, alone, to be left again: where it is open, free, has computed little for its
        last requests, and has no rounds to decide on the way to this one, from 1. Else None.
        """
        place = self._places.get(name)
        if place is None or not place.lock.acquire(blocking=False):
            return None
        with ExitStack() as held:
            held.callback(place.lock.release)
            served = place.served
            if served is None or served.lost or served.seconds >= QUICK:
                return None
            if round > served.coming + 1 or not self.shelf.holds(name):
                return None
            return held.pop_all()

    def _decided(self, source: str, fell: bool) -> None:
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
        with self._held(name, looks=True) as served:
            body, after = served.decision(round - 1), self._after(served)
        return Reply(200, _versioned(body), after)

    def observe(self, name: str, given: Any, caller: Caller) -> Reply:
        """Learn from what a round, or several, turned out to be."""
        with self._refusals():
            several = isinstance(given, Mapping) and "observations" in given
            items = self._items(given) if several else [given]
            with self._held(name) as served, self.shelf.bundle(name) as bundle:
                before, broken = served.counts.observations, served.counts.breaches
                try:
                    body = self._observed(served, items) if several else served.observe(given)
                finally:
                    served.trim()
                body.setdefault("rounds", served.session.rounds)
                new = served.counts.observations - before
                broken = served.counts.breaches - broken
            again = int(not several and not new)
            self._count(observations=new, breaches=broken, repeated=again)
            return Reply(200, _versioned(body), self._watched(served, bundle.future))

    def _items(self, given: Mapping[str, Any]) -> Sequence[Any]:
        items = Observations.read(given).observations
        if len(items) > self.limits.observations:
            raise InvalidInput(
                f"{len(items):,} observations were given; a request has at most "
                f"{self.limits.observations:,}. Send them in parts."
            )
        return items

    def _observed(self, served: Served, items: Sequence[Any]) -> dict[str, Any]:
        """Each in order, up to the first that is refused."""
        found: list[dict[str, Any]] = []
        for item in items:
            try:
                answer = served.observe(item)
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
        rows = self.shelf.rounds_of(name, first, first + _most(most) - 1)
        rounds = [
            _in_history(row.round, Observed(row.at, row.cost, row.violation, note))
            for row in rows
            if (note := Note.decode(row.note)) is not None and note.observed
        ]
        return Reply(200, _versioned({"rounds": rounds}))

    def members(self, name: str) -> Reply:
        """Who is trusted, where the learner mixes members."""
        with self._held(name, looks=True) as served:
            found = Members(served.session.learner.members(served.session.state)).plain()
            after = self._after(served)
        return Reply(200, _versioned({"members": found}), after)

    def explanation(self, name: str) -> Reply:
        """Why the learner's decision is what it is."""
        with self._held(name, looks=True) as served:
            found = served.session.explain(names=served.entries.names).to_dict()
            after = self._after(served)
        return Reply(200, _versioned(_from_one(found)), after)

    def report(self, name: str) -> Reply:
        """A page of one session, as HTML."""
        from tidewolf.service.session_page import Facts, session_page

        with self._held(name, looks=True) as served:
            facts = cast(Facts, served.description() | self._facts(served))
            after = self._after(served)
        return Reply(200, {"html": session_page(facts, now=self.clock())}, after)

    def _facts(self, served: Served) -> dict[str, Any]:
        session, recent = served.session, served.recent
        newest = next(reversed(recent.values()), None)
        return {
            "breached": newest is not None and (newest.violation or 0.0) > BROKEN,
            "history": [_in_history(number + 1, one) for number, one in recent.items()],
            "decision": served.decision(session.round),
            "members": Members(session.learner.members(session.state)).plain(),
            "limits": dict(served.counts.broken),
            "audit": [one._asdict() for one in self._last_entries(served.name)],
        }

    def _last_entries(self, name: str) -> Sequence[Entry]:
        """The newest first."""
        return self.shelf.last_entries(name, SHOWN_ENTRIES)

    def audit(self, name: str | None = None, after: int = 0, most: int = 100) -> Reply:
        """Who did what, oldest first; of one session, or of all."""
        entries = self.shelf.entries(name, after, _most(most))
        return Reply(200, _versioned({"entries": [one._asdict() for one in entries]}))

    def overview(self) -> Sequence[Overview]:
        """How all sessions stand, without opening any; good for a second."""
        with self._looking:
            when, found = self._overview
            if time.monotonic() - when > OVERVIEW_FOR:
                found = self._overviews.of(self._cards(), self._opened(), self.clock())
                self._overview = (time.monotonic(), found)
            return found

    def _cards(self) -> Iterator[Card]:
        after = ""
        while cards := self.shelf.cards("", after, 1000):
            yield from cards
            after = cards[-1].name

    def _opened(self) -> dict[str, Served]:
        with self._mutex:
            places = list(self._places.items())
        return {name: place.served for name, place in places if place.served is not None}

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

        def go_on(served: Served, body: Migration) -> str:
            changes = {key: value for key, value in body.given.items() if key != "why"}
            if "fallback" in body.model_fields_set:
                changes["fallback"] = body.fallback  # null is none
            if not changes:
                raise InvalidInput("A migration has a set, or learners, or a fallback.")
            description = Description.read(served.card.description).with_changes(**changes)
            what = operating.go_on_as(served, description.made(), description.canonical)
            served.card = served.card._replace(description=description.canonical)
            return what

        return self._operated(name, Migration, given, caller, go_on)

    def _operated(
        self, name: str, kind: type[R], given: Any, caller: Caller, do: Callable[[Served, R], str]
    ) -> Reply:
        with self._refusals():
            body = kind.read(given)
            with self._held(name) as served, self.shelf.bundle(name) as bundle:
                what = do(served, body)
                self.shelf.audit(caller.who, name, what, body.why or "")
                found = served.description()
            return Reply(200, _versioned(found), self._watched(served, bundle.future))

    def close(self) -> None:
        """Let go of all sessions; the shelf stays open."""
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
        if self.shelf.card(name) is None:
            raise UnknownSession(f"There is no session called {name!r}.")
        with self._mutex:
            return self._places.setdefault(name, _Place())

    @contextmanager
    def _held(self, name: str, new: _New | None = None, *, looks: bool = False) -> Iterator[Served]:
        """A session, opened, alone; let go of where the disk fails it. `looks`: as it is on disk
        will do, where nothing can be written.
        """
        with self._locked(name) as place:
            served = place.served
            if served is None or served.lost or not self.shelf.holds(name):
                served = self._open(name, place, new, looks)
            began = time.thread_time()
            try:
                yield served
                served.took(time.thread_time() - began)
            except CheckpointError:
                self._let_go(name, place)
                raise
            except TidewolfError:
                if not self.shelf.holds(name):  # refused after something was written
                    self._let_go(name, place)
                raise
            except BaseException:
                self._let_go(name, place)
                raise

    def _open(self, name: str, place: _Place, new: _New | None, looks: bool) -> Served:
        self._let_go(name, place)
        if place.broken is not None and time.monotonic() < place.broken[0]:
            raise type(place.broken[1])(str(place.broken[1]))
        card = self.shelf.card(name)
        if card is None:
            self._forget(name, place)
            raise UnknownSession(f"There is no session called {name!r}.")
        made = new[1] if new is not None and new[0] == card.description else None
        try:
            made = _made(card) if made is None else made
            place.served = Served(self.shelf, card, made, self.limits, self.clock)
        except UNREADABLE as error:
            place.broken = (time.monotonic() + BROKEN_FOR, error)
            raise
        except HeldElsewhere:
            raise
        except CheckpointError:
            if not looks:
                raise
            assert made is not None
            return Served(self.shelf, card, made, self.limits, self.clock, looks=True)
        place.broken = None
        self._count(opened=1)
        self._make_room()
        return place.served

    def _let_go(self, name: str, place: _Place) -> None:
        served, place.served = place.served, None
        if served is not None:
            with suppress(TidewolfError):
                served.session.close()
            self.shelf.let_go(name)

    def _forget(self, name: str, place: _Place) -> None:
        place.gone = True
        with self._mutex:
            if self._places.get(name) is place:
                del self._places[name]

    def _make_room(self) -> None:
        """Let go of sessions that were not used for longest, where nobody uses them now."""
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

    def _after(self, served: Served) -> Future[None] | None:
        """What an answer that was looked up waits for."""
        return None if served.looks else self.shelf.flushed(served.name)

    def _watched(self, served: Served, future: Future[None] | None) -> Future[None] | None:
        """The same; where it fails, the session is opened again before its next use."""
        if future is None:
            return None

        def done(one: Future[None]) -> None:
            if one.cancelled() or one.exception() is not None:
                served.lost = True
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
        card = self.shelf.card(name)
        if card is None:
            raise UnknownSession(f"There is no session called {name!r}.")
        body = DecisionRequest.read(given)
        number = card.rounds if body.round is None else body.round - 1
        settings, made = Settings.shown(card.settings), _made(card)
        entries = made.entries
        said = None if body.unavailable is None else entries.unavailable(body.unavailable)
        out = entries_out(made.K, Known(unavailable=said))
        fallback, want = settings.fallback, wanted(settings)
        static = to_numpy(made.K.center) if fallback is None else np.array(fallback)
        rungs = [
            Rung("learner", lambda: None, without=f"The session cannot be opened: {error}"),
            *([] if want.point is None else [wanted_rung(want)]),
            Rung("last", lambda: self._last_noted(name, settings)),
            Rung("static", lambda: static.reshape(-1)),
        ]
        chosen = descend(rungs, out, entries.names)
        self._decided(chosen.source, True)
        x = chosen.point.reshape(made.K.shape)
        answer = {
            "round": number + 1,
            "decision": entries.named(x),
            "paths": made.paths(x),
            "previous": None,
            "moved": None,
            "mode": settings.mode,
            "source": chosen.source,
            "reason": chosen.reason,
        }
        return Reply(200, _versioned(answer))

    def _last_noted(self, name: str, settings: Settings) -> Any:
        with suppress(TidewolfError):
            for row in self.shelf.last_rounds(name, 1):
                note = Note.decode(row.note)
                if note is not None and note.era == len(settings.eras):
                    return note.decision
        return None


def _versioned(body: dict[str, Any]) -> dict[str, Any]:
    body["version"] = __version__
    return body


def _most(given: int) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= LONGEST_LIST:
        raise InvalidInput(f"At most how many is a number from 1 to {LONGEST_LIST:,}.")
    return given


def _made(card: Card) -> Made:
    """What a session's description makes, as it is on disk."""
    try:
        return Description.read(card.description).made()
    except InvalidInput as error:
        raise BrokenFile(
            f"What the session {card.name} is made of was changed on disk: {error} Go back to an "
            "earlier copy."
        ) from None


def _in_list(card: Card) -> dict[str, Any]:
    settings = Settings.shown(card.settings)
    return {
        "name": card.name,
        "rounds": card.rounds,
        "mode": settings.mode,
        "learner": settings.learner,
    }


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
