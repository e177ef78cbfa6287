"""Batches of functions as names and fields, for states: no pickle, and the same functions back.

Parts of a sum, a maximum or a chain are pairs of a name and fields themselves.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from tidewolf.core.batch import Batch
from tidewolf.functions.chain import Chain, leaves
from tidewolf.functions.combined import Combined

_OF_PARTS = (Chain, Combined)


def can_be_saved(batch: Batch) -> bool:
    """Whether it consists of built-in kinds made of arrays alone."""
    return all(
        type(leaf).__name__ != "Custom" and _kinds().get(type(leaf).__name__) is type(leaf)
        for leaf in leaves(batch)
    )


def saved_name(batch: Batch) -> str:
    """What files call its kind."""
    return type(batch).written_as().__name__


def saved_fields(batch: Batch) -> tuple[Any, ...]:
    """Its fields in their order."""
    if isinstance(batch, _OF_PARTS):
        pairs = tuple((saved_name(part), saved_fields(part)) for part in batch.parts)
        return tuple({**batch.fields(), "parts": pairs}.values())
    return tuple(batch.fields().values())


def restored(name: str, saved: tuple[Any, ...]) -> Batch:
    """The batch again, checked as one that is made anew; a field that is younger than the file has
    its default. A ValueError says what is wrong.
    """
    kind = _kinds().get(name)
    if kind is None or name == "Custom":
        raise ValueError(f"a {name} is none of the functions that are saved")
    names = [field.name for field in fields(kind)]
    named = dict(zip(names[: len(saved)], saved, strict=True))
    if issubclass(kind, _OF_PARTS):
        named["parts"] = tuple(restored(*pair) for pair in named["parts"])
    batch: Batch = kind(**named)
    return batch


@cache
def _kinds() -> dict[str, Any]:
    from tidewolf import functions

    return {kind.__name__: kind for kind in functions.every()}
