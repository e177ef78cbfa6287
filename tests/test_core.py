"""What everything rests on: the tree of errors, arguments, sets that are sets, random numbers."""

from __future__ import annotations

import pickle
import re
from inspect import isclass, signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewolf.core import errors
from tidewolf.core.arguments import as_callback, as_flag, as_items, as_path, as_text
from tidewolf.core.errors import InvalidInput, TidewolfError, TidewolfWarning, WrongType
from tidewolf.core.matrices import SparsePlusLowRank
from tidewolf.core.oracle import as_set
from tidewolf.sets import Simplex

EVERY = {
    name: kind
    for name, kind in vars(errors).items()
    if isclass(kind) and issubclass(kind, TidewolfError | TidewolfWarning)
}


def test_the_tree_at_the_top_of_the_file_is_that_of_the_classes():
    parents, drawn = {}, []
    for line in errors.__doc__.splitlines():
        if found := re.match(r"^ {4}((?:[ |]   )*)(?:[|`]-- )?(\w+)( \(\w+\))?(?:  |$)", line):
            depth = len(found[1]) // 4 + ("-- " in line)
            drawn = [*drawn[:depth], found[2]]
            parents[found[2]] = drawn[depth - 1] if depth else None
    assert set(parents) == set(EVERY)
    for name, parent in parents.items():
        above = [kind.__name__ for kind in EVERY[name].__bases__ if kind.__name__ in EVERY]
        assert above == ([parent] if parent else []), name


@pytest.mark.parametrize("kind", [k for k in EVERY.values() if issubclass(k, TidewolfError)])
def test_an_error_carries_its_setting_also_through_a_pickle(kind):
    more = [()] if "cycle" in signature(kind).parameters else []
    error = kind("A sentence.", *more, setting="n")
    assert (str(error), error.setting) == ("A sentence.", "n")
    if not more:
        assert pickle.loads(pickle.dumps(error)).setting == "n"


@pytest.mark.parametrize("check", [as_flag, as_text, as_path, as_callback])
@pytest.mark.parametrize("wrong", [3.5, object(), [1]])
def test_arguments_of_another_kind_are_refused_by_name(check, wrong):
    with pytest.raises(InvalidInput, match=r"^It .*\.$"):
        check(wrong, "It")


def test_text_is_one_thing_and_not_its_letters():
    with pytest.raises(WrongType):
        as_items("abc", "The parts", "[1, 2]")
    assert as_items(iter([1, 2]), "The parts", "[1, 2]") == (1, 2)


@pytest.mark.parametrize("wrong", [Simplex, None, 3, "Simplex", np.ones(3)])
def test_only_a_set_is_a_set(wrong):
    with pytest.raises(WrongType, match=r"^It needs a set such as sets\.Simplex\(3\)"):
        as_set(wrong, "It")
    assert as_set(Simplex(2), "It") == Simplex(2)


@given(seed=st.integers(0, 2**32))
def test_a_sparse_plus_low_rank_matrix_is_its_dense_twin(seed):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    sparse = csr_array(rng.random((4, 3)) * (rng.random((4, 3)) < 0.4))
    left, right, v = rng.random((4, 2)), rng.random((3, 2)), rng.random(3)
    D = SparsePlusLowRank(sparse, left, right)
    np.testing.assert_allclose(D @ v, (sparse.toarray() + left @ right.T) @ v)
