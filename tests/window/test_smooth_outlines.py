"""Outlines of masks as they stand on the screen: smooth, cased, where the mask ends."""

from dataclasses import replace

import numpy as np
import pytest
from napari.layers import Labels
from napari.utils.colormaps import DirectLabelColormap
from one_window import napari_window
from qtpy.QtWidgets import QApplication

from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.adapter.labels import trim_contours
from napari_mamamia.widgets.adapter.outlines import LineStyle, draw_smooth_outlines
from napari_mamamia.widgets.base.layers import (
    LayerTag,
    Role,
    find_line_style,
    mark_painted,
    mask_layer,
    style_mask,
)
from napari_mamamia.widgets.controls.colours import MASK_COLOURS, OTHER_LESION
from napari_mamamia.widgets.viewer.layer_stack import create_layer

pytestmark = pytest.mark.window

GREEN = MASK_COLOURS["refined"]
CENTRE, RADIUS = (40.3, 50.6), 17.2


def rgb_of(colour):
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])


def is_colour(picture, colour, tolerance=40):
    return np.abs(picture[..., :3].astype(int) - rgb_of(colour)).max(axis=-1) <= tolerance


def contrast_to_black(colour):
    """Return the contrast by WCAG 2.2: (L1 + 0.05) / (L2 + 0.05) of relative luminances."""
    share = rgb_of(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return (linear @ [0.2126, 0.7152, 0.0722] + 0.05) / 0.05


class Stage:
    """A window with one grey image and one mask, five pixels of the screen for a voxel."""

    def __init__(self, viewer, look):
        self.viewer = viewer
        draw_smooth_outlines(main_view(viewer), lambda _layer: look)
        self.grey = viewer.add_image(np.zeros((3, 80, 100), np.uint8), contrast_limits=(0, 255))
        rows, columns = np.mgrid[:80, :100]
        disc = np.hypot(rows - CENTRE[0], columns - CENTRE[1]) <= RADIUS
        volume = np.zeros((3, 80, 100), np.uint8)
        volume[1] = disc
        colours = {0: "transparent", None: GREEN}
        shown = DirectLabelColormap(color_dict=colours)
        self.mask = Labels(volume, colormap=shown, opacity=1.0)
        trim_contours(self.mask)
        self.mask.contour = 1
        viewer.add_layer(self.mask)
        viewer.dims.set_current_step(0, 1)
        self.zoom = 5.0
        viewer.scene.camera.zoom = self.zoom
        viewer.scene.camera.center = (0.0, 40.0, 50.0)

    def picture(self):
        for _ in range(4):
            QApplication.processEvents()
        return self.viewer.screenshot(canvas_only=True, flash=False)

    def voxels_from_centre(self, where):
        """Return how far true pixels lie from the disc's centre, in voxels."""
        rows, columns = np.nonzero(where)
        height, width = where.shape
        row = (rows + 0.5 - height / 2) / self.zoom + 40.0
        column = (columns + 0.5 - width / 2) / self.zoom + 50.0
        return np.hypot(row - CENTRE[0], column - CENTRE[1])


@pytest.fixture(scope="module")
def viewer_of_module(qapp):
    with napari_window() as made:
        yield made


@pytest.fixture
def viewer(viewer_of_module):
    """The module's viewer, 1400 x 900, without layers."""
    viewer_of_module.layers.clear()
    QApplication.processEvents()
    return viewer_of_module


def test_a_disc_has_a_smooth_line_where_it_ends_readable_on_any_grey(viewer):
    stage = Stage(viewer, LineStyle(GREEN))
    for grey in (0, 128, 255):
        stage.grey.data = np.full((3, 80, 100), grey, np.uint8)
        picture = stage.picture()
        line = is_colour(picture, GREEN)
        away = stage.voxels_from_centre(line) - RADIUS
        # Corners of the voxels' own edge lie .7 off; half of the line's width is .2 voxels.
        assert np.abs(away).max() < 0.75, grey
        assert np.sqrt(np.mean(away**2)) < 0.3, grey
        # All the way round, two pixels wide or so: 2 pi 17.2 voxels of 5 pixels.
        assert 0.6 < line.sum() / (2 * np.pi * RADIUS * stage.zoom * 2.0) < 1.4, grey
        dark = is_colour(picture, "#000000")
        beside = stage.voxels_from_centre(dark) - RADIUS
        assert (np.abs(beside) < 0.9).sum() > 0.6 * 2 * np.pi * RADIUS * stage.zoom, grey
    assert min(map(contrast_to_black, (*MASK_COLOURS.values(), OTHER_LESION))) >= 3.0


def test_the_line_follows_the_layers_eye_opacity_fill_slice_and_data(viewer):
    stage = Stage(viewer, LineStyle(GREEN))

    def n_green():
        return int(is_colour(stage.picture(), GREEN).sum())

    smooth = n_green()
    assert smooth > 500
    stage.mask.visible = False
    assert n_green() == 0
    stage.mask.visible = True
    assert n_green() == smooth
    stage.mask.opacity = 0.3
    assert n_green() == 0
    stage.mask.opacity = 1.0
    stage.mask.contour = 0
    assert n_green() > 0.9 * np.pi * (RADIUS * stage.zoom) ** 2
    stage.mask.contour = 1
    assert n_green() == smooth
    viewer.dims.set_current_step(0, 2)
    assert n_green() == 0
    viewer.dims.set_current_step(0, 1)
    stage.mask.data[1, 60:70, 10:20] = 1
    stage.mask.refresh()
    assert n_green() > smooth + 4 * 9 * stage.zoom
    stage.mask.mode = "paint"
    # True voxels: a line one voxel, here five pixels, wide.
    assert n_green() > 2 * smooth
    stage.mask.mode = "pan_zoom"
    viewer.layers.remove(stage.mask)
    assert n_green() == 0


def test_dashes_leave_gaps_through_which_what_lies_below_is_seen(viewer):
    stage = Stage(viewer, LineStyle(GREEN, stroke=10, period=20))
    stage.grey.data = np.full((3, 80, 100), 255, np.uint8)
    picture = stage.picture()
    whole = 2 * np.pi * RADIUS * stage.zoom * 2.0
    assert 0.25 < is_colour(picture, GREEN).sum() / whole < 0.75
    dark = is_colour(picture, "#000000", tolerance=90)
    near = np.abs(stage.voxels_from_centre(dark) - RADIUS) < 1.0
    assert near.sum() < 0.75 * whole


def test_a_mask_that_is_no_ones_keeps_naparis_own_contour(viewer):
    smooth = is_colour(Stage(viewer, LineStyle(GREEN)).picture(), GREEN).sum()
    viewer.layers.clear()
    assert is_colour(Stage(viewer, None).picture(), GREEN).sum() > 1.5 * smooth


def test_the_painted_lesion_is_told_from_the_others_by_colour_dashes_and_width(viewer):
    """Labels 1 and 5 would share a channel of four; 5 is the painted one."""
    stage = Stage(viewer, None)
    viewer.layers.remove(stage.mask)
    rows, columns = np.mgrid[:80, :100]
    volume = np.zeros((3, 80, 100), np.uint8)
    for label, column in ((1, 22), (2, 50), (5, 78)):
        volume[1][np.hypot(rows - 40, columns - column) <= 10] = label
    tag = LayerTag("A_1", Role.REFINED, Grid((3, 80, 100), np.eye(4)))
    draw_smooth_outlines(main_view(viewer), find_line_style)
    mask = create_layer(mask_layer(tag, volume))
    style_mask(mask)
    viewer.add_layer(mask)
    viewer.dims.set_current_step(0, 1)
    viewer.scene.camera.zoom, viewer.scene.camera.center = stage.zoom, (0.0, 40.0, 50.0)

    def shares():
        """How much of each disc's line is green, and grey, in lines of two pixels."""
        picture = stage.picture()
        middle, whole = picture.shape[1] / 2, 2 * np.pi * 10 * stage.zoom * 2.0
        columns = [np.nonzero(mask.data[1] == label)[1].mean() for label in (1, 2, 5)]
        sides = [(column - 50) * stage.zoom + middle for column in columns]
        parts = [picture[:, int(at - 65) : int(at + 65)] for at in sides]
        return [
            tuple(is_colour(part, colour).sum() / whole for colour in (GREEN, OTHER_LESION))
            for part in parts
        ]

    for grey in (0, 128, 255):
        stage.grey.data = np.full((3, 80, 100), grey, np.uint8)
        mark_painted(mask, 0)
        assert [round(green, 1) for green, _ in shares()] == pytest.approx([1.0] * 3, abs=0.3)
        for painted in (5, 1):
            mark_painted(mask, painted)
            told = dict(zip((1, 2, 5), shares(), strict=True))
            for label, (green, light) in told.items():
                is_painted = label == painted
                assert green > 0.7 if is_painted else green < 0.02, (grey, painted, label)
                # On white the casing's rim is as light as the others' line.
                if grey < 255:
                    bounds = (0.0, 0.05) if is_painted else (0.1, 0.6)
                    assert bounds[0] <= light < bounds[1], (grey, painted, label)
    # In the gaps of the others' line no line of a mask below is seen.
    below = create_layer(mask_layer(replace(tag, role=Role.PREDICTION), volume))
    style_mask(below)
    viewer.layers.insert(viewer.layers.index(mask), below)
    stage.grey.data = np.zeros((3, 80, 100), np.uint8)
    orange = is_colour(stage.picture(), MASK_COLOURS[Role.PREDICTION]).sum()
    assert orange < 0.02 * 3 * 2 * np.pi * 10 * stage.zoom * 2.0
    viewer.layers.remove(below)
    mask.contour = 0
    filled = stage.picture()
    assert is_colour(filled, GREEN).sum() == pytest.approx(np.pi * 50**2, rel=0.1)
    assert is_colour(filled, OTHER_LESION).sum() == pytest.approx(2 * np.pi * 50**2, rel=0.1)
