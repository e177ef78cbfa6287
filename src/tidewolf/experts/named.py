"""Points that are given by name with the round, from any source: a neural policy, an incumbent
system.

    z_t = the point that is known under this name before round t

No such name, None or a NaN: no advice in that round. A point that its own rounding takes out of K
is brought into aff(K) and a little towards the center. One farther outside is brought in by the
active-set projection, whose member x stands for it; the distance |z - x| is recorded. The active
set is kept between rounds, so that points that are near one another take few calls; where the
calls do not suffice to come near, there is no advice in that round, and one call is kept for the
next.

`Static` stays: the point that was played in the first round, in every round after it. Where losses
declare their curvature, values are mixed, and the run ends within ln(1/prior)/alpha of each expert
(methods/steps/hedge.py). Then this expert, with its large prior, keeps a run that has nothing to
learn near the start.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, final

from tidewolf.core import arrays, settings
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.experts.base import Adviser, Info, Proposals, Seen, Vertices
from tidewolf.methods.pool import Pool
from tidewolf.projection.one_shot import as_near
from tidewolf.sets.base import ConvexSet, membership_tolerance

# A point is brought in up to this share of radius^2, as a squared distance from its projection's
# infeasible iterate.
SHARE = 1e-6


# Points are taken for members but for rounding up to this excess, as a share of the radius.
NEAR = 1e-5
ENOUGH = 1e-3  # A member stands for a point up to this share of radius^2.


class NamedState(NamedTuple):
    pool: Pool  # the last point that was brought in
    outside: float = 0.0  # the largest distance of a point from the member that stands for it
    waits: bool = False  # whether the last point had to be brought in by oracle calls


@final
@dataclass(frozen=True, eq=False, repr=False)
class Named(Adviser):
    """Points that are given with each round, by name.

    Parameters
    ----------
    name : str
        The name of the points, as in `play(advice={name: x})`.

    Examples
    --------
    >>> K, adviser = tw.sets.Simplex(2), tw.experts.Named("incumbent")
    >>> info = tw.RoundInfo(advice={"incumbent": [0.25, 0.75]})
    >>> adviser.propose(K, adviser.start(K), info, 0, 1, ()).points
    (array([0.25, 0.75]),)
    """

    gives_members: ClassVar[bool] = True
    waits: ClassVar[bool] = True

    name: Annotated[str, settings.Text()]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def start(self, K: HasLMO) -> NamedState:
        return NamedState(Pool.start(K, 1))

    def propose(
        self, K: HasLMO, state: NamedState, info: Info, t: int, budget: int, vertices: Vertices
    ) -> Proposals:
        z = self._point(K, info)
        if z is None:
            return Proposals((None,), state)
        nearby = _nudged(K, z)
        if nearby is not None:
            return Proposals((nearby,), state._replace(waits=False))
        # the member near a point outside; absent where the calls do not suffice to reach it
        y, pool = as_near(z, K, f"The advice named {self.name!r}"), state.pool
        pool = pool.with_vertices(vertices)
        count, tol = pool.count, SHARE * K.radius**2
        pool, found = pool.projected(0, K, y + 0.0, tol, float(budget))
        new, pool = pool.vertices_since(count), pool.tidied()
        x = found.x if found.distance2 <= ENOUGH * K.radius**2 else None
        outside = state.outside if x is None else max(state.outside, arrays.norm(z - x))
        return Proposals((x,), NamedState(pool, outside, waits=True), found.calls, found=new)

    def _point(self, K: HasLMO, info: Info) -> Array | None:
        """The point that is known, in the library of the set's own; None if there is none."""
        given = None if info is None or info.advice is None else info.advice.get(self.name)
        if given is None:
            return None
        point = arrays.as_point(given, K.shape, f"The advice named {self.name!r}") + 0.0
        return arrays.frozen(arrays.like(point, K.center))

    def reserves(self, state: NamedState) -> int:
        return 1 if state.waits else 0

    def outside(self, state: NamedState) -> float:
        return state.outside


def _nudged(K: HasLMO, z: Array) -> Array | None:
    """A point that is a member but for the rounding of its numbers, as a member: brought into
    aff(K), and a little towards the center; None if that is not enough.
    """
    if K.infeasibility(z) <= membership_tolerance(z, K.radius):
        return z
    inside = K.center + K.tangent(z - K.center)
    infeasibility = K.infeasibility(inside)
    r = K.inner_radius if isinstance(K, ConvexSet) else None
    if 0.0 < infeasibility <= NEAR * K.radius and r:
        inside = inside + min(1.0, 2.0 * infeasibility / r) * (K.center - inside)
    near = arrays.norm(inside - z) <= 10.0 * NEAR * K.radius
    if near and K.infeasibility(inside) <= membership_tolerance(inside, K.radius):
        return arrays.frozen(inside)
    return None


class StaticState(NamedTuple):
    x: Array | None = None


@final
@dataclass(frozen=True, eq=False, repr=False)
class Static(Adviser):
    """Stay at the first decision.

    Examples
    --------
    >>> K, adviser = tw.sets.Simplex(2), tw.experts.Static()
    >>> adviser.names
    ('static',)
    >>> learner = tw.Ensemble(K, start=[0.25, 0.75], experts=[adviser])
    >>> run = tw.run(learner, tw.Stream(tw.functions.LogWealth([[1.0, 1.1], [1.0, 0.9]])))
    >>> run.learner.proposals(run.final_state)[-1].point
    array([0.25, 0.75])
    """

    gives_members: ClassVar[bool] = True
    names: ClassVar[tuple[str, ...]] = ("static",)
    in_words: ClassVar[tuple[str, ...]] = ("staying",)
    waits: ClassVar[bool] = False

    def start(self, K: HasLMO) -> StaticState:
        return StaticState()

    def observe(self, K: HasLMO, state: StaticState, feedback: Seen, x: Array) -> StaticState:
        return state if state.x is not None else StaticState(x)

    def propose(
        self, K: HasLMO, state: StaticState, info: Info, t: int, budget: int, vertices: Vertices
    ) -> Proposals:
        return Proposals((state.x,), state)
