"""Grow a label again from all evidence: marks, outlines, the image and the current mask."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label as number_parts

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.evidence.marks import unpack_marks
from napari_mamamia.smartpaint.evidence.region import (
    LEAST_APART,
    Belief,
    measure_depth,
    settle_region,
)
from napari_mamamia.smartpaint.evidence.settle import ALIKE, find_holes
from napari_mamamia.smartpaint.grow.grow import Grown
from napari_mamamia.smartpaint.grow.outlines import start_from_outlines
from napari_mamamia.smartpaint.grow.start import RING_MM, GrowSettings, Outline
from napari_mamamia.smartpaint.parts import without_fragments

_STEADY: Final = 2.0  # log odds of the current mask: weaker evidence does not move its edge
_STEADY_EDGE: Final = 1.0  # the same within the band of `edge_mm`
_PULL: Final = 1.0  # log odds of a full pull
_FAR: Final = (6.0, 0.3)  # mm, and greatest depths, beyond the mask: the limit of the region
_BAND: Final = (1.5, 0.6)  # voxels: narrowest band; depths: what is deeper always stays
_WORTH_A_WORD: Final = 0.01  # of the mask's voxels
_TOUCHING: Final = np.ones((3, 3, 3), np.bool_)

Bools = NDArray[np.bool_]


def grow_again(
    images: FeatureImages,
    grid: Grid,
    labels: NDArray[np.uint8],
    words: NDArray[np.uint16],
    label: int,
    outlines: Sequence[Outline] = (),
    settings: GrowSettings | None = None,
    edge_mm: float | None = None,
) -> Grown:
    """Grow a label again from all evidence about it.

    Voxels that marks fix inside or outside are not changed, so erased voxels remain erased. The
    region does not enter other labels and has no fragments. It follows outlines within the contour
    tolerance; pulls and the current mask are priors of limited weight. If lesion and surroundings
    look alike, the mask is not changed, and a note states this. A change of more than 1 % is also
    noted.

    Parameters
    ----------
    labels
        A uint8 array ``(z, y, x)`` that must not change during the call; `label` is the label that
        grows.
    words
        The label's marks, a uint16 array of the same shape.
    outlines
        The planes that the reader has outlined.
    edge_mm
        Largest distance in mm by which the mask's edge may move; by default the limit of growth.

    Raises
    ------
    CaseError
        If neither the label nor its marks have a voxel, or an outline is not a plane of the grid.
    """
    settings = settings or GrowSettings()
    report_progress(0, 1, "Reading the mask and its marks")
    scene = _look_around(grid, labels, words, label, settings, edge_mm)
    if outlines:
        scene = _add_outlines(scene, images, grid, outlines, settings)
    region, apart = settle_region(
        images.in_box(scene.box), images.noise, grid.spacing_mm, scene.belief
    )
    notes = images.missing
    must = (scene.mask | scene.belief.inside) & ~scene.belief.outside
    if apart < (LEAST_APART if edge_mm is None else ALIKE):
        notes += (
            f"lesion and surroundings look alike here ({1 - apart:.0%} of their values "
            "overlap), so the mask changes only where marks fix voxels",
        )
        return _crop_region(scene, must, notes)
    region = _clean_region(region, scene, grid)
    return _crop_region(scene, region, (*notes, *_about_change(scene.mask, region, grid)))


@dataclass(frozen=True, slots=True, eq=False)
class _Scene:
    """A box around a label, with its mask, the fixed voxels and the evidence in the box."""

    box: Box
    mask: Bools
    hold: NDArray[np.int8]
    belief: Belief


def _look_around(
    grid: Grid,
    labels: NDArray[np.uint8],
    words: NDArray[np.uint16],
    label: int,
    settings: GrowSettings,
    edge_mm: float | None,
) -> _Scene:
    inner = Box.around(labels == label).union(_box_of_held(words))
    if inner.is_empty:
        raise CaseError(
            "expected a mask, an outline or a stroke to grow again, but there is none: outline "
            "the lesion first"
        )
    thickest = min(inner.shape[a] * grid.spacing_mm[a] for a in range(3)) / 2
    far = settings.radius_mm or min(max(_FAR[0], _FAR[1] * thickest), RING_MM[1])
    steady = _STEADY
    if edge_mm is not None:
        far, steady = max(edge_mm, _BAND[0] * max(grid.spacing_mm[1:])), _STEADY_EDGE
    margin = [int(np.ceil((far + RING_MM[1]) / step)) for step in grid.spacing_mm]
    box = inner.grown(margin, grid.shape)
    mask = labels[box.slices] == label
    marks = unpack_marks(words[box.slices])
    closed = (labels[box.slices] != 0) & ~mask
    inside = (marks.hold > 0) & ~closed
    start = mask | inside
    depth = measure_depth(start, grid.spacing_mm)
    outside = (marks.hold < 0) | closed | (depth < -far)
    if edge_mm is not None:
        inside |= (depth > min(far, _BAND[1] * float(depth.max()))) & ~outside
    prior = np.where(start, np.float32(steady), np.float32(-steady))
    prior += np.float32(_PULL) * marks.pull
    lesion = start & (depth > settings.tolerance_mm)
    around = (marks.hold < 0) & (depth > -RING_MM[1])
    estimate = start & ~outside
    return _Scene(box, mask, marks.hold, Belief(prior, inside, outside, estimate, lesion, around))


def _box_of_held(words: NDArray[np.uint16]) -> Box:
    box = Box.around(words)
    held = unpack_marks(words[box.slices]).hold > 0
    tight = Box.around(held)
    if tight.is_empty:
        return tight
    (z, y, x), (a, b, c), (d, e, f) = box.start, tight.start, tight.stop
    return Box((z + a, y + b, x + c), (z + d, y + e, x + f))


def _add_outlines(
    scene: _Scene,
    images: FeatureImages,
    grid: Grid,
    outlines: Sequence[Outline],
    settings: GrowSettings,
) -> _Scene:
    start = start_from_outlines(images, grid, outlines, settings)
    belief = scene.belief
    inside, outside = belief.inside.copy(), belief.outside.copy()
    on_plane = np.zeros(scene.box.shape, np.bool_)
    for outline in outlines:
        index = outline.index - scene.box.start[outline.axis]
        if 0 <= index < scene.box.shape[outline.axis]:
            on_plane.swapaxes(0, outline.axis)[index] = True
    there, here = _find_overlap(start.box, scene.box)
    drawn_in = np.zeros(scene.box.shape, np.bool_)
    drawn_in[here] = start.inside[there]
    drawn_out = on_plane.copy()
    drawn_out[here] &= start.outside[there]
    outside |= drawn_out & ~inside
    inside |= drawn_in & ~outside
    lesion = belief.lesion | inside & drawn_in
    return replace(scene, belief=replace(belief, inside=inside, outside=outside, lesion=lesion))


def _clean_region(region: Bools, scene: _Scene, grid: Grid) -> Bools:
    belief = scene.belief
    region = (region | belief.inside) & ~belief.outside
    parts, count = number_parts(region, _TOUCHING)
    stays = np.zeros(count + 1, np.bool_)
    stays[parts[scene.mask | belief.inside]] = True
    stays[0] = False
    whole = stays[parts]
    new_holes = find_holes(whole) & ~(find_holes(scene.mask) & ~scene.mask)
    clean = (whole | new_holes) & ~belief.outside
    crop_grid = Grid(clean.shape, grid.affine)
    return (
        without_fragments(clean, crop_grid, scene.mask, scene.hold) & ~belief.outside
        | belief.inside
    )


def _about_change(before: Bools, after: Bools, grid: Grid) -> tuple[str, ...]:
    more = int(np.count_nonzero(after & ~before))
    less = int(np.count_nonzero(before & ~after))
    share = (more + less) / max(int(np.count_nonzero(before)), 1)
    if share <= _WORTH_A_WORD:
        return ()
    ml = grid.voxel_volume_mm3 / 1000
    return (f"{share:.0%} of the mask changed (-{less * ml:.2g} ml, +{more * ml:.2g} ml)",)


def _crop_region(scene: _Scene, region: Bools, notes: tuple[str, ...]) -> Grown:
    tight = Box.around(region | scene.mask)
    (z, y, x), (a, b, c), (d, e, f) = scene.box.start, tight.start, tight.stop
    box = Box((z + a, y + b, x + c), (z + d, y + e, x + f))
    return Grown(box, np.ascontiguousarray(region[tight.slices]), notes)


def _find_overlap(
    one: Box, other: Box
) -> tuple[tuple[slice, slice, slice], tuple[slice, slice, slice]]:
    start = [max(a, b) for a, b in zip(one.start, other.start, strict=True)]
    stop = [max(min(a, b), s) for a, b, s in zip(one.stop, other.stop, start, strict=True)]
    places = []
    for box in (one, other):
        z, y, x = (slice(a - o, b - o) for a, b, o in zip(start, stop, box.start, strict=True))
        places.append((z, y, x))
    return places[0], places[1]
