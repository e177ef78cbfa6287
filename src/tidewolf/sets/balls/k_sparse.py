"""The hull of vectors with k entries of size tau: few, and none too large.

    { |x|_inf <= tau, |x|_1 <= k tau }         the ball of  N(x) = max(|x|_inf, |x|_1 / k)

Its vertices have k entries +-tau and zeros elsewhere: it is the convex hull of all vectors with at
most k nonzero entries, none larger in size than tau. Oracle: the k entries of largest size get tau
against their signs, ties go to the earlier entry. (k = 1 is the L1 ball, k = n the box.) The
farthest members are the vertices, radius tau sqrt(k). Facets x_i = +-tau at distance tau, and sum_i
s_i x_i = k tau, s_i = +-1, at k tau/sqrt(n). Projection: sizes clip(|y_i| - t, 0, tau) with the
least t >= 0 that brings their sum to k tau at most. Description: x = p - q with 0 <= p, q <= tau
and sum (p + q) <= k tau.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import as_point, flat, namespace
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Count, Number
from tidewolf.core.types import Array
from tidewolf.core.vertices import Sparse
from tidewolf.sets.balls.norm_ball import (
    Entries,
    NormBall,
    largest_entries,
    require_at_most_entries,
    signed,
)
from tidewolf.sets.base import LinearDescription, Polyhedral, Projectable
from tidewolf.sets.simplices.capped_simplex import CappedSimplex


@final
@dataclass(frozen=True, eq=False, repr=False)
class KSparse(NormBall, Projectable, Polyhedral):
    """The convex hull of arrays with at most k nonzero entries, each at most `tau` in size.
    Geometry exact.

    Parameters
    ----------
    n : int or tuple of int
        How many entries a point has, or its shape.
    k : int
        How many entries of a vertex are not zero, at most `n`.
    tau : float, default 1.0
        The size of those entries.

    Examples
    --------
    >>> tw.sets.KSparse(4, k=2).lmo(np.array([1.0, -4.0, 3.0, 0.5]))
    array([ 0.,  1., -1.,  0.])
    """

    n: Entries
    k: Annotated[int, Count("How many entries of a vertex are not zero, at most `n`.")]
    tau: Annotated[float, Number("The size of those entries.", above=0.0)] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_most_entries(self, self.k)

    @property
    def radius(self) -> float:
        return self.tau * math.sqrt(self.k)

    @property
    def inner_radius(self) -> float:
        return self.tau * min(1.0, self.k / math.sqrt(math.prod(self.shape)))

    def norm(self, x: Array) -> float:
        """max(|x|_inf, |x|_1 / k)."""
        xp = namespace(x)
        sizes = xp.abs(x)
        return max(float(xp.max(sizes)), float(xp.sum(sizes)) / self.k)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        chosen, entries = largest_entries(direction, self.k)
        return Answer(Sparse(self.shape, chosen, np.where(entries < 0, self.tau, -self.tau)))

    def project(self, y: Array) -> Array:
        """Sizes cut at tau; where they sum to more than k tau, projected on the capped simplex of
        that sum.
        """
        y = as_point(y, self.shape, "The point to project")
        xp = namespace(y)
        sizes = xp.abs(y)
        cut = xp.clip(sizes, 0.0, self.tau)
        if float(xp.sum(cut)) > self.k * self.tau:
            capped = CappedSimplex(math.prod(self.shape), self.tau, self.k * self.tau)
            cut = xp.reshape(capped.project(flat(sizes)), self.shape)
        return signed(cut, y)

    def description(self) -> LinearDescription:
        from scipy.sparse import eye_array, hstack

        n = math.prod(self.shape)
        lift = hstack([eye_array(n), -eye_array(n)], format="csr")
        total = np.array([self.k * self.tau])
        return LinearDescription(
            np.zeros(2 * n),
            np.full(2 * n, self.tau),
            A_ub=np.ones((1, 2 * n)),
            b_ub=total,
            lift=lift,
        )

    @classmethod
    def examples(cls) -> Sequence[KSparse]:
        return (cls(1, 1), cls(5, 2, 0.5), cls((2, 2), 4, 3.0))
