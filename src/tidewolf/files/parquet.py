"""Tables in Parquet files.

Runs of equal numbers take no room in the file and all of it in memory, so a table is refused by
what it claims, before it is read (`core.archive` has the limits).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tidewolf.core.archive import most_unpacked, too_much
from tidewolf.core.errors import InvalidInput, MissingExtra
from tidewolf.files.columns import Columns, is_time, named, row_places

ENDINGS = (".parquet", ".pq")
_LONGEST_TIME = 100
"""Bytes of a date, and room for what goes with it."""


def parquet_columns(path: Path, gaps: bool) -> Columns:
    """The columns of a Parquet file; only with `gaps` may cells be empty."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingExtra('Reading Parquet needs pyarrow: pip install "tidewolf[app]".') from None
    try:
        with parquet.ParquetFile(path) as file:
            header = [str(name) for name in file.schema_arrow.names]
            if not header:
                raise InvalidInput(f"{path} has no columns.")
            timed = is_time(header[0])
            columns = named(header[1:] if timed else header, str(path))
            _require_moderate(file, header, timed, path)
        # a text that comes often is kept once
        with parquet.ParquetFile(path, read_dictionary=header[: int(timed)]) as file:
            table = file.read()
    except (OSError, ArrowException) as error:
        raise InvalidInput(f"{path} cannot be read as Parquet: {error}") from error
    if timed:
        _require_short(table.column(0), header[0], path)
    for i, (name, column) in enumerate(zip(header, table.columns, strict=True)):
        if column.null_count and not (gaps and i >= timed):
            row = next(i for i, cell in enumerate(column) if not cell.is_valid)
            raise InvalidInput(
                f'{path}, row {row + 1}, column "{name}": the cell is empty, and every cell needs a'
                " number."
            )
    arrays = [column.to_numpy() for column in table.columns]
    for name, array in zip(columns, arrays[int(timed) :], strict=True):
        if array.dtype.kind not in "fiub":
            raise InvalidInput(f'{path}, column "{name}": it holds {array.dtype}, not numbers.')
    values = np.array(arrays[int(timed) :], dtype=np.float64).T.reshape(
        table.num_rows, len(columns)
    )
    times = arrays[0] if timed else None
    return Columns(
        str(path), header[0], times, columns, values, row_places(str(path), table.num_rows)
    )


def _require_moderate(file: Any, header: Sequence[str], timed: bool, path: Path) -> None:
    """Refuse a table by what it claims, before it is read: runs of equal numbers take no room
    in the file, and all of it in memory.
    """
    from pyarrow import types

    size, kinds = path.stat().st_size, file.schema_arrow.types
    numbers = (types.is_integer, types.is_floating, types.is_boolean)
    times = (
        *numbers,
        types.is_temporal,
        types.is_string,
        types.is_large_string,
        types.is_dictionary,
    )
    for i, (name, kind) in enumerate(zip(header, kinds, strict=True)):
        if not any(fits(kind) for fits in (times if timed and i == 0 else numbers)):
            raise InvalidInput(
                f'{path}, column "{name}": it holds {_held(kind)}, not'
                f" {'times' if timed and i == 0 else 'numbers'}."
            )
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
    if max(8 * rows * len(header), sum(group.total_byte_size for group in groups)) > most_unpacked(
        size
    ):
        raise InvalidInput(
            f"{path} is not read: {too_much(size)}. Write it as CSV, if it is meant to be so large."
        )


def _require_short(column: Any, name: str, path: Path) -> None:
    """Refuse texts that are no dates while each is in memory once."""
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        for chunk in column.chunks:
            if (compute.max(compute.binary_length(chunk.dictionary)).as_py() or 0) > _LONGEST_TIME:
                raise InvalidInput(f'{path}, column "{name}": it holds texts that are no dates.')


def _held(kind: Any) -> str:
    """What a column holds, as NumPy calls it where it does."""
    try:
        return str(np.dtype(kind.to_pandas_dtype()))
    except (NotImplementedError, TypeError):
        return str(kind)
