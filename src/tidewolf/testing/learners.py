"""Properties of every learner; test your own with `check_learner`.

    x = act(state) is a read-only member of the set     every round, past the horizon too
    acts(state, k) begins with act(state) and continues with what is played next      bit for bit
    act, update and save leave their state unchanged    branches from one state are independent
    load(save(state)) resumes as state does             bit for bit, within a block too
    feedback on k rounds at once does what it does one round at a time  up to rounding of sums
    the same rounds give the same run                   bit for bit, and from a copy of the settings
    t counts rounds, calls never falls,  calls <= calls_per_round t  if there is such a setting
    bad feedback is refused at once, and the state resumes as if it had not come
    side information stays with its state, and has no effect on a learner that does not use it
    a saved state does not grow with the rounds, and other settings refuse it
    feedback may come late, for other points than were decided, or never
    testing/late_checks.py

Rounds are those of the given stream, or of a small hostile one: losses that change their sign,
constraints that oppose them, zeros, one huge round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tidewolf.core.arrays import eps_of, like, namespace
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput, OtherSettings, TidewolfError, WrongType
from tidewolf.core.feedback import Bandit, Feedback, FirstOrder, FullInformation
from tidewolf.core.oracle import HasLMO
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.core.values import fingerprint
from tidewolf.loop import Played, play
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.testing.checks import (
    Checks,
    OnPass,
    as_floats,
    format_point,
    raises,
    require,
    require_array,
    require_at_most,
    require_member,
    require_value,
)
from tidewolf.testing.late_checks import LATE_CHECKS
from tidewolf.testing.learner_trial import (
    LearnerTrial,
    bad_feedback,
    bits_of,
    hostile_stream,
    points_of,
    require_same,
    together,
)

_ROUNDS = 26
_PATIENCE = 400
"""Up to which horizon rounds past it are tested."""
_CYCLES, _MOST_CYCLES = 10, 400
"""How often the stream is repeated to see whether a state grows, and how often until it is certain
that it does.
"""
_SAMPLE = 17
"""After how many rounds its size is measured again."""
_GROWTH = 1.25
"""How much larger the largest state of the second half of these rounds may be than that of the
first: the size of an active set varies.
"""


def check_learner(
    learner: Learner[Any],
    stream: Stream | None = None,
    *,
    seed: int = 0,
    on_pass: OnPass | None = None,
) -> None:
    """Run every check of learners on one learner.

    Parameters
    ----------
    learner : Learner
        The learner, such as an instance of a class of your own.
    stream : Stream, optional
        At least two rounds to test it on. None: a small hostile stream on its set.
    seed : int, default 0
        Seed of that stream; odd seeds have capacities, even ones half-spaces.
    on_pass : callable, optional
        Called with the name of every check that passes.

    Raises
    ------
    CheckFailed
        At the first check that fails, with the property and the numbers.
    InvalidInput
        If the stream does not fit the learner, or is shorter than two rounds.

    Examples
    --------
    >>> learner = tw.LyapunovDescent(tw.sets.Simplex(2), horizon=12)
    >>> tw.testing.check_learner(learner)  # returns nothing: every check passes
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
    for checks in (LEARNER_CHECKS, LATE_CHECKS):
        checks.run(trial, trial.name, on_pass)


LEARNER_CHECKS = Checks[LearnerTrial]()


@LEARNER_CHECKS("it prints its name and is equal to a learner of the same settings")
def learner_prints_and_compares(trial: LearnerTrial) -> None:
    require_value(trial.learner, Learner)


@LEARNER_CHECKS("every action is a read-only member of the set")
def actions_are_members(trial: LearnerTrial) -> None:
    learner, state = trial.learner, trial.learner.start()
    for t in range(len(trial.stream)):
        _require_action(learner.hard_set, learner.act(state, trial.stream.info(t)), t)
        state = trial.round(t, state).state


@LEARNER_CHECKS("a state is of its state_type, with arrays that are read-only")
def states_are_read_only(trial: LearnerTrial) -> None:
    learner = trial.learner
    same = learner.save(learner.start()) == learner.save(learner.start())
    require(same, "start() gives another state the second time")
    for state in (learner.start(), *(played.state for played in trial.single)):
        require(isinstance(state, learner.state_type), f"it is a {type(state).__name__}")
        for name, part in state._asdict().items():
            writeable = type(part) is np.ndarray and part.flags.writeable
            require(not writeable, f"its {name} can be written to; set flags.writeable = False")


@LEARNER_CHECKS("t counts the rounds, calls the oracle's answers, and rounds_left is at least 1")
def rounds_and_calls_are_counted(trial: LearnerTrial) -> None:
    learner, before = trial.learner, trial.learner.start()
    share = learner.fields().get("calls_per_round")
    for t, played in enumerate(trial.single, start=1):
        state, left = played.state, learner.rounds_left(before)
        require(left >= 1, f"rounds_left is {left} before round {t}")
        require(state.t == t, f"t is {state.t} after {t} rounds")
        rise = f"calls went from {before.calls} to {state.calls} in round {t}"
        require(state.calls >= before.calls >= 0, rise)
        require(0.0 <= state.distance < math.inf, f"distance is {state.distance} after {t} rounds")
        most = math.inf if share is None else share * t + 1e-6
        require_at_most(
            state.calls, most, f"calls_per_round is {share}, and calls after {t} rounds"
        )
        before = state
    t, rounds = trial.run[-1].state.t, sum(int(played.losses.shape[0]) for played in trial.run)
    require(t == rounds, f"t is {t} after {rounds} rounds, many at a time")


@LEARNER_CHECKS(
    "act gives the point of its state each time, and acts those of the next rounds_left rounds"
)
def acting_changes_nothing(trial: LearnerTrial) -> None:
    learner = trial.learner
    explores = learner.needs is Bandit
    for t, state in trial.moments:
        before, info, k = learner.save(state), trial.stream.info(t), learner.rounds_left(state)
        x, first = learner.act(state, info), points_of(trial.single[t], learner)[0]
        same = bits_of(x) == bits_of(first)
        require(same, f"in round {t} act gives {format_point(x)}, and gave {format_point(first)}")
        for count in (1, (k + 1) // 2, k):
            points, acts = learner.acts(state, count, info), f"acts(state, {count})"
            require_array(points, (count, *x.shape), x, acts)
            for i in range(min(count, len(trial.stream) - t) if explores else count):
                due = points_of(trial.single[t + i], learner)[0] if explores else x
                same = bits_of(points[i, ...]) == bits_of(due)
                require(same, f"{acts} differs from what is played in round {t + i}")
        for count in (0, k + 1):
            refused = raises(TidewolfError, learner.acts, state, count)
            require(refused, f"acts(state, {count}) is answered in round {t}, rounds_left is {k}")
        require(learner.save(state) == before, f"act or acts changed the state of round {t}")


@LEARNER_CHECKS("the same rounds give the same run")
def same_rounds_same_run(trial: LearnerTrial) -> None:
    require_same(trial.run, trial.played(), "played again")
    again = type(trial.learner)(**trial.learner.fields())
    rebuilt = LearnerTrial(again, trial.stream)
    require_same(trial.run, rebuilt.run, "played by a learner of the same settings")


@LEARNER_CHECKS("load(save(state)) resumes bit for bit")
def saved_states_resume(trial: LearnerTrial) -> None:
    learner = trial.learner
    for _, state in trial.moments:
        data = learner.save(state)
        loaded = learner.load(data)
        kinds = [type(each).__name__ for each in (state, loaded)]
        require(type(loaded) is type(state), f"a {kinds[0]} is loaded as a {kinds[1]}")
        same = learner.save(loaded) == data
        require(same, f"saved again after round {state.t}, it is other bytes")
    everywhere = trial.one_by_one(range(len(trial.stream)), through_bytes=True)
    require_same(trial.single, everywhere, "saved and loaded after every round")
    for i in {0, len(trial.run) // 2}:
        t = trial.run[i].state.t
        resumed = trial.played(learner.load(learner.save(trial.run[i].state)), t)
        require_same(trial.run[i + 1 :], resumed, f"saved and loaded after round {t}")


@LEARNER_CHECKS("update leaves the old state unchanged, whatever is done with the new one")
def old_states_stay_good(trial: LearnerTrial) -> None:
    learner, rounds = trial.learner, len(trial.stream)
    state, saved = learner.start(), []
    for t in range(rounds):
        if t % 3 == 1:
            saved.append((t, state, learner.save(state)))
        state = trial.round(t, state).state
    for t, old, data in saved:
        require(learner.save(old) == data, f"the state before round {t} is another after the run")
    for t, old in trial.moments:
        both = range(t, rounds), range(rounds - 1, t - 1, -1)
        alone = trial.single[t:], trial.one_by_one(both[1], learner.load(learner.save(old)))
        mixed: tuple[list[Played], list[Played]] = ([], [])
        states = [old, old]
        for turn in zip(*both, strict=True):
            for branch, s in enumerate(turn):
                mixed[branch].append(trial.round(s, states[branch]))
                states[branch] = mixed[branch][-1].state
        for expected, found in zip(alone, mixed, strict=True):
            how = f"with two branches from the state before round {t}, played in turn"
            require_same(expected, found, how)


@LEARNER_CHECKS(
    "feedback on k rounds at once does what it does one round at a time, up to rounding of sums"
)
def blocks_are_rounds(trial: LearnerTrial) -> None:
    learner = trial.learner
    K = learner.hard_set
    room = max(learner.accuracy, math.sqrt(eps_of(K.center))) * (K.radius or 1.0)
    t, state = 0, learner.start()
    while t < len(trial.stream):
        k = min(learner.rounds_left(state), len(trial.stream) - t)
        state = trial.with_info(t, state)
        points = learner.acts(state, k)
        for i in range(k):
            x, alone = points[i, ...], points_of(trial.single[t + i], learner)[0]
            off = float(np.abs(as_floats(x) - as_floats(alone)).max())
            if not off <= room:
                played = f"{format_point(x)} is played in place of {format_point(alone)}"
                require(False, f"in round {t + i}, {played}, {off:.3g} away")
        state = learner.update(state, _feedback_together(trial, t, points))
        t += k
    calls = trial.single[-1].state.calls
    require(state.calls == calls, f"in {t} rounds {state.calls} calls, not {calls}, are made")


def _feedback_together(trial: LearnerTrial, t: int, points: Array) -> Feedback:
    """What the learner needs of the rounds from t on, one at each point."""
    k = int(points.shape[0])
    part = trial.stream[t : t + k]
    needs = trial.learner.reads(part.losses)
    if needs is FullInformation:
        return FullInformation(part.losses, part.constraints)
    alone: list[Any] = [trial.feedback(t + i, points[i, ...]) for i in range(k)]
    if needs is FirstOrder:
        return together(alone)
    return Bandit(*(namespace(points).concat(values) for values in zip(*alone, strict=True)))


@LEARNER_CHECKS(
    "bad feedback is refused at once with a TidewolfError, and leaves the state unchanged"
)
def bad_feedback_is_refused(trial: LearnerTrial) -> None:
    learner = trial.learner
    for t, state in trial.moments:
        before = learner.save(state)
        for what, bad in bad_feedback(trial, t, state).items():
            given = f"{what}, in round {t},"
            try:
                with np.errstate(all="ignore"):
                    learner.update(state, bad)
            except TidewolfError:
                require(learner.save(state) == before, f"{given} changed the state")
            except Exception as error:
                require(False, f"{given} raised {type(error).__name__}: {error}")
            else:
                require(False, f"{given} was taken")
        again = trial.one_by_one(range(t, len(trial.stream)), state)
        require_same(trial.single[t:], again, f"after bad feedback in round {t}")


@LEARNER_CHECKS(
    "side information stays with its state, changes no other, and has no effect if not used"
)
def information_stays_with_the_state(trial: LearnerTrial) -> None:
    learner = trial.learner
    stream = _with_information(trial.stream, learner.hard_set)
    for t, state in trial.moments:
        before, info = learner.save(state), stream.info(t) or RoundInfo()
        after = learner.with_info(state, info)
        kind = type(after).__name__
        require(isinstance(after, learner.state_type), f"with_info gives a {kind}")
        require(after.t == state.t, f"with_info takes the round from {state.t} to {after.t}")
        require(learner.rounds_left(after) >= 1, f"with_info leaves no round in round {t}")
        x = learner.act(after)
        _require_action(learner.hard_set, x, t)
        for way, other in (
            ("act(state, info)", learner.act(state, info)),
            ("acts(state, 1, info)", learner.acts(state, 1, info)[0, ...]),
            ("act(load(save(with_info)))", learner.act(learner.load(learner.save(after)))),
        ):
            same = bits_of(other) == bits_of(x)
            require(same, f"{way} is not the point of with_info(state, info) in round {t}")
        require(learner.save(state) == before, f"with_info changed the state of round {t}")
    states = [learner.start(), *(played.state for played in trial.single[:-1])]
    infos = [stream.info(t) or RoundInfo() for t in range(len(states))]
    pairs = zip(states, infos, strict=True)
    unused = all(learner.with_info(state, info) is state for state, info in pairs)
    if unused and trial.stream.info(0) is None:
        require_same(trial.run, list(play(learner, stream)), "with information it does not use")


def _with_information(stream: Stream, K: HasLMO) -> Stream:
    """The same rounds, an hour apart, of one category, with advice the learner does not expect."""
    rounds = len(stream)
    points = like(np.broadcast_to(as_floats(K.center), (rounds, *K.shape)).copy(), K.center)
    times = np.linspace(0.0, 3600.0 * rounds, rounds, endpoint=False)
    given: dict[str, Any] = {
        "time": times,
        "context": np.zeros(rounds),
        "advice": {"unexpected": points},
    }
    return replace(stream, unavailable=None, arrives=None, played=None, **given)


@LEARNER_CHECKS("a state saved under other settings, or broken, is refused")
def other_settings_are_refused(trial: LearnerTrial) -> None:
    learner = trial.learner
    data = learner.save(trial.run[-1].state)
    for name, other in _others(learner):
        refused = raises(OtherSettings, other.load, data)
        values = f"{getattr(other, name)!r} in place of {getattr(learner, name)!r}"
        require(refused, f"it was taken with {name} = {values}")
    for what, broken in (
        ("without its last byte", data[:-1]),
        ("with a byte changed", data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]),
        ("of no bytes", b""),
    ):
        require(raises(TidewolfError, learner.load, broken), f"a state {what} was taken")


@LEARNER_CHECKS("bound(record) states a number or a reason for having none, and no NaN")
def bounds_are_stated(trial: LearnerTrial) -> None:
    bound = trial.learner.bound(_record(trial.learner, trial.run))
    require(isinstance(bound, Bound), f"it is {bound!r}, not a Bound")
    for name in ("regret", "violation"):
        number = getattr(bound, name)
        require(number is None or math.isfinite(number), f"its {name} is {number}")
        require(number is not None or bound.reason != "", f"its {name} is None without a reason")


@LEARNER_CHECKS("rounds past the horizon are played, and a note reports a restart")
def the_horizon_may_be_passed(trial: LearnerTrial) -> None:
    learner = trial.learner
    horizon = learner.fields().get("horizon")
    if horizon is None or horizon > _PATIENCE:
        return
    notes, state = learner.notes(learner.start()), learner.start()
    for played in trial.endless():
        for i, x in enumerate(points_of(played, learner)):
            _require_action(learner.hard_set, x, state.t + i)
        state = played.state
        if state.t > 2 * horizon + _ROUNDS:
            break
    added = [note for note in learner.notes(state) if note not in notes]
    after = f"after {state.t} rounds with a horizon of {horizon}"
    require(learner.anytime or len(added) > 0, f"{after} there is no new note")
    for note in added:
        require(note.endswith("."), f"the note {note!r} is not a sentence")


@LEARNER_CHECKS("a saved state does not grow with the rounds, except for those of an open block")
def states_do_not_grow(trial: LearnerTrial) -> None:
    learner, rounds = trial.learner, len(trial.stream)
    sizes: list[tuple[int, int]] = []
    settings = len(fingerprint(learner))  # part of every saved state, and not counted
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


def _require_action(K: HasLMO, x: Array, t: int) -> None:
    require_array(x, K.shape, K.center, f"the action of round {t}")
    require_member(K, x, f"the action of round {t}")
    if type(x) is np.ndarray:
        what = f"the action of round {t} can be written to; set x.flags.writeable = False"
        require(not x.flags.writeable, what)


def _others(learner: Learner[Any]) -> Iterator[tuple[str, Learner[Any]]]:
    """Learners with one setting changed, for numbers that the constructor takes."""
    for name, value in learner.fields().items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                yield name, type(learner)(**{**learner.fields(), name: 2 * value + 1})
            except TidewolfError:
                continue


def _record(learner: Learner[Any], run: list[Played]) -> Record:
    """What `bound` is given of a run; calls count in the last round of each update."""
    sizes = [int(played.losses.shape[0]) for played in run]
    ends = np.cumsum(sizes)
    calls = np.zeros(ends[-1], dtype=np.int64)
    calls[ends - 1] = np.diff([0, *(played.state.calls for played in run)])
    values = np.concatenate([as_floats(played.constraints) for played in run])
    return Record(
        losses=np.concatenate([as_floats(played.losses) for played in run]),
        violations=np.maximum(0.0, values),
        calls=calls,
        distances=np.repeat([played.state.distance for played in run], sizes),
        final_state=run[-1].state,
        ends=ends,
        measures=np.array([learner.measures(played.state) for played in run]).reshape(len(run), -1),
    )
