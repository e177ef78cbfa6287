"""Randomness as a function of (seed, round): the same numbers whether a run was whole, split, or resumed."""

from __future__ import annotations

import hashlib

import numpy as np

from tidewolf.core.arrays import as_count


def generator(seed: int, purpose: str, round: int = 0) -> np.random.Generator:
    """A fresh generator that depends on its three arguments and on nothing else."""
    seed = as_count(seed, "A seed", least=0)
    key = hashlib.sha256(f"tidewolf {seed} {purpose}".encode()).digest()[:16]
    counter = [0, 0, 0, as_count(round, "A round", least=0)]
    return np.random.Generator(np.random.Philox(key=np.frombuffer(key, dtype=np.uint64), counter=counter))
