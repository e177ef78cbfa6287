"""Primal-dual play from values alone, to the letter
(Garber & Kretzu 2024, Algorithm 5, Theorem A.1).

    block of b rounds around x, each played at z_t = x + mu u_t, values f_t(z_t) and g_t(z_t) seen:
    y      <-  ball( y - eta sum_t (n/mu) (f_t + lam g_t^+) u_t )                         (primal)
    x, y'  <-  AFP(y from x) on the shrunk set c + (1 - mu/r)(K - c),
               |x - y'|^2 <= 3 eps                                                        (feasible)
    lam    <-  max(0, lam + eta sum_t (g_t^+ - delta eta lam))                            (dual)

    b = T^{1/2},   mu = sqrt(n r) T^{-1/4},   eta = R/(sqrt(n) G) T^{-3/4},
    eps = 61 R^2 T^{-1/2} ln T,   G = max(G_f, G_g, M_f, M_g),
    delta = 24 sqrt(183) G^2 max(n/r, n/sqrt(r), sqrt(n), n/(sqrt(r) R)) T^{1/2} sqrt(ln T);
    M_f, M_g bound |f_t|, |g_t| on K

Errata applied: the dual step damps lam, and eta has its 1/sqrt(n), as in the proof; mu <= r needs
T >= n^2/r^2, else the set has no room and the settings are refused; the ball is around the center,
u on the unit sphere of the directions of aff(K) and n its dimension; b is floor(T^{1/2}) with a
shorter last block, followed by no projection. These settings depend on the units, stand still
unless T is in the hundred thousands, and promise nothing before that: methods/steps/thresholds.py
says from when on. `BanditPrimalDual` cures that.

`promise()`, from the theorem's proof, where its condition holds, if some point keeps every
constraint, in expectation over the coins:

    regret    <= A + T mu G_f (1 + R/r),
    violation <= sqrt( 2 (delta eta T + 1/eta) (A + 2 R G_f T) ) + mu G_g T
    A = 2R^2/eta
        + T ( sqrt(3 eps) n (M_g/4 + M_f)/(mu sqrt(b)) + (G_g/4) (sqrt(3 eps) + mu) + mu M_g/(4r)
        + sqrt(3 eps) G_f
        + eta n^2 M_f^2/mu^2 + eta b (G_f^2 + M_g^2) + mu G_f )

(the R in R/r is missing in the paper). The proof says of averages over the sphere what holds of
those over the ball; their difference, mu G/(n + 1), fits into its terms in mu, of which it counts
one too many. A shorter last block fits in too: E <d, x - y> is at most sqrt(3 eps) |E d|, as x - y
is settled before u, so that it needs no share of the first term of A.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import as_own, as_point, frozen, like, norm
from tidewolf.core.errors import InvalidInput, NotAMember
from tidewolf.core.feedback import Bandit
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.learners.bandit_primal_dual import IN_EXPECTATION
from tidewolf.methods.base import Bound, Companion, Learner, Record
from tidewolf.methods.settings import passed_horizon, settle, warn_of
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.one_point import (
    NOTHING,
    Explorer,
    as_explorable,
    combined,
    require_size,
    room_to_explore,
)
from tidewolf.methods.steps.saddle import violation_bound
from tidewolf.methods.steps.thresholds import (
    BanditTheoremSteps,
    bandit_condition,
    bandit_condition_at,
    explorable_from,
    frozen_at,
    frozen_sentence,
)
from tidewolf.projection import afp_paper
from tidewolf.sets import Shrunk
from tidewolf.sets.base import ConvexSet, membership_tolerance

_SIZES = ("loss_lipschitz", "constraint_lipschitz", "loss_size", "constraint_size")


class State(NamedTuple):
    """Where it stands, the open block, and the stretch it is in."""

    t: int
    x: Array
    aimed: Array
    """where y was before the last projection"""
    y: Array
    lam: float
    open: Bandit
    horizon: int
    began: int
    distance: float
    calls: int


@final
@dataclass(frozen=True, eq=False, repr=False)
class TheoremBanditPrimalDual(Explorer[State]):
    """Algorithm 5 with the constants of its theorem; made by `BanditPrimalDual.theorem`, which
    warns where they do nothing.
    """

    state_type: ClassVar = State
    exponents: ClassVar = (0.75, 0.875)

    K: ConvexSet
    horizon: int
    loss_lipschitz: float
    constraint_lipschitz: float
    loss_size: float
    constraint_size: float
    first: Array | None = None
    """where to start, in the shrunk set; the center unless told otherwise"""
    seed: int = 0

    def __post_init__(self) -> None:
        as_explorable(self.K, "BanditPrimalDual.theorem")
        settle(self)
        if self.K.dimension > 0 and self.horizon < (least := explorable_from(self._r, self._n)):
            raise InvalidInput(
                f"With horizon = {self.horizon} the theorem explores beyond the ball of radius "
                f"{self._r:.6g} inside the set; it needs a horizon of at least n^2/r^2 = {least} "
                "there. BanditPrimalDual(K, horizon) has settings for any horizon."
            )
        if self.first is not None:
            first = as_own(
                like(as_point(self.first, self.K.shape, "The starting point"), self.K.center),
                "The starting point",
            )
            if (excess := self._shrunk(self.horizon).excess(first)) > membership_tolerance(
                first, self.K.radius
            ):
                raise NotAMember(
                    "The starting point is not a member of the set shrunk by 1 - mu/r = "
                    f"{self._shrunk(self.horizon).factor:.6g}, which leaves room to explore: its "
                    f"excess is {excess:.3g}."
                )
            object.__setattr__(self, "first", first)

    def start(self) -> State:
        x = self.K.center if self.first is None else self.first
        return State(
            t=0,
            x=x,
            aimed=x,
            y=x,
            lam=0.0,
            open=NOTHING,
            horizon=self.horizon,
            began=0,
            distance=0.0,
            calls=0,
        )

    def _end(self, state: State) -> int:
        return state.began + state.horizon

    def _length(self, state: State) -> int:
        return self._steps(state.horizon).block

    def _around(self, state: State) -> tuple[Array, float]:
        return state.x, self._mu(state.horizon)

    def _closed(self, state: State, block: Bandit, u: Array) -> State:
        """The primal and the dual step, and a member of the shrunk set near the new y, of which the
        last block has no need.
        """
        s, k = self._steps(state.horizon), block.rounds
        breaches = np.maximum(block.constraint_values, 0.0)
        d = combined((self._n / s.mu) * (block.loss_values + state.lam * breaches), u)
        y = into_ball(state.y - s.eta * d, self.K.center, self.K.radius)
        state = state._replace(
            t=state.t + k - state.open.rounds,
            y=frozen(y),
            lam=max(0.0, state.lam + s.eta * float((breaches - s.delta * s.eta * state.lam).sum())),
            open=NOTHING,
        )
        if state.t == self._end(state):
            return state._replace(aimed=state.x, y=state.x, distance=0.0)
        tol = s.tol or 1.0  # 0 where T = 1 only, or where the set is a point
        x, y, calls, distance2 = afp_paper(self._shrunk(state.horizon), state.y, state.x, tol=tol)
        return state._replace(
            x=x, aimed=state.y, y=y, distance=math.sqrt(distance2), calls=state.calls + calls
        )

    def _restarted(self, state: State) -> State:
        """The same point with a clean slate and twice the horizon."""
        return state._replace(
            aimed=state.x,
            y=state.x,
            lam=0.0,
            horizon=2 * state.horizon,
            began=state.t,
            distance=0.0,
        )

    def _require(self, seen: Bandit) -> None:
        require_size("loss", seen.loss_values, self.loss_size)
        require_size("constraint", seen.constraint_values, self.constraint_size)

    def _steps(self, horizon: int) -> BanditTheoremSteps:
        return BanditTheoremSteps(
            horizon,
            self.K.radius or 1.0,
            self._r,
            self._n,
            max(getattr(self, name) for name in _SIZES),
        )

    def _mu(self, horizon: int) -> float:
        return min(self._steps(horizon).mu, self._r)

    def _shrunk(self, horizon: int) -> Shrunk:
        return room_to_explore(self.K, self._mu(horizon) if self.K.dimension else 0.0)

    @property
    def _n(self) -> int:
        """The dimension; a set of one point explores nothing, and any will do."""
        return self.K.dimension or 1

    @property
    def _r(self) -> float:
        return self.K.inner_radius or 1.0

    @cached_property
    def _distance(self) -> float:
        """From the center to the start."""
        return 0.0 if self.first is None else norm(self.first - self.K.center)

    @cached_property
    def _frozen(self) -> bool:
        return frozen_at(self.horizon, self.K.radius, self._distance)

    @cached_property
    def _given(self) -> tuple[float, float, int, float, float, float, float]:
        """R, r, n, and the slopes and sizes: what the theorem's condition depends on."""
        return (
            self.K.radius,
            self._r,
            self._n,
            self.loss_lipschitz,
            self.constraint_lipschitz,
            self.loss_size,
            self.constraint_size,
        )

    @cached_property
    def concerns(self) -> tuple[str, ...]:
        """Sentences on what these settings cannot do within this horizon, with the horizon from
        which on they can.
        """
        T = self.horizon
        if self.K.dimension == 0:
            return ()
        said = []
        if self._frozen:
            said.append(frozen_sentence(T, self.K.radius, self._distance))
        if not bandit_condition_at(T, *self._given):
            least = bandit_condition(*self._given)
            said.append(
                f"The theorem promises nothing for {T} rounds: its condition holds from a horizon "
                f"of {least} on."
            )
        return tuple(said)

    def warn(self) -> None:
        """Say the concerns as one warning, where the caller's caller stands."""
        warn_of(self.concerns, self._frozen, "BanditPrimalDual")

    def promise(self) -> Bound:
        """What is known, in expectation, before the first round of a run of `horizon` rounds."""
        if self.K.dimension == 0:
            return Bound(0.0, 0.0)
        if not bandit_condition_at(self.horizon, *self._given):
            return Bound(None, None, " ".join(self.concerns))
        s, T, (R, r, n, G_f, G_g, M_f, M_g) = self._steps(self.horizon), self.horizon, self._given
        mu, eta, tau = s.mu, s.eta, math.sqrt(s.tol)
        A = 2.0 * R**2 / eta + T * (
            tau * n * (M_g / 4.0 + M_f) / (mu * math.sqrt(s.block))
            + G_g / 4.0 * (tau + mu)
            + mu * M_g / (4.0 * r)
            + tau * G_f
            + eta * (n * M_f / mu) ** 2
            + eta * s.block * (G_f**2 + M_g**2)
            + mu * G_f
        )
        violation = violation_bound(A + 2.0 * R * G_f * T, T, eta, s.delta * eta) + mu * G_g * T
        return Bound(A + T * mu * G_f * (1.0 + R / r), violation)

    def bound(self, record: Record) -> Bound:
        return Bound(None, None, IN_EXPECTATION)

    def companion(self, state: State) -> Companion:
        return Companion(
            self._shrunk(state.horizon),
            state.x,
            state.aimed,
            state.y,
            self._steps(state.horizon).tol or 1.0,
            math.inf,
        )

    def notes(self, state: State) -> tuple[str, ...]:
        return (*self.concerns, *passed_horizon(self.horizon, state))

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        K = as_explorable(K, cls.__name__)
        least = explorable_from(K.inner_radius, K.dimension) if K.inner_radius else 1
        sizes = (1e6, 1e6, 1e6, 1e6)
        return (
            cls(K, max(horizon, least), *sizes),
            cls(K, max(horizon // 3, least), *sizes, K.center, 1),
        )
