"""Two-connected blocks of an undirected graph (Hopcroft and Tarjan 1973): edges on a common cycle
share a block.

A depth-first walk numbers the nodes; `low` is the smallest number that a node's part of the walk
reaches by one edge back. Where a child's low is not below its parent's number, the edges walked
since the child was met are a block. A bridge is a block of one edge, parallel edges are a cycle,
and a loop is a block by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidewolf.core.types import Int32s
from tidewolf.kernels.blocks import label_blocks


class Blocks(NamedTuple):
    """The block of every edge and the connected part of every node, numbered from 0."""

    of_edge: Int32s
    part_of_node: Int32s
    number: int


class Incidence(NamedTuple):
    """Edges at node v are edges[first[v]] .. edges[first[v + 1]]; a loop is there twice."""

    first: Int32s
    edges: Int32s


def incidence(ends: Int32s, nodes: int) -> Incidence:
    """The edges at every node."""
    touched = ends.T.reshape(-1)
    by_node = np.argsort(touched, kind="stable")
    first = np.searchsorted(touched[by_node], np.arange(nodes + 1)).astype(np.int32)
    return Incidence(first, (by_node % len(ends)).astype(np.int32))


def blocks(ends: Int32s, nodes: int) -> Blocks:
    """The blocks and parts of a graph whose edges are the rows of `ends`."""
    near = incidence(ends, nodes)
    of_edge, part = np.full(len(ends), -1, dtype=np.int32), np.full(nodes, -1, dtype=np.int32)
    count = int(label_blocks(ends, near.first, near.edges, of_edge, part))
    loops = np.flatnonzero(of_edge < 0)
    of_edge[loops] = np.arange(count, count + len(loops))
    return Blocks(of_edge, part, count + len(loops))
