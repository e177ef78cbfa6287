"""`tidewolf compare`: a tournament on built-in problems, or on data of one's own, kept in a folder
that a kill does not harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidewolf.cli import screen
from tidewolf.cli.options import (
    AsJson,
    Dask,
    ExperimentNames,
    Jobs,
    LearnerNames,
    Quiet,
    parse_numbers,
)
from tidewolf.cli.run import is_file, json_text, requested_experiment
from tidewolf.core.errors import Interrupted

if TYPE_CHECKING:
    from tidewolf.experiments import Experiment

_CONTESTANTS = (
    "Ensemble",
    "LyapunovDescent",
    "LyapunovFrankWolfe",
    "SinhaVaze",
    "Resolve",
    "DriftPlusPenalty",
    "PrimalDual",
    "BanditPrimalDual",
)
"""Who plays a built-in problem by its name."""


def compare_command(
    experiment: ExperimentNames = None,
    learner: LearnerNames = None,
    rounds: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many rounds; as many as each has by default."),
    ] = None,
    cautions: Annotated[
        str | None,
        typer.Option(
            metavar="C,...", help="The values of caution to sweep; 0.1,0.3,... to 100 by default."
        ),
    ] = None,
    headrooms: Annotated[
        str | None,
        typer.Option(
            metavar="H,...",
            help="The headrooms of re-solving, in multiples of what a limit's room usually shrinks "
            "by in a round; 0,0.5,1,2,4,8 by default.",
        ),
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(metavar="B,...", help="Oracle calls a round; each learner's own by default."),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="S,...", help="The seeds of everything random; 0 by default."),
    ] = None,
    jobs: Jobs = None,
    dask: Dask = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the page, the pictures and comparison.json go; out/compare by default.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Begin anew, whatever comparison DIR holds.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Which caution to choose: frontiers of loss against violation as caution moves.

    Plays every learner at every caution, budget and seed it has a setting for, and re-solving over
    its headroom. Says what each step of caution costs and buys, which caution lies nearest to
    re-solving at equal violation, how each learner stands against SinhaVaze, which projects
    exactly; and writes a page, pictures and all numbers. A file's learners are its own; where it
    names nobody, they are Ensemble as `tidewolf run` would have it, SinhaVaze and Resolve. On a
    built-in problem Ensemble (without context and advice), LyapunovDescent, LyapunovFrankWolfe,
    SinhaVaze, Resolve and the paper's three play. A run that is refused is said and harms no other.
    The same command goes on where a killed one stopped; the numbers are the same whoever plays,
    but for the times, which are fair with one job alone.

    \b
    Examples:
      tidewolf compare network.toml
      tidewolf compare network.toml --cautions 3,10,30 --jobs 4
      tidewolf compare routing sdp --rounds 500 --seeds 0,1,2
      tidewolf compare carbon --learner LyapunovDescent --learner SinhaVaze --budgets 1,10
      tidewolf compare --json | jq '.standings[].saving'
    """
    from tidewolf.cli.engines import engine_for, require_one
    from tidewolf.experiments.compare import step_of
    from tidewolf.experiments.runner import Stage
    from tidewolf.experiments.tournament import compare_experiments, plan_comparison
    from tidewolf.report import comparison as page

    require_one(jobs, dask)
    swept = {
        "cautions": _floats(cautions, "--cautions"),
        "headrooms": _floats(headrooms, "--headrooms"),
        "budgets": _floats(budgets, "--budgets"),
    }
    seeded = None if seeds is None else parse_numbers(seeds, "--seeds", int)
    requested = [_requested(name, rounds, learner) for name in experiment or ["routing"]]
    matches = plan_comparison(requested, **swept, seeds=seeded)
    folder = out or (requested[0].folder or Path("out")) / "compare"
    pictures = page.pictures([each.name for each in requested]).values()
    stage = Stage(0, 0, len(matches))
    try:
        with screen.tournament(not quiet) as (follow, told):

            def moved(now: Stage) -> None:
                nonlocal stage
                stage = now
                told(now)

            engine = engine_for(
                1 if jobs is None else jobs,
                dask,
                lambda number, moment: follow(step_of(matches, number), moment),
            )
            found = compare_experiments(
                matches,
                folder,
                engine=engine,
                force=force,
                others=["comparison.html", *pictures],
                progress=moved,
            )
    except KeyboardInterrupt:
        raise Interrupted(
            f"Interrupted: {stage.done} of {stage.cells} runs are done, and the same command goes "
            "on from there."
        ) from None
    page.write_comparison_page(folder / "comparison.html", found, date=datetime.now(UTC))
    page.write_pictures(folder, found)
    if as_json:
        typer.echo(json_text(found.summary()), nl=False)
    elif not quiet:
        screen.show_comparison(found, folder / "comparison.html")


def _requested(name: str, rounds: int | None, learners: Sequence[str] | None) -> Experiment:
    """The experiment of a name; a built-in one has more learners here than in a run, and all of
    them without settings, whether they were named or not.
    """
    from tidewolf.experiments import Choice

    found = requested_experiment(name, rounds, learners, None)
    if is_file(name):
        return found
    if learners:
        return replace(found, as_run=())
    return replace(found, learners=tuple(map(Choice, _CONTESTANTS)))


def _floats(text: str | None, option: str) -> list[float] | None:
    return None if text is None else parse_numbers(text, option, float)
