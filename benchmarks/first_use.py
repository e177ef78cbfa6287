"""First use: what an import costs, what `make run` compiles with an empty cache, and what a process
costs that finds everything compiled.

    import  `import tidewolf` after NumPy, median of fresh processes
    cold    the job of `make run` with an empty folder for machine code: kernels that Python calls,
            and processor seconds beyond those with a full one; and by the clock with that
    first   50 rounds of `Ensemble` with an empty folder for machine code: processor seconds of the
            whole process
    warm    a fresh process that has imported NumPy and numba: processor seconds from `import
            tidewolf` to the end of a recorded run on the routing problem, the least of several

Bytecode of the sources is kept in all of them, as it is after the first import.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np

from benchmarks.measuring import Bar, fresh, show

IMPORT_MS, KERNELS, WARM_SECONDS, AGAIN_SECONDS, FIRST_SECONDS = 150.0, 4, 0.6, 4.0, 2.0
COLD_SECONDS, IMPORTS, REPEATS = 12.0, 11, 5


def imported() -> None:
    """In a process of its own: seconds of the import, and with a learner and the sets touched."""
    import numpy  # noqa: F401

    start = perf_counter()
    import tidewolf as tw

    plain = perf_counter() - start
    _ = tw.LyapunovDescent, tw.sets
    print(json.dumps([plain, perf_counter() - start]))


def made() -> None:
    """In a process of its own: the job of `make run`, then what it compiled."""
    from tidewolf.cli import main
    from tidewolf.core.jit import COMPILED

    start, code = perf_counter(), 0
    sys.argv = ["tidewolf", "run", "routing", "--out", sys.argv[1], "--force"]
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 0
    found = [each._asdict() for each in COMPILED]
    spent = {"seconds": perf_counter() - start, "processor": process_time()}
    print("\n" + json.dumps(spent | {"kernels": found}))


def first() -> None:
    """In a process of its own: 50 rounds on a set."""
    import tidewolf as tw
    from benchmarks import cases

    sets = {"simplex": tw.sets.Simplex(100), "box": tw.sets.Box(np.zeros(100), np.ones(100))}
    sets |= {"product": tw.sets.SimplexProduct([4] * 25), "flow": cases.layered_flow(5, 10, 3)}
    K, stream = cases.limited(sets[sys.argv[1]], 50, 0.5, 0.2)
    tw.run(tw.Ensemble(K), stream)
    print(json.dumps(process_time()))


def warm() -> None:
    """In a process of its own: the first run."""
    import numba  # noqa: F401

    start = process_time()
    import tidewolf as tw

    imported = process_time()
    problem = tw.problems.named("routing")()
    built = process_time()
    tw.run(tw.LyapunovDescent(problem.K), problem.stream)
    steps = {"import": imported - start, "problem": built - imported, "run": process_time() - built}
    print(json.dumps(steps))


def bars() -> Iterator[Bar]:
    times = [fresh("benchmarks.first_use:imported") for _ in range(IMPORTS)]
    names = ("import", "import, learner and sets")
    for name, seconds in zip(names, np.array(times).T, strict=True):
        yield Bar(f"{name}, on top of NumPy", 1e3 * float(np.median(seconds)), IMPORT_MS, "ms")
    with TemporaryDirectory() as folder:
        where = {
            "NUMBA_CACHE_DIR": f"{folder}/code",
            "PYTHONPYCACHEPREFIX": f"{folder}/bytecode",
            "PYTHONDONTWRITEBYTECODE": "",
        }
        other = where | {"NUMBA_CACHE_DIR": f"{folder}/other"}
        fresh("benchmarks.first_use:warm", environment=other)  # bytecode alone
        cold = fresh("benchmarks.first_use:made", Path(folder) / "out", environment=where)
        begun = perf_counter()
        full = fresh("benchmarks.first_use:made", Path(folder) / "out", environment=where)
        seconds = perf_counter() - begun
        beyond = cold["processor"] - full["processor"]
        yield Bar("a cold make run beyond a warm one, processor", beyond, COLD_SECONDS, "s")
        for kind in ("simplex", "box", "product", "flow"):
            empty = where | {"NUMBA_CACHE_DIR": f"{folder}/{kind}"}
            took = fresh("benchmarks.first_use:first", kind, environment=empty)
            yield Bar(f"{kind}: 50 rounds of a fresh process", took, FIRST_SECONDS, "s")
        again = [fresh("benchmarks.first_use:warm", environment=where) for _ in range(REPEATS + 1)]
    yield Bar("make run, warm, by the clock", seconds, AGAIN_SECONDS, "s")
    entries = cold["kernels"]
    for each in entries:
        print(f"    {each['seconds']:6.2f} s  {each['name']}")
    note = f"{sum(each['seconds'] for each in entries):.1f} s of {cold['seconds']:.1f}"
    yield Bar("kernels compiled by a cold make run", len(entries), KERNELS, "", note=note)
    least = min(again[1:], key=lambda one: sum(one.values()))
    note = ", ".join(f"{name} {seconds:.2f}" for name, seconds in least.items())
    name = "a warm process, first run beyond NumPy and numba"
    yield Bar(name, sum(least.values()), WARM_SECONDS, "s", note=note)


def report() -> None:
    print("First use")
    show(bars())
