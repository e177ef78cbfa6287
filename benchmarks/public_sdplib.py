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
    """A program of one block: c, and rows (number of its matrix, i, j, value) of entries."""

    n: int
    c: Floats
    entries: Floats


def parse(text: str) -> SparseProgram:
    """The program in a text; a ValueError if it is none, or has more than one block."""
    lines = [line.translate(_NOTHING) for line in text.splitlines() if line.strip()[:1] not in '"*']
    m, blocks, n = (int(re.match(r"\s*\+?(\d+)|", line)[1] or 0) for line in lines[:3])
    numbers = np.array(" ".join(lines[3:]).split(), dtype=np.float64)
    entries = numbers[m:].reshape(-1, 5)[:, [0, 2, 3, 4]]
    places = entries[:, 1:3]
    if blocks != 1 or n < 1 or len(numbers) < m or not ((places >= 1) & (places <= n)).all():
        raise ValueError("expected a program of one block, not diagonal, and entries within it")
    return SparseProgram(n, numbers[:m], entries[entries[:, 3] != 0.0] - [0, 1, 1, 0])


def stream(program: SparseProgram) -> tuple[tw.sets.ConvexSet, tw.Stream]:
    """(D) as a set and one round: minimise <-F_0, Y> under equations on entries."""
    n, trace, fixed = program.n, None, dict[tuple[int, int], float]()
    (matrix, i, j), value = program.entries[:, :3].T.astype(np.int64), program.entries[:, 3]
    F = np.zeros((n, n))
    F[i[matrix == 0], j[matrix == 0]] = value[matrix == 0]
    F = np.maximum(F, F.T) + np.minimum(F, F.T) - np.diag(np.diag(F))
    for number, c in enumerate(program.c, 1):
        own = np.flatnonzero(matrix == number)
        row, column, first = int(i[own[0]]), int(j[own[0]]), float(value[own[0]])
        if len(own) == 1:  # an entry off the diagonal stands for two
            fixed[row, column] = c / (first if row == column else 2.0 * first)
        elif len(own) == n and (i[own] == j[own]).all() and (value[own] == first).all():
            trace = c / first
        else:
            raise ValueError(f"F_{number} is neither an equation on one entry nor on the trace")
    places, values = tuple(np.array([*fixed]).T), np.array([*fixed.values()])
    limits = tw.functions.Range.of([(places, values, values)], (n, n))
    rounds = tw.Stream(tw.functions.Linear(-F[None]), limits)
    if trace is not None:
        return tw.sets.Spectraplex(n, trace), rounds
    return tw.sets.BoundedPSD(n, sum(fixed[k, k] for k in range(n))), rounds


def file_of(name: str) -> Path:
    """Where a problem's file is looked for."""
    return data_folder() / f"{name}.dat-s"


def order_of(name: str) -> int:
    """The size of a problem's matrices."""
    return ORDERS.get(name) or int(name.removeprefix("mcp").split("-")[0])


def row(name: str) -> tuple[str, ...]:
    """A problem's row of the table."""
    n, published, path = order_of(name), f"{PUBLISHED[name]:#.7g}", file_of(name)
    if n > LARGEST or not path.is_file():
        why = "too large" if n > LARGEST else "file absent"
        return name, str(n), published, f"{ABSENT}: {why}", "", ""
    return name, str(n), published, *solved(*stream(parse(path.read_text(encoding="latin-1"))))


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
