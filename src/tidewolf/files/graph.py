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

from tidewolf.core.arguments import (
    as_flag,
    as_items,
    as_path,
    as_text,
    import_extra,
    is_text,
    shown,
)
from tidewolf.core.arrays import as_number
from tidewolf.core.edges import ENDS, Edges, edges_of
from tidewolf.core.errors import EmptyGraph, InvalidInput, TidewolfError
from tidewolf.core.types import Floats, Link
from tidewolf.files.format import PLAIN, FileFormat, as_format
from tidewolf.files.reading import ENDINGS, cell_text, file_of, finite, is_gap, read_cells
from tidewolf.sets.graph_tools import away

NAMES = ("name", "link", "id")
GIVEN = Path("The graph")
"""What messages call a graph that comes from no file."""
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
        Columns of an edge list that were not asked for.

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
    numbers, optional = (
        [as_text(name, "The name of a number to read") for name in as_items(names, what, '["km"]')]
        for names, what in ((numbers, "The numbers"), (optional, "The optional numbers"))
    )
    directed = None if directed is None else as_flag(directed, "directed")
    missing = None if missing is None else as_number(missing, "What stands for a missing number")
    found, columns, one_way = _links(graph, path, as_format(format))
    for number in numbers:
        if columns is not None and number not in columns:
            raise InvalidInput(f"{path} has no column {number!r}; it has {', '.join(columns)}.")
    kept = [link for link in found if link.tail != link.head]
    if not kept:
        raise EmptyGraph(f"{path} has no link between two nodes.")
    ways = 1 if (one_way if directed is None else directed) else 2
    links = [(link.tail, link.head) for link in kept]
    read = {
        each: np.tile([link.number(each, format, missing) for link in kept], ways)
        for each in numbers
    }
    for each in optional:
        own = [link.number(link.called(each), format, np.nan) for link in kept]
        if not np.isnan(own).all():
            read[each] = np.tile(own, ways)
    return Graph(
        (*links, *((head, tail) for tail, head in links if ways == 2)),
        read,
        len(found) - len(kept),
        names=tuple(map(_name, kept)) * ways,
        places=tuple(link.where for link in kept) * ways,
        both_ways=ways == 2,
        unread=() if columns is None else _unread(columns, (*numbers, *optional)),
    )


class _Link(NamedTuple):
    """A link, what is known of it, and where it stands."""

    tail: Hashable
    head: Hashable
    known: dict[str, Any]
    where: str

    def called(self, name: str) -> str:
        """What is known under this name in any case of letters."""
        return next((key for key in self.known if key.lower() == name.lower()), name)

    def number(self, name: str, format: FileFormat, missing: float | None) -> float:
        """The finite number of this name, or what stands for a missing one."""
        cell = self.known.get(name)
        if not is_gap(cell):
            return finite(cell, f'{self.where}, column "{name}"', format)
        if missing is not None:
            return missing
        raise InvalidInput(
            f"{self.where} has no {name}; give `missing=` a number that stands for it, or fill it "
            "in."
        )


def _links(
    graph: Edges | None, path: Path, format: FileFormat
) -> tuple[list[_Link], Sequence[str] | None, bool]:
    """The links of a graph or a file, the columns of an edge list, and whether they lead one
    way.
    """
    name = file_of(path).name.lower()
    if graph is None and not file_of(path).is_file():
        raise InvalidInput(f"There is no graph at {path}.")
    if graph is None and name.endswith(ENDINGS):
        cells = read_cells(path, format)
        ends, found = _ends(cells.header, cells.name), []
        for row in range(len(cells.lines)):
            tail, head = (cells.text(row, j) for j in ends)
            if not (tail and head):
                place = cells.place(row, ends[0] if not tail else ends[1])
                raise InvalidInput(f"{place}: the cell is empty; a link has two ends.")
            raw = (column[row] for column in cells.columns)
            known = dict(zip(cells.header, raw, strict=True))
            found.append(_Link(tail, head, known, cells.place(row)))
        return found, cells.header, True
    if graph is None and not name.endswith((".graphml", ".gml")):
        raise InvalidInput(
            f"{path}: expected a graph that ends in {', '.join(ENDINGS)}, .graphml or .gml."
        )
    graph = _from_networkx(path) if graph is None else graph
    found = []
    for i, edge in enumerate(graph.edges):
        link = f"row {i + 1}" if graph.columns is not None else f"link {edge.tail} - {edge.head}"
        found.append(_Link(*edge, f"{path}, {link}"))
    return found, graph.columns, graph.directed


def _ends(columns: Sequence[str], what: object) -> tuple[int, int]:
    """The places of the columns of tails and heads."""
    lower = [name.lower() for name in columns]
    for tail, head in ENDS:
        if tail in lower and head in lower:
            return lower.index(tail), lower.index(head)
    ways = ", or ".join(f"{tail} and {head}" for tail, head in ENDS)
    raise InvalidInput(f"{what}: expected the columns {ways}, received {', '.join(columns)}.")


def _unread(columns: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    """The columns of an edge list that are neither ends, nor names, nor asked for."""
    known = {*NAMES, *(name.lower() for name in asked)}
    ends = _ends(columns, "")
    return tuple(n for i, n in enumerate(columns) if i not in ends and n.lower() not in known)


def _name(link: _Link) -> str:
    return next((cell_text(link.known[key]) for key in NAMES if key in link.known), "")


def _from_networkx(path: Path) -> Edges:
    """The graph in a GraphML or GML file."""
    networkx = import_extra("networkx", "Reading GraphML and GML", "graph")
    size = path.stat().st_size
    if size > LARGEST_TEXT:
        raise InvalidInput(
            f"{path} has {size >> 20} MB; GraphML and GML are read up to {LARGEST_TEXT >> 20} MB, "
            "edge lists in CSV of any size."
        )
    try:
        if path.name.lower().endswith(".graphml"):
            graph = networkx.read_graphml(path)
        else:
            graph = _gml(networkx, path)
    except TidewolfError:
        raise
    except Exception as error:  # parsers raise what they like
        raise InvalidInput(f"{path} cannot be read as a graph: {error}.") from error
    labels = dict(graph.nodes(data="label"))
    if None not in labels.values() and len(set(labels.values())) == len(labels):
        graph = networkx.relabel_nodes(graph, labels)
    found = edges_of(graph, str(path))
    assert found is not None
    return found


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
