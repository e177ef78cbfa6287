"""Approximately feasible projection that remembers: x as a convex combination of vertices, kept between calls.

    x = sum_i w_i a_i,       slope_i = <a_i, x - y>

Before the oracle is asked, corrective (pairwise) steps inside the active set: move weight from the worst atom j to the best i,

    step = min(w_j, (slope_j - slope_i)/|a_i - a_j|^2),

in weight space over cached inner products; they cost no call. After a call at least the Frank-Wolfe line-search step is taken, so
the count of the one-shot method stays: every step only brings x nearer to y. When the budget ends on a call, y is pulled first and the
step is taken against the pulled y (the direction is the same, so the vertex serves).

Nothing drifts: weights are rescaled to sum to 1 after every correction and x is rebuilt from them. Weights under `DROP` are dropped;
past dimension + 1 + `SPARE` atoms the set is reduced by Caratheodory's theorem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import Array, as_number, as_point, frozen, inner, norm
from tidewolf.core.checkpoint import Stored
from tidewolf.core.errors import NotAMember
from tidewolf.core.kernels import kernel
from tidewolf.core.oracle import Answer, HasLMO
from tidewolf.core.vertices import Atoms, Vertex
from tidewolf.projection.one_shot import as_budget, fw_gap, fw_step, pulled

DROP = 1e-13
SPARE = 16
STEPS = 30
STOP = 0.1
"""Pairwise steps end when the pairwise gap is below this share of the tolerance."""

Weights = np.ndarray[Any, np.dtype[np.float64]]
Rows = np.ndarray[Any, np.dtype[np.int64]]


class Remembered(NamedTuple):
    """A member x, its companion y, the oracle calls it took, |x - y|^2, and the active set to go on from."""

    x: Array
    y: Array
    calls: int
    distance2: float
    active: ActiveSet


@final
@dataclass(frozen=True, eq=False)
class ActiveSet(Stored):
    """A member of a set as a convex combination of rows of a shared table of vertices; `project` returns a new one."""

    tag: ClassVar = "active set"

    atoms: Atoms
    count: int
    """rows of the table this set knows of"""
    rows: Rows
    weights: Weights
    x: Array
    warm: Array | None = None

    @classmethod
    def start(cls, K: HasLMO, x0: Array | None = None) -> ActiveSet:
        """One atom: the center, or a member x0 (any member may be an atom)."""
        point = K.center if x0 is None else as_point(x0, K.shape, "The starting point")
        if norm(point - K.center) > K.radius * (1.0 + 1e-9):
            raise NotAMember("The starting point is farther from the center of the set than any member.")
        atom = K.atom(point)
        atoms = atom.table().append(atom, 0)
        rows, weights = np.zeros(1, dtype=np.int64), np.ones(1)
        return cls(atoms, 1, rows, weights, frozen(atoms.combine(rows, weights, point)))

    def __len__(self) -> int:
        return len(self.rows)

    def project(self, K: HasLMO, y: Array, *, tol: float, budget: int | None = None, steps: int = STEPS) -> Remembered:
        """(x, y') with |x - y'|^2 <= tol, or as near as `budget` calls allow."""
        y = as_point(y, K.shape, "The point to project")
        return self.nearest(K, y + 0.0, as_number(tol, "tol", above=0.0), as_budget(budget), steps)

    def nearest(self, K: HasLMO, y: Array, tol: float, budget: float, steps: int = STEPS) -> Remembered:
        """`project` without its checks: y is finite, of the right shape, and the caller's to give away."""
        active, calls = self.corrected(y, tol, steps), 0
        while True:
            r = active.x - y
            distance2 = inner(r, r)
            if distance2 <= tol or calls >= budget:
                return Remembered(active.x, frozen(y), calls, distance2, active.bounded(K.dimension))
            answer = K.answer(r, active.warm)
            calls += 1
            gap = fw_gap(r, active.x, answer, distance2)
            last = gap * gap <= tol * distance2 or calls >= budget
            if last:
                y = pulled(y, r, gap, distance2)
            active = active.stepped(y, answer).corrected(y, tol, steps)
            if last:
                r = active.x - y
                return Remembered(active.x, frozen(y), calls, inner(r, r), active.bounded(K.dimension))

    def corrected(self, y: Array, tol: float, steps: int = STEPS) -> ActiveSet:
        """Pairwise steps towards y until the pairwise gap falls below a tenth of tol, zero weights dropped."""
        if len(self.rows) == 1:
            return self
        slopes = self.atoms.inner(self.rows, self.x - y)
        rows, weights = self.rows.copy(), self.weights.copy()
        taken = pairwise_steps(self.atoms.gram, rows, weights, slopes, steps, STOP * tol)
        return self if taken == 0 else self._with(*_kept(rows, weights))

    def stepped(self, y: Array, answer: Answer) -> ActiveSet:
        """The Frank-Wolfe step towards the vertex of an answer, with exact line search against y."""
        step = fw_step(self.x, y, answer)
        active = self if answer.warm is None else ActiveSet(self.atoms, self.count, self.rows, self.weights, self.x, answer.warm)
        if step <= 0.0:
            return active
        active, place = active._holding(answer.vertex)
        weights = (1.0 - step) * active.weights
        weights[place] += step
        return active._with(*_kept(active.rows.copy(), weights))

    def bounded(self, dimension: int) -> ActiveSet:
        """At most dimension + 1 + SPARE atoms, in a table at most about twice as long as that."""
        active = self
        if len(self.rows) > dimension + 1 + SPARE:
            kept, weights = caratheodory(self.atoms.gram[np.ix_(self.rows, self.rows)], self.weights)
            active = self._with(self.rows[kept], weights)
        if active.count > 2 * len(active.rows) + 2 * SPARE:
            atoms = active.atoms.only(active.rows)
            return ActiveSet(atoms, len(atoms), np.arange(len(atoms)), active.weights, active.x, active.warm)
        return active

    def _holding(self, vertex: Vertex) -> tuple[ActiveSet, int]:
        """This set with `vertex` among its atoms (weight 0 if new), and its place."""
        row = self.atoms.find(vertex, self.count)
        if row is not None:
            place = np.flatnonzero(self.rows == row)
            if len(place):
                return self, int(place[0])
            atoms, count = self.atoms, self.count
        else:
            row, count = self.count, self.count + 1
            atoms = self.atoms.append(vertex, self.count)
        grown = ActiveSet(atoms, count, np.append(self.rows, row), np.append(self.weights, 0.0), self.x, self.warm)
        return grown, len(self.rows)

    def _with(self, rows: Rows, weights: Weights) -> ActiveSet:
        return ActiveSet(self.atoms, self.count, rows, weights, frozen(self.atoms.combine(rows, weights, self.x)), self.warm)

    def parts(self) -> dict[str, Any]:
        return {
            "vertices": self.atoms.vertices[: self.count],
            "rows": self.rows,
            "weights": self.weights,
            "x": self.x,
            "warm": self.warm,
        }

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> ActiveSet:
        vertices = parts.pop("vertices")
        atoms = vertices[0].table()
        for count, vertex in enumerate(vertices):
            atoms = atoms.append(vertex, count)
        return cls(atoms, len(vertices), **parts)


def caratheodory(gram: np.ndarray[Any, Any], weights: Weights) -> tuple[Rows, Weights]:
    """Atoms (by number) and weights of the same point with no affinely dependent atoms left.

    A null vector of the Gram matrix bordered by ones is an affine dependence; moving the weights along it until one vanishes keeps the point.
    """
    scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    values, vectors = np.linalg.eigh(gram / scale + 1.0)
    dependences = vectors[:, values <= 1e-12 * max(1.0, float(values[-1]))]
    weights = weights.copy()
    alive = np.ones(len(weights), dtype=bool)
    while dependences.shape[1]:
        c = dependences[:, 0] if dependences[:, 0].max() > 0 else -dependences[:, 0]
        falling = np.flatnonzero(alive & (c > 1e-9))
        if len(falling) == 0:
            dependences = dependences[:, 1:]
            continue
        first = falling[np.argmin(weights[falling] / c[falling])]
        weights = np.maximum(weights - (weights[first] / c[first]) * c, 0.0)
        weights[first], alive[first] = 0.0, False
        dependences = dependences[:, 1:] - np.outer(c, dependences[first, 1:] / c[first])
    kept = np.flatnonzero(weights > DROP)
    return kept, weights[kept] / weights[kept].sum()


def _kept(rows: Rows, weights: Weights) -> tuple[Rows, Weights]:
    """Atoms whose weight is worth keeping, weights rescaled to sum to 1."""
    kept = weights > DROP
    if not kept.all():
        rows, weights = rows[kept], weights[kept]
    weights /= weights.sum()
    return rows, weights


@kernel
def pairwise_steps(gram, rows, weights, slopes, steps, stop):  # type: ignore[no-untyped-def]
    """Up to `steps` pairwise steps, in place; returns how many were taken."""
    k = len(rows)
    for taken in range(steps):
        i, j = 0, -1
        for q in range(k):
            if slopes[q] < slopes[i]:
                i = q
            if weights[q] > 0.0 and (j < 0 or slopes[q] > slopes[j]):
                j = q
        gap = slopes[j] - slopes[i]
        if gap <= stop:
            return taken
        a, b = rows[i], rows[j]
        length2 = gram[a, a] - 2.0 * gram[a, b] + gram[b, b]
        step = weights[j]
        if gap < step * length2:
            step = gap / length2
            weights[j] -= step
        else:
            weights[j] = 0.0
        weights[i] += step
        for q in range(k):
            slopes[q] += step * (gram[a, rows[q]] - gram[b, rows[q]])
    return steps
