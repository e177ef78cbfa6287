"""The commands: `tidewolf run`, `compare`, `list`. Bad input ends with exit code 2 and one sentence, never with a traceback."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.main import get_command

from tidewolf import __version__
from tidewolf.cli import screen
from tidewolf.core import checkpoint
from tidewolf.core.errors import InvalidInput, TidewolfError

if TYPE_CHECKING:
    from tidewolf.core.learner import Learner
    from tidewolf.evaluation.run import Run
    from tidewolf.problems import Problem

_DEFAULT_LEARNERS = ("LyapunovDescent", "SinhaVaze")
_CONTESTANTS = ("LyapunovDescent", "LyapunovFrankWolfe", "SinhaVaze")
_SUMMARY_FORMAT = 1
N = TypeVar("N", int, float)
_UsageError: Any = typer.BadParameter.__mro__[1]  # click's own, or that of the click inside typer: it depends on typer's version

app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


def invoke(arguments: Sequence[str] | None) -> int:
    """Run one command line; every error meant for the user becomes a sentence on stderr."""
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        code = get_command(app).main(args=words, prog_name="tidewolf", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        return _refused("Interrupted.", 130)
    except _UsageError as error:
        message: str = error.format_message()
        return _refused(message if message.endswith((".", "?")) else f"{message}.")
    except TidewolfError as error:
        return _refused(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        return _refused(f"{error.filename} cannot be used: {error.strerror}.")
    return code if isinstance(code, int) else 0


def _refused(sentence: str, code: int = 2) -> int:
    sys.stderr.write(f"{sentence}\n")
    return code


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tidewolf {__version__}")
        raise typer.Exit


@app.callback()
def tidewolf(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")] = False,
) -> None:
    """Decisions, round after round, inside a hard set that is costly to project on, under limits that move with time.

    \b
    Begin with:
      tidewolf list               what there is to run
      tidewolf run routing        two learners side by side: a table, and a page with pictures
      tidewolf compare routing    a tournament: who keeps limits better at equal regret
    """


@app.command()
def run(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="A built-in problem; `tidewolf list` shows them.")],
    rounds: Annotated[int | None, typer.Option(metavar="N", help="How many rounds; as many as the problem has by default.")] = None,
    learner: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A learner or a rival; give it again for several.")] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="The seed of everything random.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where report.html and summary.json go.")] = Path("out"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON, and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress line and no table.")] = False,
) -> None:
    """Run learners on a problem, side by side.

    Prints a table and writes a report page with pictures. Unless told otherwise, LyapunovDescent runs beside SinhaVaze,
    which projects exactly.

    \b
    Examples:
      tidewolf run routing
      tidewolf run routing --rounds 2000 --seed 7 --out results
      tidewolf run routing --learner LyapunovDescent --quiet
      tidewolf run routing --json | jq '.runs[].regret'
    """
    from tidewolf import problems, report

    problem = problems.named(experiment)(rounds=rounds, seed=seed)
    learners = _learners(learner or _DEFAULT_LEARNERS, problem)
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"{out} is a file; --out takes a folder.")
    out.mkdir(parents=True, exist_ok=True)
    runs = _play(problem, learners, shown=not quiet)
    records = [{"experiment": problem.name, **run.summary()} for run in runs]
    summary = {"format": _SUMMARY_FORMAT, "rounds": len(problem.stream), "seed": seed, "runs": records}
    checkpoint.write(out / "summary.json", _json(summary).encode())
    now, named = datetime.now(UTC), problem.labels
    report.write(out / "report.html", runs, name=problem.name, about=problem.title, seed=seed, date=now, entries=named)
    if as_json:
        typer.echo(_json({"runs": records}), nl=False)
    elif not quiet:
        screen.show_results(runs, f"{problem.name}: {len(problem.stream):,} rounds, seed {seed}", out / "report.html")


@app.command()
def compare(
    problem: Annotated[list[str] | None, typer.Argument(metavar="[PROBLEM]...", help="Built-in problems; routing by default.")] = None,
    learner: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A learner or a rival; give it again for several.")] = None,
    rounds: Annotated[int | None, typer.Option(metavar="N", help="How many rounds; as many as each problem has by default.")] = None,
    cautions: Annotated[str, typer.Option(metavar="C,...", help="The values of caution to sweep.")] = "0.1,0.3,1,3,10,30,100",
    budgets: Annotated[str, typer.Option(metavar="B,...", help="Oracle calls a round.")] = "1",
    seeds: Annotated[str, typer.Option(metavar="S,...", help="The seeds of everything random.")] = "0",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the page, the pictures and comparison.json go.")] = Path("out/compare"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the comparison that DIR holds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON, and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress line and no table.")] = False,
) -> None:
    """A tournament: frontiers of regret against violation as caution moves.

    Plays every learner on every problem, at every caution, budget and seed it has a setting for. Prints how each stands against
    SinhaVaze, which projects exactly, and writes a page, a picture for each problem, and all numbers. A run that is refused is
    said and harms no other.

    \b
    Examples:
      tidewolf compare
      tidewolf compare routing sdp --rounds 500 --seeds 0,1,2
      tidewolf compare carbon --learner LyapunovDescent --learner SinhaVaze --budgets 1,10
      tidewolf compare --json | jq '.standings[].saving'
    """
    from tidewolf import problems
    from tidewolf.evaluation.compare import compare as play_all
    from tidewolf.evaluation.comparison import FILES, require_free
    from tidewolf.report import comparison as page

    builders = {name: problems.named(name) for name in problem or ["routing"]}
    learners = {name: _learner(name) for name in learner or _CONTESTANTS}
    swept = {"cautions": _numbers(cautions, "--cautions", float), "budgets": _numbers(budgets, "--budgets", float)}
    seeded = _numbers(seeds, "--seeds", int)
    streams = {name: partial(build, rounds) for name, build in builders.items()}
    require_free(out, [*FILES, "comparison.html", *page.pictures(list(streams)).values()], force)
    with screen.tournament(not quiet) as follow:
        found = play_all(learners, streams, **swept, seeds=seeded, progress=follow)
    found.save(out, force=force)
    page.write(out / "comparison.html", found, date=datetime.now(UTC))
    page.write_pictures(out, found)
    if as_json:
        typer.echo(_json(found.summary()), nl=False)
    elif not quiet:
        screen.show_comparison(found, out / "comparison.html")


def _numbers(text: str, option: str, kind: Callable[[str], N]) -> list[N]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{option} takes {'whole ' * (kind is int)}numbers with commas between, such as 1,10, not {text!r}.") from None


@app.command("list")
def list_() -> None:
    """What there is: problems, learners, rivals, sets.

    In Python they are found under tidewolf.problems, tidewolf.learners, tidewolf.rivals and tidewolf.sets.
    """
    from tidewolf import learners, problems, rivals, sets

    parts: dict[str, Iterable[Any]] = {
        "problems": problems.every().values(),
        "learners": learners.every().values(),
        "rivals": rivals.every().values(),
        "sets": sets.every(),
    }
    for title, members in parts.items():
        screen.show_members(title, {member.__name__: (member.__doc__ or "").strip().partition("\n")[0] for member in members})


def _learners(names: Sequence[str], problem: Problem) -> list[Learner[Any]]:
    """All of them are made before the first one runs, so that a wrong name costs no time."""
    return [_learner(name)(problem.K, horizon=len(problem.stream)) for name in dict.fromkeys(names)]


def _learner(name: str) -> Any:
    from tidewolf import learners, rivals

    known = {**learners.every(), **rivals.every()}
    if name in known:
        return known[name]
    near = get_close_matches(name.lower(), [each.lower() for each in known], n=1, cutoff=0.5)
    meant = [each for each in known if each.lower() in near]
    hint = f" Did you mean {meant[0]}?" if meant else ""
    raise InvalidInput(f"There is no learner called {name!r}; there are {', '.join(known)}.{hint}")


def _play(problem: Problem, learners: Sequence[Learner[Any]], *, shown: bool) -> list[Run]:
    from tidewolf.evaluation.run import run

    with screen.progress(shown) as follow:
        runs: list[Run] = []
        for learner in learners:
            moved = follow(type(learner).__name__, len(problem.stream))
            runs.append(run(learner, problem.stream, progress=moved, comparator=runs[0].comparator if runs else None))
    return runs


def _json(value: object) -> str:
    return json.dumps(value, indent=2, allow_nan=False) + "\n"
