"""The search of active_set.py in one compiled pass, for sets that bring a compiled oracle
(`sets.base.Compiled`).

Corrective steps, oracle, shift and step follow one another inside a kernel on the rows of a sparse
table (kernels/active_set.py), which comes back when it is done, or with a vertex that has no row
yet. `ActiveSet` does the same through `answer` for every other set: results agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import inner
from tidewolf.core.jit import Kernel
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Atoms, Sparse, SparseAtoms
from tidewolf.kernels.active_set import run_until_new_vertex
from tidewolf.projection.one_shot import oracle_error
from tidewolf.sets.base import Compiled

_DOUBLE = np.dtype(np.float64)


class SearchResult(NamedTuple):
    """Where a search for a member near y ended."""

    atoms: Atoms
    weights: Floats
    x: Array
    """the point of the weights"""
    y: Array
    """its companion"""
    calls: int
    distance2: float
    """|x - y|^2"""
    used: int
    """how many atoms have weight"""
    warm: Array | None = None
    """what a next call at a nearby direction may start from"""


class Correction(NamedTuple):
    """When corrective steps end: after `steps`, or when their gap is at most `stop`."""

    steps: int
    stop: float


class _Pause(NamedTuple):
    """What the kernel comes back with."""

    size: int
    """entries of a vertex that has no row; at the end, minus the number of atoms in use"""
    step: float
    """to that vertex; -1 where it is worse than x"""
    calls: int
    last: bool
    distance2: float


def supports(atoms: Atoms, x: Array, y: Array) -> bool:
    """Whether the kernel knows this table, and arrays such as these."""
    return type(atoms) is SparseAtoms and type(y) is np.ndarray and y.dtype is x.dtype is _DOUBLE


def search(
    K: Compiled,
    start: tuple[Atoms, Floats, Array],
    y: Array,
    tol: float,
    budget: float,
    correction: Correction,
) -> SearchResult:
    """From a table, weights and their point x towards y."""
    atoms, weights, x = start[0], start[1].copy(), start[2].copy()
    given, y = y, y.copy()
    run, kernel_data, answer = (
        specialise(K.oracle),
        K.kernel_data,
        (np.empty(K.max_nonzeros, np.int32), np.empty(K.max_nonzeros)),
    )
    limits, ends = (tol, budget), (correction.steps, correction.stop)
    calls, last = 0, False
    while True:
        assert type(atoms) is SparseAtoms
        rows = (atoms.starts, atoms.indices, atoms.values)
        # plain tuples: numba takes far longer to look into named ones
        pause = _Pause(
            *run(rows, atoms.gram, weights, x, y, kernel_data, answer, limits, ends, calls, last)
        )
        size, calls, last = pause.size, pause.calls, pause.last
        if size < 0:
            return SearchResult(
                atoms, weights, x, y if last else given, calls, pause.distance2, -size
            )
        vertex = Sparse(y.shape, answer[0][:size].copy(), answer[1][:size].copy())
        if pause.step < 0.0:
            raise oracle_error(vertex.inner(x - y), 0.0, inner(x - y, x))
        count, before = len(weights), weights
        atoms, weights = atoms.append(vertex, count), np.empty(count + 1)
        weights[:count], weights[count] = before, pause.step


@cache
def specialise(oracle: Kernel[int]) -> Callable[..., tuple[int, float, int, bool, float]]:
    """`run_until_new_vertex` compiled with this oracle in it."""
    return run_until_new_vertex.given(oracle=oracle).compiled
