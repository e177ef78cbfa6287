"""Projected points on a budget of oracle calls: a member x to play, and its infeasible iterate y.

    target  ->  (x, y),  |x - y|^2 <= tolerance2, y no farther from any member than the target was

The budget earns `calls_per_round` per round and keeps what is not spent, so oracle calls never
exceed calls_per_round * rounds. `Banked` projects on what the budget holds, first as near as was
guaranteed, then nearer: the second part starts where the first ended and only brings x and y
nearer, so that whatever the first part reached still holds; had one asked for the finer tolerance
at once, calls that run out in between would prove nothing about the coarser one. `AsPrinted` is the
paper's own projection, which takes as many calls as it needs.

A learner's `step` says where y goes (`ProjectedPoint.moved_to`); `Projecting` does the rest.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple, TypeAlias

from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods import capabilities, clock
from tidewolf.projection import ActiveSet, afp_paper
from tidewolf.projection.active import Active


class ProjectedPoint(NamedTuple):
    """A point of a set with its active set, and its infeasible iterate y."""

    active: Active
    before_projection: Array  # where y was before the last projection
    y: Array
    distance: float = 0.0  # |x - y|

    @classmethod
    def start(cls, K: HasLMO, x: Array | None = None) -> ProjectedPoint:
        """A member, the center unless told otherwise, with y there too."""
        return cls.of(ActiveSet.start(K) if x is None else sole_atom(K, x))

    @classmethod
    def of(cls, active: Active) -> ProjectedPoint:
        return cls(active, active.x, active.x)

    @property
    def x(self) -> Array:
        return self.active.x

    def moved_to(self, target: Array) -> ProjectedPoint:
        """The same with y at a target, which a projection is due to bring x near to."""
        return ProjectedPoint(self.active, target, target, self.distance)


def sole_atom(K: HasLMO, x: Array) -> ActiveSet:
    """The active set of x itself; a table of moved vertices would round it."""
    alone = ActiveSet.start(K, x)
    return ActiveSet(alone.atoms, alone.weights, x)


class Banked(NamedTuple):
    """Active-set projections with an oracle budget: to `tolerance2`, and with unspent calls to
    `finer2` if given.
    """

    tolerance2: float
    finer2: float | None = None

    def project(
        self, K: HasLMO, point: ProjectedPoint, budget: float
    ) -> tuple[ProjectedPoint, int]:
        """The point projected from where its y was moved to, and the calls that it took."""
        found = point.active.nearest(K, point.before_projection, self.tolerance2, budget)
        calls = found.calls
        if self.finer2 is not None and self.finer2 < found.distance2 and calls < budget:
            found = found.active.nearest(K, found.y, self.finer2, budget - calls)
            calls += found.calls
        distance = math.sqrt(found.distance2)
        return point._replace(active=found.active, y=found.y, distance=distance), calls


class AsPrinted(NamedTuple):
    """The paper's projection to `tolerance2`, whatever calls it takes."""

    tolerance2: float

    def project(
        self, K: HasLMO, point: ProjectedPoint, budget: float
    ) -> tuple[ProjectedPoint, int]:
        found = afp_paper(K, point.before_projection, point.x, tol=self.tolerance2)
        active = point.active if found.x is point.x else sole_atom(K, found.x)
        distance = math.sqrt(found.distance2)
        return point._replace(active=active, y=found.y, distance=distance), found.calls


Projection: TypeAlias = Banked | AsPrinted


class Projecting(clock.Clocked[clock.S]):
    """Abstract base of learners that play a projected point, `state.point`, and project after every
    block but the last of an epoch. `state.oracle_budget` has the unspent calls.
    """

    # what the budget earns; None if projections take the calls they need
    calls_per_round: float | None

    @abstractmethod
    def projection(self, state: clock.S) -> Projection:
        """How this state's next target is made feasible."""

    def projected_set(self, state: clock.S) -> HasLMO:
        return self.K

    def act(self, state: clock.S) -> Array:
        x: Array = state.point.x
        return x

    def finish_block(self, state: clock.S, block: Any) -> clock.S:
        state = self.step(state, block)
        earned = (self.calls_per_round or 0.0) * block.rounds
        state = state._replace(oracle_budget=state.oracle_budget + earned)
        if clock.is_over(state):
            return self.with_point(state, ProjectedPoint.of(state.point.active), 0)
        most = self._whole_calls(state)
        point, calls = self.projection(state).project(self.projected_set(state), state.point, most)
        return self.with_point(state, point, calls)

    def with_point(self, state: clock.S, point: ProjectedPoint, calls: int) -> clock.S:
        spent = 0 if self.calls_per_round is None else calls
        after: clock.S = state._replace(
            point=point, oracle_budget=state.oracle_budget - spent, calls=state.calls + calls
        )
        return after

    def _whole_calls(self, state: clock.S) -> float:
        return math.inf if self.calls_per_round is None else math.floor(state.oracle_budget + 1e-9)

    def last_projection(self, state: clock.S) -> capabilities.ProjectionRecord:
        point = state.point
        return capabilities.ProjectionRecord(
            over=self.projected_set(state),
            x=point.x,
            before_projection=point.before_projection,
            y=point.y,
            tolerance2=self.projection(state).tolerance2,
            calls_left=self._whole_calls(state),
        )
