"""Engines that play jobs: this process, processes of this machine (joblib), or the workers of a
cluster (Dask).

An engine takes numbered tasks, each a job and the file that keeps its recording so far, and yields
(number, row) as they are done, in any order. On processors of the same kind every engine gives the
same bits: linear algebra sums in another order on several threads, so every engine keeps it on one.

    this process    limited while the engine plays
    joblib          OPENBLAS, OMP, MKL and NUMBA_NUM_THREADS=1 before a process starts, and limited
                    there
    Dask            limited in the worker at its first job, and the worker must have the versions
                    that this process has

Kernels are compiled for one thread. If a process dies, its jobs are tried again: joblib's pool
fails with it, so those that were under way are played again one by one, and one that kills its
process a second time is a failure; Dask gives them to other workers.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeAlias
from uuid import uuid4

from tidewolf.core.arguments import import_extra
from tidewolf.core.arrays import as_count
from tidewolf.core.errors import ClusterLost, InvalidInput
from tidewolf.evaluation.recording import RunProgress
from tidewolf.experiments.jobs import Answers, Engine, Job, Player, Row, Task, failed, versions

Follow: TypeAlias = Callable[[int, RunProgress], None]
"""Called a few times per second with the number of a job, and how far it is."""

MOST_JOBS = 1024
"""The pool starts all of them at once."""
_CONNECT_SECONDS = 10


def engine_for(jobs: int | None, dask: str | None, follow: Follow | None = None) -> Engine:
    """The engine of so many processes (by default one per processor), or that of a cluster."""
    if dask is not None and jobs is not None:
        raise InvalidInput("Give --jobs for this machine or --dask for a cluster, not both.")
    if dask is not None:
        return on_cluster(dask)
    if jobs is None:
        has_affinity = hasattr(os, "sched_getaffinity")
        jobs = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return serial(follow) if jobs == 1 else on_processes(jobs)


def serial(follow: Follow | None = None) -> Engine:
    """One job after another in this process."""

    def play(tasks: Mapping[int, Task]) -> Answers:
        player = Player()
        with _limits():
            for number, (job, file) in tasks.items():
                moved = None if follow is None else partial(follow, number)
                yield number, player.row(job, file=file, moved=moved)

    return play


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
                    # two processes: joblib runs a pool of one in this process
                    yield from _pooled(2, {number: task}, [])
                except BrokenExecutor:
                    reason = "The process of this run died twice: killed, or out of memory."
                    yield number, failed(task.job, reason)


def _pooled(jobs: int, given: Mapping[int, Task], sent: list[int]) -> Answers:
    """The answers of a pool of processes; `sent` lists the jobs it was given."""
    joblib = _needs("joblib")

    def tasks() -> Iterator[Any]:
        for number, task in given.items():
            sent.append(number)
            yield joblib.delayed(_in_other_process)(number, task)

    how = {"batch_size": 1, "pre_dispatch": jobs, "max_nbytes": None}
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", **how)
        with _without_sigint():
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
def _without_sigint() -> Iterator[None]:
    """Processes that start here ignore Ctrl-C, which reaches all processes of a terminal: the one
    that started them ends them.
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
    return number, _player().row(task.job, file=task.file)


def _on_cluster(address: str, tasks: Mapping[int, Task]) -> Answers:
    distributed = _needs("distributed")
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        such = "an address reads tcp://10.0.0.1:8786"
        raise ClusterLost(f"No Dask scheduler answers at {address} ({error}); {such}.") from None
    with client:
        together, here = uuid4().hex, versions()
        keys = {f"tidewolf-{together}-{number}": number for number in tasks}
        futures = [
            # workers may have other disks: they keep no recordings
            client.submit(_on_worker, tasks[number].job, here, key=key, pure=False)
            for key, number in keys.items()
        ]
        for future in distributed.as_completed(futures, loop=client.loop):
            number = keys[future.key]
            try:
                row = future.result()
            except (CancelledError, OSError) as error:
                reason = f"The Dask scheduler at {address} was lost; what is done is kept."
                raise ClusterLost(reason) from error
            except Exception as error:  # a worker that died, or cannot even take the job
                reason = f"{type(error).__name__}: {error}"
                if isinstance(error, distributed.scheduler.KilledWorker):
                    reason = "Every worker of this run died: killed, or out of memory."
                row = failed(tasks[number].job, reason)
            yield number, row


def _on_worker(job: Job, expected: Mapping[str, str]) -> Row:
    here = versions()
    other = [f"{name} {here[name]}, not {at}" for name, at in expected.items() if here[name] != at]
    if other:
        return failed(job, f"The worker has {', '.join(other)}, so its numbers would not compare.")
    _limit()
    return _player().row(job)


def _limits() -> Any:
    """One thread for linear algebra, in this process or, if it is entered, in the context."""
    # it brings its own BLAS, and one that is loaded later is not limited
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


_limit = cache(_limits)


def _needs(package: str) -> Any:
    return import_extra(package, "A sweep", "app,sweep")
