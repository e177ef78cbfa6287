"""Kernels: loops compiled by numba when first called, and kept on disk.

Machine code is kept under a cache key that says what it was made from:

    key = digest(bytecode, constants, defaults, closure, values of its global names,
                 the keys of the kernels it calls or is given)

so a kernel whose own source, or that of any kernel below it, changes is compiled anew, and found
again when the change is undone. Times and paths of files do not count. `jit_cache.py` adds
numba's version, the CPU and the types of the arguments, and knows the files.

A light kernel, which is one pass over what it is given, is interpreted until that has cost about
what machine code costs: most processes never need it, and it would give the same bits. Within
`interpreting` every kernel is: short runs need no machine code.
"""

import hashlib
import logging
import operator
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, cached_property
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

R = TypeVar("R")

# Entries, a microsecond each, that a light kernel interprets before it is compiled.
ENOUGH = 250_000
# What a kernel names that makes arrays.
_MAKES_ARRAYS = frozenset({"array", "copy", "empty", "full", "ones", "zeros"})
# Modules whose content their versions tell.
_VERSIONED = ("builtins", "math", "numpy", "numba")


class Kernel(Generic[R]):
    """`plain` compiled at its first call, or later where it is light; kernels may call kernels."""

    def __init__(self, plain: Callable[..., R], light: bool = False) -> None:
        self.plain = plain
        self.__doc__ = plain.__doc__
        self.light = light
        # entries so far
        self.interpreted = 0
        self._inner: dict[bool, Callable[..., R]] = {}

    def __call__(self, *args: Any) -> R:
        if MODE.interprets:
            return self.plain(*args)
        if self.light and self.interpreted <= ENOUGH and self.is_interpreted(_entries(args)):
            with CLOCK, interpreting():
                return _numbers(self.plain(*args))  # type: ignore[no-any-return]
        try:
            return self.compiled(*args)
        except SystemError as error:
            raise _cause(error) from None

    def is_interpreted(self, entries: int) -> bool:
        """Whether a light kernel is, to which so many entries are given: they are counted."""
        self.interpreted += entries
        return self.interpreted <= ENOUGH

    @cached_property
    def key(self) -> str | None:
        """The cache key; None if it cannot be told what a part is: then nothing is kept."""
        try:
            return hashlib.sha256(self._content().encode()).hexdigest()
        except _Unknown:
            return None

    def _content(self) -> str:
        plain: Any = self.plain
        names, space = sorted(_names(plain.__code__)), plain.__globals__
        meant = [(name, _meaning(space[name])) for name in names if name in space]
        cells = [cell.cell_contents for cell in plain.__closure__ or ()]
        return repr((_code(plain.__code__), meant, _meaning((plain.__defaults__, *cells))))

    @cached_property
    def compiled(self) -> Callable[..., R]:
        with CLOCK:
            import numba

            if numba.config.DISABLE_JIT:
                return self.plain
            return self._linked(self.makes_arrays, is_inner=False)

    @property
    def makes_arrays(self) -> bool:
        """Whether it is compiled with numba's counts of references, an atomic instruction or two
        for each slice. Then all that it calls is, too: what it is given it will release.
        """
        return not _MAKES_ARRAYS.isdisjoint(self.plain.__code__.co_names)

    def inner(self, counted: bool) -> Callable[..., R]:
        """The machine code as a part of other kernels: Python cannot call it, which saves a fifth
        of the time of compiling.
        """
        counted = counted or self.makes_arrays
        if counted not in self._inner:
            self._inner[counted] = self._linked(counted, is_inner=True)
        return self._inner[counted]

    def _linked(self, counted: bool, is_inner: bool) -> Callable[..., R]:
        """What numba compiles: `plain`, where the kernels that it names are machine code, too."""
        from tidewolf.core.jit_cache import dispatcher

        def linked_part(part: Any) -> Any:
            return part.inner(counted) if isinstance(part, Kernel) else part

        plain: Any = self.plain
        space = dict(plain.__globals__)
        space |= {
            name: linked_part(space[name]) for name in _names(plain.__code__) if name in space
        }
        held = [CellType(linked_part(cell.cell_contents)) for cell in plain.__closure__ or ()]
        name, defaults = plain.__name__, plain.__defaults__
        linked = FunctionType(plain.__code__, space, name, defaults, tuple(held))
        # all code of a process shares one table of symbols
        linked.__qualname__ = f"{plain.__qualname__}_{(self.key or '')[:16]}_{int(counted)}"
        linked.__module__ = plain.__module__
        made: Callable[..., R] = dispatcher(linked, self.key, plain.__qualname__, is_inner, counted)
        return made

    @property
    def ready(self) -> Callable[..., R]:
        return self.plain if MODE.interprets else self.compiled

    @property
    def entry(self) -> Any:
        """`ready` for the one kind of arguments that it is called with: their kinds are not looked
        at. None before the first call.
        """
        code: Any = self.ready
        if code is self.plain:
            return self.plain
        # an OrderedDict looks its keys up as it goes, and turns an interrupt into a KeyError
        return next((one.entry_point for one in dict.values(code.overloads)), None)


class Indirect(Kernel[R]):
    """Kernels of one signature, called by address: `call(address, *args)`. What calls them is
    compiled once for all of them: the kernels of a set are a few lines, those that call them long.

    The signature is that of `examples`, whose values do not matter; `result` is bool, int, float or
    None.
    """

    def __init__(self, result: type[R] | None, *examples: Any) -> None:
        super().__init__(operator.call, light=True)  # the reference implementation
        self.result, self.examples = result, examples
        self._addresses: dict[Any, int] = {}

    def _content(self) -> str:
        return f"{self.result} {_meaning(self.examples)}"

    @property
    def makes_arrays(self) -> bool:
        return False

    def _linked(self, counted: bool, is_inner: bool) -> Callable[..., R]:
        from tidewolf.core.jit_cache import call_by_address

        called: Callable[..., R] = call_by_address(self.result, self.examples)
        return called

    def address(self, of: Kernel[R]) -> Any:
        """What `call` takes for this kernel: the address of its machine code, or its source within
        `interpreting`.
        """
        if self.ready is self.plain:
            return of.plain
        code = of.compiled
        if code not in self._addresses:
            from tidewolf.core.jit_cache import address_of

            self._addresses[code] = address_of(code, self.result, self.examples)
        return self._addresses[code]


class Packed(Indirect[Any]):
    """Arrays of the kinds of `examples` as one argument: `pack` makes it, and kernels call this to
    get them back. Numba takes a twentieth of a microsecond to look into each array of a call.
    """

    def __init__(self, *examples: Any) -> None:
        super().__init__(None, *examples)
        self.plain = tuple  # the reference implementation

    def _linked(self, counted: bool, is_inner: bool) -> Any:
        from tidewolf.core.jit_cache import unpacked

        return unpacked(self.examples)

    def pack(self, *given: Any) -> Any:
        """They must be kept for as long as it is used: it holds where they are in memory."""
        if self.ready is self.plain:
            return given
        numbers = list[int]()
        for array, like in zip(given, self.examples, strict=True):
            kinds = {(array.dtype, array.ndim, array.flags.c_contiguous)}
            assert kinds == {(like.dtype, like.ndim, True)}
            place = array.__array_interface__["data"][0]
            numbers += 0, 0, array.size, array.itemsize, place, *array.shape, *array.strides
        return np.array(numbers)


kernel = Kernel


def light_kernel(plain: Callable[..., R]) -> Kernel[R]:
    """Mark a kernel that is one pass over its arguments, and whose machine code gives the same bits
    as its source: sums in the order of loops, nothing but arithmetic. It calls light kernels alone.
    """
    return Kernel(plain, light=True)


class Mode(threading.local):
    interprets = False


MODE = Mode()


@contextmanager
def interpreting(whether: bool = True) -> Iterator[None]:
    before = MODE.interprets
    MODE.interprets = whether
    try:
        with np.errstate(all="ignore") if whether else nullcontext():
            yield
    finally:
        MODE.interprets = before


class CompiledKernel(NamedTuple):
    name: str
    # since the call that needed it
    seconds: float


# What this process has compiled, and not loaded, in the order in which it was done.
COMPILED: list[CompiledKernel] = []


class Clock(threading.local):
    """How long this thread has waited for machine code, or interpreted light kernels in place of
    that; a wait inside another counts once.
    """

    # seconds
    spent = 0.0
    depth = 0
    began = 0.0

    def __enter__(self) -> None:
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.spent += time.perf_counter() - self.began


CLOCK = Clock()
LOGGER = logging.getLogger("tidewolf")


@cache
def announce() -> None:
    """Report, once in a process, that compiling begins: to the logger "tidewolf" at level INFO.

    Nothing shows that level by default, and compiling takes up to a minute. So if neither a level
    nor a handler was chosen, and stderr is a terminal, it is a line there.
    """
    from multiprocessing import parent_process

    LOGGER.info(sentence := "Compiling for this machine, once (up to a minute) ...")
    is_configured = LOGGER.level != logging.NOTSET or LOGGER.hasHandlers()
    if not is_configured and parent_process() is None and sys.stderr and sys.stderr.isatty():
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


def _entries(args: tuple[Any, ...]) -> int:
    sizes = (_entries(arg) if type(arg) is tuple else getattr(arg, "size", 0) for arg in args)
    return max(sizes, default=0)


def _numbers(found: Any) -> Any:
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


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _names(code: CodeType) -> set[str]:
    """Every name the code looks up, attributes too: one too many in a key costs nothing."""
    return {name for part in _codes(code) for name in part.co_names}


def _code(code: CodeType) -> list[Any]:
    return [
        (
            (part.co_argcount, part.co_flags, part.co_code, part.co_exceptiontable),
            (part.co_names, part.co_varnames, part.co_freevars, part.co_cellvars),
            [each for each in part.co_consts if not isinstance(each, CodeType)],
        )
        for part in _codes(code)
    ]


def _meaning(value: Any) -> str:
    kind = type(value)
    if isinstance(value, Kernel):
        if value.key is None:
            raise _Unknown
        return f"kernel {value.key}"
    if kind is tuple:
        return f"tuple {[_meaning(part) for part in value]}"
    if value is None or kind in (bool, int, float, complex, str) or isinstance(value, np.dtype):
        return f"{kind.__name__} {value!r}"
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        content = hashlib.sha256(value.tobytes()).hexdigest()
        return f"array {kind.__name__} {value.dtype} {value.shape} {content}"
    if kind is FunctionType:
        return f"function {_code(value.__code__)}"
    module = value.__name__ if kind is ModuleType else getattr(value, "__module__", kind.__module__)
    if str(module).partition(".")[0] in _VERSIONED and hasattr(value, "__name__"):
        return f"{kind.__name__} {module} {value.__name__}"
    raise _Unknown
