"""The kept machine code of kernels: a file for each kernel, each signature, each numba and each CPU.

    name = kernel - digest(key of the kernel, versions of Python, numba, LLVM and NumPy) - digest(types of the arguments, CPU and its features)

An entry is never changed, only replaced by the same, so processes of different sources, or different types, cannot give one another
the wrong code; writing goes through a temporary file. A damaged entry is compiled again. Of older sources of a kernel `OLD` entries stay.

Folders, as numba has them: NUMBA_CACHE_DIR, then `__pycache__` beside the source, then the user's cache. Where none can be written,
kernels are compiled in memory, and a warning says so once.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import tempfile
import uuid
import warnings
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from tidewolf.core.errors import NotCached

FORMAT = 1
OLD = 16
"""So many entries of older sources of a kernel stay, for who goes back and forth between them."""
SUFFIX = ".kernel"
_SETTINGS = ("BOUNDSCHECK", "OPT", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX")
"""What of numba's configuration is compiled in."""


def kept(dispatcher: Any, plain: FunctionType, key: str | None) -> Any:
    """The same numba function, which looks for its machine code on disk before it compiles, and leaves it there."""
    if key is None or not hasattr(dispatcher, "_cache"):  # NUMBA_DISABLE_JIT, or a numba without these files
        return dispatcher
    folder = folder_of(plain.__code__.co_filename)
    if folder is None:
        warn_once("no folder for it can be written")
    else:
        dispatcher._cache = KernelCache(folder, f"{plain.__module__}.{plain.__qualname__}", key)
    return dispatcher


class KernelCache:
    """What numba asks of a cache: one kernel's entries in a folder."""

    def __init__(self, folder: Path, name: str, key: str) -> None:
        self.folder, self.name = folder, re.sub(r"[^\w.]", "_", name)[-120:]
        self.key = _digest(FORMAT, key, _versions())

    @property
    def cache_path(self) -> str:
        return str(self.folder)

    def path(self, sig: Any, codegen: Any) -> Path:
        """The file of these types on this CPU."""
        return self.folder / f"{self.name}-{self.key[:32]}-{_digest(sig, codegen.magic_tuple())[:32]}{SUFFIX}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kept code, or None."""
        try:
            target_context.refresh()
            data = self.path(sig, target_context.codegen()).read_bytes()
            if hashlib.sha256(data[32:]).digest() != data[:32]:
                return None
            kept_for, code = pickle.loads(data[32:])
            return CompileResult._rebuild(target_context, *code) if kept_for == sig else None
        except Exception:  # nothing there, or of a numba with other insides: compiling is always right
            return None

    def save_overload(self, sig: Any, result: Any) -> None:
        """Keep it; where that fails, once say so."""
        if getattr(result.library, "has_dynamic_globals", False) or any(not part.can_cache for part in result.lifted):
            return  # holds addresses of this process
        try:
            self._write(self.path(sig, result.target_context.codegen()), dumps((sig, result._reduce())))
        except Exception as error:
            warn_once(f"{type(error).__name__}: {error}")

    def _write(self, path: Path, data: bytes) -> None:
        half = path.with_suffix(f".{uuid.uuid4().hex[:16]}.tmp")
        try:
            half.write_bytes(hashlib.sha256(data).digest() + data)
            os.replace(half, path)
        except BaseException:
            half.unlink(missing_ok=True)
            raise
        self._forget()

    def _forget(self) -> None:
        """Old entries do not pile up; somebody else may be forgetting the same ones."""
        entries = self.folder.glob(f"{self.name}-*{SUFFIX}")
        old = [entry for entry in entries if not entry.name.startswith(f"{self.name}-{self.key[:32]}-")]
        for entry in sorted(old, key=_written)[:-OLD]:
            entry.unlink(missing_ok=True)

    def enable(self) -> None:
        """numba asks this of a cache."""

    def disable(self) -> None:
        """numba asks this of a cache."""

    def flush(self) -> None:
        """What a recompilation throws away."""
        for entry in self.folder.glob(f"{self.name}-{self.key[:32]}-*{SUFFIX}"):
            entry.unlink(missing_ok=True)


@cache
def folder_of(source: str) -> Path | None:
    """The first folder that can be written, for kernels of this file."""
    candidates = [Path(config.CACHE_DIR) / "tidewolf"] if config.CACHE_DIR else []
    if os.path.isfile(source):
        candidates.append(Path(source).parent / "__pycache__")
    try:
        candidates.append(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "tidewolf")
    except RuntimeError:
        pass  # nobody's home
    for folder in candidates:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


_warned = False


def warn_once(why: str) -> None:
    """Say, once a process, that compiling starts over in every process."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"Compiled code cannot be kept ({why}): kernels are compiled in memory, again in every process, for seconds each. "
            "Set the environment variable NUMBA_CACHE_DIR to a folder that can be written.",
            NotCached,
            stacklevel=2,
        )


@cache
def _versions() -> tuple[Any, ...]:
    settings = [getattr(config, name, None) for name in _SETTINGS]
    return sys.version, numba.__version__, llvmlite.__version__, np.__version__, settings


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
