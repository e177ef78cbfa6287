"""The page of one session: numbers, its rounds, the last decision by name, who is trusted, what was
done to it, and notes.

It is made from plain data, `Facts`, most of which are bodies of other answers. What is missing is
left out; texts from outside are escaped.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from tidewolf.evaluation.experts import weight_text
from tidewolf.evaluation.formatting import number
from tidewolf.service.rendering import render
from tidewolf.service.sparkline import Spark, line, sticks
from tidewolf.service.words import counted, marks, moment

ENTRIES = 40
"""So many entries of a decision, members and limits are listed."""
LONGEST = 2_000
"""So many letters of a text are shown."""
WIDTH, HEIGHT = 1_000, 100


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
    >>> from tidewolf.service.session_page import session_page
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
        tiles=_tiles(facts),
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


def _tiles(facts: Facts) -> list[dict[str, Any]]:
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
    cost = line(costs, WIDTH, HEIGHT)
    over = sticks(violations, WIDTH, HEIGHT)._replace(low=0.0 if known else None)
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
