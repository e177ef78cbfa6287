"""The best point of some rounds, by linear programming (HiGHS): what a practitioner would reach
for.

    minimise <c, x>   over   x in K,  <a_i, x> <= b_i for every i,
    c the sum of the losses, a_i and b_i the limits' half-spaces

Where no point keeps every limit, the worst breach is made least first: s = min { s : x in K, <a_i,
x> - b_i <= s for every i }, and then b_i + s stands in place of b_i. Rows, costs and points are
brought to size 1 for the solver, and what is mostly across aff(K) is taken within it first, <a + k
1, x> <= b + k on a simplex being one limit for every k; an answer that is a member only up to its
tolerances is projected (rivals/exact.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen, like, power_of_two, require_finite, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import NotSupported, SolverFailed
from tidewolf.core.feedback import require_full_information
from tidewolf.core.oracle import as_set
from tidewolf.core.types import Array, Floats
from tidewolf.functions.base import LinearTotal, PiecewiseLinear
from tidewolf.functions.chain import Chain
from tidewolf.methods.settings import HardSet
from tidewolf.rivals.exact import Described, ExactProjection
from tidewolf.sets.base import ConvexSet, Polyhedral, membership_tolerance

_TOLERANCE = 1e-10
"""Of the solver, at size 1."""
_ACROSS = 1e-2
"""A row whose part within aff(K) is a smaller share of it would lose digits at size 1."""
_ROOM = 1e-9
"""How much more than the least worst breach is allowed, at size 1, so that the solver finds a point
again.
"""


class BestPoint(Described):
    """The best point of a set for given losses and limits; `who` asks for it, in sentences."""

    def __init__(self, K: ConvexSet, who: str) -> None:
        as_set(K, who)
        if not isinstance(K, Polyhedral):
            raise NotSupported(
                f"{who} solves linear programs, and {type(K).__name__} has no linear description."
            )
        self.K, self.who = K, who

    def __reduce__(self) -> tuple[Any, ...]:
        return BestPoint, (self.K, self.who)

    def require(self, seen: object, most: int) -> None:
        """Refuse feedback of another kind, on too many rounds, of the wrong shape, or of functions
        that make no linear program.
        """
        losses, constraints = require_full_information(seen, self.K.shape, most)
        for part in _parts(losses):
            if not isinstance(part, LinearTotal):
                raise NotSupported(
                    f"{self.who} solves linear programs; {type(part).__name__} losses do not add "
                    "up to a linear function."
                )
        for part in _parts(constraints):
            if not isinstance(part, PiecewiseLinear):
                raise NotSupported(
                    f"{self.who} solves linear programs; {type(part).__name__} constraints are not "
                    "half-spaces."
                )

    def __call__(self, losses: Batch, constraints: Batch) -> Array:
        """A best point of these rounds, read-only; they passed `require`."""
        from scipy.sparse import csr_array, vstack

        d, unit = self._description, self._unit
        with np.errstate(over="ignore", invalid="ignore"):  # refused next
            c = np.sum(
                [
                    part.total()[0].reshape(-1)
                    for part in _parts(losses)
                    if isinstance(part, LinearTotal)
                ],
                axis=0,
            )
        spaces = [
            part.halfspaces() for part in _parts(constraints) if isinstance(part, PiecewiseLinear)
        ]
        A, b = (
            vstack([csr_array(A, dtype=np.float64) for A, _, _ in spaces]),
            np.concatenate([b for _, b, _ in spaces]),
        )
        require_finite(c, f"The sum of the losses that {self.who} minimises")
        c, size = c / power_of_two(np.abs(c).max()), float(power_of_two(abs(A).max()))
        c, (A, b) = self._along(c[None])[0], self._rows_along(A / size, b / size)
        if d.shift is not None:
            b = b - A @ d.shift
        if d.lift is not None:
            A, c = A @ csr_array(d.lift), d.lift.T @ c
        size = float(power_of_two(abs(A).max()))
        u = self._solved(_Program(c / power_of_two(np.abs(c).max()), A / size, b / (size * unit)))
        u = np.clip(unit * u, d.lower, d.upper)
        x = u if d.lift is None else d.lift @ u
        return self._member(x if d.shift is None else x + d.shift)

    def _rows_along(self, A: Any, b: Floats) -> tuple[Any, Floats]:
        """The same half-spaces of aff(K); a row of one entry is never mostly across it, unless it
        says nothing.
        """
        from scipy.sparse import vstack

        A = A.tocsr()
        several = np.diff(A.indptr) > 1
        given = A[several].toarray()
        along = self._along(given)
        if along is given:
            return A, b
        shifted = b[several] - (given - along) @ to_numpy(self.K.center).reshape(-1)
        return vstack([A[~several], along]), np.concatenate([b[~several], shifted])

    def _along(self, rows: Floats) -> Floats:
        """Flat rows, those within aff(K) that are mostly across it; the same array where none
        is.
        """
        if self.K.dimension == rows.shape[1]:
            return rows
        tangents = [
            to_numpy(self.K.tangent(like(row.reshape(self.K.shape), self.K.center))).reshape(-1)
            for row in rows
        ]
        along = np.array(tangents, dtype=np.float64).reshape(rows.shape)
        across = np.linalg.norm(along, axis=1) < _ACROSS * np.linalg.norm(rows, axis=1)
        return np.where(across[:, None], along, rows) if across.any() else rows

    def _solved(self, program: _Program) -> Floats:
        u = self._linprog(program.rows_of_size_one())
        if u is None:
            worst = self._linprog(program.breach())
            if worst is not None:
                wider = program._replace(b=program.b + max(0.0, float(worst[-1])) + _ROOM)
                u = self._linprog(wider.rows_of_size_one())
        if u is None:
            raise SolverFailed(
                f"HiGHS could not find the best point of {self.K!r} for these rounds."
            )
        return u

    def _linprog(self, program: _Program) -> Floats | None:
        """A minimiser in units of the set's size, entries of a free variable at the end included;
        None where none was found.
        """
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, hstack, vstack

        d, unit, (c, A, b) = self._description, self._unit, program
        more = len(c) - len(d.lower)

        def wide(M: Any) -> Any:
            return hstack([csr_array(M), csr_array((M.shape[0], more))]) if more else M

        result = linprog(
            c,
            A if d.A_ub is None else vstack([A, wide(d.A_ub)]),
            b if d.b_ub is None else np.concatenate([b, d.b_ub / unit]),
            None if d.A_eq is None else wide(d.A_eq),
            None if d.b_eq is None else d.b_eq / unit,
            bounds=np.column_stack(
                [
                    np.append(d.lower / unit, np.full(more, -np.inf)),
                    np.append(d.upper / unit, np.full(more, np.inf)),
                ],
            ),
            method="highs-ds",
            options={
                "primal_feasibility_tolerance": _TOLERANCE,
                "dual_feasibility_tolerance": _TOLERANCE,
            },
        )
        return np.asarray(result.x) if result.status == 0 else None

    def _member(self, x: Floats) -> Array:
        point = like(x.reshape(self.K.shape), self.K.center)
        if self.K.excess(point) > 0.5 * membership_tolerance(point, self.K.radius):
            point = ExactProjection(self.K)(point)
        return frozen(point)

    @cached_property
    def _unit(self) -> float:
        bounds = np.abs(np.concatenate([self._description.lower, self._description.upper]))
        return float(np.max(bounds, where=np.isfinite(bounds), initial=0.0)) or 1.0


class _Program(NamedTuple):
    """Minimise <c, u> under A u <= b."""

    c: Floats
    A: Any
    b: Floats

    def rows_of_size_one(self) -> _Program:
        """The same; a limit in smaller units than others is a limit still."""
        sizes = power_of_two(np.maximum(abs(self.A).max(axis=1).toarray().reshape(-1), 1e-100))
        return _Program(self.c, self.A.multiply(1.0 / sizes[:, None]), self.b / sizes)

    def breach(self) -> _Program:
        """Minimise s under A u - s <= b, s the last variable."""
        from scipy.sparse import csr_array, hstack

        return _Program(
            np.append(0.0 * self.c, 1.0),
            hstack([self.A, csr_array(-np.ones((len(self.b), 1)))]),
            self.b,
        )


def _parts(batch: Batch) -> tuple[Batch, ...]:
    return batch.parts if isinstance(batch, Chain) else (batch,)


@dataclass(frozen=True)
class SetToSolveOn(HardSet):
    """A set that linear programs can describe."""

    def require(self, K: Any, owner: str) -> None:
        BestPoint(K, owner)


DescribedK = Annotated[
    ConvexSet,
    SetToSolveOn("The set that every played point belongs to; it has a linear description."),
]
