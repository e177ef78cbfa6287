"""The report page in a real browser: nothing leaves the file, nothing overflows a phone, pointers
are told the numbers.
"""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime

import pytest

import tidewolf as tw
from tidewolf import report
from tidewolf.experiments.experiment import BUILTIN_LEARNERS
from tidewolf.experiments.keys import learner_named
from tidewolf.report import comparison
from tidewolf.rivals import SinhaVaze

playwright = pytest.importorskip(
    "playwright.sync_api",
    reason="The browser is driven by playwright, which is not installed here.",
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="There is no Chromium here to show the pages in."
)
DATE = datetime(2026, 1, 2, tzinfo=UTC)
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def runs():
    """Those of the default learners, as `make run` shows them."""
    problem = tw.problems.routing(rounds=150, seed=3)
    return [
        tw.run(learner_named(name)(problem.K, horizon=150), problem.stream)
        for name in BUILTIN_LEARNERS
    ]


@pytest.fixture(scope="module")
def files(runs, tmp_path_factory):
    """The pages of runs on flows, of runs on matrices that sweep cautions, and of a comparison."""
    folder = tmp_path_factory.mktemp("pages")
    labels = tw.problems.routing(rounds=1).labels
    report.write(
        folder / "routing.html",
        runs,
        name="routing",
        about="A flow.",
        seed=3,
        date=DATE,
        entries=labels,
        experiment="rounds = 150",
    )
    problem = tw.problems.sdp(rounds=40)
    swept = [
        tw.run(tw.LyapunovDescent(problem.K, horizon=40, caution=c), problem.stream)
        for c in (1.0, 10.0)
    ]
    report.write(folder / "sdp.html", swept, name="sdp", about="Antennas.", seed=0, date=DATE)
    compared = tw.compare(
        [tw.LyapunovDescent, SinhaVaze],
        {"routing": tw.problems.routing(rounds=40)},
        cautions=[1.0, 10.0],
    )
    comparison.write_comparison_page(folder / "comparison.html", compared, date=DATE)
    return {file.stem: file.as_uri() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        shown = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield shown
        shown.close()


@pytest.fixture
def visit(browser):
    """Opens a page; at the end nothing was complained of and nothing but the file was asked for."""
    contexts, complaints = [], []

    def opened(address, width=1280, **settings):
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: complaints.append(request.url) if request.url != address else None,
        )
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def hover(page, place, x, y):
    """The pointer at a share of an element's width and height; what the page says there."""
    element = page.locator(place).first
    element.scroll_into_view_if_needed()
    page.wait_for_timeout(50)  # a scroll hides what is said, and is told of one frame later
    box = element.bounding_box()
    page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    assert page.locator(".tip").is_visible()
    return page.locator(".tip").inner_text()


def luminance(color):
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["routing", "sdp", "comparison"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_scrolls_sideways(visit, files, name, width):
    page = visit(files[name], width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in (element.bounding_box() for element in page.locator("figure, h1, h2, p").all()):
        assert box is None or (box["x"] >= 0 and box["x"] + box["width"] <= width + 0.5)


def test_text_in_figures_is_readable_on_a_phone(visit, files):
    page = visit(files["routing"], 390)
    sizes = page.evaluate(
        """() => [...document.querySelectorAll("figure text")]
            .filter((text) => text.checkVisibility())
            .map((text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""
    )
    assert len(sizes) > 40
    assert min(sizes) >= 9
    assert page.locator(".network.down").first.is_visible()
    assert not page.locator(".network.across").first.is_visible()


def test_a_pointer_over_lines_is_told_the_round_and_every_value(visit, files, runs):
    page = visit(files["routing"])
    said = hover(page, "figure[data-tooltip] > svg", 0.5, 0.4).split("\n")
    at = int(re.fullmatch(r"round (\d+)", said[0])[1])
    assert 60 < at < 90
    for name, value, run in zip(said[1::2], said[2::2], runs, strict=True):
        assert name == type(run.learner).__name__
        assert float(value) == pytest.approx(run.regret_curve()[at - 1], rel=1e-3)
    page.mouse.move(2, 2)
    assert not page.locator(".tip").is_visible()


def test_arrow_keys_move_along_the_lines(visit, files):
    page = visit(files["routing"])
    page.locator("figure[data-tooltip] > svg").first.focus()
    page.keyboard.press("ArrowLeft")
    assert "round 149" in page.locator(".tip").inner_text()
    page.keyboard.press("ArrowRight")
    assert "round 150" in page.locator(".tip").inner_text()


def test_a_pointer_over_a_heat_map_is_told_the_entry(visit, files, runs):
    said = hover(visit(files["routing"]), ".heat svg", 0.999, 2.5 / 19)
    trajectory = runs[0].trajectory
    assert f"{trajectory.ends[-1]}" in said
    assert "Palo Alto > Salt Lake City" in said
    assert float(said.split()[-1]) == pytest.approx(trajectory.means[-1, 2], abs=1e-3)


def test_a_pointer_over_a_link_is_told_its_load(visit, files, runs):
    page = visit(files["routing"])
    page.locator(".network.across path.used").last.hover(force=True)
    tails, load = tw.problems.routing(rounds=1).labels, runs[-1].trajectory.mean
    said = page.locator(".tip").inner_text()
    link, _, value = said.partition(": ")
    assert float(value) == pytest.approx(load[tails.index(link.replace(" to ", " > "))], rel=1e-2)


@pytest.mark.parametrize("name", ["sdp", "comparison"])
def test_a_pointer_near_a_point_of_a_frontier_is_told_its_caution(visit, files, name):
    page = visit(files[name])
    figure = page.locator("figure[data-tooltip*=dots]").first
    x, y, _, words = page.evaluate(
        "(figure) => JSON.parse(figure.dataset.tooltip).dots[1]", figure.element_handle()
    )
    said = hover(page, "figure[data-tooltip*=dots] > svg", (x + 5) / 400, (y + 5) / 270)
    assert said.strip() == words
    assert "caution 10" in words


@pytest.mark.parametrize("scheme", SCHEMES)
def test_colours_stand_out_from_what_is_behind_them(visit, files, scheme):
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
    ink = page.evaluate(
        'getComputedStyle(document.querySelector("figure[data-tooltip] text")).fill'
    )
    assert ink == look["ink"]


def test_without_scripts_the_numbers_are_there(visit, files, runs):
    page = visit(files["routing"], java_script_enabled=False)
    text = page.locator("main").inner_text()
    for run in runs:
        assert f"{run.oracle_calls:,} in all" in text
    page.locator("summary").first.click()
    assert page.locator("details[open] tbody tr").count() == 10
    assert page.locator(".network.across title").count() == len(runs) * len(runs[0].trajectory.mean)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_paper_is_white_and_has_everything_on_it(visit, files, scheme):
    page = visit(files["routing"], color_scheme=scheme)
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) == 1
    assert (
        contrast(page.evaluate("getComputedStyle(document.body).color"), "rgb(255, 255, 255)") >= 7
    )
    assert page.locator(".network.across").first.is_visible()
    assert not page.locator("summary").first.is_visible()
