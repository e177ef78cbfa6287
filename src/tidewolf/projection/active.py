"""What a learner keeps of a projection to start the next one from: a member of the set.

ActiveSet           a convex combination of vertices of the set
FactoredActiveSet   one for each factor of a product (factored.py)
ExactPoint          the member alone, where exact projection is cheap

With an active set, before the oracle is asked, corrective steps inside it (see search.py); they
cost no call. After a call at least the Frank-Wolfe line-search step is taken, so the count of the
one-shot method stays, 8 R^2/tol + 4: every step only brings x nearer to y. When a call meets the
tolerance or ends the budget, y is shifted first and the step is taken against the shifted y (the
direction is the same, so the vertex serves).

A vertex whose weight has fallen to 0 stays for a while as a candidate that costs no call; when idle
ones are more than `IDLE`, the older half of that number leaves. Past
dimension + 1 + `SPARE` atoms in use the set is reduced by Caratheodory's theorem. So memory does
not grow with time. The table of vertices is append-only and shared between the sets that came from
one another.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, cast, final

import numpy as np

from tidewolf.core import arrays, checkpoint, conforming, errors, oracle
from tidewolf.core.types import Array, Bools, Floats, Int64s, NDArray
from tidewolf.core.vertices import Sparse, SparseAtoms, Vertex, require_saved_numbers
from tidewolf.kernels.active_set import OPEN, factored_correct, factored_step
from tidewolf.kernels.rounds import CORRECTIVE_GAP, CORRECTIVE_STEPS, IDLE, SPARE
from tidewolf.projection.one_shot import as_budget, as_member, as_near, oracle_error
from tidewolf.projection.search import caratheodory, search, search_any
from tidewolf.sets import base

# Products up to this size keep vertices that are not sparse as rows, too.
DENSE_ENTRIES = 4096
DOUBLE = np.dtype(np.float64)


Kept = TypeVar("Kept", bound="Active")


class Active(checkpoint.Stored, ABC):
    """Abstract: a member x that projections start from. Never changed: each makes another."""

    tag: ClassVar = "member of a set"
    x: Array

    @abstractmethod
    def nearest(
        self, K: oracle.HasLMO, y: Array, tol: float, budget: float, shared: bool = False
    ) -> Remembered[Self]:
        """A member within sqrt(tol) of an infeasible iterate of y, or as near as the budget of
        oracle calls allows; y is finite, of the right shape, and the caller's to give away.
        `shared`: its table of vertices serves others, too, so no row leaves it.
        """

    @abstractmethod
    def avoiding(self, K: oracle.HasLMO, out: Bools, vertex: Vertex | None) -> Array | None:
        """A member that is 0 in these flat entries: the mean of its vertices that are, or where
        none with weight is, in a factor of a product, one that is known or `vertex`. None: neither
        is there.
        """

    def also(self, K: oracle.HasLMO, vertex: Vertex) -> Self:
        """The same point with one more vertex to choose from; the same if it has no table."""
        return self

    def require_of(self, K: oracle.HasLMO) -> None:
        if not conforming.is_member(K, self.x):
            raise ValueError("a point of the state is no member of the set")


class Combination(Active):
    """Abstract: a convex combination of the first rows of a table of vertices, which it may share
    with others; `warm` is what the next oracle call may start from.
    """

    tag: ClassVar = "combination of vertices"
    saved: ClassVar = ("weights", "x", "warm")

    def __init__(self, atoms: Any, weights: Floats, x: Array, warm: Any = None) -> None:
        self.atoms, self.warm = atoms, warm
        self.weights, self.x = arrays.frozen(weights), arrays.frozen(x)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.weights))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} atoms)"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.atoms, self.weights, self.x, self.warm)  # a copy is read-only too

    def at(self, table: Any, weights: Floats, x: Array, warm: Any) -> Self:
        return type(self)(table, weights, x, warm)

    def mean_of(self, weights: Floats) -> Array:
        return cast(Array, self.atoms.combine(weights, self.x))

    def only(self, table: Any, rows: Int64s) -> Self:
        return self.at(table, self.weights[rows], self.x, self.warm)

    def without_idle(self) -> Self:
        kept = rows_to_keep(self.weights > 0.0)
        return self.only(self.atoms.only(kept), kept)

    def require_of(self, K: oracle.HasLMO) -> None:
        super().require_of(K)
        require_saved_numbers(self.weights, 1)


def rows_to_keep(in_use: Bools) -> NDArray:
    """The rows in use, and the newest `IDLE` / 2 of the others."""
    kept = in_use.copy()
    kept[np.flatnonzero(~in_use)[-(IDLE // 2) :]] = True
    return np.flatnonzero(kept)


class Remembered(NamedTuple, Generic[Kept]):
    """A member x, its infeasible iterate y, the oracle calls it took, |x - y|^2, and what to go on
    from."""

    x: Array
    y: Array
    calls: int
    distance2: float
    active: Kept


def is_free_of(vertex: Vertex, out: Bools, reference: Array) -> bool:
    if type(vertex) is Sparse:
        return not bool(vertex.values[out[vertex.indices]].any())
    return not bool(arrays.to_numpy(vertex.dense(reference)).reshape(-1)[out].any())


def emptied(x: Array, out: Bools) -> Array:
    entries = arrays.to_numpy(x).copy()
    entries.reshape(-1)[out] = 0.0
    return arrays.frozen(arrays.like(entries, x))


def factors_of(K: oracle.HasLMO) -> base.Factors | None:
    """The factors of a product that projections can treat one by one; None: it is one for them.

    They are NumPy's, in double precision, and if no exact projection is at hand their vertices
    are sparse or the product is small; points whose membership is costly to see are proved by their
    vertices, so such a set stays one.
    """
    factors = K.factors if isinstance(K, base.ConvexSet) else None
    if factors is None or len(factors.starts) < 2 or isinstance(K, base.CostlyMembership):
        return None
    if type(K.center) is not np.ndarray or K.center.dtype != DOUBLE:
        return None
    if factors.exact or math.prod(K.shape) <= DENSE_ENTRIES or type(K.atom(K.center)) is Sparse:
        return factors
    return None


def factors_in(K: oracle.HasLMO) -> base.Factors:
    return cast(base.Factors, cast(base.ConvexSet, K).factors)


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

    @classmethod
    def start(cls, K: oracle.HasLMO, x0: Array | None = None) -> ActiveSet:
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
        point = oracle.as_set(K, "An active set").center if x0 is None else as_member(K, x0)
        atom, weights = K.atom(point), np.ones(1)
        atoms = atom.table(point).append(atom, 0)
        return cls(atoms, weights, atoms.combine(weights, point))

    def project(
        self, K: oracle.HasLMO, y: Array, *, tol: float, budget: int | None = None
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
        y = as_near(y, oracle.as_set(K, "A projection"), "The point to project")
        if (shape := tuple(self.x.shape)) != K.shape:
            raise errors.WrongShape(
                f"The active set has points of shape {shape}, the set of shape {K.shape}."
            )
        tol = arrays.as_number(tol, "tol", above=0.0)
        return self.nearest(K, y + 0.0, tol, as_budget(budget, K, tol))

    def nearest(
        self, K: oracle.HasLMO, y: Array, tol: float, budget: float, shared: bool = False
    ) -> Remembered[ActiveSet]:
        """`project` without its checks: y is finite, of the right shape, and the caller's to give
        away. `shared`: the table serves others, too, so no row leaves it (see methods/pool.py).
        """
        start = self.atoms, self.weights, self.x, self.warm
        plain = type(self.atoms) is SparseAtoms and type(y) is np.ndarray
        if isinstance(K, base.Compiled) and plain and y.dtype == self.x.dtype == DOUBLE:
            parts, y, calls, distance2, used = search(K, start, y, tol, float(budget))
        else:
            parts, y, calls, distance2, used = search_any(K, start, y, tol, budget)
        active, y = self.at(*parts), arrays.frozen(y)
        if calls or len(active.weights) > K.dimension + 1 + SPARE:
            active = active.reduced(used, K, shared)
        if active.x is not parts[2]:
            distance2 = arrays.inner(active.x - y, active.x - y)
        return Remembered(active.x, y, calls, distance2, active)

    def avoiding(self, K: oracle.HasLMO, out: Bools, vertex: Vertex | None) -> Array | None:
        vertices = self.atoms.vertices[: len(self.weights)]
        free = np.array([is_free_of(one, out, self.x) for one in vertices])
        weights = np.where(free, self.weights, 0.0)
        if (total := float(weights.sum())) > 0.0:
            return emptied(self.atoms.combine(weights / total, self.x), out)
        if vertex is None and free.any():
            vertex = vertices[int(np.flatnonzero(free)[-1])]
        return None if vertex is None else vertex.dense(self.x)

    def also(self, K: oracle.HasLMO, vertex: Vertex) -> ActiveSet:
        count = len(self.weights)
        if self.atoms.find(vertex, count) is not None:
            return self
        return self.at(
            self.atoms.append(vertex, count), np.append(self.weights, 0.0), self.x, self.warm
        )

    def reduced(self, count: int, K: Any, shared: bool = False) -> ActiveSet:
        """At most dimension + 1 + SPARE atoms in use, if there are `count`, and IDLE others, unless
        other points use them.
        """
        active, crowded = self, count > K.dimension + 1 + SPARE
        if crowded:
            used, weights = np.flatnonzero(self.weights), np.zeros(len(self.weights))
            weights[used] = caratheodory(self.atoms.gram[np.ix_(used, used)], self.weights[used])
            active = self.at(self.atoms, weights, self.mean_of(weights), self.warm)
        if shared or not (crowded or len(self.weights) > count + IDLE):
            return active
        return active.without_idle()

    def parts(self) -> dict[str, Any]:
        return {"vertices": self.atoms.vertices[: len(self.weights)], **super().parts()}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> ActiveSet:
        vertices, weights, x, warm = (parts[k] for k in ("vertices", "weights", "x", "warm"))
        shapes = {tuple(x.shape), *(vertex.shape for vertex in vertices)}
        if len(shapes) > 1 or len(vertices) != len(weights):
            raise ValueError("an active set has a weight for each vertex, all of its point's shape")
        atoms = vertices[0].table(x)
        for count, vertex in enumerate(vertices):
            atoms = atoms.append(vertex, count)
        return cls(atoms, weights, x, warm)


@final
class ExactPoint(Active):
    """A member of a set whose exact projection is cheap: x = y' = the member nearest to y.

    I and III hold because it is the projection on K itself, II with distance 0; no oracle is asked.
    """

    tag: ClassVar = "exact point"
    saved: ClassVar = ("x",)

    def __init__(self, x: Array) -> None:
        self.x = arrays.frozen(x)

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactPoint, (self.x,)

    def nearest(
        self, K: Any, y: Array, tol: float, budget: float, shared: bool = False
    ) -> Remembered[ExactPoint]:
        x = arrays.frozen(K.project(y))
        return Remembered(x, x, 0, 0.0, ExactPoint(x))

    def avoiding(self, K: Any, out: Bools, vertex: Vertex | None) -> Array | None:
        """The member nearest to x that is 0 there: pushed far below 0, entries end at 0, or where
        they may be negative at a bound from which they can be moved to 0.
        """
        if vertex is not None:
            return vertex.dense(self.x)
        far = 1e3 * (K.radius + float(np.abs(self.x).max()))
        x = emptied(K.project(emptied(self.x, out) - far * out.reshape(self.x.shape)), out)
        return x if K.infeasibility(x) <= base.membership_tolerance(x, K.radius) else None


# --- On a product, factor by factor ---------------------------------------------------------------
#
# Approximately feasible projection on a product, factor by factor, with one call for all.
#
#     K = K_1 x ... x K_q,    x_b = sum of weights times vertices of K_b, kept between calls
#
# Every factor projects as above, on its own: corrective steps among its own vertices, then
# the gap, half-space shift and line search of its part of the oracle's answer at x - y. An answer
# of K answers for all factors and counts once. With
#
#     tol_b = tol R_b^2/R^2,     sum_b tol_b = tol,
#
# a factor is done when |x_b - y_b|^2 <= tol_b or gap_b^2 <= tol_b |x_b - y_b|^2; so all are within
# the 8 R_b^2/tol_b + 4 = 8 R^2/tol + 4 calls that each alone would need. Properties I and III hold
# in every factor, |y'_b - z_b| <= |y_b - z_b|, hence in any metric that weighs factors. An oracle
# that may err by e in all errs by at most e in each, so e is added to each gap. Factors that are
# done ask in the direction 0.
#
# Vertices of factors are rows of one append-only table of sparse vertices, which active sets share
# as they do the one above. Past its number of entries + 1 + `SPARE_IN_FACTOR` rows in use a
# factor is reduced by Caratheodory's theorem. Every call may add a row for each factor, so idle
# rows may be as many as those in use, and `IDLE` more.


SPARE_IN_FACTOR = 8


def start_active(K: oracle.HasLMO, x0: Array | None = None) -> Active:
    factors = factors_of(K)
    if factors is not None and factors.exact:
        return ExactPoint(K.center if x0 is None else as_member(K, x0))
    return (ActiveSet if factors is None else FactoredActiveSet).start(K, x0)


class FactorTable(SparseAtoms):
    """Vertices of the factors of a product: row i is one of factor owners[i], with its entries as
    the product counts them. `places` are the first entries of the factors, and the number of
    entries.
    """

    places: Int64s

    def __init__(self) -> None:
        super().__init__()
        self.owners = np.zeros(self.room, dtype=np.int64)

    @classmethod
    def of(
        cls, vertices: Sequence[Sparse], owners: Sequence[int] | Int64s, places: Int64s
    ) -> FactorTable:
        table = cls()
        table.places = arrays.frozen(places)
        for row, (vertex, owner) in enumerate(zip(vertices, owners, strict=True)):
            table._append(vertex)
            table.owners[row] = owner
        return table

    @property
    def rows(self) -> tuple[Int64s, NDArray, Floats]:
        return self.starts, self.indices, self.values

    def make_room(self, rows: int, entries: int) -> None:
        super().make_room(rows, entries)
        self.owners = arrays.padded(self.owners, max(self.room, len(self.owners)))

    def only(self, rows: NDArray) -> Self:
        table = super().only(rows)
        table.places, table.owners = self.places, arrays.padded(self.owners[rows], table.room)
        return table


@final
class FactoredActiveSet(Combination):
    """A member of a product as a convex combination of vertices of each factor: `weights` are those
    of the first rows of a `FactorTable`, 1 in all within each factor.
    """

    tag: ClassVar = "factored active set"

    @classmethod
    def start(cls, K: oracle.HasLMO, x0: Array | None = None) -> FactoredActiveSet:
        point, factors = K.center if x0 is None else as_member(K, x0), factors_in(K)
        parts = parts_of(as_sparse(K.atom(point), K), factors)
        places = np.append(factors.starts, math.prod(K.shape)).astype(np.int64)
        atoms, weights = FactorTable.of(parts, range(len(parts)), places), np.ones(len(parts))
        return cls(atoms, weights, atoms.combine(weights, np.zeros(K.shape)))

    def nearest(
        self, K: oracle.HasLMO, y: Array, tol: float, budget: float, shared: bool = False
    ) -> Remembered[FactoredActiveSet]:
        tols = tol * _shares(factors_in(K).radii)
        atoms, weights, warm, places = self.atoms, self.weights.copy(), self.warm, self.atoms.places
        given, y, x = y, arrays.flat(y).copy(), arrays.flat(self.x).copy()
        r, stages = np.zeros(len(x)), np.full(len(tols), OPEN)
        distances2, calls, moved = np.empty(len(tols)), 0, False
        while True:
            count = len(weights)
            members = np.argsort(atoms.owners[:count], kind="stable")
            begins = np.searchsorted(atoms.owners[members], np.arange(len(tols) + 1))
            lists, points = (members, begins, places), (x, y, r, stages, tols, distances2)
            still_open = factored_correct(
                atoms.rows, *lists, weights, *points, CORRECTIVE_STEPS, CORRECTIVE_GAP
            )
            if still_open == 0 or calls >= budget:
                break
            answer = K.answer(r.reshape(K.shape), warm)
            calls, warm = calls + 1, answer.warm
            vertex = as_sparse(answer.vertex, K)
            order = np.argsort(vertex.indices, kind="stable")
            indices, values = vertex.indices[order], vertex.values[order]
            found = indices, values, np.searchsorted(indices, places), answer.error
            weights = arrays.padded(weights, count + still_open)
            with atoms.lock:
                if atoms.filled != count:  # others have appended rows to it meanwhile: a fork
                    atoms = atoms.only(np.arange(count))
                atoms.make_room(count + still_open, int(atoms.starts[count]) + len(indices))
                table = (atoms.rows, atoms.owners, *lists, count, weights)
                count, shifted, worse = factored_step(*table, *points, *found, calls >= budget)
                atoms.filled = count
            if worse >= 0:
                raise oracle_error(vertex.inner(r), answer.error, arrays.inner(r, x))
            weights, moved = weights[:count], moved or shifted
        active = self.at(atoms, weights, x.reshape(K.shape), warm)
        after = arrays.frozen(y.reshape(K.shape)) if moved else given
        reduced = active._reduced(shared)
        same = reduced.x is active.x
        distance2 = (
            float(distances2.sum()) if same else arrays.inner(reduced.x - after, reduced.x - after)
        )
        return Remembered(reduced.x, after, calls, distance2, reduced)

    def avoiding(self, K: oracle.HasLMO, out: Bools, vertex: Vertex | None) -> Array | None:
        table, count, q = self.atoms, len(self.weights), len(self.atoms.places) - 1
        owners, stop = table.owners[:count], int(table.starts[count])
        of_row = np.repeat(np.arange(count), np.diff(table.starts[: count + 1]))
        uses = out[table.indices[:stop]] & (table.values[:stop] != 0.0)
        free = np.bincount(of_row, uses, count) == 0.0
        weights = np.where(free, self.weights, 0.0)
        lacking = np.bincount(owners, weights, q) == 0.0
        if vertex is None:
            rows = np.flatnonzero(free & lacking[owners])
            newest = dict(zip(owners[rows].tolist(), rows.tolist(), strict=True))
            weights[list(newest.values())] = 1.0
            lacking[list(newest)] = False
            if lacking.any():
                return None
        x = self.mean_of(weights / np.where(lacking, 1.0, np.bincount(owners, weights, q))[owners])
        if vertex is not None:
            instead = np.repeat(lacking, np.diff(self.atoms.places)).reshape(x.shape)
            x = np.where(instead, vertex.dense(self.x), x)
        return emptied(x, out)

    def also(self, K: oracle.HasLMO, vertex: Vertex) -> FactoredActiveSet:
        table, count = self.atoms, len(self.weights)
        for b, part in enumerate(parts_of(as_sparse(vertex, K), factors_in(K))):
            row = table.find(part, count)
            if row is None or table.owners[row] != b:
                with table.lock:
                    table = table.append(part, count)
                    table.owners[count] = b
                count += 1
        return self.at(table, arrays.padded(self.weights, count), self.x, self.warm)

    def _reduced(self, shared: bool) -> FactoredActiveSet:
        """Not too many rows in use in any factor, nor, unless others use them, idle in all."""
        active, used = self, np.flatnonzero(self.weights)
        owners = self.atoms.owners[used]
        most = np.diff(self.atoms.places) + 1 + SPARE_IN_FACTOR
        crowded = np.flatnonzero(np.bincount(owners, minlength=len(most)) > most)
        if len(crowded):
            weights = self.weights.copy()
            for b in crowded:
                rows = used[owners == b]
                weights[rows] = caratheodory(
                    self.atoms.only(rows).gram[: len(rows), : len(rows)], self.weights[rows]
                )
            active = self.at(self.atoms, weights, self.mean_of(weights), self.warm)
            used = np.flatnonzero(weights)
        idle = not shared and len(self.weights) > 2 * len(used) + IDLE
        return active.without_idle() if idle else active

    def parts(self) -> dict[str, Any]:
        atoms, count = self.atoms, len(self.weights)
        stops = {"owners": count, "starts": count + 1}
        stops |= dict.fromkeys(("indices", "values"), int(atoms.starts[count]))
        rows = {name: getattr(atoms, name)[:stop].copy() for name, stop in stops.items()}
        return {"places": self.atoms.places, **rows, **super().parts()}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> FactoredActiveSet:
        x, weights, cuts = parts["x"], parts["weights"], parts["starts"][1:-1]
        pairs = zip(np.split(parts["indices"], cuts), np.split(parts["values"], cuts), strict=True)
        rows = [Sparse(tuple(x.shape), *part) for part in pairs]
        for row in rows:
            row.require_sound()
        if len(weights) != len(rows):
            raise ValueError("each row of a factored active set has a weight")
        return cls(
            FactorTable.of(rows, parts["owners"], parts["places"]), weights, x, parts["warm"]
        )

    def require_of(self, K: oracle.HasLMO) -> None:
        super().require_of(K)
        factors = factors_of(K)
        if factors is None or not np.array_equal(self.atoms.places[:-1], factors.starts):
            raise ValueError("a factored active set stands where the set has other factors")


def parts_of(vertex: Sparse, factors: base.Factors) -> list[Sparse]:
    """The part of a vertex in each factor, by ascending entries."""
    order = np.argsort(vertex.indices, kind="stable")
    indices, values = vertex.indices[order], vertex.values[order]
    cuts = np.searchsorted(indices, factors.starts[1:])
    parts = zip(np.split(indices, cuts), np.split(values, cuts), strict=True)
    return [Sparse(vertex.shape, *part) for part in parts]


def as_sparse(vertex: Vertex, K: oracle.HasLMO) -> Sparse:
    return vertex if type(vertex) is Sparse else Sparse.of(vertex.dense(K.center))


def _shares(radii: Floats) -> Floats:
    """R_b^2 / sum R^2; 0 for a single point."""
    squares = (radii / (float(radii.max()) or 1.0)) ** 2
    return np.asarray(squares / (float(squares.sum()) or 1.0))
