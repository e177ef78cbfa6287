"""Times: the median of many, since machines are noisy; only ratios within one run are worth
quoting.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter


def median_us(work: Callable[[], object], repeats: int = 200, inner: int = 1) -> float:
    """Median microseconds of one call, after a first that does not count."""
    work()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        for _ in range(inner):
            work()
        times.append((perf_counter() - start) / inner)
    return 1e6 * statistics.median(times)
