"""The subgradients of a user's own functions, tested in the first updates of a run.

In each of them the first round's, at the point that was played, against members that the run has
met anyway: the set's center, the decision before, the last vertices of the oracle; where all are
the point itself, a point beside the center, within the set's inner radius. It costs at most
some dozen looks at the function of an update, and no call of the oracle. Built-in functions, and
learners that never ask for gradients, are left alone.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from tidewolf.core.arrays import norm, ones
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.feedback import Bandit
from tidewolf.core.types import Array
from tidewolf.evaluation.membership import active_set
from tidewolf.functions.support import (
    FIRST,
    Member,
    members_of,
    own_functions,
    require_subgradients,
)
from tidewolf.loop import Played
from tidewolf.methods.base import Learner

_VERTICES = 2
"""How many vertices are looked at, the last ones."""


@final
class GradientCheck:
    """Looks at the first updates of a run that begins with the stream's first round."""

    def __init__(self, learner: Learner[Any], stream: Stream) -> None:
        self.learner, self.stream, self.left = learner, stream, 0
        self._before: Array | None = None
        if learner.needs is not Bandit and len(stream):
            batches = (stream.losses, stream.constraints)
            self.left = FIRST if any(map(own_functions, batches)) else 0

    def see(self, t: int, played: Played) -> None:
        """The update whose first round is round t."""
        if not self.left:
            return
        self.left -= 1
        center, one = self.learner.hard_set.center, slice(t, t + 1)
        others = members_of(
            center, (self._before, "the decision before"), *self._vertices(played, center)
        )
        x = Member(played.x, "the point that was played")
        alone = not any(bool((other.point != x.point).any()) for other in others)
        for kind, batch in (("loss", self.stream.losses), ("constraint", self.stream.constraints)):
            f = batch.view(one)
            beside = self._beside(f, x.point) if alone and own_functions(f) else ()
            require_subgradients(kind, f, t, x, (*others, *beside))
        self._before = played.x

    def _beside(self, f: Batch, center: Array) -> tuple[Member, ...]:
        """A member beside the center, down the slope that the function says it has."""
        K = self.learner.hard_set
        way = K.tangent(f.subgradient(center, ones(1, center)))
        room, length = getattr(K, "inner_radius", None), norm(way)
        if not room or not 0.0 < length < np.inf:
            return ()
        return (Member(center - 0.5 * room / length * way, "a point beside the center"),)

    def _vertices(self, played: Played, center: Array) -> list[tuple[Array, str]]:
        active = active_set(played.state)
        if active is None:
            return []
        vertices = active.atoms.vertices[: len(active.weights)][-_VERTICES:]
        return [(vertex.dense(center), "a vertex of the set") for vertex in vertices]
