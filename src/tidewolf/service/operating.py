"""What operators do to a session: modes, pins, going back, another learner.

Each is one commit, with a line in the audit. What is played follows from the next request on, also
in the round that stands.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidewolf.core.conforming import is_member
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Floats
from tidewolf.service.description import Made
from tidewolf.service.models import ModeChange, Pin, Rollback
from tidewolf.service.modes import Point, Settings
from tidewolf.service.notes import counted_from_one
from tidewolf.service.served import Served


def set_mode(served: Served, body: ModeChange) -> str:
    """Another mode.

    Parameters
    ----------
    served : Served
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
        served.require_overrides()
    incumbent = None
    if body.incumbent is not None:
        if mode != "shadow":
            raise InvalidInput(f"An incumbent's point is played in shadow, not in mode {mode}.")
        incumbent = served.member(body.incumbent, "The incumbent's point")
    frozen = _standing(served) if mode == "frozen" else None
    served.operate(served.settings.changed(mode=mode, incumbent=incumbent, frozen=frozen))
    return f"mode {mode}"


def set_pin(served: Served, body: Pin) -> str:
    """Pinned at a point, or at none.

    Parameters
    ----------
    served : Served
        The session.
    body : Pin
        The request.

    Returns
    -------
    str
        What was done, for the audit.
    """
    if body.decision is None:
        served.operate(served.settings.changed(pin=None))
        return "unpin"
    served.require_overrides()
    pin = served.member(body.decision, "The decision to pin")
    served.operate(served.settings.changed(pin=pin))
    return "pin"


def go_back(served: Served, body: Rollback) -> str:
    """Back to the moment when a round became the coming one.

    Parameters
    ----------
    served : Served
        The session.
    body : Rollback
        The request.

    Returns
    -------
    str
        What was done, for the audit.
    """
    number, before = body.round - 1, served.coming
    served.shelf.flushed(served.name).result()
    with counted_from_one():
        served.session.rollback(number)
    served.went_back(number)
    return f"rollback from round {before + 1} to round {number + 1}"


def go_on_as(served: Served, made: Made, description: str) -> str:
    """With another learner of the same kind, such as over a network that changed.

    Parameters
    ----------
    served : Served
        The session.
    made : Made
        Who reads rows, and who decides, from now on.
    description : str
        What they are made of.

    Returns
    -------
    str
        What was done, for the audit.
    """
    names, settings = tuple(served.entries.names), served.settings
    with counted_from_one():
        served.session.migrate(made.learner)
    served.goes_on_as(made)
    places = [served.entries.place.get(name, -1) for name in names]
    is_same = names == tuple(served.entries.names)
    points = {
        one: _carried(served, getattr(settings, one), places)
        for one in ("pin", "incumbent", "frozen")
    }
    lost = [one for one, point in points.items() if getattr(settings, one) and not point]
    eras = settings.eras if is_same else (*settings.eras, names)
    changed: Settings = replace(
        settings.changed(**points),
        learner=type(made.learner).__name__,
        fallback=flat_fallback(made),
        eras=eras,
    )
    served.operate(changed)
    if "frozen" in lost:
        served.operate(replace(changed, frozen=_standing(served)))
    served.migrated(lambda x: _moved(served, x, places))
    served.shelf.describe(served.name, description)
    said = f"; its {' and '.join(lost)} used what is gone" if lost else ""
    return f"migrate before round {served.session.round + 1}{said}"


def flat_fallback(made: Made) -> Point | None:
    """The static decision of a description, as settings keep it."""
    return None if made.fallback is None else tuple(made.fallback.reshape(-1).tolist())


def _standing(served: Served) -> Point:
    """The decision that stands."""
    found = served.standing()
    return tuple(found.tolist())


def _carried(served: Served, point: Point | None, places: list[int]) -> Point | None:
    if point is None:
        return None
    moved = _moved(served, np.array(point), places)
    return None if moved is None else tuple(moved.tolist())


def _moved(served: Served, x: Floats, places: list[int]) -> Floats | None:
    """A point of the set before in the entries of the set now; None where that has it not."""
    found: Floats = np.zeros(len(served.entries.names))
    for value, place in zip(x.tolist(), places, strict=True):
        if place >= 0:
            found[place] = value
        elif value != 0.0:
            return None
    K = served.K
    return found if is_member(K, found.reshape(K.shape)) else None
