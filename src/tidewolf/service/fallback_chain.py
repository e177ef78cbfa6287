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
from tidewolf.service.modes import Override

CALLED = {
    "pinned": "the pinned point",
    "incumbent": "the incumbent's point",
    "learner": "the learner's decision",
    "last": "the last decision",
    "static": "the static point",
}
"""Sources of a decision, in words."""


class Fallback(NamedTuple):
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


def override_fallback(override: Override) -> Fallback:
    """The point that a mode, or a pin, asks for.

    Parameters
    ----------
    override : Override
        With a point.

    Returns
    -------
    Fallback
        It.

    Examples
    --------
    >>> from tidewolf.service.fallback_chain import override_fallback
    >>> from tidewolf.service.modes import Settings, chosen_override
    >>> override_fallback(chosen_override(Settings("Ensemble", pin=(1.0, 0.0)))).reason
    'It is pinned at this point.'
    """
    point = np.array(override.point)
    return Fallback(override.source, lambda: point, override.reason)


class Chosen(NamedTuple):
    """The point that is played."""

    source: str
    point: Floats
    reason: str
    fell: bool
    """whether something wanted more does not hold"""


def descend(fallbacks: Iterable[Fallback], out: Bools | None, names: list[str]) -> Chosen:
    """The first rung that holds.

    Parameters
    ----------
    fallbacks : iterable of Fallback
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
    >>> from tidewolf.service.fallback_chain import Fallback, descend
    >>> fallbacks = [
    ...     Fallback("learner", lambda: None, without="The learner failed: it gave up."),
    ...     Fallback("static", lambda: np.array([0.5, 0.5])),
    ... ]
    >>> descend(fallbacks, None, ["a", "b"]).reason
    'The learner failed: it gave up. So the static point is played.'
    """
    wrong: list[str] = []
    for fallback in fallbacks:
        point = fallback.point()
        if point is None:
            wrong += [fallback.without] * bool(fallback.without)
        elif out is not None and point[out].any():
            used = [names[i] for i in np.flatnonzero(out & (point != 0.0)).tolist()]
            called = CALLED[fallback.source]
            wrong.append(
                f"{called[0].upper()}{called[1:]} uses {listed(used)}, which "
                f"{'is' if len(used) == 1 else 'are'} unavailable."
            )
        elif wrong:
            said = f"{' '.join(wrong)} So {CALLED[fallback.source]} is played."
            return Chosen(fallback.source, point, said, True)
        else:
            return Chosen(fallback.source, point, fallback.reason, False)
    raise NotSupported(f"{' '.join(wrong)} No other point is known.")
