"""Checks of users' classes: a failure is one sentence, and so is an error inside a check."""

from __future__ import annotations

import pytest

import tidewolf as tw
from tidewolf.core.errors import CheckFailed
from tidewolf.testing import check_function, check_learner, check_set
from tidewolf.testing.checks import Checks, require
from tidewolf.testing.functions import FUNCTION_CHECKS
from tidewolf.testing.late_checks import LATE_CHECKS
from tidewolf.testing.learners import LEARNER_CHECKS
from tidewolf.testing.sets import SET_CHECKS

check = Checks[int]()


@check("numbers are small")
def numbers_are_small(trial: int) -> None:
    require(trial < 10, f"{trial} is large")


@check("numbers divide")
def numbers_divide(trial: int) -> None:
    require(10 // trial >= 0, "they do not")


def test_a_failed_check_is_named_and_so_is_an_error_inside_one():
    passed: list[str] = []
    check.run(3, "Three", passed.append)
    assert passed == ["numbers are small", "numbers divide"]
    with pytest.raises(CheckFailed, match=r"Twelve.*numbers are small.*12 is large"):
        check.run(12, "Twelve")
    with pytest.raises(CheckFailed, match=r"Zero.*numbers divide.*ZeroDivisionError"):
        check.run(0, "Zero")


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (check_set, tw.sets.Simplex(2)),
        (check_function, tw.functions.Linear([[1.0, 2.0]])),
        (check_learner, tw.LyapunovDescent(tw.sets.Simplex(2), horizon=6)),
    ],
    ids=["set", "function", "learner"],
)
def test_every_check_that_passes_is_reported_once(check, good):
    kept: list[str] = []
    check(good, on_pass=kept.append)
    assert len(kept) == len(set(kept)) > 5


def test_every_check_states_a_property():
    checks = [*SET_CHECKS, *FUNCTION_CHECKS, *LEARNER_CHECKS, *LATE_CHECKS]
    assert len(checks) > 50
    assert all(len(each.sentence.split()) > 2 for each in checks)
    assert all(not each.sentence.endswith(".") for each in checks)
