"""The answer of `/metrics` in Prometheus' text format, with a bounded number of series.

Sums are over all sessions. Series with the name of a session or a limit are for the `WORST` alone;
the others are in the sums. Labels are printable and short: what is not is replaced, and a digest
keeps two such names apart. What falls when sessions are deleted, rolled back or closed is a gauge.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import tidewolf
from tidewolf.service.overviews import Overview
from tidewolf.service.traffic import EDGES, OTHER, Traffic

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from tidewolf.service.sessions import Sessions
    from tidewolf.storage.session_store import SessionStore

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
SOURCES, FALLBACKS = ("learner", "last", "static", "pinned", "incumbent"), ("last", "static")
"""Series that are there from the start, so that their first increase is one."""

Count = int | Mapping[str, int]
Rows = Iterable[tuple[Any, tuple[str, ...]]]
"""A value and its labels each."""


def exposition(sessions: Sessions, traffic: Traffic) -> bytes:
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
    overviews: Sequence[Overview], counters: Mapping[str, Count], http: Traffic, store: SessionStore
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


def _metric(kind: Literal["Gauge", "Counter"], name: str, about: str, value: float) -> Metric:
    from prometheus_client import core

    found: Metric = getattr(core, f"{kind}MetricFamily")(f"tidewolf_{name}", about, value=value)
    return found


def _labelled(
    kind: Literal["Gauge", "Counter"], name: str, about: str, by: str, rows: Rows
) -> Metric:
    """A metric with labels, whose names `by` has."""
    from prometheus_client import core

    made = getattr(core, f"{kind}MetricFamily")(f"tidewolf_{name}", about, labels=by.split())
    for value, labels in rows:
        made.add_metric([label(each) for each in labels], value)
    found: Metric = made
    return found


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
    broken = [_finite(total) for each in seen for total in each.limits.values()]
    oldest = max((_finite(each.oldest_pending) for each in seen), default=0.0)
    for name, about, value in (
        ("sessions", "Sessions.", len(seen)),
        ("rounds_total", "Rounds observed, of all.", sum(each.rounds for each in seen)),
        ("pending", "Decisions without an observation.", sum(each.pending for each in seen)),
        ("oldest_pending_seconds", "How long the oldest decision waits for feedback.", oldest),
        (
            "sessions_breached",
            "Sessions that broke a limit in their last round.",
            sum(each.breached for each in seen),
        ),
        (
            "sessions_stale",
            "Sessions whose feedback has been missing for too long.",
            sum(each.stale for each in seen),
        ),
        ("violation_total", "By how much limits of open sessions were broken.", sum(broken)),
        (
            "limits_broken",
            "Limits that were broken since their sessions were opened.",
            sum(total > 0 for total in broken),
        ),
    ):
        yield _metric("Gauge", name, about, value)


def _worst(seen: Sequence[Overview]) -> Iterator[Metric]:
    limits = ((total, each.name, limit) for each in seen for limit, total in each.limits.items())
    last = ((each.violations[-1] if each.violations else None, each.name) for each in seen)
    oldest = ((each.oldest_pending, each.name) for each in seen)
    worst = f"the {WORST} worst"
    for name, about, by, rows in (
        (
            "limit_violation_total",
            f"By how much a limit was broken in all; {worst} of all sessions.",
            "session limit",
            limits,
        ),
        (
            "session_violation",
            f"The violation of the last round; {worst} sessions.",
            "session",
            last,
        ),
        (
            "session_oldest_pending_seconds",
            f"How long the oldest decision waits for feedback; {worst} sessions.",
            "session",
            oldest,
        ),
    ):
        yield _labelled("Gauge", name, about, by, _largest(rows))


def _largest(rows: Iterable[tuple[Any, ...]]) -> Rows:
    """Rows with the largest positive finite values at their heads."""
    found = (row for row in rows if _finite(row[0]) > 0.0)
    chosen = heapq.nsmallest(WORST, found, key=lambda row: (-row[0], *row[1:]))
    return ((value, tuple(labels)) for value, *labels in chosen)


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
        yield _labelled(
            "Counter", name, about, by, _labelled_rows({**dict.fromkeys(known, 0), **values})
        )
    for name, about in (
        ("observations", "Observations acknowledged."),
        ("refused", "Requests that sessions refused."),
        ("breaches", "Observed rounds that broke a limit."),
    ):
        found = counters.get(name, 0)
        total = found if isinstance(found, int) else sum(found.values())
        yield _metric("Counter", name, about, total)


def _labelled_rows(values: Mapping[str, float]) -> Rows:
    return ((value, (key,)) for key, value in _bounded(values, LABELS, OTHER).items())


def _of_traffic(http: Traffic) -> Iterator[Metric]:
    from prometheus_client.core import HistogramMetricFamily

    yield _metric("Gauge", "ready", "Whether requests are taken.", http.ready)
    yield _metric("Gauge", "requests_in_flight", "Requests under way.", http.in_flight)
    about = "Requests refused before they were read."
    yield _labelled("Counter", "requests_refused", about, "reason", _labelled_rows(http.refused))
    answered = _bounded(dict(http.requests), REQUESTS, (OTHER,) * 3)
    rows = ((value, key) for key, value in answered.items())
    yield _labelled("Counter", "requests", "Requests answered.", "route method status", rows)
    times = HistogramMetricFamily(
        "tidewolf_request_seconds", "How long requests took.", labels=["route"]
    )
    for route, timing in sorted(dict(http.timings).items())[:ROUTES]:
        buckets, reached = [], 0
        for edge, count in zip((*EDGES, math.inf), list(timing.counts), strict=True):
            reached += count
            buckets.append(("+Inf" if edge == math.inf else f"{edge:g}", reached))
        times.add_metric([label(route)], buckets, timing.total)
    yield times


def _of_store(store: SessionStore) -> Iterator[Metric]:
    from prometheus_client.core import InfoMetricFamily

    items, syncs = store.commits.items, store.commits.syncs
    mean = items / syncs if syncs else 0.0
    about = "Writes asked for, each kept whole or not at all."
    yield _metric("Counter", "commits", about, items)
    yield _metric("Counter", "syncs", "Groups of writes, one sync of the disk each.", syncs)
    about = "Writes in a group, in the mean since the start."
    yield _metric("Gauge", "commits_per_sync", about, mean)
    failing = store.is_well() is not None
    yield _metric("Gauge", "commits_failing", "Whether nothing can be kept now.", failing)
    versions = {"version": tidewolf.__version__, "python": platform.python_version()}
    yield InfoMetricFamily("tidewolf_build", "What serves.", value=versions)
