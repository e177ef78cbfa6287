"""Explanations: whatever is said of a decision adds up, and what is not known is said not to be."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf import explanation
from tidewolf.core.errors import InvalidInput
from tidewolf.explanation import Entry
from tidewolf.functions import Capacity, Linear, Max, MaxAffine, Quadratic
from tidewolf.sets import BoundedPSD, FlowPolytope, MultiFlow, Simplex

EDGES = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]
FLOW = FlowPolytope.from_edges(EDGES, source="s", target="t")
LEARNERS = {
    "ensemble": tw.Ensemble(FLOW, experts=[tw.experts.Resolve(headroom=(0, 1))]),
    "ensemble, season and names": tw.Ensemble(
        FLOW, experts=[tw.experts.Season(4, cells=2), "incumbent"], max_move=0.1
    ),
    "ensemble, gradients": tw.Ensemble(Simplex(5)),
    "descent": tw.LyapunovDescent(FLOW),
    "descent, capped": tw.LyapunovDescent(Simplex(5), max_move=0.05),
    "descent, a weight for each limit": tw.LyapunovDescent(FLOW, per_constraint=True),
    "descent, blocks": tw.LyapunovDescent(FLOW, block=3),
    "frank-wolfe": tw.LyapunovFrankWolfe(FLOW),
    "primal-dual": tw.PrimalDual(FLOW, horizon=40),
    "drift": tw.DriftPlusPenalty(FLOW, horizon=40),
    "bandit": tw.BanditPrimalDual(FLOW, horizon=40),
    "baseline": tw.baselines.Resolve(FLOW),
    "rival, projected": tw.baselines.SinhaVaze(Simplex(5)),
}


def fed(learner, rounds, seed=0, **known):
    """A session that saw so many random rounds."""
    session, rng = tw.Session(learner), np.random.default_rng(seed)
    for _ in range(rounds):
        session.play(**known)
        session.observe(costs=rng.random(5), capacities=rng.uniform(0.2, 0.9, 5))
    return session


@pytest.mark.parametrize("rounds", [0, 1, 7])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_explains_itself_shortly_and_as_json(name, rounds):
    session = fed(LEARNERS[name], rounds)
    before, why = session.learner.save(session.state), session.explain()
    page, line, plain = str(why), why.in_short(), why.to_dict()
    assert len(page.splitlines()) <= 29
    assert max(map(len, page.splitlines())) <= 105
    assert len(line.splitlines()) == 1
    assert len(line) <= 300
    moved = "the first decision" if rounds == 0 else f"moved {explanation.number(why.moved)}"
    assert line.startswith(moved if rounds == 0 or why.moved > 1e-9 else "nothing moved")
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert why.round == rounds == why.observed
    assert session.learner.save(session.state) == before
    assert str(session.explain()) == page


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rounds=st.integers(1, 8),
    asked=st.lists(st.booleans(), min_size=9, max_size=9),
    cap=st.sampled_from([None, 0.01, 0.3]),
)
def test_what_members_did_and_what_held_them_back_add_up_to_the_move(seed, rounds, asked, cap):
    experts = [tw.experts.Categories(2), "incumbent", tw.experts.Resolve(headroom=0)]
    learner = tw.Ensemble(Simplex(4), step_scales=(0.3, 1.0), experts=experts, max_move=cap)
    session, rng, decisions = tw.Session(learner), np.random.default_rng(seed), []
    for t in range(rounds + 1):
        known = {"context": t % 2, "advice": {"incumbent": rng.dirichlet(np.ones(4))}}
        decisions.append(session.play(**(known if asked[t] else {})))
        why = session.explain()
        session.observe(costs=rng.random(4), capacities=rng.random(4))
        if t == 0:
            continue
        assert why.moved == pytest.approx(0.5 * np.abs(decisions[-1] - decisions[-2]).sum())
        parts = sum(part.by_proposal + part.by_weight for part in why.experts)
        assert parts + why.held_back == pytest.approx(why.moved, abs=1e-12)
        assert sum(part.weight for part in why.experts) == pytest.approx(1.0)
        for part in why.experts:  # two points of a simplex are at most 1 apart
            assert part.weight_before is not None
            assert abs(part.by_weight) <= abs(part.weight - part.weight_before) + 1e-12
            assert abs(part.by_proposal) <= part.weight + 1e-12
        for move in why.moves:
            i = int(move.name.removeprefix("entry "))
            assert (move.value, move.before) == (decisions[-1][i], decisions[-2][i])
        if cap is None:
            assert (why.held_back, why.short_of) == (pytest.approx(0.0, abs=1e-12), 0.0)


def test_the_runs_totals_beside_a_member_are_those_of_its_rounds():
    learner = tw.Ensemble(Simplex(3), experts=["incumbent", tw.experts.Resolve(headroom=0)])
    session, rng = tw.Session(learner), np.random.default_rng(3)
    mine, theirs, violation = 0.0, 0.0, 0.0
    for t in range(12):
        point = rng.dirichlet(np.ones(3))
        x = session.play(advice={"incumbent": point if t % 3 else None})
        costs, capacities = rng.random(3), rng.random(3)
        session.observe(costs=costs, capacities=capacities)
        if t % 3:
            mine, theirs = mine + costs @ x, theirs + costs @ point
            violation += max(0.0, (x - capacities).max()) - max(0.0, (point - capacities).max())
    [incumbent] = [part for part in session.explain().experts if part.name == "incumbent"]
    assert incumbent.more_loss == pytest.approx(mine - theirs)
    assert incumbent.more_violation == pytest.approx(violation)
    assert not incumbent.present


def test_a_limit_is_named_with_what_it_holds():
    session = tw.Session(tw.LyapunovDescent(FLOW))
    session.observe(costs=np.zeros(5), capacities=[0.2, 1.0, 1.0, 1.0, 1.0])
    why, x = session.explain(), session.play()
    assert (why.limits[0].name, why.limits[0].load) == ("s > a", x[0])
    assert why.limits[0].capacity == 0.2
    assert why.limits[0].played == pytest.approx(FLOW.center[0] - 0.2)
    assert "s > a: " in str(why)
    assert why.outlook is not None
    assert why.outlook.limit == pytest.approx(max(x - [0.2, 1, 1, 1, 1]))


@pytest.mark.parametrize(
    "limit",
    [
        MaxAffine.one(np.eye(5)[:2], [0.1, 2.0]),
        Max(Capacity.one([0.1] * 5), Quadratic.one(np.eye(5), np.zeros(5), 0.0)),
        None,
    ],
    ids=["pieces", "of several kinds", "none"],
)
def test_limits_that_are_no_capacities_are_told_apart_by_number(limit):
    session = tw.Session(tw.LyapunovDescent(Simplex(5)))
    session.observe(loss=Linear.one(np.arange(5.0)), constraint=limit)
    names = {one.name for one in session.explain().limits}
    assert names == ({f"limit {i + 1}" for i in range(len(names))} if limit is not None else set())


def test_a_session_that_was_just_opened_says_what_it_does_not_know(tmp_path):
    learner = LEARNERS["ensemble"]
    fed(learner, 3).save(tmp_path / "saved")
    session = tw.Session.load(tmp_path / "saved", learner)
    why = session.explain()
    assert why.moved is None
    assert "loaded or copied at this round: what moved" in " ".join(str(why).split())
    assert "at this round" not in str(tw.Session(learner).explain())
    session.observe(costs=np.ones(5), capacities=np.ones(5))
    assert session.explain().moved is not None
    assert session.explain().notes == ()


def lived(session, rounds, late, seed=0):
    """So many rounds, told of late, with a link out and another point played now and then."""
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        session.play(round=t, unavailable=["s > a"] if t % 4 == 3 else None)
        seen = {"costs": rng.random(5), "capacities": rng.uniform(0.2, 0.9, 5)}
        if t >= late:
            session.observe(round=t - late, played=FLOW.center if t % 3 == 1 else None, **seen)


HOW = [(1, 2, False), (4, 2, True), (4, 0, False), (100, 2, False)]


@pytest.mark.parametrize(("every", "late", "read_only"), HOW)
def test_a_session_that_is_opened_again_explains_itself_as_before(tmp_path, every, late, read_only):
    learner, path = LEARNERS["ensemble"], tmp_path / "a.db"
    with tw.Session.open(path, learner, snapshot_every=every) as session:
        lived(session, 9, late)
        session.play(round=9, unavailable=["b > t"])
        rounds = (*session.pending, None)
        said = [str(session.explain(round=number)) for number in rounds]
    with tw.Session.open(path, learner, read_only=read_only) as again:
        assert [str(again.explain(round=number)) for number in rounds] == said
        assert "Out       b > t" in said[-1]


@pytest.mark.parametrize("back", [0, 1, 9])
def test_a_session_that_went_back_explains_itself_as_it_did_then(tmp_path, back):
    learner, said = LEARNERS["ensemble"], list[str]()
    for session in (tw.Session.open(tmp_path / "a.db", learner), tw.Session(learner)):
        rng, said = np.random.default_rng(0), []
        for t in range(12):
            said.append(str(session.explain()))
            session.play(unavailable=["s > a"] if t == 9 else None)
            session.observe(costs=rng.random(5), capacities=rng.uniform(0.2, 0.9, 5))
        said.append(str(session.explain()))
        session.play()
        session.rollback(12 - back)
        why = str(session.explain())
        session.close()
        assert why == said[12 - back]


def test_a_learner_that_is_replaced_says_what_moved_by_name():
    session = fed(LEARNERS["ensemble"], 6)
    last, rng = session.play(), np.random.default_rng(9)
    session.observe(costs=rng.random(5), capacities=rng.uniform(0.2, 0.9, 5))
    less = FlowPolytope.from_edges(EDGES[1:2] + EDGES[4:], source="s", target="t")
    session.migrate(tw.Ensemble(less, experts=[tw.experts.Resolve(headroom=(0, 1))]))
    why, x = session.explain(), np.zeros(5)
    x[[1, 4]] = session.play()
    assert (why.since, why.moved) == (6, pytest.approx(0.5 * np.abs(x - last).sum()))
    used = [name for name, value in zip(FLOW.names, last, strict=True) if value > 0.0]
    assert {one.name for one in why.gone} == {*used} - {"s > b", "b > t"}
    assert all(one.name in str(why) for one in why.gone)
    assert any("replaced" in note for note in why.notes)
    assert why.outlook is None  # of another set nothing was observed


def test_a_move_is_from_what_was_played_and_what_holds_it_back_is_named():
    session = tw.Session(tw.Ensemble(Simplex(3), max_move=0.1))
    session.observe(costs=[0.0, 0.5, 1.0], played=[0.0, 0.0, 1.0])
    why = session.explain()
    page = " ".join(str(why).split())
    assert why.moved == pytest.approx(0.5 * np.abs(session.play() - [0.0, 0.0, 1.0]).sum())
    assert why.moved <= 0.1 + 1e-9
    parts = sum(part.by_proposal + part.by_weight for part in why.experts)
    assert parts + why.held_back + why.overridden == pytest.approx(why.moved)
    assert why.overridden > 0.0
    assert why.overrides is not None
    assert why.overrides.rounds == 1
    assert why.overrides.loss - why.overrides.own_loss == pytest.approx(1.0 - 0.5)
    assert f"{why.short_of:.3g} short of where it would be, with max_move 0.1" in page
    assert "another point was played than was decided" in page


def test_limits_that_are_broken_are_all_named():
    session = tw.Session(tw.Ensemble(Simplex(5), per_constraint=True))
    session.observe(costs=np.zeros(5), capacities=[0.01, 0.02, 0.03, 0.04, 9.0])
    why = session.explain()
    broken = [one.name for one in why.limits if one.now > 0.0]
    assert broken == ["entry 0", "entry 1", "entry 2", "entry 3"]
    page = str(why).partition("Limits")[2].partition("Expected")[0]
    assert all(name in page for name in broken)


def test_rounds_that_expired_are_counted_and_named():
    session = tw.Session(LEARNERS["ensemble"], expire_after=2)
    session.play(round=5)
    note = "4 rounds expired without feedback: 0, 1, 2, 3."
    assert session.notes == (note,)
    assert note in str(session.explain())


def test_a_copy_has_the_state_and_not_the_way_to_it():
    session = fed(LEARNERS["descent"], 2)
    session.play(round=3)
    copy = pickle.loads(pickle.dumps(session))
    for number in (2, 3, 4):  # pending rounds too
        why, full = copy.explain(round=number), session.explain(round=number)
        assert why.moved is None
        assert why.entries[0].value == full.entries[0].value
        assert why.run_loss == full.run_loss


def test_pending_rounds_are_explained_each_as_it_was_decided():
    session, rng = tw.Session(LEARNERS["ensemble"]), np.random.default_rng(5)
    for t in range(5):
        session.play(round=t, unavailable=["s > a"] if t == 3 else None)
        if t >= 2:
            session.observe(round=t - 2, costs=rng.random(5), capacities=rng.uniform(0.2, 0.9, 5))
    assert session.explain().round == 4
    assert session.pending == (3, 4)
    for number in (3, 4, 5):
        why = session.explain(round=number)
        assert [one.name for one in why.out] == (["s > a"] if number == 3 else [])
        assert why.since == number - 1
        assert why.outlook is not None
        assert why.outlook.round == min(2, number - 3)
        parts = sum(part.by_proposal + part.by_weight for part in why.experts)
        assert parts + why.held_back + why.overridden == pytest.approx(why.moved)
        if number < 5:
            assert why.moves[0].value in session.play(round=number)


def test_other_rounds_and_too_few_names_are_refused():
    session = fed(LEARNERS["ensemble, gradients"], 2)
    for number in (0, 1, 3):
        with pytest.raises(InvalidInput):
            session.explain(round=number)
    with pytest.raises(InvalidInput):
        session.explain(names=["coal", "gas"])
    assert session.explain(round=2) == session.explain()
    why = session.explain(names=["coal", "gas", "sun", "wind", "rain"])
    assert {one.name for one in why.entries} <= {"coal", "gas", "sun", "wind", "rain"}


def test_a_matrix_and_many_commodities_are_explained():
    session = tw.Session(tw.LyapunovDescent(BoundedPSD(4, 1.0)))
    session.observe(loss_gradient=np.diag([1.0, -1.0, 0.0, 0.0]), constraint_value=-1.0)
    why = session.explain()
    assert why.entries[0].name == "entry (1, 1)"
    assert "Gradients" not in str(why)
    K = MultiFlow.from_edges(EDGES, [("s", "t", 2.0), ("s", "b", 1.0)])
    flows = tw.Session(tw.LyapunovDescent(K))
    flows.observe(loss=Linear.one(np.arange(float(K.shape[0]))))
    routes = flows.explain().routes
    assert sum(one.share for one in routes if one.commodity == "s to t") == pytest.approx(2.0)
    assert sum(one.share for one in routes if one.commodity == "s to b") == pytest.approx(1.0)


def told(*rounds, **settings):
    """A session on three entries that saw rounds of costs and capacities."""
    session = tw.Session(tw.LyapunovDescent(Simplex(3), **settings))
    for costs, capacities in rounds:
        session.observe(costs=costs, capacities=capacities)
    return session


FREE = [1.0, 1.0, 1.0]


def test_the_reason_in_short_is_the_first_that_fits():
    names = ["coal", "sun", "gas"]

    def short(*rounds, **settings):
        return told(*rounds, **settings).explain(names=names).in_short()

    over = short(([1.0, 0.0, 0.5], [0.2, 0.9, 0.9]))
    assert "most from coal (0.333 -> 0.2) to sun (0.333 -> 0.6) because coal was over by" in over
    assert short((FREE, FREE), ([2.0, 1.0, 1.0], FREE)).endswith("because the cost of coal 1 -> 2")
    why = told(([1.0, 0.0, 0.5], FREE)).explain(names=names)
    for now, is_reason in ((0.5, True), (2.0, False)):  # what is dearer draws nothing
        said = replace(why, costs=(Entry("sun", now, 1.0),)).in_short()
        assert ("because the cost of sun" in said) == is_reason
    assert short((FREE, FREE)) == "nothing moved"
    assert "because coal was over by 0.233" in short((FREE, [0.1, 0.1, 0.1]))
    stuck = tw.Session(tw.LyapunovDescent(Simplex(1)))
    stuck.observe(costs=[1.0], capacities=[0.5])
    assert stuck.explain().in_short().startswith("nothing moved, though entry 0 was over by 0.5")
    held = short(([1.0, 0.0, 0.5], FREE), max_move=0.05)
    assert held.endswith("; max_move lets it go no farther than 0.05")
    for known, observed, reason in (
        ({"unavailable": ["a > t"]}, {}, "a > t is out"),
        ({}, {"played": FLOW.lmo(np.eye(5)[0])}, "another point was played than was decided"),
    ):
        session = tw.Session(tw.Ensemble(FLOW))
        session.observe(costs=np.ones(5), **observed)
        session.play(**known)
        assert f"because {reason}" in session.explain().in_short()
