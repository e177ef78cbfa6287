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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import MOST_ENTRIES, as_count, like, to_numpy
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.oracle import HasLMO
from tidewolf.core.piecewise import Halfspaces, LinearTotal, PiecewiseLinear
from tidewolf.core.round_info import RoundInfo, checked_features
from tidewolf.core.sparse import cut_rows
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.functions.combined import chained
from tidewolf.hindsight.task import with_exact_oracle
from tidewolf.sets.calculus import Product


class HasFeatures(Protocol):
    """What is asked of a context."""

    @property
    def cells(self) -> int:
        """How many cells there are."""

    def features(self, info: RoundInfo | None, t: int) -> tuple[Int64s, Floats] | None:
        """The cells of round t and their weights; None where they are not known."""


class PolicyProblem(NamedTuple):
    """The best policy as a best point: of a product of the set, one for each cell in use."""

    K: Product
    stream: Stream
    used: Int64s
    cells: int
    center: Floats

    def policy(self, point: Floats) -> Floats:
        """A point of the product as one of each cell, (cells, *shape)."""
        whole = np.repeat(self.center[None], self.cells, axis=0)
        whole[self.used] = point.reshape(len(self.used), *self.center.shape)
        return whole + 0.0


def policy_problem(
    K: HasLMO, part: Stream, whole: Stream, first: int, context: Any
) -> PolicyProblem:
    """The problem of the rounds of `part`, which are those of the whole stream from `first` on."""
    phi = policy_features(whole, first, len(part), context)
    size = int(np.prod(K.shape))
    as_count(size * phi.shape[1], "The number of entries that the cells make", most=MOST_ENTRIES)
    used = np.flatnonzero(np.diff(phi.tocsc().indptr))
    exact: Any = with_exact_oracle(K)
    losses, limits = (
        policy_batch(batch, phi[:, used], K.center) for batch in (part.losses, part.constraints)
    )
    product = Product(parts=[exact] * len(used))
    center = np.asarray(to_numpy(K.center), dtype=np.float64)
    return PolicyProblem(product, Stream(losses, limits), used, phi.shape[1], center)


def policy_features(stream: Stream, first: int, rounds: int, context: Any) -> Any:
    """The features of some rounds of a stream, sparse, (rounds, cells)."""
    from scipy.sparse import csr_array

    if not callable(getattr(context, "features", None)) or not hasattr(context, "cells"):
        raise WrongType(
            f"The context of a policy is one such as context.Season(96), not {shown(context)}."
        )
    cells = as_count(context.cells, "The cells of the context")
    indptr, indices, weights = [0], list[Int64s](), list[Floats]()
    for t in range(first, first + rounds):
        features = context.features(stream.info(t), t)
        if features is None:
            raise InvalidInput(
                f"Nothing is known of round {t + 1} that {context!r} goes by, so no policy decides "
                "it: give the stream the time or the context of every round, or leave such rounds "
                "out by start and stop."
            )
        which, phi = checked_features(features, cells, t)
        indices.append(which)
        weights.append(phi)
        indptr.append(indptr[-1] + len(which))
    parts = (np.concatenate(weights), np.concatenate(indices), np.array(indptr))
    phi_of_all = csr_array(parts, shape=(rounds, cells))
    phi_of_all.sum_duplicates()
    phi_of_all.eliminate_zeros()
    return phi_of_all


@dataclass(frozen=True, eq=False, repr=False)
class PolicyBatch(Batch):
    """Functions of a round's mix, f_t(sum_j phi_tj W_j), as functions of W, flattened."""

    f: Batch
    phi: Any
    """sparse, (rounds, cells)"""
    reference: Array
    """a point of the set that f is asked at members of"""

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
        phi = cut_rows(self.phi, start, max(start, stop))
        return self._unchecked(f=self.f.view(rounds), phi=phi, reference=self.reference)

    @cached_property
    def _kinds(self) -> Int64s:
        """A number for each round, the same for rounds with the same features."""
        phi, number = self.phi, dict[bytes, int]()
        rows = [slice(*ends) for ends in pairwise(phi.indptr)]
        keys = (phi.indices[row].tobytes() + phi.data[row].tobytes() for row in rows)
        found = [number.setdefault(key, len(number)) for key in keys]
        return np.array(found, dtype=np.int64)

    @cached_property
    def _groups(self) -> list[tuple[Int64s, Batch]]:
        """The rounds with the same features, group by group, and their functions."""
        order = np.argsort(self._kinds, kind="stable")
        ends = np.cumsum(np.bincount(self._kinds))
        groups = np.split(order, ends[:-1])
        if len(groups) == 1:
            return [(order, self.f)] if len(order) else []
        return [(g, chained([self.f.view(slice(t, t + 1)) for t in g.tolist()])) for g in groups]

    def _at(self, W: Array) -> Floats:
        """The cells' points as rows."""
        return np.asarray(to_numpy(W), dtype=np.float64).reshape(-1, self._size)

    def _mixes(self, W: Array, rounds: Int64s) -> Array:
        """The points of some rounds."""
        return like((self.phi[rounds, :] @ self._at(W)).reshape(-1, *self.f.shape), W)

    def values(self, x: Array) -> Array:
        return self.f.values_at(self._mixes(x, np.arange(len(self))))

    def subgradient(self, x: Array, weights: Array) -> Array:
        total, given = np.zeros((self.phi.shape[1], self._size)), to_numpy(weights)
        for rounds, f in self._groups:
            point = self._mixes(x, rounds[:1])[0, ...]
            gradient = to_numpy(f.subgradient(point, like(given[rounds], x))).reshape(-1)
            which, phi = self._features(int(rounds[0]))
            total[which] += phi[:, None] * gradient
        return like(total.reshape(-1), x)

    def gradients(self, x: Array) -> Array:
        whole = np.zeros((len(self), self.phi.shape[1], self._size))
        for rounds, f in self._groups:
            point = self._mixes(x, rounds[:1])[0, ...]
            each = to_numpy(f.gradients(point)).reshape(len(rounds), 1, -1)
            which, phi = self._features(int(rounds[0]))
            whole[rounds[:, None], which] = phi[:, None] * each
        return like(whole.reshape(len(self), -1), x)

    def slopes(self, x: Array) -> Floats:
        slopes = np.zeros(len(self))
        for rounds, f in self._groups:
            phi = self._features(int(rounds[0]))[1]
            point = self._mixes(x, rounds[:1])[0, ...]
            slopes[rounds] = float(np.linalg.norm(phi)) * f.slopes(point)
        return slopes

    def _features(self, t: int) -> tuple[Int64s, Floats]:
        part = slice(self.phi.indptr[t], self.phi.indptr[t + 1])
        return self.phi.indices[part], self.phi.data[part]

    def total(self) -> tuple[Floats, float]:
        """Of linear losses: those of each cell are weighted by its features."""
        f: Any = self.f
        anywhere, columns = 0.0 * self.reference, self.phi.tocsc()
        each = []
        for j in range(columns.shape[1]):
            weights = columns[:, [j]].toarray().reshape(-1)
            weights = weights if type(anywhere) is np.ndarray else like(weights, anywhere)
            each.append(to_numpy(f.subgradient(anywhere, weights)).reshape(-1))
        return np.concatenate(each).astype(np.float64), float(f.total()[1])

    def halfspaces(self) -> Halfspaces:
        """The pieces of every round, of those with the same features and coefficients only the
        tightest.
        """
        told = self._pieces()
        kinds = self._kinds[told.rounds]
        A, least = told.A, dict[bytes, int]()
        for i in np.lexsort((told.rounds, told.b)).tolist():
            part = slice(A.indptr[i], A.indptr[i + 1])
            key = kinds[i].tobytes() + A.indices[part].tobytes() + A.data[part].tobytes()
            least.setdefault(key, i)
        kept = np.sort(np.array(list(least.values()), dtype=np.int64))
        return self._lifted(Halfspaces(A[kept, :], told.b[kept], told.rounds[kept]))

    def epigraph(self) -> Halfspaces:
        """The pieces of every round."""
        return self._lifted(self._pieces())

    def _pieces(self) -> Halfspaces:
        from scipy.sparse import csr_array

        f: Any = self.f
        A, b, rounds = f.epigraph()
        return Halfspaces(csr_array(A, dtype=np.float64), b, rounds)

    def _lifted(self, told: Halfspaces) -> Halfspaces:
        """Rows <a, x_t> as rows sum_j phi_tj <a, W_j>."""
        from scipy.sparse import coo_array, csr_array

        A, b, rounds = told
        entries, counts = coo_array(A), np.diff(self.phi.indptr)[rounds]
        row, column, value = list[Any](), list[Any](), list[Any]()
        for m in range(int(counts.max(initial=0))):  # the m-th feature of each row's round
            some = counts[entries.row] > m
            at = self.phi.indptr[rounds[entries.row[some]]] + m
            row.append(entries.row[some])
            column.append(self.phi.indices[at].astype(np.int64) * self._size + entries.col[some])
            value.append(self.phi.data[at] * entries.data[some])
        shape = (A.shape[0], self.shape[0])
        if not row:
            return Halfspaces(csr_array(shape), b, rounds)
        places = (np.concatenate(row), np.concatenate(column))
        return Halfspaces(csr_array((np.concatenate(value), places), shape=shape), b, rounds)

    @classmethod
    def examples(cls) -> Sequence[Batch]:
        return ()


class _Linear(PolicyBatch, LinearTotal):
    pass


class _Piecewise(PolicyBatch, PiecewiseLinear):
    pass


class _LinearPieces(PolicyBatch, LinearTotal, PiecewiseLinear):
    pass


def policy_batch(f: Batch, phi: Any, reference: Array) -> PolicyBatch:
    """The functions of a round's mix, with the capabilities that f has."""
    linear, pieces = isinstance(f, LinearTotal), isinstance(f, PiecewiseLinear)
    kind = {(True, True): _LinearPieces, (True, False): _Linear, (False, True): _Piecewise}
    return kind.get((linear, pieces), PolicyBatch)._unchecked(f=f, phi=phi, reference=reference)
