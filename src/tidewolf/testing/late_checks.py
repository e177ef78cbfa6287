"""Checks of learners whose feedback may come late, or for other points than they decided; a learner
that takes feedback in order only passes them by refusing.

    on_feedback(state, the next round) does what update(state, feedback) does           bit for bit
    with random delays and overrides every point is a member, t + pending + lost counts rounds, and
        load(save(state)) resumes                                                       bit for bit
    what arrives together gives one state, in any order
    defer, on_feedback and drop leave their state unchanged
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tidewolf.core.arrays import like
from tidewolf.core.batch import NEVER, Stream
from tidewolf.core.errors import NotSupported
from tidewolf.core.feedback import Arrival
from tidewolf.core.randomness import generator
from tidewolf.loop import Played, play
from tidewolf.methods.base import Learner
from tidewolf.methods.late import next_round
from tidewolf.testing.checks import Checks, as_floats, raises, require, require_at_most
from tidewolf.testing.learner_trial import LearnerTrial, bits_of, require_same

_LONGEST = 5
"""The longest finite delay, in rounds."""


def takes_late(learner: Learner[Any]) -> bool:
    """Whether it takes feedback that comes late."""
    return type(learner).defer is not Learner.defer


def late_stream(trial: LearnerTrial, seed: int = 0) -> Stream:
    """The trial's rounds with random delays, some without end, and vertices of the set, or its
    center, in place of some decisions.
    """
    stream, K = trial.stream, trial.learner.hard_set
    rng, rounds = generator(seed, "late stream"), len(stream)
    delays = rng.choice([0, 0, 1, 2, _LONGEST, rounds], rounds)
    played = np.full((rounds, *K.shape), np.nan)
    for t in np.flatnonzero(rng.uniform(size=rounds) < 0.25):
        direction = like(rng.standard_normal(K.shape), K.center)
        vertex = K.answer(direction).vertex.dense(K.center)
        played[t] = as_floats(vertex if t % 3 else K.center)
    late = {"arrives": np.arange(rounds) + delays, "played": like(played, K.center)}
    return replace(stream, unavailable=None, **late)


LATE_CHECKS = Checks[LearnerTrial]()


@LATE_CHECKS("feedback that arrives at once has the effect of feedback in order, or is refused")
def arriving_at_once_is_in_order(trial: LearnerTrial) -> None:
    learner, state = trial.learner, trial.learner.start()
    if not takes_late(learner):
        require(raises(NotSupported, learner.defer, state), "defer does not raise NotSupported")
        return
    run: list[Played] = []
    for t, single in enumerate(trial.single):
        state = trial.with_info(t, state)
        x, before = learner.act(state), learner.save(state)
        feedback = trial.feedback(t, x, per_constraint=learner.per_constraint)
        after = learner.on_feedback(state, (Arrival(next_round(state), feedback),))
        require(learner.save(state) == before, f"on_feedback changed the state of round {t}")
        run.append(single._replace(x=x, state=after))
        state = after
    require_same(trial.single, run, "with each round given to on_feedback")


@LATE_CHECKS(
    "late rounds are played: decisions are members, rounds are counted, load(save) resumes"
)
def late_rounds_are_played(trial: LearnerTrial) -> None:
    learner = trial.learner
    if not takes_late(learner):
        return
    stream, K = late_stream(trial), learner.hard_set
    run = list(play(learner, stream))
    state = learner.start()
    for t, played in enumerate(run):
        off = K.infeasibility(learner.act(state, stream.info(t)))
        require_at_most(off, 1e-6 * max(1.0, K.radius), f"the infeasibility in round {t}")
        state = played.state
        counted = next_round(state)
        require(counted == t + 1, f"{counted} rounds are decided after {t + 1}")
    counted = state.t + len(state.pending) + state.lost
    require(counted == len(stream), f"{counted} rounds are counted, expected {len(stream)}")
    assert stream.arrives is not None
    lost = int(np.count_nonzero(stream.arrives == NEVER))
    require(state.lost == lost, f"{state.lost} rounds are lost, expected {lost}")
    for t in {1, max(1, len(run) // 3), max(1, len(run) // 2)}:
        data, how = learner.save(run[t - 1].state), f"saved and loaded after round {t}"
        resumed = list(play(learner, stream, learner.load(data), t))
        require_same(run[t:], resumed, f"{how}, some pending")
        same = learner.save(resumed[-1].state) == learner.save(state)
        require(same, f"{how}, it ends in another state")


@LATE_CHECKS("what arrives together gives one state, in any order, and changes no earlier state")
def order_within_a_batch_is_nothing(trial: LearnerTrial) -> None:
    learner = trial.learner
    if not takes_late(learner):
        return
    state, arrivals = learner.start(), list[Arrival]()
    for t in range(min(4, len(trial.stream))):
        state = trial.with_info(t, state)
        x = learner.act(state)
        feedback = trial.feedback(t, x, per_constraint=learner.per_constraint)
        arrivals.append(Arrival(t, feedback))
        state = learner.defer(state)
    arrivals, before = arrivals[:-1], learner.save(state)
    due = learner.save(learner.on_feedback(state, arrivals))
    for other in (arrivals[::-1], arrivals[1:] + arrivals[:1]):
        same = learner.save(learner.on_feedback(state, other)) == due
        require(same, "another order gives other bits")
    dropped = learner.drop(state, (0,))
    require(dropped.lost == 1, f"{dropped.lost} rounds are lost after 1 was dropped")
    same = bits_of(learner.act(dropped)) == bits_of(learner.act(state))
    require(same, "drop moves the point")
    require(learner.save(state) == before, "on_feedback or drop changed the state")
