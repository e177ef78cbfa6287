"""Decisions of a run, round by round: `run.decisions`.

    rounds t = 0, k, 2k, ...    times of these rounds    names of entries    points (rounds, *shape)

An entry of a decision is what the set says it is: on flows and splits the SHARE of a commodity's
demand that a link or a tunnel carries, never a volume; a volume is the share times the demand.
Points are what was played: where a stream overrides a decision (`Stream.played`), the override.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from tidewolf.core.arrays import frozen, to_numpy
from tidewolf.core.batch import Stream
from tidewolf.core.types import Array, Floats, Int64s, NDArray, Shape
from tidewolf.evaluation.formatting import aligned, data_frame, short_number

_ROWS, _COLUMNS = 6, 6
"""How many rounds and entries a printed table has at most."""


class DecisionSink(Protocol):
    """What keeps the points that are played, in the order of their rounds."""

    def see(self, points: Array, rounds: int) -> None:
        """The next rounds, played at one point, (1, *shape), or at a point each,
        (rounds, *shape).
        """


@final
class KeptDecisions:
    """The points of each k-th round, in memory."""

    def __init__(self, rounds: int, shape: Shape, every: int = 1) -> None:
        self.every, self._t = every, 0
        self.points: Floats = np.empty((-(-rounds // every), *shape))

    def see(self, points: Array, rounds: int) -> None:
        first = -(-self._t // self.every)  # the first kept round that is not before these
        stop = -(-(self._t + rounds) // self.every)
        if first < stop:
            at = np.arange(first, stop) * self.every - self._t
            seen = to_numpy(points)
            self.points[first:stop] = seen if len(seen) == 1 else seen[at]
        self._t += rounds


@final
@dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """The decisions of a run: what `run.decisions` gives where `tw.run(..., decisions=True)` asked
    for them. Prints as a short table.

    Parameters
    ----------
    rounds : array of int
        Which rounds they are of, counted from 0.
    times : array or None
        When these rounds were, as the stream was told: dates (datetime64) or numbers; None where it
        has no times.
    names : tuple of str
        What each entry of a point is called, in C order.
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
            One row a round, under its time where the stream has times, else under its number from
            0; one column an entry, by name.
        """
        frame = data_frame(dict(zip(self.names, self.table.T, strict=True)))
        frame.index = self.rounds if self.times is None else self.times
        return frame.rename_axis("round" if self.times is None else "time")

    def __len__(self) -> int:
        return len(self.rounds)

    def __repr__(self) -> str:
        rows, columns = _shown(len(self), _ROWS), _shown(len(self.names), _COLUMNS)
        keys = list(map(str, self.rounds)) if self.times is None else time_texts(self.times)
        lines = [["round" if self.times is None else "time"]]
        lines[0] += [self.names[j] if j >= 0 else "..." for j in columns]
        for i in rows:
            cells = [short_number(self.table[i, j]) if min(i, j) >= 0 else "..." for j in columns]
            lines.append([keys[i] if i >= 0 else "...", *cells])
        left = len(self.names) > _COLUMNS or len(self) > _ROWS
        said = f"{len(self):,} rounds of {len(self.names):,} entries; to_pandas() has them all"
        return "\n".join([*aligned(lines), *([said] if left else [])])


def _shown(count: int, most: int) -> list[int]:
    """Which of so many are shown, -1 in place of those left out."""
    if count <= most:
        return list(range(count))
    return [*range(most // 2), -1, *range(count - most // 2, count)]


def decisions_of(K: Any, stream: Stream, kept: KeptDecisions) -> Decisions:
    """The decisions that were kept of a stream's rounds."""
    rounds = np.arange(0, len(stream), kept.every)
    times = None if stream.stamps is None else stream.stamps[rounds]
    return Decisions(frozen(rounds), times, entry_names(K), frozen(kept.points))


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
    if len(shape) == 1:
        return tuple(f"entry {i}" for i in range(1, count + 1))
    places = np.argwhere(np.ones(shape, dtype=bool)) + 1
    return tuple(f"entry {', '.join(map(str, place))}" for place in places.tolist())


def time_texts(times: NDArray) -> list[str]:
    """Times as people and files write them: dates in ISO form, all to the unit that they need;
    numbers with the digits they have; empty where it is not known.
    """
    if times.dtype.kind != "M":
        return ["" if one != one else _number_text(one) for one in times.tolist()]
    known, units = times[~np.isnat(times)], ("D", "m", "s", "ms", "us")
    exact = (unit for unit in units if (known.astype(f"datetime64[{unit}]") == known).all())
    texts = times.astype(f"datetime64[{next(exact, 'us')}]").astype(str).tolist()
    return ["" if text == "NaT" else text for text in texts]


def _number_text(time: float) -> str:
    return str(int(time)) if time == int(time) else repr(time)
