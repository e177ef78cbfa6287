"""Functions from plain callables of jax; the laws are those of autograd_checks.py."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import autograd_checks as checks
from tidewolf.core.errors import MissingExtra
from tidewolf.functions import Linear, from_jax
from tidewolf.testing import check_function


def test_they_equal_built_in_functions():
    checks.equal_to_built_in_ones(from_jax, jnp.log)


@pytest.mark.soak  # tests/test_from_torch.py has these laws of the same class in the quick suite
def test_they_keep_the_laws_of_functions():
    checks.checks_of_functions(from_jax)


def test_parts_are_the_whole():
    checks.parts_are_the_whole(from_jax)


def test_callables_that_cannot_be_traced_are_computed_one_by_one():
    checks.untraceable_callables_are_computed_one_by_one(from_jax)


def test_a_weight_of_zero_asks_for_no_gradient():
    checks.a_weight_of_zero_asks_for_no_gradient(from_jax)


def test_bad_input_is_refused_in_a_sentence():
    checks.sentences(from_jax)


def test_64_bits_hold_within_and_nowhere_else():
    f = from_jax(lambda x, c: c @ x, checks.N, data=checks.C)
    assert f.values(np.ones(checks.N)).dtype == np.float64
    assert jnp.asarray(1.0).dtype == jnp.float32
    single = np.ones(checks.N, dtype=np.float32)
    assert f.values(single).dtype == np.float32
    here = jnp.ones(checks.N)
    assert isinstance(f.values(here), jax.Array)
    np.testing.assert_allclose(f.values(here), checks.C.sum(axis=1), rtol=1e-5)


def test_few_programs_serve_any_number_of_rounds():
    traced = []

    def value(x, c):
        traced.append(1)
        return c @ x

    f = from_jax(value, 2, data=np.ones((40, 2)))
    for k in range(1, 41):
        f[:k].values(np.ones(2))
    assert len(traced) <= 7  # 1, 2, 4, .., 64


def test_a_round_may_be_told_by_its_number_in_python():
    """`C[t]` of a NumPy array wants a number, not a tracer."""
    f = from_jax(lambda t, x: checks.C[t] @ x, checks.N, rounds=checks.ROUNDS)
    checks.require_equal(f, Linear(checks.C), [checks.RNG.normal(size=checks.N) for _ in range(2)])


def test_kinks_have_a_subgradient():
    f = from_jax(lambda x: jax.nn.relu(x).sum() + abs(x).max(), 3)
    check_function(f, points=[np.zeros(3), np.ones(3), -np.ones(3), np.array([1.0, -1.0, 0.0])])


def test_without_jax_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtra, match=r'from_jax needs jax: pip install "tidewolf\[jax\]"'):
        from_jax(lambda x: x.sum(), 2)


def test_runs_and_sessions_take_them(tmp_path):
    checks.runs_and_sessions_take_them(from_jax, tmp_path)
