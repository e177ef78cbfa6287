"""Drift-plus-penalty play with approximately feasible projections, to the letter
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

`promise()` holds on every interval whose constraints some point keeps, with |x - y| <= sqrt(3 eps)
and every step exact; `bound` and `bound_between` are the measured ones of methods/steps/drift.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

from tidewolf.core.arrays import norm
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Companion, Learner
from tidewolf.methods.settings import passed_horizon, settle, warn_of
from tidewolf.methods.steps.drift_blocks import DriftLearner, Settings, State, promised
from tidewolf.methods.steps.feasible import Feasible
from tidewolf.methods.steps.thresholds import as_start, frozen_at, frozen_sentence, paper_tolerance
from tidewolf.projection import ActiveSet, afp_paper


@final
@dataclass(frozen=True, eq=False, repr=False)
class TheoremDriftPlusPenalty(DriftLearner):
    """Algorithm 3 with the constants of its theorem; made by `DriftPlusPenalty.theorem`, which
    warns where they do nothing.
    """

    K: HasLMO
    horizon: int
    loss_lipschitz: float
    constraint_lipschitz: float
    first: Array | None = None
    """where to start; the center unless told otherwise"""

    def __post_init__(self) -> None:
        settle(self)
        object.__setattr__(self, "first", as_start(self.K, self.first))

    def start(self) -> State:
        return self._started(ActiveSet.start(self.K, self.first), self.horizon)

    def _settings(self, horizon: int, loss_slope: float, constraint_slope: float) -> Settings:
        return Settings(
            math.isqrt(horizon), horizon**0.25 / self._R, math.sqrt(horizon) / loss_slope
        )

    def _near(self, state: State, aimed: Array) -> Feasible:
        # 0 for a set of one point only, where any will do
        tol = paper_tolerance(state.horizon, self.K.radius) or 1.0
        x, y, calls, distance2 = afp_paper(self.K, aimed, state.active.x, tol=tol)
        active = state.active if x is state.active.x else ActiveSet.start(self.K, x)
        return Feasible(active, y, math.sqrt(distance2), calls)

    @cached_property
    def _distance(self) -> float:
        """From the center to the start."""
        return 0.0 if self.first is None else norm(self.first - self.K.center)

    @property
    def _first_reach(self) -> float:
        return min(self.K.diameter, self.K.radius + self._distance)

    @cached_property
    def concerns(self) -> tuple[str, ...]:
        """Sentences on what these settings cannot do within this horizon, with the horizon from
        which on they can.
        """
        R = self.K.radius
        return (
            (frozen_sentence(self.horizon, R, self._distance),)
            if R and frozen_at(self.horizon, R, self._distance)
            else ()
        )

    def warn(self) -> None:
        """Say the concerns as one warning, where the caller's caller stands."""
        warn_of(self.concerns, True, "DriftPlusPenalty")

    def promise(self) -> Bound:
        T, R, G_f, G_g = self.horizon, self._R, self.loss_lipschitz, self.constraint_lipschitz
        b, alpha, delta = self._settings(T, G_f, G_g)
        return promised(
            T, b, G_f * alpha, G_f * delta, math.sqrt(paper_tolerance(T, R)), R, G_f, G_g
        )

    def companion(self, state: State) -> Companion:
        return self._companion(state, paper_tolerance(state.horizon, self.K.radius), math.inf)

    def notes(self, state: State) -> tuple[str, ...]:
        return (*self.concerns, *passed_horizon(self.horizon, state))

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K, horizon, 1e3, 1e3), cls(K, max(1, horizon // 3), 1e3, 1e3, K.center))
