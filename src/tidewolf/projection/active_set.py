"""Approximately feasible projection with a warm start: x as a convex combination of vertices, kept
between calls.

Before the oracle is asked, corrective steps inside the active set (see search.py); they cost no
call. After a call at least the Frank-Wolfe line-search step is taken, so the count of the one-shot
method stays, 8 R^2/tol + 4: every step only brings x nearer to y. When a call meets the tolerance
or ends the budget, y is shifted first and the step is taken against the shifted y (the direction is
the same, so the vertex serves).

A vertex whose weight has fallen to 0 stays for a while as a candidate that costs no call; when idle
ones outnumber those in use by more than 2 `SPARE`, and half the dimension, they all leave. Past
dimension + 1 + `SPARE` atoms in use the set is reduced by Caratheodory's theorem. So memory does
not grow with time. The table of vertices is append-only and shared between the sets that came from
one another.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import as_number, frozen, inner
from tidewolf.core.conforming import allowed_infeasibility
from tidewolf.core.errors import WrongShape
from tidewolf.core.oracle import HasLMO, as_set
from tidewolf.core.types import Array, Bools
from tidewolf.core.vertices import SparseAtoms, Vertex, require_saved_numbers, table_for
from tidewolf.projection.active import (
    AFFORDABLE,
    DOUBLE,
    SAVED_ROUNDING,
    SPARE,
    Combination,
    Remembered,
    emptied,
    is_free_of,
    most_idle,
)
from tidewolf.projection.one_shot import as_budget, as_member, as_near
from tidewolf.projection.search import caratheodory, search, search_any
from tidewolf.sets.base import Compiled


@final
class ActiveSet(Combination):
    """A member of a set as a convex combination of vertices, which the next projection starts from.

    Never changed: `project` makes another. `ActiveSet.start(K)` makes the first.

    Parameters
    ----------
    atoms : Atoms
        A table of vertices, shared between the active sets that came from one another.
    weights : array
        The weights of its first rows, at least 0 and 1 in all.
    x : array
        The point that they make.
    warm : array, optional
        What the next oracle call may start from. None: nothing is known.

    Examples
    --------
    >>> K = tw.sets.Box([0.0, 0.0], [1.0, 1.0])
    >>> active = tw.projection.ActiveSet.start(K)
    >>> first = active.project(K, np.array([2.0, 0.3]), tol=1e-4)
    >>> again = first.active.project(K, np.array([2.0, 0.4]), tol=1e-4)
    >>> first.calls, again.calls
    (3, 1)
    """

    tag: ClassVar = "active set"
    __slots__ = ()

    @classmethod
    def start(cls, K: HasLMO, x0: Array | None = None) -> ActiveSet:
        """One atom: the center, or another member.

        Parameters
        ----------
        K : ConvexSet
            The set.
        x0 : array, optional
            A member to start from. None: the center.

        Returns
        -------
        ActiveSet
            The active set of that point.
        """
        point = as_set(K, "An active set").center if x0 is None else as_member(K, x0)
        atom, weights = K.atom(point), np.ones(1)
        atoms = table_for(atom, point).append(atom, 0)
        return cls(atoms, weights, atoms.combine(weights, point))

    def __repr__(self) -> str:
        return f"ActiveSet({len(self)} atoms)"

    def project(
        self, K: HasLMO, y: Array, *, tol: float, budget: int | None = None
    ) -> Remembered[ActiveSet]:
        """An approximately feasible projection that starts from this active set.

        Parameters
        ----------
        K : ConvexSet
            The set that it is of.
        y : array
            The point to project.
        tol : float
            The squared distance between the member and its infeasible iterate at which it ends,
            above 0.
        budget : int, optional
            How many oracle calls it may take. None: as many as are always enough.

        Returns
        -------
        Remembered
            As `Projected`, with the active set to go on from as `active`.
        """
        y = as_near(y, as_set(K, "A projection"), "The point to project")
        if self.x.shape != K.shape:
            raise WrongShape(
                f"The active set is of a point of shape {tuple(self.x.shape)}; the set has points "
                f"of shape {K.shape}."
            )
        tol = as_number(tol, "tol", above=0.0)
        return self.nearest(K, y + 0.0, tol, as_budget(budget, K, tol))

    def nearest(
        self, K: HasLMO, y: Array, tol: float, budget: float, shared: bool = False
    ) -> Remembered[ActiveSet]:
        """`project` without its checks: y is finite, of the right shape, and the caller's to give
        away. `shared`: the table serves others, too, so no row leaves it (see methods/pool.py).
        """
        atoms, weights, x = self.atoms, self.weights, self.x
        known = (
            type(atoms) is SparseAtoms and type(y) is np.ndarray and y.dtype == x.dtype == DOUBLE
        )
        if isinstance(K, Compiled) and known:
            found = search(K, (atoms, weights, x), y, tol, float(budget))._replace(warm=self.warm)
        else:
            found = search_any(K, (atoms, weights, x, self.warm), y, tol, budget)
        y, active = frozen(found.y), self.at(found.atoms, found.weights, found.x, found.warm)
        if found.calls or len(found.weights) > K.dimension + 1 + SPARE:
            active = active.reduced(found.used, K, shared)
        distance2 = found.distance2
        if active.x is not found.x:
            distance2 = inner(active.x - y, active.x - y)
        return Remembered(active.x, y, found.calls, distance2, active)

    def avoiding(self, K: HasLMO, out: Bools, vertex: Vertex | None) -> Array | None:
        vertices = self.atoms.vertices[: len(self.weights)]
        free = np.array([is_free_of(one, out, self.x) for one in vertices])
        weights = np.where(free, self.weights, 0.0)
        if (total := float(weights.sum())) > 0.0:
            return emptied(self.atoms.combine(weights / total, self.x), out)
        if vertex is None and free.any():
            vertex = vertices[int(np.flatnonzero(free)[-1])]
        return None if vertex is None else vertex.dense(self.x)

    def also(self, K: HasLMO, vertex: Vertex) -> ActiveSet:
        count = len(self.weights)
        if self.atoms.find(vertex, count) is not None:
            return self
        atoms = self.atoms.append(vertex, count)
        return self.at(atoms, np.append(self.weights, 0.0), self.x, self.warm)

    def reduced(self, count: int, K: Any, shared: bool = False) -> ActiveSet:
        """At most dimension + 1 + SPARE atoms in use, if there are `count`, and at most 2 SPARE
        more idle ones than those, unless others use them.
        """
        active, crowded = self, count > K.dimension + 1 + SPARE
        if crowded:
            used, weights = np.flatnonzero(self.weights), np.zeros(len(self.weights))
            weights[used] = caratheodory(self.atoms.gram[np.ix_(used, used)], self.weights[used])
            active = self.at(self.atoms, weights, self.mean_of(weights), self.warm)
        if shared or not (crowded or len(self.weights) > count + most_idle(count, K.dimension)):
            return active
        return active.without_idle()

    def parts(self) -> dict[str, Any]:
        vertices = self.atoms.vertices[: len(self.weights)]
        return {"vertices": vertices, "weights": self.weights, "x": self.x, "warm": self.warm}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> ActiveSet:
        vertices, weights, x, warm = (parts[k] for k in ("vertices", "weights", "x", "warm"))
        require_saved_numbers(x)
        require_saved_numbers(weights, 1)
        kinds = type(vertices) is tuple and type(weights) is np.ndarray
        if not kinds or not len(vertices) == len(weights) > 0:
            raise ValueError("an active set has a weight for each of its vertices")
        shape = tuple(x.shape)
        if not all(isinstance(vertex, Vertex) and vertex.shape == shape for vertex in vertices):
            raise ValueError(f"an active set of a point of shape {shape} has vertices of another")
        atoms = table_for(vertices[0], x)
        for count, vertex in enumerate(vertices):
            atoms = atoms.append(vertex, count)
        active, squares = cls(atoms, weights, x, warm), np.diag(atoms.gram)[: len(weights)]
        active.require_mean(weights.sum(), math.sqrt(float(squares.max(initial=0.0))))
        return active

    def require_of(self, K: HasLMO) -> None:
        """Its vertices are no farther from the center than the radius, and, while that costs
        little, members.
        """
        if tuple(self.x.shape) != K.shape:
            raise ValueError(
                f"an active set of points of shape {tuple(self.x.shape)} stands where those have "
                f"shape {K.shape}"
            )
        vertices, center = self.atoms.vertices[: len(self.weights)], K.center
        allowed, center2 = allowed_infeasibility(K, center), inner(center, center)
        affordable = len(vertices) * math.prod(K.shape) * max(K.shape[1:], default=1) <= AFFORDABLE
        for vertex in vertices:
            far = (
                math.sqrt(max(0.0, vertex.distance2(center, center2)))
                > (1.0 + SAVED_ROUNDING) * K.radius + allowed
            )
            if far or (affordable and not K.infeasibility(vertex.dense(center)) <= allowed):
                raise ValueError("a vertex of its active set is no member of the set")
