"""The methods that are compared, each in at most 30 lines; registry.py says how one is called.

EG     b_{t+1,i}  ~  b_ti exp(-eta grad_ti)                            Helmbold et al. 1998
ONS    b_{t+1} = the member nearest, in the norm of A_t, to delta inv(A_t) s_t,
       A_t = I + sum g g',  s_t = (1 + 1/beta) sum g,  g = -grad_t     Agarwal et al. 2006
PAMR   b_{t+1} = the member nearest to b_t - tau (r_t - mean r_t),
       tau = max(0, <b_t, r_t> - eps) / |r_t - mean r_t|^2             Li et al. 2012
policy a small network after DOTE (Perry et al., NSDI 2023): the last 12 traffic matrices,
       standardised, two hidden layers, a softmax for each pair; trained on the rounds that do
       not count, its best epoch chosen on the last fifth of them
"""

from collections import deque
from functools import partial
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.cases import advised
from benchmarks.registry import Given, method
from tidewolf.core import errors, feedback, types
from tidewolf.functions import base, combined

CAUTIONS = [{"caution": c} for c in (0.1, 1.0, 4.6, 22.0, 100.0)]
HEADROOMS = [{"headroom": h} for h in (0.5, 1.0, 2.0, 4.0, 8.0)]
PORTFOLIO = ("portfolio",)


# --- tidewolf's -----------------------------------------------------------------------------------


@method("Ensemble", [{"caution": c} for c in (1.0, 2.0, 3.0, 5.0, 30.0)])
def ensemble(given: Given, **setting: Any) -> Any:
    return tw.Ensemble(given.K, experts=advised(given), **setting)


@method("Ensemble without experts")
def alone(given: Given) -> Any:
    return tw.Ensemble(given.K)


@method("LyapunovDescent", [*CAUTIONS, {"calls_per_round": 4.0}, {"calls_per_round": 16.0}])
def descent(given: Given, **setting: Any) -> Any:
    return tw.LyapunovDescent(given.K, **setting)


for _calls in (4, 16):
    method(f"LyapunovDescent, {_calls} calls", suites=("size",))(
        partial(descent, calls_per_round=float(_calls))
    )


@method("Ensemble with Leader")
def leading(given: Given) -> Any:
    return tw.Ensemble(given.K, experts=[*advised(given), tw.experts.Leader()])


# --- others' that are learners here ---------------------------------------------------------------


@method("re-solving", HEADROOMS)
def resolving(given: Given, **setting: Any) -> Any:
    return tw.baselines.Resolve(given.K, **setting)


@method("CLASP")
def clasp(given: Given) -> Any:
    return tw.baselines.CLASP(given.K)


@method("exact projection (Sinha-Vaze)", CAUTIONS)
def projecting(given: Given, **setting: Any) -> Any:
    return tw.baselines.SinhaVaze(given.K, horizon=given.rounds, **setting)


class ByOsqp:
    """What projects on a set with a description that is not lifted, from its last answer."""

    def __init__(self, K: Any) -> None:
        import osqp
        from scipy.sparse import csc_matrix, eye, vstack

        d = K.description()
        n = len(d.lower)
        rows = [(d.A_eq, d.b_eq, d.b_eq), (d.A_ub, None, d.b_ub), (eye(n), d.lower, d.upper)]
        rows = [row for row in rows if row[0] is not None]
        low = [np.full(A.shape[0], -np.inf) if lower is None else lower for A, lower, _ in rows]
        high = np.concatenate([upper for *_, upper in rows])
        self._solver, A = osqp.OSQP(), csc_matrix(vstack([A for A, *_ in rows]))
        self._solver.setup(eye(n, format="csc"), np.zeros(n), A, np.concatenate(low), high,
                           eps_abs=1e-4, eps_rel=1e-4, max_iter=20_000, verbose=False)  # fmt: skip

    def __call__(self, y: types.Floats) -> types.Floats:
        self._solver.update(q=-y.reshape(-1))
        return np.asarray(self._solver.solve().x).reshape(y.shape)


@method("exact projection, OSQP to 1e-4", suites=("size",))
def by_osqp(given: Given) -> Any:
    """Quicker than the program of the library, which solves to 1e-13."""
    learner = tw.baselines.SinhaVaze(given.K)
    if not isinstance(given.K, tw.sets.Polyhedral) or isinstance(given.K, tw.sets.Projectable):
        raise errors.InvalidInput("This set projects by an algorithm of its own.")
    if given.K.description().lift is not None:
        raise errors.InvalidInput("The description of this set has more variables than its points.")
    learner.__dict__["exact_projection"] = ByOsqp(given.K)
    return learner


def _with_horizon(name: str, kind: Any) -> None:
    method(name)(lambda given: kind(given.K, horizon=given.rounds))


_with_horizon("Algorithm 3 (DriftPlusPenalty)", tw.DriftPlusPenalty)
_with_horizon("Algorithm 4 (PrimalDual)", tw.PrimalDual)
_with_horizon("Algorithm 5 (BanditPrimalDual)", tw.BanditPrimalDual)
_with_horizon("Wang-Wan-Zhang", tw.baselines.WangWanZhang)
_with_horizon("online Frank-Wolfe", tw.baselines.OnlineFrankWolfe)


# --- fixed points ---------------------------------------------------------------------------------


@method("even")
class Even:
    """The center of the set in every round."""

    def __init__(self, given: Given) -> None:
        self.x = given.K.center

    def decide(self) -> types.Floats:
        return self.x

    def observe(self, loss: Any, constraint: Any) -> None:
        pass


@method("static")
class Static(Even):
    """The best fixed point of the rounds that do not count, or of the first tenth."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.K, self.left, self.rounds = given.K, given.first or max(1, given.rounds // 10), []

    def observe(self, loss: Any, constraint: Any) -> None:
        self.left -= 1
        if self.left >= 0:
            self.rounds.append((loss, constraint))
        if self.left == 0:
            losses, limits = (combined.chained(parts) for parts in zip(*self.rounds, strict=True))
            best = tw.best_in_hindsight(self.K, tw.Stream(losses, limits))
            self.x = self.x if best.point is None else np.asarray(best.point)


# --- re-solving with more than the last round -----------------------------------------------------

OF = {
    "mean": lambda rows, low: rows.mean(axis=0),
    "mean + deviation": lambda rows, low: rows.mean(axis=0) + (-1 if low else 1) * rows.std(axis=0),
    "max": lambda rows, low: rows.min(axis=0) if low else rows.max(axis=0),
}


def of_window(parts: Any, of: str) -> Any:
    """One function from those of several rounds, number by number; of limits, what is stricter."""
    batch = combined.chained(tuple(parts))
    if not isinstance(batch, base.ArrayBatch):
        return parts[-1]
    made = batch[-1:]
    for name in batch.by_round:
        rows = made.__dict__[name]
        if rows.dtype.kind == "f":
            made.__dict__[name] = OF[of](batch.__dict__[name], name in ("b", "c", "capacities"))[
                None
            ]
    return made


class Advised(Even):
    """A point that an expert of tidewolf proposes, told one round made of the last k."""

    def __init__(
        self, given: Given, expert: Any, k: int = 1, of: str = "mean", which: int = 0
    ) -> None:
        super().__init__(given)
        self.K, self.of, self.rounds, self.which = given.K, of, deque(maxlen=k), which
        self.expert, self.state = expert, expert.start(given.K)
        self.t = self.solves = 0

    def observe(self, loss: Any, constraint: Any) -> None:
        self.rounds.append((loss, constraint))
        now = [of_window(parts, self.of) for parts in zip(*self.rounds, strict=True)]
        seen, self.t = feedback.FullInformation(*now), self.t + 1
        state = self.expert.observe_round(self.K, self.state, seen, self.x, self.t - 1)
        found = self.expert.propose(self.K, state, None, self.t, 1, ())
        self.state, self.solves = found.state, self.solves + found.solves
        point = found.points[self.which]
        self.x = self.x if point is None else point


@method("re-solving, most even", HEADROOMS)
def most_even(given: Given, headroom: float = 0.0, **window: Any) -> Any:
    """Of the best points, the one nearest to the center."""
    return Advised(given, tw.experts.Resolve(headroom=(headroom,), even=True), **window)


@method("re-solving, mean of the last 12", [{"k": 4}, {"k": 48}, {"of": "mean + deviation"}])
def of_mean(given: Given, k: int = 12, **setting: Any) -> Any:
    return Advised(given, tw.experts.Resolve(headroom=(0.0,)), k=k, **setting)


@method("re-solving, mean + deviation of the last 12, most even", suites=("traffic",))
def even_of_mean(given: Given) -> Any:
    return most_even(given, k=12, of="mean + deviation")


@method("re-solving, max of the last 12", [{"k": 4}, {"k": 48}])
def of_max(given: Given, k: int = 12) -> Any:
    return of_mean(given, k, of="max")


@method("leader", [{"which": 1}, {"every": 12}])
def following(given: Given, which: int = 0, every: int = 48) -> Any:
    """The best fixed point of the past; `which` 1 weighs violations ten times as much."""
    if not isinstance(given.K, tw.sets.Polyhedral):
        raise errors.InvalidInput("On this set the leader needs vertices that others found.")
    return Advised(given, tw.experts.Leader(every=every), which=which)


# --- portfolios -----------------------------------------------------------------------------------


@method("EG", suites=PORTFOLIO)
class ExponentiatedGradient(Even):
    def observe(self, loss: Any, constraint: Any) -> None:
        x = self.x * np.exp(-0.05 * loss.gradients(self.x)[0])
        self.x = x / x.sum()


@method("online Newton step", suites=PORTFOLIO)
class OnlineNewton(Even):
    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.A, self.total, self.solves = np.eye(len(self.x)), 0.0 * self.x, 0

    def observe(self, loss: Any, constraint: Any) -> None:
        import piqp

        n, g = len(self.x), -loss.gradients(self.x)[0]
        self.A, self.total = self.A + np.outer(g, g), self.total + 2 * g
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = 1e-9
        # |x - p|^2 in the norm of A, p = total / 8 times the inverse of A
        solver.setup(2 * self.A, -self.total / 4, np.ones((1, n)), np.ones(1), None, None, None,
                     np.zeros(n), None)  # fmt: skip
        solver.solve()
        x, self.solves = np.maximum(solver.result.x, 0.0), self.solves + 1
        self.x = x / x.sum()


@method("PAMR (mean reversion)", suites=PORTFOLIO)
class MeanReversion(Even):
    def observe(self, loss: Any, constraint: Any) -> None:
        r = loss.returns[0]
        away = r - r.mean()
        step = max(0.0, float(self.x @ r) - 0.5) / (float(away @ away) or 1.0)
        self.x = tw.sets.Simplex(len(r)).project(self.x - step * away)


# --- a trained policy -----------------------------------------------------------------------------


@method("trained policy", suites=("traffic",))
class Policy(Even):
    """Even splits until it is trained; for losses that are the utilisation of the fullest link."""

    def __init__(self, given: Given, window: int = 12, width: int = 128) -> None:
        import torch

        super().__init__(given)
        if not given.first:
            raise errors.InvalidInput("A policy needs rounds to learn from; this task has none.")
        torch.set_num_threads(1)
        torch.manual_seed(given.seed)
        self.torch, self.window, self.width, self.first = torch, window, width, given.first
        self.rows: list[types.Floats] = []

    def observe(self, loss: Any, constraint: Any) -> None:
        self.rows.append(loss.demands[0])
        if len(self.rows) == self.first:
            self._train(loss)
        if len(self.rows) >= self.first:
            seen = np.concatenate(self.rows[-self.window :])[None]
            with self.torch.no_grad():
                x = self.splits(self._scaled(seen))[0].numpy().astype(float)
            self.x = x / np.bincount(self.owner, x)[self.owner]

    def _scaled(self, seen: types.Floats) -> Any:
        scaled = (seen - self.middle) / self.spread
        return self.torch.as_tensor(scaled.astype(np.float32))

    def _train(self, loss: Any) -> None:
        torch, nn, D = self.torch, self.torch.nn, np.array(self.rows)
        seen = np.stack([D[t - self.window : t].ravel() for t in range(self.window, len(D))])
        cut = 4 * len(seen) // 5
        self.middle, self.spread = seen[:cut].mean(axis=0), seen[:cut].std(axis=0)
        self.owner, X = np.array(loss.pairs), self._scaled(seen)
        owner, pairs, w = torch.as_tensor(self.owner), D.shape[1], self.width
        load = np.asarray(loss.incidence) / np.asarray(loss.capacities)[:, None]
        links = torch.as_tensor(load.T.astype(np.float32))
        demands = torch.as_tensor(D[self.window :].astype(np.float32))
        layers = [nn.Linear(X.shape[1], w), nn.ReLU(), nn.Dropout(0.5), nn.Linear(w, w), nn.ReLU()]
        net = nn.Sequential(*layers, nn.Dropout(0.5), nn.Linear(w, len(self.owner))).train()
        shares = lambda x: torch.softmax(net(x).view(len(x), pairs, -1), -1).flatten(1)  # noqa: E731
        self.splits, steps, best = shares, torch.optim.Adam(net.parameters(), lr=1e-3), np.inf

        def fullest(rows: Any) -> Any:
            return ((shares(X[rows]) * demands[rows][:, owner]) @ links).amax(dim=1).mean()

        for _ in range(30):
            for batch in torch.randperm(cut).split(128):
                steps.zero_grad()
                fullest(batch).backward()
                steps.step()
            net.eval()
            with torch.no_grad():
                value = float(fullest(torch.arange(cut, len(X))))
            if value < best:
                best, kept = value, {name: each.clone() for name, each in net.state_dict().items()}
            net.train()
        net.load_state_dict(kept)
        net.eval()
