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
from typing import Annotated, Any, final

import numpy as np

from tidewolf.core.arrays import like, namespace, to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.functions.base import Halfspaces, PiecewiseLinear
from tidewolf.functions.entries import (
    EntryBatch,
    EntryTable,
    Places,
    PointShape,
    gather_each_round,
    gather_entries,
    pad_rounds,
    scatter_each_round,
    scatter_entries,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Range(EntryBatch, PiecewiseLinear):
    """By how much the entries asked for in a round are out of their bounds, at the worst.

    `Range.of` makes them from indices.

    Parameters
    ----------
    low : array
        The lower bounds, of shape (rounds, most entries a round).
    high : array
        The upper bounds, of the same shape.
    places : array
        The entries they are for, as places in the flattened point, of the same shape; -1 where
        a round has fewer entries than others.
    sides : tuple of int
        The shape of a point, such as (users, items).

    Examples
    --------
    >>> g = tw.functions.Range.of([(([0, 1], [1, 0]), -0.5, 0.5)], shape=(2, 2))
    >>> g.values(np.array([[0.0, 0.75], [0.0, 0.0]]))
    array([0.25])
    """

    by_round = ("low", "high", "places")

    low: Annotated[Array, EntryTable("The lower bounds, of shape (rounds, most entries a round).")]
    high: Annotated[Array, EntryTable("The upper bounds, of the same shape.")]
    places: Annotated[
        Array,
        Places(
            "The entries they are for, as places in the flattened point, of the same shape; -1 "
            "where a round has fewer entries than others."
        ),
    ]
    sides: Annotated[Shape, PointShape("The shape of a point, such as (users, items).")]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._match("high", tuple(self.low.shape), self.low)
        self._require_places("low")
        for t in np.flatnonzero((self.places < 0).all(axis=1))[:1]:
            raise InvalidInput(
                f"Round {t} of a Range batch has no entry; it needs at least one.",
                setting="places",
            )
        for t, j in np.argwhere(to_numpy(self.low > self.high) & (self.places >= 0))[:1]:
            raise InvalidInput(
                f"The bounds of entry {j} of round {t + 1} of a Range batch leave nothing: "
                f"{float(self.low[t, j]):g} > {float(self.high[t, j]):g}.",
                setting="high",
            )

    @classmethod
    def of(cls, rounds: Sequence[tuple[Any, Any, Any]], shape: Shape) -> Range:
        """From indices and bounds on the entries there, round by round.

        Parameters
        ----------
        rounds : sequence of tuple
            For each round (indices, low, high), the bounds one for each entry or one for all; the
            indices of a matrix are (rows, columns), as NumPy takes them.
        shape : tuple of int
            The shape of a point.

        Returns
        -------
        Range
            The functions.
        """
        sides = PointShape()(shape, "shape of Range.of")
        places, low, high = pad_rounds(rounds, sides, "a Range batch", 2)
        return cls(low, high, places, sides)

    @classmethod
    def one(cls, indices: Any, low: Any, high: Any, shape: Shape) -> Range:
        """A single round."""
        return cls.of([(indices, low, high)], shape)

    def values(self, x: Array) -> Array:
        return namespace(self.low).max(self._pieces(gather_entries(x, self.places)), axis=1)

    def values_at(self, points: Array) -> Array:
        return namespace(self.low).max(self._pieces(gather_each_round(points, self.places)), axis=1)

    def subgradient(self, x: Array, weights: Array) -> Array:
        place, sign = self._active(x)
        return scatter_entries(
            place[:, None], like(sign, weights)[:, None] * weights[:, None], self.sides
        )

    def gradients(self, x: Array) -> Array:
        place, sign = self._active(x)
        return scatter_each_round(place[:, None], like(sign[:, None], self.low), self.sides)

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
        pieces, width = self._pieces(gather_entries(x, self.places)), self.places.shape[1]
        j = to_numpy(namespace(pieces).argmax(pieces, axis=1))
        return self.places[np.arange(len(self)), j % width], np.where(j < width, 1.0, -1.0)

    def halfspaces(self) -> Halfspaces:
        from scipy.sparse import csr_array

        n, asked = math.prod(self.sides), self.places >= 0
        rounds = np.broadcast_to(np.arange(len(self))[:, None], asked.shape)[asked]
        bounds = np.concatenate([to_numpy(self.high)[asked], -to_numpy(self.low)[asked]])
        bounds, places = bounds.astype(np.float64), self.places[asked]
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
