"""Read a network from files, or from frames and graphs in memory: an edge list or a graph,
commodities, and tables of costs, capacities and demands with one row per round.

    links         tail, head, and perhaps length, capacity and name; `lengths` names another column
    commodities   source, target, and perhaps demand
    tunnels       pair, path, and perhaps name: "SEA > NYC", "SEA > DEN > NYC", "north"
    costs         a column a link; absent: the lengths, in every round
    capacities    a column for each link that has one; for others the edge list's, or none
    demands       a column a commodity: what moves; absent: the static demands

The loss is cost times volume, and capacities are constraints. With the objective "max-utilization"
the loss is the utilisation of the fullest link, and there are no costs.

The column of a link is called as the link is in the graph's file (a column name, link or id), or
"tail > head". If every link carries both ways, a column that is called one way serves the way back,
too, unless that has a column of its own. A table without names, its columns numbered from 0, has
the links in their order.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from tidewolf.core import batch, frames, types
from tidewolf.core.arguments import as_path, did_you_mean, listed, match_names, plain_name
from tidewolf.core.errors import InvalidInput, UnknownNode, refuse, require
from tidewolf.core.settings import Text
from tidewolf.files import FileFormat, Graph, Table, read_columns, read_graph, read_table, reading
from tidewolf.files.table import GAPS, GIVEN, align, read_edges, require_seen
from tidewolf.functions import linear
from tidewolf.networks.network import Network, PathRows, Tunnel, is_pairs
from tidewolf.sets import ConvexSet
from tidewolf.sets.graphs import Commodities, commodities_of

# Columns of an edge list that are read where they are there.
LENGTH, CAPACITY = OPTIONAL = ("length", "capacity")
# What a table of tunnels calls pairs and names, and what one of a run calls them.
_TUNNEL_COLUMNS = (("pair", "commodity"), ("name", "tunnel"))
# What the loss of a network is: cost times volume, or how full the fullest link is.
COST, MAX_UTILIZATION = OBJECTIVES = ("cost", "max-utilization")


# A node by its name; text says what it is.
Finder: TypeAlias = Callable[[Any, str], Hashable]


class LinkColumns(NamedTuple):
    """The links of a graph, as tables call them."""

    graph: Graph
    # the graph, as messages call it
    name: str

    @property
    def labels(self) -> tuple[str, ...]:
        """What each link is called: a link that leads both ways by its ends."""
        graph = self.graph
        named = zip(graph.names, graph.links, strict=True)
        return tuple(link_name(link) if graph.both_ways or not at else at for at, link in named)

    def finder(self, setting: str) -> Finder:
        nodes = {str(node): node for link in self.graph.links for node in link}

        def find(called: Any, what: str) -> Hashable:
            if str(called) not in nodes:
                node = f"the node {called!r}, {what}.{did_you_mean(str(called), nodes)}"
                raise UnknownNode(f"no link of {self.name} touches {node}", setting=setting)
            return nodes[str(called)]

        return find

    def names_any(self, columns: Sequence[str]) -> bool:
        calls = {plain_name(call) for calls in self._spellings() for call in calls}
        return not calls.isdisjoint(map(plain_name, columns))

    def places(
        self, columns: Sequence[str], source: object, needed: Collection[int] | None = None
    ) -> types.Int64s:
        """The place of each link's column, -1 if it has none and is not among those `needed`."""
        self._require_distinct()
        links, names = self.graph.links, self.graph.names
        if tuple(columns) == tuple(map(str, range(len(links)))) and not set(columns) & set(names):
            return np.arange(len(links))
        given = list[str | None](columns)
        for i, (tail, _, head) in enumerate(plain_name(each).partition(">") for each in columns):
            if self.graph.loops and tail == head != "":
                given[i] = None  # a link from a node to itself carries nothing
        return match_names(given, self._spellings(), f"{source}, for {self.name}", "link", needed)

    def _spellings(self) -> list[list[str]]:
        named = zip(self.graph.names, self.graph.links, strict=True)
        back = -1 if self.graph.both_ways else 1  # the second way is that back, if there is one
        calls = ((name, link_name(link), link_name(link[::back])) for name, link in named)
        return [list(dict.fromkeys(filter(None, each))) for each in calls]

    def _require_distinct(self) -> None:
        graph, found = self.graph, dict[str, int]()
        for i, (name, link) in enumerate(zip(graph.names, graph.links, strict=True)):
            if name and graph.both_ways and i >= len(graph.links) // 2:
                continue  # the way back has the name of the way there
            called = name or link_name(link)
            if (first := found.setdefault(called, i)) != i:
                both = f"{called!r} is the link of {graph.places[first]} too"
                raise InvalidInput(f"{graph.places[i]}: {both}; name links in a column name.")


def with_nodes(commodities: Iterable[Sequence[Any]], node: Finder) -> list[tuple[Any, ...]]:
    return [
        (node(source, f"the source of commodity {i}"), node(target, f"its target {i}"), *rest)
        for i, (source, target, *rest) in enumerate(commodities, start=1)
    ]


def link_name(link: Sequence[Any]) -> str:
    return f"{link[0]} > {link[1]}"


class NetworkFiles(NamedTuple):
    """The coordinates of points of a network: which column of a table belongs to which link."""

    network: Network
    links: LinkColumns
    objective: str = COST

    @property
    def K(self) -> ConvexSet:
        return self.network.K

    @property
    def labels(self) -> tuple[str, ...]:
        return self.network.names

    @property
    def used(self) -> types.Int64s:
        return np.flatnonzero(self.network._is_used)

    def of_numbers(
        self, numbers: Mapping[str, types.Floats]
    ) -> tuple[batch.Batch | None, list[batch.Batch]]:
        """The loss and the limits of finite numbers of shape (rounds, links), those there are of
        costs (else the lengths), capacities (else the graph's) and weights; demands (rounds,
        commodities) and budgets (rounds,). If there are weights, what links carry times theirs is
        at most the budget; several rows of them are (rounds, rows, links), with budgets of each.
        With the objective max-utilization capacities are no constraints.
        """
        if not numbers:
            return None, []
        network, rounds = self.network, len(next(iter(numbers.values())))

        def given(name: str, else_: types.Floats) -> types.Floats:
            return numbers.get(name, np.broadcast_to(else_, (rounds, len(else_))))

        sent, limits = numbers.get("demands"), list[batch.Batch]()
        capacities = given("capacities", network.capacities)
        if "weights" in numbers:
            weights, budgets = numbers["weights"], numbers["budgets"]
            A = self.spent(weights.reshape(-1, weights.shape[-1]), sent)
            limits.append(linear.weighted_rows(A.reshape(*budgets.shape, -1), budgets))
        if self.objective == MAX_UTILIZATION:
            refuse("costs" in numbers, "With max-utilization there are no costs.", setting="costs")
            return network.max_utilization(capacities, sent), limits
        limit = network.limits(capacities, sent)
        limits += [] if isinstance(limit, batch.Unlimited) else [limit]
        return network.losses(given("costs", network.lengths), sent), limits

    def spent(self, rows: types.Floats, sent: types.Floats | None = None) -> types.Floats:
        """What a unit of each entry of points spends, by what one of each link does: so many rows
        for each round.
        """
        each = None if sent is None else np.repeat(sent, len(rows) // len(sent), axis=0)
        return cast(types.Floats, self.network.losses(rows, each).C)

    def width(self, name: str) -> int:
        return len(self.network.demands if name == "demands" else self.network.links)

    def places(self, name: str, columns: Sequence[str], source: object) -> types.Int64s:
        """The place of the column of each link in a table of this name, or of each commodity; -1 if
        there is none: links that nothing uses need no costs, and no link needs a capacity.
        """
        if name != "demands":
            return self.links.places(columns, source, () if name == "capacities" else self.used)
        names = [each.name for each in self.network.demands]
        if len(names) == len(columns) == 1:  # whatever it is called
            return np.zeros(1, dtype=np.int64)
        return match_names(columns, names, f"{source}", "commodity")

    def in_order(self, name: str, values: types.Floats, places: types.Int64s) -> types.Floats:
        """The columns of a table at these places; a link without one has the graph's capacity."""
        own = self.network.capacities if name == "capacities" else 0.0
        if not values.shape[1]:
            return np.broadcast_to(own, (len(values), len(places)))
        return np.where(places >= 0, values[:, places], own)

    def names_any(self, columns: Sequence[str]) -> bool:
        return not set(map(plain_name, columns)).isdisjoint(map(plain_name, self.labels))

    def points(self, table: Table, source: object) -> types.Floats:
        columns = match_names(table.columns, self.labels, f"{source}")
        return np.ascontiguousarray(table.values[:, columns])

    def of_used_links(self, name: str, table: Table, source: object) -> Table:
        """A table with 0 in the columns of links that nothing uses: gaps there do not matter."""
        if name not in ("costs", "capacities", "weights"):
            return table
        places = self.links.places(table.columns, source, ())[self.used]
        is_used = np.isin(np.arange(len(table.columns)), places)
        return table._replace(values=np.where(is_used, table.values, 0.0))

    @property
    def notes(self) -> tuple[str, ...]:
        graph, notes = self.links.graph, list(self.network.notes)
        if self.objective == MAX_UTILIZATION:
            notes.insert(0, "The loss is the utilisation of the fullest link: 1 is full.")
        if graph.loops:
            notes.append(f"Links from a node to itself are left out: {graph.loops}.")
        if graph.unread:
            notes.append(
                f"{Path(self.links.name).name}: not read are the columns {listed(graph.unread)}; "
                f"beside the ends of links {LENGTH}, {CAPACITY}, name and `lengths` are."
            )
        return tuple(notes)

    @property
    def title(self) -> str:
        network, links, cut = self.network, len(self.network.links), len(self.network.cut)
        what, which = f"{len(network.demands):,} commodities", f"all {links} links"
        if len(network.demands) == 1:
            ends = (network.demands[0].sources, network.demands[0].targets)
            what = "One flow from {} to {}".format(*(" and ".join(map(str, end)) for end in ends))
        if network.tunnels is not None:
            which = f"{len(network.tunnels.paths):,} tunnels"
        if network.paths == "k-shortest":
            which = f"the {network.k} shortest paths"
        elif cut:
            which = f"the {links - cut} of {links} links that lead away and on,"
        low = ", the fullest link kept low" if self.objective == MAX_UTILIZATION else ""
        return f"{what} over {which} of {Path(self.links.name).name}{low}."


def in_order_of(at: Any, name: str, table: Table, source: object) -> types.Floats:
    """The columns of a table in the order of the coordinates `at`: of entries, links or
    commodities, or the one column of budgets.
    """
    if name == "budgets":
        if (count := len(table.columns)) != 1:
            raise InvalidInput(f"{source}: {name} must be one column, not {count}.")
        return table.values[:, 0]
    places = at.places(name, table.columns, source)
    found: types.Floats = at.in_order(name, table.values, places)
    for row, j in np.argwhere(found < 0.0)[:1] if name == "demands" else ():
        cell = f'{table.places[row]}, column "{table.columns[places[j]]}"'
        raise InvalidInput(f"{cell}: demands must be at least 0, not {found[row, j]:g}.")
    return found


class NetworkStream(NamedTuple):
    """A network, and the rounds that files have of it.

    Parameters
    ----------
    network : Network
        What is decided.
    stream : Stream
        Its losses, limits and times.
    notes : tuple of str
        Notes in sentences: links that are not used, gaps that were filled.

    Examples
    --------
    >>> tw.networks.NetworkStream._fields
    ('network', 'stream', 'notes')
    """

    network: Network
    stream: batch.Stream
    notes: tuple[str, ...]


def from_files(
    graph: str | PathLike[str] | Any,
    *,
    source: Any = None,
    target: Any = None,
    commodities: str | PathLike[str] | Sequence[tuple[Any, ...]] | Any | None = None,
    demand: float = 1.0,
    paths: str = "away",
    k: int = 3,
    disjoint: bool = False,
    tunnels: str | PathLike[str] | None = None,
    lengths: str | None = None,
    directed: bool | None = None,
    costs: str | PathLike[str] | Any | None = None,
    capacities: str | PathLike[str] | Any | None = None,
    demands: str | PathLike[str] | Any | None = None,
    objective: str = COST,
    gaps: str = "refuse",
    format: FileFormat = reading.PLAIN,
) -> NetworkStream:
    r"""Read a network and its rounds from files, as `tidewolf run network.toml` does. Frames of
    pandas and polars, and graphs of networkx, may replace files.

    Parameters
    ----------
    graph : str, path, networkx graph or DataFrame
        The links: an edge list (.csv, .xlsx, .parquet, a frame) with columns tail and head, and
        perhaps length, capacity and name; or .graphml, .gml, or a graph of networkx.
    source : hashable or mapping, optional
        The source of the one commodity: a node, or shares by node that sum to 1.
    target : hashable or mapping, optional
        Its target, likewise.
    commodities : str, path, DataFrame or sequence of tuple, optional
        Or many: a table with columns source, target and perhaps demand, or such tuples.
    demand : float, default 1.0
        How much the one commodity sends, in the unit of the capacities.
    paths : str, default "away"
        "away" for the links that lead away from a source, "all" for every link, "k-shortest" for
        tunnels.
    k : int, default 3
        How many tunnels a commodity has.
    disjoint : bool, default False
        Whether the k shortest paths of a commodity share no link.
    tunnels : str or path, optional
        Or a table of own tunnels, with columns pair, path and perhaps name, in place of `paths`.
    lengths : str, optional
        The column of the edge list with the lengths. None: `length`, where it is there.
    directed : bool, optional
        Whether links lead one way only. None: what the file says; an edge list is directed.
    costs : str, path or DataFrame, optional
        The table of what a unit costs, a column a link. None: the lengths.
    capacities : str, path or DataFrame, optional
        The table of what links may carry, a column a link. None: those of the edge list.
    demands : str, path or DataFrame, optional
        The table of what commodities send, a column each. None: the static demands.
    objective : str, default "cost"
        What the loss is: "cost", cost times volume under capacities; or "max-utilization", load
        over capacity of the fullest link, without costs.
    gaps : str, default "refuse"
        What becomes of empty cells: "refuse", "unseen" or "last".
    format : FileFormat
        How text is written in the files.

    Returns
    -------
    NetworkStream
        The network, the stream and what to know of it.

    Raises
    ------
    InvalidInput
        If a file holds a value that is not accepted. The message begins with file and line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     links, costs = pathlib.Path(folder, "links.csv"), pathlib.Path(folder, "costs.csv")
    ...     _ = links.write_text("tail,head,capacity\nSEA,DEN,5\nDEN,SEA,5\nDEN,NYC,5\nSEA,NYC,2\n")
    ...     _ = costs.write_text("SEA > DEN,DEN > NYC,SEA > NYC\n1,1,3\n1,2,2\n")
    ...     found = tw.networks.from_files(links, source="SEA", target="NYC", costs=costs)
    >>> found.network.K.names, len(found.stream)
    (('SEA > DEN', 'DEN > NYC', 'SEA > NYC'), 2)
    """
    in_memory = frames.is_frame(graph) or frames.is_graph(graph)
    path = GIVEN if in_memory else as_path(graph, "The path of a graph")
    gaps, numbers = Text(choices=GAPS)(gaps, "gaps"), [] if lengths is None else [lengths]
    objective = Text(choices=OBJECTIVES)(objective, "objective")
    how: Any = {"optional": OPTIONAL, "directed": directed, "format": format}
    links = LinkColumns(read_graph(graph, numbers=numbers, **how), str(path))
    if isinstance(commodities, str | PathLike):
        commodities = read_commodities(as_path(commodities, "The path of commodities"), format)
    elif frames.is_frame(commodities):
        commodities = Commodities()(commodities, "The commodities")
    settings: dict[str, Any] = {"demand": demand, "paths": paths, "k": k, "disjoint": disjoint}
    if tunnels is not None:
        settings["tunnels"] = read_tunnels(as_path(tunnels, "The path of tunnels"), format)
    files = of_graph(links, source, target, commodities, lengths, **settings)
    files = files._replace(objective=objective)
    given = {"costs": costs, "capacities": capacities, "demands": demands}
    tables = {}
    for name, each in ((name, each) for name, each in given.items() if each is not None):
        framed = frames.is_frame(each)
        where = f"The frame of {name}" if framed else str(as_path(each, f"The table of {name}"))
        table = read_table(each if framed else where, gaps=gaps != "refuse", format=format)
        tables[name] = files.of_used_links(name, table._replace(file=where), where)
    require(tables, InvalidInput, "Give a table of costs, capacities or demands, a row per round.")
    aligned = align(tables, gaps)
    require_seen(aligned)
    tables, times = aligned.tables, next(iter(aligned.tables.values())).times
    losses, limits = files.of_numbers(
        {key: in_order_of(files, key, table, table.file) for key, table in tables.items()}
    )
    assert losses is not None
    stream = batch.Stream(
        losses, batch.as_constraints(limits, losses), time=times, seen=aligned.seen
    )
    return NetworkStream(files.network, stream, (*files.notes, *aligned.notes))


def of_graph(
    columns: LinkColumns,
    source: Any = None,
    target: Any = None,
    commodities: Sequence[tuple[Any, ...]] | None = None,
    lengths: str | None = None,
    tunnels: Sequence[tuple[Any, ...]] = (),
    **settings: Any,
) -> NetworkFiles:
    """The network of these settings on a graph that was read from a file, with `length` and
    `capacity` among its numbers if it has them; nodes are found by their names. Tunnels replace
    the setting `paths`.
    """
    graph = columns.graph

    def ends(given: Any, setting: str) -> Any:
        node, what = columns.finder(setting), f"the {setting}"
        if isinstance(given, Mapping) or is_pairs(given):
            return {node(called, what): share for called, share in dict(given).items()}
        return None if given is None else node(given, what)

    count = len(graph.links)
    length = graph.numbers.get(LENGTH if lengths is None else lengths, np.ones(count))
    capacity = graph.numbers.get(CAPACITY, np.full(count, np.nan))
    for i in np.flatnonzero(~(length > 0.0))[:1].tolist():
        raise InvalidInput(f"{graph.places[i]}: the length must be above 0, not {length[i]:g}.")
    most = [None if np.isnan(each) else each for each in capacity.tolist()]
    named = ("",) * count if graph.both_ways else graph.names
    ends_of = zip(*graph.links, strict=True)
    link_rows = list(zip(*ends_of, length.tolist(), most, named, strict=True))
    if commodities is not None:
        commodities = with_nodes(commodities, columns.finder("commodities"))
    if tunnels:
        beside = dict[Any, list[int]]()
        for i, link in enumerate(graph.links):
            beside.setdefault(link, []).append(i)
        node = columns.finder("tunnels")
        settings["paths"] = [_tunnel(graph.names, beside, node, *row) for row in tunnels]
    one = ends(source, "source"), ends(target, "target")
    return NetworkFiles(Network(link_rows, *one, commodities, **settings), columns)


def _tunnel(
    names: Sequence[str],
    beside: Mapping[Any, Sequence[int]],
    node: Finder,
    pair: str,
    way: Any,
    name: str = "",
    where: str = "",
) -> Tunnel:
    """The nodes and links of a row that stands there: its way is text such as "SEA > DEN > NYC", or
    nodes. Of parallel links it takes the first, unless it names another: "SEA > NYC by SEA-NYC-2".
    """
    is_text = isinstance(way, str)
    text, _, by = way.partition(" by ") if is_text else (way, "", "")
    try:
        places = [str(at).strip() for at in (text.split(">") if is_text else text)]
        path = [node(at, "the tunnels") for at in places]
        (found,), ends = PathRows()([path], "tunnels"), link_name((path[0], path[-1]))
        if plain_name(pair) not in ("", plain_name(ends)):
            raise InvalidInput(f"the path leads as {ends}, not as {pair}: correct one of them.")
        named, links = {each.strip() for each in by.split(",")}, list[int]()
        for step in pairwise(path):
            require(step in beside, InvalidInput, f"no link leads from {step[0]} to {step[1]}.")
            links.append(next((i for i in beside[step] if names[i] in named), beside[step][0]))
        return found._replace(links=tuple(links), name=name)
    except InvalidInput as error:
        where = where or f"the tunnel {name or text!r}"
        raise type(error)(f"{where}: {error}", setting="tunnels") from None


def read_tunnels(path: Path, format: FileFormat = reading.PLAIN) -> list[tuple[str, ...]]:
    """The rows (pair, path, name, place) of a file, or of a tunnels.csv that a run has written."""
    cells = read_columns(path, ("path",), format)
    called = {name.lower(): name for name in reversed(cells.header)}
    pair, name = (called.get(one, called.get(two)) for one, two in _TUNNEL_COLUMNS)
    if pair is None:
        raise InvalidInput(f"{path}, line 1: expected the columns pair, path and perhaps name.")
    names = cells.texts(name) if name else [""] * len(cells.lines)
    places = map(cells.place, range(len(names)))
    return [*zip(cells.texts(pair), cells.texts("path"), names, places, strict=True)]


def read_commodities(path: Path, format: FileFormat = reading.PLAIN) -> list[tuple[Any, ...]]:
    """The rows (source, target, demand) of a file; without a column demand each is 1."""

    def demand(edge: frames.Edge) -> float:
        return reading.finite(edge.get("demand"), f'{edge.place}, column "demand"', format)

    return commodities_of(read_edges(path, format), f"{path}, line 1:", demand)
