"""What tells a patient is found wherever it hides, and is not seen where it is not."""

import base64
import bz2
import gzip
import importlib.util
import io
import json
import lzma
import sys
import zipfile
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom.persons import find_identifiers
from napari_mamamia.io.privacy.identifier_search import search_file
from napari_mamamia.io.privacy.identifiers import Identifier, folded, signs_of, without_signs

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

NAME = Identifier("PatientName", "MÜLLER-Doe^Zoë", "name")
SIGNS = signs_of(
    (
        NAME,
        Identifier("PatientID", "QX-778812", "id"),
        Identifier("PatientBirthDate", "19700131", "date"),
        Identifier("InstitutionName", "Falkenstein University Hospital", "place"),
        Identifier("StudyInstanceUID", "1.2.826.0.1.777", "uid"),
    )
)


def told(text, signs=SIGNS):
    return sorted({sign.element for sign in signs if sign.is_in(folded(text))})


@pytest.mark.parametrize(
    "text",
    [
        "zoe.nii.gz", "the DOE case", "Muller", "mueller", "M\\u00fcller", "M&uuml;ller", "DOE_ZOE",
        "DoeZoe", "M%C3%BCller", "doe2", "MU\u0308LLER",
    ],
)  # fmt: skip
def test_a_name_is_found_in_each_of_its_spellings(text):
    assert told(text) == ["PatientName"]


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ("qx778812", "PatientID"),
        ("QX_778812_0001", "PatientID"),
        ("no 778812.", "PatientID"),
        ("1970-01-31", "PatientBirthDate"),
        ("31.01.1970", "PatientBirthDate"),
        ("01/31/1970", "PatientBirthDate"),
        ("19700131", "PatientBirthDate"),
        ("1970/1/31", "PatientBirthDate"),
        ("31.1.1970", "PatientBirthDate"),
        ("1/31/1970", "PatientBirthDate"),
        ("born 31-JAN-1970", "PatientBirthDate"),
        ("January 31, 1970", "PatientBirthDate"),
        ("31. Januar 1970", "PatientBirthDate"),
        ("1970-01-31T00:00:00+00:00", "PatientBirthDate"),
        ("FALKENSTEIN", "InstitutionName"),
        ("1.2.826.0.1.777.4.12", "StudyInstanceUID"),
    ],
)
def test_numbers_dates_places_and_uids_are_found_in_their_parts(text, element):
    assert told(text) == [element]


@pytest.mark.parametrize(
    "text",
    [
        "does", "doenst", "0.778812", "1778812", "1970", "University Hospital", "QX", "2.826.0.1",
        "MR 1 green", "9af778812bc", "119700131", "11.2.826.0.1.777", "1311970", "31 1 970",
        "1970-31-01-2", "31.11.1970", "2.31.01.1970",
    ],
)  # fmt: skip
def test_what_tells_nobody_is_no_hit(text):
    assert told(text) == []


def test_the_day_of_the_exam_is_found_but_not_in_the_time_at_which_a_mask_was_made():
    signs = signs_of([Identifier("StudyDate", "20190304", "exam")])
    for text in ("20190304", "2019-03-04", "04.03.2019", "3/4/2019", "4 March 2019"):
        assert told(text, signs) == ["StudyDate"], text
    assert told("2019-03-04T10:11:12+00:00", signs) == []
    assert told("2019-03-04T10:11:12", signs) == ["StudyDate"]


@pytest.mark.parametrize("text", ["", "0", "00000000", "18000101", "20191304", "20190432", "2019"])
def test_what_is_no_day_is_no_sign(text):
    assert signs_of([Identifier("StudyDate", text, "exam")]) == ()


def test_each_sentence_of_a_comment_is_searched_for_as_a_whole():
    signs = signs_of(
        [Identifier("PatientComments", "Seen with Quimby; ok.\nFell off a horse", "text")]
    )
    assert (
        told("SEEN_WITH  quimby", signs) == told("fell off a horse", signs) == ["PatientComments"]
    )
    assert told("seen with others, ok", signs) == []


@pytest.mark.parametrize(
    ("description", "is_told"), [("Breast of Doe, left", True), ("Breast MRI bilateral", False)]
)
def test_a_description_counts_if_it_holds_a_word_of_the_patient(tmp_path, description, is_told):
    phantoms.write_image(
        tmp_path / "1.dcm", np.zeros((4, 4), np.int16), SOPInstanceUID="2.25.1",
        SeriesInstanceUID="2.25.2", PatientName="Doe^Zoe", StudyDescription=description,
        AcquisitionDateTime="20190304101112.5",
    )  # fmt: skip
    found = find_identifiers([tmp_path / "1.dcm"]).identifiers
    assert ("StudyDescription" in {one.element for one in found}) == is_told
    assert told("4.3.2019", signs_of(found)) == ["AcquisitionDateTime"]


def test_a_surname_that_is_a_word_of_every_bundle_counts_beside_the_first_name_only():
    signs = signs_of((Identifier("PatientName", "GREEN^AMY", "name"),))
    assert told("quality: green", signs) == []
    assert told("Green, Amy", signs) == told("amygreen", signs) == ["PatientName"]


def test_short_numbers_and_words_for_nobody_are_no_signs():
    short = ("1", "MR", "4711", "ANON", "PATIENT")
    assert signs_of(Identifier("PatientID", text, "id") for text in short) == ()


def test_a_sentence_for_the_user_names_nobody():
    shown = without_signs("images/Doe_Zoe.nii.gz: missing, not 5 files", SIGNS)
    assert shown == "images/***: missing, not 5 files"
    assert without_signs("CASE_1.json: missing", SIGNS) == "CASE_1.json: missing"


@pytest.mark.parametrize(("said", "n_found"), [(None, 0), ("NO", 1)])
def test_the_pseudonym_of_a_collection_is_no_name_in_what_was_made_of_it(tmp_path, said, n_found):
    """ISPY1_1002: images say that the identity was removed, UCSF's segmentations say nothing."""
    for number, removed in (("1", "YES"), ("2", said)):
        phantoms.write_image(
            tmp_path / f"{number}.dcm", np.zeros((4, 4), np.int16), SOPInstanceUID="2.25.1",
            SeriesInstanceUID=f"2.25.{number}", PatientName="ISPY1_1002",
            PatientIdentityRemoved=removed,
        )  # fmt: skip
    found = find_identifiers(sorted(tmp_path.iterdir()))
    assert sum(one.element == "PatientName" for one in found.identifiers) == n_found


def zipped(content, name="a.txt", comment=b""):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
        archive.comment = comment
    return stream.getvalue()


def volume(voxels, *, descrip="", extension=b""):
    image = nib.Nifti1Image(voxels, np.eye(4))
    image.header["descrip"] = descrip
    if extension:
        image.header.extensions.append(nib.nifti1.Nifti1Extension("comment", extension))
    return image.to_bytes()


def parquet(column):
    import pyarrow
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(column), stream, compression="snappy")
    return stream.getvalue()


def picture(**texts):
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    info, stream = PngInfo(), io.BytesIO()
    for name, text in texts.items():
        info.add_text(name, text, zip=True)
    Image.new("L", (3, 3)).save(stream, "png", pnginfo=info)
    return stream.getvalue()


def spelt(text):
    """Return voxels that are the bytes of a text, deep in a volume of zeros."""
    voxels = np.zeros(9_000_000, np.uint8)
    voxels[8_388_600 : 8_388_600 + len(text)] = np.frombuffer(text, np.uint8)
    return voxels.reshape((300, 300, 100), order="F")


HIDDEN = {
    "plain.txt": b"of Doe",
    "escaped.json": json.dumps({"who": "MÜLLER"}).encode(),
    "latin.csv": "id;M\u00dcLLER".encode("latin-1"),
    "wide.txt": "of Doe".encode("utf-16"),
    "packed.gz": gzip.compress(b"Doe"),
    "named.gz": b"\x1f\x8b\x08\x08" + bytes(6) + b"doe.nii\0" + gzip.compress(b"x" * 400)[10:],
    "twice.zip": zipped(gzip.compress(zipped(b"Doe"))),
    "member.zip": zipped(b"", name="doe/zoe.txt"),
    "comment.zip": zipped(b"", comment=b"doe"),
    "book.xlsx": zipped(b"<v>Doe</v>", name="xl/sharedStrings.xml"),
    "table.parquet": parquet({"id": ["A", "Doe"]}),
    "header.nii": volume(np.zeros((2, 2, 2), np.uint8), descrip="doe"),
    "extension.nii.gz": gzip.compress(volume(np.zeros((2, 2, 2), np.uint8), extension=b"doe")),
    "voxels.nii.gz": gzip.compress(volume(spelt(b"Muellers")), 1),
    "thumb.png": picture(Comment="by Doe " * 9),
    "report.html": b"<img src='data:image/png;base64," + base64.b64encode(picture(A="Doe")) + b"'>",
    "state.bin": bytes(range(32)) + b"\0\x01Doe \0" + bytes(400),
}


@pytest.mark.parametrize("name", sorted(HIDDEN))
def test_a_name_is_found_wherever_it_hides(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(HIDDEN[name])
    assert search_file(path, signs_of((NAME,))) == ("PatientName",)


def test_files_without_the_name_are_clean(tmp_path):
    clean = {
        "mask.nii.gz": gzip.compress(volume(np.full((50, 50, 50), 68, np.uint8))),
        "chance.nii.gz": gzip.compress(volume(spelt(b" doe ")), 1),
        "hash.json": json.dumps({"sha256": "d0e" * 20, "doer": 1}).encode(),
        "report.html": b"<img src='data:image/png;base64," + base64.b64encode(picture(A="b")),
        "empty.txt": b"",
    }
    for name, content in clean.items():
        (tmp_path / name).write_bytes(content)
        assert search_file(tmp_path / name, SIGNS) == (), name


def test_a_file_that_cannot_be_unpacked_is_said_and_not_passed(tmp_path):
    path = tmp_path / "cut.nii.gz"
    path.write_bytes(gzip.compress(b"x" * 5000)[:-20])
    with pytest.raises(FormatError, match=r"cut\.nii\.gz"):
        search_file(path, SIGNS)


def test_a_parquet_table_without_pyarrow_is_said_and_not_passed(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    path.write_bytes(HIDDEN["table.parquet"])
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(FormatError, match=r"napari-mamamia\[parquet\]"):
        search_file(path, SIGNS)


@pytest.mark.parametrize("hidden", [b"", b"  acc00000771", b"zzACC00000771zz"])
def test_thousands_of_numbers_and_uids_are_found_as_a_slow_search_finds_them(tmp_path, hidden):
    """Of a study whose files differ; in voxels and in text, each in one pass."""
    numbers = [Identifier("AccessionNumber", f"ACC{7 * n:08d}", "id") for n in range(3000)]
    uids = [Identifier("SOPInstanceUID", f"1.2.826.0.1.77.{7 * n}", "uid") for n in range(3000)]
    signs = signs_of((*numbers, *uids))
    assert len(signs) == 2
    (tmp_path / "v.nii").write_bytes(volume(spelt(hidden)))
    text = f"{hidden.decode()} 1.2.826.0.1.77.{7 if hidden else 8}"
    (tmp_path / "t.txt").write_text(text)
    slow = any(one.text.lower().encode() in hidden.lower() for one in numbers)
    found = search_file(tmp_path / "v.nii", signs)
    assert found == (("AccessionNumber",) if slow else ())
    found = search_file(tmp_path / "t.txt", signs)
    assert ("SOPInstanceUID" in found) == bool(hidden)
    is_word = slow and not hidden.startswith(b"zz")  # in a text a number is a word of its own
    assert ("AccessionNumber" in found) == is_word


def write_packed(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


NOTE = b"note: Jane DOE"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_follows_the_packed_part_of_a_file_is_searched(tmp_path, pack):
    inside = pack(b"x" * 50)
    assert search_file(write_packed(tmp_path, "plain", inside), SIGNS) == ()
    assert search_file(write_packed(tmp_path, "zeros", inside + bytes(20)), SIGNS) == ()
    for name, content in {
        "after": inside + NOTE,
        "after_zeros": inside + bytes(600) + NOTE,
        "second_part": inside + pack(NOTE),
        "after_two": inside + pack(b"y") + NOTE,
    }.items():
        assert search_file(write_packed(tmp_path, name, content), SIGNS) == ("PatientName",), name


def test_a_long_name_in_the_head_of_gzip_is_read_to_its_end(tmp_path):
    packed = io.BytesIO()
    with gzip.GzipFile("a" * 70_000 + " doe ", "wb", fileobj=packed) as stream:
        stream.write(b"x")
    assert search_file(write_packed(tmp_path, "a.gz", packed.getvalue()), SIGNS) == ("PatientName",)


def test_what_follows_is_told_once_and_a_packed_zip_is_looked_into(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("one.txt", NOTE)
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        path = write_packed(tmp_path, "inner", pack(packed.getvalue()))
        assert search_file(path, SIGNS) == ("PatientName",)


def test_a_file_that_ends_within_what_is_packed_is_refused(tmp_path):
    for number, pack in enumerate((gzip.compress, bz2.compress, lzma.compress)):
        cut = pack(bytes(range(256)) * 40)[:-9]
        with pytest.raises(FormatError, match="ends within compressed data"):
            search_file(write_packed(tmp_path, f"cut_{number}", cut), SIGNS)


def test_what_lies_in_a_zip_beside_its_members_is_searched(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("one.txt", "x" * 50)
        archive.writestr("two.txt", "y" * 50)
    whole = packed.getvalue()
    assert search_file(write_packed(tmp_path, "whole.zip", whole), SIGNS) == ()
    after = write_packed(tmp_path, "after.zip", whole + NOTE)
    assert search_file(after, SIGNS) == ("PatientName",)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        second, directory = archive.infolist()[1].header_offset, archive.start_dir
    gap = bytearray(whole[:second] + NOTE + whole[second:])
    end = gap.rindex(b"PK\5\6")
    gap[end + 16 : end + 20] = (directory + len(NOTE)).to_bytes(4, "little")
    entry = gap.rindex(b"PK\1\2")
    gap[entry + 42 : entry + 46] = (second + len(NOTE)).to_bytes(4, "little")
    with zipfile.ZipFile(io.BytesIO(bytes(gap))) as archive:
        assert archive.read("two.txt") == b"y" * 50
    assert search_file(write_packed(tmp_path, "gap.zip", bytes(gap)), SIGNS) == ("PatientName",)
