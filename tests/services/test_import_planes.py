"""A phase read part by part is the phase, whatever its size, type and kind of file."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Cancelled
from napari_mamamia.io.data_set.imported_case import upright
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.exam.exam import find_exam
from napari_mamamia.io.exam.looks import blank_tails
from napari_mamamia.services.dicom.dicom import PhasePlanes

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

N_PLANES = 19  # two parts of 8 planes, and one of 3


def go_on(_):
    """Let the reading go on."""


def phase_of(folder, dtype, **elements):
    """Return values of a phase that was written, and what reads it."""
    values = np.random.default_rng(5).integers(0, 900, (N_PLANES, 16, 20)).astype(np.int16)
    values[3, 9:] = 0
    values[17, 4:] = 7
    phantoms.write_phase(folder, 0, values=values, **elements)
    images = [read_slices(path) for path in sorted(folder.iterdir())]
    exam = find_exam(images, "exam")
    grid, turn = upright(exam.grid)
    return values, PhasePlanes(exam.stacks[0], grid.shape, np.dtype(dtype), turn, go_on), grid


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Let parts have as few planes as they may."""
    monkeypatch.setattr("napari_mamamia.services.dicom.dicom._PART_BYTES", 1)


@pytest.mark.parametrize("syntax", [phantoms.EXPLICIT, phantoms.IMPLICIT, phantoms.BIG_ENDIAN])
def test_planes_come_upright_and_whole_in_any_byte_order(tmp_path, syntax):
    values, planes, grid = phase_of(tmp_path, np.int16, syntax=syntax)
    assert planes.shape == grid.shape
    assert np.array_equal([plane.copy() for plane in planes], values[:, ::-1])


def test_scaled_planes_are_the_quantity(tmp_path):
    values, planes, _ = phase_of(tmp_path, np.float32, RescaleSlope=0.5, RescaleIntercept=-3)
    assert np.array_equal([plane.copy() for plane in planes], values[:, ::-1] * 0.5 - 3)


def test_unused_high_bits_are_taken_off_in_every_part(tmp_path):
    values = np.random.default_rng(6).integers(0, 1 << 12, (N_PLANES, 16, 20)).astype(np.uint16)
    with_bits = values | np.uint16(0xA000)
    phantoms.write_phase(tmp_path, 0, values=with_bits, BitsStored=12, HighBit=11)
    exam = find_exam([read_slices(path) for path in sorted(tmp_path.iterdir())], "exam")
    grid, turn = upright(exam.grid)
    planes = PhasePlanes(exam.stacks[0], grid.shape, np.dtype(np.uint16), turn, go_on)
    assert np.array_equal([plane.copy() for plane in planes], values[:, ::-1])


def test_parts_break_off_where_the_whole_phase_does(tmp_path):
    values, planes, _ = phase_of(tmp_path, np.int16)
    list(planes)
    assert planes.tails.tolist() == blank_tails(values).tolist()
    assert planes.tails[[3, 17]].tolist() == [7, 12]


def test_a_plane_of_another_size_than_the_grid_is_refused_by_name(tmp_path):
    _, planes, _ = phase_of(tmp_path, np.int16)
    wider = PhasePlanes(planes._slices, (N_PLANES, 16, 24), planes.dtype, planes._turn, go_on)
    with pytest.raises(FormatError, match=r"\(16, 24\) rows and columns in .*IM_0"):
        next(iter(wider))


def test_a_check_that_raises_ends_the_reading(tmp_path):
    def stop(_):
        raise Cancelled

    _, planes, _ = phase_of(tmp_path, np.int16)
    stopped = PhasePlanes(planes._slices, planes.shape, planes.dtype, planes._turn, stop)
    with pytest.raises(Cancelled):
        next(iter(stopped))


def test_the_case_on_the_disk_is_the_one_in_the_files(tmp_path):
    from napari_mamamia.io.data_set.volumes import read_volume
    from napari_mamamia.services.dicom.dicom import import_dicom

    for phase in range(3):
        shape = (N_PLANES, 16, 20)
        phantoms.write_phase(
            tmp_path / "in", phase, shape=shape, AcquisitionTime=f"10{phase:02d}00"
        )
    import_dicom(tmp_path / "in", tmp_path / "out", "CASE")
    for phase in range(3):
        written = tmp_path / "out" / "images" / "CASE" / f"CASE_{phase:04d}.nii.gz"
        _, voxels = read_volume(written)
        assert np.array_equal(voxels, phantoms.dce_values(phase, (N_PLANES, 16, 20))[:, ::-1])
