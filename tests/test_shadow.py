"""What would we have saved?"""

import numpy as np
import pytest

import tidewolf as tw
from killed import COSTS

PLAIN = tw.LyapunovDescent(tw.sets.Simplex(5))


def test_an_incumbent_learns_what_would_have_been_saved():
    session, incumbent = tw.Session(PLAIN), np.eye(5)[np.argmax(COSTS.mean(0))]
    played = own = 0.0
    for _ in range(40):
        own += float(COSTS[0] @ session.play())
        played += float(COSTS[0] @ incumbent)
        session.observe(costs=COSTS[0], capacities=np.full(5, 0.4), played=incumbent)
    shadow = session.overrides
    assert (shadow.rounds, shadow.valued) == (40, 40)
    assert shadow.saved_loss == pytest.approx(played - own)
    assert shadow.saved_violation == pytest.approx(40 * 0.6 - shadow.own_violation)
    assert "In 40 rounds another point was played" in str(shadow)
    assert f"the violation was {24:.4g}" in str(shadow)
    session.observe(loss_gradient=COSTS[0], constraint_value=0.0, played=incumbent)
    assert "In 40 of them the loss was" in str(session.overrides)
