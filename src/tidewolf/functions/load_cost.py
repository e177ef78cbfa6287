"""What links cost for the loads they carry, when demands are split over paths:

    f_t(x) = sum_l costs[t, l] sum_p incidence[l, p] demands[t, pairs[p]] x_p

with x_p the share of the demand of pair pairs[p] that takes path p: linear, with the coefficients
demands[t, pairs[p]] sum_l incidence[l, p] costs[t, l]. These are made on demand, for the rounds
that are used: a table of rounds by paths would be many times what is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Self, final

import numpy as np

from tidewolf.core.arrays import like, to_numpy
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.functions.base import (
    Halfspaces,
    LinearTotal,
    PerRound,
    PiecewiseLinear,
    one_round,
    row_norms,
)
from tidewolf.functions.link_loads import (
    AT_A_TIME,
    OverPaths,
    PairDemands,
    PairOfPath,
    PathIncidence,
    example_loads,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class LoadCost(OverPaths, LinearTotal, PiecewiseLinear):
    """What the loads of links cost, when demands are split over paths.

    Parameters
    ----------
    incidence : array
        What a unit on each path puts on each link, of shape (links, paths): 1 where the path
        uses the link. Dense, or a sparse array of SciPy.
    demands : array
        What each pair sends, of shape (rounds, pairs).
    costs : array
        What a unit costs on each link, of shape (rounds, links).
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
    costs: Annotated[Array, PerRound("What a unit costs on each link, of shape (rounds, links).")]
    pairs: PairOfPath

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_demands()
        self._match("costs", (len(self), self._links), self.demands)

    @classmethod
    def one(cls, incidence: Any, demands: Array, costs: Array, pairs: Array) -> LoadCost:
        """A single round with these demands, one of each pair, and costs, one of each link."""
        demands = one_round(demands, "demands of LoadCost.one")
        return cls(incidence, demands, one_round(costs, "costs of LoadCost.one"), pairs)

    def _scaled(self, load: Floats, link: NDArray) -> Floats:
        return load

    def values(self, x: Array) -> Array:
        return like(np.vecdot(self._carried(x), self._host("costs")), x)

    def values_at(self, points: Array) -> Array:
        x = to_numpy(points)
        parts = [np.vecdot(self._coefficients(some), x[some]) for some in self._parts()]
        return like(np.concatenate(parts), points)

    def subgradient(self, x: Array, weights: Array) -> Array:
        return like(self._weighted(to_numpy(weights).astype(np.float64, copy=False)), x)

    def gradients(self, x: Array) -> Array:
        return like(self._coefficients(slice(None)), x)

    def slopes(self, x: Array) -> Floats:
        return np.concatenate([row_norms(self._coefficients(some)) for some in self._parts()])

    def total(self) -> tuple[Floats, float]:
        return self._weighted(np.ones(len(self))), 0.0

    def epigraph(self) -> Halfspaces:
        return self.halfspaces()

    def halfspaces(self) -> Halfspaces:
        rounds = np.arange(len(self))
        return Halfspaces(self._coefficients(slice(None)), self.offsets(), rounds)

    def offsets(self) -> Floats:
        return np.zeros(len(self))

    def _coefficients(self, rounds: slice) -> Floats:
        """Those of some rounds, (rounds, paths)."""
        demands, costs = self._host("demands")[rounds], self._host("costs")[rounds]
        per_path = (self._per_path @ costs.T.astype(np.float64, copy=False)).T
        return np.asarray(demands[:, self.pairs] * per_path)

    @cached_property
    def _per_path(self) -> Any:
        """The incidence, paths by links."""
        from scipy.sparse import csr_array

        on, shape = self._loads, (self._links, self.shape[0])
        return csr_array((on.load, on.path, on.starts), shape=shape).T.tocsr()

    def view(self, rounds: slice) -> Self:
        _ = self._per_path  # made once, for all views
        return super().view(rounds)

    def _weighted(self, weights: Floats) -> Floats:
        """The coefficients of all rounds, weighted and added up: those of demands times costs."""
        on, demands, costs = self._loads, self._host("demands"), self._host("costs")
        if len(self) == 1:
            return np.asarray(weights[0] * self._coefficients(slice(None))[0])
        together = (weights[:, None] * demands).T @ costs
        loads: Floats = on.load * together[on.pair, on.link]
        return np.asarray(np.bincount(on.path, loads, self.shape[0]), dtype=np.float64)

    def _parts(self) -> Iterator[slice]:
        """Some rounds after the others, whose coefficients make a small table; at least one."""
        step = max(1, AT_A_TIME // self.shape[0])
        for start in range(0, max(1, len(self)), step):
            yield slice(start, start + step)

    @classmethod
    def examples(cls) -> Sequence[LoadCost]:
        first, second = example_loads()
        return cls(*first), cls.one([[1.0]], [2.0], [1.0], [0]), cls(*second)
