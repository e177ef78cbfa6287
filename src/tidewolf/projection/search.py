"""The search of active.py: corrective steps among known vertices, oracle calls between them.

Corrective steps in weight space bring x = sum_i w_i a_i nearer to y without asking the oracle:

    slope_i = <a_i, x - y>;
    move weight from the atom j of largest slope among those with weight to the atom i of smallest:

    step = min(w_j, (slope_j - slope_i)/|a_i - a_j|^2),      slope += step (gram_i - gram_j)

Idle atoms take part where their slope is below the average <x, x - y>. Each step lowers |x - y|.
Weights up to `DROP` become 0 and the rest are rescaled to sum to 1, so nothing drifts; x is rebuilt
from them.

`search` is one compiled pass, for sets that bring a compiled oracle (`sets.base.Compiled`):
corrective steps, oracle, shift and step follow one another inside a kernel on the rows of a sparse
table (kernels/active_set.py), which appends the vertices it meets and comes back when it is done,
or where the table is full or another's.

`search_any` does the same for any set, through its `answer`, in any array library; results agree up
to rounding. Reading a number costs more on a device than the work of the host, so between two
oracle calls nothing is asked of the points: with r = x - y, W the weights and G the Gram matrix of
the atoms, corrective steps and a step s towards the vertex v, after y moved the share h of the way
to x, change the slopes <a_i, r> to

    <a_i, r> + (G (W' - W))_i        and        (1 - h) <a_i, r> + s (G_iv - (G W)_i)

up to one number for all i, which no choice among atoms depends on; <x, r> = sum_i W_i <a_i, r>
tells it, so that the slope of a new atom is counted like theirs. So each call costs one mean of
atoms, one difference and three sums of products.
"""

import math
from functools import cache
from typing import Any, Never, TypeAlias

import numpy as np

from tidewolf.core import arrays
from tidewolf.core.jit import MODE, Kernel, interpreting, kernel
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.core.vertices import Atoms, Dense, Factored, Sparse, SparseAtoms, Vertex
from tidewolf.kernels import active_set as kernels
from tidewolf.kernels.rounds import CORRECTIVE_GAP, CORRECTIVE_STEPS
from tidewolf.projection.one_shot import (
    FrankWolfeGap,
    checked_gap,
    halfspace_shift,
    line_search,
    oracle_error,
)
from tidewolf.sets.base import Compiled

# Corrective steps make slopes equal, and rounding would choose among them: candidates whose slopes
# differ by less than this share of |x - y| radius tie, and the first row wins.
TIE_SHARE = 1e-10
# Entries of a point that a search looks at, beside those that a light kernel does.
PASSES = 4


# What an active set is made of: a table, weights, their point, and what the oracle may start from.
Parts: TypeAlias = tuple[Any, Floats, Array, Array | None]
# Such, an infeasible iterate, oracle calls, the squared distance between the two, atoms in use.
Ending: TypeAlias = tuple[Parts, Array, int, float, int]


def make_way(code: int, atoms: SparseAtoms, count: int, at: Floats) -> SparseAtoms:
    """A table with room for the vertex that waits: one of its own where others have appended to
    this one.
    """
    if code == kernels.TABLE_TAKEN:
        atoms = atoms.only(np.arange(count))
    with atoms.lock:
        atoms.make_room(count + 1, int(atoms.starts[count]) + int(at[kernels.WAITING]) - 1)
    return atoms


def refuse(x: Floats, y: Floats, answer: tuple[NDArray, NDArray], at: Floats) -> Never:
    """Where a compiled oracle answered with less than what was known."""
    size, r = int(at[kernels.WAITING]) - 1, x - y
    vertex = Sparse(x.shape, answer[0][:size].copy(), answer[1][:size].copy())
    raise oracle_error(vertex.inner(r), 0.0, arrays.inner(r, x))


def search(K: Compiled, start: Parts, y: Floats, tol: float, budget: float) -> Ending:
    """From an active set towards y, on a sparse table in double precision."""
    atoms, weights, x, warm = start
    at, n, count = np.zeros(kernels.PLACES), len(x), len(weights)
    at[kernels.COUNT], at[kernels.BUDGET] = count, budget
    x, moved, r = x.copy(), y.copy(), np.empty(n)
    answer = (np.empty(K.max_nonzeros, np.int32), np.empty(K.max_nonzeros))
    data, numbers = as_bytes(K), (tol, float(CORRECTIVE_STEPS), CORRECTIVE_GAP * tol, tie_margin(K))
    few = MODE.interprets or kernels.nearest_member.is_interpreted(PASSES * n)
    while True:
        with atoms.lock, interpreting(few):  # others may make it larger until then
            room = len(atoms.gram)
            weights = np.append(weights[:count], np.zeros(room - count))
            work = (r, np.zeros(n), np.empty(room))
            rows = (atoms.starts, atoms.indices, atoms.values)  # plain: numba is slow on others
            found = (x, moved, data, answer, work, numbers, at)
            code = kernels.nearest_member.ready(
                address_of(K), rows, atoms.gram, atoms.filled, weights, *found
            )
            count = int(at[kernels.COUNT])
            atoms.appended(count)
        if code == kernels.DONE:
            break
        if code == kernels.BAD_ORACLE:
            refuse(x, moved, answer, at)
        atoms = make_way(code, atoms, count, at)
    ends = (int(at[kernels.CALLS]), float(at[kernels.DISTANCE2]), int(at[kernels.USED]))
    return (atoms, weights[:count], x, warm), moved if at[kernels.LAST] > 0.0 else y, *ends


def tie_margin(K: Any) -> float:
    """By how much slopes may differ, over |x - y|, and still tie."""
    return TIE_SHARE * float(K.radius)


def address_of(K: Compiled) -> Any:
    return kernels.oracle.address(_on_bytes(K.oracle, K.kernel_data.dtype))


def as_bytes(K: Compiled) -> NDArray:
    """The data of a set for its oracle: callers of oracles are compiled for one kind of array."""
    return arrays.frozen(K.kernel_data.view(np.uint8))


@cache
def _on_bytes(minimiser: Kernel[int], dtype: np.dtype[Any]) -> Kernel[int]:
    @kernel
    def on_bytes(d, data, indices, values):  # type: ignore[no-untyped-def]
        return np.int64(minimiser(d, data.view(dtype), indices, values))

    return on_bytes


def search_any(K: HasLMO, start: Parts, y: Array, tol: float, budget: float) -> Ending:
    atoms, weights, x, warm = start
    x, y, calls, last = arrays.like(x, y), arrays.frozen(y), 0, False
    r = x - y
    slopes = atoms.inner(r, len(weights))
    while True:
        moved = corrected(atoms, weights, slopes, CORRECTIVE_STEPS, CORRECTIVE_GAP * tol)
        if calls or (moved != weights).any():
            slopes = slopes + atoms.gram[: len(moved), : len(moved)] @ (moved - weights)
            weights, x = moved, atoms.combine(moved, y)
            r = x - y
        if last or calls >= budget:
            distance2 = arrays.inner(r, r)
            break
        distance2, at_x, x2 = arrays.inner_products((r, r), (r, x), (x, x))
        if distance2 <= tol:
            break
        answer = K.answer(r, warm)
        vertex, calls, warm = answer.vertex, calls + 1, answer.warm
        at_v, length2 = _products(vertex, r, x, x2)
        found = checked_gap(r, at_x, at_v, answer.error, distance2, x2, length2)
        last = found.gap**2 <= tol * distance2 or calls >= budget
        shift = halfspace_shift(found.gap, distance2) if last else 0.0
        if shift > 0.0:
            y = arrays.frozen(arrays.plus(y, shift, r))
        count = len(weights)
        row, found = tied_row(K, atoms, weights, slopes, found, math.sqrt(distance2))
        step = line_search(found, shift)
        if row is None:
            row = atoms.find(vertex, count)
        if row is None:
            row, atoms = count, atoms.append(vertex, count)
            slopes = np.append(slopes + (at_x - float(weights @ slopes)), at_v)
            weights = np.append(weights, 0.0)
        gram = atoms.gram[: len(weights), : len(weights)]
        slopes = (1.0 - shift) * slopes + step * (gram[:, row] - gram @ weights)
        weights = (1.0 - step) * weights
        weights[row] += step
    return (atoms, weights, x, warm), y, calls, distance2, int(np.count_nonzero(weights))


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


def _products(vertex: Vertex, r: Array, x: Array, x2: float) -> tuple[float, float]:
    """<v, r> and |x - v|^2, given <x, x>; in one look for arrays, factors and few entries."""
    if type(vertex) is Dense:
        away = x - vertex.point
        at_v, length2 = arrays.inner_products((vertex.point, r), (away, away))
        return at_v, length2
    if isinstance(vertex, Factored) and vertex.ridge == 0.0:
        left, right = vertex.factors[0], vertex.factors[-1]
        at_v, at_x = arrays.inner_products((left @ r, right), (left @ x, right))
        return at_v, max(0.0, x2 - 2.0 * at_x + vertex.square)
    if type(vertex) is not Sparse:
        return vertex.inner(r), vertex.distance2(x, x2)
    values, xp = vertex.values, arrays.namespace(r)
    if len(values) == 1:  # without a copy of the place
        at = int(vertex.indices[0])
        there = xp.stack([arrays.flat(r)[at], arrays.flat(x)[at]])[:, None]
    else:
        places = arrays.placed(vertex.indices, r)
        there = xp.stack(
            [xp.take(arrays.flat(r), places, axis=0), xp.take(arrays.flat(x), places, axis=0)]
        )
    at_v, at_x = (float(values.dot(each)) for each in arrays.to_numpy(there))
    return at_v, max(0.0, x2 - 2.0 * at_x + float(values.dot(values)))


def corrected(atoms: Atoms, weights: Floats, slopes: Floats, steps: int, stop: float) -> Floats:
    """The weights after up to `steps` pairwise steps from these slopes, which stay as they are,
    until the pairwise gap is at most `stop`.
    """
    weights = weights.copy()
    kernels.pairwise_steps(atoms.gram, weights, slopes.copy(), steps, stop)
    kernels.rescale(weights)
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
    weights, alive = weights.copy(), np.ones(len(weights), dtype=bool)
    while dependences.shape[1]:
        c, dependences = dependences[:, 0], dependences[:, 1:]
        falling = np.flatnonzero(alive & (c > 1e-9))
        if len(falling) == 0:
            continue
        first = falling[np.argmin(weights[falling] / c[falling])]
        weights = np.maximum(weights - (weights[first] / c[first]) * c, 0.0)
        weights[first], alive[first] = 0.0, False
        dependences = dependences - np.outer(c, dependences[first] / c[first])
    kernels.rescale(weights)
    return weights
