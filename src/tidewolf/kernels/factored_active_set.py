"""A projection on a product, factor by factor: corrective steps among the atoms of each, and the
steps that one answer of the product's oracle allows them all.

Rows of a table are a tuple (starts, indices, values), as in kernels/active_set.py. Those of factor
b are members[begins[b]], ... up to begins[b + 1]; all of their entries lie from places[b] to
places[b + 1] - 1. Weights are those of the first len(weights) rows and add up to 1 within each
factor. Stages of a factor: CLOSED, it is done; OPEN, the oracle may be asked; ENDING, corrective
steps remain. The mathematics is in projection/active.py. Reference of all: `naive_projection` in
tests/test_factored.py.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import (
    ORACLE_SLACK,
    dot,
    fill,
    is_row,
    pairwise_steps,
    rescale,
    row_product,
)

CLOSED, OPEN, ENDING = 0, 1, 2
_ROUNDING = ORACLE_SLACK * float(np.finfo(np.float64).eps)


@kernel
def combine_rows(rows, own, weights, begin, end, x, y, r):  # type: ignore[no-untyped-def]
    """The sum of these rows by their weights in a factor's entries of x, and x - y there in r;
    returns |x - y|^2.
    """
    starts, indices, values = rows
    fill(x[begin:end], 0.0)
    for n in range(len(own)):
        if weights[n] != 0.0:
            for p in range(starts[own[n]], starts[own[n] + 1]):
                x[indices[p]] += weights[n] * values[p]
    for e in range(begin, end):
        r[e] = x[e] - y[e]
    return dot(r[begin:end], r[begin:end])


@kernel
def steps_in_factor(  # type: ignore[no-untyped-def]
    rows, own, weights, slopes, chosen, gram, r, zeros, steps, stop
):
    """Pairwise steps among a factor's rows, weights in place, if their gap is above `stop`; r is
    x - y. The products of all of them are made in `gram`; `zeros` is as it was afterwards.
    """
    starts, indices, values = rows
    least, most = np.inf, -np.inf
    for n in range(len(own)):
        slopes[n] = row_product(rows, own[n], r)
        least = min(least, slopes[n])
        most = max(most, slopes[n]) if weights[n] > 0.0 else most
    if most - least <= stop:
        return
    for n in range(len(own)):
        for p in range(starts[own[n]], starts[own[n] + 1]):
            zeros[indices[p]] = values[p]
        for m in range(n + 1):
            gram[n, m] = gram[m, n] = row_product(rows, own[m], zeros)
        for p in range(starts[own[n]], starts[own[n] + 1]):
            zeros[indices[p]] = 0.0
    pairwise_steps(gram, weights, slopes, chosen, steps, stop)


@kernel
def factored_correct(  # type: ignore[no-untyped-def]
    rows, members, begins, places, weights, x, y, r, stages, tols, distances2, steps, share
):
    """Corrective steps towards y in every factor that is not closed, until its pairwise gap is at
    most `share` of its tolerance; weights, x and |x - y|^2 by factor in place.

    Factors that are near enough, or were ending, are closed; r becomes x - y where they are open
    and 0 elsewhere. Returns how many are open.
    """
    most, still_open, zeros = 0, 0, np.zeros(len(x))
    for b in range(len(tols)):
        most = max(most, begins[b + 1] - begins[b])
    w, slopes, chosen = np.empty(most), np.empty(most), np.empty(most, dtype=np.int64)
    gram = np.empty((most, most))
    for b in range(len(tols)):
        if stages[b] == CLOSED:
            continue
        own, begin, end = members[begins[b] : begins[b + 1]], places[b], places[b + 1]
        mine = w[: len(own)]
        for n in range(len(own)):
            mine[n] = weights[own[n]]
        combine_rows(rows, own, mine, begin, end, x, y, r)
        stop = share * tols[b]
        steps_in_factor(rows, own, mine, slopes[: len(own)], chosen, gram, r, zeros, steps, stop)
        rescale(mine)
        for n in range(len(own)):
            weights[own[n]] = mine[n]
        distances2[b] = combine_rows(rows, own, mine, begin, end, x, y, r)
        if stages[b] == ENDING or distances2[b] <= tols[b]:
            stages[b] = CLOSED
            fill(r[begin:end], 0.0)
        else:
            still_open += 1
    return still_open


@kernel
def factored_step(  # type: ignore[no-untyped-def]
    rows, owners, members, begins, places, count, weights, x, y, r, stages, tols, distances2,
    indices, values, cuts, error, over,
):  # fmt: skip
    """The gap, shift and line-search step of every open factor for one answer of the oracle to r,
    whose entries in factor b are those from cuts[b] up to cuts[b + 1].

    The table has room for a row of each open factor after the first `count`, `weights` too. A
    factor whose gap is small enough, or all of them when the budget is `over`, moves y on its
    half-space and ends. Returns how many rows there are now, whether y moved, and the factor in
    which the answer is worse than x, or -1.
    """
    starts, columns, entries = rows
    moved = False
    for b in range(len(tols)):
        if stages[b] != OPEN:
            continue
        begin, end, distance2 = places[b], places[b + 1], distances2[b]
        at_x, x2 = dot(r[begin:end], x[begin:end]), dot(x[begin:end], x[begin:end])
        own_indices, own_values = indices[cuts[b] : cuts[b + 1]], values[cuts[b] : cuts[b + 1]]
        at_v, x_v, v2 = 0.0, 0.0, 0.0
        for k in range(len(own_indices)):
            at_v += own_values[k] * r[own_indices[k]]
            x_v += own_values[k] * x[own_indices[k]]
            v2 += own_values[k] * own_values[k]
        drop, length2 = at_x - at_v, max(0.0, x2 - 2.0 * x_v + v2)
        if not drop + error >= -_ROUNDING * math.sqrt(distance2 * (x2 + length2)):
            return count, moved, b
        gap = max(drop + error, 0.0)
        shift = 0.0
        if over or gap * gap <= tols[b] * distance2:
            stages[b] = ENDING
            shift = max(0.0, 1.0 - gap / distance2)
            moved = moved or shift > 0.0
        step = min(1.0, max(0.0, (1.0 - shift) * drop / length2)) if length2 > 0.0 else 0.0
        for e in range(begin, end):
            y[e] += shift * r[e]
        found = -1
        for n in range(begins[b], begins[b + 1]):
            weights[members[n]] *= 1.0 - step
            if found < 0 and is_row(rows, members[n], own_indices, own_values):
                found = members[n]
        if found < 0:
            found, start = count, starts[count]
            for k in range(len(own_indices)):
                columns[start + k], entries[start + k] = own_indices[k], own_values[k]
            starts[count + 1], owners[count] = start + len(own_indices), b
            weights[count] = 0.0
            count += 1
        weights[found] += step
    return count, moved, -1
