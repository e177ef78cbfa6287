"""The played point over time: a row for each entry, or for those that are largest on average, a
column for each part of the rounds.

Size is how strong the colour is, in ten steps up to the largest entry of all; what is negative has
a colour of its own. Drawn as horizontal strokes, one for each stretch of equal strength, so that
the page chooses the colours and paper keeps them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import number
from tidewolf.report.markup import table

if TYPE_CHECKING:
    from tidewolf.evaluation.trajectory_summary import TrajectorySummary

ROWS = 40
"""At most so many entries are shown."""
LEVELS = 10


class HeatMap(NamedTuple):
    """What is shown of where a run went."""

    entries: tuple[str, ...]
    values: Floats
    """(entries, parts)"""
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    """the rounds of each part, counted from 1, both included"""
    left_out: int
    """entries that are not shown"""


def heat_map(trajectory: TrajectorySummary, names: Sequence[str] = ()) -> HeatMap:
    """The largest entries of a trajectory, in their own order; `names` says what each is called."""
    means = trajectory.means.reshape(len(trajectory.means), -1).T
    busiest = np.sort(np.argsort(-np.abs(means).mean(axis=1), kind="stable")[:ROWS])
    places = zip(*np.unravel_index(busiest, trajectory.means.shape[1:]), strict=True)
    called = (
        [names[i] for i in busiest]
        if len(names) == len(means)
        else [f"entry {', '.join(str(int(part)) for part in place)}" for place in places]
    )
    begins, ends = (trajectory.begins + 1).tolist(), trajectory.ends.tolist()
    return HeatMap(
        tuple(called), means[busiest], tuple(begins), tuple(ends), len(means) - len(busiest)
    )


def element(shown: HeatMap, color: int, scale: float) -> str:
    """The rows with their names, the strokes, and an axis; `scale` is the size that has the full
    colour.
    """
    levels = np.rint(LEVELS * shown.values / scale).astype(int)
    strokes: dict[int, list[str]] = {}
    for i, row in enumerate(levels.tolist()):
        start = 0
        for level, stretch in groupby(row):
            length = len(list(stretch))
            strokes.setdefault(level, []).append(f"M{start} {i}h{length}")
            start += length
    paths = "".join(
        f'<path{" class=neg" if level < 0 else ""} stroke-opacity="{abs(level) / LEVELS:g}" '
        f'd="{"".join(strokes[level])}"/>'
        for level in sorted(strokes)
        if level
    )
    rows, parts = shown.values.shape
    names = "".join(f'<li title="{escape(name)}">{escape(name)}</li>' for name in shown.entries)
    tooltip = {
        "rows": rows,
        "begins": shown.begins,
        "ends": shown.ends,
        "scale": scale,
        "values": _packed(shown.values, scale),
    }
    data = escape(json.dumps(tooltip, separators=(",", ":")))
    return (
        f'<div class="heat" style="--tone: var(--line-{color}); --rows: {rows}" '
        f'data-heat="{data}"><ol>{names}</ol><svg viewBox="0 0 {parts} {rows}" '
        f'preserveAspectRatio="none" role="img" aria-label="{escape(_alt_text(shown))}"><g '
        f'transform="translate(0 .5)">{paths}</g></svg><p class="axis"><span>round'
        f" {shown.begins[0]:,}</span><span>{shown.ends[-1]:,}</span></p></div>"
    )


def heat_table(shown: HeatMap) -> str:
    """The same in numbers: mean, least and largest part, last part."""
    rows = zip(shown.entries, shown.values, strict=True)
    cells = (
        (escape(name), *(number(float(x)) for x in (row.mean(), row.min(), row.max(), row[-1])))
        for name, row in rows
    )
    return table(("entry", "mean", "least", "largest", "last"), cells)


def _alt_text(shown: HeatMap) -> str:
    largest = int(np.abs(shown.values).mean(axis=1).argmax())
    return (
        f"{len(shown.entries)} entries of the played point over time; the largest on average is "
        f"{shown.entries[largest]}."
    )


def _packed(values: Floats, scale: float) -> str:
    """Row after row in 16 bits each, as base64: four digits of the scale."""
    return base64.b64encode(np.rint(32767 * values / scale).astype("<i2").tobytes()).decode()
