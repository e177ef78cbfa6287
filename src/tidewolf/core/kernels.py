"""Kernels: loops compiled by numba when first called and kept on disk; the same source runs, slowly, where numba is absent.

Machine code is kept under a key that says what it was made from:

    key = digest(bytecode, constants, defaults, closure; what its global names mean; the keys of the kernels it calls or is given)

so a kernel whose own source, or that of any kernel below it, changes is compiled anew, and found again when the change is undone. Times and
paths of files do not count. `kernel_cache.py` adds numba's version, the CPU and the types of the arguments, and knows the files.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Generic, TypeVar

import numpy as np

R = TypeVar("R")

_MODULES = 3
"""numpy.linalg.norm is two modules deep: names are followed so far."""


class Kernel(Generic[R]):
    """`plain` compiled at its first call; kernels may call kernels."""

    def __init__(self, plain: Callable[..., R]) -> None:
        self.plain = plain
        self.__doc__ = plain.__doc__

    def __call__(self, *args: Any) -> R:
        return self.compiled(*args)

    @cached_property
    def key(self) -> str | None:
        """The cache key of everything this kernel is made from; None where a part cannot be told: then nothing is kept."""
        assert isinstance(self.plain, FunctionType)
        try:
            return hashlib.sha256(_function(self.plain, ()).encode()).hexdigest()
        except _Unknown:
            return None

    @cached_property
    def compiled(self) -> Callable[..., R]:
        """The machine code, or `plain` itself without numba."""
        plain = self.plain
        assert isinstance(plain, FunctionType)
        try:
            import numba
        except ImportError:
            return plain
        from tidewolf.core.kernel_cache import kept

        names = {name: plain.__globals__.get(name) for name in _names(plain.__code__)}
        cells = None if plain.__closure__ is None else tuple(map(_compiled_cell, plain.__closure__))
        linked = _with(plain, {name: part.compiled for name, part in names.items() if isinstance(part, Kernel)}, cells)
        linked.__module__ = plain.__module__
        # symbols of one process share a table, so code of another source has another name
        linked.__qualname__ = f"{plain.__qualname__}_{self.key[:16]}" if self.key else plain.__qualname__
        compiled = numba.njit(nogil=True, error_model="numpy")(linked)
        return kept(compiled, plain, self.key)

    def given(self, **parts: Kernel[Any]) -> Kernel[R]:
        """This kernel where these names mean these kernels."""
        plain = self.plain
        assert isinstance(plain, FunctionType)
        linked = _with(plain, parts, plain.__closure__)
        linked.__qualname__ = "_".join([plain.__qualname__, *(part.plain.__qualname__ for part in parts.values())])
        return Kernel(linked)


def kernel(plain: Callable[..., R]) -> Kernel[R]:
    """Mark a loop over NumPy arrays and numbers as a kernel."""
    return Kernel(plain)


class _Unknown(Exception):
    """Something of which this file cannot tell whether it has changed."""


def _with(plain: FunctionType, meanings: dict[str, Any], closure: tuple[CellType, ...] | None) -> FunctionType:
    """The function where these global names mean these things, with this closure."""
    return FunctionType(plain.__code__, {**plain.__globals__, **meanings}, plain.__name__, plain.__defaults__, closure)


def _compiled_cell(cell: CellType) -> CellType:
    """A kernel that is closed over is called as machine code."""
    return CellType(cell.cell_contents.compiled) if isinstance(cell.cell_contents, Kernel) else cell


def _function(plain: FunctionType, above: tuple[FunctionType, ...]) -> str:
    """What a function is: its code, and all that it refers to; `above` are those that led here, so that recursion ends."""
    if plain in above:
        return f"again {plain.__qualname__}"
    above, names = (*above, plain), sorted(_names(plain.__code__))
    meanings = [(name, plain.__globals__[name]) for name in names if name in plain.__globals__]
    cells = [cell.cell_contents for cell in plain.__closure__ or ()]
    told = [f"{name} = {_meaning(value, names, above)}" for name, value in meanings]
    told += [_meaning(value, names, above) for value in (plain.__defaults__, plain.__kwdefaults__, *cells)]
    return "\n".join([_code(plain.__code__), *told])


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions and comprehensions inside it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _names(code: CodeType) -> set[str]:
    """Every name the code looks up, attributes among them: one too many in a key costs nothing."""
    return {name for part in _codes(code) for name in part.co_names}


def _code(code: CodeType) -> str:
    """The code without the file and the lines it came from."""
    constants = [_code(part) if isinstance(part, CodeType) else _meaning(part, (), ()) for part in code.co_consts]
    sizes = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return f"code {sizes} {names} {code.co_code.hex()} {code.co_exceptiontable.hex()} {constants}"


def _meaning(value: Any, names: Sequence[str], above: tuple[FunctionType, ...], within: int = 0) -> str:
    """What a value is, in words that change when it does; of a module only what `names` may reach; met `within` so many modules."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if value is None or value is ... or isinstance(value, bool | int | float | complex | str | bytes | enum.Enum):
        return f"{kind} {value!r}"
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise _Unknown(kind)
        content = hashlib.sha256(array.tobytes()).hexdigest()
        return f"{kind} {array.dtype.descr} {array.shape} {array.strides} {array.flags.writeable} {content}"
    if isinstance(value, tuple | list):
        return f"{kind} {[_meaning(part, names, above) for part in value]}"
    if isinstance(value, set | frozenset):
        return f"{kind} {sorted(_meaning(part, names, above) for part in value)}"
    if isinstance(value, dict):
        return f"{kind} {[(_meaning(k, names, above), _meaning(v, names, above)) for k, v in value.items()]}"
    if isinstance(value, Kernel):
        if value.key is None:
            raise _Unknown(value.plain.__qualname__)
        return f"kernel {value.key}"
    if isinstance(value, ModuleType):
        reached = [(name, vars(value)[name]) for name in names if name in vars(value)] if within < _MODULES else []
        parts = [f"{name} = {_meaning(part, names, above, within + 1)}" for name, part in reached]
        return f"module {value.__name__} {getattr(value, '__version__', '')} {parts}"
    if isinstance(getattr(value, "py_func", None), FunctionType):  # another's compiled function
        return f"{kind} {_function(value.py_func, above)}"
    if isinstance(value, FunctionType):
        return f"function {value.__module__}.{value.__qualname__} {_code(value.__code__)}"
    if isinstance(value, type):
        return f"type {value.__module__}.{value.__qualname__} {getattr(value, '_fields', ())}"
    if callable(value) and hasattr(value, "__name__"):  # built in, or a ufunc: their version is in the key
        return f"{kind} {getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, np.dtype):
        return f"{kind} {value.descr}"
    if within:  # met by its name alone, in a module that has a version
        return kind
    raise _Unknown(kind)
