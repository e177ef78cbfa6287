"""Runs and comparisons as notebooks show them: the tables and figures of their pages, without the
page.
"""

from __future__ import annotations

from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tidewolf.core.registry import Presenter
from tidewolf.report.charts import figures
from tidewolf.report.comparison import stream_context
from tidewolf.report.page import (
    hindsight_warnings,
    learner_labels,
    learner_notes,
    results_table,
)
from tidewolf.report.pictures import plot_comparison, plot_runs
from tidewolf.report.rendering import asset, render
from tidewolf.report.sections import limits_context
from tidewolf.report.trust import experts_table, trust_figure

if TYPE_CHECKING:
    from tidewolf.evaluation.comparison import Comparison
    from tidewolf.evaluation.run import Run


def run_html(run: Run) -> str:
    """The table of a run, its figures where matplotlib is installed, and what a reader should
    know; as it prints where jinja2 is not installed.
    """
    if not find_spec("jinja2"):
        return f"<pre>{escape(str(run))}</pre>"
    said = [
        *hindsight_warnings([run]),
        *(note for _, note in learner_notes([run], learner_labels([run]))),
    ]
    drawn = []
    if find_spec("matplotlib"):
        trusted = trust_figure(run, tables=False)
        drawn = [*figures([run], tables=False), *([trusted] if trusted else [])]
    return render(
        "notebook_run",
        style=_style(),
        results=results_table([run]),
        figures=drawn,
        experts=experts_table(run.experts) if run.experts else None,
        limits=limits_context([run]),
        said=said,
    )


def comparison_html(comparison: Comparison) -> str:
    """The standings on each stream, and the frontiers where matplotlib is installed; as it prints
    where jinja2 is not installed.
    """
    if not find_spec("jinja2"):
        return f"<pre>{escape(repr(comparison))}</pre>"
    drawn = find_spec("matplotlib") is not None
    streams = [stream_context(comparison, stream, drawn=drawn) for stream in comparison.streams]
    return render("notebook_comparison", style=_style(), streams=streams)


def _style() -> str:
    return asset("colors.css").replace(":root", ".tidewolf") + asset("notebook.css")


PRESENTERS = {
    "Run": Presenter(lambda run: plot_runs([run]), run_html),
    "Comparison": Presenter(plot_comparison, comparison_html),
}
"""How runs and comparisons show themselves."""
