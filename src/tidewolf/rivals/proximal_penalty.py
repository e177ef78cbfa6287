"""Proximal penalty steps with exact projections
(after RECOO, Guo et al. 2022): the last limit itself in the step, not its gradient.

    z   ~   argmin_{ball, aff(K)}  <grad f_t(x), . - x> + delta g_t^+ + alpha/2 |. - x|^2
        to a certified gap (steps/penalty)
    x  <-   Proj_K(z)

alpha = k (G_f/2R) sqrt T, delta = k (G_f/G_g) sqrt T. `caution` moves k = caution/10: both divided
by k, it is the losses that weigh V = 1/k, against the limits and against moving; a larger delta
alone would change nothing, as the last limit is kept already where it can be. The default is k = 1,
for which theory has its best constants. G_f and G_g are given, or the largest slopes so far.

Regret O(sqrt T), violation O(T^{3/4}), measured as in methods/steps/drift.py for any k and on every
interval of rounds. Limits are evaluated in the ball, so outside K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import frozen, namespace
from tidewolf.core.errors import NotFinite, NotSupported
from tidewolf.core.feedback import FullInformation, require_full_information
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.settings import passed_horizon, settle
from tidewolf.methods.steps.drift import Block, Last, Tally, bound, bound_between, drift
from tidewolf.methods.steps.lyapunov import DEFAULT_CAUTION, FIRST_HORIZON
from tidewolf.methods.steps.slopes import within
from tidewolf.rivals.exact import ExactProjection
from tidewolf.sets.base import ConvexSet


class State(NamedTuple):
    """Where it stands, the stretch it is in, the slopes, and the sums of the bounds."""

    t: int
    x: Array
    horizon: int
    began: int
    loss_slope: float
    constraint_slope: float
    last: Last = Last()
    tally: Tally = Tally()
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class ProximalPenalty(Learner[State]):
    """Steps that see the whole last limit, and an exact projection after each."""

    needs: ClassVar = FullInformation
    state_type: ClassVar = State

    K: ConvexSet
    horizon: int | None = None
    caution: float = DEFAULT_CAUTION
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None

    @classmethod
    def published(cls, K: ConvexSet, *, horizon: int) -> ProximalPenalty:
        """A penalty and a prox weight of the order sqrt T, as in the paper: the default, without
        the units that the paper has.
        """
        return cls(K, horizon=horizon)

    def __post_init__(self) -> None:
        settle(self)
        ExactProjection(self.K)  # refuses a set it cannot project on

    @property
    def hard_set(self) -> ConvexSet:
        return self.K

    def start(self) -> State:
        slopes = self.loss_lipschitz or 0.0, self.constraint_lipschitz or 0.0
        return State(0, self.K.center, self.horizon or FIRST_HORIZON, 0, *slopes)

    def act(self, state: State) -> Array:
        return state.x

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, seen: FullInformation) -> State:
        self._require(seen)
        if state.t == state.began + state.horizon:
            state = state._replace(horizon=2 * state.horizon, began=state.t)
        K, x, T = self.K, state.x, state.horizon
        one = namespace(x).ones(1, dtype=x.dtype)
        G_f, G_g = state.loss_slope, state.constraint_slope
        # what overflows is refused with a sentence
        with np.errstate(over="ignore", invalid="ignore"):
            loss_gradient, limit_gradient = (
                seen.losses.subgradient(x, one),
                seen.constraints.subgradient(x, one),
            )
            limit = float(seen.constraints.values(x)[0])
        grad_f, slope_f = within(K, "loss", loss_gradient, 1, self.loss_lipschitz, G_f)
        _, slope_g = within(K, "constraint", limit_gradient, 1, self.constraint_lipschitz, G_g)
        if not math.isfinite(limit):
            raise NotFinite(
                f"The constraint is {limit} at the point played; give functions that are finite on "
                "the set."
            )
        G_f, G_g = max(G_f, slope_f), max(G_g, slope_g)

        R = K.radius or 1.0
        size = self.caution / DEFAULT_CAUTION * math.sqrt(T)
        reach = K.radius if state.t == 0 else K.diameter
        block = Block(
            1,
            seen.constraints,
            grad_f / (G_f or 1.0),
            0.0,
            slope_g if limit > 0.0 else 0.0,
            x,
            0.0,
            reach,
        )
        z, tally, last = drift(
            K, block, G_f, size / (2.0 * R), size / (G_g or 1.0), state.last, state.tally
        )
        return State(state.t + 1, frozen(self._project(z)), T, state.began, G_f, G_g, last, tally)

    def _require(self, seen: object) -> None:
        for batch in require_full_information(seen, self.K.shape, 1):
            if batch.domain is not None:
                raise NotSupported(
                    "ProximalPenalty evaluates functions outside the set, and "
                    f"{type(batch).__name__} is only defined on {batch.domain}. SinhaVaze does "
                    "not."
                )

    @cached_property
    def _project(self) -> ExactProjection:
        return ExactProjection(self.K)

    def bound(self, record: Record) -> Bound:
        return bound(record.final_state.tally, record.final_state.t, (0.0, 0.0))

    def measures(self, state: State) -> tuple[float, ...]:
        return state.tally

    def bound_between(self, record: Record, start: int, stop: int) -> Bound:
        return bound_between(record.measures, start, stop, (0.0, 0.0))

    def slopes(self, state: State) -> tuple[float, float]:
        return state.loss_slope, state.constraint_slope

    def notes(self, state: State) -> tuple[str, ...]:
        return ("It projects exactly and asks no oracle.", *passed_horizon(self.horizon, state))

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=max(1, horizon // 3), caution=100.0),
            cls(K, caution=1.0),
        )
