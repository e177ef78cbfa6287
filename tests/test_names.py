"""Names that are given are matched with those that are expected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import match_names

LINKS = ["SEA > DEN", "DEN > NYC", "SEA > NYC", "NYC > MIA"]


@given(
    order=st.permutations(range(len(LINKS))),
    arrow=st.sampled_from([" > ", ">", "->", " \u2192 "]),
    kept=st.sets(st.integers(0, len(LINKS) - 1)),
)
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
