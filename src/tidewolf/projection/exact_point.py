"""Exact projection where it is cheap: x = y' = the member nearest to y.

I and III hold because it is the projection on K itself, II with distance 0; no oracle is asked.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.conforming import allowed_excess
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.core.vertices import require_saved_numbers
from tidewolf.projection.active import Active, Remembered, factors_in
from tidewolf.projection.one_shot import as_member
from tidewolf.sets.base import Projectable


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

    def beside(self, other: ExactPoint) -> ExactPoint:
        return self

    def parts(self) -> dict[str, Any]:
        return {"x": self.x}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> ExactPoint:
        require_saved_numbers(parts["x"])
        return cls(parts["x"])

    def require_of(self, K: HasLMO) -> None:
        if tuple(self.x.shape) != K.shape or not K.excess(self.x) <= allowed_excess(K, K.center):
            raise ValueError("its point is no member of the set")
