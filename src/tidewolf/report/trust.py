"""Figure and table of the experts of a run: their weights round by round, as stacked areas.

    share of member i in part p  =  the mean of its weights over the rounds of the part

Parts are at most PARTS. A round that the learner did not see counts with the next one it saw. Of
more members than there are hues, those of the smallest mean weight are one area, the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats, Int64s
from tidewolf.evaluation.experts import weight_text
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.figures import COLORS, Figure, LegendEntry, area_drawing, draw_areas
from tidewolf.report.styles import HUES, RunStyle, Table, run_styles, table

if TYPE_CHECKING:
    from tidewolf.evaluation.experts import Experts
    from tidewolf.evaluation.run import Run

PARTS = 160
"""At most so many parts of the rounds."""
MAX_RUNS = 6
"""Of more runs with members, only the first are shown."""
_REST = 5
"""The hue of the others: grey."""
_ROWS = 10
"""How many parts the table under the figure has."""
_TITLE = "Expert weights"
_ABOUT = "weights in %, round by round; beneath, on average"
_READ = (
    "The decision is a weighted mean of the members' points. Lost at most: so much the run lost to "
    "this member at most, loss and broken limits together, in units of the loss; negative where "
    "the run was surely better. Loss and violation are what the member alone would have had, a "
    "round."
)


class Trust(NamedTuple):
    """The weights of a run as areas, from the bottom to the top."""

    styles: tuple[RunStyle, ...]
    means: Floats
    """over all rounds, one an area"""
    edges: Int64s
    """parts lie between them, in rounds done"""
    shares: Floats
    """(areas, parts)"""


def trust_of(run: Run) -> Trust | None:
    """The areas of a run whose learner mixes members; None where it does not."""
    experts, weights = run.experts, run.measures
    if not experts or not len(run.ends) or weights.shape[1] != len(experts):
        return None
    lengths = np.diff(run.ends, prepend=0)
    means = np.average(weights, axis=0, weights=lengths)
    named = np.sort(np.argsort(-means, kind="stable")[: HUES if len(means) <= HUES else HUES - 1])
    rest = np.setdiff1d(np.arange(len(means)), named)
    hues = [hue for hue in range(HUES) if hue != _REST] + [_REST]
    styles = [RunStyle(experts[i].name, hues[k]) for k, i in enumerate(named)]
    areas = weights[:, named].T
    if len(rest):
        styles.append(RunStyle(f"{len(rest)} others", _REST))
        areas = np.concatenate([areas, weights[:, rest].sum(axis=1)[None, :]])
    parts = min(PARTS, int(run.ends[-1]))
    edges = np.arange(parts + 1) * int(run.ends[-1]) // parts
    average = np.average(areas, axis=1, weights=lengths)
    return Trust(tuple(styles), average, edges, _parts(areas, run.ends, edges))


def _parts(areas: Floats, ends: Int64s, edges: Int64s) -> Floats:
    """The mean of each area between edges."""
    at = np.concatenate([[0], ends])
    sums = np.concatenate(
        [np.zeros((len(areas), 1)), np.cumsum(areas * np.diff(at), axis=1)], axis=1
    )
    reached = np.array([np.interp(edges, at, row) for row in sums])
    return np.diff(reached, axis=1) / np.diff(edges)


def trust_figure(run: Run, *, tables: bool = True, title: str = _TITLE) -> Figure | None:
    """The figure of a run, with its legend; None where it has no members."""
    trust = trust_of(run)
    if trust is None:
        return None
    said = ", ".join(
        f"{style.label} {weight_text(mean)}"
        for style, mean in zip(trust.styles, trust.means.tolist(), strict=True)
    )
    clock = clock_of(run.stream, run.rounds)
    made = area_drawing(
        trust.edges,
        100.0 * trust.shares,
        [style.hue for style in trust.styles],
        f"{title}: weights of the members, round by round. On average: {said}",
        clock,
    )
    # the top area first, as it is drawn
    legend = [
        LegendEntry(style._replace(dashes=()), weight_text(mean))
        for style, mean in zip(trust.styles[::-1], trust.means.tolist()[::-1], strict=True)
    ]
    return Figure(title, _ABOUT, [made], legend, _table(trust, title, clock) if tables else None)


def _table(trust: Trust, title: str, clock: Clock) -> Table:
    parts = trust.shares.shape[1]
    ends = np.unique(np.linspace(0, parts, min(parts, _ROWS) + 1).round().astype(int))
    rows = []
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        lengths = np.diff(trust.edges)[begin:end]
        means = np.average(trust.shares[:, begin:end], axis=1, weights=lengths)
        when = clock.span(int(trust.edges[begin]), int(trust.edges[end]))
        rows.append((when, *(weight_text(float(mean)) for mean in means)))
    first = "rounds" if clock.times is None else "time"
    return table(title, (first, *(style.label for style in trust.styles)), rows)


def experts_table(experts: Experts) -> Table:
    """Every member, those that were trusted most first."""
    columns = experts.columns()
    rows = (
        (expert.name, *(column.cell(expert) for column in columns)) for expert in experts.by_trust
    )
    titles = ("expert", *(column.title for column in columns))
    return table("Experts", titles, rows)


def trust_context(runs: Sequence[Run]) -> dict[str, Any] | None:
    """A figure and a table for each of the first runs with members; None where none has any."""
    shown = []
    for run, style in zip(runs, run_styles(runs), strict=True):
        figure = (
            trust_figure(run, title=f"Expert weights of {style.label}") if run.experts else None
        )
        if figure is not None:
            shown.append({"figure": figure, "table": experts_table(run.experts)})
    return {"read": _READ, "runs": shown[:MAX_RUNS]} if shown else None


def draw_trust(axes: Any, trust: Trust, clock: Clock) -> None:
    """The areas on axes of a picture that stands alone, with a legend beneath."""
    hues = [style.hue for style in trust.styles]
    patches = draw_areas(axes, trust.edges, 100.0 * trust.shares, hues, COLORS, clock)
    labels = [
        f"{style.label}: {weight_text(mean)}"
        for style, mean in zip(trust.styles, trust.means.tolist(), strict=True)
    ]
    axes.set_title("Expert weights in %", fontsize="medium")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15), "ncols": 2}
    axes.legend(patches[::-1], labels[::-1], frameon=False, fontsize="small", **below)
