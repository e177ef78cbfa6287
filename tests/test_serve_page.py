"""The pages of the service: what they say, that nothing given becomes markup, and how they look in
a real browser under their own content policy.
"""

from __future__ import annotations

import math
import re
import shutil
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.service.metrics import exposition
from tidewolf.service.overviews import Overview
from tidewolf.service.pages import MOST, content_policy, line, page, session_page, sticks
from tidewolf.service.pages import POINTS as MOST_POINTS
from tidewolf.service.sessions import Sessions
from tidewolf.service.tokens import Caller
from tidewolf.service.traffic import Traffic
from tidewolf.storage.session_store import SessionStore

NOW = 1.8e9
HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'"
CALLER = SimpleNamespace(who="ops", role="reader", prefix="")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
numbers = st.floats() | st.sampled_from([0.0, math.inf, -math.inf, math.nan, 1.7e308, -1.7e308])
series = st.lists(st.none() | numbers, max_size=12)


def shown(overviews, after="", caller=CALLER, trouble=None):
    sessions = SimpleNamespace(
        overview=lambda: overviews, store=SimpleNamespace(is_well=lambda: trouble)
    )
    return page(sessions, caller, after, now=NOW)


def some(count):
    """Sessions of every kind, one with the longest name there is."""
    return [
        Overview(
            "n" * 100 if i == 3 else f"backbone-eu-{i:03d}",
            rounds=60 * i,
            mode=("live", "shadow", "frozen")[i % 3],
            learner="LyapunovFrankWolfe",
            costs=tuple(None if j % 9 == 8 else 5 + math.sin(i + j / 5) for j in range(i % 61)),
            violations=tuple(max(0.0, math.cos(i + j)) * (i % 2) for j in range(i % 61)),
            pending=i % 4,
            oldest_pending=None if i % 4 == 0 else 37.0 * i,
            stale=i % 5 == 2,
            breached=i % 4 == 3,
            saved=123_456.7 if i % 3 == 1 else None,
            pinned=i % 7 == 6,
            created=NOW - 1e6,
            at=NOW - 100.0 * i,
        )
        for i in range(count)
    ]


def facts(text="Lisbon > Madrid"):
    """All that a page of one session may be told."""
    return {
        "name": text,
        "mode": "live",
        "learner": text,
        "rounds": 1_234,
        "round": 1_235,
        "pending": [1_235],
        "created": NOW - 1e6,
        "settings": {text: text, "deadline": None, "pin": {text: 0.5}},
        "saved": {"loss": 12.0, "violation": -0.25, "rounds": 40},
        "stale": True,
        "breached": True,
        "pinned": True,
        "notes": [text, "A sentence that is long enough to be broken on a phone. " * 3],
        "history": [
            {
                "round": i + 200,
                "cost": 5 + math.sin(i / 30),
                "violation": max(0.0, math.sin(i)),
                "source": "last" if i % 9 == 0 else "learner",
            }
            for i in range(1_000)
        ],
        "decision": {
            "round": 1_235,
            "decision": {f"{text} {i}": (-1) ** i * i / 60 for i in range(60)},
            "source": "learner",
            "reason": text,
            "moved": 0.021,
        },
        "experts": [{"name": text, "weight": 0.9996}, {"name": "yesterday", "weight": 0.0004}],
        "limits": {f"{text} {i}": float(i % 3) for i in range(30)},
        "audit": [{"at": NOW - i, "who": text, "what": text, "why": text} for i in range(3)],
    }


class Elements(HTMLParser):
    """Which elements with which attributes a page has, and what it says."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.words = [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, tuple(name for name, _ in attributes)))
        assert not any(name.startswith("on") or name == "style" for name, _ in attributes)
        for name, value in attributes:
            if name in ("href", "src"):
                assert re.match(r"data:,$|\./|\.\./", value)

    def handle_data(self, text):
        self.words.append(text)


# --- what they say --------------------------------------------------------------------------------


def test_the_page_says_every_session_and_the_totals():
    html = shown(some(30))
    for each in some(30):
        assert f"./v1/sessions/{each.name}/report" in html
    text = " ".join(Elements(html).words)
    assert f"{sum(each.rounds for each in some(30)):,}" in text
    assert f"tidewolf {tw.__version__}" in text
    for words in ("limit broken", "no feedback", "pinned", "shadow", "frozen", "work", "a reader"):
        assert words in text


def test_commits_that_fail_are_said_first():
    html = shown(some(2), trouble="There is no space left on the disk.")
    assert "There is no space left on the disk." in html
    assert html.index("There is no space left") < html.index("rounds observed")


def test_only_sessions_of_the_callers_prefix_are_shown_or_counted():
    seen = [Overview("a-1", rounds=5), Overview("b-1", rounds=70_000, stale=True)]
    html = shown(seen, caller=SimpleNamespace(who="ops", role="reader", prefix="a-"))
    assert "a-1" in html
    assert "b-1" not in html
    assert "70,000" not in html
    assert "No feedback" not in html


def test_pages_follow_one_another_and_hold_every_session_once():
    names, after, pages = [f"s{i:04d}" for i in range(2 * MOST + 3)], "", []
    while True:
        html = shown([Overview(name) for name in reversed(names)], after)
        pages.append(re.findall(r'<th scope="row"><a href="\./v1/sessions/(\w+)/report"', html))
        following = re.search(r'href="\./\?after=(\w+)" rel="next"', html)
        if following is None:
            break
        after = following[1]
    assert [len(each) for each in pages] == [MOST, MOST, 3]
    assert [name for each in pages for name in each] == names
    assert "There is no session after" in shown([Overview("a")], after="z")


def test_the_page_of_a_session_says_its_facts():
    text = " ".join(Elements(session_page(facts(), now=NOW)).words)
    for words in (
        "1,234",
        "1,235",
        "Who is trusted",
        "100.0 %",
        "< 0.1 %",
        "20 limits broken",
        "learner 888, last 112",
        "20 smaller entries left out, 19 of them not 0.",
        "What was done to it",
    ):
        assert words in text, words


def test_a_session_of_which_nothing_is_known_has_a_page():
    text = " ".join(Elements(session_page({"name": "new"})).words)
    assert "new" in text
    assert "Who is trusted" not in text


@pytest.fixture
def served(tmp_path):
    """Three sessions that were really served: one observed, one pinned, one that nobody asked."""
    sessions, caller = Sessions(SessionStore.open(tmp_path)), Caller("ops", "writer", "")
    for name in ("lisbon", "madrid", "porto"):
        body = {
            "set": {"kind": "Simplex", "n": 3},
            "rounds": 100,
            "learners": [{"name": "DriftPlusPenalty"}],
            "why": HOSTILE,
        }
        sessions.put(name, body, caller).after.result()
    for _ in range(4):
        sessions.decide("lisbon", {}, caller).after.result()
        seen = {"costs": [3.0, 1.0, 2.0], "capacities": [0.1, 0.2, 0.2]}
        sessions.observe("lisbon", seen, caller).after.result()
    sessions.decide("madrid", {}, caller).after.result()
    yield sessions, caller
    sessions.close()


def test_sessions_that_are_served_are_shown_as_they_are(served):
    sessions, caller = served
    html = page(sessions, caller)
    text = " ".join(" ".join(Elements(html).words).split())
    assert "sessions 3 rounds observed 4 decisions pending 1" in text
    assert "A limit was broken in the last round of lisbon ." in text
    assert html.count('class="spark"') == 2
    text = " ".join(" ".join(Elements(sessions.report("lisbon").body["html"]).words).split())
    for words in ("Every limit was kept in 0 of 4 rounds.", "3 limits broken", "entry 1", HOSTILE):
        assert words in text, words


def test_what_was_served_is_measured(served):
    sessions, _ = served
    got = exposition(sessions, Traffic()).decode()
    for said in (
        "tidewolf_sessions 3.0",
        "tidewolf_rounds_total 4.0",
        "tidewolf_observations_total 4.0",
        "tidewolf_breaches_total 4.0",
        "tidewolf_sessions_breached 1.0",
        "tidewolf_pending 1.0",
        'tidewolf_decisions_total{source="learner"} 5.0',
        "tidewolf_commits_failing 0.0",
    ):
        assert f"\n{said}\n" in got, said
    assert got.count("\ntidewolf_limit_violation_total{") == 3


# --- nothing given becomes markup -----------------------------------------------------------------


def hostile_sessions(text):
    return [Overview(text, mode=text, learner=text, stale=True, breached=True, costs=(1.0,))]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([HOSTILE, "{{ 7 * 7 }}", "\ud800", "\u202e", "</style>"]) | st.text())
def test_pages_of_any_texts_have_the_elements_of_plain_ones(text):
    caller = SimpleNamespace(who=text, role=text, prefix="")
    html = shown(hostile_sessions(text + "x"), caller=caller, trouble=text)
    plain = shown(hostile_sessions("x"), trouble="x")
    assert Elements(html).elements == Elements(plain).elements
    html.encode()


@pytest.mark.parametrize("text", [HOSTILE, "{{ 7 * 7 }}", "\ud800", "</title>", "&lt;"])
def test_the_page_of_a_session_is_as_safe(text):
    html = session_page(facts(text), now=NOW)
    assert Elements(html).elements == Elements(session_page(facts(), now=NOW)).elements
    assert text.encode(errors="replace").decode() in Elements(html).words
    html.encode()


@given(series, st.sampled_from([line, sticks]))
def test_paths_stay_within_their_frames_whatever_the_numbers(values, draw):
    drawn = draw(values, 120, 28)
    assert re.fullmatch(r"(?:[MLVhm]-?[\d.]+(?: -?[\d.]+)?)*", drawn.d)
    for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", drawn.d):
        assert 0 <= float(x) <= 120
        assert 0 <= float(y) <= 28


def test_many_rounds_are_drawn_in_few_points_and_keep_their_extremes():
    values = [1.0] * 100_000
    values[70_001] = 9.0
    assert line(values, 1_000, 100).d.count("L") < 2 * MOST_POINTS
    assert " 0" in line(values, 1_000, 100).d
    assert "V0" in sticks(values, 1_000, 100).d
    wide = {"decision": {f"{i}": 1.0 for i in range(50_000)}}
    assert len(session_page({"name": "a", "decision": wide})) < 50_000


# --- how they look --------------------------------------------------------------------------------

PAGES = {
    "none": lambda: shown([]),
    "one": lambda: shown(some(1)),
    "some": lambda: shown(some(30)),
    "many": lambda: shown(some(2 * MOST), after="b", trouble="The disk is full: make room."),
    "session": lambda: session_page(facts(), now=NOW),
    "hostile": lambda: session_page(facts(HOSTILE), now=NOW),
}
ADDRESS = "http://127.0.0.1/page"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api",
        reason="The browser is driven by playwright, which is not installed here.",
    )
    if CHROMIUM is None:
        pytest.skip("There is no Chromium here to show the pages in.")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """Opens a page under its policy; at the end nothing was complained of or asked for."""
    contexts, complaints = [], []

    def opened(name, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        headers = {
            "content-type": "text/html; charset=utf-8",
            "content-security-policy": content_policy(),
        }
        html = PAGES[name]()
        tab.route("**/*", lambda route: route.fulfill(status=200, headers=headers, body=html))
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on(
            "request",
            lambda request: complaints.append(request.url) if request.url != ADDRESS else None,
        )
        tab.goto(ADDRESS)
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


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
def test_nothing_scrolls_sideways_or_is_cut_off(visit, name):
    tab = visit(name)
    for width in (320, 390, 768, 1280):
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        out = tab.evaluate(
            """(width) => [...document.querySelectorAll(
                    "h1, h2, p, li, dt, dd, a, th, td, svg, .mark, figure")]
                .filter((each) => each.checkVisibility())
                .map((each) => [each.tagName + each.textContent.slice(0, 40),
                                each.getBoundingClientRect()])
                .filter(([, box]) => box.left < -0.5 || box.right > width + 0.5)
                .map(([name, box]) => [name, box.left, box.right])""",
            width,
        )
        assert (width, out) == (width, [])


TEXTS = """() => {
    const behind = (each) => {
        for (let e = each; e; e = e.parentElement) {
            const color = getComputedStyle(e).backgroundColor;
            if (!/, 0\\)$/.test(color)) return color;
        }
    };
    return [...document.querySelectorAll("main *:not(svg, svg *)")]
        .filter((each) => each.checkVisibility() && [...each.childNodes].some(
            (node) => node.nodeType === 3 && node.textContent.trim()))
        .map((each) => [each.textContent.slice(0, 40), getComputedStyle(each).color, behind(each)]);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["some", "many", "session"])
def test_every_text_stands_out_from_what_is_behind_it(visit, name, scheme):
    tab = visit(name, color_scheme=scheme)
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(paper) < 0.05) == (scheme == "dark")
    texts = tab.evaluate(TEXTS)
    assert len(texts) > 50
    assert [each for each in texts if contrast(each[1], each[2]) < 4.5] == []


@pytest.mark.parametrize("name", ["some", "session"])
def test_letters_on_a_phone_are_large_enough(visit, name):
    sizes = visit(name, 390).evaluate(
        """() => [...document.querySelectorAll("main *:not(svg, svg *)")]
            .filter((each) => each.checkVisibility() && each.textContent.trim())
            .map((each) => parseFloat(getComputedStyle(each).fontSize))"""
    )
    assert min(sizes) >= 11


def test_lines_and_sticks_are_drawn_in_their_colours(visit):
    tab = visit("some")
    assert tab.locator(".spark .curve").count() == 29
    strokes = tab.evaluate(
        """() => ["curve", "over"].map((kind) =>
            getComputedStyle(document.querySelector(`.spark .${kind}`)).stroke)"""
    )
    assert strokes == ["rgb(0, 114, 178)", "rgb(213, 94, 0)"]
    tall = tab.evaluate(
        """() => Math.max(...[...document.querySelectorAll(".spark .over")]
            .map((each) => each.getBoundingClientRect().height))"""
    )
    assert tall > 10


def test_names_that_are_markup_stay_names(visit):
    tab = visit("hostile")
    assert tab.locator("h1").inner_text() == HOSTILE
    assert tab.locator("script, img").count() == 0
