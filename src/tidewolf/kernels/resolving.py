"""What advisers propose that re-solve linear programs, after each round and in the same pass.

After round t adviser a has seen its costs and capacities, and proposes for round t + 1 the best
points of round t + 1 - backs[a], one for each of its headrooms (experts/resolve.py):

    m <- 0.98 m + 0.02 max(0, c_{t-1} - c_t)^2,    r = sqrt(m/(1 - 0.98^k))     experts/recent.py
    z = argmin { <f, x> : x in K, x <= c - kappa r },  from the basis of the round before

All that advisers know is in one array of numbers and one of whole numbers, `views` of which have
names. Programs of adviser a are those from parts[a] up to parts[a + 1]. Costs and capacities of the
rounds before BEGIN are the rows of two more arrays, the newest last.
"""

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import copy_to
from tidewolf.kernels.boxed_dual import solve

# How many there are of each, at the start of the whole numbers, and the first round that is given.
ADVISERS, ENTRIES, PROGRAMS, ROWS, COLUMNS, NONZEROS, BEGIN, SIZES = range(8)
# The share of a round in the mean of squared drops; larger drops count as the second number, whose
# square is finite.
FORGETTING, LARGEST_DROP = 0.02, 1e150


@kernel
def views(floats, ints):  # type: ignore[no-untyped-def]
    """The arrays that both hold, in order: those of advisers, and their program (boxed_dual.py).
    Reference: what was written there, in tests/test_rounds.py.
    """
    A, n, P, m, N, nz = ints[0], ints[1], ints[2], ints[3], ints[4], ints[5]
    a = SIZES
    backs, parts, counted = ints[a : a + A], ints[a + A : a + 2 * A + 1], ints[a + 2 * A + 1 :][:A]
    a += 3 * A + 1
    ages, bases, cold = ints[a : a + A], ints[a + A :][: A * m], ints[a + A + A * m :][:m]
    a += A + A * m + m
    starts, rows = ints[a : a + N + 1], ints[a + N + 1 :][:nz]
    headrooms, drops, a = floats[:P], floats[P : P + A * n].reshape((A, n)), P + A * n
    inverses = floats[a : a + A * m * m].reshape((A, m, m))
    a += A * m * m
    values, b, top = floats[a : a + nz], floats[a + nz :][:m], floats[a + nz + m :][:N]
    a += nz + m + N
    base, give, origin = floats[a : a + n], floats[a + n :][:n], floats[a + 2 * n :][:n]
    numbers = floats[a + 3 * n : a + 3 * n + 2]
    own = (backs, parts, counted, ages, bases.reshape((A, m)), cold, headrooms, drops, inverses)
    return own, (starts, rows, values, b, top, base, give, origin, numbers)


@kernel
def row_of_round(r, rows, past, begin, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the row of round r; whether it is known. Reference: that of `resolve`."""
    back = r - begin + len(past)
    for e in range(len(out) if back >= 0 else 0):
        out[e] = rows[r, e] if r >= begin else past[back, e]
    return back >= 0


@kernel
def resolve(  # type: ignore[no-untyped-def]
    solver, t, costs, capacities, Z, awake, floats, ints, past_costs, past_capacities
):
    """What advisers propose after round t, in the last rows of Z, and what they remember; how many
    programs were solved, -1 if one was not: then nothing has changed. `solver` is the address of
    `solve_boxed`.

    Reference: `Resolve.observe_round` and `Resolve.propose`, in tests/test_rounds.py.
    """
    own, program = views(floats, ints)
    backs, parts, counted, ages, bases, cold, headrooms, drops, inverses = own
    starts, rows, values, b, top, base, give, origin, numbers = program
    A, n, P, begin = len(backs), Z.shape[1], len(headrooms), ints[BEGIN]
    points, shifts, pivots = np.empty((P, n)), np.empty(P), np.empty(P + 1, np.int64)
    known, new_drops, new_counted = np.zeros(A, np.bool_), drops.copy(), counted.copy()
    new_bases, new_inverses, new_ages = bases.copy(), inverses.copy(), ages.copy()
    f, c, room, solved = np.empty(n), np.empty(n), np.zeros(n), 0
    for a in range(A):
        low, high, keeps = parts[a], parts[a + 1], False
        for p in range(low, high):
            keeps = keeps or headrooms[p] > 0.0
        if keeps and row_of_round(t - 1, capacities, past_capacities, begin, c):
            for e in range(n):
                drop = min(max(c[e] - capacities[t, e], 0.0), LARGEST_DROP)
                new_drops[a, e] += FORGETTING * (drop * drop - new_drops[a, e])
            new_counted[a] += 1
        known[a] = row_of_round(t + 1 - backs[a], costs, past_costs, begin, f)
        if not known[a]:
            continue
        row_of_round(t + 1 - backs[a], capacities, past_capacities, begin, c)
        share = 1.0 - math.pow(1.0 - FORGETTING, float(new_counted[a]))
        for e in range(n):
            room[e] = math.sqrt(new_drops[a, e] / share) if share > 0.0 else 0.0
        found, there = pivots[low : high + 1], False
        for attempt in range(2):
            if not there:
                basis, age = (bases[a], ages[a]) if attempt == 0 else (cold, -1)
                there = solve(
                    solver, starts, rows, values, b, top, 0, base, give, origin, numbers[0], f, c,
                    room, headrooms[low:high], basis, inverses[a], age, new_bases[a],
                    new_inverses[a], points[low:high], shifts[low:high], found, numbers[1],
                )  # fmt: skip
        if not there:
            return -1
        new_ages[a] = found[high - low]
    for a in range(A):
        counted[a], ages[a] = new_counted[a], new_ages[a]
        copy_to(new_drops[a], drops[a])
        copy_to(new_bases[a], bases[a])
        for i in range(len(bases[a])):
            copy_to(new_inverses[a, i], inverses[a, i])
        for p in range(parts[a], parts[a + 1]):
            place = len(Z) - P + p
            awake[place] = 1.0 if known[a] else 0.0
            if known[a]:
                copy_to(points[p], Z[place])
                solved += 1
    return solved
