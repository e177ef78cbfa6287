"""What `/metrics` says, in Prometheus' text format: a bounded number of series, whatever there is.

Sums are over all sessions. Series with the name of a session or a limit are for the `WORST` alone;
who is not among them is in the sums. Labels are printable and short: what is not is replaced, and
a digest keeps two such names apart. What falls when sessions are deleted, rolled back or closed is
a gauge.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import tidewolf
from tidewolf.service.overview import Overview

if TYPE_CHECKING:
    from prometheus_client.core import Metric

WORST = 20
"""Sessions and limits that have series of their own."""
LABELS = 20
"""Values of a label that is not known beforehand, such as who decided."""
REQUESTS = 300
"""Series of requests by route, method and status."""
ROUTES = 40
"""Routes that are timed apart."""
LONGEST = 160
"""Letters of a label."""
OTHER = "other"
SOURCES, FALLBACKS = ("learner", "last", "static", "pinned", "incumbent"), ("last", "static")
"""Series that are there from the start, so that their first increase is one."""

Count = int | Mapping[str, int]


class CommitCounts(Protocol):
    """The writer of a shelf: how many groups it wrote, and how many writes were in them."""

    @property
    def syncs(self) -> int: ...

    @property
    def items(self) -> int: ...


class HasCommits(Protocol):
    """A shelf, as far as metrics ask it."""

    @property
    def commits(self) -> CommitCounts: ...

    def is_well(self) -> str | None: ...


class HasCounts(Protocol):
    """The times of a route: how many ended in each bucket, and beyond the last; their sum."""

    @property
    def counts(self) -> Sequence[int]: ...

    @property
    def total(self) -> float: ...


class HasTraffic(Protocol):
    """What came over HTTP, as far as metrics ask."""

    @property
    def in_flight(self) -> int: ...

    @property
    def requests(self) -> Mapping[tuple[str, str, int], int]: ...

    @property
    def timings(self) -> Mapping[str, HasCounts]: ...

    @property
    def refused(self) -> Mapping[str, int]: ...

    @property
    def ready(self) -> bool: ...


class HasSessions(Protocol):
    """All sessions, as far as metrics ask."""

    @property
    def store(self) -> HasCommits: ...

    @property
    def counters(self) -> Mapping[str, Count]: ...

    def overview(self) -> Sequence[Overview]: ...


def exposition(sessions: HasSessions, traffic: HasTraffic) -> bytes:
    """The answer to `GET /metrics`.

    Parameters
    ----------
    sessions : Sessions
        All of them.
    traffic : Traffic
        What came over HTTP.

    Returns
    -------
    bytes
        Text in version 0.0.4 of the format.
    """
    return written(sessions.overview(), sessions.counters, traffic, sessions.store)


def written(
    overviews: Sequence[Overview],
    counters: Mapping[str, Count],
    http: HasTraffic,
    store: HasCommits,
) -> bytes:
    """The same from its parts.

    Parameters
    ----------
    overviews : sequence of Overview
        Every session.
    counters : mapping
        Since the start: "decisions" by source, "fallbacks" by rung, "observations", "refused",
        "breaches".
    http : Traffic
        What came over HTTP.
    store : SessionStore
        Where they are kept.

    Returns
    -------
    bytes
        Text in version 0.0.4 of the format.
    """
    from prometheus_client import CollectorRegistry, generate_latest

    class Collector:
        def collect(self) -> Iterator[Metric]:
            yield from _of_sessions(overviews)
            yield from _worst(overviews)
            yield from _of_counters(counters)
            yield from _of_traffic(http)
            yield from _of_store(store)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())
    return generate_latest(registry)


def label(text: object) -> str:
    """A text that is short and printable, different for different texts.

    Parameters
    ----------
    text : object
        Its `str`.

    Returns
    -------
    str
        The text where it is fine; else what is left of it, and a digest.

    Examples
    --------
    >>> from tidewolf.service.metrics import label
    >>> label("lisbon > madrid")
    'lisbon > madrid'
    >>> len(label("long" * 100))
    185
    """
    given = str(text)
    if len(given) <= LONGEST and given.isprintable() and given[-25:-24] != "~":
        return given
    digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in given[:LONGEST])
    return f"{shown}~{digest}"


def _gauge(name: str, about: str, value: float) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"tidewolf_{name}", about, value=value)


def _counter(name: str, about: str, value: float) -> Metric:
    from prometheus_client.core import CounterMetricFamily

    return CounterMetricFamily(f"tidewolf_{name}", about, value=value)


def _by_label(name: str, about: str, by: str, values: Mapping[str, float]) -> Metric:
    """A counter with one label, of which the largest are told apart."""
    from prometheus_client.core import CounterMetricFamily

    made = CounterMetricFamily(f"tidewolf_{name}", about, labels=[by])
    for key, value in _bounded(values, LABELS, OTHER).items():
        made.add_metric([label(key)], value)
    return made


def _bounded(values: Mapping[Any, Any], most: int, rest: Any) -> dict[Any, Any]:
    """The largest, and the sum of the others under the name of the rest."""
    if len(values) <= most:
        return dict(values)
    ordered = sorted(values.items(), key=lambda each: (-each[1], str(each[0])))
    kept = dict(ordered[: most - 1])
    kept[rest] = kept.get(rest, 0) + sum(value for _, value in ordered[most - 1 :])
    return kept


def _finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else 0.0


# --- sessions -------------------------------------------------------------------------------------


def _of_sessions(seen: Sequence[Overview]) -> Iterator[Metric]:
    oldest = max((_finite(each.oldest_pending) for each in seen), default=0.0)
    broken = sum(_finite(total) for each in seen for total in each.limits.values())
    yield _gauge("sessions", "Sessions.", len(seen))
    yield _gauge("rounds_total", "Rounds observed, of all.", sum(each.rounds for each in seen))
    yield _gauge("pending", "Decisions without an observation.", sum(e.pending for e in seen))
    yield _gauge(
        "oldest_pending_seconds", "How long the oldest decision waits for feedback.", oldest
    )
    yield _gauge(
        "sessions_breached",
        "Sessions that broke a limit in their last round.",
        sum(each.breached for each in seen),
    )
    yield _gauge(
        "sessions_stale",
        "Sessions whose feedback has been missing for too long.",
        sum(each.stale for each in seen),
    )
    yield _gauge("violation_total", "By how much limits of open sessions were broken.", broken)
    yield _gauge(
        "limits_broken",
        "Limits that were broken since their sessions were opened.",
        sum(_finite(total) > 0 for each in seen for total in each.limits.values()),
    )


def _worst(seen: Sequence[Overview]) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    limits = GaugeMetricFamily(
        "tidewolf_limit_violation_total",
        f"By how much a limit was broken in all; the {WORST} worst of all sessions.",
        labels=["session", "limit"],
    )
    totals = ((total, each.name, limit) for each in seen for limit, total in each.limits.items())
    for total, name, limit in _largest(totals):
        limits.add_metric([label(name), label(limit)], total)
    yield limits
    yield _of_worst(
        "session_violation",
        f"The violation of the last round; the {WORST} worst sessions.",
        seen,
        lambda each: each.violations[-1] if each.violations else None,
    )
    yield _of_worst(
        "session_oldest_pending_seconds",
        f"How long the oldest decision waits for feedback; the {WORST} worst sessions.",
        seen,
        lambda each: each.oldest_pending,
    )


def _of_worst(
    name: str, about: str, seen: Sequence[Overview], of: Callable[[Overview], float | None]
) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    made = GaugeMetricFamily(f"tidewolf_{name}", about, labels=["session"])
    for value, session in _largest((of(each), each.name) for each in seen):
        made.add_metric([label(session)], value)
    return made


def _largest(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows with the largest positive finite values at their heads."""
    found = (row for row in rows if _finite(row[0]) > 0.0)
    return heapq.nsmallest(WORST, found, key=lambda row: (-row[0], *row[1:]))


# --- counters, HTTP, commits ----------------------------------------------------------------------


def _of_counters(counters: Mapping[str, Count]) -> Iterator[Metric]:
    for name, by, known, about in (
        ("decisions", "source", SOURCES, "Decisions answered, by who decided."),
        (
            "fallbacks",
            "fallback",
            FALLBACKS,
            "Decisions that a learner failed to make, by who did.",
        ),
    ):
        found = counters.get(name, {})
        values = {OTHER: found} if isinstance(found, int) else found
        yield _by_label(name, about, by, {**dict.fromkeys(known, 0), **values})
    for name, about in (
        ("observations", "Observations acknowledged."),
        ("refused", "Requests that sessions refused."),
        ("breaches", "Observed rounds that broke a limit."),
    ):
        found = counters.get(name, 0)
        yield _counter(name, about, found if isinstance(found, int) else sum(found.values()))


def _of_traffic(http: HasTraffic) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily

    yield _gauge("ready", "Whether requests are taken.", http.ready)
    yield _gauge("requests_in_flight", "Requests under way.", http.in_flight)
    yield _by_label(
        "requests_refused", "Requests refused before anybody read them.", "reason", http.refused
    )
    requests = CounterMetricFamily(
        "tidewolf_requests", "Requests answered.", labels=["route", "method", "status"]
    )
    for key, value in _bounded(dict(http.requests), REQUESTS, (OTHER,) * 3).items():
        requests.add_metric([label(each) for each in key], value)
    yield requests
    yield _times(http.timings)


def _times(timings: Mapping[str, HasCounts]) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    from tidewolf.service.overload import EDGES

    made = HistogramMetricFamily(
        "tidewolf_request_seconds", "How long requests took.", labels=["route"]
    )
    for route, timing in sorted(dict(timings).items())[:ROUTES]:
        buckets, reached = [], 0
        for edge, count in zip((*EDGES, math.inf), list(timing.counts), strict=True):
            reached += count
            buckets.append(("+Inf" if edge == math.inf else f"{edge:g}", reached))
        made.add_metric([label(route)], buckets, timing.total)
    return made


def _of_store(store: HasCommits) -> Iterator[Metric]:
    from prometheus_client.core import InfoMetricFamily

    items, syncs = store.commits.items, store.commits.syncs
    yield _counter("commits", "Writes asked for, each kept whole or not at all.", items)
    yield _counter("syncs", "Groups of writes, one sync of the disk each.", syncs)
    mean = items / syncs if syncs else 0.0
    yield _gauge("commits_per_sync", "Writes in a group, in the mean since the start.", mean)
    yield _gauge("commits_failing", "Whether nothing can be kept now.", store.is_well() is not None)
    versions = {"version": tidewolf.__version__, "python": platform.python_version()}
    yield InfoMetricFamily("tidewolf_build", "What serves.", value=versions)
