"""Numbers of runs: plain, described once, in the same order everywhere; as people read them."""

import json
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.evaluation import metrics
from tidewolf.evaluation.formatting import interval, number, percent, tick

finite = st.floats(-1e12, 1e12)


@pytest.fixture(scope="module")
def run():
    problem = tw.problems.routing(rounds=30)
    return tw.run(tw.LyapunovDescent(problem.K), problem.stream)


def test_every_number_is_plain_and_described_once(run):
    summary = json.loads(json.dumps(run.summary(), allow_nan=False))
    assert list(summary) == ["learner", "rounds", *metrics.MEASURES]
    heads = re.findall(r"^ {12}(\w.*)\n {16}\w", tw.Run.summary.__doc__ or "", re.M)
    described = [name for one in heads for name in re.split(";|, in ", one)[0].split(", ")]
    assert described == list(summary)
    values = metrics.sweep_values(summary)
    assert list(values) == list(metrics.sweep_columns())
    for name, kind in metrics.sweep_columns().items():
        assert values[name] is None or isinstance(values[name], kind), name
    assert set(metrics.sweep_values({}).values()) == {None}


def test_a_run_is_a_data_frame(run):
    frame = run.to_pandas()
    numbers = ["loss", "violation", "calls", "distance", "churn", "solves"]
    assert list(frame.columns) == [*numbers, "regret"]
    assert frame["regret"].iloc[-1] == pytest.approx(run.regret[1], abs=1e-6)
    assert frame["calls"].sum() == run.oracle_calls
    assert list(metrics.round_columns(run, kept=True)) == numbers


# --- as people read them --------------------------------------------------------------------------


@given(finite)
@example(-0.0123456)
def test_a_number_is_read_back_to_four_digits(x):
    assert float(number(x).replace(",", "")) == pytest.approx(x, rel=6e-2, abs=1e-300)
    assert [number(each) for each in (12345.6, 1.2e-13, None)] == ["12,346", "1.2e-13", "unknown"]


@given(finite, st.floats(0, 1e6))
def test_an_interval_shows_both_ends_or_one_and_its_error(lower, width):
    said = interval((lower, lower + width))
    assert said.startswith("[") == (number(lower) != number(lower + width))
    assert interval((1.00001, 1.00002)) == "1 \u00b1 5e-06"
    assert interval((-3.0, 5.0), 2) == "[-1.5, 2.5]"


@given(st.floats(0, 1e12))
def test_ticks_are_read_back(x):
    said = tick(x)
    unit = {"k": 1e3, "M": 1e6, "G": 1e9}.get(said[-1], 1.0)
    assert float(said.rstrip("kMG")) * unit == pytest.approx(x, rel=1e-5)


# --- beside a mean -------------------------------------------------------------------------------

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300)


@given(numbers)
def test_a_spread_is_in_order_and_holds_for_the_rounds(values):
    found = metrics.spread(np.array(values))
    assert found is not None
    assert min(values) <= found.p99 <= found.worst == max(values)
    assert values[found.worst_round] == found.worst
    assert found.worst not in values[: found.worst_round]
    # p99 lies between the two rounds beside it, so at most 1 % of them and one more are above it
    assert np.sum(np.array(values) > found.p99) <= 0.01 * len(values) + 1
    assert np.sum(np.array(values) >= found.p99 - 1e-9 * abs(found.p99)) >= 0.01 * len(values)
    assert found.mean == pytest.approx(np.mean(values), rel=1e-12, abs=1e-9)


@given(numbers)
def test_numbers_of_rounds_are_an_array_that_knows_its_spread(values):
    found, plain = metrics.RoundNumbers(np.array(values)), np.array(values)
    assert (found.p99, found.worst) == (np.quantile(plain, 0.99), plain.max())
    assert type(found + 1.0) is np.ndarray
    assert type(found.mean()) is np.float64
    assert found.mean() == plain.mean()
    assert not found.flags.writeable


@pytest.mark.parametrize("values", [[], [1.0, np.nan]])
def test_nothing_is_said_of_what_is_not_known(values):
    assert metrics.spread(np.array(values)) is None
    assert np.isnan(metrics.RoundNumbers(np.array(values)).worst)


def _run(capacity, rounds=8):
    costs, capacities = np.tile([1.0, 2.0], (rounds, 1)), np.tile([capacity, 1.0], (rounds, 1))
    stream = tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(capacities))
    return tw.run(tw.LyapunovDescent(tw.sets.Simplex(2)), stream)


def test_a_round_is_broken_where_its_limit_is_by_more_than_rounding():
    run, kept = _run(0.75), _run(1.0)
    assert run.broken == float(np.mean(run.violations > 0.0)) > 0.0
    kept.violations[:] = 1e-12
    assert kept.broken == _run(0.75, 0).broken == 0.0


def test_the_numbers_of_a_run_agree_with_its_rounds():
    run = _run(0.75)
    told = json.loads(json.dumps(run.summary(), allow_nan=False))
    rounds = {"loss": run.losses, "violation_by_round": run.violations, "churn": run.churn}
    for name, values in rounds.items():
        assert told[name]["mean"] == pytest.approx(values.mean())
        assert told[name]["p99"] == pytest.approx(np.quantile(values, 0.99))
        assert told[name]["worst"] == values.max()
        assert values[told[name]["worst_round"] - 1] == values.max()
    assert told["loss"]["total"] == pytest.approx(run.losses.sum())
    assert told["violation"] == pytest.approx(run.violations.sum())
    lines = repr(run).splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:2] == ["per", "round"])
    rows = [line.split()[0] for line in lines[head + 1 : head + 4]]
    assert rows == ["loss", "violation", "churn"]
    assert f"broken in {percent(run.broken)} of rounds" in lines[head + 2]


def test_a_run_without_rounds_has_nothing_to_say_of_them():
    run = _run(0.75, 0)
    told = run.summary()
    assert told["loss"] == dict.fromkeys(metrics.Spread._fields) | {"total": 0.0}
    assert told["churn"] is told["violation_by_round"] is None
    assert "p99" not in repr(run)
