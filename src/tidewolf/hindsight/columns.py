"""The best point among convex combinations of known vertices, and which vertex would help most:
column generation, which touches a set through its oracle alone.

    min { f(V w) : w >= 0, sum_k w_k = 1, A V w <= b },     V the known vertices, one a column

With multipliers lam >= 0 of the limits, every member v of the set could enter at the price <d, v>,
d = grad f + A' lam; at the optimum no known vertex is cheaper than those in use. So the oracle's
answer to d is a better vertex, or proves that the point is best on all of the set: for every member
x that keeps the limits

    f(x)  >=  f(V w) - (min_k <d, v_k> - min_{v in K} <d, v>).

If no combination keeps the limits, d = A' lam of the program that makes the worst violation least.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core import arrays, sparse
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.core.vertices import Vertex
from tidewolf.hindsight.best_point import Bases, Best, BestPoint, Objective, Program
from tidewolf.hindsight.task import ACROSS, flattened
from tidewolf.sets import base, highs

IN_USE = 1e-12


class Pricing(NamedTuple):
    """A direction to ask the oracle for, of size about 1, and the least <d, v_k> of a known
    vertex.
    """

    direction: Array
    known: float


class BestOfVertices(BestPoint):
    """The best convex combination of some vertices of a set, for given losses and limits; columns
    of vertices that another one has are taken from it.
    """

    def __init__(
        self, K: Any, who: str, vertices: tuple[Vertex, ...], before: "BestOfVertices | None" = None
    ) -> None:
        self.K, self.who, self.vertices = K, who, vertices
        old = dict(zip(map(id, before.vertices), before.V.T, strict=True)) if before else {}
        self.V: Floats = np.empty((int(np.prod(K.shape)), len(vertices)))
        for j, vertex in enumerate(vertices):
            known = old.get(id(vertex))
            self.V[:, j] = flattened(vertex.dense(K.center)) if known is None else known

    @cached_property
    def _description(self) -> base.LinearDescription:
        ones = np.ones(len(self.vertices))
        return base.LinearDescription(0.0 * ones, ones, ones[None], ones[:1], lift=self.V)

    def _rows_along(self, A: Any) -> tuple[Any, Floats]:
        # `_rows_within` does it, and needs no more of the set than its vertices
        return A, np.zeros(A.shape[0])

    def _rows_within(self, A: Any) -> tuple[Any, Floats]:
        dense = A.toarray() if sparse.is_sparse(A) else A
        mean, spread = dense.mean(axis=1), dense.std(axis=1)
        mean = np.where(spread < ACROSS * np.abs(mean), mean, 0.0)  # weights are 1 in all
        return (dense - mean[:, None] if mean.any() else A), mean

    def weights(self, found: Best | highs.Solved) -> Floats:
        end = found.end if isinstance(found, Best) else found
        w = np.clip(end.v[: len(self.vertices)], 0.0, 1.0)
        return np.asarray(w / w.sum())

    def flat_point(self, found: highs.Solved) -> Floats:
        return np.asarray(self.V @ self.weights(found))

    def member(self, x: Floats) -> Array:
        return arrays.frozen(arrays.like(x.reshape(self.K.shape), self.K.center))

    def pricing(
        self, loss: Objective, limits: highs.HalfSpaces, program: Program, found: Best, breach: bool
    ) -> Pricing | None:
        """What to ask the oracle for, so that the loss, or the worst violation, gets less; None if
        every vertex costs the same.
        """
        end = found.breach if breach else found.end
        assert end is not None
        d, prices = np.zeros(len(loss.c)), -end.multipliers
        if not breach:
            mu, prices = self.multipliers(program, end)
            d = loss.c + loss.d.T @ mu if len(mu) else loss.c
        d = d + (prices if limits.A is None else limits.A.T @ prices)
        size = float(np.abs(d).max())
        if not 0.0 < size < np.inf:
            return None
        d = d / arrays.power_of_two(size)
        direction = arrays.like(d.reshape(self.K.shape), self.K.center)
        return Pricing(direction, float((flattened(direction) @ self.V).min()))


def bases_for(bases: Bases, kept: Int64s, count: int, more: int) -> Bases:
    """Where programs start after only the columns `kept` of `count` stayed and `more` were added:
    new ones at weight 0.
    """
    return Bases(*(basis and _basis_for(basis, kept, count, more) for basis in bases))


def _basis_for(basis: highs.Basis, kept: Int64s, count: int, more: int) -> highs.Basis | None:
    statuses, basic = basis.statuses, 1
    if np.count_nonzero(statuses[:count] == basic) != np.count_nonzero(statuses[kept] == basic):
        return None  # a column in the basis is gone
    new = np.concatenate([statuses[kept], np.zeros(more, dtype=np.int8), statuses[count:]])
    return highs.Basis(basis.columns - count + len(kept) + more, basis.rows, new)
