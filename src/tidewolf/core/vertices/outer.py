"""Matrices kept as outer products:  V = sum_j l_j r_j'.

A leading singular pair answers with one; the zero matrix has none; any matrix has one for each
singular value.

    <V, G> = sum_j l_j' G r_j
    |V|^2  = sum_jk <l_j, l_k> <r_j, r_k>
    <V, W> = sum_jk <l_j, p_k> <r_j, q_k>

so that no dense matrix is made but by `dense`, `blend` and `combine`, and there by one BLAS
product. A table keeps all factors end to end. A pair and its negative are one product: the entry of
l_j of largest size is made positive.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

from tidewolf.core.arrays import eps_of, frozen, inner, like, namespace, to_numpy
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices.base import Atoms, Vertex, require_saved_numbers
from tidewolf.core.vertices.factored import FactorAtoms, Factored, can_update, rank_one_update


@final
class Outer(Factored):
    """sum_j l_j r_j'; `left` holds the l_j and has shape (rank, m), `right` the r_j, of shape
    (rank, n).
    """

    tag: ClassVar = "outer vertex"

    def __init__(self, left: Array, right: Array) -> None:
        left, right = _signed(left, right)
        self.left, self.right = frozen(left), frozen(right)
        self.shape = (int(left.shape[1]), int(right.shape[1]))
        self.square = inner(left @ left.T, right @ right.T)

    @staticmethod
    def of(point: Array) -> Outer:
        """A matrix by its singular vectors; singular values that may be rounding are left out."""
        xp = namespace(point)
        left, values, right = xp.linalg.svd(point, full_matrices=False)
        rank = int(xp.count_nonzero(values > max(point.shape) * eps_of(point) * float(values[0])))
        return Outer((left[:, :rank] * values[:rank]).T, right[:rank, :] + 0.0)

    def inner(self, direction: Array) -> float:
        return inner(self.left @ direction, self.right) if self.left.shape[0] else 0.0

    def dense(self, reference: Array) -> Array:
        return frozen(like(self.left.T @ self.right, reference))

    def blend(self, x: Array, step: float) -> Array:
        if can_update(x, self.left):
            left, right = like(self.left[0], x), like(self.right[0], x)
            return rank_one_update(x, 1.0 - step, step, left, right)
        return super().blend(x, step)

    def key(self) -> bytes:
        return to_numpy(self.left).tobytes() + to_numpy(self.right).tobytes()

    def table(self) -> Atoms:
        return OuterAtoms()

    def parts(self) -> dict[str, Any]:
        return {"left": self.left, "right": self.right}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Outer:
        left, right = parts["left"], parts["right"]
        require_saved_numbers(left, 2)
        require_saved_numbers(right, 2)
        if left.shape[0] != right.shape[0]:
            raise ValueError("an outer vertex has as many left factors as right ones")
        return cls(left, right)


class OuterAtoms(FactorAtoms):
    """The left rows of all vertices in one matrix, the right ones in another."""

    kind: ClassVar = Outer

    def _store(self, vertex: Vertex, row: int) -> None:
        assert isinstance(vertex, Outer)
        stop = self._keep(vertex.left, vertex.right)
        left, right = self.factors
        crossed = (left[:stop, :] @ like(vertex.left, left).T) * (
            right[:stop, :] @ like(vertex.right, right).T
        )
        self._set_products(row, self._by_atom(crossed, row + 1))

    def inner(self, direction: Array, count: int) -> Floats:
        left, right = self.factors
        end = self.ends[count]
        return self._by_atom((left[:end, :] @ direction) * right[:end, :], count)

    def combine(self, weights: Floats, reference: Array) -> Array:
        left, right = self.factors
        end = self.ends[len(weights)]
        weighted = left[:end, :] * like(weights[self.owners[:end]], left)[:, None]
        return like(weighted.T @ right[:end, :], reference)


def _signed(left: Array, right: Array) -> tuple[Array, Array]:
    """Each pair or its negative, whichever has the entry of largest size of its left part
    positive.
    """
    xp = namespace(left)
    if left.shape[0] == 0:
        return left, right
    turned = (xp.max(left, axis=1) < -xp.min(left, axis=1))[:, None]
    return (
        (xp.where(turned, -left, left), xp.where(turned, -right, right))
        if bool(xp.any(turned))
        else (left, right)
    )
