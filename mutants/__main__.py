"""Puts each mistake of mutants/table.py into a scratch copy of the tree and runs its laws there:
one of them must fail.

    python -m mutants [--only WORDS] [--jobs N]

Prints each mistake with the law that failed. Exit 1 where a mistake lives, does not apply, or
breaks more than a law (a module that cannot be imported proves nothing), and where a law fails
without any mistake.
"""

from __future__ import annotations

import argparse
import os
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
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: Queue[Path] = Queue()
        for number in range(max(1, asked.jobs)):
            copies.put(_copy(Path(folder) / str(number)))
        with ThreadPoolExecutor(max(1, asked.jobs)) as pool:
            sound = list(
                pool.map(
                    lambda checks: _sound(copies, checks),
                    sorted({mutant.checks for mutant in mutants}),
                )
            )
            dead = (
                list(pool.map(lambda mutant: _dies(copies, mutant), mutants)) if all(sound) else []
            )
    print(f"{dead.count(True)} of {len(mutants)} mistakes are seen.")
    return 0 if mutants and dead.count(True) == len(mutants) else 1


def _copy(to: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            # with modification times, and so with what is compiled
            shutil.copytree(source, to / name)
        else:
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, to / name)
    return to


def _sound(copies: Queue[Path], checks: str) -> bool:
    """Whether the laws hold where nothing is wrong."""
    copy = copies.get()
    try:
        code, said = _run(copy, checks)
    finally:
        copies.put(copy)
    if code != 0:
        print(f"FAILS WITHOUT A MISTAKE  {checks}: {said}", flush=True)
    return code == 0


def _dies(copies: Queue[Path], mutant: Mutant) -> bool:
    """Whether a law sees the mistake."""
    copy = copies.get()
    file = copy / mutant.file
    try:
        file.write_text(mutant.text)
        code, said = _run(copy, mutant.checks)
    finally:
        shutil.copy2(ROOT / mutant.file, file)
        copies.put(copy)
    verdict = {0: "LIVES", 1: "dies"}.get(code, "DOES NOT RUN")
    print(f"{verdict}  {mutant.file.name}: {mutant.name}\n      {said}", flush=True)
    return code == 1


def _run(copy: Path, checks: str) -> tuple[int, str]:
    """pytest's exit code, and the first law that failed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-rfE",
        "-p",
        "no:cacheprovider",
        *checks.split(),
    ]
    paths = {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ran = subprocess.run(
            command,
            cwd=copy,
            env=os.environ | paths,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"{checks} did not end in {SECONDS} seconds"
    said = [
        line.removeprefix("FAILED ")
        for line in ran.stdout.splitlines()
        if line.startswith(("FAILED ", "ERROR "))
    ]
    return ran.returncode, (
        said[0]
        if said
        else f"nothing fails in {checks}"
        if ran.returncode == 0
        else ran.stdout[-500:]
    )


if __name__ == "__main__":
    sys.exit(main())
