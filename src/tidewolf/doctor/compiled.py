"""Kernels: where machine code is kept, whether what is kept is whole, and whether a compiled kernel
answers what a list of all paths does.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from time import perf_counter

from tidewolf.doctor.findings import Asked, Finding, Moving

_GROUP = "kernels"


def check_numba(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """Whether loops are compiled at all."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        todo = "Unset NUMBA_DISABLE_JIT, which is for debugging."
        yield Finding(_GROUP, "numba", "warning", "NUMBA_DISABLE_JIT is set: loops are slow", todo)
        return
    import numba

    from tidewolf.core import jit_cache
    from tidewolf.kernels import dag

    yield Finding(_GROUP, "numba", "ok", f"numba {numba.__version__} compiles the loops")
    folder = jit_cache.folder_of(dag.__file__)
    if folder is None:
        said = "compiled code cannot be kept: none of the folders for it can be written"
        todo = "Set NUMBA_CACHE_DIR to a folder that can be written; else each process compiles."
        yield Finding(_GROUP, "cache", "warning", said, todo)
        return
    yield _cache(folder, jit_cache.SUFFIX, moving)


def _cache(folder: Path, suffix: str, moving: Moving) -> Finding:
    """How many kernels are kept, each held against its digest."""
    entries = sorted(folder.glob(f"*{suffix}"))
    moving(f"reading {len(entries)} kept kernels")
    damaged = [entry for entry in entries if not _is_whole(entry)]
    said = f"{len(entries)} compiled kernels are kept in {folder}"
    if damaged:
        todo = f"Nothing breaks: they are compiled again; to tidy up, delete {folder}/*{suffix}"
        return Finding(_GROUP, "cache", "warning", f"{said}, {len(damaged)} of them damaged", todo)
    return Finding(_GROUP, "cache", "ok", said)


def _is_whole(entry: Path) -> bool:
    try:
        data = entry.read_bytes()
    except OSError:
        return False
    return hashlib.sha256(data[32:]).digest() == data[:32]


def check_kernel(asked: Asked, moving: Moving) -> Iterator[Finding]:
    """The shortest way through a graph, compiled, beside the shortest of all ways there are."""
    import numpy as np

    from tidewolf.core.jit import compiled_kernels
    from tidewolf.kernels.dag import shortest_path

    moving("compiling a kernel")
    rng, nodes = np.random.default_rng(7), 6
    tails, heads = zip(*sorted(combinations(range(nodes), 2), key=lambda a: a[::-1]), strict=True)
    first = np.searchsorted(heads, np.arange(nodes + 1))
    packed = np.concatenate([[nodes], first, tails, np.arange(len(tails))]).astype(np.int32)
    path, flow = np.empty(nodes, dtype=np.int32), np.empty(nodes)
    before, began = len(compiled_kernels()), perf_counter()
    for _ in range(20):
        weights = rng.normal(size=len(tails))
        count = shortest_path.compiled(weights, packed, path, flow)
        lengths = {
            ways: sum(weights[_arc(tails, heads, *link)] for link in pairwise(ways))
            for k in range(nodes - 1)
            for middle in combinations(range(1, nodes - 1), k)
            for ways in [(0, *middle, nodes - 1)]
        }
        if abs(float(weights[path[:count]].sum()) - min(lengths.values())) > 1e-9:
            said = "a compiled kernel gives other numbers than its plain twin"
            todo = "Do not trust results here; reinstall numba and llvmlite, and report it."
            yield Finding(_GROUP, "kernel", "fails", said, todo)
            return
    how = "compiled" if len(compiled_kernels()) > before else "loaded from the cache"
    seconds = perf_counter() - began
    said = f"a kernel was {how} ({seconds:.1f} s) and agrees with its plain twin"
    yield Finding(_GROUP, "kernel", "ok", said)


def _arc(tails: tuple[int, ...], heads: tuple[int, ...], tail: int, head: int) -> int:
    return next(i for i, link in enumerate(zip(tails, heads, strict=True)) if link == (tail, head))
