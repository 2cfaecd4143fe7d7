"""Hard limits of a region from outlined slices, and samples of the region and its surroundings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_fill_holes, distance_transform_edt

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.grow.start import (
    RING_MM,
    GrowSettings,
    Outline,
    Start,
    ball,
    box_of_ball,
)

_LEAST_REACH_MM: Final = 1.0  # beyond the outline, for outlines of few voxels; our choice

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """One outlined slice; `plane` is the box of the slice, and `ring` is a box around the outline.

    The boxes are one voxel thick. The masks have the shape of the ring box: the `drawn` voxels
    (with holes filled), the voxels certainly `inside` and `outside` the region, and the surrounding
    voxels. `is_narrow` is True if no voxel is deeper than the tolerance.
    """

    axis: int
    box: Box
    drawn: Bools
    inside: Bools
    outside: Bools
    ring: Bools
    is_narrow: bool


def slices_of(
    outlines: Sequence[Outline], grid: Grid, tolerance_mm: float
) -> tuple[tuple[Slice, ...], tuple[str, ...]]:
    """Return one outlined slice for each plane, and notes about changes to the outlines.

    Outlines of one plane are joined, and their holes are filled, because a closed line encloses the
    lesion. Voxels deeper than the tolerance are certainly inside, or the whole outline if no voxel
    is that deep. Voxels farther away than the tolerance are certainly outside. Depth and distance
    are measured in the plane from voxel centre to voxel centre, and the image's border is not an
    edge.

    Raises
    ------
    CaseError
        If there is no outline, or an outline is empty or not a plane of the grid.
    """
    if not outlines:
        raise CaseError(
            "expected an outline for growth, but there is none: outline the lesion in one slice "
            "first"
        )
    planes: dict[tuple[int, int], Bools] = {}
    for outline in outlines:
        outline.require_on(grid)
        key = (outline.axis, outline.index)
        planes[key] = planes.get(key, np.False_) | outline.mask
    slices, notes = [], []
    for (axis, index), mask in planes.items():
        full = binary_fill_holes(mask)
        if np.count_nonzero(full) > np.count_nonzero(mask):
            notes.append(f"the outline of slice {index} had a hole, which is treated as inside")
        slices.append(_crop_slice(axis, index, full, grid, tolerance_mm))
    if any(image.is_narrow for image in slices):
        notes.append(
            f"an outline is narrower than twice the tolerance of {tolerance_mm:g} mm, so all its "
            "voxels belong to the region"
        )
    return tuple(slices), tuple(notes)


def start_from_outlines(
    images: FeatureImages, grid: Grid, outlines: Sequence[Outline], settings: GrowSettings
) -> Start:
    """Return the start of a growth from outlined slices.

    The region is within a ball around the mean of all outlined voxels. The radius is `reach` times
    the distance of the farthest outlined voxel (to its outer edge), and at least 1 mm larger than
    this distance. In each outlined slice, the outline is followed within the tolerance. If slices
    of different axes cross and disagree, inside has priority.
    """
    slices, notes = slices_of(outlines, grid, settings.tolerance_mm)
    spacing = grid.spacing_mm
    centre, farthest = _measure_extent(slices, spacing)
    radius_mm = settings.radius_mm or max(settings.reach * farthest, farthest + _LEAST_REACH_MM)
    box = box_of_ball(centre, radius_mm, spacing, grid.shape)
    for image in slices:
        box = box.union(_find_tight_box(image))
    inside, drawn = (np.zeros(box.shape, dtype=np.bool_) for _ in range(2))
    outside = ball(box, centre, spacing) > radius_mm
    for outlined in slices:
        # Clear all planes before setting the first: if two cross, one must not undo the other.
        outside[_find_plane(box, outlined)[1]] = False
    for outlined in slices:
        whole, where = _find_plane(box, outlined)
        # A slice is cropped to its surroundings: every voxel farther away is outside.
        beyond = np.ones(whole.shape, dtype=np.bool_)
        _merge_slice(beyond, whole, outlined, outlined.outside, lambda _, new: new)
        outside[where] |= beyond
        _merge_slice(inside, box, outlined, outlined.inside, np.logical_or)
        _merge_slice(drawn, box, outlined, outlined.drawn, np.logical_or)
    outside &= ~inside
    samples = _collect_samples(images, slices)
    return Start(box, inside, outside, inside, drawn, *samples, notes)


def _crop_slice(axis: int, index: int, mask: Bools, grid: Grid, tolerance_mm: float) -> Slice:
    others = [a for a in range(3) if a != axis]
    spacing = [grid.spacing_mm[a] for a in others]
    margin = [ceil(RING_MM[1] / step) + 1 for step in spacing]
    hit = [np.flatnonzero(mask.any(axis=1 - k)) for k in range(2)]
    crop = tuple(
        slice(max(int(h[0]) - m, 0), min(int(h[-1]) + 1 + m, n))
        for h, m, n in zip(hit, margin, mask.shape, strict=True)
    )
    start, stop = [index] * 3, [index + 1] * 3
    for a, span in zip(others, crop, strict=True):
        start[a], stop[a] = span.start, span.stop
    drawn = mask[crop]
    depth = _measure_distance(~drawn, spacing)
    away = _measure_distance(drawn, spacing)
    inside = depth > tolerance_mm
    is_narrow = not bool(inside.any())
    if is_narrow:
        inside = drawn
    whole, deep, beyond, ring = (
        np.expand_dims(m, axis)
        for m in (
            drawn,
            inside,
            away > tolerance_mm,
            (away > RING_MM[0]) & (away <= RING_MM[1]),
        )
    )
    box = Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
    return Slice(axis, box, whole, deep, beyond, ring, is_narrow)


def _measure_distance(to: Bools, spacing: Sequence[float]) -> NDArray[np.float64]:
    """Return the distance in mm from each voxel to the nearest voxel of `to`, or infinity."""
    if not to.any():
        return np.full(to.shape, np.inf)
    distance: NDArray[np.float64] = distance_transform_edt(~to, sampling=spacing)
    return distance


def _measure_extent(
    slices: Sequence[Slice], spacing_mm: Spacing
) -> tuple[tuple[float, float, float], float]:
    """Return the mean position of all outlined voxels, and its distance to the farthest edge."""
    places = np.concatenate([np.argwhere(image.drawn) + image.box.start for image in slices])
    centre = places.mean(axis=0)
    away_mm = (np.abs(places - centre) + _half_voxels(slices)) * spacing_mm
    z, y, x = centre.tolist()
    return (z, y, x), float(np.sqrt((away_mm**2).sum(axis=1).max()))


def _half_voxels(slices: Sequence[Slice]) -> NDArray[np.float64]:
    rows = []
    for image in slices:
        half = np.full(3, 0.5)
        half[image.axis] = 0.0
        rows.append(np.tile(half, (int(np.count_nonzero(image.drawn)), 1)))
    return np.concatenate(rows)


def _find_tight_box(one: Slice) -> Box:
    inner = Box.around(one.drawn)
    (z0, y0, x0), (a, b, c) = one.box.start, inner.start
    d, e, f = inner.stop
    return Box((z0 + a, y0 + b, x0 + c), (z0 + d, y0 + e, x0 + f))


def _find_plane(box: Box, one: Slice) -> tuple[Box, tuple[slice, slice, slice]]:
    start, stop, within = list(box.start), list(box.stop), [slice(None)] * 3
    index = one.box.start[one.axis]
    start[one.axis], stop[one.axis] = index, index + 1
    within[one.axis] = slice(index - box.start[one.axis], index - box.start[one.axis] + 1)
    plane = Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
    return plane, (within[0], within[1], within[2])


def _merge_slice(
    target: Bools, box: Box, one: Slice, mask: Bools, how: Callable[[Bools, Bools], Bools]
) -> None:
    start = [max(a, b) for a, b in zip(box.start, one.box.start, strict=True)]
    stop = [min(a, b) for a, b in zip(box.stop, one.box.stop, strict=True)]
    if any(a >= b for a, b in zip(start, stop, strict=True)):
        return
    there = tuple(slice(a - o, b - o) for a, b, o in zip(start, stop, box.start, strict=True))
    here = tuple(slice(a - o, b - o) for a, b, o in zip(start, stop, one.box.start, strict=True))
    target[there] = how(target[there], mask[here])


def _collect_samples(images: FeatureImages, slices: Sequence[Slice]) -> tuple[Floats, Floats]:
    """Return the features ``(feature, voxel)`` inside the outlines, and in the rings around them.

    A voxel of a ring that is inside a different outline does not count.
    """
    inside, around = [], []
    for image in slices:
        features = images.in_box(image.box)
        usable = np.isfinite(features).all(axis=0)
        ring = image.ring & usable
        for other in slices:
            _merge_slice(ring, image.box, other, other.drawn, lambda old, drawn: old & ~drawn)
        inside.append(features[:, image.inside & usable])
        around.append(features[:, ring])
    return np.concatenate(inside, axis=1), np.concatenate(around, axis=1)
