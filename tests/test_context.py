"""Contexts: features are weights of few cells, known before the round, and follow the clock."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core.errors import InvalidInput, TidewolfError, WrongShape
from tidewolf.experts.context import duration

cells_of = st.integers(1, 12)
periods = st.one_of(st.integers(1, 400), st.sampled_from(["1s", "15min", "1d", "7d", "2.5h"]))
moments = st.integers(-(10**9), 10**9).map(float) | st.sampled_from([0.0, -1e-20])
moments |= st.floats(-4e9, 4e9)


def dense(features, cells):
    """The features as a vector, after checking what every context promises."""
    places, values = features
    assert places.dtype == np.int64
    assert values.dtype == np.float64
    assert places.shape == values.shape
    assert len(set(places.tolist())) == len(places)
    assert ((places >= 0) & (places < cells)).all()
    assert (values > 0.0).all()
    phi = np.zeros(cells)
    phi[places] = values
    return phi


def at(season, place):
    """The features at a place: a round, or a time."""
    if isinstance(season.period, int):
        return dense(season.features(None, place), season.cells)
    return dense(season.features(tw.RoundInfo(time=place), 0), season.cells)


@given(period=periods, cells=cells_of, t=st.integers(0, 10**12), time=moments)
def test_a_season_has_at_most_two_cells_whose_weights_sum_to_one(period, cells, t, time):
    places, values = tw.experts.Season(period, cells).features(tw.RoundInfo(time=time), t)
    assert 1 <= len(places) <= 2
    assert values.sum() == 1.0
    dense((places, values), cells)
    if len(places) == 2:
        assert (places[1] - places[0]) % cells in (1, cells - 1)


@given(st.integers(1, 400), cells_of, st.integers(0, 10**9), st.integers(1, 99))
def test_a_season_of_rounds_is_periodic_to_the_bit(period, cells, t, turns):
    season = tw.experts.Season(period, cells)
    assert (at(season, t) == at(season, t + turns * period)).all()


@given(period=periods, cells=cells_of, time=moments)
def test_a_season_comes_again_after_its_period(period, cells, time):
    season = tw.experts.Season(period, cells)
    step = period if isinstance(period, int) else season.seconds
    place = int(abs(time)) if isinstance(period, int) else time
    assert np.abs(at(season, place) - at(season, place + step)).max() <= cells * 4e-6


DURATIONS = st.sampled_from(["15min", "1d", "7d"])


@given(period=DURATIONS, cells=cells_of, time=moments, share=st.floats(0.0, 0.4))
def test_a_season_moves_no_faster_than_the_clock(period, cells, time, share):
    """Hat functions: over a share of the period each weight changes by at most cells * share."""
    season = tw.experts.Season(period, cells)
    moved = at(season, time + share * season.seconds) - at(season, time)
    assert np.abs(moved).max() <= cells * share + 1e-5


@pytest.mark.parametrize("cells", [1, 2, 3, 8])
def test_cells_are_equally_spaced_and_each_rules_at_its_own_moment(cells):
    season = tw.experts.Season(24 * cells, cells)
    for j in range(cells):
        assert at(season, 24 * j)[j] == 1.0
        half = at(season, 24 * j + 12)
        assert half[j] == (1.0 if cells == 1 else 0.5)
        assert half[(j + 1) % cells] == (1.0 if cells == 1 else 0.5)


@given(period=st.integers(1, 500), cells=cells_of)
def test_every_cell_has_the_same_share_of_the_rounds_of_whole_periods(period, cells):
    season = tw.experts.Season(period, cells)
    shares = sum(at(season, t * 1) for t in range(period))
    assert shares.sum() == pytest.approx(period)
    if period % cells == 0:
        assert shares == pytest.approx(period / cells)


def test_a_season_by_the_clock_does_not_count_rounds():
    season, noon = tw.experts.Season("1d", 4), datetime.datetime(2026, 3, 1, 12)
    for t in (0, 1, 977):
        assert at(season, noon)[2] == season.features(tw.RoundInfo(time=noon), t)[1][0] == 1.0
    for stamp in ("2026-07-01T12:00", "1969-12-31T12:00", np.datetime64("2026-03-01T12:00")):
        assert at(season, stamp)[2] == 1.0
    assert at(season, "2026-03-01T12:00+06:00")[1] == 1.0


SECONDS = {"90s": 90.0, "15min": 900.0, "12h": 43200.0, "1 d": 86400.0}


@pytest.mark.parametrize(("text", "seconds"), SECONDS.items())
def test_durations(text, seconds):
    assert duration(text, "It") == tw.experts.Season(text).seconds == seconds
    assert tw.experts.Season(text) == tw.experts.Season(text.replace(" ", ""))


NO_PERIODS = ["", "d", "1", "1y", "1m", "-1d", "0d", "nan d", "1e3s", "1d1d", "9" * 400 + "d"]
NO_PERIODS += [0, -1, 1.5, float("nan"), True, None, [96], 10**30]
NO_SEASONS = [((period,), "period|duration") for period in NO_PERIODS]
NO_SEASONS += [((96, cells), "cells") for cells in (0, -3, 2.5, "8", None, 2**40)]


@pytest.mark.parametrize(("settings", "named"), NO_SEASONS)
def test_what_is_no_period_or_number_of_cells_is_refused(settings, named):
    with pytest.raises(TidewolfError, match=named):
        tw.experts.Season(*settings)


@pytest.mark.parametrize(
    ("context", "error"),
    [
        *((context, InvalidInput) for context in (-1, 3, 1.5, "night", 10**30)),
        *((weights, WrongShape) for weights in ([0.5, 0.5], [[1.0, 0.0, 0.0]], [])),
        *((weights, InvalidInput) for weights in ([0.5, 0.5, 0.5], [1.5, -0.5, 0.0], [0.0] * 3)),
    ],
)
def test_what_is_no_category_and_no_weights_is_refused(context, error):
    with pytest.raises(error):
        tw.experts.Categories(3).features(tw.RoundInfo(context=context), 0)


@given(n=st.integers(1, 9), data=st.data())
def test_categories_are_one_cell_or_the_weights(n, data):
    kinds = tw.experts.Categories(n)
    assert kinds.cells == n
    j = data.draw(st.integers(0, n - 1))
    assert dense(kinds.features(tw.RoundInfo(context=j), 0), n)[j] == 1.0
    raw = np.array(data.draw(st.lists(st.floats(0.0, 1.0), min_size=n, max_size=n)))
    raw[j] += 0.5
    weights = raw / raw.sum()
    phi = dense(kinds.features(tw.RoundInfo(context=weights), 0), n)
    assert (phi.sum(), phi) == (pytest.approx(1.0, abs=1e-15 * n), pytest.approx(weights))


def test_weights_that_sum_to_one_up_to_rounding_are_scaled():
    _, values = tw.experts.Categories(3).features(tw.RoundInfo(context=[0.2, 0.3, 0.5 + 9e-7]), 0)
    assert abs(values.sum() - 1.0) < 1e-15


def test_what_is_not_known_has_no_features():
    for known in (None, tw.RoundInfo(), tw.RoundInfo(context=1)):
        assert tw.experts.Season("1d").features(known, 3) is None
        assert tw.experts.Season(96).features(known, 3) is not None
    for known in (None, tw.RoundInfo(), tw.RoundInfo(time=0.0)):
        assert tw.experts.Categories(3).features(known, 0) is None
