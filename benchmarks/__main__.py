"""The benchmarks: tasks and methods that are compared, and our own bars.

    python -m benchmarks list | run [SUITE] | table [NAME] | add FOLDER
    python -m benchmarks rounds first_use       bars of these kinds
    python -m benchmarks                        what `make bench` runs: bars, in about ten minutes

With `--strict` the exit code is 1 if a bar fails; with `--record` bars are kept in
benchmarks/results/bars.json, to be committed, for the table `bars`. The words after a command of
the first line, or after `decisions`, `operating` or `service`, are its arguments.
"""

import os
import shlex
import sys
from importlib import import_module

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

COMMANDS = {"list": "suite:listed", "run": "suite", "table": "pages", "add": "suite:add"}
SECTIONED = ("decisions", "operating", "service")
KINDS = (*SECTIONED, "oracles", "rounds", "first_use", "at_size", "gpu")
KNOWN = COMMANDS | {kind: kind for kind in KINDS}
"""name on the command line -> module and function (`report`), imported when it is run"""
WITH_ARGUMENTS = (*COMMANDS, *SECTIONED)
COMPARED = ("Ensemble", "re-solving", "exact projection (Sinha-Vaze)")
PART = ("run", "routing", "geant", "uunet", "--rounds", "2000", "--seeds", "3", "--methods")
BARS = (("rounds",), ("first_use",), ("service",), ("decisions", "cut"), (*PART, *COMPARED))


def main(words: list[str]) -> int:
    from benchmarks.measuring import summary

    strict, record = "--strict" in words, "--record" in words
    names = [word for word in words if word not in ("--strict", "--record")]
    asked = [tuple(names)] if names[:1] and names[0] in WITH_ARGUMENTS else [(n,) for n in names]
    failed = False
    for name, *arguments in asked or BARS:
        if name not in KNOWN:
            print(f"No benchmark is called {name!r}; there are {', '.join(KNOWN)}.")
            return 2
        module, _, function = KNOWN[name].partition(":")
        report = getattr(import_module(f"benchmarks.{module}"), function or "report")
        arguments += ["--record"] * (record and names[:1] == ["run"])
        failed |= bool(report(arguments) if name in WITH_ARGUMENTS else report())
    return int(failed or (not summary(shlex.join(names), record) and strict))


sys.exit(main(sys.argv[1:]))
