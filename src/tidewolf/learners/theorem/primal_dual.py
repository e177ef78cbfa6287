"""Primal-dual play with approximately feasible projections, to the letter
(Garber & Kretzu 2024, Algorithm 4, Theorem 4.1).

    block of b rounds at x, gradients at x:
    y      <-  ball( y - eta sum_t (grad f_t + lam grad g_t^+) )                          (primal)
    x, y'  <-  AFP(y from x),  |x - y'|^2 <= 3 eps                                        (feasible)
    lam    <-  max(0, lam + eta sum_t (g_t^+ - delta eta lam))                            (dual)

    b = T^{1/2},   eta = T^{-3/4},   delta = 32 (G_g^2 + G_g R) T^{1/2} sqrt(ln T),
    eps = 61 R^2 T^{-1/2} ln T

Errata applied: the ball is around the center and gradients are taken within aff(K); b is
floor(T^{1/2}) with a shorter last block, followed by no projection; the projection tests the
distance first. These settings depend on the units, stand still unless T is in the hundred
thousands, and promise nothing before that: methods/steps/thresholds.py says from when on.
`PrimalDual` cures that.

`promise()`, from the theorem's proof, where its condition holds, and if some point keeps every
constraint:

    regret    <= A = 2R^2/eta + (G_f^2 + 4 G_g^2 R^2) eta b T + sqrt(3 eps) (G_f + G_g/4) T
    violation <= sqrt( 2 (delta eta T + 1/eta) (A + 2 R G_f T) )

`bound(record)` is the measured one of methods/steps/saddle.py, which needs no condition; x* is
worse than what was played by at most G_f D T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import frozen, norm
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Companion, Learner, Record
from tidewolf.methods.blocks import BlockLearner, opened
from tidewolf.methods.settings import passed_horizon, settle, warn_of
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.saddle import (
    HOPELESS,
    kept_possible,
    moderate,
    saddle_step,
    violation_bound,
)
from tidewolf.methods.steps.slopes import within
from tidewolf.methods.steps.thresholds import (
    TheoremSteps,
    as_start,
    condition_at,
    frozen_at,
    frozen_sentence,
    primal_dual_condition,
)
from tidewolf.projection import afp_paper


class State(NamedTuple):
    """Where it stands, the open block, the stretch it is in, and the measured bounds."""

    t: int
    x: Array
    aimed: Array
    """where y was before the last projection"""
    y: Array
    lam: float
    open: FirstOrder
    horizon: int
    began: int
    regret_bound: float
    energy: float
    settled_regret: float
    settled_violation: float
    distance: float
    calls: int


@final
@dataclass(frozen=True, eq=False, repr=False)
class TheoremPrimalDual(BlockLearner[State]):
    """Algorithm 4 with the constants of its theorem; made by `PrimalDual.theorem`, which warns
    where they do nothing.
    """

    needs: ClassVar = FirstOrder
    state_type: ClassVar = State
    exponents: ClassVar = (3 / 4, 7 / 8)

    K: HasLMO
    horizon: int
    loss_lipschitz: float
    constraint_lipschitz: float
    first: Array | None = None
    """where to start; the center unless told otherwise"""

    def __post_init__(self) -> None:
        settle(self)
        object.__setattr__(self, "first", as_start(self.K, self.first))

    @property
    def hard_set(self) -> HasLMO:
        return self.K

    def start(self) -> State:
        x = self.K.center if self.first is None else self.first
        return State(
            t=0,
            x=x,
            aimed=x,
            y=x,
            lam=0.0,
            open=opened(self.K.center),
            horizon=self.horizon,
            began=0,
            regret_bound=0.0,
            energy=0.0,
            settled_regret=0.0,
            settled_violation=0.0,
            distance=0.0,
            calls=0,
        )

    def act(self, state: State) -> Array:
        return state.x

    def _end(self, state: State) -> int:
        return state.began + state.horizon

    def _length(self, state: State) -> int:
        return self._steps(state.horizon).block

    def _closed(self, state: State, block: FirstOrder) -> State:
        return self._projected(self._stepped(state, block))

    def _stepped(self, state: State, block: FirstOrder) -> State:
        """The primal and the dual step at the end of a block, from its sums, and what they add to
        the bounds.
        """
        K, s, n = self.K, self._steps(state.horizon), block.rounds
        grad_f, grad_g = self._within(block)
        d = grad_f + state.lam * grad_g
        _, hopeless = kept_possible(
            block.violation, n * self.constraint_lipschitz * K.diameter, K.center
        )
        q = min(block.violation, moderate(K.center))  # as printed, but for what would overflow
        y, lam, price, energy = saddle_step(
            state.x, state.y, state.lam, d, q, n, s.eta, s.eta, s.delta * s.eta
        )
        return state._replace(
            t=state.t + n - state.open.rounds,
            y=frozen(into_ball(y, K.center, K.radius)),
            lam=lam,
            open=opened(K.center),
            regret_bound=state.regret_bound + price,
            energy=math.inf if hopeless else state.energy + energy,
        )

    def _projected(self, state: State) -> State:
        """A member near the new y; after the last block none is needed, as whoever plays on starts
        over.
        """
        if state.t == state.began + state.horizon:
            return state._replace(aimed=state.x, y=state.x, distance=0.0)
        # 0 for a set of one point only, where any will do
        tol = self._steps(state.horizon).tol or 1.0
        x, y, calls, distance2 = afp_paper(self.K, state.y, state.x, tol=tol)
        return state._replace(
            x=x, aimed=state.y, y=y, distance=math.sqrt(distance2), calls=state.calls + calls
        )

    def _restarted(self, state: State) -> State:
        """The same point with a clean slate and twice the horizon; what the stretch may have cost
        is settled.
        """
        regret, violation = self._stretch_bound(state)
        return self.start()._replace(
            t=state.t,
            x=state.x,
            aimed=state.x,
            y=state.x,
            horizon=2 * state.horizon,
            began=state.t,
            settled_regret=state.settled_regret + regret,
            settled_violation=state.settled_violation + violation,
            calls=state.calls,
        )

    def _stretch_bound(self, state: State) -> tuple[float, float]:
        """Regret and violation since the last restart are at most this."""
        s, D, rounds = self._steps(state.horizon), self.K.diameter, state.t - state.began
        first = D if state.began else min(D, self.K.radius + self._distance)
        constant = first**2 / (2.0 * s.eta)
        E = constant + state.energy + self.loss_lipschitz * D * rounds
        return constant + state.regret_bound, violation_bound(E, rounds, s.eta, s.delta * s.eta)

    def _require(self, state: State, seen: FirstOrder) -> None:
        self._within(seen)

    def _within(self, seen: FirstOrder) -> tuple[Array, Array]:
        """Both sums of gradients within aff(K), refused when they break the slopes that were
        given.
        """
        return (
            within(self.K, "loss", seen.loss_gradient, seen.rounds, self.loss_lipschitz)[0],
            within(
                self.K,
                "constraint",
                seen.constraint_gradient,
                seen.rounds,
                self.constraint_lipschitz,
            )[0],
        )

    def _steps(self, horizon: int) -> TheoremSteps:
        return TheoremSteps(horizon, self.K.radius, self.constraint_lipschitz)

    @cached_property
    def _distance(self) -> float:
        """From the center to the start."""
        return 0.0 if self.first is None else norm(self.first - self.K.center)

    @cached_property
    def _frozen(self) -> bool:
        return frozen_at(self.horizon, self.K.radius, self._distance)

    @cached_property
    def concerns(self) -> tuple[str, ...]:
        """Sentences on what these settings cannot do within this horizon, with the horizon from
        which on they can.
        """
        R, G_g, T = self.K.radius, self.constraint_lipschitz, self.horizon
        if R == 0.0:
            return ()
        said = []
        if self._frozen:
            said.append(frozen_sentence(T, R, self._distance))
        if not condition_at(T, R, G_g):
            said.append(
                f"The theorem promises nothing for {T} rounds: its condition holds from a horizon "
                f"of {primal_dual_condition(R, G_g)} on."
            )
        return tuple(said)

    def warn(self) -> None:
        """Say the concerns as one warning, where the caller's caller stands."""
        warn_of(self.concerns, self._frozen, "PrimalDual")

    def promise(self) -> Bound:
        """What is known before the first round of a run of `horizon` rounds."""
        T, R, G_f, G_g = self.horizon, self.K.radius, self.loss_lipschitz, self.constraint_lipschitz
        if not condition_at(T, R, G_g):
            return Bound(None, None, " ".join(self.concerns))
        s = self._steps(T)
        A = (
            2.0 * R**2 / s.eta
            + (G_f**2 + 4.0 * G_g**2 * R**2) * s.eta * s.block * T
            + math.sqrt(s.tol) * (G_f + G_g / 4.0) * T
        )
        return Bound(A, violation_bound(A + 2.0 * R * G_f * T, T, s.eta, s.delta * s.eta))

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        if state.open.rounds:  # what holds for a block holds for the part of it that was played
            state = self._stepped(state, state.open)
        regret, violation = self._stretch_bound(state)
        regret, violation = regret + state.settled_regret, violation + state.settled_violation
        return Bound(regret, violation) if violation < math.inf else Bound(regret, None, HOPELESS)

    def slopes(self, state: State) -> tuple[float, float]:
        return self.loss_lipschitz, self.constraint_lipschitz

    def companion(self, state: State) -> Companion:
        return Companion(
            self.K, state.x, state.aimed, state.y, self._steps(state.horizon).tol, math.inf
        )

    def notes(self, state: State) -> tuple[str, ...]:
        return (*self.concerns, *passed_horizon(self.horizon, state))

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K, horizon, 1e3, 1e3), cls(K, max(1, horizon // 3), 1e3, 1e3, K.center))
