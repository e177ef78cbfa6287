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
evaluated. Proposals, in turn, until one is good enough:

 (a) closed form. x = the nearest point to z with x_i <= m_i = min_t c_ti,
     by Newton steps on the entries S that bind: P_SS w_S = (z - m)_S,
     then S = those with w_i > 0 and those with x_i > m_i. Optimal when the rounds that attain the
         minima can carry w, none more than rho.
 (b) dual ascent, a round at a time. With the other rounds fixed and a_i = x_i + u_ti - c_ti,
     u_ti <- (a_i - tau)^+  for the least
     tau >= 0 with sum_i u_ti <= rho: the best multipliers of the round when P = I, and an ascent
         step for every P since P <= I.
 (c) interior point (`interior.py`) on the entries that can matter. h is strongly convex, so the
     optimum is within r = sqrt(2 gap/alpha) of x: entries with m_i >= x_i + r carry nothing (with
     P = I also those with m_i >= z_i), and how far beyond a c_ti is does not matter.

The ball is a scalar. With its multiplier nu and theta = 1/(1 + nu) the problem is that without ball
for z, rho and u replaced by c + theta (z - c), theta rho and theta u; |x - c| grows with theta, and
theta is searched in (0, 1] for |x - c| = R.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Bools, Floats, Int64s
from tidewolf.functions.base import rows
from tidewolf.functions.linear import Capacity
from tidewolf.kernels.penalty import ascend_multipliers, share_multipliers
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.penalty.hull import COLUMNS, AffineHull
from tidewolf.methods.steps.penalty.interior import Inside, interior
from tidewolf.methods.steps.penalty.task import PenaltySolution, PenaltyTask

NEWTON_STEPS = 30
NEWTON_LIMIT = 10.0
"""Newton steps end when they ask for this many times more than all rounds can carry together."""
DOUBLINGS = 8
"""Dual ascent takes 2, 4, 8, ... sweeps, as long as each batch divides the gap by `ASCENT_PACE`."""
ASCENT_PACE = 4.0
LAST_TRIES = 4
"""Steps of interior point after it believes to be there."""
BALL_TRIALS = 60
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


class Proposal(NamedTuple):
    """Multipliers u[t, k] of the pieces x_i - c_ti with i = S[k], S ascending; all others are 0."""

    S: Int64s
    u: Floats
    x: Floats | None
    """where the minimiser is believed to be, when that is known better than z - P w, whose terms
    may be large
    """

    def on(self, S: Int64s) -> Floats:
        """u for the entries S, which hold its own."""
        u = np.zeros((len(self.u), len(S)))
        u[:, np.searchsorted(S, self.S)] = self.u
        return u

    def within(self, rho: float) -> Proposal:
        """Rounds that carry more than rho are scaled to it."""
        carried = self.u.sum(axis=1)
        return (
            self
            if carried.max(initial=0.0) <= rho
            else self._replace(u=self.u * (rho / np.maximum(carried, rho))[:, None])
        )


class Search:
    """The data of one step, flattened and in units of alpha, and the best answer so far."""

    def __init__(self, task: PenaltyTask, accuracy: float, budget: int) -> None:
        assert isinstance(task.constraints, Capacity)
        self.task, self.accuracy, self.budget = task, accuracy, budget
        self.C: Floats = to_numpy(rows(task.constraints.c)).astype(np.float64, copy=False)
        self.m: Floats = self.C.min(axis=0, initial=np.inf)
        self.hull = AffineHull(task.K)
        self.center, self.R = task.center.reshape(-1), task.K.radius
        self.size = self.R + euclidean(self.center)
        self.z, self.rho = (task.y - task.d / task.alpha).reshape(-1), task.delta / task.alpha
        self.best = PenaltySolution(task.y, math.inf, math.inf, math.inf, 0)
        self.rounding, self.looks, self.stage = 0.0, 0, ""

    def run(self) -> PenaltySolution:
        """Without the ball, and along it when that leads outside."""
        far = self.distance(self.without_ball(1.0))
        if not self.over and far > self.R:
            self.along_ball(far)
        if self.best.gap == math.inf:  # everything overflowed
            return PenaltySolution(
                self.task.y, self.task.breach(self.task.y), math.inf, math.inf, self.looks
            )
        return self.best._replace(looks=self.looks)

    @property
    def over(self) -> bool:
        return self.best.gap <= self.accuracy or self.looks >= self.budget

    def distance(self, x: Floats) -> float:
        return euclidean(x - self.center)

    def without_ball(self, theta: float) -> Floats:
        """The minimiser where theta stands for the ball, as near as is needed or can be had."""
        part = Part(self, theta)
        for stage in (closed_form, dual_ascent, interior_point):
            for proposal in stage(part):
                part.offer(proposal)
                if self.over or part.gap <= part.aim:
                    self.stage = stage.__name__
                    return part.x
        return part.x

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
            off = self.distance(self.without_ball(theta)) - self.R
            if self.over or off == 0.0:
                return
            if off < 0.0:
                low, high, side = (theta, off), (high[0], high[1] / (2.0 if side < 0 else 1.0)), -1
            else:
                low, high, side = (low[0], low[1] / (2.0 if side > 0 else 1.0)), (theta, off), 1

    def gap(self, x: Floats, S: Int64s, u: Floats, rho: float) -> tuple[Floats, float]:
        """v_t at x, and by how much the multipliers fall short of it: the gap at x = z - P w,
        in units of alpha.
        """
        breached = (x > self.m).nonzero()[0]
        if not len(breached):
            return np.zeros(len(self.C)), float(np.vdot(u, self.C[:, S] - x[S])) if len(S) else 0.0
        v = np.maximum((x[breached] - self.C[:, breached]).max(axis=1), 0.0)
        return v, float(
            np.maximum(0.0, rho - u.sum(axis=1)) @ v
            + np.vdot(u, v[:, None] - (x[S] - self.C[:, S]))
        )

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
        if task.alpha * gap + rounding < self.best.gap:
            self.best, self.rounding = (
                PenaltySolution(x, breach, task.alpha * gap + rounding, off, 0),
                rounding,
            )


class Part:
    """The step without its ball, for one theta: minimise |x - z|^2/2 + rho sum_t g_t^+(x) over
    aff(K).
    """

    def __init__(self, search: Search, theta: float) -> None:
        self.search, self.theta, self.rho = search, theta, theta * search.rho
        self.z = search.z if theta == 1.0 else search.center + theta * (search.z - search.center)
        self.C, self.m, self.hull = search.C, search.m, search.hull
        self.x, self.gap, self.best = (
            self.z,
            math.inf,
            Proposal(np.zeros(0, dtype=np.int64), np.zeros((len(self.C), 0)), None),
        )

    @property
    def aim(self) -> float:
        """The gap that is good enough: what is asked for, or what rounding blurs."""
        asked = self.search.accuracy if self.theta == 1.0 else 0.25 * self.search.accuracy
        return self.theta * max(asked, 0.5 * self.search.rounding) / self.search.task.alpha

    def offer(self, proposal: Proposal) -> None:
        """Evaluate multipliers at z - P w, and where the minimiser is believed to be when that is
        not good enough.
        """
        search, c = self.search, self.search.center
        S, u, guess = proposal.within(self.rho)
        w = scatter(u.sum(axis=0), S, len(self.z))
        least = self.z - self.hull(w)
        off = 8.0 * EPS * (search.size + euclidean(self.z) + euclidean(w))
        search.looks += 1
        for x in (least, guess):
            if x is None or self.gap <= self.aim or search.best.gap <= search.accuracy:
                return
            if not self.hull.whole and (x is guess or off > OFF_HULL * search.R):
                x = c + self.hull(x - c)
            v, gap = search.gap(x, S, u, self.rho)
            gap += 0.5 * (euclidean(x - least) + off) ** 2
            if gap < self.gap:
                self.x, self.gap, self.best = x, gap, Proposal(S, u, None)
            self._in_ball(x, v, gap, least, Proposal(S, u, None), off)

    def _in_ball(
        self, x: Floats, v: Floats, gap: float, least: Floats, proposal: Proposal, off: float
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
        v, gap = search.gap(x, proposal.S, proposal.u / theta, search.rho)
        off = euclidean(x - nearest) + shrink * off / theta
        gap += max(0.0, float((nearest - p) @ (x - nearest))) + 0.5 * off**2
        search.record(x, v, gap, off, max(0.0, far - R))


def scatter(w_S: Floats, S: Int64s, n: int) -> Floats:
    """w_S on S, 0 elsewhere."""
    w = np.zeros(n)
    w[S] = w_S
    return w


def euclidean(x: Floats) -> float:
    """|x|."""
    return math.sqrt(float(x @ x))


def closed_form(part: Part) -> Iterator[Proposal]:
    """(a): the nearest point to z below every capacity, and its multipliers given to the rounds
    that attain the minima.
    """
    z, m, hull = part.z, part.m, part.hull
    S = np.flatnonzero(z > m)
    w_S = z[S] - m[S]
    for _ in range(NEWTON_STEPS if len(S) and not hull.whole else 0):
        w_S = hull.solve(S, z[S] - m[S])
        binding = z - hull(scatter(w_S, S, len(z))) > m + 8.0 * EPS * (np.abs(z) + np.abs(m))
        binding[S] = w_S > 0.0
        now = np.flatnonzero(binding)
        if np.array_equal(now, S) or w_S.sum() > NEWTON_LIMIT * len(part.C) * part.rho:
            break
        S, w_S = now, z[now] - m[now]
    u = np.zeros((len(part.C), len(S)))
    share_multipliers(part.C[:, S], m[S], np.clip(w_S, 0.0, len(u) * part.rho), part.rho, u)
    x = z - hull(scatter(w_S, S, len(z)))
    x[S] = m[S]
    yield Proposal(S, u, x)


def dual_ascent(part: Part) -> Iterator[Proposal]:
    """(b): sweeps over the rounds, entries joining as x rises above their capacities."""
    for doubling in range(DOUBLINGS):
        S = np.union1d(part.best.S, np.flatnonzero(part.x > part.m))
        if not part.hull.few and len(S) > COLUMNS:
            return
        Q, N = part.hull.among(S)
        u = part.best.on(S)
        w = u.sum(axis=0)
        ascend_multipliers(
            part.C[:, S],
            part.rho,
            Q,
            N,
            u,
            part.z[S] - (Q @ w if len(Q) else w - N @ (N.T @ w)),
            2 << doubling,
        )
        before = part.gap
        yield Proposal(S, u, None)
        if part.gap > before / ASCENT_PACE:
            return


def interior_point(part: Part) -> Iterator[Proposal]:
    """(c): on the entries that the optimum can bring to a capacity."""
    r = math.sqrt(2.0 * part.gap)
    top = np.minimum(part.x + r, part.z) if part.hull.whole else part.x + r
    S = np.flatnonzero(top > part.m)
    if not len(S):
        return
    C, reach, tries, inside = part.C[:, S], top[S] + r, 0, None
    for inside in interior(np.minimum(C, reach), S, part.z, part.x, part.rho, part.hull):
        if inside.left <= part.aim:
            yield _believed(inside, S, reach >= C)
            tries += 1
        if tries == LAST_TRIES:
            return
    if inside is not None:
        yield _believed(inside, S, reach >= C)


def _believed(inside: Inside, S: Int64s, near: Bools) -> Proposal:
    """As multipliers, which are not negative, and 0 out of reach."""
    return Proposal(S, np.where(near & (inside.u > 0.0), inside.u, 0.0), inside.x)
