"""Ensemble: its sums by the inequality written plainly, bounds and guards on hostile streams, what
is known before a round, states that branch, are saved and forged.
"""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tidewolf as tw
from streams import hostile
from test_late import followed
from tidewolf.core import errors
from tidewolf.core.feedback import FirstOrder, FullInformation, first_order
from tidewolf.functions import Affine, Linear, LogWealth
from tidewolf.methods.certificate import CellSums, GradientSums, paid_at_most
from tidewolf.methods.steps import lyapunov, saddle
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, L2Ball, Product, Simplex, SimplexProduct

seeds, DIAMOND = st.integers(0, 2**32), FlowPolytope.examples()[0]
PLAIN = [Simplex(4), DIAMOND, CappedSimplex(6, 0.5), L2Ball(3)]
PRODUCTS = [Box([-1.0, 0.0], [1.0, 3.0]), SimplexProduct([2, 3])]
PRODUCTS += [Product(Simplex(3), CappedSimplex(4, 0.5))]
KINDS = ["switching", "rare and huge", "losses that grow", "capacities"]


def with_knowledge(stream, K, seed, names=("a",)):
    """The same rounds with a time, a category that is sometimes unknown, and advice that is
    sometimes absent or outside.
    """
    rng, T, advice = np.random.default_rng([seed, 1]), len(stream), {}
    for name in names:
        points = np.array([K.lmo(rng.standard_normal(K.shape)) for _ in range(T)])
        odd = rng.choice([1.0, 1.0, 1.0, 1.2, np.nan], T)
        advice[name] = points * odd.reshape((T, *[1] * len(K.shape)))
    known = {"time": 3600.0 * np.arange(T), "context": rng.choice([0.0, 1.0, 2.0, np.nan], T)}
    return tw.Stream(stream.losses, stream.constraints, **known, advice=advice)


# --- the inequality, written plainly --------------------------------------------------------------


def in_losses(learner, state, numbers):
    """Numbers of the ledger in units of the loss times V."""
    return np.array(numbers) * math.ldexp(1.0, state.dual.exponent)


ADVISED = {
    "plain": {},
    "context": {"experts": [tw.experts.Season(6, cells=3)]},
    "categories": {"experts": [tw.experts.Categories(3)], "step_scales": (0.3,)},
    "advice": {"experts": ["a", "b"], "caution": 1.0},
    "re-solving": {"experts": [tw.experts.Season(4), tw.experts.Resolve(headroom=(0.0, 1.0)), "a"]},
}


@pytest.mark.soak_examples(4)
@pytest.mark.parametrize("given_", ADVISED.values(), ids=ADVISED)
@given(seeds, st.sampled_from(PLAIN), st.sampled_from([*KINDS, "hopeless"]), st.booleans())
@example(seed=0, K=PLAIN[-1], kind="switching", stride=False)  # one that no kernel plays
@settings(max_examples=2)
def test_its_sums_are_those_of_the_inequality_written_plainly(given_, seed, K, kind, stride):
    """Also where the ledger's units change all the time."""
    with pytest.MonkeyPatch.context() as patch:
        if stride:
            patch.setattr(lyapunov, "_STRIDE", 1)
            patch.setattr(lyapunov, "THETA", 4.0)
            patch.setattr(tw.Ensemble, "compiled", None)  # a kernel has the constants of its own
        learner = tw.Ensemble(K, **given_)
        stream = with_knowledge(hostile(kind, K, 25, seed), K, seed, ("a", "b"))
        plain, state = followed(learner, stream)
    size = np.abs(plain.A).max() + np.abs(plain.lost).max() + 1e-9
    guard, lost = state.accounts.guard, state.accounts.lost
    assert in_losses(learner, state, guard) == pytest.approx(plain.A, abs=1e-9 * size)
    assert in_losses(learner, state, -state.mixer.totals) == pytest.approx(plain.A, abs=1e-9 * size)
    assert (plain.lost <= plain.A + 1e-9 * size).all()
    assert plain.A.max() <= in_losses(learner, state, 2.0 * state.mixer.gap) + 1e-9 * size
    if not state.accounts.unseen:
        assert in_losses(learner, state, lost) == pytest.approx(plain.lost, abs=1e-9 * size)


def test_rounds_of_unknown_context_count_by_their_slopes():
    K, loss, limit = Simplex(3), np.array([1.0, -1.0, 0.0]), np.array([0.0, 2.0, -2.0])
    cells = CellSums.start(K, 2).and_round(K, np.zeros(2), loss, limit)
    assert cells[2:] == pytest.approx((K.radius * math.sqrt(2.0), K.radius * math.sqrt(8.0)))
    cells = cells.and_round(K, np.array([0.25, 0.75]), loss, limit)
    assert cells.loss == pytest.approx(np.array([0.25 * loss, 0.75 * loss]))
    assert cells.limit == pytest.approx(np.array([0.25 * limit, 0.75 * limit]))
    most = paid_at_most(K, GradientSums(loss, limit, 0.0, 0.0), cells)
    assert most == pytest.approx(2.0 * (0.25 + 0.75) + K.radius * math.sqrt(8.0))


def wealth(seed, rounds, n, limits=True):
    rng = np.random.default_rng(seed)
    losses = LogWealth(np.exp(0.05 * rng.standard_normal((rounds, n))))
    if not limits:
        return tw.Stream(losses)
    A = rng.standard_normal((rounds, n))
    return tw.Stream(losses, Affine(A, A @ np.full(n, 1.0 / n) + 0.02))


@given(seed=seeds, limits=st.booleans())
@settings(max_examples=6)
def test_by_values_its_sums_are_those_of_the_file(seed, limits):
    K, T = Simplex(4), 25
    learner = tw.Ensemble(K, experts=[tw.experts.Categories(3), "a"])
    plain, state = followed(learner, with_knowledge(wealth(seed, T, 4, limits), K, seed))
    assert in_losses(learner, state, state.accounts.guard) == pytest.approx(plain.lost, abs=1e-9)
    assert state.accounts.lost == pytest.approx(state.accounts.guard, abs=1e-9)


@given(seed=seeds)
@settings(max_examples=6)
def test_wealth_is_at_least_that_of_the_best_member_over_their_number(seed):
    K, T, rng = Simplex(3), 60, np.random.default_rng(seed)
    turns = np.where(np.arange(T) % 2, 1.0, -1.0)[:, None] * 0.1 * rng.standard_normal(3)
    stream = tw.Stream(LogWealth(np.exp(turns + 0.02 * rng.standard_normal((T, 3)))))
    learner = tw.Ensemble(K)
    run = tw.run(learner, stream)
    members = learner.experts_of(run.final_state)
    assert len(members) == 4
    assert run.losses.sum() <= min(m.loss for m in members) + math.log(4) + 1e-9
    assert all(guard.left <= math.log(4) + 1e-9 for guard in learner.guards(run.final_state))
    assert run.certificate.holds


# --- bounds, guards and promises on hostile streams -----------------------------------------------


@given(seed=seeds, K=st.sampled_from([Simplex(3), DIAMOND, SimplexProduct([2, 2])]))
@settings(max_examples=5)
def test_no_total_exceeds_its_bound_against_policies(seed, K):
    stream, context = hostile("switching", K, 48, seed), tw.experts.Season(6, cells=3)
    learner = tw.Ensemble(K, experts=[context], caution=3.0)
    run = tw.run(learner, stream)
    best, bound = tw.best_in_hindsight(K, stream, context=context), learner.policy_bound(run)
    assert best.feasible
    size = float(np.abs(run.losses).sum())
    assert run.losses.sum() - best.lower <= bound.regret + 1e-9 * size
    assert run.violations.sum() <= bound.violation + 1e-9 * size
    assert run.bound.regret <= bound.regret + 1e-9 * size
    assert tw.Ensemble(K).policy_bound(tw.run(tw.Ensemble(K), stream)).regret is None


def turns(T, **known):
    """Limits of even and odd rounds that exclude each other, and losses against both."""
    A = np.tile([[1.0, 0.0], [0.0, 1.0]], (T // 2, 1))
    return tw.Stream(Linear(-A), Affine(A, np.full(T, 0.2)), **known)


def test_seasons_that_exclude_each_other_are_exposed_while_policies_have_a_bound():
    """What turn it is is known from the middle on: by then no fixed point can have kept what was
    paid for.
    """
    K, T, two = Simplex(2), 200, tw.experts.Categories(2)
    stream = turns(T, context=[np.nan] * (T // 2) + [0, 1] * (T // 4))
    learner = tw.Ensemble(K, experts=[two])
    run = tw.run(learner, stream)
    assert learner.bound(run).violation is None
    assert learner.bound(run).reason == saddle.HOPELESS
    bound = learner.policy_bound(run)
    assert bound.reason == ""
    assert run.violations.sum() <= bound.violation
    assert run.violations[3 * T // 4 :].sum() < 0.1 * run.violations[: T // 2].sum()
    assert run.certificate.holds is not False


def test_whom_the_season_helps_keeps_the_limits_of_both():
    K, T, season = Simplex(2), 100, tw.experts.Season(2, cells=2)
    learner, stream = tw.Ensemble(K, experts=[season]), turns(T)
    run, best = tw.run(learner, stream), tw.best_in_hindsight(K, stream, context=season)
    bound = learner.policy_bound(run)
    assert run.losses.sum() - best.lower <= bound.regret
    assert run.violations.sum() <= min(bound.violation, 0.05 * T)
    assert tw.run(tw.Ensemble(K), stream).violations.sum() > 0.25 * T


def test_a_promise_is_the_formula_of_its_file():
    K, T, caution = Simplex(40), 2000, 10.0
    how = {"tolerance": 1e-4 / T, "calls_per_round": 8e4 * T + 4, "experts": ["a", "b"]}
    learner = tw.Ensemble(K, T, **how, loss_lipschitz=2.0, constraint_lipschitz=3.0)
    R, D, Lam = K.radius, K.diameter, math.log(6)
    e = 0.01 * R / math.sqrt(T)
    far, c = min(2 * R, D + e), math.sqrt(Lam) + (4 / 3 * Lam + 2) / math.sqrt(T)
    c += (far**2 / D**2 + far / D) / math.sqrt(2) + e * math.sqrt(T) / D
    share = 0.5 * c / 2
    regret = 2.0 * D * math.sqrt(T) * (c + 2 * share * caution)
    log = math.log((1 + c / 2 / caution + math.sqrt(T) / 2 / caution) / (1 - share))
    violation = 2 * 3.0 * D * math.sqrt(T) / 0.5 * log
    assert learner.guarantee()[:2] == pytest.approx((regret, violation))
    assert tw.Ensemble(Simplex(1)).guarantee()[:2] == (0.0, 0.0)


# --- decisions ------------------------------------------------------------------------------------


def test_names_are_told_apart():
    season, solves = tw.experts.Season(4), tw.experts.Resolve(headroom=0)
    learner = tw.Ensemble(Simplex(3), experts=[season, "a", solves, "a", solves, "season", "a (2)"])
    assert learner.names[4:8] == ("season", "a", "last, headroom 0", "a (2)")
    assert len(set(learner.names)) == 11
    kinds = [expert.kind for expert in learner.experts_of(learner.start())]
    assert kinds == ["descent"] * 4 + ["context"] + ["advice"] * 6
    run = tw.run(learner, with_knowledge(hostile("switching", Simplex(3), 20, 0), Simplex(3), 0))
    members = learner.experts_of(run.final_state)
    assert tuple(member.name for member in members) == learner.names
    assert run.measures.sum(axis=1) == pytest.approx(1.0)
    assert run.measures.mean(axis=0) == pytest.approx([member.mean_weight for member in members])


def test_what_it_needs_and_reads_is_what_its_members_need():
    K, linear, curved = Simplex(3), Linear(np.ones((1, 3))), LogWealth(np.ones((1, 3)))
    plain = tw.Ensemble(K, experts=["a"])
    assert (plain.needs, plain.reads(linear)) == (FirstOrder, FirstOrder)
    assert plain.reads(curved) is FullInformation
    solving = tw.Ensemble(K, experts=[tw.experts.Resolve()])
    assert (solving.needs, solving.reads(linear)) == (FullInformation, FullInformation)
    seen = FirstOrder(np.ones(3), 0.0, np.zeros(3), 2.0, 0.0, 1)
    with pytest.raises(errors.WrongType, match="re-solves with the functions themselves"):
        solving.update(solving.start(), seen)


@pytest.mark.parametrize("advice", [(), [tw.experts.Resolve(headroom=(0.0, 1.0))]])
def test_rounds_that_shared_a_point_come_at_once(advice):
    K = DIAMOND
    stream = hostile("switching", K, 24, 5)
    learner = tw.Ensemble(K, experts=[tw.experts.Season(6, cells=2), *advice])
    state, paid = learner.start(), 0.0
    for start, stop in ((0, 1), (1, 8), (8, 10), (10, 24)):
        part, x = stream[start:stop], learner.act(state)
        functions = FullInformation(part.losses, part.constraints)
        seen = first_order(*functions, x, part.constraints.values(x))
        state = learner.update(state, functions if advice else seen)
        paid += float(np.maximum(part.constraints.values(x), 0.0).sum())
        assert (state.t, state.dual.rounds) == (stop, stop)
        assert state.calls <= learner.calls_per_round * stop
    assert state.dual.violation == pytest.approx(paid)
    assert state.accounts.available[:4].tolist() == [24.0] * 4
    assert state.accounts.weights.sum() == pytest.approx(24.0)
    with pytest.raises(errors.TidewolfError):
        learner.update(state, FullInformation(stream.losses[:0], stream.constraints[:0]))
    session = tw.Session(learner)
    session.play()
    session.observe(loss=stream.losses, constraint=stream.constraints)
    assert session.rounds == 24
    assert K.infeasibility(session.play()) <= 1e-9


# --- what is known before a round -----------------------------------------------------------------


def test_advice_that_is_absent_sleeps_and_advice_outside_is_brought_in():
    K, learner = Simplex(3), tw.Ensemble(Simplex(3), experts=["a"], calls_per_round=5.0)
    session = tw.Session(learner)
    seen = {"loss_gradient": np.array([1.0, 0.0, -1.0]), "constraint_value": -1.0}
    for given_ in (None, {}, {"a": None}, {"a": [np.nan, 0.0, 1.0]}, {"somebody": [1.0, 0.0, 0.0]}):
        x = session.play(advice=given_)
        assert session.state.upcoming.points[-1] is None
        assert session.state.upcoming.p[-1] == 0.0
        assert K.infeasibility(x) <= 1e-12
        session.observe(**seen)
    assert learner.experts_of(session.state)[-1].rounds == 0
    session.play(advice={"a": [0.0, 0.0, 2.0]})
    z = session.state.upcoming.points[-1]
    assert K.infeasibility(z) <= 1e-9
    assert z == pytest.approx([0.0, 0.0, 1.0], abs=1e-2)
    session.observe(**seen)
    member = learner.experts_of(session.state)[-1]
    assert (member.rounds, member.outside) == (1, pytest.approx(1.0, abs=1e-2))
    before = learner.save(session.state)
    for wrong, error in (([1.0, 0.0], errors.WrongShape), (np.zeros((3, 1)), errors.WrongShape)):
        with pytest.raises(error):
            session.play(advice={"a": wrong})
        assert learner.save(session.state) == before
    with pytest.raises(errors.WrongType):
        session.play(advice=[1.0, 0.0, 0.0])


def test_advice_is_asked_for_before_the_round_is_shown():
    """Two points in turns: who answers with the best of the coming round wins it."""
    K, T = Simplex(2), 30
    best = np.eye(2)[np.arange(T) % 2]
    stream = tw.Stream(Linear(1.0 - best), advice={"a": best, "late": np.roll(best, 1, axis=0)})
    learner = tw.Ensemble(K, experts=["a", "late"])
    run = tw.run(learner, stream)
    assert [m.loss for m in learner.experts_of(run.final_state)[-2:]] == [None, None]
    curved = tw.run(tw.Ensemble(K, experts=["a", "late", tw.experts.Resolve(headroom=0)]), stream)
    *_, good, late, solved = curved.learner.experts_of(curved.final_state)
    assert (good.loss, late.loss, solved.loss) == (0.0, T, T - 1)
    assert good.weight > 0.99
    assert run.losses[5:].sum() <= 1.0


# --- states ---------------------------------------------------------------------------------------

LATE = [tw.experts.Resolve("2h", headroom=1.0), "a", tw.experts.Season("3h", cells=2)]
SAVED = {
    "advice": (DIAMOND, ["a", tw.experts.Resolve(), tw.experts.Resolve(3)]),
    "columns": (L2Ball(3), LATE),
    "product": (PRODUCTS[2], ["a", tw.experts.Categories(3)]),
    "shares": (SimplexProduct([2, 3]), [tw.experts.Resolve(columns=True)]),
    "commodities": (tw.sets.MultiFlow.examples()[0], ["a", tw.experts.Resolve(headroom=0)]),
    "matrices": (tw.sets.BoundedPSD(2, 1.0), ["a"]),
}


def known_to(K, rounds=8):
    return with_knowledge(hostile("switching", K, rounds, 2), K, 2)


@pytest.mark.parametrize(("K", "experts"), SAVED.values(), ids=SAVED)
def test_every_law_holds_with_what_is_known(K, experts):
    learner = tw.Ensemble(K, experts=experts, step_scales=(0.1, 1.0))
    tw.testing.check_learner(learner, known_to(K, 5))


def forgeries():
    def part(of, **parts):
        return lambda s: s._replace(**{of: getattr(s, of)._replace(**parts)})

    none = np.zeros(2)
    return {
        "one descent less": lambda s: s._replace(descents=s.descents[1:]),
        "weights of nobody": part("upcoming", p=none),
        "no totals": part("mixer", totals=none),
        "a point outside": part("upcoming", x=np.full(3, 9.0)),
        "NaN": lambda s: part("accounts", guard=s.accounts.guard * np.nan)(s),
        "text": lambda s: s._replace(oracle_budget="much"),
    }


TWO = [tw.experts.Season(7), "a", tw.experts.Categories(2)]
NONSENSE = [("experts", given) for given in ([3], 3, [None], TWO)]
NONSENSE += [("step_scales", given) for given in ((), (1.0, 1.0), (-1.0,))]


@pytest.mark.parametrize(("name", "given_"), NONSENSE, ids=str)
def test_settings_that_make_no_sense_are_refused(name, given_):
    with pytest.raises(errors.TidewolfError):
        tw.Ensemble(Simplex(3), **{name: given_})


def test_experts_may_be_given_alone_and_sessions_refuse_what_they_cannot_use():
    K = Simplex(3)
    assert tw.Ensemble(K, experts=tw.experts.Named("a")) == tw.Ensemble(K, experts=["a"])
    solving = tw.Ensemble(K, experts=tw.experts.Resolve())
    assert solving.experts == (tw.experts.Resolve(),)
    with pytest.raises(errors.NotSupported, match="FirstOrder"):
        tw.Session(solving).observe(loss_gradient=np.ones(3), constraint_value=0.0)
    context = tw.Session(tw.Ensemble(K, experts=[tw.experts.Categories(2)]))
    with pytest.raises(errors.InvalidInput):
        context.play(context=tw.experts.Season(7, cells=2))


@pytest.mark.parametrize("forge", forgeries().values(), ids=forgeries())
def test_a_state_of_another_hand_is_refused(forge):
    K = Simplex(3)
    learner = tw.Ensemble(K, experts=[tw.experts.Season(4), "a", tw.experts.Resolve()])
    state = tw.run(learner, with_knowledge(hostile("switching", K, 6, 0), K, 0)).final_state
    state = learner.with_info(state, tw.RoundInfo(advice={"a": K.center}))
    assert learner.save(learner.load(learner.save(state))) == learner.save(state)
    with pytest.raises(errors.BrokenFile, match=r"no state of Ensemble: .*\.$"):
        learner.load(learner.save(forge(state)))


def test_by_values_a_member_at_its_minimum_counts_all_the_same():
    """Its gradient is 0, and what the mix loses to it is not."""
    T = 60
    squares = np.full((T, 2), 0.5), np.tile([0, 1], (T, 1)), (2,)
    losses = tw.functions.Squared(*squares, exp_concavity=0.5)
    points = {"corner": np.tile([1.0, 0.0], (T, 1))}
    learner = tw.Ensemble(Simplex(2), step_scales=(1.0,), experts=["corner"])
    run = tw.run(learner, tw.Stream(losses, advice=points))
    assert run.certificate.holds
    assert run.regret[1] <= run.bound.regret + 1e-9
    assert run.regret[0] > 0.0


def test_what_was_known_of_a_round_that_was_not_seen_is_over():
    points = np.tile([1.0, 0.0, 0.0], (6, 1))
    points[3] = np.nan
    seen = np.array([True, True, False, True, True, True])
    stream = tw.Stream(Linear(np.ones((6, 3))), seen=seen, advice={"mine": points})
    learner = tw.Ensemble(Simplex(3), experts=["mine"])
    *_, last = tw.play(learner, stream)
    assert learner.experts_of(last.state)[-1].rounds == 4


def test_a_member_where_the_loss_has_no_value_does_not_stop_the_round():
    session, returns = tw.Session(tw.Ensemble(Simplex(3), experts=["mine"])), np.ones(3)
    for t in range(5):
        session.play(advice={"mine": [1.0, 0.0, 0.0]})
        returns[0] = float(t != 2)
        session.observe(loss=LogWealth.one(returns))
    assert session.rounds == 5


def test_the_features_of_a_context_of_ones_own_are_checked():
    class Twice(tw.experts.Context):
        cells = 2

        def features(self, known, t):
            return np.array([0, 1]), np.array([1.0, 1.0])

    with pytest.raises(errors.InvalidInput, match="of sum 1"):
        tw.Ensemble(Simplex(2), experts=[Twice()]).start()


TIED = {
    "routing, few calls": (tw.problems.routing(rounds=40), {"calls_per_round": 0.05}),
    "simplex": (
        tw.problems.adversarial(rounds=40, kind="opposing", K=Simplex(30)),
        {"calls_per_round": 0.1, "step_scales": (1.0, 2.0, 4.0)},
    ),
}
"""At first several iterates on the ball are equally far from the center."""


@pytest.mark.parametrize("name", TIED)
def test_rounding_does_not_decide_which_expert_the_oracle_serves(name, monkeypatch):
    problem, given_ = TIED[name]
    stream, rng = problem.stream, np.random.default_rng(0)

    def served(stream):
        """The oracle calls of each expert so far, after each round."""
        learner = tw.Ensemble(problem.K, **given_)
        after = [learner.experts_of(played.state) for played in tw.play(learner, stream)]
        return [[one.calls for one in each] for each in after]

    due = served(stream)
    for _ in range(2):
        near = stream.losses.C * (1.0 + 1e-13 * rng.standard_normal(stream.losses.C.shape))
        assert served(tw.Stream(Linear(near), stream.constraints)) == due
    monkeypatch.setattr(tw.Ensemble, "compiled", None)
    assert served(stream) == due
