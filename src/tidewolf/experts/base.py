"""An adviser proposes points for the next round, before its feedback.

    proposals = propose(K, state, known, t);   x_t is played;   state = observe(K, state, seen, x_t)

One adviser may stand for several members, one a name. A point that is absent is None: the member
sleeps in that round. Points that are there are members of K.

Advisers are asked at once, unless the caller chooses otherwise:

    with asking(ask):   state = learner.committed(state)

`ask(name, adviser, args)` is what `adviser.propose(*args)` gives, or None: then it is skipped in
this round, and its state stays as it was. With a deadline, or once an adviser failed, it is asked
elsewhere (tidewolf.deadline); a round that is gone through again is closed without those who
slept in it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from tidewolf.core import arrays, conforming, errors, values
from tidewolf.core.feedback import FirstOrder, FullInformation
from tidewolf.core.oracle import HasLMO
from tidewolf.core.round_info import RoundInfo, is_present
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.core.vertices import Vertex
from tidewolf.methods.steps.hedge import Mixer

Price: TypeAlias = Callable[[], float]  # The weight of a violation, in units of the loss.
Info: TypeAlias = RoundInfo | None
Seen: TypeAlias = FullInformation | FirstOrder
Vertices: TypeAlias = tuple[Vertex, ...]


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
    found: Vertices = ()


class Adviser(values.Value, ABC):
    """Abstract: frozen settings, explicit state, pure steps, as a learner.

    A subclass gives `names`, one per expert, and proposes a point for each. With `waits` it is
    asked when the side information of the round is known; else right after the round before, with
    `info=None`. With `needs_functions`, `observe` gets the functions themselves. With
    `gives_members` its points are members of the set for sure; others are checked in every round.
    An adviser that raises an error, or proposes a point outside the set, is skipped in that round
    of a session.

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
    gives_members: ClassVar[bool] = False

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

    def observe(self, K: HasLMO, state: Any, feedback: Seen, x: Array) -> Any:
        """The state after these rounds, in which x was played; as it was unless a subclass learns
        from them.
        """
        return state

    def observe_round(self, K: HasLMO, state: Any, feedback: Seen, x: Array, number: int) -> Any:
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
        self, K: HasLMO, state: Any, info: Info, t: int, budget: int, vertices: Vertices
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


# By the name of the first of its members, which no other adviser has.
Ask: TypeAlias = Callable[[str, Adviser, tuple[Any, ...]], Proposals | None]


class AdviserFailed(Exception):
    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"{name} failed: {in_words(error)}")
        self.name, self.error = name, error


def in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def is_refusal(error: Exception | None, args: tuple[Any, ...]) -> bool:
    """Whether the error refuses the side information that the caller gave."""
    return isinstance(error, errors.InvalidInput) and args[2] is not None


def proposed(adviser: Adviser, args: tuple[Any, ...]) -> Proposals:
    """What anybody's adviser proposes, refused if no point can be mixed with others."""
    found, shape = adviser.propose(*args), args[0].shape
    if not isinstance(found, Proposals) or len(found.points) != len(adviser.names):
        raise TypeError(f"it gave no Proposals with a point, or None, for each of {adviser.names}")
    for z in found.points:
        if z is not None and not (arrays.is_array(z) and tuple(z.shape) == shape and is_present(z)):
            raise ValueError(f"it proposed what is no array of shape {shape}, all finite")
        if z is not None and not (adviser.gives_members or conforming.is_member(args[0], z)):
            raise ValueError("it proposed a point outside the set")
    return found


def naming_who_fails(name: str, adviser: Adviser, args: tuple[Any, ...]) -> Proposals | None:
    try:
        return proposed(adviser, args)
    except Exception as error:
        if is_refusal(error, args):
            raise
        raise AdviserFailed(name, error) from error


_ASK: ContextVar[Ask | None] = ContextVar("ask", default=None)


class Advice(NamedTuple):
    points: list[Array | None]
    states: tuple[Any, ...]
    calls: Floats  # oracle calls; those of an adviser with several names are shared between these
    solves: Floats  # linear programs, likewise
    found: Vertices  # vertices of the set that they met


def ask_all(
    K: HasLMO,
    advisers: Sequence[Adviser],
    names: Sequence[str],
    states: Sequence[Any],
    kept: Sequence[Sequence[Array | None] | None],
    info: Info,
    number: int,
    budget: float,
    vertices: Vertices,
    mixer: Mixer,
    price: Price,
) -> Advice:
    """Ask every adviser for the round of this number, but those whose points are `kept`."""
    asked, sizes = list[Proposals](), [len(adviser.names) for adviser in advisers]
    every, ask = np.ones(len(mixer.totals), bool), _ASK.get()
    weights = mixer.weights(every)[-len(names) :] if advisers else mixer.totals
    for adviser, state, points in zip(advisers, states, kept, strict=True):
        found: Proposals | None = None if points is None else Proposals(tuple(points), state)
        if points is None:
            at, left = sum(sizes[: len(asked)]), math.floor(budget + 1e-9)
            own = adviser.weighed(K, state, weights[at : at + len(adviser.names)], number, price)
            args = K, own, info, number, left, vertices
            found = adviser.propose(*args) if ask is None else ask(names[at], adviser, args)
        asked.append(found or Proposals((None,) * len(adviser.names), state))  # skipped
        budget -= asked[-1].calls
    return Advice(
        [z for one in asked for z in one.points],
        tuple(one.state for one in asked),
        np.repeat([one.calls / size for one, size in zip(asked, sizes, strict=True)], sizes),
        np.repeat([one.solves / size for one, size in zip(asked, sizes, strict=True)], sizes),
        tuple(vertex for one in asked for vertex in one.found),
    )


@contextmanager
def asking(ask: Ask | None) -> Iterator[None]:
    token = _ASK.set(ask)
    try:
        yield
    finally:
        _ASK.reset(token)


@contextmanager
def skipping(names: Collection[str]) -> Iterator[None]:
    """Those of these names sleep, and the others are asked as they are."""
    if not names or _ASK.get() is not None:  # who asks otherwise knows who sleeps
        yield
        return
    with asking(lambda name, one, args: None if name in names else one.propose(*args)):
        yield
