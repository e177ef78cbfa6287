"""What links carry when demands are split over paths: the machinery of functions of it.

    pieces_tl(x) = sum_p incidence[l, p] demands[t, pairs[p]] x_p scale_l  -  offset_tl
    f_t(x)       = max_l pieces_tl(x)

with x_p the share of the demand of pair pairs[p] that takes path p. A subgradient is the row of the
fullest link; among several the first.

Rounds, links and paths never stand in one table: with M(x)[l, k] the load that a unit of demand of
pair k puts on link l, stored as sparsely as the incidence, the loads of all rounds are
demands M(x)', and a weighted sum of subgradients takes the demands added up by the link they fill
most. Half-spaces are made on demand, for the rounds or rows that are used.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeAlias, final

import numpy as np

from tidewolf.core.arrays import MOST_ENTRIES, as_array, like, namespace, to_numpy
from tidewolf.core.errors import InvalidInput, WrongShape
from tidewolf.core.piecewise import Halfspaces, ManyRows, PiecewiseLinear
from tidewolf.core.sparse import as_sparse, is_sparse, row_of_each, sparse_row_norms
from tidewolf.core.types import Array, Floats, Int64s, NDArray, Shape
from tidewolf.functions.base import ArrayBatch, PerRound, Uncopied

MANY = 10**6
"""Stored numbers of all half-spaces together from which on they are made some at a time,"""
FEW = 20_000
"""Stored numbers of the incidence up to which making a sparse array of a round takes longer than
adding them up.
"""
AT_A_TIME = 2**16
"""and about how many then stand in one table."""


@dataclass(frozen=True)
class Matrix(Uncopied):
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
class Columns(Uncopied):
    """A whole number from 0 for each path."""

    def __call__(self, value: Any, what: str) -> Int64s:
        if type(value) is not np.ndarray or value.dtype.kind != "i":
            value = to_numpy(as_array(value, what))
        whole_numbers = value.ndim == 1 and bool((value == np.round(value)).all())
        if not whole_numbers or value.min(initial=0) < 0 or value.max(initial=0) >= MOST_ENTRIES:
            raise InvalidInput(f"{what} are whole numbers from 0, a column of demands each.")
        whole: Int64s = value.astype(np.int64, copy=False)
        return whole


PathIncidence: TypeAlias = Annotated[
    Any,
    Matrix(
        "What a unit on each path puts on each link, of shape (links, paths): 1 where the path "
        "uses the link. Dense, or a sparse array of SciPy."
    ),
]
PairDemands: TypeAlias = Annotated[
    Array, PerRound("What each pair sends, of shape (rounds, pairs).")
]
PairOfPath: TypeAlias = Annotated[
    Array, Columns("For each path the pair it serves, a column of `demands`.")
]


class _Loads(NamedTuple):
    """What a unit of each pair's demand puts on links, one stored number after the other."""

    link: NDArray
    path: NDArray
    pair: NDArray
    load: Floats
    """of a unit of demand, in units of the link"""
    starts: NDArray
    """where the numbers of each link start"""


class OverPaths(ArrayBatch):
    """Demands that are split over paths, and what they put on links."""

    of_all_rounds: ClassVar[tuple[str, ...]] = ("_loads",)

    incidence: Any
    demands: Array
    pairs: Array

    @abstractmethod
    def _scaled(self, load: Floats, link: NDArray) -> Floats:
        """Loads in the unit of the link that each is on."""

    @property
    def _links(self) -> int:
        return int(self.incidence.shape[0])

    def _require_demands(self) -> None:
        if self.demands.ndim != 2:
            raise WrongShape(
                f"demands of {type(self).__name__} has shape (rounds, pairs), not "
                f"{tuple(self.demands.shape)}.",
                setting="demands",
            )
        self._require_pairs(int(self.incidence.shape[1]))

    def _require_pairs(self, paths: int) -> None:
        if self.pairs.shape != (paths,):
            raise WrongShape(
                f"pairs of {type(self).__name__} needs shape ({paths},), a pair for each path; it "
                f"has shape {self.pairs.shape}.",
                setting="pairs",
            )
        columns = int(self.demands.shape[1])
        for path in np.flatnonzero(self.pairs >= columns)[:1]:
            raise InvalidInput(
                f"pairs of {type(self).__name__} are columns of demands, which has {columns}; path "
                f"{path} names column {self.pairs[path]}.",
                setting="pairs",
            )

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
        link, path = row_of_each(A), A.indices
        load = self._scaled(A.data, link).astype(np.float64, copy=False)
        return _Loads(link, path, self.pairs[path], load, A.indptr)

    def _carried(self, x: Array) -> Floats:
        """What each link carries, in its unit, as (rounds, links)."""
        from scipy.sparse import csr_array

        on, demands = self._loads, self._host("demands")
        x = to_numpy(x).astype(np.float64, copy=False)
        if len(self) == 1 and len(on.load) <= FEW:
            loads = on.load * demands[0, on.pair] * x[on.path]
            return np.bincount(on.link, loads, self._links).astype(np.float64)[None, :]
        if len(self) == 1:
            return np.asarray(self._round @ x)[None, :]
        shape = (self._links, demands.shape[1])
        unit = csr_array((on.load * x[on.path], on.pair, on.starts), shape=shape)
        carried, step = np.empty((len(self), self._links)), max(1, AT_A_TIME // demands.shape[1])
        for start in range(0, len(self), step):  # a product copies what it is given
            carried[start : start + step] = (unit @ demands[start : start + step].T).T
        return carried

    @cached_property
    def _round(self) -> Any:
        """What a unit on each path puts on each link in the only round, sparse."""
        from scipy.sparse import csr_array

        on, shape = self._loads, (self._links, self.shape[0])
        return csr_array((on.load * self._host("demands")[0, on.pair], on.path, on.starts), shape)

    def _host(self, name: str) -> NDArray:
        return to_numpy(self.__dict__[name])


class LinkLoads(OverPaths, PiecewiseLinear):
    """The fullest link, less offsets, of demands that are split over paths."""

    @abstractmethod
    def _offsets(self) -> Floats:
        """What is subtracted, (rounds, links) or (rounds, 1)."""

    def values(self, x: Array) -> Array:
        return namespace(x).max(self.pieces(x), axis=1)

    def pieces(self, x: Array) -> Array:
        """What each link carries, less its offset, as (rounds, links)."""
        return like(self._carried(x) - self._offsets(), x)

    def piece_gradients(self, x: Array, rounds: Int64s, limits: Int64s) -> Array:
        return like(self._rows(rounds, limits).toarray(), x)

    def values_at(self, points: Array) -> Array:
        on, demands, x = self._loads, self._host("demands"), to_numpy(points)
        offsets = np.broadcast_to(self._offsets(), (len(self), self._links))
        full = np.full(len(self), -np.inf)
        for link in range(self._links):  # rounds x stored numbers would be a large table
            some = slice(on.starts[link], on.starts[link + 1])
            loads = (x[:, on.path[some]] * demands[:, on.pair[some]]) @ on.load[some]
            full = np.maximum(full, loads - offsets[:, link])
        return like(full, points)

    def subgradient(self, x: Array, weights: Array) -> Array:
        on, demands, w = self._loads, self._host("demands"), to_numpy(weights)
        fullest = self._fullest(x)
        if len(self) == 1:
            some = slice(on.starts[fullest[0]], on.starts[fullest[0] + 1])
            gradient = np.zeros(self.shape)
            gradient[on.path[some]] = w[0] * on.load[some] * demands[0, on.pair[some]]
            return like(gradient, x)
        # the demands of the rounds whose fullest link it is, weighted
        links, which = np.unique(fullest, return_inverse=True)
        filling = np.zeros((len(links), demands.shape[1]))
        np.add.at(filling, which, w[:, None] * demands)
        there = np.isin(on.link, links)
        loads = on.load[there] * filling[np.searchsorted(links, on.link[there]), on.pair[there]]
        return like(np.bincount(on.path[there], loads, self.shape[0]), x)

    def gradients(self, x: Array) -> Array:
        return like(self._rows(np.arange(len(self)), self._fullest(x)).toarray(), x)

    def slopes(self, x: Array) -> Floats:
        return sparse_row_norms(self._rows(np.arange(len(self)), self._fullest(x)))

    def _fullest(self, x: Array) -> Int64s:
        """The first fullest link of each round."""
        return np.asarray((self._carried(x) - self._offsets()).argmax(axis=1))

    def _rows(self, rounds: Int64s, links: Int64s) -> Any:
        """What a unit on each path puts on a link in a round, sparse, one pair of them a row."""
        from scipy.sparse import csr_array

        on, demands = self._loads, self._host("demands")
        counts = np.diff(on.starts)[links]
        starts = np.concatenate([[0], np.cumsum(counts)])
        number = np.arange(starts[-1]) + np.repeat(on.starts[links] - starts[:-1], counts)
        data = on.load[number] * demands[np.repeat(rounds, counts), on.pair[number]]
        return csr_array((data, on.path[number], starts), shape=(len(links), self.shape[0]))

    def halfspaces(self) -> Halfspaces:
        return self.epigraph()

    def epigraph(self) -> Halfspaces:
        rounds = np.repeat(np.arange(len(self)), self._links)
        A = self._rows(rounds, np.tile(np.arange(self._links), len(self)))
        return Halfspaces(A, self._each_offset(), rounds)

    def offsets(self) -> Floats:
        return self._each_offset()

    def many_rows(self) -> ManyRows | None:
        return LoadRows(self) if len(self) * len(self._loads.load) > MANY else None

    def _each_offset(self) -> Floats:
        offsets = np.broadcast_to(self._offsets(), (len(self), self._links))
        return offsets.astype(np.float64).reshape(-1)


def example_loads() -> tuple[tuple[Any, Any, Any, Any], tuple[Any, Any, Any, Any]]:
    """Two examples of (incidence, demands, a number for each round and link, pairs)."""
    from scipy.sparse import csr_array

    shared = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    return (
        (
            csr_array(shared),
            [[4.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 3.0, 2.0]],
            [[2.0, 1.0, 0.0], [0.0, -0.5, 0.0], [1.0, 4.0, 1.0]],
            [0, 0, 1, 2],
        ),
        (
            [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]],
            [[2.0, 1.0], [2.0, 1.0]],
            [[1.0, 0.5], [0.75, 1.0]],
            [0, 0, 1],
        ),
    )


@final
class LoadRows(ManyRows):
    """The pieces of every round: the links of the first, then of the second, .."""

    def __init__(self, loads: LinkLoads) -> None:
        self._loads, self._links = loads, loads._links
        self.shape = (len(loads) * self._links, loads.shape[0])

    def __getitem__(self, rows: Int64s) -> Any:
        return self._loads._rows(*np.divmod(rows, self._links))

    def __matmul__(self, x: Floats) -> Floats:
        return self._loads._carried(x).reshape(-1)

    def parts(self) -> Iterator[Any]:
        stored = len(self._loads._loads.load)
        step = self._links * max(1, AT_A_TIME // max(1, stored))
        for start in range(0, self.shape[0], step):
            yield self[np.arange(start, min(start + step, self.shape[0]))]
