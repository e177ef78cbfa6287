"""What `tidewolf list` shows: everything that has a name, and the settings of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidewolf import baselines, functions, learners, problems, sets
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import did_you_mean
from tidewolf.core.settings import Setting
from tidewolf.experiments.keys import kind_keys, learner_keys, problem_keys
from tidewolf.networks import Network


def listing() -> dict[str, dict[str, str]]:
    """Names and what they are, under the titles of their lists."""
    return {
        title: {name: _summary(member) for name, member in found.items()}
        for title, found in _every().items()
    }


def about(name: str) -> str:
    """What the one of this name is."""
    return _summary(_found(name)[1])


def settings(name: str) -> Mapping[str, Setting]:
    """The settings that a file can give of the one of this name, by key."""
    title, member = _found(name)
    if title == "problems":
        return problem_keys(name)
    return learner_keys(name) if title in ("learners", "baselines") else kind_keys(member)


def _found(name: str) -> tuple[str, Any]:
    every = _every()
    for title, found in every.items():
        if name in found:
            return title, found[name]
    known = [each for found in every.values() for each in found]
    raise InvalidInput(
        f"There is nothing called {name!r}; see `tidewolf list`.{did_you_mean(name, known)}"
    )


def _every() -> dict[str, dict[str, Any]]:
    return {
        "problems": {**problems.every()},
        "learners": {**learners.every()},
        "baselines": {**baselines.every()},
        "networks": {"Network": Network},
        "sets": {kind.__name__: kind for kind in sets.every()},
        "functions": {kind.__name__: kind for kind in functions.every()},
    }


def _summary(member: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((member.__doc__ or "").strip().partition("\n\n")[0].split())
