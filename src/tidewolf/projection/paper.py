"""Approximately feasible projection, as published
(Garber & Kretzu 2024, Algorithms 1 and 2, Lemma 2.2).

    Algorithm 1   while |x_i - y_i|^2 > 3 eps:
        y_{i+1} = y_i - (2/3)(y_i - x_i),  x_{i+1} = Algorithm 2 from x_i against y_{i+1}
    Algorithm 2
        Frank-Wolfe with exact line search on |x - y|^2 until gap <= eps or |x - y|^2 <= 3 eps

    tol = 3 eps,   oracle calls <= (27 R^2/eps) max{ 2.25 ln(|y - x0|^2/eps) + 1, 0 }

Erratum: the distance is tested before the oracle is called, which saves one call after each shift
of y and changes nothing else.
"""

from tidewolf.core import arrays, oracle
from tidewolf.core.types import Array
from tidewolf.projection import one_shot


def afp_paper(K: oracle.HasLMO, y: Array, x0: Array, *, tol: float) -> one_shot.Projected:
    """Approximately feasible projection as the paper writes it, with eps = tol/3.

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

    Returns
    -------
    Projected
        A point x of K and an infeasible iterate y' no farther than y from any point of K, with |x -
        y'|^2 <= tol.

    Raises
    ------
    NotAMember
        x0 is outside of K.
    OracleError
        The oracle answers worse than a known member: it does not minimise.

    Examples
    --------
    >>> K = tw.sets.Simplex(3)
    >>> found = tw.projection.afp_paper(K, np.array([2.0, 0.0, 0.0]), K.center, tol=1e-6)
    >>> np.round(found.x, 2)
    array([1., 0., 0.])
    """
    y, x = one_shot.as_projection_points(K, y, x0)
    eps = arrays.as_number(tol, "tol", above=0.0) / 3.0
    calls = 0
    while True:
        x, used = separating_hyperplane(K, y, x, eps)
        calls += used
        r = x - y
        if arrays.inner(r, r) <= 3.0 * eps:
            return one_shot.Projected(arrays.frozen(x), arrays.frozen(y), calls, arrays.inner(r, r))
        y = y - (2.0 / 3.0) * (y - x)


def separating_hyperplane(K: oracle.HasLMO, y: Array, x: Array, eps: float) -> tuple[Array, int]:
    """Algorithm 2: the last iterate and the calls it took."""
    calls = 0
    while True:
        r = x - y
        distance2 = arrays.inner(r, r)
        if distance2 <= 3.0 * eps:
            return x, calls
        answer = K.answer(r)
        calls += 1
        found = one_shot.frank_wolfe_gap(r, x, answer, distance2)
        if found.gap <= eps:
            return x, calls
        x = answer.vertex.blend(x, one_shot.line_search(found))
