"""Box, case, mask, label map, jobs, errors: the records that every room shares."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap, Mask, Phase
from napari_mamamia.core.errors import CaseError, GridMismatchError, MissingExtraError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Cancelled, Progress, listening, report_progress

GRID = Grid((2, 3, 4), np.diag([0.5, 1.0, 2.0, 1.0]))


def test_the_box_around_voxels_is_the_smallest():
    array = np.zeros((5, 6, 7), dtype=bool)
    array[1, 2, 3] = array[3, 4, 3] = True
    assert Box.around(array) == Box((1, 2, 3), (4, 5, 4))


def test_the_box_around_nothing_is_empty():
    assert Box.around(np.zeros((2, 2, 2))).is_empty


def test_union_with_an_empty_box_adds_nothing():
    box = Box((1, 1, 1), (2, 3, 4))
    assert box.union(Box.empty()) == box == Box.empty().union(box)


def test_a_grown_box_stays_inside_the_array():
    assert Box((0, 1, 2), (1, 3, 4)).grown((1, 1, 1), (2, 3, 9)) == Box((0, 0, 1), (2, 3, 5))


def test_a_box_refuses_to_run_backwards():
    with pytest.raises(ValueError, match="start <= stop"):
        Box((2, 0, 0), (1, 1, 1))


def test_a_mask_is_read_only_and_bool():
    array = np.ones(GRID.shape, dtype=bool)
    mask = Mask(GRID, array)
    assert mask.volume_mm3 == pytest.approx(24.0)  # 24 voxels of 0.5 x 1 x 2 mm
    with pytest.raises(ValueError, match="read-only"):
        mask.array[0, 0, 0] = False
    array[0] = False  # the caller's own array stays writable
    with pytest.raises(TypeError, match="bool"):
        Mask(GRID, array.astype(np.uint8))
    with pytest.raises(GridMismatchError):
        Mask(GRID, np.ones((1, 1, 1), dtype=bool))


def test_a_label_map_gives_any_block_of_the_grid():
    values = np.zeros(GRID.shape, dtype=np.uint8)
    values[1, 1, 1:3] = (1, 2)
    labels = LabelMap(GRID, Box((1, 1, 1), (2, 2, 3)), values[1:2, 1:2, 1:3])
    np.testing.assert_array_equal(labels.dense(), values)
    box = Box((0, 0, 2), (2, 3, 4))
    np.testing.assert_array_equal(labels.cut(box), values[box.slices])
    assert labels.values == (1.0, 2.0)
    assert labels.mask().array.sum() == 2
    assert labels.mask(2).array.sum() == 1


def test_soft_masks_are_cut_at_one_half_and_nan_is_background():
    crop = np.array([[[0.49, 0.5, np.nan, 1.0]]])
    labels = LabelMap(GRID, Box((0, 0, 0), (1, 1, 4)), crop)
    assert labels.mask().array[0, 0].tolist() == [False, True, False, True]


def test_negative_labels_are_background():
    labels = LabelMap(GRID, Box((0, 0, 0), (1, 1, 2)), np.array([[[-1, 1]]], dtype=np.int16))
    assert labels.mask().array.sum() == 1


def test_a_case_names_what_contradicts_itself():
    with pytest.raises(CaseError, match="A: expected the signal to have the shape"):
        Case("A", GRID, np.zeros((1, 2, 2, 2)), (Phase(0),))
    with pytest.raises(CaseError, match="not numbered 0, 1, 2"):
        Case("A", GRID, np.zeros((2, 2, 3, 4)), (Phase(1), Phase(0)))


def test_a_case_says_what_it_lacks():
    case = Case("A", GRID, np.zeros((1, 2, 3, 4)), (Phase(0, loaded=False),))
    with pytest.raises(CaseError, match=r"to have at least 2 phases, but it has 1"):
        case.require_phases(2)
    with pytest.raises(CaseError, match="still opening"):
        case.require_phases(1)


def test_work_reports_to_whoever_listens_and_returns():
    def job():
        report_progress(0, 2, "one")
        report_progress(1, 2, "two")
        return 42

    seen = []
    with listening(lambda progress: seen.append(progress.text)):
        assert job() == 42
    job()  # nobody listens any more
    assert seen == ["one", "two"]


def test_cancelling_work_runs_its_finally():
    cleaned = []

    def job():
        try:
            report_progress(0, 1)
            report_progress(1, 1)
        finally:
            cleaned.append(True)

    def cancel(progress):
        raise Cancelled

    with pytest.raises(Cancelled), listening(cancel):
        job()
    assert cleaned == [True]


def test_nothing_takes_cancelled_for_a_failure():
    assert not issubclass(Cancelled, Exception)


def test_progress_beyond_its_total_is_refused():
    with pytest.raises(ValueError, match="3 of 2"):
        Progress(3, 2)


def test_a_missing_extra_names_the_pip_command_also_after_pickling():
    error = pickle.loads(pickle.dumps(MissingExtraError("torch", "segment")))
    assert 'pip install "napari-mamamia[segment]"' in str(error)


@pytest.mark.parametrize("statement", ["import napari_mamamia", "import napari_mamamia.cli"])
def test_import_loads_neither_torch_nor_napari_nor_qt(statement):
    code = (
        f"import sys; {statement}; "
        "heavy = ('torch', 'napari', 'qtpy', 'PyQt6', 'PySide6', 'nibabel'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
