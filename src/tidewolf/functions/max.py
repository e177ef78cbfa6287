"""Maxima of functions, round by round:  f_t(x) = max_i f_ti(x).

A subgradient is that of the largest part; among several the first. As a constraint: every part
is at most 0, and `pieces` has each constraint of each part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidewolf.core.arrays import like, namespace, taken, to_numpy, zeros
from tidewolf.core.batch import Batch
from tidewolf.core.piecewise import Halfspaces, PiecewiseLinear
from tidewolf.core.sparse import is_sparse, stack_rows
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.functions.affine import Affine
from tidewolf.functions.capacity import Capacity
from tidewolf.functions.combined import Combined, checked_parts
from tidewolf.functions.linear import Linear
from tidewolf.functions.load_limit import LoadLimit
from tidewolf.functions.quadratic import Quadratic


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Max(Combined):
    """The largest of several functions a round: several constraints as one.

    In an experiment's file its parts are tables of their own, [[stream.losses.parts]].

    Parameters
    ----------
    functions : Batch
        The parts: batches of as many rounds, on points of one shape.
    parts : sequence of Batch, default ()
        The same as a list; it comes after `functions`.

    Examples
    --------
    >>> links = tw.functions.Capacity([[0.5, 1.0], [0.25, 0.5]])
    >>> budget = tw.functions.Affine([[1.0, 2.0], [1.0, 2.0]], [1.0, 2.0])
    >>> g = tw.functions.Max(links, budget)
    >>> g.values(np.array([0.5, 0.5]))
    array([0.5 , 0.25])
    >>> g.pieces(np.array([0.5, 0.5]))  # two links and a budget, in two rounds
    array([[ 0.  , -0.5 ,  0.5 ],
           [ 0.25,  0.  , -0.5 ]])
    """

    parts: tuple[Batch, ...]

    def __init__(self, *functions: Batch, parts: Sequence[Batch] = ()) -> None:
        self.__dict__["parts"] = checked_parts(functions, parts, "Max")

    @staticmethod
    def _able(parts: tuple[Batch, ...]) -> Iterable[type]:
        if all(isinstance(part, PiecewiseLinear) for part in parts):
            yield PiecewiseLinear

    def values(self, x: Array) -> Array:
        return namespace(x).max(self._each(x), axis=0)

    def values_at(self, points: Array) -> Array:
        xp = namespace(points)
        return xp.max(xp.stack([part.values_at(points) for part in self.parts]), axis=0)

    def pieces(self, x: Array) -> Array:
        """Each limit of each part, as (rounds, limits)."""
        each = [(part.pieces(x), part) for part in self.parts]
        tables = [part.values(x)[:, None] if own is None else own for own, part in each]
        return namespace(x).concat(tables, axis=1)

    def piece_gradients(self, x: Array, rounds: Int64s, limits: Int64s) -> Array:
        counts = [1 if own is None else own.shape[1] for own in (p.pieces(x) for p in self.parts)]
        starts = np.concatenate([[0], np.cumsum(counts)])
        owners = np.searchsorted(starts, limits, side="right") - 1
        found, places = [], []
        for i, part in enumerate(self.parts):
            mine = np.flatnonzero(owners == i)
            if len(mine):
                found.append(part.piece_gradients(x, rounds[mine], limits[mine] - starts[i]))
                places.append(mine)
        if not found:
            return zeros((0, *self.shape), x)
        return taken(namespace(x).concat(found), np.argsort(np.concatenate(places)))

    def subgradient(self, x: Array, weights: Array) -> Array:
        first, total = self._largest(x), 0.0 * x
        for i, part in enumerate(self.parts):
            mine = first == i
            if mine.any():
                total = total + part.subgradient(x, weights * like(mine, weights))
        return total

    def gradients(self, x: Array) -> Array:
        first, axes = self._largest(x), (-1,) + (1,) * len(self.shape)
        total = 0.0
        for i, part in enumerate(self.parts):
            mine = like((first == i).reshape(axes), x)
            total = total + mine * part.gradients(x)
        return total

    def slopes(self, x: Array) -> Floats:
        slopes = np.array([part.slopes(x) for part in self.parts])
        return np.asarray(slopes[self._largest(x), np.arange(len(self))])

    def _each(self, x: Array) -> Array:
        return namespace(x).stack([part.values(x) for part in self.parts])

    def _largest(self, x: Array) -> Int64s:
        """The first largest part of each round."""
        return np.asarray(to_numpy(self._each(x)).argmax(axis=0))

    def halfspaces(self) -> Halfspaces:
        """Those of every part."""
        return _together([part.halfspaces() for part in self._piecewise()])

    def offsets(self) -> Floats:
        return np.concatenate([part.offsets() for part in self._piecewise()])

    def epigraph(self) -> Halfspaces:
        """Those of every part, in the order of the rounds."""
        A, b, rounds = _together([part.epigraph() for part in self._piecewise()])
        order = np.argsort(rounds, kind="stable")
        return Halfspaces(A[order, :], b[order], rounds[order])

    @classmethod
    def examples(cls) -> Sequence[Max]:
        from scipy.sparse import csr_array

        limits = Capacity([[0.5, 0.5], [1.0, 0.0]])
        return (
            cls(Affine([[1.0, -2.0], [0.0, 3.0]], [0.5, 1.0]), limits, limits),
            cls(Linear(csr_array([[0.0, 1.0], [0.0, 0.0]])), Linear([[1.0, 0.0], [0.0, 0.0]])),
            cls(Quadratic.examples()[0], limits),
            cls(Linear([[3.0]])),
        )


def _together(told: Sequence[Halfspaces]) -> Halfspaces:
    sparse = any(is_sparse(each.A) for each in told)
    return Halfspaces(
        (stack_rows if sparse else np.vstack)([each.A for each in told]),
        np.concatenate([each.b for each in told]),
        np.concatenate([each.rounds for each in told]),
    )


def limit_names(K: Any, constraints: Batch) -> tuple[str, ...]:
    """The names of the constraints of a round, in the order of `pieces`: those that the set has for
    entries, those of links and callables, else numbers from 1. None without a round.
    """
    if not len(constraints):
        return ()
    found = _names_of(K, constraints.view(slice(0, 1)))
    return tuple(name or f"limit {i}" for i, name in enumerate(found, 1))


def _names_of(K: Any, one: Batch) -> tuple[str | None, ...]:
    if isinstance(one, Max):
        return tuple(name for part in one.parts for name in _names_of(K, part))
    pieces = one.pieces(K.center)
    count = 1 if pieces is None else int(pieces.shape[1])
    if pieces is None and isinstance(name := getattr(one, "name", None), str):
        return (name,)
    names = getattr(K, "names", None) if isinstance(one, Capacity) else None
    if isinstance(one, LoadLimit):
        names = one.names
    return (None,) * count if names is None or len(names) != count else tuple(names)
