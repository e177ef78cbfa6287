"""The commands and their exit codes: bad input gives code 2 and one line, never a traceback."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Annotated, Any

import typer
from typer.main import get_command

from tidewolf import __version__
from tidewolf.cli import screen
from tidewolf.cli.check import check_command
from tidewolf.cli.live import live_command
from tidewolf.cli.options import AsJson
from tidewolf.cli.run import compare_command, new, report, resume, run_command, sweep_command
from tidewolf.cli.service import backup_command, restore_command, serve_command
from tidewolf.core.errors import Interrupted, InvalidInput, TidewolfError, TidewolfWarning
from tidewolf.core.jit import LOGGER
from tidewolf.core.names import did_you_mean

# click's own, or that of the click inside typer: it depends on typer's version
_UsageError: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


@cache
def _command() -> Any:
    """The commands, built once per process."""
    return get_command(app)


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line; every error meant for the user becomes one line on stderr."""
    words, level, code = list(arguments) or ["--help"], LOGGER.level, 2
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, warnings.showwarning)
            if "--quiet" in words or "-q" in words:  # no notices such as that of compiling
                LOGGER.setLevel(logging.WARNING)
            found = _command().main(args=words, prog_name="tidewolf", standalone_mode=False)
        return found if isinstance(found, int) else 0
    except (typer.Abort, KeyboardInterrupt):
        message, code = "Interrupted.", 130
    except _UsageError as error:
        message = error.format_message()
        message += "" if message.endswith((".", "?")) else "."
    except TidewolfError as error:
        message, code = str(error), 130 if isinstance(error, Interrupted) else 2
    except MemoryError as error:
        detail = f": {error}" if str(error) else ""
        message = f"There is not enough memory{detail}. Ask for less, or use a larger machine."
    except OSError as error:
        if error.filename is None:
            raise
        message = f"{error.filename} cannot be used: {error.strerror}."
    finally:
        LOGGER.setLevel(level)
    sys.stderr.write(f"{message}\n")
    return code


def _show_warning(show: Any, message: Any, category: Any, *where: Any, **more: Any) -> None:
    """Warnings of ours are one line on stderr, without the file and line of the code."""
    if issubclass(category, TidewolfWarning):
        sys.stderr.write(f"Warning: {message}\n")
    else:
        show(message, category, *where, **more)


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
    from tidewolf.doctor import doctor

    raise typer.Exit(doctor(as_json))


def list_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show the settings of this one.")
    ] = None,
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
    from tidewolf import baselines, functions, learners, problems, sets
    from tidewolf.experiments.keys import kind_keys, learner_keys, problem_keys
    from tidewolf.networks import Network

    every: dict[str, dict[str, Any]] = {
        "problems": {**problems.every()},
        "learners": {**learners.every()},
        "baselines": {**baselines.every()},
        "networks": {"Network": Network},
        "sets": {kind.__name__: kind for kind in sets.every()},
        "functions": {kind.__name__: kind for kind in functions.every()},
    }
    if name is None:
        for title, found in every.items():
            screen.show_listing(title, {key: _summary(found[key]) for key in found})
        return
    keys_of = {"learners": learner_keys, "baselines": learner_keys, "problems": problem_keys}
    for title, found in every.items():
        if name in found:
            settings = keys_of[title](name) if title in keys_of else kind_keys(found[name])
            screen.show_settings(name, _summary(found[name]), settings)
            return
    near = did_you_mean(name, [each for found in every.values() for each in found])
    raise InvalidInput(f"There is nothing called {name!r}; see `tidewolf list`.{near}")


def _summary(member: Any) -> str:
    """The first paragraph of a docstring, on one line."""
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
      tidewolf compare my.toml    which caution to choose
      tidewolf check my:MySet     test a set, function or learner of your own
      tidewolf sweep routing      many runs in one table; a kill loses nothing
      tidewolf live network.toml --db routing.db    rows in, decisions out
      tidewolf serve --data sessions                many sessions over HTTP
      tidewolf doctor             versions, folders, a self-test
    """


_COMMANDS: tuple[Callable[..., None], ...] = (
    *(run_command, resume, report, new, sweep_command, compare_command, live_command),
    *(serve_command, backup_command, restore_command, check_command, doctor_command, list_command),
)
for _function in _COMMANDS:
    app.command(_function.__name__.removesuffix("_command"))(_function)
