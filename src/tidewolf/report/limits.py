"""A table of the limits of runs whose learner has a weight for each, those broken most first."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from tidewolf.report.markup import scrolled, table
from tidewolf.report.styles import run_styles

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run

ROWS = 10
"""Of more limits that were broken, those broken most are shown."""
_READ = "By how much each limit was broken in all, and the most that theory allows of it."


def limits_table(run: Run) -> str:
    """Name, violation and bound of each; nothing where limits are not told apart."""
    if not run.limits:
        return ""
    rows = [tuple(map(escape, row)) for row in run.limits.rows(ROWS)]
    broken = f"{len(run.limits.broken)} of {len(run.limits)} limits were broken."
    titles = ("limit", "broken by", "at most")
    shown = scrolled(table(titles, rows, stacked=True), "Limits") if rows else ""
    return f'<p class="read">{broken}</p>{shown}'


def limits_section(runs: Sequence[Run]) -> str:
    """A table for each run that has one."""
    shown = "".join(
        f"<h3>{escape(style.label)}</h3>{limits_table(run)}"
        for run, style in zip(runs, run_styles(runs), strict=True)
        if run.limits
    )
    return f'<h2 class="part">Limits</h2><p class="read">{_READ}</p>{shown}' if shown else ""
