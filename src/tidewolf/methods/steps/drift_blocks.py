"""Blocks of drift-plus-penalty: what is kept of an open block, and what its end does.

While a block is open only sums of its losses are kept, at x and at y, and the constraints
themselves. At its end comes the step of methods/steps/drift.py, then a projection, which the
learner chooses along with alpha, delta and the length of blocks.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen, namespace, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import NotFinite, NotSupported
from tidewolf.core.feedback import FullInformation, require_full_information
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Companion, Record
from tidewolf.methods.blocks import Clocked
from tidewolf.methods.steps.drift import ACCURACY, Block, Last, Tally, bound, bound_between, drift
from tidewolf.methods.steps.feasible import Feasible
from tidewolf.methods.steps.limits import Limits
from tidewolf.methods.steps.slopes import each_within, within
from tidewolf.projection import ActiveSet


class OpenBlock(NamedTuple):
    """Sums over the rounds of the open block, at its point x and at its companion y, and its
    constraints.
    """

    rounds: int
    loss_gradient: Array
    """sum of grad f_t(y)"""
    difference: float
    """sum of f_t(x) - f_t(y)"""
    breached_slopes: float
    """sum of |grad g_t(x)| within aff(K) over the rounds with g_t(x) > 0"""
    limits: Limits


class State(NamedTuple):
    """Where it stands, the open block, the stretch it is in, the slopes, and the sums of the
    bounds.
    """

    t: int
    active: ActiveSet
    aimed: Array
    """where y was before the last projection"""
    y: Array
    open: OpenBlock
    horizon: int
    began: int
    loss_slope: float
    """G_f: given, or the largest of a block at y"""
    constraint_slope: float
    """G_g: given, or the largest of a round at y, within aff(K) as all slopes here"""
    steepest_loss: float
    """largest slope of a round at the point played"""
    steepest_constraint: float
    """the same among the rounds with a breach"""
    met_loss: float
    """largest slope within aff(K) that the losses of rounds seen together had on average at the
    point played
    """
    met_constraint: float
    """the same of the breached constraints"""
    last: Last
    tally: Tally
    distance: float
    bank: float
    calls: int


class Settings(NamedTuple):
    """A block's length, and its step in units where the losses have slope 1."""

    block: int
    alpha: float
    delta: float


class DriftLearner(Clocked[State]):
    """Abstract: Algorithm 3, less its settings and its projection."""

    # each of two answers is within sqrt(2 ACCURACY) R of the best
    accuracy: ClassVar = 3.0 * math.sqrt(ACCURACY)
    needs: ClassVar = FullInformation
    state_type: ClassVar = State
    exponents: ClassVar = (0.75, 0.875)

    K: HasLMO
    loss_lipschitz: float | None
    constraint_lipschitz: float | None

    @abstractmethod
    def _settings(self, horizon: int, loss_slope: float, constraint_slope: float) -> Settings:
        """For a stretch of this many rounds and these slopes, both above 0."""

    @abstractmethod
    def _near(self, state: State, aimed: Array) -> Feasible:
        """A member near the step's answer."""

    @property
    def hard_set(self) -> HasLMO:
        return self.K

    def _started(self, active: ActiveSet, horizon: int) -> State:
        return State(
            t=0,
            active=active,
            aimed=active.x,
            y=active.x,
            open=self._opened(),
            horizon=horizon,
            began=0,
            loss_slope=self.loss_lipschitz or 0.0,
            constraint_slope=self.constraint_lipschitz or 0.0,
            steepest_loss=0.0,
            steepest_constraint=0.0,
            met_loss=0.0,
            met_constraint=0.0,
            last=Last(),
            tally=Tally(),
            distance=0.0,
            bank=0.0,
            calls=0,
        )

    def act(self, state: State) -> Array:
        return state.active.x

    def _end(self, state: State) -> int:
        return state.began + state.horizon

    def _length(self, state: State) -> int:
        return self._settings(state.horizon, 1.0, 1.0).block

    def _restarted(self, state: State) -> State:
        return state._replace(
            aimed=state.active.x,
            y=state.active.x,
            distance=0.0,
            horizon=2 * state.horizon,
            began=state.t,
            open=self._opened(),
            last=Last(),
        )

    def update(self, state: State, seen: FullInformation) -> State:
        state = self._in_stretch(state)
        left = self.rounds_left(state)
        self._require(seen, left)
        with np.errstate(all="ignore"):  # what overflows is refused with a sentence
            state = self._looked(state, *seen)
        if seen.rounds < left:
            return state._replace(
                open=state.open._replace(limits=state.open.limits.and_then(seen.constraints))
            )
        return self._projected(self._stepped(state, state.open.limits.whole(seen.constraints)))

    def _require(self, seen: object, most: int) -> None:
        """Refuse feedback of another kind, on too many rounds, of the wrong shape, or defined on
        the set alone.
        """
        for batch in require_full_information(seen, self.K.shape, most):
            if batch.domain is not None:
                raise NotSupported(
                    f"{type(self).__name__} evaluates functions outside the set, and "
                    f"{type(batch).__name__} is only defined on {batch.domain}. Use "
                    "LyapunovDescent or PrimalDual, which do not."
                )

    def _looked(self, state: State, losses: Batch, constraints: Batch) -> State:
        """The state with what these rounds add to the sums of its block."""
        x, y, n, open = state.active.x, state.y, len(losses), state.open
        one = namespace(x).ones(n, dtype=x.dtype)
        gradient = losses.subgradient(y, one)
        G_f, G_g = (
            max(state.loss_slope, state.steepest_loss),
            max(state.constraint_slope, state.steepest_constraint),
        )
        within(self.K, "loss", gradient, n, self.loss_lipschitz, G_f)
        limits = constraints.values(x)
        breached = to_numpy(limits) > 0
        difference = float(np.sum(to_numpy(losses.values(x) - losses.values(y)), dtype=np.float64))
        slopes = each_within(self.K, "constraint", constraints, x, G_g)[breached]
        slopes_y = each_within(self.K, "constraint", constraints, y, G_g)
        steepest = float(np.max(each_within(self.K, "loss", losses, x, G_f)))
        if not np.isfinite([difference, steepest, *to_numpy(limits), *slopes, *slopes_y]).all():
            raise NotFinite(
                "A loss or a constraint has a value or a slope that is no finite number at the "
                "points looked at."
            )
        met = state.met_constraint
        if breached.any():
            total = constraints.subgradient(x, namespace(x).astype(limits > 0, x.dtype))
            G_g = max(G_g, float(slopes.max()))
            met = max(
                met,
                within(
                    self.K, "constraint", total, int(breached.sum()), self.constraint_lipschitz, G_g
                )[1],
            )
        return state._replace(
            t=state.t + n,
            open=OpenBlock(
                rounds=open.rounds + n,
                loss_gradient=frozen(open.loss_gradient + gradient),
                difference=open.difference + difference,
                breached_slopes=open.breached_slopes + float(slopes.sum()),
                limits=open.limits,
            ),
            constraint_slope=self.constraint_lipschitz
            or max(state.constraint_slope, float(slopes_y.max())),
            steepest_loss=max(state.steepest_loss, steepest),
            steepest_constraint=max(state.steepest_constraint, float(slopes.max(initial=0.0))),
            met_loss=max(
                state.met_loss,
                within(self.K, "loss", losses.subgradient(x, one), n, None, max(G_f, steepest))[1],
            ),
            met_constraint=met,
        )

    def _stepped(self, state: State, constraints: Batch) -> State:
        """The step at the end of a block; the state's `y` is then its answer, `aimed` too."""
        K, n, open = self.K, state.open.rounds, state.open
        gradient, slope = within(
            K,
            "loss",
            open.loss_gradient,
            n,
            self.loss_lipschitz,
            max(state.loss_slope, state.steepest_loss),
        )
        G_f = max(state.loss_slope, slope)
        _, alpha, delta = self._settings(state.horizon, G_f or 1.0, state.constraint_slope or 1.0)
        reach = (
            self._first_reach if state.t == n else min(2.0 * K.radius, K.diameter + state.distance)
        )
        d = gradient / (G_f or 1.0)
        block = Block(
            n, constraints, d, open.difference, open.breached_slopes, state.y, state.distance, reach
        )
        z, tally, last = drift(K, block, G_f, alpha, delta, state.last, state.tally)
        aimed = frozen(z)
        return state._replace(
            aimed=aimed, y=aimed, open=self._opened(), loss_slope=G_f, last=last, tally=tally
        )

    def _projected(self, state: State) -> State:
        """A member near the new y; after the last block none is needed, as whoever plays on starts
        over.
        """
        if state.t == self._end(state):
            return state._replace(aimed=state.active.x, y=state.active.x, distance=0.0)
        active, y, distance, calls = self._near(state, state.aimed)
        return state._replace(
            active=active,
            y=y,
            distance=distance,
            bank=state.bank - calls,
            calls=state.calls + calls,
        )

    @property
    def _first_reach(self) -> float:
        """How far members are at most from where the run starts."""
        return self.K.radius

    def _opened(self) -> OpenBlock:
        zero = frozen(namespace(self.K.center).zeros_like(self.K.center))
        return OpenBlock(0, zero, 0.0, 0.0, Limits())

    @property
    def _R(self) -> float:
        """The unit of length; a set of one point has none."""
        return self.K.radius or 1.0

    def slopes(self, state: State) -> tuple[float, float]:
        return (
            self.loss_lipschitz or state.met_loss,
            self.constraint_lipschitz or state.met_constraint,
        )

    def measures(self, state: State) -> tuple[float, ...]:
        return state.tally

    def _edge(self, state: State) -> tuple[float, float]:
        """What a round outside whole blocks costs at most, in regret and in violation: its slope at
        x times the diameter.
        """
        return state.steepest_loss * self.K.diameter, state.steepest_constraint * self.K.diameter

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        return bound(state.tally, state.t, self._edge(state))

    def bound_between(self, record: Record, start: int, stop: int) -> Bound:
        return bound_between(record.measures, start, stop, self._edge(record.final_state))

    def _companion(self, state: State, tolerance2: float, calls_left: float) -> Companion:
        return Companion(self.K, state.active.x, state.aimed, state.y, tolerance2, calls_left)


def promised(
    T: int, b: int, alpha: float, delta: float, distance: float, R: float, G_f: float, G_g: float
) -> Bound:
    """What holds beforehand on every interval of T rounds, |x - y| <= distance and every step
    exact.
    """
    M = -(-T // b)
    regret = (
        4.0 * b * G_f * R + 2.0 * b * R**2 * alpha + G_f**2 * T / (2.0 * alpha) + G_f * distance * T
    )
    moves = 2.0 * G_g * (T * b * (G_f * R * M / alpha + R**2)) ** 0.5
    penalties = (2.0 * alpha * R**2 + M * (G_f**2 / (2.0 * alpha) + 2.0 * G_f * R)) / delta
    return Bound(regret, moves + penalties + 4.0 * b * G_g * R + G_g * distance * T)
