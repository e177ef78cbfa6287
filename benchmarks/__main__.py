"""`make bench`: all benchmarks, or those named, such as: python -m benchmarks calls oracles.

What follows `members` or `operating` goes to it: python -m benchmarks members attacks --streams
routing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(names: list[str]) -> int:
    from benchmarks import (
        balls,
        calls,
        frontier,
        horizon,
        importing,
        intervals,
        members,
        membership,
        migration,
        operating,
        oracles,
        orders,
        outage,
        penalty,
        penalty_capacities,
        rates,
        rounds,
        semidefinite,
        spectra,
        spread,
        tournament,
    )

    known = {
        "calls": calls.report,
        "oracles": oracles.report,
        "orders": orders.report,
        "balls": balls.report,
        "spectra": spectra.report,
        "rounds": rounds.report,
        "semidefinite": semidefinite.report,
        "importing": importing.report,
        "membership": membership.report,
        "penalty": penalty.report,
        "capacities": penalty_capacities.report,
        "frontier": lambda: frontier.report(Path("out/bench")),
        "tournament": lambda: tournament.report(Path("out/bench")),
        "spread": spread.report,
        "horizon": horizon.report,
        "outage": outage.report,
        "rates": lambda: rates.report(Path("out/bench")),
        "intervals": lambda: intervals.report(Path("out/bench")),
        "migration": migration.report,
        "members": lambda: members.report(Path("out/bench")),
        "operating": lambda: operating.report(Path("out/bench")),
    }
    with_arguments = {"members": members.report, "operating": operating.report}
    if names and names[0] in with_arguments:
        with_arguments[names[0]](Path("out/bench"), names[1:])
        return 0
    for name in names or known:
        if name not in known:
            print(f"No benchmark is called {name!r}; there are {', '.join(known)}.")
            return 2
        known[name]()
        print(flush=True)
    return 0


sys.exit(main(sys.argv[1:]))
