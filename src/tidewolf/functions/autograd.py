"""Functions from one plain callable, whose gradients a library of automatic differentiation finds.

    f_t(x) = value(x, *row_t)       data: arrays with rounds first, row_t what they hold of round t
    f_t(x) = value(t, x)            rounds without data, t from 0
    f(x)   = value(x)               a single round

All rounds of a batch are computed at once where the library can trace the callable (`vmap`); where
it cannot, because the callable asks what a number is, one after another. A weighted sum of
gradients is one gradient, that of sum_t w_t f_t over the rounds with w_t != 0. At a kink the
library's choice is taken.

What comes back is checked: a finite number a round, and a finite gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from tidewolf.core.arguments import import_extra, shown
from tidewolf.core.arrays import as_array, as_count, is_array, like, namespace, norm, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, NotFinite, WrongShape, WrongType
from tidewolf.core.settings import as_shape
from tidewolf.core.types import Array, Floats, Int64s, Shape


class Rounds(NamedTuple):
    """Some rounds: their numbers, from 0, and what the data hold of them, rounds first."""

    ts: Int64s
    data: tuple[Any, ...]

    def some(self, which: Any) -> Rounds:
        """Those of a slice, or of an array of places."""
        return Rounds(self.ts[which], tuple(part[which, ...] for part in self.data))

    def one_by_one(self) -> list[Rounds]:
        """Each round for itself."""
        return [self.some(slice(i, i + 1)) for i in range(len(self.ts))]


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

    def arguments(self, x: Any, t: int, row: Sequence[Any]) -> tuple[Any, ...]:
        """What the callable is given of a round."""
        if self.call == "rows":
            return (x, *row)
        return (t, x) if self.call == "numbers" else (x,)

    def tried(self, together: Callable[[], Any], apart: Callable[[], Any]) -> Any:
        """What all rounds together give, or where the callable does not let itself be traced, one
        after another.
        """
        if self.at_once:
            try:
                return together()
            except Exception:  # whatever is wrong with the callable itself, the next line says
                found = apart()
                self.at_once = False
                return found
        return apart()

    def refuse(self, what: object) -> WrongType:
        """The sentence on an answer that is no number."""
        return WrongType(
            f"A callable for from_{self.name} answers one number, a {self.name} scalar computed "
            f"from x, not {shown(what)}."
        )


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Autograd(Batch):
    """Abstract: functions given by one callable, differentiated by a library."""

    _engine: Engine
    _shape: Shape
    _ts: Int64s
    _data: tuple[Any, ...]

    def fields(self) -> dict[str, Any]:
        return {
            "value": self._engine.value,
            "shape": self._shape,
            "rounds": tuple(self._ts.tolist()) if self._engine.call == "numbers" else len(self),
            "data": self._data,
        }

    def __repr__(self) -> str:
        called = self.name or "value"
        return f"{type(self).__name__}({called}, shape={self._shape}, rounds={len(self)})"

    def __len__(self) -> int:
        return len(self._ts)

    @property
    def shape(self) -> Shape:
        return self._shape

    @property
    def name(self) -> str | None:
        """What the callable is called, where it has a name."""
        return name_of(self._engine.value)

    @property
    def _own_rounds(self) -> Rounds:
        return Rounds(self._ts, self._data)

    def view(self, rounds: slice) -> Self:
        ts, data = self._own_rounds.some(rounds)
        return self._unchecked(_engine=self._engine, _shape=self._shape, _ts=ts, _data=data)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        first = parts[0]
        if any(part._engine is not first._engine for part in parts):
            return None
        columns = zip(*(part._data for part in parts), strict=True)
        data = tuple(namespace(column[0]).concat(column) for column in columns)
        ts = np.concatenate([part._ts for part in parts])
        return cls._unchecked(_engine=first._engine, _shape=first._shape, _ts=ts, _data=data)

    def values(self, x: Array) -> Array:
        if not len(self):
            return like(np.zeros(0), x)
        return self._finite(self._engine.values(x, self._own_rounds, each=False), x, "value")

    def values_at(self, points: Array) -> Array:
        if not len(self):
            return like(np.zeros(0), points)
        found = self._engine.values(points, self._own_rounds, each=True)
        return self._finite(found, points, "value")

    def gradients(self, x: Array) -> Array:
        if not len(self):
            return like(np.zeros((0, *self._shape)), x)
        return self._finite(self._engine.gradients(x, self._own_rounds), x, "gradient")

    def subgradient(self, x: Array, weights: Array) -> Array:
        each = np.asarray(to_numpy(weights), dtype=np.float64)
        used = np.flatnonzero(each)
        if not len(used):
            return 0.0 * x
        rounds = self._own_rounds if len(used) == len(each) else self._own_rounds.some(used)
        found = self._engine.weighted(x, rounds, each[used])
        return self._finite(found[None, ...], x, "gradient")[0, ...]

    def slopes(self, x: Array) -> Floats:
        gradients = self.gradients(x)
        return np.array([norm(gradients[t, ...]) for t in range(len(self))])

    def _finite(self, found: Array, x: Array, what: str) -> Array:
        xp = namespace(found)
        if bool(xp.all(xp.isfinite(found))):
            same = type(found) is type(x) and found.dtype == x.dtype
            return found if same else like(to_numpy(found), x)
        rows = np.isfinite(to_numpy(found)).reshape(len(found), -1).all(axis=1)
        t = int(self._ts[int(np.argmin(rows))]) if len(found) == len(self) else None
        where = "a round" if t is None else f"round {t + 1} (t = {t})"
        raise NotFinite(
            f"The {what} of {where} of {type(self).__name__} is not finite at this point; "
            "functions are finite on the whole set, and so are their gradients: a root or a norm "
            "at 0 has none, unless a small number is added under the root."
        )


def resolved(
    value: object, shape: Shape | int, rounds: object, data: object, library: str
) -> tuple[str, Shape, Rounds]:
    """How the callable is called, the shape of a point, and the rounds; refused if they do not fit
    together or the library is not installed.
    """
    who = f"from_{library}"
    import_extra(library, who, library)
    if not callable(value) or isinstance(value, type):
        raise WrongType(
            f"{who} takes a callable, value(x, *row) with data=, value(t, x) with rounds=, or "
            f"value(x) for a single round, not {shown(value)}.",
            setting="value",
        )
    sides = as_shape(tuple(shape) if isinstance(shape, Sequence) else (shape,), f"shape of {who}")
    if data is not None:
        parts = _as_data(data, who)
        count = len(parts[0])
        if rounds is not None and as_count(rounds, f"rounds of {who}", least=0) != count:
            raise WrongShape(
                f"{who} was given {rounds} rounds and data of {count}; data alone say how many "
                "rounds there are.",
                setting="rounds",
            )
        return "rows", sides, Rounds(np.arange(count), parts)
    if rounds is None:
        return "alone", sides, Rounds(np.zeros(1, dtype=np.int64), ())
    return "numbers", sides, Rounds(np.arange(as_count(rounds, f"rounds of {who}")), ())


def _as_data(data: Any, who: str) -> tuple[Any, ...]:
    several = isinstance(data, list | tuple) and data and all(map(is_array, data))
    parts = tuple(_as_rows(part, who) for part in (data if several else (data,)))
    counts = [len(part) for part in parts]
    if len(set(counts)) > 1:
        raise WrongShape(
            f"The data of {who} are arrays with rounds first, of as many rounds each; arrays of "
            f"{' and '.join(map(str, counts))} rounds were given.",
            setting="data",
        )
    return parts


def _as_rows(part: Any, who: str) -> Any:
    what = f"The data of {who}"
    array = part if is_array(part) else as_array(part, what)
    xp = namespace(array)
    if not xp.isdtype(array.dtype, ("integral", "bool")):
        array = as_array(array, what)
    if array.ndim < 1:
        raise InvalidInput(
            f"{what} are arrays with rounds first, such as features of shape (rounds, n), not a "
            "single number.",
            setting="data",
        )
    return array


def name_of(value: object) -> str | None:
    """What a callable is called; None for one without a name of its own."""
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) and not name.startswith(("<", "_")) else None


def examples_of(make: Callable[..., Autograd]) -> tuple[Autograd, ...]:
    """One of each way to give a callable, by the function that takes it."""
    rows = np.arange(6.0).reshape(3, 2) - 2.0
    return (
        make(_distance, 2, data=rows),
        make(_scaled, (2, 2), rounds=2),
        make(_square, 1),
    )


def _distance(x: Any, row: Any) -> Any:
    return abs(x - row).sum()


def _scaled(t: Any, x: Any) -> Any:
    return t * (x * x).sum()


def _square(x: Any) -> Any:
    return (x * x).sum()
