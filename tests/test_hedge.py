"""AdaHedge: the guard on hostile losses, units and shifts, members that sleep, values of curved
losses, and a naive twin.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidewolf.methods.steps.hedge import Mixer, log_experts

seeds, EVERYONE = st.integers(0, 2**32), np.ones(4, dtype=bool)


def hostile(kind, rng, rounds=60, members=4):
    """Losses before they are centred on what is played."""
    if kind == "greedy":  # whom the mix trusts most does worst
        return None
    if kind == "rare and huge":
        sizes = np.where(rng.random((rounds, 1)) < 0.05, 1e6, 1e-3)
        return rng.standard_normal((rounds, members)) * sizes
    if kind == "growing":
        return rng.standard_normal((rounds, members)) * np.logspace(-6, 6, rounds)[:, None]
    if kind == "turning":
        turns = np.where(np.arange(rounds) // 7 % 2, -1.0, 1.0)[:, None]
        return turns * rng.standard_normal(members) + 0.1 * rng.standard_normal((rounds, members))
    return rng.choice([-1.0, 0.0, 1.0], (rounds, members))


KINDS = ["greedy", "rare and huge", "growing", "turning", "signs"]


def played(kind, seed, rounds=60, scale=1.0, shift=0.0, skipped=0.0):
    """The mixers after each round, and the weights and centred losses of each."""
    rng = np.random.default_rng(seed)
    losses, mixer, found = hostile(kind, rng, rounds), Mixer.start(4), []
    for t in range(rounds):
        awake = rng.random(4) >= skipped
        awake[0] = True
        p = mixer.weights(awake)
        row = (np.arange(4) == p.argmax()) * 1.0 if losses is None else losses[t]
        row = scale * (row + shift)
        row = np.where(awake, row - p @ row, 0.0)
        mixer = mixer.updated(row)
        found.append((mixer, p, row))
    return found


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds, skipped=st.sampled_from([0.0, 0.4]))
@settings(max_examples=6)
def test_nobody_is_lost_to_by_more_than_twice_the_gap(kind, seed, skipped):
    total, size, variances, range_ = np.zeros(4), 0.0, 0.0, 0.0
    before = 0.0
    for mixer, p, row in played(kind, seed, skipped=skipped):
        total, size = total + row, size + float(np.abs(row).max())
        variances, range_ = variances + float(p @ row**2), max(range_, float(np.ptp(row)))
        assert mixer.totals == pytest.approx(total, abs=1e-12 * size)
        assert (-total).max() <= 2.0 * mixer.gap + 1e-12 * size
        assert mixer.gap >= before
        before = mixer.gap
    Lam = log_experts(4)
    if not skipped:
        allowed = 2.0 * math.sqrt(Lam * variances) + range_ * (4.0 / 3.0 * Lam + 2.0)
        assert 2.0 * mixer.gap <= allowed + 1e-12 * size


@pytest.mark.parametrize("kind", KINDS[1:])
@given(seed=seeds, exponent=st.integers(-300, 300), shift=st.sampled_from([0.0, 5.0]))
@settings(max_examples=5)
def test_weights_feel_neither_units_nor_shifts(kind, seed, exponent, shift):
    plain, other = played(kind, seed, 30), played(kind, seed, 30, math.ldexp(1.0, exponent), shift)
    for (_, p, _), (_, q, _) in zip(plain, other, strict=True):
        assert q == pytest.approx(p, abs=1e-5 if shift else 1e-12)
    last = plain[-1][0].in_units(0.25)
    assert last.gap == 0.25 * plain[-1][0].gap
    assert last.weights(EVERYONE) == pytest.approx(plain[-1][0].weights(EVERYONE), rel=1e-12)


def naive(rows):
    """The gap by the formulas as they are printed, and p."""
    m = len(rows[0])
    L, gap = np.zeros(m), 0.0
    for row in rows:
        eta = math.log(m) / gap if gap > 0.0 else math.inf
        if eta == math.inf:
            p = (np.min(L) == L) / np.count_nonzero(np.min(L) == L)
            mix = min(L + row) - min(L)
        else:
            p = np.exp(-eta * L) / sum(np.exp(-eta * L))
            mix = -math.log(sum(p * np.exp(-eta * row))) / eta
        L, gap = L + row, gap + max(0.0, -mix)
    return L, gap


@given(seed=seeds)
@settings(max_examples=20)
def test_it_is_the_formula_written_plainly(seed):
    rows = [row for _, _, row in played("signs", seed, 20)]
    mixer = played("signs", seed, 20)[-1][0]
    L, gap = naive(rows)
    assert (mixer.totals, mixer.gap) == (pytest.approx(L), pytest.approx(gap))
    if gap > 0.0:
        p = np.exp(-math.log(4) / gap * (L - L.min()))
        assert mixer.weights(EVERYONE) == pytest.approx(p / p.sum())


def test_all_weight_on_one_that_falls_asleep_goes_to_the_others():
    """Its weight is 1 to all digits: renormalised weights would be 0/0."""
    mixer = Mixer(np.array([0.0, 1e6, 1e6, 2e6]), gap=1.0)
    assert mixer.weights(EVERYONE).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert mixer.weights(np.array([False, True, True, True])).tolist() == [0.0, 0.5, 0.5, 0.0]


@given(seed=seeds, weight=st.sampled_from([0.1, 1.0, 7.0]))
@settings(max_examples=20)
def test_values_of_exp_concave_losses_have_no_gap(seed, weight):
    """Log wealth, alpha = 1, weighed by V: with eta <= 1/V the mix loses at most the mix loss, and
    the run at most V ln(m) to its best member.
    """
    rng, mixer, total = np.random.default_rng(seed), Mixer.start(4), np.zeros(4)
    points = rng.dirichlet(np.ones(3), 4)
    for _ in range(40):
        mixer = mixer._replace(gap=max(mixer.gap, weight * log_experts(4)))
        gap, returns = mixer.gap, rng.lognormal(0.0, 0.5, 3)
        x = mixer.weights(EVERYONE) @ points
        values = weight * (math.log(returns @ x) - np.log(points @ returns))
        mixer, total = mixer.updated(values), total + values
        assert mixer.gap == pytest.approx(gap, rel=1e-12)
        assert (-total).max() <= weight * math.log(4) * (1 + 1e-9)


def test_losses_of_any_size_do_not_overflow():
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        mixer = Mixer.start(3)
        for size in (1e-300, 1e300, 1.0, 1e305):
            mixer = mixer.updated(size * np.array([1.0, -1.0, 0.0]))
            assert np.isfinite(mixer.weights(np.ones(3, dtype=bool))).all()
            assert (-mixer.totals).max() <= 2.0 * mixer.gap


def test_values_that_all_lose_to_the_mix_are_no_way_round_the_guard():
    """Nothing is lost in the first round, so that eta stays infinite; the second then turns to whom
    it does not trust.
    """
    mixer = Mixer.start(2).updated(np.array([1.0, 3.0]))
    assert mixer.gap == 0.0
    mixer = mixer.updated(np.array([0.0, -5.0]))
    assert mixer.gap == 3.0
    assert -mixer.totals.min() <= 2.0 * mixer.gap


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "greedy"])
@given(seed=seeds, delay=st.sampled_from([0, 1, 5, 30]))
@settings(max_examples=6)
def test_the_guard_holds_for_losses_that_come_late(kind, seed, delay):
    """Rounds are mixed without those that wait, and Delta is at least what all of these may turn;
    without any, it is that of AdaHedge to the bit.
    """
    losses, mixer = hostile(kind, np.random.default_rng(seed)), Mixer.start(4)
    plain = mixer
    waiting, size, largest = [], 0.0, 0.0
    for row in losses:
        waiting.append(row - mixer.weights(EVERYONE) @ row)
        if len(waiting) > delay:
            told = waiting.pop(0)
            mixer, plain = mixer.updated(told, len(waiting)), plain.updated(told)
            size, largest = size + np.abs(told).max(), max(largest, float(np.ptp(told)))
            assert mixer.gap >= delay * largest
            assert (-mixer.totals <= 2.0 * mixer.gap + 1e-9 * size).all()
            if delay == 0:
                assert (mixer.gap, mixer.totals.tolist()) == (plain.gap, plain.totals.tolist())
    doubled = mixer.in_units(2.0)
    assert (doubled.gap, doubled.largest) == (2.0 * mixer.gap, 2.0 * mixer.largest)
