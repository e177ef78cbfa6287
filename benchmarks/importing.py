"""What `import tidewolf` costs on top of NumPy, in fresh processes."""

from __future__ import annotations

import statistics
import subprocess
import sys

ALLOWED_MS = 150.0
REPEATS = 11


def seconds(statement: str) -> float:
    """Time of one import in a fresh interpreter that has NumPy already."""
    code = (
        f"import numpy, time; start = time.perf_counter(); {statement}; print(time.perf_counter() "
        "- start)"
    )
    return float(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
    )


def report() -> None:
    """The plain import, and the parts one uses first."""
    print("Imports on top of NumPy, median of fresh processes")
    parts = {
        "import tidewolf": "import tidewolf",
        "... and its learner and sets": "import tidewolf; tidewolf.LyapunovDescent; tidewolf.sets",
    }
    for name, statement in parts.items():
        ms = 1e3 * statistics.median(seconds(statement) for _ in range(REPEATS))
        verdict = "" if ms <= ALLOWED_MS else f"   ABOVE {ALLOWED_MS:g}"
        print(f"  {name:30} {ms:6.1f} ms{verdict}")
