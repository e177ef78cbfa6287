"""Matrices known through their products:  D = S + L R',  S sparse, L and R thin.

A gradient with few entries (ratings that were seen), alone or beside a few outer products, asks for
a leading singular or eigenvector: that takes D v and D'u alone, at the cost of the nonzeros of S
and of the entries of L and R. The sets of matrices take such a direction where they take an array.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias, final

import numpy as np

from tidewolf.core import arguments, arrays, errors
from tidewolf.core.sparse import is_sparse
from tidewolf.core.types import Array, NDArray, Shape

# An array, or a `SparsePlusLowRank`.
Matrix: TypeAlias = Any


@final
class SparsePlusLowRank:
    """The matrix S + L R' for a direction, known through its products.

    Parameters
    ----------
    sparse : matrix of scipy.sparse
        S, of shape (m, n).
    left : array, optional
        L, of shape (m, r). None: there is no low-rank part.
    right : array, optional
        R, of shape (n, r); given if and only if `left` is.

    Raises
    ------
    WrongType
        Where `sparse` is no sparse matrix, or one of `left` and `right` is missing.
    WrongShape
        If the shapes do not fit together.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> D = tw.sets.SparsePlusLowRank(csr_array([[0.0, -2.0], [0.0, 0.0]]))
    >>> tw.sets.NuclearBall((2, 2)).lmo(D) + 0.0
    array([[0., 1.],
           [0., 0.]])
    """

    __array_ufunc__ = None  # so that `array @ D` comes here

    def __init__(self, sparse: Any, left: Array | None = None, right: Array | None = None) -> None:
        if not is_sparse(sparse) or sparse.ndim != 2 or (left is None) != (right is None):
            due = "a sparse matrix of SciPy, and left and right or neither"
            raise errors.WrongType(f"Expected {due}, not {arguments.shown((sparse, left, right))}.")
        (m, n), S = sparse.shape, sparse.tocsr()
        data = arrays.as_array(S.data, "The sparse part of the direction")
        L, R = np.zeros((m, 0), data.dtype), np.zeros((n, 0), data.dtype)
        if left is not None:
            what = "A factor of the low-rank part of the direction"
            L, R = arrays.as_array(left, what), arrays.as_array(right, what)
        if L.ndim != 2 or R.ndim != 2 or L.shape[0] != m or R.shape != (n, L.shape[1]):
            due, found = (f"({m}, r) and ({n}, r)", f"{L.shape} and {R.shape}")
            raise errors.WrongShape(f"left and right must have shapes {due}, not {found}.")
        self.shape: Shape = (m, n)
        self.dtype = np.result_type(data, L, R)
        self.sparse: Any = S.astype(self.dtype, copy=False)
        self.left, self.right = L.astype(self.dtype, copy=False), R.astype(self.dtype, copy=False)
        self._transposed = self.sparse.T

    def __matmul__(self, v: NDArray) -> NDArray:
        product: NDArray = self.sparse @ v
        return product + self.left @ (v @ self.right) if self.left.size else product

    def __rmatmul__(self, u: NDArray) -> NDArray:
        product: NDArray = (self._transposed @ u.T).T
        return product + (u @ self.left) @ self.right.T if self.left.size else product

    def __truediv__(self, size: float) -> SparsePlusLowRank:
        return SparsePlusLowRank(self.sparse / size, self.left / size, self.right)

    def toarray(self) -> NDArray:
        """As a dense array."""
        return np.asarray(self.sparse.toarray() + self.left @ self.right.T)


def as_matrix(direction: Any, shape: Shape) -> Matrix:
    """A direction of one of the kinds that sets of matrices take; an array is taken as it is."""
    if arrays.is_array(direction):
        return arrays.as_direction(direction, shape)
    if is_sparse(direction):
        direction = SparsePlusLowRank(direction)
    if not isinstance(direction, SparsePlusLowRank):
        return arrays.as_point(direction, shape, "The direction")
    if direction.shape != shape:
        raise errors.WrongShape(f"The direction must have shape {shape}, not {direction.shape}.")
    return direction


def as_dense(D: Matrix) -> Array:
    return D.toarray() if isinstance(D, SparsePlusLowRank) else D


def example_array(D: Matrix) -> Array:
    return np.zeros(0, D.dtype) if isinstance(D, SparsePlusLowRank) else D


def largest_entry(D: Matrix) -> float:
    if isinstance(D, SparsePlusLowRank):
        tops = [np.abs(part).max(axis=0, initial=0.0) for part in (D.sparse.data, D.left, D.right)]
        return float(tops[0] + tops[1] @ tops[2])
    xp = arrays.namespace(D)
    return max(float(xp.max(D)), -float(xp.min(D)))


def frobenius_norm(D: Matrix) -> float:
    """The Frobenius norm, or what it is at most from those of the parts."""
    if isinstance(D, SparsePlusLowRank):
        return arrays.norm(D.sparse.data) + arrays.norm(D.left) * arrays.norm(D.right)
    return arrays.norm(D)


@cache
def _blas() -> Any:
    import scipy.linalg  # noqa: F401  it brings its own BLAS, and only what is loaded is limited
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> Any:
    """One thread for linear algebra: from now on, or within the context, if it is entered."""
    return _blas().limit(limits=1)
