"""Primal-dual play with approximately feasible projections
(Garber & Kretzu 2024, Algorithm 4, Theorem 4.1).

    block of n <= b rounds at x, gradients at x within aff(K):
    y    <-  ball( y - eta sum_t (grad f_t + lam grad g_t^+) )                            (primal)
    x, y <-  AFP(y from x), |x - y|^2 <= 3 eps                                            (feasible)
    lam  <-  max(0, lam + eta sum_t (g_t^+ - delta eta lam))                              (dual)

The theorem's settings, `PrimalDual.theorem(...)`, are

    b = floor(T^{1/2}),   eta = T^{-3/4},   delta = 32 (G_g^2 + G_g R) T^{1/2} sqrt(ln T),
    eps = 61 R^2 T^{-1/2} ln T.

They depend on the units, do not move unless T is in the hundred thousands, and guarantee nothing
before that. So without eta and delta the steps are free of units,

    y    <-  ball( y - eta R sum_t (grad f_t/G_f + lam grad g_t^+/G_g) ),
    lam  <-  max(0, lam + nu sum_t (g_t^+/(G_g R) - theta lam)),

G_f and G_g given, or the largest slopes of a block so far: eta = 1/sqrt(2 b T), nu = 1/(2 sqrt(b
T)) and theta the least number with

    theta/2 >= eta b + nu b theta^2/2 + sqrt(tol)                                         (C)

(1/2 if there is none). Without eps, with B oracle calls per round, b = 1.46 sqrt(T/B) and tol =
8/(B b - 4) of |x - y|^2 <= tol R^2, which B b calls always reach; calls that are left bring x
nearer, to `tolerance` R^2. Errata of the paper: the ball is around the center, a last, shorter
block is followed by no projection, and the projection tests the distance before it calls the
oracle.

`guarantee()` is known beforehand for given G_f, G_g and T, if some point keeps every constraint. As
printed, with b, eta, delta, eps as given and the condition of the theorem's proof,

    delta^2 eta^3 b^2 + eta b^2 G_g^2 + G_g sqrt(3 eps) b  <=  eta b delta/2:
    regret    <= A = 2R^2/eta + (G_f^2 + 4 G_g^2 R^2) eta b T + sqrt(3 eps) (G_f + G_g/4) T,
    violation <= sqrt( 2 (delta eta T + 1/eta) (A + 2 R G_f T) );

without units, if (C) has a root,

    regret <= A G_f R,   A = 1/(2 eta) + (eta + 2 nu) b T + 1.25 sqrt(tol) T,
    violation <= sqrt( 2 (theta T + 1/nu) (A + 2T) ) G_g R.

The first condition with the theorem's settings, divided by eta b delta, is easier for larger T of
equal b (its terms in T fall, that of eps stays) and for larger squares T = b^2, where it is hardest
for its b.

`bound(record)` is the measured one of methods/steps/saddle.py, which needs none of that and is
never above the guarantee. With running G_f the regret of block m is a price times its own G_f, and
a G_f that grows costs (G_f' - G_f) D_m^2/(2 eta R), D_m = min(2R, D + |x_m - y_m|), as in
methods/steps/adagrad.py; the violation is at most G_g R sum q_m for the last G_g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

from tidewolf.core.arrays import frozen
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.types import Array
from tidewolf.methods.available import PlaysAround
from tidewolf.methods.base import NEEDS_SLOPES, Bound, Record
from tidewolf.methods.clock import BlockLearner, Epoch
from tidewolf.methods.late import Deferred, Overrides
from tidewolf.methods.paper import SaddleLearner, least_horizon, theorem_eps
from tidewolf.methods.projected import ProjectedPoint
from tidewolf.methods.settings import FinerTolerance, takes_start
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.saddle import (
    SaddleSums,
    Units,
    kept_possible,
    moderate,
    saddle_step,
    violation_bound,
)
from tidewolf.methods.steps.slopes import Slopes, tangent_gradients, unit_length


class State(NamedTuple):
    """Where it stands, the open block, the epoch, the slopes, and the measured
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
    """of this epoch"""
    pending: tuple[Deferred, ...] = ()
    lost: int = 0
    overrides: Overrides = Overrides()
    upcoming: Array | None = None
    """the decision, where entries are out in the coming round"""

    @property
    def distance(self) -> float:
        return self.point.distance


def theorem_values(T: int, R: float, G_g: float) -> dict[str, float]:
    """The settings of Theorem 4.1 for T rounds."""
    return {
        "block": math.isqrt(T),
        "eta": float(T) ** -0.75,
        "delta": 32.0 * (G_g**2 + G_g * R) * math.sqrt(T * (math.log(T) or 1.0)),
        "eps": theorem_eps(T, R),
    }


def condition(b: float, eta: float, delta: float, tol: float, G_g: float) -> bool:
    """Whether the theorem's condition holds, with |x - y|^2 <= tol."""
    left = delta**2 * eta**3 * b**2 + eta * b**2 * G_g**2 + G_g * math.sqrt(tol) * b
    return left <= eta * b * delta / 2.0


def theorem_horizon(R: float, G_g: float) -> int:
    """The horizon from which on it holds for the theorem's own settings."""

    def holds(T: int) -> bool:
        b, eta, delta, eps = theorem_values(T, R, G_g).values()
        return condition(b, eta, delta, 3.0 * eps, G_g)

    return least_horizon(holds)


@takes_start
@final
@dataclass(frozen=True, eq=False, repr=False)
class PrimalDual(SaddleLearner[State], PlaysAround[State], BlockLearner[State]):
    """The paper's primal-dual learner: with its own settings as printed, or with unit-free steps
    and a budget of oracle calls.

    Parameters
    ----------
    K : HasLMO
        The set that every played point belongs to.
    horizon : int, optional
        How many rounds will be played. None: unknown; it starts from 256 and restarts with
        twice as many whenever they are over. Unit: rounds.
    calls_per_round : float, optional
        How often the set's oracle may be asked, on average over the rounds so far; calls that
        are not spent are kept for later. None: 1, or with `eps` as many as the paper's own
        projections take. Unit: oracle calls a round.
    loss_lipschitz : float, optional
        The largest slope a loss may have, on average over rounds seen together; steeper ones
        are refused. None: learned from what is seen, and nothing is promised beforehand.
    constraint_lipschitz : float, optional
        The largest slope a constraint may have, on average over rounds seen together; steeper
        ones are refused. None: learned from what is seen, and nothing is promised beforehand.
    block : int, optional
        How many rounds are played at a point before it moves. None: chosen for the horizon and
        the budget of calls. Unit: rounds.
    eps : float, optional
        The tolerance of the paper's projections, which end at |x - y|^2 <= 3 eps; it takes the
        place of other tolerances. None: as near as the budget of calls allows.
    start_at : array, optional
        The member of the set that is played first, such as what is installed now; may be given
        as `start`. None: the set's center.
    eta : float, optional
        The step of the paper's algorithm, in the units of the caller. None: a step without
        units, or with `delta` the theorem's.
    delta : float, optional
        The damping of the multiplier in the paper's algorithm, in the units of the caller.
        None: damping without units, or with `eta` the theorem's.
    tolerance : float, default 0.001
        The squared distance of the played point from its companion that calls left over are
        spent on, as a share of radius^2.

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
    printed: ClassVar = {"eta": 0.1, "delta": 1.0}
    delta_needs: ClassVar = ("constraint_lipschitz",)

    tolerance: FinerTolerance = 1e-3

    def theorem_values(self, T: int) -> dict[str, float]:
        return theorem_values(T, unit_length(self.K), self.constraint_lipschitz or 0.0)

    def start(self) -> State:
        point, slopes = ProjectedPoint.start(self.K, self.first_point), self.given_slopes.initial
        return State(0, point, self.no_sums, self.first_epoch(), slopes)

    def _units(self, slopes: Slopes) -> Units:
        if self.as_printed:
            return Units(1.0, 1.0, 1.0)
        return Units(unit_length(self.K), slopes.loss or 1.0, slopes.constraint or 1.0)

    def step(self, state: State, block: FirstOrder) -> State:
        """The primal and the dual step, and what they add to the bounds."""
        K, n, point = self.K, block.rounds, state.point
        gradients = tangent_gradients(K, block, self.given_slopes, state.slopes)
        slopes, unit = gradients.slopes, self._units(gradients.slopes)
        s = self.steps(state.epoch.horizon)

        q, hopeless = kept_possible(block, n * slopes.constraint * K.diameter, K.center)
        if self.as_printed:  # but for what would overflow
            q = min(block.violation, moderate(K.center))
        taken = saddle_step(point.x, point.y, state.saddle.lam, gradients, q, n, s, unit)

        reach = self.reach(state, n)
        priced = 1.0 if self.as_printed else slopes.loss
        saddle = state.saddle.and_step(taken, priced, reach, s.eta, unit.length, hopeless)
        target = frozen(into_ball(taken.y, K.center, K.radius))
        return state._replace(point=point.moved_to(target), slopes=slopes, saddle=saddle)

    def finest2(self, T: int) -> float:
        return self.tolerance * unit_length(self.K) ** 2

    def renew(self, state: State) -> State:
        return state._replace(saddle=SaddleSums())

    def epoch_bound(self, state: State) -> tuple[float, float]:
        K, s, rounds = self.K, self.steps(state.epoch.horizon), state.t - state.epoch.began
        unit = self._units(state.slopes)
        first = min(K.diameter, 2.0 * K.radius) if state.epoch.began else self.first_reach
        steepest = state.slopes.loss if self.as_printed else 1.0
        E = (first / unit.length) ** 2 / (2.0 * s.eta) + state.saddle.energy
        E += steepest * K.diameter / unit.length * rounds
        violation = violation_bound(E, rounds, s.nu, s.theta)
        if not self.as_printed and violation < math.inf:
            violation *= state.slopes.constraint * unit.length
        return state.saddle.regret_bound, violation

    def bound(self, record: Record) -> Bound:
        state = self.with_open_block(record.final_state)
        return state.epoch.bound(*self.epoch_bound(state))

    def condition_at(self, T: int, distance2: float) -> bool:
        s, G_g = self.steps(T), self.constraint_lipschitz or 0.0
        return condition(self.block_for(T), s.eta, s.theta / s.eta, distance2, G_g)

    def theorem_horizon(self) -> int:
        return theorem_horizon(self.K.radius, self.constraint_lipschitz or 0.0)

    def guarantee(self) -> Bound:
        """What is known before the first round of a run of `horizon` rounds."""
        T, G_f, G_g = self.horizon, self.loss_lipschitz, self.constraint_lipschitz
        if T is None or G_f is None or G_g is None:
            return NEEDS_SLOPES
        R, b, s, tol = self.K.radius, self.block_for(T), self.steps(T), self.known_distance2(T)
        if self.as_printed:
            if tol is None or self.condition_concern():
                return Bound(None, None, " ".join(self.concerns))
            A = 2.0 * R**2 / s.eta + (G_f**2 + 4.0 * G_g**2 * R**2) * s.eta * b * T
            A += math.sqrt(tol) * (G_f + G_g / 4.0) * T
            return Bound(A, violation_bound(A + 2.0 * R * G_f * T, T, s.eta, s.theta))
        if tol is None or not s.root:
            return self.nothing_known(T)
        distance = math.sqrt(tol) / unit_length(self.K)
        A = 1.0 / (2.0 * s.eta) + (s.eta + 2.0 * s.nu) * b * T + 1.25 * distance * T
        return Bound(A * G_f * R, violation_bound(A + 2.0 * T, T, s.nu, s.theta) * G_g * R)

    def limit_price(self, state: State) -> float:
        G_f, G_g = state.slopes
        if self.as_printed or not (G_f > 0.0 and G_g > 0.0):
            return state.saddle.lam
        return state.saddle.lam * (G_f / G_g)

    def known_slopes(self, state: State) -> Slopes:
        return state.slopes
