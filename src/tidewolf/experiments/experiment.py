"""An experiment: a set, a stream, learners, rounds, seeds, values of caution, and the folder of the
results. A frozen value.

`load` reads it from a TOML file; `resolved` fills every default in, so that the file
it is written to (`toml`) says all there is to say.

What experiment files choose by name, and the keys beside each name: the settings that sets,
functions, problems and learners declare.

    n: Annotated[int, Count("The number of entries of a point.")] n = 3

The declaration (`core.settings`) says what a file may write for a key. A setting that takes a set,
or several, is a table with a `kind`, or a list of such. An array may be the name of a table of
numbers. A set that is made of links takes the name of a graph's file as `graph`; there, text in
place of an array is a column of its edge list.

Errors name file, line and column of an experiment file:

    [set]  [stream]  [[learners]]  rounds  seeds  caution  [files]  [sweep]  [outputs]

The standard library reads TOML and forgets lines. A second pass over the text, which is known to be
TOML by then, notes where every table and every key at the start of a line stands, under its path:
("learners", 0, "caution"). An error within the value of a key has the place of that key.
"""

import inspect
import json
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias, final, get_args, get_origin

import numpy as np

from tidewolf import baselines, functions, learners, problems, sets
from tidewolf.core import arrays, batch, jit, settings
from tidewolf.core.arguments import (
    as_items,
    as_kind,
    as_path,
    as_text,
    did_you_mean,
    import_extra,
    shown,
)
from tidewolf.core.errors import (
    InvalidInput,
    NewerFormat,
    NotSupported,
    TidewolfError,
    WrongType,
    refuse,
    require,
)
from tidewolf.core.settings import Is, freeze, given_fields, many, pair_of
from tidewolf.experts import Named, Resolve, Season
from tidewolf.experts.context import PeriodSetting
from tidewolf.files.reading import PLAIN, FileFormat, as_format
from tidewolf.files.table import GAPS
from tidewolf.learners.ensemble import BY_WORD
from tidewolf.loop import play
from tidewolf.methods.base import Learner
from tidewolf.methods.budget import Budget
from tidewolf.networks.network import LinkRows, Network
from tidewolf.networks.network_files import COST, OBJECTIVES
from tidewolf.problems import Problem
from tidewolf.sets import ConvexSet
from tidewolf.sets.graphs import Commodities, Links, Node, Supplies

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
    def of(cls, name: str, given: Mapping[str, Any]) -> "Choice":
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
        as_kind(given, Mapping, f"The settings of {shown(name)} must be a mapping")
        return cls(name, tuple(given.items()))

    @property
    def given(self) -> dict[str, Any]:
        """The settings by name."""
        return dict(self.settings)

    def table(self, key: str = "kind") -> dict[str, Any]:
        """What a file says of it: its name under `key`, then its settings."""
        return {key: self.name, **{name: _table_of(value) for name, value in self.settings}}

    def with_files(self, move: Callable[[str], str]) -> "Choice":
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
    known = {**learners.every(), **baselines.every()}
    if name not in known:
        raise InvalidInput(
            f"There is no learner called {name!r}; there are "
            f"{', '.join(known)}.{did_you_mean(name, known)}"
        )
    return known[name]


@cache
def set_kinds() -> dict[str, type[ConvexSet]]:
    return {kind.__name__: kind for kind in sets.every() if _describable(kind)}


@cache
def function_kinds() -> dict[str, type[batch.Batch]]:
    return {kind.__name__: kind for kind in functions.every() if _describable(kind)}


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
    return {
        setting.key: setting
        for name, setting in _by_name(make).items()
        if name not in without and _readable(setting)
    }


def problem_keys(name: str) -> dict[str, settings.Setting]:
    return keys_of(problems.named(name), "K", "rounds", "seed")


def learner_keys(name: str) -> dict[str, settings.Setting]:
    known = keys_of(learner_named(name), "K")
    return known | ({"season": _SEASON} if "experts" in known else {})


@cache
def kind_keys(kind: type) -> Keys:
    known = keys_of(settings.constructor_of(kind))
    if "graph" in known and carries_flow(known):
        one_flow = _ONE_FLOW if {"source", "target"} <= known.keys() else ()
        more = (_DIRECTED, _NODES, *one_flow, *([_TUNNELS] if kind is Network else ()))
        known |= {each.name: each for each in more if each.name not in known}
    return known


def columns_of(given: Mapping[str, Any], known: Keys) -> dict[str, str]:
    """The settings of a set whose text is the name of a column of its links."""
    return {
        name: value
        for name, value in given.items()
        if isinstance(value, str) and name in known
        if name == "lengths" or isinstance(known[name].check, settings.Numbers)
    }


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

    def within(self, *path: str | int) -> "Place":
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


def load(path: str | os.PathLike[str]) -> "Experiment":
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


def read(text: str, path: Path) -> "Experiment":
    import_extra("pydantic", "Reading experiment files", "app")
    from tidewolf.experiments.models import read_file

    document = parse(text, str(path))
    written_by = document.data.get("format")
    if type(written_by) is int and written_by > FILE_FORMAT:
        raise NewerFormat(
            f"{document.place('format')}: this tidewolf reads formats up to {FILE_FORMAT}, not "
            f"{written_by}. Install a newer tidewolf."
        )
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
    plain, tables = dict[str, Any](), list[str]()
    for key, value in data.items():
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
    if isinstance(value, Mapping):
        return f"{{{', '.join(_pairs(value))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    text = repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")


def _bare(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


# --- experiments ----------------------------------------------------------------------------------

TABLES = ("costs", "capacities", "weights", "budgets", "demands")
# Which files of decisions there may be.
FORMS = ("none", "csv", "parquet", "both")
# Learners that play if a file names none: the default, exact projections, and re-solving.
DEFAULT_LEARNERS = ("Ensemble", "SinhaVaze", "Resolve")
_BY_DEFAULT = tuple(map(Choice, DEFAULT_LEARNERS))
# Pairs of a setting and its values.
Swept: TypeAlias = tuple[tuple[str, tuple[Any, ...]], ...]
# Learners that play a built-in problem chosen by name: also the paper's three.
BUILTIN_LEARNERS = (*DEFAULT_LEARNERS, "DriftPlusPenalty", "PrimalDual", "BanditPrimalDual")
# The learner of a session that names none.
USUAL = Choice.of("Ensemble", {"experts": ["last"]})
_TIMES = "the time of rounds: give a number of rounds, or tables with a column called time."
# From how many days on, and how many rounds per day, a day is taken as the season; and from how
# many rounds of a file on the leader is among the experts, which is fitted every 48 at first.
_DAYS, _PER_DAY, _FITTED = 3, 4, 192


def _choice(value: Any, what: str, *others: type) -> Any:
    such = "Choice.of('Simplex', {'n': 3})"
    kinds: Any = (Choice, *others)
    return as_kind(value, kinds, f"{what} must be a Choice, such as {such}")


def _budget(value: Any, what: str) -> Budget:
    return as_kind(value, Budget, f"{what} is a Budget")


def _values(value: Any, what: str) -> tuple[Any, ...]:
    return tuple(
        as_pair("a sweep", (what, item))[1] for item in as_items(value, what, "[100, 200]")
    )


@final
@dataclass(frozen=True)
class Tables:
    """A stream from files: losses, constraints and side information.

    The losses are <costs_t, x>, the largest utilisation of a link of a network, or a choice of
    functions; the limits are any of x <= capacities_t, <weights_t, x> <= budgets_t, and a choice
    of functions that are to be at most 0.

    Parameters
    ----------
    costs : Path, optional
        A table with a row per round and a column a coordinate. None if `losses` are given.
    capacities : Path, optional
        A table of the same shape: what each coordinate may be at most.
    weights : Path, optional
        A table of the same shape: how much each coordinate uses of the budget.
    budgets : Path, optional
        A table of one column: what may be used in each round.
    demands : Path, optional
        A table with a column for each commodity of a network: what it sends in each round.
    losses : Choice, optional
        A batch of functions by name, whose arrays may be names of tables.
    constraints : Choice, optional
        The same for the limits.
    context : Path, optional
        A table of what kind of round each is: one column of categories, or a column of weights
        for each.
    advice : tuple of tuple of str or Path, default ()
        Tables of points that others proposed before each round, by name, of the shape of
        `costs`; a row with an empty cell is absent.
    objective : str, default 'cost'
        What the loss of a network is: "cost", cost times volume; or "max-utilization", load
        over capacity of the fullest link, without costs.
    gaps : str, default 'refuse'
        What is done about cells without a number, and about rows that one table has and another
        has not: "refuse" them, play such rounds "unseen" (no learner learns from them), or take
        the "last" number of the column.

    Examples
    --------
    >>> tables = tw.experiments.Tables("costs.csv", capacities="capacities.csv")
    >>> simplex = tw.experiments.Choice.of("Simplex", {"n": 3})
    >>> tw.experiments.Experiment("mine", tables, simplex).stream.costs.name
    'costs.csv'
    """

    costs: Annotated[Path | None, Is()] = None
    capacities: Annotated[Path | None, Is()] = None
    weights: Annotated[Path | None, Is()] = None
    budgets: Annotated[Path | None, Is()] = None
    demands: Annotated[Path | None, Is()] = None
    losses: Annotated[Choice | None, Is(check=_choice)] = None
    constraints: Annotated[Choice | None, Is(check=_choice)] = None
    context: Annotated[Path | None, Is()] = None
    advice: Annotated[tuple[tuple[str, Path], ...], many(pair_of(as_path), '{"me": "me.csv"}')] = ()
    objective: Annotated[str, settings.Text(choices=OBJECTIVES)] = COST
    gaps: Annotated[str, settings.Text(choices=GAPS)] = "refuse"

    def __post_init__(self) -> None:
        settings.validate(self)
        names = {*TABLES, "losses", "constraints"} - {"demands"}
        given = {name for name in names if getattr(self, name) is not None}
        if given >= {"costs", "losses"} or len(given & {"weights", "budgets"}) == 1:
            raise InvalidInput("A stream has costs or losses, and weights together with budgets.")
        if self.objective != COST and given & {"costs", "losses"}:
            raise InvalidInput(f"objective {self.objective} takes no costs.", setting="objective")


@final
@dataclass(frozen=True)
class Experiment:
    """What is to be run.

    `load` makes one of a file, `builtin` one of a built-in problem's name; `dataclasses.replace`
    varies it.

    Parameters
    ----------
    name : str
        What it is called in tables and on pages.
    stream : Choice or Tables
        A built-in problem with its settings, or tables.
    hard_set : Choice, optional
        The set of decisions. None: the built-in problem's own.
    learners : tuple of Choice
        The learners. By default `Ensemble`, exact projection, and re-solving.
    rounds : int, optional
        How many rounds are played. None: as many as the stream has.
    seeds : tuple of int, default (0,)
        The seeds of everything random, one run each.
    cautions : tuple of float, default ()
        Every learner that has a caution, and does not set it itself, runs at each of these values.
        None given: at its own default.
    swept : tuple of tuple, default ()
        What a sweep runs through: pairs of `horizons`, or of a setting of the learners, and its
        values.
    title : str, default ""
        A one-sentence description.
    folder : path, optional
        Where results go. None: the command's default.
    checkpoint_seconds : float, default 10.0
        Time between checkpoints. Unit: seconds.
    files : FileFormat
        How text is written in tables and graphs: what separates cells, the decimal mark, the
        encoding; and whose clock times are read from.
    decisions : str, optional
        Which files of decisions a run folder gets: "none", "csv", "parquet" or "both". None:
        Parquet, and CSV beside it up to a million cells.
    smallest_path : float, default 0.0
        Paths with a smaller share are left out of paths.csv, and theirs goes to the others of
        their commodity in proportion: what a router can install.
    budgets : tuple of tuple, default ()
        Pairs of a `Budget` and the table, of the shape of `costs`, of what a unit of each
        coordinate spends of it in each round; for learners that take budgets.
    incumbent : path, optional
        A table of what was decided in these rounds, as decisions.csv has it, to compare with: an
        entry on a flow is a share of its commodity's demand, not a volume.
    as_run : tuple of str, default ()
        Learners that were chosen by name alone. Without settings, they get those of the learners
        that play by default (see `taken`).
    left_out : tuple of tuple, default ()
        Pairs of a learner that plays by default and the reason why it refuses this problem (see
        `taken`).
    document : Document, optional
        The file it was read from, for errors to point to.

    Examples
    --------
    >>> experiment = tw.experiments.Experiment.builtin("adversarial", kind="moving")
    >>> problem = experiment.problem(seed=0)
    >>> experiment.learner(experiment.entrants()[0], problem, seed=0).caution
    10.0
    """

    name: Annotated[str, settings.Text()]
    stream: Annotated[Choice | Tables, Is(check=lambda value, what: _choice(value, what, Tables))]
    hard_set: Annotated[Choice | None, Is(check=_choice)] = None
    learners: Annotated[tuple[Choice, ...], many(_choice, '[Choice("Resolve")]')] = _BY_DEFAULT
    rounds: Annotated[int | None, settings.Count()] = None
    seeds: Annotated[tuple[int, ...], many(partial(arrays.as_count, least=0), "[0, 1]")] = (0,)
    cautions: Annotated[tuple[float, ...], many(partial(arrays.as_number, above=0.0), "[10]")] = ()
    swept: Annotated[Swept, many(pair_of(_values), '[("horizons", [100, 200])]')] = ()
    title: Annotated[str, settings.Text()] = ""
    folder: Annotated[Path | None, Is()] = None
    checkpoint_seconds: Annotated[float, settings.Number(above=0.0)] = 10.0
    files: Annotated[FileFormat, Is(check=as_format)] = PLAIN
    decisions: Annotated[str | None, settings.Text(choices=FORMS)] = None
    smallest_path: Annotated[float, settings.Number(least=0.0)] = 0.0
    budgets: Annotated[
        tuple[tuple[Budget, Path], ...],
        many(
            pair_of(as_path, _budget, "a Budget and its table"),
            '[(tw.Budget("usd", total=90), "usd.csv")]',
        ),
    ] = ()
    incumbent: Annotated[Path | None, Is()] = None
    as_run: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    document: Document | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        settings.validate(self)
        if not self.learners or not self.seeds:
            raise InvalidInput("An experiment needs at least one learner and one seed.")
        stream, K = self.stream, self.hard_set
        if isinstance(stream, Choice):
            refuse(
                self.budgets,
                f"{stream.name} has budgets of its own, or none: drop [[budgets]].",
                setting="budgets",
            )
            if (
                K is not None
                and "K" not in inspect.signature(problems.named(stream.name)).parameters
            ):
                raise InvalidInput(f"{stream.name} has its own set: drop [set].", setting="set")
        elif K is None or K.name != NETWORK:
            refuse(
                not (stream.costs or stream.losses),
                'an experiment needs a [stream]: problem = "routing", or costs = "costs.csv" '
                "with a [set].",
                setting="stream",
            )
            require(K, InvalidInput, "tables need a [set]: a kind, or a graph.", setting="set")
            if stream.demands is not None:
                raise InvalidInput("demands need a network in [set].", setting="demands")

    @classmethod
    def builtin(cls, name: str, **given: Any) -> "Experiment":
        """A built-in problem under its own name.

        Parameters
        ----------
        name : str
            The problem, as `tidewolf list` calls it.
        **given
            Settings of the problem.

        Returns
        -------
        Experiment
            With the learners that play by default, and the paper's three.
        """
        known = problem_keys(name)
        for key in given.keys() - known.keys():
            raise InvalidInput(
                f"The problem {name} has no setting called {key!r}.{did_you_mean(key, known)}"
            )
        return cls(name, Choice.of(name, given), learners=tuple(map(Choice, BUILTIN_LEARNERS)))

    def problem(self, seed: int) -> Problem:
        """The set and the stream of one seed.

        Parameters
        ----------
        seed : int
            Of everything random in a built-in problem.

        Returns
        -------
        Problem
            With the set `K`, the `stream` and the `labels` of coordinates.
        """
        from tidewolf.experiments import building

        return building.build_problem(self, seed)

    def entrants(self) -> tuple[Choice, ...]:
        """The learners that play, each at every value of caution if it has one to set.

        Returns
        -------
        tuple of Choice
            In the order of `learners`, none twice.
        """
        found = []
        for choice in self.learners:
            name, given = choice.name, choice.given
            swept = "caution" in learner_keys(name) and "caution" not in given
            values = self.cautions if swept else ()
            found += [Choice.of(name, {**given, "caution": at}) for at in values] or [choice]
        return tuple(dict.fromkeys(found))

    def learner(self, entrant: Choice, problem: Problem, seed: int) -> Learner[Any]:
        """An entrant made for a problem: its horizon is the problem's length, its seed the run's,
        unless it sets them itself.

        Parameters
        ----------
        entrant : Choice
            One of `entrants`.
        problem : Problem
            What it is to play.
        seed : int
            Of everything random in the learner.

        Returns
        -------
        Learner
            Ready for `tidewolf.run`.
        """
        from tidewolf.experiments import building

        if not isinstance(entrant, Choice) or not isinstance(problem, Problem):
            raise WrongType(f"Give a Choice and a Problem, not {shown(entrant)}, {shown(problem)}.")
        defaults = {"horizon": len(problem), "seed": seed, "budgets": problem.budgets}
        place = self._place(entrant)
        read = partial(building.read_point, problem.labels)
        learner = building.make_learner(entrant, problem.K, problem.network, place, read, defaults)
        with located(place, learner_keys(entrant.name)):
            _require_info(learner, problem.stream)
        return learner

    def place(self, *path: str | int) -> Place:
        """The place of a setting in the file, and the format of the files that it names."""
        return Place(self.document, path, self.files)

    def taken(self, problem: Problem) -> "Experiment":
        """A copy with the learners that play this problem. If no learners were named, default
        learners that refuse the problem are moved to `left_out`, and Ensemble gets the problem's
        period, re-solves, and on tables of rounds enough has the leader. So does an Ensemble chosen
        by name alone (`as_run`).
        """
        by_default, left_out = self.has_default_learners, dict(self.left_out)
        learners = list[Choice]()
        fits = isinstance(self.stream, Tables) and len(problem) >= _FITTED
        for each in self.learners:
            if by_default and (reason := _refusal(each.name, problem)) is not None:
                left_out[each.name] = reason
            elif by_default or (each.name in self.as_run and not each.settings):
                learners.append(_with_experts(each, problem, fits))
            else:
                learners.append(each)
        return replace(self, learners=tuple(learners), as_run=(), left_out=tuple(left_out.items()))

    @property
    def has_default_learners(self) -> bool:
        """Whether the file names no learners, so that the default learners play."""
        names = tuple(choice.name for choice in self.learners if not choice.settings)
        return len(names) == len(self.learners) and names in (BUILTIN_LEARNERS, DEFAULT_LEARNERS)

    def only(self, names: Iterable[str]) -> "Experiment":
        """A copy with the learners of these names alone: with their settings here, else with
        those that they have by default.
        """
        chosen: list[Choice] = []
        as_run: list[str] = []
        for name in dict.fromkeys(names):
            learner_named(name)
            there = [choice for choice in self.learners if choice.name == name]
            chosen += there or [Choice(name)]
            as_run += [name] * (self.has_default_learners or not there)
        return replace(self, learners=tuple(chosen), as_run=tuple(as_run))

    def _place(self, entrant: Choice) -> Place:
        entries = [] if self.document is None else self.document.data.get("learners", [])
        for i, entry in enumerate(entries):
            table = entry if isinstance(entry, dict) else {"name": entry}
            frozen = {name: freeze(value) for name, value in table.items()}
            if frozen.items() <= {"name": entrant.name, **entrant.given}.items():
                return self.place("learners", i)
        return self.place()

    def resolved(self, rounds: int | None = None) -> "Experiment":
        """The same with every default filled in.

        Parameters
        ----------
        rounds : int, optional
            The length of its problem, if that is at hand. None: the problem is built to see.

        Returns
        -------
        Experiment
            One whose `toml` says all there is to say, with absolute paths.
        """
        if rounds is None:
            rounds = len(self.problem(self.seeds[0]))
        rounds = arrays.as_count(rounds, "The number of rounds", least=0)
        stream, K = self.stream, self.hard_set
        if isinstance(stream, Choice):
            stream = with_defaults(stream, problem_keys(stream.name))
        else:
            stream = Tables(**{key: _absolute(at) for key, at in given_fields(stream).items()})
        if K is not None:
            K = _absolute(with_defaults(K, kind_keys(kind_named(K.name))))
        of_rounds = {"horizon": rounds}
        learners = tuple(
            with_defaults(Choice.of(one.name, of_rounds | one.given), learner_keys(one.name))
            for one in self.entrants()
        )
        return replace(
            self,
            rounds=rounds,
            stream=stream,
            hard_set=K,
            learners=learners,
            budgets=tuple((budget, path.absolute()) for budget, path in self.budgets),
            cautions=(),
        )

    def toml(self) -> str:
        """The experiment as a file that `load` reads."""
        if isinstance(self.stream, Choice):
            stream = self.stream.table("problem")
        else:
            stream = {name: _part_of(part) for name, part in given_fields(self.stream).items()}
        data = {
            "format": FILE_FORMAT,
            "name": self.name,
            "title": self.title or None,
            "rounds": self.rounds,
            "seeds": self.seeds,
            "caution": self.cautions or None,
            "budgets": [one.fields() | {"spend": str(at)} for one, at in self.budgets] or None,
            "incumbent": None if self.incumbent is None else str(self.incumbent.absolute()),
            "left_out": dict(self.left_out) or None,
            "set": None if self.hard_set is None else self.hard_set.table(),
            "stream": stream,
            "sweep": dict(self.swept) or None,
            "learners": [each.table("name") for each in self.learners],
            "files": given_fields(self.files) or None,
            "outputs": {
                "folder": None if self.folder is None else str(self.folder),
                "checkpoint_seconds": self.checkpoint_seconds,
                "decisions": self.decisions,
                "smallest_path": self.smallest_path or None,
            },
        }
        return to_toml(data)


def _require_info(learner: Learner[Any], stream: batch.Stream) -> None:
    """Refuse an expert for which the stream has no data, so that it would never act."""
    names = tuple(stream.advice or ())
    for one in learner.fields().get("experts") or ():
        setting, sentence, data = "experts", "", getattr(one, "data", None)
        if isinstance(one, Season) and one.seconds is not None and stream.time is None:
            setting, sentence = "season", f"A season of {one.period} needs {_TIMES}"
        elif isinstance(one, Resolve) and data == "forecast":
            words = "The stream holds no forecasts to re-solve with: take last, or give them."
            sentence = words * (stream.forecast is None)
        elif isinstance(one, Resolve) and isinstance(data, str) and data != "last":
            sentence = f"The data of {data} ago needs {_TIMES}" * (stream.time is None)
        elif isinstance(one, Named) and one.name not in names:
            known = ("last", *names)
            expected = f'expected a number of rounds, a duration such as "1d", {", ".join(known)}'
            near = did_you_mean(one.name, known)
            sentence = f"There is no expert {shown(one.name)}: {expected}.{near}"
        elif taken := [word for word, kind in BY_WORD.items() if kind is type(one)]:
            words = f"{shown(taken[0])} is an expert of tidewolf: give the advice another name."
            sentence = words * (taken[0] in names)
        refuse(sentence, sentence, setting=setting)


def _with_experts(choice: Choice, problem: Problem, fits: bool) -> Choice:
    """An Ensemble with the season of a problem, or of a day if rounds have dates, several per day
    over some days; with re-solving as its experts, and with the leader if that `fits`. Others as
    they are.
    """
    if choice.name != "Ensemble":
        return choice
    period: Any = problem.period
    stamps = problem.stream.stamps
    if period is None and stamps is not None and stamps.dtype.kind == "M" and len(stamps) > 1:
        days = (stamps[-1] - stamps[0]) / np.timedelta64(1, "D")
        period = "1d" if days >= _DAYS and len(stamps) / days >= _PER_DAY else None
    season = {} if period is None else {"season": period}
    experts = ["last", *season.values(), *(["leader"] if fits else [])]
    return Choice.of(choice.name, {**season, "experts": experts})


def _refusal(name: str, problem: Problem) -> str | None:
    """Why a learner does not take this problem, by its settings or in its first round; None if it
    does.
    """
    try:
        learner = learner_named(name)(problem.K, horizon=len(problem))
        with jit.interpreting():  # one round is no reason to load machine code
            next(iter(play(learner, problem.stream[:1])), None)
    except TidewolfError as error:  # another one is a mistake in the input: the run reports it
        return str(error) if isinstance(error, NotSupported) else None
    return None


def _part_of(part: Any) -> Any:
    if isinstance(part, tuple):
        return {name: str(path) for name, path in part}
    return part.table() if isinstance(part, Choice) else str(part)


def _absolute(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple((name, path.absolute()) for name, path in part)
    if isinstance(part, Choice):
        return part.with_files(lambda path: str(Path(path).absolute()))
    return part.absolute() if isinstance(part, Path) else part
