"""Gradients within the affine hull, and the slopes they show.

A gradient's part across aff(K) moves no decision within K, but would move its companion y away from K: it is taken off first.
"""

from __future__ import annotations

import math

from tidewolf.core.arrays import Array, eps_of, inner
from tidewolf.core.errors import InvalidInput, NotFinite
from tidewolf.core.oracle import HasLMO

_ROUNDING = 1e3
"""A gradient across aff(K) leaves a tangent of at most this many eps of its size."""


def within(K: HasLMO, name: str, gradient: Array, rounds: int, given: float | None) -> tuple[Array, float]:
    """A sum of gradients within aff(K), 0 where nothing but rounding is left of it, and its slope a round, refused above the one given."""
    norm2 = inner(gradient, gradient)
    if not norm2 < math.inf:
        raise NotFinite(f"The {name} gradient holds a NaN or an infinite number, or its square overflows; give finite, moderate functions.")
    along = K.tangent(gradient)
    along2 = inner(along, along)
    if along2 <= (_ROUNDING * eps_of(gradient)) ** 2 * norm2 or K.diameter == 0.0:
        return 0.0 * gradient, 0.0
    slope = math.sqrt(along2) / rounds
    if given is not None and slope > given * (1.0 + 1e-9):
        raise InvalidInput(f"A {name} of slope {slope:.6g} was seen, above {name}_lipschitz = {given:.6g}; give a larger one, or none.")
    return along, slope
