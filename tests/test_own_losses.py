"""Losses known by values and gradients alone: a bracket of the best fixed point, on any set."""

import numpy as np
import pytest

import tidewolf as tw
from test_functions import Distance
from tidewolf.hindsight import cutting_planes

SETS = {
    "simplex": tw.sets.Simplex(6),
    "box": tw.sets.Box(-np.ones(4), np.ones(4)),
    "capped": tw.sets.CappedSimplex(5, 0.4),
    "flow": tw.sets.FlowPolytope.examples()[0],
    "ball": tw.sets.L2Ball(4, 2.0, np.ones(4)),
}
each_set = pytest.mark.parametrize("K", SETS.values(), ids=SETS.keys())


def as_custom(f):
    """The same functions, of which nothing is known any more."""
    each = [f[t : t + 1] for t in range(len(f))]
    given = (lambda t, x: each[t].values(x)[0]), (lambda t, x: each[t].gradients(x)[0])
    return tw.functions.Custom(*given, f.shape, rounds=len(f))


def quadratics(K, rounds, seed):
    rng, n = np.random.default_rng(seed), K.shape[0]
    M = rng.normal(size=(rounds, n, n))
    return tw.functions.Quadratic(M @ M.swapaxes(1, 2) / n, rng.normal(size=(rounds, n)))


def limits(K, rounds, seed):
    """What the center keeps with room to spare."""
    room = 0.2 * K.radius * np.random.default_rng(seed).uniform(0.2, 1.0, (rounds, *K.shape))
    return tw.functions.Capacity(K.center + room)


def require_brackets(found, exact, gap):
    size = 1.0 + abs(exact.upper)
    assert found.feasible is True
    assert found.lower <= exact.upper + 1e-9 * size
    assert exact.lower <= found.upper + 1e-9 * size
    assert found.upper - found.lower <= gap * size


@each_set
@pytest.mark.parametrize("limited", [False, True])
def test_the_bracket_of_a_quadratic_written_as_custom_holds_the_exact_optimum(K, limited):
    losses = quadratics(K, 8, 1)
    constraints = limits(K, 8, 2) if limited else None
    exact = tw.best_in_hindsight(K, tw.Stream(losses, constraints))
    found = tw.best_in_hindsight(K, tw.Stream(as_custom(losses), constraints))
    assert found.method == "level bundle method on gradients"
    require_brackets(found, exact, 1e-4)
    x = found.point
    assert found.upper == pytest.approx(float(losses.values(x).sum()), rel=1e-12)
    assert K.infeasibility(x) <= 1e-9 * K.radius
    if constraints is not None:
        assert float(constraints.values(x).max()) <= 1e-9


@each_set
def test_kinks_are_no_harder(K):
    rng = np.random.default_rng(3)
    losses = tw.functions.MaxAffine(rng.normal(size=(3, 3, *K.shape)), rng.normal(size=(3, 3)))
    exact = tw.best_in_hindsight(K, tw.Stream(losses, limits(K, 3, 2)))
    found = tw.best_in_hindsight(K, tw.Stream(as_custom(losses), limits(K, 3, 2)))
    require_brackets(found, exact, 1e-4)


def test_matrices_and_chains_have_one_too():
    K, rng = tw.sets.NuclearBall((3, 2), 1.0), np.random.default_rng(0)
    targets = rng.normal(size=(4, 3, 2))
    near = tw.functions.Custom(
        lambda t, x: 0.5 * float(((x - targets[t]) ** 2).sum()),
        lambda t, x: x - targets[t],
        (3, 2),
        rounds=4,
    )
    losses = tw.functions.Chain((near, tw.functions.Linear(rng.normal(size=(2, 3, 2)))))
    found = tw.best_in_hindsight(K, tw.Stream(losses))
    for vertex in (K.lmo(rng.normal(size=(3, 2))) for _ in range(50)):
        assert float(losses.values(vertex).sum()) >= found.lower
    assert float(losses.values(found.point).sum()) == pytest.approx(found.upper, rel=1e-12)
    assert found.upper - found.lower <= 1e-3 * abs(found.upper)


def test_no_feasible_point_is_proved_as_for_built_in_losses():
    K, losses = tw.sets.Simplex(3), quadratics(tw.sets.Simplex(3), 2, 0)
    tight = tw.functions.Affine([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]], [0.5, 1.0])
    found = tw.best_in_hindsight(K, tw.Stream(as_custom(losses), tight))
    assert found.feasible is False
    assert found.infeasibility.rounds.tolist() == [0]


@pytest.mark.parametrize("K", [tw.sets.Simplex(6), tw.sets.L2Ball(6)], ids=["simplex", "ball"])
def test_few_looks_leave_a_wide_bracket_that_still_holds(K, monkeypatch):
    """Whatever is reached is what is reported."""
    losses = quadratics(K, 8, 5)
    exact, widths = tw.best_in_hindsight(K, tw.Stream(losses)), []
    for looks in (1, 3, 10, 100):
        monkeypatch.setattr(cutting_planes, "LOOKS", looks)
        found = tw.best_in_hindsight(K, tw.Stream(as_custom(losses)))
        require_brackets(found, exact, np.inf)
        widths.append(found.upper - found.lower)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 1e-4 * widths[0]


def test_a_point_that_breaks_a_limit_is_never_the_best(monkeypatch):
    """Whatever the solver proposes is looked at itself."""
    K, losses = tw.sets.Simplex(6), quadratics(tw.sets.Simplex(6), 8, 5)
    limits_ = tw.functions.Capacity(np.full((8, 6), 0.3))
    alone = tw.best_in_hindsight(K, tw.Stream(losses)).point
    monkeypatch.setattr(cutting_planes.CuttingPlanes, "_nearest", lambda self, best, level: alone)
    exact = tw.best_in_hindsight(K, tw.Stream(losses, limits_))
    found = tw.best_in_hindsight(K, tw.Stream(as_custom(losses), limits_))
    assert float(limits_.values(alone).max()) > 0.01
    assert float(limits_.values(found.point).max()) <= 1e-9
    require_brackets(found, exact, np.inf)


def test_a_class_of_ones_own_is_looked_at_as_well():
    """The point nearest to three corners of a triangle is its middle."""
    found = tw.best_in_hindsight(tw.sets.Simplex(3), tw.Stream(Distance(np.eye(3))))
    assert found.method == "level bundle method on gradients"
    assert found.lower - 1e-9 <= 2.0 <= found.upper + 1e-9
    assert found.upper - found.lower <= 1e-5


def test_slopes_of_extreme_sizes_are_refused():
    losses = tw.functions.Custom(lambda t, x: 1e200 * x[0], lambda t, x: np.array([1e200, 0.0]), 2)
    with pytest.raises(tw.core.errors.NotSupported, match=r"1e\+200"):
        tw.best_in_hindsight(tw.sets.Simplex(2), tw.Stream(losses))
