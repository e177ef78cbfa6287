"""Max-cut relaxations of SDPLIB (Borchers 1999) by `tw.best_in_hindsight`, beside the published
values, from files in SDPA's sparse format (`.dat-s`).

    (P)  min c'x : F_1 x_1 + .. + F_m x_m - F_0 psd        (D)  max <F_0, Y> : <F_i, Y> = c_i, Y psd

"Reached" is the value of a matrix that satisfies every equation; "proved at most" comes with a
proof, one call of the oracle, that no other has more. SDPLIB's values have seven digits.

A file: lines of comments that begin with " or *; m; the number of blocks; their sizes, a negative
one for a diagonal block; c; then lines `matrix block i j value` of the upper triangle. Commas,
brackets and braces between numbers mean nothing, nor does text behind the first two numbers.

`stream` makes (D) a question for `tw.best_in_hindsight` if every F_i names one entry of Y, or is
the identity: max-cut relaxations (Y_ii = 1) and theta functions (tr Y = 1, Y_ij = 0) are such. It
is a minimum there, so its value is minus (D)'s.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import tidewolf as tw
from benchmarks.pages import ABSENT, Table
from tidewolf.problems.base import data_folder

Floats = np.ndarray[Any, np.dtype[np.float64]]
_NOTHING = str.maketrans(dict.fromkeys("{}(),", " "))
PUBLISHED = {
    "mcp100": 226.1574,
    "mcp124-1": 141.9905, "mcp124-2": 269.8802, "mcp124-3": 467.7501, "mcp124-4": 864.4119,
    "mcp250-1": 317.2643, "mcp250-2": 531.9301, "mcp250-3": 981.1726, "mcp250-4": 1681.960,
    "mcp500-1": 598.1485, "mcp500-2": 1070.057, "mcp500-3": 1847.970, "mcp500-4": 3566.738,
    "maxG11": 629.1648, "maxG51": 4003.809, "maxG32": 1567.640, "theta1": 23.00000,
}  # fmt: skip
"""Optimal values as SDPLIB 1.2 lists them; theta1, a theta function, is there because its file is
easy to come by."""
ORDERS = {"maxG11": 800, "maxG51": 1000, "maxG32": 2000, "theta1": 50}
LARGEST = 1000
"""Of larger matrices none is tried."""
DEGREE, GENERATED = 5.0, (250, 500)
"""The random graphs beside them."""
HEAD = ("problem", "n", "published", "reached", "proved at most", "CPU seconds")


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
        F, told = np.zeros((self.n, self.n)), self.matrix == 0
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


def file_of(name: str) -> Path:
    """Where a problem's file is looked for."""
    return data_folder() / f"{name}.dat-s"


def order_of(name: str) -> int:
    """The size of a problem's matrices."""
    return ORDERS.get(name) or int(name.removeprefix("mcp").split("-")[0])


def row(name: str) -> tuple[str, ...]:
    """A problem's row of the table."""
    n, published, path = order_of(name), f"{PUBLISHED[name]:#.7g}", file_of(name)
    if n > LARGEST:
        return name, str(n), published, f"{ABSENT}: too large", "", ""
    if not path.is_file():
        return name, str(n), published, f"{ABSENT}: file absent", "", ""
    return name, str(n), published, *solved(*stream(read(path)))


def solved(K: tw.sets.ConvexSet, rounds: tw.Stream) -> tuple[str, str, str]:
    """What was reached, what no matrix passes, CPU seconds."""
    begun = process_time()
    best = tw.best_in_hindsight(K, rounds)
    seconds = process_time() - begun
    reached = "none found" if best.point is None else f"{-best.upper:.8g}"
    return reached, f"{-best.lower:.8g}", f"{seconds:.1f}"


def generated(n: int) -> tuple[str, ...]:
    """The row of a random graph that needs no file, nodes with DEGREE neighbours on average: its
    largest cut, F_0 = (diag(W 1) - W) / 4 and Y_ii = 1.
    """
    edges = np.triu(np.random.default_rng(n).random((n, n)) < DEGREE / n, 1).astype(np.float64)
    W, i, ones = edges + edges.T, np.arange(n), np.ones(n)
    limits = tw.functions.Range.of([((i, i), ones, ones)], (n, n))
    losses = tw.functions.Linear((W - np.diag(W.sum(axis=1)))[None] / 4)
    rounds = tw.Stream(losses, limits)
    return f"random graph {n}", str(n), "", *solved(tw.sets.BoundedPSD(n, n), rounds)


def table() -> Table:
    """All problems, and random graphs."""
    return Table(HEAD, [*map(row, PUBLISHED), *map(generated, GENERATED)])
