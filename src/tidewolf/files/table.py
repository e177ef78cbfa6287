"""Tables of numbers, one row per round: CSV (also .csv.gz), Excel, NPZ, Parquet, and frames of
pandas and polars. Graphs as links for flows: edge lists (CSV, Excel, Parquet, frames), GraphML,
GML, and graphs of networkx.

A first column called time, date, datetime or timestamp holds numbers or dates that increase from
row to row (reading.py); every other column holds a finite number in every row. What does not is
refused with the file, the line and the column.

Parallel links are links of their own; a link from a node to itself carries nothing and is left out.
A graph that is not directed has every link in both directions, the ways back after the ways there.
An edge list has a column of tails and one of heads, called so (or source and target, from and to, u
and v), and is directed unless said otherwise. GML files with parallel links are read whether or not
they say "multigraph". Nodes are called by their labels where every node has one of its own, else by
their ids.
"""

import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core import arguments, round_info, settings
from tidewolf.core.arrays import as_number
from tidewolf.core.errors import EmptyGraph, InvalidInput, refuse, require, require_some
from tidewolf.core.frames import ENDS, TIMES, Edge, Edges, edge_list, edges_of, is_frame, read_frame
from tidewolf.core.types import Bools, Floats, Link, NDArray
from tidewolf.files import reading
from tidewolf.sets.graph_tools import away


class Table(NamedTuple):
    """Rows of numbers, one per round.

    Parameters
    ----------
    times : array or None
        float64 or datetime64, increasing, whole numbers above 2^53 as such; None if there are
        none.
    columns : tuple of str
        The names of the columns.
    values : array
        The numbers, of shape (rows, columns).
    places : sequence of str, default ()
        Where each row stands in the file.
    file : str, default ""
        The file, as messages call it.

    Examples
    --------
    >>> table = tw.problems.Table(None, ("SEA > DEN", "DEN > NYC"), np.ones((3, 2)))
    >>> tw.functions.Capacity(table.values)
    Capacity(c=<3x2 float64>)
    """

    times: NDArray | None
    columns: tuple[str, ...]
    values: Floats
    places: Sequence[str] = ()
    file: str = ""


def read_table(
    path: str | PathLike[str] | Any,
    *,
    gaps: bool = False,
    format: reading.FileFormat = reading.PLAIN,
) -> Table:
    r"""The table in a CSV, Excel, NPZ or Parquet file, by the ending of its name; or in a frame.

    Parameters
    ----------
    path : str, path or DataFrame
        The file: .csv, .csv.gz, .tsv, .xlsx (its first sheet, or "book.xlsx#Sheet"), .npz or
        .parquet. Or a frame of pandas or polars, whose times are its column of dates, else its
        index.
    gaps : bool, default False
        Whether cells may be empty, or NaN: what is not known is NaN.
    format : FileFormat
        How text is written in it.

    Returns
    -------
    Table
        Times, if the first column has them, names of columns, and numbers.

    Raises
    ------
    InvalidInput
        If the file does not exist, or a cell is no finite number; the error names file, line and
        column.
    MissingExtra
        If pyarrow (Parquet) or openpyxl (Excel) is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "prices.csv")
    ...     _ = path.write_text("time,night,day\n2026-01-01,20,30\n2026-01-02,22,28\n")
    ...     table = tw.problems.read_table(path)
    >>> table.columns, table.values.tolist()
    (('night', 'day'), [[20.0, 30.0], [22.0, 28.0]])
    """
    gaps, format = arguments.as_flag(gaps, "gaps"), reading.as_format(format)
    if is_frame(path):
        cells = _frame_cells(path, format)
    else:
        path = arguments.as_path(path, "The path of a table")
        require(reading.file_of(path).is_file(), InvalidInput, f"There is no table at {path}.")
        npz = path.name.lower().endswith(".npz")
        cells = _npz_cells(path, format) if npz else reading.read_cells(path, format)
    return table_of(cells, gaps)


def table_of(cells: reading.Cells, gaps: bool) -> Table:
    timed = is_time(cells.header[0])
    columns, rows = column_names(cells.header[int(timed) :], cells.name), len(cells.lines)
    while timed and rows and not any(reading.cell_text(at[rows - 1]) for at in cells.columns):
        rows -= 1  # spreadsheets write separators to the last row that was ever touched
    require(rows, InvalidInput, f"{cells.name} has column names and no rows.")
    values = np.empty((rows, len(columns)))
    for j in range(len(columns)):
        values[:, j] = cells.numbers(j + timed, gaps, rows)
    times = _times(cells, rows) if timed else None
    return Table(times, columns, values, [cells.place(i) for i in range(rows)], cells.name)


def column_names(names: Sequence[str], file: str) -> tuple[str, ...]:
    require(names, InvalidInput, f"{file} has times and no other column.")
    for i, name in enumerate(names):
        if name == "" or name in names[:i]:
            what = f"the name {name!r} comes twice" if name else "a column has no name"
            raise InvalidInput(f"{file}, column {i + 1} beside the times: {what}.")
    return tuple(names)


def is_time(name: str) -> bool:
    return name.lower() in TIMES


def _frame_cells(frame: Any, format: reading.FileFormat) -> reading.Cells:
    name = "The frame"
    values, names, times = read_frame(frame, name)
    rows, width = values.shape
    header, columns = list(names or map(str, range(width))), list(values.T)
    require(width, InvalidInput, f"{name} has no column of numbers.")
    utc = any(getattr(getattr(times, "dtype", None), zone, None) for zone in ("tz", "time_zone"))
    if times is not None:
        header.insert(0, "time")
        columns.insert(0, round_info.as_times(times, f"{name}: a time")[1])
    return reading.Cells(name, header, columns, range(1, rows + 1), format, utc=utc)


def _npz_cells(path: Path, format: reading.FileFormat) -> reading.Cells:
    """The array `values` of an NPZ file, or its only array of two axes, beside `columns` (names)
    and `times` if they are there.
    """
    arrays = reading.read_arrays(path)
    tables = {name: array for name, array in arrays.items() if array.ndim == 2}
    values = tables.get("values", next(iter(tables.values())) if len(tables) == 1 else None)
    rows, width = (0, 0) if values is None else values.shape
    names = arrays.get("columns", np.arange(width))
    times = {"time": arrays["times"]} if "times" in arrays else {}
    fits = names.shape == (width,) and all(each.shape == (rows,) for each in times.values())
    if values is None or not width or values.dtype.kind not in "fiub" or not fits:
        held = ", ".join(f"{name} {each.shape} of {each.dtype}" for name, each in arrays.items())
        raise InvalidInput(
            f"{path}: expected one array `values` of numbers with two axes, and in `columns` and "
            f"`times`, if they are there, as many as it has; received {held or 'nothing'}."
        )
    header, columns = [*times, *map(str, names)], [*times.values(), *values.T]
    return reading.Cells(str(path), header, columns, range(1, rows + 1), format)


def _times(cells: reading.Cells, rows: int) -> NDArray:
    format, utc, times = cells.format, cells.utc, cells.columns[0][:rows]
    where = [cells.place(i, 0) for i in range(rows)]
    if times.dtype.kind not in "fiubM":
        if format.date_format is None and np.isfinite(reading.to_float(times[0], format.decimal)):
            texts, times = [str(cell) for cell in times], cells.numbers(0, False, rows)
            with suppress(ValueError, OverflowError):  # floats do not keep more than 53 bits
                times = np.array([int(text) for text in texts], dtype=np.int64)
        else:
            times, utc = reading.read_dates(list(times), where, format)
    if times.dtype.kind in "iub" and int(times.max()) <= 2**53:
        times = times.astype(np.float64)
    dated = times.dtype.kind == "M"
    refuse(
        np.isnat(times).any() if dated else not np.isfinite(times.astype(np.float64)).all(),
        f"{cells.name}: every row needs a time; some have none.",
    )
    if dated and not utc and format.timezone is not None:
        times = reading.in_utc(times, where, format.timezone)
    for i in np.flatnonzero(~(times[1:] > times[:-1]))[:1].tolist():
        before, time = map(reading.clock_text, times[i : i + 2])
        clocks = f"; if clocks went back, give offsets or {reading.say(timezone='Europe/Berlin')}"
        clocks *= dated and not utc and format.timezone is None
        raise InvalidInput(
            f"{cells.place(i + 1)}: the time {time} does not come after {before}; sort the rows, "
            f"one per time{clocks}."
        )
    return times


# --- gaps -----------------------------------------------------------------------------------------
#
# Gaps in tables of rounds: cells without a number, and rows that some tables have and others not.
#
#     "refuse"     there are none, or the file is refused
#     "last"       a gap has the last number of its column; costs before any have the mean of the
#                  others in the row
#     "unseen"     a round with a gap is played, and no learner learns from it
#
# Rounds are the times that any table has, in their order (times of advice and contexts make no
# rounds); tables without times go row by row, and a shorter one lacks its last rows. Unseen rounds
# are measured too, with the last numbers of their columns (the first that come, if none came
# before), and notes say how many there were.


# What can be done about gaps.
GAPS = ("refuse", "unseen", "last")


class Aligned(NamedTuple):
    """Tables of the same rounds.

    Parameters
    ----------
    tables : dict of str and Table
        The tables by name, of equal length, at the same times.
    seen : array or None
        Which rounds can be learned from; None if all can.
    notes : tuple of str
        What was filled, in sentences; empty if nothing was.
    """

    tables: dict[str, Table]
    seen: Bools | None
    notes: tuple[str, ...]


def align(
    tables: Mapping[str, Table], gaps: str = "refuse", *, absent: Collection[str] = ()
) -> Aligned:
    """Tables as rounds: one row each for every time that any of them has.

    Parameters
    ----------
    tables : mapping of str and Table
        The tables by name, as `read_table(path, gaps=True)` gives them.
    gaps : str, default 'refuse'
        What is done about cells without a number and rows that a table lacks: "refuse", "unseen"
        or "last".
    absent : sequence of str, default ()
        Tables whose gaps stay NaN, such as points that others proposed; their times make no
        rounds.

    Returns
    -------
    Aligned
        `tables` of equal rows, the mask `seen` of rounds to learn from (None: all), and `notes`.

    Raises
    ------
    InvalidInput
        If there are gaps and they are refused; if one has no number before it; if tables have
        times and do not fit together.

    Examples
    --------
    >>> from tidewolf.files import align
    >>> costs = tw.problems.Table(np.arange(3.0), ("a",), np.array([[1.0], [np.nan], [3.0]]))
    >>> limits = tw.problems.Table(np.arange(2.0), ("a",), np.array([[5.0], [6.0]]))
    >>> rounds = align({"costs": costs, "limits": limits}, "unseen")
    >>> rounds.seen.tolist(), rounds.tables["limits"].values.ravel().tolist()
    ([True, False, False], [5.0, 6.0, 6.0])
    """
    named = {name: _named(name, table) for name, table in tables.items()}
    leading = [table for name, table in named.items() if name not in absent]
    rounds, length = _rounds(leading or list(named.values()), list(named.values()))
    filled, notes, missing = dict[str, Table](), list[str](), np.zeros(length, dtype=bool)
    for name, table in named.items():
        laid, there = _spread(table, rounds, length, gaps == "refuse")
        if name not in absent and (empty := np.isnan(laid.values)).any():
            missing |= empty.any(axis=1)
            cells, lost = int(empty[there].sum()), int((~there).sum())
            imputed = gaps == "last" and name == "costs"
            done = "filled with the last number of the column" if gaps == "last" else "not seen"
            done += "; certificates speak of the imputed losses" * imputed
            notes.append(f"{table.file}: {cells:,} empty cells, {lost:,} missing rows, {done}.")
            laid = laid._replace(values=_filled(laid, gaps, imputed))
        filled[name] = laid
    if gaps != "unseen" or not missing.any():
        return Aligned(filled, None, tuple(notes))
    notes.append(
        f"{int(missing.sum()):,} of {length:,} rounds not seen: played without being learned from; "
        "loss and violation there are measured with the last numbers."
    )
    return Aligned(filled, ~missing, tuple(notes))


def require_seen(rounds: Aligned) -> None:
    if rounds.seen is not None and not rounds.seen.any():
        files = ", ".join(str(table.file) for table in rounds.tables.values())
        raise InvalidInput(f"No round has every number: {files} share no time without a gap.")


def _named(name: str, table: Table) -> Table:
    file = table.file or name
    own = table.places or [f"{file}, row {i}" for i in range(1, len(table.values) + 1)]
    return table._replace(file=file, places=own)


def _rounds(leading: list[Table], tables: list[Table]) -> tuple[NDArray | None, int]:
    """The times of rounds, None if the leading tables have none, and how many there are."""
    clocks = [table.times for table in leading if table.times is not None]
    if not clocks:
        return None, max((len(table.values) for table in tables), default=0)
    called = {"M": "dates", "f": "numbers"}
    timed = [(table.times.dtype.kind, table.file) for table in tables if table.times is not None]
    kinds = {called.get(kind, "whole numbers"): file for kind, file in timed}
    if len(kinds) > 1:
        found = " and ".join(f"{file} has {kind}" for kind, file in kinds.items())
        raise InvalidInput(f"{found} for times; all tables need the same.")
    rounds = np.unique(np.concatenate(clocks))
    return rounds, len(rounds)


def _spread(table: Table, rounds: NDArray | None, length: int, whole: bool) -> tuple[Table, Bools]:
    """A table with a row for each round, NaN if it has none and needs not be whole; and which
    rounds it has.
    """
    own = at = np.arange(len(table.values))
    if rounds is not None and table.times is not None:
        own = np.flatnonzero(np.isin(table.times, rounds))
        at = np.searchsorted(rounds, table.times[own])
    elif rounds is not None and len(own) != length:
        raise InvalidInput(
            f"{table.file} has {len(own):,} rows without times and there are {length:,} rounds; "
            "give it a column of times."
        )
    there, values = np.zeros(length, dtype=bool), np.full((length, len(table.columns)), np.nan)
    there[at], values[at] = True, table.values[own]
    if whole and not len(table.values) == there.sum() == length:
        i, found = int(np.argmin(there)), f"{len(table.values):,} rows"
        when = f"round {i + 1}" if rounds is None else reading.clock_text(rounds[i])
        found += "" if there.all() else f", none for {when}"
        raise InvalidInput(
            f"{table.file}: expected a row for each of the {length:,} rounds of all tables, "
            f"received {found}; {reading.FILL}."
        )
    places = [f"{table.file}, round {i}" for i in range(1, length + 1)]
    for i, row in zip(at.tolist(), own.tolist(), strict=True):
        places[i] = table.places[row]
    times = table.times if rounds is None else rounds
    return table._replace(times=times, values=values, places=places), there


def _filled(table: Table, gaps: str, imputed: bool) -> Floats:
    """Numbers in every gap: the last of the column or, of imputed costs that no number of their
    column comes before, the mean of those seen in their row.
    """
    values = table.values.copy()
    empty = np.isnan(values)
    first = np.maximum.accumulate(~empty, axis=0) | (not imputed)
    for i in np.flatnonzero(~first.all(axis=1) & ~empty.all(axis=1)).tolist():
        values[i, ~first[i]] = values[i, ~empty[i]].mean()
    empty = np.isnan(values)
    unfilled, why = {
        "refuse": (empty, reading.FILL),
        "last": (empty[:1], "no number comes before it"),
        "unseen": (empty & empty.all(axis=0), "its column has no number"),
    }[gaps]
    for i, j in np.argwhere(unfilled)[:1]:
        raise InvalidInput(
            f'{table.places[i]}, column "{table.columns[j]}": there is no number; {why}.'
        )
    last = np.maximum.accumulate(np.where(empty, -1, np.arange(len(values))[:, None]), axis=0)
    return np.take_along_axis(values, np.where(last < 0, np.argmin(empty, axis=0), last), axis=0)


# --- graphs ---------------------------------------------------------------------------------------

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
        if lengths is not None and not arguments.is_text(lengths, *self.numbers):
            name = lengths if isinstance(lengths, str) else arguments.shown(lengths)
            raise InvalidInput(f"The links have no {name}; ask for it: numbers=[{name!r}].")
        own = None if lengths is None else self.numbers[lengths]
        return away(self.links, source=source, target=target, lengths=own)


def read_graph(
    path: str | PathLike[str] | Any,
    *,
    numbers: Sequence[str] = (),
    optional: Sequence[str] = (),
    missing: float | None = None,
    directed: bool | None = None,
    format: reading.FileFormat = reading.PLAIN,
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
    listed = path if isinstance(path, Edges) else None  # links, which may be those of a matching
    graph = listed or edges_of(path, str(GIVEN))
    numbers = settings.NAMES(numbers, "numbers of read_graph")
    optional = settings.NAMES(optional, "optional numbers of read_graph")
    directed = None if directed is None else arguments.as_flag(directed, "directed")
    missing = None if missing is None else as_number(missing, "What stands for a missing number")
    format, path = (
        reading.as_format(format),
        GIVEN if graph else arguments.as_path(path, "The path of a graph"),
    )
    graph = graph or read_edges(path, format)
    columns = graph.columns or ()
    if absent := [name for name in numbers if graph.columns and name not in columns]:
        raise InvalidInput(f"{path} has no column {absent[0]!r}; it has {', '.join(columns)}.")
    kept = [edge for edge in graph.edges if listed or edge.tail != edge.head]
    require(kept, EmptyGraph, f"{path} has no link between two nodes.")
    ways = 1 if (graph.directed if directed is None else directed) else 2
    every = {
        name: np.tile([_number(edge, name, format, absent) for edge in kept], ways)
        for name, absent in [*product(numbers, [missing]), *product(optional, [np.nan])]
    }
    read = {key: at for key, at in every.items() if key in numbers or not np.isnan(at).all()}
    links = tuple((edge.tail, edge.head) for edge in kept)
    expected = {*NAMES, *sum(ENDS, ()), *(name.lower() for name in (*numbers, *optional))}
    return Graph(
        links + tuple((head, tail) for tail, head in links) * (ways - 1),
        read,
        len(graph.edges) - len(kept),
        names=tuple(reading.cell_text(edge.get(*NAMES)) for edge in kept) * ways,
        places=tuple(edge.place for edge in kept) * ways,
        both_ways=ways == 2,
        unread=tuple(name for name in columns if name.lower() not in expected),
        node_places=graph.places,
    )


def _number(edge: Edge, name: str, format: reading.FileFormat, missing: float | None) -> float:
    cell = edge.known[name] if name in edge.known else edge.get(name)
    if not reading.is_gap(cell):
        return reading.finite(cell, f'{edge.place}, column "{name}"', format)
    words = f"{edge.place} has no {name}; give `missing=` a number, or fill it in."
    return require_some(missing, InvalidInput, words)


def read_edges(path: Path, format: reading.FileFormat) -> Edges:
    name = reading.file_of(path).name.lower()
    require(reading.file_of(path).is_file(), InvalidInput, f"There is no graph at {path}.")
    if name.endswith(reading.ENDINGS):
        cells = reading.read_cells(path, format)
        ends = [name.lower() in sum(ENDS, ()) for name in cells.header]
        columns = [
            [reading.cell_text(cell) for cell in column] if end else column
            for end, column in zip(ends, cells.columns, strict=True)
        ]
        return edge_list(cells.header, columns, cells.name, cells.place)
    if not name.endswith((".graphml", ".gml")):
        endings = ", ".join((*reading.ENDINGS, ".graphml", ".gml"))
        raise InvalidInput(f"{path}: expected a graph that ends in one of {endings}.")
    networkx = arguments.import_extra("networkx", "Reading GraphML and GML", "graph")
    refuse(
        path.stat().st_size > LARGEST_TEXT,
        f"{path} has {path.stat().st_size >> 20} MB; GraphML and GML are read up to "
        f"{LARGEST_TEXT >> 20} MB, edge lists in CSV of any size.",
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
