"""Some entries of a point each round: a table (rounds, most entries a round) of places in the
flattened point, -1 where there is none.

Places live on the host, as integers, whatever the library of the points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tidewolf.core.arguments import as_items, shown
from tidewolf.core.arrays import as_array, flat, like, namespace, require_no_mask, to_numpy
from tidewolf.core.errors import InvalidInput, WrongShape, WrongType
from tidewolf.core.settings import Check, as_shape
from tidewolf.core.types import Array, Int64s, NDArray, Shape
from tidewolf.functions.base import ArrayBatch, Uncopied


@dataclass(frozen=True)
class PointShape(Check):
    """The shape of a point, with any number of axes."""

    words: ClassVar[str] = "a list of whole numbers"

    def __call__(self, value: Any, what: str) -> Shape:
        if not isinstance(value, tuple | list):
            raise WrongShape(f"{what} is a shape such as (users, items), not {shown(value)}.")
        sides = as_shape(value, what)
        return value if value == sides else sides

    def read(self, value: Any) -> Shape | None:
        whole = isinstance(value, list) and all(type(side) is int for side in value)
        return tuple(value) if whole else None


@dataclass(frozen=True)
class EntryTable(Uncopied):
    """A table of numbers, (rounds, most entries a round)."""

    def __call__(self, value: Any, what: str) -> Array:
        table = as_array(value, what)
        if table.ndim != 2:
            raise WrongShape(
                f"{what} has shape (rounds, most entries a round), not {tuple(table.shape)}."
            )
        return table


@dataclass(frozen=True)
class Places(EntryTable):
    """A table of places in the flattened point: whole numbers, -1 where there is none."""

    def __call__(self, value: Any, what: str) -> Int64s:
        if type(value) is not np.ndarray or value.dtype.kind != "i":
            value = to_numpy(super().__call__(value, what))
        too_large = value.size and not np.abs(value).max() < 2**53
        if too_large or (value != np.round(value)).any() or value.min(initial=0) < -1:
            raise InvalidInput(f"{what} are whole numbers from 0, or -1 where there is none.")
        whole: Int64s = value.astype(np.int64, copy=False)
        return whole


class EntryBatch(ArrayBatch):
    """A batch that looks at some entries a round, `places`, of points of the shape `sides`."""

    places: Any
    sides: Any

    @property
    def shape(self) -> Shape:
        sides: Shape = self.sides
        return sides

    def _require_places(self, beside: str) -> None:
        """Require a place for each number of a table, within the point, and none twice a round."""
        what, numbers = f"places of {type(self).__name__}", getattr(self, beside)
        if self.places.shape != tuple(numbers.shape):
            raise WrongShape(
                f"{what} have shape {self.places.shape}; {beside} has shape "
                f"{tuple(numbers.shape)}.",
                setting="places",
            )
        if self.places.max(initial=-1) >= math.prod(self.sides):
            raise InvalidInput(
                f"{what} are whole numbers from 0 to {math.prod(self.sides) - 1}, or -1 where "
                "there is none.",
                setting="places",
            )
        in_order = np.sort(self.places, axis=1)
        twice = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
        for t in np.flatnonzero(twice.any(axis=1))[:1]:
            raise InvalidInput(
                f"{what} name an entry twice in round {t + 1}; an entry comes once a round.",
                setting="places",
            )


def pad_rounds(
    rounds: Sequence[Sequence[Any]], shape: Shape, what: str, count: int
) -> list[NDArray]:
    """Rounds (indices, numbers, ..), numbers `count` times, as a table of places and tables of
    numbers.

    The indices of a matrix are (rows, columns).
    """
    such = as_items(rounds, f"The rounds of {what}", "[(indices, numbers), ...]")
    listed = [_round(each, shape, what, count) for each in such]
    if not listed:
        raise InvalidInput(f"There is no round for {what}; give at least one.")
    counts = [len(places) for places, *_ in listed]
    tables = []
    for part, empty in zip(zip(*listed, strict=True), (-1, 0.0, 0.0), strict=False):
        table = np.full((len(listed), max(counts)), empty)
        for t, numbers in enumerate(part):
            require_no_mask(numbers, f"Round {t} of {what}")
            if np.shape(numbers) not in ((), (counts[t],)):
                raise WrongShape(
                    f"Round {t} of {what} has {counts[t]} entries and numbers of shape "
                    f"{np.shape(numbers)} for them."
                )
            table[t, : counts[t]] = numbers
        tables.append(table)
    return tables


def _round(given: Any, shape: Shape, what: str, count: int) -> tuple[Any, ...]:
    """The places and the numbers of one round."""
    parts = as_items(given, f"A round of {what}", "(indices, numbers)")
    if len(parts) != 1 + count:
        raise WrongShape(
            f"A round of {what} is its indices and {count} of numbers beside them, not "
            f"{shown(given)}."
        )
    numbers = (to_numpy(as_array(part, f"The numbers of a round of {what}")) for part in parts[1:])
    return (_places(parts[0], shape, what), *numbers)


def _places(indices: Iterable[Any], shape: Shape, what: str) -> Int64s:
    try:
        given = list(indices)
        require_no_mask(given, f"One of the indices of {what}")
        axes = [np.asarray(axis).reshape(-1) for axis in given]
        return np.asarray(
            np.ravel_multi_index(
                tuple(axis if axis.size else axis.astype(np.int64) for axis in axes), shape
            )
        )
    except WrongType:
        raise
    except (ValueError, TypeError):
        raise InvalidInput(
            f"The indices of {what} are those of an array of shape {shape}, one list of whole "
            f"numbers an axis; {shown(indices)} was given."
        ) from None


def gather_entries(x: Array, places: Int64s) -> Array:
    """The entries of x at these places, any where there is none; in the library of x."""
    if type(x) is np.ndarray:
        return x.reshape(-1)[places]
    from array_api_compat import device

    xp = namespace(x)
    return xp.reshape(
        xp.take(flat(x), xp.asarray(np.maximum(places, 0).reshape(-1), device=device(x))),
        places.shape,
    )


def gather_each_round(points: Array, places: Int64s) -> Array:
    """The entries at these places, each round's from a point of its own."""
    size = math.prod(points.shape[1:])
    return gather_entries(points, np.maximum(places, 0) + size * np.arange(len(places))[:, None])


def scatter_entries(places: Int64s, numbers: Array, shape: Shape) -> Array:
    """Numbers, 0 where there is no place, added up at their places in a point."""
    total = np.bincount(
        np.maximum(places, 0).reshape(-1), to_numpy(numbers).reshape(-1), math.prod(shape)
    )
    return like(total.reshape(shape), numbers)


def scatter_each_round(places: Int64s, numbers: Array, shape: Shape) -> Array:
    """The same, each round in a point of its own."""
    size = math.prod(shape)
    return scatter_entries(
        np.maximum(places, 0) + size * np.arange(len(places))[:, None],
        numbers,
        (len(places), *shape),
    )
