"""What an approximately feasible projection returns, and the exact test of its promises.

Given y and a member to start from, (x, y') with

    I    |y' - z| <= |y - z|  for every z in K,
    II   |x - y'|^2 <= tol,  x in K,
    III  |y' - c| <= |y - c|.
"""

from __future__ import annotations

from typing import NamedTuple

from tidewolf.core.arrays import Array, inner, norm
from tidewolf.core.oracle import HasLMO


class Projected(NamedTuple):
    """A member x, its companion y, the oracle calls it took, and |x - y|^2."""

    x: Array
    y: Array
    calls: int
    distance2: float


def closer_to_all(K: HasLMO, before: Array, after: Array) -> float:
    """max over z in K of |after - z|^2 - |before - z|^2, by one oracle answer; property I holds when it is <= 0."""
    shift = before - after
    answer = K.answer(-2.0 * shift)
    largest = 2.0 * answer.vertex.inner(shift) + answer.error
    return inner(after, after) - inner(before, before) + largest


def closer_to_center(K: HasLMO, before: Array, after: Array) -> float:
    """|after - c| - |before - c|; property III holds when it is <= 0."""
    return norm(after - K.center) - norm(before - K.center)
