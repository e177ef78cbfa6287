"""Gradients from values alone: exploring around a point, one value per round
(Flaxman, Kalai & McMahan 2005).

A round is played at z = x + mu u, u uniform on the unit sphere of the direction space of aff(K), n
its dimension. For every number `base` that does not depend on u,

    E[ (n/mu) (f(z) - base) u ]  =  the gradient, within aff(K), of F(x) = E f(x + mu v),
        v uniform in the unit ball,

as E u = 0. F is convex with f(x) <= F(x) <= E f(z) <= F(x) + mu G/(n + 1) and F(x) <= f(x) + mu G
n/(n + 1), G a slope of f: the value seen averages over the sphere, the gradient belongs to the
average over the ball. Any base of earlier rounds will do, as u is drawn anew: here the mean over
the last block and this one so far, which makes estimates blind to constants and small where values
vary little.

If r is the radius of a ball around c within aff(K) inside K, every z lies in K when x lies in c +
(1 - mu/r)(K - c).
u is a Gaussian made tangent to aff(K) and of length 1, a function of the seed and the round: split,
resumed or taken many at a time, rounds explore the same way.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.arrays import like, namespace
from tidewolf.core.randomness import gaussian_rows
from tidewolf.core.types import Array, Floats
from tidewolf.sets.base import ConvexSet


def directions(K: ConvexSet, seed: int, first: int, count: int) -> Array:
    """The unit vectors of rounds `first` to `first + count - 1`, (count, *shape); zeros where there
    is no direction.
    """
    shape = (count, *K.shape)
    if K.dimension == 0:
        return like(np.zeros(shape), K.center)
    xp, size = namespace(K.center), int(np.prod(K.shape))
    z = like(gaussian_rows(seed, "exploration", first, count, size).reshape(shape), K.center)
    # each row in memory of its own: BLAS may round by address, and rows must not depend on count
    tangents = [K.tangent(z[i, ...] + 0.0) for i in range(count)]
    lengths = xp.stack([xp.vecdot(v, v) for v in (xp.reshape(v, (size,)) for v in tangents)])
    return xp.stack(tangents) / xp.reshape(xp.sqrt(lengths), (count,) + (1,) * len(K.shape))


def combined(coefficients: Floats, u: Array) -> Array:
    """sum_t c_t u_t."""
    xp = namespace(u)
    return xp.reshape(like(coefficients, u) @ xp.reshape(u, (u.shape[0], -1)), tuple(u.shape[1:]))


def centred(values: Floats, mean: float, rounds: int) -> Floats:
    """Values of a block minus what they were before, on average: over `rounds` rounds of this mean,
    and over the block so far.
    """
    before = np.concatenate([[0.0], np.cumsum(values)[:-1]]) + rounds * mean
    base = before / np.maximum(1, rounds + np.arange(len(values)))
    if rounds == 0:
        base[0] = values[0]
    return values - base
