"""Max-cut relaxations of SDPLIB (Borchers 1999) by `tw.best_in_hindsight`, beside the published
values.

The programs are maxima. "Reached" is the value of a matrix that was seen to keep every equation;
"proved at most" comes with a proof, one call of the oracle, that no other has more. SDPLIB's values
have seven digits.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np

import tidewolf as tw
from benchmarks import public_sdpa
from benchmarks.public_tables import ABSENT, Table
from tidewolf.problems.data import data_folder

PUBLISHED = {
    "mcp100": 226.1574,
    "mcp124-1": 141.9905,
    "mcp124-2": 269.8802,
    "mcp124-3": 467.7501,
    "mcp124-4": 864.4119,
    "mcp250-1": 317.2643,
    "mcp250-2": 531.9301,
    "mcp250-3": 981.1726,
    "mcp250-4": 1681.960,
    "mcp500-1": 598.1485,
    "mcp500-2": 1070.057,
    "mcp500-3": 1847.970,
    "mcp500-4": 3566.738,
    "maxG11": 629.1648,
    "maxG51": 4003.809,
    "maxG32": 1567.640,
    "theta1": 23.00000,
}
"""Optimal values as SDPLIB 1.2 lists them; theta1, a theta function, is there because its file is
easy to come by."""
ORDERS = {"maxG11": 800, "maxG51": 1000, "maxG32": 2000, "theta1": 50}
LARGEST = 1000
"""Of larger matrices none is tried."""
DEGREE, GENERATED = 5.0, (250, 500)
"""The random graphs beside them."""
HEAD = ("problem", "n", "published", "reached", "proved at most", "CPU seconds")


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
    return name, str(n), published, *solved(public_sdpa.read(path))


def solved(program: public_sdpa.SparseProgram) -> tuple[str, str, str]:
    """What was reached, what no matrix passes, CPU seconds."""
    K, stream = public_sdpa.stream(program)
    begun = process_time()
    best = tw.best_in_hindsight(K, stream)
    seconds = process_time() - begun
    reached = "none found" if best.point is None else f"{-best.upper:.8g}"
    return reached, f"{-best.lower:.8g}", f"{seconds:.1f}"


def generated(n: int) -> tuple[str, ...]:
    """The row of a random graph that needs no file, nodes with DEGREE neighbours on average."""
    rng = np.random.default_rng(n)
    edges = np.triu(rng.random((n, n)) < DEGREE / n, 1).astype(np.float64)
    program = public_sdpa.max_cut(edges + edges.T)
    return f"random graph {n}", str(n), "", *solved(program)


def tables() -> list[Table]:
    """The table of all problems, and of random graphs."""
    rows = [*(row(name) for name in PUBLISHED), *(generated(n) for n in GENERATED)]
    return [Table("sdplib", HEAD, rows)]
