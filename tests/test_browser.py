"""Report pages in a real browser: nothing leaves the file, nothing overflows a phone or paper, the
numbers are at the pointer.
"""

import re
from datetime import UTC, datetime

import numpy as np
import pytest

import browsing
import tidewolf as tw
from browsing import contrast, luminance
from tidewolf import report
from tidewolf.report import comparison

browser, visit, OUT = browsing.browser, browsing.visit, browsing.OUT
DATE, HOSTILE = datetime(2026, 1, 2, tzinfo=UTC), "<script>alert(1)</script>"
PAPER = 696
"""The width of A4 between its margins, in CSS pixels."""
PAGES = ("routing", "backbone", "comparison")


@pytest.fixture(scope="module")
def runs():
    problem = tw.problems.routing(rounds=150, seed=3)
    learners = (tw.Ensemble(problem.K), tw.LyapunovDescent(problem.K))
    return [tw.run(learner, problem.stream) for learner in learners]


@pytest.fixture(scope="module")
def files(runs, tmp_path_factory):
    """The pages of runs on flows, of a backbone with dates and hostile names, and of a
    comparison.
    """
    folder = tmp_path_factory.mktemp("pages")
    about = {"name": "routing", "about": "A flow.", "seed": 3, "date": DATE}
    about["problem"] = tw.problems.routing(rounds=1)
    report.write(folder / "routing.html", runs, **about, experiment="rounds = 150")
    names = [HOSTILE, *(f"Node {i}" for i in range(1, 12))]
    ring = [(names[i], names[(i + 1) % 12]) for i in range(12)]
    links = [*ring, *((head, tail) for tail, head in ring)]
    net = tw.networks.Network(links, commodities=[(names[0], names[6], 6.0)], paths="k-shortest")
    rng = np.random.default_rng(5)
    costs, room = rng.uniform(1.0, 2.0, (60, 24)), rng.uniform(2.0, 9.0, (60, 24))
    hours = np.datetime64("2026-03-01T00:00") + np.arange(60) * np.timedelta64(1, "h")
    stream = tw.Stream(net.losses(costs), net.limits(room), time=hours)
    dated = [tw.run(tw.LyapunovDescent(net.K), stream)]
    problem = tw.problems.Problem("net", net.K, stream, "A net.", labels=net.names, network=net)
    about |= {"name": HOSTILE, "about": HOSTILE, "decisions": ["decisions.csv"], "problem": problem}
    report.write(folder / "backbone.html", dated, **about)
    learners = [tw.LyapunovDescent, tw.baselines.SinhaVaze]
    problem = {"routing": tw.problems.routing(rounds=40)}
    compared = tw.compare(learners, problem, cautions=[1.0, 10.0])
    page = comparison.comparison_page(compared, date=DATE)
    (folder / "comparison.html").write_text(page, encoding="utf-8")
    return {file.stem: file.as_uri() for file in folder.glob("*.html")}


def hover(page, plot, x, y):
    """The pointer at a share of a plot's width and height; what the page says there."""
    plot.scroll_into_view_if_needed()
    page.wait_for_timeout(50)  # a scroll hides the tooltip one frame later
    box = plot.bounding_box()
    page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    assert page.locator(".tip").is_visible()
    return page.locator(".tip").inner_text()


@pytest.mark.parametrize("name", PAGES)
def test_nothing_scrolls_sideways_or_is_cut_off(visit, files, name):
    page = visit(files[name])
    for width in (320, 390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (width, page.evaluate(OUT, width)) == (width, [])
    wide = "[...document.querySelectorAll('.scroll:has(.results)')]"
    assert page.evaluate(f"{wide}.every((each) => each.scrollWidth <= each.clientWidth)")
    page.set_viewport_size({"width": 390, "height": 900})
    sizes = page.evaluate(
        """() => [...document.querySelectorAll("figure text")]
            .filter((text) => text.checkVisibility())
            .map((text) => [text.getScreenCTM(), parseFloat(getComputedStyle(text).fontSize)])
            .map(([matrix, size]) => size * Math.hypot(matrix.a, matrix.b))"""
    )
    assert min(sizes) >= 8.5, "text in charts is readable on a phone"


def test_names_that_are_markup_stay_names_and_times_are_on_axes_and_at_the_pointer(visit, files):
    page = visit(files["backbone"])
    assert (page.locator("h1").inner_text(), page.locator("script").count()) == (HOSTILE, 1)
    assert HOSTILE in page.locator(".beneath").first.inner_text()
    assert page.locator("a").get_attribute("href") == "decisions.csv"
    plot = page.locator(".plot > svg").first
    assert "1 Mar" in plot.text_content()
    assert "time, 2026" in plot.text_content()
    assert re.match(r"2026-03-0[12] \d\d:00 \(round \d+\)", hover(page, plot, 0.5, 0.4))
    assert "2026-03-01 00:00" in page.locator(".facts").inner_text()


def figure(page, title):
    return page.locator("figure", has=page.get_by_role("heading", name=title, exact=True)).first


def test_the_numbers_are_at_the_pointer(visit, files, runs):
    page = visit(files["routing"])
    page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    plot = figure(page, "Cumulative violation").locator(".plot > svg")
    said = hover(page, plot, 0.5, 0.4).split("\n")
    at = int(re.fullmatch(r"round (\d+)", said[0])[1])
    assert 60 < at < 90
    for name, value, run in zip(said[1::2], said[2::2], runs, strict=True):
        assert name == type(run.learner).__name__
        assert float(value) == pytest.approx(run.violations[:at].sum(), rel=1e-3)
    page.mouse.move(2, 2)
    assert not page.locator(".tip").is_visible()
    plot.focus()
    page.keyboard.press("ArrowLeft")
    assert f"round {at - 1}" in page.locator(".tip").inner_text()
    heat = figure(page, "The decision of LyapunovDescent").locator("svg").first
    when, entry = hover(page, heat, 0.9, 20 / heat.bounding_box()["height"]).split("\n", 1)
    kept = runs[1].trajectory
    part = kept.edges.tolist().index(int(re.search(r"\d+", when)[0]) - 1)
    assert tw.problems.routing(rounds=1).labels[0] in entry
    assert float(entry.split()[-1]) == pytest.approx(kept.means[part, 0], abs=1e-3)


DOTS = {"comparison": "What the knob costs and buys", "routing": "The network under Ensemble"}


@pytest.mark.parametrize(("name", "title"), DOTS.items())
def test_a_pointer_near_a_dot_is_told_what_it_is(visit, files, name, title):
    page = visit(files[name])
    plot = figure(page, title).locator(".plot")
    x, y, _, words = page.evaluate(
        "(plot) => JSON.parse(plot.dataset.tooltip).dots[1]", plot.element_handle()
    )
    svg = plot.locator("svg")
    wide, high = svg.evaluate("(svg) => [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height]")
    assert hover(page, svg, (x + 3) / wide, (y + 3) / high).strip() == words
    assert ("caution 10" if name == "comparison" else "mean load") in words


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_stand_out_on_the_screen_and_paper_is_white(visit, files, scheme):
    page = visit(files["routing"], color_scheme=scheme)
    look = page.evaluate(
        """() => { const probe = document.body.appendChild(document.createElement("i"));
            const lines = Array.from({length: 8}, (_, i) => `line-${i}`);
            const names = ["paper", "card", "ink", "faint", ...lines];
            const found = names.map((name) => {
                probe.style.color = `var(--${name})`;
                return [name, getComputedStyle(probe).color];
            });
            probe.remove(); return Object.fromEntries(found); }"""
    )
    assert (luminance(look["paper"]) < 0.05) == (scheme == "dark")
    for behind in ("paper", "card"):
        assert contrast(look["ink"], look[behind]) >= 7
        assert contrast(look["faint"], look[behind]) >= 4.5
        assert all(contrast(look[f"line-{i}"], look[behind]) >= 3 for i in range(8))
    ink = page.evaluate('getComputedStyle(document.querySelector(".plot text")).fill')
    assert ink == look["ink"]
    page.emulate_media(media="print")
    body = "getComputedStyle(document.body)"
    assert luminance(page.evaluate(f"{body}.backgroundColor")) == 1
    assert contrast(page.evaluate(f"{body}.color"), "rgb(255, 255, 255)") >= 7
    assert not page.locator("summary").first.is_visible()
    page.set_viewport_size({"width": PAPER, "height": 1000})
    assert page.evaluate(OUT, PAPER) == []


def test_without_scripts_the_numbers_are_there(visit, files, runs):
    page = visit(files["routing"], java_script_enabled=False)
    text = page.locator("main").text_content()
    for run in runs:
        assert f"{run.oracle_calls:,} in all" in text
    page.locator("summary").first.click()
    assert page.locator("details[open] tbody tr").count() == 10
    links = figure(page, "The network under Ensemble").locator("details tbody tr")
    assert links.count() == len(runs[0].trajectory.mean)
