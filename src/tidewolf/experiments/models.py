"""What an experiment file says, as pydantic models; descriptions of sessions share their parts.

Sets, functions, problems and learners are read by the settings that they declare (`toml_tables`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    create_model,
)

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import LARGEST_COUNT
from tidewolf.core.names import did_you_mean
from tidewolf.core.settings import Setting, settings_of
from tidewolf.experiments.toml import Document
from tidewolf.files.format import FileFormat

V = TypeVar("V")
One = Annotated[list[V], Field(min_length=1, max_length=1)]
Some = Annotated[list[V], Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
Seed = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
Positive = Annotated[float, Field(gt=0.0)]
Learner = str | dict[str, Any]


class Strict(BaseModel):
    """A table of keys, none of which is unknown, of another kind, or no finite number."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    @property
    def given(self) -> dict[str, Any]:
        """The keys that have a value."""
        return {key: value for key, value in self.__dict__.items() if value is not None}


M = TypeVar("M", bound=Strict)


class Outputs(Strict):
    """Where results go."""

    folder: str | None = None
    checkpoint_seconds: Positive = 10.0
    decisions: Literal["none", "csv", "parquet", "both"] | None = None
    smallest_path: Annotated[float, Field(ge=0.0)] = 0.0


def _declared(make: Any) -> dict[str, Any]:
    """The fields of a model from settings that are declared, which may all be absent."""
    return {
        setting.name: (Annotated[Any, PlainValidator(partial(_checked, setting))], None)
        for setting in settings_of(make).values()
    }


def _checked(setting: Setting, value: Any) -> Any:
    assert setting.check is not None
    found = setting.check.read(value)
    if found is None:
        raise ValueError(f"{setting.key} should be {setting.words}")
    return setting.check(found, setting.key)


_Declared: Any = create_model("_Declared", __base__=Strict, **_declared(FileFormat))


class Files(_Declared):  # type: ignore[misc]
    """How text is written in tables and graphs."""


class Rows(Strict):
    """A stream from tables; the names of their files, or functions by kind."""

    costs: str | None = None
    capacities: str | None = None
    weights: str | None = None
    budgets: str | None = None
    demands: str | None = None
    context: str | None = None
    advice: Annotated[dict[str, str], Field(min_length=1)] | None = None
    gaps: Literal["refuse", "unseen", "last"] = "refuse"
    losses: Any = None
    constraints: Any = None


class File(Strict):
    """An experiment file."""

    format: Count = 1
    name: str | None = None
    title: str = ""
    rounds: Count | None = None
    seeds: Seed | Some[Seed] = 0
    caution: Positive | Some[Positive] | None = None
    incumbent: str | None = None
    set: dict[str, Any] = {}
    stream: dict[str, Any] = {}
    learners: Some[Learner] | None = None
    files: Files = Files()
    sweep: dict[str, Some[Any]] = {}
    outputs: Outputs = Outputs()


def read_model(kind: type[M], document: Document, *path: str | int) -> M:
    """The table of a file at this path.

    Parameters
    ----------
    kind : type
        Its model.
    document : Document
        The file.
    path : str or int
        The keys that lead to the table.

    Returns
    -------
    Strict
        What it says.

    Raises
    ------
    InvalidInput
        If a key is unknown or of another kind, with its line and column.
    """
    table: Any = document.data
    for key in path:
        table = table[key]
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        where, sentence = refusal(error, table, kind)
        raise document.refused(sentence, *path, *where) from None


def refusal(
    found: ValidationError, given: Any, kind: type[BaseModel]
) -> tuple[list[str | int], str]:
    """The keys that lead to what pydantic refuses, and a sentence about it.

    Parameters
    ----------
    found : ValidationError
        What it says; keys that are unknown come first.
    given : object
        What was read.
    kind : type
        By which model.

    Returns
    -------
    tuple
        Keys and places, and the sentence.
    """
    errors = found.errors(include_url=False)
    unknown = [one for one in errors if one["type"] == "extra_forbidden"]
    error = max(unknown or errors, key=lambda one: len(_followed(one["loc"], given)[0]))
    keys, part = _followed(error["loc"], given)
    if error["type"] == "missing":
        return keys, f"{keys[-1]} is missing."
    if error["type"] == "extra_forbidden":
        known, word = _fields(kind, keys[:-1]), str(keys[-1])
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        return keys, f"there is no key {word!r}; {takes}.{did_you_mean(word, known)}"
    if error["type"] == "value_error":
        said = str(error["ctx"]["error"])
        return keys, said if said.endswith(".") else f"{said}, not {shown(error['input'])}."
    name = next((key for key in reversed(keys) if isinstance(key, str)), "The request")
    _, _, should = error["msg"].partition(" after validation")[0].partition(" ")
    should = "should be an object" if "dictionary" in should else should
    return keys, f"{name} {should}, not {shown(part)}."


def _fields(kind: Any, path: Sequence[str | int]) -> Sequence[str]:
    """The keys of the table at a path."""
    for key in path:
        kind = kind.model_fields[key].annotation
    return tuple(kind.model_fields)


def _followed(path: Sequence[int | str], given: Any) -> tuple[list[str | int], Any]:
    """The keys of a path that lead somewhere, and where; the others are what a union tried."""
    keys = list[str | int]()
    for key in path:
        if isinstance(given, list) and isinstance(key, int):
            keys, given = [*keys, key], given[key]
        elif isinstance(given, Mapping) and isinstance(key, str):
            keys, given = [*keys, key], given.get(key)
    return keys, given
