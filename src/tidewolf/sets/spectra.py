"""Symmetric matrices that are asked for products alone, made of a direction D:

    SymmetricPart   -(D + D') / (2 size)
    Gram            D'D / unit^2,  or D D' / unit^2 where D has fewer rows than columns
    Deflated        P A P,  P the projection off some orthonormal rows v_i
    Lowered         A - sum_i drop_i v_i v_i'

Of the symmetric part, once it is made, BLAS reads half for a product; but that is put off until it
pays. A direction of extreme size is divided by that first, so that products neither overflow nor
vanish.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations_with_replacement
from typing import Annotated, Any, ClassVar, Self, TypeAlias, final

import numpy as np

from tidewolf.core import arrays, errors, oracle, settings
from tidewolf.core import sparse as matrices
from tidewolf.core.arguments import shown
from tidewolf.core.lazy import scipy
from tidewolf.core.randomness import generator
from tidewolf.core.types import Array, Shape
from tidewolf.core.vertices import LowRank, Outer, Vertex
from tidewolf.kernels import lanczos
from tidewolf.sets import balls, base
from tidewolf.sets.simplices import CappedSimplex, Simplex

# Products before the symmetric part is made: here, where a search from a warm start needs no more
# and making it costs about as much, and on a device.
_FEW, _MANY = 3, 12
# A product with so many columns takes a card as long as one with eight, and fewer are needed.
_TOGETHER = 32
_TILE = 128
SMALL = 512
_EXTREME = 1e15
_EPS = float(np.finfo(np.float32).eps)


@final
class SymmetricPart:
    """-(D + D') / (2 size), `size` that of the largest entry of D; its largest eigenvalue belongs
    to the smallest of D.
    """

    def __init__(self, D: matrices.Matrix, size: float, dtype: Any = None) -> None:
        self.D, self._size = (D / size, 1.0) if _is_extreme(size) else (D, size)
        self._dtype = dtype
        self.n, self._products = int(D.shape[0]), 0
        self._made: Callable[[Array], Array] | None = None

    def __matmul__(self, v: Array) -> Array:
        if self._made is None:
            self._products += 1
            if type(self.D) is np.ndarray:
                few = self._dtype is None and self._products <= _FEW
                self._made = None if few else self._halved()
            elif self._products == _MANY and not isinstance(self.D, matrices.SparsePlusLowRank):
                self._made = self.dense().__matmul__
        if self._made is not None:
            return self._made(v)
        part = -0.5 / self._size
        if arrays.is_torch(v):  # in two passes
            return (self.D @ v).addmv_(self.D.T, v, beta=part, alpha=part)
        return (self.D @ v + v @ self.D) * part

    def _halved(self) -> Callable[[Array], Array]:
        """The lower half, made tile by tile, since columns are far apart; BLAS reads no more."""
        S, blas = np.array(self.D, self._dtype, order="C"), scipy.linalg.blas
        tiles = [slice(i, i + _TILE) for i in range(0, self.n, _TILE)]
        for rows, columns in combinations_with_replacement(tiles, 2):
            S[columns, rows] += S[rows, columns].T
        return partial(blas.ssymv if S.dtype == np.float32 else blas.dsymv, -0.5 / self._size, S.T)

    def single(self) -> Self:
        """The same in float32, for an array."""
        return type(self)(self.D, self._size, np.float32)

    def dense(self) -> Array:
        D = matrices.as_dense(self.D) / (-2.0 * self._size)
        return D + D.T


@final
class Gram:
    """D'D / unit^2 of trace n (or less, for a D known by its parts); D D' / unit^2 where D has
    fewer rows: n x n either way.
    """

    def __init__(self, D: matrices.Matrix, size: float) -> None:
        self.D, scale = (D / size, size) if _is_extreme(size) else (D, 1.0)
        self.tall, self.n = D.shape[0] >= D.shape[1], int(min(D.shape))
        self._unit = matrices.frobenius_norm(self.D) / math.sqrt(self.n)
        self.unit = scale * self._unit

    def across(self, v: Array) -> Array:
        """D v / unit, or D'v / unit: from the shorter side to the longer."""
        return (self.D @ v if self.tall else _transposed(self.D, v)) / self._unit

    def __matmul__(self, v: Array) -> Array:
        u = self.across(v)
        return (_transposed(self.D, u) if self.tall else self.D @ u) / self._unit

    def single(self) -> Self:
        """The same in float32, for an array."""
        return type(self)(np.divide(self.D, self._unit, dtype=np.float32), 1.0)

    def dense(self) -> Array:
        """As an array; in float64, since squares take twice the digits."""
        D = matrices.as_dense(self.D)
        xp = arrays.namespace(D)
        D = xp.astype(D, xp.float64, copy=False) / self._unit
        return D.T @ D if self.tall else D @ D.T

    @property
    def rounding(self) -> float:
        """What the largest eigenvalue of `dense` is off by at most, by rounding."""
        return float(max(self.D.shape)) * self.n * sys.float_info.epsilon


@final
class Deflated:
    """P A P with P = I - V'V for orthonormal rows V."""

    def __init__(self, A: SymmetricPart, V: Array) -> None:
        self.A, self.V = A, V

    def off(self, v: Array) -> Array:
        return v - (self.V @ v) @ self.V

    def __matmul__(self, v: Array) -> Array:
        return self.off(self.A @ v)


@final
class Lowered:
    """A - sum_i drop_i v_i v_i' for rows v_i of V."""

    def __init__(self, A: SymmetricPart, V: Array, drop: Array) -> None:
        self.A, self.V, self.drop = A, V, drop

    def __matmul__(self, v: Array) -> Array:
        return self.A @ v - (self.drop * (self.V @ v)) @ self.V

    def dense(self) -> Array:
        return self.A.dense() - (self.V.T * self.drop) @ self.V


def _transposed(D: Any, v: Array) -> Array:
    """D'v, of a vector or of columns."""
    return v @ D if v.ndim == 1 else D.T @ v


def _is_extreme(size: float) -> bool:
    return not 1.0 / _EXTREME < size < _EXTREME


# What the sets of matrices share: how a leading eigenvector is found, and which directions are
# taken.
#
# Up to `dense` rows a dense eigensolver answers, exactly. Beyond, Lanczos (lanczos.py) starts from
# the caller's last eigenvector with a random part that depends on `seed` and on how many calls
# there were, until the gap is within `tolerance` of the largest eigenvalue in size as seen, and one
# of three tests confirms it:
#
#     failure < 1    the measure of the start: wrong with a chance of at most `failure` per call,
#                    for directions chosen without looking at the numbers of `seed`. Of the order of
#                    log(n/failure)/sqrt(tolerance) products, warm or not: so never warm, but
#                    for the ends of the last spectrum, which save a device looks
#     certified      a Cholesky factor of the shifted matrix, n^3/3: a proof. Few products from a
#                    warm start
#     failure = 1    the residual alone: no guarantee. Few products from a warm start
#
# An array of float64 is searched in float32, which is half as much to read, where its rounding is
# small beside the tolerance; if that shows to be wrong, in float64. Where the first two fail, the
# dense eigensolver answers. Directions are arrays, sparse matrices of
# SciPy, or `SparsePlusLowRank`.

Side: TypeAlias = Annotated[int, settings.Count(most=arrays.MOST_SIDE)]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Spectral(base.ClosedForm, base.Projectable):
    tolerance: Annotated[float, settings.Number(above=0.0)] = 1e-2
    failure: Annotated[float, settings.Number(above=0.0, most=1.0)] = 1e-6
    certified: Annotated[bool, settings.Flag()] = False
    dense: Annotated[int, settings.Count(least=0)] = 300
    seed: Annotated[int, settings.Seed()] = 0

    def as_direction(self, direction: matrices.Matrix) -> matrices.Matrix:
        return matrices.as_matrix(direction, self.shape)

    def lmo(self, direction: matrices.Matrix) -> Array:
        if arrays.is_array(direction):
            direction = arrays.as_point(direction, self.shape, "The direction")
        direction = matrices.as_matrix(direction, self.shape)
        return self.answer(direction).vertex.dense(matrices.example_array(direction))

    @cached_property
    def center(self) -> Array:
        return arrays.frozen(self._center_in(np.zeros(0)))

    def exactly(self) -> Self:
        """The same set, always answered for by the dense eigensolver."""
        return type(self)(**{**self.fields(), "dense": max(self.shape)})

    def _begun(
        self, n: int, kept: int, warm: Array | None
    ) -> tuple[int, np.random.Generator, tuple[float, float] | None, Array | None]:
        """The number of calls so far, random numbers for this one, and what the last one left, if
        there was one: the ends of the spectrum as it saw them, and vectors.
        """
        calls, seen, last = 0, None, None
        if warm is not None:
            number, *ends = arrays.to_numpy(warm[kept * n :]).tolist()
            calls, seen = int(number), (ends[0], ends[-1]) if ends and ends[0] < ends[-1] else None
            last = arrays.namespace(warm).reshape(warm[: kept * n], (kept, n))
        return calls, generator(self.seed, "leading eigenvector", calls), seen, last

    def _leading(
        self, A: Any, warm: Array | None, reference: Array, tolerance: float, floor: float
    ) -> tuple[lanczos.Found, Array | None]:
        """The leading eigenvector of an operator, and what the next call starts from: the vector,
        the number of calls, and on a device the ends of the spectrum as seen.
        """
        if A.n <= self.dense:
            return leading_by_dense(A), None
        likely, example, quick = self.failure < 1.0 and not self.certified, reference, A
        coarse = 4.0 * lanczos.rounding(A.n, _EPS)
        wide = type(A.D) is np.ndarray and A.D.dtype == np.float64
        if wide and (likely or warm is None) and coarse <= tolerance:
            example, quick = np.zeros(0, np.float32), A.single()
        calls, rng, seen, last = self._begun(A.n, 1, warm)
        if type(reference) is np.ndarray or not likely or arrays.eps_of(reference) > tolerance**2:
            seen = None
        s = lanczos.width(A.n, self.failure, arrays.eps_of(example)) if likely else 1
        noise = arrays.standard_normal(rng, (_TOGETHER if seen else s, A.n), reference)
        v = None if likely or last is None else arrays.like(last[0, :], reference)
        begin = lanczos.start(noise, v, self.failure)
        found = None
        if seen:
            with suppress(ValueError):  # other eigenvalues than last time: T_j has overflown
                found = lanczos.probable(
                    A.dense() if isinstance(A, SymmetricPart) else A, begin, tolerance, floor, seen
                )
        if found is None:
            b = arrays.like(begin.b, example)
            found = self._sought(quick, begin._replace(b=b), tolerance, floor)
        if quick is not A and (found is None or coarse > tolerance * found.size):
            found = self._sought(A, begin, tolerance, floor)
        if found is not None and self.certified:
            found = lanczos.proved(A, found)
        found = leading_by_dense(A) if found is None else found
        found = found._replace(vector=arrays.unit(arrays.like(found.vector, reference)))
        on_device = type(reference) is not np.ndarray and found.least < found.value
        ends = (found.least, found.value) if on_device else ()
        return found, warm_start(found.vector, calls, ends)

    def _sought(
        self, A: Any, begin: lanczos.Start, tolerance: float, floor: float
    ) -> lanczos.Found | None:
        if self.failure < 1.0 and not self.certified:
            return lanczos.probable(A, begin, tolerance, floor)
        least = floor if self.certified else -math.inf
        return lanczos.converged(A, begin, tolerance, least, ahead=not self.certified)


@dataclass(frozen=True, eq=False, repr=False)
class SymmetricSpectral(Spectral):
    """A set of symmetric n x n matrices: those whose eigenvalues are in a set of vectors."""

    n: Side

    @property
    def shape(self) -> Shape:
        return (self.n, self.n)

    @property
    @abstractmethod
    def ridge(self) -> float:
        """The center is this times the identity."""

    def _center_in(self, reference: Array) -> Array:
        return arrays.with_diagonal(arrays.zeros(self.shape, reference), self.ridge)

    @property
    @abstractmethod
    def spectrum(self) -> Simplex | CappedSimplex:
        """The set of the eigenvalues."""

    def infeasibility(self, x: Array) -> float:
        """The largest of: how far an eigenvalue is beyond its bounds, the error of their sum, the
        difference between mirrored entries.
        """
        xp = arrays.namespace(x)
        values = xp.linalg.eigvalsh(0.5 * x + 0.5 * x.T)
        return max(self.spectrum.beyond(values), float(xp.max(xp.abs(x - x.T))))

    def atom(self, point: Array) -> Vertex:
        if point is self.center:
            return LowRank.ridged(self.n, self.ridge, point)
        return LowRank.of(point)

    def project(self, y: Array) -> Array:
        """Exact: the eigenvalues of the symmetric part are projected on `spectrum`."""
        xp = arrays.namespace(y)
        values, vectors = xp.linalg.eigh(0.5 * (y + y.T))
        rows = vectors * xp.sqrt(self.spectrum.project(values))
        return rows @ rows.T


@dataclass(frozen=True, eq=False, repr=False)
class TraceBound(SymmetricSpectral):
    at_most: ClassVar[bool]

    tau: Annotated[float, settings.Number(above=0.0)] = 1.0

    def answer(self, direction: matrices.Matrix, warm: Array | None = None) -> oracle.Answer:
        size, reference = matrices.largest_entry(direction), matrices.example_array(direction)
        root = math.sqrt(self.tau)
        if size == 0.0:
            rows = arrays.like(root * np.eye(0 if self.at_most else 1, self.n), reference)
            return oracle.Answer(LowRank(rows), warm=warm)
        A, floor = SymmetricPart(direction, size), 0.0 if self.at_most else -math.inf
        found, next_warm = self._leading(A, warm, reference, self.tolerance, floor)
        gap = max(0.0, found.gap + min(0.0, found.value)) if self.at_most else found.gap
        rows = root * found.vector[None, :]
        none = self.at_most and found.value <= 0.0
        return oracle.Answer(
            LowRank(rows[:0, :] if none else rows), self.tau * size * gap, next_warm
        )

    @cached_property
    def spectrum(self) -> Simplex:
        return Simplex(self.n, self.tau, self.at_most)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        make: Any = cls
        iterative = make(4, 0.5, tolerance=1e-3, dense=0), make(5, 20.0, certified=True, dense=0)
        return make(1, 3.0), make(2), *iterative


def warm_start(vectors: Array, calls: int, ends: Sequence[float] = ()) -> Array:
    numbers = arrays.like(np.array([calls + 1.0, *ends]), vectors)
    return arrays.frozen(arrays.end_to_end([vectors, numbers]))


def leading_by_dense(A: Any) -> lanczos.Found:
    values, vectors = leading_eigenvectors(A.dense(), 1)
    return lanczos.Found(vectors[:, 0], float(values[0]), 0.0, math.inf)


def leading_eigenvectors(A: Array, k: int) -> tuple[Array, Array]:
    if type(A) is np.ndarray:
        n = len(A)
        values, vectors = scipy.linalg.eigh(A, subset_by_index=[n - k, n - 1], check_finite=False)
        # LAPACK sometimes finds too few where the largest eigenvalue is repeated
        if len(values) < k:
            values, vectors = scipy.linalg.eigh(A, driver="evd", check_finite=False)
    else:
        values, vectors = arrays.namespace(A).linalg.eigh(A)
    xp = arrays.namespace(values)
    return xp.flip(values)[:k], xp.flip(vectors, axis=1)[:, :k]


def traceless(direction: Array) -> Array:
    mean = float(arrays.namespace(direction).linalg.trace(direction)) / direction.shape[0]
    return arrays.with_diagonal(symmetric(direction), -mean)


def symmetric(direction: Array) -> Array:
    half = 0.5 * direction
    return half + half.T


# Positive semidefinite matrices of given trace: the simplex of matrices (density matrices, for tau
# = 1).
#
#     { X = X' : X psd, tr X = tau }                 n x n;  vertices: tau v v', |v| = 1
#
# Oracle: tau v v' with v a unit eigenvector of the smallest eigenvalue lambda of (D + D')/2; the
# minimum is tau lambda, and error <= tolerance tau |(D + D')/2|_2 (`Spectral` says how, and how
# surely).
#
# Affine hull: the symmetric matrices of trace tau, dimension n(n + 1)/2 - 1. Center (tau/n) I,
# radius |tau v v' - (tau/n) I| = tau sqrt(1 - 1/n), the least possible. Diameter: |X - Y|^2 is
# convex, so largest between vertices, and |v v' - w w'|^2 = 2 - 2 <v, w>^2: sqrt(2) tau; 0 for n =
# 1. Inner radius: a U = U' with tr U = 0, |U| = 1 has an eigenvalue of -sqrt((n - 1)/n) at the
# least, where the others are equal, so (tau/n) I + r U is psd for all of them up to r = tau/sqrt(n
# (n - 1)).


@final
@dataclass(frozen=True, eq=False, repr=False)
class Spectraplex(TraceBound):
    """Positive semidefinite n x n matrices of trace `tau`. Geometry exact.

    Parameters
    ----------
    n : int
        How many rows, and columns, a matrix has.
    tau : float, default 1.0
        What the trace is.
    tolerance : float, default 0.01
        What an iterative answer may cost too much, as a share of the direction's spectral norm
        times the eigenvalues (singular values) of a vertex in sum.
    failure : float, default 1e-06
        The chance that an error is larger than stated. 1: quick.
    certified : bool, default False
        Whether a Cholesky factor proves the error.
    dense : int, default 300
        Up to so many rows a dense solver answers.
    seed : int, default 0
        The seed of the vectors that iterative answers start from.

    Examples
    --------
    >>> K = tw.sets.Spectraplex(2)
    >>> K.lmo(np.array([[1.0, 0.0], [0.0, 3.0]])) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """

    at_most: ClassVar[bool] = False

    @property
    def ridge(self) -> float:
        return self.tau / self.n

    @property
    def _sizes(self) -> base.Sizes:
        n, tau = self.n, self.tau
        if n == 1:
            return base.Sizes(0, 0.0, 0.0, 0.0)
        radius, inside = tau * math.sqrt(1.0 - 1.0 / n), tau / math.sqrt(n * (n - 1))
        return base.Sizes(n * (n + 1) // 2 - 1, radius, math.sqrt(2.0) * tau, inside)

    def tangent(self, direction: Array) -> Array:
        return traceless(direction)


# Positive semidefinite matrices of bounded trace.
#
#     { X = X' : X psd, tr X <= tau }                n x n;  vertices: 0 and tau v v', |v| = 1
#
# Oracle: with lambda the smallest eigenvalue of (D + D')/2 and v its unit eigenvector, tau v v' if
# lambda < 0, else 0; the minimum is tau min(lambda, 0), and error <= tolerance tau |(D + D')/2|_2
# (`Spectral` says how, and how surely).
#
# Affine hull: the symmetric matrices, dimension n(n + 1)/2. Center c I, where the two kinds of
# facets are equally far, X psd at c and tr X <= tau at (tau - n c)/sqrt(n):  c = tau/(n + sqrt n) =
# inner_radius, the largest ball inside. The farthest members are the tau v v':
#
#     radius^2 = (tau - c)^2 + (n - 1) c^2 = tau^2 - 2 tau c + n c^2  >=  n c^2 = |0 - c I|^2
#
# since c <= tau/2 (the least possible radius is tau sqrt(1 - 1/n) for n > 1, at c = tau/n, on the
# boundary). Diameter: |X - Y|^2 is convex, so largest between vertices: sqrt(2) tau between tau v
# v' and tau w w' for v, w orthogonal; tau, from 0 to tau, for n = 1.


@final
@dataclass(frozen=True, eq=False, repr=False)
class BoundedPSD(TraceBound):
    """Positive semidefinite n x n matrices of trace at most `tau`. Geometry exact.

    Parameters
    ----------
    n : int
        How many rows, and columns, a matrix has.
    tau : float, default 1.0
        An upper bound on the trace.
    tolerance : float, default 0.01
        What an iterative answer may cost too much, as a share of the direction's spectral norm
        times the eigenvalues (singular values) of a vertex in sum.
    failure : float, default 1e-06
        The chance that an error is larger than stated. 1: quick.
    certified : bool, default False
        Whether a Cholesky factor proves the error.
    dense : int, default 300
        Up to so many rows a dense solver answers.
    seed : int, default 0
        The seed of the vectors that iterative answers start from.

    Examples
    --------
    >>> K = tw.sets.BoundedPSD(2)
    >>> K.lmo(np.array([[1.0, 0.0], [0.0, -2.0]])) + 0.0
    array([[0., 0.],
           [0., 1.]])
    >>> K.lmo(np.eye(2))  # no eigenvalue is negative: zero is best
    array([[0., 0.],
           [0., 0.]])
    """

    at_most: ClassVar[bool] = True

    @property
    def ridge(self) -> float:
        return self._sizes.inner_radius

    @property
    def _sizes(self) -> base.Sizes:
        n, tau = self.n, self.tau
        c = tau / (n + math.sqrt(n))
        radius = math.hypot(tau - c, math.sqrt(n - 1) * c)
        return base.Sizes(n * (n + 1) // 2, radius, tau if n == 1 else math.sqrt(2.0) * tau, c)

    def tangent(self, direction: Array) -> Array:
        return symmetric(direction)


# The hull of the projections of rank k: which k-dimensional subspace, relaxed (principal
# components; Overton & Womersley 1992).
#
#     { X = X' : 0 <= X <= I, tr X = k }
#         n x n, 1 <= k <= n;  vertices: sum of v_i v_i' over k orthonormal v_i
#
# Oracle: the eigenvectors of the k smallest eigenvalues of (D + D')/2 (Fan 1949); the minimum is
# their sum, and error <= tolerance k |(D + D')/2|_2. Their rows v_i are sought one after another,
# each within the complement of those before, as leading vectors of A = -(D + D')/2, so that
# repeated eigenvalues do no harm. Then they are tested together: for any z and any Z psd with z I +
# Z >= A the k largest eigenvalues of A add up to at most k z + tr Z. With theta_i the eigenvalues
# of A within the span of the v_i, which are turned to fit, s the error allowed for each, z = min_i
# theta_i + s and Z = sum_i (theta_i + s - z) v_i v_i', that is sum_i theta_i + k s; and z I + Z >=
# A if no eigenvalue of A - sum_i (theta_i - min theta) v_i v_i' is above z: one test of a largest
# eigenvalue, by Lanczos from fresh random numbers or by a Cholesky factor (`Spectral` says how
# sure each is).
#
# Affine hull: the symmetric matrices of trace k, dimension n(n + 1)/2 - 1; for k = n the set is
# {I}. Center (k/n) I, radius^2 = k (1 - k/n)^2 + (n - k)(k/n)^2 = k (n - k)/n. Diameter: |P - Q|^2
# = 2k - 2 <P, Q>, and <P, Q> >= max(0, 2k - n): sqrt(2 min(k, n - k)). Inner radius: a U = U' with
# tr U = 0, |U| = 1 has eigenvalues of size at most sqrt((n - 1)/n), so (k/n) I + r U stays between
# 0 and I for all of them up to r = min(k, n - k)/sqrt(n (n - 1)).

# Vectors that are to be tested are sought to this share of the error: what they leave over,
# squared, has to fit into it too; and the share of the error that is left to the test.
_FINER, _TEST = 0.25, 0.1


@final
@dataclass(frozen=True, eq=False, repr=False)
class Fantope(SymmetricSpectral):
    """Symmetric n x n matrices with eigenvalues between 0 and 1 that add up to k. Geometry exact.

    Parameters
    ----------
    n : int
        How many rows, and columns, a matrix has.
    k : int, default 1
        What the eigenvalues add up to: the rank of a vertex.
    tolerance : float, default 0.01
        What an iterative answer may cost too much, as a share of the direction's spectral norm
        times the eigenvalues (singular values) of a vertex in sum.
    failure : float, default 1e-06
        The chance that an error is larger than stated. 1: quick.
    certified : bool, default False
        Whether a Cholesky factor proves the error.
    dense : int, default 300
        Up to so many rows a dense solver answers.
    seed : int, default 0
        The seed of the vectors that iterative answers start from.

    Examples
    --------
    >>> K = tw.sets.Fantope(3, k=2)
    >>> K.lmo(np.diag([5.0, -1.0, 2.0])) + 0.0  # the two eigenvectors of least eigenvalues
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    k: Annotated[int, settings.Count()] = 1

    def _complete(self) -> None:
        balls.require_at_most(self, self.k, self.n)

    @property
    def ridge(self) -> float:
        return self.k / self.n

    @property
    def _sizes(self) -> base.Sizes:
        n, k, least = self.n, self.k, min(self.k, self.n - self.k)
        if k == n:
            return base.Sizes(0, 0.0, 0.0, 0.0)
        radius, inside = math.sqrt(k * (n - k) / n), least / math.sqrt(n * (n - 1))
        return base.Sizes(n * (n + 1) // 2 - 1, radius, math.sqrt(2.0 * least), inside)

    def tangent(self, direction: Array) -> Array:
        return 0.0 * direction if self.k == self.n else traceless(direction)

    def answer(self, direction: matrices.Matrix, warm: Array | None = None) -> oracle.Answer:
        size, reference = matrices.largest_entry(direction), matrices.example_array(direction)
        if self.k == self.n:
            return oracle.Answer(LowRank.ridged(self.n, 1.0, reference))
        if size == 0.0:
            return oracle.Answer(LowRank(arrays.like(np.eye(self.k, self.n), reference)), warm=warm)
        A = SymmetricPart(direction, size)
        if self.n <= self.dense:
            return oracle.Answer(LowRank(_exact(A, self.k)))
        drawn = self.k + lanczos.width(self.n, self.failure, arrays.eps_of(reference))
        calls, rng, _, last = self._begun(self.n, self.k, warm)
        noise = arrays.standard_normal(rng, (drawn, self.n), reference)
        last = None if last is None else arrays.like(last, reference)
        V, gap = self._iterated(A, noise, last)
        return oracle.Answer(LowRank(V), size * gap, warm_start(V, calls))

    def _iterated(self, A: SymmetricPart, noise: Array, last: Array | None) -> tuple[Array, float]:
        xp, V, s = arrays.namespace(noise), noise[:0, :], 0.0
        guarantees = self.certified or self.failure < 1.0
        finer = _FINER if guarantees else 1.0
        for i in range(self.k):
            rest = Deflated(A, V)
            before = None if last is None else rest.off(last[i, :])
            found = lanczos.converged(
                rest, lanczos.start(rest.off(noise[i, :]), before, 1.0), finer * self.tolerance
            )
            v = rest.off(rest.off(found.vector))
            if arrays.norm(v) < 0.5:  # rounding has led it back to the rows before
                return _exact(A, self.k), 0.0
            V, s = xp.concat([V, (v / arrays.norm(v))[None, :]]), max(s, found.gap / finer)
        if not guarantees:
            return V, self.k * s
        return self._tested(A, V, (1.0 - _TEST) * s, noise[self.k :, :])

    def _tested(self, A: SymmetricPart, V: Array, s: float, noise: Array) -> tuple[Array, float]:
        """The rows, turned, if they pass the test with an error of s each, else the exact ones; and
        the error of all.
        """
        xp = arrays.namespace(V)
        theta, turn = np.linalg.eigh(
            arrays.to_numpy(xp.stack([A @ V[i, :] for i in range(self.k)]) @ V.T)
        )  # small: quicker here than on a device
        V, z = arrays.like(turn, V).T @ V, float(theta[0]) + s
        lowered = Lowered(A, V, arrays.like(theta - theta[0], V))
        if self.certified:
            slack = lanczos.above(z, lowered.dense())
        else:  # what the largest eigenvalue exceeds z by at most, for what is found of it
            found = lanczos.probable(
                lowered, lanczos.start(noise, None, self.failure), _TEST * self.tolerance, z
            )
            slack = None if found is None else max(0.0, found.value + found.gap - z)
        if slack is None or slack > _TEST * s:
            return _exact(A, self.k), 0.0
        return xp.flip(V, axis=0), self.k * (s + slack)

    @cached_property
    def spectrum(self) -> CappedSimplex:
        """{ 0 <= w <= 1, sum w = k }."""
        return CappedSimplex(self.n, 1.0, self.k)

    @classmethod
    def examples(cls) -> Sequence[Fantope]:
        certified = cls(4, 2, tolerance=1e-5, certified=True, dense=0)
        return cls(1), cls(3, 3), cls(4), cls(5, 3), cls(3, 2, tolerance=1e-3, dense=0), certified


def _exact(A: SymmetricPart, k: int) -> Array:
    return leading_eigenvectors(A.dense(), k)[1].T


# Matrices of bounded nuclear norm: few patterns explain many entries (completion, recommendation).
#
#     { X : |X|_* = sum of singular values <= tau }          m x n;  vertices: tau u v', |u| = |v|
#         = 1
#
# Oracle: -tau u v' with u, v a leading pair of singular vectors of D; the minimum is -tau sigma,
# sigma = |D|_2. Golub & Kahan's (1965) bidiagonalisation in its one-sided form: Lanczos for D'D or
# D D', whichever is smaller, at the cost of a product with D and one with D' a step. It finds theta
# <= sigma^2 <= theta + gap, v, and u along D v of length sqrt(theta), so that
#
#     error = tau (sqrt(theta + gap) - sqrt(theta))  <=  tolerance tau |D|_2
#
# (`Spectral` says how, and how surely).
#
# Affine hull: all m x n matrices. Center 0. |X|_F <= |X|_* <= sqrt(min(m, n)) |X|_F, with equality
# for rank 1, and for equal singular values: radius tau, diameter 2 tau, inner radius
# tau/sqrt(min(m, n)).


class MatrixShape(settings.Size):
    words: ClassVar[str] = "a list of two whole numbers"

    def __call__(self, value: Any, what: str) -> Shape:
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise errors.WrongShape(f"{what} must be (rows, columns), not {shown(value)}.")
        return settings.as_shape(value, what)


@final
@dataclass(frozen=True, eq=False, repr=False)
class NuclearBall(Spectral):
    """Matrices of this shape whose singular values add up to at most `tau`. Geometry exact.

    Parameters
    ----------
    shape : tuple of int
        How many rows and columns a matrix has.
    tau : float, default 1.0
        What the singular values add up to at most.
    tolerance : float, default 0.01
        What an iterative answer may cost too much, as a share of the direction's spectral norm
        times the eigenvalues (singular values) of a vertex in sum.
    failure : float, default 1e-06
        The chance that an error is larger than stated. 1: quick.
    certified : bool, default False
        Whether a Cholesky factor proves the error.
    dense : int, default 300
        Up to so many rows a dense solver answers.
    seed : int, default 0
        The seed of the vectors that iterative answers start from.

    Examples
    --------
    >>> K = tw.sets.NuclearBall((2, 3), tau=4.0)
    >>> K.lmo(np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]])) + 0.0
    array([[0., 0., 4.],
           [0., 0., 0.]])
    """

    shape: Annotated[Shape, MatrixShape()] = settings.REQUIRED
    tau: Annotated[float, settings.Number(above=0.0)] = 1.0

    def _center_in(self, reference: Array) -> Array:
        return arrays.zeros(self.shape, reference)

    @property
    def _sizes(self) -> base.Sizes:
        inside = self.tau / math.sqrt(min(self.shape))
        return base.Sizes(math.prod(self.shape), self.tau, 2.0 * self.tau, inside)

    def infeasibility(self, x: Array) -> float:
        """The nuclear norm beyond tau."""
        return max(
            0.0, float(arrays.namespace(x).sum(arrays.namespace(x).linalg.svdvals(x))) - self.tau
        )

    def answer(self, direction: matrices.Matrix, warm: Array | None = None) -> oracle.Answer:
        size, reference = matrices.largest_entry(direction), matrices.example_array(direction)
        if size == 0.0:
            return oracle.Answer(self._zero(reference), warm=warm)
        A = Gram(direction, size)
        found, next_warm = self._leading(A, warm, reference, 2.0 * self.tolerance, floor=0.0)
        v = arrays.like(found.vector, reference)
        u = A.across(v)
        root = arrays.norm(u)
        gap = found.gap + A.rounding if found.gap else 0.0
        error = self.tau * A.unit * (math.sqrt(root * root + gap) - root)
        if root == 0.0:
            return oracle.Answer(self._zero(reference), error, next_warm)
        scaled = u * (-self.tau / root)
        left, right = (scaled, v) if A.tall else (v, scaled)
        return oracle.Answer(Outer(left[None, :], right[None, :]), error, next_warm)

    def _zero(self, reference: Array) -> Outer:
        return Outer(*(arrays.zeros((0, side), reference) for side in self.shape))

    def atom(self, point: Array) -> Vertex:
        """The center is known in closed form; any other member by its singular vectors."""
        return self._zero(point) if point is self.center else Outer.of(point)

    def project(self, y: Array) -> Array:
        """Exact: the singular values are projected on { w >= 0, sum w <= tau }."""
        left, values, right = arrays.namespace(y).linalg.svd(y, full_matrices=False)
        return (left * Simplex(min(self.shape), self.tau, at_most=True).project(values)) @ right

    @classmethod
    def examples(cls) -> Sequence[NuclearBall]:
        iterative = cls((4, 6), tolerance=1e-3, dense=0), cls((5, 3), 20.0, certified=True, dense=0)
        return cls((1, 1), 3.0), cls((1, 4)), cls((3, 2), 0.5), *iterative
