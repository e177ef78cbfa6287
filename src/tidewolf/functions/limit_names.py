"""What the limits of a round are called: entries by the names that a set has for them, links and
callables by their own, others by their numbers, from 1.
"""

from __future__ import annotations

from typing import Any

from tidewolf.core.batch import Batch
from tidewolf.functions.capacity import Capacity
from tidewolf.functions.load_limit import LoadLimit
from tidewolf.functions.max import Max


def limit_names(K: Any, constraints: Batch) -> tuple[str, ...]:
    """One name a limit, in the order of `pieces`; none where there is no round to tell."""
    if not len(constraints):
        return ()
    found = _names_of(K, constraints.view(slice(0, 1)))
    return tuple(name or f"limit {i}" for i, name in enumerate(found, 1))


def _names_of(K: Any, one: Batch) -> tuple[str | None, ...]:
    if isinstance(one, Max):
        return tuple(name for part in one.parts for name in _names_of(K, part))
    pieces = one.pieces(K.center)
    count = 1 if pieces is None else int(pieces.shape[1])
    if pieces is None and isinstance(name := getattr(one, "name", None), str):
        return (name,)
    names = getattr(K, "names", None) if isinstance(one, Capacity) else None
    if isinstance(one, LoadLimit):
        names = one.names
    return (None,) * count if names is None or len(names) != count else tuple(names)
