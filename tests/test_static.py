"""Staying at the start, and the prior of losses that declare their curvature."""

import numpy as np
import pytest

import tidewolf as tw


def reverting(days, stocks, seed):
    rng, level = np.random.default_rng(seed), np.zeros((days + 1, stocks))
    for t in range(days):
        level[t + 1] = 0.9 * level[t] + 0.05 * rng.standard_normal(stocks)
    return tw.functions.LogWealth(np.exp(np.diff(level, axis=0)))


@pytest.mark.parametrize("experts", [(), (tw.experts.Static(),), ("mine", tw.experts.Static())])
def test_a_run_loses_to_each_expert_at_most_what_its_prior_says(experts):
    learner = tw.Ensemble(tw.sets.Simplex(5), experts=experts)
    run = tw.run(learner, tw.Stream(reverting(250, 5, 0)))
    assert learner.prior.sum() == pytest.approx(1.0)
    for expert, prior in zip(run.experts, learner.prior, strict=True):
        assert expert.guard <= np.log(1.0 / prior) + 1e-9


def test_the_prior_is_on_staying_and_small_steps_and_advice_keeps_its_share():
    staying = tw.Ensemble(tw.sets.Simplex(2), experts=("mine", tw.experts.Static())).prior
    assert staying[4] == pytest.approx(1.0 / 6.0)
    assert staying[5] == pytest.approx(0.9 * 5.0 / 6.0)
    assert (np.diff(staying[:4]) < 0.0).all()  # of the steps 0.03, 0.1, 0.3 and 1


def test_losses_without_curvature_have_no_prior():
    learner = tw.Ensemble(tw.sets.Simplex(2), experts=(tw.experts.Static(),))
    run = tw.run(learner, tw.Stream(tw.functions.Linear([[1.0, 1.0]])))  # all experts lose as much
    assert not run.final_state.mixer.totals.any()


def test_it_stays_where_the_first_round_was_played():
    learner = tw.Ensemble(tw.sets.Simplex(2), start=[0.2, 0.8], experts=(tw.experts.Static(),))
    session = tw.Session(learner)
    for _ in range(3):
        session.play()
        session.observe(costs=[0.0, 1.0])
    assert (session.learner.proposals(session.state)[-1].point == [0.2, 0.8]).all()
