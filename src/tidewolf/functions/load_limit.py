"""Capacities of links that demands share, which are split over paths:

    g_t(x) = max_l  sum_p incidence[l, p] demands[t, pairs[p]] x_p  -  capacities[t, l]

with x_p the share of the demand of pair pairs[p] that takes path p: positive by as much as the most
overloaded link is over its capacity, in the unit of demands and capacities. Where every round has
the same demands, only the smallest capacity of each link matters over many rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np

from tidewolf.core.errors import WrongShape
from tidewolf.core.piecewise import Halfspaces, ManyRows
from tidewolf.core.settings import Names
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.functions.base import PerRound, one_round
from tidewolf.functions.link_loads import (
    LinkLoads,
    PairDemands,
    PairOfPath,
    PathIncidence,
    example_loads,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class LoadLimit(LinkLoads):
    """By how much the most overloaded link is over its capacity, when demands are split over paths.

    Parameters
    ----------
    incidence : array
        What a unit on each path puts on each link, of shape (links, paths): 1 where the path
        uses the link. Dense, or a sparse array of SciPy.
    demands : array
        What each pair sends, of shape (rounds, pairs).
    capacities : array
        What each link may carry, of shape (rounds, links).
    pairs : array
        For each path the pair it serves, a column of `demands`.
    names : tuple of str, default ()
        What the links are called; empty where they have no names.

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
    capacities: Annotated[Array, PerRound("What each link may carry, of shape (rounds, links).")]
    pairs: PairOfPath
    names: Annotated[
        tuple[str, ...],
        Names("What the links are called; empty where they have no names."),
    ] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_demands()
        self._match("capacities", (len(self), self._links), self.demands)
        if self.names and len(self.names) != self._links:
            raise WrongShape(
                f"names of LoadLimit are one for each of the {self._links} links, not "
                f"{len(self.names)}.",
                setting="names",
            )

    @classmethod
    def one(
        cls,
        incidence: Any,
        demands: Array,
        capacities: Array,
        pairs: Array,
        names: Sequence[str] = (),
    ) -> LoadLimit:
        """A single round with these demands, one of each pair, and capacities, one of each link."""
        demands = one_round(demands, "demands of LoadLimit.one")
        capacities = one_round(capacities, "capacities of LoadLimit.one")
        return cls(incidence, demands, capacities, pairs, tuple(names))

    def _offsets(self) -> Floats:
        return np.asarray(self._host("capacities"))

    def _scaled(self, load: Floats, link: NDArray) -> Floats:
        return load

    def halfspaces(self) -> Halfspaces:
        if not self._same_demands():
            return self.epigraph()
        capacities, links = self._host("capacities").astype(np.float64), np.arange(self._links)
        tightest = capacities.argmin(axis=0)
        return Halfspaces(self._rows(tightest, links), capacities.min(axis=0), tightest)

    def offsets(self) -> Floats:
        if not self._same_demands():
            return super().offsets()
        return np.asarray(self._host("capacities").astype(np.float64).min(axis=0))

    def many_rows(self) -> ManyRows | None:
        return None if self._same_demands() else super().many_rows()

    def _same_demands(self) -> bool:
        """Whether there are several rounds, and all have the demands of the first."""
        demands = self._host("demands")
        return len(self) > 1 and bool((demands == demands[0]).all())

    @classmethod
    def examples(cls) -> Sequence[LoadLimit]:
        first, second = example_loads()
        names = ("SEA > DEN", "DEN > NYC", "SEA > NYC")
        return cls(*first, names), cls.one([[1.0]], [2.0], [1.0], [0]), cls(*second)
