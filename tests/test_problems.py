"""The built-in problems: what their streams promise, and the exact values of the recorded ones."""

import csv
import gzip
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linprog

from refused import refused
from tidewolf import problems
from tidewolf.core.batch import Stream, Unlimited
from tidewolf.core.errors import InvalidInput, WrongShape
from tidewolf.functions.linear import Linear
from tidewolf.hindsight.best import best_in_hindsight
from tidewolf.networks import Tunnels
from tidewolf.problems import traffic
from tidewolf.problems.adversarial import KINDS
from tidewolf.problems.base import RECORDS, Problem, data_folder, record
from tidewolf.problems.records import COUNTED
from tidewolf.sets import Box, L2Ball, Simplex, Translated
from tidewolf.sets.graph_tools import count_paths

HERE = f"the recorded streams are not in {data_folder()}; set TIDEWOLF_DATA to their folder"
needs_records = pytest.mark.skipif(not data_folder().is_dir(), reason=HERE)


def arcs(problem):
    return [tuple(label.split(" > ")) for label in problem.labels]


def flow_lp(problem, source, target, most=1.0):
    """The best fixed flow with x_e <= most_e, by scipy, from the labels alone."""
    links = arcs(problem)
    nodes = sorted({node for link in links for node in link})
    balance = [[(node == tail) - (node == head) for tail, head in links] for node in nodes]
    supply = [(node == source) - (node == target) for node in nodes]
    bounds = np.stack([np.zeros(len(links)), np.broadcast_to(most, len(links))], axis=1)
    return linprog(problem.stream.losses.C.mean(axis=0), A_eq=balance, b_eq=supply, bounds=bounds)


def tightest(problem):
    return np.clip(problem.stream.constraints.c.min(axis=0), 0.0, 1.0)


def breached(problem, x):
    """The share of rounds in which x is over a limit."""
    return float(np.mean(problem.stream.constraints.values(x) > 1e-9))


# --- one flow -------------------------------------------------------------------------------------

ENDS = ("Palo Alto", "College Park")
FLOWS = [  # name, ends (None: as the title says), rounds, arcs, paths, free and best cost or ratio
    ("routing", ENDS, 2000, 19, 10, (1.02, 1.10), 0.6),
    ("abilene", ("LOSAng", "WASHng"), 336, 14, 7, (4.43035, 4.74032), 0.999),
    ("freeway", ("187", "169"), 2016, 456, None, (10.7910, 11.0450), 0.99),
    ("geant", None, 2000, 36, 73, (1.05, 1.25), 0.9),
    ("uunet", None, 2000, 42, 414, (1.05, 1.25), 0.9),
]


def ends_of(problem):
    words = problem.title.split()
    return words[words.index("from") + 2], words[words.index("to") + 2]


@needs_records
@pytest.mark.parametrize(("name", "ends", "rounds", "count", "paths", "costs", "most"), FLOWS)
def test_some_flow_meets_every_round_and_limits_bind(name, ends, rounds, count, paths, costs, most):
    problem = problems.named(name)(seed=1)
    ends = ends or ends_of(problem)
    assert (problem.name, len(problem), problem.shape) == (name, rounds, (count,))
    if paths is not None:
        assert count_paths(arcs(problem), source=ends[0], target=ends[1]) == paths
    free, best = flow_lp(problem, *ends), flow_lp(problem, *ends, tightest(problem))
    assert best.status == 0
    assert breached(problem, best.x) == 0.0
    assert breached(problem, free.x) > most
    if name in ("abilene", "freeway"):
        assert (free.fun, best.fun) == pytest.approx(costs, abs=6e-5)
    else:
        assert costs[0] < best.fun / free.fun < costs[1]


def test_routing_guarantees_a_flow_with_room_around_it_however_long():
    problem = problems.routing(rounds=20_000, seed=5)
    km = [traffic.kilometres(tail, head) for tail, head in arcs(problem)]
    guaranteed = traffic.spread(arcs(problem), km, *ENDS, traffic.SCALE["routing"])
    assert problem.K.infeasibility(guaranteed) < 1e-12
    assert problem.stream.constraints.values(guaranteed).max() == pytest.approx(-traffic.MARGIN)


def test_an_outage_leaves_no_flow_for_its_rounds():
    problem, whole = problems.routing(feasible=False), problems.routing()
    assert flow_lp(problem, *ENDS, tightest(problem)).status == 2
    c = problem.stream.constraints.c
    lost = c[:, [tail == ENDS[0] for tail, _ in arcs(problem)]].sum(axis=1) < 1
    assert lost.sum() == 3 * 16
    np.testing.assert_array_equal(c[~lost], whole.stream.constraints.c[~lost])
    assert c.min() >= 0


@needs_records
def test_networks_with_parallel_links_loops_and_several_parts_make_problems():
    with gzip.open(record(RECORDS["zoo"]), "rt", newline="") as file:
        names = sorted({row["net"] for row in csv.DictReader(file)})
    made = 0
    for name in ["Dfn", "Arnes", *names[::48]]:
        try:
            problem = problems.zoo(60, seed=4, network=name)
        except InvalidInput:  # a tree
            continue
        made += 1
        c = problem.stream.constraints.c
        assert problem.K.infeasibility(problem.K.center) < 1e-9
        assert c.min() >= traffic.MARGIN
        assert (c.max(axis=0) - c.min(axis=0)).max() > 0.1
        room = tightest(problem) - 0.5 * traffic.MARGIN
        assert flow_lp(problem, *ends_of(problem), room).status == 0
    assert made > 4


# --- flows between every two ----------------------------------------------------------------------


@needs_records
@pytest.mark.parametrize("seed", [0, 3])
def test_some_flows_keep_every_limit_and_the_cheapest_none(seed, monkeypatch):
    guaranteed, spread_all = [], traffic.spread_all
    kept = lambda *given: guaranteed.append(spread_all(*given)) or guaranteed[0]  # noqa: E731
    monkeypatch.setattr(traffic, "spread_all", kept)
    problem = problems.pairs(rounds=96, seed=seed)
    K, losses, limits = problem.K, problem.stream.losses, problem.stream.constraints
    ends = set(zip(K.sources.tolist(), K.targets.tolist(), strict=True))
    assert len(K.demands) == len(ends) == 462
    assert len({node for pair in ends for node in pair}) == 22
    assert (problem.period, problem.shape, len(set(problem.labels))) == (96, (3844,), 3844)
    assert problem.labels[1] == "0 > 2: 0 > 2"
    assert K.infeasibility(guaranteed[0]) < 1e-12
    breach = limits.values(guaranteed[0])
    assert breach.max() == pytest.approx(-traffic.MARGIN)
    assert np.mean(breach > -traffic.MARGIN - 1e-9) < 0.7, "demands are turned away now and then"
    assert breached(problem, K.lmo(losses.total()[0])) == 1.0
    busy = problem.stream[56:64]
    best, cheapest = best_in_hindsight(K, busy), K.lmo(busy.losses.total()[0])
    assert best.upper > 1.05 * float(busy.losses.values(cheapest).sum())
    assert limits.limit.max() == pytest.approx(traffic.FILL)
    assert limits.limit.min() < 0.7 * traffic.FILL


# --- other problems -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_a_plan_fits_every_day_and_the_cheapest_does_not(seed):
    problem = problems.scheduling(seed=seed)
    cost, even = problem.stream.losses.C.mean(axis=0), np.full(24, 1 / 24)
    best, free = best_in_hindsight(problem.K, problem.stream), problem.K.lmo(cost)
    assert best.upper - best.lower <= 1e-8 * best.upper
    assert 1.1 * float(cost @ free) < best.upper / len(problem) < 0.95 * float(cost @ even)
    assert problem.stream.constraints.values(even).max() < -0.05
    assert breached(problem, free) > 0.9
    b = problem.stream.constraints.b
    assert (b.max(axis=0) > 1.5 * b.min(axis=0)).all()


@needs_records
def test_carbon_anchors():
    problem = problems.carbon()
    cost, limits = problem.stream.losses.C.mean(axis=0), problem.stream.constraints
    plain = {"A_eq": np.ones((1, 13)), "b_eq": [1.0], "bounds": (0, 0.25)}
    free, best = linprog(cost, **plain), linprog(cost, A_ub=limits.A, b_ub=limits.b, **plain)
    assert (len(problem), problem.shape) == (17544, (13,))
    assert problem.K.infeasibility(best.x) <= 1e-9
    assert (round(free.fun, 5), round(best.fun, 5)) == (0.52241, 0.59222)
    assert round(breached(problem, free.x), 3) == 0.998


@needs_records
def test_meta_anchors():
    problem, ends = problems.meta(), list(permutations(range(4), 2))
    losses, counted = problem.stream.losses, problem.stream.losses[COUNTED]
    assert (len(problem), problem.shape, problem.period) == (10_000, (36,), None)
    assert round(float(counted.values(problem.K.center).mean()), 3) == 1.400
    assert isinstance(problem.stream.constraints, Unlimited)
    # the best split of a round has a loss of 1
    for t in range(0, 10_000, 2000):
        loads = losses.incidence * losses.demands[t, losses.pairs] / losses.capacities[:, None]
        rows = np.hstack([loads, -np.ones((12, 1))])
        sums = np.hstack([np.kron(np.eye(12), np.ones(3)), np.zeros((12, 1))])
        best = linprog(np.eye(37)[36], rows, np.zeros(12), sums, np.ones(12))
        assert best.fun == pytest.approx(1.0, abs=1e-5)
        assert losses[t : t + 1].values(best.x[:36])[0] == pytest.approx(1.0, abs=1e-5)
    tunnels = Tunnels(ends, ends)  # the three shortest paths of every pair
    assert problem.labels == tunnels.names
    assert tunnels.splits.sizes == problem.K.sizes
    np.testing.assert_array_equal(tunnels.incidence.toarray(), losses.incidence)


# --- records, and what all have in common ---------------------------------------------------------


@needs_records
@pytest.mark.parametrize("name", ["abilene", "freeway", "carbon", "meta"])
def test_records_are_cut_at_the_front_and_ignore_the_seed(name):
    build = problems.named(name)
    assert build(rounds=24, seed=7).stream == build().stream[:24]
    with refused(InvalidInput, "rounds"):
        build(rounds=1_000_000)


NO_RECORDS = [(name, content) for name in ("carbon", "geant") for content in (None, b"no")]


@pytest.mark.parametrize(("name", "content"), [*NO_RECORDS, ("meta", b"")])
def test_a_missing_or_broken_record_is_named(tmp_path, monkeypatch, name, content):
    monkeypatch.setenv("TIDEWOLF_DATA", str(tmp_path))
    if content is not None:
        (tmp_path / RECORDS[name]).write_bytes(content)
    with pytest.raises(InvalidInput, match="set TIDEWOLF_DATA to") as caught:
        problems.named(name)()
    assert RECORDS[name] in str(caught.value)


def test_networks_without_a_choice_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEWOLF_DATA", str(tmp_path))
    with gzip.open(tmp_path / RECORDS["zoo"], "wt") as file:
        file.write("net,u,v\nLoop,1,1\nPair,1,0\nPair,0,1\n")
    assert traffic.cables_of("Pair") == [(0, 1)]
    for network, setting in (("Pair", None), ("Loop", None), ("Dfn", "network")):
        with refused(InvalidInput, setting):
            problems.zoo(network=network)


def test_every_problem_is_exported_and_has_a_sentence():
    for name, build in problems.every().items():
        assert name in problems.__all__
        assert problems.named(name) is build is getattr(problems, name)
        sentence = (build.__doc__ or "").partition("\n")[0]
        assert sentence.endswith(".")
        assert len(sentence) <= 100
    with pytest.raises(InvalidInput, match=r"'rooting'; .*routing, sdp, .*Did you mean routing\?"):
        problems.named("rooting")


MADE = ("routing", "sdp", "completion", "portfolio", "scheduling", "zoo", "pairs")


@needs_records
@pytest.mark.parametrize(
    ("name", "given"),
    [*((name, {}) for name in MADE), *(("adversarial", {"kind": kind}) for kind in KINDS)],
)
def test_the_first_rounds_do_not_depend_on_how_many_follow_and_seeds_differ(name, given):
    build = problems.named(name)
    short, long = (build(rounds=n, seed=3, **given) for n in (31, 110))
    assert short.stream == long.stream[:31]
    other = build(31, seed=4, **given)
    assert build(31, seed=3, **given) == short != other
    assert other.K == short.K
    with refused(InvalidInput, "rounds"):
        build(rounds=0)


def test_a_problem_fits_together():
    stream = Stream(Linear(np.ones((3, 2))), Linear(np.ones((3, 2))))
    with refused(WrongShape, "stream"):
        Problem("small", Simplex(3), stream, "A small problem.")
    with refused(WrongShape, "labels"):
        Problem("small", Simplex(2), stream, "A small problem.", ("a", "b", "c"))
    assert len(Problem("small", Simplex(2), stream, "A small problem.", ("a", "b"))) == 3
    with refused(InvalidInput, "kind"):
        problems.adversarial(kind="kind")
    with refused(InvalidInput, "K"):
        problems.adversarial(K=Simplex(1))


# --- adversarial streams --------------------------------------------------------------------------

FAR, SINGLE = Translated(Simplex(3), np.full(3, 50.0)), Simplex(3).to(np.zeros(1, np.float32))
HOSTILE_SETS = [Simplex(6), Box([-1.0], [1.0]), L2Ball((2, 2), 3.0), FAR, SINGLE]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", HOSTILE_SETS, ids=repr)
def test_hostile_gradients_have_slope_1_and_limits_exclude_each_other_or_not(kind, K):
    stream = problems.adversarial(60, 3, kind=kind, K=K, phase=10).stream
    A, b = stream.constraints.A, stream.constraints.b
    for batch in (stream.losses.C, A):
        lengths = np.array([np.linalg.norm(K.tangent(row)) for row in batch])
        # signs that all agree may point across the hull
        across = (lengths <= 1e-12) & (kind == "random signs")
        assert across.mean() < 0.5
        assert lengths[~across] == pytest.approx(np.ones(np.count_nonzero(~across)), abs=1e-5)
    if K.center.dtype == np.float32:
        return
    if kind == "excluding":
        low, high = (0.6 * K.lmo(d) + 0.4 * K.center for d in (A[0], -A[0]))
        values = np.array([stream.constraints.values(point) for point in (low, high)])
        values = values.reshape(2, 6, 10)
        assert (values[0, ::2] <= 1e-9).all()
        assert (values[1, 1::2] <= 1e-9).all()
        assert (values[0, 1::2] > 0.1).all()
        assert abs(A[0] + A[10]).max() <= 1e-12
        assert b[0] + b[10] < 0.0, "their average is above 0 everywhere"
    elif kind == "deadlock":
        assert b[0] + b[1] < 0.0, "their average is above 0 everywhere"
        easy = 0.95 * K.lmo(stream.losses.C[-1]) + 0.05 * K.center
        assert (stream.constraints[10:].values(easy) <= 1e-9).all()
    elif K.shape != (2, 2):
        assert best_in_hindsight(K, stream).feasible
