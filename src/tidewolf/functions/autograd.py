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

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from tidewolf.core.arguments import import_extra, shown
from tidewolf.core.arrays import as_array, as_count, is_array, like, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, NotFinite, WrongShape, WrongType
from tidewolf.core.settings import as_shape
from tidewolf.core.types import Array, Floats, Int64s, Shape


class Rounds(NamedTuple):
    """Some rounds: their numbers, from 0, and what the data hold of them, rounds first."""

    ts: Int64s
    data: tuple[Any, ...]

    def some(self, which: Any) -> Rounds:
        return Rounds(self.ts[which], tuple(part[which, ...] for part in self.data))


class Engine(ABC):
    """A callable and the library that differentiates it; views of a batch share one.

    Whatever it answers is in the library's own arrays. `x` is one point for all rounds, or one for
    each, with an axis more.
    """

    name: ClassVar[str]

    def __init__(self, value: Callable[..., Any], call: str) -> None:
        self.value, self.call = value, call
        self.at_once = True

    @abstractmethod
    def values(self, x: Array, rounds: Rounds, *, each: bool) -> Array:
        """The value of each round."""

    @abstractmethod
    def gradients(self, x: Array, rounds: Rounds) -> Array:
        """The gradient of each round."""

    @abstractmethod
    def weighted(self, x: Array, rounds: Rounds, weights: Floats) -> Array:
        """The gradient of the weighted sum."""


class Traced(Engine):
    """Abstract: an engine that goes over all rounds at once (`vmap`) if the library can trace the
    callable, else over one after another.
    """

    def values(self, x: Array, rounds: Rounds, *, each: bool) -> Array:
        return self._answer("values_at" if each else "values", x, rounds)

    def gradients(self, x: Array, rounds: Rounds) -> Array:
        return self._answer("gradients", x, rounds)

    def weighted(self, x: Array, rounds: Rounds, weights: Floats) -> Array:
        return self._answer("weighted", x, rounds, weights)

    def _answer(self, what: str, x: Array, rounds: Rounds, *weights: Floats) -> Any:
        point = self._point(x)
        if not self.at_once or not self._worth_it(rounds):
            return self._apart(what, point, rounds, *weights)
        try:
            return self._together(what, point, rounds, *weights)
        except Exception:  # whatever is wrong with the callable itself, the next line says
            found = self._apart(what, point, rounds, *weights)
            self.at_once = False
            return found

    def _apart(self, what: str, point: Any, rounds: Rounds, *weights: Floats) -> Any:
        data, own = self._columns(rounds, point), what == "values_at"
        ask = self._scalar if what.startswith("values") else self._slope
        found = (
            ask(point[i] if own else point, int(t), [part[i] for part in data])
            for i, t in enumerate(rounds.ts)
        )
        if weights:
            return sum(w * slope for w, slope in zip(weights[0].tolist(), found, strict=True))
        return self._stack(found)

    def _worth_it(self, rounds: Rounds) -> bool:
        return True

    @abstractmethod
    def _point(self, x: Array) -> Any:
        """The point in the library's arrays."""

    @abstractmethod
    def _columns(self, rounds: Rounds, point: Any) -> Sequence[Any]:
        """The data of the rounds in the library's arrays."""

    @abstractmethod
    def _stack(self, found: Iterable[Any]) -> Any:
        """Answers of rounds as one array."""

    @abstractmethod
    def _slope(self, x: Any, t: int, row: Sequence[Any]) -> Any:
        """The gradient of a single round."""

    @abstractmethod
    def _together(self, what: str, point: Any, rounds: Rounds, *weights: Floats) -> Any:
        """All rounds at once: values, values_at, gradients, or a weighted gradient."""

    @abstractmethod
    def _number(self, found: Any, x: Any) -> Any:
        """An answer as an array of the library, which it may be refused for."""

    def _scalar(self, x: Any, t: Any, row: Sequence[Any]) -> Any:
        """The callable's answer as an array without axes, in the dtype of x."""
        found = self.value(*{"rows": (x, *row), "numbers": (t, x), "alone": (x,)}[self.call])
        answer = None if isinstance(found, bool) else self._number(found, x)
        if answer is None:
            raise WrongType(f"{self.name}: expected a scalar, not {shown(found)}.")
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
        """What the callable is called, if it has a name."""
        return name_of(self._engine.value)

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
        return self._all_values(x, each=False)

    def values_at(self, points: Array) -> Array:
        return self._all_values(points, each=True)

    def _all_values(self, x: Array, *, each: bool) -> Array:
        if not len(self):
            return like(np.zeros(0), x)
        return self._finite(self._engine.values(x, self._rounds, each=each), x, "value")

    def gradients(self, x: Array) -> Array:
        if not len(self):
            return like(np.zeros((0, *self._shape)), x)
        return self._finite(self._engine.gradients(x, self._rounds), x, "gradient")

    def subgradient(self, x: Array, weights: Array) -> Array:
        each = np.asarray(to_numpy(weights), dtype=np.float64)
        used = np.flatnonzero(each)
        if not len(used):
            return 0.0 * x
        rounds = self._rounds if len(used) == len(each) else self._rounds.some(used)
        found = self._engine.weighted(x, rounds, each[used])
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
        raise NotFinite(f"The {what} of {where} of {self._engine.name} is not finite here.")


def resolved(
    value: object, shape: Shape | int, rounds: object, data: object, library: str
) -> tuple[str, Shape, Rounds]:
    """How the callable is called, the shape of a point, and the rounds; refused if they do not fit
    together or the library is not installed.
    """
    who = f"from_{library}"
    import_extra(library, who, library)
    if not callable(value) or isinstance(value, type):
        words = f"{who} takes a callable of x and a row, of t and x, or of x, not {shown(value)}."
        raise WrongType(words, setting="value")
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
    if array.ndim < 1:
        raise InvalidInput(f"{what} must be arrays with rounds first.", setting="data")
    return array


def name_of(value: object) -> str | None:
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) and not name.startswith(("<", "_")) else None


# Plain callables of torch as functions, with gradients by its automatic differentiation.
#
# Points of torch are computed with as they are; those of other libraries in float64. Data move to
# where the point is, and floating ones take its dtype.


def from_torch(
    value: Callable[..., Any],
    shape: Shape | int,
    rounds: int | None = None,
    *,
    data: Any = None,
) -> Autograd:
    """Functions from a plain callable of torch; gradients come by themselves.

    Parameters
    ----------
    value : callable
        A torch scalar: value(x, *row) where `data` are given, row what they hold of the round;
        value(t, x) where `rounds` are; else value(x), a single round. x is a tensor of `shape`.
        Convex in x.
    shape : int or tuple of int
        How many entries a point has, or its shape.
    rounds : int, optional
        How many rounds there are, if no data say it; t counts from 0. None: a single one.
    data : array or sequence of array, optional
        What differs from round to round: an array, or several, rounds first. With them all rounds
        are computed at once. None: the callable knows.

    Returns
    -------
    Batch
        The functions, one per round: losses or constraints of a stream, or of one round.

    Raises
    ------
    MissingExtra
        Where torch is not installed.
    WrongType, WrongShape
        If the callable is none, or data and rounds do not fit together.

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

    def values(self, x: Array, rounds: Rounds, *, each: bool) -> Array:
        import torch

        with torch.no_grad():
            return super().values(x, rounds, each=each)

    def _worth_it(self, rounds: Rounds) -> bool:
        return self.call == "rows" and len(rounds.ts) > 1

    def _point(self, x: Array) -> Any:
        import torch

        if isinstance(x, torch.Tensor):
            return x.detach()
        return torch.tensor(np.asarray(to_numpy(x), dtype=np.float64))

    def _columns(self, rounds: Rounds, point: Any) -> list[Any]:
        import torch

        columns = []
        for part in rounds.data:
            if not isinstance(part, torch.Tensor):
                array = to_numpy(part)
                part = torch.as_tensor(array if array.flags.writeable else array.copy())
            kind = point.dtype if part.dtype.is_floating_point else part.dtype
            columns.append(part.detach().to(device=point.device, dtype=kind))
        return columns

    def _stack(self, found: Iterable[Any]) -> Any:
        import torch

        return torch.stack(list(found))

    def _together(self, what: str, point: Any, rounds: Rounds, *weights: Floats) -> Any:
        from torch.func import grad, vmap

        columns, ways = self._columns(rounds, point), (0 if what == "values_at" else None, None, 0)
        if what == "gradients":
            return vmap(grad(self._scalar), in_dims=ways)(point, 0, columns)
        values = vmap(self._scalar, in_dims=ways)
        if what != "weighted":
            return values(point, 0, columns)
        return _backward(lambda x: values(x, 0, columns) @ x.new_tensor(weights[0]), point)

    def _slope(self, x: Any, t: int, row: Sequence[Any]) -> Any:
        return _backward(lambda point: self._scalar(point, t, row), x)

    def _number(self, found: Any, x: Any) -> Any:
        import torch

        if isinstance(found, torch.Tensor | int | float):
            return torch.as_tensor(found, device=x.device).to(x.dtype)
        return None


def _backward(value: Callable[[Any], Any], point: Any) -> Any:
    import torch

    point = point.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        total = value(point)
    if not total.requires_grad:  # a constant
        return torch.zeros_like(point)
    (found,) = torch.autograd.grad(total, point, allow_unused=True)
    return torch.zeros_like(point) if found is None else found


# Plain callables of jax as functions, with gradients by its automatic differentiation.
#
# Everything is computed in float64, which jax has to be told: `jax.enable_x64` holds within each
# call here and nowhere else. Arrays that a callable brings along were made by its owner, in float32
# where jax was not told: what differs from round to round goes into `data`.
#
# Compiled code is for one number of rounds; to need few of them, rounds are filled up to a power of
# two with copies of the first.


def from_jax(
    value: Callable[..., Any],
    shape: Shape | int,
    rounds: int | None = None,
    *,
    data: Any = None,
) -> Autograd:
    """Functions from a plain callable of jax; gradients come by themselves, compiled.

    Parameters
    ----------
    value : callable
        A jax scalar: value(x, *row) where `data` are given, row what they hold of the round;
        value(t, x) where `rounds` are; else value(x), a single round. x is an array of `shape`.
        Convex in x.
    shape : int or tuple of int
        How many entries a point has, or its shape.
    rounds : int, optional
        How many rounds there are, if no data say it; t counts from 0. None: a single one.
    data : array or sequence of array, optional
        What differs from round to round: an array, or several, rounds first. With them all rounds
        are computed at once. None: the callable knows.

    Returns
    -------
    Batch
        The functions, one per round: losses or constraints of a stream, or of one round.

    Raises
    ------
    MissingExtra
        Where jax is not installed.
    WrongType, WrongShape
        If the callable is none, or data and rounds do not fit together.

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

    def _answer(self, what: str, x: Array, rounds: Rounds, *weights: Floats) -> Any:
        with _in_64_bits():
            return np.asarray(super()._answer(what, x, rounds, *weights))

    def _point(self, x: Array) -> Any:
        return np.asarray(to_numpy(x), dtype=np.float64)

    def _columns(self, rounds: Rounds, point: Any) -> Sequence[Any]:
        return tuple(map(to_numpy, rounds.data))

    def _stack(self, found: Iterable[Any]) -> Any:
        return np.stack([np.asarray(one) for one in found])

    def _slope(self, x: Any, t: int, row: Sequence[Any]) -> Any:
        import jax

        return jax.grad(lambda point: self._scalar(point, t, row))(x)

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
        from jax import grad, jit, vmap

        each = vmap(self._scalar, in_axes=(None, 0, 0))
        return {
            "values": jit(each),
            "values_at": jit(vmap(self._scalar, in_axes=(0, 0, 0))),
            "gradients": jit(vmap(grad(self._scalar), in_axes=(None, 0, 0))),
            "weighted": jit(grad(lambda x, ts, data, w: w @ each(x, ts, data))),
        }

    def _scalar(self, x: Any, t: Any, row: Sequence[Any]) -> Any:
        import jax.numpy as jnp

        return super()._scalar(jnp.asarray(x), t, list(map(jnp.asarray, row)))

    def _number(self, found: Any, x: Any) -> Any:
        import jax
        import jax.numpy as jnp

        if isinstance(found, jax.Array | int | float | np.generic):
            return jnp.asarray(found, dtype=jnp.float64)
        return None


def _in_64_bits() -> Any:
    import jax

    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # where jax is older

    return enable_x64()
