"""What headers tell of the time axis: resolution, number of images, injection, over midnight."""

import importlib.util
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

from napari_mamamia.core.choices import Clock
from napari_mamamia.io.dicom.clocks import Verdict, partial_warnings
from napari_mamamia.io.dicom.files import read_studies
from napari_mamamia.io.dicom.slices import unit_of
from napari_mamamia.io.exam.exam import find_exam
from napari_mamamia.io.exam.phases import moments_of, read_scan_timing

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)


def header(path, duration=None, **values):
    made = Dataset()
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID = generate_uid()
    for name, value in values.items():
        setattr(made, name, value)
    if duration is not None:  # in a block of its own: PS3.5, 7.8
        made.add_new((0x0019, 0x0010), "LO", "SOMEBODY ELSE")
        made.add_new((0x0019, 0x105A), "FL", 12.0)
        made.add_new((0x0019, 0x0023), "LO", "gems_acqu_01")
        made.add_new((0x0019, 0x235A), "FL", duration)
    made.save_as(path, enforce_file_format=True)
    return path


GE, SIEMENS, PHILIPS = "GE MEDICAL SYSTEMS", "SIEMENS", "Philips Medical Systems"


@pytest.mark.parametrize(
    ("values", "resolution", "positions"),
    [
        ({"Manufacturer": GE, "duration": 285816992.0}, 285.816992, None),  # ISPY1_1002
        (
            {"Manufacturer": GE, "duration": 400e6, "NumberOfTemporalPositions": "4"},
            100,
            4,
        ),
        ({"Manufacturer": SIEMENS, "TemporalResolution": "90000"}, 90, None),  # milliseconds
        (
            {
                "Manufacturer": SIEMENS,
                "TemporalResolution": "450",
                "NumberOfTemporalPositions": "5",
            },
            90,
            5,
        ),
        (
            {"Manufacturer": PHILIPS, "TemporalResolution": "70", "NumberOfTemporalPositions": "6"},
            70,
            None,  # UCSF's program does not choose again on Philips
        ),
        ({"Manufacturer": SIEMENS}, None, None),
        ({"Manufacturer": GE, "TemporalResolution": "0"}, None, None),
        ({}, None, None),
    ],
)
def test_the_resolution_and_the_images_are_read_as_ucsf_reads_them(
    tmp_path, values, resolution, positions
):
    post = header(tmp_path / "post.dcm", **values)
    found = read_scan_timing(post, header(tmp_path / "pre.dcm"))
    assert found.resolution_s == (None if resolution is None else pytest.approx(resolution))
    assert found.positions == positions


@pytest.mark.parametrize(
    ("start", "given", "seconds"),
    [
        ("094928", "095631", 423),
        ("235900.5", "000130.5", 150),  # over midnight
        ("094928", "", None),
        ("", "095631", None),
        ("094928", "094928", None),  # no time between them
        ("094928", "094000", None),  # before the scan: no exam takes a day
        ("094928", "1-30", None),
    ],
)
def test_the_injection_counts_from_the_start_of_phase_0(tmp_path, start, given, seconds):
    pre = header(tmp_path / "pre.dcm", AcquisitionTime=start)
    post = header(tmp_path / "post.dcm", ContrastBolusStartTime=given)
    assert read_scan_timing(post, pre).injection_s == seconds


@pytest.mark.parametrize("clock", [Clock.ACQUISITION_TIME, Clock.CONTENT_TIME])
def test_a_clock_that_lacks_its_seconds_in_some_images_is_named(clock):
    full = SimpleNamespace(clocks={clock: 7.0}, is_padding=False, refused_times=())
    coarse = SimpleNamespace(
        clocks={clock: 60.0, unit_of(clock): 60.0}, is_padding=False, refused_times=()
    )
    (warning,) = partial_warnings([full, coarse])
    assert warning.startswith(f"{clock} has no seconds in 1 of 2 images")
    assert partial_warnings([full, full]) == []


@pytest.mark.parametrize(
    ("times_s", "is_plausible"),
    [
        ((0.0, 1.0, 1801.0), True),  # the limits belong to the plausible gaps
        ((0.0, 0.2, 90.0), False),
        ((0.0, 90.0, 90.2), False),
        ((0.0, 1900.0, 1990.0), False),
        ((0.0, 90.0, 1990.0), False),
        (None, False),
    ],
)
def test_every_gap_of_a_clock_must_be_plausible(times_s, is_plausible):
    stacks = np.arange(3)[:, None]
    assert Verdict(Clock.TRIGGER_TIME, stacks, "", times_s).is_plausible is is_plausible


# ---- which moments of a phase the frames of an enhanced file tell


def moments(folder, reference_s=None, duration_s=None, starts_s=(0, 90, 165), at="20200101235900"):
    """Return the moments of an enhanced file whose phases start so many seconds after `at`."""
    first = datetime.strptime(at, "%Y%m%d%H%M%S")

    def told(seconds):
        return (first + timedelta(seconds=seconds)).strftime("%Y%m%d%H%M%S.%f")

    def frame(groups, time):
        (content,) = groups.FrameContentSequence
        if reference_s is not None:
            content.FrameReferenceDateTime = told(starts_s[time] + reference_s)
        if duration_s is not None:
            content.FrameAcquisitionDuration = 1000.0 * duration_s

    values = np.stack([phantoms.dce_values(k) for k in range(len(starts_s))])
    phantoms.write_enhanced(folder / "a.dcm", values, [told(s) for s in starts_s], frame=frame)
    (study,) = read_studies(folder)
    return moments_of(find_exam(study.images, "x").stacks)


def test_the_reference_time_is_the_centre_of_each_phase_over_midnight_too(tmp_path):
    found = moments(tmp_path, reference_s=31.5)
    assert found.centres_s == (31.5, 121.5, 196.5)
    assert found.centres_are == "FrameReferenceDateTime"
    assert found.ends_s is None


def test_a_duration_of_one_phase_gives_its_end_and_a_nominal_centre(tmp_path):
    found = moments(tmp_path, duration_s=74.0)
    assert found.ends_s == (74, 164, 239)
    assert found.centres_s == (37, 127, 202)
    assert found.centres_are.startswith("nominal: start plus half of FrameAcquisitionDuration")


def test_a_reference_time_comes_before_half_of_the_duration(tmp_path):
    found = moments(tmp_path, reference_s=20.0, duration_s=74.0)
    assert (found.centres_s, found.ends_s) == ((20, 110, 185), (74, 164, 239))


@pytest.mark.parametrize(
    ("reference_s", "duration_s"),
    [
        (0.0, 229.0),  # as in dcm_qa_enh, a Siemens file: the start, and the whole scan's duration
        (-20.0, None),
        (90.0, None),  # behind the next phase: 75 s are the least gap
        (None, 0.0),
        (None, None),
    ],
)
def test_what_can_be_no_moment_of_a_phase_leaves_it_unknown(tmp_path, reference_s, duration_s):
    found = moments(tmp_path, reference_s, duration_s)
    assert (found.centres_s, found.ends_s) == (None, None)
    assert found.centres_are == found.ends_are == "unknown, because no element gives it"


@pytest.mark.real
def test_a_real_enhanced_file_of_siemens_tells_no_centre(real_data):
    folder = real_data("dicom") / "siemens_enhanced" / "In"
    (study,) = read_studies(folder)
    stacks = [image for image in study.images if isinstance(image, tuple)]
    assert stacks[0][0].clocks["FrameAcquisitionDuration"] == 229
    assert moments_of(stacks).centres_s is None
