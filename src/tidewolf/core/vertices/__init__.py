"""Members of a set stored in their own size, and tables of them.

An oracle's answer is a `Vertex`: a path is its arcs, a one-hot its index, a leading eigenvector its
factor. The machinery asks three things of it: <v, d>, the dense point, and (1 - s) x + s v.

    Dense      a plain array
    Sparse     flat indices and values
    LowRank    ridge I + sum_j f_j f_j'
    Outer      sum_j l_j r_j'
    Compound   one vertex of each part of a product; or shift + scale v, for a vertex v
"""

from __future__ import annotations

from tidewolf.core.vertices.base import Atoms, Vertex, require_saved_numbers
from tidewolf.core.vertices.composed import Compound
from tidewolf.core.vertices.dense import Dense, DenseAtoms
from tidewolf.core.vertices.factored import LowRank, Outer
from tidewolf.core.vertices.placed import table_for
from tidewolf.core.vertices.sparse import (
    Sparse,
    SparseAtoms,
    sparse_combine,
    sparse_inner,
    sparse_store,
)

__all__ = [
    "Atoms",
    "Compound",
    "Dense",
    "DenseAtoms",
    "LowRank",
    "Outer",
    "Sparse",
    "SparseAtoms",
    "Vertex",
    "require_saved_numbers",
    "sparse_combine",
    "sparse_inner",
    "sparse_store",
    "table_for",
]
