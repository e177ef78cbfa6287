"""Bounds on regret and violation by oracle calls: what was played and seen is enough.

Gradients are taken at the points x_t that were played, weights w_t >= 0 are any numbers known after
the round. For every u in K that is feasible in every round, by convexity of f_t and g_t^+,

    f_t(x_t) - f_t(u)  <=  <grad f_t, x_t - u>,      w_t g_t^+(x_t)  <=  w_t <grad g_t^+, x_t - u>.

Summed over rounds the right sides are linear in u, so their largest values over K cost one oracle
call each. With F = sum grad f_t, W = sum w_t grad g_t^+, paid = sum w_t g_t^+(x_t) and every c >= 0

    regret  <=  sum <grad f_t, x_t> + c ( sum w_t <grad g_t^+, x_t> - paid )
                - min_{u in K} <F + c W, u>                                                      (R)
    paid    <=  sum w_t <grad g_t^+, x_t> - min_{u in K} <W, u>                                  (P)

or no point of K is feasible in every round. The right side of (R) is convex in c: where it is least
is found by a few calls. Nothing is asked of the method, so that late, batched and overridden rounds
need no care. An oracle that errs by e adds e.

Sharp weights
-------------
A second family of weights has nothing to do with those that were played with. With z_t the mean of
the points so far and h_t = g_t^+(x_t) + <grad g_t^+, z_t - x_t>, what the limit says at z_t,

    w_t = ( max(g_t^+(x_t), h_t)/(G D) )^4,       G the largest |grad g_t^+| in all rounds.

They are large in the few rounds whose limits say where the best point may be, so that (R) often is
closer to the regret. By Hoelder's inequality over the N rounds whose limit was broken

    sum g_t^+  <=  ( N^4 sum (g_t^+)^5 )^{1/5}  <=  ( N^4 (G D)^4 most )^{1/5},   most as in (P),

as w_t >= (g_t^+/(G D))^4. Each bound is the least of both families. The power was chosen among 1 to
5 on `carbon` and `abilene`.

Policies
--------
Against policies u_t = sum_j phi_tj U_j there is one such sum, and one call, for each cell j; in a
round whose context was unknown u_t is anything, and -<s, u_t - center> is at most |s| R.

Gradients are within aff(K), points relative to the center: u and x_t are members, so nothing
changes but rounding.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tidewolf.core import arrays, oracle
from tidewolf.core.types import Array, Floats

MOST_CALLS = 24  # Oracle calls for one bound on the regret, for each cell of a policy.
_NEAR = 1e-3  # The search for c ends where no other c could lower the bound by this share.


class GradientSums(NamedTuple):
    """Sums over the rounds so far; those of limits in the units of the weights."""

    loss: Array  # F
    limit: Array  # W
    loss_at: float = 0.0  # sum <grad f_t, x_t - center>
    limit_at: float = 0.0  # sum w_t <grad g_t^+, x_t - center>

    @classmethod
    def start(cls, K: oracle.HasLMO) -> "GradientSums":
        return cls(*[arrays.frozen(arrays.zeros(K.shape, K.center))] * 2)


class Broken(NamedTuple):
    """What a limit says that was broken in a block of rounds."""

    i: int
    gradient: Array  # the sum within aff(K)
    violation: float  # no round counted for more than the slope times D
    offset: float  # sum <gradient, x_t - x>
    slope: float
    impossible: bool  # whether no point could have avoided a violation as large as it was


class SharpSums(NamedTuple):
    """Those of sharp weights, and what these are made of."""

    limit: Array
    points: Array  # sum x_t - center
    limit_at: float = 0.0
    paid: float = 0.0
    broken: int = 0  # N

    def after(
        self, rounds: int, n: int, at: Array, before: float, reach: float, found: Sequence[Broken]
    ) -> "SharpSums":
        """With the last n of so many rounds, played `at` from the center; G D was `before` and is
        `reach`.
        """
        points = arrays.frozen(arrays.plus(self.points, n, at))
        if not found:
            return self._replace(points=points)
        unit = (before / reach) ** 4 if reach > 0.0 else 1.0
        W, W_at, paid = unit * self.limit, unit * self.limit_at, unit * self.paid
        for one in found:
            own = arrays.inner(one.gradient, at) + one.offset
            at_mean = one.violation - own + arrays.inner(one.gradient, points) / rounds
            w = (max(one.violation, at_mean) / reach) ** 4 if reach > 0.0 else 0.0
            W, W_at, paid = W + w * one.gradient, W_at + w * own, paid + w * one.violation
        return SharpSums(arrays.frozen(W), points, W_at, paid, self.broken + len(found))


class CellSums(NamedTuple):
    """The same as `GradientSums` for each cell of a context, by its share of a round."""

    loss: Array  # (cells, *shape)
    limit: Array
    unknown_loss: float = 0.0  # sum |grad f_t| R over rounds whose context was unknown
    unknown_limit: float = 0.0

    @classmethod
    def start(cls, K: oracle.HasLMO, cells: int) -> "CellSums":
        return cls(*[arrays.frozen(arrays.zeros((cells, *K.shape), K.center))] * 2)

    def and_round(self, K: oracle.HasLMO, shares: Floats, loss: Array, limit: Array) -> "CellSums":
        """With the gradients of a round, that of limits times its weight."""
        if not shares.any():
            return self._replace(
                unknown_loss=self.unknown_loss + K.radius * arrays.norm(loss),
                unknown_limit=self.unknown_limit + K.radius * arrays.norm(limit),
            )
        xp = arrays.namespace(loss)
        phi = xp.reshape(xp.asarray(shares, dtype=loss.dtype), (-1, *(1,) * loss.ndim))
        return self._replace(
            loss=arrays.frozen(self.loss + phi * loss[None, ...]),
            limit=arrays.frozen(self.limit + phi * limit[None, ...]),
        )

    def in_units(self, unit: float) -> "CellSums":
        limit = arrays.frozen(self.limit * unit)
        return self._replace(limit=limit, unknown_limit=self.unknown_limit * unit)


class _Line(NamedTuple):
    """The right side of (R) at c, and its slope there."""

    c: float
    value: float
    slope: float


def regret_at_most(
    K: oracle.HasLMO, sums: GradientSums, paid: float, cells: CellSums | None = None
) -> float:
    """(R) with a good c; against policies, where the sums of their cells are given."""

    def at(c: float) -> _Line:
        (least, slope), over = _least(K, sums, cells, 1.0, c), sums.limit_at - paid
        return _Line(c, sums.loss_at + c * over - least, over - slope)

    low, high = at(0.0), None
    best, limit = low.value, arrays.norm(sums.limit)
    # from |F|/|W|, or nowhere where no limit was broken
    c = (arrays.norm(sums.loss) or 1.0) / limit if limit > 0.0 else 0.0
    for _ in range(MOST_CALLS):
        if not (low.slope < 0.0 < c < math.inf):
            break
        now, floor = at(c), low.value + low.slope * (c - low.c)
        best = min(best, now.value)
        if high is not None and now.value - floor <= _NEAR * abs(best):
            break
        low, high = (now, high) if now.slope < 0.0 else (low, now)
        if high is None:
            c *= 4.0
        else:  # where the two lines meet, which is below all values
            rise = high.value - low.value - high.slope * (high.c - low.c)
            c = low.c + rise / (low.slope - high.slope)
    return best


def paid_at_most(K: oracle.HasLMO, sums: GradientSums, cells: CellSums | None = None) -> float:
    """(P)."""
    return sums.limit_at - _least(K, sums, cells, 0.0, 1.0)[0]


def _least(
    K: oracle.HasLMO, sums: GradientSums, cells: CellSums | None, a: float, c: float
) -> tuple[float, float]:
    """min_u <a F + c W, u - center>, no more than that, and <W, u - center> there; summed over the
    cells, if there are some.
    """
    if cells is None:
        return _least_along(K, a * sums.loss + c * sums.limit, sums.limit)
    value = -(a * cells.unknown_loss + c * cells.unknown_limit)
    slope = -cells.unknown_limit
    for j in range(cells.loss.shape[0]):
        limit = cells.limit[j, ...]
        own = _least_along(K, a * cells.loss[j, ...] + c * limit, limit)
        value, slope = value + own[0], slope + own[1]
    return value, slope


def _least_along(K: oracle.HasLMO, d: Array, limit: Array) -> tuple[float, float]:
    size = arrays.norm(d)
    if not size > 0.0:
        return 0.0, 0.0
    answer = K.answer(d / size)
    at = answer.vertex.inner(d) - arrays.inner(d, K.center) - size * answer.error
    return at, answer.vertex.inner(limit) - arrays.inner(limit, K.center)
