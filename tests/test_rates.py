"""Growth exponents: those of exact powers, their intervals, totals without a logarithm, and runs of
learners.
"""

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.evaluation.rates import growth
from tidewolf.functions import Capacity, Linear

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


@pytest.mark.parametrize(
    ("totals", "reason"),
    [([1.0, 0.0, -3.0], "zero in 2 of 3 runs"), ([1.0, None, 2.0], "known for 1 of 3 runs")],
)
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
    wide = [
        replace(run, known=tw.Comparator(None, run.losses.sum() - run.rounds**0.5, math.inf, None))
        for run in runs(tw.LyapunovDescent, (20, 40, 80))
    ]
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
