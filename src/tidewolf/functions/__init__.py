"""Batches of convex functions, one per round.

    Linear(C)                          <C_t, x>
    Affine(A, b)                       <A_t, x> - b_t
    MaxAffine(A, b)                    max_j <A_tj, x> - b_tj
    Capacity(c)                        max_i x_i - c_ti
    Quadratic(P, q, r)                 1/2 <x, P_t x> + <q_t, x> + r_t
    Squared.of(rounds, shape)          1/2 sum of (x_e - m_te)^2 over the entries e seen in round t
    Range.of(rounds, shape)            how far the entries asked for in round t are out of bounds
    LogWealth(returns)                 -log <r_t, x>, where that is defined
    MaxUtilization(incidence, demands, capacities, pairs)
                                       how full the fullest link is, demands split over paths
    LoadCost(incidence, demands, costs, pairs)
                                       what links cost for what they carry
    LoadLimit(incidence, demands, capacities, pairs)
                                       by how much the most overloaded link is over its capacity
    Custom(value, subgradient, shape)  value(t, x)
    from_torch(value, shape, data=..)  value(x, *row), gradients by torch; from_jax by jax
    from_cvxpy(expression, x, values)  a convex expression of cvxpy, as the kind above that it is
    Unlimited(shape, rounds)           -1: what a stream has where no constraints are given
    Sum(f, g, ..), Max(f, g, ..)       their sum, weighted, or the largest, round by round
    Chain(parts)                       those of the first part, then those of the second, ..
    Charged(f, h, .., names=[..])      f, with what is spent beside it

The leading axis is always rounds; `.one(...)` makes a single round. Nothing given is copied. Your
own is a subclass of `Batch`, tried by `tidewolf.testing.check_function`.
"""

from inspect import isabstract

from tidewolf.core.batch import Batch, Halfspaces, LinearTotal, PiecewiseLinear, Unlimited
from tidewolf.functions.autograd import Custom, from_jax, from_torch
from tidewolf.functions.combined import Chain, Charged, Max, Sum
from tidewolf.functions.entries import Range, Squared
from tidewolf.functions.from_cvxpy import from_cvxpy
from tidewolf.functions.linear import Affine, Capacity, Linear, MaxAffine
from tidewolf.functions.loads import LoadCost, LoadLimit, MaxUtilization
from tidewolf.functions.smooth import LogWealth, Quadratic

__all__ = [
    "Affine", "Batch", "Capacity", "Chain", "Charged", "Custom", "Halfspaces", "Linear",
    "LinearTotal", "LoadCost", "LoadLimit", "LogWealth", "Max", "MaxAffine", "MaxUtilization",
    "PiecewiseLinear", "Quadratic", "Range", "Squared", "Sum", "Unlimited", "every", "from_cvxpy",
    "from_jax", "from_torch",
]  # fmt: skip


def every() -> tuple[type[Batch], ...]:
    """Every kind of function here, in alphabetical order.

    Returns
    -------
    tuple of type
        The classes: what the checks, the docs and experiment files go through.

    Examples
    --------
    >>> [kind.__name__ for kind in tw.functions.every()][:3]
    ['Affine', 'Capacity', 'Chain']
    """
    return tuple(
        kind
        for kind in (globals()[name] for name in __all__)
        if isinstance(kind, type) and issubclass(kind, Batch) and not isabstract(kind)
    )
