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

and of one that takes feedback late, for other points than were decided, or never:

    on_feedback(state, the next round) does what update(state, feedback) does           bit for bit
    with random delays and overrides every point is a member, t + pending + lost counts rounds, and
        load(save(state)) resumes                                                       bit for bit
    what arrives together gives one state, in any order
    defer, on_feedback and drop leave their state unchanged

Rounds are those of the given stream, or of a small hostile one: losses that change their sign,
constraints that oppose them, zeros, one huge round.
"""

import itertools
import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tidewolf.core import oracle, round_info, values
from tidewolf.core.arrays import eps_of, is_array, like, to_numpy
from tidewolf.core.batch import NEVER, Stream
from tidewolf.core.errors import InvalidInput, OtherSettings, TidewolfError, WrongType
from tidewolf.core.feedback import Arrival, Bandit, Feedback, FirstOrder
from tidewolf.core.randomness import generator
from tidewolf.core.types import Array
from tidewolf.evaluation.run import run
from tidewolf.functions import Affine, Batch, Capacity, Linear
from tidewolf.loop import Played, functions_of, play, revealed
from tidewolf.methods import capabilities, late
from tidewolf.methods.base import Bound, Learner
from tidewolf.testing.checks import OnPass, as_floats, format_point, raised, require, run_checks

_ROUNDS = 26
# After how many rounds the losses of the hostile stream change their sign.
_TURN = 6
# The longest finite delay, in rounds.
_LONGEST = 5
# Up to which horizon rounds past it are tested.
_PATIENCE = 400
# How often the stream is repeated to see whether a state grows, and how often until it is certain
# that it does.
_CYCLES, _MOST_CYCLES = 10, 400
# After how many rounds its size is measured again.
_SAMPLE = 17
# How much larger the largest state of the second half of these rounds may be than that of the
# first: the size of an active set varies.
_GROWTH = 1.25


def check_learner(
    learner: Learner[Any], stream: Stream | None = None, *, seed: int = 0, on_pass: OnPass = None
) -> None:
    """Run every check of learners on one learner.

    Parameters
    ----------
    learner : Learner
        The learner, such as an instance of a class of your own.
    stream : Stream, optional
        At least two rounds to test it on. None: a small adversarial stream on its set.
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
    for given, kind in ((learner, Learner), (stream, Stream | None)):
        if not isinstance(given, kind):
            raise WrongType(f"check_learner takes a Learner and a Stream or None, not {given!r}.")
    if stream is None:
        stream = hostile_stream(learner.K, _ROUNDS, seed)
    elif play(learner, stream) and len(stream) < 2:
        raise InvalidInput(f"check_learner needs at least 2 rounds; this stream has {len(stream)}.")
    name = repr(learner) if is_dataclass(learner) else type(learner).__name__
    run_checks(LearnerChecks(learner, stream), name, on_pass)


def hostile_stream(K: oracle.HasLMO, rounds: int, seed: int) -> Stream:
    """Linear losses that change their sign; even seeds oppose them by half-spaces that cut the set
    near its center, odd ones set capacities.
    """
    rng, center, size = generator(seed, "hostile stream"), as_floats(K.center), K.radius or 1.0
    shape, column = (rounds, *center.shape), (rounds, *[1] * center.ndim)
    turns = np.where(np.arange(rounds) // _TURN % 2, -1.0, 1.0).reshape(column)
    C = turns * rng.standard_normal(center.shape) + 0.5 * rng.standard_normal(shape)
    C *= rng.choice([0.0, 1.0, 1.0, 1.0, 1.0, 1.0], column)
    C[rounds // 2] *= 100.0
    room = size * rng.uniform(-0.1, 0.3, rounds)
    constraints: Batch
    if seed % 2:
        capacities = center + room.reshape(column) * rng.uniform(0.5, 1.0, shape)
        constraints = Capacity(like(capacities, K.center))
    else:
        A = rng.standard_normal(shape) - C / 4.0
        rows = A.reshape(rounds, -1)
        offsets = rows @ center.reshape(-1) + room * np.linalg.norm(rows, axis=1)
        constraints = Affine(like(A, K.center), like(offsets, K.center))
    return Stream(Linear(like(C, K.center)), constraints)


@dataclass(frozen=True)
class LearnerTrial:
    learner: Learner[Any]
    stream: Stream

    def steps(self, rounds: Iterable[int], state: Any = None) -> Iterator[Played]:
        return play(self.learner, (self.stream[t : t + 1] for t in rounds), state)

    def endless(self) -> Iterator[Played]:
        return play(self.learner, itertools.repeat(self.stream))

    @cached_property
    def run(self) -> list[Played]:
        return list(play(self.learner, self.stream))

    @cached_property
    def single(self) -> list[Played]:
        return list(self.steps(range(len(self.stream))))

    @cached_property
    def states(self) -> list[Any]:
        return [self.learner.start(), *(played.state for played in self.single)]

    @cached_property
    def moments(self) -> list[tuple[int, Any]]:
        half, last = len(self.stream) // 2, len(self.stream) - 1
        return [(t, self.states[t]) for t in sorted({0, 1, half, min(half + 1, last)})]

    def point(self, t: int) -> Array:
        return self.points(self.single[t])[0]

    def points(self, played: Played) -> list[Array]:
        return list(played.x) if self.learner.needs is Bandit else [played.x]

    def next(self, t: int, state: Any) -> tuple[Any, Array, Feedback]:
        learner, functions = self.learner, functions_of(self.stream, slice(t, t + 1))
        state = capabilities.with_info(learner, state, self.stream.info(t))
        x, needs = learner.act(state), capabilities.feedback_read(learner, functions.losses)
        at = x[None, ...] if needs is Bandit else x
        return state, x, revealed(functions, at, needs, capabilities.is_per_constraint(learner))[1]


def bits_of(x: Array) -> tuple[Any, ...]:
    array = np.ascontiguousarray(to_numpy(x))
    return array.shape, array.dtype.str, array.tobytes()


def require_same(expected: Iterable[Played], found: Iterable[Played], how: str) -> None:
    for one, other in zip(expected, found, strict=True):
        if (bits_of(one.x), one.state.calls) != (bits_of(other.x), other.state.calls):
            played = " is played in place of ".join(
                [f"{format_point(end.x)} with {end.state.calls} calls" for end in (other, one)]
            )
            require(False, f"{how}, {played} before round {other.state.t}")


def require_action(K: oracle.HasLMO, x: Array, t: int) -> None:
    what = f"the action of round {t}"
    require.array(x, K.shape, K.center, what)
    require.member(K, x, what)
    require.locked(x, what)


def bad_feedback(trial: LearnerTrial, t: int, state: Any) -> dict[str, Any]:
    """Feedback on round t of the kind the learner reads, with one fault each, by its fault."""
    (_, x, good), nan, inf = trial.next(t, state), math.nan, math.inf
    if isinstance(good, FirstOrder):
        good = good._replace(violation=1.0, constraint_slope=1.0)
    wide, bad = like(np.ones((1, *x.shape, 2)), x), dict[str, Any](nothing=None, text="up")
    most = capabilities.rounds_at_once(trial.learner, state)
    numbers: dict[str, list[Any]] = {"violation": [-1.0, nan, inf], "rounds": [0, most + 1]}
    for name, given in good._asdict().items():
        faults = numbers.get(name, [])
        if isinstance(given, Batch):
            faults = [Linear(wide), given[:0]]
        elif is_array(given):
            faults = [given * nan, given + inf, wide[0, ...], 1.0]
        bad |= {f"{name} = {fault}": good._replace(**{name: fault}) for fault in faults}
    return bad


def late_stream(learner: Learner[Any], stream: Stream, seed: int = 0) -> Stream:
    """These rounds with random delays, some without end, and vertices of the set, or its center, in
    place of some decisions.
    """
    K, rng, rounds = learner.K, generator(seed, "late stream"), len(stream)
    delays = rng.choice([0, 0, 1, 2, _LONGEST, rounds], rounds)
    played = np.full((rounds, *K.shape), np.nan)
    for t in np.flatnonzero(rng.uniform(size=rounds) < 0.25):
        vertex = K.answer(like(rng.standard_normal(K.shape), K.center)).vertex.dense(K.center)
        played[t] = as_floats(vertex if t % 3 else K.center)
    return replace(
        stream, unavailable=None, arrives=np.arange(rounds) + delays, played=like(played, K.center)
    )


class LearnerChecks(LearnerTrial):
    def learner_prints_and_compares(self) -> None:
        """It prints its name and is equal to a learner of the same settings."""
        require.value(self.learner, Learner)

    def actions_are_members(self) -> None:
        """Every action is a read-only member of the set."""
        learner, state = self.learner, self.learner.start()
        for t in range(len(self.stream)):
            x = learner.act(capabilities.with_info(learner, state, self.stream.info(t)))
            require_action(learner.K, x, t)
            state = next(self.steps([t], state)).state

    def states_are_read_only(self) -> None:
        """A state is of its state_type, with arrays that are read-only."""
        for state in self.states:
            require(isinstance(state, self.learner.state_type), f"it is a {type(state).__name__}")
            for name, part in state._asdict().items():
                require.locked(part, f"its {name}")

    def rounds_and_calls_are_counted(self) -> None:
        """t counts the rounds, calls the oracle's answers, and rounds_left is at least 1."""
        learner, share = self.learner, self.learner.fields().get("calls_per_round")
        for t, (before, state) in enumerate(itertools.pairwise(self.states), start=1):
            left, off, after = learner.rounds_left(before), state.distance, f"after {t} rounds"
            require(left >= 1, f"rounds_left is {left} before round {t}")
            require(state.t == t, f"t is {state.t} {after}")
            rise = f"calls went from {before.calls} to {state.calls} in round {t}"
            require(state.calls >= before.calls >= 0, rise)
            require(0.0 <= off < math.inf, f"distance is {off} {after}")
            most = math.inf if share is None else share * t + 1e-6
            require.at_most(state.calls, most, f"calls_per_round is {share}, and calls {after}")

    def acting_changes_nothing(self) -> None:
        """act gives the point of its state each time, acts those of the next rounds_left rounds."""
        learner = self.learner
        for t, state in self.moments:
            before, k = learner.save(state), learner.rounds_left(state)
            there = capabilities.with_info(learner, state, self.stream.info(t))
            x, points = learner.act(there), capabilities.acts(learner, there, k)
            those = f"acts(state, {k})"
            require.array(points, (k, *x.shape), x, those)
            require(bits_of(x) == bits_of(points[0, ...]), f"act differs from {those} in round {t}")
            for i in range(min(k, len(self.stream) - t)):
                require(
                    bits_of(points[i, ...])
                    == bits_of(self.point(t + i if learner.needs is Bandit else t)),
                    f"{those} differs from what is played in round {t + i}",
                )
            for count in (0, k + 1) if isinstance(learner, capabilities.Explores) else ():
                refused = raised(capabilities.acts, learner, state, count) is not None
                require(refused, f"acts(state, {count}) is answered, rounds_left is {k}")
            require(learner.save(state) == before, f"act or acts changed the state of round {t}")

    def same_rounds_same_run(self) -> None:
        """The same rounds give the same run."""
        again = type(self.learner)(**self.learner.fields())
        require_same(self.run, play(self.learner, self.stream), "played again")
        require_same(self.run, play(again, self.stream), "played by a learner of the same settings")

    def saved_states_resume(self) -> None:
        """load(save(state)) resumes bit for bit."""
        learner, state, resumed = self.learner, self.states[0], list[Played]()
        for t in range(len(self.stream)):
            data = learner.save(state)
            loaded = learner.load(data)
            require(type(loaded) is type(state), f"it is loaded as a {type(loaded).__name__}")
            require(learner.save(loaded) == data, f"saved again after round {t}, it is other bytes")
            resumed += self.steps([t], loaded)
            state = resumed[-1].state
        require_same(self.single, resumed, "saved and loaded after every round")
        for i in {0, len(self.run) // 2}:
            t, loaded = self.run[i].state.t, learner.load(learner.save(self.run[i].state))
            rest = play(learner, self.stream[t:], loaded)
            require_same(self.run[i + 1 :], rest, f"saved and loaded after round {t}")

    def old_states_stay_good(self) -> None:
        """update leaves the old state unchanged, whatever is done with the new one."""
        learner, rounds = self.learner, len(self.stream)
        saved = [(played.state, learner.save(played.state)) for played in self.steps(range(rounds))]
        for t, (old, data) in enumerate(saved):
            require(learner.save(old) == data, f"the run changed the state after round {t}")
        for t, old in self.moments:
            orders = range(t, rounds), range(rounds - 1, t - 1, -1)
            alone = self.single[t:], list(self.steps(orders[1], learner.load(learner.save(old))))
            mixed = zip(*(self.steps(order, old) for order in orders), strict=True)
            for expected, found in zip(alone, zip(*mixed, strict=True), strict=True):
                how = f"with two branches from the state before round {t}, played in turn"
                require_same(expected, found, how)

    def blocks_are_rounds(self) -> None:
        """Feedback on k rounds at once does what it does one round at a time, up to rounding of
        sums.
        """
        K, t = self.learner.K, 0
        accuracy = max(getattr(self.learner, "accuracy", 0.0), math.sqrt(eps_of(K.center)))
        room = accuracy * (K.radius or 1.0)
        for played in self.run:
            for x, _ in zip(itertools.cycle(self.points(played)), played.losses, strict=False):
                off = float(np.abs(as_floats(x) - as_floats(self.point(t))).max())
                if not off <= room:
                    require(False, f"in round {t}, {format_point(x)} is played, {off:.3g} away")
                t += 1
        ends = [(state.t, state.calls) for state in (self.run[-1].state, self.states[-1])]
        require(ends[0] == ends[1], f"t and calls are {ends[0]} in place of {ends[1]}")

    def bad_feedback_is_refused(self) -> None:
        """Bad feedback is refused at once with a TidewolfError, and leaves the state unchanged."""
        learner = self.learner
        for t, state in self.moments:
            before = learner.save(state)
            for what, bad in bad_feedback(self, t, state).items():
                with np.errstate(all="ignore"):
                    error = raised(learner.update, state, bad)
                refused = isinstance(error, TidewolfError)
                require(refused, f"{what}, in round {t}, was taken or raised {error!r}")
                require(learner.save(state) == before, f"{what}, in round {t}, changed the state")
            again = self.steps(range(t, len(self.stream)), state)
            require_same(self.single[t:], again, f"after bad feedback in round {t}")

    def information_stays_with_the_state(self) -> None:
        """Side information stays with its state, changes no other, has no effect if not used."""
        learner, rounds = self.learner, len(self.stream)
        K, hours, plain = learner.K, 3600.0 * np.arange(float(rounds)), np.zeros(rounds)
        advice = {"unexpected": like(np.stack([as_floats(K.center)] * rounds), K.center)}
        stream = replace(self.stream, unavailable=None, arrives=None, played=None)
        stream = replace(stream, time=hours, context=plain, advice=advice)
        infos = [stream.info(t) or round_info.RoundInfo() for t in range(rounds)]
        for t, state in self.moments:
            before, info = learner.save(state), infos[t]
            after = capabilities.with_info(learner, state, info)
            require(
                isinstance(after, learner.state_type), f"with_info gives a {type(after).__name__}"
            )
            require(after.t == state.t, f"with_info takes the round from {state.t} to {after.t}")
            x = learner.act(after)
            require_action(K, x, t)
            loaded = learner.act(learner.load(learner.save(after)))
            again = learner.act(capabilities.with_info(learner, state, info))
            for way, other in (("loaded, it", loaded), ("given again, it", again)):
                same = bits_of(other) == bits_of(x)
                require(same, f"{way} plays another point with what is known in round {t}")
            require(learner.save(state) == before, f"with_info changed the state of round {t}")
        pairs = zip(self.states[:-1], infos, strict=True)
        unused = all(capabilities.with_info(learner, state, info) is state for state, info in pairs)
        if unused and self.stream.info(0) is None:
            require_same(self.run, play(learner, stream), "with information it does not use")

    def other_settings_are_refused(self) -> None:
        """A state saved under other settings, or broken, is refused."""
        learner, data = self.learner, self.learner.save(self.run[-1].state)
        settings = learner.fields()
        for name, value in settings.items():
            if type(value) in (int, float):
                try:
                    other = type(learner)(**{**settings, name: 2 * value + 1})
                except TidewolfError:
                    continue
                refused = isinstance(raised(other.load, data), OtherSettings)
                require(refused, f"it was taken by {other!r}, with another {name}")
        changed = data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
        for what, broken in (("short", data[:-1]), ("changed", changed), ("empty", b"")):
            refused = isinstance(raised(learner.load, broken), TidewolfError)
            require(refused, f"a state with {what} bytes was taken")

    def bounds_are_stated(self) -> None:
        """bound(run) states a number or a reason for having none, and no NaN."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bound = self.learner.bound(run(self.learner, self.stream))
        require(isinstance(bound, Bound), f"it is {bound!r}, not a Bound")
        for name in ("regret", "violation"):
            number = getattr(bound, name)
            stated = bound.reason != "" if number is None else math.isfinite(number)
            require(stated, f"its {name} is {number}, with the reason {bound.reason!r}")

    def the_horizon_may_be_passed(self) -> None:
        """Rounds past the horizon are played, and a note reports a restart."""
        learner, state = self.learner, self.learner.start()
        notes, horizon = learner.notes(state), learner.fields().get("horizon")
        if horizon is None or horizon > _PATIENCE:
            return
        for played in self.endless():
            for i, x in enumerate(self.points(played)):
                require_action(learner.K, x, state.t + i)
            if (state := played.state).t > 2 * horizon + _ROUNDS:
                break
        added = [note for note in learner.notes(state) if note not in notes]
        stated = all(note.endswith(".") for note in added)
        stated = stated and (len(added) > 0 or getattr(learner, "anytime", False))
        require(stated, f"with a horizon of {horizon} the new notes are {added}, not sentences")

    def states_do_not_grow(self) -> None:
        """A saved state does not grow with the rounds, except for those of an open block."""
        learner, rounds, state = self.learner, len(self.stream), self.learner.start()
        settings = len(values.fingerprint(learner))  # part of every saved state, and not counted
        sizes, enough, sampled = dict[int, int](), _CYCLES * rounds, 0
        for played in self.endless():
            due, state = learner.rounds_left(state) == int(played.losses.shape[0]), played.state
            if due and state.t >= sampled:
                sizes[state.t], sampled = len(learner.save(state)) - settings, state.t + _SAMPLE
            early = [size for t, size in sizes.items() if 2 * t <= state.t]
            if state.t >= enough and early:
                largest, most = max(sizes.values()), _GROWTH * max(early)
                if largest <= most:
                    return
                if state.t >= _MOST_CYCLES * rounds:
                    require.at_most(largest, most, f"the number of bytes in {state.t} rounds")
                enough += _CYCLES * _SAMPLE

    def arriving_at_once_is_in_order(self) -> None:
        """Feedback that arrives at once has the effect of feedback in order."""
        learner, after, run = self.learner, self.learner.start(), list[Played]()
        if not isinstance(learner, capabilities.LateFeedback):
            return
        for t, single in enumerate(self.single):
            state, x, feedback = self.next(t, after)
            before = learner.save(state)
            after = learner.on_feedback(state, (Arrival(late.next_round(state), feedback),))
            require(learner.save(state) == before, f"on_feedback changed the state of round {t}")
            run.append(single._replace(x=x, state=after))
        require_same(self.single, run, "with each round given to on_feedback")

    def late_rounds_are_played(self) -> None:
        """Late rounds are played: decisions are members, rounds are counted, load(save) resumes."""
        learner, K, state = self.learner, self.learner.K, self.learner.start()
        if not isinstance(learner, capabilities.LateFeedback):
            return
        stream = late_stream(learner, self.stream)
        run = list(play(learner, stream))
        for t, played in enumerate(run):
            x = learner.act(capabilities.with_info(learner, state, stream.info(t)))
            most, what = 1e-6 * max(1.0, K.radius), f"the infeasibility in round {t}"
            require.at_most(K.infeasibility(x), most, what)
            state, decided = played.state, late.next_round(played.state)
            require(decided == t + 1, f"{decided} rounds are decided after {t + 1}")
        counted = (state.t + len(state.pending) + state.lost, state.lost)
        expected = (len(stream), np.sum(stream.arrives == NEVER))
        require(counted == expected, f"rounds in all and lost are {counted}, expected {expected}")
        for t in {1, max(1, len(run) // 3), max(1, len(run) // 2)}:
            resumed = list(play(learner, stream, learner.load(learner.save(run[t - 1].state)), t))
            require_same(run[t:], resumed, f"saved and loaded after round {t}, some pending")
            same = learner.save(resumed[-1].state) == learner.save(state)
            require(same, f"saved and loaded after round {t}, it ends in another state")

    def order_within_a_batch_is_nothing(self) -> None:
        """What arrives together gives one state, in any order, and changes no earlier state."""
        learner, state, arrivals = self.learner, self.learner.start(), list[Arrival]()
        if not isinstance(learner, capabilities.LateFeedback):
            return
        for t in range(min(4, len(self.stream))):
            state, _, feedback = self.next(t, state)
            arrivals.append(Arrival(t, feedback))
            state = learner.defer(state)
        before, orders = learner.save(state), itertools.permutations(arrivals[:-1])
        after = {learner.save(learner.on_feedback(state, order)) for order in orders}
        require(len(after) == 1, "another order gives other bits")
        dropped = learner.drop(state, (0,))
        same = dropped.lost == 1 and bits_of(learner.act(dropped)) == bits_of(learner.act(state))
        require(same, "drop moves the point, or does not count the round as lost")
        require(learner.save(state) == before, "on_feedback or drop changed the state")
