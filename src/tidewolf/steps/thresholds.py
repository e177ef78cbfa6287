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


class TheoremSteps:
    """The theorem's values for a horizon of at least 1."""

    def __init__(self, T: int, R: float, G_g: float) -> None:
        log = math.log(T)
        self.block = math.isqrt(T)
        self.eta: float = float(T) ** -0.75
        self.delta = 32.0 * (G_g**2 + G_g * R) * math.sqrt(T * log)
        self.tol = 3.0 * 61.0 * R**2 * log / math.sqrt(T)


def frozen_at(T: int, R: float, distance: float) -> bool:
    """Whether a start at this distance from the center never moves within T rounds."""
    return TheoremSteps(T, R, 1.0).tol >= (R + distance) ** 2


def thaw(R: float, distance: float) -> int:
    """The least horizon of at least 8 from which on a start at this distance from the center can move."""
    return first(lambda T: not frozen_at(T, R, distance), 8)


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
