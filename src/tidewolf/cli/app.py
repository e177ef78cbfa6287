"""The commands, and their exit codes: bad input gives code 2 and one line, never a traceback.

`run`, `resume`, `report`, `new`: experiments and their run folders; `compare` and `sweep`: many
runs, in a folder that survives a kill.
"""

import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import typer
from typer.main import get_command

from tidewolf import __version__, baselines, functions, learners, networks, problems, sets
from tidewolf import report as report_pages
from tidewolf.cli import commands, screen
from tidewolf.cli.screen import AsJson, LearnerNames, Quiet, arg, flag, opt
from tidewolf.core import checkpoint, errors, jit
from tidewolf.core.arguments import did_you_mean
from tidewolf.core.lazy import Lazy
from tidewolf.evaluation.recording import RunProgress
from tidewolf.experiments import Choice, Experiment, RunFolder, load
from tidewolf.experiments import experiment as described
from tidewolf.experiments.folder import free, preview, require_no_run
from tidewolf.experiments.jobs import Job, engine_for, locked, plan_sweep

# Parts that single commands need.
_PARTS = ("doctor", "experiments.compare", "experiments.templates", "report.comparison")
doctor, compare, templates, comparison_pages = (Lazy(f"tidewolf.{name}") for name in _PARTS)
N = TypeVar("N", int, float)
# Whether as JSON, not at all, with notes on each learner.
Shown: TypeAlias = tuple[bool, bool, bool]
# click's own, or that of the click inside typer: it depends on typer's version
_UsageError: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


@cache
def _command() -> Any:
    return get_command(app)


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line; every error meant for the user becomes one line on stderr."""
    words, level, code = list(arguments) or ["--help"], jit.LOGGER.level, 2
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, warnings.showwarning)
            if "--quiet" in words or "-q" in words:  # no notices such as that of compiling
                jit.LOGGER.setLevel(logging.WARNING)
            found = _command().main(args=words, prog_name="tidewolf", standalone_mode=False)
        return found if isinstance(found, int) else 0
    except (typer.Abort, KeyboardInterrupt):
        message, code = "Interrupted.", 130
    except _UsageError as error:
        message = error.format_message()
        message += "" if message.endswith((".", "?")) else "."
    except errors.TidewolfError as error:
        message, code = str(error), 130 if isinstance(error, errors.Interrupted) else 2
    except MemoryError as error:
        detail = f": {error}" if str(error) else ""
        message = f"There is not enough memory{detail}. Ask for less, or use a larger machine."
    except OSError as error:
        if error.filename is None:
            raise
        message = f"{error.filename} cannot be used: {error.strerror}."
    finally:
        jit.LOGGER.setLevel(level)
    sys.stderr.write(f"{message}\n")
    return code


def _show_warning(show: Any, message: Any, category: Any, *where: Any, **more: Any) -> None:
    if issubclass(category, errors.TidewolfWarning):
        sys.stderr.write(f"Warning: {message}\n")
    else:
        show(message, category, *where, **more)


# --- one experiment -------------------------------------------------------------------------------


def run_command(
    experiment: screen.ExperimentName,
    rounds: Annotated[int | None, opt("N", "How many rounds; all by default.")] = None,
    learner: LearnerNames = None,
    caution: Annotated[str | None, opt("C,...", "The weight of limits, one run for each.")] = None,
    seed: Annotated[int | None, opt("S", "The random seed; 0 by default.")] = None,
    out: Annotated[Path | None, opt("DIR", "The run folder; out, out-2, ... by default.")] = None,
    force: Annotated[bool, flag("Overwrite the run in DIR.", "--force")] = False,
    decisions: Annotated[
        str | None,
        opt(
            "none|csv|parquet|both",
            "Which files of decisions DIR gets; parquet, and csv too up to a million cells.",
        ),
    ] = None,
    incumbent: Annotated[
        Path | None,
        opt(
            "FILE",
            "The decisions of these rounds, a table like decisions.csv: what would have been "
            "saved? On flows they are shares, not volumes.",
        ),
    ] = None,
    dry_run: Annotated[bool, flag("Show what would be played and written.", "--dry-run")] = False,
    as_json: AsJson = False,
    verbose: screen.Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Run learners on a problem, side by side.

    Prints a verdict and a table, and fills a run folder: report.html with pictures, summary.json,
    decisions.parquet and decisions.csv with the decisions (a row per round, a column per entry; on
    flows, shares of the demand), rounds.parquet with the numbers of every round, the experiment as
    resolved, checkpoints. By default Ensemble, with the problem's season and re-solving as its
    advice, runs beside SinhaVaze, which projects exactly, and Resolve, which only re-solves; on a
    built-in problem also beside the paper's three: DriftPlusPenalty, PrimalDual and
    BanditPrimalDual, which sees two numbers per round. Of these, one that refuses the problem is
    left out, with a note. A learner chosen by its name has the settings of the file, if the file
    has it, else its defaults here. Ctrl-C, or a power cut, loses little: `tidewolf resume DIR`
    resumes.

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
    cautions = parse_numbers(caution, "--caution", float)
    requested = _replaced(
        requested_experiment(experiment, rounds, learner, seed, cautions),
        decisions=decisions,
        incumbent=incumbent,
    )
    folder = out or requested.folder or free(Path("out"))
    require_no_run(folder, force)
    _run(requested, folder, force, dry_run, (as_json, quiet, verbose))


def _run(requested: Experiment, folder: Path, force: bool, dry_run: bool, how: Shown) -> None:
    problem, unnamed = requested.problem(requested.seeds[0]), requested.has_default_learners
    requested = requested.taken(problem)
    resolved = replace(requested.resolved(len(problem)), folder=None)
    # all are made before the first one runs, so that a wrong setting costs no time
    for entrant in resolved.entrants():
        requested.learner(entrant, problem, requested.seeds[0])
    file = requested.incumbent
    beside = None if file is None else compare.read_incumbent(file, problem, requested.files)
    if dry_run:
        found = preview(requested, resolved, problem, folder, beside)
        if how[0]:
            screen.print_json(found)
        elif not how[1]:
            screen.show_preview(found)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, "run", again=True):
        created, notes = RunFolder.create(folder, resolved, force=force), list[str]()
        if unnamed and requested.document is not None:
            mixed = " and ".join(described.to_toml(requested.learners[0].given).splitlines())
            notes.append(f"The file names no learners: Ensemble mixes descents with {mixed}.")
        _play(created, problem, how, notes)


def resume(
    directory: Annotated[Path, arg("DIR", "The folder of a run.")],
    as_json: AsJson = False,
    verbose: screen.Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Resume a run that was interrupted or killed.

    On the same machine and versions the results are those of a run that never stopped, bit for bit.
    A complete run is shown again.

    \b
    Examples:
      tidewolf resume out
      tidewolf resume results --json
    """
    folder = RunFolder.open(directory)
    with folder.locked():
        _play(folder, None, (as_json, quiet, verbose))


def report(
    directory: Annotated[Path, arg("DIR", "The folder of a complete run.")],
    figures: Annotated[bool, flag("Also write DIR/figures, as PNG and SVG.", "--figures")] = False,
    quiet: Quiet = False,
) -> None:
    """Write the report page of a run again, from the record in its folder (report.json): the
    data of the experiment is not needed, except for --figures.

    \b
    Examples:
      tidewolf report out
      tidewolf report out --figures
    """
    folder = RunFolder.open(directory)
    errors.refuse(
        not folder.complete, f"The run is not complete; `tidewolf resume {directory}` completes it."
    )
    with folder.locked():
        for seed in folder.experiment.seeds:
            report_pages.rewrite(folder.page(seed), datetime.now(UTC))
            if not quiet:
                typer.echo(f"report: {folder.page(seed)}")
        for each in folder.play() if figures else ():
            to = folder.figures(each.seed)
            report_pages.write_figures(to, each.runs, each.problem)
            if not quiet:
                typer.echo(f"figures: {to}")


def new(
    name: Annotated[str, arg("[NAME]", "The name; NAME.toml is written.")] = "experiment",
    problem: Annotated[
        str | None,
        opt(
            "PROBLEM",
            "The built-in problem to begin with, or network: links, costs and capacities of your "
            "own. By default routing, or network for the name network.",
        ),
    ] = None,
    force: Annotated[bool, flag("Overwrite existing files.", "--force")] = False,
    quiet: Quiet = False,
) -> None:
    """Write an experiment file with every key explained. It runs as it is: edit it from there.

    `tidewolf new network` writes small tables beside it, in network-data: links, costs, capacities,
    commodities and demands, to be replaced by yours.

    \b
    Examples:
      tidewolf new network
      tidewolf new backbone --problem network
      tidewolf new hostile --problem adversarial
    """
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    problem = problem or (path.stem if path.stem == templates.NETWORK else "routing")
    if problem == templates.NETWORK:
        files = templates.network_template(path)
        done = _NETWORK.format(path=path, data=templates.data_folder(path))
    else:
        files = {path: templates.template(path.stem, problem).encode()}
        done = f"{path} is written; edit it, then: tidewolf run {path}"
    _write(files, force)
    if not quiet:
        typer.echo(done)


def _write(files: dict[Path, bytes], force: bool) -> None:
    for file in (file for file in reversed(files) if file.exists() and not force):
        raise errors.InvalidInput(f"{file} exists already; use another name, or --force.")
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.write(file, content)


def import_command(
    kind: Annotated[str, arg("te", "What FOLDER is: traffic engineering.")],
    folder: Annotated[Path, arg("FOLDER", "The folder of one network.")],
    name: Annotated[str | None, arg("[NAME]", "NAME.toml is written; as FOLDER.")] = None,
    relative: Annotated[bool, flag("Divide demands by the optimum of their round.")] = False,
    force: Annotated[bool, flag("Overwrite existing files.", "--force")] = False,
) -> None:
    """Write an experiment file for a folder of a public traffic-engineering repository.

    Reads the layout of FIGRET and DOTE: the network (NAME.json, NAME_int.pickle.nnet or
    NAME_int.txt), tunnels.txt, train/*.hist and test/*.hist, *.opt. Pickles are refused. The
    objective is the utilisation of the fullest link. Tables are written to NAME-data; its
    optima.csv has the least possible loss of each round.

    \b
    Examples:
      tidewolf import te Data/GEANT
      tidewolf import te Data/GEANT geant --relative
    """
    errors.refuse(kind != "te", f"Expected te, folders of traffic engineering, not {kind!r}.")
    name = folder.resolve().name if name is None else name
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    _write(templates.traffic_files(folder, path, relative), force)
    typer.echo(f"{path} is written; next: tidewolf run {path}")


_NETWORK = """\
{path} and {data}/ are written: twelve cities, a week of hours. Next:
  tidewolf run {path}                      decisions, costs, limits, a page
  tidewolf compare {path}                  how much caution is right
  tidewolf live {path} --db routing.db     rows in, decisions out
then replace the files in {data}/ by yours."""


def requested_experiment(
    name: str,
    rounds: int | None = None,
    names: Sequence[str] | None = None,
    seed: int | None = None,
    cautions: Sequence[float] | None = None,
) -> Experiment:
    """The experiment of a file or of a built-in name, with the options of the command line."""
    found = _replaced(
        load(name) if is_file(name) else Experiment.builtin(name),
        rounds=rounds,
        seeds=None if seed is None else (seed,),
    )
    found = found.only(names) if names else found
    if cautions is None:
        return found
    errors.refuse(
        not any("caution" in described.learner_keys(each.name) for each in found.learners),
        "No learner of this run has a caution: leave --caution out.",
    )
    without = [
        Choice.of(each.name, {key: at for key, at in each.settings if key != "caution"})
        for each in found.learners
    ]
    return replace(found, cautions=tuple(cautions), learners=tuple(dict.fromkeys(without)))


def _replaced(experiment: Experiment, **given: Any) -> Experiment:
    return replace(experiment, **{key: at for key, at in given.items() if at is not None})


def is_file(name: str) -> bool:
    return name.endswith(".toml") or (name not in problems.every() and Path(name).is_file())


def _play(folder: RunFolder, first: Any, how: Shown, more: Sequence[str] = ()) -> None:
    experiment, (as_json, quiet, verbose) = folder.experiment, how
    count = len(experiment.seeds) * len(experiment.entrants())
    try:
        with screen.progress(not quiet) as bar, screen.stoppable() as stop:

            def moved(job: Job, moment: RunProgress) -> None:
                bar.done = job.number - 1
                bar.moved(job.entrant.name, count, moment)

            found = folder.play(progress=moved, stopping=stop, first=first)
        folder.write_rounds(found)
        notes = folder.write_decisions(found)
        for each in found:
            report_pages.write(
                folder.page(each.seed),
                each.shown,
                name=experiment.name,
                about=experiment.title or each.problem.title,
                seed=each.seed,
                date=datetime.now(UTC),
                problem=each.problem,
                experiment=experiment.toml(),
                left_out=dict(experiment.left_out),
                notes=each.notes,
            )
        folder.write_summary(found)
    except KeyboardInterrupt:
        raise errors.Interrupted(f"Interrupted; `tidewolf resume {folder.path}` resumes.") from None
    if as_json:
        screen.print_json({**folder.records(found), "left_out": dict(experiment.left_out)})
        return
    for each in () if quiet else found:
        said = [*more, *each.notes, *notes] if each is found[0] else []
        if each is found[0] and folder.decisions_file is not None:
            said.append(f"decisions: {folder.decisions_file}")
        screen.show_results(each, experiment, [*said, f"report: {folder.page(each.seed)}"], verbose)


# --- many runs ------------------------------------------------------------------------------------


_HEADROOMS = (
    "The headrooms of re-solving, in multiples of what a limit's room usually shrinks by in a "
    "round; 0,0.5,1,2,4,8 by default."
)
_TARGETS = "Violations per round to aim at (target_violation), a curve of its own; none by default."


def compare_command(
    experiment: screen.ExperimentNames = None,
    learner: LearnerNames = None,
    rounds: Annotated[int | None, opt("N", "How many rounds; all by default.")] = None,
    cautions: Annotated[str | None, opt("C,...", "The cautions; 0.1 to 100 by default.")] = None,
    headrooms: Annotated[str | None, opt("H,...", _HEADROOMS)] = None,
    targets: Annotated[str | None, opt("V,...", _TARGETS)] = None,
    budgets: Annotated[str | None, opt("B,...", "Oracle calls per round; own by default.")] = None,
    seeds: screen.Seeds = None,
    jobs: screen.Jobs = None,
    dask: screen.Dask = None,
    out: Annotated[Path | None, opt("DIR", "The folder; out/compare by default.")] = None,
    force: Annotated[bool, flag("Begin again, also if DIR holds a comparison.", "--force")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: screen.Verbose = False,
) -> None:
    """Which caution to choose: frontiers of loss against violation as caution moves.

    Plays every learner at every caution, budget and seed it has a setting for, and re-solving over
    its headroom. Shows which caution to begin with, with --verbose also what each step of it costs
    and buys and which one lies nearest to re-solving at equal violation, and how each learner
    compares with SinhaVaze, which projects exactly; writes a page, pictures and all numbers. The
    learners are those of the file; if it names none, they are Ensemble as in `tidewolf run`,
    SinhaVaze and Resolve. On a built-in problem they are Ensemble (without context and advice),
    LyapunovDescent, LyapunovFrankWolfe, SinhaVaze, Resolve and the paper's three. A run that is
    refused is reported and does not affect the others. The same command resumes after a kill. The
    numbers do not depend on --jobs and --dask, except for the times, which are comparable with one
    job only.

    \b
    Examples:
      tidewolf compare network.toml
      tidewolf compare network.toml --cautions 3,10,30 --jobs 4
      tidewolf compare network.toml --targets 0.001,0.003,0.01
      tidewolf compare routing sdp --rounds 500 --seeds 0,1,2
      tidewolf compare carbon --learner LyapunovDescent --learner SinhaVaze --budgets 1,10
      tidewolf compare --json | jq '.rankings[].saving'
    """
    requested = [_contest(name, rounds, learner) for name in experiment or ["routing"]]
    knobs = {"cautions": cautions, "headrooms": headrooms, "budgets": budgets, "targets": targets}
    values: Any = {key: parse_numbers(text, f"--{key}", float) for key, text in knobs.items()}
    matches = compare.plan_comparison(
        requested, **values, seeds=parse_numbers(seeds, "--seeds", int)
    )
    folder = out or (requested[0].folder or Path("out")) / "compare"
    number = 1 if jobs is None and dask is None else jobs
    compared = _compared(matches, folder, force, quiet, partial(engine_for, number, dask))
    if as_json:
        screen.print_json(compared.summary())
    elif not quiet:
        screen.show_comparison(compared, folder / "comparison.html", verbose=verbose)


def _compared(matches: Sequence[Any], folder: Path, force: bool, quiet: bool, engine: Any) -> Any:
    with screen.progress(not quiet) as bar:

        def moved(number: int, moment: RunProgress) -> None:
            entry = matches[number].entry
            found = {knob: getattr(entry, knob) for knob in compare.KNOBS}
            at = [f"{knob} {value:g}" for knob, value in found.items() if value is not None]
            bar.moved(", ".join([entry.stream, entry.learner, *at]), len(matches), moment)

        pictures = comparison_pages.pictures([at.entry.stream for at in matches])
        others = ["comparison.html", *pictures.values()]
        how: Any = {"engine": engine(moved), "force": force, "progress": bar.ended}
        compared = compare.compare_experiments(matches, folder, others=others, **how)
    text = comparison_pages.comparison_page(compared, date=datetime.now(UTC))
    checkpoint.write(folder / "comparison.html", text.encode())
    comparison_pages.write_pictures(folder, compared)
    return compared


def _contest(name: str, rounds: int | None, learners: Sequence[str] | None) -> Experiment:
    found = requested_experiment(name, rounds, learners)
    if is_file(name):
        return found
    if learners:
        return replace(found, as_run=())
    first, *others = described.BUILTIN_LEARNERS
    names = (first, "LyapunovDescent", "LyapunovFrankWolfe", *others)
    return replace(found, learners=tuple(map(Choice, names)))


def sweep_command(
    experiment: screen.ExperimentName,
    learner: LearnerNames = None,
    horizons: Annotated[str | None, opt("N,...", "How many rounds; all by default.")] = None,
    seeds: screen.Seeds = None,
    knob: Annotated[list[str] | None, opt("NAME=V,...", "Values of a setting; repeatable.")] = None,
    jobs: screen.Jobs = None,
    dask: screen.Dask = None,
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
        found = compare.sweep(planned, folder, engine=engine, force=force, progress=bar.ended)
    text = comparison_pages.sweep_page(found, date=datetime.now(UTC))
    checkpoint.write(folder / compare.PAGE, text.encode())
    if as_json:
        screen.print_json({"runs": found.rows})
    elif not quiet:
        screen.show_sweep(found, folder / compare.RESULTS, folder / compare.PAGE)


def _knob(text: str) -> tuple[str, list[float]]:
    name, equals, values = text.partition("=")
    errors.refuse(
        not equals, f"--knob takes a name and values, such as caution=1,10, not {text!r}."
    )

    def value(part: str) -> float:
        return int(part) if part.strip().isdigit() else float(part)

    return name, parse_numbers(values, f"--knob {name}", value) or []


def parse_numbers(text: str | None, option: str, kind: Callable[[str], N]) -> list[N] | None:
    if text is None:
        return None
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise errors.InvalidInput(
            f"{option} takes {'whole ' * (kind is int)}numbers such as 1,10, not {text!r}."
        ) from None


# --- what there is --------------------------------------------------------------------------------


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tidewolf {__version__}")
        raise typer.Exit


def doctor_command(as_json: AsJson = False) -> None:
    """Check this installation: versions, folders, and a short run with its certificate.

    Each line is ok, a warning, absent (an optional part) or fails. The exit code is 1 if a needed
    library is missing or the self-test fails, else 0.

    \b
    Examples:
      tidewolf doctor
      tidewolf doctor --json | jq '.findings[] | select(.status == "fails")'
    """
    raise typer.Exit(doctor.doctor(as_json))


def list_command(
    name: Annotated[str | None, arg("[NAME]", "Show the settings of this one.")] = None,
) -> None:
    """List problems, learners, baselines, networks, sets and functions; or the settings of one.

    These are the names that experiment files and --learner take, and the settings are the keys
    beside them. In Python they are found under tidewolf.problems, tidewolf.learners,
    tidewolf.baselines, tidewolf.sets and tidewolf.functions.

    \b
    Examples:
      tidewolf list
      tidewolf list Ensemble
      tidewolf list | grep Simplex
    """
    every: dict[str, dict[str, Any]] = {
        "problems": {**problems.every()},
        "learners": {**learners.every()},
        "baselines": {**baselines.every()},
        "networks": {"Network": networks.Network},
        "sets": {kind.__name__: kind for kind in sets.every()},
        "functions": {kind.__name__: kind for kind in functions.every()},
    }
    if name is None:
        for title, found in every.items():
            screen.show_listing(title, {key: _summary(found[key]) for key in found})
        return None
    keys_of = {
        "problems": described.problem_keys,
        "learners": described.learner_keys,
        "baselines": described.learner_keys,
    }
    for title, found in every.items():
        if name in found:
            of = keys_of.get(title)
            settings = described.kind_keys(found[name]) if of is None else of(name)
            return screen.show_settings(name, _summary(found[name]), settings)
    near = did_you_mean(name, [each for found in every.values() for each in found])
    raise errors.InvalidInput(f"There is nothing called {name!r}; see `tidewolf list`.{near}")


def _summary(member: Any) -> str:
    return " ".join((member.__doc__ or "").strip().partition("\n\n")[0].split())


@app.callback()
def tidewolf(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Online decisions in a hard set that is costly to project on, under constraints that change
    with time.

    \b
    Begin with:
      tidewolf list               what there is to run; with a name, its settings
      tidewolf run routing        six learners side by side: a table and a page
      tidewolf new network        an experiment file for your own data
      tidewolf import te FOLDER   one for a public traffic-engineering folder
      tidewolf compare my.toml    which caution to choose
      tidewolf check my:MySet     test a set, function or learner of your own
      tidewolf sweep routing      many runs in one table; a kill loses nothing
      tidewolf live network.toml --db routing.db    rows in, decisions out
      tidewolf serve --data sessions                many sessions over HTTP
      tidewolf paper              the paper's theorems, measured, on one page
      tidewolf doctor             versions, folders, a self-test
    """


for _function in (
    *(run_command, resume, report, new, import_command, sweep_command, compare_command),
    commands.live_command,
    *(commands.serve_command, commands.backup_command, commands.restore_command),
    *(commands.paper_command, commands.check_command, doctor_command, list_command),
):
    app.command(_function.__name__.removesuffix("_command"))(_function)
