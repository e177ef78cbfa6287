"""Sets of matrices: products and times of leading vectors, warm and cold, beside SciPy's solvers
and exact projection.

The drift: a random symmetric matrix (semicircle of radius 2), alone or with a spike of 3, that
turns by 0.02 a step towards another; for the nuclear ball 6 % of the entries of a random matrix of
rank 5, with noise or noise alone, that turns likewise. "Reached": products until <D, V> is within
1e-3 of the minimum, known from a dense eigensolver. "Settled": products until the residual says so
(failure = 1: what ARPACK goes by too). "Stated": until the oracle can say so but for a chance of
1e-6. "Proved": products and a Cholesky factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.bars import Bar, show
from benchmarks.timing import median_us
from tidewolf.core.randomness import generator
from tidewolf.core.vertices import LowRank
from tidewolf.kernels.lanczos import Krylov, converged, probable, proved, start
from tidewolf.sets import BoundedPSD, Fantope, NuclearBall
from tidewolf.sets.spectra.spectral import Spectral

N, STEPS, TURN, GAP, FAILURE = 1000, 8, 0.02, 1e-3, 1e-6
RATINGS, SEEN, RANK = (1000, 1700), 0.06, 5
K_VECTORS = 5
UPDATE_ALLOWED = 0.5
"""Of the naive rank-one update's time."""
SIDES, ASKED, TURNS = (500, 1000, 2000), 1e-2, 9
EIGSH_ALLOWED, FINEST = 2.0, 0.005
"""Of eigsh's time; and the least share of the error asked for that answers have: a product more
divides it by nine on the spiked matrix.
"""
PRODUCTS_ALLOWED, PROJECTION_AT_LEAST, SVDS_AT_LEAST = 6, 50.0, 2.0
"""Products of a warm start; what projection, and SciPy's svds, cost at the least in times of a warm
settled answer.
"""
MODES: dict[str, dict[str, Any]] = {
    "settled": {"failure": 1.0},
    "stated": {},
    "proved": {"certified": True},
}


def drift(spike: float) -> Iterator[Any]:
    """Matrices whose largest eigenvector is asked for."""
    rng = np.random.default_rng(0)
    here, there = ((G + G.T) / math.sqrt(2 * N) for G in rng.standard_normal((2, N, N)))
    u, w = (v / np.linalg.norm(v) for v in rng.standard_normal((2, N)))
    for t in range(STEPS):
        c, s = math.cos(TURN * t), math.sin(TURN * t)
        A = c * here + s * there + spike * np.outer(c * u + s * w, c * u + s * w)
        yield A / np.abs(A).max()


def ratings(signal: float) -> Iterator[Any]:
    """Sparse matrices whose largest singular vectors are asked for."""
    from scipy.sparse import csr_array

    rng, (m, n) = np.random.default_rng(0), RATINGS
    rows, columns = np.divmod(rng.choice(m * n, int(SEEN * m * n), replace=False), n)
    U, V = (rng.standard_normal((2, side, RANK)) / RANK**0.25 for side in RATINGS)
    noise = rng.standard_normal((2, len(rows)))
    for t in range(STEPS):
        c, s = math.cos(TURN * t), math.sin(TURN * t)
        low_rank = ((c * U[0] + s * U[1])[rows] * (c * V[0] + s * V[1])[columns]).sum(axis=1)
        yield csr_array(
            (signal * low_rank + c * noise[0] + s * noise[1], (rows, columns)), shape=RATINGS
        )


def reached(A: Any, b: Any, best: float) -> int:
    """Products until the Rayleigh quotient is within GAP of the best."""
    space = Krylov(A, b)
    while True:
        space.grow()
        T = np.diag(space.alpha) + np.diag(space.beta[:-1], 1) + np.diag(space.beta[:-1], -1)
        if np.linalg.eigvalsh(T)[-1] >= (1 - GAP) * best:
            return space.k


def products() -> None:
    """Warm, each from its own last answer, beside cold."""
    print(
        f"Leading eigenvector, n = {N:,}, relative gap {GAP:g}: products on a drift of {STEPS} "
        f"steps of {TURN}, mean"
    )
    print(
        f"  {'matrix':10} "
        + " ".join(f"{what + ': cold':>14} {'warm':>6}" for what in ("reached", *MODES))
    )
    for name, spike in (("semicircle", 0.0), ("spiked", 3.0)):
        counts: dict[str, list[int]] = {
            f"{what} {how}": [] for what in ("reached", *MODES) for how in ("cold", "warm")
        }
        last: dict[str, Any] = {}
        for t, A in enumerate(drift(spike)):
            noise, best = (
                generator(0, "spectra", t).standard_normal(N),
                float(np.linalg.eigvalsh(A)[-1]),
            )
            for how in ("cold", "warm") if last else ("cold",):
                for what, method in zip(MODES, (converged, probable, proved), strict=True):
                    begin = start(noise, last[what] if how == "warm" else None, FAILURE)
                    found = method(A, begin, GAP)
                    assert found is not None
                    counts[f"{what} {how}"].append(found.products)
                    if what == "settled":
                        counts[f"reached {how}"].append(reached(A, begin.b, best))
                    if how == "warm" or t == 0:
                        last[what] = found.vector
        means = [float(np.mean(count)) for count in counts.values()]
        most = max(counts["settled warm"])
        print(
            f"  {name:10} "
            + " ".join(
                f"{cold:14.1f} {warm:6.1f}"
                for cold, warm in zip(means[::2], means[1::2], strict=True)
            ),
            end="",
        )
        print(
            "   settled warm at most "
            f"{most}{'' if most <= PRODUCTS_ALLOWED else f': ABOVE {PRODUCTS_ALLOWED}'}"
        )


def along(K: Spectral, directions: list[Any], best: list[float]) -> tuple[float, float]:
    """Of warm answers along a drift: the largest relative gap, and the median milliseconds of the
    last.
    """
    warm, gap = K.answer(directions[0]).warm, 0.0
    for D, least in zip(directions[1:], best[1:], strict=True):
        before, answer = warm, K.answer(D, warm)
        gap, warm = max(gap, (answer.vertex.inner(D) - least) / -least), answer.warm
    return gap, median_us(lambda: K.answer(directions[-1], before), repeats=9) / 1e3


def row(name: str, times: dict[str, float], gap: float, unit: str = "settled, warm") -> None:
    """Milliseconds, in brackets times the first, and whether the warm settled answers were within
    GAP.
    """
    shown = ", ".join(f"{what} {ms:.2f} ({ms / times[unit]:.1f})" for what, ms in times.items())
    print(
        f"  {name:17} {shown}; settled reached {gap:.1e}{'' if gap <= GAP else f': ABOVE {GAP:g}'}"
    )


def fell_short(name: str, ratio: float, least: float) -> None:
    verdict = "" if ratio >= least else f"   BELOW {least:g}"
    print(f"  {name:17} {ratio:.1f} times a warm settled answer{verdict}")


def eigenvectors() -> None:
    """BoundedPSD and Fantope beside eigsh, dense solvers and projection."""
    from scipy.sparse.linalg import eigsh

    for k in (1, K_VECTORS):
        print(
            f"{'BoundedPSD' if k == 1 else f'Fantope of rank {k}'}, n = {N:,}, milliseconds (times "
            "the first)"
        )
        for name, spike in (("semicircle", 0.0), ("spiked", 3.0)):
            D = [-A for A in drift(spike)]
            best = [float(np.linalg.eigvalsh(d)[:k].sum()) for d in D]
            sets = {
                mode: (
                    BoundedPSD(N, tolerance=GAP, **how)
                    if k == 1
                    else Fantope(N, k, tolerance=GAP, **how)
                )
                for mode, how in MODES.items()
            }
            gap, times = 0.0, {}
            for mode, K in sets.items():
                reach, times[f"{mode}, warm"] = along(K, D, best)
                gap = reach if mode == "settled" else gap
                times[f"{mode}, cold"] = (
                    median_us(lambda K=K, D=D: K.answer(D[-1]), repeats=3) / 1e3
                )
            for title, tol in (("eigsh", 0.0), (f"eigsh to {GAP:g}", GAP)):
                times[title] = (
                    median_us(
                        lambda D=D, k=k, tol=tol: eigsh(D[-1], k, which="SA", tol=tol),
                        repeats=3,
                    )
                    / 1e3
                )
            times["dense"] = median_us(lambda K=K, D=D: K.exactly().answer(D[-1]), repeats=3) / 1e3
            times["projection"] = median_us(lambda K=K, D=D: K.project(D[-1]), repeats=3) / 1e3
            times["one product"] = median_us(lambda D=D: D[-1] @ D[0][0], repeats=50) / 1e3
            row(name, times, gap)
            if k == 1:
                fell_short(
                    "projection is",
                    times["projection"] / times["settled, warm"],
                    PROJECTION_AT_LEAST,
                )


def singular_vectors() -> None:
    """NuclearBall beside svds and projection, on sparse directions."""
    from scipy.sparse.linalg import svds

    print(
        f"NuclearBall, {RATINGS[0]:,} x {RATINGS[1]:,}, {SEEN:.0%} observed, milliseconds (times "
        "the first)"
    )
    for name, signal in (("rank 5 and noise", 1.0), ("noise", 0.0)):
        D = list(ratings(signal))
        best = [-float(svds(d, 1, return_singular_vectors=False)[0]) for d in D]
        gap, times = 0.0, {}
        for mode, how in MODES.items():
            K = NuclearBall(RATINGS, tolerance=GAP, **how)
            reach, times[f"{mode}, warm"] = along(K, D, best)
            gap = reach if mode == "settled" else gap
            times[f"{mode}, cold"] = median_us(lambda K=K, D=D: K.answer(D[-1]), repeats=3) / 1e3
        last = svds(D[-2], 1)[0][:, 0]
        for title, how in (
            ("svds", {}),
            (f"svds to {GAP:g}", {"tol": GAP}),
            (f"svds to {GAP:g}, warm", {"tol": GAP, "v0": last}),
        ):
            times[title] = median_us(lambda D=D, how=how: svds(D[-1], 1, **how), repeats=5) / 1e3
        whole = D[-1].toarray()
        times["projection"] = median_us(lambda K=K, whole=whole: K.project(whole), repeats=1) / 1e3
        times["both products"] = (
            median_us(lambda D=D: (D[-1] @ np.ones(RATINGS[1])) @ D[-1], repeats=50) / 1e3
        )
        row(name, times, gap)
        fell_short("svds is", times["svds"] / times["settled, warm"], SVDS_AT_LEAST)
        fell_short(
            "warm svds is", times[f"svds to {GAP:g}, warm"] / times["settled, warm"], SVDS_AT_LEAST
        )


def updates() -> None:
    """(1 - s) X + s v v'."""
    v = np.random.default_rng(1).standard_normal(N)
    X, vertex = np.outer(v, v), LowRank(v[None, :].copy())
    blas = median_us(lambda: vertex.blend(X, 0.3), repeats=50)
    naive = median_us(lambda: (1 - 0.3) * X + 0.3 * np.outer(v, v), repeats=50)
    verdict = "" if blas <= UPDATE_ALLOWED * naive else f"   ABOVE {UPDATE_ALLOWED:g}"
    print(
        f"Rank-one update, n = {N:,}: naive {naive / 1e3:.2f} ms, BLAS {blas / 1e3:.2f} ms, ratio "
        f"{blas / naive:.2f}{verdict}"
    )


def bars() -> Iterator[Bar]:
    """BoundedPSD without a promise beside eigsh at the same tolerance, cold, in turns; and how much
    nearer than asked its answers are.
    """
    from scipy.sparse.linalg import eigsh

    for n in SIDES:
        rng = np.random.default_rng(n)
        G = rng.standard_normal((n, n))
        u = rng.standard_normal(n)
        noise, spike = (G + G.T) / math.sqrt(2 * n), 3.0 * np.outer(u, u) / (u @ u)
        for name, A in (("semicircle", noise), ("spiked", noise + spike)):
            D, values, v0 = -A, np.linalg.eigvalsh(A), rng.standard_normal(n)
            K, times = BoundedPSD(n, tolerance=ASKED, failure=1.0), [[], []]
            works = (
                lambda K=K, D=D: K.answer(D),
                lambda D=D, v0=v0: eigsh(D, 1, which="SA", tol=ASKED, v0=v0),
            )
            for _ in range(TURNS):
                for work, spent in zip(works, times, strict=True):
                    spent.append(median_us(work, repeats=1))
            ours, eigshs = (min(spent) for spent in times)
            off = (values[-1] + K.answer(D).vertex.inner(D)) / float(np.abs(values).max())
            case = f"BoundedPSD, n = {n:,}, {name}, {ASKED:g} asked"
            note = f"{ours / 1e3:.2f} and {eigshs / 1e3:.2f} ms"
            yield Bar(f"{case}: over eigsh", ours / eigshs, EIGSH_ALLOWED, "x", note=note)
            yield Bar(f"{case}: reached", off, ASKED, "")
            yield Bar(f"{case}: and no nearer than", off, FINEST * ASKED, "", least=True)


def report() -> None:
    """All five."""
    products()
    eigenvectors()
    singular_vectors()
    updates()
    show(bars())
