"""Deflated DICOM files: read like any other, and measured before they are inflated."""

import importlib.util
import tracemalloc
import zlib
from pathlib import Path

import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom.headers import read_slices

pytest.importorskip("pydicom")

found = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(found)
found.loader.exec_module(phantoms)

DEFLATED = "1.2.840.10008.1.2.1.99"


def deflated(path, behind=0, keeps_length=True):
    """Write a deflated file by hand (DICOM PS3.5, A.5), with `behind` zeros after its elements."""
    phantoms.write_image(path, phantoms.dce_values(0)[0], syntax=phantoms.EXPLICIT)
    plain = path.read_bytes()
    end = 144 + int.from_bytes(plain[140:144], "little")
    meta = plain[:end].replace(phantoms.EXPLICIT.encode() + b"\0", DEFLATED.encode())
    meta = meta.replace(b"UI\x14\x00" + DEFLATED.encode(), b"UI\x16\x00" + DEFLATED.encode())
    meta = meta[:140] + (len(meta) - 144).to_bytes(4, "little") + meta[144:]
    if not keeps_length:
        meta = meta[:132] + meta[144:]
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(plain[end:])
    for _ in range(behind >> 20):
        packed += packer.compress(bytes(1 << 20))
    path.write_bytes(meta + packed + packer.flush())


def test_a_deflated_file_is_read(tmp_path):
    deflated(tmp_path / "a.dcm")
    (one,) = read_slices(tmp_path / "a.dcm")
    assert one.shape == phantoms.dce_values(0)[0].shape
    assert one.header.transfer_syntax == DEFLATED


def test_a_deflated_bomb_is_refused_in_little_memory(tmp_path):
    deflated(tmp_path / "bomb.dcm", behind=400 << 20)
    assert (tmp_path / "bomb.dcm").stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="more than 100 times its compressed size"):
            read_slices(tmp_path / "bomb.dcm")
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_deflated_files_whose_start_or_end_is_damaged_are_refused(tmp_path):
    deflated(tmp_path / "a.dcm", keeps_length=False)
    with pytest.raises(FormatError, match="has no length"):
        read_slices(tmp_path / "a.dcm")
    deflated(tmp_path / "b.dcm")
    data = bytearray((tmp_path / "b.dcm").read_bytes())
    data[-40:] = b"\xff" * 40
    (tmp_path / "b.dcm").write_bytes(bytes(data))
    with pytest.raises(FormatError):
        read_slices(tmp_path / "b.dcm")
