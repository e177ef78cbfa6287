"""Whether one learner is enough: `Ensemble` by default, no horizon given, the time of day as its
context and re-solving as its advice, against everything it must not lose to.

    sinha_vaze   exact projections over caution: 1 % below (0.5 % on abilene)
    resolve      re-solving over headroom, picked in hindsight: 0.3 % above at most
    columns      the same by column generation, within 0.3 points; one oracle call a round
    bare         without context and advice: the better of two step scales, within 0.7 %
    wealth       log wealth: the best member's over the number of members
    attacks      advisers that break: 0.5 % of the loss, 1.2 times the violation
    meta         traffic engineering: 1.127 alone, with a good adviser, with one that turns
    calls        more oracle calls never hurt
    max_cut      3 % around the optimum at a violation below 0.2
    horizon      not knowing it: 0.3 % of the loss, 1.1 times the violation

Generated streams at five seeds, recorded ones at eleven settings that should not matter: the
median keeps a bar, the worst is within 0.5 points of it. All of it takes hours;
`python -m benchmarks experts sinha_vaze --streams routing --seeds 0 --rounds 500` a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks import experts_frontiers, experts_trials
from benchmarks.experts_cases import VERDICTS, Limits

SECTIONS: dict[str, Callable[[Limits], None]] = {
    "sinha_vaze": experts_frontiers.sinha_vaze,
    "resolve": experts_frontiers.resolve,
    "columns": experts_frontiers.columns,
    "bare": experts_frontiers.bare,
    "wealth": experts_trials.wealth,
    "attacks": experts_trials.attacks,
    "meta": experts_trials.meta,
    "calls": experts_trials.more_calls,
    "max_cut": experts_trials.max_cut,
    "horizon": experts_trials.horizon,
}


def report(out: Path, arguments: Sequence[str] = ()) -> None:
    """Print the sections named, or all, with a verdict for each bar; and draw the frontiers."""
    parser = argparse.ArgumentParser("python -m benchmarks experts")
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--rounds", type=int, help="at most so many of each stream")
    parser.add_argument("--streams", help="such as routing,geant; all unless told")
    parser.add_argument("--seeds", help="such as 0,1; all unless told")
    parser.add_argument("--settings", type=int, help="of recorded streams, at most so many")
    given = parser.parse_args(arguments)
    for name in given.sections:
        if name not in SECTIONS:
            parser.error(f"there is no section {name!r}; there are {', '.join(SECTIONS)}.")
    limits = Limits(
        given.rounds,
        None if given.streams is None else tuple(given.streams.split(",")),
        None if given.seeds is None else tuple(map(int, given.seeds.split(","))),
        given.settings,
    )
    begun, chosen = perf_counter(), given.sections or list(SECTIONS)
    for name in chosen:
        print(f"{name}: ", end="")
        SECTIONS[name](limits)
        print(f"  ({(perf_counter() - begun) / 60:.1f} minutes so far)", flush=True)
    if {"sinha_vaze", "resolve"} <= set(chosen):
        experts_frontiers.picture(out / "members.png", limits)
    held = sum(holds for holds, _ in VERDICTS)
    print(f"{held} of {len(VERDICTS)} bars hold")
    for holds, words in VERDICTS:
        if not holds:
            print(f"  FAILS  {words}")
