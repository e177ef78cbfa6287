"""Convex sets touched through a linear minimiser. Add a set by adding one file and one export here."""

from __future__ import annotations

from inspect import isabstract

from tidewolf.sets.base import Compiled, ConvexSet, LinearDescription, Polyhedral, Projectable, Relaxable
from tidewolf.sets.bounded_psd import BoundedPSD
from tidewolf.sets.box import Box
from tidewolf.sets.capped_simplex import CappedSimplex
from tidewolf.sets.flow import FlowPolytope
from tidewolf.sets.l2_ball import L2Ball
from tidewolf.sets.shrunk import Shrunk
from tidewolf.sets.simplex import Simplex
from tidewolf.sets.translated import Translated
from tidewolf.sets.vertex_hull import VertexHull

__all__ = [
    "BoundedPSD",
    "Box",
    "CappedSimplex",
    "Compiled",
    "ConvexSet",
    "FlowPolytope",
    "L2Ball",
    "LinearDescription",
    "Polyhedral",
    "Projectable",
    "Relaxable",
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
