"""The search of active_set.py in one compiled pass, for sets that bring a compiled oracle
(`sets.base.Compiled`).

Corrective steps, oracle, pull and step follow one another inside a kernel on the rows of a sparse
table, which comes back when it is done, or with a vertex that has no row yet. `ActiveSet` does the
same through `answer` for every other set: results agree up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from tidewolf.core.arrays import inner
from tidewolf.core.jit import Kernel, kernel
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Atoms, Sparse, SparseAtoms
from tidewolf.projection.one_shot import SLACK, lied
from tidewolf.projection.weights import sparse_correct_from
from tidewolf.sets.base import Compiled

_DOUBLE = np.dtype(np.float64)
_ROUNDING = SLACK * float(np.finfo(np.float64).eps)

Reached: TypeAlias = tuple[Atoms, Floats, Array, Array, int, float, int]
"""A table, weights, their point x, its companion y, the calls it took, |x - y|^2, and how many
atoms are in use.
"""


def serves(atoms: Atoms, x: Array, y: Array) -> bool:
    """Whether the kernel knows this table, and arrays such as these."""
    return type(atoms) is SparseAtoms and type(y) is np.ndarray and y.dtype is x.dtype is _DOUBLE


def search(
    K: Compiled,
    atoms: Atoms,
    weights: Floats,
    x: Array,
    y: Array,
    tol: float,
    budget: float,
    steps: int,
    stop: float,
) -> Reached:
    """From x, the point of these weights, towards y; up to `steps` corrective steps at a time,
    until their gap is at most `stop`.
    """
    given, weights, x, y, calls, last = y, weights.copy(), x.copy(), y.copy(), 0, False
    run, kernel_data, indices, values = (
        searching(K.oracle),
        K.kernel_data,
        np.empty(K.max_nonzeros, np.int32),
        np.empty(K.max_nonzeros),
    )
    while True:
        assert type(atoms) is SparseAtoms
        starts, rows, entries, gram = atoms.starts, atoms.indices, atoms.values, atoms.gram
        size, step, calls, last, distance2 = run(
            starts,
            rows,
            entries,
            gram,
            weights,
            x,
            y,
            kernel_data,
            indices,
            values,
            tol,
            budget,
            steps,
            stop,
            calls,
            last,
        )
        if size < 0:
            return atoms, weights, x, y if last else given, calls, distance2, -size
        vertex = Sparse(y.shape, indices[:size].copy(), values[:size].copy())
        if step < 0.0:
            raise lied(vertex.inner(x - y), 0.0, inner(x - y, x))
        count, before = len(weights), weights
        atoms, weights = atoms.append(vertex, count), np.empty(count + 1)
        weights[:count], weights[count] = before, step


@cache
def searching(oracle: Kernel[int]) -> Callable[..., tuple[int, float, int, bool, float]]:
    """`until_new` compiled with this oracle in it."""
    return until_new.given(oracle=oracle).compiled


@kernel
def oracle(d, kernel_data, indices, values):  # type: ignore[no-untyped-def]
    """Stands for that of a set."""
    raise NotImplementedError


@kernel
def until_new(  # type: ignore[no-untyped-def]
    starts,
    rows,
    entries,
    gram,
    weights,
    x,
    y,
    kernel_data,
    indices,
    values,
    tol,
    budget,
    steps,
    stop,
    calls,
    last,
):
    """The search in place, until there is a vertex without a row: its size, and the step to it,
    which x and the other weights have taken.

    At the end the size is minus the number of atoms in use; an answer worse than x gets step -1.
    """
    r = np.empty(len(x))
    while True:
        distance2, used = sparse_correct_from(
            starts, rows, entries, gram, weights, x, y, r, steps, stop
        )
        if last or distance2 <= tol or calls >= budget:
            return -used, 0.0, calls, last, distance2
        size = oracle(r, kernel_data, indices, values)
        calls += 1
        at_x, x2, at_v, x_v, v2 = 0.0, 0.0, 0.0, 0.0, 0.0
        for e in range(len(x)):
            at_x += r[e] * x[e]
            x2 += x[e] * x[e]
        for p in range(size):
            at_v += values[p] * r[indices[p]]
            x_v += values[p] * x[indices[p]]
            v2 += values[p] * values[p]
        drop, length2 = at_x - at_v, max(0.0, x2 - 2.0 * x_v + v2)
        if not drop >= -_ROUNDING * math.sqrt(distance2 * (x2 + length2)):
            return size, -1.0, calls, last, distance2
        gap = max(drop, 0.0)
        last = gap * gap <= tol * distance2 or calls >= budget
        pulled = max(0.0, 1.0 - gap / distance2) if last else 0.0
        step = min(1.0, max(0.0, (1.0 - pulled) * drop / length2)) if length2 > 0.0 else 0.0
        for e in range(len(x)):
            y[e] += pulled * r[e]
            x[e] *= 1.0 - step
        for p in range(size):
            x[indices[p]] += step * values[p]
        for q in range(len(weights)):
            weights[q] *= 1.0 - step
        row = row_of(starts, rows, entries, len(weights), indices, values, size)
        if row < 0:
            return size, step, calls, last, distance2
        weights[row] += step


@kernel
def row_of(starts, rows, entries, count, indices, values, size):  # type: ignore[no-untyped-def]
    """The first of `count` rows that holds just these entries, or -1."""
    for row in range(count):
        start, same = starts[row], 0
        if starts[row + 1] - start == size:
            while (
                same < size
                and rows[start + same] == indices[same]
                and entries[start + same] == values[same]
            ):
                same += 1
            if same == size:
                return row
    return -1
