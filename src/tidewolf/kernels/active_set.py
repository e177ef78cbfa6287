"""A projection in weight space: corrective steps among the atoms of a sparse table, and the search
that asks a compiled oracle between them.

Rows of a table are a tuple (starts, indices, values): row i has its entries at starts[i] ..
starts[i + 1] - 1. The mathematics is in projection/weights.py and projection/active_set.py.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.core.vertices import sparse_combine, sparse_inner

DROP = 1e-13
"""Weights up to this become 0."""
TIE = 1e-6
"""Slopes nearer than this share of `stop` tie and go to the earlier atom: each step leaves equal
slopes, and rounding shall not choose.
"""
ORACLE_SLACK = 1e3
"""An answer may be worse than a known member by this many rounding errors."""
_ROUNDING = ORACLE_SLACK * float(np.finfo(np.float64).eps)


@kernel
def pairwise_steps(gram, weights, slopes, steps, stop):  # type: ignore[no-untyped-def]
    """The steps, in place, among atoms with weight and idle ones that x would gain by: those whose
    slope is below its average.

    Naive twin: `naive_steps` in tests/test_projection.py.
    """
    average = 0.0
    for q in range(len(weights)):
        average += weights[q] * slopes[q]
    chosen, count = np.empty(len(weights), dtype=np.int64), 0
    for q in range(len(weights)):
        chosen[count] = q
        count += weights[q] > 0.0 or slopes[q] < average
    margin = TIE * stop
    for _ in range(steps):
        i, least = 0, np.inf
        j, most = 0, -np.inf
        for n in range(count):  # choices without branches: which atom wins cannot be predicted
            q = chosen[n]
            slope = slopes[q]
            lower = slope < least - margin
            i = q if lower else i
            least = slope if lower else least
            slope = slope if weights[q] > 0.0 else -np.inf
            higher = slope > most + margin
            j = q if higher else j
            most = slope if higher else most
        gap = most - least
        if gap <= stop:
            return
        length2, step = gram[i, i] - 2.0 * gram[i, j] + gram[j, j], weights[j]
        if gap < step * length2:
            step = gap / length2
        weights[j] = weights[j] - step
        weights[i] += step
        for n in range(count):
            q = chosen[n]
            slopes[q] += step * (gram[i, q] - gram[j, q])


@kernel
def rescale(weights):  # type: ignore[no-untyped-def]
    """Tiny weights to 0, the rest to sum 1, in place; returns how many these are.

    Naive twin: a division by the sum, in tests/test_projection.py.
    """
    total, used = 0.0, 0
    for q in range(len(weights)):
        if weights[q] > DROP:
            total += weights[q]
            used += 1
        else:
            weights[q] = 0.0
    for q in range(len(weights)):
        weights[q] /= total
    return used


@kernel
def sparse_correct(rows, gram, weights, y, steps, stop, x):  # type: ignore[no-untyped-def]
    """Corrective steps towards y on a sparse table, weights in place, and their point in x; returns
    |x - y|^2.

    Naive twin: `correct_any` of projection/weights.py.
    """
    starts, indices, values = rows
    x[:] = 0.0
    sparse_combine(starts, indices, values, weights, x)
    return sparse_correct_from(rows, gram, weights, x, y, np.empty(len(x)), steps, stop)[0]


@kernel
def sparse_correct_from(  # type: ignore[no-untyped-def]
    rows, gram, weights, x, y, r, steps, stop
):
    """The same from x, the point of the weights, in place; r becomes x - y.

    Returns |x - y|^2 and how many atoms are in use. Naive twin: `correct_any` of
    projection/weights.py.
    """
    starts, indices, values = rows
    for e in range(len(x)):
        r[e] = x[e] - y[e]
    slopes = np.empty(len(weights))
    sparse_inner(starts, indices, values, r, slopes)
    pairwise_steps(gram, weights, slopes, steps, stop)
    used = rescale(weights)
    x[:] = 0.0
    sparse_combine(starts, indices, values, weights, x)
    distance2 = 0.0
    for e in range(len(x)):
        r[e] = x[e] - y[e]
        distance2 += r[e] * r[e]
    return distance2, used


@kernel
def oracle(d, kernel_data, indices, values):  # type: ignore[no-untyped-def]
    """Stands for that of a set."""
    raise NotImplementedError


@kernel
def run_until_new_vertex(  # type: ignore[no-untyped-def]
    rows, gram, weights, x, y, kernel_data, answer, limits, correction, calls, last
):
    """The search in place, until there is a vertex without a row: its size, and the step to it,
    which x and the other weights have taken; the calls so far, whether it was the last, |x - y|^2.

    `answer` is (indices, values) for the oracle to fill, `limits` (tol, budget), `correction`
    (steps, stop). At the end the size is minus the number of atoms in use; an answer worse than x
    gets step -1. Naive twin: `ActiveSet.nearest` through `answer`, in tests/test_projection.py.
    """
    indices, values = answer
    tol, budget = limits
    steps, stop = correction
    r = np.empty(len(x))
    while True:
        distance2, used = sparse_correct_from(rows, gram, weights, x, y, r, steps, stop)
        if last or distance2 <= tol or calls >= budget:
            return -used, 0.0, calls, last, distance2
        size = oracle(r, kernel_data, indices, values)
        calls += 1
        at_x, x2 = 0.0, 0.0
        for e in range(len(x)):
            at_x += r[e] * x[e]
            x2 += x[e] * x[e]
        at_v, x_v, v2 = 0.0, 0.0, 0.0
        for p in range(size):
            at_v += values[p] * r[indices[p]]
            x_v += values[p] * x[indices[p]]
            v2 += values[p] * values[p]
        drop, length2 = at_x - at_v, max(0.0, x2 - 2.0 * x_v + v2)
        if not drop >= -_ROUNDING * math.sqrt(distance2 * (x2 + length2)):
            return size, -1.0, calls, last, distance2
        gap = max(drop, 0.0)
        last = gap * gap <= tol * distance2 or calls >= budget
        shift = max(0.0, 1.0 - gap / distance2) if last else 0.0
        step = min(1.0, max(0.0, (1.0 - shift) * drop / length2)) if length2 > 0.0 else 0.0
        for e in range(len(x)):
            y[e] += shift * r[e]
            x[e] *= 1.0 - step
        for p in range(size):
            x[indices[p]] += step * values[p]
        for q in range(len(weights)):
            weights[q] *= 1.0 - step
        row = find_row(rows, len(weights), indices, values, size)
        if row < 0:
            return size, step, calls, last, distance2
        weights[row] += step


@kernel
def find_row(rows, count, indices, values, size):  # type: ignore[no-untyped-def]
    """The first of `count` rows that holds just these entries, or -1.

    Naive twin: rows told by hand, in tests/test_projection.py.
    """
    starts, columns, entries = rows
    for row in range(count):
        start, same = starts[row], 0
        if starts[row + 1] - start == size:
            while (
                same < size
                and columns[start + same] == indices[same]
                and entries[start + same] == values[same]
            ):
                same += 1
            if same == size:
                return row
    return -1
