"""Every step of the hanging in a real window: pixels of masks, letters, scale, the prior in mm."""

import json

import nibabel as nib
import numpy as np
import pytest
from one_window import put_back
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_mamamia.core.grid import Grid
from napari_mamamia.phantom import PhantomSpec, Side, TumourSpec, make_phantom
from napari_mamamia.services.case.hanging import HangingSettings, HangingStep
from napari_mamamia.widgets.base.layers import Role, find_layer
from napari_mamamia.widgets.controls.colours import MASK_COLOURS
from napari_mamamia.widgets.viewer.pane_sides import find_across, mirror_mm, side_of
from napari_mamamia.widgets.viewer.planes import Layout

pytestmark = [pytest.mark.window, pytest.mark.one_window]

MIP, BOTH, SIDES, LATE, PRIOR = HangingStep
TUMOUR = TumourSpec(longest_mm=30.0, side=Side.RIGHT)
NEW = PhantomSpec("NEW_1", 4, shape=(30, 110, 120), spacing_mm=(5.0, 3.0, 3.0), tumours=(TUMOUR,))
SHIFT_MM = 7.5


@pytest.fixture(scope="module")
def two_exams(tmp_path_factory):
    """An exam and a prior of one patient; the prior's slices begin 7.5 mm further up."""
    root = tmp_path_factory.mktemp("exams")
    phantom = make_phantom(NEW)
    grid, signal = phantom.case.grid, phantom.case.signal
    affine = grid.affine.copy()
    z = int(np.argmax(np.abs(affine[2, :3])))  # the file axis that runs from foot to head
    affine[2, 3] += SHIFT_MM * np.sign(affine[2, z])
    for case_id, place in (("NEW_1", grid.affine), ("OLD_1", affine)):
        folder = root / "images" / case_id
        folder.mkdir(parents=True)
        for k, phase in enumerate(signal):
            nib.save(
                nib.Nifti1Image(phase.transpose(), place), folder / f"{case_id}_{k:04d}.nii.gz"
            )
        expert = root / "segmentations" / "expert"
        expert.mkdir(parents=True, exist_ok=True)
        mask = phantom.reference.array.astype(np.uint8).transpose()
        nib.save(nib.Nifti1Image(mask, place), expert / f"{case_id}.nii.gz")
        info = root / "patient_info_files"
        info.mkdir(exist_ok=True)
        content = {
            "imaging_data": {"acquisition_times": list(NEW.times_s)},
            "import": {"frame_of_reference_uid_remapped": "2.25.7"},
        }
        (info / f"{case_id}.json").write_text(json.dumps(content))
    rows = ["patient_id,subject_id,exam_date", "NEW_1,7,2024-05-01", "OLD_1,7,2023-05-01"]
    (root / "clinical_and_imaging_info.csv").write_text("\n".join(rows) + "\n")
    return root, phantom


@pytest.fixture
def hung(qtbot, shared_dock, two_exams):
    panel = shared_dock
    panel.open_data_set(two_exams[0], "NEW_1")
    qtbot.waitUntil(lambda: panel.session.case_id == "NEW_1" and panel.session.case.is_loaded)
    qtbot.waitUntil(lambda: Role.REFERENCE in panel.session.masks)
    yield panel
    panel.hanging.leave()
    put_back(qtbot, panel)


def go(qtbot, panel, step):
    panel.hanging.show(step)
    qtbot.waitUntil(lambda: not panel.planes.is_building and panel.jobs.wait(0))
    qtbot.wait(120)  # the views are fitted once their sizes rest
    assert panel.hanging.step is step


def colours_of(panel, viewer):
    """Return the pixels that a view's canvas shows, RGB."""
    canvas = panel.planes.canvas(viewer)
    QApplication.processEvents()
    window = panel.planes.window._views
    view = next((view for pane, view in window.items() if pane.model is viewer), None)
    view = panel.viewer.window._qt_viewer if view is None else view
    shot = view.screenshot(flash=False)
    assert canvas.isVisible()
    return np.asarray(shot)[..., :3]


def outline_pixels(panel, viewer, role=Role.REFERENCE):
    colour = np.array([int(MASK_COLOURS[role][k : k + 2], 16) for k in (1, 3, 5)])
    return int((np.abs(colours_of(panel, viewer).astype(int) - colour).max(axis=-1) < 40).sum())


def letters(model):
    return [model.canvas.overlays[f"mamamia_{name}"].text for name in ("left", "right")]


def go_to_tumour(panel, phantom):
    grid = phantom.case.grid
    place = np.round(np.argwhere(phantom.reference.array).mean(axis=0)).astype(int)
    panel.scene.view.go_to(tuple(int(i) for i in place), centre=False)
    return grid, place


def beyond_midline_mm(pane, grid):
    """Return how much of the other breast a view shows, 0 for none."""
    along = find_across(pane.model, grid)
    if along is None or not pane.text.name_side():
        return 0.0
    size, camera = pane.model.canvas.size, pane.model.scene.camera
    centre = camera.center[along - 2]
    reach = size[along] / camera.zoom / 2
    middle = mirror_mm(grid, 0.0) / 2
    is_right = pane.kind.side == "right"
    return max(0.0, (centre + reach - middle) if is_right else (middle - centre + reach))


@pytest.mark.night
def test_no_view_is_named_after_one_breast_while_it_shows_both(qtbot, hung, two_exams):
    _root, phantom = two_exams
    grid, _place = go_to_tumour(hung, phantom)
    go(qtbot, hung, BOTH)
    shown = []

    def is_done():
        shown.extend(
            (pane.kind.side, round(beyond, 1))
            for pane in hung.planes.panes
            if hung.planes.window.canvas(pane).isVisible()
            if (beyond := beyond_midline_mm(pane, grid)) > 1
        )
        return not hung.planes.is_building and hung.jobs.wait(0)

    hung.hanging.show(SIDES)
    qtbot.waitUntil(is_done)
    assert len(hung.planes.panes) == 3
    assert shown == []


@pytest.mark.night
def test_each_step_shows_the_mask_the_letters_and_the_breast(qtbot, hung, two_exams, picture):
    _root, phantom = two_exams
    grid, place = go_to_tumour(hung, phantom)
    viewer = hung.viewer
    right = side_of(grid, grid.display_frame().point_to_display(place, grid.shape)[2]) == "right"
    assert right  # the phantom's own word, and where the window looks for it

    go(qtbot, hung, MIP)
    assert hung.scene.layer(Role.PROJECTION) is not None
    picture(viewer, "30_hanging_mip")

    go(qtbot, hung, BOTH)
    axial, (right, left) = viewer, [pane.model for pane in hung.planes.panes]
    assert outline_pixels(hung, axial) > 0
    assert outline_pixels(hung, right) > 0  # the slice through the tumour
    assert outline_pixels(hung, left) == 0
    picture(viewer, "31_hanging_both")

    go(qtbot, hung, SIDES)
    below, pre, post = [pane.model for pane in hung.planes.panes]
    assert [letters(m) for m in (viewer, below, pre, post)] == [["R", "L"]] * 2 + [["L", "R"]] * 2
    has_mask = [outline_pixels(hung, m) > 0 for m in (viewer, below, pre, post)]
    assert has_mask == [True, True, False, False]
    widths = [hung.planes.canvas(m).width() for m in (viewer, below, pre, post)]
    assert max(widths) - min(widths) <= 8
    zooms = [m.scene.camera.zoom for m in (viewer, below, pre, post)]
    assert zooms == pytest.approx([zooms[0]] * 4)
    assert hung.scene.view.breast is not None
    # nothing beyond the midline is in a view of one breast
    spacing = grid.display_frame().per_axis(grid.spacing_mm)[2]
    middle = (grid.shape[2] - 1) / 2 * spacing
    for model, inner in ((viewer, 1), (pre, -1)):
        reach = hung.planes.canvas(model).width() / model.scene.camera.zoom / 2
        assert inner * (model.scene.camera.center[-1] + inner * reach - middle) <= spacing
    picture(viewer, "32_hanging_sides")

    go(qtbot, hung, LATE)
    assert outline_pixels(hung, viewer) > 0
    curve = hung.results.window().height() * 0.35
    qtbot.waitUntil(lambda: 0 < hung.results.height() <= curve)  # the image has the rest
    picture(viewer, "33_hanging_late")
    go(qtbot, hung, MIP)  # the curve folds away after the step is shown: fitted once more
    qtbot.waitUntil(lambda: not hung.results.isVisible())
    qtbot.wait(200)
    zoom = viewer.scene.camera.zoom
    hung.scene.view.fit()
    assert zoom == pytest.approx(viewer.scene.camera.zoom)
    layouts = hung.view_panel.layouts
    assert not any(button.isChecked() for button in layouts.values()), "a step is no layout"
    hung.hanging.leave()
    qtbot.waitUntil(lambda: not hung.planes.is_building and not hung.planes.panes)
    assert [layout for layout, button in layouts.items() if button.isChecked()] == [Layout.ONE]


def test_both_breasts_in_one_window_show_the_mask_in_the_views_of_its_side(qtbot, hung, two_exams):
    """By day; what each step shows is held without a window by tests/widgets/test_hanging.py."""
    go_to_tumour(hung, two_exams[1])
    go(qtbot, hung, BOTH)
    right, left = [pane.model for pane in hung.planes.panes]
    seen = [outline_pixels(hung, one) > 0 for one in (hung.viewer, right, left)]
    assert seen == [True, True, False]
    assert letters(hung.viewer) == ["R", "L"]


def test_only_a_hand_changes_the_share_of_the_main_view(qtbot, hung):
    """A step left while its views were made kept 90 % for the right breast, for good."""
    planes, wishes = hung.planes, lambda: hung.hanging._hanging_settings.shares
    go(qtbot, hung, MIP)
    hung.hanging.show(SIDES)
    for step in (LATE, BOTH, SIDES, MIP):
        qtbot.waitUntil(lambda: bool(planes.panes))
        hung.hanging.show(step)
    assert wishes() == {}
    go(qtbot, hung, SIDES)
    outer = planes.window._outer
    assert max(outer.sizes()) - min(outer.sizes()) <= 2
    handle = outer.handle(1)
    middle, way = handle.rect().center(), QPoint(-outer.width() // 5, 0)
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=middle)
    QTest.mouseMove(handle, middle + way)
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=middle + way)
    moved = outer.sizes()
    assert moved[0] < 0.4 * sum(moved)
    go(qtbot, hung, MIP)
    assert set(wishes()) == {SIDES}
    go(qtbot, hung, SIDES)
    assert outer.sizes()[0] == pytest.approx(moved[0], abs=outer.width() / 100 + 1)
    hung.hanging.leave()
    hung.hanging._remember_hanging(HangingSettings())


@pytest.mark.night
def test_the_prior_stands_at_the_same_mm_with_its_mask(qtbot, hung, two_exams, picture):
    _root, phantom = two_exams
    grid, place = go_to_tumour(hung, phantom)
    hung.hanging.show_prior()
    qtbot.waitUntil(lambda: hung.hanging.step is PRIOR)
    go(qtbot, hung, PRIOR)
    (pane,) = hung.planes.panes
    assert hung.hanging.bar.note.text() == "linked in mm"
    old = Grid(grid.shape, pane._prior.grid.affine)
    expected = old.to_voxel(grid.to_world_mm(place))
    assert np.abs(np.array(pane._own_place) - expected).max() <= 0.5 + 1e-6
    assert pane._own_place[0] != place[0]  # 7.5 mm are a slice and a half
    assert find_layer(pane.model.layers, Role.REFERENCE).visible
    assert outline_pixels(hung, pane.model) > 0
    assert outline_pixels(hung, hung.viewer) > 0
    assert pane.model.scene.camera.zoom == pytest.approx(hung.viewer.scene.camera.zoom)
    picture(hung.viewer, "34_hanging_prior")


@pytest.mark.night
def test_the_sliders_are_below_all_views_and_back_below_the_own_one(qtbot, hung):
    view = hung.viewer.window._qt_viewer
    home = view.dims.parentWidget()
    go(qtbot, hung, SIDES)
    assert view.dims.isVisible()
    assert view.dims.parentWidget().objectName() == "planes_frame"
    assert view.dims.width() > view.canvas.native.width() * 1.8
    hung.hanging.leave()
    qtbot.waitUntil(lambda: not hung.planes.panes and not hung.planes.is_building)
    # they go back in a turn of their own
    qtbot.waitUntil(lambda: view.dims.parentWidget() is home)
    qtbot.waitUntil(view.dims.isVisible)
