"""Kernels: loops compiled by numba when first called and kept on disk; the same source runs, slowly, where numba is absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Kernel(Generic[P, R]):
    """`plain` compiled at its first call. Kernels do not call each other."""

    def __init__(self, plain: Callable[P, R]) -> None:
        self.plain = plain
        self.__doc__ = plain.__doc__
        self._ready: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        ready = self._ready
        if ready is None:
            ready = self._ready = _compiled(self.plain)
        return ready(*args, **kwargs)


def kernel(plain: Callable[P, R]) -> Kernel[P, R]:
    """Mark a loop over NumPy arrays and numbers as a kernel."""
    return Kernel(plain)


def _compiled(plain: Callable[P, R]) -> Callable[P, R]:
    try:
        import numba
    except ImportError:
        return plain
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(plain)
    return compiled  # type: ignore[no-any-return]
