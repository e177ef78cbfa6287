"""Proximal penalty steps with exact projections
(after RECOO, Guo et al. 2022): the last limit itself in the step, not its gradient.

    z   ~   argmin_{ball, aff(K)}  <grad f_t(x), . - x> + delta g_t^+ + alpha/2 |. - x|^2
        to a certified gap (steps/penalty.py)
    x  <-   Proj_K(z)

alpha = k (G_f/2R) sqrt T, delta = k (G_f/G_g) sqrt T. `caution` moves k = caution/10: both divided
by k, it is the losses that weigh V = 1/k, against the limits and against moving; a larger delta
alone would change nothing, as the last limit is kept already if it can be. The default is k = 1,
for which theory has its best constants. G_f and G_g are given, or the largest slopes so far.

Regret O(sqrt T), violation O(T^{3/4}), measured as in methods/steps/drift.py for any k and on every
interval of rounds. Limits are evaluated in the ball, so outside K.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from tidewolf.baselines.exact import ProjectableK, ProjectsExactly
from tidewolf.core import arrays, errors
from tidewolf.core.feedback import FullInformation
from tidewolf.core.types import Array
from tidewolf.functions.combined import Limits
from tidewolf.methods import base, clock, settings
from tidewolf.methods.steps import drift
from tidewolf.methods.steps.slopes import Slopes, tangent_part, unit_length
from tidewolf.sets.base import ConvexSet


class State(NamedTuple):
    t: int
    x: Array
    epoch: clock.Epoch
    slopes: Slopes
    tally: drift.Tally = drift.Tally()
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class ProximalPenalty(ProjectsExactly[State], clock.Cautious[State]):
    """Proximal steps on the last constraint, with an exact projection per round.

    Parameters
    ----------
    K : ConvexSet
        The set that every played point belongs to; it has a projection or a linear description.
    horizon : int, optional
        The number of rounds T. None: 256, doubled whenever they are over.
    caution : float, default 10.0
        The weight of violations against losses: larger values violate constraints less and cost
        more.
    loss_lipschitz : float, optional
        The Lipschitz constant of the losses; steeper losses are refused. None: estimated from
        the feedback, and there is no guarantee before the run.
    constraint_lipschitz : float, optional
        The Lipschitz constant of the constraints; steeper ones are refused. None: estimated
        from the feedback, and there is no guarantee before the run.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (20, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (20, 1)), np.full(20, 0.5))
    >>> run = tw.run(tw.baselines.ProximalPenalty(K, horizon=20), tw.Stream(losses, limits))
    >>> int(run.oracle_calls)
    0
    """

    needs: ClassVar = FullInformation
    state_type: ClassVar = State

    K: ProjectableK

    @classmethod
    def published(cls, K: ConvexSet, *, horizon: int) -> Self:
        """A penalty and a prox weight of the order sqrt T, as in the paper: the default, without
        the units that the paper has.
        """
        return cls(K, horizon=horizon)

    def start(self) -> State:
        return State(0, self.K.center, self.first_epoch(), self.given_slopes.initial)

    def act(self, state: State) -> Array:
        return state.x

    def update(self, state: State, feedback: FullInformation) -> State:
        state = self.in_epoch(state)
        drift.require_whole_functions(feedback, self.K, 1, "ProximalPenalty")
        return self.finish_block(state._replace(t=state.t + 1), feedback)

    def step(self, state: State, block: FullInformation) -> State:
        K, x, T, given = self.K, state.x, state.epoch.horizon, self.given_slopes
        losses, constraints = block
        one = arrays.ones(1, x)
        # what overflows is refused with a sentence
        with np.errstate(over="ignore", invalid="ignore"):
            loss_gradient = losses.subgradient(x, one)
            limit_gradient = constraints.subgradient(x, one)
            limit = float(constraints.values(x)[0])
        met = state.slopes
        grad_f, slope_f = tangent_part(K, "loss", loss_gradient, 1, given.loss, met.loss)
        most, steepest = given.constraint, met.constraint
        _, slope_g = tangent_part(K, "constraint", limit_gradient, 1, most, steepest)
        if not math.isfinite(limit):
            raise errors.NotFinite(
                f"The constraint is {limit} at the point played; give functions that are finite on "
                "the set."
            )
        slopes = Slopes(max(met.loss, slope_f), max(met.constraint, slope_g))

        size = self.caution / settings.DEFAULT_CAUTION * math.sqrt(T)
        alpha, delta = size / (2.0 * unit_length(K)), size / (slopes.constraint or 1.0)
        whole = drift.DriftBlock(
            loss_gradient, 1, 0.0, slope_g if limit > 0.0 else 0.0, Limits((constraints,))
        )
        d, reach = grad_f / (slopes.loss or 1.0), K.radius if state.t == 1 else K.diameter
        z, tally = drift.drift(K, whole, d, x, 0.0, reach, slopes.loss, alpha, delta, state.tally)
        return state._replace(x=arrays.frozen(self.exact_projection(z)), slopes=slopes, tally=tally)

    def bound(self, record: base.Record) -> base.Bound:
        return drift.bound(record.final_state.tally, record.final_state.t, (0.0, 0.0))

    def measures(self, state: State) -> tuple[float, ...]:
        return state.tally

    def bound_between(self, record: base.Record, start: int, stop: int) -> base.Bound:
        return drift.bound_between(record, start, stop, (0.0, 0.0))

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[base.Learner[Any]]:
        cautious = cls(K, horizon=max(1, horizon // 3), caution=100.0)
        return cls(K, horizon=horizon), cautious, cls(K, caution=1.0)
