"""First bases by cost scaling: against linear programs on small and awkward networks, against
certificates on large ones, and step by step against what is obvious.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test_capacitated_flow import networks, program, seeds
from tidewolf.core.errors import EmptySet
from tidewolf.kernels import cost_scaling as steps
from tidewolf.kernels import network_simplex as simplex
from tidewolf.sets import CapacitatedFlow, capacitated_flow
from tidewolf.sets.capacitated_flow import FlowNetwork, cut_capacity, violated_cut

KERNELS = (
    "refine",
    "way_out",
    "lower_by_distances",
    "hang",
    "rise",
    "take_least",
    "move_to_bounds",
)


@pytest.fixture(autouse=True, scope="module")
def every_network_counts_as_large():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capacitated_flow, "SCALED", 0)
        yield


def awkward_network(seed: int, nodes: int, arcs: int) -> FlowNetwork:
    """Two parts without a link, arcs twice and thrice, arcs that carry nothing, whole bounds that
    a flow meets at a corner.
    """
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, nodes, (2, arcs)).astype(np.int32)
    tails, heads = (
        np.concatenate([tails, tails, tails + nodes]),
        np.concatenate([heads, heads, heads + nodes]),
    )
    upper = rng.integers(0, 3, 3 * arcs).astype(float)
    x = upper * rng.integers(0, 2, 3 * arcs)
    names = tuple(range(2 * nodes))
    empty = FlowNetwork(tails, heads, np.zeros(3 * arcs), upper, np.zeros(2 * nodes), names)
    return FlowNetwork(tails, heads, empty.lower, upper, empty.balance(x), names)


awkward = st.builds(awkward_network, seeds, st.integers(1, 5), st.integers(1, 9))
every = networks | awkward


def costs_of(net: FlowNetwork, seed: int, *, ties: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    count = len(net.tails)
    return rng.integers(-1, 2, count).astype(float) if ties else rng.standard_normal(count)


def flow_of(net: FlowNetwork, arcs, basis: np.ndarray):
    """Of a basis: whether it has a tree and keeps the bounds, its tree and its flow."""
    tree = np.empty((7, len(net.nodes) + 1), dtype=np.int32)
    flow = np.empty(len(basis))
    fits = simplex.build_tree(basis, arcs[0], arcs[1], tree) and simplex.basic_flow(
        arcs, net.left, basis, tree, flow, net.floor
    )
    return fits, tree, flow


@given(net=every, seed=seeds, ties=st.booleans())
def test_cold_answers_agree_with_a_linear_program_and_with_warm_ones(net, seed, ties):
    K, warm = CapacitatedFlow(net), None
    for turn in range(3):
        d = costs_of(net, seed + turn, ties=ties)
        best = program(net, d)
        assert best.status == 0
        cold = K.answer(d)
        assert cold.vertex.inner(d) == pytest.approx(best.fun, abs=1e-7)
        assert 0 <= cold.error <= 1e-10
        assert K.infeasibility(cold.vertex.dense(d)) <= 1e-12
        again = CapacitatedFlow(net).answer(d)
        np.testing.assert_array_equal(again.warm, cold.warm)
        assert again.vertex.key() == cold.vertex.key()
        if warm is not None:
            assert K.answer(d, warm).vertex.inner(d) == pytest.approx(best.fun, abs=1e-7)
        warm = cold.warm


@given(net=every, seed=seeds)
def test_potentials_fall_by_distances(net, seed):
    """Against Bellman and Ford's, from every node to the nearest that lacks something."""
    rng, nodes, count = np.random.default_rng(seed), len(net.nodes), len(net.tails)
    residual = capacitated_flow.residual_of(
        net.tails, net.heads, net.room, net.left, net.start.flow
    )
    graph, there, back, price, able, infeasibility, heap, _ = residual
    able[:] = rng.integers(0, 2, 2 * count)
    price[there] = price[back] = rng.random(count)
    infeasibility[:] = rng.integers(-1, 2, nodes)
    distance = np.where(infeasibility < 0, 0.0, np.inf)
    for _ in range(nodes):
        for tail, head, way in (
            (net.tails, net.heads, there),
            (net.heads, net.tails, back),
        ):
            reached = np.where(able[way] > 0, distance[head] + price[way] + 0.5, np.inf)
            np.minimum.at(distance, tail, reached)
    pi, before, lost = np.zeros(nodes), infeasibility.copy(), np.zeros(nodes)
    steps.lower_by_distances(graph, price, able, pi, infeasibility, lost, heap, 0.5, 1e-12)
    active = before > 0
    far = distance[active & np.isfinite(distance)].max(initial=0.0)
    if (active & ~np.isfinite(distance)).any():  # then all that is reached was seen
        far = distance[np.isfinite(distance)].max(initial=0.0)
    np.testing.assert_allclose(-pi, np.minimum(distance, far), atol=1e-12)
    stranded = active & ~np.isfinite(distance)
    np.testing.assert_array_equal(lost, np.where(stranded, before, 0.0))
    np.testing.assert_array_equal(infeasibility, np.where(stranded, 0.0, before))


@given(net=every, seed=seeds, more=st.sampled_from([0.5, 3.0, 50.0]))
def test_what_has_no_flow_is_found_and_as_much_is_sent_as_can_be(net, seed, more):
    rng = np.random.default_rng(seed)
    asked = net.supply.copy()
    asked[rng.integers(len(asked))] += more
    asked[rng.integers(len(asked))] -= more
    parts = (net.tails, net.heads, net.lower, net.upper, asked, net.nodes)
    tried = FlowNetwork(*parts)
    exists = program(tried, np.zeros(len(net.tails))).status == 0
    cut = violated_cut(tried)
    assert (cut is None) == exists
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capacitated_flow, "SCALED", 10**9)
        plain = FlowNetwork(*parts).start
    assert tried.start.unsent.sum() == pytest.approx(plain.unsent.sum(), abs=1e-9)
    arcs, count = tried._with_root, len(net.tails)
    costs = np.concatenate([np.zeros(count), np.ones(len(net.nodes))])
    basis = capacitated_flow.scaled_basis(costs, arcs, tried.left, np.zeros(count), tried.floor)
    fits, _, flow = flow_of(tried, arcs, basis)
    assert fits
    assert flow[count:].sum() == pytest.approx(plain.unsent.sum(), abs=1e-9)
    if cut is not None:
        assert tried.supply[cut].sum() > cut_capacity(tried, cut) + 1e-9
        with pytest.raises(EmptySet):
            CapacitatedFlow(tried)


def test_what_cannot_arrive_goes_back_to_where_it_came_from():
    tails, heads = np.array([[0, 2], [1, 0]], dtype=np.int32)
    left, flow = np.array([3.0, -1.0, -2.0]), np.zeros(2)
    residual = capacitated_flow.residual_of(tails, heads, np.array([5.0, 5.0]), left, flow)
    unsent = np.zeros(3)
    assert capacitated_flow.send(residual, left, unsent, 1e-12)
    np.testing.assert_array_equal(unsent, [2.0, 0.0, 2.0])
    np.testing.assert_array_equal(residual.able[residual.back], [1.0, 0.0])


@given(net=every, seed=seeds)
@settings(max_examples=10)
def test_the_kernels_are_their_source(net, seed):
    d = costs_of(net, seed, ties=False)
    fast = net.cheapest(d)
    with pytest.MonkeyPatch.context() as patch:
        for name in KERNELS:
            patch.setattr(steps, name, getattr(steps, name).plain)
        for name in ("pivot", "potential"):
            patch.setattr(steps, name, getattr(simplex, name).plain)
        for name in ("attach", "detach", "potential", "snap_to_bound"):
            patch.setattr(simplex, name, getattr(simplex, name).plain)
        slow = FlowNetwork(
            net.tails, net.heads, net.lower, net.upper, net.supply, net.nodes
        ).cheapest(d)
    np.testing.assert_array_equal(slow.basis, fast.basis)
    np.testing.assert_array_equal(slow.x, fast.x)


@given(net=every, seed=seeds)
@settings(max_examples=10)
def test_where_patience_is_lost_pivots_alone_find_the_answer(net, seed):
    d = costs_of(net, seed, ties=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "PATIENCE", 0)
        patch.setattr(steps, "refine", steps.refine.plain)
        impatient = FlowNetwork(
            net.tails, net.heads, net.lower, net.upper, net.supply, net.nodes
        ).cheapest(d)
    assert d @ impatient.x == pytest.approx(d @ net.cheapest(d).x, abs=1e-9)


def test_amounts_beside_which_others_are_rounding_do_no_harm():
    edges = [("s", "a"), ("a", "t"), ("t", "s"), ("s", "t")]
    K = CapacitatedFlow.from_edges(
        edges, supplies={"s": 1.0, "t": -1.0}, upper=[1.0, 1e15, 0.0, 1.0]
    )
    np.testing.assert_array_equal(K.lmo(np.array([1.0, 1.0, -1.0, 3.0])), [1.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(K.lmo(np.array([1.0, 1.0, -1.0, 1.0])), [0.0, 0.0, 0.0, 1.0])


def grid(side: int, seed: int) -> FlowNetwork:
    """Streets both ways between the crossings of a grid; narrow whole bounds."""
    rng, place = np.random.default_rng(seed), np.arange(side * side).reshape(side, side)
    one = np.concatenate([place[:, :-1].ravel(), place[:-1].ravel()])
    other = np.concatenate([place[:, 1:].ravel(), place[1:].ravel()])
    tails, heads = np.concatenate([one, other]), np.concatenate([other, one])
    tails, heads = tails.astype(np.int32), heads.astype(np.int32)
    upper = rng.integers(1, 9, len(tails)).astype(float)
    empty = FlowNetwork(
        tails, heads, np.zeros(len(tails)), upper, np.zeros(side**2), tuple(range(side**2))
    )
    supply = empty.balance(np.round(upper * rng.random(len(tails))))
    return FlowNetwork(tails, heads, empty.lower, upper, supply, empty.nodes)


@pytest.mark.parametrize("ties", [False, True])
def test_on_large_networks_potentials_prove_the_answer(ties, monkeypatch):
    """No reduced cost is wrong; the same from the basis of phase one without cost scaling."""
    net = grid(52, seed=3)
    assert len(net.tails) >= 10_000
    rng = np.random.default_rng(0)
    d = rng.integers(-3, 9, len(net.tails)).astype(float)
    d = d if ties else d + rng.random(len(d))
    cold = net.cheapest(d)
    assert 0 <= cold.gap <= 1e-9
    assert np.abs(net.balance(cold.x) - net.supply).max() <= 1e-9
    near = d + 0.05 * rng.standard_normal(len(d))
    warm = net.cheapest(near, cold.basis)
    assert near @ warm.x == pytest.approx(near @ net.cheapest(near).x, rel=1e-12)
    monkeypatch.setattr(capacitated_flow, "SCALED", 10**9)
    plain = FlowNetwork(net.tails, net.heads, net.lower, net.upper, net.supply, net.nodes)
    other = plain.cheapest(d)
    assert d @ cold.x == pytest.approx(d @ other.x, rel=1e-12)
    if not ties:
        np.testing.assert_array_equal(cold.x, other.x)
