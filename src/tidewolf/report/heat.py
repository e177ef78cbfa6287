"""The decision over time: a row for each entry, or for those that are largest on average, a column
for each part of the rounds.

Size is how strong the colour is, in ten steps up to the largest entry of all; what is negative has
a colour of its own. Drawn as horizontal strokes, one for each stretch of equal strength, so that
the page chooses the colours and paper keeps them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats, Int64s
from tidewolf.evaluation.formatting import number
from tidewolf.report.clock import Clock, clock_of, positions
from tidewolf.report.styles import RunStyle, Table, run_styles, table

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run
    from tidewolf.evaluation.trajectory_summary import TrajectorySummary

ROWS = 40
"""At most so many entries are shown."""
LEVELS = 10
MAX_RUNS = 6
"""Of more runs, only the first are shown."""


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


def largest_entries(trajectories: Sequence[TrajectorySummary]) -> Int64s:
    """Which entries are shown: of many, those that are largest on average under any of the runs, in
    their own order.
    """
    sizes = np.max([np.abs(_rows(each)).mean(axis=1) for each in trajectories], axis=0)
    found: Int64s = np.sort(np.argsort(-sizes, kind="stable")[:ROWS])
    return found


def heat_map(
    trajectory: TrajectorySummary, names: Sequence[str] = (), shown: Int64s | None = None
) -> HeatMap:
    """Entries of a trajectory, the largest unless told which; `names` says what each is called."""
    means = _rows(trajectory)
    shown = largest_entries([trajectory]) if shown is None else shown
    places = zip(*np.unravel_index(shown, trajectory.means.shape[1:]), strict=True)
    called = (
        [names[i] for i in shown]
        if len(names) == len(means)
        else [f"entry {', '.join(str(int(part)) for part in place)}" for place in places]
    )
    begins, ends = (trajectory.begins + 1).tolist(), trajectory.ends.tolist()
    return HeatMap(tuple(called), means[shown], tuple(begins), tuple(ends), len(means) - len(shown))


def _rows(trajectory: TrajectorySummary) -> Floats:
    found: Floats = trajectory.means.reshape(len(trajectory.means), -1).T
    return found


def heat_context(shown: HeatMap, hue: int, scale: float, clock: Clock) -> dict[str, Any]:
    """The rows with their names, the strokes, and an axis; `scale` is the size that has the full
    colour.
    """
    rows, parts = shown.values.shape
    ticks = clock.ticks()
    tooltip = {
        "rows": rows,
        "when": [
            clock.named_span(begin - 1, end)
            for begin, end in zip(shown.begins, shown.ends, strict=True)
        ],
        "scale": scale,
        "values": packed(shown.values, scale),
    }
    return {
        "hue": hue,
        "rows": rows,
        "parts": parts,
        "entries": shown.entries,
        "strokes": strokes_of(np.rint(LEVELS * shown.values / scale).astype(int)),
        "tooltip": tooltip,
        "ticks": positions(ticks, clock.rounds),
        "axis": ticks.title,
        "description": _alt_text(shown),
    }


def strokes_of(levels: Any) -> list[dict[str, Any]]:
    """One for each strength: everything that has it."""
    strokes: dict[int, list[str]] = {}
    for i, row in enumerate(levels.tolist()):
        start = 0
        for level, epoch in groupby(row):
            length = len(list(epoch))
            strokes.setdefault(level, []).append(f"M{start} {i}h{length}")
            start += length
    return [
        {"negative": level < 0, "opacity": f"{abs(level) / LEVELS:g}", "d": "".join(strokes[level])}
        for level in sorted(strokes)
        if level
    ]


def scale_context(scale: float, hue: int, negative: bool) -> dict[str, Any]:
    """The colour bar: what each strength means."""
    steps = [level / LEVELS for level in range(-LEVELS if negative else 0, LEVELS + 1)]
    ends = [number(-scale), "0", number(scale)] if negative else ["0", number(scale)]
    return {
        "hue": hue,
        "steps": steps,
        "labels": ends,
        "description": f"The colours, from {ends[0]} to {ends[-1]}",
    }


def heat_table(shown: HeatMap, name: str) -> Table:
    """The same in numbers: mean, least and largest part, last part."""
    rows = zip(shown.entries, shown.values, strict=True)
    cells = (
        (entry, *(number(float(x)) for x in (row.mean(), row.min(), row.max(), row[-1])))
        for entry, row in rows
    )
    return table(name, ("entry", "mean", "least", "largest", "last"), cells)


def _alt_text(shown: HeatMap) -> str:
    largest = int(np.abs(shown.values).mean(axis=1).argmax())
    return (
        f"{len(shown.entries)} entries of the decision over time; the largest on average is "
        f"{shown.entries[largest]}."
    )


def packed(values: Floats, scale: float) -> str:
    """Row after row in 16 bits each, as base64: four digits of the scale."""
    return base64.b64encode(np.rint(32767 * values / scale).astype("<i2").tobytes()).decode()


class ShownRun(NamedTuple):
    """A run whose points were kept."""

    style: RunStyle
    run: Run
    trajectory: TrajectorySummary
    map: HeatMap


def shown_runs(runs: Sequence[Run], entries: Sequence[str] = ()) -> list[ShownRun]:
    """The first of the runs whose points were kept, all with the same entries."""
    kept = [
        (style, run, run.trajectory)
        for run, style in zip(runs[:MAX_RUNS], run_styles(runs), strict=False)
        if run.trajectory is not None and run.rounds and run.trajectory.means.size
    ]
    if not kept:
        return []
    shown = largest_entries([trajectory for _, _, trajectory in kept])
    return [ShownRun(*each, heat_map(each[2], entries, shown)) for each in kept]


def full_colour(shown: Sequence[ShownRun]) -> float:
    """The size that has the full colour in every map: the largest entry of all, or 1 where entries
    are shares.
    """
    most = max((float(np.abs(each.map.values).max()) for each in shown), default=0.0) or 1.0
    return 1.0 if 0.5 < most <= 1.0 + 1e-9 else most


def maps_context(runs: Sequence[Run], entries: Sequence[str] = ()) -> dict[str, Any] | None:
    """The heat map of every run; None where no points were kept."""
    shown = shown_runs(runs, entries)
    if not shown:
        return None
    scale, clock = full_colour(shown), clock_of(runs[0].stream, runs[0].rounds)
    negative = any((each.map.values < 0).any() for each in shown)
    parts = shown[0].map
    kept = (
        f"the {len(parts.entries)} largest of {len(parts.entries) + parts.left_out:,} entries, the "
        "same for every learner"
        if parts.left_out
        else "every entry"
    )
    left = f" The first {MAX_RUNS} of {len(runs)} runs are shown." if len(runs) > MAX_RUNS else ""
    sign = "; what is negative is grey" if negative else ""
    return {
        "about": f"A row for each entry ({kept}), time from left to right{sign}.{left}",
        "runs": [
            {
                "style": each.style,
                "scale": scale_context(scale, each.style.hue, negative),
                "heat": heat_context(each.map, each.style.hue, scale, clock),
                "table": heat_table(each.map, each.style.label),
            }
            for each in shown
        ],
    }
