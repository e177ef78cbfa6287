"""Hostile runs, each drawn by its seed, and what of their bounds was exceeded.

    exceeded(seed)         is empty, or names each bound that a known point of the set proves wrong
    exceeded(seed, make)   the same of a learner that `make` makes

Anything meets anything: sets, functions in any units and of any curvature, learners and settings;
feedback late, together, never, and of other points than were decided; entries that are out;
contexts, and advisers who know the worst, lie outside the set, are absent, fail or answer nonsense.

Nothing is solved: every stream is built around one feasible point for each category of its rounds,
a regret is at least that to these points. The certificate of a run is asked, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import tidewolf as tw
from pairs import takes
from tidewolf.baselines import OnlineFrankWolfe, ProjectedPrimalDual, ProximalPenalty, SinhaVaze
from tidewolf.core.conforming import is_member
from tidewolf.core.feedback import FullInformation, first_order
from tidewolf.experts import Adviser, Categories, Proposals, Resolve, Season
from tidewolf.functions import Affine, Capacity, Linear, MaxAffine, Quadratic
from tidewolf.methods import base, capabilities
from tidewolf.methods.steps.saddle import HOPELESS

Rng, HULL = np.random.Generator, np.random.default_rng(0).standard_normal((9, 3))
SETS = (
    tw.sets.Simplex(2), tw.sets.Simplex(6), tw.sets.CappedSimplex(5, 0.5),
    tw.sets.Box([-1.0, 0.0], [1.0, 3.0]), tw.sets.Box(np.zeros(4), np.ones(4)),
    tw.sets.SimplexProduct([2, 3]), tw.sets.FlowPolytope.examples()[0], tw.sets.L1Ball(4, 2.0),
    tw.sets.L2Ball((2, 2), 3.0), tw.sets.VertexHull(HULL),
    tw.sets.Translated(tw.sets.VertexHull(1e-2 * HULL), np.full(3, 1e2)),
    tw.sets.Spectraplex(3),
)  # fmt: skip
WITHOUT_ENTRIES = SETS[1], SETS[2], SETS[4], SETS[6]
"""Those that have members without any one entry."""
WANG = tw.baselines.WangWanZhang
OTHERS = (
    tw.PrimalDual, tw.DriftPlusPenalty, tw.LyapunovFrankWolfe, tw.BanditPrimalDual, WANG,
    WANG.published, SinhaVaze, SinhaVaze.published, OnlineFrankWolfe, ProximalPenalty,
    OnlineFrankWolfe.blind, ProjectedPrimalDual, ProjectedPrimalDual.published,
)  # fmt: skip
ROUNDING = 1e-9
INFO = "time", "context", "advice", "forecast", "unavailable"


@dataclass(frozen=True)
class Run:
    """What is played, and for each round a point that is feasible in it, the same within a
    category; `fixed`: there is one category.
    """

    learner: Any
    stream: tw.Stream
    feasible: np.ndarray
    fixed: bool


@dataclass(frozen=True, eq=False, repr=False)
class Broken(Adviser):
    """Proposes the worst that it knows of, fails, or answers nonsense, in no order."""

    seed: int
    names, waits = ("broken",), False

    def start(self, K):
        return (K.center,)

    def observe(self, K, state, feedback, x):
        return (x,)

    def propose(self, K, state, info, t, budget, vertices):
        kind = np.random.default_rng([self.seed, t]).integers(7)
        if kind == 0:
            raise RuntimeError("broken")
        if kind == 1:
            return Proposals((), state)
        found = {2: None, 3: np.full(K.shape, np.nan), 4: np.zeros(0)}
        found[5] = K.center + 3.0 * (K.lmo(K.center) - K.center)
        return Proposals((found.get(int(kind), K.lmo(state[0] - K.center)),), state)


def members(K, rng, count):
    """Vertices."""
    return np.array([K.lmo(d) for d in rng.standard_normal((count, *K.shape))])


def drawn(seed, make=None):
    rng = np.random.default_rng(seed)
    sets = [K for K in SETS if takes(getattr(make, "__self__", make), K)]
    K, T = sets[rng.integers(len(sets))], int(rng.integers(1, 60))
    cells = int(rng.choice([1, 1, 2])) if make is None else 1
    cell = rng.integers(cells, size=T)
    feasible = (0.6 * K.center + 0.4 * members(K, rng, cells))[cell]
    losses, gradients = _losses(K, rng, T)
    limits = _limits(K, rng, feasible, gradients)
    learner = _own(K, rng, T, cells, seed) if make is None else _made(make, K, rng, T)
    info = {"context": np.where(rng.random(T) < 0.1, np.nan, cell)}
    if rng.random() < 0.5:
        info["advice"] = _advice(K, rng, gradients)
    if K in WITHOUT_ENTRIES and rng.random() < 0.5 and _takes_outages(learner):
        out = rng.integers(-2 * K.shape[0], K.shape[0], T)
        info["unavailable"] = [[int(i)] if i >= 0 else None for i in out]
    if isinstance(learner, capabilities.LateFeedback) and (make is None or rng.random() < 0.5):
        info |= _feedback(K, rng, T, info.get("unavailable"))
    return Run(learner, tw.Stream(losses, limits, **info), feasible, cells == 1)


def _takes_outages(learner):
    return isinstance(learner, tw.LyapunovDescent | tw.Ensemble)


def _losses(K, rng, T):
    """Losses and about their gradients, one row per round."""
    shape, column = (T, *K.shape), (T, *[1] * len(K.shape))
    turns = np.where(np.arange(T) // rng.integers(1, 9) % 2, -1.0, 1.0)
    rare, some = np.where(rng.random(T) < 0.1, 1e3, 1e-2), np.where(rng.random(T) < 0.3, turns, 0.0)
    sizes = (np.ones(T), turns, turns * np.logspace(-4, 4, T), rare, some)[rng.integers(5)]
    steady, noise = rng.standard_normal(K.shape), rng.standard_normal(shape)
    unit = 10.0 ** rng.choice([0, 0, 0, -9, 9])
    C = unit * (steady + rng.choice([0.0, 0.3, 3.0]) * noise) * sizes.reshape(column)
    n = int(np.prod(K.shape))
    if len(K.shape) == 1 and rng.random() < 0.3:
        if rng.random() < 0.5:
            Q = np.einsum("t,ij->tij", np.abs(C).max(axis=1) / K.radius, np.eye(n))
            return Quadratic(Q, C - np.einsum("tij,j->ti", Q, K.center)), C
        return MaxAffine(np.stack([C, -0.5 * C], axis=1), np.stack([C @ K.center] * 2, axis=1)), C
    return Linear(C), C


def _limits(K, rng, feasible, C):
    """Constraints that these points satisfy, most of them against the losses."""
    T, unit = len(C), 10.0 ** rng.choice([0, 0, 0, -9, 9])
    room = K.radius * rng.choice([0.0, 1e-3, 0.2]) * rng.random(T)
    if len(K.shape) == 1 and rng.random() < 0.3:
        return Capacity(feasible + room[:, None])
    against = -C / (np.abs(C).max() or 1.0) + 0.3 * rng.standard_normal(C.shape)
    A = unit * against * (rng.random(T) < rng.choice([0.3, 1.0])).reshape(T, *[1] * len(K.shape))
    flat = A.reshape(T, -1)
    b = (flat * feasible.reshape(T, -1)).sum(axis=1) + room * np.linalg.norm(flat, axis=1)
    if len(K.shape) == 1 and rng.random() < 0.3:
        other = unit * rng.standard_normal(A.shape)
        least = (other * feasible).sum(axis=1) + room * np.linalg.norm(other, axis=1)
        return MaxAffine(np.stack([A, other], axis=1), np.stack([b, least], axis=1))
    return Affine(A, b)


def _advice(K, rng, C):
    """What "theirs" proposes: the worst, the best until it breaks, or points far outside; absent
    at times.
    """
    worst, best = (np.array([K.lmo(sign * c) for c in C]) for sign in (-1.0, 1.0))
    good = np.where((np.arange(len(C)) < len(C) // 2).reshape(-1, *[1] * len(K.shape)), best, worst)
    far = K.center + 30.0 * K.radius * rng.standard_normal(C.shape)
    points = (worst, good, far)[rng.integers(3)].copy()
    points[rng.random(len(C)) < 0.2] = np.nan
    return {"theirs": points}


def _settings(rng, T):
    return {
        "caution": float(rng.choice([0.01, 1.0, 10.0, 1e4])),
        "calls_per_round": float(rng.choice([0.1, 1.0, 5.0])),
        "horizon": [None, T, T // 3 + 1][rng.integers(3)],
    }


def _made(make, K, rng, T):
    given = _settings(rng, T) | {"block": int(rng.choice([1, 4]))}
    if not isinstance(make, type):  # a constructor of settings as they were published
        return make(K, horizon=given["horizon"] or T)
    return make(K, **{key: given[key] for key in given if key in make.__dataclass_fields__})


def _own(K, rng, T, cells, seed):
    given = _settings(rng, T) | {"per_constraint": bool(rng.random() < 0.3)}
    if rng.random() < 0.3:
        given["start_at"] = members(K, rng, 1)[0]
    if rng.random() < 0.2:
        given["max_move"] = float(10.0 ** rng.uniform(-3, 0))
    if rng.random() < 0.3:
        return tw.LyapunovDescent(K, block=int(rng.choice([1, 1, 4])), **given)
    resolves = (Resolve(headroom=(0, 2)), Resolve(3, headroom=0), Resolve(columns=True, headroom=1))
    if not isinstance(K, tw.sets.Polyhedral):
        resolves = resolves[2:]
    context = (Categories(cells), Season(7, cells=3))[rng.integers(2)]
    experts = [context, "theirs", resolves[rng.integers(len(resolves))], Broken(seed)]
    return tw.Ensemble(K, experts=[one for one in experts if rng.random() < 0.5], **given)


def _feedback(K, rng, T, out):
    """When feedback arrives, and what was played in place of decisions."""
    t, together = np.arange(T), int(rng.integers(2, 9))
    some, lost = rng.choice([0, 0, 1, 2, 7, T], T), np.where(rng.random(T) < 0.1, T, t + 3)
    arrives = (t, t + some, t // together * together + together - 1, lost)[rng.integers(4)]
    played = np.full((T, *K.shape), np.nan)
    if rng.random() < 0.5:
        for s in np.flatnonzero(rng.random(T) < 0.25).tolist():
            if out is None or out[s] is None:
                played[s] = K.center if s % 3 == 0 else members(K, rng, 1)[0]
    return {"arrives": arrives, "played": played}


# --- what is exceeded -----------------------------------------------------------------------------


def exceeded(seed, make=None):
    """Bounds below what was measured, and checks that fail, in words."""
    case = drawn(seed, make)
    experts = getattr(case.learner, "experts", ())
    own = isinstance(case.learner, tw.LyapunovDescent | tw.Ensemble)
    fails = any(isinstance(one, Broken) for one in experts)  # only sessions go on without it
    found = _live(case) if fails or (own and seed % 3 == 0) else _recorded(case)
    return [f"seed {seed}: {words}" for words in found]


def _recorded(case):
    learner, run = case.learner, tw.run(case.learner, case.stream)
    every = np.ones(len(case.stream), dtype=bool)
    bounds = [run.bound] if case.fixed and not isinstance(learner, capabilities.Explores) else []
    if isinstance(learner, tw.Ensemble) and isinstance(learner.context, Categories):
        more = [learner.K.diameter * slope * (run.pending > 0) for slope in run.untold_slopes]
        pairs = zip(learner.policy_bound(run)[:2], more, strict=True)
        bounds.append(base.Bound(*(None if own is None else own + slope for own, slope in pairs)))
    totals = float(run.losses.sum()), float(run.violations.sum())
    return [*run.certificate.failures, *_below(case, totals, every, bounds)]


def _live(case):
    """A session that is asked and observes as the stream says."""
    learner, stream, session = case.learner, case.stream, tw.Session(case.learner)
    T, played = len(stream), stream.played
    arrives = np.arange(T) if stream.arrives is None else stream.arrives
    observed, losses, violations = np.zeros(T, dtype=bool), 0.0, 0.0
    decided = dict[int, np.ndarray]()
    for t in range(T):
        known = stream.info(t)
        told = {} if known is None else {key: getattr(known, key) for key in INFO}
        decided[t] = session.play(round=t, **told)
        for s in np.flatnonzero(arrives == t).tolist():
            other = None if played is None or np.isnan(played[s]).any() else played[s]
            x = decided[s] if other is None else other
            feedback = FullInformation(stream.losses[s : s + 1], stream.constraints[s : s + 1])
            if not session.learner.wants_functions:
                values = feedback.constraints.values(x)
                feedback = first_order(*feedback, x, values, per_constraint=learner.per_constraint)
            session.observe(feedback, round=s, played=other)
            losses += float(stream.losses[s : s + 1].values(x).sum())
            violations += max(0.0, float(stream.constraints[s : s + 1].values(x).max()))
            observed[s] = True
    bounds = [session.certificate()] if case.fixed else []
    if isinstance(learner, tw.Ensemble) and isinstance(learner.context, Categories):
        state = session.state
        bounds.append(base.for_what_was_played(learner.bound_of(state, policies=True), state))
    away = [t for t, x in decided.items() if not is_member(learner.K, x)]
    outside = [f"decision {t} is outside" for t in away]
    return outside + _below(case, (losses, violations), observed, bounds)


def _below(case, totals, rounds, bounds):
    """The bounds that are below the totals of these rounds, of losses above those of the feasible
    points.
    """
    K, losses, limits = case.learner.K, case.stream.losses, case.stream.constraints
    feasible, found, sizes = 0.0, [], np.zeros(2)
    for x in np.unique(case.feasible, axis=0):
        own = rounds & (case.feasible == x).reshape(len(rounds), -1).all(axis=1)
        feasible += float(losses.values(x)[own].sum())
    far = K.radius + float(np.linalg.norm(K.center))
    for i, batch in enumerate((losses, limits)):
        slopes = [np.linalg.norm(batch.subgradient(K.center, one)) for one in np.eye(len(rounds))]
        sizes[i] = ROUNDING * far * float(np.sum(slopes))
    for bound in bounds:
        if bound.reason == HOPELESS:
            found.append("a feasible point is denied")
        pairs = zip(("regret", "violation"), totals, (feasible, 0.0), bound[:2], sizes, strict=True)
        for name, total, least, most, rounding in pairs:
            if most is not None and not total - least <= most + rounding:
                found.append(f"{name} {total - least:.6g} above its bound {most:.6g}")
    return found
