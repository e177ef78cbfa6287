"""The report of an experiment: what was run, what came of it, pictures, and how to run it again.

One HTML page that needs nothing else, no network either. Sections are functions that make plain
data from runs, the record of the page; templates/ makes the markup. Its script only says at a
pointer what tables and captions say without it. Light and dark, a phone and paper are the style
sheet's business. The same runs give the same page, apart from the date and the seconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from tidewolf.core import checkpoint
from tidewolf.core.errors import BrokenFile, InvalidInput, OtherSettings, TidewolfError
from tidewolf.core.feedback import SEES
from tidewolf.evaluation.hindsight_words import hindsight_sentences
from tidewolf.evaluation.metrics import table_metrics
from tidewolf.report.charts import figures
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.heat import maps_context
from tidewolf.report.network import networks_context
from tidewolf.report.rendering import PAGE_FORMAT, document, require_extras
from tidewolf.report.sections import intervals_context, limits_context, quick_intervals
from tidewolf.report.styles import Cell, Table, run_styles, table, title_of
from tidewolf.report.styles import learner_labels as learner_labels
from tidewolf.report.trust import trust_context

if TYPE_CHECKING:
    from tidewolf.evaluation.intervals import Intervals
    from tidewolf.evaluation.run import Run
    from tidewolf.networks.network import Network

DECISION_FILES = tuple(
    f"{name}*.{ending}"
    for name in ("decisions", "paths", "limits")
    for ending in ("csv", "parquet")
)
"""What a page links to where it lies beside it."""
_WORDS = (
    (
        "regret",
        "The total loss minus that of the best fixed point that keeps every limit in every round; "
        "where that point is known only between two bounds, so is the regret.",
    ),
    (
        "regret, kept rounds",
        "The total loss minus that of the best fixed point which keeps every limit in those rounds "
        "that can be kept at the least breach; no point keeps every limit in every round.",
    ),
    (
        "violation",
        "By how much the limits were broken, added up; a round with room to spare never pays for a "
        "breach.",
    ),
    ("measured bound", "The most that theory allows this very run, given what it measured."),
    (
        "churn",
        "How far the decision moved from one round to the next: half of what its entries changed "
        "by, all together.",
    ),
    ("p99", "99 % of the rounds are at most that."),
    ("largest infeasibility", "The farthest that a played point ever was outside the hard set."),
    (
        "certificate",
        "It holds when every played point is a member of the set, every projection and oracle call "
        "is accounted for, and both totals are within what theory allows.",
    ),
)
hindsight_warnings = hindsight_sentences
_GUARANTEED = ("guaranteed", "What was promised was known before the first round.")


def write(path: str | os.PathLike[str], runs: Sequence[Run], **about: Any) -> None:
    """The page at `path`, and its record beside it (report.json for report.html), from which
    `rewrite` makes the page again; each is written whole or not at all. Without `decisions` the
    page links to those that lie beside it.
    """
    folder = Path(path).parent
    beside = [file.name for form in DECISION_FILES for file in sorted(folder.glob(form))]
    about.setdefault("decisions", beside)
    record = _record(runs, **about)
    checkpoint.write(Path(path).with_suffix(".json"), json.dumps(record, allow_nan=False).encode())
    checkpoint.write(path, document("run", record["title"], record).encode())


def rewrite(path: str | os.PathLike[str], date: datetime) -> None:
    """The page at `path` again, from the record beside it alone: neither data nor learners are
    needed, so it can be done on any machine.
    """
    file = Path(path).with_suffix(".json")
    try:
        record = json.loads(file.read_bytes())
        if record["format"] != PAGE_FORMAT:
            raise OtherSettings(
                f"{file} has format {record['format']}; this tidewolf reads format {PAGE_FORMAT}. "
                f"`tidewolf resume {file.parent}` writes it again."
            )
        text = document("run", record["title"], {**record, "written": written(date)})
    except FileNotFoundError:
        raise InvalidInput(
            f"{file} is missing, from which the page is made. `tidewolf resume {file.parent}` "
            "writes it again."
        ) from None
    except TidewolfError:
        raise
    except Exception as error:  # a changed record breaks the templates in every way
        raise BrokenFile(
            f"{file} was changed and cannot be read ({error}). `tidewolf resume {file.parent}` "
            "writes it again."
        ) from None
    checkpoint.write(path, text.encode())


def page(runs: Sequence[Run], **about: Any) -> str:
    """The whole page for runs of several learners on one stream; `about` as of `_record`."""
    record = _record(runs, **about)
    return document("run", record["title"], record)


def _record(
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
    notes: Sequence[str] = (),
    decisions: Sequence[str] = (),
) -> dict[str, Any]:
    """All that the page of runs shows, as plain data.

    `entries` names the entries of a point; `experiment` is its file as resolved; `worst` holds the
    intervals of each run, which are computed if they are None and each is a linear program of
    moderate size; `left_out` says why learners that usually take part do not; `network` is what the
    set was made from; `notes` are sentences about the problem; `decisions` names the files beside
    the page that hold them.
    """
    require_extras()
    seen, clock = run_styles(runs), clock_of(runs[0].stream, runs[0].rounds)
    labels = [style.label for style in seen]
    context = {
        "format": PAGE_FORMAT,
        "versions": checkpoint.writer(),
        "title": title_of(name),
        "about": about,
        "facts": _facts(runs, seed, clock),
        "files": _files(decisions, network),
        "results": results_table(runs),
        "read": _read(runs),
        "warnings": hindsight_warnings(runs),
        "figures": figures(runs),
        "trust": trust_context(runs),
        "limits": limits_context(runs, network),
        "networks": networks_context(runs, entries, network),
        "maps": maps_context(runs, entries),
        "intervals": intervals_context(
            quick_intervals(runs) if worst is None else worst, seen, clock
        ),
        "notes": [*_problem_notes(notes, network), *learner_notes(runs, labels, left_out)],
        "experiment": experiment.strip(),
        "settings": _settings(runs, labels, name, seed),
        "written": written(date),
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


def written(date: datetime) -> str:
    """When a page was written, in words."""
    return date.strftime("%Y-%m-%d %H:%M %Z").strip()


def _facts(runs: Sequence[Run], seed: int, clock: Clock) -> list[str]:
    when = [clock.span(0, clock.rounds)] if clock.times is not None else []
    return [f"{runs[0].rounds:,} rounds", *when, f"seed {seed}"]


def _problem_notes(notes: Sequence[str], network: Network | None) -> list[tuple[str, str]]:
    """What to know of the problem, without what stands beside the network."""
    said = set() if network is None else set(network.notes)
    return [("", note) for note in notes if note not in said]


def _files(names: Sequence[str], network: Network | None) -> list[dict[str, Any]]:
    """Files by what is in them, each with its address."""
    kinds = {
        "decisions": "one column for each entry of the decision"
        if network is None
        else "the share of its demand that every link or tunnel carries, a column each",
        "paths": "the paths in use, with their shares",
        "limits": "every limit that was broken, when, and by how much",
    }
    found = []
    for kind, about in kinds.items():
        files = [{"name": n, "address": quote(n)} for n in names if n.startswith(kind)]
        found += [{"about": about, "files": files}] if files else []
    return found


def results_table(runs: Sequence[Run]) -> Table:
    """The headline: what each run came to."""
    shown, rows = table_metrics(runs), []
    words = {True: "holds", False: "fails", None: "undecided"}
    for run, style in zip(runs, run_styles(runs), strict=True):
        proved = f"certificate {words[run.certificate.holds]}"
        name = Cell(style.label, (f"sees {SEES[run.learner.needs]}", proved), style)
        numbers = (Cell(metric.cell(run), tuple(metric.details(run))) for metric in shown)
        rows.append([name, *numbers])
    titles = ["learner", *(metric.title for metric in shown)]
    return table("Results", titles, rows, stacked=True, kind="results")


def _read(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """What the words of the headline mean; of promises and regret only where there are some."""
    totals = [
        total for run in runs for total in (run.certificate.regret, run.certificate.violation)
    ]
    shown = {metric.title for metric in table_metrics(runs)}
    if any(most is not None for run in runs for most in (run.bound.regret, run.bound.violation)):
        shown.add("measured bound")
    sometimes = ("regret", "regret, kept rounds", "measured bound")
    words = [each for each in _WORDS if each[0] not in sometimes or each[0] in shown]
    return [*words, _GUARANTEED] if any(total.guarantee is not None for total in totals) else words


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
