"""Drift-plus-penalty play with approximately feasible projections, as published
(Garber & Kretzu 2024, Algorithm 3, Theorem 3.1).

    block of b rounds at x:
    d      =   mean of grad f_t(y)
    y      <-  argmin_{ball}  <d, . - y> + delta sum_t g_t^+
               + alpha/2 |. - y|^2                                              (drift plus penalty)
    x, y'  <-  AFP(y from x),  |x - y'|^2 <= 3 eps                              (feasible)

    b = delta = T^{1/2},   alpha = (G_f/R) T^{1/4},   eps = 61 R^2 T^{-1/2} ln T

Errata applied: the ball is around the center and the minimum is taken within aff(K); b is
floor(T^{1/2}) with a shorter last block, followed by no projection; the projection tests the
distance first. These settings depend on the units and stand still unless T is in the hundred
thousands: methods/steps/thresholds.py says from when on. `DriftPlusPenalty` cures that.

`guarantee()` holds on every interval whose constraints some point keeps, with |x - y| <= sqrt(3
eps) and every step exact; `bound` and `bound_between` are the measured ones of
methods/steps/drift.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from tidewolf.core.oracle import HasLMO
from tidewolf.learners.theorem.constants import Assumed, PaperConstants
from tidewolf.methods.base import Bound
from tidewolf.methods.steps.drift_blocks import DriftSteps, guarantee_on_intervals
from tidewolf.methods.steps.slopes import Slopes, unit_length
from tidewolf.methods.steps.thresholds import paper_tolerance


@final
@dataclass(frozen=True, eq=False, repr=False)
class DriftPlusPenaltyConstants(PaperConstants):
    """The constants of Theorem 3.1; `DriftPlusPenalty.theorem` warns where they do nothing."""

    def steps(self, K: HasLMO, T: int, slopes: Slopes) -> DriftSteps:
        """The settings of a stretch of T rounds, for slopes above 0."""
        return DriftSteps(math.isqrt(T), T**0.25 / unit_length(K), math.sqrt(T) / slopes.loss)

    def concerns(self, K: HasLMO, T: int, assumed: Assumed) -> tuple[str, ...]:
        return tuple(self.frozen_concerns(K, T))

    def guarantee(self, K: HasLMO, T: int, slopes: Slopes) -> Bound:
        """What is known before the first of T rounds."""
        R = unit_length(K)
        distance = math.sqrt(paper_tolerance(T, R))
        return guarantee_on_intervals(T, self.steps(K, T, slopes), distance, R, slopes)
