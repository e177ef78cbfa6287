"""Build sets, batches of functions and learners from the settings of a file.

Names of tables become arrays, tables within tables become sets and functions of their own. An error
gets the line and column of the setting that it carries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tidewolf.core.archive import read_arrays
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.core.names import match_names, plain_name
from tidewolf.core.settings import Numbers, Setting, constructor_of
from tidewolf.core.types import NDArray
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.keys import (
    Keys,
    is_network,
    kind_keys,
    kind_named,
)
from tidewolf.experiments.toml import Place, with_location
from tidewolf.files import Table, file_of, read_table
from tidewolf.methods.context import Season

Reader: TypeAlias = Callable[[Path, Place], NDArray]


def read_rows(path: Path, place: Place, *, gaps: bool = False) -> Table:
    """The rows of a table, one a round; with `gaps`, cells may be empty."""
    require_file(path, place)
    return read_table(path, gaps=gaps, format=place.format)


def read_numbers(path: Path, place: Place) -> Table:
    """The numbers of a table; an NPZ or NPY file may hold an array of any number of axes."""
    require_file(path, place)
    ending = path.name.lower().rpartition(".")[2]
    try:
        if ending == "npy":
            return Table(None, (), np.array(np.load(path, mmap_mode="r", allow_pickle=False)))
        if ending == "npz":
            with open(path, "rb") as file:
                arrays = read_arrays(file, path.stat().st_size)
            held = [name for name in arrays if name not in ("columns", "times")]
            name = "values" if "values" in held else held[0] if len(held) == 1 else ""
            if name and arrays[name].ndim != 2:
                return Table(None, (), arrays[name])
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(f"{path} cannot be read as {ending.upper()}: {error}.") from error
    return read_table(path, format=place.format)


def read_values(path: Path, place: Place) -> NDArray:
    """The numbers of a table, without the names of its columns."""
    return read_numbers(path, place).values


def read_point(labels: Sequence[str], path: Path, place: Place) -> NDArray:
    """The numbers of a table; a single row with a column for each entry is a point, in the order of
    these labels.
    """
    table = read_numbers(path, place)
    if len(table.values) != 1 or table.values.ndim != 2:
        return table.values
    if set(map(plain_name, labels)).isdisjoint(map(plain_name, table.columns)):
        return np.asarray(table.values[0])
    return np.asarray(table.values[0, match_names(table.columns, labels, f"{place.words()}{path}")])


def build(
    make: Callable[..., Any],
    given: Mapping[str, Any],
    known: Keys,
    place: Place,
    read: Reader = read_values,
) -> Any:
    """What `make` makes of settings by key, with `read` for names of tables."""
    values = {
        known[key].name: value_of(known[key], value, place.within(key), read)
        for key, value in given.items()
    }
    try:
        if "season" in values:
            values["experts"] = (Season(values.pop("season")), *values.get("experts", ()))
        return make(**values)
    except TidewolfError as error:
        raise with_location(error, place, known) from None


def build_choice(choice: Choice, place: Place, read: Reader = read_values) -> Any:
    """The set or the batch of functions that a file describes."""
    from tidewolf.experiments.links import build_on_links, network_of

    kind = kind_named(choice.name)
    known = kind_keys(kind)
    if is_network(choice):
        return network_of(choice, place).network.K
    if "graph" in known:
        return build_on_links(choice, place).K
    return build(constructor_of(kind), choice.given, known, place, read)


def value_of(setting: Setting, value: Any, place: Place, read: Reader = read_values) -> Any:
    """The value of one setting."""
    if isinstance(value, Choice):
        return build_choice(value, place, read)
    if isinstance(value, tuple) and value and isinstance(value[0], Choice):
        return tuple(build_choice(each, place.within(i), read) for i, each in enumerate(value))
    if isinstance(setting.check, Numbers):
        if isinstance(value, str):
            array = read(Path(value), place)
            flat = setting.check.axes == 1 and array.ndim == 2 and 1 in array.shape
            return array.reshape(-1) if flat else array
        return np.array(value) if isinstance(value, tuple) else value
    if setting.check is None:
        return value
    try:
        return setting.check.build(value)
    except TidewolfError as error:
        raise with_location(error, place) from None


def require_file(path: Path, place: Place) -> None:
    """Refuse a path that is no file."""
    if not file_of(path).is_file():
        raise InvalidInput(
            f"{place.words()}there is no file {file_of(path)}; paths are seen from the folder of "
            "the experiment's file."
        )
