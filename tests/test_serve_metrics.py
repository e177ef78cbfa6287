"""What `/metrics` says: sums are right, and series are bounded, whatever there is."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

import tidewolf as tw
from tidewolf.service.metrics import WORST, exposition, label, written
from tidewolf.service.overviews import Overview
from tidewolf.service.traffic import EDGES, REASONS, Traffic

MOST_SERIES = 1_000
"""So many samples a scrape has at the very most."""
BARE = 50
"""So many it has, about, where nothing was ever asked."""
STORE = SimpleNamespace(commits=SimpleNamespace(syncs=4, items=10), is_well=lambda: None)
hostile = st.text(max_size=8) | st.sampled_from(
    ['"', "\\", "\n", 'a"} 1\ntidewolf_sessions 9', "\ud800", "x" * 300, "x" * 301, "\u2028", ""]
)
amounts = st.floats() | st.sampled_from([0.0, math.inf, math.nan, 1e308, 5e-324])


def read(text: bytes) -> dict[str, dict[tuple[str, ...], float]]:
    """Every sample by name and labels, in the order of their keys; no two have both in common."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            of = found.setdefault(sample.name, {})
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            assert labels not in of
            of[labels] = sample.value
    return found


def said(overviews=(), counters=None, traffic=None, store=STORE):
    return read(written(overviews, counters or {}, traffic or Traffic(), store))


def test_sums_are_over_all_sessions():
    seen = [
        Overview("a", rounds=5, pending=2, oldest_pending=7.0, stale=True, limits={"x": 2.0}),
        Overview("b", rounds=6, violations=(0.0, 3.0), breached=True, limits={"x": 1.0, "y": 0.0}),
    ]
    counters = {
        "decisions": {"learner": 4, "last": 1},
        "fallbacks": {"last": 1},
        "observations": 11,
        "refused": 2,
        "breaches": 1,
    }
    got = said(seen, counters)
    plain = {name: of[()] for name, of in got.items() if () in of}
    assert plain["tidewolf_sessions"] == 2
    assert plain["tidewolf_rounds_total"] == 11
    assert plain["tidewolf_pending"] == 2
    assert plain["tidewolf_oldest_pending_seconds"] == 7
    assert plain["tidewolf_sessions_stale"] == plain["tidewolf_sessions_breached"] == 1
    assert plain["tidewolf_violation_total"] == 3
    assert plain["tidewolf_limits_broken"] == 2
    assert plain["tidewolf_observations_total"] == 11
    assert plain["tidewolf_refused_total"] == 2
    assert plain["tidewolf_breaches_total"] == 1
    assert plain["tidewolf_commits_total"] == 10
    assert plain["tidewolf_syncs_total"] == 4
    assert plain["tidewolf_commits_per_sync"] == 2.5
    assert plain["tidewolf_commits_failing"] == 0
    unused = dict.fromkeys([("static",), ("pinned",), ("incumbent",)], 0)
    assert got["tidewolf_decisions_total"] == {("learner",): 4, ("last",): 1, **unused}
    assert got["tidewolf_fallbacks_total"] == {("last",): 1, ("static",): 0}
    assert got["tidewolf_limit_violation_total"] == {("x", "a"): 2, ("x", "b"): 1}
    assert got["tidewolf_session_violation"] == {("b",): 3}
    assert got["tidewolf_session_oldest_pending_seconds"] == {("a",): 7}
    assert any(tw.__version__ in labels for labels in got["tidewolf_build_info"])


def test_nothing_at_all_is_a_scrape_too():
    idle = SimpleNamespace(syncs=0, items=0)
    got = said(store=SimpleNamespace(commits=idle, is_well=lambda: "The disk is full."))
    assert got["tidewolf_sessions"] == {(): 0}
    assert got["tidewolf_commits_failing"] == {(): 1}
    assert got["tidewolf_requests_refused_total"] == {(reason,): 0 for reason in REASONS}
    assert sum(map(len, got.values())) < BARE


def test_requests_are_counted_and_timed():
    traffic = Traffic()
    traffic.expect("/v1/sessions")
    for seconds in (0.0005, 0.002, 0.002, 9.0):
        traffic.count("/v1/sessions", "GET", 200, seconds)
    got = said(traffic=traffic)
    assert got["tidewolf_requests_total"] == {("GET", "/v1/sessions", "200"): 4}
    all_buckets = got["tidewolf_request_seconds_bucket"]
    buckets = [count for labels, count in all_buckets.items() if "/v1/sessions" in labels]
    assert buckets == [1, 3, *[3] * (len(EDGES) - 2), 4]
    assert got["tidewolf_request_seconds_count"] == {("/v1/sessions",): 4, ("other",): 0}
    assert got["tidewolf_request_seconds_sum"][("/v1/sessions",)] == pytest.approx(9.0045)


def test_the_worst_are_the_worst_of_all_sessions():
    seen = [
        Overview(f"s{i}", limits={f"l{j}": float(100 * i + j) for j in range(100)}, violations=(i,))
        for i in range(30)
    ]
    got = said(seen)
    worst = got["tidewolf_limit_violation_total"]
    assert set(worst.values()) == set(map(float, range(3_000 - WORST, 3_000)))
    assert got["tidewolf_violation_total"] == {(): sum(range(3_000))}
    assert set(got["tidewolf_session_violation"].values()) == set(map(float, range(10, 30)))


def test_thousands_of_everything_are_a_bounded_number_of_series():
    traffic = Traffic()
    for i in range(2_000):
        traffic.expect(f"/{i}")
        traffic.count(f"/{i}", f"M{i}", 100 + i, 0.1)
    seen = [
        Overview(f"s{i}", limits={f"l{j}": 1.0 + j for j in range(5_000)}, violations=(1.0 + i,))
        for i in range(4)
    ]
    many = {f"x{i}": i for i in range(3_000)}
    got = said(seen, {"decisions": many, "fallbacks": many, "refused": 1}, traffic)
    assert sum(map(len, got.values())) <= MOST_SERIES
    assert sum(got["tidewolf_decisions_total"].values()) == sum(many.values())
    assert sum(got["tidewolf_requests_total"].values()) == 2_000


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.builds(
            Overview,
            hostile,
            rounds=st.integers(0, 10**9),
            violations=st.lists(st.none() | amounts, max_size=3).map(tuple),
            oldest_pending=st.none() | amounts,
            limits=st.dictionaries(hostile, amounts, max_size=8),
        ),
        max_size=6,
        unique_by=lambda each: each.name,
    ),
    st.dictionaries(hostile, st.integers(0, 10**15), max_size=25),
)
def test_hostile_names_and_numbers_make_no_series_of_their_own(seen, counted):
    got = said(seen, {"decisions": counted, "fallbacks": counted})
    assert sum(map(len, got.values())) <= MOST_SERIES
    assert got["tidewolf_sessions"] == {(): len(seen)}
    for name in ("limit_violation_total", "session_violation", "session_oldest_pending_seconds"):
        values = got.get(f"tidewolf_{name}", {}).values()
        assert len(values) <= WORST
        assert all(0.0 < value < math.inf for value in values)
    assert math.isfinite(got["tidewolf_oldest_pending_seconds"][()])


@given(hostile, hostile)
def test_labels_differ_where_names_do(one, two):
    assert (label(one) == label(two)) == (one == two)
    assert label(one).isprintable()
    assert len(label(one)) < 200


def test_alarms_ask_for_series_that_there_are():
    rules = (Path(__file__).parents[1] / "deploy" / "alerts.yml").read_text(encoding="utf-8")
    traffic = Traffic()
    traffic.count("/v1/sessions", "GET", 200, 0.1)
    seen = [Overview("a", violations=(1.0,), oldest_pending=9.0, limits={"x": 1.0})]
    got = said(seen, traffic=traffic)
    asked = set(re.findall(r"\btidewolf_\w+", rules))
    assert len(asked) > 5
    assert asked <= set(got)


def test_the_answer_is_made_of_what_serves():
    sessions = SimpleNamespace(overview=lambda: [Overview("a")], counters={}, store=STORE)
    assert read(exposition(sessions, Traffic()))["tidewolf_sessions"] == {(): 1}
