"""Squared errors on the entries that were seen:  f_t(x) = 1/2 sum over the e seen in round t of
(x_e - m_te)^2.

The gradient holds the errors x_e - m_te where an entry was seen, and zeros elsewhere;
`sparse_subgradient` leaves those out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np

from tidewolf.core.arrays import like, namespace, to_numpy
from tidewolf.core.errors import NotSupported
from tidewolf.core.settings import Number
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.base import row_norms
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
class Squared(EntryBatch):
    """Squared errors on the entries seen in a round, 1/2 sum_e (x_e - m_te)^2.

    `Squared.of` makes them from indices.

    Parameters
    ----------
    targets : array
        What was seen, of shape (rounds, most entries a round).
    places : array
        Where it was seen, as places in the flattened point, of the same shape; -1 where a round
        has fewer entries than others.
    sides : tuple of int
        The shape of a point, such as (users, items).
    exp_concavity : float, optional
        A number alpha for which exp(-alpha f) is concave on the set of decisions: 1/E where the
        squared errors of a round sum to at most E there. None: none is declared.

    Examples
    --------
    >>> f = tw.functions.Squared.of([(([0, 1], [1, 0]), [3.0, -1.0])], shape=(2, 2))
    >>> f.subgradient(np.zeros((2, 2)), np.ones(1))
    array([[ 0., -3.],
           [ 1.,  0.]])
    """

    by_round = ("targets", "places")

    targets: Annotated[Array, EntryTable("What was seen, of shape (rounds, most entries a round).")]
    places: Annotated[
        Array,
        Places(
            "Where it was seen, as places in the flattened point, of the same shape; -1 where a "
            "round has fewer entries than others."
        ),
    ]
    sides: Annotated[Shape, PointShape("The shape of a point, such as (users, items).")]
    exp_concavity: Annotated[
        float | None,
        Number(
            "A number alpha for which exp(-alpha f) is concave on the set of decisions: 1/E where "
            "the squared errors of a round sum to at most E there. None: none is declared.",
            above=0.0,
        ),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_places("targets")

    @classmethod
    def of(cls, rounds: Sequence[tuple[Any, Any]], shape: Shape) -> Squared:
        """From indices and what was seen there, round by round.

        Parameters
        ----------
        rounds : sequence of tuple
            For each round (indices, values); the indices of a matrix are (rows, columns), as
            NumPy takes them.
        shape : tuple of int
            The shape of a point.

        Returns
        -------
        Squared
            The functions.
        """
        sides = PointShape()(shape, "shape of Squared.of")
        places, targets = pad_rounds(rounds, sides, "a Squared batch", 1)
        return cls(targets, places, sides)

    @classmethod
    def one(cls, indices: Any, values: Any, shape: Shape) -> Squared:
        """A single round in which these values were seen."""
        return cls.of([(indices, values)], shape)

    def values(self, x: Array) -> Array:
        errors = self._errors(gather_entries(x, self.places))
        return 0.5 * namespace(errors).vecdot(errors, errors)

    def values_at(self, points: Array) -> Array:
        errors = self._errors(gather_each_round(points, self.places))
        return 0.5 * namespace(errors).vecdot(errors, errors)

    def subgradient(self, x: Array, weights: Array) -> Array:
        return scatter_entries(
            self.places, self._errors(gather_entries(x, self.places)) * weights[:, None], self.sides
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
        errors = to_numpy(self._errors(gather_entries(x, self.places)) * weights[:, None])[seen]
        return coo_array(
            (errors, np.unravel_index(self.places[seen], self.sides)), shape=self.sides
        ).tocsr()

    def gradients(self, x: Array) -> Array:
        return scatter_each_round(
            self.places, self._errors(gather_entries(x, self.places)), self.sides
        )

    def slopes(self, x: Array) -> Floats:
        return row_norms(self._errors(gather_entries(x, self.places)))

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
