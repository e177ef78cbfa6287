"""The one loop: decide, then learn.

    state = informed(state, known);  x = act(state);  reveal what the learner reads of the next
        rounds at x;  state = update(state, seen);  yield

What the stream knows before a round (`Stream.known`) is said before anything of it is shown, and
the point is taken before, too.

Clocks, progress, history and files are consumers of this iterator. x is constant until an update is
due, so the rounds up to `rounds_left` are evaluated together. A learner that needs Bandit feedback
explores: it plays a point of its own in each round, all of them known until an update is due, and
sees the two values there.

Rounds that the stream marks as unseen are played at the point that stands, evaluated, and not
handed over: the learner's clock stands still, as if nobody had called `observe`. What is known
before the next round takes the place of what was known before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tidewolf.core.arrays import SILENCE, as_direction, namespace
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.errors import InvalidInput, TidewolfError, WrongShape, WrongType
from tidewolf.core.feedback import Bandit, Feedback, FirstOrder, FullInformation, first_order
from tidewolf.core.known import Known
from tidewolf.core.types import Array
from tidewolf.functions.custom import Custom
from tidewolf.methods.base import Learner, Progress

S = TypeVar("S", bound=Progress)


class Played(NamedTuple):
    """Rounds that shared one update."""

    x: Array
    """the point played in each of them; one point a round, (k, *shape), where the learner needs
    Bandit feedback
    """
    losses: Array
    constraints: Array
    """their values; positive ones are breaches"""
    state: Any
    """the state after them"""
    seen: bool = True
    """whether the learner got feedback on them; where not, the state is the one they were played
    from
    """


def play(learner: Learner[S], stream: Stream, state: S | None = None) -> Iterator[Played]:
    """Play a stream, one update at a time: the loop itself, where `tw.run` records too much.

    Parameters
    ----------
    learner : Learner
        Who plays.
    stream : Stream
        The losses and constraints of the rounds.
    state : State, default None
        The learner's state to go on from; None: from the start.

    Returns
    -------
    iterator of Played
        For each update the point that was played, the losses and constraints there, one for each
        round up to it, the state after them, and whether the learner saw them.

    Raises
    ------
    WrongType
        Where the learner, the stream or the state is something else.
    WrongShape
        Where the stream's functions take points of another shape than the learner's set has.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> for played in tw.play(tw.LyapunovDescent(K), stream[:2]):
    ...     print(played.x, played.losses, played.constraints)
    [0.5 0.5] [1.5] [-0.25]
    [1. 0.] [1.] [0.25]
    """
    if not isinstance(learner, Learner):
        raise WrongType(
            f"A stream is played by a learner such as LyapunovDescent(K), not by {learner!r}."
        )
    if state is not None and not isinstance(state, learner.state_type):
        raise WrongType(
            f"{type(learner).__name__} goes on from a state of its own, not from a "
            f"{type(state).__name__}."
        )
    if not isinstance(stream, Stream):
        raise WrongType(
            f"A learner plays a Stream(losses, constraints), not {type(stream).__name__}."
        )
    if stream.shape != learner.hard_set.shape:
        shape = learner.hard_set.shape
        raise WrongShape(
            f"The stream's functions take points of shape {stream.shape}; the learner's set has "
            f"points of shape {shape}."
        )
    return _rounds(learner, stream, learner.start() if state is None else state)


def _rounds(learner: Learner[S], stream: Stream, state: S) -> Iterator[Played]:
    t, rounds = 0, len(stream)
    listens, stale = type(learner).informed is not Learner.informed, False
    while t < rounds:
        k = min(learner.rounds_left(state), rounds - t)
        if k < 1:
            raise InvalidInput(
                f"{learner!r} takes {k} rounds in round {t + 1}; rounds_left is at least 1."
            )
        told, k = _alike(stream, t, k)
        if listens:
            known = stream.known(t)
            if known is not None or stale:  # what was known of rounds that were not seen is over
                state = learner.informed(state, Known() if known is None else known)
            stale = not told
        explores = learner.needs is Bandit
        x = (
            learner.act(state)
            if not explores
            else learner.acts(state, k)
            if told
            else _again(learner.act(state), k)
        )
        x = as_direction(
            x,
            (k, *stream.shape) if explores else stream.shape,
            f"The point that {type(learner).__name__} plays",
        )
        losses, constraints = (
            stream.losses.view(slice(t, t + k)),
            stream.constraints.view(slice(t, t + k)),
        )
        with SILENCE:
            reads = learner.reads(losses)
            values, seen = _looked(losses, constraints, x, reads, told, learner.per_limit)
            state = state if seen is None else learner.update(state, seen)
        t += k
        yield Played(x, *values, state, seen=seen is not None)


def _looked(
    losses: Batch,
    constraints: Batch,
    x: Array,
    needs: type[Feedback],
    told: bool,
    per_limit: bool,
) -> tuple[tuple[Array, Array], Feedback | None]:
    """The values of these rounds, and what the learner is told of them."""
    values = _values(losses, x, needs is Bandit), _values(constraints, x, needs is Bandit)
    if not told:
        return values, None
    if needs is Bandit:
        return values, Bandit(*values)
    if needs is FirstOrder:
        return values, first_order(losses, constraints, x, values[1], per_limit)
    return values, FullInformation(losses, constraints)


def _alike(stream: Stream, t: int, most: int) -> tuple[bool, int]:
    """Whether round t is seen, and how many rounds from there on are alike, at most so many."""
    if stream.seen is None:
        return True, most
    told, ahead = bool(stream.seen[t]), stream.seen[t : t + most]
    return told, most if (ahead == told).all() else int(np.argmin(ahead == told))


def _again(x: Array, k: int) -> Array:
    """The same point k times, (k, *shape)."""
    return namespace(x).broadcast_to(x, (k, *x.shape))


def _values(batch: Batch, x: Array, explores: bool) -> Array:
    try:
        return batch.values_at(x) if explores else batch.values(x)
    except (TypeError, RuntimeError) as error:
        if isinstance(error, TidewolfError) or isinstance(batch, Custom):
            raise
        raise WrongType(
            f"{batch!r} cannot be evaluated at a {type(x).__name__} of {x.dtype}: {error}. "
            "Functions and set live in one array library and dtype; `K.to(array)` moves a set."
        ) from error
