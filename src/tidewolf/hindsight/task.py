"""The task in hindsight, the solvers that may answer it, and the check of every answer: no solver
is trusted.

    min { F(x) = sum_t f_t(x) : x in K, g_i(x) <= 0 for every limit i }         points flattened

Lower. For any multipliers lam >= 0, min_K F + <lam, g> is at most the minimum, and one call of the
set's oracle bounds it from below: linear_task.py and curved_task.py say how.

Upper. The total at a point, if it lies in K and keeps every g_t(x) <= 0 up to 1e-9 of the size of
their terms (100 eps where a set's dtype is coarser); else infinity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np

from tidewolf.core.arrays import LEAST, MOST, eps_of, like, to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape
from tidewolf.core.oracle import HasLMO, as_set
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.sets.spectra import Spectral

FEASIBILITY_TOLERANCE = 1e-9


class Solution(NamedTuple):
    """What a method proposes; what it is worth is found by the task itself."""

    point: Floats | None
    """one that should be feasible"""
    lam: Floats
    """a multiplier for each limit"""
    weights: Floats | None = None
    """where no point seems feasible, weights of the limits that show it"""
    anchor: Floats | None = None
    """where limits or losses are curved, the point whose subgradients prove the bounds"""


class HindsightTask(ABC):
    """The best point of a set over some rounds, on flattened points."""

    K: HasLMO
    rounds: Int64s
    """the round each limit comes from"""

    @abstractmethod
    def total(self, x: Floats) -> float:
        """The total loss of a point."""

    @abstractmethod
    def lower_bound(self, lam: Floats, anchor: Floats | None) -> float:
        """What these multipliers prove every feasible point to lose at least."""

    @abstractmethod
    def limits_bound(self, weights: Floats, anchor: Floats | None) -> float:
        """What these weights prove of the weighted sum of limits on K: at least so much; no point
        is feasible where that is positive.
        """

    @abstractmethod
    def _breach(self, x: Floats, point: Array) -> tuple[float, float]:
        """By how much a point breaks the limits, and the size of their terms."""

    def for_solvers(self) -> HindsightTask:
        """The same without what moves no answer: solvers' accuracies are relative to costs."""
        return self

    def is_feasible(self, x: Floats) -> bool:
        """Whether x lies in K and keeps every constraint, by the set's own excess and the
        functions' own values.
        """
        point = self.unflattened(x)
        tolerance = max(FEASIBILITY_TOLERANCE, 100 * eps_of(point))
        breach, size = self._breach(x, point)
        extent = max(self.K.radius, float(np.abs(x).max()))
        return self.K.infeasibility(point) <= tolerance * extent and breach <= tolerance * size

    def unflattened(self, x: Floats) -> Array:
        """A flattened point in the shape and library of the set, in float64 where that is NumPy."""
        x = x.reshape(self.K.shape)
        return x if type(self.K.center) is np.ndarray else like(x, self.K.center)


class Method(Protocol):
    """A way to find the best point in hindsight."""

    @property
    def name(self) -> str:
        """What `Comparator.method` says."""

    def supports(self, task: HindsightTask) -> bool:
        """Whether it is for this task."""

    def solve(self, task: HindsightTask) -> Solution | None:
        """What it found; None where that is nothing."""


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


def with_exact_oracle(K: HasLMO) -> HasLMO:
    """The same set with an oracle that does not err, where there is one: hindsight asks seldom."""
    return K.exactly() if isinstance(K, Spectral) and type(K.center) is np.ndarray else K


def positive(sizes: Any) -> Any:
    """Sizes to divide by: 1 in place of 0."""
    return np.where(sizes > 0, sizes, 1.0)


def moved_inside(x: Floats, inside: Floats, breach: float, margin: float) -> Floats:
    """x, moved towards a point that keeps every limit with this margin, twice as far as it takes
    for a point that breaks one by `breach` to keep them all.
    """
    if breach <= 0.0 or margin <= 0.0:
        return x
    return x + min(1.0, 2.0 * breach / (breach + margin)) * (inside - x)


def flattened(x: Array) -> Floats:
    """A point as a flat array of NumPy, in float64."""
    return np.asarray(to_numpy(x), dtype=np.float64).reshape(-1)
