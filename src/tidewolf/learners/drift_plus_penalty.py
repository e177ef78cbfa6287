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
`guarantee()` is known beforehand for given G_f, G_g and T, M = number of blocks, every step exact,
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
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.errors import NotSupported
from tidewolf.core.feedback import FullInformation, require_full_information
from tidewolf.core.oracle import HasLMO
from tidewolf.learners.theorem.constants import Constants, WithTheorem
from tidewolf.learners.theorem.drift_plus_penalty import DriftPlusPenaltyConstants
from tidewolf.methods.base import NEEDS_SLOPES, Bound, Learner, Record
from tidewolf.methods.clock import Epoch
from tidewolf.methods.projected import Banked, ProjectedPoint, Projecting, Projection
from tidewolf.methods.settings import (
    BlockLength,
    CallsPerRoundOrNone,
    ConstraintLipschitz,
    FinerTolerance,
    HardSetK,
    Horizon,
    LossLipschitz,
)
from tidewolf.methods.steps.drift import (
    DRIFT_ACCURACY,
    DriftBlock,
    Last,
    Tally,
    bound,
    bound_between,
    drift,
)
from tidewolf.methods.steps.drift_blocks import (
    DriftSlopes,
    DriftSteps,
    DriftSums,
    empty_drift_sums,
    guarantee_on_intervals,
    look_at_rounds,
)
from tidewolf.methods.steps.slopes import Slopes, tangent_part, unit_length
from tidewolf.sets.base import ConvexSet


class State(NamedTuple):
    """Where it stands, the open block, the stretch it is in, the slopes, and the sums of the
    bounds.
    """

    t: int
    point: ProjectedPoint
    open: DriftSums
    epoch: Epoch
    slopes: DriftSlopes
    oracle_budget: float = 0.0
    calls: int = 0
    last: Last = Last()
    tally: Tally = Tally()

    @property
    def distance(self) -> float:
        return self.point.distance


def drift_block(T: int, B: float, block: int | None = None) -> tuple[int, float | None]:
    """The block for T rounds with B oracle calls a round, and the tol its calls always reach; None
    where the budget alone rules.
    """
    b = max(1, min(T, block or round(2.6 * math.sqrt(T / B))))
    return b, 8.0 / (B * b - 4.0) if B * b > 12.0 else None


@final
@dataclass(frozen=True, eq=False, repr=False)
class DriftPlusPenalty(WithTheorem[State], Projecting[State]):
    """The paper's drift-plus-penalty learner, which holds on every interval; unit-free, with a
    budget of oracle calls.

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
    constants : DriftPlusPenaltyConstants, optional
        The paper's constants, as `DriftPlusPenalty.theorem` gives them. None: steps that need
        no units, on a budget of calls.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (300, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (300, 1)), np.full(300, 0.5))
    >>> run = tw.run(tw.DriftPlusPenalty(K, horizon=300), tw.Stream(losses, limits))
    >>> bool(run.violations.mean() < 0.05)
    True
    """

    needs: ClassVar = FullInformation
    state_type: ClassVar = State
    constants_type: ClassVar = DriftPlusPenaltyConstants
    exponents: ClassVar = (0.75, 0.875)
    # each of two answers is within sqrt(2 DRIFT_ACCURACY) R of the best
    accuracy: ClassVar = 3.0 * math.sqrt(DRIFT_ACCURACY)

    K: HardSetK
    horizon: Horizon = None
    calls_per_round: CallsPerRoundOrNone = 1.0
    loss_lipschitz: LossLipschitz = None
    constraint_lipschitz: ConstraintLipschitz = None
    block: BlockLength = None
    tolerance: FinerTolerance = 1e-3
    constants: Annotated[
        DriftPlusPenaltyConstants | None,
        Constants(
            "The paper's constants, as `DriftPlusPenalty.theorem` gives them. None: steps that "
            "need no units, on a budget of calls.",
            kind=DriftPlusPenaltyConstants,
        ),
    ] = None

    def start(self) -> State:
        point = ProjectedPoint.start(self.K, self.first_point)
        slopes = DriftSlopes(*self.given_slopes.initial)
        return State(0, point, self._no_sums, self.first_epoch(), slopes)

    def block_length(self, state: State) -> int:
        return self._steps(state.epoch.horizon, Slopes(1.0, 1.0)).block

    def rounds_open(self, state: State) -> int:
        return state.open.rounds

    def update(self, state: State, feedback: FullInformation) -> State:
        state = self.in_epoch(state)
        left, point = self.rounds_left(state), state.point
        self._require(feedback, left)
        with np.errstate(all="ignore"):  # what overflows is refused with a sentence
            sums, slopes = look_at_rounds(
                self.K, point.x, point.y, state.open, state.slopes, self.given_slopes, feedback
            )
        state = state._replace(t=state.t + feedback.rounds, slopes=slopes)
        if feedback.rounds < left:
            limits = sums.limits.and_then(feedback.constraints)
            return state._replace(open=sums._replace(limits=limits))
        block = sums._replace(limits=sums.limits.with_last(feedback.constraints))
        return self.finish_block(state._replace(open=self._no_sums), block)

    def _require(self, feedback: object, most: int) -> None:
        """Refuse feedback of another kind, on too many rounds, of the wrong shape, or defined on
        the set alone.
        """
        for batch in require_full_information(feedback, self.K.shape, most):
            if batch.domain is not None:
                raise NotSupported(
                    f"{type(self).__name__} evaluates functions outside the set, and "
                    f"{type(batch).__name__} is only defined on {batch.domain}. Use "
                    "LyapunovDescent or PrimalDual, which do not."
                )

    def step(self, state: State, block: DriftSums) -> State:
        """The drift-plus-penalty step."""
        K, n, point, slopes = self.K, block.rounds, state.point, state.slopes
        known = slopes.largest.loss
        gradient, slope = tangent_part(
            K, "loss", block.loss_gradient, n, self.loss_lipschitz, known
        )
        G_f = max(slopes.loss, slope)
        s = self._steps(state.epoch.horizon, Slopes(G_f or 1.0, slopes.constraint or 1.0))
        reach = min(2.0 * K.radius, K.diameter + point.distance)
        whole = DriftBlock(
            rounds=n,
            constraints=block.limits.whole(),
            loss_gradient=gradient / (G_f or 1.0),
            difference=block.difference,
            breached_slopes=block.breached_slopes,
            y=point.y,
            distance=point.distance,
            reach=self.first_reach if state.t == n else reach,
        )
        here = self._set_on_host
        z, tally, last = drift(K, whole, G_f, s.alpha, s.delta, state.last, state.tally, here)
        return state._replace(
            point=point.moved_to(frozen(z)),
            slopes=slopes._replace(loss=G_f),
            last=last,
            tally=tally,
        )

    @cached_property
    def _set_on_host(self) -> HasLMO:
        """The set in NumPy's arrays, which the solvers of the step work on."""
        if isinstance(self.K, ConvexSet) and type(self.K.center) is not np.ndarray:
            return self.K.to(np.zeros(1))
        return self.K

    def renew(self, state: State) -> State:
        return state._replace(last=Last())

    def projection(self, state: State) -> Projection:
        T, R2 = state.epoch.horizon, unit_length(self.K) ** 2
        if self.constants is not None:
            return self.constants.projection(self.K, T)
        _, tol = self._block(T)
        return Banked((tol or self.tolerance) * R2, self.tolerance * R2)

    def _steps(self, T: int, slopes: Slopes) -> DriftSteps:
        """For a stretch of T rounds and these slopes, both above 0."""
        if self.constants is not None:
            return self.constants.steps(self.K, T, slopes)
        b, _ = self._block(T)
        return DriftSteps(
            b, math.sqrt(T / b) / (2.0 * unit_length(self.K)), math.sqrt(T) / slopes.constraint
        )

    def _block(self, T: int) -> tuple[int, float | None]:
        assert self.calls_per_round is not None
        return drift_block(T, self.calls_per_round, self.block)

    @cached_property
    def _no_sums(self) -> DriftSums:
        return empty_drift_sums(self.K.center)

    def guarantee(self) -> Bound:
        if self.horizon is None or self.loss_lipschitz is None or self.constraint_lipschitz is None:
            return NEEDS_SLOPES
        T, slopes = self.horizon, self.given_slopes.initial
        if self.constants is not None:
            return self.constants.guarantee(self.K, T, slopes)
        b, tol = self._block(T)
        if tol is None:
            spent = f"Blocks of {b} rounds with {self.calls_per_round:g} oracle calls a round"
            return Bound(
                None,
                None,
                f"{spent} are too short for a tolerance to be promised: bounds are measured.",
            )
        steps, distance = self._steps(T, slopes), math.sqrt(tol) * unit_length(self.K)
        return guarantee_on_intervals(T, steps, distance, unit_length(self.K), slopes)

    def slopes(self, state: State) -> Slopes:
        return Slopes(
            self.loss_lipschitz or state.slopes.met_loss,
            self.constraint_lipschitz or state.slopes.met_constraint,
        )

    def measures(self, state: State) -> tuple[float, ...]:
        return state.tally

    def _edge(self, state: State) -> tuple[float, float]:
        """What a round outside whole blocks costs at most, in regret and in violation: its slope at
        x times the diameter.
        """
        D, met = self.K.diameter, state.slopes
        return met.steepest_loss * D, met.steepest_constraint * D

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        return bound(state.tally, state.t, self._edge(state))

    def bound_between(self, record: Record, start: int, stop: int) -> Bound:
        return bound_between(record.measures, start, stop, self._edge(record.final_state))

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=2, calls_per_round=0.7),
            cls(K, horizon=max(1, horizon // 3), calls_per_round=5.0),
            cls(K, block=3),
        )
