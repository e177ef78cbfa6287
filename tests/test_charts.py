"""Charts: what is drawn and what tooltips say are the numbers; labels touch nothing."""

import re
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import tidewolf as tw
from tidewolf import report
from tidewolf.evaluation.metrics import Experts
from tidewolf.methods.capabilities import Expert
from tidewolf.report import charts
from tidewolf.report.charts import (
    HUES,
    Chart,
    Clock,
    Curve,
    PlotLine,
    RunStyle,
    ShownRun,
    figure,
    picture,
    saved,
)
from tidewolf.report.comparison import frontier_chart
from tidewolf.report.page import PARTS, trust_of

seeds = st.integers(0, 2**16)


def drawn(draw, **size):
    return figure(Chart("name", "title", "", draw, **size))


def lines(*given, **more):
    return drawn(partial(charts.draw_lines, lines=given, clock=Clock(len(given[0].values)), **more))


# --- lines ----------------------------------------------------------------------------------------


def test_long_series_are_thinned_and_keep_their_ends():
    values = np.cumsum(np.sin(np.arange(200_000)))
    made = lines(PlotLine(values))
    assert len(made["svg"]) < 30_000
    at = made["tooltip"]["at"]
    assert (at[0], at[-1], len(at)) == (1, 200_000, 200)
    assert made["tooltip"]["lines"][0] == pytest.approx([values[t - 1] for t in at], rel=1e-4)


@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0], [1e-9, 2e-9, 3e-9], [-5e12, 5e12]])
def test_odd_series_draw(values):
    assert lines(PlotLine(np.array(values)))["svg"].rstrip().endswith("</g>")


def test_a_bound_is_drawn_if_it_is_near_and_totals_begin_at_zero():
    values = np.linspace(3.0, 9.0, 20)
    plain, near, far = (lines(PlotLine(values, None, x))["svg"] for x in (None, 12.0, 1e6))
    assert plain == far != near
    assert lines(PlotLine(values), from_zero=True)["tooltip"]["y"][0] == 0.0
    assert lines(PlotLine(np.zeros(3)), from_zero=True)["tooltip"]["y"][:2] == [0.0, 1.0]


# --- heat maps ------------------------------------------------------------------------------------


@given(st.integers(1, 30), st.integers(1, 40), seeds)
@settings(max_examples=20)
def test_strokes_and_tooltips_of_a_heat_map_are_the_entries(parts, entries, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(entries, parts))
    edges = np.concatenate([[0], np.cumsum(rng.integers(1, 4, parts))])
    shown = ShownRun(RunStyle(hue=2), None, [f"n{i}" for i in range(entries)], values, edges)
    scale, axes = float(np.abs(values).max()), Figure().add_subplot()
    clock = Clock(int(edges[-1]))
    told = charts.draw_heat(axes, charts.PLAIN, shown=shown, scale=scale, clock=clock)
    found = np.zeros((entries, parts))
    for line in axes.get_lines():
        sign = -1.0 if line.get_color() == charts.PLAIN.negative else 1.0
        for (begin, row), (end, _), _ in np.array(line.get_data()).T.reshape(-1, 3, 2):
            at = slice(*np.searchsorted(edges, [begin, end]))
            assert (found[int(row), at] == 0).all()
            found[int(row), at] = sign * line.get_alpha()
    assert found == pytest.approx(values / scale, abs=0.5 / charts.LEVELS + 1e-9)
    assert np.array(told["cells"]) == pytest.approx(values, rel=1e-2)
    assert told["when"][0].startswith("round")


# --- frontiers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "violations", [[0.0, 0.0], [1e-9, 0.3, 0.0], [0.02, 0.021], [0.5], [1e-12, 1e12], []]
)
def test_frontiers_are_drawn_at_any_scale(violations):
    curves = [
        Curve("a", violations, [float(i) for i in range(len(violations))]),
        Curve("b", [], []),
    ]
    chart = frontier_chart("frontier", "title", "", curves)
    assert saved(picture([chart]), "png").startswith(b"\x89PNG")
    dots = figure(chart)["tooltip"]["dots"]
    assert len(dots) == len(violations)
    wide, high = chart.size
    assert all(0 <= x <= wide and 0 <= y <= high for x, y, _, _ in dots)
    least, most = min(violations, default=1.0) or 1.0, max(violations, default=1.0) or 1.0
    assert 1 <= len(charts.round_numbers(least, most)) <= 6


def test_a_frontier_has_its_knob_at_the_points():
    notes = [f"caution {caution}" for caution in (1, 10, 100)]
    curve = Curve("ours", [0.3, 0.1, 0.0], [1.0, 2.0, 3.0], notes, 2, default=1)
    made = figure(frontier_chart("frontier", "title", "", [curve]))
    texts = set(re.findall(r">([^<>]+)</text>", made["svg"]))
    assert {"caution 1", "caution 10 (default)", "100"} <= texts
    assert "0" in texts, "the axis of violation begins at 0"
    assert "caution 10 (default): regret 2, violation 0.1" in made["tooltip"]["dots"][1][3]


# --- labels ---------------------------------------------------------------------------------------


@given(st.integers(1, 30), seeds)
@settings(max_examples=20)
def test_labels_touch_no_dot_and_no_other_label(count, seed):
    points = np.random.default_rng(seed).uniform(30.0, [770.0, 470.0], (count, 2))
    axes = Figure(figsize=(800 / 72, 500 / 72), dpi=72).add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 800)
    axes.set_ylim(500, 0)
    labels = [charts.PointLabel(point, f"node {i}", "black") for i, point in enumerate(points)]
    assert charts.write_labels(axes, labels, points) == len(axes.texts) >= 1
    half = np.array([charts.text_width("node 0") / 2.0, 7.0])
    middles = np.array([np.array(t.xy) + np.array(t.xyann) * [1.0, -1.0] for t in axes.texts])
    low, high = middles - half, middles + half
    assert (low >= 0.0).all()
    assert (high <= [800.0, 500.0]).all()
    inside = (points > low[:, None]) & (points < high[:, None])
    assert not inside.all(axis=2).any()
    apart = ((high[:, None] <= low) | (high <= low[:, None])).any(axis=2)
    assert (apart | np.eye(len(low), dtype=bool)).all()


# --- weights of experts ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed_run():
    problem = tw.problems.routing(rounds=40)
    names = ("one", "two <b>", "three", "four")
    learner = tw.Ensemble(problem.K, experts=[tw.experts.Season(10), *names])
    advice = dict.fromkeys(names, np.repeat(problem.K.center[None, :], 40, axis=0))
    stream = tw.Stream(problem.stream.losses, problem.stream.constraints, advice=advice)
    return tw.run(learner, stream)


def mixed(weights, ends):
    """As much of a run as the chart looks at."""
    means = np.average(weights, axis=0, weights=np.diff(ends, prepend=0))
    experts = Experts(
        Expert(f"m{i}", "advice", 0.0, float(mean), 0.0, None, None, 1)
        for i, mean in enumerate(means)
    )
    return SimpleNamespace(experts=experts, measures=weights, ends=ends)


@given(seed=seeds, count=st.integers(1, 14), updates=st.integers(1, 300))
def test_areas_are_means_and_add_up_to_all(seed, count, updates):
    generator = np.random.default_rng(seed)
    weights = generator.dirichlet(np.full(count, 0.3), size=updates)
    ends = np.cumsum(generator.integers(1, 5, size=updates))
    styles, means, edges, shares = trust_of(mixed(weights, ends))
    areas, parts = shares.shape
    assert areas == len(styles) == min(count, HUES)
    assert parts == min(PARTS, ends[-1])
    assert len({style.hue for style in styles}) == areas
    assert (edges[0], edges[-1]) == (0, ends[-1])
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    assert (shares >= -1e-12).all()
    np.testing.assert_allclose((shares * np.diff(edges)).sum(axis=1) / ends[-1], means)
    each_round, p = np.repeat(weights, np.diff(ends, prepend=0), axis=0), parts // 2
    for k, style in enumerate(styles):
        if style.label.startswith("m"):  # the others are those of the least weight
            own = each_round[edges[p] : edges[p + 1], int(style.label[1:])]
            assert shares[k, p] == pytest.approx(own.mean(), abs=1e-9)


def test_pages_notebooks_and_pictures_show_the_weights(mixed_run):
    shown = report.page([mixed_run], name="x", about="y", seed=0, date=datetime(2026, 1, 2))
    assert "Expert weights of Ensemble" in shown
    for each in (shown, mixed_run._repr_html_()):
        assert "two <b>" not in each
        assert "two &lt;b&gt;</th>" in each
        assert "var(--line-5)" in each  # the others
    labels = [text.get_text() for text in mixed_run.plot().axes[-1].get_legend().get_texts()]
    assert (len(labels), labels[0].split(": ")[0]) == (HUES, "2 others")
    assert trust_of(replace(mixed_run, ends=mixed_run.ends[:0])) is None
