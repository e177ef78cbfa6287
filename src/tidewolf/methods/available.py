"""What holds a decision back: entries that are out of service, and a cap on how far it moves.

Entries that are out (a link that is down) are known before the round:

    drop the vertices that use them, weights 1 in all again;
    if none is left, one oracle call with a prohibitive price on the entries

The point that is played is a member of K and exactly 0 in these entries, whatever else holds it
back. The call comes from the learner's budget, which may go below 0 for it: being feasible comes
first. Where an answer is not 0 there, a second call asks for the least that the entries can carry:
above 0 it proves that no member does without them. Entries that may be negative have no such
price; a third call leaves them out of the direction, and the center is tried. What none of these
prove to be possible is refused, with what cannot be reached.

Where experts are mixed, and this moves their mix by more than a tenth, the rounds of the outage
have weights of their own, which begin as the others are. The others learn of such a round as though
what they would have decided without the outage had been overridden (`as_usual` of
methods/accounts.py): who is best around the outage says little of who is best without it. So the
guard of methods/steps/hedge.py holds for all rounds, those of outages counted by `as_usual`, and
for the rounds before an outage, so counted, together with its own as they were played.

A decision moves by half the sum of the changes of all entries, which is what has to be rerouted of
flows and shares. Under a cap

    x  <-  last + min(1, cap/dist) (x - last),        dist = |x - last|_1/2

is a member of K where both are.

What is played is then not where the learner stands, which is accounted for as every other override
is (methods/late.py, methods/accounts.py): bounds hold for what was played.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidewolf.core import arrays, errors, round_info, vertices
from tidewolf.core.arguments import listed, nearest_names
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Bools, Int64s
from tidewolf.projection.active import Active, is_free_of
from tidewolf.sets.base import ConvexSet

PRICE = 1e6  # The price of an entry that is out, in parts of all others together.
FAR = 0.1  # From which share of a decision on an outage moves it far.
HELD_BACK = (
    "Guarantees are for decisions that move as far as they will: with max_move bounds are measured."
)


def entries_out(K: HasLMO, info: round_info.RoundInfo | None) -> Bools | None:
    """Which flat entries are out in the coming round; None if all are there."""
    if info is None or info.unavailable is None:
        return None
    count = int(np.prod(K.shape))
    out: Bools = np.zeros(count, dtype=bool)
    places = K.places if isinstance(K, ConvexSet) else {}
    for one in info.unavailable:
        place = one if isinstance(one, int) else places.get(one, count)
        if np.max(place) >= count:
            near = nearest_names(str(one), places) or listed(map(repr, places)) or "there is none"
            raise errors.InvalidInput(
                f"Expected as unavailable the name of an entry ({near}) or its place, 0 to "
                f"{count - 1}, not {one!r}.",
                setting="unavailable",
            )
        out[place] = True
    return out if out.any() else None


def uses(x: Array, out: Bools) -> bool:
    """Whether a point is not 0 in some of these flat entries."""
    return bool(arrays.to_numpy(x).reshape(-1)[out].any())


class Restricted(NamedTuple):
    points: tuple[Array, ...]
    calls: int = 0
    # a vertex that an oracle call found, where there was one
    found: tuple[vertices.Vertex, ...] = ()


def restricted(K: HasLMO, actives: Sequence[Active], out: Bools, direction: Array) -> Restricted:
    """The points of active sets on those of their vertices that are 0 in the entries that are out;
    one vertex, the best for `direction`, serves all that have none.
    """
    points = [active.avoiding(K, out, None) for active in actives]
    if all(x is not None for x in points):
        return Restricted(tuple(points))
    vertex, calls = available_vertex(K, out, direction)
    again = (
        active.avoiding(K, out, vertex) if x is None else x
        for active, x in zip(actives, points, strict=True)
    )
    return Restricted(tuple(again), calls, (vertex,))


def available_vertex(K: HasLMO, out: Bools, direction: Array) -> tuple[vertices.Vertex, int]:
    """A vertex that is exactly 0 in the entries that are out, the best for a direction, and the
    oracle calls that it took; refused if none is found.
    """
    price = arrays.like(out.reshape(K.shape).astype(np.float64), K.center)
    most = float(arrays.namespace(direction).max(arrays.namespace(direction).abs(direction))) or 1.0
    asked = (direction + (PRICE * out.size * most) * price, price, direction * (1.0 - price))
    proven = False
    for calls, d in enumerate(asked, 1):
        answer = K.answer(d)
        if is_free_of(answer.vertex, out, K.center):
            return answer.vertex, calls
        if d is price:
            rounding = 1e3 * arrays.eps_of(K.center) * (K.radius + arrays.length(K.center))
            if proven := answer.vertex.inner(price) - answer.error > rounding:
                break
    if not proven and is_free_of(center := K.atom(K.center), out, K.center):
        return center, len(asked)
    entries: Int64s = np.flatnonzero(out)
    names, why = (K.names, K._out_of_reach(entries)) if isinstance(K, ConvexSet) else (None, None)
    called = listed(f"entry {i}" if names is None else names[i] for i in entries.tolist())
    if proven or why is not None:
        raise errors.EmptySet(
            f"Without {called} {why or f'there is no member of {K!r}'}; nothing was decided. Call "
            "`play` again with fewer unavailable entries.",
            setting="unavailable",
        )
    raise errors.NotSupported(
        f"Whether a member of {K!r} is 0 in {called} cannot be found by its oracle; nothing was "
        "decided. Call `play` again with fewer unavailable entries, or use a set without them."
    )


def distance_moved(x: Array, last: Array) -> float:
    xp = arrays.namespace(x)
    return 0.5 * float(xp.sum(xp.abs(x - last)))


def is_far(x: Array, other: Array) -> bool:
    return distance_moved(x, other) > 2.0 * FAR * distance_moved(other, 0.0 * other)


def capped(x: Array, last: Array, most: float | None) -> Array:
    """The point on the way from `last` to x that is no farther than `most`; x itself where that
    is near enough.
    """
    if most is None:
        return x
    far = distance_moved(x, last)
    return x if far <= most else arrays.frozen(last + (most / far) * (x - last))
