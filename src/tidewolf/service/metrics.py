"""The answer of `/metrics` in Prometheus' text format, with a bounded number of series.

Sums are over all sessions. Series with the name of a session or a limit are for the `WORST` alone;
the others are in the sums. What falls when sessions are deleted, rolled back or closed is a gauge.
"""

from __future__ import annotations

import heapq
import platform
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

import tidewolf
from tidewolf.service.requests import Traffic

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from tidewolf.service.sessions import Sessions

# Sessions and limits that have series of their own.
WORST = 20
# Series that are there from the start, so that their first increase is one.
SOURCES, FALLBACKS = ("learner", "last", "static", "pinned", "incumbent"), ("last", "static")

# A value and its labels each.
Rows = Iterable[tuple[Any, ...]]


def exposition(sessions: Sessions, traffic: Traffic) -> bytes:
    class Collector:
        def collect(self) -> Iterator[Metric]:
            for name, about, labels, rows in (*_gauges(sessions), *_counters(sessions)):
                kind = CounterMetricFamily if name in _COUNTERS else GaugeMetricFamily
                family = kind(f"tidewolf_{name}", about, labels=labels.split())
                for value, *called in rows:
                    family.add_metric(called, value)
                yield family

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())
    return generate_latest(traffic.registry) + generate_latest(registry)


_COUNTERS = {"decisions", "fallbacks", "observations", "refused", "breaches", "commits", "syncs"}


def _gauges(sessions: Sessions) -> Iterator[tuple[str, str, str, Rows]]:
    """Name, description, names of labels and rows of each metric that may fall."""
    seen, commits = sessions.overview(), sessions.store.commits
    broken = [total for each in seen for total in each.limits.values()]
    oldest = [(each.oldest_pending or 0.0, each.name) for each in seen]
    last = [((each.violations or (0.0,))[-1] or 0.0, each.name) for each in seen]
    limits = ((total, each.name, limit) for each in seen for limit, total in each.limits.items())
    per_sync = commits.items / commits.syncs if commits.syncs else 0.0
    longest, stale = max(oldest, default=(0.0, ""))[0], sum(each.stale for each in seen)
    breached = sum(each.breached for each in seen)
    for name, about, value in (
        ("sessions", "Sessions.", len(seen)),
        ("rounds_total", "Rounds observed, of all.", sum(each.rounds for each in seen)),
        ("pending", "Decisions without an observation.", sum(each.pending for each in seen)),
        ("oldest_pending_seconds", "How long the oldest decision waits for feedback.", longest),
        ("sessions_breached", "Sessions with a violated limit in their last round.", breached),
        ("sessions_stale", "Sessions whose feedback has been missing for too long.", stale),
        ("violation_total", "Total violation of open sessions.", sum(broken)),
        ("limits_broken", "Limits violated since their sessions were opened.", len(broken)),
        ("commits_per_sync", "Writes in a group, on average.", per_sync),
        ("commits_failing", "Whether nothing can be stored now.", commits.trouble is not None),
    ):
        yield name, about, "", [(value,)]
    worst = f"the {WORST} worst"
    about = f"Total violation of a limit; {worst} of all sessions."
    yield "limit_violation_total", about, "session limit", _largest(limits)
    about = f"The violation of the last round; {worst} sessions."
    yield "session_violation", about, "session", _largest(last)
    about = f"How long the oldest decision waits for feedback; {worst} sessions."
    yield "session_oldest_pending_seconds", about, "session", _largest(oldest)
    versions = (1.0, tidewolf.__version__, platform.python_version())
    yield "build_info", "Versions.", "version python", [versions]


def _largest(rows: Rows) -> Rows:
    return heapq.nsmallest(WORST, (row for row in rows if row[0] > 0.0), lambda row: (-row[0], row))


def _counters(sessions: Sessions) -> Iterator[tuple[str, str, str, Rows]]:
    found, commits = sessions.counters, sessions.store.commits
    for name, by, known, about in (
        ("decisions", "source", SOURCES, "Decisions answered, by source."),
        ("fallbacks", "fallback", FALLBACKS, "Decisions whose first source failed."),
    ):
        labels = {*known, *(label for key, label in list(found) if key == name)}
        yield name, about, by, [(found[name, label], label) for label in sorted(labels)]
    for name, about, value in (
        ("observations", "Observations acknowledged.", found["observations", ""]),
        ("refused", "Requests that sessions refused.", found["refused", ""]),
        ("breaches", "Observed rounds with a violated limit.", found["breaches", ""]),
        ("commits", "Writes asked for, each stored whole or not at all.", commits.items),
        ("syncs", "Groups of writes, one sync of the disk each.", commits.syncs),
    ):
        yield name, about, "", [(value,)]
