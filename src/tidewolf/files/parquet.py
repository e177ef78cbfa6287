"""Parquet files, as columns of numbers or as cells.

Runs of equal numbers take no room in the file and all of it in memory, so a table is refused by
what it claims, before it is read (`core.archive` has the limits).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.archive import most_unpacked, too_much
from tidewolf.core.errors import InvalidInput, MissingExtra
from tidewolf.files.cells import FILL, Cell, Cells
from tidewolf.files.columns import Columns, is_time, named, row_places
from tidewolf.files.format import FileFormat

ENDINGS = (".parquet", ".pq")
_LONGEST_TIME = 100
"""Bytes of a date, and room for what goes with it."""
_LONGEST_NAME = 1000


def parquet_columns(path: Path, gaps: bool) -> Columns:
    """The columns of a Parquet file; only with `gaps` may cells be empty."""
    with _opened(path) as file:
        header = _header(file, path)
        timed = is_time(header[0])
        columns = named(header[1:] if timed else header, str(path))
        _require_kinds(file, header, timed, path)
        _require_moderate(file, header, path)
    # a text that comes often is kept once
    with _opened(path, header[: int(timed)]) as file:
        table = file.read()
    if timed:
        _require_short(table.column(0), header[0], path, _LONGEST_TIME, "texts that are no dates")
    for i, (name, column) in enumerate(zip(header, table.columns, strict=True)):
        if column.null_count and not (gaps and i >= timed):
            row = next(i for i, cell in enumerate(column) if not cell.is_valid)
            raise InvalidInput(
                f'{path}, row {row + 1}, column "{name}": the cell is empty, and every cell needs a'
                f" number; {FILL}."
            )
    arrays = [column.to_numpy() for column in table.columns]
    values = np.array(arrays[int(timed) :], dtype=np.float64).T.reshape(
        table.num_rows, len(columns)
    )
    places = row_places(str(path), table.num_rows)
    return Columns(
        str(path),
        arrays[0] if timed else None,
        columns,
        values,
        places,
        [f'{place}, column "{header[0]}"' for place in places] if timed else (),
        utc=timed and getattr(table.column(0).type, "tz", None) is not None,
    )


def parquet_cells(path: Path, format: FileFormat) -> Cells:
    """The cells of a Parquet file of texts and numbers."""
    from_arrow = _types()
    with _opened(path) as file:
        header = _header(file, path)
        texts = []
        for name, kind in zip(header, file.schema_arrow.types, strict=True):
            if not any(fits(kind) for fits in (*from_arrow.numbers, *from_arrow.texts)):
                raise InvalidInput(
                    f'{path}, column "{name}": it holds {_held(kind)}, neither texts nor numbers.'
                )
            texts += [name] if any(fits(kind) for fits in from_arrow.texts) else []
        _require_moderate(file, header, path)
    with _opened(path, texts) as file:
        table = file.read()
    columns: list[list[Cell]] = []
    for name, column in zip(header, table.columns, strict=True):
        _require_short(column, name, path, _LONGEST_NAME, "texts that are no names")
        columns.append(_cells(column))
    rows = [tuple(row) for row in zip(*columns, strict=True)]
    return Cells(str(path), header, rows, range(1, len(rows) + 1), format, unit="row")


def _cells(column: Any) -> list[Cell]:
    """The cells of a column; a text that comes often is kept once."""
    found: list[Cell] = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            words = chunk.dictionary.to_pylist()
            found += [None if i is None else words[i] for i in chunk.indices.to_pylist()]
        else:
            found += chunk.to_pylist()
    return found


@contextmanager
def _opened(path: Path, texts: Sequence[str] = ()) -> Iterator[Any]:
    """A Parquet file, of which these columns are kept as dictionaries."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingExtra('Reading Parquet needs pyarrow: pip install "tidewolf[app]".') from None
    try:
        with parquet.ParquetFile(path, read_dictionary=list(texts)) as file:
            yield file
    except (OSError, ArrowException) as error:
        raise InvalidInput(f"{path} cannot be read as Parquet: {error}") from error


def _header(file: Any, path: Path) -> list[str]:
    header = [str(name) for name in file.schema_arrow.names]
    if not header:
        raise InvalidInput(f"{path} has no columns.")
    return header


class _Types(NamedTuple):
    """What tells kinds of columns apart."""

    numbers: tuple[Callable[[Any], bool], ...]
    texts: tuple[Callable[[Any], bool], ...]
    temporal: Callable[[Any], bool]


def _types() -> _Types:
    try:
        from pyarrow import types
    except ImportError:
        raise MissingExtra('Reading Parquet needs pyarrow: pip install "tidewolf[app]".') from None
    return _Types(
        (types.is_integer, types.is_floating, types.is_boolean),
        (types.is_string, types.is_large_string, types.is_dictionary),
        types.is_temporal,
    )


def _require_kinds(file: Any, header: Sequence[str], timed: bool, path: Path) -> None:
    """Refuse columns that hold no numbers, or no times."""
    known = _types()
    times = (*known.numbers, *known.texts, known.temporal)
    for i, (name, kind) in enumerate(zip(header, file.schema_arrow.types, strict=True)):
        if not any(fits(kind) for fits in (times if timed and i == 0 else known.numbers)):
            raise InvalidInput(
                f'{path}, column "{name}": it holds {_held(kind)}, not'
                f" {'times' if timed and i == 0 else 'numbers'}."
            )


def _require_moderate(file: Any, header: Sequence[str], path: Path) -> None:
    """Refuse a table by what it claims, before it is read: runs of equal numbers take no room
    in the file, and all of it in memory.
    """
    size = path.stat().st_size
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
    if max(8 * rows * len(header), sum(group.total_byte_size for group in groups)) > most_unpacked(
        size
    ):
        raise InvalidInput(
            f"{path} is not read: {too_much(size)}. Write it as CSV, if it is meant to be so large."
        )


def _require_short(column: Any, name: str, path: Path, most: int, what: str) -> None:
    """Refuse long texts while each is in memory once."""
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        for chunk in column.chunks:
            if (compute.max(compute.binary_length(chunk.dictionary)).as_py() or 0) > most:
                raise InvalidInput(f'{path}, column "{name}": it holds {what}.')


def _held(kind: Any) -> str:
    """What a column holds, as NumPy calls it where it does."""
    try:
        return str(np.dtype(kind.to_pandas_dtype()))
    except (NotImplementedError, TypeError):
        return str(kind)
