"""The leader: the best fixed point of the past, fitted again from time to time.

    z  =  argmin_{x in K}  sum_{s in S} omega_s ( f_s(x) + P g_s^+(x) )/sum omega,
    P  =  max( w_t/V, lambda G_f/G_g ),     lambda in {1, 10}, one expert each

at rounds r with gaps max(every, 0.15 min(r, window)). w_t/V is the present price of a violation,
which alone begins too low; G_f and G_g are the steepest gradients of a few rounds of S at the
center. Without a constraint there is one expert. Ties: the point nearest to the center
(hindsight/cutting_planes.py).

S has one random round of each stratum of the past, omega the length of the stratum: an even stride
would meet the same hours every day. With constraints a quarter of S is kept for the rounds that z
violates most, of all that are stored: these enter with omega 1, leave their strata, and z is found
once more. Rounds of numbers r and later are never used.

The fit of round r is used from round r + ceil(gap/16) on, whatever it took: decisions depend on the
rounds alone, and a fit may be made between two requests.

There is no bound on what a leader loses: it may be wrong all the time. The guard inequality of
`Ensemble` bounds what is lost to it.

Rounds are stored as they came, in blocks, up to MOST_BYTES; then one random round of each two
stays and stands for both. If the set has no linear description, the vertices that others found are
its set.
"""

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self, final

import numpy as np

from tidewolf.core import checkpoint, settings
from tidewolf.core.arrays import norm
from tidewolf.core.batch import Batch, Unlimited
from tidewolf.core.feedback import FullInformation
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.experts.base import Adviser, Info, Price, Proposals, Seen, Vertices
from tidewolf.experts.recent import RecentRounds
from tidewolf.functions.base import ArrayBatch
from tidewolf.functions.combined import Chain, chained, leaves, loaded, require_points_of, saved
from tidewolf.hindsight import best_point, task
from tidewolf.hindsight.best_point import BestOfVertices
from tidewolf.hindsight.cutting_planes import WeightedRounds, leader
from tidewolf.methods.settings import OptionalRounds
from tidewolf.sets.base import Polyhedral

MOST_BYTES = 64 << 20  # Stored rounds take at most so much.
BLOCK = 64  # Rounds that are stored together.
# Gaps between fits as a share of the past; the part of a gap after which a fit is used.
GROWTH, DELAY = 0.15, 16
CAREFUL = (1.0, 10.0)  # lambda.
STEEPEST_OF = 64  # Rounds that G_f and G_g are taken from.
MOST_VERTICES = 256
SEED = 20_260_118


class Block(NamedTuple):
    loss: Batch
    limit: Batch
    numbers: Int64s
    counts: Int64s  # how many rounds each stands for

    def thinned(self, rng: np.random.Generator) -> "Block":
        n = len(self.numbers)
        pairs = [range(i, min(i + 2, n)) for i in range(0, n, 2)]
        kept = [pair[int(rng.integers(len(pair)))] for pair in pairs]
        counts = np.array([self.counts[list(pair)].sum() for pair in pairs])
        loss, limit = rows_of([self.loss], kept), rows_of([self.limit], kept)
        return Block(loss, limit, self.numbers[kept], counts)

    @property
    def size(self) -> int:
        """Bytes of what rounds do not share."""
        each = (one for batch in (self.loss, self.limit) for one in leaves(batch))
        own = [one for one in each if isinstance(one, ArrayBatch)]
        arrays: Any = [one.__dict__[name] for one in own for name in one.by_round]
        return sum(8 * int(getattr(a, "nnz", None) or math.prod(a.shape)) for a in arrays)


def rows_of(blocks: Sequence[Batch], rows: Iterable[int]) -> Batch:
    """Some rounds of several batches, counted through all of them."""
    starts, found = np.cumsum([0, *map(len, blocks)]), list[Batch]()
    for row in map(int, rows):
        i = int(np.searchsorted(starts, row, side="right")) - 1
        at = row - int(starts[i])
        one = blocks[i].view(slice(at, at + 1))
        while isinstance(one, Chain) and len(one.parts) == 1:
            (one,) = one.parts
        found.append(one)
    return chained(found)


@final
class Blocks(checkpoint.Stored):
    """Stored rounds, in the order in which they came. Never changed."""

    tag: ClassVar = "stored rounds"
    __slots__ = ("blocks", "size")

    def __init__(self, blocks: tuple[Block, ...] = ()) -> None:
        self.blocks, self.size = blocks, sum(block.size for block in blocks)

    def and_then(self, block: Block, oldest: int) -> "Blocks":
        """With a block, without those all of whose rounds are before the oldest."""
        blocks = Blocks((*(b for b in self.blocks if b.numbers.max() >= oldest), block))
        while blocks.size > MOST_BYTES and sum(len(one.numbers) for one in blocks.blocks) > 2:
            rng = np.random.default_rng((SEED, int(block.numbers[-1])))
            thin = [one.thinned(rng) for one in blocks.blocks]
            blocks = Blocks(tuple(map(_joined, (thin[i : i + 2] for i in range(0, len(thin), 2)))))
        return blocks

    def parts(self) -> dict[str, Any]:
        where = "The leader remembers"
        return {
            "losses": saved([one.loss for one in self.blocks], where),
            "limits": saved([one.limit for one in self.blocks], where),
            "sizes": np.array([len(one.numbers) for one in self.blocks], dtype=np.int64),
            "numbers": np.concatenate([np.zeros(0, np.int64), *(b.numbers for b in self.blocks)]),
            "counts": np.concatenate([np.zeros(0, np.int64), *(b.counts for b in self.blocks)]),
        }

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        both = loaded(parts["losses"]), loaded(parts["limits"])
        numbers, counts, ends = parts["numbers"], parts["counts"], np.cumsum(parts["sizes"])
        blocks = list[Block]()
        for start, stop in zip((ends - parts["sizes"]).tolist(), ends.tolist(), strict=True):
            at = slice(start, stop)
            loss, limit = (rows_of(batches, range(start, stop)) for batches in both)
            blocks.append(Block(loss, limit, numbers[at], counts[at]))
        return cls(tuple(blocks))

    def require_of(self, K: Any) -> None:
        require_points_of(K, (each for one in self.blocks for each in (one.loss, one.limit)))


def _joined(blocks: Sequence[Block]) -> Block:
    losses, limits, numbers, counts = zip(*blocks, strict=True)
    return Block(chained(losses), chained(limits), np.concatenate(numbers), np.concatenate(counts))


class Found(NamedTuple):
    points: tuple[Array | None, ...]
    solves: int  # programs


@final
class Fit(checkpoint.Stored):
    """What a fit finds: made in a thread of its own, and awaited where it is asked for."""

    tag: ClassVar = "fit"

    def __init__(self, made: Found | Future[Found]) -> None:
        self._made = made

    def found(self) -> Found:
        return self._made.result() if isinstance(self._made, Future) else self._made

    def __reduce__(self) -> tuple[Any, ...]:
        return Fit, (self.found(),)

    def parts(self) -> dict[str, Any]:
        return self.found()._asdict()

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        return cls(Found(**parts))


class LeaderState(NamedTuple):
    blocks: Blocks
    recent: RecentRounds  # the newest rounds, not yet in a block
    due: int  # the round of the next fit
    points: tuple[Array | None, ...]  # in use
    fit: Fit | None = None  # the next ones
    used_from: int = 0  # the round from which on those are used
    # the newest ones that are known, if the set has no linear description
    vertices: Vertices = ()
    price: float = 0.0  # w/V


@final
@dataclass(frozen=True, eq=False, repr=False)
class Leader(Adviser):
    """The best fixed point of the past, fitted from time to time.

    Parameters
    ----------
    every : int, default 48
        The least number of rounds between two fits; later 15 % of the past. Unit: rounds.
    rows : int, default 1500
        How many rounds a fit uses at most. Unit: rounds.
    window : int, optional
        How many of the last rounds are the past. None: all. Unit: rounds.

    Examples
    --------
    >>> K, adviser = tw.sets.Simplex(3), tw.experts.Leader(every=2)
    >>> rng = np.random.default_rng(0)
    >>> losses = tw.functions.Linear(rng.uniform(size=(200, 3)) + [0.0, 0.1, 0.2])
    >>> run = tw.run(tw.Ensemble(K, experts=[adviser]), tw.Stream(losses))
    >>> [expert.name for expert in run.experts][-2:]
    ['leader', 'leader, careful']
    """

    needs_functions: ClassVar[bool] = True
    gives_members: ClassVar[bool] = True
    names: ClassVar[tuple[str, ...]] = ("leader", "leader, careful")
    in_words: ClassVar[tuple[str, ...]] = ("the leader", "the leader, careful")
    waits: ClassVar[bool] = False

    every: Annotated[int, settings.Count()] = 48
    rows: Annotated[int, settings.Count(least=4)] = 1500
    window: OptionalRounds = None

    def start(self, K: HasLMO) -> LeaderState:
        return LeaderState(Blocks(), RecentRounds(), self.every, (None,) * len(CAREFUL))

    def observe(self, K: HasLMO, state: LeaderState, feedback: Seen, x: Array) -> LeaderState:
        blocks = state.blocks.blocks
        newest = max(state.recent.newest, int(blocks[-1].numbers.max()) if blocks else -1)
        return self.observe_round(K, state, feedback, x, newest + 1)

    def observe_round(
        self, K: HasLMO, state: LeaderState, feedback: Seen, x: Array, number: int
    ) -> LeaderState:
        if not isinstance(feedback, FullInformation):
            return state
        blocks, recent = state.blocks, state.recent
        for t in range(len(feedback.losses)):
            own = feedback.losses[t : t + 1], feedback.constraints[t : t + 1]
            recent = recent.and_then(*own, math.nan, number + t, 1 << 60)
            if len(recent) > BLOCK:  # the last one stays: the next shares with it what both say
                *old, last = recent.rounds
                blocks = blocks.and_then(_block(old), self._oldest(number + t + 1))
                recent = RecentRounds((last,))
        return state._replace(blocks=blocks, recent=recent)

    def _oldest(self, t: int) -> int:
        return 0 if self.window is None else t - self.window

    def weighed(
        self, K: HasLMO, state: LeaderState, weights: Floats, t: int, price: Price
    ) -> LeaderState:
        return state._replace(price=price()) if t >= state.due else state

    def propose(
        self, K: HasLMO, state: LeaderState, info: Info, t: int, budget: int, vertices: Vertices
    ) -> Proposals:
        solves = 0
        if vertices and not isinstance(K, Polyhedral):
            known = {vertex.key(): vertex for vertex in (*state.vertices, *vertices)}
            state = state._replace(vertices=tuple(known.values())[-MOST_VERTICES:])
        if t >= state.due:
            gap = max(self.every, math.ceil(GROWTH * min(t, self.window or t)))
            thread, later = ThreadPoolExecutor(1), t + math.ceil(gap / DELAY)
            fit = Fit(thread.submit(self._fitted, K, state, t))
            thread.shutdown(wait=False)
            state = state._replace(fit=fit, used_from=later, due=t + gap)
        if state.fit is not None and t >= state.used_from:
            points, solves = state.fit.found()
            state = state._replace(points=points, fit=None)
        return Proposals(state.points, state, 0, solves)

    def _fitted(self, K: HasLMO, state: LeaderState, t: int) -> Found:
        solver = self._solver(K, state.vertices)
        if solver is None or not state.recent.rounds:
            return Found(state.points, 0)
        blocks = [*state.blocks.blocks, _block(state.recent.rounds)]
        numbers = np.concatenate([one.numbers for one in blocks])
        counts = np.concatenate([one.counts for one in blocks])
        order = np.argsort(numbers, kind="stable")
        order = order[(numbers[order] >= self._oldest(t)) & (numbers[order] < t)]
        if not len(order):
            return Found(state.points, 0)
        losses, limits = [one.loss for one in blocks], [one.limit for one in blocks]
        free = all(isinstance(leaf, Unlimited) for one in limits for leaf in leaves(one))
        rng = np.random.default_rng((SEED, t))
        S = strata(counts[order], self.rows if free else self.rows - self.rows // 4, rng)
        few = order[S.rows[:: max(1, len(S.rows) // STEEPEST_OF)]]
        ratio = 0.0 if free else _ratio(K, rows_of(losses, few), rows_of(limits, few))
        found, solves = list[Array | None](), 0
        for careful in CAREFUL[:1] if free else CAREFUL:
            price, own = max(state.price, careful * ratio), S
            for again in (False, True):
                some = order[own.rows]
                weights, which = own.weights / own.weights.sum(), rows_of(losses, some)
                kept = None if free else rows_of(limits, some)
                z, solves = leader(solver, WeightedRounds(which, kept, weights, price)), solves + 1
                if z is None or free or again or len(S.rows) == len(order):
                    break
                over = np.concatenate([task.flattened(one.values(z)) for one in limits])[order]
                worst = np.argsort(-over, kind="stable")[: self.rows // 4]
                worst = worst[over[worst] > 0.0]
                if not len(worst):
                    break
                own = with_worst(S, counts[order], worst, rng)
            found.append(z)
        return Found((*found, *(None,) * (len(CAREFUL) - len(found))), solves)

    def _solver(self, K: HasLMO, vertices: Vertices) -> best_point.BestPoint | None:
        if isinstance(K, Polyhedral):
            return best_point.BestPoint(K, "Leader")
        return BestOfVertices(K, "Leader", (K.atom(K.center), *vertices)) if vertices else None


def _ratio(K: HasLMO, losses: Batch, limits: Batch) -> float:
    G_f, G_g = (
        max(norm(K.tangent(g[i, ...])) for i in range(len(g)))
        for g in (batch.gradients(K.center) for batch in (losses, limits))
    )
    return G_f / G_g if min(G_f, G_g) > 0.0 else 1.0


def _block(rounds: Sequence[Any]) -> Block:
    losses, limits = [one.loss for one in rounds], [one.limit for one in rounds]
    numbers = np.array([one.number for one in rounds], dtype=np.int64)
    return Block(chained(losses), chained(limits), numbers, np.ones(len(rounds), np.int64))


class Sample(NamedTuple):
    rows: Int64s
    weights: Floats
    starts: Int64s  # where each stratum starts; there are as many as rows


def strata(counts: Int64s, most: int, rng: np.random.Generator) -> Sample:
    """One random row of each of up to so many strata; rows stand for so many rounds."""
    n = len(counts)
    starts = np.unique(np.linspace(0, n, min(n, most) + 1).astype(np.int64)[:-1])
    weights = np.add.reduceat(counts, starts).astype(np.float64)
    ends = np.cumsum(counts)
    before = ends[starts] - counts[starts]
    rows = np.searchsorted(ends, before + rng.uniform(size=len(starts)) * weights, side="right")
    return Sample(np.minimum(rows, n - 1), weights, starts)


def with_worst(S: Sample, counts: Int64s, worst: Int64s, rng: np.random.Generator) -> Sample:
    """With these rows on their own, each taken out of its stratum, which another row then
    represents.
    """
    taken = np.zeros(len(counts), bool)
    taken[worst] = True
    left = np.where(taken, 0, counts)
    weights = np.add.reduceat(left, S.starts).astype(np.float64)
    ends = np.cumsum(left)
    before = np.append(0, ends)[S.starts]
    rows = S.rows.copy()
    lost = taken[rows] & (weights > 0.0)
    rows[lost] = np.searchsorted(
        ends, before[lost] + rng.uniform(size=int(lost.sum())) * weights[lost], side="right"
    )
    kept = weights > 0.0
    return Sample(
        np.append(rows[kept], worst),
        np.append(weights[kept], counts[worst].astype(np.float64)),
        S.starts,
    )
