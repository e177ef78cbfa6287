"""The cross-polytope: arrays whose entries are together at most tau in size.

    { |x|_1 <= tau },    |x|_1 = sum_i |x_i|                 vertices  +-tau e_i

Oracle: the entry of largest size, the first among equals, gets tau against its sign. The farthest
members are the vertices, radius tau; the facets sum_i s_i x_i = tau, s_i = +-1, are at tau/sqrt(n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tidewolf.core.arrays import as_point, flat, namespace
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array
from tidewolf.core.vertices import Sparse
from tidewolf.sets.balls.k_sparse import KSparse
from tidewolf.sets.balls.norm_ball import Bound, Entries, NormBall, signed
from tidewolf.sets.base import LinearDescription, Polyhedral, Projectable
from tidewolf.sets.simplices.simplex import Simplex


@final
@dataclass(frozen=True, eq=False, repr=False)
class L1Ball(NormBall, Projectable, Polyhedral):
    """Arrays whose entries have sizes of at most `tau` in sum. Geometry exact.

    Parameters
    ----------
    n : int or tuple of int
        How many entries a point has, or its shape.
    tau : float, default 1.0
        What the norm of a member is at most.

    Examples
    --------
    >>> tw.sets.L1Ball(3, tau=2.0).lmo(np.array([1.0, -4.0, 3.0]))
    array([0., 2., 0.])
    """

    n: Entries
    tau: Bound = 1.0

    @property
    def radius(self) -> float:
        return self.tau

    @property
    def inner_radius(self) -> float:
        return self.tau / math.sqrt(math.prod(self.shape))

    def norm(self, x: Array) -> float:
        """|x|_1."""
        xp = namespace(x)
        return float(xp.sum(xp.abs(x)))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        xp, d = namespace(direction), flat(direction)
        largest = int(xp.argmax(xp.abs(d)))
        value = self.tau if float(d[largest]) < 0 else -self.tau
        return Answer(Sparse(self.shape, np.array([largest], dtype=np.int32), np.array([value])))

    def project(self, y: Array) -> Array:
        """The sizes projected on the simplex of sums of at most tau, with the signs of y."""
        y = as_point(y, self.shape, "The point to project")
        xp = namespace(y)
        sizes = Simplex(math.prod(self.shape), self.tau, at_most=True).project(flat(xp.abs(y)))
        return signed(xp.reshape(sizes, self.shape), y)

    def description(self) -> LinearDescription:
        """That of `KSparse` with k = 1, which this is."""
        return KSparse(self.n, 1, self.tau).description()

    @classmethod
    def examples(cls) -> Sequence[L1Ball]:
        return (cls(1), cls(4, 3.0), cls((2, 3), 0.1))
