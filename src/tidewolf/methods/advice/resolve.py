"""Re-solving with the data of an earlier round, and some headroom: what operators do.

    z_t  =  argmin { f_s(x) : x in K, g_s(x) <= -h },
    where no point keeps the limit, among those that breach it least

s = t - 1 ("last"), t - p (a period of p rounds), the round whose time is nearest to one period ago
(a duration), or f and g as they are forecast for round t itself. With a window of w rounds, f is
the sum of the losses of rounds s - w + 1 to s, and all their limits count.

Headroom: limit i is kept with h_i = kappa r_i, r_i^2 an exponential mean of squared one-round drops
of its slack at the point played,

    m <- 0.98 m + 0.02 max(0, g_ti(x_t) - g_{t-1,i}(x_t))^2,        r^2 = m/(1 - 0.98^n)

after n of them: of capacities, how much less there was than a round before. There is one member for
each kappa.

Functions that make no linear program (squares, log wealth, one's own) are replaced by their
linearisations at the point played. A program that is not solved means no advice in that round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arguments import as_items, shown
from tidewolf.core.arrays import as_count, as_number, frozen, inner, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, SolverFailed, WrongType
from tidewolf.core.feedback import FirstOrder, FullInformation, require_full_information
from tidewolf.core.oracle import HasLMO
from tidewolf.core.settings import Check, Count, Flag
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Vertex
from tidewolf.functions.affine import Affine
from tidewolf.functions.base import LinearTotal, PiecewiseLinear
from tidewolf.functions.chain import chained
from tidewolf.hindsight.best_point import Bases, BestPoint, half_spaces, headroom_of_rows, objective
from tidewolf.methods.advice.base import Adviser, Proposals
from tidewolf.methods.advice.recent import RecentRounds

if TYPE_CHECKING:
    from tidewolf.core.known import Known

FORGETTING = 0.02
"""The share of a round in the mean of squared drops."""
MOST_ROUNDS = 100_000
"""Rounds that are kept at most where a duration says how far back."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


@dataclass(frozen=True)
class RoundsBack(Check):
    """Which data is solved with: "last", a period in rounds, a duration, or "forecast"."""

    words: ClassVar[str] = 'text such as "last", "forecast" or "1d", or a whole number of rounds'

    def __call__(self, value: Any, what: str) -> str | int:
        if not isinstance(value, str):
            try:
                return as_count(value, what)
            except WrongType:
                raise WrongType(
                    f'{what} is "last", "forecast", a number of rounds, or a duration such as '
                    f'"1d", not {shown(value)}.'
                ) from None
        if value not in ("last", "forecast"):
            seconds_of(value, what)
        return value

    def read(self, value: Any) -> str | int | None:
        return value if type(value) in (str, int) else None


@dataclass(frozen=True)
class Headrooms(Check):
    """Numbers of at least 0, at least one of them."""

    words: ClassVar[str] = "a list of numbers"

    def __call__(self, value: Any, what: str) -> tuple[float, ...]:
        given = (value,) if isinstance(value, float | int) else as_items(value, what, "(0, 1, 2)")
        if not given:
            raise InvalidInput(f"{what} needs at least one number, such as 0.")
        return tuple(as_number(kappa, f"Each of {what}", least=0.0) for kappa in given)

    def read(self, value: Any) -> tuple[float, ...] | None:
        given = value if isinstance(value, list) else [value]
        numbers = given and all(type(kappa) in (int, float) for kappa in given)
        return tuple(map(float, given)) if numbers else None


def seconds_of(duration: str, what: str) -> float:
    """A duration such as "1d" or "12h" in seconds."""
    number, unit = duration[:-1], duration[-1:]
    try:
        seconds = float(number) * _UNITS[unit]
    except (KeyError, ValueError):
        seconds = math.nan
    if not 0.0 < seconds < math.inf:
        raise InvalidInput(
            f'{what} is "last", "forecast", a number of rounds, or a duration such as "1d" or '
            f'"12h" (s, m, h, d, w), not {shown(duration)}.'
        )
    return seconds


class ResolveState(NamedTuple):
    recent: RecentRounds
    """the rounds that it may still look back to"""
    drops2: Floats
    """the exponential mean of squared drops, one a limit"""
    counted: int
    """how many drops are in it"""
    x: Array
    """the point played last"""
    bases: tuple[Bases, ...]
    """where the next programs start, one a headroom"""
    time: float | None = None
    """of the coming round"""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Resolve(Adviser):
    """The best point of an earlier round, or of a forecast, with some headroom.

    Parameters
    ----------
    """

    needs_functions: ClassVar[bool] = True
    state_type: ClassVar = ResolveState

    data: Annotated[
        str | int,
        RoundsBack(
            'Which functions it solves with: "last", the newest; a number, those of so many rounds '
            'ago; a duration such as "1d", those of the round nearest to that time ago; '
            '"forecast", those that are predicted for the coming round.'
        ),
    ] = "last"
    headroom: Annotated[
        tuple[float, ...],
        Headrooms(
            "How much of each limit is kept in hand, as multiples of its usual drop from one "
            "round to the next; one member for each."
        ),
    ] = (0.0, 1.0, 2.0, 4.0)
    window: Annotated[
        int,
        Count(
            "How many rounds, the last of which `data` names, are solved together.", unit="rounds"
        ),
    ] = 1
    columns: Annotated[
        bool,
        Flag(
            "Whether the set is touched through its oracle alone, by column generation; always so "
            "where it has no linear description."
        ),
    ] = False

    @property
    def names(self) -> tuple[str, ...]:
        ago = self.data if self.data in ("last", "forecast") else f"{self.data} ago"
        ago = f"{self.data} rounds ago" if isinstance(self.data, int) else ago
        return tuple(f"{ago}, headroom {kappa:g}" for kappa in self.headroom)

    @property
    def waits(self) -> bool:
        return isinstance(self.data, str) and self.data != "last"

    def start(self, K: HasLMO) -> ResolveState:
        return ResolveState(
            RecentRounds(), np.zeros(0), 0, K.center, (Bases(),) * len(self.headroom)
        )

    def observe(
        self, K: HasLMO, state: ResolveState, seen: FullInformation | FirstOrder, x: Array
    ) -> ResolveState:
        losses, constraints = require_full_information(seen, K.shape, MOST_ROUNDS)
        for t in range(len(losses)):
            state = self._observed(state, losses[t : t + 1], constraints[t : t + 1], x)
        return state

    def _observed(self, state: ResolveState, loss: Batch, limit: Batch, x: Array) -> ResolveState:
        loss, limit = loss_of_program(loss, x), limit_of_program(limit, x)
        recent, drops2, counted = state.recent, state.drops2, state.counted
        if any(self.headroom):
            breach = _pieces(limit, x)
            before = _pieces(recent.rounds[-1].limit, x) if len(recent) else breach[:0]
            if before.shape != drops2.shape:  # other limits than before
                drops2, counted = np.zeros(len(before)), 0
            if before.shape == breach.shape:
                with np.errstate(over="ignore"):
                    drop2 = np.maximum(breach - before, 0.0) ** 2
                drops2, counted = drops2 + FORGETTING * (drop2 - drops2), counted + 1
        time = math.nan if state.time is None else state.time
        recent = recent.and_then(loss, limit, time, self._keep)
        if self._seconds is not None:
            recent = self._in_reach(recent, self._seconds)
        return state._replace(recent=recent, drops2=frozen(drops2), counted=counted, x=x, time=None)

    def _in_reach(self, recent: RecentRounds, seconds: float) -> RecentRounds:
        """Without rounds that are too long ago for the next decision."""
        newest, step = recent.rounds[-1].time, _step(recent)
        if math.isnan(newest) or step is None:
            return recent
        return recent.since(newest - seconds - (self.window + 1) * step)

    @cached_property
    def _seconds(self) -> float | None:
        """The duration to look back, where one is given."""
        if isinstance(self.data, int) or self.data in ("last", "forecast"):
            return None
        return seconds_of(self.data, "data of Resolve")

    @cached_property
    def _keep(self) -> int:
        if self.data == "last":
            return self.window
        if self.data == "forecast":
            return max(1, self.window - 1)
        return MOST_ROUNDS if isinstance(self.data, str) else self.data + self.window - 1

    def propose(
        self,
        K: HasLMO,
        state: ResolveState,
        known: Known | None,
        t: int,
        budget: int,
        vertices: tuple[Vertex, ...],
    ) -> Proposals:
        if self._seconds is not None:
            state = state._replace(time=None if known is None else known.time)
        rounds = self._rounds(K, state, known)
        if not rounds:
            return Proposals((None,) * len(self.headroom), state)
        losses, limits = (chained(parts) for parts in zip(*rounds, strict=True))
        return self._solved(K, state, losses, limits)

    def _rounds(
        self, K: HasLMO, state: ResolveState, known: Known | None
    ) -> tuple[tuple[Batch, Batch], ...]:
        """The functions to solve with; empty where they are not known."""
        seen, last = state.recent.rounds, 0
        if self.data == "forecast":
            told = None if known is None else known.forecast
            if told is None:
                return ()
            loss, limit = _one_round(told, K)
            predicted = (loss_of_program(loss, state.x), limit_of_program(limit, state.x))
            before = seen[len(seen) - self.window + 1 :] if self.window > 1 else ()
            return (*((r.loss, r.limit) for r in before), predicted)
        if self.data == "last":
            last = len(seen)
        elif isinstance(self.data, int):
            last = len(seen) - self.data + 1
        else:
            last = self._nearest(state)
        first = max(0, last - self.window)
        return tuple((r.loss, r.limit) for r in seen[first : max(0, last)])

    def _nearest(self, state: ResolveState) -> int:
        """How many rounds there are up to the one nearest to a duration ago; 0: none is near."""
        step = _step(state.recent)
        if state.time is None or step is None or self._seconds is None:
            return 0
        then = state.time - self._seconds
        apart = np.abs(np.array([r.time for r in state.recent.rounds]) - then)
        apart[np.isnan(apart)] = np.inf
        nearest = int(apart.argmin())
        return nearest + 1 if apart[nearest] <= 0.5 * step else 0

    def _solved(self, K: HasLMO, state: ResolveState, losses: Batch, limits: Batch) -> Proposals:
        solver, solves = self._solver(K), 0
        points: list[Array | None] = []
        bases: list[Bases] = []
        program = solver.prepared(objective(losses, "Resolve"), half_spaces(limits))
        usual = headroom_of_rows(limits, _usual_drop(state))
        for kappa, start in zip(self.headroom, state.bases, strict=True):
            room = None if kappa == 0.0 else kappa * usual
            try:
                found = solver.best(program, room, start)
            except SolverFailed:
                points.append(None)
                bases.append(Bases())
                continue
            points.append(found.x)
            bases.append(found.bases)
            solves += found.solves
        return Proposals(tuple(points), state._replace(bases=tuple(bases)), 0, solves)

    def _solver(self, K: Any) -> BestPoint:
        kept = self._kept.get(id(K))
        if kept is None or kept.K is not K:
            kept = self._kept[id(K)] = BestPoint(K, "Resolve")
        return kept

    @cached_property
    def _kept(self) -> dict[int, BestPoint]:
        return {}


def loss_of_program(loss: Batch, x: Array) -> Batch:
    """A round's loss, or its linearisation at x where it makes no linear program."""
    if isinstance(loss, LinearTotal | PiecewiseLinear):
        return loss
    return _linearised(loss, x)


def limit_of_program(limit: Batch, x: Array) -> Batch:
    """A round's limit, or its linearisation at x where it is not made of half-spaces."""
    return limit if isinstance(limit, PiecewiseLinear) else _linearised(limit, x)


def _linearised(f: Batch, x: Array) -> Batch:
    gradient = f.subgradient(x, namespace(x).ones(1, dtype=x.dtype))
    return Affine.one(gradient, inner(gradient, x) - float(f.values(x)[0]))


def _one_round(told: Any, K: HasLMO) -> FullInformation:
    return require_full_information(FullInformation(*told), K.shape, 1)


def _pieces(limit: Batch, x: Array) -> Floats:
    """The values of a round's limits at x."""
    pieces = limit.pieces(x)
    values = limit.values(x) if pieces is None else pieces
    return np.asarray(to_numpy(values), dtype=np.float64).reshape(-1)


def _usual_drop(state: ResolveState) -> Floats:
    if state.counted == 0:
        return np.zeros(1)
    return np.sqrt(state.drops2 / (1.0 - (1.0 - FORGETTING) ** state.counted))


def _step(recent: RecentRounds) -> float | None:
    """The usual time from one round to the next."""
    times = np.array([r.time for r in recent.rounds])
    steps = np.diff(times[~np.isnan(times)])
    return float(np.median(steps)) if len(steps) else None
