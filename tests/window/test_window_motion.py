"""Motion in a real window: cancel, register, look at it, use it, go back."""

from dataclasses import replace

import numpy as np
import pytest
from one_window import open_kinetics
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QApplication, QLabel, QScrollArea, QWidget

from napari_mamamia.core.case import Mask
from napari_mamamia.core.choices import TransformKind
from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.io.clinical.clinical import write_clinical
from napari_mamamia.io.data_set.volumes import write_mask, write_volume
from napari_mamamia.phantom import PhantomSpec, TumourSpec, make_phantom
from napari_mamamia.widgets.base.layers import Role, array_of

pytestmark = [pytest.mark.window, pytest.mark.one_window]

TIMES = (0.0, 120.0, 480.0)
MOVED_MM = (4.0, -3.0, 0.0)


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """A data set of one phantom in which the patient lies elsewhere in phase 0."""
    still = PhantomSpec(
        case_id="A_1",
        shape=(24, 64, 80),
        spacing_mm=(4.0, 4.0, 4.0),
        times_s=TIMES,
        tumours=(TumourSpec(34.0),),
        contrast_to_noise=20.0,
    )
    phantom = make_phantom(replace(still, motion_mm=(MOVED_MM, (0.0,) * 3, (0.0,) * 3)))
    root = tmp_path_factory.mktemp("motion") / "data"
    grid = phantom.case.grid
    for index, volume in enumerate(phantom.case.signal):
        write_volume(volume, grid, root / "images" / "A_1" / f"A_1_{index:04d}.nii.gz")
    mask = Mask(grid, phantom.reference.array)
    write_mask(mask, root / "segmentations" / "expert" / "A_1.nii.gz")
    record = CaseRecord("A_1", age=50.0, acquisition_times_s=TIMES)
    write_clinical(Cohort((record,)), root / "clinical_and_imaging_info.xlsx")
    return root


def seen(panel, name):
    """The control of a name, with the page scrolled to it."""
    widget = panel.findChild(QWidget, name)
    area = widget.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    if area is not None:
        area.ensureWidgetVisible(widget)
    QApplication.processEvents()
    return widget


def peak(panel):
    """The peak enhancement of the mask's mean curve, as page Kinetics tells it."""
    return panel.kinetics_page.findChild(QLabel, "kinetics_peak").text()


def said(viewer):
    return viewer.canvas.overlays["mamamia_phase"].text


@pytest.mark.night
def test_from_a_cancelled_registration_to_registered_phases_and_back(
    qtbot, window, docked, moved, picture, control
):
    open_kinetics(qtbot, docked, moved, "A_1")
    own = docked.session.case.signal
    flow, jobs = docked.kinetics.motion, docked.jobs
    docked.scene.go_to_phase(1)
    docked.subtracting.toggle()
    qtbot.waitUntil(lambda: docked.scene.layer(Role.SUBTRACTION) is not None)
    docked.kinetics_page.to_curves.click()
    qtbot.waitUntil(lambda: len(docked.kinetics.curves.plot().lines) == 1, timeout=10_000)
    before = array_of(docked.scene.layer(Role.SUBTRACTION)).copy()
    curve = docked.kinetics.curves.plot()

    kind = seen(docked, "motion_transform")
    kind.setCurrentIndex(kind.findData(TransformKind.RIGID))
    control(docked, "motion_register")
    qtbot.waitUntil(lambda: "rigid" in seen(docked, "motion_running").text(), timeout=20_000)
    picture(window, "90_motion_running")
    control(docked, "motion_cancel")
    assert seen(docked, "motion_state").text().startswith("Cancelled")
    assert flow.found is None

    control(docked, "motion_register")
    qtbot.waitUntil(lambda: flow.found is not None, timeout=60_000)
    table = seen(docked, "motion_table").text()
    assert "✓&nbsp;better" in table
    assert "=&nbsp;unchanged" in table
    assert docked.session.shown_case.signal is own
    seen(docked, "motion_use")
    picture(window, "91_motion_found")

    control(docked, "motion_use")
    assert docked.header.case.text() == "A_1 · registered"
    qtbot.waitUntil(lambda: not jobs.is_running("subtract"))
    assert said(window).endswith("\nregistered")
    after = array_of(docked.scene.layer(Role.SUBTRACTION))
    # air and tissue that lay on each other no longer do
    assert np.abs(after.astype(float)).mean() < 0.8 * np.abs(before.astype(float)).mean()
    qtbot.waitUntil(lambda: len(docked.kinetics.curves.plot().lines) == 1)
    assert docked.kinetics.curves.plot().title == "A_1 (registered) · UCSF-FTV"
    assert docked.kinetics.curves.plot().lines[0].percent != curve.lines[0].percent
    percent = docked.kinetics.curves.plot().lines[0].percent
    qtbot.waitUntil(lambda: peak(docked).startswith(f"{max(percent):.0f} %"), timeout=10_000)
    picture(window, "92_motion_registered")
    docked.planes.toggle_planes()
    qtbot.waitUntil(lambda: not docked.planes.is_building, timeout=20_000)
    window.theme = "light"
    window.window._qt_window.resizeDocks([docked.docking.home], [260], Qt.Orientation.Horizontal)
    seen(docked, "motion_state")
    picture(window, "93_motion_light_narrow")
    panes = [pane.model.canvas.overlays["mamamia_plane"].text for pane in docked.planes.panes]
    assert [text.split("\n")[1] for text in panes] == ["registered", "registered"]
    docked.planes.toggle_planes()

    control(docked, "motion_back")
    qtbot.waitUntil(lambda: not jobs.is_running("subtract"))
    assert docked.header.case.text() == "A_1"
    assert "registered" not in said(window)
    np.testing.assert_array_equal(array_of(docked.scene.layer(Role.SUBTRACTION)), before)
    qtbot.waitUntil(lambda: docked.kinetics.curves.plot().lines == curve.lines)
    assert docked.session.case.signal is own
    window.theme = "dark"
