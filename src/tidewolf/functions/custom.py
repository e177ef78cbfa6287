"""Functions from two callables:  f_t(x) = value(t, x)  with subgradients  subgradient(t, x).

t counts from 0 in the batch as it was made; a view f[s:e] passes on t = s, .., e - 1. What the
callables answer is checked on every call: a finite number, and a finite array of the shape of a
point. Convexity is theirs to keep; `tidewolf.testing.check_function` puts it to the test. Without a
subgradient there are values alone, which is all that learners with Bandit feedback ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from tidewolf.core.arrays import (
    as_array,
    as_count,
    as_number,
    as_point,
    like,
    namespace,
    norm,
    to_numpy,
)
from tidewolf.core.batch import Batch
from tidewolf.core.errors import NotSupported, WrongShape, WrongType
from tidewolf.core.settings import as_shape
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.autograd import name_of


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Custom(Batch):
    """Functions given by two callables, value(t, x) and subgradient(t, x).

    A callable is nothing that an experiment's file can write: such a function is made in Python.
    `from_torch` and `from_jax` need the value alone.

    Parameters
    ----------
    value : callable
        f_t(x), a number, for the round t and the point x.
    subgradient : callable, optional
        A subgradient of f_t at x, an array of the shape of a point. None: only values are known.
    shape : int or tuple of int
        How many entries a point has, or its shape.
    rounds : int, default 1
        How many rounds there are. t counts from 0 to rounds - 1.

    Examples
    --------
    >>> f = tw.functions.Custom(lambda t, x: t * (x @ x), lambda t, x: 2 * t * x, 2, rounds=3)
    >>> f.values(np.array([1.0, 2.0]))
    array([ 0.,  5., 10.])
    """

    _value: Callable[[int, Array], float]
    _subgradient: Callable[[int, Array], Array] | None
    _shape: Shape
    _rounds: int
    _first: int

    def __init__(
        self,
        value: Callable[[int, Array], float],
        subgradient: Callable[[int, Array], Array] | None = None,
        shape: Shape | int | None = None,
        rounds: int = 1,
    ) -> None:
        _require_callables("a Custom batch is a callable of (t, x)", value, subgradient)
        if shape is None:
            raise WrongType("A Custom batch needs shape, that of a point.", setting="shape")
        sides = tuple(shape) if isinstance(shape, Sequence) else (shape,)
        self.__dict__.update(
            _value=value,
            _subgradient=subgradient,
            _shape=as_shape(sides, "shape of Custom"),
            _rounds=as_count(rounds, "rounds of Custom"),
            _first=0,
        )

    @classmethod
    def one(
        cls,
        value: Callable[[Array], float],
        subgradient: Callable[[Array], Array] | None = None,
        shape: Shape | int | None = None,
    ) -> Custom:
        """A single round from callables of x alone."""
        _require_callables("a Custom function is a callable of x", value, subgradient)
        slope = None if subgradient is None else _EveryRound(subgradient)
        return cls(_EveryRound(value), slope, shape)

    def fields(self) -> dict[str, Any]:
        return {name.lstrip("_"): value for name, value in self.__dict__.items()}

    def __len__(self) -> int:
        return self._rounds

    @property
    def shape(self) -> Shape:
        return self._shape

    @property
    def name(self) -> str | None:
        """What the value's callable is called, where it has a name."""
        value = self._value
        return name_of(value.call if isinstance(value, _EveryRound) else value)

    def view(self, rounds: slice) -> Self:
        start, stop, _ = rounds.indices(self._rounds)
        return self._unchecked(
            **{**self.__dict__, "_rounds": max(0, stop - start), "_first": self._first + start}
        )

    def values(self, x: Array) -> Array:
        x = as_point(x, self._shape, "The point")
        values = [
            as_number(self._value(t, x), f"The value of round {t + 1} (t = {t}) of a Custom batch")
            for t in range(self._first, self._first + self._rounds)
        ]
        return like(np.array(values), x)

    def subgradient(self, x: Array, weights: Array) -> Array:
        x = as_point(x, self._shape, "The point")
        total = namespace(x).zeros_like(x)
        for t in np.flatnonzero(to_numpy(weights)).tolist():
            total = total + weights[t] * self._gradient(t, x)
        return total

    def slopes(self, x: Array) -> Floats:
        x = as_point(x, self._shape, "The point")
        return np.array([norm(self._gradient(t, x)) for t in range(self._rounds)])

    def _gradient(self, t: int, x: Array) -> Array:
        t += self._first
        if self._subgradient is None:
            raise NotSupported(
                "A Custom batch without a subgradient has values alone; give subgradient(t, x), or "
                "use functions.from_torch or functions.from_jax, which find it."
            )
        what = f"The subgradient of round {t + 1} (t = {t}) of a Custom batch"
        gradient = as_array(self._subgradient(t, x), what)
        if tuple(gradient.shape) != self._shape:
            raise WrongShape(
                f"{what} has shape {tuple(gradient.shape)}; its points have shape {self._shape}."
            )
        return like(gradient, x)

    @classmethod
    def examples(cls) -> Sequence[Custom]:
        matrices = cls(_distance, _directions, (2, 2), rounds=2)
        return cls(_distance, _directions, 3, rounds=4), cls.one(_square, _twice, (1,)), matrices


def _require_callables(accepted: str, value: object, subgradient: object) -> None:
    for name, given in (("value", value), ("subgradient", subgradient)):
        if not callable(given) and not (name == "subgradient" and given is None):
            raise WrongType(f"The {name} of {accepted}, not {given!r}.", setting=name)


@dataclass(frozen=True)
class _EveryRound:
    """A callable of x alone as one of (t, x)."""

    call: Callable[[Array], Any]

    def __call__(self, t: int, x: Array) -> Any:
        return self.call(x)


def _distance(t: int, x: Array) -> float:
    return float(namespace(x).sum(abs(x - t)))


def _directions(t: int, x: Array) -> Array:
    return namespace(x).sign(x - t)


def _square(x: Array) -> float:
    return float(namespace(x).sum(x * x))


def _twice(x: Array) -> Array:
    return 2 * x
