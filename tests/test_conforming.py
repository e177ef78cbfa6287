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
    "wrong",
    [
        {"clock": (7, 3)},
        {"clock": None},
        {"clock": Clock(-1)},
        {"clock": Clock(True)},
        {"clock": Clock(2.0)},
        {"clock": member()},
        {"member": Older(Clock(1))},
        {"member": member()._replace(x=np.ones(4))},
        {"member": member(float("nan"))},
        {"more": (member(), member()._replace(x=np.array([0.0, 1.0, np.inf])))},
        {"more": (member(), Clock(1))},
        {"more": (member(), 5)},
        {"more": member()},
        {"last": 5},
        {"last": member(t=-1)},
        {"last": member()._replace(x=np.full(3, np.nan))},
        {"pair": (1,)},
        {"pair": ("a", "a")},
        {"pair": (1, 1)},
        {"limit": "a"},
        {"limit": Clock(1)},
        {"flag": 1},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(ValueError, match=r"\w"):
        read_back(LATER._replace(**wrong))


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
