"""`make bench`: all benchmarks, or those named, such as: python -m benchmarks calls oracles.

The words after `tables`, `experts`, `operating`, `service`, `headline` or `cores` are arguments:
python -m benchmarks experts attacks --streams routing. `cores` checks out another revision, and is
run only if it is named. With `--strict` the exit code is 1 if a bar fails.
"""

import os
import sys
from importlib import import_module

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

KNOWN = {
    "tables": "pages",
    "headline": "headline",
    "experts": "experts",
    "budgets": "budgets",
    "tournament": "tournament",
    "operating": "operating",
    "oracles": "oracles",
    "cores": "cores",
    "rounds": "rounds",
    "first_use": "first_use",
    "at_size": "at_size",
    "crossover": "crossover",
    "gpu": "gpu",
    "service": "service",
}
"""name on the command line -> module, imported when it is run"""
WITH_ARGUMENTS = (
    "tables",
    "headline",
    "cores",
    "crossover",
    "experts",
    "budgets",
    "operating",
    "service",
)


def main(words: list[str]) -> int:
    from benchmarks.measuring import summary

    strict, names = "--strict" in words, [word for word in words if word != "--strict"]
    arguments = bool(names) and names[0] in WITH_ARGUMENTS
    if unknown := [name for name in names if name not in KNOWN and not arguments]:
        print(f"No benchmark is called {unknown[0]!r}; there are {', '.join(KNOWN)}.")
        return 2
    if arguments:
        failed = import_module(f"benchmarks.{KNOWN[names[0]]}").report(names[1:])
        return int(bool(failed) or (not summary() and strict))
    for name in names or [name for name in KNOWN if name != "cores"]:
        import_module(f"benchmarks.{KNOWN[name]}").report()
        print(flush=True)
    return int(not summary() and strict)


sys.exit(main(sys.argv[1:]))
