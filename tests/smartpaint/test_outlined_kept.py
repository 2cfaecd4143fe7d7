"""What grew before the newest outline is kept: the same bits as without, whatever came before."""

import gc
import threading
import weakref
from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Cancelled, listening
from napari_mamamia.smartpaint.brush.features import Channel, FeatureImages
from napari_mamamia.smartpaint.evidence import outlined
from napari_mamamia.smartpaint.evidence.outlined import grow_outlines
from napari_mamamia.smartpaint.grow.start import GrowSettings, Outline

SHAPE, SPACING = (20, 36, 40), (2.0, 1.0, 1.0)


def ball(centre, radius_mm):
    z, y, x = (
        ((np.arange(n) - c) * s) ** 2 for n, c, s in zip(SHAPE, centre, SPACING, strict=True)
    )
    return z[:, None, None] + y[:, None] + x <= radius_mm**2


LEFT = ball((10, 18, 14), 10)
RIGHT = ball((12, 18, 26), 8)


def images_of(seed, *, step=5.0):
    """Two lesions that touch, uneven enough that image and shape disagree."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(0, 1, SHAPE) + step * (LEFT | RIGHT) + 2 * (np.arange(40) > 22)
    grid = Grid(SHAPE, np.diag([*SPACING[::-1], 1.0]))
    case = Case("A", grid, signal.astype(np.float32)[np.newaxis], (Phase(0),))
    return FeatureImages(case, (Channel("image", 0, None, 1.0),))


def outline(mask, axis, index):
    return Outline(axis, index, mask.take(index, axis=axis))


def redrawn(one):
    """The same plane, drawn a voxel farther on."""
    return Outline(one.axis, one.index, np.roll(one.mask, 1, axis=1) | one.mask)


PLANES = [outline(LEFT, *at) for at in ((0, 10), (0, 7), (1, 18), (0, 13), (2, 14), (0, 6))]
OTHERS = [outline(RIGHT, 0, index) for index in (12, 10, 14)]


def grow_anew(images, outlines, settings=None):
    """As where nothing was grown before: what is kept belongs to the images' record."""
    return grow_outlines(replace(images), images.case.grid, outlines, settings)


def require_same(one, other):
    assert one.box == other.box
    assert one.notes == other.notes
    np.testing.assert_array_equal(one.mask, other.mask)


def count_grown(monkeypatch):
    """Return the list to which each growth by the image adds what it starts from."""
    starts = []
    grow_start = outlined.grow_start

    def grow(images, start, settings):
        starts.append(start)
        return grow_start(images, start, settings)

    monkeypatch.setattr(outlined, "grow_start", grow)
    return starts


def holds(start, one):
    """Return whether an outline is among those that a growth starts from."""
    at = one.index - start.box.start[one.axis]
    inside = 0 <= at < start.box.shape[one.axis]
    return inside and bool((start.drawn.take(at, axis=one.axis)).sum() > 60)


@pytest.mark.parametrize("step", [5.0, 1.5, 0.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_order_of_drawing_gives_the_bits_of_a_growth_from_nothing(seed, step):
    """Drawn, drawn anew, in another order, taken back, of another lesion, to another limit."""
    images, rng = images_of(seed, step=step), np.random.default_rng(seed)
    drawn: list[Outline] = []
    settings = None
    for _ in range(16):
        what = rng.integers(8)
        if what < 4 and len(drawn) < len(PLANES):
            drawn = [*drawn, PLANES[len(drawn)]]
        elif what == 4 and drawn:
            at = int(rng.integers(len(drawn)))
            drawn = [redrawn(one) if k == at else one for k, one in enumerate(drawn)]
        elif what == 5:
            drawn = [drawn[k] for k in rng.permutation(len(drawn))]
        elif what == 6:
            drawn = drawn[: max(len(drawn) - 2, 0)]
        else:
            settings = GrowSettings(radius_mm=14.0) if settings is None else None
        for outlines in (drawn, OTHERS[: int(rng.integers(4))]):
            if outlines:
                grown = grow_outlines(images, images.case.grid, outlines, settings)
                require_same(grown, grow_anew(images, outlines, settings))


def test_equal_outlines_on_another_case_or_grid_grow_there():
    one, other = images_of(1), images_of(2)
    grow_outlines(one, one.case.grid, PLANES[:3])
    require_same(grow_outlines(other, other.case.grid, PLANES[:3]), grow_anew(other, PLANES[:3]))
    finer = Grid(SHAPE, np.diag([0.5, 0.5, 1.0, 1.0]))
    require_same(
        grow_outlines(one, finer, PLANES[:3]), grow_outlines(replace(one), finer, PLANES[:3])
    )


def test_a_further_outline_grows_no_set_without_it_again(monkeypatch):
    images, starts = images_of(1), count_grown(monkeypatch)
    for n in range(1, 6):
        starts.clear()
        grow_outlines(images, images.case.grid, PLANES[:n])
        assert starts
        assert all(holds(start, PLANES[n - 1]) for start in starts)
        assert len(starts) <= 4
    starts.clear()
    grow_outlines(images, images.case.grid, PLANES[:5])
    assert not starts


def test_within_one_call_no_set_is_grown_twice(monkeypatch):
    images, starts = images_of(1), count_grown(monkeypatch)
    grow_outlines(images, images.case.grid, PLANES[:4])
    drawn = [(start.box, start.drawn.tobytes()) for start in starts]
    assert len(set(drawn)) == len(drawn) > 4


def test_what_is_drawn_into_after_growing_is_another_outline():
    """A reader's mask changes in place; what is kept must not be a view of it."""
    images = images_of(1)
    planes = [replace(one, mask=one.mask.copy()) for one in PLANES[:3]]
    grow_outlines(images, images.case.grid, planes)
    planes[0].mask[12:15, 2:30] = True
    require_same(grow_outlines(images, images.case.grid, planes), grow_anew(images, planes))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_region_that_the_caller_changes_stays_as_it_grew(n):
    images = images_of(1, step=0.0)
    grown = grow_outlines(images, images.case.grid, PLANES[:n])
    grown.mask[:] = True
    require_same(grow_outlines(images, images.case.grid, PLANES[:n]), grow_anew(images, PLANES[:n]))
    require_same(
        grow_outlines(images, images.case.grid, PLANES[: n + 1]), grow_anew(images, PLANES[: n + 1])
    )


def test_a_growth_that_is_stopped_anywhere_leaves_nothing_half():
    images, wanted = images_of(1), grow_anew(images_of(1), PLANES[:4])
    grow_outlines(images, images.case.grid, PLANES[:2])
    n_reports = 0

    def count(_):
        nonlocal n_reports
        n_reports += 1

    with listening(count):
        grow_anew(images, PLANES[:4])
    for last in range(0, n_reports, max(n_reports // 25, 1)):
        heard = iter(range(last))

        def stop(_, heard=heard):
            if next(heard, None) is None:
                raise Cancelled

        before = outlined._KEPT[images]
        found = set(before.found)
        with listening(stop):
            try:
                grow_outlines(images, images.case.grid, PLANES[:4])
            except Cancelled:
                assert outlined._KEPT[images] is before
                assert set(before.found) == found
            else:
                break
    require_same(grow_outlines(images, images.case.grid, PLANES[:4]), wanted)


def test_an_outline_that_is_refused_leaves_what_was_kept():
    images = images_of(1)
    grow_outlines(images, images.case.grid, PLANES[:2])
    before = outlined._KEPT[images]
    empty = Outline(0, 3, np.zeros(SHAPE[1:], bool))
    for bad in ((*PLANES[:2], empty), (), (*PLANES[:2], Outline(0, 10, np.ones((3, 3), bool)))):
        with pytest.raises(CaseError):
            grow_outlines(images, images.case.grid, bad)
        assert outlined._KEPT[images] is before


def test_what_is_kept_stays_small_and_goes_with_the_images():
    images = images_of(1)
    sizes = []
    for n in range(40):
        drawn = [np.roll(one.mask, n % 7, axis=1) for one in PLANES[:4]]
        planes = [Outline(one.axis, one.index, m) for one, m in zip(PLANES, drawn, strict=False)]
        grow_outlines(images, images.case.grid, planes)
        sizes.append(len(outlined._KEPT[images].found))
    assert max(sizes) <= 4 * 3
    gone, n_kept = weakref.ref(images), len(outlined._KEPT)
    del images
    gc.collect()
    assert gone() is None
    assert len(outlined._KEPT) < n_kept


def test_threads_that_grow_at_once_do_not_mix():
    images = images_of(1)
    sets = [PLANES[:3], PLANES[:4], OTHERS, PLANES[1:4]]
    wanted = [grow_anew(images, planes) for planes in sets]
    wrong = []

    def grow(at):
        for _ in range(3):
            grown = grow_outlines(images, images.case.grid, sets[at])
            if not np.array_equal(grown.mask, wanted[at].mask):
                wrong.append(at)

    threads = [threading.Thread(target=grow, args=(at,)) for at in range(len(sets))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_set_grown_on_blocks_does_not_stand_for_the_set_grown_on_voxels(monkeypatch):
    """Sets with one outline left out are grown on blocks where their box is large."""
    images, starts = images_of(1), count_grown(monkeypatch)
    growth = outlined._Growth(images, images.case.grid, GrowSettings())
    planes = tuple(PLANES[:2])
    fine, enough, coarse = (growth._grow_by_image(planes, most) for most in (None, 99_999, 2_000))
    assert len(starts) == 2
    assert enough is fine
    assert not np.array_equal(coarse.mask, fine.mask)
    shapes = [growth._grow_by_shape(planes, most) for most in (400_000, 99_999, 2_000)]
    assert shapes[0] is shapes[1]
    assert shapes[0] is not shapes[2]
