"""The result of an approximately feasible projection, and the exact test of its guarantees.

Given y and a member to start from, (x, y') with

    I    |y' - z| <= |y - z|  for every z in K,
    II   |x - y'|^2 <= tol,  x in K,
    III  |y' - c| <= |y - c|.
"""

from __future__ import annotations

from typing import NamedTuple

from tidewolf.core.arrays import as_point, inner, length, like
from tidewolf.core.errors import NotFinite
from tidewolf.core.oracle import HasLMO, as_set
from tidewolf.core.types import Array


class Projected(NamedTuple):
    """What an approximately feasible projection found.

    Parameters
    ----------
    x : array
        A member of the set.
    y : array
        Its companion: near x, and no farther from any member than the point that was projected.
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
    return inner(after, after) - inner(before, before) + largest


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
    center = like(K.center, before)
    return length(after - center) - length(before - center)


def _both(K: HasLMO, before: Array, after: Array, who: str) -> tuple[Array, Array]:
    """Both points, checked, in the array library and dtype of the first."""
    before = as_near(before, as_set(K, who), "The point before")
    return before, like(as_near(after, K, "The point after"), before)


FAR = 1e150
"""Distances above it have no squares."""


def as_near(y: object, K: HasLMO, what: str) -> Array:
    """y as a point of the shape of K whose distances to members can be squared."""
    point = as_point(y, K.shape, what)
    if max(length(point), K.radius, length(K.center)) > FAR:
        raise NotFinite(
            f"{what} or the set is farther than {FAR:g} from the origin, too far for squares: "
            "measure in other units."
        )
    return point
