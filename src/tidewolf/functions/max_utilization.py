"""The fullest link when demands are split over paths:

    f_t(x) = max_l  sum_p incidence[l, p] demands[t, pairs[p]] x_p / capacities[l]  -  limit_t

with x_p the share of the demand of pair pairs[p] that takes path p. As a constraint: no link is
fuller than limit_t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np

from tidewolf.core.arrays import as_array, as_number, like, to_numpy
from tidewolf.core.errors import InvalidInput, WrongShape
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.functions.base import PerRound, Uncopied, one_round
from tidewolf.functions.link_loads import (
    LinkLoads,
    PairDemands,
    PairOfPath,
    PathIncidence,
    example_loads,
)


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


@final
@dataclass(frozen=True, eq=False, repr=False)
class MaxUtilization(LinkLoads):
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

    incidence: PathIncidence
    demands: PairDemands
    capacities: Annotated[Array, Uncopied("The capacity of each link, above 0.")]
    pairs: PairOfPath
    limit: Annotated[Array, _Limits("What is subtracted: a number, or one a round.", axes=1)] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_demands()
        if self.limit.ndim == 0:
            spread = np.full(len(self), float(self.limit))
            object.__setattr__(self, "limit", like(spread, self.demands))
        self._match("limit", (len(self),), self.demands)
        self._match("capacities", (self._links,), self.demands)
        capacities = to_numpy(self.capacities)
        for link in np.flatnonzero(capacities <= 0)[:1]:
            raise InvalidInput(
                f"capacities of MaxUtilization are above 0; that of link {link} is "
                f"{capacities[link]:g}.",
                setting="capacities",
            )

    @classmethod
    def one(
        cls, incidence: Any, demands: Array, capacities: Array, pairs: Array, limit: float = 0.0
    ) -> MaxUtilization:
        """A single round with these demands, one of each pair."""
        limit = as_number(limit, "limit of MaxUtilization.one")
        demands = one_round(demands, "demands of MaxUtilization.one")
        return cls(incidence, demands, capacities, pairs, limit)

    def _offsets(self) -> Floats:
        return np.asarray(self._host("limit")[:, None])

    def _scaled(self, load: Floats, link: NDArray) -> Floats:
        return load / to_numpy(self.capacities).astype(np.float64)[link]

    @classmethod
    def examples(cls) -> Sequence[MaxUtilization]:
        (incidence, demands, _, pairs), second = example_loads()
        return (
            cls(incidence, demands, [2.0, 4.0, 0.5], pairs, [0.5, 0.25, 1.0]),
            cls.one([[1.0]], [2.0], [1.0], [0]),
            cls(second[0], [[2.0, 1.0], [1.0, 2.0]], [1.0, 1.0], second[3]),
        )
