"""What takes longer: `make soak`."""

import numpy as np
import pytest

import tidewolf as tw

pytestmark = pytest.mark.soak


def test_a_hundred_thousand_rounds_stay_in_the_set_in_flat_memory():
    problem = tw.problems.routing(rounds=100_000, seed=5)
    learner, worst, sizes = tw.LyapunovDescent(problem.K, horizon=10_000), 0.0, []
    for t, played in enumerate(tw.play(learner, problem.stream)):
        worst = max(worst, problem.K.infeasibility(played.x))
        if t % 10_000 == 9_999:
            sizes.append(len(learner.save(played.state)))
            assert abs(played.state.point.active.weights.sum() - 1.0) <= 1e-12
    assert worst <= 1e-9
    assert max(sizes) <= 3 * sizes[0] + 20_000
    assert played.state.calls <= 100_000


@pytest.mark.parametrize("kind", tw.functions.every(), ids=lambda kind: kind.__name__)
def test_every_function_under_many_seeds(kind):
    for f in kind.examples():
        for seed in range(100):
            inside = np.random.default_rng(seed).uniform(0.1, 3.0, (4, *f.shape))
            tw.testing.check_function(f, seed=seed, points=None if f.domain is None else inside)
