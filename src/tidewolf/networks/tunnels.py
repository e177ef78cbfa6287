"""Tunnels: a few short paths for each pair of nodes, over which the pair's demand is split; and
links that lead from a source to a target without going back.

    x_p = share of the demand of pair(p) that takes path p        x in a simplex for each pair
    load_l = sum_p incidence[l, p] demand[pair(p)] x_p

Paths are the k shortest without loops (Yen 1971), found by SciPy, pair after pair, shortest first;
a pair with fewer of them has fewer. What is decided lives in `splits`, a `SimplexProduct`; how full
the fullest link is, is a `functions.MaxUtilization`.

Of equally long paths the one with fewer links comes first, then the one whose links come first in
the list. If paths with equally many links tie for the last place, SciPy chooses among them. SciPy
takes one link per pair of nodes, so each further parallel link passes a node of its own. Each link
is 2^-32 of the shortest one longer than it is, so that fewer links decide between ties.

    away  = { (u, v) : (dist(s, v), -dist(v, t)) > (dist(s, u), -dist(u, t)) in the order of words }
        farther from the source, or as far and nearer to the target: no cycle is left
    shortest-path DAG = those of them that lie on a way from the source to the target

With lengths that tell all distances apart these are the links whose head is farther than their
tail (`sets.graph_tools.away`); if many are equal, as without lengths, more stay.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias, final

import numpy as np

from tidewolf.core.arguments import as_items, as_text, shown
from tidewolf.core.arrays import as_number, frozen
from tidewolf.core.edges import Edges, edges_of
from tidewolf.core.errors import InvalidInput, UnreachableTarget, WrongShape, WrongType
from tidewolf.core.frames import columns_in_order
from tidewolf.core.names import all_different
from tidewolf.core.settings import Check, Count
from tidewolf.core.types import Array, Floats, Int64s, Link
from tidewolf.core.values import Value
from tidewolf.functions.loads import MaxUtilization
from tidewolf.sets import graph_tools
from tidewolf.sets.graphs import Links, node_number, number_nodes, numbers_of
from tidewolf.sets.simplices import SimplexProduct


class Tunnel(NamedTuple):
    """A path between two nodes.

    Parameters
    ----------
    nodes : tuple of hashable
        The nodes it passes, from its source to its target.
    links : tuple of int
        The places of its links in the network, in order.
    length : float
        How long it is.

    Examples
    --------
    >>> tunnels = tw.networks.Tunnels([("s", "a"), ("a", "t"), ("s", "t")], [("s", "t")])
    >>> tunnels.paths[1]
    Tunnel(nodes=('s', 'a', 't'), links=(0, 1), length=2.0)
    """

    nodes: tuple[Hashable, ...]
    links: tuple[int, ...]
    length: float


class LinkRow(NamedTuple):
    tail: Hashable
    head: Hashable
    length: float = 1.0
    capacity: float | None = None
    name: str = ""


class LinkRows(Check):
    """Links with lengths and capacities, as tuples, of a networkx graph or of an edge list in a
    frame.
    """

    words: ClassVar[str] = (
        "the name of a graph's file, or a list of [tail, head, length, capacity], the last two "
        "optional"
    )

    def __call__(self, value: Any, what: str) -> tuple[LinkRow, ...]:
        rows: Iterable[Any]
        if (graph := edges_of(value, what)) is not None:
            rows = _of_graph(graph)
        else:
            rows = as_items(value, what, "[('SEA', 'DEN', 1640.0, 10.0)]")
        link_rows = tuple(_as_link_row(i, row, what) for i, row in enumerate(rows))
        if not link_rows:
            raise InvalidInput(f"{what} has no links; give at least one (tail, head).")
        return link_rows

    def read(self, value: Any) -> str | tuple[Any, ...] | None:
        if isinstance(value, str):
            return value or None
        listed = isinstance(value, list) and all(isinstance(row, list) for row in value)
        return tuple(map(tuple, value)) if listed else None


GraphSetting: TypeAlias = Annotated[Iterable[tuple[Any, ...]], LinkRows()]


class _Pairs(Links):
    words: ClassVar[str] = "a list of [source, target] pairs"
    key: ClassVar[str] = "pairs"

    def __call__(self, value: Any, what: str) -> tuple[Link, ...]:
        pairs = super().__call__(value, what)
        if not pairs or len(set(pairs)) < len(pairs):
            several = [pair for pair in pairs if pairs.count(pair) > 1][:1]
            found = f"{shown(several[0])} is there twice" if pairs else "there is none"
            raise InvalidInput(f"{what} must be pairs (source, target), each once; {found}.")
        return pairs


class OnLinks(Value):
    graph: Any

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The links, (tail, head)."""
        return tuple((link_row.tail, link_row.head) for link_row in self._link_rows)

    @cached_property
    def nodes(self) -> tuple[Hashable, ...]:
        """The nodes, in the order in which links name them."""
        return tuple(dict.fromkeys(node for link in self.links for node in link))

    @cached_property
    def lengths(self) -> Floats:
        """The length of each link."""
        return frozen(np.array([link_row.length for link_row in self._link_rows]))

    @property
    def _link_rows(self) -> tuple[LinkRow, ...]:
        rows: tuple[LinkRow, ...] = self.graph  # what its check makes of it
        return rows


@final
@dataclass(frozen=True, eq=False, repr=False)
class Tunnels(OnLinks):
    """The k shortest paths between pairs of nodes, and the splits of demands over them.

    Parameters
    ----------
    graph : iterable of tuple
        The links, (tail, head), (tail, head, length), (tail, head, length, capacity) or with a
        name behind those, each in its direction; lengths are 1 if none are given, and a
        capacity of None is none. Or a networkx graph, with `length` (else `weight`) and
        `capacity` as attributes, an undirected edge a link each way; or a frame of pandas or
        polars with such columns beside tail and head.
    pairs : iterable of tuple of Hashable
        Which nodes send to which: (source, target), each once; or such a frame.
    k : int, default 3
        How many paths a pair has at most.

    Examples
    --------
    >>> links = [("SEA", "DEN"), ("DEN", "NYC"), ("SEA", "CHI"), ("CHI", "NYC")]
    >>> tunnels = tw.networks.Tunnels(links, [("SEA", "NYC"), ("SEA", "DEN")])
    >>> tunnels.names
    ('SEA > NYC via DEN', 'SEA > NYC via CHI', 'SEA > DEN')
    >>> tunnels.splits
    SimplexProduct(sizes=(2, 1))
    >>> f = tunnels.max_utilization([[2.0, 1.0]], capacities=[4.0, 4.0, 1.0, 1.0])
    >>> f.values(tunnels.splits.center)
    array([1.])
    """

    graph: GraphSetting
    pairs: Annotated[Iterable[Link], _Pairs()]
    k: Annotated[int, Count()] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._ways  # refuses pairs that no path joins

    def __repr__(self) -> str:
        return (
            f"Tunnels({len(self.links):,} links, {len(self._ways):,} pairs, {len(self.paths):,} "
            "paths)"
        )

    @cached_property
    def capacities(self) -> Floats | None:
        """The capacity of each link; None if some link has none."""
        known = [link_row.capacity for link_row in self._link_rows if link_row.capacity is not None]
        return frozen(np.array(known)) if len(known) == len(self._link_rows) else None

    @cached_property
    def paths(self) -> tuple[Tunnel, ...]:
        """The paths of all pairs, pair after pair, shortest first."""
        return tuple(self._tunnel(way) for ways in self._ways for way in ways)

    @cached_property
    def splits(self) -> SimplexProduct:
        """What is decided: a share for each path, those of a pair's paths summing to 1."""
        return SimplexProduct([len(ways) for ways in self._ways], self.names)

    @property
    def path_pair(self) -> Int64s:
        """The pair that each path serves, by its place."""
        return self.splits.owner

    @cached_property
    def incidence(self) -> Any:
        """The sparse matrix (links, paths) with a 1 where a path uses a link."""
        from scipy.sparse import csr_array

        links = np.array([link for path in self.paths for link in path.links])
        paths = np.repeat(np.arange(len(self.paths)), [len(path.links) for path in self.paths])
        shape = (len(self._link_rows), len(self.paths))
        return csr_array((np.ones(len(links)), (links, paths)), shape=shape)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each path is called, such as "SEA > NYC via DEN"; no two are called the same."""
        return all_different(map(_plain_name, self.paths))  # parallel links make copies

    def max_utilization(self, demands: Array, capacities: Array | None = None) -> MaxUtilization:
        """How full the fullest link is, round by round, as a function of the splits.

        Parameters
        ----------
        demands : array or DataFrame
            What each pair sends, of shape (rounds, pairs); the columns of a frame are found by the
            names of the pairs, such as "SEA > NYC".
        capacities : array, optional
            The capacity of each link, above 0. None: those of the graph.

        Returns
        -------
        MaxUtilization
            The functions, on points of `splits`.

        Raises
        ------
        InvalidInput
            If no capacities are given and some link of the graph has none.
        """
        if capacities is None:
            capacities = self.capacities
        if capacities is None:
            words = "Some link has no capacity; give capacities=, one for each link."
            raise InvalidInput(words, setting="capacities")
        demands = columns_in_order(demands, [f"{s} > {t}" for s, t in self.pairs], "demands")
        of_pairs = MaxUtilization(self.incidence, demands, capacities, self.path_pair)
        columns, pairs = int(of_pairs.demands.shape[1]), len(self._ways)
        if columns != pairs:
            words = f"demands must have a column for each of {pairs} pairs, not {columns}."
            raise WrongShape(words, setting="demands")
        return of_pairs

    @cached_property
    def _ways(self) -> list[list[Way]]:
        nodes, tails, heads = number_nodes(self.links)
        numbers = numbers_of(nodes)
        finder = PathFinder(len(nodes), tails.tolist(), heads.tolist(), self.lengths.tolist())
        ways = list[list[Way]]()
        for pair in self.pairs:
            source, target = (node_number(node, numbers, "A pair:", "pairs") for node in pair)
            if source == target:
                words = f"A pair has {shown(pair[0])} for both its source and its target."
                raise InvalidInput(words, setting="pairs")
            ways.append(finder.shortest_paths(source, target, self.k))
            if not ways[-1]:
                raise _no_way(*pair, "pairs")
        return ways

    def _tunnel(self, way: Way) -> Tunnel:
        ends = [self.links[link] for link in way]
        length = float(sum(self._link_rows[link].length for link in way))
        return Tunnel((ends[0][0], *(head for _, head in ends)), way, length)


def _plain_name(path: Tunnel) -> str:
    ends, between = f"{path.nodes[0]} > {path.nodes[-1]}", path.nodes[1:-1]
    return f"{ends} via {', '.join(map(str, between))}" if between else ends


def _of_graph(graph: Edges) -> list[LinkRow]:
    """The edges of a graph, in their order; undirected ones both ways."""
    link_rows = []
    for edge in graph.edges:
        length = edge.get("length", "weight")
        name = "" if graph.columns is None else str(edge.get("name") or "")
        length = 1.0 if length is None else length
        link_rows.append(LinkRow(edge.tail, edge.head, length, edge.get("capacity"), name))
        if not graph.directed:
            link_rows.append(link_rows[-1]._replace(tail=edge.head, head=edge.tail))
    return link_rows


def _as_link_row(i: int, row: Any, what: str) -> LinkRow:
    try:
        link_row = LinkRow(*(() if isinstance(row, str) else row))
        hash((link_row.tail, link_row.head))
    except TypeError:
        words = f"Link {i} of {what} must be (tail, head, length, capacity), not {shown(row)}."
        raise WrongType(words) from None
    called = f"{what}: link {i} ({shown(link_row.tail)} > {shown(link_row.head)})"
    capacity = link_row.capacity
    return LinkRow(
        link_row.tail,
        link_row.head,
        as_number(link_row.length, f"{called}, its length", above=0.0),
        None if capacity is None else as_number(capacity, f"{called}, its capacity", least=0.0),
        as_text(link_row.name, f"{called}, its name"),
    )


# --- ways ----------------------------------------------------------------------------------------

# A path: the places of its links, in order.
Way: TypeAlias = tuple[int, ...]


class PathFinder:
    """The links of a network with numbered nodes, as a matrix of lengths."""

    def __init__(
        self, nodes: int, tails: Sequence[int], heads: Sequence[int], lengths: Sequence[float]
    ) -> None:
        from scipy.sparse import csr_array

        self._lengths, self._links = lengths, dict[tuple[int, int], int]()
        entries = list[tuple[int, int, float]]()
        longer = 2.0**-32 * min(lengths, default=0.0)
        for link, (tail, head, length) in enumerate(zip(tails, heads, lengths, strict=True)):
            if (tail, head) in self._links:
                entries.append((tail, nodes, 0.0))
                tail, nodes = nodes, nodes + 1
            self._links[tail, head] = link
            entries.append((tail, head, length + longer))
        rows, columns, values = np.array(entries).T
        places = rows.astype(np.int32), columns.astype(np.int32)
        self._graph = csr_array((values, places), shape=(nodes, nodes))

    def shortest_paths(self, source: int, target: int, k: int) -> list[Way]:
        """Up to k paths, shortest first; none if the source does not reach the target."""
        from scipy.sparse.csgraph import yen

        def rank(path: Way) -> tuple[float, int, Way]:
            return math.fsum(self._lengths[link] for link in path), len(path), path

        _, before = yen(self._graph, source, target, k, return_predecessors=True)
        return sorted((self._way(row.tolist(), source, target) for row in before), key=rank)

    def _way(self, before: list[int], source: int, target: int) -> Way:
        nodes = [target]
        while nodes[-1] != source:
            nodes.append(before[nodes[-1]])
        steps = pairwise(reversed(nodes))
        return tuple(self._links[step] for step in steps if step in self._links)


def leading_away(
    links: Sequence[Link], lengths: Floats, source: Hashable, target: Hashable
) -> list[int]:
    there, _ = graph_tools.shortest(links, lengths, source)
    back, _ = graph_tools.shortest([(head, tail) for tail, head in links], lengths, target)

    def place(node: Hashable) -> tuple[float, float]:
        return there.get(node, math.inf), -back.get(node, math.inf)

    return [
        i for i, (tail, head) in enumerate(links) if tail in there and place(head) > place(tail)
    ]


def shortest_path_dag(
    links: Sequence[Link], lengths: Floats, source: Hashable, target: Hashable
) -> list[int]:
    """Those that lie on a way from the source to the target, too."""
    away = leading_away(links, lengths, source, target)
    try:
        kept = graph_tools.useful([links[i] for i in away], source=source, target=target)
    except InvalidInput:
        raise _no_way(source, target, "target") from None
    return [away[i] for i in kept]


def _no_way(source: Hashable, target: Hashable, setting: str) -> UnreachableTarget:
    words = f"No way leads from {shown(source)} to {shown(target)}. Leave it out, or add links."
    return UnreachableTarget(words, setting=setting)
