"""The pages of the service: what they show, that nothing given becomes markup, and how they look in
a real browser under their own content policy.
"""

import math
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import browsing
import tidewolf as tw
from browsing import OUT, contrast, luminance
from test_hosted_session import THREE, Door
from tidewolf.service.pages import MOST, content_policy, line, session_page, sessions_page, sticks
from tidewolf.service.requests import Caller
from tidewolf.service.sessions import Overview

browser, visit, NOW = browsing.browser, browsing.visit, 1.8e9
HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'"


def shown(overviews, after="", caller=Caller(), trouble=None):  # noqa: B008
    store = SimpleNamespace(commits=SimpleNamespace(trouble=trouble))
    sessions = SimpleNamespace(overview=lambda: overviews, store=store)
    return sessions_page(sessions, caller, after).body.decode()


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
            at=NOW - 100.0 * i,
        )
        for i in range(count)
    ]


def page_of(text="Lisbon > Madrid"):
    """The page of a session with all that it may show."""
    facts = {
        "name": text,
        "mode": "live",
        "learner": text,
        "rounds": 1_234,
        "round": 1_235,
        "pending": [1_235],
        "created": NOW - 1e6,
        "settings": {text: text, "deadline": None, "pin": {text: 0.5}},
        "saved": {"loss": 12.0, "violation": -0.25, "rounds": 40},
        **dict.fromkeys(("stale", "breached", "pinned"), True),
        "notes": [text, "A sentence that is long enough to be broken on a phone. " * 3],
        "history": [
            {"round": i + 200, "cost": 5 + math.sin(i / 3), "violation": 0.1 * i, "source": "last"}
            for i in range(32)
        ],
        "decision": {
            "round": 1_235,
            "decision": {f"{text} {i}": (-1) ** i * i / 60 for i in range(60)},
            "source": "learner",
            "reason": text,
        },
        "experts": [{"name": text, "weight": 0.9996}, {"name": "yesterday", "weight": 0.0004}],
        "limits": {f"{text} {i}": float(i % 3) for i in range(30)},
        "audit": [{"at": NOW - i, "who": text, "what": text, "why": text} for i in range(3)],
    }
    return session_page(facts).body.decode()


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


# --- what they show -------------------------------------------------------------------------------


def test_the_page_shows_every_session_the_totals_and_trouble():
    html = shown(some(30), trouble="There is no space left on the disk.")
    for each in some(30):
        assert f"./v1/sessions/{each.name}/report" in html
    text, rounds = " ".join(Elements(html).words), sum(each.rounds for each in some(30))
    marks = ("limit violated", "no feedback", "pinned", "shadow", "frozen")
    for words in (*marks, f"{rounds:,}", f"tidewolf {tw.__version__}", "There is no space left"):
        assert words in text, words


def test_only_sessions_of_the_callers_prefix_are_shown_or_counted():
    seen = [Overview("a-1", rounds=5), Overview("b-1", rounds=70_000, stale=True)]
    html = shown(seen, caller=Caller("ops", "reader", "a-"))
    assert "a-1" in html
    for words in ("b-1", "70,000", "No feedback"):
        assert words not in html


def test_pages_follow_one_another_and_hold_every_session_once():
    names, after, pages = [f"s{i:04d}" for i in range(2 * MOST + 3)], "", []
    while True:
        html = shown([Overview(name) for name in names], after)
        pages.append(re.findall(r'<th scope="row"><a href="\./v1/sessions/(\w+)/report"', html))
        following = re.search(r'href="\./\?after=(\w+)" rel="next"', html)
        if following is None:
            break
        after = following[1]
    assert [len(each) for each in pages] == [MOST, MOST, 3]
    assert [name for each in pages for name in each] == names
    assert "There is no session after" in shown([Overview("a")], after="z")


def test_sessions_that_are_served_are_shown_as_they_are(tmp_path):
    door = Door(tmp_path)
    for name in ("lisbon", "madrid"):
        door.put(name, {**THREE, "why": HOSTILE})
    assert "Decided by:" not in session_page(door.facts("lisbon")).body.decode()
    for _ in range(4):
        door.observe("lisbon", {"costs": [3.0, 1.0, 2.0], "capacities": [0.1, 0.2, 0.2]})
    door.decide("madrid")
    html = sessions_page(door.sessions, Caller()).body.decode()
    text = " ".join(" ".join(Elements(html).words).split())
    assert "sessions 2 rounds observed 4 decisions pending 1" in text
    assert "A limit was violated in the last round of lisbon ." in text
    html = session_page(door.facts("lisbon")).body.decode()
    text = " ".join(" ".join(Elements(html).words).split())
    for words in ("Decided by: learner 4.", "entry 1", "limit 1", HOSTILE):
        assert words in text, words
    door.sessions.store.close()


# --- nothing given becomes markup -----------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([HOSTILE, "{{ 7 * 7 }}", "\u202e", "</style>", "&lt;"]) | st.text())
def test_pages_of_any_texts_have_the_elements_of_plain_ones(text):
    def both(text):
        seen = [Overview(f"{text}x", mode=text, learner=text, stale=True, costs=(1.0,))]
        html = shown(seen, caller=Caller(text, "reader"), trouble=f"{text}x")
        return Elements(html).elements, Elements(page_of(f"{text}x")).elements

    assert both(text) == both("plain")


@given(
    st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=12),
    st.sampled_from([line, sticks]),
)
def test_paths_stay_within_their_frames_whatever_the_numbers(values, draw):
    drawn = draw(values, 120, 28)
    assert re.fullmatch(r"(?:[MLVh][\d.]+(?: [\d.]+)?)*", drawn)
    for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", drawn):
        assert 0 <= float(x) <= 120
        assert 0 <= float(y) <= 28


# --- how they look --------------------------------------------------------------------------------

PAGES = {
    "none": lambda: shown([]),
    "some": lambda: shown(some(30)),
    "many": lambda: shown(some(2 * MOST), after="b", trouble="The disk is full: make room."),
    "session": page_of,
    "hostile": lambda: page_of(HOSTILE),
}
HEADERS = {"content-type": "text/html; charset=utf-8", "content-security-policy": content_policy()}
HERE = {"address": "http://127.0.0.1/page", "headers": HEADERS}


@pytest.mark.parametrize("name", PAGES)
def test_nothing_scrolls_sideways_or_is_cut_off(visit, name):
    tab = visit(html=PAGES[name](), **HERE)
    for width in (320, 390, 768, 1280):
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert (width, tab.evaluate(OUT, width)) == (width, [])


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
    tab = visit(html=PAGES[name](), color_scheme=scheme, **HERE)
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(paper) < 0.05) == (scheme == "dark")
    texts = tab.evaluate(TEXTS)
    assert len(texts) > 50
    assert [each for each in texts if contrast(each[1], each[2]) < 4.5] == []
