"""One-shot approximately feasible projection: a single Frank-Wolfe run, then one shift of y; what
any such projection results in, and the exact test of its guarantees.

Given y and a member to start from, (x, y') with

    I    |y' - z| <= |y - z|  for every z in K,
    II   |x - y'|^2 <= tol,  x in K,
    III  |y' - c| <= |y - c|.

After any Frank-Wolfe iterate x with v = lmo(x - y) and gap = <x - y, x - v>, every z in K has <z -
x, y - x> <= gap: K lies in a half-space we know. Projecting y on it,

    y' = y + max(0, 1 - gap/|x - y|^2) (x - y),        |x - y'|^2 = min(|x - y|^2, gap^2/|x - y|^2),

gives I (projection on a convex set that contains K) and III (c is in K), and II as soon as
gap^2 <= tol |x - y|^2.

    calls <= (D^2/tol) min(2, ln(|x0 - y|^2/tol)) + 4 <= 8 R^2/tol + 4

An oracle that may err by e adds e to the gap. Under a budget of calls I and III hold at any moment
and the distance is measured. Without one the bound above is the budget: only rounding, in a set
many million times farther from the origin than it is large, reaches it.
"""

import math
from typing import NamedTuple

from tidewolf.core import arrays, errors
from tidewolf.core.oracle import Answer, HasLMO, as_set
from tidewolf.core.types import Array
from tidewolf.kernels.active_set import DROP, ORACLE_SLACK
from tidewolf.sets.base import membership_tolerance


class Projected(NamedTuple):
    """What an approximately feasible projection found.

    Parameters
    ----------
    x : array
        A member of the set.
    y : array
        Its infeasible iterate: near x, and no farther from any point of K than the projected point.
    calls : int
        How many oracle calls it took.
    distance2 : float
        The squared distance |x - y|^2.

    Examples
    --------
    >>> K = tw.sets.L2Ball(2)
    >>> found = tw.projection.afp(K, np.array([3.0, 0.0]), K.center, tol=1e-4)
    >>> found.calls, found.distance2 <= 1e-4
    (2, True)
    """

    x: Array
    y: Array
    calls: int
    distance2: float


def closer_to_all(K: HasLMO, before: Array, after: Array) -> float:
    """How much farther one point is than another from the member where that is worst.

    Parameters
    ----------
    K : ConvexSet
        The set of members.
    before : array
        The point before a projection.
    after : array
        The point after it.

    Returns
    -------
    float
        max over z in K of |after - z|^2 - |before - z|^2, by one oracle call: at most 0 where
        `after` is closer to all members.

    Examples
    --------
    >>> K = tw.sets.L2Ball(2)
    >>> tw.projection.closer_to_all(K, np.array([3.0, 0.0]), np.array([1.0, 0.0]))
    -4.0
    """
    before, after = _both(K, before, after, "closer_to_all")
    shift = before - after
    answer = K.answer(-2.0 * shift)
    largest = 2.0 * answer.vertex.inner(shift) + answer.error
    return arrays.inner(after, after) - arrays.inner(before, before) + largest


def closer_to_center(K: HasLMO, before: Array, after: Array) -> float:
    """How much farther one point is than another from the center.

    Parameters
    ----------
    K : ConvexSet
        The set, whose center c is asked about.
    before : array
        The point before a projection.
    after : array
        The point after it.

    Returns
    -------
    float
        |after - c| - |before - c|, at most 0 where `after` is closer.

    Examples
    --------
    >>> K = tw.sets.L2Ball(2)
    >>> tw.projection.closer_to_center(K, np.array([3.0, 0.0]), np.array([1.0, 0.0]))
    -2.0
    """
    before, after = _both(K, before, after, "closer_to_center")
    center = arrays.like(K.center, before)
    return arrays.length(after - center) - arrays.length(before - center)


def _both(K: HasLMO, before: Array, after: Array, who: str) -> tuple[Array, Array]:
    before = as_near(before, as_set(K, who), "The point before")
    return before, arrays.like(as_near(after, K, "The point after"), before)


# Distances above it have no squares.
FAR = 1e150


def as_near(y: object, K: HasLMO, what: str) -> Array:
    """y as a point of the shape of K whose distances to members can be squared."""
    point = arrays.as_point(y, K.shape, what)
    if max(arrays.length(point), K.radius, arrays.length(K.center)) > FAR:
        raise errors.NotFinite(
            f"{what} or the set is farther than {FAR:g} from the origin, too far for squares: "
            "measure in other units."
        )
    return point


def afp(K: HasLMO, y: Array, x0: Array, *, tol: float, budget: int | None = None) -> Projected:
    """Approximately feasible projection by a single Frank-Wolfe run.

    Parameters
    ----------
    K : ConvexSet
        The set to project on.
    y : array
        The point to project.
    x0 : array
        A member of K to start from.
    tol : float
        The squared distance between the member and its infeasible iterate at which it ends, above
        0.
    budget : int, optional
        How many oracle calls it may take. None: as many as are always enough, 8 R^2/tol + 4.

    Returns
    -------
    Projected
        A point x of K and an infeasible iterate y' no farther than y from any point of K, with |x -
        y'|^2 <= tol or as near as the budget allows.

    Raises
    ------
    NotAMember
        x0 is outside of K.
    OracleError
        The oracle answers worse than a known member: it does not minimise.

    Examples
    --------
    >>> K = tw.sets.Simplex(3)
    >>> found = tw.projection.afp(K, np.array([2.0, 0.0, 0.0]), K.center, tol=1e-6)
    >>> np.round(found.x, 3)
    array([1., 0., 0.])
    """
    y, x = as_projection_points(K, y, x0)
    tol = arrays.as_number(tol, "tol", above=0.0)
    most, calls = as_budget(budget, K, tol), 0
    while True:
        r = x - y
        distance2 = arrays.inner(r, r)
        if distance2 <= tol or calls >= most:
            return Projected(arrays.frozen(x), arrays.frozen(y), calls, distance2)
        answer = K.answer(r)
        calls += 1
        found = frank_wolfe_gap(r, x, answer, distance2)
        if found.gap**2 <= tol * distance2 or calls >= most:
            y = y + halfspace_shift(found.gap, distance2) * r
            return Projected(arrays.frozen(x), arrays.frozen(y), calls, arrays.inner(x - y, x - y))
        x = answer.vertex.blend(x, line_search(found))


class FrankWolfeGap(NamedTuple):
    """What one oracle answer v at the direction r = x - y tells."""

    # no z in K has <z - x, y - x> above this
    gap: float
    # <r, x - v>
    drop: float
    # |x - v|^2
    length2: float


def frank_wolfe_gap(r: Array, x: Array, answer: Answer, distance2: float) -> FrankWolfeGap:
    x2, vertex = arrays.inner(x, x), answer.vertex
    return checked_gap(
        r, arrays.inner(r, x), vertex.inner(r), answer.error, distance2, x2, vertex.distance2(x, x2)
    )


def checked_gap(
    r: Array, at_x: float, at_v: float, error: float, distance2: float, x2: float, length2: float
) -> FrankWolfeGap:
    """From <r, x>, <r, v>, |r|^2, |x|^2 and |x - v|^2; an answer worse than x itself beyond
    rounding is refused.
    """
    drop = at_x - at_v
    rounding = ORACLE_SLACK * arrays.eps_of(r) * math.sqrt(distance2 * (x2 + length2))
    if not drop + error >= -rounding:
        raise oracle_error(at_v, error, at_x)
    return FrankWolfeGap(max(drop + error, 0.0), drop, length2)


def oracle_error(at_v: float, error: float, at_x: float) -> errors.OracleError:
    return errors.OracleError(
        f"The oracle answered with <d, v> = {at_v:.9g} (error {error:.3g}), worse than {at_x:.9g} "
        "at a known member of the set: it does not minimise. `tidewolf.testing.check_set` shows "
        "on which direction."
    )


def halfspace_shift(gap: float, distance2: float) -> float:
    """The share of the way from y to x that projects y on the half-space
    { z : <z - x, y - x> <= gap }.
    """
    return max(0.0, 1.0 - gap / distance2)


def line_search(found: FrankWolfeGap, shift: float = 0.0) -> float:
    """The best step on the segment to the vertex against y, or against y shifted this share of the
    way to x.
    """
    if found.length2 <= 0.0:
        return 0.0
    step = max(0.0, (1.0 - shift) * found.drop / found.length2)
    return 1.0 if step > 1.0 - DROP else step  # a vertex itself, without rounding


def as_projection_points(K: HasLMO, y: Array, x0: Array) -> tuple[Array, Array]:
    y = as_near(y, as_set(K, "A projection"), "The point to project")
    x = arrays.like(as_member(K, x0), y)
    return arrays.namespace(y).asarray(y, copy=True), arrays.namespace(y).asarray(x, copy=True)


def as_member(K: HasLMO, x0: Array) -> Array:
    point = arrays.as_point(x0, as_set(K, "A projection").shape, "The starting point")
    infeasibility = K.infeasibility(point)
    if infeasibility > membership_tolerance(point, K.radius):
        raise errors.NotAMember(
            f"The starting point is not a member of the set: its excess is {infeasibility:.3g}."
        )
    return point


def as_budget(budget: int | None, K: HasLMO, tol: float) -> float:
    """A number of oracle calls; None is what is always enough, so that rounding cannot ask for
    more.
    """
    if budget is None:
        return 8.0 * K.radius * (K.radius / tol) + 4.0
    return arrays.as_count(budget, "A budget of oracle calls", least=0)
