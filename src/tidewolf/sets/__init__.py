"""Convex sets touched through a linear minimiser. Add a set by adding one file and one export
here.
"""

from inspect import isabstract

from tidewolf.core.sparse import SparsePlusLowRank
from tidewolf.sets import graph_tools
from tidewolf.sets.balls import (
    Box,
    Ellipsoid,
    GroupBall,
    KNormBall,
    KSparse,
    L1Ball,
    L2Ball,
    LpBall,
    OrderedWeightedBall,
)
from tidewolf.sets.base import (
    Compiled,
    ConvexSet,
    Factors,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
)
from tidewolf.sets.calculus import Product, Scaled, Shrunk, Translated
from tidewolf.sets.capacitated_flow import CapacitatedFlow
from tidewolf.sets.flows import FlowPolytope, MultiFlow
from tidewolf.sets.generic import Polytope, VertexHull
from tidewolf.sets.graphs import Commodity
from tidewolf.sets.matchings import Matching, SpanningTrees
from tidewolf.sets.orders import Birkhoff, Permutahedron, Transportation
from tidewolf.sets.simplices import CappedSimplex, Knapsack, Simplex, SimplexProduct
from tidewolf.sets.spectra import BoundedPSD, Fantope, NuclearBall, Spectraplex

__all__ = [
    "Birkhoff", "BoundedPSD", "Box", "CapacitatedFlow", "CappedSimplex", "Commodity",
    "Compiled", "ConvexSet", "Ellipsoid", "Factors", "Fantope", "FlowPolytope", "GroupBall",
    "KNormBall", "KSparse", "Knapsack", "L1Ball", "L2Ball", "LinearDescription", "LpBall",
    "Matching", "MultiFlow", "NuclearBall", "OrderedWeightedBall", "Permutahedron",
    "Polyhedral", "Polytope", "Product", "Projectable", "Relaxable", "Scaled", "Shrunk",
    "Simplex", "SimplexProduct", "SpanningTrees", "SparsePlusLowRank", "Spectraplex",
    "Translated", "Transportation", "VertexHull", "every", "graph_tools",
]  # fmt: skip


def every() -> tuple[type[ConvexSet], ...]:
    """All set classes of this package.

    Returns
    -------
    tuple of type
        The classes, in alphabetical order.

    Examples
    --------
    >>> tw.sets.Simplex in tw.sets.every()
    True
    """
    kinds = (kind for kind in map(globals().get, __all__) if isinstance(kind, type))
    return tuple(kind for kind in kinds if issubclass(kind, ConvexSet) and not isabstract(kind))
