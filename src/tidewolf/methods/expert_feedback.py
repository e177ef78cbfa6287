"""The feedback for the experts of an ensemble: one loss each for the mixer, and one gradient for
each group of descents.

By gradients every expert gets the surrogate's at the point x that was played, m the members' mix,

    a_i = <s, z_i - x>,     price = <s, x - m>,     s = V grad f(x) + w grad g^+(x) within aff(K);

by values, where the functions are seen, with L(z) = V f(z) + w g^+(z),

    a_i = L(z_i) - L(x),    price = L(x) - L(m),    s_i = the gradient of L at the group's own z_i.

Where limits have weights of their own, w g^+ is sum_i w_i g_i^+ throughout.

The mixer gets a_i + price, because it does not choose what is played if that is not the mix. Rounds
that arrive together are weighed together, and their numbers add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import inner
from tidewolf.core.feedback import FirstOrder, FullInformation, first_order
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats
from tidewolf.methods.steps.group import StepGradient
from tidewolf.methods.steps.lyapunov import Surrogate
from tidewolf.methods.steps.slopes import tangent_part


class PlayedRound(NamedTuple):
    """A round, or several that shared a point, as it is observed."""

    points: tuple[Array | None, ...]
    """z_i of every member, those of the groups first; None if it was absent"""
    mix: Array
    x: Array
    """what was played"""
    block: FirstOrder
    """at x"""
    functions: FullInformation | None


class ExpertFeedback(NamedTuple):
    """Rounds as members see them."""

    losses: Floats
    """a_i, 0 for those absent"""
    price: float
    """of playing x in place of the mix"""
    mixed: Floats
    """what the mixer gets: a_i + price, 0 for those absent"""
    grads: tuple[StepGradient, ...]
    """one a group of descents"""
    by_values: bool

    def and_of(self, other: ExpertFeedback) -> ExpertFeedback:
        """Both together."""
        grads = zip(self.grads, other.grads, strict=True)
        return ExpertFeedback(
            self.losses + other.losses,
            self.price + other.price,
            self.mixed + other.mixed,
            tuple(_both(a, b) for a, b in grads),
            self.by_values,
        )


def _both(a: StepGradient, b: StepGradient) -> StepGradient:
    """Two gradients as one, for who stands where the first was met."""
    apart, g = b.x - a.x, a.g + b.g
    if b.penalty_gradient is None:
        P, value = a.penalty_gradient, a.penalty_value
    else:
        P = (
            b.penalty_gradient
            if a.penalty_gradient is None
            else a.penalty_gradient + b.penalty_gradient
        )
        value = a.penalty_value + b.penalty_value - inner(b.penalty_gradient, apart)
    return StepGradient(g, inner(g, g), a.x, P, value, a.pending)


def by_gradients(
    K: HasLMO, observed: Sequence[PlayedRound], groups: int, weighed: Surrogate, pending: int = 0
) -> tuple[ExpertFeedback, ...]:
    """The surrogate's gradient at each played point, for everybody; one for each round."""
    if len(observed) == 1:
        grads = [StepGradient.of(weighed, observed[0].x, pending)]
    else:
        grads = [_step_gradient(K, one.x, one.block, weighed, pending) for one in observed]
    return tuple(_by_gradient(one, grad, groups) for one, grad in zip(observed, grads, strict=True))


def _by_gradient(one: PlayedRound, grad: StepGradient, groups: int) -> ExpertFeedback:
    losses = np.array([0.0 if z is None else inner(grad.g, z - one.x) for z in one.points])
    price = 0.0 if one.mix is one.x else inner(grad.g, one.x - one.mix)
    mixed = _of_available(one, losses, price)
    return ExpertFeedback(losses, price, mixed, (grad,) * groups, by_values=False)


def _of_available(one: PlayedRound, losses: Floats, price: float) -> Floats:
    if price == 0.0:
        return losses
    available = np.array([z is not None for z in one.points])
    return np.where(available, losses + price, 0.0)


def by_values(
    K: HasLMO, observed: Sequence[PlayedRound], groups: int, weighed: Surrogate, pending: int = 0
) -> tuple[ExpertFeedback, ...]:
    """Values of the surrogate at everybody's point, and its gradient at each group's own; one for
    each round.
    """
    return tuple(_by_values(K, one, groups, weighed, pending) for one in observed)


def _by_values(
    K: HasLMO, one: PlayedRound, groups: int, weighed: Surrogate, pending: int
) -> ExpertFeedback:
    V, w, functions = weighed.loss_weight, weighed.penalty_weight, one.functions
    assert functions is not None

    def value(z: Array) -> float:
        breach = weighed.breach(functions.constraints, z)
        return V * float(functions.losses.values(z).sum()) + w * breach

    played = value(one.x)
    losses = np.array([0.0 if z is None else value(z) - played for z in one.points])
    price = 0.0 if one.mix is one.x else played - value(one.mix)
    grads = []
    for z in one.points[:groups]:
        if z is None:  # the context is unknown: nothing of it moves
            grads.append(StepGradient(weighed.g, weighed.norm2, one.x, None, 0.0))
            continue
        values, each = functions.constraints.values(z), weighed.shares is not None
        block = first_order(*functions, z, values, per_constraint=each)
        grads.append(_step_gradient(K, z, block, weighed, pending))
    mixed = _of_available(one, losses, price)
    return ExpertFeedback(losses, price, mixed, tuple(grads), by_values=True)


def _step_gradient(
    K: HasLMO, z: Array, block: FirstOrder, weighed: Surrogate, pending: int
) -> StepGradient:
    """The surrogate's gradient at z."""
    known, V, w = weighed.dual.slopes, weighed.loss_weight, weighed.penalty_weight
    met, n = known.and_of(block), block.rounds
    grad_f, _ = tangent_part(K, "loss", block.loss_gradient, n, None, met.loss)
    g, P, value = V * grad_f, None, 0.0
    if block.violation > 0.0 and w > 0.0:
        gradient = weighed.gradient_of(block)
        P = w * tangent_part(K, "constraint", gradient, n, None, met.constraint)[0]
        g, value = g + P, w * weighed.violation_of(block)
    return StepGradient(g, inner(g, g), z, P, value, pending)
