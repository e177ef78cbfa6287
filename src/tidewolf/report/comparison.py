"""The pages of a comparison and of a sweep, which need nothing else. A comparison has, for each
stream, a figure of frontiers, what each step of the knob costs and buys, and tables of how learners
stand. A sweep has, for each experiment and horizon, a table of settings and numbers, and for each
knob a figure of loss against violation as it moves.
"""

import os
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from html import escape
from typing import Any

from tidewolf.core import checkpoint
from tidewolf.evaluation.comparison import TABLES, Comparison, ranking_name
from tidewolf.evaluation.formatting import applying, format_setting, number
from tidewolf.experiments.compare import LINE_COLUMNS, Sweep, SweepGroup, SweepLine
from tidewolf.experiments.experiment import learner_keys
from tidewolf.report import charts
from tidewolf.report.charts import HUES, Cell, Chart, Curve, RunStyle, figure, table


def comparison_page(comparison: Comparison, *, date: datetime) -> str:
    charts.require_extras()
    first, *others = comparison.streams
    context = {
        "title": "Comparison" if others else f"Comparison on {charts.title_of(first)}",
        "baseline": comparison.baseline,
        "share": comparison.share_of(),
        "streams": [stream_context(comparison, stream) for stream in comparison.streams],
        "written": charts.written(date),
    }
    return charts.document("comparison", context)


def stream_context(comparison: Comparison, stream: str, *, drawn: bool = True) -> dict[str, Any]:
    rankings = [each for each in comparison.rankings() if each.stream == stream]
    sees = {entry.learner: (f"sees {entry.sees}",) for entry in comparison.entries if entry.sees}
    tables = list[charts.Table]()
    for name, (first, columns) in zip(("Standings", "Rounds"), TABLES, strict=True):
        shown = applying(columns, rankings)
        rows = []
        for i, each in enumerate(rankings):
            label, lines = ranking_name(each), () if tables else sees.get(each.learner, ())
            numbers = (_cell(column.cell(each)) for column in shown)
            rows.append([Cell(label, lines, RunStyle(label, i % HUES)), *numbers])
        titles = (first, *(column.title for column in shown))
        tables.append(table(f"{name} on {stream}", titles, rows, stacked=True))
    return {
        "title": charts.title_of(stream),
        "about": comparison.about(stream),
        "figure": figure(stream_chart(comparison, stream)) if drawn else None,
        "learner": comparison.chooser(stream),
        "steps": comparison.steps(stream),
        "choice": " ".join(comparison.choice(stream)),
        "beside": comparison.against_resolving(stream),
        "tables": tables,
        "warnings": comparison.warnings(stream),
    }


def _cell(words: str) -> Cell:
    least, _, most = words.partition(" to ")
    return Cell(least, (f"to {most}",) if most else ())


def stream_chart(comparison: Comparison, stream: str, title: str = "") -> Chart:
    measure = comparison.measure(stream)
    curves = [
        Curve(
            ranking_name(each),
            [point.violation for point in each.points],
            [point.level for point in each.points],
            [point.at for point in each.points],
            i % HUES,
            next((k for k, point in enumerate(each.points) if point.knob and point.default), None),
        )
        for i, each in enumerate(r for r in comparison.rankings() if r.stream == stream)
    ]
    about = f"mean {measure} against mean violation per round; down and to the left is better"
    title = title or "What the knob costs and buys"
    return frontier_chart("frontier", title, about, curves, f"mean {measure} per round")


def frontier_chart(
    name: str,
    title: str,
    about: str,
    curves: Sequence[Curve],
    upward: str = "mean regret per round",
) -> Chart:
    rows = [
        (
            Cell(curve.label, (note,) if (note := curve.note(i)) else ()),
            Cell(number(regret)),
            Cell(number(curve.violations[i])),
        )
        for curve in curves
        for i, regret in enumerate(curve.regrets)
    ]
    counts = [f"{len(each.regrets)} setting{'s' * (len(each.regrets) != 1)}" for each in curves]
    return Chart(
        name,
        title,
        about,
        partial(charts.draw_frontiers, curves=curves, upward=upward),
        [RunStyle(c.label, c.hue, value=count) for c, count in zip(curves, counts, strict=True)],
        table(title, ("learner", upward, "mean violation per round"), rows) if rows else None,
        (860, 430),
        (62, 46, 14, 14),
        wide=True,
    )


def write_pictures(folder: str | os.PathLike[str], comparison: Comparison) -> None:
    for stream, name in pictures(comparison.streams).items():
        title = (
            f"{charts.title_of(stream)}: mean {comparison.measure(stream)} against mean violation"
        )
        drawn = charts.saved(charts.picture([stream_chart(comparison, stream, title)]), "png")
        checkpoint.write(os.path.join(folder, name), drawn)


def pictures(streams: Sequence[str]) -> dict[str, str]:
    return {
        stream: f"frontier-{''.join(c if c.isalnum() else '-' for c in stream)}.png"
        for stream in streams
    }


def plot(comparison: Comparison) -> Any:
    return charts.picture(
        [stream_chart(comparison, stream, stream) for stream in comparison.streams]
    )


def html(comparison: Comparison) -> str:
    """What a notebook shows: the standings on each stream, and the frontiers if matplotlib is
    installed; what it prints if jinja2 is not installed.
    """
    if not charts.installed("jinja2"):
        return f"<pre>{escape(repr(comparison))}</pre>"
    drawn, style = charts.installed("matplotlib"), charts.notebook_style()
    streams = [stream_context(comparison, stream, drawn=drawn) for stream in comparison.streams]
    return charts.render("notebook_comparison", style=style, streams=streams)


# --- sweeps --------------------------------------------------------------------------------------


def sweep_page(found: Sweep, *, date: datetime) -> str:
    groups, count = found.groups(), len(found.rows)
    names = dict.fromkeys(charts.title_of(group.experiment) for group in groups)
    context = {
        "title": f"Sweep of {', '.join(names)}",
        "runs": f"{count:,} run{'s' * (count != 1)}",
        "warnings": found.warnings(),
        "groups": [_group(group, len(groups) > 1) for group in groups],
        "written": charts.written(date),
    }
    return charts.document("sweep", context)


def _group(group: SweepGroup, several: bool) -> dict[str, Any]:
    learners = dict.fromkeys(line.learner for line in group.lines)
    styles = {name: RunStyle(name, i % HUES) for i, name in enumerate(learners)}
    columns = applying(LINE_COLUMNS, group.lines)
    rows = [
        (
            Cell(line.learner, style=styles[line.learner]),
            *(Cell(format_setting(line.settings.get(knob, ""))) for knob in group.knobs),
            *(Cell(column.cell(line)) for column in columns),
        )
        for line in group.lines
    ]
    titles = ("learner", *map(_words, group.knobs), *(column.title for column in columns))
    rounds = "" if group.rounds is None else f", {group.rounds:,} rounds"
    drawn = filter(None, (_knob_chart(group, knob, styles) for knob in group.knobs))
    return {
        "title": f"{charts.title_of(group.experiment)}{rounds}" if several else "Settings",
        "about": group.about,
        "figures": [figure(chart) for chart in drawn],
        "table": table(f"Sweep of {group.experiment}", titles, rows, stacked=True, kind="results"),
    }


def _words(knob: str) -> str:
    return knob.replace("_", " ")


def _knob_chart(group: SweepGroup, knob: str, styles: dict[str, RunStyle]) -> Chart | None:
    """Loss against violation as one knob moves, a line for each learner and setting of the other
    knobs; nothing if no learner has the knob.
    """
    curves: dict[tuple[str, str], list[SweepLine]] = {}
    for line in group.lines:
        if isinstance(line.settings.get(knob), int | float) and line.seeds:
            others = [
                f"{_words(name)} {format_setting(value)}"
                for name, value in line.settings.items()
                if name != knob and name in group.knobs
            ]
            label = ", ".join([line.learner, *others])
            curves.setdefault((line.learner, label), []).append(line)
    drawn = [
        _curve(label, styles[learner].hue, knob, lines)
        for (learner, label), lines in curves.items()
        if len(lines) > 1
    ]
    about = f"mean loss against mean violation per round, as {_words(knob)} moves"
    title = _words(knob).capitalize()
    return frontier_chart(knob, title, about, drawn, "mean loss per round") if drawn else None


def _curve(label: str, hue: int, knob: str, lines: list[SweepLine]) -> Curve:
    lines = sorted(lines, key=lambda line: line.settings[knob])
    key, values = learner_keys(lines[0].learner).get(knob), [one.settings[knob] for one in lines]
    usual = [i for i, value in enumerate(values) if key is not None and value == key.default]
    notes = [f"{_words(knob)} {format_setting(value)}" for value in values]
    violations, losses = (
        [line.values[name] or 0.0 for line in lines] for name in ("violation_mean", "loss_mean")
    )
    return Curve(label, violations, losses, notes, hue, usual[0] if usual else None)
