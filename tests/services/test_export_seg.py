"""DICOM SEG in a bundle: of a DICOM case, and of a NIfTI case against its study."""

import importlib.util
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.core.choices import ExportFormat, SegmentMaker
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.io.exam.selectors import named_series, read_selectors
from napari_mamamia.io.workspace.provenance import sidecar_path, write_provenance
from napari_mamamia.services.export.plan import DrawnMask, ExportSettings, MaskFolder

pydicom = pytest.importorskip("pydicom")
pytest.importorskip("highdicom")

from napari_mamamia.core.errors import CaseError, Remedy  # noqa: E402
from napari_mamamia.core.grid import Grid  # noqa: E402
from napari_mamamia.io.data_set.volumes import read_phase_header, write_volume  # noqa: E402
from napari_mamamia.io.dicom.facts import remapped_uid, user_secret  # noqa: E402
from napari_mamamia.io.layouts.find import find_data_set  # noqa: E402
from napari_mamamia.io.seg.seg import read_segmentation  # noqa: E402
from napari_mamamia.services.case.data_set import open_data_set  # noqa: E402
from napari_mamamia.services.dicom.dicom import import_dicom  # noqa: E402
from napari_mamamia.services.dicom.finding import ImportSettings  # noqa: E402
from napari_mamamia.services.export.export import export_bundle  # noqa: E402
from napari_mamamia.services.export.seg import segment_meaning  # noqa: E402

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

SHAPE = (4, 8, 6)


def remapped(uid):
    return remapped_uid(uid, user_secret())


def write_study(folder, number=7):
    """Write two MR series of one study, 90 s apart, on one oblique stack."""
    row, down = np.array([0.8, 0.6, 0]), np.array([-0.6, 0.8, 0])
    for series in range(2):
        for k in range(SHAPE[0]):
            image = pydicom.Dataset()
            image.file_meta = pydicom.dataset.FileMetaDataset()
            image.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
            image.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
            image.SOPInstanceUID = f"2.25.{number}5{series}{k}"
            image.StudyInstanceUID, image.FrameOfReferenceUID = f"2.25.{number}", "2.25.6"
            image.SeriesInstanceUID = f"2.25.{number}8{series}"
            image.PatientID, image.PatientName, image.PatientSex = "T", "T", ""
            image.PatientBirthDate, image.AccessionNumber, image.StudyID = "", "", ""
            image.StudyDate, image.StudyTime, image.ReferringPhysicianName = "", "", ""
            image.Modality, image.SeriesNumber, image.InstanceNumber = "MR", series + 1, k + 1
            image.ImageType = ["ORIGINAL", "PRIMARY", "M"]
            image.AcquisitionDate = "20200101"
            image.AcquisitionTime = ("120000", "120130")[series]
            image.SamplesPerPixel, image.PhotometricInterpretation = 1, "MONOCHROME2"
            image.Rows, image.Columns = SHAPE[1:]
            image.BitsAllocated = image.BitsStored = 16
            image.HighBit, image.PixelRepresentation = 15, 0
            image.PixelSpacing, image.SliceThickness = [0.75, 0.5], 2.0
            image.ImageOrientationPatient = [*row, *down]
            image.ImagePositionPatient = [3.0, -4.0, 2.0 * k]
            image.file_meta.MediaStorageSOPClassUID = image.SOPClassUID
            image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
            values = np.random.default_rng([series, k]).integers(1, 50, SHAPE[1:], dtype=np.uint16)
            image.PixelData = (values + 20 * series).astype(np.uint16).tobytes()
            folder.mkdir(parents=True, exist_ok=True)
            name = folder / f"{series}_{k}.dcm"
            pydicom.dcmwrite(name, image, enforce_file_format=True)
    return folder


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path / "CASE_1")


@pytest.fixture
def grid(study):
    return read_phase_header(find_data_set(study).cases[0].phases[0]).grid


@pytest.fixture
def labels():
    made = np.zeros(SHAPE, np.uint8)
    made[1:3, 2:6, 1:4] = 1
    return made


def save_mask(folder, labels, grid, maker=Maker.MODEL, case_id="CASE_1", **fields):
    path = folder / f"{case_id}.nii.gz"
    write_volume(labels, grid, path)
    write_provenance(Provenance(case_id, maker, "kinetic", **fields), sidecar_path(path))
    return folder


def export(data_set, out, masks, **settings):
    opened = open_data_set(data_set, out.parent / "workspace")
    wanted = ExportSettings((MaskFolder(masks),), formats=(ExportFormat.DICOM_SEG,), **settings)
    return export_bundle(opened, wanted, out)


def test_a_dicom_case_is_exported_on_its_first_series_after_contrast(study, grid, labels, tmp_path):
    masks = save_mask(tmp_path / "masks", labels, grid)
    summary = export(study, tmp_path / "out", masks)
    assert (summary.failures, summary.problems) == ((), ())
    found = read_segmentation(tmp_path / "out/dicom_seg/CASE_1.dcm")
    assert found.source_series == remapped("2.25.781")
    (segment,) = found.segments
    assert (segment.label, segment.algorithm, segment.algorithm_name) == (
        "tumour",
        "AUTOMATIC",
        "kinetic",
    )
    np.testing.assert_array_equal(found.on_grid(segment, grid), labels > 0)


def test_an_exam_in_one_enhanced_file_is_exported_on_the_frames_of_phase_1(tmp_path):
    volumes = np.stack([phantoms.dce_values(k) for k in range(3)])
    study = tmp_path / "CASE_1"
    phantoms.write_enhanced(
        study / "all.dcm", volumes, [f"2020010112{k:02d}00" for k in range(3)],
        SOPInstanceUID="2.25.9", FrameOfReferenceUID="2.25.6", PatientID="T", StudyID="",
    )  # fmt: skip
    grid = read_phase_header(find_data_set(study).cases[0].phases[0]).grid
    drawn = np.zeros(grid.shape, np.uint8)
    drawn[1:3, 4:8, 5:9] = 1
    masks = save_mask(tmp_path / "masks", drawn, grid)
    summary = export(study, tmp_path / "out", masks)
    assert (summary.failures, summary.problems) == ((), ())
    path = tmp_path / "out/dicom_seg/CASE_1.dcm"
    found = read_segmentation(path)
    np.testing.assert_array_equal(found.on_grid(found.segments[0], grid), drawn > 0)
    (named,) = pydicom.dcmread(path).SourceImageSequence
    # frames run place by place, three phases of each: 2, 5, 8, 11 are those of phase 1
    assert list(named.ReferencedFrameNumber) == [2, 5, 8, 11]


def test_a_nifti_case_is_exported_against_its_study(study, grid, labels, tmp_path):
    # the same images as NIfTI whose rows run the other way, as dcm2niix writes them
    flipped = grid.affine.copy()
    flipped[:3, 3] += flipped[:3, 1] * (SHAPE[1] - 1)
    flipped[:3, 1] *= -1
    nifti = Grid(SHAPE, flipped)
    data_set = tmp_path / "data"
    for k in range(2):
        array = np.full(SHAPE, 5 + k, np.int16)
        write_volume(array, nifti, data_set / f"images/CASE_1/CASE_1_000{k}.nii.gz")
    masks = save_mask(tmp_path / "masks", labels[:, ::-1], nifti)
    summary = export(data_set, tmp_path / "out", masks, study=study)
    assert (summary.failures, summary.problems) == ((), ())
    found = read_segmentation(tmp_path / "out/dicom_seg/CASE_1.dcm")
    np.testing.assert_array_equal(found.on_grid(found.segments[0], grid), labels > 0)


def test_imported_cases_find_their_studies_again_whatever_the_folders_are_called(labels, tmp_path):
    exams = tmp_path / "exams"
    for number, name in ((71, "monday"), (72, "a tuesday")):
        write_study(exams / name / "series", number)
    import_dicom(exams, tmp_path / "data", "STUDY")
    for case in find_data_set(tmp_path / "data").cases:
        masks = save_mask(
            tmp_path / "masks", labels, read_phase_header(case.phases[0]).grid, case_id=case.case_id
        )
    summary = export(tmp_path / "data", tmp_path / "out", masks, study=exams)
    assert (summary.failures, summary.problems) == ((), ())
    uids = {
        path.stem: str(pydicom.dcmread(path).StudyInstanceUID)
        for path in (tmp_path / "out/dicom_seg").iterdir()
    }
    # studies are numbered in the order of their folders' names
    assert uids == {"STUDY_001": remapped("2.25.72"), "STUDY_002": remapped("2.25.71")}


@pytest.mark.parametrize("spread", [True, False])
def test_a_study_with_a_folder_for_each_series_is_taken_whole(labels, tmp_path, spread):
    exam = write_study(tmp_path / "exam")
    for series in (0, 1) if spread else (1,):
        (exam / f"series {series}").mkdir()
        for path in exam.glob(f"{series}_*.dcm"):
            path.rename(exam / f"series {series}" / path.name)
    import_dicom(exam, tmp_path / "data", "STUDY")
    (case,) = find_data_set(tmp_path / "data").cases
    masks = save_mask(
        tmp_path / "masks", labels, read_phase_header(case.phases[0]).grid, case_id="STUDY"
    )
    summary = export(tmp_path / "data", tmp_path / "out", masks, study=exam)
    assert (summary.failures, summary.problems) == ((), ())
    # the first series after contrast, not the one of the first subfolder
    assert read_segmentation(tmp_path / "out/dicom_seg/STUDY.dcm").source_series == remapped(
        "2.25.781"
    )


def test_a_case_whose_series_was_named_is_exported_on_that_series(labels, tmp_path):
    """Another sequence of the study has three phases, the named series one."""
    exam = write_study(tmp_path / "exam")
    for path in sorted(exam.glob("*.dcm")):
        image = pydicom.dcmread(path)
        series, k = map(int, path.stem.split("_"))
        image.EchoTime, image.Rows, image.Columns = 99.0, 4, 4
        image.PixelData = np.ones((4, 4), np.uint16).tobytes()
        for repeat in (0, 1, 2) if series else (0,):
            image.SeriesNumber = 30
            image.SeriesInstanceUID = "2.25.730"
            image.AcquisitionTime = f"1300{10 * repeat + 30 * series:02d}"
            uid = f"2.25.79{series}{repeat}{k}"
            image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = uid
            pydicom.dcmwrite(exam / f"other{series}{repeat}{k}.dcm", image)
    settings = ImportSettings(use=named_series((1, 2)))
    import_dicom(exam, tmp_path / "data", "NAMED", settings)
    (case,) = find_data_set(tmp_path / "data").cases
    masks = save_mask(
        tmp_path / "masks", labels, read_phase_header(case.phases[0]).grid, case_id="NAMED"
    )
    summary = export(tmp_path / "data", tmp_path / "out", masks, study=exam)
    assert (summary.failures, summary.problems) == ((), ())
    assert read_segmentation(tmp_path / "out/dicom_seg/NAMED.dcm").source_series == remapped(
        "2.25.781"
    )


def test_a_case_of_fat_images_is_exported_on_them_and_not_on_the_water_beside_them(
    labels, tmp_path
):
    exam = write_study(tmp_path / "exam")
    fat = set()
    for path in sorted(exam.glob("*.dcm")):
        image = pydicom.dcmread(path)
        image.ImageType = ["ORIGINAL", "PRIMARY", "W"]
        image.save_as(path)
        image.ImageType = ["ORIGINAL", "PRIMARY", "F"]
        uid = f"{image.SOPInstanceUID}.7"
        image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = uid
        fat.add(remapped(uid))
        pydicom.dcmwrite(exam / f"fat_{path.name}", image)
    settings = ImportSettings(use=read_selectors(["role=fat"]))
    import_dicom(exam, tmp_path / "data", "FAT", settings)
    (case,) = find_data_set(tmp_path / "data").cases
    masks = save_mask(
        tmp_path / "masks", labels, read_phase_header(case.phases[0]).grid, case_id="FAT"
    )
    summary = export(tmp_path / "data", tmp_path / "out", masks, study=exam)
    assert (summary.failures, summary.problems) == ((), ())
    made = pydicom.dcmread(tmp_path / "out/dicom_seg/FAT.dcm")
    (series,) = made.ReferencedSeriesSequence
    named = {item.ReferencedSOPInstanceUID for item in series.ReferencedInstanceSequence}
    assert named
    assert named <= fat


def test_a_study_that_is_spread_between_others_is_not_guessed(labels, tmp_path):
    exams = tmp_path / "exams"
    write_study(exams / "one", 71)
    import_dicom(exams / "one", tmp_path / "data", "A")
    write_study(tmp_path / "two", 72)
    import_dicom(tmp_path / "two", tmp_path / "data", "B")
    (exams / "one again").mkdir()
    for path in (exams / "one").glob("1_*.dcm"):
        path.rename(exams / "one again" / path.name)
    (tmp_path / "two").rename(exams / "two")
    for case in find_data_set(tmp_path / "data").cases:
        masks = save_mask(
            tmp_path / "masks", labels, read_phase_header(case.phases[0]).grid, case_id=case.case_id
        )
    summary = export(tmp_path / "data", tmp_path / "out", masks, study=exams)
    assert [failure.case_id for failure in summary.failures] == ["A"]
    assert "a subfolder with the imported study" in summary.failures[0].reason


def test_a_case_that_was_not_imported_from_any_of_the_studies_is_named(labels, tmp_path):
    for number, name in ((71, "monday"), (72, "tuesday")):
        write_study(tmp_path / "exams" / name, number)
    import_dicom(tmp_path / "exams", tmp_path / "data", "STUDY")
    for case in find_data_set(tmp_path / "data").cases:
        masks = save_mask(
            tmp_path / "masks", labels, read_phase_header(case.phases[0]).grid, case_id=case.case_id
        )
    (tmp_path / "exams" / "monday").rename(tmp_path / "elsewhere")
    summary = export(tmp_path / "data", tmp_path / "out", masks, study=tmp_path / "exams")
    assert [failure.case_id for failure in summary.failures] == ["STUDY_001"]
    assert "a subfolder with the imported study" in summary.failures[0].reason


def test_a_study_of_another_place_is_refused(study, grid, labels, tmp_path):
    moved = grid.affine.copy()
    moved[2, 3] += 3
    data_set = tmp_path / "data"
    path = data_set / "images/CASE_1/CASE_1_0000.nii.gz"
    write_volume(np.ones(SHAPE, np.int16), Grid(SHAPE, moved), path)
    masks = save_mask(tmp_path / "masks", labels, Grid(SHAPE, moved))
    summary = export(data_set, tmp_path / "out", masks, study=study)
    assert "are up to 3.00 mm apart" in summary.failures[0].reason


def test_without_provenance_one_has_to_say_how_a_mask_was_made(study, grid, labels, tmp_path):
    masks = save_mask(tmp_path / "masks", labels, grid)
    (masks / "CASE_1.json").unlink()
    refused = export(study, tmp_path / "one", masks)
    assert Remedy("made_by", ("manual",)) in refused.failures[0].remedies
    made = export(study, tmp_path / "two", masks, segment_maker=SegmentMaker.MANUAL)
    assert made.failures == ()
    found = read_segmentation(tmp_path / "two/dicom_seg/CASE_1.dcm")
    assert found.segments[0].algorithm == "MANUAL"


@pytest.mark.parametrize(
    ("maker", "started_from", "tools", "expected"),
    [
        (Maker.MODEL, "", "", "AUTOMATIC"),
        (Maker.READER, "empty", "sphere", "MANUAL"),
        (Maker.READER, "empty", "outline, erase outline", "MANUAL"),
        (Maker.READER, "empty", "outline, grow", "SEMIAUTOMATIC"),
        (Maker.READER, "prediction kinetic", "sphere", "SEMIAUTOMATIC"),
        (Maker.READER, "empty", "smartpaint, sphere", "SEMIAUTOMATIC"),
        (Maker.REFERENCE, "", "", "MANUAL"),
    ],
)
def test_the_provenance_says_how_a_mask_was_made(maker, started_from, tools, expected):
    made = Provenance("A", maker, "Ana", started_from=started_from, parameters=(("tools", tools),))
    mask = DrawnMask("Ana", np.zeros((1, 1, 1), np.uint8), Grid((1, 1, 1), np.eye(4)), made, True)
    assert segment_meaning(mask, SegmentMaker.FROM_PROVENANCE).algorithm == expected


def test_a_maker_that_nobody_knows_is_not_guessed():
    made = Provenance("A", Maker.UNKNOWN, "x")
    mask = DrawnMask("x", np.zeros((1, 1, 1), np.uint8), Grid((1, 1, 1), np.eye(4)), made, True)
    with pytest.raises(CaseError, match="choose whether the mask was made manually"):
        segment_meaning(mask, SegmentMaker.FROM_PROVENANCE)


def test_the_nifti_of_a_dicom_case_lies_at_the_same_place(study, grid, labels, tmp_path):
    masks = save_mask(tmp_path / "masks", labels, grid)
    opened = open_data_set(study, tmp_path / "workspace")
    export_bundle(opened, ExportSettings((MaskFolder(masks),)), tmp_path / "out")
    image = nib.load(tmp_path / "out/CASE_1.nii.gz")
    np.testing.assert_allclose(image.affine, grid.affine, atol=1e-5)
