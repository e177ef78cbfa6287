"""What the paper's three learners share (Garber & Kretzu 2024): settings as printed, blocks,
projections, and the horizons from which the theorems say something.

    block   b rounds are played at one point: factor sqrt(T/B) with B oracle calls per round,
            floor(T^{1/2}) without a budget, and a last, shorter block at the horizon
    eps     a projection brings x to |x - y|^2 <= 3 eps: the paper's own, with as many oracle calls
            as it takes, or that of the active set if calls_per_round bounds them

Without eps, B b oracle calls always reach |x - y|^2 <= 8 R^2/(B b - 4) (projection/one_shot.py),
and those that are left bring x nearer. Blocks too short for a distance below R go nearer at once,
and nothing is known beforehand.

All three theorems have b = floor(T^{1/2}) and eps = 61 R^2 T^{-1/2} ln T. If 3 eps is at least
(R + |x_1 - c|)^2, no y of the ball is ever too far from x_1: no oracle call is made and x never
moves. ln T/T^{1/2} falls from T = 8 on, so that one search finds the first horizon that moves. The
conditions of Theorems 4.1 and A.1 are easier for larger T of equal b and for larger squares T = b^2
(the files of the two learners say why): two searches.

Projected points on a budget of oracle calls: a member x to play, and its infeasible iterate y.

    target  ->  (x, y),  |x - y|^2 <= tolerance2, y no farther from any member than the target was

The budget earns `calls_per_round` per round and keeps what is not spent, so oracle calls never
exceed calls_per_round * rounds. `Banked` projects on what the budget holds, first as near as was
guaranteed, then nearer: the second part starts where the first ended and only brings x and y
nearer, so that whatever the first part reached still holds; had one asked for the finer tolerance
at once, calls that run out in between would prove nothing about the coarser one. `AsPrinted` is the
paper's own projection, which takes as many calls as it needs.

A learner's `step` says where y goes (`ProjectedPoint.moved_to`); `Projecting` does the rest.
"""

import math
import warnings
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from tidewolf.core import arrays, errors
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods import base, capabilities, clock, settings
from tidewolf.methods.steps.saddle import SaddleSteps, unit_free_steps
from tidewolf.methods.steps.slopes import unit_length
from tidewolf.projection import ActiveSet, afp_paper
from tidewolf.projection.active import Active


class ProjectedPoint(NamedTuple):
    """A point of a set with its active set, and its infeasible iterate y."""

    active: Active
    before_projection: Array  # where y was before the last projection
    y: Array
    distance: float = 0.0  # |x - y|

    @classmethod
    def start(cls, K: HasLMO, x: Array | None = None) -> "ProjectedPoint":
        """A member, the center unless told otherwise, with y there too."""
        return cls.of(ActiveSet.start(K) if x is None else sole_atom(K, x))

    @classmethod
    def of(cls, active: Active) -> "ProjectedPoint":
        return cls(active, active.x, active.x)

    @property
    def x(self) -> Array:
        return self.active.x

    def moved_to(self, target: Array) -> "ProjectedPoint":
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

    def project(self, K: HasLMO, point: ProjectedPoint, most: float) -> tuple[ProjectedPoint, int]:
        """The point projected from where its y was moved to, and the calls, `most` of them."""
        found = point.active.nearest(K, point.before_projection, self.tolerance2, most)
        calls = found.calls
        if self.finer2 is not None and self.finer2 < found.distance2 and calls < most:
            found = found.active.nearest(K, found.y, self.finer2, most - calls)
            calls += found.calls
        distance = math.sqrt(found.distance2)
        return point._replace(active=found.active, y=found.y, distance=distance), calls


class AsPrinted(NamedTuple):
    """The paper's projection to `tolerance2`, whatever calls it takes."""

    tolerance2: float

    def project(self, K: HasLMO, point: ProjectedPoint, most: float) -> tuple[ProjectedPoint, int]:
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


@dataclass(frozen=True, eq=False, repr=False)
class PaperLearner(Projecting[clock.S]):
    """Abstract: the paper's learners, with its settings as printed or without units."""

    block_factor: ClassVar[float]
    printed: ClassVar[dict[str, Any]]  # steps as printed that are worth testing

    K: settings.HardSetK
    horizon: settings.OptionalRounds = None
    calls_per_round: settings.OptionalPositive = None
    loss_lipschitz: settings.OptionalPositive = None
    constraint_lipschitz: settings.OptionalPositive = None
    block: settings.OptionalRounds = None
    eps: settings.AboveZero = None
    start_at: settings.StartAt = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eps is None and self.calls_per_round is None:
            object.__setattr__(self, "calls_per_round", 1.0)

    @abstractmethod
    def theorem_values(self, T: int) -> dict[str, float]:
        """The settings that the theorem gives for T rounds, by name."""

    @abstractmethod
    def finest2(self, T: int) -> float:
        """The |x - y|^2 that calls left over are spent on, without eps."""

    def condition_concern(self) -> str:
        """Why the theorem guarantees nothing for these settings; empty if it does."""
        return ""

    @classmethod
    def theorem(
        cls,
        K: HasLMO,
        *,
        horizon: int,
        loss_lipschitz: float,
        constraint_lipschitz: float,
        start: Array | None = None,
    ) -> Self:
        """The settings of the learner's theorem; warns if the horizon is too short for them to move
        the point or to guarantee anything.

        Parameters
        ----------
        K : HasLMO
            The hard constraints: every decision is a point of this set.
        horizon : int
            How many rounds will be played.
        loss_lipschitz, constraint_lipschitz : float
            The largest slopes that losses and constraints may have; steeper ones are refused.
        start : array, optional
            Where to start, a member of the set. None: the center.

        Returns
        -------
        Learner
            One with the values of the theorem as settings; `dataclasses.replace` changes one of
            them.
        """
        assumed = {"loss_lipschitz": loss_lipschitz, "constraint_lipschitz": constraint_lipschitz}
        return cls._theorem(K, start, {"horizon": horizon, **assumed})

    @classmethod
    def _theorem(cls, K: HasLMO, start: Array | None, assumed: dict[str, Any], **more: Any) -> Self:
        """With the theorem's settings, after a warning if they do nothing; all that the theorem
        assumes must be given.
        """
        plain = cls(K, **assumed, **more)
        plain.require_given(*assumed)
        values: dict[str, Any] = plain.theorem_values(plain.horizon or 1)
        made = cls(K, **assumed, **more, **values, start_at=start)
        if made.concerns:
            cure = f"{cls.__name__}(K, horizon) has settings for any horizon."
            kind = errors.FrozenRegime if made.frozen else errors.ShortHorizon
            warnings.warn(" ".join((*made.concerns, cure)), kind, stacklevel=3)
        return made

    def require_given(self, *names: str) -> None:
        for name in names:
            if getattr(self, name) is None:
                raise errors.InvalidInput(
                    f"The theorem's settings of {type(self).__name__} need {name}: give {name}.",
                    setting=name,
                )

    def block_length(self, state: clock.S) -> int:
        return self.block_for(state.epoch.horizon)

    def block_for(self, T: int) -> int:
        B, chosen = self.calls_per_round, self.block
        if chosen is None:
            chosen = math.isqrt(T) if B is None else round(self.block_factor * math.sqrt(T / B))
        return max(1, min(T, chosen))

    def known_distance2(self, T: int) -> float | None:
        """The |x - y|^2 that projections always reach; None if the budget alone decides."""
        asked = 3.0 * (self.eps or 0.0)
        if self.calls_per_round is None:
            return asked
        calls = self.calls_per_round * self.block_for(T)
        return max(asked, 8.0 / (calls - 4.0) * unit_length(self.K) ** 2) if calls > 12.0 else None

    def projection(self, state: clock.S) -> Projection:
        T, asked = state.epoch.horizon, 3.0 * (self.eps or 0.0)
        if self.calls_per_round is None:
            return AsPrinted(asked)
        finest2 = asked or self.finest2(T)
        return Banked(self.known_distance2(T) or finest2, finest2)

    @property
    def first_point(self) -> Array | None:
        return None if self.start_at is None else arrays.like(self.start_at, self.K.center)

    @property
    def first_distance(self) -> float:
        return 0.0 if self.start_at is None else arrays.norm(self.first_point - self.K.center)

    @property
    def first_reach(self) -> float:
        """How far members are at most from where the run starts."""
        return min(self.K.diameter, self.K.radius + self.first_distance)

    def reach(self, state: clock.S, rounds: int) -> float:
        """How far members are at most from y, before the step of a block of so many rounds."""
        if state.t == rounds:
            return self.first_reach
        distance: float = state.point.distance
        return min(2.0 * self.K.radius, self.K.diameter + distance)

    def nothing_known(self, T: int) -> base.Bound:
        blocks = f"With {T} rounds in blocks of {self.block_for(T)}"
        return base.Bound(reason=f"{blocks} nothing is guaranteed before the run.")

    @property
    def frozen(self) -> bool:
        """Whether eps is so large that the point never leaves its start."""
        R = self.K.radius
        return R > 0.0 and frozen_at(self.eps or 0.0, R, self.first_distance)

    @cached_property
    def concerns(self) -> tuple[str, ...]:
        found = []
        if self.frozen:
            R, far = self.K.radius, self.first_distance
            found.append(
                f"eps = {self.eps:.6g} never asks the point to leave its start: no oracle call is "
                f"made unless eps is below {(R + far) ** 2 / 3.0:.6g}, as the theorem's is from a "
                f"horizon of {first_moving_horizon(R, far)} on."
            )
        if self.K.diameter > 0.0 and (unmet := self.condition_concern()):
            found.append(unmet)
        return tuple(found)

    def notes(self, state: clock.S) -> tuple[str, ...]:
        return (*self.concerns, *super().notes(state))

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Self]:
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=2, calls_per_round=0.7),
            cls(K, horizon=max(1, horizon // 3), calls_per_round=5.0),
            cls(K, block=3),
            cls(K, block=3, eps=0.01 * unit_length(K) ** 2, **cls.printed),
        )


@dataclass(frozen=True, eq=False, repr=False)
class SaddleLearner(PaperLearner[clock.S]):
    """Abstract: those with a multiplier. If eta or delta is given, steps are the paper's, in the
    units of the caller, and the other one is the theorem's.
    """

    block_factor: ClassVar = 1.46
    exponents: ClassVar = (0.75, 0.875)
    delta_needs: ClassVar[tuple[str, ...]]  # what the theorem's delta is computed from
    eta_needs: ClassVar[tuple[str, ...]] = ()

    eta: settings.AboveZero = None
    delta: settings.AboveZero = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.as_printed:
            self.require_given(*(self.delta_needs if self.delta is None else ()))
            self.require_given(*(self.eta_needs if self.eta is None else ()))

    @abstractmethod
    def condition(self, tol: float, b: float, eta: float, delta: float, *more: float) -> bool:
        """Whether the theorem's condition holds for such settings, with |x - y|^2 <= tol."""

    def own_values(self, T: int) -> tuple[float, ...]:
        s = self.steps(T)
        return self.block_for(T), s.eta, s.theta / s.eta

    def theorem_holds(self, T: int) -> bool:
        *values, eps = self.theorem_values(T).values()
        return self.condition(3.0 * eps, *values)

    def theorem_horizon(self) -> int:
        holds = self.theorem_holds
        b = least_holding(lambda b: holds(b * b), 3)
        return least_holding(lambda T: b * b <= T or holds(T), max(9, (b - 1) ** 2))

    @property
    def as_printed(self) -> bool:
        return self.eta is not None or self.delta is not None

    def steps(self, T: int) -> SaddleSteps:
        if self.as_printed:
            theorem = self.theorem_values(T)
            eta, delta = self.eta or theorem["eta"], self.delta or theorem["delta"]
            return SaddleSteps(eta, eta, delta * eta)
        distance = math.sqrt(self.known_distance2(T) or 0.0) / unit_length(self.K)
        return unit_free_steps(T, self.block_for(T), distance)

    def condition_concern(self) -> str:
        T, needed = self.horizon, (getattr(self, name) for name in self.delta_needs)
        if not self.as_printed or T is None or None in needed:
            return ""
        distance2 = self.known_distance2(T)
        if distance2 is not None and self.condition(distance2, *self.own_values(T)):
            return ""
        return (
            f"The theorem guarantees nothing for {T} rounds: its condition holds for its own "
            f"settings from a horizon of {self.theorem_horizon()} on."
        )


def theorem_eps(T: int, R: float) -> float:
    """The eps of all three theorems; for one round, in which nothing is projected, any will do."""
    return 61.0 * R**2 * (math.log(T) or 1.0) / math.sqrt(T)


def frozen_at(eps: float, R: float, distance: float) -> bool:
    return 3.0 * eps >= (R + distance) ** 2


def first_moving_horizon(R: float, distance: float) -> int:
    """The least horizon of at least 8 from which on the theorem's eps lets such a start move."""
    return least_holding(lambda T: not frozen_at(theorem_eps(T, R), R, distance), 8)


def least_holding(holds: Callable[[int], bool], least: int) -> int:
    """The least number of at least `least` that holds, if whatever is above one that holds does
    too.
    """
    high = least
    while not holds(high):
        high *= 2
    return bisect_left(range(high), True, lo=least, key=holds)
