"""Oracles of balls, simplices, knapsacks and products beside reading the direction once, a linear
program, and exact projection.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.programs import by_linprog
from benchmarks.timing import median_us
from tidewolf.sets import (
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    GroupBall,
    Knapsack,
    KNormBall,
    KSparse,
    L1Ball,
    L2Ball,
    LpBall,
    OrderedWeightedBall,
    Polyhedral,
    Product,
    Projectable,
    Simplex,
)


def store(n: int) -> Iterator[tuple[str, ConvexSet]]:
    """Sets of n entries."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 1.5, n)
    yield "L1Ball", L1Ball(n)
    yield "L2Ball", L2Ball(n)
    yield "LpBall, p = 3", LpBall(n, 3.0)
    yield "Box", Box(np.zeros(n), np.ones(n))
    yield "Ellipsoid, diagonal", Ellipsoid(weights)
    yield "GroupBall, tens", GroupBall(np.arange(n) // 10)
    yield "KSparse, n/10", KSparse(n, n // 10)
    yield "KNormBall, n/10", KNormBall(n, n // 10)
    yield "OrderedWeightedBall", OrderedWeightedBall(np.linspace(2.0, 1.0, n))
    yield "Simplex", Simplex(n)
    yield "CappedSimplex, 10/n", CappedSimplex(n, 10 / n)
    yield "Knapsack, n/20", Knapsack(weights, n / 20)
    yield "Knapsack, exactly", Knapsack(weights, n / 20, at_most=False)
    yield "Product of 10 simplices", Product(*(Simplex(n // 10) for _ in range(10)))


def report() -> None:
    """Ratios to reading the direction, and of linear programs and projections to oracles."""
    for n in (100, 100_000):
        d = np.random.default_rng(1).standard_normal(n)
        read, repeats = median_us(lambda d=d: d.sum()), 200 if n < 1_000 else 15
        print(
            f"Oracles at n = {n:,} beside reading the direction once ({read:.1f} us): times as "
            "long as the oracle that others take"
        )
        print(f"  {'set':24} {'oracle us':>10} {'/ reading':>10} {'linprog':>9} {'projection':>11}")
        for name, K in store(n):
            oracle = median_us(lambda K=K, d=d: K.answer(d), repeats)
            # else it takes minutes
            program = (
                median_us(partial(by_linprog(K), d), 5)
                if isinstance(K, Polyhedral) and n < 1_000
                else None
            )
            project = (
                median_us(partial(K.project, 10 * d), repeats)
                if isinstance(K, Projectable)
                else None
            )
            shown = ["none" if us is None else f"{us / oracle:,.1f}x" for us in (program, project)]
            print(f"  {name:24} {oracle:10.1f} {oracle / read:10.1f} {shown[0]:>9} {shown[1]:>11}")
