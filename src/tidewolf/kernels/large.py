"""A round of one descent at a large point, up to its projection, in few passes over the entries.

The gradient of the loss is c, and that of the limits, if they are broken, the unit vector of the
fullest entry i. Within aff(K) the mean of each is taken away where `even` is 1/n, and nothing where
it is 0. With d = c less a number near its mean, against cancellation, and m = even sum d,

    first     sums of d, d^2, d x, y^2, d y
    then      F += d - m,  sum of points += v,
              y <- center + share ( u - rate (d - m) - limit_rate (unit_i - even) )

where v = x - center, u = y - center, whose sums are 0 if `even` is not. What is between is a
function of these sums: with f = d - m and g = unit_i - even

    |f|^2 = sum d^2 - m sum d,   <f, v> = sum d v,   <g, v> = v_i,
    <f, g> = f_i,   |g|^2 = 1 - even,   and of u as of v,
    |u - a f - b g|^2 = |u|^2 - 2 a <f, u> - 2 b <g, u> + a^2 |f|^2 + 2 a b <f, g> + b^2 |g|^2

Sums of limits leave out `even`: points have one sum, so that it makes no difference. Where each
entry is a factor, steps are entry by entry, and balls are left to the exact projection; center is
in place of y in the first sums.

The state may be another's that is not to be changed: then what is read is in `origin`, and all of
it but scalars is written, which takes no copy before. Reference of all of it: `rounds` of rounds.py
on points that are not large, in tests/test_rounds.py.
"""

import math

from tidewolf.core.jit import kernel
from tidewolf.kernels.active_set import added, copy_to, fill
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
    rescale,
    sharpened,
    weighed,
)

# Entries of a sum that are so far apart are added up together.
BLOCK = 256


@kernel
def moments(c, shift, x, y, lanes):  # type: ignore[no-untyped-def]
    """The sums of d = c - shift, d^2, d x, y^2 and d y."""
    D, DD, DX, YY, DY = lanes
    for lane in lanes:
        fill(lane, 0.0)
    for low in range(0, len(x), BLOCK):
        high = min(low + BLOCK, len(x))
        size, costs, own, mine = high - low, c[low:high], x[low:high], y[low:high]
        d_sum, dd, dx, yy, dy = D[:size], DD[:size], DX[:size], YY[:size], DY[:size]
        for i in range(size):
            d = costs[i] - shift
            d_sum[i] += d
            dd[i] += d * d
            dx[i] += d * own[i]
        for i in range(size):
            yy[i] += mine[i] * mine[i]
            dy[i] += (costs[i] - shift) * mine[i]
    return added(D), added(DD), added(DX), added(YY), added(DY)


@kernel
def bring(is_new, past, low, now):  # type: ignore[no-untyped-def]
    """Entries from `low` on are those of the past, if that is elsewhere: loops that read one array
    and write another which may be the same are slow.
    """
    if is_new:
        copy_to(past[low : low + len(now)], now)


@kernel
def move(  # type: ignore[no-untyped-def]
    c, x, shift, mean, middle, rate, lift, share, is_new, past, now, before, r
):
    """What comes after the sums, but for the fullest entry, around a center of equal entries; r
    becomes x - y.
    """
    F, points, y = now
    for low in range(0, len(x), BLOCK):
        high = min(low + BLOCK, len(x))
        own, gradients, sums, mine = x[low:high], F[low:high], points[low:high], y[low:high]
        bring(is_new, past[0], low, gradients)
        bring(is_new, past[1], low, sums)
        bring(is_new, past[2], low, mine)
        costs, earlier, apart = c[low:high], before[low:high], r[low:high]
        for i in range(high - low):
            gradients[i] += costs[i] - shift - mean
            sums[i] += own[i] - middle
        for i in range(high - low):
            mine[i] = middle + share * (
                (mine[i] - middle) - rate * (costs[i] - shift - mean) + lift
            )
            earlier[i] = mine[i]
            apart[i] = own[i] - mine[i]


@kernel
def move_entries(  # type: ignore[no-untyped-def]
    c, x, center, V, w, at, diameters, scale, is_new, past, now, before
):
    """The same where every entry is a factor, for the gradient V c, and at entry `at` more by w;
    returns the step size there.
    """
    F, points, y, S, sigma, largest = now
    for low in range(0, len(x), BLOCK):
        high = min(low + BLOCK, len(x))
        own, gradients, sums, mine = x[low:high], F[low:high], points[low:high], y[low:high]
        squares, inverse, most = S[low:high], sigma[low:high], largest[low:high]
        bring(is_new, past[0], low, gradients)
        bring(is_new, past[1], low, sums)
        bring(is_new, past[2], low, mine)
        bring(is_new, past[3], low, squares)
        bring(is_new, past[4], low, inverse)
        bring(is_new, past[5], low, most)
        costs, middle, earlier = c[low:high], center[low:high], before[low:high]
        widths = diameters[low:high]
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
    t, records, given, state, origin, loss_A, limit_kind, limit_A, limit_b, columns
):
    """Round t of a single descent up to its projection, in place or, if `origin` has any numbers,
    from there; its loss and the limits' value in `columns`, and with `records` all limits' values
    and the point where they are looked for. PLAYED, or UNUSUAL where nothing has happened, or OTHER
    where the limit's gradient is no unit vector.
    """
    own = held(given)
    settings, scale, center, radii, diameters = own[1], own[2][0], own[4], own[6], own[7]
    r, pieces, slopes, lanes = own[15][0], own[16], own[18], own[LANES:]
    s, _, X, Y, before, steps, sums, gradients, sharp, _, _, _, totals, accounts = parts(
        state, len(center), len(radii), 1, 0, 0
    )
    is_new = len(origin) > 0
    _, _, old_X, old_Y, _, old_steps, old_sums, old_gradients, old_sharp, _, _, _, _, _ = parts(
        origin if is_new else state, len(center), len(radii), 1, 0, 0
    )
    n, even, x, y, c = len(center), settings[EVEN], old_X[0], old_Y[0], loss_A[t]
    R, i, value, middle = settings[RADIUS], 0, -1.0, center[0]
    if limit_kind == CAPACITY:
        i, value = fullest_entry(x, limit_A[t], limit_b[0], pieces if records else r[: 4 * BLOCK])
    elif limit_kind == GIVEN and limit_b[t] > 0.0:
        i, value = unit_entry(limit_A[t]), limit_b[t]
    if i < 0:
        return OTHER
    shift = added(c[:BLOCK]) / min(n, BLOCK) if even > 0.0 else 0.0
    d, dd, dx, yy, dy = moments(c, shift, x, y if even > 0.0 else center, lanes)
    loss, fv = dx + shift * (n * middle), dx - (middle * d if even > 0.0 else dy)
    mean, norm2 = even * d, dd + shift * (2.0 * d + n * shift)
    f2, fu, uu = max(0.0, dd - mean * d), dy - middle * d, yy - n * middle * middle
    fg, g2, gv, gu = c[i] - shift - mean, 1.0 - even, x[i] - center[i], y[i] - center[i]
    if not (abs(loss) <= MOST and abs(value) <= MOST):
        return UNUSUAL
    slopes[0] = slope_of(norm2, f2, settings[LOSS_MOST], R)
    slopes[1] = slope_of(1.0, g2, settings[LIMIT_MOST], R)
    if slopes[0] < 0.0 or (norm2 == 0.0 and not vanishes(c)) or (value > 0.0 and slopes[1] < 0.0):
        return UNUSUAL
    columns[LOSS], columns[VALUE] = loss, value
    exponent, slope, W, points = s[EXPONENT], s[LIMIT_SLOPE], gradients[1, 0], sharp[0]
    V, w, breach = weighed(s, settings, value, 1.0, slopes)
    if is_new and (records or even > 0.0):
        copy_to(x, X[0])
    if is_new:
        copy_to(old_sums[0], sums[0])
        copy_to(old_gradients[1, 0], W)
        copy_to(old_sharp[1], sharp[1])
    if is_new and (even > 0.0 or s[EXPONENT] != exponent):
        copy_to(old_steps.reshape(-1), steps.reshape(-1))
    if s[EXPONENT] != exponent:
        rescale(s, exponent, steps, totals, accounts)
        scale_by(W, math.ldexp(1.0, int(exponent - s[EXPONENT])))
    V = V if slopes[0] > 0.0 else 0.0
    s[LOSS_AT] += fv if slopes[0] > 0.0 else 0.0
    if value > 0.0:
        at_points = old_sharp[0, i] + gv
        unit, weight = sharpened(s, settings, breach, slope, gv, at_points)
        scale_by(sharp[1], unit)
        sharp[1, i] += weight
        W[i] += w
        s[LIMIT_AT] += w * gv
    past, now = (old_gradients[0, 0], old_sharp[0], y), (gradients[0, 0], points, Y[0])
    S, sigma, largest, eta, keep = steps[0, 0], steps[0, 1], steps[0, 2], 0.0, settings[KEEP]
    if len(radii) == n:
        used = steps if s[EXPONENT] != exponent else old_steps
        eta = move_entries(
            c, x, center, V, w, i, diameters, scale, is_new,
            (*past, used[0, 0], used[0, 1], used[0, 2]), (*now, S, sigma, largest), before[0],
        )  # fmt: skip
        over, square, rate, share = w * (x[i] - Y[0, i] - breach), eta * w * w, 0.0, 1.0
        limit_rate = -kept_back(over, square, keep) * eta * w
    else:
        length2 = V * V * f2 + w * (2.0 * V * fg + w * g2)
        if length2 > 0.0:
            S[0] += length2
            largest[0] = max(largest[0], math.sqrt(length2))
            D = min(2.0 * R, diameters[0] + sums[0, APART_OF])
            sigma[0] = max(sigma[0], math.sqrt(0.5 * S[0]) / (scale * D))
            eta = 0.5 / sigma[0]
        over, square = w * (gv - gu + eta * (V * fg + w * g2) - breach), eta * w * w * g2
        rate, limit_rate = eta * V, eta * w * (1.0 - kept_back(over, square, keep))
        length2 = uu - 2.0 * (rate * fu + limit_rate * gu) + rate * rate * f2
        length2 += limit_rate * (2.0 * rate * fg + limit_rate * g2)
        share = R / math.sqrt(length2) if length2 > R * R and eta > 0.0 else 1.0
        lift = limit_rate * even
        move(c, x, shift, mean, middle, rate, lift, share, is_new, past, now, before[0], r)
    Y[0, i] -= share * limit_rate
    before[0, i] = Y[0, i]
    r[i] = x[i] - Y[0, i]
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
