"""CLASP: project on the set and on the last constraint together
(Ferreira, Xavier & Soares, ICML 2026, arXiv 2601.16072).

    x_{t+1}  =  Proj_{K and {g_t <= 0}}( x_t - eta_t grad f_t(x_t) ),     eta_t = (D/G_f) t^{-beta}

The paper's abstract has regret O(T^{max(beta, 1 - beta)}) and O(T^{1 - beta}) for the sum of
*squared* violations of convex losses, if some point satisfies every constraint. G_f, the largest
slope so far, and the diameter D make the step free of units; that is ours. One quadratic program
per round (hindsight/best_point.py): constraints made of half-spaces, sets with a linear
description. If no point of K satisfies g_t, the least worst violation is allowed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core import arrays, batch, errors, settings
from tidewolf.core.feedback import FullInformation, require_full_information
from tidewolf.core.types import Array
from tidewolf.hindsight import best_point, task
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.settings import HardSet
from tidewolf.methods.steps.slopes import tangent_part
from tidewolf.sets import base, highs

ACCURACY = 1e-10


class State(NamedTuple):
    t: int
    x: Array
    slope: float = 0.0  # G_f
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class CLASP(Learner[State]):
    """Gradient steps, projected on the set and the last constraint together.

    Parameters
    ----------
    K : ConvexSet
        The set that every played point belongs to; it has a linear description.
    horizon : int, optional
        The number of rounds; it changes nothing. Unit: rounds.
    beta : float, default 0.5
        The exponent of the steps: larger values violate constraints less.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (50, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (50, 1)), np.full(50, 0.5))
    >>> run = tw.run(tw.baselines.CLASP(K), tw.Stream(losses, limits))
    >>> np.round(run.learner.act(run.final_state), 3)
    array([0. , 0.5, 0.5])
    """

    needs: ClassVar = FullInformation
    state_type: ClassVar = State
    anytime: ClassVar = True

    K: Annotated[base.ConvexSet, HardSet(require=best_point.BestPoint)]
    horizon: Annotated[int | None, settings.Count()] = None
    beta: Annotated[float, settings.Number(above=0.0, most=1.0)] = 0.5

    def start(self) -> State:
        return State(0, self.K.center)

    def act(self, state: State) -> Array:
        return state.x

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, feedback: FullInformation) -> State:
        losses, limits = require_full_information(feedback, self.K.shape, 1)
        for part in task.parts_of(limits):
            if not isinstance(part, batch.PiecewiseLinear):
                raise errors.NotSupported(
                    f"CLASP projects on constraints made of half-spaces, not {type(part).__name__}."
                )
        gradient = losses.subgradient(state.x, arrays.ones(1, state.x))
        g, slope = tangent_part(self.K, "loss", gradient, 1, None, state.slope)
        t, G = state.t + 1, max(state.slope, slope)
        y = state.x - self.K.diameter / (G or 1.0) * t**-self.beta * g
        return State(t, self._projected(y, best_point.half_spaces(limits)), G)

    def _projected(self, y: Array, limits: highs.HalfSpaces) -> Array:
        solver, point, n = self._solver, task.flattened(y), int(np.prod(self.K.shape))
        A = np.eye(n) if limits.A is None else limits.A
        nothing = best_point.Objective(np.zeros(n), None, np.zeros(0), None, 0)
        program = solver.prepared(nothing, highs.HalfSpaces(A, limits.b))
        worst = solver.breached(program)
        if worst is None:
            raise errors.SolverFailed(f"HiGHS found no point of {self.K!r}.")
        program = program._replace(b=program.b + max(0.0, float(worst.v[-1])))
        found = solver.nearest(program, point, 0.0, self.K.radius or 1.0, ACCURACY)
        return solver.member(solver.flat_point(worst if found is None else found))

    @cached_property
    def _solver(self) -> best_point.BestPoint:
        return best_point.BestPoint(self.K, "CLASP")

    def bound(self, record: Record) -> Bound:
        return Bound(reason="The theorem of CLASP is on squared violations, and has no constants.")

    def notes(self, state: State) -> tuple[str, ...]:
        return ("It projects exactly, on the set and the last constraint, and asks no oracle.",)

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K), cls(K, horizon=horizon, beta=0.75))
