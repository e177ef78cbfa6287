"""What operators do to a session: set the mode, pin a point, roll back, migrate.

Each is one commit, with a line in the audit. What is played follows from the next request on, also
in the current round. The caller holds the lock of the session, and a transaction.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from tidewolf.core.conforming import is_member
from tidewolf.core.errors import InvalidInput, NotSupported
from tidewolf.core.types import Floats
from tidewolf.service import models as m
from tidewolf.service.description import Description, Point, Settings
from tidewolf.service.hosted_session import HostedSession, Note, on_disk, static


def operate(hosted: HostedSession, body: m.ModeChange | m.Pin | m.Rollback | m.Migration) -> str:
    """Do what an operator asks for; returns what was done, for the audit."""
    match body:
        case m.ModeChange():
            return _set_mode(hosted, body)
        case m.Pin():
            pin = _member(hosted, body.decision, "The decision to pin")
            _set(hosted, hosted.settings.changed(pin=pin))
            return "unpin" if pin is None else "pin"
        case m.Rollback():
            return _roll_back(hosted, body.round - 1)
        case m.Migration():
            return _migrate(hosted, body)


def _set_mode(hosted: HostedSession, body: m.ModeChange) -> str:
    if body.mode != "live":
        _require_overrides(hosted)
    if body.incumbent is not None and body.mode != "shadow":
        raise InvalidInput(f"An incumbent's point is played in shadow, not in mode {body.mode}.")
    incumbent = _member(hosted, body.incumbent, "The incumbent's point")
    frozen = _current_point(hosted) if body.mode == "frozen" else None
    _set(hosted, hosted.settings.changed(mode=body.mode, incumbent=incumbent, frozen=frozen))
    return f"mode {body.mode}"


def _roll_back(hosted: HostedSession, number: int) -> str:
    before, session, store, name = hosted.next_round, hosted.session, hosted.store, hosted.name
    on_disk(store.flushed(name))
    try:
        session.rollback(number)
    except InvalidInput:
        what = f"Round {number + 1} cannot be gone back to: it is after round {before + 1}"
        raise InvalidInput(f"{what}, or is not stored.") from None
    store.forget_rounds(name, number + 1)
    if hosted.settings.since >= number:  # that round is another one
        hosted.settings = replace(hosted.settings, since=-1)
        store.set(name, hosted.settings.text)
    for row in store.rounds_of(name, min(session.pending, default=number) + 1, number):
        note = Note.of(row)
        if note is not None and row.round - 1 in session.pending:
            again = note._replace(observed=False, rounds=0, played="", saved=None)
            store.note(name, again._replace(cost=None, violation=None).row(row.round - 1))
    hosted.lost, hosted.asked_at = True, {}
    return f"rollback from round {before + 1} to round {number + 1}"


def _migrate(hosted: HostedSession, body: m.Migration) -> str:
    changes = {key: getattr(body, key) for key in body.model_fields_set - {"why"}}
    changes = {key: it for key, it in changes.items() if it is not None or key == "fallback"}
    if not changes:
        raise InvalidInput("A migration has a set, or learners, or a fallback.")
    description = Description.read(json.loads(hosted.info.description) | changes)
    built, names, settings = description.build(), tuple(hosted.entries.names), hosted.settings
    hosted.session.migrate(built.learner)
    hosted.use(built)
    places = [hosted.entries.place.get(name, -1) for name in names]
    points: dict[str, Point | None] = {}
    for key in ("pin", "incumbent", "frozen"):
        moved = _moved(hosted, getattr(settings, key), places)
        points[key] = None if moved is None else tuple(moved.tolist())
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
        decision = _moved(hosted, note.decision, places)
        proposal = _moved(hosted, note.proposal, places)
        now = note._replace(decision=decision, proposal=proposal, era=len(hosted.settings.eras))
        now = note._replace(era=-1) if now.decision is None else now  # it is decided anew
        hosted.store.note(hosted.name, now.row(number))
    hosted.store.set(hosted.name, description.canonical, "description")
    hosted.lost = True
    words = f"; its {' and '.join(lost)} used removed entries" if lost else ""
    return f"migrate before round {hosted.session.round + 1}{words}"


def _moved(hosted: HostedSession, x: Floats | Point | None, places: list[int]) -> Floats | None:
    """A point of the set before in the entries of the set now; None if that does not have it."""
    if x is None:
        return None
    found: Floats = np.zeros(len(hosted.entries.names))
    for value, place in zip(x, places, strict=True):
        if place >= 0:
            found[place] = value
        elif value != 0.0:
            return None
    return found if is_member(hosted.K, found.reshape(hosted.K.shape)) else None


def _set(hosted: HostedSession, settings: Settings) -> None:
    hosted.settings = replace(settings, since=hosted.session.round)
    hosted.store.set(hosted.name, hosted.settings.text)


def _current_point(hosted: HostedSession) -> Point:
    number = hosted.session.round
    note = hosted.note_of(number) or Note(None)
    least = static(hosted.settings, hosted.K).point
    points = note.decision, note.proposal, hosted.last_before(number), least
    return next(tuple(x.tolist()) for x in points if x is not None)


def _member(hosted: HostedSession, given: Any, what: str) -> Point | None:
    if given is None:
        return None
    _require_overrides(hosted)
    return tuple((hosted.built.member(given, what).reshape(-1) + 0.0).tolist())


def _require_overrides(hosted: HostedSession) -> None:
    if not hosted.takes_late:
        raise NotSupported(
            f"{hosted.settings.learner} takes feedback on its own decisions alone: choose an "
            "Ensemble, or a LyapunovDescent."
        )
