"""Where the nodes of a network are drawn.

Distances on paper follow distances in the graph (Kamada and Kawai 1989, by networkx). The picture
is turned so that flow goes from left to right, or from top to bottom, and fitted to a box. The same
graph is always laid out the same.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tidewolf.core.errors import MissingExtra
from tidewolf.core.types import Floats


@lru_cache(maxsize=64)
def node_places(
    nodes: int,
    pairs: tuple[tuple[int, int], ...],
    sources: tuple[int, ...],
    targets: tuple[int, ...],
    box: tuple[float, float],
    down: bool = False,
    seed: int = 0,
) -> tuple[tuple[float, float], ...]:
    """A place in a box of this width and height for each node; another one for another seed."""
    try:
        import networkx as nx
    except ImportError:
        raise MissingExtra(
            'Pictures of networks need networkx: pip install "tidewolf[app]".'
        ) from None
    graph = nx.Graph(pairs)
    graph.add_nodes_from(range(nodes))
    # parts of the graph that no link joins are a little farther apart than the ends of a part
    links = dict(nx.all_pairs_shortest_path_length(graph))
    most = 1 + max(max(row.values()) for row in links.values())
    distances = {i: dict.fromkeys(range(nodes), most) | row for i, row in links.items()}
    start = nx.random_layout(graph, seed=seed) if seed else None
    found = nx.kamada_kawai_layout(graph, dist=distances, pos=start)
    places = _turned(np.array([found[i] for i in range(nodes)]), sources, targets)
    if down:
        places = places[:, ::-1]
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    shares = np.where(span > 1e-6, (places - low) / np.where(span > 1e-6, span, 1.0), 0.5)
    return tuple((float(x), float(y)) for x, y in shares * np.array(box))


def _turned(places: Floats, sources: tuple[int, ...], targets: tuple[int, ...]) -> Floats:
    places = places - places.mean(axis=0)
    ways = (
        places[list(targets)].mean(axis=0) - places[list(sources)].mean(axis=0)
        if sources and targets
        else np.zeros(2)
    )
    if np.hypot(*ways) < 0.1:  # many ways at once: the longest axis lies across
        ways = np.linalg.eigh(places.T @ places)[1][:, -1]
        ways = ways * (np.sign(ways[np.abs(ways).argmax()]) or 1.0)
    cosine, sine = ways / max(float(np.hypot(*ways)), 1e-12)
    found: Floats = places @ np.array([[cosine, -sine], [sine, cosine]])
    return found
