"""Gradients within the affine hull, and the slopes they show.

A gradient's part across aff(K) moves no decision within K, but would move its companion y away from K: it is taken off first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidewolf.core.arrays import Array, eps_of, inner
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, NotFinite
from tidewolf.core.oracle import HasLMO

_ROUNDING = 1e3
"""A gradient across aff(K) leaves a tangent of at most this many eps of its size."""
_ACROSS = 1e-4
"""A tangent whose square is below this share of the gradient's is taken once more."""


def within(K: HasLMO, name: str, gradient: Array, rounds: int, given: float | None) -> tuple[Array, float]:
    """A sum of gradients within aff(K), 0 where nothing but rounding is left of it, and its slope a round, refused above the one given."""
    with np.errstate(over="ignore", invalid="ignore"):
        norm2 = inner(gradient, gradient)
    if not norm2 < math.inf:
        raise NotFinite(f"The {name} gradient holds a NaN or an infinite number, or its square overflows; give finite, moderate functions.")
    along = K.tangent(gradient)
    along2 = inner(along, along)
    if along2 <= (_ROUNDING * eps_of(gradient)) ** 2 * norm2 or K.diameter == 0.0:
        return 0.0 * gradient, 0.0
    if along2 < _ACROSS * norm2:
        along = K.tangent(along)  # what rounding left of a large part across aff(K) would be large beside the rest
    slope = math.sqrt(along2) / rounds
    if given is not None and slope > given * (1.0 + 1e-9):
        raise InvalidInput(f"A {name} of slope {slope:.6g} was seen, above {name}_lipschitz = {given:.6g}; give a larger one, or none.")
    return along, slope


def each_within(K: HasLMO, name: str, batch: Batch, x: Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The slope of each round at x within aff(K), for the choice of subgradient that `batch` makes."""
    if K.dimension == math.prod(K.shape):
        return batch.slopes(x)
    gradients = batch.gradients(x)
    return np.array([within(K, name, gradients[t, ...], 1, None)[1] for t in range(len(batch))])
