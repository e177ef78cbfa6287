"""One table of vertices for several active sets: a vertex that was found for one of them is a
candidate for the others that costs no call.

Tables are append-only, so the weights of an active set on a shorter version of a table are those on
a longer one, followed by zeros (`Active.beside`). With `nearest(..., shared=True)` an active set
leaves the rows of its table alone; `compacted` drops those that are idle in all of them together,
when they outnumber the others as they may in a single active set. All are of one kind; exact points
have no table, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tidewolf.projection.active import Active
from tidewolf.projection.active_set import ActiveSet, most_idle
from tidewolf.projection.factored import FactoredActiveSet

Some = TypeVar("Some", ActiveSet, FactoredActiveSet)


def on_one_table(actives: Sequence[Some]) -> tuple[Some, ...]:
    """The same points, all on the rows of one table: that of the longest, and what it lacks."""
    longest = max(actives, key=lambda active: len(active.atoms))
    joined: list[Some] = []
    for active in actives:
        longest = active.beside(longest)
        joined.append(longest)
    return tuple(active.beside(longest) for active in joined)


def compacted(actives: Sequence[Active], dimension: int = 0) -> tuple[Active, ...]:
    """The same points on one table, without the rows that are idle in all of them where those are
    many; `dimension`, that of the set, lets a table of a large set keep more.
    """
    plain = [active for active in actives if isinstance(active, ActiveSet)]
    factored = [active for active in actives if isinstance(active, FactoredActiveSet)]
    if len(plain) == len(actives) > 0:
        return _without_idle(plain, dimension)
    if len(factored) == len(actives) > 0:
        return _without_idle(factored, dimension)
    return tuple(actives)


def _without_idle(given: Sequence[Some], dimension: int) -> tuple[Some, ...]:
    actives = on_one_table(given)
    in_use = np.any([active.weights > 0.0 for active in actives], axis=0)
    count = int(np.count_nonzero(in_use))
    if len(in_use) <= count + most_idle(count, dimension):
        return actives
    rows = np.flatnonzero(in_use)
    table = actives[0].atoms.only(rows)
    return tuple(active.only(table, rows) for active in actives)
