"""Exact Euclidean projection, the thing learners here avoid:  argmin_{x in K} |x - y|^2.

A set's own method if it has one, else its linear description given to PIQP
(interior point, sparse). With x = shift + L u,

    minimise 1/2 u' L'L u - <L'(y - shift), u>   subject to
        A_eq u = b_eq,  A_ub u <= b_ub,  lower <= u <= upper.

The problem is set up once; a projection replaces the linear term and solves again, from the same
cold point every time. PIQP's own scaling would be undone and redone, and rounded, each time: it is
off, so that the answer depends on y alone. A lift is brought to size 1 instead, by a power of two.
"""

import math
import threading
from functools import cached_property
from typing import Any, cast

import numpy as np

from tidewolf.core import errors, lazy
from tidewolf.core.arrays import like, to_numpy
from tidewolf.core.types import Array, NDArray
from tidewolf.sets import base

# Of residuals and of the duality gap; an answer on the border that is its own question is off by
# the root of the latter.
PROJECTION_ACCURACY = 1e-13
# The gap, as a share of radius^2 + |x - y|^2, up to which an answer counts where PIQP makes no more
# progress: degenerate lifts do that.
STALLED = 1e-11
# Added to the quadratic term of a lifted description, whose weights need not be unique.
_RIDGE = 1e-12


class ExactProjection:
    def __init__(self, K: base.ConvexSet) -> None:
        if not isinstance(K, base.Projectable | base.Polyhedral):
            raise errors.NotSupported(
                f"Expected a set with `project` or a linear description, not {type(K).__name__}."
            )
        self.K, self._solving = K, threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactProjection, (self.K,)  # a copy sets its own solver up

    def __call__(self, y: Array) -> Array:
        if isinstance(self.K, base.Projectable):
            return self.K.project(y)
        return like(self._quadratic_program(to_numpy(y).reshape(-1)).reshape(self.K.shape), y)

    @cached_property
    def _description(self) -> base.LinearDescription:
        return cast(base.Polyhedral, self.K).description()

    def _quadratic_program(self, y: NDArray) -> NDArray:
        described = self._description
        shift = np.zeros(len(y)) if described.shift is None else described.shift
        c = shift - y if described.lift is None else described.lift.T @ (shift - y) / self._unit**2
        with self._solving:
            self._solver.update(c=c)
            status = self._solver.solve()
            found = np.array(self._solver.result.x)
        u = np.clip(found, described.lower, described.upper)
        x = np.asarray(shift + (u if described.lift is None else described.lift @ u))
        if status != lazy.piqp.PIQP_SOLVED and not self._near(x, y):
            raise errors.SolverFailed(f"PIQP could not project on {self.K!r}: {status}.")
        return x

    def _near(self, x: NDArray, y: NDArray) -> bool:
        """Whether x is a member, and the oracle proves |x - projection|^2 <= <x - y, x - v> to be
        next to nothing.
        """
        K, r = self.K, x - y
        tolerance = base.membership_tolerance(x, K.radius)
        if not np.isfinite(x).all() or K.infeasibility(x.reshape(K.shape)) > tolerance:
            return False
        v = to_numpy(K.lmo(r.reshape(K.shape))).reshape(-1)
        return float(r @ (x - v)) <= STALLED * (K.radius**2 + float(r @ r))

    @cached_property
    def _unit(self) -> float:
        lift = self._description.lift
        size = 0.0 if lift is None else float(abs(lift).max())
        return 2.0 ** round(math.log2(size)) if size > 0.0 else 1.0

    @cached_property
    def _solver(self) -> Any:
        d, n = self._description, len(self._description.lower)
        P = lazy.sp.eye(n, format="csc")
        if d.lift is not None:
            P = lazy.sp.csc_matrix(d.lift.T @ d.lift / self._unit**2) + _RIDGE * P
        A, G = (None if rows is None else lazy.sp.csc_matrix(rows) for rows in (d.A_eq, d.A_ub))
        solver = lazy.piqp.SparseSolver()
        for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
            setattr(solver.settings, name, PROJECTION_ACCURACY)
        solver.settings.preconditioner_iter = 0
        solver.setup(P, np.zeros(n), A, d.b_eq, G, None, d.b_ub, d.lower, d.upper)
        return solver
