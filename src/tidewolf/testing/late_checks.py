"""Laws of learners whose feedback may come late, or of other points than they decided; those who
take it in order alone keep them by refusing.

    arrived(state, the coming round) does what update(state, seen) does                 bit for bit
    with random delays and overrides every point is a member, t + pending + lost counts rounds, and
        load(save(state)) goes on                                                       bit for bit
    what arrives together gives one state, in whatever order it is told
    decided, arrived and forgotten leave their state as it was
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidewolf.core.arrays import like
from tidewolf.core.batch import NEVER, Stream
from tidewolf.core.errors import NotSupported
from tidewolf.core.feedback import Arrival, Feedback, FirstOrder, FullInformation, first_order
from tidewolf.core.randomness import generator
from tidewolf.core.types import Array
from tidewolf.loop import Played, play
from tidewolf.methods.base import Learner
from tidewolf.methods.late import next_round
from tidewolf.testing.checks import as_floats, check, raises, require
from tidewolf.testing.learner_trial import LearnerTrial, bits_of, require_same

_LONGEST = 5
"""Rounds that feedback is late at most."""


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
        way = like(rng.standard_normal(K.shape), K.center)
        vertex = K.answer(way).vertex.dense(K.center)
        played[t] = as_floats(vertex if t % 3 else K.center)
    return Stream(
        stream.losses,
        stream.constraints,
        stream.seen,
        time=stream.time,
        context=stream.context,
        advice=stream.advice,
        arrives=np.arange(rounds) + delays,
        played=like(played, K.center),
    )


@check("feedback that arrives at once does what feedback in order does, bit for bit; or is refused")
def arriving_at_once_is_in_order(trial: LearnerTrial) -> None:
    learner, state = trial.learner, trial.learner.start()
    if not takes_late(learner):
        require(raises(NotSupported, learner.defer, state), "decided is no refusal")
        return
    run: list[Played] = []
    for t in range(len(trial.stream)):
        if (info := trial.stream.info(t)) is not None:
            state = learner.with_info(state, info)
        x, before = learner.act(state), learner.save(state)
        arrival = Arrival(next_round(state), seen_at(trial, t, x))
        after = learner.on_feedback(state, (arrival,))
        require(learner.save(state) == before, f"arrived changed the state of round {t}")
        run.append(trial.single[t]._replace(x=x, state=after))
        state = after
    require_same((trial.single, run), "told of each round by arrived")


@check(
    "with random delays and overrides every decision is a member, rounds are counted, and "
    "load(save(state)) goes on bit for bit"
)
def late_rounds_are_played(trial: LearnerTrial) -> None:
    learner = trial.learner
    if not takes_late(learner):
        return
    stream, K = late_stream(trial), learner.hard_set
    run = list(play(learner, stream))
    state = learner.start()
    for t, played in enumerate(run):
        decision = learner.act(state, stream.info(t))
        infeasibility = K.infeasibility(decision)
        require(
            infeasibility <= 1e-6 * max(1.0, K.radius),
            f"the decision of round {t} is {infeasibility} off",
        )
        state = played.state
        counted = next_round(state)
        require(counted == t + 1, f"{counted} rounds are decided after {t + 1}")
    told = state.t + len(state.pending) + state.lost
    require(told == len(stream), f"{told} rounds are accounted for of {len(stream)}")
    assert stream.arrives is not None
    lost = int(np.count_nonzero(stream.arrives == NEVER))
    require(state.lost == lost, f"{state.lost} rounds are lost where {lost} never arrive")
    for t in {1, max(1, len(run) // 3), max(1, len(run) // 2)}:
        data = learner.save(run[t - 1].state)
        resumed = list(play(learner, stream, learner.load(data), t))
        require_same((run[t:], resumed), f"saved and loaded after round {t}, some pending")
        require(
            learner.save(resumed[-1].state) == learner.save(state),
            f"saved and loaded after round {t}, it ends in another state",
        )


@check("what arrives together gives one state, in whatever order, and changes no old one")
def order_within_a_batch_is_nothing(trial: LearnerTrial) -> None:
    learner, stream = trial.learner, trial.stream
    if not takes_late(learner):
        return
    state, points = learner.start(), []
    pending = min(4, len(stream))
    for t in range(pending):
        if (info := stream.info(t)) is not None:
            state = learner.with_info(state, info)
        points.append(learner.act(state))
        state = learner.defer(state)
    arrivals = [Arrival(t, seen_at(trial, t, points[t])) for t in range(pending - 1)]
    before = learner.save(state)
    due = learner.save(learner.on_feedback(state, arrivals))
    for other in (arrivals[::-1], arrivals[1:] + arrivals[:1]):
        require(learner.save(learner.on_feedback(state, other)) == due, "another order, other bits")
    drop = learner.drop(state, (0,))
    require(drop.lost == 1, f"{drop.lost} rounds are lost where 1 was forgotten")
    require(
        bits_of(learner.act(drop)) == bits_of(learner.act(state)),
        "forgetting a round moves the point",
    )
    require(learner.save(state) == before, "arrived or forgotten changed the state")


def seen_at(trial: LearnerTrial, t: int, x: Array) -> Feedback:
    """What the learner is told of round t, played at x."""
    learner, part = trial.learner, trial.stream[t : t + 1]
    if learner.reads(part.losses) is not FirstOrder:
        return FullInformation(part.losses, part.constraints)
    values = part.constraints.values(x)
    return first_order(part.losses, part.constraints, x, values, learner.per_constraint)
