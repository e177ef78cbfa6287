"""The clock of a learner: blocks of rounds at one point, epochs of blocks that end at a horizon.

    feedback on some rounds -> sums of the open block -> at its end `finish_block`
        -> at the horizon `restart`, with twice as many rounds

`Clocked` owns `t`, the open block and the restarts; a learner writes `step`, which is what its
formulas make of a whole block. A last, shorter block is cut at the horizon. Learners that work at
any time have no stretches and never restart. Which class a learner takes says what it sees and
when it moves:

    EveryRound      first-order feedback, a step every round
    BlockLearner    first-order feedback, a step every `block_length` rounds
    Restarting      beside one of these: it needs a horizon, and keeps a `Epoch` in its state

`methods/projected.py` adds projected points and the bank of oracle calls, `methods/exploring.py`
values alone.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from tidewolf.core.arrays import frozen, namespace, norm
from tidewolf.core.feedback import FirstOrder, Limits, limits_of, require_first_order
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Learner, Progress
from tidewolf.methods.capabilities import Diagnosed
from tidewolf.methods.late import TakesLate
from tidewolf.methods.steps.saddle import HOPELESS
from tidewolf.methods.steps.slopes import Given, Slopes, tangent_gradients, tangent_part

FIRST_HORIZON = 256
"""What an unknown horizon starts from before it doubles, in learners that restart."""


class Epoch(NamedTuple):
    """The rounds since the last restart, and what those before it may have cost."""

    began: int
    """rounds seen before it"""
    horizon: int
    """rounds that it has"""
    regret_of_past_epochs: float = 0.0
    """bounds, summed; infinite where one has none"""
    violation_of_past_epochs: float = 0.0

    @property
    def end(self) -> int:
        """The round after which it ends."""
        return self.began + self.horizon

    def following(self, regret: float, violation: float) -> Epoch:
        """The next one, twice as long, given the bounds of this one."""
        return Epoch(self.end, 2 * self.horizon, *self._with(regret, violation))

    def bound(self, regret: float, violation: float) -> Bound:
        """The bound of all rounds, given the bounds of this stretch."""
        regret, violation = self._with(regret, violation)
        if violation < math.inf:
            return Bound(regret if regret < math.inf else None, violation)
        return Bound(regret if regret < math.inf else None, None, HOPELESS)

    def _with(self, regret: float, violation: float) -> tuple[float, float]:
        return self.regret_of_past_epochs + regret, self.violation_of_past_epochs + violation


class HasEpoch(Progress, Protocol):
    """A state with an epoch."""

    @property
    def epoch(self) -> Epoch: ...

    def _replace(self, *args: Any, **fields: Any) -> Any: ...


ClockState = TypeVar("ClockState", bound=Any)
EpochState = TypeVar("EpochState", bound=HasEpoch)


class Clocked(Diagnosed, Learner[ClockState]):
    """Abstract: learners whose point changes at the end of a block of rounds only."""

    loss_lipschitz: float | None
    constraint_lipschitz: float | None

    @property
    def given_slopes(self) -> Given:
        """The slopes that were given; what is above them is refused."""
        return Given(self.loss_lipschitz, self.constraint_lipschitz)

    @abstractmethod
    def step(self, state: ClockState, block: Any) -> ClockState:
        """The state after the formulas of a whole block; its `t` is already past the block."""

    def finish_block(self, state: ClockState, block: Any) -> ClockState:
        """The state that the next block starts from."""
        return self.step(state, block)

    def block_length(self, state: ClockState) -> int:
        """Rounds of a whole block in this stretch."""
        return 1

    def rounds_open(self, state: ClockState) -> int:
        """Rounds of the open block seen so far."""
        return 0

    def epoch_end(self, state: ClockState) -> int | None:
        """The round this stretch ends after; None where nothing ever restarts."""
        return None

    def restart(self, state: ClockState) -> ClockState:
        """The same point with a clean slate and twice the horizon, at the end of a stretch."""
        return state

    def rounds_left(self, state: ClockState) -> int:
        state = self.in_epoch(state)
        left, end = self.block_length(state) - self.rounds_open(state), self.epoch_end(state)
        return left if end is None else min(left, end - state.t)

    def in_epoch(self, state: ClockState) -> ClockState:
        """The state, restarted where its stretch is over."""
        return self.restart(state) if state.t == self.epoch_end(state) else state


class Restarting(Clocked[EpochState]):
    """Abstract: learners that are made for a horizon, and restart with twice as much behind it."""

    horizon: int | None

    @abstractmethod
    def renew(self, state: EpochState) -> EpochState:
        """A clean slate for the stretch that the state has now; what stays known stays."""

    def epoch_bound(self, state: EpochState) -> tuple[float, float]:
        """Regret and violation since the last restart are at most this, infinite where unknown;
        zeros where bounds do not start over.
        """
        return 0.0, 0.0

    def first_epoch(self) -> Epoch:
        """The stretch of the first round."""
        return Epoch(0, self.horizon or FIRST_HORIZON)

    def epoch_end(self, state: EpochState) -> int:
        return state.epoch.end

    def restart(self, state: EpochState) -> EpochState:
        following = state.epoch.following(*self.epoch_bound(state))
        return self.renew(state._replace(epoch=following))

    def notes(self, state: EpochState) -> tuple[str, ...]:
        """That the horizon was passed, if it was."""
        now = state.epoch
        if self.horizon is None or now.horizon == self.horizon:
            return ()
        return (
            f"The horizon of {self.horizon} rounds was passed: after round {now.began} the learner "
            f"restarted with {now.horizon}.",
        )


class EveryRound(TakesLate[ClockState], Clocked[ClockState]):
    """Abstract: first-order learners that step every round."""

    needs: ClassVar = FirstOrder

    def taken(self, state: ClockState, feedback: FirstOrder) -> ClockState:
        state = self.in_epoch(state)
        require_first_order(feedback, self.K.shape, 1)
        return self.finish_block(state._replace(t=state.t + 1), feedback)


class BlockLearner(TakesLate[ClockState], Clocked[ClockState]):
    """Abstract: first-order learners that step at the end of a block, from its sums: `open` of
    their states.
    """

    needs: ClassVar = FirstOrder

    @abstractmethod
    def known_slopes(self, state: ClockState) -> Slopes:
        """The largest slopes before the open block, given or met."""

    def rounds_open(self, state: ClockState) -> int:
        return int(state.open.rounds)

    def taken(self, state: ClockState, feedback: FirstOrder) -> ClockState:
        state = self.in_epoch(state)
        left = self.rounds_left(state)
        require_first_order(feedback, self.K.shape, left)
        t = state.t + feedback.rounds
        if feedback.rounds == left:
            block = add_sums(state.open, feedback) if state.open.rounds else feedback
            return self.finish_block(state._replace(t=t, open=self.no_sums), block)
        # refused at once, while the block is open, where its end would refuse it
        known = self.known_slopes(state).and_of(state.open)
        tangent_gradients(self.K, feedback, self.given_slopes, known)
        for each in [] if feedback.limits is None else feedback.limits.gradients:
            most = self.given_slopes.constraint
            tangent_part(self.K, "constraint", each, feedback.rounds, most, norm(each))
        waiting: ClockState = state._replace(t=t, open=add_sums(state.open, feedback))
        return waiting

    def with_open_block(self, state: ClockState) -> ClockState:
        """The state after the formulas of its open block, if there is one: what holds for a block
        holds for the part of it that was played.
        """
        return self.step(state, state.open) if state.open.rounds else state

    def slopes(self, state: ClockState) -> Slopes:
        known, block = self.known_slopes(state), state.open
        if block.rounds == 0:
            return known
        return tangent_gradients(self.K, block, Given(None, None), known).slopes

    @cached_property
    def no_sums(self) -> FirstOrder:
        """The sums of a block that has seen no round yet."""
        return empty_sums(self.K.center)


def empty_sums(center: Array) -> FirstOrder:
    """Sums over no round."""
    zero = frozen(namespace(center).zeros_like(center))
    return FirstOrder(zero, 0.0, zero, 0.0, 0.0, 0)


def add_sums(block: FirstOrder, feedback: FirstOrder) -> FirstOrder:
    """The sums of the block and of what came after it; nothing of the caller's is kept."""
    return FirstOrder(
        frozen(block.loss_gradient + feedback.loss_gradient),
        block.violation + feedback.violation,
        frozen(block.constraint_gradient + feedback.constraint_gradient),
        max(block.loss_slope, feedback.loss_slope),
        max(block.constraint_slope, feedback.constraint_slope),
        block.rounds + feedback.rounds,
        block.loss_offset + feedback.loss_offset,
        block.constraint_offset + feedback.constraint_offset,
        _added_limits(block, feedback),
    )


def _added_limits(block: FirstOrder, feedback: FirstOrder) -> Limits | None:
    if block.limits is None and feedback.limits is None:
        return None
    limits = (
        limits_of(feedback) if block.rounds == 0 else limits_of(block).and_of(limits_of(feedback))
    )
    return limits._replace(gradients=frozen(limits.gradients + 0.0))
