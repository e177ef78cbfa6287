"""The report page in a real browser: nothing leaves the file, nothing overflows a phone, pointers
are told the numbers.
"""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime

import numpy as np
import pytest

import tidewolf as tw
from covering import thinned
from tidewolf import report
from tidewolf.baselines import SinhaVaze
from tidewolf.experiments.experiment import BUILTIN_LEARNERS
from tidewolf.experiments.keys import learner_named
from tidewolf.report import comparison
from tidewolf.report.charts import BROAD

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
HOSTILE = "<script>alert(1)</script>"
PAPER = 696
"""The width of A4 between its margins, in CSS pixels."""
PAGES = ("routing", "backbone", "infeasible", "sdp", "comparison")


@pytest.fixture(scope="module")
def runs():
    """Those of the default learners, as `make run` shows them."""
    problem = tw.problems.routing(rounds=150, seed=3)
    return [
        tw.run(learner_named(name)(problem.K, horizon=150), problem.stream)
        for name in BUILTIN_LEARNERS
    ]


def backbone(count):
    """A network whose links lead both ways, two commodities, hourly costs and capacities, one name
    that is markup.
    """
    rng = np.random.default_rng(5)
    names = [HOSTILE, *(f"Node {i}" for i in range(1, count))]
    pairs = {(i, i + 1) for i in range(count - 1)} | {(0, count - 1)}
    while len(pairs) < count + 14:
        pairs.add(tuple(sorted(rng.choice(count, 2, replace=False).tolist())))
    ways = [(names[i], names[j]) for i, j in sorted(pairs)]
    links = [*ways, *((head, tail) for tail, head in ways)]
    commodities = [(names[0], names[count // 2], 6.0), (names[3], names[count - 4], 4.0)]
    net = tw.networks.Network(links, commodities=commodities, paths="k-shortest", k=4)
    costs = rng.uniform(1.0, 2.0, (60, len(links)))
    capacities = rng.uniform(2.0, 9.0, (60, len(links)))
    hours = np.datetime64("2026-03-01T00:00") + np.arange(60) * np.timedelta64(1, "h")
    return net, tw.Stream(net.losses(costs), net.limits(capacities), time=hours)


@pytest.fixture(scope="module")
def files(runs, tmp_path_factory):
    """The pages of runs on flows, of a backbone with dates and hostile names, of runs on matrices
    that sweep cautions, of limits that no point keeps, and of a comparison.
    """
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
    net, stream = backbone(30)
    report.write(
        folder / "backbone.html",
        [tw.run(tw.LyapunovDescent(net.K, horizon=60), stream)],
        name=HOSTILE,
        about=HOSTILE,
        seed=0,
        date=DATE,
        entries=net.names,
        network=net,
        decisions=["decisions.csv"],
    )
    problem = tw.problems.routing(rounds=40, feasible=False)
    hopeless = [tw.run(tw.LyapunovDescent(problem.K, horizon=40), problem.stream)]
    report.write(folder / "infeasible.html", hopeless, name="routing", about="", seed=0, date=DATE)
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
    return {file.stem: file.as_uri() for file in folder.glob("*.html")}


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


def called(*names):
    return {name: name for name in names}


def luminance(color):
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", PAGES)
def test_nothing_scrolls_sideways_or_is_cut_off(visit, files, name):
    page = visit(files[name])
    for width in (320, 390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = page.evaluate(
            """() => [...document.querySelectorAll(
                    "figure, h1, h2, h3, p, li, dd, .scroll, svg text, .axis span, .legend b")]
                .filter((each) => each.checkVisibility() && !each.closest("details"))
                .map((each) => [each.tagName + each.textContent.slice(0, 40),
                                each.getBoundingClientRect()])
                .map(([name, box]) => [name, box.left, box.right])"""
        )
        out = [box for box in boxes if box[1] < -0.5 or box[2] > width + 0.5]
        assert (width, out) == (width, [])


def test_a_table_that_scrolls_has_a_sign_of_it(visit, files):
    page = visit(files["backbone"], 390)
    signs = page.evaluate(
        """() => [...document.querySelectorAll(".scroll")]
            .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth)
            .map((each) => getComputedStyle(each))
            .map((style) => [style.backgroundImage.match(/gradient/g).length,
                             style.backgroundAttachment, style.overflowX])"""
    )
    assert signs
    assert all(sign == [4, "local, local, scroll, scroll, scroll", "auto"] for sign in signs)


LABELS = r"""(part) => {
    const shown = [...document.querySelectorAll(part)].filter((each) => each.checkVisibility());
    const at = (svg, x, y) => { const p = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
                                return [p.x, p.y]; };
    return shown.map((svg) => ({
        names: [...svg.querySelectorAll("text.name, text.number, text.point")].map((text) => {
            const box = text.getBoundingClientRect();
            return [text.textContent, box.left, box.top, box.right, box.bottom]; }),
        numbered: svg.querySelectorAll("text.number").length,
        nodes: svg.querySelectorAll(".node").length,
        lines: [...svg.querySelectorAll("path.line")].map((line) => {
            const [a, b, c, d] = line.getAttribute("d").match(/-?[\d.]+/g).map(Number);
            return [...at(svg, a, b), ...at(svg, c, d)]; }),
    }));
}"""


def overlapping(names):
    """Pairs of names whose boxes overlap by more than a pixel."""
    return [
        (one[0], two[0])
        for i, one in enumerate(names)
        for two in names[:i]
        if min(one[3], two[3]) - max(one[1], two[1]) > 1
        and min(one[4], two[4]) - max(one[2], two[2]) > 1
    ]


def crossed(name, lines):
    """Whether a line passes the letters of a name: its box without the space around capitals."""
    _, left, top, right, bottom = name
    room = (bottom - top) * 0.2
    along = np.linspace(0.0, 1.0, 500)[:, None]
    for line in lines:
        points = (1 - along) * line[:2] + along * line[2:]
        inside = (points > [left, top + room]) & (points < [right, bottom - room])
        if inside.all(axis=1).any():
            return True
    return False


@thinned(2, width={"390": 390, "768": 768, "1280": 1280}, name=called("routing", "backbone"))
def test_no_line_crosses_a_name_and_no_two_overlap(visit, files, name, width):
    found = visit(files[name], width).evaluate(LABELS, "svg.network")
    assert found
    for each in found:
        assert len(each["names"]) == each["nodes"]
        assert overlapping(each["names"]) == []
        if not each["numbered"]:  # numbers stand inside their nodes, over the lines
            lines = np.array(each["lines"])
            assert [one[0] for one in each["names"] if crossed(one, lines)] == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_knob_of_a_frontier_is_written_where_it_has_room(visit, files, width):
    (found,) = visit(files["comparison"], width).evaluate(LABELS, ".plot svg")
    assert any("(default)" in each[0] for each in found["names"])
    assert overlapping(found["names"]) == []


def test_names_that_are_markup_stay_names(visit, files):
    page = visit(files["backbone"])
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("script").count() == 1
    assert (
        page.locator(".network.across title", has_text=HOSTILE).count() == 0
    )  # said by the script
    assert HOSTILE in page.locator(".beneath").first.inner_text()
    assert page.locator("a").get_attribute("href") == "decisions.csv"


def test_times_are_on_the_axes_and_at_the_pointer(visit, files):
    page = visit(files["backbone"])
    axis = page.locator(".plot").first.locator("svg").text_content()
    assert "1 Mar" in axis
    assert "time, 2026" in axis
    said = hover(page, ".plot > svg", 0.5, 0.4)
    assert re.match(r"2026-03-0[12] \d\d:00 \(round \d+\)", said)
    assert "2026-03-01 00:00" in page.locator(".facts").inner_text()
    assert "1 Mar" in page.locator(".heat .axis").first.inner_text()


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
    said = hover(page, ".plot > svg", 0.5, 0.4).split("\n")
    at = int(re.fullmatch(r"round (\d+)", said[0])[1])
    assert 60 < at < 90
    for name, value, run in zip(said[1::2], said[2::2], runs, strict=True):
        assert name == type(run.learner).__name__
        assert float(value) == pytest.approx(run.losses[:at].sum(), rel=1e-3)
    page.mouse.move(2, 2)
    assert not page.locator(".tip").is_visible()


def test_arrow_keys_move_along_the_lines(visit, files):
    page = visit(files["routing"])
    page.locator(".plot > svg").first.focus()
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
    page.locator(".network.across .link:not(.idle) .hit").last.hover(force=True)
    tails, load = tw.problems.routing(rounds=1).labels, runs[-1].trajectory.mean
    said = page.locator(".tip").inner_text()
    link, _, words = said.partition(": ")
    value = re.match(r"mean load ([\d.]+) of [\d.]+, \d+ % used; at worst \d+ %, round", words)[1]
    assert float(value) == pytest.approx(load[tails.index(link)], rel=1e-2)


@pytest.mark.parametrize("name", ["sdp", "comparison"])
def test_a_pointer_near_a_point_of_a_frontier_is_told_its_caution(visit, files, name):
    page = visit(files[name])
    plot = page.locator(".plot.broad").first
    x, y, _, words = page.evaluate(
        "(plot) => JSON.parse(plot.dataset.tooltip).dots[1]", plot.element_handle()
    )
    wide, high = BROAD
    said = hover(page, ".plot.broad > svg", (x + 5) / wide, (y + 5) / high)
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
    ink = page.evaluate('getComputedStyle(document.querySelector(".plot text")).fill')
    assert ink == look["ink"]


def test_without_scripts_the_numbers_are_there(visit, files, runs):
    page = visit(files["routing"], java_script_enabled=False)
    text = page.locator("main").inner_text()
    for run in runs:
        assert f"{run.oracle_calls:,} in all" in text
    page.locator("summary").first.click()
    assert page.locator("details[open] tbody tr").count() == 10
    links = page.locator(".network.across .link title")
    assert links.count() == len(runs) * len(runs[0].trajectory.mean)


@thinned(2, name=called("routing", "backbone", "comparison"), scheme=called(*SCHEMES))
def test_paper_is_white_and_has_everything_on_it(visit, files, scheme, name):
    page = visit(files[name], color_scheme=scheme)
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) == 1
    assert (
        contrast(page.evaluate("getComputedStyle(document.body).color"), "rgb(255, 255, 255)") >= 7
    )
    assert page.locator(".network.across, .plot.broad").first.is_visible()
    assert not page.locator("summary").first.is_visible()
    page.set_viewport_size({"width": PAPER, "height": 1000})
    cut = page.evaluate(
        """(wide) => [...document.querySelectorAll(
                "svg text, td, th, p, li, dd, figure, .axis span")]
            .filter((each) => each.checkVisibility())
            .map((each) => [each.textContent.slice(0, 30), each.getBoundingClientRect().right])
            .filter(([, right]) => right > wide + 0.5)""",
        PAPER,
    )
    assert cut == []
