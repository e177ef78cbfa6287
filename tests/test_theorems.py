"""What the paper's three learners share: laws with the theorems' constants, blocks, horizons."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theorems
import tidewolf as tw
from covering import thinned
from theorems import DIAMOND, HULL, POINT, SETS
from tidewolf import BanditPrimalDual, DriftPlusPenalty, PrimalDual
from tidewolf.core.errors import FrozenRegime, InvalidInput, ShortHorizon, TidewolfError
from tidewolf.experiments import load
from tidewolf.functions import Affine, Linear
from tidewolf.service.models import Description
from tidewolf.sets import CappedSimplex, L2Ball, Simplex
from tidewolf.testing import check_learner
from tidewolf.testing.learners import hostile_stream

KINDS = [PrimalDual, DriftPlusPenalty, BanditPrimalDual]
each_kind = pytest.mark.parametrize("kind", KINDS)


@thinned(3, number={f"{i}-{K!r}": i for i, K in enumerate(SETS)}, kind=KINDS)
def test_the_laws_hold_for_the_theorems_learners_on_every_set(kind, number):
    found = theorems.examples(kind, SETS[number], 20)
    learner = found[number % len(found)]
    check_learner(learner, hostile_stream(learner.K, 13, number))


@each_kind
def test_the_last_block_is_ragged_and_costs_no_call(kind):
    learner = kind(DIAMOND, horizon=100, block=30, calls_per_round=2.0)
    played = list(tw.play(learner, theorems.hostile(DIAMOND, 100, 0)))
    assert [p.state.t for p in played] == [30, 60, 90, 100]
    assert played[-1].state.calls == played[-2].state.calls > 0
    assert played[-1].state.oracle_budget == 200.0 - played[-1].state.calls


@each_kind
def test_past_the_horizon_it_restarts_with_twice_as_much_and_says_so(kind):
    learner = kind(DIAMOND, horizon=20)
    run = tw.run(learner, theorems.hostile(DIAMOND, 70, 0))
    assert run.final_state.epoch[:2] == (60, 80)
    (note,) = run.notes
    assert all(number in note for number in ("20", "60", "80"))
    assert tw.run(learner, theorems.hostile(DIAMOND, 20, 0)).notes == ()
    unknown = tw.run(kind(DIAMOND), theorems.hostile(DIAMOND, 300, 0))
    assert (unknown.final_state.epoch[:2], unknown.notes) == ((256, 512), ())


@each_kind
@given(seed=st.integers(0, 2**32), calls=st.sampled_from([0.3, 1.0, 3.7]))
@settings(max_examples=3)
def test_the_budget_always_reaches_the_tolerance_and_what_is_left_refines(kind, seed, calls):
    K, T = (Simplex(4), DIAMOND, CappedSimplex(6, 0.5))[seed % 3], 900
    learner = kind(K, T, calls)
    run = tw.run(learner, theorems.hostile(K, T, seed))
    tol = 8.0 / (calls * learner.block_for(T) - 4.0)
    assert run.distances.max() <= np.sqrt(tol) * K.radius * (1.0 + 1e-9)
    assert run.oracle_calls <= calls * T
    if calls >= 1.0:
        assert run.distances[-1] ** 2 <= max(learner.finest2(T), 1e-3 * K.radius**2) * (1 + 1e-9)


# --- the theorems' constants ----------------------------------------------------------------------

MAKE = {
    PrimalDual: theorems.primal_dual,
    DriftPlusPenalty: theorems.drift_plus_penalty,
    BanditPrimalDual: theorems.bandit_primal_dual,
}


def sizes_of(kind, size):
    return dict.fromkeys(theorems.SIZES if kind is BanditPrimalDual else theorems.SLOPES, size)


@pytest.mark.parametrize("K", [L2Ball(3), DIAMOND], ids=repr)
@each_kind
def test_an_eps_too_large_moves_nothing_calls_no_oracle_and_a_warning_names_it(kind, K):
    with pytest.warns(FrozenRegime, match=r"^eps = .* horizon of 8529325 on\."):
        learner = kind.theorem(K, horizon=2000, **sizes_of(kind, 2.0))
    run = tw.run(learner, theorems.hostile(K, 2000, 0))
    assert run.oracle_calls == 0
    assert run.final_state.point.x.tobytes() == K.center.tobytes()
    if kind is not DriftPlusPenalty:
        assert len(run.notes) == 2
        assert str(learner.theorem_horizon()) in run.notes[1]
        assert learner.guarantee() == (None, None, " ".join(run.notes))


@pytest.mark.parametrize("kind", [PrimalDual, DriftPlusPenalty])
def test_beyond_that_it_moves_and_only_the_condition_is_missing(kind):
    K, T, start = L2Ball(3), 400_000, np.array([1.0, 0.0, 0.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = kind.theorem(K, horizon=T, start=start, **sizes_of(kind, 1.0))
    assert [w.category for w in caught] == ([ShortHorizon] if kind is PrimalDual else [])
    C, A = np.broadcast_to([1.0, 0.0, 0.0], (T, 3)), np.broadcast_to([0.0, 1.0, 0.0], (T, 3))
    run = tw.run(learner, tw.Stream(Linear(C), Affine(A, np.zeros(T))))
    assert 0 < run.oracle_calls <= T
    assert run.final_state.point.x[0] < 0.99
    assert run.max_infeasibility <= 1e-12
    assert run.losses.sum() + T <= run.bound.regret
    if kind is DriftPlusPenalty:
        assert run.bound.regret <= learner.guarantee().regret
        assert run.bound.violation <= learner.guarantee().violation


@pytest.mark.parametrize("kind", [PrimalDual, BanditPrimalDual])
def test_where_the_condition_holds_there_is_a_guarantee_and_no_warning(kind):
    """Its formula is in test_methods.py."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = kind.theorem(Simplex(3), horizon=10**9, **sizes_of(kind, 1.0))
    assert learner.notes(learner.start()) == ()
    assert None not in learner.guarantee()[:2]
    # less damping breaks the condition of the same theorem
    assert replace(learner, delta=learner.delta / 1e4).guarantee()[:2] == (None, None)


@each_kind
def test_a_guarantee_that_cannot_be_made_says_why(kind):
    unknown, short = kind(DIAMOND, 10**6), kind(DIAMOND, 50, 0.1, **sizes_of(kind, 1.0))
    for learner, named in ((unknown, "loss_lipschitz"), (short, "locks of ")):
        assert learner.guarantee()[:2] == (None, None)
        assert named in learner.guarantee().reason
    assert MAKE[BanditPrimalDual](POINT, 10, 1.0, 1.0, 1.0, 1.0).guarantee() == (0.0, 0.0, "")


# --- the settings as printed ----------------------------------------------------------------------

PRINTED = {
    PrimalDual: ("block", "eta", "delta", "eps"),
    DriftPlusPenalty: ("block", "alpha", "delta", "eps"),
    BanditPrimalDual: ("block", "eta", "delta", "mu", "eps"),
}


def points(learner, stream):
    return b"".join(p.x.tobytes() for p in tw.play(learner, stream))


@each_kind
def test_the_theorems_values_given_one_by_one_are_the_theorem_bit_for_bit(kind):
    """And another eps moves the point that the theorem's leaves where it is."""
    sizes = (2.0,) * (4 if kind is BanditPrimalDual else 2)
    theorem, stream = MAKE[kind](DIAMOND, 400, *sizes), theorems.hostile(DIAMOND, 400, 0)
    values = {name: getattr(theorem, name) for name in PRINTED[kind]}
    given = dict(zip(theorems.SIZES, sizes, strict=False))
    again = kind(DIAMOND, horizon=400, **given, **values)
    assert again == theorem == replace(theorem, eps=theorem.eps)
    assert points(again, stream) == points(theorem, stream)
    finer = tw.run(replace(theorem, eps=theorem.eps / 1e5), stream)
    assert finer.oracle_calls > 0
    assert finer.distances.max() ** 2 <= 3.0 * theorem.eps / 1e5 * (1.0 + 1e-9)
    assert finer.max_infeasibility <= 1e-12


def test_of_two_steps_the_one_that_is_not_given_is_the_theorems():
    K = L2Ball(3)
    alone = PrimalDual(K, horizon=400, eta=0.01, constraint_lipschitz=2.0)
    theorem = theorems.primal_dual(K, 400, 1.0, 2.0)
    assert alone.steps(400).theta == pytest.approx(0.01 * theorem.delta)
    assert PrimalDual(K, horizon=400, delta=7.0).steps(400).eta == theorem.eta


def test_eps_has_the_paper_s_calls_or_those_of_a_budget():
    stream = theorems.hostile(HULL, 300, 1)
    free, bounded = (PrimalDual(HULL, 300, calls, eps=1e-4) for calls in (None, 0.1))
    assert (free.calls_per_round, PrimalDual(HULL, 300).calls_per_round) == (None, 1.0)
    run, short = tw.run(free, stream), tw.run(bounded, stream)
    assert run.distances.max() ** 2 <= 3e-4
    assert run.oracle_calls > 30 >= short.oracle_calls


@pytest.mark.parametrize(
    ("kind", "given", "named"),
    [
        (PrimalDual, {"eta": 0.0}, "eta"),
        (PrimalDual, {"eps": -1.0}, "eps"),
        (PrimalDual, {"delta": "much"}, "delta"),
        (PrimalDual, {"eta": 0.1}, "constraint_lipschitz"),
        (DriftPlusPenalty, {"alpha": float("nan")}, "alpha"),
        (BanditPrimalDual, {"mu": 5.0}, "mu"),
        (BanditPrimalDual, {"delta": 1.0}, "loss_lipschitz"),
    ],
)
def test_a_setting_that_is_refused_is_named(kind, given, named):
    with pytest.raises(TidewolfError) as refused:
        kind(DIAMOND, **given)
    assert refused.value.setting == named


def test_files_and_requests_have_the_same_settings(tmp_path):
    settings = {"eta": 0.01, "delta": 2.0, "eps": 0.5, "block": 4, "calls_per_round": 3.0}
    body = {"set": {"kind": "Simplex", "n": 4}, "rounds": 100}
    body["learners"] = [{"name": "PrimalDual", **settings}]
    made = Description.read(body).build().learner
    assert made == PrimalDual(Simplex(4), horizon=100, **settings)
    del body["learners"][0]["calls_per_round"]
    with pytest.raises(InvalidInput, match="calls_per_round"):
        Description.read(body)
    lines = "\n".join(f"{name} = {value}" for name, value in settings.items())
    path = tmp_path / "mine.toml"
    learner = f'[[learners]]\nname = "PrimalDual"\n{lines}\n'
    path.write_text(f'[stream]\nproblem = "adversarial"\n{learner}')
    (choice,) = load(path).learners
    assert choice.given == settings
