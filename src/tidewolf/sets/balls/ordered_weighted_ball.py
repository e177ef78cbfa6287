"""The ball of an ordered weighted norm (OWL; SLOPE, OSCAR): the larger an entry, the larger its
weight.

    { N(x) <= tau },   N(x) = sum_i w_i |x|_[i]
                       w_1 >= ... >= w_n >= 0, w_1 > 0;  |x|_[1] >= |x|_[2] >= ...  the sizes

With W_k = w_1 + ... + w_k its vertices are among the vectors of k entries +-tau/W_k, k = 1, ..., n
(Zeng & Figueiredo 2014). Oracle: the k entries of largest size (ties: the earlier ones) for the k
that maximises (|d|_[1] + ... + |d|_[k])/W_k, the least among equals. Radius tau max_k sqrt(k)/W_k,
theirs; on the unit sphere N is at most |w|, at w/|w|: inner radius tau/|w|.

Projection: with z the sizes of y in order, x(t) = max(0, the decreasing vector nearest to z - t w),
by pool-adjacent-violators. F(t) = |x(t)|^2 / 2 is convex with -F'(t) = <w, x(t)>, which therefore
falls, and along straight pieces: within one, pools of m entries with means z', w' have x = z' - t
w'. Newton's method from piece to piece, kept in a bracket, finds the t with <w, x(t)> = tau. The
answer is computed from the last pools alone, measured from the first of them, so that a far y loses
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import as_point, length, like, namespace, to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Numbers
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.core.vertices import Sparse
from tidewolf.sets.balls.norm_ball import Bound, NormBall, largest_places, signed
from tidewolf.sets.base import Projectable

_ROUNDING = 4 * float(np.finfo(np.float64).eps)
_MOST_STEPS = 200


@final
@dataclass(frozen=True, eq=False, repr=False)
class OrderedWeightedBall(NormBall, Projectable):
    """Vectors whose sizes, the largest times the first of `weights` and so on, sum to at most
    `tau`. Geometry exact.

    Parameters
    ----------
    weights : array
        The weight of the largest entry, of the second largest and so on: as many as a point has
        entries. They do not increase, none is negative, and the first is above 0.
    tau : float, default 1.0
        What the norm of a member is at most.

    Examples
    --------
    >>> K = tw.sets.OrderedWeightedBall([2.0, 1.0])
    >>> K.norm(np.array([0.25, -0.5]))
    1.25
    >>> K.lmo(np.array([1.0, -4.0]))
    array([0. , 0.5])
    """

    weights: Annotated[
        Array,
        Numbers(
            "The weight of the largest entry, of the second largest and so on: as many as a point "
            "has entries. They do not increase, none is negative, and the first is above 0.",
            axes=1,
        ),
    ]
    tau: Bound = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        w = to_numpy(self.weights)
        if (rises := np.flatnonzero(np.diff(w) > 0)).size:
            i = int(rises[0])
            raise InvalidInput(
                f"weights of OrderedWeightedBall must not increase; those at {i} and {i + 1} are "
                f"{w[i]:g} and {w[i + 1]:g}.",
                setting="weights",
            )
        if w[-1] < 0 or w[0] <= 0:
            raise InvalidInput(
                "weights of OrderedWeightedBall must not be negative, and the first greater than "
                f"0; they run from {w[0]:g} to {w[-1]:g}.",
                setting="weights",
            )

    @property
    def shape(self) -> Shape:
        return tuple(self.weights.shape)

    @cached_property
    def radius(self) -> float:
        return self.tau * float(np.max(np.sqrt(np.arange(1, len(self._w) + 1)) / self._sums))

    @cached_property
    def inner_radius(self) -> float:
        return self.tau / length(self._w)

    @cached_property
    def reach(self) -> float:
        """The largest entry of a member: tau/w_1."""
        return self.tau / float(self._w[0])

    def norm(self, x: Array) -> float:
        """sum_i w_i |x|_[i]."""
        xp = namespace(x)
        return float(xp.flip(xp.sort(xp.abs(x))) @ like(self._w, x))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        d = to_numpy(direction).astype(np.float64)
        sizes = np.abs(d)
        falling = np.sort(sizes)[::-1]
        k = int(np.argmax(np.cumsum(falling / (falling[0] or 1.0)) / self._sums)) + 1
        chosen, size = largest_places(sizes, k), self.tau / float(self._sums[k - 1])
        return Answer(Sparse(self.shape, chosen, np.where(d[chosen] < 0, size, -size)))

    def project(self, y: Array) -> Array:
        """The sizes pooled and lowered by t w, with the signs of y."""
        y = as_point(y, self.shape, "The point to project")
        sizes = np.abs(to_numpy(y).astype(np.float64))
        order = np.argsort(-sizes, kind="stable")
        if self._w @ sizes[order] <= self.tau:
            return namespace(y).asarray(y, copy=True)
        sizes[order] = self._project_sorted(sizes[order])
        return signed(like(sizes, y), y)

    @classmethod
    def examples(cls) -> Sequence[OrderedWeightedBall]:
        return (cls([2.0]), cls([4.0, 3.0, 2.0, 1.0], 2.0), cls([1.0, 1.0, 0.5, 0.5, 0.0]))

    def _project_sorted(self, z: Floats) -> Floats:
        """The projection of sizes that do not increase."""
        w, low, high = self._w, 0.0, float(np.max(np.cumsum(z) / self._sums))
        # from so far the member nearest to y is its farthest along y
        if _ROUNDING * float(z[0]) >= self.tau / float(self._sums[-1]):
            return np.asarray(np.abs(self.answer(z).vertex.dense(z)))
        t = low
        pools = found = _pools(z, w, t)
        for _ in range(_MOST_STEPS):
            reached = found.weighted_sum(t)
            if abs(reached - self.tau) <= _ROUNDING * self.tau:
                break
            low, high = (t, high) if reached > self.tau else (low, t)
            ahead = t + (reached - self.tau) / found.slope if found.slope > 0 else high
            t = ahead if low < ahead < high else low + (high - low) / 2
            if t in (low, high):
                break
            found = _pools(z, w, t)
            pools = found if len(found.counts) else pools
        x = pools.with_total(self.tau, len(z))
        return x * min(1.0, self.tau / float(w @ np.sort(x)[::-1]))

    @cached_property
    def _w(self) -> Floats:
        return to_numpy(self.weights).astype(np.float64)

    @cached_property
    def _sums(self) -> Floats:
        return np.cumsum(self._w)


@dataclass(frozen=True)
class _Pools:
    """The leading pools of a vector, those with a positive value: how many entries each has, and
    the means of z and w over them.
    """

    counts: Floats
    z: Floats
    w: Floats

    @property
    def slope(self) -> float:
        """How fast <w, x(t)> falls."""
        return float(self.counts @ self.w**2)

    def weighted_sum(self, t: float) -> float:
        """<w, x(t)>."""
        return float((self.counts * self.w) @ (self.z - t * self.w))

    def with_total(self, tau: float, n: int) -> Floats:
        """The x with these pools and <w, x> = tau: z - t w = (z - z_1 w/w_1) + s w, with s from the
        bound.
        """
        above = self.z - self.w * (self.z[0] / self.w[0])
        s = (tau - float((self.counts * self.w) @ above)) / self.slope
        x = np.repeat(np.maximum(above + s * self.w, 0.0), self.counts.astype(np.int64))
        return np.concatenate([x, np.zeros(n - len(x))])


def _pools(z: Floats, w: Floats, t: float) -> _Pools:
    from scipy.optimize import isotonic_regression

    x = isotonic_regression(z - t * w, increasing=False).x
    stops = np.flatnonzero(np.append(np.diff(x) != 0, True))
    starts = np.append(0, stops[:-1] + 1)
    kept = x[stops] > 0
    starts, counts = starts[kept], (stops - starts + 1)[kept].astype(np.float64)
    end = int(counts.sum())
    if not end:
        return _Pools(counts, counts, counts)
    return _Pools(
        counts, np.add.reduceat(z[:end], starts) / counts, np.add.reduceat(w[:end], starts) / counts
    )
