"""The entries, paths and constraints of a decision by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

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
from tidewolf.methods.base import Learner
from tidewolf.sets.flows.flow_polytope import FlowPolytope
from tidewolf.sets.flows.multi_flow import MultiFlow

MOST = 20
"""Entries and paths of a decision; half as many changes and constraints."""
LITTLE = 0.1
"""Changes below this share of the largest are not named."""
NEARLY_FULL = 0.9
FULL = 1e-3
"""The room of a constraint that binds, at most: as a share of how much it varies over the set."""

Entries = tuple[Entry, ...]
Namer = Callable[[int], str]
"""The name of an entry, by its place in the flat point."""


def namer(K: HasLMO, names: Sequence[str] | None = None) -> Namer:
    """The names of entries: those given here, or those of the set."""
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


def flat(x: Array) -> Floats:
    return to_numpy(x).astype(np.float64).reshape(-1)


def once(x: Array) -> Floats:
    """The entries of a point, with 0 below the diagonal of a symmetric matrix."""
    dense = to_numpy(x)
    if dense.ndim == 2 and dense.shape[0] == dense.shape[1] and bool((dense == dense.T).all()):
        dense = np.triu(dense)
    return flat(dense)


def named(places: Iterable[int], x: Array, before: Array | None, name: Namer) -> Entries:
    """These entries, with what they were before."""
    new, old = flat(x), None if before is None else flat(before)
    return tuple(
        Entry(name(i), float(new[i]), old if old is None else float(old[i])) for i in places
    )


def largest(size: Floats, most: int, share: float) -> list[int]:
    """The places of the largest numbers, those above a share of the largest one."""
    order = np.argsort(-size, kind="stable")[:most].tolist()
    return [i for i in order if size[i] > share * size.max()]


def moves(x: Array, before: Array, name: Namer, weights: Floats | float = 1.0) -> Entries:
    """The entries with the largest weighted changes."""
    return named(largest(np.abs(once(x - before)) * weights, MOST // 2, LITTLE), x, before, name)


def routes(K: HasLMO, x: Array, before: Array | None) -> list[Route]:
    """The paths of a flow; those of commodities that moved most first."""
    if isinstance(K, FlowPolytope):
        return [Route(one.weight, tuple(map(str, one.nodes))) for one in K.paths(x, tolerance=1e-4)]
    if not isinstance(K, MultiFlow):
        return []
    change = np.abs(flat(x if before is None else x - before))
    order = np.argsort(-np.bincount(K.owner, change, len(K.demands)), kind="stable").tolist()
    paths = K.paths(x, tolerance=1e-4)
    ends = [f"{K.nodes[i]} to {K.nodes[j]}" for i, j in zip(K.sources, K.targets, strict=True)]
    return [
        Route(one.weight, tuple(map(str, one.nodes)), ends[j]) for j in order for one in paths[j]
    ]


class LastRound:
    """The functions or numbers of the last observed round; all unknown without feedback."""

    def __init__(self, learner: Learner[Any], feedback: RoundFeedback | None, name: Namer) -> None:
        self.K, self.feedback, self.name = learner.hard_set, feedback, name
        self.loss_function: Batch | None = None
        self.constraint: Batch | None = None
        self.gradients: FirstOrder | None = None
        self.observed: tuple[float | None, ...] = (None, None)
        """loss and constraint value at what was played, if no functions were observed"""
        given = None if feedback is None else last_round(feedback.given)
        if isinstance(given, FirstOrder):
            self.gradients, self.observed = given, (None, given.violation or None)
        elif isinstance(given, Bandit):
            self.observed = tuple(float(values[0]) for values in given)
        elif isinstance(given, FullInformation) and feedback is not None:
            self.loss_function, one = given
            if learner.needs is not Bandit:
                self.gradients = first_order(*given, feedback.x, one.values(feedback.x))
            while isinstance(one, Chain) and len(one.parts) == 1:
                (one,) = one.parts
            self.constraint = None if isinstance(one, Unlimited) else one

    def values(self, x: Array | None) -> tuple[float | None, ...]:
        """Loss and largest constraint value at x; None if unknown, or if there is no constraint."""
        if self.loss_function is None and self.feedback is not None and x is self.feedback.x:
            return self.observed
        return _value(self.loss_function, x), _value(self.constraint, x)

    def outlook(self, x: Array, before: Array | None) -> Outlook | None:
        """What is expected at the decision, and at the one before."""
        if self.feedback is None:
            return None
        gain, limit_gain, given = None, None, self.gradients
        if before is not None and given is not None:
            gain = inner(given.loss_gradient, before - x)
            if given.violation > 0.0:
                limit_gain = inner(given.constraint_gradient, before - x)
        now, then, played = map(self.values, (x, before, self.feedback.x))
        losses, limits = ((now[i], then[i], played[i]) for i in (0, 1))
        return Outlook(self.feedback.round, *losses, *limits, gain, limit_gain)

    def limits(self, x: Array, prices: Floats | None) -> tuple[Limit, ...]:
        """The constraints with the largest values, at the decision or at what was played."""
        batch = self.constraint
        if batch is None or self.feedback is None:
            return ()
        now, then = _pieces(batch, x), _pieces(batch, self.feedback.x)
        room = FULL * float(batch.slopes(x)[0]) * self.K.diameter
        names = limit_names(self.K, batch) if len(now) > 1 else ("the limit",)
        capacity = flat(batch.c) if isinstance(batch, Capacity) else None
        return tuple(
            Limit(
                name=names[i] if capacity is None else self.name(i),
                played=float(then[i]),
                now=float(now[i]),
                load=None if capacity is None else float(flat(x)[i]),
                capacity=None if capacity is None else float(capacity[i]),
                binds=bool(now[i] >= -room),
                price=None if prices is None else float(prices[i]),
            )
            for i in np.argsort(-np.maximum(now, then), kind="stable")[: MOST // 2].tolist()
        )

    def changes(self, old: LastRound, x: Array, before: Array | None) -> tuple[Entries, Entries]:
        """How this round differs from an earlier one: the largest changes of costs of the entries
        that moved, and of capacities of those that are nearly full.
        """
        costs: Entries = ()
        capacities: Entries = ()
        if before is None:
            return costs, capacities
        if self.gradients is not None and old.gradients is not None:
            gradients = self.gradients.loss_gradient, old.gradients.loss_gradient
            costs = moves(*gradients, self.name, np.abs(once(x - before)))
        if isinstance(self.constraint, Capacity) and isinstance(old.constraint, Capacity):
            now, then = self.constraint.c[0, ...], old.constraint.c[0, ...]
            load, least = np.maximum(flat(x), flat(before)), np.minimum(flat(now), flat(then))
            capacities = moves(now, then, self.name, (load >= NEARLY_FULL * least).astype(float))
        return costs, capacities


def _pieces(batch: Batch, x: Array) -> Floats:
    found = batch.pieces(x)
    return flat(batch.values(x) if found is None else found)


def _value(batch: Batch | None, x: Array | None) -> float | None:
    """The value of a single round at x; None if it has none there."""
    if batch is None or x is None:
        return None
    try:
        value = float(batch.values(x)[0])
    except Exception:  # a function of the user, at a point where it may not be defined
        return None
    return value if math.isfinite(value) else None
