"""What a terminal shows: a progress line while learners run, then tables.

Results go to stdout, progress to stderr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tidewolf.core.feedback import SEES, who_sees_what
from tidewolf.evaluation.comparison import (
    RANKING_COLUMNS,
    RANKING_ROUND_COLUMNS,
    applying,
    ranking_cells,
    ranking_name,
)
from tidewolf.evaluation.formatting import format_setting, number, percent
from tidewolf.evaluation.metrics import SPREAD_COLUMNS, table_metrics
from tidewolf.report.page import hindsight_warnings, learner_labels, learner_notes

if TYPE_CHECKING:
    from tidewolf.cli.check import Outcome
    from tidewolf.core.settings import Setting
    from tidewolf.core.types import Floats
    from tidewolf.evaluation.comparison import Comparison
    from tidewolf.evaluation.recording import RunProgress
    from tidewolf.evaluation.run import Run
    from tidewolf.experiments.compare import Step
    from tidewolf.experiments.folder import Follow
    from tidewolf.experiments.preview import Preview
    from tidewolf.experiments.runner import Stage
    from tidewolf.experiments.sweep import Sweep


_ANY_WIDTH = 10_000


def _bar(shown: bool) -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        TextColumn("{task.fields[detail]}"),
        TimeRemainingColumn(compact=True),
    )
    return Progress(
        *columns, console=console, transient=True, disable=not (shown and console.is_terminal)
    )


@contextmanager
def progress(shown: bool) -> Iterator[Follow]:
    """A function that begins a line and answers what keeps it moving; nothing is shown where stderr
    is not a terminal.
    """
    with _bar(shown) as bar:
        before = bar.add_task("the best point in hindsight", total=None, detail="")

        def follow(
            name: str, begun: RunProgress, hindsight: Floats | None
        ) -> Callable[[RunProgress], None]:
            bar.update(before, visible=False)
            task = bar.add_task(name, total=begun.rounds, completed=begun.rounds_done, detail="")
            clock = bar.get_time()

            def moved(moment: RunProgress) -> None:
                speed = (moment.rounds_done - begun.rounds_done) / max(bar.get_time() - clock, 1e-9)
                regret = (
                    None
                    if hindsight is None
                    else moment.loss_total - float(hindsight[moment.rounds_done - 1])
                )
                bar.update(
                    task, completed=moment.rounds_done, detail=_detail(moment, speed, regret)
                )

            return moved

        yield follow


@contextmanager
def tournament(
    shown: bool,
) -> Iterator[tuple[Callable[[Step, RunProgress], None], Callable[[Stage], None]]]:
    """What keeps one line moving over all runs: told how far one is, and how many have ended;
    nothing is shown where stderr is not a terminal.
    """
    with _bar(shown) as bar:
        task = bar.add_task("the best points in hindsight", total=None, detail="")
        began: dict[int, float] = {}
        done = 0

        def follow(step: Step, moment: RunProgress) -> None:
            now = bar.get_time()
            speed = moment.rounds_done / max(now - began.setdefault(step.number, now), 1e-9)
            knobs = {"caution": step.caution, "headroom": step.headroom}
            knob = "".join(f", {name} {at:g}" for name, at in knobs.items() if at is not None)
            what = f"{step.stream}, {step.learner}{knob} ({step.number} of {step.runs})"
            bar.update(
                task,
                description=what,
                total=step.runs,
                completed=done + moment.rounds_done / moment.rounds,
                detail=_detail(moment, speed),
            )

        def ended(stage: Stage) -> None:
            nonlocal done
            done = stage.done
            bar.update(
                task,
                total=stage.cells,
                completed=done,
                detail=f"{done:,} of {stage.cells:,} runs",
            )

        yield follow, ended


@contextmanager
def checking(shown: bool, example: str) -> Iterator[Callable[[str], None]]:
    """What is told the laws that an example keeps; nothing is shown where stderr is not a
    terminal.
    """
    with _bar(shown) as bar:
        task = bar.add_task(example, total=None, detail="")
        yield lambda check_name: bar.update(task, detail=check_name)


def show_outcome(outcome: Outcome, *, named: bool) -> None:
    """What became of an example, in a line; and every law it keeps, where they are to be named."""
    console, kept = Console(highlight=False), len(outcome.passed)
    ending, style = (
        (f"passes all {kept} checks", "green")
        if outcome.broken is None
        else (f"fails after {kept} checks", "red")
    )
    console.print(
        Text.assemble((outcome.example, "bold"), " ", (f"{ending}.", style)), soft_wrap=True
    )
    for check_name in outcome.passed if named else ():
        console.print(Text(f"  {check_name}"))


@contextmanager
def sweep_progress(shown: bool) -> Iterator[Callable[[Stage], None]]:
    """What keeps one line moving over all cells; nothing is shown where stderr is not a
    terminal.
    """
    with _bar(shown) as bar:
        task = bar.add_task("sweep", total=None, detail="")

        def follow(stage: Stage) -> None:
            failed = f", {stage.failed} failed" if stage.failed else ""
            bar.update(
                task,
                total=stage.cells,
                completed=stage.done,
                detail=f"{stage.done:,} of {stage.cells:,} cells{failed}",
            )

        yield follow


def _detail(moment: RunProgress, speed: float, regret: float | None = None) -> str:
    calls = f"{moment.calls / max(1, moment.rounds_done):.2f} calls a round"
    if moment.solves:
        calls += f", {moment.solves / max(1, moment.rounds_done):.2f} LPs"
    against = "" if regret is None else f"regret {number(regret)}, "
    return f"{speed:,.0f} rounds/s, {calls}, {against}violation {number(moment.violation_total)}"


def show_results(
    runs: Sequence[Run],
    title: str,
    page: Path,
    left_out: Mapping[str, str],
    *,
    decisions: Path | None = None,
    notes: Sequence[str] = (),
) -> None:
    """The headline table, what a reader should know, and where decisions and the page are."""
    console = Console(highlight=False)
    labels = learner_labels(runs)
    console.print(Text(title, style="bold"))
    console.print(_results(console, runs, labels))
    console.print()
    console.print(_by_rounds(console, runs, labels))
    console.print()
    for sentence in hindsight_warnings(runs):
        console.print(Text(sentence, style="yellow"))
    if said := who_sees_what((type(run.learner).__name__, SEES[run.learner.needs]) for run in runs):
        console.print(Text(said))
    for who, note in learner_notes(runs, labels, left_out):
        console.print(Text.assemble((f"{who}: ", "bold"), note))
    for sentence in notes:
        console.print(Text(sentence))
    if decisions is not None:
        console.print(Text(f"decisions: {decisions}"), soft_wrap=True)
    console.print(Text(f"report: {page}"), soft_wrap=True)


class _Column(NamedTuple):
    """A column of numbers, to the right; titles have two lines where they need them."""

    title: str
    cells: Sequence[str]
    rank: int = 0
    """where the table is wider than the screen, columns of the highest rank go first"""


def _table(
    console: Console, names: Sequence[str], columns: Sequence[_Column], first: str = "learner"
) -> Table:
    """As many columns as the screen has room for; those of rank 0 always."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    table.add_column(first, no_wrap=True, vertical="bottom")
    for column in columns:
        table.add_column(column.title, justify="right", vertical="bottom", no_wrap=True)
    for i, name in enumerate(names):
        table.add_row(Text(name, style="bold"), *(Text(column.cells[i]) for column in columns))
    highest = max((column.rank for column in columns), default=0)
    wide = console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum
    if highest == 0 or wide <= console.width:
        return table
    return _table(console, names, [each for each in columns if each.rank < highest], first)


def _results(console: Console, runs: Sequence[Run], labels: Sequence[str]) -> Table:
    return _table(
        console,
        labels,
        [
            _Column(
                metric.narrow_title or metric.title,
                [metric.narrow_cell(run) for run in runs],
                metric.rank,
            )
            for metric in table_metrics(runs)
        ],
    )


def _by_rounds(console: Console, runs: Sequence[Run], labels: Sequence[str]) -> Table:
    """Mean, p99 and worst of what each round has."""
    return _table(
        console,
        labels,
        [
            _Column(column.title, [column.cell(run) for run in runs], column.rank)
            for column in SPREAD_COLUMNS
        ],
        "a round",
    )


def show_preview(found: Preview) -> None:
    """What a run would be; nothing was written."""
    console = Console(highlight=False)
    console.print(Text.assemble((found.experiment, "bold"), f": {found.title}"))
    grid = Table.grid(padding=(0, 2))
    when = "" if found.first is None else f", from {found.first} to {found.last}".replace("T", " ")
    seeds = ", ".join(map(str, found.seeds))
    several = "s" * (len(found.seeds) > 1)
    counted = found.limits_a_round > 1 and "used links" not in found.limits
    limits = f" ({found.limits_a_round:,} a round)" if counted else ""
    dimension = "" if "dimension" in found.set else f", dimension {found.dimension:,}"
    facts = [
        ("set", f"{found.set}; {found.entries:,} entries{dimension}"),
        ("rounds", f"{found.rounds:,}{when}; seed{several} {seeds}"),
        ("losses", found.losses),
        ("limits", f"{found.limits}{limits}"),
        *(("note", note) for note in found.notes),
        *(
            ("learner", f"{each.name}{_settings_of(each.settings)}: about {_clock(each.seconds)}")
            for each in found.learners
        ),
        *([("incumbent", found.incumbent)] if found.incumbent else []),
        *(("left out", f"{name}: {sentence}") for name, sentence in found.left_out.items()),
        ("folder", found.folder),
        ("files", ", ".join(found.files)),
        (
            "time",
            f"about {_clock(found.seconds)}, by a few rounds of each learner; the best point in "
            "hindsight and the page are not counted",
        ),
    ]
    for name, fact in facts:
        grid.add_row(Text(name, style="cyan", no_wrap=True), Text(fact))
    console.print(grid)
    console.print(Text("Nothing was written: this was a dry run."))


def _settings_of(settings: Mapping[str, Any]) -> str:
    said = [
        f"{key} {' '.join(map(str, at)) if isinstance(at, tuple) else format_setting(at)}"
        for key, at in settings.items()
        if at not in ((), "")
    ]
    return f" ({', '.join(said)})" if said else ""


def _clock(seconds: float) -> str:
    if seconds < 1.0:
        return "a second or less"
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def show_comparison(comparison: Comparison, page: Path) -> None:
    """How everyone stands on each stream, what each step of caution costs and buys, what a reader
    should know, and where the page is.
    """
    console, every = Console(highlight=False), comparison.rankings()
    chosen = any(comparison.chooser(stream) for stream in comparison.streams)
    left_out = ("loss", "regret", "violation") if chosen else ("shortfall %",)
    for stream in comparison.streams:
        rankings = [each for each in every if each.stream == stream]
        names = [ranking_name(each) for each in rankings]
        console.print(Text.assemble((stream, "bold"), f": {comparison.about(stream)}"))
        _show_choice(console, comparison, stream)
        for first, columns in (("learner", RANKING_COLUMNS), ("a round", RANKING_ROUND_COLUMNS)):
            shown = [
                _Column(column.narrow_title, ranking_cells(column, rankings), column.rank)
                for column in applying(columns, rankings)
                if column.title not in left_out
            ]
            console.print(_table(console, names, shown, first))
            console.print()
    for sentence in comparison.warnings():
        console.print(Text(sentence, style="yellow"))
    if said := who_sees_what((entry.learner, entry.sees) for entry in comparison.entries):
        console.print(Text(said))
    console.print(
        Text(
            f"Held against {comparison.baseline}, in % of {comparison.share_of()}; up to 0.5 is on "
            "its frontier."
        )
    )
    console.print(Text(f"report: {page}"), soft_wrap=True)


def _show_choice(console: Console, comparison: Comparison, stream: str) -> None:
    """The points of the learner whose caution is to be chosen, those of re-solving beside them, and
    what each step costs and buys.
    """
    learner = comparison.chooser(stream)
    if learner is None:
        return
    shown = [
        (who, point)
        for who in comparison.learners
        for point in comparison.frontier(stream, who)
        if who == learner or point.knob == "headroom"
    ]
    names = [f"{who}, {point.at}{' (default)' * point.default}" for who, point in shown]
    points = [point for _, point in shown]
    columns = [
        _Column("loss", [number(point.loss) for point in points]),
        _Column("churn", [number(point.churn) for point in points], 2),
        *(
            [_Column("regret", [number(point.regret) for point in points])]
            if any(point.regret is not None for point in points)
            else []
        ),
        _Column("violation", [number(point.violation) for point in points]),
        _Column("broken", [_percent_or_unknown(point.broken) for point in points], 1),
        _Column("micro-\nsecs", [number(1e6 * point.seconds) for point in points], 3),
    ]
    console.print(_table(console, names, columns, "a round"))
    console.print()
    steps, beside = comparison.steps(stream), comparison.against_resolving(stream)
    choice, knobs = comparison.choice(stream), comparison.knob_words(stream)
    if steps:
        console.print(Text(f"{learner}, as its caution rises", style="bold"))
    for sentence in steps:
        console.print(Text(sentence))
    if choice:
        console.print(Text(" ".join(choice), style="bold"))
    for sentence in (*beside, *knobs):
        console.print(Text(sentence))
    if steps or beside:
        console.print()


def _percent_or_unknown(share: float | None) -> str:
    return "unknown" if share is None else percent(share)


def show_sweep(found: Sweep, table: Path, page: Path) -> None:
    """Every setting's means over seeds; what failed, and where the table and the page are."""
    from tidewolf.experiments.sweep import line_columns

    console = Console(highlight=False)
    for group in found.groups():
        lines = group.lines
        columns = [
            *(
                _Column(
                    name.replace("_", "\n", 1),
                    [format_setting(line.settings.get(name, "")) for line in lines],
                )
                for name in group.knobs
            ),
            *(
                _Column(column.narrow_title, [column.cell(line) for line in lines], column.rank)
                for column in line_columns(lines)
            ),
        ]
        console.print(Text.assemble((group.experiment, "bold"), f": {group.about}"))
        console.print(_table(console, [line.learner for line in lines], columns))
        console.print()
    for sentence in found.warnings():
        console.print(Text(sentence, style="yellow"))
    console.print(Text(f"results: {table}"), soft_wrap=True)
    console.print(Text(f"report: {page}"), soft_wrap=True)


def show_listing(title: str, listing: Mapping[str, str]) -> None:
    """Names and what they are, one a line."""
    console = Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    for name, about in listing.items():
        table.add_row(Text(name, style="cyan", no_wrap=True), Text(about))
    console.print(Text(title, style="bold"))
    console.print(Padding(table, (0, 0, 1, 2)))


def show_settings(name: str, about: str, settings: Mapping[str, Setting]) -> None:
    """What something is, and each of its settings: what it takes, its default, its meaning."""
    from tidewolf.experiments.keys import format_value, words_of

    console = Console(highlight=False)
    console.print(Text(name, style="bold"))
    console.print(Padding(Text(about), (0, 0, 1, 2), expand=False))
    for key, setting in settings.items():
        takes = words_of(setting)
        if setting.default in (None, ()):
            takes += ", optional"
        elif not setting.required:
            takes += f", {format_value(setting.default)} by default"
        console.print(Text.assemble((key, "cyan"), f" : {takes}"))
        check = setting.check
        if check is not None and check.sentence:
            unit = f" Unit: {check.unit}." if check.unit else ""
            console.print(Padding(Text(f"{check.sentence}{unit}"), (0, 0, 0, 4), expand=False))
    if not settings:
        console.print("It has no settings that a file can give.")
