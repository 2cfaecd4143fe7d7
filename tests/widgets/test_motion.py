"""Section Motion of page Kinetics on a viewer without a window; the registration is a fake."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qtpy.QtWidgets import QWidget
from tests.widgets.conftest import fake_kinetics

from napari_mamamia.core.case import Phase
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.map_kinds import MapKind
from napari_mamamia.kinetics.registration.quality import Displacement, Fit
from napari_mamamia.kinetics.registration.registration import PhaseMotion, Registered
from napari_mamamia.kinetics.registration.settings import RegistrationSettings, Verdict
from napari_mamamia.services.register.case import RegisteredCase, VolumeChange
from napari_mamamia.widgets.base.layers import Role, array_of, find_layer
from napari_mamamia.widgets.viewer.planes import Layout

TIMES = (0.0, 100.0, 160.0, 460.0)
BLOB = (slice(2, 4), slice(8, 12), slice(10, 16))


@pytest.fixture
def world(world):
    """A case of four phases whose blob takes 100, 250, 280, 220."""
    first = world.open_case

    def open_case(files, record=None, phase=1):
        made = first(files, record)
        signal = np.full((4, *made.grid.shape), 100, np.int16)
        for index, value in enumerate((100, 250, 280, 220)):
            signal[(index, *BLOB)] = value
        return replace(made, signal=signal, phases=tuple(Phase(k, t) for k, t in enumerate(TIMES)))

    world.open_case = open_case
    return world


def registered(case, volume=None):
    """What a registration would give that doubles phase 0 and keeps the others."""
    signal = case.signal.copy()
    signal[0] *= 2
    fit = Displacement(1.0, 2.5, 4.0)
    motions = (
        PhaseMotion(
            0, Verdict.BETTER, "rigid", displacement=fit, before=Fit(9, 1.1), after=Fit(3, 1.2)
        ),
        PhaseMotion(1, Verdict.REFERENCE),
        PhaseMotion(2, Verdict.WORSE, before=Fit(3, 1.2), after=Fit(4, 1.1)),
        PhaseMotion(3, Verdict.UNCHANGED, before=Fit(3, 1.2), after=Fit(3, 1.2)),
    )
    told = replace(case, signal=signal, warnings=("phase 0 was registered",))
    found = Registered(told, motions, {}, RegistrationSettings(), 10, 8.0)
    return RegisteredCase(found, volume or VolumeChange(2.0, 3.0, "FTV"))


@pytest.fixture
def motion(qtbot, dock):
    """The dock with its case open on page Kinetics, and a registration that is a fake."""

    def register(case, mask, settings):
        report_progress(0, 1, "Phase 0: rigid")
        return registered(case)

    fake_kinetics(dock.kinetics.motion, register=register)
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    dock.show_page("Kinetics")
    return dock


def find(dock, name):
    return dock.findChild(QWidget, name)


def run(qtbot, dock):
    find(dock, "motion_register").click()
    qtbot.waitUntil(lambda: dock.kinetics.motion.found is not None)


def test_the_table_shows_each_phase_before_and_after(qtbot, motion):
    run(qtbot, motion)
    text = find(motion, "motion_table").text()
    assert "9.0&nbsp;→&nbsp;3.0" in text
    assert "2.5" in text
    for word in ("✓&nbsp;better", "✗&nbsp;worse", "=&nbsp;unchanged", "reference, unchanged"):
        assert word in text
    assert "+50 %" in find(motion, "motion_volume").text()
    assert find(motion, "motion_volume").property("level") == "warning"


def test_nothing_is_changed_until_the_registered_phases_are_used(qtbot, motion):
    before = motion.session.case.signal
    run(qtbot, motion)
    assert motion.session.shown_case.signal is before
    assert np.shares_memory(array_of(motion.scene.layer(Role.PHASE)), before)
    assert motion.header.case.text() == "A_1"


def test_registered_phases_are_shown_computed_from_and_named(qtbot, motion, viewer):
    own = motion.session.case
    run(qtbot, motion)
    find(motion, "motion_use").click()
    assert motion.session.case is own  # models, editing and exports keep it
    assert array_of(motion.scene.layer(Role.PHASE))[0, 0, 0, 0] == 200
    assert motion.header.case.text() == "A_1 · registered"
    assert viewer.canvas.overlays["mamamia_phase"].text.endswith("\nregistered")
    assert motion.kinetics.case.case.signal[0, 0, 0, 0] == 200
    assert motion.kinetics.case.case.times_s == TIMES
    page = motion.kinetics_page
    page.has_floor.setChecked(False)
    page.maps.setCurrentIndex(page.maps.findData(MapKind.PE))
    qtbot.waitUntil(lambda: motion.kinetics.map.is_full)
    shown = array_of(motion.scene.layer(Role.MAP))
    np.testing.assert_allclose(shown[BLOB], 40.0)  # the phase at 160 s: 280 of 200


def test_the_subtraction_follows_the_phases_that_are_shown(qtbot, motion):
    run(qtbot, motion)
    motion.scene.go_to_phase(2)
    motion.subtracting.toggle()
    qtbot.waitUntil(lambda: motion.scene.layer(Role.SUBTRACTION) is not None)
    assert array_of(motion.scene.layer(Role.SUBTRACTION))[2, 8, 10] == 180
    find(motion, "motion_use").click()
    qtbot.waitUntil(lambda: array_of(motion.scene.layer(Role.SUBTRACTION))[2, 8, 10] == 80)


@pytest.mark.parametrize("layout", [Layout.ONE, Layout.PLANES])
def test_the_projection_follows_the_phases_that_are_shown_in_every_plane(
    qtbot, motion, viewer, layout
):
    motion.planes.set_layout(layout)
    qtbot.waitUntil(lambda: not motion.planes.is_building)
    run(qtbot, motion)
    motion.scene.go_to_phase(2)
    motion.view_flow.toggle_projection()

    def brightest():
        qtbot.waitUntil(lambda: not motion.jobs.is_running("project"))
        for view in (viewer, *(pane.model for pane in motion.planes.panes)):
            shown = array_of(find_layer(view.layers, Role.PROJECTION))
            along = motion.scene.view.upright_axis_in(view)
            assert np.ptp(shown, axis=along).max() == 0, "projected along another view's axis"
            yield float(shown.max())

    # phase 2 minus phase 0 in the blob: 280 - 100, with the registered phase 0 280 - 200
    assert set(brightest()) == {180.0}
    find(motion, "motion_use").click()
    assert set(brightest()) == {80.0}
    find(motion, "motion_back").click()
    assert set(brightest()) == {180.0}


def test_back_to_the_original_is_as_before(qtbot, motion, viewer):
    run(qtbot, motion)
    find(motion, "motion_use").click()
    find(motion, "motion_back").click()
    assert array_of(motion.scene.layer(Role.PHASE))[0, 0, 0, 0] == 100
    assert motion.header.case.text() == "A_1"
    assert "registered" not in viewer.canvas.overlays["mamamia_phase"].text
    assert motion.session.registered is None


def test_curves_of_registered_phases_carry_it_in_their_names(qtbot, motion):
    run(qtbot, motion)
    find(motion, "motion_use").click()
    assert motion.kinetics.curves.plot().title == "A_1 (registered) · UCSF-FTV"


@pytest.mark.parametrize("layout", [Layout.PLANES, Layout.PHASES])
def test_every_view_says_registered_at_once(qtbot, motion, layout):
    motion.planes.set_layout(layout)
    qtbot.waitUntil(lambda: not motion.planes.is_building)
    run(qtbot, motion)
    find(motion, "motion_use").click()
    said = [notes(pane.model) for pane in motion.planes.panes]
    assert said == [1] * len(said)
    assert said
    find(motion, "motion_back").click()
    assert not any(notes(pane.model) for pane in motion.planes.panes)


def notes(model):
    """How many of the texts on an image end with the note."""
    texts = (model.canvas.overlays[f"mamamia_{name}"].text for name in ("phase", "plane"))
    return sum(text.endswith("\nregistered") for text in texts)


def test_another_case_forgets_what_was_registered(qtbot, motion):
    run(qtbot, motion)
    find(motion, "motion_use").click()
    motion.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: motion.session.case_id == "A_2" and motion.session.case.is_loaded)
    assert motion.session.registered is None
    assert motion.kinetics.motion.found is None
    assert motion.header.case.text() == "A_2"
    assert not find(motion, "motion_table").isVisibleTo(motion.kinetics_page)


def test_cancel_leaves_the_phases_and_the_button_ready(qtbot, motion):
    go = threading.Event()

    def held(case, mask, settings):
        while not go.wait(0.01):
            report_progress(0, 1, "Phase 0: rigid")
        return registered(case)

    fake_kinetics(motion.kinetics.motion, register=held)
    find(motion, "motion_register").click()
    assert not find(motion, "motion_register").isEnabled()
    find(motion, "motion_cancel").click()
    assert find(motion, "motion_register").isEnabled()
    assert find(motion, "motion_state").text().startswith("Cancelled")
    assert motion.kinetics.motion.found is None
    go.set()


def test_a_failure_says_why_in_the_section(qtbot, motion):
    def refuse(case, mask, settings):
        report_progress(0, 1)
        raise CaseError("phase 2 of A_1 has the value 7 everywhere")

    fake_kinetics(motion.kinetics.motion, register=refuse)
    find(motion, "motion_register").click()
    qtbot.waitUntil(lambda: "has the value 7" in find(motion, "motion_state").text())
    assert find(motion, "motion_register").isEnabled()


def test_the_colours_of_a_map_can_stand_for_another_range(qtbot, motion):
    page = motion.kinetics_page
    page.maps.setCurrentIndex(page.maps.findData(MapKind.PE))
    qtbot.waitUntil(lambda: motion.kinetics.map.is_full)
    ranges = find(motion, "kinetics_range")
    ranges.setCurrentIndex(ranges.findText("0–100 %"))
    assert tuple(motion.scene.layer(Role.MAP).contrast_limits) == (0.0, 100.0)
    assert page.legend.text() == "0 to 100 %"
    page.maps.setCurrentIndex(page.maps.findData(MapKind.SER))
    qtbot.waitUntil(lambda: page.legend.text() == "0 to 2")
    page.maps.setCurrentIndex(page.maps.findData(MapKind.PE))
    qtbot.waitUntil(lambda: page.legend.text() == "0 to 100 %")


def test_the_automatic_range_is_that_of_the_map(qtbot, motion):
    page = motion.kinetics_page
    page.has_floor.setChecked(False)
    page.maps.setCurrentIndex(page.maps.findData(MapKind.PE))
    qtbot.waitUntil(lambda: motion.kinetics.map.is_full)
    ranges = find(motion, "kinetics_range")
    ranges.setCurrentIndex(ranges.findText("auto, 1–99 %"))
    # 48 voxels of 2,880 have 180 %, more than 1 % of them; the rest 0
    qtbot.waitUntil(lambda: page.legend.text() == "0 to 180 %")
