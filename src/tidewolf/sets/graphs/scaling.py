"""A basis near that of the cheapest flow, without a warm start: send the supply at zero cost, make
the flow eps-optimal for a falling eps, and attach it to a tree (kernels/cost_scaling.py).

    eps = 1/16, 1/16^2, ..., `LAST` mean costs / nodes

From there pivots are quicker (kernels/network_simplex.py); they need no more from here than a
start, so what rounding spoils costs time alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tidewolf.core.types import Floats, Int32s
from tidewolf.kernels import cost_scaling as steps
from tidewolf.kernels.network_simplex import ROUNDING, build_tree

FACTOR = 16.0
"""By which eps falls."""

LAST = 50.0

Basis: TypeAlias = np.ndarray[Any, np.dtype[np.int8]]
"""1: at its lower bound, 0: in the tree, -1: at its upper bound; arcs first, then the artificial
arc of every node
"""

Arcs: TypeAlias = tuple[Int32s, Int32s, Floats]
"""Tails, heads and room of all arcs, the artificial ones last."""


class Residual(NamedTuple):
    """A flow in its residual graph, what nodes have too much, and room to work in."""

    graph: tuple[Int32s, Int32s, Int32s, Int32s]
    there: Int32s
    """where every arc leaves its tail"""
    back: Int32s
    """and its head"""
    price: Floats
    able: Floats
    infeasibility: Floats
    heap: tuple[Int32s, Int32s, Floats]
    queues: tuple[Int32s, Int32s, Int32s]

    def refined(self, pi: Floats, lost: Floats, eps: float, tiny: float) -> bool:
        """Make the flow eps-optimal; whether there was an end."""
        graph, _, _, price, able, infeasibility, heap, queues = self
        return bool(
            steps.refine(graph, price, able, pi, infeasibility, lost, heap, queues, eps, tiny)
        )


def scaled_basis(
    costs: Floats, arcs: Arcs, left: Floats, flow: Floats, floor: float
) -> Basis | None:
    """The basis; None where there was no end.

    Costs are at most 1. `flow` carries nothing, or all that is `left` to be sent; amounts like
    `floor` are nothing.
    """
    (tails, heads, room), nodes, count = arcs, len(left), len(flow)
    residual = residual_of(tails[:count], heads[:count], room[:count], left, flow)
    unsent, pi, tiny = np.zeros(nodes), np.zeros(nodes), 0.01 * floor
    if np.abs(residual.infeasibility).max() > tiny and not send(residual, left, unsent, tiny):
        return None
    if mean := float(np.abs(costs[:count]).mean()):
        residual.price[residual.there] = costs[:count]
        residual.price[residual.back] = -costs[:count]
        tiny = max(tiny, 0.01 * ROUNDING * float(room[:count].max()))
        eps, last = 1.0, max(1e-9, LAST * mean / nodes)
        while eps > last:
            eps = max(eps / FACTOR, last)
            if not residual.refined(pi, np.zeros(nodes), eps, tiny):
                return None
    graph, there, back, price, able, _, heap, queues = residual
    empty, full = able[back] <= tiny, able[there] <= tiny
    carried = np.where(empty, 0.0, np.where(full, room[:count], able[back]))
    amounts = np.concatenate([carried, np.where(unsent > tiny, unsent, 0.0)])
    basis = np.where(amounts > 0.0, np.int8(steps.BETWEEN), np.int8(1))
    basis[:count][full & ~empty] = -1
    steps.hang(graph, price, able, pi, left >= 0.0, basis, heap, queues, tiny)
    tree = np.empty((7, nodes + 1), dtype=np.int32)
    if not build_tree(basis, tails, heads, tree):
        return None
    steps.move_to_bounds(costs, arcs, (basis, amounts, np.zeros(nodes + 1)), tree, tiny)
    return basis


def send(residual: Residual, left: Floats, unsent: Floats, tiny: float) -> bool:
    """Send what nodes have too much to those that lack it, at no price; fill `unsent` with what no
    way has room for. Whether there was an end.
    """
    infeasibility, lost = residual.infeasibility, np.zeros(len(left))
    done = residual.refined(np.zeros(len(left)), lost, 1.0, tiny)
    if done and lost.any():  # what cannot arrive goes back to where it came from
        unsent += np.maximum(0.0, -infeasibility)
        infeasibility[:] = lost - np.maximum(0.0, left)
        done = residual.refined(np.zeros(len(left)), np.zeros(len(left)), 1.0, tiny)
        unsent += np.where(left > 0.0, left + infeasibility, 0.0)
    return done


def residual_of(tails: Int32s, heads: Int32s, room: Floats, left: Floats, flow: Floats) -> Residual:
    """That of a flow, at no price."""
    nodes, flow = len(left), np.clip(flow, 0.0, room)
    graph, there, back = residual_graph(tails, heads, nodes)
    able = np.empty(2 * len(flow))
    able[there], able[back] = room - flow, flow
    infeasibility = left - np.bincount(tails, flow, nodes) + np.bincount(heads, flow, nodes)
    order, where, one, two, three = np.empty((5, nodes), dtype=np.int32)
    heap, queues = (order, where, np.empty(nodes)), (one, two, three)
    return Residual(graph, there, back, np.zeros(len(able)), able, infeasibility, heap, queues)


def residual_graph(
    tails: Int32s, heads: Int32s, nodes: int
) -> tuple[tuple[Int32s, Int32s, Int32s, Int32s], Int32s, Int32s]:
    """(first, to, mate, arc), and where every arc leaves its tail, and its head."""
    count, ends = len(tails), np.concatenate([tails, heads])
    places = np.empty(2 * count, dtype=np.int32)
    places[np.argsort(ends, kind="stable")] = np.arange(2 * count)
    there, back = places[:count], places[count:]
    first = np.zeros(nodes + 1, dtype=np.int32)
    np.cumsum(np.bincount(ends, minlength=nodes), out=first[1:])
    to, mate, arc = np.empty((3, 2 * count), dtype=np.int32)
    to[there], to[back] = heads, tails
    mate[there], mate[back] = back, there
    arc[there] = arc[back] = np.arange(count)
    return (first, to, mate, arc), there, back
