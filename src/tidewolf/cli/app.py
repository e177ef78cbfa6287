"""The commands, and how they end.

Bad input ends with exit code 2 and one sentence, never with a traceback.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from tidewolf import __version__
from tidewolf.cli import screen
from tidewolf.cli.backup import backup_command, restore_command
from tidewolf.cli.compare import compare_command
from tidewolf.cli.live import live_command
from tidewolf.cli.run import json_text, new, report, resume, run_command
from tidewolf.cli.serve import serve_command
from tidewolf.cli.sweep import sweep_command
from tidewolf.core.arrays import as_count
from tidewolf.core.errors import CheckFailed, Interrupted, TidewolfError, TidewolfWarning
from tidewolf.core.jit import LOGGER

# click's own, or that of the click inside typer: it depends on typer's version
_UsageError: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


@cache
def _command() -> Any:
    """The commands, built once per process."""
    return get_command(app)


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line; every error meant for the user becomes a sentence on stderr."""
    words = list(arguments) or ["--help"]
    try:
        with _warnings_as_sentences(), _quiet("--quiet" in words or "-q" in words):
            code = _command().main(args=words, prog_name="tidewolf", standalone_mode=False)
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


@contextmanager
def _quiet(asked: bool) -> Iterator[None]:
    """Without notices such as that of compiling."""
    level = LOGGER.level
    if asked:
        LOGGER.setLevel(logging.WARNING)
    try:
        yield
    finally:
        LOGGER.setLevel(level)


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
      tidewolf compare my.toml    which caution to choose: what each step costs and buys
      tidewolf check my:MySet     the laws, on a class of your own
      tidewolf sweep routing      many runs at once, in a table that a kill does not lose
      tidewolf live network.toml --db routing.db    rows in, decisions out, one by one
      tidewolf serve --data sessions                many sessions over HTTP
      tidewolf doctor             versions, folders, and a self-test of this installation
    """


app.command("run")(run_command)
app.command()(resume)
app.command()(report)
app.command()(new)
app.command("sweep")(sweep_command)
app.command("compare")(compare_command)
app.command("live")(live_command)
app.command("serve")(serve_command)
app.command("backup")(backup_command)
app.command("restore")(restore_command)


@app.command()
def check(
    name: Annotated[
        str,
        typer.Argument(metavar="MODULE:NAME", help="A class or an instance in a module of yours."),
    ],
    seed: Annotated[int, typer.Option(metavar="S", help="The seed of everything random.")] = 0,
    checks: Annotated[
        bool, typer.Option("--checks", help="Also name every law that is kept.")
    ] = False,
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
      tidewolf check tidewolf.sets:Simplex --checks
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
            screen.show_outcome(outcomes[-1], named=checks)
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
            raise CheckFailed(f"Example {number} of {len(outcomes)}: {each.broken}")


@app.command("doctor")
def doctor_command(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as JSON, and nothing else.")
    ] = False,
) -> None:
    """Check this installation: versions, folders, and a short run with its certificate.

    Each line is ok, a warning, absent (an optional part) or fails. The exit code is 1 if a needed
    library is missing or the self-test fails, else 0.

    \b
    Examples:
      tidewolf doctor
      tidewolf doctor --json | jq '.findings[] | select(.status == "fails")'
    """
    from tidewolf.doctor import doctor

    raise typer.Exit(doctor(as_json))


@app.command("list")
def list_(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Show the settings of this one, each explained."),
    ] = None,
) -> None:
    """What there is: problems, learners, rivals, networks, sets, functions; or the settings of one.

    These are the names that experiment files and --learner take, and the settings are the keys
    beside them. In Python they are found under tidewolf.problems, tidewolf.learners,
    tidewolf.baselines, tidewolf.sets and tidewolf.functions.

    \b
    Examples:
      tidewolf list
      tidewolf list Ensemble
      tidewolf list | grep Simplex
    """
    from tidewolf.cli.listing import about, listing, settings

    if name is not None:
        screen.show_settings(name, about(name), settings(name))
        return
    for title, found in listing().items():
        screen.show_listing(title, found)
