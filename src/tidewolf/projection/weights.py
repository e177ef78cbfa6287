"""Corrective steps in weight space: x = sum_i w_i a_i is brought nearer to y without asking the
oracle.

    slope_i = <a_i, x - y>;
    move weight from the atom j of largest slope among those with weight to the atom i of smallest:

    step = min(w_j, (slope_j - slope_i)/|a_i - a_j|^2),      slope += step (gram_i - gram_j)

Idle atoms take part where their slope is below the average <x, x - y>. Each step lowers |x - y|.
Floats under `DROP` become 0 and the rest are rescaled to sum to 1, so nothing drifts; x is rebuilt
from them.
`correct` works on any table; on sparse ones a single compiled pass does the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import flat, inner
from tidewolf.core.jit import kernel
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.core.vertices import Atoms, SparseAtoms, sparse_combine, sparse_inner

DROP = 1e-13
TIE = 1e-6
"""Slopes nearer than this share of `stop` tie and go to the earlier atom: each step leaves equal
slopes, and rounding shall not choose.
"""
_DOUBLE = np.dtype(np.float64)


class Corrected(NamedTuple):
    """New weights, their point, and its squared distance from y."""

    weights: Floats
    x: Array
    distance2: float


def correct(atoms: Atoms, weights: Floats, y: Array, steps: int, stop: float) -> Corrected:
    """Up to `steps` pairwise steps towards y, until the pairwise gap is at most `stop`."""
    if type(atoms) is SparseAtoms and type(y) is np.ndarray and y.dtype is _DOUBLE:
        weights, x = weights.copy(), np.empty(y.shape)
        distance2 = sparse_correct(
            atoms.starts,
            atoms.indices,
            atoms.values,
            atoms.gram,
            weights,
            flat(y),
            steps,
            stop,
            flat(x),
        )
        return Corrected(weights, x, distance2)
    return correct_any(atoms, weights, y, steps, stop)


def correct_any(atoms: Atoms, weights: Floats, y: Array, steps: int, stop: float) -> Corrected:
    """`correct` through the table's own products."""
    slopes = atoms.inner(atoms.combine(weights, y) - y, len(weights))
    weights = weights.copy()
    pairwise_steps(atoms.gram, weights, slopes, steps, stop)
    rescale(weights)
    x = atoms.combine(weights, y)
    r = x - y
    return Corrected(weights, x, inner(r, r))


@kernel
def pairwise_steps(gram, weights, slopes, steps, stop):  # type: ignore[no-untyped-def]
    """The steps, in place, among atoms with weight and idle ones that x would gain by: those whose
    slope is below its average.
    """
    average = 0.0
    for q in range(len(weights)):
        average += weights[q] * slopes[q]
    chosen, count = np.empty(len(weights), dtype=np.int64), 0
    for q in range(len(weights)):
        chosen[count] = q
        count += weights[q] > 0.0 or slopes[q] < average
    margin = TIE * stop
    for _ in range(steps):
        i, j, least, most = 0, 0, np.inf, -np.inf
        for n in range(count):  # choices without branches: which atom wins cannot be predicted
            q = chosen[n]
            slope = slopes[q]
            lower = slope < least - margin
            i = q if lower else i
            least = slope if lower else least
            slope = slope if weights[q] > 0.0 else -np.inf
            higher = slope > most + margin
            j = q if higher else j
            most = slope if higher else most
        gap = most - least
        if gap <= stop:
            return
        length2, step = gram[i, i] - 2.0 * gram[i, j] + gram[j, j], weights[j]
        if gap < step * length2:
            step = gap / length2
        weights[j] = weights[j] - step
        weights[i] += step
        for n in range(count):
            q = chosen[n]
            slopes[q] += step * (gram[i, q] - gram[j, q])


@kernel
def rescale(weights):  # type: ignore[no-untyped-def]
    """Tiny weights to 0, the rest to sum 1, in place; returns how many these are."""
    total, used = 0.0, 0
    for q in range(len(weights)):
        if weights[q] > DROP:
            total += weights[q]
            used += 1
        else:
            weights[q] = 0.0
    for q in range(len(weights)):
        weights[q] /= total
    return used


@kernel
def sparse_correct(  # type: ignore[no-untyped-def]
    starts, indices, values, gram, weights, y, steps, stop, x
):
    """All of `correct_any` in one pass over a sparse table, weights in place; returns |x - y|^2."""
    x[:] = 0.0
    sparse_combine(starts, indices, values, weights, x)
    return sparse_correct_from(
        starts, indices, values, gram, weights, x, y, np.empty(len(x)), steps, stop
    )[0]


@kernel
def sparse_correct_from(  # type: ignore[no-untyped-def]
    starts, indices, values, gram, weights, x, y, r, steps, stop
):
    """The same from x, the point of the weights, in place; r becomes x - y.

    Returns |x - y|^2 and how many atoms are in use.
    """
    for e in range(len(x)):
        r[e] = x[e] - y[e]
    slopes = np.empty(len(weights))
    sparse_inner(starts, indices, values, r, slopes)
    pairwise_steps(gram, weights, slopes, steps, stop)
    used = rescale(weights)
    x[:] = 0.0
    sparse_combine(starts, indices, values, weights, x)
    distance2 = 0.0
    for e in range(len(x)):
        r[e] = x[e] - y[e]
        distance2 += r[e] * r[e]
    return distance2, used


def caratheodory(gram: NDArray, weights: Floats) -> Floats:
    """Weights of the same point on atoms that are affinely independent, 0 for the others; all given
    weights are positive.

    A null vector of gram + 1 is an affine dependence of the atoms; moving the weights along it
    until one vanishes keeps the point.
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
    rescale(weights)
    return weights
