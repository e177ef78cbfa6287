"""What experiment files choose by name, and the keys beside each name: the settings that sets,
functions, problems and learners declare.

    n: Annotated[int, Count("How many entries a point has.")]          n = 3

The declaration (`core.settings`) says what a file may write for a key. A setting that takes a set,
or several, is a table with a `kind`, or a list of such. An array may be the name of a table of
numbers. A set that is made of links takes the name of a graph's file as `graph`; there, text in
place of an array is a column of its edge list.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, final, get_args, get_origin

from tidewolf import baselines as _baselines
from tidewolf import functions as _functions
from tidewolf import learners as _learners
from tidewolf import problems as _problems
from tidewolf import sets as _sets
from tidewolf.core import settings
from tidewolf.core.arguments import as_items, as_text, shown
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.names import did_you_mean
from tidewolf.core.settings import Check, Numbers, Setting, constructor_of
from tidewolf.experts.season import PeriodSetting
from tidewolf.networks import Network
from tidewolf.networks.tunnels import LinkRows
from tidewolf.sets import ConvexSet
from tidewolf.sets.graphs import Commodities, Links, Node, Supplies

Keys = Mapping[str, Setting]
NETWORK = "Network"
"""What a file may call a set that is described by a graph and what goes over it."""
_NOTHING = Setting("", None, None, False, None).words
"""What a file may write for a setting that only Python code can give."""


@final
@dataclass(frozen=True)
class Choice:
    """A set, a function, a problem or a learner by name, with what is set of it.

    Parameters
    ----------
    name : str
        What is chosen, as `tidewolf list` calls it.
    settings : tuple of tuple, default ()
        Pairs of a key and its value: a number, text, True or False, a list of those, or a choice
        where a set is made of sets. `Choice.of` takes a mapping in their place.

    Examples
    --------
    >>> tw.experiments.Choice.of("CappedSimplex", {"n": 4, "cap": 0.5}).given
    {'n': 4, 'cap': 0.5}
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        as_text(self.name, "The name of what is chosen")
        pairs = as_items(self.settings, f"The settings of {self.name}", '[("caution", 10.0)]')
        object.__setattr__(self, "settings", tuple(as_pair(self.name, pair) for pair in pairs))

    @classmethod
    def of(cls, name: str, given: Mapping[str, Any]) -> Choice:
        """The choice with settings from a mapping.

        Parameters
        ----------
        name : str
            What is chosen.
        given : mapping
            The settings by key.

        Returns
        -------
        Choice
            The same as a frozen value.
        """
        if not isinstance(given, Mapping):
            raise WrongType(f"The settings of {shown(name)} must be a mapping, not {shown(given)}.")
        return cls(name, tuple(given.items()))

    @property
    def given(self) -> dict[str, Any]:
        """The settings by name."""
        return dict(self.settings)

    def table(self, key: str = "kind") -> dict[str, Any]:
        """What a file says of it: its name under `key`, then its settings."""
        return {key: self.name, **{name: _table_of(value) for name, value in self.settings}}

    def with_files(self, move: Callable[[str], str]) -> Choice:
        """The set or the functions with every name of a file replaced by another path."""
        known = kind_keys(kind_named(self.name))

        def moved(key: str, value: Any) -> Any:
            if isinstance(value, Choice):
                return value.with_files(move)
            if isinstance(value, tuple) and value and isinstance(value[0], Choice):
                return tuple(each.with_files(move) for each in value)
            return move(value) if isinstance(value, str) and names_file(known, key) else value

        return Choice.of(self.name, {key: moved(key, value) for key, value in self.settings})


def as_pair(owner: str, pair: Any) -> tuple[str, Any]:
    """A setting's name and value, frozen; what no file could say is refused."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise WrongType(f"A setting of {owner} is a name and its value, not {shown(pair)}.")
    value = freeze(pair[1])
    if not sayable(value):
        kinds = "a number, True or False, text, or a list of those"
        raise WrongType(f"{pair[0]} of {owner} must be {kinds}, not {shown(pair[1])}.")
    return as_text(pair[0], f"The name of a setting of {owner}"), value


def freeze(value: Any) -> Any:
    """Lists as tuples and mappings as pairs, all the way down."""
    if isinstance(value, Mapping):
        value = list(value.items())
    return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value


def sayable(value: Any) -> bool:
    """Whether a file can say a frozen value."""
    if isinstance(value, tuple):
        return all(map(sayable, value))
    number = isinstance(value, float) and not math.isnan(value)
    return number or isinstance(value, bool | int | str | Choice)


def _table_of(value: Any) -> Any:
    if isinstance(value, Choice):
        return value.table()
    return [_table_of(item) for item in value] if isinstance(value, tuple) else value


# --- names ----------------------------------------------------------------------------------------


def learner_named(name: str) -> Any:
    """The learner or baseline of this name."""
    known = {**_learners.every(), **_baselines.every()}
    if name in known:
        return known[name]
    near = did_you_mean(name, known)
    raise InvalidInput(f"There is no learner called {name!r}; there are {', '.join(known)}.{near}")


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


def takes_a_set(problem: str) -> bool:
    """Whether a built-in problem is one of any set."""
    return "K" in inspect.signature(_problems.named(problem)).parameters


# --- keys -----------------------------------------------------------------------------------------


class FileKey(Setting):
    """A key that belongs to files, and to no class: it is checked where it is read."""


def key(name: str, check: Check, default: Any = None) -> FileKey:
    """A key that belongs to files."""
    return FileKey(name, Any, check, True, default)


_DIRECTED = key(
    "directed", settings.Flag("Whether links carry one way only. None: as the graph's file says.")
)
_SENT = "How much is sent, in the unit of the capacities; points are shares of it."
_ONE_FLOW = (
    key("lengths", settings.Text("The column of the edge list that holds the lengths of links.")),
    key("demand", settings.Number(_SENT, above=0.0), 1.0),
)
"""What a file may say of one flow from a source to a target, beside what the set declares."""
_SEASON = key("season", PeriodSetting("The period of a `Season` that is added to the experts."))
"""What a file may say of an Ensemble, beside what it declares."""


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


class Inner(NamedTuple):
    """What a setting is made of: things that a file describes by tables of their own."""

    kind: type
    several: bool


def inner_of(setting: Setting) -> Inner | None:
    """What a setting is made of, if that is a set or a batch of functions, or several."""
    hints = get_args(setting.takes) if get_origin(setting.takes) is not None else ()
    for hint in (setting.takes, *hints):
        several = get_origin(hint) in (tuple, list, Sequence)
        kind = get_args(hint)[0] if several else hint
        for base in (ConvexSet, Batch):
            if isinstance(kind, type) and issubclass(kind, base):
                return Inner(base, several)
    return None


def names_file(known: Keys, name: str) -> bool:
    """Whether text under a key is the name of a file, not a column of an edge list."""
    check = known[name].check if name in known else None
    if isinstance(check, Numbers):
        return "graph" not in known
    return isinstance(check, Links | LinkRows | Commodities | Supplies)


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
    """What a file, or a default, says; None if it is of another kind."""
    value = list(value) if isinstance(value, tuple) else value
    return None if setting.check is None else setting.check.read(value)


def words_of(setting: Setting) -> str:
    """What a file may write for a setting."""
    part = inner_of(setting)
    if part is None:
        return setting.words
    one = f"a table that describes a {'set' if part.kind is ConvexSet else 'function'}"
    return f"a list, each item {one}" if part.several else one


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
        for name, setting in settings.settings_of(make).items()
        if parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL
    }
