"""Read the rounds of an experiment one row at a time, as they arrive.

    {"costs": {"SEA > DEN": 1.2, ...}, "capacities": [...], "demands": ...}

Which number of a row belongs to which entry, or link, depends on the names in it alone, and a
sender uses the same names every round. So that layout (the place in the row of each entry, -1 if it
has none) is computed once for each list of names:

    costs = numbers[layout],    f(x) = <costs, x>,    g(x) = max_i x_i - capacities_i
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.batch import Batch, Unlimited
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import match_names
from tidewolf.core.types import Floats, Int64s
from tidewolf.experiments.building import TABLES, Coordinates, coordinates_of, read_rows
from tidewolf.experiments.experiment import Experiment, Tables
from tidewolf.experiments.keys import Choice
from tidewolf.experiments.loading import Place
from tidewolf.explanation.explain import namer
from tidewolf.files.reading import CSV, read_header
from tidewolf.files.table import column_names, is_time
from tidewolf.functions import Affine, Capacity, Linear
from tidewolf.networks import Network
from tidewolf.sets import ConvexSet

MOST_LAYOUTS = 16
"""Layouts that are remembered."""
Columns: TypeAlias = tuple[str, ...] | int
"""The names of a row in their order, or how many numbers a list has."""


class RoundReader:
    """The set of an experiment on tables, what its entries are called, and functions of rows; the
    tables themselves need no rows, nor be there.
    """

    def __init__(self, experiment: Experiment) -> None:
        stream, choice = experiment.stream, experiment.hard_set
        if (
            not isinstance(stream, Tables)
            or choice is None
            or not stream.losses is stream.constraints is None
        ):
            kind = "a built-in problem, or has functions by name"
            raise InvalidInput(f"Rows are read for tables; {experiment.name} is {kind}.")
        self.experiment = experiment
        columns = _columns(experiment, stream)
        entries = None if columns is None else len(columns)
        self._prepare(coordinates_of(choice, entries, experiment.place("set")), columns or ())
        if columns is not None and self.K.shape != (len(columns),) and self.network is None:
            self.names = _names(self.K)  # columns name the entries of a matrix in rows alone

    @classmethod
    def of_set(cls, choice: Choice, place: Place, names: Sequence[str] = ()) -> Self:
        """A reader for a set alone, without tables: its entries have these names, or else the
        set's own, or their places.
        """
        coordinates = coordinates_of(choice, None, place)
        if names and coordinates.links is not None:
            raise InvalidInput(f"{place.words()}entries are called as links are: leave names out.")
        reader = cls.__new__(cls)
        reader._prepare(coordinates, names)
        if coordinates.links is not None:  # two links of one name are refused
            coordinates.links.places(tuple(map(str, range(reader._size))), "")
        for name, count in Counter(reader.names).items():
            if count > 1:
                raise InvalidInput(
                    f"{place.words()}{count} entries of a point are called {name!r}."
                )
        return reader

    def _prepare(self, coordinates: Coordinates, names: Sequence[str]) -> None:
        self._coordinates = coordinates
        network = self.network
        size = math.prod(self.K.shape) if network is None else len(network.links)
        self._size, self._unlimited = size, Unlimited(self.K.shape)
        self.names = coordinates.labels or _names(self.K, names)
        self._called = self.names
        self._layouts: dict[tuple[str, Columns], Int64s] = {}

    @property
    def K(self) -> ConvexSet:
        """The set of decisions."""
        return self._coordinates.K

    @property
    def network(self) -> Network | None:
        """The network, if that is what is decided on."""
        return self._coordinates.network

    def functions(self, row: Mapping[str, Any], source: str = "the row") -> tuple[Batch, Batch]:
        """The loss and the constraint of a round.

        A row has costs, and perhaps capacities, or weights and budgets (one number), and demands:
        each numbers by name, or a list in the order of links (of entries, if there are none).
        Messages call it `source`.
        """
        network, keys = self.network, {name for name in TABLES if name in row}
        if "costs" not in keys and (network is None or not keys):
            raise InvalidInput(f"{source} has no costs; it has {', '.join(row) or 'nothing'}.")
        if ("weights" in keys) != ("budgets" in keys):
            raise InvalidInput(f"{source} needs weights and budgets together.")
        if network is None and ("demands" in keys or {"capacities", "weights"} <= keys):
            given = ", ".join(sorted(keys))
            raise InvalidInput(f"{source}: only a network takes {given} together.")
        numbers = {name: self._numbers(name, row[name], f"{source}, {name}") for name in keys}
        if (files := self._coordinates.on_network) is not None:
            if "demands" in keys and (numbers["demands"] < 0.0).any():
                raise InvalidInput(f"{source}: expected demands of at least 0.")
            return files.of_numbers(numbers)
        shape = (1, *self.K.shape)
        loss = Linear._unchecked(C=numbers["costs"].reshape(shape))
        if "capacities" in numbers:
            return loss, Capacity._unchecked(c=numbers["capacities"].reshape(shape))
        if "weights" in numbers:
            weights, budget = numbers["weights"].reshape(shape), numbers["budgets"]
            return loss, Affine._unchecked(A=weights, b=budget)
        return loss, self._unlimited

    def _numbers(self, name: str, given: Any, where: str) -> Floats:
        """Finite numbers in the order of entries, links or commodities."""
        by_name = isinstance(given, Mapping)
        values = list(given.values()) if by_name else given
        values = list(values) if isinstance(values, list | tuple) else [values]
        columns: Columns = tuple(map(str, given)) if by_name else len(values)
        numbers = _floats(values)
        if not np.isfinite(numbers).all():
            i = next(i for i, each in enumerate(values) if not np.isfinite(_floats([each])).all())
            at = repr(columns[i]) if isinstance(columns, tuple) else f"number {i + 1}"
            raise InvalidInput(f"{where}, {at}: expected a finite number, not {shown(values[i])}.")
        layout = self._layouts.get((name, columns))
        if layout is None:
            layout = self._find(name, columns, where)
            if len(self._layouts) >= MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts[name, columns] = layout
        files = self._coordinates.on_network
        if files is not None and name != "budgets":
            return files.in_order(name, numbers[None], layout)
        return np.where(layout >= 0, numbers[layout], 0.0)

    def _find(self, name: str, columns: Columns, where: str) -> Int64s:
        """The place of the number of each entry, link or commodity in a row with these names."""
        files, size = self._coordinates.on_network, 1 if name == "budgets" else self._size
        if name == "demands" and self.network is not None:
            size = len(self.network.demands)
        if isinstance(columns, int) or name == "budgets" or size == len(columns) == 1:
            count = columns if isinstance(columns, int) else len(columns)
            if count != size:
                raise InvalidInput(f"{where}: expected {size} numbers, received {count}.")
            return np.arange(size)
        if files is not None:
            return files.places(name, columns, where)
        if self._coordinates.on_links is not None:
            return self._coordinates.on_links.places(columns, where)
        return match_names(columns, self._called, where)


def _floats(values: Sequence[Any]) -> Floats:
    """Numbers as an array; NaN if one of them is text, true or too large."""
    try:
        plain = set(map(type, values)) <= {int, float}
        return np.array(values if plain else [np.nan], dtype=np.float64)
    except OverflowError:  # a whole number of hundreds of digits
        return np.array([np.nan])


def _names(K: ConvexSet, names: Sequence[str] = ()) -> tuple[str, ...]:
    name = namer(K, names or None)
    return tuple(name(i) for i in range(math.prod(K.shape)))


def _columns(experiment: Experiment, stream: Tables) -> tuple[str, ...] | None:
    """What the first table calls coordinates, if it is there."""
    path = stream.costs
    if path is None or not path.is_file():
        return None
    if path.name.lower().endswith(CSV):  # which may grow
        header = read_header(path, experiment.files)
        return column_names(header[int(is_time(header[0])) :] if header else (), str(path))
    return read_rows(path, experiment.place("stream", "costs"), gaps=True).columns
