"""`tidewolf run`, `resume`, `report`, `new`: experiments and the folders they leave."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidewolf.cli import screen
from tidewolf.cli.options import AsJson, ExperimentName, LearnerNames, Quiet, parse_numbers
from tidewolf.core import checkpoint
from tidewolf.core.errors import Interrupted, InvalidInput

if TYPE_CHECKING:
    from tidewolf.experiments import Experiment, RunFolder
    from tidewolf.experiments.folder import Finished
    from tidewolf.experiments.preview import Preview
    from tidewolf.problems import Problem

_OUT = Path("out")


def run_command(
    experiment: ExperimentName,
    rounds: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many rounds; as many as the stream has by default."),
    ] = None,
    learner: LearnerNames = None,
    caution: Annotated[
        str | None,
        typer.Option(
            metavar="C,...",
            help="How limits are weighed against losses; several values are run side by side.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", help="The seed of everything random; 0 by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The run folder; out by default, or the next out-2, ... that is free.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the run that DIR holds.")
    ] = False,
    decisions: Annotated[
        str | None,
        typer.Option(
            metavar="none|csv|parquet|both",
            help="Which files of decisions DIR gets; parquet by default, and csv beside it up to a "
            "million cells.",
        ),
    ] = None,
    incumbent: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What was decided in these rounds, a table as decisions.csv: what would have been "
            "saved? Entries on flows are shares, not volumes.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only say what would be played, on what, how long, and what would be written.",
        ),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run learners on a problem, side by side.

    Prints a table and fills a run folder: report.html with pictures, summary.json,
    decisions.parquet and decisions.csv with what was decided (a row a round, a column an entry; of
    flows, shares of the demand), rounds.parquet with every round's numbers, the experiment as
    resolved, checkpoints. Unless told otherwise, Ensemble,
    with the problem's season and re-solving as its advice, runs beside SinhaVaze, which projects
    exactly, and Resolve, which re-solves and nothing else; on a built-in problem also beside the
    paper's three: DriftPlusPenalty, PrimalDual and BanditPrimalDual, which sees two numbers a
    round. Of these, one that refuses the problem is left out, and that is said. A learner chosen by
    its name is the file's where the file has it, else the one that would play unless told
    otherwise. Ctrl-C, or a power cut, loses little: `tidewolf resume DIR` goes on.

    \b
    Examples:
      tidewolf run routing
      tidewolf run routing --rounds 2000 --seed 7 --out results
      tidewolf run network.toml --dry-run
      tidewolf run network.toml --caution 3,10,30
      tidewolf run network.toml --incumbent last-month.csv
      tidewolf run network.toml --learner Ensemble --quiet
      tidewolf run routing --json | jq '.runs[].regret'
    """
    from tidewolf.experiments.folder import RunFolder, free, require_no_run
    from tidewolf.experiments.incumbent import read_incumbent
    from tidewolf.experiments.lock import locked
    from tidewolf.experiments.preview import preview

    cautions = None if caution is None else parse_numbers(caution, "--caution", float)
    requested = requested_experiment(experiment, rounds, learner, seed, cautions)
    if decisions is not None:
        requested = replace(requested, decisions=decisions)
    if incumbent is not None:
        requested = replace(requested, incumbent=incumbent)
    folder = out or requested.folder or free(_OUT)
    require_no_run(folder, force)
    problem = requested.problem(requested.seeds[0])
    requested = requested.taken(problem)
    resolved = replace(requested.resolved(len(problem)), folder=None)
    # all are made before the first one runs, so that a wrong setting costs no time
    for entrant in resolved.entrants():
        requested.learner(entrant, problem, requested.seeds[0])
    beside = (
        None
        if requested.incumbent is None
        else read_incumbent(requested.incumbent, problem, requested.files)
    )
    if dry_run:
        _show_preview(preview(requested, resolved, problem, folder, beside), as_json, quiet)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, "run", again=True):
        _play(RunFolder.create(folder, resolved, force=force), problem, as_json, quiet)


def resume(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a run that was interrupted.")
    ],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run that was interrupted, killed or cut off.

    The results are those of a run that never stopped, bit for bit, on the same machine and
    versions. A complete run is shown again.

    \b
    Examples:
      tidewolf resume out
      tidewolf resume results --json
    """
    from tidewolf.experiments import RunFolder

    folder = RunFolder.open(directory)
    with folder.locked():
        _play(folder, None, as_json, quiet)


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a complete run.")],
    figures: Annotated[
        bool, typer.Option("--figures", help="Also every figure as PNG and SVG, in DIR/figures.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Do not say where the page is.")
    ] = False,
) -> None:
    """Write the report page of a run again, from the record in its folder (report.json): the
    data of the experiment is not needed, except for --figures.

    \b
    Examples:
      tidewolf report out
      tidewolf report out --figures
    """
    from tidewolf.experiments import RunFolder
    from tidewolf.report import rewrite, write_figures

    folder = RunFolder.open(directory)
    if not folder.complete:
        raise InvalidInput(
            f"{directory} holds a run that is not complete; `tidewolf resume {directory}` goes on "
            "with it."
        )
    with folder.locked():
        for seed in folder.experiment.seeds:
            rewrite(folder.page(seed), datetime.now(UTC))
            if not quiet:
                typer.echo(f"report: {folder.page(seed)}")
        for each in folder.recorded() if figures else ():
            to, problem = folder.figures(each.seed), each.problem
            write_figures(to, each.runs, entries=problem.labels, network=problem.network)
            if not quiet:
                typer.echo(f"figures: {to}")


def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]", help="What the experiment is called; NAME.toml is written."
        ),
    ] = "experiment",
    problem: Annotated[
        str | None,
        typer.Option(
            metavar="PROBLEM",
            help="The built-in problem to begin with, or network: links, costs and capacities of "
            "your own. routing by default, and network for the name network.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Do not say what to do next.")
    ] = False,
) -> None:
    """Write an experiment file with every key explained. It runs as it is: change it from there.

    `tidewolf new network` writes small tables beside it, in network-data: links, costs, capacities,
    commodities and demands, to be replaced by yours.

    \b
    Examples:
      tidewolf new network
      tidewolf new backbone --problem network
      tidewolf new hostile --problem adversarial
    """
    from tidewolf.experiments.network_template import NETWORK, data_folder, network_template
    from tidewolf.experiments.template import template

    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if problem is None:
        problem = NETWORK if path.stem == NETWORK else "routing"
    files = (
        network_template(path)
        if problem == NETWORK
        else {path: template(path.stem, problem).encode()}
    )
    there = [file for file in files if file.exists()]
    if there and not force:
        raise InvalidInput(
            f"{there[-1]} is there already; choose another name, or overwrite it with --force."
        )
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.write(file, content)
    if quiet:
        return
    if problem != NETWORK:
        typer.echo(f"{path} is written; edit it, then: tidewolf run {path}")
        return
    typer.echo(
        f"{path} and {data_folder(path)}/ are written: twelve cities, a week of hours. Next:\n"
        f"  tidewolf run {path}                      decisions, costs, limits, a page\n"
        f"  tidewolf compare {path}                  how much caution is right\n"
        f"  tidewolf live {path} --db routing.db     rows in, decisions out\n"
        f"then put your own files in place of those in {data_folder(path)}/."
    )


def requested_experiment(
    name: str,
    rounds: int | None,
    names: Sequence[str] | None,
    seed: int | None,
    cautions: Sequence[float] | None = None,
) -> Experiment:
    """The experiment of a file or of a built-in name, with what the command line says instead."""
    from tidewolf.core.arrays import as_count
    from tidewolf.experiments import Experiment, load

    found = load(name) if is_file(name) else Experiment.builtin(name)
    if rounds is not None:
        found = replace(found, rounds=as_count(rounds, "The number of rounds"))
    if seed is not None:
        found = replace(found, seeds=(as_count(seed, "The seed", least=0),))
    if names:
        found = found.only(names)
    return found if cautions is None else _at_cautions(found, cautions)


def _at_cautions(experiment: Experiment, cautions: Sequence[float]) -> Experiment:
    """Every learner that has a caution at each of these, whatever the file says."""
    from tidewolf.experiments import Choice
    from tidewolf.experiments.keys import learner_keys

    if not any("caution" in learner_keys(each.name) for each in experiment.learners):
        names = ", ".join(dict.fromkeys(each.name for each in experiment.learners))
        raise InvalidInput(f"No learner of this run has a caution; the learners are {names}.")
    without = [
        Choice.of(each.name, {key: at for key, at in each.settings if key != "caution"})
        for each in experiment.learners
    ]
    learners = tuple(dict.fromkeys(without))
    return replace(experiment, cautions=tuple(cautions), learners=learners)


def is_file(name: str) -> bool:
    """Whether an experiment is a file's, not a built-in one."""
    from tidewolf.problems import every

    return name.endswith(".toml") or (name not in every() and Path(name).is_file())


def _play(folder: RunFolder, first: Problem | None, as_json: bool, quiet: bool) -> None:
    """Play what is left, write what came of it, show it."""
    from tidewolf.experiments.folder import incumbent_record

    try:
        with screen.progress(not quiet) as follow, _stoppable() as stopping:
            found = folder.play(follow=follow, stopping=stopping, first=first)
        folder.write_rounds(found)
        notes = folder.write_decisions(found)
        for each in found:
            _write_page(folder, each)
        folder.write_summary(found)
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted; `tidewolf resume {folder.path}` goes on.") from None
    left_out = folder.experiment.left_out(found[0].problem)
    if as_json:
        told = {"runs": folder.records(found), "left_out": left_out, **incumbent_record(found)}
        typer.echo(json_text(told), nl=False)
    elif not quiet:
        for each in found:
            title = f"{folder.experiment.name}: {len(each.problem):,} rounds, seed {each.seed}"
            begins = each is found[0]
            screen.show_results(
                each.shown,
                title,
                folder.page(each.seed),
                left_out,
                decisions=folder.decisions_file if begins else None,
                notes=(*each.notes, *notes) if begins else (),
            )


def _show_preview(found: Preview, as_json: bool, quiet: bool) -> None:
    if as_json:
        typer.echo(json_text(found.plain()), nl=False)
    elif not quiet:
        screen.show_preview(found)


def _write_page(folder: RunFolder, each: Finished) -> None:
    from tidewolf import report

    about = folder.experiment.title or each.problem.title
    report.write(
        folder.page(each.seed),
        each.shown,
        name=folder.experiment.name,
        about=about,
        seed=each.seed,
        date=datetime.now(UTC),
        entries=each.problem.labels,
        experiment=folder.experiment.toml(),
        left_out=folder.experiment.left_out(each.problem),
        network=each.problem.network,
        notes=each.notes,
    )


@contextmanager
def _stoppable() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed, or the process asked to end; the second time it ends at once."""
    requested: list[int] = []

    def note(number: int, frame: Any) -> None:
        if requested:
            raise KeyboardInterrupt
        requested.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(requested)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def json_text(value: object) -> str:
    """Plain data as JSON for people and programs."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"
