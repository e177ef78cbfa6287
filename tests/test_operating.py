"""A controller's second week at once: late, twice, overridden, expired, out of service, on a
deadline, over a changed set, gone back, saved and killed; and what holds all the same.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from killed import as_if_killed, saved
from polytopes import edges_of
from tidewolf.core import conforming, errors, feedback
from tidewolf.functions import Capacity, Linear
from tidewolf.learners import migration
from tidewolf.methods import available, base, capabilities
from tidewolf.methods.late import next_round

LINKS = [("s", "a"), ("a", "t"), ("s", "b"), ("b", "t"), ("a", "b"), ("s", "c"), ("c", "t")]
NETWORKS = (LINKS[:5], LINKS, LINKS[4::-1])
NETWORKS = [tw.sets.FlowPolytope.from_edges(o, source="s", target="t") for o in NETWORKS]
BEST = dict(zip(LINKS[:4], (0.6, 0.6, 0.4, 0.4), strict=True))
"""A flow that keeps every limit, on links that never go."""
CAP = 0.15


@dataclass(frozen=True, eq=False, repr=False)
class Server(tw.experts.Adviser):
    """Proposes the center when it is told a context, is down where that is 1, learns nothing."""

    names = ("server",)
    waits = True

    def start(self, K):
        return ()

    def observe(self, K, state, seen, x):
        return state

    def migrated(self, K, state, entries):
        return state

    def propose(self, K, state, known, t, budget, vertices):
        if known is None or known.context is None:
            return tw.experts.Proposals((None,), state)
        if known.context == 1:
            raise RuntimeError("the server is down")
        return tw.experts.Proposals((K.center,), state)


def made(kind, K, per_constraint, capped):
    how = {"per_constraint": per_constraint, "max_move": CAP if capped else None}
    if kind == "paper":
        return tw.PrimalDual(K, horizon=40)
    if kind == "descent":
        return tw.LyapunovDescent(K, **how)
    if kind == "plain":
        return tw.Ensemble(K, step_scales=(0.3, 1.0), **how)
    season, re_solving = tw.experts.Season(5, cells=2), tw.experts.Resolve(headroom=(0, 2))
    experts = [season, "a", Server(), re_solving]
    return tw.Ensemble(K, step_scales=(0.3, 1.0), experts=experts, **how)


def answer(session, do):
    """What a session answers, refusals too; those change nothing."""
    before = session.state
    try:
        x = do(session)
    except errors.TidewolfError as error:
        refusal = type(error), str(error)
    else:
        return None if x is None else x.tobytes()
    after = session.state
    assert after is before or session.learner.save(after) == session.learner.save(before)
    assert refusal[1].endswith(".")
    return refusal


def member(K, rng):
    part = rng.dirichlet(np.ones(3))
    return part[0] * K.center + sum(p * K.lmo(rng.standard_normal(K.shape)) for p in part[1:])


class Model:
    """What really happened, written plainly; copied when the session may go back to it."""

    def __init__(self):
        self.regret = self.violation = 0.0
        self.epoch = []
        self.observed = {}
        self.last = None
        """what was played last, where it is known"""
        self.newest = -1
        """the newest round that was decided, and looked at"""

    def copy(self):
        other = Model()
        other.__dict__.update(self.__dict__)
        other.epoch, other.observed = [*self.epoch], {**self.observed}
        return other


class Week:
    """One session in memory, one that is saved and loaded, and one in a file, and the model."""

    def __init__(self, folder, seed, kind, *, per_constraint, capped, expire, every, history):
        self.folder, self.rng, self.kind = folder, np.random.default_rng(seed), kind
        self.made = lambda K: made(kind, K, per_constraint, capped)
        self.network, self.capped, self.expire = 0, capped, {"expire_after": expire}
        self.capped = capped and kind != "paper"
        self.how = {"snapshot_every": every, "keep_history": history}
        self.learner, self.path = self.made(NETWORKS[0]), folder / "session.db"
        self.memory = tw.Session(self.learner, **self.expire)
        self.loaded = tw.Session(self.learner, **self.expire)
        self.storage = self._opened()
        self.model, self.past = Model(), [(0, Model())]
        self.bare = set()
        """rounds that were asked for with nothing told"""
        self.out = {}
        self.held = {}
        """the same right after the last change of the set"""
        self.observes(0)

    def _opened(self):
        return tw.Session.open(self.path, self.learner, **self.how, **self.expire)

    @property
    def K(self):
        return NETWORKS[self.network]

    def does(self, do):
        """What all three answer, which is the same to the bit."""
        answers = [answer(one, do) for one in (self.memory, self.loaded, self.storage)]
        assert answers[0] == answers[1] == answers[2]
        assert self.memory.pending == self.loaded.pending == self.storage.pending
        return answers[0]

    def plays(self, **known):
        """Plays, and again; None where that was refused."""
        before, model = next_round(self.memory.state), self.model.copy()
        found = self.does(lambda one: one.play(**known))
        if isinstance(found, tuple):
            return None
        assert self.does(lambda one: one.play(**known)) == found
        x = np.frombuffer(found)
        assert conforming.is_member(self.K, x)
        for number in range(before + 1, next_round(self.memory.state) + 1):
            self.past.append((number, model.copy()))
        self.looks()
        return x

    def looks(self):
        """At rounds that were decided since."""
        for one in self.memory.state.pending:
            if one.round > self.model.newest:
                self.defer(one.round, one.x)

    def defer(self, number, x):
        out = self.out.get(number, [])
        assert conforming.is_member(self.K, x)
        assert not x[out].any()
        # rounds that expired at once were not looked at
        follows = self.model.last is not None and number == self.model.newest + 1
        if self.capped and follows and number not in self.out:
            assert available.distance_moved(x, self.model.last) <= CAP + 1e-9
        self.model.last, self.model.newest = x, number

    def known(self, n, deadline):
        advice = member(self.K, self.rng)
        told = {"advice": {"a": advice}, "context": n % 3}
        if deadline:
            return {**told, "deadline": 20.0}
        return told if n % 3 != 1 else {"time": 60.0 * n}

    def round_of(self):
        """A round whose limits the best flow keeps."""
        links = edges_of(self.K)
        star = np.array([BEST.get(link, 0.0) for link in links])
        room = self.rng.exponential(0.1, len(links)) * (self.rng.random(len(links)) < 0.7)
        costs = self.rng.standard_normal(len(links)) + np.linspace(0.0, 1.0, len(links))
        return {"costs": costs, "capacities": star + room}

    def observes(self, number, numbered=True, overridden=False, gradient=False):
        state, model = self.memory.state, self.model.copy()
        own = next((one for one in state.pending if one.round == number), None)
        x = self.learner.act(state) if own is None else own.x
        if own is None and number > self.model.newest:
            self.defer(number, x)
        seen = self.round_of()
        costs, room = seen["costs"], seen["capacities"]
        if gradient:  # of the same loss, where it was played, under a limit that is kept
            seen, room = {"loss_gradient": costs, "constraint_value": -1.0}, np.full_like(room, 9.0)
        if overridden:
            seen["played"] = member(self.K, self.rng)
        told = {**seen, "round": number} if numbered else seen
        assert self.does(lambda one: one.observe(**told)) is None
        played = seen.get("played", x)
        self.model.epoch.append((costs, room, played, x))
        is_remembered = self.memory._keeper.numbered  # not, if it went back to nothing before
        self.model.observed[number] = {**seen, "round": number} if is_remembered else None
        upcoming = next_round(self.memory.state)
        if number >= upcoming - 1:
            self.model.last = played
        if own is None:
            self.past.append((upcoming, model if state.pending else self.model.copy()))

    def stops(self, killed):
        self.loaded.save(self.folder / "state")
        self.loaded = tw.Session.load(self.folder / "state", self.learner, **self.expire)
        copy = as_if_killed(self.path) if killed else self.path
        self.storage.close()
        self.path = copy
        self.storage = self._opened()
        self.is_one()

    def goes_back(self, number):
        if number < self.past[0][0]:
            with pytest.raises(errors.InvalidInput, match="cannot be gone back to"):
                self.memory.rollback(number)
            return
        for one in (self.memory, self.storage):
            one.rollback(number)
        assert saved(self.memory) == saved(self.storage)
        self.memory.save(self.folder / "back")
        self.loaded = tw.Session.load(self.folder / "back", self.learner, **self.expire)
        while self.past[-1][0] > number:
            self.past.pop()
        self.model = self.past[-1][1].copy()
        assert self.memory.rounds == len(self.model.observed)
        self.bare = {one for one in self.bare if one < number}
        self.out = {one: out for one, out in self.out.items() if one < number}
        if number == self.past[0][0]:
            self.out = {**self.held}

    def migrates(self, network):
        self.settle_up()
        model, upcoming = self.model, next_round(self.memory.state)
        last = migration.Move(self.K, NETWORKS[network])
        self.network, self.learner = network, self.made(NETWORKS[network])
        x = None if model.last is None else last.point(model.last)
        if last.point(self.memory.learner.act(self.memory.state)) is None:
            self.out.pop(upcoming, None)  # what was told of it is to be told again
        for one in (self.memory, self.loaded, self.storage):
            one.migrate(self.learner)
        self.is_one()
        assert conforming.is_member(self.K, self.learner.act(self.memory.state))
        model.last, model.epoch = x, []
        model.observed = dict.fromkeys(model.observed)
        to = last.to.tolist()
        self.out = {one: [to[i] for i in out if to[i] >= 0] for one, out in self.out.items()}
        self.bare.discard(upcoming)
        self.held = {**self.out}
        self.past = [(upcoming, model.copy())]

    def settle_up(self):
        model = self.model
        losses, violations, _ = self.totals()
        model.regret, model.violation = model.regret + losses, model.violation + violations.sum()

    def totals(self):
        """Regret and violations of what was played, and those of each limit by the decisions, in
        the present stretch.
        """
        if not self.model.epoch:
            return 0.0, np.zeros(0), np.zeros(self.K.shape)
        costs, room, xs, own = (np.array(each) for each in zip(*self.model.epoch, strict=True))
        best = tw.best_in_hindsight(self.K, tw.Stream(Linear(costs), Capacity(room)))
        assert best.feasible
        over, each = (np.maximum(each - room, 0.0) for each in (xs, own))
        return float((costs * xs).sum()) - best.upper, over.max(axis=1), each.sum(axis=0)

    def holds(self):
        """The bounds of what was really played, the guards, and of each limit."""
        state, model = self.memory.state, self.model
        assert state.t == len(model.observed)
        if self.kind == "paper":  # its bound is not of what was overridden
            return
        none, counts = np.zeros(0), np.zeros(0, dtype=np.int64)
        record = base.Record(none, none, counts, none, state, counts, none)
        bound = self.learner.bound(record)
        regret, violations, each = self.totals()
        slack = 1e-6 * (1.0 + abs(bound.regret))
        assert model.regret + regret <= bound.regret + slack
        assert model.violation + violations.sum() <= bound.violation * (1.0 + 1e-9) + 1e-9
        for row, total in zip(self.learner.limit_bounds(record), each, strict=False):
            assert row.violation == pytest.approx(total, abs=1e-9)
            assert total <= row.bound * (1.0 + 1e-9) + 1e-9
        mixes = isinstance(self.learner, capabilities.MixesExperts)
        for guard in self.learner.guards(state) if mixes else ():
            assert guard.left is None or guard.left <= guard.right + 1e-6 * (1.0 + abs(guard.right))

    def step(self, kind, n):
        session = self.memory
        upcoming, stands = next_round(session.state), session.round
        waits = session.pending
        some = [*waits, stands][n % (len(waits) + 1)]
        is_new = upcoming not in self.bare and upcoming not in session._keeper.place.info_ids
        match kind:
            case 0 if n % 3 == 2 and upcoming:
                self.does(lambda one: one.play(round=n % upcoming))
            case 0:
                if not waits:
                    self.bare.add(upcoming)
                self.plays()
            case 1 | 2 if is_new:
                self.out.pop(upcoming, None)  # told anew after a change
                self.plays(round=upcoming, **self.known(n, deadline=kind == 2))
            case 3 if is_new:
                out = sorted({n % self.K.shape[0], n // 2 % self.K.shape[0]})
                names = [self.K.names[i] for i in out]
                known = self.known(n, deadline=n % 4 == 0)
                self.out[upcoming] = out
                x = self.plays(round=upcoming, unavailable=names, **known)
                if x is None:
                    del self.out[upcoming]
                else:
                    assert not x[out].any()
            case 4 | 1 | 2 | 3:
                self.plays(round=upcoming + n % 3)
                self.bare.add(upcoming)
            case 5:
                self.observes(stands, numbered=bool(n % 2))
            case 6:
                self.observes(some)
            case 7:
                gradient = n % 3 == 2 and self.learner.needs is feedback.FirstOrder
                gradient = gradient and not capabilities.is_per_constraint(self.learner)
                self.observes(some, overridden=True, gradient=gradient)
            case 8 if self.model.observed:  # again, and otherwise
                number = sorted(self.model.observed)[n % len(self.model.observed)]
                seen = self.model.observed[number]
                if seen is not None:
                    assert self.does(lambda one: one.observe(**seen)) is None
                other = {**self.round_of(), "round": number}
                assert isinstance(self.does(lambda one: one.observe(**other)), tuple)
            case 9 | 8:
                self.stops(killed=bool(n % 2))
            case 10 if self.how["keep_history"]:
                self.goes_back(max(upcoming - n % 4, 0))
            case 11 if self.kind != "paper":
                self.migrates(n % len(NETWORKS))
            case _:  # nonsense
                bad = self.round_of()
                wrong = [
                    {**bad, "round": upcoming + 1},
                    {**bad, "played": 2.0 * self.K.center},
                    {"costs": [np.nan] * self.K.shape[0], "round": some},
                    {"costs": [1.0], "round": some},
                ]
                assert isinstance(self.does(lambda one: one.observe(**wrong[n % 4])), tuple)
        self.looks()

    def is_one(self):
        """All three are the same session."""
        assert saved(self.memory) == saved(self.loaded) == saved(self.storage)


def lived(script, kind, seed, **how):
    with tempfile.TemporaryDirectory() as place:
        week = Week(Path(place), seed, kind, **how)
        try:
            for n, one in enumerate(script):
                week.step(*one)
                if n % 5 == 4:
                    week.is_one()
                    week.holds()
            week.stops(killed=True)
            week.holds()
        finally:
            week.storage.close()


# --- what broke -----------------------------------------------------------------------------------


def test_nobody_ignores_an_outage_in_a_late_stream():
    K, late = NETWORKS[0], {"arrives": [1, 2, 2], "unavailable": [None, "a > b", None]}
    stream = tw.Stream(Linear(np.ones((3, 5))), **late)
    with pytest.raises(errors.NotSupported, match="cannot leave out"):
        tw.run(tw.LyapunovFrankWolfe(K), stream)


@pytest.mark.parametrize("per_constraint", [False, True])
@pytest.mark.parametrize("learner", [tw.LyapunovDescent, tw.Ensemble], ids=lambda one: one.__name__)
@pytest.mark.parametrize("turned", [-1.0, -1.0 + 1e-9])
def test_limits_of_rounds_that_arrive_together_may_cancel_out(learner, per_constraint, turned):
    K = tw.sets.Simplex(2)
    limits = tw.functions.Affine([[1.0, 0.0], [turned, 0.0], [1.0, 0.0]], [0.4, -0.3, 0.35])
    late = {"arrives": [1, 1, 2], "played": [*np.eye(2), [np.nan] * 2]}
    stream = tw.Stream(Linear([[0.0, 1.0]] * 3), limits, **late)
    run = tw.run(learner(K, per_constraint=per_constraint), stream)
    assert run.violations.sum() <= run.bound.violation < 10.0
    assert run.regret[1] <= run.bound.regret


@pytest.mark.parametrize("learner", [tw.LyapunovDescent, tw.Ensemble], ids=lambda one: one.__name__)
def test_rounds_that_arrive_together_may_have_gained_more_than_any_point(learner):
    K, T = tw.sets.Simplex(2), 20
    costs, limits = [[50.0, 0.0], [-50.0, 0.0]], tw.functions.Affine([[0.0, 1.0]] * T, [0.5] * T)
    late = {"arrives": np.repeat(np.arange(1, T, 2), 2), "played": [[0, 1], [1, 0]] * (T // 2)}
    run = tw.run(learner(K, caution=1.0), tw.Stream(Linear(costs * (T // 2)), limits, **late))
    assert run.bound.violation is not None
    assert run.violations.sum() <= run.bound.violation


@pytest.mark.parametrize("per_constraint", [False, True])
@pytest.mark.parametrize("learner", [tw.LyapunovDescent, tw.Ensemble], ids=lambda one: one.__name__)
def test_rounding_at_the_only_point_is_no_breach(learner, per_constraint):
    K = tw.sets.FlowPolytope.from_edges([("s", "a"), ("a", "t")], source="s", target="t")
    for breach, bound in ((2.3e-16, 0.0), (1e-6, None)):
        session = tw.Session(learner(K, per_constraint=per_constraint))
        for _ in range(3):
            gradients = {"loss_gradient": [1.0, 2.0], "constraint_gradient": [1.0, 0.0]}
            session.observe(constraint_value=breach, **gradients)
        assert session.learner.bound_of(session.state).violation == bound


def test_headroom_is_that_of_decisions_though_the_next_round_is_settled_in_between():
    """Room falls by 0.01 a round; data that is 3 rounds old lacks 0.03."""
    session = tw.Session(tw.Ensemble(tw.sets.Simplex(2), experts=[tw.experts.Resolve()]))
    for t in range(24):
        session.play(round=t)
        if t >= 2:
            session.observe(round=t - 2, costs=[0.0, 1.0], capacities=[0.9 - 0.01 * (t - 2), 1.0])
    assert session.state.advisers[0].drops.usual() == pytest.approx([0.03, 0.0])


def test_a_session_that_went_back_to_nothing_numbers_rounds_as_a_reopened_one(tmp_path):
    lived([(10, 1), (8, 0), (5, 0), (8, 0)], "descent", 0, per_constraint=False, capped=False,
          expire=None, every=1, history=True)  # fmt: skip


# --- all at once ----------------------------------------------------------------------------------


@pytest.mark.soak_examples(400)
@pytest.mark.parametrize("kind", ["descent", "plain", "everything", "paper"])
@settings(max_examples=6)
@given(
    script=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 11)), min_size=3, max_size=25),
    seed=st.integers(0, 99),
    per_constraint=st.booleans(),
    capped=st.booleans(),
    expire=st.sampled_from([None, 1, 3]),
    every=st.sampled_from([1, 3, 12]),
    history=st.booleans(),
)
def test_all_that_happens_to_an_operator_at_once(kind, script, seed, **how):
    lived(script, kind, seed, **how)
