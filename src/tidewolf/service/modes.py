"""Which point is played, and why: live, shadow, frozen, or pinned.

    pinned      the point that was given, whatever the mode
    live        the learner's decision
    shadow      the incumbent's point: as the request has it, else as it was given with the mode;
                where none is known the learner's decision is a proposal, and who observes the
                round says what was played
    frozen      the decision that stood when it was frozen

The learner decides and learns in all of them. It observes what is played in place of its decision
as `played`. If something fails, what is played is the first of

    [what is pinned, frozen, or the incumbent's]  ->  learner  ->  last  ->  static

that has a point, and does without the entries that are out. The answer has the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Any, Literal, NamedTuple, Self, final

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from tidewolf.core.errors import BrokenFile, NotSupported
from tidewolf.core.names import listed
from tidewolf.core.types import Bools, Floats

INCUMBENT = "incumbent"
"""What a request's advice calls the incumbent's point."""

Point = tuple[float, ...]
"""The entries of a point, in C order."""


@final
@dataclass(frozen=True, config=ConfigDict(extra="ignore"))
class Settings:
    """How a session is operated; a value, kept with the session as JSON.

    Parameters
    ----------
    learner : str
        The kind of its learner.
    mode : str, default "live"
        "live", "shadow" or "frozen".
    pin : tuple of float, optional
        The point that it is pinned at.
    incumbent : tuple of float, optional
        The incumbent's point, for rounds whose request has none.
    frozen : tuple of float, optional
        The decision that is repeated while it is frozen.
    fallback : tuple of float, optional
        What is played where nothing else can be. None: the set's center.
    deadline : float, optional
        How long advisers may take, where a request does not say. Unit: seconds.
    stale_after : float, optional
        For how long a decision may wait for its feedback before that is stale. Unit: seconds.
    expire_after : int, optional
        For how many more rounds a round waits for its feedback. Unit: rounds.
    serial : int, default 0
        How often what is played was changed by hand.
    since : int, default -1
        In which round, from 0, that was done last.
    eras : tuple of tuple of str, default ()
        What the entries were called before the set was changed, each time.

    Examples
    --------
    >>> from tidewolf.service.modes import Settings
    >>> settings = Settings("Ensemble", pin=(0.5, 0.5))
    >>> Settings.of(settings.text) == settings
    True
    """

    learner: str
    mode: Literal["live", "shadow", "frozen"] = "live"
    pin: Point | None = None
    incumbent: Point | None = None
    frozen: Point | None = None
    fallback: Point | None = None
    deadline: float | None = None
    stale_after: float | None = None
    expire_after: int | None = None
    serial: int = 0
    since: int = -1
    eras: tuple[tuple[str, ...], ...] = ()

    @property
    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    @classmethod
    def of(cls, text: str) -> Self:
        """What JSON says; keys that a later version wrote are left out."""
        try:
            return TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError:
            raise BrokenFile(
                "How the session is operated was changed on disk, and cannot be read: go back to "
                "an earlier copy."
            ) from None

    @classmethod
    def shown(cls, text: str) -> Self:
        """The same for who only shows it: nothing is known of what cannot be read."""
        try:
            return cls.of(text)
        except BrokenFile:
            return cls("unknown")

    def changed(self, **to: Any) -> Self:
        """With another point to be played."""
        return replace(self, serial=self.serial + 1, **to)


class Override(NamedTuple):
    """Which point is to be played in place of the learner's decision."""

    source: str
    """whose it is"""
    point: Point | None
    """None where the source is the learner, or no incumbent's point is known"""
    reason: str

    @property
    def is_learners(self) -> bool:
        """Whether it is the learner's decision."""
        return self.source == "learner"


def chosen_override(settings: Settings, incumbent: Point | None = None) -> Override:
    """What is to be played.

    Parameters
    ----------
    settings : Settings
        How the session is operated.
    incumbent : tuple of float, optional
        The incumbent's point of this round.

    Returns
    -------
    Override
        The point, whose it is, and why.

    Examples
    --------
    >>> from tidewolf.service.modes import Settings, chosen_override
    >>> chosen_override(Settings("Ensemble", mode="shadow"), (1.0, 0.0)).source
    'incumbent'
    """
    if settings.pin is not None:
        return Override("pinned", settings.pin, "It is pinned at this point.")
    if settings.mode == "frozen" and settings.frozen is not None:
        return Override("last", settings.frozen, "It is frozen: this decision is repeated.")
    if settings.mode == "shadow":
        point = settings.incumbent if incumbent is None else incumbent
        if point is None:
            return Override(
                INCUMBENT,
                None,
                "It is in shadow, and no incumbent's point is known: the observation says what was "
                "played.",
            )
        return Override(INCUMBENT, point, "It is in shadow: the incumbent's point is played.")
    return Override("learner", None, "")


# --- what is played when something fails ----------------------------------------------------------

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
    >>> from tidewolf.service.modes import override_fallback
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
    >>> from tidewolf.service.modes import Fallback, descend
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
