"""Functions from plain callables of torch; the laws are those of autograd_checks.py."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import autograd_checks as checks
import tidewolf as tw
from tidewolf.core.errors import MissingExtra
from tidewolf.functions import Linear, from_torch
from tidewolf.testing import check_function


def test_they_equal_built_in_functions():
    checks.equal_to_built_in_ones(from_torch, torch.log)


def test_they_keep_the_laws_of_functions():
    checks.checks_of_functions(from_torch)


def test_parts_are_the_whole():
    checks.parts_are_the_whole(from_torch)


def test_callables_that_cannot_be_traced_are_computed_one_by_one():
    checks.untraceable_callables_are_computed_one_by_one(from_torch)


def test_a_weight_of_zero_asks_for_no_gradient():
    checks.a_weight_of_zero_asks_for_no_gradient(from_torch)


def test_bad_input_is_refused_in_a_sentence():
    checks.sentences(from_torch)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_points_of_torch_stay_torchs(dtype):
    f = from_torch(checks.quadratic, checks.N, data=(checks.P, checks.C, checks.R))
    points = [torch.tensor(checks.RNG.normal(size=checks.N), dtype=dtype) for _ in range(3)]
    check_function(f, points=points)
    x = points[0].requires_grad_(True)
    assert f.values(x).dtype == dtype
    assert not f.values(x).requires_grad
    assert not f.subgradient(x, torch.ones(len(f), dtype=dtype)).requires_grad


def test_data_of_torch_and_read_only_data_stay_where_they_are():
    data = torch.tensor(checks.C)
    frozen = checks.C.copy()
    frozen.setflags(write=False)
    x = np.ones(checks.N)
    for given in (data, frozen):
        f = from_torch(lambda x, c: c @ x, checks.N, data=given)
        np.testing.assert_allclose(f.values(x), checks.C @ x)
        assert f.fields()["data"][0] is given


def test_kinks_have_a_subgradient():
    f = from_torch(lambda x: torch.relu(x).sum() + abs(x).max(), 3)
    check_function(f, points=[np.zeros(3), np.ones(3), -np.ones(3), np.array([1.0, -1.0, 0.0])])


def test_a_learner_on_torch_plays_them():
    K = tw.sets.Simplex(3).to(torch.zeros(1, dtype=torch.float64))
    costs = checks.RNG.normal(size=(10, 3))
    ours = tw.run(tw.LyapunovDescent(K), tw.Stream(from_torch(lambda x, c: c @ x, 3, data=costs)))
    theirs = tw.run(tw.LyapunovDescent(K), tw.Stream(Linear(torch.tensor(costs))))
    np.testing.assert_allclose(ours.losses, theirs.losses, atol=1e-9)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r'from_torch needs torch: pip install "tidewolf\[torch'):
        from_torch(lambda x: x.sum(), 2)


def test_runs_and_sessions_take_them(tmp_path):
    checks.runs_and_sessions_take_them(from_torch, tmp_path)
