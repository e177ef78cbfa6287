"""Kernels: loops compiled by numba when first called, and kept on disk; slow where numba is absent.

Machine code is kept under a cache key that says what it was made from:

    key = digest(bytecode, constants, defaults, closure, what its global names mean,
                 the keys of the kernels it calls or is given)

so a kernel whose own source, or that of any kernel below it, changes is compiled anew, and found
again when the change is undone. Times and paths of files do not count. `jit_cache.py` adds
numba's version, the CPU and the types of the arguments, and knows the files.

A light kernel, which is one pass over what it is given, is interpreted while its arrays are small,
until that has cost about what compiling costs: most processes never need its machine code, which
would give the same bits. Within `interpreting` every kernel is: short runs need no machine code.
"""

from __future__ import annotations

import enum
import hashlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, cached_property
from multiprocessing import parent_process
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

R = TypeVar("R")
Above: TypeAlias = tuple[FunctionType, ...]

_PLAIN = bool | int | float | complex | str | bytes | enum.Enum | type(None) | type(...)
_MODULES = 3
"""numpy.linalg.norm is two modules deep: names are followed so far."""
SMALL = 1 << 14
"""Entries of the largest array up to which a light kernel is interpreted."""
LOADING, COMPILING = 50_000, 200_000
"""After so many entries, a microsecond each, code of a light kernel is loaded where it is kept, or
compiled.
"""


class Kernel(Generic[R]):
    """`plain` compiled at its first call, or later where it is light; kernels may call kernels."""

    def __init__(self, plain: Callable[..., R], light: bool = False) -> None:
        self.plain = plain
        self.__doc__ = plain.__doc__
        self.light = light
        self.forget()

    def forget(self) -> None:
        """As it was made: nothing is compiled, nothing was interpreted."""
        self.__dict__.pop("compiled", None)
        self.is_interpreted, self._interpreted, self._looked = self.light, 0, False

    def __call__(self, *args: Any) -> R:
        if MODE.interprets:
            return self.plain(*args)
        if self.is_interpreted:
            entries = _entries(args)
            if entries <= SMALL and self._is_cheap(entries, args):
                return self._interpret(args)
        try:
            return self.compiled(*args)
        except SystemError as error:
            raise _cause(error) from None

    def _is_cheap(self, entries: int, args: tuple[Any, ...]) -> bool:
        """Whether to interpret so many entries more costs less than machine code would."""
        self._interpreted += entries
        if self._interpreted > LOADING and not self._looked:
            self._looked = True
            self.is_interpreted = not self._is_kept(args)
        self.is_interpreted = self.is_interpreted and self._interpreted <= COMPILING
        return self.is_interpreted

    def _interpret(self, args: tuple[Any, ...]) -> R:
        """The result from Python, while the machine code is compiled."""
        CLOCK.begin()
        try:
            with np.errstate(all="ignore"):
                found: R = _numbers(self.plain(*args))
                return found
        finally:
            CLOCK.end()

    def _is_kept(self, args: tuple[Any, ...]) -> bool:
        """Whether there is machine code of it on disk for such arguments."""
        if self.compiled is self.plain:  # no numba
            return False
        from tidewolf.core.jit_cache import is_kept

        return is_kept(self.compiled, args)

    @cached_property
    def key(self) -> str | None:
        """The cache key; None where it cannot be told what a part is: then nothing is kept."""
        assert isinstance(self.plain, FunctionType)
        try:
            return hashlib.sha256(_function(self.plain, ()).encode()).hexdigest()
        except _Unknown:
            return None

    @cached_property
    def compiled(self) -> Callable[..., R]:
        """The machine code, or `plain` itself without numba."""
        CLOCK.begin()
        try:
            return self._linked()
        finally:
            CLOCK.end()

    def _linked(self) -> Callable[..., R]:
        plain, key = self.plain, self.key
        assert isinstance(plain, FunctionType)
        try:
            import numba
        except ImportError:
            return plain
        from tidewolf.core.jit_cache import with_disk_cache

        called = {name: plain.__globals__.get(name) for name in _names(plain.__code__)}
        called = {name: part.compiled for name, part in called.items() if isinstance(part, Kernel)}
        cells = plain.__closure__ and tuple(map(_compiled_cell, plain.__closure__))
        linked = _with(plain, called, cells)
        linked.__module__, linked.__qualname__ = plain.__module__, plain.__qualname__
        if key is not None:  # all code of a process shares one table of symbols
            linked.__qualname__ += f"_{key[:16]}"
        dispatcher = numba.njit(nogil=True, error_model="numpy")(linked)
        compiled: Callable[..., R] = with_disk_cache(dispatcher, plain, key)
        return compiled

    @property
    def ready(self) -> Callable[..., R]:
        """What a hot loop calls: the machine code, or `plain` within `interpreting`."""
        return self.plain if MODE.interprets else self.compiled

    @property
    def is_at_hand(self) -> bool:
        """Whether it runs without compiling for long: interpreted, compiled or kept on disk."""
        if MODE.interprets or self.compiled is self.plain:
            return True
        dispatcher: Any = self.compiled
        kept: Any = getattr(dispatcher, "_cache", None)
        folder = getattr(kept, "folder", None)
        on_disk = folder is not None and any(folder.glob(f"{kept.prefix}*"))
        return bool(dispatcher.signatures) or on_disk


class Indirect(Kernel[R]):
    """Kernels of one signature, called by address: `call(address, *args)`. What calls them is
    compiled once for all of them: the kernels of a set are a few lines, those that call them long.

    The signature is that of `examples`, whose values do not matter; `result` is int, float or None.
    """

    def __init__(self, result: type[R] | None, *examples: Any) -> None:
        super().__init__(_call)
        self.result, self.examples = result, examples
        self._addresses: dict[Any, int] = {}

    @cached_property
    def key(self) -> str | None:
        signature = f"{self.result} {_meaning(self.examples, (), ())}"
        return hashlib.sha256(signature.encode()).hexdigest()

    def _linked(self) -> Callable[..., R]:
        try:
            import numba
        except ImportError:
            return self.plain
        from tidewolf.core.jit_cache import call_by_address

        if numba.config.DISABLE_JIT:
            return self.plain
        called: Callable[..., R] = call_by_address(self.result, self.examples)
        return called

    def address(self, of: Kernel[R]) -> Any:
        """What `call` takes for this kernel: the address of its machine code, or its source within
        `interpreting`.
        """
        if MODE.interprets or self.compiled is self.plain:
            return of.plain
        code = of.compiled
        if code not in self._addresses:
            from tidewolf.core.jit_cache import address_of

            self._addresses[code] = address_of(code, self.result, self.examples)
        return self._addresses[code]


def _call(function, *args):  # type: ignore[no-untyped-def]
    """Naive twin of a call by address."""
    return function(*args)


def kernel(plain: Callable[..., R]) -> Kernel[R]:
    """Mark a loop over NumPy arrays and numbers as a kernel."""
    return Kernel(plain)


def light_kernel(plain: Callable[..., R]) -> Kernel[R]:
    """Mark a kernel that is one pass over its arguments, and whose machine code gives the same bits
    as its source: sums in the order of loops, nothing but arithmetic. It calls light kernels alone.
    """
    return Kernel(plain, light=True)


class Mode(threading.local):
    """Whether this thread interprets kernels."""

    interprets = False


MODE = Mode()


@contextmanager
def interpreting(whether: bool = True) -> Iterator[None]:
    """Kernels are run as Python by this thread, if `whether`: no machine code is loaded or made."""
    before = MODE.interprets
    MODE.interprets = whether
    try:
        with np.errstate(all="ignore") if whether else nullcontext():
            yield
    finally:
        MODE.interprets = before


class CompiledKernel(NamedTuple):
    """A kernel that this process has compiled, for one signature."""

    name: str
    seconds: float
    """with those it calls, where they had to be compiled, too"""
    entry: bool
    """whether Python called it; else it was compiled as a part of another"""


class Clock(threading.local):
    """How long this thread has waited for machine code; a wait inside another counts once."""

    spent = 0.0
    depth = 0
    began = 0.0

    def begin(self) -> None:
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1

    def end(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.spent += time.perf_counter() - self.began


CLOCK = Clock()
COMPILED: list[CompiledKernel] = []
"""jit_cache.py adds to it, as it knows what was found on disk."""


LOGGER = logging.getLogger("tidewolf")


@cache
def announce() -> None:
    """Report, once in a process, that compiling begins: to the logger "tidewolf" at level INFO.

    Nothing shows that level by default, and compiling takes up to a minute. So if neither a level
    nor a handler was chosen, and stderr is a terminal, it is a line there.
    """
    LOGGER.info(sentence := "Compiling for this machine, once (up to a minute) ...")
    is_configured = LOGGER.level != logging.NOTSET or LOGGER.hasHandlers()
    if not is_configured and parent_process() is None and sys.stderr and sys.stderr.isatty():
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


def compiling() -> float:
    """Seconds that this thread has spent on compiling kernels, on loading kept ones, or on
    interpreting light ones in place of that.
    """
    return CLOCK.spent


def compiled_kernels() -> list[CompiledKernel]:
    """What this process has compiled, and not loaded, in the order in which it was done."""
    return list(COMPILED)


def _entries(args: tuple[Any, ...]) -> int:
    """Of the largest array, in tuples too."""
    most = 0
    for arg in args:
        if isinstance(arg, np.ndarray):
            most = max(most, arg.size)
        elif type(arg) is tuple:
            most = max(most, _entries(arg))
    return most


def _numbers(found: Any) -> Any:
    """Plain numbers, as machine code gives them."""
    if isinstance(found, np.generic):
        return found.item()
    return tuple(map(_numbers, found)) if type(found) is tuple else found


def _cause(error: BaseException) -> BaseException:
    """What a signal handler raised while numba made Python objects of a result.

    numba does not look whether making one failed, so Python reports a result with an exception set:
    a SystemError, caused by the exception.
    """
    while isinstance(error, SystemError) and error.__cause__ is not None:
        error = error.__cause__
    return error


class _Unknown(Exception):
    """Something of which this file cannot tell whether it has changed."""


def _with(plain: FunctionType, meanings: dict[str, Any], cells: Any) -> FunctionType:
    """The function where these global names mean these things, with this closure."""
    space = {**plain.__globals__, **meanings}
    return FunctionType(plain.__code__, space, plain.__name__, plain.__defaults__, cells)


def _compiled_cell(cell: CellType) -> CellType:
    """A kernel that is closed over is called as machine code."""
    value = cell.cell_contents
    return CellType(value.compiled) if isinstance(value, Kernel) else cell


def _function(plain: FunctionType, above: Above) -> str:
    """What a function is: its code and all it refers to; `above` led here, so recursion ends."""
    if plain in above:
        return f"again {plain.__qualname__}"
    above, names = (*above, plain), sorted(_names(plain.__code__))
    meant = {name: plain.__globals__[name] for name in names if name in plain.__globals__}
    meanings = [f"{name} = {_meaning(value, names, above)}" for name, value in meant.items()]
    cells = [cell.cell_contents for cell in plain.__closure__ or ()]
    held = _meaning([plain.__defaults__, plain.__kwdefaults__, *cells], names, above)
    return "\n".join([_code(plain.__code__), *meanings, held])


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions and comprehensions inside it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _names(code: CodeType) -> set[str]:
    """Every name the code looks up, attributes too: one too many in a key costs nothing."""
    return {name for part in _codes(code) for name in part.co_names}


def _code(code: CodeType) -> str:
    """The code without the file and the lines it came from."""
    sizes = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    constants = [_meaning(part, (), ()) for part in code.co_consts]
    return f"code {sizes} {names} {code.co_code.hex()} {code.co_exceptiontable.hex()} {constants}"


def _meaning(value: Any, names: Sequence[str], above: Above, within: int = 0) -> str:
    """What a value is, in words that change when it does; met `within` so many modules.

    Of a module only what `names` may reach counts.
    """
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, _PLAIN):
        return f"{kind} {value!r}"
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise _Unknown(kind)
        layout = array.dtype.descr, array.shape, array.strides, array.flags.writeable
        return f"{kind} {layout} {hashlib.sha256(array.tobytes()).hexdigest()}"
    if isinstance(value, dict):
        value, within = list(value.items()), 0
    if isinstance(value, tuple | list):
        return f"{kind} {[_meaning(part, names, above) for part in value]}"
    if isinstance(value, set | frozenset):
        return f"{kind} {sorted(_meaning(part, names, above) for part in value)}"
    if isinstance(value, Kernel):
        if value.key is None:
            raise _Unknown(value.plain.__qualname__)
        return f"kernel {value.key}"
    if isinstance(value, ModuleType):
        reached = [name for name in names if name in vars(value) and within < _MODULES]
        parts = [_meaning(vars(value)[name], names, above, within + 1) for name in reached]
        version = getattr(value, "__version__", "")
        return f"module {value.__name__} {version} {reached} {parts}"
    if isinstance(getattr(value, "py_func", None), FunctionType):  # another's compiled function
        return f"{kind} {_function(value.py_func, above)}"
    if isinstance(value, FunctionType):
        return f"function {value.__module__}.{value.__qualname__} {_code(value.__code__)}"
    if isinstance(value, type):
        return f"type {value.__module__}.{value.__qualname__} {getattr(value, '_fields', ())}"
    if callable(value) and hasattr(value, "__name__"):  # built in: a version stands for it
        return f"{kind} {getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, np.dtype):
        return f"{kind} {value.descr}"
    if within:  # met by its name alone, in a module that has a version
        return kind
    raise _Unknown(kind)
