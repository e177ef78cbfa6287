"""Sums of functions, round by round:  f_t(x) = sum_i w_i f_ti(x),  w >= 0.

A subgradient is the weighted sum of theirs. Affine parts add up to an affine function; maxima of
affine pieces to the maximum over the choices of one piece of each, so that Sum is PiecewiseLinear
where all parts are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from tidewolf.core.arguments import as_items
from tidewolf.core.arrays import as_number
from tidewolf.core.batch import Batch
from tidewolf.core.errors import WrongShape
from tidewolf.core.piecewise import Halfspaces, LinearTotal, PiecewiseLinear, stacked
from tidewolf.core.settings import Numbers
from tidewolf.core.sparse import is_sparse
from tidewolf.core.types import Array, Floats
from tidewolf.functions.base import row_norms, rows
from tidewolf.functions.capacity import Capacity
from tidewolf.functions.combined import Combined, checked_parts
from tidewolf.functions.linear import Linear
from tidewolf.functions.quadratic import Quadratic


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Sum(Combined):
    """The sum of several functions a round, weighted where weights are given.

    In an experiment's file its parts are tables of their own, [[stream.losses.parts]].

    Parameters
    ----------
    functions : Batch
        The parts: batches of as many rounds, on points of one shape.
    parts : sequence of Batch, default ()
        The same as a list; it comes after `functions`.
    weights : sequence of float, optional
        What each function is multiplied by, at least 0. None: 1 each.

    Examples
    --------
    >>> costs = tw.functions.Linear([[1.0, 2.0], [0.0, 3.0]])
    >>> fullest = tw.functions.Capacity([[0.5, 1.0], [0.25, 0.5]])
    >>> tw.functions.Sum(costs, fullest, weights=[1.0, 10.0]).values(np.array([0.5, 0.5]))
    array([1.5, 4. ])
    """

    parts: tuple[Batch, ...]
    weights: tuple[float, ...]

    def __init__(
        self,
        *functions: Batch,
        parts: Sequence[Batch] = (),
        weights: Annotated[
            Sequence[float] | None,
            Numbers("What each function is multiplied by, at least 0. None: 1 each.", axes=1),
        ] = None,
    ) -> None:
        given = checked_parts(functions, parts, "Sum")
        self.__dict__.update(parts=given, weights=_weights(weights, len(given)))

    @staticmethod
    def _able(parts: tuple[Batch, ...]) -> Iterable[type]:
        for capability in (LinearTotal, PiecewiseLinear):
            if all(isinstance(part, capability) for part in parts):
                yield capability

    def values(self, x: Array) -> Array:
        return sum(w * part.values(x) for w, part in self._weighted())

    def values_at(self, points: Array) -> Array:
        return sum(w * part.values_at(points) for w, part in self._weighted())

    def subgradient(self, x: Array, weights: Array) -> Array:
        return sum(w * part.subgradient(x, weights) for w, part in self._weighted())

    def gradients(self, x: Array) -> Array:
        return sum(w * part.gradients(x) for w, part in self._weighted())

    def slopes(self, x: Array) -> Floats:
        return row_norms(rows(self.gradients(x)))

    def _weighted(self) -> Iterable[tuple[float, Any]]:
        return zip(self.weights, self.parts, strict=True)

    def total(self) -> tuple[Floats, float]:
        """The sum of the parts' totals, which are linear."""
        self._parts_with(LinearTotal, "does not add up to a linear function")
        each = [(w, *part.total()) for w, part in self._weighted()]
        return np.asarray(sum(w * c for w, c, _ in each)), float(sum(w * k for w, _, k in each))

    def halfspaces(self) -> Halfspaces:
        """A row for each choice of one piece of each part, round by round."""
        return self._choices() if len(self) == 1 else self.epigraph()

    def epigraph(self) -> Halfspaces:
        """The same: rows in the order of the rounds."""
        parts = self._piecewise()
        each = [self.view(slice(t, t + 1))._choices() for t in range(len(self))]
        return stacked(each) if each else parts[0].halfspaces()

    def _choices(self) -> Halfspaces:
        """The rows of a single round."""
        told = [(w, p.halfspaces()) for w, p in zip(self.weights, self._piecewise(), strict=True)]
        A, b = _times(told[0][1].A, told[0][0]), told[0][0] * told[0][1].b
        for w, one in told[1:]:
            mine = np.repeat(np.arange(len(b)), len(one.b))
            theirs = np.tile(np.arange(len(one.b)), len(b))
            A = _plus(A[mine, :], _times(one.A, w)[theirs, :])
            b = b[mine] + w * one.b[theirs]
        return Halfspaces(A, b, np.zeros(len(b), dtype=np.int64))

    @classmethod
    def examples(cls) -> Sequence[Sum]:
        costs, limits = Linear([[1.0, -2.0], [0.0, 3.0]]), Capacity([[0.5, 0.5], [1.0, 0.0]])
        return (
            cls(costs, limits, Capacity([[0.0, 1.0], [-1.0, 1.0]]), weights=[1.0, 0.5, 2.0]),
            cls(costs, Linear([[1.0, 1.0], [0.0, 0.0]])),
            cls(Quadratic.examples()[0], limits),
            cls(Linear([[3.0]]), weights=[0.0]),
        )


def _weights(weights: Any, count: int) -> tuple[float, ...]:
    if weights is None:
        return (1.0,) * count
    given = as_items(weights, "weights of Sum", "[1.0, 10.0]")
    if len(given) != count:
        raise WrongShape(
            f"weights of Sum are one for each of its {count} parts; {len(given)} were given.",
            setting="weights",
        )
    return tuple(as_number(w, "A weight of Sum", least=0.0) for w in given)


def _times(A: Any, w: float) -> Any:
    return w * A.astype(np.float64, copy=False)


def _plus(A: Any, B: Any) -> Any:
    """The sum of two matrices, sparse where one is."""
    if is_sparse(A) == is_sparse(B):
        return A + B
    from scipy.sparse import csr_array

    return csr_array(A) + csr_array(B)
