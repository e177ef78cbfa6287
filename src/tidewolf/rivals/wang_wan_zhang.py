"""Lyapunov weights on online Frank-Wolfe with a doubling guess
(Wang, Wan & Zhang 2025, OFW-TVC, arXiv 2501.16046): one call a round.

    g   =  V grad f_t + w grad g_t^+        by Lyapunov weights: c = 64, theta = 1/2, p = 3/4
    x  <-  online Frank-Wolfe (rivals/frank_wolfe.py) on g

Published for a known T with V = 1 beside w = Phi'(Q), that is V = T^{3/4} in the units of
methods/steps/lyapunov.py; `caution` moves V = 1/caution as in every learner here. Its Frank-Wolfe
needs T: past it, or without one, it restarts with twice as much, and the bounds of past stretches
are added up. Two things are kinder to it than its paper: the guess starts at the first gradient of
the surrogate, not at 1, and a step of 2/sqrt(t) is cut at 1. Regret O(T^{3/4}), violation
O(T^{3/4} log T).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import as_count
from tidewolf.core.feedback import FirstOrder, require_first_order
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.settings import passed_horizon, settle
from tidewolf.methods.steps.lyapunov import DEFAULT_CAUTION, FIRST_HORIZON, Ledger, LyapunovWeights
from tidewolf.methods.steps.saddle import HOPELESS
from tidewolf.rivals.frank_wolfe import Leader, anew, follow


class State(NamedTuple):
    t: int
    x: Array
    horizon: int
    began: int
    ledger: Ledger
    """since the last restart"""
    leader: Leader
    """in units of 2^exponent of the ledger"""
    past_regret: float
    """bounds of the stretches before the last restart; infinite where one has none"""
    past_violation: float
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
        horizon = self.horizon or FIRST_HORIZON
        return State(
            0,
            self.K.center,
            horizon,
            0,
            self._weights(horizon).start(),
            anew(self.K.center),
            0.0,
            0.0,
        )

    def act(self, state: State) -> Array:
        return state.x

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, seen: FirstOrder) -> State:
        require_first_order(seen, self.K.shape, 1)
        if state.t == state.began + state.horizon:
            state = self._restarted(state)
        g, g_norm2, ledger, unit, *_ = self._weights(state.horizon).weigh(state.ledger, seen)
        x, leader = follow(self.K, state.x, state.leader, g, g_norm2, state.horizon, unit)
        return state._replace(t=state.t + 1, x=x, ledger=ledger, leader=leader)

    def _restarted(self, state: State) -> State:
        """Twice the horizon, slopes still known."""
        regret, violation = self._until_now(state)
        leader, slopes = state.leader, state.ledger
        ledger = self._weights(2 * state.horizon).start()
        return state._replace(
            horizon=2 * state.horizon,
            began=state.t,
            ledger=ledger._replace(
                loss_slope=slopes.loss_slope, constraint_slope=slopes.constraint_slope
            ),
            leader=anew(leader.first, calls=leader.calls, warm=leader.warm),
            past_regret=regret,
            past_violation=violation,
        )

    def _weights(self, horizon: int) -> LyapunovWeights:
        return LyapunovWeights(
            self.K,
            self.caution,
            horizon,
            self.loss_lipschitz,
            self.constraint_lipschitz,
            c=64.0,
            p=0.75,
        )

    def _until_now(self, state: State) -> tuple[float, float]:
        """Bounds on both totals, infinite where there are none."""
        stretch = self._weights(state.horizon).bound(state.ledger, state.leader.bound)
        regret, violation = (
            math.inf if part is None else part for part in (stretch.regret, stretch.violation)
        )
        return state.past_regret + regret, state.past_violation + violation

    def bound(self, record: Record) -> Bound:
        regret, violation = self._until_now(record.final_state)
        known = violation < math.inf
        return Bound(
            regret if regret < math.inf else None,
            violation if known else None,
            "" if known else HOPELESS,
        )

    def slopes(self, state: State) -> tuple[float, float]:
        return state.ledger.loss_slope, state.ledger.constraint_slope

    def notes(self, state: State) -> tuple[str, ...]:
        return passed_horizon(self.horizon, state)

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K, horizon=horizon), cls.published(K, horizon=max(1, horizon // 3)), cls(K))
