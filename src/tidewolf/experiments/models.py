"""Pydantic models of experiment files and of requests for a session.

`Described` is what both share; `File` is an experiment in TOML, and `service.description` adds how
a session is served. Tables of sets, functions, problems and learners have models made of the
settings that their classes declare (`core.settings`), so that nothing is described twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)

from tidewolf.core import settings as declared
from tidewolf.core.arrays import LARGEST_COUNT, as_count
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import did_you_mean
from tidewolf.core.settings import Setting, settings_of
from tidewolf.experiments.experiment import DEFAULT_LEARNERS, Experiment, Tables
from tidewolf.experiments.keys import (
    NETWORK,
    Choice,
    FileKey,
    Keys,
    function_kinds,
    inner_of,
    key,
    kind_keys,
    learner_keys,
    names_file,
    problem_keys,
    sayable,
    set_kinds,
    takes_a_set,
    words_of,
)
from tidewolf.experiments.loading import Document
from tidewolf.experiments.requests import NO_FILES, network_rows, require_modest, set_rows
from tidewolf.experiments.strict import Count, Positive, Seed, Some, Strict, refusal, refused
from tidewolf.files.format import FileFormat
from tidewolf.networks import Network
from tidewolf.sets import ConvexSet

DEEPEST = 20
"""Sets within sets."""
_HORIZONS = key(
    "horizons", declared.Count("Numbers of rounds, each in place of `rounds`.", unit="rounds")
)


class Source(NamedTuple):
    """Where a table comes from: the context of validation."""

    folder: Path | None
    """from which paths are seen; None: a request, which names no files"""
    depth: int = 0
    """how many sets it is within"""


Info: TypeAlias = "ValidationInfo[Source]"


# --- tables by the settings that classes declare --------------------------------------------------


@cache
def settings_model(known_by: Callable[[Any], Keys], name: Any, *optional: str) -> type[Strict]:
    """The model of a table of settings.

    Parameters
    ----------
    known_by : callable
        `kind_keys`, `learner_keys` or `problem_keys`.
    name : object
        What has the settings.
    optional : str
        Keys that may be absent here.

    Returns
    -------
    type
        With a field for each setting that a file can give.
    """
    known = known_by(name)
    fields: dict[str, Any] = {
        each: (_field(setting, known), ... if setting.required and each not in optional else None)
        for each, setting in known.items()
    }
    return create_model("Settings", __base__=Strict, **fields)


def _field(setting: Setting, known: Keys) -> Any:
    """What a field for a setting takes: a table, a list of tables, or a plain value."""
    part = inner_of(setting)
    if part is None:
        is_file = names_file(known, setting.key)
        return Annotated[Any, PlainValidator(partial(_value, setting, is_file))]
    kinds: Mapping[str, type] = set_kinds() if part.kind is ConvexSet else function_kinds()
    inner = Annotated[Any, PlainValidator(partial(_choice, kinds))]
    return Annotated[Some[inner], AfterValidator(tuple)] if part.several else inner


def _value(setting: Setting, is_file: bool, value: Any, info: Info) -> Any:
    """The value of one key, frozen; paths are seen from the folder of the file."""
    found = None if setting.check is None else setting.check.read(value)
    if found is None or not sayable(found):
        raise ValueError(f"{setting.key} should be {words_of(setting)}")
    if type(value) is int:
        as_count(value, setting.key, least=-LARGEST_COUNT)
    if isinstance(setting, FileKey) and setting.check is not None:
        found = setting.check(found, setting.key)
    if not is_file or not isinstance(found, str):
        return found
    if info.context.folder is None:
        raise ValueError(NO_FILES)
    return str(info.context.folder / found)


def _choice(kinds: Mapping[str, type], table: Any, info: Info, *optional: str) -> Choice:
    """A set or a batch of functions: a table with a kind and its settings."""
    if not isinstance(table, dict):
        raise ValueError(f'it should be a table with a kind such as "{next(iter(kinds))}"')
    if info.context.depth >= DEEPEST:
        raise ValueError(f"Sets are nested deeper than {DEEPEST} levels: describe a simpler one.")
    kind = table.get("kind", implied_kind(table, kinds))
    if not isinstance(kind, str) or kind not in kinds:
        near = did_you_mean(str(kind), kinds)
        raise refused(f"kind should be one of {', '.join(kinds)}, not {kind!r}.{near}", "kind")
    if info.context.folder is None:
        table = set_rows(table, kind_keys(kinds[kind]))
    return _settings(kind, settings_model(kind_keys, kinds[kind], *optional), table, info, "kind")


def _settings(name: str, model: type[Strict], table: Any, info: Info, under: str) -> Choice:
    """What is chosen by the name under a key, with its settings."""
    rest = {key: value for key, value in table.items() if key != under}
    return Choice.of(name, _given(model, rest, info, f"{name}: "))


def _given(model: type[Strict], table: Any, info: Info, owner: str = "") -> Any:
    """The keys of a table within another; what is missing is refused at the table."""
    context = info.context._replace(depth=info.context.depth + 1)
    try:
        return model.model_validate(table, context=context).given
    except ValidationError as error:
        path, sentence = refusal(error, table, model)
        if len(path) <= 1:
            sentence = f"{owner}{sentence}"
        raise refused(sentence, *(path if path and path[0] in table else ())) from None


def implied_kind(table: Mapping[str, Any], kinds: Mapping[str, type]) -> str:
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


# --- parts of a description -----------------------------------------------------------------------


def _set(table: Any, info: Info) -> Choice | None:
    """[set]; n may be absent if a table of costs says it."""
    is_request = info.context.folder is None
    if table == {}:
        if is_request:
            raise ValueError('a set should have a kind such as "Simplex", or a graph')
        return None
    if isinstance(table, dict) and _is_network(table, is_request):
        rest = network_rows(table) if is_request else table
        found = _settings(NETWORK, settings_model(kind_keys, Network), rest, info, "kind")
    else:
        stream = info.data.get("stream")
        has_costs = isinstance(stream, Tables) and stream.costs is not None
        found = _choice(set_kinds(), table, info, *(["n"] if has_costs else []))
    if is_request:
        require_modest(found)
    return found


def _is_network(table: Mapping[str, Any], is_request: bool) -> bool:
    """Whether it is a graph and what goes over it; in a request one flow is that, too."""
    if "kind" in table:
        return table["kind"] == NETWORK or (is_request and table["kind"] == "FlowPolytope")
    return "graph" in table and bool(table.keys() & {"source", "target", "commodities"})


def _learner(entry: Any, info: Info) -> Choice:
    """A learner by name, or a table with its name and settings."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or "name" not in table:
        raise ValueError('a learner should have a name, such as "Ensemble"')
    return _named(learner_keys, table, "name", info)


def _named(known_by: Callable[[Any], Keys], table: dict[str, Any], key: str, info: Info) -> Choice:
    name = table[key]
    if not isinstance(name, str):
        raise refused(f"{key} should be text, not {name!r}.", key)
    try:
        model = settings_model(known_by, name)
    except InvalidInput as error:
        raise refused(str(error), key) from None
    return _settings(name, model, table, info, key)


def _path(name: Any, info: Info) -> Path:
    if not isinstance(name, str) or info.context.folder is None:
        raise ValueError("it should be the name of a file")
    return info.context.folder / name


TableFile = Annotated[Path, PlainValidator(_path)] | None
Functions = Annotated[
    Any, PlainValidator(lambda table, info: _choice(function_kinds(), table, info))
]
SetTable = Annotated[Any, PlainValidator(_set, json_schema_input_type=dict[str, Any])]
Learner = Annotated[Any, PlainValidator(_learner, json_schema_input_type=str | dict[str, Any])]


class Rows(Strict):
    """A stream from tables; the names of their files, or functions by kind."""

    costs: TableFile = None
    capacities: TableFile = None
    weights: TableFile = None
    budgets: TableFile = None
    demands: TableFile = None
    context: TableFile = None
    advice: Annotated[dict[str, TableFile], Field(min_length=1)] | None = None
    gaps: Literal["refuse", "unseen", "last"] = "refuse"
    losses: Functions | None = None
    constraints: Functions | None = None


def _stream(table: Any, info: Info) -> Choice | Tables | None:
    """[stream]: a built-in problem by name, or tables."""
    if isinstance(table, dict) and "problem" in table:
        return _named(problem_keys, table, "problem", info)
    if table == {}:
        return None
    return Tables(**_given(Rows, table, info))


def _swept(table: Any, info: Info) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """[sweep]: lists of values, each of a kind that some learner takes."""
    known: dict[str, Setting] = {}
    for learner in info.data.get("learners", ()):
        known = {**learner_keys(learner.name), **known}
    known = {**known, "horizons": _HORIZONS}
    fields: dict[str, Any] = {
        key: (Annotated[GenericAlias(list, _field(setting, known)), Field(min_length=1)], None)
        for key, setting in known.items()
        if key not in ("horizon", "seed")
    }
    found = _given(create_model("Sweep", __base__=Strict, **fields), table, info)
    return tuple((key, tuple(dict.fromkeys(found[key]))) for key in table)


class Outputs(Strict):
    """Where results go."""

    folder: TableFile = None
    checkpoint_seconds: Positive = 10.0
    decisions: Literal["none", "csv", "parquet", "both"] | None = None
    smallest_path: Annotated[float, Field(ge=0.0)] = 0.0


_FORMAT: dict[str, Any] = {
    name: (_field(FileKey(*setting), {}), None) for name, setting in settings_of(FileFormat).items()
}
_Format: Any = create_model("_Format", __base__=Strict, **_FORMAT)


class Files(_Format):  # type: ignore[misc]
    """How text is written in tables and graphs."""


# --- the description ------------------------------------------------------------------------------


class Described(Strict):
    """What an experiment file and a request for a session share."""

    format: Count | None = None
    name: str | None = None
    title: str | None = None
    rounds: Count | None = None


class File(Described):
    """An experiment file."""

    seeds: Seed | Some[Seed] = 0
    caution: Positive | Some[Positive] | None = None
    incumbent: TableFile = None
    stream: Annotated[Any, PlainValidator(_stream)] = None
    set: SetTable = None
    learners: Some[Learner] = Field([Choice(name) for name in DEFAULT_LEARNERS])
    files: Files = Files()
    sweep: Annotated[Any, PlainValidator(_swept)] = ()
    outputs: Outputs = Outputs()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """A built-in problem has a set, or takes one; tables need one; a network is a stream."""
        stream, given = self.stream, self.set
        if stream is None and (given is None or given.name != NETWORK):
            ways = 'problem = "routing", or costs = "costs.csv" and capacities = "capacities.csv"'
            raise refused(f"an experiment needs a [stream]: {ways}.", "stream")
        if isinstance(stream, Choice):
            if given is not None and not takes_a_set(stream.name):
                raise refused(f"{stream.name} has a set of its own: leave [set] out.", "set")
        elif given is None:
            raise refused('tables need a [set], such as kind = "Simplex", or a graph.')
        return self


def read_file(document: Document, path: Path) -> Experiment:
    """The experiment that a document describes."""
    try:
        file = File.model_validate(document.data, context=Source(path.parent))
    except ValidationError as error:
        where, sentence = refusal(error, document.data, File)
        raise InvalidInput(f"{document.place(*where)}: {sentence}") from None
    return Experiment(
        name=path.stem if file.name is None else file.name,
        stream=Tables() if file.stream is None else file.stream,
        hard_set=file.set,
        learners=_each(file.learners),
        swept=file.sweep,
        rounds=file.rounds,
        seeds=_each(file.seeds),
        cautions=() if file.caution is None else _each(file.caution),
        title=file.title or "",
        files=FileFormat(**file.files.given),
        incumbent=file.incumbent,
        document=document,
        **dict(file.outputs),
    )


def _each(given: Any) -> tuple[Any, ...]:
    """Values, each once: a list of them, or one."""
    return tuple(dict.fromkeys(given if isinstance(given, list) else [given]))
