"""Positive semidefinite matrices at n = 1,000: products of the leading eigenvector, warm and cold, beside eigensolver and projection.

The drift: a random symmetric matrix (semicircle of radius 2), alone or with a spike of 3, that turns by 0.02 a step towards another.
"Reached": products until <D, V> is within 1e-3 of the minimum, known from a dense eigensolver. "Stated": products until the oracle can
say so itself, but for a chance of 1e-6. "Proved": products and a Cholesky factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.timing import median_us
from tidewolf.core.low_rank import LowRank
from tidewolf.core.randomness import generator
from tidewolf.sets import BoundedPSD
from tidewolf.sets.lanczos import Krylov, probable, proved, start

N, STEPS, TURN, GAP, FAILURE = 1000, 8, 0.02, 1e-3, 1e-6
UPDATE_ALLOWED = 0.5
"""Of the naive rank-one update's time."""


def drift(spike: float) -> Iterator[Any]:
    """Matrices whose largest eigenvector is asked for."""
    rng = np.random.default_rng(0)
    here, there = ((G + G.T) / math.sqrt(2 * N) for G in rng.standard_normal((2, N, N)))
    u, w = (v / np.linalg.norm(v) for v in rng.standard_normal((2, N)))
    for t in range(STEPS):
        c, s = math.cos(TURN * t), math.sin(TURN * t)
        A = c * here + s * there + spike * np.outer(c * u + s * w, c * u + s * w)
        yield A / np.abs(A).max()


def reached(A: Any, b: Any, best: float) -> int:
    """Products until the Rayleigh quotient is within GAP of the best."""
    space = Krylov(A, b)
    while True:
        space.grow()
        T = np.diag(space.alpha) + np.diag(space.beta[:-1], 1) + np.diag(space.beta[:-1], -1)
        if np.linalg.eigvalsh(T)[-1] >= (1 - GAP) * best:
            return space.k


def products() -> None:
    """Warm beside cold."""
    print(f"Leading eigenvector, n = {N:,}, relative gap {GAP:g}: products on a drift of {STEPS} steps of {TURN}, mean")
    print(f"  {'matrix':10} {'reached: cold':>14} {'warm':>6} {'stated: cold':>14} {'warm':>6} {'proved: cold':>14} {'warm':>6}")
    for name, spike in (("semicircle", 0.0), ("spiked", 3.0)):
        counts: dict[str, list[int]] = {f"{what} {how}": [] for what in ("reached", "stated", "proved") for how in ("cold", "warm")}
        last = None
        for t, A in enumerate(drift(spike)):
            noise = generator(0, "spectra", t).standard_normal(N)
            values, vectors = np.linalg.eigh(A)
            for how, v in (("cold", None), ("warm", last)):
                if how == "cold" or last is not None:
                    begin = start(noise, v, FAILURE)
                    counts[f"reached {how}"].append(reached(A, begin.b, float(values[-1])))
                    for what, method in (("stated", probable), ("proved", proved)):
                        found = method(A, begin, GAP)
                        assert found is not None
                        counts[f"{what} {how}"].append(found.products)
            last = vectors[:, -1]
        means = [float(np.mean(count)) for count in counts.values()]
        print(f"  {name:10} {means[0]:14.1f} {means[1]:6.1f} {means[2]:14.1f} {means[3]:6.1f} {means[4]:14.1f} {means[5]:6.1f}")


def times() -> None:
    """Warm answers beside what one would otherwise call."""
    print(f"Times at n = {N:,}, milliseconds")
    for name, spike in (("semicircle", 0.0), ("spiked", 3.0)):
        D = [-A for A in drift(spike)][:2]
        row = {"one product": median_us(lambda D=D: D[1] @ D[0][0], repeats=50)}  # type: ignore[misc]
        for mode, K in (("likely", BoundedPSD(N, tolerance=GAP)), ("certified", BoundedPSD(N, tolerance=GAP, certified=True))):
            warm = K.answer(D[0]).warm
            row[f"{mode}, warm"] = median_us(lambda K=K, D=D, warm=warm: K.answer(D[1], warm), repeats=9)  # type: ignore[misc]
            row[f"{mode}, cold"] = median_us(lambda K=K, D=D: K.answer(D[1]), repeats=5)  # type: ignore[misc]
        row["dense, one vector"] = median_us(lambda D=D: BoundedPSD(N, dense=N).answer(D[1]), repeats=3)  # type: ignore[misc]
        row["full eigh"] = median_us(lambda D=D: np.linalg.eigh(D[1]), repeats=3)  # type: ignore[misc]
        row["projection"] = median_us(lambda D=D: BoundedPSD(N).project(D[1]), repeats=3)  # type: ignore[misc]
        print(f"  {name:10} " + ", ".join(f"{what} {us / 1e3:.2f}" for what, us in row.items()))


def updates() -> None:
    """(1 - s) X + s v v'."""
    v = np.random.default_rng(1).standard_normal(N)
    X, vertex = np.outer(v, v), LowRank(v[None, :].copy())
    blas = median_us(lambda: vertex.blend(X, 0.3), repeats=50)
    naive = median_us(lambda: (1 - 0.3) * X + 0.3 * np.outer(v, v), repeats=50)
    verdict = "" if blas <= UPDATE_ALLOWED * naive else f"   ABOVE {UPDATE_ALLOWED:g}"
    print(f"Rank-one update, n = {N:,}: naive {naive / 1e3:.2f} ms, BLAS {blas / 1e3:.2f} ms, ratio {blas / naive:.2f}{verdict}")


def report() -> None:
    """All three."""
    products()
    times()
    updates()
