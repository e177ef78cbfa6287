"""Run the checks of a class one after another and report the first that fails. Every public method
is a check; its docstring states the property that it tests. They stand in the order they run: what
later ones build on comes first.

class SetChecks(SetTrial):
    def radius_bounds(self) -> None:
        \"\"\"No member is farther from the center than radius.\"\"\"
        for z in self.members:
            require.at_most(norm(z - self.center), self.K.radius, "a member's distance")
"""

import copy
import math
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, TypeAlias

import numpy as np

from tidewolf.core import arrays, errors, values
from tidewolf.core.arguments import as_callback
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.sets.base import membership_tolerance

# Called with the name of every check that passes.
OnPass: TypeAlias = Callable[[str], None] | None


def checks_of(kind: type) -> dict[str, Callable[[Any], None]]:
    return {
        name.replace("_", " "): each
        for name, each in vars(kind).items()
        if callable(each) and not name.startswith("_")
    }


def run_checks(trial: object, subject: str, on_pass: OnPass) -> None:
    as_callback(on_pass, "on_pass, which is called with the name of every check that passes,")
    for name, check in checks_of(type(trial)).items():
        try:
            check(trial)
        except errors.CheckFailed as failed:
            failed.args = (f"{subject} fails the check that {statement(check)}: {failed}.",)
            raise
        except Exception as error:
            raise errors.CheckFailed(
                f"{subject} cannot be checked ({name}): {sentence_of(error)}"
            ) from error
        if on_pass is not None:
            on_pass(name)


def statement(check: Callable[..., None]) -> str:
    text = " ".join((check.__doc__ or "").split()).rstrip(".")
    return text[:1].lower() + text[1:]


class Require:
    """Fail the check unless something holds: `require(holds, detail)`, `require.at_most(...)`."""

    def __call__(self, holds: bool | np.bool_, detail: str) -> None:
        if not holds:
            raise errors.CheckFailed(detail)

    def at_most(self, number: float, most: float, what: str) -> None:
        self(number <= most, f"{what} is {number:.6g}, expected at most {most:.6g}")

    def close(self, found: Any, expected: Any, tolerance: float, what: str) -> None:
        off = float(np.abs(np.asarray(found) - expected).max(initial=0.0))
        self(off <= tolerance, f"{what} is off by {off:.3g}")

    def array(self, found: Any, shape: Shape, reference: Array, what: str) -> None:
        kinds = [
            f"a {type(each).__name__} of {getattr(each, 'dtype', None)} and shape {tuple(size)}"
            for each, size in ((found, getattr(found, "shape", ())), (reference, shape))
        ]
        self(kinds[0] == kinds[1], f"{what} is {kinds[0]}, expected {kinds[1]}")

    def locked(self, x: Array, what: str) -> None:
        locked = type(x) is not np.ndarray or not x.flags.writeable
        self(locked, f"{what} can be written to; set its flags.writeable = False")

    def member(self, K: Any, x: Array, what: str) -> None:
        """x is in the set K, up to rounding."""
        shape = tuple(x.shape)
        self(shape == K.shape, f"{what} has shape {shape}, points have shape {K.shape}")
        off = float(K.infeasibility(x)) if np.isfinite(as_floats(x)).all() else math.inf
        if not off <= membership_tolerance(x, K.radius):
            self(False, f"{what} is {format_point(x)}, with infeasibility {off:.3g}")

    def value(self, value: values.Value, kind: type[values.Value]) -> None:
        self(is_dataclass(value), "it is no dataclass(frozen=True, eq=False, repr=False)")
        self.equality(value, kind)
        for other in (type(value)(**value.fields()), copy.deepcopy(value)):
            same = other == value and hash(value) == hash(other) and repr(value) == repr(other)
            same = same and values.identity(value) == values.identity(other)
            self(same, f"a copy, {other!r}, is not equal to it in ==, hash, repr and identity")
        self(object() != value, "it equals an object of another kind")

    def equality(self, value: values.Value, kind: type[values.Value]) -> None:
        self(repr(value).startswith(type(value).__name__), f"its repr is {value!r}")
        own = type(value).__eq__ is not kind.__eq__
        self(not own, "it does not compare arrays by content; declare the dataclass with eq=False")


require = Require()


def raised(call: Callable[..., object], *given: object) -> Exception | None:
    try:
        call(*given)
    except Exception as error:
        return error
    return None


def sentence_of(error: BaseException) -> str:
    text = " ".join(str(error).split())
    named = f"{type(error).__name__}{': ' * bool(text)}{text.rstrip('.')}."
    return text if isinstance(error, errors.TidewolfError) else named


def as_floats(x: Array) -> Floats:
    return np.asarray(arrays.to_numpy(x), dtype=np.float64)


def format_point(x: Array) -> str:
    """A point as text, flattened, and shortened if it is long.

    Details are written before it is known whether they are needed, so this must be quick.
    """
    flat = as_floats(x).reshape(-1).tolist()
    shown = [f"{entry:.6g}" for entry in (flat if len(flat) <= 8 else flat[:3] + flat[-3:])]
    return f"[{' '.join(shown if len(flat) <= 8 else [*shown[:3], '...', *shown[3:]])}]"
