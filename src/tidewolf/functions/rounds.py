"""Rounds one at a time, in whatever form a feed has them, as streams.

    loss                            a batch, or an array: costs, one for each entry of a point, or
                                    by name (core/frames.py)
    (loss, constraint)              constraint: a batch, a list of several, an array of capacities
    FullInformation, Stream         as they are
    {"costs": .., "capacities": .., "time": ..}
                                    by name: loss or costs, constraint or capacities, and what
                                    `Stream` has of a round

A batch may have several rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tidewolf.core import batch, errors, frames
from tidewolf.core.arguments import shown
from tidewolf.core.arrays import as_numbers, as_point, is_array, like
from tidewolf.core.types import Array
from tidewolf.functions.linear import Capacity, Linear

SUCH = "(loss, constraint), arrays (costs, capacities), or {'costs': .., 'capacities': ..}"
_LOSS, _LIMIT = ("costs", "loss"), ("capacities", "constraint")
_WITH = ("time", "context", "advice", "unavailable", "seen", "played")


# The center of a set and the names of its entries, as numbers of a round are read for it.
Points: TypeAlias = tuple[Array, Sequence[str] | None]


def as_round(item: Any, t: int, center: Array, names: Sequence[str] | None = None) -> batch.Stream:
    points = (center, names)
    if isinstance(item, batch.Stream):
        found = item
    elif isinstance(item, Mapping):
        found = _named(item, t, points)
    elif isinstance(item, batch.Batch) or is_array(item) or frames.is_table(item):
        found = _stream(item, None, t, points)
    elif isinstance(item, tuple | list) and len(item) == 2:
        found = _stream(item[0], item[1], t, points)
    else:
        raise errors.WrongType(f"Round {t} of those to be played is {SUCH}, not {shown(item)}.")
    if found.shape != tuple(center.shape):
        due = f"points of shape {tuple(center.shape)}, as the set has"
        raise errors.WrongShape(f"Expected functions of {due}, in round {t}, not {found.shape}.")
    return found


def _stream(loss: Any, limit: Any, t: int, points: Points, **more: Any) -> batch.Stream:
    if not isinstance(loss, batch.Batch):
        loss = Linear.one(_point(loss, f"The array of costs of round {t}", points))
    several = isinstance(limit, list | tuple) and any(isinstance(one, batch.Batch) for one in limit)
    if not several and not isinstance(limit, batch.Batch | None):
        limit = Capacity.one(_point(limit, f"The array of capacities of round {t}", points))
    return batch.Stream(loss, limit, **more)


def _point(x: Any, what: str, points: Points) -> Array:
    if callable(x):
        cure = "functions.from_torch, from_jax and Custom make a batch of a callable"
        raise errors.WrongType(f"{what} must be numbers, not {shown(x)}; {cure}.")
    return like(as_point(_row(x, what, points), tuple(points[0].shape), what), points[0])


def _row(x: Any, what: str, points: Points, *, gaps: bool = False) -> Any:
    return frames.in_order(x, points[1], what, tuple(points[0].shape), gaps=gaps)


def _named(item: Mapping[Any, Any], t: int, points: Points) -> batch.Stream:
    unknown = [key for key in item if key not in (*_LOSS, *_LIMIT, *_WITH)]
    losses = [item[key] for key in _LOSS if item.get(key) is not None]
    limits = [item[key] for key in _LIMIT if item.get(key) is not None]
    if unknown or len(losses) != 1 or len(limits) > 1:
        loss, limit, others = "costs or loss", "capacities or constraint", ", ".join(_WITH)
        words = f"Expected {loss}, and perhaps {limit}, {others} in round {t}"
        raise errors.InvalidInput(f"{words}, not {shown(list(item))}.")
    more = {key: _one(key, item[key], t, points) for key in _WITH if item.get(key) is not None}
    return _stream(losses[0], limits[0] if limits else None, t, points, **more)


def _one(key: str, value: Any, t: int, points: Points) -> Any:
    if key == "advice" and isinstance(value, Mapping):
        what = f"Advice of round {t}"
        rows = {name: _row(point, what, points, gaps=True) for name, point in value.items()}
        return {name: as_numbers(row, what)[None, ...] for name, row in rows.items()}
    if key == "played":
        what = f"What was played in round {t}"
        return as_numbers(_row(value, what, points), what)[None, ...]
    return value[None] if key == "unavailable" and isinstance(value, np.ndarray) else [value]
