"""Rounds on the simplex in two passes: the laws that kernels/corners.py keeps, held against the
kernel for every set (kernels/rounds.py), its naive twin, and against the learner without any.
"""

import numpy as np
import pytest

import tidewolf as tw
from covering import thinned
from tidewolf.methods.compiled_rounds import Records, StreamFunctions, scalars
from tidewolf.projection import ActiveSet


def stream(n, rounds, seed=0, kind="capacities", scale=1.0):
    """Costs around a mean, and limits that are broken now and then; `scale` is that of points."""
    rng = np.random.default_rng(seed)
    costs = tw.functions.Linear(rng.normal(size=n) + rng.normal(size=(rounds, n)))
    if kind == "capacities":
        room = scale * (3.0 / n) * (1.0 + 0.4 * rng.random((rounds, n)))
        return tw.Stream(costs, tw.functions.Capacity(room))
    if kind == "affine":
        slopes = rng.normal(size=(rounds, n))
        return tw.Stream(costs, tw.functions.Affine(slopes, -0.05 * scale * rng.random(rounds)))
    if kind == "several":
        slopes = rng.normal(size=(rounds, 3, n))
        return tw.Stream(costs, tw.functions.MaxAffine(slopes, 0.3 * rng.random((rounds, 3))))
    return tw.Stream(costs)


def generic(K, **settings):
    """The learner on the kernel for every set."""
    learner = tw.LyapunovDescent(K, **settings)
    learner.compiled._corner = None
    return learner


def numbers(run):
    """What was recorded of a run, by name."""
    return {
        "losses": np.asarray(run.losses),
        "violations": np.asarray(run.violations),
        "distances": np.asarray(run.distances),
        "calls": np.asarray(run.calls),
        "churn": np.asarray(run.churn),
        "means": run.trajectory.means,
        "x": run.final_state.point.x,
        "y": run.final_state.point.y,
        "before": run.final_state.point.before_projection,
        "weights": run.final_state.point.active.weights,
    }


CASES = [
    (2, 60, "capacities", {}),
    (7, 300, "capacities", {}),
    (7, 200, "several", {"calls_per_round": 3}),
    (40, 300, "capacities", {"calls_per_round": 0.5}),
    (40, 100, "affine", {}),
    (40, 60, "none", {"tolerance": 1e-9, "calls_per_round": 4}),
    (3000, 40, "capacities", {"calls_per_round": 2}),
    (3000, 20, "affine", {}),
]


@thinned(2, case={"-".join(map(str, case)): case for case in CASES}, total={"1": 1.0, "2.5": 2.5})
def test_rounds_are_those_of_the_kernel_for_every_set(case, total):
    """Until what rounding left grows: the other one rounds directions, this one does not."""
    n, rounds, kind, settings = case
    K, given = tw.sets.Simplex(n, total=total), stream(n, rounds, 1, kind, total)
    own, naive = tw.LyapunovDescent(K, **settings), generic(K, **settings)
    require_alike(tw.run(own, given[:25]), tw.run(naive, given[:25]))
    ours, theirs = tw.run(own, given), tw.run(naive, given)
    assert ours.certificate.holds is not False
    assert ours.losses.sum() == pytest.approx(theirs.losses.sum(), rel=1e-3)
    assert ours.violations.sum() == pytest.approx(theirs.violations.sum(), rel=1e-2, abs=1e-9)


def require_alike(own, naive):
    ours, theirs = numbers(own), numbers(naive)
    for name, expected in theirs.items():
        np.testing.assert_allclose(ours[name], expected, rtol=1e-8, atol=1e-9, err_msg=name)
    rows = [scalars(run.final_state)[0] for run in (own, naive)]
    np.testing.assert_allclose(*rows, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n", [9, 2500])
@pytest.mark.parametrize("kind", ["capacities", "affine"])
def test_how_many_rounds_are_played_at_a_time_changes_no_bit(n, kind):
    rounds, given = 70, stream(n, 70, 3, kind)
    learner = tw.LyapunovDescent(tw.sets.Simplex(n), calls_per_round=1.5)
    functions = StreamFunctions.of(given).at(0)

    def parts(chunk):
        records = Records(n, rounds, n if kind == "capacities" else 0, False, rounds + 1, 3)
        records.ends, records.room = np.array([20, 33, 70]), rounds + 1
        records.when = np.full((4, records.each.shape[1]), -1)
        records.marks[[6]] = 1.0
        start, t, columns = learner.compiled.begin(learner.start()), 0, []
        whole = records.columns
        while t < rounds:
            records.columns, records.marks[7] = whole[t:], 0.0
            found = learner.compiled.play(start, functions, t, min(chunk, rounds - t), records)
            assert found.weighed
            assert not found.unusual
            columns.append(records.weighed[: int(records.marks[7]), 0, 0].copy())
            start, t = found.after, t + found.done
        last = (start.x, start.y, start.before, start.weights, start.numbers)
        rows = records.last, records.total, records.means, records.each, records.when
        return (*last, whole, np.delete(records.marks, 7), *rows, np.concatenate(columns))

    once = parts(rounds)
    for chunk in (1, 7):
        for one, other in zip(once, parts(chunk), strict=True):
            np.testing.assert_array_equal(one, other)
    if kind == "capacities":
        assert once[10 - 1].max() > 0.0


def test_other_active_sets_are_left_to_the_kernel_for_every_set():
    K, given = tw.sets.Simplex(4), stream(4, 30, 6)
    learner = tw.LyapunovDescent(K, start_at=np.array([0.4, 0.3, 0.2, 0.1]))
    naive = generic(K, start_at=np.array([0.4, 0.3, 0.2, 0.1]))
    one, other = tw.run(learner, given[:1]), tw.run(naive, given[:1])
    np.testing.assert_array_equal(one.final_state.point.x, other.final_state.point.x)
    one, other = tw.run(learner, given), tw.run(naive, given)
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-7)
    at_most = tw.LyapunovDescent(tw.sets.Simplex(4, at_most=True))
    assert at_most.compiled._corner is None


def test_flat_costs_move_nothing():
    K = tw.sets.Simplex(2000)
    given = tw.Stream(tw.functions.Linear(np.full((5, 2000), 0.1)))
    run = tw.run(tw.LyapunovDescent(K), given)
    np.testing.assert_array_equal(run.final_state.point.x, K.center)
    assert run.losses == pytest.approx(0.1)


def test_states_that_go_on_from_one_share_a_table_and_disturb_nobody():
    K, given = tw.sets.Simplex(30), stream(30, 40, 8)
    learner = tw.LyapunovDescent(K)
    functions = StreamFunctions.of(given).at(0)
    kernel, start = learner.compiled, learner.compiled.begin(learner.start())
    for t in range(3):
        start = kernel.play(start, functions, t, 1).after
    ways = []
    for first in (3, 20, 3):
        after = start
        for t in range(first, first + 10):
            after = kernel.play(after, functions, t, 1).after
        ways.append(after)
    for after in ways:
        own = ActiveSet(after.atoms, after.weights, after.x)
        np.testing.assert_array_equal(own.atoms.combine(own.weights, own.x), after.x)
    np.testing.assert_array_equal(ways[0].x, ways[2].x)
    assert ways[0].atoms is not ways[1].atoms


def test_a_table_grows_by_rows_alone():
    n = 20_000
    rng = np.random.default_rng(9)
    learner, state = tw.LyapunovDescent(tw.sets.Simplex(n)), None
    given = tw.Stream(tw.functions.Linear(rng.normal(size=(150, n))))
    for one in tw.play(learner, given):
        state = one.state
    atoms = state.point.active.atoms
    assert len(state.point.active.weights) > 100
    assert atoms._gram.size <= 64
    arrays = (atoms.starts, atoms.indices, atoms.values)
    assert sum(array.nbytes for array in arrays) <= 12 * n * 2 + 64 * len(atoms)
    assert len(atoms._vertices) <= 1
