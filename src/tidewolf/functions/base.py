"""What several kinds of function share: checks of their arrays, and two gifts exact solvers
understand.

`LinearTotal`: the sum over the rounds is one affine function. `PiecewiseLinear`: "g_t(x) <= 0 for
every t" is a list of half-spaces.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tidewolf.core.arrays import as_array, like, namespace, square_range, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import WrongShape
from tidewolf.core.types import Array, Floats, Int64s, Shape

B = TypeVar("B", bound=Batch)


class LinearTotal(ABC):
    """A batch whose sum over its rounds is <c, x> + constant."""

    @abstractmethod
    def total(self) -> tuple[Floats, float]:
        """(c, constant) in float64, c of the shape of a point."""


class Halfspaces(NamedTuple):
    """A x <= b on flattened points; row i is a piece of the function of round `rounds[i]`, so <a_i,
    x> - b_i <= g_{rounds[i]}(x).
    """

    A: Any
    b: Floats
    rounds: Int64s


class PiecewiseLinear(ABC):
    """A batch for which "every value <= 0" is a list of half-spaces."""

    @abstractmethod
    def halfspaces(self) -> Halfspaces:
        """The half-spaces, redundant ones left out where that is free."""


def batch_array(x: object, what: str, *, axes: int = 2) -> Array:
    """An array with rounds first and at least `axes` axes."""
    array = as_array(x, what)
    if array.ndim < axes:
        raise WrongShape(
            f"{what} needs at least {axes} axes, rounds first; it has shape {tuple(array.shape)}. "
            "For a single round use `.one(...)`."
        )
    if 0 in array.shape[1:]:
        raise WrongShape(
            f"{what} has shape {tuple(array.shape)}: every round needs at least one entry."
        )
    return array


def beside(x: object, A: Array, shape: Shape, what: str) -> Array:
    """An array of this shape in the library and dtype of A; one that already is there is not
    copied.
    """
    array = as_array(x, what)
    if tuple(array.shape) != shape:
        raise WrongShape(f"{what} needs shape {shape}; it has shape {tuple(array.shape)}.")
    return array if type(array) is type(A) and array.dtype == A.dtype else like(array, A)


def stacked(parts: Sequence[B], *names: str) -> B | None:
    """Batches of one kind as one, the arrays of these names put end to end; None where they differ
    in more than their rounds.
    """
    arrays = {name: [getattr(part, name) for part in parts] for name in names}
    for several in arrays.values():
        if len({(type(a), a.dtype, a.ndim, tuple(a.shape[1:])) for a in several}) > 1:
            return None
    return parts[0]._shared(
        **{name: namespace(several[0]).concat(several) for name, several in arrays.items()}
    )


def rows(x: Array) -> Array:
    """An array with rounds first as a matrix, one flattened point a row."""
    return x if x.ndim == 2 else namespace(x).reshape(x, (x.shape[0], math.prod(x.shape[1:])))


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
