"""Sizes: `pairs` from sparse arrays, and decisions with advice for 10,000 pairs of nodes.

Memory: the largest resident set of a fresh process that builds `pairs` (462 commodities, 960
rounds), plays the default learner with everything recorded, and finds the comparator; and how much
of that is there before any data, after the same libraries, machine code and a toy run.

Decisions: a network of 100 nodes, every ordered pair of them (9,900) with three tunnels and demands
that follow the hour, the delay of what is sent as the loss, no link fuller than a limit; an
`Ensemble` with `Resolve` decides round by round.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from functools import cache
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

import tidewolf as tw
from benchmarks.bars import Bar, show
from tidewolf.core.types import Floats

NODES, TUNNELS, ROUNDS = 100, 3, 20
ROOM, TOO_LITTLE = 1.5, 0.8
"""What links may carry, as a share of what equal splits need: limits bind and can be kept, with
headroom too; or no point keeps them, so that every program is three.
"""
_MEGABYTES, _SECONDS = 200.0, 1.0
_MEMORY = """
import json, resource, numpy as np, tidewolf as tw
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
import scipy.sparse.linalg, numba, highspy
imports = peak()
links = [("s", "a"), ("a", "t"), ("s", "t")]
K = tw.sets.MultiFlow.from_edges(links, [("s", "t", 1.0), ("s", "a", 1.0)])
loss = tw.functions.Linear(np.ones((3, *K.shape)))
limit = tw.functions.MaxUtilization(K.incidence, np.ones((3, 2)), np.ones(3), K.owner, 2.0)
run = tw.run(tw.LyapunovDescent(K), tw.Stream(loss, limit))
machine_code = peak()
problem = tw.problems.pairs()
run = tw.run(tw.LyapunovDescent(problem.K), problem.stream)
played = peak()
best = tw.best_in_hindsight(problem.K, problem.stream)
assert best.feasible and str(run)
print(json.dumps([imports, machine_code, played, peak()]))
"""


class Memory(NamedTuple):
    """The largest resident set so far, in MB, after each step."""

    imports: float
    machine_code: float
    played: float
    comparator: float


class Decisions(NamedTuple):
    """Seconds to find the tunnels, and of each decision, the first one included: by the clock, and
    of one core, which others on the machine do not change.
    """

    tunnels: float
    clock: list[float]
    core: list[float]


@cache
def memory() -> Memory:
    """In a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY], capture_output=True, text=True, check=True, env=os.environ
    )
    return Memory(*json.loads(done.stdout))


def network(nodes: int, seed: int = 0) -> list[tuple[int, int, float]]:
    """Places in a square, each linked both ways to its three nearest and along a shortest tree, so
    that all are connected; links are as long as they are.
    """
    rng = np.random.default_rng(seed)
    places = rng.random((nodes, 2))
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    link_rows = {frozenset((i, int(j))) for i in range(nodes) for j in np.argsort(apart[i])[:3]}
    nearest, tree = apart[0].copy(), np.zeros(nodes, dtype=int)
    for _ in range(nodes - 1):  # Prim
        new = int(nearest.argmin())
        link_rows.add(frozenset((new, int(tree[new]))))
        closer = (apart[new] < nearest) & np.isfinite(nearest)
        nearest[closer], tree[closer] = apart[new][closer], new
        nearest[new] = np.inf
        apart[:, new] = np.inf
    length = {
        link_row: float(np.linalg.norm(np.subtract(*places[list(link_row)])))
        for link_row in link_rows
    }
    ends = sorted(tuple(sorted(link_row)) for link_row in link_rows)
    both = [*ends, *((head, tail) for tail, head in ends)]
    return [(tail, head, length[frozenset((tail, head))]) for tail, head in both]


def demands(pairs: Floats, nodes: int, rounds: int, seed: int = 0) -> Floats:
    """Gravity with hours: nodes are awake at different times, and pairs have noise of their own."""
    rng = np.random.default_rng(seed + 1)
    weights, later = np.exp(0.8 * rng.standard_normal(nodes)), rng.uniform(0.0, 6.0, nodes)
    awake = np.exp(0.6 * (np.cos(2 * np.pi * (np.arange(rounds)[:, None] - later) / 24) - 1))
    pull, (i, j) = weights * np.sqrt(awake), pairs
    noise = np.exp(0.1 * rng.standard_normal((rounds, len(i))))
    return np.asarray(pull[:, i] * pull[:, j] * noise)


def traffic(nodes: int, rounds: int, room: float) -> tuple[Any, tw.Stream, float]:
    """The tunnels, the rounds, and how long the tunnels took to find; links may carry `room` times
    what equal splits need in the busiest round.
    """
    links, ends = network(nodes), [(i, j) for i in range(nodes) for j in range(nodes) if i != j]
    start = perf_counter()
    tunnels = tw.networks.Tunnels(links, ends, TUNNELS)
    K, incidence, owner = tunnels.splits, tunnels.incidence, tunnels.path_pair
    took = perf_counter() - start
    sent = demands(np.array(ends).T, nodes, rounds)
    needed = incidence @ (K.center * sent.max(axis=0)[owner])
    capacities = room * np.maximum(needed, needed[needed > 0].min())
    shares = sent / sent.sum(axis=1, keepdims=True)
    delay = tw.functions.LoadCost(incidence, shares, np.tile(tunnels.lengths, (rounds, 1)), owner)
    limit = tw.functions.MaxUtilization(incidence, sent, capacities, owner, 1.0)
    return tunnels, tw.Stream(delay, limit), took


@cache
def decisions(nodes: int = NODES, rounds: int = ROUNDS, room: float = ROOM) -> Decisions:
    """One after the other, live; machine code and libraries are there from a small network."""
    if nodes == NODES:
        decisions(8, 3)
    tunnels, stream, took = traffic(nodes, rounds, room)
    session = tw.Session(tw.Ensemble(tunnels.splits, experts=[tw.experts.Resolve()]))
    clock, core = [], []
    for t in range(rounds):
        loss, limit = stream.losses[t : t + 1], stream.constraints[t : t + 1]
        begun = perf_counter(), process_time()
        session.play()
        session.observe(loss=loss, constraint=limit)
        clock.append(perf_counter() - begun[0])
        core.append(process_time() - begun[1])
    return Decisions(took, clock, core)


def bars() -> list[Bar]:
    """Both, measured; the first decision starts from nothing, and is one of the worst."""
    used, took = memory(), decisions()
    before = f"{used.comparator:.0f} with {used.machine_code:.0f} of libraries and machine code"
    return [
        Bar(
            "pairs: memory of data, play and comparator",
            used.comparator - used.machine_code,
            _MEGABYTES,
            "MB",
            note=before,
        ),
        Bar(
            "9,900 pairs, 3 tunnels: a decision, median, by the clock",
            statistics.median(took.clock),
            _SECONDS,
            "s",
        ),
        Bar(
            f"9,900 pairs, 3 tunnels: worst of {ROUNDS}, of one core",
            max(took.core),
            _SECONDS,
            "s",
            note=f"by the clock {max(took.clock):.2f}",
        ),
    ]


def report() -> None:
    """The bars, and what they are made of."""
    print("Sizes: pairs from sparse arrays; an Ensemble with Resolve on 29,700 splits")
    found = bars()
    used, took, tight = memory(), decisions(), decisions(rounds=8, room=TOO_LITTLE)
    print(
        f"  pairs, largest resident set in MB: {used.imports:.0f} after imports, "
        f"{used.machine_code:.0f} with machine code, {used.played:.0f} played, "
        f"{used.comparator:.0f} with the comparator"
    )
    print(f"  {NODES} nodes: tunnels found in {took.tunnels:.1f} s")
    for what, times in (
        ("by the clock", took.clock),
        ("of one core", took.core),
        ("where no point keeps the limits, by the clock", tight.clock),
        ("where no point keeps the limits, of one core", tight.core),
    ):
        print(f"  decisions, {what}: {' '.join(f'{seconds:.2f}' for seconds in times)} s")
    show(found)
