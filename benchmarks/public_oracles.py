"""The linear minimisation oracles of FrankWolfe.jl, and the set here that each is, or none.

The list is that of FrankWolfe.jl 0.6 (src/norm_oracles.jl, simplex_oracles.jl, polytope_oracles.jl,
spectral_oracles.jl, moi_oracle.jl, wrappers) and of its companion CombinatorialLinearOracles.jl,
names as 0.6 has them. tests/docs/test_public_numbers.py builds our side of each row and compares
its oracle with the definition there.
"""

from __future__ import annotations

from typing import NamedTuple

import tidewolf as tw
from benchmarks.public_tables import Table

NONE = "none"


class Oracle(NamedTuple):
    """A row: their oracle, its set, and the sets here with which one writes it."""

    theirs: str
    what: str
    ours: tuple[str, ...]
    """sets of tidewolf.sets; none where there is none"""
    words: str
    """how it is written here, or what differs"""


THEIRS = (
    Oracle(
        "LpNormBallLMO",
        "p-norm at most tau",
        ("LpBall", "L1Ball", "L2Ball", "Box"),
        "`LpBall(n, p, tau)`; p = 1, 2, inf have sets of their own",
    ),
    Oracle(
        "KNormBallLMO",
        "hull of an l1-ball and an l-inf-ball: the K largest sizes sum to at most tau",
        ("KNormBall",),
        "`KNormBall(n, k, tau)`",
    ),
    Oracle(
        "OrderWeightNormBallLMO",
        "ordered weighted l1 norm at most R",
        ("OrderedWeightedBall",),
        "`OrderedWeightedBall(weights, tau)`",
    ),
    Oracle(
        "EllipsoidLMO", "(x - c)'A(x - c) at most r", ("Ellipsoid",), "`Ellipsoid(A / r, center=c)`"
    ),
    Oracle(
        "UnitSimplexLMO", "x >= 0, sum at most tau", ("Simplex",), "`Simplex(n, tau, at_most=True)`"
    ),
    Oracle("ProbabilitySimplexLMO", "x >= 0, sum tau", ("Simplex",), "`Simplex(n, tau)`"),
    Oracle(
        "UnitHyperSimplexLMO",
        "0 <= x <= tau, sum at most K tau",
        ("Knapsack",),
        "`Knapsack(ones, K tau, upper=tau)`",
    ),
    Oracle(
        "HyperSimplexLMO",
        "0 <= x <= tau, sum K tau",
        ("CappedSimplex",),
        "`CappedSimplex(n, tau, total=K tau)`",
    ),
    Oracle(
        "KSparseLMO",
        "l1-norm at most K tau, l-inf-norm at most tau",
        ("KSparse",),
        "`KSparse(n, k, tau)`",
    ),
    Oracle("BoxLMO", "every entry between its bounds", ("Box",), "`Box(lower, upper)`"),
    Oracle("ZeroOneHypercubeLMO", "every entry between 0 and 1", ("Box",), "`Box(zeros, ones)`"),
    Oracle(
        "DiamondLMO",
        "an l1-ball stretched along the axes and moved",
        ("GroupBall", "Translated"),
        "`Translated(GroupBall(range(n), 1, weights), middle)`, weights 2 / (upper - lower)",
    ),
    Oracle("BirkhoffPolytopeLMO", "doubly stochastic matrices", ("Birkhoff",), "`Birkhoff(n)`"),
    Oracle("ConvexHullLMO", "hull of a list of points", ("VertexHull",), "`VertexHull(points)`"),
    Oracle(
        "NuclearNormBallLMO",
        "nuclear norm at most tau",
        ("NuclearBall",),
        "`NuclearBall(shape, tau)`",
    ),
    Oracle("SpectraplexLMO", "psd, trace tau", ("Spectraplex",), "`Spectraplex(n, tau)`"),
    Oracle(
        "UnitSpectrahedronLMO", "psd, trace at most tau", ("BoundedPSD",), "`BoundedPSD(n, tau)`"
    ),
    Oracle("FantopeLMO", "0 <= X <= I, trace k", ("Fantope",), "`Fantope(n, k)`"),
    Oracle(
        "MathOptLMO",
        "whatever a solver of MathOptInterface can be told",
        ("Polytope",),
        "`Polytope(...)`: linear programs only; theirs takes integers and cones too",
    ),
    Oracle(
        "ProductLMO",
        "a product of sets",
        ("Product", "SimplexProduct"),
        "`Product(K1, K2)`; `SimplexProduct(sizes)` for many simplices",
    ),
    Oracle(
        "SubspaceLMO",
        "a set seen in the coordinates of a symmetric subspace",
        (),
        "none: write a set of your own",
    ),
    Oracle("TrackingLMO", "counts calls", (), "no set: every run counts its calls"),
    Oracle(
        "CachedLMO",
        "remember vertices",
        (),
        "no set: learners keep the vertices they know",
    ),
    Oracle(
        "MatchingLMO (companion)",
        "matchings of a graph",
        ("Matching",),
        "`Matching(edges)`: bipartite graphs only; theirs takes any graph",
    ),
    Oracle(
        "PerfectMatchingLMO (companion)",
        "perfect matchings of a graph",
        ("Matching",),
        "`Matching(edges, perfect=True)`: bipartite graphs only",
    ),
    Oracle(
        "SpanningTreeLMO (companion)",
        "spanning trees of a graph",
        ("SpanningTrees",),
        "`SpanningTrees(edges)`",
    ),
    Oracle(
        "ShortestPathLMO (companion)",
        "paths of a graph without cycles",
        ("FlowPolytope",),
        "`FlowPolytope.from_edges(edges, source=, target=)`",
    ),
    Oracle(
        "BirkhoffLMO (companion)",
        "doubly stochastic matrices, some entries bound to integers",
        ("Birkhoff",),
        "`Birkhoff(n)`, without bounds on entries",
    ),
)
OURS = {
    "Permutahedron": "hull of the orderings of a vector",
    "Transportation": "plans with given row and column sums",
    "MultiFlow": "flows of many commodities over one network",
    "CapacitatedFlow": "flows within bounds on arcs, cycles allowed",
    "Scaled": "any set, made larger or smaller",
    "Shrunk": "any set, drawn towards its center",
}
"""Sets here that their list has no oracle for; all but the last two are linear programs, which
MathOptLMO would solve."""


def tables() -> list[Table]:
    """Their list with our names, and what is only here."""
    theirs = [
        (f"`{row.theirs}`" if "(" not in row.theirs else row.theirs, row.what, row.words)
        for row in THEIRS
    ]
    ours = [(f"`{name}`", what) for name, what in OURS.items()]
    return [
        Table("oracles", ("FrankWolfe.jl", "set", "here"), theirs),
        Table("oracles-ours", ("only here", "set"), ours),
    ]


def unlisted() -> set[str]:
    """Sets of tidewolf that are in neither list."""
    listed = {name for row in THEIRS for name in row.ours} | set(OURS)
    return {kind.__name__ for kind in tw.sets.every()} - listed
