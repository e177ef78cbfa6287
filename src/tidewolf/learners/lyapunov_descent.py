"""Lyapunov descent: tidewolf's flagship  (Lyapunov weights 5.1, AdaGrad descent 5.3, active-set projection 2.3).

    block of rounds at x:
    g     =  V sum grad f_t + w sum grad g_t^+           within aff(K); w by Lyapunov weights             (surrogate)
    y    <-  ball( y - D_y/sqrt(2 sum |g|^2) g )                                                          (descent)
    x, y <-  ActiveSet(y from x), spending oracle calls from the bank                                     (feasible)

The bank earns `calls_per_round` each round and keeps what is not spent, so oracle calls never exceed calls_per_round * rounds.
y leaves K, so the step uses D_y = min(2R, D + largest |x - y| so far) in place of the diameter. Losses and constraints are rescaled by
running maxima of their slopes: nothing to guess, and decisions do not change with the units of x, f or g.

Measured bound (steps.lyapunov (*), steps.adagrad):   V regret + sum w_t g_t^+ <= B = sum of prices + sum <g_t, x_t - y_t>, hence

    regret    <= (B - sum w_t g_t^+)/V
    violation <= (c G_g D/s) ln( 1 + (B + V G_f D T)/(rho c G_g D) ),     rho = least G_f/G_g a weight was made with.

The second: w_t >= rho Phi'(Q_t) with Q_t counted in the last G_g, sum Phi'(Q_t)(Q_t - Q_{t-1}) >= Phi(Q_T) as Phi is convex, and
regret >= -G_f D T, which needs G_f to hold on all of K: it is reported when `loss_lipschitz` is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import Array, as_count, as_number, frozen, inner, namespace
from tidewolf.core.errors import InvalidInput, NotFinite, WrongShape, WrongType
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.learner import Bound, Learner, Record
from tidewolf.core.oracle import HasLMO
from tidewolf.projection import ActiveSet
from tidewolf.steps.adagrad import descend, into_ball
from tidewolf.steps.lyapunov import DEFAULT_CAUTION, C, rates, ratio, surrogate

FIRST_HORIZON = 256
"""What an unknown horizon starts from before it doubles."""


class State(NamedTuple):
    """Sums of the open block first, then what the descent remembers, then what the bound needs."""

    t: int
    active: ActiveSet
    y: Array
    loss_gradient: Array
    constraint_gradient: Array
    open_violation: float
    open_rounds: int
    horizon: int
    began: int
    violation: float
    loss_slope: float
    constraint_slope: float
    exponent: int
    square_sum: float
    stiffness: float
    farthest: float
    distance: float
    bank: float
    calls: int
    surrogate_bound: float
    paid: float
    least_ratio: float
    settled_regret: float
    settled_violation: float


@final
@dataclass(frozen=True, eq=False, repr=False)
class LyapunovDescent(Learner[State]):
    """Lyapunov weights, AdaGrad descent and active-set projections: the learner to start with."""

    needs: ClassVar = FirstOrder
    State: ClassVar = State

    K: HasLMO
    horizon: int | None = None
    caution: float = DEFAULT_CAUTION
    calls_per_round: float = 1.0
    tolerance: float = 1e-3
    """aimed-at |x - y|^2, as a share of radius^2"""
    block: int = 1
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None

    def __post_init__(self) -> None:
        checked = {
            "horizon": None if self.horizon is None else as_count(self.horizon, "The horizon"),
            "caution": as_number(self.caution, "caution", above=0.0),
            "calls_per_round": as_number(self.calls_per_round, "calls_per_round", above=0.0),
            "tolerance": as_number(self.tolerance, "tolerance", above=0.0),
            "block": as_count(self.block, "The block"),
        }
        for name in ("loss_lipschitz", "constraint_lipschitz"):
            given = getattr(self, name)
            checked[name] = None if given is None else as_number(given, name, above=0.0)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def hard_set(self) -> HasLMO:
        return self.K

    def start(self) -> State:
        active = ActiveSet.start(self.K)
        return State(
            t=0,
            active=active,
            y=active.x,
            loss_gradient=self._zero,
            constraint_gradient=self._zero,
            open_violation=0.0,
            open_rounds=0,
            horizon=self.horizon or FIRST_HORIZON,
            began=0,
            violation=0.0,
            loss_slope=self.loss_lipschitz or 0.0,
            constraint_slope=self.constraint_lipschitz or 0.0,
            exponent=0,
            square_sum=0.0,
            stiffness=0.0,
            farthest=0.0,
            distance=0.0,
            bank=0.0,
            calls=0,
            surrogate_bound=0.0,
            paid=0.0,
            least_ratio=math.inf,
            settled_regret=0.0,
            settled_violation=0.0,
        )

    def act(self, state: State) -> Array:
        return state.active.x

    def rounds_left(self, state: State) -> int:
        left = state.began + state.horizon - state.t
        return min(self.block - state.open_rounds, left) if left > 0 else self.block

    def update(self, state: State, seen: FirstOrder) -> State:
        self._require(state, seen)
        if state.t == state.began + state.horizon:
            state = self._restarted(state)
        if state.open_rounds:
            seen = seen._replace(
                loss_gradient=state.loss_gradient + seen.loss_gradient,
                constraint_gradient=state.constraint_gradient + seen.constraint_gradient,
                violation=state.open_violation + seen.violation,
                rounds=state.open_rounds + seen.rounds,
            )
        t = state.t + seen.rounds - state.open_rounds
        if seen.rounds == self.block or t == state.began + state.horizon:
            return self._closed(state, seen, t)
        return state._replace(
            t=t,
            loss_gradient=seen.loss_gradient,
            constraint_gradient=seen.constraint_gradient,
            open_violation=seen.violation,
            open_rounds=seen.rounds,
        )

    def _closed(self, state: State, block: FirstOrder, t: int) -> State:
        """The three steps at the end of a block, from its sums."""
        K, D = self.K, self.K.diameter
        violation = state.violation + block.violation
        grad_f = K.tangent(block.loss_gradient)
        G_f = self._slope("loss", inner(grad_f, grad_f), block.rounds, state.loss_slope, self.loss_lipschitz)
        grad_g, G_g, least_ratio = None, state.constraint_slope, state.least_ratio
        if block.violation > 0.0:
            grad_g = K.tangent(block.constraint_gradient)
            G_g = self._slope("constraint", inner(grad_g, grad_g), block.rounds, G_g, self.constraint_lipschitz)
            least_ratio = min(least_ratio, ratio(G_f, G_g)) if G_g > 0.0 else least_ratio

        weight = surrogate(rates(state.horizon, self.caution), violation, G_f, G_g, D, state.exponent)
        g = weight.loss * grad_f if grad_g is None else weight.loss * grad_f + weight.constraint * grad_g
        unit = math.ldexp(1.0, state.exponent - weight.exponent)
        y, square_sum, stiffness = state.y, state.square_sum * unit * unit, state.stiffness * unit
        bound, g_norm2 = state.surrogate_bound * unit, inner(g, g)
        if g_norm2 > 0.0:
            D_y = min(2.0 * K.radius, D + state.farthest)
            y, square_sum, stiffness, price = descend(y, g, g_norm2, square_sum, stiffness, D_y)
            y = into_ball(y, K.center, K.radius)
            bound += price + inner(g, state.active.x - state.y)

        bank = state.bank + self.calls_per_round * block.rounds
        _, y, calls, distance2, active = state.active.nearest(K, y, self._tol, math.floor(bank + 1e-9))
        distance = math.sqrt(distance2)
        return State(
            t=t,
            active=active,
            y=y,
            loss_gradient=self._zero,
            constraint_gradient=self._zero,
            open_violation=0.0,
            open_rounds=0,
            horizon=state.horizon,
            began=state.began,
            violation=violation,
            loss_slope=G_f,
            constraint_slope=G_g,
            exponent=weight.exponent,
            square_sum=square_sum,
            stiffness=stiffness,
            farthest=max(state.farthest, distance),
            distance=distance,
            bank=bank - calls,
            calls=state.calls + calls,
            surrogate_bound=bound,
            paid=state.paid * unit + weight.constraint * block.violation,
            least_ratio=least_ratio,
            settled_regret=state.settled_regret,
            settled_violation=state.settled_violation,
        )

    @cached_property
    def _tol(self) -> float:
        return self.tolerance * self.K.radius**2

    @cached_property
    def _zero(self) -> Array:
        return frozen(namespace(self.K.center).zeros_like(self.K.center))

    def _require(self, state: State, seen: FirstOrder) -> None:
        if type(seen) is not FirstOrder:
            raise WrongType(f"LyapunovDescent learns from FirstOrder feedback, not from {type(seen).__name__}.")
        left = self.rounds_left(state)
        if not 1 <= seen.rounds <= left:
            raise InvalidInput(f"Feedback on {seen.rounds} rounds was given where 1 to {left} are due.")
        for name, gradient in (("loss", seen.loss_gradient), ("constraint", seen.constraint_gradient)):
            if tuple(gradient.shape) != self.K.shape:
                raise WrongShape(f"The {name} gradient has shape {tuple(gradient.shape)}; the set's points have shape {self.K.shape}.")
        if not 0.0 <= seen.violation < math.inf:
            raise NotFinite(f"The violation must be a finite number of at least 0, not {seen.violation}.")

    def _slope(self, name: str, norm2: float, rounds: int, largest: float, given: float | None) -> float:
        """The largest slope so far; a given Lipschitz constant must hold."""
        if not math.isfinite(norm2):
            raise NotFinite(f"The {name} gradient holds a NaN or an infinite number, or its square overflows; give finite functions of moderate size.")
        slope = math.sqrt(norm2) / rounds
        if given is not None and slope > given * (1.0 + 1e-9):
            raise InvalidInput(f"A {name} with slope {slope:.6g} was seen, above {name}_lipschitz = {given:.6g}. Give a larger constant, or none.")
        return max(largest, slope)

    def _restarted(self, state: State) -> State:
        """The same point with a clean slate and twice the horizon."""
        regret, violation = self._epoch_bound(state)
        fresh = self.start()
        return fresh._replace(
            t=state.t,
            active=state.active,
            y=state.active.x,
            horizon=2 * state.horizon,
            began=state.t,
            loss_slope=state.loss_slope,
            constraint_slope=state.constraint_slope,
            bank=state.bank,
            calls=state.calls,
            settled_regret=state.settled_regret + regret,
            settled_violation=state.settled_violation + violation,
        )

    def _epoch_bound(self, state: State) -> tuple[float, float]:
        """Regret and violation since the last restart are at most this; infinite where nothing is promised."""
        (V, s), D = rates(state.horizon, self.caution), self.K.diameter
        regret = (state.surrogate_bound - state.paid) / math.ldexp(V, -state.exponent) if state.exponent < 900 else math.inf
        if state.violation == 0.0:
            return regret, 0.0
        if self.loss_lipschitz is None or not math.isfinite(state.least_ratio):
            return regret, math.inf
        unit = C * state.constraint_slope * D
        most = state.surrogate_bound + math.ldexp(V, -state.exponent) * self.loss_lipschitz * D * (state.t - state.began)
        log = math.log(max(most, 1e-300) / (state.least_ratio * unit)) + state.exponent * math.log(2.0)
        return regret, unit / s * (math.log1p(math.exp(log)) if log < 500.0 else log)

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        if state.open_rounds:
            return Bound(None, None, "The last block is still open: the bound is known when it closes.")
        regret, violation = self._epoch_bound(state)
        regret, violation = regret + state.settled_regret, violation + state.settled_violation
        reason = "" if math.isfinite(violation) else "A bound on the violation needs loss_lipschitz, a slope that no loss exceeds on the set."
        return Bound(regret if math.isfinite(regret) else None, violation if math.isfinite(violation) else None, reason)

    def notes(self, state: State) -> tuple[str, ...]:
        if self.horizon is None or state.horizon == self.horizon:
            return ()
        return (f"The horizon of {self.horizon} rounds was passed: after round {state.began} the learner restarted with {state.horizon}.",)

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=3, calls_per_round=0.4),
            cls(K, horizon=max(1, horizon // 3), caution=1.0, tolerance=1e-2),
            cls(K),
        )
