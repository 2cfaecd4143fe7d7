"""Kinetics in a real window: map, thresholds, pinned curves; a sagittal case; a real tumour."""

import shutil

import nibabel as nib
import numpy as np
import pytest
from one_window import open_kinetics
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QLabel
from tests.ultrafast_phantoms import write_ultrafast_data_set

from napari_mamamia.kinetics.map_kinds import MapKind
from napari_mamamia.phantom import write_data_set
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.kinetics.colours import TYPE_COLOURS

pytestmark = [pytest.mark.window, pytest.mark.one_window]

WASHOUT = TYPE_COLOURS[3][2]


@pytest.fixture(scope="module")
def phantoms(tmp_path_factory):
    """Three phantoms, the third sagittal."""
    folder = tmp_path_factory.mktemp("phantoms") / "data"
    write_data_set(folder, n_cases=3, seed=2026)
    return folder


def show_map(qtbot, panel, kind):
    page, maps = panel.kinetics_page, panel.kinetics.map
    page.maps.setCurrentIndex(page.maps.findData(kind))
    qtbot.waitUntil(
        lambda: maps.shown is not None and maps.shown.kind is kind and maps.is_full, timeout=20_000
    )


def coloured(pixels, hexadecimal):
    """Count the pixels that are clearly redder, greener or bluer, as the colour is."""
    wanted = [int(hexadecimal[k : k + 2], 16) for k in (1, 3, 5)]
    strongest = int(np.argmax(wanted))
    others = [channel for channel in range(3) if channel != strongest]
    values = pixels.astype(int)
    return int((values[..., strongest] - values[..., others].max(axis=-1) > 60).sum())


def curves_drawn(panel):
    return [(line.name, line.percent) for line in panel.kinetics.curves.plot().lines]


def test_from_the_map_to_pinned_curves(
    qtbot, window, docked, phantoms, picture, whole_window, canvas
):
    open_kinetics(qtbot, docked, phantoms, "PHANTOM_001")
    page = docked.kinetics_page
    qtbot.waitUntil(lambda: "cc" in page.ftv.value.text(), timeout=10_000)
    before = coloured(canvas(window), WASHOUT)
    picture(window, "60_kinetics_page")
    show_map(qtbot, docked, MapKind.TYPE)
    assert coloured(canvas(window), WASHOUT) > before + 100
    picture(window, "61_kinetics_types")

    page.to_curves.click()
    qtbot.waitUntil(lambda: len(curves_drawn(docked)) == 1, timeout=10_000)
    docked.results.curves.pin.click()
    mask = docked.session.masks[Role.REFERENCE].buffer
    voxels = np.argwhere(mask)
    native = window.window._qt_viewer.canvas.native
    QTest.mouseMove(native, native.rect().center())
    for place in (len(voxels) // 2, 0):
        docked.scene.view.go_to(tuple(int(i) for i in voxels[place]))
        QTest.mouseMove(native, native.rect().center())
        docked.kinetics.curves._position = _position(docked, voxels[place])
        docked.kinetics.curves._follow_pointer()
        docked.results.curves.pin_cursor.click()
    assert len(docked.kinetics.curves.pinned) == 3
    pixels = whole_window(window, "62_kinetics_three_pinned")
    assert coloured(pixels[pixels.shape[0] // 2 :], "#E69F00") > 30
    QTest.keyClick(native, Qt.Key.Key_K)
    qtbot.waitUntil(lambda: docked.scene.layer(Role.MAP) is None)


def test_an_ultrafast_exam_has_its_maps_and_a_standard_one_says_why_not(
    qtbot, window, docked, phantoms, picture, tmp_path
):
    write_ultrafast_data_set(tmp_path / "data", noise=0.02, n_phases=30)
    open_kinetics(qtbot, docked, tmp_path / "data", "ULTRAFAST_1")
    page = docked.kinetics_page
    qtbot.waitUntil(
        lambda: "%/s · arrival" in page.findChild(QLabel, "kinetics_ultrafast").text(),
        timeout=10_000,
    )
    show_map(qtbot, docked, MapKind.MAXIMUM_SLOPE)
    picture(window, "63_kinetics_maximum_slope")
    show_map(qtbot, docked, MapKind.ARRIVAL)
    assert "tangent" in page.map_text.text()
    page.maps.setCurrentIndex(page.maps.findData(MapKind.TIME_TO_ENHANCEMENT))
    qtbot.waitUntil(lambda: "arrival time in the aorta" in page.map_text.text(), timeout=10_000)
    open_kinetics(qtbot, docked, phantoms, "PHANTOM_001")
    page.maps.setCurrentIndex(page.maps.findData(MapKind.MAXIMUM_SLOPE))
    qtbot.waitUntil(lambda: "at most 10 s apart" in page.map_text.text(), timeout=10_000)
    assert docked.scene.layer(Role.MAP) is None
    picture(window, "64_kinetics_no_slope")


def test_a_sagittal_case_has_its_map_and_its_curve(qtbot, window, docked, phantoms, picture):
    open_kinetics(qtbot, docked, phantoms, "PHANTOM_003")
    assert docked.session.case.grid.acquisition_plane == "sagittal"
    show_map(qtbot, docked, MapKind.SER)
    axis, index = docked.scene.view.slice_shown()
    mask = docked.session.masks[Role.REFERENCE].buffer
    assert mask.take(index, axis=axis).any()
    docked.kinetics_page.to_curves.click()
    qtbot.waitUntil(lambda: len(curves_drawn(docked)) == 1, timeout=10_000)
    (_, percent), *_ = curves_drawn(docked)
    assert percent[1] > 50
    picture(window, "63_kinetics_sagittal")


@pytest.mark.real
def test_the_real_tumour_shows_its_known_curve(qtbot, window, docked, real_data, tmp_path, picture):
    folder = tmp_path / "real"
    shutil.copytree(real_data("dce_slice"), folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    phases = sorted((folder / "images" / "REAL_001").glob("*.nii.gz"))
    images = [nib.load(path) for path in phases]
    pre, second = (np.asarray(images[k].dataobj).astype(float) for k in (0, 2))
    mask = np.zeros(pre.shape, np.uint8)
    rows = slice(pre.shape[1] - 126, pre.shape[1] - 95)  # the file counts from below
    mask[85:116, rows] = (second > 1.8 * pre)[85:116, rows]
    expert = folder / "segmentations" / "expert"
    expert.mkdir(parents=True)
    nib.save(nib.Nifti1Image(mask, images[0].affine, images[0].header), expert / "REAL_001.nii.gz")
    open_kinetics(qtbot, docked, folder, "REAL_001")
    docked.kinetics_page.to_curves.click()
    qtbot.waitUntil(lambda: len(curves_drawn(docked)) == 1, timeout=10_000)
    (_, percent), *_ = curves_drawn(docked)
    np.testing.assert_allclose(percent, (0.0, 164.4, 212.1, 209.9, 205.5, 197.4), atol=0.06)
    times = docked.kinetics.curves.plot().times_s
    assert [round(time) for time in times] == [0, 82, 148, 230, 312, 394]
    show_map(qtbot, docked, MapKind.TYPE)
    picture(window, "64_kinetics_real")


def _position(panel, voxel):
    grid = panel.session.case.grid
    frame = grid.display_frame()
    shown = frame.point_to_display(tuple(int(i) for i in voxel), grid.shape)
    spacing = frame.per_axis(grid.spacing_mm)
    return (0.0, *(place * mm for place, mm in zip(shown, spacing, strict=True)))
