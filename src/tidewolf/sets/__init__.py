"""Convex sets touched through a linear minimiser. Add a set by adding one file and one export here."""

from __future__ import annotations

from inspect import isabstract

from tidewolf.core.matrices import SparsePlusLowRank
from tidewolf.sets import graph_tools
from tidewolf.sets.base import Compiled, ConvexSet, LinearDescription, Polyhedral, Projectable, Relaxable
from tidewolf.sets.birkhoff import Birkhoff
from tidewolf.sets.bounded_psd import BoundedPSD
from tidewolf.sets.box import Box
from tidewolf.sets.capacitated_flow import CapacitatedFlow
from tidewolf.sets.capped_simplex import CappedSimplex
from tidewolf.sets.commodities import Commodity
from tidewolf.sets.ellipsoid import Ellipsoid
from tidewolf.sets.fantope import Fantope
from tidewolf.sets.flow import FlowPolytope
from tidewolf.sets.group_ball import GroupBall
from tidewolf.sets.k_norm_ball import KNormBall
from tidewolf.sets.k_sparse import KSparse
from tidewolf.sets.knapsack import Knapsack
from tidewolf.sets.l1_ball import L1Ball
from tidewolf.sets.l2_ball import L2Ball
from tidewolf.sets.lp_ball import LpBall
from tidewolf.sets.matching import Matching
from tidewolf.sets.multi_flow import MultiFlow
from tidewolf.sets.nuclear_ball import NuclearBall
from tidewolf.sets.ordered_weighted_ball import OrderedWeightedBall
from tidewolf.sets.permutahedron import Permutahedron
from tidewolf.sets.polytope import Polytope
from tidewolf.sets.product import Product
from tidewolf.sets.scaled import Scaled
from tidewolf.sets.shrunk import Shrunk
from tidewolf.sets.simplex import Simplex
from tidewolf.sets.spanning_trees import SpanningTrees
from tidewolf.sets.spectraplex import Spectraplex
from tidewolf.sets.translated import Translated
from tidewolf.sets.transportation import Transportation
from tidewolf.sets.vertex_hull import VertexHull

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
    """All set classes exported here, so that laws, tables and the shell find them by themselves."""
    kinds = (kind for kind in map(globals().get, __all__) if isinstance(kind, type))
    return tuple(kind for kind in kinds if issubclass(kind, ConvexSet) and not isabstract(kind))
