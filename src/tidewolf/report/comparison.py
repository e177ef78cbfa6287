"""The report of a tournament: a figure of frontiers and a table of standings for each stream, on
one page that needs nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

from tidewolf.core import checkpoint
from tidewolf.evaluation.comparison import (
    STANDING_COLUMNS,
    STANDING_ROUND_COLUMNS,
    StandingColumn,
    applying,
    standing_cells,
    standing_name,
)
from tidewolf.report.charts import frontier_figure, standing_curves
from tidewolf.report.figures import legend_line
from tidewolf.report.markup import scrolled, table, with_lines
from tidewolf.report.page import document, footer
from tidewolf.report.pictures import plot_frontiers, png
from tidewolf.report.styles import HUES, RunStyle

if TYPE_CHECKING:
    from tidewolf.evaluation.comparison import Comparison, Standing

_READ = (
    "Every number is a round's. Each point is a learner at one caution, the mean over seeds; down "
    "and to the left is better. Gap: how far its regret is above the rival's best at up to 1.1 "
    "times its violation, in % of the comparator's mean loss; up to 0.5 is on the rival's "
    "frontier. Shortfall: how far the worst matched point of the rival is out of reach; up to 0.5,"
    " all are matched; infinite where the learner is never as careful. Less violation: how many "
    "times less than the rival's at equal regret, in the median over the levels of regret that "
    "both reach; in equal time: the same against those of the rival's points that took no longer "
    "a round than the learner's slowest, none where it is never that fast. Broken: the share of "
    "rounds in which the limit was broken. Churn: how far the decision moved, half of what its "
    "entries changed by from one round to the next, all together. 99 % of the rounds are at most "
    "p99; the worst is that of any seed."
)


def write_comparison_page(
    path: str | os.PathLike[str], comparison: Comparison, *, date: datetime
) -> None:
    """The page at `path`, whole or not at all."""
    checkpoint.write(path, comparison_page(comparison, date=date).encode())


def comparison_page(comparison: Comparison, *, date: datetime) -> str:
    """The whole page of a comparison."""
    standings = comparison.standings()
    by_stream = {
        stream: [each for each in standings if each.stream == stream]
        for stream in comparison.streams
    }
    figures = "".join(
        frontier_figure(stream, "mean regret against mean violation a round", standing_curves(its))
        for stream, its in by_stream.items()
    )
    body = [
        "<h1>Comparison</h1>",
        (
            "<p>Mean regret against mean violation as caution moves, held against "
            f"{escape(comparison.rival)}.</p>"
        ),
        f'<section class="figures">{figures}</section>',
        f'<p class="read">{_READ}</p>',
        *(comparison_section(comparison, stream, its) for stream, its in by_stream.items()),
        footer(date),
    ]
    return document("comparison", body)


def write_pictures(folder: str | os.PathLike[str], comparison: Comparison) -> None:
    """The frontiers of each stream as a PNG, under the names that `pictures` says."""
    for stream, name in pictures(comparison.streams).items():
        drawn = standing_curves([each for each in comparison.standings() if each.stream == stream])
        checkpoint.write(
            os.path.join(folder, name),
            png(plot_frontiers({f"{stream}: frontiers as caution moves": drawn})),
        )


def pictures(streams: Sequence[str]) -> dict[str, str]:
    """The name of each stream's picture."""
    return {
        stream: f"frontier-{''.join(c if c.isalnum() else '-' for c in stream)}.png"
        for stream in streams
    }


def comparison_section(comparison: Comparison, stream: str, standings: Sequence[Standing]) -> str:
    """The standings on one stream as a table, and what to know of it."""
    sees = {entry.learner: entry.sees for entry in comparison.entries if entry.sees}
    names = [
        _name(i, standing, sees.get(standing.learner, "")) for i, standing in enumerate(standings)
    ]
    plain = [_name(i, standing) for i, standing in enumerate(standings)]
    shown = scrolled(
        _table("learner", STANDING_COLUMNS, names, standings), f"Standings on {stream}"
    )
    by_round = scrolled(
        _table("a round", STANDING_ROUND_COLUMNS, plain, standings), f"Rounds on {stream}"
    )
    return (
        f'<h2 class="part">{escape(stream)}</h2><p '
        f'class="facts">{escape(comparison.about(stream))}</p>{shown}{by_round}'
        + "".join(
            f'<p class="warning" role="note">{escape(sentence)}</p>'
            for sentence in comparison.warnings(stream)
        )
    )


def _table(
    first: str,
    columns: Sequence[StandingColumn],
    names: Sequence[str],
    standings: Sequence[Standing],
) -> str:
    shown = applying(columns, standings)
    cells = [map(_cell, standing_cells(column, standings)) for column in shown]
    titles = (first, *(column.title for column in shown))
    return table(titles, zip(names, *cells, strict=True), stacked=True)


def _name(i: int, standing: Standing, sees: str = "") -> str:
    """Beneath the name what the learner sees."""
    named = standing_name(standing)
    return legend_line(RunStyle(named, i % HUES)) + with_lines(
        named, *([f"sees {sees}"] if sees else [])
    )


def _cell(words: str) -> str:
    """The ends of ranges under each other."""
    least, _, most = words.partition(" to ")
    return with_lines(least, f"to {most}") if most else escape(least)
