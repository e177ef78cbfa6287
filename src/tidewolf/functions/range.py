"""Entries within bounds:  g_t(x) = max over the e asked for in round t of max(x_e - high_te,
low_te - x_e).

A subgradient is e of the farthest entry above its bound, or minus that of the farthest below; among
several the first, and above before below. As a constraint over many rounds only the smallest high
and the largest low of each entry matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from tidewolf.core.arrays import like, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.functions.base import Halfspaces, PiecewiseLinear, beside, stacked
from tidewolf.functions.entries import (
    as_numbers,
    as_places,
    as_sides,
    each_gathered,
    each_scattered,
    gathered,
    padded,
    scattered,
)

_WHAT = "a Range batch"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Range(Batch, PiecewiseLinear):
    """The largest excess over bounds; low, high and places have shape (rounds, most entries a
    round), points have the shape `sides`.

    A place is one of the flattened point, or -1 where a round has fewer entries than others. `of`
    makes them from indices.
    """

    low: Array
    high: Array
    places: Array
    sides: Shape

    def __post_init__(self) -> None:
        sides, low = (
            as_sides(self.sides, _WHAT),
            as_numbers(self.low, f"The lower bounds of {_WHAT}"),
        )
        high = beside(self.high, low, tuple(low.shape), f"The upper bounds of {_WHAT}")
        places = as_places(self.places, low, sides, f"The places of {_WHAT}")
        for t in np.flatnonzero((places < 0).all(axis=1))[:1]:
            raise InvalidInput(f"Round {t} of {_WHAT} has no entry; it needs at least one.")
        for t, j in np.argwhere(to_numpy(low > high) & (places >= 0))[:1]:
            raise InvalidInput(
                f"The bounds of entry {j} of round {t} of {_WHAT} leave nothing: "
                f"{float(low[t, j]):g} > {float(high[t, j]):g}."
            )
        for name, part in (("low", low), ("high", high), ("places", places), ("sides", sides)):
            object.__setattr__(self, name, part)

    @classmethod
    def of(cls, rounds: Sequence[tuple[Any, Any, Any]], shape: Shape) -> Range:
        """From what is asked each round, (indices, low, high), the bounds one for each or one for
        all; of a matrix: (rows, columns).
        """
        sides = as_sides(shape, _WHAT)
        places, low, high = padded(rounds, sides, _WHAT, 2)
        return cls(low, high, places, sides)

    @classmethod
    def one(cls, indices: Any, low: Any, high: Any, shape: Shape) -> Range:
        """A single round."""
        return cls.of([(indices, low, high)], shape)

    def __len__(self) -> int:
        return int(self.low.shape[0])

    @property
    def shape(self) -> Shape:
        return self.sides

    def view(self, rounds: slice) -> Self:
        return self._shared(
            low=self.low[rounds, ...],
            high=self.high[rounds, ...],
            places=self.places[rounds, ...],
            sides=self.sides,
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        joined = (
            stacked(parts, "low", "high", "places")
            if len({part.sides for part in parts}) == 1
            else None
        )
        return (
            None
            if joined is None
            else joined._shared(**{**joined.__dict__, "sides": parts[0].sides})
        )

    def values(self, x: Array) -> Array:
        return namespace(self.low).max(self._pieces(gathered(x, self.places)), axis=1)

    def values_at(self, points: Array) -> Array:
        return namespace(self.low).max(self._pieces(each_gathered(points, self.places)), axis=1)

    def subgradient(self, x: Array, weights: Array) -> Array:
        place, sign = self._active(x)
        return scattered(
            place[:, None], like(sign, weights)[:, None] * weights[:, None], self.sides
        )

    def gradients(self, x: Array) -> Array:
        place, sign = self._active(x)
        return each_scattered(place[:, None], like(sign[:, None], self.low), self.sides)

    def slopes(self, x: Array) -> Floats:
        return np.ones(len(self))

    def _pieces(self, entries: Array) -> Array:
        """How far entries are above and below their bounds, (rounds, 2 entries), -inf where there
        is none.
        """
        xp = namespace(self.low)
        none = like(np.where(self.places >= 0, 0.0, -np.inf), self.low)
        return xp.concat([entries - self.high + none, self.low - entries + none], axis=1)

    def _active(self, x: Array) -> tuple[Int64s, Floats]:
        """The place of the farthest entry of each round, and 1 where it is above, -1 where it is
        below.
        """
        pieces, width = self._pieces(gathered(x, self.places)), self.places.shape[1]
        j = to_numpy(namespace(pieces).argmax(pieces, axis=1))
        return self.places[np.arange(len(self)), j % width], np.where(j < width, 1.0, -1.0)

    def halfspaces(self) -> Halfspaces:
        from scipy.sparse import csr_array

        n, asked = math.prod(self.sides), self.places >= 0
        rounds, places = (
            np.broadcast_to(np.arange(len(self))[:, None], asked.shape)[asked],
            self.places[asked],
        )
        bounds = np.concatenate([to_numpy(self.high)[asked], -to_numpy(self.low)[asked]]).astype(
            np.float64
        )
        rows = np.concatenate([places, n + places])
        order = np.lexsort((bounds, rows))  # of each side of each entry the tightest comes first
        first = order[np.unique(rows[order], return_index=True)[1]]
        kept, signs = rows[first] % n, np.where(rows[first] < n, 1.0, -1.0)
        A = csr_array((signs, kept, np.arange(len(first) + 1)), shape=(len(first), n))
        return Halfspaces(A, bounds[first], np.concatenate([rounds, rounds])[first])

    @classmethod
    def examples(cls) -> Sequence[Range]:
        return (
            cls.of(
                [
                    (([0, 1], [2, 0]), -1.0, 1.0),
                    (([1], [1]), [0.5], [0.5]),
                    (([1, 0, 1], [1, 2, 2]), -0.5, [0.0, 1.0, 2.0]),
                ],
                (2, 3),
            ),
            cls.one([[0]], [-1.0], [2.0], (1,)),
            cls([[0.0, 0.0], [0.0, 5.0]], [[1.0, 1.0], [2.0, 0.0]], [[3, 0], [1, -1]], (2, 2)),
        )
