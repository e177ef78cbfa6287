"""`tidewolf sweep`: many runs by many processes, kept in a folder that a kill does not harm."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from tidewolf.cli import screen
from tidewolf.cli.options import (
    AsJson,
    Dask,
    ExperimentName,
    Jobs,
    LearnerNames,
    Quiet,
    parse_numbers,
)
from tidewolf.cli.run import json_text, requested_experiment
from tidewolf.core.errors import Interrupted, InvalidInput


def sweep_command(
    experiment: ExperimentName,
    learner: LearnerNames = None,
    horizons: Annotated[
        str | None,
        typer.Option(metavar="N,...", help="How many rounds; as many as there are by default."),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="S,...", help="The seeds of everything random; 0 by default."),
    ] = None,
    knob: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=V,...", help="Values of a setting of learners; give it again for another."
        ),
    ] = None,
    jobs: Jobs = None,
    dask: Dask = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where results.parquet goes, and what is done already; out/sweep by default.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Begin anew, whatever sweep DIR holds.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Many runs: horizons x seeds x learners x knobs.

    Plays every learner at every horizon and seed, and at every combination of the knobs it has, and
    writes one table of all runs, and a page with a picture for each knob. A file says which in its
    table [sweep]; what is given here counts instead. The same command goes on where a killed one
    stopped; a run that fails is a line with the reason, and is tried again then. Processes and
    workers with the same processor and versions give the same numbers; other processors may round
    differently.

    \b
    Examples:
      tidewolf sweep routing --horizons 500,1000,2000 --seeds 0,1,2
      tidewolf sweep routing --knob caution=1,10,100 --knob calls_per_round=1,10 --jobs 4
      tidewolf sweep routing --seeds 0,1,2,3 --dask tcp://10.0.0.1:8786
      tidewolf sweep routing.toml --horizons 500,1000 --out results
      tidewolf sweep routing --json | jq '.runs[].violation'
    """
    from tidewolf.cli.engines import engine_for, require_one
    from tidewolf.experiments import sweep as sweeps
    from tidewolf.experiments.plan import plan_sweep
    from tidewolf.experiments.runner import Stage
    from tidewolf.experiments.sweep import PAGE, RESULTS
    from tidewolf.report import sweep as page

    require_one(jobs, dask)
    requested = requested_experiment(experiment, None, learner, None)
    cells = plan_sweep(
        requested,
        horizons=() if horizons is None else parse_numbers(horizons, "--horizons", int),
        seeds=() if seeds is None else parse_numbers(seeds, "--seeds", int),
        knobs=dict(map(_knob, knob or ())),
    )
    engine = engine_for(jobs, dask)
    folder = out or (requested.folder or Path("out")) / "sweep"
    stage = Stage(0, 0, len(cells))
    try:
        with screen.sweep_progress(not quiet) as follow:

            def moved(now: Stage) -> None:
                nonlocal stage
                stage = now
                follow(now)

            found = sweeps.sweep(cells, folder, engine=engine, force=force, progress=moved)
    except KeyboardInterrupt:
        raise Interrupted(
            f"Interrupted: {stage.done} of {stage.cells} cells are done, and the same command goes "
            "on from there."
        ) from None
    page.write_sweep_page(folder / PAGE, found, date=datetime.now(UTC))
    if as_json:
        typer.echo(json_text({"runs": found.rows}), nl=False)
    elif not quiet:
        screen.show_sweep(found, folder / RESULTS, folder / PAGE)


def _knob(text: str) -> tuple[str, list[float]]:
    name, equals, values = text.partition("=")
    if not equals:
        raise InvalidInput(f"--knob takes a name and values, such as caution=1,10, not {text!r}.")
    return name, parse_numbers(
        values, f"--knob {name}", lambda part: int(part) if part.strip().isdigit() else float(part)
    )
