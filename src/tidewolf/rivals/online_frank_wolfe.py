"""Online Frank-Wolfe, blind to the limits or with a fixed price on breaching them
(Hazan & Kale 2012): one oracle call a round.

    g   =  grad f_t + (caution/2) (G_f/G_g) grad g_t^+
        G_f and G_g given, or the largest slopes so far
    x  <-  online Frank-Wolfe (rivals/frank_wolfe.py) on g

The price is the weight that Lyapunov weights of the same caution (methods/steps/lyapunov.py) begin
with; here it never rises. Published without constraints: `OnlineFrankWolfe.blind`, caution = 0. If
the regret on g is at most B then, as g_t^+(x*) = 0,

    regret  <=  B - sum_t w_t g_t^+(x_t),     w_t the prices:
        O(T^{3/4}). Of the violation nothing is promised below order T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import as_number, inner
from tidewolf.core.feedback import FirstOrder, require_first_order
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.settings import passed_horizon, settle
from tidewolf.methods.steps.lyapunov import DEFAULT_CAUTION, FIRST_HORIZON, THETA
from tidewolf.methods.steps.slopes import within
from tidewolf.rivals.frank_wolfe import Leader, anew, follow


class State(NamedTuple):
    t: int
    x: Array
    horizon: int
    began: int
    loss_slope: float
    constraint_slope: float
    paid: float
    """sum_t w_t g_t^+(x_t)"""
    leader: Leader
    distance: float = 0.0

    @property
    def calls(self) -> int:
        return self.leader.calls


@final
@dataclass(frozen=True, eq=False, repr=False)
class OnlineFrankWolfe(Learner[State]):
    """Online Frank-Wolfe with a fixed price on breaches; `OnlineFrankWolfe.blind` does not look at
    the limits at all.
    """

    needs: ClassVar = FirstOrder
    state_type: ClassVar = State

    K: HasLMO
    horizon: int | None = None
    caution: float = DEFAULT_CAUTION
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None

    @classmethod
    def blind(cls, K: HasLMO, *, horizon: int | None = None) -> OnlineFrankWolfe:
        """As published: losses alone."""
        return cls(K, horizon=horizon, caution=0.0)

    def __post_init__(self) -> None:
        settle(self, caution=lambda value, name: as_number(value, name, least=0.0))

    @property
    def hard_set(self) -> HasLMO:
        return self.K

    def start(self) -> State:
        slopes = self.loss_lipschitz or 0.0, self.constraint_lipschitz or 0.0
        return State(
            0, self.K.center, self.horizon or FIRST_HORIZON, 0, *slopes, 0.0, anew(self.K.center)
        )

    def act(self, state: State) -> Array:
        return state.x

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, seen: FirstOrder) -> State:
        require_first_order(seen, self.K.shape, 1)
        t, x, horizon, began, G_f, G_g, paid, leader, _ = state
        if t == began + horizon:
            horizon, began = 2 * horizon, t
            leader = anew(leader.first, 0.0, leader.bound, leader.calls, leader.warm)
        g, slope_f = within(self.K, "loss", seen.loss_gradient, 1, self.loss_lipschitz, G_f)
        grad_g, slope_g = within(
            self.K, "constraint", seen.constraint_gradient, 1, self.constraint_lipschitz, G_g
        )
        G_f, G_g = max(G_f, slope_f), max(G_g, slope_g)
        if G_g > 0.0:
            w = THETA * self.caution * (G_f / G_g if G_f > 0.0 else 1.0)
            g, paid = g + w * grad_g, paid + w * seen.violation
        x, leader = follow(self.K, x, leader, g, inner(g, g), horizon)
        return State(t + 1, x, horizon, began, G_f, G_g, paid, leader)

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        return Bound(
            state.leader.bound - state.paid,
            None,
            "A price that never rises promises no violation below the order of the rounds.",
        )

    def slopes(self, state: State) -> tuple[float, float]:
        return state.loss_slope, state.constraint_slope

    def notes(self, state: State) -> tuple[str, ...]:
        blind = () if self.caution else ("It does not look at the limits.",)
        return (*blind, *passed_horizon(self.horizon, state))

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls.blind(K, horizon=max(1, horizon // 3)),
            cls(K, caution=1.0),
        )
