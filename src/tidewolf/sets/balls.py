"""Balls of norms, ellipsoids and boxes."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self, TypeAlias, final

import numpy as np

from tidewolf.core import errors, settings
from tidewolf.core.arrays import (
    eps_of,
    flat,
    frozen,
    inner,
    length,
    like,
    namespace,
    norm,
    plus,
    to_numpy,
)
from tidewolf.core.lazy import scipy, sp
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array, Floats, Int32s, Int64s, NDArray, Shape
from tidewolf.core.vertices import Dense, Sparse
from tidewolf.kernels import box as kernels
from tidewolf.sets import base
from tidewolf.sets.simplices import CappedSimplex, Simplex

# What balls of a norm N around the origin share.
#
#     { x : N(x) <= tau }        center 0        excess N(x) - tau
#
# They are symmetric, so that the diameter is exactly twice the radius. No entry of a member is
# larger in size than `reach`: the box [-reach, reach]^n is the superset. `Translated` puts a ball
# elsewhere.

Entries: TypeAlias = Annotated[int | Shape, settings.Size()]
Bound: TypeAlias = Annotated[float, settings.Number(above=0.0)]


class NormBall(base.ClosedForm, base.Relaxable):
    """Abstract: { x : norm(x) <= tau }.

    A subclass is a frozen dataclass with fields tau and n, or with a `shape` of its own.
    """

    n: int | Shape
    tau: float

    @property
    def shape(self) -> Shape:
        return base.shape_of(self.n)

    @abstractmethod
    def norm(self, x: Array) -> float:
        """The norm that members have at most tau of."""

    @property
    @abstractmethod
    def _radii(self) -> tuple[float, float]:
        """The radius and the inner radius."""

    @cached_property
    def _sizes(self) -> base.Sizes:
        radius, inside = self._radii
        return base.Sizes(math.prod(self.shape), radius, 2.0 * radius, inside)

    @cached_property
    def center(self) -> Array:
        return frozen(np.zeros(self.shape))

    @property
    def reach(self) -> float:
        return self.tau

    def infeasibility(self, x: Array) -> float:
        return max(0.0, self.norm(x) - self.tau)

    def relax(self, y: Array) -> Array:
        """The box [-reach, reach]^n around it."""
        return base.clipped(y, -self.reach, self.reach)


def require_at_most(K: base.ConvexSet, k: int, n: int) -> None:
    K._require(k <= n, "k", f"be at most n = {n}, not {k}")


def largest_entries(direction: Array, k: int) -> tuple[Int32s, NDArray]:
    """The places of the k entries largest in size, in order, and the entries; ties go to the
    earlier one. Of a point on a device no more than those come here.
    """
    d = flat(direction)
    xp = namespace(d)
    sizes, rank = xp.abs(d), int(d.shape[0]) - k
    if k == 1:
        largest = int(xp.argmax(sizes))
        return np.array([largest], dtype=np.int32), to_numpy(d[largest : largest + 1])
    ordered = np.partition(sizes, rank) if type(d) is np.ndarray else xp.sort(sizes)
    above = xp.nonzero(sizes > ordered[rank])[0]
    ties = xp.nonzero(sizes == ordered[rank])[0][: k - int(above.shape[0])]
    chosen = xp.sort(xp.concat([above, ties]))
    return to_numpy(chosen).astype(np.int32), to_numpy(xp.take(d, chosen, axis=0))


# The Euclidean ball.
#
#     { ||x - center|| <= radius }                 (Frobenius norm)
#
# Oracle: center - radius d/||d||, the norm taken after dividing by the largest entry so that
# neither huge nor tiny directions lose it; for d = 0 every member is best and the center is the
# answer.


@final
@dataclass(frozen=True, eq=False, repr=False)
class L2Ball(base.ConvexSet, base.Projectable, base.Relaxable):
    """Arrays within `radius` of `center`. Geometry exact.

    Parameters
    ----------
    n : int or tuple of int
        The number of entries of a point, or its shape.
    radius : float, default 1.0
        How far members are from the center.
    center : array, optional
        The middle of the ball. None: the origin.

    Examples
    --------
    >>> K = tw.sets.L2Ball(2, radius=5.0)
    >>> K.lmo(np.array([3.0, -4.0]))
    array([-3.,  4.])
    >>> K.project(np.array([6.0, 8.0]))
    array([3., 4.])
    """

    n: Entries
    radius: Annotated[float, settings.Number(above=0.0)] = 1.0
    center: Annotated[Array, settings.Numbers()] = None

    def _complete(self) -> None:
        if self.center is None:
            object.__setattr__(self, "center", frozen(np.zeros(self.shape)))
        self._require_shape("center", self.shape)

    @property
    def shape(self) -> Shape:
        return base.shape_of(self.n)

    @property
    def inner_radius(self) -> float:
        return self.radius

    def infeasibility(self, x: Array) -> float:
        """The distance to the ball."""
        return max(0.0, length(x - like(self.center, x)) - self.radius)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        center, size = like(self.center, direction), length(direction)
        return Answer(Dense(plus(center, -self.radius, direction / size) if size else center))

    def project(self, y: Array) -> Array:
        """The point of the segment from the center to y that is in the ball and nearest to y."""
        center = like(self.center, y)
        away = length(y - center)
        if away <= self.radius:
            return namespace(y).asarray(y, copy=True)
        return center + (y - center) * (self.radius / away)

    relax = project

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls(1),
            cls(3, radius=2.0),
            cls((2, 2), radius=0.1, center=[[1.0, 0.0], [0.0, -3.0]]),
            cls(4, center=[0.0, 5.0, 0.0, 0.0]),
        )


# The ellipsoid of a positive definite matrix A.
#
#     { (x - c)' A (x - c) <= 1 }
#
# Its semi-axes are s_i = 1/sqrt(a_i) along the eigenvectors of A, a_i its eigenvalues. A vector for
# A is its diagonal. In the coordinates u = Q'(x - c), A = Q diag(a) Q', it is sum_i (u_i/s_i)^2 <=
# 1, the unit ball stretched by s. Oracle: with e = Q'd the answer is u = -s (s e)/|s e|, from d
# divided by its largest size; the center for d = 0. Radius: the longest semi-axis; diameter: twice
# that; inner radius: the shortest.
#
# Projection of u outside: x_i = s_i p_i, p_i = s_i u_i/(s_i^2 + t), with the t > 0 for which f(t) =
# |p| is 1. Since 1/f is concave and grows, Newton's method on 1/f = 1 stays below the root from any
# t with f(t) >= 1, and |s u| - max s^2 is one.
#
# The matrix is turned once, by a dense eigensolver in double precision; "exact" is up to its
# rounding, eps times the condition of A.

_MOST_STEPS = 200


@final
@dataclass(frozen=True, eq=False, repr=False)
class Ellipsoid(base.ClosedForm, base.Projectable, base.Relaxable):
    """Vectors x with (x - center)' A (x - center) <= 1. Geometry exact.

    For { (x - c)' A (x - c) <= r } give A/r.

    Parameters
    ----------
    matrix : array
        The positive definite matrix A, or its diagonal.
    center : array, optional
        The middle of the ellipsoid. None: the origin.

    Examples
    --------
    >>> K = tw.sets.Ellipsoid([1.0, 0.25])  # semi-axes 1 and 2
    >>> K.lmo(np.array([0.0, 1.0])) + 0.0
    array([ 0., -2.])
    """

    matrix: Annotated[Array, settings.Numbers()]
    center: Annotated[Array, settings.Numbers()] = None

    def _complete(self) -> None:
        shape = tuple(self.matrix.shape)
        square = len(shape) in (1, 2) and len(set(shape)) == 1 and 0 not in shape
        self._require(square, "matrix", f"be n x n or n, not {shape}", errors.WrongShape)
        center = np.zeros(shape[0]) if self.center is None else self.center
        object.__setattr__(self, "center", frozen(like(center, self.matrix)))
        self._require_shape("center", self.shape)
        A, eigenvalues, eps = to_numpy(self.matrix), self._eigen[0], eps_of(self.matrix)
        skew = float(np.max(np.abs(A - A.T)))  # 0 of a vector
        least, most = float(np.min(eigenvalues)), float(np.max(eigenvalues))
        definite = least > shape[0] * eps * most and most > 0
        found = f"mirrored entries differ by {skew:.3g}, eigenvalues are {least:.3g} or more"
        due = f"be symmetric and positive definite; {found}"
        self._require(definite and skew <= 100 * eps * np.max(np.abs(A)), "matrix", due)

    @property
    def shape(self) -> Shape:
        return (self.matrix.shape[0],)

    @cached_property
    def _sizes(self) -> base.Sizes:
        least, most = float(np.min(self._semiaxes)), float(np.max(self._semiaxes))
        return base.Sizes(len(self._semiaxes), most, 2.0 * most, least)

    def infeasibility(self, x: Array) -> float:
        """How much larger the ellipsoid would have to be to hold x, times the shortest semi-axis:
        at most the distance to it.
        """
        u = self._to_axes(x - like(self.center, x))
        return self._sizes.inner_radius * max(0.0, length(u / like(self._semiaxes, u)) - 1.0)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        xp, center = namespace(direction), like(self.center, direction)
        s = like(self._semiaxes, direction)
        largest = float(xp.max(xp.abs(direction)))
        if largest == 0.0:
            return Answer(Dense(center))
        stretched = s * self._to_axes(direction / largest)
        return Answer(Dense(center - self._from_axes(s * (stretched / length(stretched)))))

    def project(self, y: Array) -> Array:
        """One scalar root."""
        # in units of the longest semi-axis
        center, s = like(self.center, y), like(self._semiaxes / self.radius, y)
        u = self._to_axes((y - center) / self.radius)
        if length(u / s) <= 1.0:
            return namespace(y).asarray(y, copy=True)
        t = max(0.0, length(s * u) - 1.0)
        for _ in range(_MOST_STEPS):
            p = s * u / (s**2 + t)
            f = norm(p)
            ahead = t + (f - 1.0) * f**2 / inner(p, p / (s**2 + t))
            if not ahead > t:
                break
            t = ahead
        return center + self.radius * self._from_axes(s * p / f)

    def relax(self, y: Array) -> Array:
        """The smallest box around it: c_i +- the root of entry i of the diagonal of the inverse of
        A.
        """
        center = to_numpy(self.center)
        return base.clipped(y, center - self._widths, center + self._widths)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls([4.0]),
            cls([1.0, 0.01, 25.0], [0.0, 5.0, -1.0]),
            cls([[2.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 1.0]], [1.0, 2.0, 3.0]),
        )

    @cached_property
    def _eigen(self) -> tuple[NDArray, NDArray | None]:
        """The eigenvalues of A, and its eigenvectors as columns (None: the axes)."""
        A = to_numpy(self.matrix).astype(np.float64)
        if A.ndim == 1:
            return A, None
        values, vectors = np.linalg.eigh(0.5 * (A + A.T))
        return values, vectors

    @cached_property
    def _semiaxes(self) -> Floats:
        return np.asarray(1.0 / np.sqrt(self._eigen[0]))

    @cached_property
    def _widths(self) -> Floats:
        basis = self._eigen[1]
        if basis is None:
            return self._semiaxes
        return self.radius * np.sqrt(basis**2 @ (self._semiaxes / self.radius) ** 2)

    def _to_axes(self, x: Array) -> Array:
        basis = self._eigen[1]
        return x if basis is None else x @ like(basis, x)

    def _from_axes(self, u: Array) -> Array:
        basis = self._eigen[1]
        return u if basis is None else like(basis, u) @ u


# The ball of a p-norm, 1 <= p <= inf.
#
#     { |x|_p <= tau },    |x|_p = (sum_i |x_i|^p)^(1/p)
#
# with p = 1 and p = inf as the limits: the sum and the largest of the sizes.
#
# Oracle: by Hoelder's inequality -tau s/|s|_p with s_i = sign(d_i) |d_i|^(1/(p - 1)), where |s|_p^p
# = <s, d>, from d divided by its largest size. For p = 1 the entries of largest size share
# (`L1Ball` gives everything to the first, which is a vertex); for p = inf every entry is +-tau; for
# d = 0 and p < inf every member is best and the center is the answer. Since
#
#     |x|_2 <= |x|_p  for p <= 2,        |x|_2 <= n^(1/2 - 1/p) |x|_p  for p >= 2,
#
# which e_1 and (1, ..., 1) attain, the radius is tau max(1, n^(1/2 - 1/p)) and, these being the
# other way round for the largest ball inside, the inner radius tau min(1, n^(1/2 - 1/p)).


class Power(settings.Number):
    """The power of a norm: at least 1, and perhaps infinite."""

    def __call__(self, value: Any, what: str) -> float:
        infinite = isinstance(value, float) and value == math.inf
        return math.inf if infinite else super().__call__(value, what)


@final
@dataclass(frozen=True, eq=False, repr=False)
class LpBall(NormBall):
    """Arrays of p-norm at most `tau`. Geometry exact.

    Parameters
    ----------
    n : int or tuple of int
        The number of entries of a point, or its shape.
    p : float
        The power of the norm: at least 1, or infinity.
    tau : float, default 1.0
        What the norm of a member is at most.

    Examples
    --------
    >>> tw.sets.LpBall(2, p=np.inf).lmo(np.array([3.0, -1.0]))
    array([-1.,  1.])
    """

    n: Entries
    p: Annotated[float, Power(least=1.0)]
    tau: Bound = 1.0

    @property
    def _radii(self) -> tuple[float, float]:
        ratio = float(math.prod(self.shape) ** (0.5 - 1.0 / self.p))
        return self.tau * max(1.0, ratio), self.tau * min(1.0, ratio)

    def norm(self, x: Array) -> float:
        """|x|_p."""
        xp = namespace(x)
        sizes = xp.abs(x)
        largest = float(xp.max(sizes))
        total = float(xp.sum((sizes / (largest or 1.0)) ** self.p))
        return largest * float(total ** (1.0 / self.p))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        xp = namespace(direction)
        sizes = xp.abs(direction)
        largest = float(xp.max(sizes))
        sizes = sizes / largest if largest else sizes
        s = sizes ** (1.0 / (self.p - 1.0) if self.p > 1.0 else math.inf)
        s = s * (self.tau / (float(xp.sum(s * sizes)) ** (1.0 / self.p) or 1.0))
        return Answer(Dense(xp.where(direction < 0, s, -s)))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (cls(1, 3.0), cls(4, 1.5, 2.0), cls((2, 3), 5.0, 0.1))


# The hull of vectors with k entries of size tau: few, and none too large.
#
#     { |x|_inf <= tau, |x|_1 <= k tau }         the ball of  N(x) = max(|x|_inf, |x|_1 / k)
#
# Its vertices have k entries +-tau and zeros elsewhere: it is the convex hull of all vectors with
# at most k nonzero entries, none larger in size than tau. Oracle: the k entries of largest size get
# tau against their signs, ties go to the earlier entry. (k = 1 is the L1 ball, k = n the box.) The
# farthest members are the vertices, radius tau sqrt(k). Facets x_i = +-tau at distance tau, and
# sum_i s_i x_i = k tau, s_i = +-1, at k tau/sqrt(n). Projection: sizes clip(|y_i| - t, 0, tau) with
# the least t >= 0 that brings their sum to k tau at most. Description: x = p - q with 0 <= p, q <=
# tau and sum (p + q) <= k tau.


class _FewEntries(NormBall, base.SparseSet, base.Projectable, base.Polyhedral):
    k: int

    @property
    def _radii(self) -> tuple[float, float]:
        inside = min(1.0, self.k / math.sqrt(math.prod(self.shape)))
        return self.tau * math.sqrt(self.k), self.tau * inside

    def norm(self, x: Array) -> float:
        """max(|x|_inf, |x|_1 / k)."""
        xp = namespace(x)
        sizes = xp.abs(x)
        return max(float(xp.max(sizes)), float(xp.sum(sizes)) / self.k)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        chosen, entries = largest_entries(direction, self.k)
        return Answer(Sparse(self.shape, chosen, np.where(entries < 0, self.tau, -self.tau)))

    def project(self, y: Array) -> Array:
        """Sizes cut at tau; if they sum to more than k tau, projected on the simplex of that sum,
        capped at tau.
        """
        xp, n, total = namespace(y), math.prod(self.shape), self.k * self.tau
        sizes = xp.abs(y)
        cut = xp.clip(sizes, 0.0, self.tau)
        if float(xp.sum(cut)) > total:
            of_sum = Simplex(n, total) if self.k == 1 else CappedSimplex(n, self.tau, total)
            cut = xp.reshape(of_sum.project(flat(sizes)), self.shape)
        return xp.where(y < 0, -cut, cut)

    def description(self) -> base.LinearDescription:
        n = math.prod(self.shape)
        lift, row = (
            sp.hstack([sp.eye_array(n), -sp.eye_array(n)], format="csr"),
            np.ones((1, 2 * n)),
        )
        upper, total = np.full(2 * n, self.tau), np.array([self.k * self.tau])
        return base.LinearDescription(0.0 * upper, upper, A_ub=row, b_ub=total, lift=lift)


@final
@dataclass(frozen=True, eq=False, repr=False)
class KSparse(_FewEntries):
    """The convex hull of arrays with at most k nonzero entries, each at most `tau` in size.
    Geometry exact.

    Parameters
    ----------
    n : int or tuple of int
        The number of entries of a point, or its shape.
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
    k: Annotated[int, settings.Count()]
    tau: Annotated[float, settings.Number(above=0.0)] = 1.0

    def _complete(self) -> None:
        require_at_most(self, self.k, math.prod(self.shape))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (cls(1, 1), cls(5, 2, 0.5), cls((2, 2), 4, 3.0))


# The cross-polytope: arrays whose entries are together at most tau in size. It is the case k = 1.
#
#     { |x|_1 <= tau },    |x|_1 = sum_i |x_i|                 vertices  +-tau e_i


@final
@dataclass(frozen=True, eq=False, repr=False)
class L1Ball(_FewEntries):
    """Arrays whose entries have sizes of at most `tau` in sum. Geometry exact.

    Parameters
    ----------
    n : int or tuple of int
        The number of entries of a point, or its shape.
    tau : float, default 1.0
        What the norm of a member is at most.

    Examples
    --------
    >>> tw.sets.L1Ball(3, tau=2.0).lmo(np.array([1.0, -4.0, 3.0]))
    array([0., 2., 0.])
    """

    n: Entries
    tau: Bound = 1.0

    k = 1

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (cls(1), cls(4, 3.0), cls((2, 3), 0.1))


# The ball of an ordered weighted norm (OWL; SLOPE, OSCAR): the larger an entry, the larger its
# weight.
#
#     { N(x) <= tau },   N(x) = sum_i w_i |x|_[i]
#                        w_1 >= ... >= w_n >= 0, w_1 > 0;  |x|_[1] >= |x|_[2] >= ...  the sizes
#
# With W_k = w_1 + ... + w_k its vertices are among the vectors of k entries +-tau/W_k, k = 1, ...,
# n (Zeng & Figueiredo 2014). Oracle: the k entries of largest size (ties: the earlier ones) for the
# k that maximises (|d|_[1] + ... + |d|_[k])/W_k, the least among equals. Radius tau max_k
# sqrt(k)/W_k, theirs; on the unit sphere N is at most |w|, at w/|w|: inner radius tau/|w|.
#
# Projection: with z the sizes of y in order, x(t) = max(0, the decreasing vector nearest to z - t
# w), by pool-adjacent-violators. F(t) = |x(t)|^2 / 2 is convex with -F'(t) = <w, x(t)>, which
# therefore falls, and along straight pieces: within one, pools of m entries with means z', w' have
# x = z' - t w'. Newton's method from piece to piece, kept in a bracket, finds the t with <w, x(t)>
# = tau. The answer is computed from the last pools alone, measured from the first of them, so that
# a far y loses nothing.

_ROUNDING = 4 * float(np.finfo(np.float64).eps)


class _Ordered(NormBall, base.SparseSet, base.Projectable):
    """Abstract: sizes, the largest times the first weight and so on, sum to at most tau."""

    @property
    @abstractmethod
    def _w(self) -> Floats:
        """The weights."""

    @cached_property
    def _sums(self) -> Floats:
        return np.cumsum(self._w)

    @property
    def _radii(self) -> tuple[float, float]:
        farthest = float(np.max(np.sqrt(np.arange(1, len(self._w) + 1)) / self._sums))
        return self.tau * farthest, self.tau / length(self._w)

    @cached_property
    def reach(self) -> float:
        """The largest entry of a member: tau/w_1."""
        return self.tau / float(self._w[0])

    def norm(self, x: Array) -> float:
        """sum_i w_i |x|_[i]."""
        xp = namespace(x)
        return float(xp.flip(xp.sort(flat(xp.abs(x)))) @ like(self._w, x))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        d = _numbers(direction)
        falling = np.sort(np.abs(d))[::-1]
        k = int(np.argmax(np.cumsum(falling / (falling[0] or 1.0)) / self._sums)) + 1
        (chosen, entries), size = largest_entries(d, k), self.tau / float(self._sums[k - 1])
        return Answer(Sparse(self.shape, chosen, np.where(entries < 0, size, -size)))

    def project(self, y: Array) -> Array:
        """The sizes pooled and lowered by t w, with the signs of y."""
        sizes = np.abs(_numbers(y))
        order = np.argsort(-sizes, kind="stable")
        if self._w @ sizes[order] <= self.tau:
            return namespace(y).asarray(y, copy=True)
        sizes[order] = self._project_sorted(sizes[order])
        sizes = like(sizes.reshape(self.shape), y)
        return namespace(y).where(y < 0, -sizes, sizes)

    def _project_sorted(self, z: Floats) -> Floats:
        w, t, low, high = self._w, 0.0, 0.0, float(np.max(np.cumsum(z) / self._sums))
        # from so far the member nearest to y is its farthest along y
        if _ROUNDING * float(z[0]) >= self.tau / float(self._sums[-1]):
            farthest = self.answer(z.reshape(self.shape)).vertex.dense(z)
            return np.asarray(np.abs(farthest)).reshape(-1)
        pools = found = _pools(z, w, t)
        for _ in range(_MOST_STEPS):
            m, zs, ws = found
            reached, slope = float((m * ws) @ (zs - t * ws)), float(m @ ws**2)
            if abs(reached - self.tau) <= _ROUNDING * self.tau:
                break
            low, high = (t, high) if reached > self.tau else (low, t)
            ahead = t + (reached - self.tau) / slope if slope > 0 else high
            t = ahead if low < ahead < high else low + (high - low) / 2
            if t in (low, high):
                break
            found = _pools(z, w, t)
            pools = found if len(found[0]) else pools
        # the x with these pools and <w, x> = tau: z - t w = (z - z_1 w/w_1) + s w, s by the bound
        m, zs, ws = pools
        above = zs - ws * (zs[0] / ws[0])
        s = (self.tau - float((m * ws) @ above)) / float(m @ ws**2)
        x = np.repeat(np.maximum(above + s * ws, 0.0), m.astype(np.int64))
        x = np.concatenate([x, np.zeros(len(z) - len(x))])
        return x * min(1.0, self.tau / float(w @ np.sort(x)[::-1]))


@final
@dataclass(frozen=True, eq=False, repr=False)
class OrderedWeightedBall(_Ordered):
    """Vectors whose sizes, the largest times the first of `weights` and so on, sum to at most
    `tau`. Geometry exact.

    Parameters
    ----------
    weights : array
        The weights of the largest entry, the second...
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

    weights: Annotated[Array, settings.Numbers(axes=1)]
    tau: Bound = 1.0

    def _complete(self) -> None:
        w = to_numpy(self.weights)
        falling = (np.diff(w) <= 0).all() and w[-1] >= 0 and w[0] > 0
        self._require(falling, "weights", "start above 0 and never rise")

    @property
    def shape(self) -> Shape:
        return tuple(self.weights.shape)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (cls([2.0]), cls([4.0, 3.0, 2.0, 1.0], 2.0), cls([1.0, 1.0, 0.5, 0.5, 0.0]))

    @cached_property
    def _w(self) -> Floats:
        return to_numpy(self.weights).astype(np.float64)


def _pools(z: Floats, w: Floats, t: float) -> tuple[Floats, Floats, Floats]:
    """The leading pools of z - t w, those with a positive value: how many entries each has, and the
    means of z and w over them.
    """
    found = scipy.optimize.isotonic_regression(z - t * w, increasing=False)
    kept = found.x[found.blocks[:-1]] > 0
    starts, counts = found.blocks[:-1][kept], found.weights[kept]
    zs, ws = (np.add.reduceat(part[: int(counts.sum())], starts) / counts for part in (z, w))
    return counts, zs, ws


# The ball of the k-norm: the sum of the k entries of largest size.
#
#     { N(x) <= tau },   N(x) = |x|_[1] + ... + |x|_[k]
#                        |x|_[1] >= |x|_[2] >= ...  the sizes in order
#
# It is the convex hull of the L1 ball of radius tau and the box [-tau/k, tau/k]^n: the largest of
# <d, .> over either is tau max(|d|_inf, |d|_1 / k), and this is the dual norm of N. Oracle:
# whichever of the two balls reaches farther, the first when they are equal. (k = 1 is the box, k =
# n the L1 ball.) The farthest members are the vertices, radius tau max(1, sqrt(n)/k). The facets, k
# entries with signs that sum to tau, are at tau/sqrt(k). Projection: that of the ordered weighted
# ball with k ones for weights. Description: x with s_i + t >= |x_i|, s >= 0, t >= 0 and k t + sum s
# <= tau, since the best t is |x|_[k].


@final
@dataclass(frozen=True, eq=False, repr=False)
class KNormBall(_Ordered, base.Polyhedral):
    """Arrays whose k entries of largest size have sizes of at most `tau` in sum. Geometry exact.

    Parameters
    ----------
    n : int or tuple of int
        The number of entries of a point, or its shape.
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
    k: Annotated[int, settings.Count()]
    tau: Bound = 1.0

    def _complete(self) -> None:
        require_at_most(self, self.k, math.prod(self.shape))

    @cached_property
    def _w(self) -> Floats:
        return np.where(np.arange(math.prod(self.shape)) < self.k, 1.0, 0.0)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        d = flat(to_numpy(direction))
        sizes = np.abs(d)
        largest = int(np.argmax(sizes))
        if self.k * float(sizes[largest]) >= float(np.sum(sizes)):
            chosen, size = np.array([largest], dtype=np.int32), self.tau
        else:
            chosen, size = np.arange(len(d), dtype=np.int32), self.tau / self.k
        return Answer(Sparse(self.shape, chosen, np.where(d[chosen] < 0, size, -size)))

    def description(self) -> base.LinearDescription:
        n = math.prod(self.shape)
        x, t, ones = (sp.eye_array(n), sp.csr_array(np.ones((n, 1))), sp.csr_array(np.ones((1, n))))
        rows = [[x, -x, -t], [-x, -x, -t], [None, ones, sp.csr_array([[float(self.k)]])]]
        upper = np.full(2 * n + 1, self.tau)
        lower = np.where(np.arange(2 * n + 1) < n, -self.tau, 0.0)
        A_ub, b_ub = (sp.block_array(rows, format="csr"), np.append(np.zeros(2 * n), self.tau))
        return base.LinearDescription(
            lower, upper, A_ub=A_ub, b_ub=b_ub, lift=sp.eye_array(n, 2 * n + 1, format="csr")
        )

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (cls(1, 1), cls(5, 2, 3.0), cls((2, 2), 3, 0.5))


# The ball of the group norm: few groups of entries at a time.
#
#     { sum_g w_g |x_g| <= tau }            x_g the entries of group g, |.| Euclidean, weights w_g
#         > 0
#
# Oracle: the group with the largest |d_g|/w_g, the first among equals, gets everything: -(tau/w_g)
# d_g/|d_g|; for d = 0 the answer is the center. The farthest members are these, so that the radius
# is tau / min w. On the unit sphere sum_g w_g |u_g| is at most |w|, where |u_g| = w_g/|w|: the
# inner radius is tau/|w|. Projection: y_g shortened to max(0, |y_g| - t w_g) with the least t >= 0
# that meets the bound, found by sorting |y_g|/w_g. Superset: every group in its own ball of radius
# tau/w_g. (Of the largest, not the sum, of the |x_g| the balls are products of `L2Ball`.)


class GroupNumbers(settings.Numbers):
    """Whole numbers in the shape of a point: entries with the same one form a group."""

    def __call__(self, value: Any, what: str) -> NDArray:
        groups = to_numpy(super().__call__(value, what)).astype(np.float64)  # as tables hold them
        if (np.abs(groups) > 2**53).any() or (groups != np.rint(groups)).any():
            raise errors.WrongType(f"{what} must be whole numbers, one for each entry of a point.")
        settings.require_entries(groups.shape, what)
        return frozen(groups.astype(np.int64))


@final
@dataclass(frozen=True, eq=False, repr=False)
class GroupBall(NormBall, base.SparseSet, base.Projectable):
    """Arrays whose groups have weighted lengths of at most `tau` in sum. Geometry exact.

    Parameters
    ----------
    groups : array
        The number of each entry's group, as a point.
    tau : float, default 1.0
        What the norm of a member is at most.
    weights : array, optional
        The weight of each group, above 0. None: 1 each.

    Examples
    --------
    >>> K = tw.sets.GroupBall([0, 0, 1], tau=5.0)
    >>> K.lmo(np.array([3.0, -4.0, 1.0]))
    array([-3.,  4.,  0.])
    """

    groups: Annotated[Array, GroupNumbers()]
    tau: Bound = 1.0
    weights: Annotated[Array, settings.Numbers(above=0.0)] = None

    def _complete(self) -> None:
        count = len(np.unique(self.groups))
        if self.weights is None:
            object.__setattr__(self, "weights", frozen(np.ones(count)))
        self._require_shape("weights", (count,))

    @property
    def shape(self) -> Shape:
        return tuple(self.groups.shape)

    @property
    def _radii(self) -> tuple[float, float]:
        return self.tau / float(np.min(self._w)), self.tau / length(self._w)

    def norm(self, x: Array) -> float:
        """sum_g w_g |x_g|."""
        return float(self._w @ self._lengths(_numbers(x)))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        d = _numbers(direction)
        lengths = self._lengths(d)
        g = int(np.argmax(lengths / self._w))
        if lengths[g] == 0.0:
            return Answer(Sparse.zero(self.shape))
        chosen = np.flatnonzero(self._labels == g).astype(np.int32)
        values = (-self.tau / self._w[g]) * (d[chosen] / lengths[g])
        return Answer(Sparse(self.shape, chosen, values))

    def project(self, y: Array) -> Array:
        """Every group shortened by its weight times one number."""
        lengths, w = self._lengths(_numbers(y)), self._w
        if w @ lengths <= self.tau:
            return namespace(y).asarray(y, copy=True)
        ratios = lengths / w
        ratios = ratios - np.max(ratios)  # t is measured from the top, or a far y would swallow tau
        order = np.argsort(-ratios)
        square = w[order] ** 2
        ts = (np.cumsum(square * ratios[order]) - self.tau) / np.cumsum(square)
        t = ts[np.count_nonzero(ratios[order] > ts) - 1]
        return self._with_lengths(y, lengths, w * np.maximum(ratios - t, 0.0))

    def relax(self, y: Array) -> Array:
        """Every group shortened to tau/w_g, where it is longer."""
        lengths = self._lengths(_numbers(y))
        return self._with_lengths(y, lengths, np.minimum(lengths, self.tau / self._w))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (cls([7]), cls([0, 0, 1, 2, 1], 2.0, [1.0, 0.5, 3.0]), cls([[3, 3], [-1, -1]], 0.1))

    def _lengths(self, x: Floats) -> Floats:
        """|x_g| for every group, without overflow or underflow on the way."""
        largest = float(np.max(np.abs(x))) or 1.0
        return largest * np.sqrt(np.bincount(self._labels, (x / largest) ** 2))

    def _with_lengths(self, y: Array, old: Floats, new: Floats) -> Array:
        shares = np.divide(new, old, out=np.zeros_like(old), where=old > 0)
        return y * like(shares[self._labels].reshape(self.shape), y)

    @cached_property
    def _w(self) -> Floats:
        return to_numpy(self.weights).astype(np.float64)

    @cached_property
    def _labels(self) -> Int64s:
        return np.unique(self.groups.reshape(-1), return_inverse=True)[1]


def _numbers(x: Array) -> Floats:
    return to_numpy(x).astype(np.float64).reshape(-1)


# --- The box: every entry between its own two bounds ----------------------------------------------
#
#     { lower <= x <= upper }
#
# Oracle: entry by entry, the lower bound where the direction is nonnegative, else the upper.
# Entries with lower = upper are fixed: the affine hull runs through the free ones. Center
# (lower + upper)/2, radius ||upper - lower||/2, inner radius half the smallest free width. Every
# entry is a factor.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Box(base.ClosedForm, base.Projectable, base.Boxed, base.KernelGeometry):
    """Arrays with every entry between `lower` and `upper`. Geometry exact.

    Parameters
    ----------
    lower : array
        The least value of each entry, in the shape of a point.
    upper : array
        The largest value of each entry, shaped as `lower`.

    Examples
    --------
    >>> K = tw.sets.Box([0.0, -1.0], [2.0, 1.0])
    >>> K.lmo(np.array([1.0, -3.0]))
    array([0., 1.])
    """

    tangents: ClassVar = kernels.within_box
    point_infeasibility: ClassVar = kernels.outside_box
    nearest: ClassVar = kernels.nearest_in_box

    lower: Annotated[Array, settings.PointNumbers()]
    upper: Annotated[Array, settings.PointNumbers()]

    def _complete(self) -> None:
        self._require_shape("upper", self.shape)
        object.__setattr__(self, "upper", frozen(like(self.upper, self.lower)))
        wrong = np.argwhere(self._widths < 0)[:1].tolist()
        self._require(
            not wrong, "upper", f"be at least lower, which it is not at {wrong}", errors.EmptySet
        )

    @property
    def shape(self) -> Shape:
        return tuple(self.lower.shape)

    @cached_property
    def center(self) -> Array:
        return frozen(self.lower + (self.upper - self.lower) / 2)

    @cached_property
    def _sizes(self) -> base.Sizes:
        free, diameter = self._widths[self._widths > 0], length(self._widths)
        inside = float(np.min(free)) / 2 if free.size else 0.0
        return base.Sizes(free.size, diameter / 2, diameter, inside)

    @cached_property
    def factors(self) -> base.Factors:
        widths = self._widths.reshape(-1).astype(np.float64)
        return base.Factors(
            frozen(np.arange(len(widths))), frozen(widths / 2), frozen(widths), exact=True
        )

    @cached_property
    def geometry(self) -> tuple[Floats, Int32s] | None:
        if type(self.lower) is not np.ndarray or self.lower.ndim != 1:
            return None
        return np.concatenate([self.lower, self.upper]), np.zeros(1, dtype=np.int32)

    def tangent(self, direction: Array) -> Array:
        return direction * like(self._free, direction)

    @cached_property
    def _free(self) -> Array:
        return namespace(self.lower).astype(self.upper > self.lower, self.lower.dtype)

    def infeasibility(self, x: Array) -> float:
        """The largest violation of a bound."""
        xp = namespace(x)
        lower, upper = like(self.lower, x), like(self.upper, x)
        return max(0.0, float(xp.max(lower - x)), float(xp.max(x - upper)))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        xp = namespace(direction)
        corner = xp.where(direction >= 0, like(self.lower, direction), like(self.upper, direction))
        return Answer(Dense(corner))

    def project(self, y: Array) -> Array:
        """Every entry moved to its nearer bound where it is outside."""
        return namespace(y).clip(y, like(self.lower, y), like(self.upper, y))

    def description(self) -> base.LinearDescription:
        return base.LinearDescription(
            *(to_numpy(bound).astype(np.float64).reshape(-1) for bound in (self.lower, self.upper))
        )

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls([0.0], [1.0]),
            cls([-1.0, 0.0, 2.0], [1.0, 5.0, 2.0]),
            cls([0.5, -0.5], [0.5, -0.5]),
            cls(np.zeros((2, 3)), np.arange(6.0).reshape(2, 3)),
        )

    @cached_property
    def _widths(self) -> NDArray:
        return to_numpy(self.upper - self.lower)
