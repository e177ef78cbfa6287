"""What operators look at: a page with every session on a line at `/`, a page per session, and the
metrics at `/metrics`.

A page is one response that loads nothing else: no script, no picture, one style sheet inside. The
policy that allows just that, by the sheet's digest, is `content_policy()`. Jinja2 escapes all
texts.

Numbers of rounds are paths of SVG, in a frame of given width and height, y downwards:

    line    x = width (i + 1/2) / count,  y = height (high - v) / (high - low);  no value, no line
    sticks  from the bottom to v / high, if v > 0

Metrics are in Prometheus' text format, with a bounded number of series. Sums are over all sessions.
Series with the name of a session or a limit are for the `WORST` alone; the others are in the sums.
What falls when sessions are deleted, rolled back or closed is a gauge.
"""

import base64
import hashlib
import heapq
import math
import platform
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from types import SimpleNamespace
from typing import Any, NamedTuple

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.responses import HTMLResponse, Response

import tidewolf
from tidewolf.evaluation.formatting import number
from tidewolf.evaluation.metrics import weight_text
from tidewolf.service.requests import Caller, Traffic
from tidewolf.service.sessions import Overview, Sessions

# Sessions per page.
MOST = 200
# Sessions that an alarm names.
NAMED = 12
# Entries of a decision, experts and limits that are listed.
ENTRIES = 40

Values = Sequence[float | None]

# --- all sessions ---------------------------------------------------------------------------------


def sessions_page(sessions: Sessions, caller: Caller, after: str = "") -> HTMLResponse:
    seen = [each for each in sessions.overview() if each.name.startswith(caller.prefix)]
    rest = [each for each in seen if each.name > after]
    rows, trouble = rest[:MOST], sessions.store.commits.trouble
    breached, stale = [one for one in seen if one.breached], [one for one in seen if one.stale]
    modes = Counter(each.mode for each in seen if each.mode != "live")
    oldest = max((each.oldest_pending or 0.0 for each in seen), default=0.0)
    pending, waits = sum(each.pending for each in seen), f"oldest {age(oldest)}" if oldest else ""
    tiles = [
        Tile("sessions", f"{len(seen):,}", ", ".join(f"{n:,} {mode}" for mode, n in modes.items())),
        Tile("rounds observed", f"{sum(each.rounds for each in seen):,}"),
        Tile("decisions pending", f"{pending:,}", waits),
        Tile("limit violated", f"{len(breached):,}", "in the last round", bool(breached)),
        Tile("feedback missing", f"{len(stale):,}", "for too long", bool(stale)),
        Tile("shadows would save", number(sum(each.saved or 0.0 for each in seen))),
        Tile("commits", "work" if trouble is None else "fail", "", trouble is not None),
    ]
    alarms = {"A limit was violated in the last round of": breached, "No feedback for": stale}
    return render(
        "sessions",
        title="Sessions",
        written=moment(time.time()),
        caller=caller,
        trouble=trouble,
        tiles=tiles,
        alarms=[(words, of[:NAMED], len(of) - NAMED) for words, of in alarms.items() if of],
        rows=[_row(each) for each in rows],
        after=after,
        next_page=rows[-1].name if len(rest) > MOST else "",
        first=len(seen) - len(rest) + 1,
        count=len(seen),
    )


class Tile(NamedTuple):
    title: str
    text: str
    note: str = ""
    bad: bool = False


def _row(of: Overview) -> dict[str, Any]:
    return {
        **of._asdict(),
        "marks": marks(of.breached, of.stale, of.pinned),
        "seen": "" if of.at is None else f"{age(time.time() - of.at)} ago",
        "waiting": "" if of.oldest_pending is None else f"for {age(of.oldest_pending)}",
        "sparks": [
            ("cost", "curve", line(of.costs, 120, 26), of.costs),
            ("violation", "over", sticks(of.violations, 120, 28), of.violations),
        ],
    }


# --- one session ----------------------------------------------------------------------------------


def session_page(facts: Mapping[str, Any]) -> HTMLResponse:
    history, pending, decision = facts["history"], facts["pending"], facts["decision"]
    costs = [each["cost"] for each in history]
    violations = [each["violation"] for each in history]
    saved, sources = facts["saved"], Counter(each["source"] for each in history)
    first = f"from round {pending[0]:,}" if pending else ""
    tiles = [
        Tile("rounds observed", f"{facts['rounds']:,}"),
        Tile("current round", f"{facts['round']:,}"),
        Tile("decisions pending", f"{len(pending):,}", first),
    ]
    for key, values in (("cost", costs), ("violation", violations)):
        if known := [value for value in values if value is not None]:
            mean = math.fsum(value / len(known) for value in known)
            tiles.append(Tile(f"last {key}", number(known[-1]), f"{number(mean)} on average"))
    if saved["rounds"]:
        note = f"in {saved['rounds']:,} rounds"
        tiles += [Tile(f"{key} saved", number(saved[key]), note) for key in ("loss", "violation")]
    return render(
        "session",
        facts=facts,
        title=facts["name"],
        written=moment(time.time()),
        marks=marks(facts["breached"], facts["stale"], facts["pinned"]),
        tiles=tiles,
        charts=[
            ("Cost", "curve", line(costs, 1000, 100), costs),
            ("Violation", "over", sticks(violations, 1000, 100), violations),
        ],
        sources=", ".join(f"{source} {count:,}" for source, count in sources.items()),
        decision=_bars(decision["decision"] or {}, number),
        experts=_bars({one["name"]: one["weight"] for one in facts["experts"]}, weight_text),
        limits=_bars(facts["limits"], number),
    )


def _bars(values: Mapping[str, float], text: Any) -> tuple[list[dict[str, Any]], int]:
    ordered = sorted(values.items(), key=lambda each: (-abs(each[1]), each[0]))
    longest = abs(ordered[0][1]) if ordered else 0.0
    bars = [
        {
            "name": name,
            "neg": value < 0,
            "d": f"M0 4.5H{100.0 * (abs(value) / longest if longest else 0.0):.1f}",
            "text": text(value),
        }
        for name, value in ordered[:ENTRIES]
    ]
    return bars, len(ordered) - len(bars)


def marks(breached: bool, stale: bool, pinned: bool) -> list[tuple[str, bool]]:
    found = {("limit violated", True): breached, ("no feedback", True): stale}
    return [mark for mark, holds in {**found, ("pinned", False): pinned}.items() if holds]


# --- formats --------------------------------------------------------------------------------------


def age(seconds: float) -> str:
    """A length of time, in the largest unit of which there are two.

    Examples
    --------
    >>> from tidewolf.service.pages import age
    >>> age(3), age(150), age(90_000)
    ('3 s', '2 min', '25 h')
    """
    for unit, name in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:,.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def line(values: Values, width: float, height: float) -> str:
    """The values as a line that is interrupted if one is missing.

    Examples
    --------
    >>> from tidewolf.service.pages import line
    >>> line([1.0, 2.0, None, 3.0], 120, 10)
    'M15.0 10.0h0L45.0 5.0M105.0 0.0h0'
    """
    known = [value for value in values if value is not None]
    span = max(known) / 2 - min(known) / 2 if known else 0.0  # halves, so that none overflows
    path, begun = "", False
    for i, value in enumerate(values):
        if value is not None:
            share = (value / 2 - min(known) / 2) / span if span else 0.5
            point = f"{width * (i + 0.5) / len(values):.1f} {height * (1.0 - share):.1f}"
            path += f"L{point}" if begun else f"M{point}h0"
        begun = value is not None
    return path


def sticks(values: Values, width: float, height: float) -> str:
    """The values above 0 as sticks from the bottom.

    Examples
    --------
    >>> from tidewolf.service.pages import sticks
    >>> sticks([0.0, 2.0, None, 1.0], 40, 10)
    'M15.0 10V0.0M35.0 10V5.0'
    """
    high = max((value for value in values if value is not None), default=0.0)
    return "".join(
        f"M{width * (i + 0.5) / len(values):.1f} {height}V{height * (1.0 - value / high):.1f}"
        for i, value in enumerate(values)
        if value is not None and value > 0.0
    )


# --- templates ------------------------------------------------------------------------------------


def render(template: str, **context: Any) -> HTMLResponse:
    html = _environment().get_template(f"{template}.html.j2").render(**context)
    return HTMLResponse(
        html, headers={"content-security-policy": content_policy(), "x-frame-options": "DENY"}
    )


@cache
def content_policy() -> str:
    """The header `Content-Security-Policy`: nothing is loaded or run but the one style sheet."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


@cache
def _style() -> str:
    """The style sheet, line breaks at both ends included, as its digest counts them."""
    root = files("tidewolf")
    colors = root.joinpath("report", "colors.css").read_text(encoding="utf-8")
    rules = root.joinpath("service", "templates", "style.css").read_text(encoding="utf-8")
    return f"\n{colors}{rules}"


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("tidewolf", "service/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"number": number, "moment": moment}
    found.globals |= {"style": _style(), "version": tidewolf.__version__}
    return found


# --- metrics --------------------------------------------------------------------------------------

# Sessions and limits that have series of their own.
WORST = 20
# Series that are there from the start, so that their first increase is one.
SOURCES, FALLBACKS = ("learner", "last", "static", "pinned", "incumbent"), ("last", "static")

# A value and its labels each.
Rows = Iterable[tuple[Any, ...]]


def exposition(sessions: Sessions, traffic: Traffic) -> Response:
    own: Any = SimpleNamespace(collect=partial(_metrics, sessions))
    text = generate_latest(traffic.registry) + generate_latest(own)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _metrics(sessions: Sessions) -> Iterator[Metric]:
    for name, about, labels, rows in (*_gauges(sessions), *_counters(sessions)):
        kind = CounterMetricFamily if name in _COUNTERS else GaugeMetricFamily
        family = kind(f"tidewolf_{name}", about, labels=labels.split())
        for value, *called in rows:
            family.add_metric(called, value)
        yield family


_COUNTERS = {"decisions", "fallbacks", "observations", "refused", "breaches", "commits", "syncs"}


def _gauges(sessions: Sessions) -> Iterator[tuple[str, str, str, Rows]]:
    """Name, description, names of labels and rows of each metric that may fall."""
    seen, commits = sessions.overview(), sessions.store.commits
    broken = [total for each in seen for total in each.limits.values()]
    oldest = [(each.oldest_pending or 0.0, each.name) for each in seen]
    last = [((each.violations or (0.0,))[-1] or 0.0, each.name) for each in seen]
    limits = ((total, each.name, limit) for each in seen for limit, total in each.limits.items())
    per_sync = commits.items / commits.syncs if commits.syncs else 0.0
    breaches, stale = sum(each.breached for each in seen), sum(each.stale for each in seen)
    longest = max(oldest, default=(0.0, ""))[0]
    for name, about, value in (
        ("sessions", "Sessions.", len(seen)),
        ("rounds_total", "Rounds observed, of all.", sum(each.rounds for each in seen)),
        ("pending", "Decisions without an observation.", sum(each.pending for each in seen)),
        ("oldest_pending_seconds", "How long the oldest decision waits for feedback.", longest),
        ("sessions_breached", "Sessions with a violated limit in their last round.", breaches),
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
    row = 1.0, tidewolf.__version__, platform.python_version()
    yield "build_info", "Versions.", "version python", [row]


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
