"""What a terminal takes and shows: options that several commands share, progress while learners
run, then tables; and how Ctrl-C stops a command.

Results go to stdout, progress to stderr.
"""

import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tidewolf import baselines, learners, problems
from tidewolf.core.feedback import SEES, who_sees_what
from tidewolf.core.lazy import Lazy
from tidewolf.core.settings import Setting
from tidewolf.evaluation.formatting import Column, applying, format_setting, number, percent
from tidewolf.evaluation.metrics import ROUND_TABLE, TABLE, hindsight_sentences, verdict
from tidewolf.evaluation.recording import RunProgress
from tidewolf.experiments import Experiment
from tidewolf.experiments.experiment import words_of
from tidewolf.experiments.folder import Finished
from tidewolf.report.charts import learner_labels
from tidewolf.report.page import learner_notes

# Parts that single commands need.
tables, sweeps = Lazy("tidewolf.evaluation.comparison"), Lazy("tidewolf.experiments.compare")
T = TypeVar("T")


def arg(metavar: str, help: str, **how: Any) -> Any:
    return typer.Argument(metavar=metavar, help=help, **how)


def opt(metavar: str, help: str, *names: str, **how: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, **how)


def flag(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help)


def _experiments(incomplete: str) -> list[str]:
    here = (str(path) for path in sorted(Path().glob("*.toml")))
    return [name for name in (*here, *problems.every()) if name.startswith(incomplete)]


def _learners(incomplete: str) -> list[str]:
    return [name for name in (*learners.every(), *baselines.every()) if name.startswith(incomplete)]


ExperimentName: TypeAlias = Annotated[
    str,
    arg(
        "EXPERIMENT",
        "A built-in problem (`tidewolf list`) or a TOML file (`tidewolf new`).",
        autocompletion=_experiments,
    ),
]
ExperimentNames: TypeAlias = Annotated[
    list[str] | None,
    arg(
        "[EXPERIMENT]...",
        "Built-in problems or TOML files; routing by default.",
        autocompletion=_experiments,
    ),
]
LearnerNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="A learner or a baseline; repeatable.", autocompletion=_learners
    ),
]
Seeds: TypeAlias = Annotated[str | None, opt("S,...", "The random seeds; 0 by default.")]
Jobs: TypeAlias = Annotated[
    int | None,
    opt("N", "How many processes; by default 1 for compare, for sweep one per processor."),
]
Dask: TypeAlias = Annotated[
    str | None,
    opt("ADDRESS", "Use the Dask cluster of this scheduler; trust it, for its protocol unpickles."),
]
AsJson: TypeAlias = Annotated[bool, flag("Print the results as JSON, and nothing else.", "--json")]
Quiet: TypeAlias = Annotated[bool, flag("Print no progress and no results.", "--quiet", "-q")]
Verbose: TypeAlias = Annotated[bool, flag("Also print notes on each learner.", "--verbose", "-v")]


class Stopped(Exception):
    """A signal came while the command waited."""


class Stop:
    """Whether SIGINT or SIGTERM came: the first ends a wait at once, else lets the work end in
    order; the second raises KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.signals: list[int] = []
        self._is_waiting = False

    def __call__(self) -> bool:
        return bool(self.signals)

    def handle(self, number: int, frame: Any) -> None:
        if self.signals:
            raise KeyboardInterrupt
        self.signals.append(number)
        if self._is_waiting:
            raise Stopped

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self._is_waiting = True
        try:
            if self.signals:
                raise Stopped
            yield
        finally:
            self._is_waiting = False


@contextmanager
def stoppable() -> Iterator[Stop]:
    stop = Stop()
    main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if main else ()
    before = {number: signal.signal(number, stop.handle) for number in signals}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def _bar(shown: bool) -> Progress:
    console = Console(stderr=True)
    texts = TextColumn("{task.description}"), TextColumn("{task.fields[detail]}")
    columns = texts[0], BarColumn(bar_width=12), texts[1], TimeRemainingColumn(compact=True)
    off = not (shown and console.is_terminal)
    return Progress(*columns, console=console, transient=True, disable=off)


class JobBar:
    def __init__(self, bar: Progress) -> None:
        self._bar, self.done = bar, 0
        self._task = bar.add_task("the best point in hindsight", total=None, detail="")
        self._what, self._begun, self._rounds = "", 0.0, 0

    def moved(self, what: str, jobs: int, moment: RunProgress) -> None:
        now, rounds = self._bar.get_time(), moment.rounds_done
        if what != self._what:
            self._what, self._begun, self._rounds = what, now, rounds
        speed = (rounds - self._rounds) / max(now - self._begun, 1e-9)
        calls = f"{moment.calls / max(1, rounds):.2f} calls per round"
        if moment.solves:
            calls += f", {moment.solves / max(1, rounds):.2f} LPs"
        violation = f"violation {number(moment.violation_total)}"
        self._bar.update(
            self._task,
            description=f"{what} ({min(self.done + 1, jobs)} of {jobs})",
            total=jobs,
            completed=self.done + rounds / max(1, moment.rounds),
            detail=f"{speed:,.0f} rounds/s, {calls}, {violation}",
        )

    def ended(self, done: int, failed: int, jobs: int) -> None:
        self.done = done
        detail = f"{done:,} of {jobs:,} runs" + f", {failed} failed" * bool(failed)
        self._bar.update(self._task, total=jobs, completed=done, detail=detail)


@contextmanager
def progress(shown: bool) -> Iterator[JobBar]:
    with _bar(shown) as bar:
        yield JobBar(bar)


@contextmanager
def checking(shown: bool, what: str) -> Iterator[Callable[..., None]]:
    """A line with what passed last: a check by name, or one of so many."""
    with _bar(shown) as bar:
        task = bar.add_task(what, total=None, detail="")
        yield lambda *done: bar.update(task, detail=" of ".join(map(str, done)))


def _print(*parts: str | tuple[str, str], style: str = "", wraps: bool = True) -> None:
    Console(highlight=False).print(Text.assemble(*parts, style=style), soft_wrap=not wraps)


def _print_pairs(rows: Sequence[tuple[str, str]]) -> None:
    grid = Table.grid(padding=(0, 2))
    for name, about in rows:
        grid.add_row(Text(name, style="cyan", no_wrap=True), Text(about))
    Console(highlight=False).print(grid)


def _print_table(
    names: Sequence[str], rows: Sequence[T], columns: Sequence[Column[T]], first: str = "learner"
) -> None:
    """A table and an empty line, with as many of the columns that apply as there is room for, eight
    at most: those of the highest rank are left out first, those of rank 0 never.
    """
    console, columns = Console(highlight=False), applying(columns, rows)
    while True:
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
        table.add_column(first, no_wrap=True, vertical="bottom")
        for each in columns:
            table.add_column(each.narrow_title, justify="right", vertical="bottom")
        for name, row in zip(names, rows, strict=True):
            table.add_row(
                Text(name, style="bold"), *(Text(each.narrow_cell(row)) for each in columns)
            )
        wide = console.measure(table, options=console.options.update(max_width=10_000)).maximum
        highest = max((column.rank for column in columns), default=0)
        if highest == 0 or (wide <= console.width and len(columns) < 8):
            break
        columns = [each for each in columns if each.rank < highest]
    console.print(table)
    console.print()


def show_outcome(example: str, passed: Sequence[str], good: bool, *, named: bool) -> None:
    ending = f"passes all {len(passed)} checks." if good else f"fails after {len(passed)} checks."
    _print((example, "bold"), " ", (ending, "green" if good else "red"), wraps=False)
    for check_name in passed if named else ():
        _print(f"  {check_name}")


def show_results(
    found: Finished, experiment: Experiment, notes: Sequence[str], verbose: bool
) -> None:
    runs, labels = found.shown, learner_labels(found.shown)
    if sentence := verdict(runs, labels):
        _print(sentence, style="bold")
        _print()
    _print(f"{experiment.name}: {len(found.problem):,} rounds, seed {found.seed}", style="bold")
    _print_table(labels, runs, applying(TABLE, runs))
    _print_table(labels, runs, ROUND_TABLE, "per round")
    _print(
        "Lower is better in every column. Losses and violations are in the units of the problem; "
        "churn is half of what all entries changed by from one round to the next."
    )
    for sentence in hindsight_sentences(runs):
        _print(sentence, style="yellow")
    if verbose:
        _print(who_sees_what((type(run.learner).__name__, SEES[run.learner.needs]) for run in runs))
    for who, note in learner_notes(runs, labels):
        if verbose or who == "Incumbent":  # what was made of the user's own file
            _print((f"{who}: ", "bold"), note)
    for who, why in experiment.left_out:
        _print((f"{who}: ", "bold"), f"left out. {why}")
    for note in notes:
        _print(note, wraps=not note.startswith(("decisions: ", "report: ")))


def show_preview(found: Mapping[str, Any]) -> None:
    _print((found["experiment"], "bold"), f": {found['title']}")
    when = f", from {found['first']} to {found['last']}" if found["first"] else ""
    entries = f"{found['entries']:,} entries, dimension {found['dimension']:,}"
    facts = [
        ("set", f"{found['set']}; {entries}"),
        ("rounds", f"{found['rounds']:,}{when.replace('T', ' ')}"),
        ("seeds", ", ".join(map(str, found["seeds"]))),
        ("losses", found["losses"]),
        ("limits", f"{found['limits']} ({found['limits_a_round']:,} per round)"),
        *(("note", note) for note in found["notes"]),
    ]
    for each in found["learners"]:
        settings = ", ".join(
            f"{key} {' '.join(map(str, at)) if isinstance(at, list) else format_setting(at)}"
            for key, at in each["settings"].items()
            if at not in ([], "")
        )
        facts.append(("learner", f"{each['name']} ({settings}): about {each['seconds']:.2g} s"))
    facts += [("incumbent", found["incumbent"])] if found["incumbent"] else []
    facts += [("left out", f"{name}: {reason}") for name, reason in found["left_out"].items()]
    basis = "estimated from a few rounds, without the best point in hindsight and the page"
    facts += [("folder", found["folder"]), ("files", ", ".join(found["files"]))]
    _print_pairs([*facts, ("time", f"about {found['seconds']:.2g} s, {basis}")])
    _print("Nothing was written: this was a dry run.")


def show_comparison(comparison: Any, page: Path, *, verbose: bool = False) -> None:
    every = comparison.rankings()
    chosen = any(comparison.chooser(stream) for stream in comparison.streams)
    left_out = ("loss", "regret", "violation") if chosen else ("shortfall %",)
    for stream in comparison.streams:
        rankings = [each for each in every if each.stream == stream]
        names = [tables.ranking_name(each) for each in rankings]
        if choice := comparison.choice(stream):
            _print(" ".join(choice), style="bold")
            _print()
        _print((stream, "bold"), f": {comparison.about(stream)}")
        _show_choice(comparison, stream, verbose)
        for first, columns in tables.TABLES:
            shown = [column for column in columns if column.title not in left_out]
            _print_table(names, rankings, shown, first)
    for sentence in comparison.warnings():
        _print(sentence, style="yellow")
    seen = who_sees_what((entry.learner, entry.sees) for entry in comparison.entries)
    if verbose and seen:
        _print(seen)
    _print(
        f"Compared with {comparison.baseline}, in % of {comparison.share_of()}; up to 0.5 is on "
        "its frontier. Lower is better, except for how many times less is broken."
    )
    _print(f"report: {page}", wraps=False)


def _point_column(name: str, rank: int = 0) -> Column[Any]:
    return Column(name, name, lambda point: number(getattr(point, name)), rank)


_POINT_COLUMNS: tuple[Column[Any], ...] = (
    _point_column("loss"),
    _point_column("churn", 2),
    _point_column("regret")._replace(applies=lambda point: point.regret is not None),
    _point_column("violation"),
    Column("broken", "broken", lambda p: "unknown" if p.broken is None else percent(p.broken), 1),
    Column("seconds", "micro-\nsecs", lambda point: number(1e6 * point.seconds), 3),
)


def _show_choice(comparison: Any, stream: str, verbose: bool) -> None:
    """The points of the learner whose caution is to be chosen, those of re-solving beside them, and
    if wanted what each step costs and buys.
    """
    learner = comparison.chooser(stream)
    if learner is None:
        return
    shown = [
        (who, point)
        for who in comparison.learners
        for point in comparison.frontier(stream, who)
        if who == learner or point.knob in ("headroom", "target_violation")
    ]
    names = [f"{who}, {point.at}{' (default)' * point.default}" for who, point in shown]
    _print_table(names, [point for _, point in shown], _POINT_COLUMNS, "per round")
    if verbose:
        for sentence in (*comparison.steps(stream), *comparison.against_resolving(stream)):
            _print(sentence)
        _print()


def show_sweep(found: Any, table: Path, page: Path) -> None:
    def knob(name: str) -> Column[Any]:
        title = name.replace("_", "\n", 1)
        return Column(name, title, lambda line: format_setting(line.settings.get(name, "")))

    for group in found.groups():
        _print((group.experiment, "bold"), f": {group.about}")
        names = [line.learner for line in group.lines]
        _print_table(names, group.lines, [*map(knob, group.knobs), *sweeps.LINE_COLUMNS])
    for sentence in found.warnings():
        _print(sentence, style="yellow")
    _print(f"results: {table}", wraps=False)
    _print(f"report: {page}", wraps=False)


def show_listing(title: str, listing: Mapping[str, str]) -> None:
    _print(title, style="bold")
    _print_pairs([(f"  {name}", about) for name, about in listing.items()])
    _print()


def show_settings(name: str, about: str, settings: Mapping[str, Setting]) -> None:
    console = Console(highlight=False)
    _print(name, style="bold")
    console.print(Padding(Text(about), (0, 0, 1, 2), expand=False))
    for key, setting in settings.items():
        takes, default = words_of(setting), setting.default
        if default in (None, ()):
            takes += ", optional"
        elif not setting.required:
            plain = list(default) if isinstance(default, tuple) else default
            takes += f", {json.dumps(plain, default=repr)} by default"
        _print((key, "cyan"), f" : {takes}")
        if setting.meaning:
            console.print(Padding(Text(setting.meaning), (0, 0, 0, 4), expand=False))
    if not settings:
        _print("It has no settings that a file can give.")
