"""The step of drift-plus-penalty by a proximal bundle, exact to a certified gap.
No other step of a learner calls a solver.

    minimise   h(x) = <d, x - y> + delta sum_t g_t^+(x) + alpha/2 |x - y|^2     over
        |x - c| <= R,  x in aff(K)

for a block of constraints g_t, y in that ball and hull. h is alpha-strongly convex, so its
minimiser x* is one point.

Lower bound that trusts no solver. Let <a_i, x> - b_i <= g_{t(i)}(x) for every x, lam_i >= 0 and sum
of lam_i over the i of one round <= delta. Then delta g_t^+(x) >= sum_i lam_i (<a_i, x> - b_i), so
with s = d + sum lam_i a_i within the directions of aff(K)

    h(x) >= <s, x - y> + alpha/2 |x - y|^2 + e,    e = sum_i lam_i (<a_i, y> - b_i),

whose least value over the ball and hull is at  x' = c + min(1, R/|p - c|) (p - c),  p = y - s/alpha
(a ball's nearest point to p). So h(u) >= lower + alpha/2 |u - x'|^2 for every u of the ball and
hull: an answer x with h(x) - lower <= gap is at most sqrt(2 gap/alpha) from x', which is known, and
from x*, which is not.

Proximal bundle with one cut per round, for any block of convex constraints. A look at x evaluates
the whole block and adds a cut for every round that is above the cuts it has. The master then
minimises

    <d, x - y> + delta sum_t max(0, cuts of t) + alpha/2 |x - y|^2 + rho/2 |x - z|^2

over the ball, z the best point so far: the same step with d - rho (z - y) and alpha + rho in place
of d and alpha. Its answer is looked at next; its multipliers are feasible for the step itself, so
`PenaltyTask.lower` makes a lower bound of them whatever rho is. Cuts whose multiplier was 0 twice
in a row are dropped: that does not lower the master's least value.

rho starts at 0, and stays there on piecewise-linear blocks that the cuts soon describe. With p the
decrease that the cuts predicted and a the one that came, a parabola through both has its minimum
where the stiffness alpha + rho is 2 (1 - a/p) times what it was, kept between a tenth and ten times
(Kiwiel 1990); when p is below the accuracy asked for, only rho is in the way, and it falls. Where
alpha is next to nothing rho stays above 0: what the cuts say of x enters the master times alpha +
rho, beside slopes.

What rounding may have done to h(x) and to the lower bound, a few units in the last place of the
terms they are sums of, is in the gap.

Cuts are affine functions below the constraints, <a_i, x - y> + e_i <= g_{t(i)}(x) for every x of
aff(K), with slopes within the directions of aff(K). In the master, with u = x - y, w = c - y and
multipliers lam_i >= 0 that sum to at most delta over the cuts of a round, the ball |u - w| <= R
enters as one number, its multiplier k - alpha >= 0:

    lam(k)     minimises  1/2 |d - (k - alpha) w + A'lam|^2 - k <e, lam>
    k   is such that |s + alpha w| = k R for s = d + A'lam(k),
        or k = alpha and |s + alpha w| <= k R.

|s + alpha w|/k falls as k grows, so there is one such k: secant steps within a bracket, from the k
of the last master. The answer is u = nearest(s) - y. How far the master's value there is above the
multipliers' lower bound is

    delta sum_t max(0, max_i <a_i, u> + e_i) - sum_i lam_i (<a_i, u> + e_i)  >=  0,

its own gap; a small one ends the search. lam(k) is found by an interior-point solver (PIQP) on the
program brought to size 1: lam_i in units of what alone would turn q around and undo the violation.
It is not trusted: what comes back is made feasible, and its gap is measured.
"""

import math
from typing import NamedTuple

import numpy as np

from tidewolf.core import batch, errors, oracle, sparse
from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Bools, Floats, Int64s
from tidewolf.functions.linear import Affine, MaxAffine
from tidewolf.methods.steps.adagrad import into_ball

_LOOSE = 0.05  # A master need not be solved closer than this part of the gap.
_STIFF = 1e-5  # The least alpha + rho, as a part of the slopes that add up to s, over the radius.
_IDLE = 2  # A cut is dropped after this many masters in a row without a multiplier.
_LIE = 1e-6  # A lower bound above a value by more than this share of their terms is no rounding.
# Looks after which a gap that has not fallen by a tenth is believed to be all that rounding leaves.
_PATIENCE = 10
_EPS = float(np.finfo(np.float64).eps)
_ULPS = 4.0 * _EPS
_STEPS = 60  # Steps of the search for k.
_ACCURACY = 1e-12
_FAR = 1e4  # A limit that many units away is not given to the solver.
_NOTHING = 1e-9  # An interior point never reaches 0; multipliers below this many units are.


class PenaltyTask(NamedTuple):
    """One step to solve; `d` is within the directions of aff(K), y in the ball and in aff(K)."""

    K: oracle.HasLMO
    constraints: batch.Batch
    y: Floats
    d: Floats
    delta: float
    alpha: float
    center: Floats

    def value(self, x: Floats, breach: float) -> float:
        """h(x), given sum_t g_t^+(x)."""
        away = x - self.y
        return (
            float(np.vdot(self.d, away))
            + self.delta * breach
            + 0.5 * self.alpha * float(np.vdot(away, away))
        )

    def nearest(self, s: Floats) -> Floats:
        """argmin of <s, x - y> + alpha/2 |x - y|^2 over the ball and hull, for a slope s within the
        directions of aff(K).
        """
        return np.asarray(into_ball(self.y - s / self.alpha, self.center, self.K.radius))

    def lower(self, s: Floats, e: float) -> float:
        """The lower bound of the slope s within the directions of aff(K) and the constant e."""
        away = self.nearest(s) - self.y
        return float(np.vdot(s, away)) + 0.5 * self.alpha * float(np.vdot(away, away)) + e


class PenaltySolution(NamedTuple):
    """A point of the ball and hull, what it costs, and how far from the least h it is at most."""

    x: Floats
    breach: float
    # certified: h(u) >= h(x) - gap + alpha/2 |u - x'|^2 for every u of the ball and hull
    gap: float
    off: float  # at least |x - x'|, what rounding may do to x' included
    looks: int


class Cuts(NamedTuple):
    """Cuts t(i), a_i, e_i, with the products <a_i, a_j> and the multipliers last found for them."""

    rounds: Int64s
    slopes: Floats
    at_y: Floats
    gram: Floats
    lam: Floats
    idle: Int64s  # for how many masters in a row the multiplier was 0

    @classmethod
    def none(cls, entries: int) -> "Cuts":
        none, zeros = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(none, np.zeros((0, entries)), zeros, np.zeros((0, 0)), zeros, none)

    def values(self, u: Floats) -> Floats:
        return np.asarray(self.at_y + self.slopes @ u)

    def model(self, u: Floats, rounds: int) -> Floats:
        """max(0, the cuts of a round) at y + u, for each of so many rounds."""
        model = np.zeros(rounds)
        np.maximum.at(model, self.rounds, self.values(u))
        return model

    def joined(self, rounds: Int64s, slopes: Floats, at_y: Floats) -> "Cuts":
        """Those in use and new ones, their multipliers 0."""
        used = self.idle < _IDLE
        old, across = self.slopes[used], self.slopes[used] @ slopes.T
        return Cuts(
            np.append(self.rounds[used], rounds),
            np.concatenate([old, slopes]),
            np.append(self.at_y[used], at_y),
            np.block([[self.gram[np.ix_(used, used)], across], [across.T, slopes @ slopes.T]]),
            np.append(self.lam[used], np.zeros(len(rounds))),
            np.append(self.idle[used], np.zeros(len(rounds), dtype=np.int64)),
        )


def solve_penalty(task: PenaltyTask, accuracy: float, budget: int = 100) -> PenaltySolution:
    """An answer certified to `accuracy`, or the best that `budget` looks could certify."""
    merged = _merged(task.constraints)
    if merged is not task.constraints:
        found = solve_penalty(task._replace(constraints=merged), accuracy, budget)
        return found._replace(breach=_look(task, found.x)[1])
    b, R, y, d = len(merged), task.K.radius, task.y.reshape(-1), task.d.reshape(-1)
    x, cuts, sizes = task.nearest(task.d), Cuts.none(y.size), np.zeros(b)
    values, breach = _look(task, x)
    if breach == 0.0 or R == 0.0:
        return PenaltySolution(x, breach, 0.0, _off(task, x, x, cuts), 1)
    best, h = PenaltySolution(x, breach, math.inf, math.inf, 1), task.value(x, breach)
    upper, lower, proof, predicted = math.inf, task.lower(task.d, 0.0), (x, cuts), -math.inf
    k = max(task.alpha, _norm(task.d + task.alpha * (task.center - task.y)) / R)
    rho, exact, gaps = 0.0, False, [math.inf]
    for looks in range(1, budget + 1):
        u = x.reshape(-1) - y
        above = values - cuts.model(u, b)
        new = np.flatnonzero(above > np.maximum(0.1 * accuracy / (task.delta * b), _ULPS * sizes))
        slopes = np.asarray(to_numpy(merged.gradients(x)).reshape(b, -1)[new], dtype=np.float64)
        terms = np.abs(values[new]) + np.linalg.norm(slopes, axis=1) * (_norm(x) + _norm(task.y))
        sizes[new] = np.maximum(sizes[new], terms)
        h += _ULPS * (_size(task, u) + task.delta * float(sizes[values > 0.0].sum()))
        if looks > 1:
            came = (upper - h) / (upper - predicted) if upper - predicted > 0.5 * accuracy else 1.0
            rho = (task.alpha + rho) * min(10.0, max(0.1, 2.0 * (1.0 - came))) - task.alpha
        # below that what the cuts say of u would drown in the rounding of s
        least = max(0.0, _STIFF * _pull(task, cuts) / R - task.alpha)
        rho = max(rho, least)
        if h < upper:
            best, upper = PenaltySolution(x, breach, math.inf, math.inf, looks), h
        gap = upper - lower
        finished = exact and len(new) == 0 and rho <= least and gap > 0.9 * gaps[-1]
        exact = len(new) == 0
        if gap < -_LIE * (abs(upper) + abs(lower) + task.delta * float(sizes.sum())):
            raise errors.NotConvex(
                f"Constraints have a value of {upper:.6g} where their subgradients prove at least "
                f"{lower:.6g}: they are not convex, or a subgradient is wrong. "
                "`tidewolf.testing.check_function` shows where."
            )
        gaps.append(gap)
        stalled = len(gaps) > _PATIENCE + 1 and gap > 0.9 * gaps[-1 - _PATIENCE]
        if gap <= accuracy or looks == budget or finished or stalled:
            break
        slopes = within_hull(task, slopes)
        cuts = cuts.joined(new, slopes, values[new] - slopes @ u)
        nearby = task._replace(d=task.d - rho * (best.x - task.y), alpha=task.alpha + rho)
        cuts, k, x = master(nearby, cuts, k, 0.0 if exact else max(0.5 * accuracy, _LOOSE * gap))
        s = within_hull(task, (d + cuts.lam @ cuts.slopes)[None]).reshape(task.y.shape)
        proved = _lower(task, s, float(cuts.lam @ cuts.at_y), float(cuts.lam @ sizes[cuts.rounds]))
        if proved > lower:
            lower, proof = proved, (task.nearest(s), cuts)
        predicted = task.value(x, float(cuts.model(x.reshape(-1) - y, b).sum()))
        values, breach = _look(task, x)
        h = task.value(x, breach)
    return best._replace(gap=max(0.0, upper - lower), off=_off(task, best.x, *proof), looks=looks)


def _merged(constraints: batch.Batch) -> batch.Batch:
    """Equal rounds of dense affine pieces as one: n rounds with g_t = g are one with n g, since
    n g^+ = (n g)^+.
    """
    if not isinstance(constraints, Affine | MaxAffine) or sparse.is_sparse(constraints.A):
        return constraints
    A, b = constraints.A, constraints.b
    numbers = np.concatenate([A.reshape(len(A), -1), b.reshape(len(A), -1)], axis=1)
    _, first, counts = np.unique(numbers, axis=0, return_index=True, return_counts=True)
    if len(first) == len(A):
        return constraints
    times = counts.astype(np.float64)
    return type(constraints)._unchecked(
        A=A[first] * times.reshape(-1, *[1] * (A.ndim - 1)),
        b=b[first] * times.reshape(-1, *[1] * (b.ndim - 1)),
    )


def _norm(x: Floats) -> float:
    return float(np.linalg.norm(x))


def _off(task: PenaltyTask, x: Floats, lowest: Floats, cuts: Cuts) -> float:
    """At least the distance from x to where the lower bound of these cuts is least, and what
    rounding may have done to that.
    """
    if task.K.radius == 0.0:
        return 0.0
    size = _norm(task.center) + _norm(task.y) + task.K.radius + _pull(task, cuts) / task.alpha
    return _norm(x - lowest) + _ULPS * size


def _pull(task: PenaltyTask, cuts: Cuts) -> float:
    """How large the slopes are that add up to s."""
    return _norm(task.d) + float(cuts.lam @ np.sqrt(np.diag(cuts.gram)))


def _look(task: PenaltyTask, x: Floats) -> tuple[Floats, float]:
    """g_t(x) for every round, and sum_t g_t^+(x)."""
    values = np.asarray(to_numpy(task.constraints.values(x)), dtype=np.float64)
    return values, float(np.maximum(values, 0.0).sum())


def _size(task: PenaltyTask, u: Floats) -> float:
    """How large the terms of h(y + u) are, but for the constraints'."""
    return _norm(u) * (_norm(task.d) + task.alpha * _norm(u))


def _lower(task: PenaltyTask, s: Floats, e: float, sizes: float) -> float:
    """`PenaltyTask.lower` less what rounding may have added to it; x' may be off by rounding too,
    which counts where it is held by the ball.
    """
    u = task.nearest(s) - task.y
    held = _norm(s + task.alpha * u) * (_norm(task.center) + task.K.radius)
    return task.lower(s, e) - _ULPS * (_size(task, u) + sizes + held)


def master(task: PenaltyTask, cuts: Cuts, k: float, tolerance: float) -> tuple[Cuts, float, Floats]:
    """The cuts with their multipliers, k and the point, whose own gap is at most `tolerance` or as
    small as could be found; the search starts at k.
    """
    d, w = task.d.reshape(-1), (task.center - task.y).reshape(-1)
    k, low, high = max(k, task.alpha), 0.5 * task.alpha, math.inf
    best, least, before, idle = (cuts, k, task.y), math.inf, None, cuts.idle
    for steps in range(_STEPS):
        lam, some = multipliers(cuts, d - (k - task.alpha) * w, k, task.delta)
        cuts = cuts._replace(lam=lam)
        s = d + cuts.lam @ cuts.slopes
        plain = (task.nearest(s.reshape(task.y.shape)) - task.y).reshape(-1)
        u = within_hull(task, plain[None])
        x = np.asarray(into_ball(task.y + u.reshape(task.y.shape), task.center, task.K.radius))
        u = (x - task.y).reshape(-1)
        gap = task.delta * float(cuts.model(u, len(task.constraints)).sum())
        gap -= float(cuts.lam @ cuts.values(u))
        gap += float((s + 0.5 * task.alpha * (plain + u)) @ (u - plain))
        if gap < least:
            best, least = (cuts._replace(idle=np.where(some, 0, idle + 1)), k, x), gap
        wanted = _norm(s + task.alpha * w) / task.K.radius
        if gap <= tolerance or (k == task.alpha and wanted <= k):
            break
        low, high = (k, high) if wanted > k else (low, k)
        step = max(wanted if before is None else _secant(before, (k, wanted - k)), task.alpha)
        if not low < step < high or (steps % 3 == 2 and high < math.inf):
            middle = max(math.sqrt(low) * math.sqrt(high), task.alpha)
            step = max(wanted, 8.0 * k) if high == math.inf else middle
        if abs(step - k) <= 2.0 * _EPS * k:
            break
        before, k = (k, wanted - k), step
    return best


def _secant(a: tuple[float, float], b: tuple[float, float]) -> float:
    return math.inf if a[1] == b[1] else b[0] - b[1] * (b[0] - a[0]) / (b[1] - a[1])


def multipliers(cuts: Cuts, q: Floats, k: float, delta: float) -> tuple[Floats, Bools]:
    """Feasible multipliers as good as can be found, and which of them are more than nothing."""
    linear = cuts.slopes @ q - k * cuts.at_y
    lengths = np.sqrt(np.diag(cuts.gram))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        unit = (float(np.linalg.norm(q)) + k * np.maximum(cuts.at_y, 0.0) / lengths) / lengths
    unit = np.where(np.isfinite(unit) & (unit > 0.0), np.minimum(unit, delta), delta)
    best, least = np.zeros(len(linear)), 0.0
    for units, ridge in ((unit, 1e-10), (np.full(len(linear), delta), 1e-10), (unit, 1e-6)):
        lam, content = _by_interior_point(cuts, linear, units, delta, ridge)
        cost = float(lam @ (0.5 * (cuts.gram @ lam) + linear))
        if cost < least:
            best, least = lam, cost
        if content:
            break
    return best, best > _NOTHING * unit


def feasible(rounds: Int64s, lam: Floats, delta: float) -> Floats:
    """lam made at least 0, the sum of a round at most delta."""
    lam = np.clip(np.nan_to_num(lam, nan=0.0), 0.0, delta)
    return np.asarray(lam * (delta / np.maximum(np.bincount(rounds, lam), delta))[rounds])


def _by_interior_point(
    cuts: Cuts, linear: Floats, unit: Floats, delta: float, regularisation: float
) -> tuple[Floats, bool]:
    """What PIQP finds in these units, made feasible, and whether it is content with it."""
    import piqp

    scale = float((unit * np.sqrt(np.diag(cuts.gram))).max()) or 1.0
    share = unit / scale
    c = share * (linear / scale)
    steep = max(1.0, float(np.abs(c).max()))
    P = cuts.gram * share * share[:, None] / steep
    limits = np.where(delta > _FAR * unit, np.inf, delta / unit)
    several = np.flatnonzero(
        (np.bincount(cuts.rounds) > 1) & (np.bincount(cuts.rounds, limits < np.inf) > 0)
    )
    G = np.where(cuts.rounds == several[:, None], unit / delta, 0.0)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_duality_gap_abs = _ACCURACY
    solver.settings.eps_rel = solver.settings.eps_duality_gap_rel = 10.0 * _ACCURACY
    solver.settings.reg_lower_limit = regularisation
    solver.settings.max_iter = 60
    solver.setup(
        P, c / steep, None, None, G, None, np.ones(len(several)), np.zeros(len(linear)), limits
    )
    status = solver.solve()
    lam = np.asarray(solver.result.x) * unit
    # limits far away were not given
    within = bool((np.bincount(cuts.rounds, lam) <= (1.0 + 1e-9) * delta).all())
    return feasible(cuts.rounds, lam, delta), within and status == piqp.PIQP_SOLVED


def within_hull(task: PenaltyTask, slopes: Floats) -> Floats:
    """Flat rows within the directions of aff(K)."""
    if task.K.dimension == slopes.shape[1]:
        return slopes
    rows = [to_numpy(task.K.tangent(row.reshape(task.y.shape))).reshape(-1) for row in slopes]
    return np.array(rows).reshape(slopes.shape)
