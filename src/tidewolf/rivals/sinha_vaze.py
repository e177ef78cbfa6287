"""Lyapunov weights on projected AdaGrad
(Sinha & Vaze 2024, Optimal algorithms for OCO with adversarial constraints).

    g     =  V grad f_t + w grad g_t^+        by Lyapunov weights: c = 2, theta = 1/2, p = 1/2
    x    <-  Proj_K( x - D/sqrt(2 sum |g|^2) g )

Published for a known T with V = 1 beside w = Phi'(Q), that is V = sqrt(T) in the units of
methods/steps/lyapunov.py; `caution` moves V = 1/caution as in every learner here. Regret O(sqrt T),
violation O(sqrt T log T), at the price of an exact projection a round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import as_count, frozen
from tidewolf.core.feedback import FirstOrder, require_first_order
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.settings import settle
from tidewolf.methods.steps.adagrad import descend
from tidewolf.methods.steps.lyapunov import DEFAULT_CAUTION, Ledger, LyapunovWeights
from tidewolf.rivals.exact import ExactProjection
from tidewolf.sets.base import ConvexSet


class State(NamedTuple):
    t: int
    x: Array
    ledger: Ledger
    square_sum: float
    stiffness: float
    surrogate_bound: float
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class SinhaVaze(Learner[State]):
    """Sinha & Vaze's method with exact projections: the quality to reach, at the price to avoid."""

    needs: ClassVar = FirstOrder
    state_type: ClassVar = State
    anytime: ClassVar = True
    exponents: ClassVar = (1 / 2, 1 / 2)

    K: ConvexSet
    horizon: int | None = None
    caution: float = DEFAULT_CAUTION
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None

    @classmethod
    def published(cls, K: ConvexSet, *, horizon: int) -> SinhaVaze:
        """V = 1, as in the paper."""
        return cls(K, horizon=horizon, caution=as_count(horizon, "The horizon") ** -0.5)

    def __post_init__(self) -> None:
        settle(self)
        ExactProjection(self.K)  # refuses a set it cannot project on

    @property
    def hard_set(self) -> ConvexSet:
        return self.K

    def start(self) -> State:
        return State(0, self.K.center, self._weights.start(), 0.0, 0.0, 0.0)

    def act(self, state: State) -> Array:
        return state.x

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, seen: FirstOrder) -> State:
        require_first_order(seen, self.K.shape, 1)
        g, g_norm2, ledger, unit, *_ = self._weights.weigh(state.ledger, seen)
        x, square_sum, stiffness, B = (
            state.x,
            state.square_sum * unit * unit,
            state.stiffness * unit,
            state.surrogate_bound * unit,
        )
        if g_norm2 > 0.0:
            x, square_sum, stiffness, price = descend(
                x, g, g_norm2, square_sum, stiffness, self.K.diameter
            )
            x = frozen(self._project(x))
            B += price
        return State(state.t + 1, x, ledger, square_sum, stiffness, B)

    @cached_property
    def _weights(self) -> LyapunovWeights:
        return LyapunovWeights(
            self.K, self.caution, self.horizon, self.loss_lipschitz, self.constraint_lipschitz
        )

    @cached_property
    def _project(self) -> ExactProjection:
        return ExactProjection(self.K)

    def promise(self) -> Bound:
        """What is known before the first round of a run of `horizon` rounds."""
        return self._weights.promised(math.sqrt(2.0))

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        return self._weights.bound(state.ledger, state.surrogate_bound)

    def slopes(self, state: State) -> tuple[float, float]:
        return state.ledger.loss_slope, state.ledger.constraint_slope

    def notes(self, state: State) -> tuple[str, ...]:
        return ("It projects exactly and asks no oracle.",)

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K, horizon=horizon), cls.published(K, horizon=horizon), cls(K))
