"""The report of a sweep: for each experiment and horizon a table of settings and numbers, and for
each knob a figure of loss against violation as it moves.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidewolf.core import checkpoint
from tidewolf.evaluation.formatting import format_setting
from tidewolf.experiments.keys import learner_keys
from tidewolf.experiments.sweep import line_columns
from tidewolf.report.charts import Curve, figure
from tidewolf.report.rendering import document, written
from tidewolf.report.sections import frontier_chart
from tidewolf.report.tables import HUES, Cell, RunStyle, Table, table, title_of

if TYPE_CHECKING:
    from tidewolf.experiments.sweep import Sweep, SweepGroup, SweepLine

_READ = (
    "Every number is the mean over the seeds that came to their end; worst is that of any round of "
    "any seed. Violation: by how much the limits were broken. Broken: the share of rounds in which "
    "one was. Churn: half of what the entries of the decision changed by from one round to the "
    "next, all together. 99 % of the rounds are at most p99."
)


def write_sweep_page(path: str | os.PathLike[str], found: Sweep, *, date: datetime) -> None:
    """The page at `path`, whole or not at all."""
    checkpoint.write(path, sweep_page(found, date=date).encode())


def sweep_page(found: Sweep, *, date: datetime) -> str:
    """The whole page of a sweep."""
    groups = found.groups()
    names = dict.fromkeys(title_of(group.experiment) for group in groups)
    count = len(found.rows)
    context = {
        "title": f"Sweep of {', '.join(names)}",
        "about": (
            f"{count:,} run{'s' * (count != 1)}: every learner at every horizon, seed and value of "
            "the knobs it has."
        ),
        "warnings": found.warnings(),
        "groups": [_group(group, len(groups) > 1) for group in groups],
        "read": _READ,
        "written": written(date),
    }
    return document("sweep", context)


def _group(group: SweepGroup, several: bool) -> dict[str, Any]:
    hues = {name: i % HUES for i, name in enumerate(dict.fromkeys(x.learner for x in group.lines))}
    rounds = "" if group.rounds is None else f", {group.rounds:,} rounds"
    title = title_of(group.experiment)
    return {
        "title": f"{title}{rounds}" if several else "Settings and numbers",
        "about": group.about,
        "figures": [
            found for knob in group.knobs if (found := _figure(group, knob, hues)) is not None
        ],
        "table": _table(group, hues),
    }


def _table(group: SweepGroup, hues: dict[str, int]) -> Table:
    columns = line_columns(group.lines)
    rows: list[Sequence[Cell | str]] = [
        (
            Cell(line.learner, style=RunStyle(line.learner, hues[line.learner])),
            *(format_setting(line.settings.get(knob, "")) for knob in group.knobs),
            *(column.cell(line) for column in columns),
        )
        for line in group.lines
    ]
    knobs = (knob.replace("_", " ") for knob in group.knobs)
    titles = ("learner", *knobs, *(column.title for column in columns))
    return table(f"Sweep of {group.experiment}", titles, rows, stacked=True, kind="results")


def _figure(group: SweepGroup, knob: str, hues: dict[str, int]) -> dict[str, Any] | None:
    """Loss against violation as one knob moves, a line for each learner and setting of the other
    knobs; nothing if no learner has the knob.
    """
    curves: dict[tuple[str, str], list[SweepLine]] = {}
    for line in group.lines:
        if isinstance(line.settings.get(knob), int | float) and line.loss is not None:
            others = ", ".join(
                f"{name.replace('_', ' ')} {format_setting(value)}"
                for name, value in line.settings.items()
                if name != knob and name in group.knobs
            )
            curves.setdefault((line.learner, others), []).append(line)
    drawn = [
        _curve(f"{learner}, {others}" if others else learner, hues[learner], knob, lines)
        for (learner, others), lines in curves.items()
        if len(lines) > 1
    ]
    if not drawn:
        return None
    words = knob.replace("_", " ")
    about = f"mean loss against mean violation a round, as {words} moves"
    chart = frontier_chart(knob, words.capitalize(), about, drawn, "mean loss a round")
    return figure(chart)


def _curve(label: str, hue: int, knob: str, lines: list[SweepLine]) -> Curve:
    lines = sorted(lines, key=lambda line: line.settings[knob])
    words, usual = knob.replace("_", " "), learner_keys(lines[0].learner).get(knob)
    values = [line.settings[knob] for line in lines]
    default = None
    if usual is not None and usual.default in values:
        default = values.index(usual.default)
    return Curve(
        label,
        [line.violation or 0.0 for line in lines],
        [line.loss or 0.0 for line in lines],
        [f"{words} {format_setting(value)}" for value in values],
        hue,
        default,
    )
