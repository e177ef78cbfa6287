"""Move the experts of an ensemble by one kernel (kernels/experts.py): their steps along one
gradient and their projections, on one table of vertices and one budget of oracle calls.

    y_i <- ball( y_i - eta_i phi_i g, softened together within a group )
    x_i, y_i <- a member near y_i, those first who are trusted and far from their companions
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.jit import Kernel
from tidewolf.core.types import Array, Int64s, NDArray
from tidewolf.core.vertices import SparseAtoms
from tidewolf.kernels import active_set
from tidewolf.kernels import experts as names
from tidewolf.kernels.active_set import BAD_ORACLE, COUNT, DONE, PLACES, USED
from tidewolf.methods.compiled_rounds import CompiledDescent
from tidewolf.methods.steps.adagrad import DescentSums
from tidewolf.methods.steps.group import StepGradient
from tidewolf.projection.active_set import ActiveSet
from tidewolf.projection.compiled import Search


class Part(NamedTuple):
    """A descent that moves."""

    y: Array
    distance: float
    sums: DescentSums
    active: ActiveSet
    """on all rows that the pool knows"""
    scale: float
    share: float
    group: int
    """the place among all that move of the first of those that give back together"""
    trust: float


class Moved(NamedTuple):
    """A descent after it moved."""

    y: Array
    before_projection: Array
    distance: float
    sums: DescentSums
    active: ActiveSet
    calls: int


class CompiledExperts:
    """Over one set, with the settings that rounds of a single descent have."""

    def __init__(self, own: CompiledDescent) -> None:
        self.K, self._own = own.K, own
        self._run = _specialised(own.K.oracle)
        self._nothing = np.zeros(own.n)

    def takes(self, actives: Sequence[Any]) -> bool:
        """Whether the kernel can move these."""
        return all(type(a) is ActiveSet and type(a.atoms) is SparseAtoms for a in actives)

    def move(
        self, parts: Sequence[Part], grad: StepGradient, oracle_budget: float, reserved: int
    ) -> tuple[list[Moved], SparseAtoms, int]:
        """All of them along one gradient, the table then and how many of its rows they know."""
        m, n, K = len(parts), self._own.n, self.K
        atoms: Any = parts[0].active.atoms
        count = len(parts[0].active.weights)
        X = np.array([part.active.x for part in parts])
        Y, before = np.array([part.y for part in parts]), np.empty((m, n))
        sums = np.array([_numbers(part) for part in parts])
        scales, shares, trust = (np.array([part[i] for part in parts]) for i in (4, 5, 7))
        groups: Int64s = np.array([part.group for part in parts], dtype=np.int64)
        order: Int64s = np.zeros(m, dtype=np.int64)
        weights = np.zeros((m, atoms.room))
        for i, part in enumerate(parts):
            weights[i, :count] = part.active.weights
        at, progress = np.zeros(PLACES), np.array([0.0, 0.0, oracle_budget, float(reserved)])
        at[COUNT] = count
        P = grad.penalty_gradient
        gradient = (
            grad.g,
            self._nothing if P is None else P,
            grad.penalty_value,
            P is not None,
            grad.x,
        )
        most, buffers = K.max_nonzeros, np.zeros((2, n))
        answer = np.empty(most, np.int32), np.empty(most)
        while True:
            with atoms.lock:  # others may make it larger until then
                room = len(atoms.gram)
                if weights.shape[1] < room:
                    grown = np.zeros((m, room))
                    grown[:, :count] = weights[:, :count]
                    weights = grown
                code = self._run(
                    self._own.settings,
                    at,
                    progress,
                    *map(_as_vector, gradient[:2]),
                    *gradient[2:4],
                    _as_vector(gradient[4]),
                    self._own.center,
                    X,
                    Y,
                    before,
                    weights,
                    sums,
                    scales,
                    shares,
                    groups,
                    trust,
                    order,
                    atoms.starts,
                    atoms.indices,
                    atoms.values,
                    atoms.gram,
                    atoms.filled,
                    self._own.kernel_data,
                    *answer,
                    buffers,
                    np.empty(room),
                    np.empty(room, np.int64),
                )
                count = int(at[COUNT])
                atoms.appended(count)
            if code == DONE:
                break
            i = int(order[int(progress[names.AT]) - (code == names.TOO_MANY)])
            if code == BAD_ORACLE:
                Search.refuse(X[i], Y[i], answer, at)
            if code == names.TOO_MANY:
                few = ActiveSet(atoms, weights[i, :count].copy(), X[i].copy())
                few = few.reduced(int(at[USED]), K, shared=True)
                weights[i, :count], X[i] = few.weights, few.x
                sums[i, names.APART_OF] = math.sqrt(float(((X[i] - Y[i]) ** 2).sum()))
                continue
            atoms = Search.make_way(code, atoms, count, at)
        for array in (X, Y, before, weights):
            array.setflags(write=False)
        found = []
        for i, part in enumerate(parts):
            active = ActiveSet(atoms, weights[i, :count], X[i], part.active.warm)
            squares, inverse, largest, apart, calls, moved = sums[i].tolist()
            own = DescentSums(squares, inverse, None, largest)
            near = Y[i] if moved > 0.0 else before[i]
            found.append(Moved(near, before[i], apart, own, active, int(calls)))
        return found, atoms, count


def _numbers(part: Part) -> tuple[float, ...]:
    own = part.sums
    return own.square_sum, own.inverse_step, own.largest, part.distance, 0.0, 0.0


def _as_vector(array: Array) -> NDArray:
    """Read-only, so that the kernel is compiled once."""
    vector: NDArray = np.ascontiguousarray(array).view()
    vector.setflags(write=False)
    return vector


@cache
def _specialised(oracle: Kernel[int]) -> Callable[..., int]:
    near = active_set.nearest_member.given(oracle=oracle)
    return names.move_experts.given(nearest_member=near).compiled
