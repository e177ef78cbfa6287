"""Lyapunov weights: one gradient that stands for losses and constraints  (Sinha & Vaze 2024).

With Q the running violation over c G_g D and Phi(q) = exp(s q) - 1, a base learner is fed

    V grad f_t + (G_f/G_g) Phi'(Q_t) grad g_t^+,        V = T^{-p}/caution,   s = theta T^{-p},

the surrogate of ALGORITHMS 5.1 times c G_f D. If the base learner's regret on it is at most B, then for any weights w_t >= 0

    V regret + sum_t w_t g_t^+(x_t) <= B.                                                                     (*)

(Convexity, and g_t^+(x*) = 0.) Phi' grows exponentially, so weights live as 2^exponent times an ordinary number: base learners
that do not see scale never notice.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

DEFAULT_CAUTION = 10.0
"""The default of the one knob: larger values break limits less and cost more."""

C, THETA, P = 2.0, 0.5, 0.5
_STRIDE = 256
_LN2 = math.log(2.0)


class Surrogate(NamedTuple):
    """Weights of a round's gradients, both in units of 2^exponent."""

    loss: float
    constraint: float
    exponent: int


class Rates(NamedTuple):
    """V and s."""

    V: float
    s: float


@lru_cache(maxsize=64)
def rates(horizon: int, caution: float) -> Rates:
    """V = T^{-p}/caution and s = theta T^{-p}."""
    return Rates(horizon**-P / caution, THETA * horizon**-P)


def surrogate(rate: Rates, violation: float, G_f: float, G_g: float, D: float, exponent: int) -> Surrogate:
    """The weights after a total `violation`, which includes the current round. `exponent` never falls."""
    if G_g <= 0.0:
        return Surrogate(math.ldexp(rate.V, -exponent), 0.0, exponent)
    log2 = (math.log(rate.s * ratio(G_f, G_g)) + rate.s * violation / (C * G_g * D)) / _LN2
    if log2 - exponent > _STRIDE:
        exponent += _STRIDE * int((log2 - exponent) // _STRIDE)
    return Surrogate(math.ldexp(rate.V, -exponent), 2.0 ** (log2 - exponent), exponent)


def ratio(G_f: float, G_g: float) -> float:
    """G_f/G_g; 1 while no loss has had a slope, when any positive number serves."""
    return G_f / G_g if G_f > 0.0 else 1.0
