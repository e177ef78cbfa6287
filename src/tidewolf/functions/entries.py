"""Some entries of a point each round: a table (rounds, most entries per round) of places in the
flattened point, -1 if there is none.

Places live on the host, as integers, whatever the library of the points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, TypeAlias, cast, final

import numpy as np

from tidewolf.core import batch, settings, sparse
from tidewolf.core.arguments import as_items, shown
from tidewolf.core.arrays import as_array, flat, like, namespace, require_no_mask, taken, to_numpy
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape, WrongType, require
from tidewolf.core.types import Array, Floats, Int64s, NDArray, Shape
from tidewolf.functions.base import ArrayBatch, Uncopied, WholeNumbers


@dataclass(frozen=True)
class PointShape(settings.Check):
    words: ClassVar[str] = "a list of whole numbers"
    item_type: ClassVar[type | None] = int

    def __call__(self, value: Any, what: str) -> Shape:
        if not isinstance(value, tuple | list):
            raise WrongShape(f"{what} is a shape such as (users, items), not {shown(value)}.")
        sides = settings.as_shape(value, what)
        return value if value == sides else sides


# Places in the flattened point, -1 if there is none.
Places: TypeAlias = Annotated[Array, WholeNumbers(axes=2, least=-1)]


class EntryBatch(ArrayBatch):
    places: Any
    sides: Shape

    @property
    def shape(self) -> Shape:
        return self.sides

    @classmethod
    def of(cls, rounds: Sequence[tuple[Any, ...]], shape: Shape) -> Self:
        """From indices and the numbers there, round by round.

        Parameters
        ----------
        rounds : sequence of tuple
            For each round (indices, values), or (indices, low, high) of a Range, where a bound is
            one for each entry or one for all; the indices of a matrix are (rows, columns), as NumPy
            takes them.
        shape : tuple of int
            The shape of a point.

        Returns
        -------
        Batch
            The functions.
        """
        kind: Any = cls  # its fields: tables of numbers, places, and the shape
        name, sides = cls.__name__, PointShape()(shape, f"shape of {cls.__name__}.of")
        places, *tables = pad_rounds(rounds, sides, f"a {name} batch", len(kind.by_round) - 1)
        return cast(Self, kind(*tables, places, sides))

    def _require_places(self, first: str, *tables: str) -> None:
        """Places inside a point, none twice in a round, and tables of numbers beside them."""
        for name in (first, *tables):
            self._match(name, tuple(self.places.shape), getattr(self, first))
        in_order = np.sort(self.places, axis=1)
        twice = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
        most = math.prod(self.sides) - 1
        fits = self.places.max(initial=-1) <= most and not twice.any()
        self._require(fits, "places", f"be from 0 to {most}, none twice in a round, or -1 for none")

    def _gather(self, x: Array) -> Array:
        """The entries at the places, any if there is none, of one point or a point for each
        round; in the library of x.
        """
        places = self.places
        if x.ndim > len(self.sides):
            places = _in_each_round(places, self.sides)
        return namespace(x).reshape(taken(flat(x), np.maximum(places, 0).reshape(-1)), places.shape)


def pad_rounds(
    rounds: Sequence[Sequence[Any]], shape: Shape, what: str, count: int
) -> list[NDArray]:
    """Rounds (indices, numbers, ..), numbers `count` times, as a table of places and tables of
    numbers.

    The indices of a matrix are (rows, columns).
    """
    such = as_items(rounds, f"The rounds of {what}", "[(indices, numbers), ...]")
    listed = [_round(each, shape, f"Round {t} of {what}", count) for t, each in enumerate(such)]
    require(listed, InvalidInput, f"There is no round for {what}; give at least one.")
    most = max(len(places) for places, *_ in listed)
    tables = [np.full((len(listed), most), empty) for empty in (-1, 0.0, 0.0)[: 1 + count]]
    for t, parts in enumerate(listed):
        for table, numbers in zip(tables, parts, strict=True):
            table[t, : len(parts[0])] = numbers
    return tables


def _round(given: Any, shape: Shape, what: str, count: int) -> tuple[Any, ...]:
    parts = as_items(given, what, "(indices, numbers)")
    if len(parts) != 1 + count:
        raise WrongShape(f"{what} is indices and {count} of numbers, not {shown(given)}.")
    try:
        indices = list(parts[0])
        require_no_mask(indices, f"One of the indices of {what}")
        axes = [np.asarray(axis).reshape(-1) for axis in indices]
        axes = [axis if axis.size else axis.astype(np.int64) for axis in axes]
        places = np.asarray(np.ravel_multi_index(tuple(axes), shape))
    except WrongType:
        raise
    except (ValueError, TypeError):
        due = f"a list per axis, inside an array of shape {shape}"
        raise InvalidInput(f"The indices of {what} must be {due}, not {shown(parts[0])}.") from None
    numbers = [to_numpy(as_array(part, f"The numbers of {what}")) for part in parts[1:]]
    if any(each.shape not in ((), places.shape) for each in numbers):
        raise WrongShape(f"{what} has {len(places)} entries and more or fewer numbers for them.")
    return places, *numbers


def _in_each_round(places: Int64s, shape: Shape) -> Int64s:
    """The same places in a table with a point for each round."""
    rounds: Int64s = np.arange(len(places))[:, None]
    return np.maximum(places, 0) + math.prod(shape) * rounds


def scatter_entries(places: Int64s, numbers: Array, shape: Shape) -> Array:
    """Numbers, 0 if there is no place, added up at their places in a point."""
    total = np.bincount(
        np.maximum(places, 0).reshape(-1), to_numpy(numbers).reshape(-1), math.prod(shape)
    )
    return like(total.reshape(shape), numbers)


def scatter_each_round(places: Int64s, numbers: Array, shape: Shape) -> Array:
    return scatter_entries(_in_each_round(places, shape), numbers, (len(places), *shape))


# Squared errors on the entries that were seen:  f_t(x) = 1/2 sum over the e seen in round t of (x_e
# - m_te)^2.
#
# The gradient holds the errors x_e - m_te where an entry was seen, and zeros elsewhere;
# `sparse_subgradient` leaves those out.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Squared(EntryBatch):
    """Squared errors on the entries seen in a round, 1/2 sum_e (x_e - m_te)^2.

    `Squared.of` makes them from indices.

    Parameters
    ----------
    targets : array
        What was seen, of shape (rounds, most entries per round).
    places : array
        The entries seen, places in the flattened point; -1: none.
    sides : tuple of int
        The shape of a point, such as (users, items).
    exp_concavity : float, optional
        1/E, E the most that squared errors of a round sum to. None: unknown.

    Examples
    --------
    >>> f = tw.functions.Squared.of([(([0, 1], [1, 0]), [3.0, -1.0])], shape=(2, 2))
    >>> f.subgradient(np.zeros((2, 2)), np.ones(1))
    array([[ 0., -3.],
           [ 1.,  0.]])
    """

    by_round = ("targets", "places")

    targets: Annotated[Array, Uncopied()]
    places: Places
    sides: Annotated[Shape, PointShape()]
    exp_concavity: Annotated[float | None, settings.Number(above=0.0)] = None

    def _complete(self) -> None:
        self._require_places("targets")

    @classmethod
    def one(cls, indices: Any, values: Any, shape: Shape) -> Self:
        """A single round in which these values were seen."""
        return cls.of([(indices, values)], shape)

    def values(self, x: Array) -> Array:
        errors = self._errors(x)
        return 0.5 * namespace(errors).vecdot(errors, errors)

    values_at = values  # type: ignore[assignment]

    def subgradient(self, x: Array, weights: Array) -> Array:
        return scatter_entries(self.places, self._errors(x) * weights[:, None], self.sides)

    def sparse_subgradient(self, x: Array, weights: Array) -> Any:
        """The same for matrices, as a sparse array of SciPy: a direction that the sets of matrices
        take.
        """
        if len(self.sides) != 2:
            raise NotSupported(f"A sparse subgradient is a matrix; points have shape {self.sides}.")
        from scipy.sparse import coo_array

        seen = self.places >= 0
        errors = to_numpy(self._errors(x) * weights[:, None])[seen]
        places = np.unravel_index(self.places[seen], self.sides)
        return coo_array((errors, places), shape=self.sides).tocsr()

    def gradients(self, x: Array) -> Array:
        return scatter_each_round(self.places, self._errors(x), self.sides)

    def slopes(self, x: Array) -> Floats:
        return sparse.row_norms(self._errors(x))

    def _errors(self, x: Array) -> Array:
        return (self._gather(x) - self.targets) * like(self.places >= 0, self.targets)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        first, last = (([0, 1], [2, 0]), [1.0, -2.0]), (([1, 0, 1], [1, 2, 2]), [0.5, 0.0, 3.0])
        return (
            cls.of([first, (([], []), []), last], (2, 3)),
            cls.one([[0]], [2.0], (1,)),
            cls([[1.0, 2.0], [0.0, -1.0]], [[3, 0], [-1, 3]], (2, 2)),
        )


# Entries within bounds:  g_t(x) = max over the e asked for in round t of max(x_e - high_te, low_te
# - x_e).
#
# A subgradient is e of the farthest entry above its bound, or minus that of the farthest below;
# among several the first, and above before below. As a constraint over many rounds only the
# smallest high and the largest low of each entry matter.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Range(EntryBatch, batch.PiecewiseLinear):
    """The largest distance of the given entries from their bounds.

    `Range.of` makes them from indices.

    Parameters
    ----------
    low : array
        The lower bounds, of shape (rounds, most entries per round).
    high : array
        The upper bounds, of the same shape.
    places : array
        Their entries, as places in the flattened point; -1: none.
    sides : tuple of int
        The shape of a point, such as (users, items).

    Examples
    --------
    >>> g = tw.functions.Range.of([(([0, 1], [1, 0]), -0.5, 0.5)], shape=(2, 2))
    >>> g.values(np.array([[0.0, 0.75], [0.0, 0.0]]))
    array([0.25])
    """

    by_round = ("low", "high", "places")

    low: Annotated[Array, Uncopied()]
    high: Annotated[Array, Uncopied()]
    places: Places
    sides: Annotated[Shape, PointShape()]

    def _complete(self) -> None:
        self._require_places("low", "high")
        there = self.places >= 0
        crossed = (to_numpy(self.low > self.high) & there).any(axis=1)
        for t in np.flatnonzero(crossed | ~there.any(axis=1))[:1]:
            words = f"Round {t + 1} of a Range batch needs an entry, and low <= high of each."
            raise InvalidInput(words, setting="high" if crossed[t] else "places")

    @classmethod
    def one(cls, indices: Any, low: Any, high: Any, shape: Shape) -> Self:
        """A single round."""
        return cls.of([(indices, low, high)], shape)

    def values(self, x: Array) -> Array:
        return namespace(self.low).max(self._pieces(x), axis=1)

    values_at = values  # type: ignore[assignment]

    def subgradient(self, x: Array, weights: Array) -> Array:
        place, sign = self._active(x)
        signed = like(sign, weights) * weights
        return scatter_entries(place[:, None], signed[:, None], self.sides)

    def gradients(self, x: Array) -> Array:
        place, sign = self._active(x)
        return scatter_each_round(place[:, None], like(sign[:, None], self.low), self.sides)

    def slopes(self, x: Array) -> Floats:
        return np.ones(len(self))

    def _pieces(self, x: Array) -> Array:
        """How far entries are above and below their bounds, (rounds, 2 entries), -inf where there
        is none.
        """
        xp, entries = namespace(self.low), self._gather(x)
        none = like(np.where(self.places >= 0, 0.0, -np.inf), self.low)
        return xp.concat([entries - self.high + none, self.low - entries + none], axis=1)

    def _active(self, x: Array) -> tuple[Int64s, Floats]:
        """The place of the farthest entry of each round, and 1 where it is above, -1 where it is
        below.
        """
        pieces, width = self._pieces(x), self.places.shape[1]
        j = to_numpy(namespace(pieces).argmax(pieces, axis=1))
        return self.places[np.arange(len(self)), j % width], np.where(j < width, 1.0, -1.0)

    def halfspaces(self) -> batch.Halfspaces:
        n, asked = math.prod(self.sides), self.places >= 0
        rounds = np.broadcast_to(np.arange(len(self))[:, None], asked.shape)[asked]
        bounds = np.concatenate([to_numpy(self.high)[asked], -to_numpy(self.low)[asked]])
        bounds, places = bounds.astype(np.float64), self.places[asked]
        rows = np.concatenate([places, n + places])
        order = np.lexsort((bounds, rows))  # of each side of each entry the tightest comes first
        first = order[np.unique(rows[order], return_index=True)[1]]
        kept, signs = rows[first] % n, np.where(rows[first] < n, 1.0, -1.0)
        A = sparse.csr_array((signs, kept, np.arange(len(first) + 1)), shape=(len(first), n))
        return batch.Halfspaces(A, bounds[first], np.concatenate([rounds, rounds])[first])

    @classmethod
    def examples(cls) -> Sequence[Self]:
        last = ([1, 0, 1], [1, 2, 2]), -0.5, [0.0, 1.0, 2.0]
        return (
            cls.of([(([0, 1], [2, 0]), -1.0, 1.0), (([1], [1]), [0.5], [0.5]), last], (2, 3)),
            cls.one([[0]], [-1.0], [2.0], (1,)),
            cls([[0.0, 0.0], [0.0, 5.0]], [[1.0, 1.0], [2.0, 0.0]], [[3, 0], [1, -1]], (2, 2)),
        )
