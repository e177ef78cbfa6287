"""Primal-dual play, corrected and unit-free  (after Garber & Kretzu 2024, Algorithm 4).

    block of n <= b rounds at x, gradients at x within aff(K):
    y    <-  ball( y - eta R sum_t (grad f_t/G_f + lam grad g_t^+/G_g) )                  (primal)
    x, y <-  ActiveSet(y from x), |x - y|^2 <= tol R^2, then nearer,
             spending oracle calls from the bank                                          (feasible)
    lam  <-  max(0, lam + nu sum_t (g_t^+/(G_g R) - theta lam))                           (dual)

With T rounds and B oracle calls a round: b = 1.46 sqrt(T/B), eta = 1/sqrt(2 b T),
nu = 1/(2 sqrt(b T)), tol = 8/(B b - 4), which B b calls always reach, and theta the least number
with

    theta/2 >= eta b + nu b theta^2/2 + sqrt(tol)                                         (C)

(1/2 where there is none). What a block leaves in the bank brings x nearer still, to |x - y|^2 <=
`tolerance` R^2; blocks too short for a tol below 1, which would freeze the start, go for that at
once and let the budget rule.
G_f and G_g are given, or the largest slopes of a block seen so far. A last, shorter block is
followed by no projection.

`guarantee()` is known beforehand, for given G_f, G_g and T where (C) has a root, if some point
keeps every constraint:

    regret <= A G_f R,   A = 1/(2 eta) + (eta + 2 nu) b T + 1.25 sqrt(tol) T,
    violation <= sqrt( 2 (theta T + 1/nu) (A + 2T) ) G_g R.

`bound(record)` is the measured one of methods/steps/saddle.py, which needs none of that and is
never above the promise. With running G_f the regret of block m is a price times its own G_f, and a
G_f that grows costs (G_f' - G_f) D_m^2/(2 eta R), D_m = min(2R, D + |x_m - y_m|), as in
methods/steps/adagrad.py; the violation is at most G_g R sum q_m for the last G_g.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import frozen
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.learners.theorem.constants import Constants, WithTheorem
from tidewolf.learners.theorem.primal_dual import PrimalDualConstants
from tidewolf.methods.available import PlaysAround
from tidewolf.methods.base import NEEDS_SLOPES, Bound, Learner, Record
from tidewolf.methods.clock import BlockLearner, Epoch
from tidewolf.methods.late import Deferred, Overrides
from tidewolf.methods.projected import Banked, ProjectedPoint, Projection
from tidewolf.methods.settings import (
    BlockLength,
    CallsPerRoundOrNone,
    ConstraintLipschitz,
    FinerTolerance,
    HardSetK,
    Horizon,
    LossLipschitz,
)
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.saddle import (
    SaddleSteps,
    SaddleSums,
    Units,
    kept_possible,
    moderate,
    saddle_step,
    saddle_steps,
    violation_bound,
)
from tidewolf.methods.steps.slopes import Slopes, tangent_gradients, unit_length


class State(NamedTuple):
    """Where it stands, the open block, the stretch it is in, the slopes, and the measured
    bounds.
    """

    t: int
    point: ProjectedPoint
    open: FirstOrder
    epoch: Epoch
    slopes: Slopes
    oracle_budget: float = 0.0
    calls: int = 0
    saddle: SaddleSums = SaddleSums()
    """of this stretch"""
    pending: tuple[Deferred, ...] = ()
    lost: int = 0
    overrides: Overrides = Overrides()
    upcoming: Array | None = None
    """the decision, where entries are out in the coming round"""

    @property
    def distance(self) -> float:
        return self.point.distance


@final
@dataclass(frozen=True, eq=False, repr=False)
class PrimalDual(WithTheorem[State], PlaysAround[State], BlockLearner[State]):
    """The paper's primal-dual learner with unit-free steps and a budget of oracle calls;
    `PrimalDual.theorem` is the paper's own.

    Parameters
    ----------
    K : HasLMO
        The set that every played point belongs to.
    horizon : int, optional
        How many rounds will be played. None: unknown; it starts from 256 and restarts with
        twice as many whenever they are over. Unit: rounds.
    calls_per_round : float, default 1.0
        How often the set's oracle may be asked, on average over the rounds so far; calls that
        are not spent are kept for later. None only with the paper's constants, whose
        projections take the calls they need. Unit: oracle calls a round.
    loss_lipschitz : float, optional
        The largest slope a loss may have, on average over rounds seen together; steeper ones
        are refused. None: learned from what is seen, and nothing is promised beforehand.
    constraint_lipschitz : float, optional
        The largest slope a constraint may have, on average over rounds seen together; steeper
        ones are refused. None: learned from what is seen, and nothing is promised beforehand.
    block : int, optional
        How many rounds are played at a point before it moves. None: chosen for the horizon and
        the budget of calls. Unit: rounds.
    tolerance : float, default 0.001
        The squared distance of the played point from its companion that calls left over are
        spent on, as a share of radius^2.
    constants : PrimalDualConstants, optional
        The paper's constants, as `PrimalDual.theorem` gives them. None: steps that need no
        units, on a budget of calls.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (300, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (300, 1)), np.full(300, 0.5))
    >>> run = tw.run(tw.PrimalDual(K, horizon=300), tw.Stream(losses, limits))
    >>> bool(run.oracle_calls <= 300), bool(run.bound.regret > 0.0)
    (True, True)
    """

    state_type: ClassVar = State
    constants_type: ClassVar = PrimalDualConstants
    exponents: ClassVar = (3 / 4, 7 / 8)

    K: HardSetK
    horizon: Horizon = None
    calls_per_round: CallsPerRoundOrNone = 1.0
    loss_lipschitz: LossLipschitz = None
    constraint_lipschitz: ConstraintLipschitz = None
    block: BlockLength = None
    tolerance: FinerTolerance = 1e-3
    constants: Annotated[
        PrimalDualConstants | None,
        Constants(
            "The paper's constants, as `PrimalDual.theorem` gives them. None: steps that need no "
            "units, on a budget of calls.",
            kind=PrimalDualConstants,
        ),
    ] = None

    def start(self) -> State:
        point, slopes = ProjectedPoint.start(self.K, self.first_point), self.given_slopes.initial
        return State(0, point, self.no_sums, self.first_epoch(), slopes)

    def block_length(self, state: State) -> int:
        return self._steps(state.epoch.horizon).block

    def step(self, state: State, block: FirstOrder) -> State:
        """The primal and the dual step, and what they add to the bounds."""
        K, n, point = self.K, block.rounds, state.point
        gradients = tangent_gradients(K, block, self.given_slopes, state.slopes)
        slopes, unit = gradients.slopes, self._units(gradients.slopes)
        s = self._steps(state.epoch.horizon)

        q, hopeless = kept_possible(block, n * slopes.constraint * K.diameter, K.center)
        if self.constants is not None:  # as printed, but for what would overflow
            q = min(block.violation, moderate(K.center))
        taken = saddle_step(point.x, point.y, state.saddle.lam, gradients, q, n, s, unit)

        if state.t == n:
            reach = self.first_reach
        else:
            reach = min(2.0 * K.radius, K.diameter + point.distance)
        priced = slopes.loss if self.constants is None else 1.0
        saddle = state.saddle.and_step(taken, priced, reach, s.eta, unit.length, hopeless)
        target = frozen(into_ball(taken.y, K.center, K.radius))
        return state._replace(point=point.moved_to(target), slopes=slopes, saddle=saddle)

    def renew(self, state: State) -> State:
        return state._replace(saddle=SaddleSums())

    def epoch_bound(self, state: State) -> tuple[float, float]:
        K, s, rounds = self.K, self._steps(state.epoch.horizon), state.t - state.epoch.began
        unit = self._units(state.slopes)
        first = min(K.diameter, 2.0 * K.radius) if state.epoch.began else self.first_reach
        steepest = 1.0 if self.constants is None else self.assumed.G_f
        E = (first / unit.length) ** 2 / (2.0 * s.eta) + state.saddle.energy
        E += steepest * K.diameter / unit.length * rounds
        violation = violation_bound(E, rounds, s.nu, s.theta)
        if self.constants is None and violation < math.inf:
            violation *= state.slopes.constraint * unit.length
        return state.saddle.regret_bound, violation

    def projection(self, state: State) -> Projection:
        T = state.epoch.horizon
        if self.constants is not None:
            return self.constants.projection(self.K, T)
        R2 = unit_length(self.K) ** 2
        return Banked((self._steps(T).tol or self.tolerance) * R2, self.tolerance * R2)

    def _steps(self, T: int) -> SaddleSteps:
        if self.constants is not None:
            return self.constants.steps(self.K, T, self.assumed.G_g)
        assert self.calls_per_round is not None
        return saddle_steps(T, self.calls_per_round, self.block)

    def _units(self, slopes: Slopes) -> Units:
        """The paper's steps have the units of the caller."""
        if self.constants is not None:
            return Units(1.0, 1.0, 1.0)
        return Units(unit_length(self.K), slopes.loss or 1.0, slopes.constraint or 1.0)

    def guarantee(self) -> Bound:
        """What is known before the first round of a run of `horizon` rounds."""
        if self.horizon is None or self.loss_lipschitz is None or self.constraint_lipschitz is None:
            return NEEDS_SLOPES
        if self.constants is not None:
            return self.constants.guarantee(self.K, self.horizon, self.assumed)
        s = self._steps(self.horizon)
        if s.tol is None or not s.root:
            spent = (
                f"{self.horizon} rounds in blocks of {s.block} with {self.calls_per_round:g} "
                "oracle calls a round"
            )
            return Bound(
                None,
                None,
                f"With {spent} the theorem's condition has no solution: bounds are measured, not "
                "promised.",
            )
        T, G_f, G_g = self.horizon, self.loss_lipschitz, self.constraint_lipschitz
        R = self.K.radius
        A = 1.0 / (2.0 * s.eta) + (s.eta + 2.0 * s.nu) * s.block * T + 1.25 * math.sqrt(s.tol) * T
        return Bound(A * G_f * R, violation_bound(A + 2.0 * T, T, s.nu, s.theta) * G_g * R)

    def bound(self, record: Record) -> Bound:
        state = self.with_open_block(record.final_state)
        return state.epoch.bound(*self.epoch_bound(state))

    def limit_price(self, state: State) -> float:
        G_f, G_g = state.slopes
        return state.saddle.lam * (G_f / G_g if G_f > 0.0 and G_g > 0.0 else 1.0)

    def known_slopes(self, state: State) -> Slopes:
        return state.slopes

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=2, calls_per_round=0.7),
            cls(K, horizon=max(1, horizon // 3), calls_per_round=5.0),
            cls(K, block=3),
        )
