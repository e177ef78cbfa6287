"""Sizes: `pairs` from sparse arrays, decisions with advice for 10,000 pairs of nodes, and two
processes beside one.

Memory: the largest resident set of a fresh process that builds `pairs` (462 commodities, 960
rounds), plays the default learner with everything recorded, and finds the comparator; minus what
libraries and machine code take before any data.

Decisions: a network of 100 nodes, every ordered pair of them (9,900) with three tunnels and demands
that follow the hour, the delay of what is sent as the loss, no link fuller than its limit; an
`Ensemble` with `Resolve` decides round by round.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

import tidewolf as tw
from benchmarks.measuring import Bar, fresh, peak, show
from tidewolf.core.types import Floats

NODES, TUNNELS, ROUNDS = 100, 3, 20
ROOM, TOO_LITTLE = 1.5, 0.8
"""What links may carry, as a share of what equal splits need: limits bind and are feasible, with
headroom too; or no point is feasible, and each decision solves three programs.
"""
MEGABYTES, SECONDS, SHARE = 200.0, 1.0, 0.6
COMMANDS = {
    "compare": "compare routing --rounds 1500",
    "sweep": "sweep routing --horizons 1000,2000 --seeds 0,1 --knob caution=1,10,100 "
    "--learner Ensemble --learner SinhaVaze",
}


def memory() -> None:
    """In a process of its own: the largest resident set so far, in MB, after each step."""
    steps = dict[str, float]()

    K = tw.sets.MultiFlow.from_edges(
        [("s", "a"), ("a", "t"), ("s", "t")], [("s", "t", 1.0), ("s", "a", 1.0)]
    )
    loss = tw.functions.Linear(np.ones((3, *K.shape)))
    limit = tw.functions.MaxUtilization(K.incidence, np.ones((3, 2)), np.ones(3), K.owner, 2.0)
    toy = tw.Stream(loss, limit)
    tw.run(tw.LyapunovDescent(K), toy)
    tw.best_in_hindsight(K, toy)
    steps["libraries"] = peak()
    problem = tw.problems.pairs()
    tw.run(tw.LyapunovDescent(problem.K), problem.stream)
    steps["played"] = peak()
    assert tw.best_in_hindsight(problem.K, problem.stream).feasible
    steps["comparator"] = peak()
    print(json.dumps(steps))


def network(nodes: int, seed: int = 0) -> list[tuple[int, int, float]]:
    """Places in a square, each linked both ways to its three nearest and along a shortest tree, so
    that all are connected.
    """
    places = np.random.default_rng(seed).random((nodes, 2))
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    tails, heads = minimum_spanning_tree(apart).nonzero()
    near = np.argsort(apart, axis=1)[:, 1:4]
    ends = {(int(i), int(j)) for i, j in zip(tails, heads, strict=True)}
    ends |= {(i, int(j)) for i in range(nodes) for j in near[i]}
    return [(a, b, float(apart[a, b])) for a, b in sorted(ends | {(b, a) for a, b in ends})]


def demands(pairs: Floats, nodes: int, rounds: int, seed: int = 0) -> Floats:
    """Gravity with hours: nodes are busy at different times, and pairs have noise of their own."""
    rng = np.random.default_rng(seed + 1)
    weights, later = np.exp(0.8 * rng.standard_normal(nodes)), rng.uniform(0.0, 6.0, nodes)
    busy = np.exp(0.6 * (np.cos(2 * np.pi * (np.arange(rounds)[:, None] - later) / 24) - 1))
    pull, (i, j) = weights * np.sqrt(busy), pairs
    return np.asarray(pull[:, i] * pull[:, j] * np.exp(0.1 * rng.standard_normal((rounds, len(i)))))


def traffic(
    nodes: int, rounds: int, room: float, seed: int = 0, each: int = TUNNELS
) -> tuple[Any, tw.Stream]:
    """Up to `each` tunnels per pair, and the rounds; links may carry `room` times what equal splits
    need in the busiest round.
    """
    ends = [(i, j) for i in range(nodes) for j in range(nodes) if i != j]
    tunnels = tw.networks.Tunnels(network(nodes), ends, each)
    incidence, owner = tunnels.incidence, tunnels.path_pair
    sent = demands(np.array(ends).T, nodes, rounds, seed)
    needed = incidence @ (tunnels.splits.center * sent.max(axis=0)[owner])
    capacities = room * np.maximum(needed, needed[needed > 0].min())
    shares = sent / sent.sum(axis=1, keepdims=True)
    delay = tw.functions.LoadCost(incidence, shares, np.tile(tunnels.lengths, (rounds, 1)), owner)
    limit = tw.functions.MaxUtilization(incidence, sent, capacities, owner, 1.0)
    return tunnels, tw.Stream(delay, limit)


def decisions(
    nodes: int = NODES, rounds: int = ROUNDS, room: float = ROOM, each: int = TUNNELS, *more: Any
) -> list[list[float]]:
    """Seconds of each decision of a session: by the clock, and of one core; `more` are experts
    beside `Resolve`.
    """
    tunnels, stream = traffic(nodes, rounds, room, each=each)
    session = tw.Session(tw.Ensemble(tunnels.splits, experts=[*more, tw.experts.Resolve()]))
    found: list[list[float]] = [[], []]
    for t in range(rounds):
        clock, core = perf_counter(), process_time()
        session.play()
        session.observe(loss=stream.losses[t : t + 1], constraint=stream.constraints[t : t + 1])
        found[0].append(perf_counter() - clock)
        found[1].append(process_time() - core)
    return found


def command_seconds(words: str, jobs: int) -> float:
    """A command by the clock, on so many processes."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tidewolf", *words.split(), "--jobs", str(jobs), "-q"]
        begun = perf_counter()
        subprocess.run([*command, "--out", f"{folder}/out"], check=True)
        return perf_counter() - begun


def bars() -> Iterator[Bar]:
    used = fresh("benchmarks.at_size:memory")
    more = used["comparator"] - used["libraries"]
    note = f"{used['libraries']:.0f} MB of libraries and machine code come first"
    yield Bar("pairs: memory of data, play and comparator", more, MEGABYTES, "MB", note=note)
    decisions(8, 3)  # machine code and libraries
    (clock, core), name = decisions(), "9,900 pairs, 3 tunnels: a decision"
    yield Bar(f"{name}, median, by the clock", statistics.median(clock), SECONDS, "s")
    yield Bar(f"{name}, worst of {ROUNDS}, of one core", max(core), SECONDS, "s")
    _, tight = decisions(rounds=8, room=TOO_LITTLE)
    print(f"  if no point is feasible: {' '.join(f'{s:.2f}' for s in tight)} s of one core")
    for name, words in COMMANDS.items():
        one, two = (command_seconds(words, jobs) for jobs in (1, 2))
        yield Bar(f"{name}, two processes beside one", two / one, SHARE, "x")


def report() -> None:
    print("Sizes")
    show(bars())
