"""Points that come from anywhere: a neural policy, an incumbent system, a colleague.

    z_t = the point that is known under this name before round t

No such name, None or a NaN: no advice in that round. A point outside K, beyond rounding, is brought
in by the active-set projection, whose member x stands for it; the distance |z - x| is recorded.
The active set is kept between rounds, so that points that are near one another take few calls;
with no call left the member it has already stands for the point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import as_point, frozen, is_array, like, norm, to_numpy
from tidewolf.core.errors import WrongType
from tidewolf.core.feedback import FirstOrder, FullInformation
from tidewolf.core.known import Known
from tidewolf.core.oracle import HasLMO
from tidewolf.core.settings import Text
from tidewolf.core.types import Array
from tidewolf.core.vertices import Vertex
from tidewolf.methods.advice.base import Adviser, Proposals
from tidewolf.projection.active_set import ActiveSet
from tidewolf.projection.result import as_near
from tidewolf.sets.base import membership_tolerance

SHARE = 1e-6
"""A point is brought in up to this share of radius^2, as a squared distance from its projection's
companion.
"""


class NamedState(NamedTuple):
    active: ActiveSet
    """the last point that was brought in"""
    outside: float = 0.0
    """the largest distance of a point from the member that stands for it"""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Named(Adviser):
    """Points by name, from anywhere.

    Parameters
    ----------
    name : str
        The name that its points are known under.

    Examples
    --------
    >>> K, adviser = tw.sets.Simplex(2), tw.advice.Named("incumbent")
    >>> known = tw.Known(advice={"incumbent": [0.25, 0.75]})
    >>> adviser.propose(K, adviser.start(K), known, 0, 1, ()).points
    (array([0.25, 0.75]),)
    """

    name: Annotated[str, Text("The name that its points are known under.")]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def waits(self) -> bool:
        return True

    def start(self, K: HasLMO) -> NamedState:
        return NamedState(ActiveSet.start(K))

    def observe(
        self, K: HasLMO, state: NamedState, seen: FullInformation | FirstOrder, x: Array
    ) -> NamedState:
        return state

    def propose(
        self,
        K: HasLMO,
        state: NamedState,
        known: Known | None,
        t: int,
        budget: int,
        vertices: tuple[Vertex, ...],
    ) -> Proposals:
        z = self._point(K, known)
        if z is None:
            return Proposals((None,), state)
        if K.excess(z) <= membership_tolerance(z, K.radius):
            return Proposals((z,), state)
        return self._brought_in(K, state, z, budget)

    def _point(self, K: HasLMO, known: Known | None) -> Array | None:
        """The point that is known, in the library of the set's own; None where there is none."""
        advice = None if known is None else known.advice
        given: Any = None if advice is None else advice.get(self.name)
        if given is None:
            return None
        try:
            numbers = to_numpy(given) if is_array(given) else np.asarray(given)
            absent = bool(np.isnan(np.asarray(numbers, dtype=np.float64)).any())
        except (TypeError, ValueError):
            raise WrongType(
                f"The advice named {self.name!r} is a point, an array of numbers, not a "
                f"{type(given).__name__}."
            ) from None
        if absent:
            return None
        point = as_point(given, K.shape, f"The advice named {self.name!r}")
        return frozen(like(point + 0.0, K.center))

    def _brought_in(self, K: HasLMO, state: NamedState, z: Array, budget: int) -> Proposals:
        y = as_near(z, K, f"The advice named {self.name!r}")
        found = state.active.nearest(K, y + 0.0, SHARE * K.radius**2, float(budget))
        kept = NamedState(found.active, max(state.outside, norm(z - found.x)))
        met = _vertices(found.active) if found.calls else {}
        before = _vertices(state.active) if met else {}
        new = tuple(vertex for key, vertex in met.items() if key not in before)
        return Proposals((found.x,), kept, found.calls, found=new)

    def outside(self, state: NamedState) -> float:
        return state.outside


def _vertices(active: ActiveSet) -> dict[bytes, Vertex]:
    return {vertex.key(): vertex for vertex in active.atoms.vertices[: len(active.weights)]}
