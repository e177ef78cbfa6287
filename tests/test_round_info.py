"""What is known before a round: checked, compared by content, and never of the round itself."""

import copy
import datetime
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core import errors, round_info
from tidewolf.core.feedback import FullInformation

LOSS, LIMIT = tw.functions.Linear([[1.0, 2.0]]), tw.functions.Capacity([[0.6, 0.7]])


@given(st.datetimes(min_value=datetime.datetime(1900, 1, 1)))
def test_every_way_of_saying_a_time_gives_the_same_seconds(moment):
    seconds = (moment - datetime.datetime(1970, 1, 1)).total_seconds()
    aware = moment.replace(tzinfo=datetime.UTC)
    for said in (moment, aware, moment.isoformat(), aware.isoformat(), np.datetime64(moment)):
        assert tw.RoundInfo(time=said).time == pytest.approx(seconds, abs=1e-4)
    assert tw.RoundInfo(time=seconds).time == seconds
    several = [np.datetime64(moment)] * 2
    for many in ([moment] * 2, [moment.isoformat()] * 2, several, np.array(several)):
        assert round_info.as_times(many, "Times")[0] == pytest.approx(seconds, abs=1e-4)


def test_times_that_are_not_known():
    for many in ([None, 1.0], [float("nan"), 1.0], np.array([np.nan, 1.0])):
        assert np.array_equal(round_info.as_times(many, "Times")[0], [np.nan, 1.0], equal_nan=True)
    both = np.array(["NaT", "1970-01-01T00:00:01"], dtype="datetime64[s]")
    assert np.array_equal(round_info.as_times(both, "Times")[0], [np.nan, 1.0], equal_nan=True)
    assert tw.RoundInfo(time=datetime.date(1970, 1, 2)).time == 86400.0
    assert tw.RoundInfo(time=7).time == 7.0


@pytest.mark.parametrize("time", ["noon", "", "12:00", "2026-13-01", [1.0], {}, True, 1j, b"2026"])
def test_what_is_no_time_is_refused(time):
    with pytest.raises(errors.TidewolfError, match="The time of a round"):
        tw.RoundInfo(time=time)
    for unknown in (float("nan"), float("inf"), np.datetime64("NaT")):
        with pytest.raises(errors.NotFinite):
            tw.RoundInfo(time=unknown)


def test_contexts_are_kept_in_their_plain_form():
    pairs = ((3, 3), (3.0, 3), (np.int32(3), 3), (True, 1), (2.5, 2.5), ("night", "night"))
    for said, kept in pairs:
        context = tw.RoundInfo(context=said).context
        assert context == kept
        assert type(context) is type(kept)
    rows = np.array([0.5, 0.5])
    context = tw.RoundInfo(context=rows).context
    rows[0] = 7.0
    assert context.tolist() == [0.5, 0.5]
    assert not context.flags.writeable
    for bad in (object(), {}, [float("nan")], float("nan"), [[1.0], [2.0, 3.0]], [object()]):
        with pytest.raises(errors.TidewolfError, match="The context of a round"):
            tw.RoundInfo(context=bad)


def test_advice_is_points_by_name_and_what_is_no_point_is_absent():
    given_point = np.array([0.25, 0.75])
    absent = {"b": None, "c": [np.nan, 1.0], "d": [np.inf, 1.0]}
    known = tw.RoundInfo(advice={"a": given_point, **absent, "e": [0, 1]})
    given_point[:] = 9.0
    assert list(known.advice) == ["a", "e"]
    assert known.advice["a"].tolist() == [0.25, 0.75]
    assert known.advice["e"].dtype == np.float64
    assert not known.advice["a"].flags.writeable
    with pytest.raises(TypeError):
        known.advice["a"] = given_point
    for bad in ([0.5, 0.5], "incumbent", {1: [0.5, 0.5]}, {"a": "x"}, {"a": [[1.0], [1.0, 2.0]]}):
        with pytest.raises(errors.TidewolfError):
            tw.RoundInfo(advice=bad)
    with pytest.raises(errors.WrongType, match="points by name"):
        tw.RoundInfo(advice=[0.5, 0.5])


def test_a_forecast_is_the_functions_of_one_round():
    assert tw.RoundInfo(forecast=(LOSS, LIMIT)).forecast == FullInformation(LOSS, LIMIT)
    assert type(tw.RoundInfo(forecast=FullInformation(LOSS, LIMIT)).forecast) is FullInformation
    two = tw.functions.Linear([[1.0, 2.0]] * 2)
    limits = tw.functions.Capacity([[0.6, 0.7]] * 2)
    with pytest.raises(errors.InvalidInput, match="of one round"):
        tw.RoundInfo(forecast=(two, limits))
    for bad in (LOSS, (LOSS,), (LOSS, 3.0), (LOSS, tw.functions.Capacity([[1.0]])), "last"):
        with pytest.raises(errors.TidewolfError):
            tw.RoundInfo(forecast=bad)


def every_known():
    both = {"a": [0.5, 0.5], "b": [0.5, 0.5]}
    advice = ({"a": [0.5, 0.5]}, {"b": [0.5, 0.5]}, {"a": [0.25, 0.75]}, both)
    forecasts = ((LOSS, LIMIT), (LOSS, None), (tw.functions.Linear([[1.0, 3.0]]), LIMIT))
    contexts = (1, 2.5, "night", [1.0, 0.0], [0.0, 1.0])
    return [
        *(tw.RoundInfo(), tw.RoundInfo(time=0.0), tw.RoundInfo(time=1.0)),
        *(tw.RoundInfo(context=context) for context in contexts),
        *(tw.RoundInfo(advice=points) for points in advice),
        *(tw.RoundInfo(forecast=forecast) for forecast in forecasts),
        tw.RoundInfo(unavailable=("SEA > DEN",)),
        tw.RoundInfo(1.0, 2, {"a": [1.0]}, (LOSS, LIMIT), ("SEA > DEN", 3)),
    ]


def test_what_is_known_compares_by_content():
    for i, one in enumerate(every_known()):
        for j, other in enumerate(every_known()):
            assert (one == other) == (one.identity == other.identity) == (i == j), (one, other)
            assert (one != other) == (i != j)
        assert hash(one) == hash(every_known()[i])
        for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one)), one._replace()):
            assert again == one
            assert type(again) is tw.RoundInfo
        assert repr(one).startswith("RoundInfo(")
    assert tw.RoundInfo() != (None,) * 5
    swapped = tw.RoundInfo(advice={"b": [0.0, 1.0], "a": [1.0, 0.0]})
    assert swapped == tw.RoundInfo(advice={"a": [1.0, 0.0], "b": [0.0, 1.0]})
    assert swapped.identity == tw.RoundInfo(advice={"a": [1.0, 0.0], "b": [0.0, 1.0]}).identity


def test_a_forecast_by_a_function_of_python_has_no_identity():
    custom = tw.functions.Custom(lambda x: x.sum(), lambda x: np.ones(2), shape=(2,))
    assert tw.RoundInfo(forecast=(custom, LIMIT)).identity is None
