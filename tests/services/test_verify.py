"""Verifying a bundle: a sound one, and each kind of damage."""

import json
import shutil

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.core.choices import ExportFormat, OrientationProfile
from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.privacy.identifiers import Identifier
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.export.export import export_bundle
from napari_mamamia.services.export.plan import ExportSettings, MaskFolder
from napari_mamamia.services.export.privacy import require_source, search_bundle, telling_in
from napari_mamamia.services.export.verify import verify_bundle


@pytest.fixture
def bundle(small_data_set, tmp_path):
    """Return a sound bundle of one case: native, harmonised with images, and the challenge's."""
    opened = open_data_set(small_data_set, tmp_path / "workspace")
    settings = ExportSettings(
        (MaskFolder(small_data_set / "segmentations" / "expert"),),
        formats=(ExportFormat.NIFTI, ExportFormat.CHALLENGE),
        profile=OrientationProfile.RAS,
        with_images=True,
        case_ids=("A_1",),
    )
    summary = export_bundle(opened, settings, tmp_path / "bundle")
    assert summary.problems == ()
    return tmp_path / "bundle"


def problems(bundle, images=None):
    return verify_bundle(bundle, images).problems


def edit_manifest(bundle, change):
    path = bundle / "manifest.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def record_of(content, name):
    files = [f for case in content["cases"] for f in case["files"]] + content["files"]
    return next(f for f in files if f["name"] == name)


def replace_and_admit(bundle, name, image):
    """Write another image in place of a file and put its SHA-256 into the manifest."""
    path = bundle / name
    nib.save(image, path)
    edit_manifest(bundle, lambda c: record_of(c, name).update(sha256=sha256_of(path)))


def with_affine(path, change):
    image = nib.load(path)
    affine = image.affine.copy()
    change(affine)
    return nib.Nifti1Image(np.asanyarray(image.dataobj), affine)


def test_a_sound_bundle_has_no_problem_and_counts_its_masks(bundle):
    found = verify_bundle(bundle)
    assert found.is_sound
    assert found.n_masks == 3  # native, harmonised, challenge


def test_a_bundle_that_was_copied_elsewhere_is_still_sound(bundle, tmp_path):
    shutil.copytree(bundle, tmp_path / "other place")
    assert problems(tmp_path / "other place") == ()


def test_a_missing_file_is_named(bundle):
    (bundle / "quality.csv").unlink()
    assert problems(bundle) == ("quality.csv: missing",)


def test_a_flipped_bit_is_named(bundle):
    path = bundle / "A_1.json"
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(bytes(content))
    (problem,) = problems(bundle)
    assert problem.startswith("A_1.json: the file has changed (SHA-256")


def test_an_extra_file_is_named_hidden_ones_too(bundle):
    (bundle / "masks").mkdir()
    (bundle / "masks" / "A_9.nii.gz").write_bytes(b"x")
    (bundle / ".hidden").write_text("x")
    assert problems(bundle) == (
        ".hidden: the file is not in the manifest",
        "masks/A_9.nii.gz: the file is not in the manifest",
    )


def test_a_mask_that_is_cut_short_cannot_be_read(bundle):
    path = bundle / "A_1.nii.gz"
    path.write_bytes(path.read_bytes()[:60])
    found = problems(bundle)
    assert any(p.startswith("A_1.nii.gz: the file has changed") for p in found)
    assert any(p.startswith("A_1.nii.gz: the file cannot be read") for p in found)


def test_a_mask_that_was_moved_is_named_even_if_the_checksum_was_mended(bundle):
    name = "A_1.nii.gz"
    moved = with_affine(bundle / name, lambda affine: affine.__setitem__((0, 3), 3.0))
    replace_and_admit(bundle, name, moved)
    assert problems(bundle) == (
        "A_1.nii.gz: the grid is up to 3.00 mm away from the image's grid in the manifest",
    )


def test_a_mask_of_another_shape_is_named(bundle):
    name = "A_1.nii.gz"
    image = nib.load(bundle / name)
    cut = nib.Nifti1Image(np.asanyarray(image.dataobj)[1:], image.affine)
    replace_and_admit(bundle, name, cut)
    (problem,) = problems(bundle)
    assert "the shape is (8, 32, 47) (z, y, x)" in problem
    assert "(8, 32, 48)" in problem


def test_a_harmonised_mask_must_lie_on_the_image_beside_it(bundle):
    name = "harmonised/segmentations/expert/A_1.nii.gz"
    moved = with_affine(bundle / name, lambda affine: affine.__setitem__((2, 3), 1.0))

    def lie(content):
        place = record_of(content, name)["place"]
        place["affine"][2][3] = 1.0

    replace_and_admit(bundle, name, moved)
    edit_manifest(bundle, lie)
    assert problems(bundle) == (
        f"{name}: the grid is up to 1.00 mm away from the image of A_1 next to it",
    )


def test_a_label_without_a_name_is_named(bundle):
    name = "A_1.nii.gz"
    image = nib.load(bundle / name)
    values = np.asanyarray(image.dataobj).copy()
    values[0, 0, 0] = 9
    replace_and_admit(bundle, name, nib.Nifti1Image(values, image.affine))
    assert problems(bundle) == ("A_1.nii.gz: the label 9 has no name in the manifest",)


def test_masks_are_compared_with_the_images_they_are_said_to_be_of(bundle, small_data_set):
    assert problems(bundle, small_data_set) == ()
    path = small_data_set / "images/A_1/A_1_0000.nii.gz"
    nib.save(with_affine(path, lambda affine: affine.__setitem__((1, 3), 5.0)), path)
    found = problems(bundle, small_data_set)
    assert "A_1.nii.gz: the grid is up to 5.00 mm away from phase 0 of A_1 in my data set" in found


def test_a_file_that_is_listed_twice_is_named(bundle):
    edit_manifest(bundle, lambda c: c["files"].append(record_of(c, "run.json")))
    assert problems(bundle) == ("run.json: the file is listed twice in the manifest",)


def test_a_manifest_that_leads_out_of_the_bundle_is_refused(bundle):
    edit_manifest(bundle, lambda c: record_of(c, "run.json").update(name="../outside.json"))
    with pytest.raises(FormatError, match="list only files inside the bundle"):
        problems(bundle)


@pytest.mark.parametrize("damage", ["cut", "not json", "later", "list"])
def test_a_damaged_manifest_is_named(bundle, damage):
    path = bundle / "manifest.json"
    text = path.read_text()
    later = text.replace('"manifest_version": 1', '"manifest_version": 99')
    path.write_text({"cut": text[:-30], "not json": "hello", "later": later, "list": "[]"}[damage])
    (problem,) = problems(bundle)
    assert problem.startswith("expected the manifest of an export")


def test_a_folder_without_a_manifest_is_an_export_that_did_not_finish(tmp_path):
    (problem,) = problems(tmp_path)
    assert "did not finish" in problem


def test_no_folder_at_all_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"the bundle folder .* does not exist"):
        problems(tmp_path / "nothing")


def test_an_exam_of_the_day_of_the_export_is_not_searched_for_by_its_day_and_that_is_said(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"StudyDate": "20190304", "PatientBirthDate": "19700131"}')
    for own_day, elements in (
        ("20190304", {"PatientBirthDate"}),
        ("20190305", {"PatientBirthDate", "StudyDate"}),
    ):
        told = telling_in((), (path,), own_day=own_day)
        assert {one.element for one in told.identifiers} == elements
        assert any("the date of this export" in note for note in told.notes) == (
            own_day == "20190304"
        )


def test_surnames_that_are_words_of_any_bundle_are_no_hit(bundle):
    """A case of Mrs Head, read by Dr Green: the words of our own files tell nobody."""
    surnames = (
        "Green", "Head", "Post", "Light", "Paper", "Place", "Best", "Sans", "Margin", "Ras", "True",
        "von der Mask", "Dr. med. Weight", "Ada", "Abe", "Bea", "Nan", "Seed",
    )  # fmt: skip
    named = [Identifier("PatientName", name, "name") for name in surnames]
    assert search_bundle(bundle, named) == ()
    (bundle / "note.txt").write_text("seen by Ada")
    found = search_bundle(bundle, named)
    assert found == ("note.txt: the file contains the source's PatientName",)


@pytest.mark.parametrize("name", ["nowhere", "empty", "study.zip"])
def test_a_named_source_that_cannot_tell_a_patient_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("no DICOM")
    (tmp_path / "study.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(FormatError, match="source study"):
        require_source(tmp_path / name)


@pytest.mark.parametrize("file", ["a.nii.gz", "IM0001"])
def test_a_named_source_with_a_volume_or_dicom_is_taken(tmp_path, file):
    (tmp_path / file).write_bytes(bytes(128) + b"DICM")
    require_source(tmp_path)
    require_source(tmp_path / file)


def test_a_bundle_of_which_no_case_could_be_written_is_not_sound(small_data_set, tmp_path):
    opened = open_data_set(small_data_set, tmp_path / "workspace")
    masks = tmp_path / "masks"
    masks.mkdir()
    (masks / "A_1.nii.gz").write_bytes(b"damaged")
    folders = (MaskFolder(masks),)
    summary = export_bundle(opened, ExportSettings(folders, case_ids=("A_1",)), tmp_path / "out")
    assert [failure.case_id for failure in summary.failures] == ["A_1"]
    assert any("lists no case" in problem for problem in problems(tmp_path / "out"))
