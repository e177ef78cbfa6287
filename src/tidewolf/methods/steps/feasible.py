"""A member near y on banked oracle calls: first as near as was promised, then nearer with what is
left.

    (x, y)  <-  ActiveSet(y from x) to |x - y|^2 <= promised,
    then from there to |x - y|^2 <= aimed, while the bank lasts

The second part starts where the first ended and only brings x and y nearer, so whatever the first
part reached still holds; had one asked for the finer tolerance at once, calls that run out
in between would prove nothing about the coarser one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.projection import ActiveSet


class Feasible(NamedTuple):
    """The active set of x, its companion y, their distance, and the calls it took."""

    active: ActiveSet
    y: Array
    distance: float
    calls: int


def calls_in(bank: float) -> int:
    """Whole calls that a bank of fractions pays for."""
    return math.floor(bank + 1e-9)


def feasible(
    active: ActiveSet, K: HasLMO, y: Array, promised: float, aimed: float, bank: float
) -> Feasible:
    """As near to y as promised and then as aimed, both bounds on |x - y|^2, with the calls in the
    bank.
    """
    budget = calls_in(bank)
    _, y, calls, distance2, active = active.nearest(K, y, promised, budget)
    if aimed < distance2 and calls < budget:
        _, y, more, distance2, active = active.nearest(K, y, aimed, budget - calls)
        calls += more
    return Feasible(active, y, math.sqrt(distance2), calls)
