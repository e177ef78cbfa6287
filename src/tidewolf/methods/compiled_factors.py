"""Rounds of a descent on simplices side by side, or on a box, played by one kernel
(kernels/factor_rounds.py): the sibling of compiled_rounds.py for sets whose projection is exact.

x is its own companion and there is no table of vertices, so the kernel comes back only where a
gradient needs a sentence, or its sample of projections is full.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.batch import Stream
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Floats, Int64s, NDArray
from tidewolf.kernels import rounds as names
from tidewolf.kernels.columns import LONGEST, WIDTH
from tidewolf.kernels.factor_rounds import factor_rounds
from tidewolf.kernels.groups import BLOCK
from tidewolf.kernels.rounds import UNUSUAL
from tidewolf.methods.compiled_rounds import (
    Functions,
    KernelState,
    Progressed,
    Records,
    after_rounds,
    read_only,
    scalars,
)
from tidewolf.methods.projected import ProjectedPoint
from tidewolf.methods.steps.adagrad import FactorSums
from tidewolf.projection.active import ExactPoint, factors_of
from tidewolf.sets.box import Box
from tidewolf.sets.calculus import Product
from tidewolf.sets.simplices import SimplexProduct


class Shape(NamedTuple):
    """The data of a set for the kernel."""

    starts: Int64s
    sizes: Floats
    """how many entries each factor has"""
    D: Floats
    """the diameter of each factor"""
    lower: Floats
    upper: Floats
    """the bounds of a box; empty where factors are simplices"""
    center: Floats


class FactorState(KernelState):
    """A state on such a set as arrays; `steps` are the sums of the factors, a row each."""

    __slots__ = ("steps",)

    def __init__(
        self,
        since: Any,
        rounds: int,
        numbers: Floats,
        sums: Floats,
        steps: Floats,
        x: Floats,
        before: Floats | None = None,
    ) -> None:
        self.since, self.rounds, self.numbers, self.sums = since, rounds, numbers, sums
        self.steps, self.x, self.y, self.before = steps, x, x, before
        self._state = since if before is None else None

    @classmethod
    def of(cls, state: Any) -> FactorState:
        steps = np.array(state.descent.factors)
        return cls(state, 0, *scalars(state), steps, state.point.x)

    @property
    def state(self) -> Any:
        if self._state is None:
            assert self.before is not None
            point = ProjectedPoint(ExactPoint(self.x), self.before, self.x)
            after = after_rounds(self.since, self.numbers.tolist(), self.sums, point, self.rounds)
            own = after.descent._replace(inverse_step=0.0, largest=0.0)
            own = own._replace(factors=FactorSums(*map(frozen, self.steps)))
            self._state = after._replace(descent=own)
        return self._state


class CompiledFactors:
    """The rounds of one learner: settings and scratch arrays; states go in and come out."""

    measures, plays_live = 0, True

    def plays(self, stream: Stream) -> bool:
        return True

    def __init__(self, K: HasLMO, shape: Shape, **settings: float) -> None:
        self.shape, self.n = Shape(*map(read_only, shape)), len(shape.center)
        own = {
            "RADIUS": K.radius,
            "DIAMETER": K.diameter,
            "CENTER_NORM": float(np.linalg.norm(shape.center)),
            "DIMENSION": float(K.dimension),
        }
        self.settings = np.zeros(names.SETTINGS)
        for name, value in (own | settings).items():
            self.settings[getattr(names, name)] = value
        self._spare: list[_Scratch] = []
        self._nothing = Records(0, 1, 0, False, 0, 0).arrays[1:]

    def takes(self, state: Any) -> bool:
        """Whether the kernel can go on from a state: nothing is open, pending or held back, and x
        is its own companion.
        """
        point = state.point
        return (
            state.open.rounds == 0
            and not state.pending
            and state.upcoming is None
            and type(point.active) is ExactPoint
            and point.y is point.active.x
        )

    def begin(self, state: Any) -> FactorState:
        return FactorState.of(state)

    def play(
        self,
        start: KernelState,
        functions: Functions,
        first: int,
        k: int,
        records: Records | None = None,
    ) -> Progressed:
        assert isinstance(start, FactorState)
        try:
            scratch = self._spare.pop()
        except IndexError:  # others use what there is
            scratch = _Scratch(self.shape)
        try:
            return self._play(start, functions, first, k, records, scratch)
        finally:
            self._spare.append(scratch)

    def _play(
        self,
        start: FactorState,
        functions: Functions,
        first: int,
        k: int,
        records: Records | None,
        scratch: _Scratch,
    ) -> Progressed:
        points, before = (start.x.copy(), np.empty(self.n)), np.empty(self.n)
        s, sums, steps = start.numbers.copy(), start.sums.copy(), start.steps.copy()
        columns, settings = np.empty((k, names.COLUMNS)), self.settings
        record = (columns, *self._nothing)
        if records is not None:
            record, columns, settings = records.arrays, records.columns, settings.copy()
            settings[names.RECORDS], settings[names.FIRST] = 1.0, records.first
        done, code, now = factor_rounds(
            first, k, settings, s, *points, before, sums, steps, *self.shape, *functions.given,
            *scratch.arrays(functions.pieces), *record,
        )  # fmt: skip
        if not done:
            return Progressed(start, 0, True, False, columns)
        if records is not None:
            records.last[:] = points[1 - now]
        x = frozen(points[now])
        after = FactorState(start.since, start.rounds + done, s, sums, steps, x, frozen(before))
        return Progressed(after, done, code == UNUSUAL, False, columns)


class _Scratch:
    """Arrays that no state keeps."""

    def __init__(self, shape: Shape) -> None:
        n, size = len(shape.center), int(shape.sizes.max())
        width = BLOCK if len(shape.starts) == n else WIDTH
        gradients = np.zeros((2, n))
        self._own = (
            gradients,
            read_only(gradients),
            np.zeros((3, size, width)),
            np.empty((6, width)),
            np.empty(-(-n // BLOCK)),
        )
        self._pieces = np.empty(n)

    def arrays(self, pieces: int) -> tuple[NDArray, ...]:
        """In the kernel's order, with room for so many pieces of functions."""
        if len(self._pieces) < pieces:
            self._pieces = np.empty(pieces)
        return (*self._own, self._pieces)


def compiled_factors(K: HasLMO, **settings: float) -> CompiledFactors | None:
    """The rounds of a descent over a product; None where the kernel cannot project on it."""
    factors, whole = factors_of(K), K.whole if isinstance(K, Product) else K
    if factors is None or not factors.exact or not K.diameter > 0.0 or len(K.shape) > 1:
        return None
    sizes = np.diff(factors.starts, append=len(K.center)).astype(np.float64)
    shape, bounds = (factors.starts, sizes, factors.diameters), (np.zeros(0),) * 2
    if isinstance(whole, Box):
        bounds = (whole.lower, whole.upper)
    elif not isinstance(whole, SimplexProduct) or sizes.max() > LONGEST:
        return None
    return CompiledFactors(K, Shape(*shape, *bounds, K.center), **settings)
