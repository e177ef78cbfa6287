"""Convex sets touched through a linear minimiser. Add a set by adding one file and one export
here.
"""

from __future__ import annotations

from inspect import isabstract

from tidewolf.core.matrices import SparsePlusLowRank
from tidewolf.sets import graph_tools
from tidewolf.sets.balls.box import Box
from tidewolf.sets.balls.ellipsoid import Ellipsoid
from tidewolf.sets.balls.group_ball import GroupBall
from tidewolf.sets.balls.k_norm_ball import KNormBall
from tidewolf.sets.balls.k_sparse import KSparse
from tidewolf.sets.balls.l1_ball import L1Ball
from tidewolf.sets.balls.l2_ball import L2Ball
from tidewolf.sets.balls.lp_ball import LpBall
from tidewolf.sets.balls.ordered_weighted_ball import OrderedWeightedBall
from tidewolf.sets.base import (
    Compiled,
    ConvexSet,
    Factors,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
)
from tidewolf.sets.calculus.product import Product
from tidewolf.sets.calculus.scaled import Scaled
from tidewolf.sets.calculus.shrunk import Shrunk
from tidewolf.sets.calculus.translated import Translated
from tidewolf.sets.flows.capacitated_flow import CapacitatedFlow
from tidewolf.sets.flows.flow_polytope import FlowPolytope
from tidewolf.sets.flows.multi_flow import MultiFlow
from tidewolf.sets.generic.polytope import Polytope
from tidewolf.sets.generic.vertex_hull import VertexHull
from tidewolf.sets.graphs.settings import Commodity
from tidewolf.sets.orders.birkhoff import Birkhoff
from tidewolf.sets.orders.matching import Matching
from tidewolf.sets.orders.permutahedron import Permutahedron
from tidewolf.sets.orders.spanning_trees import SpanningTrees
from tidewolf.sets.orders.transportation import Transportation
from tidewolf.sets.simplices.capped_simplex import CappedSimplex
from tidewolf.sets.simplices.knapsack import Knapsack
from tidewolf.sets.simplices.simplex import Simplex
from tidewolf.sets.simplices.simplex_product import SimplexProduct
from tidewolf.sets.spectra.bounded_psd import BoundedPSD
from tidewolf.sets.spectra.fantope import Fantope
from tidewolf.sets.spectra.nuclear_ball import NuclearBall
from tidewolf.sets.spectra.spectraplex import Spectraplex

__all__ = [
    "Birkhoff",
    "BoundedPSD",
    "Box",
    "CapacitatedFlow",
    "CappedSimplex",
    "Commodity",
    "Compiled",
    "ConvexSet",
    "Ellipsoid",
    "Factors",
    "Fantope",
    "FlowPolytope",
    "GroupBall",
    "KNormBall",
    "KSparse",
    "Knapsack",
    "L1Ball",
    "L2Ball",
    "LinearDescription",
    "LpBall",
    "Matching",
    "MultiFlow",
    "NuclearBall",
    "OrderedWeightedBall",
    "Permutahedron",
    "Polyhedral",
    "Polytope",
    "Product",
    "Projectable",
    "Relaxable",
    "Scaled",
    "Shrunk",
    "Simplex",
    "SimplexProduct",
    "SpanningTrees",
    "SparsePlusLowRank",
    "Spectraplex",
    "Translated",
    "Transportation",
    "VertexHull",
    "every",
    "graph_tools",
]


def every() -> tuple[type[ConvexSet], ...]:
    """All set classes exported here, so that laws, tables and the shell find them by themselves.

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
