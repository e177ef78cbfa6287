"""`tidewolf compare` and `tidewolf sweep`: many runs, in a folder that survives a kill."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tidewolf.cli import screen
from tidewolf.cli.options import (
    AsJson,
    Dask,
    ExperimentName,
    ExperimentNames,
    Jobs,
    LearnerNames,
    Quiet,
    Seeds,
    flag,
    opt,
    parse_numbers,
)
from tidewolf.cli.run import is_file, requested_experiment
from tidewolf.core import checkpoint
from tidewolf.core.errors import InvalidInput

if TYPE_CHECKING:
    from tidewolf.evaluation.recording import RunProgress

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
"""The learners of a comparison on a built-in problem."""
_HEADROOMS = (
    "The headrooms of re-solving, in multiples of what a limit's room usually shrinks by in a "
    "round; 0,0.5,1,2,4,8 by default."
)


def compare_command(
    experiment: ExperimentNames = None,
    learner: LearnerNames = None,
    rounds: Annotated[int | None, opt("N", "How many rounds; all by default.")] = None,
    cautions: Annotated[
        str | None, opt("C,...", "The values of caution; 0.1,0.3,... to 100 by default.")
    ] = None,
    headrooms: Annotated[str | None, opt("H,...", _HEADROOMS)] = None,
    budgets: Annotated[
        str | None, opt("B,...", "Oracle calls per round; each learner's own by default.")
    ] = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    dask: Dask = None,
    out: Annotated[Path | None, opt("DIR", "The folder; out/compare by default.")] = None,
    force: Annotated[bool, flag("Begin again, also if DIR holds a comparison.", "--force")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Which caution to choose: frontiers of loss against violation as caution moves.

    Plays every learner at every caution, budget and seed it has a setting for, and re-solving over
    its headroom. Shows what each step of caution costs and buys, which caution lies nearest to
    re-solving at equal violation, and how each learner compares with SinhaVaze, which projects
    exactly; writes a page, pictures and all numbers. The learners are those of the file; if it
    names none, they are Ensemble as in `tidewolf run`, SinhaVaze and Resolve. On a built-in problem
    they are Ensemble (without context and advice), LyapunovDescent, LyapunovFrankWolfe, SinhaVaze,
    Resolve and the paper's three. A run that is refused is reported and does not affect the others.
    The same command resumes after a kill. The numbers do not depend on --jobs and --dask, except
    for the times, which are comparable with one job only.

    \b
    Examples:
      tidewolf compare network.toml
      tidewolf compare network.toml --cautions 3,10,30 --jobs 4
      tidewolf compare routing sdp --rounds 500 --seeds 0,1,2
      tidewolf compare carbon --learner LyapunovDescent --learner SinhaVaze --budgets 1,10
      tidewolf compare --json | jq '.rankings[].saving'
    """
    from tidewolf.experiments import Choice
    from tidewolf.experiments.compare import compare_experiments, plan_comparison
    from tidewolf.experiments.jobs import engine_for
    from tidewolf.report import comparison as page

    requested = []
    for name in experiment or ["routing"]:
        found = requested_experiment(name, rounds, learner)
        if not is_file(name) and learner:  # without settings, whether they were named or not
            found = replace(found, as_run=())
        elif not is_file(name):
            found = replace(found, learners=tuple(map(Choice, _CONTESTANTS)))
        requested.append(found)
    matches = plan_comparison(
        requested,
        cautions=parse_numbers(cautions, "--cautions", float),
        headrooms=parse_numbers(headrooms, "--headrooms", float),
        budgets=parse_numbers(budgets, "--budgets", float),
        seeds=parse_numbers(seeds, "--seeds", int),
    )
    folder = out or (requested[0].folder or Path("out")) / "compare"
    pictures = page.pictures([each.name for each in requested]).values()
    with screen.progress(not quiet) as bar:

        def moved(number: int, moment: RunProgress) -> None:
            entry = matches[number].entry
            knobs = {"caution": entry.caution, "headroom": entry.headroom}
            at = "".join(
                f", {name} {value:g}" for name, value in knobs.items() if value is not None
            )
            bar.moved(f"{entry.stream}, {entry.learner}{at}", len(matches), moment)

        compared = compare_experiments(
            matches,
            folder,
            engine=engine_for(1 if jobs is None and dask is None else jobs, dask, moved),
            force=force,
            others=["comparison.html", *pictures],
            progress=bar.ended,
        )
    text = page.comparison_page(compared, date=datetime.now(UTC))
    checkpoint.write(folder / "comparison.html", text.encode())
    page.write_pictures(folder, compared)
    if as_json:
        screen.print_json(compared.summary())
    elif not quiet:
        screen.show_comparison(compared, folder / "comparison.html")


def sweep_command(
    experiment: ExperimentName,
    learner: LearnerNames = None,
    horizons: Annotated[str | None, opt("N,...", "How many rounds; all by default.")] = None,
    seeds: Seeds = None,
    knob: Annotated[
        list[str] | None,
        opt("NAME=V,...", "Values of a setting of learners; repeat it for another."),
    ] = None,
    jobs: Jobs = None,
    dask: Dask = None,
    out: Annotated[Path | None, opt("DIR", "The folder; out/sweep by default.")] = None,
    force: Annotated[bool, flag("Begin again, also if DIR holds a sweep.", "--force")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Many runs: horizons x seeds x learners x knobs.

    Plays every learner at every horizon and seed, and at every combination of the knobs it has, and
    writes one table of all runs, results.parquet, and a page with a picture for each knob. A file
    gives them in its table [sweep]; options replace that. The same command resumes after a kill; a
    run that fails is a line with the reason, and is tried again then. Processes and workers with
    the same processor and versions give the same numbers; other processors may round differently.

    \b
    Examples:
      tidewolf sweep routing --horizons 500,1000,2000 --seeds 0,1,2
      tidewolf sweep routing --knob caution=1,10,100 --knob calls_per_round=1,10 --jobs 4
      tidewolf sweep routing --seeds 0,1,2,3 --dask tcp://10.0.0.1:8786
      tidewolf sweep routing.toml --horizons 500,1000 --out results
      tidewolf sweep routing --json | jq '.runs[].violation'
    """
    from tidewolf.experiments.jobs import engine_for, plan_sweep
    from tidewolf.experiments.sweep import PAGE, RESULTS, sweep
    from tidewolf.report import comparison as page

    requested = requested_experiment(experiment, None, learner)
    planned = plan_sweep(
        requested,
        horizons=parse_numbers(horizons, "--horizons", int) or (),
        seeds=parse_numbers(seeds, "--seeds", int) or (),
        knobs=dict(map(_knob, knob or ())),
    )
    engine = engine_for(jobs, dask)
    folder = out or (requested.folder or Path("out")) / "sweep"
    with screen.progress(not quiet) as bar:
        found = sweep(planned, folder, engine=engine, force=force, progress=bar.ended)
    checkpoint.write(folder / PAGE, page.sweep_page(found, date=datetime.now(UTC)).encode())
    if as_json:
        screen.print_json({"runs": found.rows})
    elif not quiet:
        screen.show_sweep(found, folder / RESULTS, folder / PAGE)


def _knob(text: str) -> tuple[str, list[float]]:
    name, equals, values = text.partition("=")
    if not equals:
        raise InvalidInput(f"--knob takes a name and values, such as caution=1,10, not {text!r}.")

    def value(part: str) -> float:
        return int(part) if part.strip().isdigit() else float(part)

    return name, parse_numbers(values, f"--knob {name}", value) or []
