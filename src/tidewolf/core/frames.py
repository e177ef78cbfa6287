"""Tables of pandas and polars, as numbers, names and times.

    frame    ->  numbers (rows first), the names of its columns, times where it has them
    series   ->  numbers, and names where its index has some
    {name: number}, a named series   ->  numbers in the order of the entries of a point

Neither library is imported: a table is known by the module its class comes from, and the caller
has imported that. A column of dates, a first column called time, date, datetime or timestamp,
and an index of dates are times, no numbers. Numbers stay where they are where the library keeps
them as one array (pandas, of one dtype); a frame that keeps each column apart is gathered once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.errors import InvalidInput, NotFinite, WrongType
from tidewolf.core.names import listed, match_names
from tidewolf.core.types import NDArray

TIMES = ("time", "date", "datetime", "timestamp")
"""What a first column of times is called, in any case of letters."""
FRAME, SERIES, INDEX, LAZY = "frame", "series", "index", "lazy"
_KINDS = {
    ("pandas", "DataFrame"): FRAME,
    ("pandas", "Series"): SERIES,
    ("pandas", "Index"): INDEX,
    ("polars", "DataFrame"): FRAME,
    ("polars", "Series"): SERIES,
    ("polars", "LazyFrame"): LAZY,
}


class Frame(NamedTuple):
    """What a frame holds."""

    values: NDArray
    """numbers, rows first; NaN where one is missing"""
    names: tuple[str, ...] | None
    """of the columns; None where they are numbered"""
    times: Any
    """one a row, as the library has them; None where there are none"""


_FOUND: dict[type, tuple[str, str] | None] = {}
"""of classes met so far"""


def _kind(kind: type) -> tuple[str, str] | None:
    """The library and the kind of table that a class is."""
    if kind not in _FOUND:
        bases = ((str(base.__module__).partition(".")[0], base.__name__) for base in kind.__mro__)
        found = next((base for base in bases if base in _KINDS), None)
        _FOUND[kind] = None if found is None else (found[0], _KINDS[found])
    return _FOUND[kind]


def is_table(x: object) -> bool:
    """Whether it is a frame, a series or an index of pandas or polars."""
    return _kind(type(x)) is not None


def is_frame(x: object) -> bool:
    """Whether it is a frame, of rows and columns."""
    kind = _kind(type(x))
    return kind is not None and kind[1] in (FRAME, LAZY)


def read_frame(x: Any, what: str) -> Frame:
    """Numbers, names and times of a frame; anything else is refused with an error that begins
    with `what`.
    """
    library, kind = _kind(type(x)) or ("", "")
    if kind == LAZY:
        raise WrongType(f"{what}: a LazyFrame has no rows yet; give frame.collect().")
    called = _names(x.columns)
    if len(set(called)) < len(called):
        twice = next(name for i, name in enumerate(called) if name in called[:i])
        raise InvalidInput(
            f"{what}: two columns are called {twice!r}; give each a name of its own."
        )
    kinds = list(x.dtypes)
    is_date = _is_date if library == "pandas" else _is_polars_date
    dated = [i for i, dtype in enumerate(kinds) if is_date(dtype)]
    if not dated and called and called[0].lower() in TIMES:
        dated = [0]
    if len(dated) > 1:
        raise InvalidInput(
            f"{what}: the columns {listed([repr(called[i]) for i in dated])} all hold dates; leave "
            "one, which says when a row is."
        )
    kept = [i for i in range(len(called)) if i not in dated]
    for i in kept:
        _require_numbers(library, kinds[i], _column(library, x, i), what, called[i])
    if library == "pandas":
        values = _pandas_values(x if not dated else x.iloc[:, kept], [kinds[i] for i in kept])
        times = _column(library, x, dated[0]) if dated else _index_times(x.index)
        numbered = not dated and _is_numbered(x.columns)
    else:
        names = [x.columns[i] for i in kept]
        values = _polars_values(x.select(names), [kinds[i] for i in kept])
        times = _column(library, x, dated[0]) if dated else None
        numbered = False
    return Frame(values, None if numbered else tuple(called[i] for i in kept), times)


def numbers_of(x: Any, what: str) -> NDArray:
    """The numbers of a frame, a series or an index, NaN where one is missing."""
    library, kind = _kind(type(x)) or ("", "")
    if kind in (FRAME, LAZY):
        return read_frame(x, what).values
    if kind == INDEX:
        return np.asarray(x)
    called = None if x.name is None else str(x.name)
    _require_numbers(library, x.dtype, x, what, called)
    if library == "pandas":
        return _pandas_values(x, [x.dtype])
    if x.null_count() or not x.dtype.is_numeric() or str(x.dtype).startswith("Decimal"):
        x = x.cast(float)
    return np.asarray(x.to_numpy())


def times_of(x: Any, what: str) -> Any:
    """What says when rows are: the times of a frame, or a series or an index itself, with periods
    as their beginnings.
    """
    if is_frame(x):
        times = read_frame(x, what).times
        if times is None:
            raise InvalidInput(
                f"{what}: the frame has neither a column of dates nor an index of them; give a "
                "column, such as frame['time']."
            )
        return times_of(times, what) if is_table(times) else times
    if hasattr(x, "dtype") and type(x.dtype).__name__ == "PeriodDtype":
        x = x.to_timestamp() if _kind(type(x)) == ("pandas", INDEX) else x.dt.to_timestamp()
    return x


def not_finite(x: Any, values: NDArray, what: str) -> NotFinite:
    """The error for the first number of a table that is missing, or infinite."""
    row, *column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
    library, kind = _kind(type(x)) or ("", "")
    place = f"row {row + 1}"
    if library == "pandas" and kind != INDEX and type(x.index).__name__ != "RangeIndex":
        place += f" ({x.index[row]})"
    if column:
        names = read_frame(x, what).names
        place += f" of column {column[0] if names is None else repr(names[column[0]])}"
    return NotFinite(
        f"{what}: expected finite numbers, not {values[(row, *column)]} in {place}; fill it, as "
        "with ffill or fill_null, or leave the row out."
    )


def in_order(
    x: Any,
    names: Sequence[str] | None,
    what: str,
    shape: tuple[int, ...],
    *,
    gaps: bool = False,
) -> Any:
    """Numbers that are given by name, {name: number} or a series with an index of names, as an
    array in the order of the entries of a point; anything else as it is.

    A series is taken by position where its index is 0, 1, ... or the entries have no names. With
    `gaps` a number may be missing, as NaN or None; a name may not.
    """
    if isinstance(x, Mapping):
        keys, given = list(x), list(x.values())
    elif _kind(type(x)) == ("pandas", SERIES) and not _is_numbered(x.index):
        keys = x.index.tolist()
        if names is None and not _is_permutation(keys):
            return x
        numbers = numbers_of(x, what)
        if not gaps and not np.isfinite(numbers).all():
            raise not_finite(x, numbers, what)
        given = numbers.tolist()
    else:
        return x
    expected = tuple(map(str, range(math.prod(shape)))) if names is None else names
    places = match_names(_as_names(keys, expected), expected, what)
    row = [
        _as_float(given[place], name, what, gaps)
        for place, name in zip(places.tolist(), expected, strict=True)
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
    order = match_names(frame.names, names, what, "column")
    return frame.values if (np.diff(order) == 1).all() else frame.values[:, order]


def by_name(x: Any, what: str) -> Any:
    """A series with an index of names as {name: number}, other tables as arrays, anything else as
    it is.
    """
    if not is_table(x):
        return x
    numbers = numbers_of(x, what)
    if _kind(type(x)) == ("pandas", SERIES) and not _is_numbered(x.index):
        return dict(zip(_names(x.index), numbers.tolist(), strict=True))
    return numbers


def _as_names(keys: Sequence[Hashable], expected: Sequence[str]) -> list[str]:
    """Keys as names; a whole number that is no name is the place of an entry."""
    known, found = set(expected), _names(keys)
    for i, key in enumerate(keys):
        whole = isinstance(key, int | np.integer) and not isinstance(key, bool)
        if whole and found[i] not in known and 0 <= key < len(expected):  # type: ignore[operator]
            found[i] = expected[int(key)]  # type: ignore[call-overload]
    return found


def _as_float(number: Any, name: str, what: str, gaps: bool) -> float:
    """A number that was given by name, finite unless there may be gaps."""
    if gaps and number is None:
        return math.nan
    plain = isinstance(number, int | float | np.number) and not isinstance(number, bool | complex)
    try:
        found = float(number) if plain else math.nan
    except (TypeError, OverflowError):
        found = math.inf
    if not plain or not (gaps or math.isfinite(found)):
        kind = NotFinite if plain else WrongType
        raise kind(f"{what}: expected a finite number for {name!r}, not {shown(number)}.")
    return found


def _names(labels: Iterable[Hashable]) -> list[str]:
    """Labels as text; those of several levels, such as (tail, head), with arrows between them."""
    return [
        " > ".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in labels
    ]


def _is_numbered(labels: Any) -> bool:
    """Whether labels of pandas are the default 0, 1, ..., or dates, which name no entry."""
    if labels.dtype.kind in "iu":
        return bool((np.asarray(labels) == np.arange(len(labels))).all())
    return _is_date(labels.dtype)


def _is_permutation(keys: Sequence[Any]) -> bool:
    return all(type(key) is int for key in keys) and sorted(keys) == list(range(len(keys)))


def _is_date(dtype: Any) -> bool:
    """Whether a column of pandas holds dates, or periods."""
    return dtype.kind == "M" or type(dtype).__name__ == "PeriodDtype"


def _is_polars_date(dtype: Any) -> bool:
    return str(dtype).partition("(")[0] in ("Date", "Datetime")


def _index_times(index: Any) -> Any:
    named = isinstance(index.name, str) and index.name.lower() in TIMES
    return index if _is_date(index.dtype) or named else None


def _column(library: str, x: Any, i: int) -> Any:
    return x.iloc[:, i] if library == "pandas" else x[x.columns[i]]


def _require_numbers(library: str, dtype: Any, column: Any, what: str, name: str | None) -> None:
    """Refuse a column that holds something else, with the first of it."""
    if library == "pandas":
        fits = dtype.kind in "iufb"
    else:
        fits = dtype.is_numeric() or str(dtype) in ("Boolean", "Null")
    if fits:
        return
    held = [one for one in column.head(100).to_list() if not isinstance(one, int | float)]
    such = f", such as {shown(held[0])}" if held else ""
    of = "the series" if name is None else f"the column {name!r}"
    raise WrongType(
        f"{what}: {of} is of type {dtype}, no numbers{such}; make numbers of it, as with "
        "astype(float) or cast(float), or leave it out."
    )


def _pandas_values(x: Any, kinds: Sequence[Any]) -> NDArray:
    """The numbers of a frame or series of pandas, where they are if one array holds them."""
    if len(set(kinds)) == 1 and isinstance(kinds[0], np.dtype):
        return np.asarray(x.to_numpy())
    single = bool(kinds) and all(str(kind).lower() == "float32" for kind in kinds)
    return np.asarray(x.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan))


def _polars_values(x: Any, kinds: Sequence[Any]) -> NDArray:
    if not kinds:
        return np.empty((x.height, 0))
    alike = {str(kind) for kind in kinds}
    gaps = any(column.null_count() for column in x)
    if not (alike == {"Float32"} or (alike == {"Boolean"} and not gaps)):
        x = x.cast(float)
    return np.asarray(x.to_numpy())
