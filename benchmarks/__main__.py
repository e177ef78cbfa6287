"""`make bench`: all benchmarks, or those named, such as: python -m benchmarks calls oracles.

What follows `members`, `operating`, `service` or `public` goes to it: python -m benchmarks experts
attacks --streams routing. With `--strict` the exit code is 1 where a bar fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

OUT = Path("out/bench")
KNOWN = {
    "calls": "calls",
    "oracles": "oracles",
    "orders": "orders",
    "balls": "balls",
    "spectra": "spectra",
    "rounds": "rounds",
    "semidefinite": "semidefinite",
    "importing": "importing",
    "membership": "membership",
    "penalty": "penalty",
    "capacities": "penalty_capacities",
    "frontier": "frontier",
    "tournament": "tournament",
    "spread": "spread",
    "horizon": "horizon",
    "outage": "outage",
    "rates": "rates",
    "intervals": "intervals",
    "migration": "migration",
    "experts": "experts",
    "operating": "operating",
    "floor": "floor",
    "decisions": "decisions",
    "first_use": "first_use",
    "recording": "recording",
    "groups": "groups",
    "at_size": "at_size",
    "capacitated": "capacitated",
    "cores": "cores",
    "gpu": "gpu",
    "service": "service",
    "headline": "headline",
    "picture": "picture",
    "public": "public",
}
"""name on the command line -> file; a file is imported when its turn comes"""
DRAWING = (
    "frontier",
    "tournament",
    "rates",
    "intervals",
    "experts",
    "operating",
    "service",
    "headline",
)
"""These take the folder of their pictures."""
WITH_ARGUMENTS = ("experts", "operating", "service", "headline", "public")


def main(words: list[str]) -> int:
    from benchmarks.bars import summary

    strict, names = "--strict" in words, [word for word in words if word != "--strict"]
    if names and names[0] in WITH_ARGUMENTS:
        _report(names[0])(OUT, names[1:])
        return 0 if summary() or not strict else 1
    unknown = [name for name in names if name not in KNOWN]
    if unknown:
        print(f"No benchmark is called {unknown[0]!r}; there are {', '.join(KNOWN)}.")
        return 2
    for name in names or KNOWN:
        if find_spec(f"benchmarks.{KNOWN[name]}") is None:
            print(f"{name}: there is no benchmarks/{KNOWN[name]}.py.\n")
            continue
        _report(name)(*([OUT] if name in DRAWING else []))
        print(flush=True)
    return 0 if summary() or not strict else 1


def _report(name: str) -> Callable[..., None]:
    report: Callable[..., None] = import_module(f"benchmarks.{KNOWN[name]}").report
    return report


sys.exit(main(sys.argv[1:]))
