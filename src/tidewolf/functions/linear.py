"""Linear and affine functions, maxima of affine pieces, and capacities."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self, final

import numpy as np

from tidewolf.core import arrays, errors
from tidewolf.core.arrays import as_number, flat, is_torch, like, namespace, to_numpy
from tidewolf.core.batch import Batch, Halfspaces, LinearTotal, PiecewiseLinear
from tidewolf.core.sparse import (
    as_sparse,
    csr_array,
    cut_rows,
    is_sparse,
    row_norms,
    same_rows,
    stack_rows,
)
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.functions import base
from tidewolf.functions.base import ArrayBatch, Coefficients, PerRound, one_round, rows, shaped

# Linear functions:  f_t(x) = <C_t, x>.


class AffineRows(ArrayBatch, LinearTotal, PiecewiseLinear):
    """Abstract: <a_t, x> - b_t, with the fields that `by_round` names; one alone has no offsets."""

    @property
    def _a(self) -> Array:
        return self.__dict__[self.by_round[0]]

    def _less_offsets(self, found: Array, x: Array) -> Array:
        b = self.__dict__.get("b")
        return found if b is None else found - base.beside(b, self._a, x)

    def values(self, x: Array) -> Array:
        return self._less_offsets(base.products(rows(self._a), x), x)

    def values_at(self, points: Array) -> Array:
        return self._less_offsets(base.own_products(rows(self._a), rows(points)), points)

    def subgradient(self, x: Array, weights: Array) -> Array:
        return shaped(base.weighted(rows(self._a), weights), self.shape)

    def gradients(self, x: Array) -> Array:
        return base.each_row(self._a, x)

    def slopes(self, x: Array) -> Floats:
        return row_norms(rows(self._a))

    def total(self) -> tuple[Floats, float]:
        A, ones = self._a, np.ones(len(self))
        c = base.weighted(A, ones) if is_sparse(A) else to_numpy(A).sum(axis=0, dtype=np.float64)
        return np.asarray(c), 0.0 - float(self.offsets().sum())

    def epigraph(self) -> Halfspaces:
        return self.halfspaces()

    def halfspaces(self) -> Halfspaces:
        A = rows(self._a)
        return Halfspaces(A if is_sparse(A) else to_numpy(A), self.offsets(), np.arange(len(self)))

    def offsets(self) -> Floats:
        b = self.__dict__.get("b")
        return np.zeros(len(self)) if b is None else to_numpy(b).astype(np.float64)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Linear(AffineRows):
    """Linear functions <C_t, x>.

    Parameters
    ----------
    C : array
        The coefficients, of shape (rounds, *shape of a point); for vectors also a frame of
        pandas or polars, or a sparse array of SciPy, (rounds, n).

    Examples
    --------
    >>> f = tw.functions.Linear([[1.0, 2.0], [0.0, 3.0]])  # two rounds
    >>> f.values(np.array([0.5, 0.5]))
    array([1.5, 1.5])
    """

    by_round = ("C",)

    C: Coefficients

    @classmethod
    def one(cls, c: Array) -> Self:
        """A single round <c, x>."""
        return cls._unchecked(C=one_round(c, "c of Linear.one", sparse=True))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]]),
            cls([[3.0]]),
            cls(np.arange(12.0).reshape(3, 2, 2)),
            cls(csr_array([[0.0, -2.0, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])),
        )


# Affine functions:  f_t(x) = <A_t, x> - b_t.  As a constraint: <A_t, x> <= b_t.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Affine(AffineRows):
    """Affine functions <A_t, x> - b_t: as a constraint, <A_t, x> <= b_t.

    Parameters
    ----------
    A : array
        The coefficients, of shape (rounds, *shape of a point); for vectors also a frame of
        pandas or polars, or a sparse array of SciPy, (rounds, n).
    b : array
        The offsets, one per round.

    Examples
    --------
    >>> g = tw.functions.Affine([[1.0, 2.0], [0.0, 3.0]], [1.0, 2.0])  # two rounds
    >>> g.values(np.array([0.5, 0.5]))
    array([ 0.5, -0.5])
    """

    by_round = ("A", "b")

    A: Coefficients
    b: Annotated[Array, PerRound(axes=1)]

    def _complete(self) -> None:
        self._match("b", (len(self),), self.A)

    @classmethod
    def one(cls, a: Array, b: float) -> Self:
        """A single round <a, x> - b."""
        A, offset = one_round(a, "a of Affine.one", sparse=True), as_number(b, "b of Affine.one")
        return cls._unchecked(A=A, b=like(np.array([offset]), A.data if is_sparse(A) else A))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]], [0.3, -1.0]),
            cls.one([3.0], 3.0),
            cls(np.arange(12.0).reshape(3, 2, 2), np.ones(3)),
            cls(csr_array([[0.0, -2.0, 0.5], [0.0, 0.0, 0.0]]), [0.3, -1.0]),
        )


class LargestPiece(ArrayBatch, PiecewiseLinear):
    """Abstract: the largest of the affine `pieces` of a round; a subgradient is that of the first
    among the largest.
    """

    @abstractmethod
    def _rows(self, rounds: Int64s, limits: Int64s) -> Array:
        """One piece of each of these rounds, one flattened row each."""

    def values(self, x: Array) -> Array:
        pieces = self.pieces(x)
        return namespace(pieces).max(pieces, axis=1)

    values_at = values  # type: ignore[assignment]  # `pieces` take a point for each round, too

    def subgradient(self, x: Array, weights: Array) -> Array:
        return shaped(base.weighted(self._active(x), weights), self.shape)

    def gradients(self, x: Array) -> Array:
        return self.piece_gradients(x, np.arange(len(self)), self._fullest(x))

    def piece_gradients(self, x: Array, rounds: Int64s, limits: Int64s) -> Array:
        return shaped(base.each_row(self._rows(rounds, limits), x), (len(limits), *self.shape))

    def slopes(self, x: Array) -> Floats:
        return row_norms(self._active(x))

    def _active(self, x: Array) -> Array:
        return self._rows(np.arange(len(self)), self._fullest(x))

    def _fullest(self, x: Array) -> Int64s:
        pieces = self.pieces(x)
        return to_numpy(namespace(pieces).argmax(pieces, axis=1))


def weighted_rows(A: Array, b: Array) -> Batch:
    """<A_t, x> <= b_t, of finite arrays with rounds first; of several rows per round, which are the
    second axis of b too, the largest.
    """
    return (Affine if b.ndim == 1 else MaxAffine)._unchecked(A=A, b=b)


# Maxima of affine pieces:  f_t(x) = max_j <A_tj, x> - b_tj.
#
# A subgradient is A_tj of an active piece j; among several the first. As a constraint: every <A_tj,
# x> <= b_tj.
#
# Sparse coefficients are one matrix of SciPy: the pieces of the first round, then those of the
# second, .., (rounds * pieces, n); or (pieces, n), the same in every round, where only b moves.
# They are never made dense, and live on the host.


@final
@dataclass(frozen=True, eq=False, repr=False)
class MaxAffine(LargestPiece):
    """The largest of several affine pieces, max_j <A_tj, x> - b_tj.

    Parameters
    ----------
    A : array
        The coefficients, of shape (rounds, pieces, *shape of a point); for vectors also a
        sparse array of SciPy: (rounds * pieces, n), round after round, or (pieces, n), the same
        in every round.
    b : array
        The offsets, of shape (rounds, pieces).

    Examples
    --------
    >>> g = tw.functions.MaxAffine([[[1.0, 0.0], [0.0, 1.0]]], [[0.5, 0.25]])  # x <= (1/2, 1/4)
    >>> g.values(np.array([0.5, 0.5]))
    array([0.25])
    >>> from scipy.sparse import eye_array
    >>> g = tw.functions.MaxAffine(eye_array(2), [[0.5, 0.25], [0.25, 0.125]])  # two rounds
    >>> g.values(np.array([0.5, 0.5]))
    array([0.25 , 0.375])
    """

    A: Annotated[Array, PerRound(axes=3, sparse=True)]
    b: Annotated[Array, PerRound()]

    def _complete(self) -> None:
        if not is_sparse(self.A):
            self._match("b", tuple(self.A.shape[:2]), self.A)
            return
        count, shape = self.A.shape[0], tuple(self.b.shape)
        fits = len(shape) == 2 and count in (shape[1], shape[0] * shape[1])
        due = f"have a row for each entry of b, of shape {shape}, or for each piece, not {count}"
        self._require(fits, "A", due, errors.WrongShape)
        self._match("b", shape, self.A)

    @classmethod
    def one(cls, A: Array, b: Array) -> Self:
        """A single round; A has shape (pieces, *shape), b has shape (pieces,)."""
        what, offsets = "A of MaxAffine.one", one_round(b, "b of MaxAffine.one")
        return cls(as_sparse(A, what) if is_sparse(A) else one_round(A, what, axes=2), offsets)

    @property
    def by_round(self) -> tuple[str, ...]:
        return ("b",) if self._shared else ("b", "A")

    @property
    def _shared(self) -> bool:
        """Whether all rounds have the same coefficients, which stand there once."""
        return is_sparse(self.A) and self.A.shape[0] == self.b.shape[1]

    @property
    def shape(self) -> Shape:
        return tuple(self.A.shape[1 if is_sparse(self.A) else 2 :])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        if not all(is_sparse(part.A) for part in parts):
            return super().joined(parts)  # type: ignore[arg-type]
        first, offsets = parts[0].A, [part.b for part in parts]
        if len({(A.dtype, A.shape[1], b.shape[1]) for A, b in ((p.A, p.b) for p in parts)}) > 1:
            return None
        b = np.concatenate(offsets)
        if all(part._shared and same_rows(part.A, first) for part in parts):
            return cls._unchecked(A=first, b=b)
        return cls._unchecked(A=stack_rows([part._stacked() for part in parts]), b=b)

    def _stacked(self) -> Any:
        if not self._shared or len(self) == 1:
            return self.A
        return stack_rows([self.A] * len(self)) if len(self) else cut_rows(self.A, 0, 0)

    def pieces(self, x: Array) -> Array:
        """<A_tj, x> - b_tj as (rounds, pieces)."""
        own = x.ndim > len(self.shape)  # a point for each round
        x = rows(x) if own else flat(x)
        if not is_sparse(self.A):
            A = shaped(self.A, (*self.b.shape, math.prod(self.shape)))
            if own:
                return (A @ x[:, :, None])[:, :, 0] - self.b
            found = base.lane_products(A[0, ...], x)[None, :] if len(self) == 1 else A @ x
            return found - self.b
        if own and self._shared:
            found = like((self.A @ to_numpy(x).T).T, x)
        else:
            products = base.own_products(self.A, x) if own else base.products(self.A, x)
            found = namespace(x).reshape(products, (-1, self.b.shape[1]))
        return found - base.beside(self.b, self.A, x)

    def _rows(self, rounds: Int64s, limits: Int64s) -> Array:
        places = limits if self._shared else limits + self.b.shape[1] * rounds
        if not is_sparse(self.A):
            table = (math.prod(self.b.shape), math.prod(self.shape))
            return arrays.taken(namespace(self.A).reshape(self.A, table), places)
        if len(places) == 1:
            return cut_rows(self.A, int(places[0]), int(places[0]) + 1)
        return self.A[places, :]

    def halfspaces(self) -> Halfspaces:
        if not self._shared or not len(self):
            return self.epigraph()
        b = to_numpy(self.b).astype(np.float64, copy=False)
        return Halfspaces(self.A, b.min(axis=0), b.argmin(axis=0))

    def epigraph(self) -> Halfspaces:
        rounds, pieces = self.b.shape
        table = (rounds * pieces, math.prod(self.shape))
        A = self._stacked() if is_sparse(self.A) else to_numpy(self.A).reshape(table)
        return Halfspaces(
            A, to_numpy(flat(self.b)).astype(np.float64), np.repeat(np.arange(rounds), pieces)
        )

    @classmethod
    def examples(cls) -> Sequence[Self]:
        A = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.5, -2.0], [3.0, 1.0]])
        rows = csr_array(A)
        return (
            cls(rows, [[0.0, 0.0, 0.0], [1.0, -0.5, 2.0]]),
            cls(rows, np.arange(18.0).reshape(3, 6) % 5),
            cls(A.reshape(2, 3, 2), [[0.0, 0.0, 0.0], [1.0, -0.5, 2.0]]),
            cls.one([[2.0]], [1.0]),
            cls(np.arange(24.0).reshape(3, 2, 2, 2) - 11.5, np.ones((3, 2))),
        )


# Capacities:  g_t(x) = max_i x_i - c_ti,  positive by as much as the fullest entry is over its
# capacity.
#
# A subgradient is e_i of the fullest entry i; among several the first. As a constraint over many
# rounds only the smallest capacity of each entry matters: x_i <= min_t c_ti.


# Up to so many rounds on a device entries are written one by one there.
_FEW = 16


@final
@dataclass(frozen=True, eq=False, repr=False)
class Capacity(LargestPiece):
    """The largest excess over a capacity, max_i x_i - c_ti.

    Parameters
    ----------
    c : array
        The capacity of every entry, (rounds, *shape of a point); also a frame.

    Examples
    --------
    >>> g = tw.functions.Capacity([[0.5, 1.0], [0.25, 0.5]])  # two rounds
    >>> g.values(np.array([0.5, 0.5]))
    array([0.  , 0.25])
    """

    by_round = ("c",)

    c: Annotated[Array, PerRound()]

    @classmethod
    def one(cls, c: Array) -> Self:
        """A single round with capacities c."""
        return cls._unchecked(c=one_round(c, "c of Capacity.one"))

    def pieces(self, x: Array) -> Array:
        """x_i - c_ti as (rounds, entries)."""
        return (rows(x) if x.ndim == self.c.ndim else flat(x)) - rows(self.c)

    def _rows(self, rounds: Int64s, limits: Int64s) -> Array:
        return like(limits[:, None] == np.arange(rows(self.c).shape[1]), self.c)

    def subgradient(self, x: Array, weights: Array) -> Array:
        c = rows(self.c)
        if type(c) is not np.ndarray and len(self) <= _FEW and is_torch(c):
            total = arrays.zeros((c.shape[1],), c)
            for t in range(len(self)):
                total[(flat(x) - c[t, :]).argmax()] += weights[t]
            return shaped(total, self.shape)
        total = np.bincount(self._fullest(x), to_numpy(weights), c.shape[1])
        return shaped(like(total, c), self.shape)

    def slopes(self, x: Array) -> Floats:
        return np.ones(len(self))

    def halfspaces(self) -> Halfspaces:
        from scipy.sparse import eye_array

        if not len(self):
            return self.epigraph()
        c = to_numpy(rows(self.c)).astype(np.float64, copy=False)
        return Halfspaces(eye_array(c.shape[1], format="csr"), c.min(axis=0), c.argmin(axis=0))

    def epigraph(self) -> Halfspaces:
        c = to_numpy(rows(self.c)).astype(np.float64, copy=False)
        rounds, n = c.shape
        ones = (np.ones(rounds * n), np.tile(np.arange(n), rounds), np.arange(rounds * n + 1))
        return Halfspaces(
            csr_array(ones, shape=(rounds * n, n)), c.reshape(-1), np.repeat(np.arange(rounds), n)
        )

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls([[0.5, 0.2, 1.0], [0.0, 0.0, 0.0], [-1.0, 3.0, 0.1]]),
            cls.one([0.7]),
            cls(np.arange(8.0).reshape(2, 2, 2) / 4 - 1),
        )
