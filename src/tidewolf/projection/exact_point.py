"""Exact projection where it is cheap: x = y' = the member nearest to y.

I and III hold because it is the projection on K itself, II with distance 0; no oracle is asked.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.conforming import allowed_infeasibility
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Bools
from tidewolf.core.vertices import Vertex, require_saved_numbers
from tidewolf.projection.active import Active, Remembered, emptied, factors_in
from tidewolf.projection.one_shot import as_member
from tidewolf.sets.base import Projectable, membership_tolerance


@final
class ExactPoint(Active):
    """A member of a set whose exact projection is cheap."""

    tag: ClassVar = "exact point"
    __slots__ = ("x",)

    def __init__(self, x: Array) -> None:
        self.x = frozen(x)

    @classmethod
    def start(cls, K: HasLMO, x0: Array | None = None) -> ExactPoint:
        """The center, or another member."""
        return cls(K.center if x0 is None else as_member(K, x0))

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactPoint, (self.x,)

    def __repr__(self) -> str:
        return "ExactPoint()"

    def nearest(
        self, K: HasLMO, y: Array, tol: float, budget: float, shared: bool = False
    ) -> Remembered[ExactPoint]:
        assert isinstance(K, Projectable)
        x = frozen(K.project(y))
        return Remembered(x, x, 0, 0.0, ExactPoint(x), np.zeros(len(factors_in(K).starts)))

    def avoiding(self, K: HasLMO, out: Bools, vertex: Vertex | None) -> Array | None:
        """The member nearest to x that is 0 there: pushed far below 0, entries end at 0, or where
        they may be negative at a bound from which they can be moved to 0.
        """
        assert isinstance(K, Projectable)
        if vertex is not None:
            return vertex.dense(self.x)
        far = 1e3 * (K.radius + float(np.abs(self.x).max()))
        pushed = emptied(self.x, out) - far * out.reshape(self.x.shape)
        x = emptied(K.project(pushed), out)
        return x if K.infeasibility(x) <= membership_tolerance(x, K.radius) else None

    def also(self, K: HasLMO, vertex: Vertex) -> ExactPoint:
        return self

    def parts(self) -> dict[str, Any]:
        return {"x": self.x}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> ExactPoint:
        require_saved_numbers(parts["x"])
        return cls(parts["x"])

    def require_of(self, K: HasLMO) -> None:
        if tuple(self.x.shape) != K.shape or not K.infeasibility(self.x) <= allowed_infeasibility(
            K, K.center
        ):
            raise ValueError("its point is no member of the set")
