"""Noise with a memory:  n_t = memory n_{t-1} + (1 - memory^2)^{1/2} e_t,  e_t and n_0 standard
normal, so that n_t is too.
"""

from __future__ import annotations

import math

from tidewolf.core.randomness import generator
from tidewolf.core.types import Floats, Shape


def autoregressive_noise(
    seed: int, purpose: str, rounds: int, shape: Shape, memory: float
) -> Floats:
    """A process for every entry of a shape, (rounds, *shape); the first rounds do not depend on how
    many follow.
    """
    steps = generator(seed, purpose).standard_normal((rounds, *shape))
    for t in range(1, rounds):
        steps[t] = memory * steps[t - 1] + math.sqrt(1 - memory**2) * steps[t]
    return steps
