"""The report of an experiment: what was run, its results, charts, and how to run it again.

One HTML page that needs nothing else, no network either. sections.py makes plain data from runs,
the record of the page; templates/ makes the markup. Its script only says at a pointer what tables
say without it. Light and dark, a phone and paper are the style sheet's business. The same runs give
the same page, apart from the date and the seconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.core.errors import BrokenFile, InvalidInput, OtherSettings, TidewolfError
from tidewolf.core.feedback import SEES
from tidewolf.core.registry import Presenter
from tidewolf.evaluation.hindsight_words import hindsight_sentences
from tidewolf.evaluation.metrics import table_metrics
from tidewolf.report import rendering, sections
from tidewolf.report.charts import clock_of, figure, picture, saved
from tidewolf.report.network import network_chart, networks_context, networks_of
from tidewolf.report.rendering import Cell, Table

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run
    from tidewolf.networks.network import Network

DECISION_FILES = tuple(
    f"{name}*.{ending}"
    for name in ("decisions", "paths", "limits")
    for ending in ("csv", "parquet")
)
"""Files beside a page that it links to."""
_WORDS = {
    "regret": "The total loss minus that of the best fixed point that is feasible in every round; "
    "an interval if that point is known between two bounds.",
    "regret, kept rounds": "The total loss minus that of the best fixed point that is feasible in "
    "the rounds that can be kept together; no point is feasible in all.",
    "violation": "By how much limits were broken, added up; room to spare never makes up for it.",
    "measured bound": "The most that theory allows this very run, given what it measured.",
    "churn": "Half of what all entries of the decision changed by from one round to the next.",
    "p99": "99 % of the rounds are at most that.",
    "largest infeasibility": "The farthest that a played point ever was outside the hard set.",
    "certificate": "Holds if every played point is in the set, every oracle call is counted, and "
    "both totals are within what theory allows.",
    "guaranteed": "What was promised was known before the first round.",
}


# --- the page of runs -----------------------------------------------------------------------------


def write(path: str | os.PathLike[str], runs: Sequence[Run], **about: Any) -> None:
    """The page at `path`, and its record beside it (report.json for report.html), from which
    `rewrite` makes the page again; each is written whole or not at all. Without `decisions` the
    page links to the decision files beside it.
    """
    folder = Path(path).parent
    beside = [file.name for form in DECISION_FILES for file in sorted(folder.glob(form))]
    about.setdefault("decisions", beside)
    record = _record(runs, **about)
    checkpoint.write(Path(path).with_suffix(".json"), json.dumps(record, allow_nan=False).encode())
    checkpoint.write(path, rendering.document("run", record).encode())


def rewrite(path: str | os.PathLike[str], date: datetime) -> None:
    """The page at `path` again, from the record beside it alone: neither data nor learners are
    needed, so any machine can do it.
    """
    file = Path(path).with_suffix(".json")
    again = f"`tidewolf resume {file.parent}` writes it again."
    try:
        record = json.loads(file.read_bytes())
        if record["format"] != rendering.PAGE_FORMAT:
            found = f"{file} has format {record['format']}, not {rendering.PAGE_FORMAT}"
            raise OtherSettings(f"{found}. {again}")
        text = rendering.document("run", {**record, "written": rendering.written(date)})
    except FileNotFoundError:
        raise InvalidInput(f"{file}, from which the page is made, is missing. {again}") from None
    except TidewolfError:
        raise
    except Exception as error:  # a changed record breaks the templates in every way
        raise BrokenFile(f"{file} was changed and cannot be read ({error}). {again}") from None
    checkpoint.write(path, text.encode())


def page(runs: Sequence[Run], **about: Any) -> str:
    """The whole page for runs of several learners on one stream; `about` as of `_record`."""
    return rendering.document("run", _record(runs, **about))


def _record(
    runs: Sequence[Run],
    *,
    name: str,
    about: str,
    seed: int,
    date: datetime,
    entries: Sequence[str] = (),
    experiment: str = "",
    left_out: Mapping[str, str] = MappingProxyType({}),
    network: Network | None = None,
    notes: Sequence[str] = (),
    decisions: Sequence[str] = (),
) -> dict[str, Any]:
    """All that the page of runs shows, as plain data.

    `entries` names the entries of a point; `experiment` is its file as resolved; `left_out` says
    why learners that usually take part do not; `network` is what the set was made from; `notes` are
    about the problem; `decisions` names the files beside the page that hold them.
    """
    rendering.require_extras()
    styles, clock = rendering.run_styles(runs), clock_of(runs[0].stream, runs[0].rounds)
    labels, shown = [style.label for style in styles], sections.shown_runs(runs, entries)
    when = [clock.span(0, clock.rounds)] if clock.times is not None else []
    beside = () if network is None else network.notes  # these stand beside the network
    context = {
        "format": rendering.PAGE_FORMAT,
        "versions": checkpoint.writer(),
        "title": rendering.title_of(name),
        "about": about,
        "facts": [f"{runs[0].rounds:,} rounds", *when, f"seed {seed}"],
        "files": _files(decisions, network),
        "results": results_table(runs),
        "read": _read(runs),
        "warnings": hindsight_sentences(runs),
        "figures": [figure(chart) for chart in sections.totals_charts(runs)],
        "trust": sections.trust_context(runs),
        "limits": sections.limits_context(runs, network),
        "networks": networks_context(shown, clock, network),
        "maps": sections.maps_context(runs, shown, clock),
        "intervals": sections.intervals_context(sections.quick_intervals(runs), styles, clock),
        "notes": [
            *(("", note) for note in notes if note not in beside),
            *learner_notes(runs, labels, left_out),
        ],
        "experiment": experiment.strip(),
        "settings": [
            ("experiment", f"{name}, {runs[0].rounds:,} rounds"),
            ("seed", f"{seed}"),
            ("set", repr(runs[0].learner.hard_set)),
            ("losses", repr(runs[0].stream.losses)),
            ("constraints", repr(runs[0].stream.constraints)),
            *((label, repr(run.learner)) for run, label in zip(runs, labels, strict=True)),
        ],
        "written": rendering.written(date),
    }
    return {key: _plain(part) for key, part in context.items()}


def _plain(part: Any) -> Any:
    """The same as lists, mappings, text and numbers: what JSON gives back."""
    if isinstance(part, tuple) and hasattr(part, "_asdict"):
        part = part._asdict()
    if isinstance(part, Mapping):
        return {str(name): _plain(each) for name, each in part.items()}
    if isinstance(part, list | tuple):
        return [_plain(each) for each in part]
    return part.item() if isinstance(part, np.generic) else part


def _files(names: Sequence[str], network: Network | None) -> list[dict[str, Any]]:
    """Files by what is in them, each with its address."""
    entries = "one column for each entry of the decision"
    if network is not None:
        entries = "the share of its demand that every link or tunnel carries, a column each"
    broken = "every limit that was broken, when, and by how much"
    paths = "the paths in use, with their shares"
    found = []
    for kind, about in (("decisions", entries), ("paths", paths), ("limits", broken)):
        linked = [{"name": n, "address": quote(n)} for n in names if n.startswith(kind)]
        found += [{"about": about, "files": linked}] if linked else []
    return found


def results_table(runs: Sequence[Run]) -> Table:
    """The headline: the totals of each run."""
    shown, rows = table_metrics(runs), []
    words = {True: "holds", False: "fails", None: "undecided"}
    for run, style in zip(runs, rendering.run_styles(runs), strict=True):
        proved = f"certificate {words[run.certificate.holds]}"
        name = Cell(style.label, (f"sees {SEES[run.learner.needs]}", proved), style)
        numbers = (Cell(metric.cell(run), tuple(metric.details(run))) for metric in shown)
        rows.append([name, *numbers])
    titles = ["learner", *(metric.title for metric in shown)]
    return rendering.table("Results", titles, rows, stacked=True, kind="results")


def _read(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """What the words of the headline mean, of those that it has."""
    titles = {metric.title for metric in table_metrics(runs)}
    totals = [each for run in runs for each in (run.certificate.regret, run.certificate.violation)]
    has = {name: name in titles for name in ("regret", "regret, kept rounds")}
    has["measured bound"] = any(total.bound is not None for total in totals)
    has["guaranteed"] = any(total.guarantee is not None for total in totals)
    return [(name, words) for name, words in _WORDS.items() if has.get(name, True)]


def learner_notes(
    runs: Sequence[Run], labels: Sequence[str], left_out: Mapping[str, str] = MappingProxyType({})
) -> list[tuple[str, str]]:
    """Notes, each with the labels of its runs: learners' own notes, why there is no measured bound,
    which checks failed, which learners were left out.
    """
    concerned: dict[str, list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        comparable = run.comparator is None or run.comparator.feasible is not False
        for note in (*run.notes, run.bound.reason if comparable else "", *run.certificate.failures):
            if note:
                concerned.setdefault(note, []).append(label)
    missing = [(who, f"left out. {sentence}") for who, sentence in left_out.items()]
    return [*((", ".join(who), note) for note, who in concerned.items()), *missing]


# --- pictures and notebooks -----------------------------------------------------------------------


def write_figures(
    folder: str | os.PathLike[str],
    runs: Sequence[Run],
    *,
    entries: Sequence[str] = (),
    network: Network | None = None,
) -> list[Path]:
    """Every chart of the runs as a PNG and an SVG in a folder; `entries` names the entries of a
    point, `network` is what the set was made from. Returns the files.
    """
    folder, clock = Path(folder), clock_of(runs[0].stream, runs[0].rounds)
    shown = sections.shown_runs(runs, entries)
    trusted = (
        sections.trust_chart(run, style.label)
        for run, style in zip(runs, rendering.run_styles(runs), strict=True)
    )
    charts = [
        *sections.totals_charts(runs),
        *filter(None, trusted),
        *sections.heat_charts(shown, clock),
        *(network_chart(drawn, each.style) for each, drawn in networks_of(shown, clock, network)),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    written_files = []
    for chart in charts:
        name = "-".join("".join(c if c.isalnum() else " " for c in chart.name).split())
        for ending in ("png", "svg"):
            written_files.append(folder / f"{name}.{ending}")
            checkpoint.write(written_files[-1], saved(picture([chart]), ending))
    return written_files


def plot_run(run: Run) -> Any:
    """Loss, regret (if it is known), violation and calls of a run as they add up, and the weights
    of its experts if it mixes any.
    """
    if run.rounds == 0:
        raise InvalidInput("A run of no rounds has nothing to plot.")
    return picture([*sections.totals_charts([run]), *filter(None, [sections.trust_chart(run)])])


def run_html(run: Run) -> str:
    """What a notebook shows of a run: the table, charts if matplotlib is installed, and notes; what
    it prints if jinja2 is not installed.
    """
    if not rendering.installed("jinja2"):
        return f"<pre>{escape(str(run))}</pre>"
    charts = []
    if rendering.installed("matplotlib"):
        charts = [*sections.totals_charts([run]), *filter(None, [sections.trust_chart(run)])]
    notes = learner_notes([run], rendering.learner_labels([run]))
    return rendering.render(
        "notebook_run",
        style=rendering.notebook_style(),
        results=results_table([run]),
        figures=[figure(chart, tables=False) for chart in charts],
        experts=sections.experts_table(run.experts) if run.experts else None,
        limits=sections.limits_context([run]),
        said=[*hindsight_sentences([run]), *(note for _, note in notes)],
    )


PRESENTER = Presenter(plot_run, run_html)
"""How a run shows itself."""
