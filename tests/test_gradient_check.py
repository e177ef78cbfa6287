"""Gradients that cannot be are found in the first rounds, and named; others never."""

import math
import re

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core.errors import NotConvex
from tidewolf.functions import Affine, Chain, Custom, Linear, Max, Sum
from tidewolf.functions.support import Member, require_subgradients

N, ROUNDS, RNG = 4, 24, np.random.default_rng(0)
C, P = RNG.normal(size=(ROUNDS, N)), RNG.uniform(size=(ROUNDS, N))
SETS = {
    "simplex": tw.sets.Simplex(N),
    "ball": tw.sets.L2Ball(N),
    "box": tw.sets.Box(np.zeros(N), np.ones(N)),
    "small": tw.sets.Simplex(N, total=1e-3),
    "large": tw.sets.L2Ball(N, 1e4, 1e4 * np.ones(N)),
}
each_set = pytest.mark.parametrize("K", SETS.values(), ids=SETS.keys())


def line(t, x):
    return C[t] @ x


def square(t, x):
    return (x - P[t]) @ (x - P[t])


def differences(t, x):
    return np.array([(square(t, x + h) - square(t, x)) / 1e-6 for h in 1e-6 * np.eye(N)])


WRONG = {
    "sign of a line": (line, lambda t, x: -C[t], "sign is likely turned round"),
    "twice a line": (line, lambda t, x: 2 * C[t], r"2 times as much"),
    "half a square": (square, lambda t, x: x - P[t], "times as much: likely a wrong factor"),
    "a hill": (lambda t, x: -square(t, x), lambda t, x: -2 * (x - P[t]), "likely not convex"),
}
RIGHT = {
    "tiny": (lambda t, x: 1e-90 * line(t, x), lambda t, x: 1e-90 * C[t]),
    "huge": (lambda t, x: 1e80 * line(t, x), lambda t, x: 1e80 * C[t]),
    "a square": (square, lambda t, x: 2 * (x - P[t])),
    "steep": (lambda t, x: 1e6 * (x @ x) ** 2, lambda t, x: 4e6 * (x @ x) * x),
    "a kink at the start": (lambda t, x: np.abs(x - 0.25).sum(), lambda t, x: np.sign(x - 0.25)),
    "the largest": (lambda t, x: x.max(), lambda t, x: np.eye(N)[np.argmax(x)]),
    "nothing": (lambda t, x: 3.0, lambda t, x: 0.0 * x),
    "by differences": (square, differences),
}


def streams(value, subgradient):
    """As a loss, and as a constraint."""
    own = Custom(value, subgradient, N, rounds=ROUNDS)
    return tw.Stream(own, Affine(C, np.zeros(ROUNDS))), tw.Stream(Linear(C), own)


@each_set
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_and_named(K, name):
    value, subgradient, said = WRONG[name]
    if K.radius < 0.01 and name == "a hill":
        return  # as flat as rounding is, on so small a set
    for kind, stream in zip(("loss", "constraint"), streams(value, subgradient), strict=True):
        with pytest.raises(NotConvex, match=said) as found:
            tw.run(tw.LyapunovDescent(K), stream)
        assert int(re.match(rf"The {kind}(?: \w+)? of round (\d+) ", str(found.value))[1]) <= 10


@each_set
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_never_refused(K, name):
    for stream in streams(*RIGHT[name]):
        assert tw.run(tw.LyapunovDescent(K), stream).rounds == ROUNDS


@pytest.mark.parametrize(
    "learner",
    [tw.Ensemble, tw.baselines.SinhaVaze, tw.LyapunovFrankWolfe, tw.baselines.OnlineFrankWolfe],
)
def test_every_learner_finds_it(learner):
    value, subgradient, said = WRONG["twice a line"]
    with pytest.raises(NotConvex, match=said):
        tw.run(learner(tw.sets.Simplex(N)), streams(value, subgradient)[0])


def test_the_one_among_several_is_named():
    def carbon(t, x):
        return float(x[0]) - 0.2

    good = Custom(lambda t, x: x[1] - 0.5, lambda t, x: np.eye(N)[1], N, rounds=ROUNDS)
    bad = Custom(carbon, lambda t, x: -np.eye(N)[0], N, rounds=ROUNDS)
    stream = tw.Stream(Linear(C), [good, bad])
    with pytest.raises(NotConvex, match=r"^The constraint carbon of round \d+ \(t = \d+\) breaks"):
        tw.run(tw.LyapunovDescent(tw.sets.Simplex(N)), stream)
    parts = Sum(Linear(C), Chain((bad[:3], bad[3:])))
    with pytest.raises(NotConvex, match=r"^The loss carbon of round"):
        tw.run(tw.LyapunovDescent(tw.sets.Simplex(N)), tw.Stream(parts))
    assert isinstance(stream.constraints, Max)


def test_a_function_without_a_value_at_some_members_is_not_refused():
    """A barrier is infinite at the vertices, and says so in its own way."""
    played, vertex = Member(np.full(N, 1 / N), "here"), Member(np.eye(N)[0], "a vertex")
    for log in (math.log, np.log):
        barrier = Custom.one(lambda x, log=log: -sum(map(log, x)), lambda x: -1.0 / x, N)
        require_subgradients("loss", barrier, 0, played, [vertex])
    hill = Custom.one(lambda x: sum(map(math.log, x)), lambda x: 1.0 / x, N)
    inside = Member(np.array([0.7, 0.1, 0.1, 0.1]), "inside")
    with pytest.raises(NotConvex, match="y inside"):
        require_subgradients("loss", hill, 0, played, [vertex, inside])


def test_a_wrong_factor_does_not_hide_behind_curvature():
    """Over the whole way both inequalities hold; on a hundredth of it they do not."""
    here, there = Member(np.eye(N)[0], "here"), Member(np.eye(N)[1], "there")
    bowl = Custom.one(lambda x: 100 * (x @ x), lambda x: 190 * x, N)
    with pytest.raises(NotConvex, match=r"y 0\.01 of the way to there: .* 0\.95\d* times as much"):
        require_subgradients("loss", bowl, 0, here, [there])


def test_later_rounds_are_not_looked_at():
    late = Custom(lambda t, x: C[t] @ x, lambda t, x: C[t] if t < 10 else -C[t], N, rounds=ROUNDS)
    assert tw.run(tw.LyapunovDescent(tw.sets.Simplex(N)), tw.Stream(late)).rounds == ROUNDS


def test_sessions_refuse_it_too_and_the_round_can_be_observed_again():
    session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(N)))
    session.observe(costs=C[0])
    x = session.play()
    with pytest.raises(NotConvex, match=r"The loss of round 2 \(t = 1\) breaks .* sign"):
        session.observe(loss=Custom.one(lambda x: C[1] @ x, lambda x: -C[1], N))
    assert session.rounds == 1
    np.testing.assert_array_equal(session.play(), x)
    session.observe(loss=Custom.one(lambda x: C[1] @ x, lambda x: C[1], N))
    assert session.rounds == 2
