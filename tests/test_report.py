"""The report page: it stands alone, says the numbers in words, and is honest when there is no best
point in hindsight.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tidewolf import report
from tidewolf.baselines import SinhaVaze
from tidewolf.cli import screen
from tidewolf.core.batch import Stream
from tidewolf.core.errors import MissingExtra
from tidewolf.evaluation.formatting import interval, number, tick
from tidewolf.evaluation.hindsight_words import contradiction
from tidewolf.evaluation.membership import Membership
from tidewolf.evaluation.run import run
from tidewolf.functions import Affine, Linear
from tidewolf.learners import LyapunovDescent, PrimalDual
from tidewolf.problems import routing
from tidewolf.report.clock import Clock, clock_of
from tidewolf.report.figures import COLORS, PlotLine, drawing
from tidewolf.report.rendering import asset
from tidewolf.report.styles import RunStyle, run_styles, title_of
from tidewolf.sets import Simplex

ABOUT = {
    "name": "routing",
    "about": "One flow across a backbone.",
    "seed": 3,
    "date": datetime(2026, 1, 2, tzinfo=UTC),
}
VOID = {"meta", "br", "hr", "img", "link", "input"}


def both(problem):
    return [
        run(learner(problem.K, horizon=len(problem)), problem.stream)
        for learner in (LyapunovDescent, SinhaVaze)
    ]


@pytest.fixture(scope="module")
def runs():
    return both(routing(rounds=150, seed=3))


@pytest.fixture(scope="module")
def infeasible():
    return both(routing(rounds=60, seed=3, feasible=False))


class Reader(HTMLParser):
    """Text, tags and attributes of a page, with every element closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data.strip())


def test_the_page_stands_alone(runs):
    page = report.page(runs, **ABOUT)
    read = Reader(page)
    assert "http" not in page
    assert "@import" not in page
    assert not {"link", "iframe", "img", "image"} & set(read.tags)
    assert not {"src", "href", "srcset", "id"} & {name for name, _ in read.attributes}
    assert page.startswith("<!doctype html>")
    assert read.tags.count("script") == page.count("<script>") == 1
    assert not any(word in page for word in ("fetch(", "XMLHttpRequest", "import(", "url("))
    assert len(page) < 300_000


def test_the_page_says_every_number(runs):
    text = Reader(report.page(runs, **ABOUT)).text
    assert "150 rounds \xb7 seed 3" in text
    assert "2026-01-02 00:00 UTC" in text
    for each in runs:
        assert type(each.learner).__name__ in text
        assert repr(each.learner) in text
        assert interval(each.regret) in text
        assert f"{interval(each.regret, 150)} a round" in text
        assert number(float(each.violations.sum())) in text
        assert f"{each.oracle_calls:,} in all" in text
        assert number(each.max_infeasibility) in text


def test_the_page_says_whether_the_certificate_holds_and_what_fails(runs):
    assert Reader(report.page(runs, **ABOUT)).text.count("certificate holds") == 2
    outside = Membership(runs[0].learner.hard_set)
    outside.restore((1.0, 150, 0, 150, None))
    broken = [replace(runs[0], membership=outside), runs[1]]
    text = Reader(report.page(broken, **ABOUT)).text
    assert text.count("certificate fails") == 1
    assert any(
        "It does not hold that every played point is a member of the set: 1 was measured" in part
        for part in text
    )


def test_what_was_measured_is_called_a_measured_bound_and_no_promise(runs, capsys):
    ours = runs[0]
    assert ours.bound.regret is not None
    assert ours.certificate.regret.guarantee is None
    screen.show_results([ours], "routing", Path("report.html"), {})
    for shown in (
        report.page([ours], **ABOUT),
        ours._repr_html_(),
        capsys.readouterr().out,
        repr(ours),
    ):
        assert "promis" not in shown.lower()
    for shown in (report.page([ours], **ABOUT), ours._repr_html_()):
        assert f"measured bound: at most {number(ours.bound.regret)}" in Reader(shown).text
        assert f"measured bound: at most {number(ours.bound.violation)}" in Reader(shown).text
        assert any(
            text.startswith(f"measured bound {number(ours.bound.violation)}, ")
            for text in Reader(shown).text
        ), "in the legend"
    lines = [line.split() for line in str(ours).splitlines()]
    (row,) = [line for line in lines if line[0] == "regret"]
    assert ["measured", "measured", "bound", "guarantee", "bound/trivial"] in lines
    assert "none" in row, "under promise"


def test_what_was_known_before_the_first_round_is_called_promised():
    K = Simplex(4)
    learner = PrimalDual(K, horizon=2000, loss_lipschitz=1.0, constraint_lipschitz=1.0)
    costs, limits = np.full((2000, 4), 0.25), np.full((2000, 4), 0.5)
    kept = run(learner, Stream(Linear(costs), Affine(limits, np.ones(2000))))
    guaranteed = learner.guarantee()
    assert guaranteed.regret is not None
    for shown in (report.page([kept], **ABOUT), kept._repr_html_()):
        text = Reader(shown).text
        assert f"promised: at most {number(guaranteed.regret)}" in text
        assert f"measured bound: at most {number(kept.bound.regret)}" in text
    assert "What was promised was known before the first round." in report.page([kept], **ABOUT)


def test_four_figures_of_what_adds_up_and_two_for_each_learner(runs):
    read = Reader(report.page(runs, **ABOUT))
    assert read.tags.count("figure") == 4 + 2 * len(runs)
    assert [title for title in read.text if title.startswith("Cumulative")] == [
        "Cumulative loss",
        "Cumulative regret",
        "Cumulative violation",
        "Cumulative oracle calls",
    ]


def test_the_same_runs_give_the_same_page(runs):
    assert report.page(runs, **ABOUT) == report.page(runs, **ABOUT)


def test_the_page_is_written_whole(runs, tmp_path):
    report.write(tmp_path / "report.html", runs, **ABOUT)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.page(runs, **ABOUT)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["report.html", "report.json"]


def test_nothing_given_becomes_markup(runs):
    page = report.page(runs, **ABOUT | {"name": "<script>x", "about": '"&<b>'})
    assert escape("<script>x") in page
    assert Reader(page).tags.count("script") == 1
    assert '"&<b>' in Reader(page).text


def test_one_learner_twice_gets_two_names(runs):
    text = Reader(report.page([runs[0], runs[0]], **ABOUT)).text
    assert {"LyapunovDescent 1", "LyapunovDescent 2"} <= set(text)


def test_without_a_feasible_point_the_page_says_so(infeasible):
    assert infeasible[0].regret is None
    read = Reader(report.page(infeasible, **ABOUT))
    said = contradiction(infeasible[0].comparator.infeasibility, infeasible[0].stream)
    assert any(said in text for text in read.text)
    assert "Cumulative regret" not in read.text
    assert "Cumulative loss" in read.text
    assert read.tags.count("figure") == 3 + 2 * len(infeasible)
    assert number(float(infeasible[0].violations.sum())) in read.text


def test_drawings_leave_their_colours_to_the_page():
    drawn = drawing(
        [
            PlotLine(np.linspace(0.0, 1.0, 50), (0.9, 1.1)),
            PlotLine(np.linspace(0.0, -1.0, 50), style=RunStyle(hue=1)),
        ],
        "Two <lines>",
    )
    assert drawn.description == "Two <lines>"
    drawn = drawn.inside
    assert "#" not in drawn
    assert {"currentColor", "var(--line-0)", "var(--line-1)"} <= set(
        drawn.replace(";", " ").replace('"', " ").split()
    ) | {"var(--line-0)"}
    assert ">0.5</text>" in drawn


def test_pictures_that_stand_alone_have_the_colours_of_the_page():
    light, _ = asset("colors.css").split("@media")
    assert all(f"--line-{hue}: {color};" in light for hue, color in enumerate(COLORS))


def test_long_series_are_thinned_and_keep_their_ends():
    values = np.cumsum(np.sin(np.arange(200_000)))
    made = drawing([PlotLine(values)], "")
    assert len(made.inside) < 30_000
    at = made.tooltip["at"]
    assert (at[0], at[-1], len(at)) == (1, 200_000, 200)
    assert made.tooltip["lines"][0] == [
        pytest.approx(values[t - 1], rel=1e-4) for t in made.tooltip["at"]
    ]


@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0], [1e-9, 2e-9, 3e-9], [-5e12, 5e12]])
def test_odd_series_draw(values):
    assert drawing([PlotLine(np.array(values))], "").inside.strip().endswith("</g>")


def test_a_bound_is_drawn_where_it_is_near_and_said_where_it_is_far():
    values = np.linspace(0.0, 10.0, 20)
    plain, near, far = (
        drawing([PlotLine(values, None, bound)], "").inside for bound in (None, 12.0, 1e6)
    )
    assert plain == far != near


def test_the_experiment_as_resolved_is_shown(runs):
    page = report.page(runs, **ABOUT, experiment="rounds = 150\nlearners = ['<a>']")
    assert "<pre>rounds = 150\nlearners = [&#39;&lt;a&gt;&#39;]</pre>" in page
    assert repr(runs[0].learner.hard_set) in Reader(page).text


def test_cautions_that_move_name_the_runs_and_draw_their_frontier():
    problem = routing(rounds=60, seed=1)
    swept = [
        run(LyapunovDescent(problem.K, horizon=60, caution=caution), problem.stream)
        for caution in (1.0, 30.0)
    ]
    text = Reader(report.page(swept, **ABOUT)).text
    assert {
        "LyapunovDescent, caution 1",
        "LyapunovDescent, caution 30",
        "Frontier",
        "caution 1",
        "caution 30",
    } <= set(text)
    assert number(float(swept[1].violations.mean())) in text
    other = run(SinhaVaze(problem.K, horizon=60), problem.stream)
    seen = run_styles([*swept, other])
    assert [style.hue for style in seen] == [0, 0, 1]
    assert seen[0][2:] != seen[1][2:]
    assert [style.hue for style in run_styles([swept[0], other, swept[0]])] == [0, 1, 2]
    assert "Frontier" not in Reader(report.page(swept[:1], **ABOUT)).text


def test_a_run_without_its_points_has_a_page_without_them(runs):
    text = Reader(report.page([replace(each, trajectory=None) for each in runs], **ABOUT)).text
    assert "Cumulative violation" in text
    assert not {"The decision over time", "The network"} & set(text)


def test_a_run_of_no_rounds_has_a_page():
    problem = routing(rounds=10)
    page = report.page([run(LyapunovDescent(problem.K, horizon=10), problem.stream[:0])], **ABOUT)
    assert "0 rounds" in page
    assert "figure" not in Reader(page).tags


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (0.0, "0"),
        (12345.6, "12,346"),
        (1.23456, "1.235"),
        (-0.0123456, "-0.01235"),
        (1.2e-13, "1.2e-13"),
        (None, "unknown"),
    ],
)
def test_numbers_are_said_to_four_digits(x, said):
    assert number(x) == said


def test_an_interval_is_a_number_and_its_error_where_digits_cannot_tell():
    assert interval((1.00001, 1.00002)) == "1 \u00b1 5e-06"
    assert interval((2.0, 2.0)) == "2"
    assert interval((-3.0, 5.0), 2) == "[-1.5, 2.5]"


def test_ticks_are_short():
    assert [tick(x) for x in (0.0, 250.0, 2500.0, -1e6, 0.05)] == [
        "0",
        "250",
        "2.5k",
        "-1M",
        "0.05",
    ]


# --- times and names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "rounds", "labels", "title"),
    [
        (1, 100, ["06:13:30", "06:14", "06:14:30"], "time, 2026"),
        (300, 400, ["12:00", "26 Feb", "12:00"], "time, 2026"),
        (3600, 500, ["Mar", "05 Mar", "09 Mar", "13 Mar", "17 Mar"], "time, 2026"),
        (3600, 8000, ["Mar", "May", "Jul", "Sep", "Nov", "2027"], "time, 2026\u20132027"),
        (86_400, 2000, ["2027", "2028", "2029", "2030", "2031"], "time, 2026\u20132031"),
    ],
)
def test_ticks_are_round_dates(step, rounds, labels, title):
    times = 1.772e9 + step * np.arange(rounds)
    found = clock_of(Stream(Linear(np.ones((rounds, 2))), time=times), rounds).ticks()
    assert (found.labels, found.title) == (labels, title)
    assert len(found.places) == len(labels)
    assert all(1 <= place <= rounds for place in found.places)
    assert found.places == sorted(found.places)


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


def test_names_are_written_as_people_write_them():
    assert [title_of(name) for name in ("geant", "sdp", "uunet", "routing", "")] == [
        "GEANT",
        "SDP",
        "UUNET",
        "Routing",
        "",
    ]


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib", "networkx"])
def test_without_an_extra_a_page_is_one_sentence(monkeypatch, runs, missing):
    from importlib.util import find_spec

    from tidewolf.report import notebook, rendering

    def without(name):
        return None if name == missing else find_spec(name)

    for module in (rendering, notebook):
        monkeypatch.setattr(module, "find_spec", without)
    with pytest.raises(MissingExtra, match=rf"Pages need {missing}, .*tidewolf\[app\]"):
        report.page(runs, **ABOUT)
    shown = runs[0]._repr_html_()
    assert ("<table" in shown) == (missing != "jinja2")
    assert ("<figure" in shown) == (missing == "networkx")


def test_the_page_names_the_limits_that_were_broken(runs):
    text = Reader(report.page(runs, **ABOUT)).text
    assert "Limits that were broken" in text
    for each in runs:
        worst = int(np.argmax(each.each_violation))
        assert each.limit_names[worst] in text
        assert number(float(each.each_violation[worst])) in text
    kept = replace(runs[0], each_violation=np.zeros_like(runs[0].each_violation))
    assert "LyapunovDescent: no limit was broken." in Reader(report.page([kept], **ABOUT)).text


def test_a_page_links_to_the_decisions_that_lie_beside_it(runs, tmp_path):
    for name in ("decisions.csv", "decisions.parquet", "paths.csv", "rounds.parquet"):
        (tmp_path / name).touch()
    report.write(tmp_path / "report.html", runs, **ABOUT)
    read = Reader((tmp_path / "report.html").read_text(encoding="utf-8"))
    links = [value for name, value in read.attributes if name == "href"]
    assert links == ["decisions.csv", "decisions.parquet", "paths.csv"]


def test_violation_begins_at_zero_and_regret_where_it_does():
    values = np.linspace(3.0, 9.0, 20)
    assert drawing([PlotLine(values)], "", from_zero=True).tooltip["y"][0] == 0.0
    assert drawing([PlotLine(values)], "").tooltip["y"][0] > 0.0
    assert drawing([PlotLine(np.zeros(3))], "", from_zero=True).tooltip["y"][:2] == [0.0, 1.0]
