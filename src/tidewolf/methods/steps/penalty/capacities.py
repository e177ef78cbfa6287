"""The step of drift-plus-penalty for capacities  g_t(x) = max_i x_i - c_ti,  exact to a certified
gap.

In units of alpha, with z = y - d/alpha, rho = delta/alpha and P the projection on the directions of
aff(K): multipliers u_ti >= 0, sum_i u_ti <= rho, of the pieces x_i - c_ti give the lower bound of
`task.py`, which is attained at the point of the ball

    x = ball(z - P w),   w_i = sum_t u_ti,

where it is below h by exactly

    gap / alpha = sum_t (rho - sum_i u_ti) v_t + sum_ti u_ti (v_t - (x_i - c_ti)),
    v_t = (max_i x_i - c_ti)^+ :

a sum of terms that are never negative, so nothing cancels, and an x that is off by rounding costs
the square of it. Proposed multipliers are not trusted: x is made from them and the gap is
evaluated. The first proposal is u = 0; then come those of an interior-point method on the entries
that can matter: h is strongly convex, so the optimum is within r = sqrt(2 gap/alpha) of x, entries
with min_t c_ti >= x_i + r carry nothing (with P = I also those with min_t c_ti >= z_i), and how far
beyond a c_ti is does not matter. It takes predictor and corrector steps on

    minimise |x - z|^2/2 + rho sum_t tau_t   subject to   A (x - z) = 0,
    x_i + s_ti = c_ti + tau_t,   s >= 0,   tau >= 0,

A the normals of aff(K), one a row, with multipliers u of the rows, q of tau, phi of A:  x - z +
sum_t u_t + A' phi = 0,  sum_i u_ti + q_t = rho,  u s = mu,  tau q = mu. With D = u/s and
H = I + sum_t D_t (diagonal), a step solves

    [ diag(D 1 + q/tau) - D H^-1 D'     D H^-1 A'  ] [ dtau ]
    [ A H^-1 D'                       - A H^-1 A'  ] [ dphi ]

a matrix as large as rounds and normals together, however many rows there are. Its first block is an
M-matrix whose diagonal is summed from terms of one sign, so that nothing cancels as D grows.

The ball is a scalar. With its multiplier nu and theta = 1/(1 + nu) the problem is that without ball
for z, rho and u replaced by c + theta (z - c), theta rho and theta u; |x - c| grows with theta, and
theta is searched in (0, 1] for |x - c| = R.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Floats, Int64s
from tidewolf.functions.base import rows
from tidewolf.functions.linear import Capacity
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.penalty.task import PenaltySolution, PenaltyTask
from tidewolf.sets.base import Polyhedral

LAST_TRIES = 4
"""Steps of interior point after it believes to be there."""
INTERIOR_STEPS = 80
SHY = 0.995
"""The share of the way to the border that a step takes."""
BALL_TRIALS = 60
FEW_NORMALS = 16
"""Up to this many normals are made orthonormal, whatever a description says."""
SEED = 271_828_182_845
"""Of random vectors; not a number that vertices of a set are drawn with, which would lie in the
hull.
"""
RIDGE = 1e-13
"""Added to a diagonal, in units of it: matrices are singular when normals depend on each other."""
OFF_HULL = 1e-12
"""In units of R: when rounding can take x farther off the hull than this, it is projected on it
once more.
"""
EPS = float(np.finfo(np.float64).eps)


def capacities(task: PenaltyTask, accuracy: float, budget: int) -> PenaltySolution:
    """An answer within `accuracy` of the least h for a block of capacities, or the best of `budget`
    looks at it.
    """
    if task.K.radius == 0.0 or task.K.dimension == 0:
        x = task.center if task.K.radius == 0.0 else task.y
        return PenaltySolution(x.copy(), task.breach(x), 0.0, 0.0, 1)
    return Search(task, accuracy, budget).run()


class Search:
    """The data of one step, flattened and in units of alpha, and the best answer so far."""

    def __init__(self, task: PenaltyTask, accuracy: float, budget: int) -> None:
        assert isinstance(task.constraints, Capacity)
        self.task, self.accuracy, self.budget = task, accuracy, budget
        self.C: Floats = to_numpy(rows(task.constraints.c)).astype(np.float64, copy=False)
        self.m: Floats = self.C.min(axis=0, initial=np.inf)
        self.normals_count = task.y.size - task.K.dimension
        self.center, self.R = task.center.reshape(-1), task.K.radius
        self.size = self.R + euclidean(self.center)
        self.z, self.rho = (task.y - task.d / task.alpha).reshape(-1), task.delta / task.alpha
        self.best = PenaltySolution(task.y, math.inf, math.inf, math.inf, 0)
        self.rounding, self.looks = 0.0, 0

    def run(self) -> PenaltySolution:
        """Without the ball, and along it when that leads outside."""
        far = self.distance(Part(self, 1.0).solved())
        if not self.over and far > self.R:
            self.along_ball(far)
        if self.best.gap == math.inf:  # everything overflowed
            y = self.task.y
            return PenaltySolution(y, self.task.breach(y), math.inf, math.inf, self.looks)
        return self.best._replace(looks=self.looks)

    @property
    def over(self) -> bool:
        return self.best.gap <= self.accuracy or self.looks >= self.budget

    def distance(self, x: Floats) -> float:
        return euclidean(x - self.center)

    def along_ball(self, far: float) -> None:
        """theta with |x - c| = R, between 0, where x = c, and 1, where it is `far`: false position,
        an end that stays counts half; every third time the middle, since x may not move at all for
        a long while.
        """
        low, high, side = (0.0, -self.R), (1.0, far - self.R), 0
        for trial in range(BALL_TRIALS):
            share = 0.5 if trial % 3 == 2 else -low[1] / (high[1] - low[1])
            theta = low[0] + share * (high[0] - low[0])
            if not low[0] < theta < high[0]:
                return
            off = self.distance(Part(self, theta).solved()) - self.R
            if self.over or off == 0.0:
                return
            if off < 0.0:
                low, high, side = (theta, off), (high[0], high[1] / (2.0 if side < 0 else 1.0)), -1
            else:
                low, high, side = (low[0], low[1] / (2.0 if side > 0 else 1.0)), (theta, off), 1

    def gap(self, x: Floats, S: Int64s, u: Floats, rho: float) -> tuple[Floats, float]:
        """v_t at x, and by how much the multipliers fall short of it: the gap at x = z - P w, in
        units of alpha.
        """
        breached = (x > self.m).nonzero()[0]
        if not len(breached):
            return np.zeros(len(self.C)), float(np.vdot(u, self.C[:, S] - x[S])) if len(S) else 0.0
        v = np.maximum((x[breached] - self.C[:, breached]).max(axis=1), 0.0)
        left = np.maximum(0.0, rho - u.sum(axis=1)) @ v
        return v, float(left + np.vdot(u, v[:, None] - (x[S] - self.C[:, S])))

    def record(self, x: Floats, v: Floats, gap: float, off: float, beyond: float) -> None:
        """Keep a point of the ball and hull if it is the best so far, `off` from x'; p is `beyond`
        the ball.
        """
        task, breach = self.task, float(v.sum())
        x = x.reshape(task.y.shape)
        away = x - task.y
        sizes = (
            float(np.vdot(np.abs(task.d), np.abs(away)))
            + task.delta * breach
            + 0.5 * task.alpha * float(np.vdot(away, away))
        )
        rounding = 8.0 * EPS * (sizes + task.alpha * beyond * self.size)
        gap = task.alpha * gap + rounding
        if gap < self.best.gap:
            self.best, self.rounding = PenaltySolution(x, breach, gap, off, 0), rounding

    def along(self, w: Floats) -> Floats:
        """P w, the set's own `tangent`, which alone enters a certificate."""
        if self.normals_count == 0:
            return w
        return to_numpy(self.task.K.tangent(w.reshape(self.task.y.shape))).reshape(-1)

    @cached_property
    def normals(self) -> Any:
        """A: the equations of a description if they are all, else what P removes of random vectors,
        orthonormal.
        """
        k, n = self.normals_count, self.task.y.size
        A = described_normals(self.task.K, k, n) if k > FEW_NORMALS else None
        if A is not None:
            return A
        random = np.random.default_rng(SEED).standard_normal((k, n))
        across = np.array([g - self.along(g) for g in random]).reshape(k, n)
        return np.linalg.qr(across.T)[0].T

    def gram(self, weights: Floats) -> Floats:
        """A diag(weights) A', with a ridge."""
        A = self.normals
        product = (A * weights) @ A.T
        gram = product if isinstance(product, np.ndarray) else product.toarray()
        diagonal = gram[np.diag_indices(len(gram))]
        gram[np.diag_indices(len(gram))] += RIDGE * np.where(diagonal > 0.0, diagonal, 1.0)
        return np.asarray(gram)


class Part:
    """The step without its ball, for one theta: minimise |x - z|^2/2 + rho sum_t g_t^+(x) over
    aff(K).
    """

    def __init__(self, search: Search, theta: float) -> None:
        self.search, self.theta, self.rho = search, theta, theta * search.rho
        self.z = search.z if theta == 1.0 else search.center + theta * (search.z - search.center)
        self.x, self.gap = self.z, math.inf

    @property
    def aim(self) -> float:
        """The gap that is good enough: what is asked for, or what rounding blurs."""
        asked = self.search.accuracy if self.theta == 1.0 else 0.25 * self.search.accuracy
        return self.theta * max(asked, 0.5 * self.search.rounding) / self.search.task.alpha

    def solved(self) -> Floats:
        """The minimiser, as near as is needed or can be had."""
        for proposal in self.proposals():
            self.offer(*proposal)
            if self.search.over or self.gap <= self.aim:
                break
        return self.x

    def proposals(self) -> Iterator[tuple[Int64s, Floats, Floats | None]]:
        """Multipliers u[t, k] of the pieces x_i - c_ti with i = S[k], all others 0, and where the
        minimiser is believed to be, if that is known better than z - P w, whose terms may be large.
        """
        search = self.search
        yield np.zeros(0, dtype=np.int64), np.zeros((len(search.C), 0)), None
        r = math.sqrt(2.0 * self.gap)
        top = np.minimum(self.x + r, self.z) if search.normals_count == 0 else self.x + r
        S = np.flatnonzero(top > search.m)
        if not len(S):
            return
        C, reach, tries = search.C[:, S], top[S] + r, 0
        near = reach >= C
        for u, x, left in interior(np.minimum(C, reach), S, self.z, self.x, self.rho, search):
            last = S, np.where(near & (u > 0.0), u, 0.0), x
            if left <= self.aim:
                yield last
                tries += 1
            if tries == LAST_TRIES:
                return
        yield last

    def offer(self, S: Int64s, u: Floats, guess: Floats | None) -> None:
        """Evaluate multipliers at z - P w, and at the guess when that is not good enough; a round
        that carries more than rho is scaled to it.
        """
        search, c = self.search, self.search.center
        carried = u.sum(axis=1)
        if carried.max(initial=0.0) > self.rho:
            u = u * (self.rho / np.maximum(carried, self.rho))[:, None]
        w = np.zeros(len(self.z))
        w[S] = u.sum(axis=0)
        least = self.z - search.along(w)
        off = 8.0 * EPS * (search.size + euclidean(self.z) + euclidean(w))
        search.looks += 1
        for x in (least, guess):
            if x is None or self.gap <= self.aim or search.best.gap <= search.accuracy:
                return
            if search.normals_count and (x is guess or off > OFF_HULL * search.R):
                x = c + search.along(x - c)
            v, gap = search.gap(x, S, u, self.rho)
            gap += 0.5 * (euclidean(x - least) + off) ** 2
            if gap < self.gap:
                self.x, self.gap = x, gap
            self._in_ball(x, v, gap, least, S, u, off)

    def _in_ball(
        self, x: Floats, v: Floats, gap: float, least: Floats, S: Int64s, u: Floats, off: float
    ) -> None:
        """The same for the whole step: multipliers u/theta, and x drawn into the ball."""
        search, c, R, theta = self.search, self.search.center, self.search.R, self.theta
        p = least if theta == 1.0 else c + (least - c) / theta
        far = search.distance(p)
        if theta == 1.0 and max(far, search.distance(x)) <= R:
            search.record(x, v, gap, euclidean(x - least) + off, 0.0)
            return
        shrink = R / far if far > R else 1.0
        nearest = c + shrink * (p - c)
        x = into_ball(x if theta == 1.0 else c + (x - c) / theta, c, R)
        v, gap = search.gap(x, S, u / theta, search.rho)
        off = euclidean(x - nearest) + shrink * off / theta
        gap += max(0.0, float((nearest - p) @ (x - nearest))) + 0.5 * off**2
        search.record(x, v, gap, off, max(0.0, far - R))


class Newton(NamedTuple):
    """What one step of interior point has factorised."""

    D: Floats
    H: Floats
    M: Any
    L: Any
    across: Floats


def interior(
    C: Floats, S: Int64s, z: Floats, x: Floats, rho: float, search: Search
) -> Iterator[tuple[Floats, Floats, float]]:
    """Ever better multipliers of x_i - c_ti, i in S (C holds the columns of S alone), x, and
    sum u s + sum tau q, what is left to gain once the equations hold; starts near x, a point of the
    hull.
    """
    from scipy.linalg import LinAlgError

    A = search.normals
    b, m = C.shape
    x, phi = x.copy(), np.zeros(A.shape[0])
    tau = np.maximum(0.0, (x[S] - C).max(axis=1))
    tau += max(float(tau.max()), float(np.abs(x - z).max()), 1e-12 * float(np.abs(z).max()), 1e-150)
    s = C + tau[:, None] - x[S]
    share = rho / ((1.0 / s).sum(axis=1) + 1.0 / tau)
    u, q = share[:, None] / s, share / tau
    left = float(np.vdot(u, s) + tau @ q)
    for _ in range(INTERIOR_STEPS):
        with np.errstate(all="ignore"):  # what overflows ends the search below
            try:
                newton = _factorised(u, s, q / tau, S, len(z), search)
            except (LinAlgError, ValueError):
                return
            a = z - x - A.T @ phi
            a[S] -= u.sum(axis=0)
            r_A, r_tau, sigma = A @ (x - z), rho - u.sum(axis=1) - q, 0.0
            ds, du, dtau, dq = np.zeros((b, m)), np.zeros((b, m)), np.zeros(b), np.zeros(b)
            for corrector in (False, True):
                target = sigma * left / (b * m + b)
                g = (target - ds * du) / s - u
                g_tau = (target - dtau * dq) / tau - q
                dx, dtau, dphi = _direction(newton, S, a, g, g_tau - r_tau, r_A, A)
                ds = dtau[:, None] - dx[S]
                du, dq = g - newton.D * ds, g_tau - (q / tau) * dtau
                primal = min(longest_step(s, ds), longest_step(tau, dtau))
                dual = min(longest_step(u, du), longest_step(q, dq))
                if not corrector:
                    p, d = min(1.0, primal), min(1.0, dual)
                    after = np.vdot(s + p * ds, u + d * du) + (tau + p * dtau) @ (q + d * dq)
                    sigma = max(0.0, float(after) / left) ** 3
            p, d = min(1.0, SHY * primal), min(1.0, SHY * dual)
            x, tau, s = x + p * dx, tau + p * dtau, s + p * ds
            u, q, phi = u + d * du, q + d * dq, phi + d * dphi
            left = float(np.vdot(u, s) + tau @ q)
        if not max(p, d) > 1e-9:
            return
        yield u, x, left


def _factorised(u: Floats, s: Floats, ratio: Floats, S: Int64s, n: int, search: Search) -> Newton:
    """The two blocks; `ratio` is q/tau."""
    from scipy.linalg import cho_factor

    D, H = u / s, np.ones(n)
    H[S] += D.sum(axis=0)
    DH = D / H[S]
    M = -(DH @ D.T)
    np.fill_diagonal(M, 0.0)
    np.fill_diagonal(M, ratio + DH.sum(axis=1) - M.sum(axis=1))
    if search.normals_count == 0:
        return Newton(D, H, cho_factor(M, check_finite=False), None, np.zeros((0, len(M))))
    from scipy.linalg import cho_solve

    cross = np.asarray(search.normals[:, S] @ DH.T)
    L = cho_factor(search.gram(1.0 / H), check_finite=False)
    across = cho_solve(L, cross, check_finite=False)
    return Newton(D, H, cho_factor(M + cross.T @ across, check_finite=False), L, across)


def _direction(
    newton: Newton, S: Int64s, a: Floats, g: Floats, g_tau: Floats, r_A: Floats, A: Any
) -> tuple[Floats, Floats, Floats]:
    """dx, dtau and dphi for the right sides."""
    from scipy.linalg import cho_solve

    D, H, M, L, across = newton
    force = a.copy()
    force[S] -= g.sum(axis=0)
    dx = force / H
    e = g.sum(axis=1) + g_tau + D @ dx[S]
    if L is None:
        dtau, dphi = cho_solve(M, e, check_finite=False), r_A
    else:
        f = r_A + A @ dx
        dtau = cho_solve(M, e - across.T @ f, check_finite=False)
        dphi = cho_solve(L, f, check_finite=False) + across @ dtau
        dx -= (A.T @ dphi) / H
    dx[S] += (D / H[S]).T @ dtau
    return dx, dtau, dphi


def longest_step(a: Floats, da: Floats) -> float:
    """The largest step with a + step da >= 0."""
    falling = da < 0.0
    return float(np.min(-a[falling] / da[falling], initial=np.inf))


def described_normals(K: Any, k: int, n: int) -> Any:
    """The equations of a description, sparse by columns, or None if it does not name all k."""
    from scipy.sparse import csc_array, csr_array, eye_array, vstack

    if not isinstance(K, Polyhedral):
        return None
    described = K.description()
    if described.lift is not None:
        lift = csr_array(described.lift)
        if lift.shape != (n, n) or abs(lift - lift[0, 0] * eye_array(n, format="csr")).max() > 0.0:
            return None
    A = csc_array((0, n)) if described.A_eq is None else csc_array(described.A_eq)
    fixed = np.flatnonzero(described.lower == described.upper)
    if len(fixed):
        A = vstack([A, eye_array(n, format="csr")[fixed]], format="csc")
    return A if A.shape[0] == k else None


def euclidean(x: Floats) -> float:
    """|x|."""
    return math.sqrt(float(x @ x))
