"""Laws that every learner keeps; run them on your own with `check_learner`.

    x = act(state) is a read-only member of the set     every round, past the horizon too
    acts(state, k) begins with act(state) and goes on with what is played next        bit for bit
    act, update and save leave their state as it was    branches from one state do not meet
    load(save(state)) goes on as state does             bit for bit, within a block too
    feedback on k rounds at once does what it does one round at a time  up to rounding of sums
    the same rounds give the same run                   bit for bit, and from a copy of the settings
    t counts rounds, calls never falls,  calls <= calls_per_round t  where there is such a setting
    bad feedback is refused at once, and the state goes on as if it had not come
    what is known before a round stays with its state, and is nothing to whoever has no use for it
    a saved state does not grow with the rounds, and other settings refuse it
    feedback may come late, of other points than were decided, or never
    testing/late_checks.py

Rounds are those of the stream given, or of a small hostile one: losses that turn round, limits that
oppose them, zeros, one huge round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tidewolf.core.arrays import eps_of, like, namespace
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput, OtherSettings, TidewolfError, WrongType
from tidewolf.core.feedback import (
    Bandit,
    Feedback,
    FirstOrder,
    FullInformation,
    bandit,
)
from tidewolf.core.oracle import HasLMO
from tidewolf.core.randomness import generator
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.core.values import fingerprint
from tidewolf.functions import Affine, Batch, Capacity, Linear
from tidewolf.loop import Played, play
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.sets.base import membership_tolerance
from tidewolf.testing.bad_feedback import bad_feedback, first_order_at
from tidewolf.testing.checks import (
    OnPass,
    as_floats,
    check,
    format_point,
    raises,
    require,
    require_value,
    run_checks,
)
from tidewolf.testing.late_checks import (
    arriving_at_once_is_in_order,
    late_rounds_are_played,
    order_within_a_batch_is_nothing,
)
from tidewolf.testing.learner_trial import LearnerTrial, bits_of, points_of, require_same

_ROUNDS = 26
_TURN = 6
"""After how many rounds the losses of the hostile stream turn round."""
_PATIENCE = 400
"""Up to which horizon it is tried to play past it."""
_CYCLES, _MOST_CYCLES = 10, 400
"""How often the stream is played over to see whether a state grows, and how often before it is
certain that it does.
"""
_SAMPLE = 17
"""After how many rounds its size is looked at again."""
_GROWTH = 1.25
"""How much larger the largest state of the second half of these rounds may be than that of the
first: an active set breathes.
"""


def check_learner(
    learner: Learner[Any],
    stream: Stream | None = None,
    *,
    seed: int = 0,
    on_pass: OnPass | None = None,
) -> None:
    """Try every law of learners on one of them.

    Parameters
    ----------
    learner : Learner
        The learner, such as an instance of a class of your own.
    stream : Stream, optional
        At least two rounds to try it on. None: a small hostile stream on its set.
    seed : int, default 0
        Where that stream starts; odd seeds have capacities, even ones half-spaces.
    on_pass : callable, optional
        Told the name of every law that is kept, as it is tried.

    Raises
    ------
    CheckFailed
        At the first law that is broken, with the law and the numbers.
    InvalidInput
        Where the stream does not fit the learner, or is shorter than two rounds.

    Examples
    --------
    >>> learner = tw.LyapunovDescent(tw.sets.Simplex(2), horizon=12)
    >>> tw.testing.check_learner(learner)  # says nothing: every check is on_pass
    """
    if not isinstance(learner, Learner):
        raise WrongType(
            f"check_learner takes a learner, an instance of a subclass of Learner, not {learner!r}."
        )
    if stream is None:
        stream = hostile_stream(learner.hard_set, _ROUNDS, seed)
    elif not isinstance(stream, Stream):
        raise WrongType(
            f"A learner plays a Stream(losses, constraints), not {type(stream).__name__}."
        )
    elif play(learner, stream) and len(stream) < 2:
        raise InvalidInput(
            f"check_learner needs a stream of at least 2 rounds; this one has {len(stream)}."
        )
    trial = LearnerTrial(learner, stream)
    run_checks(LEARNER_CHECKS, trial, trial.name, on_pass)


def hostile_stream(K: HasLMO, rounds: int, seed: int) -> Stream:
    """Linear losses that turn round; even seeds oppose them by half-spaces that cut the set near
    its center, odd ones set capacities.
    """
    rng, center, size = generator(seed, "hostile stream"), as_floats(K.center), K.radius or 1.0
    column = (rounds, *[1] * center.ndim)
    turns = np.where(np.arange(rounds) // _TURN % 2, -1.0, 1.0).reshape(column)
    C = turns * rng.standard_normal(center.shape) + 0.5 * rng.standard_normal(
        (rounds, *center.shape)
    )
    C *= rng.choice([0.0, 1.0, 1.0, 1.0, 1.0, 1.0], column)
    C[rounds // 2] *= 100.0
    room = size * rng.uniform(-0.1, 0.3, rounds)
    constraints: Batch
    if seed % 2:
        constraints = Capacity(
            like(
                center + room.reshape(column) * rng.uniform(0.5, 1.0, (rounds, *center.shape)),
                K.center,
            )
        )
    else:
        A = rng.standard_normal((rounds, *center.shape)) - C / 4.0
        lengths = np.linalg.norm(A.reshape(rounds, -1), axis=1)
        constraints = Affine(
            like(A, K.center),
            like(A.reshape(rounds, -1) @ center.reshape(-1) + room * lengths, K.center),
        )
    return Stream(Linear(like(C, K.center)), constraints)


@check("it prints and compares as what it is")
def learner_prints_and_compares(trial: LearnerTrial) -> None:
    learner = trial.learner
    require_value(learner, Learner)
    require(repr(learner).startswith(type(learner).__name__), f"its repr is {learner!r}")


@check("a state is of its state_type, with arrays that are read-only")
def states_are_read_only(trial: LearnerTrial) -> None:
    learner = trial.learner
    require(
        learner.save(learner.start()) == learner.save(learner.start()),
        "start() gives another state the second time",
    )
    for state in (learner.start(), *(played.state for played in trial.single)):
        require(isinstance(state, learner.state_type), f"a {type(state).__name__} is none")
        for name, part in state._asdict().items():
            open_door = type(part) is np.ndarray and part.flags.writeable
            require(not open_door, f"its {name} can be written to; set flags.writeable = False")


@check("every action is a read-only member of the set")
def actions_are_members(trial: LearnerTrial) -> None:
    learner, state = trial.learner, trial.learner.start()
    for t in range(len(trial.stream)):
        _require_member(learner.hard_set, learner.act(state, trial.stream.info(t)), t)
        state = trial.round(t, state).state


@check(
    "act gives the point of its state, as often as it is asked, and acts the same for the "
    "rounds to come"
)
def acting_changes_nothing(trial: LearnerTrial) -> None:
    learner = trial.learner
    explores = learner.needs is Bandit
    for t, state in trial.moments:
        before, info, k = learner.save(state), trial.stream.info(t), learner.rounds_left(state)
        x = learner.act(state, info)
        gave = points_of(trial.single[t], learner)[0]
        require(
            bits_of(x) == bits_of(gave),
            f"in round {t} it gives {format_point(x)}, and gave {format_point(gave)}",
        )
        for count in (1, (k + 1) // 2, k):
            points = learner.acts(state, count, info)
            require(
                tuple(points.shape) == (count, *x.shape),
                f"acts(state, {count}) has shape {tuple(points.shape)}",
            )
            for i in range(min(count, len(trial.stream) - t) if explores else count):
                due = points_of(trial.single[t + i], learner)[0] if explores else x
                same = bits_of(points[i, ...]) == bits_of(due)
                other = "what is played" if explores else "act(state)"
                require(same, f"acts(state, {count}) differs from {other} in round {t + i}")
        require(learner.save(state) == before, f"act or acts changed the state of round {t}")


@check("acts refuses more points than rounds_left, and none")
def only_committed_points_are_given(trial: LearnerTrial) -> None:
    learner = trial.learner
    for t, state in trial.moments:
        k = learner.rounds_left(state)
        for count in (0, k + 1):
            require(
                raises(TidewolfError, learner.acts, state, count),
                f"acts(state, {count}) is answered in round {t} where 1 to {k} points are settled",
            )


@check("t counts the rounds, calls the oracle's answers, and rounds_left is at least 1")
def rounds_and_calls_are_counted(trial: LearnerTrial) -> None:
    learner, before = trial.learner, trial.learner.start()
    for t, played in enumerate(trial.single, start=1):
        state = played.state
        require(
            learner.rounds_left(before) >= 1,
            f"rounds_left is {learner.rounds_left(before)} before round {t}",
        )
        require(state.t == t, f"t is {state.t} after {t} rounds")
        require(
            state.calls >= before.calls >= 0,
            f"calls went from {before.calls} to {state.calls} in round {t}",
        )
        require(0.0 <= state.distance < math.inf, f"distance is {state.distance} after {t} rounds")
        before = state
    rounds = sum(int(played.losses.shape[0]) for played in trial.run)
    require(
        trial.run[-1].state.t == rounds,
        f"t is {trial.run[-1].state.t} after {rounds} rounds, many at a time",
    )


@check("calls stay within calls_per_round")
def calls_stay_within_their_share(trial: LearnerTrial) -> None:
    share = trial.learner.fields().get("calls_per_round")
    if share is None:
        return
    for t, played in enumerate(trial.single, start=1):
        require(
            played.state.calls <= share * t + 1e-6,
            f"{played.state.calls} calls were made in {t} rounds, {share:g} a round are allowed",
        )


@check("the same rounds give the same run")
def same_rounds_same_run(trial: LearnerTrial) -> None:
    require_same((trial.run, trial.played()), "played again")
    rebuilt = LearnerTrial(_rebuilt(trial.learner), trial.stream)
    require_same((trial.run, rebuilt.run), "played by a learner of the same settings")


@check("load(save(state)) goes on bit for bit")
def saved_states_go_on(trial: LearnerTrial) -> None:
    learner = trial.learner
    for _, state in trial.moments:
        data = learner.save(state)
        loaded = learner.load(data)
        require(
            type(loaded) is type(state),
            f"a {type(state).__name__} comes back as a {type(loaded).__name__}",
        )
        require(
            learner.save(loaded) == data, f"saved again after round {state.t}, it is other bytes"
        )
    everywhere = trial.one_by_one(range(len(trial.stream)), through_bytes=True)
    require_same((trial.single, everywhere), "saved and loaded after every round")
    for i in {0, len(trial.run) // 2}:
        t = trial.run[i].state.t
        resumed = trial.played(learner.load(learner.save(trial.run[i].state)), t)
        require_same((trial.run[i + 1 :], resumed), f"saved and loaded after round {t}")


@check("update leaves the old state as it was, whatever is done with the new one")
def old_states_stay_good(trial: LearnerTrial) -> None:
    learner, rounds = trial.learner, len(trial.stream)
    state, on_pass = learner.start(), []
    for t in range(rounds):
        if t % 3 == 1:
            on_pass.append((t, state, learner.save(state)))
        state = trial.round(t, state).state
    for t, old, data in on_pass:
        require(learner.save(old) == data, f"the state before round {t} is another after the run")
    for t, old in trial.moments:
        forward, backward = range(t, rounds), range(rounds - 1, t - 1, -1)
        alone = (
            trial.single[t:],
            trial.one_by_one(backward, learner.load(learner.save(old))),
        )
        meeting: tuple[list[Played], list[Played]] = ([], [])
        states = [old, old]
        for both in zip(forward, backward, strict=True):
            for branch, s in enumerate(both):
                meeting[branch].append(trial.round(s, states[branch]))
                states[branch] = meeting[branch][-1].state
        for branch in (0, 1):
            require_same(
                (alone[branch], meeting[branch]),
                f"with two branches from the state before round {t}, played in turn",
            )


@check("feedback on k rounds at once does what it does one round at a time, up to rounding of sums")
def blocks_are_rounds(trial: LearnerTrial) -> None:
    learner = trial.learner
    K = learner.hard_set
    room = max(learner.accuracy, math.sqrt(eps_of(K.center))) * (K.radius or 1.0)
    t, state = 0, learner.start()
    while t < len(trial.stream):
        k = min(learner.rounds_left(state), len(trial.stream) - t)
        if (info := trial.stream.info(t)) is not None:
            state = learner.with_info(state, info)
        points = learner.acts(state, k)
        for i in range(k):
            x, alone = points[i, ...], points_of(trial.single[t + i], learner)[0]
            off = float(np.abs(as_floats(x) - as_floats(alone)).max())
            if off > room:
                require(
                    False,
                    f"in round {t + i}, {format_point(x)} is played in place of "
                    f"{format_point(alone)}, {off:.3g} away",
                )
        state = learner.update(state, _seen_together(trial, t, points))
        t += k
    alone = trial.single[-1].state
    require(
        state.calls == alone.calls,
        f"in {t} rounds {state.calls} oracle calls are made in place of {alone.calls}",
    )


def together(rounds: list[FirstOrder]) -> FirstOrder:
    """The feedback on several rounds from that on each, added in their order."""
    total = rounds[0]
    for seen in rounds[1:]:
        total = FirstOrder(
            total.loss_gradient + seen.loss_gradient,
            total.violation + seen.violation,
            total.constraint_gradient + seen.constraint_gradient,
            max(total.loss_slope, seen.loss_slope),
            max(total.constraint_slope, seen.constraint_slope),
            total.rounds + seen.rounds,
        )
    return total


def _seen_together(trial: LearnerTrial, t: int, points: Array) -> Feedback:
    """What the learner needs of the rounds from t on, one at each point, from that of each round
    alone.
    """
    k = int(points.shape[0])
    part = trial.stream[t : t + k]
    needs = trial.learner.reads(part.losses)
    if needs is FullInformation:
        return FullInformation(part.losses, part.constraints)
    if needs is FirstOrder:
        return together([first_order_at(trial.stream, t + i, points[i, ...]) for i in range(k)])
    parts = [trial.stream[t + i : t + i + 1] for i in range(k)]
    alone = [
        bandit(part.losses, part.constraints, points[i : i + 1, ...])
        for i, part in enumerate(parts)
    ]
    return Bandit(*(namespace(points).concat(values) for values in zip(*alone, strict=True)))


@check(
    "bad feedback is refused at once with a TidewolfError, and the state goes on as if it had "
    "not come"
)
def bad_feedback_is_refused(trial: LearnerTrial) -> None:
    learner = trial.learner
    for t, state in trial.moments:
        before = learner.save(state)
        for what, bad in bad_feedback(trial.learner, trial.stream, t, state).items():
            where = f"{what}, in round {t},"
            try:
                with np.errstate(all="ignore"):
                    learner.update(state, bad)
            except TidewolfError:
                require(learner.save(state) == before, f"{where} changed the state")
            except Exception as error:
                require(False, f"{where} raised {type(error).__name__}: {error}")
            else:
                require(False, f"{where} was taken")
        again = trial.one_by_one(range(t, len(trial.stream)), state)
        require_same((trial.single[t:], again), f"after bad feedback in round {t}")


@check(
    "what is known before a round stays with the state, changes no old one, and is nothing to a "
    "learner that has no use for it"
)
def what_is_known_stays_with_the_state(trial: LearnerTrial) -> None:
    learner = trial.learner
    told_of = _with_knowledge(trial.stream, learner.hard_set)
    for t, state in trial.moments:
        before, info = learner.save(state), told_of.info(t) or RoundInfo()
        told = learner.with_info(state, info)
        require(isinstance(told, learner.state_type), f"informed gives a {type(told).__name__}")
        require(told.t == state.t, f"informed takes the round from {state.t} to {told.t}")
        require(learner.rounds_left(told) >= 1, f"no round is left once round {t} is known of")
        x = learner.act(told)
        _require_member(learner.hard_set, x, t)
        for way, other in (
            ("act(state, known)", learner.act(state, info)),
            ("acts(state, 1, known)", learner.acts(state, 1, info)[0, ...]),
            ("what load(save(informed)) plays", learner.act(learner.load(learner.save(told)))),
        ):
            same = bits_of(other) == bits_of(x)
            require(same, f"{way} is not the point of informed(state, known) in round {t}")
        require(learner.save(state) == before, f"informed changed the state of round {t}")
    states = [learner.start(), *(played.state for played in trial.single[:-1])]
    useless = all(
        learner.with_info(state, told_of.info(t) or RoundInfo()) is state
        for t, state in enumerate(states)
    )
    if useless and trial.stream.info(0) is None:
        require_same((trial.run, list(play(learner, told_of))), "told what it has no use for")


def _with_knowledge(stream: Stream, K: HasLMO) -> Stream:
    """The same rounds, an hour apart, of one category, and with advice that nobody asked for."""
    rounds = len(stream)
    points = like(np.broadcast_to(as_floats(K.center), (rounds, *K.shape)).copy(), K.center)
    return Stream(
        stream.losses,
        stream.constraints,
        stream.seen,
        time=np.linspace(0.0, 3600.0 * rounds, rounds, endpoint=False),
        context=np.zeros(rounds),
        advice={"nobody": points},
    )


@check("a state saved under other settings, or broken, is refused")
def other_settings_are_refused(trial: LearnerTrial) -> None:
    learner = trial.learner
    data = learner.save(trial.run[-1].state)
    for name, other in _others(learner):
        require(
            raises(OtherSettings, other.load, data),
            f"it was taken with {name} = {getattr(other, name)!r} in place of "
            f"{getattr(learner, name)!r}",
        )
    for what, broken in (
        ("without its last byte", data[:-1]),
        ("with a byte changed", data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]),
        ("of no bytes", b""),
    ):
        require(raises(TidewolfError, learner.load, broken), f"a state {what} was taken")


@check("bound(record) states a number or a reason for having none, and no NaN")
def bounds_are_stated(trial: LearnerTrial) -> None:
    bound = trial.learner.bound(_record(trial.learner, trial.run, trial.stream))
    require(isinstance(bound, Bound), f"it is {bound!r}, no Bound")
    for name in ("regret", "violation"):
        number = getattr(bound, name)
        require(number is None or math.isfinite(number), f"its {name} is {number}")
        require(number is not None or bound.reason != "", f"its {name} is None without a reason")


@check("rounds past the horizon are played, and a restart is said in a note")
def the_horizon_may_be_passed(trial: LearnerTrial) -> None:
    learner = trial.learner
    horizon = learner.fields().get("horizon")
    if horizon is None or horizon > _PATIENCE:
        return
    info, state = learner.notes(learner.start()), learner.start()
    for played in trial.endless():
        for i, x in enumerate(points_of(played, learner)):
            _require_member(learner.hard_set, x, state.t + i)
        state = played.state
        if state.t > 2 * horizon + _ROUNDS:
            break
    added = [note for note in learner.notes(state) if note not in info]
    require(
        learner.anytime or len(added) > 0,
        f"after {state.t} rounds with a horizon of {horizon} there is no new note",
    )
    for note in added:
        require(note.endswith("."), f"the note {note!r} is no sentence")


@check("a saved state does not grow with the rounds, but for those of an open block")
def states_do_not_grow(trial: LearnerTrial) -> None:
    learner, rounds = trial.learner, len(trial.stream)
    sizes: list[tuple[int, int]] = []
    settings = len(fingerprint(learner))  # which every saved state holds, and does not count
    before, checked = learner.start(), _CYCLES * rounds
    for played in trial.endless():
        state, due = played.state, learner.rounds_left(before) == int(played.losses.shape[0])
        before = state
        if not due or (sizes and state.t < sizes[-1][0] + _SAMPLE):
            continue
        sizes.append((state.t, len(learner.save(state)) - settings))
        half = state.t // 2
        if state.t < checked or sizes[0][0] > half:
            continue
        checked = state.t + _CYCLES * _SAMPLE
        early = max(size for t, size in sizes if t <= half)
        late = max(size for t, size in sizes if t > half)
        if late <= _GROWTH * early:
            return
        detail = f"it has up to {early} bytes in the first {half} rounds, up to {late} in the next"
        require(state.t < _MOST_CYCLES * rounds, detail)


LEARNER_CHECKS = (
    learner_prints_and_compares,
    actions_are_members,
    states_are_read_only,
    rounds_and_calls_are_counted,
    calls_stay_within_their_share,
    acting_changes_nothing,
    only_committed_points_are_given,
    same_rounds_same_run,
    saved_states_go_on,
    old_states_stay_good,
    blocks_are_rounds,
    bad_feedback_is_refused,
    what_is_known_stays_with_the_state,
    other_settings_are_refused,
    bounds_are_stated,
    the_horizon_may_be_passed,
    states_do_not_grow,
    arriving_at_once_is_in_order,
    late_rounds_are_played,
    order_within_a_batch_is_nothing,
)
"""Every law, in the order they are tried: what later laws build on comes first."""


def _require_member(K: HasLMO, x: Array, t: int) -> None:
    require(
        tuple(x.shape) == K.shape,
        f"in round {t} its shape is {tuple(x.shape)}, points have shape {K.shape}",
    )
    infeasibility = K.infeasibility(x) if np.isfinite(as_floats(x)).all() else math.inf
    if infeasibility > membership_tolerance(x, K.radius):
        require(False, f"in round {t} it is {format_point(x)}, with excess {infeasibility:.3g}")
    same = type(x) is type(K.center) and x.dtype == K.center.dtype
    require(
        same,
        f"in round {t} it is a {type(x).__name__} of {x.dtype}, the set lives in {K.center.dtype}",
    )
    if type(x) is np.ndarray:
        require(
            not x.flags.writeable,
            f"in round {t} it can be written to; set x.flags.writeable = False",
        )


def _others(learner: Learner[Any]) -> Iterator[tuple[str, Learner[Any]]]:
    """Learners with one setting changed, as far as numbers go and the constructor takes them."""
    for name, value in learner.fields().items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                yield name, type(learner)(**{**learner.fields(), name: 2 * value + 1})
            except TidewolfError:
                continue


def _rebuilt(learner: Learner[Any]) -> Learner[Any]:
    return type(learner)(**learner.fields())


def _record(learner: Learner[Any], run: list[Played], stream: Stream) -> Record:
    """What `bound` is told of a run."""
    calls = np.diff([0, *(played.state.calls for played in run)])
    return Record(
        losses=np.concatenate([as_floats(played.losses) for played in run]),
        violations=np.concatenate(
            [np.maximum(0.0, as_floats(played.constraints)) for played in run]
        ),
        calls=np.concatenate(
            [
                np.append(np.zeros(int(p.losses.shape[0]) - 1, dtype=np.int64), c)
                for p, c in zip(run, calls, strict=True)
            ]
        ),
        distances=np.concatenate(
            [np.full(int(played.losses.shape[0]), played.state.distance) for played in run]
        ),
        final_state=run[-1].state,
        ends=np.cumsum([int(played.losses.shape[0]) for played in run]),
        measures=np.array([learner.measures(played.state) for played in run]).reshape(len(run), -1),
    )
