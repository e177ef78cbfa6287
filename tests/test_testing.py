"""Laws for other people's classes: each is a sentence, and an error inside one is told as it."""

from __future__ import annotations

import pytest

import tidewolf as tw
from tidewolf.core.errors import CheckFailed
from tidewolf.testing import check_function, check_learner, check_set
from tidewolf.testing.checks import Check, check, require, run_checks


@check("numbers are small")
def numbers_are_small(trial: int) -> None:
    require(trial < 10, f"{trial} is large")


@check("numbers divide")
def numbers_divide(trial: int) -> None:
    require(10 // trial >= 0, "they do not")


def test_a_broken_law_is_named_and_so_is_an_error_inside_one():
    kept: list[str] = []
    run_checks([numbers_are_small, numbers_divide], 3, "Three", kept.append)
    assert kept == ["numbers are small", "numbers divide"]
    with pytest.raises(CheckFailed, match=r"Twelve.*numbers are small.*12 is large"):
        run_checks([numbers_are_small], 12, "Twelve")
    with pytest.raises(CheckFailed, match=r"Zero.*numbers divide.*ZeroDivisionError"):
        run_checks([numbers_divide], 0, "Zero")


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (check_set, tw.sets.Simplex(2)),
        (check_function, tw.functions.Linear([[1.0, 2.0]])),
        (check_learner, tw.LyapunovDescent(tw.sets.Simplex(2), horizon=6)),
    ],
    ids=["set", "function", "learner"],
)
def test_every_law_that_is_kept_is_told_once(check, good):
    kept: list[str] = []
    check(good, on_pass=kept.append)
    assert len(kept) == len(set(kept)) > 5


def test_every_law_is_a_sentence():
    from tidewolf.testing import functions, learners, sets

    checks = [
        x for m in (functions, learners, sets) for x in vars(m).values() if isinstance(x, Check)
    ]
    assert len(checks) > 30
    assert all(len(each.sentence.split()) > 2 for each in checks)
    assert all(not each.sentence.endswith(".") for each in checks)
