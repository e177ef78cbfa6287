"""The fullest link when demands are split over paths:

    f_t(x) = max_l  sum_p incidence[l, p] demands[t, pairs[p]] x_p / capacities[l]  -  limit_t

with x_p the share of the demand of pair pairs[p] that takes path p. A subgradient is the row of the
fullest link l, incidence[l, p] demands[t, pairs[p]] / capacities[l]; among several the first. As a
constraint: no link is fuller than limit_t.

Rounds, links and paths never stand in one table: with M(x)[l, k] the load that a unit of demand of
pair k puts on link l, the loads of all rounds are demands M(x)', and a weighted sum of subgradients
takes the demands added up by the link they fill most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self, final

import numpy as np

from tidewolf.core.arrays import MOST_ENTRIES, as_array, as_number, like, namespace, to_numpy
from tidewolf.core.errors import InvalidInput, WrongShape
from tidewolf.core.piecewise import Halfspaces, PiecewiseLinear
from tidewolf.core.sparse import as_sparse, is_sparse, row_of_each, sparse_row_norms
from tidewolf.core.types import Array, Floats, Int64s, NDArray, Shape
from tidewolf.functions.base import ArrayBatch, PerRound, Uncopied, one_round


@dataclass(frozen=True)
class _Matrix(Uncopied):
    """A matrix, sparse or dense."""

    def __call__(self, value: Any, what: str) -> Any:
        matrix = as_sparse(value, what) if is_sparse(value) else as_array(value, what)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise WrongShape(
                f"{what} is a matrix with at least one row and one column, not of shape "
                f"{tuple(matrix.shape)}."
            )
        return matrix


@dataclass(frozen=True)
class _Columns(Uncopied):
    """A whole number from 0 for each path."""

    def __call__(self, value: Any, what: str) -> Int64s:
        if type(value) is not np.ndarray or value.dtype.kind != "i":
            value = to_numpy(as_array(value, what))
        whole_numbers = value.ndim == 1 and bool((value == np.round(value)).all())
        if not whole_numbers or value.min(initial=0) < 0 or value.max(initial=0) >= MOST_ENTRIES:
            raise InvalidInput(f"{what} are whole numbers from 0, a column of demands each.")
        whole: Int64s = value.astype(np.int64, copy=False)
        return whole


@dataclass(frozen=True)
class _Limits(PerRound):
    """A number, or one a round."""

    def __call__(self, value: Any, what: str) -> Array:
        array = as_array(value, what)
        if array.ndim > 1:
            raise WrongShape(
                f"{what} is a number, or one a round; it has shape {tuple(array.shape)}."
            )
        return array


class _Loads(NamedTuple):
    """What a unit of each pair's demand puts on links, one stored number after the other."""

    link: NDArray
    path: NDArray
    pair: NDArray
    load: Floats
    """incidence / capacity"""
    starts: NDArray
    """where the numbers of each link start"""


@final
@dataclass(frozen=True, eq=False, repr=False)
class MaxUtilization(ArrayBatch, PiecewiseLinear):
    """How full the fullest link is when demands are split over paths, less a limit.

    Of a demand that is divided by the round's own best utilisation, 1 is perfect; with `limit` it
    is a constraint, kept where no link is fuller.

    Parameters
    ----------
    incidence : array
        What a unit on each path puts on each link, of shape (links, paths): 1 where the path
        uses the link. Dense, or a sparse array of SciPy.
    demands : array
        What each pair sends, of shape (rounds, pairs).
    capacities : array
        The capacity of each link, above 0.
    pairs : array
        For each path the pair it serves, a column of `demands`.
    limit : array, default 0.0
        What is subtracted: a number, or one a round.

    Examples
    --------
    >>> incidence = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]  # two links, three paths
    >>> f = tw.functions.MaxUtilization(incidence, [[4.0, 1.0]], [2.0, 4.0], pairs=[0, 0, 1])
    >>> f.values(np.array([0.5, 0.5, 1.0]))  # (4 * 0.5 + 1)/2 on the first, 4 * 0.5/4 on the other
    array([1.5])
    >>> f.subgradient(np.array([0.5, 0.5, 1.0]), np.ones(1))
    array([2. , 0. , 0.5])
    """

    by_round = ("demands", "limit")

    incidence: Annotated[
        Any,
        _Matrix(
            "What a unit on each path puts on each link, of shape (links, paths): 1 where the path "
            "uses the link. Dense, or a sparse array of SciPy."
        ),
    ]
    demands: Annotated[Array, PerRound("What each pair sends, of shape (rounds, pairs).")]
    capacities: Annotated[Array, Uncopied("The capacity of each link, above 0.")]
    pairs: Annotated[Array, _Columns("For each path the pair it serves, a column of `demands`.")]
    limit: Annotated[Array, _Limits("What is subtracted: a number, or one a round.", axes=1)] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        links, paths = self.incidence.shape
        if self.demands.ndim != 2:
            raise WrongShape(
                "demands of MaxUtilization has shape (rounds, pairs), not "
                f"{tuple(self.demands.shape)}.",
                setting="demands",
            )
        if self.limit.ndim == 0:
            spread = np.full(len(self), float(self.limit))
            object.__setattr__(self, "limit", like(spread, self.demands))
        self._match("limit", (len(self),), self.demands)
        self._match("capacities", (links,), self.demands)
        self._require_pairs(paths)
        capacities = to_numpy(self.capacities)
        for link in np.flatnonzero(capacities <= 0)[:1]:
            raise InvalidInput(
                f"capacities of MaxUtilization are above 0; that of link {link} is "
                f"{capacities[link]:g}.",
                setting="capacities",
            )

    def _require_pairs(self, paths: int) -> None:
        if self.pairs.shape != (paths,):
            raise WrongShape(
                f"pairs of MaxUtilization needs shape ({paths},), a pair for each path; it has "
                f"shape {self.pairs.shape}.",
                setting="pairs",
            )
        columns = int(self.demands.shape[1])
        for path in np.flatnonzero(self.pairs >= columns)[:1]:
            raise InvalidInput(
                f"pairs of MaxUtilization are columns of demands, which has {columns}; path {path} "
                f"names column {self.pairs[path]}.",
                setting="pairs",
            )

    @classmethod
    def one(
        cls, incidence: Any, demands: Array, capacities: Array, pairs: Array, limit: float = 0.0
    ) -> MaxUtilization:
        """A single round with these demands, one of each pair."""
        limit = as_number(limit, "limit of MaxUtilization.one")
        demands = one_round(demands, "demands of MaxUtilization.one")
        return cls(incidence, demands, capacities, pairs, limit)

    @property
    def shape(self) -> Shape:
        return (int(self.incidence.shape[1]),)

    def view(self, rounds: slice) -> Self:
        _ = self._loads  # made once, for all views
        return super().view(rounds)

    @cached_property
    def _loads(self) -> _Loads:
        from scipy.sparse import csr_array

        A = self.incidence if is_sparse(self.incidence) else csr_array(to_numpy(self.incidence))
        link, capacities = row_of_each(A), to_numpy(self.capacities).astype(np.float64)
        return _Loads(link, A.indices, self.pairs[A.indices], A.data / capacities[link], A.indptr)

    def values(self, x: Array) -> Array:
        return namespace(x).max(self.pieces(x), axis=1)

    def pieces(self, x: Array) -> Array:
        """How full each link is, less the limit, as (rounds, links)."""
        return like(self._utilization(x) - self._host("limit")[:, None], x)

    def piece_gradients(self, x: Array, rounds: Int64s, limits: Int64s) -> Array:
        return like(self._rows(rounds, limits).toarray(), x)

    def values_at(self, points: Array) -> Array:
        on, demands, x = self._loads, self._host("demands"), to_numpy(points)
        links, rounds = self.capacities.shape[0], len(self)
        full = np.full(rounds, -np.inf)
        for link in range(links):  # rounds x stored numbers would be a large table
            some = slice(on.starts[link], on.starts[link + 1])
            loads = (x[:, on.path[some]] * demands[:, on.pair[some]]) @ on.load[some]
            full = np.maximum(full, loads)
        return like(full - self._host("limit"), points)

    def subgradient(self, x: Array, weights: Array) -> Array:
        on, demands, w = self._loads, self._host("demands"), to_numpy(weights)
        fullest = self._fullest(x)
        if len(self) == 1:
            some = slice(on.starts[fullest[0]], on.starts[fullest[0] + 1])
            gradient = np.zeros(self.shape)
            gradient[on.path[some]] = w[0] * on.load[some] * demands[0, on.pair[some]]
            return like(gradient, x)
        # the demands of the rounds whose fullest link it is, weighted
        filling = np.zeros((self.capacities.shape[0], demands.shape[1]))
        np.add.at(filling, fullest, w[:, None] * demands)
        loads = on.load * filling[on.link, on.pair]
        return like(np.bincount(on.path, loads, self.shape[0]), x)

    def gradients(self, x: Array) -> Array:
        return like(self._rows(np.arange(len(self)), self._fullest(x)).toarray(), x)

    def slopes(self, x: Array) -> Floats:
        return sparse_row_norms(self._rows(np.arange(len(self)), self._fullest(x)))

    def _utilization(self, x: Array) -> Floats:
        """How full each link is, as (rounds, links)."""
        on, demands, x = self._loads, self._host("demands"), to_numpy(x)
        links, pairs = self.capacities.shape[0], demands.shape[1]
        if len(self) == 1:
            loads = on.load * demands[0, on.pair] * x[on.path]
            return np.asarray(np.bincount(on.link, loads, links)[None, :], dtype=np.float64)
        unit = np.bincount(on.link * pairs + on.pair, on.load * x[on.path], links * pairs)
        return np.asarray(demands @ unit.reshape(links, pairs).T)

    def _fullest(self, x: Array) -> Int64s:
        """The first fullest link of each round."""
        return np.asarray(self._utilization(x).argmax(axis=1))

    def _rows(self, rounds: Int64s, links: Int64s) -> Any:
        """What a unit on each path puts on a link in a round, sparse, one pair of them a row."""
        from scipy.sparse import csr_array

        on, demands = self._loads, self._host("demands")
        counts = np.diff(on.starts)[links]
        starts = np.concatenate([[0], np.cumsum(counts)])
        number = np.arange(starts[-1]) + np.repeat(on.starts[links] - starts[:-1], counts)
        data = on.load[number] * demands[np.repeat(rounds, counts), on.pair[number]]
        return csr_array((data, on.path[number], starts), shape=(len(links), self.shape[0]))

    def _host(self, name: str) -> NDArray:
        return to_numpy(self.__dict__[name])

    def halfspaces(self) -> Halfspaces:
        links = int(self.capacities.shape[0])
        rounds = np.repeat(np.arange(len(self)), links)
        A = self._rows(rounds, np.tile(np.arange(links), len(self)))
        return Halfspaces(A, self._host("limit").astype(np.float64)[rounds], rounds)

    def epigraph(self) -> Halfspaces:
        return self.halfspaces()

    @classmethod
    def examples(cls) -> Sequence[MaxUtilization]:
        from scipy.sparse import csr_array

        shared = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
        return (
            cls(
                csr_array(shared),
                [[4.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 3.0, 2.0]],
                [2.0, 4.0, 0.5],
                [0, 0, 1, 2],
                [0.5, 0.25, 1.0],
            ),
            cls.one([[1.0]], [2.0], [1.0], [0]),
            cls(
                [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]], [[2.0, 1.0], [1.0, 2.0]], [1.0, 1.0], [0, 0, 1]
            ),
        )
