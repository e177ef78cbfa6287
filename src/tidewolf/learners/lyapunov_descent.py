"""Lyapunov descent: tidewolf's flagship.  Lyapunov weights, AdaGrad descent, active-set projection.

    block of rounds at x:
    g     =  V sum grad f_t + w sum grad g_t^+
             within aff(K), w by Lyapunov weights                                        (surrogate)
    y    <-  ball( y - eta g, a part of what goes past the limit given back )            (descent)
    x, y <-  ActiveSet(y from x), spending oracle calls from the bank                    (feasible)

The bank earns `calls_per_round` each round and keeps what is not spent, so oracle calls never
exceed calls_per_round * rounds.
1/(2 eta) = max(its last value, sqrt(sum |g|^2/2)/D_t): y leaves K, so D_t = min(2R, D + |x - y|)
stands in place of the diameter. A step that lands past a broken limit keeps
(caution + 5)/(caution + 25) of what is too much (methods/steps/overshoot.py). Losses and
constraints are rescaled by running maxima of their slopes: nothing to guess, and decisions do not
change with the units of x, f or g. No horizon is needed; one that is given holds the weights'
exponent still up to it, which a promise needs.

Measured bound (methods/steps/lyapunov.py) with B = sum of the descent's prices
(methods/steps/adagrad.py) + sum <g_t, x_t - y_t>. Beforehand |x - y| <= e is known only where every
block earns the 8 R^2/e^2 + 4 calls that always reach it; then, with D' = min(2R, D + e), for
gradients of at most M and blocks of b rounds, B <= c' D M sqrt(T),  c' = sqrt(b/2)
(D'^2/D^2 + D'/D) + e sqrt(T)/D.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import frozen, inner
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Companion, Learner, Record
from tidewolf.methods.blocks import BlockLearner, opened, slopes_with
from tidewolf.methods.settings import settle
from tidewolf.methods.steps.adagrad import descend, into_ball
from tidewolf.methods.steps.feasible import calls_in
from tidewolf.methods.steps.lyapunov import DEFAULT_CAUTION, Ledger, LyapunovWeights
from tidewolf.methods.steps.overshoot import given_back
from tidewolf.projection import ActiveSet


class State(NamedTuple):
    """Where it stands, the open block, and what the three steps remember."""

    t: int
    active: ActiveSet
    aimed: Array
    """where y was before the last projection"""
    y: Array
    open: FirstOrder
    ledger: Ledger
    square_sum: float
    stiffness: float
    surrogate_bound: float
    distance: float
    bank: float
    calls: int


@final
@dataclass(frozen=True, eq=False, repr=False)
class LyapunovDescent(BlockLearner[State]):
    """Lyapunov weights, AdaGrad descent and active-set projections: the learner to start with."""

    needs: ClassVar = FirstOrder
    state_type: ClassVar = State
    anytime: ClassVar = True

    K: HasLMO
    horizon: int | None = None
    caution: float = DEFAULT_CAUTION
    calls_per_round: float = 1.0
    tolerance: float | None = None
    """aimed-at |x - y|^2, as a share of radius^2; by default 1e-3, or 1e-3 calls_per_round^{-6/5}
    with more than one call a round
    """
    block: int = 1
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None

    def __post_init__(self) -> None:
        settle(self)

    @property
    def hard_set(self) -> HasLMO:
        return self.K

    def start(self) -> State:
        active = ActiveSet.start(self.K)
        return State(
            t=0,
            active=active,
            aimed=active.x,
            y=active.x,
            open=self._opened,
            ledger=self._weights.start(),
            square_sum=0.0,
            stiffness=0.0,
            surrogate_bound=0.0,
            distance=0.0,
            bank=0.0,
            calls=0,
        )

    def act(self, state: State) -> Array:
        return state.active.x

    def _length(self, state: State) -> int:
        return self.block

    def _require(self, state: State, seen: FirstOrder) -> None:
        self._weights.require(state.ledger, state.open, seen)

    def _closed(self, state: State, block: FirstOrder) -> State:
        """The three steps at the end of a block, from its sums."""
        aimed, ledger, S, sigma, B = self._descended(state, block)
        bank = state.bank + self.calls_per_round * block.rounds
        _, y, calls, distance2, active = state.active.nearest(
            self.K, aimed, self._tol, calls_in(bank)
        )
        return State(
            t=state.t + block.rounds - state.open.rounds,
            active=active,
            aimed=aimed,
            y=y,
            open=self._opened,
            ledger=ledger,
            square_sum=S,
            stiffness=sigma,
            surrogate_bound=B,
            distance=math.sqrt(distance2),
            bank=bank - calls,
            calls=state.calls + calls,
        )

    def _descended(
        self, state: State, block: FirstOrder
    ) -> tuple[Array, Ledger, float, float, float]:
        """The first two steps: y before its projection, the ledger, and S, sigma and B of the
        descent.
        """
        K, x = self.K, state.active.x
        g, g_norm2, ledger, unit, push, owed = self._weights.weigh(state.ledger, block)
        S, sigma, B = (
            state.square_sum * unit * unit,
            state.stiffness * unit,
            state.surrogate_bound * unit,
        )
        if g_norm2 == 0.0:
            return state.y, ledger, S, sigma, B
        D_t = min(2.0 * K.radius, K.diameter + state.distance)
        y, S, sigma, price = descend(state.y, g, g_norm2, S, sigma, D_t)
        if push is not None:
            y = given_back(y, x, push, owed, 0.5 / sigma, self._kept)
        return (
            frozen(into_ball(y, K.center, K.radius)),
            ledger,
            S,
            sigma,
            B + price + inner(g, x - state.y),
        )

    @cached_property
    def _weights(self) -> LyapunovWeights:
        return LyapunovWeights(
            self.K, self.caution, self.horizon, self.loss_lipschitz, self.constraint_lipschitz
        )

    @cached_property
    def _tol(self) -> float:
        share = (
            1e-3 * max(1.0, self.calls_per_round) ** -1.2
            if self.tolerance is None
            else self.tolerance
        )
        return share * self.K.radius**2

    @property
    def _kept(self) -> float:
        return (self.caution + 5.0) / (self.caution + 25.0)

    @cached_property
    def _opened(self) -> FirstOrder:
        return opened(self.K.center)

    def promise(self) -> Bound:
        """What is known before the first round of a run of `horizon` rounds."""
        R, D = self.K.radius, self.K.diameter
        if D == 0.0:
            return Bound(0.0, 0.0)
        if self.calls_per_round * self.block < 8.0 * R**2 / self._tol + 4.0:
            spent = f"{self.calls_per_round:g} oracle calls a round, in blocks of {self.block},"
            return Bound(
                None,
                None,
                f"With {spent} no distance of x and y can be promised: bounds are measured.",
            )
        e = math.sqrt(self._tol)
        reach = min(2.0 * R, D + e) / D
        apart = e * math.sqrt(self.horizon or 1) / D
        return self._weights.promised(math.sqrt(0.5 * self.block) * (reach**2 + reach) + apart)

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        ledger, B = state.ledger, state.surrogate_bound
        if state.open.rounds:  # what holds for a block holds for the part of it that was played
            _, ledger, _, _, B = self._descended(state, state.open)
        return self._weights.bound(ledger, B)

    def slopes(self, state: State) -> tuple[float, float]:
        return slopes_with(
            self.K, state.open, state.ledger.loss_slope, state.ledger.constraint_slope
        )

    def companion(self, state: State) -> Companion:
        return Companion(
            self.K, state.active.x, state.aimed, state.y, self._tol, calls_in(state.bank)
        )

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=3, calls_per_round=0.4),
            cls(K, horizon=max(1, horizon // 3), caution=1.0, tolerance=1e-2),
            cls(K),
        )
