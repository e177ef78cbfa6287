"""Rows of matrices: plain, or compressed as SciPy has them, which are never made dense.

Rows of small programs are plain: SciPy's sparse arrays take longer to be made than a small program
to be solved.
"""

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias, final

import numpy as np

from tidewolf.core import arguments, arrays
from tidewolf.core.errors import WrongShape, WrongType
from tidewolf.core.lazy import sp
from tidewolf.core.types import Array, Floats, NDArray, Shape

SMALL = 20_000


def csr_array(content: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Compressed rows of SciPy, which is imported when the first are made."""
    return sp.csr_array(content, shape, dtype)


def is_sparse(x: object) -> bool:
    """Whether x is a sparse array of SciPy; before SciPy's module is there, nothing is."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(x))


def as_sparse(x: Any, what: str) -> Any:
    """A sparse matrix as compressed rows of finite floats, each entry once and in order; one that
    is this already is taken as it is, without a copy.
    """
    if x.ndim != 2:
        raise WrongShape(f"{what} is sparse and has {x.ndim} axis; it needs two, rows first.")
    rows = x if type(x).__name__ == "csr_array" else csr_array(x)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    data = arrays.as_array(rows.data, what)
    if data is not rows.data:
        rows = csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    return rows


def sparse_of(data: Any, indices: Any, indptr: Any, shape: Sequence[int]) -> Any:
    """Compressed rows of these parts, which another hand may have written; a ValueError says what
    is wrong with them.
    """
    parts = (data, indices, indptr)
    if not all(type(part) is np.ndarray and part.ndim == 1 for part in parts):
        raise ValueError("a sparse array is made of three vectors")
    if indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        raise ValueError("the places of a sparse array are whole numbers")
    A = csr_array(parts, shape=tuple(int(side) for side in shape))
    A.check_format(full_check=True)
    if not A.has_canonical_format:
        raise ValueError("a sparse array has an entry twice, or out of order")
    return A


def cut_rows(A: Any, start: int, stop: int) -> Any:
    """The rows from start to stop; at most their own numbers are copied."""
    first, last = A.indptr[start], A.indptr[stop]
    parts = (A.data[first:last], A.indices[first:last], A.indptr[start : stop + 1] - first)
    return csr_array(parts, shape=(stop - start, A.shape[1]))


def stack_rows(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if not any(map(is_sparse, parts)):
        return np.vstack(parts)
    return sp.vstack([csr_array(part) for part in parts], format="csr")


def beside(A: Any, B: Any) -> Any:
    if not is_sparse(A) and not is_sparse(B):
        return np.hstack([A, B])
    return sp.hstack([csr_array(A), csr_array(B)], format="csr")


def compact(A: Any) -> Any:
    if A.shape[0] * A.shape[1] > SMALL:
        return csr_array(A, dtype=np.float64)
    return np.asarray(A.toarray() if is_sparse(A) else A, dtype=np.float64)


def largest(A: Any) -> float:
    return 0.0 if 0 in A.shape else float(abs(A).max())


def largest_of_rows(A: Any) -> Floats:
    if 0 in A.shape:
        return np.zeros(A.shape[0])
    sizes = abs(A).max(axis=1)
    return np.asarray(sizes.toarray().reshape(-1) if is_sparse(A) else sizes)


def row_sizes(A: Any) -> Floats:
    """The power of two that brings each row to size 1; 1 for a row of zeros."""
    return np.asarray(arrays.power_of_two(largest_of_rows(A)))


def rows_times(A: Any, factors: Floats) -> Any:
    return A.multiply(factors[:, None]).tocsr() if is_sparse(A) else A * factors[:, None]


def nonzeros(A: Any) -> tuple[NDArray, NDArray, Floats]:
    if is_sparse(A):
        return A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data
    rows, places = np.nonzero(A)
    starts = np.zeros(len(A) + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=len(A)), out=starts[1:])
    return starts, places.astype(np.int32), A[rows, places]


def row_of_each(A: Any) -> NDArray:
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))


def row_norms(A: Any) -> Floats:
    """The norm of each row, without overflow or underflow on the way."""
    if is_sparse(A):
        row, sizes = row_of_each(A), np.zeros(A.shape[0])
        np.maximum.at(sizes, row, np.abs(A.data))
        units = np.where(
            (sizes > 0.0) & ~((sizes >= arrays.LEAST) & (sizes <= arrays.MOST)), sizes, 1.0
        )
        return np.asarray(units * np.sqrt(np.bincount(row, (A.data / units[row]) ** 2, A.shape[0])))
    with np.errstate(over="ignore", invalid="ignore"):
        norms: Floats = np.sqrt(arrays.to_numpy(arrays.namespace(A).vecdot(A, A)))
    least, most = arrays.square_range(A)
    odd = np.flatnonzero(~((norms >= least) & (norms <= most)))
    if len(odd):  # 0, or so small or large that their squares are not
        some = arrays.to_numpy(A)[odd]
        sizes = np.abs(some).max(axis=1, initial=0.0)
        some = some / np.where((sizes > 0.0) & (sizes < np.inf), sizes, 1.0)[:, None]
        norms[odd] = sizes * np.sqrt(np.vecdot(some, some))
    return norms


def same_rows(a: Any, b: Any) -> bool:
    if a is b or a is None or b is None:
        return a is b
    if is_sparse(a) != is_sparse(b) or (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    parts = (nonzeros(a), nonzeros(b)) if is_sparse(a) else ((a,), (b,))
    return all(map(np.array_equal, *parts))


# --- Matrices known through their products --------------------------------------------------------
#
# Matrices known through their products:  D = S + L R',  S sparse, L and R thin.
#
# A gradient with few entries (ratings that were seen), alone or beside a few outer products, asks
# for a leading singular or eigenvector: that takes D v and D'u alone, at the cost of the nonzeros
# of S and of the entries of L and R. The sets of matrices take such a direction where they take an
# array.

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
            raise WrongType(f"Expected {due}, not {arguments.shown((sparse, left, right))}.")
        (m, n), S = sparse.shape, sparse.tocsr()
        data = arrays.as_array(S.data, "The sparse part of the direction")
        L, R = np.zeros((m, 0), data.dtype), np.zeros((n, 0), data.dtype)
        if left is not None:
            what = "A factor of the low-rank part of the direction"
            L, R = arrays.as_array(left, what), arrays.as_array(right, what)
        if L.ndim != 2 or R.ndim != 2 or L.shape[0] != m or R.shape != (n, L.shape[1]):
            due, found = (f"({m}, r) and ({n}, r)", f"{L.shape} and {R.shape}")
            raise WrongShape(f"left and right must have shapes {due}, not {found}.")
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

    def __truediv__(self, size: float) -> "SparsePlusLowRank":
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
        raise WrongShape(f"The direction must have shape {shape}, not {direction.shape}.")
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
    return max(arrays.read([xp.max(D), -xp.min(D)]))


def frobenius_norm(D: Matrix) -> float:
    """The Frobenius norm, or what it is at most from those of the parts."""
    if isinstance(D, SparsePlusLowRank):
        return arrays.norm(D.sparse.data) + arrays.norm(D.left) * arrays.norm(D.right)
    return arrays.norm(D)


def _loaded_blas() -> Any:
    import scipy.linalg  # noqa: F401  it brings its own BLAS, and only what is loaded is limited
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_blas = cache(_loaded_blas)


def one_thread(anew: bool = False) -> Any:
    """One thread for linear algebra: from now on, or within the context, if it is entered; `anew`:
    also of libraries that were loaded since the first call.
    """
    return (_loaded_blas() if anew else _blas()).limit(limits=1)
