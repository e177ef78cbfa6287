"""Functions from one plain callable, whose gradients a library of automatic differentiation finds.

    f_t(x) = value(x, *row_t)       data: arrays with rounds first, row_t what they hold of round t
    f_t(x) = value(t, x)            rounds without data, t from 0
    f(x)   = value(x)               a single round

All rounds of a batch are computed at once where the library can trace the callable (`vmap`); where
it cannot, because the callable asks what a number is, one after another. A weighted sum of
gradients is one gradient, that of sum_t w_t f_t over the rounds with w_t != 0. At a kink the
library's choice is taken.

What comes back is checked: a finite number per round, and a finite gradient.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from tidewolf.core.arguments import import_extra, shown
from tidewolf.core.arrays import as_array, as_count, as_number, is_array, like, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import (
    InvalidInput,
    NotFinite,
    NotSupported,
    WrongShape,
    WrongType,
    require,
)
from tidewolf.core.settings import as_shape
from tidewolf.core.types import Array, Floats, Int64s, Shape


class Rounds(NamedTuple):
    """Some rounds: their numbers, from 0, and what the data hold of them, rounds first."""

    ts: Int64s
    data: tuple[Any, ...]

    def some(self, which: Any) -> "Rounds":
        return Rounds(self.ts[which], tuple(part[which, ...] for part in self.data))


class Engine(ABC):
    """A callable and the library that differentiates it; views of a batch share one.

    Whatever it answers is in the library's own arrays.
    """

    name: ClassVar[str]

    def __init__(self, value: Callable[..., Any], call: str) -> None:
        self.value, self.call = value, call

    def answer(self, what: str, x: Array, rounds: Rounds, *weights: Floats) -> Any:
        """What is asked of each round at the point x: "values", "values_at" (x has a point for each
        round) or "gradients"; or the "weighted" sum of gradients. One round after another.
        """
        point, own = self._point(x), what == "values_at"
        ask = self._value if what.startswith("values") else self._gradient
        data = self._columns(rounds, point)
        found = [
            ask(point[i, ...] if own else point, int(t), [part[i] for part in data])
            for i, t in enumerate(rounds.ts)
        ]
        if weights:
            return sum(w * slope for w, slope in zip(weights[0].tolist(), found, strict=True))
        return np.array(found) if isinstance(found[0], float) else namespace(found[0]).stack(found)

    def _point(self, x: Array) -> Any:
        return x

    def _columns(self, rounds: Rounds, point: Any) -> Sequence[Any]:
        return rounds.data

    @abstractmethod
    def _value(self, x: Any, t: Any, row: Sequence[Any]) -> Any:
        """The value of a single round."""

    @abstractmethod
    def _gradient(self, x: Any, t: int, row: Sequence[Any]) -> Any:
        """The gradient of a single round."""


class Traced(Engine):
    """Abstract: an engine that goes over all rounds at once (`vmap`) if the library can trace the
    callable, else over one after another.
    """

    at_once = True

    @property
    def library(self) -> Any:
        return import_module(self.name.removeprefix("from_"))

    def answer(self, what: str, x: Array, rounds: Rounds, *weights: Floats) -> Any:
        if not self.at_once or not self._is_worth_it(rounds):
            return super().answer(what, x, rounds, *weights)
        try:
            return self._together(what, self._point(x), rounds, *weights)
        except Exception:  # whatever is wrong with the callable itself, the next line says
            found = super().answer(what, x, rounds, *weights)
            self.at_once = False
            return found

    def _is_worth_it(self, rounds: Rounds) -> bool:
        return True

    @abstractmethod
    def _together(self, what: str, point: Any, rounds: Rounds, *weights: Floats) -> Any:
        """The answer on all rounds at once."""

    @abstractmethod
    def _number(self, found: Any, x: Any) -> Any:
        """An answer as an array of the library; None if it is no number."""

    def _value(self, x: Any, t: Any, row: Sequence[Any]) -> Any:
        found = self.value(*{"rows": (x, *row), "numbers": (t, x), "alone": (x,)}[self.call])
        answer = None if isinstance(found, bool) else self._number(found, x)
        if answer is None:
            raise WrongType(f"{self.name}: the callable must return a number, not {shown(found)}.")
        if math.prod(answer.shape) != 1:
            raise WrongShape(f"{self.name}: expected a number, not shape {tuple(answer.shape)}.")
        return answer.reshape(())


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Autograd(Batch):
    """Functions given by one callable, differentiated by a library: what `from_torch` and
    `from_jax` make.
    """

    _engine: Engine
    _shape: Shape
    _rounds: Rounds

    def fields(self) -> dict[str, Any]:
        ts, data = self._rounds
        rounds = tuple(ts.tolist()) if self._engine.call == "numbers" else len(self)
        return {"value": self._engine.value, "shape": self._shape, "rounds": rounds, "data": data}

    def __repr__(self) -> str:
        called = self.name or "value"
        return f"{type(self).__name__}({called}, shape={self._shape}, rounds={len(self)})"

    def __len__(self) -> int:
        return len(self._rounds.ts)

    @property
    def shape(self) -> Shape:
        return self._shape

    @property
    def name(self) -> str | None:
        """What the callable is called; None for one without a name of its own."""
        name = getattr(self._engine.value, "__name__", None)
        return name if isinstance(name, str) and not name.startswith(("<", "_")) else None

    def view(self, rounds: slice) -> Self:
        return self._unchecked(**{**self.__dict__, "_rounds": self._rounds.some(rounds)})

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        first, rounds = parts[0], [part._rounds for part in parts]
        if any(part._engine is not first._engine for part in parts):
            return None
        columns = zip(*(each.data for each in rounds), strict=True)
        data = tuple(namespace(column[0]).concat(column) for column in columns)
        whole = Rounds(np.concatenate([each.ts for each in rounds]), data)
        return cls._unchecked(**{**first.__dict__, "_rounds": whole})

    def values(self, x: Array) -> Array:
        return self._answer("values", x)

    def values_at(self, points: Array) -> Array:
        return self._answer("values_at", points)

    def gradients(self, x: Array) -> Array:
        return self._answer("gradients", x)

    def _answer(self, what: str, x: Array) -> Array:
        if not len(self):
            return like(np.zeros((0, *self._shape) if what == "gradients" else 0), x)
        kind = "gradient" if what == "gradients" else "value"
        return self._finite(self._engine.answer(what, x, self._rounds), x, kind)

    def subgradient(self, x: Array, weights: Array) -> Array:
        each = np.asarray(to_numpy(weights), dtype=np.float64)
        used = np.flatnonzero(each)
        if not len(used):
            return 0.0 * x
        rounds = self._rounds if len(used) == len(each) else self._rounds.some(used)
        found = self._engine.answer("weighted", x, rounds, each[used])
        return self._finite(found[None, ...], x, "gradient")[0, ...]

    @classmethod
    def examples(cls) -> Sequence[Batch]:
        return ()

    def _finite(self, found: Array, x: Array, what: str) -> Array:
        xp = namespace(found)
        if bool(xp.all(xp.isfinite(found))):
            same = type(found) is type(x) and found.dtype == x.dtype
            return found if same else like(to_numpy(found), x)
        rows = np.isfinite(to_numpy(found)).reshape(len(found), -1).all(axis=1)
        t = int(self._rounds.ts[int(np.argmin(rows))]) if len(found) == len(self) else None
        where = "a round" if t is None else f"round {t + 1} (t = {t})"
        raise NotFinite(f"The {what} of {where} of {self._engine.name} is not finite at x.")


def resolved(
    value: object, shape: Shape | int, rounds: object, data: object, library: str
) -> tuple[str, Shape, Rounds]:
    """How the callable is called, the shape of a point, and the rounds; refused if they do not fit
    together or the library is not installed.
    """
    who = f"from_{library}"
    import_extra(library, who, library)
    if not callable(value) or isinstance(value, type):
        such = "value(x, *row) with data=, value(t, x) with rounds=, or value(x)"
        raise WrongType(f"{who} takes a callable, {such}, not {shown(value)}.", setting="value")
    sides = as_shape(tuple(shape) if isinstance(shape, Sequence) else (shape,), f"shape of {who}")
    if data is not None:
        several = isinstance(data, list | tuple) and data and all(map(is_array, data))
        given: Any = data if several else (data,)
        parts = tuple(_as_rows(part, f"The data of {who}") for part in given)
        counts = {len(part) for part in parts}
        wanted = counts if rounds is None else {as_count(rounds, f"rounds of {who}", least=0)}
        if len(counts) > 1 or counts != wanted:
            setting = "data" if len(counts) > 1 else "rounds"
            raise WrongShape(f"{who} got data of {counts} rounds, and {wanted}.", setting=setting)
        return "rows", sides, Rounds(np.arange(len(parts[0])), parts)
    if rounds is None:
        return "alone", sides, Rounds(np.zeros(1, dtype=np.int64), ())
    return "numbers", sides, Rounds(np.arange(as_count(rounds, f"rounds of {who}")), ())


def _as_rows(part: Any, what: str) -> Any:
    array = part if is_array(part) else as_array(part, what)
    if not namespace(array).isdtype(array.dtype, ("integral", "bool")):
        array = as_array(array, what)
    require(array.ndim >= 1, InvalidInput, f"{what} must be arrays with rounds first.", "data")
    return array


# Functions from two callables:  f_t(x) = value(t, x)  with subgradients  subgradient(t, x).
#
# t counts from 0 in the batch as it was made; a view f[s:e] passes on t = s, .., e - 1. What the
# callables answer is checked on every call: a finite number, and a finite array of the shape of a
# point. Convexity is theirs to keep; `tidewolf.testing.check_function` tests it. Without a
# subgradient there are values alone, which is all that learners with Bandit feedback ask for.


class _Given(Engine):
    name: ClassVar[str] = "Custom"

    def __init__(self, value: Any, subgradient: Any, call: str) -> None:
        super().__init__(value, call)
        self.subgradient = subgradient

    def _ask(self, function: Any, x: Array, t: int) -> Any:
        return function(x) if self.call == "alone" else function(t, x)

    def _value(self, x: Array, t: int, row: Sequence[Any]) -> float:
        return as_number(
            self._ask(self.value, x, t), f"The value of round {t + 1} (t = {t}) of a Custom batch"
        )

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

    Callables cannot be written in experiment files. `from_torch` and `from_jax` need the value
    alone.

    Parameters
    ----------
    value : callable
        f_t(x), a number, for the round t and the point x.
    subgradient : callable, optional
        A subgradient of f_t at x, an array of the shape of a point. None: only values are known.
    shape : int or tuple of int
        The number of entries of a point, or its shape.
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
        value: Callable[..., float],
        subgradient: Callable[..., Array] | None = None,
        shape: Shape | int | None = None,
        rounds: int = 1,
    ) -> None:
        for name, given in (("value", value), ("subgradient", subgradient)):
            if not callable(given) and not (name == "subgradient" and given is None):
                raise WrongType(f"The {name} of Custom is a callable, not {given!r}.", setting=name)
        if shape is None:
            raise WrongType("A Custom batch needs shape, that of a point.", setting="shape")
        sides = tuple(shape) if isinstance(shape, Sequence) else (shape,)
        self.__dict__.update(
            _engine=_Given(value, subgradient, "numbers"),
            _shape=as_shape(sides, "shape of Custom"),
            _rounds=Rounds(np.arange(as_count(rounds, "rounds of Custom")), ()),
        )

    @classmethod
    def one(
        cls,
        value: Callable[[Array], float],
        subgradient: Callable[[Array], Array] | None = None,
        shape: Shape | int | None = None,
    ) -> Self:
        """A single round from callables of x alone."""
        batch = cls(value, subgradient, shape)
        batch._engine.call = "alone"
        return batch

    def fields(self) -> dict[str, Any]:
        return super().fields() | {"subgradient": self._engine.subgradient}

    @classmethod
    def examples(cls) -> Sequence[Self]:
        matrices = cls(_distance, _directions, (2, 2), rounds=2)
        one = cls.one(partial(_distance, 1), partial(_directions, 1), (1,))
        return cls(_distance, _directions, 3, rounds=4), one, matrices


def _distance(t: int, x: Array) -> float:
    return float(namespace(x).sum(abs(x - t)))


def _directions(t: int, x: Array) -> Array:
    return namespace(x).sign(x - t)


# Plain callables of torch as functions, with gradients by its automatic differentiation.
#
# Points of torch are computed with as they are; those of other libraries in float64. Data move to
# where the point is, and floating ones take its dtype.


def from_torch(
    value: Callable[..., Any], shape: Shape | int, rounds: int | None = None, *, data: Any = None
) -> Autograd:
    """Functions from a callable of torch, with automatic gradients.

    Parameters
    ----------
    value : callable
        A torch scalar: value(x, *row) where `data` are given, row what they hold of the round;
        value(t, x) where `rounds` are; else value(x), a single round. x is a tensor of `shape`.
        Convex in x.
    shape : int or tuple of int
        The number of entries of a point, or its shape.
    rounds : int, optional
        How many rounds there are, if no data say it; t counts from 0. None: a single one.
    data : array or sequence of array, optional
        What differs from round to round: an array, or several, rounds first. All rounds are then
        computed at once. None: no data.

    Returns
    -------
    Batch
        The functions, one per round: losses or constraints of a stream, or of one round.

    Raises
    ------
    MissingExtra
        If torch is not installed.
    WrongType, WrongShape
        If `value` is not callable, or data and rounds do not fit together.

    Examples
    --------
    >>> import torch
    >>> def logistic(x, features, label):
    ...     return torch.nn.functional.softplus(-label * (features @ x))
    >>> features, labels = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([1.0, -1.0])
    >>> losses = tw.functions.from_torch(logistic, 2, data=(features, labels))
    >>> losses.values(np.zeros(2)).round(4)
    array([0.6931, 0.6931])
    >>> losses.gradients(np.zeros(2))
    array([[-0.5, -1. ],
           [ 0. , -0.5]])
    """
    call, sides, own = resolved(value, shape, rounds, data, "torch")
    return Autograd._unchecked(_engine=_Torch(value, call), _shape=sides, _rounds=own)


class _Torch(Traced):
    """Classic backward passes over what `vmap` computes of all rounds."""

    name: ClassVar[str] = "from_torch"

    def answer(self, what: str, x: Array, rounds: Rounds, *weights: Floats) -> Any:
        with self.library.no_grad() if what.startswith("values") else nullcontext():
            return super().answer(what, x, rounds, *weights)

    def _is_worth_it(self, rounds: Rounds) -> bool:
        return self.call == "rows" and len(rounds.ts) > 1

    def _point(self, x: Array) -> Any:
        if isinstance(x, self.library.Tensor):
            return x.detach()
        return self.library.tensor(np.asarray(to_numpy(x), dtype=np.float64))

    def _columns(self, rounds: Rounds, point: Any) -> list[Any]:
        columns = []
        for part in rounds.data:
            if not isinstance(part, self.library.Tensor):
                array = to_numpy(part)
                part = self.library.as_tensor(array if array.flags.writeable else array.copy())
            kind = point.dtype if part.dtype.is_floating_point else part.dtype
            columns.append(part.detach().to(device=point.device, dtype=kind))
        return columns

    def _together(self, what: str, point: Any, rounds: Rounds, *weights: Floats) -> Any:
        grad, vmap = self.library.func.grad, self.library.func.vmap
        columns, ways = self._columns(rounds, point), (0 if what == "values_at" else None, None, 0)
        if what == "gradients":
            return vmap(grad(self._value), in_dims=ways)(point, 0, columns)
        values = vmap(self._value, in_dims=ways)
        if what != "weighted":
            return values(point, 0, columns)
        return self._backward(lambda x: values(x, 0, columns) @ x.new_tensor(weights[0]), point)

    def _gradient(self, x: Any, t: int, row: Sequence[Any]) -> Any:
        return self._backward(lambda point: self._value(point, t, row), x)

    def _backward(self, value: Callable[[Any], Any], point: Any) -> Any:
        point = point.detach().clone().requires_grad_(True)
        with self.library.enable_grad():
            total = value(point)
        found = None
        if total.requires_grad:  # else it is a constant
            (found,) = self.library.autograd.grad(total, point, allow_unused=True)
        return self.library.zeros_like(point) if found is None else found

    def _number(self, found: Any, x: Any) -> Any:
        if isinstance(found, self.library.Tensor | int | float):
            return self.library.as_tensor(found, device=x.device).to(x.dtype)
        return None


# Plain callables of jax as functions, with gradients by its automatic differentiation.
#
# Everything is computed in float64, which jax has to be told: `jax.enable_x64` holds within each
# call here and nowhere else. Arrays that a callable brings along were made by its owner, in float32
# where jax was not told: what differs from round to round goes into `data`.
#
# Compiled code is for one number of rounds; to need few of them, rounds are filled up to a power of
# two with copies of the first.


def from_jax(
    value: Callable[..., Any], shape: Shape | int, rounds: int | None = None, *, data: Any = None
) -> Autograd:
    """Functions from a callable of jax, with automatic gradients.

    Parameters
    ----------
    value : callable
        A jax scalar: value(x, *row) where `data` are given, row what they hold of the round;
        value(t, x) where `rounds` are; else value(x), a single round. x is an array of `shape`.
        Convex in x.
    shape : int or tuple of int
        The number of entries of a point, or its shape.
    rounds : int, optional
        How many rounds there are, if no data say it; t counts from 0. None: a single one.
    data : array or sequence of array, optional
        What differs from round to round: an array, or several, rounds first. All rounds are then
        computed at once. None: no data.

    Returns
    -------
    Batch
        The functions, one per round: losses or constraints of a stream, or of one round.

    Raises
    ------
    MissingExtra
        If jax is not installed.
    WrongType, WrongShape
        If `value` is not callable, or data and rounds do not fit together.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> def logistic(x, features, label):
    ...     return jnp.logaddexp(0.0, -label * (features @ x))
    >>> features, labels = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([1.0, -1.0])
    >>> losses = tw.functions.from_jax(logistic, 2, data=(features, labels))
    >>> losses.values(np.zeros(2)).round(4)
    array([0.6931, 0.6931])
    >>> losses.subgradient(np.zeros(2), np.array([1.0, 2.0]))
    array([-0.5, -2. ])
    """
    call, sides, own = resolved(value, shape, rounds, data, "jax")
    return Autograd._unchecked(_engine=_Jax(value, call), _shape=sides, _rounds=own)


class _Jax(Traced):
    """`grad` of what `vmap` computes of all rounds, compiled; each within 64 bits."""

    name: ClassVar[str] = "from_jax"

    def answer(self, what: str, x: Array, rounds: Rounds, *weights: Floats) -> Any:
        # where jax is older, it is experimental
        home = (
            self.library
            if hasattr(self.library, "enable_x64")
            else import_module("jax.experimental")
        )
        with home.enable_x64(True):
            return np.asarray(super().answer(what, x, rounds, *weights))

    def _point(self, x: Array) -> Any:
        return np.asarray(to_numpy(x), dtype=np.float64)

    def _columns(self, rounds: Rounds, point: Any) -> Sequence[Any]:
        return tuple(map(to_numpy, rounds.data))

    def _gradient(self, x: Any, t: int, row: Sequence[Any]) -> Any:
        return self.library.grad(lambda point: self._value(point, t, row))(x)

    def _together(self, what: str, point: Any, rounds: Rounds, *weights: Floats) -> Any:
        k = len(rounds.ts)
        more = (1 << (k - 1).bit_length()) - k  # rounds up to a power of two, copies of the first

        def filled(rows: Any) -> Any:
            return np.concatenate([rows, np.repeat(rows[:1], more, axis=0)]) if more else rows

        data = tuple(map(filled, self._columns(rounds, point)))
        factors = [np.concatenate([w, np.zeros(more)]) for w in weights]
        point = filled(point) if what == "values_at" else point
        found = self._compiled[what](point, filled(rounds.ts), data, *factors)
        return found if what == "weighted" else found[:k]

    @cached_property
    def _compiled(self) -> dict[str, Any]:
        grad, jit, vmap = self.library.grad, self.library.jit, self.library.vmap
        each = vmap(self._value, in_axes=(None, 0, 0))
        return {
            "values": jit(each),
            "values_at": jit(vmap(self._value, in_axes=(0, 0, 0))),
            "gradients": jit(vmap(grad(self._value), in_axes=(None, 0, 0))),
            "weighted": jit(grad(lambda x, ts, data, w: w @ each(x, ts, data))),
        }

    def _value(self, x: Any, t: Any, row: Sequence[Any]) -> Any:
        return super()._value(
            self.library.numpy.asarray(x), t, list(map(self.library.numpy.asarray, row))
        )

    def _number(self, found: Any, x: Any) -> Any:
        if isinstance(found, self.library.Array | int | float | np.generic):
            return self.library.numpy.asarray(found, dtype=self.library.numpy.float64)
        return None
