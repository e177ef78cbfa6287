"""Where the nodes of a network are drawn.

Distances on paper follow distances in the graph, by stress majorisation (Gansner, Koren and North,
2004): with d_ij the fewest links between i and j and w_ij = 1/d_ij^2,

    minimise  sum_ij w_ij (|p_i - p_j| - d_ij)^2,    p_i <- mean_j, weighted by w_ij, of
                                                     p_j + d_ij (p_i - p_j)/|p_i - p_j|

The picture is turned so that flow goes from left to right, or from top to bottom, and fitted to a
box. Then nodes move a little, one at a time, where that saves crossings of links or keeps a node
off a link it does not belong to. The same graph is always laid out the same.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tidewolf.core.types import Floats, Int64s

_STEPS = 120
_SWEEPS = 16
_TIDY = 60
"""Of more nodes, none is moved to save crossings."""
_NEAR = 16.0
"""How far, in pixels, a link stays away from nodes that are not its ends."""
_APART = 46.0
"""How far nodes stay away from each other, where there is room."""
_TOUCHING = 26.0
"""How far they stay away at any price."""


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
    places = _stressed(nodes, pairs, sources, targets)
    if down:
        places = places[:, ::-1]
    places = _fitted(places, box)
    if 2 < nodes <= _TIDY:
        places = _tidied(places, np.array(pairs, dtype=np.int64).reshape(-1, 2), box, seed)
    return tuple((float(x), float(y)) for x, y in places)


def _stressed(
    nodes: int,
    pairs: tuple[tuple[int, int], ...],
    sources: tuple[int, ...],
    targets: tuple[int, ...],
) -> Floats:
    """Places of least stress, turned so that targets are to the right of sources."""
    distances = _distances(nodes, pairs)
    places = _scaled_apart(distances)
    with np.errstate(divide="ignore"):
        weights = np.where(distances > 0.0, distances**-2.0, 0.0)
    total = weights.sum(axis=1)[:, None]
    for _ in range(_STEPS if nodes > 1 else 0):
        between = places[:, None, :] - places[None, :, :]
        length = np.sqrt((between**2).sum(axis=2))
        pull = weights * distances / np.where(length > 1e-9, length, np.inf)
        places = (weights @ places + (pull[:, :, None] * between).sum(axis=1)) / total
    return _turned(places, sources, targets)


def _distances(nodes: int, pairs: tuple[tuple[int, int], ...]) -> Floats:
    """The fewest links between any two nodes, whichever way they lead; parts that nothing joins are
    a little farther apart than anything that is.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(nodes, nodes))
    found = shortest_path(graph.tocsr(), directed=False, unweighted=True)
    joined = np.isfinite(found)
    apart: Floats = np.where(joined, found, found[joined].max() + 1.0)
    return apart


def _scaled_apart(distances: Floats) -> Floats:
    """A start: the two main axes of classical scaling."""
    nodes = len(distances)
    if nodes == 1:
        return np.zeros((1, 2))
    middle = np.eye(nodes) - 1.0 / nodes
    values, vectors = np.linalg.eigh(-0.5 * middle @ distances**2 @ middle)
    main = vectors[:, [-1, -2]]
    signs = np.sign(main[np.abs(main).argmax(axis=0), [0, 1]])
    found: Floats = main * signs * np.sqrt(np.maximum(values[[-1, -2]], 0.0))
    # nodes that scaling cannot tell apart, the ends of a star, begin on a small circle
    turn = 2.399963 * np.arange(nodes)
    return found + 0.05 * np.stack([np.cos(turn), np.sin(turn)], axis=1)


def _turned(places: Floats, sources: tuple[int, ...], targets: tuple[int, ...]) -> Floats:
    places = places - places.mean(axis=0)
    ways = (
        places[list(targets)].mean(axis=0) - places[list(sources)].mean(axis=0)
        if sources and targets
        else np.zeros(2)
    )
    if np.hypot(*ways) < 0.3:  # many ways at once: the longest axis lies across
        ways = np.linalg.eigh(places.T @ places)[1][:, -1]
        ways = ways * (np.sign(ways[np.abs(ways).argmax()]) or 1.0)
    cosine, sine = ways / max(float(np.hypot(*ways)), 1e-12)
    if not cosine and not sine:
        return places
    found: Floats = places @ np.array([[cosine, -sine], [sine, cosine]])
    return found


def _fitted(places: Floats, box: tuple[float, float]) -> Floats:
    """Stretched to the box."""
    low, high = places.min(axis=0), places.max(axis=0)
    span = high - low
    size = np.array(box)
    shares = np.where(span > 1e-6, (places - low) / np.where(span > 1e-6, span, 1.0), 0.5)
    found: Floats = shares * size
    return found


def _tidied(places: Floats, pairs: Int64s, box: tuple[float, float], seed: int) -> Floats:
    """Fewer crossings, and no node on a link: single nodes moved while that helps."""
    random, places = np.random.default_rng(seed), places.copy()
    size = np.array(box)
    for sweep in range(_SWEEPS):
        reach = 0.28 * size * (1.0 - sweep / _SWEEPS) + 4.0
        for node in range(len(places)):
            now, old = _cost(places, pairs, node), places[node].copy()
            if now < 1e-3:
                continue
            places[node] = np.clip(old + random.uniform(-1.0, 1.0, 2) * reach, 0.0, size)
            if _cost(places, pairs, node) + 0.002 * np.hypot(*(places[node] - old)) >= now:
                places[node] = old
    return places


def _cost(places: Floats, pairs: Int64s, node: int) -> float:
    """What is wrong around a node: crossings of its links, nodes near links, nodes near it."""
    own = (pairs == node).any(axis=1)
    mine, rest = pairs[own], pairs[~own]
    gaps = np.hypot(*(places - places[node]).T)
    gaps[node] = np.inf
    cost = 8.0 * float((np.maximum(0.0, 1.0 - gaps / _APART) ** 2).sum())
    cost += 30.0 * float(np.maximum(0.0, 1.0 - gaps / _TOUCHING).sum())
    if len(rest):  # the node near links of others
        away = _distance(places[node][None, :], places[rest[:, 0]], places[rest[:, 1]])
        cost += 3.0 * float(np.maximum(0.0, 1.0 - away / _NEAR).sum())
    if len(mine):
        cost += 2e-4 * float(np.hypot(*(places[mine[:, 0]] - places[mine[:, 1]]).T).sum())
        away = _distance(
            places[None, :, :], places[mine[:, 0]][:, None, :], places[mine[:, 1]][:, None, :]
        )
        away[np.arange(len(mine))[:, None], mine] = np.inf
        cost += 3.0 * float(np.maximum(0.0, 1.0 - away / _NEAR).sum())
        if len(rest):
            cost += _crossings(places, mine, rest)
    return cost


def _distance(points: Floats, begin: Floats, end: Floats) -> Floats:
    """From points to segments."""
    step = end - begin
    along = ((points - begin) * step).sum(axis=-1) / np.maximum((step**2).sum(axis=-1), 1e-12)
    nearest = begin + along.clip(0.0, 1.0)[..., None] * step
    found: Floats = np.hypot(*np.moveaxis(points - nearest, -1, 0))
    return found


def _crossings(places: Floats, mine: Int64s, rest: Int64s) -> float:
    """How many pairs of links cross, of those that share no node."""

    def side(a: Floats, b: Floats, c: Floats) -> Floats:
        found: Floats = (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (
            b[..., 1] - a[..., 1]
        ) * (c[..., 0] - a[..., 0])
        return found

    a, b = (places[mine[:, i]][:, None, :] for i in (0, 1))
    c, d = (places[rest[:, i]][None, :, :] for i in (0, 1))
    apart = (mine[:, None, :, None] != rest[None, :, None, :]).all(axis=(2, 3))
    cross = (side(a, b, c) * side(a, b, d) < 0.0) & (side(c, d, a) * side(c, d, b) < 0.0)
    return float((cross & apart).sum())
