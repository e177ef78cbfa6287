"""The report of a tournament: for each stream a figure of frontiers, what each step of the knob
costs and buys, and tables of how learners stand, on one page that needs nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidewolf.core import checkpoint
from tidewolf.evaluation.comparison import (
    STANDING_COLUMNS,
    STANDING_ROUND_COLUMNS,
    StandingColumn,
    applying,
    standing_cells,
    standing_name,
)
from tidewolf.report.charts import default_of
from tidewolf.report.figures import Figure
from tidewolf.report.frontier import Curve, frontier_figure
from tidewolf.report.names import title_of
from tidewolf.report.page import written
from tidewolf.report.pictures import plot_frontiers, png
from tidewolf.report.rendering import document
from tidewolf.report.styles import HUES, RunStyle
from tidewolf.report.tables import Cell, Table, table

if TYPE_CHECKING:
    from tidewolf.evaluation.comparison import Comparison, Standing

_ABOUT = "mean regret against mean violation a round; down and to the left is better"
_WORDS = (
    (
        "a point",
        "A learner at one setting, the mean over seeds. Every number is a round's; a cell with two "
        "numbers has the least and the largest over the settings.",
    ),
    (
        "gap",
        "How far its regret is above the best that {rival} has at up to 1.1 times its violation, in"
        " % of the mean loss of the best fixed point. Up to 0.5 it is as good.",
    ),
    (
        "shortfall",
        "How far the point of {rival} that it matches worst is out of its reach, in the same unit.",
    ),
    (
        "less violation",
        "How many times less than that of {rival} at equal regret: the median over the regrets "
        "that both reach. In equal time: against points of {rival} that took no longer a round.",
    ),
    ("broken", "The share of rounds in which a limit was broken."),
    (
        "churn",
        "How far the decision moved from one round to the next: half of what its entries changed "
        "by, all together. 99 % of the rounds are at most p99; the worst is that of any seed.",
    ),
)


def write_comparison_page(
    path: str | os.PathLike[str], comparison: Comparison, *, date: datetime
) -> None:
    """The page at `path`, whole or not at all."""
    checkpoint.write(path, comparison_page(comparison, date=date).encode())


def comparison_page(comparison: Comparison, *, date: datetime) -> str:
    """The whole page of a comparison."""
    only = len(comparison.streams) == 1
    title = f"Comparison on {title_of(comparison.streams[0])}" if only else "Comparison"
    context = {
        "title": title,
        "about": (
            "What each learner's knob costs and buys: every point is a setting, and the one that "
            f"is used unless another is asked for is ringed. Tables compare with {comparison.rival}"
            "."
        ),
        "streams": [stream_context(comparison, stream) for stream in comparison.streams],
        "read": [(term, words.format(rival=comparison.rival)) for term, words in _WORDS],
        "written": written(date),
    }
    return document("comparison", title, context)


def stream_context(comparison: Comparison, stream: str, *, drawn: bool = True) -> dict[str, Any]:
    """Everything about one stream."""
    standings = [each for each in comparison.standings() if each.stream == stream]
    sees = {entry.learner: entry.sees for entry in comparison.entries if entry.sees}
    names = [_name(i, each, sees.get(each.learner, "")) for i, each in enumerate(standings)]
    plain = [_name(i, each) for i, each in enumerate(standings)]
    return {
        "title": title_of(stream),
        "about": comparison.about(stream),
        "figure": _figure(comparison, stream, standings) if drawn else None,
        "tables": [
            _table(f"Standings on {stream}", "learner", STANDING_COLUMNS, names, standings),
            _table(f"Rounds on {stream}", "a round", STANDING_ROUND_COLUMNS, plain, standings),
        ],
        "warnings": comparison.warnings(stream),
    }


def _figure(comparison: Comparison, stream: str, standings: Sequence[Standing]) -> Figure:
    steps = comparison.steps(stream) if hasattr(comparison, "steps") else ()
    return frontier_figure("Frontier", _ABOUT, standing_curves(standings), sentences=tuple(steps))


def standing_curves(standings: Sequence[Standing]) -> list[Curve]:
    """Those of one stream, as lines to draw; a learner without points keeps its place."""
    return [_curve(i, each) for i, each in enumerate(standings)]


def _curve(i: int, standing: Standing) -> Curve:
    knobs = [_knob(point) for point in standing.points]
    usual = _usual(standing.learner)
    default = next((k for k, (name, x) in enumerate(knobs) if name and x == usual.get(name)), None)
    return Curve(
        standing_name(standing),
        [point.violation for point in standing.points],
        [point.regret for point in standing.points],
        ["" if not name else f"{name} {x:g}" for name, x in knobs],
        i % HUES,
        default if len(knobs) > 1 else None,
    )


def _knob(point: Any) -> tuple[str, float | None]:
    """The setting that moves along a frontier, and its value at a point."""
    for name in ("caution", "headroom"):
        value = getattr(point, name, None)
        if value is not None:
            return name, float(value)
    return "", None


def _usual(learner: str) -> dict[str, object]:
    """What the knobs of a learner are unless other values are asked for."""
    from tidewolf import learners, rivals

    kind = getattr(learners, learner, None) or getattr(rivals, learner, None)
    if kind is None:
        return {}
    return {name: default_of(kind, name) for name in ("caution", "headroom")}


def write_pictures(folder: str | os.PathLike[str], comparison: Comparison) -> None:
    """The frontiers of each stream as a PNG, under the names that `pictures` says."""
    for stream, name in pictures(comparison.streams).items():
        drawn = standing_curves([each for each in comparison.standings() if each.stream == stream])
        title = f"{title_of(stream)}: mean regret against mean violation"
        checkpoint.write(os.path.join(folder, name), png(plot_frontiers({title: drawn})))


def pictures(streams: Sequence[str]) -> dict[str, str]:
    """The name of each stream's picture."""
    return {
        stream: f"frontier-{''.join(c if c.isalnum() else '-' for c in stream)}.png"
        for stream in streams
    }


def _table(
    name: str,
    first: str,
    columns: Sequence[StandingColumn],
    names: Sequence[Cell],
    standings: Sequence[Standing],
) -> Table:
    shown = applying(columns, standings)
    cells = [map(_cell, standing_cells(column, standings)) for column in shown]
    titles = (first, *(column.title for column in shown))
    return table(name, titles, zip(names, *cells, strict=True), stacked=True)


def _name(i: int, standing: Standing, sees: str = "") -> Cell:
    """Beneath the name what the learner sees."""
    named = standing_name(standing)
    return Cell(named, (f"sees {sees}",) if sees else (), RunStyle(named, i % HUES))


def _cell(words: str) -> Cell:
    """The ends of ranges under each other."""
    least, _, most = words.partition(" to ")
    return Cell(least, (f"to {most}",)) if most else Cell(least)
