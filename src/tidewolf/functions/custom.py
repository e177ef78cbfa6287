"""Functions from two callables:  f_t(x) = value(t, x)  with subgradients  subgradient(t, x).

t counts from 0 in the batch as it was made; a view f[s:e] passes on t = s, .., e - 1. What the
callables answer is checked on every call: a finite number, and a finite array of the shape of a
point. Convexity is theirs to keep; `tidewolf.testing.check_function` puts it to the test. Without a
subgradient there are values alone, which is all that learners with Bandit feedback ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import as_array, as_count, as_number, like, namespace
from tidewolf.core.errors import NotSupported, WrongShape, WrongType
from tidewolf.core.settings import as_shape
from tidewolf.core.types import Array, Shape
from tidewolf.functions.autograd import Autograd, Engine, Rounds


class _Given(Engine):
    """Two callables of (t, x), or of x alone."""

    name: ClassVar[str] = "Custom"

    def __init__(self, value: Any, subgradient: Any, call: str) -> None:
        super().__init__(value, call)
        self.subgradient = subgradient

    def _ask(self, function: Any, x: Array, t: int) -> Any:
        return function(x) if self.call == "alone" else function(t, x)

    def _value(self, x: Array, t: int, row: Sequence[Any]) -> float:
        what = f"The value of round {t + 1} (t = {t}) of a Custom batch"
        return as_number(self._ask(self.value, x, t), what)

    def _gradient(self, x: Array, t: int, row: Sequence[Any]) -> Array:
        if self.subgradient is None:
            raise NotSupported("A Custom batch without a subgradient has values alone: give one.")
        what = f"The subgradient of round {t + 1} (t = {t}) of a Custom batch"
        gradient = as_array(self._ask(self.subgradient, x, t), what)
        if tuple(gradient.shape) != tuple(x.shape):
            raise WrongShape(f"{what} needs shape {tuple(x.shape)}, not {tuple(gradient.shape)}.")
        return like(gradient, x)


@final
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Custom(Autograd):
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

    _engine: _Given

    def __init__(
        self,
        value: Callable[[int, Array], float],
        subgradient: Callable[[int, Array], Array] | None = None,
        shape: Shape | int | None = None,
        rounds: int = 1,
    ) -> None:
        self._make(_Given(value, subgradient, "numbers"), shape, rounds)

    def _make(self, engine: _Given, shape: Any, rounds: int) -> None:
        for name, given in (("value", engine.value), ("subgradient", engine.subgradient)):
            if not callable(given) and not (name == "subgradient" and given is None):
                raise WrongType(f"The {name} of Custom is a callable, not {given!r}.", setting=name)
        if shape is None:
            raise WrongType("A Custom batch needs shape, that of a point.", setting="shape")
        sides = tuple(shape) if isinstance(shape, Sequence) else (shape,)
        self.__dict__.update(
            _engine=engine,
            _shape=as_shape(sides, "shape of Custom"),
            _rounds=Rounds(np.arange(as_count(rounds, "rounds of Custom")), ()),
        )

    @classmethod
    def one(
        cls,
        value: Callable[[Array], float],
        subgradient: Callable[[Array], Array] | None = None,
        shape: Shape | int | None = None,
    ) -> Custom:
        """A single round from callables of x alone."""
        batch = object.__new__(cls)
        batch._make(_Given(value, subgradient, "alone"), shape, 1)
        return batch

    def fields(self) -> dict[str, Any]:
        return super().fields() | {"subgradient": self._engine.subgradient}

    @classmethod
    def examples(cls) -> Sequence[Custom]:
        matrices = cls(_distance, _directions, (2, 2), rounds=2)
        return cls(_distance, _directions, 3, rounds=4), cls.one(_square, _twice, (1,)), matrices


def _distance(t: int, x: Array) -> float:
    return float(namespace(x).sum(abs(x - t)))


def _directions(t: int, x: Array) -> Array:
    return namespace(x).sign(x - t)


def _square(x: Array) -> float:
    return float(namespace(x).sum(x * x))


def _twice(x: Array) -> Array:
    return 2 * x
