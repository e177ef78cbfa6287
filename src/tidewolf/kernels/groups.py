"""Descent on a product, every factor with a step of its own, without arrays in between.

Factor b has the entries from starts[b] up to those of the next; where every factor is one entry, as
in a box, loops run over entries. The mathematics is in methods/steps/adagrad.py and group.py:

    S_b += |phi g_b|^2,  sigma_b = max( sigma_b, sqrt(S_b/2)/(scale D_b) ),  eta_b = 1/(2 sigma_b),
    u_b = y_b - eta_b phi g_b.

Work goes in blocks of `BLOCK` factors, which stay in the cache, and small loops, which compilers
turn into vector code. Sums over factors are taken in eight interleaved parts, always the same ones:
their bits do not depend on how loops are compiled. Naive twins are the formulas in NumPy, in
tests/test_groups.py.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.jit import kernel

BLOCK = 1024


@kernel
def lane_sum(numbers):  # type: ignore[no-untyped-def]
    """The sum, of every eighth number first. Its naive twin is `math.fsum`."""
    whole = len(numbers) // 8 * 8
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    e, f, g, h = 0.0, 0.0, 0.0, 0.0
    for i in range(0, whole, 8):
        a += numbers[i]
        b += numbers[i + 1]
        c += numbers[i + 2]
        d += numbers[i + 3]
        e += numbers[i + 4]
        f += numbers[i + 5]
        g += numbers[i + 6]
        h += numbers[i + 7]
    for i in range(whole, len(numbers)):
        a += numbers[i]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def factor_squares(d, starts, squares):  # type: ignore[no-untyped-def]
    """|d_b|^2 of every factor."""
    q = len(starts)
    if q == len(d):
        for b in range(q):
            squares[b] = d[b] * d[b]
        return
    for b in range(q):
        total = 0.0
        for e in range(starts[b], starts[b + 1] if b + 1 < q else len(d)):
            total += d[e] * d[e]
        squares[b] = total


@kernel
def factor_etas(D, scale, S, sigma, etas):  # type: ignore[no-untyped-def]
    """Of some factors sigma, in place, and eta, 0 where there is no step."""
    count = len(S)
    for b in range(count):
        etas[b] = math.sqrt(0.5 * S[b]) / (scale * (D[b] if D[b] > 0.0 else 1.0))
    for b in range(count):
        etas[b] = etas[b] if (D[b] > 0.0) & (etas[b] > sigma[b]) else sigma[b]
    for b in range(count):
        sigma[b] = etas[b]
    for b in range(count):
        eta = 0.5 / (sigma[b] if sigma[b] > 0.0 else 1.0)
        etas[b] = eta if (S[b] > 0.0) & (D[b] > 0.0) else 0.0


@kernel
def factor_steps(  # type: ignore[no-untyped-def]
    g, share, y, starts, D, pending, scale, before, after, etas, target
):
    """Every factor's step from y along -share g: where it leads, eta, and the sums after it, rows
    S, sigma and the largest |g|. Returns S, added up.
    """
    q, n, square_sum = len(starts), len(g), 0.0
    norms2 = np.empty(min(q, BLOCK))
    for row in range(3):
        old, new = before[row], after[row]
        for b in range(q):
            new[b] = old[b]
    for first in range(0, q, BLOCK):
        stop = min(q, first + BLOCK)
        of_g, own = g[first:stop], norms2[: stop - first]
        if q == n:
            for b in range(len(own)):
                own[b] = share * share * (of_g[b] * of_g[b])
        else:
            for b in range(first, stop):
                total = 0.0
                for e in range(starts[b], starts[b + 1] if b + 1 < q else n):
                    total += g[e] * g[e]
                own[b - first] = share * share * total
        S, sigma, largest = after[0, first:stop], after[1, first:stop], after[2, first:stop]
        eta = etas[first:stop]
        for b in range(len(own)):
            length = math.sqrt(own[b])
            largest[b] = length if length > largest[b] else largest[b]
            S[b] += own[b] + 2.0 * pending * length * largest[b]
        factor_etas(D[first:stop], scale, S, sigma, eta)
        square_sum += lane_sum(S)
        if q == n:
            there, here = target[first:stop], y[first:stop]
            for b in range(len(own)):
                there[b] = here[b] - share * eta[b] * of_g[b]
        else:
            for b in range(first, stop):
                step = share * etas[b]
                for e in range(starts[b], starts[b + 1] if b + 1 < q else n):
                    target[e] = y[e] - step * g[e]
    return square_sum


@kernel
def overshoot(P, y, x, starts, diameters, etas):  # type: ignore[no-untyped-def]
    """<P, y - x>, sum_b eta_b |P_b|^2, and whether P pulls at a factor that has no step; a single
    point is where it is: what P does there is rounding.
    """
    q, n, along, pulled, held = len(starts), len(P), 0.0, 0.0, False
    for b in range(q):
        pull = 0.0
        for e in range(starts[b], starts[b + 1] if b + 1 < q else n):
            if P[e] != 0.0:
                along += P[e] * (y[e] - x[e])
                pull += P[e] * P[e]
        if pull > 0.0 and diameters[b] > 0.0:
            pulled += etas[b] * pull
            held = held or etas[b] == 0.0
    return along, pulled, held


@kernel
def give_back(y, P, share, starts, etas):  # type: ignore[no-untyped-def]
    """y_b += share eta_b P_b, in place."""
    q, n = len(starts), len(P)
    for b in range(q):
        step = share * etas[b]
        for e in range(starts[b], starts[b + 1] if b + 1 < q else n):
            if P[e] != 0.0:
                y[e] += step * P[e]


@kernel
def onto_balls(y, center, radii, starts, nearest):  # type: ignore[no-untyped-def]
    """The nearest point of the product of balls; returns whether y is another one."""
    q, n, outside = len(starts), len(y), False
    for b in range(q):
        begin, end, length2 = starts[b], starts[b + 1] if b + 1 < q else n, 0.0
        for e in range(begin, end):
            length2 += (y[e] - center[e]) * (y[e] - center[e])
        length = math.sqrt(length2)
        if length > radii[b]:
            outside = True
            for e in range(begin, end):
                nearest[e] = center[e] + radii[b] / length * (y[e] - center[e])
        else:
            for e in range(begin, end):
                nearest[e] = y[e]
    return outside
