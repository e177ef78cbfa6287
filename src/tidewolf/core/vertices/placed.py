"""Sparse vertices among points that live on a device (torch).

All that a table of vertices with few entries needs of a point d is what d holds at the places u
where one of them has an entry, and all that it makes of weights w is there, too:

    <a_i, d> = <values_i, d_u>        (sum_i w_i a_i)_u = sum_i w_i values_i, and 0 elsewhere

so d_u comes to the host in one read, and a mean goes back in one write to places that are all
different: no sum depends on an order that a device chooses. A vertex with many entries, such as the
center, is kept as a point there.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.arrays import flat, is_torch, like, namespace, placed, plus, to_numpy, zeros
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.core.vertices.base import Atoms, Vertex
from tidewolf.core.vertices.sparse import Sparse

# Vertices with more than this share of all entries are kept as points.
_FULL = 0.5


def table_for(vertex: Vertex, reference: Array) -> Atoms:
    """An empty table for vertices of this kind among points such as `reference`."""
    placed = type(vertex) is Sparse and is_torch(reference)
    return PlacedAtoms(reference) if placed else vertex.table()


class PlacedAtoms(Atoms):
    """Rows end to end; those of full vertices are empty."""

    kind = Sparse

    def __init__(self, reference: Array) -> None:
        super().__init__()
        self.home = zeros((0,), reference)
        self.ends = [0]
        """row i has the entries from ends[i] up to ends[i + 1]"""
        self.indices, self.owners = np.zeros((2, 0), dtype=np.int64)
        self.values = np.zeros(0)
        self.full: dict[int, Array] = {}
        """the points of full vertices by their rows"""

    def _empty(self) -> Atoms:
        return PlacedAtoms(self.home)

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Sparse)
        count, size = len(vertex.indices), math.prod(vertex.shape)
        point = zeros((size,), self.home)
        point[placed(vertex.indices.astype(np.int64), self.home)] = like(vertex.values, self.home)
        if count > _FULL * size:
            self.full[row], count = point, 0
        self.ends.append(self.ends[row] + count)
        self.owners = np.append(self.owners, np.full(count, row))
        self.indices = np.append(self.indices, vertex.indices[:count])
        self.values = np.append(self.values, vertex.values[:count])
        used, self.places = np.unique(self.indices, return_inverse=True)
        """the entries in u, and where in u each entry of a row is"""
        self.u = placed(used, self.home)
        self._set_products(row, self.inner(point, row + 1))

    def inner(self, direction: Array, count: int) -> Floats:
        d, end = flat(direction), self.ends[count]
        full = [row for row in self.full if row < count]
        looked = [d[self.u], *((self.full[row] @ d)[None] for row in full)]
        read = np.asarray(to_numpy(namespace(d).concat(looked)), dtype=np.float64)
        terms = self.values[:end] * read[self.places[:end]]
        products = np.bincount(self.owners[:end], terms, minlength=count).astype(np.float64)
        products[full] = read[len(read) - len(full) :]
        return products

    def combine(self, weights: NDArray, reference: Array) -> Array:
        point, end = zeros((math.prod(reference.shape),), self.home), self.ends[len(weights)]
        for row, full in self.full.items():
            if row < len(weights) and weights[row] != 0.0:
                point = plus(point, float(weights[row]), full)
        terms = self.values[:end] * weights[self.owners[:end]]
        at_u = np.bincount(self.places[:end], terms, minlength=len(self.u))
        point[self.u] += like(at_u, self.home)  # no place twice
        return like(namespace(point).reshape(point, tuple(reference.shape)), reference)
