"""The one loop: the same as written by hand, resumable, and exact in what it reveals."""

import pickle
import tracemalloc
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape, WrongType
from tidewolf.core.feedback import Bandit, FirstOrder, FullInformation, first_order
from tidewolf.functions import Affine, Capacity, Linear, Quadratic
from tidewolf.learners import LyapunovDescent
from tidewolf.methods import capabilities as able
from tidewolf.methods.base import Bound, Learner
from tidewolf.methods.capabilities import Capability
from tidewolf.sets import Simplex

RNG = np.random.default_rng(0)
STREAM = tw.Stream(Linear(RNG.standard_normal((23, 4))), Capacity(RNG.uniform(0.1, 0.6, (23, 4))))


class Step(NamedTuple):
    t: int = 0
    calls: int = 0
    distance: float = 0.0
    advised: Any = None


@dataclass(frozen=True, eq=False, repr=False)
class Listener(Learner[Step]):
    """Plays the center and keeps what it is shown, three rounds at a time."""

    needs: ClassVar[Any] = FirstOrder
    state_type: ClassVar = Step
    heard: ClassVar[list[Any]] = []
    left: ClassVar[int] = 3

    K: Any

    def start(self):
        self.heard.clear()
        return Step()

    def act(self, state):
        return self.K.center

    def rounds_left(self, state):
        return self.left

    def update(self, state, seen):
        self.heard.append(seen)
        return state._replace(t=state.t + seen.rounds)

    def bound(self, record):
        return Bound(None, None, "Nothing is promised.")

    @classmethod
    def examples(cls, K, horizon):
        return (cls(K),)


@pytest.mark.parametrize("block", [1, 3, 50])
def test_play_is_the_loop_written_by_hand(block):
    learner = LyapunovDescent(Simplex(4), horizon=10, block=block)
    state, t, by_hand = learner.start(), 0, []
    while t < len(STREAM):
        k, x = min(learner.rounds_left(state), len(STREAM) - t), learner.act(state)
        losses, constraints = STREAM.losses[t : t + k], STREAM.constraints[t : t + k]
        state = learner.update(state, first_order(losses, constraints, x, constraints.values(x)))
        by_hand.append((x, losses.values(x), constraints.values(x), learner.save(state)))
        t += k
    played = list(tw.play(learner, STREAM))
    assert len(played) == len(by_hand)
    for ours, (x, losses, constraints, saved) in zip(played, by_hand, strict=True):
        assert ours.x.tobytes() == x.tobytes()
        np.testing.assert_allclose(ours.losses, losses, rtol=1e-14)  # other sums
        np.testing.assert_array_equal(ours.constraints, constraints)
        assert learner.save(ours.state) == saved


def test_play_is_lazy_and_resumes_from_a_state():
    learner = LyapunovDescent(Simplex(4), horizon=10)
    assert next(tw.play(learner, STREAM)).state.t == 1
    whole, first = list(tw.play(learner, STREAM)), list(tw.play(learner, STREAM[:9]))
    rest = list(tw.play(learner, STREAM[9:], first[-1].state))
    assert [p.x.tobytes() for p in whole] == [p.x.tobytes() for p in (*first, *rest)]
    assert learner.save(whole[-1].state) == learner.save(rest[-1].state)
    assert list(tw.play(learner, STREAM[:0])) == []


def test_first_order_feedback_is_the_sums_over_the_rounds():
    learner = Listener(Simplex(4))
    x, C = learner.K.center, STREAM.losses.C
    rows = Affine(RNG.standard_normal((23, 4)), np.zeros(23))
    for constraints in (STREAM.constraints, rows, Affine(0.0 * C, np.ones(23))):
        list(tw.play(learner, tw.Stream(STREAM.losses, constraints)))
        assert [seen.rounds for seen in learner.heard] == [3] * 7 + [2]
        for i, seen in enumerate(learner.heard):
            rounds = slice(3 * i, min(3 * i + 3, 23))
            values = constraints[rounds].values(x)
            broken = constraints[rounds].gradients(x)[values > 0]
            np.testing.assert_allclose(seen.loss_gradient, C[rounds].sum(axis=0))
            assert seen.violation == pytest.approx(values[values > 0].sum())
            np.testing.assert_allclose(seen.constraint_gradient, broken.sum(axis=0), atol=1e-15)
            norms = [np.linalg.norm(rows, axis=1).max(initial=0.0) for rows in (C[rounds], broken)]
            assert [seen.loss_slope, seen.constraint_slope] == pytest.approx(norms)


class Explorer(Listener):
    """Plays given points."""

    needs: ClassVar[Any] = Bandit
    points: ClassVar[Any] = RNG.dirichlet(np.ones(4), 23)

    def acts(self, state, k):
        return self.points[state.t : state.t + k]


def test_bandit_feedback_is_two_values_a_round_each_at_its_own_point(monkeypatch):
    learner, points = Explorer(Simplex(4)), Explorer.points
    played = list(tw.play(learner, STREAM))
    assert [p.x.shape for p in played] == [(3, 4)] * 7 + [(2, 4)]
    assert np.concatenate([p.x for p in played]).tobytes() == points.tobytes()
    for i, (p, seen) in enumerate(zip(played, learner.heard, strict=True)):
        assert type(seen) is Bandit
        rounds = slice(3 * i, min(3 * i + 3, 23))
        for told, shown, functions in (
            (seen.loss_values, p.losses, STREAM.losses),
            (seen.constraint_values, p.constraints, STREAM.constraints),
        ):
            np.testing.assert_array_equal(told, shown)
            np.testing.assert_allclose(told, functions[rounds].values_at(points[rounds]))
    outside = points + np.where(np.arange(23) == 11, 1.0, 0.0)[:, None]
    monkeypatch.setattr(Explorer, "points", outside)
    assert tw.run(learner, STREAM).max_infeasibility == pytest.approx(4.0)


def test_what_cannot_be_played_is_refused(monkeypatch):
    for error, call in (
        (WrongType, lambda: tw.play(LyapunovDescent(Simplex(4)), STREAM.losses)),
        (WrongShape, lambda: tw.play(LyapunovDescent(Simplex(3)), STREAM)),
        (WrongShape, lambda: tw.run(LyapunovDescent(Simplex(3)), STREAM)),
        (WrongType, lambda: tw.Stream(3, STREAM.constraints)),
        (WrongShape, lambda: tw.Stream(STREAM.losses, STREAM.constraints[1:])),
        (WrongShape, lambda: tw.Stream(STREAM.losses, Capacity(np.ones((23, 2))))),
    ):
        with pytest.raises(error):
            call()
    monkeypatch.setattr(Listener, "left", 0)
    with pytest.raises(InvalidInput, match="rounds_left"):
        list(tw.play(Listener(Simplex(4)), STREAM))


# --- what is known before a round -----------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Obedient(Listener):
    """Plays what it is advised, a round at a time, and writes down what happens in which order."""

    left: ClassVar[int] = 1

    def with_info(self, state, known):
        self.heard.append(("known", state.t, known.time))
        return state._replace(advised=known.advice["oracle"])

    def act(self, state, info=None):
        self.heard.append(("act", state.t))
        return self.K.center if state.advised is None else state.advised

    def update(self, state, seen):
        self.heard.append(("update", state.t))
        return Step(state.t + 1)


class Watched(Linear):
    """Losses that write down when they are shown."""

    def view(self, rounds):
        Obedient.heard.append(("shown", rounds.start))
        return super().view(rounds)


def spied(mask=None):
    rng = np.random.default_rng(3)
    points = rng.dirichlet(np.ones(4), 9)
    losses, limits = Watched(rng.standard_normal((9, 4))), Capacity(np.ones((9, 4)))
    known = {"time": np.arange(9.0) + 100.0, "advice": {"oracle": points}}
    return points, tw.Stream(losses, limits, mask, **known)


def test_what_is_known_of_a_round_is_said_before_anything_of_it_is_shown():
    learner = Obedient(Simplex(4))
    points, stream = spied()
    assert np.array([played.x for played in tw.play(learner, stream)]).tobytes() == points.tobytes()
    said = list(learner.heard)
    for t in range(9):
        assert [entry[0] for entry in said if entry[1] == t] == ["known", "act", "shown", "update"]
        assert said.index(("known", t, 100.0 + t)) < said.index(("shown", t))
        if t:
            assert said.index(("update", t - 1)) < said.index(("known", t, 100.0 + t))


def test_rounds_that_are_not_seen_are_played_with_what_is_known_of_them():
    learner = Obedient(Simplex(4))
    mask = np.array([True, False, False, True, True, False, True, True, False])
    points, stream = spied(mask)
    played = list(tw.play(learner, stream))
    assert np.array([one.x for one in played]).tobytes() == points.tobytes()
    assert played[-1].state.t == mask.sum()


def test_the_public_face_of_a_learner_is_small():
    names = {name for name in dir(Learner) if not name.startswith("_")}
    assert len(names) <= 12


def test_a_learner_of_ones_own_needs_no_capability():
    learner, known = Listener(Simplex(4)), tw.RoundInfo(time=3.0)
    state = learner.start()
    assert able.with_info(learner, state, known) is state
    assert able.acts(learner, state, 2).tolist() == [learner.K.center.tolist()] * 2
    assert able.feedback_read(learner, STREAM.losses) is FirstOrder
    assert able.committed(learner, state) is state
    assert able.is_committed(learner, state)
    assert able.beginning(learner) == state
    assert (able.experts_of(learner, state), able.kernel_of(learner)) == ((), None)
    assert not able.is_per_constraint(learner)
    nothing = able.diagnosed(learner)
    assert (nothing.slopes(state), nothing.last_projection(state)) == (None, None)
    assert (nothing.limit_price(state), nothing.limit_prices(state)) == (None, None)
    with pytest.raises(NotSupported, match="in order"):
        able.late_feedback(learner)
    with pytest.raises(NotSupported, match="cannot leave out"):
        able.with_info(learner, state, tw.RoundInfo(unavailable=[1]))
    with pytest.raises(NotSupported, match="another learner"):
        tw.Session(learner).migrate(learner)


@pytest.mark.parametrize("kind", Capability.__subclasses__(), ids=lambda kind: kind.__name__)
def test_a_class_with_all_methods_of_a_capability_has_it(kind):
    names = [name for name in vars(kind) if not name.startswith("_")]
    assert 1 <= len(names) <= 5
    assert issubclass(type("Has", (), dict.fromkeys(names)), kind)
    assert not issubclass(type("Lacks", (), dict.fromkeys(names[1:])), kind)


def test_side_information_is_checked():
    learner, known = Obedient(Simplex(4)), tw.RoundInfo(time=3.0)
    for bad in (3.0, (3.0, None, None, None, None), {"time": 3.0}, None):
        with pytest.raises(WrongType, match="RoundInfo"):
            learner.with_info(learner.start(), bad)
    for ask in (lambda state: learner.with_info(state, known), learner.act):
        with pytest.raises(WrongType, match="a state of its own"):
            ask(())


@dataclass(frozen=True, eq=False, repr=False)
class Reader(Listener):
    """Reads the functions of curved losses, gradients of others."""

    def reads(self, losses):
        return FirstOrder if isinstance(losses, Linear) else FullInformation

    def rounds_at_once(self, state):
        return 3


def test_a_learner_is_told_what_it_reads_of_such_losses():
    learner = Reader(Simplex(4))
    curved = Quadratic(np.tile(np.eye(4), (6, 1, 1)), np.zeros((6, 4)))
    for losses, kind in ((STREAM.losses[:6], FirstOrder), (curved, FullInformation)):
        list(tw.play(learner, tw.Stream(losses, STREAM.constraints[:6])))
        assert [type(seen) for seen in learner.heard] == [kind] * 2
    assert learner.heard[1] == FullInformation(curved[3:], STREAM.constraints[3:6])


# --- rounds that come one by one ------------------------------------------------------------------


def feeds(stream):
    """The rounds of a stream of linear losses and capacities, in every form a feed may have."""
    rounds, costs, capacities = range(len(stream)), stream.losses.C, stream.constraints.c
    yield (stream[t : t + 1] for t in rounds)
    yield ((stream.losses[t : t + 1], stream.constraints[t : t + 1]) for t in rounds)
    yield (FullInformation(stream.losses[t : t + 1], stream.constraints[t : t + 1]) for t in rounds)
    yield zip(costs, capacities, strict=True)
    yield ([c.tolist(), limit.tolist()] for c, limit in zip(costs, capacities, strict=True))
    yield [{"costs": costs[t], "capacities": capacities[t]} for t in rounds]
    yield [{"loss": stream.losses[t : t + 1], "capacities": capacities[t]} for t in rounds]
    yield [(costs[t], [stream.constraints[t : t + 1]]) for t in rounds]
    yield [stream[:5], stream[5:6], stream[6:]]


def require_same(ours, theirs):
    ours, theirs = list(ours), list(theirs)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.x.tobytes() == other.x.tobytes()
        assert mine.losses.tobytes() == other.losses.tobytes()
        assert mine.constraints.tobytes() == other.constraints.tobytes()
        assert mine.seen == other.seen


@pytest.mark.parametrize("kind", [LyapunovDescent, tw.Ensemble, tw.baselines.SinhaVaze])
def test_a_feed_is_played_bit_for_bit_as_the_stream_of_its_rounds(kind):
    learner = kind(Simplex(4))
    for feed in feeds(STREAM):
        require_same(tw.play(learner, feed), tw.play(learner, STREAM))


def test_what_is_known_before_a_round_comes_along():
    K, rounds = Simplex(4), 12
    known = [{"seen": t % 4 != 2, "time": 3600.0 * t} for t in range(rounds)]
    for t, row in enumerate(known):
        row["unavailable"] = [t % 3] if t % 5 == 4 else None
        row["played"] = [0.25] * 4 if t == 3 else None
    columns = {key: [row[key] for row in known] for key in known[0]}
    columns["played"] = [row or [np.nan] * 4 for row in columns["played"]]
    columns["advice"] = {"mine": np.full((rounds, 4), 0.25)}
    stream = tw.Stream(STREAM.losses[:rounds], STREAM.constraints[:rounds], **columns)
    learner = tw.Ensemble(K, experts=[tw.experts.Season("1d"), "mine"])
    rounds_of = zip(stream.losses.C, stream.constraints.c, known, strict=True)
    advice = {"mine": [0.25] * 4}
    named = [{"costs": c, "capacities": d, "advice": advice, **row} for c, d, row in rounds_of]
    require_same(tw.play(learner, iter(named)), tw.play(learner, stream))
    cut = (stream[t : t + 1] for t in range(rounds))
    require_same(tw.play(learner, cut), tw.play(learner, stream))


def test_a_feed_without_a_constraint_has_no_limit():
    costs = STREAM.losses.C
    played = tw.play(LyapunovDescent(Simplex(4)), costs)  # an array of costs, one row a round
    require_same(played, tw.play(LyapunovDescent(Simplex(4)), tw.Stream(STREAM.losses)))
    alone = (STREAM.losses[t : t + 1] for t in range(3))
    assert [one.constraints[0] for one in tw.play(LyapunovDescent(Simplex(4)), alone)] == [-1.0] * 3


def test_an_endless_feed_is_played_in_flat_memory():
    def feed():
        rng = np.random.default_rng(0)
        while True:
            yield rng.standard_normal(4), rng.uniform(0.2, 0.6, 4)

    learner = LyapunovDescent(Simplex(4))
    moves = tw.play(learner, feed())
    for t in range(3000):
        if t == 1900:  # the learner's own tables are nearly as long as they get
            tracemalloc.start()
        if t == 2000:
            first = tracemalloc.get_traced_memory()[0]
        played = next(moves)
    grown = tracemalloc.get_traced_memory()[0] - first
    tracemalloc.stop()
    assert grown < 5_000
    assert learner.rounds_left(played.state) >= 1
    again = tw.play(learner, feed(), played.state)  # and goes on from a state
    assert next(again).state.t == played.state.t + 1


def test_blocks_and_bandits_get_one_round_at_a_time():
    K, block = Simplex(4), LyapunovDescent(Simplex(4), block=5)
    for learner in (block, tw.BanditPrimalDual(K, horizon=23), Listener(K)):
        played = list(tw.play(learner, (STREAM[t : t + 1] for t in range(23))))
        assert [len(one.losses) for one in played] == [1] * 23
    ours, theirs = list(tw.play(block, zip(STREAM.losses.C, STREAM.constraints.c, strict=True))), []
    for one in tw.play(block, STREAM):
        theirs += [one.x] * len(one.losses)
    np.testing.assert_allclose([one.x for one in ours], theirs, atol=1e-9)


@pytest.mark.parametrize(
    ("feed", "kind"),
    [
        ("rounds", WrongType),
        ({"costs": 1}, WrongType),
        (np.array(2.0), WrongType),
        ([3], WrongType),
        ([(lambda x: x, None)], WrongType),
        ([[1.0, 2.0, 3.0]], WrongType),
        ([np.ones(3)], WrongShape),
        ([(np.ones(4), np.ones(3))], WrongShape),
        ([Linear([[1.0, 2.0]])], WrongShape),
        ([{"capacities": np.ones(4)}], InvalidInput),
        ([{"costs": np.ones(4), "cost": 1}], InvalidInput),
        ([{"costs": np.ones(4), "loss": STREAM.losses}], InvalidInput),
    ],
)
def test_a_feed_of_something_else_is_refused(feed, kind):
    with pytest.raises(kind):
        next(tw.play(LyapunovDescent(Simplex(4)), feed))


def test_a_bad_round_is_named_and_those_before_it_are_played():
    moves = tw.play(LyapunovDescent(Simplex(4)), iter([np.ones(4), np.ones(4), np.ones(3)]))
    next(moves), next(moves)
    with pytest.raises(WrongShape, match="costs of round 2"):
        next(moves)
    with pytest.raises(InvalidInput, match="begin with the next"):
        tw.play(LyapunovDescent(Simplex(4)), [], first=2)
    assert list(tw.play(LyapunovDescent(Simplex(4)), [])) == []
    with pytest.raises(WrongType, match="not generator; rounds that come one by one"):
        tw.run(LyapunovDescent(Simplex(4)), (one for one in ()))


@pytest.mark.parametrize("name", ["LyapunovDescent", "Ensemble", "PrimalDual"])
@pytest.mark.parametrize("K", [Simplex(5), tw.sets.SimplexProduct([2, 3])], ids=["one", "two"])
def test_what_was_pickled_decides_the_same_bits_and_carries_no_machine_code(name, K):
    """Types of numbers come back equal, not identical."""
    rng = np.random.default_rng(0)
    stream = tw.Stream(Linear(rng.normal(size=(40, 5))), Capacity(np.full((40, 5), 0.4)))
    learner = getattr(tw, name)(K)
    first = tw.run(learner, stream)
    data = pickle.dumps((learner, stream))
    assert first.losses.tobytes() == tw.run(*pickle.loads(data)).losses.tobytes()
    assert len(data) < 20_000
