"""The report of an experiment: what was run, what came of it, pictures, and how to run it again.

One HTML page that needs nothing else, no network either. Sections are functions that make plain
data from runs; templates/ makes the markup. Its script only says at a pointer what tables and
captions say without it. Light and dark, a phone and paper are the style sheet's business. The same
runs give the same page, apart from the date and the seconds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tidewolf.core import checkpoint
from tidewolf.core.feedback import SEES
from tidewolf.evaluation.metrics import Metric, table_metrics
from tidewolf.report.charts import figures
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.intervals import intervals_context, quick_intervals
from tidewolf.report.limits import limits_context
from tidewolf.report.names import title_of
from tidewolf.report.rendering import document
from tidewolf.report.styles import RunStyle, run_styles
from tidewolf.report.styles import learner_labels as learner_labels
from tidewolf.report.tables import Cell, Table, table
from tidewolf.report.trajectory import maps_context, networks_context
from tidewolf.report.trust import trust_context

if TYPE_CHECKING:
    from tidewolf.evaluation.intervals import Intervals
    from tidewolf.evaluation.run import Run
    from tidewolf.networks.network import Network

DECISION_FILES = ("decisions*.csv", "decisions*.parquet", "paths*.csv", "paths*.parquet")
"""What a page links to where it lies beside it."""
_READ = (
    "Regret is the total loss minus that of the best fixed point that keeps every limit in every "
    "round; where that point is known only between two bounds, so is the regret. Violation adds "
    "up by how much the limits were broken; surplus never pays for a breach. The measured bound "
    "beneath is the most that theory allows this very run, given what it measured. Churn is half "
    "of what the entries of the decision changed by from one round to the next, all together. 99 % "
    "of the rounds are at most p99. "
)
_PROMISED = "What was promised was known before the first round. "
_CERTIFIED = (
    "The largest excess is the farthest a played point ever was outside the hard set. A certificate"
    " holds when every played point is a member, every projection and oracle call is accounted "
    "for, and both totals are within what theory allows."
)


def write(
    path: str | os.PathLike[str],
    runs: Sequence[Run],
    *,
    name: str,
    about: str,
    seed: int,
    date: datetime,
    entries: Sequence[str] = (),
    experiment: str = "",
    worst: Sequence[Intervals] | None = None,
    left_out: Mapping[str, str] = MappingProxyType({}),
    network: Network | None = None,
    decisions: Sequence[str] | None = None,
) -> None:
    """The page at `path`, whole or not at all.

    Arguments are those of `page`; without `decisions` the page links to those that lie beside it.
    """
    if decisions is None:
        folder = Path(path).parent
        decisions = [file.name for form in DECISION_FILES for file in sorted(folder.glob(form))]
    text = page(
        runs,
        name=name,
        about=about,
        seed=seed,
        date=date,
        entries=entries,
        experiment=experiment,
        worst=worst,
        left_out=left_out,
        network=network,
        decisions=decisions,
    )
    checkpoint.write(path, text.encode())


def page(
    runs: Sequence[Run],
    *,
    name: str,
    about: str,
    seed: int,
    date: datetime,
    entries: Sequence[str] = (),
    experiment: str = "",
    worst: Sequence[Intervals] | None = None,
    left_out: Mapping[str, str] = MappingProxyType({}),
    network: Network | None = None,
    decisions: Sequence[str] = (),
) -> str:
    """The whole page for runs of several learners on one stream.

    `entries` names the entries of a point, one each; `experiment` is the experiment as resolved, as
    text; `worst` holds the intervals of each run. Without them, they are worked out where that is a
    matter of linear programs of moderate size. `left_out` says why learners that usually take part
    do not. `network` is what the set was made from; `decisions` are the names of files beside the
    page that hold them.
    """
    seen, clock = run_styles(runs), clock_of(runs[0].stream, runs[0].rounds)
    labels = [style.label for style in seen]
    context = {
        "title": title_of(name),
        "about": about,
        "facts": _facts(runs, seed, clock),
        "files": [_file(each) for each in decisions],
        "results": results_table(runs),
        "read": _read(runs),
        "warnings": hindsight_warnings(runs),
        "figures": figures(runs),
        "trust": trust_context(runs),
        "limits": limits_context(runs),
        "networks": networks_context(runs, entries, network),
        "maps": maps_context(runs, entries),
        "intervals": intervals_context(
            quick_intervals(runs) if worst is None else worst, seen, clock
        ),
        "notes": learner_notes(runs, labels, left_out),
        "experiment": experiment.strip(),
        "settings": _settings(runs, labels, name, seed),
        "written": written(date),
    }
    return document("run", title_of(name), context)


def written(date: datetime) -> str:
    """When a page was written, in words."""
    return date.strftime("%Y-%m-%d %H:%M %Z").strip()


def _facts(runs: Sequence[Run], seed: int, clock: Clock) -> list[str]:
    when = [clock.span(0, clock.rounds)] if clock.times is not None else []
    return [f"{runs[0].rounds:,} rounds", *when, f"seed {seed}"]


def _file(name: str) -> dict[str, str]:
    what = "paths and their shares" if name.startswith("paths") else "one column an entry"
    return {"name": name, "address": quote(name), "about": what}


def hindsight_warnings(runs: Sequence[Run]) -> list[str]:
    """Why there is no regret, or only half of it, in words; nothing where there is one."""
    sentences = [_without_comparator(run) for run in runs if run.regret_curve() is None]
    return list(dict.fromkeys(sentences))


def _without_comparator(run: Run) -> str:
    comparator = run.comparator
    if comparator is None:
        return (
            "The best fixed point in hindsight cannot be computed for this set and these "
            "functions, so the regret is not known."
        )
    if comparator.infeasibility is not None:
        return (
            f"{comparator.infeasibility.sentence} So there is no best fixed point in hindsight, "
            "and no regret."
        )
    return (
        "No fixed point that keeps every limit was found, and no proof that there is none: the "
        "regret is known from above only."
    )


def results_table(runs: Sequence[Run]) -> Table:
    """The headline: what each run came to."""
    shown = table_metrics(runs)
    rows = (_row(run, style, shown) for run, style in zip(runs, run_styles(runs), strict=True))
    return table("Results", ["learner", *(metric.title for metric in shown)], rows, stacked=True)


def _row(run: Run, style: RunStyle, shown: Sequence[Metric]) -> list[Cell]:
    proved = {True: "certificate holds", False: "certificate fails", None: "certificate undecided"}[
        run.certificate.holds
    ]
    return [
        Cell(style.label, (f"sees {SEES[run.learner.needs]}", proved), style),
        *(Cell(metric.cell(run), tuple(metric.details(run))) for metric in shown),
    ]


def _read(runs: Sequence[Run]) -> str:
    """How to read the headline; of promises only where something is promised."""
    totals = [
        total for run in runs for total in (run.certificate.regret, run.certificate.violation)
    ]
    return (
        _READ
        + (_PROMISED if any(total.promise is not None for total in totals) else "")
        + _CERTIFIED
    )


def learner_notes(
    runs: Sequence[Run], labels: Sequence[str], left_out: Mapping[str, str] = MappingProxyType({})
) -> list[tuple[str, str]]:
    """Whom it concerns, and what to know: learners' own notes, why there is no measured bound, what
    fails, who is left out.
    """
    concerned: dict[str, list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        comparable = run.comparator is None or run.comparator.feasible is not False
        for note in (*run.notes, run.bound.reason if comparable else "", *run.certificate.failures):
            if note:
                concerned.setdefault(note, []).append(label)
    missing = [(who, f"left out. {sentence}") for who, sentence in left_out.items()]
    return [*((", ".join(who), note) for note, who in concerned.items()), *missing]


def _settings(
    runs: Sequence[Run], labels: Sequence[str], name: str, seed: int
) -> list[tuple[str, Any]]:
    stream = runs[0].stream
    return [
        ("experiment", f"{name}, {runs[0].rounds:,} rounds"),
        ("seed", f"{seed}"),
        ("set", repr(runs[0].learner.hard_set)),
        ("losses", repr(stream.losses)),
        ("constraints", repr(stream.constraints)),
        *((label, repr(run.learner)) for run, label in zip(runs, labels, strict=True)),
    ]
