"""Corrective steps in weight space: x = sum_i w_i a_i is brought nearer to y without asking the
oracle.

    slope_i = <a_i, x - y>;
    move weight from the atom j of largest slope among those with weight to the atom i of smallest:

    step = min(w_j, (slope_j - slope_i)/|a_i - a_j|^2),      slope += step (gram_i - gram_j)

Idle atoms take part where their slope is below the average <x, x - y>. Each step lowers |x - y|.
Weights up to `DROP` become 0 and the rest are rescaled to sum to 1, so nothing drifts; x is rebuilt
from them. `correct` works on any table; on sparse ones a single compiled pass does the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import flat, inner
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.core.vertices import Atoms, SparseAtoms
from tidewolf.kernels.active_set import pairwise_steps, rescale, sparse_correct

_DOUBLE = np.dtype(np.float64)
CORRECTIVE_STEPS = 30
"""Pairwise steps at most, each time."""
CORRECTIVE_GAP = 0.1
"""Corrective steps end when the pairwise gap is below this share of the tolerance."""


class Corrected(NamedTuple):
    """New weights, their point, and its squared distance from y."""

    weights: Floats
    x: Array
    distance2: float


def correct(atoms: Atoms, weights: Floats, y: Array, steps: int, stop: float) -> Corrected:
    """Up to `steps` pairwise steps towards y, until the pairwise gap is at most `stop`."""
    if type(atoms) is SparseAtoms and type(y) is np.ndarray and y.dtype == _DOUBLE:
        weights, x = weights.copy(), np.empty(y.shape)
        rows = (atoms.starts, atoms.indices, atoms.values)
        distance2 = sparse_correct(rows, atoms.gram, weights, flat(y), steps, stop, flat(x))
        return Corrected(weights, x, distance2)
    return correct_any(atoms, weights, y, steps, stop)


def correct_any(atoms: Atoms, weights: Floats, y: Array, steps: int, stop: float) -> Corrected:
    """`correct` through the table's own products."""
    slopes = atoms.inner(atoms.combine(weights, y) - y, len(weights))
    weights = weights.copy()
    chosen = np.empty(len(weights), dtype=np.int64)
    pairwise_steps(atoms.gram, weights, slopes, chosen, steps, stop)
    rescale(weights)
    x = atoms.combine(weights, y)
    r = x - y
    return Corrected(weights, x, inner(r, r))


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
