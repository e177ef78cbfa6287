"""What is tracked while a run is played; all but decisions in memory that does not grow with the
rounds.

`Membership`: whether every played point is in its set.

    every point    excess(x) of each; for every set whose excess is cheap
    combination    |x - sum_i w_i v_i| and excess(v_i), for the weights w and vertices v that the
                   state holds; each vertex is looked at once
    some points    excess(x) of the 1st, 2nd, 4th, 8th, ... and of the last point

The latter two are for sets that declare their excess dear (`sets.base.CostlyMembership`): the
combination if the learner's state has one, an `ActiveSet`, else some points. Matrices of more than
`SMALL` rows or columns are checked at some points, too: each takes a decomposition. With w >= 0,
and members no longer than |c| + R, the point x is no farther from the set than

    |x - sum_i w_i v_i| + |1 - sum_i w_i| (|c| + R)  +  how far the vertices are.

Neither learner nor state is believed: a point that is not the state's combination, up to rounding,
is checked by its own excess.

`TrajectorySummary`: the mean of the points over each of P parts of the rounds. A mean of members is
a member. Points are added up in their own array library and leave it once per part.

    part p = rounds floor(p T/P) to floor((p + 1) T/P) - 1,   mean_p = the mean of x_t over part p,
    P = min(T, MAX_PARTS, MAX_NUMBERS/entries)

`Decisions`: the points of rounds t = 0, k, 2k, ..., their times, and the names of entries. An entry
is what the set says it is: on flows and splits the SHARE of a commodity's demand that a link or a
tunnel carries, never a volume; a volume is the share times the demand. Points are what was played:
if a stream overrides a decision (`Stream.played`), the override.

`Movement`: how far decisions move. `Breaches`: when each constraint was violated, by more than
rounding: 1e-9 of the largest value of the constraints of the rounds around it. `Peaks`: how full
each link ever was.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core import arrays, batch, oracle, vertices
from tidewolf.core.types import Array, Floats, Int64s, NDArray, Shape
from tidewolf.evaluation.formatting import aligned, data_frame, short_number
from tidewolf.functions.loads import utilisation
from tidewolf.methods.pool import Pool
from tidewolf.projection import ActiveSet
from tidewolf.sets import base, spectra

EVERY_POINT = "by every point's excess"
COMBINATION = "through the convex combination of vertices"
MAX_PARTS = 120
# At most so many numbers in all, or one point if that is larger.
MAX_NUMBERS = 1 << 22
_ROUNDING = 1e-9
# Rows and columns of a matrix whose decomposition costs little beside a round.
SMALL = 64
# How many rounds and entries a printed table has at most.
_ROWS, _COLUMNS = 6, 6


class Tracker:
    """What is gathered while a run is played, some of it in the library of the played points;
    `kept` names what a file has of it.
    """

    kept: ClassVar[tuple[str, ...]]

    def parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.kept)

    def restore(self, parts: tuple[Any, ...]) -> None:
        for name, value in zip(self.kept, parts, strict=True):
            mine = getattr(self, name)
            if isinstance(mine, np.ndarray):
                value = np.array(value)  # a file's are read-only
                alike = (value.shape, value.dtype) == (mine.shape, mine.dtype)
                if not alike or np.isnan(value).any():
                    raise ValueError(f"its {name} are not those of this run")
            setattr(self, name, value)


class Membership(Tracker):
    kept = ("worst", "_points", "_combined", "_asked")

    def __init__(self, K: oracle.HasLMO) -> None:
        self._K = K
        self.worst = 0.0
        self._points = self._combined = self._asked = 0
        # Those of the last combination by identity, and their excess.
        self._vertices: dict[int, tuple[vertices.Vertex, float]] = {}

    def see(self, points: Array, state: Any, *, end: bool = False) -> None:
        """The points that were played from a state, (k, *shape), with the last one of all at the
        `end`.
        """
        proves, last = isinstance(self._K, base.CostlyMembership), points.shape[0] - 1
        active = active_set(state) if proves else None
        costly = proves or (isinstance(self._K, spectra.Spectral) and max(self._K.shape) > SMALL)
        for i in range(last + 1):
            self._points, x = self._points + 1, points[i, ...]
            proven = math.inf if active is None else self._through(active, x)
            if proven < math.inf and proven <= base.membership_tolerance(x, self._K.radius):
                self._combined += 1
                self._note(proven)
            elif (
                active is not None
                or not costly
                or self._points & (self._points - 1) == 0
                or (end and i == last)
            ):
                self._asked += 1
                self._note(self._K.infeasibility(x))

    def took(self, points: int, worst: float) -> None:
        self._points, self._asked = self._points + points, self._asked + points
        self._note(worst)

    def _through(self, active: ActiveSet, x: Array) -> float:
        """How far x may be from the set, or the largest infeasibility of a vertex; inf where w <
        0.
        """
        weights = active.weights
        if not bool((weights >= 0.0).all()):
            return math.inf
        away = arrays.norm(x - active.atoms.combine(weights, x))
        off = abs(1.0 - float(weights.sum())) * (arrays.norm(self._K.center) + self._K.radius)
        assert isinstance(self._K, base.CostlyMembership)
        known, self._vertices = self._vertices, {}
        for one in active.atoms.vertices[: len(weights)]:
            self._vertices[id(one)] = known.get(id(one)) or (one, self._K.vertex_infeasibility(one))
        used = (active.atoms.vertices[i] for i in np.flatnonzero(weights > 0.0))
        return float(np.max([away + off, *(self._vertices[id(one)][1] for one in used)]))

    def _note(self, infeasibility: float) -> None:
        if not infeasibility <= self.worst:  # a NaN is the worst
            self.worst = infeasibility

    @property
    def law(self) -> str:
        some = self._asked + self._combined < self._points
        which = "the 1st, 2nd, 4th, 8th, ... and the last played point are members"
        return f"{which if some else 'every played point is a member'} of the set"

    @property
    def how(self) -> str:
        if self._asked == self._points:
            return EVERY_POINT
        some = f"{self._asked} of {self._points} points"
        if not self._combined:
            return f"by the excess of {some}"
        return COMBINATION + (f", {some} by their excess" if self._asked else "")


def active_set(state: Any) -> ActiveSet | None:
    """The convex combination among the parts of a state, or of a record inside it."""
    if isinstance(state, ActiveSet):
        return state
    if isinstance(state, Pool):
        return active_set(state.actives[0]) if len(state.actives) == 1 else None
    parts = map(active_set, state) if isinstance(state, tuple) else ()
    return next((found for found in parts if found is not None), None)


class TrajectorySummary(Tracker):
    """`means` of the points of each part, which lie between the `edges`, in rounds done."""

    kept = ("means", "_t", "_part", "_total")

    def __init__(self, rounds: int, shape: Shape) -> None:
        parts = min(rounds, MAX_PARTS, max(1, MAX_NUMBERS // max(1, math.prod(shape))))
        self.edges: Int64s = np.arange(parts + 1) * rounds // max(1, parts)
        self.means: Floats = np.zeros((parts, *shape))
        self._t = self._part = 0
        self._total: Any = None

    def see(self, points: Array, rounds: int) -> None:
        """The next rounds, played at one point, (1, *shape), or at a point each,
        (rounds, *shape).
        """
        done = 0
        while done < rounds:
            begin, end = self.edges[self._part : self._part + 2].tolist()
            count = min(rounds - done, end - self._t)
            if points.shape[0] == 1:
                added = points[0, ...] if count == 1 else count * points[0, ...]
            else:
                added = arrays.namespace(points).sum(points[done : done + count, ...], axis=0)
            self._total = added if self._total is None else self._total + added
            self._t, done = self._t + count, done + count
            if self._t == end:
                self.means[self._part] = arrays.to_numpy(self._total) / (end - begin)
                self._part, self._total = self._part + 1, None

    def tell(self, total: Floats) -> int:
        """The sum of the points of the part so far, and which part that is."""
        total[:] = 0.0 if self._total is None else arrays.to_numpy(self._total).reshape(-1)
        return self._part

    def took(self, rounds: int, total: Floats, part: int) -> None:
        """The next rounds, whose means of parts are in place, with the sum of those since, which
        who counts keeps up to date.
        """
        self._t, self._part = self._t + rounds, part
        self._total = total.reshape(self.means.shape[1:]) if self._t > self.edges[part] else None

    @property
    def mean(self) -> Floats:
        return np.average(self.means, axis=0, weights=np.diff(self.edges))


@final
class Movement(Tracker):
    """How far decisions move: half the L1 change from one round to the next.

        churn_1 = 0,    churn_t = 1/2 sum_i |x_{t,i} - x_{t-1,i}|

    On a simplex it is the share that changed its place, on flows the traffic that was moved, with
    what it left and what it went to counted as one. Rounds that share a point move nothing. Only
    the last point is kept, so memory does not grow with the rounds.
    """

    kept = ("last",)

    def __init__(self) -> None:
        self.last: Array | None = None

    def see(self, points: Array, rounds: int, *, each: bool) -> Floats:
        churn, xp = np.zeros(rounds), arrays.namespace(points)
        first = points[0, ...] if each else points
        if self.last is not None and first is not self.last:
            churn[0] = 0.5 * float(xp.sum(xp.abs(first - self.last)))
        if each and rounds > 1:
            steps = xp.abs(points[1:, ...] - points[:-1, ...])
            churn[1:] = 0.5 * arrays.to_numpy(xp.sum(steps, axis=tuple(range(1, points.ndim))))
        self.last = points[-1, ...] if each else points
        return churn


class Breach(NamedTuple):
    """When a limit was broken; rounds count from 0.

    Attributes
    ----------
    rounds : int
        In how many.
    worst : float
        By how much, in its worst round.
    """

    rounds: int
    worst: float
    worst_round: int
    first: int
    last: int


@final
class Breaches(Tracker):
    """`when`: in how many rounds each limit was broken, the worst, the first and the last, which
    count from 1 (0: none was); `sizes`: by how much in all, and in its worst round.
    """

    kept = ("when", "sizes")

    def __init__(self, limits: int) -> None:
        self.when: Int64s = np.zeros((4, limits), dtype=np.int64)
        self.sizes: Floats = np.zeros((2, limits))

    def see(self, start: int, limits: Floats) -> None:
        self.sizes[0] += np.maximum(limits, 0.0).sum(axis=0)
        broken = is_broken(limits)
        these = np.flatnonzero(broken.any(axis=0))
        if not len(these):
            return
        rounds, worst_round, first, last = self.when
        found, worst = broken[:, these], self.sizes[1]
        rounds[these] += found.sum(axis=0)
        began = first[these] == 0
        first[these[began]] = start + 1 + found[:, began].argmax(axis=0)
        last[these] = start + len(found) - found[::-1].argmax(axis=0)
        at = limits[:, these].argmax(axis=0)
        most = limits[at, these]
        worse = most > worst[these]
        worst[these[worse]], worst_round[these[worse]] = most[worse], start + 1 + at[worse]

    def of(self, limit: int) -> Breach:
        rounds, *where = self.when[:, limit].tolist()
        return Breach(rounds, float(self.sizes[1, limit]), *(t - 1 for t in where))


def is_broken(limits: Floats, size: float = 0.0) -> NDArray:
    return np.asarray(limits > _ROUNDING * max(size, float(np.abs(limits).max(initial=0.0))))


@final
class Peaks(Tracker):
    """The largest utilisation of each link over the rounds, and its round."""

    kept = ("used", "when")

    def __init__(self, limits: batch.Batch, center: Array) -> None:
        none = utilisation(limits.view(slice(0, 0)), center[None, ...])
        links = 0 if none is None else none.shape[1]
        self.used: Floats = np.zeros(links)
        self.when: Int64s = np.zeros(links, dtype=np.int64)

    def see(self, start: int, limits: batch.Batch, points: Array) -> None:
        used = utilisation(limits, points)
        assert used is not None
        at = used.argmax(axis=0)
        most = used[at, np.arange(len(at))]
        more = most > self.used
        self.used[more], self.when[more] = most[more], start + at[more]


@final
class KeptDecisions:
    """The points of each k-th round, in memory; of every round in files (`DecisionLog`)."""

    def __init__(self, rounds: int, shape: Shape, every: int = 1) -> None:
        self.every, self._t = every, 0
        self.points: Floats = np.empty((-(-rounds // every), *shape))

    def see(self, points: Array, rounds: int) -> None:
        # the first kept rounds that are not before these, and not before those that follow
        first, stop = -(-self._t // self.every), -(-(self._t + rounds) // self.every)
        if first < stop:
            seen, at = arrays.to_numpy(points), np.arange(first, stop) * self.every - self._t
            self.points[first:stop] = seen if len(seen) == 1 else seen[at]
        self._t += rounds


@final
@dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """The decisions of a run, as `run.decisions` gives them after `tw.run(..., decisions=True)`.
    Prints as a short table.

    Parameters
    ----------
    rounds : array of int
        The numbers of their rounds, from 0.
    times : array or None
        The times of these rounds, as the stream has them: dates (datetime64) or numbers; None if it
        has none.
    names : tuple of str
        The names of the entries of a point, in C order.
    points : array of float
        What was played, of shape (rounds, *shape of a point). On flows and splits an entry is a
        share of its commodity's demand, not a volume.

    Examples
    --------
    >>> links = [("SEA", "DEN"), ("DEN", "NYC"), ("SEA", "NYC")]
    >>> K = tw.sets.FlowPolytope.from_edges(links, source="SEA", target="NYC")
    >>> losses = tw.functions.Linear([[1.0, 1.0, 3.0]] * 3)
    >>> stream = tw.Stream(losses, time=["2026-03-01", "2026-03-02", "2026-03-03"])
    >>> run = tw.run(tw.LyapunovDescent(K), stream, decisions=True)
    >>> run.decisions
    time        SEA > DEN  DEN > NYC  SEA > NYC
    2026-03-01        0.5        0.5        0.5
    2026-03-02          1          1          0
    2026-03-03          1          1          0
    >>> run.decisions.points[1], run.decisions.rounds
    (array([1., 1., 0.]), array([0, 1, 2]))
    """

    rounds: Int64s
    times: NDArray | None
    names: tuple[str, ...]
    points: Floats

    @property
    def table(self) -> Floats:
        """The points as rows: one column an entry."""
        return self.points.reshape(len(self.points), len(self.names))

    def to_pandas(self) -> Any:
        """The decisions as a table.

        Returns
        -------
        pandas.DataFrame
            One row per round, under its time where the stream has times, else under its number from
            0; one column an entry, by name.
        """
        frame = data_frame(dict(zip(self.names, self.table.T, strict=True)))
        frame.index = self.rounds if self.times is None else self.times
        return frame.rename_axis("round" if self.times is None else "time")

    def __len__(self) -> int:
        return len(self.rounds)

    def __repr__(self) -> str:
        columns, what = _shown(len(self.names), _COLUMNS), "round" if self.times is None else "time"
        keys = list(map(str, self.rounds)) if self.times is None else time_texts(self.times)
        lines = [[what, *(self.names[j] if j >= 0 else "..." for j in columns)]]
        for i in _shown(len(self), _ROWS):
            cells = [short_number(self.table[i, j]) if min(i, j) >= 0 else "..." for j in columns]
            lines.append([keys[i] if i >= 0 else "...", *cells])
        left = len(self.names) > _COLUMNS or len(self) > _ROWS
        said = f"{len(self):,} rounds of {len(self.names):,} entries; to_pandas() has them all"
        return "\n".join([*aligned(lines), *([said] if left else [])])


def _shown(count: int, most: int) -> list[int]:
    every, half = range(count), most // 2
    return list(every) if count <= most else [*every[:half], -1, *every[-half:]]


def entry_names(K: Any, labels: Sequence[str] = ()) -> tuple[str, ...]:
    """What the entries of a point are called, in C order, no two alike: by labels, one each, else
    as the set calls them, else by their places from 1.
    """
    shape, names = tuple(K.shape), getattr(K, "names", None)
    count = math.prod(shape)
    if len(labels) == count and len(set(labels)) == count:
        return tuple(labels)
    if names is not None and len(names) == count:
        return tuple(names)
    places = (np.argwhere(np.ones(shape, dtype=bool)) + 1).tolist()
    return tuple(f"entry {', '.join(map(str, place))}" for place in places)


def time_texts(times: NDArray) -> list[str]:
    """Times as people and files write them: dates in ISO form, all to the unit that they need;
    numbers with the digits they have; empty if it is not known.
    """
    if times.dtype.kind != "M":
        return ["" if one != one else _number_text(one) for one in times.tolist()]
    known, units = times[~np.isnat(times)], ("D", "m", "s", "ms", "us")
    exact = (unit for unit in units if (known.astype(f"datetime64[{unit}]") == known).all())
    texts = times.astype(f"datetime64[{next(exact, 'us')}]").astype(str).tolist()
    return ["" if text == "NaT" else text for text in texts]


def _number_text(time: float) -> str:
    return str(int(time)) if time == int(time) else repr(time)
