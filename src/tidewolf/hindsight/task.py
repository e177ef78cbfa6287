"""What is asked in hindsight, and how answers to it are checked: no solver is believed.

    min { <c, x> + constant : x in K, A x <= b }
        points flattened; row i of A x <= b is a piece of round rounds[i]

Lower. For any lam >= 0, with d = c + sum_i lam_i a_i, one call of the set's oracle gives
    min_{x in K} <c, x> + constant + sum_i lam_i (<a_i, x> - b_i)  =  constant - <lam, b>
        + min_{x in K} <d, x>  <=  the minimum,
less the oracle's own error and less a slack for rounding: 2 (n + m) eps times the largest sum of
the terms' absolute values over K, for n entries and m multipliers that are not 0. The totals c and
constant are taken as computed.

Upper. The total at a point, if it lies in K and keeps every g_t(x) <= 0 up to 1e-9 of the size of
their terms (100 eps where a set's dtype is coarser); else infinity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import LEAST, MOST, eps_of, like, to_numpy
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape
from tidewolf.core.oracle import HasLMO, as_set
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.functions.base import LinearTotal, PiecewiseLinear
from tidewolf.sets.spectra.spectral import Spectral

FEASIBILITY_TOLERANCE = 1e-9
_ACROSS, _ROUNDING = 1e-2, 1e3
"""Shares of costs within aff(K): below the first they would lose digits, below the second, in eps,
they are rounding.
"""


class Guess(NamedTuple):
    """What a solver proposes: a point, multipliers of A x <= b, and, where it believes that no
    point is feasible, weights that show it.
    """

    x: Floats | None
    lam: Floats
    weights: Floats | None = None


class Task(NamedTuple):
    """Minimise <c, x> + constant over the x in K with A x <= b, which is what `constraints` say."""

    K: HasLMO
    constraints: Batch
    c: Floats
    constant: float
    A: Any
    """dense or sparse, float64"""
    b: Floats
    rounds: Int64s
    sizes: Floats
    """the norms of the rows of A, 1 in place of 0"""

    def least(self, c: Floats, constant: float, lam: Floats) -> float:
        """A lower bound on <c, x> + constant + <lam, A x - b> over K: one call of the oracle, less
        its error and the slack for rounding.
        """
        used = np.flatnonzero(lam)
        lam, A, b = lam[used], self.A[used, :], self.b[used]
        direction = self.at_home(c + A.T @ lam)
        answer = self.K.answer(direction)
        value = constant - float(lam @ b) + answer.vertex.inner(direction)
        sizes, center = np.abs(c) + abs(A).T @ lam, np.abs(to_numpy(self.K.center)).reshape(-1)
        terms = (
            abs(constant)
            + float(lam @ np.abs(b))
            + float(sizes @ center)
            + self.K.radius * float(np.linalg.norm(sizes))
        )
        return value - answer.error - 2 * (len(c) + len(lam)) * eps_of(direction) * terms

    def total(self, x: Floats) -> float:
        return float(self.c @ x) + self.constant

    def eased(self) -> Task:
        """The same for solvers, whose accuracies are relative to costs: without what moves no
        answer.

        That is the constant, and costs that are mostly across aff(K): <c + k 1, x> is <c, x> + k on
        a simplex.
        """
        self = self._replace(constant=0.0)
        if self.K.dimension == len(self.c):
            return self
        along = np.asarray(
            to_numpy(self.K.tangent(self.at_home(self.c))), dtype=np.float64
        ).reshape(-1)
        size, left = float(np.linalg.norm(self.c)), float(np.linalg.norm(along))
        if left >= _ACROSS * size:
            return self
        return self._replace(
            c=along if left > _ROUNDING * eps_of(self.K.center) * size else 0.0 * along
        )

    def keeps(self, x: Floats) -> bool:
        """Whether x lies in K and keeps every constraint, by the set's own excess and the
        functions' own values.
        """
        point = self.at_home(x)
        tolerance = max(FEASIBILITY_TOLERANCE, 100 * eps_of(point))
        size = float((abs(self.A) @ np.abs(x) + np.abs(self.b)).max())
        breach = float(to_numpy(self.constraints.values(point)).max())
        extent = max(self.K.radius, float(np.abs(x).max()))
        return self.K.excess(point) <= tolerance * extent and breach <= tolerance * size

    def at_home(self, x: Floats) -> Array:
        """A flattened point in the shape and library of the set, in float64 where that is NumPy."""
        x = x.reshape(self.K.shape)
        return x if type(self.K.center) is np.ndarray else like(x, self.K.center)

    def above(self, x: Floats) -> Floats:
        """How far x is above each row, in units of its norm; below 0 inside."""
        return np.asarray((self.A @ x - self.b) / self.sizes)

    def mixed(self, x: Floats, inside: Floats) -> Floats:
        """x, moved towards a point strictly inside every row twice as far as it takes to keep them
        all.
        """
        breach, room = float(self.above(x).max()), -float(self.above(inside).max())
        return (
            x
            if breach <= 0.0 or room <= 0.0
            else x + min(1.0, 2.0 * breach / (breach + room)) * (inside - x)
        )


def require_rounds(K: HasLMO, part: Stream) -> None:
    """Refuse rounds that are none, or not on this set."""
    if len(part) == 0:
        raise InvalidInput(
            "There is no round between start and stop; the best point in hindsight needs at least "
            "one."
        )
    if as_set(K, "The best point in hindsight").shape != part.shape:
        raise WrongShape(
            f"The set has points of shape {K.shape}; the stream's functions take points of shape "
            f"{part.shape}."
        )


def task_of(K: HasLMO, part: Stream) -> Task:
    """The task of a set and some rounds of linear losses under half-spaces."""
    assert isinstance(part.losses, LinearTotal)
    assert isinstance(part.constraints, PiecewiseLinear)
    with np.errstate(over="ignore", invalid="ignore"):  # refused next
        c, constant = part.losses.total()
    A, b, rounds = part.constraints.halfspaces()
    A = A.astype(np.float64, copy=False)
    largest = (
        np.abs(A).max(axis=1)
        if isinstance(A, np.ndarray)
        else abs(A).max(axis=1).toarray().reshape(-1)
    )
    require_moderate("losses", np.append(np.abs(c).max(), 0.0 if np.isfinite(constant) else np.inf))
    require_moderate("constraints", largest)
    squares = (
        np.einsum("ij,ij->i", A, A) if isinstance(A, np.ndarray) else A.multiply(A).sum(axis=1)
    )
    return Task(
        exact(K),
        part.constraints,
        c.reshape(-1),
        constant,
        A,
        b,
        rounds,
        positive(np.sqrt(np.asarray(squares).reshape(-1))),
    )


def require_moderate(name: str, slopes: Floats) -> None:
    """Refuse functions whose slopes are not 0 and whose squares and ratios would overflow or
    vanish.
    """
    odd = slopes[(slopes != 0.0) & ~((slopes >= LEAST) & (slopes <= MOST))]
    if len(odd):
        raise NotSupported(
            f"The best point in hindsight is not computed for {name} with a slope of {odd[0]:.3g}; "
            f"slopes from {LEAST:g} to {MOST:g} are accepted: give the {name} in other units."
        )


def exact(K: HasLMO) -> HasLMO:
    """The same set with an oracle that does not err, where there is one: hindsight asks seldom."""
    return K.exactly() if isinstance(K, Spectral) and type(K.center) is np.ndarray else K


def positive(sizes: Any) -> Any:
    """Sizes to divide by: 1 in place of 0."""
    return np.where(sizes > 0, sizes, 1.0)
