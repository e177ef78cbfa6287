"""Rows of matrices: plain, or compressed as SciPy has them, which are never made dense.

Rows of small programs are plain: SciPy's sparse arrays take longer to be made than a small program
to be solved.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidewolf.core.arrays import LEAST, MOST, as_array, power_of_two
from tidewolf.core.errors import WrongShape
from tidewolf.core.types import Floats, NDArray

SMALL = 20_000


def csr_array(content: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Compressed rows of SciPy, which is imported when the first are made."""
    from scipy.sparse import csr_array as made

    return made(content, shape, dtype)


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
    data = as_array(rows.data, what)
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
    from scipy.sparse import vstack

    return vstack([csr_array(part) for part in parts], format="csr")


def beside(A: Any, B: Any) -> Any:
    if not is_sparse(A) and not is_sparse(B):
        return np.hstack([A, B])
    from scipy.sparse import hstack

    return hstack([csr_array(A), csr_array(B)], format="csr")


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
    return np.asarray(power_of_two(largest_of_rows(A)))


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


def sparse_row_norms(A: Any) -> Floats:
    """The norm of each row, without overflow or underflow on the way."""
    row, sizes = row_of_each(A), np.zeros(A.shape[0])
    np.maximum.at(sizes, row, np.abs(A.data))
    units = np.where((sizes > 0.0) & ~((sizes >= LEAST) & (sizes <= MOST)), sizes, 1.0)
    return np.asarray(units * np.sqrt(np.bincount(row, (A.data / units[row]) ** 2, A.shape[0])))


def same_rows(a: Any, b: Any) -> bool:
    if a is b or a is None or b is None:
        return a is b
    if is_sparse(a) != is_sparse(b) or (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    parts = (nonzeros(a), nonzeros(b)) if is_sparse(a) else ((a,), (b,))
    return all(map(np.array_equal, *parts))
