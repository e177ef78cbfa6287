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

`guarantee()` is known beforehand for given G_f, G_g and T, if some point satisfies every
constraint. As printed, with b, eta, delta, eps as given and the condition of the theorem's proof,

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

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

from tidewolf.core import arrays, round_info
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.types import Array
from tidewolf.methods import base, clock, late, paper, settings
from tidewolf.methods.available import entries_out, restricted
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.saddle import PRINTED, SaddleSums, Units, violation_bound
from tidewolf.methods.steps.slopes import Slopes, tangent_gradients, unit_length


class State(NamedTuple):
    t: int
    point: paper.ProjectedPoint
    open: FirstOrder
    epoch: clock.Epoch
    slopes: Slopes
    oracle_budget: float = 0.0
    calls: int = 0
    saddle: SaddleSums = SaddleSums()  # of this epoch
    pending: tuple[late.Deferred, ...] = ()
    lost: int = 0
    overrides: late.Overrides = late.Overrides()
    upcoming: Array | None = None  # the decision, where entries are out in the coming round

    @property
    def distance(self) -> float:
        return self.point.distance


@settings.takes_start
@final
@dataclass(frozen=True, eq=False, repr=False)
class PrimalDual(paper.SaddleLearner[State], clock.BlockLearner[State]):
    """The paper's primal-dual learner: with its own settings as printed, or with unit-free steps
    and a budget of oracle calls.

    Parameters
    ----------
    K : HasLMO
        The hard constraints: every decision is a point of this set.
    horizon : int, optional
        The number of rounds T. None: 256, doubled whenever they are over.
    calls_per_round : float, optional
        The most oracle calls per round, on average over the rounds so far; unspent calls are
        kept. None: 1, or with `eps` as many as the paper's projections need.
    loss_lipschitz : float, optional
        The Lipschitz constant of the losses; steeper losses are refused. None: estimated from
        the feedback, and there is no guarantee before the run.
    constraint_lipschitz : float, optional
        The Lipschitz constant of the constraints; steeper ones are refused. None: estimated
        from the feedback, and there is no guarantee before the run.
    block : int, optional
        Rounds per block, in which the decision is constant. None: chosen from the horizon and
        the calls.
    eps : float, optional
        Projections end at |x - y|^2 <= 3 eps. None: as near as calls allow.
    start_at : array, optional
        The first decision, such as what is installed now; may be given as `start`. None: the
        set's center.
    eta : float, optional
        The step, in the caller's units. None: unit-free, or the theorem's.
    delta : float, optional
        The damping of the multiplier. None: unit-free, or the theorem's.
    tolerance : float, default 0.001
        Unspent calls reduce |x - y|^2 to this share of radius^2.

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

    tolerance: settings.Positive = 1e-3

    def theorem_values(self, T: int) -> dict[str, float]:
        R, G_g = unit_length(self.K), self.constraint_lipschitz or 0.0
        return {
            "block": math.isqrt(T),
            "eta": float(T) ** -0.75,
            "delta": 32.0 * (G_g**2 + G_g * R) * math.sqrt(T * (math.log(T) or 1.0)),
            "eps": paper.theorem_eps(T, R),
        }

    def condition(self, tol: float, b: float, eta: float, delta: float, *more: float) -> bool:
        G_g = self.constraint_lipschitz or 0.0
        left = delta**2 * eta**3 * b**2 + eta * b**2 * G_g**2 + G_g * math.sqrt(tol) * b
        return left <= eta * b * delta / 2.0

    def start(self) -> State:
        point = paper.ProjectedPoint.start(self.K, self.first_point)
        return State(0, point, self.no_sums, self.first_epoch(), self.given_slopes.initial)

    def act(self, state: State) -> Array:
        return state.point.x if state.upcoming is None else state.upcoming

    def stands_at(self, state: State) -> Array:
        return state.point.x

    def with_info(self, state: State, info: round_info.RoundInfo) -> State:
        """Around entries that are out in the coming round."""
        state, point = state._replace(upcoming=None), state.point
        out = entries_out(self.K, info)
        if out is None:
            return state
        found = restricted(self.K, (point.active,), out, point.x - point.before_projection)
        for vertex in found.found:  # for the next round without these entries
            point = point._replace(active=point.active.also(self.K, vertex))
        return self.with_point(state._replace(upcoming=found.points[0]), point, found.calls)

    def taken(self, state: State, feedback: FirstOrder) -> State:
        return super().taken(state, feedback)._replace(upcoming=None)

    def defer(self, state: State) -> State:
        return super().defer(state)._replace(upcoming=None)

    def _units(self, slopes: Slopes) -> Units:
        if self.as_printed:
            return PRINTED
        return Units(unit_length(self.K), slopes.loss or 1.0, slopes.constraint or 1.0)

    def step(self, state: State, block: FirstOrder) -> State:
        K, point, s = self.K, state.point, self.steps(state.epoch.horizon)
        gradients = tangent_gradients(K, block, self.given_slopes, state.slopes)
        unit, reach = self._units(gradients.slopes), self.reach(state, block.rounds)
        y, saddle = state.saddle.stepped(K, point.x, point.y, gradients, block, s, unit, reach)
        target = arrays.frozen(into_ball(y, K.center, K.radius))
        return state._replace(point=point.moved_to(target), slopes=gradients.slopes, saddle=saddle)

    def finest2(self, T: int) -> float:
        return self.tolerance * unit_length(self.K) ** 2

    def renew(self, state: State) -> State:
        return state._replace(saddle=SaddleSums())

    def epoch_bound(self, state: State) -> tuple[float, float]:
        K, s, rounds = self.K, self.steps(state.epoch.horizon), state.t - state.epoch.began
        unit, (G_f, G_g) = self._units(state.slopes), state.slopes
        first = min(K.diameter, 2.0 * K.radius) if state.epoch.began else self.first_reach
        steepest = G_f if self.as_printed else 1.0
        E = (first / unit.length) ** 2 / (2.0 * s.eta) + state.saddle.energy
        E += steepest * K.diameter / unit.length * rounds
        size = 1.0 if self.as_printed else G_g * unit.length
        return state.saddle.regret_bound, violation_bound(E, rounds, s.nu, s.theta, size)

    def bound(self, record: base.Record) -> base.Bound:
        state = self.with_open_block(record.final_state)
        return state.epoch.bound(*self.epoch_bound(state))

    def guarantee(self) -> base.Bound:
        T, G_f, G_g = self.horizon, self.loss_lipschitz, self.constraint_lipschitz
        if T is None or G_f is None or G_g is None:
            return base.NEEDS_SLOPES
        R, b, s, tol = self.K.radius, self.block_for(T), self.steps(T), self.known_distance2(T)
        if self.as_printed:
            if tol is None or self.condition_concern():
                return base.Bound(reason=" ".join(self.concerns))
            A = 2.0 * R**2 / s.eta + (G_f**2 + 4.0 * G_g**2 * R**2) * s.eta * b * T
            A += math.sqrt(tol) * (G_f + G_g / 4.0) * T
            return base.Bound(A, violation_bound(A + 2.0 * R * G_f * T, T, s.eta, s.theta))
        if tol is None or not s.root:
            return self.nothing_known(T)
        distance = math.sqrt(tol) / unit_length(self.K)
        A = 1.0 / (2.0 * s.eta) + (s.eta + 2.0 * s.nu) * b * T + 1.25 * distance * T
        return base.Bound(A * G_f * R, violation_bound(A + 2.0 * T, T, s.nu, s.theta) * G_g * R)

    def limit_price(self, state: State) -> float:
        return state.saddle.lam * (1.0 if self.as_printed else state.slopes.ratio)

    def known_slopes(self, state: State) -> Slopes:
        return state.slopes
