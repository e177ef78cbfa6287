"""Strict pydantic models: no unknown key, no text or true for a number, every number finite.

What is refused has a path, the keys that lead there, and one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import LARGEST_COUNT
from tidewolf.core.names import did_you_mean

V = TypeVar("V")
One = Annotated[list[V], Field(min_length=1, max_length=1)]
Some = Annotated[list[V], Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
Seed = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
Positive = Annotated[float, Field(gt=0.0)]
Path = list[str | int]
_REFUSED: Literal["refused"] = "refused"


class Strict(BaseModel):
    """A table of keys, none of which is unknown, of another kind, or no finite number."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    @property
    def given(self) -> dict[str, Any]:
        """The keys that have a value."""
        return {key: value for key, value in self.__dict__.items() if value is not None}


def refused(sentence: str, *path: str | int) -> ValidationError:
    """An error for validators to raise, about what is found under this path.

    Parameters
    ----------
    sentence : str
        What is wrong.
    path : str or int
        Keys, from the table that is validated on.

    Returns
    -------
    ValidationError
        Pydantic puts the keys that lead to the table in front.
    """
    kind = PydanticCustomError(_REFUSED, "{sentence}", {"sentence": sentence})
    return ValidationError.from_exception_data(
        "", [InitErrorDetails(type=kind, loc=path, input=None)]
    )


def refusal(found: ValidationError, given: Any, model: type[BaseModel]) -> tuple[Path, str]:
    """The keys that lead to what pydantic refuses, and a sentence about it.

    Parameters
    ----------
    found : ValidationError
        All errors; one is chosen, unknown keys first.
    given : object
        What was read.
    model : type
        The model that read it.

    Returns
    -------
    tuple
        The path and the sentence.
    """
    errors = found.errors(include_url=False)
    unknown = [one for one in errors if one["type"] == "extra_forbidden"]
    error = max(unknown or errors, key=lambda one: len(_followed(one["loc"], given)[0]))
    if error["type"] == _REFUSED:
        return list(error["loc"]), error["ctx"]["sentence"]
    path, part = _followed(error["loc"], given)
    if error["type"] == "missing":
        return path, f"{path[-1]} is missing."
    if error["type"] == "extra_forbidden":
        known, word = _fields(model, path[:-1]), str(path[-1])
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        return path, f"there is no key {word!r}; {takes}.{did_you_mean(word, known)}"
    if error["type"] == "value_error":
        said = str(error["ctx"]["error"])
        return path, said if said.endswith((".", "?")) else f"{said}, not {shown(part)}."
    name = next((key for key in reversed(path) if isinstance(key, str)), "The request")
    _, _, should = error["msg"].partition(" after validation")[0].partition(" ")
    should = "should be an object" if "dictionary" in should else should
    return path, f"{name} {should}, not {shown(part)}."


def _fields(model: Any, path: Sequence[str | int]) -> Sequence[str]:
    """The keys of the table at a path."""
    for key in path:
        model = model.model_fields[key].annotation
    return tuple(model.model_fields)


def _followed(path: Sequence[int | str], given: Any) -> tuple[Path, Any]:
    """The keys of a path that lead somewhere, and where; the others are what a union tried."""
    keys: Path = []
    for key in path:
        if isinstance(given, list) and isinstance(key, int):
            keys, given = [*keys, key], given[key]
        elif isinstance(given, Mapping) and isinstance(key, str):
            keys, given = [*keys, key], given.get(key)
    return keys, given
