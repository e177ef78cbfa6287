"""Corrective steps in weight space: x = sum_i w_i a_i is brought nearer to y without asking the
oracle.

    slope_i = <a_i, x - y>;
    move weight from the atom j of largest slope among those with weight to the atom i of smallest:

    step = min(w_j, (slope_j - slope_i)/|a_i - a_j|^2),      slope += step (gram_i - gram_j)

Idle atoms take part where their slope is below the average <x, x - y>. Each step lowers |x - y|.
Weights up to `DROP` become 0 and the rest are rescaled to sum to 1, so nothing drifts; x is rebuilt
from them.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.types import Floats, NDArray
from tidewolf.core.vertices import Atoms
from tidewolf.kernels.active_set import pairwise_steps, rescale

CORRECTIVE_STEPS = 30
CORRECTIVE_GAP = 0.1
"""Corrective steps end when the pairwise gap is below this share of the tolerance."""


def corrected(atoms: Atoms, weights: Floats, slopes: Floats, steps: int, stop: float) -> Floats:
    """The weights after up to `steps` pairwise steps from these slopes, which stay as they are,
    until the pairwise gap is at most `stop`.
    """
    weights, chosen = weights.copy(), np.empty(len(weights), dtype=np.int64)
    pairwise_steps(atoms.gram, weights, slopes.copy(), chosen, steps, stop)
    rescale(weights)
    return weights


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
