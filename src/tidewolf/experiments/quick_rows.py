"""Rows that look like those before them, made into functions without a table in between.

Which number of a row belongs to which entry depends on the names in it alone, not on the numbers,
and a controller sends the same names every round. The reader of tables works that out once (the
layout), and says what is wrong with names that do not fit; from then on a row is

    costs = numbers[layout],    f(x) = <costs, x>,    g(x) = max_i x_i - capacities_i

in a few operations on arrays. What is not plainly a row of finite numbers under names that were
seen before is left to the reader of tables: None. Both make the same functions, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tidewolf.core.batch import Batch
from tidewolf.core.types import Floats, Int64s, Shape
from tidewolf.core.unlimited import Unlimited
from tidewolf.functions import Affine, Capacity, Linear, LoadLimit
from tidewolf.networks.from_files import NetworkFiles

MOST_LAYOUTS = 16
"""Layouts that are remembered; a caller who sends others all the time is read slowly."""
_NUMBERS = {int, float}

Columns: TypeAlias = tuple[str, ...] | int
"""The names of a row in their order, or how many numbers a list has."""
Layout: TypeAlias = "Int64s | _LinkPlaces | None"
"""The place in the row of each entry; None where the row has their order."""


class _LinkPlaces(NamedTuple):
    """Links of which a row says something, and the places where it does."""

    links: Int64s
    places: Int64s


class Numbers(NamedTuple):
    """The numbers of a row under one key, and under which names they are."""

    columns: Columns
    values: Floats


def numbers_of(given: Any) -> Numbers | None:
    """Finite numbers by name or as a list; None where it is anything else."""
    values: list[Any]
    columns: Columns
    if type(given) is dict:
        columns, values = tuple(given), list(given.values())
    elif type(given) is list:
        columns, values = len(given), given
    else:
        return None
    if not values or not set(map(type, values)) <= _NUMBERS:
        return None
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return Numbers(columns, array) if np.isfinite(array).all() else None


class Layouts:
    """Layouts by key and names, as they were worked out."""

    def __init__(self, work_out: Callable[[str, Columns], Layout]) -> None:
        self._work_out = work_out
        self._known: dict[tuple[str, Columns], Layout] = {}

    def __contains__(self, wanted: tuple[str, Columns]) -> bool:
        return wanted in self._known

    def __getitem__(self, wanted: tuple[str, Columns]) -> Layout:
        return self._known[wanted]

    def remember(self, row: Mapping[str, Any]) -> None:
        """Work out the layouts of a row that was found to be good."""
        for name, given in row.items():
            numbers = numbers_of(given)
            if numbers is None or (name, numbers.columns) in self._known:
                continue
            if len(self._known) >= MOST_LAYOUTS:
                self._known.clear()
            self._known[name, numbers.columns] = self._work_out(name, numbers.columns)


class QuickRows:
    """Functions on a set whose entries have names: costs, and capacities, or weights and a
    budget.
    """

    keys = ({"costs"}, {"costs", "capacities"}, {"costs", "weights", "budgets"})

    def __init__(self, shape: Shape, layouts: Layouts) -> None:
        self._shape, self.layouts = shape, layouts
        self._unlimited = Unlimited(shape)

    def functions(self, row: Mapping[str, Any]) -> tuple[Batch, Batch] | None:
        """The loss and the limit of a row; None where the reader of tables is to look at it."""
        if row.keys() not in self.keys:
            return None
        costs = self._entries("costs", row["costs"])
        if costs is None:
            return None
        losses = Linear._unchecked(C=costs)
        if len(row) == 1:
            return losses, self._unlimited
        if "capacities" in row:
            most = self._entries("capacities", row["capacities"])
            return None if most is None else (losses, Capacity._unchecked(c=most))
        weights, budget = self._entries("weights", row["weights"]), _budget(row["budgets"])
        if weights is None or budget is None:
            return None
        return losses, Affine._unchecked(A=weights, b=budget)

    def _entries(self, name: str, given: Any) -> Floats | None:
        """Numbers in the order of entries, as those of one round."""
        numbers = numbers_of(given)
        if numbers is None or (name, numbers.columns) not in self.layouts:
            return None
        places, values = self.layouts[name, numbers.columns], numbers.values
        if places is not None:
            values = values[places]
        return values.reshape(1, *self._shape)


class QuickLinks:
    """Functions on a network: costs, capacities and demands, each of which may be absent."""

    keys = frozenset({"costs", "capacities", "demands"})

    def __init__(self, files: NetworkFiles, layouts: Layouts) -> None:
        network = self._network = files.network
        self.layouts = layouts
        incidence = network.incidence
        self._used = np.diff(incidence.indptr) > 0
        self._links_used = np.flatnonzero(self._used)
        self._on_paths = None if network.tunnels is None else incidence.T
        self._link_of_entry = np.asarray(incidence.tocsc().indices, dtype=np.int64)
        self._one_each = len(network.demands) == 1 and network.tunnels is None
        self._limits: dict[bytes, _Limits] = {}

    def functions(self, row: Mapping[str, Any]) -> tuple[Batch, Batch] | None:
        """The loss and the limit of a row; None where the reader of tables is to look at it."""
        if not row or not row.keys() <= self.keys:
            return None
        numbers = {name: numbers_of(given) for name, given in row.items()}
        for name, found in numbers.items():
            if found is None or (name, found.columns) not in self.layouts:
                return None
        sent = self._sent(numbers.get("demands"))
        if (sent < 0.0).any():
            return None
        costs = self._costs(numbers.get("costs"))
        with np.errstate(over="ignore"):
            C = np.ascontiguousarray(sent[self._network.owner] * costs)
        if not np.isfinite(C).all():
            return None
        limits = self._limit(numbers.get("capacities"), sent, "demands" in numbers)
        return Linear._unchecked(C=C[None, :]), limits

    def _sent(self, numbers: Numbers | None) -> Floats:
        if numbers is None:
            return self._network.volumes
        return np.asarray(numbers.values[self.layouts["demands", numbers.columns]])

    def _costs(self, numbers: Numbers | None) -> Floats:
        """What a unit costs on each entry of a decision."""
        if numbers is None:
            costs = self._network.lengths
        else:
            costs = np.zeros(len(self._network.links))
            costs[self._links_used] = numbers.values[self.layouts["costs", numbers.columns]]
        if self._on_paths is None:
            return costs[self._link_of_entry]
        return np.asarray(self._on_paths @ costs)

    def _limit(self, numbers: Numbers | None, sent: Floats, moving: bool) -> Batch:
        network = self._network
        capacities = network.capacities
        if numbers is not None:
            known = self.layouts["capacities", numbers.columns]
            assert isinstance(known, _LinkPlaces)
            capacities = capacities.copy()
            capacities[known.links] = numbers.values[known.places]
        limited = np.flatnonzero(np.isfinite(capacities) & self._used)
        if not len(limited):
            return Unlimited(network.K.shape)
        capacities = capacities[limited]
        if not moving and self._one_each and len(limited) == network.K.shape[0]:
            order = np.searchsorted(limited, self._link_of_entry)
            return Capacity._unchecked(c=(capacities[order] / network.unit)[None, :])
        fixed = self._limits_on(limited)
        limit = fixed.example
        return LoadLimit._unchecked(
            incidence=limit.incidence,
            demands=(sent / network.unit)[None, :],
            capacities=(capacities / network.unit)[None, :],
            pairs=limit.pairs,
            names=limit.names,
            _loads=limit._loads,
        )

    def _limits_on(self, limited: Int64s) -> _Limits:
        """What all limits on these links have in common."""
        key = limited.tobytes()
        if key not in self._limits:
            network = self._network
            if len(self._limits) >= MOST_LAYOUTS:
                self._limits.clear()
            self._limits[key] = _Limits(
                LoadLimit(
                    network.incidence[limited],
                    np.zeros((1, len(network.demands))),
                    np.zeros((1, len(limited))),
                    network.owner,
                    tuple(network.link_names[link] for link in limited),
                )
            )
        return self._limits[key]


class _Limits(NamedTuple):
    """A limit on some of the links, whose incidence others share."""

    example: LoadLimit


def known_links(places: Sequence[int | None]) -> Layout:
    """The layout of capacities: some links may have no column."""
    links = [link for link, place in enumerate(places) if place is not None]
    return _LinkPlaces(
        np.array(links, dtype=np.int64), np.array([places[i] for i in links], np.int64)
    )


def in_order(places: Sequence[int], count: int) -> Layout:
    """The layout of so many columns, of which every entry has one."""
    same = len(places) == count and all(i == place for i, place in enumerate(places))
    return None if same else np.array(places, dtype=np.int64)


def _budget(given: Any) -> Floats | None:
    numbers = numbers_of(given if type(given) is list else [given])
    return None if numbers is None or len(numbers.values) != 1 else numbers.values
