"""Heat maps, networks, worst intervals, pictures and notebooks: each says what the runs say."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime
from html import unescape
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core.errors import InvalidInput
from tidewolf.evaluation.formatting import interval, number
from tidewolf.evaluation.trajectory_summary import TrajectorySummary
from tidewolf.report import heat, network, page, write_figures
from tidewolf.report import intervals as worst
from tidewolf.report import trajectory as played
from tidewolf.report.styles import run_styles
from tidewolf.sets import CapacitatedFlow, FlowPolytope, MultiFlow, Simplex


@pytest.fixture(scope="module")
def problem():
    return tw.problems.routing(rounds=150, seed=3)


@pytest.fixture(scope="module")
def run(problem):
    return tw.run(tw.LyapunovDescent(problem.K, horizon=150), problem.stream)


def trail_of(means):
    kept = TrajectorySummary(len(means), means.shape[1:])
    for point in means:
        kept.see(point[None], 1)
    return kept


# --- heat maps ------------------------------------------------------------------------------------


@given(st.integers(1, 30), st.integers(1, 60), st.integers(0, 2**16))
def test_strokes_and_told_values_are_the_entries(parts, entries, seed):
    means = np.random.default_rng(seed).normal(size=(parts, entries))
    shown = heat.heat_map(trail_of(means))
    scale = float(np.abs(shown.values).max())
    element = heat.element(shown, 0, scale)
    rows = min(entries, heat.ROWS)
    drawn = np.zeros((rows, parts))
    for negative, opacity, d in re.findall(
        r'<path( class=neg)? stroke-opacity="([\d.]+)" d="([^"]*)"/>', element
    ):
        for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)", d):
            assert (drawn[int(y), int(x) : int(x) + int(width)] == 0).all()
            drawn[int(y), int(x) : int(x) + int(width)] = float(opacity) * (-1 if negative else 1)
    assert drawn == pytest.approx(shown.values / scale, abs=0.5 / heat.LEVELS + 1e-9)
    told = json.loads(unescape(re.search(r'data-heat="([^"]*)"', element)[1]))
    packed = np.frombuffer(base64.b64decode(told["values"]), dtype="<i2").reshape(rows, parts)
    assert packed / 32767 * told["scale"] == pytest.approx(shown.values, abs=scale / 32767)


def test_the_largest_entries_are_shown_in_their_own_order():
    means = np.zeros((3, 100))
    means[:, ::2] = np.arange(50) + 1.0
    shown = heat.heat_map(trail_of(means), [f"n{i}" for i in range(100)])
    assert shown.entries == tuple(f"n{i}" for i in range(20, 100, 2))
    assert shown.left_out == 60
    assert heat.heat_map(trail_of(np.ones((2, 2, 3)))).entries[3:5] == ("entry 1, 0", "entry 1, 1")


def test_a_point_of_zeros_has_a_map():
    shown = heat.heat_map(trail_of(np.zeros((2, 3))))
    assert "<path" not in heat.element(shown, 0, 1.0)
    assert heat.heat_table(shown).count("<td>0</td>") == 12


def test_the_table_says_what_the_map_shows(problem, run):
    shown = heat.heat_map(run.trajectory, problem.labels)
    table = heat.heat_table(shown)
    assert all(name.replace(">", "&gt;") in table for name in problem.labels)
    assert number(float(shown.values[4].max())) in table


# --- networks -------------------------------------------------------------------------------------

FLOWS = [*FlowPolytope.examples(), *MultiFlow.examples(), *CapacitatedFlow.examples()]


@pytest.mark.parametrize("K", FLOWS, ids=repr)
def test_every_network_is_laid_out(K):
    net = network.network_of(K, np.asarray(K.center))
    plan = network.layout(net)
    assert len(set(plan.nodes.values())) == len(net.nodes)
    for tail, head, route in zip(net.tails, net.heads, plan.routes, strict=True):
        assert (route[0], route[-1]) == (plan.nodes[tail], plan.nodes[head])
        assert all(abs(one[0] - two[0]) <= 1 for one, two in pairwise(route))
        if isinstance(K, FlowPolytope):
            assert net.layers[tail] < net.layers[head]
    both = network.drawings(net, 3, "spoken")
    assert both.count("<svg") == 2
    assert "nan" not in both
    assert both.count("<circle") == 2 * len(net.nodes)
    assert both.count("<path") == 2 * len(net.tails)


@given(st.integers(2, 12), st.integers(0, 2**16))
def test_random_dags_keep_their_nodes_apart(count, seed):
    rng = np.random.default_rng(seed)
    edges = [
        (i, j)
        for i in range(count)
        for j in range(i + 1, count)
        if j == i + 1 or rng.random() < 0.3
    ]
    K = FlowPolytope.from_edges(edges, source=0, target=count - 1)
    net = network.network_of(K, K.center)
    plan = network.layout(net)
    for layer in set(net.layers):
        places = sorted(place for at, place in plan.nodes.values() if at == layer)
        assert all(two - one >= 0.6 - 1e-9 for one, two in pairwise(places))


def test_loads_and_paths_are_those_of_the_point(problem, run):
    net = network.network_of(problem.K, run.trajectory.mean)
    assert net.loads == tuple(run.trajectory.mean)
    out = sum(
        load
        for tail, load in zip(net.tails, net.loads, strict=True)
        if net.nodes[tail] == "Palo Alto"
    )
    assert out == pytest.approx(1.0, abs=1e-9)
    paths = network.paths_in_use(problem.K, run.trajectory.means[-1])
    assert sum(path.weight for path in paths) == pytest.approx(1.0)
    text = played.trajectory_section([run], problem.labels)
    assert all(" &rarr; ".join(path.nodes) in text for path in paths)


def test_links_of_several_commodities_add_up():
    K = MultiFlow.examples()[1]
    assert network.network_of(K, K.center).loads == pytest.approx(K.loads(K.center))
    assert sum(path.weight for path in network.paths_in_use(K, K.center)) == pytest.approx(
        sum(K.demands), rel=0.05
    )


def test_of_a_large_network_the_busy_links_are_drawn():
    edges = [*(("s", i) for i in range(60)), *((i, "t") for i in range(60))]
    K = FlowPolytope.from_edges(edges, source="s", target="t")
    x = np.zeros(120)
    x[[3, 63]], x[[4, 64]] = 0.75, 0.25
    net = network.network_of(K, x)
    assert sorted(net.loads) == [0.25, 0.25, 0.75, 0.75]
    assert set(net.nodes) == {"s", "3", "4", "t"}


def test_other_sets_have_no_network():
    assert network.network_of(Simplex(3), np.ones(3) / 3) is None
    assert network.paths_in_use(Simplex(3), np.ones(3) / 3) == []


# --- worst intervals ------------------------------------------------------------------------------


def test_worst_intervals_are_those_of_the_family(run):
    (found,) = worst.quick_intervals([run])
    text = worst.intervals_section([found], run_styles([run]))
    assert text.count("<tr><td>") == len({each.length for each in found.every}) > 2
    for length in {each.length for each in found.every}:
        (row,) = re.findall(rf"<tr><td>{length:,}</td>.*?</tr>", text)
        these = [each for each in found.every if each.length == length]
        regret, violation = (
            max(these, key=lambda each: each.regret[1]),
            max(these, key=lambda each: each.violation),
        )
        cells = [re.sub("<svg.*?</svg>|<[^>]*>", "", cell) for cell in row.split("<td>")[2:]]
        where = [f"{each.start + 1:,}&ndash;{each.stop:,}" for each in (regret, violation)]
        assert cells == [interval(regret.regret), where[0], number(violation.violation), where[1]]
    assert worst.intervals_section([], []) == ""


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
        "Cumulative regret",
        "Cumulative violation",
        "Cumulative oracle calls",
    ]
    drawn, *_ = figure.axes[1].get_lines()
    assert drawn.get_ydata()[-1] == pytest.approx(run.violations.sum())
    with pytest.raises(InvalidInput, match="no rounds"):
        tw.run(run.learner, run.stream[:0]).plot()


def test_a_run_shows_itself_in_notebooks(run):
    html = run._repr_html_()
    assert interval(run.regret) in html
    assert html.count("<figure") == 3
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
    assert "grey where negative" in text
    assert "the 40 largest of 256 entries" in text
