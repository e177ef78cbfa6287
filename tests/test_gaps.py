"""Tables with gaps as rounds, against a naive twin, and what is said of them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewolf.core.errors import InvalidInput
from tidewolf.files import Table, align

NAN = math.nan


def table(values, times=None, file="costs.csv"):
    values = np.array(values, dtype=float)
    values = values.reshape(len(values), -1)
    columns = tuple("abcdef"[: values.shape[1]])
    places = [f"{file}, line {i}" for i in range(2, len(values) + 2)]
    times = None if times is None else np.array(times, dtype=float)
    return Table(times, columns, values, places, file)


cells = st.one_of(st.just(NAN), st.integers(0, 9).map(float))


@st.composite
def tables(draw):
    """Two or three tables of one or two columns, each with some of eight times."""
    found = {}
    for name in ("costs", "capacities", "demands")[: draw(st.integers(1, 3))]:
        times = draw(st.lists(st.integers(0, 7), min_size=1, max_size=8, unique=True).map(sorted))
        width = draw(st.integers(1, 2))
        row = st.lists(cells, min_size=width, max_size=width)
        rows = draw(st.lists(row, min_size=len(times), max_size=len(times)))
        found[name] = table(rows, times, f"{name}.csv")
    return found


def naive(given, gaps):
    """Round by round and cell by cell: (times, values by table, seen), or None where refused."""
    times = sorted({t for each in given.values() for t in each.times.tolist()})
    seen, out = [True] * len(times), {}
    for name, each in given.items():
        rows = dict(zip(each.times.tolist(), each.values.tolist(), strict=True))
        out[name] = []
        for i, t in enumerate(times):
            row = []
            for j in range(len(each.columns)):
                value = rows[t][j] if t in rows else NAN
                if math.isnan(value):
                    seen[i] = False
                    earlier = [r[j] for s, r in rows.items() if s < t and not math.isnan(r[j])]
                    later = [r[j] for s, r in rows.items() if s > t and not math.isnan(r[j])]
                    beside = [v for v in rows.get(t, ()) if not math.isnan(v)]
                    if not earlier and (gaps == "last" or not later):
                        if name != "costs" or gaps != "last" or not (beside or out[name]):
                            return None
                        later = [np.mean(beside) if beside else out[name][-1][j]]
                    value = earlier[-1] if earlier else later[0]
                row.append(value)
            out[name].append(row)
    return times, out, seen


@pytest.mark.parametrize("gaps", ["last", "unseen"])
@given(given=tables())
def test_gaps_are_filled_as_cell_by_cell(gaps, given):
    expected = naive(given, gaps)
    if expected is None:
        with pytest.raises(InvalidInput, match=r"no number"):
            align(given, gaps)
        return
    times, values, seen = expected
    before = {name: each.values.copy() for name, each in given.items()}
    found = align(given, gaps)
    for name in given:
        np.testing.assert_array_equal(given[name].values, before[name])
        assert found.tables[name].times.tolist() == times
        assert found.tables[name].values.tolist() == values[name]
        assert len(found.tables[name].places) == len(times)
    assert (found.seen is None) == (gaps == "last" or all(seen))
    if found.seen is not None:
        assert found.seen.tolist() == seen
    assert bool(found.notes) == (not all(seen))


@given(given=tables())
def test_refusing_leaves_tables_as_they_are_or_refuses(given):
    whole = not any(np.isnan(each.values).any() for each in given.values())
    same = len({tuple(each.times.tolist()) for each in given.values()}) == 1
    if not (whole and same):
        with pytest.raises(InvalidInput):
            align(given)
        return
    found = align(given)
    assert (found.seen, found.notes) == (None, ())
    for name, each in given.items():
        np.testing.assert_array_equal(found.tables[name].values, each.values)


def test_tables_without_times_go_row_by_row():
    found = align({"costs": table([1, 2, 3]), "limits": table([5, 6], None, "limits.csv")}, "last")
    assert found.tables["limits"].values.ravel().tolist() == [5, 6, 6]
    assert "1 missing rows" in found.notes[0]
    timed = {"costs": table([1, 2], [0, 1]), "limits": table([5, 6], None, "limits.csv")}
    assert align(timed, "last").tables["limits"].times.tolist() == [0, 1]
    timed["more"] = table([1], [2], "more.csv")
    with pytest.raises(InvalidInput, match=r"limits.csv has 2 rows without times"):
        align(timed, "last")


def test_advice_makes_no_rounds_and_keeps_its_gaps():
    given = {"costs": table([1, 2, 3], [0, 1, 2])}
    given["advice"] = table([7, NAN, 9], [1, 2, 5], "advice.csv")
    for gaps in ("last", "unseen"):
        found = align(given, gaps, absent=["advice"])
        assert (found.seen, found.notes) == (None, ())
        np.testing.assert_array_equal(found.tables["advice"].values.ravel(), [NAN, 7, NAN])
        assert found.tables["costs"].values.ravel().tolist() == [1, 2, 3]
    with pytest.raises(InvalidInput, match=r"advice.csv: expected a row for each of the 3 rounds"):
        align(given, absent=["advice"])


@pytest.mark.parametrize(
    ("rows", "gaps", "place"),
    [
        ([1, NAN], "refuse", 'costs.csv, line 3, column "a": '),
        ([NAN, 1], "last", 'costs.csv, line 2, column "a": '),
        ([NAN, NAN], "unseen", 'column "a": '),
    ],
)
def test_what_cannot_be_filled_is_refused_with_its_place(rows, gaps, place):
    with pytest.raises(InvalidInput, match=place):
        align({"costs": table(rows)}, gaps)


def test_clocks_of_other_kinds_do_not_fit():
    dated = table([1, 2])._replace(times=np.array(["2024-01-01", "2024-01-02"], "datetime64[D]"))
    for gaps in ("refuse", "last"):
        with pytest.raises(InvalidInput, match=r"costs.csv has dates and b.csv has numbers"):
            align({"costs": dated, "limits": table([1, 2], [0, 1], "b.csv")}, gaps)
    finer = dated._replace(times=dated.times.astype("datetime64[ns]"))
    assert align({"costs": dated, "limits": finer}, "unseen").seen is None
