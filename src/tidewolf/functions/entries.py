"""Some entries of a point each round: a table (rounds, most entries a round) of places in the
flattened point, -1 where there is none.

Int64s live on the host, as integers, whatever the library of the points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tidewolf.core.arguments import as_items, shown
from tidewolf.core.arrays import (
    as_array,
    as_count,
    flat,
    like,
    namespace,
    require_no_mask,
    to_numpy,
)
from tidewolf.core.errors import InvalidInput, WrongShape, WrongType
from tidewolf.core.types import Array, Int64s, NDArray, Shape


def as_sides(shape: Shape, what: str) -> Shape:
    """The shape of the points of a batch, checked."""
    if not isinstance(shape, tuple | list) or len(shape) == 0:
        raise WrongShape(
            f"The points of {what} have a shape such as (users, items); {shape!r} was given."
        )
    sides = tuple(as_count(side, f"A side of the points of {what}") for side in shape)
    return shape if shape == sides else sides


def as_numbers(numbers: object, what: str) -> Array:
    """A table (rounds, entries) of numbers."""
    table = as_array(numbers, what)
    if table.ndim != 2:
        raise WrongShape(
            f"{what} have shape (rounds, most entries a round), not {tuple(table.shape)}."
        )
    return table


def as_places(places: object, beside: Array, shape: Shape, what: str) -> Int64s:
    """A table of places, one for each number in the table `beside`; none comes twice in a round."""
    given = (
        places
        if type(places) is np.ndarray and places.dtype.kind == "i"
        else to_numpy(as_array(places, what))
    )
    if given.shape != tuple(beside.shape):
        raise WrongShape(
            f"{what} have shape {given.shape}; the numbers beside them have shape "
            f"{tuple(beside.shape)}."
        )
    if given.size and not np.abs(given).max() < 2**53:
        raise InvalidInput(
            f"{what} are whole numbers from 0 to {math.prod(shape) - 1}, or -1 where there is none."
        )
    whole: Int64s = given.astype(np.int64, copy=False)
    if (
        (whole != given).any()
        or whole.min(initial=0) < -1
        or whole.max(initial=-1) >= math.prod(shape)
    ):
        raise InvalidInput(
            f"{what} are whole numbers from 0 to {math.prod(shape) - 1}, or -1 where there is none."
        )
    in_order = np.sort(whole, axis=1)
    for t in np.flatnonzero(
        ((in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)).any(axis=1)
    )[:1]:
        raise InvalidInput(f"{what} name an entry twice in round {t}; an entry comes once a round.")
    return whole


def padded(rounds: Sequence[Sequence[Any]], shape: Shape, what: str, count: int) -> list[NDArray]:
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


def gathered(x: Array, places: Int64s) -> Array:
    """The entries of x at these places, any where there is none; in the library of x."""
    if type(x) is np.ndarray:
        return x.reshape(-1)[places]
    from array_api_compat import device

    xp = namespace(x)
    return xp.reshape(
        xp.take(flat(x), xp.asarray(np.maximum(places, 0).reshape(-1), device=device(x))),
        places.shape,
    )


def each_gathered(points: Array, places: Int64s) -> Array:
    """The entries at these places, each round's from a point of its own."""
    size = math.prod(points.shape[1:])
    return gathered(points, np.maximum(places, 0) + size * np.arange(len(places))[:, None])


def scattered(places: Int64s, numbers: Array, shape: Shape) -> Array:
    """Numbers, 0 where there is no place, added up at their places in a point."""
    total = np.bincount(
        np.maximum(places, 0).reshape(-1), to_numpy(numbers).reshape(-1), math.prod(shape)
    )
    return like(total.reshape(shape), numbers)


def each_scattered(places: Int64s, numbers: Array, shape: Shape) -> Array:
    """The same, each round in a point of its own."""
    size = math.prod(shape)
    return scattered(
        np.maximum(places, 0) + size * np.arange(len(places))[:, None],
        numbers,
        (len(places), *shape),
    )
