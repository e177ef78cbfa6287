"""Traffic engineering on Meta's PoD trace: how full the fullest link is over the least it could
have been, in rounds 7,500 to 9,999.

    re-solving      the best splits for a traffic matrix that one has: the last, the mean of the
                    last twelve, and with headroom, which is more demand than the mean says
    best fixed      one split for all rounds that count, by a linear program that knows them; and
                    the one that was best in the 7,500 rounds before
    a policy        a small network after DOTE (Perry et al., NSDI 2023): the last 12 matrices,
                    standardised, two hidden layers of 128, a softmax for each pair; trained on the
                    first 6,000 of the 7,500 rounds, its best epoch chosen on the other 1,500
    tidewolf        from round 0 on, no training, nothing told about the rounds to come

There is no limit here to keep headroom to, and all demands times 1 + h have the same best splits
as before: headroom has to be uneven to mean anything. It is the spread of each pair's demand, or
its largest of the last twelve, in place of the mean.

Many splits are best for a matrix, as most links are not the fullest. "Any" is the corner that a
simplex method happens to end in; "most even" is near to even splits and as good up to
EVEN |x - even|^2,

    min  fullest(x) / fullest(even) + EVEN |x - even|^2.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.experts import points_of
from benchmarks.pages import ABSENT, Skipped, Table
from tidewolf.problems.data import recorded
from tidewolf.problems.records import COUNTED

Floats = np.ndarray[Any, np.dtype[np.float64]]
HEAD = ("who decides", "mean", "p99", "worst")
WINDOW, EVEN, SEEDS = 12, 1e-3, (0, 1)
SHOWN, OURS = 500, "#009E73"
WIDTH, DROPPED, RATE, BATCH = 128, 0.5, 1e-3, 128
EPOCHS, PATIENCE, VALIDATED = 40, 8, 1500
"""How the policy is trained."""


def any_best(losses: Any, K: Any, matrices: Floats) -> Floats:
    """Splits that are best for each matrix, as HiGHS finds them."""
    rows = np.vstack([matrices, matrices[-1:]])
    demand = tw.functions.MaxUtilization(losses.incidence, rows, losses.capacities, losses.pairs)
    return points_of(tw.baselines.Resolve(K), tw.Stream(demand))[1:]  # played a round later


def most_even(losses: Any, K: Any, matrices: Floats) -> Floats:
    """Of the splits that are best for each matrix the most even ones."""
    import piqp

    owner, paths = np.asarray(losses.pairs), K.shape[0]
    incidence = losses.incidence
    dense = incidence.toarray() if hasattr(incidence, "toarray") else np.asarray(incidence)
    per_link = dense / np.asarray(losses.capacities)[:, None]
    links, even = len(per_link), np.asarray(K.center)
    sums = np.zeros((int(owner.max()) + 1, paths + 1))
    sums[owner, np.arange(paths)] = 1.0
    P = np.diag(np.append(np.full(paths, 2 * EVEN), 1e-9))
    c = np.append(-2 * EVEN * even, 1.0)
    low, found = np.append(np.zeros(paths), -np.inf), np.empty((len(matrices), paths))
    for t, matrix in enumerate(matrices):
        load = per_link * matrix[owner]
        size = float((load @ even).max())
        if size == 0.0:
            found[t] = even
            continue
        rows = np.hstack([load / size, -np.ones((links, 1))])
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
        solver.setup(P, c, sums, np.ones(len(sums)), rows, None, np.zeros(links), low, None)
        solver.solve()
        x = np.maximum(solver.result.x[:paths], 0.0)
        found[t] = x / np.bincount(owner, x)[owner]
    return found


def windows(raw: Floats, rounds: range, length: int, of: Callable[[Floats], Floats]) -> Floats:
    """A matrix made of the `length` before each round."""
    return np.array([of(raw[t - length : t]) for t in rounds])


def row(name: str, values: Floats) -> tuple[str, ...]:
    """A row of the table."""
    return (name, f"{values.mean():.4f}", f"{np.quantile(values, 0.99):.3f}", f"{values.max():.3f}")


def table() -> Table:
    """All who decide, on the record."""
    problem = tw.problems.meta()
    (raw,) = (array.astype(np.float64) for array in recorded("meta_pod_a.npz", "demands"))
    losses, K = problem.stream.losses, problem.K
    first, counted = COUNTED.start, losses[COUNTED]
    rounds = range(first, COUNTED.stop)
    last, mean = raw[first - 1 : -1], windows(raw, rounds, WINDOW, lambda w: w.mean(axis=0))
    rows = [row("even splits", counted.values(K.center))]

    def fixed(name: str, matrices: Floats, splits: Callable[..., Floats]) -> None:
        rows.append(row(name, counted.values_at(splits(losses, K, matrices))))

    fixed("re-solve, last matrix, any best", last, any_best)
    fixed("re-solve, last matrix, most even", last, most_even)
    fixed("re-solve, mean of twelve, any best", mean, any_best)
    fixed("re-solve, mean of twelve, most even", mean, most_even)
    for words, length, of in (
        ("mean + 1 deviation of twelve", WINDOW, lambda w: w.mean(axis=0) + w.std(axis=0)),
        ("mean + 2 deviations of twelve", WINDOW, lambda w: w.mean(axis=0) + 2 * w.std(axis=0)),
        ("largest of twelve", WINDOW, lambda w: w.max(axis=0)),
        ("mean of 1,000", 1000, lambda w: w.mean(axis=0)),
    ):
        fixed(f"re-solve, {words}, most even", windows(raw, rounds, length, of), most_even)
    before = np.asarray(tw.best_in_hindsight(K, problem.stream[:first]).point)
    rows.append(row("best fixed split of rounds 0 to 7,499", counted.values(before)))
    hindsight = np.asarray(tw.best_in_hindsight(K, tw.Stream(counted)).point)
    rows.append(row("best fixed split in hindsight *", counted.values(hindsight)))
    policies = _policies(losses, raw, first)
    if policies:
        found = [counted.values_at(points[first:]) for points in policies]
        rows.append(_of_seeds("trained policy, two seeds", found))
    else:
        rows.append(("trained policy, two seeds", f"{ABSENT}: no torch", "", ""))
    rows.append(row("tidewolf `Ensemble`", _ensemble(problem, {})))
    leader = tw.Ensemble(K, experts=[tw.experts.Leader()])
    rows.append(
        row("tidewolf `Ensemble`, with `Leader`", tw.run(leader, problem.stream).losses[COUNTED])
    )
    twelve = windows(raw, range(WINDOW, len(raw)), WINDOW, lambda w: w.mean(axis=0))
    even = np.vstack([np.tile(K.center, (WINDOW, 1)), most_even(losses, K, twelve)])
    rows.append(
        row("tidewolf `Ensemble`, advised by re-solving", _ensemble(problem, {"even": even}))
    )
    name = "tidewolf `Ensemble`, advised by the first policy"
    if policies:
        rows.append(row(name, _ensemble(problem, {"policy": policies[0]})))
    else:
        rows.append((name, f"{ABSENT}: no torch", "", ""))
    return Table(HEAD, rows)


def draw(path: Path) -> None:
    """The picture of README: means over `SHOWN` rounds, over the least possible, of all rounds."""
    import matplotlib
    from matplotlib.figure import Figure

    problem = tw.problems.meta()
    (raw,) = (array.astype(np.float64) for array in recorded("meta_pod_a.npz", "demands"))
    losses, K = problem.stream.losses, problem.K
    best = np.asarray(tw.best_in_hindsight(K, problem.stream).point)
    last = np.vstack([K.center, any_best(losses, K, raw[:-1])])
    curves = {
        "even splits": ("#999999", losses.values(K.center)),
        "re-solving with the last round's traffic": ("#D55E00", losses.values_at(last)),
        "tidewolf, without training": (OURS, _ensemble(problem, {}, slice(None))),
        "best fixed split, known in hindsight": ("#0072B2", losses.values(best)),
    }
    policies = _policies(losses, raw, COUNTED.start)
    if policies:
        rest = losses[COUNTED].values_at(policies[0][COUNTED])
        before = np.full(COUNTED.start, np.nan)
        name = "trained policy, after 7,500 rounds of training"
        curves[name] = ("#CC79A7", np.concatenate([before, rest]))
    with matplotlib.rc_context({"svg.hashsalt": "tidewolf", "svg.fonttype": "path"}):
        figure = Figure(figsize=(8.0, 4.2), layout="constrained")
        axes = figure.subplots()
        for name, (color, values) in curves.items():
            mean = np.convolve(values, np.full(SHOWN, 1.0 / SHOWN), "valid")[::20]
            axes.plot(SHOWN + 20 * np.arange(len(mean)), mean, color=color, label=name)
        axes.set_xlabel("round")
        axes.set_ylabel(
            "utilisation of the fullest link\nover the least possible (lower is better)"
        )
        axes.set_title(f"Meta PoD a, 12 pairs, means over {SHOWN} rounds", fontsize=11)
        axes.legend(frameon=False, fontsize=9)
        axes.grid(color="#EEEEEE")
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, metadata={"Date": None})


def _policies(losses: Any, raw: Floats, learnt: int) -> list[Floats]:
    try:
        return [trained(losses, raw, learnt, seed) for seed in SEEDS]
    except Skipped as why:
        print(f"  policy: skipped: {why}")
        return []


def _of_seeds(name: str, values: list[Floats]) -> tuple[str, ...]:
    """The row of the seeds' average."""
    each = [
        np.mean([f(v) for v in values]) for f in (np.mean, lambda v: np.quantile(v, 0.99), np.max)
    ]
    return name, f"{each[0]:.4f}", f"{each[1]:.3f}", f"{each[2]:.3f}"


def _ensemble(
    problem: tw.problems.Problem, advice: Mapping[str, Floats], rounds: slice = COUNTED
) -> Floats:
    stream = tw.Stream(problem.stream.losses, advice=dict(advice) or None)
    named: Any = list(advice)
    return np.asarray(tw.run(tw.Ensemble(problem.K, experts=named), stream).losses[rounds])


def trained(losses: Any, raw: Floats, learnt: int, seed: int) -> Floats:
    """Splits of every round, NaN in the rounds it was trained on.

    `losses` are `MaxUtilization` of relative demands, `raw` the demands as measured, `learnt` the
    number of rounds to learn from.
    """
    try:
        import torch
    except ImportError as missing:
        raise Skipped("torch is not installed; the policy needs it to be trained") from missing

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    order = torch.Generator().manual_seed(seed)
    rounds, pairs = raw.shape
    owner = torch.as_tensor(np.asarray(losses.pairs).astype(np.int64))
    paths = len(owner) // pairs
    load = np.asarray(losses.incidence) / np.asarray(losses.capacities)[:, None]
    links = torch.as_tensor(load.astype(np.float32)).T
    seen = np.stack([raw[t - WINDOW : t].ravel() for t in range(WINDOW, rounds)])
    cut, stop = learnt - VALIDATED - WINDOW, learnt - WINDOW
    middle, spread = seen[:cut].mean(axis=0), seen[:cut].std(axis=0)
    X = torch.as_tensor(((seen - middle) / spread).astype(np.float32))
    demands = torch.as_tensor(np.asarray(losses.demands)[WINDOW:].astype(np.float32))

    net = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], WIDTH),
        torch.nn.ReLU(),
        torch.nn.Dropout(DROPPED),
        torch.nn.Linear(WIDTH, WIDTH),
        torch.nn.ReLU(),
        torch.nn.Dropout(DROPPED),
        torch.nn.Linear(WIDTH, len(owner)),
    )
    steps = torch.optim.Adam(net.parameters(), lr=RATE)

    def splits(x: Any) -> Any:
        return torch.softmax(net(x).view(-1, pairs, paths), -1).reshape(-1, len(owner))

    def fullest(x: Any, demand: Any) -> Any:
        return ((x * demand[:, owner]) @ links).max(dim=1).values

    best, kept, since = np.inf, np.empty(0), 0
    for _ in range(EPOCHS):
        net.train()
        for batch in torch.randperm(cut, generator=order).split(BATCH):
            loss = fullest(splits(X[batch]), demands[batch]).mean()
            steps.zero_grad()
            loss.backward()
            steps.step()
        net.eval()
        with torch.no_grad():
            found = splits(X)
            value = float(fullest(found[cut:stop], demands[cut:stop]).mean())
        since += 1
        if value < best:
            best, kept, since = value, found[stop:].numpy().astype(np.float64), 0
        if since > PATIENCE:
            break
    points = np.full((rounds, len(owner)), np.nan)
    sums = kept.reshape(-1, pairs, paths).sum(axis=2)
    points[learnt:] = kept / np.repeat(sums, paths, axis=1)
    return points
