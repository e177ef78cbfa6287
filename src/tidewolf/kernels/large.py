"""A round of one descent at a large point, up to its projection, in few passes over the entries.

The gradient of the loss is c, and that of the limits, if they are broken, the unit vector of the
fullest entry i. Within aff(K) the mean of each is taken away where `even` is 1/n, and nothing where
it is 0. With d = c less a number near its mean, against cancellation, and m = even sum d,

    first     sums of d, d^2, v, d v, u, u^2, d u
    then      F += d - m,  sum of points += v,
              y <- center + share ( u - rate (d - m) - limit_rate (unit_i - even) )

where v = x - center, u = y - center. What is between is a function of these sums: with f = d - m
and g = unit_i - even

    |f|^2 = sum d^2 - m sum d,   <f, v> = sum d v - m sum v,   <g, v> = v_i - even sum v,
    <f, g> = f_i,   |g|^2 = 1 - even,   and of u as of v,
    |u - a f - b g|^2 = |u|^2 - 2 a <f, u> - 2 b <g, u> + a^2 |f|^2 + 2 a b <f, g> + b^2 |g|^2

Sums of limits leave out `even`: points have one sum, so that it makes no difference. Where each
entry is a factor, steps are entry by entry, and balls are left to the exact projection.

Reference of all of it: `rounds` of rounds.py on points that are not large, in tests/test_rounds.py.
"""

import math

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import added, dot, fill
from tidewolf.kernels.evaluate import (
    CAPACITY,
    GIVEN,
    MOST,
    fullest_entry,
    slope_of,
    vanishes,
)
from tidewolf.kernels.rounds import (
    APART_OF,
    EVEN,
    EXPONENT,
    KEEP,
    LANES,
    LIMIT_AT,
    LIMIT_MOST,
    LIMIT_SLOPE,
    LOSS,
    LOSS_AT,
    LOSS_MOST,
    OTHER,
    PLAYED,
    RADIUS,
    UNUSUAL,
    VALUE,
    held,
    parts,
    record_round,
    rescale,
    sharpened,
    weighed,
)

# Entries of a sum that are so far apart are added up together.
BLOCK = 256


@kernel
def moments(c, shift, x, center, scratch, lanes):  # type: ignore[no-untyped-def]
    """The sums of d = c - shift, d^2, v = x - center, v^2 and d v."""
    D, DD, V, VV, DV = lanes
    for lane in lanes:
        fill(lane, 0.0)
    for low in range(0, len(x), BLOCK):
        high = min(low + BLOCK, len(x))
        size, costs, own, middle = high - low, c[low:high], x[low:high], center[low:high]
        e, a, b = scratch[:size], D[:size], DD[:size]
        for i in range(size):
            e[i] = costs[i] - shift
            a[i] += e[i]
            b[i] += e[i] * e[i]
        a, b, ab = V[:size], VV[:size], DV[:size]
        for i in range(size):
            v = own[i] - middle[i]
            a[i] += v
            b[i] += v * v
            ab[i] += e[i] * v
    return added(D), added(DD), added(V), added(VV), added(DV)


@kernel
def move(  # type: ignore[no-untyped-def]
    c, mean, x, center, rate, lift, share, F, points, y, before
):
    """What comes after the sums, but for the fullest entry."""
    for low in range(0, len(x), BLOCK):
        high = min(low + BLOCK, len(x))
        own, mine, middle, costs = x[low:high], y[low:high], center[low:high], c[low:high]
        gradients, sums, earlier = F[low:high], points[low:high], before[low:high]
        for i in range(high - low):
            gradients[i] += costs[i] - mean
            sums[i] += own[i] - middle[i]
        for i in range(high - low):
            u = (mine[i] - middle[i]) - rate * (costs[i] - mean) + lift
            mine[i] = middle[i] + share * u
            earlier[i] = mine[i]


@kernel
def move_entries(  # type: ignore[no-untyped-def]
    c, x, center, V, w, at, diameters, scale, S, sigma, largest, F, points, y, before
):
    """The same where every entry is a factor, for the gradient V c, and at entry `at` more by w;
    returns the step size there.
    """
    for low in range(0, len(x), BLOCK):
        high = min(low + BLOCK, len(x))
        own, mine, middle, costs = x[low:high], y[low:high], center[low:high], c[low:high]
        gradients, sums, earlier = F[low:high], points[low:high], before[low:high]
        squares, inverse, most, widths = (
            S[low:high], sigma[low:high], largest[low:high], diameters[low:high],
        )  # fmt: skip
        for i in range(high - low):
            gradients[i] += costs[i]
            sums[i] += own[i] - middle[i]
        for i in range(high - low):
            g = V * costs[i]
            g = g + w if low + i == at else g
            squares[i] += g * g
            most[i] = max(most[i], abs(g))
            reach = scale * widths[i]
            least = math.sqrt(0.5 * squares[i]) / reach
            inverse[i] = least if least > inverse[i] else inverse[i]
            eta = 0.5 / inverse[i] if squares[i] > 0.0 else 0.0
            mine[i] -= eta * g
            earlier[i] = mine[i]
    return 0.5 / sigma[at] if S[at] > 0.0 else 0.0


@kernel
def large_round(  # type: ignore[no-untyped-def]
    t, row, begun, given, record, state, loss_A, limit_kind, limit_A, limit_b, columns
):
    """Round t of a single descent up to its projection, in place; PLAYED, or UNUSUAL where nothing
    has happened, or OTHER where the limit's gradient is no unit vector.
    """
    own = held(given)
    settings, scale, center, radii, diameters = own[1], own[2][0], own[4], own[6], own[7]
    buffers, pieces, slopes, lanes = own[15], own[16], own[18], own[LANES:]
    s, _, X, Y, before, steps, sums, gradients, sharp, _, _, p, totals, accounts = parts(
        state, len(center), len(radii), 1, 0, 0
    )
    n, even, x, y, c, F = len(center), settings[EVEN], X[0], Y[0], loss_A[t], gradients[0, 0]
    R, i, value = settings[RADIUS], 0, -1.0
    if limit_kind == CAPACITY:
        i, value = fullest_entry(x, limit_A[t], limit_b[0], pieces)
    elif limit_kind == GIVEN and limit_b[t] > 0.0:
        i, value = unit_entry(limit_A[t]), limit_b[t]
    if i < 0:
        return OTHER
    shift, u, uu, du = 0.0, 0.0, 0.0, 0.0
    if len(radii) == 1:
        shift = added(c[:BLOCK]) / min(n, BLOCK) if even > 0.0 else 0.0
        _, _, u, uu, du = moments(c, shift, y, center, buffers[0], lanes)
    d, dd, v, _, dv = moments(c, shift, x, center, buffers[0], lanes)
    loss = dv + (center[0] * d if even > 0.0 else dot(c, center)) + shift * (v + n * center[0])
    mean, norm2 = even * d, dd + shift * (2.0 * d + n * shift)
    f2, fv, fu, fg = max(0.0, dd - mean * d), dv - mean * v, du - mean * u, c[i] - shift - mean
    g2, gv, gu = 1.0 - even, x[i] - center[i] - even * v, y[i] - center[i] - even * u
    if not (abs(loss) <= MOST and abs(value) <= MOST):
        return UNUSUAL
    slopes[0] = slope_of(norm2, f2, settings[LOSS_MOST], R)
    slopes[1] = slope_of(1.0, g2, settings[LIMIT_MOST], R)
    if slopes[0] < 0.0 or (norm2 == 0.0 and not vanishes(c)) or (value > 0.0 and slopes[1] < 0.0):
        return UNUSUAL
    columns[row, LOSS], columns[row, VALUE] = loss, value
    if begun >= 0:
        record_round(
            given, record, columns, t, row, begun, limit_kind, limit_A, limit_b, sums[0, APART_OF],
            x, p,
        )  # fmt: skip
    exponent, slope, W, points = s[EXPONENT], s[LIMIT_SLOPE], gradients[1, 0], sharp[0]
    V, w, breach = weighed(s, settings, value, 1.0, slopes)
    if s[EXPONENT] != exponent:
        rescale(s, exponent, steps, totals, accounts)
        scale_by(W, math.ldexp(1.0, int(exponent - s[EXPONENT])))
    V = V if slopes[0] > 0.0 else 0.0
    s[LOSS_AT] += fv if slopes[0] > 0.0 else 0.0
    if value > 0.0:
        at_points = points[i] + x[i] - center[i]
        unit, weight = sharpened(s, settings, breach, slope, gv, at_points)
        scale_by(sharp[1], unit)
        sharp[1, i] += weight
        W[i] += w
        s[LIMIT_AT] += w * gv
    S, sigma, largest, eta, keep = steps[0, 0], steps[0, 1], steps[0, 2], 0.0, settings[KEEP]
    if len(radii) == n:
        eta = move_entries(
            c, x, center, V, w, i, diameters, scale, S, sigma, largest, F, points, y, before[0]
        )
        past, square, rate, share = w * (x[i] - y[i] - breach), eta * w * w, 0.0, 1.0
        limit_rate = -kept_back(past, square, keep) * eta * w
    else:
        length2 = V * V * f2 + w * (2.0 * V * fg + w * g2)
        if length2 > 0.0:
            S[0] += length2
            largest[0] = max(largest[0], math.sqrt(length2))
            D = min(2.0 * R, diameters[0] + sums[0, APART_OF])
            sigma[0] = max(sigma[0], math.sqrt(0.5 * S[0]) / (scale * D))
            eta = 0.5 / sigma[0]
        past, square = w * (gv - gu + eta * (V * fg + w * g2) - breach), eta * w * w * g2
        rate, limit_rate = eta * V, eta * w * (1.0 - kept_back(past, square, keep))
        length2 = uu - 2.0 * (rate * fu + limit_rate * gu) + rate * rate * f2
        length2 += limit_rate * (2.0 * rate * fg + limit_rate * g2)
        share = R / math.sqrt(length2) if length2 > R * R and eta > 0.0 else 1.0
        move(c, shift + mean, x, center, rate, limit_rate * even, share, F, points, y, before[0])
    y[i] -= share * limit_rate
    before[0, i] = y[i]
    return PLAYED


@kernel
def unit_entry(a):  # type: ignore[no-untyped-def]
    """Where the one entry of a unit vector is; -1 where a is none."""
    at, others = 0, 0
    for e in range(len(a)):
        at = e if a[e] == 1.0 else at
        others += a[e] != 0.0
    return at if others == 1 and a[at] == 1.0 else -1


@kernel
def kept_back(past, square, keep):  # type: ignore[no-untyped-def]
    """The share of a step past a limit that is given back."""
    return (1.0 - keep) * min(1.0, past / square) if past > 0.0 and square > 0.0 else 0.0


@kernel
def scale_by(a, unit):  # type: ignore[no-untyped-def]
    """`a *= unit`, without a pass over it if that is 1."""
    for e in range(len(a) if unit != 1.0 else 0):
        a[e] *= unit
