"""Puts each mistake of mutants/table.py into a scratch copy of the tree and runs its laws there:
one of them must fail.

    python -m mutants [--only WORDS] [--jobs N]

Prints each mistake with the law that failed. Exit 1 where a mistake lives, does not apply, or
breaks more than a law (a module that cannot be imported proves nothing), and where a law fails
without any mistake.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from mutants.table import ROOT, Mutant, every

COPIED = ("src", "tests", "benchmarks", "mutants", "pyproject.toml")
SECONDS = 600
"""Laws that run longer have failed."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m mutants", description="Mistakes that the tests must see."
    )
    parser.add_argument("--only", default="", help="mistakes whose name or file holds these words")
    parser.add_argument("--jobs", type=int, default=2, help="scratch copies at work side by side")
    asked = parser.parse_args()
    try:
        mutants = [mutant for mutant in every() if asked.only in f"{mutant.name} {mutant.file}"]
    except ValueError as error:
        print(error)
        return 1
    jobs, checks = max(1, asked.jobs), sorted({mutant.checks for mutant in mutants})
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(_copy(Path(folder) / str(number)))
        sound = all(list(pool.map(lambda each: _sound(copies, each), checks)))
        dead = sum(pool.map(lambda mutant: _dies(copies, mutant), mutants)) if sound else 0
    print(f"{dead} of {len(mutants)} mistakes are seen.")
    return 0 if 0 < len(mutants) == dead else 1


def _copy(to: Path) -> Path:
    to.mkdir()
    for name in COPIED:  # with modification times, and so with what is compiled
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, to / name)
    return to


def _sound(copies: Queue[Path], checks: str) -> bool:
    """Whether the laws hold where nothing is wrong."""
    code, said = _run(copies, checks)
    if code != 0:
        print(f"FAILS WITHOUT A MISTAKE  {checks}: {said}", flush=True)
    return code == 0


def _dies(copies: Queue[Path], mutant: Mutant) -> bool:
    """Whether a law sees the mistake."""
    code, said = _run(copies, mutant.checks, mutant)
    verdict = {0: "LIVES", 1: "dies"}.get(code, "DOES NOT RUN")
    print(f"{verdict}  {mutant.file.name}: {mutant.name}\n      {said}", flush=True)
    return code == 1


def _run(copies: Queue[Path], checks: str, mutant: Mutant | None = None) -> tuple[int, str]:
    """pytest's exit code with this mistake, and the first law that failed."""
    copy = copies.get()
    pytest = ["-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider"]
    command = [sys.executable, *pytest, *checks.split()]
    paths = {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    given = {"cwd": copy, "env": os.environ | paths, "capture_output": True, "text": True}
    try:
        if mutant is not None:
            (copy / mutant.file).write_text(mutant.text)
        ran = subprocess.run(command, **given, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return 1, f"{checks} did not end in {SECONDS} seconds"
    finally:
        if mutant is not None:
            shutil.copy2(ROOT / mutant.file, copy / mutant.file)
        copies.put(copy)
    failed = re.search(r"^(?:FAILED|ERROR) (.*)", ran.stdout, re.MULTILINE)
    if failed:
        return ran.returncode, failed[1]
    return ran.returncode, ran.stdout[-500:] if ran.returncode else f"nothing fails in {checks}"


if __name__ == "__main__":
    sys.exit(main())
