"""Tables in NPZ files: the array `values`, or the only array of two axes, beside `columns` (names)
and `times` where they are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tidewolf.core.archive import read_arrays
from tidewolf.core.errors import InvalidInput
from tidewolf.files.cells import count
from tidewolf.files.columns import Columns, named, row_places

ENDINGS = (".npz",)


def npz_columns(path: Path) -> Columns:
    """The columns of an NPZ file."""
    try:
        with open(path, "rb") as file:
            arrays = read_arrays(file, path.stat().st_size)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read as NPZ: {error}.") from error
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if "values" not in tables and len(tables) != 1:
        held = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
        raise InvalidInput(
            f"{path} holds {held}; a table is an array `values` of two axes, or the only array "
            "with two."
        )
    name = "values" if "values" in tables else tables[0]
    values, times = arrays[name], arrays.get("times")
    if values.dtype.kind not in "fiub":
        raise InvalidInput(f"{path}, array {name}: the table holds {values.dtype}, not numbers.")
    columns = arrays.get("columns", np.array([f"{i}" for i in range(values.shape[1])]))
    if columns.shape != (values.shape[1],):
        raise InvalidInput(
            f"{path}: {count(columns.size, 'name')} in `columns` for a table with "
            f"{count(values.shape[1], 'column')}."
        )
    if times is not None and times.shape != (len(values),):
        raise InvalidInput(
            f"{path}: {count(times.size, 'time')} in `times` for a table with "
            f"{count(len(values), 'row')}."
        )
    places = row_places(str(path), len(values))
    return Columns(
        str(path),
        times,
        named([str(name) for name in columns], str(path)),
        values.astype(np.float64),
        places,
        [f'{place}, column "times"' for place in places],
    )
