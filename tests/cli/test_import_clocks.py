"""`mamamia import` of studies whose clocks are damaged, moved, or told in frames: times or a word.

Every study has six phases 75 s apart from 09:00:07 on; what is right follows from that.
"""

import json

import nibabel
import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.dicom_protocols import DYN, TIMES, clock, dynamic, phantoms, series, volume
from tests.printed_remedies import printed_options

pydicom = pytest.importorskip("pydicom")
pytestmark = pytest.mark.filterwarnings("ignore:Invalid value for VR")  # so they are written

START = 9 * 3600 + 7
DAYS = ("20200101", "20200104", "20191230", "20200110", "20200102", "20200103")
NAMED = ("--use", "series=5")


def at(k, start=START):
    return clock(TIMES[k], start)


def lost(k, start=START):
    """Return a time that a table or a number has shortened: 90007 for 090007."""
    return at(k, start).lstrip("0")


def spaced(k, hour, minute, second):
    """Return the time of phase `k` with one sign between its numbers."""
    whole = START + TIMES[k]
    return hour.format(whole // 3600) + minute.format(whole // 60 % 60) + second.format(whole % 60)


def imported(folder, *options):
    """Return the times and warnings of an import, or None and its refusal."""
    done = mamamia("import", folder / "in", "--out", folder / "out", "--case", "A", *options)
    if done.returncode:
        return None, " ".join((done.stdout + done.stderr).split())
    info = json.loads((folder / "out" / "patient_info_files" / "A.json").read_text())
    times = info["imaging_data"]["acquisition_times"]
    return "unknown" if times is None else times, " | ".join(info["import"]["warnings"])


def classic(folder, **elements):
    dynamic(folder / "in", times=(None,) * 6, **{"ContentTime": None, **elements})


def enhanced(folder, change=None, *, times=(None,) * 6, **elements):
    """Write one file of many frames; `change` gets each frame's groups and its phase."""

    def frame(groups, k):
        if times[k] is None:
            del groups.FrameContentSequence[0].FrameAcquisitionDateTime
        if change is not None:
            change(groups, k)

    phantoms.write_enhanced(
        folder / "in" / "dyn.dcm",
        np.stack([volume(k) for k in range(6)]),
        [time or "20200101" for time in times],
        frame=frame,
        **{"SeriesNumber": 5, "MRAcquisitionType": "3D", "SeriesDescription": "dyn", **elements},
    )


def add_group(groups, name, **values):
    setattr(groups, name, pydicom.Sequence([phantoms.item(**values)]))


JUNK = {
    "a lost zero": lost,
    "a lost zero and a blank": lambda k: f" {lost(k)}",
    "one digit and colons": lambda k: spaced(k, "{}:", "{:02d}:", "{:02d}"),
    "seconds of the day": lambda k: str(START + TIMES[k]),
    "a date in front": lambda k: f"20200101{at(k)}",
    "minute 61": lambda k: f"09{61 + k}07",
    "afternoon": lambda k: f"1:{22 + k}:00 PM",
    "a range": lambda k: f"{at(k)[:6]}-{at(k)[:6]}",
}


@pytest.mark.parametrize("name", JUNK)
def test_what_is_no_time_is_named_and_times_nothing(tmp_path, name):
    classic(tmp_path, AcquisitionTime=lambda k, _: JUNK[name](k))
    times, text = imported(tmp_path)
    assert times == "unknown"
    value = JUNK[name](0)
    shown = f"AcquisitionTime {value!r} is no time"
    if name in ("a date in front", "a range"):  # eight digits may be a day, and records are kept
        shown = "AcquisitionTime of the form '999999"
        assert value[:8] not in text
    assert shown in text
    assert "24 of 24 images" in text
    assert "acquisition_times column" in text


def test_the_times_typed_in_as_the_warning_says_are_used(tmp_path):
    classic(tmp_path, AcquisitionTime=lambda k, _: lost(k))
    imported(tmp_path)
    table = tmp_path / "out" / "clinical_and_imaging_info.csv"
    titles, row = table.read_text().splitlines()
    cells = row.split(",")
    cells[titles.split(",").index("acquisition_times")] = '"[0, 75, 150, 225, 300, 375]"'
    table.write_text(f"{titles}\n{','.join(cells)}\n")
    masks = tmp_path / "masks"
    masks.mkdir()
    image = next((tmp_path / "out" / "images" / "A").glob("*_0001.nii.gz"))
    grid = nibabel.load(image)
    values = np.zeros(grid.shape, np.uint8)
    values[10:18, 10:18, 1:3] = 1
    nibabel.Nifti1Image(values, grid.affine).to_filename(masks / "A.nii.gz")
    done = mamamia(
        "kinetics", tmp_path / "out", "--masks", masks, "--out", tmp_path / "k", has_figures=False
    )
    assert done.returncode == 0, done.stderr
    assert "0 75 150 225 300 375" in (tmp_path / "k" / "kinetics.csv").read_text()


VALID = {
    "colons of ACR-NEMA": lambda k: spaced(k, "{:02d}:", "{:02d}:", "{:02d}"),
    "colons and a fraction": lambda k: spaced(k, "{:02d}:", "{:02d}:", "{:02d}.000"),
    "padded": lambda k: f"{at(k)[:6]}  ",
}


@pytest.mark.parametrize("name", VALID)
def test_what_the_standard_allows_times_the_phases(tmp_path, name):
    classic(tmp_path, AcquisitionTime=lambda k, _: VALID[name](k))
    assert imported(tmp_path)[0] == list(TIMES)


NEXT = {
    "ContentTime": lambda k, _: clock(TIMES[k] + 40, START),
    "TriggerTime": lambda k, _: 1000.0 * TIMES[k],
    "AcquisitionDateTime": lambda k, _: f"20200101{at(k)}",
}


@pytest.mark.parametrize("name", NEXT)
def test_the_next_clock_is_asked_where_one_holds_no_time(tmp_path, name):
    classic(tmp_path, AcquisitionTime=lambda k, _: lost(k), **{name: NEXT[name]})
    times, text = imported(tmp_path)
    assert times == list(TIMES)
    assert "AcquisitionTime '90007.000000' is no time" in text


def test_zeros_that_are_lost_before_ten_do_not_make_the_others_a_copy(tmp_path):
    """The first phases tell 95640, the later ones 100025: half of them are times."""
    early = 10 * 3600 - 200
    classic(
        tmp_path, AcquisitionTime=lambda k, _: lost(k, early), ContentTime=lambda k, _: at(k, early)
    )
    times, text = imported(tmp_path)
    assert times == list(TIMES)
    assert "AcquisitionTime '95640.000000' is no time" in text
    assert "12 of 24 images" in text


def test_a_refusal_names_the_element_that_led_to_it(tmp_path):
    classic(tmp_path, AcquisitionTime=lambda k, _: lost(k), InstanceNumber=None)
    times, text = imported(tmp_path)
    assert times is None
    assert "AcquisitionTime '90007.000000' is no time" in text


# ---- frames of enhanced files


def offset(groups, k):
    add_group(groups, "TemporalPositionSequence", TemporalPositionTimeOffset=float(TIMES[k]))


def heart_beat(groups, k):
    delay = 1000.0 * TIMES[k]
    add_group(groups, "CardiacSynchronizationSequence", NominalCardiacTriggerDelayTime=delay)


def philips(groups, k):
    own = pydicom.Dataset()
    own.add_new((0x2005, 0x0010), "LO", "Philips MR Imaging DD 001")
    own.add_new((0x2005, 0x10A0), "FL", float(TIMES[k]))
    groups.add_new((0x2005, 0x0014), "LO", "Philips MR Imaging DD 005")
    groups.add_new((0x2005, 0x140F), "SQ", pydicom.Sequence([own]))


def reference(groups, k):
    moment = f"20200101{clock(TIMES[k] + 30, START)}"
    groups.FrameContentSequence[0].FrameReferenceDateTime = moment


@pytest.mark.parametrize("change", [offset, heart_beat, philips, reference])
def test_the_times_of_frames_are_read_where_the_standard_puts_them(tmp_path, change):
    enhanced(tmp_path, change, AcquisitionDateTime="20200101090000")
    assert imported(tmp_path)[0] == list(TIMES)


def test_a_frame_without_a_time_does_not_get_that_of_the_file(tmp_path):
    """The file's own is 08:00:00, so phase 3 would come first."""
    moments = [f"20200101{lost(k) if k == 3 else at(k)}" for k in range(6)]
    enhanced(tmp_path, times=moments, AcquisitionDateTime="20200101080000")
    times, text = imported(tmp_path)
    assert times == "unknown"
    assert "FrameAcquisitionDateTime of the form '9999999999999.999999'" in text
    assert "4 of 24 images" in text


def test_frames_on_both_sides_of_summer_time_tell_their_zone(tmp_path):
    moments = [
        f"20200101{clock(TIMES[k] + 3600 * (k > 2), START)}{'+0200' if k > 2 else '+0100'}"
        for k in range(6)
    ]
    enhanced(tmp_path, times=moments)
    assert imported(tmp_path)[0] == list(TIMES)


# ---- days and time zones


def shifted_series(folder, start=START):
    for k in range(6):
        timed = {"AcquisitionTime": at(k, start), "AcquisitionDate": DAYS[k], "ContentTime": None}
        series(folder / "in", 5 + k, k, volume(k), None, **timed)


def test_dates_that_were_moved_apart_are_described_and_the_way_on_gives_the_times(tmp_path):
    shifted_series(tmp_path)
    times, text = imported(tmp_path)
    assert times is None
    assert "6 days apart by AcquisitionDate" in text  # 4 to 10 January
    assert "at most 75 s apart by AcquisitionTime alone" in text
    times, text = imported(tmp_path, *printed_options(text)[0])
    assert times == list(TIMES)
    assert "the time of day was used without the date" in text


def test_dates_that_were_moved_apart_over_midnight_give_the_times_too(tmp_path):
    shifted_series(tmp_path, 24 * 3600 - 100)
    assert imported(tmp_path, "--use", "series=5,6,7,8,9,10")[0] == list(TIMES)


def test_each_image_of_another_day_is_described_too(tmp_path):
    classic(
        tmp_path,
        AcquisitionTime=lambda k, _: at(k),
        AcquisitionDate=lambda k, z: f"2020010{1 + (3 * k + z) % 7}",
    )
    assert "AcquisitionDate" in imported(tmp_path)[1]
    assert imported(tmp_path, *NAMED)[0] == list(TIMES)


@pytest.mark.parametrize(
    ("elements", "sentence"),
    [
        (
            {"AcquisitionDate": lambda k, _: "20200101" if k % 2 else ""},
            "AcquisitionDate is missing in 12 of 24 images",
        ),
        (
            {"TimezoneOffsetFromUTC": lambda k, _: "+0200" if k % 2 else ""},
            "only 12 of 24 images have the time zone of AcquisitionTime",
        ),
        ({"AcquisitionDate": "2020-01-01"}, "AcquisitionDate of the form '9999-99-99' is no date"),
        ({"ContrastBolusStartTime": "90107"}, "ContrastBolusStartTime '90107' is no time"),
    ],
)
def test_what_only_some_images_tell_parts_no_phases_and_is_said(tmp_path, elements, sentence):
    classic(tmp_path, AcquisitionTime=lambda k, _: at(k), **elements)
    times, text = imported(tmp_path)
    assert times == list(TIMES)
    assert sentence in text


def test_one_injection_in_two_spellings_is_one(tmp_path):
    classic(
        tmp_path,
        AcquisitionTime=lambda k, _: at(k),
        ContrastBolusStartTime=lambda k, _: "090107" if k % 2 else "09:01:07.0",
    )
    assert imported(tmp_path)[0] == list(TIMES)


def test_midnight_without_a_date_in_a_time_zone_west_of_greenwich(tmp_path):
    """In UTC these are on one day already, so the date of the study is what misleads."""
    classic(
        tmp_path,
        AcquisitionTime=lambda k, _: at(k, 24 * 3600 - 100),
        TimezoneOffsetFromUTC="-0500",
        AcquisitionDate=DYN["AcquisitionDate"],
    )
    assert imported(tmp_path)[0] == list(TIMES)


def coarse(phases, digits=4):
    """Return AcquisitionTime without seconds in some phases: minutes, or hours, alone."""
    return lambda k, _: at(k)[:digits] if k in phases else at(k)


MIXED = {
    "the first phase": coarse((0,)),
    "all but the first": coarse(range(1, 6)),
    "an hour": coarse((0,), 2),
    "minutes and hours": lambda k, _: at(k)[: 4 if k else 2],
    "the last phase": coarse((5,)),
    "half of each phase": lambda k, z: at(k)[:4] if z % 2 else at(k),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_time_without_seconds_beside_others_with_them_times_nothing(tmp_path, name):
    dynamic(tmp_path / "in", AcquisitionTime=MIXED[name], AcquisitionDate="20200101",
            ContentTime=None)  # fmt: skip
    times, said = imported(tmp_path)
    assert times == "unknown", said
    assert "AcquisitionTime has no seconds in" in said
    assert "of 24 images, so it gives no times" in said


def test_the_next_exact_clock_times_phases_some_of_which_have_no_seconds(tmp_path):
    dynamic(tmp_path / "in", AcquisitionTime=coarse((0,)), AcquisitionDate="20200101",
            ContentTime=lambda k, _: at(k, START + 20), ContentDate="20200101")  # fmt: skip
    times, said = imported(tmp_path)
    assert times == [float(t) for t in TIMES], said
    assert "AcquisitionTime has no seconds in" in said


def test_one_date_and_time_of_a_frame_without_seconds_times_nothing(tmp_path):
    times = [f"20200101{at(k)[: 4 if k == 0 else None]}" for k in range(6)]
    enhanced(tmp_path, times=times)
    found, said = imported(tmp_path)
    assert found == "unknown", said
    assert "AcquisitionTime has no seconds in" in said


@pytest.mark.parametrize("value", [None, "", "0903"], ids=["missing", "empty", "minutes"])
def test_one_image_without_a_time_takes_that_of_its_phase(tmp_path, value):
    own = {"AcquisitionTime": lambda k, z: value if (k, z) == (2, 3) else at(k)}
    dynamic(tmp_path / "in", ContentTime=lambda k, z: clock(TIMES[k] + z, START + 900), **own)
    times, said = imported(tmp_path)
    assert times == [float(t) for t in TIMES], said
    assert "AcquisitionTime is missing or has no seconds in 1 image" in said


def test_one_frame_without_a_time_takes_that_of_its_phase(tmp_path):
    seen = []

    def change(groups, k):
        if k == 2 and not seen:
            seen.append(k)
            del groups.FrameContentSequence[0].FrameAcquisitionDateTime

    enhanced(tmp_path, change, times=[f"20200101{at(k)}" for k in range(6)])
    times, said = imported(tmp_path)
    assert times == [float(t) for t in TIMES], said
    assert "AcquisitionTime is missing or has no seconds in 1 image" in said


def test_a_phase_without_acquisition_time_is_counted_by_temporal_positions(tmp_path):
    dynamic(tmp_path / "in", AcquisitionTime=lambda k, _: None if k == 2 else at(k),
            TemporalPositionIdentifier=lambda k, _: k + 1, TemporalResolution=75000,
            ContentTime=None)  # fmt: skip
    times, said = imported(tmp_path)
    assert times == [float(t) for t in TIMES], said
    assert "AcquisitionTime is missing in" in said


@pytest.mark.parametrize("options", [("--clock", "ContentTime"), NAMED])
def test_a_phase_without_acquisition_time_is_asked_about_and_both_ways_answer(tmp_path, options):
    dynamic(tmp_path / "in", AcquisitionTime=lambda k, _: None if k == 2 else at(k),
            ContentTime=lambda k, _: at(k, START + 20))  # fmt: skip
    times, said = imported(tmp_path)
    assert times is None
    assert all(way in said for way in ("--clock ContentTime", "--use series=5")), said
    times, said = imported(tmp_path, *options)
    assert times == [float(t) for t in TIMES], said
    assert "AcquisitionTime is missing in" in said
