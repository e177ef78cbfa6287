"""Symmetric matrices that are asked for products alone, made of a direction D:

    SymmetricPart   -(D + D') / (2 size)
    Gram            D'D / unit^2,  or D D' / unit^2 where D has fewer rows than columns
    Deflated        P A P,  P the projection off some orthonormal rows v_i
    Lowered         A - sum_i drop_i v_i v_i'

A direction that is symmetric needs one product with an array where others need two; whether it is
costs as much as some eight, so that is looked at after `_FEW`. Making the symmetric part costs as
much as many, so that is put off until it pays. A direction of extreme size is divided by that
first, so that products neither overflow nor vanish.
"""

from __future__ import annotations

import math
import sys
from typing import final

import numpy as np

from tidewolf.core.arrays import is_torch, namespace
from tidewolf.core.matrices import Matrix, SparsePlusLowRank, as_dense, frobenius_norm
from tidewolf.core.types import Array, NDArray

_FEW, _MANY, _MANY_HERE = 3, 12, 32
"""Products before the symmetric part is made on a device, where that is quicker beside a product,
and here.
"""
_TILE = 256
_EXTREME = 1e15


@final
class SymmetricPart:
    """-(D + D') / (2 size), `size` that of the largest entry of D; its largest eigenvalue belongs
    to the smallest of D.
    """

    def __init__(self, D: Matrix, size: float) -> None:
        self.D, unit = (D / size, 1.0) if _is_extreme(size) else (D, size)
        self._twice, self.n = -2.0 * unit, int(D.shape[0])
        self._products = 0
        self._made: Array = None
        self._half: float | None = None
        """-size, where D is symmetric as it is"""

    def __matmul__(self, v: Array) -> Array:
        self._products += 1
        if self._products > _FEW and not isinstance(self.D, SparsePlusLowRank):
            self._look()
        if self._half is not None:
            return (self.D @ v) / self._half
        if self._made is not None:
            return self._made @ v
        if is_torch(v):  # in two passes
            part = 1.0 / self._twice
            return (self.D @ v).addmv_(self.D.T, v, beta=part, alpha=part)
        return (self.D @ v + v @ self.D) / self._twice

    def _look(self) -> None:
        """Whether there is a quicker way from here on."""
        here = type(self.D) is np.ndarray
        if here and self._products == _FEW + 1 and is_symmetric(self.D):
            self._half = 0.5 * self._twice
        if self._half is None and self._products == (_MANY_HERE if here else _MANY):
            self._made = self.dense()

    def dense(self) -> Array:
        """As an array."""
        D = as_dense(self.D) / self._twice
        return D + D.T


def is_symmetric(D: NDArray) -> bool:
    """Whether D = D' to the last bit; tile by tile, since columns are far apart."""
    n = len(D)
    if not np.array_equal(D[0], D[:, 0]):
        return False
    corners = range(0, n, _TILE)
    return all(
        np.array_equal(D[i : i + _TILE, j : j + _TILE], D[j : j + _TILE, i : i + _TILE].T)
        for i in corners
        for j in corners
        if j >= i
    )


@final
class Gram:
    """D'D / unit^2 of trace n (or less, for a D known by its parts); D D' / unit^2 where D has
    fewer rows: n x n either way.
    """

    def __init__(self, D: Matrix, size: float) -> None:
        self.D, scale = (D / size, size) if _is_extreme(size) else (D, 1.0)
        self.tall, self.n = D.shape[0] >= D.shape[1], int(min(D.shape))
        self._unit = frobenius_norm(self.D) / math.sqrt(self.n)
        self.unit = scale * self._unit

    def across(self, v: Array) -> Array:
        """D v / unit, or D'v / unit: from the shorter side to the longer."""
        return (self.D @ v if self.tall else v @ self.D) / self._unit

    def __matmul__(self, v: Array) -> Array:
        u = self.across(v)
        return (u @ self.D if self.tall else self.D @ u) / self._unit

    def dense(self) -> Array:
        """As an array; in float64, since squares take twice the digits."""
        D = as_dense(self.D)
        xp = namespace(D)
        D = xp.astype(D, xp.float64, copy=False) / self._unit
        return D.T @ D if self.tall else D @ D.T

    @property
    def rounding(self) -> float:
        """What the largest eigenvalue of `dense` is off by at most, by rounding."""
        return float(max(self.D.shape)) * self.n * sys.float_info.epsilon


@final
class Deflated:
    """P A P with P = I - V'V for orthonormal rows V."""

    def __init__(self, A: SymmetricPart, V: Array) -> None:
        self.A, self.V = A, V

    def off(self, v: Array) -> Array:
        """P v."""
        return v - (self.V @ v) @ self.V

    def __matmul__(self, v: Array) -> Array:
        return self.off(self.A @ v)


@final
class Lowered:
    """A - sum_i drop_i v_i v_i' for rows v_i of V."""

    def __init__(self, A: SymmetricPart, V: Array, drop: Array) -> None:
        self.A, self.V, self.drop = A, V, drop

    def __matmul__(self, v: Array) -> Array:
        return self.A @ v - (self.drop * (self.V @ v)) @ self.V

    def dense(self) -> Array:
        """As an array."""
        return self.A.dense() - (self.V.T * self.drop) @ self.V


def _is_extreme(size: float) -> bool:
    return not 1.0 / _EXTREME < size < _EXTREME
