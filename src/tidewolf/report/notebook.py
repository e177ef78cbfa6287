"""Runs and comparisons as notebooks show them: the tables and figures of their pages, without the
page.
"""

from __future__ import annotations

from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tidewolf.core.display import Presenter
from tidewolf.report.charts import figures, frontier_figure, standing_curves
from tidewolf.report.comparison import comparison_section
from tidewolf.report.limits import limits_table
from tidewolf.report.page import (
    asset,
    hindsight_warnings,
    learner_labels,
    learner_notes,
    results_table,
)
from tidewolf.report.pictures import plot_comparison, plot_runs
from tidewolf.report.trust import members_table, trust_figure

if TYPE_CHECKING:
    from tidewolf.evaluation.comparison import Comparison
    from tidewolf.evaluation.run import Run


def run_html(run: Run) -> str:
    """The table of a run, its figures where matplotlib is installed, and what a reader should
    know.
    """
    said = [
        *hindsight_warnings([run]),
        *(note for _, note in learner_notes([run], learner_labels([run]))),
    ]
    drawn = ""
    if find_spec("matplotlib"):
        drawn = figures([run], tables=False) + trust_figure(run, tables=False)
    return _framed(
        results_table([run]),
        f'<section class="figures">{drawn}</section>',
        members_table(run.members) if run.members else "",
        limits_table(run),
        *(f"<p>{escape(sentence)}</p>" for sentence in said),
    )


def comparison_html(comparison: Comparison) -> str:
    """The standings on each stream, and the frontiers where matplotlib is installed."""
    standings, parts = comparison.standings(), []
    for stream in comparison.streams:
        its = [each for each in standings if each.stream == stream]
        parts.append(comparison_section(comparison, stream, its))
        if find_spec("matplotlib"):
            drawn = frontier_figure(
                stream, "mean regret against mean violation a round", standing_curves(its)
            )
            parts.append(f'<section class="figures">{drawn}</section>')
    return _framed(*parts)


def _framed(*parts: str) -> str:
    style = asset("colors.css").replace(":root", ".tidewolf") + asset("notebook.css")
    return f'<div class="tidewolf"><style>\n{style}</style>{"".join(parts)}</div>'


PRESENTERS = {
    "Run": Presenter(lambda run: plot_runs([run]), run_html),
    "Comparison": Presenter(plot_comparison, comparison_html),
}
"""How runs and comparisons show themselves."""
