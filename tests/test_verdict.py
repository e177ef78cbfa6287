"""The verdict compares the right numbers in the right direction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.evaluation.metrics import Outcome, beside, verdict

amounts = st.floats(1e-3, 1e6)


@given(own=amounts, other=amounts, ours=st.floats(0, 10), theirs=st.floats(0, 10))
def test_the_direction_is_that_of_the_numbers(own, other, ours, theirs):
    sentence = beside(Outcome("A", own, ours), Outcome("B", other, theirs))
    assert sentence.startswith("A cost ")
    assert sentence.endswith(("(lower is better).", "; lower is better)."))
    cost = sentence.partition(" B")[0]
    assert ("less than" in cost) == (own < other and abs(own - other) > 5e-4 * other)
    assert ("more than" in cost) == (own > other and abs(own - other) > 5e-4 * other)
    if ours and theirs and not 0.95 < ours / theirs < 1.06:
        assert ("times less" in sentence) == (ours < theirs)


@pytest.mark.parametrize(("own", "other", "word"), [(-2.0, -1.0, "less"), (1.0, -1.0, "more")])
def test_losses_below_zero_have_no_shares(own, other, word):
    sentence = beside(Outcome("A", own, 0.0), Outcome("B", other, 0.0))
    assert "%" not in sentence
    assert f"{word} than B" in sentence


def test_runs_are_compared_with_re_solving_or_the_best_fixed_decision():
    problem = tw.problems.routing(60)
    runs = [
        tw.run(make(problem.K), problem.stream)
        for make in (tw.LyapunovDescent, tw.baselines.SinhaVaze, tw.baselines.Resolve)
    ]
    names = [type(run.learner).__name__ for run in runs]
    share = runs[0].losses.mean() / runs[2].losses.mean() - 1.0
    assert f"{100 * abs(share):.2g} % more than Resolve" in verdict(runs, names)
    assert "the best fixed decision in hindsight" in verdict(runs[:1], names[:1])
    assert verdict([tw.run(runs[0].learner, problem.stream[:0])], names[:1]) == ""
    assert np.isfinite(share)
