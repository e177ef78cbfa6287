"""What a learner may know of its set: a linear minimiser and a little geometry.

answer(d).vertex  =  argmin_{v in K} <d, v>,   suboptimal by at most `error`
"""

from typing import NamedTuple, Protocol, runtime_checkable

from tidewolf.core.arguments import shown
from tidewolf.core.errors import WrongType
from tidewolf.core.types import Array, Shape
from tidewolf.core.vertices import Vertex


class Answer(NamedTuple):
    """An oracle's answer to a direction."""

    # <d, vertex> is at most this far above the minimum (0: exact).
    vertex: Vertex
    error: float = 0.0
    # What the next call at a nearby direction may start from; it belongs to the caller's state.
    warm: Array | None = None


@runtime_checkable
class HasLMO(Protocol):
    """A convex compact set, touched only through linear minimisation.

    Sizes are upper bounds; `center` is a member.
    """

    @property
    def shape(self) -> Shape: ...
    @property
    def dimension(self) -> int: ...
    @property
    def center(self) -> Array: ...
    @property
    def radius(self) -> float: ...
    @property
    def diameter(self) -> float: ...

    def answer(self, direction: Array, warm: Array | None = None) -> Answer: ...
    def atom(self, point: Array) -> Vertex: ...
    def tangent(self, direction: Array) -> Array: ...
    def infeasibility(self, x: Array) -> float: ...


def as_set(K: object, what: str) -> HasLMO:
    if isinstance(K, type) or not isinstance(K, HasLMO):
        raise WrongType(f"{what} needs a set such as sets.Simplex(3), a ConvexSet, not {shown(K)}.")
    return K
