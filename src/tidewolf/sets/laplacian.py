"""Projection on circulations: the direction space of the flows of a graph, in one part or several.

    P d = d - A' phi,   L phi = A d,
    L = A A'  the graph's Laplacian with one node of each part grounded

Four ways to solve, by size: a dense inverse up to `DENSE_NODES` nodes; a dense inverse of each part
where nodes have `PART_NODES` in their part on average, or fewer; a sparse factor when the envelope
of the reverse Cuthill-McKee order, which no factor in that order leaves, has up to `FACTOR_ENTRIES`
entries; else conjugate gradients to `CG_TOLERANCE`. The factor is made in the order of least
degrees, in which it is several times smaller: 2.2 of 13 million entries for a layered graph of
99,600 arcs, whose rounds take 14 ms by the factor and 220 ms by conjugate gradients. Of 462
commodities on 22 nodes a solution by the inverses of the parts takes a fifth of the time of a
sparse factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from tidewolf.core.errors import SolverFailed
from tidewolf.core.lazy import sp
from tidewolf.core.types import Floats, Int32s, NDArray

DENSE_NODES = 600
PART_NODES = 40
FACTOR_ENTRIES = 16_000_000
CG_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class HullProjection:
    """P for a graph on positions 0 .. nodes - 1, whose arcs are some coordinates of a point; the
    others are projected to 0.

    `grounded` holds one position of each connected part; None is the last of a graph in one part.
    """

    arcs: NDArray
    tails: NDArray
    heads: NDArray
    nodes: int
    grounded: NDArray | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy factorises for itself
        return HullProjection, (self.arcs, self.tails, self.heads, self.nodes, self.grounded)

    def __call__(self, d: NDArray) -> NDArray:
        own, projected = d[self.arcs], np.zeros_like(d)
        sent, received = (np.bincount(at, own, self.nodes) for at in (self.tails, self.heads))
        potentials = self._solver[1](np.asarray(sent - received, dtype=np.float64))
        projected[self.arcs] = own - (potentials[self.tails] - potentials[self.heads])
        return projected

    def unit_norms(self) -> Floats | None:
        """|P e| for every arc e (its distance from being on every path), or None on graphs too
        large to know.
        """
        if self._inverse is None:
            return None
        t, h, inverse = self.tails, self.heads, self._inverse
        resistance = inverse[t, t] - 2.0 * inverse[t, h] + inverse[h, h]
        return np.asarray(np.sqrt(np.maximum(0.0, 1.0 - resistance)))

    @cached_property
    def packed(self) -> tuple[Floats, Int32s] | None:
        """The graph and the factor of its Laplacian as kernels read them (kernels/laplacian.py);
        None if the factor is too large to make.
        """
        if self.nodes > DENSE_NODES and self.method == "conjugate gradients":
            return None
        factor = self._sparse_factor
        if not np.array_equal(factor.perm_r, factor.perm_c):
            return None
        lower = factor.L.tocsc()  # by columns, without its diagonal of ones
        lower.setdiag(0.0)
        lower.eliminate_zeros()
        lower.sort_indices()
        order = self._free[np.argsort(factor.perm_c)]
        by_head = np.argsort(self.heads, kind="stable")
        first = np.searchsorted(self.heads[by_head], np.arange(self.nodes + 1))
        sizes = [self.nodes, len(self.arcs), len(order), len(lower.indices)]
        graph = sizes, self.arcs[by_head], self.tails[by_head], first
        ints = np.concatenate([*graph, order, lower.indptr, lower.indices])
        return np.concatenate([lower.data, 1.0 / factor.U.diagonal()]), ints.astype(np.int32)

    @cached_property
    def _sparse_factor(self) -> Any:
        how = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}}
        return sp.linalg.splu(self._laplacian, diag_pivot_thresh=0.0, **how)

    @cached_property
    def _free(self) -> NDArray:
        grounded: Any = self.nodes - 1 if self.grounded is None else self.grounded
        return np.delete(np.arange(self.nodes), grounded)

    @cached_property
    def _laplacian(self) -> Any:
        ends, t, h = (self.nodes, self.nodes), self.tails, self.heads
        places = np.concatenate([t, h, t, h]), np.concatenate([t, h, h, t])
        full = sp.coo_array((np.repeat([1.0, 1.0, -1.0, -1.0], len(t)), places), shape=ends)
        return full.tocsc()[self._free][:, self._free]

    @cached_property
    def _inverse(self) -> Floats | None:
        if self.nodes > DENSE_NODES:
            return None
        inside, padded = np.ix_(self._free, self._free), np.zeros((self.nodes, self.nodes))
        inverse = np.linalg.inv(dense_laplacian(self.tails, self.heads, self.nodes)[inside])
        padded[inside] = 0.5 * (inverse + inverse.T)
        return padded

    @property
    def method(self) -> str:
        return self._solver[0]

    @cached_property
    def _solver(self) -> tuple[str, Callable[[Floats], Floats]]:
        """Its name, and potentials of all nodes (0 at the grounded one) from their divergences."""
        if self._inverse is not None:
            return "dense inverse", self._inverse.dot
        part = sp.csgraph.connected_components(self._laplacian, directed=False)[1]
        sizes = np.bincount(part)
        if float(sizes @ sizes) <= PART_NODES * self.nodes:
            return "dense inverse of each part", self._inverse_of_parts(part).dot
        order = sp.csgraph.reverse_cuthill_mckee(self._laplacian, symmetric_mode=True)
        if envelope(self._laplacian[order][:, order]) <= FACTOR_ENTRIES:
            return "sparse factor", self._on_free_nodes(self._sparse_factor.solve)
        return "conjugate gradients", self._on_free_nodes(_conjugate_gradients(self._laplacian))

    def _on_free_nodes(self, solve: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
        def potentials(divergence: Floats) -> Floats:
            found = np.zeros(len(divergence))
            found[self._free] = solve(divergence[self._free])
            return found

        return potentials

    def _inverse_of_parts(self, part: NDArray) -> Any:
        order, ends = np.argsort(part, kind="stable"), np.cumsum([0, *np.bincount(part)])
        together, shape = self._laplacian[order][:, order].tocsr(), (self.nodes, self.nodes)
        whole = [(self._free[:0], self._free[:0], np.zeros(0))]
        for start, end in pairwise(ends):
            inverse = np.linalg.inv(together[start:end, start:end].toarray())
            places, size = self._free[order[start:end]], end - start
            symmetric = (0.5 * (inverse + inverse.T)).reshape(-1)
            whole.append((np.repeat(places, size), np.tile(places, size), symmetric))
        rows, columns, entries = map(np.concatenate, zip(*whole, strict=True))
        return sp.coo_array((entries, (rows, columns)), shape=shape).tocsr()


def envelope(matrix: Any) -> int:
    """How many entries a symmetric matrix has from the first one of each row to its diagonal: the
    entries of its Cholesky factor, at most.
    """
    lower = matrix.tocoo()
    first = np.arange(matrix.shape[0])
    np.minimum.at(first, lower.row, lower.col)
    return int((np.arange(len(first)) - first + 1).sum())


def dense_laplacian(a: NDArray, b: NDArray, nodes: int) -> Floats:
    """Of all nodes, without scipy, whose sparse matrices take a tenth of a second to import."""
    laplacian = np.zeros((nodes, nodes))
    for one, other, sign in ((a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)):
        np.add.at(laplacian, (one, other), sign)
    return laplacian


def _conjugate_gradients(laplacian: Any) -> Callable[[Floats], Floats]:
    """Jacobi-preconditioned; the residual is relative to the right-hand side."""
    rows = laplacian.tocsr()
    jacobi = sp.diags_array(1.0 / laplacian.diagonal())

    def solve(divergence: Floats) -> Floats:
        steps = 20 * len(divergence)
        found, failed = sp.linalg.cg(rows, divergence, rtol=CG_TOLERANCE, maxiter=steps, M=jacobi)
        if failed:
            raise SolverFailed("Conjugate gradients took over 20 steps per node of the graph.")
        return np.asarray(found)

    return solve
