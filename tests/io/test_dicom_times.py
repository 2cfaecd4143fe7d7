"""Dates and times of DICOM headers: what PS3.5, 6.2, allows, and nothing else."""

import itertools

import pytest

from napari_mamamia.io.dicom.elements import (
    Moment,
    TimeElements,
    read_date,
    read_date_time,
    read_time_s,
    read_zone_s,
)
from napari_mamamia.io.dicom.quick import QuickHeader

NINE = 9 * 3600


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("09", NINE),
        ("0900", NINE),
        ("090007", NINE + 7),
        ("090007.5", NINE + 7.5),
        ("090007.000001", NINE + 7.000001),
        ("000000", 0),
        ("235959.999999", 86399.999999),
        ("235960", 86400),  # a leap second: the first second of the next minute
        ("235960.5", 86400.5),
        ("09:00:07", NINE + 7),  # ACR-NEMA 300
        ("09:00:07.25", NINE + 7.25),
        ("09:00", NINE),
        ("090007  ", NINE + 7),  # padding
        ("090007\0", NINE + 7),
    ],
)
def test_a_time_of_the_standard_is_read(value, seconds):
    assert read_time_s(value) == pytest.approx(seconds, abs=1e-9)


NO_TIMES = [
    "90007", " 90007", " 090007", "90007.000", "9:00:07", "32407", "20200102090007",
    "20200102", "2020-01-02 09:00:07", "096107", "090061", "240000", "1:22:00 PM", "01:22:00 PM",
    "012200PM", "9", "090", "0900071", "09000", "090007.", "090007.1234567", "0900.5", "09.5",
    "090007,5", "09:0007", "0900:07", "09-00-07", "09 00 07", "090007-090107", "-090007",
    "090007+0100", "090007\\090007", "٠٩٠٠٠٧", "noon", "", "   ", None, 90007, 90007.0, b"090007",
]  # fmt: skip


@pytest.mark.parametrize("value", NO_TIMES)
def test_anything_else_is_no_time(value):
    assert read_time_s(value) is None


def test_each_time_of_the_day_is_that_of_pydicom():
    """pydicom has a reader of its own; each hour, minute and second, and forms cut short."""
    from pydicom.valuerep import TM

    texts = [f"{k:02d}" for k in range(60)]
    times = [*itertools.product(texts[:24], texts[::7], texts), *itertools.product(texts[:24])]
    for parts in times:
        peer = TM("".join(parts))
        expected = peer.hour * 3600 + peer.minute * 60 + peer.second
        assert read_time_s("".join(parts)) == expected


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("20200102", "2020-01-02"),
        ("20200229", "2020-02-29"),
        ("2020.01.02", "2020-01-02"),  # ACR-NEMA 300
        ("20200102 ", "2020-01-02"),
        *((wrong, None) for wrong in (
            "20190229", "20201301", "20200100", "00000000", "2020-01-02", "2020.0102", "202001",
            "2020W011", "02.01.2020", "01/02/2020", "20200102-20200103", " 20200102", "200102",
            "20200102120000", "", None,
        )),
    ],
)  # fmt: skip
def test_a_date_is_eight_digits_or_has_two_dots(value, day):
    found = read_date(value)
    assert (found and found.isoformat()) == day


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("+0100", 3600), ("-0500", -18000), ("+0530", 19800), ("+1400", 50400), ("+0000", 0),
        *((wrong, None) for wrong in ("+1500", "+0160", "0100", "+01:00", "+1", "Z", "UTC", "")),
    ],
)  # fmt: skip
def test_a_time_zone_is_a_sign_and_four_digits(value, seconds):
    assert read_zone_s(value) == seconds


SECOND_OF_2020 = 737425 * 86400  # date(2020, 1, 1).toordinal() is 737425


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("20200101090007", (NINE + 7, None)),
        ("20200101090007.5", (NINE + 7.5, None)),
        ("2020010109", (NINE, None, 3600.0)),
        ("202001010900", (NINE, None, 60.0)),
        ("20200101090007+0100", (NINE + 7, 3600)),
        ("20200101090007.25-0330", (NINE + 7.25, -12600)),
        *((wrong, None) for wrong in (
            "20200101", "2020010190007", "202001010", "20200101 090007", "20200101T090007",
            "20200101246000", "20201301090007", "2020010109:00:07", "20200101090007+01:00",
            "20200101090007Z", "20200101090007+1500", "2020010109.5", "090007", "",
        )),
    ],
)  # fmt: skip
def test_a_date_and_time_are_one_value_with_its_time_zone(value, moment):
    expected = moment and Moment(SECOND_OF_2020 + moment[0], *moment[1:])
    assert read_date_time(value) == expected


def elements_of(**values):
    return TimeElements(QuickHeader(values, "", 0))


def test_the_time_zone_of_the_file_counts_where_a_value_has_none():
    times = elements_of(
        TimezoneOffsetFromUTC="+0200", AcquisitionDate="20200101", AcquisitionTime="090007",
        AcquisitionDateTime="20200101090007", FrameReferenceDateTime="20200101090007-0100",
    )  # fmt: skip
    local = SECOND_OF_2020 + NINE + 7
    assert times.dated_time("Acquisition").utc_s == local - 7200
    assert times.date_time("AcquisitionDateTime").utc_s == local - 7200
    assert times.date_time("FrameReferenceDateTime").utc_s == local + 3600
    assert times.refused == {}


def test_what_holds_no_time_is_kept_with_its_value_and_no_day_or_name_with_it():
    times = elements_of(
        AcquisitionTime="90007.000", ContentTime="20200102 090007", SeriesTime="DOE^JANE",
        TimezoneOffsetFromUTC="+25:00", AcquisitionDateTime="1:22:00 PM",
    )  # fmt: skip
    for name in ("AcquisitionTime", "ContentTime", "SeriesTime"):
        assert times.time_s(name) is None
    assert times.date_time("AcquisitionDateTime") is None
    assert times.refused == {
        "TimezoneOffsetFromUTC": "of the form '+99:99'",
        "AcquisitionTime": "'90007.000'",
        "ContentTime": "of the form '99999999 999999'",
        "SeriesTime": "of the form 'xxx^xxxx'",
        "AcquisitionDateTime": "of the form '9:99:99 xx'",
    }


def test_a_date_that_is_none_leaves_the_time():
    times = elements_of(AcquisitionDate="2020-01-02", AcquisitionTime="090007")
    assert times.dated_time("Acquisition") == Moment(NINE + 7, None)
    assert times.refused == {"AcquisitionDate": "of the form '9999-99-99'"}
