"""What headers of NIfTI and NRRD files and JSON files beside them tell of a patient."""

import json

import nibabel as nib
import nrrd
import numpy as np
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom.persons import find_volume_identifiers
from napari_mamamia.io.files import json_text
from napari_mamamia.io.privacy.identifiers import folded, signs_of

VOXELS = np.zeros((2, 3, 4), np.int16)


def told(files, text):
    signs = signs_of(find_volume_identifiers(files).identifiers)
    return sorted({sign.element for sign in signs if sign.is_in(folded(text))})


def write_nifti(path, kind=nib.Nifti1Image, extension=None, **texts):
    image = kind(VOXELS, np.eye(4))
    for name, text in texts.items():
        image.header[name] = text
    if extension is not None:
        image.header.extensions.append(nib.nifti1.Nifti1Extension(*extension))
    nib.save(image, path)
    return path


@pytest.mark.parametrize("kind", [nib.Nifti1Image, nib.Nifti2Image])
@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
def test_free_texts_of_a_header_tell_names_days_and_numbers(tmp_path, name, kind):
    path = write_nifti(
        tmp_path / name, kind, descrip="Xavierson^Zoe 1970-01-31", aux_file="QX-778812",
        intent_name="of Mrs Quimby",
    )  # fmt: skip
    assert told([path], "zoe") == ["descrip"]
    assert told([path], "31.01.1970") == ["descrip"]
    assert told([path], "qx 778812") == ["aux_file"]
    assert told([path], "of mrs quimby") == []  # 11 letters: too short to be no chance
    assert told([path], "nothing of it") == []


@pytest.mark.parametrize("code", [2, 6])
def test_an_extension_of_the_header_is_read(tmp_path, code):
    content = b"\x10\x00\x10\x00Xavierson^Zoe \x00" if code == 2 else b"scan of Xavierson^Zoe"
    path = write_nifti(tmp_path / "a.nii.gz")
    image = nib.load(path)
    extension = nib.nifti1.Nifti1Extension(6, content)
    extension._code = code
    image.header.extensions.append(extension)
    nib.save(image, tmp_path / "b.nii.gz")
    assert told([tmp_path / "b.nii.gz"], "xavierson") == ["an extension in the header"]


def test_the_json_beside_a_volume_tells_by_the_names_of_dicom(tmp_path):
    path = write_nifti(tmp_path / "a_0000.nii.gz")
    said = {
        "PatientName": "Xavierson^Zoe", "PatientBirthDate": "1970-01-31", "EchoTime": 0.0042,
        "AcquisitionDateTime": "2019-03-04T10:11:12", "SeriesDescription": "Breast bilateral",
        "global": {"const": {"AccessionNumber": "ACC55443"}}, "OperatorsName": ["Grotz^Al"],
    }  # fmt: skip
    (tmp_path / "a_0000.json").write_text(json.dumps(said))
    assert told([path], "xavierson") == ["PatientName"]
    assert told([path], "1/31/1970") == ["PatientBirthDate"]
    assert told([path], "20190304") == ["AcquisitionDateTime"]
    assert told([path], "of ACC55443.") == ["AccessionNumber"]
    assert told([path], "grotz") == ["OperatorsName"]
    assert told([path], "breast bilateral 0.0042") == []


def test_comments_and_keys_of_an_nrrd_header_are_read(tmp_path):
    path = tmp_path / "a.nrrd"
    nrrd.write(str(path), VOXELS, {"patient": "Xavierson^Zoe", "units": ["mm"] * 3})
    assert told([path], "zoe") == ["patient in the header"]


def test_what_converters_write_of_themselves_tells_nobody_in_our_own_files(tmp_path):
    path = write_nifti(
        tmp_path / "a.nii", descrip="TE=4.2;Time=101112.000;phase=1", aux_file="FSL6.0"
    )
    own = "napari-mamamia 0.1.0, echo_time 4.2, 101112 voxels, phase 1 at 101112.5 s, FSL"
    assert told([path], own) == []


def test_a_file_that_the_disk_refuses_is_an_error_and_no_note(tmp_path, monkeypatch):
    """What it tells would be searched for nowhere, and all would be called as it should be."""
    (tmp_path / "a.json").write_text('{"PatientName": "Xavierson"}')

    def refuse(path):
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(json_text, "open_plain", refuse)
    with pytest.raises(FormatError, match="Input/output error"):
        find_volume_identifiers([tmp_path / "a.json"])


def test_a_damaged_file_is_counted_and_not_passed_over(tmp_path):
    (tmp_path / "a.nii.gz").write_bytes(b"\x1f\x8bnothing")
    (tmp_path / "b.json").write_text("{")
    found = find_volume_identifiers(sorted(tmp_path.iterdir()))
    assert (found.identifiers, found.n_unread) == ((), 2)
