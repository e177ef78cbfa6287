"""Times and decisions of other commits, in processes of their own.

    BASE      what times are held against
    BEFORE    what decisions are held against

`checkout` puts a commit's sources into out/bench/commits; `drive` runs a small script with them, or
with those of the working tree, on one thread, and reads the JSON object that it prints last;
`against` alternates the two, so that whatever else the machine does meets both, and takes the
least of each number:

    found = against("import json; ...; print(json.dumps({'us': us}))")
    found.ratio("us")

A script must run under both commits: what differs between them is its own matter.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

BASE = "7f2d03d"
BEFORE = "cb10dc7"
ROOT = Path(__file__).resolve().parent.parent
COMMITS = ROOT / "out" / "bench" / "commits"
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
REPEATS = 3


def checkout(commit: str) -> Path:
    """The folder of a commit's sources; nothing else of it is needed."""
    folder = COMMITS / commit
    if not folder.exists():
        command = ["git", "archive", "--format=tar", commit, "src"]
        packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        half = COMMITS / f"{commit}.{uuid.uuid4().hex[:8]}"
        with tarfile.open(fileobj=BytesIO(packed)) as files:
            files.extractall(half, filter="data")
        try:
            half.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(half)
    return folder / "src"


def drive(
    script: str,
    commit: str | None = None,
    *args: object,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What a script prints as its last line, with this commit's sources; None: the working tree's.

    The script may import from `benchmarks`; what it says beside that line is shown when it fails.
    """
    source = ROOT / "src" if commit is None else checkout(commit)
    settings = os.environ | ONE_THREAD | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, args)],
        env=settings | dict(environment or {}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"A script failed with {commit or 'the working tree'}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@dataclass(frozen=True)
class Against:
    """The least of every number, of each side."""

    base: dict[str, float]
    now: dict[str, float]

    def ratio(self, name: str) -> float:
        """How many times faster now."""
        return self.base[name] / self.now[name]


def against(script: str, repeats: int = REPEATS, *args: object, commit: str = BASE) -> Against:
    """Drive a script, which prints an object of numbers, `repeats` times with a commit and with the
    working tree in turn.
    """
    sides: tuple[list[dict[str, Any]], ...] = ([], [])
    for _ in range(repeats):
        for side, source in zip(sides, (commit, None), strict=True):
            side.append(drive(script, source, *args))
    base, now = ({name: min(one[name] for one in side) for name in side[0]} for side in sides)
    return Against(base, now)
