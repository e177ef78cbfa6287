"""What runs share: numbers as people read them, and recordings that stop and go on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.evaluation.formatting import aligned, finite_or_none, interval, number, tick
from tidewolf.evaluation.recording import Recording

finite = st.floats(-1e12, 1e12)


@given(finite)
def test_a_number_is_read_back_to_four_digits(x):
    assert float(number(x).replace(",", "")) == pytest.approx(x, rel=6e-2, abs=1e-300)


@given(finite, st.floats(0, 1e6))
def test_an_interval_shows_both_ends_or_one_and_its_error(lower, width):
    said = interval((lower, lower + width))
    assert said.startswith("[") == (number(lower) != number(lower + width))


@given(st.floats(0, 1e12))
def test_ticks_are_read_back(x):
    said = tick(x)
    unit = {"k": 1e3, "M": 1e6, "G": 1e9}.get(said[-1], 1.0)
    assert float(said.rstrip("kMG")) * unit == pytest.approx(x, rel=1e-5)


def test_json_knows_no_infinity():
    assert finite_or_none(math.inf) is finite_or_none(math.nan) is finite_or_none(None) is None
    assert finite_or_none(1.5) == 1.5


@given(st.lists(st.tuples(st.text("ab", max_size=4), st.text("12", max_size=4)), min_size=1))
def test_lines_of_a_table_are_of_one_width(rows):
    assert len({len(line) for line in aligned(rows)}) == 1


def test_a_recording_goes_on_from_its_bytes_bit_for_bit():
    problem = tw.problems.routing(rounds=30)
    learner = tw.LyapunovDescent(problem.K)
    whole, first = Recording(learner, problem.stream), Recording(learner, problem.stream)
    for _ in whole.advance():
        pass
    for rounds in first.advance():
        if rounds >= 11:
            break
    second = Recording.load(first.save(), learner, problem.stream, "It")
    for _ in second.advance():
        pass
    assert np.array_equal(whole.losses, second.losses)
    assert np.array_equal(whole.distances, second.distances)
