"""Sparse vertices among points that live on a device (torch).

All that a table of vertices with few entries needs of a point d is what d holds at the places u
where one of them has an entry, and all that it makes of weights w is there, too:

    <a_i, d> = <values_i, d_u>        (sum_i w_i a_i)_u = sum_i w_i values_i, and 0 elsewhere

so d_u comes to the host in one read, the sums are those of `SparseAtoms` on places counted within
u, and a mean goes back in one write to places that are all different: no sum depends on an order
that a device chooses. A vertex with many entries, such as the center, is kept as a point there.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tidewolf.core.arrays import flat, is_torch, like, namespace, placed, plus, to_numpy, zeros
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.core.vertices.base import FIRST_ROWS, Atoms, Vertex
from tidewolf.core.vertices.sparse import Sparse

_FULL = 0.5
"""Vertices with more than this share of all entries are kept as points."""


def table_for(vertex: Vertex, reference: Array) -> Atoms:
    """An empty table for vertices of this kind among points such as `reference`."""
    placed = type(vertex) is Sparse and is_torch(reference)
    return PlacedAtoms(reference) if placed else vertex.table()


class PlacedAtoms(Atoms):
    """Rows end to end, with places counted within u; those of full vertices are empty."""

    kind: ClassVar = Sparse

    def __init__(self, reference: Array) -> None:
        super().__init__()
        self.home = zeros((0,), reference)
        self.ends = [0]
        """row i has the entries from ends[i] up to ends[i + 1]"""
        self.indices = np.zeros(FIRST_ROWS, dtype=np.int64)
        self.owners = np.zeros(FIRST_ROWS, dtype=np.int64)
        self.values = np.zeros(FIRST_ROWS)
        self.full: dict[int, Array] = {}
        """the points of full vertices by their rows"""
        self._full_here: dict[int, Floats] = {}
        self._used: list[int] = []
        self._place: dict[int, int] = {}
        """where in u an entry is"""
        self._u: Array = None

    def only(self, rows: NDArray) -> Atoms:
        table = PlacedAtoms(self.home)
        for row in rows.tolist():
            table._append(self.vertices[row])
        return table

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Sparse)
        full = len(vertex.indices) > _FULL * math.prod(vertex.shape)
        given = np.zeros(0, dtype=np.int64) if full else vertex.indices
        places = np.array([self._placed(i) for i in given.tolist()], dtype=np.int64)
        start, stop = self.ends[row], self.ends[row] + len(places)
        while stop > len(self.indices):
            self.indices = np.append(self.indices, self.indices)
            self.owners = np.append(self.owners, self.owners)
            self.values = np.append(self.values, self.values)
        self.ends.append(stop)
        self.indices[start:stop], self.owners[start:stop] = places, row
        if full:
            point = np.zeros(math.prod(vertex.shape))
            point[vertex.indices] = vertex.values
            self._full_here[row], self.full[row] = point, like(point, self.home)
            at_u = point[np.array(self._used, dtype=np.int64)]
        else:
            self.values[start:stop] = vertex.values
            at_u = np.zeros(len(self._used))
            at_u[places] = vertex.values
        products = self._products(at_u, row + 1)
        for other, point in self._full_here.items():
            products[other] = point[vertex.indices] @ vertex.values
        self._set_products(row, products)

    def _placed(self, entry: int) -> int:
        place = self._place.get(entry)
        if place is None:
            place = self._place[entry] = len(self._used)
            self._used.append(entry)
        return place

    def _products(self, at_u: Floats, count: int) -> Floats:
        end = self.ends[count]
        terms = self.values[:end] * at_u[self.indices[:end]]
        return np.bincount(self.owners[:end], terms, minlength=count).astype(np.float64, copy=False)

    @property
    def _places(self) -> Array:
        """u, on the device."""
        if self._u is None or self._u.shape[0] < len(self._used):
            self._u = placed(np.array(self._used, dtype=np.int64), self.home)
        return self._u

    def inner(self, direction: Array, count: int) -> Floats:
        d, xp = flat(direction), namespace(self.home)
        full = [row for row in self.full if row < count]
        if not full and not self._used:
            return np.zeros(count)
        looked: list[Any] = [d[self._places]] if self._used else []
        looked += [(self.full[row] @ d)[None] for row in full]
        read = np.asarray(to_numpy(xp.concat(looked)), dtype=np.float64)
        products = self._products(read[: len(self._used)], count)
        products[full] = read[len(self._used) :]
        return products

    def combine(self, weights: NDArray, reference: Array) -> Array:
        point = None
        for row, full in self.full.items():
            if row < len(weights) and weights[row] != 0.0:
                w = float(weights[row])
                point = w * full if point is None else plus(point, w, full)
        if point is None:
            point = zeros((math.prod(reference.shape),), self.home)
        if self._used:
            end = self.ends[len(weights)]
            terms = self.values[:end] * weights[self.owners[:end]]
            at_u = np.bincount(self.indices[:end], terms, minlength=len(self._used))
            point.index_add_(0, self._places, like(at_u, self.home))  # no place twice
        return like(namespace(point).reshape(point, tuple(reference.shape)), reference)
