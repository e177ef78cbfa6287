"""What several commands read alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import typer

from tidewolf.core.errors import InvalidInput

N = TypeVar("N", int, float)


def experiments(incomplete: str) -> list[str]:
    """What EXPERIMENT may be, for the shell to complete."""
    from tidewolf import problems

    here = [str(path) for path in sorted(Path().glob("*.toml"))]
    return [name for name in (*here, *problems.every()) if name.startswith(incomplete)]


def learners(incomplete: str) -> list[str]:
    """What --learner may be, for the shell to complete."""
    from tidewolf import baselines
    from tidewolf.learners import every

    return [name for name in (*every(), *baselines.every()) if name.startswith(incomplete)]


ExperimentName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        help="A built-in problem (`tidewolf list`) or a TOML file (`tidewolf new`).",
        autocompletion=experiments,
    ),
]
ExperimentNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[EXPERIMENT]...",
        help="Built-in problems or TOML files; routing by default.",
        autocompletion=experiments,
    ),
]
LearnerNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A learner or a rival; give it again for several.",
        autocompletion=learners,
    ),
]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="How many processes; one in a comparison, else as many as there are processors.",
    ),
]
Dask: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="The scheduler of a Dask cluster that plays instead."),
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the results as JSON, and nothing else.")
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress line and no table.")
]


def parse_numbers(text: str, option: str, kind: Callable[[str], N]) -> list[N]:
    """The numbers of an option, which have commas between."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"{option} takes {'whole ' * (kind is int)}numbers with commas between, such as 1,10, "
            f"not {text!r}."
        ) from None
