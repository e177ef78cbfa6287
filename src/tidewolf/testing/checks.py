"""What a law is, and how laws are run: one after another, and whatever stops one is told as that
law.

    @law("no member is farther from the center than radius")
    def radius_bounds(trial: SetTrial) -> None:
        for z in trial.members:
            require(..., f"{format_point(z)} is ... away")
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from tidewolf.core.arguments import as_callback
from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import CheckFailed, TidewolfError
from tidewolf.core.types import Array, Floats
from tidewolf.core.values import Value, identity

T = TypeVar("T")
OnPass: TypeAlias = Callable[[str], None]
"""Told the name of every law that is kept."""


@dataclass(frozen=True)
class Check(Generic[T]):
    """A law: what it says, and what tries it."""

    sentence: str
    check: Callable[[T], None]

    @property
    def name(self) -> str:
        return self.check.__name__.replace("_", " ")


def check(sentence: str) -> Callable[[Callable[[T], None]], Check[T]]:
    """Make a law of a function that requires what the sentence says."""
    return lambda check: Check(sentence, check)


def require(holds: bool | np.bool_, detail: str) -> None:
    """Break the law that is tried, unless this holds; `detail` is a clause with the numbers."""
    if not holds:
        raise CheckFailed(detail)


def run_checks(
    checks: Iterable[Check[T]], trial: T, name: str, on_pass: OnPass | None = None
) -> None:
    """Raise `CheckFailed` at the first law that `trial` breaks, or that another error keeps from
    being tried.
    """
    as_callback(on_pass, "on_pass, which is told what law is kept,")
    for each in checks:
        try:
            each.check(trial)
        except CheckFailed as broken:
            broken.args = (f"{name} breaks the law that {each.sentence}: {broken}.",)
            raise
        except Exception as error:
            raise CheckFailed(
                f"{name} cannot be checked ({each.name}): {sentence_of(error)}"
            ) from error
        if on_pass is not None:
            on_pass(each.name)


def raises(error: type[Exception], call: Callable[..., object], *given: object) -> bool:
    """Whether a call raises this error."""
    try:
        call(*given)
    except error:
        return True
    return False


def require_value(value: Value, kind: type[Value]) -> None:
    """Require that a set or a learner is equal to what is made from the same settings."""
    require(
        is_dataclass(value),
        "it is no dataclass; declare it one, with frozen=True, eq=False, repr=False",
    )
    require_equality_of(value, kind)
    made_again = type(value)(**value.fields())
    for how, rebuilt in (
        ("made again from its fields", made_again),
        ("copied", copy.deepcopy(value)),
    ):
        same = rebuilt == value and hash(value) == hash(rebuilt) and repr(value) == repr(rebuilt)
        require(
            same and identity(value) == identity(rebuilt),
            f"{how}, it is {rebuilt!r} and not equal in ==, hash, repr and identity",
        )
    require(object() != value, "it equals an object of another kind")


def require_equality_of(value: Value, kind: type[Value]) -> None:
    """Require that it compares as its kind does."""
    require(
        type(value).__eq__ is kind.__eq__,
        "it does not compare arrays by content; declare the dataclass with eq=False",
    )


def sentence_of(error: BaseException) -> str:
    """An error as one sentence: ours are, another's is given its name."""
    text = " ".join(str(error).split())
    return (
        text
        if isinstance(error, TidewolfError)
        else f"{type(error).__name__}{': ' * bool(text)}{text.rstrip('.')}."
    )


def as_floats(x: Array) -> Floats:
    """An array as float64 on the host."""
    return np.asarray(to_numpy(x), dtype=np.float64)


def format_point(x: Array) -> str:
    """A point as a sentence shows it, flattened and cut if it is long.

    Sentences are written before it is known whether they are needed, so this is quick.
    """
    flat = as_floats(x).reshape(-1).tolist()
    ends = flat if len(flat) <= 8 else [*flat[:3], *flat[-3:]]
    shown = [f"{entry:.6g}" for entry in ends]
    return f"[{' '.join(shown if ends is flat else [*shown[:3], '...', *shown[3:]])}]"
