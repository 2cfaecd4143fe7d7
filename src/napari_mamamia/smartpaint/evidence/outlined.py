"""Growth from outlines: the outlines set the shape, and the image sets the edge near it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.evidence.region import (
    LEAST_APART,
    MOST_VOXELS,
    Belief,
    Planes,
    Shape,
    interpolate_shape,
    measure_depth,
    planes_in,
    settle_region,
)
from napari_mamamia.smartpaint.evidence.settle import find_holes
from napari_mamamia.smartpaint.grow.grow import Grown, grow_start
from napari_mamamia.smartpaint.grow.outlines import start_from_outlines
from napari_mamamia.smartpaint.grow.start import RING_MM, GrowSettings, Outline, Start

_STRENGTH: Final = 1.5  # log odds of the shape, deep inside it and far outside
_SOFT_MM: Final = 3.0  # of depth, over which the log odds rise to that
_FADE: Final = 1.3  # radii beyond the outermost outlines over which the log odds fall to 1/e
_OUT_OF_SHAPE: Final = (
    6.0,
    0.3,
)  # mm and radii by which the region may exceed the shape; the greater
_AT_OUTLINE: Final = 1.5  # mm by which the region may exceed it in an outlined plane
_SLOPE: Final = 0.7  # further mm for each mm of distance from the nearest of them
_LEAK: Final = 2.0  # volumes of the shape's region: a larger region has leaked
_SURPRISE: Final = 1.25  # times the regions from all outlines but one: one outline changes little
_MOST_EXCESS: Final = 0.02  # of an omitted outline: with a larger share the image is not trusted
_MOST_MISSED: Final = 0.3  # the same, for the share that growth from the others misses
_AS_MUCH: Final = 0.01  # excess over the share that the shape misses that still counts as equal
_MOST_LEFT_OUT: Final = 4  # outlines, the most recent ones, that are omitted in turn
_LEFT_OUT_VOXELS: Final = 100_000  # of a box; above this, blocks are fine enough to show a leak
_EARLIER_EXCESS: Final = (
    0.05  # of the newest outline: the previous region may exceed it by this share
)
_EARLIER_MISSED: Final = 0.1  # the same, for the share that it misses
_MOST_EARLIER: Final = 3  # outlines that are removed one after the other
_TOUCHING: Final = np.ones((3, 3, 3), np.bool_)

Bools = NDArray[np.bool_]
Drawn = tuple[Outline, ...]


def grow_outlines(
    images: FeatureImages,
    grid: Grid,
    outlines: Sequence[Outline],
    settings: GrowSettings | None = None,
) -> Grown:
    """Grow outlined planes of one lesion to a region in 3-D.

    A single plane is grown as in `grow`. Two or more outlines, along any axes, set the shape
    between them, and the image moves its edge. In each outlined plane, the result follows the
    outline within the contour tolerance. The outlines must be in the order in which they were
    drawn, because the region before the newest outline is used if it predicts that outline.

    Raises
    ------
    CaseError
        If there is no outline, or an outline is empty or not a plane of the grid.
    """
    settings = settings or GrowSettings()
    report_progress(0, 1, "Reading the outlines")
    for outline in outlines:
        outline.require_on(grid)
    growth = _Growth(images, grid, settings)
    planes = growth.recognise(_join_planes(outlines))
    grown = growth.grow(planes)
    growth.keep(planes)
    # A copy is used, because the cached result must not change with the caller's region.
    return replace(grown, mask=grown.mask.copy())


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Cached results of the last growth and of growth from its first outlines."""

    grid: Grid
    settings: GrowSettings
    found: dict[tuple[Any, ...], Any]


_KEPT: Final[WeakKeyDictionary[FeatureImages, _Kept]] = WeakKeyDictionary()
"""Cached growth results for each case's images.

The cache avoids growing the region before the newest outline a second time.
"""


class _Growth:
    """Growth from sets of outlines of one lesion, which reuses the results of earlier sets.

    A set is a tuple of outlines in the order in which they were drawn. Equal outlines are the same
    object (`recognise`), so sets are equal if all their outlines are equal.
    """

    def __init__(self, images: FeatureImages, grid: Grid, settings: GrowSettings) -> None:
        self._images = images
        self._grid = grid
        self._settings = settings
        self._starts: dict[Drawn, Start] = {}
        last = _KEPT.get(images)
        is_same = last is not None and last.grid is grid and last.settings == settings
        # A copy: a cancelled growth leaves the cache unchanged.
        self._found = dict(last.found) if last is not None and is_same else {}

    def recognise(self, outlines: Sequence[Outline]) -> Drawn:
        """Return the outlines, replaced by the equal objects that are already in the cache."""
        before = {plane for _, planes, *_ in self._found for plane in planes}
        return tuple(
            next((cached for cached in before if _is_same_outline(cached, outline)), outline)
            for outline in outlines
        )

    def keep(self, planes: Drawn) -> None:
        """Cache the results for these outlines, and for the same outlines without the last ones."""
        sets = {planes[: len(planes) - less] for less in range(_MOST_EARLIER + 1)}
        results = {key: value for key, value in self._found.items() if key[1] in sets}
        _KEPT[self._images] = _Kept(self._grid, self._settings, results)

    def grow(self, planes: Drawn, n_earlier: int = _MOST_EARLIER) -> Grown:
        """Grow outlines in the order in which they were drawn.

        The region before the newest outline is used if it predicts that outline. An additional
        outline can make the result of the image or of the shape worse; a majority of the three
        regions is then still correct.
        """
        by_image = self._grow_by_image(planes)
        if len(planes) < 2:
            return by_image
        by_shape = self._grow_by_shape(planes)
        if not n_earlier:
            return by_image if self._is_image_trusted(planes) else by_shape
        earlier = self.grow(planes[:-1], n_earlier - 1)
        excess, missed = self._compare_plane(earlier, planes[-1])
        if excess > _EARLIER_EXCESS or missed > _EARLIER_MISSED:
            return by_image if self._is_image_trusted(planes) else by_shape
        notes = by_image.notes
        if notes != by_shape.notes and not self._is_image_trusted(planes):
            notes = by_shape.notes
        return _join_regions(
            self._read_start(planes), self._grid, (by_image, by_shape, earlier), notes
        )

    def _read_start(self, planes: Drawn) -> Start:
        if planes not in self._starts:
            self._starts[planes] = start_from_outlines(
                self._images, self._grid, planes, self._settings
            )
        return self._starts[planes]

    def _grow_by_image(self, planes: Drawn, most_voxels: int | None = None) -> Grown:
        most = min(self._settings.most_voxels, most_voxels or self._settings.most_voxels)
        key = ("image", planes, self._limit_blocks(planes, most))
        if key not in self._found:
            settings = replace(self._settings, most_voxels=most)
            self._found[key] = grow_start(self._images, self._read_start(planes), settings)
        grown: Grown = self._found[key]
        return grown

    def _grow_by_shape(self, planes: Drawn, most_voxels: int = MOST_VOXELS) -> Grown:
        key = ("shape", planes, self._limit_blocks(planes, most_voxels))
        if key not in self._found:
            start = self._read_start(planes)
            self._found[key] = _grow_shape(self._images, self._grid, planes, start, most_voxels)
        grown: Grown = self._found[key]
        return grown

    def _limit_blocks(self, planes: Drawn, most_voxels: int) -> int | None:
        """Return `most_voxels`, or None if the box is so small that the limit has no effect."""
        is_fine = self._read_start(planes).inside.size <= most_voxels
        return None if is_fine else most_voxels

    def _is_image_trusted(self, planes: Drawn) -> bool:
        """Return whether growth from the image alone predicts each outline from the other outlines.

        The image is trusted if little of its region is farther outside the omitted outline than the
        tolerance, and if it misses no more of the deep inside than the outlines' shape. Voxels
        outside the outline indicate a leak, which continues between outlines, so one outline with a
        leak is enough to reject the image. The image is also rejected if its region is much larger
        than the outlines' shape, or than the regions from all other outlines that predicted the
        omitted outline.
        """
        key = ("trust", planes)
        if key not in self._found:
            self._found[key] = self._find_trust(planes)
        is_trusted: bool = self._found[key]
        return is_trusted

    def _find_trust(self, planes: Drawn) -> bool:
        n_voxels = int(np.count_nonzero(self._grow_by_image(planes).mask))
        if n_voxels > _LEAK * np.count_nonzero(self._grow_by_shape(planes).mask):
            return False
        missed_by_image, missed_by_shape, sizes = [], [], []
        for left_out in planes[-_MOST_LEFT_OUT:]:
            rest = tuple(outline for outline in planes if outline is not left_out)
            by_image = self._grow_by_image(rest, _LEFT_OUT_VOXELS)
            excess, missed = self._compare_plane(by_image, left_out)
            if excess > _MOST_EXCESS:
                return False
            missed_by_image.append(missed)
            sizes.append(np.count_nonzero(by_image.mask))
            by_shape = self._grow_by_shape(rest, _LEFT_OUT_VOXELS)
            missed_by_shape.append(self._compare_plane(by_shape, left_out)[1])
        if n_voxels > _SURPRISE * max(sizes):
            return False
        missed = float(np.mean(missed_by_image))
        return missed <= min(_MOST_MISSED, float(np.mean(missed_by_shape)) + _AS_MUCH)

    def _compare_plane(self, grown: Grown, outline: Outline) -> tuple[float, float]:
        return _compare_plane(grown, outline, self._grid, self._settings.tolerance_mm)


def _is_same_outline(one: Outline, other: Outline) -> bool:
    same_plane = (one.axis, one.index) == (other.axis, other.index)
    return same_plane and np.array_equal(one.mask, other.mask)


def _join_planes(outlines: Sequence[Outline]) -> list[Outline]:
    planes: dict[tuple[int, int], Bools] = {}
    for outline in outlines:
        key = (outline.axis, outline.index)
        planes[key] = planes.get(key, np.False_) | outline.mask
    return [Outline(axis, index, drawn) for (axis, index), drawn in planes.items()]


def _join_regions(
    start: Start, grid: Grid, regions: Sequence[Grown], notes: tuple[str, ...]
) -> Grown:
    """Return the voxels in more than half of the regions, within the outlines' hard limits."""
    votes = np.zeros(start.box.shape, np.uint8)
    for region in regions:
        votes += LabelMap(grid, region.box, region.mask.astype(np.uint8)).cut(start.box)
    outside = start.outside & ~start.inside
    held = ((votes > len(regions) // 2) | start.inside) & ~outside
    return _crop_grown(start, _clean_region(held, start.inside, outside), notes)


def _compare_plane(
    grown: Grown, outline: Outline, grid: Grid, tolerance_mm: float
) -> tuple[float, float]:
    """Return the excess area outside an outline and the missing area inside, as fractions."""
    start, stop = [0, 0, 0], list(grid.shape)
    start[outline.axis], stop[outline.axis] = outline.index, outline.index + 1
    box = Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
    region = LabelMap(grid, grown.box, grown.mask.astype(np.uint8))
    plane = region.cut(box).squeeze(outline.axis) > 0
    steps = [step for axis, step in enumerate(grid.spacing_mm) if axis != outline.axis]
    depth = measure_depth(outline.mask, steps)
    size = float(np.count_nonzero(outline.mask))
    more = np.count_nonzero(plane & (depth < -tolerance_mm)) / size
    return more, np.count_nonzero(~plane & (depth > tolerance_mm)) / size


def _grow_shape(
    images: FeatureImages,
    grid: Grid,
    outlines: Sequence[Outline],
    start: Start,
    most_voxels: int,
) -> Grown:
    planes = planes_in(outlines, start.box)
    shape = interpolate_shape(planes, start.box.shape, grid.spacing_mm)
    belief = _weigh_outlines(start, planes, shape, _measure_radius(planes, grid.spacing_mm))
    features = images.in_box(start.box)
    region, apart = settle_region(features, images.noise, grid.spacing_mm, belief, most_voxels)
    notes = (*images.missing, *start.notes)
    if apart < LEAST_APART:
        notes += (
            (
                "lesion and surroundings look alike here, so the region follows the shape of the "
                "outlines; check it slice by slice"
            ),
        )
    return _crop_grown(start, _clean_region(region, belief.inside, belief.outside), notes)


def _weigh_outlines(start: Start, planes: Planes, shape: Shape, radius_mm: float) -> Belief:
    """Return the evidence of outlines: hard limits within their planes, log odds elsewhere."""
    strength = np.clip(shape.depth_mm / np.float32(_SOFT_MM), -1, 1) * np.float32(_STRENGTH)
    strength *= np.exp(-shape.beyond_mm / np.float32(_FADE * radius_mm))
    least, share = _OUT_OF_SHAPE
    farthest = np.minimum(max(least, share * radius_mm), _AT_OUTLINE + _SLOPE * shape.near_mm)
    too_far = shape.depth_mm <= -farthest
    drawn_on = np.zeros(start.box.shape, np.bool_)
    for axis, of_axis in planes.items():
        drawn_on.swapaxes(0, axis)[sorted(of_axis)] = True
    ring = (shape.depth_mm < -RING_MM[0]) & (shape.depth_mm >= -RING_MM[1])
    return Belief(
        prior=strength.astype(np.float32),
        inside=start.inside,
        outside=(start.outside | too_far) & ~start.inside,
        estimate=(shape.depth_mm > 0) & (shape.beyond_mm <= radius_mm),
        lesion=start.inside,
        around=drawn_on & ring & ~start.drawn,
    )


def _measure_radius(planes: Planes, spacing_mm: tuple[float, float, float]) -> float:
    farthest = min(spacing_mm)
    for axis, of_axis in planes.items():
        steps = [step for a, step in enumerate(spacing_mm) if a != axis]
        for drawn in of_axis.values():
            places = np.argwhere(drawn) * np.array(steps)
            if len(places):
                away = np.linalg.norm(places - places.mean(axis=0), axis=1)
                farthest = max(farthest, float(away.max()))
    return farthest


def _clean_region(region: Bools, inside: Bools, outside: Bools) -> Bools:
    parts, count = label(region, _TOUCHING)
    joined = np.zeros(count + 1, np.bool_)
    joined[parts[inside]] = True
    joined[0] = False
    whole = joined[parts]
    clean: Bools = (whole | find_holes(whole) | inside) & ~outside
    return clean


def _crop_grown(start: Start, mask: Bools, notes: tuple[str, ...]) -> Grown:
    tight = Box.around(mask | start.drawn)
    (z, y, x), (a, b, c), (d, e, f) = start.box.start, tight.start, tight.stop
    box = Box((z + a, y + b, x + c), (z + d, y + e, x + f))
    return Grown(box, np.ascontiguousarray(mask[tight.slices]), notes)
