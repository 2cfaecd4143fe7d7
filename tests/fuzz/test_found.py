"""The crashes that were found from outside, each as a file built anew: an error that names it."""

import importlib.util
import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.data_set.bundle import read_manifest
from napari_mamamia.io.data_set.patient_info import read_patient_info, read_times_file
from napari_mamamia.io.dicom.facts import remapped_uid, user_secret
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.exam.study import imported_study
from napari_mamamia.io.files.append_file import ChainedLines
from napari_mamamia.io.tables.spreadsheets import write_sheet
from napari_mamamia.io.workspace.journal import Damage, scan_journal
from napari_mamamia.io.workspace.protocol import read_protocol
from napari_mamamia.services.dicom.finding import look_into
from napari_mamamia.services.export.verify import verify_bundle


def _module(place: str):
    spec = importlib.util.spec_from_file_location(
        Path(place).stem, Path(__file__).parents[1] / place
    )
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


phantoms, mutations = _module("dicom_phantoms.py"), _module("fuzz/mutations.py")

SOP_CLASS = b"\x08\x00\x16\x00UI"
ROWS = b"\x28\x00\x10\x00US"
HUGE = "9" * 400


def multi_valued(data: bytes) -> bytes:
    """Name the class of the object twice, with a backslash between."""
    at = data.index(SOP_CLASS)
    (length,) = struct.unpack_from("<H", data, at + 6)
    value = data[at + 8 : at + 8 + length].rstrip(b"\0")
    twice = value + b"\\" + value
    twice += b"\0" * (len(twice) % 2)
    return data[: at + 6] + struct.pack("<H", len(twice)) + twice + data[at + 8 + length :]


def wrong_length(data: bytes) -> bytes:
    """Say of Rows, a number of two bytes, that it has three."""
    at = data.index(ROWS)
    return data[: at + 6] + struct.pack("<H", 3) + data[at + 8 :]


def unknown_kind(data: bytes) -> bytes:
    return data.replace(SOP_CLASS, SOP_CLASS[:4] + b"ZZ", 1)


def negative_rows(data: bytes) -> bytes:
    at = data.index(ROWS)
    return data[: at + 4] + b"SS" + struct.pack("<Hh", 2, -1) + data[at + 10 :]


def deep(data: bytes) -> bytes:
    """Put 5,000 nested sequences in front of Rows."""
    at = data.index(ROWS)
    return data[:at] + mutations.nested_sequences(5000, b"\x20\x00\x16\x91") + data[at:]


HOSTILE = (multi_valued, wrong_length, unknown_kind, negative_rows, deep)


@pytest.mark.parametrize("damage", HOSTILE, ids=lambda damage: damage.__name__)
def test_a_hostile_dicom_file_is_refused_by_name_and_the_other_study_is_found(damage, tmp_path):
    phantoms.write_exam(_made(tmp_path / "good"), 2)
    phantoms.write_exam(_made(tmp_path / "bad"), 2, StudyInstanceUID="2.25.2")
    victim = tmp_path / "bad" / "IM_0_002.dcm"
    victim.write_bytes(damage(victim.read_bytes()))
    said = told(read_slices, victim)
    assert str(victim) in (said or read_slices(victim).reason)
    bad, good = sorted(look_into(tmp_path), key=lambda study: study.case_id)
    assert (good.problem, len(good.exam.stacks)) == ("", 2)
    assert bad.exam is None
    assert victim.name in bad.problem


def told(read, path) -> str:
    """Return what a reader says against a file, "" where it accepts it."""
    try:
        read(path)
    except MamamiaError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def workbook(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "clinical.xlsx"
    rows = [
        ["patient_id", "age", "pcr"],
        *([f"DUKE_{n:03d}", 40 + n % 30, n % 2] for n in range(40)),
    ]
    write_sheet(rows, path, name="dataset_info")
    return path.read_bytes()


def test_a_clinical_workbook_with_any_bit_flipped_is_read_or_refused(workbook, tmp_path):
    """123 of 400 such files ended with zlib.error and others."""
    path = tmp_path / "clinical.xlsx"
    rng = np.random.default_rng(3)
    refused = 0
    for at in rng.integers(0, 8 * len(workbook), 150):
        data = bytearray(workbook)
        data[at // 8] ^= 1 << int(at % 8)
        path.write_bytes(data)
        said = told(read_clinical, path)
        assert not said or str(path) in said
        refused += bool(said)
    assert refused > 20


def test_a_small_workbook_that_unpacks_to_much_is_refused_before_it_is_unpacked(workbook, tmp_path):
    """A file of 330 kB took 3.7 GB."""
    cells = b'<row><c r="XFD1" t="n"><v>1</v></c></row>' * 800_000
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as old, zipfile.ZipFile(out, "w") as new:
        for part in old.infolist():
            content = old.read(part)
            if part.filename == "xl/worksheets/sheet1.xml":
                content = content.replace(b"<sheetData>", b"<sheetData>" + cells)
            new.writestr(part, content, zipfile.ZIP_DEFLATED)
    path = tmp_path / "small.xlsx"
    path.write_bytes(out.getvalue())
    assert len(out.getvalue()) < 330_000
    with pytest.raises(FormatError, match=r"small\.xlsx.*unpacks to \d+ times its size"):
        read_clinical(path)


def test_cells_far_to_the_right_are_counted_with_the_empty_ones_before_them(workbook, tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as old, zipfile.ZipFile(out, "w") as new:
        for part in old.infolist():
            content = old.read(part)
            if part.filename == "xl/worksheets/sheet1.xml":
                far = b"".join(
                    b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (n, n) for n in range(50, 400)
                )
                content = content.replace(b"</sheetData>", far + b"</sheetData>")
            new.writestr(part.filename, content)
    path = tmp_path / "wide.xlsx"
    path.write_bytes(out.getvalue())
    with pytest.raises(FormatError, match="too many rows or empty cells"):
        read_clinical(path)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_times_file, '{"case_id": "A", "times_s": [0, HUGE]}'),
        (read_patient_info, '{"imaging_data": {"acquisition_times": [0, HUGE]}}'),
        (read_patient_info, '{"primary_lesion": {"breast_coordinates": {"x_min": HUGE}}}'),
        (read_protocol, '{"name": "x", "time_limit_s": HUGE}'),
        (read_protocol, '{"name": "x", "brush": {"radius_mm": HUGE}}'),
    ],
)
def test_an_integer_of_hundreds_of_digits_is_refused_with_the_file(read, text, tmp_path):
    path = tmp_path / "file.json"
    path.write_text(text.replace("HUGE", HUGE))
    with pytest.raises(FormatError, match=r"file\.json.*400 digits"):
        read(path)


def test_times_in_a_text_are_left_aside_where_they_are_no_numbers_of_this_world(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"imaging_data": {"acquisition_times": f"[0, {HUGE}]"}}))
    assert read_patient_info(path).acquisition_times_s is None


def test_a_journal_line_with_a_huge_number_is_damage_not_a_crash(tmp_path):
    """The checksum fits: it is no secret."""
    entry = b'{"at":"2026","kind":"saved","sha256":"ab","labels_crc":' + HUGE.encode() + b"}"
    path = tmp_path / "A.journal"
    with ChainedLines(path) as lines:
        lines.add(entry)
    (item,) = scan_journal(path)
    assert isinstance(item, Damage)


MANIFEST = {
    "manifest_version": 1,
    "software": "s",
    "created": "c",
    "data_set": "d",
    "profile": "p",
    "formats": [],
    "masks": [],
    "labels": [],
    "cases": [],
    "notes": [],
    "files": [
        {
            "name": "a",
            "kind": "mask",
            "sha256": "",
            "n_bytes": 1,
            "case_id": "",
            "masks": "",
            "place": {
                "shape": [2, 2, 2],
                "affine": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
                "orientation": "RAS",
            },
        }
    ],
}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"n_bytes": 1', '"n_bytes": 1e999'),
        ('"n_bytes": 1', f'"n_bytes": {HUGE}'),
        ("[0, 1, 0, 0]", "[0, 1]"),
        ("[1, 0, 0, 0]", "[NaN, 0, 0, 0]"),
        ('"shape": [2, 2, 2]', '"shape": [2, -2, 2]'),
        ('"notes": []', '"notes": ' + "[" * 3000 + "]" * 3000),
    ],
)
def test_verify_tells_a_damaged_manifest_as_a_problem(old, new, tmp_path):
    text = json.dumps(MANIFEST)
    path = tmp_path / "manifest.json"
    path.write_text(text)
    assert read_manifest(tmp_path).files[0].name == "a"
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    (problem,) = verify_bundle(tmp_path).problems
    assert str(path) in problem


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("kind", [b"QI", b"FD"])
def test_a_study_whose_uid_is_of_no_kind_is_passed_over_when_a_case_looks_for_its_own(
    tmp_path, kind
):
    for name, uid in (("a", "2.25.4"), ("b", "2.25.425")):
        phantoms.write_exam(tmp_path / name, 1, StudyInstanceUID=uid)
    for file in (tmp_path / "a").iterdir():
        head = b"\x20\x00\x0d\x00"
        file.write_bytes(file.read_bytes().replace(head + b"UI", head + kind))
    wanted = remapped_uid("2.25.425", user_secret())
    assert imported_study(tmp_path, wanted) == tmp_path / "b"
