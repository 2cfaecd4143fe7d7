"""DICOM that napari is asked to open: told cheaply, and read without a window."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from napari.components import ViewerModel
from npe2 import PluginManager

from napari_mamamia import commands
from napari_mamamia.io.dicom import probe
from napari_mamamia.widgets.base.layers import Role, array_of, find_layer

pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)


@pytest.fixture
def exam(tmp_path):
    """Return the top of a study, three folders above its files, and the values."""
    values = phantoms.write_exam(tmp_path / "top" / "patient" / "study" / "series")
    return tmp_path / "top", values


def test_a_study_is_taken_from_its_top_as_one_file_as_several_and_as_a_zip(exam, tmp_path):
    top, _ = exam
    files = sorted(str(path) for path in top.rglob("*.dcm"))
    archive = shutil.make_archive(str(tmp_path / "exam"), "zip", top)
    for path in (str(top), files[0], files[:4], archive):
        assert commands.get_reader(path) is not None


def test_a_foreign_folder_of_ten_thousand_files_is_declined_after_a_few_were_opened(
    tmp_path, monkeypatch
):
    for k in range(10_000):
        (tmp_path / f"file_{k}").touch()
    opened = []
    plain_open = probe.open_plain
    monkeypatch.setattr(
        probe, "open_plain", lambda path, *a: opened.append(path) or plain_open(path, *a)
    )
    assert commands.get_reader(str(tmp_path)) is None
    assert 0 < len(opened) <= 16


def test_a_foreign_zip_is_declined(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "table.csv").write_text("a,b")
    assert commands.get_reader(
        shutil.make_archive(str(tmp_path / "x"), "zip", tmp_path / "in")
    ) is (None)


def test_a_data_set_is_not_taken_for_dicom(small_data_set):
    reader = commands.get_reader(str(small_data_set))
    assert reader is commands.get_reader(str(small_data_set / "images" / "A_1"))


def test_the_look_needs_no_pydicom(exam):
    top, _ = exam
    code = (
        "import sys; sys.modules['pydicom'] = None; from napari_mamamia import commands; "
        f"assert commands.get_reader({str(top)!r}) is not None"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("form", ["folder", "file", "zip"])
def test_without_a_window_an_exam_opens_with_its_phases(exam, tmp_path, form):
    top, values = exam
    archive = shutil.make_archive(str(tmp_path / "exam"), "zip", top)
    path = {"folder": str(top), "file": str(next(top.rglob("*.dcm"))), "zip": archive}[form]
    PluginManager.instance().discover()
    viewer = ViewerModel()
    viewer.open(path, plugin="napari-mamamia")
    layer = find_layer(viewer.layers, Role.PHASE)
    assert np.array_equal(array_of(layer), values)
