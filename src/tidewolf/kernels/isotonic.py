"""Isotonic regression by pooling adjacent violators.

scipy.optimize.isotonic_regression takes 9.5, 9.8 and 83 microseconds for 10, 100 and 10,000
entries, the kernel 0.6, 1.0 and 78 (lower is better): a projection of 10 entries is twice as fast
with it. SciPy would also need y - w, in which rounding loses w if y is far away.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.jit import kernel


@kernel
def pool_adjacent_violators(y, w, x):  # type: ignore[no-untyped-def]
    """Fill x with the projection of y, sorted downwards, on the permutahedron of w, sorted
    downwards.

    Pool p holds entries first[p] .. first[p + 1] - 1. Reference: SciPy's isotonic
    regression, in tests/test_orders.py.
    """
    mean_y, mean_w = np.empty(len(y)), np.empty(len(y))
    first = np.empty(len(y) + 1, dtype=np.int64)
    pools = 0
    for i in range(len(y)):
        mean_y[pools], mean_w[pools], first[pools] = y[i], w[i], i
        pools += 1
        while (
            pools > 1
            and mean_y[pools - 2] - mean_y[pools - 1] <= mean_w[pools - 2] - mean_w[pools - 1]
        ):
            share = (i + 1 - first[pools - 1]) / (i + 1 - first[pools - 2])
            mean_y[pools - 2] += share * (mean_y[pools - 1] - mean_y[pools - 2])
            mean_w[pools - 2] += share * (mean_w[pools - 1] - mean_w[pools - 2])
            pools -= 1
    first[pools] = len(y)
    for p in range(pools):
        off = 0.0
        for i in range(first[p], first[p + 1]):
            off += y[i] - mean_y[p]  # what rounding left in the mean
        off /= first[p + 1] - first[p]
        for i in range(first[p], first[p + 1]):
            x[i] = mean_w[p] + (y[i] - mean_y[p] - off)
