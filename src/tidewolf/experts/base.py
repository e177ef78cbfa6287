"""An adviser proposes points for the next round, before its feedback.

    proposals = propose(K, state, known, t);   x_t is played;   state = observe(K, state, seen, x_t)

One adviser may stand for several members, one a name. A point that is absent is None: the member
sleeps in that round. Points that are there are members of K.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeAlias

from tidewolf.core import round_info, values
from tidewolf.core.feedback import FirstOrder, FullInformation
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.core.vertices import Vertex

Price: TypeAlias = Callable[[], float]  # The weight of a violation, in units of the loss.


class Proposals(NamedTuple):
    """The proposals of an adviser for the next round.

    Parameters
    ----------
    points : tuple of array or None
        One point of the set per name; None: no advice.
    state : NamedTuple
        The new state of the adviser.
    calls : int
        Oracle calls that it took.
    solves : int
        Linear programs that it solved.
    found : tuple of Vertex
        Vertices it found that it was not given.

    Examples
    --------
    >>> adviser, K = tw.experts.Named("incumbent"), tw.sets.Simplex(2)
    >>> adviser.propose(K, adviser.start(K), None, 0, 0, ()).points
    (None,)
    """

    points: tuple[Array | None, ...]
    state: Any
    calls: int = 0
    solves: int = 0
    found: tuple[Vertex, ...] = ()


class Adviser(values.Value, ABC):
    """Abstract: frozen settings, explicit state, pure steps, as a learner.

    A subclass gives `names`, one per expert, and proposes a point for each. With `waits` it is
    asked when the side information of the round is known; else right after the round before, with
    `info=None`. An adviser that raises an error, or proposes a point outside the set, is skipped in
    that round of a session.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class Planner(tw.experts.Adviser):
    ...     share: float = 0.5
    ...     names, waits = ("planner",), False
    ...     def start(self, K):
    ...         return ()  # what it remembers: nothing
    ...     def observe(self, K, state, feedback, x):
    ...         return state
    ...     def propose(self, K, state, info, t, budget, vertices):
    ...         return tw.experts.Proposals((np.array([self.share, 1.0 - self.share]),), state)
    >>> session = tw.Session(tw.Ensemble(tw.sets.Simplex(2), experts=[Planner(0.9)]))
    >>> session.observe(costs=[0.0, 1.0])
    >>> "planner" in [part.name for part in session.explain().experts if part.present]
    True
    """

    needs_functions: ClassVar[bool] = False
    """whether `observe` has use for the functions themselves"""
    gives_members: ClassVar[bool] = False
    """whether its points are members of the set for sure; others are checked in every round"""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of its experts, one per proposed point."""

    @property
    def in_words(self) -> tuple[str, ...]:
        """The names as used in sentences."""
        return self.names

    @property
    @abstractmethod
    def waits(self) -> bool:
        """Whether its proposals depend on the side information of the round."""

    @abstractmethod
    def start(self, K: HasLMO) -> Any:
        """The state before the first round; refuses a set that it cannot advise on."""

    @abstractmethod
    def observe(
        self, K: HasLMO, state: Any, feedback: FullInformation | FirstOrder, x: Array
    ) -> Any:
        """The state after these rounds, in which x was played."""

    def observe_round(
        self, K: HasLMO, state: Any, feedback: FullInformation | FirstOrder, x: Array, number: int
    ) -> Any:
        """`observe`, with the number of the first of these rounds, from 0: rounds may come late
        and out of order.
        """
        return self.observe(K, state, feedback, x)

    def weighed(self, K: HasLMO, state: Any, weights: Floats, t: int, price: Price) -> Any:
        """The state before it is asked for round t, if these are the weights of its experts, and
        `price()` is the present weight of a violation against the loss.
        """
        return state

    @abstractmethod
    def propose(
        self,
        K: HasLMO,
        state: Any,
        info: round_info.RoundInfo | None,
        t: int,
        budget: int,
        vertices: tuple[Vertex, ...],
    ) -> Proposals:
        """Propose points for the next round t, counted from 0.

        `vertices` were found by others since the last call; `budget` is the number of oracle calls
        that it may make.
        """

    def migrated(self, K: HasLMO, state: Any, entries: Int64s) -> Any:
        """The state over another set, where each entry of the old one's points is at `entries` in
        those of the new, -1 where it is gone; it begins anew where the adviser says nothing else.
        """
        return self.start(K)

    def reserves(self, state: Any) -> int:
        """How many oracle calls it needs for its next proposals."""
        return 0

    def outside(self, state: Any) -> float:
        """The largest distance of a proposed point from the set, before projection."""
        return 0.0
