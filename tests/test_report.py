"""The report page: it stands alone, has every number, and nothing given becomes markup; the times
of its axes; its record; what notebooks and pictures show.
"""

import json
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from html.parser import HTMLParser
from importlib import import_module

import numpy as np
import pytest

import tidewolf as tw
from tidewolf import report
from tidewolf.baselines import SinhaVaze
from tidewolf.core.batch import Stream
from tidewolf.core.errors import BrokenFile, InvalidInput, MissingExtra, OtherSettings
from tidewolf.evaluation.formatting import interval, number
from tidewolf.evaluation.metrics import contradiction
from tidewolf.evaluation.tracking import Membership
from tidewolf.functions import Affine, Linear
from tidewolf.learners import LyapunovDescent, PrimalDual
from tidewolf.problems import routing
from tidewolf.report import charts
from tidewolf.report.charts import Clock, clock_of, picture, run_styles, saved
from tidewolf.sets import Simplex

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
    labels = routing(rounds=1).labels
    files = report.write_figures(tmp_path / "new" / "figures", runs[:1], entries=labels)
    names = ["loss", "regret", "violation", "oracle-calls"]
    names += ["points-of-LyapunovDescent", "network-of-LyapunovDescent"]
    assert [each.name for each in files] == [f"{n}.{end}" for n in names for end in ("png", "svg")]
    chart = picture(sections.totals_charts(runs[:1])[:1])
    for file, again in zip(files[:2], ("png", "svg"), strict=True):
        assert file.read_bytes() == saved(chart, again)
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
    run = runs[0]
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
