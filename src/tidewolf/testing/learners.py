"""Laws that every learner keeps; run them on your own with `check_learner`.

    x = act(state) is a read-only member of the set     every round, past the horizon too
    acts(state, k) begins with act(state) and goes on with what is played next        bit for bit
    act, update and save leave their state as it was    branches from one state do not meet
    load(save(state)) goes on as state does             bit for bit, within a block too
    feedback on k rounds at once does what it does one round at a time  up to rounding of sums
    the same rounds give the same run                   bit for bit, and from a copy of the settings
    t counts rounds, calls never falls,  calls <= calls_per_round t  where there is such a setting
    bad feedback is refused at once, and the state goes on as if it had not come
    a saved state does not grow with the rounds, and other settings refuse it

Rounds are those of the stream given, or of a small hostile one: losses that turn round, limits that
oppose them, zeros, one huge round.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tidewolf.core.arrays import eps_of, like, namespace, to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput, LawBroken, OtherSettings, TidewolfError, WrongType
from tidewolf.core.feedback import (
    Bandit,
    Feedback,
    FirstOrder,
    FullInformation,
    bandit,
    first_order,
)
from tidewolf.core.oracle import HasLMO
from tidewolf.core.randomness import generator
from tidewolf.core.types import Array, Floats
from tidewolf.core.values import identity
from tidewolf.functions import Affine, Batch, Capacity, Linear
from tidewolf.loop import Played, play
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.sets.base import membership_tolerance
from tidewolf.testing.laws import Kept, run_laws

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
    learner: Learner[Any], stream: Stream | None = None, *, seed: int = 0, kept: Kept | None = None
) -> None:
    """Raise `LawBroken`, with the law and the numbers, unless the learner keeps every law on the
    stream.

    `kept` is told every law that is kept.
    """
    if not isinstance(learner, Learner):
        raise WrongType(
            f"check_learner takes a learner, an instance of a subclass of Learner, not {learner!r}."
        )
    if stream is None:
        stream = hostile_stream(learner.hard_set, _ROUNDS, seed)
    elif play(learner, stream) and len(stream) < 2:
        raise InvalidInput(
            f"check_learner needs a stream of at least 2 rounds; this one has {len(stream)}."
        )
    trial = Trial(learner, stream)
    run_laws(LAWS, trial, trial.name, kept)


def hostile_stream(K: HasLMO, rounds: int, seed: int) -> Stream:
    """Linear losses that turn round; even seeds oppose them by half-spaces that cut the set near
    its center, odd ones set capacities.
    """
    rng, center, size = generator(seed, "hostile stream"), _numbers(K.center), K.radius or 1.0
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


@dataclass(frozen=True)
class Trial:
    """A learner, the rounds it is tried on, and its run on them."""

    learner: Learner[Any]
    stream: Stream

    def require(self, kept: bool | np.bool_, law: str, detail: str) -> None:
        """Raise `LawBroken` unless the law is kept; `detail` is a clause with the numbers."""
        if not kept:
            raise LawBroken(f"{self.name} breaks the law that {law}: {detail}.")

    def require_same(self, runs: tuple[list[Played], list[Played]], law: str, how: str) -> None:
        """Raise `LawBroken` at the first update after which the two runs play other bits."""
        for first, second in zip(*runs, strict=True):
            if _bits(first.x) != _bits(second.x):
                found = (
                    f"{_shown(second.x)} is played in place of {_shown(first.x)} before round "
                    f"{second.state.t}"
                )
                self.require(False, law, f"{how}, {found}")
            calls, others = first.state.calls, second.state.calls
            self.require(
                calls == others,
                law,
                f"{how}, {others} oracle calls are made in place of {calls} by round "
                f"{second.state.t}",
            )

    @property
    def name(self) -> str:
        return repr(self.learner) if is_dataclass(self.learner) else type(self.learner).__name__

    def played(self, state: Any = None, first: int = 0) -> list[Played]:
        """The rounds from `first` on, as many at a time as the learner takes."""
        return list(play(self.learner, self.stream[first:], state))

    def round(self, t: int, state: Any) -> Played:
        """Round t alone."""
        return next(play(self.learner, self.stream[t : t + 1], state))

    def one_by_one(
        self, rounds: range, state: Any = None, *, through_bytes: bool = False
    ) -> list[Played]:
        """These rounds, one at a time; `through_bytes` saves and loads the state after each."""
        run: list[Played] = []
        for t in rounds:
            run.append(self.round(t, state))
            state = (
                self.learner.load(self.learner.save(run[-1].state))
                if through_bytes
                else run[-1].state
            )
        return run

    def endless(self) -> Iterator[Played]:
        """The stream over and over."""
        state = self.learner.start()
        while True:
            for played in play(self.learner, self.stream, state):
                state = played.state
                yield played

    @cached_property
    def run(self) -> list[Played]:
        return self.played()

    @cached_property
    def single(self) -> list[Played]:
        """The run, one round at a time."""
        return self.one_by_one(range(len(self.stream)))

    @cached_property
    def moments(self) -> list[tuple[int, Any]]:
        """Rounds and the states they are played from: the first two, and two in the middle."""
        states = [self.learner.start(), *(played.state for played in self.single)]
        half = len(self.stream) // 2
        return [(t, states[t]) for t in sorted({0, 1, half, min(half + 1, len(self.stream) - 1)})]


def prints_and_compares(trial: Trial) -> None:
    learner, law = trial.learner, "it prints and compares as what it is"
    trial.require(
        is_dataclass(learner),
        law,
        "it is no dataclass; declare it one, with frozen=True, eq=False, repr=False",
    )
    trial.require(
        type(learner).__eq__ is Learner.__eq__,
        law,
        "it does not compare arrays by content; declare the dataclass with eq=False",
    )
    for how, twin in (
        ("made again from its fields", _twin(learner)),
        ("copied", copy.deepcopy(learner)),
    ):
        same = twin == learner and hash(learner) == hash(twin) and repr(learner) == repr(twin)
        same = same and identity(learner) == identity(twin)
        trial.require(
            same, law, f"{how}, it is {twin!r} and not equal in ==, hash, repr and identity"
        )
    trial.require(repr(learner).startswith(type(learner).__name__), law, f"its repr is {learner!r}")
    trial.require(object() != learner, law, "it equals an object of another kind")


def states_are_read_only(trial: Trial) -> None:
    learner, law = trial.learner, "a state is of its state_type, with arrays that are read-only"
    trial.require(
        learner.save(learner.start()) == learner.save(learner.start()),
        law,
        "start() gives another state the second time",
    )
    for state in (learner.start(), *(played.state for played in trial.single)):
        trial.require(
            isinstance(state, learner.state_type), law, f"a {type(state).__name__} is none"
        )
        for name, part in state._asdict().items():
            open_door = type(part) is np.ndarray and part.flags.writeable
            trial.require(
                not open_door, law, f"its {name} can be written to; set flags.writeable = False"
            )


def actions_are_members(trial: Trial) -> None:
    learner, law, state = (
        trial.learner,
        "every action is a read-only member of the set",
        trial.learner.start(),
    )
    for t in range(len(trial.stream)):
        _require_member(trial, learner.hard_set, learner.act(state), t, law)
        state = trial.round(t, state).state


def acting_changes_nothing(trial: Trial) -> None:
    learner, law = (
        trial.learner,
        (
            "act gives the point of its state, as often as it is asked, and acts the same for the "
            "rounds to come"
        ),
    )
    explores = learner.needs is Bandit
    for t, state in trial.moments:
        before, x, k = learner.save(state), learner.act(state), learner.rounds_left(state)
        gave = _points(trial.single[t], learner)[0]
        trial.require(
            _bits(x) == _bits(gave),
            law,
            f"in round {t} it gives {_shown(x)}, and gave {_shown(gave)}",
        )
        for count in (1, (k + 1) // 2, k):
            points = learner.acts(state, count)
            trial.require(
                tuple(points.shape) == (count, *x.shape),
                law,
                f"acts(state, {count}) has shape {tuple(points.shape)}",
            )
            for i in range(min(count, len(trial.stream) - t) if explores else count):
                due = _points(trial.single[t + i], learner)[0] if explores else x
                same = _bits(points[i, ...]) == _bits(due)
                other = "what is played" if explores else "act(state)"
                trial.require(
                    same, law, f"acts(state, {count}) differs from {other} in round {t + i}"
                )
        trial.require(
            learner.save(state) == before, law, f"act or acts changed the state of round {t}"
        )


def only_settled_points_are_given(trial: Trial) -> None:
    learner, law = trial.learner, "acts refuses more points than rounds_left, and none"
    for t, state in trial.moments:
        k = learner.rounds_left(state)
        for count in (0, k + 1):
            try:
                learner.acts(state, count)
            except TidewolfError:
                continue
            trial.require(
                False,
                law,
                f"acts(state, {count}) is answered in round {t} where 1 to {k} points are settled",
            )


def rounds_and_calls_are_counted(trial: Trial) -> None:
    learner, law = (
        trial.learner,
        "t counts the rounds, calls the oracle's answers, and rounds_left is at least 1",
    )
    share, before = learner.fields().get("calls_per_round"), learner.start()
    for t, played in enumerate(trial.single, start=1):
        state = played.state
        trial.require(
            learner.rounds_left(before) >= 1,
            law,
            f"rounds_left is {learner.rounds_left(before)} before round {t}",
        )
        trial.require(state.t == t, law, f"t is {state.t} after {t} rounds")
        trial.require(
            state.calls >= before.calls >= 0,
            law,
            f"calls went from {before.calls} to {state.calls} in round {t}",
        )
        trial.require(
            0.0 <= state.distance < math.inf, law, f"distance is {state.distance} after {t} rounds"
        )
        if share is not None:
            spent = f"{state.calls} calls were made in {t} rounds, {share:g} a round are allowed"
            trial.require(
                state.calls <= share * t + 1e-6, "calls stay within calls_per_round", spent
            )
        before = state
    rounds = sum(int(played.losses.shape[0]) for played in trial.run)
    trial.require(
        trial.run[-1].state.t == rounds,
        law,
        f"t is {trial.run[-1].state.t} after {rounds} rounds, many at a time",
    )


def same_rounds_same_run(trial: Trial) -> None:
    law = "the same rounds give the same run"
    trial.require_same((trial.run, trial.played()), law, "played again")
    twin = Trial(_twin(trial.learner), trial.stream)
    trial.require_same((trial.run, twin.run), law, "played by a learner of the same settings")


def saved_states_go_on(trial: Trial) -> None:
    learner, law = trial.learner, "load(save(state)) goes on bit for bit"
    for _, state in trial.moments:
        data = learner.save(state)
        loaded = learner.load(data)
        trial.require(
            type(loaded) is type(state),
            law,
            f"a {type(state).__name__} comes back as a {type(loaded).__name__}",
        )
        trial.require(
            learner.save(loaded) == data,
            law,
            f"saved again after round {state.t}, it is other bytes",
        )
    everywhere = trial.one_by_one(range(len(trial.stream)), through_bytes=True)
    trial.require_same((trial.single, everywhere), law, "saved and loaded after every round")
    for i in {0, len(trial.run) // 2}:
        t = trial.run[i].state.t
        resumed = trial.played(learner.load(learner.save(trial.run[i].state)), t)
        trial.require_same((trial.run[i + 1 :], resumed), law, f"saved and loaded after round {t}")


def old_states_stay_good(trial: Trial) -> None:
    learner, rounds, law = (
        trial.learner,
        len(trial.stream),
        "update leaves the old state as it was, whatever is done with the new one",
    )
    state, kept = learner.start(), []
    for t in range(rounds):
        if t % 3 == 1:
            kept.append((t, state, learner.save(state)))
        state = trial.round(t, state).state
    for t, old, data in kept:
        trial.require(
            learner.save(old) == data, law, f"the state before round {t} is another after the run"
        )
    for t, old in trial.moments:
        forward, backward = range(t, rounds), range(rounds - 1, t - 1, -1)
        alone = [
            trial.one_by_one(order, learner.load(learner.save(old)))
            for order in (forward, backward)
        ]
        meeting: tuple[list[Played], list[Played]] = ([], [])
        states = [old, old]
        for both in zip(forward, backward, strict=True):
            for branch, s in enumerate(both):
                meeting[branch].append(trial.round(s, states[branch]))
                states[branch] = meeting[branch][-1].state
        for branch in (0, 1):
            trial.require_same(
                (alone[branch], meeting[branch]),
                law,
                f"with two branches from the state before round {t}, played in turn",
            )


def blocks_are_rounds(trial: Trial) -> None:
    learner, law = (
        trial.learner,
        (
            "feedback on k rounds at once does what it does one round at a time, up to rounding of "
            "sums"
        ),
    )
    room = max(learner.accuracy, math.sqrt(eps_of(learner.hard_set.center))) * (
        learner.hard_set.radius or 1.0
    )
    t, state = 0, learner.start()
    while t < len(trial.stream):
        k = min(learner.rounds_left(state), len(trial.stream) - t)
        points = learner.acts(state, k)
        for i in range(k):
            x, alone = points[i, ...], _points(trial.single[t + i], learner)[0]
            off = float(np.abs(_numbers(x) - _numbers(alone)).max())
            if off > room:
                trial.require(
                    False,
                    law,
                    f"in round {t + i}, {_shown(x)} is played in place of {_shown(alone)}, "
                    f"{off:.3g} away",
                )
        state = learner.update(state, _seen_together(trial, t, points))
        t += k
    alone = trial.single[-1].state
    trial.require(
        state.calls == alone.calls,
        law,
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


def _seen_together(trial: Trial, t: int, points: Array) -> Feedback:
    """What the learner needs of the rounds from t on, one at each point, from that of each round
    alone.
    """
    k = int(points.shape[0])
    if trial.learner.needs is FullInformation:
        part = trial.stream[t : t + k]
        return FullInformation(part.losses, part.constraints)
    if trial.learner.needs is FirstOrder:
        return together([_seen(trial.stream, t + i, points[i, ...]) for i in range(k)])
    parts = [trial.stream[t + i : t + i + 1] for i in range(k)]
    alone = [
        bandit(part.losses, part.constraints, points[i : i + 1, ...])
        for i, part in enumerate(parts)
    ]
    return Bandit(*(namespace(points).concat(values) for values in zip(*alone, strict=True)))


def bad_feedback_is_refused(trial: Trial) -> None:
    learner, law = (
        trial.learner,
        (
            "bad feedback is refused at once with a TidewolfError, and the state goes on as if it "
            "had not come"
        ),
    )
    for t, state in trial.moments:
        before = learner.save(state)
        for what, bad in _bad_feedback(trial, t, state).items():
            where = f"{what}, in round {t},"
            try:
                with np.errstate(all="ignore"):
                    learner.update(state, bad)
            except TidewolfError:
                trial.require(learner.save(state) == before, law, f"{where} changed the state")
            except Exception as error:
                raise LawBroken(
                    f"{trial.name} breaks the law that {law}: {where} raised "
                    f"{type(error).__name__}: {error}."
                ) from error
            else:
                trial.require(False, law, f"{where} was taken")
        again = trial.one_by_one(range(t, len(trial.stream)), state)
        trial.require_same((trial.single[t:], again), law, f"after bad feedback in round {t}")


def other_settings_are_refused(trial: Trial) -> None:
    learner, law = trial.learner, "a state saved under other settings, or broken, is refused"
    data = learner.save(trial.run[-1].state)
    for name, other in _others(learner):
        try:
            other.load(data)
        except OtherSettings:
            continue
        trial.require(
            False,
            law,
            f"it was taken with {name} = {getattr(other, name)!r} in place of "
            f"{getattr(learner, name)!r}",
        )
    for what, broken in (
        ("without its last byte", data[:-1]),
        ("with a byte changed", data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]),
        ("of no bytes", b""),
    ):
        try:
            learner.load(broken)
        except TidewolfError:
            continue
        trial.require(False, law, f"a state {what} was taken")


def bounds_are_stated(trial: Trial) -> None:
    law = "bound(record) states a number or a reason for having none, and no NaN"
    bound = trial.learner.bound(_record(trial.learner, trial.run, trial.stream))
    trial.require(isinstance(bound, Bound), law, f"it is {bound!r}, no Bound")
    for name in ("regret", "violation"):
        number = getattr(bound, name)
        trial.require(number is None or math.isfinite(number), law, f"its {name} is {number}")
        trial.require(
            number is not None or bound.reason != "", law, f"its {name} is None without a reason"
        )


def the_horizon_may_be_passed(trial: Trial) -> None:
    learner, law = (
        trial.learner,
        "rounds past the horizon are played, and a restart is said in a note",
    )
    horizon = learner.fields().get("horizon")
    if horizon is None or horizon > _PATIENCE:
        return
    known, state = learner.notes(learner.start()), learner.start()
    for played in trial.endless():
        for i, x in enumerate(_points(played, learner)):
            _require_member(trial, learner.hard_set, x, state.t + i, law)
        state = played.state
        if state.t > 2 * horizon + _ROUNDS:
            break
    added = [note for note in learner.notes(state) if note not in known]
    trial.require(
        learner.anytime or len(added) > 0,
        law,
        f"after {state.t} rounds with a horizon of {horizon} there is no new note",
    )
    for note in added:
        trial.require(note.endswith("."), law, f"the note {note!r} is no sentence")


def states_do_not_grow(trial: Trial) -> None:
    learner, law, rounds = (
        trial.learner,
        "a saved state does not grow with the rounds, but for those of an open block",
        len(trial.stream),
    )
    sizes: list[tuple[int, int]] = []
    before, checked = learner.start(), _CYCLES * rounds
    for played in trial.endless():
        state, due = played.state, learner.rounds_left(before) == int(played.losses.shape[0])
        before = state
        if not due or (sizes and state.t < sizes[-1][0] + _SAMPLE):
            continue
        sizes.append((state.t, len(learner.save(state))))
        half = state.t // 2
        if state.t < checked or sizes[0][0] > half:
            continue
        checked = state.t + _CYCLES * _SAMPLE
        early, late = (
            max(size for t, size in sizes if t <= half),
            max(size for t, size in sizes if t > half),
        )
        if late <= _GROWTH * early:
            return
        detail = f"it has up to {early} bytes in the first {half} rounds, up to {late} in the next"
        trial.require(state.t < _MOST_CYCLES * rounds, law, detail)


LAWS = (
    prints_and_compares,
    actions_are_members,
    states_are_read_only,
    rounds_and_calls_are_counted,
    acting_changes_nothing,
    only_settled_points_are_given,
    same_rounds_same_run,
    saved_states_go_on,
    old_states_stay_good,
    blocks_are_rounds,
    bad_feedback_is_refused,
    other_settings_are_refused,
    bounds_are_stated,
    the_horizon_may_be_passed,
    states_do_not_grow,
)
"""Every law, in the order they are tried: what later laws build on comes first."""


def _require_member(trial: Trial, K: HasLMO, x: Array, t: int, law: str) -> None:
    trial.require(
        tuple(x.shape) == K.shape,
        law,
        f"in round {t} its shape is {tuple(x.shape)}, points have shape {K.shape}",
    )
    excess = K.excess(x) if np.isfinite(_numbers(x)).all() else math.inf
    if excess > membership_tolerance(x, K.radius):
        trial.require(False, law, f"in round {t} it is {_shown(x)}, with excess {excess:.3g}")
    same = type(x) is type(K.center) and x.dtype == K.center.dtype
    trial.require(
        same,
        law,
        f"in round {t} it is a {type(x).__name__} of {x.dtype}, the set lives in {K.center.dtype}",
    )
    if type(x) is np.ndarray:
        trial.require(
            not x.flags.writeable,
            law,
            f"in round {t} it can be written to; set x.flags.writeable = False",
        )


def _bad_feedback(trial: Trial, t: int, state: Any) -> dict[str, Any]:
    """Feedback of the kind the learner needs, spoilt in one way each, by what is wrong with it."""
    learner, left, shape = (
        trial.learner,
        trial.learner.rounds_left(state),
        trial.learner.hard_set.shape,
    )
    losses, constraints, x = (
        trial.stream.losses[t : t + 1],
        trial.stream.constraints[t : t + 1],
        learner.act(state),
    )
    values = constraints.values(x)
    others = (
        Bandit(losses.values(x), values),
        FullInformation(losses, constraints),
        _seen(trial.stream, t, x),
    )
    bad: dict[str, Any] = {"nothing (None)": None, "text": "up"}
    bad |= {
        f"{type(other).__name__} feedback": other
        for other in others
        if not isinstance(other, learner.needs)
    }
    wide = like(np.ones((*shape, 2)), x)
    if learner.needs is FirstOrder:
        good = _seen(trial.stream, t, x)._replace(violation=1.0, constraint_slope=1.0)
        for name in ("loss_gradient", "constraint_gradient"):
            bad[f"a NaN in the {name}"] = good._replace(**{name: x * math.nan})
            bad[f"an infinite {name}"] = good._replace(**{name: like(np.full(shape, math.inf), x)})
            bad[f"a {name} of another shape"] = good._replace(**{name: wide})
        bad |= {
            f"a violation of {number}": good._replace(violation=number)
            for number in (-1.0, math.nan, math.inf)
        }
        bad |= {
            f"feedback on {k} rounds where 1 to {left} are due": good._replace(rounds=k)
            for k in (0, left + 1)
        }
    elif learner.needs is Bandit:
        two = namespace(x).stack([values, values])
        spoilt = {
            "a NaN": values * math.nan,
            "an infinite number": values + math.inf,
            "minus infinity": values - math.inf,
        }
        spoilt |= {"a second axis": two, "one value more": two[:, 0], "a number alone": 1.0}
        for name in Bandit._fields:
            bad |= {
                f"{what} in the {name}": Bandit(values, values)._replace(**{name: wrong})
                for what, wrong in spoilt.items()
            }
        for k in (0, left + 1):
            bad[f"feedback on {k} rounds where 1 to {left} are due"] = Bandit(
                like(np.zeros(k), x), like(np.zeros(k), x)
            )
    else:
        bad["functions of another shape"] = FullInformation(
            Linear(wide[None, ...]), Linear(wide[None, ...])
        )
        bad["feedback on no round"] = FullInformation(losses[:0], constraints[:0])
        if left < len(trial.stream):
            more = trial.stream[: left + 1]
            bad[f"feedback on {left + 1} rounds where 1 to {left} are due"] = FullInformation(
                more.losses, more.constraints
            )
    return bad


def _points(played: Played, learner: Learner[Any]) -> list[Array]:
    """The different points played."""
    return (
        [played.x[i, ...] for i in range(played.x.shape[0])]
        if learner.needs is Bandit
        else [played.x]
    )


def _seen(stream: Stream, t: int, x: Array) -> FirstOrder:
    """The first-order feedback on round t at x."""
    losses, constraints = stream.losses[t : t + 1], stream.constraints[t : t + 1]
    return first_order(losses, constraints, x, constraints.values(x))


def _others(learner: Learner[Any]) -> Iterator[tuple[str, Learner[Any]]]:
    """Learners with one setting changed, as far as numbers go and the constructor takes them."""
    for name, value in learner.fields().items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                yield name, type(learner)(**{**learner.fields(), name: 2 * value + 1})
            except TidewolfError:
                continue


def _twin(learner: Learner[Any]) -> Learner[Any]:
    return type(learner)(**learner.fields())


def _record(learner: Learner[Any], run: list[Played], stream: Stream) -> Record:
    """What `bound` is told of a run."""
    calls = np.diff([0, *(played.state.calls for played in run)])
    return Record(
        losses=np.concatenate([_numbers(played.losses) for played in run]),
        violations=np.concatenate(
            [np.maximum(0.0, _numbers(played.constraints)) for played in run]
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


def _bits(x: Array) -> tuple[Any, ...]:
    array = np.ascontiguousarray(to_numpy(x))
    return array.shape, array.dtype.str, array.tobytes()


def _numbers(x: Array) -> Floats:
    """An array as float64 on the host."""
    return np.asarray(to_numpy(x), dtype=np.float64)


def _shown(x: Array) -> str:
    return np.array2string(
        _numbers(x).reshape(-1), precision=6, threshold=8, edgeitems=3, max_line_width=1000
    )
