"""The best matrix in hindsight under equations, beside planted values and bars to keep."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import numpy as np

import tidewolf as tw
from tidewolf.core.batch import Stream
from tidewolf.functions import Linear, Range
from tidewolf.sets import BoundedPSD, ConvexSet, Spectraplex

ROUNDS = 20
WIDTH = {50: 1e-4, 100: 1e-3}
"""The bar, as a share of the value."""
SECONDS = 60.0


def max_cut(n: int, seed: int = 0) -> tuple[ConvexSet, Stream, None]:
    """The relaxation of max-cut on a random graph: every X_ii = 1, and tr X <= n says no more."""
    rng = np.random.default_rng(seed)
    edges = np.triu(rng.random((n, n)) < 0.5, 1)
    C = 0.25 * (edges + edges.T) / ROUNDS
    one = ((np.arange(n), np.arange(n)), 1.0, 1.0)
    losses, limits = Linear(np.tile(C, (ROUNDS, 1, 1))), Range.of([one] * ROUNDS, (n, n))
    return BoundedPSD(n, float(n)), Stream(losses, limits), None


def planted(n: int, fixed: int, *, given: bool, seed: int = 0) -> tuple[ConvexSet, Stream, float]:
    """The diagonal and `fixed` entries off it are those of an X that is best by construction."""
    rng = np.random.default_rng(seed)
    rank, Q = max(1, n // 5), np.linalg.qr(rng.normal(size=(n, n)))[0]
    X = Q[:, :rank] * rng.uniform(0.5, 2.0, rank) @ Q[:, :rank].T * n / rank
    Z = Q[:, rank:] * rng.uniform(0.5, 2.0, n - rank) @ Q[:, rank:].T
    above = np.stack(np.triu_indices(n, 1))[:, rng.permutation(n * (n - 1) // 2)[:fixed]]
    i, j = np.hstack([[np.arange(n), np.arange(n)], above])
    Y, tau = np.zeros((n, n)), float(np.trace(X))
    Y[i, j] = rng.normal(size=len(i))
    C = Z - (Y + Y.T) / 2 + given * 0.3 * np.eye(n)
    parts = np.array_split(rng.permutation(len(i)), ROUNDS)
    each = [((i[part], j[part]), X[i[part], j[part]]) for part in parts]
    limits = Range.of([(where, values, values) for where, values in each], (n, n))
    losses = Linear(rng.dirichlet(np.ones(ROUNDS))[:, None, None] * C)
    K = Spectraplex(n, tau) if given else BoundedPSD(n, 1.5 * tau)
    return K, Stream(losses, limits), float((C * X).sum())


def cases(n: int) -> Iterator[tuple[str, tuple[ConvexSet, Stream, float | None]]]:
    """The tasks of a size by name."""
    yield "max-cut, BoundedPSD", max_cut(n)
    yield f"{2 * n} entries, BoundedPSD", planted(n, n, given=False)
    yield f"{6 * n} entries, Spectraplex", planted(n, 5 * n, given=True)


def report() -> None:
    """Widths and seconds against the bars."""
    print("The best matrix in hindsight under equations: width as a share of value, CPU seconds")
    head = f"  {'task':28} {'n':>4} {'width':>9} {'bar':>7} {'seconds':>8} {'bar':>4}"
    print(f"{head} {'planted value in it':>20}  method")
    for n, bar in WIDTH.items():
        for name, (K, stream, value) in cases(n):
            start = process_time()
            best = tw.best_in_hindsight(K, stream)
            seconds, size = process_time() - start, max(abs(best.lower), abs(best.upper))
            held = value is not None and best.lower <= value <= best.upper + 1e-8 * size
            known = "none" if value is None else "yes" if held else "NO"
            width = f"{(best.upper - best.lower) / size:9.1e} {bar:7.0e}"
            line = f"  {name:28} {n:4} {width} {seconds:8.1f} {SECONDS:4.0f} {known:>20}"
            print(f"{line}  {best.method}", flush=True)
