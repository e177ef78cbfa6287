"""Numbers of runs: plain, described once, in the same order everywhere; as people read them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.cli import screen
from tidewolf.evaluation import metrics
from tidewolf.evaluation.formatting import interval, number, tick

finite = st.floats(-1e12, 1e12)


@pytest.fixture(scope="module")
def run() -> tw.Run:
    problem = tw.problems.routing(rounds=30)
    return tw.run(tw.LyapunovDescent(problem.K), problem.stream)


def test_every_number_is_plain_and_described_once(run: tw.Run) -> None:
    summary = json.loads(json.dumps(run.summary(), allow_nan=False))
    assert list(summary) == ["learner", "rounds", *metrics.MEASURES]
    described = re.findall(r"^ {12}(\w+).*\n {16}\w", tw.Run.summary.__doc__ or "", re.M)
    assert described == list(summary)
    values = metrics.sweep_values(summary)
    assert list(values) == list(metrics.sweep_columns())
    for name, kind in metrics.sweep_columns().items():
        assert values[name] is None or isinstance(values[name], kind), name
    assert set(metrics.sweep_values({}).values()) == {None}


def test_the_loss_comes_first_everywhere_and_churn_beside(run: tw.Run, capsys) -> None:
    """Tables, pages, summaries, sweeps and prints."""
    shown = metrics.table_metrics([run])
    titles = [metric.title for metric in shown]
    assert titles[:5] == ["total loss", "mean loss", "mean churn", "regret", "violation"]
    assert titles[-1] == "seconds"
    total, mean, churn = (metric.cell(run) for metric in shown[:3])
    assert float(total.replace(",", "")) == pytest.approx(run.losses.sum(), rel=1e-3)
    assert float(mean) == pytest.approx(run.losses.mean(), rel=1e-3)
    assert float(churn) == pytest.approx(run.churn.mean(), rel=1e-3)
    assert list(run.summary())[2:6] == ["loss", "churn", "regret", "hindsight"]
    assert list(metrics.sweep_columns())[:2] == ["loss", "loss_mean"]
    line = repr(run).splitlines()[1]
    places = [line.index(word) for word in ("loss ", "mean loss ", "churn ", "regret ")]
    assert places == sorted(places)
    screen.show_results([run], "x", Path("report.html"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[2].split()[:4] == ["learner", "total", "mean", "mean"]


def test_a_run_is_a_data_frame(run: tw.Run) -> None:
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
