"""From the numbers of a row to the functions of its round, and the learner of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput
from tidewolf.core.unlimited import Unlimited
from tidewolf.experiments import Experiment, Tables
from tidewolf.experiments.problem import _coordinates
from tidewolf.experiments.toml_tables import Place
from tidewolf.functions import Affine, Capacity, Linear
from tidewolf.problems import Table, read_table


class RoundReader:
    """Reads rows of an experiment."""

    network = None

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        assert isinstance(experiment.stream, Tables)
        assert experiment.hard_set is not None
        costs = experiment.stream.costs
        names = read_table(costs).columns if costs is not None and costs.is_file() else None
        self.coordinates = _coordinates(
            experiment.hard_set,
            None if names is None else len(names),
            Place(experiment.document, ("set",)),
        )
        self.K = self.coordinates.K
        if names is not None and self.coordinates.links is None:
            self.coordinates.names, self.coordinates.first = names, costs
        self.names = self.coordinates.labels or None

    def functions(self, row: Mapping[str, Any], source: str = "the row") -> tuple[Batch, Batch]:
        demand = self.coordinates.demand
        if "costs" not in row:
            raise InvalidInput("A row needs costs.")
        losses = Linear(demand * self._array("costs", row["costs"]))
        if "capacities" in row:
            return losses, Capacity(self._array("capacities", row["capacities"]) / demand)
        if "weights" in row:
            weights = self._array("weights", row["weights"])
            return losses, Affine(demand * weights, np.array([float(row["budgets"])]))
        return losses, Unlimited(losses.shape)

    def _array(self, what: str, given: Any) -> Any:
        if isinstance(given, Mapping):
            table = Table(None, tuple(given), np.array([list(given.values())], dtype=np.float64))
            kept = self.coordinates.columns(table, Path(what))
            return table.values[:, kept].reshape(1, *self.K.shape)
        array = np.array(given, dtype=np.float64)
        if array.size != np.prod(self.K.shape):
            raise InvalidInput(f"{what} has {array.size} numbers, not {self.K.shape}.")
        return array.reshape(1, *self.K.shape)
