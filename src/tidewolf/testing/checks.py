"""Run named checks one after another and report the first that fails.

@check("no member is farther from the center than radius")
def radius_bounds(trial: SetTrial) -> None:
    for z in trial.members:
        require_at_most(norm(z - trial.center), trial.K.radius, "a member's distance")
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from tidewolf.core.arguments import as_callback
from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import CheckFailed, TidewolfError
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.core.values import Value, identity
from tidewolf.sets.base import membership_tolerance

T = TypeVar("T")
OnPass: TypeAlias = Callable[[str], None]
"""Called with the name of every check that passes."""


@dataclass(frozen=True)
class Check(Generic[T]):
    """A property: its statement, and the function that tests it."""

    sentence: str
    check: Callable[[T], None]

    @property
    def name(self) -> str:
        return self.check.__name__.replace("_", " ")


class Checks(list[Check[T]]):
    """Checks in the order they are declared: what later ones build on comes first."""

    def __call__(self, sentence: str) -> Callable[[Callable[[T], None]], Check[T]]:
        """Add a function that requires what the sentence states."""

        def add(function: Callable[[T], None]) -> Check[T]:
            self.append(Check(sentence, function))
            return self[-1]

        return add

    def run(self, trial: T, name: str, on_pass: OnPass | None = None) -> None:
        """Raise `CheckFailed` at the first check that fails or stops with another error."""
        as_callback(on_pass, "on_pass, which is called with the name of every check that passes,")
        for each in self:
            try:
                each.check(trial)
            except CheckFailed as failed:
                failed.args = (f"{name} fails the check that {each.sentence}: {failed}.",)
                raise
            except Exception as error:
                raise CheckFailed(
                    f"{name} cannot be checked ({each.name}): {sentence_of(error)}"
                ) from error
            if on_pass is not None:
                on_pass(each.name)


def require(holds: bool | np.bool_, detail: str) -> None:
    """Fail the check unless this holds; `detail` is a clause with the numbers."""
    if not holds:
        raise CheckFailed(detail)


def require_at_most(number: float, most: float, what: str) -> None:
    """Fail the check if a number is above `most` or is not a number."""
    require(number <= most, f"{what} is {number:.6g}, expected at most {most:.6g}")


def require_close(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Fail the check if an entry is farther than `tolerance` from what is expected."""
    off = float(np.abs(np.asarray(found) - expected).max(initial=0.0))
    require(off <= tolerance, f"{what} is off by {off:.3g}")


def require_array(found: Any, shape: Shape, reference: Array, what: str) -> None:
    """Fail the check unless this is an array of the given shape, in the library and dtype of
    `reference`.
    """
    kinds = [
        (type(each), getattr(each, "dtype", None), tuple(size))
        for each, size in ((found, getattr(found, "shape", ())), (reference, shape))
    ]
    texts = [f"a {kind.__name__} of {dtype} and shape {size}" for kind, dtype, size in kinds]
    require(kinds[0] == kinds[1], f"{what} is {texts[0]}, expected {texts[1]}")


def require_member(K: Any, x: Array, what: str) -> None:
    """Fail the check unless x is in the set K, up to rounding."""
    shape = tuple(x.shape)
    require(shape == K.shape, f"{what} has shape {shape}, points have shape {K.shape}")
    off = float(K.infeasibility(x)) if np.isfinite(as_floats(x)).all() else math.inf
    if not off <= membership_tolerance(x, K.radius):
        raise CheckFailed(f"{what} is {format_point(x)}, with infeasibility {off:.3g}")


def require_value(value: Value, kind: type[Value]) -> None:
    """Require that a set or learner equals one that is made from the same settings."""
    require(
        is_dataclass(value),
        "it is not a dataclass; declare it with frozen=True, eq=False, repr=False",
    )
    require_equality_of(value, kind)
    for how, other in (
        ("made again from its fields", type(value)(**value.fields())),
        ("copied", copy.deepcopy(value)),
    ):
        same = other == value and hash(value) == hash(other) and repr(value) == repr(other)
        require(
            same and identity(value) == identity(other),
            f"{how}, it is {other!r} and not equal in ==, hash, repr and identity",
        )
    require(object() != value, "it equals an object of another kind")


def require_equality_of(value: Value, kind: type[Value]) -> None:
    """Require that it prints its name and compares as its kind does."""
    require(repr(value).startswith(type(value).__name__), f"its repr is {value!r}")
    require(
        type(value).__eq__ is kind.__eq__,
        "it does not compare arrays by content; declare the dataclass with eq=False",
    )


def raises(error: type[Exception], call: Callable[..., object], *given: object) -> bool:
    """Whether a call raises this error."""
    try:
        call(*given)
    except error:
        return True
    return False


def sentence_of(error: BaseException) -> str:
    """An error as one sentence, with its type if it is not one of ours."""
    text = " ".join(str(error).split())
    if isinstance(error, TidewolfError):
        return text
    return f"{type(error).__name__}{': ' * bool(text)}{text.rstrip('.')}."


def as_floats(x: Array) -> Floats:
    """An array as float64 on the host."""
    return np.asarray(to_numpy(x), dtype=np.float64)


def format_point(x: Array) -> str:
    """A point as text, flattened, and shortened if it is long.

    Details are written before it is known whether they are needed, so this must be quick.
    """
    flat = as_floats(x).reshape(-1).tolist()
    shown = [f"{entry:.6g}" for entry in (flat if len(flat) <= 8 else flat[:3] + flat[-3:])]
    return f"[{' '.join(shown if len(flat) <= 8 else [*shown[:3], '...', *shown[3:]])}]"
