"""Sparse coefficients: matrices of SciPy as compressed rows, checked on the way in, never made
dense.

What is asked of them is asked by rows: some rows, their products with points, their norms.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidewolf.core.arrays import LEAST, MOST, as_array
from tidewolf.core.errors import WrongShape
from tidewolf.core.types import Floats, NDArray


def is_sparse(x: object) -> bool:
    """Whether x is a sparse array of SciPy; before SciPy's module is there, nothing is."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(x))


def as_sparse(x: Any, what: str) -> Any:
    """A sparse matrix as compressed rows of finite floats, each entry once and in order; one that
    is this already is taken as it is, without a copy.
    """
    from scipy.sparse import csr_array

    if x.ndim != 2:
        raise WrongShape(f"{what} is sparse and has {x.ndim} axis; it needs two, rows first.")
    rows = x if type(x) is csr_array else csr_array(x)
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
    from scipy.sparse import csr_array

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
    from scipy.sparse import csr_array

    first, last = A.indptr[start], A.indptr[stop]
    indptr = A.indptr[start : stop + 1] - first
    parts = (A.data[first:last], A.indices[first:last], indptr)
    return csr_array(parts, shape=(stop - start, A.shape[1]))


def stack_rows(parts: Sequence[Any]) -> Any:
    """Matrices one below the other."""
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(parts, format="csr"))


def row_of_each(A: Any) -> NDArray:
    """The row that each stored number is in."""
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))


def sparse_row_norms(A: Any) -> Floats:
    """The norm of each row, without overflow or underflow on the way."""
    row, sizes = row_of_each(A), np.zeros(A.shape[0])
    np.maximum.at(sizes, row, np.abs(A.data))
    odd = (sizes > 0.0) & ~((sizes >= LEAST) & (sizes <= MOST))
    units = np.where(odd, sizes, 1.0)
    return np.asarray(units * np.sqrt(np.bincount(row, (A.data / units[row]) ** 2, A.shape[0])))


def same_sparse(a: Any, b: Any) -> bool:
    """Whether two matrices of compressed rows hold the same numbers at the same places."""
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.data, b.data)
    )
