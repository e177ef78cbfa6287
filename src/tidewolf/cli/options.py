"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer


def opt(metavar: str, help: str, *names: str) -> Any:
    """An option with a value."""
    return typer.Option(*names, metavar=metavar, help=help)


def flag(help: str, *names: str) -> Any:
    """An option without a value."""
    return typer.Option(*names, help=help)


def _experiments(incomplete: str) -> list[str]:
    """The values of EXPERIMENT, for shell completion."""
    from tidewolf import problems

    here = (str(path) for path in sorted(Path().glob("*.toml")))
    return [name for name in (*here, *problems.every()) if name.startswith(incomplete)]


def _learners(incomplete: str) -> list[str]:
    """The values of --learner, for shell completion."""
    from tidewolf import baselines, learners

    names = (*learners.every(), *baselines.every())
    return [name for name in names if name.startswith(incomplete)]


ExperimentName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        help="A built-in problem (`tidewolf list`) or a TOML file (`tidewolf new`).",
        autocompletion=_experiments,
    ),
]
ExperimentNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[EXPERIMENT]...",
        help="Built-in problems or TOML files; routing by default.",
        autocompletion=_experiments,
    ),
]
LearnerNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A learner or a baseline; repeat it for several.",
        autocompletion=_learners,
    ),
]
Seeds: TypeAlias = Annotated[str | None, opt("S,...", "The random seeds; 0 by default.")]
Jobs: TypeAlias = Annotated[
    int | None,
    opt("N", "How many processes; by default 1 for compare, for sweep one per processor."),
]
Dask: TypeAlias = Annotated[str | None, opt("ADDRESS", "Use the Dask cluster of this scheduler.")]
AsJson: TypeAlias = Annotated[bool, flag("Print the results as JSON, and nothing else.", "--json")]
Quiet: TypeAlias = Annotated[bool, flag("Print no progress and no results.", "--quiet", "-q")]
