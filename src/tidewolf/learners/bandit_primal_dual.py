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
looking at them: a run measures no bound. `promise()` holds for given slopes G, sizes M and T, if
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
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import frozen, inner
from tidewolf.core.feedback import MODERATE, Bandit
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.learners.primal_dual import Steps, steps_for
from tidewolf.methods.base import Bound, Companion, Learner, Record
from tidewolf.methods.settings import passed_horizon, settle
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.feasible import calls_in, feasible
from tidewolf.methods.steps.lyapunov import FIRST_HORIZON
from tidewolf.methods.steps.one_point import (
    NOTHING,
    Explorer,
    as_explorable,
    centred,
    combined,
    require_size,
    room_to_explore,
)
from tidewolf.methods.steps.saddle import violation_bound
from tidewolf.projection import ActiveSet
from tidewolf.sets import Shrunk
from tidewolf.sets.base import ConvexSet

if TYPE_CHECKING:
    from tidewolf.learners.theorem.bandit_primal_dual import TheoremBanditPrimalDual

IN_EXPECTATION = (
    "Bandit bounds hold in expectation over the learner's own coins: `promise()` states them, and "
    "no single run measures one."
)
_FINE = 0.25
"""What is left of the bank brings x this near to y, in units of mu."""


class State(NamedTuple):
    """Where it stands, the open block, the stretch it is in, and what was seen of the functions'
    sizes.
    """

    t: int
    active: ActiveSet
    aimed: Array
    """where y was before the last projection"""
    y: Array
    lam: float
    open: Bandit
    horizon: int
    began: int
    square_sum: float
    least_loss: float
    largest_loss: float
    largest_breach: float
    mean_loss: float
    mean_breach: float
    mean_rounds: int
    """of how many rounds the means are: those of the last block"""
    distance: float
    bank: float
    calls: int


@final
@dataclass(frozen=True, eq=False, repr=False)
class BanditPrimalDual(Explorer[State]):
    """The paper's bandit learner, unit-free, with a budget of oracle calls;
    `BanditPrimalDual.theorem` is the paper's own.
    """

    state_type: ClassVar = State
    exponents: ClassVar = (0.75, 0.875)

    K: ConvexSet
    horizon: int | None = None
    calls_per_round: float = 1.0
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None
    loss_size: float | None = None
    constraint_size: float | None = None
    block: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        as_explorable(self.K, "BanditPrimalDual")
        settle(self)

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
    ) -> TheoremBanditPrimalDual:
        """The paper's constants to the letter; warns where the horizon is too short for them to do
        or to promise anything.
        """
        from tidewolf.learners.theorem.bandit_primal_dual import TheoremBanditPrimalDual

        learner = TheoremBanditPrimalDual(
            K,
            horizon,
            loss_lipschitz,
            constraint_lipschitz,
            loss_size,
            constraint_size,
            start,
            seed,
        )
        learner.warn()
        return learner

    def start(self) -> State:
        horizon = self.horizon or FIRST_HORIZON
        active = ActiveSet.start(self._shrunk(horizon))
        return State(
            t=0,
            active=active,
            aimed=active.x,
            y=active.x,
            lam=0.0,
            open=NOTHING,
            horizon=horizon,
            began=0,
            square_sum=0.0,
            least_loss=math.inf,
            largest_loss=-math.inf,
            largest_breach=0.0,
            mean_loss=0.0,
            mean_breach=0.0,
            mean_rounds=0,
            distance=0.0,
            bank=0.0,
            calls=0,
        )

    def _end(self, state: State) -> int:
        return state.began + state.horizon

    def _length(self, state: State) -> int:
        return self._steps(state.horizon).block

    def _around(self, state: State) -> tuple[Array, float]:
        return state.active.x, self._mu(state.horizon)

    def _closed(self, state: State, block: Bandit, u: Array) -> State:
        return self._projected(self._stepped(state, block, u))

    def _stepped(self, state: State, block: Bandit, u: Array) -> State:
        """The primal and the dual step at the end of a block."""
        s, k, shrunk = self._steps(state.horizon), block.rounds, self._shrunk(state.horizon)
        losses, breaches = block.loss_values, np.maximum(block.constraint_values, 0.0)
        seen = state._replace(
            least_loss=min(state.least_loss, float(losses.min())),
            largest_loss=max(state.largest_loss, float(losses.max())),
            largest_breach=max(state.largest_breach, float(breaches.max())),
        )
        M_f, M_g = self._sizes(seen)
        unit, M_before = (self._sizes(state)[0] or M_f) / (M_f or 1.0), self._sizes(state)[1] or 1.0

        c = centred(losses, state.mean_loss, state.mean_rounds) / (M_f or 1.0)
        breached = centred(breaches, state.mean_breach, state.mean_rounds)
        c = c + (unit * state.lam) * (
            np.clip(breached, -MODERATE * M_before, MODERATE * M_before) / M_before
        )
        size = float(np.abs(c).max()) or 1.0  # apart, as the dtype of u may not hold its square
        d = combined(c / size, u)
        y, S = state.y, state.square_sum * unit**2 + size * size * inner(d, d)
        if S > 0.0:
            y = y - (2.0 * shrunk.radius * size / math.sqrt(2.0 * S)) * d
        return seen._replace(
            t=state.t + k - state.open.rounds,
            y=into_ball(y, shrunk.center, shrunk.radius),
            lam=max(
                0.0,
                state.lam + s.nu * (float(breaches.sum()) / (M_g or 1.0) - k * s.theta * state.lam),
            ),
            open=NOTHING,
            square_sum=S,
            mean_loss=float(losses.mean()),
            mean_breach=float(breaches.mean()),
            mean_rounds=k,
            bank=state.bank + self.calls_per_round * k,
        )

    def _projected(self, state: State) -> State:
        """A member of the shrunk set near the new y; after the last block none is needed, as
        whoever plays on starts over.
        """
        if state.t == self._end(state):
            return state._replace(aimed=state.active.x, y=state.active.x, distance=0.0)
        aimed, shrunk, fine = (
            frozen(state.y),
            self._shrunk(state.horizon),
            (_FINE * self._mu(state.horizon)) ** 2,
        )
        active, y, distance, calls = feasible(
            state.active, shrunk, aimed, self._promised(state.horizon), fine, state.bank
        )
        bank, calls = state.bank - calls, state.calls + calls
        return state._replace(
            active=active, aimed=aimed, y=y, distance=distance, bank=bank, calls=calls
        )

    def _promised(self, horizon: int) -> float:
        """The |x - y|^2 that the calls of a block always reach; where there is none, that which is
        aimed at.
        """
        tol = self._steps(horizon).tol
        return tol * self._R**2 if tol else (_FINE * self._mu(horizon)) ** 2 or 1.0

    def _restarted(self, state: State) -> State:
        """The same point with a clean slate and twice the horizon; what was seen of the functions
        stays known.
        """
        active = ActiveSet.start(self._shrunk(2 * state.horizon), state.active.x)
        fresh = state._replace(
            active=active, aimed=active.x, y=active.x, lam=0.0, square_sum=0.0, distance=0.0
        )
        return fresh._replace(horizon=2 * state.horizon, began=state.t)

    def _require(self, seen: Bandit) -> None:
        require_size("loss", seen.loss_values, self.loss_size)
        require_size("constraint", seen.constraint_values, self.constraint_size)

    def _sizes(self, state: State) -> tuple[float, float]:
        """M_f and M_g, as far as they are known; 0 where nothing is."""
        return (
            self.loss_size or max(0.0, 0.5 * (state.largest_loss - state.least_loss)),
            self.constraint_size or state.largest_breach,
        )

    def _steps(self, horizon: int) -> Steps:
        return steps_for(horizon, self.calls_per_round, self.block)

    def _mu(self, horizon: int) -> float:
        """How far around x it explores."""
        r, R = self.K.inner_radius or 0.0, self._R
        wanted: float = math.sqrt(self.K.dimension * r / R) * float(horizon) ** -0.25 * R
        return min(wanted, 0.5 * r)

    def _shrunk(self, horizon: int) -> Shrunk:
        return room_to_explore(self.K, self._mu(horizon))

    @property
    def _R(self) -> float:
        """The unit of length; a set of one point has none."""
        return self.K.radius or 1.0

    def promise(self) -> Bound:
        """What is known, in expectation, before the first round of a run of `horizon` rounds."""
        G_f, G_g, M_f, M_g = (
            self.loss_lipschitz,
            self.constraint_lipschitz,
            self.loss_size,
            self.constraint_size,
        )
        if self.horizon is None or G_f is None or G_g is None or M_f is None or M_g is None:
            return Bound(
                None,
                None,
                "A promise needs horizon, loss_lipschitz, constraint_lipschitz, loss_size and "
                "constraint_size.",
            )
        (b, _, nu, theta, tol, _), T, n = self._steps(self.horizon), self.horizon, self.K.dimension
        if tol is None:
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
        R, tau = self.K.radius, math.sqrt(tol)
        mu, r, k_f, k_g = (
            self._mu(T) / R,
            (self.K.inner_radius or 0.0) / R,
            G_f * R / M_f,
            G_g * R / M_g,
        )
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

    def companion(self, state: State) -> Companion:
        over = self._shrunk(state.horizon)
        return Companion(
            over,
            state.active.x,
            state.aimed,
            state.y,
            self._promised(state.horizon),
            calls_in(state.bank),
        )

    def notes(self, state: State) -> tuple[str, ...]:
        return passed_horizon(self.horizon, state)

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        K = as_explorable(K, cls.__name__)
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=2, calls_per_round=0.7, seed=1),
            cls(K, horizon=max(1, horizon // 3), calls_per_round=5.0),
            cls(K, block=3),
        )
