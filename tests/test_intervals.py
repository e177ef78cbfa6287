"""Interval regret and violation: the family, its comparators, verdicts, and the learners' promises
for parts of a run.
"""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from covering import few
from streams import hostile
from tidewolf.evaluation.intervals import _family, _Parts, shared_intervals
from tidewolf.methods import base, capabilities
from tidewolf.problems.adversarial import KINDS

EVERY = {**tw.learners.every(), **tw.baselines.every()}
PROMISING = [name for name, kind in EVERY.items() if issubclass(kind, capabilities.BoundsParts)]
# these promise nothing for a part of the rounds
SILENT, K = ["LyapunovDescent", "PrimalDual", "SinhaVaze"], tw.sets.Simplex(6)


def played(kind, rounds, phase, learner=None):
    stream = tw.problems.adversarial(rounds, 1, kind=kind, K=K, phase=phase).stream
    return tw.run(learner or tw.LyapunovDescent(K, horizon=rounds), stream)


@given(rounds=st.integers(1, 3000), least=st.integers(1, 200))
def test_the_family_is_what_it_says(rounds, least):
    family = _family(rounds, least)
    every = set(family)
    assert len(every) == len(family)
    assert family[-1] == (0, rounds)
    assert all(0 <= start < stop <= rounds for start, stop in family)
    lengths = [stop - start for start, stop in family]
    assert lengths == sorted(lengths)
    assert all(length & (length - 1) == 0 and length >= least for length in lengths[:-1])
    assert all((rounds - length, rounds) in every for length in lengths)
    assert len(family) <= 4 * rounds / least + 2 * math.log2(rounds + 1) + 1


@given(data=st.data(), rounds=st.integers(2, 2000), least=st.integers(1, 100))
def test_every_long_interval_holds_a_third_of_itself(data, rounds, least):
    power = 1 << (least - 1).bit_length()
    if rounds < 2 * power:
        return
    length = data.draw(st.integers(2 * power, rounds))
    start = data.draw(st.integers(0, rounds - length))
    inside = [e - s for s, e in _family(rounds, least) if start <= s and e <= start + length]
    assert max(inside) > length / 3
    assert len(_family(rounds, max(1, rounds // 32))) <= 200, "by default"


def test_numbers_are_those_of_the_rounds_and_of_their_own_comparator():
    run, told = played("moving", 150, 30), []
    found = tw.intervals(run, 25, progress=lambda *done: told.append(done))
    assert told == [(i + 1, len(found.every)) for i in range(len(found.every))]
    summary = json.loads(json.dumps(found.summary(), allow_nan=False))
    assert len(summary["intervals"]) == len(found.every)
    assert {each.length for each in found.every} == {32, 64, 128, 150}
    for each in found.every[::3]:
        best = tw.best_in_hindsight(K, run.stream, each.start, each.stop)
        loss = run.losses[each.start : each.stop].sum()
        assert each.regret == pytest.approx((loss - best.upper, loss - best.lower))
        assert each.violation == pytest.approx(run.violations[each.start : each.stop].sum())
    assert found.worst_regret.regret[1] == max(each.regret[1] for each in found.every)
    assert found.worst_violation.violation == max(each.violation for each in found.every)
    assert found.every[-1].comparator is run.comparator
    assert found.infeasible == ()


def test_runs_on_one_stream_share_the_best_points_of_intervals():
    first, other = (tw.problems.adversarial(32, seed, K=K).stream for seed in (0, 1))
    kinds = (tw.LyapunovDescent, tw.LyapunovFrankWolfe)
    runs = [*(tw.run(kind(K), first) for kind in kinds), tw.run(tw.LyapunovDescent(K), other)]
    shared = shared_intervals(runs, 8)
    for run, found in zip(runs, shared, strict=True):
        assert found.every == tw.intervals(run, 8).every
    parts = [[each.comparator for each in found.every[:-1]] for found in shared[:2]]
    assert all(one is other for one, other in zip(*parts, strict=True))


def test_intervals_without_a_feasible_point_have_a_verdict_and_a_proof():
    found = tw.intervals(played("excluding", 400, 100), 20)
    for each in found.every:
        assert each.feasible is (each.start // 100 == (each.stop - 1) // 100)
        assert (each.regret is None) is (each.feasible is False)
    assert found.worst_regret.feasible
    assert "none" in repr(found)


@pytest.mark.parametrize("kind", few(2, KINDS))
def test_promises_for_intervals_are_kept(kind):
    """On a dense family, for every learner that promises something for a part of the rounds."""
    stream, runs = tw.problems.adversarial(128, 1, kind=kind, K=K, phase=32).stream, []
    for name in (*PROMISING, *SILENT):
        known = {"loss_lipschitz", "constraint_lipschitz"} & EVERY[name].__dataclass_fields__.keys()
        runs.append(tw.run(EVERY[name](K, horizon=128, **dict.fromkeys(known, 1.0)), stream))
    for found in shared_intervals(runs, 8):
        assert found.holds is (None if found.learner in SILENT else True), found.failures


@pytest.mark.parametrize("kind", few(1, KINDS))
def test_bounds_of_long_intervals_say_something_and_are_kept(kind):
    """Where the bound is below what no run of members can exceed."""
    rounds = 4096
    ones = {"loss_lipschitz": 1.0, "constraint_lipschitz": 1.0}
    learner = tw.DriftPlusPenalty(K, horizon=rounds, calls_per_round=4.0, **ones)
    found = tw.intervals(played(kind, rounds, 1024, learner), 512)
    assert found.holds, found.failures
    feasible = [each for each in found.every if each.feasible]
    assert len(feasible) >= 10
    for each in feasible:
        assert each.bound.regret < 0.8 * K.diameter * each.length
        assert each.bound.violation < 0.8 * K.diameter * each.length


SOME = few(1, [("DriftPlusPenalty", *SILENT), (*PROMISING, *SILENT)])


@pytest.mark.parametrize("names", SOME, ids=["few", "every"])
def test_after_a_deadlock_drift_plus_penalty_keeps_a_guarantee_that_the_others_break(names):
    """No point is common, but the second half has one. Weights that grow with all violation so far
    are too large to listen to losses by then, and a damped multiplier forgets slowly; the bound of
    DriftPlusPenalty for these rounds is below what they lose.
    """
    line, rounds = tw.sets.Box([-1.0], [1.0]), 2048
    stream = tw.problems.adversarial(rounds, kind="deadlock", K=line, phase=rounds // 2).stream
    regrets, bounds = {}, {}
    runs = [tw.run(EVERY[name](line, horizon=rounds), stream) for name in names]
    for name, found in zip(names, shared_intervals(runs, rounds // 4), strict=True):
        assert found.every[-1].feasible is False
        half = f"rounds {rounds // 2} to {rounds}"
        (second,) = [each for each in found.every if str(each) == half]
        assert second.feasible
        assert found.holds is not False
        regrets[name] = second.regret[0] / (line.diameter * second.length)
        bounds[name] = second.bound.regret and second.bound.regret / (line.diameter * second.length)
    assert regrets["LyapunovDescent"] > 0.6
    assert regrets["SinhaVaze"] > 0.6
    assert 0.55 > regrets["PrimalDual"] > 0.5 > bounds["DriftPlusPenalty"]
    assert regrets["DriftPlusPenalty"] < bounds["DriftPlusPenalty"] < 0.4


class Sure(tw.LyapunovDescent):
    """A learner that promises for every interval what no run of members can exceed."""

    share = 1.0

    def bound_between(self, record, start, stop):
        most = self.share * self.K.diameter * (stop - start)
        return base.Bound(most, most)


class Bold(Sure):
    """A learner that promises a thousandth of that."""

    share = 1e-3


def test_promises_are_judged():
    sure = played("excluding", 200, 50, Sure(K, horizon=200))
    runs = [sure, tw.run(Bold(K, horizon=200), sure.stream)]
    for found, holds in zip(shared_intervals(runs, 10), (True, False), strict=True):
        assert found.holds is holds
        assert len(found.checks) == 2 * (len(found.every) - len(found.infeasible))
        for what in ("regret", "violation"):
            failed = any(f"the {what} of rounds" in sentence for sentence in found.failures)
            assert failed is not holds


def test_without_an_exact_comparator_violations_are_still_counted():
    limits = tw.functions.Custom(lambda t, x: x @ x / 2 - 0.1, lambda t, x: x, (3,), 40)
    stream = tw.Stream(tw.functions.Linear(np.ones((40, 3))), limits)
    found = tw.intervals(tw.run(tw.LyapunovDescent(tw.sets.Simplex(3), horizon=40), stream))
    assert found.worst_regret is None
    assert found.worst_violation == found.every[-1]
    assert found.holds is None
    assert "none" in repr(found)


@pytest.mark.parametrize("kind", ["switching", "random signs", "rare and huge", "capacities"])
@pytest.mark.parametrize("make", [tw.Ensemble, tw.LyapunovDescent, tw.baselines.Resolve])
def test_bounds_of_any_interval_are_kept_by_any_learner(kind, make):
    stream, rng = hostile(kind, K, 60, 7), np.random.default_rng(len(kind))
    run = tw.run(make(K), stream, decisions=True)
    for _ in range(12):
        start, stop = sorted(rng.choice(61, 2, replace=False).tolist())
        bound = _Parts(run, [start, stop]).bound(start, stop)
        best = tw.best_in_hindsight(K, stream, start, stop)
        loss, violation = (float(x[start:stop].sum()) for x in (run.losses, run.violations))
        slack = 1e-7 * (1.0 + abs(loss) + float(np.abs(stream.losses.C[start:stop]).sum()))
        assert loss - best.upper <= bound.regret + slack
        assert violation <= bound.violation + slack
        free = tw.best_in_hindsight(K, tw.Stream(stream.losses), start, stop).upper
        if violation == 0.0 and best.upper == pytest.approx(free):
            assert bound.regret == pytest.approx(loss - best.upper, abs=slack)
    assert tw.intervals(run, 16).holds


def test_the_certificate_has_the_bound_of_every_interval():
    stream = hostile("switching", K, 16, 5)
    run, bare = (tw.run(tw.Ensemble(K), stream, decisions=kept) for kept in (True, False))
    found, own = run.certificate.intervals, tw.intervals(run)
    assert found.summary() == own.summary()
    assert run.certificate.intervals is found
    assert all(None not in each.bound[:2] for each in found.every if each.feasible)
    assert "certificate.intervals" in str(run)
    assert "certificate.intervals" not in str(bare)
    assert "decisions=True" in str(bare.certificate.intervals)
    assert run.certificate == bare.certificate
