"""Drift-plus-penalty play, unit-free
(after Garber & Kretzu 2024, Algorithm 3): guarantees on every interval of rounds.

    block of n <= b rounds at x:
    d    =   mean of grad f_t(y) within aff(K)
    y    <-  argmin_{ball, aff(K)}  <d, . - y> + delta sum_t g_t^+
             + alpha/2 |. - y|^2                                                (drift plus penalty)
    x, y <-  ActiveSet(y from x), |x - y|^2 <= tol R^2, then nearer,
             spending oracle calls from the bank                                (feasible)

With T rounds and B oracle calls a round: b = 2.6 sqrt(T/B), alpha = (G_f/2R) sqrt(T/b),
delta = (G_f/G_g) sqrt(T), tol = 8/(B b - 4), which B b calls always reach. G_f and G_g are given,
or the largest slopes of a block seen so far. The step is exact to a certified gap (steps/penalty),
which is kept for every block and enters the bound. A last, shorter block is followed by no
projection.

No point has to keep every constraint: for any interval whose own constraints some point keeps,
`bound_between` is the measured bound of methods/steps/drift.py, and `bound` that of the whole run.
`promise()` is known beforehand for given G_f, G_g and T, M = number of blocks, every step exact,
and holds on every interval:

    regret    <= 4 b G_f R + 2 b R^2 alpha + G_f^2 T/(2 alpha) + G_f R sqrt(tol) T
    violation <= 2 G_g sqrt( T b (G_f R M/alpha + R^2) )
                 + ( 2 alpha R^2 + M (G_f^2/(2 alpha) + 2 G_f R) )/delta
                 + 4 b G_g R + G_g R sqrt(tol) T.

Losses are evaluated at y and constraints in the ball, so both outside K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from tidewolf.core.batch import Batch
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Companion, Learner
from tidewolf.methods.settings import passed_horizon, settle
from tidewolf.methods.steps.drift_blocks import DriftLearner, Settings, State, promised
from tidewolf.methods.steps.feasible import Feasible, calls_in, feasible
from tidewolf.methods.steps.lyapunov import FIRST_HORIZON
from tidewolf.projection import ActiveSet

if TYPE_CHECKING:
    from tidewolf.learners.theorem.drift_plus_penalty import TheoremDriftPlusPenalty


def steps_for(T: int, B: float, block: int | None = None) -> tuple[int, float | None]:
    """The block for T rounds with B oracle calls a round, and the tol its calls always reach; None
    where the budget alone rules.
    """
    b = max(1, min(T, block or round(2.6 * math.sqrt(T / B))))
    return b, 8.0 / (B * b - 4.0) if B * b > 12.0 else None


@final
@dataclass(frozen=True, eq=False, repr=False)
class DriftPlusPenalty(DriftLearner):
    """The paper's drift-plus-penalty learner, which holds on every interval; unit-free, with a
    budget of oracle calls.
    """

    K: HasLMO
    horizon: int | None = None
    calls_per_round: float = 1.0
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None
    block: int | None = None
    tolerance: float = 1e-3
    """|x - y|^2 that calls left over are spent on, as a share of radius^2"""

    def __post_init__(self) -> None:
        settle(self)

    @staticmethod
    def theorem(
        K: HasLMO,
        *,
        horizon: int,
        loss_lipschitz: float,
        constraint_lipschitz: float,
        start: Array | None = None,
    ) -> TheoremDriftPlusPenalty:
        """The paper's constants to the letter; warns where the horizon is too short for them to do
        anything.
        """
        from tidewolf.learners.theorem.drift_plus_penalty import TheoremDriftPlusPenalty

        learner = TheoremDriftPlusPenalty(K, horizon, loss_lipschitz, constraint_lipschitz, start)
        learner.warn()
        return learner

    def start(self) -> State:
        return self._started(ActiveSet.start(self.K), self.horizon or FIRST_HORIZON)

    def _settings(self, horizon: int, loss_slope: float, constraint_slope: float) -> Settings:
        b, _ = steps_for(horizon, self.calls_per_round, self.block)
        return Settings(
            b, math.sqrt(horizon / b) / (2.0 * self._R), math.sqrt(horizon) / constraint_slope
        )

    def _looked(self, state: State, losses: Batch, constraints: Batch) -> State:
        seen = super()._looked(state, losses, constraints)
        return seen._replace(bank=state.bank + self.calls_per_round * len(losses))

    def _near(self, state: State, aimed: Array) -> Feasible:
        return feasible(
            state.active,
            self.K,
            aimed,
            self._promised(state.horizon),
            self.tolerance * self._R**2,
            state.bank,
        )

    def _promised(self, horizon: int) -> float:
        """The |x - y|^2 that the calls of a block always reach; where there is none, that which is
        aimed at.
        """
        return (
            steps_for(horizon, self.calls_per_round, self.block)[1] or self.tolerance
        ) * self._R**2

    def promise(self) -> Bound:
        if self.horizon is None or self.loss_lipschitz is None or self.constraint_lipschitz is None:
            return Bound(
                None,
                None,
                "A promise needs horizon, loss_lipschitz and constraint_lipschitz; without them "
                "bounds are measured.",
            )
        b, tol = steps_for(self.horizon, self.calls_per_round, self.block)
        if tol is None:
            spent = f"Blocks of {b} rounds with {self.calls_per_round:g} oracle calls a round"
            return Bound(
                None,
                None,
                f"{spent} are too short for a tolerance to be promised: bounds are measured.",
            )
        G_f, G_g, R = self.loss_lipschitz, self.constraint_lipschitz, self._R
        _, alpha, delta = self._settings(self.horizon, G_f, G_g)
        return promised(self.horizon, b, G_f * alpha, G_f * delta, math.sqrt(tol) * R, R, G_f, G_g)

    def companion(self, state: State) -> Companion:
        return self._companion(state, self._promised(state.horizon), calls_in(state.bank))

    def notes(self, state: State) -> tuple[str, ...]:
        return passed_horizon(self.horizon, state)

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=2, calls_per_round=0.7),
            cls(K, horizon=max(1, horizon // 3), calls_per_round=5.0),
            cls(K, block=3),
        )
