"""Numbers as people read them: four digits, thousands set apart, intervals as two ends or as a
number and its error.
"""

from __future__ import annotations

import math


def number(x: float | None) -> str:
    """`x` to four digits: 12,346, 1.235, 0.01235, 1.2e-13."""
    if x is None or math.isnan(x):
        return "unknown"
    if math.isinf(x):
        return "infinite" if x > 0 else "-infinite"
    size = abs(x)
    if size == 0:
        return "0"
    if size >= 1e9 or size < 1e-3:
        return f"{x:.1e}"
    return f"{x:,.0f}" if size >= 1000 else f"{x:.4g}"


def interval(ends: tuple[float, float], parts: int = 1) -> str:
    """Both ends divided by `parts`; a number and its error where four digits cannot tell them
    apart.
    """
    lower, upper = (number(end / parts) for end in ends)
    if lower != upper:
        return f"[{lower}, {upper}]"
    error = (ends[1] - ends[0]) / (2 * parts)
    return f"{upper} \u00b1 {error:.0e}" if 0 < error < math.inf else upper


def short(x: float) -> str:
    """`x` for the tick of an axis: 2.5k, 10M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(x) >= unit:
            return f"{x / unit:g}{letter}"
    return f"{x:g}"
