"""Format numbers for tables and pages, and as plain data for files."""

import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from tidewolf.core.arguments import import_extra

_ROUNDING = 1e-9
T = TypeVar("T")


class Column(NamedTuple, Generic[T]):
    """A column of a table: what it shows of a run, a ranking or an expert.

    Attributes
    ----------
    narrow_title : str
        The title if there is little room: up to two lines.
    rank : int
        If there is little room, columns of the highest rank are left out first.
    applies : Callable[[T], bool]
        Tables leave the column out if it applies to none of their rows.
    details : Callable[[T], Sequence[str]]
        Smaller lines that a page shows beneath.
    """

    title: str
    narrow_title: str
    cell: Callable[[T], str]
    rank: int = 0
    applies: Callable[[T], bool] = lambda row: True
    details: Callable[[T], Sequence[str]] = lambda row: ()

    def narrow_cell(self, row: T) -> str:
        return self.cell(row).partition(" \u00b1")[0]


def report_module(name: str) -> Any:
    """The module of `tidewolf.report` that shows an object by its `plot` and `html`; it lies above,
    and is imported when it is asked for.
    """
    return import_module(f"tidewolf.report.{name}")


def applying(columns: Sequence[Column[T]], rows: Sequence[T]) -> list[Column[T]]:
    return [column for column in columns if any(map(column.applies, rows))]


def number(x: float | None) -> str:
    """`x` to four digits: 12,346, 1.235, 0.01235, 1.2e-13."""
    if x is None or math.isnan(x):
        return "unknown"
    if math.isinf(x):
        return "infinite" if x > 0 else "-infinite"
    if abs(x) >= 1e9 or 0.0 < abs(x) < 1e-3:
        return f"{x:.1e}"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"


def short_number(x: float, digits: int = 3) -> str:
    """`x` to three digits: 12.3, 0.0123, 1.2e-13, 1.23e+04."""
    return f"{x:.{digits}g}"


def percent(share: float) -> str:
    """A share to two digits or more: 0 %, 0.25 %, 12 %, 100 %, 250 %; never 0 % or 100 % of what is
    not all or nothing.
    """
    if share == 0.0 or share >= 1.0:
        return f"{100.0 * share:.0f} %"
    shown = f"{100.0 * share:.2g}"
    return f"{'> 99' if shown == '1e+02' else shown} %"


def interval(ends: tuple[float, float], parts: int = 1) -> str:
    """Both ends divided by `parts`; a number and its error where four digits cannot tell them
    apart.
    """
    lower, upper = (number(end / parts) for end in ends)
    if lower != upper:
        return f"[{lower}, {upper}]"
    error, least = (ends[1] - ends[0]) / (2 * parts), _ROUNDING * max(map(abs, ends)) / parts
    return f"{upper} \u00b1 {error:.0e}" if least < error < math.inf else upper  # else rounding


def precise_interval(lower: float, upper: float) -> str:
    """Both ends to six digits, or one number where these do not differ."""
    ends = f"{lower:.6g}", f"{upper:.6g}"
    return ends[1] if ends[0] == ends[1] else f"[{ends[0]}, {ends[1]}]"


def number_or_none(x: float | None, form: str = ".4g") -> str:
    return "none" if x is None else f"{x:{form}}"


# A bound of more than so many times what was measured says nothing.
LOOSE = 10.0


def informative(measured: float | None, bound: float | None) -> bool:
    return bound is not None and (measured is None or bound <= LOOSE * abs(measured))


def bound_text(measured: float | None, bound: float | None) -> str:
    if bound is None:
        return "none"
    return number(bound) if informative(measured, bound) else "not informative at this length"


def format_setting(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def tick(x: float) -> str:
    """`x` for the tick of an axis: 2.5k, 10M."""
    units = {"G": 1e9, "M": 1e6, "k": 1e3, "": 0.0}
    letter = next(letter for letter, least in units.items() if abs(x) >= least)
    return f"{x / (units[letter] or 1.0):g}{letter}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return ["  ".join([row[0].ljust(first), *map(str.rjust, row[1:], others)]) for row in rows]


def plain(part: Any) -> Any:
    """A part of plain data as JSON has it: records as mappings, arrays as lists, None for what is
    not finite.
    """
    if isinstance(part, tuple) and hasattr(part, "_asdict"):
        part = part._asdict()
    if isinstance(part, Mapping):
        return {str(name): plain(each) for name, each in part.items()}
    if isinstance(part, np.ndarray | np.generic):
        part = part.tolist()
    if isinstance(part, list | tuple):
        return [plain(each) for each in part]
    return None if isinstance(part, float) and not math.isfinite(part) else part


def plain_interval(ends: tuple[float, float] | None) -> dict[str, float] | None:
    return ends and {"lower": ends[0], "upper": ends[1]}


def data_frame(data: Any, index_name: str | None = None) -> Any:
    return import_extra("pandas", "to_pandas", "app").DataFrame(data).rename_axis(index_name)
