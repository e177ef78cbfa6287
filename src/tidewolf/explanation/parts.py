"""A decision and its limits by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tidewolf.core.arrays import inner, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput
from tidewolf.core.feedback import Bandit, FirstOrder, FullInformation, first_order
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats
from tidewolf.core.unlimited import Unlimited
from tidewolf.explanation.history import RoundFeedback, last_round
from tidewolf.explanation.record import Entry, Limit, Outlook, Route
from tidewolf.functions.capacity import Capacity
from tidewolf.functions.chain import Chain
from tidewolf.functions.max import limit_names
from tidewolf.sets.flows.flow_polytope import FlowPolytope
from tidewolf.sets.flows.multi_flow import MultiFlow

SMALL = 0.01
"""Entries below this share of the largest are counted, not named."""
LITTLE = 0.1
"""Changes below this share of the largest are not named."""
MOST_ENTRIES, MOST_MOVES, MOST_ROUTES, MOST_LIMITS = 20, 10, 20, 10
NEARLY_FULL = 0.9
FULL = 1e-3
"""What is left of a limit that binds, at most: as a share of how much it varies over the set."""

Entries = tuple[Entry, ...]
Namer = Callable[[int], str]
"""What an entry is called, by its place in the flat point."""


def namer(K: HasLMO, names: Sequence[str] | None = None) -> Namer:
    """What the entries of the set's points are called: as is said here, or by the set."""
    size = math.prod(K.shape)
    if names is not None and len(names) != size:
        raise InvalidInput(
            f"{len(names)} names were given for points of {size} entries; give one for each."
        )
    if names is None:
        names = getattr(K, "names", None)
    if names is not None:
        return lambda i: str(names[i])
    if isinstance(K, FlowPolytope):
        return lambda i: f"{K.nodes[K.tails[i]]} > {K.nodes[K.heads[i]]}"
    if len(K.shape) == 1:
        return lambda i: f"entry {i}"
    return lambda i: f"entry {tuple(map(int, np.unravel_index(i, K.shape)))}"


def once(x: Array) -> Floats:
    """The entries of a point, those below the diagonal of a symmetric matrix left out as 0."""
    flat = to_numpy(x).astype(np.float64)
    if flat.ndim == 2 and flat.shape[0] == flat.shape[1] and bool((flat == flat.T).all()):
        flat = np.triu(flat)
    return flat.reshape(-1)


def entries(x: Array, before: Array | None, name: Namer) -> tuple[tuple[Entry, ...], int]:
    """The largest entries, and how many others are not 0."""
    values = once(x)
    old = None if before is None else to_numpy(before).reshape(-1)
    size = np.abs(values)
    order = np.argsort(-size, kind="stable")[:MOST_ENTRIES]
    shown = [i for i in order.tolist() if size[i] > SMALL * size.max()]
    named = tuple(
        Entry(name(i), float(values[i]), None if old is None else float(old[i])) for i in shown
    )
    return named, int(np.count_nonzero(values)) - len(shown)


def moves(x: Array, before: Array, name: Namer, counts: Floats | float = 1.0) -> tuple[Entry, ...]:
    """The entries that changed most, where a change counts so much."""
    change, new, old = np.abs(once(x - before)), to_numpy(x).reshape(-1), to_numpy(before)
    change, old = change * counts, old.reshape(-1)
    order = np.argsort(-change, kind="stable")[:MOST_MOVES].tolist()
    return tuple(
        Entry(name(i), float(new[i]), float(old[i]))
        for i in order
        if change[i] > LITTLE * change.max()
    )


def routes(K: HasLMO, x: Array, before: Array | None) -> tuple[tuple[Route, ...], int]:
    """The paths of a flow; of many commodities, those of the ones that moved most first."""
    if isinstance(K, FlowPolytope):
        found = [
            Route(path.weight, tuple(map(str, path.nodes))) for path in K.paths(x, tolerance=1e-4)
        ]
    elif isinstance(K, MultiFlow):
        change = np.abs(to_numpy(x if before is None else x - before))
        moved = np.bincount(K.owner, change, len(K.demands))
        each = K.paths(x, tolerance=1e-4)
        found = [
            Route(path.weight, tuple(map(str, path.nodes)), _commodity(K, j))
            for j in np.argsort(-moved, kind="stable").tolist()
            for path in each[j]
        ]
    else:
        return (), 0
    return tuple(found[:MOST_ROUTES]), max(0, len(found) - MOST_ROUTES)


def _commodity(K: MultiFlow, j: int) -> str:
    return f"{K.nodes[K.sources[j]]} to {K.nodes[K.targets[j]]}"


class LastRound:
    """The round that was told of last, asked at any point.

    `gradients`: whether the learner steps by them.
    """

    def __init__(self, K: HasLMO, feedback: RoundFeedback, name: Namer, *, gradients: bool) -> None:
        self.K, self.feedback, self.name = K, feedback, name
        given = last_round(feedback.given)
        self.functions = given if isinstance(given, FullInformation) else None
        self.gradients = given if isinstance(given, FirstOrder) else None
        if self.functions is not None and gradients:
            values = self.functions.constraints.values(feedback.x)
            self.gradients = first_order(*self.functions, feedback.x, values)
        self.values = None if not isinstance(given, Bandit) else tuple(float(v[0]) for v in given)

    def loss(self, x: Array | None) -> float | None:
        """None where it is not known."""
        if x is self.feedback.x and self.values is not None:
            return self.values[0]
        return None if self.functions is None else _value(self.functions.losses, x)

    def limit(self, x: Array | None) -> float | None:
        """The value of the largest limit; None where it is not known, or there is none."""
        if x is self.feedback.x and self.values is not None:
            return self.values[1]
        if x is self.feedback.x and self.functions is None and self.gradients is not None:
            return self.gradients.violation or None
        return None if self._limits is None else _value(self._limits, x)

    @property
    def _limits(self) -> Batch | None:
        one = None if self.functions is None else self.functions.constraints
        while isinstance(one, Chain) and len(one.parts) == 1:
            (one,) = one.parts
        return None if isinstance(one, Unlimited) else one

    def outlook(self, x: Array, before: Array | None) -> Outlook:
        """What is expected at the decision, and at the one before."""
        gain, limit_gain, given = None, None, self.gradients
        if before is not None and given is not None:
            gain = inner(given.loss_gradient, before - x)
            if given.violation > 0.0:
                limit_gain = inner(given.constraint_gradient, before - x)
        played = self.feedback.x
        return Outlook(
            round=self.feedback.round,
            loss=self.loss(x),
            loss_before=self.loss(before),
            loss_played=self.loss(played),
            limit=self.limit(x),
            limit_before=self.limit(before),
            limit_played=self.limit(played),
            gain=gain,
            limit_gain=limit_gain,
        )

    def limits(self, x: Array, prices: Floats | None) -> tuple[Limit, ...]:
        """Those that are fullest, at the decision or at what was played."""
        batch = self._limits
        if batch is None:
            return ()
        now, then = _pieces(batch, x), _pieces(batch, self.feedback.x)
        room = FULL * float(batch.slopes(x)[0]) * self.K.diameter
        capacities, loads = None, to_numpy(x).reshape(-1)
        if isinstance(batch, Capacity):
            capacities = to_numpy(batch.c).reshape(-1)
        names = limit_names(self.K, batch) if len(now) > 1 else ("the limit",)
        order = np.argsort(-np.maximum(now, then), kind="stable")[:MOST_LIMITS].tolist()
        return tuple(
            Limit(
                name=self.name(i) if capacities is not None else names[i],
                played=float(then[i]),
                now=float(now[i]),
                load=None if capacities is None else float(loads[i]),
                capacity=None if capacities is None else float(capacities[i]),
                binds=bool(now[i] >= -room),
                price=None if prices is None else float(prices[i]),
            )
            for i in order
        )

    def unlike(self, earlier: LastRound, x: Array, before: Array) -> tuple[Entries, Entries]:
        """How this round differs from an earlier one: the largest changes of costs of the entries
        that moved, and of capacities of those that are nearly full.
        """
        costs: Entries = ()
        capacities: Entries = ()
        if self.gradients is not None and earlier.gradients is not None:
            new, old = self.gradients.loss_gradient, earlier.gradients.loss_gradient
            costs = moves(new, old, self.name, np.abs(once(x - before)))
        mine, theirs = self._limits, earlier._limits
        if isinstance(mine, Capacity) and isinstance(theirs, Capacity):
            new, old = mine.c[0, ...], theirs.c[0, ...]
            load, least = (
                np.stack([to_numpy(a).reshape(-1) for a in p]) for p in ((x, before), (new, old))
            )
            full = (load.max(axis=0) >= NEARLY_FULL * least.min(axis=0)).astype(np.float64)
            capacities = moves(new, old, self.name, full)
        return costs, capacities


def _pieces(batch: Batch, x: Array) -> Floats:
    found = batch.pieces(x)
    return to_numpy(batch.values(x) if found is None else found).reshape(-1).astype(np.float64)


def _value(batch: Batch, x: Array | None) -> float | None:
    """That of a single round at x; None where it has none there."""
    if x is None:
        return None
    try:
        value = float(batch.values(x)[0])
    except Exception:  # anybody's function, at a point it was never asked at
        return None
    return value if math.isfinite(value) else None
