"""Points of a set as people and programs give and get them: numbers by name.

    {"SEA > DEN": 0.4, "SEA > NYC": 0.6}     or a list, in the order of entries

A name that is not given is 0; a decision is answered with all of them. Flows are told by their
paths, too, heaviest first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import nearest_names
from tidewolf.core.types import Array
from tidewolf.explanation.parts import namer
from tidewolf.networks import Network
from tidewolf.sets import ConvexSet, FlowPolytope, MultiFlow

SMALLEST_SHARE = 1e-9
"""Paths with less are left out."""
_NUMBERS = {int, float}


@final
class Points:
    """Points of a set by the names of their entries.

    Parameters
    ----------
    K : ConvexSet
        The set.
    names : sequence of str, optional
        What its entries are called. None: as the set says, else by their places.
    network : Network, optional
        The network that is decided on. None: it is none.

    Examples
    --------
    >>> from tidewolf.live.points import Points
    >>> points = Points(tw.sets.Simplex(2), ["bonds", "shares"])
    >>> points.point({"shares": 1.0}, "What was played")
    array([0., 1.])
    >>> points.named(np.array([0.25, 0.75]))
    {'bonds': 0.25, 'shares': 0.75}
    """

    def __init__(
        self, K: ConvexSet, names: Sequence[str] | None = None, network: Network | None = None
    ) -> None:
        name = namer(K, names or None)
        self.K, self.network = K, network
        self.names = [name(i) for i in range(math.prod(K.shape))]
        self.place = {name: i for i, name in enumerate(self.names)}

    def point(self, given: Any, what: str) -> Array:
        """A point by name, 0 where a name is not given, or as a list of all entries.

        Parameters
        ----------
        given : mapping or list
            The numbers.
        what : str
            What sentences call it.

        Returns
        -------
        array
            Of the shape of the set's points.

        Raises
        ------
        InvalidInput
            Where it is neither, has a name that no entry has, or a number that is not finite.
        """
        values = self._by_name(given, what) if isinstance(given, Mapping) else given
        if isinstance(values, list) and len(values) == len(self.names) and are_numbers(values):
            try:
                found = np.array(values, dtype=np.float64)
            except OverflowError:  # a whole number of hundreds of digits
                found = np.array([np.inf])
            if np.isfinite(found).all():
                return found.reshape(self.K.shape)
        raise InvalidInput(
            f"{what} is a number for each of {len(self.names)} entries, by name or as a list, not "
            f"{shown(given)}."
        )

    def _by_name(self, given: Mapping[Any, Any], what: str) -> list[Any]:
        values: list[Any] = [0.0] * len(self.names)
        for name, value in given.items():
            place = self.place.get(name)
            if place is None:
                near = nearest_names(str(name), self.names)
                raise InvalidInput(f"{what} has no entry called {name!r}: {near or 'none is'}.")
            values[place] = value
        return values

    def named(self, x: Array) -> dict[str, float]:
        """The numbers of a point by name.

        Parameters
        ----------
        x : array
            The point.

        Returns
        -------
        dict
            A number for every entry; none of them is -0.
        """
        return dict(zip(self.names, (to_numpy(x).reshape(-1) + 0.0).tolist(), strict=True))

    def unavailable(self, given: Any) -> list[str | int]:
        """Entries by the set's own names, or by their places, as a session is told them.

        Parameters
        ----------
        given : list or str
            Names of entries, or one.

        Returns
        -------
        list of str or int
            Those that `Session.play` takes.
        """
        own = self.K.places
        items = [given] if isinstance(given, str) else given
        if not isinstance(items, list):
            raise InvalidInput(f"What is unavailable is a list of names, not {shown(given)}.")
        return [
            self.place[one]
            if isinstance(one, str) and one in self.place and one not in own
            else one
            for one in items
        ]

    def paths(
        self, x: Array, demands: Sequence[float] | None = None
    ) -> list[dict[str, Any]] | None:
        """The paths of a flow, heaviest first.

        Parameters
        ----------
        x : array
            A decision.
        demands : sequence of float, optional
            What each commodity sends. None: what the network says.

        Returns
        -------
        list of dict or None
            Of each path its nodes, share and volume, and the commodity where there are several;
            None where the decision is no flow.
        """
        K, network = self.K, self.network
        if network is not None:
            several = len(network.demands) > 1
            sent = None if demands is None else np.array(demands)
            return [
                _path(one.name, one.commodity if several else None, one.share, one.volume)
                for one in network.path_shares(x, sent)
            ]
        if isinstance(K, FlowPolytope):
            found = K.paths(x, tolerance=SMALLEST_SHARE)
            return [_path(_name(path), None, path.weight, path.weight) for path in found]
        if isinstance(K, MultiFlow):
            return [
                _path(_name(path), _commodity(K, j), path.weight / K.demands[j], path.weight)
                for j, paths in enumerate(K.paths(x, tolerance=SMALLEST_SHARE))
                for path in paths
            ]
        return None


def are_numbers(values: Sequence[Any]) -> bool:
    """Whether all of it is numbers, finite or not: True and text are none."""
    return set(map(type, values)) <= _NUMBERS


def _path(name: str, commodity: str | None, share: float, volume: float) -> dict[str, Any]:
    called = {} if commodity is None else {"commodity": commodity}
    return {"path": name, **called, "share": share, "volume": volume}


def _name(path: Any) -> str:
    return " > ".join(map(str, path.nodes))


def _commodity(K: MultiFlow, j: int) -> str:
    return f"{K.nodes[K.sources[j]]} > {K.nodes[K.targets[j]]}"
