"""Blocks of rounds played at one point and, for learners that need a horizon, stretches of blocks
that end there.

    feedback on some rounds -> sums of the open block -> at its end one step of the learner -> at
        the horizon a restart with twice as many

A last, shorter block is cut at the horizon. `Clocked` owns this clock; `BlockLearner` adds up
first-order feedback by it, and a learner says what happens at the end of a block. Learners that
work at any time have no stretches and never restart.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol, TypeVar

from tidewolf.core.arrays import frozen, namespace
from tidewolf.core.feedback import FirstOrder, require_first_order
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Learner, Progress
from tidewolf.methods.steps.slopes import within


class Open(Protocol):
    """What the clock needs of an open block."""

    @property
    def rounds(self) -> int:
        """Rounds of it seen so far."""


class Timed(Progress, Protocol):
    """What the clock needs of a state."""

    @property
    def open(self) -> Open:
        """What is kept of the open block."""


class Blocked(Progress, Protocol):
    """A state with first-order sums."""

    @property
    def open(self) -> FirstOrder:
        """The sums of the open block."""


C = TypeVar("C", bound=Timed)
S = TypeVar("S", bound=Blocked)


class Clocked(Learner[C]):
    """Abstract: learners whose settings are constant within a block, and whose blocks fill
    stretches of rounds.
    """

    @abstractmethod
    def _length(self, state: C) -> int:
        """Rounds of a whole block in this stretch."""

    def _end(self, state: C) -> int | None:
        """The round this stretch ends after; None where nothing ever restarts."""
        return None

    def _restarted(self, state: C) -> C:
        """The same point with a clean slate and twice the horizon; asked for at the end of a
        stretch alone.
        """
        return state

    def rounds_left(self, state: C) -> int:
        state = self._in_stretch(state)
        left, end = self._length(state) - state.open.rounds, self._end(state)
        return left if end is None else min(left, end - state.t)

    def _in_stretch(self, state: C) -> C:
        return self._restarted(state) if state.t == self._end(state) else state


class BlockLearner(Clocked[S]):
    """Abstract: first-order learners whose point is constant within a block."""

    @abstractmethod
    def _require(self, state: S, seen: FirstOrder) -> None:
        """Refuse at once, while their block is still open, gradients that its end would refuse."""

    @abstractmethod
    def _closed(self, state: S, block: FirstOrder) -> S:
        """The state after a whole block, from its sums; `state` is that of its last part's
        beginning.
        """

    def update(self, state: S, seen: FirstOrder) -> S:
        state = self._in_stretch(state)
        left = self.rounds_left(state)
        require_first_order(seen, self.hard_set.shape, left)
        if seen.rounds == left:
            return self._closed(state, joined(state.open, seen) if state.open.rounds else seen)
        self._require(state, seen)
        record: Any = state  # a NamedTuple, which no protocol can say
        waiting: S = record._replace(t=state.t + seen.rounds, open=joined(state.open, seen))
        return waiting


def slopes_with(
    K: HasLMO, block: FirstOrder, loss_slope: float, constraint_slope: float
) -> tuple[float, float]:
    """The largest slopes, those of an open block among them."""
    if block.rounds == 0:
        return loss_slope, constraint_slope
    G_f, G_g = max(loss_slope, block.loss_slope), max(constraint_slope, block.constraint_slope)
    loss = within(K, "loss", block.loss_gradient, block.rounds, None, G_f)[1]
    constraint = within(K, "constraint", block.constraint_gradient, block.rounds, None, G_g)[1]
    return max(loss_slope, loss), max(constraint_slope, constraint)


def opened(center: Array) -> FirstOrder:
    """The sums of a block that has seen no round yet."""
    zero = frozen(namespace(center).zeros_like(center))
    return FirstOrder(zero, 0.0, zero, 0.0, 0.0, 0)


def joined(block: FirstOrder, seen: FirstOrder) -> FirstOrder:
    """The sums of the block and of what came after it; nothing of the caller's is kept."""
    return FirstOrder(
        frozen(block.loss_gradient + seen.loss_gradient),
        block.violation + seen.violation,
        frozen(block.constraint_gradient + seen.constraint_gradient),
        max(block.loss_slope, seen.loss_slope),
        max(block.constraint_slope, seen.constraint_slope),
        block.rounds + seen.rounds,
    )
