"""What `/metrics` shows: sums are right, and series are bounded, whatever there is."""

import math
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

from prometheus_client.parser import text_string_to_metric_families

import tidewolf as tw
from tidewolf.service.pages import WORST, exposition
from tidewolf.service.requests import EDGES, REASONS, Traffic
from tidewolf.service.sessions import Overview


def metrics(overviews=(), counters=(), traffic=None, trouble=None, syncs=4):
    """Every sample by name and labels, in the order of their keys; no two have both in common."""
    store = SimpleNamespace(commits=SimpleNamespace(syncs=syncs, items=10, trouble=trouble))
    counters = Counter(dict(counters))
    sessions = SimpleNamespace(overview=lambda: overviews, counters=counters, store=store)
    found, text = {}, exposition(sessions, traffic or Traffic()).body.decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            of = found.setdefault(sample.name.removeprefix("tidewolf_"), {})
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            assert labels not in of
            of[labels] = sample.value
    return found


def test_sums_are_over_all_sessions():
    seen = [
        Overview("a", rounds=5, pending=2, oldest_pending=7.0, stale=True, limits={"x": 2.0}),
        Overview("b", rounds=6, violations=(0.0, 3.0), breached=True, limits={"x": 1.0, "\n": 0.5}),
    ]
    counters = {("decisions", "learner"): 4, ("decisions", "last"): 1, ("fallbacks", "last"): 1}
    counters |= {("observations", ""): 11, ("refused", ""): 2, ("breaches", ""): 1}
    got = metrics(seen, counters)
    plain = {name: of[()] for name, of in got.items() if () in of}
    expected = {"sessions": 2, "rounds_total": 11, "pending": 2, "oldest_pending_seconds": 7}
    expected |= {"sessions_stale": 1, "sessions_breached": 1, "violation_total": 3.5}
    expected |= {"limits_broken": 3, "observations_total": 11, "refused_total": 2}
    expected |= {"breaches_total": 1, "commits_total": 10, "syncs_total": 4}
    expected |= {"commits_per_sync": 2.5, "commits_failing": 0, "ready": 0, "requests_in_flight": 0}
    assert plain == expected
    unused = dict.fromkeys([("static",), ("pinned",), ("incumbent",)], 0)
    assert got["decisions_total"] == {("learner",): 4, ("last",): 1, **unused}
    assert got["fallbacks_total"] == {("last",): 1, ("static",): 0}
    assert got["limit_violation_total"] == {("x", "a"): 2, ("x", "b"): 1, ("\n", "b"): 0.5}
    assert got["session_violation"] == {("b",): 3}
    assert got["session_oldest_pending_seconds"] == {("a",): 7}
    assert any(tw.__version__ in labels for labels in got["build_info"])


def test_nothing_at_all_is_a_scrape_too():
    got = metrics(trouble="The disk is full.", syncs=0)
    assert got["sessions"] == {(): 0}
    assert got["commits_failing"] == {(): 1}
    assert got["requests_refused_total"] == {(reason,): 0 for reason in REASONS}
    assert sum(map(len, got.values())) < 50


def test_requests_are_counted_and_timed():
    traffic = Traffic()
    for seconds in (0.0005, 0.002, 0.002, 9.0):
        traffic.count("/v1/sessions", "GET", 200, seconds)
    got = metrics(traffic=traffic)
    assert got["requests_total"] == {("GET", "/v1/sessions", "200"): 4}
    assert [*got["request_seconds_bucket"].values()] == [1, 3, *[3] * (len(EDGES) - 2), 4]
    assert math.isclose(got["request_seconds_sum"][("/v1/sessions",)], 9.0045)


def test_the_worst_are_the_worst_of_all_sessions_and_the_others_are_in_the_sums():
    limits = [{f"l{j}": float(100 * i + j) for j in range(100)} for i in range(30)]
    got = metrics([Overview(f"s{i}", limits=limits[i], violations=(i,)) for i in range(30)])
    assert set(got["limit_violation_total"].values()) == set(range(3_000 - WORST, 3_000))
    assert got["violation_total"] == {(): sum(range(3_000))}
    assert set(got["session_violation"].values()) == set(map(float, range(10, 30)))
    assert sum(map(len, got.values())) < 150


def test_alarms_and_their_page_ask_for_series_that_there_are():
    root = Path(__file__).parents[1]
    rules = (root / "deploy" / "alerts.yml").read_text(encoding="utf-8")
    page = (root / "docs" / "how-to" / "operate-the-service.md").read_text(encoding="utf-8")
    traffic = Traffic()
    traffic.count("/v1/sessions", "GET", 200, 0.1)
    seen = [Overview("a", violations=(1.0,), oldest_pending=9.0, limits={"x": 1.0})]
    asked, there = set(re.findall(r"\btidewolf_(\w+)", rules)), set(metrics(seen, traffic=traffic))
    assert len(asked) > 5
    assert asked <= there
    of_page = set(re.findall(r"\btidewolf_(\w+)", page))
    assert of_page <= there | {name.removesuffix("_bucket") for name in there}
    assert re.findall(r"(?m)^\| `(Tidewolf\w+)`", page) == re.findall(r"alert: (\w+)", rules)
