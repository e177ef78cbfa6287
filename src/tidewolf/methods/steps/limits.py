"""The functions of an open block, kept until the block is whole, and saved as what they are: kinds
and arrays.

They are copied when they come, so that a caller that fills the same array every round does not
change what was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, final

from tidewolf.core import checkpoint, errors
from tidewolf.core.arrays import frozen
from tidewolf.core.batch import Batch
from tidewolf.core.types import Array
from tidewolf.functions import combined


@final
class Limits(checkpoint.Stored):
    """Batches of functions in the order of their rounds. Never changed: `and_then` makes
    another.
    """

    tag: ClassVar = "limits"
    __slots__ = ("pieces",)

    def __init__(self, pieces: tuple[Batch, ...] = ()) -> None:
        self.pieces = pieces

    def and_then(self, batch: Batch) -> Limits:
        """With a copy of these rounds after those it has."""
        return Limits((*self.pieces, combined.mapped(batch, _own)))

    def with_last(self, batch: Batch) -> Limits:
        """With these rounds themselves, for as long as the caller's arrays stay as they are."""
        return Limits((*self.pieces, batch))

    def whole(self) -> Batch:
        return combined.chained(self.pieces)

    def parts(self) -> dict[str, Any]:
        return {"pieces": saved(self.pieces, "A block that is still open holds")}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Limits:
        return cls(loaded(parts["pieces"]))

    def require_of(self, K: Any) -> None:
        require_points_of(K, self.pieces)


def saved(batches: Sequence[Batch], where: str) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Kinds and arrays, neighbours of one kind together; refused if one has none."""
    if not batches:
        return ()
    whole = combined.chained(batches)
    pieces = whole.parts if isinstance(whole, combined.Chain) else (whole,)
    for piece in pieces:
        if not combined.can_be_saved(piece):
            raise errors.NotSupported(
                f"{where} {type(piece).__name__} functions, which cannot be saved: only the "
                "functions of tidewolf.functions that are made of arrays can. Use one of those, or "
                "save at the end of a block."
            )
    return tuple((combined.saved_name(piece), combined.saved_fields(piece)) for piece in pieces)


def loaded(parts: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[Batch, ...]:
    return tuple(combined.restored(name, arrays) for name, arrays in parts)


def require_points_of(K: Any, batches: Iterable[Batch]) -> None:
    """Refuse, by a ValueError, functions of points of another shape."""
    for batch in batches:
        if batch.shape != K.shape:
            raise ValueError(
                f"functions of points of shape {batch.shape} stand where those have shape {K.shape}"
            )


def _own(array: Array) -> Array:
    return frozen(array + 0.0)
