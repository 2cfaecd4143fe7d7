"""What tells the patient, in any file of the source and hidden anywhere in a bundle, is found."""

import base64
import bz2
import gzip
import importlib.util
import io
import json
import lzma
import zipfile
import zlib
from pathlib import Path
from urllib.parse import quote

import nibabel as nib
import numpy as np
import pytest
from tests.cli.warm_program import mamamia

from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.services.export.export import export_masks

pytestmark = pytest.mark.door

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

PLANE = np.zeros((4, 4), np.int16)
COMMON = {"PatientName": "MÜLLER^Annegret", "SpecificCharacterSet": "ISO_IR 100"}


def private(vr, value, group=0x0029):
    def add(image):
        image.private_block(group, "ACME 1.0", create=True).add_new(1, vr, value)

    return add


def nested(image):
    image.RequestAttributesSequence = [
        phantoms.item(
            RequestedProcedureID="RP-445566",
            ReferencedStudySequence=[
                phantoms.item(
                    ReferencedSOPClassUID="1.2.840.10008.3.1.2.3.1",
                    ReferencedSOPInstanceUID="1.2.826.0.1.55.8",
                )
            ],
        )
    ]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return a study of one series whose files differ in all that tells the patient."""
    folder = tmp_path_factory.mktemp("source")
    files = {
        1: {},
        2: {"AccessionNumber": "ACC90317"},
        3: {"PatientName": "Xavierson^Zoe", "PatientBirthDate": "19610203"},
        4: {"StudyDate": "20190304", "OperatorsName": "Grotz"},
        5: {"then": private("LO", "Plimpton^Ada")},
        6: {"then": private("UN", b"MRN 88776655")},
        7: {"then": private("OB", bytes(range(64)) + b"\0\1Quimbleton^Otto\0" + bytes(9))},
        8: {"then": nested},
        9: {"then": private("PN", "Larkspur^Ida"), "syntax": phantoms.IMPLICIT},
        10: {"PatientIdentityRemoved": "YES", "PatientName": "PSEUDONYMUS"},
        11: {"then": private("LO", "Breast^Routine"), "SeriesDescription": "Breast^Routine L"},
    }
    for number, told in files.items():
        phantoms.write_image(
            folder / f"{number:04d}.dcm", PLANE,
            **{"SOPInstanceUID": f"1.2.826.0.1.77.{number}", **COMMON, **told},
        )  # fmt: skip
    frame = {"frame": lambda group, time: setattr(group, "FrameContentSequence", [phantoms.item(
        FrameComments=f"seen by doctor Wolfsburger {time}")])}  # fmt: skip
    phantoms.write_enhanced(
        folder / "enhanced.dcm", np.zeros((2, 2, 4, 4), np.int16), ["20190304101112"] * 2,
        SOPInstanceUID="1.2.826.0.1.77.99", SeriesInstanceUID="2.25.101", **frame,
    )  # fmt: skip
    return folder


@pytest.fixture
def bundle(small_data_set, tmp_path):
    """Return a sound bundle of three cases."""
    masks = small_data_set / "segmentations/expert"
    done = export_masks(find_data_set(small_data_set), masks, tmp_path / "bundle")
    assert done.problems == ()
    return tmp_path / "bundle"


@pytest.fixture(autouse=True)
def own_place(tmp_path, monkeypatch):
    """Give the command a home, a wide terminal and a folder of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def verify(bundle, source):
    done = mamamia("verify", bundle, "--study", source)
    return done.returncode, done.stdout + done.stderr


def zipped(content=b"", name="a.txt", comment=b""):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
        archive.comment = comment
    return stream.getvalue()


def volume(**fields):
    image = nib.Nifti1Image(np.zeros((2, 2, 2), np.uint8), np.eye(4))
    for name, text in fields.items():
        image.header[name] = text
    return image.to_bytes()


def book(author):
    import openpyxl

    stream, made = io.BytesIO(), openpyxl.Workbook()
    made.properties.creator = author
    made.save(stream)
    return stream.getvalue()


def nrrd(text):
    head = b"NRRD0004\ntype: uint8\ndimension: 1\nsizes: 9\nencoding: gzip\nwho:=" + text
    return head + b"\n\n" + gzip.compress(bytes(9))


NAME, UID, NUMBER = "PatientName", "SOPInstanceUID", "AccessionNumber"
WHO = "MÜLLER^Annegret"
HIDDEN = {
    # of which file of the source
    "sop1.txt": (b"1.2.826.0.1.77.1 ", UID),
    "sop8.txt": (b"of 1.2.826.0.1.77.8, seen", UID),
    "frames.json": (b'{"uid": "1.2.826.0.1.77.99"}', UID),
    "made-of-it.json": (b'{"uid": "1.2.826.0.1.77.6.4.12"}', UID),
    "number.csv": (b"id,acc\n1,acc90317\n", NUMBER),
    "name3.txt": (b"xavierson", NAME),
    "born1.txt": (b"1961-02-03", "PatientBirthDate"),
    "born2.txt": (b"03.02.1961", "PatientBirthDate"),
    "born3.txt": (b"x19610203y", "PatientBirthDate"),
    "day.txt": (b"2019-03-04", "StudyDate"),
    "operator.txt": (b"by Grotz", "OperatorsName"),
    "private.txt": (b"Ada Plimpton", "private element (0029,1001)"),
    "private-un.txt": (b"88776655", "private element (0029,1001)"),
    "private-ob.txt": (b"Quimbleton", "private element (0029,1001)"),
    "private-pn.txt": (b"Larkspur", "private element (0029,1001)"),
    "nested.txt": (b"RP445566", "RequestedProcedureID"),
    "nested-uid.txt": (b"1.2.826.0.1.55.8", "ReferencedSOPInstanceUID"),
    "frame.txt": (b"Seen by Doctor Wolfsburger 1", "FrameComments"),
    # how it is spelt
    "umlaut.txt": ("Anna Müller".encode(), NAME),
    "ascii.txt": (b"Mueller", NAME),
    "latin.txt": ("M\u00fcller".encode("latin-1"), NAME),
    "utf16.txt": ("M\u00fcller".encode("utf-16"), NAME),
    "utf16-bare.txt": ("of M\u00fcller".encode("utf-16-be"), NAME),
    "percent.txt": (quote("Müller").encode(), NAME),
    "base64.json": (b'{"a": "' + base64.b64encode(WHO.encode()) + b'"}', NAME),
    "base64-latin.txt": (base64.b64encode(WHO.encode("latin-1")), NAME),
    "base64-url.txt": (base64.urlsafe_b64encode(b"???Annegret>>>"), NAME),
    "hex.txt": (b"0x" + b"annegret".hex().encode(), NAME),
    # in what it is packed
    "a.gz": (gzip.compress(b"Annegret"), NAME),
    "a.bz2": (bz2.compress(b"Annegret"), NAME),
    "a.xz": (lzma.compress(b"Annegret"), NAME),
    "a.zip": (zipped(b"Annegret"), NAME),
    "inner.zip": (zipped(zipped(name="Annegret.txt")), NAME),
    "comment.zip": (zipped(comment=b"Annegret"), NAME),
    "cp1252.zip": (zipped(name="MXXXer.txt").replace(b"MXXX", b"M\xfcll"), NAME),
    "author.xlsx": (book("Annegret"), NAME),
    "stream.pdf": (b"%PDF-1.4\nstream\n" + zlib.compress(b"(Annegret) Tj") + b"\nendstream", NAME),
    "title.pdf": (b"%PDF-1.4\n\0\1/Title (" + "Annegret".encode("utf-16-be") + b")\n", NAME),
    "key.nrrd": (nrrd(b"Annegret"), NAME),
    "packed.mha": (b"ElementDataFile = LOCAL\n" + zlib.compress(b"Annegret"), NAME),
    "descrip.nii": (volume(descrip="Annegret"), NAME),
    "aux.nii": (volume(aux_file="Annegret"), NAME),
    "db.nii.gz": (gzip.compress(volume(db_name="Annegret")), NAME),
    "intent.nii": (volume(intent_name="Annegret"), NAME),
    "ANNEGRET.txt": (b"", NAME),
    "folder of Annegret/": (b"", NAME),
}
CLEAN = {
    "routine.txt": b"the routine of the breast, PSEUDONYMUS, 1.2.840.10008.5.1.4.1.1.4",
    "longer.txt": b"1.2.826.0.1.77.123, 11.2.826.0.1.77.1, x1.2.826.0.1.771",
    "hash.txt": json.dumps({"sha256": "d0e" * 21 + "1", "of": "von der"}).encode(),
}


def hide(bundle, files):
    for name, content in files.items():
        if name.endswith("/"):
            (bundle / name).mkdir()
        else:
            (bundle / name).write_bytes(content)


def test_what_any_file_of_the_source_tells_is_found_wherever_it_hides(bundle, source):
    code, said = verify(bundle, source)
    assert code == 0, said
    assert "1 of 12 DICOM files in the source state that the patient's identity was removed" in said
    assert "11 other files without that statement" in said
    assert "from the source: none" in said

    hide(bundle, {name: content for name, (content, _) in HIDDEN.items()} | CLEAN)
    (bundle / "sealed.7z").write_bytes(b"7z\xbc\xaf'\x1c" + bytes(40))
    code, said = verify(bundle, source)
    assert code == 3
    lines = [line for line in said.splitlines() if "contains the source's" in line]
    missed = {
        name: element
        for name, (_, element) in HIDDEN.items()
        if not any(_is_of(line, name) and f"source's {element}" in line for line in lines)
    }
    assert missed == {}
    assert [line for line in lines for name in CLEAN if line.startswith(f"wrong: {name}")] == []
    assert "sealed.7z: not searched" in said
    assert "nnegret" not in said.replace(str(bundle), "").lower()


def _is_of(line, name):
    return line.startswith(("wrong: ***", f"wrong: {name}")) and (
        "***" in line or "nnegret" not in name.lower()
    )


@pytest.mark.parametrize("n_removed", [2, 0])
def test_how_many_files_say_that_the_identity_was_removed_is_said(bundle, tmp_path, n_removed):
    """All of a collection do, none of a clinic's."""
    for number in range(2):
        phantoms.write_image(
            tmp_path / f"study/{number}.dcm", PLANE, SOPInstanceUID=f"1.2.826.0.1.77.{number}",
            PatientIdentityRemoved="YES" if number < n_removed else None,
        )  # fmt: skip
    (tmp_path / "study/more.zip").write_bytes(zipped(b"DICOM"))
    code, said = verify(bundle, tmp_path / "study")
    assert code == 0, said
    assert (
        "note: 1 file in the source could not be read, because only DICOM files and volumes are "
        in said
    )
    if n_removed:
        assert "2 of 2 DICOM files in the source state that" in said
        assert "Nothing to search for" in said
    else:
        assert "identity was removed" not in said
        assert (
            "Searched for 4 identifiers (names, numbers, dates, UIDs) from the source: none found"
            in said
        )
