"""From which horizon on the primal-dual theorem has something to say  (Garber & Kretzu 2024, Theorem 4, which asks for "T large").

With block b = floor(T^{1/2}), eta = T^{-3/4}, delta = 32 (G_g^2 + G_g R) T^{1/2} sqrt(ln T) and tol = 3 * 61 R^2 T^{-1/2} ln T:

    frozen      tol >= (R + |x_1 - c|)^2                                   no y of the ball is ever too far from x_1: x never moves
    condition   delta^2 eta^3 b^2 + eta b^2 G_g^2 + G_g sqrt(tol) b  <=  eta b delta/2

ln T/T^{1/2} falls from T = 8 on, so thawing is one crossing. The condition, divided by eta b delta, gets easier along the T with equal b
(its terms in T fall, that of tol stays) and along the squares T = b^2, where it is hardest for its b: two searches by halving.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tidewolf.core.arrays import Array, as_own, as_point, like
from tidewolf.core.errors import NotAMember
from tidewolf.core.oracle import HasLMO
from tidewolf.sets.base import membership_tolerance


class TheoremSteps:
    """The theorem's values for a horizon of at least 1."""

    def __init__(self, T: int, R: float, G_g: float) -> None:
        log = math.log(T)
        self.block = math.isqrt(T)
        self.eta: float = float(T) ** -0.75
        self.delta = 32.0 * (G_g**2 + G_g * R) * math.sqrt(T * log)
        self.tol = paper_tolerance(T, R)


def paper_tolerance(T: int, R: float) -> float:
    """3 eps, the bound on |x - y|^2 that all three theorems use."""
    return 3.0 * 61.0 * R**2 * math.log(T) / math.sqrt(T)


def frozen_at(T: int, R: float, distance: float) -> bool:
    """Whether a start at this distance from the center never moves within T rounds."""
    return paper_tolerance(T, R) >= (R + distance) ** 2


def thaw(R: float, distance: float) -> int:
    """The least horizon of at least 8 from which on a start at this distance from the center can move."""
    return first(lambda T: not frozen_at(T, R, distance), 8)


def frozen_sentence(T: int, R: float, distance: float) -> str:
    """That such a start never moves, and from which horizon on it does."""
    return (
        f"With horizon = {T} the theorem's tolerance never asks the point to leave its start: no oracle call is made "
        f"unless the horizon is at least {thaw(R, distance)}."
    )


def as_start(K: HasLMO, first: Array | None) -> Array | None:
    """A copy of where a theorem's learner starts, if it is a member; None for the center."""
    if first is None:
        return None
    own = as_own(like(as_point(first, K.shape, "The starting point"), K.center), "The starting point")
    if (excess := K.excess(own)) > membership_tolerance(own, K.radius):
        raise NotAMember(f"The starting point is not a member of the set: its excess is {excess:.3g}.")
    return own


def condition_at(T: int, R: float, G_g: float) -> bool:
    """Whether the theorem's condition holds at T."""
    s = TheoremSteps(T, R, G_g)
    b, eta, delta = s.block, s.eta, s.delta
    return delta**2 * eta**3 * b**2 + eta * b**2 * G_g**2 + G_g * math.sqrt(s.tol) * b <= eta * b * delta / 2.0


def primal_dual_condition(R: float, G_g: float) -> int:
    """The least horizon of at least 9 from which on the theorem's condition holds."""
    b = first(lambda b: condition_at(b * b, R, G_g), 3)
    return first(lambda T: b * b <= T or condition_at(T, R, G_g), max(9, (b - 1) ** 2))


def first(holds: Callable[[int], bool], least: int) -> int:
    """The least number of at least `least` that holds, where whatever is above one that holds does too."""
    high = least
    while not holds(high):
        high *= 2
    low = max(least, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
