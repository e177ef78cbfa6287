"""Descent factor by factor: what its prices are, and numbers of factors at their entries."""

import numpy as np


def squares(d, factors):
    """|d_b|^2 of each factor."""
    return np.array([float(part @ part) for part in np.split(d.reshape(-1), factors.starts[1:])])


def spread(each, like, factors):
    """The number of each factor at all of its entries."""
    return np.repeat(each, np.diff(factors.starts, append=like.size)).reshape(like.shape)


def price(before, after, norms2, D):
    """sum_b (change of sigma_b) D_b^2 + |g_b|^2/(4 sigma_b) of a step between these sums."""
    last, sigma = before.inverse_steps, after.inverse_steps
    moved = np.where(sigma > 0.0, norms2 / np.where(sigma > 0.0, 4.0 * sigma, 1.0), 0.0)
    return float(((sigma - last) * D**2 + moved).sum())
