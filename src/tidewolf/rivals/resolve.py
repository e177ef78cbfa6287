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
from typing import Annotated, Any, ClassVar, NamedTuple, final

from tidewolf.core.feedback import FullInformation
from tidewolf.core.known import Known
from tidewolf.core.settings import Count
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.rivals.program import BestPoint, DescribedK


class State(NamedTuple):
    t: int
    x: Array
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class Resolve(Learner[State]):
    """The best point of the last round, by a linear program every round.

    Parameters
    ----------
    K : ConvexSet
        The set that every played point belongs to; it has a linear description.
    horizon : int, optional
        How many rounds will be played, of which it makes no use. Unit: rounds.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (5, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (5, 1)), np.full(5, 0.5))
    >>> run = tw.run(tw.rivals.Resolve(K), tw.Stream(losses, limits))
    >>> np.round(run.learner.act(run.final_state), 1)
    array([0. , 0.5, 0.5])
    """

    needs: ClassVar = FullInformation
    state_type: ClassVar = State

    K: DescribedK
    horizon: Annotated[
        int | None,
        Count("How many rounds will be played, of which it makes no use.", unit="rounds"),
    ] = None

    def start(self) -> State:
        return State(0, self.K.center)

    def act(self, state: State, known: Known | None = None) -> Array:
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
        solves = "It solves a linear program every round and asks no oracle."
        if self.horizon is None or state.t <= self.horizon:
            return (solves,)
        passed = f"The horizon of {self.horizon} rounds was passed, which changes nothing here."
        return solves, passed

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K), cls(K, horizon=horizon))
