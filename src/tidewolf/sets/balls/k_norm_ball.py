"""The ball of the k-norm: the sum of the k entries of largest size.

    { N(x) <= tau },   N(x) = |x|_[1] + ... + |x|_[k]
                       |x|_[1] >= |x|_[2] >= ...  the sizes in order

It is the convex hull of the L1 ball of radius tau and the box [-tau/k, tau/k]^n: the largest of <d,
.> over either is tau max(|d|_inf, |d|_1 / k), and this is the dual norm of N. Oracle: whichever of
the two balls reaches farther, the first when they are equal. (k = 1 is the box, k = n the L1 ball.)
The farthest members are the vertices, radius tau max(1, sqrt(n)/k). The facets, k entries with
signs that sum to tau, are at tau/sqrt(k). Projection: that of the ordered weighted ball with k ones
for weights. Description: x with s_i + t >= |x_i|, s >= 0, t >= 0 and k t + sum s <= tau, since the
best t is |x|_[k].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import as_point, flat, namespace, to_numpy
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Count
from tidewolf.core.types import Array
from tidewolf.core.vertices import Sparse
from tidewolf.sets.balls.norm_ball import Bound, Entries, NormBall, require_at_most_entries
from tidewolf.sets.balls.ordered_weighted_ball import OrderedWeightedBall
from tidewolf.sets.base import LinearDescription, Polyhedral, Projectable


@final
@dataclass(frozen=True, eq=False, repr=False)
class KNormBall(NormBall, Projectable, Polyhedral):
    """Arrays whose k entries of largest size have sizes of at most `tau` in sum. Geometry exact.

    Parameters
    ----------
    n : int or tuple of int
        How many entries a point has, or its shape.
    k : int
        How many of the largest sizes the norm adds up, at most `n`.
    tau : float, default 1.0
        What the norm of a member is at most.

    Examples
    --------
    >>> K = tw.sets.KNormBall(3, k=2)
    >>> K.norm(np.array([0.5, -0.25, 0.25]))
    0.75
    >>> K.lmo(np.array([1.0, 1.0, -1.0]))
    array([-0.5, -0.5,  0.5])
    """

    n: Entries
    k: Annotated[int, Count("How many of the largest sizes the norm adds up, at most `n`.")]
    tau: Bound = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_most_entries(self, self.k)

    @property
    def radius(self) -> float:
        return self.tau * max(1.0, math.sqrt(math.prod(self.shape)) / self.k)

    @property
    def inner_radius(self) -> float:
        return self.tau / math.sqrt(self.k)

    def norm(self, x: Array) -> float:
        """The sum of the k largest sizes."""
        xp = namespace(x)
        return float(xp.sum(xp.sort(flat(xp.abs(x)))[-self.k :]))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        d = flat(to_numpy(direction))
        sizes = np.abs(d)
        largest = int(np.argmax(sizes))
        if self.k * float(sizes[largest]) >= float(np.sum(sizes)):
            chosen, size = np.array([largest], dtype=np.int32), self.tau
        else:
            chosen, size = np.arange(len(d), dtype=np.int32), self.tau / self.k
        return Answer(Sparse(self.shape, chosen, np.where(d[chosen] < 0, size, -size)))

    def project(self, y: Array) -> Array:
        """The projection on the ordered weighted ball that this is."""
        y = as_point(y, self.shape, "The point to project")
        weights = np.where(np.arange(math.prod(self.shape)) < self.k, 1.0, 0.0)
        return namespace(y).reshape(
            OrderedWeightedBall(weights, self.tau).project(flat(y)), self.shape
        )

    def description(self) -> LinearDescription:
        from scipy.sparse import block_array, csr_array, eye_array

        n = math.prod(self.shape)
        x, none, t = eye_array(n), csr_array((1, n)), csr_array(np.ones((n, 1)))
        A = block_array(
            [
                [x, -x, -t],
                [-x, -x, -t],
                [none, csr_array(np.ones((1, n))), csr_array([[float(self.k)]])],
            ],
            format="csr",
        )
        least, most = np.full(n, -self.tau), np.full(n, self.tau)
        return LinearDescription(
            lower=np.concatenate([least, np.zeros(n + 1)]),
            upper=np.concatenate([most, most, [self.tau]]),
            A_ub=A,
            b_ub=np.append(np.zeros(2 * n), self.tau),
            lift=eye_array(n, 2 * n + 1, format="csr"),
        )

    @classmethod
    def examples(cls) -> Sequence[KNormBall]:
        return (cls(1, 1), cls(5, 2, 3.0), cls((2, 2), 3, 0.5))
