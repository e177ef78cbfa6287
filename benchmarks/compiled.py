"""Small programs in C, compiled when they are needed, into out/compiled.

    compiled(Path("benchmarks/load.c"))                      a program
    compiled(Path("tests/slow_disk.c"), library=True)        something to preload

What is there already for the same source is taken as it is.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "compiled"


def compiler() -> str | None:
    """Who compiles C here, if anybody does."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compiled(source: Path, *, library: bool = False) -> Path:
    """The program, or the library, made of a file in C."""
    cc = compiler()
    if cc is None:
        raise RuntimeError("There is no C compiler here; install one, such as gcc.")
    name = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    done = OUT / f"{source.stem}.{name}{'.so' if library else ''}"
    if not done.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        half = done.with_name(f"{done.name}.{os.getpid()}")
        how = ["-shared", "-fPIC"] if library else []
        subprocess.run([cc, "-O2", "-Wall", *how, "-o", half, source, "-ldl"], check=True)
        half.rename(done)
    return done
