"""How far a decision moves: half the sum of the changes of all entries, for flows and shares what
has to be rerouted; and a cap on it.

    x  <-  last + min(1, cap/dist) (x - last),        dist = |x - last|_1/2

is a member of K where both are. What is then played is not the learner's own point, which is
accounted for as every other override is (methods/late.py).
"""

from __future__ import annotations

from tidewolf.core.arrays import frozen, namespace
from tidewolf.core.types import Array

HELD_BACK = (
    "Guarantees are for decisions that move as far as they will: with max_move bounds are measured."
)


def distance_moved(x: Array, last: Array) -> float:
    """Half the L1 change from one decision to the next."""
    xp = namespace(x)
    return 0.5 * float(xp.sum(xp.abs(x - last)))


def capped(x: Array, last: Array, most: float | None) -> Array:
    """The point on the way from `last` to x that is no farther than `most`; x itself where that
    is near enough.
    """
    if most is None:
        return x
    far = distance_moved(x, last)
    return x if far <= most else frozen(last + (most / far) * (x - last))
