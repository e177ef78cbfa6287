"""Lyapunov Frank-Wolfe: one oracle call a round.  Lyapunov weights on scale-free online Frank-Wolfe.

    each round at x, g_t the surrogate gradient within aff(K), M_t the largest |g_s| so far:
    F_t(z)  =  <sum_{s<=t} g_s, z> + rho M_t/2 |z - x_1|^2,        rho = 1.055 T^{3/4}/D
    v       =  lmo(grad F_t(x)),    gap_t = <grad F_t(x), x - v>                                          (one call)
    x      <-  x + min(1, gap_t/(rho M_t |x - v|^2)) (v - x)                                              (exact line search)

It stays where it is while every gradient has been 0. Regret on the surrogate, whatever T was, for every member x*:

    sum_t <g_t, x_t - x*>  <=  rho M_T D^2/2 + sum_t |g_t| min( D, sqrt(2 gap_t/(rho M_t)) )  =:  B,

Proof. With w_t = argmin_K F_t, being the leader pays: sum_t <g_t, w_t> <= F_T(x*) - (what the growing regulariser adds, >= 0) for every x*,
so sum_t <g_t, w_t - x*> <= rho M_T D^2/2. And F_t is rho M_t-strongly convex, so rho M_t/2 |x_t - w_t|^2 <= F_t(x_t) - F_t(w_t) <= gap_t.
For gradients of at most M, B is at most 2.65 D M T^{3/4}: so the weights (steps/lyapunov.py) take c = 2.65, p = 3/4, and regret and
violation are of order T^{3/4} and T^{3/4} log T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import Array, frozen, inner, namespace
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.learner import Bound, Learner, Record
from tidewolf.core.oracle import HasLMO
from tidewolf.projection.one_shot import look, step
from tidewolf.steps.blocks import BlockLearner, opened
from tidewolf.steps.lyapunov import DEFAULT_CAUTION, Ledger, LyapunovWeights
from tidewolf.steps.settings import passed_horizon, settle

STIFFNESS = 1.055
"""rho D/T^{3/4}: the best constant of the worst case."""


class State(NamedTuple):
    """Where it stands, what the weights and the leader remember, and the bound on the surrogate."""

    t: int
    x: Array
    first: Array
    """x_1 of this stretch"""
    open: FirstOrder
    ledger: Ledger
    total: Array
    """sum of the surrogate gradients, in units of 2^exponent, like `largest` and `strayed`"""
    largest: float
    """M_t"""
    strayed: float
    """sum of |g_t| min(D, sqrt(2 gap_t/(rho M_t)))"""
    warm: Array | None
    calls: int
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class LyapunovFrankWolfe(BlockLearner[State]):
    """Lyapunov weights on online Frank-Wolfe: one oracle call a round, and the simplest steps of all."""

    needs: ClassVar = FirstOrder
    state_type: ClassVar = State
    exponents: ClassVar = (3 / 4, 3 / 4)

    K: HasLMO
    horizon: int | None = None
    caution: float = DEFAULT_CAUTION
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None

    def __post_init__(self) -> None:
        settle(self)

    @property
    def hard_set(self) -> HasLMO:
        return self.K

    def start(self) -> State:
        return self._begun(self.K.center, self._weights.start(self.horizon))

    def _begun(self, x: Array, ledger: Ledger) -> State:
        zero = frozen(namespace(x).zeros_like(x))
        return State(0, x, x, opened(x), ledger, zero, 0.0, 0.0, None, 0)

    def act(self, state: State) -> Array:
        return state.x

    def _end(self, state: State) -> int:
        return state.ledger.began + state.ledger.horizon

    def _length(self, state: State) -> int:
        return 1

    def _require(self, seen: FirstOrder) -> None:
        self._weights.require(seen)

    def _closed(self, state: State, block: FirstOrder) -> State:
        K = self.K
        g, g_norm2, ledger, unit, *_ = self._weights.weigh(state.ledger, block)
        total, g_norm = frozen(state.total * unit + g), math.sqrt(g_norm2)
        M, strayed = max(state.largest * unit, g_norm), state.strayed * unit
        state = state._replace(t=state.t + 1, ledger=ledger, total=total, largest=M, strayed=strayed)
        if M <= 0.0:
            return state
        stiffness = STIFFNESS * math.pow(ledger.horizon, 0.75) / (K.diameter or 1.0) * M
        x, r = state.x, total / stiffness + (state.x - state.first)
        answer = K.answer(r, state.warm)
        seen = look(r, x, answer, inner(r, r))
        return state._replace(
            x=frozen(answer.vertex.blend(x, step(seen))),
            strayed=strayed + g_norm * min(K.diameter, math.sqrt(2.0 * seen.gap)),
            warm=answer.warm,
            calls=state.calls + 1,
        )

    def _restarted(self, state: State) -> State:
        ledger = self._weights.restarted(state.ledger, self._surrogate_bound(state), state.t)
        return self._begun(state.x, ledger)._replace(t=state.t, warm=state.warm, calls=state.calls)

    def _surrogate_bound(self, state: State) -> float:
        """B, in units of 2^exponent."""
        return 0.5 * STIFFNESS * math.pow(state.ledger.horizon, 0.75) * self.K.diameter * state.largest + state.strayed

    @cached_property
    def _weights(self) -> LyapunovWeights:
        return LyapunovWeights(self.K, self.caution, self.loss_lipschitz, self.constraint_lipschitz, c=2.65, p=0.75)

    def promise(self) -> Bound:
        """What is known before the first round of a run of `horizon` rounds."""
        return self._weights.promised(self.horizon, self._weights.c)

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        return self._weights.bound(state.ledger, self._surrogate_bound(state), record)

    def slopes(self, state: State) -> tuple[float, float]:
        return state.ledger.loss_slope, state.ledger.constraint_slope

    def notes(self, state: State) -> tuple[str, ...]:
        return passed_horizon(self.horizon, state.ledger)

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K, horizon=horizon), cls(K, horizon=max(1, horizon // 3), caution=1.0), cls(K))
