"""The report of an experiment: what was run, its results, charts, and how to run it again.

One HTML page that needs nothing else, no network either. Plain data is made from runs, the
record of the page; templates/ makes the markup. Its script only says at a pointer what tables
say without it. Light and dark, a phone and paper are the style sheet's business. The same runs give
the same page, apart from the date and the seconds.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tidewolf.core import batch, checkpoint, feedback
from tidewolf.core.errors import BrokenFile, InvalidInput, OtherSettings, TidewolfError, require
from tidewolf.core.types import Floats, Int64s
from tidewolf.evaluation import metrics
from tidewolf.evaluation.formatting import (
    applying,
    bound_text,
    informative,
    interval,
    number,
    percent,
    plain,
)
from tidewolf.evaluation.intervals import Interval, Intervals, shared_intervals
from tidewolf.evaluation.run import Run
from tidewolf.evaluation.tracking import Breach, entry_names
from tidewolf.networks.network import Network
from tidewolf.problems import Problem
from tidewolf.report import charts
from tidewolf.report import network as networks
from tidewolf.report.charts import HUES, Cell, Chart, Clock, PlotLine, Rows, RunStyle, Table, table
from tidewolf.sets.base import Polyhedral

DECISION_FILES = tuple(
    f"{name}*.{ending}"
    for name in ("decisions", "paths", "limits")
    for ending in ("csv", "parquet")
)
# Of more runs, only the first have weights, networks and decisions over time.
MAX_RUNS = 6


# --- the page of runs -----------------------------------------------------------------------------


def write(path: str | os.PathLike[str], runs: Sequence[Run], **about: Any) -> None:
    """The page at `path`, and its record beside it (report.json for report.html), from which
    `rewrite` makes the page again; each is written whole or not at all. Without `decisions` the
    page links to the decision files beside it.
    """
    forms = (sorted(Path(path).parent.glob(form)) for form in DECISION_FILES)
    record = _record(
        runs, **{"decisions": [file.name for files in forms for file in files], **about}
    )
    checkpoint.write(Path(path).with_suffix(".json"), json.dumps(record, allow_nan=False).encode())
    checkpoint.write(path, charts.document("run", record).encode())


def rewrite(path: str | os.PathLike[str], date: datetime) -> None:
    """The page at `path` again, from the record beside it alone: neither data nor learners are
    needed, so any machine can do it.
    """
    file = Path(path).with_suffix(".json")
    again = f"`tidewolf resume {file.parent}` writes it again."
    try:
        record = json.loads(file.read_bytes())
        if record["format"] != charts.PAGE_FORMAT:
            raise OtherSettings(
                f"Expected format {charts.PAGE_FORMAT} of {file}, not {record['format']}. {again}"
            )
        text = charts.document("run", {**record, "written": charts.written(date)})
    except FileNotFoundError:
        raise InvalidInput(f"{file}, from which the page is made, is missing. {again}") from None
    except TidewolfError:
        raise
    except Exception as error:  # a changed record breaks the templates in every way
        raise BrokenFile(f"{file} was changed and cannot be read ({error}). {again}") from None
    checkpoint.write(path, text.encode())


def page(runs: Sequence[Run], **about: Any) -> str:
    return charts.document("run", _record(runs, **about))


def _record(
    runs: Sequence[Run],
    *,
    name: str,
    about: str,
    seed: int,
    date: datetime,
    problem: Problem | None = None,
    experiment: str = "",
    left_out: Mapping[str, str] = MappingProxyType({}),
    notes: Sequence[str] = (),
    decisions: Sequence[str] = (),
) -> dict[str, Any]:
    """All that the page of runs shows, as plain data.

    `problem` is what was played: how entries are called, the network and where its nodes are;
    `experiment` is its file as resolved; `left_out` says why learners that usually take part do
    not; `decisions` names the files beside the page that hold them.
    """
    charts.require_extras()
    styles, clock = charts.run_styles(runs), charts.clock_of(runs[0].stream, runs[0].rounds)
    labels, shown = [style.label for style in styles], shown_runs(runs, problem)
    network = None if problem is None else problem.network
    drawn, details = {chart.name: chart for chart in totals_charts(runs)}, results_table(runs)
    span = [] if clock.times is None else [clock.span(0, clock.rounds)]
    # losses lie on top of each other and calls are straight lines: the regret says more
    told = drawn.keys() - {"oracle calls", "loss" if "regret" in drawn else ""}
    context = {
        "format": charts.PAGE_FORMAT,
        "versions": checkpoint.writer(),
        "title": charts.title_of(name),
        "about": about,
        "facts": [f"{clock.rounds:,} rounds", *span, f"seed {seed}"],
        "files": _files(decisions, network),
        "verdict": metrics.verdict(runs, labels),
        "results": headline(details),
        "details": details,
        "warnings": metrics.hindsight_sentences(runs),
        "figures": [charts.figure(chart) for name, chart in drawn.items() if name in told],
        "trust": trust_context(runs),
        "limits": limits_context(runs, network),
        "networks": networks.networks_context(shown, clock, problem),
        "maps": maps_context(runs, shown, clock),
        "intervals": intervals_context(quick_intervals(runs), styles, clock),
        "notes": [
            *(("", note) for note in notes if network is None or note not in network.notes),
            *learner_notes(runs, labels, left_out),
        ],
        "experiment": experiment.strip(),
        "settings": [
            ("experiment", f"{name}, {runs[0].rounds:,} rounds"),
            *(("seed", f"{seed}"), ("set", repr(runs[0].learner.K))),
            *((kind, repr(getattr(runs[0].stream, kind))) for kind in ("losses", "constraints")),
            *((label, repr(run.learner)) for run, label in zip(runs, labels, strict=True)),
        ],
        "written": charts.written(date),
    }
    return {key: plain(part) for key, part in context.items()}


def _styled(runs: Sequence[Run]) -> list[tuple[Run, RunStyle]]:
    return list(zip(runs, charts.run_styles(runs), strict=True))


def _files(names: Sequence[str], network: Network | None) -> list[dict[str, Any]]:
    entries = "one column for each entry of the decision"
    if network is not None:
        entries = "the share of its demand that every link or tunnel carries, a column each"
    kinds = {
        "decisions": entries,
        "paths": "the paths in use, with their shares",
        "limits": "every constraint that was violated, when, and by how much",
    }
    every = ((about, [n for n in names if n.startswith(kind)]) for kind, about in kinds.items())
    return [{"about": about, "names": found} for about, found in every if found]


def results_table(runs: Sequence[Run]) -> Table:
    shown, words = applying(metrics.TABLE, runs), {True: "holds", False: "fails", None: "undecided"}
    rows = []
    for run, style in _styled(runs):
        certificate = f"certificate {words[run.certificate.holds]}"
        about = f"sees {feedback.SEES[run.learner.needs]}", certificate
        numbers = (Cell(metric.cell(run), tuple(metric.details(run))) for metric in shown)
        rows.append([Cell(style.label, about, style), *numbers])
    titles = ["learner", *(metric.title for metric in shown)]
    return table("Results", titles, rows, stacked=True, kind="results")


def headline(details: Table) -> Table:
    rows = [
        [Cell(cell.text.partition(" \u00b1")[0], style=cell.style) for cell in row]
        for row in details.groups[0].rows
    ]
    return details._replace(groups=[Rows(rows)])


def learner_notes(
    runs: Sequence[Run], labels: Sequence[str], left_out: Mapping[str, str] = MappingProxyType({})
) -> list[tuple[str, str]]:
    """Notes, each with the labels of its runs: learners' own notes, why there is no measured bound,
    which checks failed, which learners were left out.
    """
    concerned: dict[str, list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        comparable = run.comparator is None or run.comparator.feasible is not False
        reason = run.bound.reason if comparable else ""
        for note in filter(None, (*run.notes, reason, *run.certificate.failures)):
            concerned.setdefault(note, []).append(label)
    missing = [(who, f"left out. {sentence}") for who, sentence in left_out.items()]
    return [*((", ".join(who), note) for note, who in concerned.items()), *missing]


# --- pictures and notebooks -----------------------------------------------------------------------


def write_figures(
    folder: str | os.PathLike[str], runs: Sequence[Run], problem: Problem | None = None
) -> list[Path]:
    folder, clock = Path(folder), charts.clock_of(runs[0].stream, runs[0].rounds)
    shown, written = shown_runs(runs, problem), list[Path]()
    folder.mkdir(parents=True, exist_ok=True)
    for chart in (
        *totals_charts(runs),
        *filter(None, (trust_chart(run, style.label) for run, style in _styled(runs))),
        *heat_charts(shown, clock),
        *(
            networks.network_chart(drawn, each.style)
            for each, drawn in networks.networks_of(shown, clock, problem)
        ),
    ):
        name = "-".join("".join(c if c.isalnum() else " " for c in chart.name).split())
        for ending in ("png", "svg"):
            written.append(folder / f"{name}.{ending}")
            checkpoint.write(written[-1], charts.saved(charts.picture([chart]), ending))
    return written


def plot(run: Run) -> Any:
    """Loss, regret (if it is known), violation and calls of a run as they add up, and the weights
    of its experts if it mixes any.
    """
    require(run.rounds != 0, InvalidInput, "A run of no rounds has nothing to plot.")
    return charts.picture(_run_charts(run))


def _run_charts(run: Run) -> list[Chart]:
    return [*totals_charts([run]), *filter(None, [trust_chart(run)])]


def html(run: Run) -> str:
    """What a notebook shows of a run: the table, charts if matplotlib is installed, and notes; what
    it prints if jinja2 is not installed.
    """
    if not charts.installed("jinja2"):
        return f"<pre>{escape(str(run))}</pre>"
    notes = learner_notes([run], charts.learner_labels([run]))
    return charts.render(
        "notebook_run",
        style=charts.notebook_style(),
        results=results_table([run]),
        figures=[
            charts.figure(chart, tables=False)
            for chart in (_run_charts(run) if charts.installed("matplotlib") else ())
        ],
        experts=experts_table(run.experts) if run.experts else None,
        limits=limits_context([run]),
        said=[*metrics.hindsight_sentences([run]), *(note for _, note in notes)],
    )


# --- what adds up over the rounds -----------------------------------------------------------------


_TOTALS = {
    "loss": "what the decisions cost",
    "regret": "loss beyond the best fixed point",
    "violation": "by how much constraints were violated",
    "oracle calls": "linear minimisations over the set",
}


def _totals(run: Run, style: RunStyle) -> dict[str, PlotLine]:
    found, regrets = run.certificate, run.regret_curve()
    regret, violation = (
        total.bound if informative(total.size, total.bound) else None
        for total in (found.regret, found.violation)
    )
    lines = {"loss": PlotLine(np.cumsum(run.losses), style=style)}
    if regrets is not None:
        lines["regret"] = PlotLine(regrets, run.regret, regret, style)
    sums = {f"{name} above the plan": one.spend for name, one in run.budgets.items()}
    return {
        **lines,
        "violation": PlotLine(np.cumsum(run.violations), None, violation, style),
        "oracle calls": PlotLine(np.cumsum(run.calls, dtype=np.float64), style=style),
        **{name: PlotLine(np.cumsum(spend), style=style) for name, spend in sums.items()},
    }


def totals_charts(runs: Sequence[Run]) -> list[Chart]:
    if not runs[0].rounds:
        return []
    clock = charts.clock_of(runs[0].stream, runs[0].rounds)
    every = [_totals(*each) for each in _styled(runs)]
    known = (name for name in every[0] if all(name in lines for lines in every))
    return [_totals_chart(name, [lines[name] for lines in every], clock) for name in known]


def _totals_chart(name: str, lines: Sequence[PlotLine], clock: Clock) -> Chart:
    zero = name != "regret" and all(float(line.values.min()) >= 0.0 for line in lines)
    last = (interval(line.bracket) if line.bracket else number(line.values[-1]) for line in lines)
    ends = (end.partition(" \u00b1")[0] for end in last)
    rounds, title = len(lines[0].values), f"Cumulative {name}"
    at = np.unique(np.linspace(0, rounds, min(rounds, 10) + 1).round().astype(int))[1:]
    rows = [
        (clock.moment(t - 1), *(number(float(line.values[t - 1])) for line in lines))
        for t in at.tolist()
    ]
    titles = ("round" if clock.times is None else "time", *(line.style.label for line in lines))
    near = any(line.bound is not None and charts.in_reach(lines, line.bound) for line in lines)
    return Chart(
        name,
        title,
        _TOTALS.get(name, "net spend of a budget") + "; dotted: the measured bound" * near,
        partial(charts.draw_lines, lines=lines, clock=clock, from_zero=zero),
        [line.style._replace(value=end) for line, end in zip(lines, ends, strict=True)],
        table(title, titles, rows),
    )


# --- weights of experts ---------------------------------------------------------------------------

PARTS = 160
_REST = 5


def trust_of(run: Run) -> tuple[list[RunStyle], Floats, Int64s, Floats] | None:
    """The weights of a run as areas, from the bottom to the top: their styles, their means over all
    rounds, the edges of parts in rounds done, and the means over parts, (areas, parts). None if the
    learner mixes no experts. A round without feedback counts with the next one that has some. With
    more experts than hues, those of the smallest mean weight are one area.
    """
    experts, weights = run.experts, run.measures
    if not experts or not len(run.ends) or weights.shape[1] != len(experts):
        return None
    at = np.concatenate([[0], run.ends])
    means = np.average(weights, axis=0, weights=np.diff(at))
    named = np.sort(np.argsort(-means, kind="stable")[: HUES if len(means) <= HUES else HUES - 1])
    hues = [hue for hue in range(HUES) if hue != _REST] + [_REST]
    styles = [RunStyle(experts[i].name, hues[k]) for k, i in enumerate(named)]
    areas = weights[:, named]
    if rest := len(means) - len(named):
        styles.append(RunStyle(f"{rest} others", _REST))
        areas = np.column_stack([areas, np.delete(weights, named, axis=1).sum(axis=1)])
    parts = min(PARTS, int(at[-1]))
    edges = np.arange(parts + 1) * int(at[-1]) // parts
    sums = np.vstack([np.zeros(len(styles)), np.cumsum(areas * np.diff(at)[:, None], axis=0)])
    reached = np.array([np.interp(edges, at, column) for column in sums.T])
    return styles, sums[-1] / at[-1], edges, np.diff(reached, axis=1) / np.diff(edges)


def trust_chart(run: Run, label: str = "") -> Chart | None:
    if (trust := trust_of(run)) is None:
        return None
    (styles, means, edges, shares), clock = trust, charts.clock_of(run.stream, run.rounds)
    texts, hues = map(metrics.weight_text, means.tolist()), [style.hue for style in styles]
    legend = [style._replace(value=text) for style, text in zip(styles, texts, strict=True)]
    return Chart(
        f"trust of {label}",
        f"Expert weights of {label}" if label else "Expert weights",
        "weights in %, round by round; beneath, on average",
        partial(charts.draw_areas, edges=edges, shares=100.0 * shares, hues=hues, clock=clock),
        legend[::-1],  # the top area first, as it is drawn
    )


def experts_table(experts: metrics.Experts) -> Table:
    columns = experts.columns()
    rows = [(each.name, *(column.cell(each) for column in columns)) for each in experts.by_trust]
    return table("Experts", ("expert", *(column.title for column in columns)), rows)


def trust_context(runs: Sequence[Run]) -> list[dict[str, Any]]:
    drawn = ((trust_chart(run, style.label), run) for run, style in _styled(runs))
    shown = [(chart, run) for chart, run in drawn if chart is not None][:MAX_RUNS]
    return [
        {"figure": charts.figure(chart), "table": experts_table(run.experts)}
        for chart, run in shown
    ]


# --- the decision over time -----------------------------------------------------------------------

ROWS = 40


def shown_runs(runs: Sequence[Run], problem: Problem | None = None) -> list[charts.ShownRun]:
    """The first of the runs whose points were kept, all with the same entries: of many, those that
    are largest on average under any of them, in their own order.
    """
    kept = [
        (style, run, run.trajectory)
        for run, style in _styled(runs)[:MAX_RUNS]
        if run.trajectory is not None and run.rounds and run.trajectory.means.size
    ]
    if not kept:
        return []
    means = [each.means.reshape(len(each.means), -1).T for _, _, each in kept]
    sizes = np.max([np.abs(each).mean(axis=1) for each in means], axis=0)
    largest = np.sort(np.argsort(-sizes, kind="stable")[:ROWS])
    called = entry_names(kept[0][1].learner.K, () if problem is None else problem.labels)
    names = np.array(called)[largest].tolist()
    return [
        charts.ShownRun(style, run, names, mean[largest], each.edges)
        for (style, run, each), mean in zip(kept, means, strict=True)
    ]


def heat_charts(shown: Sequence[charts.ShownRun], clock: Clock) -> list[Chart]:
    """The decision of each run over time; the full colour is the largest entry of all, or 1 if
    entries are shares.
    """
    most = max((float(np.abs(each.values).max()) for each in shown), default=0.0) or 1.0
    scale, found = 1.0 if 0.5 < most <= 1.0 + 1e-9 else most, []
    for heat in shown:
        style, entries, values = heat.style, heat.entries, heat.values
        widths = [charts.text_width(charts.shortened(name)) for name in entries]
        aside = max(widths) * 11.0 / 12.0 + 10.0
        rows = [
            (entry, *(number(float(x)) for x in (row.mean(), row.min(), row.max(), row[-1])))
            for entry, row in zip(entries, values, strict=True)
        ]
        chart = Chart(
            f"points of {style.label}",
            f"The decision of {style.label}",
            "what is negative is grey" if (values < 0.0).any() else "",
            partial(charts.draw_heat, shown=heat, scale=scale, clock=clock),
            [
                RunStyle(number(share * scale), style.hue, strength=max(share, 0.05))
                for share in (0.0, 0.5, 1.0)
            ],
            table(style.label, ("entry", "mean", "least", "largest", "last"), rows),
            (420.0 + aside, 60.0 + 16.0 * len(rows)),
            (aside, 49.0, 12.0, 8.0),
        )
        found.append(chart)
    return found


def maps_context(runs: Sequence[Run], shown: Sequence[charts.ShownRun], clock: Clock) -> Any:
    if not shown:
        return None
    every, entries = math.prod(runs[0].learner.K.shape), len(shown[0].entries)
    kept = f"the {entries} largest of {every:,} entries, the same for every learner"
    left = f" The first {MAX_RUNS} of {len(runs)} runs are shown." * (len(runs) > MAX_RUNS)
    which = kept if every > entries else "every entry"
    return {
        "about": f"A row for each entry ({which}), time from left to right.{left}",
        "figures": [charts.figure(chart) for chart in heat_charts(shown, clock)],
    }


# --- limits that were broken ----------------------------------------------------------------------

# Of more constraints that were violated, those violated most are shown.
LIMITS = 10
_MOST_ALONE = "The headline counts the largest violation of each round, so it may be less."
_VOLUMES = "Violations are in shares of all that is sent, volumes in the unit of the capacities."


def limits_context(runs: Sequence[Run], network: Network | None = None) -> dict[str, Any] | None:
    """A table of what was violated, run by run, and sentences about runs that violated nothing;
    None if there are no constraints.
    """
    if not runs[0].rounds or isinstance(runs[0].stream.constraints, batch.Unlimited):
        return None
    clock = charts.clock_of(runs[0].stream, runs[0].rounds)
    found = [(style, metrics.broken_limits(run), run) for run, style in _styled(runs)]
    bounded = any(bound is not None for _, broken, _ in found for *_, bound in broken)

    def size(x: float) -> Cell:
        return Cell(number(x), () if network is None else (f"volume {number(x * network.unit)}",))

    def row(name: str, total: float, breach: Breach, bound: float | None) -> list[Cell]:
        rounds, worst, when, first, last = breach
        some = Cell(f"{rounds:,}", (percent(rounds / clock.rounds),))
        times = clock.when(when), clock.span(first, last + 1)
        allowed = [bound_text(total, bound)] * bounded
        return charts.cells((name, size(total), some, size(worst), *times, *allowed))

    groups = []
    for style, broken, run in found:
        count = 1 if run.each_violation is None else len(run.each_violation)
        more = f", the worst {LIMITS} are shown" * (len(broken) > LIMITS)
        lines = (f"{len(broken)} of {count:,} constraints violated{more}",) * (count > 1)
        if broken:
            rows = [row(*one) for one in broken[:LIMITS]]
            groups.append(Rows(rows, Cell(style.label, lines, style)))
    kept = ", ".join(style.label for style, broken, _ in found if not broken)
    said = {
        _VOLUMES: network is not None,
        f"{kept}: no constraint was violated.": kept,
        _MOST_ALONE: any(len(broken) > 1 for _, broken, _ in found),
    }
    titles = ("constraint", "in all", "rounds", "at worst", "when it was worst", "first, last")
    shown = Table("Violations", (*titles, *["theory allows"] * bounded), groups, kind="limits")
    return {
        "sentences": [sentence for sentence, applies in said.items() if applies],
        "table": shown if groups else None,
    }


# --- worst intervals ------------------------------------------------------------------------------

# The shortest intervals are about such a part of the run.
_SHARES = 8
# Up to so many numbers, rounds times entries, intervals are computed for a page without them.
_QUICK = 2_000_000


def quick_intervals(runs: Sequence[Run]) -> list[Intervals]:
    """The intervals of each run if each is a linear program of moderate size, else none."""
    for run in runs:
        K, stream = run.learner.K, run.stream
        if not (
            isinstance(stream.losses, batch.LinearTotal)
            and isinstance(stream.constraints, batch.PiecewiseLinear)
            and isinstance(K, Polyhedral)
            and 0 < run.rounds * math.prod(K.shape) <= _QUICK
        ):
            return []
    return shared_intervals(runs, max(1, runs[0].rounds // _SHARES))


def intervals_context(
    found: Sequence[Intervals], styles: Sequence[RunStyle], clock: Clock
) -> Table | None:
    if not found:
        return None
    regrets = any(each.regret is not None for one in found for each in one.every)

    def worst(said: str, each: Interval | None, name: str, hue: int) -> tuple[Cell, Cell]:
        if each is None:
            return Cell(said), Cell("")
        bound: float | None = getattr(each.bound, name)
        more = () if bound is None else (f"measured bound: at most {number(bound)}",)
        bar = (each.start / clock.rounds, each.stop / clock.rounds, hue)
        return Cell(said, more), Cell(clock.span(each.start, each.stop), bar=bar)

    groups = []
    for run, style in zip(found, styles, strict=True):
        rows = []
        for these, regret, violation in run.worst_by_length():
            most = regret and regret.regret
            said = interval(most) if most else "no feasible point"
            both = worst(said, regret, "regret", style.hue) * regrets
            broken = worst(number(violation.violation), violation, "violation", style.hue)
            rows.append([Cell(f"{these[0].length:,}"), *both, *broken])
        groups.append(Rows(rows, Cell(style.label, style=style)))
    titles = ("rounds", *("worst regret", "where") * regrets, "worst violation", "where")
    return Table("Worst intervals", titles, groups, kind="worst")
