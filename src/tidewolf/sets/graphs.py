"""Graphs by name and by number: nodes, settings that describe them, graphs without cycles."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np

from tidewolf.core import errors, settings
from tidewolf.core.arguments import all_different, as_items, did_you_mean, listed, shown
from tidewolf.core.arrays import as_array, as_number, frozen, to_numpy
from tidewolf.core.frames import ENDS, Edge, Edges, edges_of, is_frame
from tidewolf.core.lazy import sp
from tidewolf.core.types import Bools, Floats, Int32s, Lengths, Link, NDArray
from tidewolf.kernels.graphs import widest_path

# Nodes by name and by number: what users call them, and what arrays count.


def number_nodes(links: Iterable[Link]) -> tuple[tuple[Hashable, ...], Int32s, Int32s]:
    numbers: dict[Hashable, int] = {}
    ends = [numbers.setdefault(node, len(numbers)) for link in links for node in link]
    pairs = np.array(ends, dtype=np.int32).reshape(-1, 2)
    return tuple(numbers), np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def require_edges(tails: Int32s, what: str) -> None:
    errors.require(len(tails), errors.EmptyGraph, f"{what} needs a graph with edges.", "edges")


def numbers_of(nodes: Iterable[Hashable]) -> dict[Hashable, int]:
    return {node: number for number, node in enumerate(nodes)}


def node_number(node: Hashable, numbers: Mapping[Hashable, int], what: str, setting: str) -> int:
    """The number of a node; what is no node of the graph is refused, `what` says what it was to
    be.
    """
    if node not in numbers:
        known, near = listed(map(repr, numbers), 6), did_you_mean(str(node), map(str, numbers))
        words = f"{what} {shown(node)} is not a node of the graph; nodes are {known}.{near}"
        raise errors.UnknownNode(words, setting=setting)
    return numbers[node]


def link_names(tails: Int32s, heads: Int32s, nodes: Sequence[Hashable]) -> tuple[str, ...]:
    """What links are called, such as "SEA > DEN"; of parallel ones the second has (2) behind it."""
    ends = zip(tails.tolist(), heads.tolist(), strict=True)
    return all_different(f"{nodes[tail]} > {nodes[head]}" for tail, head in ends)


# Settings that describe graphs: links, nodes, commodities, supplies, bounds.
#
# A file names a graph's file or a table where Python code gives pairs or arrays; who reads the file
# puts the one in place of the other (`read` keeps such a name as text) before a set is made.


class Commodity(NamedTuple):
    """A commodity: source, target and demand.

    Parameters
    ----------
    source : hashable
        The node where it starts.
    target : hashable
        The node where it is wanted.
    demand : float, default 1.0
        How much must go.
    links : sequence of int, optional
        The links it may use, by their places in the network. None: all of them.

    Examples
    --------
    >>> network = [("s", "a"), ("a", "t"), ("s", "t")]
    >>> K = tw.sets.MultiFlow.from_edges(network, [tw.sets.Commodity("s", "t", 2.0)])
    >>> K.lmo(np.array([1.0, 1.0, 5.0]))
    array([2., 2., 0.])
    """

    source: Hashable
    target: Hashable
    demand: float = 1.0
    links: Sequence[int] | None = None

    def called(self, i: int) -> str:
        """How sentences speak of it: its place and its ends."""
        return f"Commodity {i} ({shown(self.source)} to {shown(self.target)})"


@dataclass(frozen=True)
class Links(settings.Check):
    """Links as pairs of names, also those of a graph of networkx or of an edge list in a frame; an
    edge without a direction is a link each way or, unless `directed`, one.
    """

    directed: bool = field(default=True, kw_only=True)

    words: ClassVar[str] = "the name of a graph's file, or a list of [tail, head] pairs"
    key: ClassVar[str] = "graph"

    def __call__(self, value: Any, what: str) -> tuple[Link, ...]:
        if (graph := edges_of(value, what)) is not None:
            value = graph.links(both_ways=self.directed)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, Iterable) or isinstance(value, str):
            raise errors.WrongType(
                f"{what} must be an iterable of pairs (tail, head), not {shown(value)}."
            )
        pairs: list[Link] = []
        for i, link in enumerate(value):
            try:
                tail, head = tuple[Any, ...]() if isinstance(link, str) else link
                pairs.append((tail, head))
                hash(pairs[-1])
            except (TypeError, ValueError):
                such = "an edge is a pair (tail, head) of hashable names"
                raise errors.WrongType(f"Edge {i} is {shown(link)}; {such}.") from None
        return tuple(pairs)

    def read(self, value: Any) -> str | tuple[Link, ...] | None:
        if isinstance(value, str):
            return value or None
        listed = isinstance(value, list) and all(_is_row(link, 2, (2,)) for link in value)
        return tuple((tail, head) for tail, head in value) if listed else None


@dataclass(frozen=True)
class Node(settings.Check):
    words: ClassVar[str] = "the name of a node: text or a whole number"

    def __call__(self, value: Any, what: str) -> Hashable:
        try:
            hash(value)
        except TypeError:
            words = f"{what} must be a name that can be hashed, not {shown(value)}."
            raise errors.WrongType(words) from None
        return cast(Hashable, value)

    def read(self, value: Any) -> str | int | None:
        return value if _is_name(value) else None


NODE_NAMES = settings.ListOf(
    words="a list of names: text or whole numbers", item=Node(), such="['s', 't']"
)


@dataclass(frozen=True)
class Commodities(settings.Check):
    words: ClassVar[str] = "the name of a table, or a list of [source, target, demand]"
    key: ClassVar[str] = "commodities"

    def __call__(self, value: Any, what: str) -> tuple[Commodity, ...]:
        if is_frame(value) and (found := edges_of(value, what)) is not None:
            value = commodities_of(found, what)
        listed = as_items(value, what, "[(source, target, demand)]")
        errors.require(
            listed, errors.InvalidInput, f"{what} must be at least one (source, target, demand)."
        )
        return tuple(_as_commodity(i, commodity) for i, commodity in enumerate(listed))

    def read(self, value: Any) -> str | tuple[tuple[Any, ...], ...] | None:
        if isinstance(value, str):
            return value or None
        listed = isinstance(value, list) and value and all(_is_row(row, 2, (2, 3)) for row in value)
        return tuple(map(tuple, value)) if listed else None


def commodities_of(
    found: Edges, what: str, number: Callable[[Edge], Any] = lambda edge: edge.get("demand")
) -> list[tuple[Any, ...]]:
    """(source, target, demand) of each row of a table; without a column demand, or where it is
    empty, the demand is 1.
    """
    columns = found.columns or ()
    others = [name for name in columns if name.lower() not in {"demand", *sum(ENDS, ())}]
    told = "demand" in map(str.lower, columns)
    words = f"{what} must have a column demand; there are {listed(others)}."
    errors.require(told or not others, errors.InvalidInput, words)
    sent = ((edge, number(edge) if told else None) for edge in found.edges)
    return [(edge.tail, edge.head, 1.0 if demand is None else demand) for edge, demand in sent]


DEMANDS = settings.ListOf(
    words="a list of numbers", item=settings.Number(least=0.0), such="[1.0, 2.0]"
)


@dataclass(frozen=True)
class Supplies(settings.Check):
    words: ClassVar[str] = "the name of a table, or amounts by node such as { s = 1.0, t = -1.0 }"

    def __call__(self, value: Any, what: str) -> dict[Hashable, float]:
        try:
            amounts = dict(value)
        except (TypeError, ValueError):
            raise errors.WrongType(f"{what} must be amounts by node, not {shown(value)}.") from None
        return {node: as_number(amount, f"{what} at {node}") for node, amount in amounts.items()}

    def read(self, value: Any) -> str | tuple[tuple[str | int, float], ...] | None:
        """A table's name, or pairs (node, amount); pairs let whole numbers be nodes."""
        if isinstance(value, str):
            return value or None
        pairs = list(map(list, value.items())) if isinstance(value, Mapping) else value
        if not isinstance(pairs, list) or not all(_is_row(pair, 1, (2,)) for pair in pairs):
            return None
        return tuple((node, float(amount)) for node, amount in pairs)


@dataclass(frozen=True)
class ArcBounds(settings.Numbers):
    words: ClassVar[str] = "a number, a list of numbers, or a column of the graph's file"


@dataclass(frozen=True)
class LinkLengths(settings.Numbers):
    axes: int | None = field(default=1, kw_only=True)
    above: float = field(default=0.0, kw_only=True)

    words: ClassVar[str] = "the name of a column of the graph's file, or a list of numbers"


@dataclass(frozen=True)
class Indices(settings.Numbers):
    def __call__(self, value: Any, what: str) -> Int32s:
        given = to_numpy(as_array(value, what))
        whole = given.ndim == 1 and (given == np.rint(given)).all() and given.min(initial=0) >= 0
        if not whole or given.max(initial=0) >= 2**31:
            raise errors.WrongType(
                f"{what} must be a vector of whole numbers from 0, not {shown(value)}."
            )
        return frozen(given.astype(np.int32))


GraphLinks: TypeAlias = Annotated[Iterable[Link], Links()]
NumberedNames: TypeAlias = Annotated[tuple[Hashable, ...], NODE_NAMES]
PositiveLengths: TypeAlias = Annotated[Lengths | None, LinkLengths()]


def _as_commodity(i: int, commodity: Any) -> Commodity:
    try:
        asked = Commodity(*(commodity if not isinstance(commodity, str) else ()))
        hash(asked[:2])
    except TypeError:
        words = f"Commodity {i} must be (source, target, demand), not {shown(commodity)}."
        raise errors.WrongType(words) from None
    return asked._replace(
        demand=as_number(asked.demand, f"{asked.called(i)}: its demand", least=0.0)
    )


def _is_name(value: Any) -> bool:
    return type(value) in (str, int)


def _is_row(item: Any, names: int, lengths: tuple[int, ...]) -> bool:
    fits = isinstance(item, list) and len(item) in lengths and all(map(_is_name, item[:names]))
    return fits and all(settings.Number().read(number) is not None for number in item[names:])


# Directed acyclic graphs between a source and a target, put in order once.
#
# Nodes on a way from source to target get positions 0 (source) .. N-1 (target) in a topological
# order; the arcs between them ("useful") are sorted by the position of their head, so that one pass
# over them is a shortest-path computation:
#
#     dist[v] = min over arcs (u, v) of dist[u] + weight

# A covering flow over its value this close to 1 on an arc means that every path takes it: elsewhere
# it is at most 1 - 1/value.
ON_EVERY_PATH = 1.0 - 1e-9


class Dag(NamedTuple):
    """The useful part of a graph, in order: the node of each position; the useful arcs, sorted by
    head position, and the positions of their ends; arcs into position v are first[v] .. first[v +
    1].
    """

    order: Int32s
    arcs: Int32s
    tails: Int32s
    heads: Int32s
    first: Int32s

    def covering_flow(self) -> Floats:
        """A unit flow that is positive on every useful arc, by rank.

        From a flow of 1 on each: backwards, a node that sends more than it receives scales what it
        receives; forwards, one that receives more scales what it sends.
        """
        flow, inner = np.ones(len(self.arcs)), range(1, len(self.order) - 1)
        into = np.split(np.arange(len(flow)), self.first[1:-1])
        out = np.split(np.argsort(self.tails, kind="stable"), np.cumsum(np.bincount(self.tails)))
        for v in reversed(inner):
            flow[into[v]] *= max(1.0, flow[out[v]].sum() / flow[into[v]].sum())
        for v in inner:
            flow[out[v]] *= flow[into[v]].sum() / flow[out[v]].sum()
        return np.asarray(flow / flow[out[0]].sum())


def build_dag(
    tails: Int32s, heads: Int32s, names: Sequence[Hashable], source: Hashable, target: Hashable
) -> Dag:
    """The useful part of the graph in topological order; a cycle, an unreachable target and unknown
    nodes get their sentence.
    """
    require_edges(tails, "A flow")
    numbers, places = numbers_of(names), np.arange(len(names))
    start = node_number(source, numbers, "The source", "source")
    end = node_number(target, numbers, "The target", "target")
    words = f"Source and target must be two nodes; both are {source!r}."
    errors.require(source != target, errors.InvalidInput, words, "target")
    order = _topological(tails, heads, names)
    useful_node = reached(tails, heads, places == start) & reached(heads, tails, places == end)
    words = f"No path leads from {source!r} to {target!r}; add edges."
    errors.require(useful_node[start], errors.UnreachableTarget, words, "target")
    order = order[useful_node[order]]
    position = np.full(len(names), -1, dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    useful = np.flatnonzero(useful_node[tails] & useful_node[heads])
    arcs = useful[np.argsort(position[heads[useful]], kind="stable")].astype(np.int32)
    tails, heads = position[tails[arcs]], position[heads[arcs]]
    first = np.searchsorted(heads, np.arange(len(order) + 1)).astype(np.int32)
    return Dag(order, arcs, tails, heads, first)


def reached(tails: Int32s, heads: Int32s, start: Bools) -> Bools:
    leaving: list[list[int]] = [[] for _ in start]
    for tail, head in zip(tails.tolist(), heads.tolist(), strict=True):
        leaving[tail].append(head)
    found, left = start.tolist(), np.flatnonzero(start).tolist()
    while left:
        for head in leaving[left.pop()]:
            if not found[head]:
                found[head] = True
                left.append(head)
    return np.array(found)


def _topological(tails: Int32s, heads: Int32s, names: Sequence[Hashable]) -> Int32s:
    sorter = TopologicalSorter[int](dict.fromkeys(range(len(names)), ()))
    for tail, head in zip(tails.tolist(), heads.tolist(), strict=True):
        sorter.add(head, tail)
    try:
        return np.array(list(sorter.static_order()), dtype=np.int32)
    except CycleError as error:
        cycle = tuple(names[node] for node in error.args[1])
        raise errors.CyclicGraph(
            f"The graph has a cycle, {' -> '.join(map(str, cycle))}; paths need a graph without "
            "one. Keep the links that lead away from the source, with sets.graph_tools.away.",
            cycle=cycle,
            setting="edges",
        ) from None


def weighted_paths(
    dag: Dag, flow: NDArray, tolerance: float
) -> list[tuple[float, tuple[int, ...]]]:
    """A unit flow as weighted paths, widest first; once none carries more than `tolerance`, the
    weights are rescaled to sum to 1.

    Each path is the widest in what the ones before it left, and empties an arc: what is left out is
    at most `tolerance` an arc.
    """
    left, found = flow.astype(np.float64), list[tuple[float, tuple[int, ...]]]()
    path = np.empty(len(dag.order) - 1, dtype=np.int32)
    while True:
        arcs = path[widest_path(left, (dag.arcs, dag.tails, dag.first), path) :]
        weight = float(left[arcs].min())
        if weight <= tolerance:
            break
        left[arcs] -= weight
        found.append((weight, tuple(arcs.tolist())))
    words = f"No path carries more than the tolerance {tolerance:g}; lower it."
    errors.require(found, errors.InvalidInput, words)
    total = sum(weight for weight, _ in found)
    return [(weight / total, arcs) for weight, arcs in found]


def blocks(ends: Int32s, nodes: int) -> Int32s:
    """The two-connected block of each edge, numbered from 0, of a graph whose edges are the rows of
    `ends` (Hopcroft and Tarjan 1973): edges on a common cycle share a block.

    A depth-first walk, from a further node beside one of each part, numbers the nodes; `low` is the
    smallest number that a node's part of the walk reaches by one edge. If that is below its
    parent's number, its edge to the parent is in the block of the parent's own edge; the other
    edges that lead up from a node are in the block of that one. A bridge is a block of one edge,
    parallel edges are a cycle, and a loop is a block by itself.
    """
    roots = one_node_of_each(ends[:, 0], ends[:, 1], nodes)
    walked = np.concatenate([ends, np.stack([roots, np.full(len(roots), nodes)], axis=1)])
    graph = sp.csr_array((np.ones(len(walked)), tuple(walked.T)), shape=(nodes + 1, nodes + 1))
    order, parent = sp.csgraph.depth_first_order(graph, nodes, directed=False)
    number = np.argsort(order)
    deep = np.where(number[ends[:, 0]] > number[ends[:, 1]], ends[:, 0], ends[:, 1])
    low, label = number.copy(), np.arange(nodes + 1)
    np.minimum.at(low, deep, number[ends.sum(axis=1) - deep])
    for v in order[:0:-1]:
        low[parent[v]] = min(low[parent[v]], low[v])
    for v in order[1:]:
        label[v] = label[parent[v]] if low[v] < number[parent[v]] else v
    label = label[deep]
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    label[loops] = nodes + 1 + loops
    return np.unique(label, return_inverse=True)[1].astype(np.int32)


def bridges(tails: Int32s, heads: Int32s, nodes: int) -> Bools:
    """Which arcs lie on no cycle, directions aside: blocks of one arc that is no loop."""
    label = blocks(np.stack([tails, heads], axis=1), nodes)
    return np.asarray((np.bincount(label)[label] == 1) & (tails != heads))


def connected_parts(tails: Int32s, heads: Int32s, nodes: int, *, strong: bool = False) -> Int32s:
    graph = sp.csr_array((np.ones(len(tails)), (tails, heads)), shape=(nodes, nodes))
    return np.asarray(sp.csgraph.connected_components(graph, strong, "strong")[1])


def one_node_of_each(tails: Int32s, heads: Int32s, nodes: int) -> Int32s:
    return np.unique(connected_parts(tails, heads, nodes), return_index=True)[1].astype(np.int32)


def incidence_matrix(arcs: Int32s, tails: Int32s, heads: Int32s, nodes: int, entries: int) -> Any:
    """The sparse matrix (nodes, entries) of what leaves every node less what enters it; arcs are
    entries of a point.
    """
    places = np.concatenate([tails, heads]), np.tile(arcs, 2)
    return sp.csr_array((np.repeat([1.0, -1.0], len(arcs)), places), shape=(nodes, entries))


# Projection on circulations: the direction space of the flows of a graph, in one part or several.
#
#     P d = d - A' phi,   L phi = A d,
#     L = A A'  the graph's Laplacian with one node of each part grounded
#
# Three ways to solve, by size: a dense inverse up to `DENSE_NODES` nodes; a sparse factor when the
# envelope of the reverse Cuthill-McKee order, which no factor in that order leaves, has up to
# `FACTOR_ENTRIES` entries; else conjugate gradients to `CG_TOLERANCE`. The factor is made in the
# order of least degrees, in which it is several times smaller: 2.2 of 13 million entries for a
# layered graph of 99,600 arcs, whose rounds take 14 ms by the factor and 220 ms by conjugate
# gradients.

DENSE_NODES = 600
FACTOR_ENTRIES = 16_000_000
CG_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class HullProjection:
    """P for a graph on positions 0 .. nodes - 1, whose arcs are some coordinates of a point; the
    others are projected to 0.

    `grounded` holds one position of each connected part; None: the first ones.
    """

    arcs: NDArray
    tails: NDArray
    heads: NDArray
    nodes: int
    grounded: NDArray | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy factorises for itself
        return HullProjection, (self.arcs, self.tails, self.heads, self.nodes, self.grounded)

    def __call__(self, d: NDArray) -> NDArray:
        own, projected = d[self.arcs], np.zeros_like(d)
        sent, received = (np.bincount(at, own, self.nodes) for at in (self.tails, self.heads))
        potentials = self._potentials(np.asarray(sent - received, dtype=np.float64))
        projected[self.arcs] = own - (potentials[self.tails] - potentials[self.heads])
        return projected

    def unit_norms(self) -> Floats:
        """|P e| for every arc e (its distance from being on every path); 1, which is no less, on
        graphs too large to know.
        """
        if self._inverse is None:
            return np.ones(len(self.arcs))
        t, h, inverse = self.tails, self.heads, self._inverse
        resistance = inverse[t, t] - 2.0 * inverse[t, h] + inverse[h, h]
        return np.asarray(np.sqrt(np.maximum(0.0, 1.0 - resistance)))

    @cached_property
    def packed(self) -> tuple[Floats, Int32s] | None:
        """The graph and the factor of its Laplacian as kernels read them (kernels/graphs.py);
        None if the factor is too large to make.
        """
        if self.nodes > DENSE_NODES and self.method == "conjugate gradients":
            return None
        factor = self._sparse_factor
        if not np.array_equal(factor.perm_r, factor.perm_c):
            return None
        lower = factor.L.tocsc()  # by columns, without its diagonal of ones
        lower.setdiag(0.0)
        lower.eliminate_zeros()
        lower.sort_indices()
        order = self._free[np.argsort(factor.perm_c)]
        by_head = np.argsort(self.heads, kind="stable")
        first = np.searchsorted(self.heads[by_head], np.arange(self.nodes + 1))
        sizes = [self.nodes, len(self.arcs), len(order), len(lower.indices)]
        graph = sizes, self.arcs[by_head], self.tails[by_head], first
        fours = _first_of_four(lower.indptr, lower.indices)
        ints = np.concatenate([*graph, order, lower.indptr, lower.indices, fours])
        return np.concatenate([lower.data, 1.0 / factor.U.diagonal()]), ints.astype(np.int32)

    @cached_property
    def _sparse_factor(self) -> Any:
        how = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}}
        return sp.linalg.splu(self._laplacian, diag_pivot_thresh=0.0, **how)

    @property
    def dimension(self) -> int:
        return len(self.arcs) - len(self._free)

    @cached_property
    def _free(self) -> NDArray:
        grounded = self.grounded
        if grounded is None:
            grounded = one_node_of_each(self.tails, self.heads, self.nodes)
        return np.delete(np.arange(self.nodes), grounded)

    @cached_property
    def _laplacian(self) -> Any:
        ends, t, h = (self.nodes, self.nodes), self.tails, self.heads
        places = np.concatenate([t, h, t, h]), np.concatenate([t, h, h, t])
        full = sp.coo_array((np.repeat([1.0, 1.0, -1.0, -1.0], len(t)), places), shape=ends)
        return full.tocsc()[self._free][:, self._free]

    @cached_property
    def _inverse(self) -> Floats | None:
        if self.nodes > DENSE_NODES:
            return None
        inside, padded = np.ix_(self._free, self._free), np.zeros((self.nodes, self.nodes))
        inverse = np.linalg.inv(dense_laplacian(self.tails, self.heads, self.nodes)[inside])
        padded[inside] = 0.5 * (inverse + inverse.T)
        return padded

    @cached_property
    def method(self) -> str:
        if self._inverse is not None:
            return "dense inverse"
        order = sp.csgraph.reverse_cuthill_mckee(self._laplacian, symmetric_mode=True)
        small = envelope(self._laplacian[order][:, order]) <= FACTOR_ENTRIES
        return "sparse factor" if small else "conjugate gradients"

    def _potentials(self, divergence: Floats) -> Floats:
        """Of all nodes, 0 at the grounded ones."""
        if self._inverse is not None:
            return self._inverse @ divergence
        potentials, right = np.zeros(len(divergence)), divergence[self._free]
        by_factor = self.method == "sparse factor"
        found = self._sparse_factor.solve(right) if by_factor else self._iterated(right)
        potentials[self._free] = found
        return potentials

    def _iterated(self, right: Floats) -> Floats:
        """Jacobi-preconditioned; the residual is relative to the right-hand side."""
        rows, most = self._laplacian.tocsr(), 20 * len(right)
        jacobi = sp.diags_array(1.0 / rows.diagonal())
        found, failed = sp.linalg.cg(rows, right, rtol=CG_TOLERANCE, maxiter=most, M=jacobi)
        words = "Conjugate gradients took over 20 steps per node of the graph."
        errors.require(not failed, errors.SolverFailed, words)
        return np.asarray(found)


def _first_of_four(starts: NDArray, rows: NDArray) -> NDArray:
    """Which columns of a factor begin four, no two of which overlap, that have the same rows, but
    for their own.
    """
    counts, found = np.diff(starts), np.zeros(len(starts) - 1, dtype=np.int32)
    alike = []
    for j, (at, more) in enumerate(zip(starts[:-1] + 1, counts[1:], strict=False)):
        own, following = rows[at : at + more], rows[at + more :][:more]
        is_next = counts[j] == more + 1 and rows[at - 1] == j + 1
        alike.append(is_next and np.array_equal(own, following))
    j = 0
    while j + 3 < len(counts):
        found[j] = all(alike[j : j + 3])
        j += 4 if found[j] else 1
    return found


def envelope(matrix: Any) -> int:
    """How many entries a symmetric matrix has from the first one of each row to its diagonal: the
    entries of its Cholesky factor, at most.
    """
    lower = matrix.tocoo()
    first = np.arange(matrix.shape[0])
    np.minimum.at(first, lower.row, lower.col)
    return int((np.arange(len(first)) - first + 1).sum())


def dense_laplacian(a: NDArray, b: NDArray, nodes: int) -> Floats:
    """Of all nodes, without scipy, whose sparse matrices take a tenth of a second to import."""
    laplacian = np.zeros((nodes, nodes))
    for one, other, sign in ((a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)):
        np.add.at(laplacian, (one, other), sign)
    return laplacian
