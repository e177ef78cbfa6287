"""Require that something broken on purpose fails the fitting check."""

import pytest

from tidewolf.core.errors import CheckFailed
from tidewolf.testing.checks import checks_of, statement


def assert_fails(checker, kind, broken, expected, **given):
    """`expected` is the name of a check and, after a colon, a word of the detail; both may be
    empty. The error names the class and the check, in one sentence.
    """
    passed = []
    with pytest.raises(CheckFailed) as caught:
        checker(broken, on_pass=passed.append, **given)
    name, _, detail = expected.partition(": ")
    sentence = str(caught.value)
    assert sentence.startswith(type(broken).__name__)
    assert sentence.endswith(".")
    assert detail in sentence
    if name:
        checks = checks_of(kind)
        assert list(checks)[len(passed)] == name
        assert statement(checks[name]) in sentence or f"({name})" in sentence
