"""Bars: what a benchmark has measured beside what was asked of it.

    measured / bar        at most 1 holds;  least: at least 1 holds

A benchmark module has `report()`, which prints its lines, and `bars()`, which measures; `show` does
both for a list of bars. Every bar that is printed is kept for the table at the end of `make bench`
and for out/bench/bars.json; `python -m benchmarks --strict` exits 1 where one fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

OUT = Path("out/bench")
_shown: list[Bar] = []


@dataclass(frozen=True)
class Bar:
    """One number and its bar; with `least` it must be at least that, else at most."""

    name: str
    measured: float
    bar: float
    unit: str
    least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        """NaN never does."""
        return self.measured >= self.bar if self.least else self.measured <= self.bar

    @property
    def line(self) -> str:
        """Such as: simplex n = 100, tw.run against 7f2d03d   8.4x   (bar 6x)   holds."""
        bar = f"({'at least' if self.least else 'at most'} {number(self.bar, self.unit)})"
        said = "holds" if self.holds else "FAILS"
        note = f"   {self.note}" if self.note else ""
        return f"{self.name:60} {number(self.measured, self.unit):>10} {bar:>20}   {said}{note}"


def number(value: float, unit: str) -> str:
    """Three digits and the unit, without a space where it is a factor or a share."""
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits}{'' if unit in ('x', '') else ' '}{unit}"


def show(bars: Iterable[Bar]) -> None:
    """Print each bar as it comes and keep it for the end."""
    for bar in bars:
        print(f"  {bar.line}", flush=True)
        _shown.append(bar)


def summary() -> bool:
    """Print every bar of this run, write out/bench/bars.json, and say whether all of them hold.

    Bars of other runs stay in the file, until they are measured again under the same name.
    """
    if not _shown:
        return True
    _write(OUT / "bars.json")
    held = sum(bar.holds for bar in _shown)
    print(f"Bars: {held} of {len(_shown)} hold")
    for bar in _shown:
        print(f"  {bar.line}")
    return held == len(_shown)


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(path.read_text()) if path.exists() else []
    table = {bar["name"]: bar for bar in kept}
    table |= {bar.name: asdict(bar) | {"holds": bar.holds} for bar in _shown}
    path.write_text(json.dumps(list(table.values()), indent=1) + "\n")
