"""What is imported when: heavy parts wait until they are used, and dense sets do without numba."""

from __future__ import annotations

import subprocess
import sys
import textwrap

HEAVY = {
    "scipy",
    "numba",
    "pandas",
    "matplotlib",
    "typer",
    "rich",
    "networkx",
    "torch",
    "piqp",
    "pyarrow",
}


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tidewolf_sets_functions_and_learners_import_nothing_heavy():
    loaded = python("""
        import sys
        import tidewolf as tw
        print(*{name.partition('.')[0] for name in sys.modules})
        parts = (tw.sets, tw.functions, tw.learners, tw.projection)
        for part in (*parts, tw.LyapunovDescent, tw.Stream, tw.play):
            assert part
        print(*{name.partition('.')[0] for name in sys.modules})
        """)
    assert not HEAVY & set(loaded.split())


RUN = """
import numpy as np
import tidewolf as tw

rng = np.random.default_rng(0)
for K in (tw.sets.Simplex(4), tw.sets.Box(np.zeros(4), np.ones(4))):
    limits = tw.functions.Capacity(0.3 + 0.4 * rng.random((50, 4)))
    stream = tw.Stream(tw.functions.Linear(rng.random((50, 4))), limits)
    run = tw.run(tw.LyapunovDescent(K, horizon=50), stream)
    assert run.max_infeasibility <= 1e-9
    print(float(run.losses.sum()).hex(), float(run.violations.sum()).hex(), run.oracle_calls)
"""
BLOCKED = """
import sys

class NoNumba:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "numba":
            raise ModuleNotFoundError("No module named 'numba'", name="numba")

sys.meta_path.insert(0, NoNumba())
"""


def test_dense_sets_run_without_numba_and_give_the_same_bits_and_import_no_report():
    without = python(BLOCKED + RUN + "assert 'numba' not in sys.modules\n")
    judged = python(RUN + "import sys; tw.compare, tw.intervals, tw.rates, print(*sys.modules)")
    *printed, loaded = judged.splitlines()
    assert without.splitlines() == printed
    assert len(printed) == 2
    assert not [name for name in loaded.split() if name.startswith("tidewolf.report")]
