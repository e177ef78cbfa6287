"""Learners on a GPU, in torch: rounds of sets of matrices beside their own products and twelve
passes over a matrix, rounds of large points, every learner, and the certified mode.

A product is a matrix times a vector, counted in the round itself (benchmarks/traffic.py) and timed
alone; a pass is a copy of a matrix. Every round is synchronised. The first rounds of a process,
which load libraries and compile kernels, are played on small sets before anything is timed.
"""

import statistics
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import tidewolf as tw
from benchmarks.measuring import Bar, show
from tidewolf.functions import Affine, Capacity, Linear

SIDE, ENTRIES = 8192, 1_000_000
FIRST, LATER = 10, 20
PASSES, RATIO, MILLISECONDS = 12, 4.0, 2.0
CERTIFIED = 4096


def report() -> None:
    """Print what was measured and the bars; one sentence if there is no GPU."""
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("GPU: torch has no CUDA device here; nothing is measured.")
        return
    print(f"GPU: {torch.cuda.get_device_name()}, torch {torch.__version__}, float32")
    show(_learners(torch))
    for K, stream in (*_matrices(torch, 512, FIRST), *_vectors(torch, 4096, FIRST)):
        _played(torch, K, stream)
    for bars in (_matrix_rounds(torch), _vector_rounds(torch), _certified(torch)):
        show(bars)


class Timed(NamedTuple):
    """Milliseconds of a start and of each round, and products in each round."""

    start: float
    rounds: list[float]
    products: list[int]

    def __str__(self) -> str:
        early, later = (statistics.median(part) for part in (self.rounds[1:FIRST], self.late))
        return (
            f"start {self.start:.1f} ms, round 1 {self.rounds[0]:.2f}, 2-10 {early:.2f}, later "
            f"{later:.2f}, products {statistics.median(self.products[FIRST:]):.0f}"
        )

    @property
    def late(self) -> list[float]:
        return self.rounds[FIRST:]


def _matrices(torch: Any, n: int, rounds: int) -> Iterator[tuple[Any, Any]]:
    """Each set of matrices without and with a stated chance of failure, and a drift of random
    symmetric matrices under a constraint of the same kind.
    """
    generator = torch.Generator("cuda").manual_seed(0)
    here, there = (
        torch.randn((n, n), device="cuda", generator=generator) / n**0.5 for _ in range(2)
    )
    C = torch.empty((rounds, n, n), device="cuda")
    for t in range(rounds):
        torch.add(here, there, alpha=0.05 * t, out=C[t])
        C[t] += C[t].T.clone()
    A = (here - there) + (here - there).T
    limit = Affine(A[None].expand(rounds, n, n), torch.full((rounds,), -0.5, device="cuda"))
    stream = tw.Stream(Linear(C), limit)
    for how in ({"failure": 1.0}, {}):
        yield tw.sets.BoundedPSD(n, **how), stream
        yield tw.sets.Spectraplex(n, **how), stream
        yield tw.sets.NuclearBall((n, n), **how), stream
        yield tw.sets.Fantope(n, 3, **how), stream


def _vectors(torch: Any, n: int, rounds: int) -> Iterator[tuple[Any, Any]]:
    """Sets of vectors under linear losses and capacities, or one row."""
    C = torch.rand((rounds, n), device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    rows = Affine(C.flip(0), torch.full((rounds,), 0.4, device="cuda"))
    yield tw.sets.Simplex(n), tw.Stream(Linear(C), Capacity(0.3 * C.flip(0)))
    wide = Affine(C.flip(0), torch.full((rounds,), 0.2 * n, device="cuda"))
    yield tw.sets.Box(np.zeros(n), np.ones(n)), tw.Stream(Linear(C - 0.5), wide)
    for K in (tw.sets.L1Ball(n), tw.sets.L2Ball(n), tw.sets.KSparse(n, 100)):
        yield K, tw.Stream(Linear(C - 0.5), rows)


def _milliseconds(torch: Any, work: Callable[[], Any]) -> tuple[Any, float]:
    torch.cuda.synchronize()
    begun = perf_counter()
    out = work()
    torch.cuda.synchronize()
    return out, 1e3 * (perf_counter() - begun)


def _median(torch: Any, work: Callable[[], Any], repeats: int = 15) -> float:
    return statistics.median([_milliseconds(torch, work)[1] for _ in range(repeats + 2)][2:])


def _played(torch: Any, K: Any, stream: Any) -> Timed:
    from benchmarks.traffic import Traffic

    def begun() -> Any:
        moved = tw.LyapunovDescent(K.to(torch.zeros(1, device="cuda")))
        return moved, moved.start()

    torch.cuda.empty_cache()
    (learner, state), start = _milliseconds(torch, begun)
    rounds = tw.play(learner, stream, state)
    times = [_milliseconds(torch, lambda: next(rounds))[1] for _ in range(len(stream))]
    counts, again = [], tw.play(learner, stream, learner.start())
    for _ in range(len(stream)):
        with Traffic(int(np.prod(K.shape))) as traffic:
            next(again)
        counts.append(traffic.products)
    return Timed(start, times, counts)


def _name(K: Any) -> str:
    unstated = getattr(K, "failure", 0.0) == 1.0
    return type(K).__name__ + (", no stated failure" if unstated else "")


def _matrix_rounds(torch: Any) -> Iterator[Bar]:
    D, v = torch.randn((SIDE, SIDE), device="cuda"), torch.randn(SIDE, device="cuda")
    product = 0.5 * (_median(torch, lambda: D @ v) + _median(torch, lambda: v @ D))
    passing = _median(torch, D.clone)
    print(f"n = {SIDE:,}: one product {product:.3f} ms, one pass {passing:.3f} ms")
    for K, stream in _matrices(torch, SIDE, FIRST + LATER):
        found = _played(torch, K, stream)
        floors = [product * count + PASSES * passing for count in found.products]
        ratios = [ms / floor for ms, floor in zip(found.rounds, floors, strict=True)]
        print(f"  {_name(K)}: {found}; over its floor at most {max(ratios):.2f}")
        name = f"{_name(K)}, n = {SIDE:,}, GPU: over products and {PASSES} passes"
        yield Bar(f"{name}, first {FIRST}", statistics.median(ratios[:FIRST]), RATIO, "x")
        yield Bar(f"{name}, later", statistics.median(ratios[FIRST:]), RATIO, "x")


def _vector_rounds(torch: Any) -> Iterator[Bar]:
    for K, stream in _vectors(torch, ENTRIES, FIRST + 2 * LATER):
        found = _played(torch, K, stream)
        name = f"{_name(K)}, n = {ENTRIES:,}, GPU: a round"
        yield Bar(name, statistics.median(found.late), MILLISECONDS, "ms", note=str(found))


def _certified(torch: Any) -> Iterator[Bar]:
    """Answers that are proved, beside `eigh` on the card."""
    from benchmarks.traffic import Traffic

    n = CERTIFIED
    G = torch.randn((n, n), device="cuda")
    D = G + G.T
    eigh = _median(torch, lambda: torch.linalg.eigh(D), 3)
    least = float(torch.linalg.eigvalsh(D.to(torch.float64))[0])
    for K in (
        tw.sets.BoundedPSD(n, certified=True),
        tw.sets.Spectraplex(n, certified=True),
        tw.sets.NuclearBall((n, n), certified=True),
        tw.sets.Fantope(n, 1, certified=True),
    ):
        answer = K.answer(D)
        with Traffic(n * n) as traffic:
            K.answer(D, answer.warm)
        ms = _median(torch, lambda K=K, warm=answer.warm: K.answer(D, warm), 5)
        got, best = answer.vertex.inner(D), least
        if isinstance(K, tw.sets.NuclearBall):
            best = -float(torch.linalg.matrix_norm(D.to(torch.float64), 2))
        assert got <= best + answer.error + 1e-4 * abs(best), (K, got, best, answer.error)
        name = f"{type(K).__name__}, certified, n = {n:,}, GPU"
        yield Bar(f"{name}: over eigh there", ms / eigh, 1.0, "x", note=f"{ms:.1f} ms")
        yield Bar(f"{name}: matrices copied to the host", traffic.large_reads, 0, "")


def _learners(torch: Any) -> Iterator[Bar]:
    """Each learner on each kind of set plays what it plays in NumPy."""
    rounds, failed, worst = 24, 0, 0.0
    for K in (
        tw.sets.Simplex(6),
        tw.sets.L2Ball(6),
        tw.sets.VertexHull(np.random.default_rng(0).standard_normal((9, 6))),
        tw.sets.BoundedPSD(3, dense=0, tolerance=1e-10),
    ):
        for learner in (
            tw.Ensemble(K, horizon=rounds),
            tw.LyapunovDescent(K, horizon=rounds),
            tw.LyapunovDescent(K, horizon=rounds, per_constraint=True),
            tw.LyapunovFrankWolfe(K, horizon=rounds),
            tw.PrimalDual(K, horizon=rounds),
            tw.BanditPrimalDual(K, horizon=rounds),
            tw.DriftPlusPenalty(K, horizon=rounds, block=3),
        ):
            try:
                worst = max(worst, _apart(torch, learner, K, rounds))
            except Exception as error:  # counted, and named
                failed += 1
                print(f"  {type(learner).__name__} on {K} fails: {str(error)[:160]}")
    print(f"  learners in float64: decisions at most {worst:.1e} apart from NumPy's")
    yield Bar("learners that fail on the GPU", failed, 0, "")


def _apart(torch: Any, learner: Any, K: Any, rounds: int) -> float:
    """How far apart the decisions are, at most, in units of the radius."""
    C, A = np.random.default_rng(2).random((2, rounds, *K.shape))

    def decisions(own: Any, made: Callable[[Any], Any]) -> list[Any]:
        stream = tw.Stream(Linear(made(C)), Affine(made(A), made(np.full(rounds, 0.2))))
        return [played.x for played in tw.play(own, stream)]

    moved = K.to(torch.zeros(1, dtype=torch.float64, device="cuda"))
    there = type(learner)(**{**learner.fields(), "K": moved})
    ours = decisions(there, lambda x: torch.tensor(x, device="cuda"))
    pairs = zip(ours, decisions(learner, np.asarray), strict=True)
    return max(float(np.abs(x.cpu().numpy() - y).max()) for x, y in pairs) / K.radius
