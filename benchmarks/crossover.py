"""From which size on does not projecting pay? Time per round and quality over the size of a set.

    one call, 4, 16     LyapunovDescent with so many oracle calls per round
    exact projection    SinhaVaze; sets with few linear constraints by OSQP from its last answer,
                        to 1e-4: quicker than the program of the library, which solves to 1e-13
    re-solving          Resolve: the best point of the last round, by its program

Losses are linear and drift; one affine constraint per round is about as often violated as not by
the center. Quality is the share of the improvement that exact projection makes on playing the
center, where that was played, else of the best here: 100 % is as good. Violations are means per
round, in units of the constraint's change over the set. A method is timed on a few rounds and plays
all of them only if that takes at most `SECONDS`; if a round takes over a second it is not asked
about larger sets.

    python -m benchmarks crossover                       all, about 12 minutes; the picture
    python -m benchmarks crossover flow psd              some families, and no picture
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import tidewolf as tw
from benchmarks.measuring import OUT, ROOT
from benchmarks.pages import Table
from tidewolf.core.errors import TidewolfError
from tidewolf.core.types import Floats

PICTURE = ROOT / "docs" / "images" / "crossover.svg"
ROUNDS, TRIED, SECONDS = 200, 4, 30.0
"""Rounds of a stream, rounds that a method is timed on, seconds that all rounds may take."""
ENTRIES = 60_000_000
"""Numbers of a stream, at most; fewer rounds beyond."""


def flow(width: int) -> Any:
    """Layers of so many nodes, a third as many layers; each node leads to three of the next."""
    layers = max(2, width // 3)
    edges: list[tuple[Any, Any]] = [("s", (0, j)) for j in range(width)]
    edges += [
        ((i, j), (i + 1, (j + d) % width))
        for i in range(layers)
        for j in range(width)
        for d in (0, 1, 3)
    ]
    edges += [((layers, j), "t") for j in range(width)]
    return tw.sets.FlowPolytope.from_edges(edges, source="s", target="t")


def trees(nodes: int) -> Any:
    """Spanning trees of a ring with two chords from every node."""
    ends = {tuple(sorted((i, (i + d) % nodes))) for i in range(nodes) for d in (1, 3, 7)}
    return tw.sets.SpanningTrees([edge for edge in sorted(ends) if edge[0] != edge[1]])


FAMILIES: dict[str, tuple[str, Callable[[int], Any], tuple[int, ...]]] = {
    "flow": ("arcs", flow, (8, 30, 100, 300)),
    "psd": ("rows", tw.sets.BoundedPSD, (50, 100, 200, 500, 1000)),
    "birkhoff": ("rows", tw.sets.Birkhoff, (10, 30, 100, 200)),
    "trees": ("edges", trees, (10, 30, 100, 1000)),
    "nuclear": (
        "rows",
        lambda rows: tw.sets.NuclearBall((rows, rows + rows // 4)),
        (50, 100, 300, 800),
    ),
}
"""What is counted, the set of a size, and sizes."""
CALLS = (1, 4, 16)
COLOURS = ("#009E73", "#56B4E9", "#0072B2", "#D55E00", "#CC79A7")


class Played(NamedTuple):
    """Milliseconds per round, and, if all rounds were played, mean loss and mean violation."""

    ms: float
    loss: float = math.nan
    violation: float = math.nan


def drifting(K: Any, seed: int = 0) -> tw.Stream:
    rng, n = np.random.default_rng(seed), math.prod(K.shape)
    rounds = max(TRIED + 2, min(ROUNDS, ENTRIES // n))

    def drawn() -> Floats:
        d = rng.standard_normal(K.shape)
        return d + d.T if len(K.shape) == 2 and K.shape[0] == K.shape[1] else d

    base, noise, across = drawn(), drawn(), drawn()
    costs, rows = np.empty((2, rounds, *K.shape))
    for t in range(rounds):
        noise = 0.9 * noise + math.sqrt(0.19) * drawn()
        costs[t], rows[t] = base + 0.5 * noise, across + 0.5 * noise[::-1]
    reach = _reach(K, across)
    at = (rows * K.center).reshape(rounds, -1).sum(axis=1)
    limits = tw.functions.Affine(rows / reach, at / reach + 0.05 * rng.standard_normal(rounds))
    return tw.Stream(tw.functions.Linear(costs), limits)


def _reach(K: Any, d: Floats) -> float:
    """By how much <d, x> changes over the set."""
    return float(np.vdot(d, K.lmo(-d)) - np.vdot(d, K.lmo(d)))


def methods(K: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    for calls in CALLS:
        name = "one call" if calls == 1 else f"{calls} calls"
        yield name, lambda calls=calls: tw.LyapunovDescent(K, calls_per_round=float(calls))
    yield "exact projection", lambda: by_osqp(K)
    yield "re-solving", lambda: tw.baselines.Resolve(K)


class ByOsqp:
    """What projects, for a set with a description that is not lifted."""

    def __init__(self, K: Any) -> None:
        import osqp
        from scipy.sparse import csc_matrix, eye, vstack

        d = K.description()
        n = len(d.lower)
        rows = [(d.A_eq, d.b_eq, d.b_eq), (d.A_ub, None, d.b_ub), (eye(n), d.lower, d.upper)]
        rows = [row for row in rows if row[0] is not None]
        low = [np.full(A.shape[0], -np.inf) if lower is None else lower for A, lower, _ in rows]
        high = np.concatenate([upper for *_, upper in rows])
        self.K, self._solver = K, osqp.OSQP()
        A = csc_matrix(vstack([A for A, *_ in rows]))
        self._solver.setup(eye(n, format="csc"), np.zeros(n), A, np.concatenate(low), high,
                           eps_abs=1e-4, eps_rel=1e-4, max_iter=20_000, verbose=False)  # fmt: skip

    def __call__(self, y: Floats) -> Floats:
        self._solver.update(q=-y.reshape(-1))
        return np.asarray(self._solver.solve().x).reshape(y.shape)


def by_osqp(K: Any) -> Any:
    """SinhaVaze with that projection, if K has one."""
    from tidewolf.sets.base import Polyhedral, Projectable

    learner = tw.baselines.SinhaVaze(K)
    if isinstance(K, Polyhedral) and not isinstance(K, Projectable):
        d = K.description()
        if d.lift is None and d.shift is None:
            learner.__dict__["exact_projection"] = ByOsqp(K)
    return learner


def played(make: Callable[[], Any], stream: tw.Stream) -> Played:
    """The rest of the rounds only if they take at most `SECONDS`."""
    try:
        learner = make()
        tw.run(learner, stream[:TRIED])  # machine code, factors
        begun = process_time()
        for _ in zip(range(TRIED), tw.play(learner, stream), strict=False):
            pass
        each = (process_time() - begun) / TRIED
        if each * len(stream) > SECONDS:
            return Played(1e3 * each)
        begun = process_time()
        run = tw.run(learner, stream)
        each = (process_time() - begun) / len(stream)
        return Played(1e3 * each, float(run.losses.mean()), float(run.violations.mean()))
    except TidewolfError as error:
        print(f"    failed: {str(error)[:90]}")
        return Played(math.nan)


def measured(family: str, size: int, slow: set[str]) -> dict[str, Any]:
    """All methods on a set of a family, but those that are too slow, which this adds to."""
    _, make, _ = FAMILIES[family]
    K = make(size)
    stream = drifting(K)
    found = {
        name: Played(math.nan) if name in slow else played(method, stream)
        for name, method in methods(K)
    }
    slow |= {name for name, one in found.items() if not one.ms <= 1000.0}
    center = float(stream.losses.values(K.center).mean())
    best = found["exact projection"].loss
    if math.isnan(best):
        best = min((one.loss for one in found.values() if one.loss == one.loss), default=math.nan)
    entries = K.shape[0] if family != "nuclear" else size
    print(f"  {family} {entries:,}: {len(stream)} rounds", flush=True)
    row: dict[str, Any] = {"family": family, "size": entries, "methods": {}}
    for name, one in found.items():
        share = (center - one.loss) / (center - best) if center != best else math.nan
        row["methods"][name] = {"ms": one.ms, "quality": share, "violation": one.violation}
        print(f"    {name:17} {one.ms:9.3f} ms   {share:7.1%}   {one.violation:.4f}", flush=True)
    return row


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """As on the page about time; the factor is exact projection's time over that of one call."""
    head = ("set", *(f"{name}, ms (quality)" for name in rows[0]["methods"]), "factor")
    return Table(head, [_cells(row) for row in rows])


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    ours = row["methods"]["one call"]["ms"]
    exact = row["methods"]["exact projection"]["ms"]
    factor = f"{exact / ours:.2g}" if exact == exact else ""
    each = []
    for one in row["methods"].values():
        quality = "" if one["quality"] != one["quality"] else f" ({one['quality']:.0%})"
        each.append("" if one["ms"] != one["ms"] else f"{one['ms']:.3g}{quality}")
    what = FAMILIES[row["family"]][0]
    return (f"{row['family']}, {row['size']:,} {what}", *each, factor)


def draw(rows: Sequence[dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    with matplotlib.rc_context({"svg.hashsalt": "tidewolf", "svg.fonttype": "path"}):
        figure, axes = plt.subplots(1, len(FAMILIES), figsize=(14, 3.4), layout="constrained")
        for ax, family in zip(axes, FAMILIES, strict=True):
            own = [row for row in rows if row["family"] == family]
            for colour, name in zip(COLOURS, own[0]["methods"], strict=True):
                times = [row["methods"][name]["ms"] for row in own]
                style = "--" if name in ("4 calls", "16 calls") else "-"
                ax.loglog([row["size"] for row in own], times, style, color=colour, marker="o",
                          markersize=3, label=name)  # fmt: skip
            ax.set(title=family, xlabel=FAMILIES[family][0])
            ax.xaxis.set_minor_formatter(NullFormatter())
        axes[0].set_ylabel("milliseconds per round (lower is better)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
        figure.savefig(PICTURE, metadata={"Date": None})
        plt.close(figure)
    print(f"  picture: {PICTURE.relative_to(ROOT)}")


def report(words: Sequence[str] = ()) -> None:
    print("Crossover: time per round; the share of exact projection's improvement; violation")
    chosen = [name for name in FAMILIES if name in words] or [*FAMILIES]
    rows = list[dict[str, Any]]()
    for name in chosen:
        slow = set[str]()
        rows += [measured(name, size, slow) for size in FAMILIES[name][2]]
    if len(chosen) == len(FAMILIES):
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / "crossover.json").write_text(json.dumps(rows, indent=1))
        draw(rows)
        print(table(rows))
