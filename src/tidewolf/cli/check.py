"""`tidewolf check`: test a set, a batch of functions or a learner of the user's, a class or an
instance.

The user's code may raise anything while it is imported or called: that becomes one error message.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from typing import Annotated, Any

import typer

from tidewolf.cli import screen
from tidewolf.cli.screen import AsJson, Quiet, flag, opt
from tidewolf.core.arguments import shown
from tidewolf.core.arrays import as_count
from tidewolf.core.errors import CheckFailed, InvalidInput, NotSupported, WrongType
from tidewolf.core.names import did_you_mean

_HORIZON = 60
"""Rounds that the examples of a learner are made for."""


def check_command(
    name: Annotated[
        str, typer.Argument(metavar="MODULE:NAME", help="A class or an instance of your own.")
    ],
    seed: Annotated[int, opt("S", "The random seed.")] = 0,
    checks: Annotated[bool, flag("Also name every check that passes.", "--checks")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check a set, a batch of functions or a learner of your own.

    Reports for every example of the class (or for the instance) whether it passes. The exit code is
    0 if all do; else it is 2, and one line names the check that fails, the example, and the
    numbers. The module is imported as Python does, from the current directory too.

    \b
    Examples:
      tidewolf check mymodule:MySet
      tidewolf check mymodule:MyLearner --seed 7
      tidewolf check tidewolf.sets:Simplex --checks
      tidewolf check mymodule:MySet --json | jq '.examples[].broken'
    """
    from tidewolf.testing.checks import sentence_of

    seed = as_count(seed, "The seed", least=0)
    kind, check, examples = _found(name)
    outcomes: list[dict[str, Any]] = []
    for number, example in enumerate(examples, start=1):
        passed, broken = list[str](), None
        with screen.checking(not quiet, f"example {number} of {len(examples)}") as moved:

            def on_pass(check_name: str, passed: list[str] = passed, moved: Any = moved) -> None:
                passed.append(check_name)
                moved(check_name)

            try:
                check(example, seed=seed, on_pass=on_pass)
            except Exception as error:
                broken = sentence_of(error)
        outcomes.append({"example": repr(example), "passed": passed, "broken": broken})
        if not (quiet or as_json):
            screen.show_outcome(repr(example), passed, broken is None, named=checks)
    if as_json:
        screen.print_json({"name": name, "kind": kind, "seed": seed, "examples": outcomes})
    for number, each in enumerate(outcomes, start=1):
        if each["broken"] is not None:
            raise CheckFailed(f"Example {number} of {len(outcomes)}: {each['broken']}")


def _found(name: str) -> tuple[str, Callable[..., None], list[Any]]:
    """What kind of thing module:Name is, how it is checked, and its examples."""
    from tidewolf import functions, sets, testing
    from tidewolf.methods.base import Learner

    kinds: tuple[tuple[str, type, Callable[..., None], Callable[[Any], Sequence[Any]]], ...] = (
        ("set", sets.ConvexSet, testing.check_set, lambda kind: kind.examples()),
        ("batch of functions", functions.Batch, _check_function, lambda kind: kind.examples()),
        ("learner", Learner, testing.check_learner, _learners),
    )
    module, _, member = name.partition(":")
    if not (module and member):
        raise InvalidInput(f"Expected module:Name, such as mymodule:MySet, not {name!r}.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    with _user_code(f"The module {module} cannot be imported"):
        found = import_module(module)
    if not hasattr(found, member):
        hint = did_you_mean(member, dir(found))
        raise InvalidInput(f"The module {module} has nothing called {member!r}.{hint}")
    thing: Any = getattr(found, member)
    for kind, base, check, examples_of in kinds:
        if isinstance(thing, base):
            return kind, check, [thing]
        if isinstance(thing, type) and issubclass(thing, base):
            if isabstract(thing):
                lacks = ", ".join(sorted(getattr(thing, "__abstractmethods__", ())))
                raise InvalidInput(f"{member} is not a complete {kind}: it lacks {lacks}.")
            with _user_code(f"The examples of {member} cannot be made"):
                examples = list(examples_of(thing))
            if not examples:
                raise InvalidInput(f"{member}.examples must return at least one {kind}.")
            return kind, check, examples
    kind_names = "a set (ConvexSet), a batch of functions (Batch) or a learner (Learner)"
    raise WrongType(f"{name} must be {kind_names}, not {shown(thing)}.")


@contextmanager
def _user_code(failure: str) -> Iterator[None]:
    """Whatever the user's code raises becomes one error."""
    from tidewolf.testing.checks import sentence_of

    try:
        yield
    except (Exception, SystemExit) as error:
        raise InvalidInput(f"{failure}: {sentence_of(error)}") from error


def _learners(kind: Any) -> list[Any]:
    """On a simplex, a ball and a flow; a learner may refuse some of these sets, but not all."""
    from tidewolf import sets

    learners, refused = list[Any](), list[NotSupported]()
    for K in (sets.Simplex(3), sets.L2Ball(2), sets.FlowPolytope.examples()[0]):
        try:
            learners += kind.examples(K, _HORIZON)
        except NotSupported as error:
            refused.append(error)
    if refused and not learners:
        raise refused[0]
    return learners


def _check_function(f: Any, *, seed: int, on_pass: Callable[[str], None]) -> None:
    """Functions that are not defined everywhere are tried at positive points."""
    from tidewolf import testing
    from tidewolf.core.randomness import generator

    points = None
    if f.domain is not None:
        points = list(generator(seed, "tidewolf check").uniform(0.5, 2.0, (4, *f.shape)))
    testing.check_function(f, seed=seed, points=points, on_pass=on_pass)
