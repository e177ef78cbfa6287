"""The best fixed point where losses are a user's own, of which nothing is known but values and
subgradients: a level bundle method, under half-spaces or no limits.

At a point x_k the losses F = sum_t f_t of all rounds have one cut below them,

    F(x)  >=  F(x_k) + <g_k, x - x_k>,       g_k a subgradient of F at x_k

and each iteration (Lemarechal, Nemirovskii & Nesterov 1995) looks at F once:

    the least of the model   max_k F(x_k) + <g_k, x - x_k>   over K and the limits: a linear program
    x_k+1  =  the point nearest to the best one at which the model is at most the level between that
        and the least F so far: a quadratic program

Over a set with a linear description both are over all of it, else over combinations of vertices
that the oracle has answered with, two more an iteration.

Lower. The multipliers mu of the cuts, of sum 1, and lam of the limits make an affine function below
F where the limits are kept; one call of the set's oracle gives its minimum over K (linear_task.py).
It holds for whatever mu and lam are, smooth or kinked, as long as the functions are convex and
their subgradients are some. Upper: F at a member that was seen to keep the limits.

It ends when both are within `_GAP` of each other, relative to how far F gets from its value at the
center, or after `LOOKS` looks at all rounds; what was reached is what is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import eps_of, like, to_numpy
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.errors import NotSupported
from tidewolf.core.oracle import HasLMO
from tidewolf.core.piecewise import LinearTotal, PiecewiseLinear
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.functions.autograd import Autograd
from tidewolf.functions.combined import leaves
from tidewolf.functions.custom import Custom
from tidewolf.functions.support import own_functions
from tidewolf.hindsight.linear_task import LinearTask
from tidewolf.hindsight.lp import lifted_rows, run_linprog, with_free_variables
from tidewolf.hindsight.task import HindsightTask, flattened, positive, require_moderate
from tidewolf.sets.base import LinearDescription, Polyhedral

METHOD = "level bundle method on gradients"
LOOKS, _GAP = 100, 1e-6
_LEVEL = 0.3
"""Where the level is between the model's least value and the best one."""
_ROWS = 16
"""Limits that join at a time."""
_STEPS = 40
"""Steps of the solver of a quadratic program."""
_EXACT = 1e-10
"""What a limit may be broken by before it joins, in units."""


def is_own(part: Stream) -> bool:
    """Whether losses are a user's own, of which nothing is known beyond what they answer; refused,
    with the reason, where nothing can be said of the best point then.
    """
    for limit in _callables(part.constraints):
        raise NotSupported(
            "The best point in hindsight is not known under limits that are "
            f"{type(limit).__name__} functions: of those only values and subgradients are known, "
            "and not where they are kept. Limits that are affine, or maxima of affine pieces, make "
            "it known for any convex losses."
        )
    flat = isinstance(part.constraints, PiecewiseLinear)
    for loss in () if flat else _callables(part.losses):
        raise NotSupported(
            f"The best point in hindsight is not known for {type(loss).__name__} losses under "
            "curved limits; limits that are affine, or maxima of affine pieces, make it known."
        )
    own = (one for one in own_functions(part.losses) if not isinstance(one, _TOLD))
    return flat and any(True for _ in own)


def require_policy(part: Stream) -> None:
    """Refuse, naming them, callables where a policy is asked for."""
    for leaf in (*_callables(part.losses), *_callables(part.constraints)):
        raise NotSupported(
            f"The best policy in hindsight is not known for {type(leaf).__name__} functions: they "
            "take a point of the set, not a policy. Without a context the best fixed point may be "
            "known."
        )


_TOLD = (LinearTotal, PiecewiseLinear)
"""What says itself how it adds up, or which pieces it has."""


def _callables(batch: Batch) -> tuple[Batch, ...]:
    return tuple(leaf for leaf in leaves(batch) if isinstance(leaf, Custom | Autograd))


@final
@dataclass(frozen=True, eq=False)
class OwnTask(HindsightTask):
    """Minimise the losses of `part`, which are looked at only, over the x in K with A x <= b."""

    K: HasLMO
    part: Stream
    limits: LinearTask
    rounds: Int64s

    @classmethod
    def of(cls, K: HasLMO, part: Stream) -> OwnTask:
        """The task of a set and some rounds under half-spaces."""
        assert isinstance(part.constraints, PiecewiseLinear)
        rows = part.constraints.halfspaces()
        limits = LinearTask.of_rows(K, part.constraints, rows, "constraints")
        return cls(limits.K, part, limits, rows.rounds)

    def total(self, x: Floats) -> float:
        return float(to_numpy(self.part.losses.values(self.unflattened(x))).sum(dtype=np.float64))

    def cut(self, x: Floats) -> Cut:
        """The cut at a point, and what rounding may have added to it."""
        point = self.unflattened(x)
        values = to_numpy(self.part.losses.values(point)).astype(np.float64)
        ones = like(np.ones(len(self.part)), point)
        slope = flattened(self.part.losses.subgradient(point, ones))
        total, product = float(values.sum()), float(slope @ x)
        require_moderate("losses", np.abs(slope).max(keepdims=True))
        terms = float(np.abs(values).sum()) + float(np.abs(slope) @ np.abs(x))
        rounding = 2.0 * (x.size + len(values)) * eps_of(point) * terms
        return Cut(total, slope, product - total + rounding, rounding)

    def linearised(self, cut: Cut) -> LinearTask:
        """The same with the cut in place of the losses: at most as much everywhere."""
        return replace(self.limits, c=cut.slope, constant=-cut.offset)

    def lower_bound(self, lam: Floats, anchor: Floats | None = None) -> float:
        raise NotImplementedError  # the bundle has the cuts, and asks `linearised`

    def limits_bound(self, weights: Floats, anchor: Floats | None = None) -> float:
        return self.limits.limits_bound(weights)

    def _breach(self, x: Floats, point: Array) -> tuple[float, float]:
        return self.limits._breach(x, point)


class Cut(NamedTuple):
    """F(x) >= <slope, x> - offset for every x, with equality up to `rounding` where `total` is
    F.
    """

    total: float
    slope: Floats
    offset: float
    rounding: float


class Bracket(NamedTuple):
    """The best feasible point that was looked at, and both bounds."""

    point: Floats
    lower: float
    upper: float


class _Master(NamedTuple):
    """The least of the model: where, how much, and the multipliers of cuts and limits."""

    x: Floats
    value: float
    mu: Floats
    lam: Floats


class OwnBundle:
    """Cuts and vertices seen. Points are in units of the set's radius, totals of that times the
    larger of the first two slopes: at the center itself it may be 0.
    """

    def __init__(self, task: OwnTask, first: Cut) -> None:
        self.task, self.cuts, self.size = task, [first], 1.0
        self.unit = float(positive(task.K.radius))
        self.base, self.center = first.total, flattened(task.K.center)
        self.used = np.zeros(0, dtype=np.int64)
        self.vertices = self.center[:, None]
        self.described = task.K.description() if isinstance(task.K, Polyhedral) else None

    def minimise(self, start: Floats, lower: float) -> Bracket:
        """From a member that keeps the limits, and what is known of the minimum."""
        task, looks = self.task, 0
        self._add_vertex(start)
        best, upper = start, np.inf
        x: Floats | None = start
        if task.is_feasible(self.center):
            best, upper = self.center, self.base
        while True:
            if x is not None:
                cut = task.cut(x)
                looks += 1
                self.cuts.append(cut)
                if looks == 1:
                    slopes = [float(np.linalg.norm(each.slope)) for each in self.cuts]
                    self.size = float(positive(max(slopes))) * self.unit
                self._ask(cut.slope)
                if cut.total < upper and task.is_feasible(x):
                    best, upper = x, cut.total
            master = self._master()
            if master is None:
                break
            lower = max(lower, self._proved(master))
            if self._converged(lower, upper, cut.rounding) or looks >= LOOKS:
                break
            gap = upper - master.value
            if gap <= 0.1 * _GAP * self.size and self.described is None:
                looks, x = looks + 1, None  # the model knows these vertices: more of them
                continue
            nearest = self._nearest(best, master.value + _LEVEL * max(gap, 0.0))
            x = master.x if nearest is None else nearest
        return Bracket(best, min(lower, upper), upper)

    def _converged(self, lower: float, upper: float, rounding: float) -> bool:
        most = max(abs(upper - self.base), abs(lower - self.base), 1e-3 * self.size)
        return upper - lower <= _GAP * most + 2.0 * rounding

    def _proved(self, master: _Master) -> float:
        """What the multipliers prove by a call of the oracle, whose answer joins the vertices."""
        shares = master.mu / positive(master.mu.sum())
        slope = np.array([cut.slope for cut in self.cuts]).T @ shares
        offset = float(shares @ np.array([cut.offset for cut in self.cuts]))
        used = np.flatnonzero(master.lam)
        self._ask(slope + self.task.limits.A[used, :].T @ master.lam[used])
        affine = replace(self.task.limits, c=slope, constant=-offset)
        return affine.lower_bound(master.lam)

    def _ask(self, direction: Floats) -> None:
        if self.described is None:
            answer = self.task.K.answer(self.task.unflattened(direction))
            self._add_vertex(flattened(answer.vertex.dense(self.task.K.center)))

    def _add_vertex(self, vertex: Floats) -> None:
        if self.described is None and not (self.vertices == vertex[:, None]).all(axis=0).any():
            self.vertices = np.column_stack([self.vertices, vertex])

    def _description(self) -> LinearDescription:
        if self.described is not None:
            return self.described
        count = self.vertices.shape[1]
        ones = np.ones(count)
        return LinearDescription(0.0 * ones, ones, ones[None], ones[:1], lift=self.vertices)

    def _point(self, K: LinearDescription, u: Floats) -> Floats:
        u = np.clip(u, K.lower, K.upper)
        if self.described is None:
            u = u / u.sum()
        x = u if K.lift is None else K.lift @ u
        return np.asarray(x if K.shift is None else x + K.shift)

    def _rows(self, K: LinearDescription) -> tuple[Any, Floats, Any, Floats]:
        """The cuts, less the value at the center, and the limits in use, on the u of a
        description, each of size about 1.
        """
        limits = self.task.limits
        slopes = np.array([cut.slope for cut in self.cuts]) / self.size
        offsets = (np.array([cut.offset for cut in self.cuts]) + self.base) / self.size
        G, h = lifted_rows(K, slopes, offsets)
        norms = limits.norms[self.used] * self.unit
        A = limits.A[self.used, :]
        A, b = lifted_rows(K, A, limits.b[self.used])
        return G, h, A.multiply(1.0 / norms[:, None]).tocsr(), b / norms

    def _joined(self, x: Floats) -> bool:
        """Whether a point breaks limits that were not in use; the worst join."""
        breach = self.task.limits.breaches(x) / self.unit
        breach[self.used] = -np.inf
        more = np.flatnonzero(breach > _EXACT)
        more = more[np.argsort(-breach[more], kind="stable")[:_ROWS]]
        self.used = np.concatenate([self.used, more])
        return bool(len(more))

    def _master(self) -> _Master | None:
        from scipy.sparse import csr_array, hstack, vstack

        K = self._description()
        while True:
            G, h, A, b = self._rows(K)
            cuts, limits = len(h), len(b)
            rows = vstack(
                [
                    hstack([A, csr_array((limits, 1))]),
                    hstack([csr_array(G), csr_array(-np.ones((cuts, 1)))]),
                ],
                format="csr",
            )
            cost = np.append(np.zeros(G.shape[1]), 1.0)
            found = run_linprog(cost, with_free_variables(K, 1), rows, np.append(b, h))
            if found is None:
                return None
            (u, lam), norms = found, self.task.limits.norms
            x = self._point(K, u[:-1])
            if self._joined(x):
                continue
            every = np.zeros(len(norms))
            every[self.used] = lam[:limits] * self.size / (norms[self.used] * self.unit)
            return _Master(x, self.base + float(u[-1]) * self.size, lam[limits:], every)

    def _nearest(self, best: Floats, level: float) -> Floats | None:
        """The point nearest to the best one whose cuts are at most the level; None where the solver
        gives up.
        """
        import piqp
        from scipy.sparse import csc_array, csr_array, eye_array, vstack

        def columns(A: Any) -> Any:
            return None if A is None else csc_array(A)

        K = self._description()
        shift = 0.0 if K.shift is None else K.shift
        n = len(K.lower)
        lift = None if K.lift is None else csr_array(K.lift) / self.unit
        P = eye_array(n) / self.unit**2 if lift is None else lift.T @ lift + 1e-10 * eye_array(n)
        target = (best - shift) / self.unit
        c = -target / self.unit if lift is None else -(lift.T @ target)
        while True:
            G, h, A, b = self._rows(K)
            rows = [A, csr_array(G), *([] if K.A_ub is None else [csr_array(K.A_ub)])]
            over = (level - self.base) / self.size
            bounds = [b, over + h, *([] if K.b_ub is None else [K.b_ub])]
            solver = piqp.SparseSolver()
            solver.settings.eps_abs = solver.settings.eps_rel = (
                1e-9 if self.described is None else 1e-11
            )
            solver.settings.max_iter = _STEPS
            solver.setup(
                csc_array(P), c, columns(K.A_eq), K.b_eq, columns(vstack(rows)), None,
                np.concatenate(bounds), K.lower, K.upper,
            )  # fmt: skip
            solver.solve()  # whatever it says: what its point is worth is looked at
            u = np.asarray(solver.result.x)
            if not np.isfinite(u).all() or (self.described is None and not u.max() > 0.0):
                return None
            x = self._point(K, u)
            if not self._joined(x):
                return x
