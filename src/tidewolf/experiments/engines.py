"""Who plays cells: this process, processes of this machine (joblib), or the workers
of a cluster (Dask).

An engine takes numbered tasks, each a cell and the file that keeps its recording so far, and yields
(number, row) as they are done, in any order. Rows are the same bits whoever played them on
processors of the same kind: linear algebra sums in another order on several threads, so every
engine keeps it on one.

    this process    limited while the engine plays
    joblib          OPENBLAS, OMP, MKL and NUMBA_NUM_THREADS=1 before a process starts, and limited
                    there
    Dask            limited in the worker at its first cell, and the worker must have the versions
                    that this process has

Kernels are compiled for one thread. A process that dies costs its cells another attempt: joblib's
pool falls with it, so those that were under way are played again one by one, and one that kills its
process a second time is a failure; Dask gives them to other workers.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

from tidewolf.core import checkpoint
from tidewolf.core.arrays import as_count
from tidewolf.core.errors import ClusterLost, MissingExtra
from tidewolf.evaluation.recording import RunProgress
from tidewolf.experiments.plan import Cell, Row
from tidewolf.experiments.play import Player, failed


class Task(NamedTuple):
    """A cell, and where its recording is kept on this machine while it is played."""

    cell: Cell
    file: Path | None = None


Answers: TypeAlias = Generator[tuple[int, Row]]
Engine: TypeAlias = Callable[[Mapping[int, Task]], Answers]
CellProgress: TypeAlias = Callable[[int, RunProgress], None]
"""Is told the number of a cell, and how far it is, a few times a second."""

MOST_JOBS = 1024
"""The pool starts all of them at once."""
_CONNECT_SECONDS = 10


def serial(follow: CellProgress = lambda number, moment: None) -> Engine:
    """One cell after another in this process."""
    return partial(_serial, follow)


def in_process(follow: CellProgress = lambda number, moment: None) -> Engine:
    """One cell after another in this process, with as many threads as it has: what tidewolf does
    not raise is nobody's failure but a bug, and ends it.
    """
    return partial(_in_process, follow)


def on_processes(jobs: int) -> Engine:
    """So many processes of this machine; one is this process itself."""
    jobs = as_count(jobs, "The number of jobs", most=MOST_JOBS)
    if jobs == 1:
        return serial()
    _needs("joblib")
    return partial(_on_processes, jobs)


def on_cluster(address: str) -> Engine:
    """The workers of the Dask scheduler at this address, such as tcp://10.0.0.1:8786."""
    _needs("distributed")
    return partial(_on_cluster, address)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """What decides, beside the cell, which numbers come out."""
    machine = ("threads", "cpu", "blas")
    return {name: here for name, here in checkpoint.writer().items() if name not in machine}


def _serial(follow: CellProgress, tasks: Mapping[int, Task]) -> Answers:
    player = Player()
    with _limits():
        for number, (cell, file) in tasks.items():
            yield number, player.attempt(cell, file=file, moved=partial(follow, number))


def _in_process(follow: CellProgress, tasks: Mapping[int, Task]) -> Answers:
    player = Player()
    for number, (cell, file) in tasks.items():
        yield number, player.row(cell, file=file, moved=partial(follow, number))


def _on_processes(jobs: int, tasks: Mapping[int, Task]) -> Answers:
    left, sent = dict(tasks), list[int]()
    while left:
        sent.clear()
        try:
            for number, row in _pooled(jobs, dict(left), sent):
                del left[number]
                yield number, row
        except BrokenExecutor:
            for number in [number for number in sent if number in left]:
                task = left.pop(number)
                try:
                    # a pool, however small: joblib plays for one process in this one
                    yield from _pooled(2, {number: task}, [])
                except BrokenExecutor:
                    yield (
                        number,
                        failed(
                            task.cell,
                            "The process that played this cell died twice: it was killed, or ran "
                            "out of memory.",
                        ),
                    )


def _pooled(jobs: int, given: Mapping[int, Task], sent: list[int]) -> Answers:
    """What a pool of processes answers; `sent` tells which cells it was given."""
    joblib = _needs("joblib")

    def tasks() -> Iterator[Any]:
        for number, task in given.items():
            sent.append(number)
            yield joblib.delayed(_in_other_process)(number, task)

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        pool = joblib.Parallel(
            n_jobs=jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch=jobs,
            max_nbytes=None,
        )
        with _deaf():
            answers = pool(tasks())
    try:
        # `yield from` would close it before the warning is silenced
        for done in answers:  # noqa: UP028
            yield done
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of closing early, which is meant
            answers.close()


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that start here do not hear Ctrl-C, which reaches all of a terminal: the one that
    began it ends them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_player = cache(Player)
"""The one of a process that plays for others."""


def _in_other_process(number: int, task: Task) -> tuple[int, Row]:
    _limit()
    return number, _player().attempt(task.cell, file=task.file)


def _on_cluster(address: str, tasks: Mapping[int, Task]) -> Answers:
    distributed = _needs("distributed")
    with ExitStack() as stack:
        try:
            client = stack.enter_context(
                distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
            )
        except (OSError, ValueError) as error:
            raise ClusterLost(
                f"No Dask scheduler answers at {address} ({error}); an address reads "
                "tcp://10.0.0.1:8786."
            ) from None
        together, here = uuid4().hex, versions()
        keys = {f"tidewolf-{together}-{number}": number for number in tasks}
        futures = [
            # workers may have other disks: they keep no recordings
            client.submit(_on_worker, tasks[number].cell, here, key=key, pure=False)
            for key, number in keys.items()
        ]
        for future in distributed.as_completed(futures, loop=client.loop):
            number = keys[future.key]
            try:
                yield number, future.result()
            except distributed.scheduler.KilledWorker:
                yield (
                    number,
                    failed(
                        tasks[number].cell,
                        "Every worker that played this cell died: killed, or out of memory.",
                    ),
                )
            except (CancelledError, OSError) as error:
                raise ClusterLost(
                    f"The Dask scheduler at {address} was lost; what is done is kept."
                ) from error
            except Exception as error:  # a worker that cannot even take the cell
                yield number, failed(tasks[number].cell, f"{type(error).__name__}: {error}")


def _on_worker(cell: Cell, expected: Mapping[str, str]) -> Row:
    here = versions()
    other = [
        f"{name} {here[name]}, not {version}"
        for name, version in expected.items()
        if here[name] != version
    ]
    if other:
        return failed(cell, f"The worker has {', '.join(other)}, so its numbers would not compare.")
    _limit()
    return _player().attempt(cell)


def _limits() -> Any:
    """One thread for linear algebra, for as long as this process or, where it is entered, the
    context lasts.
    """
    # it brings a BLAS of its own, and one that is loaded later is not limited
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


_limit = cache(_limits)


def _needs(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtra(
            f'A sweep needs {package}, not installed here; type: pip install "tidewolf[app,sweep]"'
        ) from None
