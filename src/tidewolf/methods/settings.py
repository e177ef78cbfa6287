"""The settings that learners share, checked by name, and the sentences about them.

A setting of one name means the same in every learner; `settle` puts each into its plain form or
refuses it with a sentence.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, Protocol

from tidewolf.core.arrays import LARGEST_SEED, LEAST, MOST, as_count, as_number, length
from tidewolf.core.errors import FrozenRegime, InvalidInput, ShortHorizon
from tidewolf.core.oracle import as_set
from tidewolf.methods.base import Learner


def _positive(value: Any, name: str) -> float:
    """A number whose square is one too."""
    size = as_number(value, name, above=0.0)
    if not LEAST <= size <= MOST:
        raise InvalidInput(
            f"{name} = {size:g} was given; sizes from {LEAST:g} to {MOST:g} are accepted: give it "
            "in other units."
        )
    return size


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "horizon": lambda value, name: as_count(value, "The horizon"),
    "block": lambda value, name: as_count(value, "The block"),
    "seed": lambda value, name: as_count(value, "A seed", least=0, most=LARGEST_SEED),
    "caution": _positive,
    "calls_per_round": _positive,
    "tolerance": _positive,
    "loss_lipschitz": _positive,
    "constraint_lipschitz": _positive,
    "loss_size": _positive,
    "constraint_size": _positive,
}
"""What each setting has to be; None passes where it is the default."""


def settle(learner: Learner[Any], **own: Callable[[Any, str], Any]) -> None:
    """Check the set and every setting of a frozen learner that has a known name, or a check of its
    own.
    """
    K = as_set(learner.hard_set, type(learner).__name__)
    if not (K.radius == 0.0 or LEAST <= K.radius <= MOST) or length(K.center) > MOST:
        where = f"radius {K.radius:.3g}, {length(K.center):.3g} from the origin,"
        raise InvalidInput(
            f"A set of {where} was given; {type(learner).__name__} squares distances and takes "
            f"radii from {LEAST:g} to {MOST:g}, or 0, and no point farther away: give the points "
            "in other units."
        )
    checks = {**_CHECKS, **own}
    for field in dataclasses.fields(learner):  # type: ignore[arg-type]
        value = getattr(learner, field.name)
        if field.name in checks and not (value is None and field.default is None):
            object.__setattr__(learner, field.name, checks[field.name](value, field.name))


class Stretch(Protocol):
    """The rounds since the last restart."""

    @property
    def horizon(self) -> int: ...
    @property
    def began(self) -> int: ...


def passed_horizon(asked: int | None, now: Stretch) -> tuple[str, ...]:
    """The sentence that a known horizon was passed, if it was."""
    if asked is None or now.horizon == asked:
        return ()
    return (
        (
            f"The horizon of {asked} rounds was passed: after round {now.began} the learner "
            f"restarted with {now.horizon}."
        ),
    )


def warn_of(concerns: tuple[str, ...], frozen: bool, cure: str) -> None:
    """Say what a theorem's settings cannot do as one warning, where the caller of `.theorem(...)`
    stands.
    """
    if concerns:
        sentence = f"{' '.join(concerns)} {cure}(K, horizon) has settings for any horizon."
        warnings.warn(sentence, FrozenRegime if frozen else ShortHorizon, stacklevel=4)
