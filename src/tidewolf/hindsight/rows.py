"""Rows of small programs as plain matrices, those of large ones as compressed rows: SciPy's sparse
arrays take longer to be made than a small program to be solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tidewolf.core.arrays import power_of_two
from tidewolf.core.sparse import is_sparse
from tidewolf.core.types import Floats, NDArray

SMALL = 20_000
"""Matrices with so many entries, zeros included, are plain at most."""


def compact(A: Any) -> Any:
    """A plain matrix of floats where it is small, else compressed rows."""
    if A.shape[0] * A.shape[1] > SMALL:
        from scipy.sparse import csr_array

        return csr_array(A, dtype=np.float64)
    return np.asarray(A.toarray() if is_sparse(A) else A, dtype=np.float64)


def largest(A: Any) -> float:
    """The largest size of an entry."""
    return 0.0 if 0 in A.shape else float(abs(A).max())


def row_sizes(A: Any) -> Floats:
    """The power of two that brings each row to size 1; 1 for a row of zeros."""
    if 0 in A.shape:
        return np.ones(A.shape[0])
    sizes = abs(A).max(axis=1)
    return np.asarray(power_of_two(sizes.toarray().reshape(-1) if is_sparse(A) else sizes))


def rows_times(A: Any, factors: Floats) -> Any:
    """Each row times a number."""
    return A.multiply(factors[:, None]).tocsr() if is_sparse(A) else A * factors[:, None]


def beside(A: Any, B: Any) -> Any:
    """Two matrices side by side."""
    if not is_sparse(A) and not is_sparse(B):
        return np.hstack([A, B])
    from scipy.sparse import csr_array, hstack

    return hstack([csr_array(A), csr_array(B)], format="csr")


def below(parts: Sequence[Any]) -> Any:
    """Matrices one below the other."""
    if len(parts) == 1:
        return parts[0]
    if not any(map(is_sparse, parts)):
        return np.vstack(parts)
    from scipy.sparse import csr_array, vstack

    return vstack([csr_array(part) for part in parts], format="csr")


def nonzeros(A: Any) -> tuple[NDArray, NDArray, Floats]:
    """Where each row starts, the places of its entries, and the entries."""
    if is_sparse(A):
        return A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data
    rows, places = np.nonzero(A)
    starts = np.zeros(len(A) + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=len(A)), out=starts[1:])
    return starts, places.astype(np.int32), A[rows, places]


def same_rows(a: Any, b: Any) -> bool:
    """Whether two matrices are the same, entry for entry as they are stored."""
    if a is b or a is None or b is None:
        return a is b
    if is_sparse(a) != is_sparse(b) or a.shape != b.shape:
        return False
    parts = (nonzeros(a), nonzeros(b)) if is_sparse(a) else ((a,), (b,))
    return all(map(np.array_equal, *parts))
