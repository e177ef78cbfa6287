"""What is played when something fails: the learner, the last good decision, a static one.

    [what is pinned, frozen, or the incumbent's]  ->  learner  ->  last  ->  static

A rung holds where there is a point, and it does without the entries that are out. Whatever does
not hold says why, and all of it is in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from tidewolf.core.errors import NotSupported
from tidewolf.core.names import listed
from tidewolf.core.types import Bools, Floats
from tidewolf.service.modes import Wanted

CALLED = {
    "pinned": "the pinned point",
    "incumbent": "the incumbent's point",
    "learner": "the learner's decision",
    "last": "the last decision",
    "static": "the static point",
}
"""Sources of a decision, in words."""


class Rung(NamedTuple):
    """A point that may be played.

    Parameters
    ----------
    source : str
        Whose it is.
    point : callable
        It, as a flat array; None where there is none.
    reason : str, default ""
        Why it is played, where it is the first that was wanted.
    without : str, default ""
        Why there is none.
    """

    source: str
    point: Callable[[], Floats | None]
    reason: str = ""
    without: str = ""


def wanted_rung(want: Wanted) -> Rung:
    """The point that a mode, or a pin, asks for.

    Parameters
    ----------
    want : Wanted
        With a point.

    Returns
    -------
    Rung
        It.

    Examples
    --------
    >>> from tidewolf.service.ladder import wanted_rung
    >>> from tidewolf.service.modes import Settings, wanted
    >>> wanted_rung(wanted(Settings("Ensemble", pin=(1.0, 0.0)))).reason
    'It is pinned at this point.'
    """
    point = np.array(want.point)
    return Rung(want.source, lambda: point, want.reason)


class Chosen(NamedTuple):
    """The point that is played."""

    source: str
    point: Floats
    reason: str
    fell: bool
    """whether something wanted more does not hold"""


def descend(rungs: Iterable[Rung], out: Bools | None, names: list[str]) -> Chosen:
    """The first rung that holds.

    Parameters
    ----------
    rungs : iterable of Rung
        Those wanted most first.
    out : array, optional
        Which entries are out. None: none is.
    names : list of str
        What the entries are called.

    Returns
    -------
    Chosen
        Its point, and why it is played: what is wrong with those above it.

    Raises
    ------
    NotSupported
        Where none holds.

    Examples
    --------
    >>> from tidewolf.service.ladder import Rung, descend
    >>> rungs = [
    ...     Rung("learner", lambda: None, without="The learner failed: it gave up."),
    ...     Rung("static", lambda: np.array([0.5, 0.5])),
    ... ]
    >>> descend(rungs, None, ["a", "b"]).reason
    'The learner failed: it gave up. So the static point is played.'
    """
    wrong: list[str] = []
    for rung in rungs:
        point = rung.point()
        if point is None:
            wrong += [rung.without] * bool(rung.without)
        elif out is not None and point[out].any():
            used = [names[i] for i in np.flatnonzero(out & (point != 0.0)).tolist()]
            called = CALLED[rung.source]
            wrong.append(
                f"{called[0].upper()}{called[1:]} uses {listed(used)}, which "
                f"{'is' if len(used) == 1 else 'are'} unavailable."
            )
        elif wrong:
            said = f"{' '.join(wrong)} So {CALLED[rung.source]} is played."
            return Chosen(rung.source, point, said, True)
        else:
            return Chosen(rung.source, point, rung.reason, False)
    raise NotSupported(f"{' '.join(wrong)} No other point is known.")
