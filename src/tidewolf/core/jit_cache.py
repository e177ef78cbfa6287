"""The cache of compiled kernels: a file for each kernel, signature, version of numba and CPU.

    kernel - digest(its key; versions of Python, numba, LLVM, NumPy) - digest(signature, CPU)

An entry is never changed, only replaced by the same, so processes of different sources, or with
different types, cannot give one another the wrong code; writing goes through a temporary file.
A damaged entry is compiled again. Of older sources of a kernel the last `OLD` entries stay.
A process that finds no entry locks its name: others wait, then load what that process compiled.

numba's own cache (`cache=True`) cannot replace this file. It decides by the time and size of the
file that holds a kernel, so a kernel whose callee in another file changed would run old code. A
cache folder named by a digest of all sources would prevent that, but then a change of any line
compiles every kernel again (up to a minute), and kernels in a user's own module, with the kernels
that they call, are outside that digest. numba also raises an error at a damaged entry, and two
processes that write one index lose entries.

Folders, as numba has them: NUMBA_CACHE_DIR, then `__pycache__` beside the source, then the user's
cache. If none can be written, kernels are compiled in memory, with one warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from time import perf_counter, sleep
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import cgutils, config, types
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.extending import intrinsic

from tidewolf.core.errors import NotCached
from tidewolf.core.jit import CLOCK, COMPILED, CompiledKernel, announce

try:
    import fcntl
except ImportError:  # not POSIX: processes do not wait for one another
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
OLD = 16
"""So many entries of older sources stay, for who goes back and forth between them."""
SUFFIX = ".kernel"
_SETTINGS = ("BOUNDSCHECK", "OPT", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
"""What of numba's configuration is compiled in, beside the CPU and its features."""


WAIT = 120.0
"""Seconds for which a process waits for another one that compiles the same kernel."""
_BEGUN: list[float] = []
"""When the kernels under way were begun, a caller before what it calls; under numba's lock."""


def with_disk_cache(dispatcher: Any, plain: FunctionType, key: str | None) -> Any:
    """The same numba function, which looks on disk before it compiles, and leaves code there."""
    if not hasattr(dispatcher, "_cache"):  # NUMBA_DISABLE_JIT, or a numba with other insides
        return dispatcher
    folder = None if key is None else folder_of(plain.__code__.co_filename)
    if folder is None and key is not None:
        warn_once("no folder for it can be written")
    cache = KernelCache(folder, f"{plain.__module__}.{plain.__qualname__}", key)
    dispatcher._cache = cache
    dispatcher.compile = cache.once(dispatcher)
    return dispatcher


def is_kept(dispatcher: Any, args: tuple[Any, ...]) -> bool:
    """Whether a numba function of `with_disk_cache` has an entry for arguments of these types."""
    cache = getattr(dispatcher, "_cache", None)
    if not isinstance(cache, KernelCache) or cache.folder is None:
        return False
    sig = tuple(map(dispatcher.typeof_pyval, args))
    return (cache.folder / cache._entry(sig, dispatcher.targetctx)).exists()


def _signature(result: Any, examples: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    kinds = {int: types.int64, float: types.float64, None: types.none}
    return kinds[result], tuple(map(numba.typeof, examples))


def call_by_address(result: Any, examples: tuple[Any, ...]) -> Any:
    """A function for numba's code that calls the machine code at an address."""
    found, given = _signature(result, examples)

    def lowered(context: Any, builder: Any, _: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(found, given).as_pointer()
        callee = builder.inttoptr(values[0], kind)
        args = cgutils.unpack_tuple(builder, values[1])
        status, answer = convention.call_function(builder, callee, found, given, args)
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return answer

    def typed(context: Any, address: Any, *args: Any) -> Any:
        return found(types.int64, types.StarArgTuple(given)), lowered  # type: ignore[attr-defined]

    return intrinsic(typed)


def address_of(dispatcher: Any, result: Any, examples: tuple[Any, ...]) -> int:
    """Where the machine code of a numba function is, for arguments of these types."""
    found, given = _signature(result, examples)
    dispatcher.compile(given)
    compiled = dispatcher.overloads[given]
    if compiled.signature.return_type != found:
        name = dispatcher.py_func.__name__
        raise TypeError(f"{name} returns {compiled.signature.return_type}, not {found}.")
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


class KernelCache:
    """What numba asks of a cache, before it compiles and after: one kernel's entries in a folder.

    Without a folder nothing is kept.
    """

    def __init__(self, folder: Path | None, name: str, key: str | None) -> None:
        self.folder, self.name = folder, re.sub(r"[^\w.]", "_", name)[-120:]
        self.prefix = f"{self.name}-{_digest(FORMAT, key, _versions())}-"

    @property
    def cache_path(self) -> str | None:
        return None if self.folder is None else str(self.folder)

    def once(self, dispatcher: Any) -> Callable[[Any], Any]:
        """`dispatcher.compile`, by one process at a time if there is no entry.

        A caller is locked before what it calls, so no two processes wait for each other.
        """
        compile = dispatcher.compile

        def alone(sig: Any) -> Any:
            with global_compiler_lock, contextlib.ExitStack() as held:
                CLOCK.begin()
                held.callback(CLOCK.end)
                held.callback(_BEGUN.__delitem__, slice(len(_BEGUN), None))
                if self.folder is not None and fcntl is not None:
                    entry = self.folder / self._entry(sig, dispatcher.targetctx)
                    if not entry.exists():
                        held.enter_context(_locked(entry.with_suffix(".lock")))
                return compile(sig)

        return alone

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kept code, or None: then it is compiled until `save_overload`."""
        found = self._load(sig, target_context)
        if found is None:
            if self.folder is not None:  # else a warning says that it is not only once
                announce()
            _BEGUN.append(perf_counter())
        return found

    def save_overload(self, sig: Any, result: Any) -> None:
        """Keep what was compiled."""
        self._save(sig, result)
        seconds = perf_counter() - _BEGUN.pop()
        COMPILED.append(CompiledKernel(self.name, seconds, entry=not _BEGUN))

    def _entry(self, sig: Any, target_context: Any) -> str:
        return f"{self.prefix}{_digest(sig, target_context.codegen().magic_tuple())}{SUFFIX}"

    def _load(self, sig: Any, target_context: Any) -> Any:
        if self.folder is None:
            return None
        try:
            rtsys.initialize(target_context)  # all that code needs; compiling needs far more
            data = (self.folder / self._entry(sig, target_context)).read_bytes()
            if hashlib.sha256(data[32:]).digest() != data[:32]:
                return None
            kept_for, code = pickle.loads(data[32:])
            return CompileResult._rebuild(target_context, *code) if kept_for == sig else None
        except Exception:  # no such file, or a numba with other insides: compiling is right
            return None

    def _save(self, sig: Any, result: Any) -> None:
        if self.folder is None or getattr(result.library, "has_dynamic_globals", False):
            return  # code with addresses of this process in it
        try:
            data = dumps((sig, result._reduce()))
            _write(self.folder / self._entry(sig, result.target_context), data)
            self._forget(self.folder)
        except Exception as error:  # whatever it is, the code is there and right
            warn_once(f"{type(error).__name__}: {error}")

    def _forget(self, folder: Path) -> None:
        """Delete old entries; another process may delete the same ones."""
        entries = folder.glob(f"{self.name}-*{SUFFIX}")
        old = [entry for entry in entries if not entry.name.startswith(self.prefix)]
        for entry in sorted(old, key=_written)[:-OLD]:
            entry.unlink(missing_ok=True)

    def enable(self) -> None:
        """numba asks this of a cache."""

    def disable(self) -> None:
        """numba asks this of a cache."""

    def flush(self) -> None:
        """Before `recompile`, entries go."""
        for entry in self.folder.glob(f"{self.prefix}*{SUFFIX}") if self.folder else ():
            entry.unlink(missing_ok=True)


@cache
def folder_of(source: str) -> Path | None:
    """The first folder that can be written, for kernels of this file."""
    candidates = [Path(config.CACHE_DIR) / "tidewolf"] if config.CACHE_DIR else []
    if os.path.isfile(source):
        candidates.append(Path(source).parent / "__pycache__")
    with contextlib.suppress(RuntimeError):  # no home folder
        users = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        candidates.append(users / "tidewolf")
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
    """Say, once in a process, that every process compiles again."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"Compiled code cannot be kept ({why}): kernels are compiled in memory, again in every "
            "process, for seconds each. Set the environment variable NUMBA_CACHE_DIR to a folder "
            "that can be written.",
            NotCached,
            stacklevel=2,
        )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of this file; the system releases it if the process ends.

    If there is no lock, or none in time, two processes may compile the same entry, as before.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            file = held.enter_context(path.open("w"))
            held.callback(path.unlink, missing_ok=True)
            last = perf_counter() + WAIT
            while perf_counter() < last:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except (BlockingIOError, PermissionError):  # another process has it
                    announce()
                    sleep(0.02)
        yield


def _write(path: Path, data: bytes) -> None:
    """Write all of it or nothing, even if another process writes the same."""
    half = path.with_suffix(f".{uuid.uuid4().hex[:16]}.tmp")
    try:
        half.write_bytes(hashlib.sha256(data).digest() + data)
        os.replace(half, path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


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
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
