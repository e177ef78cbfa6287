"""The search of active_set.py for any set, through its `answer`, in any array library.

Reading a number costs more on a device than the work of the host, so between two oracle calls
nothing is asked of the points: with r = x - y, W the weights and G the Gram matrix of the atoms,
corrective steps and a step s towards the vertex v, after y moved the share h of the way to x,
change the slopes <a_i, r> to

    <a_i, r> + (G (W' - W))_i        and        (1 - h) <a_i, r> + s (G_iv - (G W)_i)

up to one number for all i, which no choice among atoms depends on; <x, r> = sum_i W_i <a_i, r>
tells it, so that the slope of a new atom is counted like theirs. So each call costs one mean of
atoms, one difference and three sums of products.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.arrays import (
    eps_of,
    flat,
    frozen,
    inner,
    inner_products,
    like,
    namespace,
    placed,
    plus,
    to_numpy,
)
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Atoms, Dense, Sparse, Vertex
from tidewolf.kernels.active_set import ORACLE_SLACK
from tidewolf.projection.compiled import SearchResult, tied_row
from tidewolf.projection.one_shot import (
    FrankWolfeGap,
    halfspace_shift,
    line_search,
    oracle_error,
)
from tidewolf.projection.weights import CORRECTIVE_GAP, CORRECTIVE_STEPS, corrected


def search_any(
    K: HasLMO,
    start: tuple[Atoms, Floats, Array, Array | None],
    y: Array,
    tol: float,
    budget: float,
) -> SearchResult:
    """From an active set, a table, weights, their point and what the oracle may start from, towards
    y.
    """
    atoms, weights, x, warm = start
    x, y, calls, last = like(x, y), frozen(y), 0, False
    r = x - y
    slopes = atoms.inner(r, len(weights))
    while True:
        moved = corrected(atoms, weights, slopes, CORRECTIVE_STEPS, CORRECTIVE_GAP * tol)
        if calls or (moved != weights).any():
            slopes = slopes + atoms.gram[: len(moved), : len(moved)] @ (moved - weights)
            weights, x = moved, atoms.combine(moved, y)
            r = x - y
        if last or calls >= budget:
            distance2 = inner(r, r)
            break
        distance2, at_x, x2 = inner_products((r, r), (r, x), (x, x))
        if distance2 <= tol:
            break
        answer = K.answer(r, warm)
        vertex, calls, warm = answer.vertex, calls + 1, answer.warm
        at_v, length2 = _products(vertex, r, x, x2)
        drop = at_x - at_v
        rounding = ORACLE_SLACK * eps_of(r) * math.sqrt(distance2 * (x2 + length2))
        if not drop + answer.error >= -rounding:
            raise oracle_error(at_v, answer.error, at_x)
        found = FrankWolfeGap(max(drop + answer.error, 0.0), drop, length2)
        last = found.gap**2 <= tol * distance2 or calls >= budget
        shift = halfspace_shift(found.gap, distance2) if last else 0.0
        if shift > 0.0:
            y = frozen(plus(y, shift, r))
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
    used = int(np.count_nonzero(weights))
    return SearchResult(atoms, weights, x, y, calls, distance2, used, warm)


def _products(vertex: Vertex, r: Array, x: Array, x2: float) -> tuple[float, float]:
    """<v, r> and |x - v|^2, given <x, x>; in one look for vertices that are arrays, or of few
    entries.
    """
    if type(vertex) is Dense:
        away = x - vertex.point
        at_v, length2 = inner_products((vertex.point, r), (away, away))
        return at_v, length2
    if type(vertex) is not Sparse:
        return vertex.inner(r), vertex.distance2(x, x2)
    values, xp = vertex.values, namespace(r)
    if len(values) == 1:  # without a copy of the place
        at = int(vertex.indices[0])
        there = xp.stack([flat(r)[at], flat(x)[at]])[:, None]
    else:
        places = placed(vertex.indices, r)
        there = xp.stack([xp.take(flat(r), places, axis=0), xp.take(flat(x), places, axis=0)])
    at_v, at_x = (float(values.dot(each)) for each in to_numpy(there))
    return at_v, max(0.0, x2 - 2.0 * at_x + float(values.dot(values)))
