"""Graphs to measure on."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

Edges = list[tuple[Hashable, Hashable]]


def layered(layers: int, width: int, degree: int, seed: int = 1) -> Edges:
    """`layers` layers of `width` nodes, each with `degree` arcs to random nodes of the next; source
    "s", target "t".
    """
    rng = np.random.default_rng(seed)
    edges: Edges = [("s", (0, i)) for i in range(width)]
    for layer in range(layers - 1):
        for i in range(width):
            edges += [
                ((layer, i), (layer + 1, int(j))) for j in rng.choice(width, degree, replace=False)
            ]
    return [*edges, *(((layers - 1, i), "t") for i in range(width))]


def random_dag(nodes: int, arcs: int, seed: int = 1) -> Edges:
    """A chain 0 -> nodes - 1 plus random forward arcs of mean length 100."""
    rng = np.random.default_rng(seed)
    tails = rng.integers(0, nodes - 1, arcs - nodes + 1)
    heads = np.minimum(nodes - 1, tails + rng.geometric(0.01, len(tails)))
    return [
        *((i, i + 1) for i in range(nodes - 1)),
        *zip(tails.tolist(), heads.tolist(), strict=True),
    ]


def backbone(nodes: int, link_rows: int, seed: int = 0) -> Edges:
    """A ring with random chords, every cable in both directions: the ways there first."""
    rng = np.random.default_rng(seed)
    ring = {(i, i + 1) for i in range(nodes - 1)} | {(0, nodes - 1)}
    chords = {(a, b) for a in range(nodes) for b in range(a + 1, nodes)} - ring
    chosen = sorted(ring) + [
        sorted(chords)[i] for i in sorted(rng.choice(len(chords), link_rows - nodes, replace=False))
    ]
    return [*chosen, *((b, a) for a, b in chosen)]
