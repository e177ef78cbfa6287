"""Descent on a product, every factor with a step of its own, without arrays in between.

Factor b has the entries from starts[b] up to those of the next; where every factor is one entry, as
in a box, loops run over entries. Kernels take the factors from `first` up to `stop`; etas and
lengths have one number for each of those. The mathematics is in methods/steps/adagrad.py and
group.py:

    S_b += |phi g_b|^2,  sigma_b = max( sigma_b, sqrt(S_b/2)/(scale D_b) ),  eta_b = 1/(2 sigma_b),
    u_b = y_b - eta_b phi g_b.

Loops are small and write one array, so that compilers turn them into vector code. Naive twins are
the formulas in NumPy, in tests/test_groups.py.
"""

from __future__ import annotations

import math

from tidewolf.core.jit import kernel
from tidewolf.kernels.simplices import added

BLOCK = 1024
"""So many entries at a time stay in the cache."""


@kernel
def end_of(starts, b, n):  # type: ignore[no-untyped-def]
    """The first entry behind factor b."""
    return starts[b + 1] if b + 1 < len(starts) else n


@kernel
def factor_lengths(d, starts, first, stop, lengths):  # type: ignore[no-untyped-def]
    """|d_b| of every factor."""
    if len(starts) == len(d):
        own = d[first:stop]
        for b in range(len(own)):
            lengths[b] = abs(own[b])
        return
    for b in range(first, stop):
        total = 0.0
        for e in range(starts[b], end_of(starts, b, len(d))):
            total += d[e] * d[e]
        lengths[b - first] = math.sqrt(total)


@kernel
def factor_etas(D, scale, S, sigma, etas):  # type: ignore[no-untyped-def]
    """Of some factors sigma, in place, and eta, 0 where there is no step."""
    count = len(S)
    for b in range(count):
        etas[b] = math.sqrt(0.5 * S[b]) / (scale * (D[b] if D[b] > 0.0 else 1.0))
    for b in range(count):
        sigma[b] = etas[b] if (D[b] > 0.0) & (etas[b] > sigma[b]) else sigma[b]
    for b in range(count):
        eta = 0.5 / (sigma[b] if sigma[b] > 0.0 else 1.0)
        etas[b] = eta if (S[b] > 0.0) & (D[b] > 0.0) else 0.0


@kernel
def factor_steps(  # type: ignore[no-untyped-def]
    g, share, y, starts, D, pending, scale, sums, etas, target, first, stop
):
    """Every factor's step from y along -share g: where it leads, and eta; the sums, rows S, sigma
    and the largest |g|, in place. Returns S, added up.
    """
    S, sigma, largest = sums[0, first:stop], sums[1, first:stop], sums[2, first:stop]
    factor_lengths(g, starts, first, stop, etas)
    for b in range(len(S)):
        length = share * etas[b]
        largest[b] = length if length > largest[b] else largest[b]
        S[b] += length * length + 2.0 * pending * length * largest[b]
    factor_etas(D[first:stop], scale, S, sigma, etas)
    if len(starts) == len(g):
        there, here, own = target[first:stop], y[first:stop], g[first:stop]
        for b in range(len(S)):
            there[b] = here[b] - share * etas[b] * own[b]
    else:
        for b in range(first, stop):
            step = share * etas[b - first]
            for e in range(starts[b], end_of(starts, b, len(g))):
                target[e] = y[e] - step * g[e]
    return added(S)


@kernel
def overshoot(P, y, x, starts, diameters, etas, first, stop):  # type: ignore[no-untyped-def]
    """<P, y - x>, sum_b eta_b |P_b|^2, and whether P pulls at a factor that has no step; a single
    point is where it is: what P does there is rounding.
    """
    along, pulled, held = 0.0, 0.0, False
    for b in range(first, stop):
        pull = 0.0
        for e in range(starts[b], end_of(starts, b, len(P))):
            if P[e] != 0.0:
                along += P[e] * (y[e] - x[e])
                pull += P[e] * P[e]
        if pull > 0.0 and diameters[b] > 0.0:
            pulled += etas[b - first] * pull
            held = held or etas[b - first] == 0.0
    return along, pulled, held


@kernel
def give_back(y, P, share, starts, etas, first, stop):  # type: ignore[no-untyped-def]
    """y_b += share eta_b P_b, in place."""
    for b in range(first, stop):
        step = share * etas[b - first]
        for e in range(starts[b], end_of(starts, b, len(P))):
            y[e] += step * P[e]


@kernel
def onto_balls(y, center, radii, starts, nearest):  # type: ignore[no-untyped-def]
    """The nearest point of the product of balls; returns whether y is another one."""
    outside = False
    for b in range(len(starts)):
        begin, end, length2 = starts[b], end_of(starts, b, len(y)), 0.0
        for e in range(begin, end):
            length2 += (y[e] - center[e]) * (y[e] - center[e])
            nearest[e] = y[e]
        length = math.sqrt(length2)
        if length > radii[b]:
            outside = True
            for e in range(begin, end):
                nearest[e] = center[e] + radii[b] / length * (y[e] - center[e])
    return outside
