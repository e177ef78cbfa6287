"""Learners on a GPU, in torch: rounds of sets of matrices beside their own products and twelve
passes over a matrix, rounds of large points, every learner, and the certified mode.

A product is a matrix times a vector, counted in the round itself (benchmarks/traffic.py) and timed
alone; a pass is a copy of a matrix. Every round is synchronised. The first rounds of a process,
which load libraries and compile kernels, are played on small sets before anything is timed.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import tidewolf as tw
from benchmarks.bars import Bar, show
from tidewolf import sets
from tidewolf.functions import Affine, Capacity, Linear

SIDE, ENTRIES = 8192, 1_000_000
FIRST, LATER = 10, 20
PASSES, RATIO, MILLISECONDS = 12, 4.0, 2.0
CERTIFIED = 4096


class Timed(NamedTuple):
    """Milliseconds of a start and of each round, and what each round did."""

    start: float
    rounds: list[float]
    products: list[int]
    traffic: Any


def cuda() -> Any:
    """torch, where it has a GPU; None elsewhere."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def report() -> None:
    """The tables, then the bars; one sentence where there is no GPU."""
    torch = cuda()
    if torch is None:
        print("GPU: torch has no CUDA device here; nothing is measured.")
        return
    print(f"GPU: {torch.cuda.get_device_name()}, torch {torch.__version__}, float32")
    show(_measured(torch))


def bars() -> list[Bar]:
    """All bars; none where there is no GPU."""
    torch = cuda()
    return [] if torch is None else list(_measured(torch))


def _measured(torch: Any) -> Iterator[Bar]:
    yield from _learners(torch)
    for K, stream in (*_matrices(torch, 512, FIRST), *_vectors(torch, 4096, FIRST)):
        _played(torch, K, stream)
    yield from _matrix_rounds(torch)
    yield from _vector_rounds(torch)
    yield from _certified(torch)


# --- rounds ---------------------------------------------------------------------------------------


def _matrices(torch: Any, n: int, rounds: int) -> Iterator[tuple[Any, Any]]:
    """Each set of matrices without and with a promise, and a drift of random symmetric matrices
    under a limit of the same kind.
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
        yield sets.BoundedPSD(n, **how), stream
        yield sets.Spectraplex(n, **how), stream
        yield sets.NuclearBall((n, n), **how), stream
        yield sets.Fantope(n, 3, **how), stream


def _vectors(torch: Any, n: int, rounds: int) -> Iterator[tuple[Any, Any]]:
    """Sets of vectors under linear losses and capacities, or one row."""
    generator = torch.Generator("cuda").manual_seed(1)
    C = torch.rand((rounds, n), device="cuda", generator=generator)
    rows = Affine(C.flip(0), torch.full((rounds,), 0.4, device="cuda"))
    yield sets.Simplex(n), tw.Stream(Linear(C), Capacity(0.3 * C.flip(0)))
    wide = Affine(C.flip(0), torch.full((rounds,), 0.2 * n, device="cuda"))
    yield sets.Box(np.zeros(n), np.ones(n)), tw.Stream(Linear(C - 0.5), wide)
    yield sets.L1Ball(n), tw.Stream(Linear(C - 0.5), rows)
    yield sets.L2Ball(n), tw.Stream(Linear(C - 0.5), rows)
    yield sets.KSparse(n, 100), tw.Stream(Linear(C - 0.5), rows)


def _played(torch: Any, K: Any, stream: Any) -> Timed:
    from benchmarks.traffic import Traffic

    learner, at = tw.LyapunovDescent(K), torch.zeros(1, device="cuda")

    def timed(work: Callable[[], Any]) -> tuple[Any, float]:
        torch.cuda.synchronize()
        begun = perf_counter()
        out = work()
        torch.cuda.synchronize()
        return out, 1e3 * (perf_counter() - begun)

    def begun() -> Any:
        moved = tw.LyapunovDescent(K.to(at))
        return moved, moved.start()

    (learner, state), start = timed(begun)
    rounds = tw.play(learner, stream, state)
    times = [timed(lambda: next(rounds))[1] for _ in range(len(stream))]
    counts, entries = [], int(np.prod(K.shape))
    again = tw.play(learner, stream, learner.start())
    for _ in range(len(stream)):
        with Traffic(entries) as traffic:
            next(again)
        counts.append(traffic.products)
    return Timed(start, times, counts, traffic)


def _milliseconds(torch: Any, work: Callable[[], Any], repeats: int = 15) -> float:
    for _ in range(2):
        work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begun = perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(1e3 * (perf_counter() - begun))
    return statistics.median(times)


def _name(K: Any) -> str:
    guarantee = {1.0: ", no promise"}.get(getattr(K, "failure", 0.0), "")
    return type(K).__name__ + guarantee


def _matrix_rounds(torch: Any) -> Iterator[Bar]:
    D = torch.randn((SIDE, SIDE), device="cuda")
    v = torch.randn(SIDE, device="cuda")
    product = 0.5 * (_milliseconds(torch, lambda: D @ v) + _milliseconds(torch, lambda: v @ D))
    passing = _milliseconds(torch, D.clone)
    print(f"n = {SIDE:,}: one product {product:.3f} ms, one pass {passing:.3f} ms")
    head = ("set", "start", "round 1", "2-10", "later", "products", "floor", "ratios", "worst")
    print("  {:26} {:>8} {:>8} {:>8} {:>8} {:>9} {:>7} {:>12} {:>6}".format(*head))
    for K, stream in _matrices(torch, SIDE, FIRST + LATER):
        torch.cuda.empty_cache()
        found = _played(torch, K, stream)
        floors = [product * count + PASSES * passing for count in found.products]
        ratios = [ms / floor for ms, floor in zip(found.rounds, floors, strict=True)]
        early, later = (
            statistics.median(ratios[part]) for part in (slice(FIRST), slice(FIRST, None))
        )
        print(
            f"  {_name(K):26} {found.start:8.1f} {found.rounds[0]:8.1f} "
            f"{statistics.median(found.rounds[1:FIRST]):8.2f} "
            f"{statistics.median(found.rounds[FIRST:]):8.2f} "
            f"{statistics.median(found.products[FIRST:]):9.0f} "
            f"{statistics.median(floors[FIRST:]):7.2f} {early:5.2f} {later:6.2f} {max(ratios):6.2f}"
        )
        _breakdown(torch, K, stream, found)
        name = f"{_name(K)}, n = {SIDE:,}, GPU: over products and {PASSES} passes"
        yield Bar(f"{name}, first {FIRST}", early, RATIO, "x")
        yield Bar(f"{name}, later", later, RATIO, "x")


def _vector_rounds(torch: Any) -> Iterator[Bar]:
    print(f"n = {ENTRIES:,}")
    print("  {:26} {:>8} {:>8} {:>8} {:>8}".format("set", "start", "round 1", "2-10", "later"))
    for K, stream in _vectors(torch, ENTRIES, FIRST + 2 * LATER):
        torch.cuda.empty_cache()
        found = _played(torch, K, stream)
        later = statistics.median(found.rounds[FIRST:])
        print(
            f"  {_name(K):26} {found.start:8.1f} {found.rounds[0]:8.2f} "
            f"{statistics.median(found.rounds[1:FIRST]):8.2f} {later:8.2f}"
        )
        _breakdown(torch, K, stream, found)
        yield Bar(f"{_name(K)}, n = {ENTRIES:,}, GPU: a round", later, MILLISECONDS, "ms")


def _breakdown(torch: Any, K: Any, stream: Any, found: Timed) -> None:
    """What the last rounds were made of: looks and copies, and where the device spent its time."""
    from torch.profiler import ProfilerActivity, profile

    traffic = found.traffic
    learner = tw.LyapunovDescent(K.to(torch.zeros(1, device="cuda")))
    rounds = tw.play(learner, stream)
    for _ in range(len(stream) - 1):
        next(rounds)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        next(rounds)
        torch.cuda.synchronize()
    table = [event for event in seen.key_averages() if event.self_device_time_total > 0]
    table = [event for event in table if not event.key.startswith("aten::")]
    kernels = sorted(table, key=lambda event: -event.self_device_time_total)
    busy = sum(event.self_device_time_total for event in kernels) / 1e3
    top = ", ".join(
        f"{event.key[:30]} {event.count}x {event.self_device_time_total / 1e3:.2f}"
        for event in kernels[:8]
    )
    print(
        f"      reads {traffic.reads} (large {traffic.large_reads}), writes {traffic.writes} "
        f"(large {traffic.large_writes}), launches {traffic.launches}, passes "
        f"{sum(traffic.passes.values())}; device busy {busy:.2f} ms: {top}"
    )


# --- the certified mode ---------------------------------------------------------------------------


def _certified(torch: Any) -> Iterator[Bar]:
    """Answers that are proved, beside `eigh` on the card."""
    from benchmarks.traffic import Traffic

    n = CERTIFIED
    G = torch.randn((n, n), device="cuda")
    D = G + G.T
    eigh = _milliseconds(torch, lambda: torch.linalg.eigh(D), 3)
    least = float(torch.linalg.eigvalsh(D.to(torch.float64))[0])
    for K in (
        sets.BoundedPSD(n, certified=True),
        sets.Spectraplex(n, certified=True),
        sets.NuclearBall((n, n), certified=True),
        sets.Fantope(n, 1, certified=True),
    ):
        answer = K.answer(D)
        warm = answer.warm
        with Traffic(n * n) as traffic:
            K.answer(D, warm)
        ms = _milliseconds(torch, lambda K=K, warm=warm: K.answer(D, warm), 5)
        got, best = answer.vertex.inner(D), least
        if isinstance(K, sets.NuclearBall):
            best = -float(torch.linalg.matrix_norm(D.to(torch.float64), 2))
        assert got <= best + answer.error + 1e-4 * abs(best), (K, got, best, answer.error)
        print(
            f"  certified {type(K).__name__:12} n = {n:,}: {ms:.1f} ms, eigh on the card "
            f"{eigh:.1f} ms; matrices that came to the host: {traffic.large_reads}; error "
            f"{answer.error / abs(best):.1e} of the minimum"
        )
        name = f"{type(K).__name__}, certified, n = {n:,}, GPU"
        yield Bar(f"{name}: over eigh there", ms / eigh, 1.0, "x")
        yield Bar(f"{name}: matrices copied to the host", traffic.large_reads, 0, "")


# --- every learner --------------------------------------------------------------------------------


def _learners(torch: Any) -> Iterator[Bar]:
    """Each learner on each kind of set plays what it plays in NumPy."""
    rounds, failed, worst = 24, 0, 0.0
    kinds = {
        "Simplex": sets.Simplex(6),
        "L2Ball": sets.L2Ball(6),
        "VertexHull": sets.VertexHull(np.random.default_rng(0).standard_normal((9, 6))),
        "BoundedPSD": sets.BoundedPSD(3, dense=0, tolerance=1e-10),
    }
    for name, K in kinds.items():
        for learner in _all_learners(K, rounds):
            said = f"{type(learner).__name__} on {name}"
            try:
                apart = _apart(torch, learner, K, rounds)
            except Exception as error:  # counted, and named
                failed += 1
                print(f"  {said} fails: {type(error).__name__}: {str(error)[:160]}")
                continue
            worst = max(worst, apart)
            if apart > 1e-6:
                print(f"  {said}: decisions {apart:.1e} apart from NumPy's")
    print(f"  learners in float64: decisions at most {worst:.1e} apart from NumPy's")
    yield Bar("learners that fail on the GPU", failed, 0, "")


def _all_learners(K: Any, rounds: int) -> list[Any]:
    return [
        tw.Ensemble(K, horizon=rounds),
        tw.LyapunovDescent(K, horizon=rounds),
        tw.LyapunovDescent(K, horizon=rounds, per_constraint=True),
        tw.LyapunovFrankWolfe(K, horizon=rounds),
        tw.PrimalDual(K, horizon=rounds),
        tw.BanditPrimalDual(K, horizon=rounds),
        tw.DriftPlusPenalty(K, horizon=rounds, block=3),
    ]


def _apart(torch: Any, learner: Any, K: Any, rounds: int) -> float:
    """How far apart the decisions are, at most, in units of the radius."""
    rng = np.random.default_rng(2)
    C, A = rng.random((2, rounds, *K.shape))

    def decisions(own: Any, made: Callable[[Any], Any]) -> list[Any]:
        stream = tw.Stream(Linear(made(C)), Affine(made(A), made(np.full(rounds, 0.2))))
        return [played.x for played in tw.play(own, stream)]

    moved = K.to(torch.zeros(1, dtype=torch.float64, device="cuda"))
    there = type(learner)(**{**learner.fields(), "K": moved})
    ours = decisions(there, lambda x: torch.tensor(x, device="cuda"))
    numpys = decisions(learner, np.asarray)
    pairs = zip(ours, numpys, strict=True)
    return max(float(np.abs(x.cpu().numpy() - y).max()) for x, y in pairs) / K.radius
