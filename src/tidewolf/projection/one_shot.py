"""One-shot approximately feasible projection: a single Frank-Wolfe run, then one pull.

After any Frank-Wolfe iterate x with v = lmo(x - y) and gap = <x - y, x - v>, every z in K has <z - x, y - x> <= gap: K lies in a
half-space we know. Projecting y on it,

    y' = y + max(0, 1 - gap/|x - y|^2) (x - y),        |x - y'|^2 = min(|x - y|^2, gap^2/|x - y|^2),

gives I (projection on a convex set that contains K) and III (c is in K), and II as soon as gap^2 <= tol |x - y|^2.

    calls <= (D^2/tol) min(2, ln(|x0 - y|^2/tol)) + 4 <= 8 R^2/tol + 4

An oracle that may err by e adds e to the gap. Under a budget of calls I and III hold at any moment and the distance is measured.
"""

from __future__ import annotations

import math

from tidewolf.core.arrays import Array, as_count, as_number, as_point, eps_of, frozen, inner, like, namespace
from tidewolf.core.errors import OracleError
from tidewolf.core.oracle import Answer, HasLMO
from tidewolf.projection.result import Projected


def afp(K: HasLMO, y: Array, x0: Array, *, tol: float, budget: int | None = None) -> Projected:
    """(x, y') with |x - y'|^2 <= tol, or as near as `budget` calls of the oracle allow; x0 is a member of K."""
    y, x = points(K, y, x0)
    tol, budget = as_number(tol, "tol", above=0.0), as_budget(budget)
    calls = 0
    while True:
        r = x - y
        distance2 = inner(r, r)
        if distance2 <= tol or calls >= budget:
            return Projected(frozen(x), frozen(y), calls, distance2)
        answer = K.answer(r)
        calls += 1
        gap = fw_gap(r, x, answer, distance2)
        if gap * gap <= tol * distance2 or calls == budget:
            y = pulled(y, r, gap, distance2)
            r = x - y
            return Projected(frozen(x), frozen(y), calls, inner(r, r))
        x = line_search(x, y, answer)


def as_budget(budget: int | None) -> float:
    """A number of oracle calls; None is no limit."""
    return math.inf if budget is None else as_count(budget, "A budget of oracle calls", least=0)


def points(K: HasLMO, y: Array, x0: Array) -> tuple[Array, Array]:
    """Copies of both points, checked, in the array library and dtype of y."""
    y = as_point(y, K.shape, "The point to project")
    x = as_point(x0, K.shape, "The starting point")
    return namespace(y).asarray(y, copy=True), namespace(y).asarray(like(x, y), copy=True)


def fw_gap(r: Array, x: Array, answer: Answer, distance2: float) -> float:
    """<r, x - v> + error: how far the half-space behind x may reach. Negative beyond rounding means that the oracle lied."""
    at_x, at_v = inner(r, x), answer.vertex.inner(r)
    gap = at_x - at_v + answer.error
    rounding = 1e3 * eps_of(r) * math.sqrt(distance2 * (inner(x, x) + answer.vertex.norm2()))
    if not gap >= -rounding:
        raise OracleError(
            f"The oracle answered with <d, v> = {at_v:.9g} (error {answer.error:.3g}), worse than {at_x:.9g} at a known member of the set: "
            "it does not minimise. `tidewolf.testing.check_set` shows on which direction."
        )
    return max(gap, 0.0)


def pulled(y: Array, r: Array, gap: float, distance2: float) -> Array:
    """y projected on the half-space { z : <z - x, y - x> <= gap }, where r = x - y."""
    return y + (1.0 - gap / distance2) * r if gap < distance2 else y


def line_search(x: Array, y: Array, answer: Answer) -> Array:
    """The point of the segment from x to the vertex that is nearest to y."""
    step = fw_step(x, y, answer)
    return answer.vertex.blend(x, step) if step > 0.0 else x


def fw_step(x: Array, y: Array, answer: Answer) -> float:
    """argmin over [0, 1] of |x + step (v - x) - y|^2."""
    vertex = answer.vertex
    length2 = vertex.norm2() - 2.0 * vertex.inner(x) + inner(x, x)
    if length2 <= 0.0:
        return 0.0
    r = x - y
    return min(1.0, max(0.0, (inner(r, x) - vertex.inner(r)) / length2))

