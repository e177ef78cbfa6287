"""OnlineAllocator: a session behind scikit-learn's manners, and a portfolio that skfolio takes."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from extras import Later
from interpreter import python
from tidewolf.core.errors import EmptySet, InvalidInput, TidewolfError, WrongShape, WrongType

skfolio, skfolio_folds = Later("skfolio"), Later("skfolio.model_selection")
sklearn, sklearn_folds = Later("sklearn"), Later("sklearn.model_selection")
ASSETS = ["cash", "bonds", "gold", "tech"]


def returns(rows=40, seed=0):
    rng, drift = np.random.default_rng(seed), np.array([0.0, 0.001, 0.002, 0.004])
    return drift + np.array([1e-5, 0.005, 0.01, 0.02]) * rng.standard_normal((rows, 4))


def frame(rows=40, seed=0):
    days = pd.bdate_range("2026-01-01", periods=rows)
    return pd.DataFrame(returns(rows, seed), columns=ASSETS, index=days)


# ---------------------------------------------------------------- what it does


def test_it_is_a_session_of_an_ensemble():
    X, K = returns(), tw.sets.CappedSimplex(4, 0.5)
    session = tw.Session(tw.Ensemble(K, caution=3.0, experts=[tw.experts.Static()]))
    held = []
    for row in X:
        held.append(session.play())
        session.observe(loss=tw.functions.LogWealth.one(1.0 + row))
    found = tw.OnlineAllocator(max_weights=0.5, caution=3.0).fit(X)
    np.testing.assert_array_equal(found.weights_history_, held)
    np.testing.assert_array_equal(found.weights_, session.play())
    assert found.wealth_ == pytest.approx(np.prod(1.0 + (X * held).sum(axis=1)), rel=1e-12)
    assert found.proved_ == session.explain().proved
    assert [member.name for member in found.experts_] == list(session.learner.names)


@given(cuts=st.lists(st.integers(1, 29), max_size=3), seed=st.integers(0, 9))
@settings(max_examples=4, deadline=None)
def test_batches_of_any_size_are_one(cuts, seed):
    X = returns(30, seed)
    whole, parts = tw.OnlineAllocator(max_loss=0.01).fit(X), tw.OnlineAllocator(max_loss=0.01)
    held = [parts.partial_fit(batch).weights_history_ for batch in np.split(X, sorted(set(cuts)))]
    np.testing.assert_array_equal(np.vstack(held), whole.weights_history_)
    np.testing.assert_array_equal(parts.weights_, whole.weights_)
    assert parts.n_rounds_ == whole.n_rounds_ == 30
    assert parts.wealth_ == pytest.approx(whole.wealth_, rel=1e-12)
    np.testing.assert_array_equal(parts.fit(X).weights_, whole.weights_)  # starts over


SHARES = {"low": (0.0, 0.2), "high": (0.3, 1.0), "least": (0.0, 0.4), "most": (0.5, 0.9)}


@given(by_name=st.booleans(), **{name: st.floats(*ends) for name, ends in SHARES.items()})
@settings(max_examples=6, deadline=None)
def test_hard_limits_hold_in_every_row(low, high, least, most, by_name):
    groups = {"gold": "real", "tech": ["real", "risky"]} if by_name else [[], [], "real", "real"]
    how = {"min_weights": low, "max_weights": {"tech": high} if by_name else high, "groups": groups}
    found = tw.OnlineAllocator(**how, group_limits={"real": (least, most)}).fit(frame(12))
    held, slack = np.vstack([found.weights_history_, found.weights_]), 1e-7
    np.testing.assert_allclose(held.sum(axis=1), 1.0, atol=slack)
    assert (held >= low - slack).all()
    assert (held[:, 3 if by_name else slice(None)] <= high + slack).all()
    together = held[:, 2:].sum(axis=1)
    assert (together >= least - slack).all()
    assert (together <= most + slack).all()


def test_soft_limits_are_kept_on_average_and_the_more_the_more_caution():
    X = frame(150)
    limits = pd.DataFrame({"real": 0.2 + 0.1 * np.sin(np.arange(150.0))}, index=X.index)
    groups = {"gold": "real", "tech": "real"}

    def over(caution, given=None):
        made = tw.OnlineAllocator(groups=groups, caution=caution).fit(X, limits=given)
        together = made.weights_history_[:, 2:].sum(axis=1)
        return float(np.maximum(together - limits["real"], 0.0).mean())

    free, kept, strict = over(10.0), over(1.0, limits), over(1000.0, limits)
    assert strict < kept < free
    found = tw.OnlineAllocator().fit(X, limits={"tech": 0.25})  # of an asset, and one number
    assert found.weights_[3] < tw.OnlineAllocator().fit(X).weights_[3]
    losses = [
        np.maximum(0.0, -(X.to_numpy() * made.fit(X).weights_history_).sum(axis=1) - 0.005).sum()
        for made in (tw.OnlineAllocator(max_loss=0.005), tw.OnlineAllocator())
    ]
    assert losses[0] < losses[1]


def test_moves_are_held_and_anybody_may_decide():
    X = returns()
    held = tw.OnlineAllocator(max_move=0.01).fit(X).weights_history_
    assert 0.5 * np.abs(np.diff(held, axis=0)).sum(axis=1).max() <= 0.01 + 1e-9
    found = tw.OnlineAllocator(learner=tw.LyapunovDescent, loss="linear").fit(X)
    assert isinstance(found.session_.learner, tw.LyapunovDescent)


# ---------------------------------------------------------------- scikit-learn


def test_it_has_scikit_learns_manners():
    why = "predict gives a portfolio over all rows, not a number a row"
    checks = Later("sklearn.utils.estimator_checks").check_estimator(
        tw.OnlineAllocator(loss="linear"),
        expected_failed_checks={"check_methods_sample_order_invariance": why},
        on_skip=None,
    )
    assert sum(check["status"] == "passed" for check in checks) >= 35


def test_copies_go_on_alike():
    X = frame()
    made = tw.OnlineAllocator(max_weights=0.6, groups={"tech": "a"}, group_limits={"a": 0.3})
    bare = sklearn.clone(made.fit(X[:20]))
    assert not hasattr(bare, "weights_")
    assert bare.get_params() == made.get_params()
    copies = pickle.loads(pickle.dumps(made)), copy.deepcopy(made)
    made.partial_fit(X[20:])
    for one in copies:
        assert one.n_rounds_ == 20
        np.testing.assert_array_equal(one.partial_fit(X[20:]).weights_, made.weights_)


def test_frames_of_both_libraries_are_their_arrays():
    X = frame()
    plain = tw.OnlineAllocator().fit(X.to_numpy())
    assert not hasattr(plain, "feature_names_in_")
    for table in (X, pl.from_pandas(X), pl.from_pandas(X.reset_index(names="date"))):
        found = tw.OnlineAllocator().fit(table)
        assert list(found.feature_names_in_) == ASSETS
        np.testing.assert_array_equal(found.weights_, plain.weights_)
        assert found.score(table) == plain.score(X.to_numpy())
    with pytest.raises(ValueError, match="same order"):
        tw.OnlineAllocator().fit(X).partial_fit(X[ASSETS[::-1]])


def test_a_batch_that_is_refused_halfway_counts_for_nothing():
    X, steep = returns(), returns()
    steep[30, 0] = 9.0
    how = {"loss": "linear", "learner": lambda K: tw.Ensemble(K, loss_lipschitz=1.0)}
    made, reference = (tw.OnlineAllocator(**how) for _ in range(2))
    with pytest.raises(InvalidInput, match="loss_lipschitz"):
        made.fit(X[:20]).partial_fit(steep[20:])
    assert made.session_.rounds == 20
    np.testing.assert_array_equal(made.partial_fit(X[20:]).weights_, reference.fit(X).weights_)


# ---------------------------------------------------------------- skfolio


def test_predict_holds_the_weights_as_skfolio_does():
    X = frame()
    made = tw.OnlineAllocator(portfolio_params={"transaction_costs": 0.01}, previous_weights=0.25)
    found = made.fit(X[:30]).predict(X[30:])
    assert isinstance(found, skfolio.Portfolio)
    assert isinstance(made, Later("skfolio.optimization").BaseOptimization)
    weights = np.array(made.weights_)
    same = skfolio.Portfolio(X[30:], weights, previous_weights=[0.25] * 4, transaction_costs=0.01)
    np.testing.assert_array_equal(found.returns, same.returns)
    assert (made.score(X[30:]), found.name) == (same.sharpe_ratio, "OnlineAllocator")


def test_pipelines_folds_and_searches_of_skfolio_take_it():
    X, folds = frame(60), skfolio_folds.WalkForward(train_size=20, test_size=20)
    limited = {"groups": {"tech": "risky", "cash": "safe"}, "group_limits": {"risky": 0.7}}
    allocator = tw.OnlineAllocator(max_loss=0.002, **limited)
    chosen = Later("skfolio.pre_selection").SelectKExtremes(k=2)
    pipeline = Later("sklearn.pipeline").make_pipeline(chosen, allocator)
    pipeline = pipeline.set_output(transform="pandas")
    walked = skfolio_folds.cross_val_predict(pipeline, X, cv=folds)
    assert len(walked) == 2
    assert all(len(portfolio.assets) == 2 for portfolio in walked)
    knob = {"onlineallocator__caution": [0.1, 1000.0]}
    scored = Later("skfolio.metrics").make_scorer(skfolio.RatioMeasure.SORTINO_RATIO)
    search = sklearn_folds.GridSearchCV(pipeline, knob, scoring=scored, cv=folds).fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert scores[0] != scores[1]
    assert search.best_estimator_.predict(X).n_observations == 60


def test_without_scikit_learn_it_says_what_to_install():
    code = """
import sys
sys.modules["sklearn"] = None
import tidewolf as tw
try:
    tw.OnlineAllocator()
except ImportError as error:
    print(error)
"""
    assert python("-c", code).startswith("OnlineAllocator needs scikit-learn")


GROUPS = {"groups": ["a"] * 4}
WRONG = [
    ({"max_weights": 0.2}, EmptySet, "max_weights"),
    ({"min_weights": 0.3}, EmptySet, "min_weights"),
    ({"min_weights": {"gold": 0.5}, "max_weights": 0.4}, EmptySet, "gold"),
    ({"min_weights": -0.1}, InvalidInput, "min_weights"),
    ({"max_weights": [1.0] * 3}, WrongShape, "max_weights"),
    ({"loss": "sharpe"}, InvalidInput, "loss"),
    ({"max_loss": 0.0}, InvalidInput, "max_loss"),
    ({"caution": -1.0}, InvalidInput, "caution"),
    ({"group_limits": {"real": 0.5}}, InvalidInput, "real"),
    ({"groups": {"gold": "real"}, "group_limits": {"rael": 0.5}}, InvalidInput, "rael"),
    ({"groups": {"a": "x"}}, InvalidInput, "groups"),
    ({"groups": "real"}, WrongType, "groups"),
    ({"groups": ["real"]}, WrongShape, "groups"),
    ({"group_limits": 0.5}, WrongType, "group_limits"),
    ({**GROUPS, "group_limits": {"a": (1, 2, 3)}}, WrongType, "group_limits"),
    ({**GROUPS, "group_limits": {"a": 0.5}}, EmptySet, "group_limits"),
    ({"learner": lambda K: K}, WrongType, "learner"),
]


def test_what_is_refused_names_its_setting_and_changes_nothing():
    X = frame()
    for wrong, error, names in WRONG:
        made = tw.OnlineAllocator(**wrong)
        with pytest.raises(error, match=names):
            made.fit(X[:3])
        with pytest.raises(Later("sklearn.exceptions").NotFittedError):
            made.predict(X[:3])
    made, reference = (tw.OnlineAllocator(**GROUPS).fit(X[:20]) for _ in range(2))
    lost = X[20:30].copy()
    lost.iloc[5, 2] = -1.0
    odd = (({"b": 0.5}, "'b'"), ({"a": [0.5]}, "limits"), ([0.5] * 10, "limits"))
    for table, limits, names in ((lost, None, "gold"), *((X[20:30], *each) for each in odd)):
        with pytest.raises(TidewolfError, match=names):
            made.partial_fit(table, limits=limits)
    both = (each.partial_fit(X[20:]).weights_ for each in (made, reference))
    np.testing.assert_array_equal(*both)
