"""The commands, and how they end.

Bad input ends with exit code 2 and one sentence, never with a traceback.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from tidewolf import __version__
from tidewolf.cli import screen
from tidewolf.cli.live import live_command
from tidewolf.cli.options import AsJson, LearnerNames, Quiet, parse_numbers
from tidewolf.cli.run import json_text, new, report, resume, run_command
from tidewolf.cli.sweep import sweep_command
from tidewolf.core.arrays import as_count
from tidewolf.core.errors import Interrupted, LawBroken, TidewolfError, TidewolfWarning

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
# click's own, or that of the click inside typer: it depends on typer's version
_UsageError: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


def invoke(arguments: Sequence[str] | None) -> int:
    """Run one command line; every error meant for the user becomes a sentence on stderr."""
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        with _warnings_as_sentences():
            code = get_command(app).main(args=words, prog_name="tidewolf", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        return _refused("Interrupted.", 130)
    except _UsageError as error:
        message: str = error.format_message()
        return _refused(message if message.endswith((".", "?")) else f"{message}.")
    except Interrupted as error:
        return _refused(str(error), 130)
    except TidewolfError as error:
        return _refused(str(error))
    except MemoryError as error:
        return _refused(
            f"There is not enough memory for this{f': {error}' if str(error) else ''}. Ask for "
            "less, or take a larger machine."
        )
    except OSError as error:
        if error.filename is None:
            raise
        return _refused(f"{error.filename} cannot be used: {error.strerror}.")
    return code if isinstance(code, int) else 0


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Warnings of ours are for people: a sentence on stderr, without the file and line of the code
    that gave it.
    """
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, TidewolfWarning):
                sys.stderr.write(f"Warning: {message}\n")
            else:
                shown(message, category, *where, **more)

        warnings.showwarning = show
        yield


def _refused(sentence: str, code: int = 2) -> int:
    sys.stderr.write(f"{sentence}\n")
    return code


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tidewolf {__version__}")
        raise typer.Exit


@app.callback()
def tidewolf(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Decisions, round after round, inside a hard set that is costly to project on, under limits
    that move with time.

    \b
    Begin with:
      tidewolf list               what there is to run; with a name, its settings
      tidewolf run routing        six learners side by side: a table, and a page with pictures
      tidewolf new network        an experiment file for your own data, every key explained
      tidewolf compare routing    a tournament: who keeps limits better at equal regret
      tidewolf check my:MySet     the laws, on a class of your own
      tidewolf sweep routing      many runs at once, in a table that a kill does not lose
      tidewolf live network.toml --db routing.db    rows in, decisions out, one by one
    """


app.command("run")(run_command)
app.command()(resume)
app.command()(report)
app.command()(new)
app.command("sweep")(sweep_command)
app.command("live")(live_command)


@app.command("compare")
def compare_command(
    problem: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROBLEM]...", help="Built-in problems; routing by default."),
    ] = None,
    learner: LearnerNames = None,
    rounds: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many rounds; as many as each problem has by default."),
    ] = None,
    cautions: Annotated[
        str, typer.Option(metavar="C,...", help="The values of caution to sweep.")
    ] = "0.1,0.3,1,3,10,30,100",
    budgets: Annotated[str, typer.Option(metavar="B,...", help="Oracle calls a round.")] = "1",
    seeds: Annotated[
        str, typer.Option(metavar="S,...", help="The seeds of everything random.")
    ] = "0",
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where the page, the pictures and comparison.json go."),
    ] = Path("out/compare"),
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the comparison that DIR holds.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """A tournament: frontiers of regret against violation as caution moves.

    Plays every learner on every problem, at every caution, budget and seed it has a setting for.
    Prints how each stands against SinhaVaze, which projects exactly, and writes a page, a picture
    for each problem, and all numbers. A run that is refused is said and harms no other. Unless told
    otherwise, Ensemble (without context and advice), LyapunovDescent, LyapunovFrankWolfe,
    SinhaVaze, Resolve and the paper's three play; of these BanditPrimalDual sees two numbers a
    round, the others gradients or whole functions.

    \b
    Examples:
      tidewolf compare
      tidewolf compare routing sdp --rounds 500 --seeds 0,1,2
      tidewolf compare carbon --learner LyapunovDescent --learner SinhaVaze --budgets 1,10
      tidewolf compare --json | jq '.standings[].saving'
    """
    from tidewolf import problems
    from tidewolf.evaluation.comparison import FILES, require_free
    from tidewolf.experiments.compare import compare
    from tidewolf.experiments.keys import learner_named
    from tidewolf.report import comparison as page

    builders = {name: problems.named(name) for name in problem or ["routing"]}
    learners = {name: learner_named(name) for name in learner or _CONTESTANTS}
    swept = {
        "cautions": parse_numbers(cautions, "--cautions", float),
        "budgets": parse_numbers(budgets, "--budgets", float),
    }
    seeded = parse_numbers(seeds, "--seeds", int)
    streams = {name: partial(build, rounds) for name, build in builders.items()}
    require_free(out, [*FILES, "comparison.html", *page.pictures(list(streams)).values()], force)
    with screen.tournament(not quiet) as follow:
        found = compare(learners, streams, **swept, seeds=seeded, progress=follow)
    found.save(out, force=force)
    page.write_comparison_page(out / "comparison.html", found, date=datetime.now(UTC))
    page.write_pictures(out, found)
    if as_json:
        typer.echo(json_text(found.summary()), nl=False)
    elif not quiet:
        screen.show_comparison(found, out / "comparison.html")


@app.command()
def check(
    name: Annotated[
        str,
        typer.Argument(metavar="MODULE:NAME", help="A class or an instance in a module of yours."),
    ],
    seed: Annotated[int, typer.Option(metavar="S", help="The seed of everything random.")] = 0,
    laws: Annotated[bool, typer.Option("--laws", help="Also name every law that is kept.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the outcome as JSON, and nothing else.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress line and no list.")
    ] = False,
) -> None:
    """Put a set, a batch of functions or a learner of your own to the laws.

    Says of every example of the class (or of the instance) whether it keeps them. The exit code is
    0 where all do; else it is 2, and one sentence says which law is broken, by which example, with
    the numbers. The module is imported as Python does, from the current directory too.

    \b
    Examples:
      tidewolf check mymodule:MySet
      tidewolf check mymodule:MyLearner --seed 7
      tidewolf check tidewolf.sets:Simplex --laws
      tidewolf check mymodule:MySet --json | jq '.examples[].broken'
    """
    from tidewolf.cli.check import found, outcome

    seed = as_count(seed, "The seed", least=0)
    kind, examples = found(name)
    outcomes = []
    for number, example in enumerate(examples, start=1):
        with screen.checking(not quiet, f"example {number} of {len(examples)}") as kept:
            outcomes.append(outcome(kind, example, seed, kept))
        if not (quiet or as_json):
            screen.show_outcome(outcomes[-1], named=laws)
    if as_json:
        record = {
            "name": name,
            "kind": kind.name,
            "seed": seed,
            "examples": [each._asdict() for each in outcomes],
        }
        typer.echo(json_text(record), nl=False)
    for number, each in enumerate(outcomes, start=1):
        if each.broken is not None:
            raise LawBroken(f"Example {number} of {len(outcomes)}: {each.broken}")


@app.command("list")
def list_(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Show the settings of this one, each explained."),
    ] = None,
) -> None:
    """What there is: problems, learners, rivals, sets, functions; or the settings of one of them.

    These are the names that experiment files and --learner take, and the settings are the keys
    beside them. In Python they are found under tidewolf.problems, tidewolf.learners,
    tidewolf.rivals, tidewolf.sets and tidewolf.functions.

    \b
    Examples:
      tidewolf list
      tidewolf list Ensemble
      tidewolf list | grep Simplex
    """
    from tidewolf.cli.members import about, members, settings

    if name is not None:
        screen.show_settings(name, about(name), settings(name))
        return
    for title, found in members().items():
        screen.show_members(title, found)
