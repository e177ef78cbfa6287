"""The search of active_set.py in one compiled pass, for sets that bring a compiled oracle
(`sets.base.Compiled`).

Corrective steps, oracle, shift and step follow one another inside a kernel on the rows of a sparse
table (kernels/active_set.py), which appends the vertices it meets and comes back when it is done,
or where the table is full or another's. `ActiveSet` does the same through `answer` for every other
set: results agree up to rounding.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, Never

import numpy as np

from tidewolf.core.arrays import frozen, inner
from tidewolf.core.jit import Kernel, kernel
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.core.vertices import Atoms, Sparse, SparseAtoms
from tidewolf.kernels.active_set import (
    BAD_ORACLE,
    BUDGET,
    CALLS,
    COUNT,
    DISTANCE2,
    DONE,
    LAST,
    PLACES,
    TABLE_TAKEN,
    USED,
    WAITING,
    nearest_member,
    oracle,
)
from tidewolf.projection.one_shot import FrankWolfeGap, oracle_error
from tidewolf.projection.weights import CORRECTIVE_GAP, CORRECTIVE_STEPS
from tidewolf.sets.base import Compiled

_DOUBLE = np.dtype(np.float64)
TIE_SHARE = 1e-10
"""Corrective steps make slopes equal, and rounding would choose among them: candidates whose slopes
differ by less than this share of |x - y| radius tie, and the first row wins.
"""


class SearchResult(NamedTuple):
    atoms: Atoms
    weights: Floats
    x: Array
    y: Array
    calls: int
    distance2: float
    used: int
    warm: Array | None = None
    """what a next call at a nearby direction may start from"""


class Search:
    """What a search in a kernel needs of Python: room for a vertex that waits, and a sentence."""

    @staticmethod
    def make_way(code: int, atoms: SparseAtoms, count: int, at: Floats) -> SparseAtoms:
        """A table with room for the vertex that waits: one of its own where others have appended
        to this one.
        """
        if code == TABLE_TAKEN:
            atoms = atoms.only(np.arange(count))
        with atoms.lock:
            atoms.make_room(count + 1, int(atoms.starts[count]) + int(at[WAITING]) - 1)
        return atoms

    @staticmethod
    def refuse(x: Floats, y: Floats, answer: tuple[NDArray, NDArray], at: Floats) -> Never:
        size, r = int(at[WAITING]) - 1, x - y
        vertex = Sparse(x.shape, answer[0][:size].copy(), answer[1][:size].copy())
        raise oracle_error(vertex.inner(r), 0.0, inner(r, x))


def supports(atoms: Atoms, x: Array, y: Array) -> bool:
    return type(atoms) is SparseAtoms and type(y) is np.ndarray and y.dtype == x.dtype == _DOUBLE


def search(
    K: Compiled,
    start: tuple[Atoms, Floats, Array],
    y: Array,
    tol: float,
    budget: float,
) -> SearchResult:
    atoms, weights, x = start
    assert type(atoms) is SparseAtoms
    at, n, count = np.zeros(PLACES), len(x), len(weights)
    at[COUNT], at[BUDGET] = count, budget
    x, moved = x.copy(), y.copy()
    answer = (np.empty(K.max_nonzeros, np.int32), np.empty(K.max_nonzeros))
    by, data = address_of(K), as_bytes(K)
    numbers = (tol, float(CORRECTIVE_STEPS), CORRECTIVE_GAP * tol, tie_margin(K))
    while True:
        with atoms.lock:  # others may make it larger until then
            room = len(atoms.gram)
            grown = np.zeros(room)
            grown[:count] = weights[:count]
            weights = grown
            work = (np.empty(n), np.zeros(n), np.empty(room), np.empty(room, np.int64))
            rows = (atoms.starts, atoms.indices, atoms.values)  # plain: numba is slow on others
            found = (x, moved, data, answer, work, numbers, at)
            code = nearest_member.ready(by, rows, atoms.gram, atoms.filled, weights, *found)
            count = int(at[COUNT])
            atoms.appended(count)
        if code == DONE:
            break
        if code == BAD_ORACLE:
            Search.refuse(x, moved, answer, at)
        atoms = Search.make_way(code, atoms, count, at)
    ends = (int(at[CALLS]), float(at[DISTANCE2]), int(at[USED]))
    return SearchResult(atoms, weights[:count], x, moved if at[LAST] > 0.0 else y, *ends)


def tie_margin(K: Any) -> float:
    """By how much slopes may differ, over |x - y|, and still tie."""
    return TIE_SHARE * float(K.radius)


def tied_row(
    K: Any, atoms: Atoms, weights: Floats, slopes: Floats, found: FrankWolfeGap, distance: float
) -> tuple[int | None, FrankWolfeGap]:
    """The first row whose slope ties with that of the oracle's answer, and the segment to it, as in
    `nearest_member`; None if the answer is better than every row. `slopes` may be off by a number
    that is the same for all rows.
    """
    drops = weights @ slopes - slopes
    tied = np.flatnonzero(drops >= found.drop - tie_margin(K) * distance)
    if len(tied) == 0:
        return None, found
    row = int(tied[0])
    away = -weights
    away[row] += 1.0
    length2 = float(away @ atoms.gram[: len(away), : len(away)] @ away)
    return row, FrankWolfeGap(found.gap, float(drops[row]), max(0.0, length2))


def address_of(K: Compiled) -> Any:
    return oracle.address(_on_bytes(K.oracle, K.kernel_data.dtype))


def as_bytes(K: Compiled) -> NDArray:
    """The data of a set for its oracle: callers of oracles are compiled for one kind of array."""
    return frozen(K.kernel_data.view(np.uint8))


@cache
def _on_bytes(minimiser: Kernel[int], dtype: np.dtype[Any]) -> Kernel[int]:
    @kernel
    def on_bytes(d, data, indices, values):  # type: ignore[no-untyped-def]
        return np.int64(minimiser(d, data.view(dtype), indices, values))

    return on_bytes
