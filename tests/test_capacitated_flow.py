"""Flows within bounds against linear programs, networkx, brute force and single flows, and what has
no flow.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from refused import refused
from tidewolf.core.errors import EmptyGraph, EmptySet, NotFinite, UnknownNode, WrongShape, WrongType
from tidewolf.core.vertices import Sparse
from tidewolf.kernels import network_simplex as simplex
from tidewolf.sets import CapacitatedFlow, capacitated_flow, laplacian
from tidewolf.sets.capacitated_flow import FlowNetwork, cut_capacity, violated_cut
from tidewolf.sets.graphs import bridges
from tidewolf.testing import check_set

seeds = st.integers(0, 2**32)


def random_network(seed: int, nodes: int, arcs: int) -> FlowNetwork:
    """Arcs anywhere, loops and cycles among them; bounds whole or not, some equal; supplies that a
    flow, often a corner, meets.
    """
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, nodes, (2, arcs)).astype(np.int32)
    lower = rng.integers(-2, 2, arcs).astype(float)
    upper = lower + rng.integers(0, 4, arcs)
    if rng.random() < 0.5:
        lower, upper = lower * rng.random(), upper * rng.random() + 2.0
    x = lower + (upper - lower) * (
        rng.integers(0, 2, arcs) if rng.random() < 0.4 else rng.random(arcs)
    )
    names = tuple(f"n{i}" for i in range(nodes))
    empty = FlowNetwork(tails, heads, lower, upper, np.zeros(nodes), names)
    return FlowNetwork(tails, heads, lower, upper, empty.balance(x), names)


networks = st.builds(random_network, seeds, st.integers(1, 6), st.integers(1, 14))
small = st.builds(random_network, seeds, st.integers(1, 4), st.integers(1, 6))


def matrix_of(net: FlowNetwork) -> np.ndarray:
    A = np.zeros((len(net.nodes), len(net.tails)))
    np.add.at(A, (net.tails, np.arange(len(net.tails))), 1.0)
    np.add.at(A, (net.heads, np.arange(len(net.tails))), -1.0)
    return A


def program(net: FlowNetwork, d: np.ndarray):
    return linprog(
        d,
        A_eq=matrix_of(net),
        b_eq=net.supply,
        bounds=np.stack([net.lower, net.upper], axis=1),
        method="highs",
    )


def corners_of(net: FlowNetwork) -> np.ndarray:
    """Every vertex: each arc at a bound or in a forest, which the balances then fix."""
    A, found = matrix_of(net), []
    for places in itertools.product((-1, 0, 1), repeat=len(net.tails)):
        place = np.array(places)
        inside = A[:, place == 0]
        if (
            inside.size and np.linalg.matrix_rank(inside) < inside.shape[1]
        ):  # NumPy 2.1 gives no rank to an empty matrix
            continue
        x = np.where(place < 0, net.lower, net.upper)
        x[place == 0] = 0.0
        x[place == 0] = (
            np.linalg.lstsq(inside, net.supply - A @ x, rcond=None)[0]
            if inside.shape[1]
            else x[place == 0]
        )
        if (
            np.abs(A @ x - net.supply).max() < 1e-9
            and (x > net.lower - 1e-9).all()
            and (x < net.upper + 1e-9).all()
        ):
            found.append(x)
    return np.array(found)


# --- the oracle -----------------------------------------------------------------------------------


@given(net=networks, seed=seeds, ties=st.booleans())
def test_the_oracle_agrees_with_a_linear_program_cold_and_warm(net, seed, ties):
    rng, K, warm = np.random.default_rng(seed), CapacitatedFlow(net), None
    for _ in range(4):
        d = rng.integers(-1, 2, K.shape).astype(float) if ties else rng.standard_normal(K.shape)
        best = program(net, d)
        assert best.status == 0
        for start in (None, warm):
            vertex, error, basis = K.answer(d, start)
            assert vertex.inner(d) == pytest.approx(best.fun, abs=1e-7)
            assert 0 <= error <= 1e-10
            x = vertex.dense(d)
            assert (x >= net.lower).all()
            assert (x <= net.upper).all()
            assert np.abs(net.balance(x) - net.supply).max() <= 1e-12
            assert not basis.flags.writeable
            again = K.answer(d, start)
            assert again.vertex.key() == vertex.key()
            np.testing.assert_array_equal(again.warm, basis)
        warm = basis


@given(net=small, seed=seeds)
def test_answers_are_the_best_corners(net, seed):
    corners, K = corners_of(net), CapacitatedFlow(net)
    for d in np.random.default_rng(seed).standard_normal((3, *K.shape)):
        x = K.lmo(d)
        assert np.abs(corners - x).max(axis=1).min() <= 1e-9
        assert d @ x == pytest.approx((corners @ d).min(), abs=1e-9)


def test_a_start_that_is_none_does_no_harm():
    K, rng = CapacitatedFlow.examples()[0], np.random.default_rng(0)
    d = rng.standard_normal(K.shape)
    value = K.answer(d).vertex.inner(d)
    basis = K.answer(-d).warm
    cycle = basis.copy()
    cycle[:6] = [1, 0, 0, 1, 1, 1]
    for start in (
        np.zeros_like(basis),
        np.ones_like(basis),
        -basis,
        5 * basis,
        cycle,
        basis[:3],
        basis.astype(float),
        d,
    ):
        assert K.answer(d, start).vertex.inner(d) == pytest.approx(value, abs=1e-12)
    assert basis.dtype == np.int8


@given(net=networks, seed=seeds)
@settings(max_examples=10)
def test_the_kernels_are_their_source(net, seed):
    d = np.random.default_rng(seed).standard_normal(len(net.tails))
    fast = net.cheapest(d)
    kernels = (
        "build_tree",
        "attach",
        "detach",
        "basic_flow",
        "improve",
        "potential",
        "snap_to_bound",
        "pivot",
        "proved_gap",
    )
    with pytest.MonkeyPatch.context() as patch:
        for name in kernels:
            patch.setattr(simplex, name, getattr(simplex, name).plain)
        slow = FlowNetwork(
            net.tails, net.heads, net.lower, net.upper, net.supply, net.nodes
        ).cheapest(d)
    np.testing.assert_array_equal(slow.basis, fast.basis)
    np.testing.assert_array_equal(slow.x, fast.x)


@given(net=networks, seed=seeds, pushed=st.floats(0.0, 1.0))
def test_the_gap_bounds_what_any_flow_could_save(net, seed, pushed):
    """Of any flow and any potentials, not only the best."""
    rng = np.random.default_rng(seed)
    costs, pi = rng.standard_normal((2, len(net.tails))), rng.standard_normal(len(net.nodes) + 1)
    x = (1 - pushed) * net.cheapest(costs[0]).x + pushed * net.cheapest(costs[1]).x
    arcs = (net.tails, net.heads, net.room)
    gap = simplex.proved_gap(costs[0], arcs, len(net.tails), x - net.lower, pi)
    assert costs[0] @ (x - net.cheapest(costs[0]).x) <= gap + 1e-9
    assert net.cheapest(1024 * costs[0]).gap == 1024 * net.cheapest(costs[0]).gap


@given(seed=seeds)
@settings(max_examples=10)
def test_random_networks_keep_every_law(seed):
    check_set(CapacitatedFlow(random_network(seed, 4, 8)), seed=seed)


@pytest.mark.parametrize(
    ("edges", "supplies", "lower", "upper"),
    [
        ([("s", "t")], {"s": 1.0, "t": -1.0}, 0.0, 5.0),
        (
            [("s", "t"), ("s", "t"), ("t", "u")],
            {"s": 1.0, "t": 1.0, "u": -2.0},
            0.25,
            [1.0, 0.5, 2.0],
        ),
        ([(0, 0)], {}, 0.0, 2.0),
        ([(0, 1), (1, 0)], {}, 0.0, 0.0),
    ],
    ids=["one arc", "a bridge that is full", "a loop", "nothing fits"],
)
def test_degenerate_networks_keep_every_law(edges, supplies, lower, upper):
    check_set(CapacitatedFlow.from_edges(edges, supplies=supplies, lower=lower, upper=upper))


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_amounts_of_every_size_keep_the_laws(size):
    net = random_network(5, 4, 9)
    check_set(
        CapacitatedFlow(
            FlowNetwork(
                net.tails,
                net.heads,
                size * net.lower,
                size * net.upper,
                size * net.supply,
                net.nodes,
            )
        )
    )


def test_what_rounding_leaves_at_a_node_counts_as_nothing():
    K = CapacitatedFlow.from_edges(
        [("s", "t")] * 2, supplies={"s": 0.3, "t": -0.3}, lower=[0.1, 0.2], upper=1.0
    )
    assert 0.3 - (0.1 + 0.2) != 0
    assert not K.network.left.any()
    assert K.dimension == 0
    np.testing.assert_array_equal(K.center, [0.1, 0.2])


def test_bounds_far_wider_than_the_flow_cost_no_digits():
    K = CapacitatedFlow.from_edges(
        [("s", "t"), ("s", "t")], supplies={"s": 1.0, "t": -1.0}, upper=1e12
    )
    np.testing.assert_array_equal(K.lmo(np.array([1.0, 2.0])), [1.0, 0.0])
    assert (K.radius, K.inner_radius) == (
        pytest.approx(math.sqrt(0.5)),
        pytest.approx(math.sqrt(0.5)),
    )
    assert K.diameter == pytest.approx(math.sqrt(2))


# --- geometry -------------------------------------------------------------------------------------


@given(net=small)
def test_sizes_are_those_of_all_corners(net):
    K, corners = CapacitatedFlow(net), corners_of(net)
    assert K.dimension == np.linalg.matrix_rank(corners - corners[0], tol=1e-8)
    away = np.linalg.norm(corners - K.center, axis=1).max()
    assert away <= K.radius + 1e-9
    apart = max(np.linalg.norm(corners - corner, axis=1).max() for corner in corners)
    assert apart <= K.diameter + 1e-9
    assert K.diameter <= 2 * K.radius + 1e-12
    low, high = K._ranges
    np.testing.assert_allclose(low, corners.min(axis=0), atol=1e-9)
    np.testing.assert_allclose(high, corners.max(axis=0), atol=1e-9)
    _, sizes, basis = np.linalg.svd(corners - corners[0], full_matrices=False)
    spanned = basis[sizes > 1e-8].T @ basis[sizes > 1e-8]
    np.testing.assert_allclose(
        [K.tangent(unit) for unit in np.eye(len(net.tails))], spanned, atol=1e-9
    )


@given(net=networks)
def test_the_center_keeps_farthest_from_its_nearest_bound(net):
    """Against the linear program: the largest s with lower + s <= x <= upper - s on every arc that
    can change.
    """
    K = CapacitatedFlow(net)
    assert K.infeasibility(K.center) <= 1e-12
    if not K.dimension:
        assert (K.inner_radius, K.radius, K.diameter) == (0.0, 0.0, 0.0)
        return
    unit = np.zeros(len(net.tails))
    unit[K._free] = 1.0
    A = np.hstack([matrix_of(net), np.zeros((len(net.nodes), 1))])
    rows = np.vstack(
        [np.column_stack([-np.eye(len(unit)), unit]), np.column_stack([np.eye(len(unit)), unit])]
    )
    best = linprog(
        [0.0] * len(unit) + [-1.0],
        A_ub=rows,
        b_ub=np.append(-net.lower, net.upper),
        A_eq=A,
        b_eq=net.supply,
        bounds=(None, None),
    )
    slack = np.minimum(K.center - net.lower, net.upper - K.center)[K._free]
    assert slack.min() == pytest.approx(-best.fun, abs=1e-8)
    assert 0 < slack.min() <= K.inner_radius + 1e-12


@given(net=small)
def test_the_inner_ball_touches_the_nearest_bound(net):
    K = CapacitatedFlow(net)
    if not K.dimension:
        return
    reach = [np.linalg.norm(K.tangent(unit)) for unit in np.eye(len(net.tails))]
    slack = np.minimum(K.center - net.lower, net.upper - K.center)
    assert K.inner_radius == pytest.approx(
        min(slack[e] / reach[e] for e in range(len(reach)) if reach[e] > 1e-9), abs=1e-9
    )


def test_on_large_graphs_sizes_are_bounds(monkeypatch):
    exact = CapacitatedFlow.examples()[0]
    monkeypatch.setattr(laplacian, "DENSE_NODES", 0)
    monkeypatch.setattr(capacitated_flow, "RANGED", 0)
    K = CapacitatedFlow.examples()[0]
    assert 0 < K.inner_radius <= exact.inner_radius
    assert exact.radius <= K.radius + 1e-12
    assert exact.diameter <= K.diameter + 1e-12
    d = np.random.default_rng(0).standard_normal(K.shape)
    np.testing.assert_allclose(K.tangent(d), exact.tangent(d), atol=1e-10)


@given(seed=seeds, nodes=st.integers(1, 9), arcs=st.integers(0, 14))
def test_bridges_are_arcs_whose_loss_parts_the_graph(seed, nodes, arcs):
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    tails, heads = np.random.default_rng(seed).integers(0, nodes, (2, arcs))

    def count(kept):
        return connected_components(
            coo_array((np.ones(len(kept)), (tails[kept], heads[kept])), shape=(nodes, nodes))
        )[0]

    parted = [count(np.delete(np.arange(arcs), e)) > count(np.arange(arcs)) for e in range(arcs)]
    assert bridges(tails, heads, nodes).tolist() == parted


# --- ways in, and what is refused -----------------------------------------------------------------


def test_ways_in_and_what_decides():
    edges = [("s", "t"), ("t", "s"), ("s", "t")]
    K = CapacitatedFlow.from_edges(edges, supplies={"s": 1, "t": -1}, upper=2, lower=[0, 0, 0])
    assert (
        CapacitatedFlow.from_edges(
            iter(edges), supplies={"s": 1.0, "t": -1.0}, upper=np.full(3, 2.0)
        )
        == K
    )
    assert CapacitatedFlow.from_edges(edges, supplies={"s": 1.0, "t": -1.0}, upper=3.0) != K
    assert repr(K) == "CapacitatedFlow(3 arcs, 2 nodes, 1 supplied, dimension 2)"
    assert isinstance(K.answer(np.ones(3)).vertex, Sparse)
    np.testing.assert_array_equal(K.lmo(np.array([1.0, -3.0, 2.0])), [2.0, 2.0, 1.0])
    assert K.answer(np.zeros(3)).error == 0.0
    mine = np.full(3, 2.0)
    CapacitatedFlow.from_edges(edges, supplies={}, upper=mine)
    assert mine.flags.writeable


@given(net=networks, seed=seeds, more=st.sampled_from([0.5, 3.0, 50.0]))
def test_what_has_no_flow_is_refused_with_a_cut_that_proves_it(net, seed, more):
    rng = np.random.default_rng(seed)
    asked = net.supply.copy()
    asked[rng.integers(len(asked))] += more
    asked[rng.integers(len(asked))] -= more
    net = FlowNetwork(net.tails, net.heads, net.lower, net.upper, asked, net.nodes)
    exists = program(net, np.zeros(len(net.tails))).status == 0
    cut = violated_cut(net)
    assert (cut is None) == exists
    if cut is not None:
        assert net.supply[cut].sum() > cut_capacity(net, cut) + 1e-9
        with pytest.raises(EmptySet):
            CapacitatedFlow(net)


ARCS = [("s", "a"), ("a", "t"), ("t", "s"), ("x", "y")]
ONE_WAY = {"s": 2, "t": -2}


@pytest.mark.parametrize(
    ("settings", "error", "setting"),
    [
        ({"supplies": ONE_WAY, "upper": [3, 1, 1, 1]}, EmptySet, "supplies"),
        ({"supplies": ONE_WAY, "upper": 3, "lower": [0, 0, 1.5, 0]}, EmptySet, "supplies"),
        ({"supplies": {"s": 1, "y": -1}, "upper": 3}, EmptySet, "supplies"),
        ({"supplies": {"s": 1.5, "t": -1}, "upper": 3}, EmptySet, "supplies"),
        ({"supplies": {}, "upper": 1, "lower": [0, 2, 0, 0]}, EmptySet, "lower"),
        ({"supplies": {"q": 1}, "upper": 1}, UnknownNode, "supplies"),
        ({"supplies": {"s": np.nan}, "upper": 1}, NotFinite, "supplies"),
        ({"supplies": {"s": "all"}, "upper": 1}, WrongType, "supplies"),
        ({"supplies": [1, 2], "upper": 1}, WrongType, "supplies"),
        ({"supplies": {}, "upper": np.inf}, NotFinite, "upper"),
        ({"supplies": {}, "upper": [1, 2]}, WrongShape, "upper"),
        ({"supplies": {}, "upper": 1, "lower": "none"}, WrongType, "lower"),
    ],
)
def test_what_is_no_network_gets_its_sentence(settings, error, setting):
    with refused(error, setting):
        CapacitatedFlow.from_edges(ARCS, **settings)


def test_a_graph_without_edges_is_refused():
    with pytest.raises(EmptyGraph):
        CapacitatedFlow.from_edges([], supplies={}, upper=1.0)
