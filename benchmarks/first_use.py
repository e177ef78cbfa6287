"""First use: what `make run` compiles where nothing is kept, and what a process costs that finds
everything kept.

    cold    the job of `make run` with an empty folder for machine code: kernels that Python calls
            (entries) and all that numba compiles, those that entries call among them
    warm    a fresh process that has imported NumPy and numba: seconds from `import tidewolf` to the
            end of a recorded run on the routing problem, processor time, the least of several

Bytecode of the sources is kept in both, as it is for everybody after the first import.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from benchmarks.bars import Bar, show
from benchmarks.commits import drive

KERNELS, WARM_SECONDS = 4, 0.6
REPEATS = 5
COLD = "from benchmarks.first_use import cold; cold()"
WARM = "from benchmarks.first_use import warm; warm()"


def cold() -> None:
    """In a process of its own: the job of `make run`, then what it compiled, as JSON."""
    from tidewolf.cli import main
    from tidewolf.core.jit import compiled_kernels

    start, code = perf_counter(), 0
    folder, sys.argv = sys.argv[1], ["tidewolf", "run", "routing", "--out", sys.argv[1], "--force"]
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 0, folder
    found = [each._asdict() for each in compiled_kernels()]
    print("\n" + json.dumps({"seconds": perf_counter() - start, "kernels": found}))


def warm() -> None:
    """In a process of its own: the first run, as JSON."""
    import numba  # noqa: F401
    import numpy as np  # noqa: F401

    start, wall = process_time(), perf_counter()
    import tidewolf as tw
    from tidewolf.core.jit import compiled_kernels, compiling

    imported = process_time()
    problem = tw.problems.named("routing")()
    built = process_time()
    run = tw.run(tw.LyapunovDescent(problem.K), problem.stream)
    found = {
        "seconds": process_time() - start,
        "wall": perf_counter() - wall,
        "import": imported - start,
        "problem": built - imported,
        "run": process_time() - built,
        "playing": run.seconds,
        "kernels": compiling(),
        "compiled": len(compiled_kernels()),
    }
    print(json.dumps(found))


def measured(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a cold process said, and the least of several warm ones after it."""
    where = {
        "NUMBA_CACHE_DIR": str(folder / "code"),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    drive(WARM, None, environment=where | {"NUMBA_CACHE_DIR": str(folder / "other")})
    first = drive(COLD, None, folder / "out", environment=where)
    again = [drive(WARM, None, environment=where) for _ in range(REPEATS + 1)][1:]
    return first, min(again, key=lambda one: float(one["seconds"]))


def bars() -> Iterator[Bar]:
    """Both."""
    with TemporaryDirectory() as folder:
        first, again = measured(Path(folder))
    entries = [each for each in first["kernels"] if each["entry"]]
    for each in entries:
        print(f"    {each['seconds']:6.2f} s  {each['name']}")
    spent = sum(each["seconds"] for each in entries)
    note = (
        f"{spent:.1f} s of {first['seconds']:.1f}; {len(first['kernels'])} functions compiled with "
        "those that they call"
    )
    yield Bar("kernels compiled by a cold make run", len(entries), KERNELS, "", note=note)
    parts = ", ".join(
        f"{name} {again[name]:.2f}" for name in ("import", "problem", "run", "playing", "kernels")
    )
    note = f"{parts}; {again['wall']:.2f} by the wall clock; {again['compiled']} compiled"
    name = "a warm process, first run beyond NumPy and numba"
    yield Bar(name, again["seconds"], WARM_SECONDS, "s", note=note)


def report() -> None:
    """Print the bars."""
    print("First use")
    show(bars())
