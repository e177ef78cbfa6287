"""Excel books: what is in their cells is what is read, and errors name rows."""

from __future__ import annotations

import math
import zipfile
from datetime import datetime, time, timedelta

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidewolf.core.errors import InvalidInput
from tidewolf.files import FileFormat, file_of, read_graph, read_records, read_table

DAY = datetime(2024, 1, 1)
HOURS = [DAY + timedelta(hours=i) for i in range(3)]
finite = st.floats(-1e300, 1e300).map(lambda x: float(f"{x:.15g}"))
"""Numbers of as many digits as Excel keeps."""


def book(path, **sheets):
    """A book of these sheets, rows of cells each."""
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


def refused(path, said, **options):
    with pytest.raises(InvalidInput) as raised:
        read_table(path, **options)
    assert said in str(raised.value), raised.value
    assert str(raised.value).startswith(str(path))


@settings(max_examples=10)
@given(rows=st.lists(st.tuples(finite, st.integers(-(10**9), 10**9)), min_size=1, max_size=5))
def test_numbers_are_those_of_the_cells(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("book") / "b.xlsx"
    table = read_table(book(path, Costs=[["a", "b"], *rows]))
    assert (table.columns, table.times) == (("a", "b"), None)
    np.testing.assert_array_equal(table.values, np.array(rows, dtype=float))


@settings(max_examples=10)
@given(
    start=st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)),
    step=st.sampled_from((1, 15, 60, 1440)),
)
def test_dates_are_dates(tmp_path_factory, start, step):
    start = start.replace(microsecond=0)
    times = [start + timedelta(minutes=step * i) for i in range(20)]
    path = tmp_path_factory.mktemp("book") / "b.xlsx"
    table = read_table(book(path, Costs=[["time", "a"], *([t, 1] for t in times)]))
    assert table.times.tolist() == times
    local = read_table(path, format=FileFormat(timezone="Asia/Tokyo"))  # no summer time since 1951
    if start.year > 1951:
        assert local.times.tolist() == [t - timedelta(hours=9) for t in times]


def test_the_first_sheet_is_read_or_the_one_that_is_named(tmp_path):
    path = book(
        tmp_path / "b.xlsx",
        Costs=[["a"], [1]],
        **{"Limits #2": [["a"], [2]]},
    )
    assert read_table(path).values.tolist() == [[1.0]]
    assert read_table(f"{path}#Costs").values.tolist() == [[1.0]]
    assert read_table(f"{path}#Limits #2").values.tolist() == [[2.0]]
    refused(f"{path}#Limits", "expected one of the sheets Costs, Limits #2")
    with pytest.raises(InvalidInput, match=r"There is no table at .*none.xlsx#Costs"):
        read_table(tmp_path / "none.xlsx#Costs")
    assert file_of(tmp_path / "b.xlsx#Costs") == path
    assert file_of(tmp_path / "a#b.csv") == tmp_path / "a#b.csv"


def test_a_table_may_lie_anywhere_in_its_sheet(tmp_path):
    rows = [[], [None, None, "time", "a", None, "b"], []]
    path = tmp_path / "b.xlsx"
    book(path, Costs=[*rows, [None, None, HOURS[0], 1, None, 2]])
    refused(path, "column 2 beside the times")
    rows[1].remove(None)
    rows[1].remove(None)
    book(path, Costs=[rows[0], [None, None, *rows[1]], [], [None, None, HOURS[0], 1, 2], [], []])
    refused(path, "column 2 beside the times")
    book(path, Costs=[[], [None, "time", "a"], [], [None, HOURS[0], 1], [None, HOURS[1], 2], []])
    table = read_table(path)
    assert (table.columns, table.values.tolist()) == (("a",), [[1.0], [2.0]])
    assert table.places == [f"{path}, row 4", f"{path}, row 5"]


@pytest.mark.parametrize(
    ("cell", "named"),
    [
        (None, "gaps"),
        ("=1+1", "formula"),
        ("#DIV/0!", "#DIV/0!"),
        ("abc", "abc"),
        ("1,5", 'decimal = ","'),
        (True, "True"),
        (time(6, 30), "06:30:00"),
    ],
)
def test_what_is_no_number_is_refused_with_the_name_of_its_cell(tmp_path, cell, named):
    rows = [["time", "a", "b"], [HOURS[0], 1, 2], [HOURS[1], 3, cell], [HOURS[2], 3, 5]]
    path = book(tmp_path / "b.xlsx", Costs=rows)
    refused(path, ", row 3")
    refused(path, named)
    if cell is None:
        table = read_table(path, gaps=True)
        assert math.isnan(table.values[1, 1])
        assert np.isfinite(table.values).sum() == 5
    else:
        refused(path, named, gaps=True)


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([], "is empty"),
        ([["a", "b"]], "has column names and no rows"),
        ([["a", "b"], [1, 2, 3]], "row 2: row 1 names no column for 3"),
        ([["time", "a"], [HOURS[1], 1], [HOURS[0], 1]], "row 3: the time 2024-01-01T00:00 does"),
        ([["time", "a"], [None, 1], [HOURS[0], 1]], 'row 2, column "time": '),
        ([["time", "a"], [DAY, 1], ["13/01/2024", 1]], 'row 3, column "time": either all'),
        ([["time", "a"], [time(6), 1]], 'row 2, column "time": '),
        ([["time", "a"], ["01/02/2024", 1]], 'row 2, column "time": '),
        ([["a", "a"], [1, 2]], "'a' comes twice"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_place(tmp_path, rows, place):
    refused(book(tmp_path / "b.xlsx", Costs=rows), place)


def test_formulas_have_the_values_kept_with_them(tmp_path):
    path = book(tmp_path / "b.xlsx", Costs=[["a", "b"], [1, "=A2+1"]])
    found = dict(parts(path))
    sheet = found["xl/worksheets/sheet1.xml"]
    assert b"<f>A2+1</f><v" in sheet
    start = sheet.index(b"<v", sheet.index(b"<f>"))
    end = sheet.index(b"</c>", start)
    found["xl/worksheets/sheet1.xml"] = sheet[:start] + b"<v>2.5</v>" + sheet[end:]
    packed(path, found)
    assert read_table(path).values.tolist() == [[1.0, 2.5]]


def test_graphs_and_rows_come_from_books_too(tmp_path):
    path = book(
        tmp_path / "b.xlsx",
        Links=[
            ["Tail", "Head", "km"],
            ["SEA", "DEN", 1600],
            ["DEN", 7, 2600.5],
            ["DEN", 8.0, None],
        ],
        Demands=[["Source", "TARGET", "demand"], ["SEA", 7, 2.5]],
    )
    graph = read_graph(f"{path}#Links", numbers=["km"], missing=1.0)
    assert graph.links == (("SEA", "DEN"), ("DEN", "7"), ("DEN", "8"))
    assert graph.numbers["km"].tolist() == [1600.0, 2600.5, 1.0]
    with pytest.raises(InvalidInput, match=r"b.xlsx#Links, row 4 has no km"):
        read_graph(f"{path}#Links", numbers=["km"])
    (row,) = read_records(f"{path}#Demands", ["source", "target", "demand"])
    assert (row.text("source"), row.text("target"), row.number("demand")) == ("SEA", "7", 2.5)
    assert row.where == f"{path}#Demands, row 2"
    with pytest.raises(InvalidInput, match=r"expected the columns node, supply"):
        read_records(f"{path}#Demands", ["node", "supply"])


# books of another hand


def parts(path):
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def packed(path, found):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in found.items():
            archive.writestr(name, data)
    return path


def with_rows(path, xml, dimension=b"A1:B2"):
    """A book whose sheet has these rows."""
    found = dict(parts(book(path, Costs=[["a"], [1]])))
    name = "xl/worksheets/sheet1.xml"
    start, _, rest = found[name].partition(b"<sheetData>")
    end = rest.partition(b"</sheetData>")[2]
    start = start.replace(b"A1:A2", dimension)
    found[name] = start + b"<sheetData>" + xml + b"</sheetData>" + end
    return packed(path, found)


def row(number, **cells):
    inner = "".join(
        f'<c r="{name}"><v>{value}</v></c>'
        if not isinstance(value, str)
        else f'<c r="{name}" t="inlineStr"><is><t>{value}</t></is></c>'
        for name, value in cells.items()
    )
    return f'<row r="{number}">{inner}</row>'.encode()


def test_what_a_sheet_claims_is_not_believed(tmp_path):
    path = tmp_path / "b.xlsx"
    with_rows(path, row(1, A1="a") + row(2, A2=1), dimension=b"A1:XFD1048576")
    assert read_table(path).values.tolist() == [[1.0]]
    with_rows(path, row(1, A1="a") + row(1048576, A1048576=1))
    assert read_table(path).places == [f"{path}, row 1048576"]
    with_rows(path, row(1, A1="a") + row(10**12, A2=1))
    refused(path, "lie so far apart")
    wide = b"".join(row(i, **{f"XFD{i}": 1}) for i in range(2, 700))
    with_rows(path, row(1, A1="a", XFD1="b") + wide)
    refused(path, "its cells lie so far apart")
    with_rows(path, row(1, A1="a") + row(2, ZZZZ2=1))
    refused(path, "cannot be read as excel")


def test_books_that_declare_entities_or_unpack_to_too_much_are_refused(tmp_path):
    path = tmp_path / "b.xlsx"
    found = dict(parts(book(path, Costs=[["a"], [1]])))
    name = "xl/worksheets/sheet1.xml"
    for text in (
        b'<!DOCTYPE x [<!ENTITY a "b">]>' + found[name],
        '<!DOCTYPE x [<!ENTITY a "b">]>'.encode("utf-16"),
    ):
        packed(path, {**found, name: text})
        refused(path, "is not read: xl/worksheets/sheet1.xml declares a document type")
    packed(path, {**found, "xl/media/image.bin": bytes(65 << 20)})
    refused(path, "is not read: it unpacks to more than 64 MB")


def test_what_is_no_book_is_said(tmp_path):
    path = tmp_path / "b.xlsx"
    for data, said in (
        (b"", "cannot be read as excel"),
        (b"\xd0\xcf\x11\xe0abc", "cannot be read as excel"),
    ):
        path.write_bytes(data)
        refused(path, said)
    packed(path, {"nothing.xml": b""})
    refused(path, "cannot be read as excel")
