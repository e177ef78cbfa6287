"""Ask advisers: at once, unless the caller chooses otherwise.

    with asking(ask):   state = learner.committed(state)

`ask(name, adviser, args)` is what `adviser.propose(*args)` gives, or None: then it is skipped in
this round, and its state stays as it was. With a deadline, or once an adviser failed, it is asked
elsewhere (tidewolf.deadline); a round that is gone through again is closed without those who
slept in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tidewolf.core import arrays, conforming, errors, oracle
from tidewolf.core.round_info import RoundInfo, is_present
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Vertex
from tidewolf.experts.base import Adviser, Price, Proposals
from tidewolf.methods.steps.hedge import Mixer

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
    """Asked at once; an error says whose it is."""
    try:
        return proposed(adviser, args)
    except Exception as error:
        if is_refusal(error, args):
            raise
        raise AdviserFailed(name, error) from error


_ASK: ContextVar[Ask | None] = ContextVar("ask", default=None)


def proposals_of(name: str, adviser: Adviser, *args: Any) -> Proposals | None:
    """What an adviser proposes; None if it sleeps."""
    ask = _ASK.get()
    return adviser.propose(*args) if ask is None else ask(name, adviser, args)


class Advice(NamedTuple):
    points: list[Array | None]
    states: tuple[Any, ...]
    calls: Floats  # oracle calls; those of an adviser with several names are shared between these
    solves: Floats  # linear programs, likewise
    found: tuple[Vertex, ...]  # vertices of the set that they met


def ask_all(
    K: oracle.HasLMO,
    advisers: Sequence[Adviser],
    names: Sequence[str],
    states: Sequence[Any],
    kept: Sequence[Sequence[Array | None] | None],
    info: RoundInfo | None,
    number: int,
    budget: float,
    vertices: tuple[Vertex, ...],
    mixer: Mixer,
    price: Price,
) -> Advice:
    """Ask every adviser for the round of this number, but those whose points are `kept`."""
    asked, sizes = list[Proposals](), [len(adviser.names) for adviser in advisers]
    every = np.ones(len(mixer.totals), bool)
    weights = mixer.weights(every)[-len(names) :] if advisers else mixer.totals
    for adviser, state, points in zip(advisers, states, kept, strict=True):
        found: Proposals | None
        if points is not None:
            found = Proposals(tuple(points), state)
        else:
            at, left = sum(sizes[: len(asked)]), math.floor(budget + 1e-9)
            own_weights = weights[at : at + len(adviser.names)]
            own = adviser.weighed(K, state, own_weights, number, price)
            found = proposals_of(names[at], adviser, K, own, info, number, left, vertices)
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
    """Advisers are asked like this."""
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
