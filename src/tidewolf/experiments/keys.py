"""Keys of experiment files: the settings that sets, functions, problems and learners declare.

    n: Annotated[int, Count("How many entries a point has.")]          n = 3

What a file may write for a key, and what is refused, is the declaration's business
(`core.settings`); here tables are read by it, and errors get the line and column of the setting
they carry. A setting that takes a set, or several, is a table with a `kind`, or a list of such.
An array may be the name of a table of numbers. A set that is made of links takes the name of a
graph's file as `graph`; there, text in place of an array is a column of its edge list.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin

from tidewolf import functions as _functions
from tidewolf import learners as _learners
from tidewolf import problems as _problems
from tidewolf import rivals as _rivals
from tidewolf import sets as _sets
from tidewolf.core.arrays import LARGEST_COUNT, as_count
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, TidewolfError
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
from tidewolf.experiments.choice import Choice, sayable
from tidewolf.experiments.toml import Document, hint
from tidewolf.sets import ConvexSet
from tidewolf.sets.graphs.settings import Commodities, Links, Node, Supplies

Keys = Mapping[str, Setting]


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
    """The settings of a learner or rival that a file can give."""
    return keys_of(learner_named(name), "K")


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
    known = {**_learners.every(), **_rivals.every()}
    if name in known:
        return known[name]
    raise InvalidInput(
        f"There is no learner called {name!r}; there are {', '.join(known)}.{hint(name, known)}"
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
    return {**set_kinds(), **function_kinds()}[name]


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
    named = isinstance(check, Numbers | Links | Commodities | Supplies)
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


def read_settings(
    document: Document,
    path: tuple[str | int, ...],
    table: Mapping[str, Any],
    known: Keys,
    owner: str,
) -> dict[str, Any]:
    """The settings of a table, frozen; keys that nobody knows are refused, and those missing."""
    settings = {}
    for name, value in table.items():
        if name not in known:
            accepted = f"it takes {', '.join(known)}" if known else "it takes none"
            raise document.refused(
                f"{owner} has no setting called {name!r}; {accepted}.{hint(name, known)}",
                *path,
                name,
            )
        settings[name] = read_value(document, (*path, name), value, known[name])
    for name, setting in known.items():
        if setting.required and name not in settings:
            raise document.refused(f"{owner} needs {name}, {words_of(setting)}.", *path)
    return {name: settings[name] for name in known if name in settings}


def read_plain(setting: Setting, value: Any) -> Any:
    """What a file, or a default, says; None where it is of another kind."""
    value = list(value) if isinstance(value, tuple) else value
    return None if setting.check is None else setting.check.read(value)


def read_value(
    document: Document, path: tuple[str | int, ...], value: Any, setting: Setting
) -> Any:
    """The value of one key, frozen; what is of another kind is refused."""
    part = inner_of(setting)
    if part is not None:
        kinds: Mapping[str, type] = set_kinds() if part.kind is ConvexSet else function_kinds()
        if not part.several:
            return read_choice(document, path, value, kinds)
        if isinstance(value, list) and value:
            return tuple(
                read_choice(document, (*path, i), each, kinds) for i, each in enumerate(value)
            )
    found = None if part is not None else read_plain(setting, value)
    if found is None or not sayable(found):
        raise document.refused(
            f"{setting.key} is {words_of(setting)}, not {format_value(value)}.", *path
        )
    try:
        if type(value) is int:
            as_count(value, setting.key, least=-LARGEST_COUNT)
        if isinstance(setting, FileKey) and setting.check is not None:
            return setting.check(found, setting.key)
    except InvalidInput as error:
        raise document.refused(str(error), *path) from None
    return found


def read_choice(
    document: Document,
    path: tuple[str | int, ...],
    table: Any,
    kinds: Mapping[str, type],
    *optional: str,
) -> Choice:
    """A set or a batch of functions: a table with a kind and its settings, some of which may be
    left out here.
    """
    name = ".".join(map(str, path))
    if not isinstance(table, dict):
        raise document.refused(
            f'{name} is a table with a kind, such as kind = "{next(iter(kinds))}", not '
            f"{format_value(table)}.",
            *path,
        )
    kind = table.get("kind", _implied(table, kinds))
    if not isinstance(kind, str):
        raise document.refused(f"kind is text, not {format_value(kind)}.", *path, "kind")
    if kind not in kinds:
        what = "set" if set_kinds().keys() == kinds.keys() else "function"
        said = (
            f"there is no {what} called {kind!r} that a file can describe"
            if kind
            else f"[{name}] needs a kind"
        )
        raise document.refused(
            f"{said}; there are {', '.join(kinds)}.{hint(kind, kinds)}", *path, "kind"
        )
    known = {
        name: setting._replace(default=None) if name in optional else setting
        for name, setting in kind_keys(kinds[kind]).items()
    }
    rest = {name: value for name, value in table.items() if name != "kind"}
    return Choice.of(kind, read_settings(document, path, rest, known, kind))


class Place(NamedTuple):
    """Where a table stands in a file; nowhere where Python code says what it says."""

    document: Document | None
    path: tuple[str | int, ...] = ()

    def within(self, *path: str | int) -> Place:
        """The place of one of its keys."""
        return Place(self.document, (*self.path, *path))

    def words(self) -> str:
        """What a sentence begins with: "net.toml, line 7, column 1: ", or nothing."""
        return "" if self.document is None else f"{self.document.place(*self.path)}: "


def with_location(error: TidewolfError, place: Place, known: Keys | None = None) -> TidewolfError:
    """The same error, with the place of the setting that it carries in front."""
    keys = [each.key for each in (known or {}).values() if each.name == error.setting]
    error.args = (f"{place.within(*keys).words()}{error}", *error.args[1:])
    return error


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


def _implied(table: Mapping[str, Any], kinds: Mapping[str, type]) -> str:
    """The kind of a table with a graph that names none: the one that knows most of its keys."""
    if "graph" not in table:
        return ""
    fit = {
        name: len(table.keys() & known.keys())
        for name, kind in kinds.items()
        if "graph" in (known := kind_keys(kind))
    }
    best = [name for name, count in fit.items() if count == max(fit.values())]
    return best[0] if len(best) == 1 else ""


def _readable(setting: Setting) -> bool:
    return setting.check is not None or inner_of(setting) is not None


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
