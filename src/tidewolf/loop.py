"""The loop: decide, then learn.

    state = with_info(state, info);  x = act(state);  reveal what the learner reads of the next
        rounds at x;  state = update(state, feedback);  yield

Side information (`Stream.info`) is given to the learner, and the point is taken, before feedback.

Clocks, progress, history and files are consumers of this iterator. x is constant until an update is
due, so the rounds up to `rounds_left` are evaluated together. A learner that needs Bandit feedback
plays a point of its own in each round, all of them known until an update is due, and observes the
two values there.

Rounds that the stream marks as unseen are played at the current point and evaluated; the learner
gets no feedback on them, as without a call of `observe`.

If feedback comes late (`Stream.arrives`), or other points were played than the learner decided
(`Stream.played`), rounds are played one at a time:

    x = act(state);  state = defer(state), if round t is observed later;  at the end of round t
        state = on_feedback(state, all that arrives then)

and rounds that never arrive are dropped at once. Pending rounds are in the learner's state, their
functions in the stream: to continue from such a state, give the whole stream, and `first`.

Rounds that come one by one, from a feed that may never end, are streams of one round each, played
by the same loop one after another: only the learner's state is kept.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tidewolf.core import arguments, arrays, conforming, errors, feedback, round_info
from tidewolf.core.batch import NEVER, Batch, Stream
from tidewolf.core.types import Array
from tidewolf.functions import autograd, combined, support
from tidewolf.kernels.rounds import LOSS, VALUE
from tidewolf.methods import base, capabilities, kernel_functions
from tidewolf.methods.late import next_round

S = TypeVar("S", bound=base.Progress)


class Played(NamedTuple):
    """Rounds that shared one update.

    Attributes
    ----------
    x : Array
        The point played in each of them; one point per round, (k, *shape), where the learner
        needs Bandit feedback.
    constraints : Array
        Their values; positive ones are violations.
    seen : bool
        Whether the learner got feedback at their end, on them or on rounds that waited for it;
        where not, it has learned nothing from them.
    """

    x: Array
    losses: Array
    constraints: Array
    state: Any
    seen: bool = True


def play(
    learner: base.Learner[S], stream: Stream | Iterable[Any], state: S | None = None, first: int = 0
) -> Iterator[Played]:
    """Play a stream, or any iterable of rounds, one update at a time: the loop of `tw.run` without
    its records.

    Parameters
    ----------
    learner : Learner
        The learner.
    stream : Stream or iterable
        The losses and constraints of the rounds; or an iterable of rounds, which may never end and
        of which nothing is kept: each a pair (loss, constraint) of batches, or (costs, capacities)
        of arrays, a Stream, or a mapping such as {"costs": .., "capacities": .., "time": ..}.
    state : State, default None
        The state to resume from. None: the learner's initial state.
    first : int, default 0
        The round of the stream, from 0, to begin with. Earlier ones are not played; their feedback
        may still arrive, where the state waits for it. An iterable begins with its next one.

    Returns
    -------
    iterator of Played
        For each update the point that was played, the losses and constraints there, one for each
        round up to it, the state after them, and whether the learner saw them.

    Raises
    ------
    WrongType
        If the learner, the stream or the state is something else.
    WrongShape
        If the stream's functions take points of another shape than the learner's set has.
    NotSupported
        Where feedback comes late, or other points were played, and the learner cannot take that.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> for played in tw.play(tw.LyapunovDescent(K), stream[:2]):
    ...     print(played.x, played.losses, played.constraints)
    [0.5 0.5] [1.5] [-0.25]
    [1. 0.] [1.] [0.25]
    >>> def feed():  # without an end
    ...     while True:
    ...         yield {"costs": [1.0, 2.0], "capacities": [0.75, 1.0]}
    >>> moves = tw.play(tw.LyapunovDescent(K), feed())
    >>> next(moves).x, next(moves).x
    (array([0.5, 0.5]), array([1., 0.]))
    """
    arguments.as_kind(learner, base.Learner, "Expected a learner such as LyapunovDescent(K)")
    if state is not None and not isinstance(state, learner.state_type):
        base.refuse_state(learner, state)
    if not isinstance(stream, Stream):
        return _feed(learner, stream, state, first)
    _require_playable(learner, stream)
    first = arrays.as_count(first, "The first round", least=0, most=len(stream))
    return _stream_rounds(learner, stream, learner.start() if state is None else state, first)


def _feed(
    learner: base.Learner[S], rounds: Iterable[Any], state: S | None, first: int
) -> Iterator[Played]:
    items: Iterator[Any] | None = None
    with suppress(TypeError):  # an array without axes
        if isinstance(rounds, Iterable) and not isinstance(rounds, str | bytes | Mapping):
            items = iter(rounds)
    if items is None:
        raise errors.WrongType(
            f"Expected a Stream(losses, constraints), or rounds that are each {support.SUCH}, "
            f"not {type(rounds).__name__}."
        )
    errors.refuse(
        arrays.as_count(first, "The first round", least=0),
        f"Rounds that come one by one begin with the next, not with {first}.",
    )
    return _one_by_one(learner, items, learner.start() if state is None else state)


def _one_by_one(learner: base.Learner[S], items: Iterator[Any], state: S) -> Iterator[Played]:
    t, stale, center = 0, False, learner.K.center
    names = getattr(learner.K, "names", None)
    for item in items:
        one = support.as_round(item, t, center, names)
        _require_playable(learner, one)
        for played in _stream_rounds(learner, one, state, 0, stale):
            state = played.state
            yield played
        t += len(one)
        stale = stale if not len(one) else one.seen is not None and not bool(one.seen[-1])


def _require_playable(learner: base.Learner[S], stream: Stream) -> None:
    if stream.shape != learner.K.shape:
        raise errors.WrongShape(
            f"Expected functions of points of shape {learner.K.shape}, as the set of the learner "
            f"has, not {stream.shape}."
        )
    if stream.late or stream.played is not None:
        capabilities.late_feedback(learner)


def _stream_rounds(
    learner: base.Learner[S], stream: Stream, state: S, first: int, stale: bool = False
) -> Iterator[Played]:
    """The rounds of a stream from some state; `stale`: the round before it was not seen."""
    is_plain = not stream.late and stream.played is None
    return (_rounds if is_plain else _late_rounds)(learner, stream, state, first, stale)


def _rounds(
    learner: base.Learner[S], stream: Stream, state: S, first: int, stale: bool
) -> Iterator[Played]:
    t, rounds, listens = first, len(stream), _listens(learner, stream)
    per_constraint = capabilities.is_per_constraint(learner)
    compiled, kernel = compiled_rounds(learner, stream), capabilities.kernel_of(learner)
    while t < rounds:
        if compiled is not None and kernel.takes(state):
            x, given = learner.act(state), compiled.at(t)
            found = kernel.play(kernel.begin(state), given, t - compiled.start, 1)
            if found.done:
                state, t = found.after.state, t + 1
                yield Played(x, found.columns[:, LOSS], found.columns[:, VALUE], state)
                continue
        k = min(learner.rounds_left(state), rounds - t)
        if k < 1:
            raise errors.InvalidInput(f"rounds_left of {learner!r} must be at least 1, not {k}.")
        told, k = _alike(stream, t, k)
        if listens:
            state, stale = _with_side_information(learner, stream, t, state, stale), not told
        explores, shape = learner.needs is feedback.Bandit, stream.shape
        x = capabilities.acts(learner, state, k) if explores and told else learner.act(state)
        if explores:
            shape = (k, *shape)
            x = x if told else arrays.namespace(x).broadcast_to(x, shape)
        x = arrays.as_direction(x, shape, f"The point that {type(learner).__name__} plays")
        functions = functions_of(stream, slice(t, t + k), learner)
        with arrays.SILENCE:
            read = capabilities.feedback_read(learner, functions.losses)
            needs = read if told or explores else feedback.FullInformation
            values, seen = revealed(functions, x, needs, per_constraint)
            with base.few_threads(learner.K):
                state = learner.update(state, seen) if told else state
        t += k
        yield Played(x, *values, state, seen=told)


def _listens(learner: base.Learner[Any], stream: Stream) -> bool:
    return isinstance(learner, capabilities.UsesInfo) or stream.unavailable is not None


def _with_side_information(
    learner: base.Learner[S], stream: Stream, t: int, state: S, stale: bool
) -> S:
    info = stream.info(t) or (round_info.RoundInfo() if stale else None)
    return state if info is None else capabilities.with_info(learner, state, info)


def functions_of(
    stream: Stream, rounds: slice, learner: base.Learner[Any] | None = None
) -> feedback.FullInformation:
    """The functions of rounds, with what they spend if the learner knows budgets."""
    losses, budgets = stream.losses.view(rounds), stream.budgets
    known = getattr(getattr(learner, "state_type", None), "_fields", ())
    if budgets is not None and "budgets" in known:
        spends = tuple(batch.view(rounds) for batch in budgets.values())
        losses = combined.Charged._unchecked(parts=(losses, *spends), names=tuple(budgets))
    return feedback.FullInformation(losses, stream.constraints.view(rounds))


def compiled_rounds(
    learner: base.Learner[Any], stream: Stream
) -> kernel_functions.StreamFunctions | None:
    """The functions of a stream as the learner's kernel reads them; None if there is no kernel,
    or rounds need more than it can do.
    """
    kernel = capabilities.kernel_of(learner)
    more = stream.seen, stream.unavailable, stream.played, stream.budgets
    if kernel is None or stream.late or any(one is not None for one in more):
        return None
    return kernel_functions.StreamFunctions.of(stream) if kernel.plays(stream) else None


def _late_rounds(
    learner: base.Learner[S], stream: Stream, state: S, first: int, stale: bool
) -> Iterator[Played]:
    numbers, arrives, due_at = _calendar(stream, next_round(state), first)
    late, listens = capabilities.late_feedback(learner), _listens(learner, stream)
    for t in range(first, len(stream)):
        told = stream.seen is None or bool(stream.seen[t])
        if listens:
            state, stale = _with_side_information(learner, stream, t, state, stale), not told
        x = arrays.as_direction(
            learner.act(state), stream.shape, f"The point that {type(learner).__name__} plays"
        )
        played = _override(learner, stream, t)
        played = x if played is None else played
        with arrays.SILENCE:
            losses, limits = (_values(f, played) for f in functions_of(stream, slice(t, t + 1)))
            decisions = {one.round: one.x for one in getattr(state, "pending", ())}
            if told and arrives[t] == t:
                decisions[numbers[t]] = x
            elif told:
                state = late.defer(state)
                if arrives[t] == NEVER:
                    state = late.drop(state, (numbers[t],))
            due = [s for s in due_at.get(t, ()) if numbers[s] in decisions]
            arrivals = [
                _arrival(learner, stream, s, numbers[s], decisions[numbers[s]]) for s in due
            ]
            if len(decisions) == 1 and due == [t] and arrivals[0].played is None:
                state = learner.update(state, arrivals[0].feedback)
            elif arrivals:
                state = late.on_feedback(state, arrivals)
        yield Played(played, losses, limits, state, seen=bool(arrivals))


def _calendar(
    stream: Stream, upcoming: int, first: int
) -> tuple[list[int], list[int], dict[int, list[int]]]:
    rounds = np.arange(len(stream))
    seen = np.ones(len(rounds), dtype=bool) if stream.seen is None else stream.seen
    numbers = upcoming + np.cumsum(seen) - seen - np.count_nonzero(seen[:first])
    arrives = rounds if stream.arrives is None else stream.arrives
    found, due = np.where(seen, arrives, NEVER).tolist(), defaultdict[int, list[int]](list)
    for t, end in enumerate(found):
        due[end].append(t)
    return numbers.tolist(), found, due


def _override(learner: base.Learner[Any], stream: Stream, t: int) -> Array | None:
    x = stream.override(t)
    if x is None:
        return None
    x = arrays.as_direction(x, stream.shape, f"What was played in round {t}")
    if not conforming.is_member(learner.K, x):
        raise errors.InvalidInput(
            f"What was played in round {t} is no member of the learner's set, by "
            f"{learner.K.infeasibility(x):.3g}. NaN: the decision was played."
        )
    return arrays.frozen(x + 0.0)


def _arrival(
    learner: base.Learner[Any], stream: Stream, t: int, number: int, decision: Array
) -> feedback.Arrival:
    functions = functions_of(stream, slice(t, t + 1), learner)
    played = _override(learner, stream, t)
    instead = None if played is None else feedback.compared(functions, played, decision)
    x = decision if played is None or instead is not None else played
    needs = capabilities.feedback_read(learner, functions.losses)
    _, seen = revealed(functions, x, needs, capabilities.is_per_constraint(learner))
    return feedback.Arrival(number, seen, played, instead)


def revealed(
    rounds: feedback.FullInformation, x: Array, needs: type[feedback.Feedback], per_constraint: bool
) -> tuple[tuple[Array, Array], feedback.Feedback]:
    explores, seen = needs is feedback.Bandit, rounds  # type: bool, feedback.Feedback
    values = _values(rounds.losses, x, explores), _values(rounds.constraints, x, explores)
    if explores:
        seen = feedback.Bandit(*values)
    elif needs is feedback.FirstOrder:
        seen = feedback.first_order(*rounds, x, values[1], per_constraint)
    return values, seen


def _alike(stream: Stream, t: int, most: int) -> tuple[bool, int]:
    if stream.unavailable is not None:
        ahead_out = stream.unavailable[t : t + most]
        most = next((i for i, out in enumerate(ahead_out) if out != ahead_out[0]), most)
    if stream.seen is None:
        return True, most
    told, ahead = bool(stream.seen[t]), stream.seen[t : t + most]
    return told, most if (ahead == told).all() else int(np.argmin(ahead == told))


def _values(batch: Batch, x: Array, explores: bool = False) -> Array:
    try:
        return batch.values_at(x) if explores else batch.values(x)
    except (TypeError, RuntimeError) as error:
        if isinstance(error, errors.TidewolfError) or isinstance(batch, autograd.Custom):
            raise
        raise errors.WrongType(
            f"{batch!r} cannot be evaluated at a {type(x).__name__} of {x.dtype}: {error}. Move "
            "the set to the library and dtype of the functions with `K.to(array)`."
        ) from error
