"""The report of an experiment: what was run, what came of it, three pictures, and how to run it again.

One HTML page that needs nothing else: no network, no script. Light and dark, a phone and paper are the style sheet's business.
The same runs give the same page, apart from the date and the seconds.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.report.figures import Line, svg, swatch
from tidewolf.report.words import interval, number

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Run

FORMAT = 1
_HEAD = ("learner", "regret", "violation", "oracle calls a round", "largest excess", "seconds")
_READ = (
    "Regret is the total loss minus that of the best fixed point that keeps every limit in every round; where that point is known "
    "only between two bounds, so is the regret. Violation adds up by how much the limits were broken; surplus never pays for a breach. "
    "What theory promises for this very run stands beneath, where it promises something. "
    "The largest excess is the farthest a played point ever was outside the hard set. A certificate holds when every played point is a "
    "member, every projection and oracle call is accounted for, and both totals are within what theory promises."
)


def write(path: str | os.PathLike[str], runs: Sequence[Run], *, name: str, about: str, seed: int, date: datetime) -> None:
    """The page at `path`, whole or not at all."""
    text = page(runs, name=name, about=about, seed=seed, date=date)
    checkpoint.write(path, text.encode())


def page(runs: Sequence[Run], *, name: str, about: str, seed: int, date: datetime) -> str:
    """The whole page for runs of several learners on one stream."""
    rounds = len(runs[0].losses)
    labels = learner_labels(runs)
    body = [
        f"<h1>{escape(name)}</h1>",
        f"<p>{escape(about)}</p>",
        f'<p class="facts">{rounds:,} rounds &middot; seed {seed}</p>',
        _table(runs, labels),
        f'<p class="read">{_READ}</p>',
        *(f'<p class="warning" role="note">{escape(sentence)}</p>' for sentence in hindsight_warnings(runs)),
        f'<section class="figures">{"".join(_figures(runs, labels))}</section>',
        _notes(runs, labels),
        _footer(runs, labels, name, seed, date),
    ]
    return document(name, body)


def document(name: str, body: Sequence[str]) -> str:
    """A page that needs nothing else around these elements."""
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="generator" content="tidewolf {checkpoint.writer()["tidewolf"]}"><meta name="tidewolf-format" content="{FORMAT}">'
        f"<title>{escape(name)} - tidewolf</title><style>\n{style}</style>"
    )
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body><main>\n' + "\n".join(body) + "\n</main></body>\n</html>\n"


def learner_labels(runs: Sequence[Run]) -> list[str]:
    """The learners' names, numbered where one name comes more than once."""
    names = [type(run.learner).__name__ for run in runs]
    seen: Counter[str] = Counter()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(name if names.count(name) == 1 else f"{name} {seen[name]}")
    return labels


def hindsight_warnings(runs: Sequence[Run]) -> list[str]:
    """Why there is no regret, or only half of it, in words; nothing where there is one."""
    sentences = [_without_comparator(run) for run in runs if run.regret_curve() is None]
    return list(dict.fromkeys(sentences))


def _without_comparator(run: Run) -> str:
    comparator = run.comparator
    if comparator is None:
        return "The best fixed point in hindsight cannot be computed for this set and these functions, so the regret is not known."
    if comparator.infeasibility is not None:
        return f"{comparator.infeasibility.sentence} So there is no best fixed point in hindsight, and no regret."
    return "No fixed point that keeps every limit was found, and no proof that there is none: the regret is known from above only."


def _table(runs: Sequence[Run], labels: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{title}</th>' for title in _HEAD)
    body = "\n".join(_row(i, run, label) for i, (run, label) in enumerate(zip(runs, labels, strict=True)))
    table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Results">{table}</div>'


def _row(i: int, run: Run, label: str) -> str:
    rounds = len(run.losses)
    violation = float(run.violations.sum())
    cells = (
        _regret(run),
        _cell(number(violation), f"{number(violation / rounds)} a round", *_promise(run.bound.violation)),
        _cell(number(run.oracle_calls / rounds), f"{run.oracle_calls:,} in all"),
        _cell(number(run.max_excess)),
        _cell(number(run.seconds)),
    )
    proved = {True: "certificate holds", False: "certificate fails", None: "certificate undecided"}[run.certificate.holds]
    return f'<tr><th scope="row">{swatch(i)}{escape(label)}<small>{proved}</small></th>{"".join(cells)}</tr>'


def _regret(run: Run) -> str:
    if run.regret is None:
        return _cell("none")
    return _cell(interval(run.regret), f"{interval(run.regret, len(run.losses))} a round", *_promise(run.bound.regret))


def _cell(value: str, *under: str) -> str:
    return f"<td>{escape(value)}{''.join(f'<small>{escape(line)}</small>' for line in under)}</td>"


def _promise(bound: float | None) -> list[str]:
    return [] if bound is None else [f"promised: at most {number(bound)}"]


def _figures(runs: Sequence[Run], labels: Sequence[str]) -> Iterable[str]:
    regrets = [Line(curve, run.regret) for run in runs if (curve := run.regret_curve()) is not None]
    if len(regrets) == len(runs):
        ends = [interval(line.bracket) for line in regrets if line.bracket is not None]
        yield _figure("Cumulative regret", "loss beyond the best fixed point in hindsight", regrets, ends, labels)
    for title, about, series in (
        ("Cumulative violation", "by how much the limits were broken", [run.violations for run in runs]),
        ("Cumulative oracle calls", "linear minimisations over the hard set", [run.calls for run in runs]),
    ):
        totals = [np.cumsum(values, dtype=np.float64) for values in series]
        yield _figure(title, about, [Line(total) for total in totals], [number(float(total[-1])) for total in totals], labels)


def _figure(title: str, about: str, lines: list[Line], ends: list[str], labels: Sequence[str]) -> str:
    spoken = f"{title} after each round. At the end: " + ", ".join(f"{label} {end}" for label, end in zip(labels, ends, strict=True))
    legend = "".join(
        f"<li>{swatch(i)}{escape(label)}<b>{escape(end)}</b></li>" for i, (label, end) in enumerate(zip(labels, ends, strict=True))
    )
    return f'<figure><figcaption><h2>{title}</h2><p>{about}</p></figcaption>{svg(lines, spoken)}<ul class="legend">{legend}</ul></figure>'


def _notes(runs: Sequence[Run], labels: Sequence[str]) -> str:
    items = "".join(f"<li><b>{escape(who)}</b>: {escape(note)}</li>" for who, note in learner_notes(runs, labels))
    return f'<h2>Notes</h2><ul class="notes">{items}</ul>' if items else ""


def learner_notes(runs: Sequence[Run], labels: Sequence[str]) -> list[tuple[str, str]]:
    """Whom it concerns, and what a reader should know: the learners' own notes, why theory promises nothing, what is not as it promises."""
    concerned: dict[str, list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        comparable = run.comparator is None or run.comparator.feasible is not False
        for note in (*run.notes, run.bound.reason if comparable else "", *run.certificate.failures):
            if note:
                concerned.setdefault(note, []).append(label)
    return [(", ".join(who), note) for note, who in concerned.items()]


def _footer(runs: Sequence[Run], labels: Sequence[str], name: str, seed: int, date: datetime) -> str:
    versions = checkpoint.writer()
    facts = [
        ("experiment", f"{name}, {len(runs[0].losses):,} rounds, seed {seed}"),
        *((label, repr(run.learner)) for run, label in zip(runs, labels, strict=True)),
        ("versions", ", ".join(f"{part} {version}" for part, version in versions.items())),
        ("written", date.strftime("%Y-%m-%d %H:%M %Z").strip()),
    ]
    return f"<footer><dl>{''.join(f'<dt>{escape(term)}</dt><dd>{escape(fact)}</dd>' for term, fact in facts)}</dl></footer>"
