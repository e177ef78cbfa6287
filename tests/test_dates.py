"""Times in tables: ISO dates or a declared format; clocks that go back."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tidewolf.core.errors import InvalidInput
from tidewolf.files import FileFormat, read_table, reading

FORMATS = (
    *("%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%d-%m-%Y %H:%M:%S"),
    *("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%d-%b-%Y %H:%M:%S", "%B %d, %Y %I:%M:%S %p"),
)
SWAPPED = [each for each in FORMATS if each.startswith(("%d/%m", "%d-%m", "%m/%d"))]
SWAPPED = {f: f.replace("%d", "%M").replace("%m", "%d").replace("%M", "%m", 1) for f in SWAPPED}
"""Formats under which day and month may be exchanged."""
moments = st.datetimes(datetime(1900, 1, 1), datetime(2199, 1, 1))
moments = moments.map(lambda t: t.replace(microsecond=0))
columns = st.lists(moments, min_size=1, max_size=12, unique=True).map(sorted)


def read(texts, **format):
    places = [f"t.csv, line {i}" for i in range(2, len(texts) + 2)]
    return reading.read_dates(texts, places, FileFormat(**format))


@pytest.mark.parametrize("format", FORMATS)
@given(column=columns)
def test_a_declared_format_is_read_and_one_that_is_not_is_named(format, column):
    texts = [t.strftime(format) for t in column]
    found, utc = read(texts, date_format=format)
    assert (found.tolist(), utc) == (column, False)
    with pytest.raises(InvalidInput, match=r"^t.csv, line 2: expected a date in ISO form") as e:
        read(texts)
    assert f'"{format}"' in str(e.value)
    other = SWAPPED.get(format)
    if other is not None and all(t.day <= 12 for t in column):
        assert f'"{other}"' in str(e.value)


@pytest.mark.parametrize("sep", ["T", " "])
@given(column=columns, offset=st.sampled_from([None, UTC, timezone(timedelta(hours=-2.5))]))
def test_iso_dates_are_read(sep, column, offset):
    found, utc = read([t.replace(tzinfo=offset).isoformat(sep=sep) for t in column])
    shift = timedelta() if offset is None else offset.utcoffset(None)
    assert (found.tolist(), utc) == ([t - shift for t in column], offset is not None)


@pytest.mark.parametrize(
    ("texts", "line", "named"),
    [
        (["2024-01-31", "01.02.2024"], 3, "01.02.2024"),
        (["31/01/2024", "02/13/2024"], 2, "31/01/2024"),
        (["2024-01-31T06:00", "2024-01-31T07:00Z"], 3, "offset"),
        (["2024-01-31T06:00Z", "2024-01-31T07:00"], 3, "offset"),
        (["31.01.24"], 2, 'date_format = "%d.%m.%y"'),
        (["2024-1-31 6:00"], 2, 'date_format = "%Y-%m-%d %H:%M"'),
        (["31.01.2024 06:00 +0100"], 2, 'date_format = "%d.%m.%Y %H:%M %z"'),
        (["1/2/2024"], 2, 'date_format = "%d/%m/%Y", or "%m/%d/%Y".'),
        (["1/2/2024", "13/2/2024"], 2, 'date_format = "%d/%m/%Y".'),
        (["30.02.2024"], 2, "30.02.2024"),
        (["soon"], 2, "soon"),
        (["2024-01-31", ""], 3, "''"),
        (["0001-01-01T00:00+02:00"], 2, "0001-01-01"),
    ],
)
def test_other_dates_are_refused_with_their_line_and_the_likely_format(texts, line, named):
    with pytest.raises(InvalidInput) as raised:
        read(texts)
    assert str(raised.value).startswith(f"t.csv, line {line}: ")
    assert named in str(raised.value)


def test_dates_that_do_not_fit_the_declared_format_are_refused_with_their_line():
    for texts in (["31.01.2024", "2024-02-01"], ["31.01.2024", "01.13.2024"]):
        with pytest.raises(InvalidInput, match=r"^t.csv, line 3: expected a date in %d.%m.%Y"):
            read(texts, date_format="%d.%m.%Y")


def test_times_may_be_numbers_with_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("time;a\n0,5;1\n1,5;1\n")
    assert read_table(path, format=FileFormat(decimal=",")).times.tolist() == [0.5, 1.5]


def test_numbers_of_nanoseconds_keep_every_digit(tmp_path):
    start = 1_700_000_000_000_000_001
    assert table(tmp_path, [start, start + 1]).tolist() == [start, start + 1]
    np.savez(tmp_path / "t.npz", values=[[1.0], [2.0]], times=np.array([start, start + 1]))
    assert read_table(tmp_path / "t.npz").times.tolist() == [start, start + 1]


# clocks


def table(tmp_path, texts, **format):
    path = tmp_path / "costs.csv"
    path.write_text("time,a\n" + "".join(f"{text},1\n" for text in texts))
    return read_table(path, format=FileFormat(**format)).times


def local_hours(zone, start, hours, minutes=60):
    """Moments in UTC, and what a clock in the zone showed."""
    clock = ZoneInfo(zone)
    moments = [start + timedelta(minutes=minutes * i) for i in range(hours)]
    return moments, [t.astimezone(clock) for t in moments]


STARTS = st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@settings(max_examples=6)
@given(STARTS, st.sampled_from((15, 30, 60)))
def test_local_hours_with_a_zone_are_the_moments_they_were(tmp_path_factory, zone, start, minutes):
    """Near the change of clocks of that year, whose hours come twice in their order."""
    change = datetime(start.year, 11, 1, tzinfo=UTC) - timedelta(days=6, hours=start.hour)
    folder = tmp_path_factory.mktemp("clock")
    for begin in (change.replace(minute=0), start.replace(minute=0, second=0, microsecond=0)):
        moments, shown = local_hours(zone, begin, 12 * 24 * 60 // minutes, minutes)
        assume(shown[0].fold == 0)
        texts = [t.replace(tzinfo=None).isoformat() for t in shown]
        expected = [t.replace(tzinfo=None) for t in moments]
        assert table(folder, texts, timezone=zone).tolist() == expected
        with_offsets = [t.isoformat() for t in shown]
        assert table(folder, with_offsets).tolist() == expected
        assert table(folder, with_offsets, timezone="Asia/Tokyo").tolist() == expected


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        ("Europe/Berlin", "2024-10-26T20:00"),
        ("America/New_York", "2024-11-03T00:00"),
        ("Australia/Sydney", "2024-04-06T10:00"),
    ],
)
@pytest.mark.parametrize("minutes", [15, 60])
def test_an_hour_that_comes_twice_is_refused_and_the_cure_is_one(tmp_path, zone, start, minutes):
    _, shown = local_hours(zone, datetime.fromisoformat(start).replace(tzinfo=UTC), 60, minutes)
    texts = [t.replace(tzinfo=None).isoformat() for t in shown]
    with pytest.raises(InvalidInput, match=r"if clocks went back, .* timezone = "):
        table(tmp_path, texts)
    steps = np.diff(table(tmp_path, texts, timezone=zone)) / np.timedelta64(minutes, "m")
    assert (steps == 1).all()


def test_rows_that_come_twice_elsewhere_are_no_matter_of_clocks(tmp_path):
    pairs = (("06-01", "06-01"), ("10-27", "10-26"), ("10-28", "10-27"))
    for texts in ([f"2024-{day}T02:00" for day in pair] for pair in pairs):
        with pytest.raises(InvalidInput, match=r"does not come after .*; sort the rows"):
            table(tmp_path, texts)
    twice = ["2024-10-27T02:00+01:00"] * 2
    with pytest.raises(InvalidInput, match="sort the rows"):
        table(tmp_path, twice)
    thrice = ["2024-10-27T02:00"] * 3
    with pytest.raises(InvalidInput, match=r"line 4: .* sort the rows"):
        table(tmp_path, thrice, timezone="Europe/Berlin")


def test_an_hour_that_clocks_skipped_is_refused_with_their_zone_and_kept_without(tmp_path):
    texts = ["2024-03-31T01:30", "2024-03-31T02:30", "2024-03-31T03:30"]
    assert len(table(tmp_path, texts)) == 3
    with pytest.raises(InvalidInput, match=r"line 3, .*there was no 2024-03-31 02:30"):
        table(tmp_path, texts, timezone="Europe/Berlin")


def test_dates_of_arrays_have_clocks_too(tmp_path):
    times = np.array(["2024-07-01T12:00", "2024-07-01T13:00"], dtype="datetime64[ns]")
    np.savez(tmp_path / "t.npz", values=np.ones((2, 1)), times=times)
    found = read_table(tmp_path / "t.npz", format=FileFormat(timezone="Europe/Berlin")).times
    np.testing.assert_array_equal(found, times - np.timedelta64(2, "h"))
    far = np.array(["20000-01-01", "20001-01-01"], dtype="datetime64[s]")
    np.savez(tmp_path / "t.npz", values=np.ones((2, 1)), times=far)
    assert len(read_table(tmp_path / "t.npz").times) == 2
    with pytest.raises(InvalidInput, match="outside the calendar of Europe/Berlin"):
        read_table(tmp_path / "t.npz", format=FileFormat(timezone="Europe/Berlin"))


def test_parquet_with_a_zone_is_in_utc_already(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    moments = np.array(["2024-07-01T12:00", "2024-07-01T13:00"], dtype="datetime64[us]")
    for zone, hours in (("Europe/Berlin", 0), (None, 2)):
        column = pyarrow.array(moments, pyarrow.timestamp("us", tz=zone))
        parquet.write_table(pyarrow.table({"time": column, "a": [1, 2]}), tmp_path / "t.parquet")
        told = FileFormat(timezone="Europe/Berlin")
        found = read_table(tmp_path / "t.parquet", format=told).times
        np.testing.assert_array_equal(found, moments - np.timedelta64(hours, "h"))
