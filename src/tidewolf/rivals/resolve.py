"""Re-solving with the last round's data: what a practitioner would try first.

    x_{t+1}  =  argmin { f_t(x) : x in K, g_t(x) <= 0 },
    where no point keeps the limit, among those that breach it least

It forgets every round but the last, and promises nothing: costs that turn round every time mislead
it every time.
Linear losses, limits made of half-spaces, sets with a linear description.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.feedback import FullInformation
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.settings import settle
from tidewolf.rivals.program import BestPoint
from tidewolf.sets.base import ConvexSet


class State(NamedTuple):
    t: int
    x: Array
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class Resolve(Learner[State]):
    """The best point of the last round, by a linear program every round."""

    needs: ClassVar = FullInformation
    state_type: ClassVar = State

    K: ConvexSet
    horizon: int | None = None
    """It makes no use of one."""

    def __post_init__(self) -> None:
        BestPoint(self.K, "Resolve")  # refuses a set it cannot describe
        settle(self)

    @property
    def hard_set(self) -> ConvexSet:
        return self.K

    def start(self) -> State:
        return State(0, self.K.center)

    def act(self, state: State) -> Array:
        return state.x

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, seen: FullInformation) -> State:
        self._best.require(seen, 1)
        return State(state.t + 1, self._best(*seen))

    @cached_property
    def _best(self) -> BestPoint:
        return BestPoint(self.K, "Resolve")

    def bound(self, record: Record) -> Bound:
        return Bound(None, None, "The best point of the last round promises nothing for the next.")

    def notes(self, state: State) -> tuple[str, ...]:
        passed = self.horizon is not None and state.t > self.horizon
        solves = "It solves a linear program every round and asks no oracle."
        return (
            (
                solves,
                f"The horizon of {self.horizon} rounds was passed, which changes nothing here.",
            )
            if passed
            else (solves,)
        )

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K), cls(K, horizon=horizon))
