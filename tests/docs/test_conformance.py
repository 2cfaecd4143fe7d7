"""The DICOM conformance statement: written files, readable syntaxes and codes are those listed."""

import re
from pathlib import Path

import pydicom
import pytest
from pydicom.datadict import tag_for_keyword
from pydicom.pixels.decoders.base import get_decoder
from pydicom.uid import AllTransferSyntaxes, ExplicitVRLittleEndian
from tests.cli.warm_program import mamamia

import napari_mamamia as mm
from napari_mamamia.io.dicom import headers
from napari_mamamia.io.seg.codes import SEGMENT_CODES

LABEL_MAP = "1.2.840.10008.5.1.4.1.1.66.7"
"""Label Map Segmentation Storage, which pydicom 3.0 does not know by name."""

PAGE = (Path(__file__).parents[2] / "docs" / "dicom_conformance.md").read_text("utf-8")


def rows_below(heading):
    """Return the cells of all table rows between a heading and the next one."""
    text = re.search(rf"(?ms)^##+ {heading}\n(.*?)(?=^## |^### |\Z)", PAGE).group(1)
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:1] == "|"]
    return [row for row in rows if set(row[0]) - set("-|")]


def attributes_below(heading):
    """Return the attributes of a table, and those of them that a file may lack."""
    names = {name for row in rows_below(heading) for name in row[0].split(", ")}
    optional = {name.removesuffix(" (optional)") for name in names if name.endswith(" (optional)")}
    return {name for name in names if tag_for_keyword(name)} | optional, optional


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """SEG, SR and KO of a phantom study, made as a user makes them."""
    folder = tmp_path_factory.mktemp("conformance")
    study = mm.make_phantom_study(folder / "study", shape=(12, 40, 60))
    data = folder / "data"
    masks, report = folder / "masks", folder / "report"
    for words in (
        ("import", study, "--out", data, "--case", "P"),
        ("predict", data, "--model", "kinetic", "--out", masks),
        ("report", data, "--masks", masks, "--dicom", "--study", study, "--out", report),
    ):
        done = mamamia(*words, has_figures=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return {
        path.stem[-3:].strip("_"): pydicom.dcmread(path)
        for path in (report / "dicom").glob("*.dcm")
    }


@pytest.mark.night  # the three commands take half a minute
@pytest.mark.parametrize(
    ("kind", "heading", "name"),
    [
        ("seg", "Segmentation", "Segmentation Storage"),
        ("sr", "Structured report", "Comprehensive 3D SR Storage"),
        ("ko", "Key objects", "Key Object Selection Document Storage"),
    ],
)
def test_a_written_object_has_the_attributes_of_its_table_and_no_others(
    kind, heading, name, written
):
    made = written[kind]
    (of_all, _), (own, optional) = map(
        attributes_below, ("Attributes of all written objects", heading)
    )
    keywords = {element.keyword for element in made}
    assert keywords | optional == of_all | own | {"SOPClassUID"}
    assert made.SOPClassUID.name == name
    assert made.file_meta.TransferSyntaxUID == ExplicitVRLittleEndian


def test_each_uid_has_the_name_of_the_standard_and_each_attribute_exists():
    for name, uid, *_ in rows_below("Overview")[1:] + rows_below("Transfer syntaxes")[1:]:
        assert pydicom.uid.UID(uid).name == name or uid == LABEL_MAP
    read = [row[0] for row in rows_below("MR images that are read") if row[0] != "attribute"]
    keywords = {name for names in read for name in names.split(", ")}
    assert len(keywords) > 30
    assert [name for name in keywords if tag_for_keyword(name) is None] == []


def test_the_import_reads_the_classes_and_the_transfer_syntaxes_of_the_page():
    classes = {row[1] for row in rows_below("Overview")[1:] if row[0].endswith("MR Image Storage")}
    assert classes == {headers._MR, *headers._ENHANCED_MR}
    listed = {row[1] for row in rows_below("Transfer syntaxes")[1:]}
    assert listed == {str(uid) for uid in AllTransferSyntaxes if _is_decoded(uid)}


def _is_decoded(uid):
    try:
        return get_decoder(uid).is_available
    except NotImplementedError:
        return False


def test_the_codes_of_the_labels_are_those_of_the_program():
    listed = {
        label: tuple(tuple(code.split(" ", 2)) for code in row[1:])
        for row in rows_below("Segmentation")
        if row[0] in (*SEGMENT_CODES, "tumour, tumor")
        for label in row[0].split(", ")
    }
    assert listed == dict(SEGMENT_CODES)
