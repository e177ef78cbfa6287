"""Cheapest flows within the capacities of single rounds, on graphs with many nodes, by the network
simplex (kernels/network_simplex.py).

    min <c, x>   over   flows x,  lower <= x <= min(upper, capacity - k room + s)

s = 0 if a flow exists, else the least s for which one does: a cut that is too small for its supply
by v, with q arcs out of it that s widens, shows that s must grow by v/q at least.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from tidewolf.core import arrays, errors
from tidewolf.core.types import Array, Floats
from tidewolf.sets.capacitated_flow import CapacitatedFlow, FlowNetwork, cut_capacity, violated_cut
from tidewolf.sets.flows import DagFlows

_CUTS = 100


class FlowModel:
    def __init__(self, K: Any, network: FlowNetwork, entries: Any) -> None:
        self.K, self.network, self.entries = K, network, entries
        self._others = np.delete(np.arange(K.shape[0]), entries)

    @classmethod
    def of(cls, K: Any) -> Self | None:
        if type(K.center) is not np.ndarray or K.center.dtype != np.float64:
            return None
        if isinstance(K, CapacitatedFlow):
            return cls(K, K.network, np.arange(K.shape[0]))
        if not isinstance(K, DagFlows):
            return None
        entries, tails, heads = K._arcs
        bounds = np.zeros(len(entries)), K._upper[entries]
        nodes = tuple(range(len(K._supply)))
        return cls(K, FlowNetwork(tails, heads, *bounds, K._supply.copy(), nodes), entries)

    def solve(
        self, c: Floats, capacities: Floats, rooms: Floats | None, headrooms: Floats, tree: Any
    ) -> tuple[tuple[Array | None, ...], Array | None]:
        """The cheapest flow for each headroom, None if none was found, each from the basis of the
        one before it; and the last basis.
        """
        points = list[Array | None]()
        for k in headrooms.tolist():
            kept = capacities if rooms is None or k == 0.0 else capacities - k * rooms
            try:
                x, tree = self._cheapest(c[self.entries], kept, tree)
            except errors.SolverFailed:
                x = None
            points.append(x)
        return tuple(points), tree

    def _cheapest(self, c: Floats, capacities: Floats, tree: Any) -> tuple[Array, Array]:
        net, kept = self.network, capacities[self.entries]
        # entries that never carry anything have capacities, too
        others = -float(capacities[self._others].min(initial=0.0))
        s = max(0.0, float((net.lower - kept).max()), others)
        for _ in range(_CUTS):
            upper = np.maximum(net.lower, np.minimum(net.upper, kept + s))
            tight = replace(net, upper=upper)
            try:
                found = tight.cheapest(c, tree)
            except errors.SolverFailed:
                cut = violated_cut(tight)
                if cut is None:
                    raise
                out = cut[net.tails] & ~cut[net.heads] & (kept + s < net.upper)
                short = float(net.supply[cut].sum()) - cut_capacity(tight, cut)
                if not out.any():
                    raise
                s += max(short, tight.nothing(upper)) / np.count_nonzero(out)
                continue
            x = np.zeros(self.K.shape)
            x[self.entries] = found.x
            return arrays.frozen(x), found.basis
        raise errors.SolverFailed(f"No flow was found within {_CUTS} cuts.")
