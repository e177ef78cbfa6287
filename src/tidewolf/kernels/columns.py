"""Many small groups of a vector side by side: entry j of each of them is one row of an array.

Groups of a few entries are too short for loops to be worth much; with the groups along the rows,

    columns[j, r] = entry j of group `first` + r,         j < size, r < how many groups there are,

loops run over groups, without branches, and compilers turn them into vector code. Groups that are
shorter than others are filled up. Group b has the entries from starts[b] up to those of the next.
Reference implementations are in tests/test_columns.py: the same group by group.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import copy_to, fill

WIDTH = 256
"""So many groups at a time stay in the cache."""
LONGEST = 64
"""Groups of more entries are better off one by one."""


@kernel
def load_columns(a, starts, first, stop, size, filler, columns):  # type: ignore[no-untyped-def]
    """Groups `first` to `stop - 1`, of at most `size` entries, filled up with `filler`."""
    last, count = starts[stop] if stop < len(starts) else len(a), stop - first
    own = a[starts[first] : last]
    if len(own) == size * count:
        for j in range(size):
            column, e = columns[j], j
            for r in range(count):
                column[r] = own[e]
                e += size
        return
    for r in range(count):
        begin = starts[first + r] - starts[first]
        end = (starts[first + r + 1] if first + r + 1 < len(starts) else len(a)) - starts[first]
        for j in range(size):
            columns[j, r] = own[begin + j] if begin + j < end else filler


@kernel
def store_columns(columns, starts, first, stop, size, a):  # type: ignore[no-untyped-def]
    """The reverse."""
    last, count = starts[stop] if stop < len(starts) else len(a), stop - first
    own = a[starts[first] : last]
    if len(own) == size * count:
        for j in range(size):
            column, e = columns[j], j
            for r in range(count):
                own[e] = column[r]
                e += size
        return
    for r in range(count):
        begin = starts[first + r] - starts[first]
        end = (starts[first + r + 1] if first + r + 1 < len(starts) else len(a)) - starts[first]
        for j in range(end - begin):
            own[begin + j] = columns[j, r]


@kernel
def simplex_columns(columns, size, top, tau, shift, above):  # type: ignore[no-untyped-def]
    """Every group's nearest member of its simplex, in place (Michelot 1986): as `onto_simplices` of
    simplices.py, with all groups at once and as often as the slowest needs it. Groups are filled up
    with -inf, which becomes 0. The other arrays are scratch, a number a group.
    """
    count = len(top)
    copy_to(columns[0, :count], top)
    fill(tau, -1.0)
    for j in range(1, size):
        column = columns[j]
        for r in range(count):
            top[r] = column[r] if column[r] > top[r] else top[r]
    for j in range(size):
        column = columns[j]
        for r in range(count):
            column[r] -= top[r]
    for _ in range(size + 1):
        fill(above, 0.0)
        fill(shift, -1.0)
        for j in range(size):
            column = columns[j]
            for r in range(count):
                above[r] += 1.0 if column[r] > tau[r] else 0.0
            for r in range(count):
                shift[r] += column[r] if column[r] > tau[r] else 0.0
        for r in range(count):
            shift[r] /= above[r]
        grown = 0
        for r in range(count):
            grown += shift[r] > tau[r]
        if grown == 0:
            break
        for r in range(count):
            tau[r] = shift[r] if shift[r] > tau[r] else tau[r]
    for j in range(size):
        column = columns[j]
        for r in range(count):
            over = column[r] - shift[r]
            column[r] = over if over > 0.0 else 0.0


@kernel
def onto_small_simplices(y, starts, size, x):  # type: ignore[no-untyped-def]
    """The nearest x whose entries are nonnegative and sum to 1 in every group, of at most `size`
    entries each.
    """
    q = len(starts)
    columns, work = np.empty((size, WIDTH)), np.empty((4, WIDTH))
    for first in range(0, q, WIDTH):
        stop = min(q, first + WIDTH)
        count = stop - first
        load_columns(y, starts, first, stop, size, -np.inf, columns)
        simplex_columns(
            columns, size, work[0, :count], work[1, :count], work[2, :count], work[3, :count]
        )
        store_columns(columns, starts, first, stop, size, x)
