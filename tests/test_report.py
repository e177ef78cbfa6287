"""The report page: it stands alone, has every number, and nothing given becomes markup; the times
of its axes; its record; what notebooks and pictures show.
"""

import json
import re
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from html import escape
from html.parser import HTMLParser
from importlib import import_module
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import tidewolf as tw
from streams import recorded
from tidewolf import experiments, report
from tidewolf.baselines import SinhaVaze
from tidewolf.core.batch import Stream
from tidewolf.core.errors import BrokenFile, InvalidInput, MissingExtra, OtherSettings
from tidewolf.evaluation.formatting import interval, number
from tidewolf.evaluation.metrics import Experts, broken_limits, contradiction
from tidewolf.evaluation.tracking import Membership
from tidewolf.files import read_graph
from tidewolf.functions import Affine, Linear
from tidewolf.learners import LyapunovDescent, PrimalDual
from tidewolf.methods.capabilities import Expert
from tidewolf.networks.network import routes_of
from tidewolf.problems import routing
from tidewolf.report import charts, network
from tidewolf.report.charts import HUES, Clock, PlotLine, RunStyle, clock_of, figure, run_styles
from tidewolf.report.comparison import frontier_chart
from tidewolf.report.network import networks_of, node_places
from tidewolf.report.page import PARTS, limits_context, shown_runs, trust_of
from tidewolf.sets import CapacitatedFlow, FlowPolytope, MultiFlow, Simplex

sections, DATE = import_module("tidewolf.report.page"), datetime(2026, 1, 2, tzinfo=UTC)
ABOUT = {"name": "routing", "about": "One flow across a backbone.", "seed": 3, "date": DATE}
VOID = {"meta", "br", "hr", "img", "link", "input"}


def both(problem):
    made = [kind(problem.K, horizon=len(problem)) for kind in (LyapunovDescent, SinhaVaze)]
    return [tw.run(learner, problem.stream) for learner in made]


def brief(*runs):
    """Runs without their points: a page of them has no decisions and no networks."""
    return [replace(run, trajectory=None) for run in runs]


@pytest.fixture(scope="module")
def runs():
    return both(routing(rounds=150, seed=3))


@pytest.fixture(scope="module")
def page(runs):
    return report.page(runs, **ABOUT)


class Reader(HTMLParser):
    """Text, tags and attributes of a page, with every element closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        self.open += [tag] if tag not in VOID else []

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data.strip())


# --- the page -------------------------------------------------------------------------------------


def test_the_page_stands_alone_and_is_the_same_for_the_same_runs(page, runs):
    read = Reader(page)
    assert not any(word in page for word in ("http", "@import", "fetch(", "import(", "url("))
    assert not {"link", "iframe", "img", "image"} & set(read.tags)
    assert not {"src", "href", "srcset", "id"} & {name for name, _ in read.attributes}
    assert page.startswith("<!doctype html>")
    assert read.tags.count("script") == page.count("<script>") == 1
    assert len(page) < 300_000
    assert report.page(runs, **ABOUT) == page


def test_the_page_has_every_number(page, runs):
    text = Reader(page).text
    assert {"150 rounds \xb7 seed 3", "2026-01-02 00:00 UTC"} <= set(text)
    for each in runs:
        assert {type(each.learner).__name__, repr(each.learner)} <= set(text)
        assert {interval(each.regret), f"{interval(each.regret, 150)} per round"} <= set(text)
        assert {number(float(each.violations.sum())), f"{each.oracle_calls:,} in all"} <= set(text)
        assert number(each.max_infeasibility) in text
        worst = int(np.argmax(each.each_violation))
        assert {each.limit_names[worst], number(float(each.each_violation[worst]))} <= set(text)
    titles = [title for title in text if title.startswith("Cumulative")]
    assert titles == ["Cumulative regret", "Cumulative violation"]
    assert Reader(page).tags.count("figure") == 2 + 2 * len(runs)


def test_the_page_says_whether_the_certificate_holds_and_what_was_guaranteed(page, runs):
    text = Reader(page).text
    assert text.count("certificate holds") == 2
    for run in runs:
        for total in (run.certificate.regret, run.certificate.violation):
            if total.bound is not None:
                known = total.bound <= 10.0 * abs(total.measured[1])
                told = f"measured bound: at most {number(total.bound)}"
                assert (told if known else "bound not informative at this length") in text
                assert (told in text) == known
    assert "promis" not in page.lower()
    outside = Membership(runs[0].learner.K)
    outside.restore((1.0, 150, 0, 150))
    broken = replace(runs[0], membership=outside)
    text = Reader(report.page(brief(broken, runs[1]), **ABOUT)).text
    assert text.count("certificate fails") == 1
    assert any(broken.certificate.failures[0] in part for part in text)
    learner = PrimalDual(Simplex(4), horizon=2000, loss_lipschitz=1.0, constraint_lipschitz=1.0)
    costs, limits = np.full((2000, 4), 0.25), np.full((2000, 4), 0.5)
    kept = tw.run(learner, Stream(Linear(costs), Affine(limits, np.ones(2000))))
    assert learner.guarantee().regret > 10.0 * abs(kept.regret[1])
    assert "bound not informative at this length" in Reader(kept._repr_html_()).text
    assert "not informative" in str(kept)


def test_nothing_given_becomes_markup(runs):
    given = {"name": "<script>x", "about": '"&<b>', "experiment": "learners = ['<a>']"}
    page = report.page(brief(runs[0]), **ABOUT | given)
    assert escape("<script>x") in page
    assert Reader(page).tags.count("script") == 1
    assert '"&<b>' in Reader(page).text
    assert "<pre>learners = [&#39;&lt;a&gt;&#39;]</pre>" in page


def test_without_a_feasible_point_the_page_says_so():
    infeasible = both(routing(rounds=60, seed=3, feasible=False))
    text = Reader(report.page(brief(*infeasible), **ABOUT)).text
    said = contradiction(infeasible[0].comparator.infeasibility, infeasible[0].stream)
    assert any(said in each for each in text)
    assert "Cumulative regret" not in text


def test_cautions_that_move_name_the_runs():
    problem = routing(rounds=60, seed=1)
    made = [LyapunovDescent(problem.K, horizon=60, caution=caution) for caution in (1.0, 30.0)]
    swept = [tw.run(learner, problem.stream) for learner in made]
    text = set(Reader(report.page(brief(*swept), **ABOUT)).text)
    assert {"LyapunovDescent, caution 1", "LyapunovDescent, caution 30"} <= text
    other = tw.run(SinhaVaze(problem.K, horizon=60), problem.stream)
    seen, twice = run_styles([*swept, other]), run_styles([swept[0], other, swept[0]])
    assert [style.hue for style in (*seen, *twice)] == [0, 0, 1, 0, 1, 2]
    assert seen[0][2:] != seen[1][2:]
    assert [style.label for style in twice][::2] == ["LyapunovDescent 1", "LyapunovDescent 2"]


def test_parts_that_do_not_apply_are_not_there(runs):
    text = Reader(report.page(brief(*runs), **ABOUT)).text
    assert "Cumulative violation" in text
    assert not {"The decision over time", "The network", "Expert weights"} & set(text)
    problem = routing(rounds=10)
    empty = tw.run(LyapunovDescent(problem.K, horizon=10), problem.stream[:0])
    page = report.page([empty], **ABOUT)
    assert "0 rounds" in page
    assert "figure" not in Reader(page).tags


def test_of_matrices_and_many_runs_a_part_is_shown(monkeypatch):
    problem = tw.problems.sdp(rounds=20)
    run = tw.run(tw.LyapunovDescent(problem.K), problem.stream)
    monkeypatch.setattr(sections, "MAX_RUNS", 1)
    text = report.page([run, run], **ABOUT)
    for said in ("The first 1 of 2 runs", "what is negative is grey", "40 largest of 256 entries"):
        assert said in text


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_without_an_extra_a_page_is_refused_and_a_run_shows_what_it_can(monkeypatch, runs, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=rf"{missing}.*tidewolf\[app\]"):
        report.page(runs, **ABOUT)
    shown = runs[0]._repr_html_()
    assert ("<table" in shown) == (missing != "jinja2")
    assert "<figure" not in shown


# --- files ----------------------------------------------------------------------------------------


def test_a_page_is_written_with_its_record_and_links_to_the_files_beside_it(runs, tmp_path):
    for name in ("decisions.csv", "decisions.parquet", "paths.csv", "rounds.parquet"):
        (tmp_path / name).touch()
    file = tmp_path / "report.html"
    report.write(file, runs, **ABOUT)
    written = file.read_text(encoding="utf-8")
    links = [value for name, value in Reader(written).attributes if name == "href"]
    assert links == ["decisions.csv", "decisions.parquet", "paths.csv"]
    file.unlink()
    report.rewrite(file, DATE)
    assert file.read_text(encoding="utf-8") == written
    record = json.loads((tmp_path / "report.json").read_text())
    for change, error in (({"format": 99}, OtherSettings), ({"results": 3}, BrokenFile)):
        (tmp_path / "report.json").write_text(json.dumps(record | change))
        with pytest.raises(error, match="tidewolf resume"):
            report.rewrite(file, DATE)
    (tmp_path / "report.json").unlink()
    with pytest.raises(InvalidInput, match="tidewolf resume"):
        report.rewrite(file, DATE)


def test_every_chart_is_written_as_png_and_svg(runs, tmp_path):
    files = report.write_figures(tmp_path / "new" / "figures", runs[:1], routing(rounds=1))
    names = ["loss", "regret", "violation", "oracle-calls"]
    names += ["points-of-LyapunovDescent", "network-of-LyapunovDescent"]
    assert [each.name for each in files] == [f"{n}.{end}" for n in names for end in ("png", "svg")]
    chart = charts.picture(sections.totals_charts(runs[:1])[:1])
    for file, again in zip(files[:2], ("png", "svg"), strict=True):
        assert file.read_bytes() == charts.saved(chart, again)
    assert all(one.read_bytes().startswith((b"\x89PNG", b"<?xml")) for one in files)
    assert "Salt Lake City" in files[-1].read_text(encoding="utf-8")


# --- notebooks ------------------------------------------------------------------------------------


def test_a_run_plots_its_series(runs):
    figure = runs[0].plot()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"Cumulative {x}" for x in ("loss", "regret", "violation", "oracle calls")]
    drawn, *_ = figure.axes[2].get_lines()
    assert drawn.get_ydata()[-1] == pytest.approx(runs[0].violations.sum())
    assert figure._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(InvalidInput, match="no rounds"):
        tw.run(runs[0].learner, runs[0].stream[:0]).plot()


def test_runs_and_comparisons_show_themselves_in_notebooks(runs, monkeypatch):
    html = runs[0]._repr_html_()
    assert interval(runs[0].regret) in html
    assert html.count("<figure") == 4
    assert "<script" not in html
    style = html.split("<style>")[1].split("</style>")[0]
    foreign = re.search(r"^(?!\.tidewolf|@media|\s|})[^\s<].*\{", style, flags=re.MULTILINE)
    assert foreign is None, "it styles nothing else in the notebook"
    problem = tw.problems.adversarial(30)
    found = tw.compare([tw.LyapunovDescent], {"a & b": problem}, cautions=[1.0, 10.0])
    html = found._repr_html_()
    assert html.count("<figure") == 1
    assert "a &amp; b" in html
    assert [axes.get_title() for axes in found.plot().axes] == ["a & b"]
    monkeypatch.setattr(charts, "installed", lambda name: False)
    assert found._repr_html_().startswith("<pre>")


# --- worst intervals ------------------------------------------------------------------------------


def test_worst_intervals_are_those_of_the_family(runs, monkeypatch):
    run = tw.run(runs[0].learner, runs[0].stream, decisions=True)
    (found,) = sections.quick_intervals([run])
    shown = sections.intervals_context([found], run_styles([run]), Clock(150))
    (group,) = shown.groups
    assert len(group.rows) == len(found.worst_by_length()) > 2
    for row, (these, regret, violation) in zip(group.rows, found.worst_by_length(), strict=True):
        assert regret.regret[1] == max(each.regret[1] for each in these)
        assert violation.violation == max(each.violation for each in these)
        where = [f"{each.start + 1:,} \u2013 {each.stop:,}" for each in (regret, violation)]
        numbers = [interval(regret.regret), where[0], number(violation.violation), where[1]]
        assert [cell.text for cell in row] == [f"{regret.length:,}", *numbers]
        assert row[2].bar[:2] == (regret.start / 150, regret.stop / 150)
        for cell, most in ((row[1], regret.bound.regret), (row[3], violation.bound.violation)):
            assert cell.lines == (f"measured bound: at most {number(most)}",)
    assert sections.intervals_context([], [], Clock(150)) is None
    monkeypatch.setattr(sections, "_QUICK", 100)
    assert sections.quick_intervals([run]) == []


# --- times and names ------------------------------------------------------------------------------


def test_rounds_without_dates_have_numbers():
    losses = Linear(np.ones((4, 2)))
    for times in (None, [1.0, 2.0, 3.0, 4.0], [2e9, 1.9e9, 2e9, 2e9], [2e9, np.nan, 2e9, 2e9]):
        clock = clock_of(Stream(losses, time=times), 4)
        assert (clock.times, clock.when(2), clock.span(0, 4)) == (None, "round 3", "1 \u2013 4")
    days = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-07"]
    clock = clock_of(Stream(losses, time=days), 4)
    assert clock.when(3) == "2026-03-07 (round 4)"
    assert clock.span(0, 2) == "2026-03-01 \u2013 2026-03-02"
    assert clock_of(Stream(losses, time=days), 0) == Clock(0)


# --- charts: what is drawn and what tooltips say are the numbers; labels touch nothing ------------


seeds = st.integers(0, 2**16)


def drawn(draw, **size):
    return figure(charts.Chart("name", "title", "", draw, **size))


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
    shown = charts.ShownRun(RunStyle(hue=2), None, [f"n{i}" for i in range(entries)], values, edges)
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


VIOLATIONS = [[0.0, 0.0], [1e-9, 0.3, 0.0], [0.02, 0.021], [0.5], [1e-12, 1e12], []]


@pytest.mark.parametrize("violations", VIOLATIONS)
def test_frontiers_are_drawn_at_any_scale(violations):
    places = [float(i) for i in range(len(violations))]
    curves = [charts.Curve("a", violations, places), charts.Curve("b", [], [])]
    chart = frontier_chart("frontier", "title", "", curves)
    assert charts.saved(charts.picture([chart]), "png").startswith(b"\x89PNG")
    dots = figure(chart)["tooltip"]["dots"]
    assert len(dots) == len(violations)
    wide, high = chart.size
    assert all(0 <= x <= wide and 0 <= y <= high for x, y, _, _ in dots)
    least, most = min(violations, default=1.0) or 1.0, max(violations, default=1.0) or 1.0
    assert 1 <= len(charts.round_numbers(least, most)) <= 6


def test_a_frontier_has_its_knob_at_the_points():
    notes = [f"caution {caution}" for caution in (1, 10, 100)]
    curve = charts.Curve("ours", [0.3, 0.1, 0.0], [1.0, 2.0, 3.0], notes, 2, default=1)
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
    labels = [
        {"xy": point, "text": f"node {i}", "color": "black"} for i, point in enumerate(points)
    ]
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
    parts = enumerate(map(float, means))
    experts = Experts(Expert(f"m{i}", "advice", 0.0, x, 0.0, None, None, 1) for i, x in parts)
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


# --- networks on pages: places of nodes, loads and utilisation of links, paths, in ----------------


FLOWS = [*FlowPolytope.examples(), *MultiFlow.examples(), *CapacitatedFlow.examples()]


def run_on(K, rounds=4, capacity=None, constraints=None):
    losses = tw.functions.Linear(np.ones((rounds, *K.shape)))
    if capacity is not None:
        constraints = tw.functions.Capacity(np.full((rounds, *K.shape), capacity))
    return tw.run(tw.LyapunovDescent(K), tw.Stream(losses, constraints))


def network_of(run, net=None):
    ((_, found),) = networks_of(shown_runs([run]), Clock(run.rounds), net and problem_of(run, net))
    return found


def problem_of(run, net):
    return tw.problems.Problem("net", run.learner.K, run.stream, "A network.", network=net)


def test_every_network_is_drawn():
    for K in FLOWS:
        found = network_of(run_on(K))
        assert (found.places >= 0.0).all()
        assert (found.places <= found.size).all()
        made = figure(network.network_chart(found, RunStyle("x")))
        assert "nan" not in made["svg"]
        assert len(made["tooltip"]["dots"]) == len(found.links) + len(found.nodes)
        assert all(f">{name}</text>" in made["svg"] for name in found.nodes)


@given(st.integers(2, 20), st.integers(0, 2**16))
@settings(max_examples=15)
def test_a_graph_is_laid_out_alike_from_left_to_right_and_nodes_keep_apart(count, seed):
    rng = np.random.default_rng(seed)
    pairs = [(int(rng.integers(i)), i) for i in range(1, count)]
    places = node_places(count, pairs, [0], [count - 1])
    np.testing.assert_array_equal(places, node_places(count, pairs, [0], [count - 1]))
    gaps = [np.hypot(*(700.0 * (p - q))) for i, p in enumerate(places) for q in places[:i]]
    assert min(gaps) > 8.0
    assert places[0, 0] < places[-1, 0]
    assert (np.abs(places - 0.5) <= 0.5 + 1e-9).all()
    apart = node_places(2 * count, [*pairs, *((i + count, j + count) for i, j in pairs)], [], [])
    assert np.isfinite(apart).all()


def test_utilisation_is_load_over_capacity():
    run = run_on(FlowPolytope.examples()[0], 6, capacity=0.8)
    found = network_of(run)
    assert found.limited
    for link, load in zip(found.links, run.trajectory.mean, strict=True):
        assert link.load == pytest.approx(load)
        assert link.used == pytest.approx(load / 0.8)
    assert "of 0.8" in found.links[0].words


@pytest.mark.parametrize("learner", [tw.LyapunovDescent, tw.Ensemble, tw.BanditPrimalDual])
@pytest.mark.parametrize("moving", [False, True])
def test_the_worst_utilisation_is_that_of_any_round_and_says_which(learner, moving):
    """Also if a kernel plays, if a round has capacity 0, and after a run was resumed."""
    rng, links = np.random.default_rng(3), [("a", "b"), ("b", "c"), ("a", "c")]
    net = tw.networks.Network(links, source="a", target="c", demand=4.0)
    rounds = 400  # more than a page has parts
    room = 4.0 * rng.uniform(0.3, 1.0, (rounds, 3))
    room[17, 2] = 0.0
    sent = 4.0 * rng.uniform(0.5, 1.0, (rounds, 1)) if moving else None
    stream = tw.Stream(net.losses(rng.uniform(1, 2, (rounds, 3)), sent), net.limits(room, sent))
    run = tw.run(learner(net.K, horizon=rounds), stream, decisions=True)
    demands = [None] * rounds if sent is None else sent
    loads = [net.loads(*each) for each in zip(run.decisions.points, demands, strict=True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.nan_to_num(np.array(loads) / room, nan=0.0, posinf=np.inf)
    found = {link.name: link for link in network_of(run, net).links}
    for e, name in enumerate(net.link_names):
        assert found[name].worst == pytest.approx(used[:, e].max())
        assert found[name].when == f"round {used[:, e].argmax() + 1}"
    again = recorded(learner(net.K, horizon=rounds), stream, cuts=[rounds // 3])
    np.testing.assert_allclose(again.peaks.used, run.peaks.used, rtol=1e-9)
    assert tw.run(again.learner, tw.Stream(stream.losses)).peaks is None


def test_nodes_are_drawn_where_they_are_if_that_is_known(tmp_path):
    """In a table beside the edge list, in the attributes of a graph, on the built-in backbone; else
    distances in the graph decide.
    """
    where = {"a": (-122.0, 47.0), "b": (-105.0, 40.0), "c": (-74.0, 41.0)}
    table = "".join(f"{name},{x},{y}\n" for name, (x, y) in where.items())
    (tmp_path / "nodes.csv").write_text(f"name,longitude,latitude\n{table}")
    (tmp_path / "links.csv").write_text("tail,head\na,b\nb,c\na,c\n")
    (tmp_path / "costs.csv").write_text("a > b,b > c,a > c\n1,1,3\n1,2,2\n")
    text = '[set]\ngraph = "links.csv"\nsource = "a"\ntarget = "c"\nnodes = "nodes.csv"\n'
    (tmp_path / "own.toml").write_text(f'{text}[stream]\ncosts = "costs.csv"\n')
    problem = experiments.load(tmp_path / "own.toml").problem(0)
    assert problem.node_places == where
    run = tw.run(tw.LyapunovDescent(problem.K), problem.stream)
    shown = shown_runs([run])
    ((_, found),) = networks_of(shown, Clock(2), problem)
    across, down = dict(zip(found.nodes, found.places, strict=True)), 1
    assert across["a"][0] < across["b"][0] < across["c"][0]
    assert across["a"][down] < across["c"][down] < across["b"][down]
    assert (found.places >= 0.0).all()
    assert (found.places <= found.size).all()
    del where["b"]
    ((_, other),) = networks_of(shown, Clock(2), replace(problem, node_places=where))
    np.testing.assert_array_equal(other.places, network_of(run, problem.network).places)
    graph = networkx.DiGraph([("a", "b")])
    assert read_graph(graph).node_places == {}
    graph.add_node("a", Longitude=1.0, Latitude="2.5")
    assert read_graph(graph).node_places == {}
    graph.add_node("b", Longitude=3, Latitude=4)
    assert read_graph(graph).node_places == {"a": (1.0, 2.5), "b": (3.0, 4.0)}
    assert {*tw.problems.routing(4).K.nodes} <= tw.problems.routing(4).node_places.keys()


def test_links_of_several_commodities_add_up():
    K = MultiFlow.examples()[1]
    run = run_on(K)
    loads = pytest.approx(K.loads(run.trajectory.mean))
    assert [link.load for link in network_of(run).links] == loads
    shares = Counter()
    for route in routes_of(K, None, K.center):
        shares[route.commodity] += route.share
    assert all(0.9 < share <= 1.0 + 1e-9 for share in shares.values())
    demands = np.array([[2.0] * len(K.demands), [4.0] * len(K.demands)])
    owner = np.repeat(np.arange(len(K.demands)), K.shape[0] // len(K.demands))
    limits = tw.functions.MaxUtilization(K.incidence, demands, np.full(len(K.tails), 8.0), owner)
    moving = run_on(K, 2, constraints=limits)
    x = moving.trajectory.means
    loads = (2.0 * K.incidence @ x[0] + 4.0 * K.incidence @ x[1]) / 2.0
    links = network_of(moving).links
    assert [link.load for link in links] == pytest.approx(loads)
    assert [link.used for link in links] == pytest.approx(loads / 8.0)


@pytest.mark.parametrize("paths", ["away", "all", "k-shortest"])
@pytest.mark.parametrize("moving", [False, True])
def test_a_network_with_demands_says_volumes(paths, moving):
    links = [("a", "b", 1.0, 6.0), ("b", "a", 1.0, 6.0), ("b", "c", 1.0, 4.0), ("a", "c", 2.0)]
    net = tw.networks.Network(links, commodities=[("a", "c", 4.0), ("a", "b", 2.0)], paths=paths)
    rounds = 6
    demands = np.array([[4.0 + t, 2.0] for t in range(rounds)]) if moving else None
    limits = net.limits(np.tile(net.capacities, (rounds, 1)), demands)
    losses = net.losses(np.tile(net.lengths, (rounds, 1)), demands)
    run = tw.run(tw.LyapunovDescent(net.K), tw.Stream(losses, limits))
    found = {link.name: link for link in network_of(run, net).links}
    if demands is None:
        loads = dict(zip(net.link_names, net.loads(run.trajectory.mean, net.volumes), strict=True))
        assert {name: link.load for name, link in found.items()} == pytest.approx(loads)
    assert found["a > c"].capacity is None
    assert found["b > c"].capacity == pytest.approx(4.0)
    assert found["b > c"].used == pytest.approx(found["b > c"].load / 4.0)
    date = datetime(2026, 1, 2, tzinfo=UTC)
    about = {"name": "<n>", "about": "", "seed": 0, "date": date}
    text = report.page([run], **about, problem=problem_of(run, net))
    assert "a &gt; b" in text
    assert "&lt;n&gt;" in text
    assert ("links are not used" in text) == bool(net.cut)
    assert ("not used, for it" in text) == bool(net.cut)


def test_of_a_large_network_the_busy_links_are_drawn_and_names_are_at_the_pointer():
    edges = [*(("s", i) for i in range(160)), *((i, "t") for i in range(160))]
    K = FlowPolytope.from_edges(edges, source="s", target="t")
    run, x = run_on(K, 1), np.zeros(320)
    x[[3, 163]], x[[4, 164]] = 0.75, 0.25
    run.trajectory.means[:] = x
    found = network_of(run)
    assert sorted(link.load for link in found.links) == [0.25, 0.25, 0.75, 0.75]
    assert set(found.nodes) == {"s", "3", "4", "t"}
    ring = [(i, (i + 1) % 40) for i in range(40)]
    net = tw.networks.Network(ring, source=0, target=9, paths="all")
    made = figure(network.network_chart(network_of(run_on(net.K), net), RunStyle()))
    assert "<text" not in made["svg"]
    assert {str(i) for i in range(40)} <= {dot[3] for dot in made["tooltip"]["dots"]}


def test_other_sets_have_no_network():
    run = run_on(Simplex(3))
    assert networks_of(shown_runs([run]), Clock(4)) == []
    assert routes_of(Simplex(3), None, np.ones(3) / 3) is None


def test_limits_of_links_have_volumes_and_may_add_up_to_more_than_the_headline():
    links = [("a", "c"), ("a", "b"), ("b", "c")]
    net = tw.networks.Network(links, source="a", target="c", demand=80.0)
    stream = tw.Stream(net.losses(np.ones((4, 3))), net.limits(np.full((4, 3), 20.0)))
    run = tw.run(tw.LyapunovDescent(net.K), stream)
    found = limits_context([run], net)
    (group,) = found["table"].groups
    for row, (_, total, breach, _) in zip(group.rows, broken_limits(run), strict=True):
        assert row[1].text == number(total)
        assert row[1].lines == (f"volume {number(80.0 * total)}",)
        assert row[3].lines == (f"volume {number(80.0 * breach.worst)}",)
    assert any("largest violation of each round" in sentence for sentence in found["sentences"])
    assert limits_context([run])["table"].groups[0].rows[0][1].lines == ()
    one = run_on(Simplex(2), capacity=0.5)
    assert limits_context([one])["sentences"] == ["LyapunovDescent: no constraint was violated."]
