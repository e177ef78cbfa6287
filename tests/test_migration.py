"""Sets that change while a session goes on: what is kept, that bounds hold over all stretches, and
what is refused.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from polytopes import edges_of
from tidewolf.core.conforming import is_member
from tidewolf.core.errors import InvalidInput, NotSupported, UnreachableTarget, WrongType
from tidewolf.core.feedback import Arrival, FirstOrder, first_order
from tidewolf.functions import Capacity, Linear
from tidewolf.learners.migration import Move
from tidewolf.methods.available import distance_moved
from tidewolf.methods.certificate import GradientSums
from tidewolf.methods.steps.lyapunov import DualState, LyapunovWeights
from tidewolf.methods.steps.slopes import Slopes
from tidewolf.sets import Box, FlowPolytope, MultiFlow, Product, Simplex, SimplexProduct

seeds = st.integers(0, 2**32)
LINKS = [(i, j) for i in range(6) for j in range(i + 1, 6)]


def flows(links):
    return FlowPolytope.from_edges(links, source=0, target=5)


def network(rng, share=0.7):
    """Flows over some of the links, a way from 0 to 5 among them."""
    way = {(0, 5)} if rng.random() < 0.3 else {(0, 2), (2, 5)}
    chosen = [link for link in LINKS if link in way or rng.random() < share]
    rng.shuffle(chosen)  # entries change places, too
    return flows([tuple(link) for link in chosen])


def rounds_on(K, rounds, rng):
    """Costs that lead away from a flow, and capacities that it keeps."""
    star = 0.6 * K.center + 0.4 * K.lmo(rng.standard_normal(K.shape))
    turns = np.where(np.arange(rounds) // 7 % 2, -1.0, 1.0)[:, None]
    costs = turns * rng.standard_normal(K.shape) + 0.3 * rng.standard_normal((rounds, *K.shape))
    room = rng.exponential(0.05, (rounds, *K.shape)) * (rng.random((rounds, *K.shape)) < 0.7)
    return tw.Stream(Linear(costs), Capacity(star + room))


def learners(K, kind):
    season, re_solving = tw.experts.Season(9, cells=3), [tw.experts.Resolve(headroom=(0, 2))]
    return {
        "descent": lambda: tw.LyapunovDescent(K),
        "bare": lambda: tw.Ensemble(K, calls_per_round=0.4),
        "everything": lambda: tw.Ensemble(K, experts=[season, *re_solving]),
    }[kind]()


@pytest.mark.parametrize("pending", [True, False])
def test_an_outage_goes_on_with_other_experts(pending):
    K, seen = Simplex(3), {"costs": [0.0, 1.0, 2.0], "capacities": [1.0, 0.8, 1.0]}
    session = tw.Session(tw.Ensemble(K, experts=[tw.experts.Restarts(3, 2)]))
    for t in range(9):
        x = session.play(unavailable=[0] if t > 3 else None)
        assert t < 4 or x[0] == 0.0
        if t == 5 and pending:
            session.migrate(tw.Ensemble(K, experts=[tw.experts.Resolve()]))
        session.observe(**seen)
        if t == 5 and not pending:
            session.migrate(tw.Ensemble(K, experts=[tw.experts.Resolve()]))
        if t >= 5:
            assert len(session.state.outage.totals) == len(session.learner.names)


class Told:
    """A session, and what came of it in each stretch."""

    def __init__(self, learner):
        self.session, self.violation, self.regret = tw.Session(learner), 0.0, 0.0

    def through(self, stream):
        total = 0.0
        for t in range(len(stream)):
            x = self.session.play()
            assert is_member(self.session.learner.K, x)
            loss, limit = stream.losses[t : t + 1], stream.constraints[t : t + 1]
            total += float(loss.values(x)[0])
            self.violation += max(0.0, float(limit.values(x)[0]))
            self.session.observe(loss=loss, constraint=limit)
        best = tw.best_in_hindsight(self.session.learner.K, stream)
        self.regret += total - best.upper

    def holds(self):
        bound = self.session.learner.bound_of(self.session.state)
        assert self.regret <= bound.regret + 1e-6 * (1.0 + abs(bound.regret))
        assert bound.violation is not None
        assert self.violation <= bound.violation * (1.0 + 1e-9) + 1e-9
        return bound


@pytest.mark.parametrize("kind", ["descent", "bare", "everything"])
def test_a_migration_to_the_same_learner_changes_no_decision_ever(kind):
    rng = np.random.default_rng(3)
    K = network(rng)
    stream = rounds_on(K, 60, rng)
    plain, moved = (tw.Session(learners(K, kind)) for _ in range(2))
    for t in range(60):
        if t in (0, 20, 21, 45):
            x = moved.play()
            moved.migrate(learners(flows(edges_of(K)), kind))
            assert np.array_equal(moved.play(), x)
        seen = {"loss": stream.losses[t : t + 1], "constraint": stream.constraints[t : t + 1]}
        plain.observe(**seen)
        moved.observe(**seen)
        assert np.array_equal(plain.play(), moved.play())
    assert plain.state.oracle_budget == moved.state.oracle_budget
    assert moved.rounds == 60


@pytest.mark.parametrize("kind", ["descent", "bare", "everything"])
def test_a_link_that_is_added_moves_nothing_at_first(kind):
    rng = np.random.default_rng(5)
    K = network(rng, 0.5)
    told = Told(learners(K, kind))
    told.through(rounds_on(K, 50, rng))
    wide = flows([*edges_of(K), *(link for link in LINKS if link not in edges_of(K))])
    last, state = Move(K, wide).scattered(told.session.play()), told.session.state
    told.session.migrate(learners(wide, kind))
    assert distance_moved(told.session.play(), last) <= 1e-12
    assert distance_moved(wide.center, last) > 0.1
    assert told.session.state.dual.violation == state.dual.violation
    assert told.session.state.dual.slopes == state.dual.slopes
    if kind != "descent":
        assert np.array_equal(told.session.state.mixer.totals, state.mixer.totals)
        assert told.session.state.pool.count == state.pool.count


def test_points_that_used_a_link_that_is_gone_go_on_without_it():
    links = [("s", "a"), ("a", "t"), ("s", "b"), ("b", "t"), ("s", "t")]
    K = FlowPolytope.from_edges(links, source="s", target="t")
    session = tw.Session(tw.Ensemble(K))
    for t in range(30):
        session.observe(costs=[1.0, 0.0, 0.9, 0.0, 1.1 + (-1) ** t], capacities=[0.5] * 5)
    less = FlowPolytope.from_edges(links[2:], source="s", target="t")
    before = session.state.pool
    session.migrate(tw.Ensemble(less))
    after = session.state.pool
    assert is_member(less, session.play())
    stays = [row for row, v in enumerate(before.table.vertices) if 0 not in v.indices]
    assert after.count == len(stays) == 2
    for i in range(4):
        left = before.weights(i)[stays]
        assert np.allclose(after.weights(i), left / left.sum())
    only = FlowPolytope.from_edges([("s", "b"), ("b", "c"), ("c", "t")], source="s", target="t")
    session.migrate(tw.Ensemble(only))  # no vertex is left
    assert np.array_equal(session.play(), [1.0, 1.0, 1.0])
    session.observe(costs=[1.0, 1.0, 1.0])
    other = FlowPolytope.from_edges([("s", "d"), ("d", "t")], source="s", target="t")
    with pytest.raises(InvalidInput, match="has no entry of the old one's names, such as 's > b'"):
        session.migrate(tw.Ensemble(other))
    with pytest.raises(UnreachableTarget):
        FlowPolytope.from_edges([("s", "c"), ("d", "t")], source="s", target="t")


def test_a_point_with_no_vertex_left_goes_on_from_the_center_where_no_call_is_left():
    narrow = flows([(0, 3), (3, 5)])
    session = tw.Session(tw.LyapunovDescent(narrow))
    wide = flows([(0, 1), (1, 5), (0, 3), (3, 4), (4, 5)])
    session.migrate(tw.LyapunovDescent(wide))
    assert np.array_equal(session.play(), wide.center)
    assert session.oracle_calls == 0
    session = tw.Session(tw.LyapunovDescent(narrow))
    session.observe(costs=[1.0, 1.0])
    session.migrate(tw.LyapunovDescent(wide))
    assert session.oracle_calls == 1
    assert session.state.oracle_budget == 0.0


def test_rounds_that_wait_go_on_or_are_lost_by_name():
    links = [("s", "a"), ("a", "t"), ("s", "t")]
    K = FlowPolytope.from_edges(links, source="s", target="t")
    for learner in (tw.LyapunovDescent, tw.Ensemble):
        old = learner(K)
        state = old.defer(old.defer(old.start()))
        turned = [*links[1:], links[0], ("s", "b"), ("b", "t")]
        more = FlowPolytope.from_edges(turned, source="s", target="t")
        new = learner(more)
        wider = new.migrated(state, old)
        assert [one.round for one in wider.pending] == [0, 1]
        x = wider.pending[0].x
        assert np.array_equal(x, [*state.pending[0].x[[1, 2, 0]], 0.0, 0.0])
        seen = first_order(Linear.one([1.0] * 5), Capacity.one([0.1] * 5), x, np.array([0.4]))
        after = new.on_feedback(wider, [Arrival(0, seen)])
        assert after.t == 1
        assert new.bound_of(after).violation >= 0.4
        fewer = FlowPolytope.from_edges(links[2:], source="s", target="t")
        narrow = learner(fewer).migrated(state, old)
        assert narrow.pending == ()
        assert narrow.lost == 2
        assert "2 rounds pending" in learner(fewer).notes(narrow)[1]
        assert tw.Session(learner(fewer), narrow).play() == [1.0]


@settings(max_examples=8)
@given(seed=seeds)
def test_the_bound_on_the_violation_is_that_of_the_formula(seed):
    rng = np.random.default_rng(seed)
    K, c, theta = Simplex(3), 2.0, 0.5
    weights = LyapunovWeights(K, 10.0)
    carried, more, G, paid = rng.exponential(3.0), rng.exponential(2.0), 0.7, 0.01
    F, W = K.tangent(rng.standard_normal((2, 3))[0]), K.tangent(rng.standard_normal(3))
    sums = GradientSums(F, W, 3.0, 2.0)
    sharp = weights.start().sharp
    dual = DualState(100, carried + more, Slopes(1.0, G), 0.3, 0, paid, False, sums, sharp, carried)
    e, most, unit = theta * 100**-0.5, 2.0 - W.min() + W @ K.center, c * G * K.diameter
    plain = unit / e * math.log(math.exp(e * carried / unit) + e * most / (0.3 * theta * unit))
    assert weights.bound(dual).violation == pytest.approx(plain)
    assert weights.bound(weights.migrated(dual)).violation == carried + more


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Simplex(4), Simplex(4)),
        (Simplex(4), Box([0.0] * 4, [1.0] * 4)),
        (Box([0.0] * 4, [1.0] * 4), Box([0.0] * 4, [0.3] * 4)),
        (SimplexProduct([2, 3]), SimplexProduct([3, 2])),
        (Simplex(5), Product(Simplex(2), tw.sets.CappedSimplex(3, 0.5))),
        (Product(Simplex(2), tw.sets.CappedSimplex(3, 0.5)), Simplex(5)),
    ],
    ids=["same", "simplex to box", "smaller box", "other factors", "to factors", "from factors"],
)
def test_sets_without_names_keep_their_shape(old, new):
    rng = np.random.default_rng(1)
    for learner in (tw.LyapunovDescent, tw.Ensemble):
        told = Told(learner(old))
        told.through(rounds_on(old, 15, rng))
        told.session.migrate(learner(new))
        told.through(rounds_on(new, 15, rng))
        told.holds()
        state = told.session.state
        saved = learner(new).save(state)
        assert learner(new).save(learner(new).load(saved)) == saved


def test_commodities_and_links_of_many_flows_come_and_go():
    rng = np.random.default_rng(2)
    links = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("b", "d"), ("a", "d")]
    many = MultiFlow.from_edges(links, [("a", "d", 2.0), ("a", "c", 1.0), ("b", "d", 0.5)])
    fewer = MultiFlow.from_edges(links[:-1], [("b", "d", 0.5), ("a", "d", 2.0)])
    for learner in (tw.LyapunovDescent, tw.Ensemble):
        told = Told(learner(many))
        told.through(rounds_on(many, 25, rng))
        last = told.session.play()
        for K in (fewer, many, fewer):
            told.session.migrate(learner(K))
            told.holds()
            told.through(rounds_on(K, 10, rng))
            told.holds()
        assert last.shape == many.shape
    to = Move(many, fewer).to
    assert (to[many.owner == 1] == -1).all()
    assert len(set(to[to >= 0].tolist())) == np.count_nonzero(to >= 0) == fewer.shape[0]
    steeper = MultiFlow.from_edges(links, [("a", "d", 3.0), ("a", "c", 1.0), ("b", "d", 0.5)])
    session = tw.Session(tw.Ensemble(many))
    session.migrate(tw.Ensemble(steeper))  # the flow of one commodity is none any more
    assert is_member(steeper, session.play())


def test_members_go_on_by_name_and_new_ones_have_the_part_of_one():
    rng = np.random.default_rng(4)
    K = network(rng)
    stream, season = rounds_on(K, 40, rng), tw.experts.Season(9, cells=3)
    old = tw.Ensemble(K, experts=[season, tw.experts.Resolve(headroom=(0,)), "desk"])
    told = Told(old)
    told.through(stream)
    state = told.session.state
    last, two = tw.experts.Resolve(headroom=(0,)), tw.experts.Resolve(2, headroom=(0,))
    experts = [tw.experts.Season(9, cells=5), "desk", last, two]
    new = tw.Ensemble(K, caution=20.0, step_scales=(0.1, 1.0, 3.0), experts=experts)
    after = new.migrated(state, old)
    mean = np.mean([state.pool.x(4 + j) for j in range(3)], axis=0)
    for j in range(5):
        assert np.allclose(after.pool.x(3 + j), mean)
    p_old, p_new = (s.mixer.weights(np.ones(len(s.mixer.totals), bool)) for s in (state, after))
    of_old = dict(zip(old.names, p_old, strict=True))
    of_new = dict(zip(new.names, p_new, strict=True))
    both = [name for name in new.names if name in old.names]
    assert both == ["descent 0.1", "descent 1", "season", "desk", "last, headroom 0"]
    ratios = np.array([of_new[name] for name in both]) / np.array([of_old[name] for name in both])
    assert np.allclose(ratios, ratios[0])
    for name in set(new.names) - set(both):
        assert of_new[name] == pytest.approx(1 / 7)
    guards = {guard.name: guard for guard in old.guards(state)}
    for guard in new.guards(after):
        if guard.name in guards:
            assert guard.right == pytest.approx(guards[guard.name].right)
            assert guard.left == pytest.approx(guards[guard.name].left)
    told.session.migrate(new)
    told.through(rounds_on(K, 20, rng))
    told.holds()
    for guard in new.guards(told.session.state):
        assert guard.left <= guard.right + 1e-9 * (1.0 + abs(guard.right))


def test_re_solving_keeps_the_headroom_of_links_that_stay():
    K = flows([(0, 1), (1, 5), (0, 5)])
    session = tw.Session(tw.Ensemble(K, experts=[tw.experts.Resolve(headroom=(2,))]))
    for t in range(10):
        session.observe(costs=[1.0, 0.0, 2.0], capacities=[0.5 + 0.1 * (t % 2), 1.0, 1.0])
    (before,) = session.state.advisers
    more = flows([(0, 5), (0, 2), (2, 5), (0, 1), (1, 5)])
    session.migrate(tw.Ensemble(more, experts=[tw.experts.Resolve(headroom=(2,))]))
    (after,) = session.state.advisers
    assert after.drops.mean2[3] == before.drops.mean2[0] > 0.0
    assert after.drops.counted == before.drops.counted
    session.observe(costs=[2.0, 1.0, 1.0, 1.0, 0.0], capacities=[1.0, 1.0, 1.0, 0.5, 1.0])
    assert session.state.advisers[0].drops.counted == before.drops.counted
    assert session.state.upcoming.points[-1] is not None


def test_what_cannot_go_on_is_refused_in_a_sentence_and_changes_nothing():
    K = flows(LINKS)
    session = tw.Session(tw.Ensemble(K))
    session.observe(costs=[1.0] * 15)
    state, learner = session.state, session.learner
    for other, error, words in (
        (tw.LyapunovDescent(K), WrongType, "LyapunovDescent continues from the state of a"),
        (tw.PrimalDual(K, horizon=9), NotSupported, "Ensemble and LyapunovDescent can"),
        (tw.Ensemble(Simplex(4)), InvalidInput, "nothing says which entries are the same"),
        ("Ensemble", WrongType, "a learner such as Ensemble"),
    ):
        with pytest.raises(error, match=words):
            session.migrate(other)
        assert session.state is state
        assert session.learner is learner
    with pytest.raises(WrongType, match="a state of its own"):
        tw.Ensemble(K).migrated(tw.LyapunovDescent(K).start(), tw.Ensemble(K))
    assert session.notes == ()


def test_what_was_told_of_the_round_that_stands_may_be_told_anew():
    K = flows([(0, 1), (1, 5), (0, 5)])
    session = tw.Session(tw.Ensemble(K, experts=["desk"]))
    session.play(advice={"desk": [1.0, 1.0, 0.0]})
    with pytest.raises(InvalidInput):
        session.play(advice={"desk": [0.0, 0.0, 1.0]})
    x, more = session.play(), flows([(0, 5), (0, 1), (1, 5), (0, 2), (2, 5)])
    session.migrate(tw.Ensemble(more, experts=["desk"]))
    assert np.allclose(session.learner.act(session.state), [x[2], x[0], x[1], 0.0, 0.0])
    again = session.play(advice={"desk": [0.0, 0.0, 0.0, 1.0, 1.0]})
    assert again[3] > 0.1
    gradient = np.zeros(5)
    session.observe(FirstOrder(gradient, 0.0, gradient, 0.0, 0.0, 1))
    assert session.rounds == 1
