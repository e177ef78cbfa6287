"""Keys of experiment files: the settings that sets, functions, problems and learners declare.

    n: Annotated[int, Count("How many entries a point has.")]          n = 3

What a file may write for a key, and what is refused, is the declaration's business
(`core.settings`). A setting that takes a set, or several, is a table with a `kind`, or a list of
such. An array may be the name of a table of numbers. A set that is made of links takes the name of
a graph's file as `graph`; there, text in place of an array is a column of its edge list.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin

from tidewolf import baselines as _baselines
from tidewolf import functions as _functions
from tidewolf import learners as _learners
from tidewolf import problems as _problems
from tidewolf import sets as _sets
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import did_you_mean
from tidewolf.core.settings import (
    Check,
    Flag,
    Number,
    Numbers,
    Setting,
    Text,
    constructor_of,
    settings_of,
)
from tidewolf.experiments.choice import Choice
from tidewolf.methods.context.season import PeriodSetting
from tidewolf.networks import Network
from tidewolf.networks.tunnels import LinkRows
from tidewolf.sets import ConvexSet
from tidewolf.sets.graphs import Commodities, Links, Node, Supplies

Keys = Mapping[str, Setting]
NETWORK = "Network"
"""What a file may call a set that is described by a graph and what goes over it."""


_NOTHING = Setting("", None, None, False, None).words
"""What a file may write for a setting that only Python code can give."""


class FileKey(Setting):
    """A key that belongs to files, and to no class: it is checked where it is read."""


def key(name: str, check: Check, default: Any = None) -> FileKey:
    """A key that belongs to files."""
    return FileKey(name, Any, check, True, default)


_DIRECTED = key(
    "directed", Flag("Whether links carry one way only. None: as the graph's file says.")
)
_ONE_FLOW = (
    key("lengths", Text("The column of the edge list that holds the lengths of links.")),
    key(
        "demand",
        Number(
            "How much is sent, in the unit of the capacities; points are shares of it.", above=0.0
        ),
        1.0,
    ),
)
"""What a file may say of one flow from a source to a target, beside what the set declares."""


_SEASON = key("season", PeriodSetting("The period of a `Season` that is added to the experts."))
"""What a file may say of an Ensemble, beside what it declares."""


class Inner(NamedTuple):
    """What a setting is made of: things that a file describes by tables of their own."""

    kind: type
    several: bool


def keys_of(make: Any, *without: str) -> dict[str, Setting]:
    """The settings of what `make` makes that a file can give, by key."""
    return {
        setting.key: setting
        for name, setting in _by_name(make).items()
        if name not in without and _readable(setting)
    }


def problem_keys(name: str) -> dict[str, Setting]:
    """The settings of a built-in problem that a file can give."""
    return keys_of(_problems.named(name), "K", "rounds", "seed")


def takes_a_set(problem: str) -> bool:
    """Whether a built-in problem is one of any set."""
    return "K" in inspect.signature(_problems.named(problem)).parameters


def learner_keys(name: str) -> dict[str, Setting]:
    """The settings of a learner or baseline that a file can give."""
    known = keys_of(learner_named(name), "K")
    return known | ({"season": _SEASON} if "experts" in known else {})


@cache
def kind_keys(kind: type) -> Keys:
    """The settings of a set or a batch of functions that a file can give."""
    known = keys_of(constructor_of(kind))
    if "graph" in known and carries_flow(known):
        one_flow = {"source", "target"} <= known.keys()
        more = (_DIRECTED, *(_ONE_FLOW if one_flow else ()))
        known |= {each.name: each for each in more if each.name not in known}
    return known


def carries_flow(known: Keys) -> bool:
    """Whether something goes from node to node, so that it matters which way a link leads."""
    return any(isinstance(each.check, Node | Commodities | Supplies) for each in known.values())


def learner_named(name: str) -> Any:
    """The learner or rival of this name."""
    known = {**_learners.every(), **_baselines.every()}
    if name in known:
        return known[name]
    raise InvalidInput(
        f"There is no learner called {name!r}; there are {', '.join(known)}."
        f"{did_you_mean(name, known)}"
    )


@cache
def set_kinds() -> dict[str, type[ConvexSet]]:
    """The sets that a file can describe, by name."""
    return {kind.__name__: kind for kind in _sets.every() if _describable(kind)}


@cache
def function_kinds() -> dict[str, type[Batch]]:
    """The batches of functions that a file can describe, by name."""
    return {kind.__name__: kind for kind in _functions.every() if _describable(kind)}


def kind_named(name: str) -> type:
    """The set or the batch of functions of this name."""
    return {**set_kinds(), **function_kinds(), NETWORK: Network}[name]


def is_network(choice: Choice) -> bool:
    """Whether a set is described by a graph and what goes over it: a network, or one flow."""
    return choice.name in (NETWORK, "FlowPolytope") and "graph" in choice.given


def inner_of(setting: Setting) -> Inner | None:
    """What a setting is made of, where that is a set or a batch of functions, or several."""
    for hint_ in _alternatives(setting.takes):
        several = get_origin(hint_) in (tuple, list, Sequence)
        kind = get_args(hint_)[0] if several else hint_
        for base in (ConvexSet, Batch):
            if isinstance(kind, type) and issubclass(kind, base):
                return Inner(base, several)
    return None


def names_file(known: Keys, name: str, value: Any) -> bool:
    """Whether the value of a key is the name of a file."""
    check = known[name].check if name in known else None
    column = isinstance(check, Numbers) and "graph" in known
    named = isinstance(check, Numbers | Links | LinkRows | Commodities | Supplies)
    return isinstance(value, str) and named and not column


def moved(choice: Choice, move: Callable[[str], Path]) -> Choice:
    """A set or a batch of functions with every name of a file replaced by another path."""
    known = kind_keys(kind_named(choice.name))

    def again(name: str, value: Any) -> Any:
        if isinstance(value, Choice):
            return moved(value, move)
        if isinstance(value, tuple) and value and isinstance(value[0], Choice):
            return tuple(moved(each, move) for each in value)
        return str(move(value)) if names_file(known, name, value) else value

    return Choice.of(choice.name, {name: again(name, value) for name, value in choice.settings})


def with_defaults(choice: Choice, known: Keys) -> Choice:
    """With the defaults of what is not set, but for the seed, which is the run's, and what no file
    can say.
    """
    given = {
        name: setting.default
        for name, setting in known.items()
        if name != "seed" and read_plain(setting, setting.default) is not None
    } | choice.given
    return Choice.of(choice.name, {name: given[name] for name in known if name in given})


def read_plain(setting: Setting, value: Any) -> Any:
    """What a file, or a default, says; None where it is of another kind."""
    value = list(value) if isinstance(value, tuple) else value
    return None if setting.check is None else setting.check.read(value)


def words_of(setting: Setting) -> str:
    """What a file may write for a setting."""
    part = inner_of(setting)
    if part is None:
        return setting.words
    what = "set" if part.kind is ConvexSet else "function"
    one = f"a table that describes a {what}"
    return f"a list of tables, each of which describes a {what}" if part.several else one


def format_value(value: Any) -> str:
    """A value of a file, as the file would say it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping | list):
        return "a table" if isinstance(value, Mapping) else "a list"
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def _readable(setting: Setting) -> bool:
    return setting.words != _NOTHING or inner_of(setting) is not None


def _describable(kind: type) -> bool:
    settings = _by_name(constructor_of(kind)).values()
    return bool(settings) and all(_readable(each) or not each.required for each in settings)


def _by_name(make: Any) -> dict[str, Setting]:
    """The settings that are given by name: not `*sets`."""
    parameters = inspect.signature(make).parameters
    return {
        name: setting
        for name, setting in settings_of(make).items()
        if parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL
    }


def _alternatives(takes: Any) -> tuple[Any, ...]:
    return get_args(takes) if get_origin(takes) in (Union, types.UnionType) else (takes,)
