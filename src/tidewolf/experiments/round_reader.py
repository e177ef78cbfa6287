"""Read the rounds of an experiment one row at a time, as they arrive."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Int64s
from tidewolf.experiments.building import read_rows
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.coordinates import Coordinates, coordinates_of
from tidewolf.experiments.experiment import TABLES, Experiment, Tables
from tidewolf.experiments.quick_rows import Columns, Layouts, QuickLinks, QuickRows
from tidewolf.experiments.toml import Place
from tidewolf.explanation.explain import namer
from tidewolf.files import Table
from tidewolf.files.reading import CSV, read_header
from tidewolf.files.table import column_names, is_time
from tidewolf.networks import Network
from tidewolf.sets import ConvexSet


class RoundReader:
    """The set of an experiment on tables, what its entries are called, and functions of rows; the
    tables themselves need no rows, nor be there.
    """

    def __init__(self, experiment: Experiment) -> None:
        stream, choice = experiment.stream, experiment.hard_set
        if not isinstance(stream, Tables) or choice is None:
            raise InvalidInput(
                f"The experiment {experiment.name} is a built-in problem; rows are read for a "
                "[set] of one's own, such as a network."
            )
        if stream.losses is not None or stream.constraints is not None:
            raise InvalidInput(
                f"The experiment {experiment.name} has functions by name; rows hold costs, and "
                "capacities, or weights and a budget."
            )
        self.experiment = experiment
        columns = _columns(experiment, stream)
        coordinates = coordinates_of(
            choice, None if columns is None else len(columns), experiment.place("set")
        )
        if columns is not None and not coordinates.labels:
            assert stream.costs is not None
            named = Table(None, columns, np.zeros((1, len(columns))))
            coordinates.columns(named, stream.costs)
        self._prepare(coordinates)

    @classmethod
    def of_set(cls, choice: Choice, place: Place, names: Sequence[str] = ()) -> Self:
        """A reader for a set alone, without tables: its entries have these names, or else the
        set's own, or their places.
        """
        coordinates = coordinates_of(choice, None, place)
        if coordinates.on_network is None and coordinates.on_links is None:
            name = namer(coordinates.K, names or None)
            called = tuple(name(i) for i in range(math.prod(coordinates.K.shape)))
            coordinates.names, coordinates.first = called, Path("the set")
        elif names:
            raise InvalidInput(
                f"{place.words()}the entries of a point on links are called as the links are; "
                "leave names out."
            )
        reader = cls.__new__(cls)
        reader._prepare(coordinates, coordinates.names)
        reader._require_names(place)
        return reader

    def _prepare(self, coordinates: Coordinates, named: tuple[str, ...] = ()) -> None:
        self._coordinates, self._named = coordinates, named
        layouts = Layouts(self._layout)
        files = coordinates.on_network
        self._quick: QuickRows | QuickLinks = (
            QuickRows(coordinates.K.shape, layouts) if files is None else QuickLinks(files, layouts)
        )

    def _require_names(self, place: Place) -> None:
        """Refuse a set two of whose entries, or links, have one name."""
        if self._coordinates.on_network is not None or self._coordinates.on_links is not None:
            self._layout("capacities", self._size)
        for name, count in Counter(self.names).items():
            if count > 1:
                raise InvalidInput(
                    f"{place.words()}{count} entries of a point are called {name!r}; give each a "
                    "name of its own."
                )

    @property
    def K(self) -> ConvexSet:
        """The set of decisions."""
        return self._coordinates.K

    @property
    def network(self) -> Network | None:
        """The network, where that is what is decided on."""
        return self._coordinates.network

    @property
    def names(self) -> tuple[str, ...]:
        """What the entries of a decision are called; empty where they have no names."""
        return self._named or self._coordinates.labels or tuple(self.K.names or ())

    def functions(self, row: Mapping[str, Any], source: str = "the row") -> tuple[Batch, Batch]:
        """The loss and the limit of a round.

        A row has costs, and perhaps capacities, or weights and budgets (one number), and demands:
        each numbers by name, or a list in the order of links (of entries, where there are none).
        Sentences call it `source`.
        """
        given = {name: row[name] for name in TABLES if name in row}
        found = self._quick.functions(given)
        if found is None:
            found = self.read_slowly(row, source)
            self._quick.layouts.remember(given)
        return found

    def read_slowly(self, row: Mapping[str, Any], source: str = "the row") -> tuple[Batch, Batch]:
        """The same by way of tables of one row, which say what is wrong with it."""
        tables = {name: self._table(name, row[name], source) for name in TABLES if name in row}
        if "costs" not in tables and self.network is None:
            raise InvalidInput(f"{source} has no costs; it has {', '.join(row) or 'nothing'}.")
        if not tables:
            raise InvalidInput(f"{source} has none of {', '.join(TABLES)}.")
        if ("weights" in tables) != ("budgets" in tables):
            raise InvalidInput(f"{source} needs weights and budgets together.")
        if self.network is None:
            self._require_plain(tables, source)
        called = {name: Path(f"{source}, {name}") for name in tables}
        return self._coordinates.functions(tables, called, Tables(), Place(None))

    def _require_plain(self, given: Mapping[str, Any], source: str) -> None:
        """Refuse what only a network has: demands, and limits of two kinds at once."""
        if "demands" in given:
            raise InvalidInput(
                f"{source} has demands, which are those of the commodities of a network."
            )
        if {"capacities", "weights"} <= given.keys():
            raise InvalidInput(
                f"{source} has capacities, or else weights and budgets, and this one has both."
            )

    def _table(self, name: str, given: Any, source: str) -> Table:
        """A table of one row."""
        if isinstance(given, Mapping):
            columns, values = tuple(map(str, given)), list(given.values())
            for column, value in given.items():
                if not _is_finite(value):
                    said = "null" if value is None else shown(value)
                    raise InvalidInput(f'{source}, {name}, "{column}": {said} is no finite number.')
        else:
            values = list(given) if isinstance(given, list | tuple) else [given]
            columns = self._order(name, len(values))
        if len(values) != len(columns) or not values or not all(map(_is_finite, values)):
            raise InvalidInput(
                f"{source}, {name}: it is to be {len(columns)} finite numbers, or numbers by name."
            )
        numbers = np.array(values, dtype=np.float64)
        return Table(None, columns, numbers[None, :], (f"{source}, {name}",))

    def _order(self, name: str, count: int) -> tuple[str, ...]:
        """What the columns of a list are called."""
        files = self._coordinates.on_network
        if name == "budgets":
            return ("budget",)
        if name == "demands" and files is not None:
            return tuple(each.name for each in files.network.demands)[:count] or ("",)
        if files is not None:
            return tuple(map(str, range(len(files.network.links))))
        known = self._named or self._coordinates.labels
        return known or tuple(map(str, range(self._size)))

    @property
    def _size(self) -> int:
        """How many numbers a list of costs has."""
        network = self.network
        return math.prod(self.K.shape) if network is None else len(network.links)

    def _layout(self, name: str, columns: Columns) -> Int64s:
        """The place of the number of each entry in a row with these names."""
        called = self._order(name, columns) if isinstance(columns, int) else columns
        table = Table(None, tuple(map(str, called)), np.arange(float(len(called)))[None, :])
        files = self._coordinates.on_network
        if name == "budgets":
            return np.zeros(1, dtype=np.int64)
        if files is None:
            return self._coordinates.columns(table, Path())
        if name == "demands":
            return np.array(files.demands(table, "")[0], dtype=np.int64)
        needed = files.used if name != "capacities" else ()
        return files.columns.places(table.columns, "", needed)


def _columns(experiment: Experiment, stream: Tables) -> tuple[str, ...] | None:
    """What the first table calls coordinates, where it is there."""
    path = stream.costs
    if path is None or not path.is_file():
        return None
    if path.name.lower().endswith(CSV):  # which may grow
        header = read_header(path, experiment.files)
        return column_names(header[int(is_time(header[0])) :] if header else (), str(path))
    return read_rows(path, experiment.place("stream", "costs"), gaps=True).columns


def _is_finite(value: Any) -> bool:
    try:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False
