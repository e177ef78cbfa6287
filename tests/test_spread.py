"""What stands beside a mean: p99, the worst round, and the share of rounds broken."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.evaluation.formatting import percent
from tidewolf.evaluation.metrics import RoundNumbers, Spread, spread

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300)


@given(numbers)
def test_a_spread_is_in_order_and_holds_for_the_rounds(values):
    found = spread(np.array(values))
    assert found is not None
    assert min(values) <= found.p99 <= found.worst == max(values)
    assert values[found.worst_round] == found.worst
    assert found.worst not in values[: found.worst_round]
    # p99 lies between the two rounds beside it, so at most 1 % of them and one more are above it
    assert np.sum(np.array(values) > found.p99) <= 0.01 * len(values) + 1
    assert np.sum(np.array(values) >= found.p99 - 1e-9 * abs(found.p99)) >= 0.01 * len(values)
    assert found.mean == pytest.approx(np.mean(values), rel=1e-12, abs=1e-9)

    found, plain = RoundNumbers(np.array(values)), np.array(values)
    assert (found.p99, found.worst) == (np.quantile(plain, 0.99), plain.max())
    assert type(found + 1.0) is np.ndarray
    assert type(found.mean()) is np.float64
    assert found.mean() == plain.mean()
    assert not found.flags.writeable


@pytest.mark.parametrize("values", [[], [1.0, np.nan]])
def test_nothing_is_said_of_what_is_not_known(values):
    assert spread(np.array(values)) is None
    assert np.isnan(RoundNumbers(np.array(values)).worst)


def _run(capacity: float, rounds: int = 8) -> tw.Run:
    costs, capacities = np.tile([1.0, 2.0], (rounds, 1)), np.tile([capacity, 1.0], (rounds, 1))
    stream = tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(capacities))
    return tw.run(tw.LyapunovDescent(tw.sets.Simplex(2)), stream)


def test_a_round_is_broken_where_its_limit_is_but_for_rounding():
    run, loose = _run(0.75), _run(1.0)
    assert run.broken == float(np.mean(run.violations > 0.0)) > 0.0
    assert loose.broken == _run(0.75, 0).broken == 0.0
    loose.violations[:] = 1e-12
    assert loose.broken == 0.0


def test_the_numbers_of_a_run_agree_with_its_rounds():
    run = _run(0.75)
    told = json.loads(json.dumps(run.summary(), allow_nan=False))
    for name, values in (
        ("loss", run.losses),
        ("violation_by_round", run.violations),
        ("churn", np.asarray(run.churn)),
    ):
        assert told[name]["mean"] == pytest.approx(values.mean())
        assert told[name]["p99"] == pytest.approx(np.quantile(values, 0.99))
        assert told[name]["worst"] == values.max()
        assert values[told[name]["worst_round"] - 1] == values.max()
    assert told["loss"]["total"] == pytest.approx(run.losses.sum())
    assert told["violation"] == pytest.approx(run.violations.sum())
    assert f"broken in {percent(run.broken)} of rounds" in repr(run)
    run = _run(0.75, 0)
    told = run.summary()
    assert told["loss"] == dict.fromkeys(Spread._fields) | {"total": 0.0}
    assert told["churn"] is told["violation_by_round"] is None
    assert "p99" not in repr(run)
