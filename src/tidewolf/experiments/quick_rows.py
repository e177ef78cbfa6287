"""Functions of rows whose names were seen before, without a table in between.

Which number of a row belongs to which entry depends on the names in it alone, and a controller
sends the same names every round. The layout (the place in the row of each entry, -1 if it has none)
is worked out once; from then on a row is

    costs = numbers[layout],    f(x) = <costs, x>,    g(x) = max_i x_i - capacities_i

in a few operations on arrays. The answer is None for anything but finite numbers under known names:
the reader of tables makes the same functions, bit for bit, and reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


class Numbers(NamedTuple):
    """The numbers of a row under one key, and the names that they have."""

    columns: Columns
    values: Floats


def numbers_of(given: Any) -> Numbers | None:
    """Finite numbers by name or as a list; None if it is anything else."""
    if type(given) not in (dict, list):
        return None
    values = list(given.values()) if type(given) is dict else given
    if not values or not set(map(type, values)) <= _NUMBERS:
        return None
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:  # a whole number of hundreds of digits
        return None
    columns = tuple(given) if type(given) is dict else len(given)
    return Numbers(columns, array) if np.isfinite(array).all() else None


class Layouts:
    """Layouts by key and names, as they were worked out."""

    def __init__(self, work_out: Callable[[str, Columns], Int64s]) -> None:
        self._work_out = work_out
        self._known: dict[tuple[str, Columns], Int64s] = {}

    def __call__(self, name: str, numbers: Numbers) -> Int64s | None:
        """The layout of these numbers; None if it was not worked out yet."""
        return self._known.get((name, numbers.columns))

    def remember(self, row: Mapping[str, Any]) -> None:
        """Work out the layouts of a row that was found to be good."""
        for name, given in row.items():
            numbers = numbers_of(given)
            if numbers is not None and (name, numbers.columns) not in self._known:
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
        """The loss and the constraint of a row; None if the reader of tables is to look at it."""
        if row.keys() not in self.keys:
            return None
        found = {name: self._entries(name, given) for name, given in row.items()}
        if any(each is None for each in found.values()):
            return None
        losses = Linear._unchecked(C=found["costs"])
        if "capacities" in found:
            return losses, Capacity._unchecked(c=found["capacities"])
        if "weights" in found:
            return losses, Affine._unchecked(A=found["weights"], b=found["budgets"])
        return losses, self._unlimited

    def _entries(self, name: str, given: Any) -> Floats | None:
        """Numbers in the order of entries, as those of one round; a budget is one number."""
        if name == "budgets":
            numbers = numbers_of(given if type(given) is list else [given])
            return None if numbers is None or len(numbers.values) != 1 else numbers.values
        numbers = numbers_of(given)
        layout = None if numbers is None else self.layouts(name, numbers)
        if numbers is None or layout is None:
            return None
        return numbers.values[layout].reshape(1, *self._shape)


class QuickLinks:
    """Functions on a network: costs, capacities and demands, each of which may be absent."""

    keys = frozenset({"costs", "capacities", "demands"})

    def __init__(self, files: NetworkFiles, layouts: Layouts) -> None:
        network = self._network = files.network
        self.layouts, self._used = layouts, files.used
        self._on_paths = None if network.tunnels is None else network.incidence.T
        self._link_of_entry = np.asarray(network.incidence.tocsc().indices, dtype=np.int64)
        self._one_each = len(network.demands) == 1 and network.tunnels is None
        self._limits: dict[bytes, LoadLimit] = {}

    def functions(self, row: Mapping[str, Any]) -> tuple[Batch, Batch] | None:
        """The loss and the constraint of a row; None if the reader of tables is to look at it."""
        if not row or not row.keys() <= self.keys:
            return None
        network = self._network
        known = {
            "costs": network.lengths,
            "capacities": network.capacities,
            "demands": network.volumes,
        }
        for name, given in row.items():
            numbers = numbers_of(given)
            layout = None if numbers is None else self.layouts(name, numbers)
            if numbers is None or layout is None:
                return None
            there = layout >= 0
            known[name] = known[name].copy() if name == "capacities" else np.zeros(len(layout))
            known[name][there] = numbers.values[layout[there]]
        costs, sent = known["costs"], known["demands"]
        with np.errstate(over="ignore"):
            entries = (
                costs[self._link_of_entry] if self._on_paths is None else self._on_paths @ costs
            )
            C = np.ascontiguousarray(sent[network.owner] * entries)
        if (sent < 0.0).any() or not np.isfinite(C).all():
            return None
        return Linear._unchecked(C=C[None, :]), self._limit(known, "demands" in row)

    def _limit(self, known: Mapping[str, Floats], moving: bool) -> Batch:
        network = self._network
        limited = self._used[np.isfinite(known["capacities"][self._used])]
        if not len(limited):
            return Unlimited(network.K.shape)
        capacities = known["capacities"][limited]
        if not moving and self._one_each and len(limited) == network.K.shape[0]:
            order = np.searchsorted(limited, self._link_of_entry)
            return Capacity._unchecked(c=(capacities[order] / network.unit)[None, :])
        limit = self._limits_on(limited)
        return LoadLimit._unchecked(
            incidence=limit.incidence,
            demands=(known["demands"] / network.unit)[None, :],
            capacities=(capacities / network.unit)[None, :],
            pairs=limit.pairs,
            names=limit.names,
            _loads=limit._loads,
        )

    def _limits_on(self, limited: Int64s) -> LoadLimit:
        """A constraint on these links, whose incidence others share."""
        key, network = limited.tobytes(), self._network
        if key not in self._limits:
            if len(self._limits) >= MOST_LAYOUTS:
                self._limits.clear()
            self._limits[key] = LoadLimit(
                network.incidence[limited],
                np.zeros((1, len(network.demands))),
                np.zeros((1, len(limited))),
                network.owner,
                tuple(network.link_names[link] for link in limited),
            )
        return self._limits[key]
