"""Pydantic models of experiment files and of requests for a session.

`Described` is what both share; `File` is an experiment in TOML, and `service.models` adds how
a session is served. Tables of sets, functions, problems and learners have models made of the
settings that their classes declare (`core.settings`), so that nothing is described twice. Models
are strict: no unknown key, no text or true for a number, every number finite. What is refused has a
path, the keys that lead there, and one sentence.

A request names no files. Its graphs are lists of links:

    ["SEA", "DEN"]                      ["SEA", "DEN", 1640.0, 10.0]: its length and its capacity
    {"tail": "SEA", "head": "DEN", "capacity": 10.0, "length": 1640.0, "name": "SEA-DEN-1"}

If a setting is the name of a column of a file's edge list (`lengths`, or `upper` of a flow), it is
the name of a key of the links there. A few bytes may describe more than fits in memory:
`entries_of` computes from a description how many entries a point would have at most, without
building anything, and what is beyond the limits here is refused.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from tidewolf.core import arguments, arrays
from tidewolf.core import settings as declared
from tidewolf.core.errors import InvalidInput
from tidewolf.core.settings import Setting, settings_of
from tidewolf.experiments import experiment as keys
from tidewolf.experiments.experiment import NETWORK, Choice, Document, Keys, Place
from tidewolf.files.reading import PLAIN, FileFormat
from tidewolf.methods.budget import Budget
from tidewolf.networks.network import LinkRows, Network
from tidewolf.networks.network_files import CAPACITY, LENGTH
from tidewolf.sets import ConvexSet

V = TypeVar("V")
# The first wrong item of a list is enough: to describe a million takes seconds.
FIRST = Field(fail_fast=True)
One = Annotated[list[V], FIRST, Field(min_length=1, max_length=1)]
Some = Annotated[list[V], FIRST, Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=arrays.LARGEST_COUNT)]
Seed = Annotated[int, Field(ge=0, le=arrays.LARGEST_COUNT)]
Positive = Annotated[float, Field(gt=0.0)]
Node = Annotated[str, Field(min_length=1)] | int
KeyPath = list[str | int]
Objective = Literal["cost", "max-utilization"]
Gaps = Literal["refuse", "unseen", "last"]

NO_FILES = "a request names no files: give the rows themselves"
# Keys of a table, more than any has.
MOST_KEYS = 100
# Sets within sets.
DEEPEST = 20
# Entries of a point.
MOST_ENTRIES = 100_000
# Links of a graph, a link that leads both ways counted twice.
MOST_LINKS = 200_000
# Commodities times paths times links times nodes, if the shortest paths are looked for: no search
# takes more steps.
MOST_SEARCHED = 200_000_000
# Links times nodes there: no search keeps more.
MOST_QUEUED = 20_000_000
# Items of a list of a learner's settings, each of which keeps a point, or more.
MOST_EXPERTS = 100
# Numbers of rounds that a learner looks back on: rounds times entries.
MOST_KEPT = 20_000_000
# Calls of the set's oracle per round.
MOST_CALLS = 10_000


class Strict(BaseModel):
    """A table of keys, none of which is unknown, of another kind, or no finite number."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _few(cls, given: Any) -> Any:
        """Some of so many keys are unknown, and a few of them say so."""
        return dict(islice(given.items(), MOST_KEYS)) if isinstance(given, dict) else given

    @property
    def given(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if value is not None}


def refused(sentence: str, *path: str | int) -> ValidationError:
    """An error for validators to raise, about what is found under this path; pydantic puts the keys
    that lead to the table in front.
    """
    kind = PydanticCustomError("refused", "{sentence}", {"sentence": sentence})
    details = InitErrorDetails(type=kind, loc=path, input=None)
    return ValidationError.from_exception_data("", [details])


def refusal(found: ValidationError, given: Any, model: type[BaseModel]) -> tuple[KeyPath, str]:
    """The keys that lead to what a model refuses in what was given, and a sentence about it; of
    several errors, unknown keys first.
    """
    errors = found.errors(include_url=False)
    unknown = [one for one in errors if one["type"] == "extra_forbidden"]
    error = max(unknown or errors, key=lambda one: len(_followed(one["loc"], given)[0]))
    if error["type"] == "refused":
        return list(error["loc"]), error["ctx"]["sentence"]
    path, part = _followed(error["loc"], given)
    if error["type"] == "missing":
        return path, f"{path[-1]} is missing."
    if error["type"] == "extra_forbidden":
        known: Any = model
        for name in path[:-1]:
            known = known.model_fields[name].annotation
        return path, _no_key(str(path[-1]), known.model_fields)
    if error["type"] == "value_error":
        sentence = str(error["ctx"]["error"])
        whole = sentence.endswith((".", "?"))
        return path, sentence if whole else f"{sentence}, not {arguments.shown(part)}."
    name = next((key for key in reversed(path) if isinstance(key, str)), "The request")
    _, _, should = error["msg"].partition(" after validation")[0].partition(" ")
    should = "should be an object" if "dictionary" in should else should
    return path, f"{name} {should}, not {arguments.shown(part)}."


def _no_key(key: str, known: Mapping[str, Any]) -> str:
    takes = f"it takes {', '.join(known) or 'none'}.{arguments.did_you_mean(key, known)}"
    return f"there is no key {key!r}; {takes}"


def _followed(path: Sequence[int | str], given: Any) -> tuple[KeyPath, Any]:
    """The keys of a path that lead somewhere, and where; the others are what a union tried."""
    found: KeyPath = []
    for each in path:
        if isinstance(given, list) and isinstance(each, int):
            found, given = [*found, each], given[each]
        elif isinstance(given, Mapping) and isinstance(each, str):
            found, given = [*found, each], given.get(each)
    return found, given


class Source(NamedTuple):
    # from which paths are seen; None: a request, which names no files
    folder: Path | None
    # the keys that lead from the field of the model to the table
    path: tuple[str | int, ...] = ()

    def within(self, *keys: str | int) -> "Source":
        return self._replace(path=(*self.path, *keys))

    def refused(self, sentence: str, *keys: str | int) -> ValidationError:
        return refused(sentence, *self.path, *keys)


Info: TypeAlias = "pydantic.ValidationInfo[Source]"


# --- tables by the settings that classes declare --------------------------------------------------


def _settings(
    name: str, known: Keys, table: dict[str, Any], at: Source, under: str = "", *optional: str
) -> Choice:
    given = {key: value for key, value in table.items() if key != under}
    for key in (key for key in given if key not in known):
        raise at.refused(f"{name}: {_no_key(key, known)}", key)
    for key, setting in known.items():
        if setting.required and key not in (*given, *optional):
            raise at.refused(f"{name}: {key} is missing.")
    values = {key: _value(key, known, given[key], at.within(key)) for key in known if key in given}
    return Choice.of(name, values)


def _value(key: str, known: Keys, value: Any, at: Source) -> Any:
    """The value of one key, frozen: a table, a list of tables, or plain; paths are seen from the
    folder of the file.
    """
    setting, part = known[key], keys.inner_of(known[key])
    if part is not None:
        kinds: Any = keys.set_kinds() if part[0] is ConvexSet else keys.function_kinds()
        if not part[1]:
            return _choice(kinds, value, at)
        if isinstance(value, list) and value:
            return tuple(_choice(kinds, each, at.within(i)) for i, each in enumerate(value))
    found = keys.read_plain(setting, value) if not isinstance(value, tuple) else value
    if found is None or not keys.sayable(found):
        raise at.refused(f"{key} should be {keys.words_of(setting)}, not {arguments.shown(value)}.")
    try:
        if type(value) is int:
            arrays.as_count(value, key, least=-arrays.LARGEST_COUNT)
        if isinstance(setting, keys.FileKey) and setting.check is not None:
            found = setting.check(found, key)
    except InvalidInput as error:
        raise at.refused(str(error)) from None
    if not keys.names_file(known, key) or not isinstance(found, str):
        return found
    if at.folder is None:
        raise at.refused(f"{NO_FILES}.")
    return str(at.folder / found)


def _choice(kinds: Mapping[str, type], table: Any, at: Source, *optional: str) -> Choice:
    if not isinstance(table, dict):
        raise at.refused(
            f'it should be a table with a kind such as "{next(iter(kinds))}", not '
            f"{arguments.shown(table)}."
        )
    if sum(isinstance(key, str) for key in at.path) >= DEEPEST:
        raise at.refused(f"Sets are nested deeper than {DEEPEST} levels: describe a simpler one.")
    kind = table.get("kind", "")
    if not isinstance(kind, str) or kind not in kinds:
        near = arguments.did_you_mean(str(kind), kinds)
        raise at.refused(f"kind should be one of {', '.join(kinds)}, not {kind!r}.{near}", "kind")
    known = keys.kind_keys(kinds[kind])
    if at.folder is None:
        table = _inline(table, known)
    return _settings(kind, known, table, at, "kind", *optional)


def _named(known_by: Callable[[str], Keys], table: dict[str, Any], key: str, at: Source) -> Choice:
    name = table[key]
    if not isinstance(name, str):
        raise at.refused(f"{key} should be text, not {name!r}.", key)
    try:
        known = known_by(name)
    except InvalidInput as error:
        raise at.refused(str(error), key) from None
    return _settings(name, known, table, at, key)


# --- graphs of requests ---------------------------------------------------------------------------


# Rows of lists that may be given by key, in the order of their items.
_ROWS: dict[str, dict[str, Any]] = {
    "commodities": {"source": (Any, ...), "target": (Any, ...), "demand": (Any, None)},
    "tunnels": {"pair": (str, ""), "path": (str | list[Node], ...), "name": (str, "")},
}


def _inline(table: Mapping[str, Any], known: Keys) -> dict[str, Any]:
    """The table of a request with its rows read: links by key, commodities as [source, target,
    demand] and tunnels as [pair, path, name]; and with bounds that are null infinite.
    """
    plain = dict(table)
    for key, fields in _ROWS.items():
        given = plain.get(key)
        if isinstance(given, str):
            raise refused(f"{NO_FILES}.", key)
        if isinstance(given, list):  # what is no list is left to be refused
            model = pydantic.create_model(key, __base__=Strict, **fields)
            plain[key] = [
                [*_row(model, row, key, i).values()] if isinstance(row, Mapping) else row
                for i, row in enumerate(given)
            ]
    if "graph" in plain:
        columns, check = keys.columns_of(plain, known), known["graph"].check
        links = _links(plain["graph"], [*columns.values()], isinstance(check, LinkRows))
        plain["graph"] = tuple(tuple(link.items()) for link in links)
    if isinstance(plain.get("bounds"), list):
        plain["bounds"] = _bounds(plain["bounds"])
    return plain


def _links(given: Any, columns: list[str], is_network: bool) -> list[dict[str, Any]]:
    """Links by key; those of a network may be lists, and have a length, a capacity and a name."""
    if isinstance(given, str):
        raise refused(f"{NO_FILES}.", "graph")
    if not isinstance(given, list) or not 0 < len(given) <= MOST_LINKS:
        such = f'a graph should be a list of at most {MOST_LINKS:,} links such as ["SEA", "DEN"].'
        raise refused(such, "graph")
    fields: dict[str, Any] = dict.fromkeys(("tail", "head"), (Node, ...))
    if is_network:
        columns = [*(columns or [LENGTH]), CAPACITY]
    fields |= dict.fromkeys(columns, (float | None, None))
    if is_network:
        fields["name"] = (str | None, None)
    model = pydantic.create_model("Link", __base__=Strict, **fields)
    most, found = len(fields) if is_network else 2, []
    for i, row in enumerate(given):
        if isinstance(row, list) and len(row) <= most:
            row = dict(zip(fields, row, strict=False))
        found.append(_row(model, row, "graph", i))
        if found[i]["tail"] == found[i]["head"]:
            raise refused("the link leads to where it begins: leave it out.", "graph", i)
    return found


def _row(model: type[Strict], row: Any, key: str, number: int) -> dict[str, Any]:
    try:
        return model.model_validate(row).given
    except ValidationError as error:
        raise refused(refusal(error, row, model)[1], key, number) from None


def _bounds(given: Sequence[Any]) -> list[Any]:
    if len(given) == 2 and not any(isinstance(each, list) for each in given):
        ends = (-math.inf, math.inf)
        return [end if at is None else at for at, end in zip(given, ends, strict=True)]
    return [_bounds(pair) if isinstance(pair, list) and len(pair) == 2 else pair for pair in given]


# --- sizes of requests ----------------------------------------------------------------------------


def entries_of(choice: Choice) -> int:
    """How many entries a point of this set has: exactly, but for flows of several commodities and
    for paths, of which there may be fewer.

    Examples
    --------
    >>> from tidewolf.experiments.models import entries_of
    >>> entries_of(tw.experiments.Choice.of("Birkhoff", {"n": 10**6}))
    1000000000000
    """
    given = choice.given
    if choice.name in _ENTRIES:
        return _ENTRIES[choice.name](given)
    if "graph" in given:
        return _ways(given)
    if isinstance(given.get("K"), Choice):
        return entries_of(given["K"])
    if "n" in given:
        return _whole(given["n"])
    return max((math.prod(np.shape(value)) for value in given.values()), default=0)


def _require_modest(choice: Choice) -> None:
    waiting = [choice]
    while waiting:
        given = waiting.pop().given
        for value in given.values():
            parts = value if isinstance(value, tuple) else (value,)
            waiting += [part for part in parts if isinstance(part, Choice)]
        if "graph" not in given:
            continue
        _require_most("the links of a graph", _ways(given), MOST_LINKS)
        if given.get("paths") == "k-shortest":
            kept = _ways(given) * len({end for link in given["graph"] for _, end in link[:2]})
            steps = _commodities(given) * int(given.get("k", 3)) * kept
            _require_most("links times nodes of a search for paths", kept, MOST_QUEUED)
            _require_most("the steps of a search for paths", steps, MOST_SEARCHED)
    _require_most("the entries of a point", entries_of(choice), MOST_ENTRIES)


def require_modest_learner(given: Mapping[str, Any], entries: int) -> None:
    """Refuse settings of a learner, for points of so many entries, that would take memory or time
    without end.
    """
    for name in ("step_scales", "experts"):
        if isinstance(given.get(name), tuple):
            _require_most(f"the items of {name}", len(given[name]), MOST_EXPERTS, name)
    if isinstance(calls := given.get("calls_per_round"), int | float):
        _require_most("calls_per_round", calls, MOST_CALLS, "calls_per_round")
    elif "eps" in given:
        raise InvalidInput(
            "With eps, projections take as many oracle calls as they need; here calls_per_round "
            "must bound them: give it, too.",
            setting="calls_per_round",
        )
    for name in ("experts", "data", "window", "block"):
        looks_back = given.get(name, ())
        for back in looks_back if isinstance(looks_back, tuple) else (looks_back,):
            if isinstance(back, int):
                what = f"the rounds of {name} times the entries of a point"
                _require_most(what, back * max(1, entries), MOST_KEPT, name)


def _require_most(what: str, count: float, most: int, setting: str | None = None) -> None:
    if count > most:
        received = f"{count:,}" if count < 10**15 else f"{float(count):.1e}"
        raise InvalidInput(f"{what} may be at most {most:,} here, not {received}.", setting=setting)


def _ways(given: Mapping[str, Any]) -> int:
    return len(given["graph"]) * (2 if given.get("directed") is False else 1)


def _commodities(given: Mapping[str, Any]) -> int:
    return len(given.get("commodities") or (1,))


def _whole(size: Any) -> int:
    return math.prod(size) if isinstance(size, tuple) else int(size)


def _of_network(given: Mapping[str, Any]) -> int:
    if "tunnels" in given:
        return len(given["tunnels"])
    each = given.get("k", 3) if given.get("paths") == "k-shortest" else _ways(given)
    return _commodities(given) * int(each)


def _of_polytope(given: Mapping[str, Any]) -> int:
    columns = [np.shape(given[key])[-1] for key in ("A_ub", "A_eq") if key in given]
    return int(max(columns, default=(np.shape(given.get("bounds", ())) or (0,))[0]))


_SQUARE = ("Birkhoff", "BoundedPSD", "Fantope", "Spectraplex")
# Sets whose points have another size than the setting or the largest array gives.
_ENTRIES: dict[str, Callable[[Mapping[str, Any]], int]] = {
    NETWORK: _of_network,
    **dict.fromkeys(_SQUARE, lambda given: _whole(given["n"]) ** 2),
    "Ellipsoid": lambda given: (np.shape(given["matrix"]) or (0,))[0],
    "MultiFlow": lambda given: _commodities(given) * _ways(given),
    "NuclearBall": lambda given: _whole(given["shape"]),
    "Polytope": _of_polytope,
    "Product": lambda given: sum(map(entries_of, given["parts"])),
    "SimplexProduct": lambda given: sum(given["sizes"]),
    "Transportation": lambda given: math.prod(np.shape(given["rows"]) + np.shape(given["columns"])),
    "VertexHull": lambda given: math.prod(np.shape(given["points"])[1:]),
}


# --- parts of a description -----------------------------------------------------------------------


def _set(table: Any, info: Info) -> Choice | None:
    """[set]; n may be absent if a table of costs says it. A graph with ends is a network, and in a
    request one flow is that, too.
    """
    is_request = info.context.folder is None
    if table == {}:
        if is_request:
            raise ValueError('a set should have a kind such as "Simplex", or a graph')
        return None
    given = table if isinstance(table, dict) else {}
    has_ends = "graph" in given and bool(given.keys() & {"source", "target", "commodities"})
    kinds = (NETWORK, "FlowPolytope") if is_request else (NETWORK,)
    if given["kind"] in kinds if "kind" in given else has_ends:
        known = keys.kind_keys(Network)
        rest = _inline(table, known) if is_request else table
        found = _settings(NETWORK, known, rest, info.context, "kind")
    else:
        stream = info.data.get("stream")
        has_costs = isinstance(stream, keys.Tables) and stream.costs is not None
        found = _choice(keys.set_kinds(), table, info.context, *(["n"] if has_costs else []))
    if is_request:
        _require_modest(found)
    return found


def _learner(entry: Any, info: Info) -> Choice:
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or "name" not in table:
        raise ValueError('a learner should have a name, such as "Ensemble"')
    return _named(keys.learner_keys, table, "name", info.context)


def _budget(table: Any, info: Info) -> Any:
    given = _as_table(table, "a name and a total")
    known = dict(settings_of(Budget))
    if info.context.folder is not None:
        known["spend"] = keys.key("spend", keys.NodesFile("What is spent."), declared.REQUIRED)
    given = _settings("budgets", known, given, info.context).given
    spend = given.pop("spend", None)
    try:
        budget = Budget(**given)
    except InvalidInput as error:
        raise refused(str(error), *filter(table.__contains__, [error.setting or ""])) from None
    return budget if spend is None else (budget, Path(spend))


def _as_table(given: Any, such: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"it should be a table with {such}")
    return given


def _different(given: list[Any]) -> list[Any]:
    names = [(one[0] if isinstance(one, tuple) else one).name for one in given]
    if len(set(names)) < len(names):
        raise ValueError(f"budgets should have different names, not {', '.join(names)}.")
    return given


def _path(name: Any, info: Info) -> Path:
    if not isinstance(name, str) or info.context.folder is None:
        raise ValueError("it should be the name of a file")
    return info.context.folder / name


TableFile = Annotated[Path, PlainValidator(_path)] | None
Functions = Annotated[
    Any, PlainValidator(lambda table, info: _choice(keys.function_kinds(), table, info.context))
]
_PATHS: dict[str, Any] = dict.fromkeys((*keys.TABLES, "context"), (TableFile, None))
SetTable = Annotated[Any, PlainValidator(_set, json_schema_input_type=dict[str, Any])]
BudgetTables = Annotated[
    Some[Annotated[Any, PlainValidator(_budget, json_schema_input_type=dict[str, Any])]],
    AfterValidator(_different),
]
Learner = Annotated[Any, PlainValidator(_learner, json_schema_input_type=str | dict[str, Any])]


# A stream from tables: the names of their files, or functions by kind.
Rows = pydantic.create_model(
    "Rows",
    __base__=Strict,
    **_PATHS,
    advice=(Annotated[dict[str, TableFile], Field(min_length=1)] | None, None),
    objective=(Objective, "cost"),
    gaps=(Gaps, "refuse"),
    losses=(Functions | None, None),
    constraints=(Functions | None, None),
)


def _stream(table: Any, info: Info) -> Choice | keys.Tables | None:
    if isinstance(table, dict) and "problem" in table:
        return _named(keys.problem_keys, table, "problem", info.context)
    if table == {}:
        return None
    try:
        return keys.Tables(**Rows.model_validate(table, context=info.context).given)
    except ValidationError as error:
        path, sentence = refusal(error, table, Rows)
        raise refused(sentence, *path) from None


def _swept(table: Any, info: Info) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    known: dict[str, Setting] = {}
    for learner in info.data.get("learners", ()):
        known = {**keys.learner_keys(learner.name), **known}
    known = {key: at for key, at in known.items() if key not in ("horizon", "seed")}
    horizons = declared.Count("Numbers of rounds, each in place of `rounds`.", unit="rounds")
    known["horizons"] = keys.key("horizons", horizons)
    found = []
    for key, values in (table if isinstance(table, dict) else {"": table}).items():
        if key not in known:
            raise refused(_no_key(key, known), key)
        if not isinstance(values, list) or not values:
            raise refused(f"{key} should be a list of values, not {arguments.shown(values)}.", key)
        at = (info.context.within(key, i) for i in range(len(values)))
        read = [_value(key, known, *each) for each in zip(values, at, strict=True)]
        found.append((key, tuple(dict.fromkeys(read))))
    return tuple(found)


def _format(table: Any, info: Info) -> FileFormat:
    given = _as_table(table, "keys such as separator")
    known = {key: keys.FileKey(*each) for key, each in settings_of(FileFormat).items()}
    return FileFormat(**_settings("files", known, given, info.context).given)


class Outputs(Strict):
    folder: TableFile = None
    checkpoint_seconds: Positive = 10.0
    decisions: Literal["none", "csv", "parquet", "both"] | None = None
    smallest_path: Annotated[float, Field(ge=0.0)] = 0.0


# --- the description ------------------------------------------------------------------------------


class Described(Strict):
    """What an experiment file and a request for a session share."""

    format: Count | None = None
    name: str | None = None
    title: str | None = None
    rounds: Count | None = None
    budgets: BudgetTables | None = None


class File(Described):
    seeds: Seed | Some[Seed] = 0
    caution: Positive | Some[Positive] | None = None
    incumbent: TableFile = None
    left_out: dict[str, str] = {}
    stream: Annotated[Any, PlainValidator(_stream)] = None
    set: SetTable = None
    learners: Some[Learner] = Field([Choice(name) for name in keys.DEFAULT_LEARNERS])
    files: Annotated[Any, PlainValidator(_format)] = PLAIN
    sweep: Annotated[Any, PlainValidator(_swept)] = ()
    outputs: Outputs = Outputs()


def read_file(document: Document, path: Path) -> keys.Experiment:
    try:
        file = File.model_validate(document.data, context=Source(path.parent))
    except ValidationError as error:
        where, sentence = refusal(error, document.data, File)
        raise InvalidInput(f"{document.place(*where)}: {sentence}") from None
    with keys.located(Place(document)):
        return keys.Experiment(
            name=path.stem if file.name is None else file.name,
            stream=keys.Tables() if file.stream is None else file.stream,
            hard_set=file.set,
            learners=_each(file.learners),
            rounds=file.rounds,
            swept=file.sweep,
            seeds=_each(file.seeds),
            cautions=() if file.caution is None else _each(file.caution),
            title=file.title or "",
            files=file.files,
            budgets=tuple(file.budgets or ()),
            incumbent=file.incumbent,
            left_out=tuple(file.left_out.items()),
            document=document,
            **dict(file.outputs),
        )


def _each(given: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(given if isinstance(given, list) else [given]))
