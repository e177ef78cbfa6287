"""Linear minimisers of simplices: arrays in, arrays out.

    oracle(d, kernel_data, indices, values) -> count

writes the nonzero entries of the vertex that is best for the direction d to the start of `indices`
and `values`, and returns how many there are (`sets.Compiled`).
"""

from __future__ import annotations

from tidewolf.core.jit import kernel


@kernel
def cheapest_entry(d, kernel_data, indices, values):  # type: ignore[no-untyped-def]
    """The total on the first of the least entries of d, where that one is below the limit.

    `kernel_data` is the total and the limit: infinity, or 0 where the sum may be less. Its naive
    twin in the tests is `Simplex.answer`.
    """
    total, limit = kernel_data
    i = 0
    for e in range(1, len(d)):
        if d[e] < d[i]:
            i = e
    if not d[i] < limit:
        return 0
    indices[0], values[0] = i, total
    return 1


@kernel
def cheapest_entries(d, shares, indices, values):  # type: ignore[no-untyped-def]
    """The shares on as many of the least entries of d, the last share on the dearest; ties go to
    the earlier entry. Its naive twin in the tests is `CappedSimplex.answer`.
    """
    dearest, ties = kth_least(d.copy(), len(shares) - 1), len(shares)
    for e in range(len(d)):
        if d[e] < dearest:
            ties -= 1
    first, count = len(shares) - ties, 0
    below, tied = 0, first
    for e in range(len(d)):
        if d[e] < dearest:
            indices[count], values[count] = e, shares[below]
            below, count = below + 1, count + 1
        elif d[e] == dearest and tied < len(shares):
            indices[count], values[count] = e, shares[tied]
            tied, count = tied + 1, count + 1
    return count


@kernel
def kth_least(a, k):  # type: ignore[no-untyped-def]
    """Entry k of `a` in order, which is rearranged: the part that holds it is split about its
    middle entry until all in it are equal. Its naive twin in the tests is `numpy.partition`.
    """
    low, high = 0, len(a) - 1
    while low < high:
        pivot, i, j = a[(low + high) // 2], low, high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i, j = i + 1, j - 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            return pivot
    return a[k]
