"""A sagittal and an oblique acquisition in a real window: painted in another plane, then saved.

Where a stroke must land follows from the words of the convention alone (anterior up, the patient's
right on the screen's left) and from nibabel's affine of the file that was saved.
"""

import nibabel as nib
import numpy as np
import pytest
from one_window import forget_mask, put_back
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.state import PaintTool
from napari_mamamia.widgets.viewer.pane_sides import Sides
from napari_mamamia.widgets.viewer.planes import Layout

pytestmark = pytest.mark.window


SHAPE_XYZ = (40, 48, 24)
SPACING_XYZ = (1.0, 1.0, 2.0)
AWAY = 28
"""Pixels from the middle of a canvas at which is painted, to the screen's left and upwards."""


def sagittal_affine(degrees):
    """Return the affine of a PSR file, whose slices run to the patient's right, turned about S."""
    turn = np.radians(degrees)
    about_s = np.array(
        [[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]]
    )
    to_ras = np.array([[0, 0, 1], [-1, 0, 0], [0, 1, 0]]) * np.array(SPACING_XYZ)
    affine = np.eye(4)
    affine[:3, :3] = about_s @ to_ras
    affine[:3, 3] = -affine[:3, :3] @ (np.array(SHAPE_XYZ) - 1) / 2
    return affine


def write_case(root, affine):
    """Write three phases of a bright block in noise, sized so that no two axes are alike."""
    rng = np.random.default_rng(3)
    for phase in range(3):
        volume = rng.normal(100, 5, SHAPE_XYZ)
        volume[8:32, 10:38, 4:20] += 60 * (phase + 1)
        image = nib.Nifti1Image(volume.astype(np.int16), affine)
        image.set_sform(affine, code=1)
        image.set_qform(affine, code=1)
        path = root / "images" / "SAG_1" / f"SAG_1_{phase:04d}.nii.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        nib.save(image, path)
    return root


@pytest.fixture(scope="module")
def stack(request, tmp_path_factory):
    """Return a data set of one sagittal case, and the affine of its files."""
    affine = sagittal_affine(request.param)
    return write_case(tmp_path_factory.mktemp("stack") / "data", affine), affine


@pytest.fixture
def docked(qtbot, dock_of_module, stack):
    """The case in three planes with no mask of its own: opened once, as new for each test."""
    panel, (root, _) = dock_of_module, stack
    if panel.session.opened is None or panel.session.opened.data_set.root != root:
        put_back(qtbot, panel)
        panel.open_data_set(root, "SAG_1")
        qtbot.waitUntil(lambda: panel.session.case is not None and panel.session.case.is_loaded)
        panel.planes.set_layout(Layout.PLANES)
        qtbot.waitUntil(lambda: not panel.planes.is_building)
        qtbot.wait(120)
    forget_mask(panel)
    panel.session.set_reader("Ana")
    assert len(panel.planes.panes) == 2
    assert panel.session.masks == {}
    return panel


def paint_in(qtbot, panel, plane):
    """Press a sphere brush up and to the left of the middle of a plane's canvas."""
    panel.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: panel.editing.live is not None)
    panel.painting.set_tool(PaintTool.SPHERE)
    panel.painting.set_brush(Brush(tool=Tool.SPHERE, radius_mm=3.0))
    pane = next(pane for pane in panel.planes.panes if pane.kind.plane == plane)
    canvas = panel.planes.window.canvas(pane)
    at = QPoint(canvas.width() // 2 - AWAY, canvas.height() // 2 - AWAY)
    QTest.mouseMove(canvas, at)
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=at)
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=at)
    qtbot.waitUntil(lambda: panel.editing.is_dirty)


def saved_centre_mm(qtbot, panel):
    """Save, and return the middle of the saved mask in RAS mm as nibabel reads it."""
    panel.editing.save_if_needed(lambda _saved: None)
    path = panel.session.workspace.refined("Ana", "SAG_1")
    qtbot.waitUntil(lambda: path.exists() and not panel.editing.is_dirty)
    image = nib.load(path)
    voxels = np.argwhere(np.asarray(image.dataobj) > 0)
    return image.affine, nib.affines.apply_affine(image.affine, voxels.mean(axis=0))


@pytest.mark.parametrize(
    ("stack", "neurological"),
    [
        pytest.param(0, False, marks=pytest.mark.night),
        pytest.param(0, True, marks=pytest.mark.night),
        pytest.param(20, False, marks=pytest.mark.night),
        (20, True),
    ],
    indirect=["stack"],
)
def test_a_stroke_in_the_axial_plane_of_a_sagittal_stack_lands_on_the_side_that_is_seen(
    qtbot, docked, stack, picture, neurological
):
    _, affine = stack
    assert docked.session.case.grid.acquisition_plane == "sagittal"
    docked.planes.set_sides(Sides(neurological))
    paint_in(qtbot, docked, "axial")
    picture(docked.viewer, f"70_sagittal_{affine[0, 2]:.1f}_{neurological}")
    written, (right, anterior, _) = saved_centre_mm(qtbot, docked)
    np.testing.assert_allclose(written, affine, atol=1e-6)
    along_right, along_anterior = affine[:2, 2] / 2.0, -affine[:2, 0]
    seen_right = np.dot((right, anterior), along_right)
    assert np.dot((right, anterior), along_anterior) > 2
    assert seen_right < -2 if neurological else seen_right > 2
