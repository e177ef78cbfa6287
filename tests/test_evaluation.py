"""`tw.run` and what it reports."""

import itertools
from collections import Counter
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core import jit as kernels
from tidewolf.core.jit import Kernel, compiling, kernel
from tidewolf.evaluation import recording
from tidewolf.evaluation.run import RunProgress
from tidewolf.functions.support import FIRST


@pytest.fixture(scope="module")
def problem():
    return tw.problems.routing(rounds=300, seed=3)


@pytest.fixture(scope="module")
def run(problem):
    return tw.run(tw.LyapunovDescent(problem.K, horizon=300), problem.stream)


def test_the_numbers_of_rounds_are_those_of_the_played_points(problem, run):
    state, points = run.learner.start(), []
    for t, played in enumerate(tw.play(run.learner, problem.stream)):
        x, one = played.x, slice(t, t + 1)
        loss, breach = (
            float(f[one].values(x)[0]) for f in (run.stream.losses, run.stream.constraints)
        )
        assert run.losses[t] == pytest.approx(loss, rel=1e-12)
        assert run.violations[t] == pytest.approx(max(breach, 0.0), rel=1e-9, abs=1e-12)
        apart = np.linalg.norm(state.point.x - state.point.y)
        assert run.distances[t] == pytest.approx(apart, abs=1e-12)
        state = played.state
        points.append(x)
    assert run.oracle_calls == run.final_state.calls == run.calls.sum()
    most = max(map(problem.K.infeasibility, points))
    assert run.max_infeasibility == pytest.approx(most, abs=1e-15)  # balances in another order


def test_regret_is_an_interval_around_the_comparators_point(run):
    lower, upper = run.regret
    curve = run.regret_curve()
    assert lower <= upper
    assert lower - 1e-6 <= curve[-1] <= upper + 1e-6
    assert run.bound.regret >= upper
    assert run.bound.violation >= run.violations.sum()


def test_no_regret_where_no_point_keeps_every_limit():
    problem = tw.problems.routing(rounds=60, feasible=False)
    run = tw.run(tw.LyapunovDescent(problem.K, horizon=60), problem.stream)
    assert run.regret is run.regret_curve() is run.bound.regret is None
    assert run.comparator.feasible is run.summary()["feasible_in_hindsight"] is False
    assert "regret against points that keep 44 of 60 rounds" in repr(run)
    assert "No fixed decision satisfies every constraint" in repr(run)


def test_progress_is_told_and_ends_at_the_end(problem, run):
    moments = []
    tw.run(run.learner, problem.stream, progress=moments.append)
    totals = (pytest.approx(run.losses.sum()), pytest.approx(run.violations.sum()))
    assert moments[-1] == RunProgress(300, 300, run.oracle_calls, *totals)


def test_passing_the_horizon_is_said(problem):
    run = tw.run(tw.PrimalDual(problem.K, horizon=100), problem.stream)
    assert run.notes == (
        "The horizon of 100 rounds was passed: after round 100 the learner restarted with 200.",
    )
    assert run.bound.regret >= run.regret[1]


@pytest.mark.parametrize("learner", [tw.LyapunovDescent, tw.BanditPrimalDual, tw.DriftPlusPenalty])
def test_each_of_several_limits_has_a_total_of_its_own(learner):
    rng, T, n = np.random.default_rng(3), 60, 4
    c, A, b = rng.uniform(0.1, 0.4, (T, n)), rng.normal(size=(T, 3, n)), rng.normal(size=(T, 3))
    K = tw.sets.Simplex(n)
    for constraints, limits in (
        (tw.functions.Capacity(c), lambda t, x: x - c[t]),
        (tw.functions.MaxAffine(A, b), lambda t, x: A[t] @ x - b[t]),
    ):
        stream = tw.Stream(tw.functions.Linear(rng.normal(size=(T, n))), constraints)
        run, totals, t = tw.run(learner(K, horizon=T), stream), 0.0, 0
        for played in tw.play(learner(K, horizon=T), stream):
            for i in range(played.losses.shape[0]):
                x = played.x[i] if learner is tw.BanditPrimalDual else played.x
                totals, t = totals + np.maximum(limits(t, x), 0.0), t + 1
        np.testing.assert_allclose(run.each_violation, totals, atol=1e-12)
        assert run.summary()["each_violation"] == run.each_violation.tolist()
        assert f"{run.limit_names[np.argmax(totals)]}: {totals.max():.3g}" in repr(run)


def test_one_limit_a_round_needs_no_second_total():
    learner, losses = tw.LyapunovDescent(tw.sets.Simplex(2)), tw.functions.Linear(np.ones((3, 2)))
    one = tw.run(learner, tw.Stream(losses, tw.functions.Affine(np.ones((3, 2)), np.zeros(3))))
    assert one.each_violation is None
    kept = tw.run(learner, tw.Stream(losses, tw.functions.Capacity(np.ones((3, 2)))))
    assert kept.each_violation.tolist() == [0.0, 0.0]
    assert "0 of 2 limits were broken" in repr(kept)


# --- clocks and counters --------------------------------------------------------------------------


class Compiling(tw.LyapunovDescent):
    """A learner that meets a kernel which was never compiled."""

    needs: ClassVar = tw.LyapunovDescent.needs
    fresh: ClassVar[list[Kernel]] = []

    def update(self, state, seen):
        for each in self.fresh:
            each(1.0)
        return super().update(state, seen)


def test_no_clock_counts_compiling(monkeypatch):
    def inner(x):
        return x + 0.5

    space = {"__name__": "somewhere", "inner": kernel(inner), "opaque": object()}
    exec("def never_kept(x):\n    return inner(x)\n    opaque", space)
    K, stream = tw.sets.L2Ball(2), tw.Stream(tw.functions.Linear(np.ones((3, 2))))
    tw.run(Compiling(K, horizon=3), stream)  # what the learner itself needs is compiled
    on_its_way = recording.Recording(Compiling(K, horizon=3), stream)
    monkeypatch.setattr(Compiling, "fresh", [kernel(space["never_kept"])])
    before, looks = compiling(), itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(looks)))  # every look takes a second
    monkeypatch.setattr(recording, "time", clock)
    monkeypatch.setattr(kernels, "time", clock)
    assert list(on_its_way.advance()) == [1, 2, 3]
    assert compiling() - before == 2.0  # linking, then compiling, with what is called inside
    assert on_its_way.seconds == 3.0 + 2.0  # three rounds, and the looks around two compilings


def test_a_run_asks_the_set_and_the_functions_of_a_user_no_more_than_it_plays(monkeypatch):
    calls = Counter()
    right = tw.sets.L2Ball.answer

    def counted(self, *given):
        calls["answer"] += 1
        return right(self, *given)

    def value(t, x):
        calls["loss"] += 1
        return (x - 2.0) @ (x - 2.0)

    monkeypatch.setattr(tw.sets.L2Ball, "answer", counted)
    T = 30
    losses = tw.functions.Custom(value, lambda t, x: 2.0 * (x - 2.0), (3,), T)
    run = tw.run(tw.LyapunovDescent(tw.sets.L2Ball(3), horizon=T), tw.Stream(losses))
    assert calls["answer"] == run.oracle_calls > 0
    assert T < calls["loss"] <= T + 20 * FIRST  # the gradients of the first updates are tested
