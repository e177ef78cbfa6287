"""Projected points on a budget of oracle calls: a member x to play, and its infeasible iterate y.

    target  ->  (x, y),  |x - y|^2 <= tolerance2, y no farther from any member than the target was

The bank earns `calls_per_round` each round and keeps what is not spent, so oracle calls never
exceed calls_per_round * rounds. `Banked` projects on what the bank holds, first as near as was
promised, then nearer: the second part starts where the first ended and only brings x and y nearer,
so that whatever the first part reached still holds; had one asked for the finer tolerance at once,
calls that run out in between would prove nothing about the coarser one. `AsPrinted` is the paper's
own projection, which takes as many calls as it needs.

A learner's `step` says where y goes (`ProjectedPoint.moved_to`); `Projecting` does the rest.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Progress
from tidewolf.methods.capabilities import ProjectionRecord
from tidewolf.methods.clock import Clocked
from tidewolf.projection import ActiveSet, afp_paper
from tidewolf.projection.active import Active


class ProjectedPoint(NamedTuple):
    """A member of a set, in its active set, and its companion y."""

    active: Active
    before_projection: Array
    """where y was before the last projection"""
    y: Array
    distance: float = 0.0
    """|x - y|"""

    @classmethod
    def start(cls, K: HasLMO, x: Array | None = None) -> ProjectedPoint:
        """A member, the center unless told otherwise, with y there too."""
        return cls.of(ActiveSet.start(K) if x is None else sole_atom(K, x))

    @classmethod
    def of(cls, active: Active) -> ProjectedPoint:
        """The member of an active set, with y there too."""
        return cls(active, active.x, active.x)

    @property
    def x(self) -> Array:
        """The member."""
        return self.active.x

    def moved_to(self, target: Array) -> ProjectedPoint:
        """The same with y at a target, which a projection is due to bring x near to."""
        return ProjectedPoint(self.active, target, target, self.distance)

    def at_rest(self) -> ProjectedPoint:
        """The same member with y there too."""
        return ProjectedPoint.of(self.active)


def sole_atom(K: HasLMO, x: Array) -> ActiveSet:
    """The active set of x itself; a table of moved vertices would round it."""
    alone = ActiveSet.start(K, x)
    return ActiveSet(alone.atoms, alone.weights, x)


class Banked(NamedTuple):
    """Active-set projections on a budget: to `tolerance2`, and with calls that are left to
    `finer2`, where one is given.
    """

    tolerance2: float
    finer2: float | None = None

    def project(
        self, K: HasLMO, point: ProjectedPoint, budget: float
    ) -> tuple[ProjectedPoint, int]:
        found = point.active.nearest(K, point.before_projection, self.tolerance2, budget)
        calls = found.calls
        if self.finer2 is not None and self.finer2 < found.distance2 and calls < budget:
            found = found.active.nearest(K, found.y, self.finer2, budget - calls)
            calls += found.calls
        distance = math.sqrt(found.distance2)
        return ProjectedPoint(found.active, point.before_projection, found.y, distance), calls


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
"""How a target is made feasible: |x - y|^2 is at most `tolerance2` while calls are left, and
`project` gives the point, projected from where its y was moved to, and the calls that it took.
"""


class Pointed(Progress, Protocol):
    """A state with a projected point and a bank."""

    @property
    def point(self) -> ProjectedPoint: ...
    @property
    def oracle_budget(self) -> float:
        """Calls that were earned and not spent."""

    def _replace(self, *args: Any, **fields: Any) -> Any: ...


PointState = TypeVar("PointState", bound=Pointed)


class Projecting(Clocked[PointState]):
    """Abstract: learners that play a projected point, and project after every block but the last
    of an epoch: the next epoch starts over there.
    """

    calls_per_round: float | None
    """what the bank earns; None where projections take the calls they need"""

    @abstractmethod
    def projection(self, state: PointState) -> Projection:
        """How this state's next target is made feasible."""

    def projected_set(self, state: PointState) -> HasLMO:
        """The set that is projected on."""
        return self.K

    def act(self, state: PointState) -> Array:
        return state.point.x

    def finish_block(self, state: PointState, block: Any) -> PointState:
        state = self.step(state, block)
        point, calls, earned = state.point, 0, (self.calls_per_round or 0.0) * block.rounds
        oracle_budget = state.oracle_budget + earned
        if state.t == self.epoch_end(state):
            point = point.at_rest()
        else:
            K, most = self.projected_set(state), self._whole_calls(oracle_budget)
            point, calls = self.projection(state).project(K, point, most)
        if self.calls_per_round is not None:
            oracle_budget -= calls
        projected: PointState = state._replace(
            point=point, oracle_budget=oracle_budget, calls=state.calls + calls
        )
        return projected

    def _whole_calls(self, oracle_budget: float) -> float:
        """Calls that a projection may take of what a bank holds."""
        return math.inf if self.calls_per_round is None else math.floor(oracle_budget + 1e-9)

    def last_projection(self, state: PointState) -> ProjectionRecord:
        point = state.point
        return ProjectionRecord(
            over=self.projected_set(state),
            x=point.x,
            before_projection=point.before_projection,
            y=point.y,
            tolerance2=self.projection(state).tolerance2,
            calls_left=self._whole_calls(state.oracle_budget),
        )
