"""Rounds of a descent played by one kernel (kernels/rounds.py), and what goes in and comes out.

A learner's state becomes arrays, the kernel plays rounds on them, and they become a state again; a
live round is one such round, a run as many as the kernel is let. Whatever needs a sentence or a
solver comes back: gradients that are refused, tables that are full, active sets to be made smaller.
Built-in functions on arrays are evaluated inside; of others the kernel is given values and
gradients (`GIVEN`), one round at a time.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from tidewolf.core.batch import Batch, Stream, Unlimited
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.jit import MODE
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats, Int64s, NDArray
from tidewolf.core.vertices import SparseAtoms
from tidewolf.functions.linear import Affine, Capacity, Linear, MaxAffine
from tidewolf.kernels import active_set, corners, evaluate, resolving
from tidewolf.kernels import rounds as names
from tidewolf.kernels.active_set import BAD_ORACLE, COUNT, USED
from tidewolf.kernels.rounds import ENOUGH, LOOK, PLAYED, TOO_MANY, UNUSUAL
from tidewolf.methods.certificate import GradientSums
from tidewolf.methods.projected import ProjectedPoint
from tidewolf.methods.steps.adagrad import DescentSums
from tidewolf.methods.steps.lyapunov import DualState
from tidewolf.methods.steps.slopes import Slopes
from tidewolf.projection.active import factors_of
from tidewolf.projection.active_set import ActiveSet
from tidewolf.projection.compiled import Search, address_of, as_bytes, tie_margin
from tidewolf.sets.base import CompiledGeometry

_DOUBLE = np.dtype(np.float64)
MOST_COPIED = 1 << 20
"""Entries of functions that are copied at a time, where they do not lie row after row."""


def read_only(array: NDArray) -> NDArray:
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


_ENDS = (PLAYED, UNUSUAL, LOOK, ENOUGH)
_NO_ROWS, _NO_NUMBERS = read_only(np.zeros((1, 1))), read_only(np.zeros(1))
_NO_LEAST = read_only(np.array([-math.inf]))
_NO_SHARES, _NO_MEASURES = np.zeros((1 << 20, 0)), np.zeros((1 << 20, 0))
_NO_ADVICE = np.zeros(0), np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros((0, 0))
_UNLIMITED = (evaluate.UNLIMITED, _NO_ROWS, _NO_NUMBERS, 0)
_READ = (Unlimited, Linear, Capacity, Affine, MaxAffine)
Encoded = tuple[int, NDArray, NDArray, int]


def encoded(batch: Batch) -> Encoded | None:
    """A batch as the kernel reads it: kind, matrix, numbers, pieces a round; None where it cannot
    be.
    """
    if type(batch) not in _READ:  # a subclass may say otherwise
        return None
    match batch:
        case Unlimited():
            return _UNLIMITED
        case Linear():
            return _as_encoded(evaluate.LINEAR, batch.C, None)
        case Capacity():
            return _as_encoded(evaluate.CAPACITY, batch.c, None)
        case Affine():
            return _as_encoded(evaluate.AFFINE, batch.A, batch.b)
        case MaxAffine():
            return _as_encoded(evaluate.MAX_AFFINE, batch.A, batch.b)
    return None


def _as_encoded(kind: int, A: Any, b: Any) -> Encoded | None:
    axes = 3 if kind == evaluate.MAX_AFFINE else 2
    if not _is_plain(A) or A.ndim != axes or not (b is None or _is_plain(b)):
        return None
    count = A.shape[1] if axes == 3 else 1
    A = np.ascontiguousarray(A).reshape(-1, A.shape[-1])
    numbers = _NO_LEAST if b is None else np.ascontiguousarray(b).reshape(-1)
    return kind, read_only(A), read_only(numbers), count


def _is_plain(array: Any) -> bool:
    return type(array) is np.ndarray and array.dtype == _DOUBLE


class Functions(NamedTuple):
    """The losses and constraints of a stream as the kernel reads them."""

    given: tuple[Any, ...]
    pieces: int
    """how many pieces a round's loss, or its limit, has at most"""
    stream: Any = None
    """the stream that they are of, where it is one"""
    start: int = 0
    """the round of the stream that they begin with"""
    batches: tuple[Batch, ...] = ()
    """they themselves"""

    @classmethod
    def of(cls, losses: Batch, constraints: Batch) -> Functions | None:
        """None where one of them cannot be read."""
        loss, limit = encoded(losses), encoded(constraints)
        if loss is None or limit is None:
            return None
        return cls((*loss, *limit), max(_pieces(loss), _pieces(limit)))

    @classmethod
    def from_first_order(cls, feedback: FirstOrder) -> Functions:
        """One round, from its gradients."""
        value = feedback.violation if feedback.violation > 0.0 else -1.0
        loss = (evaluate.GIVEN, _row(feedback.loss_gradient), _NO_NUMBERS, 1)
        limit = (
            evaluate.GIVEN,
            _row(feedback.constraint_gradient),
            read_only(np.array([value])),
            1,
        )
        return cls((*loss, *limit), 1)

    @classmethod
    def costs(cls, costs: Floats, capacities: Floats | None) -> Functions:
        """One round of costs, and of capacities of at least 0, each as an array of one row that
        must not change.
        """
        loss = (evaluate.LINEAR, costs, _NO_NUMBERS, 1)
        if capacities is None:
            return cls((*loss, *_UNLIMITED), 0)
        return cls((*loss, evaluate.CAPACITY, capacities, _NO_NUMBERS, 1), capacities.shape[1])


def _pieces(one: Encoded) -> int:
    kind, A, _, count = one
    return int(A.shape[1]) if kind == evaluate.CAPACITY else count


def is_plain(feedback: FirstOrder) -> bool:
    """Whether feedback is on one round, at the point that the learner stands at, all limits
    together.
    """
    offset = feedback.loss_offset != 0.0 or feedback.constraint_offset != 0.0
    return feedback.rounds == 1 and not offset and feedback.limits is None


def _row(gradient: Array) -> NDArray:
    return read_only(np.ascontiguousarray(gradient).reshape(1, -1))


class StreamFunctions:
    """Those of a stream: all rounds at once where they lie in memory as the kernel reads them, else
    copies of some thousand at a time.
    """

    def __init__(self, stream: Stream) -> None:
        losses, constraints, rounds = stream.losses, stream.constraints, len(stream)
        self._stream, self._batches, self._rounds = stream, (losses, constraints), rounds
        n = max(1, math.prod(losses.shape))
        whole = all(map(_lies_well, self._batches))
        self._size = max(1, rounds if whole else MOST_COPIED // n)
        self.start = self.stop = -1
        self.functions: Functions | None = None

    @classmethod
    def of(cls, stream: Stream) -> StreamFunctions | None:
        """None where the kernel cannot read them."""
        one = slice(0, 1)
        if Functions.of(stream.losses.view(one), stream.constraints.view(one)) is None:
            return None
        return cls(stream)

    def at(self, t: int) -> Functions:
        """Those of the rounds from `start` to `stop`, round t among them."""
        if not self.start <= t < self.stop:
            self.start = t - t % self._size
            self.stop = min(self.start + self._size, self._rounds)
            window = slice(self.start, self.stop)
            batches = tuple(batch.view(window) for batch in self._batches)
            found = Functions.of(*batches)
            assert found is not None
            self.functions = found._replace(stream=self._stream, start=self.start, batches=batches)
        assert self.functions is not None
        return self.functions


def _lies_well(batch: Batch) -> bool:
    arrays = [a for a in batch.fields().values() if type(a) is np.ndarray]
    return all(array.flags.c_contiguous for array in arrays)


class Records:
    """What is recorded of the rounds of a run, in arrays that the kernel fills."""

    def __init__(
        self,
        n: int,
        rounds: int,
        limits: int,
        points: bool,
        samples: int,
        parts: int,
        measures: int = 0,
    ) -> None:
        self.columns = np.zeros((rounds, names.COLUMNS))
        self.marks = np.zeros(names.MARKS)
        self.last, self.total = np.zeros(n), np.zeros(n)
        self.means, self.ends = np.zeros((parts, n)), np.zeros(parts, dtype=np.int64)
        self.points = np.zeros((rounds if points else 0, n))
        self.each = np.zeros((2, limits))
        """by how much each limit was broken in all, and at worst"""
        self.when: Int64s = np.full((4, limits), -1, dtype=np.int64)
        """in how many rounds it was, the worst, the first and the last"""
        self._shape = (samples, 3, n)
        self.weighed = np.zeros((rounds + 1, 1, 1))
        """what is asked about some projections, where the kernel knows"""
        self.measures = np.zeros((rounds, measures))
        """the weights of experts in each round"""
        self.room = 0
        """how many samples there are to be"""
        self.first = 0
        """which round of the run the functions begin with"""

    @cached_property
    def samples(self) -> NDArray:
        """x, y and where y came from, of some projections."""
        return np.zeros(self._shape)

    def after(self, done: int) -> Records:
        """The same without the first rounds."""
        rest = copy(self)
        rest.columns, rest.points = self.columns[done:], self.points[done:]
        rest.measures, rest._shape = self.measures[done:], self._shape
        rest.samples = self.samples
        return rest

    def given_away(self, samples: int) -> NDArray:
        """The first samples, for the caller to keep."""
        kept = self.samples[:samples]
        if samples:
            del self.samples
        return kept

    @property
    def arrays(self) -> tuple[NDArray, ...]:
        """In the kernel's order."""
        return (*self._arrays, self.samples[: self.room])

    @property
    def weighed_arrays(self) -> tuple[NDArray, ...]:
        """The same for a kernel that weighs samples itself."""
        return (*self._arrays, self.weighed)

    @property
    def _arrays(self) -> tuple[NDArray, ...]:
        points = (self.columns, self.marks, self.last, self.total, self.means, self.ends)
        return (*points, self.points, self.each, self.when)


class ArrayState(ABC):
    """Abstract: a learner's state as arrays, none of which is changed any more; the state itself is
    made of them on demand. It has the `number` of the coming round, and its point `x`.
    """

    __slots__ = ()
    number: Any
    x: Any

    @property
    @abstractmethod
    def state(self) -> Any:
        """The learner's state."""


class KernelState(ArrayState):
    """That of one descent."""

    __slots__ = (
        "_state", "atoms", "before", "numbers", "rounds", "since", "sums", "weights", "x", "y",
    )  # fmt: skip

    def __init__(
        self, since: Any, rounds: int, numbers: Floats, sums: Floats, atoms: SparseAtoms,
        weights: Floats, x: Floats, y: Floats, before: Floats | None = None,
    ) -> None:  # fmt: skip
        self.since, self.rounds, self.numbers, self.sums = since, rounds, numbers, sums
        self.atoms, self.weights, self.x, self.y, self.before = atoms, weights, x, y, before
        self._state = since if before is None else None

    @classmethod
    def of(cls, state: Any) -> KernelState:
        """That of a state."""
        point, active = state.point, state.point.active
        return cls(state, 0, *scalars(state), active.atoms, active.weights, active.x, point.y)

    @property
    def number(self) -> int:
        """Of the coming round."""
        number: int = self.since.t + self.since.lost + self.rounds
        return number

    @property
    def state(self) -> Any:
        """The state, with what of the one it came from does not change."""
        if self._state is None:
            assert self.before is not None
            numbers, active = self.numbers.tolist(), self.since.point.active
            for array in (self.y, self.before, self.weights):
                array.setflags(write=False)
            own = ActiveSet(self.atoms, self.weights, self.x, active.warm)
            near = self.y if numbers[names.MOVED] > 0.0 else self.before
            point = ProjectedPoint(own, self.before, near, numbers[names.DISTANCE])
            self._state = after_rounds(self.since, numbers, self.sums, point, self.rounds)
        return self._state


class Progressed(NamedTuple):
    """What the kernel came back with."""

    after: Any
    """an ArrayState"""
    done: int
    """rounds that were played"""
    unusual: bool
    """the next one is to be played without the kernel"""
    look: bool
    """the projection of the last one was not checked: the caller checks it"""
    columns: NDArray
    """what was recorded of them: the loss and the constraint's value at least"""
    weighed: bool = False
    """what is asked about sampled projections is known, and their points are not kept"""
    solves: Floats | None = None
    """programs solved in each round, where some were"""

    @property
    def state(self) -> Any:
        """The state after them."""
        return self.after.state


class CompiledRounds(Protocol):
    """What plays rounds of a learner in a kernel."""

    n: int
    """entries of a point"""
    measures: int
    """numbers that are recorded of each round"""
    plays_live: bool
    """whether rounds of which nothing is known before need the kernel alone"""

    def plays(self, stream: Stream) -> bool:
        """Whether it can play a stream whose functions it can read."""

    def takes(self, state: Any) -> bool:
        """Whether it can go on from a state."""

    def begin(self, state: Any) -> KernelState:
        """The arrays of a state that it takes."""

    def play(
        self,
        start: KernelState,
        functions: Functions,
        first: int,
        k: int,
        records: Records | None = None,
    ) -> Progressed:
        """Up to k rounds from a state that it takes, from round `first` of the functions on."""


@dataclass(slots=True)
class Descents:
    """What the kernel reads and changes: the dual state, the point to be played, the points of all
    descents with their sums, and their weights on one table of vertices.

    `mixer`: the step scales, what breaks ties of urgency, whom the bank serves in which order; then
    the proposals, who is awake, the weights, and the totals and accounts of all experts.
    """

    s: Floats
    x: Floats
    X: Floats
    Y: Floats
    before: Floats
    sums: Floats
    gradients: Floats
    atoms: SparseAtoms
    count: int
    weights: Floats
    mixer: tuple[NDArray, ...]


class CompiledDescent:
    """The rounds of one learner: settings and scratch arrays; states go in and come out."""

    measures, plays_live = 0, True

    def plays(self, stream: Stream) -> bool:
        return True

    def __init__(self, K: CompiledGeometry, **settings: float) -> None:
        assert isinstance(K, HasLMO)
        geometry = K.geometry
        assert geometry is not None
        self.K, self.n = K, len(K.center)
        own = {
            "RADIUS": K.radius,
            "DIAMETER": K.diameter,
            "CENTER_NORM": float(np.linalg.norm(K.center)),
            "MARGIN": tie_margin(K),
            "DIMENSION": float(K.dimension),
        }
        self.settings = np.zeros(names.SETTINGS)
        for name, value in ({"PLAIN": 1.0} | own | settings).items():
            self.settings[getattr(names, name)] = value
        self._geometry = as_bytes(K), read_only(geometry[0]), read_only(geometry[1])
        self.center, self._corner = read_only(K.center), K.corner
        self._kernels: dict[tuple[bool, bool], Any] = {}
        self._spare: list[_Scratch] = []
        self._corner_spare: list[_CornerScratch] = []
        self._nothing = (*Records(0, 1, 0, False, 0, 0).arrays[1:], _NO_MEASURES)
        none = np.zeros(0)
        self._alone: tuple[NDArray, ...] = (
            np.array([self.settings[names.SCALE]]),
            none,
            np.zeros(1, np.int64),
            np.zeros((0, self.n)),
            none,
            none,
            none,
            np.zeros((names.ACCOUNTS, 0)),
        )

    def kernels(self, advised: bool) -> Any:
        """The kernels of the set, and what re-solves programs, as `rounds` calls them."""
        found = self._kernels.get((MODE.interprets, advised))
        if found is None:
            found = (
                address_of(self.K),
                names.tangents.address(self.K.tangents),
                names.infeasibility.address(self.K.point_infeasibility),
                names.resolve.address(resolving.resolve) if advised else 0,
            )
            if isinstance(found[0], int):
                found = np.array(found)
            self._kernels[MODE.interprets, advised] = found
        return found

    def takes(self, state: Any) -> bool:
        """Whether the kernel can go on from a state: nothing is open, pending or held back."""
        active = state.point.active
        return (
            state.open.rounds == 0
            and not state.pending
            and state.upcoming is None
            and type(active) is ActiveSet
            and type(active.atoms) is SparseAtoms
        )

    def begin(self, state: Any) -> KernelState:
        return KernelState.of(state)

    def play(
        self,
        start: KernelState,
        functions: Functions,
        first: int,
        k: int,
        records: Records | None = None,
    ) -> Progressed:
        if self._corner is not None:
            found = self._play_corners(self._corner, start, functions, first, k, records)
            if found is not None:
                return found
        try:
            scratch = self._spare.pop()
        except IndexError:  # others use what there is
            scratch = _Scratch(self.K, self.n)
        try:
            return self._play(start, functions, first, k, records, scratch)
        finally:
            self._spare.append(scratch)

    def _play_corners(
        self,
        corner: float,
        start: KernelState,
        functions: Functions,
        first: int,
        k: int,
        records: Records | None,
    ) -> Progressed | None:
        """By kernels/corners.py; None where the active set is not for that."""
        try:
            scratch = self._corner_spare.pop()
        except IndexError:  # others use what there is
            scratch = _CornerScratch(self.n)
        scratch.fit(functions)
        s, y, settings = start.numbers.copy(), start.y.copy(), self.settings
        sums = start.sums.copy()
        x, before, atoms = np.empty(self.n), np.empty(self.n), start.atoms
        columns = np.empty((k, names.COLUMNS))
        record = (columns, *self._nothing[:-1])
        if records is not None:
            record, columns, settings = records.weighed_arrays, records.columns, settings.copy()
            settings[names.RECORDS], settings[names.FIRST] = 1.0, records.first
        done, code, used, rows, table, places = corners.corner_rounds(
            first,
            k,
            settings,
            s,
            x,
            y,
            before,
            sums,
            start.weights.copy(),  # one that may be written to: kernels are compiled for that
            corner,
            self.center,
            atoms.starts,
            atoms.indices,
            atoms.values,
            *functions.given,
            *scratch.arrays,
            *record,
        )
        self._corner_spare.append(scratch)
        if code == corners.OTHER:
            return None
        if not done:
            return Progressed(start, 0, True, False, columns)
        count, weights = len(start.weights), table[corners.WEIGHT, :rows].copy()
        if rows > count:
            atoms = atoms.extended(count, places[corners.ENTRY, count:rows], corner)
        x.setflags(write=False)
        if code == LOOK:
            own = ActiveSet(atoms, weights, x).reduced(used, self.K)
            assert type(own.atoms) is SparseAtoms
            atoms, weights = own.atoms, own.weights
        after = KernelState(start.since, start.rounds + done, s, sums, atoms, weights, x, y, before)
        return Progressed(after, done, code == UNUSUAL, code == LOOK, columns, True)

    def _play(
        self,
        start: KernelState,
        functions: Functions,
        first: int,
        k: int,
        records: Records | None,
        scratch: _Scratch,
    ) -> Progressed:
        s = start.numbers.copy()
        own = Descents(
            s, scratch.x, start.x[None].copy(), start.y[None].copy(), np.empty((1, self.n)),
            s[names.SQUARES : names.MOVED + 1][None], start.sums[:, None].copy(), start.atoms,
            len(start.weights), start.weights[None], self._alone,
        )  # fmt: skip
        done, code, columns = self.run(own, functions, first, k, records, scratch)
        if not done:
            return Progressed(start, 0, True, False, columns)
        atoms, weights, x = own.atoms, own.weights[0, : own.count].copy(), own.X[0]
        if code == LOOK:
            few = ActiveSet(atoms, weights, x).reduced(int(np.count_nonzero(weights)), self.K)
            assert type(few.atoms) is SparseAtoms
            atoms, weights = few.atoms, few.weights
        x.setflags(write=False)
        state = (own.gradients[:, 0], atoms, weights, x, own.Y[0], own.before[0])
        after = KernelState(start.since, start.rounds + done, s, *state)
        return Progressed(after, done, code == UNUSUAL, code == LOOK, columns)

    def run(
        self, own: Descents, functions: Functions, first: int, k: int, records: Records | None,
        scratch: _Scratch, shares: Floats = _NO_SHARES, advice: tuple[NDArray, ...] | None = None,
    ) -> tuple[int, int, NDArray]:  # fmt: skip
        """Play up to k rounds, in place: how many, the kernel's last code, what was recorded."""
        at, atoms, count, m = scratch.at, own.atoms, own.count, len(own.X)
        at[COUNT], at[active_set.WAITING] = count, 0.0
        settings, done, kernels = self.settings, 0, self.kernels(advice is not None)
        if records is None:
            columns = np.empty((k, names.COLUMNS))
            record: tuple[NDArray, ...] = (columns, *self._nothing)
        else:
            columns, settings = records.columns, settings.copy()
            record = (*records.arrays, records.measures)
            settings[names.RECORDS], settings[names.FIRST] = 1.0, records.first
        weights, mixer = _longer(own.weights, count, len(atoms.gram)), own.mixer
        while True:
            with atoms.lock:  # others may make it larger until then
                gram = atoms.gram
                if weights.shape[1] < len(gram):
                    weights = _longer(weights, count, len(gram))
                if scratch.room < len(gram) or scratch.pieces < functions.pieces:
                    scratch.fit(len(gram), functions.pieces)
                given = (
                    first + done, k - done, done, kernels, *(advice or _NO_ADVICE), settings,
                    own.s, at, own.x, own.X, own.Y, own.before, own.sums, *mixer[:3],
                    shares, *mixer[3:], own.gradients, weights, self.center, atoms.starts,
                    atoms.indices, atoms.values, gram, atoms.filled, *functions.given,
                    *self._geometry, *scratch.arrays, *record,
                )  # fmt: skip
                more, code, count = names.rounds.ready(*given)
                atoms.appended(count)
            done += more
            if code in _ENDS:
                break
            i = int(mixer[2][int(own.s[names.AT_EXPERT]) - (code == TOO_MANY)])
            if code == BAD_ORACLE:
                Search.refuse(own.X[i], own.Y[i], (scratch.arrays[0], scratch.arrays[1]), at)
            if code == TOO_MANY:
                few = ActiveSet(atoms, weights[i, :count].copy(), own.X[i].copy())
                few = few.reduced(int(at[USED]), self.K, shared=m > 1)
                assert type(few.atoms) is SparseAtoms
                atoms, count = few.atoms, len(few.weights)
                if m == 1:
                    weights, at[COUNT] = _longer(few.weights[None], count, len(atoms.gram)), count
                else:
                    weights[i, :count] = few.weights
                own.X[i] = few.x
                own.sums[i, names.APART_OF] = math.sqrt(float(((own.X[i] - own.Y[i]) ** 2).sum()))
            else:
                atoms = Search.make_way(code, atoms, count, at)
        own.atoms, own.count, own.weights = atoms, count, weights
        return done, code, columns


class _Scratch:
    """Arrays that no state keeps."""

    def __init__(self, K: CompiledGeometry, n: int) -> None:
        self.at, self.x = np.zeros(active_set.PLACES), np.empty(n)
        most = K.max_nonzeros
        self._own = np.empty(most, np.int32), np.empty(most), np.zeros((6, n))
        self.arrays: tuple[NDArray, ...] = ()
        """in the kernel's order"""
        self.room = self.pieces = -1

    def fit(self, room: int, pieces: int) -> None:
        """Room for as many rows as a table has, and for as many pieces of functions."""
        self.room, self.pieces = max(room, self.room), max(pieces, self.pieces)
        work = np.empty(self.pieces), np.empty(self.room), np.empty(self.room, np.int64)
        self.arrays = (*self._own, *work)


def _longer(weights: Floats, count: int, room: int) -> Floats:
    """The first weights of each point, with zeros for as many rows as a table has room for."""
    longer = np.zeros((len(weights), room))
    longer[:, :count] = weights[:, :count]
    return longer


class _CornerScratch:
    """Arrays for kernels/corners.py that no state keeps."""

    def __init__(self, n: int) -> None:
        self.n, blocks = n, -(-n // corners.BLOCK)
        self._own = (
            np.full(n, -1, dtype=np.int32),
            np.zeros(blocks, dtype=np.int64),
            np.zeros((3, blocks)),
            np.zeros(blocks),
            np.zeros((2, corners.BLOCK)),
        )
        self._buffers, self._pieces = np.zeros((2, 0)), np.zeros(0)
        self.arrays: tuple[NDArray, ...] = (*self._own, self._buffers, self._pieces)
        """in the kernel's order"""

    def fit(self, functions: Functions) -> None:
        """Room for the gradients and pieces of functions that have to be evaluated."""
        loss, limit = functions.given[0], functions.given[4]
        light = loss in _BY_REFERENCE and limit in _WITHOUT_GRADIENT
        pieces = 0 if light else functions.pieces
        if len(self._pieces) < pieces or not (light or self._buffers.size):
            self._pieces = np.zeros(pieces)
            self._buffers = np.zeros((2, 0 if light else self.n))
            self.arrays = (*self._own, self._buffers, self._pieces)


_BY_REFERENCE = (evaluate.LINEAR, evaluate.GIVEN)
_WITHOUT_GRADIENT = (evaluate.CAPACITY, evaluate.UNLIMITED)


def scalars(state: Any) -> tuple[Floats, Floats]:
    """The numbers of a state for the kernel, and its sums of gradients."""
    dual, sums = state.dual, state.descent
    numbers = (
        dual.rounds, dual.violation, *dual.slopes, dual.least_ratio, dual.exponent, dual.paid,
        dual.sums.loss_at, dual.impossible, state.oracle_budget, state.calls, dual.sums.limit_at,
        sums.square_sum, sums.inverse_step, sums.largest, state.point.distance,
        *(0.0,) * (names.SCALARS - names.LAST_CALLS),
    )  # fmt: skip
    return np.array(numbers), np.array((dual.sums.loss, dual.sums.limit))


def after_rounds(
    state: Any, s: list[float], gradients: Floats, point: ProjectedPoint, done: int
) -> Any:
    rounds, violation, loss, limit, least_ratio, exponent, paid, loss_at, impossible = s[:9]
    oracle_budget, calls, limit_at, squares, inverse_step, largest = s[9:15]
    gradients.setflags(write=False)
    dual = DualState(
        int(rounds), violation, Slopes(loss, limit), least_ratio, int(exponent), paid,
        impossible > 0.0, GradientSums(gradients[0], gradients[1], loss_at, limit_at),
        state.dual.carried,
    )  # fmt: skip
    sums = DescentSums(squares, inverse_step, None, largest)
    return state.played(state.t + done, point, dual, oracle_budget, int(calls), sums)


def compiled_descent(K: HasLMO, **settings: float) -> CompiledDescent | None:
    """The rounds of a descent over a set; None where the set has no kernels for that."""
    if not isinstance(K, CompiledGeometry) or factors_of(K) is not None or not K.diameter > 0.0:
        return None
    if "geometry" not in vars(type(K)):  # a subclass may say otherwise
        return None
    if type(K.center) is not np.ndarray or K.center.dtype != _DOUBLE or K.geometry is None:
        return None
    return CompiledDescent(K, **settings)
