"""Approximately feasible projection on a product, factor by factor, with one call for all.

    K = K_1 x ... x K_q,    x_b = sum of weights times vertices of K_b, kept between calls

Every factor projects as in active.py, on its own: corrective steps among its own vertices, then
the gap, half-space shift and line search of its part of the oracle's answer at x - y. An answer of
K answers for all factors and counts once. With

    tol_b = tol R_b^2/R^2,     sum_b tol_b = tol,

a factor is done when |x_b - y_b|^2 <= tol_b or gap_b^2 <= tol_b |x_b - y_b|^2; so all are within
the 8 R_b^2/tol_b + 4 = 8 R^2/tol + 4 calls that each alone would need. Properties I and III hold
in every factor, |y'_b - z_b| <= |y_b - z_b|, hence in any metric that weighs factors. An oracle
that may err by e in all errs by at most e in each, so e is added to each gap. Factors that are done
ask in the direction 0.

Vertices of factors are rows of one append-only table of sparse vertices, which active sets share
as they do that of active.py. Past its number of entries + 1 + `SPARE_IN_FACTOR` rows in use a
factor is reduced by Caratheodory's theorem. Every call may add a row for each factor, so idle rows
may be as many as those in use, and `IDLE` more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self, final

import numpy as np

from tidewolf.core.arrays import flat, frozen, inner, norm
from tidewolf.core.conforming import allowed_infeasibility
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Bools, Floats, Int64s, NDArray
from tidewolf.core.vertices import Sparse, SparseAtoms, Vertex, require_saved_numbers
from tidewolf.kernels.factored_active_set import OPEN, factored_correct, factored_step
from tidewolf.projection.active import (
    AFFORDABLE,
    IDLE,
    SAVED_ROUNDING,
    Active,
    ActiveSet,
    Combination,
    ExactPoint,
    Remembered,
    emptied,
    factors_in,
    factors_of,
)
from tidewolf.projection.one_shot import as_member, oracle_error
from tidewolf.projection.search import CORRECTIVE_GAP, CORRECTIVE_STEPS, caratheodory
from tidewolf.sets.base import Factors

SPARE_IN_FACTOR = 8


def start_active(K: HasLMO, x0: Array | None = None) -> Active:
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
        table.places = frozen(places)
        for row, (vertex, owner) in enumerate(zip(vertices, owners, strict=True)):
            table._append(vertex)
            table.owners[row] = owner
        return table

    @property
    def rows(self) -> tuple[Int64s, NDArray, Floats]:
        return self.starts, self.indices, self.values

    def make_room(self, rows: int, entries: int) -> None:
        super().make_room(rows, entries)
        self.owners = _padded(self.owners, max(self.room, len(self.owners)))

    def only(self, rows: NDArray) -> Self:
        table = super().only(rows)
        table.places, table.owners = self.places, _padded(self.owners[rows], table.room)
        return table


@final
class FactoredActiveSet(Combination):
    """A member of a product as a convex combination of vertices of each factor: `weights` are those
    of the first rows of a `FactorTable`, 1 in all within each factor.
    """

    tag: ClassVar = "factored active set"
    __slots__ = ()

    @classmethod
    def start(cls, K: HasLMO, x0: Array | None = None) -> FactoredActiveSet:
        point, factors = K.center if x0 is None else as_member(K, x0), factors_in(K)
        parts = parts_of(as_sparse(K.atom(point), K), factors)
        places = np.append(factors.starts, math.prod(K.shape)).astype(np.int64)
        atoms, weights = FactorTable.of(parts, range(len(parts)), places), np.ones(len(parts))
        return cls(atoms, weights, atoms.combine(weights, np.zeros(K.shape)))

    @property
    def places(self) -> Int64s:
        places: Int64s = self.atoms.places
        return places

    def __repr__(self) -> str:
        return f"FactoredActiveSet({len(self)} atoms of {len(self.places) - 1} factors)"

    def nearest(
        self, K: HasLMO, y: Array, tol: float, budget: float, shared: bool = False
    ) -> Remembered[FactoredActiveSet]:
        factors = factors_in(K)
        tols = tol * _shares(factors.radii)
        atoms, weights, warm, places = self.atoms, self.weights.copy(), self.warm, self.places
        given, y, x = y, flat(y).copy(), flat(self.x).copy()
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
            weights = _padded(weights, count + still_open)
            with atoms.lock:
                if atoms.filled != count:  # others have appended rows to it meanwhile: a fork
                    atoms = atoms.only(np.arange(count))
                atoms.make_room(count + still_open, int(atoms.starts[count]) + len(indices))
                table = (atoms.rows, atoms.owners, *lists, count, weights)
                count, shifted, worse = factored_step(*table, *points, *found, calls >= budget)
                atoms.filled = count
            if worse >= 0:
                raise oracle_error(vertex.inner(r), answer.error, inner(r, x))
            weights, moved = weights[:count], moved or shifted
        active = self.at(atoms, weights, x.reshape(K.shape), warm)
        after = frozen(y.reshape(K.shape)) if moved else given
        reduced = active._reduced(shared)
        same = reduced.x is active.x
        distance2 = float(distances2.sum()) if same else inner(reduced.x - after, reduced.x - after)
        return Remembered(reduced.x, after, calls, distance2, reduced)

    def avoiding(self, K: HasLMO, out: Bools, vertex: Vertex | None) -> Array | None:
        table, count, q = self.atoms, len(self.weights), len(self.places) - 1
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
        totals = np.where(lacking, 1.0, np.bincount(owners, weights, q))
        x = self.mean_of(weights / totals[owners])
        if vertex is not None:
            instead = np.repeat(lacking, np.diff(self.places)).reshape(x.shape)
            x = np.where(instead, vertex.dense(self.x), x)
        return emptied(x, out)

    def also(self, K: HasLMO, vertex: Vertex) -> FactoredActiveSet:
        table, count = self.atoms, len(self.weights)
        for b, part in enumerate(parts_of(as_sparse(vertex, K), factors_in(K))):
            row = table.find(part, count)
            if row is None or table.owners[row] != b:
                with table.lock:
                    table = table.append(part, count)
                    table.owners[count] = b
                count += 1
        return self.at(table, _padded(self.weights, count), self.x, self.warm)

    def _reduced(self, shared: bool) -> FactoredActiveSet:
        """Not too many rows in use in any factor, nor, unless others use them, idle in all."""
        active, used = self, np.flatnonzero(self.weights)
        owners = self.atoms.owners[used]
        most = np.diff(self.places) + 1 + SPARE_IN_FACTOR
        crowded = np.flatnonzero(np.bincount(owners, minlength=len(most)) > most)
        if len(crowded):
            weights = self.weights.copy()
            for b in crowded:
                rows = used[owners == b]
                gram = self.atoms.only(rows).gram[: len(rows), : len(rows)]
                weights[rows] = caratheodory(gram, self.weights[rows])
            active = self.at(self.atoms, weights, self.mean_of(weights), self.warm)
            used = np.flatnonzero(weights)
        idle = not shared and len(self.weights) > 2 * len(used) + IDLE
        return active.without_idle() if idle else active

    def parts(self) -> dict[str, Any]:
        atoms, count = self.atoms, len(self.weights)
        stops = {"owners": count, "starts": count + 1}
        stops |= dict.fromkeys(("indices", "values"), int(atoms.starts[count]))
        rows = {name: getattr(atoms, name)[:stop].copy() for name, stop in stops.items()}
        point = {"weights": self.weights, "x": self.x, "warm": self.warm}
        return {"places": self.places, **rows, **point}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> FactoredActiveSet:
        """Indices are checked, for compiled loops follow them wherever they lead."""
        x, weights, values, warm = (parts[name] for name in ("x", "weights", "values", "warm"))
        whole = [parts[name] for name in ("places", "owners", "starts", "indices")]
        places, owners, starts, indices = whole
        for numbers, axes in ((x, None), (weights, 1), (values, 1)):
            require_saved_numbers(numbers, axes)
        arrays = all(type(a) is np.ndarray for a in (x, weights, values, *whole))
        sound = (
            arrays
            and all(a.dtype == np.float64 for a in (x, weights, values))
            and [(a.ndim, a.dtype) for a in whole] == [*[(1, np.int64)] * 3, (1, np.int32)]
            and len(owners) == len(weights) == len(starts) - 1 > 0
            and len(indices) == len(values) == int(starts[-1])
            and len(places) > 1
            and (int(places[0]), int(places[-1]), int(starts[0])) == (0, x.size, 0)
            and bool((np.diff(places) > 0).all() and (np.diff(starts) >= 0).all())
            and bool(((owners >= 0) & (owners < len(places) - 1)).all())
        )
        if sound:
            home = np.repeat(owners, np.diff(starts))
            sound = bool(((indices >= places[home]) & (indices < places[home + 1])).all())
        if not sound:
            raise ValueError(
                "each row of a factored active set has a weight and a factor, and entries there"
            )
        cuts = starts[1:-1]
        pairs = zip(np.split(indices, cuts), np.split(values, cuts), strict=True)
        rows = [Sparse(tuple(x.shape), *part) for part in pairs]
        active = cls(FactorTable.of(rows, owners, places), weights, x, warm)
        totals = np.bincount(owners, weights=weights, minlength=len(places) - 1)
        active.require_mean(totals, norm(values))
        return active

    def require_of(self, K: HasLMO) -> None:
        """Its rows are no farther from the center than the radius of their factor, and, while that
        costs little, members.
        """
        factors = factors_of(K) if tuple(self.x.shape) == K.shape else None
        if factors is None or not np.array_equal(self.places[:-1], factors.starts):
            raise ValueError("a factored active set stands where the set has other factors")
        allowed = allowed_infeasibility(K, K.center)
        far = (1.0 + SAVED_ROUNDING) * factors.radii + allowed
        affordable = len(self.weights) * math.prod(K.shape) <= AFFORDABLE
        for row, b in enumerate(self.atoms.owners[: len(self.weights)].tolist()):
            point = K.center.copy()  # in the other factors
            flat(point)[self.places[b] : self.places[b + 1]] = 0.0
            entries = slice(self.atoms.starts[row], self.atoms.starts[row + 1])
            flat(point)[self.atoms.indices[entries]] = self.atoms.values[entries]
            near = norm(point - K.center) <= far[b]
            if not near or (affordable and not K.infeasibility(point) <= allowed):
                raise ValueError("a vertex of its active set is no member of the set")


def parts_of(vertex: Sparse, factors: Factors) -> list[Sparse]:
    """The part of a vertex in each factor, by ascending entries."""
    order = np.argsort(vertex.indices, kind="stable")
    indices, values = vertex.indices[order], vertex.values[order]
    cuts = np.searchsorted(indices, factors.starts[1:])
    parts = zip(np.split(indices, cuts), np.split(values, cuts), strict=True)
    return [Sparse(vertex.shape, *part) for part in parts]


def as_sparse(vertex: Vertex, K: HasLMO) -> Sparse:
    return vertex if type(vertex) is Sparse else Sparse.of(vertex.dense(K.center))


def _shares(radii: Floats) -> Floats:
    """R_b^2 / sum R^2; 0 for a single point."""
    squares = (radii / (float(radii.max()) or 1.0)) ** 2
    return np.asarray(squares / (float(squares.sum()) or 1.0))


def _padded(array: Any, count: int) -> Any:
    padded = np.zeros(count, dtype=array.dtype)
    padded[: len(array)] = array
    return padded
