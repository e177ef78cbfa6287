"""Squared errors on the entries that were seen:  f_t(x) = 1/2 sum over the e seen in round t of
(x_e - m_te)^2.

The gradient holds the errors x_e - m_te where an entry was seen, and zeros elsewhere;
`sparse_subgradient` leaves those out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from tidewolf.core.arrays import like, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import NotSupported
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import row_norms, stacked
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

_WHAT = "a Squared batch"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Squared(Batch):
    """Squared errors; targets and places have shape (rounds, most entries a round), points have the
    shape `sides`.

    A place is one of the flattened point, or -1 where a round has fewer entries than others. `of`
    makes them from indices.
    """

    targets: Array
    places: Array
    sides: Shape

    def __post_init__(self) -> None:
        sides, targets = (
            as_sides(self.sides, _WHAT),
            as_numbers(self.targets, f"The targets of {_WHAT}"),
        )
        object.__setattr__(self, "sides", sides)
        object.__setattr__(self, "targets", targets)
        object.__setattr__(
            self, "places", as_places(self.places, targets, sides, f"The places of {_WHAT}")
        )

    @classmethod
    def of(cls, rounds: Sequence[tuple[Any, Any]], shape: Shape) -> Squared:
        """From what was seen each round, (indices, values); the indices of a matrix are
        (rows, columns).
        """
        sides = as_sides(shape, _WHAT)
        places, targets = padded(rounds, sides, _WHAT, 1)
        return cls(targets, places, sides)

    @classmethod
    def one(cls, indices: Any, values: Any, shape: Shape) -> Squared:
        """A single round in which these values were seen."""
        return cls.of([(indices, values)], shape)

    def __len__(self) -> int:
        return int(self.targets.shape[0])

    @property
    def shape(self) -> Shape:
        return self.sides

    def view(self, rounds: slice) -> Self:
        return self._shared(
            targets=self.targets[rounds, ...], places=self.places[rounds, ...], sides=self.sides
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self | None:
        joined = (
            stacked(parts, "targets", "places")
            if len({part.sides for part in parts}) == 1
            else None
        )
        return (
            None
            if joined is None
            else joined._shared(targets=joined.targets, places=joined.places, sides=parts[0].sides)
        )

    def values(self, x: Array) -> Array:
        errors = self._errors(gathered(x, self.places))
        return 0.5 * namespace(errors).vecdot(errors, errors)

    def values_at(self, points: Array) -> Array:
        errors = self._errors(each_gathered(points, self.places))
        return 0.5 * namespace(errors).vecdot(errors, errors)

    def subgradient(self, x: Array, weights: Array) -> Array:
        return scattered(
            self.places, self._errors(gathered(x, self.places)) * weights[:, None], self.sides
        )

    def sparse_subgradient(self, x: Array, weights: Array) -> Any:
        """The same for matrices, as a sparse array of SciPy: a direction that the sets of matrices
        take.
        """
        if len(self.sides) != 2:
            raise NotSupported(
                f"A sparse subgradient is one of matrices; these points have shape {self.sides}."
            )
        from scipy.sparse import coo_array

        seen = self.places >= 0
        errors = to_numpy(self._errors(gathered(x, self.places)) * weights[:, None])[seen]
        return coo_array(
            (errors, np.unravel_index(self.places[seen], self.sides)), shape=self.sides
        ).tocsr()

    def gradients(self, x: Array) -> Array:
        return each_scattered(self.places, self._errors(gathered(x, self.places)), self.sides)

    def slopes(self, x: Array) -> Floats:
        return row_norms(self._errors(gathered(x, self.places)))

    def _errors(self, entries: Array) -> Array:
        """What entries differ from their targets by, 0 where there is none."""
        return (entries - self.targets) * like(self.places >= 0, self.targets)

    @classmethod
    def examples(cls) -> Sequence[Squared]:
        return (
            cls.of(
                [
                    (([0, 1], [2, 0]), [1.0, -2.0]),
                    (([], []), []),
                    (([1, 0, 1], [1, 2, 2]), [0.5, 0.0, 3.0]),
                ],
                (2, 3),
            ),
            cls.one([[0]], [2.0], (1,)),
            cls([[1.0, 2.0], [0.0, -1.0]], [[3, 0], [-1, 3]], (2, 2)),
        )
