"""Convex sets touched through a linear minimiser. Add a set by adding one file and one export here."""

from __future__ import annotations

from inspect import isabstract

from tidewolf.sets.base import ConvexSet, LinearDescription, Polyhedral, Projectable, Relaxable
from tidewolf.sets.bounded_psd import BoundedPSD
from tidewolf.sets.box import Box
from tidewolf.sets.capped_simplex import CappedSimplex
from tidewolf.sets.ellipsoid import Ellipsoid
from tidewolf.sets.flow import FlowPolytope
from tidewolf.sets.group_ball import GroupBall
from tidewolf.sets.k_norm_ball import KNormBall
from tidewolf.sets.k_sparse import KSparse
from tidewolf.sets.knapsack import Knapsack
from tidewolf.sets.l1_ball import L1Ball
from tidewolf.sets.l2_ball import L2Ball
from tidewolf.sets.lp_ball import LpBall
from tidewolf.sets.ordered_weighted_ball import OrderedWeightedBall
from tidewolf.sets.product import Product
from tidewolf.sets.scaled import Scaled
from tidewolf.sets.shrunk import Shrunk
from tidewolf.sets.simplex import Simplex
from tidewolf.sets.translated import Translated
from tidewolf.sets.vertex_hull import VertexHull

__all__ = [
    "BoundedPSD",
    "Box",
    "CappedSimplex",
    "ConvexSet",
    "Ellipsoid",
    "FlowPolytope",
    "GroupBall",
    "KNormBall",
    "KSparse",
    "Knapsack",
    "L1Ball",
    "L2Ball",
    "LinearDescription",
    "LpBall",
    "OrderedWeightedBall",
    "Polyhedral",
    "Product",
    "Projectable",
    "Relaxable",
    "Scaled",
    "Shrunk",
    "Simplex",
    "Translated",
    "VertexHull",
    "every",
]


def every() -> tuple[type[ConvexSet], ...]:
    """All set classes exported here, so that laws, tables and the shell find them by themselves."""
    kinds = (kind for kind in map(globals().get, __all__) if isinstance(kind, type))
    return tuple(kind for kind in kinds if issubclass(kind, ConvexSet) and not isabstract(kind))
