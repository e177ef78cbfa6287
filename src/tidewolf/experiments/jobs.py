"""One job is one experiment, one learner with its settings, and one seed. Grids of jobs are

    run         =  seeds x learners                         each recording is kept (folder.py)
    sweep       =  horizons x seeds x learners x knobs      each row of numbers is kept
    comparison  =  streams x learners x knobs x seeds       the same (compare.py)

A job is independent of all others and can be sent to other processes and machines. It names the
files of an experiment, so a worker elsewhere must find them under the same path. `Player` plays it:

    job  ->  problem, comparator (once for all jobs of a stream)  ->  recording  ->  run  ->  row

A row is plain data: the job, the run's summary, what is known of its comparator, or the error that
refused it. It is a function of the job, of the versions installed and of the processor; only
`seconds` depends on more. A job that is killed half way resumes from its checkpoint: bit for bit on
the same machine and versions. `play_jobs` has an engine play the jobs of a sweep or a
comparison, and keeps their rows in a folder:

    sweep.jsonl, compare.jsonl
        {"format": 3, "cells": [...], "versions": {...}}      the first line, put in place whole
        {"cell": 17, "row": {...}}
            one line per job that ended, flushed to disk; the last one of a job counts
    checkpoints/17
        the recording of a long job, until it has ended

The same call resumes after a kill: jobs with a row are not played again, except those that failed.
A job that fails is a row with the reason, and does not affect the others. Half a line at the end,
left by a process that was killed while it wrote, is cut off. Numbers travel as JSON, which gives
the same bits back. The folder is locked meanwhile.

Engines play jobs: this process, processes of this machine (joblib), or the workers of a cluster
(Dask). An engine takes numbered tasks, each a job and the file that keeps its recording so far, and
yields (number, row) as they are done, in any order. On processors of the same kind every engine
gives the same bits: linear algebra sums in another order on several threads, so every engine keeps
it on one.

    this process    limited while the engine plays
    joblib          OPENBLAS, OMP, MKL and NUMBA_NUM_THREADS=1 before a process starts, and limited
                    there
    Dask            limited in the worker at its first job, and the worker must have the versions
                    that this process has

Kernels are compiled for one thread. If a process dies, its jobs are tried again: joblib's pool
fails with it, so those that were under way are played again one by one, and one that kills its
process a second time is a failure; Dask gives them to other workers.
"""

import hashlib
import json
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import signature
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias, final

from tidewolf.core import checkpoint, feedback, settings, sparse
from tidewolf.core.arguments import as_kind, import_extra, shown
from tidewolf.core.arrays import LARGEST_COUNT, as_count
from tidewolf.core.errors import (
    BrokenFile,
    ClusterLost,
    Interrupted,
    InvalidInput,
    OtherSettings,
    ShortHorizon,
    TidewolfError,
    refuse,
    require,
    require_format,
)
from tidewolf.evaluation.formatting import plain
from tidewolf.evaluation.metrics import MEASURES, contradiction
from tidewolf.evaluation.recording import Recording, RunProgress
from tidewolf.evaluation.run import PROGRESS_SECONDS, finished
from tidewolf.experiments.experiment import Choice, Experiment, Tables, learner_keys, read_plain
from tidewolf.files import file_of
from tidewolf.hindsight.best import Comparator, best_in_hindsight
from tidewolf.methods import base
from tidewolf.problems import Problem
from tidewolf.problems.base import origin

Row: TypeAlias = dict[str, Any]

ROWS_FORMAT = 3
CHECKPOINTS_FOLDER = "checkpoints"
# How much work a power cut may cost by default.
CHECKPOINT_SECONDS = 10.0
# The comparator of a stream for which none can be computed.
UNKNOWN = Comparator(None, -math.inf, math.inf, None)
# At most one of this many seconds is spent on checkpoints.
_SHARE = 20
_OTHERWISE = "Use another folder, or overwrite with --force."
# Threads and the folders that they have locked.
_HELD: set[tuple[int, int, int]] = set()


def identity_of(experiment: Experiment) -> str:
    """What the user gave of an experiment: the settings of a generator with the version of the
    generators, or the bytes of files. What is computed from them may differ in the last digits from
    one machine to another, and does not count.
    """
    stream, K = experiment.stream, experiment.hard_set
    made = None if isinstance(stream, Tables) else origin(stream.name)
    given = [made, _contents(stream), _contents(K), settings.given_fields(experiment.files)]
    return hashlib.sha256(json.dumps(given).encode()).hexdigest()[:16]


@final
@dataclass(frozen=True, eq=False)
class InProcess:
    """A problem of this process, and functions that make learners for it, as a source of jobs."""

    name: str
    made: Problem
    factories: Mapping[str, Callable[..., base.Learner[Any]]]
    identity = ""

    def problem(self, seed: int) -> Problem:
        return self.made

    def learner(self, entrant: Choice, problem: Problem, seed: int) -> base.Learner[Any]:
        factory = self.factories[entrant.name]
        more = {"horizon": len(problem), "seed": seed}
        given = {key: more[key] for key in more if key in signature(factory).parameters}
        learner = factory(problem.K, **entrant.given, **given)
        return as_kind(learner, base.Learner, f"{entrant.name} must make a Learner")


def _contents(part: Any) -> Any:
    """Plain data with files by their contents, under any path."""
    if isinstance(part, Choice | Tables):
        part = list(vars(part).items())
    if isinstance(part, tuple | list):
        return [_contents(each) for each in part]
    path = Path(part) if isinstance(part, str | Path) else Path()
    is_file = path.is_absolute() and file_of(path).is_file()
    if not is_file and not isinstance(part, Path):
        return part
    found = hashlib.sha256(file_of(path).read_bytes()).hexdigest()
    return found + path.name.removeprefix(file_of(path).name)  # two sheets of a workbook differ


class Job(NamedTuple):
    source: Experiment | InProcess
    # of the source; empty if it is of this process
    identity: str
    # None: as many as there are
    rounds: int | None
    seed: int
    entrant: Choice
    # in a run folder, from 1
    number: int = 0

    @property
    def origin(self) -> str:
        """Where its stream comes from, as recordings keep it: the recipe and seed of a generated
        one, the bytes of files.
        """
        return f"{self.identity} rounds {self.rounds} seed {self.seed}"

    @property
    def label(self) -> str:
        return f"{self.number:02d}-{self.entrant.name}-seed-{self.seed}"

    def plain(self) -> Row:
        plain = {
            "experiment": self.source.name,
            "source": self.identity,
            "learner": self.entrant.name,
            "settings": self.entrant.given,
            "seed": self.seed,
            "rounds": self.rounds,
        }
        return {**json.loads(json.dumps(plain))}

    def problem(self) -> Problem:
        source = self.source
        source = replace(source, rounds=self.rounds) if isinstance(source, Experiment) else source
        return source.problem(self.seed)


# --- grids ----------------------------------------------------------------------------------------


def plan_run(experiment: Experiment) -> tuple[tuple[Job, ...], ...]:
    numbers, entrants = count(1), experiment.entrants()
    job = partial(Job, experiment, identity_of(experiment), experiment.rounds)
    return tuple(
        tuple(job(seed, entrant, next(numbers)) for entrant in entrants)
        for seed in experiment.seeds
    )


def plan_sweep(
    experiment: Experiment,
    *,
    horizons: Sequence[int] = (),
    seeds: Sequence[int] = (),
    knobs: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Job, ...]:
    swept: dict[str, Sequence[Any]] = {**dict(experiment.swept), **(knobs or {})}
    if "caution" in swept:
        experiment = replace(experiment, cautions=())
    own = swept.pop("horizons", (experiment.rounds,))
    by_default = experiment.has_default_learners or bool(experiment.as_run)
    if by_default or isinstance(experiment.stream, Tables):  # whose errors are reported here
        problem = experiment.problem(experiment.seeds[0])
        experiment = replace(experiment, learners=learners_as_run(experiment, problem))
    at = seeds or experiment.seeds
    return crossed(
        experiment, experiment.entrants(), horizons=horizons or own, seeds=at, knobs=swept
    )


def learners_as_run(experiment: Experiment, problem: Problem) -> tuple[Choice, ...]:
    """The learners of the experiment as `tidewolf run` has them, and those that it leaves out,
    whose rows hold the reason.
    """
    taken = experiment.taken(problem).learners
    names = {choice.name for choice in taken}
    return (*taken, *(choice for choice in experiment.learners if choice.name not in names))


def crossed(
    source: Experiment,
    entrants: Sequence[Choice],
    *,
    horizons: Sequence[int | None] = (None,),
    seeds: Sequence[int] = (0,),
    knobs: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Job, ...]:
    """Every learner at every horizon and seed, and at every value of the knobs that it has and does
    not set itself.

    A knob that no learner has is refused. Jobs on the same stream stand side by side, so that its
    comparator is computed once.
    """
    rounds = [None if horizon is None else as_count(horizon, "A horizon") for horizon in horizons]
    counted = [as_count(seed, "A seed", least=0) for seed in seeds]
    knobs, entered, used = knobs or {}, list[Choice](), set[str]()
    lists = {"learners": entrants, "horizons": rounds, "seeds": counted, **knobs}
    for name in (name for name, values in lists.items() if not values):
        raise InvalidInput(f"A sweep needs at least one value of {name}, and none was given.")
    for entrant in entrants:
        known, tried = learner_keys(entrant.name), dict[str, list[Any]]()
        used |= known.keys()
        for name in (name for name in knobs if name in known and name not in entrant.given):
            tried[name] = [read_plain(known[name], value) for value in knobs[name]]
            what = f"{name} of {entrant.name}"
            if None in tried[name]:
                given = knobs[name][tried[name].index(None)]
                raise InvalidInput(f"{what} is {known[name].words}, not {shown(given)}.")
            for value in (value for value in tried[name] if type(value) is int):
                as_count(value, what, least=-LARGEST_COUNT)
        entered += [Choice.of(entrant.name, entrant.given | at) for at in combinations(tried)]
    for name in knobs.keys() - used:
        names = ", ".join(dict.fromkeys(entrant.name for entrant in entrants))
        raise InvalidInput(f"No learner of this sweep ({names}) has a setting called {name!r}.")
    identity = identity_of(source) if isinstance(source, Experiment) else source.identity
    every = product(rounds, counted, entered)
    return tuple(dict.fromkeys(Job(source, identity, *each) for each in every))


def combinations(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(values, at, strict=True)) for at in product(*values.values())]


# --- playing --------------------------------------------------------------------------------------


class Prepared(NamedTuple):
    problem: Problem
    # None if none can be computed
    best: Comparator | None
    # why no point is the best one; empty if one is
    reason: str

    @classmethod
    def of(cls, problem: Problem) -> Self:
        try:
            best = best_in_hindsight(problem.K, problem.stream)
        except TidewolfError as error:
            return cls(problem, None, str(error))
        proof = best.infeasibility
        return cls(problem, best, "" if proof is None else contradiction(proof, problem.stream))


@final
class Player:
    """Plays jobs, one after another. Jobs on the same stream stand side by side, so that its
    comparator is computed once.
    """

    def __init__(self) -> None:
        self._ready: Prepared | None = None
        # jobs on its stream, which seeds may share
        self._keys: set[Any] = set()

    def prepared(self, job: Job, problem: Problem | None = None) -> Prepared:
        key = (job.source, job.rounds, job.seed)
        if self._ready is None or key not in self._keys:
            problem = job.problem() if problem is None else problem
            if self._ready is None or self._ready.problem != problem:
                self._ready, self._keys = Prepared.of(problem), set()
            self._keys.add(key)
        return self._ready

    def row(
        self,
        job: Job,
        *,
        file: Path | None = None,
        moved: Callable[[RunProgress], None] | None = None,
        refused: type[Exception] = Exception,
    ) -> Row:
        """The job played to its end; an exception of the type `refused` becomes the row's
        `failure`. A `file` keeps the recording so far.
        """
        comparator, sees = None, ""
        try:
            with warnings.catch_warnings():
                if refused is Exception:  # a sweep over horizons begins with short ones
                    warnings.simplefilter("ignore", ShortHorizon)
                ready = self.prepared(job)
                best = ready.best or UNKNOWN
                comparator = {
                    "rounds": len(ready.problem),
                    "lower": plain(best.lower),
                    "upper": plain(best.upper),
                    "feasible": best.feasible,
                    "reason": ready.reason,
                }
                learner = job.source.learner(job.entrant, ready.problem, job.seed)
                sees = feedback.SEES[learner.needs]
                recording = begin(learner, ready.problem, file, job.origin)
                advance(recording, file, moved=moved)
                run = finished(recording, best)
                row = failed(job, "", comparator, sees) | run.summary()
            json.dumps(row, allow_nan=False)
            return row
        except refused as error:
            ours = isinstance(error, TidewolfError)
            reason = str(error) if ours else f"{type(error).__name__}: {error}"
            return failed(job, reason, comparator, sees)


def failed(job: Job, reason: str, comparator: Row | None = None, sees: str = "") -> Row:
    """The row of a job without a result: what a run would have measured is None."""
    more = {"comparator": comparator, "sees": sees, "failure": reason}
    return job.plain() | dict.fromkeys(MEASURES) | more


def begin(learner: Any, problem: Problem, file: Path | None, origin: str) -> Recording:
    if file is None or not file.exists():
        return Recording(learner, problem.stream, source=origin)
    data, where = checkpoint.read(file), {"source": origin, "folder": str(file.parent.parent)}
    return Recording.load(data, learner, problem.stream, str(file), **where)


def advance(
    recording: Recording,
    file: Path | None = None,
    *,
    seconds: float = CHECKPOINT_SECONDS,
    ending: bool = False,
    moved: Callable[[RunProgress], None] | None = None,
    saving: Callable[[], None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Play to the end, or until `stopping` returns True; returns whether the end was reached.

    Every so many seconds, when it is stopped and, with `ending`, when it ends, the recording is
    written to the file, whole or not at all; `saving` is called before. `moved` is called a few
    times per second.
    """
    if recording.done:
        return True
    if moved is not None:
        moved(recording.progress)
    saved = reported = time.monotonic()
    for _ in recording.advance():
        now, done = time.monotonic(), recording.done
        if moved is not None and (now - reported > PROGRESS_SECONDS or done):
            moved(recording.progress)
            reported = now
        stop = stopping() and not done
        due = ending if done else stop or now - saved > seconds
        if file is not None and due:
            saving()
            checkpoint.write(file, recording.save())
            saved = time.monotonic()
            seconds = max(seconds, _SHARE * (saved - now))
        if stop:
            return False
    return True


# --- rows in a folder -----------------------------------------------------------------------------


# A job, and where its recording is kept on this machine while it is played.
Task: TypeAlias = tuple[Job, Path]
Answers: TypeAlias = Generator[tuple[int, Row]]
Engine: TypeAlias = Callable[[Mapping[int, Task]], Answers]


def versions() -> dict[str, str]:
    machine = ("threads", "cpu", "blas")
    return {name: here for name, here in checkpoint.writer().items() if name not in machine}


def play_jobs(
    jobs: Sequence[Job],
    folder: Path,
    what: str,
    name: str,
    results: Sequence[str],
    *,
    engine: Engine,
    force: bool = False,
    progress: Callable[[int, int, int], None] = lambda done, failed, jobs: None,
) -> tuple[Row, ...]:
    """Play the jobs that have no row in the folder's journal of this name yet. Returns the rows of
    all, in their order. A folder of other jobs, or with `results` that no journal explains, is
    refused; with `force` it is begun again. `what` they are together, for messages.
    """
    journal, recordings, here = folder / name, folder / CHECKPOINTS_FOLDER, versions()
    refuse(folder.exists() and not folder.is_dir(), f"{folder} is a file; a {what} needs a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, what):
        plain = [job.plain() for job in jobs]
        first = {"format": ROWS_FORMAT, "cells": plain, "versions": here}
        _begin(journal, recordings, [folder / each for each in results], first, force)
        header, rows, whole = _read(journal)
        require(
            header["cells"] == plain, OtherSettings, f"{folder} holds another {what}. {_OTHERWISE}"
        )
        os.truncate(journal, whole)
        left = {
            number: (job, recordings / f"{number}")
            for number, job in enumerate(jobs)
            if number not in rows or rows[number]["failure"]
        }
        if left and header["versions"] != here:
            before = header["versions"].items()
            other = ", ".join(f"{name} {at}" for name, at in before if here.get(name) != at)
            raise OtherSettings(
                f"The {what} in {folder} was begun with {other}. Install that version to resume. "
                f"{_OTHERWISE}"
            )
        done, bad = len(jobs) - len(left), 0
        progress(done, bad, len(jobs))
        recordings.mkdir(exist_ok=True)
        try:
            with closing(engine(left) if left else (_ for _ in ())) as answers:
                for number, row in answers:
                    _append(journal, {"cell": number, "row": row})
                    left[number][1].unlink(missing_ok=True)
                    rows[number] = row
                    done, bad = done + 1, bad + bool(row["failure"])
                    progress(done, bad, len(jobs))
        except KeyboardInterrupt:
            raise Interrupted(
                f"Interrupted: {done} of {len(jobs)} runs are done; the same command resumes."
            ) from None
        finally:
            with suppress(OSError):  # it holds recordings to resume from
                recordings.rmdir()
    return tuple(rows[number] for number in range(len(jobs)))


def _begin(
    journal: Path, recordings: Path, results: Sequence[Path], header: Row, force: bool
) -> None:
    """Write the first line of the journal unless it is there; with `force`, remove what is."""
    unwanted = list(recordings.glob(".*.part"))  # of a process that was killed while it wrote
    results = [file for file in results if file.exists()]
    if force:
        unwanted += [
            *results,
            *(file for file in recordings.glob("[0-9]*") if file.name.isdecimal()),
        ]
    elif results and not journal.exists():
        names = ", ".join(file.name for file in results)
        raise InvalidInput(f"{journal.parent} holds {names} already. {_OTHERWISE}")
    for file in unwanted:
        file.unlink()
    if force or not journal.exists():
        checkpoint.write(journal, f"{json.dumps(header)}\n".encode())


def _append(journal: Path, entry: Row) -> None:
    with naming(journal), open(journal, "ab") as file:
        file.write(f"{json.dumps(entry, allow_nan=False)}\n".encode())
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An error of the system gets the path of the file, which that of a full disk has not."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _read(path: Path) -> tuple[dict[str, Any], dict[int, Row], int]:
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    rows: dict[int, Row] = {}
    try:
        header, *entries = map(json.loads, data[:whole].splitlines())
        require_format(path, header["format"], ROWS_FORMAT, _OTHERWISE)
        for entry in entries:
            number, row = entry["cell"], entry["row"]
            job = header["cells"][number]
            if any(row[key] != value for key, value in job.items() if key != "rounds"):
                raise ValueError(f"row {number} is not that of job {number}")
            rows[number] = row
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise BrokenFile(f"{path} cannot be read ({error}). {_OTHERWISE}") from None
    return header, rows, whole


@contextmanager
def locked(folder: Path, what: str, *, again: bool = False) -> Iterator[None]:
    """Hold the lock of a folder; refused while another process, or thread, holds it. The system
    releases it when the process ends. With `again`, a thread that holds it may enter once more.
    """
    import fcntl

    lock = os.open(folder, os.O_RDONLY)
    status = os.fstat(lock)
    place = threading.get_ident(), status.st_dev, status.st_ino
    try:
        if again and place in _HELD:
            yield
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            busy = isinstance(error, BlockingIOError)
            reason = "Another process is at work there" if busy else error.strerror
            cure = "Wait for it, or use another folder." if busy else "Use a local disk."
            raise InvalidInput(f"The {what} in {folder} is locked: {reason}. {cure}") from None
        _HELD.add(place)
        try:
            yield
        finally:
            _HELD.discard(place)
    finally:
        os.close(lock)


# --- engines --------------------------------------------------------------------------------------


# Called a few times per second with the number of a job, and how far it is.
Follow: TypeAlias = Callable[[int, RunProgress], None]

# How long a cluster may take to answer. Unit: seconds.
_CONNECT_SECONDS = 10


def engine_for(jobs: int | None, dask: str | None, follow: Follow | None = None) -> Engine:
    refuse(
        dask is not None and jobs is not None,
        "Give --jobs for this machine or --dask for a cluster, not both.",
    )
    if dask is not None:
        return on_cluster(dask)
    jobs = processors() if jobs is None else jobs
    return serial(follow) if jobs == 1 else on_processes(jobs)


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def serial(follow: Follow | None = None) -> Engine:
    def play(tasks: Mapping[int, Task]) -> Answers:
        player = Player()
        with sparse.one_thread(anew=True):
            for number, (job, file) in tasks.items():
                moved = None if follow is None else partial(follow, number)
                yield number, player.row(job, file=file, moved=moved)

    return play


def on_processes(jobs: int) -> Engine:
    # the pool starts all of them at once
    jobs = as_count(jobs, "The number of jobs", most=1024)
    joblib = import_extra("joblib", "A sweep", "app,sweep")
    return serial() if jobs == 1 else partial(_on_processes, joblib, jobs)


def on_cluster(address: str) -> Engine:
    return partial(_on_cluster, import_extra("distributed", "A sweep", "app,sweep"), address)


def _on_processes(joblib: Any, jobs: int, tasks: Mapping[int, Task]) -> Answers:
    left, sent = dict(tasks), list[int]()
    while left:
        sent.clear()
        try:
            for number, row in _pooled(joblib, jobs, dict(left), sent):
                del left[number]
                yield number, row
        except BrokenExecutor:
            for number in [number for number in sent if number in left]:
                task = left.pop(number)
                try:
                    # two processes: joblib runs a pool of one in this process
                    yield from _pooled(joblib, 2, {number: task}, [])
                except BrokenExecutor:
                    reason = "The process of this run died twice: killed, or out of memory."
                    yield number, failed(task[0], reason)


def _pooled(joblib: Any, jobs: int, given: Mapping[int, Task], sent: list[int]) -> Answers:
    """The answers of a pool of processes; `sent` lists the jobs it was given."""

    def tasks() -> Iterator[Any]:
        for number, task in given.items():
            sent.append(number)
            yield joblib.delayed(_in_other_process)(number, task)

    how = {"batch_size": 1, "pre_dispatch": jobs, "max_nbytes": None}
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1), _without_sigint():
        answers = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", **how)(tasks())
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


# The one of a process that plays for others.
_player = cache(Player)


def _in_other_process(number: int, task: Task) -> tuple[int, Row]:
    sparse.one_thread()
    return number, _player().row(task[0], file=task[1])


def _on_cluster(distributed: Any, address: str, tasks: Mapping[int, Task]) -> Answers:
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterLost(
            f"No Dask scheduler answers at {address} ({error}); an address reads "
            "tcp://10.0.0.1:8786."
        ) from None
    with client:
        together, here = os.urandom(16).hex(), versions()
        keys = {f"tidewolf-{together}-{number}": number for number in tasks}
        futures = [
            # workers may have other disks: they keep no recordings
            client.submit(_on_worker, tasks[number][0], here, key=key, pure=False)
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
                row = failed(tasks[number][0], reason)
            yield number, row


def _on_worker(job: Job, expected: Mapping[str, str]) -> Row:
    here = versions()
    other = [f"{name} {here[name]}, not {at}" for name, at in expected.items() if here[name] != at]
    if other:
        return failed(job, f"The worker has {', '.join(other)}, so its numbers would not compare.")
    sparse.one_thread()
    return _player().row(job)
