"""Stored values of DICOM planes, whatever bits they stand in: pydicom is the judge."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pydicom = pytest.importorskip("pydicom")

from pydicom.pixels.utils import pixel_array  # noqa: E402 - after the skip

from napari_mamamia.io.dicom.headers import read_slices  # noqa: E402
from napari_mamamia.io.dicom.pixels import read_plane  # noqa: E402
from napari_mamamia.io.dicom.slices import BadImage  # noqa: E402

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

SYNTAXES = (phantoms.IMPLICIT, phantoms.EXPLICIT, phantoms.BIG_ENDIAN)
BITS = [(8, 8), (8, 7), (8, 5), (16, 16), (16, 15), (16, 12), (16, 8), (32, 32), (32, 24), (32, 12)]


def anything(allocated, shape=(5, 7)):
    """Return words whose every bit is as likely set, those above the value too."""
    made = np.random.default_rng(allocated).integers(0, 2**allocated, shape, dtype=np.uint64)
    return made.astype(f"u{allocated // 8}")


def overlay_at(bit):
    """Return what names an overlay in the bits from `bit` on, where anything may stand."""
    return lambda image, *_: image.add_new((0x6000, 0x0102), "US", bit)


def by_hand(words, stored, is_signed):
    """Return the lowest bits of each word, the highest of them the sign (DICOM PS3.5, 8.1.1)."""
    values = words.astype(np.int64) & (2**stored - 1)
    return (
        np.where(values >= 2 ** (stored - 1), values - 2**stored, values) if is_signed else values
    )


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize(("allocated", "stored"), BITS)
def test_a_plane_has_the_values_that_pydicom_finds(tmp_path, allocated, stored, syntax, is_signed):
    words = anything(allocated)  # 35 of them: of one byte each a padding byte follows
    path = tmp_path / "plane.dcm"
    phantoms.write_image(
        path, words, syntax=syntax, BitsStored=stored, HighBit=stored - 1,
        PixelRepresentation=int(is_signed), then=overlay_at(stored),
    )  # fmt: skip
    (plane,) = read_slices(path)
    seen = read_plane(plane)
    np.testing.assert_array_equal(seen, pixel_array(path))
    if (allocated, syntax) != (8, phantoms.BIG_ENDIAN):  # there bytes change places in words
        np.testing.assert_array_equal(seen, by_hand(words, stored, is_signed))


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize(("allocated", "stored"), [(8, 7), (16, 12), (16, 16)])
def test_each_frame_of_an_enhanced_file_has_the_values_that_pydicom_finds(
    tmp_path, allocated, stored, is_signed
):
    words = anything(allocated, (2, 3, 5, 7))
    path = tmp_path / "all.dcm"
    phantoms.write_enhanced(
        path, words, ["20200101100000", "20200101100130"], BitsStored=stored, HighBit=stored - 1,
        PixelRepresentation=int(is_signed), then=overlay_at(stored),
    )  # fmt: skip
    planes = np.stack([read_plane(piece) for piece in read_slices(path)])
    np.testing.assert_array_equal(planes, pixel_array(path))


def test_an_overlay_in_the_high_bits_is_no_part_of_the_values(tmp_path):
    values = np.arange(35, dtype=np.uint16).reshape(5, 7)
    path = tmp_path / "overlay.dcm"
    overlay = {"OverlayRows": 5, "OverlayColumns": 7, "OverlayBitPosition": 12}

    def add(image):
        for number, name in ((0x0010, "OverlayRows"), (0x0011, "OverlayColumns")):
            image.add_new((0x6000, number), "US", overlay[name])
        image.add_new((0x6000, 0x0100), "US", 16)
        image.add_new((0x6000, 0x0102), "US", overlay["OverlayBitPosition"])

    phantoms.write_image(path, values | 0x1000, BitsStored=12, HighBit=11, then=add)
    np.testing.assert_array_equal(read_plane(read_slices(path)[0]), values)


@pytest.mark.parametrize(("stored", "high"), [(12, 15), (17, 16), (0, -1 % 65536), (16, 14)])
def test_values_that_stand_elsewhere_than_dicom_allows_are_refused(tmp_path, stored, high):
    """pydicom takes the lowest bits whatever HighBit says: nobody knows which of the two lies."""
    path = tmp_path / "odd.dcm"
    phantoms.write_image(path, anything(16), BitsStored=stored, HighBit=high)
    found = read_slices(path)
    assert isinstance(found, BadImage)
    assert "HighBit" in found.reason
