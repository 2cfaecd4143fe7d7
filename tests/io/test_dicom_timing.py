"""What headers tell of the time axis: resolution, number of images, injection, over midnight."""

import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

from napari_mamamia.io.dicom_timing import read_scan_timing


def header(path, duration=None, **values):
    made = Dataset()
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID = generate_uid()
    for name, value in values.items():
        setattr(made, name, value)
    if duration is not None:
        made.add_new((0x0019, 0x0010), "LO", "GEMS_ACQU_01")
        made.add_new((0x0019, 0x105A), "FL", duration)
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
