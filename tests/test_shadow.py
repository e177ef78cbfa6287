"""What would we have saved?"""

from __future__ import annotations

import numpy as np
import pytest

import tidewolf as tw
from killed import COSTS

PLAIN = tw.LyapunovDescent(tw.sets.Simplex(5))


def test_an_incumbent_learns_what_would_have_been_saved():
    session = tw.Session(PLAIN)
    incumbent = np.eye(5)[np.argmax(COSTS.mean(0))]
    played = own = 0.0
    for _ in range(40):
        own += float(COSTS[0] @ session.play())
        played += float(COSTS[0] @ incumbent)
        session.observe(costs=COSTS[0], capacities=np.full(5, 0.4), played=incumbent)
    shadow = session.overrides
    assert (shadow.rounds, shadow.of, shadow.valued) == (40, 40, 40)
    assert shadow.saved_loss == pytest.approx(played - own)
    assert shadow.saved_violation == pytest.approx(40 * 0.6 - shadow.own_violation)
    assert "In 40 of 40 rounds another point was played" in str(shadow)
    assert f"the violation was {24:.4g}" in str(shadow)
    session.observe(loss_gradient=COSTS[0], constraint_value=0.0, played=incumbent)
    assert "In 40 of them the loss was" in str(session.overrides)


@pytest.mark.parametrize("kind", [tw.LyapunovDescent, tw.Ensemble], ids=lambda kind: kind.__name__)
def test_bounds_for_what_was_played_are_those_of_the_decisions_and_what_is_measured(kind):
    learner, T = kind(PLAIN.K), 40
    losses = tw.functions.Linear(COSTS[:T])
    limits = tw.functions.Capacity(np.full((T, 5), 0.4))
    incumbent = np.tile(np.eye(5)[0], (T, 1))
    own = tw.run(learner, tw.Stream(losses, limits))
    shadow = tw.run(learner, tw.Stream(losses, limits, played=incumbent))
    worse, more = ((shadow.losses - own.losses).sum(), (shadow.violations - own.violations).sum())
    assert more > 1.0
    assert shadow.bound.regret == pytest.approx(own.bound.regret + worse)
    assert shadow.bound.violation == pytest.approx(own.bound.violation + more)
    assert shadow.certificate.holds
