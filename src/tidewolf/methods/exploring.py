"""Learners that observe values alone: they explore around a point that is constant within a block.

A round is played at x + mu u with a fresh direction u (methods/steps/one_point.py); while a block
is open its values are kept, and at its end `step` is given them together with their directions.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from tidewolf.core.arrays import as_count, frozen
from tidewolf.core.errors import InvalidInput, NotSupported, WrongType
from tidewolf.core.feedback import Bandit, require_bandit
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.methods.projected import Pointed, Projecting
from tidewolf.methods.settings import HardSet
from tidewolf.methods.steps.one_point import directions, require_size
from tidewolf.sets.base import ConvexSet

NO_VALUES = Bandit(frozen(np.zeros(0)), frozen(np.zeros(0)))
"""The values of a block that has seen no round yet."""


@dataclass(frozen=True)
class ExplorableSet(HardSet):
    """A set that knows a ball inside it to explore in, or is a single point."""

    def __call__(self, value: Any, what: str) -> Any:
        as_explorable(value, what.rpartition(" of ")[2])
        return super().__call__(value, what)


def as_explorable(K: object, what: str) -> ConvexSet:
    """K, if it knows a ball inside it to explore in, or is a single point."""
    if not isinstance(K, ConvexSet):
        raise WrongType(
            f"{what} needs a set such as sets.Simplex(3), or one of your own (a sets.ConvexSet), "
            f"not {K!r}."
        )
    if K.dimension > 0 and not (K.inner_radius or 0.0) > 0.0:
        raise NotSupported(
            f"{what} explores within a ball around the center of its set, and {K!r} knows of none: "
            f"its inner_radius is {K.inner_radius}. Give a set with an inner_radius above 0."
        )
    return K


class Explored(NamedTuple):
    """The values of a whole block, and where they were seen."""

    losses: Array
    constraints: Array
    directions: Array
    """u_t, (rounds, *shape)"""

    @property
    def rounds(self) -> int:
        return int(self.losses.shape[0])


class Exploring(Pointed, Protocol):
    """A state with the values of an open block."""

    @property
    def open(self) -> Bandit: ...


ExploringState = TypeVar("ExploringState", bound=Exploring)


class Explorer(Projecting[ExploringState]):
    """Abstract: learners that explore around a projected point, and see values alone."""

    needs: ClassVar = Bandit
    on_average: ClassVar = True
    K: ConvexSet
    loss_size: float | None
    constraint_size: float | None
    seed: int

    @abstractmethod
    def exploration_radius(self, state: ExploringState) -> float:
        """mu: how far around the point to explore."""

    def rounds_open(self, state: ExploringState) -> int:
        return state.open.rounds

    def act(self, state: ExploringState, info: RoundInfo | None = None) -> Array:
        return self.acts(state, 1)[0, ...]

    def acts(self, state: ExploringState, k: int, info: RoundInfo | None = None) -> Array:
        state = self.in_epoch(state)
        k = as_count(k, "How many points are asked for", least=0)
        if not 1 <= k <= self.rounds_left(state):
            raise InvalidInput(
                f"The next {k} points were asked for; 1 to {self.rounds_left(state)} are settled "
                "before the next update."
            )
        mu = self.exploration_radius(state)
        return frozen(state.point.x + mu * directions(self.K, self.seed, state.t, k))

    def update(self, state: ExploringState, feedback: Bandit) -> ExploringState:
        state = self.in_epoch(state)
        left = self.rounds_left(state)
        feedback = require_bandit(feedback, left)
        require_size("loss", feedback.loss_values, self.loss_size)
        require_size("constraint", feedback.constraint_values, self.constraint_size)
        t, first = state.t + feedback.rounds, state.t - state.open.rounds
        values = Bandit(
            *(frozen(np.concatenate(parts)) for parts in zip(state.open, feedback, strict=True))
        )
        if feedback.rounds < left:
            waiting: ExploringState = state._replace(t=t, open=values)
            return waiting
        u = directions(self.K, self.seed, first, values.rounds)
        return self.finish_block(state._replace(t=t, open=NO_VALUES), Explored(*values, u))
