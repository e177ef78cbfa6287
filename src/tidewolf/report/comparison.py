"""The pages of a comparison and of a sweep, which need nothing else. A comparison has, for each
stream, a figure of frontiers, what each step of the knob costs and buys, and tables of how learners
stand. A sweep has, for each experiment and horizon, a table of settings and numbers, and for each
knob a figure of loss against violation as it moves.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

from tidewolf.core import checkpoint
from tidewolf.evaluation.comparison import RANKING_COLUMNS, RANKING_ROUND_COLUMNS, ranking_name
from tidewolf.evaluation.formatting import Column, Presenter, applying, format_setting
from tidewolf.report import rendering
from tidewolf.report.charts import Chart, Curve, figure, picture, saved
from tidewolf.report.page import frontier_chart
from tidewolf.report.rendering import Cell, RunStyle, Table

if TYPE_CHECKING:
    from tidewolf.evaluation.comparison import Comparison, Ranking
    from tidewolf.experiments.sweep import Sweep, SweepGroup, SweepLine

_WORDS = {
    "a point": "A learner at one setting, the mean over seeds, per round; of two numbers the least "
    "and the largest over the settings.",
    "gap": "How far its regret is above the best that {baseline} has at up to 1.1 times its "
    "violation, in % of {share}. Up to 0.5 it is as good.",
    "shortfall": "How far the point of {baseline} that it matches worst is out of its reach, in "
    "the same unit; never: none of its settings violates constraints as little.",
    "less violation": "How many times less than that of {baseline} at equal regret, the median; in "
    "equal time: against points of {baseline} that took no longer per round.",
    "broken": "The share of rounds in which a constraint was violated.",
    "churn": "Half of what all entries changed by from one round to the next. 99 % of the rounds "
    "are at most p99; the worst is that of any seed.",
}


def comparison_page(comparison: Comparison, *, date: datetime) -> str:
    rendering.require_extras()
    first, *others, share = (*comparison.streams, comparison.share_of())
    context = {
        "title": "Comparison" if others else f"Comparison on {rendering.title_of(first)}",
        "about": (
            "What each learner's knob costs and buys: every point is a setting, and the default is "
            f"ringed. Tables compare with {comparison.baseline}."
        ),
        "streams": [stream_context(comparison, stream) for stream in comparison.streams],
        "read": [
            (term, words.format(baseline=comparison.baseline, share=share))
            for term, words in _WORDS.items()
        ],
        "written": rendering.written(date),
    }
    return rendering.document("comparison", context)


def stream_context(comparison: Comparison, stream: str, *, drawn: bool = True) -> dict[str, Any]:
    rankings = [each for each in comparison.rankings() if each.stream == stream]
    sees = {entry.learner: (f"sees {entry.sees}",) for entry in comparison.entries if entry.sees}
    names = [
        Cell(name, sees.get(each.learner, ()), RunStyle(name, i % rendering.HUES))
        for i, (name, each) in enumerate(zip(map(ranking_name, rankings), rankings, strict=True))
    ]
    plain = [name._replace(lines=()) for name in names]
    return {
        "title": rendering.title_of(stream),
        "about": comparison.about(stream),
        "figure": figure(stream_chart(comparison, stream)) if drawn else None,
        "learner": comparison.chooser(stream),
        "steps": comparison.steps(stream),
        "choice": " ".join(comparison.choice(stream)),
        "beside": comparison.against_resolving(stream),
        "tables": [
            _table(f"Standings on {stream}", "learner", RANKING_COLUMNS, names, rankings),
            _table(f"Rounds on {stream}", "per round", RANKING_ROUND_COLUMNS, plain, rankings),
        ],
        "warnings": comparison.warnings(stream),
    }


def stream_chart(comparison: Comparison, stream: str, title: str = "") -> Chart:
    measure = comparison.measure(stream)
    rankings = [each for each in comparison.rankings() if each.stream == stream]
    curves = [
        Curve(
            ranking_name(each),
            [point.violation for point in each.points],
            [point.level for point in each.points],
            [point.at for point in each.points],
            i % rendering.HUES,
            next((k for k, point in enumerate(each.points) if point.knob and point.default), None),
        )
        for i, each in enumerate(rankings)
    ]
    about = f"mean {measure} against mean violation per round; down and to the left is better"
    title = title or "What the knob costs and buys"
    return frontier_chart("frontier", title, about, curves, f"mean {measure} per round")


def write_pictures(folder: str | os.PathLike[str], comparison: Comparison) -> None:
    for stream, name in pictures(comparison.streams).items():
        axes = f"mean {comparison.measure(stream)} against mean violation"
        title = f"{rendering.title_of(stream)}: {axes}"
        drawn = picture([stream_chart(comparison, stream, title)])
        checkpoint.write(os.path.join(folder, name), saved(drawn, "png"))


def pictures(streams: Sequence[str]) -> dict[str, str]:
    return {
        stream: f"frontier-{''.join(c if c.isalnum() else '-' for c in stream)}.png"
        for stream in streams
    }


def _table(
    name: str,
    first: str,
    columns: Sequence[Column[Ranking]],
    names: Sequence[Cell],
    rankings: Sequence[Ranking],
) -> Table:
    shown = applying(columns, rankings)
    cells = [[_cell(column.cell(each)) for each in rankings] for column in shown]
    titles = (first, *(column.title for column in shown))
    return rendering.table(name, titles, zip(names, *cells, strict=True), stacked=True)


def _cell(words: str) -> Cell:
    least, _, most = words.partition(" to ")
    return Cell(least, (f"to {most}",)) if most else Cell(least)


def plot_comparison(comparison: Comparison) -> Any:
    return picture([stream_chart(comparison, stream, stream) for stream in comparison.streams])


def comparison_html(comparison: Comparison) -> str:
    """What a notebook shows: the standings on each stream, and the frontiers if matplotlib is
    installed; what it prints if jinja2 is not installed.
    """
    if not rendering.installed("jinja2"):
        return f"<pre>{escape(repr(comparison))}</pre>"
    drawn = rendering.installed("matplotlib")
    streams = [stream_context(comparison, stream, drawn=drawn) for stream in comparison.streams]
    return rendering.render(
        "notebook_comparison", style=rendering.notebook_style(), streams=streams
    )


PRESENTER = Presenter(plot_comparison, comparison_html)


# --- sweeps --------------------------------------------------------------------------------------

_SWEEP_WORDS = (
    "Every number is the mean over the seeds that ended; worst is that of any round of any seed. "
    "Violation: by how much constraints were violated; broken: the share of rounds with one. "
    "Churn: half of what all entries changed by. 99 % of the rounds are at most p99."
)


def sweep_page(found: Sweep, *, date: datetime) -> str:
    groups = found.groups()
    names = dict.fromkeys(rendering.title_of(group.experiment) for group in groups)
    count = len(found.rows)
    context = {
        "title": f"Sweep of {', '.join(names)}",
        "about": (
            f"{count:,} run{'s' * (count != 1)}: every learner at every horizon, seed and value of "
            "the knobs it has."
        ),
        "warnings": found.warnings(),
        "groups": [_group(group, len(groups) > 1) for group in groups],
        "read": _SWEEP_WORDS,
        "written": rendering.written(date),
    }
    return rendering.document("sweep", context)


def _group(group: SweepGroup, several: bool) -> dict[str, Any]:
    from tidewolf.experiments.sweep import LINE_COLUMNS

    learners = list(dict.fromkeys(line.learner for line in group.lines))
    styles = {name: RunStyle(name, i % rendering.HUES) for i, name in enumerate(learners)}
    columns = applying(LINE_COLUMNS, group.lines)
    rows: list[Sequence[Cell | str]] = [
        (
            Cell(line.learner, style=styles[line.learner]),
            *(format_setting(line.settings.get(knob, "")) for knob in group.knobs),
            *(column.cell(line) for column in columns),
        )
        for line in group.lines
    ]
    knobs = (knob.replace("_", " ") for knob in group.knobs)
    titles = ("learner", *knobs, *(column.title for column in columns))
    form: Any = {"stacked": True, "kind": "results"}
    rounds = "" if group.rounds is None else f", {group.rounds:,} rounds"
    drawn = (_figure(group, knob, styles) for knob in group.knobs)
    return {
        "title": f"{rendering.title_of(group.experiment)}{rounds}" if several else "Settings",
        "about": group.about,
        "figures": [found for found in drawn if found is not None],
        "table": rendering.table(f"Sweep of {group.experiment}", titles, rows, **form),
    }


def _figure(group: SweepGroup, knob: str, styles: dict[str, RunStyle]) -> Any:
    """Loss against violation as one knob moves, a line for each learner and setting of the other
    knobs; nothing if no learner has the knob.
    """
    curves: dict[tuple[str, str], list[SweepLine]] = {}
    for line in group.lines:
        if isinstance(line.settings.get(knob), int | float) and line.seeds:
            others = ", ".join(
                f"{name.replace('_', ' ')} {format_setting(value)}"
                for name, value in line.settings.items()
                if name != knob and name in group.knobs
            )
            curves.setdefault((line.learner, others), []).append(line)
    drawn = [
        _curve(f"{learner}, {others}" if others else learner, styles[learner].hue, knob, lines)
        for (learner, others), lines in curves.items()
        if len(lines) > 1
    ]
    if not drawn:
        return None
    words = knob.replace("_", " ")
    about = f"mean loss against mean violation per round, as {words} moves"
    chart = frontier_chart(knob, words.capitalize(), about, drawn, "mean loss per round")
    return figure(chart)


def _curve(label: str, hue: int, knob: str, lines: list[SweepLine]) -> Curve:
    from tidewolf.experiments.keys import learner_keys

    lines = sorted(lines, key=lambda line: line.settings[knob])
    words, usual = knob.replace("_", " "), learner_keys(lines[0].learner).get(knob)
    values = [line.settings[knob] for line in lines]
    known = usual is not None and usual.default in values
    default = values.index(usual.default) if usual is not None and known else None
    notes = [f"{words} {format_setting(value)}" for value in values]
    violations, losses = (
        [line.values[name] or 0.0 for line in lines] for name in ("violation_mean", "loss_mean")
    )
    return Curve(label, violations, losses, notes, hue, default)
