"""Require that something broken on purpose fails the fitting check."""

from __future__ import annotations

from typing import Any

import pytest

from tidewolf.core.errors import CheckFailed
from tidewolf.testing.checks import Checks


def assert_fails(
    checker: Any, checks: Checks[Any], broken: Any, expected: str, **given: Any
) -> None:
    """`expected` is the name of a check and, after a colon, a word of the detail; both may be
    empty. The error names the class and the check, in one sentence.
    """
    passed: list[str] = []
    with pytest.raises(CheckFailed) as caught:
        checker(broken, on_pass=passed.append, **given)
    name, _, detail = expected.partition(": ")
    sentence = str(caught.value)
    assert sentence.startswith(type(broken).__name__)
    assert sentence.endswith(".")
    assert detail in sentence
    if name:
        failed = checks[len(passed)]
        assert failed.name == name
        assert failed.sentence in sentence or f"({name})" in sentence
