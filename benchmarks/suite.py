"""Play methods on tasks, and keep the results as JSON: one row per task, method and setting.

    python -m benchmarks list                           suites, tasks and methods
    python -m benchmarks run network --seeds 1          a suite, or tasks by name
    python -m benchmarks run network --record           into benchmarks/results, to be committed
    python -m benchmarks add mine                       writes mine/method.py, or checks it

A row has a list with a number for each seed; only rounds that count are in it:

    loss, violation             mean, p99 and worst of the rounds; lower is better
    churn                       half the L1 change of the decision from round to round, mean
    us, MB                      processor microseconds per decision, with checks and records;
                                the most memory that Python and NumPy take beyond the start while
                                four rounds are played (first seed, default setting)
    calls, programs             oracle calls and programs solved per round
    regret %                    mean loss above that of the certified comparator, in percent of it
    worst window                the largest net overspend of a period of a budget, as a share of it

A row may have `skipped` with the reason in place of numbers. The row of the comparator, "best fixed
point *", knows all rounds; "tolerance" there is 1 % of the mean violation of the best fixed point
that ignores constraints.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import subprocess
import tracemalloc
from collections.abc import Iterator, Sequence
from copy import copy
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.measuring import OUT, ROOT, show
from benchmarks.registry import METHODS, TASKS, Given, Setting, Task, load
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Floats
from tidewolf.methods.base import Learner
from tidewolf.problems import Problem

RESULTS, BEST = ROOT / "benchmarks" / "results", "best fixed point *"
TOLERANCE, CURVE = 0.01, 100
"""Of what ignoring constraints violates; points of a curve."""
TEMPLATE = '''"""A method for `python -m benchmarks run network --from {folder}`."""

from benchmarks.registry import method


@method("{folder}", sweep=[{{"step": 0.02}}, {{"step": 0.5}}])
class Mine:
    """Steps towards the vertex that is best for the last loss."""

    def __init__(self, given, step=0.1):
        self.K, self.step, self.x = given.K, step, given.K.center

    def decide(self):
        return self.x

    def observe(self, loss, constraint):
        violated = constraint.values(self.x)[0] > 0.0
        gradient = (constraint if violated else loss).gradients(self.x)[0]
        self.x = self.x + self.step * (self.K.lmo(gradient) - self.x)
'''


def counting(K: Any) -> tuple[Any, list[int]]:
    """A copy of a set, and the oracle calls that it has answered."""
    counted, calls = copy(K), [0]

    def answer(*given: Any) -> Any:
        calls[0] += 1
        return K.answer(*given)

    counted.__dict__["answer"] = answer
    return counted, calls


def played(task: Task, problem: Problem, make: Any, setting: Setting, seed: int) -> dict[str, Any]:
    """The numbers of one run."""
    stream, (K, asked) = problem.stream, counting(problem.K)
    given = Given(K, len(stream), first_of(task, problem), problem.period, seed)
    player, begun = make(given, **setting), process_time()
    if isinstance(player, Learner):  # it counts by itself, and its kernels need the set itself
        player = make(given._replace(K=problem.K), **setting)
        run = tw.run(player, stream, decisions=task.numbers is not None)
        points = run.decisions.points if run.decisions is not None else None
        found = numbers(task, problem, run.losses, run.violations, points)
        seconds, calls, programs = process_time() - begun, run.oracle_calls, run.solves
        churn = run.churn
    else:
        if stream.unavailable is not None:
            raise InvalidInput("It takes no side information on entries that are out.")
        points = np.empty((len(stream), *problem.K.shape))
        for t in range(len(stream)):
            points[t] = player.decide()
            player.observe(stream.losses[t : t + 1], stream.constraints[t : t + 1])
        seconds, calls, programs = process_time() - begun, asked[0], getattr(player, "solves", 0)
        worst = max(map(problem.K.infeasibility, points)) if np.isfinite(points).all() else np.nan
        if not worst <= 1e-6 * problem.K.radius:
            raise InvalidInput(f"It left the set, by {worst:.3g}; every point must be in K.")
        violations = np.maximum(0.0, stream.constraints.values_at(points))
        found = numbers(task, problem, stream.losses.values_at(points), violations, points)
        flat = points.reshape(len(points), -1)
        churn = np.append(0.0, np.abs(np.diff(flat, axis=0)).sum(axis=1) / 2)
    found |= {"churn": float(churn[given.first :].mean()), "us": 1e6 * seconds / len(stream)}
    return found | {"calls": calls / len(stream), "programs": programs / len(stream)}


def numbers(
    task: Task, problem: Problem, losses: Floats, violations: Floats, points: Floats | None
) -> dict[str, Any]:
    """Those of losses and violations in the rounds that count, and a curve of all losses."""
    first, found = first_of(task, problem), dict[str, Any]()
    for name, values in (("loss", losses[first:]), ("violation", violations[first:])):
        found[name], found[f"{name} worst"] = values.mean(), values.max()
        found[f"{name} p99"] = np.quantile(values, 0.99)
    if task.numbers is not None and points is not None:
        found |= task.numbers(problem, points[first:])
    parts = np.array_split(losses, min(CURVE, len(losses)))
    return found | {"curve": [float(f"{part.mean():.5g}") for part in parts]}


def first_of(task: Task, problem: Problem) -> int:
    """The first round that counts; of a part of a record the last quarter counts."""
    return task.first if task.first < len(problem) else 3 * len(problem) // 4


def tried(task: Task, problem: Problem, make: Any) -> tuple[float, float]:
    """MB that a few rounds take, and processor seconds of each."""
    few, given = problem.stream[:4], Given(problem.K, len(problem), task.first, problem.period, 0)
    seconds = most = 0.0
    for traced in (False, False, True):  # the first time may compile
        player, begun = make(given), process_time()
        if traced:
            tracemalloc.start()
        try:
            if isinstance(player, Learner):
                for _ in tw.play(player, few):
                    pass
            else:
                for t in range(len(few)):
                    player.decide()
                    player.observe(few.losses[t : t + 1], few.constraints[t : t + 1])
            seconds = seconds if traced else (process_time() - begun) / len(few)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    return most / 1e6, seconds


def comparator(task: Task, problem: Problem) -> dict[str, Any]:
    """The certified best fixed point of the rounds that count, and the tolerance."""
    counted, K = problem.stream[first_of(task, problem) :], problem.K
    best = tw.best_in_hindsight(K, counted)
    free = tw.best_in_hindsight(K, tw.Stream(counted.losses))
    if best.point is None:
        raise InvalidInput("No fixed point satisfies every constraint.")
    all_rounds, points = problem.stream, np.tile(best.point, (len(problem), *[1] * len(K.shape)))
    violations = np.maximum(0.0, all_rounds.constraints.values(best.point))
    found = numbers(task, problem, all_rounds.losses.values(best.point), violations, points)
    found |= {"lower": best.lower / len(counted), "upper": best.upper / len(counted)}
    ignoring = np.maximum(0.0, counted.constraints.values(free.point)).mean()
    return found | {"tolerance": TOLERANCE * ignoring}


def rows_of(
    name: str, methods: Sequence[str], seeds: int, rounds: int | None, sweep: bool, most: float
) -> Iterator[dict[str, Any]]:
    """The rows of a task, the comparator's first; no run that takes over `most` seconds."""
    task = TASKS[name]
    problems = [task.problem(rounds, s) for s in range(1 if task.recorded else seeds)]
    about = {"suite": task.suite, "task": name, "rounds": len(problems[0])}
    about |= {"first": first_of(task, problems[0]), "size": problems[0].K.shape[0]}
    about["seeds"] = [*range(len(problems))]
    best = [comparator(task, problem) for problem in problems if task.compared]
    if best:
        yield about | {"method": BEST, "setting": {}, "numbers": gathered(best)}
    for each in methods:
        make, settings, suites = METHODS[each]
        if suites and task.suite not in suites:
            continue
        for setting in ({}, *(settings if sweep else ())):
            row = about | {"method": each, "setting": dict(setting)}
            try:
                if not setting:
                    size, pause = tried(task, problems[0], make)
                    if pause * len(problems[0]) > most:
                        raise InvalidInput(f"A round takes about {pause:.2g} s.")
                runs = [played(task, p, make, setting, s) for s, p in enumerate(problems)]
                for run, other in zip(runs, best, strict=False):
                    upper = other["upper"]
                    run["regret %"] = 100.0 * (run["loss"] - upper) / (abs(upper) or 1.0)
                runs[0] |= {} if setting else {"MB": size}
                yield row | {"numbers": gathered(runs)}
            except Exception as why:  # one method that fails does not end the others
                yield row | {"skipped": f"{why} ".splitlines()[0]}
                if not setting:
                    break


def gathered(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A list for each number, of all seeds; the curve of the first."""
    found: dict[str, Any] = {"curve": runs[0]["curve"]}
    for name in runs[0]:
        if name != "curve":
            found[name] = [float(f"{run[name]:.6g}") for run in runs if name in run]
    return found


def made(command: str) -> dict[str, str]:
    """Where a row comes from; the commit is the last one that changed src."""
    git = ["git", "-C", str(ROOT)]
    last, changed = (
        subprocess.run([*git, *words, "--", "src"], capture_output=True, text=True, check=False)
        for words in (["log", "-1", "--format=%h"], ["status", "--porcelain"])
    )
    commit = last.stdout.strip() + "-changed" * bool(changed.stdout)
    versions = [f"{name} {version(name)}" for name in ("numpy", "scipy", "numba")]
    versions += [f"Python {platform.python_version()}", platform.machine()]
    words = ", ".join((f"tidewolf {tw.__version__}", *versions))
    return {"command": command, "commit": commit, "versions": words}


def read(folder: Path = RESULTS, *suites: str) -> list[dict[str, Any]]:
    """The rows of result files, of these suites or of all."""
    files = [path for path in sorted(folder.glob("*.json")) if not suites or path.stem in suites]
    return [row for path in files for row in json.loads(path.read_text())]


def write(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Add rows to the files of their suites; a row replaces the one before it."""
    folder.mkdir(parents=True, exist_ok=True)
    for suite in {row["suite"] for row in rows}:
        path = folder / f"{suite}.json"
        before = json.loads(path.read_text()) if path.exists() else []
        kept = {_key(row): row for row in (*before, *rows) if row["suite"] == suite}
        lines = ",\n".join(json.dumps(row) for row in kept.values())
        path.write_text(f"[\n{lines}\n]\n")


def _key(row: dict[str, Any]) -> str:
    return json.dumps([row["task"], row["method"], row["setting"]])


def report(words: Sequence[str] = ()) -> int:
    """`run`."""
    from benchmarks.results import bars

    parser = argparse.ArgumentParser("python -m benchmarks run")
    parser.add_argument("names", nargs="*", metavar="SUITE or task")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="some, in place of all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, help="at most this many of each task")
    parser.add_argument("--defaults", action="store_true", help="no other settings")
    parser.add_argument("--seconds", type=float, default=300.0, help="what a run may take")
    parser.add_argument("--record", action="store_true", help="write into benchmarks/results")
    parser.add_argument("--from", dest="folder", type=Path, help="a folder of tasks and methods")
    given = parser.parse_args(words)
    load(given.folder)
    methods = given.methods or [*METHODS]
    known = {*TASKS, *METHODS, *(task.suite for task in TASKS.values())}
    if unknown := {*given.names, *methods} - known:
        parser.error(f"{min(unknown)!r} is not in what `python -m benchmarks list` prints.")
    folder, about = RESULTS if given.record else OUT / "results", made(f"run {shlex.join(words)}")
    print(HEAD)
    for name, task in TASKS.items():
        if given.names and not {name, task.suite} & {*given.names}:
            continue
        try:
            rows = []
            sweep = not given.defaults
            for row in rows_of(name, methods, given.seeds, given.rounds, sweep, given.seconds):
                print(line(row), flush=True)
                rows.append(row | about)
            write(folder, rows)
            show(bars(rows))
        except InvalidInput as missing:
            print(f"{name}: skipped. {missing}")
    return 0


HEAD = f"{'task':12} {'method':34} {'setting':28} {'loss':>10} {'violation':>10} {'time':>12}"


def line(row: dict[str, Any]) -> str:
    """A row for the screen, under HEAD."""
    setting = ", ".join(f"{name} {value}" for name, value in row["setting"].items())
    name = f"{row['task']:12} {row['method'][:34]:34} {setting[:28]:28}"
    if "skipped" in row:
        return f"{name} skipped: {row['skipped']}"
    shown = (np.mean(row["numbers"].get(key, 0.0)) for key in ("loss", "violation", "us"))
    return "{} {:10.5g} {:10.3g} {:9.0f} us".format(name, *shown)


def listed(words: Sequence[str] = ()) -> int:
    """`list`."""
    load(Path(words[1]) if words[:1] == ["--from"] else None)
    for suite in dict.fromkeys(task.suite for task in TASKS.values()):
        print(f"{suite}: {', '.join(name for name, t in TASKS.items() if t.suite == suite)}")
    print("methods:")
    for name, each in METHODS.items():
        where = f" ({', '.join(each.suites)})" if each.suites else ""
        print(f"  {name}{where}: {len(each.sweep)} other settings")
    return 0


def add(words: Sequence[str] = ()) -> int:
    """`add`: a template, or a check of what a folder adds."""
    parser = argparse.ArgumentParser("python -m benchmarks add")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(words).folder
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / "method.py").write_text(TEMPLATE.format(folder=folder.name))
        print(f"written: {folder / 'method.py'}. Change it, then run this command again.")
        return 0
    load()
    before = METHODS | TASKS
    load(folder)
    tasks, methods = (
        [name for name, each in found.items() if before.get(name) is not each]
        for found in (TASKS, METHODS)
    )
    failed = not (tasks or methods)
    print(HEAD)
    for name in [*tasks, *(["routing", "tunnels", "charging", "maxcut"] if methods else [])]:
        for row in rows_of(name, methods or ["even", "LyapunovDescent"], 1, 48, True, 300.0):
            print(line(row))
            failed |= "skipped" in row
    verdict = "NOT all well; what is skipped has no row in tables" if failed else "well"
    print(f"{', '.join([*methods, *tasks]) or 'Nothing is added'}: {verdict}.")
    print(f"python -m benchmarks run routing --from {folder} --seeds 1 plays a task.")
    return int(failed)
