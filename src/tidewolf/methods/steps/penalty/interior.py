"""Interior point for capacities: predictor and corrector steps on

    minimise |x - z|^2/2 + rho sum_t tau_t   subject to   A (x - z) = 0,
    x_i + s_ti = c_ti + tau_t,   s >= 0,   tau >= 0,

with multipliers u of the rows, q of tau, phi of A:  x - z + sum_t u_t + A' phi = 0,  sum_i u_ti +
q_t = rho,  u s = mu,  tau q = mu. With D = u/s and H = I + sum_t D_t (diagonal), a step solves

    [ diag(D 1 + q/tau) - D H^-1 D'     D H^-1 A'  ] [ dtau ]
    [ A H^-1 D'                       - A H^-1 A'  ] [ dphi ]

a matrix as large as rounds and normals together, however many rows there are. Its first block is an
M-matrix whose diagonal is summed from terms of one sign, so that nothing cancels as D grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tidewolf.core.types import Floats, Int64s
from tidewolf.kernels.penalty import complementarity_targets, step_lengths
from tidewolf.methods.steps.penalty.hull import AffineHull

INTERIOR_STEPS = 80
SHY = 0.995
"""The share of the way to the border that a step takes."""


class Inside(NamedTuple):
    """Multipliers of all rows, x, and sum u s + sum tau q: what is left to gain once the equations
    hold.
    """

    u: Floats
    x: Floats
    left: float


def interior(
    C: Floats, S: Int64s, z: Floats, x: Floats, rho: float, hull: AffineHull
) -> Iterator[Inside]:
    """Ever better multipliers of x_i - c_ti, i in S (C holds the columns of S alone); starts near
    x, a point of the hull.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    A, A_S = hull.normals, hull.normals[:, S]
    b, m = C.shape
    x, phi = x.copy(), np.zeros(A.shape[0])
    tau = np.maximum(0.0, (x[S] - C).max(axis=1))
    tau += max(float(tau.max()), float(np.abs(x - z).max()), 1e-12 * float(np.abs(z).max()), 1e-150)
    s = C + tau[:, None] - x[S]
    share = rho / ((1.0 / s).sum(axis=1) + 1.0 / tau)
    u, q = share[:, None] / s, share / tau
    ds, du, g = np.empty((b, m)), np.empty((b, m)), np.empty((b, m))
    for _ in range(INTERIOR_STEPS):
        with np.errstate(all="ignore"):  # what overflows ends the search below
            left = float(np.vdot(u, s) + tau @ q)
            mu, D, H = left / (b * m + b), u / s, np.ones(len(z))
            H[S] += D.sum(axis=0)
            DH = D / H[S]
            M = -(DH @ D.T)
            np.fill_diagonal(M, 0.0)
            np.fill_diagonal(M, q / tau + DH.sum(axis=1) - M.sum(axis=1))
            try:
                if len(phi):
                    cross, L = (
                        np.asarray(A_S @ DH.T),
                        cho_factor(hull.gram(1.0 / H), check_finite=False),
                    )
                    across = cho_solve(L, cross, check_finite=False)
                    M += cross.T @ across
                M = cho_factor(M, check_finite=False)
            except (LinAlgError, ValueError):
                return
            a = z - x - A.T @ phi
            a[S] -= u.sum(axis=0)
            r_A, r_tau = A @ (x - z), rho - u.sum(axis=1) - q
            sigma, dtau, dq = 0.0, np.zeros(b), np.zeros(b)
            for corrector in (False, True):
                columns, lines = complementarity_targets(u, s, ds, du, sigma * mu, corrector, g)
                g_tau = (sigma * mu - dtau * dq) / tau - q
                force = a.copy()
                force[S] -= columns
                dx = force / H
                e = lines + g_tau - r_tau + D @ dx[S]
                if len(phi):
                    f = r_A + A @ dx
                    dtau = cho_solve(M, e - across.T @ f, check_finite=False)
                    dphi = cho_solve(L, f, check_finite=False) + across @ dtau
                    dx -= (A.T @ dphi) / H
                else:
                    dtau, dphi = cho_solve(M, e, check_finite=False), phi
                dx[S] += DH.T @ dtau
                dq = g_tau - (q / tau) * dtau
                primal, dual = step_lengths(g, D, dtau, dx[S], s, u, ds, du)
                primal, dual = min(primal, longest_step(tau, dtau)), min(dual, longest_step(q, dq))
                if not corrector:
                    p, d = min(1.0, primal), min(1.0, dual)
                    after = (
                        left
                        + p * float(np.vdot(ds, u) + dtau @ q)
                        + d * float(np.vdot(du, s) + dq @ tau)
                    )
                    sigma = (
                        max(0.0, (after + p * d * float(np.vdot(ds, du) + dtau @ dq)) / left) ** 3
                    )
            p, d = min(1.0, SHY * primal), min(1.0, SHY * dual)
            x, tau, s = x + p * dx, tau + p * dtau, s + p * ds
            u, q, phi = u + d * du, q + d * dq, phi + d * dphi
        if not max(p, d) > 1e-9:
            return
        yield Inside(u, x, float(np.vdot(u, s) + tau @ q))


def longest_step(a: Floats, da: Floats) -> float:
    """The largest step with a + step da >= 0."""
    falling = da < 0.0
    return float(np.min(-a[falling] / da[falling], initial=np.inf))
