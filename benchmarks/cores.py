"""Whether rebuilding the core made decisions worse: `LyapunovDescent`, `Ensemble`, and `Ensemble`
with experts, of this tree and of an earlier revision, on the same streams.

    python -m benchmarks cores                 against the last revision before the rebuild
    python -m benchmarks cores --old REV       against another one

Streams are the built-in and recorded problems and three hostile ones, at most 400 rounds of each.
Each revision plays in a process of its own, the earlier one from a worktree that is removed
afterwards. Bars: total losses, total violations, and certificates; the exit code is 1 if one fails.
Experts are left out if programs have no single best vertex: `Resolve` proposes any of them, and
which one is no matter of the core.
"""

import argparse
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.measuring import ROOT, Bar, fresh, show

BEFORE = "0eb48610"
ROUNDS = 400
LOSS, VIOLATION = 0.2, 5.0
"""By how many percent totals may be above those of before."""
SLOW = ("pairs",)
"""Problems whose programs take the earlier core minutes: no experts there."""

Totals = tuple[float, float, bool]
"""Loss, violation, and whether no part of the certificate fails."""


def played() -> None:
    """In a process of its own: the totals of every run."""
    import tidewolf as tw
    from benchmarks.cases import advised, built

    problems = built(tuple(tw.problems.every()), ROUNDS)
    cases = [(p.name, p.K, p.stream, [] if p.name in SLOW else advised(p)) for p in problems]
    found = dict[str, Totals]()
    for name, K, stream, experts in [*cases, *hostile()]:
        learners = {"LyapunovDescent": tw.LyapunovDescent(K), "Ensemble": tw.Ensemble(K)}
        if experts:
            learners["Ensemble with experts"] = tw.Ensemble(K, experts=experts)
        for learner, each in learners.items():
            run = tw.run(each, stream)
            totals = float(run.losses.sum()), float(run.violations.sum())
            found[f"{name}, {learner}"] = *totals, run.certificate.holds is not False
    print(json.dumps(found))


def hostile() -> Iterator[tuple[str, Any, Any, list[Any]]]:
    """Losses that change their sign every round, huge units, and few rounds with a gradient."""
    import tidewolf as tw

    rng, K = np.random.default_rng(0), tw.sets.Simplex(8)
    C, A = rng.standard_normal((2, ROUNDS, 8)) + rng.standard_normal((2, 1, 8))
    turns, rare = (-1.0) ** np.arange(ROUNDS)[:, None], rng.random((ROUNDS, 1)) < 0.2
    for name, costs, rows, experts in (
        ("switching signs", C * turns, A, [tw.experts.Resolve()]),
        ("huge units", 1e12 * C, 1e-9 * A, [tw.experts.Resolve()]),
        ("zero gradients", C * rare, A * rare, []),
    ):
        limits = tw.functions.Affine(rows, rows @ K.center + 0.1 * np.abs(rows).max(axis=1))
        yield name, K, tw.Stream(tw.functions.Linear(costs), limits), experts


def of_revision(revision: str) -> dict[str, Totals]:
    with TemporaryDirectory() as folder:
        tree, git = Path(folder) / "tree", ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
        try:
            paths = os.pathsep.join((str(tree / "src"), str(ROOT)))
            return dict(fresh("benchmarks.cores:played", environment={"PYTHONPATH": paths}))
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def above(now: float, before: float) -> float:
    """By how many percent a total is above that of before."""
    return 0.0 if now == before else 100.0 * (now - before) / abs(before or 1e-300)


def compared(now: Mapping[str, Totals], before: Mapping[str, Totals]) -> Iterator[Bar]:
    """The largest changes of all runs, each of which is printed."""
    print(f"  {'':40} {'loss before':>14} {'change':>10} {'violation':>10} {'change':>9}")
    changes = {name: tuple(map(above, now[name][:2], before[name][:2])) for name in now}
    for name, (loss, violation) in changes.items():
        held = "" if now[name][2] else "   the certificate FAILS"
        old = f"{before[name][0]:14.6g} {loss:+8.4f} % {before[name][1]:10.4g}"
        print(f"  {name:40} {old} {violation:+7.3f} %{held}", flush=True)
    yield Bar("largest change of a loss", max(c[0] for c in changes.values()), LOSS, "%")
    yield Bar("largest change of a violation", max(c[1] for c in changes.values()), VIOLATION, "%")
    yield Bar("certificates that fail", sum(not one[2] for one in now.values()), 0, "")


def report(words: Sequence[str] = ()) -> bool:
    """Play both revisions and show the bars; whether one fails."""
    parser = argparse.ArgumentParser("python -m benchmarks cores")
    parser.add_argument("--old", default=BEFORE, help="a revision of this repository")
    old = parser.parse_args(words).old
    print(f"cores: this tree against {old}, at most {ROUNDS} rounds per stream", flush=True)
    bars = list(compared(fresh("benchmarks.cores:played"), of_revision(old)))
    show(bars)
    return not all(bar.holds for bar in bars)
