"""A block of rounds played at one point, from the feedback on its parts."""

from __future__ import annotations

from tidewolf.core.arrays import Array, frozen, namespace
from tidewolf.core.feedback import FirstOrder


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
