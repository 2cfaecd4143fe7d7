"""A study full of names, from import to a verified bundle: the commands as they are typed."""

import importlib.util
import json
import zipfile
from pathlib import Path

import numpy as np
import pydicom
import pytest
from tests.cli.warm_program import mamamia as run_mamamia

pytestmark = pytest.mark.door

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

PERSON = {
    "PatientName": "Xavierson^Zoe",
    "PatientID": "QX-778812",
    "OtherPatientIDs": "998877665",
    "PatientBirthDate": "19700131",
    "PatientSex": "F",
    "PatientAge": "049Y",
    "PatientAddress": "Larkspurweg 7",
    "PatientComments": "seen with Quimby",
    "EthnicGroup": "Vulcan",
    "AccessionNumber": "ACC55443",
    "StudyID": "ST9081",
    "ReferringPhysicianName": "Plimpton^Ada",
    "OperatorsName": "Grotz",
    "InstitutionName": "Falkenstein University Hospital",
    "StationName": "MRFALK01",
    "DeviceSerialNumber": "SN44551",
    "StudyDescription": "Breast of Xavierson",
    "ProtocolName": "Xavierson protocol",
    "StudyInstanceUID": "1.2.826.0.1.777.1",
    "SeriesInstanceUID": "1.2.826.0.1.777.2",
    "FrameOfReferenceUID": "1.2.826.0.1.777.3",
    "StudyDate": "20190304",
    "StudyTime": "101112",
    "SliceThickness": 2,
}
WORDS = (
    "xavierson", "zoe", "778812", "998877665", "19700131", "1970-01-31", "larkspur", "quimby",
    "vulcan", "acc55443", "st9081", "plimpton", "grotz", "falkenstein", "mrfalk01", "sn44551",
    "1.2.826.0.1.777", "20190304",
)  # fmt: skip


def private(image):
    block = image.private_block(0x0029, "XAVIERSON", create=True)
    block.add_new(1, "LO", "Xavierson Zoe")


def write_study(folder, **elements):
    elements.setdefault("SOPInstanceUID", lambda k, z: f"1.2.826.0.1.777.4.{k}.{z}")
    phantoms.write_exam(folder, 3, then=lambda *_: private, **{**PERSON, **elements})
    return folder


@pytest.fixture
def mamamia(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        done = run_mamamia(*words)
        return done.returncode, done.stdout + done.stderr

    return run


def everything(bundle):
    """Return all bytes of a bundle with their names in lower case, .gz unpacked."""
    import gzip

    text = b""
    for path in sorted(bundle.rglob("*")):
        text += path.relative_to(bundle).as_posix().encode() + b"\n"
        if path.is_file():
            data = path.read_bytes()
            text += gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return text.decode("latin-1").lower()


def test_no_word_of_the_patient_leaves_unless_it_is_asked_for_by_name(mamamia, tmp_path):
    study = write_study(tmp_path / "Xavierson_Zoe")
    code, said = mamamia("import", study, "--out", tmp_path / "set")
    assert (code, "--case" in said) == (1, True), said
    code, said = mamamia("import", study, "--out", tmp_path / "set", "--case", "CASE_1")
    assert code == 0, said
    assert not [word for word in WORDS if word in everything(tmp_path / "set")]
    code, said = mamamia("predict", tmp_path / "set", "--out", tmp_path / "masks")
    assert code == 0, said
    seg = ("--format", "nifti", "--format", "dicom-seg", "--study", study)
    export = ("export", tmp_path / "set", "--masks", tmp_path / "masks", "--with-images", *seg)

    code, said = mamamia(*export, "--out", tmp_path / "bundle")
    assert code == 0, said
    assert "from the source: none" in said
    held = everything(tmp_path / "bundle")
    assert [word for word in WORDS if word in held] == []
    made = pydicom.dcmread(tmp_path / "bundle/dicom_seg/CASE_1.dcm")
    assert (made.PatientID, str(made.PatientName), made.PatientBirthDate) == ("CASE_1",) * 2 + ("",)
    info = json.loads((tmp_path / "set/patient_info_files/CASE_1.json").read_text())
    assert made.StudyInstanceUID == info["import"]["study_uid_remapped"]

    code, said = mamamia(*export, "--out", tmp_path / "named", "--identified-seg")
    assert code == 0, said
    assert not (tmp_path / "named/dicom_seg").exists()
    named = pydicom.dcmread(tmp_path / "named/dicom_seg_identified/CASE_1.dcm")
    assert str(named.PatientName) == "Xavierson^Zoe"
    assert named.StudyInstanceUID == PERSON["StudyInstanceUID"]

    # somebody puts the name into a file of the bundle
    notes = tmp_path / "bundle/CASE_1.json"
    notes.write_text(notes.read_text().replace("CASE_1", "zOE  XAVIERSON"))
    code, said = mamamia("verify", tmp_path / "bundle", "--study", study)
    assert code == 3
    assert "CASE_1.json: the file contains the source's PatientName" in said
    assert "xavierson" not in said.lower().replace(str(study).lower(), "")

    # a day or a comment, as people write them
    notes.write_text(notes.read_text() + " born 31.1.1970, scanned 4 March 2019: SEEN with Quimby")
    code, said = mamamia("verify", tmp_path / "bundle", "--study", study)
    assert code == 3
    for element in ("PatientBirthDate", "StudyDate", "PatientComments"):
        assert f"CASE_1.json: the file contains the source's {element}" in said


@pytest.mark.night
def test_a_dicom_folder_that_is_called_by_the_patient_leaves_no_name(mamamia, tmp_path):
    """Opened as it is, without an import: the folder is the case id and the data set's name."""
    study = write_study(tmp_path / "Xavierson_Zoe")
    code, said = mamamia("predict", study, "--out", tmp_path / "masks")
    assert code == 0, said
    export = ("export", study, "--masks", tmp_path / "masks", "--format", "dicom-seg")
    code, said = mamamia(*export, "--format", "bids", "--out", tmp_path / "bundle")
    assert code == 3, said
    assert "mamamia import DICOM --case ID" in said
    assert [word for word in WORDS if word in everything(tmp_path / "bundle")] == []
    code, said = mamamia(*export, "--out", tmp_path / "back", "--identified-seg")
    assert code == 0, said
    assert len(list((tmp_path / "back/dicom_seg_identified").iterdir())) == 1


def test_a_first_import_of_files_without_identity_is_taken_under_their_own_id(mamamia, tmp_path):
    """As every collection of TCIA: the folder's name is the patient's pseudonym."""
    folder = write_study(tmp_path / "ISPY1_1002", PatientID="ISPY1_1002", PatientName="ISPY1_1002",
                         PatientIdentityRemoved="YES")  # fmt: skip
    code, said = mamamia("import", folder, "--out", tmp_path / "set")
    assert code == 0, said
    assert (tmp_path / "set/images/ISPY1_1002").is_dir()
    # one series of the folder does not say so: nobody knows whose name that is
    for path in sorted(folder.glob("*_0_*")):
        image = pydicom.dcmread(path)
        image.SeriesInstanceUID, image.SeriesNumber = "2.25.9999999999", 99
        image.PatientIdentityRemoved = "NO"
        image.save_as(path)
    code, said = mamamia("import", folder, "--out", tmp_path / "other")
    assert code == 1, said
    assert "--case" in said
    assert np.all([not path.name.startswith("ISPY") for path in (tmp_path / "other").rglob("*")])


@pytest.mark.real
@pytest.mark.night
def test_a_real_exam_of_tcia_goes_from_its_first_import_to_a_bundle(mamamia, real_data, tmp_path):
    """Its images say that the identity was removed; four segmentations among them say nothing."""
    study = tmp_path / "ISPY1_1002"
    with zipfile.ZipFile(real_data("ispy1_1002.zip")) as archive:
        archive.extractall(study)
    code, said = mamamia("import", study, "--out", tmp_path / "set")
    assert code == 0, said
    code, said = mamamia("predict", tmp_path / "set", "--out", tmp_path / "masks")
    assert code == 0, said
    code, said = mamamia(
        "export", tmp_path / "set", "--masks", tmp_path / "masks", "--out", tmp_path / "bundle",
        "--format", "dicom-seg", "--format", "nifti", "--with-images", "--study", study,
    )  # fmt: skip
    assert code == 0, said
    assert "from the source: none" in said
