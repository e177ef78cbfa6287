"""Randomness as a function of (seed, round): the same numbers whether a run was whole, split, or
resumed.
"""

import hashlib
import math

import numpy as np

from tidewolf.core.arrays import LARGEST_SEED, as_count
from tidewolf.core.types import Floats, Shape


def generator(seed: int, purpose: str, round: int = 0) -> np.random.Generator:
    """A fresh generator that depends on its three arguments and on nothing else."""
    seed = as_count(seed, "A seed", least=0, most=LARGEST_SEED)
    key = hashlib.sha256(f"tidewolf {seed} {purpose}".encode()).digest()[:16]
    counter = [0, 0, 0, as_count(round, "A round", least=0)]
    return np.random.Generator(
        np.random.Philox(key=np.frombuffer(key, dtype=np.uint64), counter=counter)
    )


# Numbers drawn at once: rows that share a page cost little more than one of them.
_PAGE = 1024


def gaussian_rows(seed: int, purpose: str, first: int, count: int, size: int) -> Floats:
    """Rows `first` to `first + count - 1` of an endless table of standard normal numbers; a row
    depends on its number alone.
    """
    page = max(1, _PAGE // size)
    pages = range(first // page, (first + count - 1) // page + 1)
    drawn = [generator(seed, purpose, number).standard_normal((page, size)) for number in pages]
    return np.concatenate(drawn)[first - pages.start * page :][:count]


def autoregressive_noise(
    seed: int, purpose: str, rounds: int, shape: Shape, memory: float
) -> Floats:
    """Noise with a memory, a process for every entry of a shape, as (rounds, *shape):

        n_t = memory n_{t-1} + (1 - memory^2)^{1/2} e_t

    with e_t and n_0 standard normal, so that n_t is too. The first rounds do not depend on how many
    follow.
    """
    steps = generator(seed, purpose).standard_normal((rounds, *shape))
    for t in range(1, rounds):
        steps[t] = memory * steps[t - 1] + math.sqrt(1 - memory**2) * steps[t]
    return steps
