"""The report of an experiment: what was run, what came of it, pictures, and how to run it again.

One HTML page that needs nothing else, no network either. Its script only says at a pointer what
tables and captions say without it. Light and dark, a phone and paper are the style sheet's
business. The same runs give the same page, apart from the date and the seconds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidewolf.core import checkpoint
from tidewolf.core.feedback import SEES
from tidewolf.evaluation.metrics import Metric, table_metrics
from tidewolf.report.charts import figures
from tidewolf.report.figures import legend_line
from tidewolf.report.intervals import intervals_section, quick_intervals
from tidewolf.report.limits import limits_section
from tidewolf.report.markup import scrolled, table, with_lines
from tidewolf.report.styles import RunStyle, run_styles
from tidewolf.report.styles import learner_labels as learner_labels
from tidewolf.report.trajectory import trajectory_section
from tidewolf.report.trust import trust_section

if TYPE_CHECKING:
    from tidewolf.evaluation.intervals import Intervals
    from tidewolf.evaluation.run import Run

PAGE_FORMAT = 1
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
) -> None:
    """The page at `path`, whole or not at all."""
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
) -> str:
    """The whole page for runs of several learners on one stream.

    `entries` names the entries of a point, one each; `experiment` is the experiment as resolved, as
    text; `worst` holds the intervals of each run. Without them, they are worked out where that is a
    matter of linear programs of moderate size. `left_out` says why learners that usually take part
    do not.
    """
    seen = run_styles(runs)
    labels = [style.label for style in seen]
    body = [
        f"<h1>{escape(name)}</h1>",
        f"<p>{escape(about)}</p>",
        f'<p class="facts">{runs[0].rounds:,} rounds &middot; seed {seed}</p>',
        results_table(runs),
        f'<p class="read">{_read(runs)}</p>',
        *(
            f'<p class="warning" role="note">{escape(sentence)}</p>'
            for sentence in hindsight_warnings(runs)
        ),
        f'<section class="figures">{figures(runs)}</section>',
        trust_section(runs),
        limits_section(runs),
        trajectory_section(runs, entries),
        intervals_section(quick_intervals(runs) if worst is None else worst, seen),
        _notes(runs, labels, left_out),
        _experiment(runs, labels, name, seed, experiment),
        footer(date),
    ]
    return document(name, [part for part in body if part])


def document(name: str, body: Sequence[str]) -> str:
    """A page that needs nothing else around these elements."""
    style, script = asset("colors.css") + asset("style.css"), asset("hover.js")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, '
        'initial-scale=1"><meta name="generator" content="tidewolf '
        f'{checkpoint.writer()["tidewolf"]}"><meta name="tidewolf-format" '
        f'content="{PAGE_FORMAT}"><title>{escape(name)} - tidewolf</title><style>\n{style}</style>'
    )
    inside = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body><main>\n{inside}\n</main>'
        f"<script>\n{script}</script></body>\n</html>\n"
    )


def asset(name: str) -> str:
    """A style sheet or script that lies beside this file."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


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


def results_table(runs: Sequence[Run]) -> str:
    """The headline: what each run came to."""
    shown = table_metrics(runs)
    titles = ["learner", *(metric.title for metric in shown)]
    rows = (_row(run, style, shown) for run, style in zip(runs, run_styles(runs), strict=True))
    return scrolled(table(titles, rows, stacked=True), "Results")


def _row(run: Run, style: RunStyle, shown: Sequence[Metric]) -> tuple[str, ...]:
    proved = {True: "certificate holds", False: "certificate fails", None: "certificate undecided"}[
        run.certificate.holds
    ]
    return (
        legend_line(style) + with_lines(style.label, f"sees {SEES[run.learner.needs]}", proved),
        *(with_lines(metric.cell(run), *metric.details(run)) for metric in shown),
    )


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


def _notes(runs: Sequence[Run], labels: Sequence[str], left_out: Mapping[str, str]) -> str:
    items = "".join(
        f"<li><b>{escape(who)}</b>: {escape(note)}</li>"
        for who, note in learner_notes(runs, labels, left_out)
    )
    return f'<h2 class="part">Notes</h2><ul class="notes">{items}</ul>' if items else ""


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


def _experiment(
    runs: Sequence[Run], labels: Sequence[str], name: str, seed: int, experiment: str
) -> str:
    stream = runs[0].stream
    facts = [
        ("experiment", f"{name}, {runs[0].rounds:,} rounds"),
        ("seed", f"{seed}"),
        ("set", repr(runs[0].learner.hard_set)),
        ("losses", repr(stream.losses)),
        ("constraints", repr(stream.constraints)),
        *((label, repr(run.learner)) for run, label in zip(runs, labels, strict=True)),
    ]
    resolved = f"<pre>{escape(experiment.strip())}</pre>" if experiment.strip() else ""
    return f'<h2 class="part">The experiment</h2>{resolved}{_facts(facts)}'


def footer(date: datetime) -> str:
    """Versions, and when the page was written."""
    versions = ", ".join(f"{part} {version}" for part, version in checkpoint.writer().items())
    written = date.strftime("%Y-%m-%d %H:%M %Z").strip()
    return f"<footer>{_facts([('versions', versions), ('written', written)])}</footer>"


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    items = (f"<dt>{escape(term)}</dt><dd>{escape(fact)}</dd>" for term, fact in facts)
    return f"<dl>{''.join(items)}</dl>"
