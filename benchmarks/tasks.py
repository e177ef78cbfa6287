"""The tasks of all suites.

To add one, write a function `(rounds, seed) -> Problem` here and decorate it; a built-in problem
takes one line. Tasks whose record is absent are skipped, with the reason.

Losses of the suite size are linear and drift; one affine constraint per round is about as often
violated as not by the center, in units of its change over the set.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import tidewolf as tw
from benchmarks.at_size import traffic
from benchmarks.cases import layered_flow
from benchmarks.registry import task
from benchmarks.results import SIZES
from tidewolf.core.randomness import autoregressive_noise
from tidewolf.core.types import Floats
from tidewolf.methods.budget import worst_windows
from tidewolf.problems import Problem
from tidewolf.problems.adversarial import COMMON
from tidewolf.problems.base import record
from tidewolf.problems.records import COUNTED

COST, GROWTH = 0.001, "minus log of the growth"
"""What buying or selling a unit of wealth costs."""

for _name, _unit in (("routing", "1,000 km"), ("geant", "lengths"), ("uunet", "lengths")):
    task("network", rounds=1000, unit=f"congested {_unit}")(tw.problems.named(_name))
for _name, _unit in (("abilene", "congested OSPF cost / 1,000"), ("freeway", "minutes")):
    task("network", recorded=True, rounds=1000, unit=_unit)(tw.problems.named(_name))
_unit = "utilisation / least possible"
task("traffic", first=COUNTED.start, recorded=True, unit=_unit)(tw.problems.meta)
task("energy", recorded=True, rounds=2000, unit="strain, share of the peak")(tw.problems.carbon)
task("energy", rounds=250, unit="price of the energy")(tw.problems.scheduling)
task("matrix", rounds=250, unit="minus the power received")(tw.problems.sdp)
task("matrix", rounds=250, unit="squared error / 2")(tw.problems.completion)


def _worst_window(problem: Problem, points: Floats) -> dict[str, float]:
    """The largest net overspend within a day, of the budget of a day."""
    budget, spend = problem.budgets[0], problem.stream.budgets[problem.budgets[0].name]
    periods = budget.windows(len(points), None)
    return {"worst window": worst_windows(spend.values_at(points), periods)[0] / budget.total}


task("gateway", numbers=_worst_window, rounds=1440, unit="latency, s")(tw.problems.gateway)


def _hostile(kind: str) -> None:
    @task("paper", kind, rounds=250)
    def build(rounds: int | None = None, seed: int = 0) -> Problem:
        return tw.problems.adversarial(rounds=rounds, seed=seed, kind=kind)


for _name in COMMON:
    _hostile(_name)


@task("traffic", rounds=250, unit="delay, lengths")
def tunnels(rounds: int | None = None, seed: int = 0) -> Problem:
    """Splits over three tunnels for each of 56 pairs, by delay; no link fuller than its limit."""
    paths, stream = traffic(8, rounds or 960, 1.1, seed)
    return Problem("tunnels", paths.splits, stream, "Splits of 56 pairs.", period=24)


@task("traffic", rounds=250, unit="congested 1,000 km")
def failures(rounds: int | None = None, seed: int = 0) -> Problem:
    """`routing` with a link out of service in half of the rounds, announced before each round."""
    whole = tw.problems.routing(rounds=rounds or 1000, seed=seed)
    n, rng = whole.K.shape[0], np.random.default_rng(seed)
    spared = [i for i, d in enumerate(np.eye(n)) if d @ whole.K.lmo(d) == 0.0]  # a path avoids it
    out = [None if t % 100 < 50 else [int(rng.choice(spared))] for t in range(0, len(whole), 50)]
    each = [out[t // 50] for t in range(len(whole))]
    stream = tw.Stream(whole.stream.losses, whole.stream.constraints, unavailable=each)
    return Problem("failures", whole.K, stream, "Routing beside failures.", period=whole.period)


@task("energy", rounds=250, unit="cost, dollars")
def charging(rounds: int | None = None, seed: int = 0) -> Problem:
    """Charge 16 cars in sixteen hours of a night, by price; the feeder has time-varying room."""
    T, hours, rng = rounds or 480, np.arange(16), np.random.default_rng(seed)
    cars = [(int(rng.integers(0, 6)), int(rng.integers(13, 17))) for _ in range(16)]
    needs = rng.uniform(8.0, 24.0, 16)
    each = [tw.sets.CappedSimplex(b - a, 7.0, k) for (a, b), k in zip(cars, needs, strict=True)]
    hour_of = np.concatenate([np.arange(a, b) for a, b in cars])
    noise = autoregressive_noise(seed, "charging", T, (33,), 0.6)
    peak = [np.exp(-(((hours - at) / wide) ** 2)) for at, wide in ((3, 2), (4, 2.5), (12, 3))]
    wind = np.exp(-(((hours - 10 - 1.5 * noise[:, :1]) / 3) ** 2))
    price = 24 + 14 * peak[0] - 6 * wind + noise[:, 1:17]
    winter = 0.5 + 0.5 * np.cos(2 * np.pi * (np.arange(T)[:, None] - 100) / 365)
    homes = (18 + 16 * peak[1] + winter * (9 + 8 * peak[2])) * (1 + 0.05 * noise[:, 17:])
    sums = csr_array(np.equal.outer(hours, hour_of).astype(float))
    limits = tw.functions.MaxAffine(sums, 75.0 - homes)
    stream = tw.Stream(tw.functions.Linear(price[:, hour_of] / 100), limits)
    return Problem("charging", tw.sets.Product(*each), stream, "Charging of 16 cars.", period=7)


@task("matrix", rounds=250, unit="minus the share that is cut")
def maxcut(rounds: int | None = None, seed: int = 0, n: int = 16) -> Problem:
    """Cuts of a graph whose weights change: psd matrices of trace n, diagonals of at most 1."""
    T, rng = rounds or 400, np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    near = rng.random(len(i)) < 0.4
    turns, W = np.arange(T)[:, None] / 100 + rng.random(len(i)), np.zeros((T, n, n))
    W[:, i, j] = near * (1 + 0.8 * np.cos(2 * np.pi * turns)) * rng.exponential(1.0, (T, len(i)))
    W = (W + W.swapaxes(1, 2)) / W.sum(axis=(1, 2)).mean()
    losses = (W - W.sum(axis=2)[:, :, None] * np.eye(n)) / 4
    places, one = np.tile(np.arange(n) * (n + 1), (T, 1)), np.ones((T, n))
    stream = tw.Stream(
        tw.functions.Linear(losses), tw.functions.Range(0 * one, one, places, (n, n))
    )
    return Problem("maxcut", tw.sets.Spectraplex(n, n), stream, "Online max-cut.", period=100)


def wealth(problem: Problem, held: Floats) -> dict[str, float]:
    """What a unit of wealth becomes, before and after costs, and the share traded per round."""
    returns = problem.stream.losses.returns[-len(held) :]
    growth, traded = (held * returns).sum(axis=1), turnover(held, returns)
    after = np.log(growth * (1.0 - COST * traded)).sum()
    whole = float(np.exp(np.log(growth).sum()))
    return {"wealth": whole, "after costs": float(np.exp(after)), "traded": traded[1:].mean()}


def turnover(held: Floats, returns: Floats) -> Floats:
    """How much of the wealth is traded before each round, buying and selling added up."""
    drifted = held * returns
    drifted = drifted / drifted.sum(axis=1, keepdims=True)
    before = np.vstack([np.zeros_like(held[:1]), drifted[:-1]])
    return np.asarray(np.abs(held - before).sum(axis=1))


@task("portfolio", recorded=True, numbers=wealth, unit=GROWTH)
def nyse(rounds: int | None = None, seed: int = 0) -> Problem:
    """NYSE(O): 36 stocks over 5,651 days, 1962 to 1984 (Cover 1991); no constraints."""
    returns = growth("nyse_o.csv")[:rounds]
    stream = tw.Stream(tw.functions.LogWealth(returns))
    return Problem("nyse", tw.sets.Simplex(returns.shape[1]), stream, "Shares of stocks.")


def growth(file: str) -> Floats:
    """Prices over those of the day before, of a record of prices over those of the first day."""
    worth = np.loadtxt(record(file), delimiter=",", skiprows=1, ndmin=2)
    return np.vstack([worth[:1], worth[1:] / worth[:-1]])


task("portfolio", numbers=wealth, rounds=250, unit=GROWTH)(tw.problems.portfolio)


# --- size -----------------------------------------------------------------------------------------


def trees(nodes: int) -> Any:
    """Spanning trees of a ring with two chords from every node."""
    ends = {tuple(sorted((i, (i + d) % nodes))) for i in range(nodes) for d in (1, 3, 7)}
    return tw.sets.SpanningTrees([edge for edge in sorted(ends) if edge[0] != edge[1]])


FAMILIES: dict[str, tuple[Callable[[int], Any], tuple[int, ...]]] = {
    "flow": (lambda width: layered_flow(1 + max(2, width // 3), width), (8, 30, 100, 300)),
    "psd": (tw.sets.BoundedPSD, (50, 100, 200, 500, 1000)),
    "birkhoff": (tw.sets.Birkhoff, (10, 30, 100, 200)),
    "trees": (trees, (10, 30, 100, 1000)),
    "nuclear": (lambda n: tw.sets.NuclearBall((n, n + n // 4)), (50, 100, 300, 800)),
}


RULE: dict[str, Any] = {"seeds": 3, "seconds": 90.0, "methods": ("even", *SIZES)}


def drifting(K: Any, rounds: int | None, seed: int) -> tw.Stream:
    """Usually 120 rounds; more of the smallest sets, whose kernels are interpreted otherwise, and
    fewer of the largest, for their memory.
    """
    rng, n = np.random.default_rng(seed), math.prod(K.shape)
    T = max(6, min(rounds or max(120, 10_000 // n), 60_000_000 // n))

    def drawn() -> Floats:
        d = rng.standard_normal(K.shape)
        return d + d.T if len(K.shape) == 2 and K.shape[0] == K.shape[1] else d

    base, noise, across = drawn(), drawn(), drawn()
    costs, rows = np.empty((2, T, *K.shape))
    for t in range(T):
        noise = 0.9 * noise + math.sqrt(0.19) * drawn()
        costs[t], rows[t] = base + 0.5 * noise, across + 0.5 * noise[::-1]
    reach = float(np.vdot(across, K.lmo(-across)) - np.vdot(across, K.lmo(across)))
    at = (rows * K.center).reshape(T, -1).sum(axis=1)
    limits = tw.functions.Affine(rows / reach, at / reach + 0.05 * rng.standard_normal(T))
    return tw.Stream(tw.functions.Linear(costs), limits)


def _of_size(name: str, make: Callable[[int], Any], size: int) -> None:
    @task("size", f"{name} {size}", compared=False, **RULE)
    def build(rounds: int | None = None, seed: int = 0) -> Problem:
        K = make(size)
        return Problem(name, K, drifting(K, rounds, seed), "Drifting linear losses.")


for _name, (_make, _sizes) in FAMILIES.items():
    for _size in _sizes:
        _of_size(_name, _make, _size)
