"""NYSE(O): 36 stocks over 5,651 days, 1962 to 1984, on which portfolios have been compared since
Cover (1991).

The file nyse_o.csv has the worth of a unit put into each stock before the first day, at the end of
every day.

    r_t    prices at the end of day t over those at its beginning, one per stock
    b_t    the shares of wealth held in each stock on day t, decided before it
    wealth after T days  =  prod_t <b_t, r_t> (1 - cost * turnover_t)

turnover_t = sum_i |b_ti - h_ti|, where h_t is what the shares of day t - 1 have drifted to (0
before the first day): buying or selling a dollar's worth costs `cost` dollars.

    EG     b_{t+1,i}  ~  b_ti exp(eta r_ti / <b_t, r_t>)              Helmbold et al. 1998
    ONS    b_{t+1} = the member nearest, in the norm of A_t, to delta inv(A_t) s_t,
           A_t = I + sum g g',  s_t = (1 + 1/beta) sum g,  g = r_t / <b_t, r_t>  Agarwal et al. 2006
    PAMR   b_{t+1} = the member nearest to b_t - tau (r_t - mean r_t),
           tau = max(0, <b_t, r_t> - eps) / |r_t - mean r_t|^2              Li et al. 2012
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.pages import Table
from tidewolf.problems.data import record
from tidewolf.sets import Simplex

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
ETA, DELTA, BETA, EPSILON = 0.05, 1 / 8, 1.0, 0.5
"""The settings their authors report for this market."""


def relatives() -> Floats:
    """Prices over those of the day before."""
    worth = np.loadtxt(record(FILE), delimiter=",", skiprows=1, ndmin=2)
    return np.vstack([worth[:1], worth[1:] / worth[:-1]])


def strategies(r: Floats) -> Iterator[tuple[str, Floats]]:
    """Shares of every strategy by name, day by day; those with a star know the future."""
    n = r.shape[1]
    even, K, stream = np.full(n, 1.0 / n), tw.sets.Simplex(n), tw.Stream(tw.functions.LogWealth(r))
    yield "market (uniform, buy and hold)", hold(r, even)
    yield "best stock *", constant(r, np.eye(n)[int(r.prod(axis=0).argmax())])
    yield "uniform constant rebalanced", constant(r, even)
    yield (
        "best constant rebalanced *",
        constant(r, np.asarray(tw.best_in_hindsight(K, stream).point)),
    )
    yield "EG, eta 0.05", exponentiated_gradient(r)
    advice = {"newton": online_newton(r), "pamr": passive_aggressive(r)}
    yield "online Newton step", advice["newton"]
    yield "PAMR (mean reversion)", advice["pamr"]
    yield "tidewolf `Ensemble`", _points(tw.Ensemble(K), stream)
    for words, names in (("Newton", ("newton",)), ("Newton and PAMR", ("newton", "pamr"))):
        advised = tw.Stream(stream.losses, advice={name: advice[name] for name in names})
        named: Any = list(names)
        learner = tw.Ensemble(K, experts=named)
        yield f"tidewolf `Ensemble`, advised by {words}", _points(learner, advised)
    yield "tidewolf `LyapunovDescent`", _points(tw.LyapunovDescent(K), stream)
    yield "tidewolf `LyapunovFrankWolfe`", _points(tw.LyapunovFrankWolfe(K), stream)


def row(name: str, held: Floats, r: Floats) -> tuple[str, ...]:
    """A strategy's row of the table."""
    wealth, left = grown(held, r), grown(held, r, COST)
    traded = float(turnover(held, r)[1:].mean())
    published, share = PUBLISHED.get(name, ""), f"{100 * traded:.1f} %"
    return name, _shown(wealth), published, _shown(left), share


def table() -> Table:
    """All strategies on the record."""
    r = relatives()
    return Table(HEAD, [row(name, held, r) for name, held in strategies(r)])


def _points(learner: Any, stream: tw.Stream) -> Floats:
    decisions = tw.run(learner, stream, decisions=True).decisions
    assert decisions is not None
    return np.asarray(decisions.points)


def _shown(wealth: float) -> str:
    return f"{wealth:.2f}" if wealth < 1e6 else f"{wealth:.2e}"


def grown(held: Floats, relatives: Floats, cost: float = 0.0) -> float:
    """What a unit of wealth becomes under shares decided day by day."""
    growth = (held * relatives).sum(axis=1)
    return float(np.exp(np.log(growth * (1.0 - cost * turnover(held, relatives))).sum()))


def turnover(held: Floats, relatives: Floats) -> Floats:
    """How much of the wealth is traded before each day, buying and selling added up."""
    drifted = held * relatives
    drifted = drifted / drifted.sum(axis=1, keepdims=True)
    before = np.vstack([np.zeros_like(held[:1]), drifted[:-1]])
    return np.asarray(np.abs(held - before).sum(axis=1))


def hold(relatives: Floats, first: Floats) -> Floats:
    """Buy once and hold."""
    worth = np.vstack([first, first * np.cumprod(relatives, axis=0)[:-1]])
    return np.asarray(worth / worth.sum(axis=1, keepdims=True))


def constant(relatives: Floats, shares: Floats) -> Floats:
    """Rebalance to the same shares every day."""
    return np.tile(shares, (len(relatives), 1))


def exponentiated_gradient(relatives: Floats) -> Floats:
    """EG."""
    return _played(relatives, lambda b, r: _normalised(b * np.exp(ETA * r / (b @ r))))


def passive_aggressive(relatives: Floats) -> Floats:
    """PAMR."""

    def step(b: Floats, r: Floats) -> Floats:
        away = r - r.mean()
        size = float(away @ away)
        moved = b - max(0.0, float(b @ r) - EPSILON) / (size or 1.0) * away
        return np.asarray(Simplex(len(b)).project(moved))

    return _played(relatives, step)


def online_newton(relatives: Floats) -> Floats:
    """ONS."""
    import piqp

    n = relatives.shape[1]
    A, total = np.eye(n), np.zeros(n)

    def step(b: Floats, r: Floats) -> Floats:
        nonlocal A, total
        g = r / (b @ r)
        A, total = A + np.outer(g, g), total + (1 + 1 / BETA) * g
        # |x - p|^2 in the norm of A, p = delta inv(A) total, is x'Ax - 2 delta total'x + constant
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = 1e-9
        one = np.ones((1, n))
        solver.setup(
            2 * A, -2 * DELTA * total, one, np.ones(1), None, None, None, np.zeros(n), None
        )
        solver.solve()
        return _normalised(np.maximum(solver.result.x, 0.0))

    return _played(relatives, step)


def _played(relatives: Floats, step: Callable[[Floats, Floats], Floats]) -> Floats:
    days, n = relatives.shape
    held = np.empty((days, n))
    b = np.full(n, 1.0 / n)
    for day, r in enumerate(relatives):
        held[day] = b
        b = step(b, r)
    return held


def _normalised(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())
