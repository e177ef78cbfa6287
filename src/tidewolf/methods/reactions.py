"""What a round says to the members of an ensemble: a loss for the mixer each, and a gradient for
each group of descents.

By gradients everybody is told the surrogate's at the point x that was played,

    l_i = <s, z_i - x>,     s = V grad f(x) + w grad g^+(x) within aff(K);

by values, where the functions are seen, with L(z) = V f(z) + w g^+(z),

    l_i = L(z_i) - L(x),    s_i = the gradient of L at the group's own z_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import inner, to_numpy
from tidewolf.core.feedback import FullInformation, first_order
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats
from tidewolf.methods.steps.group import Push
from tidewolf.methods.steps.lyapunov import Surrogate
from tidewolf.methods.steps.slopes import tangent_part


class Reaction(NamedTuple):
    """A round as members see it."""

    losses: Floats
    """l_i, 0 for those absent"""
    pushes: tuple[Push, ...]
    """one a group of descents"""
    slopes: tuple[float, ...]
    """sum |grad f| at each group's own point"""


def by_gradients(
    points: Sequence[Array | None], groups: int, x: Array, weighed: Surrogate
) -> Reaction:
    """The surrogate's gradient at the played point, for everybody; the first points are those of
    the groups.
    """
    g = weighed.g
    losses = np.array([0.0 if z is None else inner(g, z - x) for z in points])
    push = Push(g, weighed.norm2, x, weighed.penalty_gradient, weighed.penalty_value)
    return Reaction(losses, (push,) * groups, (weighed.loss_slopes,) * groups)


def by_values(
    K: HasLMO,
    points: Sequence[Array | None],
    groups: int,
    x: Array,
    weighed: Surrogate,
    functions: FullInformation,
) -> Reaction:
    """Values of the surrogate at everybody's point, and its gradient at each group's own."""
    V, w = weighed.loss_weight, weighed.penalty_weight

    def value(z: Array) -> float:
        breach = np.maximum(to_numpy(functions.constraints.values(z)), 0.0)
        return V * float(functions.losses.values(z).sum()) + w * float(breach.sum())

    played = value(x)
    losses = np.array([0.0 if z is None else value(z) - played for z in points])
    pushes, slopes = [], []
    for z in points[:groups]:
        if z is None:  # the context is unknown: nothing of it moves
            pushes.append(Push(weighed.g, weighed.norm2, x, None, 0.0))
            slopes.append(weighed.loss_slopes)
            continue
        push, slope = _own_push(K, z, weighed, functions)
        pushes.append(push)
        slopes.append(slope)
    return Reaction(losses, tuple(pushes), tuple(slopes))


def _own_push(
    K: HasLMO, z: Array, weighed: Surrogate, functions: FullInformation
) -> tuple[Push, float]:
    """The surrogate's gradient at z, and the sum of the losses' slopes there."""
    known, V, w = weighed.ledger.slopes, weighed.loss_weight, weighed.penalty_weight
    block = first_order(*functions, z, functions.constraints.values(z))
    met, n = known.and_of(block), block.rounds
    grad_f, slope = tangent_part(K, "loss", block.loss_gradient, n, None, met.loss)
    g, P, value = V * grad_f, None, 0.0
    if block.violation > 0.0 and w > 0.0:
        gradient = block.constraint_gradient
        P = w * tangent_part(K, "constraint", gradient, n, None, met.constraint)[0]
        g, value = g + P, w * block.violation
    return Push(g, inner(g, g), z, P, value), slope * n
