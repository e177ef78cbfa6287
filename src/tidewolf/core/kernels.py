"""Kernels: loops compiled by numba when first called and kept on disk; the same source runs, slowly, where numba is absent."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Kernel(Generic[R]):
    """`plain` compiled at its first call; kernels may call kernels."""

    def __init__(self, plain: Callable[..., R]) -> None:
        self.plain = plain
        self.__doc__ = plain.__doc__

    def __call__(self, *args: Any) -> R:
        return self.compiled(*args)

    @cached_property
    def compiled(self) -> Callable[..., R]:
        """The machine code, or `plain` itself without numba."""
        plain = self.plain
        assert isinstance(plain, FunctionType)
        try:
            import numba
        except ImportError:
            return plain
        names = {name: plain.__globals__.get(name) for name in plain.__code__.co_names}
        called = {name: part.compiled for name, part in names.items() if isinstance(part, Kernel)}
        linked = FunctionType(plain.__code__, {**plain.__globals__, **called}, plain.__name__)
        linked.__module__, linked.__qualname__ = plain.__module__, plain.__qualname__
        compiled: Callable[..., R] = numba.njit(cache=True, nogil=True, error_model="numpy")(linked)
        return compiled

    def given(self, **parts: Kernel[Any]) -> Kernel[R]:
        """This kernel where these names mean these kernels; its machine code is kept under a name of its own."""
        plain = self.plain
        assert isinstance(plain, FunctionType)
        linked = FunctionType(plain.__code__, {**plain.__globals__, **parts}, plain.__name__)
        linked.__qualname__ = "_".join([plain.__qualname__, *(part.plain.__qualname__ for part in parts.values())])
        return Kernel(linked)


def kernel(plain: Callable[..., R]) -> Kernel[R]:
    """Mark a loop over NumPy arrays and numbers as a kernel."""
    return Kernel(plain)
