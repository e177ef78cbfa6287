"""The machine and what drives it: cores and threads, torch and jax, PostgreSQL's driver."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from tidewolf.doctor.declared import install
from tidewolf.doctor.findings import Asked, Finding, Moving

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def check_threads(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """Cores that this process may use, and how many threads libraries take."""
    cores = _cores()
    given = [f"{name}={os.environ[name]}" for name in _THREADS if os.environ.get(name)]
    said = f"{cores} core{'s' * (cores != 1)}; {', '.join(given) or 'no number of threads is set'}"
    wrong = [text for text in given if not text.partition("=")[2].isdecimal()]
    if wrong:
        todo = f"{' and '.join(wrong)} is no number: set it to a whole number, such as 1."
        yield Finding("machine", "threads", "warning", said, todo)
        return
    most = _blas_threads()
    if most is None:
        yield Finding("machine", "threads", "ok", said)
    elif most > cores:
        todo = f"Set OPENBLAS_NUM_THREADS={cores}: more threads than cores wait for one another."
        yield Finding("machine", "threads", "warning", f"{said}; BLAS takes {most}", todo)
    else:
        yield Finding("machine", "threads", "ok", f"{said}; BLAS takes {most}")


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _blas_threads() -> int | None:
    """The most that a BLAS takes; None if it cannot be known."""
    import numpy  # noqa: F401  (loads the BLAS that is asked about)
    import threadpoolctl

    pools = threadpoolctl.threadpool_info()
    return max((pool["num_threads"] for pool in pools if pool["user_api"] == "blas"), default=None)


def check_torch(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """A set on torch's arrays, and where else they could live."""
    if find_spec("torch") is None:
        yield _absent("torch", "torch")
        return
    moving("torch")
    import torch

    from tidewolf.sets import Simplex

    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for device in devices:
        direction = torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64, device=device)
        vertex = Simplex(3).to(direction).lmo(direction)
        if vertex.tolist() != [0.0, 1.0, 0.0]:
            todo = "Install it again: pip install --force-reinstall torch"
            yield Finding("arrays", "torch", "fails", f"wrong numbers on {device}", todo)
            return
    cuda = torch.cuda.get_device_name(0) if len(devices) > 1 else "no CUDA device"
    yield Finding("arrays", "torch", "ok", f"torch {torch.__version__} computes; {cuda}")


def check_jax(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """A function of jax with its gradient."""
    if find_spec("jax") is None:
        yield _absent("jax", "jax")
        return
    moving("jax")
    import jax
    import numpy as np

    from tidewolf.functions import from_jax

    def half_square(x: Any) -> Any:
        return 0.5 * (x @ x)

    gradient = from_jax(half_square, 2).subgradient(np.array([1.0, 2.0]), np.ones(1))
    if not np.allclose(gradient, [1.0, 2.0]):
        todo = "Install it again: pip install --force-reinstall jax jaxlib"
        yield Finding("arrays", "jax", "fails", f"answers {gradient} for [1, 2]", todo)
        return
    devices = ", ".join(sorted({device.platform for device in jax.devices()}))
    yield Finding("arrays", "jax", "ok", f"jax {jax.__version__} computes on {devices}")


def check_postgres(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """The driver; no database is asked."""
    if find_spec("psycopg") is None:
        yield _absent("PostgreSQL", "serve", "databases")
        return
    moving("psycopg")
    import psycopg

    made = psycopg.pq.__impl__
    version = f"{psycopg.pq.version() // 10_000}.{psycopg.pq.version() % 10_000}"
    said = f"psycopg {psycopg.__version__} ({made}) with libpq {version}; no server was asked"
    yield Finding("databases", "PostgreSQL", "ok", said)


def _absent(name: str, extra: str, group: str = "arrays") -> Finding:
    return Finding(group, name, "absent", f"not installed: {install(extra, '')}")
