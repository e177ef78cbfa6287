"""One table of vertices for several active sets: a vertex that was found for one of them is a
candidate for the others that costs no call.

Tables are append-only, so the weights of an active set on a shorter version of a table are those on
a longer one, followed by zeros (`ActiveSet.on`). With `nearest(..., shared=True)` an active set
leaves the rows of its table alone; `compacted` drops those that are idle in all of them together,
when they outnumber the others as they may in a single active set.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidewolf.projection.active_set import ActiveSet, most_idle


def on_one_table(actives: Sequence[ActiveSet]) -> tuple[ActiveSet, ...]:
    """The same points, all on the rows of one table: that of the longest, and what it lacks."""
    table = max(actives, key=lambda active: len(active.atoms)).atoms
    joined = []
    for active in actives:
        active = active.on(table)
        table = active.atoms
        joined.append(active)
    return tuple(active.on(table) for active in joined)


def compacted(actives: Sequence[ActiveSet], dimension: int = 0) -> tuple[ActiveSet, ...]:
    """The same points on one table, without the rows that are idle in all of them where those are
    many; `dimension`, that of the set, lets a table of a large set keep more.
    """
    actives = on_one_table(actives)
    in_use = np.any([active.weights > 0.0 for active in actives], axis=0)
    count = int(np.count_nonzero(in_use))
    if len(in_use) <= count + most_idle(count, dimension):
        return actives
    rows = np.flatnonzero(in_use)
    table = actives[0].atoms.only(rows)
    return tuple(active.only(table, rows) for active in actives)
