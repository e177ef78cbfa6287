"""Tunnels are a few short paths for each pair of nodes, over which the pair's demand is split:

    x_p = share of the demand of pair(p) that takes path p        x in a simplex for each pair
    load_l = sum_p incidence[l, p] demand[pair(p)] x_p

Paths are the caller's own, or the k shortest without loops (Yen 1971), found by SciPy, pair after
pair, shortest first; a pair with fewer of them has fewer. Link-disjoint ones are a flow of the
least total length with at most 1 on each link (Suurballe 1974). What is decided lives in `splits`,
a `SimplexProduct`; how full the fullest link is, is a `functions.MaxUtilization`.

Of equally long paths the one with fewer links comes first, then the one whose links come first in
the list. If paths with equally many links tie for the last place, SciPy chooses among them. SciPy
takes one link per pair of nodes, so each further parallel link passes a node of its own. Each link
is 2^-32 of the shortest one longer than it is, so that fewer links decide between ties.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, TypeAlias, final

import numpy as np

from tidewolf.core import arrays, frames, settings
from tidewolf.core.arguments import all_different, shown
from tidewolf.core.errors import InvalidInput, WrongShape, refuse
from tidewolf.core.lazy import sp
from tidewolf.core.types import Array, Floats, Int64s, Link
from tidewolf.functions import MaxUtilization
from tidewolf.networks.network import GraphSetting, OnLinks, PathRows, Tunnel, no_way
from tidewolf.sets import CapacitatedFlow, SimplexProduct
from tidewolf.sets.graphs import Links, node_number, number_nodes, numbers_of


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


@final
@dataclass(frozen=True, eq=False, repr=False)
class Tunnels(OnLinks):
    """Paths between pairs of nodes, the k shortest or given ones, and the splits of demands over
    them.

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
        The largest number of paths per pair.
    disjoint : bool, default False
        Whether the paths of a pair share no link: as many as there are up to k, of the least
        total length.
    paths : array, optional
        The paths themselves, each the nodes that it passes; by name if it is a mapping. None:
        the k shortest of each pair.

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
    >>> tw.networks.Tunnels(links, [("SEA", "NYC")], paths={"north": ["SEA", "CHI", "NYC"]}).names
    ('north',)
    """

    graph: GraphSetting
    pairs: Annotated[Iterable[Link], _Pairs()]
    k: Annotated[int, settings.Count()] = 3
    disjoint: Annotated[bool, settings.Flag()] = False
    paths: Annotated[Any, PathRows()] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        ways = self._ways() if self.paths is None else self._own_ways(self.paths)
        object.__setattr__(self, "paths", tuple(path for some in ways for path in some))

    def __repr__(self) -> str:
        pairs, paths = len(self.splits.sizes), len(self.paths)
        return f"Tunnels({len(self.links):,} links, {pairs:,} pairs, {paths:,} paths)"

    @cached_property
    def capacities(self) -> Floats | None:
        """The capacity of each link; None if some link has none."""
        known = [link_row.capacity for link_row in self._link_rows if link_row.capacity is not None]
        return arrays.frozen(np.array(known)) if len(known) == len(self._link_rows) else None

    @cached_property
    def splits(self) -> SimplexProduct:
        """The set of decisions: a share for each path; those of a pair sum to 1."""
        counts = Counter((path.nodes[0], path.nodes[-1]) for path in self.paths)
        return SimplexProduct([counts[pair] for pair in self.pairs], self.names)

    @property
    def path_pair(self) -> Int64s:
        """The pair that each path serves, by its place."""
        return self.splits.owner

    @cached_property
    def incidence(self) -> Any:
        """The sparse matrix (links, paths) with a 1 where a path uses a link."""
        links = np.array([link for path in self.paths for link in path.links])
        paths = np.repeat(np.arange(len(self.paths)), [len(path.links) for path in self.paths])
        shape = (len(self._link_rows), len(self.paths))
        return sp.csr_array((np.ones(len(links)), (links, paths)), shape=shape)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each path is called, such as "SEA > NYC via DEN"; no two are called the same."""
        found = list[str]()
        for nodes, _, _, name in self.paths:
            via = ", ".join(map(str, nodes[1:-1]))
            found.append(name or f"{nodes[0]} > {nodes[-1]}{f' via {via}' if via else ''}")
        return all_different(found)  # parallel links make copies

    @cached_property
    def shared_bottlenecks(self) -> tuple[tuple[str, int], ...]:
        """The pairs whose paths, two or more, all have the same narrowest link, and that link, by
        its place: no split of the pair relieves it.
        """
        room = [np.inf if row.capacity is None else row.capacity for row in self._link_rows]
        found = list[tuple[str, int]]()
        for j, (source, target) in enumerate(self.pairs):
            own = [self.paths[i].links for i in np.flatnonzero(self.path_pair == j)]
            least = [min(room[link] for link in links) for links in own]
            narrow = [
                {link for link in links if room[link] == most}
                for links, most in zip(own, least, strict=True)
            ]
            if len(own) > 1 and (shared := set.intersection(*narrow)):
                found.append((f"{source} > {target}", min(shared)))
        return tuple(found)

    def max_utilization(self, demands: Array, capacities: Array | None = None) -> MaxUtilization:
        """The largest utilisation per round, as a function of the splits.

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
        capacities = self.capacities if capacities is None else capacities
        if capacities is None:
            raise InvalidInput("Some link has no capacity: give capacities.", setting="capacities")
        demands = frames.columns_in_order(demands, [f"{s} > {t}" for s, t in self.pairs], "demands")
        of_pairs = MaxUtilization(self.incidence, demands, capacities, self.path_pair)
        if (columns := int(of_pairs.demands.shape[1])) != (pairs := len(self.splits.sizes)):
            expected = f"a column for each of {pairs} pairs"
            raise WrongShape(f"demands must have {expected}, not {columns}.", setting="demands")
        return of_pairs

    def _ways(self) -> list[list[Tunnel]]:
        nodes, tails, heads = number_nodes(self.links)
        numbers = numbers_of(nodes)
        finder = PathFinder(len(nodes), tails.tolist(), heads.tolist(), self.lengths.tolist())
        find = finder.disjoint_paths if self.disjoint else finder.shortest_paths
        ways = list[list[Tunnel]]()
        for pair in self.pairs:
            source, target = (node_number(node, numbers, "A pair:", "pairs") for node in pair)
            refuse(source == target, f"A pair has {shown(pair[0])} as both ends.", setting="pairs")
            ways.append([self._tunnel(way) for way in find(source, target, self.k)])
            if not ways[-1]:
                raise no_way(*pair, "pairs")
        return ways

    def _own_ways(self, paths: Iterable[Tunnel]) -> list[list[Tunnel]]:
        first, ways = dict[Link, int](), {pair: list[Tunnel]() for pair in self.pairs}
        for i, link in enumerate(self.links):
            first.setdefault(link, i)
        for path in paths:
            steps = [*pairwise(path.nodes)]
            links = path.links or tuple(first.get(step, -1) for step in steps)
            called = f"The path {path.name or ' > '.join(map(str, path.nodes))}"
            for step, at in zip(steps, links, strict=True):
                if not 0 <= at < len(self.links) or self.links[at] != step:
                    raise InvalidInput(
                        f"{called}: no link leads from {step[0]} to {step[1]}.", setting="paths"
                    )
            if (pair := (path.nodes[0], path.nodes[-1])) not in ways:
                raise InvalidInput(f"{called} joins no pair: leave it out.", setting="paths")
            ways[pair].append(self._tunnel(links, path.name))
        for source, target in (pair for pair, own in ways.items() if not own):
            raise InvalidInput(f"No path leads from {source} to {target}.", setting="paths")
        return [*ways.values()]

    def _tunnel(self, way: "Way", name: str = "") -> Tunnel:
        nodes = self.links[way[0]][0], *(self.links[link][1] for link in way)
        return Tunnel(nodes, way, float(sum(self.lengths[list(way)].tolist())), name)


# --- ways ----------------------------------------------------------------------------------------

# A path: the places of its links, in order.
Way: TypeAlias = tuple[int, ...]


class PathFinder:
    def __init__(self, nodes: int, tails: list[int], heads: list[int], lengths: list[Any]) -> None:
        self._lengths, self._links = lengths, dict[tuple[int, int], int]()
        self._ends = [*zip(tails, heads, strict=True)]
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
        self._graph = sp.csr_array((values, places), shape=(nodes, nodes))

    def shortest_paths(self, source: int, target: int, k: int) -> list[Way]:
        """Up to k paths, shortest first; none if the source does not reach the target."""
        _, found = sp.csgraph.yen(self._graph, source, target, k, return_predecessors=True)
        ways = list[Way]()
        for before in found.tolist():
            nodes = [target]
            while nodes[-1] != source:
                nodes.append(before[nodes[-1]])
            steps = pairwise(reversed(nodes))
            ways.append(tuple(self._links[step] for step in steps if step in self._links))
        return sorted(ways, key=self._rank)

    def disjoint_paths(self, source: int, target: int, k: int) -> list[Way]:
        """Up to k paths that share no link, of the least total length, shortest first."""
        one_each = np.ones(len(self._ends), dtype=np.int32)
        ends = np.array(self._ends, dtype=np.int32).T
        graph = sp.coo_array((one_each, ends), shape=self._graph.shape).tocsr()
        count = min(k, int(sp.csgraph.maximum_flow(graph, source, target).flow_value))
        if count == 0:
            return []
        supplies: dict[Hashable, float] = {source: float(count), target: -float(count)}
        K = CapacitatedFlow.from_edges(self._ends, supplies=supplies, upper=1.0)
        paths = K.paths(np.round(K.lmo(np.array(self._lengths))))
        return sorted((path.arcs for path in paths), key=self._rank)

    def _rank(self, path: Way) -> tuple[float, int, Way]:
        return math.fsum(self._lengths[link] for link in path), len(path), path
