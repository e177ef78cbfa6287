"""The clock of a learner: blocks of rounds at one point, epochs of blocks that end at a horizon.

    feedback on some rounds -> sums of the open block -> at its end `finish_block`
        -> at the end of an epoch `renew`, for twice as many rounds

A learner writes `step`, which is what its formulas make of a whole block. A state with a field
`open` has the sums of the open block there, a state with a field `epoch` restarts at its end, where
the last, shorter block is cut. Learners that work at any time have no epochs.

    EveryRound        first-order feedback, a step every round
    BlockLearner      first-order feedback, a step every `block_length` rounds
    LyapunovLearner   a step every round, with Lyapunov weights (steps/lyapunov.py)

`methods/paper.py` adds projected points and the budget of oracle calls.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

from tidewolf.core import arrays, errors
from tidewolf.core.feedback import Arrival, FirstOrder, limits_of, played_at, require_first_order
from tidewolf.core.types import Array
from tidewolf.methods import capabilities, late, settings
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.steps.lyapunov import LyapunovWeights
from tidewolf.methods.steps.saddle import HOPELESS
from tidewolf.methods.steps.slopes import Given, Slopes, tangent_gradients

# What an unknown horizon starts from before it doubles, in learners that restart.
FIRST_HORIZON = 256


class Epoch(NamedTuple):
    """The rounds since the last restart, and what those before it may have cost."""

    began: int
    horizon: int
    regret_of_past_epochs: float = 0.0  # bounds, summed; infinite where one has none
    violation_of_past_epochs: float = 0.0

    @property
    def end(self) -> int:
        return self.began + self.horizon

    def following(self, regret: float, violation: float) -> "Epoch":
        """The next one, twice as long, given the bounds of this one."""
        past = self.regret_of_past_epochs + regret, self.violation_of_past_epochs + violation
        return Epoch(self.end, 2 * self.horizon, *past)

    def bound(self, regret: float, violation: float) -> Bound:
        *_, regret, violation = self.following(regret, violation)
        known = regret if regret < math.inf else None
        return Bound(known, violation) if violation < math.inf else Bound(known, None, HOPELESS)


S = TypeVar("S", bound=Any)


class Clocked(capabilities.Diagnosed, Learner[S]):
    """Abstract: learners whose point changes at the end of a block of rounds only."""

    # only of learners with epochs: the rounds of the first one; None: `FIRST_HORIZON`
    horizon: int | None
    loss_lipschitz: float | None
    constraint_lipschitz: float | None

    @property
    def given_slopes(self) -> Given:
        """The slopes that were given; what is above them is refused."""
        return Given(self.loss_lipschitz, self.constraint_lipschitz)

    @abstractmethod
    def step(self, state: S, block: Any) -> S:
        """The state after the formulas of a whole block; its `t` is already past the block."""

    def finish_block(self, state: S, block: Any) -> S:
        return self.step(state, block)

    def block_length(self, state: S) -> int:
        return 1

    def first_epoch(self) -> Epoch:
        return Epoch(0, self.horizon or FIRST_HORIZON)

    def renew(self, state: S) -> S:
        """A clean slate for the epoch that the state has now; what stays known stays."""
        return state

    def epoch_bound(self, state: S) -> tuple[float, float]:
        """Regret and violation since the last restart are at most this, infinite where unknown;
        zeros where bounds do not start over.
        """
        return 0.0, 0.0

    def in_epoch(self, state: S) -> S:
        if not is_over(state):
            return state
        return self.renew(state._replace(epoch=state.epoch.following(*self.epoch_bound(state))))

    def rounds_left(self, state: S) -> int:
        state = self.in_epoch(state)
        left, block = self.block_length(state), getattr(state, "open", None)
        if block is not None:
            left -= block.rounds
        epoch = epoch_of(state)
        return left if epoch is None else min(left, epoch.end - state.t)

    def notes(self, state: S) -> tuple[str, ...]:
        now = epoch_of(state)
        if now is None or self.horizon is None or now.horizon == self.horizon:
            return ()
        return (
            f"The horizon of {self.horizon} rounds was passed: after round {now.began} the learner "
            f"restarted with {now.horizon}.",
        )


def epoch_of(state: Any) -> Epoch | None:
    return getattr(state, "epoch", None)


def is_over(state: Any) -> bool:
    epoch = epoch_of(state)
    return epoch is not None and bool(state.t == epoch.end)


class EveryRound(late.KeepsPending[S], Clocked[S]):
    """Abstract base of first-order learners that step every round and play `state.x`; feedback may
    come late, and of other points than they decided: `pending` has a `Deferred` for each round.
    """

    needs: ClassVar = FirstOrder

    def act(self, state: S) -> Array:
        return state.x

    def taken(self, state: S, feedback: FirstOrder) -> S:
        """The state after feedback whose offsets are against the point that it stands at."""
        state = self.in_epoch(state)
        require_first_order(feedback, self.K.shape, 1)
        return self.finish_block(state._replace(t=state.t + 1), feedback)

    def stands_at(self, state: S) -> Array:
        """The point that its steps are taken from: the decision, unless something holds that
        back.
        """
        return self.act(state)

    def update(self, state: S, feedback: FirstOrder) -> S:
        self._require_none_pending(state)
        x, own = self.act(state), self.stands_at(state)
        if x is own:
            return self.taken(state, feedback)
        held = played_at(feedback, x, own)
        return self._priced(self.taken(state, held), held)

    def defer(self, state: S) -> S:
        x, own = self.act(state), self.stands_at(state)
        waiting = late.Deferred(late.next_round(state), x, None if own is x else own)
        after: S = state._replace(pending=(*state.pending, waiting))
        return after

    def on_feedback(self, state: S, arrivals: Sequence[Arrival]) -> S:
        # the next round is decided where the learner stands before the others move it
        newest = late.Deferred(late.next_round(state), self.act(state), self.stands_at(state))
        for arrival in late.in_order(arrivals):
            feedback = arrival.feedback
            if not isinstance(feedback, FirstOrder) or feedback.rounds != 1:
                raise errors.InvalidInput(
                    "Feedback that comes late, or of another point than was decided, is FirstOrder "
                    "feedback on one round."
                )
            decision, pending = late.without(state, arrival.round)
            decision, own = decision or newest, self.stands_at(state)
            played = decision.x if arrival.of_decision else arrival.played
            state = state._replace(pending=pending, overrides=state.overrides.and_of(arrival))
            state = self.taken(state, played_at(feedback, played, own))
            state = self._priced(state, played_at(feedback, played, decision.free))
        return state

    def _priced(self, state: S, apart: FirstOrder) -> S:
        """With the price of not having played its own point: the offsets against that."""
        price, limits = apart.loss_offset, apart.constraint_offset
        if limits != 0.0:
            price += (self.limit_price(state) or 0.0) * limits
        after: S = late.priced(state, price)
        return after


@dataclass(frozen=True, eq=False, repr=False)
class Cautious(Clocked[S]):
    K: settings.HardSetK
    horizon: settings.OptionalRounds = None
    caution: settings.Positive = settings.DEFAULT_CAUTION
    loss_lipschitz: settings.OptionalPositive = None
    constraint_lipschitz: settings.OptionalPositive = None

    def slopes(self, state: S) -> Slopes:
        return state.slopes  # type: ignore[no-any-return]


class LyapunovLearner(Cautious[S], EveryRound[S]):
    """Abstract: learners with Lyapunov weights, `dual` of their states."""

    def constants(self) -> tuple[float, float]:
        """c and p: the regret of its steps is about c D M T^p for gradients of at most M."""
        return 2.0, 0.5

    @cached_property
    def weights(self) -> LyapunovWeights:
        slopes = self.loss_lipschitz, self.constraint_lipschitz
        return LyapunovWeights(self.K, self.caution, self.horizon, *slopes, *self.constants())

    def weights_at(self, state: S) -> LyapunovWeights:
        epoch = epoch_of(state)
        return self.weights if epoch is None else replace(self.weights, horizon=epoch.horizon)

    def bound(self, record: Record) -> Bound:
        return self.weights.bound(record.final_state.dual)

    def limit_price(self, state: S) -> float:
        return self.weights_at(state).limit_price(state.dual)

    def slopes(self, state: S) -> Slopes:
        slopes: Slopes = state.dual.slopes
        return slopes


class BlockLearner(EveryRound[S]):
    """Abstract base of first-order learners that step at the end of a block, from its sums."""

    @abstractmethod
    def known_slopes(self, state: S) -> Slopes:
        """The largest slopes before the open block, given or met."""

    def taken(self, state: S, feedback: FirstOrder) -> S:
        state = self.in_epoch(state)
        left = self.rounds_left(state)
        require_first_order(feedback, self.K.shape, left)
        block = add_sums(state.open, feedback)
        if feedback.rounds == left:
            t = state.t + feedback.rounds
            return self.finish_block(state._replace(t=t, open=self.no_sums), block)
        # refused at once, while the block is open, where its end would refuse it
        known = self.known_slopes(state).and_of(state.open)
        tangent_gradients(self.K, feedback, self.given_slopes, known)
        waiting: S = state._replace(t=state.t + feedback.rounds, open=block)
        return waiting

    def with_open_block(self, state: S) -> S:
        """The state after the formulas of its open block, if there is one: what holds for a block
        holds for the part of it that was played.
        """
        return self.step(state, state.open) if state.open.rounds else state

    def slopes(self, state: S) -> Slopes:
        known, block = self.known_slopes(state), state.open
        if block.rounds == 0:
            return known
        return tangent_gradients(self.K, block, Given(None, None), known).slopes

    @cached_property
    def no_sums(self) -> FirstOrder:
        return empty_sums(self.K.center)


def empty_sums(center: Array) -> FirstOrder:
    zero = arrays.frozen(arrays.namespace(center).zeros_like(center))
    return FirstOrder(zero, 0.0, zero, 0.0, 0.0, 0)


def add_sums(block: FirstOrder, feedback: FirstOrder) -> FirstOrder:
    """The sums of the block and of what came after it; nothing of the caller's is kept."""
    limits = None
    if block.limits is not None or feedback.limits is not None:
        limits = limits_of(feedback)
        limits = limits_of(block).and_of(limits) if block.rounds else limits
        limits = limits._replace(gradients=arrays.frozen(limits.gradients + 0.0))
    return FirstOrder(
        arrays.frozen(block.loss_gradient + feedback.loss_gradient),
        block.violation + feedback.violation,
        arrays.frozen(block.constraint_gradient + feedback.constraint_gradient),
        max(block.loss_slope, feedback.loss_slope),
        max(block.constraint_slope, feedback.constraint_slope),
        block.rounds + feedback.rounds,
        block.loss_offset + feedback.loss_offset,
        block.constraint_offset + feedback.constraint_offset,
        limits,
    )
