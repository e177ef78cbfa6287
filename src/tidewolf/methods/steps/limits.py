"""The functions of an open block, kept until the block is whole, and saved as what they are: kinds
and arrays.

They are copied when they come, so that a caller that fills the same array every round does not
change what was seen.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

from tidewolf.core.arrays import frozen
from tidewolf.core.batch import Batch
from tidewolf.core.checkpoint import Stored
from tidewolf.core.errors import NotSupported
from tidewolf.core.types import Array
from tidewolf.functions.combined import (
    Chain,
    can_be_saved,
    chained,
    mapped,
    restored,
    saved_fields,
    saved_name,
)


@final
class Limits(Stored):
    """Batches of functions in the order of their rounds. Never changed: `and_then` makes
    another.
    """

    tag: ClassVar = "limits"
    __slots__ = ("pieces",)

    def __init__(self, pieces: tuple[Batch, ...] = ()) -> None:
        self.pieces = pieces

    def and_then(self, batch: Batch) -> Limits:
        """With a copy of these rounds after those it has."""
        return Limits((*self.pieces, mapped(batch, _own)))

    def with_last(self, batch: Batch) -> Limits:
        """With these rounds themselves, for as long as the caller's arrays stay as they are."""
        return Limits((*self.pieces, batch))

    def whole(self) -> Batch:
        """All rounds as one batch."""
        return chained(self.pieces)

    def parts(self) -> dict[str, Any]:
        if not self.pieces:
            return {"kinds": (), "arrays": ()}
        whole = self.whole()
        pieces = whole.parts if isinstance(whole, Chain) else (whole,)
        for piece in pieces:
            _require_savable(piece)
        return {
            "kinds": tuple(map(saved_name, pieces)),
            "arrays": tuple(map(saved_fields, pieces)),
        }

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Limits:
        return cls(tuple(map(restored, parts["kinds"], parts["arrays"])))

    def require_of(self, K: Any) -> None:
        for piece in self.pieces:
            if piece.shape != K.shape:
                raise ValueError(
                    f"functions of points of shape {piece.shape} stand where those have shape "
                    f"{K.shape}"
                )


def _own(array: Array) -> Array:
    return frozen(array + 0.0)


def _require_savable(batch: Batch) -> None:
    if not can_be_saved(batch):
        raise NotSupported(
            f"A block that is still open holds {type(batch).__name__} constraints, which cannot be "
            "saved: only the functions of tidewolf.functions that are made of arrays can. Save at "
            "the end of a block, or use one of those."
        )
