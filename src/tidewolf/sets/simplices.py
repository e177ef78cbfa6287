"""Simplices: shares of a total, capped, in groups, or weighted."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Self, final

import numpy as np

from tidewolf.core import settings, vertices
from tidewolf.core.arrays import (
    MOST_ENTRIES,
    eps_of,
    frozen,
    inner,
    length,
    like,
    mean_there,
    namespace,
    ones,
    to_numpy,
    total,
)
from tidewolf.core.errors import EmptySet
from tidewolf.core.lazy import sp
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array, Floats, Int32s, Int64s, NDArray, Shape
from tidewolf.kernels import simplices as kernels
from tidewolf.sets import base


@dataclass(frozen=True, eq=False, repr=False)
class _SumSet(base.ClosedForm, base.SparseSet, base.Projectable, base.Boxed, base.CompiledGeometry):
    tangents: ClassVar = kernels.within_sum
    point_infeasibility: ClassVar = kernels.sum_infeasibility

    n: Annotated[int, settings.Count(most=MOST_ENTRIES)]

    @property
    def shape(self) -> Shape:
        return (self.n,)

    def infeasibility(self, x: Array) -> float:
        """The largest of: how far an entry is beyond its bounds, the error of the sum."""
        return self.beyond(x)

    @abstractmethod
    def beyond(self, x: Array) -> float:
        """The same of what is known to be finite and of the right shape."""


def _weighted_sum(
    w: Floats, total: float, upper: Floats, at_most: bool, lower: float = 0.0
) -> base.LinearDescription:
    """{ lower <= x <= upper : <w, x> = total }, or <= total."""
    rows, sides = ("A_ub", "b_ub") if at_most else ("A_eq", "b_eq")
    return base.LinearDescription(
        np.full(len(w), lower), upper, **{rows: w[None, :], sides: np.array([total])}
    )


def _meet_total(z: Array, widths: Array, weights: Array, total: float) -> Array:
    """clip(z - t, 0, widths) with the t for which <weights, .> is the total, by bisection over the
    kinks z_i and z_i - widths_i.
    """
    xp = namespace(z)
    kinks = xp.sort(xp.concat([z, z - widths]))
    low, high = 0, int(kinks.shape[0]) - 1
    while high - low > 1:
        middle = (low + high) // 2
        enough = inner(weights, xp.clip(z - kinks[middle], 0 * z, widths)) >= total
        low, high = (middle, high) if enough else (low, middle)
    full = z - widths > kinks[low]
    partial = xp.astype((z > kinks[low]) & ~full, z.dtype)
    spare = inner(weights, partial * z + xp.where(full, widths, 0 * z)) - total
    count = inner(weights, partial)
    return xp.clip(z - (spare / count if count else kinks[low]), 0 * z, widths)


# The simplex: shares of a total.
#
#     { x >= 0, sum x = total }        at_most:  { x >= 0, sum x <= total }
#
# Oracle: the cheapest coordinate gets everything (`at_most`: or none gets anything). Center c =
# total/n (at_most: total/(n+1)) everywhere. The farthest members are the vertices total e_i:
# radius^2 = total^2 - 2 total c_i + n c_i^2. Facets: x_i = 0, at distance c_i / ||P e_i|| = c_i /
# sqrt(1 - 1/n) from c within the hull; with at_most the hull is everything, and sum x = total is at
# (total - n c_i)/sqrt(n). With `least` all of this holds for what is above the floor least * total,
# whose total is `rest` = (1 - n least) total.


def _require_least(K: "Simplex | SimplexProduct", n: int) -> None:
    K._require(K.least * n < 1.0, "least", f"be below {1.0 / n:g}, 1/{n}, not {K.least:g}")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Simplex(_SumSet):
    """Nonnegative vectors of n entries that sum to `total`, or to at most `total`. Geometry exact.

    Parameters
    ----------
    n : int
        The number of entries of a point.
    total : float, default 1.0
        The sum of the entries.
    at_most : bool, default False
        Whether the entries may sum to less than `total`, too.
    least : float, default 0.0
        The least share of `total` that each entry has, below 1/n: what every entry costs is
        then seen in every round.

    Examples
    --------
    >>> K = tw.sets.Simplex(3)
    >>> K.lmo(np.array([2.0, -1.0, 0.5]))
    array([0., 1., 0.])
    >>> tw.sets.Simplex(3, least=0.01).lmo(np.array([2.0, -1.0, 0.5]))
    array([0.01, 0.98, 0.01])
    """

    oracle: ClassVar = kernels.cheapest_entry

    total: Annotated[float, settings.Number(above=0.0)] = 1.0
    at_most: Annotated[bool, settings.Flag()] = False
    least: Annotated[float, settings.Number(least=0.0)] = 0.0

    def _complete(self) -> None:
        _require_least(self, self.n)

    def __repr__(self) -> str:
        return super().__repr__().replace(", least=0)", ")")

    @property
    def _floor(self) -> float:
        return self.least * self.total

    @property
    def _rest(self) -> float:
        return self.total * (1.0 - self.n * self.least)

    @cached_property
    def center(self) -> Array:
        if not self.at_most:
            return frozen(np.full(self.n, self.total / self.n))
        return frozen(np.full(self.n, self._floor + self._rest / (self.n + 1)))

    @cached_property
    def _sizes(self) -> base.Sizes:
        n, rest = self.n, self._rest
        unit = 1.0 / (n + 1 if self.at_most else n)  # c above the floor, in units of the rest
        corner = math.sqrt(max(0.0, 1.0 - 2.0 * unit + n * unit**2))
        apart = math.sqrt(2.0) * rest if n > 1 else 0.0
        if not self.at_most:
            inside = rest * unit / math.sqrt(1 - 1 / n) if n > 1 else 0.0
            return base.Sizes(n - 1, rest * corner, apart, inside)
        inside = min(rest * unit, (rest - n * rest * unit) / math.sqrt(n))
        return base.Sizes(n, rest * max(corner, unit * math.sqrt(n)), apart or rest, inside)

    def tangent(self, direction: Array) -> Array:
        return direction if self.at_most else direction - mean_there(direction)

    def beyond(self, x: Array) -> float:
        xp = namespace(x)
        off = float(xp.sum(x)) - self.total
        return max(0.0, self._floor - float(xp.min(x)), off if self.at_most else abs(off))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        cheapest = int(namespace(direction).argmin(direction))
        is_any = not (self.at_most and float(direction[cheapest]) >= 0)
        if self.least:
            values = np.full(self.n, self._floor)
            values[cheapest] += is_any * self._rest
            return Answer(vertices.Sparse(self.shape, np.arange(self.n, dtype=np.int32), values))
        if not is_any:
            return Answer(vertices.Sparse.zero(self.shape))
        place = np.array([cheapest], dtype=np.int32)
        return Answer(vertices.Sparse(self.shape, place, np.array([self.total])))

    @cached_property
    def kernel_data(self) -> NDArray:
        return np.array([self._rest, 0.0 if self.at_most else math.inf, self._floor])

    @cached_property
    def geometry(self) -> tuple[Floats, Int32s]:
        flag = int(self.at_most)
        return np.array([self.total, math.inf, self._floor]), np.array([flag, flag], dtype=np.int32)

    @property
    def max_nonzeros(self) -> int:
        return self.n if self.least else 1

    def project(self, y: Array) -> Array:
        """Sort and threshold: x = max(y - tau, 0) with the tau that meets the total.

        z is y measured from its largest entry.
        """
        if self.least:
            return Simplex(self.n, self._rest, self.at_most).project(y - self._floor) + self._floor
        xp = namespace(y)
        positive = xp.where(y > 0, y, 0 * y)
        if self.at_most and float(xp.sum(positive)) <= self.total:
            return positive
        z = y - xp.max(y)  # tau is measured from the top, or a far y would swallow the total
        down = xp.flip(xp.sort(z))
        taus = (xp.cumulative_sum(down) - self.total) / xp.cumulative_sum(ones(self.n, z))
        last = int(xp.sum(xp.astype(down > taus, xp.int64))) - 1
        return xp.where(z > taus[last], z - taus[last], 0 * z)

    def description(self) -> base.LinearDescription:
        upper = np.full(self.n, self._floor + self._rest)
        return _weighted_sum(np.ones(self.n), self.total, upper, self.at_most, self._floor)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        several = (cls(1), cls(2), cls(5), cls(4, total=3.0), cls(4, total=2.0, least=0.1))
        bounded = (cls(1, at_most=True), cls(3, total=0.5, at_most=True))
        return (*several, *bounded, cls(3, at_most=True, least=0.05))


# The capped simplex: shares of a total, none above a cap.
#
#     { 0 <= x <= cap, sum x = total }            the hypersimplex is cap = 1, total = k
#
# With u = min(cap, total), every vertex is a permutation of one vector s: as many entries u as fit,
# one remainder, zeros. Oracle: the cheapest coordinates get u, the next one the remainder; ties go
# to the earlier coordinate. Center c = total/n.
#
#     radius = ||s - c||        diameter = ||s - reversed(s)||
#
# (by the rearrangement inequality no permutation is farther). Facets x_i = 0 and x_i = u are at c /
# ||P e_i|| and (u - c) / ||P e_i|| from c within the hull, ||P e_i|| = sqrt(1 - 1/n).

_ROUNDING = 4 * float(np.finfo(np.float64).eps)


@final
@dataclass(frozen=True, eq=False, repr=False)
class CappedSimplex(_SumSet):
    """Vectors of n entries between 0 and `cap` that sum to `total`. Geometry exact.

    Parameters
    ----------
    n : int
        The number of entries of a point.
    cap : float
        An upper bound on each entry.
    total : float, default 1.0
        The sum of the entries.

    Examples
    --------
    >>> K = tw.sets.CappedSimplex(4, cap=0.75)
    >>> K.lmo(np.array([3.0, -1.0, 0.5, 2.0]))
    array([0.  , 0.75, 0.25, 0.  ])
    """

    oracle: ClassVar = kernels.cheapest_entries

    cap: Annotated[float, settings.Number(above=0.0)]
    total: Annotated[float, settings.Number(above=0.0)] = 1.0

    def _complete(self) -> None:
        enough = self.n * self.cap >= self.total * (1 - _ROUNDING)
        due = f"be at least {self.total / self.n:g}, or no entries sum to the total"
        self._require(enough, "cap", due, EmptySet)

    @cached_property
    def center(self) -> Array:
        return frozen(np.full(self.n, self.total / self.n))

    @cached_property
    def dimension(self) -> int:
        return self.n - 1 if self.n * self._top > self.total * (1 + _ROUNDING) else 0

    @cached_property
    def _sizes(self) -> base.Sizes:
        c, shares = self.total / self.n, self._shares
        s = np.concatenate([shares, np.zeros(self.n - len(shares))])  # a vertex
        inside = min(c, self._top - c) / math.sqrt(1 - 1 / self.n)
        return base.Sizes(self.n - 1, length(s - c), length(s - s[::-1]), inside)

    def tangent(self, direction: Array) -> Array:
        return direction - total(direction) / self.n if self.dimension else 0 * direction

    def beyond(self, x: Array) -> float:
        xp = namespace(x)
        off = abs(float(xp.sum(x)) - self.total)
        return max(0.0, -float(xp.min(x)), float(xp.max(x)) - self.cap, off)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        d, shares = to_numpy(direction), self._shares
        dearest = np.partition(d, len(shares) - 1)[len(shares) - 1]
        below = np.flatnonzero(d < dearest)
        ties = np.flatnonzero(d == dearest)[: len(shares) - len(below)]
        chosen = np.concatenate([below, ties]).astype(np.int32)
        order = np.argsort(chosen)
        return Answer(vertices.Sparse(self.shape, chosen[order], shares[order]))

    @cached_property
    def kernel_data(self) -> NDArray:
        return self._shares

    @cached_property
    def geometry(self) -> tuple[Floats, Int32s]:
        kind = 0 if self.dimension else 2
        return np.array([self.total, self.cap, 0.0]), np.array([kind, 0], dtype=np.int32)

    @property
    def max_nonzeros(self) -> int:
        return len(self._shares)

    def project(self, y: Array) -> Array:
        """x = clip(y - tau, 0, u) with the tau that meets the total.

        With m entries in a vertex, tau lies within u below the m-th largest y_i: in z, which is y
        measured from there, farther entries may be clipped.
        """
        if not self.dimension:
            return like(self.center, y)
        xp, u = namespace(y), self._top
        z = xp.clip(y - xp.sort(y)[self.n - len(self._shares)], -u, u)
        return _meet_total(z, 0 * z + u, 0 * z + 1.0, self.total)

    def description(self) -> base.LinearDescription:
        return _weighted_sum(np.ones(self.n), self.total, np.full(self.n, self._top), at_most=False)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        few = (cls(1, 2.0), cls(2, 0.5), cls(2, 0.75), cls(3, 5.0), cls(5, 1.0, 2.0))
        return (*few, cls(6, 0.4), cls(49, 1 / 49), cls(4, 0.3, 1.15))

    @property
    def _top(self) -> float:
        return min(self.cap, self.total)

    @cached_property
    def _shares(self) -> Floats:
        """The nonzero entries of a vertex, largest first."""
        if not self.dimension:
            return np.full(self.n, self.total / self.n)
        full = int(self.total / self._top)
        rest = self.total - full * self._top
        return np.array([self._top] * full + [rest] * (rest > 0))


# Many simplices at once: shares of 1 in every group of a vector.
#
#     { x >= 0, the entries of each group sum to 1 }      groups of sizes n_1, ..., n_q, end to end
#
# Oracle: the cheapest entry of each group gets everything; ties go to the earlier one. Center 1/n_b
# in group b. Each group is a factor, a `Simplex` of its own, with
#
#     R_b^2 = 1 - 1/n_b        D_b^2 = 2 (0 where n_b = 1)        r_b = (1/n_b) / sqrt(1 - 1/n_b)
#
# so radius^2 = sum R_b^2, diameter^2 = sum D_b^2, and the inner radius is the least r_b of groups
# with a choice. All passes are over the vector as it lies, in double precision.


GROUP_SIZES = settings.ListOf(
    words="a list of whole numbers such as [3, 3, 2]",
    item=settings.Count(most=MOST_ENTRIES),
    such="[3, 3, 2]",
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class SimplexProduct(
    base.ClosedForm, base.SparseSet, base.Projectable, base.Boxed, base.CompiledGeometry
):
    """Nonnegative vectors whose entries sum to 1 in every group. Geometry exact.

    Parameters
    ----------
    sizes : sequence of int
        How many entries each group has, in order.
    labels : sequence of str, default ()
        Different names of the entries; empty: none.
    least : float, default 0.0
        The least share that each entry has, below 1 over the largest of `sizes`: what every
        entry costs is then seen in every round.

    Examples
    --------
    >>> K = tw.sets.SimplexProduct([3, 2])  # the splits of two demands, over three paths and two
    >>> K.lmo(np.array([2.0, -1.0, 0.5, 4.0, 3.0]))
    array([0., 1., 0., 0., 1.])
    """

    oracle: ClassVar = kernels.cheapest_of_each
    tangents: ClassVar = kernels.within_simplices
    point_infeasibility: ClassVar = kernels.outside_simplices
    nearest: ClassVar = kernels.nearest_in_simplices

    sizes: Annotated[Sequence[int], GROUP_SIZES]
    labels: Annotated[Sequence[str], settings.NAMES] = ()
    least: Annotated[float, settings.Number(least=0.0)] = 0.0

    def _complete(self) -> None:
        self._require(self.sizes, "sizes", "be at least one", EmptySet)
        self._require(sum(self.sizes) <= MOST_ENTRIES, "sizes", f"add up to {MOST_ENTRIES} at most")
        _require_least(self, max(self.sizes))
        n, given, names = sum(self.sizes), len(self.labels), len(set(self.labels))
        self._require(
            not given or names == given == n, "labels", f"be {n} different names, not {names}"
        )

    def __repr__(self) -> str:
        equal = len(self.sizes) > 4 and len(set(self.sizes)) == 1
        sizes = f"{len(self.sizes)} x {self.sizes[0]}" if equal else f"{tuple(self.sizes)}"
        least = f", least={self.least:g}" if self.least else ""
        return f"SimplexProduct(sizes={sizes}{least})"

    @cached_property
    def shape(self) -> Shape:
        return (sum(self.sizes),)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Those of `labels`, if there are some."""
        return tuple(self.labels) or None

    @cached_property
    def starts(self) -> Int64s:
        """Group b has the entries from starts[b] to starts[b + 1] - 1."""
        return frozen(np.cumsum([0, *self.sizes], dtype=np.int64))

    @cached_property
    def owner(self) -> Int64s:
        """The group of each entry."""
        return frozen(np.repeat(np.arange(len(self.sizes)), self.sizes))

    @cached_property
    def center(self) -> Array:
        return frozen((1.0 / self._counts)[self.owner])

    @cached_property
    def _rests(self) -> Floats:
        """What each group has above the least entries."""
        return 1.0 - self._counts * self.least

    @cached_property
    def _sizes(self) -> base.Sizes:
        radius = math.sqrt(float((self._rests**2 * (1.0 - 1.0 / self._counts)).sum()))
        diameter = math.sqrt(2.0 * float((self._rests[self._counts > 1] ** 2).sum()))
        facets = self._rests / np.sqrt(self._counts * np.maximum(self._counts - 1.0, 1.0))
        inside = float(facets[self._counts > 1].min(initial=math.inf))
        dimension = self.shape[0] - len(self.sizes)
        return base.Sizes(dimension, radius, diameter, inside if dimension else 0.0)

    @cached_property
    def factors(self) -> base.Factors:
        radii = frozen(self._rests * np.sqrt(1.0 - 1.0 / self._counts))
        diameters = frozen(np.where(self._counts > 1, math.sqrt(2.0) * self._rests, 0.0))
        return base.Factors(self.starts[:-1], radii, diameters, exact=True)

    def tangent(self, direction: Array) -> Array:
        along = np.empty(self.shape)
        kernels.within_simplices(_doubles(direction)[None], 1, *self.geometry, along[None])
        return like(along, direction)

    def infeasibility(self, x: Array) -> float:
        """How far an entry is below the least, or the largest error of a group's sum."""
        return float(kernels.outside_simplices(_doubles(x), *self.geometry))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        return Answer(self.minimiser(to_numpy(direction)))

    @cached_property
    def kernel_data(self) -> NDArray:
        return np.array([self.least, *self.starts])

    @cached_property
    def geometry(self) -> tuple[Floats, Int32s]:
        return np.array([self.least]), np.array([max(self.sizes), *self.starts], dtype=np.int32)

    @property
    def max_nonzeros(self) -> int:
        return self.shape[0] if self.least else len(self.sizes)

    def project(self, y: Array) -> Array:
        """Group by group: x = max(y - tau, 0) with the tau that meets the sum."""
        x = np.empty(self.shape)
        kernels.nearest_in_simplices(_doubles(y), *self.geometry, x)
        return like(x, y)

    def description(self) -> base.LinearDescription:
        n = self.shape[0]
        rows = sp.csr_array((np.ones(n), np.arange(n), self.starts), shape=(len(self.sizes), n))
        lower, upper = np.full(n, self.least), (self.least + self._rests)[self.owner]
        return base.LinearDescription(lower, upper, A_eq=rows, b_eq=np.ones(len(self.sizes)))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls([3, 3, 3]), cls([2, 1, 4]), cls([1, 1]), cls([2, 1, 4], least=0.05)

    @cached_property
    def _counts(self) -> Floats:
        return np.array(self.sizes, dtype=np.float64)


def _doubles(x: Array) -> Floats:
    found = np.ascontiguousarray(to_numpy(x), dtype=np.float64)
    return frozen(found.view()) if found.flags.writeable else found


# The fractional knapsack: amounts between 0 and their bounds, of a total weight at most, or
# exactly, given.
#
#     { 0 <= x <= upper, <w, x> <= total }       at_most=False:  { 0 <= x <= upper, <w, x> = total }
#
# with w > 0. With u_i = min(upper_i, total/w_i), the largest amount of one thing, nothing changes.
# Oracle: fill up in the order of d_i/w_i, the cheapest first and the earlier among equals, the last
# one in part; with at_most only as long as d_i < 0.
#
# Center c = theta u. For an exact total theta = total/<w, u>. With at_most theta <= 1/2 has most
# room: the nearest facets x_i = 0 are at theta min u, the facet <w, x> = total at (total - theta
# <w, u>)/|w|, equal for theta = total/(<w, u> + |w| min u). Those are also the inner radius; for an
# exact total the facets x_i = 0 and x_i = u_i are at min(c_i, u_i - c_i)/sqrt(1 - w_i^2/|w|^2)
# within the hull. Exact.
#
# The largest distance between members is hard to find in general. Two upper bounds, each one pass
# of the oracle: since (x_i - c_i)^2 lies below its chord over [0, u_i],
#
#     radius^2    <=  theta^2 |u|^2 + (1 - 2 theta) (max <u, x>, min where theta > 1/2)
#     diameter^2  <=  max { <u, t> : 0 <= t <= u, <w, t> <= 2 total },   t_i = |x_i - y_i|,
#                     t_i^2 <= u_i t_i,  t_i <= x_i + y_i,
#
# with 2 min(total, <w, u> - total) for an exact total, where t_i <= 2 u_i - x_i - y_i too. The
# radius is exact where the pass fills nothing in part, and both are for simplices and boxes.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Knapsack(base.ClosedForm, base.SparseSet, base.Projectable, base.Boxed):
    """Amounts between 0 and `upper` whose weight, the sum of `weights` times amounts, is at most
    `total`; or exactly, with at_most=False.

    Inner radius exact; radius and diameter upper bounds.

    Parameters
    ----------
    weights : array
        What one unit of each thing weighs, above 0.
    total : float
        The weight that is carried.
    upper : array, default 1.0
        The largest amounts, above 0: one, or one each.
    at_most : bool, default True
        Whether the weight may be less than `total`, too.

    Examples
    --------
    >>> K = tw.sets.Knapsack([1.0, 2.0, 4.0], total=4.0)
    >>> K.lmo(np.array([-1.0, -4.0, -4.0]))  # the second is best by weight, then the first
    array([1.  , 1.  , 0.25])
    """

    weights: Annotated[Array, settings.Numbers(axes=1, above=0.0)]
    total: Annotated[float, settings.Number(above=0.0)]
    upper: Annotated[Array, settings.Numbers(above=0.0)] = 1.0
    at_most: Annotated[bool, settings.Flag()] = True

    def _complete(self) -> None:
        self._require_shape("upper", self.shape if self.upper.ndim else ())
        upper = like(np.array(np.broadcast_to(to_numpy(self.upper), self.shape)), self.weights)
        object.__setattr__(self, "upper", frozen(upper))
        with np.errstate(over="ignore"):
            most = float(self._w @ to_numpy(upper).astype(np.float64))
        moderate = math.isfinite(most) and self._u.min() > np.finfo(np.float64).tiny
        self._require(moderate, "upper", "not differ from weights by more than numbers do")
        fits = self.at_most or self.total <= most * (1 + self._rounding)
        self._require(fits, "total", f"be at most {most:g}, not {self.total:g}", EmptySet)

    @property
    def shape(self) -> Shape:
        return tuple(self.weights.shape)

    @cached_property
    def dimension(self) -> int:
        n = len(self._w)
        return n if self.at_most else n - 1 if self.total < self._most * (1 - self._rounding) else 0

    @cached_property
    def center(self) -> Array:
        return frozen(like(self._share * self._u, self.weights))

    @cached_property
    def _sizes(self) -> base.Sizes:
        unit, share, w = float(np.max(self._u)), self._share, self._w
        # squares of what is measured by the largest amount neither vanish nor overflow
        u = self._u / unit
        sign = 1.0 if share <= 0.5 else -1.0
        best = abs(1 - 2 * share) * (self._greedy_value(sign * u, self.total, self.at_most) / unit)
        radius = unit * math.sqrt(max(0.0, share**2 * inner(u, u) + best))
        budget = 2.0 * (self.total if self.at_most else min(self.total, self._most - self.total))
        diameter = unit * math.sqrt(self._greedy_value(u, budget, True) / unit)
        if self.at_most:
            above, below = share * float(np.min(self._u)), self.total - share * self._most
            return base.Sizes(self.dimension, radius, diameter, min(above, below / length(w)))
        along = np.sqrt(np.maximum(1 - (w / length(w)) ** 2, self._rounding))
        inside = min(share, 1 - share) * float(np.min(self._u / along))
        return base.Sizes(self.dimension, radius, diameter, inside)

    def tangent(self, direction: Array) -> Array:
        if self.at_most or not self.dimension:
            return direction if self.at_most else 0 * direction
        normal = like(self._w / length(self._w), direction)
        return direction - inner(normal, direction) * normal

    def infeasibility(self, x: Array) -> float:
        """The largest violation of a bound, or the distance to the half-space or plane of the
        total.
        """
        entries = to_numpy(x).astype(np.float64)
        off = (float(self._w @ entries) - self.total) / length(self._w)
        bounds = max(float(np.max(-entries)), float(np.max(entries - to_numpy(self.upper))))
        return max(0.0, bounds, off if self.at_most else abs(off))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        chosen, amounts = self._fill_greedily(
            -to_numpy(direction).astype(np.float64), self.total, self.at_most
        )
        return Answer(vertices.Sparse(self.shape, chosen.astype(np.int32), amounts))

    def project(self, y: Array) -> Array:
        """x = clip(y - t w, 0, u) with the t that meets the total.

        In the order of y/w, t lies below the ratio at which full amounts reach the total, by max
        u/w at most: measured from there, ratios farther off may be clipped.
        """
        w, u, entries = self._w, self._u, to_numpy(y).astype(np.float64)
        inside = np.clip(entries, 0.0, u)
        if self.at_most and w @ inside <= self.total:
            return like(inside, y)
        ratios, widths = entries / w, u / w
        order = np.argsort(-ratios)
        reached = int(np.searchsorted(np.cumsum((w * u)[order]), self.total * (1 - self._rounding)))
        far = float(np.max(widths))
        ratios = np.clip(ratios - ratios[order[min(reached, len(w) - 1)]], -far, far)
        return like(w * _meet_total(ratios, widths, w**2, self.total), y)

    def description(self) -> base.LinearDescription:
        return _weighted_sum(self._w, self.total, self._u, self.at_most)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls([2.0], 1.0),
            cls([1.0, 2.0, 3.0, 4.0], 5.0, [1.0, 2.0, 0.5, 9.0]),
            cls([0.5, 1.0, 2.0], 2.0, at_most=False),
            cls([0.1, 0.2, 0.3], 0.6, at_most=False),
        )

    def _fill_greedily(self, value: Floats, budget: float, at_most: bool) -> tuple[Int64s, Floats]:
        """The entries and amounts that have most value, for weights in sum at most, or exactly,
        `budget`.
        """
        worth = np.flatnonzero(value > 0) if at_most else np.arange(len(value))
        order = worth[np.argsort(-value[worth] / self._w[worth], kind="stable")]
        loads, amounts = self._w * self._u, self._u.copy()
        full = int(np.searchsorted(np.cumsum(loads[order]), budget, side="right"))
        rest, spare = order[full : full + 1], budget - float(loads[np.sort(order[:full])].sum())
        amounts[rest] = np.clip(spare / self._w[rest], 0.0, self._u[rest])
        chosen = np.sort(order[: full + 1])
        chosen = chosen[amounts[chosen] > 0]
        return chosen, amounts[chosen]

    def _greedy_value(self, value: Floats, budget: float, at_most: bool) -> float:
        chosen, amounts = self._fill_greedily(value, budget, at_most)
        return float(value[chosen] @ amounts)

    @cached_property
    def _w(self) -> Floats:
        return to_numpy(self.weights).astype(np.float64)

    @cached_property
    def _u(self) -> Floats:
        with np.errstate(over="ignore"):  # what weighs next to nothing is held by its own bound
            most: Floats = np.minimum(to_numpy(self.upper).astype(np.float64), self.total / self._w)
        return most

    @cached_property
    def _most(self) -> float:
        return float(self._w @ self._u)

    @property
    def _rounding(self) -> float:
        return 4 * eps_of(self.weights)

    @cached_property
    def _share(self) -> float:
        if not self.at_most:
            return min(1.0, self.total / self._most)
        return min(0.5, self.total / (self._most + length(self._w) * float(np.min(self._u))))
