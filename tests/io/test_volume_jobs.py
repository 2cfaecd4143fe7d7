"""Reading and writing as jobs: progress, cancelling, and files that change meanwhile."""

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import contents
from tests.stepped import Stepped

from napari_mamamia.core.errors import FormatError, SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Progress
from napari_mamamia.io.data_set.volumes import (
    read_header,
    read_phase_header,
    read_phase_into,
    read_series_into,
    read_volume,
    volume_stem,
    write_volume,
    write_volume_job,
)
from napari_mamamia.io.files import save
from napari_mamamia.io.files.save import flushed
from napari_mamamia.io.files.sources import PhaseSource
from napari_mamamia.io.volumes import voxel_writer

SERIES = np.arange(3 * 4 * 5 * 6, dtype=np.int16).reshape(3, 4, 5, 6)


@pytest.fixture
def eager(monkeypatch):
    """Let jobs report every step, as slow ones do."""
    monkeypatch.setattr(voxel_writer, "_YIELD_SECONDS", 0.0)


def open_files():
    """Return the paths that this process holds open."""
    handles = Path("/proc/self/fd")
    if not handles.is_dir():
        pytest.skip("this system does not list open files in /proc")
    paths = []
    for handle in os.listdir(handles):  # noqa: PTH208 - a closed handle vanishes while listing
        try:
            paths.append(str((handles / handle).readlink()))
        except OSError:
            continue
    return paths


@pytest.mark.parametrize("name", ["four.nii", "four.nii.gz"])
@pytest.mark.parametrize("volume", [0, 1, 2])
def test_one_phase_of_a_4d_file_is_read_into_its_place(nifti_file, name, volume):
    source = PhaseSource((nifti_file(name, SERIES),), volume=volume)
    header = read_phase_header(source)
    out = np.full((4, 5, 6), -1, np.int16)
    steps = list(Stepped(read_phase_into, source, header, out))
    np.testing.assert_array_equal(out, SERIES[volume])
    assert steps[0] == Progress(0, 4, f"Reading {name}")
    assert steps[-1] == Progress(4, 4, f"Reading {name}")


@pytest.mark.parametrize("slope", [None, 0.5])
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_a_series_is_read_in_one_pass_into_any_view(nifti_file, byte_order, slope):
    path = nifti_file("four.nii.gz", SERIES, byte_order=byte_order, slope=slope)
    header = read_header(path)
    whole = np.zeros((3, 4, 5, 6), header.dtype)
    steps = list(Stepped(read_series_into, path, header, whole))
    scale = 1 if slope is None else slope
    np.testing.assert_array_equal(whole, SERIES * scale)
    assert steps[-1] == Progress(12, 12, "Reading four.nii.gz")
    view = np.zeros((6, 5, 4, 3), header.dtype).transpose()
    list(Stepped(read_series_into, path, header, view))
    np.testing.assert_array_equal(view, whole)


def test_progress_never_runs_back_and_counts_planes_of_all_volumes(nifti_file, eager):
    array = np.zeros((2, 6, 512, 512), np.int16)
    path = nifti_file("four.nii.gz", array)
    header = read_header(path)
    done = [step.done for step in Stepped(read_series_into, path, header, np.empty_like(array))]
    assert done == [0, 2, 4, 6, 8, 10, 12, 12]


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_cancelled_job_holds_no_file_open(nifti_file, eager, steps):
    array = np.zeros((2, 8, 512, 512), np.int16)
    path = nifti_file("cancelled.nii.gz", array)
    header = read_header(path)
    source = PhaseSource((path,), volume=1)
    for job in (
        Stepped(read_series_into, path, header, np.empty_like(array)),
        Stepped(read_phase_into, source, header, np.empty_like(array[0])),
    ):
        for _ in range(steps):
            next(job)
        assert steps == 1 or str(path) in open_files()
        job.close()
        gc.collect()
        assert str(path) not in open_files()


def test_a_damaged_file_is_closed_again(nifti_file):
    path = nifti_file("cut.nii.gz", SERIES)
    header = read_header(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FormatError):
        list(Stepped(read_series_into, path, header, np.empty_like(SERIES)))
    assert str(path) not in open_files()


def test_a_volume_that_the_file_lacks_is_refused(nifti_file):
    source = PhaseSource((nifti_file("four.nii.gz", SERIES),), volume=3)
    with pytest.raises(FormatError, match=r"four\.nii\.gz.*at least 4 volume.*it has 3"):
        read_phase_header(source)


def test_a_file_that_changed_since_its_header_was_read_is_refused(nifti_file):
    source = PhaseSource((nifti_file("case.nii.gz", SERIES[0]),))
    header = read_phase_header(source)
    nifti_file("case.nii.gz", SERIES[0, :2])
    with pytest.raises(
        FormatError, match=r"case\.nii\.gz.*changed in the meantime.*open the case again"
    ):
        list(Stepped(read_phase_into, source, header, np.empty((4, 5, 6), np.int16)))


def test_an_array_of_another_shape_or_type_is_a_mistake_of_the_caller(nifti_file):
    source = PhaseSource((nifti_file("case.nii.gz", SERIES[0]),))
    header = read_phase_header(source)
    for wrong in (np.empty((4, 5, 7), np.int16), np.empty((4, 5, 6), np.float32)):
        with pytest.raises(ValueError, match=r"out to have shape \(4, 5, 6\) and dtype int16"):
            list(Stepped(read_phase_into, source, header, wrong))


@pytest.mark.real
def test_a_phase_of_dicom_files_goes_through_the_same_door(real_data):
    """The 15 slices of the first volume, in order of place along the patient."""
    pydicom = pytest.importorskip("pydicom")
    first = {}
    for path in sorted((real_data("dicom") / "ge_4d" / "In").iterdir()):
        fields = pydicom.dcmread(path, stop_before_pixels=True)
        place, number = float(fields.SliceLocation), int(fields.InstanceNumber)
        first[place] = min(first.get(place, (number, path)), (number, path))
    source = PhaseSource(tuple(first[place][1] for place in sorted(first)))
    header = read_phase_header(source)
    out = np.zeros(header.grid.shape, header.dtype)
    steps = list(Stepped(read_phase_into, source, header, out))
    assert header.grid.shape[0] == steps[-1].done == steps[-1].total == 15
    middle = pydicom.dcmread(source.files[7]).pixel_array
    assert any(np.array_equal(plane, middle) for plane in out)


def test_a_stem_is_the_name_without_its_volume_suffix():
    names = ("DUKE_001.nii.gz", "a/b.c.NII", "x.nrrd", "table.csv", ".nii.gz")
    stems = [volume_stem(Path(name)) for name in names]
    assert stems == ["DUKE_001", "b.c", "x", "table.csv", ""]


# ---- writing


NOISE = np.random.default_rng(5).integers(1, 900, (3, 256, 512), dtype=np.int16)
GRID = Grid(NOISE.shape, np.diag([-0.7, 0.7, 1.2, 1.0]))
NAMES = ["a.nii.gz", "a.nii", "a.nrrd"]


@pytest.mark.parametrize("name", NAMES)
def test_writing_gives_a_sign_of_life_at_every_block(tmp_path, eager, name):
    steps = list(Stepped(write_volume_job, NOISE, GRID, tmp_path / name))
    writing = [step.done for step in steps if step.text == f"Writing {name}"]
    # a plane of 256 x 512 x 2 bytes is 4 blocks of 64 KiB: a step before it, one after each block
    assert writing == [plane for plane in range(3) for _ in range(5)]
    assert [step for step in steps if step.text == f"Checking {name}"]
    assert {step.total for step in steps} == {3}
    np.testing.assert_array_equal(read_volume(tmp_path / name)[1], NOISE)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_writes_the_bytes_that_one_call_writes(tmp_path, eager, name):
    for folder in ("job", "call"):
        (tmp_path / folder).mkdir()
    list(Stepped(write_volume_job, NOISE, GRID, tmp_path / "job" / name))
    write_volume(NOISE, GRID, tmp_path / "call" / name)
    assert contents(tmp_path / "job" / name) == contents(tmp_path / "call" / name)


@pytest.mark.parametrize("name", NAMES)
def test_writing_that_is_cancelled_anywhere_leaves_no_file(tmp_path, eager, name):
    n_steps = len(list(Stepped(write_volume_job, NOISE, GRID, tmp_path / "whole" / name)))
    target = tmp_path / "cancelled" / name
    for after in range(1, n_steps + 1):  # while writing, and while reading back
        job = Stepped(write_volume_job, NOISE, GRID, target)
        for _ in range(after):
            next(job)
        assert len(list(target.parent.iterdir())) == 1  # the hidden file that is being written
        job.close()
        assert list(target.parent.iterdir()) == []


def test_writing_that_is_cancelled_leaves_an_older_file_as_it_was(tmp_path, eager):
    target = tmp_path / "a.nii.gz"
    target.write_bytes(b"old")
    job = Stepped(write_volume_job, NOISE, GRID, target, overwrite=True)
    for _ in range(8):
        next(job)
    job.close()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_slow_disk_is_waited_for_with_signs_of_life(tmp_path, monkeypatch):
    goes_on = threading.Event()
    forced = []

    def slow(path):
        goes_on.wait(60)
        forced.append(path)

    monkeypatch.setattr(save, "_force_to_disk", slow)
    steps = flushed(tmp_path / "a.nii.gz")
    next(steps)
    next(steps)
    assert forced == []
    goes_on.set()
    list(steps)
    assert forced == [tmp_path / "a.nii.gz"]


def test_a_large_file_is_forced_to_the_disk_in_the_thread_and_its_errors_count(
    tmp_path, eager, monkeypatch
):
    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(voxel_writer, "_SLOW_BYTES", 1)
    monkeypatch.setattr(save, "_force_to_disk", full)
    with pytest.raises(OSError, match="No space left"):
        list(flushed(tmp_path / "a.nii.gz"))
    with pytest.raises(SaveError, match="free some space"):
        list(Stepped(write_volume_job, NOISE, GRID, tmp_path / "a.nii.gz"))
    assert list(tmp_path.iterdir()) == []
