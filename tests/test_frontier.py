"""What the flagship must reach: one oracle call a round, members only, and the frontier of exact
projection.
"""

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core.errors import InvalidInput
from tidewolf.evaluation.frontier import ALLOWED

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
    found = tw.compare(
        {"SinhaVaze": tw.baselines.SinhaVaze, "by default": by_default},
        problem,
        cautions=CAUTIONS,
    )
    (ours,) = found.frontier(name, "by default")
    assert ours.calls <= 1.0
    assert ours.infeasibility <= 1e-9
    assert found.ranking(name, "by default").gap <= ALLOWED


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_oracle_calls_on_routing(seed):
    """Calls are exact: a budget is kept, unspent calls are banked, and the default needs fewer than
    its one a round.
    """
    problem = tw.problems.routing(rounds=1000, seed=seed)
    learners = {
        rate: tw.LyapunovDescent(problem.K, horizon=1000, calls_per_round=rate)
        for rate in (0.1, 0.5, 1.0, 3.0)
    }
    runs = {rate: tw.run(learner, problem.stream) for rate, learner in learners.items()}
    for rate, run in runs.items():
        assert (np.cumsum(run.calls) <= rate * np.arange(1, 1001) + 1e-6).all()
        assert run.max_infeasibility <= 1e-9
    assert runs[1.0].oracle_calls <= 950
    assert runs[3.0].oracle_calls <= 2.0 * runs[1.0].oracle_calls, (
        "more calls than the projection needs are not spent"
    )
    assert runs[0.1].oracle_calls >= 95
