"""Semidefinite programs in SDPA's sparse format, as SDPLIB keeps them (`.dat-s`).

    (P)  min c'x : F_1 x_1 + .. + F_m x_m - F_0 psd        (D)  max <F_0, Y> : <F_i, Y> = c_i, Y psd

A file: lines of comments that begin with " or *; m; the number of blocks; their sizes, a negative
one for a diagonal block; c; then lines `matrix block i j value`, of which the upper triangle alone
is told. Commas, brackets and braces between numbers mean nothing, nor does text behind the first
two numbers.

`stream` makes (D) a question for `tw.best_in_hindsight` where every F_i names one entry of Y, or is
the identity: max-cut relaxations (Y_ii = 1) and theta functions (tr Y = 1, Y_ij = 0) are such. It
is a minimum there, so its value is minus (D)'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tidewolf as tw

Floats = np.ndarray[Any, np.dtype[np.float64]]
_NOTHING = str.maketrans(dict.fromkeys("{}(),", " "))


class SparseProgram(NamedTuple):
    """A program of one block, all of it as the file says."""

    n: int
    c: Floats
    matrix: np.ndarray[Any, np.dtype[np.int64]]
    """of each entry told: the number of its matrix, 0 for F_0"""
    row: np.ndarray[Any, np.dtype[np.int64]]
    column: np.ndarray[Any, np.dtype[np.int64]]
    value: Floats

    def objective(self) -> Floats:
        """F_0."""
        F = np.zeros((self.n, self.n))
        told = self.matrix == 0
        F[self.row[told], self.column[told]] = self.value[told]
        F[self.column[told], self.row[told]] = self.value[told]
        return F


def read(path: Path) -> SparseProgram:
    """The program in a file."""
    return parse(path.read_text(encoding="latin-1"))


def parse(text: str) -> SparseProgram:
    """The program in a text."""
    lines = iter([line for line in text.splitlines() if line.strip() and line[0] not in '"*'])
    m, blocks = _first(lines), _first(lines)
    sizes = [int(float(word)) for word in _words(next(lines))]
    if blocks != 1 or len(sizes) != 1 or sizes[0] <= 0:
        raise ValueError(
            f"This file has blocks of sizes {sizes}; one block, not diagonal, is read."
        )
    c: list[float] = []
    while len(c) < m:  # the vector may go on over several lines
        c.extend(map(float, _words(next(lines))))
    if len(c) != m:
        raise ValueError(f"This file has {len(c)} numbers for its {m} equations.")
    table = np.array([_words(line)[:5] for line in lines], dtype=np.float64).reshape(-1, 5)
    table = table[table[:, 4] != 0.0]
    matrix, _, row, column = table[:, :4].astype(np.int64).T
    n = sizes[0]
    if len(table) and not (min(row.min(), column.min()) >= 1 and max(row.max(), column.max()) <= n):
        raise ValueError(f"This file names entries outside its block of {n} rows.")
    return SparseProgram(n, np.array(c), matrix, row - 1, column - 1, table[:, 4])


def written(program: SparseProgram) -> str:
    """The program as a file has it."""
    lines = [
        str(len(program.c)),
        "1",
        str(program.n),
        "{" + ", ".join(map(repr, _floats(program.c))),
    ]
    lines[-1] += "}"
    each = (program.matrix, program.row + 1, program.column + 1, program.value)
    lines += [f"{k} 1 {i} {j} {float(v)!r}" for k, i, j, v in zip(*each, strict=True)]
    return "\n".join(lines) + "\n"


def max_cut(weights: Floats) -> SparseProgram:
    """The relaxation of a graph's largest cut: F_0 = (diag(W 1) - W)/4, Y_ii = 1."""
    n = len(weights)
    F = np.triu(np.diag(weights.sum(axis=1)) - weights) / 4
    row, column = np.nonzero(F)
    matrix = np.concatenate([np.zeros(len(row), dtype=np.int64), np.arange(1, n + 1)])
    each, ones = np.arange(n), np.ones(n)
    return SparseProgram(
        n,
        ones,
        matrix,
        np.concatenate([row, each]),
        np.concatenate([column, each]),
        np.concatenate([F[row, column], ones]),
    )


def stream(program: SparseProgram) -> tuple[tw.sets.ConvexSet, tw.Stream]:
    """(D) as a set and one round: minimise <-F_0, Y> under equations on entries."""
    n, trace = program.n, None
    entries: dict[tuple[int, int], float] = {}
    order = np.argsort(program.matrix, kind="stable")
    numbers, starts = np.unique(program.matrix[order], return_index=True)
    for number, told in zip(numbers, np.split(order, starts[1:]), strict=True):
        if number == 0:
            continue
        i, j, value = program.row[told], program.column[told], program.value[told]
        c = float(program.c[number - 1])
        if len(told) == 1:
            twice = 1.0 if i[0] == j[0] else 2.0  # an entry off the diagonal stands for two
            entries[int(i[0]), int(j[0])] = c / (twice * float(value[0]))
        elif len(told) == n and (i == j).all() and (value == value[0]).all():
            trace = c / float(value[0])
        else:
            raise ValueError(
                f"F_{number} has {len(told)} entries; what is read here are equations on single "
                "entries, and on the trace."
            )
    if not entries:
        raise ValueError("This program has no equation on a single entry.")
    i, j = np.array(list(entries)).T
    fixed = np.array(list(entries.values()))
    limits = tw.functions.Range.of([((i, j), fixed, fixed)], (n, n))
    losses = tw.functions.Linear(-program.objective()[None])
    if trace is not None:
        return tw.sets.Spectraplex(n, trace), tw.Stream(losses, limits)
    diagonal = {a: v for (a, b), v in entries.items() if a == b}
    if len(diagonal) < n:
        raise ValueError("This program bounds neither the trace nor all of the diagonal.")
    return tw.sets.BoundedPSD(n, float(sum(diagonal.values()))), tw.Stream(losses, limits)


def _first(lines: Iterator[str]) -> int:
    found = re.match(r"\s*\+?(\d+)", next(lines).translate(_NOTHING))
    if found is None:
        raise ValueError("This file does not begin with the number of its equations and blocks.")
    return int(found[1])


def _words(line: str) -> list[str]:
    return line.translate(_NOTHING).split()


def _floats(values: Floats) -> list[float]:
    return [float(value) for value in values]
