"""Tables of pandas and polars, as numbers, names and times.

    frame    ->  numbers (rows first), the names of its columns, times if it has them
    series   ->  numbers, and names where its index has some
    {name: number}, a named series   ->  numbers in the order of the entries of a point

Neither library is imported: a table is known by the module its class comes from, and the caller
has imported that. A column of dates, a first column called time, date, datetime or timestamp,
and an index of dates are times, no numbers. Numbers stay where they are where the library keeps
them as one array (pandas, of one dtype); a frame that keeps each column apart is gathered once.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arguments import listed, match_names, shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.types import Link, NDArray

# What a first column of times is called, in any case of letters.
TIMES = ("time", "date", "datetime", "timestamp")
_PLAIN = ("Boolean", "Null")
_KINDS = ("DataFrame", "Series", "Index", "LazyFrame")


class Frame(NamedTuple):
    # numbers, rows first; NaN if one is missing
    values: NDArray
    # of the columns; None if they are numbered
    names: tuple[str, ...] | None
    # one a row, as the library has them; None if there are none
    times: Any


def _kind(x: object) -> str | None:
    kind: Any = type(x)
    return _kind_of(kind)


@cache
def _kind_of(kind: Any) -> str | None:
    for base in kind.__mro__:
        library = str(base.__module__).partition(".")[0]
        if library in ("pandas", "polars") and base.__name__ in _KINDS:
            return f"{library}.{base.__name__}"
    return None


def is_table(x: object) -> bool:
    return _kind(x) is not None


def is_frame(x: object) -> bool:
    return (_kind(x) or "").endswith("Frame")


def read_frame(x: Any, what: str) -> Frame:
    """Numbers, names and times of a frame; anything else is refused with an error that begins
    with `what`.
    """
    if _kind(x) == "polars.LazyFrame":
        raise WrongType(f"{what}: a LazyFrame has no rows yet; give frame.collect().")
    pandas, called = hasattr(x, "iloc"), _names(x.columns)
    columns = [x.iloc[:, i] if pandas else x[x.columns[i]] for i in range(len(called))]
    dated = [i for i, column in enumerate(columns) if _is_date(column.dtype)]
    if not dated and called and called[0].lower() in TIMES:
        dated = [0]
    if len(dated) > 1 or len(set(called)) < len(called):
        names = listed(map(repr, called))
        words = "expected columns of different names, and dates in at most one"
        raise InvalidInput(f"{what}: {words}, not {names}.")
    kept = [i for i in range(len(called)) if i not in dated]
    arrays = [_numbers(columns[i], what, f"column {called[i]!r}") for i in kept]
    if pandas and arrays and not dated and len({array.dtype for array in arrays}) == 1:
        kind = arrays[0].dtype  # pandas 2 has no NaN in place of what whole numbers lack
        values = x.to_numpy(kind, **({"na_value": np.nan} if kind.kind == "f" else {}))
    else:
        values = np.column_stack(arrays) if arrays else np.empty((len(x), 0))
    times = columns[dated[0]] if dated else None
    if pandas and not dated:
        called_so = isinstance(x.index.name, str) and x.index.name.lower() in TIMES
        times = x.index if called_so or _is_date(x.index.dtype) else None
    numbered = pandas and not dated and _is_numbered(x.columns)
    return Frame(values, None if numbered else tuple(called[i] for i in kept), times)


def numbers_of(x: Any, what: str) -> NDArray:
    if is_frame(x):
        return read_frame(x, what).values
    return np.asarray(x) if _kind(x) == "pandas.Index" else _numbers(x, what, "series")


def times_of(x: Any, what: str) -> Any:
    if is_frame(x):
        x = read_frame(x, what).times
        if x is None:
            raise InvalidInput(f"{what}: no column or index has dates; give one, as frame['time'].")
    if type(getattr(x, "dtype", None)).__name__ == "PeriodDtype":
        x = getattr(x, "dt", x).to_timestamp()
    # of nanoseconds polars makes whole numbers, if it is asked for objects
    return x.to_numpy() if _kind(x) == "polars.Series" and _is_date(x.dtype) else x


def in_order(
    x: Any,
    names: Sequence[str] | None,
    what: str,
    shape: tuple[int, ...],
    *,
    gaps: bool = False,
    partly: bool = False,
) -> Any:
    """Numbers that are given by name, {name: number} or a series with an index of names, as an
    array in the order of the entries of a point; anything else as it is.

    A series is taken by position where its index is 0, 1, ... or the entries have no names. With
    `gaps` a number may be missing, as NaN or None; a name may not. With `partly` names may be
    missing, though not all: the array is NaN there.
    """
    if isinstance(x, Mapping):
        keys, given = list(x), list(x.values())
    elif _is_named(x):
        keys, given = x.index.tolist(), numbers_of(x, what).tolist()
        if names is None and not all(key in range(len(keys)) for key in keys):
            return x
    else:
        return x
    expected = tuple(map(str, range(math.prod(shape)))) if names is None else names
    needed = () if partly and keys else None
    order = match_names(_as_names(keys, expected), expected, what, needed=needed).tolist()
    row = [
        math.nan if i < 0 else _as_float(given[i], expected[j], what, gaps)
        for j, i in enumerate(order)
    ]
    return np.array(row).reshape(shape)


def columns_in_order(x: Any, names: Sequence[str], what: str) -> Any:
    """The numbers of a frame, its columns in the order of these names; of one whose columns are
    numbered, and anything else, as it is.
    """
    if not is_frame(x):
        return x
    frame = read_frame(x, what)
    if frame.names is None:
        return frame.values
    return frame.values[:, match_names(frame.names, names, what, "column")]


def by_name(x: Any, what: str) -> Any:
    """A series with an index of names as {name: number}, other tables as arrays, anything else as
    it is.
    """
    if not is_table(x):
        return x
    numbers = numbers_of(x, what)
    return dict(zip(_names(x.index), numbers.tolist(), strict=True)) if _is_named(x) else numbers


def _as_names(keys: Sequence[Any], expected: Sequence[str]) -> list[str]:
    known, found = set(expected), _names(keys)
    for i, key in enumerate(keys):
        whole = isinstance(key, int | np.integer) and not isinstance(key, bool)
        if whole and found[i] not in known and 0 <= key < len(expected):
            found[i] = expected[int(key)]
    return found


def _as_float(number: Any, name: str, what: str, gaps: bool) -> float:
    from tidewolf.core.arrays import as_number

    missing = number is None or (isinstance(number, float | np.floating) and number - number != 0.0)
    return math.nan if gaps and missing else as_number(number, f"{what}, the number of {name!r},")


def _names(labels: Iterable[Hashable]) -> list[str]:
    return [
        " > ".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in labels
    ]


def _is_named(x: Any) -> bool:
    return _kind(x) == "pandas.Series" and not _is_numbered(x.index)


def _is_numbered(labels: Any) -> bool:
    """Whether labels of pandas are the default 0, 1, ..., or dates, which name no entry."""
    if labels.dtype.kind in "iu":
        return bool((np.asarray(labels) == np.arange(len(labels))).all())
    return _is_date(labels.dtype)


def _is_date(dtype: Any) -> bool:
    name = str(dtype).partition("(")[0]
    return getattr(dtype, "kind", "") == "M" or name.startswith(("period", "Date", "Datetime"))


def _numbers(column: Any, what: str, name: str) -> NDArray:
    dtype, text = column.dtype, str(column.dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "iufb":
        return np.asarray(column)
    if getattr(dtype, "kind", "O") in "iufb":  # pandas, with a mask
        kind = np.float32 if text.lower() == "float32" else np.float64
        return np.asarray(column.to_numpy(dtype=kind, na_value=np.nan))
    if not (hasattr(dtype, "is_numeric") and dtype.is_numeric()) and text not in _PLAIN:
        such = shown(column.head(3).to_list())
        raise WrongType(f"{what}: the {name} holds {text}, such as {such}; cast it to numbers.")
    if column.null_count() or text.startswith(("Null", "Decimal")):
        column = column.cast(float)
    return np.asarray(column.to_numpy())


# --- Edges ----------------------------------------------------------------------------------------
#
# Edges of graphs of networkx, and of edge lists in frames and files, with what is known of them.
#
# An edge list has a column of tails and one of heads, called so (or source and target, from and to,
# u and v, in any case of letters), and is directed. Parallel edges are edges of their own. Nothing
# is imported from pandas, polars or networkx here.


# What the columns of an edge list's ends are called.
ENDS = (("tail", "head"), ("source", "target"), ("from", "to"), ("u", "v"))

PLACES = (("longitude", "latitude"), ("lon", "lat"), ("x", "y"))


class Edge(NamedTuple):
    tail: Hashable
    head: Hashable
    # by name, as the graph or the table has it; without what is missing
    known: dict[str, Any]
    # where it stands in the graph, for messages
    place: str = ""

    def get(self, *names: str) -> Any:
        lower = {str(name).lower(): value for name, value in self.known.items()}
        return next((lower[name.lower()] for name in names if name.lower() in lower), None)


class Edges(NamedTuple):
    edges: list[Edge]
    directed: bool
    # of an edge list; None of a graph
    columns: tuple[str, ...] | None
    # the longitude and latitude of nodes by name, or their x and y, where all have them
    places: dict[str, tuple[float, float]] = {}  # noqa: RUF012

    def links(self, *, both_ways: bool = True) -> list[Link]:
        """(tail, head) of each; one that is not directed is followed by its way back, unless
        `both_ways` is False.
        """
        back = both_ways and not self.directed
        return [
            link
            for tail, head, *_ in self.edges
            for link in ((tail, head), (head, tail))[: 1 + back]
        ]


def is_graph(x: object) -> bool:
    return hasattr(x, "is_directed") and hasattr(x, "edges") and hasattr(x, "nodes")


def edges_of(x: Any, what: str) -> Edges | None:
    if is_frame(x):
        if not hasattr(x, "to_dict"):
            raise WrongType(f"{what}: a LazyFrame has no rows yet; give frame.collect().")
        polars = not hasattr(x, "iloc")
        columns = [(x[n] if polars else x.iloc[:, i]).to_list() for i, n in enumerate(x.columns)]
        return edge_list([str(name) for name in x.columns], columns, what)
    if not is_graph(x):
        return None
    found = [
        Edge(u, v, _present(known), f"{what}, link {u} - {v}") for u, v, known in x.edges(data=True)
    ]
    return Edges(found, bool(x.is_directed()), None, _places(x.nodes(data=True)))


def _places(nodes: Iterable[tuple[Hashable, dict[Any, Any]]]) -> dict[str, tuple[float, float]]:
    """Where each node is; nothing if one does not tell."""
    found = {}
    for node, known in nodes:
        lower = {str(name).lower(): value for name, value in known.items()}
        pair = next((pair for pair in PLACES if {*pair} <= lower.keys()), None)
        try:
            x, y = (float(lower[name]) for name in pair or ())
        except (TypeError, ValueError):
            return {}
        found[str(node)] = (x, y)
    return found if all(map(math.isfinite, sum(found.values(), ()))) else {}


def edge_list(
    names: Sequence[str],
    columns: Iterable[Iterable[Any]],
    what: str,
    place: Callable[[int], str] | None = None,
) -> Edges:
    """The edges of a table with these columns; `place` says where a row stands."""
    lower = [name.lower() for name in names]
    ends = next((pair for pair in ENDS if {*pair} <= {*lower}), None)
    if ends is None or len({*lower}) < len(lower):
        ways = ", or ".join(f"{tail} and {head}" for tail, head in ENDS)
        raise InvalidInput(
            f"{what}: expected the columns {ways}, and no name twice; received {', '.join(names)}."
        )
    i, j = map(lower.index, ends)
    found = []
    for row, cells in enumerate(zip(*columns, strict=True)):
        known = _present(dict(zip(names, cells, strict=True)))
        where = place(row) if place else f"{what}, row {row + 1}"
        for end in (names[i], names[j]):
            if known.get(end, "") == "":
                raise InvalidInput(f'{where}, column "{end}" is empty; a link has two ends.')
        found.append(Edge(known[names[i]], known[names[j]], known, where))
    return Edges(found, True, tuple(names))


def _present(known: dict[Any, Any]) -> dict[str, Any]:
    return {
        str(name): value
        for name, value in known.items()
        if not (value is None or type(value).__name__ in ("NAType", "NaTType"))
        and not (isinstance(value, float) and value != value)
    }
