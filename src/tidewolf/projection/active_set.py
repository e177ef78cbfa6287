"""Approximately feasible projection that remembers: x as a convex combination of vertices, kept between calls.

Before the oracle is asked, corrective steps inside the active set (see weights.py); they cost no call. After a call at least the
Frank-Wolfe line-search step is taken, so the count of the one-shot method stays, 8 R^2/tol + 4: every step only brings x nearer to y.
When a call meets the tolerance or ends the budget, y is pulled first and the step is taken against the pulled y (the direction is
the same, so the vertex serves).

The table of vertices is shared between states and append-only; past dimension + 1 + `SPARE` atoms a set is reduced by Caratheodory's
theorem, and a table with more than about twice the atoms in use is rebuilt from those: memory does not grow with time.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import Array, as_number, as_point, frozen, inner
from tidewolf.core.checkpoint import Stored
from tidewolf.core.errors import NotAMember
from tidewolf.core.oracle import HasLMO
from tidewolf.core.vertices import Atoms
from tidewolf.projection.one_shot import as_budget, look, pull, step
from tidewolf.projection.weights import Rows, Weights, caratheodory, correct
from tidewolf.sets.base import membership_tolerance

SPARE = 16
STEPS = 30
"""Pairwise steps at most, each time."""
STOP = 0.1
"""They end when the pairwise gap is below this share of the tolerance."""


class Remembered(NamedTuple):
    """A member x, its companion y, the oracle calls it took, |x - y|^2, and the active set to go on from."""

    x: Array
    y: Array
    calls: int
    distance2: float
    active: ActiveSet


@final
class ActiveSet(Stored):
    """A member of a set as a convex combination of rows of a shared table of vertices. Never changed: `project` returns a new one."""

    tag: ClassVar = "active set"
    __slots__ = ("atoms", "count", "rows", "warm", "weights", "x")

    def __init__(self, atoms: Atoms, count: int, rows: Rows, weights: Weights, x: Array, warm: Array | None = None) -> None:
        self.atoms, self.count = atoms, count
        self.rows, self.weights = frozen(rows), frozen(weights)
        self.x, self.warm = frozen(x), warm

    @classmethod
    def start(cls, K: HasLMO, x0: Array | None = None) -> ActiveSet:
        """One atom: the center, or a member x0 (any member may be an atom)."""
        point = K.center if x0 is None else as_point(x0, K.shape, "The starting point")
        if x0 is not None and (excess := K.excess(point)) > membership_tolerance(point, K.radius):
            raise NotAMember(f"The starting point is not a member of the set: its excess is {excess:.3g}.")
        atom = K.atom(point)
        rows, weights = np.zeros(1, dtype=np.int64), np.ones(1)
        atoms = atom.table().append(atom, 0)
        return cls(atoms, 1, rows, weights, atoms.combine(rows, weights, point))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"ActiveSet({len(self.rows)} atoms)"

    def project(self, K: HasLMO, y: Array, *, tol: float, budget: int | None = None) -> Remembered:
        """(x, y') with |x - y'|^2 <= tol, or as near as `budget` calls allow."""
        y = as_point(y, K.shape, "The point to project")
        tol = as_number(tol, "tol", above=0.0)
        return self.nearest(K, y + 0.0, tol, as_budget(budget, K, tol))

    def nearest(self, K: HasLMO, y: Array, tol: float, budget: float) -> Remembered:
        """`project` without its checks: y is finite, of the right shape, and the caller's to give away."""
        atoms, count, rows, weights, warm = self.atoms, self.count, self.rows, self.weights, self.warm
        calls, last = 0, False
        while True:
            rows, weights, x, distance2 = correct(atoms, rows, weights, y, STEPS, STOP * tol)
            if last or distance2 <= tol or calls >= budget:
                break
            r = x - y
            answer = K.answer(r, warm)
            calls, warm = calls + 1, answer.warm
            seen = look(r, x, answer, distance2)
            last = seen.gap**2 <= tol * distance2 or calls >= budget
            pulled = pull(seen.gap, distance2) if last else 0.0
            if pulled > 0.0:
                y = y + pulled * r
            row = atoms.find(answer.vertex, count)
            if row is None:
                row, count, atoms = count, count + 1, atoms.append(answer.vertex, count)
            rows, weights = _stepped(rows, weights, row, step(seen, pulled))
        active = ActiveSet(atoms, count, rows, weights, x, warm)
        if calls and (reduced := active._reduced(K.dimension)) is not active:
            active, r = reduced, reduced.x - y
            distance2 = inner(r, r)
        return Remembered(active.x, frozen(y), calls, distance2, active)

    def _reduced(self, dimension: int) -> ActiveSet:
        """At most dimension + 1 + SPARE atoms, in a table at most about twice as long as that."""
        if len(self.rows) > dimension + 1 + SPARE:
            kept, weights = caratheodory(self.atoms.gram[np.ix_(self.rows, self.rows)], self.weights)
            atoms, rows = self.atoms.only(self.rows[kept]), np.arange(len(kept))
            return ActiveSet(atoms, len(rows), rows, weights, atoms.combine(rows, weights, self.x), self.warm)
        if self.count > 2 * len(self.rows) + 2 * SPARE:
            atoms, rows = self.atoms.only(self.rows), np.arange(len(self.rows))
            return ActiveSet(atoms, len(rows), rows, self.weights, self.x, self.warm)
        return self

    def parts(self) -> dict[str, Any]:
        vertices = self.atoms.vertices[: self.count]
        return {"vertices": vertices, "rows": self.rows, "weights": self.weights, "x": self.x, "warm": self.warm}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> ActiveSet:
        vertices = parts.pop("vertices")
        atoms = vertices[0].table()
        for count, vertex in enumerate(vertices):
            atoms = atoms.append(vertex, count)
        return cls(atoms, len(vertices), **parts)


def _stepped(rows: Rows, weights: Weights, row: int, step: float) -> tuple[Rows, Weights]:
    """Weights after a step towards the atom of `row`, which is added if it is new."""
    k, held = len(rows), rows.tolist()
    if row in held:
        moved = (1.0 - step) * weights
        moved[held.index(row)] += step
        return rows, moved
    grown, moved = np.empty(k + 1, dtype=np.int64), np.empty(k + 1)
    grown[:k], grown[k] = rows, row
    moved[:k], moved[k] = (1.0 - step) * weights, step
    return grown, moved
