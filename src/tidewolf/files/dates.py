"""Times of rounds: numbers, or dates in ISO form; a date with an offset is read in UTC.

Times that are whole numbers keep every digit, such as nanoseconds since 1970.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np

from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import NDArray
from tidewolf.files.cells import number_in
from tidewolf.files.format import FileFormat


def read_times(
    cells: Sequence[Any], places: Sequence[str], name: str, format: FileFormat
) -> NDArray:
    """Times as numbers, or as dates where the first is no number."""
    cells = [str(cell) for cell in cells]
    try:
        dated = bool(cells) and not math.isfinite(float(cells[0]))
    except ValueError:
        dated = True
    if not dated:
        with suppress(ValueError, OverflowError):
            whole = np.array([int(cell) for cell in cells], dtype=np.int64)
            if is_long(whole):
                return whole
        return np.array(
            [
                number_in(cell, f'{place}, column "{name}"', format)
                for cell, place in zip(cells, places, strict=True)
            ]
        )
    return np.array(
        [
            _date(cell, f'{place}, column "{name}"')
            for cell, place in zip(cells, places, strict=True)
        ]
    )


def is_long(times: NDArray) -> bool:
    """Whether they are whole numbers with more digits than floats keep."""
    return times.dtype.kind in "iu" and int(times.max(initial=0)) > 2**53


def _date(cell: str, where: str) -> np.datetime64:
    """A date; one with an offset in UTC."""
    try:
        date = datetime.fromisoformat(cell)
    except ValueError:
        raise InvalidInput(
            f"{where}: {cell!r} is neither a number nor a date such as 2024-01-31 or "
            "2024-01-31T06:00."
        ) from None
    return np.datetime64(
        date if date.tzinfo is None else date.astimezone(UTC).replace(tzinfo=None), "us"
    )
