"""The directions of an affine hull as a step needs them:  P = I - A' (A A')^-1 A,  A the normals of
aff(K), one a row.

`w -> P w` is the set's own `tangent`, which alone enters a certificate. Normals and columns of P
only help to find good answers: those of a description are taken when there are as many as the hull
has, else the part of random vectors that P removes spans them.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Floats, Int64s
from tidewolf.kernels.penalty import weighted_gram
from tidewolf.sets.base import Polyhedral

FEW_NORMALS = 16
"""Up to this many normals are kept dense and orthonormal: P = I - A'A."""
COLUMNS = 64
"""Columns of P are asked for up to this many entries; beyond, normals are cheaper."""
SEED = 271_828_182_845
"""Of the random vectors; not a number that vertices of a set are drawn with, which would lie in the
hull.
"""
RIDGE = 1e-13
"""Added to diagonals, in units of theirs: matrices are singular when entries depend on each
other.
"""


class AffineHull:
    """P on flattened points; columns once asked for are kept."""

    def __init__(self, K: HasLMO) -> None:
        self.K, self.n = K, math.prod(K.shape)
        self.normals_count = self.n - K.dimension
        self.whole, self.few = self.normals_count == 0, self.normals_count <= FEW_NORMALS
        self._place: Int64s = np.full(0 if self.few else self.n, -1)
        self._columns = np.zeros((0, self.n))

    def __call__(self, w: Floats) -> Floats:
        """P w."""
        return w if self.whole else to_numpy(self.K.tangent(w.reshape(self.K.shape))).reshape(-1)

    def among(self, S: Int64s) -> tuple[Floats, Floats]:
        """P_SS as (Q, nothing), or as (nothing, N) for I - N N'; S is short unless normals are
        few.
        """
        if self.few:
            return np.zeros((0, 0)), np.ascontiguousarray(self.normals[:, S].T)
        new = S[self._place[S] < 0]
        unit, fetched = np.zeros(self.n), np.empty((len(new), self.n))
        for row, i in zip(fetched, new, strict=True):
            unit[i] = 1.0
            row[:] = self(unit)
            unit[i] = 0.0
        self._place[new] = len(self._columns) + np.arange(len(new))
        self._columns = np.concatenate([self._columns, fetched])
        return np.ascontiguousarray(self._columns[self._place[S]][:, S]), np.zeros((len(S), 0))

    def solve(self, S: Int64s, r: Floats) -> Floats:
        """w with P_SS w = r, or something large where there is none."""
        from scipy.linalg.lapack import dposv

        if not self.few and len(S) <= COLUMNS:
            Q, _ = self.among(S)
            ridged, w = Q + RIDGE * np.eye(len(S)), np.zeros(len(S))
            for _ in range(2):
                w += dposv(ridged, r - Q @ w)[1]
            return w
        A, free, w = self.normals, np.ones(self.n), np.zeros(self.n)
        free[S], w[S] = 0.0, r
        if not self.whole:
            w += A.T @ dposv(self.gram(free), A @ w)[1]
        return w[S]

    def gram(self, weights: Floats) -> Floats:
        """A diag(weights) A', with a ridge."""
        A, k = self.normals, self.normals_count
        if self.few:
            gram: Floats = (A * weights) @ A.T
        else:
            gram = np.zeros((k, k))
            weighted_gram(A.indptr, A.indices, A.data, weights, gram)
        diagonal = gram[np.diag_indices(k)]
        gram[np.diag_indices(k)] += RIDGE * np.where(diagonal > 0.0, diagonal, 1.0)
        return gram

    @cached_property
    def normals(self) -> Any:
        """A: dense with orthonormal rows when they are few, else sparse by columns."""
        A = None if self.few else self._described()
        if A is not None:
            return A
        random = np.random.default_rng(SEED).standard_normal((self.normals_count, self.n))
        across = np.array([g - self(g) for g in random]).reshape(self.normals_count, self.n)
        A = np.linalg.qr(across.T)[0].T
        if self.few:
            return A
        from scipy.sparse import csc_array

        return csc_array(A)

    def _described(self) -> Any:
        """The equations of a description, or None where it does not name all normals."""
        from scipy.sparse import csc_array, eye_array, vstack

        if not isinstance(self.K, Polyhedral):
            return None
        told = self.K.description()
        if told.lift is not None and not _is_a_scale(told.lift, self.n):
            return None
        A = csc_array((0, self.n)) if told.A_eq is None else csc_array(told.A_eq)
        fixed = np.flatnonzero(told.lower == told.upper)
        if len(fixed):
            A = vstack([A, eye_array(self.n, format="csr")[fixed]], format="csc")
        return A if A.shape[0] == self.normals_count else None


def _is_a_scale(lift: Any, n: int) -> bool:
    from scipy.sparse import csr_array, eye_array

    sparse = csr_array(lift)
    return sparse.shape == (n, n) and bool(
        abs(sparse - sparse[0, 0] * eye_array(n, format="csr")).max() == 0.0
    )
