"""Rounds of an experiment as they arrive, one row at a time, where a table has them all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput
from tidewolf.experiments.building import read_rows
from tidewolf.experiments.coordinates import coordinates_of
from tidewolf.experiments.experiment import TABLES, Experiment, Tables
from tidewolf.experiments.toml_tables import Place
from tidewolf.files import Table, csv
from tidewolf.files.columns import is_time, named
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
        self.experiment, self._tables = experiment, stream
        columns = self._columns(stream)
        self._coordinates = coordinates_of(
            choice, None if columns is None else len(columns), experiment.place("set")
        )
        if columns is not None and not self._coordinates.labels:
            assert stream.costs is not None
            named = Table(None, columns, np.zeros((1, len(columns))))
            self._coordinates.columns(named, stream.costs)

    def _columns(self, stream: Tables) -> tuple[str, ...] | None:
        """What the first table calls coordinates, where it is there."""
        path = stream.costs
        if path is None or not path.is_file():
            return None
        if path.name.lower().endswith(csv.ENDINGS):  # which may grow
            header = csv.csv_header(path, self.experiment.files)
            return named(header[int(is_time(header[0])) :] if header else (), str(path))
        place = self.experiment.place("stream", "costs")
        return read_rows(path, place, gaps=True).columns

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
        return self._coordinates.labels or tuple(self.K.names or ())

    def functions(self, row: Mapping[str, Any], source: str = "the row") -> tuple[Batch, Batch]:
        """The loss and the limit of a round.

        A row has costs, and perhaps capacities, or weights and budgets (one number), and demands:
        each numbers by name, or a list in the order of links (of entries, where there are none).
        Sentences call it `source`.
        """
        tables = {name: self._table(name, row[name], source) for name in TABLES if name in row}
        if "costs" not in tables and self.network is None:
            raise InvalidInput(f"{source} has no costs; it has {', '.join(row) or 'nothing'}.")
        if not tables:
            raise InvalidInput(f"{source} has none of {', '.join(TABLES)}.")
        if ("weights" in tables) != ("budgets" in tables):
            raise InvalidInput(f"{source} needs weights and budgets together.")
        called = {name: Path(f"{source}, {name}") for name in tables}
        return self._coordinates.functions(tables, called, Tables(), Place(None))

    def _table(self, name: str, given: Any, source: str) -> Table:
        """A table of one row."""
        if isinstance(given, Mapping):
            columns, values = tuple(map(str, given)), list(given.values())
            for column, value in given.items():
                if not isinstance(value, int | float) or not math.isfinite(value):
                    said = "null" if value is None else repr(value)
                    raise InvalidInput(f'{source}, {name}, "{column}": {said} is no finite number.')
        else:
            values = list(given) if isinstance(given, list | tuple) else [given]
            columns = self._order(name, len(values))
        try:
            numbers = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            numbers = np.array([np.nan])
        if numbers.shape != (len(columns),) or not np.isfinite(numbers).all():
            raise InvalidInput(
                f"{source}, {name}: it is to be {len(columns)} finite numbers, or numbers by name."
            )
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
        known = self._coordinates.labels
        return known or tuple(map(str, range(int(np.prod(self.K.shape)))))
