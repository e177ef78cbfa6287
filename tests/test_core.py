"""What everything rests on: the tree of errors, arguments, sets that are sets, random numbers."""

import pickle
import re
from inspect import isclass, signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewolf.core import errors
from tidewolf.core.arguments import match_names
from tidewolf.core.errors import InvalidInput, TidewolfError, TidewolfWarning
from tidewolf.core.sparse import SparsePlusLowRank

KINDS = TidewolfError | TidewolfWarning
EVERY = {k: v for k, v in vars(errors).items() if isclass(v) and issubclass(v, KINDS)}


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


@given(seed=st.integers(0, 2**32))
def test_a_sparse_plus_low_rank_matrix_is_its_dense_twin(seed):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    sparse = csr_array(rng.random((4, 3)) * (rng.random((4, 3)) < 0.4))
    left, right, v = rng.random((4, 2)), rng.random((3, 2)), rng.random(3)
    D = SparsePlusLowRank(sparse, left, right)
    np.testing.assert_allclose(D @ v, (sparse.toarray() + left @ right.T) @ v)


# names

LINKS = ["SEA > DEN", "DEN > NYC", "SEA > NYC", "NYC > MIA"]


ARROWS, SOME = [" > ", ">", "->", " \u2192 "], st.sets(st.integers(0, len(LINKS) - 1))


@given(st.permutations(range(len(LINKS))), st.sampled_from(ARROWS), SOME)
def test_each_name_has_its_place_in_any_order_and_spelling(order, arrow, kept):
    given = [LINKS[i].replace(" > ", arrow) if i in kept else None for i in order]
    places = match_names(given, LINKS, "t.csv", needed=kept)
    assert places.tolist() == [order.index(i) if i in kept else -1 for i in range(len(LINKS))]
    for absent in set(range(len(LINKS))) - kept:
        with pytest.raises(InvalidInput, match=rf"^t.csv: .*{LINKS[absent]}.* is missing"):
            match_names(given, LINKS, "t.csv", needed=[absent])


def test_the_first_of_several_spellings_counts():
    expected = [("fibre", "A > B", "B > A"), ("radio", "A > C")]
    assert match_names(["A->C", "B > A"], expected, "t.csv").tolist() == [1, 0]
    assert match_names(["B > A", "fibre", "radio"], expected, "t.csv").tolist() == [1, 2]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([*LINKS, "SEA > DNE"], "'SEA > DNE'. Did you mean SEA > DEN?"),
        ([*LINKS, "SEA->DEN"], "'SEA->DEN' is given twice"),
        (LINKS[:2], "'SEA > NYC' and 'NYC > MIA' is missing"),
    ],
)
def test_unknown_double_and_missing_names_are_refused(given, named):
    with pytest.raises(InvalidInput) as raised:
        match_names(given, LINKS, "t.csv", "link")
    assert str(raised.value).startswith("t.csv: ")
    assert named in str(raised.value)
