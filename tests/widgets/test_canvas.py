from dataclasses import dataclass

import numpy as np
import pytest
from napari.settings import get_settings

from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.viewer.canvas import CanvasText, edge_letters
from napari_mamamia.widgets.viewer.contrasting import WindowLevelDrag
from napari_mamamia.widgets.viewer.scene import Scene

SAGITTAL = np.array(
    [[0.0, 0.0, 3.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
)
CORONAL = np.array(
    [[-1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
)


@pytest.fixture
def scene(viewer):
    return Scene(viewer)


@pytest.fixture
def text(scene):
    return CanvasText(scene)


def shown(viewer):
    return {
        name.removeprefix("mamamia_"): overlay.text
        for name, overlay in viewer.canvas.overlays.items()
        if name.startswith("mamamia_") and overlay.visible
    }


@pytest.mark.parametrize(
    ("affine", "expected"),
    [
        (np.diag([-1.0, 1.0, 3.0, 1.0]), "APRL"),
        (np.diag([1.0, 1.0, 3.0, 1.0]), "APRL"),
        (np.diag([-1.0, -1.0, 3.0, 1.0]), "APRL"),
        (SAGITTAL, "SIAP"),
        (CORONAL, "SIRL"),
    ],
)
def test_letters_in_the_acquisition_plane_are_those_of_radiology(affine, expected):
    letters = edge_letters(Grid((5, 6, 7), affine), (1, 2))
    assert "".join(letters[edge] for edge in ("top", "bottom", "left", "right")) == expected


def test_letters_follow_the_axes_that_are_displayed():
    grid = Grid((5, 6, 7), np.diag([-1.0, 1.0, 3.0, 1.0]))
    # the slice axis runs to superior down the screen: inferior is on top
    assert edge_letters(grid, (0, 2)) == {"top": "I", "bottom": "S", "left": "R", "right": "L"}


def test_letters_follow_a_reversed_camera():
    grid = Grid((5, 6, 7), np.diag([-1.0, 1.0, 3.0, 1.0]))
    assert edge_letters(grid, (1, 2), (False, True))["left"] == "L"


def test_there_are_no_letters_in_three_dimensions(scene, text, viewer, case):
    scene.show_case(case, (0, 1))
    assert set(shown(viewer)) == {"top", "bottom", "left", "right", "phase"}
    viewer.dims.ndisplay = 3
    assert set(shown(viewer)) == {"phase"}


def test_the_corner_names_the_phase_and_its_time(scene, text, viewer, case):
    scene.show_case(case, (0, 1))
    scene.go_to_phase(2)
    assert shown(viewer)["phase"] == "post 2 · 180 s"
    scene.go_to_phase(0)
    assert shown(viewer)["phase"] == "pre · 0 s"


def test_a_phase_that_is_not_read_yet_says_so(scene, text, viewer, case):
    scene.show_case(case, (0, 1))
    scene.go_to_phase(2)
    text.set_loaded(frozenset({1}))
    assert shown(viewer)["phase"] == "post 2 · still reading"
    text.set_loaded(None)
    assert shown(viewer)["phase"] == "post 2 · 180 s"


def test_a_subtraction_is_named_as_one(scene, text, viewer, case):
    scene.show_case(case, (0, 1))
    array = np.zeros(case.grid.shape, np.float32)
    scene.overlays.show_subtraction(tag_for(case, Role.SUBTRACTION, phase=2), array, (0.0, 1.0))
    assert shown(viewer)["phase"] == "post 2 − pre · 180 s"


def test_scale_bar_letters_and_black_surround_go_with_the_case(scene, text, viewer, case):
    scene.show_case(case, (0, 1))
    bar = viewer.canvas.overlays["scale_bar"]
    assert bar.visible
    # napari's own of 150 pixels runs into the letter of a narrow view
    assert bar.length * viewer.scene.camera.zoom <= viewer.canvas.size[1] / 4
    assert tuple(viewer.canvas.background_color[:3]) == (0.0, 0.0, 0.0)
    viewer.layers.clear()
    assert shown(viewer) == {}
    assert not viewer.canvas.overlays["scale_bar"].visible
    assert viewer.canvas.background_color_override is None


@dataclass
class Mouse:
    type: str
    pos: tuple
    button: int = 3
    handled: bool = False


def drag(viewer, *points, button=3):
    """Press at the first point, move over the others, let go at the last."""
    event = Mouse("mouse_press", points[0], button)
    during = viewer.mouse_drag_callbacks[-1](viewer, event)
    next(during, None)
    for point in points[1:]:
        event.type, event.pos = "mouse_move", point
        next(during, None)
    event.type = "mouse_release"
    next(during, None)


@pytest.fixture
def image(scene, case):
    WindowLevelDrag(scene)
    return scene.show_case(case, (100.0, 300.0))


def test_a_drag_to_the_right_widens_the_window(viewer, image):
    drag(viewer, (50, 50), (250, 50))
    # 200 of 400 pixels: half as wide again, about the same level of 200
    assert tuple(image.contrast_limits) == pytest.approx((50.0, 350.0))


def test_a_drag_up_lowers_the_level_so_that_the_image_gets_brighter(viewer, image):
    drag(viewer, (50, 250), (50, 50))
    assert tuple(image.contrast_limits) == pytest.approx((0.0, 200.0))


def test_a_drag_far_to_the_left_never_inverts_the_window(viewer, image):
    drag(viewer, (900, 50), (0, 50))
    low, high = image.contrast_limits
    assert low < high


def test_a_drag_with_the_left_button_leaves_the_window_alone(viewer, image):
    drag(viewer, (50, 50), (250, 50), button=1)
    assert tuple(image.contrast_limits) == (100.0, 300.0)


def test_a_drag_acts_on_the_subtraction_where_that_is_shown(viewer, image, scene, case):
    array = np.zeros(case.grid.shape, np.float32)
    scene.overlays.show_subtraction(tag_for(case, Role.SUBTRACTION, phase=1), array, (0.0, 10.0))
    drag(viewer, (50, 50), (450, 50))
    assert tuple(scene.layer(Role.SUBTRACTION).contrast_limits) == pytest.approx((-5.0, 15.0))
    assert tuple(image.contrast_limits) == (100.0, 300.0)


@pytest.mark.parametrize(
    ("width", "sizes"),
    [
        *((900, (11, 14)), (600, (11, 14)), (450, (8, 10))),
        # lines are broken below 440
        *((400, (9, 11)), (270, (8, 10)), (100, (6, 8))),
    ],
)
def test_on_a_narrow_canvas_texts_are_smaller_so_that_they_do_not_meet(
    viewer, text, width, sizes, monkeypatch
):
    monkeypatch.setattr("napari_mamamia.widgets.viewer.canvas.adapter.text_scale", lambda: 1.0)
    viewer.canvas.size = (600, width)
    overlays = viewer.canvas.overlays
    # napari cuts the fraction off where it measures a plate, and draws the text with it
    written = [overlays[f"mamamia_{name}"].font_size for name in ("phase", "top")]
    assert written == pytest.approx(sizes, abs=0.02)
    assert tuple(map(int, written)) == sizes


@pytest.mark.parametrize(("points", "sizes"), [(9, (11, 14)), (14, (17, 22)), (18, (22, 28))])
def test_texts_over_the_image_follow_the_size_of_naparis_texts(
    viewer, text, points, sizes, monkeypatch
):
    monkeypatch.setattr("napari_mamamia.widgets.viewer.canvas.adapter.text_scale", lambda: 1.0)
    viewer.canvas.size = (900, 1400)
    overlays = viewer.canvas.overlays
    appearance = get_settings().appearance
    before = appearance.font_size
    try:
        appearance.font_size = points
        written = [overlays[f"mamamia_{name}"].font_size for name in ("phase", "top")]
        assert written == pytest.approx(sizes, abs=0.02)
    finally:
        appearance.font_size = before
