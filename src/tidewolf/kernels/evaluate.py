"""Built-in functions of one round, in loops: their value, and a subgradient.

A batch is a kind, a matrix and a vector of numbers, and how many pieces a round has:

    LINEAR     <A_t, x>                         AFFINE      <A_t, x> - b_t
    CAPACITY   max_i x_i - A_ti                 MAX_AFFINE  max_j <A_tj, x> - b_tj
    UNLIMITED  -1                               GIVEN       b_t with the gradient A_t, seen before
    LOADS      max_l sum_p load_lp d_t,pair(p) x_p - offset_tl

The rows of LOADS are a round's demands d_t, then its offsets, one for each link or one for all; b
is how many offsets there are, where the stored numbers of each link start and end, and of each
number its path, its pair and its load (functions/loads.py).

Capacities below b_0 have no value: they need a warning.

Ties go to the first piece, as in the functions' own `subgradient`.
"""

import math

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import BLOCK, copy_to, dot, fill
from tidewolf.kernels.simplices import least_of

# Pieces are at most so large; of others there is no value. Slopes are at least so large, and parts
# of a gradient within aff(K) are rounding up to this share of it.
LEAST, MOST = 1e-140, 1e140
SLACK = 1e3 * float(np.finfo(np.float64).eps)
# Loads up to this size need no capacity.
NO_LOAD = 1e-12
LINEAR, AFFINE, CAPACITY, MAX_AFFINE, UNLIMITED, GIVEN, LOADS = range(7)
# Kinds of losses and of limits that large points know; gradients that are given may be others.
ONE_ROW, ONE_ENTRY = (LINEAR, GIVEN), (CAPACITY, UNLIMITED, GIVEN)
BY_ENTRY = (LINEAR, CAPACITY), (LINEAR, UNLIMITED)  # never others


# The share of the largest limit from which on a violation is more than rounding.
BROKEN = 1e-9


@kernel
def fullest_link(given, b, links, x, pieces, gradient):  # type: ignore[no-untyped-def]
    """The largest load less its offset, with the gradient of the first link that has it.

    Reference: `values` and `subgradient` of `LinkLoads`, in tests/test_rounds.py.
    """
    offsets, starts = int(b[0]), b[1 : links + 2]
    size, pairs = int(starts[links]), len(given) - offsets
    path, pair = b[links + 2 : links + 2 + size], b[links + 2 + size : links + 2 + 2 * size]
    load, fullest, strange = b[links + 2 + 2 * size :], 0, 0
    for l in range(links):
        carried = 0.0
        for p in range(int(starts[l]), int(starts[l + 1])):
            carried += load[p] * given[int(pair[p])] * x[int(path[p])]
        pieces[l] = carried - given[pairs + (l if offsets > 1 else 0)]
        strange += not abs(pieces[l]) <= MOST
        if pieces[l] > pieces[fullest]:
            fullest = l
    fill(gradient, 0.0)
    for p in range(int(starts[fullest]), int(starts[fullest + 1])):
        gradient[int(path[p])] += load[p] * given[int(pair[p])]
    return pieces[fullest] if strange == 0 else np.nan


@kernel
def fullest_entry(x, capacities, least, pieces):  # type: ignore[no-untyped-def]
    """The first entry that is most over its capacity, and by how much: no number where one is
    strange, or below the least capacity. `pieces` may have room for one block alone.
    Reference: that of `evaluate`.
    """
    fullest, most, strange, step = 0, x[0] - capacities[0], 0, len(pieces) >= len(x)
    for low in range(0, len(x), BLOCK):
        high, above = min(low + BLOCK, len(x)), 0
        own, room = x[low:high], capacities[low:high]
        p = pieces[step * low : step * low + high - low]
        for i in range(high - low):
            p[i] = own[i] - room[i]
            strange += not (abs(p[i]) <= MOST and room[i] >= least)
            above += p[i] > most
        for i in range(high - low if above > 0 else 0):
            if p[i] > most:
                fullest, most = low + i, p[i]
    return fullest, most if strange == 0 else np.nan


@kernel
def note_peaks(kind, A, b, t, now, x, pieces, used, when):  # type: ignore[no-untyped-def]
    """The largest load over capacity of each link so far, and its round; `pieces` are those of this
    round. Reference: `Peaks` of evaluation/tracking.py.
    """
    offsets = 0 if kind == CAPACITY else int(b[0])
    first = A.shape[1] - offsets
    for low in range(0, len(used), BLOCK):
        high, more = min(low + BLOCK, len(used)), 0
        most, rounds = used[low:high], when[low:high]
        if kind == CAPACITY:
            loads, room = x[low:high], A[t, low:high]
            for i in range(high - low):
                more += loads[i] > most[i] * room[i]
            for i in range(high - low if more > 0 else 0):  # without branches
                is_more = loads[i] > most[i] * room[i] and (room[i] > 0.0 or loads[i] > NO_LOAD)
                share = loads[i] / room[i] if room[i] > 0.0 else np.inf
                most[i] = share if is_more else most[i]
                rounds[i] = now if is_more else rounds[i]
        for i in range(high - low if kind != CAPACITY else 0):
            load, capacity = pieces[low + i] + A[t, first], 1.0
            if offsets > 1:
                capacity = A[t, first + low + i]
                load = pieces[low + i] + capacity
            if load > most[i] * capacity and (capacity > 0.0 or load > NO_LOAD):
                most[i], rounds[i] = load / capacity if capacity > 0.0 else np.inf, now


@kernel
def evaluate(kind, A, b, count, t, x, pieces, gradient):  # type: ignore[no-untyped-def]
    """The value of round t at x, with the gradient there; `pieces` gets those of several.

    Reference: `values` and `subgradient` of the functions, in tests/test_rounds.py.
    """
    if kind == UNLIMITED:
        fill(gradient, 0.0)
        return -1.0
    if kind == CAPACITY:
        fullest, most = fullest_entry(x, A[t], b[0], pieces)
        fill(gradient, 0.0)
        gradient[fullest] = 1.0
        return most
    if kind == LOADS:
        return fullest_link(A[t], b, count, x, pieces, gradient)
    row, value = t, 0.0
    if kind == MAX_AFFINE:
        row, strange = t * count, 0
        for j in range(count):
            pieces[j] = dot(A[t * count + j], x) - b[t * count + j]
            strange += not abs(pieces[j]) <= MOST
            if pieces[j] > pieces[row - t * count]:
                row = t * count + j
        value = pieces[row - t * count] if strange == 0 else np.nan
    elif kind == GIVEN:
        value = b[t]
    else:
        value = dot(A[t], x) - (b[t] if kind == AFFINE else 0.0)
    copy_to(A[row], gradient)
    return value


@kernel
def vanishes(gradient):  # type: ignore[no-untyped-def]
    """Whether all entries are 0, and not only too small to be squared.

    Reference: `numpy.any`, in tests/test_rounds.py.
    """
    size = 0.0
    for e in range(len(gradient)):
        size = max(size, abs(gradient[e]))
    return size == 0.0


@kernel
def slope_of(norm2, along2, most, radius):  # type: ignore[no-untyped-def]
    """The slope of a gradient of square `norm2` whose part within aff(K) has the square `along2`; 0
    where only rounding is left of that, -1 where the gradient is no usual one.

    Reference: `tangent_part` of methods/steps/slopes.py.
    """
    if norm2 == 0.0:
        return 0.0
    if not LEAST * LEAST <= norm2 <= MOST * MOST:
        return -1.0
    if along2 <= SLACK * SLACK * norm2:
        return 0.0
    slope = math.sqrt(along2)
    usual = slope <= most * (1.0 + 1e-9) and LEAST <= slope * radius <= MOST
    return slope if usual else -1.0


@kernel
def count_limits(t, limits, most, each, when):  # type: ignore[no-untyped-def]
    """By how much each limit of a round was broken, `most` at most, added to `each`; `when` has
    rows for how often, the worst round, the first and the last; the worst violation is each[1].

    Reference: `Breaches` of evaluation/tracking.py.
    """
    size = BROKEN * max(-least_of(limits), most)
    for low in range(0, len(limits), BLOCK):
        high, some = min(low + BLOCK, len(limits)), 0
        over = limits[low:high]
        for i in range(high - low):
            some += over[i] > 0.0
        total, worst = each[0, low:high], each[1, low:high]
        often, worst_at = when[0, low:high], when[1, low:high]
        first, last = when[2, low:high], when[3, low:high]
        for i in range(high - low if some > 0 else 0):
            if over[i] > 0.0:
                total[i] += over[i]
                if over[i] > size:
                    often[i] += 1
                    if first[i] == 0:
                        first[i] = t + 1
                    last[i] = t + 1
                    if over[i] > worst[i]:
                        worst[i], worst_at[i] = over[i], t + 1
