"""Strategies for a market of price relatives, and what they come to.

    r_t    prices at the end of day t over those at its beginning, one a stock
    b_t    the shares of wealth held in each stock on day t, decided before it
    wealth after T days  =  prod_t <b_t, r_t> (1 - cost * turnover_t)

turnover_t = sum_i |b_ti - h_ti|, h_t what the shares of day t - 1 have drifted to (nothing before
the first day): who buys or sells a dollar's worth pays `cost` dollars.

    EG     b_{t+1,i}  ~  b_ti exp(eta r_ti / <b_t, r_t>)              Helmbold et al. 1998
    ONS    b_{t+1} = the member nearest, in the norm of A_t, to delta inv(A_t) s_t,
           A_t = I + sum g g',  s_t = (1 + 1/beta) sum g,  g = r_t / <b_t, r_t>  Agarwal et al. 2006
    PAMR   b_{t+1} = the member nearest to b_t - tau (r_t - mean r_t),
           tau = max(0, <b_t, r_t> - eps) / |r_t - mean r_t|^2              Li et al. 2012
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
ETA, DELTA, BETA, EPSILON = 0.05, 1 / 8, 1.0, 0.5
"""The settings their authors report for this market."""


def grown(held: Floats, relatives: Floats, cost: float = 0.0) -> float:
    """What a unit of wealth becomes under shares decided day by day."""
    growth = (held * relatives).sum(axis=1)
    return float(np.exp(np.log(growth * (1.0 - cost * turnover(held, relatives))).sum()))


def turnover(held: Floats, relatives: Floats) -> Floats:
    """How much of the wealth is traded before each day, buying and selling added up."""
    drifted = held * relatives
    drifted = drifted / drifted.sum(axis=1, keepdims=True)
    before = np.vstack([np.zeros_like(held[:1]), drifted[:-1]])
    return np.asarray(np.abs(held - before).sum(axis=1))


def hold(relatives: Floats, first: Floats) -> Floats:
    """Buy once and hold."""
    worth = np.vstack([first, first * np.cumprod(relatives, axis=0)[:-1]])
    return np.asarray(worth / worth.sum(axis=1, keepdims=True))


def constant(relatives: Floats, shares: Floats) -> Floats:
    """Rebalance to the same shares every day."""
    return np.tile(shares, (len(relatives), 1))


def exponentiated_gradient(relatives: Floats) -> Floats:
    """EG."""
    return _played(relatives, lambda b, r: _normalised(b * np.exp(ETA * r / (b @ r))))


def passive_aggressive(relatives: Floats) -> Floats:
    """PAMR."""

    def step(b: Floats, r: Floats) -> Floats:
        away = r - r.mean()
        size = float(away @ away)
        return b if size == 0.0 else nearest(b - max(0.0, float(b @ r) - EPSILON) / size * away)

    return _played(relatives, step)


def online_newton(relatives: Floats) -> Floats:
    """ONS."""
    import piqp

    n = relatives.shape[1]
    A, total = np.eye(n), np.zeros(n)

    def step(b: Floats, r: Floats) -> Floats:
        nonlocal A, total
        g = r / (b @ r)
        A, total = A + np.outer(g, g), total + (1 + 1 / BETA) * g
        # |x - p|^2 in the norm of A, p = delta inv(A) total, is x'Ax - 2 delta total'x + constant
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = 1e-9
        one = np.ones((1, n))
        solver.setup(
            2 * A, -2 * DELTA * total, one, np.ones(1), None, None, None, np.zeros(n), None
        )
        solver.solve()
        return _normalised(np.maximum(solver.result.x, 0.0))

    return _played(relatives, step)


def nearest(y: Floats) -> Floats:
    """The point of the simplex nearest to y."""
    down = np.sort(y)[::-1]
    levels = (np.cumsum(down) - 1.0) / np.arange(1, len(y) + 1)
    return np.asarray(np.maximum(y - levels[np.flatnonzero(down > levels)[-1]], 0.0))


def _played(relatives: Floats, step: Callable[[Floats, Floats], Floats]) -> Floats:
    days, n = relatives.shape
    held = np.empty((days, n))
    b = np.full(n, 1.0 / n)
    for day, r in enumerate(relatives):
        held[day] = b
        b = step(b, r)
    return held


def _normalised(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())
