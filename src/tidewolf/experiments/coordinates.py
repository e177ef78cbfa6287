"""Names of the coordinates of points in tables, and functions built from rows of those tables.

Coordinates of a network's decisions are shares on links or tunnels, and tables of costs, capacities
and demands speak of links and commodities (networks/from_files.py). Entries of another set that is
made of links are those links. Elsewhere the first table that has a column for each coordinate names
them, and other tables use the same names.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, NegativeCapacity
from tidewolf.core.names import match_names, plain_name
from tidewolf.core.types import Floats, Int64s, NDArray
from tidewolf.core.unlimited import Unlimited
from tidewolf.experiments.building import build_choice, read_numbers
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.experiment import Tables
from tidewolf.experiments.keys import is_network, kind_keys, kind_named
from tidewolf.experiments.links import LinkSet, build_on_links, network_of
from tidewolf.experiments.toml import Place
from tidewolf.files import Table
from tidewolf.functions import Affine, Capacity, Linear
from tidewolf.functions.negative import breaks, negative_capacities
from tidewolf.networks import Network
from tidewolf.networks.from_files import NetworkFiles, one_column
from tidewolf.sets import ConvexSet


def coordinates_of(choice: Choice, entries: int | None, place: Place) -> Coordinates:
    """The set, with what its coordinates are called."""
    if is_network(choice):
        files = network_of(choice, place)
        return Coordinates(files.network.K, on_network=files)
    known = kind_keys(kind_named(choice.name))
    if "graph" in known:
        links = build_on_links(choice, place)
        return Coordinates(links.K, on_links=links if links.by_link else None)
    given = choice.given
    if "n" in known and entries is not None:
        given.setdefault("n", entries)
    return Coordinates(build_choice(Choice.of(choice.name, given), place))


@dataclass
class Coordinates:
    """The coordinates of points of a set, called as links are or as the columns of the first
    table.
    """

    K: ConvexSet
    on_network: NetworkFiles | None = None
    on_links: LinkSet | None = None
    names: tuple[str, ...] = ()
    first: Path | None = None
    """the table that named them"""
    times: NDArray | None = None
    """when rounds are, as the first table of functions by name with times says"""

    @property
    def network(self) -> Network | None:
        return None if self.on_network is None else self.on_network.network

    @property
    def labels(self) -> tuple[str, ...]:
        if self.network is not None:
            return self.network.names
        if self.on_links is not None:
            return self.on_links.on.labels
        return self.names if self.K.shape == (len(self.names),) else ()

    def title(self, kind: str, tables: Tables) -> str:
        """One sentence that describes the decision."""
        if self.on_network is not None:
            return self.on_network.title
        if self.on_links is not None:
            return self.on_links.title
        if tables.costs is not None:
            return f"A point of a {kind} at the costs of {tables.costs.name}."
        assert tables.losses is not None
        return f"A point of a {kind} under {tables.losses.name} losses."

    def functions(
        self,
        read: Mapping[str, Table],
        paths: Mapping[str, Path],
        tables: Tables,
        place: Place,
    ) -> tuple[Batch, Batch]:
        """The losses and limits of tables of equal length, or of the functions that are named."""
        losses, limits = self._of_tables(read, paths)
        if tables.losses is not None:
            losses = build_choice(tables.losses, place.within("losses"), self.read)
        if tables.constraints is not None:
            limits = build_choice(tables.constraints, place.within("constraints"), self.read)
        assert losses is not None
        return losses, Unlimited(losses.shape, len(losses)) if limits is None else limits

    def demands(self, table: Table | None, path: Path | None, rounds: int) -> Floats | None:
        """What commodities send in each round, where a table says; None where none does."""
        if self.on_network is None or table is None:
            return None
        return self.on_network.demands(table, path)[:rounds]

    def _of_tables(
        self, read: Mapping[str, Table], paths: Mapping[str, Path]
    ) -> tuple[Batch | None, Batch | None]:
        """The losses and the limits that tables say, None where none does."""
        if self.on_network is not None:
            return self.on_network.functions(read, paths) if read else (None, None)
        values = {
            name: np.ascontiguousarray(table.values[:, self.columns(table, paths[name])]).reshape(
                -1, *self.K.shape
            )
            for name, table in read.items()
            if name != "budgets"
        }
        losses = Linear(values["costs"]) if "costs" in values else None
        if "capacities" in values:
            return losses, Capacity(values["capacities"])
        if "weights" in values:
            budgets = one_column(read["budgets"], paths["budgets"], "budgets")
            return losses, Affine(values["weights"], budgets)
        return losses, None

    def columns(self, table: Table, path: Path) -> Int64s:
        """The place of the column of each coordinate, or link."""
        if self.on_links is not None:
            return self.on_links.on.places(table.columns, path)
        size = int(np.prod(self.K.shape))
        if self.first is None:
            if len(table.columns) != size:
                raise InvalidInput(
                    f"{path}: expected {size} columns, one for each coordinate of the set, "
                    f"received {len(table.columns)}."
                )
            self.names, self.first = table.columns, path
        return match_names(table.columns, self.names, f"{path}, beside {self.first}", "column")

    def entries(self, table: Table, path: Path) -> Int64s:
        """The place of the column of each entry of a decision."""
        if self.network is None:
            return self.columns(table, path)
        return match_names(table.columns, self.network.names, str(path))

    def read(self, path: Path, place: Place) -> NDArray:
        """The array in a table. Columns that are called as coordinates are get their order."""
        table = read_numbers(path, place)
        self.times = table.times if self.times is None else self.times
        if self.network is not None:
            named = bool(set(map(plain_name, table.columns)) & set(map(plain_name, self.labels)))
        elif self.on_links is not None:
            named = self.on_links.on.names_any(table.columns)
        else:
            shared = self.first is None or bool(set(table.columns) & set(self.names))
            named = shared and len(table.columns) == int(np.prod(self.K.shape))
        if not named:
            return table.values
        return table.values[:, self.entries(table, path)].reshape(-1, *self.K.shape)

    def warn_of_negative(self, limits: Batch, table: Table | None) -> None:
        """Name the first cell of a table with a capacity that no point of the set keeps."""
        if table is None:
            return
        values = table.values[: len(limits)]
        if self.on_network is not None:
            files = self.on_network
            columns = files.columns.places(table.columns, "", ())[files.used]
            below = {int(j): values[:, j] < 0 for j in columns if j >= 0}
            found = [(int(np.argmax(rows)), j) for j, rows in below.items() if rows.any()]
        elif isinstance(limits, Capacity):
            columns = self.columns(table, Path())
            kept = negative_capacities(self.K, limits, set())
            found = [(each.round, columns[each.entry]) for each in kept]
        else:
            return
        if found:
            row, j = found[0]
            place = f'{table.places[row]}, column "{table.columns[j]}"'
            warnings.warn(
                f"{place}: the capacity is {values[row, j]:g}; {breaks(len(found))}",
                NegativeCapacity,
                stacklevel=2,
            )
