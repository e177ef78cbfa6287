"""Checks of users' classes: a failure is one sentence, and so is an error inside a check."""

import pytest

import tidewolf as tw
from tidewolf.core import errors
from tidewolf.testing import functions, learners, sets
from tidewolf.testing.checks import checks_of, require, run_checks, statement


class NumberChecks(int):
    def numbers_are_small(self):
        """Numbers are small."""
        require(self < 10, f"{self} is large")

    def numbers_divide(self):
        """Numbers divide."""
        require(10 // self >= 0, "they do not")


def test_a_failed_check_is_named_and_so_is_an_error_inside_one():
    passed = []
    run_checks(NumberChecks(3), "Three", passed.append)
    assert passed == ["numbers are small", "numbers divide"]
    with pytest.raises(errors.CheckFailed, match=r"Twelve.*numbers are small.*12 is large"):
        run_checks(NumberChecks(12), "Twelve", None)
    with pytest.raises(errors.CheckFailed, match=r"Zero.*numbers divide.*ZeroDivisionError"):
        run_checks(NumberChecks(0), "Zero", None)


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (tw.testing.check_set, tw.sets.Simplex(2)),
        (tw.testing.check_function, tw.functions.Linear([[1.0, 2.0]])),
        (tw.testing.check_learner, tw.LyapunovDescent(tw.sets.Simplex(2), horizon=6)),
    ],
    ids=["set", "function", "learner"],
)
def test_every_check_that_passes_is_reported_once(check, good):
    kept = []
    check(good, on_pass=kept.append)
    assert len(kept) == len(set(kept)) > 5


def test_every_check_states_a_property():
    kinds = (sets.SetChecks, functions.FunctionChecks, learners.LearnerChecks)
    checks = [check for kind in kinds for check in checks_of(kind).values()]
    assert len(checks) > 50
    assert all(len(statement(check).split()) > 2 for check in checks)
