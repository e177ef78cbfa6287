"""Primal-dual play from values alone, unit-free  (after Garber & Kretzu 2024, Algorithm 5).

    block of k <= b rounds around x, each played at z_t = x + mu u_t,
                  values f_t(z_t) and g_t(z_t) seen:
    d    <-  sum_t ( (f_t - base)/M_f + lam (g_t^+ - base)/M_g ) u_t,
    S <- S + |d|^2                                                                        (estimate)
    y    <-  ball( y - (2R'/sqrt(2S)) d ),   R' = (1 - mu/r) R the ball's radius          (primal)
    x, y <-  ActiveSet(y from x) on the shrunk set, |x - y|^2 <= tol R^2,
             spending calls from the bank                                                 (feasible)
    lam  <-  max(0, lam + nu sum_t (g_t^+/M_g - theta lam))                               (dual)

u_t, the bases and the shrunk set c + (1 - mu/r)(K - c), where x lives, are those of
methods/steps/one_point.py; n is the dimension of aff(K). With T rounds and B oracle calls a round:
b, nu, theta and tol as in `PrimalDual`, and mu = min(sqrt(n r/R) T^{-1/4} R, r/2). The factor n/mu
that makes d an estimate of the gradient is the same in every block, and the step is blind to it.
What is left of the bank refines the projection until |x - y| <= mu/4, which can only bring x and y
nearer. M_f and M_g are given sizes, or half the range of the losses and the largest breach seen
before this block (S is kept in units of M_f where that grows): rescaling x, f or g changes no
decision, nor does adding a constant to the losses. A last, shorter block is followed by no
projection.

All that is known is known in expectation over the learner's own coins, for functions chosen without
looking at them: a run measures no bound. `guarantee()` holds for given slopes G, sizes M and T, if
some point x* keeps every constraint. In units R = M_f = M_g = 1, with slopes k_f = G_f R/M_f,
k_g = G_g R/M_g and tau = sqrt(tol),

    regret    <= A + T mu k_f (1 + 1/r),
    violation <= sqrt( 2 (theta T + 1/nu) (A + 2T min(1, k_f)) ),
    A = 2 sqrt(2) sqrt( T (4 n^2/mu^2 + b k_f^2) ) + tau k_f T + nu b T/2 + 2 min(1, k_f)
        + C^2/(2 theta (1 - nu b theta)),
    C = 2 sqrt(2) sqrt( n^2/mu^2 + b k_g^2 ) + (tau k_g + a) sqrt(T),
    a = mu k_g + (mu/r) min(1, k_g).

Proof. Let d have its factor n/mu, z = c + (1 - mu/r)(x* - c), F and H the averages of f and g^+
over balls of radius mu, k_m the rounds of block m, p^2 = E sum_m k_m lam^2. (i) d estimates the
gradient of sum F + lam H at x, but for the very first round, which has no base and costs at most 2
min(1, k_f). So E sum [F(x) - F(z) + lam (H(x) - H(z))] <= E sum_m <d, x - y> + E sum_m <d, y - z>.
In the first sum x - y is settled before u: it is at most tau E sum_m k_m (k_f + lam k_g). The
second is at most 2 sqrt(2) E sqrt(S) (methods/steps/adagrad.py with |y - z| <= 2R), and E |d|^2 is
a variance, at most k_m (n/mu)^2 (2 + lam)^2, plus a squared mean, at most k_m^2 (k_f + lam k_g)^2:
so E sqrt(S) <= sqrt( T (4 n^2/mu^2 + b k_f^2) ) + sqrt( n^2/mu^2 + b k_g^2 ) p. (ii) As in
methods/steps/saddle.py, with q the breaches seen, for every l >= 0: l sum q - (theta T + 1/nu)
l^2/2 <= sum lam q + nu b T/2 - (theta/2)(1 - nu b theta) sum_m k_m lam^2. (iii) In a round E
g^+(z_t) <= H(x) + mu k_g/(n + 1), H(z) <= g^+(z) + mu k_g n/(n + 1), g^+(z) <= (mu/r)
g^+(c) <= (mu/r) min(1, k_g), and sum_m k_m lam <= sqrt(T) p. Add (i) and (ii): what is left of lam
is C p - (theta/2)(1 - nu b theta) p^2, at most the last term of A; take l = 0, and the best l.
Last, E f(z_t) <= F(x) + mu k_f/(n + 1), F(z) <= f(z) + mu k_f n/(n + 1), f(z) <= f(x*) + (mu/r)
k_f.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import frozen, inner
from tidewolf.core.feedback import MODERATE, Bandit
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.learners.theorem.bandit_primal_dual import BanditPrimalDualConstants
from tidewolf.learners.theorem.constants import Assumed, Constants, WithConstants, own_start
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.clock import Epoch
from tidewolf.methods.exploring import (
    NO_VALUES,
    ExplorableSet,
    Explored,
    Explorer,
    as_explorable,
)
from tidewolf.methods.projected import Banked, ProjectedPoint, Projection
from tidewolf.methods.settings import (
    BlockLength,
    CallsPerRoundOrNone,
    ConstraintLipschitz,
    ConstraintSize,
    ExplorationSeed,
    Horizon,
    LossLipschitz,
    LossSize,
)
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.one_point import centred, combined, room_to_explore
from tidewolf.methods.steps.saddle import SaddleSteps, saddle_steps, violation_bound
from tidewolf.methods.steps.slopes import unit_length
from tidewolf.projection import ActiveSet
from tidewolf.sets import Shrunk
from tidewolf.sets.base import ConvexSet

IN_EXPECTATION = (
    "Bandit bounds hold in expectation over the learner's own coins: `guarantee()` states them, "
    "and "
    "no single run measures one."
)
_FINE = 0.25
"""What is left of the bank brings x this near to y, in units of mu."""


class SeenValues(NamedTuple):
    """What was seen of the functions' sizes, and their means over the last block."""

    least_loss: float = math.inf
    largest_loss: float = -math.inf
    largest_breach: float = 0.0
    mean_loss: float = 0.0
    mean_breach: float = 0.0
    mean_rounds: int = 0
    """of how many rounds the means are: those of the last block"""


class State(NamedTuple):
    """Where it stands, the open block, the stretch it is in, and what was seen of values."""

    t: int
    point: ProjectedPoint
    open: Bandit
    epoch: Epoch
    oracle_budget: float = 0.0
    calls: int = 0
    values: SeenValues = SeenValues()
    lam: float = 0.0
    square_sum: float = 0.0
    """S"""

    @property
    def distance(self) -> float:
        return self.point.distance


@final
@dataclass(frozen=True, eq=False, repr=False)
class BanditPrimalDual(WithConstants[State], Explorer[State]):
    """The paper's bandit learner, unit-free, with a budget of oracle calls;
    `BanditPrimalDual.theorem` is the paper's own.

    Parameters
    ----------
    K : ConvexSet
        The set that every played point belongs to; it knows an `inner_radius`, within which to
        explore.
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
    loss_size : float, optional
        The largest absolute value a loss may have; larger ones are refused. None: half the
        range seen so far, and nothing is promised beforehand.
    constraint_size : float, optional
        The largest absolute value a constraint may have; larger ones are refused. None: the
        largest breach seen so far, and nothing is promised beforehand.
    block : int, optional
        How many rounds are played at a point before it moves. None: chosen for the horizon and
        the budget of calls. Unit: rounds.
    seed : int, default 0
        The seed of the directions in which it explores.
    constants : BanditPrimalDualConstants, optional
        The paper's constants, as `BanditPrimalDual.theorem` gives them. None: steps that need
        no units, on a budget of calls.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (300, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (300, 1)), np.full(300, 0.5))
    >>> run = tw.run(tw.BanditPrimalDual(K, horizon=300, seed=7), tw.Stream(losses, limits))
    >>> bool(run.oracle_calls <= 300)
    True
    >>> K.infeasibility(run.learner.act(run.final_state)) < 1e-9
    True
    """

    state_type: ClassVar = State
    exponents: ClassVar = (0.75, 0.875)

    K: Annotated[
        ConvexSet,
        ExplorableSet(
            "The set that every played point belongs to; it knows an `inner_radius`, within which "
            "to explore."
        ),
    ]
    horizon: Horizon = None
    calls_per_round: CallsPerRoundOrNone = 1.0
    loss_lipschitz: LossLipschitz = None
    constraint_lipschitz: ConstraintLipschitz = None
    loss_size: LossSize = None
    constraint_size: ConstraintSize = None
    block: BlockLength = None
    seed: ExplorationSeed = 0
    constants: Annotated[
        BanditPrimalDualConstants | None,
        Constants(
            "The paper's constants, as `BanditPrimalDual.theorem` gives them. None: steps that "
            "need no units, on a budget of calls.",
            kind=BanditPrimalDualConstants,
        ),
    ] = None

    @staticmethod
    def theorem(
        K: ConvexSet,
        *,
        horizon: int,
        loss_lipschitz: float,
        constraint_lipschitz: float,
        loss_size: float,
        constraint_size: float,
        start: Array | None = None,
        seed: int = 0,
    ) -> BanditPrimalDual:
        """The paper's constants; warns if the horizon is too short for them to move the point or
        to guarantee anything.
        """
        learner = BanditPrimalDual(
            K,
            horizon,
            None,
            loss_lipschitz,
            constraint_lipschitz,
            loss_size,
            constraint_size,
            seed=seed,
            constants=BanditPrimalDualConstants(own_start(K, start, "BanditPrimalDual")),
        )
        learner.warn()
        return learner

    def start(self) -> State:
        epoch = self.first_epoch()
        point = ProjectedPoint.start(self._shrunk(epoch.horizon), self.first_point)
        return State(0, point, NO_VALUES, epoch)

    def block_length(self, state: State) -> int:
        T = state.epoch.horizon
        if self.constants is not None:
            return self.constants.steps(self.K, T, self.assumed).block
        return self._steps(T).block

    def exploration_radius(self, state: State) -> float:
        return self._mu(state.epoch.horizon)

    def step(self, state: State, block: Explored) -> State:
        """The primal and the dual step."""
        T, point = state.epoch.horizon, state.point
        if self.constants is not None:
            taken = self.constants.step(self.K, T, self.assumed, point.y, state.lam, block)
            return state._replace(point=point.moved_to(frozen(taken.y)), lam=taken.lam)
        s, n, shrunk = self._steps(T), block.rounds, self._shrunk(T)
        losses, breaches = block.losses, np.maximum(block.constraints, 0.0)
        before = state.values
        feedback = SeenValues(
            least_loss=min(before.least_loss, float(losses.min())),
            largest_loss=max(before.largest_loss, float(losses.max())),
            largest_breach=max(before.largest_breach, float(breaches.max())),
            mean_loss=float(losses.mean()),
            mean_breach=float(breaches.mean()),
            mean_rounds=n,
        )
        M_f, M_g = self._sizes(feedback)
        M_f_before, M_g_before = self._sizes(before)
        unit, M_g_before = (M_f_before or M_f) / (M_f or 1.0), M_g_before or 1.0

        breached = centred(breaches, before.mean_breach, before.mean_rounds)
        most = MODERATE * M_g_before
        c = centred(losses, before.mean_loss, before.mean_rounds) / (M_f or 1.0)
        c = c + (unit * state.lam) * (np.clip(breached, -most, most) / M_g_before)
        size = float(np.abs(c).max()) or 1.0  # apart, as the dtype of u may not hold its square
        d = combined(c / size, block.directions)
        y, S = point.y, state.square_sum * unit**2 + size * size * inner(d, d)
        if S > 0.0:
            y = y - (2.0 * shrunk.radius * size / math.sqrt(2.0 * S)) * d
        h = float(breaches.sum()) / (M_g or 1.0) - n * s.theta * state.lam
        return state._replace(
            point=point.moved_to(frozen(into_ball(y, shrunk.center, shrunk.radius))),
            values=feedback,
            lam=max(0.0, state.lam + s.nu * h),
            square_sum=S,
        )

    def projected_set(self, state: State) -> Shrunk:
        return self._shrunk(state.epoch.horizon)

    def projection(self, state: State) -> Projection:
        T = state.epoch.horizon
        if self.constants is not None:
            return self.constants.projection(self.K, T)
        tol, finer2 = self._steps(T).tol, (_FINE * self._mu(T)) ** 2
        return Banked(tol * unit_length(self.K) ** 2 if tol else finer2 or 1.0, finer2)

    def renew(self, state: State) -> State:
        """What was seen of the functions stays known."""
        point = state.point
        if self.constants is None:  # an active set of the larger set, now that it explores less
            point = ProjectedPoint.of(ActiveSet.start(self._shrunk(state.epoch.horizon), point.x))
        return state._replace(point=point, lam=0.0, square_sum=0.0)

    def _sizes(self, feedback: SeenValues) -> tuple[float, float]:
        """M_f and M_g, as far as they are known; 0 where nothing is."""
        return (
            self.loss_size or max(0.0, 0.5 * (feedback.largest_loss - feedback.least_loss)),
            self.constraint_size or feedback.largest_breach,
        )

    def _steps(self, T: int) -> SaddleSteps:
        assert self.calls_per_round is not None
        return saddle_steps(T, self.calls_per_round, self.block)

    def _mu(self, T: int) -> float:
        """How far around x it explores."""
        if self.constants is not None:
            return self.constants.mu(self.K, T)
        r, R = self.K.inner_radius or 0.0, unit_length(self.K)
        wanted: float = math.sqrt(self.K.dimension * r / R) * float(T) ** -0.25 * R
        return min(wanted, 0.5 * r)

    def _shrunk(self, T: int) -> Shrunk:
        return room_to_explore(self.K, self._mu(T))

    @property
    def assumed(self) -> Assumed:
        return Assumed(
            self.loss_lipschitz or 0.0,
            self.constraint_lipschitz or 0.0,
            self.loss_size or 0.0,
            self.constraint_size or 0.0,
        )

    def guarantee(self) -> Bound:
        """What is known, in expectation, before the first round of a run of `horizon` rounds."""
        G_f, G_g = self.loss_lipschitz, self.constraint_lipschitz
        M_f, M_g = self.loss_size, self.constraint_size
        if self.horizon is None or G_f is None or G_g is None or M_f is None or M_g is None:
            return Bound(
                None,
                None,
                "A promise needs horizon, loss_lipschitz, constraint_lipschitz, loss_size and "
                "constraint_size.",
            )
        T, n = self.horizon, self.K.dimension
        if self.constants is not None:
            return self.constants.guarantee(self.K, T, self.assumed)
        s = self._steps(T)
        b, nu, theta = s.block, s.nu, s.theta
        if s.tol is None:
            spent = (
                f"{T} rounds in blocks of {b} with {self.calls_per_round:g} oracle calls a round"
            )
            return Bound(
                None,
                None,
                f"With {spent} no distance of the projections is known beforehand, and nothing is "
                "promised.",
            )
        if n == 0:
            return Bound(0.0, 0.0)
        R, tau = self.K.radius, math.sqrt(s.tol)
        mu, r = self._mu(T) / R, (self.K.inner_radius or 0.0) / R
        k_f, k_g = G_f * R / M_f, G_g * R / M_g
        a = mu * k_g + mu / r * min(1.0, k_g)
        C = math.sqrt(8.0 * (n**2 / mu**2 + b * k_g**2)) + (tau * k_g + a) * math.sqrt(T)
        A = (
            math.sqrt(8.0 * T * (4.0 * n**2 / mu**2 + b * k_f**2))
            + tau * k_f * T
            + nu * b * T / 2.0
            + 2.0 * min(1.0, k_f)
        )
        A += C**2 / (2.0 * theta * (1.0 - nu * b * theta))
        return Bound(
            M_f * (A + T * mu * k_f * (1.0 + 1.0 / r)),
            M_g * violation_bound(A + 2.0 * T * min(1.0, k_f), T, nu, theta),
        )

    def bound(self, record: Record) -> Bound:
        return Bound(None, None, IN_EXPECTATION)

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        K = as_explorable(K, cls.__name__)
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=2, calls_per_round=0.7, seed=1),
            cls(K, horizon=max(1, horizon // 3), calls_per_round=5.0),
            cls(K, block=3),
        )
