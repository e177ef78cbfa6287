"""Lyapunov weights on online Frank-Wolfe with a doubling guess  (Wang, Wan & Zhang 2025, OFW-TVC): one oracle call a round.

    g   =  V grad f_t + w grad g_t^+        by Lyapunov weights: c = 64, s = T^{-3/4}/2
    x  <-  online Frank-Wolfe (rivals/frank_wolfe.py) on g

Published with V = 1; `caution` moves V = T^{-3/4}/caution as in every learner here. Two things are kinder to it than its paper: the guess
starts at the first gradient of the surrogate, not at 1, and a step of 2/sqrt(t) is cut at 1. Regret O(T^{3/4}), violation O(T^{3/4} log T).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import Array, as_count
from tidewolf.core.feedback import FirstOrder, require_first_order
from tidewolf.core.learner import Bound, Learner, Record
from tidewolf.core.oracle import HasLMO
from tidewolf.rivals.frank_wolfe import Leader, anew, follow
from tidewolf.steps.lyapunov import DEFAULT_CAUTION, Ledger, LyapunovWeights
from tidewolf.steps.settings import passed_horizon, settle


class State(NamedTuple):
    t: int
    x: Array
    ledger: Ledger
    leader: Leader
    """in units of 2^exponent of the ledger"""
    distance: float = 0.0

    @property
    def calls(self) -> int:
        return self.leader.calls


@final
@dataclass(frozen=True, eq=False, repr=False)
class WangWanZhang(Learner[State]):
    """Wang, Wan & Zhang's method: one oracle call a round, with constants made for the proof."""

    needs: ClassVar = FirstOrder
    state_type: ClassVar = State

    K: HasLMO
    horizon: int | None = None
    caution: float = DEFAULT_CAUTION
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None

    @classmethod
    def published(cls, K: HasLMO, *, horizon: int) -> WangWanZhang:
        """V = 1, as in the paper."""
        return cls(K, horizon=horizon, caution=math.pow(as_count(horizon, "The horizon"), -0.75))

    def __post_init__(self) -> None:
        settle(self)

    @property
    def hard_set(self) -> HasLMO:
        return self.K

    def start(self) -> State:
        return State(0, self.K.center, self._weights.start(self.horizon), anew(self.K.center))

    def act(self, state: State) -> Array:
        return state.x

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, seen: FirstOrder) -> State:
        require_first_order(seen, self.K.shape, 1)
        t, x, ledger, leader, _ = state
        if t == ledger.began + ledger.horizon:
            ledger = self._weights.restarted(ledger, leader.bound, t)
            leader = anew(leader.first, calls=leader.calls, warm=leader.warm)
        g, g_norm2, ledger, unit, *_ = self._weights.weigh(ledger, seen)
        x, leader = follow(self.K, x, leader, g, g_norm2, ledger.horizon, unit)
        return State(t + 1, x, ledger, leader)

    @cached_property
    def _weights(self) -> LyapunovWeights:
        return LyapunovWeights(self.K, self.caution, self.loss_lipschitz, self.constraint_lipschitz, c=64.0, p=0.75)

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        return self._weights.bound(state.ledger, state.leader.bound, record)

    def slopes(self, state: State) -> tuple[float, float]:
        return state.ledger.loss_slope, state.ledger.constraint_slope

    def notes(self, state: State) -> tuple[str, ...]:
        return passed_horizon(self.horizon, state.ledger)

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K, horizon=horizon), cls.published(K, horizon=max(1, horizon // 3)), cls(K))
