"""A round of LyapunovDescent, with checks and recording, beside the same round at an older commit.

    tw.run     all rounds of a stream, every check, everything recorded: what the bars are on
    play       the loop alone
    live       a session, play and observe, one round at a time

Both commits play the same streams in processes that alternate, on one thread; a time is the least
of several, in processor time of the whole process, so that a busy machine does not count.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any, NamedTuple

from benchmarks.bars import Bar, show
from benchmarks.commits import BASE, Against, against

SCRIPT = "from benchmarks.floor import drive; drive()"


class Asked(NamedTuple):
    """How many times faster a case should be, and how many of its rounds are played live."""

    run: float
    live_rounds: int = 0
    live: float | None = None


ASKED = {
    "simplex n = 10": Asked(12.0, 2000, 6.0),
    "simplex n = 100": Asked(6.0, 1000, 6.0),
    "simplex n = 1,000": Asked(3.0),
    "simplex n = 10,000": Asked(2.0),
    "flow, 140 arcs": Asked(4.0),
    "flow, 10,040 arcs": Asked(3.0),
    "freeway, 456 arcs": Asked(3.0),
    "simplex n = 1,000,000": Asked(6.0),
    "box n = 1,000,000": Asked(12.0),
    "capped simplex n = 1,000,000": Asked(4.0),
}
REPEATS, WITHIN = 3, 2
"""processes of each commit, and runs in each after a first that does not count"""


def drive() -> None:
    """In a process of either commit: microseconds a round of the case named, as JSON."""
    import tidewolf as tw
    from benchmarks.cases import CASES, bare, live

    name = sys.argv[1]
    K, stream = CASES[name]()
    learner, rounds = tw.LyapunovDescent(K), len(stream)
    found = {
        "play": _us(bare, learner, stream) / rounds,
        "run": _us(tw.run, learner, stream) / rounds,
    }
    asked = ASKED[name].live_rounds
    if asked:
        found["live"] = _us(live, learner, stream[:asked]) / asked
    print(json.dumps(found))


def _us(work: Callable[[Any, Any], object], learner: Any, stream: Any) -> float:
    work(learner, stream[: min(len(stream), 50)])  # compiles, or loads what was compiled
    times = []
    for _ in range(WITHIN):
        start = process_time()
        work(learner, stream)
        times.append(process_time() - start)
    return 1e6 * min(times)


def measured(name: str) -> Against:
    """Microseconds a round of both commits."""
    return against(SCRIPT, REPEATS, name)


def bars() -> Iterator[Bar]:
    """What was asked of recorded rounds and of live ones."""
    for name, asked in ASKED.items():
        found = measured(name)
        KEPT[name] = {BASE: found.base, "now": found.now}
        yield Bar(f"{name}, tw.run", found.ratio("run"), asked.run, "x", True, _both(found, "run"))
        print(f"  {name}, play alone: {found.ratio('play'):.3g}x, {_both(found, 'play')}")
        if asked.live is not None:
            ratio, note = found.ratio("live"), _both(found, "live")
            yield Bar(f"{name}, a live session", ratio, asked.live, "x", True, note)


KEPT: dict[str, Any] = {}


def _both(found: Against, what: str) -> str:
    return f"{_us_words(found.base[what])} -> {_us_words(found.now[what])} a round"


def _us_words(us: float) -> str:
    return f"{us:.1f} us" if us < 1e3 else f"{us / 1e3:.2f} ms"


def report() -> None:
    """Print the bars, and keep the times for the picture."""
    from benchmarks.bars import OUT

    print(f"A round of LyapunovDescent against {BASE}, one thread: how many times faster")
    show(bars())
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "floor.json").write_text(json.dumps(KEPT, indent=1) + "\n")
