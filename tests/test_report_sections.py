"""Heat maps, networks, worst intervals, pictures and notebooks: each says what the runs say."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core.errors import InvalidInput
from tidewolf.evaluation.formatting import interval, number
from tidewolf.evaluation.trajectory_summary import TrajectorySummary
from tidewolf.report import heat, page, write_figures
from tidewolf.report import sections as worst
from tidewolf.report.clock import Clock
from tidewolf.report.styles import run_styles


@pytest.fixture(scope="module")
def problem():
    return tw.problems.routing(rounds=150, seed=3)


@pytest.fixture(scope="module")
def run(problem):
    return tw.run(tw.LyapunovDescent(problem.K, horizon=150), problem.stream)


def history_of(means):
    kept = TrajectorySummary(len(means), means.shape[1:])
    for point in means:
        kept.see(point[None], 1)
    return kept


# --- heat maps ------------------------------------------------------------------------------------


@given(st.integers(1, 30), st.integers(1, 60), st.integers(0, 2**16))
def test_strokes_and_told_values_are_the_entries(parts, entries, seed):
    means = np.random.default_rng(seed).normal(size=(parts, entries))
    shown = heat.heat_map(history_of(means))
    scale = float(np.abs(shown.values).max())
    rows = min(entries, heat.ROWS)
    drawn = np.zeros((rows, parts))
    levels = np.rint(heat.LEVELS * shown.values / scale).astype(int)
    for stroke in heat.strokes_of(levels):
        for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)", stroke["d"]):
            assert (drawn[int(y), int(x) : int(x) + int(width)] == 0).all()
            sign = -1 if stroke["negative"] else 1
            drawn[int(y), int(x) : int(x) + int(width)] = sign * float(stroke["opacity"])
    assert drawn == pytest.approx(shown.values / scale, abs=0.5 / heat.LEVELS + 1e-9)
    told = {"scale": scale, "values": heat.packed(shown.values, scale)}
    packed = np.frombuffer(base64.b64decode(told["values"]), dtype="<i2").reshape(rows, parts)
    assert packed / 32767 * told["scale"] == pytest.approx(shown.values, abs=scale / 32767)


def test_the_largest_entries_are_shown_in_their_own_order():
    means = np.zeros((3, 100))
    means[:, ::2] = np.arange(50) + 1.0
    shown = heat.heat_map(history_of(means), [f"n{i}" for i in range(100)])
    assert shown.entries == tuple(f"n{i}" for i in range(20, 100, 2))
    assert shown.left_out == 60
    assert heat.heat_map(history_of(np.ones((2, 2, 3)))).entries[3:5] == (
        "entry 1, 0",
        "entry 1, 1",
    )


def test_a_point_of_zeros_has_a_map():
    shown = heat.heat_map(history_of(np.zeros((2, 3))))
    assert heat.strokes_of(np.zeros((3, 2), dtype=int)) == []
    (group,) = heat.heat_table(shown, "zeros").groups
    assert [[cell.text for cell in row[1:]] for row in group.rows] == [["0"] * 4] * 3


def test_the_table_says_what_the_map_shows(problem, run):
    shown = heat.heat_map(run.trajectory, problem.labels)
    (group,) = heat.heat_table(shown, "routing").groups
    assert [row[0].text for row in group.rows] == list(problem.labels)
    assert group.rows[4][3].text == number(float(shown.values[4].max()))


def test_every_learner_has_the_same_entries():
    means = np.zeros((3, 100))
    means[:, :50] = np.arange(50) + 1.0
    other = means[:, ::-1]
    both = heat.largest_entries([history_of(means), history_of(other)])
    assert both.tolist() == [*range(30, 70)]
    assert heat.heat_map(history_of(means), (), both).entries[0] == "entry 30"


def test_the_colour_bar_says_what_colours_mean():
    bar = heat.scale_context(0.25, 3, negative=False)
    assert (bar["steps"][0], bar["steps"][-1], bar["labels"]) == (0.0, 1.0, ["0", "0.25"])
    bar = heat.scale_context(0.25, 3, negative=True)
    assert (bar["steps"][0], bar["labels"]) == (-1.0, ["-0.25", "0", "0.25"])


# --- worst intervals ------------------------------------------------------------------------------


def test_worst_intervals_are_those_of_the_family(run):
    (found,) = worst.quick_intervals([run])
    shown = worst.intervals_context([found], run_styles([run]), Clock(150))
    (group,) = shown["table"].groups
    assert group.head.text == "LyapunovDescent"
    lengths = sorted({each.length for each in found.every})
    assert len(group.rows) == len(lengths) > 2
    for length, row in zip(lengths, group.rows, strict=True):
        these = [each for each in found.every if each.length == length]
        regret, violation = (
            max(these, key=lambda each: each.regret[1]),
            max(these, key=lambda each: each.violation),
        )
        where = [f"{each.start + 1:,} \u2013 {each.stop:,}" for each in (regret, violation)]
        assert [cell.text for cell in row] == [
            f"{length:,}",
            interval(regret.regret),
            where[0],
            number(violation.violation),
            where[1],
        ]
        assert (row[2].bar.start, row[2].bar.stop) == (regret.start / 150, regret.stop / 150)
    assert worst.intervals_context([], [], Clock(150)) is None


def test_intervals_are_left_out_where_they_take_long(monkeypatch, run):
    matrices = tw.problems.sdp(rounds=10)
    assert (
        worst.quick_intervals([tw.run(tw.LyapunovDescent(matrices.K, horizon=10), matrices.stream)])
        == []
    )
    monkeypatch.setattr(worst, "_QUICK", 100)
    assert worst.quick_intervals([run]) == []


# --- pictures and notebooks -----------------------------------------------------------------------


def test_every_figure_is_written_as_png_and_svg(problem, run, tmp_path):
    files = write_figures(tmp_path / "new" / "figures", [run], entries=problem.labels)
    names = [
        "loss",
        "regret",
        "violation",
        "oracle-calls",
        "points-of-LyapunovDescent",
        "network-of-LyapunovDescent",
    ]
    assert [file.name for file in files] == [
        f"{name}.{ending}" for name in names for ending in ("png", "svg")
    ]
    again = write_figures(tmp_path / "again", [run], entries=problem.labels)
    for one, other in zip(files, again, strict=True):
        data = one.read_bytes()
        assert data == other.read_bytes()
        assert data.startswith(b"\x89PNG" if one.suffix == ".png" else b"<?xml")
    assert "Salt Lake City" in files[-1].read_text(encoding="utf-8")


def test_a_run_plots_its_series(run):
    figure = run.plot()
    assert [axes.get_title() for axes in figure.axes] == [
        "Cumulative loss",
        "Cumulative regret",
        "Cumulative violation",
        "Cumulative oracle calls",
    ]
    drawn, *_ = figure.axes[2].get_lines()
    assert drawn.get_ydata()[-1] == pytest.approx(run.violations.sum())
    with pytest.raises(InvalidInput, match="no rounds"):
        tw.run(run.learner, run.stream[:0]).plot()


def test_a_run_shows_itself_in_notebooks(run):
    html = run._repr_html_()
    assert interval(run.regret) in html
    assert html.count("<figure") == 4
    assert "<script" not in html
    assert ":root" not in html
    assert not re.search(
        r"^(?!\.tidewolf|@media|\s|})[^\s<].*\{",
        html.split("<style>")[1].split("</style>")[0],
        flags=re.MULTILINE,
    )


def test_a_comparison_shows_itself_in_notebooks():
    found = tw.compare(
        [tw.LyapunovDescent], {"a & b": tw.problems.adversarial(30)}, cautions=[1.0, 10.0]
    )
    html = found._repr_html_()
    assert html.count("<figure") == 1
    assert "a &amp; b" in html
    assert [axes.get_title() for axes in found.plot().axes] == ["a & b"]


def test_a_run_is_a_data_frame(run):
    frame = run.to_pandas()
    numbers = ["loss", "violation", "calls", "distance", "churn", "solves"]
    assert list(frame.columns) == [*numbers, "regret"]
    assert len(frame) == 150
    assert frame["regret"].iloc[-1] == pytest.approx(run.regret[1], abs=1e-6)
    assert frame["calls"].sum() == run.oracle_calls
    assert frame["churn"].tolist() == run.churn.tolist()
    infeasible = tw.problems.routing(rounds=60, feasible=False)
    frame = tw.run(tw.LyapunovDescent(infeasible.K, horizon=60), infeasible.stream).to_pandas()
    assert list(frame.columns) == numbers


def test_matrices_and_several_runs_have_pages():
    problem = tw.problems.sdp(rounds=30)
    best = tw.best_in_hindsight(problem.K, problem.stream)
    learners = [
        tw.LyapunovDescent(problem.K, horizon=30, caution=c)
        for c in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
    ]
    runs = [tw.run(learner, problem.stream, comparator=best) for learner in learners]
    text = page(runs, name="sdp", about="", seed=0, date=datetime(2026, 1, 2, tzinfo=UTC))
    assert "The first 6 of 7 runs are shown." in text
    assert "what is negative is grey" in text
    assert "the 40 largest of 256 entries" in text
