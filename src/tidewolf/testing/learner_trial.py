"""The rounds on which a learner is tested, its runs on them, and good and bad feedback."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tidewolf.core.arrays import like, namespace, to_numpy
from tidewolf.core.batch import Stream
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
from tidewolf.core.types import Array
from tidewolf.functions import Affine, Batch, Capacity, Linear
from tidewolf.loop import Played, play
from tidewolf.methods.base import Learner
from tidewolf.testing.checks import as_floats, format_point, require

_TURN = 6
"""After how many rounds the losses of the hostile stream change their sign."""


@dataclass(frozen=True)
class LearnerTrial:
    """A learner, the rounds it is tested on, and its run on them."""

    learner: Learner[Any]
    stream: Stream

    @property
    def name(self) -> str:
        return repr(self.learner) if is_dataclass(self.learner) else type(self.learner).__name__

    def played(self, state: Any = None, first: int = 0) -> list[Played]:
        """The rounds from `first` on, as many at a time as the learner takes."""
        return list(play(self.learner, self.stream[first:], state))

    def round(self, t: int, state: Any) -> Played:
        """Round t alone."""
        return next(play(self.learner, self.stream[t : t + 1], state))

    def with_info(self, t: int, state: Any) -> Any:
        """The state after what the stream states before round t."""
        info = self.stream.info(t)
        return state if info is None else self.learner.with_info(state, info)

    def one_by_one(
        self, rounds: range, state: Any = None, *, through_bytes: bool = False
    ) -> list[Played]:
        """These rounds, one at a time; `through_bytes` saves and loads the state after each."""
        run: list[Played] = []
        for t in rounds:
            run.append(self.round(t, state))
            state = run[-1].state
            if through_bytes:
                state = self.learner.load(self.learner.save(state))
        return run

    def endless(self) -> Iterator[Played]:
        """The stream over and over."""
        yield from self._thrice
        state = self._thrice[-1].state
        while True:
            for played in play(self.learner, self.stream, state):
                state = played.state
                yield played

    @cached_property
    def _thrice(self) -> list[Played]:
        """Its beginning, played once for all checks that look at it."""
        runs = [*self.run]
        for _ in range(2):
            runs += self.played(runs[-1].state)
        return runs

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

    def feedback(self, t: int, x: Array, *, per_constraint: bool = False) -> Feedback:
        """What the learner reads of round t, played at x."""
        part = self.stream[t : t + 1]
        needs = self.learner.reads(part.losses)
        if needs is FullInformation:
            return FullInformation(part.losses, part.constraints)
        if needs is Bandit:
            return bandit(part.losses, part.constraints, x[None, ...])
        values = part.constraints.values(x)
        return first_order(part.losses, part.constraints, x, values, per_constraint)


def hostile_stream(K: HasLMO, rounds: int, seed: int) -> Stream:
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


def bad_feedback(trial: LearnerTrial, t: int, state: Any) -> dict[str, Any]:
    """Feedback on round t of the kind the learner needs, with one fault each, by its fault."""
    learner, stream = trial.learner, trial.stream
    part, most, x = stream[t : t + 1], learner.rounds_at_once(state), learner.act(state)
    values = part.constraints.values(x)
    good = first_order(part.losses, part.constraints, x, values)
    whole = FullInformation(part.losses, part.constraints)
    seen = Bandit(part.losses.values(x), values)
    bad: dict[str, Any] = {"nothing (None)": None, "text": "up"}
    for other in (seen, whole, good):
        if not isinstance(other, learner.takes):
            bad[f"{type(other).__name__} feedback"] = other
    needs, wide = learner.reads(part.losses), like(np.ones((*x.shape, 2)), x)
    counts = {k: f"feedback on {k} rounds, expected 1 to {most}" for k in (0, most + 1)}
    if needs is FirstOrder:
        good = good._replace(violation=1.0, constraint_slope=1.0)
        for name in ("loss_gradient", "constraint_gradient"):
            infinite = like(np.full(x.shape, math.inf), x)
            bad[f"a NaN in the {name}"] = good._replace(**{name: x * math.nan})
            bad[f"an infinite {name}"] = good._replace(**{name: infinite})
            bad[f"a {name} of another shape"] = good._replace(**{name: wide})
        for number in (-1.0, math.nan, math.inf):
            bad[f"a violation of {number}"] = good._replace(violation=number)
        return bad | {text: good._replace(rounds=k) for k, text in counts.items()}
    if needs is Bandit:
        two = namespace(x).stack([values, values])
        for what, wrong in (
            ("a NaN", values * math.nan),
            ("an infinite number", values + math.inf),
            ("minus infinity", values - math.inf),
            ("a second axis", two),
            ("one value more", two[:, 0]),
            ("a number alone", 1.0),
        ):
            for name in Bandit._fields:
                bad[f"{what} in the {name}"] = Bandit(values, values)._replace(**{name: wrong})
        return bad | {text: Bandit(*[like(np.zeros(k), x)] * 2) for k, text in counts.items()}
    strange, more = Linear(wide[None, ...]), stream[: most + 1]
    bad["functions of another shape"] = FullInformation(strange, strange)
    bad[counts[0]] = FullInformation(whole.losses[:0], whole.constraints[:0])
    if most < len(stream):
        bad[counts[most + 1]] = FullInformation(more.losses, more.constraints)
    return bad


def require_same(expected: list[Played], found: list[Played], how: str) -> None:
    """Fail the check at the first update after which two runs play other bits."""
    for first, second in zip(expected, found, strict=True):
        t = second.state.t
        if bits_of(first.x) != bits_of(second.x):
            played = f"{format_point(second.x)} is played in place of {format_point(first.x)}"
            require(False, f"{how}, {played} before round {t}")
        calls, others = first.state.calls, second.state.calls
        require(
            calls == others, f"{how}, {others} oracle calls, not {calls}, are made by round {t}"
        )


def points_of(played: Played, learner: Learner[Any]) -> list[Array]:
    """The different points played."""
    return list(played.x) if learner.needs is Bandit else [played.x]


def bits_of(x: Array) -> tuple[Any, ...]:
    """What two arrays share if they are the same bit for bit."""
    array = np.ascontiguousarray(to_numpy(x))
    return array.shape, array.dtype.str, array.tobytes()
