"""Two breasts in two sagittal stacks: asked about, joined on one grid, or kept as two cases."""

import importlib.util
import json
from pathlib import Path

import nibabel
import numpy as np
import pydicom
import pytest
from tests.cli.warm_program import mamamia

from napari_mamamia.core.choices import ExportFormat, SegmentMaker, Sides
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import read_phase_header, write_volume
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.seg.seg import read_segmentation
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.dicom.dicom import import_dicom
from napari_mamamia.services.dicom.finding import ImportSettings, look_into
from napari_mamamia.services.export.export import export_bundle
from napari_mamamia.services.export.plan import ExportSettings, MaskFolder

_SPEC = importlib.util.spec_from_file_location(
    "dicom_protocols", Path(__file__).parents[1] / "dicom_protocols.py"
)
protocols = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(protocols)
TIMES = protocols.TIMES


def imported(source, out, sides=Sides.JOIN, **settings):
    done = import_dicom(source, out, "P1", ImportSettings(sides=sides, **settings))
    assert not done.failures
    return done.imported


def volumes_of(out, case_id="P1"):
    return [nibabel.load(file) for file in sorted((out / "images" / case_id).iterdir())]


def slow_join(folder):
    """Return for each time {place in mm: plane}, of every file, and the places' step."""
    found = {}
    for file in folder.rglob("*.dcm"):
        image = pydicom.dcmread(file)
        at = found.setdefault(str(image.AcquisitionTime), {})
        at[float(image.ImagePositionPatient[0])] = image.pixel_array
    return [found[time] for time in sorted(found)]


def unsigned_on_one_side(folder):
    protocols.side_of(folder, 5, 40.0, 5)
    protocols.dynamic(
        folder, 6, lambda k: protocols.volume(k, seed=6).astype(np.uint16),
        ImageOrientationPatient=protocols.SAGITTAL,
        ImagePositionPatient=lambda _, z: [-60.0 - 2.0 * z, -20.0, 30.0],
    )  # fmt: skip


@pytest.mark.parametrize(
    "write",
    [protocols.left_and_right, protocols.left_and_right_in_one_series, unsigned_on_one_side],
)
def test_two_breasts_joined_lie_where_their_headers_say_with_zeros_between(tmp_path, write):
    write(tmp_path / "in")
    (case,) = imported(tmp_path / "in", tmp_path / "out")
    # 40, 38, 36, 34 mm to the left and -60 .. -66 mm: (40 + 66) / 2 + 1 = 54 places
    assert case.shape == (54, 40, 48)
    assert case.times_s == TIMES
    slow = slow_join(tmp_path / "in")
    volumes = volumes_of(tmp_path / "out")
    assert len(volumes) == len(slow) == 6
    for volume, planes in zip(volumes, slow, strict=True):
        values = np.asarray(volume.dataobj).T[:, ::-1]
        for z in range(54):
            x = (volume.affine @ [0, 0, z, 1])[0]  # RAS: the patient's right is -x, LPS left is +x
            expected = planes.get(round(-x, 3), np.zeros((40, 48)))
            assert np.array_equal(values[z], expected)
        assert len(planes) == 8


def test_the_record_of_a_joined_case_says_which_slices_are_whose_and_what_is_between(tmp_path):
    protocols.left_and_right(tmp_path / "in")
    (case,) = imported(tmp_path / "in", tmp_path / "out")
    record = json.loads((tmp_path / "out" / "patient_info_files" / "P1.json").read_text())["import"]
    assert record["joined"] == {
        "sides": [
            {"side": "left", "first": 0, "last": 3}, {"side": "right", "first": 50, "last": 53},
        ],
        "padding": 0,
    }  # fmt: skip
    assert len(record["series_uids_remapped"]) == 2
    used = {row["selector"].rpartition(",")[2] for row in record["series"] if row["use"] == "used"}
    assert used == {"side=left", "side=right"}
    assert "slices 4 to 49 between them contain 0" in " ".join(
        warning.text for warning in case.warnings
    )


def test_scaled_breasts_are_joined_with_zeros_that_no_intercept_moves(tmp_path):
    for number, x0, slope in ((5, 40.0, 2.0), (6, 26.0 - 66.0, 0.5)):
        protocols.side_of(tmp_path / "in", number, x0, number, RescaleSlope=slope,
                          RescaleIntercept=7.0)  # fmt: skip
    imported(tmp_path / "in", tmp_path / "out")
    values = np.asarray(volumes_of(tmp_path / "out")[0].dataobj).T[:, ::-1]
    assert np.array_equal(values[0], protocols.volume(0, seed=5)[0] * 2.0 + 7)
    assert np.array_equal(values[-1], protocols.volume(0, seed=6)[3] * 0.5 + 7)
    assert not values[4:-4].any()


def test_two_cases_have_the_breast_in_their_id(tmp_path):
    protocols.left_and_right_in_one_series(tmp_path / "in")
    cases = imported(tmp_path / "in", tmp_path / "out", Sides.TWO)
    assert [case.case_id for case in cases] == ["P1_left", "P1_right"]
    for case_id, seed in (("P1_left", 5), ("P1_right", 6)):
        values = np.asarray(volumes_of(tmp_path / "out", case_id)[3].dataobj).T[:, ::-1]
        assert np.array_equal(values, protocols.volume(3, seed=seed))


@pytest.mark.parametrize("sides", [Sides.JOIN, Sides.TWO])
def test_an_exam_of_one_stack_is_one_case_whatever_is_said_of_sides(tmp_path, sides):
    protocols.dynamic(tmp_path / "in")
    for number, x0 in ((11, 40.0), (12, -60.0)):  # a sagittal scan of each breast beside it
        protocols.series(
            tmp_path / "in", number, 0, protocols.plain(number), 900, RepetitionTime=9.0,
            ImageOrientationPatient=protocols.SAGITTAL,
            ImagePositionPatient=lambda _, z, x0=x0: [x0 - 2.0 * z, -20.0, 30.0],
        )  # fmt: skip
    (case,) = imported(tmp_path / "in", tmp_path / "out", sides)
    assert (case.case_id, case.shape) == ("P1", protocols.SHAPE)
    assert any("the phases are not two sagittal stacks" in w.text for w in case.warnings)


def test_two_breasts_that_are_joined_or_kept_apart_as_asked_bring_no_warning_of_it(tmp_path):
    protocols.left_and_right_in_one_series(tmp_path / "in")
    for sides in (Sides.JOIN, Sides.TWO):
        for case in imported(tmp_path / "in", tmp_path / str(sides), sides):
            assert not any("two sagittal stacks" in warning.text for warning in case.warnings)


def test_the_table_of_a_joined_exam_uses_both_breasts(tmp_path):
    protocols.left_and_right(tmp_path)
    (found,) = look_into(tmp_path, "P1", ImportSettings(sides=Sides.JOIN))
    assert {row.number: (row.part, row.use, row.phases) for row in found.rows} == {
        5: ("left", "used", tuple(range(6))), 6: ("right", "used", tuple(range(6))),
    }  # fmt: skip


# ---- what cannot be joined


def shifted(by):
    def write(folder):
        protocols.side_of(folder, 5, 40.0, 5)
        protocols.dynamic(
            folder, 6, lambda k: protocols.volume(k, seed=6),
            ImageOrientationPatient=protocols.SAGITTAL,
            ImagePositionPatient=lambda _, z: [-60.0 - 2.0 * z + by[0], -20.0 + by[1], 30.0],
        )  # fmt: skip

    return write


def other_side(values=lambda k: protocols.volume(k, seed=6), times=TIMES, **elements):
    """Return what writes a left breast, and a right one with other elements."""

    def write(folder):
        protocols.side_of(folder, 5, 40.0, 5)
        protocols.dynamic(
            folder, 6, values, times,
            **{"ImageOrientationPatient": protocols.SAGITTAL,
               "ImagePositionPatient": lambda _, z: [-60.0 - 2.0 * z, -20.0, 30.0], **elements},
        )  # fmt: skip

    return write


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (shifted((1.0, 0.0)), r"1\.00 mm off the nearest .*1\.00 mm of this from slice to slice"),
        (shifted((0.0, 5.0)), r"5\.00 mm off the nearest .*0\.00 mm of this"),
        (other_side(times=[at + 900 for at in TIMES]), r"begins \+900 s from that of the left"),
        (other_side(times=[at * 2 for at in TIMES]), "half the gap between phases"),
        (other_side(times=TIMES[:5]), "same number of phases.* 6 and 5"),
        (other_side(PixelSpacing=[0.6, 0.75]), "left and right .* same spacing"),
        (other_side(lambda k: protocols.volume(k, (4, 32, 48), seed=6)), "same rows and columns"),
        (other_side(EchoTime=2.8), "same sequence, .* TE 1.4 ms.* TE 2.8 ms"),
        (other_side(RescaleSlope="0.5"), "same scaling, .* no RescaleSlope and RescaleSlope"),
        (
            other_side(ImagePositionPatient=lambda _, z: [-60.0 - 2.5 * z, -20.0, 30.0]),
            "same spacing",
        ),
    ],
)
def test_breasts_that_do_not_agree_are_not_joined_and_the_reason_says_two_cases(
    tmp_path, write, reason
):
    write(tmp_path / "in")
    with pytest.raises(CaseError, match=reason) as refusal:
        imported(tmp_path / "in", tmp_path / "out")
    assert refusal.value.remedies == (Remedy("sides", (Sides.TWO,)),)
    assert not (tmp_path / "out").exists()


def test_breasts_without_times_are_not_joined(tmp_path):
    for number, x0 in ((5, 40.0), (6, -60.0)):
        protocols.dynamic(
            tmp_path / "in", number, lambda k, seed=number: protocols.volume(k, seed=seed),
            (None,) * 6, ContentTime=None, ImageOrientationPatient=protocols.SAGITTAL,
            ImagePositionPatient=lambda _, z, x0=x0: [x0 - 2.0 * z, -20.0, 30.0],
        )  # fmt: skip
    with pytest.raises(CaseError, match="whether the breasts were scanned together"):
        imported(tmp_path / "in", tmp_path / "out")


def test_a_breast_without_contrast_is_refused_in_a_joined_exam_as_alone(tmp_path):
    protocols.side_of(tmp_path / "in", 5, 40.0, 5)
    protocols.dynamic(
        tmp_path / "in", 6, lambda k: protocols.volume(5 - k, seed=6),
        ImageOrientationPatient=protocols.SAGITTAL,
        ImagePositionPatient=lambda _, z: [-60.0 - 2.0 * z, -20.0, 30.0],
    )  # fmt: skip
    with pytest.raises(CaseError, match="contrast to arrive and stay"):
        imported(tmp_path / "in", tmp_path / "out")


def test_a_few_seconds_between_the_breasts_are_a_warning_and_the_earlier_one_times_it(tmp_path):
    other_side(times=[at + 12 for at in TIMES])(tmp_path / "in")
    (case,) = imported(tmp_path / "in", tmp_path / "out")
    assert case.times_s == TIMES
    assert "right breast was scanned up to 12 s after the left" in " ".join(
        warning.text for warning in case.warnings
    )


# ---- the command in a process of its own


@pytest.mark.door
def test_the_command_asks_and_then_joins_or_keeps_two(tmp_path):
    protocols.left_and_right(tmp_path / "in")
    command = ("import", tmp_path / "in", "--out", tmp_path / "out", "--case")
    done = {
        name: mamamia(*command, name, *option)
        for name, option in (("A", ()), ("J", ("--sides", "join")), ("T", ("--sides", "two")))
    }
    assert (done["A"].returncode, done["J"].returncode, done["T"].returncode) == (1, 0, 0)
    assert "--sides join, or --sides two" in done["A"].stderr
    assert "54 x 40 x 48" in done["J"].stdout
    assert {path.name for path in (tmp_path / "out" / "images").iterdir()} == {
        "J", "T_left", "T_right",
    }  # fmt: skip


# ---- back on the images


def joined_case(folder, write=protocols.left_and_right):
    write(folder / "in", FrameOfReferenceUID="2.25.9", SliceThickness=2)
    imported(folder / "in", folder / "data")
    (case,) = find_data_set(folder / "data").cases
    return read_phase_header(case.phases[0]).grid


def exported(folder, labels, grid):
    write_volume(labels, grid, folder / "masks" / "P1.nii.gz")
    opened = open_data_set(folder / "data", folder / "workspace")
    settings = ExportSettings(
        (MaskFolder(folder / "masks"),), formats=(ExportFormat.DICOM_SEG,), study=folder / "in",
        segment_maker=SegmentMaker.MANUAL,
    )  # fmt: skip
    return export_bundle(opened, settings, folder / "out")


@pytest.mark.parametrize(
    "write", [protocols.left_and_right, protocols.left_and_right_in_one_series]
)
def test_a_mask_of_a_joined_case_is_written_on_the_images_of_each_breast(tmp_path, write):
    pytest.importorskip("highdicom")
    grid = joined_case(tmp_path, write)
    labels = np.zeros(grid.shape, np.uint8)
    labels[1:3, 5:9, 4:20] = 1
    labels[51, 7, 30] = 1
    summary = exported(tmp_path, labels, grid)
    assert (summary.failures, summary.problems) == ((), ())
    seen = np.zeros(grid.shape, bool)
    for side, first, last in (("left", 0, 3), ("right", 50, 53)):
        found = read_segmentation(tmp_path / "out" / "dicom_seg" / f"P1_{side}.dcm")
        affine = grid.affine.copy()
        affine[:3, 3] += affine[:3, 2] * first
        slab = Grid((4, *grid.shape[1:]), affine)
        seen[first : last + 1] = found.on_grid(found.segments[0], slab)
    assert np.array_equal(seen, labels > 0)


def test_a_breast_without_marks_gets_no_segmentation(tmp_path):
    pytest.importorskip("highdicom")
    grid = joined_case(tmp_path)
    labels = np.zeros(grid.shape, np.uint8)
    labels[51, 7, 30] = 1
    exported(tmp_path, labels, grid)
    made = [path.name for path in (tmp_path / "out" / "dicom_seg").iterdir()]
    assert made == ["P1_right.dcm"]


def test_marks_between_the_breasts_are_refused_because_no_image_is_there(tmp_path):
    pytest.importorskip("highdicom")
    grid = joined_case(tmp_path)
    labels = np.zeros(grid.shape, np.uint8)
    labels[51, 7, 30] = labels[20, 7, 30] = 1
    summary = exported(tmp_path, labels, grid)
    (failure,) = summary.failures
    assert "has voxels on slices (20) between the two breasts" in failure.reason
