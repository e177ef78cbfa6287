"""What `tidewolf check` looks at: a set, a batch of functions or a learner of the user's, a class
or an instance, and its checks.

Code that is not ours may do anything while it is imported or asked: whatever it raises becomes one
sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from typing import Any, NamedTuple

from tidewolf import functions, sets, testing
from tidewolf.core.errors import InvalidInput, NotSupported, WrongType
from tidewolf.core.randomness import generator
from tidewolf.methods.base import Learner
from tidewolf.testing.checks import OnPass, sentence_of

_HORIZON = 60
"""Rounds that the examples of a learner are made for."""


class Kind(NamedTuple):
    """What can be checked: its name, its class, the check, and the examples of a class of it."""

    name: str
    base: type
    check: Callable[..., None]
    examples: Callable[[Any], Sequence[Any]]


class Outcome(NamedTuple):
    """What became of one example: the checks it passes, and the sentence on the one it fails."""

    example: str
    passed: list[str]
    broken: str | None


def found(name: str) -> tuple[Kind, list[Any]]:
    """The kind of thing called module:Name, importable from the current directory, and the examples
    of it to check.
    """
    module, colon, member = name.partition(":")
    if not (module and colon and member):
        raise InvalidInput(
            f"What to check is called module:Name, such as mymodule:MySet, not {name!r}."
        )
    thing = _member(_imported(module), module, member)
    for kind in _KINDS:
        if isinstance(thing, kind.base):
            return kind, [thing]
        if isinstance(thing, type) and issubclass(thing, kind.base):
            return kind, _examples(thing, kind)
    what = (
        f"the class {thing.__name__}"
        if isinstance(thing, type)
        else f"of type {type(thing).__name__}"
    )
    raise WrongType(
        f"{name} is {what}; a set (ConvexSet), a batch of functions (Batch) or a learner (Learner) "
        "can be checked."
    )


def outcome(kind: Kind, example: Any, seed: int, on_pass: OnPass) -> Outcome:
    """Run the checks on one example, reporting each that passes."""
    checks, broken = list[str](), None

    def passed(check_name: str) -> None:
        checks.append(check_name)
        on_pass(check_name)

    try:
        kind.check(example, seed=seed, on_pass=passed)
    except Exception as error:
        broken = sentence_of(error)
    return Outcome(repr(example), checks, broken)


def _imported(module: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            hint = " Leave out the .py." if module.endswith(".py") else ""
            raise InvalidInput(
                f"There is no module called {module!r} in {here}, nor is one installed.{hint}"
            ) from None
        raise InvalidInput(
            f"The module {module} cannot be imported: {sentence_of(error)}"
        ) from error
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"The module {module} cannot be imported: {sentence_of(error)}"
        ) from error


def _member(module: Any, name: str, member: str) -> Any:
    try:
        return getattr(module, member)
    except AttributeError:
        near = get_close_matches(member, dir(module), n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"The module {name} has nothing called {member!r}.{hint}") from None


def _examples(thing: Any, kind: Kind) -> list[Any]:
    if isabstract(thing):
        raise InvalidInput(
            f"{thing.__name__} is no complete {kind.name}: it lacks "
            f"{', '.join(sorted(thing.__abstractmethods__))}."
        )
    try:
        examples = list(kind.examples(thing))
    except Exception as error:
        raise InvalidInput(
            f"The examples of {thing.__name__} cannot be made: {sentence_of(error)}"
        ) from error
    if not examples:
        raise InvalidInput(
            f"{thing.__name__}.examples gives nothing to check; let it give at least one "
            f"{kind.name}."
        )
    return examples


def _learners(thing: Any) -> list[Any]:
    """On a simplex, a ball and a flow; a learner may refuse sets that it cannot work with, but not
    all of them.
    """
    learners, refused = list[Any](), list[NotSupported]()
    for K in (sets.Simplex(3), sets.L2Ball(2), sets.FlowPolytope.examples()[0]):
        try:
            learners += thing.examples(K, _HORIZON)
        except NotSupported as error:
            refused.append(error)
    if refused and not learners:
        raise refused[0]
    return learners


def _check_function(f: functions.Batch, *, seed: int, on_pass: OnPass) -> None:
    """Where functions are not defined everywhere, positive points are tried; others are a matter
    for `check_function` itself.
    """
    points = (
        None
        if f.domain is None
        else list(generator(seed, "tidewolf check").uniform(0.5, 2.0, (4, *f.shape)))
    )
    testing.check_function(f, seed=seed, points=points, on_pass=on_pass)


_KINDS = (
    Kind("set", sets.ConvexSet, testing.check_set, lambda thing: thing.examples()),
    Kind("batch of functions", functions.Batch, _check_function, lambda thing: thing.examples()),
    Kind("learner", Learner, testing.check_learner, _learners),
)
