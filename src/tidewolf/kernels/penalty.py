"""Loops of the penalty step for capacities (methods/steps/penalty): arrays in, arrays out.

b rounds, m entries; u are multipliers of the pieces x_i - c_ti. Naive twins stand in
tests/test_capacities.py.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.jit import kernel, light_kernel


@kernel
def weighted_gram(indptr, indices, data, weights, gram):  # type: ignore[no-untyped-def]
    """gram += A diag(weights) A' for A sparse by columns. Twin: the product of dense matrices."""
    for i in range(len(weights)):
        for p in range(indptr[i], indptr[i + 1]):
            for q in range(indptr[i], indptr[i + 1]):
                gram[indices[p], indices[q]] += weights[i] * data[p] * data[q]


@kernel
def complementarity_targets(u, s, ds, du, target, corrector, g):  # type: ignore[no-untyped-def]
    """g = (target - ds du)/s - u, the product only for the corrector; returns its sums over rounds
    and over entries. Twin: `test_the_kernels_of_interior_point_are_their_formulas`.
    """
    b, m = u.shape
    columns, lines = np.zeros(m), np.zeros(b)
    for t in range(b):
        for i in range(m):
            product = ds[t, i] * du[t, i] if corrector else 0.0
            g[t, i] = (target - product) / s[t, i] - u[t, i]
            columns[i] += g[t, i]
            lines[t] += g[t, i]
    return columns, lines


@kernel
def step_lengths(g, D, dtau, dx, s, u, ds, du):  # type: ignore[no-untyped-def]
    """ds = dtau - dx and du = g - D ds, and the largest steps that keep s and u from falling below
    0. Twin: `test_the_kernels_of_interior_point_are_their_formulas`.
    """
    b, m = g.shape
    primal, dual = np.inf, np.inf
    for t in range(b):
        for i in range(m):
            away = dtau[t] - dx[i]
            push = g[t, i] - D[t, i] * away
            ds[t, i], du[t, i] = away, push
            if away < 0.0 and -s[t, i] > primal * away:
                primal = -s[t, i] / away
            if push < 0.0 and -u[t, i] > dual * push:
                dual = -u[t, i] / push
    return primal, dual


@light_kernel
def share_multipliers(C, cap, w, rho, u):  # type: ignore[no-untyped-def]
    """Give w_i to the rounds with c_ti = cap_i, each no more than rho while another has room;
    entries with one such round go first. Law:
    `test_shares_add_up_and_go_to_the_rounds_that_attain_the_minimum`.
    """
    b, m = C.shape
    room = np.full(b, rho)
    for turn in range(2):
        for i in range(m):
            ties, last = 0, 0
            for t in range(b):
                if C[t, i] == cap[i]:
                    ties, last = ties + 1, t
            if (ties == 1) == (turn == 0):
                left = w[i]
                for t in range(last + 1):
                    if C[t, i] == cap[i] and left > 0.0:
                        part = left if t == last else max(0.0, min(left, room[t]))
                        u[t, i] = part
                        room[t] -= part
                        left -= part


@kernel
def ascend_multipliers(C, rho, Q, N, u, x, sweeps):  # type: ignore[no-untyped-def]
    """Sweeps of dual ascent in place, x = (z - P w)_S beside u; P_SS is Q, or I - N N' where Q is
    empty. Twin: `test_ascent_is_its_naive_twin`.
    """
    b, m = C.shape
    over, who = np.empty(m), np.empty(m, dtype=np.int64)
    pushed = np.empty(N.shape[1])
    for _ in range(sweeps):
        for t in range(b):
            count = 0
            for i in range(m):
                a = x[i] + u[t, i] - C[t, i]
                if a > 0.0 or u[t, i] > 0.0:
                    over[count], who[count] = a, i
                    count += 1
            tau = 0.0
            while True:
                total, positive = 0.0, 0
                for k in range(count):
                    if over[k] > tau:
                        total += over[k] - tau
                        positive += 1
                if total <= rho:
                    break
                higher = tau + (total - rho) / positive
                if higher <= tau:
                    break
                tau = higher
            pushed[:] = 0.0
            for k in range(count):
                i = who[k]
                new = max(0.0, over[k] - tau)
                du = new - u[t, i]
                if du != 0.0:
                    u[t, i] = new
                    if len(Q):
                        for j in range(m):
                            x[j] -= Q[i, j] * du
                    else:
                        x[i] -= du
                        for j in range(N.shape[1]):
                            pushed[j] += N[i, j] * du
            for j in range(N.shape[1]):
                for i in range(m):
                    x[i] += N[i, j] * pushed[j]
