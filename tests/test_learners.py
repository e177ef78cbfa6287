"""Learners and baselines: the checks of `tidewolf.testing` on every one and every set, what is
refused, units of points, and learners broken on purpose.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from covering import cover, thinned
from failing import assert_fails
from pairs import takes
from streams import hostile, together
from tidewolf import baselines, learners, sets
from tidewolf.core import checkpoint, errors, feedback, values
from tidewolf.core.arrays import frozen
from tidewolf.hindsight.best_point import BestPoint
from tidewolf.methods.base import Bound, Learner
from tidewolf.sets import BoundedPSD, CappedSimplex, FlowPolytope, L2Ball, Simplex, VertexHull
from tidewolf.testing import check_learner
from tidewolf.testing.learners import LearnerChecks, hostile_stream

EVERY = {**learners.every(), **baselines.every()}
SETS = [(f"{kind.__name__}-{i}", K) for kind in sets.every() for i, K in enumerate(kind.examples())]
DIAMOND = FlowPolytope.examples()[0]
HULL = VertexHull(np.random.default_rng(0).standard_normal((9, 3)))
DEAR = {"Ensemble", "DriftPlusPenalty", "BanditPrimalDual", "PrimalDual", "Resolve"}
"""Learners whose checks take longest: the quick suite tries a set with another if it can."""
HORIZONS = (20, 7, 2, 1, 500)
FEW = 7
"""Rounds of a learner on each set in the quick suite; the losses change their sign in them."""
every_kind = pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY.keys())


# --- the checks, on everything exported -----------------------------------------------------------


@pytest.fixture(autouse=True, scope="module")
def every_program_solved_once():
    """The checks play the same rounds over and over; that a program's answer depends on its
    question alone has a test of its own.
    """
    solve, answers = BestPoint.__call__, {}

    def remembered(best, losses, constraints):
        center = best.K.center
        question = values.identity((best.K, losses, constraints)), str(center.dtype), type(center)
        if question not in answers:
            answers[question] = solve(best, losses, constraints)
        return answers[question]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BestPoint, "__call__", remembered)
        yield


def test_a_learner_refuses_the_sets_it_cannot_play_on(monkeypatch):
    for kind, (_, K) in itertools.product(EVERY.values(), SETS):
        if takes(kind, K):
            assert kind.examples(K, 20)
            continue
        with pytest.raises(errors.NotSupported, match=rf"{kind.__name__}|{type(K).__name__}"):
            kind.examples(K, 20)
    monkeypatch.setattr(VertexHull, "inner_radius", None)
    with pytest.raises(errors.NotSupported, match="inner_radius"):
        tw.BanditPrimalDual(VertexHull(HULL.points))


def few_cases():
    """Every learner meets each of its settings, capacities and half-spaces, every horizon and kind
    of set some learner, and every family of sets learners and baselines.
    """
    found, met = [], []
    for name, kind in sorted(EVERY.items(), key=lambda named: named[0] in DEAR):
        several = len(kind.examples(Simplex(3), 20))
        for seed, (where, K) in enumerate(SETS):
            if takes(kind, K):
                family, horizon = type(K).__module__.split(".")[2], HORIZONS[seed // 2 % 5]
                found.append(pytest.param(kind, K, seed, horizon, id=f"{name}-{where}"))
                meets = {(name, "setting", seed % several), (name, "limits", seed % 2), type(K)}
                met.append(meets | {(name in baselines.every(), family), horizon})
    return [found[i] for i in cover(met)]


@pytest.mark.parametrize(("kind", "K", "seed", "horizon"), few_cases())
def test_learners_pass_every_check(kind, K, seed, horizon):
    examples = kind.examples(K, horizon)
    learner = examples[seed % len(examples)]
    check_learner(learner, hostile_stream(learner.K, FEW, seed))


@pytest.mark.soak
@every_kind
def test_every_learner_passes_every_check_on_every_set(kind):
    for number, (_, K) in enumerate(SETS):
        for seed in (number, number + 1) if takes(kind, K) else ():
            examples = kind.examples(K, HORIZONS[number % 5])
            learner = examples[seed % len(examples)]
            check_learner(learner, hostile_stream(learner.K, 18, seed))


PLACES = [Simplex(4), CappedSimplex(4, 0.4), DIAMOND, L2Ball(3), HULL, BoundedPSD.examples()[3]]
REFERENCES = {"float32": np.zeros(1, dtype=np.float32), "strict": strict.zeros(1)}
MOVED = [
    pytest.param(
        *(kind, K, reference),
        id=f"{name}-{library}-{K!r}",
        marks=() if i == turn % 4 and j == turn // 4 % 2 else pytest.mark.soak,
    )
    for turn, (name, kind) in enumerate(EVERY.items())
    for i, K in enumerate(K for K in PLACES if takes(kind, K))
    for j, (library, reference) in enumerate(REFERENCES.items())
]


@pytest.mark.parametrize(("kind", "K", "reference"), MOVED)
def test_the_checks_pass_in_other_libraries_and_dtypes(kind, K, reference):
    moved = K.to(reference)
    check_learner(kind.examples(moved, 20)[1], hostile_stream(moved, FEW, 1))


@pytest.mark.parametrize("K", [DIAMOND, HULL, CappedSimplex(5, 0.5), L2Ball(3)], ids=repr)
@given(seed=st.integers(0, 2**32), block=st.integers(2, 7), horizon=st.integers(1, 40))
@settings(max_examples=3)
def test_blocks_are_rounds_bit_for_bit_when_sums_are_added_in_order(K, seed, block, horizon):
    learner = tw.LyapunovDescent(K, horizon=horizon, block=block)
    t, alone, whole, stream = 0, learner.start(), learner.start(), hostile("switching", K, 30, seed)
    while t < 30:
        k, x = min(learner.rounds_left(whole), 30 - t), learner.act(whole)
        parts = [stream[s : s + 1] for s in range(t, t + k)]
        seen = [
            feedback.first_order(part.losses, part.constraints, x, part.constraints.values(x))
            for part in parts
        ]
        whole, t = learner.update(whole, together(seen)), t + k
        for one in seen:
            alone = learner.update(alone, one)
        assert learner.save(whole) == learner.save(alone)


def test_every_lists_what_is_public():
    for module in (learners, baselines):
        assert list(module.every()) == module.__all__ == sorted(module.__all__)
        assert all(issubclass(kind, Learner) for kind in module.every().values())


def test_check_learner_refuses_what_is_no_learner_or_no_stream():
    learner = tw.LyapunovDescent(Simplex(3))
    other_shape, short = (hostile("switching", Simplex(n), k, 0) for n, k in ((2, 5), (3, 1)))
    for what, error in (
        ((3,), errors.WrongType),
        ((learner, 3), errors.WrongType),
        ((learner, other_shape), errors.WrongShape),
        ((learner, short), errors.InvalidInput),
    ):
        with pytest.raises(error):
            check_learner(*what)
    check_learner(learner, hostile("switching", Simplex(3), 2, 0))


@every_kind
def test_bad_settings_are_refused_and_named(kind):
    for name, value, error in (
        ("horizon", 0, errors.InvalidInput),
        ("horizon", 2.5, errors.InvalidInput),
        ("caution", -1, errors.InvalidInput),
        ("loss_lipschitz", -1, errors.InvalidInput),
        ("loss_size", 0, errors.InvalidInput),
        ("constraint_lipschitz", "x", errors.WrongType),
        ("seed", -1, errors.InvalidInput),
    ):
        if name in kind.__dataclass_fields__:
            with pytest.raises(error, match=f"{name} of {kind.__name__}"):
                kind(Simplex(2), **{name: value})
    with pytest.raises(errors.WrongType, match=f"{kind.__name__} needs a set"):
        kind(3)


# --- units ----------------------------------------------------------------------------------------


def scaled_set(name, s):
    points = np.random.default_rng(3).standard_normal((7, 3))
    return {
        "simplex": lambda: Simplex(4, total=s),
        "at most": lambda: Simplex(4, total=s, at_most=True),
        "capped": lambda: CappedSimplex(5, 0.4 * s, s),
        "box": lambda: sets.Box(-s * np.arange(1.0, 4.0), s * np.ones(3)),
        "ball": lambda: L2Ball(3, s, s * np.array([0.0, 1.0, 3.0])),
        "hull": lambda: VertexHull(s * points),
        "moved": lambda: sets.Translated(Simplex(3, total=s), s * np.array([1.0, -2.0, 0.5])),
    }[name]()


def rescaled(name, make, x, f, g):
    """The actions in the old units, where points are x times as large, losses f times and
    constraints g times.
    """
    rng, rounds, K, plain = np.random.default_rng(5), 40, scaled_set(name, x), scaled_set(name, 1.0)
    C, A = rng.standard_normal((rounds, *K.shape)), rng.standard_normal((rounds, *K.shape))
    b = A @ plain.center + plain.radius * rng.uniform(-0.1, 0.3, rounds)
    stream = tw.Stream(tw.functions.Linear(C * (f / x)), tw.functions.Affine(A * (g / x), b * g))
    return b"".join((played.x / x).tobytes() for played in tw.play(make(K), stream))


FEWER = {"horizon": 40, "block": 3, "calls_per_round": 0.4}


@thinned(
    4,
    name=dict(
        zip(*[("simplex", "at most", "capped", "box", "ball", "hull", "moved")] * 2, strict=True)
    ),
    make={
        "descent": lambda K: tw.LyapunovDescent(K, horizon=40),
        "blocks": lambda K: tw.LyapunovDescent(K, **FEWER, caution=1.0),
        "doubling": lambda K: tw.LyapunovDescent(K, horizon=7, tolerance=1e-2),
        "SinhaVaze": lambda K: baselines.SinhaVaze(K, horizon=25),
        "WangWanZhang": lambda K: baselines.WangWanZhang(K, horizon=25),
        "Frank-Wolfe": lambda K: baselines.OnlineFrankWolfe(K, horizon=25, caution=1.0),
        "projected": lambda K: baselines.ProjectedPrimalDual(K, horizon=25),
        "proximal": lambda K: baselines.ProximalPenalty(K, horizon=25),
        "primal-dual": lambda K: tw.PrimalDual(K, **FEWER),
        "drift": lambda K: tw.DriftPlusPenalty(K, **FEWER),
        "drift, single rounds": lambda K: tw.DriftPlusPenalty(K, horizon=40, block=1),
        "bandit": lambda K: tw.BanditPrimalDual(K, **FEWER),
        "bandit, single rounds": lambda K: tw.BanditPrimalDual(K, horizon=40, block=1),
    },
)
def test_powers_of_two_in_the_units_change_no_bit_of_a_decision(name, make):
    """Units of losses and constraints alone, also far away ones, are in test_steps.py."""
    plain = rescaled(name, make, 1.0, 1.0, 1.0)
    for x, f, g in ((8.0, 1.0, 1.0), (2.0**-12, 2.0**30, 2.0**-7)):
        assert rescaled(name, make, x, f, g) == plain, (x, f, g)


# --- learners broken on purpose -------------------------------------------------------------------


class Log(checkpoint.Stored):
    """Gradients in a list that states share."""

    tag = "log of the tests"

    def __init__(self, rows, count):
        self.rows, self.count = rows, count

    def parts(self):
        return {"rows": self.rows[: self.count]}

    @classmethod
    def restored(cls, parts):
        return cls(list(parts["rows"]), len(parts["rows"]))


class Walk(NamedTuple):
    t: int
    x: Any
    total: Any
    open: Any
    rounds: int
    calls: int = 0
    distance: float = 0.0
    extra: Any = None


@dataclass(frozen=True, eq=False, repr=False)
class Walker(Learner[Walk]):
    """Follows the leader by one oracle call every two rounds, right in everything; each broken
    learner below changes one thing.
    """

    needs: ClassVar = feedback.FirstOrder
    state_type: ClassVar = Walk

    K: Any = field(default_factory=lambda: Simplex(3))
    horizon: int | None = 10
    calls_per_round: float = 0.5

    def start(self):
        zero = frozen(np.zeros(self.K.shape))
        return Walk(0, self.K.center, zero, zero, 0)

    def act(self, state):
        return state.x

    def rounds_left(self, state):
        return 2 - state.rounds

    def update(self, state, seen):
        self.look(state, seen)
        rounds = state.rounds + seen.rounds
        open = frozen(state.open + seen.loss_gradient + seen.constraint_gradient)
        if rounds < 2:
            return state._replace(t=state.t + seen.rounds, open=open, rounds=rounds)
        return self.close(state, frozen(state.total + open), state.t + seen.rounds)

    def close(self, state, total, t):
        x = state.x + 2.0 / (t + 2.0) * (self.K.lmo(total) - state.x)
        return state._replace(
            t=t, x=frozen(x), total=total, open=frozen(0.0 * total), rounds=0, calls=state.calls + 1
        )

    def look(self, state, seen):
        feedback.require_first_order(seen, self.K.shape, self.rounds_left(state))
        for part in (seen.loss_gradient, seen.constraint_gradient):
            if not np.isfinite(part).all():
                raise errors.InvalidInput("Give finite gradients.")

    def bound(self, record):
        return Bound(None, None, "Nothing is promised.")

    def notes(self, state):
        passed = self.horizon is not None and state.t > self.horizon
        return ("The horizon was passed.",) if passed else ()

    @classmethod
    def examples(cls, K, horizon):
        return (cls(K, horizon),)


class Listens(Walker):
    """Right in everything, too: in a round that it knows the time of, it plays a vertex."""

    def with_info(self, state, known):
        return state._replace(extra=frozen(self.K.lmo(np.cos(known.time + np.arange(3.0)))))

    def act(self, state):
        return state.x if state.extra is None else state.extra

    def rounds_left(self, state):
        return 1

    def update(self, state, seen):
        return super().update(state._replace(extra=None), seen)


def written(array, change):
    """The array with something added to its first entry, in place, though it is read only."""
    array.flags.writeable = True
    array[0] += change
    array.flags.writeable = False


def closing(change):
    """A learner that changes the state when a block is closed."""
    return {"close": lambda self, s, total, t: change(Walker.close(self, s, total, t), s, t)}


def steered(shift):
    """A learner that follows gradients with `shift` added, and keeps the sum of the right ones."""

    def close(self, state, total, t):
        return Walker.close(self, state, frozen(total + 1e3 * shift(self)), t)._replace(total=total)

    return {"close": close}


def looking(change):
    """A learner that looks at other feedback than it takes."""
    return {
        "look": lambda self, state, seen: Walker.look(
            self, state, change(seen) if type(seen) is feedback.FirstOrder else seen
        )
    }


def act_writes(self, state):
    if state.rounds == 1:
        written(state.open, 1e-3)
    return state.x


def keeps_the_callers_array(self, state, seen):
    new = Walker.update(self, state, seen)
    return new._replace(open=seen.loss_gradient) if new.rounds else new


def takes_a_block_for_a_round(self, state, seen):
    new = Walker.update(self, state, seen)
    return new._replace(x=frozen(self.K.lmo(new.total))) if seen.rounds == 2 else new


def counts_runs(self):
    runs = self.__dict__.setdefault("runs", [0])
    runs[0] += 1
    return np.roll([0.0, 1.0, 2.0], runs[0])


def writes_into_the_old_state(self, state, total, t):
    new = Walker.close(self, state, total, t)
    written(state.x, 0.25)
    return new


def shares_a_table_without_forking(self, state, total, t):
    log = state.extra if len(state.extra.rows) <= 6 else Log([], 0)
    log.rows[log.count :] = [*log.rows[log.count :], total]
    new = Walker.close(self, state, frozen(total + sum(log.rows)), t)
    return new._replace(total=total, extra=Log(log.rows, len(log.rows)))


def looks_at_numbers_no_more(self, state, seen):
    feedback.require_first_order(seen, self.K.shape, self.rounds_left(state))


def refuses_too_late(self, state, total, t):
    if not np.isfinite(total).all():
        raise errors.InvalidInput("Give finite gradients.")
    return Walker.close(self, state, total, t)


def takes_broken_bytes(self, data):
    try:
        return Walker.load(self, data)
    except errors.TidewolfError as error:
        if "other settings" in str(error):
            raise
        return self.start()


def stops_at_the_horizon(self, state, seen):
    Walker.look(self, state, seen)
    if state.t >= 60:
        raise errors.InvalidInput("The horizon is over.")


def writes_what_is_known_into_the_old_state(self, state, known):
    written(state.open, 1e-3)
    return state


def remembers_on_the_side(self, state, known):
    """It seems to have no use for what is known, and has one."""
    self.__dict__.setdefault("late", []).extend([1] if known.time > 72000.0 else [])
    return state


def advised_beside_the_state(self, state, known):
    """It keeps the point that was advised where no file finds it."""
    self.__dict__.setdefault("points", {})[state.t] = frozen(self.K.lmo(np.arange(3.0) - state.t))
    return state._replace(extra=True)


def loaded(change):
    return {"load": lambda self, data: change(Walker.load(self, data), self)}


DICE, TURNS = np.random.default_rng(0), itertools.count()
BROKEN = {
    "actions are members: 0.5 0.5 0.5": {"act": lambda self, s: frozen(1.5 * s.x)},
    "actions are members: nan nan nan": closing(
        lambda new, *_: new._replace(x=frozen(np.full(3, np.nan)))
    ),
    "actions are members: float32": {"act": lambda self, s: frozen(s.x.astype(np.float32))},
    "actions are members: flags.writeable = False": {"act": lambda self, s: s.x.copy()},
    "actions are members: rounds_left": {
        "rounds_left": lambda self, s: 0 if s.t > 5 else 2 - s.rounds
    },
    "acting changes nothing": {
        "act": lambda self, s: self.K.lmo(np.roll(np.arange(3.0), next(TURNS)))
    },
    "acting changes nothing: acts(state": {
        "acts": lambda self, s, k: np.array([s.x, *[self.K.center * (s.t == 0)] * (k - 1)])
    },
    "acting changes nothing: changed the state of round 1": {"act": act_writes},
    "states are read only: flags.writeable = False": {"update": keeps_the_callers_array},
    "rounds and calls are counted: t is 3 after 2 rounds": closing(
        lambda new, s, t: new._replace(t=t + 1)
    ),
    "rounds and calls are counted: from 1 to 0 in round 4": closing(
        lambda new, s, t: new._replace(calls=max(0, 3 - t))
    ),
    "rounds and calls are counted: calls_per_round is 0.5": closing(
        lambda new, s, t: new._replace(calls=s.calls + 3)
    ),
    "rounds and calls are counted: distance is nan": closing(
        lambda new, *_: new._replace(distance=math.nan)
    ),
    "same rounds same run: played again": steered(lambda self: DICE.standard_normal(3)),
    "same rounds same run: is played in place of": steered(counts_runs),
    "saved states resume: other bytes": loaded(
        lambda s, _: s._replace(x=frozen(s.x.astype(np.float32).astype(float)))
    ),
    "saved states resume: after round 1": loaded(
        lambda s, self: s._replace(open=self.start().open) if s.rounds else s
    ),
    "saved states resume: tuple": loaded(lambda s, _: tuple(s)),
    "": {
        "close": writes_into_the_old_state,
        "start": lambda self: Walker.start(self)._replace(x=frozen(np.full(3, 1 / 3))),
    },
    "old states stay good: two branches": {
        "start": lambda self: Walker.start(self)._replace(extra=Log([], 0)),
        "close": shares_a_table_without_forking,
    },
    "blocks are rounds: in round 2": {"update": takes_a_block_for_a_round},
    "bad feedback is refused: loss_gradient = [nan": {
        "look": looks_at_numbers_no_more,
        "close": lambda self, *given: Walker.close(
            self, given[0], frozen(np.nan_to_num(given[1])), given[2]
        ),
    },
    "bad feedback is refused: loss_gradient = [": {
        "look": looks_at_numbers_no_more,
        "close": refuses_too_late,
    },
    "bad feedback is refused: rounds = 0": looking(lambda seen: seen._replace(rounds=1)),
    "bad feedback is refused: violation = -1.0": looking(lambda seen: seen._replace(violation=0.0)),
    "bad feedback is refused: raised AttributeError": {
        "look": lambda self, s, seen: Walker.look(self, s, seen) if seen.rounds else None
    },
    "other settings are refused: another horizon": {
        "load": lambda self, data: Walker().load(data),
        "save": lambda self, s: Walker().save(s),
    },
    "other settings are refused: short bytes": {"load": takes_broken_bytes},
    "bounds are stated: regret is nan": {"bound": lambda self, _: Bound(math.nan, 1.0)},
    "bounds are stated: violation is None": {"bound": lambda self, _: Bound(1.0, None)},
    "bounds are stated: 3.0": {"bound": lambda self, _: 3.0},
    ": The horizon is over.": {"look": stops_at_the_horizon},
    "the horizon may be passed: infeasibility": {
        "act": lambda self, s: frozen(2.0 * s.x) if s.t > 26 else s.x
    },
    "the horizon may be passed: with a horizon of 10": {"notes": lambda self, s: ()},
    "the horizon may be passed: 'horizon'": {
        "notes": lambda self, s: ("horizon",) if Walker.notes(self, s) else ()
    },
    "states do not grow: bytes": {
        "start": lambda self: Walker.start(self)._replace(extra=frozen(np.zeros(0))),
        **closing(lambda new, s, t: new._replace(extra=frozen(np.append(s.extra, [t, t])))),
    },
    "information stays with the state: from 0 to 1": {
        "with_info": lambda self, s, known: s._replace(t=s.t + 1)
    },
    "information stays with the state: infeasibility": {
        "with_info": lambda self, s, known: s._replace(x=frozen(2.0 * known.advice["unexpected"]))
    },
    "information stays with the state: plays another point": {
        "with_info": advised_beside_the_state,
        "act": lambda self, s: self.points.pop(s.t, s.x) if s.extra else s.x,
    },
    "information stays with the state: changed the state": {
        "with_info": writes_what_is_known_into_the_old_state
    },
    "information stays with the state: NoneType": {
        "with_info": lambda self, s, known: None if s.t else s
    },
    "information stays with the state: is played in place": {
        "with_info": remembers_on_the_side,
        "close": lambda self, s, total, t: Walker.close(
            self, s, -total if self.__dict__.get("late") else total, t
        ),
    },
}
"""What is changed of `Walker`, by the check that fails and a word of its detail."""


@dataclass(frozen=True)
class ComparesByTuple(Walker):
    pass


class Undecorated(Learner[Walk]):
    needs, state_type, K, fields = feedback.FirstOrder, Walk, Simplex(3), lambda self: {}
    start, act, rounds_left, update, bound, examples = (lambda self: None,) * 6


def test_the_pattern_of_the_broken_learners_is_right():
    check_learner(Walker(), seed=1)
    check_learner(Walker(L2Ball((2, 2)), None))
    stream = hostile("switching", Simplex(3), 12, 0)
    check_learner(Listens(), tw.Stream(stream.losses, stream.constraints, time=np.arange(12.0)))


@pytest.mark.parametrize("fails", BROKEN)
def test_a_broken_learner_fails_the_fitting_check(fails):
    assert_fails(check_learner, LearnerChecks, type("Broken", (Walker,), BROKEN[fails])(), fails)


def test_a_learner_that_is_no_plain_dataclass_fails_the_first_check():
    for broken, word in ((ComparesByTuple(), "eq=False"), (Undecorated(), "dataclass")):
        assert_fails(check_learner, LearnerChecks, broken, f"learner prints and compares: {word}")
