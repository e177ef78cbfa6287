"""NYSE(O): 36 stocks over 5,651 days, 1962 to 1984, on which portfolios have been compared since
Cover (1991).

The file nyse_o.csv has the worth of a unit put into each stock before the first day, at the end of
every day. Wealth is what a unit becomes; beside it stands what is left where trades cost 0.1 % of
what is bought and sold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks import public_portfolios as portfolios
from benchmarks.public_tables import Table
from tidewolf.problems.data import record

Floats = np.ndarray[Any, np.dtype[np.float64]]
FILE, DAYS, STOCKS, COST = "nyse_o.csv", 5651, 36, 0.001
PUBLISHED = {
    "market (uniform, buy and hold)": "14.50",
    "best stock *": "54.14",
    "uniform constant rebalanced": "27.08",
    "best constant rebalanced *": "250.60",
    "EG, eta 0.05": "27.09",
}
"""As papers on this record give them."""
HEAD = ("strategy", "wealth", "published", "after 0.1 % costs", "traded a day")


def relatives() -> Floats:
    """Prices over those of the day before."""
    worth = np.loadtxt(record(FILE), delimiter=",", skiprows=1, ndmin=2)
    return np.vstack([worth[:1], worth[1:] / worth[:-1]])


def strategies(r: Floats) -> Iterator[tuple[str, Floats]]:
    """Shares of every strategy by name, day by day; those with a star know the future."""
    n = r.shape[1]
    even, K, stream = np.full(n, 1.0 / n), tw.sets.Simplex(n), tw.Stream(tw.functions.LogWealth(r))
    yield "market (uniform, buy and hold)", portfolios.hold(r, even)
    yield "best stock *", portfolios.constant(r, np.eye(n)[int(r.prod(axis=0).argmax())])
    yield "uniform constant rebalanced", portfolios.constant(r, even)
    yield (
        "best constant rebalanced *",
        portfolios.constant(r, np.asarray(tw.best_in_hindsight(K, stream).point)),
    )
    yield "EG, eta 0.05", portfolios.exponentiated_gradient(r)
    advice = {"newton": portfolios.online_newton(r), "pamr": portfolios.passive_aggressive(r)}
    yield "online Newton step", advice["newton"]
    yield "PAMR (mean reversion)", advice["pamr"]
    yield "tidewolf `Ensemble`", _played(tw.Ensemble(K), stream)
    for words, names in (("Newton", ("newton",)), ("Newton and PAMR", ("newton", "pamr"))):
        advised = tw.Stream(stream.losses, advice={name: advice[name] for name in names})
        named: Any = list(names)
        learner = tw.Ensemble(K, experts=named)
        yield f"tidewolf `Ensemble`, advised by {words}", _played(learner, advised)
    yield "tidewolf `LyapunovDescent`", _played(tw.LyapunovDescent(K), stream)
    yield "tidewolf `LyapunovFrankWolfe`", _played(tw.LyapunovFrankWolfe(K), stream)


def row(name: str, held: Floats, r: Floats) -> tuple[str, ...]:
    """A strategy's row of the table."""
    wealth, left = portfolios.grown(held, r), portfolios.grown(held, r, COST)
    traded = float(portfolios.turnover(held, r)[1:].mean())
    return (
        name,
        _shown(wealth),
        PUBLISHED.get(name, ""),
        _shown(left),
        f"{100 * traded:.1f} %",
    )


def tables() -> list[Table]:
    """All strategies on the record."""
    r = relatives()
    return [Table("nyse", HEAD, [row(name, held, r) for name, held in strategies(r)])]


def _played(learner: Any, stream: tw.Stream) -> Floats:
    decisions = tw.run(learner, stream, decisions=True).decisions
    assert decisions is not None
    return np.asarray(decisions.points)


def _shown(wealth: float) -> str:
    return f"{wealth:.2f}" if wealth < 1e6 else f"{wealth:.2e}"
