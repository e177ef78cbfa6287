"""Budgets, violation targets and new experts against what one would otherwise do.

plan       six endpoints, price against latency, a constant plan: 5 % below the loss of the same
           plan as a constraint of every round, the worst window 2 % of the total at most
gateway    three days of minutes: each day spends 1.01 of its budget at most (1.02 the first),
           8 % above a linear program that knows everything, quotas as without the budget
targets    the violation per round within 30 % of its target, 0.2 % above the loss of the
           caution with that violation, its bound 8 times the violation at most
curvature  generated records of prices, with and without mean reversion: with experts.Static() at
           least 0.95 of the wealth of uniform weights; 0.97 on NYSE(O), 0.88 on five more public
           records, where their files are
intervals  preferences that turn round after half of the rounds, with experts.Restarts(): the regret
           of the second half at most 1.2 times that of a learner that starts there, the first half
           within 1 %
cut        max-cut relaxations of order 100, the suite's with all limits in every round by default,
           another with ten of them per round by LyapunovFrankWolfe at a caution of 7: the last
           quarter within 3 % of the optimum at a violation below 0.2
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import tidewolf as tw
from benchmarks.cases import advised
from benchmarks.measuring import Bar, Limits, play_sections
from benchmarks.operating import means, percent, problems
from benchmarks.tasks import growth, maxcut
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Floats
from tidewolf.problems import Problem
from tidewolf.problems.shares import DAY

WEALTH = 0.95
PUBLIC = {"nyse_o": 0.97} | dict.fromkeys(("nyse_n", "tse", "sp500", "djia", "msci"), 0.88)
SEEDS, TARGETS = 5, (0.001, 0.002, 0.005, 0.01)
CAUTIONS = (1.0, 3.0, 10.0, 30.0, 100.0)


def endpoints(seed: int, rounds: int = 5_000) -> tuple[tw.Stream, tw.Stream, float]:
    """The plan as a budget, and as a constraint of every round; its total."""
    draw, plan = np.random.default_rng(seed), 0.9
    phases = 2.0 * np.pi * (np.arange(rounds)[:, None] / 480.0 + draw.random(6))
    latency = np.linspace(2.0, 0.2, 6) * np.exp(0.25 * np.sin(phases))
    latency *= np.exp(0.3 * draw.normal(size=(rounds, 6)))
    price = np.linspace(0.3, 2.5, 6) * np.exp(0.3 * draw.normal(size=(rounds, 6)))
    losses = tw.functions.Linear(latency)
    spend = tw.functions.Affine(price, np.full(rounds, plan))
    return tw.Stream(losses, budgets={"usd": spend}), tw.Stream(losses, spend), plan * rounds


def plan(limits: Limits) -> Iterator[Bar]:
    for seed in limits.seeded(range(SEEDS)):
        budget, strict, total = endpoints(seed)
        K = tw.sets.Simplex(6)
        ours, theirs = (tw.run(tw.Ensemble(K), stream) for stream in (budget, strict))
        gain = percent(float(ours.losses.mean()), float(theirs.losses.mean()))
        worst = 100.0 * ours.budgets["usd"].worst_window / total
        yield Bar(f"plan, seed {seed}, loss against a constraint", gain, -5.0, "%")
        yield Bar(f"plan, seed {seed}, worst window", worst, 2.0, "%")


def offline(problem: Problem) -> float:
    """The least mean latency of any decisions, each round's own, within quotas and budgets."""
    losses, limits = problem.stream.losses, problem.stream.constraints
    spend = problem.stream.budgets["usd"]
    T, n = losses.C.shape
    days = np.repeat(np.arange(T) // DAY, n)
    rows = sparse.csr_array((spend.A.ravel(), (days, np.arange(T * n))))
    totals = np.add.reduceat(spend.b, np.arange(0, T, DAY))
    shares = sparse.kron(sparse.eye_array(T), np.ones((1, n)), format="csr")
    most = np.clip(limits.c, 0.0, 1.0).ravel()
    bounds = np.column_stack([np.zeros(T * n), most])
    found = linprog(losses.C.ravel(), rows, totals, shares, np.ones(T), bounds, method="highs-ipm")
    return float(found.fun) / T


def gateway(limits: Limits) -> Iterator[Bar]:
    for seed in limits.seeded(range(SEEDS)):
        problem = tw.problems.gateway(seed=seed)
        K, experts, total = problem.K, advised(problem), problem.budgets[0].total
        run = tw.run(tw.Ensemble(K, experts=experts, budgets=problem.budgets), problem.stream)
        free = tw.Stream(problem.stream.losses, problem.stream.constraints)
        alone = means(tw.Ensemble(K, experts=experts), free).violation
        days = 1.0 + run.budgets["usd"].windows / total
        yield Bar(f"gateway, seed {seed}, first day, of the budget", days[0], 1.02, "x")
        yield Bar(f"gateway, seed {seed}, later days, of the budget", max(days[1:]), 1.01, "x")
        above = percent(float(run.losses.mean()), offline(problem))
        yield Bar(f"gateway, seed {seed}, latency above the program", above, 8.0, "%")
        over = 100.0 * float(run.violations.mean())
        yield Bar(f"gateway, seed {seed}, quotas", over, 120.0 * alone + 0.1, "%")


def targets(limits: Limits) -> Iterator[Bar]:
    for name, problem in problems(limits, ("routing", "geant", "uunet"), SEEDS):
        experts = advised(problem)
        swept = (tw.Ensemble(problem.K, caution=c, experts=experts) for c in CAUTIONS)
        curve = sorted((m.violation, m.loss) for m in (means(e, problem.stream) for e in swept))
        violations, losses = np.array(curve).T
        for target in TARGETS:
            if not violations[0] <= target <= violations[-1]:
                continue
            learner = tw.Ensemble(problem.K, target_violation=target, experts=experts)
            run = tw.run(learner, problem.stream)
            mean = float(run.violations.mean())
            above = percent(float(run.losses.mean()), float(np.interp(mean, violations, losses)))
            bound = learner.bound_of(run.final_state).violation
            yield Bar(f"{name}, target {target:g}, met", mean / target, 1.3, "x")
            yield Bar(f"{name}, target {target:g}, loss", above, 0.2, "%")
            if bound is not None:
                ratio = bound / float(run.violations.sum())
                yield Bar(f"{name}, target {target:g}, bound", ratio, 8.0, "x")


def record(seed: int, reverting: bool, days: int = 2000, stocks: int = 12) -> Floats:
    """Prices over those of the day before: a market, and each stock's own drift and noise, which
    returns by a tenth per day if it is reverting.
    """
    rng = np.random.default_rng((seed, int(reverting)))
    market = 0.0004 + 0.008 * rng.standard_normal((days, 1))
    own = 0.0003 * rng.standard_normal(stocks) + 0.018 * rng.standard_normal((days, stocks))
    if reverting:
        level = np.zeros((days + 1, stocks))
        for t in range(days):
            level[t + 1] = 0.9 * level[t] + own[t]
        own = np.diff(level, axis=0)
    return np.asarray(np.exp(market + own))


def curvature(limits: Limits) -> Iterator[Bar]:
    """Wealth over that of uniform weights; the prior was chosen at the seeds 0 and 1 of generated
    records, and public ones were looked at once.
    """
    days = limits.rounds or 2000
    records = {
        f"{how} mean reversion, seed {seed}": (partial(record, seed, bool(reverting), days), WEALTH)
        for seed in limits.seeded(range(5))
        for reverting, how in enumerate(("without", "with"))
    }
    records |= {name: (partial(growth, f"{name}.csv"), least) for name, least in PUBLIC.items()}
    for name, (read, least) in records.items():
        try:
            returns = read()
        except InvalidInput as absent:
            print(f"    {name}: skipped: {absent}")
            continue
        K = tw.sets.Simplex(returns.shape[1])
        learner = tw.Ensemble(K, experts=(tw.experts.Static(),))
        run = tw.run(learner, tw.Stream(tw.functions.LogWealth(returns)))
        over = float(np.exp(-run.losses.sum() - np.log(returns.mean(axis=1)).sum()))
        yield Bar(f"wealth, {name}", over, least, "x", least=True)


LINKS = ("sa", "sb", "sc", "ab", "bc", "at", "bt", "ct", "ad", "bd", "cd", "dt")  # from and to


def regimes(seed: int, rounds: int, network: bool) -> tuple[tw.sets.ConvexSet, tw.Stream]:
    """Random costs plus preferences, which turn round (options) or are drawn again (a network)."""
    draw, links = np.random.default_rng((9 if network else 7, seed)), list(map(tuple, LINKS))
    K = tw.sets.FlowPolytope.from_edges(links, source="s", target="t") if network else None
    n = len(LINKS) if network else 10
    costs, gap = draw.uniform(size=(rounds, n)), np.linspace(0.0, 0.4, n)
    before, after = 0.5 * draw.uniform(size=(2, n)) if network else (gap, gap[::-1])
    costs[: rounds // 2] += before
    costs[rounds // 2 :] += after
    return K or tw.sets.Simplex(n), tw.Stream(tw.functions.Linear(costs))


def intervals(limits: Limits) -> Iterator[Bar]:
    """Means over the seeds; steps and shares were chosen at 1,000 and 4,000 rounds, seeds 0, 1."""
    for network in (False, True):
        for rounds in (limits.rounds,) if limits.rounds else (1_000, 4_000, 16_000):
            half, found = rounds // 2, list[list[float]]()
            for seed in limits.seeded(range(SEEDS)):
                K, stream = regimes(seed, rounds, network)
                restarting = tw.Ensemble(K, experts=[tw.experts.Restarts()])
                plain, ours = (tw.run(one, stream).losses for one in (tw.Ensemble(K), restarting))
                fresh = tw.run(tw.Ensemble(K), stream[half:]).losses.sum()
                best = tw.best_in_hindsight(K, stream, half, rounds).lower
                second = [float(part.sum()) - best for part in (plain[half:], ours[half:], fresh)]
                found.append([percent(ours[:half].sum(), plain[:half].sum()), *second])
            first, without, regret, fresh = np.mean(found, axis=0).tolist()
            name = f"{'network' if network else 'options'}, {rounds:,} rounds"
            print(f"    {name}: regret {without:.1f} without, {regret:.1f} with, {fresh:.1f} fresh")
            yield Bar(f"{name}, regret over that of a fresh start", regret / fresh, 1.2, "x")
            yield Bar(f"{name}, first half", first, 1.0, "%")


def relaxation(seed: int, rounds: int, n: int = 100, drawn: int = 10) -> tuple[tw.Stream, float]:
    """The cut of a random graph, -<L, X>/4, with X_ii <= 1 for other i in every round; its least
    value if all i are limited.
    """
    draw, one = np.random.default_rng(seed), np.ones((rounds, n))
    A = np.triu((draw.random((n, n)) < 0.1).astype(float), 1)
    C = 0.25 * (A + A.T - np.diag((A + A.T).sum(axis=1)))
    some = np.array([draw.choice(n, drawn, replace=False) for _ in range(rounds)]) * (n + 1)
    every = np.arange(n)[None] * (n + 1)
    best = tw.best_in_hindsight(
        tw.sets.BoundedPSD(n, float(n)),
        tw.Stream(
            tw.functions.Linear(C[None]), tw.functions.Range(-n * one[:1], one[:1], every, (n, n))
        ),
    )
    limits = tw.functions.Range(-n * one[:, :drawn], one[:, :drawn], some, (n, n))
    losses = np.broadcast_to(C, (rounds, n, n))
    return tw.Stream(tw.functions.Linear(losses), limits), best.lower


def cut(limits: Limits) -> Iterator[Bar]:
    """Where all limits are seen, and ten per round; 7 was chosen at seed 0 of the latter."""
    rounds, K = limits.rounds or 1_500, tw.sets.BoundedPSD(100, 100.0)
    last = slice(3 * rounds // 4, rounds)
    for seed in limits.seeded(range(3)):
        every, (some, least) = maxcut(rounds, seed, n=100), relaxation(seed, rounds)
        best = tw.best_in_hindsight(every.K, every.stream, last.start, last.stop).lower
        played = (
            ("all limits", tw.Ensemble(every.K), every.stream, best / (rounds - last.start)),
            ("ten limits", tw.Ensemble(K), some, least),
            ("ten limits", tw.Ensemble(K, caution=7), some, least),
            ("ten limits", tw.LyapunovFrankWolfe(K, caution=7), some, least),
        )
        for seen, learner, stream, optimum in played:
            run = tw.run(learner, stream)
            above = percent(float(run.losses[last].mean()), optimum)
            mean, all_of = float(run.violations[last].mean()), float(run.violations.mean())
            name = f"{seen}, {type(learner).__name__}, caution {learner.caution:g}"
            print(f"    {name}: {above:+.2f} %, {mean:.3f}; all rounds {all_of:.3f}")
            if seen == "all limits" or isinstance(learner, tw.LyapunovFrankWolfe):
                name = f"max-cut of order 100, {seen} per round, seed {seed}"
                yield Bar(f"{name}, from the optimum", abs(above), 3.0, "%")
                yield Bar(f"{name}, violation", mean, 0.2, "")


def report(words: Sequence[str] = ()) -> None:
    sections = (plan, gateway, targets, curvature, intervals, cut)
    play_sections("decisions", {each.__name__: each for each in sections}, words)
