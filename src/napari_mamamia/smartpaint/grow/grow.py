"""Growing a region in 3-D from outlined slices: it follows the image as smoothly as can be."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.grow.cut import Cut, least_cut
from napari_mamamia.smartpaint.grow.energy import Factors, blocks, coarsening, energy_of, refined
from napari_mamamia.smartpaint.grow.evidence import Tissue, contrast, tissue_of
from napari_mamamia.smartpaint.grow.outlines import start_from_outlines
from napari_mamamia.smartpaint.grow.start import GrowSettings, Outline, Start, outlines_of

__all__ = ["GrowSettings", "Grown", "Outline", "grow", "grow_start", "outlines_of"]

_FEWEST: Final = 10  # voxels of surroundings to compare with; our choice
_LEAST_CONTRAST: Final = 0.5  # units of noise; below, the region would follow noise; our choice
_CLOSE: Final = 1e-3  # excess of energy that a reader need not be told of; our choice
_AT_LIMIT: Final = 0.02  # share of the region beside its limit that is worth a note; our choice

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A region: `mask` is bool of the box's shape, outside the box nothing belongs to it.

    The box holds all that was drawn, also where the region leaves it out. `notes` are plain
    sentences about what the reader should know.
    """

    box: Box
    mask: Bools
    notes: tuple[str, ...] = ()


def grow(
    images: FeatureImages,
    grid: Grid,
    outlines: Sequence[Outline],
    settings: GrowSettings | None = None,
) -> Job[Grown]:
    """Return a job that grows outlined slices of one lesion to a region in 3-D.

    Outlines may lie on several slices, also across different axes. In each outlined slice the
    result keeps to the outline within the contour tolerance: it holds all that lies deeper inside
    it, and nothing that lies farther outside; between, the image decides. See
    `start_from_outlines` and `grow_start`.

    Raises
    ------
    CaseError
        If there is no outline, one is empty, or one is no plane of the grid.
    """
    settings = settings or GrowSettings()
    yield Progress(0, 1, "Reading the outline")
    start = start_from_outlines(images, grid, outlines, settings)
    return (yield from grow_start(images, start, settings))


def grow_start(images: FeatureImages, start: Start, settings: GrowSettings) -> Job[Grown]:
    """Return a job that grows what is known of a region.

    Each voxel has log odds from robust normal distributions of the two samples; the region is the
    one of least energy, see `energy_of` and `least_cut`. Of its parts those stay that share a voxel
    with the seed, and their holes are filled, except by what is surely outside.

    What was drawn comes back alone, with a note, if fewer than 10 voxels surround it or no feature
    differs by half its noise.
    """
    start = replace(start, notes=_about_images(images, start))
    tissues = _tissues(images, start)
    if isinstance(tissues, str):
        return _grown(start, start.drawn.copy(), (tissues,))
    factors = coarsening(start.box.shape, images.case.grid.spacing_mm, settings.most_voxels)
    energy = yield from energy_of(images, start, tissues, settings, factors)
    cut = yield from least_cut(energy)
    yield Progress(1, 1, "Filling holes")
    seed = blocks(start.seed, factors, np.logical_or)
    kept = _touching(cut.membership >= 0.5, seed & (energy.highest > 0))
    membership = np.where(kept, np.maximum(cut.membership, 0.5), np.minimum(cut.membership, 0.49))
    mask = refined(membership.astype(np.float32), factors, start.box.shape)
    mask |= start.inside
    mask &= ~start.outside
    return _grown(start, mask, _about_cut(cut, factors, images.case.grid, start, mask))


def _tissues(images: FeatureImages, start: Start) -> tuple[Tissue, Tissue] | str:
    """Return how the region and its surroundings look, or why they cannot be told apart."""
    if not start.foreground.shape[1]:
        return "the image has no values inside the outline: it stays as drawn"
    if start.background.shape[1] < _FEWEST:
        return "there is nothing around the outline to compare it with: it stays as drawn"
    inside = tissue_of(start.foreground, images.noise)
    around = tissue_of(start.background, images.noise)
    if contrast(inside, around, images.noise) < _LEAST_CONTRAST:
        return "the lesion does not differ from its surroundings: the outline stays as drawn"
    return inside, around


def _touching(region: Bools, seed: Bools) -> Bools:
    """Return the parts of `region` that touch `seed`, their holes filled."""
    parts, count = label(region, structure=np.ones((3, 3, 3)))
    chosen = np.zeros(count + 1, dtype=np.bool_)
    chosen[parts[seed]] = True
    chosen[0] = False
    kept: Bools = chosen[parts]
    return kept | _holes(kept)


def _holes(mask: Bools) -> Bools:
    """Return what `mask` encloses (6 neighbours), in planes of one slice what it encloses there."""
    flat = tuple(n for n in mask.shape if n > 1)
    plane = mask.reshape(flat or (1,))
    wide = np.pad(~plane, 1, constant_values=True)
    parts, _ = label(wide)
    holes = (parts > 0) & (parts != parts.flat[0])
    inner = holes[tuple(slice(1, -1) for _ in plane.shape)]
    return np.ascontiguousarray(inner).reshape(mask.shape)


def _about_images(images: FeatureImages, start: Start) -> tuple[str, ...]:
    notes = (*images.missing, *start.notes)
    if 1 in images.case.grid.shape:
        notes += ("the image is one slice thick: the region grew in 2-D",)
    return notes


def _about_cut(
    cut: Cut, factors: Factors, grid: Grid, start: Start, mask: Bools
) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    if factors != (1, 1, 1):
        steps = " x ".join(f"{f * s:.3g}" for f, s in zip(factors, grid.spacing_mm, strict=True))
        notes += (f"the region is large: its edge was found on a grid of {steps} mm (z, y, x)",)
    if cut.excess > _CLOSE:
        notes += (f"stopped after {cut.iterations} iterations, before the edge had settled",)
    share = _share_at_limit(mask, start)
    if share > _AT_LIMIT:
        notes += (
            f"{share:.0%} of the region lies beside its limit: if the lesion goes on, outline "
            "another slice and grow again",
        )
    return notes


def _share_at_limit(mask: Bools, start: Start) -> float:
    """Return the share of the region's voxels with a face on what lies outside along any axis.

    Voxels of outlined slices do not count: there the reader has set the limit.
    """
    beside = np.zeros_like(mask)
    for axis in range(3):
        here, there = (
            start.outside.swapaxes(0, axis)[part] for part in (slice(-1), slice(1, None))
        )
        rim = beside.swapaxes(0, axis)
        rim[1:] |= here
        rim[:-1] |= there
    for axis in range(3):
        drawn = start.drawn.any(axis=tuple(a for a in range(3) if a != axis))
        if drawn.sum() == 1:
            beside.swapaxes(0, axis)[drawn] = False
    return float(np.count_nonzero(beside & mask)) / max(int(np.count_nonzero(mask)), 1)


def _grown(start: Start, mask: Bools, notes: tuple[str, ...]) -> Grown:
    """Return the region in the smallest box that holds it and what was drawn."""
    tight = Box.around(mask | start.drawn)
    (z, y, x), (a, b, c), (d, e, f) = start.box.start, tight.start, tight.stop
    box = Box((z + a, y + b, x + c), (z + d, y + e, x + f))
    return Grown(box, np.ascontiguousarray(mask[tight.slices]), (*start.notes, *notes))
