"""What is done at once where numbers are plain is what the general way does: bytes, bits, words."""

import warnings
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import tidewolf as tw
from tidewolf.core.arrays import SILENCE, as_point, like
from tidewolf.core.errors import NotFinite, TidewolfError
from tidewolf.core.feedback import Arrival, FirstOrder, first_order
from tidewolf.functions import Capacity, Linear
from tidewolf.functions.support import warn_of_negative_capacities
from tidewolf.methods.events import Observe
from tidewolf.observation import of_costs, point
from tidewolf.storage.journal import decode, encode, read_event, stored

CUBE, NUMBERS = tw.sets.Box(np.zeros(2), np.ones(2)), st.floats(allow_nan=False)
DOUBLES = arrays(np.float64, array_shapes(max_dims=3, max_side=4), elements=NUMBERS)
ANY = st.one_of(
    DOUBLES,
    DOUBLES.map(np.asfortranarray),
    DOUBLES.map(lambda x: x[::-1]),
    arrays(np.float32, array_shapes(max_dims=2, max_side=3), elements=st.floats(width=32)),
    DOUBLES.map(lambda x: x.astype(">f8")),
)
PARTS = st.one_of(NUMBERS, NUMBERS.map(np.float64), st.integers(0, 3), st.just(float("nan")))
OFFSETS = st.sampled_from([0.0, -0.0, 0, 1.5, np.float64(0.0)])


ROUNDS = st.sampled_from([1, 7, np.int64(2), True])
GRADIENTS = st.tuples(ANY, PARTS, ANY, PARTS, PARTS, ROUNDS, OFFSETS, OFFSETS)
FEEDBACK = GRADIENTS.map(lambda parts: FirstOrder(*parts))


def bits(seen):
    """All that can be told of it."""
    return [
        (part.dtype.str, part.shape, part.tobytes(), part.flags.writeable, part.flags.c_contiguous)
        if isinstance(part, np.ndarray)
        else (type(part), part.hex() if isinstance(part, float) else part)
        for part in seen
    ]


@given(FEEDBACK)
@settings(max_examples=200, deadline=None)
def test_what_is_kept_at_once_is_what_is_written_and_read(seen):
    with suppress(NotFinite):
        data, (arrival, _) = stored(Observe(Arrival(0, seen)), CUBE)
        assert data == encode(seen)
        assert bits(arrival.feedback) == bits(decode(data, np.zeros(1)))


def test_what_is_kept_is_nobodys_to_change():
    x = np.ones(2)
    data, event = stored(Observe(Arrival(0, FirstOrder(x, 0.0, x, 1.0, 0.0, 1))), CUBE)
    x[0] = 7.0
    assert bits(event.arrival.feedback) == bits(decode(data, x))


SETTLED = {"as decided": (None, True), "played": (np.ones(2), True), "unsettled": (None, False)}


@pytest.mark.parametrize(("point", "committed"), SETTLED.values(), ids=SETTLED)
def test_how_a_round_was_observed_comes_back(point, committed):
    seen = FirstOrder(np.ones(2), 0.0, np.ones(2), 1.0, 0.0, 1)
    data, event = stored(Observe(Arrival(4, seen, point), committed), CUBE)
    assert (data == encode(seen)) == (point is None and committed)
    for again in (event, read_event("observe", 4, data, CUBE)):
        assert bits(again.arrival.feedback) == bits(decode(data, CUBE.center))
        assert (again.arrival.round, again.committed) == (4, committed)
        np.testing.assert_equal(again.arrival.played, point)


# --- what a session looks at ----------------------------------------------------------------------

GIVEN = st.one_of(
    arrays(np.float64, st.sampled_from([(3,), (2,), (3, 1), ()]), elements=st.floats()),
    arrays(np.float32, (3,), elements=st.floats(width=32)),
    arrays(np.int64, (3,)),
    st.lists(st.floats(), min_size=2, max_size=4),
    st.sampled_from(["abc", None, np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]), set()]),
)


def answer(do):
    """What comes of it: an array to the bit, or a sentence."""
    try:
        found = do()
    except TidewolfError as error:
        return type(error), str(error)
    return found.dtype, found.shape, found.tobytes()


@given(GIVEN)
@settings(max_examples=200, deadline=None)
def test_a_point_is_looked_at_as_every_other(x):
    session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(3)))
    K = session.learner.K
    due = answer(lambda: like(as_point(x, K.shape, "costs"), K.center))
    assert answer(lambda: point(session.learner, x, "costs")) == due


@given(arrays(np.float64, (2, 3), elements=st.floats(-1.0, 1.0)), st.sets(st.integers(0, 2)))
def test_negative_capacities_are_found_whichever_way(c, asked):
    K, found = tw.sets.Simplex(3), set(asked)
    entries = [i for i in range(3) if i not in asked and (c[:, i] < 0).any()]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warn_of_negative_capacities(K, Capacity(c), found)
    assert found == asked | set(entries)
    assert len(warned) == bool(entries)
    assert all(f"of entry {entries[0]} is " in str(one.message) for one in warned)


@given(arrays(np.float64, (3, 4), elements=st.sampled_from([-1.0, 0.0, 0.25, 0.5, 7.0])))
def test_costs_and_capacities_are_seen_as_their_functions_are(rows):
    costs, capacities, x = rows
    limit = Capacity.one(capacities)
    due = first_order(Linear.one(costs), limit, x, limit.values(x))
    K, value = tw.sets.Box(np.zeros(4), np.ones(4)), float(limit.values(x)[0])
    found = of_costs(K, costs[None], capacities[None], x, value)
    for part, expected in zip(found, due, strict=True):
        assert np.asarray(part).tolist() == np.asarray(expected).tolist()


@given(arrays(np.float64, (2, 3), elements=NUMBERS), arrays(np.float64, 3, elements=NUMBERS))
def test_the_fullest_entry_is_the_largest_piece(c, x):
    with SILENCE:
        assert Capacity._unchecked(c=c).values(x).tobytes() == (x - c).max(axis=1).tobytes()
