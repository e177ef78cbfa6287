"""The built-in problems: what their streams promise, and the exact values of the recorded ones."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linprog

from tidewolf import problems
from tidewolf.core.batch import Stream
from tidewolf.core.errors import InvalidInput, WrongShape
from tidewolf.core.unlimited import Unlimited
from tidewolf.functions.linear import Linear
from tidewolf.hindsight.best import best_in_hindsight
from tidewolf.networks import Tunnels
from tidewolf.problems import graphs
from tidewolf.problems.adversarial import KINDS
from tidewolf.problems.base import Problem
from tidewolf.problems.data import data_folder
from tidewolf.problems.records import COUNTED
from tidewolf.problems.routing import MARGIN, SCALE, kilometres
from tidewolf.sets import Box, L2Ball, Simplex, Translated
from tidewolf.sets.graph_tools import away

RECORDS = data_folder()
needs_records = pytest.mark.skipif(
    not RECORDS.is_dir(),
    reason=(
        f"the recorded streams are not in {RECORDS}; set TIDEWOLF_DATA to the folder that holds "
        "them"
    ),
)


def arcs(problem):
    return [tuple(label.split(" > ")) for label in problem.labels]


def flow_lp(problem, source, target, most=1.0):
    """The best fixed flow with x_e <= most_e, by scipy, from the labels alone."""
    links = arcs(problem)
    nodes = sorted({node for link in links for node in link})
    balance = np.array(
        [[(node == tail) - (node == head) for tail, head in links] for node in nodes], dtype=float
    )
    supply = np.array([(node == source) - (node == target) for node in nodes], dtype=float)
    bounds = np.stack([np.zeros(len(links)), np.broadcast_to(most, len(links))], axis=1)
    return linprog(problem.stream.losses.C.mean(axis=0), A_eq=balance, b_eq=supply, bounds=bounds)


def tightest(problem):
    return np.clip(problem.stream.constraints.c.min(axis=0), 0.0, 1.0)


def count_paths(links, source, target):
    return (
        1
        if source == target
        else sum(count_paths(links, head, target) for tail, head in links if tail == source)
    )


def breached(problem, x):
    """The share of rounds in which x is over a limit."""
    return float(np.mean(problem.stream.constraints.values(x) > 1e-9))


# graphs


SQUARE = [
    ("a", "b"),
    ("b", "a"),
    ("a", "c"),
    ("b", "d"),
    ("c", "d"),
    ("b", "c"),
    ("d", "z"),
    ("z", "a"),
    ("b", "dead end"),
]
LENGTHS = [1.0, 1.0, 3.0, 4.0, 1.0, 1.5, 1.0, 9.0, 1.0]


def test_loads_follow_shortest_paths():
    nodes = ["a", "b", "c", "d"]
    traffic = np.zeros((2, 4, 4))
    traffic[0, 0, 3], traffic[1, 1, 0] = 5.0, 2.0
    load = graphs.loads(
        [*SQUARE[:7], ("d", "b"), ("c", "b"), ("z", "d")],
        [*LENGTHS[:7], 4.0, 1.5, 1.0],
        nodes,
        traffic,
    )
    assert load[0].tolist() == [5, 0, 0, 0, 5, 5, 0, 0, 0, 0]
    assert load[1].tolist() == [0, 2, 0, 0, 0, 0, 0, 0, 0, 0]


def test_spread_gives_paths_exponential_shares():
    kept = away(SQUARE, source="a", target="d", lengths=LENGTHS)
    links, lengths = [SQUARE[i] for i in kept], [LENGTHS[i] for i in kept]
    shares = np.exp(-np.array([5.0, 4.0, 3.5]) / 2.0)  # a b d, a c d, a b c d
    abd, acd, abcd = shares / shares.sum()
    expected = {
        ("a", "b"): abd + abcd,
        ("a", "c"): acd,
        ("b", "d"): abd,
        ("c", "d"): acd + abcd,
        ("b", "c"): abcd,
    }
    flow = graphs.spread(links, lengths, "a", "d", scale=2.0)
    assert dict(zip(links, flow.tolist(), strict=True)) == pytest.approx(expected)


# routing


ENDS = ("Palo Alto", "College Park")


@pytest.mark.parametrize("seed", range(4))
def test_routing_can_be_met_in_every_round_and_the_limits_bind(seed):
    problem = problems.routing(seed=seed)
    free, best = flow_lp(problem, *ENDS), flow_lp(problem, *ENDS, tightest(problem))
    assert best.status == 0
    assert breached(problem, best.x) == 0.0
    assert breached(problem, free.x) > 0.6
    assert 1.02 < best.fun / free.fun < 1.10


def test_routing_guarantees_a_flow_with_room_around_it_however_long():
    problem = problems.routing(rounds=20_000, seed=5)
    km = [kilometres(tail, head) for tail, head in arcs(problem)]
    guaranteed = graphs.spread(arcs(problem), km, *ENDS, SCALE)
    assert problem.K.infeasibility(guaranteed) < 1e-12
    assert problem.stream.constraints.values(guaranteed).max() == pytest.approx(-MARGIN)


def test_an_outage_leaves_no_flow_for_its_rounds():
    problem = problems.routing(feasible=False)
    assert flow_lp(problem, *ENDS, tightest(problem)).status == 2
    out = [tail == ENDS[0] for tail, _ in arcs(problem)]
    lost = problem.stream.constraints.c[:, out].sum(axis=1) < 1
    assert lost.sum() == 3 * 16
    whole = problems.routing()
    np.testing.assert_array_equal(
        problem.stream.constraints.c[~lost], whole.stream.constraints.c[~lost]
    )
    assert problem.stream.constraints.c.min() >= 0


# scheduling


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_fits_every_day_and_the_cheapest_does_not(seed):
    problem = problems.scheduling(seed=seed)
    cost, even = problem.stream.losses.C.mean(axis=0), np.full(24, 1 / 24)
    best, free = best_in_hindsight(problem.K, problem.stream), problem.K.lmo(cost)
    assert best.feasible
    assert best.upper - best.lower <= 1e-8 * best.upper
    assert 1.1 * float(cost @ free) < best.upper / len(problem) < 0.95 * float(cost @ even)
    assert problem.stream.constraints.values(even).max() < -0.05
    assert breached(problem, free) > 0.9
    b = problem.stream.constraints.b
    assert (b.max(axis=0) > 1.5 * b.min(axis=0)).all()


# recorded streams


@needs_records
def test_abilene_anchors():
    problem = problems.abilene()
    free, best = (
        flow_lp(problem, "LOSAng", "WASHng"),
        flow_lp(problem, "LOSAng", "WASHng", tightest(problem)),
    )
    assert (len(problem), problem.shape, count_paths(arcs(problem), "LOSAng", "WASHng")) == (
        336,
        (14,),
        7,
    )
    assert (round(free.fun, 5), round(best.fun, 5)) == (4.43035, 4.74032)
    assert breached(problem, free.x) == 1.0


@needs_records
def test_abilene_at_a_smaller_share_cannot_be_met():
    problem = problems.abilene(share=0.15)
    assert flow_lp(problem, "LOSAng", "WASHng", tightest(problem)).status == 2


@needs_records
def test_freeway_anchors():
    problem = problems.freeway()
    free, best = flow_lp(problem, "187", "169"), flow_lp(problem, "187", "169", tightest(problem))
    assert (len(problem), problem.shape) == (2016, (456,))
    assert (round(free.fun, 4), round(best.fun, 4)) == (10.7910, 11.0450)
    assert round(breached(problem, free.x), 3) == 0.994


@needs_records
def test_carbon_anchors():
    problem = problems.carbon()
    cost, limits = problem.stream.losses.C.mean(axis=0), problem.stream.constraints
    plain = {"A_eq": np.ones((1, 13)), "b_eq": [1.0], "bounds": (0, 0.25)}
    free, best = linprog(cost, **plain), linprog(cost, A_ub=limits.A, b_ub=limits.b, **plain)
    assert (len(problem), problem.shape, problem.K.infeasibility(best.x)) == (
        17544,
        (13,),
        pytest.approx(0, abs=1e-9),
    )
    assert (round(free.fun, 5), round(best.fun, 5)) == (0.52241, 0.59222)
    assert round(breached(problem, free.x), 3) == 0.998


@needs_records
def test_meta_anchors():
    problem = problems.meta()
    losses, counted = problem.stream.losses, problem.stream.losses[COUNTED]
    assert (len(problem), problem.shape, problem.period) == (10_000, (36,), None)
    assert len(counted) == 2500
    assert round(float(counted.values(problem.K.center).mean()), 3) == 1.400
    assert isinstance(problem.stream.constraints, Unlimited)
    # the best split of a round has a loss of 1
    for t in range(0, 10_000, 1000):
        loads = losses.incidence * losses.demands[t, losses.pairs] / losses.capacities[:, None]
        rows = np.hstack([loads, -np.ones((12, 1))])
        sums = np.hstack([np.kron(np.eye(12), np.ones(3)), np.zeros((12, 1))])
        best = linprog(np.eye(37)[36], rows, np.zeros(12), sums, np.ones(12))
        assert best.fun == pytest.approx(1.0, abs=1e-5)
        assert losses[t : t + 1].values(best.x[:36])[0] == pytest.approx(1.0, abs=1e-5)


@needs_records
def test_meta_has_the_three_shortest_paths_of_every_pair():
    problem, ends = problems.meta(rounds=3), list(permutations(range(4), 2))
    tunnels = Tunnels(ends, ends)
    assert problem.labels == tunnels.names
    assert tunnels.splits.sizes == problem.K.sizes
    losses = tunnels.max_utilization(problem.stream.losses.demands, np.full(12, 1e4))
    np.testing.assert_array_equal(losses.incidence.toarray(), problem.stream.losses.incidence)


@needs_records
@pytest.mark.parametrize("name", ["abilene", "freeway", "carbon", "meta"])
def test_records_are_cut_at_the_front_and_ignore_the_seed(name):
    build = problems.named(name)
    assert build(rounds=24, seed=7).stream == build().stream[:24]


def test_a_missing_record_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEWOLF_DATA", str(tmp_path))
    with pytest.raises(
        InvalidInput, match=r"losloop_u8\.npz is not in .*; set TIDEWOLF_DATA to the folder"
    ):
        problems.freeway()


@pytest.mark.parametrize("content", [b"", b"not an archive"])
def test_a_broken_record_is_named(tmp_path, monkeypatch, content):
    monkeypatch.setenv("TIDEWOLF_DATA", str(tmp_path))
    (tmp_path / "carbon_ci_u16.npz").write_bytes(content)
    with pytest.raises(
        InvalidInput, match=r"carbon_ci_u16\.npz cannot be read .*; set TIDEWOLF_DATA"
    ):
        problems.carbon()


# the registry


def test_every_problem_is_exported_and_has_a_sentence():
    for name, build in problems.every().items():
        assert name in problems.__all__
        assert problems.named(name) is build is getattr(problems, name)
        sentence = (build.__doc__ or "").partition("\n")[0]
        assert sentence.endswith(".")
        assert len(sentence) <= 100


MADE = ("routing", "sdp", "completion", "portfolio", "scheduling", "adversarial", "zoo", "pairs")


@needs_records
@pytest.mark.parametrize("name", MADE)
def test_the_first_rounds_do_not_depend_on_how_many_follow_and_seeds_differ(name):
    build = problems.named(name)
    short, long = (build(rounds=n, seed=3) for n in (31, 90))
    assert short.stream == long.stream[:31]
    assert build(31, seed=3) == short != build(31, seed=4)
    assert build(31, seed=4).K == short.K
    with pytest.raises(InvalidInput, match="rounds of"):
        build(rounds=0)


def test_an_unknown_name_lists_the_known_ones_and_the_nearest():
    with pytest.raises(InvalidInput, match=r"'rooting'; .*routing, sdp, .*Did you mean routing\?"):
        problems.named("rooting")


def test_a_problem_fits_together():
    stream = Stream(Linear(np.ones((3, 2))), Linear(np.ones((3, 2))))
    with pytest.raises(
        WrongShape, match=r"points of shape \(2,\); the points of its set have shape \(3,\)"
    ):
        Problem("small", Simplex(3), stream, "A small problem.")
    with pytest.raises(WrongShape, match="has 3 labels"):
        Problem("small", Simplex(2), stream, "A small problem.", ("a", "b", "c"))
    assert len(Problem("small", Simplex(2), stream, "A small problem.", ("a", "b"))) == 3


# streams made to hurt


HOSTILE_SETS = [
    Simplex(6),
    Box([-1.0], [1.0]),
    L2Ball((2, 2), 3.0),
    Translated(Simplex(3), np.full(3, 50.0)),
    Simplex(3).to(np.zeros(1, np.float32)),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", HOSTILE_SETS, ids=repr)
def test_hostile_gradients_have_slope_1_within_the_hull(kind, K):
    stream = problems.adversarial(60, 3, kind=kind, K=K, phase=10).stream
    for batch in (stream.losses.C, stream.constraints.A):
        lengths = np.array([np.linalg.norm(K.tangent(row)) for row in batch])
        # signs that all agree may point across the hull
        across = (lengths <= 1e-12) & (kind == "random signs")
        assert across.mean() < 0.5
        assert lengths[~across] == pytest.approx(np.ones(np.count_nonzero(~across)), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", HOSTILE_SETS[:4], ids=repr)
def test_some_point_keeps_all_hostile_constraints_unless_they_exclude_each_other(kind, K):
    stream = problems.adversarial(60, 3, kind=kind, K=K, phase=10).stream
    e = stream.constraints.A[0] if kind in ("moving", "excluding", "opposing") else None
    if kind == "excluding":
        low, high = (0.6 * K.lmo(d) + 0.4 * K.center for d in (e, -e))
        values = np.array([stream.constraints.values(point) for point in (low, high)]).reshape(
            2, 6, 10
        )
        assert (values[0, ::2] <= 1e-9).all()
        assert (values[1, 1::2] <= 1e-9).all()
        assert (values[0, 1::2] > 0.1).all()
        mean = (stream.constraints.A[0] + stream.constraints.A[10]) / 2.0
        assert abs(mean).max() <= 1e-12
        assert (stream.constraints.b[0] + stream.constraints.b[10]) < 0.0, (
            "their average is above 0 everywhere"
        )
    elif kind == "deadlock":
        assert stream.constraints.b[0] + stream.constraints.b[1] < 0.0, (
            "their average is above 0 everywhere"
        )
        easy = 0.95 * K.lmo(stream.losses.C[-1]) + 0.05 * K.center
        assert (stream.constraints[10:].values(easy) <= 1e-9).all()
    elif K.shape != (2, 2):
        assert best_in_hindsight(K, stream).feasible


def test_hostile_streams_repeat_differ_and_do_not_depend_on_what_follows():
    for kind in KINDS:
        short, long = (problems.adversarial(n, 3, kind=kind).stream for n in (101, 450))
        assert short == long[:101]
        assert (
            problems.adversarial(50, 1, kind=kind)
            == problems.adversarial(50, 1, kind=kind)
            != problems.adversarial(50, 2, kind=kind)
        )
    with pytest.raises(InvalidInput, match=r"^kind of adversarial is one of switching, opposing"):
        problems.adversarial(kind="kind")
    with pytest.raises(InvalidInput, match="needs a set of two points or more"):
        problems.adversarial(K=Simplex(1))
