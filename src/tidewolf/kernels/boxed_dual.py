"""Linear programs in boxes, one after another, by a dual simplex on a dense inverse.

    min <c, v>   subject to   A v = b,   0 <= v_j <= min(top_j, soft_j + s give_j)

s = 0 if some v satisfies the bounds, else the least s >= 0 for which one does. Programs differ in c
and in the soft bounds only, and every variable has two bounds. So any basis is dual feasible once
each variable off the basis is at the bound that the sign of its reduced cost names, and the basis
that ended one program starts the next.

A row without an entering variable proves that s is too small. Its violation v is convex and falls
with s, so the step v/|v'| of Newton's method never passes the least s.

The state of a search is (basis, inverse, age), age the pivots since the inverse was made from the
basis, below 0 if it never was. The result depends on the arguments and this state alone.

`matrix` is A by columns, (starts, rows, values), with entries of size about 1. Costs beyond the end
of c are 0. Reference: SciPy's HiGHS in tests/test_boxed_dual.py.
"""

import numpy as np

from tidewolf.core.jit import Indirect, kernel
from tidewolf.kernels.active_set import copy_to, fill, row_product

# In place of a number of pivots: no s suffices; too many pivots; the basis lost its accuracy.
NO_POINT, LIMIT, SINGULAR = -1, -2, -3
# Pivots after which the inverse is made from the basis again.
REFRESH = 64
# Smaller entries of a row are no pivots.
SMALL = 1e-9
# Ratios that differ by less, beside the largest cost, are equal: the larger pivot is taken.
TIE = 1e-12
# Costs of 0 are raised by up to this share of the largest, each by another number: equal ones take
# many pivots without progress.
APART = 1e-9
# Pivots without progress after which reduced costs are moved as much, so that no basis returns.
STALLED = 30


@kernel
def invert(matrix, basis, inverse):  # type: ignore[no-untyped-def]
    """Fill `inverse` with that of the columns of the basis; whether there is one."""
    starts, rows, values = matrix
    m = len(basis)
    B = np.zeros((m, m))
    for i in range(m):
        for k in range(starts[basis[i]], starts[basis[i] + 1]):
            B[rows[k], i] = values[k]
    for i in range(m):
        for k in range(m):
            inverse[i, k] = 1.0 if i == k else 0.0
    for i in range(m):
        best = i
        for r in range(i + 1, m):
            if abs(B[r, i]) > abs(B[best, i]):
                best = r
        if not abs(B[best, i]) > SMALL:
            return False
        if best != i:
            for k in range(m):
                B[i, k], B[best, k] = B[best, k], B[i, k]
                inverse[i, k], inverse[best, k] = inverse[best, k], inverse[i, k]
        scale = 1.0 / B[i, i]
        for k in range(m):
            B[i, k] *= scale
            inverse[i, k] *= scale
        for r in range(m):
            factor = B[r, i]
            if r != i and factor != 0.0:
                for k in range(m):
                    B[r, k] -= factor * B[i, k]
                    inverse[r, k] -= factor * inverse[i, k]
    return True


@kernel
def reduced_costs(matrix, c, basis, inverse, d, up):  # type: ignore[no-untyped-def]
    """Fill d with c - A' pi, and `up` with which variables off the basis are at upper bounds."""
    starts, rows, values = matrix
    m = len(basis)
    pi = np.zeros(m)
    for i in range(m):
        if basis[i] < len(c) and c[basis[i]] != 0.0:
            for k in range(m):
                pi[k] += c[basis[i]] * inverse[i, k]
    for j in range(len(d)):
        v = c[j] if j < len(c) else 0.0
        for k in range(starts[j], starts[j + 1]):
            v -= pi[rows[k]] * values[k]
        d[j], up[j] = v, v < 0.0
    for i in range(m):
        d[basis[i]] = 0.0


@kernel
def left_over(matrix, b, x):  # type: ignore[no-untyped-def]
    """b - A x."""
    starts, rows, values = matrix
    left = b.copy()
    for j in range(len(x)):
        if x[j] != 0.0:
            for k in range(starts[j], starts[j + 1]):
                left[rows[k]] -= values[k] * x[j]
    return left


@kernel
def basic_values(matrix, b, u, search, x, basic):  # type: ignore[no-untyped-def]
    """Fill x with bounds, 0 in the basis, and `basic` with what the equations then say."""
    inverse, place, up = search
    for j in range(len(u)):
        x[j] = u[j] if place[j] < 0 and up[j] else 0.0
    left = left_over(matrix, b, x)
    for i in range(len(b)):
        v = 0.0
        for k in range(len(b)):
            v += inverse[i, k] * left[k]
        basic[i] = v


@kernel
def leaving(u, basis, basic, tol):  # type: ignore[no-untyped-def]
    """The row whose variable is farthest outside its bounds, and by how much above (negative:
    below); -1 if none is.
    """
    r, worst, out = -1, tol, 0.0
    for i in range(len(basis)):
        v = basic[i] if basic[i] < 0.0 else max(basic[i] - u[basis[i]], 0.0)
        if abs(v) > worst:
            r, out, worst = i, v, abs(v)
    return r, out


@kernel
def entering(d, row, u, place, up, sign, tie):  # type: ignore[no-untyped-def]
    """The variable whose reduced cost reaches 0 first; -1 if none does."""
    best, found = np.inf, -1
    for j in range(len(d)):
        if place[j] < 0 and u[j] > 0.0:
            size = -sign * row[j] if up[j] else sign * row[j]
            if size > SMALL:
                ratio = abs(d[j]) / size
                if ratio < best - tie or (ratio <= best + tie and size > abs(row[found])):
                    best, found = ratio, j
    return found


@kernel
def apart(j, size):  # type: ignore[no-untyped-def]
    """A number of up to this size, another one for each j."""
    return size * ((0.6180339887498949 * (j + 1)) % 1.0)


@kernel
def exchange(basis, place, inverse, e, r, column):  # type: ignore[no-untyped-def]
    """Put variable e in place of that of row r; `column` is what e is in the basis."""
    m, scale = len(basis), 1.0 / column[r]
    for k in range(m):
        inverse[r, k] *= scale
    for i in range(m):
        factor = column[i]
        if i != r and factor != 0.0:
            for k in range(m):
                inverse[i, k] -= factor * inverse[r, k]
    place[basis[r]], place[e] = -1, r
    basis[r] = e


@kernel
def least_shift(soft, give):  # type: ignore[no-untyped-def]
    """The least s for which no upper bound is below 0."""
    s = 0.0
    for j in range(len(soft)):
        if soft[j] < 0.0:
            s = max(s, -soft[j] / give[j])
    return s


@kernel
def more_shift(bounds, s, row, place, own, out):  # type: ignore[no-untyped-def]
    """By how much s must grow at least, as a row without an entering variable says; `own` is its
    variable, `out` by how much that is above its bounds, or below.
    """
    top, soft, give = bounds
    slope = 0.0
    for j in range(len(top)):
        toward = row[j] if out > 0.0 else -row[j]
        if place[j] < 0 and toward > 0.0 and soft[j] + s * give[j] < top[j]:
            slope += toward * give[j]
    if out > 0.0 and soft[own] + s * give[own] < top[own]:
        slope += give[own]
    return abs(out) / slope if slope > 0.0 else np.inf


@kernel
def solve_one(matrix, b, c, bounds, state, work, fresh, x, tol):  # type: ignore[no-untyped-def]
    """Fill x with a minimiser; the number of pivots, or a code below 0, and s. Reduced costs, and
    which variables are at upper bounds, are those of the last program unless it is `fresh`.
    """
    top, soft, give = bounds
    basis, inverse, age = state
    place, up, d, row, u, basic, column = work
    m, n, most = len(b), len(top), 0.0
    s, pivots, stalled, exact, moved = least_shift(soft, give), 0, 0, False, True
    for j in range(len(c)):
        most = max(most, abs(c[j]))
    tie = TIE * most
    if fresh:
        for j in range(n):
            place[j], u[j] = -1, 0.0
        for i in range(m):
            place[basis[i]] = i
        reduced_costs(matrix, c, basis, inverse, d, up)
    for _ in range(20 * (m + n) + 100):
        if not s < np.inf:
            return NO_POINT, s
        if age[0] >= REFRESH:
            if not invert(matrix, basis, inverse):
                return SINGULAR, s
            age[0], moved = 0, True
        if moved:  # what is basic is computed again, not updated
            for j in range(n):
                if u[j] == 0.0:  # no reduced cost was wrong for it
                    up[j] = d[j] < 0.0
                u[j] = max(0.0, min(top[j], soft[j] + s * give[j]))
            basic_values(matrix, b, u, (inverse, place, up), x, basic)
            exact, moved = True, False
        if stalled > STALLED:
            for j in range(n):
                if place[j] < 0:
                    d[j] += -apart(j, APART * most) if up[j] else apart(j, APART * most)
            stalled = 0
        r, out = leaving(u, basis, basic, tol)
        if r < 0 and exact:
            for i in range(m):
                x[basis[i]] = min(max(basic[i], 0.0), u[basis[i]])
            return pivots, s
        e, sign = -1, 1.0 if out > 0.0 else -1.0
        if r >= 0:
            for j in range(n):  # row r of inverse A
                row[j] = row_product(matrix, j, inverse[r])
            e = entering(d, row, u, place, up, sign, tie)
        if e < 0:
            if exact:
                s += more_shift(bounds, s, row, place, basis[r], out)
            moved = True
            continue
        for i in range(m):  # column e of inverse A
            column[i] = row_product(matrix, e, inverse[i])
        if not abs(column[r] - row[e]) <= 1e-6 * abs(row[e]):
            if age[0] == 0:
                return SINGULAR, s
            age[0] = REFRESH
            continue
        own, bound = basis[r], u[basis[r]] if out > 0.0 else 0.0
        theta, step = d[e] / row[e], (basic[r] - bound) / column[r]
        stalled = stalled + 1 if abs(d[e]) <= tie else 0
        for i in range(m):
            basic[i] -= step * column[i]
        for j in range(n):
            d[j] -= theta * row[j]
        basic[r], x[own] = x[e] + step, bound
        exchange(basis, place, inverse, e, r, column)
        d[e], d[own], up[own] = 0.0, -theta, out > 0.0
        exact, pivots, age[0] = False, pivots + 1, age[0] + 1
    return LIMIT, s


@kernel
def comes_first(i, j, rows, c):  # type: ignore[no-untyped-def]
    """Whether i is before j in the order of `sort_rows`, whose reference it has."""
    return rows[i] < rows[j] or (rows[i] == rows[j] and c[i] <= c[j])


@kernel
def sort_rows(rows, c, order, spare):  # type: ignore[no-untyped-def]
    """Sort the indices 0, 1, ... of `order` by row, then by c, in runs that double; equal ones stay
    in order. Its reference is `numpy.lexsort`; numba takes a second to compile what sorts.
    """
    n, width = len(order), 1
    while width < n:
        for low in range(0, n - width, 2 * width):
            middle, high = low + width, min(low + 2 * width, n)
            if comes_first(order[middle - 1], order[middle], rows, c):
                continue
            for k in range(low, middle):
                spare[k] = order[k]
            i, j, k = low, middle, low
            while i < middle:
                if j == high or comes_first(spare[i], order[j], rows, c):
                    order[k], i = spare[i], i + 1
                else:
                    order[k], j = order[j], j + 1
                k += 1
        width *= 2


@kernel
def solve_disjoint(matrix, b, order, bounds, u, x, tol):  # type: ignore[no-untyped-def]
    """The same as `solve_one` of rows that share no variable: each takes the cheapest first, in
    this order. Its reference is the same.
    """
    top, soft, give = bounds
    rows, s, more = matrix[1], least_shift(soft, give), 0.0
    for _ in range(len(top) + 2):
        left, slopes, more = b.copy(), np.zeros(len(b)), 0.0
        for j in range(len(top)):
            u[j] = max(0.0, min(top[j], soft[j] + s * give[j]))
            left[rows[j]] -= u[j]
            slopes[rows[j]] += give[j] if u[j] < top[j] else 0.0
        for i in range(len(b)):
            if left[i] > tol:
                more = max(more, left[i] / slopes[i] if slopes[i] > 0.0 else np.inf)
        if not 0.0 < more < np.inf:
            break
        s += more
    left = b.copy()
    for j in order:
        x[j] = min(u[j], left[rows[j]])
        left[rows[j]] -= x[j]
    return NO_POINT if more > 0.0 else 0, s


@kernel
def solve_boxed(  # type: ignore[no-untyped-def]
    starts, rows, values, b, top, first, base, give, origin, unit, costs, limits, room, headrooms,
    old_basis, old_inverse, old_age, basis, inverse, points, shifts, numbers, tol,
):  # fmt: skip
    """Solve all programs of a round, each from the basis of the one before it; whether all were
    solved.

        min <c, x>   subject to   x = origin + unit v, A v = b, 0 <= v <= top,
                                  v_{first+i} <= give_i (limit_i - k room_i + s - base_i)

    k = headrooms[p] in program p. Fills the new basis and inverse, and for each program x, s, and
    in `numbers` the pivots or a code; the last of these is the new age. Arrays alone, all
    writeable: tuples and read-only arrays take numba longer than the programs.
    """
    matrix, n, m, P, solved = (starts, rows, values), len(top), len(b), len(headrooms), True
    age = numbers[P:]
    age[0] = old_age if old_age >= 0 else REFRESH
    for i in range(m):
        basis[i] = old_basis[i]
        copy_to(old_inverse[i], inverse[i])
    soft, rates, v, c = np.empty(n), np.zeros(n), np.empty(n), np.zeros(n)
    work = (
        np.empty(n, np.int64), np.empty(n, np.bool_), np.empty(n), np.empty(n), np.empty(n),
        np.empty(m), np.empty(m),
    )  # fmt: skip
    fill(soft, np.inf)
    copy_to(give, rates[first:])
    size, disjoint = 0.0, m > 0
    for j in range(len(costs)):
        size = max(size, APART * abs(costs[j]))
    for j in range(len(costs)):
        c[j] = costs[j] if costs[j] != 0.0 else apart(j, size if size > 0.0 else APART)
    for i in range(m):
        disjoint = disjoint and b[i] >= 0.0
    for j in range(n):  # every variable is in one row, with factor 1: a product of simplices
        disjoint = disjoint and starts[j + 1] == j + 1 and values[j] == 1.0
    order = np.arange(n if disjoint else 0)
    sort_rows(rows, c, order, work[0])
    for p in range(P):
        for i in range(len(give)):
            kept = headrooms[p] * room[i] if headrooms[p] > 0.0 else 0.0
            soft[first + i] = give[i] * (limits[i] - kept - base[i])
        bounds, fresh = (top, soft, rates), p == 0 or numbers[p - 1] < 0
        count, total = SINGULAR, 0
        for _ in range(2):
            if disjoint:
                count, shifts[p] = solve_disjoint(matrix, b, order, bounds, work[4], v, tol)
                break
            if age[0] >= REFRESH:
                if not invert(matrix, basis, inverse):
                    return False
                age[0], fresh = 0, True
            state = (basis, inverse, age)
            count, shifts[p] = solve_one(matrix, b, c, bounds, state, work, fresh, v, tol)
            total += count
            if count < 0 or not (np.abs(left_over(matrix, b, v)) > 2.0 * tol).any():
                break
            count, age[0] = SINGULAR, REFRESH
        numbers[p] = total if count >= 0 else count
        solved = solved and count >= 0
        for i in range(len(origin)):
            points[p, i] = origin[i] + unit * v[i]
    if disjoint:
        age[0] = old_age
    return solved


_INTS, _ROW, _TABLE = np.zeros(1, np.int64), np.zeros(1), np.zeros((1, 1))
# That, behind its address.
solve: Indirect[bool] = Indirect(
    bool, _INTS, _INTS, _ROW, _ROW, _ROW, 1, _ROW, _ROW, _ROW, 1.0, _ROW, _ROW, _ROW, _ROW, _INTS,
    _TABLE, 1, _INTS, _TABLE, _TABLE, _ROW, _INTS, 1.0,
)  # fmt: skip
