"""Recordings of unfinished runs: what was measured so far, and the state to resume from.

It can stop after any update and resume elsewhere: `save` keeps all of it as bytes, and `load` gives
a recording that continues, with the same learner and stream only. On the same machine and versions
it continues bit for bit. A stream that was generated or read from files is the same if its recipe,
or the bytes of the files, are (`source`): what a generator computes may differ in the last digits
on another processor.
"""

import math
import time
from array import array
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Self, final

import numpy as np

from tidewolf.core import checkpoint, feedback, jit
from tidewolf.core.arrays import norm, ones, to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.errors import BrokenFile, CheckpointError, NotFinite, WrongType
from tidewolf.core.types import Array, Floats, Int64s, NDArray
from tidewolf.core.values import fingerprint
from tidewolf.evaluation import tracking
from tidewolf.evaluation.certificate import SAMPLE, Audit
from tidewolf.functions import combined, support
from tidewolf.kernels.rounds import APART, CHURN, LOSS, SPENT, VALUE
from tidewolf.loop import Played, compiled_rounds, play
from tidewolf.methods.base import Learner, few_threads
from tidewolf.methods.capabilities import ProjectionRecord, diagnosed, kernel_of
from tidewolf.methods.compiled_rounds import ArrayState, Progressed, whole
from tidewolf.methods.kernel_functions import Records, StreamFunctions

# Numbers of all rounds up to which kernels are interpreted: machine code takes seconds to make.
SHORT = 7_500
# Seconds, about, that a kernel plays before it returns.
MOMENT = 0.2
# Rounds that it is given at first, and at most.
FIRST_PACE, MOST_AT_ONCE = 16, 1 << 16
# Entries of points that are kept at a time, for who writes them down.
MOST_POINTS = 1 << 20
# What the values of a run may add up to: differences of two such totals are numbers still.
_TOTAL = 1e307


class RunProgress(NamedTuple):
    rounds_done: int
    rounds: int
    calls: int
    loss_total: float
    violation_total: float
    solves: int = 0


class _Snapshot(NamedTuple):
    t: int
    state: np.ndarray[Any, np.dtype[np.uint8]]
    seconds: float
    untold: tuple[float, ...]
    ends: Int64s
    measures: Floats
    rounds: tuple[NDArray, ...]
    trackers: tuple[tuple[Any, ...], ...]


def _clock() -> float:
    return time.perf_counter() - jit.CLOCK.spent


def solves_in(state: Any) -> int:
    return int(getattr(state, "solves", 0))


def _entries(stream: Stream) -> int:
    first = (batch.view(slice(0, 1)) for batch in (stream.losses, stream.constraints))
    arrays = (a for batch in first for a in batch.fields().values() if type(a) is np.ndarray)
    return max(math.prod(stream.shape), *(a.size for a in arrays), 0)


@final
class Recording:
    """`source` says where the stream comes from, in place of its content, and files agree with it;
    `untold` are slopes of losses, and of broken limits, summed over rounds without feedback.
    """

    def __init__(
        self,
        learner: Learner[Any],
        stream: Stream,
        *,
        source: str = "",
    ) -> None:
        if isinstance(learner, Learner) and not isinstance(stream, Stream):
            words = f"Expected a Stream(losses, constraints), not {type(stream).__name__}"
            raise WrongType(f"{words}; rounds that come one by one are for tw.play.")
        rounds = len(stream) if isinstance(stream, Stream) else 0
        self._is_short = rounds == 0 or rounds * _entries(stream) <= SHORT
        with jit.interpreting(self._is_short):
            self._now: Any = learner.start() if isinstance(learner, Learner) else None
            play(learner, stream, self._now)  # refuses what cannot be played
            self.audit = Audit(learner)
        self.learner, self.stream = learner, stream
        # what sees the points of the next rounds, one for all or one each, and how many these are
        self.decisions: Any = None
        self._source: str | Stream = source or stream
        self.t, self.seconds, self.membership = 0, 0.0, tracking.Membership(learner.K)
        self.losses, self.violations, self.distances, self.churn = np.empty((4, rounds))
        self.calls, self.solves = np.zeros((2, rounds), dtype=np.int64)
        budgets = len(stream.budgets or ()) if isinstance(stream, Stream) else 0
        self.spends, self.multipliers = np.zeros((2, budgets, rounds))
        self.ends, self.measures = array("q"), array("d")  # of each update, see `updates`
        self.movement = tracking.Movement()
        self.trajectory = tracking.TrajectorySummary(rounds, learner.K.shape)
        self._kernel, self._diagnosed = kernel_of(learner), diagnosed(learner)
        if self._kernel is not None and (self._kernel.exact or self.audit.most_kept < SAMPLE):
            self.audit.expect(rounds)  # most projections move y
        # updates of which the subgradients of a user's own functions are still tested
        self._tested, self._before = 0, None  # type: int, Array | None
        if learner.needs is not feedback.Bandit and rounds:
            functions = (stream.losses, stream.constraints)
            self._tested = support.FIRST if any(map(combined.own_functions, functions)) else 0
        first, center = stream.constraints.view(slice(0, 1)), learner.K.center
        limits = first.pieces(center) if rounds else None
        count = 1 if limits is None else limits.shape[1]
        self.breaches = tracking.Breaches(count if count > 1 else 0)
        self.peaks = tracking.Peaks(stream.constraints, center)
        self.untold: tuple[float, ...] = (0.0, 0.0)
        numbers = (self.losses, self.violations, self.distances, self.churn)
        counts = (self.calls, self.solves, *self.spends, *self.multipliers)
        self._rounds: tuple[NDArray, ...] = (*numbers, *counts)
        gathered = (self.membership, self.movement, self.trajectory, self.breaches, self.peaks)
        self._trackers: tuple[tracking.Tracker, ...] = (self.audit, *gathered)

    def advance(self) -> Iterator[int]:
        compiled = compiled_rounds(self.learner, self.stream)
        moves = self._advance_one_by_one() if compiled is None else self._advance_compiled(compiled)
        while True:
            with jit.interpreting(self._is_short), few_threads(self.learner.K):
                done = next(moves, None)
            if done is None:
                return
            yield done

    def _advance_one_by_one(self) -> Iterator[int]:
        clock = _clock()
        for played in play(self.learner, self.stream, self.state, self.t):
            self.seconds += _clock() - clock
            self._take(played)
            yield self.t
            clock = _clock()

    def _advance_compiled(self, functions: StreamFunctions) -> Iterator[int]:
        kernel, n = self._kernel, math.prod(self.stream.shape)
        most = max(1, MOST_POINTS // n) if self.decisions is not None else MOST_AT_ONCE
        pace, records = FIRST_PACE, self._records(min(most, len(self.stream) - self.t))
        while not self.done:
            given, clock = functions.at(self.t), _clock()
            k = min(pace, most, functions.stop - self.t)
            if isinstance(self._now, ArrayState) or kernel.takes(self._now):
                self._prepare(records, functions.start)
                start = self._now if isinstance(self._now, ArrayState) else kernel.begin(self._now)
                found = kernel.play(start, given, self.t - functions.start, k, records)
                del start  # its memory is free
                spent = _clock() - clock
                self.seconds += spent
                self._take_records(records, found)
                pace = min(2 * pace, MOST_AT_ONCE) if spent < MOMENT else max(1, pace // 2)
                if not found.unusual:
                    yield self.t
                    continue
            # what the kernel leaves to others is one round
            played = next(play(self.learner, self.stream, self.state, self.t))
            self.seconds += _clock() - clock
            self._take(played)
            yield self.t

    def _records(self, rounds: int) -> Records:
        n, points = math.prod(self.stream.shape), self.decisions is not None
        samples, parts = self.audit.most_kept + 1, len(self.trajectory.means)
        records = Records(n, rounds, 0, points, samples, parts, self._kernel.measures)
        records.means = self.trajectory.means.reshape(parts, n)
        records.ends = self.trajectory.edges[1:]
        records.each, records.when = self.breaches.sizes, self.breaches.when  # changed in place
        records.used, records.used_when = self.peaks.used, self.peaks.when
        return records

    def _prepare(self, records: Records, first: int) -> None:
        if self.movement.last is not None:
            records.last[:] = to_numpy(self.movement.last)
        part, records.room = self.trajectory.tell(records.total), self.audit.room
        records.marks[:] = (self.membership.worst, *self.audit.numbers(), 0.0, part)
        records.first = first

    def _take_records(self, records: Records, found: Progressed) -> None:
        if not found.done:
            return
        stop, columns = self.t + found.done, found.columns[: found.done]
        now = slice(self.t, stop)
        self.losses[now] = self._finite(columns[:, LOSS], "loss")
        self.violations[now] = np.maximum(self._finite(columns[:, VALUE], "constraint"), 0.0)
        self.distances[now], self.calls[now] = columns[:, APART], columns[:, SPENT]
        self.churn[now], self.movement.last = columns[:, CHURN], records.last
        infeasibility, *worst, updates, moved, _, kept, part = records.marks.tolist()
        K, away = self.learner.K, records.given_away(int(kept))
        sample = [ProjectionRecord(K, x, before, y, 0.0, 0.0) for x, before, y in away]
        self.membership.took(found.done, infeasibility)
        self.audit.took(worst, int(updates), int(moved), sample)
        self.trajectory.took(found.done, records.total, int(part))
        if self.decisions is not None:
            self.decisions.see(records.points[: found.done], found.done)
        self.ends.extend(range(self.t + 1, stop + 1))
        self.measures.extend(records.measures[: found.done].reshape(-1).tolist())
        if found.solves is not None:
            self.solves[now] = found.solves
        self.t, self._now = stop, found.after
        if found.look:
            self.audit.see(self.state)

    def _take(self, played: Played) -> None:
        if self._tested:
            self._test_subgradients(played)
        stop = self.t + played.losses.shape[0]
        now, values = slice(self.t, stop), self._finite(to_numpy(played.constraints), "constraint")
        self.losses[now] = self._finite(to_numpy(played.losses), "loss")
        self.violations[now] = np.maximum(values, 0.0)
        self.distances[now] = self.state.distance
        self.calls[stop - 1] += played.state.calls - self.state.calls
        self.solves[stop - 1] += solves_in(played.state) - solves_in(self.state)
        each = self.learner.needs is feedback.Bandit
        points = played.x if each else played.x[None, ...]
        self.churn[now] = self.movement.see(played.x, stop - self.t, each=each)
        for spent, batch in zip(self.spends, (self.stream.budgets or {}).values(), strict=True):
            part = batch.view(now)
            values = part.values_at(played.x) if each else part.values(played.x)
            spent[now] = self._finite(to_numpy(values), "budget")
        self.membership.see(points, self.state, end=stop == len(self.stream))
        self.trajectory.see(points, stop - self.t)
        if self.decisions is not None:
            self.decisions.see(points, stop - self.t)
        if len(self.peaks.used):
            self.peaks.see(self.t, self.stream.constraints.view(now), points)
        if len(self.each) and self.violations[now].any():
            self._count_each(points, stop)
        arrives = self.stream.arrives
        if arrives is not None and arrives[self.t] >= len(self.stream):
            self._count_slopes(played)
        self.t, self._now = stop, played.state
        sums = getattr(self.state, "budgets", None)
        if sums is not None and len(sums.multipliers) == len(self.multipliers):
            self.multipliers[:, now] = sums.multipliers[:, None]
        if played.seen:
            self.ends.append(stop)
            self.measures.extend(self._diagnosed.measures(self.state))
            self.audit.see(self.state)

    def _test_subgradients(self, played: Played) -> None:
        """Those of the first round of an update, at the point that was played, against members that
        the run has met anyway: the set's center, the decision before, the last vertices of the
        oracle. It costs some dozen evaluations at most, and no oracle call.
        """
        t, center, active = self.t, self.learner.K.center, tracking.active_set(played.state)
        last = () if active is None else active.atoms.vertices[: len(active.weights)][-2:]
        vertices = ((vertex.dense(center), "a vertex of the set") for vertex in last)
        others = support.members_of(center, (self._before, "the decision before"), *vertices)
        x = support.Member(played.x, "the point that was played")
        for kind, batch in (("loss", self.stream.losses), ("constraint", self.stream.constraints)):
            support.require_subgradients(kind, batch.view(slice(t, t + 1)), t, x, others)
        self._tested, self._before = self._tested - 1, played.x

    def _finite(self, values: Floats, name: str) -> Floats:
        size = abs(float(values[0])) if len(values) == 1 else float(np.abs(values).max())
        if not size <= _TOTAL / len(self.stream):
            most = f"at most {_TOTAL / len(self.stream):.3g}, so that totals do not overflow"
            when = f"in round {self.t + 1} or soon after"
            raise NotFinite(f"Expected a {name} of size {most}, not {size:g}, {when}.")
        return values

    def _count_each(self, points: Array, stop: int) -> None:
        """How much each of several limits was broken in the rounds up to `stop`: at one point for
        all of them, or at one for each.
        """
        each = 1 if points.shape[0] > 1 else stop - self.t
        for i, t in enumerate(range(self.t, stop, each)):
            limits = self.stream.constraints.view(slice(t, t + each)).pieces(points[i, ...])
            self.breaches.see(t, to_numpy(limits))

    def _count_slopes(self, played: Played) -> None:
        """What per round without feedback may have cost, over the diameter."""
        K, x, one = self.learner.K, played.x, slice(self.t, self.t + 1)
        weight, broken = ones(1, x), float(played.constraints[0]) > 0.0
        loss = norm(K.tangent(self.stream.losses.view(one).subgradient(x, weight)))
        limit = K.tangent(self.stream.constraints.view(one).subgradient(x, weight))
        losses, limits = self.untold
        self.untold = (losses + loss, limits + norm(limit) * broken)

    @property
    def state(self) -> Any:
        """The state after the rounds so far, made of what the kernel left."""
        with jit.interpreting(self._is_short):  # its next point is mixed now
            return whole(self._now)

    @property
    def each(self) -> Floats:
        return np.asarray(self.breaches.sizes[0])

    @property
    def done(self) -> bool:
        return self.t == len(self.stream)

    @property
    def progress(self) -> RunProgress:
        loss, violation = (float(x[: self.t].sum()) for x in (self.losses, self.violations))
        calls, solves = int(self.calls[: self.t].sum()), int(self.solves[: self.t].sum())
        return RunProgress(self.t, len(self.stream), calls, loss, violation, solves)

    def save(self) -> bytes:
        snapshot = _Snapshot(
            self.t,
            np.frombuffer(self.learner.save(self.state), dtype=np.uint8),
            *(self.seconds, self.untold, *self.updates()),
            rounds=tuple(numbers[: self.t] for numbers in self._rounds),
            trackers=tuple(tracker.parts() for tracker in self._trackers),
        )
        return checkpoint.dump(
            snapshot, settings=self._settings, learner=type(self.learner).__name__
        )

    @classmethod
    def load(
        cls,
        data: bytes,
        learner: Learner[Any],
        stream: Stream,
        file: str,
        *,
        source: str = "",
        folder: str = "",
    ) -> Self:
        """A saved recording again; errors name the file, and a warning that another machine wrote
        it the folder, so that it is shown once for all files in it. Its decisions go nowhere until
        `decisions` is set.
        """
        recording = cls(learner, stream, source=source)
        saved = checkpoint.load(
            data, settings=recording._settings, reference=learner.K.center, source=file
        )
        try:
            found = _Snapshot(**saved.fields)
            for mine, its in zip(recording._rounds, found.rounds, strict=True):
                if (its.shape, its.dtype) != ((found.t,), mine.dtype) or not np.isfinite(its).all():
                    raise ValueError(f"its numbers are not those of {found.t} rounds")
                mine[: found.t] = its
            recording._now = learner.load(found.state.tobytes(), source=folder or file)
            for tracker, parts in zip(recording._trackers, found.trackers, strict=True):
                tracker.restore(parts)
            recording.t, recording.seconds, recording.untold = found.t, found.seconds, found.untold
            recording.ends = array("q", found.ends.tolist())
            recording.measures = array("d", found.measures.reshape(-1).tolist())
        except CheckpointError as error:
            raise type(error)(f"{file}: {error}") from None
        except Warning:  # where warnings are errors
            raise
        except Exception as error:  # other content breaks in every way
            raise BrokenFile(f"{file} is no run: {checkpoint.half_sentence(error)}.") from None
        return recording

    def updates(self) -> tuple[Int64s, Floats]:
        """After how many rounds each update came, and the learner's running numbers after it."""
        updates = len(self.ends)
        measures = np.array(self.measures, dtype=np.float64).reshape(
            updates, len(self.measures) // max(1, updates)
        )
        return np.array(self.ends, dtype=np.int64), measures

    @cached_property
    def _settings(self) -> str:
        return fingerprint((self.learner, self._source))
