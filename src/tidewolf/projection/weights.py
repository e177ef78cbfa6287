"""Corrective steps in weight space: x = sum_i w_i a_i is brought nearer to y without asking the oracle.

    slope_i = <a_i, x - y>;   move weight from the active atom j of largest slope to the atom i of smallest:

    step = min(w_j, (slope_j - slope_i)/|a_i - a_j|^2),      slope += step (gram_i - gram_j)

Each step lowers |x - y|. Weights under `DROP` are dropped and the rest rescaled to sum to 1, so nothing drifts; x is rebuilt from them.
`correct` works on any table; on sparse ones a single compiled pass does the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import Array, flat, inner
from tidewolf.core.kernels import kernel
from tidewolf.core.vertices import Atoms, SparseAtoms, sparse_combine, sparse_inner

DROP = 1e-13
TIE = 1e-6
"""Slopes nearer than this share of `stop` tie and go to the earlier atom: each step leaves equal slopes, and rounding shall not choose."""
_DOUBLE = np.dtype(np.float64)

Weights = np.ndarray[Any, np.dtype[np.float64]]
Rows = np.ndarray[Any, np.dtype[np.int64]]


class Corrected(NamedTuple):
    """Rows and weights worth keeping, their point, and its squared distance from y."""

    rows: Rows
    weights: Weights
    x: Array
    distance2: float


def correct(atoms: Atoms, rows: Rows, weights: Weights, y: Array, steps: int, stop: float) -> Corrected:
    """Up to `steps` pairwise steps towards y, until the pairwise gap is at most `stop`."""
    if type(atoms) is SparseAtoms and type(y) is np.ndarray and y.dtype is _DOUBLE:
        return _correct_sparse(atoms, rows, weights, y, steps, stop)
    return correct_any(atoms, rows, weights, y, steps, stop)


def correct_any(atoms: Atoms, rows: Rows, weights: Weights, y: Array, steps: int, stop: float) -> Corrected:
    """`correct` through the table's own products."""
    slopes = atoms.inner(rows, atoms.combine(rows, weights, y) - y)
    weights = weights.copy()
    pairwise_steps(atoms.gram, rows, weights, slopes, steps, stop)
    kept = weights > DROP
    rows, weights = rows[kept], weights[kept] / weights[kept].sum()
    x = atoms.combine(rows, weights, y)
    r = x - y
    return Corrected(rows, weights, x, inner(r, r))


def _correct_sparse(atoms: SparseAtoms, rows: Rows, weights: Weights, y: Array, steps: int, stop: float) -> Corrected:
    rows, weights, x = rows.copy(), weights.copy(), np.empty(y.shape)
    kept, distance2 = sparse_correct.compiled(
        atoms.starts, atoms.indices, atoms.values, atoms.gram, rows, weights, flat(y), steps, stop, DROP, flat(x)
    )
    if kept < len(rows):
        rows, weights = rows[:kept].copy(), weights[:kept].copy()
    return Corrected(rows, weights, x, distance2)


@kernel
def pairwise_steps(gram, rows, weights, slopes, steps, stop):  # type: ignore[no-untyped-def]
    """The steps, in place."""
    margin = TIE * stop
    for _ in range(steps):
        i, j = 0, -1
        for q in range(len(rows)):
            if slopes[q] < slopes[i] - margin:
                i = q
            if weights[q] > 0.0 and (j < 0 or slopes[q] > slopes[j] + margin):
                j = q
        gap = slopes[j] - slopes[i]
        if gap <= stop:
            return
        a, b, step = rows[i], rows[j], weights[j]
        length2 = gram[a, a] - 2.0 * gram[a, b] + gram[b, b]
        if gap < step * length2:
            step = gap / length2
        weights[j] = weights[j] - step
        weights[i] += step
        for q in range(len(rows)):
            slopes[q] += step * (gram[a, rows[q]] - gram[b, rows[q]])


@kernel
def sparse_correct(starts, indices, values, gram, rows, weights, y, steps, stop, drop, x):  # type: ignore[no-untyped-def]
    """All of `correct_any` in one pass over a sparse table; returns how many atoms are kept and |x - y|^2."""
    x[:] = -y
    sparse_combine(starts, indices, values, rows, weights, x)
    slopes = np.empty(len(rows))
    sparse_inner(starts, indices, values, rows, x, slopes)
    pairwise_steps(gram, rows, weights, slopes, steps, stop)
    kept, total = 0, 0.0
    for q in range(len(rows)):
        if weights[q] > drop:
            rows[kept], weights[kept] = rows[q], weights[q]
            total += weights[q]
            kept += 1
    weights[:kept] /= total
    x[:] = 0.0
    sparse_combine(starts, indices, values, rows[:kept], weights[:kept], x)
    distance2 = 0.0
    for e in range(len(x)):
        distance2 += (x[e] - y[e]) ** 2
    return kept, distance2


def caratheodory(gram: np.ndarray[Any, Any], weights: Weights) -> tuple[Rows, Weights]:
    """Atoms (by number) and weights of the same point with no affinely dependent atoms left.

    A null vector of gram + 1 is an affine dependence of the atoms; moving the weights along it until one vanishes keeps the point.
    """
    scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    values, vectors = np.linalg.eigh(gram / scale + 1.0)
    dependences = vectors[:, values <= 1e-12 * max(1.0, float(values[-1]))]
    weights = weights.copy()
    alive = np.ones(len(weights), dtype=bool)
    while dependences.shape[1]:
        c, dependences = dependences[:, 0], dependences[:, 1:]
        falling = np.flatnonzero(alive & (c > 1e-9))
        if len(falling) == 0:
            continue
        first = falling[np.argmin(weights[falling] / c[falling])]
        weights = np.maximum(weights - (weights[first] / c[first]) * c, 0.0)
        weights[first], alive[first] = 0.0, False
        dependences = dependences - np.outer(c, dependences[first] / c[first])
    kept = np.flatnonzero(weights > DROP)
    return kept, weights[kept] / weights[kept].sum()
