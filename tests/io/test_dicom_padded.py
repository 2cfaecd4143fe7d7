"""Elements without end: what goes on the same costs nothing, whatever its length."""

import importlib.util
import struct
from pathlib import Path

import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom.elements import open_dicom
from napari_mamamia.io.dicom.headers import read_slices

pydicom = pytest.importorskip("pydicom")

found = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(found)
found.loader.exec_module(phantoms)

MB = 1 << 20
EMPTY_ITEM = b"\xfe\xff\x00\xe0\0\0\0\0"
ITEM = b"\xfe\xff\x00\xe0\xff\xff\xff\xff"
PIXELS = b"\xe0\x7f\x10\x00"
SERIES = b"\x20\x00\x0d\x00"


def sequence(explicit):
    return b"\x08\x00\x40\x11" + (b"SQ\0\0" if explicit else b"") + b"\xff" * 4


@pytest.fixture(params=["explicit", "implicit"])
def image(request, tmp_path):
    path = tmp_path / "a.dcm"
    explicit = request.param == "explicit"
    syntax = phantoms.EXPLICIT if explicit else pydicom.uid.ImplicitVRLittleEndian
    phantoms.write_image(path, phantoms.dce_values(0)[0], syntax=syntax)
    return path, path.read_bytes(), explicit


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """Return how many reads pydicom asked for: time on a busy computer says nothing."""
    from napari_mamamia.io.dicom import elements

    reads = []
    plain = elements._PaddedStream.read

    def read(self, size=-1):
        reads.append(size)
        return plain(self, size)

    monkeypatch.setattr(elements._PaddedStream, "read", read)
    yield reads
    assert len(reads) < 20_000


def after_the_image(whole, explicit):
    return whole + bytes(8 * MB)


def in_place_of_the_pixels(whole, explicit):
    return whole[: whole.index(PIXELS)] + bytes(8 * MB)


def in_the_middle(whole, explicit):
    return whole[: whole.index(SERIES)] + bytes(8 * MB)


def in_an_item(whole, explicit):
    return whole[: whole.index(SERIES)] + sequence(explicit) + ITEM + bytes(8 * MB)


def in_place_of_items(whole, explicit):
    return whole[: whole.index(SERIES)] + sequence(explicit) + bytes(8 * MB)


def empty_items(whole, explicit):
    return whole[: whole.index(SERIES)] + sequence(explicit) + EMPTY_ITEM * MB


def one_element_again(whole, explicit):
    element = struct.pack("<HH", 8, 0x18) + (b"UI\0\0" if explicit else bytes(4))
    return whole[: whole.index(SERIES)] + element * MB


def odd_place(whole, explicit):
    return whole + b"\1\2\3" + bytes(8 * MB)


def all_bits(whole, explicit):
    return whole[: whole.index(SERIES)] + b"\xff" * 8 * MB


def deep(whole, explicit):
    return whole[: whole.index(SERIES)] + (sequence(explicit) + ITEM) * 100_000


DAMAGES = (
    in_place_of_the_pixels, in_the_middle, in_an_item, in_place_of_items, empty_items,
    one_element_again, all_bits, deep,
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_goes_on_the_same_is_refused_after_few_reads(image, damage):
    path, whole, explicit = image
    path.write_bytes(damage(whole, explicit))
    try:
        reason = read_slices(path).reason
    except FormatError as error:
        reason = str(error)
    assert str(path) in reason


@pytest.mark.parametrize("damage", [after_the_image, odd_place])
def test_what_lies_behind_a_whole_image_changes_nothing(image, damage):
    path, whole, explicit = image
    (plain,) = read_slices(path)
    values = open_dicom(path, path).PixelData
    path.write_bytes(damage(whole, explicit))
    (padded,) = read_slices(path)
    assert (padded.header.plain_at, padded.shape) == (plain.header.plain_at, plain.shape)
    assert open_dicom(path, path).PixelData == values


def test_zeros_that_are_values_are_read(tmp_path):
    """Thousands of numbers of eight zero bytes, and a blank image."""
    path = tmp_path / "a.dcm"
    phantoms.write_image(path, phantoms.dce_values(0)[0] * 0)
    data_set = pydicom.dcmread(path)
    items = []
    for number in range(300):
        item = pydicom.Dataset()
        item.add_new(0x00189087, "FD", 0.0)
        item.add_new(0x00189089, "FD", [0.0] * 20)
        item.add_new(0x00189105, "FD", float(number))
        items.append(item)
    data_set.add_new(0x00185104, "SQ", items)
    data_set.save_as(path)
    again = open_dicom(path, path)
    assert [item[0x00189105].value for item in again[0x00185104]] == list(range(300))
    assert again.PixelData == data_set.PixelData
