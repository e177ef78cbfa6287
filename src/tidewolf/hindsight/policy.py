"""The best policy in hindsight: a point for each cell of a context, mixed by the features of the
round.

    min { sum_t f_t(x_t) :  x_t = sum_j phi_tj W_j,  W in K^q,  g_t(x_t) <= 0 for every t }

With f_t and g_t as functions of W it is the task of a best point of K x .. x K, for the cells that
some round has: the methods that find a best point find W, and the bounds are as sure. Of a linear
total cell j has c_j = sum_t phi_tj c_t, and <a, x_t> <= b becomes sum_j phi_tj <a, W_j> <= b; of
rounds with the same features only the tightest of equal rows counts. Cells that no round has are
given the set's center.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np

from tidewolf.core import arguments, errors, oracle, round_info, sparse
from tidewolf.core.arrays import MOST_ENTRIES, as_count, like, to_numpy
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.lazy import sp
from tidewolf.core.piecewise import Halfspaces, LinearTotal, PiecewiseLinear
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.core.values import with_capabilities
from tidewolf.functions.combined import chained
from tidewolf.hindsight.task import with_exact_oracle
from tidewolf.sets.calculus import Product


def policy_problem(
    K: oracle.HasLMO, part: Stream, whole: Stream, first: int, context: Any
) -> tuple[Product, Batch, Batch, Int64s, Floats]:
    """The best policy of the rounds of `part`, which are those of the whole stream from `first` on,
    as a best point: a product of the set, losses and constraints of its points, the cells in use,
    which its parts belong to, and the set's center once per cell.
    """
    phi = _features(whole, first, len(part), context)
    cells, center = phi.shape[1], np.asarray(to_numpy(K.center), dtype=np.float64)
    as_count(center.size * cells, "The number of entries that the cells make", most=MOST_ENTRIES)
    used, exact = np.flatnonzero(np.diff(phi.tocsc().indptr)), cast(Any, with_exact_oracle(K))
    batches = (part.losses, part.constraints)
    losses, limits = (policy_batch(batch, phi[:, used], K.center) for batch in batches)
    product = Product(parts=[exact] * len(used))
    return product, losses, limits, used, np.stack([center] * cells)


def _features(stream: Stream, first: int, rounds: int, context: Any) -> Any:
    if not callable(getattr(context, "features", None)) or not hasattr(context, "cells"):
        raise errors.WrongType(
            f"Expected a context such as experts.Season(96), not {arguments.shown(context)}."
        )
    cells, found = as_count(context.cells, "The cells of the context"), []
    for t in range(first, first + rounds):
        features = context.features(stream.info(t), t)
        if features is None:
            raise errors.InvalidInput(
                f"{context!r} needs the time or context of every round; round {t + 1} has none."
            )
        found.append(round_info.checked_features(features, cells, t))
    rows = np.repeat(np.arange(rounds), [len(which) for which, _ in found])
    which, phi = (np.concatenate(each) for each in zip(*found, strict=True))
    table = sp.csr_array((phi, (rows, which)), shape=(rounds, cells))
    table.eliminate_zeros()
    return table


@dataclass(frozen=True, eq=False, repr=False)
class PolicyBatch(Batch):
    """Functions of a round's mix, f_t(sum_j phi_tj W_j), as functions of W, flattened."""

    f: Batch
    phi: Any
    reference: Array

    def __len__(self) -> int:
        return len(self.f)

    @property
    def shape(self) -> Shape:
        return (self.phi.shape[1] * self._size,)

    @property
    def _size(self) -> int:
        return int(np.prod(self.f.shape))

    @property
    def domain(self) -> str | None:  # type: ignore[override]
        return self.f.domain

    def view(self, rounds: slice) -> Self:
        start, stop, _ = rounds.indices(len(self))
        phi = sparse.cut_rows(self.phi, start, max(start, stop))
        return self._unchecked(f=self.f.view(rounds), phi=phi, reference=self.reference)

    @cached_property
    def _kinds(self) -> Int64s:
        """A number for each round, the same for rounds with the same features."""
        phi, number = self.phi, dict[bytes, int]()
        rows = [slice(*ends) for ends in pairwise(phi.indptr)]
        keys = (phi.indices[row].tobytes() + phi.data[row].tobytes() for row in rows)
        return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)

    @cached_property
    def _groups(self) -> list[tuple[Int64s, Batch]]:
        order, ends = np.argsort(self._kinds, kind="stable"), np.cumsum(np.bincount(self._kinds))
        if len(ends) <= 1:
            return [(order, self.f)] if len(order) else []
        groups = np.split(order, ends[:-1])
        return [(g, chained([self.f.view(slice(t, t + 1)) for t in g.tolist()])) for g in groups]

    def _at(self, W: Array) -> Iterator[tuple[Int64s, Batch, Array, Int64s, Floats]]:
        for rounds, f in self._groups:
            part = slice(*self.phi.indptr[rounds[0] : rounds[0] + 2])
            point = self._mixes(W, rounds[:1])[0, ...]
            yield rounds, f, point, self.phi.indices[part], self.phi.data[part]

    def _mixes(self, W: Array, rounds: Any) -> Array:
        cells = np.asarray(to_numpy(W), dtype=np.float64).reshape(-1, self._size)
        return like((self.phi[rounds, :] @ cells).reshape(-1, *self.f.shape), W)

    def values(self, x: Array) -> Array:
        return self.f.values_at(self._mixes(x, slice(None)))

    def subgradient(self, x: Array, weights: Array) -> Array:
        total, given = np.zeros((self.phi.shape[1], self._size)), to_numpy(weights)
        for rounds, f, point, which, phi in self._at(x):
            gradient = to_numpy(f.subgradient(point, like(given[rounds], x))).reshape(-1)
            total[which] += phi[:, None] * gradient
        return like(total.reshape(-1), x)

    def gradients(self, x: Array) -> Array:
        whole = np.zeros((len(self), self.phi.shape[1], self._size))
        for rounds, f, point, which, phi in self._at(x):
            each = to_numpy(f.gradients(point)).reshape(len(rounds), 1, -1)
            whole[rounds[:, None], which] = phi[:, None] * each
        return like(whole.reshape(len(self), -1), x)

    def slopes(self, x: Array) -> Floats:
        slopes = np.zeros(len(self))
        for rounds, f, point, _, phi in self._at(x):
            slopes[rounds] = float(np.linalg.norm(phi)) * f.slopes(point)
        return slopes

    def total(self) -> tuple[Floats, float]:
        """Of linear losses, whose gradient is the same everywhere."""
        f: Any = self.f
        anywhere, ones = np.zeros(self.shape), np.ones(len(self))
        gradient = self.subgradient(like(anywhere, self.reference), like(ones, self.reference))
        return to_numpy(gradient).astype(np.float64), float(f.total()[1])

    def halfspaces(self) -> Halfspaces:
        """The pieces of every round, of those with the same features and coefficients only the
        tightest.
        """
        told, least = self._pieces(), dict[bytes, int]()
        A, kinds = told.A, self._kinds[told.rounds]
        for i in np.lexsort((told.rounds, told.b)).tolist():
            part = slice(*A.indptr[i : i + 2])
            key = kinds[i].tobytes() + A.indices[part].tobytes() + A.data[part].tobytes()
            least.setdefault(key, i)
        kept = np.sort(np.array(list(least.values()), dtype=np.int64))
        return self._lifted(Halfspaces(A[kept, :], told.b[kept], told.rounds[kept]))

    def epigraph(self) -> Halfspaces:
        return self._lifted(self._pieces())

    def _pieces(self) -> Halfspaces:
        f: Any = self.f
        A, b, rounds = f.epigraph()
        return Halfspaces(sp.csr_array(A, dtype=np.float64), b, rounds)

    def _lifted(self, told: Halfspaces) -> Halfspaces:
        """Rows <a, x_t> as rows sum_j phi_tj <a, W_j>: each entry of a once per feature."""
        entries, starts = sp.coo_array(told.A), self.phi.indptr
        row, rounds = entries.row, told.rounds[entries.row]
        times = np.diff(starts)[rounds]
        each = np.repeat(np.arange(len(row)), times)
        at = np.arange(len(each)) + np.repeat(starts[rounds] - np.cumsum(times) + times, times)
        column = self.phi.indices[at].astype(np.int64) * self._size + entries.col[each]
        shape = (told.A.shape[0], self.shape[0])
        A = sp.csr_array((self.phi.data[at] * entries.data[each], (row[each], column)), shape=shape)
        return told._replace(A=A)

    @classmethod
    def examples(cls) -> Sequence[Batch]:
        return ()


def policy_batch(f: Batch, phi: Any, reference: Array) -> PolicyBatch:
    has = tuple(kind for kind in (LinearTotal, PiecewiseLinear) if isinstance(f, kind))
    kind: type[PolicyBatch] = with_capabilities(PolicyBatch, has)
    return kind._unchecked(f=f, phi=phi, reference=reference)
