"""Descent factor by factor as its formulas are written, in NumPy: the naive twin of
kernels/groups.py.
"""

from typing import NamedTuple

import numpy as np

from tidewolf.sets.base import Factors


def squares(d: np.ndarray, factors: Factors) -> np.ndarray:
    """|d_b|^2 of each factor."""
    return np.add.reduceat(d.reshape(-1) ** 2, factors.starts)


def spread(each: np.ndarray, like: np.ndarray, factors: Factors) -> np.ndarray:
    """The number of each factor at all of its entries."""
    return np.repeat(each, np.diff(factors.starts, append=like.size)).reshape(like.shape)


class Sums(NamedTuple):
    S: np.ndarray
    sigma: np.ndarray
    largest: np.ndarray


class Step(NamedTuple):
    y: np.ndarray
    sums: Sums
    etas: np.ndarray


def step(y, g, sums, D, factors, scale, share, pending) -> Step:
    """One step of every factor along -share g."""
    norms2 = share**2 * squares(g, factors)
    largest = np.maximum(sums.largest, np.sqrt(norms2))
    S = sums.S + norms2 + 2.0 * pending * np.sqrt(norms2) * largest
    moves = (S > 0.0) & (D > 0.0)
    needed = np.sqrt(0.5 * S) / np.where(moves, scale * D, 1.0)
    sigma = np.where(moves, np.maximum(sums.sigma, needed), sums.sigma)
    known = np.where(moves, sigma, 1.0)
    etas = np.where(moves, 0.5 / known, 0.0)
    moved = y - share * spread(etas, y, factors) * g
    return Step(moved, Sums(S, sigma, largest), etas)


def price(before, after, norms2, D) -> float:
    """sum_b (change of sigma_b) D_b^2 + |g_b|^2/(4 sigma_b) of a step between these sums."""
    last, sigma = (
        np.array(sums.inverse_step if sums.factors is None else sums.factors.inverse_steps)
        for sums in (before, after)
    )
    moved = np.where(sigma > 0.0, norms2 / np.where(sigma > 0.0, 4.0 * sigma, 1.0), 0.0)
    return float(((sigma - last) * D**2 + moved).sum())


def past(y, x, P, factors, etas) -> tuple[float, float, bool]:
    """<P, y - x>, sum eta |P|^2 and whether P pulls at what has no step, single points aside."""
    pulls = np.where(factors.diameters > 0.0, squares(P, factors), 0.0)
    held = bool(((etas == 0.0) & (pulls > 0.0)).any())
    return float((P * (y - x)).sum()), float((etas * pulls).sum()), held


def into_balls(y, center, factors) -> np.ndarray:
    """The nearest point of the product of balls."""
    z = y - center
    lengths = np.sqrt(squares(z, factors))
    outside = lengths > factors.radii
    shares = np.where(outside, factors.radii / np.where(outside, lengths, 1.0), 1.0)
    return np.where(spread(outside, z, factors), center + spread(shares, z, factors) * z, y)
