"""From which horizon on the primal-dual theorems have something to say
(Garber & Kretzu 2024, which asks for "T large").

Theorem 4.1, with block b = floor(T^{1/2}), eta = T^{-3/4}, delta = 32 (G_g^2 + G_g R) T^{1/2}
sqrt(ln T) and tol = 183 R^2 T^{-1/2} ln T:

    frozen      tol >= (R + |x_1 - c|)^2   no y of the ball is ever too far from x_1: x never moves
    condition   delta^2 eta^3 b^2 + eta b^2 G_g^2 + G_g sqrt(tol) b  <=  eta b delta/2

ln T/T^{1/2} falls from T = 8 on, so thawing is one crossing. The condition, divided by eta b delta,
gets easier along the T with equal b (its terms in T fall, that of tol stays) and along the squares
T = b^2, where it is hardest for its b: two searches by halving.

Theorem A.1, on bandits, with G = max(G_f, G_g, M_f, M_g), n the dimension, r the inner radius, the
same b and tol, mu = (n r)^{1/2} T^{-1/4}, eta = R/(n^{1/2} G) T^{-3/4} and, with s = max(n/r,
n/r^{1/2}, n^{1/2}, n/(r^{1/2} R)), delta = 24 sqrt(183) G^2 s T^{1/2} sqrt(ln T):

    possible    mu <= r, that is T >= n^2/r^2   else no ball of radius mu fits into K
    condition   eta b (n^2 M_g^2/mu^2 + b G_g^2 + b delta^2 eta^2)
        + sqrt(tol b) (n M_g/mu + b^{1/2} G_g) + b mu (G_g + M_g/r)
                <=  eta b delta/2

which is what its proof supposes of the multiplier's terms (the proof then asks delta to be twelve
times the largest of six terms, which is sufficient, and about thirty times as late). Divided by eta
b delta, with u = 24 sqrt(183) and L = sqrt(ln T): the terms of delta^2 are b delta
eta^2 = (u s R^2/n) L T^{-1/2} for b = T^{1/2}; both of tol are at most 1/24; all others are at most
1/(u L). So where it fails, b delta eta^2 > 1/2 - 1/12 - 4/(u L) > 0.38, and that term falls by a
share of 2/b while T passes those with equal b, much faster than the only one that grows there (that
of n M_g/mu, at most 1/24, by a share of 1/(2b)): again the condition gets easier along equal b, and
along the squares, where b delta eta^2 falls and no term grows; the same two searches.
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
        self.tol = paper_tolerance(T, R)


def paper_tolerance(T: int, R: float) -> float:
    """3 eps, the bound on |x - y|^2 that all three theorems use."""
    return 3.0 * 61.0 * R**2 * math.log(T) / math.sqrt(T)


class BanditTheoremSteps(TheoremSteps):
    """The bandit theorem's values; G is the largest of the slopes and sizes."""

    def __init__(self, T: int, R: float, r: float, n: int, G: float) -> None:
        super().__init__(T, R, 1.0)
        self.mu: float = math.sqrt(n * r) * float(T) ** -0.25
        self.eta: float = R / (math.sqrt(n) * G) * float(T) ** -0.75
        shape = max(n / r, n / math.sqrt(r), math.sqrt(n), n / (math.sqrt(r) * R))
        self.delta = 24.0 * math.sqrt(183.0) * G**2 * shape * math.sqrt(T * math.log(T))


def frozen_at(T: int, R: float, distance: float) -> bool:
    """Whether a start at this distance from the center never moves within T rounds."""
    return paper_tolerance(T, R) >= (R + distance) ** 2


def first_moving_horizon(R: float, distance: float) -> int:
    """The least horizon of at least 8 from which on a start at this distance from the center can
    move.
    """
    return least_holding(lambda T: not frozen_at(T, R, distance), 8)


def frozen_sentence(T: int, R: float, distance: float) -> str:
    """That such a start never moves, and from which horizon on it does."""
    return (
        f"With horizon = {T} the theorem's tolerance never asks the point to leave its start: no "
        f"oracle call is made unless the horizon is at least {first_moving_horizon(R, distance)}."
    )


def condition_at(T: int, R: float, G_g: float) -> bool:
    """Whether the theorem's condition holds at T."""
    s = TheoremSteps(T, R, G_g)
    b, eta, delta = s.block, s.eta, s.delta
    return (
        delta**2 * eta**3 * b**2 + eta * b**2 * G_g**2 + G_g * math.sqrt(s.tol) * b
        <= eta * b * delta / 2.0
    )


def primal_dual_condition(R: float, G_g: float) -> int:
    """The least horizon of at least 9 from which on the theorem's condition holds."""
    b = least_holding(lambda b: condition_at(b * b, R, G_g), 3)
    return least_holding(lambda T: b * b <= T or condition_at(T, R, G_g), max(9, (b - 1) ** 2))


def explorable_from(r: float, n: int) -> int:
    """The least horizon with mu <= r, a hair below for rounding."""
    return max(1, math.ceil((n / r) ** 2 * (1.0 - 1e-12)))


def bandit_condition_at(
    T: int, R: float, r: float, n: int, G_f: float, G_g: float, M_f: float, M_g: float
) -> bool:
    """Whether the bandit theorem's condition holds at T."""
    s = BanditTheoremSteps(T, R, r, n, max(G_f, G_g, M_f, M_g))
    b, eta, delta, mu = s.block, s.eta, s.delta, s.mu
    squares = eta * b * ((n * M_g / mu) ** 2 + b * G_g**2 + b * (delta * eta) ** 2)
    distances = math.sqrt(s.tol * b) * (n * M_g / mu + math.sqrt(b) * G_g)
    return squares + distances + b * mu * (G_g + M_g / r) <= eta * b * delta / 2.0


def bandit_condition(
    R: float, r: float, n: int, G_f: float, G_g: float, M_f: float, M_g: float
) -> int:
    """The least horizon of at least 9 from which on the bandit theorem's condition holds, and
    exploring is possible.
    """

    def holds(T: int) -> bool:
        return bandit_condition_at(T, R, r, n, G_f, G_g, M_f, M_g)

    b = least_holding(lambda b: holds(b * b), 3)
    return max(
        explorable_from(r, n), least_holding(lambda T: b * b <= T or holds(T), max(9, (b - 1) ** 2))
    )


def least_holding(holds: Callable[[int], bool], least: int) -> int:
    """The least number of at least `least` that holds, where whatever is above one that holds does
    too.
    """
    high = least
    while not holds(high):
        high *= 2
    low = max(least, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
