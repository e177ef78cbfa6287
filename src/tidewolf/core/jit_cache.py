"""The cache of compiled kernels: a file for each kernel, signature, version of numba and CPU.

    kernel - digest(its key; versions of Python, numba, LLVM, NumPy) - digest(signature, CPU)

An entry is never changed, only replaced by the same, so processes of different sources, or with
different types, cannot give one another the wrong code; writing goes through a temporary file.
A damaged entry is compiled again. Of older sources of a kernel the last `OLD` entries stay.
A process that finds no entry locks its name: others wait, then load what that process compiled.

numba's own cache (`cache=True`) cannot replace this file. It decides by the file that holds a
kernel, so a kernel whose callee in another file changed would run old code. numba also raises an
error at a damaged entry, and two processes that write one index lose entries.

Folders, as numba has them: NUMBA_CACHE_DIR, then `__pycache__` beside the source, then the user's
cache. A folder must belong to the user, because code is run from it. If there is none, kernels are
compiled in memory, with one warning.
"""

import contextlib
import gc
import hashlib
import os
import pickle
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import cgutils, config, types
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.extending import intrinsic

from tidewolf.core.checkpoint import write
from tidewolf.core.errors import NotCached
from tidewolf.core.jit import CLOCK, COMPILED, CompiledKernel, announce

try:
    import fcntl
except ImportError:  # not POSIX: processes do not wait for one another
    fcntl = None  # type: ignore[assignment]

# So many entries of older sources stay, for who goes back and forth between them.
OLD = 16
SUFFIX = ".kernel"
# What of numba's configuration is compiled in, beside the CPU and its features.
_SETTINGS = ("BOUNDSCHECK", "OPT", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")


def dispatcher(linked: Any, key: str | None, name: str, is_inner: bool, counted: bool) -> Any:
    """A numba function that looks on disk before it compiles, and leaves code there; `is_inner`:
    one for other kernels alone, whose code is a part of theirs; `counted`: it counts references.
    """
    how = {"no_cpython_wrapper": is_inner, "no_cfunc_wrapper": True, "_nrt": counted}
    by = PartCompiler if is_inner else Compiler
    made = numba.njit(nogil=True, error_model="numpy", pipeline_class=by, **how)(linked)
    if is_inner:
        return made
    folder = None if key is None else folder_of(linked.__code__.co_filename)
    if folder is None and key is not None:
        warn_once("no folder for it can be written")
    key = key and f"{key}, counted: {counted}"
    made._cache = KernelCache(made, folder, f"{linked.__module__}.{name}", key)
    made.compile = made._cache.compile
    return made


class Part(JITCodeLibrary):  # type: ignore[misc]
    """Code for other kernels alone: it is optimised as a part of theirs, and never run by itself,
    which saves a sixth of the time of compiling.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(Compiler):  # type: ignore[misc]
    def __init__(self, typing: Any, target: Any, library: Any, args: Any, *more: Any) -> None:
        super().__init__(typing, target, Part(target.codegen(), "part"), args, *more)
        self.state.flags.no_compile = True

    def compile_extra(self, plain: Any) -> Any:
        name = list[int]().append  # callers know it by something that Python could call
        made = super().compile_extra(plain)._replace(entry_point=name)
        made.target_context.insert_user_function(name, made.fndesc, [made.library])
        return made


def _signature(result: Any, examples: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    kinds = {bool: types.boolean, int: types.int64, float: types.float64, None: types.none}
    return kinds[result], tuple(map(numba.typeof, examples))


def call_by_address(result: Any, examples: tuple[Any, ...]) -> Any:
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


def unpacked(examples: tuple[Any, ...]) -> Any:
    """What gives back the arrays of `jit.Packed`: numba's own numbers of each, end to end."""
    kinds = tuple(map(numba.typeof, examples))

    def lowered(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        numbers = context.make_array(signature.args[0])(context, builder, values[0]).data
        arrays, place = [], 0
        for kind in kinds:
            pointer = cgutils.gep_inbounds(builder, numbers, place)
            whole = context.get_value_type(kind).as_pointer()
            arrays.append(builder.load(builder.bitcast(pointer, whole)))
            place += 5 + 2 * kind.ndim
        return context.make_tuple(builder, signature.return_type, arrays)

    def typed(context: Any, given: Any) -> Any:
        return types.Tuple(kinds)(types.int64[::1]), lowered  # type: ignore[attr-defined]

    return intrinsic(typed)


def address_of(dispatcher: Any, result: Any, examples: tuple[Any, ...]) -> int:
    found, given = _signature(result, examples)
    dispatcher.compile(given)
    compiled = dispatcher.overloads[given]
    if compiled.signature.return_type != found:
        name = dispatcher.py_func.__name__
        raise TypeError(f"{name} returns {compiled.signature.return_type}, not {found}.")
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


class KernelCache(NullCache):  # type: ignore[misc]
    """What numba asks of a cache, before it compiles and after: one kernel's entries in a folder.

    Without a folder nothing is kept.
    """

    def __init__(self, made: Any, folder: Path | None, name: str, key: str | None) -> None:
        self._compile, self._context = made.compile, made.targetctx
        self.folder, self.name = folder, re.sub(r"[^\w.]", "_", name)[-120:]
        self.prefix = f"{self.name}-{_digest(key, _versions())}-"

    def entry(self, sig: Any) -> Path | None:
        place = _digest(sig, self._context.codegen().magic_tuple())
        return self.folder and self.folder / f"{self.prefix}{place}{SUFFIX}"

    def compile(self, sig: Any) -> Any:
        collects = gc.isenabled()
        with global_compiler_lock, CLOCK, _locked(self.entry(sig)):
            gc.disable()  # a tenth of the time: nearly all that numba makes is kept until the end
            try:
                return self._compile(sig)
            finally:
                if collects:
                    gc.enable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kept code, or None: then it is compiled until `save_overload`."""
        entry = self.entry(sig)
        with contextlib.suppress(Exception):  # no file, or a numba with other insides: compile
            rtsys.initialize(target_context)  # all that code needs; compiling needs far more
            data = entry.read_bytes() if entry is not None else b""
            if hashlib.sha256(data[32:]).digest() == data[:32]:
                return CompileResult._rebuild(target_context, *pickle.loads(data[32:]))
        if entry is not None:  # else a warning says that it is not only once
            announce()
        return None

    def save_overload(self, sig: Any, result: Any) -> None:
        entry = self.entry(sig)
        if entry is not None and not result.library.has_dynamic_globals:
            try:
                data = dumps(result._reduce())
                write(entry, hashlib.sha256(data).digest() + data)
                self._forget(entry.parent)
            except Exception as error:  # whatever it is, the code is there and right
                warn_once(f"{type(error).__name__}: {error}")
        COMPILED.append(CompiledKernel(self.name, perf_counter() - CLOCK.began))

    def _forget(self, folder: Path) -> None:
        entries = folder.glob(f"{self.name}-*{SUFFIX}")
        old = [entry for entry in entries if not entry.name.startswith(self.prefix)]
        for entry in sorted(old, key=os.path.getmtime)[:-OLD]:
            entry.unlink(missing_ok=True)


@cache
def folder_of(source: str) -> Path | None:
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
            if fcntl is None or folder.stat().st_uid == os.geteuid():  # code is run from there
                return folder
        except OSError:
            continue
    return None


@cache
def warn_once(why: str) -> None:
    warnings.warn(
        f"Compiled code cannot be kept ({why}): kernels are compiled in memory, again in every "
        "process, for seconds each. Set the environment variable NUMBA_CACHE_DIR to a folder "
        "that can be written.",
        NotCached,
        stacklevel=2,
    )


@contextlib.contextmanager
def _locked(entry: Path | None) -> Iterator[None]:
    """Hold the lock of an entry that is not there; the system releases it if the process ends.

    A caller is locked before what it calls, so no two processes wait for each other. If there is
    no lock, two processes may compile the same entry.
    """
    with contextlib.ExitStack() as held:
        if entry is not None and fcntl is not None and not entry.exists():
            announce()
            with contextlib.suppress(OSError):
                path = entry.with_suffix(".lock")
                file = held.enter_context(path.open("w"))
                held.callback(path.unlink, missing_ok=True)
                fcntl.lockf(file, fcntl.LOCK_EX)
        yield


@cache
def _versions() -> tuple[Any, ...]:
    settings = [getattr(config, name, None) for name in _SETTINGS]
    return sys.version, numba.__version__, llvmlite.__version__, np.__version__, settings


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
