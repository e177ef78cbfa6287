"""Decisions by name: names of entries, points read and written, paths of flows, and the loss and
violation of a round at a point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, final

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import nearest_names, plain_name
from tidewolf.core.types import Array
from tidewolf.experiments.building import RoundReader, routes_of
from tidewolf.experts import Categories, Context, Resolve, Season
from tidewolf.explanation.explain import namer
from tidewolf.methods.base import Learner
from tidewolf.sets import MultiFlow

_NO_CLOCK = ("last", "forecast")


@final
class Entries:
    """What the entries of a decision are called, each otherwise."""

    def __init__(self, reader: RoundReader) -> None:
        self.K = reader.K
        name = namer(reader.K, reader.names or None)
        self.names = [name(i) for i in range(math.prod(reader.K.shape))]
        self.place = {name: i for i, name in enumerate(self.names)}

    def named(self, x: Array) -> dict[str, float]:
        """A point by name."""
        return dict(zip(self.names, (to_numpy(x).reshape(-1) + 0.0).tolist(), strict=True))

    def point(self, given: Any, what: str) -> Array:
        """A point by name, 0 if a name is not given, or as a list of all entries."""
        values = given
        if isinstance(given, Mapping):
            for name in given.keys() - self.place.keys():
                near = nearest_names(str(name), self.names)
                raise InvalidInput(f"{what} has no entry called {name!r}: {near or 'none is'}.")
            values = [given.get(name, 0.0) for name in self.names]
        is_list = isinstance(values, list) and len(values) == len(self.names)
        with suppress(OverflowError):  # a whole number of hundreds of digits
            if is_list and set(map(type, values)) <= {int, float}:  # True and text are no numbers
                found = np.array(values, dtype=np.float64)
                if np.isfinite(found).all():
                    return found.reshape(self.K.shape)
        expected = f"a number for each of {len(self.names)} entries, by name or as a list"
        raise InvalidInput(f"{what} is {expected}, not {shown(given)}.")

    def unavailable(self, given: Any) -> list[str | int]:
        """Entries by the set's own names, or by their places."""
        items = [given] if isinstance(given, str) else given
        if not isinstance(items, list):
            raise InvalidInput(f"What is unavailable is a list of names, not {shown(given)}.")
        own = self.K.places
        return [
            self.place.get(one, one) if isinstance(one, str) and one not in own else one
            for one in items
        ]


def follows_clock(learner: Learner[Any]) -> bool:
    """Whether decisions depend on the time of their round."""
    return any(
        (isinstance(one, Resolve) and isinstance(one.data, str) and one.data not in _NO_CLOCK)
        or (isinstance(one, Season) and one.seconds is not None)
        or (isinstance(one, Context) and not isinstance(one, Season | Categories))
        for one in learner.fields().get("experts") or ()
    )


def given_demands(
    reader: RoundReader, row: Mapping[str, Any], before: list[float] | None
) -> list[float] | None:
    """What each commodity sent, as far as the row, or one before it, said so."""
    said, network = row.get("demands"), reader.network
    if said is None or network is None:
        return before
    if not isinstance(said, Mapping):
        return [float(one) for one in (said if isinstance(said, list | tuple) else [said])]
    if len(said) == len(network.demands) == 1:  # whatever it is called
        return [float(one) for one in said.values()]
    plain = {plain_name(str(name)): value for name, value in said.items()}
    return [float(plain.get(plain_name(one.name), one.volume)) for one in network.demands]


def paths_of(
    reader: RoundReader, x: Array, demands: Sequence[float] | None
) -> list[dict[str, Any]] | None:
    """The paths of a flow, heaviest first, with volumes of these demands; None if the decision is
    none. They have a commodity if there may be several.
    """
    K, network = reader.K, reader.network
    routes = routes_of(K, network, x, None if demands is None else np.array(demands))
    several = isinstance(K, MultiFlow) if network is None else len(network.demands) > 1
    keys = ("path", *(["commodity"] if several else []), "share", "volume")
    if routes is None:
        return None
    return [{key: getattr(route, key) for key in keys} for route in routes]
