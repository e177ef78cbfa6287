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
from typing import NamedTuple

DEFAULT_CAUTION = 10.0
"""The default of the one knob: larger values break limits less and cost more."""

C, THETA, P = 2.0, 0.5, 0.5
_STRIDE = 256


class Surrogate(NamedTuple):
    """Weights of a round's gradients, both in units of 2^exponent."""

    loss: float
    constraint: float
    exponent: int


def loss_weight(horizon: int, caution: float) -> float:
    """V."""
    return horizon**-P / caution


def surrogate(horizon: int, caution: float, violation: float, G_f: float, G_g: float, D: float, exponent: int) -> Surrogate:
    """The weights after a total `violation`, which includes the current round. `exponent` never falls."""
    V = loss_weight(horizon, caution)
    if G_g <= 0.0:
        return Surrogate(math.ldexp(V, -exponent), 0.0, exponent)
    log2 = (math.log(growth(horizon) * ratio(G_f, G_g)) + growth(horizon) * violation / (C * G_g * D)) / math.log(2.0)
    if log2 - exponent > _STRIDE:
        exponent += _STRIDE * int((log2 - exponent) // _STRIDE)
    return Surrogate(math.ldexp(V, -exponent), 2.0 ** (log2 - exponent), exponent)


def growth(horizon: int) -> float:
    """s."""
    return THETA * horizon**-P


def ratio(G_f: float, G_g: float) -> float:
    """G_f/G_g; 1 while no loss has had a slope, when any positive number serves."""
    return G_f / G_g if G_f > 0.0 else 1.0
