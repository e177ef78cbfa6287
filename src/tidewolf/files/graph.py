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

import re
from collections.abc import Hashable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arguments import as_flag, as_path, import_extra, is_text, shown
from tidewolf.core.arrays import as_number
from tidewolf.core.edges import ENDS, Edge, Edges, edge_list, edges_of
from tidewolf.core.errors import EmptyGraph, InvalidInput
from tidewolf.core.settings import Names
from tidewolf.core.types import Floats, Link
from tidewolf.files.format import PLAIN, FileFormat, as_format
from tidewolf.files.reading import ENDINGS, cell_text, file_of, finite, is_gap, read_cells
from tidewolf.sets.graph_tools import away

NAMES = ("name", "link", "id")
# What messages call a graph that comes from no file.
GIVEN = Path("The graph")
# Bytes of GraphML or GML, whose parsers take some 40 times as much memory; edge lists in CSV have
# no such limit.
LARGEST_TEXT = 64 << 20


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
        Columns of an edge list that were not asked for.
    node_places : dict of str and tuple, default {}
        The longitude and latitude of nodes, or their x and y, where all have them.

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
    node_places: dict[str, tuple[float, float]] = {}  # noqa: RUF012

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
        own = None if lengths is None else self.numbers[lengths]
        return away(self.links, source=source, target=target, lengths=own)


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
        If the file is not there or cannot be read; file, line and column are named.
    EmptyGraph
        If no link joins two nodes.
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
    graph = edges_of(path, str(GIVEN))
    numbers = Names()(numbers, "numbers of read_graph")
    optional = Names()(optional, "optional numbers of read_graph")
    directed = None if directed is None else as_flag(directed, "directed")
    missing = None if missing is None else as_number(missing, "What stands for a missing number")
    format = as_format(format)
    if graph is None:
        path = as_path(path, "The path of a graph")
        graph = _from_file(path, format)
    else:
        path = GIVEN
    columns = graph.columns or ()
    if absent := [name for name in numbers if graph.columns and name not in columns]:
        raise InvalidInput(f"{path} has no column {absent[0]!r}; it has {', '.join(columns)}.")
    kept = [edge for edge in graph.edges if edge.tail != edge.head]
    if not kept:
        raise EmptyGraph(f"{path} has no link between two nodes.")
    ways = 1 if (graph.directed if directed is None else directed) else 2
    read = {
        name: np.tile([_number(edge, name, format, missing) for edge in kept], ways)
        for name in numbers
    }
    for name in optional:
        own = np.tile([_number(edge, name, format, np.nan) for edge in kept], ways)
        if not np.isnan(own).all():
            read[name] = own
    links = tuple((edge.tail, edge.head) for edge in kept)
    expected = {*NAMES, *sum(ENDS, ()), *(name.lower() for name in (*numbers, *optional))}
    return Graph(
        links + tuple((head, tail) for tail, head in links) * (ways - 1),
        read,
        len(graph.edges) - len(kept),
        names=tuple(cell_text(edge.get(*NAMES)) for edge in kept) * ways,
        places=tuple(edge.place for edge in kept) * ways,
        both_ways=ways == 2,
        unread=tuple(name for name in columns if name.lower() not in expected),
        node_places=graph.places,
    )


def _number(edge: Edge, name: str, format: FileFormat, missing: float | None) -> float:
    """The finite number of this name, or what stands for a missing one."""
    cell = edge.known[name] if name in edge.known else edge.get(name)
    if not is_gap(cell):
        return finite(cell, f'{edge.place}, column "{name}"', format)
    if missing is None:
        raise InvalidInput(
            f"{edge.place} has no {name}; give `missing=` a number that stands for it, or fill it "
            "in."
        )
    return missing


def _from_file(path: Path, format: FileFormat) -> Edges:
    name = file_of(path).name.lower()
    if not file_of(path).is_file():
        raise InvalidInput(f"There is no graph at {path}.")
    if name.endswith(ENDINGS):
        cells = read_cells(path, format)
        ends = [name.lower() in sum(ENDS, ()) for name in cells.header]
        columns = [
            [cell_text(cell) for cell in column] if end else column
            for end, column in zip(ends, cells.columns, strict=True)
        ]
        return edge_list(cells.header, columns, cells.name, cells.place)
    if not name.endswith((".graphml", ".gml")):
        raise InvalidInput(
            f"{path}: expected a graph that ends in {', '.join(ENDINGS)}, .graphml or .gml."
        )
    networkx = import_extra("networkx", "Reading GraphML and GML", "graph")
    if path.stat().st_size > LARGEST_TEXT:
        raise InvalidInput(
            f"{path} has {path.stat().st_size >> 20} MB; GraphML and GML are read up to "
            f"{LARGEST_TEXT >> 20} MB, edge lists in CSV of any size."
        )
    try:
        graph = networkx.read_graphml(path) if name.endswith(".graphml") else _gml(networkx, path)
    except Exception as error:  # parsers raise what they like
        raise InvalidInput(f"{path} cannot be read as a graph: {error}.") from error
    labels = dict(graph.nodes(data="label"))
    if None not in labels.values() and len(set(labels.values())) == len(labels):
        graph = networkx.relabel_nodes(graph, labels)
    found = edges_of(graph, str(path))
    assert found is not None
    return found


def _gml(networkx: Any, path: Path) -> Any:
    """A GML file; one whose parallel links do not fit its flags as a multigraph."""
    text = path.read_text(encoding="utf-8")
    try:
        return networkx.parse_gml(text, label=None)
    except networkx.NetworkXError:
        several = re.sub(r"(?m)^(\s*graph\s*\[)", r"\1 multigraph 1 ", text, count=1)
        return networkx.parse_gml(several, label=None)
