"""Pages: every session on a line at `/`, and one page per session.

A page is one answer that asks for nothing else: no script, no picture, one style sheet inside. The
policy that allows just that, by the sheet's digest, is `content_policy()`. Texts from outside are
escaped, names too, whatever was checked before.

Numbers of rounds are paths of SVG, in a frame of given width and height, y downwards:

    line    x = width (i + 1/2) / count,  y = height (high - v) / (high - low);  no value, no line
    sticks  from the floor to v / high, if v > 0
"""

from __future__ import annotations

import base64
import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict
from urllib.parse import quote

import tidewolf
from tidewolf.evaluation.experts import weight_text
from tidewolf.evaluation.formatting import number
from tidewolf.service.overviews import Overview

if TYPE_CHECKING:
    from tidewolf.service.sessions import Sessions
    from tidewolf.service.tokens import Caller

MOST = 200
"""Sessions per page."""
NAMED = 12
"""Sessions that an alarm names."""
WIDTH, HEIGHT = 120, 28
"""Of the lines of a list."""
ENTRIES = 40
"""Entries of a decision, experts and limits that are listed."""
LONGEST = 2_000
"""Letters of a text that are shown."""
WIDE, HIGH = 1_000, 100
"""Of the charts of a session."""
POINTS = 480
"""More values than these are drawn as segments: the least and the greatest of each."""


# --- all sessions ---------------------------------------------------------------------------------


def page(sessions: Sessions, caller: Caller, after: str = "", *, now: float | None = None) -> str:
    """The page for who asks, of the sessions that are theirs to see.

    Parameters
    ----------
    sessions : Sessions
        All of them.
    caller : Caller
        Who asks; sessions without the caller's prefix are neither shown nor counted.
    after : str, default ""
        The list begins with the first name behind this one.
    now : float, optional
        What time it is; the clock's by default. Unit: seconds since 1970.

    Returns
    -------
    str
        HTML, to be sent under `content_policy()`.
    """
    now = time.time() if now is None else now
    seen = sorted(
        (each for each in sessions.overview() if each.name.startswith(caller.prefix)),
        key=lambda each: each.name,
    )
    rest = [each for each in seen if each.name > after]
    rows, more = rest[:MOST], len(rest) > MOST
    trouble = sessions.store.is_well()
    return render(
        "sessions",
        title="Sessions",
        written=moment(now),
        seen_by=_seen_by(caller),
        trouble="" if trouble is None else f"Nothing is acknowledged at the moment: {trouble}",
        tiles=_tiles(seen, trouble),
        alarms=_alarms(seen),
        rows=[_row(each, now) for each in rows],
        saving=any(each.saved is not None for each in rows),
        after=after,
        first_page="./" if after else "",
        next_page=f"./?after={_quoted(rows[-1].name)}" if more else "",
        read=_read(rows, len(seen), len(seen) - len(rest)),
    )


def _quoted(name: str) -> str:
    return quote(name, safe="", errors="replace")


def _seen_by(caller: Caller) -> str:
    part = f", sessions that begin with {caller.prefix}" if caller.prefix else ""
    return f"Seen by {caller.who}, a {caller.role}{part}"


def _tile(title: str, text: str, note: str = "", bad: bool = False) -> dict[str, Any]:
    return {"title": title, "text": text, "note": note, "bad": bad}


def _tiles(seen: Sequence[Overview], trouble: str | None) -> list[dict[str, Any]]:
    """What all sessions come to."""
    pending = sum(each.pending for each in seen)
    oldest = max((each.oldest_pending or 0.0 for each in seen), default=0.0)
    broken = sum(each.breached for each in seen)
    stale = sum(each.stale for each in seen)
    saved = [each.saved for each in seen if each.saved is not None]
    tiles = [
        _tile("sessions", f"{len(seen):,}", _modes(seen)),
        _tile("rounds observed", f"{sum(each.rounds for each in seen):,}"),
        _tile("decisions pending", f"{pending:,}", f"oldest {age(oldest)}" if oldest else ""),
        _tile("limit broken", f"{broken:,}", "in the last round", bad=broken > 0),
        _tile("feedback missing", f"{stale:,}", "for too long", bad=stale > 0),
    ]
    if saved:
        tiles.append(_tile("shadows would save", number(sum(filter(math.isfinite, saved)))))
    tiles.append(_tile("commits", "work" if trouble is None else "fail", bad=trouble is not None))
    return tiles


def _modes(seen: Sequence[Overview]) -> str:
    """How many are in which mode, where not all are live."""
    others = {mode: sum(each.mode == mode for each in seen) for mode in ("shadow", "frozen")}
    return ", ".join(f"{count:,} {mode}" for mode, count in others.items() if count)


def _alarms(seen: Sequence[Overview]) -> list[dict[str, Any]]:
    broken = [each for each in seen if each.breached]
    stale = [each for each in seen if each.stale]
    alarms = (("A limit was broken in the last round of", broken), ("No feedback for", stale))
    return [_alarm(words, of) for words, of in alarms if of]


def _alarm(words: str, of: Sequence[Overview]) -> dict[str, Any]:
    left = len(of) - NAMED
    return {
        "words": words,
        "sessions": [{"name": each.name, "address": _address(each)} for each in of[:NAMED]],
        "more": f" and {counted(left, 'other')}." if left > 0 else ".",
    }


def _address(of: Overview) -> str:
    return f"./v1/sessions/{_quoted(of.name)}/report"


def _row(of: Overview, now: float) -> dict[str, Any]:
    return {
        "name": of.name,
        "address": _address(of),
        "mode": of.mode,
        "learner": of.learner,
        "rounds": f"{of.rounds:,}",
        "seen": "" if of.at is None else f"{age(now - of.at)} ago",
        "pending": f"{of.pending:,}",
        "waiting": "" if of.oldest_pending is None else f"for {age(of.oldest_pending)}",
        "cost": _spark("cost", "curve", of.costs, line(of.costs, WIDTH, HEIGHT - 2)),
        "violation": _spark(
            "violation", "over", of.violations, sticks(of.violations, WIDTH, HEIGHT)
        ),
        "saved": "" if of.saved is None else number(of.saved),
        "marks": marks(of.breached, of.stale, of.pinned),
    }


def _spark(what: str, kind: str, values: Sequence[float | None], drawn: Spark) -> dict[str, Any]:
    last = values[-1] if values else None
    words = f"{what} of the last rounds, from {number(drawn.low)} to {number(drawn.high)}"
    return {
        **drawn._asdict(),
        "kind": kind,
        "words": words,
        "last": last,
        "text": number(last) if values else "none yet",
    }


def _read(rows: Sequence[Overview], count: int, skipped: int) -> str:
    last = f"{skipped + 1:,} to {skipped + len(rows):,} of {counted(count, 'session')}. "
    return (
        f"{last if len(rows) < count else ''}Lines are the costs of the last rounds, each on a "
        "scale of its own; sticks are rounds that broke a limit, and by how much."
    )


# --- one session ----------------------------------------------------------------------------------


class Facts(TypedDict, total=False):
    """What `session_page` is made from; all but the name may be missing.

    Parameters
    ----------
    name, mode, learner : str
        As `GET /v1/sessions/{name}` answers.
    rounds, round : int
        Rounds observed, and the one that stands, counted from 1.
    pending : list of int
        Rounds decided and not observed.
    created : float
        When it was made. Unit: seconds since 1970.
    settings : mapping
        What was set, by name.
    saved : mapping or None
        "loss", "violation", "rounds": what shadowing came to.
    pinned, stale, breached : bool
        Its marks.
    notes : list of str
        Sentences.
    history : list of mapping
        "round", "cost", "violation", "source" of the last rounds, oldest first.
    decision : mapping or None
        The last answer of `POST .../decisions`: "round", "decision", "source", "reason", "moved".
    experts : list of mapping
        "name" and "weight" of each.
    limits : mapping of str to float
        The total violation of each that was broken since the session was opened.
    audit : list of mapping
        "at", "who", "what", "why", newest first.
    """

    name: str
    mode: str
    learner: str
    rounds: int
    round: int
    pending: Sequence[int]
    created: float
    settings: Mapping[str, Any]
    saved: Mapping[str, Any] | None
    pinned: bool
    stale: bool
    breached: bool
    notes: Sequence[str]
    history: Sequence[Mapping[str, Any]]
    decision: Mapping[str, Any] | None
    experts: Sequence[Mapping[str, Any]]
    limits: Mapping[str, float]
    audit: Sequence[Mapping[str, Any]]


def session_page(facts: Facts, *, now: float | None = None) -> str:
    """The page of one session.

    Parameters
    ----------
    facts : Facts
        Plain data, see `Facts`.
    now : float, optional
        What time it is; the clock's by default. Unit: seconds since 1970.

    Returns
    -------
    str
        HTML, to be sent under `content_policy()`.

    Examples
    --------
    >>> from tidewolf.service.pages import session_page
    >>> "<h1><bdi>lisbon</bdi></h1>" in session_page({"name": "lisbon"})
    True
    """
    history = facts.get("history", ())
    return render(
        "session",
        title=facts["name"],
        written=moment(time.time() if now is None else now),
        about=_about(facts),
        marks=marks(
            facts.get("breached", False), facts.get("stale", False), facts.get("pinned", False)
        ),
        tiles=_session_tiles(facts),
        charts=_charts(history),
        sources=_sources(history),
        decision=_decision(facts.get("decision")),
        experts=_experts(facts.get("experts", ())),
        limits=_limits(facts.get("limits", {})),
        notes=[_cut(note) for note in facts.get("notes", ())],
        audit=[_entry(each) for each in facts.get("audit", ())],
        settings=[(_cut(key), _setting(it)) for key, it in facts.get("settings", {}).items()],
    )


def _cut(text: object) -> str:
    """A text that is not endless."""
    words = str(text)
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}…"


def _setting(value: object) -> str:
    """A setting: a number, a text, or a point by name."""
    if isinstance(value, Mapping):
        return _cut(", ".join(f"{name} {_setting(each)}" for name, each in value.items()))
    if isinstance(value, float):
        return number(value)
    return "none" if value is None else _cut(value)


def _about(facts: Facts) -> str:
    created = facts.get("created")
    parts = [facts.get("learner", ""), facts.get("mode", "")]
    return " · ".join([*filter(None, parts), *([f"made {moment(created)}"] if created else [])])


def _session_tiles(facts: Facts) -> list[dict[str, Any]]:
    history, pending = facts.get("history", ()), facts.get("pending", ())
    tiles = [("rounds observed", f"{facts.get('rounds', 0):,}", "")]
    if "round" in facts:
        tiles.append(("round that stands", f"{facts['round']:,}", ""))
    oldest = f"from round {min(pending):,}" if pending else ""
    tiles.append(("decisions pending", f"{len(pending):,}", oldest))
    for key in ("cost", "violation"):
        known = [v for v in (each.get(key) for each in history) if v is not None]
        if known:
            mean = number(_mean(known))
            tiles.append((f"last {key}", number(known[-1]), f"{mean} in the mean"))
    tiles += _saved(facts.get("saved"))
    return [{"title": a, "text": b, "note": c, "bad": False} for a, b, c in tiles]


def _mean(values: Sequence[float]) -> float:
    """Of those that are finite; each is divided first, so that no sum overflows."""
    known = [v for v in values if math.isfinite(v)]
    return math.fsum(v / len(known) for v in known) if known else math.nan


def _saved(saved: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    if not saved or not saved.get("rounds"):
        return []
    note = f"in {counted(saved['rounds'], 'round')}"
    return [(f"{key} saved", number(saved.get(key)), note) for key in ("loss", "violation")]


def _charts(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if not history:
        return []
    costs, violations = ([each.get(key) for each in history] for key in ("cost", "violation"))
    kept = sum(v == 0 for v in violations)
    known = sum(v is not None for v in violations)
    said = (
        f"Every limit was kept in {kept:,} of {counted(known, 'round')}."
        if known
        else "No round's violation is known."
    )
    cost = line(costs, WIDE, HIGH)
    over = sticks(violations, WIDE, HIGH)._replace(low=0.0 if known else None)
    return [
        _chart("Cost", _costs_text(costs), "curve", cost, history),
        _chart("Violation", said, "over", over, history),
    ]


def _costs_text(costs: Sequence[float | None]) -> str:
    known = [v for v in costs if v is not None]
    if not known:
        return "No round's cost is known."
    return f"{counted(len(known), 'round')}, {number(_mean(known))} in the mean."


def _chart(
    title: str, about: str, kind: str, drawn: Spark, history: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    same = drawn.low == drawn.high
    low, high = number(drawn.low), number(drawn.high)
    return {
        **drawn._asdict(),
        "title": title,
        "about": about,
        "kind": kind,
        "flat": same and kind == "curve",
        "top": "" if same else high,
        "bottom": low,
        "words": f"{title} by round, from {low} to {high}",
        "first": f"{history[0].get('round', 1):,}",
        "final": f"{history[-1].get('round', len(history)):,}",
    }


def _sources(history: Sequence[Mapping[str, Any]]) -> str:
    """Who decided these rounds, where it was not always the learner."""
    found = Counter(str(each["source"]) for each in history if each.get("source"))
    if set(found) <= {"learner"}:
        return ""
    return f"Decided by: {', '.join(f'{who} {count:,}' for who, count in found.most_common(9))}."


def _decision(answer: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not answer or not answer.get("decision"):
        return None
    said = [f"Round {answer['round']:,}"] if "round" in answer else []
    if answer.get("source"):
        said.append(f"by {answer['source']}")
    if answer.get("moved") is not None:
        said.append(f"moved by {number(answer['moved'])}")
    reason = f" {_cut(answer['reason'])}" if answer.get("reason") else ""
    return {"about": f"{', '.join(said)}.{reason}", **_listed(answer["decision"], "entry")}


def _experts(experts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    weights = {str(each["name"]): float(each["weight"]) for each in experts}
    return _listed(weights, "expert", share=True) if weights else None


def _limits(limits: Mapping[str, float]) -> dict[str, Any] | None:
    if not limits:
        return None
    broken = {name: total for name, total in limits.items() if total > 0}
    about = f"{counted(len(broken), 'limit')} broken since it was last opened, and by how much."
    return {"about": about, **_listed(broken, "limit")}


def _listed(values: Mapping[str, float], what: str, *, share: bool = False) -> dict[str, Any]:
    """The largest as bars, and what is left out."""
    ordered = sorted(values.items(), key=lambda each: (-_size(each[1]), each[0]))
    shown, rest = ordered[:ENTRIES], ordered[ENTRIES:]
    longest = _size(shown[0][1]) if shown else 0.0
    nonzero = sum(v != 0 for _, v in rest)
    plural = {"entry": "entries"}.get(what, "")
    more = f"{counted(len(rest), f'smaller {what}', plural and f'smaller {plural}')} left out"
    return {
        "bars": [_bar(name, v, longest, share) for name, v in shown],
        "more": f"{more}, {nonzero:,} of them not 0." if rest else "",
    }


def _size(value: float) -> float:
    return abs(value) if math.isfinite(value) else 0.0


def _bar(name: str, value: float, longest: float, share: bool) -> dict[str, Any]:
    wide = 100.0 * (_size(value) / longest) if longest else 0.0
    text = weight_text(value) if share else number(value)
    return {
        "name": _cut(name),
        "neg": value < 0,
        "d": f"M0 4.5H{wide:.1f}",
        "text": text,
    }


def _entry(each: Mapping[str, Any]) -> dict[str, str]:
    return {
        "at": moment(each.get("at")),
        **{key: _cut(each.get(key) or "") for key in ("who", "what", "why")},
    }


# --- times, ages and counts -----------------------------------------------------------------------

_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def age(seconds: float) -> str:
    """A stretch of time, in its largest unit that is full twice.

    Parameters
    ----------
    seconds : float
        How long it is.

    Returns
    -------
    str
        A number and its unit.

    Examples
    --------
    >>> from tidewolf.service.pages import age
    >>> age(3), age(150), age(90_000)
    ('3 s', '2 min', '25 h')
    """
    if not math.isfinite(seconds):
        return "an unknown time"
    for unit, name in _UNITS:
        if seconds >= 2 * unit:
            return f"{seconds // unit:,.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def moment(at: float | None) -> str:
    """A time in UTC, to the second.

    Parameters
    ----------
    at : float or None
        Seconds since 1970.

    Returns
    -------
    str
        The time, or "unknown" where it is none.

    Examples
    --------
    >>> from tidewolf.service.pages import moment
    >>> moment(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    try:
        return (
            f"{datetime.fromtimestamp(math.nan if at is None else at, UTC):%Y-%m-%d %H:%M:%S} UTC"
        )
    except (ValueError, OverflowError, OSError):
        return "unknown"


def counted(count: int, one: str, many: str = "") -> str:
    """A number and what is counted.

    Parameters
    ----------
    count : int
        How many.
    one, many : str
        What one is called, and several; by default with an s.

    Returns
    -------
    str
        Both.

    Examples
    --------
    >>> from tidewolf.service.pages import counted
    >>> counted(1, "session"), counted(2_000, "session")
    ('1 session', '2,000 sessions')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def marks(breached: bool, stale: bool, pinned: bool) -> list[tuple[str, bool]]:
    """What is to be seen at once of a session, and whether it is bad.

    Parameters
    ----------
    breached, stale, pinned : bool
        What holds of it.

    Returns
    -------
    list of (str, bool)
        Two words each.

    Examples
    --------
    >>> from tidewolf.service.pages import marks
    >>> marks(True, False, True)
    [('limit broken', True), ('pinned', False)]
    """
    found = (
        ("limit broken", True, breached),
        ("no feedback", True, stale),
        ("pinned", False, pinned),
    )
    return [(words, bad) for words, bad, holds in found if holds]


# --- lines ----------------------------------------------------------------------------------------


class Spark(NamedTuple):
    """A path and what it spans.

    Parameters
    ----------
    d : str
        The path's commands; "" where nothing is known.
    low, high, last : float or None
        The least, the greatest and the last of the values; None where none is known.
    """

    d: str
    low: float | None = None
    high: float | None = None
    last: float | None = None


def line(values: Sequence[float | None], width: float, height: float) -> Spark:
    """The values as a line that is broken where one is missing; a lonely one is a dash.

    Parameters
    ----------
    values : sequence of float or None
        What is not finite counts as missing.
    width, height : float
        Of the frame.

    Returns
    -------
    Spark
        The path.

    Examples
    --------
    >>> from tidewolf.service.pages import line
    >>> line([1.0, 2.0, None, 3.0], 120, 10).d
    'M15 10L45 5M105 0m-2 0h4'
    """
    known, low, high, last = _span(values)
    if not known:
        return Spark("")
    parts: list[str] = []
    half = min(width / 60, width / (4 * len(values)))
    dash = f"m{_text(-half)} 0h{_text(2 * half)}"
    begun = alone = False
    for start, stop in _segments(len(values), POINTS):
        here = [v for v in map(_finite, values[start:stop]) if v is not None]
        if not here:
            parts += [dash] * alone
            begun = alone = False
            continue
        x = width * (start + stop) / (2 * len(values))
        ends = (here[0],) if len(here) == 1 else (min(here), max(here))
        for v in ends:
            y = height * (1.0 - _share(v, low, high))
            parts.append(f"{'L' if begun else 'M'}{_text(x)} {_text(y)}")
            alone, begun = not begun, True
    return Spark("".join(parts + [dash] * alone), low, high, last)


def sticks(values: Sequence[float | None], width: float, height: float) -> Spark:
    """What is above 0, as sticks on the floor.

    Parameters
    ----------
    values : sequence of float or None
        What is not finite counts as missing.
    width, height : float
        Of the frame.

    Returns
    -------
    Spark
        The path.

    Examples
    --------
    >>> from tidewolf.service.pages import sticks
    >>> sticks([0.0, 2.0, None, 1.0], 40, 10).d
    'M15 10V0M35 10V5'
    """
    known, low, high, last = _span(values)
    if not known:
        return Spark("")
    parts = []
    for start, stop in _segments(len(values), POINTS):
        top = max((v for v in map(_finite, values[start:stop]) if v is not None), default=0.0)
        if top > 0.0:
            x = width * (start + stop) / (2 * len(values))
            parts.append(f"M{_text(x)} {_text(height)}V{_text(height * (1.0 - top / high))}")
    return Spark("".join(parts), low, high, last)


def _span(values: Sequence[float | None]) -> tuple[bool, float, float, float | None]:
    """Whether any is known, the least, the greatest, and the last."""
    found = [v for v in map(_finite, values) if v is not None]
    if not found:
        return False, 0.0, 0.0, None
    return True, min(found), max(found), _finite(values[-1])


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _share(value: float, low: float, high: float) -> float:
    """How high a value stands between two others; halves, so that no difference overflows."""
    span = high / 2 - low / 2
    return (value / 2 - low / 2) / span if span > 0.0 else 0.5


def _segments(count: int, most: int) -> Iterator[tuple[int, int]]:
    """`count` places in at most `most` stretches of about the same length."""
    parts = min(count, most)
    for i in range(parts):
        yield i * count // parts, (i + 1) * count // parts


def _text(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")


# --- templates ------------------------------------------------------------------------------------


def render(template: str, **context: Any) -> str:
    """A page from a template of the folder `templates`.

    Parameters
    ----------
    template : str
        Its name, without endings.
    **context
        Plain data.

    Returns
    -------
    str
        HTML that can be sent as UTF-8, whatever was given.
    """
    made: str = (
        _environment()
        .get_template(f"{template}.html.j2")
        .render(style=style(), version=tidewolf.__version__, **context)
    )
    return made.encode("utf-8", "replace").decode("utf-8")


@cache
def content_policy() -> str:
    """What the header `Content-Security-Policy` of these pages says.

    Returns
    -------
    str
        Nothing is loaded or run but the one style sheet.

    Examples
    --------
    >>> from tidewolf.service.pages import content_policy
    >>> content_policy().partition(";")[0]
    "default-src 'none'"
    """
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


@cache
def style() -> str:
    """The text of the style sheet, line breaks at both ends included, as its digest counts them."""
    root = files("tidewolf")
    colors = root.joinpath("report", "colors.css").read_text(encoding="utf-8")
    rules = root.joinpath("service", "templates", "style.css").read_text(encoding="utf-8")
    return f"\n{colors}{rules}"


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("tidewolf", "service/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
