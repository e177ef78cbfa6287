"""Check during a run that every played point is in its set.

    every point    excess(x) of each; for every set whose excess is cheap
    combination    |x - sum_i w_i v_i| and excess(v_i), for the weights w and vertices v that the
                   state holds; each vertex is looked at once
    some points    excess(x) of the 1st, 2nd, 4th, 8th, ... and, when asked, of the last point

The latter two are for sets that declare their excess dear (`sets.base.CostlyMembership`): the
combination where the learner's state has one, an `ActiveSet`, else some points. With w >= 0, and
members no longer than |c| + R, the point x is no farther from the set than

    |x - sum_i w_i v_i| + |1 - sum_i w_i| (|c| + R)  +  how far the vertices are.

Neither learner nor state is believed: a point that is not the state's combination, up to rounding,
is checked by its own excess.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidewolf.core.arrays import like, norm, to_numpy
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Atoms, Vertex
from tidewolf.projection import ActiveSet
from tidewolf.sets.base import CostlyMembership, membership_tolerance

EVERY_POINT = "by every point's excess"
COMBINATION = "through the convex combination of vertices"


class Membership:
    """The largest infeasibility so far, and how it is known."""

    def __init__(self, K: HasLMO) -> None:
        self._K = K
        self._worst = 0.0
        self._points = self._combined = self._asked = 0
        self._last: Array | None = None
        self._atoms: Atoms | None = None
        self._vertices: list[tuple[Vertex, float]] = []
        """the first rows of that table, and their excess"""

    def see(self, points: Array, state: Any) -> None:
        """The points that were played from a state, (k, *shape)."""
        active = active_set(state) if isinstance(self._K, CostlyMembership) else None
        for i in range(points.shape[0]):
            x = points[i, ...]
            self._points += 1
            if active is not None:
                self._prove(active, x)
            elif isinstance(self._K, CostlyMembership) and self._points & (self._points - 1):
                self._last = x
            else:
                self._ask(x)
                self._last = None

    @property
    def worst(self) -> float:
        """The largest infeasibility of those that were asked."""
        return self._worst

    def took(self, points: int, worst: float) -> None:
        """So many more points, each asked elsewhere; the largest infeasibility is now this."""
        self._points += points
        self._asked += points
        self._note(worst)

    def _prove(self, active: ActiveSet, x: Array) -> None:
        infeasibility = self._through(active, x)
        if infeasibility <= membership_tolerance(x, self._K.radius):
            self._combined += 1
            self._note(infeasibility)
        else:
            self._ask(x)

    def _through(self, active: ActiveSet, x: Array) -> float:
        """How far x may be from the set, or the largest infeasibility of a vertex; inf where w <
        0.
        """
        weights = active.weights
        if not bool((weights >= 0.0).all()):
            return math.inf
        away = norm(x - active.atoms.combine(weights, x))
        off = abs(1.0 - float(weights.sum())) * (norm(self._K.center) + self._K.radius)
        vertices = self._infeasibilities(active.atoms, len(weights))
        return max(away + off, float(np.max(vertices[weights > 0.0], initial=0.0)))

    def _infeasibilities(self, atoms: Atoms, count: int) -> Floats:
        """The excess of each of the first rows of a table; related tables share vertices."""
        assert isinstance(self._K, CostlyMembership)
        known: dict[int, tuple[Vertex, float]] = {}
        if atoms is not self._atoms:
            known = {id(each[0]): each for each in self._vertices}
            self._atoms, self._vertices = atoms, []
        for vertex in atoms.vertices[len(self._vertices) : count]:
            new = known.get(id(vertex)) or (vertex, self._K.vertex_infeasibility(vertex))
            self._vertices.append(new)
        return np.array([infeasibility for _, infeasibility in self._vertices[:count]])

    def _ask(self, x: Array) -> None:
        self._asked += 1
        self._note(self._K.infeasibility(x))

    def _note(self, infeasibility: float) -> None:
        if not infeasibility <= self._worst:  # a NaN is the worst
            self._worst = infeasibility

    @property
    def infeasibility(self) -> float:
        """The largest; the last point is asked now, once."""
        if self._last is not None:
            self._ask(self._last)
            self._last = None
        return self._worst

    @property
    def _looked_at(self) -> int:
        """Points whose own excess is known, or will be on request."""
        return self._asked + (self._last is not None)

    @property
    def law(self) -> str:
        """What was proved."""
        if self._looked_at + self._combined < self._points:
            return "the 1st, 2nd, 4th, 8th, ... and the last played point are members of the set"
        return "every played point is a member of the set"

    @property
    def how(self) -> str:
        """By what it was proved."""
        some = f"{self._looked_at} of {self._points} points"
        if self._looked_at == self._points:
            return EVERY_POINT
        if not self._combined:
            return f"by the excess of {some}"
        return COMBINATION + (f", {some} by their excess" if self._looked_at else "")

    def parts(self) -> tuple[Any, ...]:
        """Everything as numbers, for a file."""
        last = None if self._last is None else to_numpy(self._last)
        return self._worst, self._points, self._combined, self._asked, last

    def restore(self, parts: tuple[Any, ...], reference: Array) -> None:
        """What `parts` gave, to resume from; points live where `reference` does."""
        self._worst, *counts, last = parts
        self._points, self._combined, self._asked = counts
        self._last = None if last is None else like(last, reference)


def active_set(state: Any) -> ActiveSet | None:
    """The convex combination among the parts of a state, or of a record inside it."""
    if isinstance(state, ActiveSet):
        return state
    parts = map(active_set, state) if isinstance(state, tuple) else ()
    return next((found for found in parts if found is not None), None)
