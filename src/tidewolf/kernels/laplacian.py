"""What a projection on circulations needs in loops: divergences, gradients, and how large a sparse
factor would be.
"""

from __future__ import annotations

from tidewolf.core.jit import kernel, light_kernel
from tidewolf.kernels.dag import add_along


def _arc_divergence(d, arcs, tails, heads, divergence):  # type: ignore[no-untyped-def]
    add_along(tails, heads, d[arcs], divergence)


@light_kernel(_arc_divergence)
def arc_divergence(d, arcs, tails, heads, divergence):  # type: ignore[no-untyped-def]
    """Add to `divergence` what d sends out of every node less what it brings in.

    Naive twin: the incidence matrix, by which tests/test_flow_polytope.py projects.
    """
    for p in range(len(arcs)):
        divergence[tails[p]] += d[arcs[p]]
        divergence[heads[p]] -= d[arcs[p]]


def _subtract_gradient(  # type: ignore[no-untyped-def]
    d, arcs, tails, heads, potentials, projected
):
    projected[arcs] = d[arcs] - (potentials[tails] - potentials[heads])


@light_kernel(_subtract_gradient)
def subtract_gradient(  # type: ignore[no-untyped-def]
    d, arcs, tails, heads, potentials, projected
):
    """Fill `projected` with d less the differences of potentials along arcs.

    Naive twin: the incidence matrix, by which tests/test_flow_polytope.py projects.
    """
    for p in range(len(arcs)):
        projected[arcs[p]] = d[arcs[p]] - (potentials[tails[p]] - potentials[heads[p]])


@kernel
def factor_entries(indptr, indices, limit, parent, mark):  # type: ignore[no-untyped-def]
    """Entries of the Cholesky factor of a symmetric matrix, counted row by row along its
    elimination tree; stops past `limit`.

    Naive twin: `cholesky_entries` in tests/test_flow_polytope.py.
    """
    n, count = len(indptr) - 1, 0
    for i in range(n):
        parent[i], mark[i] = -1, i
        count += 1
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if j < i:
                while mark[j] != i:
                    if parent[j] == -1:
                        parent[j] = i
                    mark[j] = i
                    count += 1
                    j = parent[j]
        if count > limit:
            return count
    return count
