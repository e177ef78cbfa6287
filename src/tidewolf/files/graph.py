"""Graphs as links for flows: edge lists (CSV, Excel, Parquet, frames of pandas and polars),
GraphML, GML, graphs of networkx.

Parallel links are links of their own; a link from a node to itself carries nothing and is left out.
A graph that is not directed has every link in both directions, the ways back after the ways there.
An edge list has a column of tails and one of heads, called so (or source and target, from and to, u
and v), and is directed unless said otherwise. GML files with parallel links are read whether or not
they say "multigraph". Nodes are called by their labels where every node has one of its own, else by
their ids.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arguments import as_flag, as_items, as_path, as_text, is_text, shown
from tidewolf.core.arrays import as_number
from tidewolf.core.edges import ENDS, Edge, Edges, edges_of
from tidewolf.core.errors import EmptyGraph, InvalidInput, MissingExtra, TidewolfError
from tidewolf.core.types import Floats, Link
from tidewolf.files.excel import file_of
from tidewolf.files.format import PLAIN, FileFormat, as_format
from tidewolf.files.numbers import number_in
from tidewolf.files.records import ENDINGS, Record, read_cells
from tidewolf.sets.graph_tools import away

NAMES = ("name", "link", "id")
GIVEN = Path("The graph")
"""What sentences call a graph that comes from no file."""
LARGEST_TEXT = 64 << 20
"""Bytes of GraphML or GML, whose parsers take some 40 times as much memory; edge lists in CSV have
no such limit.
"""
_GML = re.compile(r'(?P<text>"[^"]*")|#[^\n]*|\bmultigraph\s+\d+|(?P<graph>\bgraph\s*\[)')
"""What is looked for in a GML file, whichever comes first: within text and comments nothing is."""


class Graph(NamedTuple):
    """Directed links and numbers on them.

    Parameters
    ----------
    links : tuple of tuple
        The links, (tail, head) each.
    numbers : dict of str and array
        Those asked for, one for each link.
    loops : int
        Links of the file from a node to itself, which are left out.
    names : tuple of str, default ()
        What the file calls each link, in `name`, `link` or `id`; empty where it does not.
    places : tuple of str, default ()
        Where each link stands in the file.
    both_ways : bool, default False
        Whether every link is there in both directions, the ways back in the second half.
    unread : tuple of str, default ()
        Columns of an edge list that nobody asked for.

    Examples
    --------
    >>> links = (("SEA", "DEN"), ("DEN", "SEA"), ("DEN", "NYC"))
    >>> graph = tw.problems.Graph(links, {"km": np.array([1600.0, 1600.0, 2600.0])}, loops=0)
    >>> graph.dag("SEA", "NYC", "km")  # without the way back
    [0, 2]
    """

    links: tuple[Link, ...]
    numbers: dict[str, Floats]
    loops: int
    names: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    both_ways: bool = False
    unread: tuple[str, ...] = ()

    def dag(self, source: Hashable, target: Hashable, lengths: str | None = None) -> list[int]:
        """The links that lead away from the source and lie on a way to the target.

        Parameters
        ----------
        source : hashable
            The node where the flow starts.
        target : hashable
            The node where it ends.
        lengths : str, optional
            The name of the numbers by which distances are measured. None: every link is 1 long.

        Returns
        -------
        list of int
            Their places in `links`; no cycle is left among them.
        """
        if lengths is not None and not is_text(lengths, *self.numbers):
            name = lengths if isinstance(lengths, str) else shown(lengths)
            raise InvalidInput(
                f"The links have no {name}; ask for it, read_graph(path, numbers=[{name!r}])."
            )
        return away(
            self.links,
            source=source,
            target=target,
            lengths=None if lengths is None else self.numbers[lengths],
        )


def read_graph(
    path: str | PathLike[str] | Any,
    *,
    numbers: Sequence[str] = (),
    optional: Sequence[str] = (),
    missing: float | None = None,
    directed: bool | None = None,
    format: FileFormat = PLAIN,
) -> Graph:
    r"""The graph in an edge list (CSV, Excel, Parquet), GraphML or GML, by the ending of its name;
    or of networkx, or in a frame.

    Parameters
    ----------
    path : str, path, networkx graph or DataFrame
        The file: .csv, .csv.gz, .tsv, .xlsx (also "book.xlsx#Sheet"), .parquet, .graphml or .gml.
        Or a graph of networkx, or an edge list in a frame of pandas or polars.
    numbers : sequence of str, default ()
        What to read of every link, such as its length.
    optional : sequence of str, default ()
        What to read where the file has it, whatever the case of its letters, NaN of links that have
        none.
    missing : float, optional
        What stands for a number that a link does not have. None: the file is refused.
    directed : bool, optional
        Whether links lead one way only. None: what the file says; an edge list is directed.
    format : FileFormat
        How text is written in an edge list.

    Returns
    -------
    Graph
        The links and their numbers.

    Raises
    ------
    InvalidInput
        Where the file is not there or cannot be read; file, line and column are told.
    EmptyGraph
        Where no link joins two nodes.
    MissingExtra
        Where GraphML or GML is read and networkx is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "links.csv")
    ...     _ = path.write_text("tail,head,km\nSEA,DEN,1600\nDEN,NYC,2600\n")
    ...     graph = tw.problems.read_graph(path, numbers=["km"])
    >>> graph.links
    (('SEA', 'DEN'), ('DEN', 'NYC'))
    """
    graph = edges_of(path, "The graph")
    path = GIVEN if graph is not None else as_path(path, "The path of a graph")
    numbers = [
        as_text(name, "The name of a number to read")
        for name in as_items(numbers, "The numbers to read", '["length"]')
    ]
    optional = [
        as_text(name, "The name of a number to read")
        for name in as_items(optional, "The optional numbers to read", '["capacity"]')
    ]
    directed = None if directed is None else as_flag(directed, "directed")
    if missing is not None:
        missing = as_number(missing, "What stands for a missing number")
    format = as_format(format)
    if graph is None and not file_of(path).is_file():
        raise InvalidInput(f"There is no graph at {path}.")
    name = file_of(path).name.lower()
    if graph is not None:
        found, said = _from_edges(graph, numbers), graph.directed
    elif name.endswith(ENDINGS):
        found, said = _from_edge_list(path, numbers, format), True
    elif name.endswith((".graphml", ".gml")):
        found, said = _from_networkx(path)
    else:
        raise InvalidInput(
            f"{path} is none of the graphs that can be read: .csv, .csv.gz, .tsv, .xlsx, .parquet, "
            ".graphml, .gml."
        )
    is_listed = name.endswith(ENDINGS) or (graph is not None and graph.columns is not None)
    kept = [link for link in found if link.tail != link.head]
    if not kept:
        raise EmptyGraph(f"{path} has no link between two nodes.")
    ways = 1 if (said if directed is None else directed) else 2
    links = [(link.tail, link.head) for link in kept]
    read = {
        name: np.tile([_number(link, name, missing) for link in kept], ways) for name in numbers
    }
    for column in optional:
        own = [_optional(link, column, format) for link in kept]
        if not np.isnan(own).all():
            read[column] = np.tile(own, ways)
    return Graph(
        (*links, *((head, tail) for tail, head in links if ways == 2)),
        read,
        len(found) - len(kept),
        names=tuple(map(_name, kept)) * ways,
        places=tuple(link.where for link in kept) * ways,
        both_ways=ways == 2,
        unread=_unread(kept[0], (*numbers, *optional)) if is_listed else (),
    )


class _Link(NamedTuple):
    """A link of a file, what is known of it, and where it stands."""

    tail: Hashable
    head: Hashable
    known: dict[str, Any]
    where: str
    number: Callable[[str], float]
    """the finite number of this name, which is there"""


def _number(link: _Link, name: str, missing: float | None) -> float:
    if str(link.known.get(name, "")).strip():
        return link.number(name)
    if missing is not None:
        return missing
    raise InvalidInput(
        f"{link.where} has no {name}; give `missing=` a number that stands for it, or fill it in."
    )


def _unread(link: _Link, asked: Sequence[str]) -> tuple[str, ...]:
    """The columns of an edge list that are neither ends, nor names, nor asked for."""
    lower = [name.lower() for name in link.known]
    ends = next(pair for pair in ENDS if pair[0] in lower and pair[1] in lower)
    known = {*ends, *NAMES, *(name.lower() for name in asked)}
    return tuple(name for name in link.known if name.lower() not in known)


def _optional(link: _Link, name: str, format: FileFormat) -> float:
    called = next((key for key in link.known if key.lower() == name.lower()), name)
    return _number(link, called, math.nan)


def _name(link: _Link) -> str:
    return next((str(link.known[key]).strip() for key in NAMES if key in link.known), "")


def _from_edge_list(path: Path, numbers: Sequence[str], format: FileFormat) -> list[_Link]:
    cells = read_cells(path, format)
    header = cells.header
    lower = [name.lower() for name in header]
    for tail, head in ENDS:
        if tail in lower and head in lower:
            i, j = lower.index(tail), lower.index(head)
            break
    else:
        raise InvalidInput(
            f"{path} has the columns {', '.join(header)}; an edge list needs tail and head, or "
            f"{_ways()}."
        )
    for name in numbers:
        if name not in header:
            raise InvalidInput(f"{path} has no column called {name!r}; it has {', '.join(header)}.")
    found = []
    for row in range(len(cells.rows)):
        texts = [cells.text(row, column) for column in range(len(header))]
        if not (texts[i] and texts[j]):
            where = cells.place(row, j if texts[i] else i)
            raise InvalidInput(f"{where}: the cell is empty; a link has two ends.")
        known, record = dict(zip(header, texts, strict=True)), Record(cells, row)
        found.append(_Link(texts[i], texts[j], known, record.where, record.number))
    return found


def _from_edges(graph: Edges, numbers: Sequence[str]) -> list[_Link]:
    """The links of a graph of networkx, or of an edge list in a frame."""
    for name in numbers:
        if graph.columns is not None and name not in graph.columns:
            raise InvalidInput(
                f"{GIVEN} has no column called {name!r}; it has {', '.join(graph.columns)}."
            )
    return [_edge_link(i, edge, graph.columns is not None) for i, edge in enumerate(graph.edges)]


def _edge_link(i: int, edge: Edge, is_row: bool) -> _Link:
    tail, head, known = edge
    where = f"{GIVEN}, row {i + 1}" if is_row else f"{GIVEN}, link {tail} - {head}"

    def number(name: str) -> float:
        value = known[name]
        if isinstance(value, str):
            return number_in(value.strip(), f"{where}, {name}")
        return as_number(value, f"{where}: {name}")

    return _Link(tail, head, known, where, number)


def _from_networkx(path: Path) -> tuple[list[_Link], bool]:
    """The links of a GraphML or GML file, and whether it says that they are directed."""
    try:
        import networkx
    except ImportError:
        raise MissingExtra(
            'Reading GraphML and GML needs networkx: pip install "tidewolf[graph]".'
        ) from None
    size = path.stat().st_size
    if size > LARGEST_TEXT:
        most = (
            f"GraphML and GML are read up to {LARGEST_TEXT >> 20} MB, edge lists in CSV of any size"
        )
        raise InvalidInput(f"{path} has {size >> 20} MB; {most}.")
    try:
        graph = (
            networkx.read_graphml(path)
            if path.name.lower().endswith(".graphml")
            else _gml(networkx, path)
        )
    except TidewolfError:
        raise
    except Exception as error:  # parsers raise what they like
        raise InvalidInput(f"{path} cannot be read as a graph: {error}.") from error
    labels = [data.get("label") for _, data in graph.nodes(data=True)]
    named = None not in labels and len(set(labels)) == len(labels)
    name = (
        dict(zip(graph.nodes, labels, strict=True))
        if named
        else {node: node for node in graph.nodes}
    )
    links = [_networkx_link(name[u], name[v], data, path) for u, v, data in graph.edges(data=True)]
    return links, graph.is_directed()


def _networkx_link(tail: Hashable, head: Hashable, known: dict[str, Any], path: Path) -> _Link:
    where = f"{path}, link {tail} - {head}"
    return _Link(
        tail,
        head,
        known,
        where,
        lambda name: number_in(str(known[name]).strip(), f"{where}, {name}"),
    )


def _gml(networkx: Any, path: Path) -> Any:
    """A GML file as a multigraph, whatever it says."""
    graphs = 0

    def ours(found: re.Match[str]) -> str:
        nonlocal graphs
        if found["text"] is not None:
            return found[0]
        if found["graph"] is None:
            return ""
        graphs += 1
        return "graph [\n multigraph 1" if graphs == 1 else found[0]

    text = _GML.sub(ours, path.read_text(encoding="utf-8"))
    if not graphs:
        raise InvalidInput(f"{path} cannot be read as a graph: it has no part called graph.")
    return networkx.parse_gml(text, label=None)


def _ways() -> str:
    return ", or ".join(f"{tail} and {head}" for tail, head in ENDS[1:])
