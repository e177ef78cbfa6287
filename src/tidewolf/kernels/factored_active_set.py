"""A projection on a product, factor by factor: corrective steps among the atoms of each, and the
steps that one answer of the product's oracle allows them all.

Rows of a table are a tuple (starts, indices, values), as in kernels/active_set.py; row i belongs to
factor owners[i], all of whose entries lie from places[b] to places[b + 1] - 1. Weights are those of
the first len(weights) rows and add up to 1 within each factor. Stages of a factor: CLOSED, it is
done; OPEN, the oracle may be asked; ENDING, corrective steps remain. The mathematics is in
projection/factored.py.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import DROP, ORACLE_SLACK, TIE

CLOSED, OPEN, ENDING = 0, 1, 2
_ROUNDING = ORACLE_SLACK * float(np.finfo(np.float64).eps)


@kernel
def linked_rows(owners, count, heads, after):  # type: ignore[no-untyped-def]
    """The rows of each factor as a list: heads[b], then after[row], up to -1, ascending.

    Naive twin: a comprehension over the rows, in tests/test_factored.py.
    """
    heads[:] = -1
    for row in range(count - 1, -1, -1):
        after[row] = heads[owners[row]]
        heads[owners[row]] = row


@kernel
def row_product(rows, row, d):  # type: ignore[no-untyped-def]
    """<a_row, d>.

    Naive twin: a dense row times d, in tests/test_factored.py.
    """
    starts, indices, values = rows
    total = 0.0
    for p in range(starts[row], starts[row + 1]):
        total += values[p] * d[indices[p]]
    return total


@kernel
def row_products(rows, row, members, count, zeros, products):  # type: ignore[no-untyped-def]
    """<a_row, a_m> for the first `count` members m; `zeros` has an entry for each of a point's, and
    is 0 again at the end.

    Naive twin: a matrix of dense rows times one, in tests/test_factored.py.
    """
    starts, indices, values = rows
    for p in range(starts[row], starts[row + 1]):
        zeros[indices[p]] = values[p]
    for n in range(count):
        products[n] = row_product(rows, members[n], zeros)
    for p in range(starts[row], starts[row + 1]):
        zeros[indices[p]] = 0.0


@kernel
def steps_in_factor(  # type: ignore[no-untyped-def]
    rows, members, slopes, slots, gram, count, weights, r, zeros, steps, stop
):
    """Pairwise steps among the first `count` of `members`, weights in place, r = x - y at first.

    Only rows that take part in a step get their products with the others, in `gram`, a row for each
    of at most 2 `steps`. Naive twin: `naive_projection` in tests/test_factored.py.
    """
    average = 0.0
    for n in range(count):
        slopes[n] = row_product(rows, members[n], r)
        average += weights[members[n]] * slopes[n]
    chosen = 0
    for n in range(count):
        if weights[members[n]] > 0.0 or slopes[n] < average:
            members[chosen], slopes[chosen], slots[chosen] = members[n], slopes[n], -1
            chosen += 1
    margin, known = TIE * stop, 0
    for _ in range(steps):
        i, least = 0, np.inf
        j, most = 0, -np.inf
        for n in range(chosen):
            if slopes[n] < least - margin:
                i, least = n, slopes[n]
            if slopes[n] > most + margin and weights[members[n]] > 0.0:
                j, most = n, slopes[n]
        gap = most - least
        if not gap > stop:
            return
        for n in (i, j):
            if slots[n] < 0:
                row_products(rows, members[n], members, chosen, zeros, gram[known])
                slots[n] = known
                known += 1
        at_i, at_j, step = gram[slots[i]], gram[slots[j]], weights[members[j]]
        length2 = at_i[i] - 2.0 * at_i[j] + at_j[j]
        if gap < step * length2:
            step = gap / length2
        weights[members[j]] -= step
        weights[members[i]] += step
        for n in range(chosen):
            slopes[n] += step * (at_i[n] - at_j[n])


@kernel
def factored_correct(  # type: ignore[no-untyped-def]
    rows, owners, places, weights, x, y, r, stages, tols, distances2, steps, share
):
    """Corrective steps towards y in every factor that is not closed, until its pairwise gap is at
    most `share` of its tolerance; weights, x and |x - y|^2 by factor in place.

    Factors that are near enough, or were ending, are closed; r becomes x - y where they are open
    and 0 elsewhere. Returns how many are open. Naive twin: `naive_projection` in
    tests/test_factored.py.
    """
    starts, indices, values = rows
    heads, after = np.empty(len(places) - 1, dtype=np.int64), np.empty(len(weights), dtype=np.int64)
    linked_rows(owners, len(weights), heads, after)
    counts = np.zeros(len(heads), dtype=np.int64)
    for row in range(len(weights)):
        counts[owners[row]] += 1
    most = counts.max()
    members, slots = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    slopes, gram = np.empty(most), np.empty((2 * steps, most))
    zeros, still_open = np.zeros(len(x)), 0
    for b in range(len(heads)):
        if stages[b] == CLOSED:
            continue
        count, row = 0, heads[b]
        while row >= 0:
            members[count] = row
            count += 1
            row = after[row]
        for e in range(places[b], places[b + 1]):
            r[e] = -y[e]
        for n in range(count):
            w = weights[members[n]]
            if w != 0.0:
                for p in range(starts[members[n]], starts[members[n] + 1]):
                    r[indices[p]] += w * values[p]
        if count > 1:
            stop = share * tols[b]
            steps_in_factor(
                rows, members, slopes, slots, gram, count, weights, r, zeros, steps, stop
            )
        total, row = 0.0, heads[b]
        while row >= 0:
            if not weights[row] > DROP:
                weights[row] = 0.0
            total += weights[row]
            row = after[row]
        for e in range(places[b], places[b + 1]):
            x[e] = 0.0
        row = heads[b]
        while row >= 0:
            if weights[row] != 0.0:
                weights[row] /= total
                for p in range(starts[row], starts[row + 1]):
                    x[indices[p]] += weights[row] * values[p]
            row = after[row]
        distance2 = 0.0
        for e in range(places[b], places[b + 1]):
            r[e] = x[e] - y[e]
            distance2 += r[e] * r[e]
        distances2[b] = distance2
        if stages[b] == ENDING or distance2 <= tols[b]:
            stages[b] = CLOSED
            for e in range(places[b], places[b + 1]):
                r[e] = 0.0
        else:
            still_open += 1
    return still_open


@kernel
def same_row(rows, row, order, begin, size, indices, values):  # type: ignore[no-untyped-def]
    """Whether a row holds just these entries: those at order[begin], order[begin + 1], ...

    Naive twin: rows as lists, in tests/test_factored.py.
    """
    starts, columns, entries = rows
    start = starts[row]
    if starts[row + 1] - start != size:
        return False
    for k in range(size):
        p = order[begin + k]
        if columns[start + k] != indices[p] or entries[start + k] != values[p]:
            return False
    return True


@kernel
def by_factor(indices, places, order, begins):  # type: ignore[no-untyped-def]
    """The entries of a vertex, factor by factor and else as they come: those of factor b are
    order[begins[b]] .. order[begins[b + 1] - 1].

    Naive twin: a stable sort, in tests/test_factored.py.
    """
    begins[:] = 0
    owner = np.empty(len(indices), dtype=np.int64)
    for p in range(len(indices)):
        owner[p] = np.searchsorted(places, indices[p], side="right") - 1
        begins[owner[p] + 1] += 1
    for b in range(len(begins) - 1):
        begins[b + 1] += begins[b]
    taken = begins[:-1].copy()
    for p in range(len(indices)):
        order[taken[owner[p]]] = p
        taken[owner[p]] += 1


@kernel
def factored_step(  # type: ignore[no-untyped-def]
    rows, owners, places, count, weights, x, y, r, stages, tols, distances2, vertex, error, over
):
    """The gap, shift and line-search step of every open factor for one answer of the oracle to r.

    The table has room for a row of each open factor after the first `count`, `weights` too. A
    factor whose gap is small enough, or all of them when the budget is `over`, moves y on its
    half-space and ends. Returns how many rows there are now, whether y moved, and the factor in
    which the answer is worse than x, or -1. Naive twin: `naive_projection` in
    tests/test_factored.py.
    """
    starts, columns, entries = rows
    indices, values = vertex
    order, begins = np.empty(len(indices), dtype=np.int64), np.empty(len(places), dtype=np.int64)
    by_factor(indices, places, order, begins)
    heads, after = np.empty(len(places) - 1, dtype=np.int64), np.empty(count, dtype=np.int64)
    linked_rows(owners, count, heads, after)
    moved = False
    for b in range(len(heads)):
        if stages[b] != OPEN:
            continue
        at_x, x2 = 0.0, 0.0
        for e in range(places[b], places[b + 1]):
            at_x += r[e] * x[e]
            x2 += x[e] * x[e]
        at_v, x_v, v2 = 0.0, 0.0, 0.0
        begin, size = begins[b], begins[b + 1] - begins[b]
        for k in range(size):
            p = order[begin + k]
            at_v += values[p] * r[indices[p]]
            x_v += values[p] * x[indices[p]]
            v2 += values[p] * values[p]
        drop, length2, distance2 = at_x - at_v, max(0.0, x2 - 2.0 * x_v + v2), distances2[b]
        if not drop + error >= -_ROUNDING * math.sqrt(distance2 * (x2 + length2)):
            return count, moved, b
        gap = max(drop + error, 0.0)
        shift = 0.0
        if over or gap * gap <= tols[b] * distance2:
            stages[b] = ENDING
            shift = max(0.0, 1.0 - gap / distance2)
            moved = moved or shift > 0.0
        step = min(1.0, max(0.0, (1.0 - shift) * drop / length2)) if length2 > 0.0 else 0.0
        for e in range(places[b], places[b + 1]):
            y[e] += shift * r[e]
        found, row = -1, heads[b]
        while row >= 0:
            weights[row] *= 1.0 - step
            if found < 0 and same_row(rows, row, order, begin, size, indices, values):
                found = row
            row = after[row]
        if found < 0:
            found, start = count, starts[count]
            for k in range(size):
                columns[start + k] = indices[order[begin + k]]
                entries[start + k] = values[order[begin + k]]
            starts[count + 1], owners[count], weights[count] = start + size, b, 0.0
            count += 1
        weights[found] += step
    return count, moved, -1
