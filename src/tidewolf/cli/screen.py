"""What a terminal shows: a progress line while learners run, then tables. Results go to stdout, progress to stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tidewolf.report.page import hindsight_warnings, learner_labels, learner_notes
from tidewolf.report.words import interval, number

if TYPE_CHECKING:
    from tidewolf.evaluation.run import Moment, Run

Follow: TypeAlias = "Callable[[str, int | None], Callable[[Moment], None]]"


@contextmanager
def progress(shown: bool) -> Iterator[Follow]:
    """A function that begins a line and answers what keeps it moving; nothing is shown where stderr is not a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        TextColumn("{task.fields[detail]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as bar:

        def follow(name: str, rounds: int | None) -> Callable[[Moment], None]:
            task = bar.add_task(name, total=rounds, detail="")

            def moved(moment: Moment) -> None:
                bar.update(task, completed=moment.rounds_done, detail=_detail(moment, bar.tasks[task].elapsed or 0.0))

            return moved

        yield follow


def _detail(moment: Moment, elapsed: float) -> str:
    done = max(1, moment.rounds_done)
    return f"{done / max(elapsed, 1e-9):,.0f} rounds/s, {moment.calls / done:.2f} calls a round, violation {number(moment.violation_total)}"


def show_results(runs: Sequence[Run], title: str, page: Path) -> None:
    """The headline table, what a reader should know, and where the page is."""
    console = Console(highlight=False)
    labels = learner_labels(runs)
    console.print(Text(title, style="bold"))
    console.print(_results(runs, labels))
    console.print()
    for sentence in hindsight_warnings(runs):
        console.print(Text(sentence, style="yellow"))
    for who, note in learner_notes(runs, labels):
        console.print(Text.assemble((f"{who}: ", "bold"), note))
    console.print(Text(f"report: {page}"), soft_wrap=True)


def _results(runs: Sequence[Run], labels: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("learner", no_wrap=True)
    for title in ("regret", "violation", "calls\na round", "largest\nexcess", "seconds"):
        table.add_column(title, justify="right", vertical="bottom", no_wrap=True)
    for run, label in zip(runs, labels, strict=True):
        cells = (float(run.violations.sum()), run.oracle_calls / len(run.losses), run.max_excess, run.seconds)
        regret = "none" if run.regret is None else interval(run.regret)
        table.add_row(Text(label, style="bold"), Text(regret), *(Text(number(cell)) for cell in cells))
    return table


def show_members(title: str, members: Mapping[str, str]) -> None:
    """Names and what they are, one a line."""
    console = Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    for name, about in members.items():
        table.add_row(Text(name, style="cyan", no_wrap=True), Text(about))
    console.print(Text(title, style="bold"))
    console.print(Padding(table, (0, 0, 1, 2)))
