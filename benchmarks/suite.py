"""Play methods on tasks, and keep the results as JSON: one row per task, method and setting.

    python -m benchmarks list                           suites, tasks and methods
    python -m benchmarks run network --seeds 1          a suite, or tasks by name
    python -m benchmarks run network --record           into benchmarks/results, to be committed
    python -m benchmarks add mine                       writes mine/method.py, or checks it

A row has a list with a number for each seed; only rounds that count are in it:

    loss, violation             mean, p99 and worst of the rounds; lower is better
    churn                       half the L1 change of the decision from round to round, mean
    us, MB                      processor microseconds of the thread per decision, with checks and
                                records (a process with a limit counts its own in ticks); the
                                most memory that Python and NumPy take beyond the start while
                                four rounds are played (first seed)
    calls, programs             oracle calls and programs solved per round
    regret %                    mean loss above that of the certified comparator, in percent of it
    worst window                the largest net overspend of a period of a budget, as a share of it

A row may have `skipped` with the reason in place of numbers: what the method says, or "more than N
s per round". A row is played in a process of its own, which ends after the seconds of the task.
The row of the comparator, "best fixed point *", knows all rounds; "tolerance" there is 1 % of the
mean violation of the best fixed point that ignores constraints.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import resource
import shlex
import signal
import subprocess
import traceback
import tracemalloc
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import repeat
from math import ceil
from pathlib import Path
from textwrap import fill
from time import thread_time
from typing import Any

import numpy as np

import tidewolf as tw
from benchmarks.measuring import OUT, ROOT, show
from benchmarks.registry import METHODS, TASKS, Given, Task, load
from tidewolf.core.batch import Unlimited
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.core.types import Floats
from tidewolf.evaluation.recording import SHORT
from tidewolf.methods.base import Learner
from tidewolf.problems import Problem

RESULTS, BEST = ROOT / "benchmarks" / "results", "best fixed point *"
TOLERANCE, CURVE = 0.01, 100
"""Of what ignoring constraints violates; points of a curve."""
FOR_LIMITS = {"caution": 10.0, "headroom": 0.0}
"""Settings that change nothing without constraints, and their defaults."""
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


def played(task: Task, problem: Problem, make: Any, given: Given) -> dict[str, Any]:
    """The numbers of one run."""
    stream, (K, asked) = problem.stream, counting(problem.K)
    player, begun = make(given._replace(K=K)), thread_time()
    if isinstance(player, Learner):  # it counts by itself, and its kernels need the set itself
        player = make(given)
        run = tw.run(player, stream, decisions=task.numbers is not None)
        points = run.decisions.points if run.decisions is not None else None
        found = numbers(task, problem, run.losses, run.violations, points)
        seconds, calls, programs = thread_time() - begun, run.oracle_calls, run.solves
        churn = run.churn
    else:
        if stream.unavailable is not None:
            raise InvalidInput("It takes no side information on entries that are out.")
        points = np.empty((len(stream), *problem.K.shape))
        for t in range(len(stream)):
            points[t] = player.decide()
            player.observe(stream.losses[t : t + 1], stream.constraints[t : t + 1])
        seconds, calls, programs = thread_time() - begun, asked[0], getattr(player, "solves", 0)
        worst = max(map(problem.K.infeasibility, points)) if np.isfinite(points).all() else np.nan
        if not worst <= 1e-6 * problem.K.radius:
            raise InvalidInput(f"It left the set, by {worst:.3g}; every point must be in K.")
        violations = np.maximum(0.0, stream.constraints.values_at(points))
        found = numbers(task, problem, stream.losses.values_at(points), violations, points)
        flat = points.reshape(len(points), -1)
        churn = np.append(0.0, np.abs(np.diff(flat, axis=0)).sum(axis=1) / 2)
    found |= {"churn": float(churn[first_of(task, problem) :].mean())}
    found |= {"us": 1e6 * seconds / len(stream), "programs": programs / len(stream)}
    return found | {"calls": calls / len(stream)}


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


def result(
    task: Task, problems: Sequence[Problem], best: Sequence[Any], make: Any, most: float
) -> dict[str, Any] | None:
    """The numbers of a run for each seed; None if they would take over `most` seconds."""
    given = [
        Given(problem.K, len(problem), first_of(task, problem), problem.period, seed)
        for seed, problem in enumerate(problems)
    ]

    def part(rounds: int) -> dict[str, Any]:
        few = replace(problems[0], stream=problems[0].stream[:rounds])
        return played(task._replace(numbers=None), few, make, given[0])

    part(4)  # it may compile
    if part(4)["us"] * given[0].rounds * len(problems) > 1e6 * most:
        return None
    tracemalloc.start()
    part(4)
    size = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    if len(problems) == 1:  # of several seeds the median counts, and the first loads machine code
        part(1 + SHORT // problems[0].K.shape[0])
    runs = [played(task, *each) for each in zip(problems, repeat(make), given, strict=False)]
    for run, other in zip(runs, best, strict=False):
        run["regret %"] = 100.0 * (run["loss"] - other["upper"]) / (abs(other["upper"]) or 1.0)
    return gathered([runs[0] | {"MB": size}, *runs[1:]])


def within(seconds: float, slow: str, work: Callable[[], Any]) -> dict[str, Any]:
    """What a function finds in a process of its own, as a part of a row; or why it does not, which
    is `slow` after so many seconds of processor time, or four times as many by the clock.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def answer() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (ceil(seconds), ceil(seconds) + 1))
        try:
            found = work()
            there.send({"numbers": found} if found else {"skipped": slow})
        except TidewolfError as why:  # one method that fails does not end the others
            there.send({"skipped": str(why)})
        except Exception as why:
            traceback.print_exc(limit=-2)
            there.send({"skipped": f"{type(why).__name__}: {why}"})

    process = context.Process(target=answer, daemon=True)
    with warnings.catch_warnings():  # of threads of libraries that no row uses
        warnings.simplefilter("ignore")
        process.start()
    there.close()
    try:
        return here.recv() if here.poll(4 * seconds) else {"skipped": slow}
    except EOFError:
        process.join()
        ended = "Its process ended, perhaps for lack of memory."
        return {"skipped": slow if process.exitcode == -signal.SIGXCPU else ended}
    finally:
        process.kill()
        process.join()


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
    name: str,
    methods: Sequence[str] = (),
    seeds: int | None = None,
    rounds: int | None = None,
    seconds: float | None = None,
    sweep: bool = True,
) -> Iterator[dict[str, Any]]:
    """The rows of a task, the comparator's first; what is None is as the task has it."""
    task, best = TASKS[name], list[dict[str, Any]]()
    count, limit = 1 if task.recorded else seeds or task.seeds, seconds or task.seconds
    problems = [task.problem(rounds or task.rounds, seed) for seed in range(count)]
    about = {"suite": task.suite, "task": name, "rounds": len(problems[0])}
    about |= {"first": first_of(task, problems[0]), "size": problems[0].K.shape[0]}
    about["seeds"] = [*range(count)]
    if task.compared:
        best = [comparator(task, problem) for problem in problems]
        yield about | {"method": BEST, "setting": {}, "numbers": gathered(best)}
    limits = not isinstance(problems[0].stream.constraints, Unlimited)
    slow = f"more than {limit / count / len(problems[0]):.2g} s per round"
    for each in methods or task.methods or METHODS:
        make, settings, suites = METHODS[each]
        if suites and task.suite not in suites:
            continue
        others = [s for s in settings if limits or not FOR_LIMITS.keys() & s.keys()]
        for setting in ({}, *others * (sweep and not task.methods)):
            work = partial(result, task, problems, best, partial(make, **setting), limit)
            row = about | {"method": each, "setting": dict(setting)}
            row |= within(limit, slow, work)
            yield row
            if "skipped" in row and not setting:
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
    parser.add_argument("--seeds", type=int, help="in place of the task's, most often five")
    parser.add_argument("--rounds", type=int, help="at most this many, in place of the task's")
    parser.add_argument("--seconds", type=float, help="what all seeds of a row may take")
    parser.add_argument("--defaults", action="store_true", help="no other settings")
    parser.add_argument("--record", action="store_true", help="write into benchmarks/results")
    parser.add_argument("--from", dest="folder", type=Path, help="a folder of tasks and methods")
    given = parser.parse_args(words)
    load()
    own = load(given.folder)
    known = {*TASKS, *METHODS, *(task.suite for task in TASKS.values())}
    if unknown := {*given.names, *(given.methods or ())} - known:
        parser.error(f"{min(unknown)!r} is not in what `python -m benchmarks list` prints.")
    folder, about = RESULTS if given.record else OUT / "results", made(f"run {shlex.join(words)}")
    for name, task in TASKS.items():
        if given.names and not {name, task.suite} & {*given.names}:
            continue
        methods = given.methods or (*task.methods, *own) * bool(task.methods)
        sweep, rule = not given.defaults, (given.seeds, given.rounds, given.seconds)
        try:
            rows = [row | about for row in printed(rows_of(name, methods, *rule, sweep))]
            write(folder, rows)
            show(bars(rows))
        except InvalidInput as missing:
            print(fill(f"{name}: skipped. {missing}", 80))
    return 0


def printed(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of a task that are printed as they come, on 80 columns."""
    for number, row in enumerate(rows):
        if not number:
            seeds = f", {len(row['seeds'])} seeds" * (len(row["seeds"]) > 1)
            head = f"{row['task']}, {row['rounds']:,} rounds{seeds}"
            print(f"{head[:45]:45} {'loss':>10} {'violation':>10} {'time':>12}")
        setting = "".join(f", {name} {value}" for name, value in row["setting"].items())
        name = f"  {row['method']}{setting}"
        if "skipped" in row:
            print(fill(f"{name}: skipped. {row['skipped']}", 80, subsequent_indent="    "))
        else:
            shown = (np.mean(row["numbers"].get(key, 0.0)) for key in ("loss", "violation", "us"))
            print("{:45} {:10.5g} {:10.3g} {:9.0f} us".format(name[:45], *shown), flush=True)
        yield row


def listed(words: Sequence[str] = ()) -> int:
    """`list`."""
    load(Path(words[1]) if words[:1] == ["--from"] else None)
    for suite in dict.fromkeys(task.suite for task in TASKS.values()):
        names = ", ".join(name for name, task in TASKS.items() if task.suite == suite)
        print(fill(f"{suite}: {names}", 80, subsequent_indent="    "))
    print("methods, and how many other settings are tried:")
    for name, each in METHODS.items():
        where = f" ({', '.join(each.suites)})" if each.suites else ""
        print(f"  {name}{where}: {len(each.sweep)}")
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
    before = dict(TASKS)
    methods = load(folder)
    own = [name for name, each in TASKS.items() if before.get(name) is not each]
    failed = not (own or methods)
    for name in [*own, *(["routing", "tunnels", "charging", "maxcut"] if methods else [])]:
        for row in printed(rows_of(name, methods or ["even", "LyapunovDescent"], 1, 48)):
            failed |= "skipped" in row
    verdict = "NOT all well; what is skipped has no row in tables" if failed else "well"
    print(f"{', '.join([*methods, *own]) or 'Nothing is added'}: {verdict}.")
    print(f"python -m benchmarks run routing --from {folder} --seeds 1 plays a task.")
    return int(failed)
