"""`tw.run` and what it reports: decisions, how far they moved, rates, frontiers and verdicts."""

import itertools
import json
import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise, product
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core import errors, feedback
from tidewolf.core import jit as kernels
from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.jit import CLOCK, Kernel, kernel
from tidewolf.evaluation import recording, tracking
from tidewolf.evaluation.comparison import ALLOWED
from tidewolf.evaluation.metrics import beside, verdict
from tidewolf.evaluation.rates import growth
from tidewolf.evaluation.run import RunProgress
from tidewolf.evaluation.tracking import entry_names, time_texts
from tidewolf.functions import Capacity, Linear


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
        both = run.stream.losses, run.stream.constraints
        loss, breach = (float(f[one].values(x)[0]) for f in both)
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
    (said,) = run.notes
    assert said.endswith("was passed: after round 100 the learner restarted with 200.")
    assert run.bound.regret >= run.regret[1]


@pytest.mark.parametrize("learner", [tw.LyapunovDescent, tw.BanditPrimalDual, tw.DriftPlusPenalty])
def test_each_of_several_limits_has_a_total_of_its_own(learner):
    rng, T, n = np.random.default_rng(3), 60, 4
    c, A, b = rng.uniform(0.1, 0.4, (T, n)), rng.normal(size=(T, 3, n)), rng.normal(size=(T, 3))
    K = tw.sets.Simplex(n)
    for constraints, limits in (
        (Capacity(c), lambda t, x: x - c[t]),
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
    before, looks = CLOCK.spent, itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(looks)))  # every look takes a second
    monkeypatch.setattr(recording, "time", clock)
    monkeypatch.setattr(kernels, "time", clock)
    assert list(on_its_way.advance()) == [1, 2, 3]
    assert CLOCK.spent - before == 2.0  # linking, then compiling, with what is called inside
    assert on_its_way.seconds == 3.0 + 2.0  # three rounds, and the looks around two compilings


# --- rates ----------------------------------------------------------------------------------------


HORIZONS = [100, 200, 400, 800]


@given(power=st.floats(-1.0, 2.0), size=st.floats(1e-6, 1e6))
def test_an_exact_power_is_found_exactly(power, size):
    found = growth(HORIZONS * 2, [size * T**power for T in HORIZONS * 2])
    assert found.exponent == pytest.approx(power, abs=1e-9)
    assert found.interval == pytest.approx((power, power), abs=1e-6)


def test_the_interval_is_that_of_the_textbook():
    from scipy.stats import linregress, t

    rng = np.random.default_rng(0)
    totals = np.array(HORIZONS * 3) ** 0.75 * np.exp(0.2 * rng.standard_normal(12))
    found, known = growth(HORIZONS * 3, totals), linregress(np.log(HORIZONS * 3), np.log(totals))
    margin = t.ppf(0.975, 10) * known.stderr
    assert found.exponent == pytest.approx(known.slope)
    assert found.interval == pytest.approx((known.slope - margin, known.slope + margin))


NO_LOGS = {"zero in 2 of 3 runs": [1.0, 0.0, -3.0], "known for 1 of 3 runs": [1.0, None, 2.0]}


@pytest.mark.parametrize(("reason", "totals"), NO_LOGS.items())
def test_totals_without_a_logarithm_have_no_exponent_and_a_reason(totals, reason):
    found = growth([100, 200, 400], totals, 0.75)
    assert found[:3] == (None, None, 0.75)
    assert found.slower is None
    assert reason in found.reason


def test_slower_than_theory_is_said_where_the_interval_decides():
    totals = [T**0.6 * (1.0 + 0.01 * (T // 100 % 2)) for T in HORIZONS]
    verdicts = [growth(HORIZONS, totals, theory).slower for theory in (0.75, 0.5, 0.6, None)]
    assert verdicts == [True, False, None, None]
    two = growth([100, 400], [10.0, 20.0], 0.75)  # leave nothing to judge by
    assert (two[:2], two.slower) == ((pytest.approx(0.5), (-math.inf, math.inf)), None)


def runs(kind, horizons=(60, 120, 240)):
    found = []
    for T, seed in product(horizons, (0, 1)):
        problem = tw.problems.adversarial(T, seed, kind="opposing", phase=T // 8)
        found.append(tw.run(kind(tw.sets.Simplex(6), horizon=T), problem.stream))
    return found


def test_rates_of_runs():
    found, theirs = tw.rates(runs(tw.LyapunovDescent)), tw.rates(runs(tw.PrimalDual))
    assert (found.learner, found.horizons, found.runs) == ("LyapunovDescent", (60, 120, 240), 6)
    low, high = found.violation.interval
    assert max(low, 0.0) < found.violation.exponent < min(high, 1.0)
    assert (theirs.regret.theory, theirs.violation.theory) == (0.75, 0.875)
    assert "regret: at or below zero in 6 of 6 runs, so no exponent." in repr(theirs)
    for each in (found, theirs):
        json.dumps(each.summary(), allow_nan=False)


def test_the_regret_counts_by_its_upper_end():
    some = runs(tw.LyapunovDescent, (20, 40, 80))
    known = (tw.Comparator(None, r.losses.sum() - r.rounds**0.5, math.inf, None) for r in some)
    wide = [replace(run, known=best) for run, best in zip(some, known, strict=True)]
    assert tw.rates(wide).regret.exponent == pytest.approx(0.5)


def test_runs_that_do_not_belong_together_are_refused():
    short = runs(tw.LyapunovDescent, (20,))
    empty = tw.Stream(Linear(np.zeros((0, 6))), Capacity(np.zeros((0, 6))))
    for several, said in (
        ([*short, *runs(tw.PrimalDual, (30,))], "runs of one learner"),
        ([], "runs of one learner"),
        (short, "two lengths"),
        ([*short, tw.run(tw.LyapunovDescent(tw.sets.Simplex(6)), empty)], "two lengths"),
    ):
        with pytest.raises(InvalidInput, match=said):
            tw.rates(several)
    with pytest.raises(WrongType, match="several runs"):
        tw.rates([3])


# --- summaries of trajectories --------------------------------------------------------------------


blocks = st.lists(st.integers(1, 90), min_size=1, max_size=12)


@given(blocks, st.integers(0, 2**16), st.booleans())
def test_parts_are_the_means_of_their_rounds(lengths, seed, one_each):
    rng, rounds = np.random.default_rng(seed), sum(lengths)
    kept, played = tracking.TrajectorySummary(rounds, (2, 3)), []
    for length in lengths:
        points = rng.normal(size=(length if one_each else 1, 2, 3))
        before = points.copy()
        kept.see(points, length)
        assert (points == before).all()
        played += list(np.broadcast_to(points, (length, 2, 3)))
    assert len(kept.edges) - 1 == len(kept.means) == min(rounds, tracking.MAX_PARTS)
    assert kept.edges[-1] == rounds
    assert np.ptp(np.diff(kept.edges)) <= 1
    for (begin, end), mean in zip(pairwise(kept.edges), kept.means, strict=True):
        assert mean == pytest.approx(np.mean(played[begin:end], axis=0), abs=1e-12)
    assert kept.mean == pytest.approx(np.mean(played, axis=0), abs=1e-12)


def test_large_points_have_fewer_parts_and_never_none(monkeypatch):
    monkeypatch.setattr(tracking, "MAX_NUMBERS", 100)
    assert tracking.TrajectorySummary(1000, (5, 5)).means.shape == (4, 5, 5)
    assert tracking.TrajectorySummary(1000, (7, 101)).means.shape == (1, 7, 101)
    assert tracking.TrajectorySummary(0, (3,)).means.shape == (0, 3)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_points_stay_in_their_library_until_a_part_ends(library):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    kept = tracking.TrajectorySummary(6, (2,))
    kept.see(xp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=xp.float64), 2)
    kept.see(xp.asarray([[5.0, 6.0]], dtype=xp.float64), 4)
    assert kept.means.tolist() == [[1.0, 2.0], [3.0, 4.0], *[[5.0, 6.0]] * 4]


# --- how far decisions moved ----------------------------------------------------------------------


def moved(points):
    """Half the L1 change from round to round, on all points at once."""
    flat = points.reshape(len(points), -1)
    return np.array([0.0, *(np.abs(x - before).sum() / 2 for before, x in pairwise(flat))])


def test_rounds_that_were_not_seen_move_nothing():
    problem, seen = tw.problems.routing(rounds=40), np.ones(40, dtype=bool)
    seen[10:20] = False
    stream = tw.Stream(problem.stream.losses, problem.stream.constraints, seen=seen)
    run = tw.run(tw.LyapunovDescent(problem.K), stream)
    assert (run.churn[11:21] == 0.0).all()
    assert run.churn[9] > 0.0


@given(st.data(), st.integers(1, 4), st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_any_cut_into_updates_and_files_measures_the_same(data, entries, counts):
    """One point for several rounds or one each, saved and restored between any two updates."""
    movement, churn, points = tracking.Movement(), [], []
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    for count in counts:
        each = data.draw(st.booleans())
        drawn = rng.integers(-4, 5, (count if each else 1, entries)) / 4.0
        churn += movement.see(drawn if each else drawn[0], count, each=each).tolist()
        points += list(drawn) if each else [drawn[0]] * count
        if data.draw(st.booleans()):
            kept, movement = movement.parts(), tracking.Movement()
            movement.restore(kept)
    np.testing.assert_allclose(churn, moved(np.array(points)), rtol=1e-12, atol=1e-12)


# --- frontiers ------------------------------------------------------------------------------------


CAUTIONS = [float(f"{caution:.3g}") for caution in np.geomspace(0.01, 100.0, 13)]


def by_default(K, horizon):
    """One call per round, and nothing swept."""
    return tw.LyapunovDescent(K, horizon=horizon)


@pytest.mark.parametrize("name", ["abilene", pytest.param("carbon", marks=pytest.mark.soak)])
def test_the_default_is_on_the_frontier_of_exact_projection_at_one_call_a_round(name):
    try:
        problem = tw.problems.named(name)()
    except InvalidInput as missing:
        pytest.skip(str(missing))
    kinds = {"SinhaVaze": tw.baselines.SinhaVaze, "by default": by_default}
    found = tw.compare(kinds, problem, cautions=CAUTIONS)
    (ours,) = found.frontier(name, "by default")
    assert ours.calls <= 1.0
    assert ours.infeasibility <= 1e-9
    assert found.ranking(name, "by default").gap <= ALLOWED


# --- decisions ------------------------------------------------------------------------------------


PROBLEM = tw.problems.adversarial(rounds=23, kind="moving")
LEARNERS = {
    "every round": tw.LyapunovDescent(PROBLEM.K, horizon=23),
    "blocks": tw.PrimalDual(PROBLEM.K, horizon=23),
    "a point each": tw.BanditPrimalDual(PROBLEM.K, horizon=23, block=4),
    "whole functions": tw.DriftPlusPenalty(PROBLEM.K, horizon=23),
}


def played(learner, stream):
    """Every round's point, one by one from the loop itself."""
    rows = []
    for move in tw.play(learner, stream):
        each = learner.needs is feedback.Bandit
        rows += list(to_numpy(move.x)) if each else [to_numpy(move.x)] * len(move.losses)
    return np.array(rows)


@pytest.mark.parametrize("every", [1, 5, 24])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_run_keeps_the_points_that_were_played_their_means_and_their_moves(name, every):
    learner = LEARNERS[name]
    run = tw.run(learner, PROBLEM.stream, decisions=True, every=every)
    found, points = run.decisions, played(learner, PROBLEM.stream)
    np.testing.assert_array_equal(found.points, points[::every])
    np.testing.assert_array_equal(found.rounds, np.arange(0, 23, every))
    assert (len(found), found.times) == (len(points[::every]), None)
    losses = [PROBLEM.stream.losses[t : t + 1].values(points[t])[0] for t in range(23)]
    np.testing.assert_allclose(run.losses, losses, atol=1e-12)
    np.testing.assert_allclose(run.churn, moved(points), rtol=1e-12, atol=1e-15)
    last = points[run.trajectory.edges[-2] :].mean(axis=0)
    np.testing.assert_allclose(run.trajectory.mean, points.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(run.trajectory.means[-1], last, atol=1e-12)


def test_nothing_is_kept_unless_it_is_asked_for():
    learner = LEARNERS["every round"]
    plain, asked = (tw.run(learner, PROBLEM.stream, decisions=x) for x in (False, True))
    assert plain.decisions is None
    np.testing.assert_array_equal(asked.losses, plain.losses)
    found = tw.run(learner, PROBLEM.stream[:0], decisions=True).decisions
    assert (len(found), found.points.shape) == (0, (0, *PROBLEM.K.shape))
    assert found.to_pandas().empty
    for options in ({"every": 0}, {"every": 1.5}, {"decisions": "yes"}):
        with pytest.raises((errors.InvalidInput, errors.WrongType), match=next(iter(options))):
            tw.run(learner, PROBLEM.stream, **{"decisions": True} | options)


def test_what_was_played_in_place_of_a_decision_is_what_is_kept():
    K = tw.sets.Simplex(2)
    rows = [[np.nan] * 2, [0.25, 0.75], [np.nan] * 2]
    stream = tw.Stream(tw.functions.Linear([[1.0, 2.0]] * 3), played=rows)
    found = tw.run(tw.LyapunovDescent(K), stream, decisions=True).decisions
    np.testing.assert_array_equal(found.points[1], [0.25, 0.75])


# names


LINKS = [("a", "b"), ("a", "c"), ("b", "c")]
FLOWS = tw.sets.FlowPolytope.from_edges(LINKS, source="a", target="c")


def test_entries_are_called_by_labels_then_as_the_set_has_them_then_by_places():
    assert entry_names(FLOWS) == entry_names(FLOWS, ["1", "2"]) == ("a > b", "a > c", "b > c")
    assert entry_names(FLOWS, ["fibre", "radio", "7"]) == ("fibre", "radio", "7")
    simplex = tw.sets.Simplex(2)
    for labels in ((), ("day", "day"), ("one",)):
        assert entry_names(simplex, labels) == ("entry 1", "entry 2")
    square = ("entry 1, 1", "entry 1, 2", "entry 2, 1", "entry 2, 2")
    assert entry_names(tw.sets.BoundedPSD(2, 1.0)) == square


# times

COSTS = tw.functions.Linear([[1.0, 2.0]] * 3)
NANOSECONDS = [1772366400000000001 + i for i in range(3)]
HOURS = [datetime(2026, 3, 1, 10 + i, tzinfo=timezone(timedelta(hours=2))) for i in range(3)]


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        (["2026-03-01", "2026-03-02", "2026-03-03"], ["2026-03-01", "2026-03-02", "2026-03-03"]),
        (["2026-03-01", "2026-03-01T06:00", None], ["2026-03-01T00:00", "2026-03-01T06:00", ""]),
        (HOURS, [f"2026-03-01T{hour:02}:00" for hour in (8, 9, 10)]),
        ([0, 60, 120], ["0", "60", "120"]),
        ([0.5, 1.0, np.nan], ["0.5", "1", ""]),
        (np.array(NANOSECONDS), [str(each) for each in NANOSECONDS]),
    ],
)
def test_times_are_those_that_were_given(given, texts):
    stream = tw.Stream(COSTS, time=given)
    assert time_texts(stream.stamps) == texts
    np.testing.assert_array_equal(stream[1:].stamps, stream.stamps[1:])
    found = tw.run(tw.LyapunovDescent(tw.sets.Simplex(2)), stream, decisions=True, every=2)
    np.testing.assert_array_equal(found.decisions.times, stream.stamps[::2])


# as a table


def test_a_table_has_a_column_an_entry_under_the_round_or_its_time():
    learner, costs = tw.LyapunovDescent(FLOWS), tw.functions.Linear([[1.0, 2.0, 3.0]] * 3)
    plain = tw.run(learner, tw.Stream(costs), decisions=True).decisions.to_pandas()
    assert list(plain.columns) == ["a > b", "a > c", "b > c"]
    assert (plain.index.name, plain.index.tolist()) == ("round", [0, 1, 2])
    days = ["2026-03-01", "2026-03-02", "2026-03-03"]
    dated = tw.run(learner, tw.Stream(costs, time=days), decisions=True, every=2)
    frame = dated.decisions.to_pandas()
    assert (frame.index.name, frame.index.strftime("%d").tolist()) == ("time", ["01", "03"])
    np.testing.assert_array_equal(frame.to_numpy(), plain.to_numpy()[::2])


def test_what_is_printed_is_short():
    stream = tw.Stream(tw.functions.Linear(np.ones((300, 40))))
    found = tw.run(tw.LyapunovDescent(tw.sets.Simplex(40)), stream, decisions=True).decisions
    lines = repr(found).splitlines()
    assert len(lines) == 9
    assert max(map(len, lines)) <= 80


# --- verdicts -------------------------------------------------------------------------------------


amounts = st.floats(1e-3, 1e6)


@given(own=amounts, other=amounts, ours=st.floats(0, 10), theirs=st.floats(0, 10))
def test_the_direction_is_that_of_the_numbers(own, other, ours, theirs):
    sentence = beside(("A", "B"), (own, other), (ours, theirs))
    assert sentence.startswith("A cost ")
    assert sentence.endswith(("(lower is better).", "; lower is better)."))
    cost = sentence.partition(" B")[0]
    assert ("less than" in cost) == (own < other and abs(own - other) > 5e-4 * other)
    assert ("more than" in cost) == (own > other and abs(own - other) > 5e-4 * other)
    if ours and theirs and not 0.95 < ours / theirs < 1.06:
        assert ("times less" in sentence) == (ours < theirs)


@pytest.mark.parametrize(("own", "other", "word"), [(-2.0, -1.0, "less"), (1.0, -1.0, "more")])
def test_losses_below_zero_have_no_shares(own, other, word):
    sentence = beside(("A", "B"), (own, other), (0.0, 0.0))
    assert "%" not in sentence
    assert f"{word} than B" in sentence


def test_runs_are_compared_with_re_solving_or_the_best_fixed_decision():
    problem = tw.problems.routing(60)
    kinds = (tw.LyapunovDescent, tw.baselines.SinhaVaze, tw.baselines.Resolve)
    runs = [tw.run(kind(problem.K), problem.stream) for kind in kinds]
    names = [type(run.learner).__name__ for run in runs]
    share = runs[0].losses.mean() / runs[2].losses.mean() - 1.0
    assert f"{100 * abs(share):.2g} % more than Resolve" in verdict(runs, names)
    assert "the best fixed decision in hindsight" in verdict(runs[:1], names[:1])
    assert verdict([tw.run(runs[0].learner, problem.stream[:0])], names[:1]) == ""
    assert np.isfinite(share)
