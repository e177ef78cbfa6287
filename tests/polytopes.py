"""Small random sets of every kind, all vertices of the polytopes among them by brute force, and
graphs to route on.
"""

import itertools
import math
from dataclasses import replace
from functools import singledispatch

import numpy as np

from tidewolf import projection, sets
from tidewolf.sets.capacitated_flow import CapacitatedFlow, FlowNetwork

Rng = np.random.Generator

# --- every vertex ---------------------------------------------------------------------------------


@singledispatch
def vertices_of(K):
    """Every vertex (and perhaps other members), one a row of (count, *shape)."""
    raise TypeError(f"{K!r} has no enumeration; write one.")


@vertices_of.register(sets.Translated)
@vertices_of.register(sets.Shrunk)
@vertices_of.register(sets.Scaled)
def _(K) -> np.ndarray:
    return K.offset + K.scale * vertices_of(K.K)


@vertices_of.register
def _(K: sets.Box) -> np.ndarray:
    ends = zip(K.lower.reshape(-1), K.upper.reshape(-1), strict=True)
    return np.array(list(itertools.product(*ends))).reshape(-1, *K.shape)


@vertices_of.register
def _(K: sets.VertexHull) -> np.ndarray:
    return np.asarray(K.points)


@vertices_of.register
def _(K: sets.Simplex) -> np.ndarray:
    return np.vstack([K.total * np.eye(K.n), np.zeros((int(K.at_most), K.n))])


@vertices_of.register
def _(K: sets.CappedSimplex) -> np.ndarray:
    return knapsack_vertices(np.ones(K.n), K.total, np.full(K.n, K.cap), at_most=False)


@vertices_of.register
def _(K: sets.Knapsack) -> np.ndarray:
    return knapsack_vertices(K.weights, K.total, K.upper, K.at_most)


def knapsack_vertices(w, total, upper, at_most):
    """All bounds but for one entry, which the total decides; with at_most all that fit besides."""
    full = np.array(list(itertools.product(*((0.0, bound) for bound in upper))))
    points = list(full) if at_most else [x for x in full if abs(x @ w - total) <= 1e-12 * total]
    for x, i in itertools.product(full, range(len(w))):
        rest = x.copy()
        rest[i] = 0.0
        rest[i] = (total - rest @ w) / w[i]
        if -1e-12 <= rest[i] <= upper[i] * (1 + 1e-12):
            points.append(rest)
    return np.array([x for x in points if x @ w <= total * (1 + 1e-12)])


def signed_supports(n, k):
    """Signs at every k of n entries."""
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    chosen = itertools.combinations(range(n), k)
    return np.vstack([signs * np.isin(np.arange(n), support) for support in chosen])


@vertices_of.register
def _(K: sets.L1Ball) -> np.ndarray:
    return K.tau * signed_supports(K.n, 1)


@vertices_of.register
def _(K: sets.KSparse) -> np.ndarray:
    return K.tau * signed_supports(K.n, K.k)


@vertices_of.register
def _(K: sets.KNormBall) -> np.ndarray:
    return K.tau * np.vstack([signed_supports(K.n, 1), signed_supports(K.n, K.n) / K.k])


@vertices_of.register
def _(K: sets.OrderedWeightedBall) -> np.ndarray:
    n, sums = len(K.weights), np.cumsum(K.weights)
    return np.vstack([K.tau / sums[k - 1] * signed_supports(n, k) for k in range(1, n + 1)])


@vertices_of.register
def _(K: sets.SimplexProduct) -> np.ndarray:
    return end_to_end([np.eye(n) for n in K.sizes])


@vertices_of.register
def _(K: sets.Product) -> np.ndarray:
    return end_to_end([vertices_of(part) for part in K.parts])


def end_to_end(parts):
    """Every choice of a row of each part."""
    return np.array([np.concatenate(chosen) for chosen in itertools.product(*parts)])


@vertices_of.register
def _(K: sets.Permutahedron) -> np.ndarray:
    return np.array(list(itertools.permutations(K.weights)))


@vertices_of.register
def _(K: sets.Birkhoff) -> np.ndarray:
    return np.array([np.eye(K.n)[list(order)] for order in itertools.permutations(range(K.n))])


def trees_of(edges, nodes):
    """Every spanning tree as edge numbers."""
    found = []
    for chosen in itertools.combinations(range(len(edges)), nodes - 1):
        part = np.arange(nodes)
        for a, b in edges[list(chosen)]:
            part[part == part[a]] = part[b]
        if (part == part[0]).all():
            found.append(chosen)
    return found


@vertices_of.register
def _(K: sets.SpanningTrees) -> np.ndarray:
    every = np.arange(len(K.edges))
    return np.array([np.isin(every, tree) for tree in trees_of(K.edges, len(K.nodes))], dtype=float)


@vertices_of.register
def plans_of(K: sets.Transportation) -> np.ndarray:
    """The plan of each tree of rows and columns, where it is not negative."""
    m, n = K.shape
    cells, plans = np.array(list(itertools.product(range(m), range(m, m + n)))), []
    for tree in trees_of(cells, m + n):
        A = np.zeros((m + n, m * n))
        for k in tree:
            A[cells[k], k] = 1.0
        x = np.linalg.lstsq(A, np.concatenate([K.rows, K.columns]), rcond=None)[0]
        if x.min() > -1e-9:
            plans.append(np.maximum(x, 0.0).reshape(m, n))
    return np.array(plans)


@vertices_of.register
def _(K: sets.Matching) -> np.ndarray:
    every = np.array(list(itertools.product((0.0, 1.0), repeat=len(K.edges))))
    sides = ((0, K.lefts), (1, K.rights))
    touching = [K.edges[:, side] == v for side, names in sides for v in range(len(names))]
    degrees = every @ np.array(touching, dtype=float).T
    return every[((degrees == 1.0) if K.perfect else (degrees <= 1.0)).all(axis=1)]


@vertices_of.register
def _(K: sets.Polytope) -> np.ndarray:
    """Where n rows that hold with equality meet."""
    G, h, E, f, *_ = K._rows
    G, h, found = np.vstack([G, E, -E]), np.concatenate([h, f, -f]), []
    for rows in map(list, itertools.combinations(range(len(h)), G.shape[1])):
        if abs(np.linalg.det(G[rows])) > 1e-9:
            x = np.linalg.solve(G[rows], h[rows])
            if (G @ x <= h + 1e-9).all():
                found.append(x)
    return np.array(found)


@vertices_of.register
def _(K: sets.FlowPolytope) -> np.ndarray:
    paths = list(paths_of(edges_of(K), K.nodes[K.source], K.nodes[K.target]))
    return np.array([np.isin(np.arange(len(K.tails)), path) for path in paths], dtype=float)


@vertices_of.register
def _(K: sets.MultiFlow) -> np.ndarray:
    singles = zip(singles_of(K), K.demands, strict=True)
    return end_to_end([demand * vertices_of(one) for one, demand in singles])


@vertices_of.register
def _(K: CapacitatedFlow) -> np.ndarray:
    """Each arc at a bound or in a forest, which the balances then fix."""
    net, found = K.network, []
    A = matrix_of(net)
    for places in itertools.product((-1, 0, 1), repeat=len(net.tails)):
        place = np.array(places)
        inside = A[:, place == 0]
        if inside.size and np.linalg.matrix_rank(inside) < inside.shape[1]:
            continue
        x = np.where(place < 0, net.lower, net.upper) * (place != 0)
        if inside.shape[1]:
            x[place == 0] = np.linalg.lstsq(inside, net.supply - A @ x, rcond=None)[0]
        off = np.abs(A @ x - net.supply).max()
        if max(off, (net.lower - x).max(), (x - net.upper).max()) < 1e-9:
            found.append(x)
    return np.array(found)


# --- small random sets, with ties, zeros, parallel edges, loops and bridges -----------------------

TAUS = [0.1, 1.0, 30.0]


def some(rng, most, least=1):
    return int(rng.integers(least, most + 1))


def knapsack(rng, at_most=True):
    n = some(rng, 5)
    weights, upper = rng.choice([0.1, 1.0, 1.0, 2.0, 7.0], n), rng.choice([0.5, 1.0, 1.0, 4.0], n)
    share = rng.choice([0.05, 0.3, 0.5, 0.8, 1.0, 3.0 if at_most else 1.0])
    return sets.Knapsack(weights, share * float(weights @ upper), upper, at_most)


def full_knapsack(rng):
    return knapsack(rng, at_most=False)


def capped(rng):
    n, cap = some(rng, 5), rng.choice([0.2, 0.5, 3.0])
    return sets.CappedSimplex(n, cap, cap * n * rng.choice([0.1, 0.5, 0.7, 1.0]))


def ordered(rng):
    weights = np.sort(rng.choice([0.0, 0.5, 1.0, 1.0, 3.0], some(rng, 4)))[::-1]
    return sets.OrderedWeightedBall(np.maximum(weights, [0.25, *weights[1:]]), rng.choice(TAUS))


def product(rng):
    kinds = [MAKERS["L1 ball"], MAKERS["k-sparse"], full_knapsack]
    parts = [kinds[i](rng) for i in rng.permutation(3)[:2]]
    moved = sets.Translated(sets.Simplex(2), [1.0, -3.0])
    return sets.Product(*(part for part in parts if part.shape[0] <= 3), moved)


def transportation(rng):
    plan = rng.integers(0, 4, (some(rng, 3), some(rng, 3))) * rng.choice([1.0, 0.1])
    plan[0, 0] += 1.0
    return sets.Transportation(plan.sum(axis=1), plan.sum(axis=0))


def trees(rng):
    n = some(rng, 5)
    edges = [(v, int(rng.integers(v))) for v in range(1, n)]
    edges += [tuple(rng.integers(0, n, 2).tolist()) for _ in range(some(rng, 4))]
    return sets.SpanningTrees([edges[i] for i in rng.permutation(len(edges))])


def perfect(rng):
    n = some(rng, 4)
    sure = zip(range(n), rng.permutation(n).tolist(), strict=True)
    return sets.Matching([*sure, *rng.integers(0, n, (some(rng, 5, 0), 2)).tolist()], perfect=True)


def polytope(rng):
    n = some(rng, 3)
    A, inside = rng.integers(-2, 3, (some(rng, 3, 0), n)) + 0.0, rng.integers(-1, 2, n)
    equal = rng.integers(-1, 2, (some(rng, 1, 0), n)) + 0.0
    room = rng.integers(0, 3, len(A)) if rng.random() < 0.5 else rng.random(len(A)) + 0.5
    bounds = (-2.0, 2.0 + rng.random())
    return sets.Polytope(A, A @ inside + room, equal, equal @ inside, bounds=bounds)


def flow(rng):
    return random_flow_polytope(some(rng, 2**32), some(rng, 5, 2), rng.choice([0.3, 0.9, 1.5]))


def multi_flow(rng, nodes=4, links=3, count=2):
    """Commodities between random nodes of a ring with chords, both ways: every one has its own
    graph; some demand nothing.
    """
    chords = [tuple(pair) for pair in rng.integers(0, nodes, (links, 2)).tolist()]
    edges = [*((i, (i + 1) % nodes) for i in range(nodes)), *chords]
    edges = [edge for tail, head in edges if tail != head for edge in ((tail, head), (head, tail))]
    ends = [rng.choice(nodes, 2, replace=False).tolist() for _ in range(count)]
    asked = [(*pair, rng.choice([0.0, 0.5, 1.0, 3.7])) for pair in ends]
    return sets.MultiFlow.from_edges(edges, asked, lengths=rng.uniform(0.1, 1, len(edges)))


def network(rng, nodes, arcs):
    """Arcs anywhere, loops and cycles among them; bounds whole or not, some equal; supplies that a
    flow, often a corner, meets.
    """
    tails, heads = rng.integers(0, nodes, (2, arcs)).astype(np.int32)
    lower = rng.integers(-2, 2, arcs).astype(float)
    upper = lower + rng.integers(0, 4, arcs)
    if rng.random() < 0.5:
        lower, upper = lower * rng.random(), upper * rng.random() + 2.0
    share = rng.integers(0, 2, arcs) if rng.random() < 0.4 else rng.random(arcs)
    names = tuple(f"n{i}" for i in range(nodes))
    empty = FlowNetwork(tails, heads, lower, upper, np.zeros(nodes), names)
    return replace(empty, supply=empty.balance(lower + (upper - lower) * share))


def ellipsoid(rng):
    n = some(rng, 4)
    root = rng.standard_normal((n, n))
    matrix = root @ root.T + rng.choice([0.01, 1.0]) * np.eye(n)
    return sets.Ellipsoid(matrix, rng.standard_normal(n))


def group(rng):
    groups = rng.integers(-1, 2, some(rng, 5))
    weights = rng.choice([0.2, 1.0, 1.0, 3.0], len(np.unique(groups)))
    return sets.GroupBall(groups, rng.choice(TAUS), weights)


def lp(rng):
    power = rng.choice([1.0, 1.001, 1.5, 2.0, 4.0, 300.0, math.inf])
    return sets.LpBall(some(rng, 5), power, rng.choice(TAUS))


MAKERS = {
    "simplex": lambda rng: sets.Simplex(some(rng, 5), rng.choice(TAUS), bool(some(rng, 1, 0))),
    "capped simplex": capped,
    "simplex product": lambda rng: sets.SimplexProduct(rng.integers(1, 4, some(rng, 3)).tolist()),
    "box": lambda rng: sets.Box(
        lower := rng.integers(-2, 2, some(rng, 4)) + 0.0,
        lower + rng.choice([0.0, 0.1, 3.0], lower.shape),
    ),
    "hull": lambda rng: sets.VertexHull(rng.integers(-2, 3, (some(rng, 9), some(rng, 4))) + 0.0),
    "L1 ball": lambda rng: sets.L1Ball(some(rng, 4), rng.choice(TAUS)),
    "k-sparse": lambda rng: sets.KSparse(n := some(rng, 4), some(rng, n), rng.choice(TAUS)),
    "k-norm": lambda rng: sets.KNormBall(n := some(rng, 4), some(rng, n), rng.choice(TAUS)),
    "ordered": ordered,
    "knapsack": knapsack,
    "full knapsack": full_knapsack,
    "scaled": lambda rng: sets.Scaled(full_knapsack(rng), rng.choice([0.1, 5.0])),
    "product": product,
    "permutahedron": lambda rng: sets.Permutahedron(
        rng.integers(-2, 3, some(rng, 5)) * rng.choice([1e-3, 1.0, 0.3])
    ),
    "Birkhoff": lambda rng: sets.Birkhoff(some(rng, 4)),
    "transportation": transportation,
    "trees": trees,
    "matching": lambda rng: sets.Matching(rng.integers(0, 4, (some(rng, 8), 2))),
    "perfect matching": perfect,
    "polytope": polytope,
    "flow": flow,
    "multi flow": multi_flow,
    "capacitated flow": lambda rng: CapacitatedFlow(network(rng, some(rng, 4), some(rng, 6))),
}
"""Of every kind of polytope a small random one."""
ROUND = {"Lp ball": lp, "ellipsoid": ellipsoid, "group ball": group}
ROUND["diagonal ellipsoid"] = lambda rng: sets.Ellipsoid(10.0 ** rng.integers(-3, 3, some(rng, 4)))


# --- graphs ---------------------------------------------------------------------------------------


def edges_of(K):
    return [(K.nodes[tail], K.nodes[head]) for tail, head in zip(K.tails, K.heads, strict=True)]


def singles_of(K):
    """Each commodity's unit flows on the links it uses."""
    ends, parts = zip(K.sources, K.targets, strict=True), np.split(K.links, K.starts[1:-1])
    own = [[(K.nodes[K.tails[e]], K.nodes[K.heads[e]]) for e in part] for part in parts]
    ends = ((K.nodes[source], K.nodes[target]) for source, target in ends)
    made = sets.FlowPolytope.from_edges
    return [made(edges, source=s, target=t) for edges, (s, t) in zip(own, ends, strict=True)]


def matrix_of(net):
    """What leaves each node less what enters it."""
    A = np.zeros((len(net.nodes), len(net.tails)))
    np.add.at(A, (net.tails, np.arange(len(net.tails))), 1.0)
    np.add.at(A, (net.heads, np.arange(len(net.tails))), -1.0)
    return A


def paths_of(edges, source, target):
    """Every path of a DAG as the numbers of its edges, by walking all of them."""
    if source == target:
        yield ()
    for i, (tail, head) in enumerate(edges):
        if tail == source:
            yield from ((i, *rest) for rest in paths_of(edges, head, target))


def layered(layers, width):
    """Complete bipartite layers between s and t, and one arc straight from s to t."""
    nodes = [[(layer, i) for i in range(width)] for layer in range(layers)]
    layer_pairs = itertools.pairwise(nodes)
    between = [pair for here, there in layer_pairs for pair in itertools.product(here, there)]
    ends = [*(("s", node) for node in nodes[0]), *((node, "t") for node in nodes[-1]), ("s", "t")]
    return sets.FlowPolytope.from_edges([*ends, *between], source="s", target="t")


def random_edges(rng, nodes, density):
    """A DAG on numbers 0 .. nodes - 1 in a hidden order, parallel arcs and dead ends among them; 0
    reaches nodes - 1.
    """
    order = [0, *(1 + rng.permutation(nodes - 2)), nodes - 1]
    twice = [pair for pair in itertools.combinations(range(nodes), 2) for _ in range(2)]
    edges = [(order[i], order[j]) for i, j in twice if rng.random() < density / 2]
    edges.append((0, nodes - 1))
    return [(int(tail), int(head)) for tail, head in rng.permutation(edges)]


def random_flow_polytope(seed, nodes=6, density=0.6):
    edges = random_edges(np.random.default_rng(seed), nodes, density)
    return sets.FlowPolytope.from_edges(edges, source=0, target=nodes - 1)


def distances2(points, y):
    """|z - y|^2 for every point z."""
    return ((points - y).reshape(len(points), -1) ** 2).sum(axis=1)


def assert_rounding_chooses_no_vertex(convert, seed):
    """Projections of targets that are off by a few last digits lead to the same members: corrective
    steps leave equal slopes, and the oracle's answer must not depend on which is lower.
    """
    rng = np.random.default_rng(seed)
    points, targets = rng.standard_normal((7, 4)), rng.standard_normal((6, 4))
    K, found = sets.VertexHull(points).to(convert(np.zeros(1))), []
    for size in (0.0, 1e-14, 1e-14, 1e-14):
        active, members = projection.ActiveSet.start(K), []
        for y in targets:
            near = convert(y * (1.0 + size * rng.uniform(-1.0, 1.0, 4)))
            active = active.project(K, near, tol=1e-6, budget=2).active
            members.append(np.asarray(active.x))
        found.append(members)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-10)
