"""What was read from a file is held against the type of a state, record inside record."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from tidewolf.core import checkpoint
from tidewolf.core.conforming import conforming
from tidewolf.core.types import Array
from tidewolf.sets import Simplex

K = Simplex(3)


class Clock(NamedTuple):
    t: int
    began: int = 0


class Member(NamedTuple):
    x: Array
    weight: float
    clock: Clock


class State(NamedTuple):
    clock: Clock
    member: Member
    more: tuple[Member, ...]
    last: Member | None
    pair: tuple[int, str]
    limit: float | None
    flag: bool


def member(weight: float = 0.5, t: int = 2) -> Member:
    return Member(np.full(3, 1 / 3), weight, Clock(t))


BEGUN = State(Clock(0), member(t=0), (member(t=0),), None, (0, ""), None, False)
LATER = State(Clock(7, 3), member(), (member(), member(0.1)), member(), (1, "a"), 2.0, True)


class Older(NamedTuple):
    clock: Any


def read_back(state: Any, kind: Any = State, begun: Any = BEGUN) -> Any:
    data = checkpoint.dump(state, settings="s", learner="Test")
    fields = checkpoint.load(data, settings="s", reference=np.zeros(1)).fields
    return conforming(fields, kind, begun, K)


def types_of(value: Any) -> Any:
    return type(value), tuple(map(types_of, value)) if isinstance(value, tuple) else ()


@pytest.mark.parametrize("state", [BEGUN, LATER])
def test_records_inside_records_come_back_as_they_were(state):
    back = read_back(state)
    assert types_of(back) == types_of(state)
    assert checkpoint.dump(back, settings="s", learner="Test") == checkpoint.dump(
        state, settings="s", learner="Test"
    )


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (LATER._replace(clock=(7, 3)), "clock is no Clock"),
        (LATER._replace(clock=None), "clock is no Clock"),
        (LATER._replace(clock=Clock(-1)), "t counts, and is at least 0, not -1"),
        (LATER._replace(clock=Clock(True)), "t is a whole number, not True"),
        (LATER._replace(clock=Clock(2.0)), "t is a whole number, not 2.0"),
        (LATER._replace(clock=member()), "it has a field 'x', which this tidewolf does not know"),
        (LATER._replace(member=Clock(1)), "it has a field 't', which this tidewolf does not know"),
        (LATER._replace(member=Older(Clock(1))), "x is missing"),
        (
            LATER._replace(member=member()._replace(x=np.ones(4))),
            r"x is an array of shape \(3,\), not one of \(4,\)",
        ),
        (LATER._replace(member=member(float("nan"))), "weight is a number, not nan"),
        (
            LATER._replace(more=(member(), member()._replace(x=np.array([0.0, 1.0, np.inf])))),
            "x holds what is no finite number",
        ),
        (LATER._replace(more=(member(), Clock(1))), "it has a field 't'"),
        (LATER._replace(more=(member(), 5)), "more is no Member"),
        (LATER._replace(more=member()), "more is a list"),
        (LATER._replace(last=5), "last is no Member"),
        (LATER._replace(last=member(t=-1)), "t counts"),
        (LATER._replace(last=member()._replace(x=np.full(3, np.nan))), "x holds NaN"),
        (LATER._replace(pair=(1,)), "pair must have 2 items, not 1"),
        (LATER._replace(pair=("a", "a")), "pair is a whole number, not 'a'"),
        (LATER._replace(pair=(1, 1)), "pair is text, not 1"),
        (LATER._replace(limit="a"), "limit is a number, not 'a'"),
        (LATER._replace(limit=Clock(1)), "limit is no record"),
        (LATER._replace(flag=1), "flag is true or false, not 1"),
    ],
)
def test_what_does_not_fit_is_named(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_back(wrong)


def test_a_field_with_a_default_may_be_missing():
    """As in a file of a tidewolf whose states did not have it yet."""

    class Saved(NamedTuple):
        t: int

    assert read_back(Saved(4), Clock, Clock(0)) == Clock(4, 0)


class Holder(NamedTuple):
    parts: tuple[Any, ...]


def test_a_part_that_says_itself_what_it_remembers_is_read_as_it_began() -> None:
    begun = Holder((Clock(0), member(t=0)))
    later = Holder((Clock(7, 3), member()))
    assert types_of(read_back(later, Holder, begun)) == types_of(later)
    with pytest.raises(ValueError, match="parts is no record"):
        read_back(later, Holder, Holder((None, None)))
    with pytest.raises(ValueError, match=r"field 't'|field 'x'|is missing"):
        read_back(later, Holder, Holder((member(), Clock(0))))
