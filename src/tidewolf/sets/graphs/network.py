"""A network with bounds on its arcs and supplies at its nodes, and its cheapest flows by the
network simplex (kernels/network_simplex.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.errors import SolverFailed
from tidewolf.core.types import Floats, Int32s, NDArray
from tidewolf.core.values import Value
from tidewolf.kernels import network_simplex as simplex
from tidewolf.kernels.network_simplex import ROUNDING
from tidewolf.sets.graphs.scaling import Arcs, Basis, scaled_basis

SCALED = 10_000
"""From how many arcs on cost scaling finds a first basis."""

WARM = 3
"""How many pivots a node may take there from another basis, before cost scaling is quicker."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class FlowNetwork(Value):
    """Arcs between numbered nodes, their bounds, and what every node supplies
    (draws, where negative).
    """

    tails: Int32s
    heads: Int32s
    lower: Floats
    upper: Floats
    supply: Floats
    nodes: tuple[Hashable, ...] = field(metadata={"label": True})

    def __post_init__(self) -> None:
        for part in (self.tails, self.heads, self.lower, self.upper, self.supply):
            frozen(part)

    @cached_property
    def room(self) -> Floats:
        """Between the bounds of every arc."""
        return self.upper - self.lower

    @cached_property
    def left(self) -> Floats:
        """What every node supplies beyond the lower bounds; what rounding alone could leave counts
        as nothing.
        """
        left, size = self.supply - self.balance(self.lower), np.abs(self.lower)
        at_node = (
            np.abs(self.supply)
            + np.bincount(self.tails, size, len(left))
            + np.bincount(self.heads, size, len(left))
        )
        return np.where(np.abs(left) <= 1e-3 * ROUNDING * at_node, 0.0, left)

    def balance(self, x: NDArray) -> Floats:
        """What leaves every node less what enters it."""
        count = len(self.supply)
        return np.asarray(
            np.bincount(self.tails, x, count) - np.bincount(self.heads, x, count), dtype=np.float64
        )

    @cached_property
    def floor(self) -> float:
        """An amount that is nothing beside what is supplied and must be carried."""
        return ROUNDING * float(max(np.abs(self.supply).sum(), np.abs(self.lower).max()))

    def nothing(self, flow: Floats) -> float:
        """An amount that is nothing beside a flow, too."""
        return max(self.floor, ROUNDING * float(np.abs(flow).max()))

    @cached_property
    def _with_root(self) -> Arcs:
        """With the artificial arcs: towards the root where something is to be sent."""
        nodes, sends = np.arange(len(self.supply), dtype=np.int32), self.left >= 0
        root = np.full(len(nodes), len(nodes), dtype=np.int32)
        return (
            np.concatenate([self.tails, np.where(sends, nodes, root)]),
            np.concatenate([self.heads, np.where(sends, root, nodes)]),
            np.concatenate([self.room, np.full(len(nodes), np.inf)]),
        )

    @cached_property
    def start(self) -> PhaseOne:
        """Phase one, from cost scaling's basis where there are many arcs, else from the artificial
        arcs.
        """
        arcs, nodes = len(self.tails), len(self.supply)
        costs = np.concatenate([np.zeros(arcs), np.ones(nodes)])
        artificial = np.concatenate([np.ones(arcs, dtype=np.int8), np.zeros(nodes, dtype=np.int8)])
        bases = [artificial]
        if arcs >= SCALED:
            none = np.zeros(arcs)
            scaled = scaled_basis(costs, self._with_root, self.left, none, self.floor)
            bases = [artificial] if scaled is None else [scaled, artificial]
        for basis in bases:
            flow, gap = self._improved(costs, self._with_root, basis, self._limit)
            if gap >= 0:
                return PhaseOne(frozen(basis), frozen(flow[:arcs]), frozen(flow[arcs:]))
        raise SolverFailed(
            f"The network simplex could not tell within its limit of steps whether {arcs} arcs "
            "have a flow."
        )

    def cheapest(self, costs: Floats, warm: Basis | None = None) -> CheapestFlow:
        """The cheapest flow, from the basis `warm` where that is one of this network's, else from
        cost scaling's where there are many arcs, else from that of phase one.
        """
        arcs, nodes = len(self.tails), len(self.supply)
        unit = float(np.max(np.abs(costs), initial=0.0))
        tails, heads, room = self._with_root
        # nothing may come from the root, so nothing goes there
        room = np.where(tails == nodes, 0.0, room)
        given = np.concatenate([costs / (unit or 1.0), np.zeros(nodes)])
        for basis, limit in self._starts(given, (tails, heads, room), warm):
            flow, gap = self._improved(given, (tails, heads, room), basis, limit)
            if gap >= 0 and float(np.abs(flow[arcs:]).max()) <= self.nothing(flow):
                return CheapestFlow(
                    np.clip(self.lower + flow[:arcs], self.lower, self.upper),
                    unit * gap,
                    frozen(basis),
                )
        raise SolverFailed(
            f"The network simplex found no cheapest flow on {arcs} arcs that keeps its bounds, "
            "within its limit of steps."
        )

    def _starts(self, costs: Floats, arcs: Arcs, warm: Basis | None) -> Iterator[tuple[Basis, int]]:
        """Bases, and how many pivots each may take: from a warm one, on large networks, few enough
        that those from cost scaling are not far.
        """
        large = len(self.tails) >= SCALED and bool(costs.any())
        if warm is not None and self._is_basis(warm):
            yield warm.copy(), WARM * len(self.supply) if large else self._limit
        if large:
            scaled = scaled_basis(costs, arcs, self.left, self.start.flow, self.floor)
            if scaled is not None:
                yield scaled, self._limit
        yield self.start.basis.copy(), self._limit

    @property
    def _limit(self) -> int:
        """More pivots than are ever needed."""
        return 100 * (len(self.tails) + len(self.supply)) + 1000

    def _improved(
        self, costs: Floats, arcs: Arcs, basis: Basis, limit: int
    ) -> tuple[Floats, float]:
        """The flow of the best basis, which `basis` becomes, and its gap; a negative one says that
        there was no start, or no end.
        """
        tails, heads, _ = arcs
        nodes, count = len(self.supply) + 1, len(self.tails)
        flow, pi = np.empty(len(basis)), np.zeros(nodes)
        tree = np.empty((7, nodes), dtype=np.int32)

        def start() -> bool:
            return bool(
                simplex.build_tree(basis, tails, heads, tree)
                and simplex.basic_flow(arcs, self.left, basis, tree, flow, self.floor)
            )

        if (
            not start()
            or not simplex.improve(costs, arcs, (basis, flow, pi), tree, count, self.floor, limit)
            or not start()  # what many pivots rounded is computed afresh
        ):
            return flow, -1.0
        return flow, float(simplex.proved_gap(costs, arcs, count, flow, pi))

    def _is_basis(self, warm: Basis | None) -> bool:
        """Whether it looks like one; whether its tree spans the graph, and its flow keeps the
        bounds, is seen on the way.
        """
        if warm is None or warm.shape != self.start.basis.shape or warm.dtype != np.int8:
            return False
        return bool((warm[len(self.tails) :] >= 0).all())


class PhaseOne(NamedTuple):
    """A basis to start from; where `unsent` is not 0, no flow exists."""

    basis: Basis
    flow: Floats
    """above the lower bounds"""
    unsent: Floats
    """by every node: what it could not send, or did not get"""


class CheapestFlow(NamedTuple):
    """A flow, how much cheaper another could be at most, and the basis it came from."""

    x: Floats
    gap: float
    basis: Basis
