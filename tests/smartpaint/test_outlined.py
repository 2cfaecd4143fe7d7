"""Growth from several outlines: the shape they make together, and when the image is trusted."""

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.features import Channel, FeatureImages
from napari_mamamia.smartpaint.evidence import outlined, region
from napari_mamamia.smartpaint.evidence.outlined import grow_outlines
from napari_mamamia.smartpaint.evidence.region import interpolate_shape, measure_depth, planes_in
from napari_mamamia.smartpaint.grow.grow import grow
from napari_mamamia.smartpaint.grow.start import Outline

SHAPE, SPACING = (24, 50, 60), (2.0, 1.0, 1.0)


def ball(centre, radius_mm, shape=SHAPE, spacing=SPACING):
    z, y, x = (
        ((np.arange(n) - c) * s) ** 2 for n, c, s in zip(shape, centre, spacing, strict=True)
    )
    return z[:, None, None] + y[:, None] + x <= radius_mm**2


def images_of(bright, *, step=8.0, seed=0, spacing=SPACING):
    signal = np.random.default_rng(seed).normal(0, 1, bright.shape) + step * bright
    grid = Grid(bright.shape, np.diag([*spacing[::-1], 1.0]))
    case = Case("A", grid, signal.astype(np.float32)[np.newaxis], (Phase(0),))
    return FeatureImages(case, (Channel("image", 0, None, 1.0),))


def outline(mask, axis, index):
    return Outline(axis, index, mask.take(index, axis=axis))


def dense(grown, shape=SHAPE):
    mask = np.zeros(shape, dtype=bool)
    mask[grown.box.slices] = grown.mask
    return mask


def dice(a, b):
    return 2 * np.count_nonzero(a & b) / (np.count_nonzero(a) + np.count_nonzero(b))


LEFT = ball((12, 25, 20), 12)
# Its neighbour is as bright, and they touch: no image tells where one ends.
BOTH = LEFT | ball((19, 25, 34), 15)


def grown_from(images, *outlines):
    return grow_outlines(images, images.case.grid, outlines)


def test_one_outline_grows_as_it_always_did():
    images = images_of(LEFT)
    one = grown_from(images, outline(LEFT, 0, 12))
    before = grow(images, images.case.grid, [outline(LEFT, 0, 12)])
    assert one.box == before.box
    np.testing.assert_array_equal(one.mask, before.mask)


def test_outlines_of_one_plane_are_one_outline():
    images = images_of(LEFT)
    drawn = outline(LEFT, 0, 12)
    np.testing.assert_array_equal(
        grown_from(images, drawn, drawn).mask, grown_from(images, drawn).mask
    )


@pytest.mark.parametrize("more", [(9,), (7, 17), (8, 10, 15)])
def test_outlines_keep_the_region_out_of_a_neighbour_that_looks_the_same(more):
    images = images_of(BOTH)
    one = dice(dense(grown_from(images, outline(LEFT, 0, 12))), LEFT)
    drawn = [outline(LEFT, 0, index) for index in (12, *more)]
    several = dice(dense(grown_from(images, *drawn)), LEFT)
    assert one < 0.9
    assert several > max(0.915, one + 0.02)


def test_outlines_across_different_axes_set_the_shape_together():
    images = images_of(BOTH)
    drawn = (outline(LEFT, 0, 12), outline(LEFT, 1, 25), outline(LEFT, 2, 20))
    region_mask = dense(grown_from(images, *drawn))
    assert dice(region_mask, LEFT) > 0.9
    for one in drawn:
        steps = [s for a, s in enumerate(SPACING) if a != one.axis]
        plane = region_mask.take(one.index, axis=one.axis)
        assert plane[distance_transform_edt(one.mask, sampling=steps) > 1.5].all()
        assert not plane[distance_transform_edt(~one.mask, sampling=steps) > 1.5].any()


def draw_l():
    """An L: between two outlines of it the shape alone would be a slanted bar."""
    lesion = np.zeros(SHAPE, dtype=bool)
    lesion[4:12, 15:25, 10:20] = True
    lesion[10:20, 15:25, 10:40] = True
    return lesion


def test_where_the_image_finds_each_outline_from_the_others_it_is_trusted():
    lesion = draw_l()
    images = images_of(lesion)
    drawn = [outline(lesion, 0, 6), outline(lesion, 0, 15)]
    assert dice(dense(grown_from(images, *drawn)), lesion) > 0.95


def test_a_second_outline_that_lacks_a_corner_does_not_undo_what_the_first_one_found():
    """The image was not trusted any more then, and the shape's slanted bar taken: .99 > .93."""
    lesion = draw_l()
    images, drawn = images_of(lesion), lesion.copy()
    drawn[6, 22:25, 10:14] = False
    first = dice(dense(grown_from(images, outline(lesion, 0, 11))), lesion)
    both = dice(dense(grown_from(images, outline(lesion, 0, 11), outline(drawn, 0, 6))), lesion)
    assert first > 0.98
    assert both > first - 0.01


def test_without_contrast_outlines_make_their_shape_and_a_note_says_so():
    images = images_of(LEFT, step=0.0)
    drawn = [outline(LEFT, 0, index) for index in (8, 12, 16)]
    grown = grown_from(images, *drawn)
    assert dice(dense(grown), LEFT) > 0.85
    assert any("look alike" in note for note in grown.notes)


def test_with_contrast_no_note_doubts_the_image():
    drawn = [outline(LEFT, 0, index) for index in (8, 12, 16)]
    assert not any("look alike" in note for note in grown_from(images_of(LEFT), *drawn).notes)


def test_outlines_that_do_not_overlap_are_joined_by_a_bridge():
    first, second = ball((8, 25, 15), 7), ball((16, 25, 40), 7)
    drawn = (outline(first, 0, 8), outline(second, 0, 16))
    mask = dense(grown_from(images_of(first | second, step=0.0), *drawn))
    assert mask[8, 25, 15]
    assert mask[16, 25, 40]
    assert mask[12, 25, 27]


def test_outlines_at_the_border_of_the_image_go_up_to_it():
    lesion = ball((0, 0, 30), 14)
    drawn = [outline(lesion, 0, index) for index in (0, 3)]
    mask = dense(grown_from(images_of(lesion), *drawn))
    assert dice(mask, lesion) > 0.93
    assert mask[0, 0, 30]


def test_values_that_are_not_finite_say_nothing():
    images = images_of(BOTH)
    signal = images.case.signal.copy()
    signal[0, 10:12, 20:30, 15:25] = np.nan
    signal[0, 14, 25, 20] = np.inf
    images = FeatureImages(
        Case("A", images.case.grid, signal, (Phase(0),)), images.channels, images.missing
    )
    drawn = [outline(LEFT, 0, index) for index in (8, 12, 16)]
    assert dice(dense(grown_from(images, *drawn)), LEFT) > 0.9


def test_an_image_without_any_value_keeps_to_the_shape():
    signal = np.full((1, *SHAPE), np.nan, np.float32)
    grid = Grid(SHAPE, np.diag([*SPACING[::-1], 1.0]))
    images = FeatureImages(Case("A", grid, signal, (Phase(0),)), (Channel("image", 0, None, 1.0),))
    grown = grown_from(images, *[outline(LEFT, 0, index) for index in (8, 12, 16)])
    assert dice(dense(grown), LEFT) > 0.8
    assert any("look alike" in note for note in grown.notes)


def test_a_single_voxel_in_two_planes_and_an_image_of_one_slice_are_no_trouble():
    images = images_of(LEFT)
    dots = []
    for index in (10, 14):
        plane = np.zeros(SHAPE[1:], dtype=bool)
        plane[25, 20] = True
        dots.append(Outline(0, index, plane))
    mask = dense(grown_from(images, *dots))
    assert mask[10, 25, 20]
    assert mask[14, 25, 20]
    flat = ball((0, 25, 20), 12, (1, 50, 60))
    drawn = (Outline(0, 0, flat[0]), Outline(1, 25, flat[:, 25]))
    assert dice(dense(grown_from(images_of(flat), *drawn), flat.shape), flat) > 0.95


def test_a_mask_of_the_whole_volume_comes_back():
    full = np.ones(SHAPE, dtype=bool)
    mask = dense(grown_from(images_of(full), outline(full, 0, 4), outline(full, 0, 18)))
    assert mask[4].all()
    assert mask[18].all()


def test_a_large_box_is_settled_on_blocks_and_stays_close(monkeypatch):
    images = images_of(BOTH)
    drawn = [outline(LEFT, 0, index) for index in (8, 12, 16)]
    fine = dense(grown_from(images, *drawn))
    monkeypatch.setattr(region.settle_region, "__defaults__", (12_000,))
    monkeypatch.setattr(outlined._Growth._grow_by_shape, "__defaults__", (12_000,))
    again = FeatureImages(images.case, images.channels)  # what is kept belongs to the record
    coarse = dense(grown_from(again, *drawn))
    assert not np.array_equal(coarse, fine)
    assert dice(coarse, fine) > 0.95


def test_no_outline_and_an_empty_one_are_refused():
    images = images_of(LEFT)
    with pytest.raises(CaseError, match="an outline for growth"):
        grown_from(images)
    with pytest.raises(CaseError, match="at least one voxel"):
        grown_from(images, outline(LEFT, 0, 12), Outline(0, 3, np.zeros(SHAPE[1:], bool)))


def test_the_same_outlines_give_the_same_bits():
    images = images_of(BOTH)
    drawn = [outline(LEFT, 0, 12), outline(LEFT, 1, 25)]
    again = FeatureImages(images.case, images.channels)  # what is kept belongs to the record
    np.testing.assert_array_equal(grown_from(images, *drawn).mask, grown_from(again, *drawn).mask)


def test_a_depth_is_the_distance_to_the_edge_half_way_between_voxels():
    mask = np.zeros((1, 9), dtype=bool)
    mask[0, 3:6] = True
    np.testing.assert_allclose(
        measure_depth(mask, (1.0, 2.0))[0], [-5.5, -3.5, -1.5, 1.5, 3.5, 1.5, -1.5, -3.5, -5.5]
    )
    assert np.isposinf(measure_depth(np.ones((2, 2), bool), (1, 1))).all()
    assert np.isneginf(measure_depth(np.zeros((2, 2), bool), (1, 1))).all()


def test_between_two_outlines_the_depth_is_their_mean_by_distance():
    wide, narrow = ball((0, 25, 30), 10), ball((0, 25, 30), 4)
    drawn = [Outline(0, 2, wide[0]), Outline(0, 10, narrow[0])]
    planes = planes_in(drawn, Box.whole(SHAPE))
    shape = interpolate_shape(planes, SHAPE, SPACING)
    at = (25, 30)
    first, second = (float(shape.depth_mm[z][at]) for z in (2, 10))
    assert shape.depth_mm[4][at] == pytest.approx(0.75 * first + 0.25 * second, rel=1e-5)
    # beyond: 0.6 mm less for each mm
    assert shape.depth_mm[12][at] == pytest.approx(second - 0.6 * 4, abs=1e-4)
    assert shape.beyond_mm[12].max() == pytest.approx(4.0, rel=1e-4)
    assert not shape.beyond_mm[2:11].any()
