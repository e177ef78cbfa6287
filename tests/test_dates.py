"""Times in tables: one date format a column, found from all of it; clocks that go back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tidewolf.core.errors import InvalidInput
from tidewolf.files import FileFormat, read_table
from tidewolf.files.dates import ZONES, read_times

FORMATS = {
    "iso": lambda t: t.isoformat(),
    "space": lambda t: t.isoformat(sep=" "),
    "slashes": lambda t: t.strftime("%Y/%m/%d %H:%M:%S"),
    "year first, short": lambda t: f"{t.year}-{t.month}-{t.day} {t.hour}:{t:%M:%S}",
    "points": lambda t: t.strftime("%d.%m.%Y %H:%M:%S"),
    "day first": lambda t: t.strftime("%d/%m/%Y %H:%M:%S"),
    "day first, short": lambda t: f"{t.day}/{t.month}/{t.year} {t.hour}:{t:%M:%S}",
    "day first, dashes": lambda t: t.strftime("%d-%m-%Y %H:%M:%S"),
    "month first": lambda t: t.strftime("%m/%d/%Y %H:%M:%S"),
    "month first, twelve": lambda t: t.strftime("%m/%d/%Y %I:%M:%S %p"),
    "month first, comma": lambda t: t.strftime("%m-%d-%Y, %I:%M:%S p.m.").replace(
        "p.m.", "a.m." if t.hour < 12 else "p.m."
    ),
    "named": lambda t: t.strftime("%d-%b-%Y %H:%M:%S"),
    "named in full": lambda t: t.strftime("%B %d, %Y %I:%M:%S %p"),
}
UNSURE = {"day first", "day first, short", "day first, dashes", "month first"} | {
    name for name in FORMATS if name.startswith("month first")
}
moments = st.datetimes(datetime(1900, 1, 1), datetime(2199, 1, 1)).map(
    lambda t: t.replace(microsecond=0)
)


def read(texts, **format):
    places = [f"t.csv, line {i}" for i in range(2, len(texts) + 2)]
    return read_times(texts, places, FileFormat(**format))


@pytest.mark.parametrize("name", FORMATS)
@given(column=st.lists(moments, min_size=1, max_size=12, unique=True).map(sorted))
def test_every_format_is_read_or_refused_because_two_fit(name, column):
    texts = [FORMATS[name](t) for t in column]
    sure = name not in UNSURE or any(t.day > 12 for t in column)
    same = all(t.day == t.month for t in column)
    if sure or same:
        found, utc = read(texts)
        assert found.tolist() == column
        assert not utc
    else:
        with pytest.raises(InvalidInput, match=r"and every date after it can be day.* or month"):
            read(texts)


@given(
    column=st.lists(moments, min_size=2, max_size=8, unique=True).map(sorted),
    names=st.lists(st.sampled_from(sorted(FORMATS)), min_size=2, max_size=2, unique=True),
    at=st.integers(1, 7),
)
def test_a_format_that_changes_on_the_way_is_refused_with_the_line(column, names, at):
    assume(not set(names) <= UNSURE)  # of which one may fit what was written in another
    at = min(at, len(column) - 1)
    formats = [FORMATS[names[i >= at]] for i in range(len(column))]
    texts = [format(t) for format, t in zip(formats, column, strict=True)]
    if set(names) <= {"iso", "space", "year first, short"}:
        assert read(texts)[0].tolist() == column
    else:
        with pytest.raises(InvalidInput, match=f"line {at + 2}: .*a column has one date format"):
            read(texts)


@pytest.mark.parametrize(
    ("texts", "line", "said"),
    [
        (["31/01/2024", "02/13/2024"], 3, "'02/13/2024' is month/day/year and the dates before"),
        (["01/31/2024", "13/02/2024"], 3, "'13/02/2024' is day/month/year and the dates before"),
        (["01/02/2024", "13/02/2024", "02/14/2024"], 4, "is month/day/year .* are day/month/year"),
        (["2024-01-31", "01.02.2024"], 3, "is day.month.year and the dates before are year-month"),
        (["31/01/2024", "01-02-2024"], 3, "are day/month/year, such as '31/01/2024'; a column has"),
        (["2024-01-31T06:00", "2024-01-31T07:00Z"], 3, "has an offset and the dates before have"),
        (["2024-01-31T06:00Z", "2024-01-31T07:00"], 3, "has no offset and the dates before have"),
        (["1/31/2024 6:00 PM", "1/31/2024 19:00"], 3, "has neither AM nor PM and the times before"),
        (["1/31/2024 6:00", "1/31/2024 7:00 PM"], 3, "has AM or PM and the times before have not"),
        (["1/31/2024 6:00 PM", "2/1/2024", "2/2/2024 19:00"], 4, "has neither AM nor PM"),
        (["31.01.24"], 2, "has a year of two digits"),
        (["1/2/24"], 2, "has a year of two digits"),
        (["01.31.2024"], 2, "with points the day comes first"),
        (["30.02.2024"], 2, "is neither a number nor a date"),
        (["2024-13-01"], 2, "is neither a number nor a date"),
        (["1/31/2024 13:00 PM"], 2, "is neither a number nor a date"),
        (["1/31/2024 0:30 AM"], 2, "is neither a number nor a date"),
        (["31.01.2024 24:01"], 2, "is neither a number nor a date"),
        (["31 Foo 2024"], 2, "is neither a number nor a date"),
        (["soon"], 2, "is neither a number nor a date such as 2024-01-31"),
        (["2024-01-31", ""], 3, "the cell is empty, and every row needs a time"),
        (["0001-01-01T00:00+02:00"], 2, "is neither a number nor a date"),
        (["1", "2024-01-31"], 3, "'2024-01-31' is not a number"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(texts, line, said):
    with pytest.raises(InvalidInput, match=said) as raised:
        read(texts)
    assert str(raised.value).startswith(f"t.csv, line {line}: ")


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("31.01.2024 24:00", 24),
        ("1/31/2024 12:00 AM", 0),
        ("1/31/2024 12:00 PM", 12),
        ("31 January 2024 6:00", 6),
        ("Jan 31 2024", 0),
        ("2024/1/31T06:00Z", 6),
        ("31.01.2024 06:00 +0100", 5),
        ("31.01.2024 06:00 UTC", 6),
        ("2024-01-31 06:00-02", 8),
        ("31.01.2024 06:00-0230", 8.5),
    ],
)
def test_a_date_is_what_people_mean(text, hour):
    found, utc = read([text])
    assert found[0] == np.datetime64("2024-01-31") + np.timedelta64(int(60 * hour), "m")
    assert utc == any(mark in text for mark in ("Z", "+", "UTC", "-02"))


def test_times_may_be_numbers_with_decimal_commas():
    found, _ = read(["0,5", "1,5"], decimal=",")
    assert found.tolist() == [0.5, 1.5]


def test_numbers_of_nanoseconds_keep_every_digit():
    start = 1_700_000_000_000_000_001
    found, _ = read([str(start), str(start + 1)])
    assert found.tolist() == [start, start + 1]


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


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@settings(max_examples=6)
@given(
    start=st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    minutes=st.sampled_from((15, 30, 60)),
)
def test_local_hours_with_their_zone_are_the_moments_they_were(
    tmp_path_factory, zone, start, minutes
):
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
        ("Europe/London", "2024-10-26T20:00"),
        ("America/New_York", "2024-11-03T00:00"),
        ("America/Los_Angeles", "2024-11-03T00:00"),
        ("Australia/Sydney", "2024-04-06T10:00"),
        ("America/Santiago", "2024-04-06T20:00"),
    ],
)
@pytest.mark.parametrize("minutes", [15, 60])
def test_an_hour_that_comes_twice_is_refused_and_the_cure_is_one(tmp_path, zone, start, minutes):
    begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
    _, shown = local_hours(zone, begin, 60, minutes)
    texts = [t.replace(tzinfo=None).isoformat() for t in shown]
    with pytest.raises(InvalidInput, match="where clocks went back, give times") as e:
        table(tmp_path, texts)
    named = str(e.value).partition('timezone = "')[2].partition('"')[0]
    assert named in ZONES
    second = str(e.value).partition("such as ")[2].partition(",")[0]
    assert datetime.fromisoformat(second).utcoffset() is not None
    times = table(tmp_path, texts, timezone=named)
    steps = np.diff(times) / np.timedelta64(minutes, "m")
    assert (steps == 1).all()


def test_rows_that_come_twice_elsewhere_are_no_matter_of_clocks(tmp_path):
    pairs = (("06-01", "06-01"), ("10-27", "10-26"), ("10-28", "10-27"))
    for texts in ([f"2024-{day}T02:00" for day in pair] for pair in pairs):
        with pytest.raises(
            InvalidInput, match=r"does not come after .*; sort the rows, one a time"
        ):
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
