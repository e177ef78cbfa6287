"""`tidewolf list`: everything that has a name, and the settings of each."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidewolf.cli import screen
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import did_you_mean


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
    for title, found in every.items():
        if name in found:
            of_learners = title in ("learners", "baselines")
            settings = learner_keys(name) if of_learners else kind_keys(found[name])
            if title == "problems":
                settings = problem_keys(name)
            screen.show_settings(name, _summary(found[name]), settings)
            return
    known = [each for found in every.values() for each in found]
    raise InvalidInput(
        f"There is nothing called {name!r}; see `tidewolf list`.{did_you_mean(name, known)}"
    )


def _summary(member: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((member.__doc__ or "").strip().partition("\n\n")[0].split())
