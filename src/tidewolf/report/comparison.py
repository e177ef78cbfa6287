"""The report of a tournament: a figure of frontiers and a table of standings for each stream, on one page that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

from tidewolf.core import checkpoint
from tidewolf.evaluation.comparison import HEAD, cells
from tidewolf.report.figures import Curve, frontier_png, frontier_svg, swatch
from tidewolf.report.page import document
from tidewolf.report.words import number

if TYPE_CHECKING:
    from tidewolf.evaluation.comparison import Comparison, Standing

_READ = (
    "Every number is a round's. Each point is a learner at one caution, the mean over seeds; down and to the left is better. "
    "Gap: how far its regret is above the rival's best at up to 1.1 times its violation, in % of the comparator's mean loss; up to 0.5 is "
    "on the rival's frontier. Shortfall: how far the worst matched point of the rival is out of reach; up to 0.5, all are matched; "
    "infinite where the learner is never as careful. Less violation: how many times less than the rival's at equal regret, in the median "
    "over the levels of regret that both reach; in equal time: the same against those of the rival's points that took no longer a round "
    "than the learner's slowest, none where it is never that fast."
)


def write(path: str | os.PathLike[str], comparison: Comparison, *, date: datetime) -> None:
    """The page at `path`, whole or not at all."""
    checkpoint.write(path, page(comparison, date=date).encode())


def page(comparison: Comparison, *, date: datetime) -> str:
    """The whole page of a comparison."""
    standings = comparison.standings()
    by_stream = {stream: [each for each in standings if each.stream == stream] for stream in comparison.streams}
    figures = "".join(_figure(stream, its) for stream, its in by_stream.items())
    body = [
        "<h1>Comparison</h1>",
        f"<p>Mean regret against mean violation as caution moves, held against {escape(comparison.rival)}.</p>",
        f'<section class="figures">{figures}</section>',
        f'<p class="read">{_READ}</p>',
        *(_section(comparison, stream, its) for stream, its in by_stream.items()),
        _footer(date),
    ]
    return document("comparison", body)


def curves(standings: Sequence[Standing]) -> list[Curve]:
    """Those of one stream, as lines to draw; a learner without points keeps its place."""
    return [Curve(cells(each)[0], [p.violation for p in each.points], [p.regret for p in each.points]) for each in standings]


def write_pictures(folder: str | os.PathLike[str], comparison: Comparison) -> None:
    """The frontiers of each stream as a PNG, under the names that `pictures` says."""
    for stream, name in pictures(comparison.streams).items():
        drawn = curves([each for each in comparison.standings() if each.stream == stream])
        checkpoint.write(os.path.join(folder, name), frontier_png(drawn, f"{stream}: frontiers as caution moves"))


def pictures(streams: Sequence[str]) -> dict[str, str]:
    """The name of each stream's picture."""
    return {stream: f"frontier-{''.join(c if c.isalnum() else '-' for c in stream)}.png" for stream in streams}


def _figure(stream: str, standings: Sequence[Standing]) -> str:
    drawn = curves(standings)
    spoken = f"Mean regret against mean violation on {stream}. " + ", ".join(_spoken(curve) for curve in drawn)
    legend = "".join(
        f"<li>{swatch(i, dashed=False)}{escape(curve.label)}<b>{len(curve.regrets)} points</b></li>" for i, curve in enumerate(drawn)
    )
    return (
        f"<figure><figcaption><h2>{escape(stream)}</h2><p>mean regret against mean violation a round</p></figcaption>"
        f'{frontier_svg(drawn, spoken)}<ul class="legend">{legend}</ul></figure>'
    )


def _spoken(curve: Curve) -> str:
    if not curve.regrets:
        return f"{curve.label}: none"
    ends = [(curve.regrets[i], curve.violations[i]) for i in (0, -1)]
    return f"{curve.label}: " + " to ".join(f"regret {number(regret)} at violation {number(violation)}" for regret, violation in ends)


def _section(comparison: Comparison, stream: str, standings: Sequence[Standing]) -> str:
    head = "".join(f'<th scope="col">{title}</th>' for title in HEAD)
    rows = "\n".join(_row(i, standing) for i, standing in enumerate(standings))
    return (
        f'<h2>{escape(stream)}</h2><p class="facts">{escape(comparison.about(stream))}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="Standings on {escape(stream)}">'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
        + "".join(f'<p class="warning" role="note">{escape(sentence)}</p>' for sentence in comparison.warnings(stream))
    )


def _row(i: int, standing: Standing) -> str:
    named, *others = (escape(cell) for cell in cells(standing))
    return f'<tr><th scope="row">{swatch(i, dashed=False)}{named}</th>{"".join(map(_cell, others))}</tr>'


def _cell(text: str) -> str:
    """The ends of a range under each other."""
    least, _, most = text.partition(" to ")
    return f"<td>{least}{f'<small>to {most}</small>' if most else ''}</td>"


def _footer(date: datetime) -> str:
    facts = [
        ("versions", ", ".join(f"{part} {version}" for part, version in checkpoint.writer().items())),
        ("written", date.strftime("%Y-%m-%d %H:%M %Z").strip()),
    ]
    return f"<footer><dl>{''.join(f'<dt>{term}</dt><dd>{escape(fact)}</dd>' for term, fact in facts)}</dl></footer>"
