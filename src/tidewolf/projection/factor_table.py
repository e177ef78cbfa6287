"""Vertices of the factors of a product as the rows of one append-only table.

Row i belongs to factor owners[i] and has its entries, counted in the product, at starts[i] ..
starts[i + 1] - 1 of `indices` and `values`. As tables of vertices (core/vertices) it is shared
between states: appending to a table that has grown past the rows in use forks it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats, Int32s, Int64s
from tidewolf.core.vertices import Sparse
from tidewolf.sets.base import Factors

APPENDING = threading.Lock()
"""Held while a table grows: states that share it may be continued in several threads."""


class Rows(NamedTuple):
    """A table in the three arrays that kernels read, with room at their ends."""

    starts: Int64s
    indices: Int32s
    values: Floats


class FactorTable:
    """An append-only table of vertices of factors: the first `count` rows, each with its factor."""

    def __init__(self, rows: Rows, owners: Int64s, count: int) -> None:
        self.rows, self.owners, self.count = rows, owners, count

    def __len__(self) -> int:
        return self.count

    @classmethod
    def of(cls, vertex: Sparse, factors: Factors) -> FactorTable:
        """One row for each factor."""
        q, order = len(factors.starts), np.argsort(vertex.indices, kind="stable")
        indices, values = vertex.indices[order], vertex.values[order]
        starts = np.append(np.searchsorted(indices, factors.starts), len(indices))
        return cls(Rows(starts.astype(np.int64), indices, values), np.arange(q), q)

    @classmethod
    def of_rows(cls, vertices: Sequence[Sparse], owners: Int64s) -> FactorTable:
        """Vertices of these factors, a row each."""
        starts = np.cumsum([0, *(len(vertex.indices) for vertex in vertices)]).astype(np.int64)
        indices = np.concatenate([vertex.indices for vertex in vertices])
        values = np.concatenate([vertex.values for vertex in vertices])
        return cls(Rows(starts, indices, values), owners.copy(), len(vertices))

    def only(self, chosen: Int64s) -> FactorTable:
        """A new table of just these rows, in this order."""
        begins = self.rows.starts[chosen]
        sizes = self.rows.starts[chosen + 1] - begins
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        entries = np.repeat(begins - starts[:-1], sizes) + np.arange(starts[-1])
        rows = Rows(starts, self.rows.indices[entries], self.rows.values[entries])
        return FactorTable(rows, self.owners[chosen], len(chosen))

    def with_room(self, count: int, more: int, entries: int) -> FactorTable:
        """A table that ends after `count` rows, with room for more: this one if no row was
        appended meanwhile, else a fork.
        """
        table = self if self.count == count else self.only(np.arange(count))
        rows, stop = table.rows, int(table.rows.starts[count]) + entries
        if count + more > len(table.owners):
            table.owners = _grown(table.owners, count + more)
        if count + more >= len(rows.starts):
            rows = rows._replace(starts=_grown(rows.starts, count + more + 1))
        if stop > len(rows.indices):
            rows = Rows(rows.starts, _grown(rows.indices, stop), _grown(rows.values, stop))
        table.rows = rows
        return table

    def key(self, row: int) -> tuple[int, bytes, bytes]:
        """Equal for equal rows."""
        start, stop = self.rows.starts[row], self.rows.starts[row + 1]
        entries = self.rows.indices[start:stop].tobytes(), self.rows.values[start:stop].tobytes()
        return int(self.owners[row]), *entries

    def joined(self, other: FactorTable, used: Int64s) -> tuple[FactorTable, Int64s]:
        """This table with those of another's rows that it lacks, and where they are."""
        known = {self.key(row): row for row in reversed(range(self.count))}
        lacking = np.array([row for row in used if other.key(row) not in known], dtype=np.int64)
        if len(lacking):
            new = other.only(lacking)
            with APPENDING:
                count, entries = self.count, int(new.rows.starts[-1])
                table = self.with_room(count, len(new), entries)
                rows, start = table.rows, int(table.rows.starts[count])
                rows.indices[start : start + entries] = new.rows.indices
                rows.values[start : start + entries] = new.rows.values
                rows.starts[count + 1 : count + 1 + len(new)] = start + new.rows.starts[1:]
                table.owners[count : count + len(new)] = new.owners
                table.count = count + len(new)
            known |= {other.key(row): count + n for n, row in enumerate(lacking)}
        return self, np.array([known[other.key(row)] for row in used], dtype=np.int64)


def _grown(array: Any, least: int) -> Any:
    grown = np.zeros(max(2 * len(array), least), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
