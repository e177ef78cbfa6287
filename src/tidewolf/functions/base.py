"""What several kinds of function share.

- `PerRound`, the check of a setting that is an array with rounds first,
- `ArrayBatch`, a batch that consists of such arrays,
- two capabilities that exact solvers ask for: `LinearTotal`, the sum over the rounds is one affine
  function; `PiecewiseLinear`, "g_t(x) <= 0 for every t" is a list of half-spaces.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from tidewolf.core.arrays import as_array, is_array, like, namespace, square_range, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import WrongShape
from tidewolf.core.settings import Numbers
from tidewolf.core.types import Array, Floats, Int64s, Shape


class LinearTotal(ABC):
    """A batch whose sum over its rounds is <c, x> + constant, which `total()` gives.

    A capability: a class of functions that inherits it, too, is solved in hindsight as a linear
    program.

    Examples
    --------
    >>> f = tw.functions.Affine([[1.0, 0.0], [2.0, 3.0]], [0.5, 0.5])
    >>> isinstance(f, tw.functions.LinearTotal), f.total()
    (True, (array([3., 3.]), -1.0))
    """

    @abstractmethod
    def total(self) -> tuple[Floats, float]:
        """The sum over the rounds as (c, constant).

        Returns
        -------
        tuple of array and float
            c, of the shape of a point and in float64, and the constant.
        """


class Halfspaces(NamedTuple):
    """Half-spaces A x <= b on flattened points.

    Row i is a piece of the function of round `rounds[i]`, so <a_i, x> - b_i <= g_{rounds[i]}(x).

    Parameters
    ----------
    A : array
        The rows, a matrix of NumPy or a sparse array of SciPy.
    b : array
        The offsets, one a row.
    rounds : array
        The round that each row comes from, counted from 0.

    Examples
    --------
    >>> g = tw.functions.Affine([[1.0, 0.0], [2.0, 3.0]], [0.5, 0.7])
    >>> g.halfspaces().b
    array([0.5, 0.7])
    """

    A: Any
    b: Floats
    rounds: Int64s


class PiecewiseLinear(ABC):
    """A batch for which "every value is at most 0" is a list of half-spaces.

    A capability: constraints that inherit it, too, are solved in hindsight as a linear program.

    Examples
    --------
    >>> g = tw.functions.Capacity([[0.5, 0.2], [0.4, 0.3]])
    >>> isinstance(g, tw.functions.PiecewiseLinear)
    True
    >>> g.halfspaces().b  # of each entry only the smallest capacity matters
    array([0.4, 0.2])
    """

    @abstractmethod
    def halfspaces(self) -> Halfspaces:
        """The half-spaces, redundant ones left out where that is free."""


@dataclass(frozen=True)
class Uncopied(Numbers):
    """An array of finite numbers that stays where it is."""

    def __call__(self, value: Any, what: str) -> Array:
        return as_array(value, what)


@dataclass(frozen=True)
class PerRound(Uncopied):
    """Numbers with rounds first and at least `axes` axes, which are never copied."""

    axes: int = field(default=2, kw_only=True)

    def __call__(self, value: Any, what: str) -> Array:
        array = as_array(value, what)
        if array.ndim < self.axes:
            raise WrongShape(
                f"{what} needs at least {axis_count(self.axes)}, rounds first; it has shape "
                f"{tuple(array.shape)}. For a single round use `.one(...)`."
            )
        if 0 in array.shape[1:]:
            raise WrongShape(
                f"{what} has shape {tuple(array.shape)}: every round needs at least one entry."
            )
        return array


class ArrayBatch(Batch):
    """A batch of arrays with rounds first, and of settings that all rounds share.

    Its fields are all that it keeps: a view cuts the arrays that `by_round` names, and takes over
    the rest.
    """

    @property
    @abstractmethod
    def by_round(self) -> tuple[str, ...]:
        """The fields whose first axis is rounds."""

    def __len__(self) -> int:
        return int(self.__dict__[self.by_round[0]].shape[0])

    def view(self, rounds: slice) -> Self:
        view = object.__new__(type(self))  # by hand: every round of a run takes two
        fields = view.__dict__
        fields.update(self.__dict__)
        for name in self.by_round:
            fields[name] = fields[name][rounds, ...]
        return view

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        whole = {}
        for name, mine in parts[0].__dict__.items():
            several = [part.__dict__[name] for part in parts]
            if name in parts[0].by_round:
                kinds = {(type(a), a.dtype, a.ndim, tuple(a.shape[1:])) for a in several}
                if len(kinds) > 1:
                    return None
                whole[name] = namespace(mine).concat(several)
            elif all(_equal(mine, other) for other in several):
                whole[name] = mine
            else:
                return None
        return cls._unchecked(**whole)

    def _match(self, name: str, shape: Shape, reference: Array) -> None:
        """Require this shape of an array, and put it into the library and dtype of another."""
        array = self.__dict__[name]
        if tuple(array.shape) != shape:
            raise WrongShape(
                f"{name} of {type(self).__name__} needs shape {shape}; it has shape "
                f"{tuple(array.shape)}.",
                setting=name,
            )
        if type(array) is not type(reference) or array.dtype != reference.dtype:
            object.__setattr__(self, name, like(array, reference))


def one_round(x: object, what: str, *, axes: int = 1) -> Array:
    """An array of a single round with at least `axes` axes, as one with rounds first."""
    array = as_array(x, what)
    if array.ndim < axes or 0 in array.shape:
        raise WrongShape(
            f"{what} needs at least {axis_count(axes)} and one entry; it has shape "
            f"{tuple(array.shape)}."
        )
    return array[None, ...]


def axis_count(axes: int) -> str:
    """A number of axes in words."""
    return "1 axis" if axes == 1 else f"{axes} axes"


def _equal(mine: Any, other: Any) -> bool:
    if is_array(mine) and mine is not other:
        return np.array_equal(to_numpy(mine), to_numpy(other))
    return mine is other or bool(mine == other)


def rows(x: Array) -> Array:
    """An array with rounds first as a matrix, one flattened point a row."""
    return x if x.ndim == 2 else namespace(x).reshape(x, (x.shape[0], math.prod(x.shape[1:])))


def shaped(x: Array, shape: Shape) -> Array:
    """The inverse of flattening: an array with the entries of x and this shape."""
    return x if x.ndim == len(shape) else namespace(x).reshape(x, shape)


def row_norms(x: Array) -> Floats:
    """The norm of each row of a matrix, as a NumPy array."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = to_numpy(namespace(x).vecdot(x, x))
    norms: Floats = np.sqrt(squares)
    least, most = square_range(x)
    odd = np.flatnonzero(~((norms >= least) & (norms <= most)))
    if len(odd):  # 0, or so small or large that their squares are not
        some = to_numpy(x)[odd]
        sizes = np.abs(some).max(axis=1, initial=0.0)
        some = some / np.where((sizes > 0.0) & (sizes < np.inf), sizes, 1.0)[:, None]
        norms[odd] = sizes * np.sqrt(np.vecdot(some, some))
    return norms
