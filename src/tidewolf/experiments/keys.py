"""What experiment files choose by name, and the keys beside each name: the settings that sets,
functions, problems and learners declare.

    n: Annotated[int, Count("The number of entries of a point.")] n = 3

The declaration (`core.settings`) says what a file may write for a key. A setting that takes a set,
or several, is a table with a `kind`, or a list of such. An array may be the name of a table of
numbers. A set that is made of links takes the name of a graph's file as `graph`; there, text in
place of an array is a column of its edge list.

`load` reads experiments from TOML files. Errors name file, line and column.

    [set]  [stream]  [[learners]]  rounds  seeds  caution  [files]  [sweep]  [outputs]

The standard library reads TOML and forgets lines. A second pass over the text, which is known to be
TOML by then, notes where every table and every key at the start of a line stands, under its path:
("learners", 0, "caution"). An error within the value of a key has the place of that key.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, final, get_args, get_origin

from tidewolf import baselines as _baselines
from tidewolf import functions as _functions
from tidewolf import learners as _learners
from tidewolf import problems as _problems
from tidewolf import sets as _sets
from tidewolf.core import batch, settings
from tidewolf.core.arguments import as_items, as_path, as_text, did_you_mean, import_extra, shown
from tidewolf.core.errors import InvalidInput, NewerFormat, TidewolfError, WrongType
from tidewolf.experts.context import PeriodSetting
from tidewolf.files.reading import PLAIN, FileFormat
from tidewolf.networks.network import LinkRows, Network
from tidewolf.sets import ConvexSet
from tidewolf.sets.graphs import Commodities, Links, Node, Supplies

if TYPE_CHECKING:
    from tidewolf.experiments.experiment import Experiment

Keys = Mapping[str, settings.Setting]
KeyPath: TypeAlias = tuple[str | int, ...]
FILE_FORMAT = 1
_STRING_OR_COMMENT = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}|'''
    r"""\'\'\'(?:[^']|'{1,2}(?!'))*'{3,5}|"(?:[^"\\]|\\.)*"|'[^']*\'|#[^\n]*""",
    re.DOTALL,
)
# What a file may call a set that is described by a graph and what goes over it.
NETWORK = "Network"
# What a file may write for a setting that only Python code can give.
_NOTHING = settings.Setting("", None, None, False, None).words


@final
@dataclass(frozen=True)
class Choice:
    """A set, a function, a problem or a learner by name, with its settings.

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
        raise WrongType(f"{pair[0]} of {owner} is no number, flag, text or list: {shown(pair[1])}.")
    return as_text(pair[0], f"The name of a setting of {owner}"), value


def freeze(value: Any) -> Any:
    """Lists as tuples and mappings as pairs, all the way down."""
    if isinstance(value, Mapping):
        value = list(value.items())
    return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value


def sayable(value: Any) -> bool:
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
    for module in (_learners, _baselines):
        if name in module.__all__:
            return getattr(module, name)
    known = [*_learners.__all__, *_baselines.__all__]
    near = did_you_mean(name, known)
    raise InvalidInput(f"There is no learner called {name!r}; there are {', '.join(known)}.{near}")


@cache
def set_kinds() -> dict[str, type[ConvexSet]]:
    return {kind.__name__: kind for kind in _sets.every() if _describable(kind)}


@cache
def function_kinds() -> dict[str, type[batch.Batch]]:
    return {kind.__name__: kind for kind in _functions.every() if _describable(kind)}


def kind_named(name: str) -> type:
    return Network if name == NETWORK else {**set_kinds(), **function_kinds()}[name]


# --- keys -----------------------------------------------------------------------------------------


class FileKey(settings.Setting):
    """A key that belongs to files, and to no class: it is checked where it is read."""


def key(name: str, check: settings.Check, default: Any = None) -> FileKey:
    return FileKey(name, Any, check, True, default)


_DIRECTED = key("directed", settings.Flag("Whether links lead one way. None: as the file says."))


class NodesFile(settings.Text):
    """The name of a table of nodes."""


class TunnelsFile(NodesFile):
    """The name of a table of tunnels, or their rows."""

    words: ClassVar[str] = "the name of a table, or a list of [pair, path, name]"

    def __call__(self, value: Any, what: str) -> Any:
        return value if isinstance(value, tuple) else super().__call__(value, what)

    def read(self, value: Any) -> Any:
        if isinstance(value, str):
            return value or None
        rows = value if isinstance(value, list) and value else [None]
        return freeze(rows) if all(map(self._is_row, rows)) else None

    @staticmethod
    def _is_row(row: Any) -> bool:
        texts = isinstance(row, list) and len(row) in (2, 3) and isinstance(row[1], str | list)
        return texts and all(isinstance(each, str) for each in (row[0], *row[2:]))


_TUNNELS = key(
    "tunnels",
    TunnelsFile("A table of own tunnels in place of `paths`: pair, path, and perhaps name."),
)
# The settings of a network that tunnels replace.
CHOOSES_PATHS = frozenset(("paths", "k", "disjoint"))
_NODES = key("nodes", NodesFile("A table of nodes for the page: name, longitude and latitude."))
_SENT = "How much is sent, in the unit of the capacities; points are shares of it."
# What a file may say of one flow from a source to a target, beside what the set declares.
_ONE_FLOW = (
    key("lengths", settings.Text("The column of the edge list that holds the lengths of links.")),
    key("demand", settings.Number(_SENT, above=0.0), 1.0),
)
# What a file may say of an Ensemble, beside what it declares.
_SEASON = key("season", PeriodSetting("The period of a `Season` that is added to the experts."))


def keys_of(make: Any, *without: str) -> dict[str, settings.Setting]:
    """The settings of what `make` makes that a file can give, by key."""
    return {
        setting.key: setting
        for name, setting in _by_name(make).items()
        if name not in without and _readable(setting)
    }


def problem_keys(name: str) -> dict[str, settings.Setting]:
    return keys_of(_problems.named(name), "K", "rounds", "seed")


def learner_keys(name: str) -> dict[str, settings.Setting]:
    known = keys_of(learner_named(name), "K")
    return known | ({"season": _SEASON} if "experts" in known else {})


@cache
def kind_keys(kind: type) -> Keys:
    known = keys_of(settings.constructor_of(kind))
    if "graph" in known and carries_flow(known):
        more = (_DIRECTED, _NODES, *(_ONE_FLOW if ({"source", "target"} <= known.keys()) else ()))
        more += (_TUNNELS,) if kind is Network else ()
        known |= {each.name: each for each in more if each.name not in known}
    return known


def carries_flow(known: Keys) -> bool:
    """Whether something goes from node to node, so that it matters which way a link leads."""
    return any(isinstance(each.check, Node | Commodities | Supplies) for each in known.values())


def inner_of(setting: settings.Setting) -> tuple[type, bool] | None:
    """What a setting is made of, if that is a set or a batch of functions, which a file describes
    by a table of its own; and whether there may be several.
    """
    hints = get_args(setting.takes) if get_origin(setting.takes) is not None else ()
    for hint in (setting.takes, *hints):
        several = get_origin(hint) in (tuple, list, Sequence)
        kind = get_args(hint)[0] if several else hint
        for base in (ConvexSet, batch.Batch):
            if isinstance(kind, type) and issubclass(kind, base):
                return base, several
    return None


def names_file(known: Keys, name: str) -> bool:
    """Whether text under a key is the name of a file, not a column of an edge list."""
    check = known[name].check if name in known else None
    if isinstance(check, settings.Numbers):
        return "graph" not in known
    return isinstance(check, Links | LinkRows | Commodities | Supplies | NodesFile)


def with_defaults(choice: Choice, known: Keys) -> Choice:
    """With the defaults of what is not set, but for the seed, which is the run's, and what no file
    can say.
    """
    given = {
        name: setting.default
        for name, setting in known.items()
        if name != "seed" and read_plain(setting, setting.default) is not None
    } | choice.given
    if "tunnels" in given:
        given = {name: at for name, at in given.items() if name not in CHOOSES_PATHS}
    return Choice.of(choice.name, {name: given[name] for name in known if name in given})


def read_plain(setting: settings.Setting, value: Any) -> Any:
    """What a file, or a default, says; None if it is of another kind."""
    value = list(value) if isinstance(value, tuple) else value
    return None if setting.check is None else setting.check.read(value)


def words_of(setting: settings.Setting) -> str:
    part = inner_of(setting)
    if part is None:
        return setting.words
    one = f"a table that describes a {'set' if part[0] is ConvexSet else 'function'}"
    return f"a list, each item {one}" if part[1] else one


def _readable(setting: settings.Setting) -> bool:
    return setting.words != _NOTHING or inner_of(setting) is not None


def _describable(kind: type) -> bool:
    found = _by_name(settings.constructor_of(kind)).values()
    return bool(found) and all(_readable(each) or not each.required for each in found)


def _by_name(make: Any) -> dict[str, settings.Setting]:
    """The settings that are given by name: not `*sets`."""
    parameters = inspect.signature(make).parameters
    return {
        name: setting
        for name, setting in settings.settings_of(make).items()
        if parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL
    }


# --- files ----------------------------------------------------------------------------------------


class Document(NamedTuple):
    """A file of settings and where each of them stands."""

    # the file, as errors call it
    name: str
    data: dict[str, Any]
    # line and column of tables and keys, from 1
    places: dict[KeyPath, tuple[int, int]]

    def place(self, *path: str | int) -> str:
        """Where this path, or what it belongs to, stands: "net.toml, line 7, column 1"."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.places:
                line, column = self.places[path[:end]]
                items = [f", item {key + 1}" for key in path[end:] if isinstance(key, int)]
                return f"{self.name}, line {line}, column {column}{''.join(items)}"
        return self.name


class Request(Document):
    """What a request says: places are the keys that lead there, items counted from 1."""

    def place(self, *path: str | int) -> str:
        return ", ".join(str(key + 1 if isinstance(key, int) else key) for key in path) or self.name


class Place(NamedTuple):
    """Where a table stands in a document; nowhere if Python code gives it."""

    document: Document | None
    path: KeyPath = ()
    # how text is written in the files that it names
    format: FileFormat = PLAIN

    def within(self, *path: str | int) -> Place:
        return self._replace(path=(*self.path, *path))

    def words(self) -> str:
        """What a sentence begins with: "net.toml, line 7, column 1: ", or nothing."""
        return "" if self.document is None else f"{self.document.place(*self.path)}: "


@contextmanager
def located(place: Place, known: Mapping[str, settings.Setting] | None = None) -> Iterator[None]:
    """An error gets the place of the setting that it carries in front."""
    try:
        yield
    except TidewolfError as error:
        names = [each.key for each in (known or {}).values() if each.name == error.setting]
        if known is None and place.document is not None and error.setting is not None:
            names = [error.setting] * ((*place.path, error.setting) in place.document.places)
        error.args = (f"{place.within(*names).words()}{error}", *error.args[1:])
        raise


def load(path: str | os.PathLike[str]) -> Experiment:
    """Read an experiment from a TOML file.

    Parameters
    ----------
    path : str or path
        The file; the paths in it are seen from its folder. `tidewolf new` writes one with every
        key explained.

    Returns
    -------
    Experiment
        What the file says, every setting of a kind that is accepted. Tables and graphs are read
        when it is built (`Experiment.problem`).

    Raises
    ------
    InvalidInput
        If the file cannot be read, or a key or value is not accepted: the sentence begins with
        file, line and column.
    NewerFormat
        If a newer tidewolf wrote the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "small.toml"
    >>> _ = file.write_text('rounds = 20\\n[stream]\\nproblem = "adversarial"\\n')
    >>> experiment = tw.experiments.load(file)
    >>> experiment.name, len(experiment.problem(seed=0))
    ('small', 20)
    """
    path = as_path(path, "The path of an experiment")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"No experiment can be read from {path}: {error}.") from None
    return read(text, path)


def read(text: str, path: Path) -> Experiment:
    import_extra("pydantic", "Reading experiment files", "app")
    from tidewolf.experiments.models import read_file

    document = parse(text, str(path))
    written_by = document.data.get("format")
    if type(written_by) is int and written_by > FILE_FORMAT:
        known = f"this tidewolf reads formats up to {FILE_FORMAT}, not {written_by}"
        raise NewerFormat(f"{document.place('format')}: {known}. Install a newer tidewolf.")
    return read_file(document, path)


def parse(text: str, name: str) -> Document:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        return Document(name, tomllib.loads(text), dict(reversed([*_places(text)])))
    except tomllib.TOMLDecodeError as error:
        end = _line_and_column(text, len(text.rstrip()))
        sentence, _, where = str(error).rpartition(" (at ")
        line, column = re.findall(r"\d+", where) or end
        where = f"{name}, line {line}, column {column}"
        raise InvalidInput(f"{where}: this is not TOML: {sentence}.") from None
    except (RecursionError, ValueError) as error:  # too deep; a number of thousands of digits
        raise InvalidInput(f"{name} cannot be read as TOML: {error}.") from None


def _places(text: str) -> Iterator[tuple[KeyPath, tuple[int, int]]]:
    plain = _STRING_OR_COMMENT.sub(lambda at: (" " if at[0][0] == "#" else "_") * len(at[0]), text)
    counts, table, depth, at = Counter[KeyPath](), KeyPath(), 0, 0
    for line in plain.split("\n"):
        if depth == 0 and line.strip():
            begin = at + len(line) - len(line.lstrip())
            brackets = len(line.lstrip()) - len(line.lstrip().lstrip("["))
            end = at + (line.rindex("]" * brackets) if brackets else line.index("="))
            keys = _dotted(text[begin + brackets : end])
            if brackets:
                table = ()
                for i, key in enumerate(keys, start=1):
                    table = (*table, key)
                    counts[table] += brackets == 2 and i == len(keys)
                    if counts[table]:
                        table = (*table, counts[table] - 1)
                yield table, _line_and_column(text, begin)
            for i in range(0 if brackets else len(keys)):
                yield (*table, *keys[: i + 1]), _line_and_column(text, begin)
        depth += sum(map(line.count, "[{")) - sum(map(line.count, "]}"))
        at += len(line) + 1


def _dotted(text: str) -> list[str]:
    """The parts of a key such as stream."SEA > DEN"."""
    keys, rest = [], tomllib.loads(f"{text} = 0")
    while isinstance(rest, dict):
        ((key, rest),) = rest.items()
        keys.append(key)
    return keys


def _line_and_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def to_toml(data: Mapping[str, Any]) -> str:
    """Plain data as TOML: values first, then tables and lists of tables; what is within them is
    inline. What is None is left out.
    """
    there = {key: value for key, value in data.items() if value is not None}
    plain, tables = dict[str, Any](), list[str]()
    for key, value in there.items():
        if isinstance(value, Mapping):
            tables += ["", f"[{_bare(key)}]", *_pairs(value)]
        elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            for item in value:
                tables += ["", f"[[{_bare(key)}]]", *_pairs(item)]
        else:
            plain[key] = value
    return "\n".join([*_pairs(plain), *tables]) + "\n"


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_bare(key)} = {_value(at)}" for key, at in table.items() if at is not None]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return f"{{{', '.join(_pairs(value))}}}"
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, list | tuple) else repr(value)


def _bare(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)
