"""Actions of operators on a session: set the mode, pin a point, roll back, migrate.

Each is one commit, with a line in the audit. What is played follows from the next request on, also
in the round that stands.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidewolf.core.conforming import is_member
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Floats
from tidewolf.service.description import Built
from tidewolf.service.hosted_session import HostedSession
from tidewolf.service.models import ModeChange, Pin, Rollback
from tidewolf.service.modes import Point, Settings
from tidewolf.service.notes import counted_from_one


def set_mode(hosted: HostedSession, body: ModeChange) -> str:
    """Another mode.

    Parameters
    ----------
    hosted : HostedSession
        The session.
    body : ModeChange
        The request.

    Returns
    -------
    str
        What was done, for the audit.
    """
    mode = body.mode
    if mode != "live":
        hosted.require_overrides()
    incumbent = None
    if body.incumbent is not None:
        if mode != "shadow":
            raise InvalidInput(f"An incumbent's point is played in shadow, not in mode {mode}.")
        incumbent = hosted.member(body.incumbent, "The incumbent's point")
    frozen = _current_decision(hosted) if mode == "frozen" else None
    hosted.operate(hosted.settings.changed(mode=mode, incumbent=incumbent, frozen=frozen))
    return f"mode {mode}"


def set_pin(hosted: HostedSession, body: Pin) -> str:
    """Pinned at a point, or at none.

    Parameters
    ----------
    hosted : HostedSession
        The session.
    body : Pin
        The request.

    Returns
    -------
    str
        What was done, for the audit.
    """
    if body.decision is None:
        hosted.operate(hosted.settings.changed(pin=None))
        return "unpin"
    hosted.require_overrides()
    pin = hosted.member(body.decision, "The decision to pin")
    hosted.operate(hosted.settings.changed(pin=pin))
    return "pin"


def go_back(hosted: HostedSession, body: Rollback) -> str:
    """Back to the moment when a round became the coming one.

    Parameters
    ----------
    hosted : HostedSession
        The session.
    body : Rollback
        The request.

    Returns
    -------
    str
        What was done, for the audit.
    """
    number, before = body.round - 1, hosted.next_round
    hosted.store.flushed(hosted.name).result()
    with counted_from_one():
        hosted.session.rollback(number)
    hosted.went_back(number)
    return f"rollback from round {before + 1} to round {number + 1}"


def go_on_as(hosted: HostedSession, built: Built, description: str) -> str:
    """With another learner of the same kind, such as over a network that changed.

    Parameters
    ----------
    hosted : HostedSession
        The session.
    built : Built
        Who reads rows, and who decides, from now on.
    description : str
        What they are made of.

    Returns
    -------
    str
        What was done, for the audit.
    """
    names, settings = tuple(hosted.entries.names), hosted.settings
    with counted_from_one():
        hosted.session.migrate(built.learner)
    hosted.goes_on_as(built)
    places = [hosted.entries.place.get(name, -1) for name in names]
    is_same = names == tuple(hosted.entries.names)
    points = {
        one: _carried(hosted, getattr(settings, one), places)
        for one in ("pin", "incumbent", "frozen")
    }
    lost = [one for one, point in points.items() if getattr(settings, one) and not point]
    eras = settings.eras if is_same else (*settings.eras, names)
    changed: Settings = replace(
        settings.changed(**points),
        learner=type(built.learner).__name__,
        fallback=flat_fallback(built),
        eras=eras,
    )
    hosted.operate(changed)
    if "frozen" in lost:
        hosted.operate(replace(changed, frozen=_current_decision(hosted)))
    hosted.migrated(lambda x: _moved(hosted, x, places))
    hosted.store.describe(hosted.name, description)
    said = f"; its {' and '.join(lost)} used what is gone" if lost else ""
    return f"migrate before round {hosted.session.round + 1}{said}"


def flat_fallback(built: Built) -> Point | None:
    """The static decision of a description, as settings keep it."""
    return None if built.fallback is None else tuple(built.fallback.reshape(-1).tolist())


def _current_decision(hosted: HostedSession) -> Point:
    """The decision that stands."""
    found = hosted.current_decision()
    return tuple(found.tolist())


def _carried(hosted: HostedSession, point: Point | None, places: list[int]) -> Point | None:
    if point is None:
        return None
    moved = _moved(hosted, np.array(point), places)
    return None if moved is None else tuple(moved.tolist())


def _moved(hosted: HostedSession, x: Floats, places: list[int]) -> Floats | None:
    """A point of the set before in the entries of the set now; None where that has it not."""
    found: Floats = np.zeros(len(hosted.entries.names))
    for value, place in zip(x.tolist(), places, strict=True):
        if place >= 0:
            found[place] = value
        elif value != 0.0:
            return None
    K = hosted.K
    return found if is_member(K, found.reshape(K.shape)) else None
