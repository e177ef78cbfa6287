"""A number of a run is declared once, and shows itself wherever runs are shown."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

import tidewolf as tw
from tidewolf import report
from tidewolf.cli import main, screen
from tidewolf.evaluation import metrics
from tidewolf.evaluation.metrics import METRICS, Metric, RoundMetric, TotalMetric

LARGEST_LOSS = Metric(
    "max_loss",
    lambda run: float(run.losses.max()),
    title="largest loss",
    narrow_title="largest\nloss",
    details=lambda run: [f"in round {int(np.argmax(run.losses)) + 1}"],
    kind=float,
)


@pytest.fixture(scope="module")
def run() -> tw.Run:
    problem = tw.problems.routing(rounds=30)
    return tw.run(tw.LyapunovDescent(problem.K), problem.stream)


@pytest.fixture
def with_largest_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "METRICS", (*METRICS, LARGEST_LOSS))


@pytest.mark.usefixtures("with_largest_loss")
def test_a_new_number_is_printed_and_in_json(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    asked = ["run", "routing", "--rounds", "30", "--learner", "LyapunovDescent"]
    assert main([*asked, "--out", str(tmp_path / "text")]) == 0
    title, number = "largest", LARGEST_LOSS.cell(_played(30))
    printed = capsys.readouterr().out
    assert printed.count(title) == 2  # excess, and loss
    assert number in printed
    assert main([*asked, "--json", "--out", str(tmp_path / "json")]) == 0
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    assert told["max_loss"] == pytest.approx(float(_played(30).losses.max()))
    (kept,) = json.loads((tmp_path / "json" / "summary.json").read_text())["runs"]
    assert kept["max_loss"] == told["max_loss"]


@pytest.mark.usefixtures("with_largest_loss")
def test_a_new_number_is_on_the_page_and_in_notebooks(run: tw.Run) -> None:
    page = report.page([run], name="x", about="y", seed=0, date=datetime(2026, 1, 1))
    for shown in (page, run._repr_html_()):
        assert "largest loss" in shown
        assert f"{LARGEST_LOSS.cell(run)}<small>in round" in shown


def _played(rounds: int) -> tw.Run:
    problem = tw.problems.routing(rounds=rounds)
    return tw.run(tw.LyapunovDescent(problem.K, horizon=rounds), problem.stream)


def test_a_new_number_of_rounds_is_a_column_and_a_figure(run: tw.Run, monkeypatch) -> None:
    squares = RoundMetric("square", lambda run: run.losses**2)
    total = TotalMetric("squares", "squared losses", lambda run: np.cumsum(run.losses**2))
    monkeypatch.setattr(metrics, "ROUND_METRICS", (*metrics.ROUND_METRICS, squares))
    monkeypatch.setattr(metrics, "TOTALS", (*metrics.TOTALS, total))
    assert run.to_pandas()["square"].tolist() == (run.losses**2).tolist()
    assert "Cumulative squares" in run._repr_html_()


@pytest.mark.usefixtures("with_largest_loss")
def test_a_new_number_is_a_column_of_sweeps(run: tw.Run) -> None:
    assert metrics.sweep_columns()["max_loss"] is float
    assert metrics.sweep_values(run.summary())["max_loss"] == LARGEST_LOSS.measure(run)
    assert metrics.sweep_values({})["max_loss"] is None


def test_every_number_is_plain_and_described_once(run: tw.Run) -> None:
    for metric in METRICS:
        json.dumps(metric.measure(run), allow_nan=False)
    described = re.findall(r"^ {12}(\w+).*\n {16}\w", tw.Run.summary.__doc__ or "", re.M)
    assert described == ["learner", "rounds", *(metric.key for metric in METRICS)]
    assert [metric.key for metric in metrics.table_metrics([run])][-1] == "seconds"


def test_what_it_cost_stands_first_everywhere_and_churn_beside(run: tw.Run, capsys) -> None:
    """Tables, pages, summaries, sweeps and prints."""
    titles = [metric.title for metric in metrics.table_metrics([run])]
    assert titles[:5] == ["total loss", "mean loss", "mean churn", "regret", "violation"]
    total, mean, churn = (metric.cell(run) for metric in metrics.table_metrics([run])[:3])
    assert float(total.replace(",", "")) == pytest.approx(run.losses.sum(), rel=1e-3)
    assert float(mean) == pytest.approx(run.losses.mean(), rel=1e-3)
    assert float(churn) == pytest.approx(run.churn.mean(), rel=1e-3)
    assert list(run.summary())[2:6] == ["loss", "churn", "regret", "hindsight"]
    assert list(run.summary()["loss"])[:2] == ["total", "mean"]
    assert list(metrics.sweep_columns())[:2] == ["loss", "loss_mean"]
    line = repr(run).splitlines()[1]
    places = [line.index(word) for word in ("loss ", "mean loss ", "churn ", "regret ")]
    assert places == sorted(places)
    screen.show_results([run], "x", Path("report.html"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[2].split()[:4] == ["learner", "total", "mean", "mean"]
    assert printed[1].split()[:2] == ["loss", "churn"]
