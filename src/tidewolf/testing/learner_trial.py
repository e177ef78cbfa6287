"""The rounds that a learner plays when its laws are tried, and its runs on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.feedback import Bandit
from tidewolf.core.types import Array
from tidewolf.loop import Played, play
from tidewolf.methods.base import Learner
from tidewolf.testing.checks import format_point, require


@dataclass(frozen=True)
class LearnerTrial:
    """A learner, the rounds it is tried on, and its run on them."""

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
        yield from self._thrice
        state = self._thrice[-1].state
        while True:
            for played in play(self.learner, self.stream, state):
                state = played.state
                yield played

    @cached_property
    def _thrice(self) -> list[Played]:
        """Its beginning, played once for all laws that look at it."""
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


def require_same(runs: tuple[list[Played], list[Played]], how: str) -> None:
    """Break the law that is tried at the first update after which two runs play other bits."""
    for first, second in zip(*runs, strict=True):
        t = second.state.t
        if bits_of(first.x) != bits_of(second.x):
            played = f"{format_point(second.x)} is played in place of {format_point(first.x)}"
            require(False, f"{how}, {played} before round {t}")
        calls, others = first.state.calls, second.state.calls
        require(
            calls == others,
            f"{how}, {others} oracle calls are made in place of {calls} by round {t}",
        )


def points_of(played: Played, learner: Learner[Any]) -> list[Array]:
    """The different points played."""
    return (
        [played.x[i, ...] for i in range(played.x.shape[0])]
        if learner.needs is Bandit
        else [played.x]
    )


def bits_of(x: Array) -> tuple[Any, ...]:
    """What two arrays share where they are the same bit for bit."""
    array = np.ascontiguousarray(to_numpy(x))
    return array.shape, array.dtype.str, array.tobytes()
