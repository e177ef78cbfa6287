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

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeAlias, final

import numpy as np

from tidewolf.core import batch, settings
from tidewolf.core.arrays import as_array, as_number, frozen, like, to_numpy
from tidewolf.core.errors import WrongShape
from tidewolf.core.sparse import as_sparse, csr_array, is_sparse, row_norms, row_of_each
from tidewolf.core.types import Array, Floats, Int64s, NDArray, Shape
from tidewolf.functions import base, linear

# Stored numbers of all half-spaces together from which on they are made some at a time, and about
# how many then stand in one table.
MANY, AT_A_TIME = 10**6, 2**16


@dataclass(frozen=True)
class Matrix(base.Uncopied):
    def __call__(self, value: Any, what: str) -> Any:
        matrix = as_sparse(value, what) if is_sparse(value) else as_array(value, what)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise WrongShape(f"{what} must be a matrix with entries, not {tuple(matrix.shape)}.")
        return matrix


PathIncidence: TypeAlias = Annotated[Any, Matrix()]
PairDemands: TypeAlias = Annotated[Array, base.PerRound()]
PairOfPath: TypeAlias = Annotated[Array, base.WholeNumbers()]


class _Loads(NamedTuple):
    """What a unit of each pair's demand puts on links, one stored number after the other.

    Attributes
    ----------
    load : Floats
        Of a unit of demand, in units of the link.
    starts : NDArray
        Where the numbers of each link start.
    """

    link: NDArray
    path: NDArray
    pair: NDArray
    load: Floats
    starts: NDArray


class OverPaths(base.ArrayBatch):
    of_all_rounds: ClassVar[tuple[str, ...]] = ("_loads",)

    incidence: Any
    demands: Array
    pairs: Array

    def _scaled(self, load: Floats, link: NDArray) -> Floats:
        return load

    @property
    def _links(self) -> int:
        return int(self.incidence.shape[0])

    def _complete(self) -> None:
        self._require(self.demands.ndim == 2, "demands", "have shape (rounds, pairs)", WrongShape)
        self._match("pairs", self.shape, self.pairs)
        columns, names = int(self.demands.shape[1]), len(self.__dict__.get("names", ()))
        fits = self.pairs.max(initial=0) < columns
        self._require(fits, "pairs", f"be columns of demands, from 0 to {columns - 1}")
        due = f"be one for each of {self._links} links"
        self._require(names in (0, self._links), "names", due, WrongShape)

    @property
    def shape(self) -> Shape:
        return (int(self.incidence.shape[1]),)

    def view(self, rounds: slice) -> Self:
        for name in self.of_all_rounds:
            getattr(self, name)  # made once, for all views
        return super().view(rounds)

    @cached_property
    def _loads(self) -> _Loads:
        A = self.incidence if is_sparse(self.incidence) else csr_array(to_numpy(self.incidence))
        link, path = row_of_each(A), A.indices
        load = self._scaled(A.data, link).astype(np.float64, copy=False)
        return _Loads(link, path, self.pairs[path], load, A.indptr)

    def _carried(self, x: Array) -> Floats:
        """What each link carries, (rounds, links), at one point or at a point for each round."""
        on, demands = self._loads, self._host("demands")
        x, carried = to_numpy(x).astype(np.float64, copy=False), np.empty((len(self), self._links))
        if x.ndim == 2:
            for link in range(self._links):  # rounds x stored numbers would be a large table
                some = slice(on.starts[link], on.starts[link + 1])
                carried[:, link] = (x[:, on.path[some]] * demands[:, on.pair[some]]) @ on.load[some]
            return carried
        if len(self) == 1:
            return np.asarray(self._round @ x)[None, :]
        shape = (self._links, demands.shape[1])
        unit = csr_array((on.load * x[on.path], on.pair, on.starts), shape=shape)
        step = max(1, AT_A_TIME // demands.shape[1])
        for start in range(0, len(self), step):  # a product copies what it is given
            carried[start : start + step] = (unit @ demands[start : start + step].T).T
        return carried

    @cached_property
    def _round(self) -> Any:
        on, shape = self._loads, (self._links, self.shape[0])
        return csr_array((on.load * self._host("demands")[0, on.pair], on.path, on.starts), shape)

    def _host(self, name: str) -> NDArray:
        return to_numpy(self.__dict__[name])


class LinkLoads(OverPaths, linear.LargestPiece):
    @abstractmethod
    def _offsets(self) -> Floats:
        """What is subtracted, (rounds, links) or (rounds, 1)."""

    def _divisors(self) -> Floats | None:
        """What loads are divided by, (rounds, links), if it changes from round to round."""
        return None

    def pieces(self, x: Array) -> Array:
        """What each link carries, less its offset, as (rounds, links)."""
        return like(self._carried(x) - self._offsets(), x)

    def subgradient(self, x: Array, weights: Array) -> Array:
        on, demands, w = self._loads, self._host("demands"), to_numpy(weights)
        fullest, divisors = self._fullest(x), self._divisors()
        if divisors is not None:
            w = w / divisors[np.arange(len(self)), fullest]
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

    def _rows(self, rounds: Int64s, links: Int64s) -> Any:
        """What a unit on each path puts on a link in a round, sparse, one pair of them a row."""
        on, demands = self._loads, self._host("demands")
        counts = np.diff(on.starts)[links]
        starts = np.concatenate([[0], np.cumsum(counts)])
        number = np.arange(starts[-1]) + np.repeat(on.starts[links] - starts[:-1], counts)
        data = on.load[number] * demands[np.repeat(rounds, counts), on.pair[number]]
        if (divisors := self._divisors()) is not None:
            data = data / np.repeat(divisors[rounds, links], counts)
        return csr_array((data, on.path[number], starts), shape=(len(links), self.shape[0]))

    def halfspaces(self) -> batch.Halfspaces:
        return self.epigraph()

    def epigraph(self) -> batch.Halfspaces:
        rounds = np.repeat(np.arange(len(self)), self._links)
        A = self._rows(rounds, np.tile(np.arange(self._links), len(self)))
        return batch.Halfspaces(A, LinkLoads.offsets(self), rounds)

    def offsets(self) -> Floats:
        offsets = np.broadcast_to(self._offsets(), (len(self), self._links))
        return offsets.astype(np.float64).reshape(-1)

    def many_rows(self) -> "LoadRows | None":
        """The rows of the half-spaces, where all together would be a large table."""
        return LoadRows(self) if len(self) * len(self._loads.load) > MANY else None


def example_loads() -> tuple[tuple[Any, Any, Any, Any], tuple[Any, Any, Any, Any]]:
    shared = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    demands = [[4.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 3.0, 2.0]]
    numbers = [[2.0, 1.0, 0.0], [0.0, -0.5, 0.0], [1.0, 4.0, 1.0]]
    two, same = [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]], [[2.0, 1.0], [2.0, 1.0]]
    second = two, same, [[1.0, 0.5], [0.75, 1.0]], [0, 0, 1]
    return (csr_array(shared), demands, numbers, [0, 0, 1, 2]), second


@final
class LoadRows:
    """The rows A of half-spaces A x <= b that never stand in one table: the pieces of every round,
    the links of the first, then of the second, ..; `A[rows]`, `A @ x` and `parts` make some.
    """

    def __init__(self, loads: LinkLoads) -> None:
        self._loads, self._links, self.offsets = loads, loads._links, loads.offsets()
        self.shape = (len(loads) * self._links, loads.shape[0])

    def __getitem__(self, rows: Int64s) -> Any:
        return self._loads._rows(*np.divmod(rows, self._links))

    def __matmul__(self, x: Floats) -> Floats:
        return self._loads._carried(x).reshape(-1)

    def parts(self) -> Iterator[Any]:
        step = self._links * max(1, AT_A_TIME // max(1, len(self._loads._loads.load)))
        for start in range(0, self.shape[0], step):
            yield self[np.arange(start, min(start + step, self.shape[0]))]

    def each(self, number: Callable[[Any], Floats]) -> Floats:
        return np.concatenate([number(part) for part in self.parts()])


# What links cost for the loads they carry, when demands are split over paths:
#
#     f_t(x) = sum_l costs[t, l] sum_p incidence[l, p] demands[t, pairs[p]] x_p
#
# with x_p the share of the demand of pair pairs[p] that takes path p: linear, with the coefficients
# demands[t, pairs[p]] sum_l incidence[l, p] costs[t, l]. These are made on demand, for the rounds
# that are used: a table of rounds by paths would be many times what is given.


@final
@dataclass(frozen=True, eq=False, repr=False)
class LoadCost(OverPaths, linear.AffineRows):
    """The cost of link loads, if demands are split over paths.

    Parameters
    ----------
    incidence : array
        The load per unit of each path on each link, (links, paths): 1 if the path uses the
        link. Dense, or a sparse array of SciPy.
    demands : array
        The demand of each pair, (rounds, pairs).
    costs : array
        The cost per unit on each link, (rounds, links).
    pairs : array
        For each path the pair it serves, a column of `demands`.

    Examples
    --------
    >>> incidence = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]  # two links, three paths
    >>> f = tw.functions.LoadCost(incidence, [[4.0, 1.0]], [[1.0, 2.0]], pairs=[0, 0, 1])
    >>> f.values(np.array([0.5, 0.5, 1.0]))  # 4 * 0.5 + 1 on the first, 4 * 0.5 on the other
    array([7.])
    >>> f.subgradient(np.array([0.5, 0.5, 1.0]), np.ones(1))
    array([4., 8., 1.])
    """

    by_round = ("demands", "costs")
    of_all_rounds = ("_loads", "_per_path")

    incidence: PathIncidence
    demands: PairDemands
    costs: Annotated[Array, base.PerRound()]
    pairs: PairOfPath

    def _complete(self) -> None:
        super()._complete()
        self._match("costs", (len(self), self._links), self.demands)

    @classmethod
    def one(cls, incidence: Any, demands: Array, costs: Array, pairs: Array) -> Self:
        """A single round with these demands, one of each pair, and costs, one of each link."""
        demands = base.one_round(demands, "demands of LoadCost.one")
        return cls(incidence, demands, base.one_round(costs, "costs of LoadCost.one"), pairs)

    def values(self, x: Array) -> Array:
        return like(np.vecdot(self._carried(x), self._host("costs")), x)

    def values_at(self, points: Array) -> Array:
        x = to_numpy(points)
        parts = [np.vecdot(self._coefficients(some), x[some]) for some in self._parts()]
        return like(np.concatenate(parts), points)

    def subgradient(self, x: Array, weights: Array) -> Array:
        return like(self._weighted(to_numpy(weights).astype(np.float64, copy=False)), x)

    def gradients(self, x: Array) -> Array:
        return like(self._a, x)

    def slopes(self, x: Array) -> Floats:
        return np.concatenate([row_norms(self._coefficients(some)) for some in self._parts()])

    def total(self) -> tuple[Floats, float]:
        return self._weighted(np.ones(len(self))), 0.0

    @property
    def _a(self) -> Floats:
        return self._coefficients(slice(None))

    def _coefficients(self, rounds: slice) -> Floats:
        return self._alone if len(self) == 1 else self._rows_of(rounds)

    @cached_property
    def _alone(self) -> Floats:
        return frozen(self._rows_of(slice(None)))

    def _rows_of(self, rounds: slice) -> Floats:
        demands, costs = self._host("demands")[rounds], self._host("costs")[rounds]
        per_path = (self._per_path @ costs.T.astype(np.float64, copy=False)).T
        return np.asarray(demands[:, self.pairs] * per_path)

    @cached_property
    def _per_path(self) -> Any:
        on, shape = self._loads, (self._links, self.shape[0])
        return csr_array((on.load, on.path, on.starts), shape=shape).T.tocsr()

    def _weighted(self, weights: Floats) -> Floats:
        """The coefficients of all rounds, weighted and added up: those of demands times costs."""
        on, demands, costs = self._loads, self._host("demands"), self._host("costs")
        if len(self) == 1:
            return np.asarray(weights[0] * self._coefficients(slice(None))[0])
        together = (weights[:, None] * demands).T @ costs
        loads: Floats = on.load * together[on.pair, on.link]
        return np.asarray(np.bincount(on.path, loads, self.shape[0]), dtype=np.float64)

    def _parts(self) -> Iterator[slice]:
        step = max(1, AT_A_TIME // self.shape[0])
        for start in range(0, max(1, len(self)), step):
            yield slice(start, start + step)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        first, second = example_loads()
        return cls(*first), cls.one([[1.0]], [2.0], [1.0], [0]), cls(*second)


# Capacities of links that demands share, which are split over paths:
#
#     g_t(x) = max_l  sum_p incidence[l, p] demands[t, pairs[p]] x_p  -  capacities[t, l]
#
# with x_p the share of the demand of pair pairs[p] that takes path p: positive by as much as the
# most overloaded link is over its capacity, in the unit of demands and capacities. Where every
# round has the same demands, only the smallest capacity of each link matters over many rounds.


@final
@dataclass(frozen=True, eq=False, repr=False)
class LoadLimit(LinkLoads):
    """The largest overload of a link, if demands are split over paths.

    Parameters
    ----------
    incidence : array
        The load per unit of each path on each link, (links, paths): 1 if the path uses the
        link. Dense, or a sparse array of SciPy.
    demands : array
        The demand of each pair, (rounds, pairs).
    capacities : array
        The capacity of each link, (rounds, links).
    pairs : array
        For each path the pair it serves, a column of `demands`.
    names : tuple of str, default ()
        The names of the links; may be empty.

    Examples
    --------
    >>> incidence = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]  # two links, three paths
    >>> g = tw.functions.LoadLimit(incidence, [[4.0, 1.0]], [[2.0, 4.0]], pairs=[0, 0, 1])
    >>> g.values(np.array([0.5, 0.5, 1.0]))  # 4 * 0.5 + 1 on the first, which may carry 2
    array([1.])
    >>> g.subgradient(np.array([0.5, 0.5, 1.0]), np.ones(1))
    array([4., 0., 1.])
    """

    by_round = ("demands", "capacities")

    incidence: PathIncidence
    demands: PairDemands
    capacities: Annotated[Array, base.PerRound()]
    pairs: PairOfPath
    names: Annotated[tuple[str, ...], settings.NAMES] = ()

    def _complete(self) -> None:
        super()._complete()
        self._match("capacities", (len(self), self._links), self.demands)

    @classmethod
    def one(
        cls,
        incidence: Any,
        demands: Array,
        capacities: Array,
        pairs: Array,
        names: Sequence[str] = (),
    ) -> Self:
        """A single round with these demands, one of each pair, and capacities, one of each link."""
        demands = base.one_round(demands, "demands of LoadLimit.one")
        capacities = base.one_round(capacities, "capacities of LoadLimit.one")
        return cls(incidence, demands, capacities, pairs, tuple(names))

    def _offsets(self) -> Floats:
        return np.asarray(self._host("capacities"))

    def halfspaces(self) -> batch.Halfspaces:
        if not self._same_demands():
            return self.epigraph()
        capacities, links = self._host("capacities").astype(np.float64), np.arange(self._links)
        tightest = capacities.argmin(axis=0)
        return batch.Halfspaces(self._rows(tightest, links), capacities.min(axis=0), tightest)

    def offsets(self) -> Floats:
        if not self._same_demands():
            return super().offsets()
        return np.asarray(self._host("capacities").astype(np.float64).min(axis=0))

    def many_rows(self) -> LoadRows | None:
        return None if self._same_demands() else super().many_rows()

    def _same_demands(self) -> bool:
        demands = self._host("demands")
        return len(self) > 1 and bool((demands == demands[0]).all())

    @classmethod
    def examples(cls) -> Sequence[Self]:
        first, second = example_loads()
        names = ("SEA > DEN", "DEN > NYC", "SEA > NYC")
        return cls(*first, names), cls.one([[1.0]], [2.0], [1.0], [0]), cls(*second)


# The fullest link when demands are split over paths:
#
#     f_t(x) = max_l  sum_p incidence[l, p] demands[t, pairs[p]] x_p / capacities[t, l]  -  limit_t
#
# with x_p the share of the demand of pair pairs[p] that takes path p. As a constraint: no link is
# fuller than limit_t.


@final
@dataclass(frozen=True, eq=False, repr=False)
class MaxUtilization(LinkLoads):
    """The largest utilisation of a link, if demands are split over paths, minus a limit.

    With `limit` it is a constraint that is satisfied if no link is fuller. If demands are divided
    by the least utilisation possible in their round, 1 is optimal.

    Parameters
    ----------
    incidence : array
        The load per unit of each path on each link, (links, paths): 1 if the path uses the
        link. Dense, or a sparse array of SciPy.
    demands : array
        The demand of each pair, (rounds, pairs).
    capacities : array
        The capacity of each link, above 0: of shape (links,), or (rounds, links) if it changes.
    pairs : array
        For each path the pair it serves, a column of `demands`.
    limit : array, default 0.0
        The limit: a number, or one per round.
    names : tuple of str, default ()
        The names of the links; may be empty.

    Examples
    --------
    >>> incidence = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]  # two links, three paths
    >>> f = tw.functions.MaxUtilization(incidence, [[4.0, 1.0]], [2.0, 4.0], pairs=[0, 0, 1])
    >>> f.values(np.array([0.5, 0.5, 1.0]))  # (4 * 0.5 + 1)/2 on the first, 4 * 0.5/4 on the other
    array([1.5])
    >>> f.subgradient(np.array([0.5, 0.5, 1.0]), np.ones(1))
    array([2. , 0. , 0.5])
    """

    incidence: PathIncidence
    demands: PairDemands
    capacities: Annotated[Array, base.Uncopied()]
    pairs: PairOfPath
    limit: Annotated[Array, base.Uncopied()] = 0.0
    names: Annotated[tuple[str, ...], settings.NAMES] = ()

    def _complete(self) -> None:
        super()._complete()
        if self.limit.ndim == 0:
            spread = np.full(len(self), float(self.limit))
            object.__setattr__(self, "limit", like(spread, self.demands))
        self._match("limit", (len(self),), self.demands)
        rounds = (len(self),) * (self.capacities.ndim == 2)
        self._match("capacities", (*rounds, self._links), self.demands)
        self._require((to_numpy(self.capacities) > 0).all(), "capacities", "be above 0")

    @classmethod
    def one(
        cls, incidence: Any, demands: Array, capacities: Array, pairs: Array, limit: float = 0.0
    ) -> Self:
        """A single round with these demands, one of each pair."""
        limit = as_number(limit, "limit of MaxUtilization.one")
        demands = base.one_round(demands, "demands of MaxUtilization.one")
        return cls(incidence, demands, capacities, pairs, limit)

    def _offsets(self) -> Floats:
        return np.asarray(self._host("limit")[:, None])

    @property
    def by_round(self) -> tuple[str, ...]:
        return ("demands", "limit", *["capacities"] * (self.capacities.ndim == 2))

    def _divisors(self) -> Floats | None:
        return self._host("capacities") if self.capacities.ndim == 2 else None

    def _scaled(self, load: Floats, link: NDArray) -> Floats:
        if self.capacities.ndim == 2:
            return load
        return load / to_numpy(self.capacities).astype(np.float64)[link]

    def _carried(self, x: Array) -> Floats:
        carried, divisors = super()._carried(x), self._divisors()
        return carried if divisors is None else carried / divisors

    @classmethod
    def examples(cls) -> Sequence[Self]:
        (incidence, demands, _, pairs), second = example_loads()
        return (
            cls(incidence, demands, np.array([[2.0, 4.0, 0.5]] * 3) + np.eye(3), pairs),
            cls(incidence, demands, [2.0, 4.0, 0.5], pairs, [0.5, 0.25, 1.0]),
            cls.one([[1.0]], [2.0], [1.0], [0]),
            cls(second[0], [[2.0, 1.0], [1.0, 2.0]], [1.0, 1.0], second[3]),
        )


def utilisation(limits: batch.Batch, points: Array) -> Floats | None:
    """Load over capacity in each round, (rounds, links), at one point for all of them, (1, *shape),
    or at one each; None if the limits are no capacities. A load without capacity is infinite.
    """
    if isinstance(limits, linear.Capacity):
        return share(to_numpy(base.rows(points)), to_numpy(base.rows(limits.c)))
    if not isinstance(limits, LoadLimit | MaxUtilization):
        return None
    carried = limits._carried(points[0, ...] if points.shape[0] == 1 else points)
    return share(carried, limits._offsets()) if isinstance(limits, LoadLimit) else carried


def share(loads: Floats, capacities: Floats) -> Floats:
    """Loads over capacities; infinite if there is no capacity for a load."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(capacities > 0.0, loads / capacities, np.where(loads > 1e-12, np.inf, 0.0))
