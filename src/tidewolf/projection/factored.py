"""Approximately feasible projection on a product, factor by factor, with one call for all.

    K = K_1 x ... x K_q,    x_b = sum of weights times vertices of K_b, kept between calls

Every factor projects as in active_set.py, on its own: corrective steps among its own vertices, then
the gap, half-space shift and line search of its part of the oracle's answer at x - y. An answer of
K answers for all factors and counts once. With

    tol_b = tol R_b^2/R^2,     sum_b tol_b = tol,

a factor is done when |x_b - y_b|^2 <= tol_b or gap_b^2 <= tol_b |x_b - y_b|^2; so all are within
the 8 R_b^2/tol_b + 4 = 8 R^2/tol + 4 calls that each alone would need. Properties I and III hold
in every factor, |y'_b - z_b| <= |y_b - z_b|, hence in any metric that weighs factors. An oracle
that may err by e in all errs by at most e in each, so e is added to each gap. Factors that are done
ask in the direction 0.

Vertices of factors are rows (indices, values) of one append-only table, which active sets share as
they do that of active_set.py. Past its number of entries + 1 + `SPARE_IN_FACTOR` rows in use a
factor is reduced by Caratheodory's theorem.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import eps_of, flat, frozen, inner, norm
from tidewolf.core.conforming import allowed_infeasibility
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Bools, Floats, Int64s
from tidewolf.core.vertices import Sparse, Vertex, require_saved_numbers
from tidewolf.kernels.factored_active_set import OPEN, factored_correct, factored_step
from tidewolf.projection.active import Active, Remembered, emptied, factors_in, factors_of
from tidewolf.projection.active_set import (
    AFFORDABLE,
    CORRECTIVE_GAP,
    CORRECTIVE_STEPS,
    SAVED_ROUNDING,
    ActiveSet,
    is_warm,
    most_idle,
)
from tidewolf.projection.exact_point import ExactPoint
from tidewolf.projection.factor_table import APPENDING, FactorTable, Rows
from tidewolf.projection.one_shot import as_member, oracle_error
from tidewolf.projection.weights import caratheodory

SPARE_IN_FACTOR = 8


def start_active(K: HasLMO, x0: Array | None = None) -> Active:
    """The member of K that projections begin from, the center unless told otherwise."""
    factors = factors_of(K)
    if factors is None:
        return ActiveSet.start(K, x0)
    return (ExactPoint if factors.exact else FactoredActiveSet).start(K, x0)


@final
class FactoredActiveSet(Active):
    """A member of a product as a convex combination of vertices of each factor.

    `weights` are those of the first rows of the table, 1 in all within each factor; `places` are
    the first entries of the factors, and the number of entries.
    """

    tag: ClassVar = "factored active set"
    __slots__ = ("atoms", "places", "warm", "weights", "x")

    def __init__(
        self,
        atoms: FactorTable,
        places: Int64s,
        weights: Floats,
        x: Array,
        warm: Array | None = None,
    ) -> None:
        self.atoms, self.places, self.warm = atoms, frozen(places), warm
        self.weights, self.x = frozen(weights), frozen(x)

    @classmethod
    def start(cls, K: HasLMO, x0: Array | None = None) -> FactoredActiveSet:
        """One vertex of each factor: its part of the center, or of another member."""
        point = K.center if x0 is None else as_member(K, x0)
        factors = factors_in(K)
        atoms = FactorTable.of(as_sparse(K.atom(point), K), factors)
        places = np.append(factors.starts, math.prod(K.shape)).astype(np.int64)
        x = np.zeros(K.shape)
        flat(x)[atoms.rows.indices] = atoms.rows.values
        return cls(atoms, places, np.ones(len(atoms)), x)

    def __reduce__(self) -> tuple[Any, ...]:
        return FactoredActiveSet, (self.atoms, self.places, self.weights, self.x, self.warm)

    def __len__(self) -> int:
        """Atoms in use."""
        return int(np.count_nonzero(self.weights))

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
            still_open = factored_correct(
                tuple(atoms.rows),
                atoms.owners,
                places,
                weights,
                x,
                y,
                r,
                stages,
                tols,
                distances2,
                CORRECTIVE_STEPS,
                CORRECTIVE_GAP,
            )
            if still_open == 0 or calls >= budget:
                break
            answer = K.answer(r.reshape(K.shape), warm)
            calls, warm = calls + 1, answer.warm
            vertex, count = as_sparse(answer.vertex, K), len(weights)
            weights = _padded(weights, count + still_open)
            with APPENDING:
                atoms = atoms.with_room(count, still_open, len(vertex.indices))
                count, shifted, worse = factored_step(
                    tuple(atoms.rows),
                    atoms.owners,
                    places,
                    count,
                    weights,
                    x,
                    y,
                    r,
                    stages,
                    tols,
                    distances2,
                    (vertex.indices, vertex.values),
                    answer.error,
                    calls >= budget,
                )
                atoms.count = count
            if worse >= 0:
                raise oracle_error(vertex.inner(r), answer.error, inner(r, x))
            weights, moved = weights[:count], moved or shifted
        active = FactoredActiveSet(atoms, places, weights, x.reshape(K.shape), warm)
        after = frozen(y.reshape(K.shape)) if moved else given
        reduced = active._reduced(K.dimension, shared)
        if reduced.x is not active.x:
            away = flat(reduced.x - after)
            distances2 = np.add.reduceat(away * away, places[:-1])
        active = reduced
        total = float(distances2.sum())
        return Remembered(active.x, after, calls, total, active, frozen(distances2))

    def avoiding(self, K: HasLMO, out: Bools, vertex: Vertex | None) -> Array | None:
        table, count, q = self.atoms, len(self.weights), len(self.places) - 1
        owners, stop = table.owners[:count], int(table.rows.starts[count])
        of_row = np.repeat(np.arange(count), np.diff(table.rows.starts[: count + 1]))
        uses = out[table.rows.indices[:stop]] & (table.rows.values[:stop] != 0.0)
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
        x = self._combined(weights / totals[owners])
        if vertex is not None:
            instead = np.repeat(lacking, np.diff(self.places)).reshape(x.shape)
            x = np.where(instead, vertex.dense(self.x), x)
        return emptied(x, out)

    def also(self, K: HasLMO, vertex: Vertex) -> FactoredActiveSet:
        count, new = len(self.weights), FactorTable.of(as_sparse(vertex, K), factors_in(K))
        table = self.atoms if len(self.atoms) == count else self.atoms.only(np.arange(count))
        table, _ = table.joined(new, np.arange(len(new)))
        weights = _padded(self.weights, len(table))
        return FactoredActiveSet(table, self.places, weights, self.x, self.warm)

    def at(self, table: FactorTable, weights: Floats, x: Array, warm: Any) -> FactoredActiveSet:
        """Another point, on the first rows of a table."""
        return FactoredActiveSet(table, self.places, weights, x, warm)

    def mean_of(self, weights: Floats) -> Array:
        """The point of these weights on the first rows of its table."""
        return self._combined(weights)

    def only(self, table: FactorTable, rows: Int64s) -> FactoredActiveSet:
        """The same point on a table that holds just these rows, which are all that are in use."""
        return FactoredActiveSet(table, self.places, self.weights[rows], self.x, self.warm)

    def _reduced(self, dimension: int, shared: bool) -> FactoredActiveSet:
        """Not too many rows in use in any factor, nor, unless others use them, idle in all."""
        active, used = self, np.flatnonzero(self.weights)
        owners = self.atoms.owners[used]
        most = np.diff(self.places) + 1 + SPARE_IN_FACTOR
        crowded = np.flatnonzero(np.bincount(owners, minlength=len(most)) > most)
        if len(crowded):
            weights = self.weights.copy()
            for b in crowded:
                rows = used[owners == b]
                weights[rows] = caratheodory(self._products(rows), self.weights[rows])
            x = self._combined(weights)
            active = FactoredActiveSet(self.atoms, self.places, weights, x, self.warm)
            used = np.flatnonzero(weights)
        if not shared and len(self.weights) > len(used) + most_idle(len(used), dimension):
            return active.only(self.atoms.only(used), used)
        return active

    def _products(self, rows: Int64s) -> Floats:
        """<a_i - a_0, a_j - a_0> of rows of one factor."""
        table = self.atoms.only(rows)
        start = self.places[table.owners[0]]
        dense = np.zeros((len(rows), int(self.places[table.owners[0] + 1] - start)))
        which = np.repeat(np.arange(len(rows)), np.diff(table.rows.starts))
        dense[which, table.rows.indices - start] = table.rows.values
        dense -= dense[0].copy()
        products: Floats = dense @ dense.T
        return products

    def _combined(self, weights: Floats) -> Array:
        rows, count = self.atoms.rows, len(weights)
        stop, x = int(rows.starts[count]), np.zeros(self.x.shape)
        by_entry = np.repeat(weights, np.diff(rows.starts[: count + 1]))
        np.add.at(flat(x), rows.indices[:stop], by_entry * rows.values[:stop])
        return x

    def parts(self) -> dict[str, Any]:
        count = len(self.weights)
        rows, stop = self.atoms.rows, int(self.atoms.rows.starts[count])
        return {
            "places": self.places,
            "owners": self.atoms.owners[:count].copy(),
            "starts": rows.starts[: count + 1].copy(),
            "indices": rows.indices[:stop].copy(),
            "values": rows.values[:stop].copy(),
            "weights": self.weights,
            "x": self.x,
            "warm": self.warm,
        }

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> FactoredActiveSet:
        """Indices are checked, for compiled loops follow them wherever they lead."""
        x, weights, values, warm = (parts[name] for name in ("x", "weights", "values", "warm"))
        require_saved_numbers(x)
        for numbers in (weights, values):
            require_saved_numbers(numbers, 1)
        places, owners, starts = (parts[name] for name in ("places", "owners", "starts"))
        indices = parts["indices"]
        whole = (places, owners, starts, indices)
        kinds = (np.int64, np.int64, np.int64, np.int32)
        if not (
            all(
                type(array) is np.ndarray and array.ndim == 1 and array.dtype == kind
                for array, kind in zip(whole, kinds, strict=True)
            )
            and type(x) is type(weights) is type(values) is np.ndarray
            and x.dtype == weights.dtype == values.dtype == np.float64
            and len(owners) == len(weights) == len(starts) - 1 > 0
            and len(indices) == len(values) == int(starts[-1])
        ):
            raise ValueError("a factored active set has a weight and a factor for each row")
        sizes, q = np.diff(starts), len(places) - 1
        if not (
            q > 0
            and int(places[0]) == 0
            and int(places[-1]) == x.size
            and bool((np.diff(places) > 0).all())
            and int(starts[0]) == 0
            and bool((sizes >= 0).all())
            and bool(((owners >= 0) & (owners < q)).all())
        ):
            raise ValueError("the rows of a factored active set do not follow one another")
        home = np.repeat(owners, sizes)
        if not bool(((indices >= places[home]) & (indices < places[home + 1])).all()):
            raise ValueError("a row of a factored active set has an index beyond its factor")
        totals = np.bincount(owners, weights=weights, minlength=q)
        if not (
            weights.min() >= -SAVED_ROUNDING and bool((abs(totals - 1.0) <= SAVED_ROUNDING).all())
        ):
            raise ValueError(
                "the weights of a factored active set are at least 0 and add up to 1 in each factor"
            )
        if not is_warm(warm):
            raise ValueError("what the next oracle call starts from is no array")
        # tables are written to, and kernels compiled for arrays that may be
        rows = Rows(starts.copy(), indices.copy(), values.copy())
        active = cls(
            FactorTable(rows, owners.copy(), len(owners)),
            *(places, weights, x, warm),
        )
        apart, reach = active._combined(weights) - x, norm(values)
        if not norm(apart) <= max(SAVED_ROUNDING, 1e4 * eps_of(x)) * max(reach, norm(x)):
            raise ValueError("the point of a factored active set is not the mean of its rows")
        return active

    def require_of(self, K: HasLMO) -> None:
        """Its rows are no farther from the center than the radius of their factor, and, while that
        costs little, members.
        """
        factors = factors_of(K)
        if (
            factors is None
            or tuple(self.x.shape) != K.shape
            or not np.array_equal(self.places[:-1], factors.starts)
        ):
            raise ValueError("a factored active set stands where the set has other factors")
        allowed = allowed_infeasibility(K, K.center)
        far = (1.0 + SAVED_ROUNDING) * factors.radii + allowed
        affordable = len(self.weights) * math.prod(K.shape) <= AFFORDABLE
        for point in self._corners():
            away = flat(point - K.center)
            lengths = np.sqrt(np.add.reduceat(away * away, self.places[:-1]))
            if bool((lengths > far).any()) or (
                affordable and not K.infeasibility(point) <= allowed
            ):
                raise ValueError("a vertex of its active set is no member of the set")

    def _corners(self) -> list[Array]:
        """Members of the product among which every row is, one of each factor in each."""
        rows = self.atoms.rows
        lists: list[list[int]] = [[] for _ in self.places[1:]]
        for row, owner in enumerate(self.atoms.owners[: len(self.weights)].tolist()):
            lists[owner].append(row)
        corners = []
        for k in range(max(map(len, lists))):
            point = np.zeros(self.x.shape)
            for row in (some[min(k, len(some) - 1)] for some in lists):
                entries = slice(rows.starts[row], rows.starts[row + 1])
                flat(point)[rows.indices[entries]] = rows.values[entries]
            corners.append(point)
        return corners


def as_sparse(vertex: Vertex, K: HasLMO) -> Sparse:
    """A vertex by its nonzero entries."""
    return vertex if type(vertex) is Sparse else Sparse.of(vertex.dense(K.center))


def _shares(radii: Floats) -> Floats:
    """R_b^2 / sum R^2; 0 for a single point."""
    most = float(radii.max())
    squares = (radii / (most or 1.0)) ** 2
    shares: Floats = squares / (float(squares.sum()) or 1.0)
    return shares


def _padded(weights: Floats, count: int) -> Floats:
    padded = np.zeros(count)
    padded[: len(weights)] = weights
    return padded
